/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls that fail when told to. See fault.h. */
#include "config.h"

#include "fabtests/own/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INTERPOSED __attribute__((visibility("default")))

const char *const fault_names[FAULT_CALLS] = {
	[FAULT_MEMFD_CREATE] = "memfd_create",
	[FAULT_MMAP] = "mmap",
	[FAULT_SOCKET] = "socket",
	[FAULT_SOCKETPAIR] = "socketpair",
	[FAULT_EVENTFD] = "eventfd",
	[FAULT_EPOLL_CREATE] = "epoll_create1",
	[FAULT_ACCEPT] = "accept4",
	[FAULT_THREAD] = "pthread_create",
};

/* Helper threads of the provider call as well. */
static atomic_int armed = -1, left, hit;
static int armed_err;
static bool armed_for_ever;

void fault_arm(enum fault_call call, int err, int nth, bool for_ever)
{
	armed_err = err;
	armed_for_ever = for_ever;
	atomic_store(&hit, 0);
	atomic_store(&left, nth);
	atomic_store(&armed, (int)call);
}

bool fault_disarm(void)
{
	atomic_store(&armed, -1);
	return atomic_load(&hit) > 0;
}

/* The errno to fail with, or 0. */
static int fault_now(enum fault_call call)
{
	int n;

	if (atomic_load(&armed) != (int)call)
		return 0;
	n = atomic_fetch_sub(&left, 1);
	if (n > 1 || (n < 1 && !armed_for_ever))
		return 0;
	atomic_fetch_add(&hit, 1);
	return armed_err;
}

static int fault_fd(enum fault_call call)
{
	int err = fault_now(call);

	if (err)
		errno = err;
	return err;
}

INTERPOSED int memfd_create(const char *name, unsigned flags)
{
	return fault_fd(FAULT_MEMFD_CREATE) ? -1
					    : (int)syscall(SYS_memfd_create, name, flags);
}

INTERPOSED void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (fault_fd(FAULT_MMAP))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

INTERPOSED void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return mmap(addr, len, prot, flags, fd, off);
}

INTERPOSED int socket(int domain, int type, int protocol)
{
	return fault_fd(FAULT_SOCKET) ? -1
				      : (int)syscall(SYS_socket, domain, type, protocol);
}

INTERPOSED int socketpair(int domain, int type, int protocol, int fds[2])
{
	if (fault_fd(FAULT_SOCKETPAIR))
		return -1;
	return (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

INTERPOSED int eventfd(unsigned count, int flags)
{
	return fault_fd(FAULT_EVENTFD) ? -1 : (int)syscall(SYS_eventfd2, count, flags);
}

INTERPOSED int epoll_create1(int flags)
{
	return fault_fd(FAULT_EPOLL_CREATE) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

INTERPOSED int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return fault_fd(FAULT_ACCEPT) ? -1
				      : (int)syscall(SYS_accept4, fd, addr, len, flags);
}

INTERPOSED int pthread_create(pthread_t *t, const pthread_attr_t *attr,
			      void *(*run)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int err = fault_now(FAULT_THREAD);

	if (err)
		return err;
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(t, attr, run, arg);
}
