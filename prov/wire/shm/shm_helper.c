/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper thread. */
#include "config.h"

#include "prov/wire/shm/shm_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm_connect.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_link.h"
#include "prov/wire/shm/shm_service.h"
#include "util/lock_note.h"

#define HELPER_EVENTS  32
#define HELPER_ACCEPTS 16  /* per look at a door */
#define HELPER_BELLS   8   /* per look at a link */
#define HELPER_CHUNKS  4   /* per link and turn */
#define HELPER_IDLE    200 /* looks for service without any, then sleep */
#define HELPER_NAP_NS  10000000

/* What an epoll event is about: kind | index | generation. A generation that doesn't fit
 * any more belongs to something that was closed after the event was queued. */
enum watch_kind {
	WATCH_KICK = 1,
	WATCH_DOOR,
	WATCH_ANY_DOOR,
	WATCH_HALF_OPEN,
	WATCH_LINK,
	WATCH_PROCESS
};

static uint64_t watch_data(enum watch_kind kind, uint32_t index, uint32_t generation)
{
	return (uint64_t)kind << 56 | (uint64_t)(index & 0xffff) << 32 | generation;
}

static int watch_add(struct shm_helper *h, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};

	/* A socket that was half open is there already. */
	if (epoll_ctl(h->epoll_fd, EPOLL_CTL_MOD, fd, &ev) == 0)
		return 0;
	return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -FI_ENOMEM;
}

/* Before closing, always: a forked child may keep the socket open, and with it the watch.
 */
static void watch_remove(struct shm_helper *h, int fd)
{
	if (h->epoll_fd >= 0 && fd >= 0)
		epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void helper_kick(struct shm_helper *h)
{
	uint64_t one = 1;

	(void)!write(h->kick_fd, &one, sizeof(one));
}

int shm_helper_watch(struct shm_ep *ep, struct shm_link *link)
{
	int ret = 0;

	if (link->process >= 0)
		ret = watch_add(&ep->helper, link->process, EPOLLIN,
				watch_data(WATCH_PROCESS, link->index, link->generation));
	if (ret == 0)
		ret = watch_add(&ep->helper, link->sock, EPOLLIN | EPOLLRDHUP,
				watch_data(WATCH_LINK, link->index, link->generation));
	return ret;
}

void shm_helper_watch_end(struct shm_ep *ep, struct shm_link *link)
{
	watch_add(&ep->helper, link->sock, EPOLLIN | EPOLLRDHUP,
		  watch_data(WATCH_LINK, link->index, link->generation));
}

void shm_helper_unwatch(struct shm_ep *ep, struct shm_link *link)
{
	watch_remove(&ep->helper, link->sock);
	watch_remove(&ep->helper, link->process);
}

void shm_helper_deadline(struct shm_ep *ep, const struct shm_link *link)
{
	struct shm_helper *h = &ep->helper;

	if (h->answer_next != 0 && h->answer_next <= link->answer_by)
		return;
	h->answer_next = link->answer_by;
	helper_kick(h);
}

/* ---- the door ------------------------------------------------------------------------
 */

static void half_open_drop(struct shm_ep *ep, struct shm_half_open *ho)
{
	watch_remove(&ep->helper, ho->sock);
	close(ho->sock);
	ho->sock = -1;
}

/* A free place; when there is none the one that has said nothing for longest goes. */
static struct shm_half_open *half_open_place(struct shm_ep *ep)
{
	struct shm_half_open *oldest = &ep->helper.half_open[0];

	for (int i = 0; i < SHM_HALF_OPEN; i++) {
		struct shm_half_open *ho = &ep->helper.half_open[i];

		if (ho->sock < 0)
			return ho;
		if (ho->since < oldest->since)
			oldest = ho;
	}
	half_open_drop(ep, oldest);
	return oldest;
}

static void stranger_let_in(struct shm_ep *ep, int sock)
{
	struct shm_helper *h = &ep->helper;
	struct shm_half_open *ho;
	int pid;

	if (!shm_door_peer(sock, &pid)) {
		if (!ep->warned_user)
			FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
				"a process of another user asked for a link and was "
				"refused: "
				"all ranks of a host must run as one user (told once)\n");
		ep->warned_user = true;
		shm_refuse(ep, sock, -FI_EACCES);
		close(sock);
		return;
	}
	ho = half_open_place(ep);
	*ho = (struct shm_half_open){.sock = sock,
				     .pid = pid,
				     .generation = ++h->half_open_generation,
				     .since = shm_now()};
	if (watch_add(h, sock, EPOLLIN | EPOLLRDHUP,
		      watch_data(WATCH_HALF_OPEN, (uint32_t)(ho - h->half_open),
				 ho->generation)))
		half_open_drop(ep, ho);
}

/* Out of descriptors: the spare one is given up so that the caller at least learns that
 * nobody will talk to it. Returns false when not even that works. */
static bool door_shed(struct shm_helper *h, int listen_fd)
{
	int sock;

	if (h->spare_fd < 0)
		return false;
	close(h->spare_fd);
	sock = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0)
		close(sock);
	h->spare_fd = fcntl(h->kick_fd, F_DUPFD_CLOEXEC, 0);
	return sock >= 0;
}

/* Returns false when the door should be left alone for a moment. */
static bool door_answer(struct shm_ep *ep, int listen_fd)
{
	for (int i = 0; i < HELPER_ACCEPTS; i++) {
		int sock = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (sock >= 0)
			stranger_let_in(ep, sock);
		else if (errno == EMFILE || errno == ENFILE)
			return door_shed(&ep->helper, listen_fd);
		else if (errno == EAGAIN)
			return true;
		else if (errno != EINTR && errno != ECONNABORTED)
			return false;
	}
	return true;
}

LOCK_HELD(lock_wire)
static void half_open_event(struct shm_ep *ep, uint32_t index, uint32_t generation,
			    uint32_t events)
{
	struct shm_half_open *ho;
	int ret;

	if (index >= SHM_HALF_OPEN)
		return;
	ho = &ep->helper.half_open[index];
	if (ho->sock < 0 || ho->generation != generation)
		return;
	ret = shm_answer(ep, ho->sock, ho->pid);
	if (ret == 0)
		ho->sock = -1; /* the link's now */
	else if (ret != -FI_EAGAIN || (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		half_open_drop(ep, ho);
}

/* ---- links ---------------------------------------------------------------------------
 */

/* One message of the link's socket: its length, 0 or less: none. *fd: what came along, or
 * -1. */
static ssize_t link_recv(struct shm_link *link, void *bytes, size_t size, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = bytes, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(link->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	*fd = -1;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return n;
	/* Alignment makes room for a second one, which nobody should send. */
	for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len;
	     at += sizeof(int)) {
		if (*fd >= 0)
			close(*fd);
		memcpy(fd, CMSG_DATA(c) + at, sizeof(*fd));
	}
	return n;
}

/* Bells: the peer asks for service; other messages are about shared memory. Taken from a
 * link that is over as well: one may carry the peer's own end of the socket, which then
 * would stay open as long as it lies here. */
LOCK_HELD(lock_wire) static void link_bells(struct shm_ep *ep, struct shm_link *link)
{
	union {
		struct shm_share_msg share;
		struct shm_device_msg device;
		char more[sizeof(struct shm_device_msg) + 8]; /* longer is noticed */
	} msg;
	int bells = 0, fd;

	for (int i = 0; i < HELPER_BELLS; i++) {
		ssize_t n = link_recv(link, &msg, sizeof(msg), &fd);

		if (n <= 0 && fd < 0)
			break;
		if (n == (ssize_t)sizeof(msg.share)) {
			shm_share_message(link, &msg.share, fd);
			continue;
		}
		if (n == (ssize_t)sizeof(msg.device)) {
			shm_device_message(link, &msg.device, fd);
			continue;
		}
		if (fd >= 0)
			close(fd);
		bells++;
	}
	if (bells == 0 || link->limbo || !link->keys ||
	    !list_empty(&link->service_rx.node))
		return;
	atomic_store_explicit(&link->pair->service[!link->side].attentive, 1,
			      memory_order_relaxed);
	link->service_rx.idle = 0;
	list_push_back(&ep->helper.serving, &link->service_rx.node);
}

LOCK_HELD(lock_wire) static void link_gone(struct shm_ep *ep, struct shm_link *link)
{
	if (link->limbo) {
		shm_link_free(link);
		return;
	}
	atomic_store(&link->gone, true);
	shm_helper_unwatch(ep, link);
	list_remove(&link->service_rx.node);
	link->answer_by = 0;
	shm_link_tell_end(link, link->keys ? -FI_ECONNRESET : -FI_ECONNREFUSED);
}

LOCK_HELD(lock_wire)
static void link_event(struct shm_ep *ep, uint32_t index, uint32_t generation,
		       uint32_t events)
{
	struct shm_link *link = index < ep->link_top ? ep->links[index] : NULL;

	if (!link || link->generation != generation)
		return;
	if (events & EPOLLIN) {
		if (link->answer_by)
			shm_answered(link);
		else
			link_bells(ep, link);
	}
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		link_gone(ep, link);
}

/* The process is dead, whoever holds its end of the socket: a child that it forked. */
LOCK_HELD(lock_wire)
static void process_event(struct shm_ep *ep, uint32_t index, uint32_t generation)
{
	struct shm_link *link = index < ep->link_top ? ep->links[index] : NULL;

	if (!link || link->generation != generation)
		return;
	/* A last word of it, which may be why the dial is refused. */
	if (link->answer_by)
		shm_answered(link);
	link_gone(ep, link);
}

/* ---- deadlines -----------------------------------------------------------------------
 */

static void answer_warn(const struct shm_link *link)
{
	char text[WIRE_ADDR_TEXT_MAX];

	FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
		"peer %s (pid %d) took the call but did not answer within %u s: is it "
		"stopped?\n",
		wire_addr_text(&link->base.peer, text), link->pid,
		(unsigned)(SHM_ANSWER_TIMEOUT_NS / 1000000000u));
}

LOCK_HELD(lock_wire) static void deadlines_expire(struct shm_ep *ep, uint64_t now)
{
	struct shm_helper *h = &ep->helper;

	for (int i = 0; i < SHM_HALF_OPEN; i++) {
		struct shm_half_open *ho = &h->half_open[i];

		if (ho->sock >= 0 && now - ho->since >= SHM_HELLO_TIMEOUT_NS)
			half_open_drop(ep, ho);
	}
	if (h->answer_next == 0 || now < h->answer_next)
		return;
	h->answer_next = 0;
	for (uint32_t i = 0; i < ep->link_top; i++) {
		struct shm_link *link = ep->links[i];

		if (!link || link->answer_by == 0)
			continue;
		if (link->answer_by <= now) {
			answer_warn(link);
			link->answer_by = 0;
			shm_link_tell_end(link, -FI_ECONNREFUSED);
		} else if (h->answer_next == 0 || link->answer_by < h->answer_next) {
			h->answer_next = link->answer_by;
		}
	}
}

/* ms until the next deadline, -1: none. */
static int deadlines_wait(struct shm_ep *ep, uint64_t now)
{
	struct shm_helper *h = &ep->helper;
	uint64_t next = h->answer_next;

	for (int i = 0; i < SHM_HALF_OPEN; i++) {
		const struct shm_half_open *ho = &h->half_open[i];

		if (ho->sock < 0)
			continue;
		if (next == 0 || ho->since + SHM_HELLO_TIMEOUT_NS < next)
			next = ho->since + SHM_HELLO_TIMEOUT_NS;
	}
	if (next == 0)
		return -1;
	if (next <= now)
		return 0;
	return (int)((next - now) / 1000000 + 1);
}

/* ---- service -------------------------------------------------------------------------
 */

/* One turn for every link that may want something. Returns chunks served. */
LOCK_HELD(lock_wire) static int serve_turn(struct shm_ep *ep)
{
	int served = 0;

	list_foreach_safe (node, next, &ep->helper.serving) {
		struct shm_link *link =
			container_of(node, struct shm_link, service_rx.node);
		int n = 0;

		while (n < HELPER_CHUNKS && shm_service_serve(link))
			n++;
		served += n;
		if (n > 0)
			link->service_rx.idle = 0;
		else if (++link->service_rx.idle > HELPER_IDLE && shm_service_rest(link))
			list_remove(node);
	}
	return served;
}

/* ---- the thread ----------------------------------------------------------------------
 */

/* Returns false when the thread should sleep a moment before it looks again. */
LOCK_HELD(lock_wire)
static bool helper_event(struct shm_ep *ep, const struct epoll_event *ev)
{
	uint32_t index = (uint32_t)(ev->data.u64 >> 32) & 0xffff;
	uint32_t generation = (uint32_t)ev->data.u64;
	uint64_t count;

	switch ((enum watch_kind)(ev->data.u64 >> 56)) {
	case WATCH_KICK:
		(void)!read(ep->helper.kick_fd, &count, sizeof(count));
		return true;
	case WATCH_DOOR:
		return door_answer(ep, ep->door.listen_fd);
	case WATCH_ANY_DOOR:
		return door_answer(ep, ep->door.any_fd);
	case WATCH_HALF_OPEN:
		half_open_event(ep, index, generation, ev->events);
		return true;
	case WATCH_LINK:
		link_event(ep, index, generation, ev->events);
		return true;
	case WATCH_PROCESS:
		process_event(ep, index, generation);
		return true;
	}
	return true;
}

static void *helper_main(void *arg)
{
	const struct timespec nap = {.tv_nsec = HELPER_NAP_NS};
	struct epoll_event events[HELPER_EVENTS];
	struct shm_ep *ep = arg;
	int timeout = -1;

	while (!atomic_load(&ep->helper.stop)) {
		int n = epoll_wait(ep->helper.epoll_fd, events, HELPER_EVENTS, timeout);
		bool serving, rest = true;
		int served;

		shm_ep_lock(ep);
		for (int i = 0; i < n; i++)
			rest = helper_event(ep, &events[i]) && rest;
		served = serve_turn(ep);
		serving = !list_empty(&ep->helper.serving);
		if (!serving || n > 0) {
			uint64_t now = shm_now();

			deadlines_expire(ep, now);
			timeout = deadlines_wait(ep, now);
		}
		shm_ep_unlock(ep);
		if (serving)
			timeout = 0;
		if (serving && served == 0)
			sched_yield();
		if (!rest)
			nanosleep(&nap, NULL);
	}
	return NULL;
}

static int helper_watch_all(struct shm_ep *ep)
{
	struct shm_helper *h = &ep->helper;
	int ret;

	ret = watch_add(h, h->kick_fd, EPOLLIN, watch_data(WATCH_KICK, 0, 0));
	if (ret == 0)
		ret = watch_add(h, ep->door.listen_fd, EPOLLIN,
				watch_data(WATCH_DOOR, 0, 0));
	if (ret == 0 && ep->door.any_fd >= 0)
		ret = watch_add(h, ep->door.any_fd, EPOLLIN,
				watch_data(WATCH_ANY_DOOR, 0, 0));
	return ret;
}

/* No signal of the application is ever handled on this thread. */
static int helper_spawn(struct shm_ep *ep)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&ep->helper.thread, NULL, helper_main, ep);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0)
		pthread_setname_np(ep->helper.thread, "weft-shm");
	return err ? -FI_ENOMEM : 0;
}

int shm_helper_start(struct shm_ep *ep)
{
	struct shm_helper *h = &ep->helper;
	int ret = -FI_EMFILE;

	for (int i = 0; i < SHM_HALF_OPEN; i++)
		h->half_open[i].sock = -1;
	list_init(&h->serving);
	atomic_store(&h->stop, false);
	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (h->epoll_fd < 0)
		return ret;
	h->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->kick_fd < 0)
		goto err_epoll;
	h->spare_fd = fcntl(h->kick_fd, F_DUPFD_CLOEXEC, 0);
	if (h->spare_fd < 0)
		goto err_kick;
	ret = helper_watch_all(ep);
	if (ret == 0)
		ret = helper_spawn(ep);
	if (ret == 0)
		return 0;
	close(h->spare_fd);
err_kick:
	close(h->kick_fd);
err_epoll:
	close(h->epoll_fd);
	return ret;
}

void shm_helper_stop(struct shm_ep *ep)
{
	struct shm_helper *h = &ep->helper;

	atomic_store(&h->stop, true);
	helper_kick(h);
	pthread_join(h->thread, NULL);
	for (int i = 0; i < SHM_HALF_OPEN; i++)
		if (h->half_open[i].sock >= 0)
			half_open_drop(ep, &h->half_open[i]);
	if (h->spare_fd >= 0)
		close(h->spare_fd);
	close(h->kick_fd);
	close(h->epoll_fd);
	h->epoll_fd = -1; /* nothing is watched any more */
}
