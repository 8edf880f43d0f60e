/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: sockets with abstract names, which leave nothing behind. */
#include "config.h"

#include "fabtests/emuverbs/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabtests/emuverbs/host.h"
#include "fabtests/emuverbs/req.h"
#include "fabtests/emuverbs/rsp.h"

#define SOCKET_BYTES (1 << 20)
/* Packets in a row from one connection, before others have their turn. */
#define TAKE	   64
#define PIECES_MAX 260

struct waiting {
	struct list node;
	struct emu_packet packet;
};

/* Of the thread and of whoever holds the lock. */
static struct {
	struct emu_packet packet;
	uint8_t payload[EMU_CHUNK];
} incoming;

static struct emu_conn *conn_new(int fd, unsigned slot, bool asks)
{
	struct emu_conn *c = calloc(1, sizeof(*c));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	int bytes = SOCKET_BYTES;

	if (!c || epoll_ctl(emu.epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
		free(c);
		close(fd);
		return NULL;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	c->fd = fd;
	c->slot = slot;
	c->asks = asks;
	list_init(&c->out);
	list_init(&c->rsps);
	list_init(&c->reqs);
	list_push_back(&emu.conns, &c->node);
	return c;
}

struct emu_conn *emu_conn_get(unsigned slot)
{
	struct sockaddr_un name;
	socklen_t len;
	int fd;

	list_foreach (pos, &emu.conns) {
		struct emu_conn *c = container_of(pos, struct emu_conn, node);

		if (c->asks && c->slot == slot && !c->dead)
			return c;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	len = emu_host_name(slot, &name);
	if (connect(fd, (struct sockaddr *)&name, len) != 0) {
		close(fd);
		return NULL;
	}
	return conn_new(fd, slot, true);
}

/* Only who is the same user. */
void emu_conn_accept(void)
{
	int fd;

	while ((fd = accept4(emu.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
	       0) {
		struct ucred peer;
		socklen_t len = sizeof(peer);

		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
		    peer.uid != geteuid())
			close(fd);
		else
			conn_new(fd, EMU_SLOTS, false);
	}
	/* Whoever waits at the door is heard when there are descriptors again; not to
	 * look for them all the time. */
	if (errno == EMFILE || errno == ENFILE)
		usleep(1000);
}

static void conn_end(struct emu_conn *c)
{
	struct list *node;

	if (c->dead)
		return;
	c->dead = true;
	/* Also where a child still has the socket, no news of it may come any more. */
	epoll_ctl(emu.epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	list_remove(&c->node);
	list_push_back(&emu.dead, &c->node);
	while ((node = list_pop_front(&c->out)))
		free(container_of(node, struct waiting, node));
	while (list_pop_front(&c->rsps) || list_pop_front(&c->reqs))
		;
	emu_req_lost(c);
	emu_rsp_lost(c);
}

/* Of connections that ended: when no event of the thread can name them any more. */
void emu_conn_bury(void)
{
	struct list *node;

	while ((node = list_pop_front(&emu.dead)))
		free(container_of(node, struct emu_conn, node));
}

void emu_conn_forget(void)
{
	list_foreach (pos, &emu.conns) {
		struct emu_conn *c = container_of(pos, struct emu_conn, node);

		/* It stays for what was made with it; nothing new is sent on it. */
		close(c->fd);
		c->fd = -1;
		c->dead = true;
	}
}

static void conn_block(struct emu_conn *c, bool blocked)
{
	struct epoll_event ev = {.events = EPOLLIN | (blocked ? EPOLLOUT : 0u),
				 .data.ptr = c};

	if (c->blocked == blocked)
		return;
	c->blocked = blocked;
	epoll_ctl(emu.epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
}

enum emu_sent emu_conn_send(struct emu_conn *c, const struct emu_packet *p,
			    const struct iovec *iov, unsigned pieces)
{
	struct iovec all[PIECES_MAX];
	struct msghdr m = {.msg_iov = all, .msg_iovlen = pieces + 1};

	if (pieces >= PIECES_MAX)
		return EMU_SENT_FAULT;
	all[0] = (struct iovec){(void *)p, sizeof(*p)};
	for (unsigned i = 0; i < pieces; i++)
		all[i + 1] = iov[i];
	if (sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return EMU_SENT_MORE;
	if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
		return EMU_SENT_BLOCKED;
	return errno == EFAULT ? EMU_SENT_FAULT : EMU_SENT_DEAD;
}

void emu_conn_say(struct emu_conn *c, const struct emu_packet *p)
{
	struct waiting *w;

	if (c->dead)
		return;
	if (list_empty(&c->out) && emu_conn_send(c, p, NULL, 0) == EMU_SENT_MORE)
		return;
	w = malloc(sizeof(*w));
	if (!w)
		emu_host_fail("out of memory");
	w->packet = *p;
	list_push_back(&c->out, &w->node);
	conn_block(c, true);
}

static enum emu_sent out_one(struct emu_conn *c)
{
	struct waiting *w = container_of(c->out.next, struct waiting, node);
	enum emu_sent sent = emu_conn_send(c, &w->packet, NULL, 0);

	if (sent == EMU_SENT_MORE) {
		list_remove(&w->node);
		free(w);
	}
	return sent;
}

/* One packet of the first of a list, which goes behind the others. */
static enum emu_sent turn(struct list *queue, enum emu_sent (*emit)(struct list *node))
{
	struct list *node = queue->next;
	enum emu_sent sent = emit(node);

	if (sent != EMU_SENT_MORE && sent != EMU_SENT_IDLE)
		return sent;
	/* What was said may have ended the queue pair, which takes itself off. */
	if (!list_empty(node)) {
		list_remove(node);
		if (sent == EMU_SENT_MORE)
			list_push_back(queue, node);
	}
	return EMU_SENT_MORE;
}

void emu_conn_pump(struct emu_conn *c)
{
	while (!c->dead) {
		enum emu_sent sent;

		if (!list_empty(&c->out))
			sent = out_one(c);
		else if (!list_empty(&c->rsps))
			sent = turn(&c->rsps, emu_rsp_emit);
		else if (!list_empty(&c->reqs))
			sent = turn(&c->reqs, emu_req_emit);
		else {
			conn_block(c, false);
			return;
		}
		if (sent == EMU_SENT_BLOCKED) {
			conn_block(c, true);
			return;
		}
		if (sent == EMU_SENT_DEAD)
			conn_end(c);
	}
}

static void conn_packet(struct emu_conn *c, size_t len)
{
	const struct emu_packet *p = &incoming.packet;

	if (!emu_packet_valid(p, len) || emu_kind_request(p->kind) == c->asks) {
		fprintf(stderr,
			"emuverbs: %zu bytes that are no packet came in; the "
			"connection is closed\n",
			len);
		conn_end(c);
	} else if (c->asks) {
		emu_req_answer(c, p, incoming.payload);
	} else {
		emu_rsp_request(c, p, incoming.payload);
	}
}

void emu_conn_take(struct emu_conn *c)
{
	for (unsigned i = 0; i < TAKE && !c->dead; i++) {
		ssize_t n = recv(c->fd, &incoming, sizeof(incoming), MSG_DONTWAIT);

		if (n > 0)
			conn_packet(c, (size_t)n);
		else if (n == 0)
			conn_end(c);
		else if (errno == EAGAIN)
			break;
		/* A peer that left with packets unread says so once; what it sent
		 * before comes still, and then the end. */
		else if (errno != ECONNRESET && errno != EINTR)
			conn_end(c);
	}
	if (!c->dead)
		emu_conn_pump(c);
}
