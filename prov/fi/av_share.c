/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows that several processes share, and how they find them; see av_share.h. */
#include "config.h"

#include "prov/fi/av_share.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/fi/wait.h"
#include "prov/mem/fork.h"
#include "prov/mem/memfd.h"

/* ---- the memory: a page, then handles, then rows
 * --------------------------------------------- */

#define SHARE_MAGIC   UINT32_C(0x77617631)
#define SHARE_VERSION 1
#define SHARE_PAGE    4096
#define ROOM_LEAST    (1u << 16) /* untouched rows cost nothing */
#define ROOM_MOST     (1u << 24)

struct share_head {
	uint32_t magic;
	uint32_t version;
	uint32_t room; /* rows; a power of two */
	_Atomic uint32_t next;
	_Atomic uint32_t changes;
};

struct share_row {
	_Atomic uint32_t state; /* enum av_share_state, written last */
	uint16_t family;
	uint16_t port; /* network order, as the host */
	uint8_t host[16];
	uint8_t zero[8];
};
_Static_assert(sizeof(struct share_row) == 32, "no holes");
_Static_assert(sizeof(struct share_head) <= SHARE_PAGE, "a page");

struct av_share {
	struct share_head *head;
	uint64_t *handles;
	struct share_row *rows;
	uint32_t room; /* as it was when the memory was looked at */
	size_t size;
	bool read_only;
	int fd; /* -1: somebody else answers for the name */
	int listen_fd;
	int stop_fd;
	bool serving;
	pthread_t thread;
	pthread_mutex_t lock; /* for mem_fork: taken by nobody else */
	struct mem_fork fork;
};

static size_t share_size(uint32_t room)
{
	return SHARE_PAGE + room * (sizeof(uint64_t) + sizeof(struct share_row));
}

static void share_place(struct av_share *s, void *map, uint32_t room)
{
	s->head = map;
	s->room = room;
	s->size = share_size(s->room);
	s->handles = (uint64_t *)((char *)map + SHARE_PAGE);
	s->rows = (struct share_row *)(s->handles + s->room);
}

/* The one validator of memory that came from somebody else, who may go on writing: how
 * many rows there are is read once. 0: it is no vector. */
static uint32_t share_room(const struct share_head *head, size_t size)
{
	uint32_t room;

	if (size < SHARE_PAGE || head->magic != SHARE_MAGIC ||
	    head->version != SHARE_VERSION)
		return 0;
	room = *(const volatile uint32_t *)&head->room;
	if (room < ROOM_LEAST || room > ROOM_MOST || (room & (room - 1)) ||
	    size != share_size(room))
		return 0;
	return room;
}

static int share_create(struct av_share *s, size_t count)
{
	uint32_t room = ROOM_LEAST;
	void *map;
	int ret;

	while (room < count && room < ROOM_MOST)
		room *= 2;
	ret = mem_memfd_create("weft-av", share_size(room), &s->fd, &map);
	if (ret)
		return ret;
	((struct share_head *)map)->room = room;
	((struct share_head *)map)->version = SHARE_VERSION;
	((struct share_head *)map)->magic = SHARE_MAGIC;
	share_place(s, map, room);
	return 0;
}

/* ---- rows
 * ------------------------------------------------------------------------------ */

bool av_share_is_read_only(const struct av_share *s)
{
	return s->read_only;
}

int av_share_add(struct av_share *s, const struct wire_addr *addr, uint32_t *index)
{
	uint32_t i = atomic_load(&s->head->next);
	struct share_row *row;

	do {
		if (i >= s->room)
			return -FI_ENOMEM;
	} while (!atomic_compare_exchange_weak(&s->head->next, &i, i + 1));
	row = &s->rows[i];
	row->family = addr->sa.sa_family;
	if (row->family == AF_INET6) {
		row->port = addr->in6.sin6_port;
		memcpy(row->host, &addr->in6.sin6_addr, 16);
	} else {
		row->port = addr->in.sin_port;
		memcpy(row->host, &addr->in.sin_addr, 4);
	}
	s->handles[i] = i;
	atomic_store_explicit(&row->state, AV_SHARE_USED, memory_order_release);
	atomic_fetch_add(&s->head->changes, 1);
	*index = i;
	return 0;
}

void av_share_remove(struct av_share *s, uint32_t index)
{
	if (index < s->room) {
		atomic_store(&s->rows[index].state, AV_SHARE_GONE);
		atomic_fetch_add(&s->head->changes, 1);
	}
}

uint32_t av_share_changes(const struct av_share *s)
{
	return atomic_load_explicit(&s->head->changes, memory_order_acquire);
}

uint32_t av_share_limit(const struct av_share *s)
{
	uint32_t next = atomic_load_explicit(&s->head->next, memory_order_acquire);

	return next < s->room ? next : s->room;
}

enum av_share_state av_share_row(const struct av_share *s, uint32_t index,
				 struct wire_addr *addr)
{
	const struct share_row *shared = &s->rows[index];
	uint32_t state = atomic_load_explicit(&shared->state, memory_order_acquire);
	struct wire_addr raw = {0};
	struct share_row row;

	if (state == AV_SHARE_GONE)
		return AV_SHARE_GONE;
	if (state != AV_SHARE_USED)
		return AV_SHARE_EMPTY;
	memcpy((char *)&row + sizeof(row.state), (const char *)shared + sizeof(row.state),
	       sizeof(row) - sizeof(row.state));
	raw.sa.sa_family = row.family;
	if (row.family == AF_INET6) {
		raw.in6.sin6_port = row.port;
		memcpy(&raw.in6.sin6_addr, row.host, 16);
	} else {
		raw.in.sin_port = row.port;
		memcpy(&raw.in.sin_addr, row.host, 4);
	}
	return wire_addr_from_sockaddr(addr, &raw.sa, sizeof(raw.in6)) ? AV_SHARE_USED
								       : AV_SHARE_EMPTY;
}

const uint64_t *av_share_handles(const struct av_share *s)
{
	return s->handles;
}

/* ---- the name
 * -------------------------------------------------------------------------- */

#define NAME_PREFIX "weft/av/"
#define ANSWER_MS   5000

/* -FI_EINVAL: too long, or none. Users have names of their own. */
static int name_of(const char *name, struct sockaddr_un *un, socklen_t *len)
{
	int n;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	n = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, NAME_PREFIX "%u/%s",
		     (unsigned)geteuid(), name);
	if (!*name || n >= (int)sizeof(un->sun_path) - 1)
		return -FI_EINVAL;
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return 0;
}

static bool may_know(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       len == sizeof(cred) && (cred.uid == geteuid() || cred.uid == 0);
}

union control {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* A socket has room for the first message. */
static void hand_out(int to, int fd)
{
	char byte = 1;
	struct iovec iov = {&byte, 1};
	union control control = {{0}};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void *serve(void *arg)
{
	struct av_share *s = arg;
	struct pollfd fds[2] = {{.fd = s->listen_fd, .events = POLLIN},
				{.fd = s->stop_fd, .events = POLLIN}};

	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		int fd;

		if (fds[1].revents)
			break;
		fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0) {
			poll(&fds[1], 1, 100); /* out of descriptors, say */
			continue;
		}
		if (may_know(fd))
			hand_out(fd, s->fd);
		close(fd);
	}
	return NULL;
}

/* In a child: the name is the parent's. */
static void in_child(struct mem_fork *f)
{
	struct av_share *s = container_of(f, struct av_share, fork);

	mem_fork_close(&s->listen_fd);
	mem_fork_close(&s->stop_fd);
	mem_fork_close(&s->fd);
	s->serving = false;
}

/* 0: the name is ours; -FI_EADDRINUSE: somebody's. */
static int serve_start(struct av_share *s, const struct sockaddr_un *un, socklen_t len)
{
	sigset_t all, before;
	int ret;

	s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (s->listen_fd < 0 || s->stop_fd < 0)
		return -FI_EMFILE;
	if (bind(s->listen_fd, (const struct sockaddr *)un, len) < 0)
		return errno == EADDRINUSE ? -FI_EADDRINUSE : -errno;
	if (listen(s->listen_fd, 64) < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	ret = pthread_create(&s->thread, NULL, serve, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret)
		return -FI_ENOMEM;
	s->serving = true;
	return 0;
}

/* Signals don't end it. */
static bool is_there(int from, uint64_t deadline)
{
	struct pollfd fds = {.fd = from, .events = POLLIN};
	uint64_t now;

	while ((now = wfi_now_ns()) < deadline) {
		int n = poll(&fds, 1, (int)((deadline - now) / 1000000) + 1);

		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
	return false;
}

/* The descriptor that the other end sends. -FI_ENOENT: it went without a word;
 * -FI_ETIMEDOUT: it sends none. */
static int take(int from, uint64_t deadline, int *out)
{
	char byte;
	struct iovec iov = {&byte, 1};
	union control control;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c;
	ssize_t n;

	if (!is_there(from, deadline))
		return -FI_ETIMEDOUT;
	n = recvmsg(from, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n != 1)
		return n == 0 || errno == ECONNRESET ? -FI_ENOENT : -FI_ETIMEDOUT;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -FI_ETIMEDOUT;
	memcpy(out, CMSG_DATA(c), sizeof(*out));
	return 0;
}

static int map_it(struct av_share *s, int fd)
{
	size_t size = 0;
	uint32_t room;
	void *map;
	int ret = mem_memfd_map(fd, &size, !s->read_only, &map);

	if (ret)
		return ret == -FI_EINVAL ? -FI_EOTHER : ret;
	room = share_room(map, size);
	if (!room) {
		munmap(map, size);
		return -FI_EOTHER;
	}
	share_place(s, map, room);
	return 0;
}

/* -FI_ENOENT: nobody has that name. */
static int join(struct av_share *s, const struct sockaddr_un *un, socklen_t len,
		uint64_t deadline)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int memory, ret;

	if (fd < 0)
		return -FI_EMFILE;
	if (connect(fd, (const struct sockaddr *)un, len) < 0) {
		ret = errno == EAGAIN ? -FI_ETIMEDOUT : -FI_ENOENT;
		close(fd);
		return ret;
	}
	if (!may_know(fd)) {
		close(fd);
		return -FI_EACCES;
	}
	ret = take(fd, deadline, &memory);
	close(fd);
	if (ret)
		return ret;
	ret = map_it(s, memory);
	close(memory);
	return ret;
}

/* ---- life
 * ------------------------------------------------------------------------------ */

static void share_free(struct av_share *s)
{
	uint64_t one = 1;

	if (s->serving && write(s->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(s->thread, NULL);
	if (s->fork.child)
		mem_fork_leave(&s->fork);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	if (s->fd >= 0)
		close(s->fd);
	if (s->head)
		munmap(s->head, s->size);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int make(struct av_share *s, size_t count, const struct sockaddr_un *un,
		socklen_t len)
{
	int ret = share_create(s, count);

	if (!ret)
		ret = serve_start(s, un, len);
	if (!ret) {
		s->fork.lock = &s->lock;
		s->fork.child = in_child;
		mem_fork_enter(&s->fork);
	}
	return ret;
}

static struct av_share *share_new(bool read_only)
{
	struct av_share *s = calloc(1, sizeof(*s));

	if (s) {
		s->read_only = read_only;
		s->fd = s->listen_fd = s->stop_fd = -1;
		pthread_mutex_init(&s->lock, NULL);
	}
	return s;
}

/* Whoever has the name may go, or come, between the two looks; or has it already and does
 * not answer yet. */
#define OPEN_PAUSE_NS (2 * 1000 * 1000)

int av_share_open(const char *name, bool read_only, size_t count, struct av_share **out)
{
	struct sockaddr_un un;
	socklen_t len;
	const struct timespec pause = {.tv_nsec = OPEN_PAUSE_NS};
	uint64_t deadline = wfi_now_ns() + ANSWER_MS * 1000000ull;
	int ret = name_of(name, &un, &len);

	if (ret)
		return ret;
	for (; wfi_now_ns() < deadline; nanosleep(&pause, NULL)) {
		struct av_share *s = share_new(read_only);

		if (!s)
			return -FI_ENOMEM;
		ret = join(s, &un, len, deadline);
		if (!ret) {
			*out = s;
			return 0;
		}
		if (ret != -FI_ENOENT || read_only) {
			share_free(s);
			return ret;
		}
		ret = make(s, count, &un, len);
		if (!ret) {
			*out = s;
			return 0;
		}
		share_free(s);
		if (ret != -FI_EADDRINUSE)
			return ret;
	}
	return -FI_ETIMEDOUT;
}

void av_share_close(struct av_share *s)
{
	share_free(s);
}
