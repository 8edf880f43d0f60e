/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry of listening ports. */
#include "config.h"

#include "prov/wire/verbs/verbs_listen.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/fork.h"

#define LISTEN_BACKLOG 4096 /* the kernel's somaxconn may be less */

struct verbs_listener {
	struct list node;
	struct list doors; /* struct verbs_inbox */
	struct wire_addr addr;
	bool any;
	int fd;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;
static struct list registry = {&registry, &registry};

/* In a forked child: the ports are its parent's. */
static void registry_child(struct mem_fork *f)
{
	(void)f;
	for (struct list *at = registry.next; at != &registry; at = at->next)
		mem_fork_close(&container_of(at, struct verbs_listener, node)->fd);
	list_init(&registry);
}

static struct mem_fork registry_fork = {.lock = &registry_lock, .child = registry_child};

static void registry_start(void)
{
	mem_fork_enter(&registry_fork);
}

static int socket_error(int err)
{
	switch (err) {
	case EADDRINUSE:
		return -FI_EADDRINUSE;
	case EMFILE:
	case ENFILE:
		return -FI_EMFILE;
	case ENOMEM:
	case ENOBUFS:
		return -FI_ENOMEM;
	case EACCES:
	case EPERM:
		return -FI_EACCES;
	default:
		return -FI_EADDRNOTAVAIL;
	}
}

static int socket_bind(int fd, struct wire_addr *addr, bool any)
{
	struct wire_addr bound = *addr;
	socklen_t len = wire_addr_len(addr);
	int one = 1;

	if (addr->sa.sa_family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
		if (any)
			bound.in6.sin6_addr = in6addr_any;
	} else if (any) {
		bound.in.sin_addr.s_addr = htonl(INADDR_ANY);
	}
	/* Connections of an earlier process that linger don't keep the port. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &bound.sa, len) < 0 || listen(fd, LISTEN_BACKLOG) < 0 ||
	    getsockname(fd, &bound.sa, &len) < 0)
		return socket_error(errno);
	if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = bound.in6.sin6_port;
	else
		addr->in.sin_port = bound.in.sin_port;
	if (any)
		wire_addr_find_host(addr);
	return 0;
}

static int listener_make(struct wire_addr *addr, bool any, struct verbs_listener **out)
{
	struct verbs_listener *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -FI_ENOMEM;
	l->fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = l->fd < 0 ? socket_error(errno) : socket_bind(l->fd, addr, any);
	if (rc) {
		if (l->fd >= 0)
			close(l->fd);
		free(l);
		return rc;
	}
	l->addr = *addr;
	l->addr.context = 0;
	l->any = any;
	list_init(&l->doors);
	list_push_back(&registry, &l->node);
	*out = l;
	return 0;
}

static struct verbs_inbox *door_find(const struct verbs_listener *l, uint16_t context)
{
	for (struct list *at = l->doors.next; at != &l->doors; at = at->next) {
		struct verbs_inbox *inbox = container_of(at, struct verbs_inbox, node);

		if (inbox->context == context)
			return inbox;
	}
	return NULL;
}

/* One that has this address for another context. */
static struct verbs_listener *listener_find(const struct wire_addr *addr)
{
	struct wire_addr plain = *addr;

	plain.context = 0;
	for (struct list *at = registry.next; at != &registry; at = at->next) {
		struct verbs_listener *l = container_of(at, struct verbs_listener, node);

		if (wire_addr_equal(&l->addr, &plain))
			return l;
	}
	return NULL;
}

int verbs_listen_open(struct wire_addr *addr, bool any, struct verbs_inbox *inbox,
		      struct verbs_listener **listener)
{
	struct verbs_listener *l;
	int rc = 0;

	pthread_once(&registry_once, registry_start);
	pthread_mutex_lock(&registry_lock);
	l = listener_find(addr);
	if (!l)
		rc = listener_make(addr, any, &l);
	else if (door_find(l, addr->context))
		rc = -FI_EADDRINUSE;
	if (rc == 0) {
		inbox->context = addr->context;
		list_init(&inbox->passed);
		list_push_back(&l->doors, &inbox->node);
		*listener = l;
	}
	pthread_mutex_unlock(&registry_lock);
	return rc;
}

void verbs_listen_close(struct verbs_listener *l, struct verbs_inbox *inbox)
{
	struct verbs_passed *p;

	pthread_mutex_lock(&registry_lock);
	list_remove(&inbox->node);
	if (list_empty(&l->doors)) {
		list_remove(&l->node);
		if (l->fd >= 0)
			close(l->fd);
		free(l);
	}
	pthread_mutex_unlock(&registry_lock);
	while ((p = verbs_listen_take(inbox))) {
		close(p->sock);
		free(p);
	}
}

int verbs_listen_fd(const struct verbs_listener *listener)
{
	return listener->fd;
}

bool verbs_listen_pass(struct verbs_listener *listener, uint16_t context,
		       const struct verbs_passed *what)
{
	struct verbs_passed *copy = malloc(sizeof(*copy));
	struct verbs_inbox *inbox;
	uint64_t one = 1;

	if (!copy)
		return false;
	*copy = *what;
	pthread_mutex_lock(&registry_lock);
	inbox = door_find(listener, context);
	if (inbox) {
		list_push_back(&inbox->passed, &copy->node);
		(void)!write(inbox->fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&registry_lock);
	if (!inbox)
		free(copy);
	return inbox != NULL;
}

struct verbs_passed *verbs_listen_take(struct verbs_inbox *inbox)
{
	struct verbs_passed *p = NULL;

	pthread_mutex_lock(&registry_lock);
	if (!list_empty(&inbox->passed)) {
		p = container_of(inbox->passed.next, struct verbs_passed, node);
		list_remove(&p->node);
	}
	pthread_mutex_unlock(&registry_lock);
	return p;
}
