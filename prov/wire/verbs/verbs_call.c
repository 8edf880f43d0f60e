/* SPDX-License-Identifier: BSD-2-Clause */
/* One connection: states, bytes in and out, its end. */
#include "config.h"

#include "prov/wire/verbs/verbs_call.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"

/* A host that is gone is noticed after 11 + 3 * 3 seconds. */
#define ALIVE_IDLE_S  11
#define ALIVE_EVERY_S 3
#define ALIVE_COUNT   3
#define ALIVE_MS      20000
#define LOG_EVERY_NS  UINT64_C(1000000000)
#define TURN_FRAMES   4 /* of one call in one turn */

/* ---- states -------------------------------------------------------------------------
 */

#define TO(state) (1u << (state))
static const uint32_t state_next[CALL_STATES] = {
	[CALL_CONNECTING] = TO(CALL_OPENED) | TO(CALL_GREETED) | TO(CALL_OVER),
	[CALL_OPENED] = TO(CALL_GREETED) | TO(CALL_OVER),
	[CALL_GREETED] = TO(CALL_ANSWERED) | TO(CALL_OVER),
	[CALL_ANSWERED] = TO(CALL_UP) | TO(CALL_OVER),
	[CALL_STRANGER] = TO(CALL_CHALLENGED) | TO(CALL_KNOCKED) | TO(CALL_OVER),
	[CALL_CHALLENGED] = TO(CALL_KNOCKED) | TO(CALL_OVER),
	[CALL_KNOCKED] = TO(CALL_AWAITED) | TO(CALL_OVER),
	[CALL_AWAITED] = TO(CALL_UP) | TO(CALL_OVER),
	[CALL_UP] = TO(CALL_LEAVING) | TO(CALL_OVER),
	[CALL_LEAVING] = TO(CALL_OVER),
	[CALL_OVER] = 0,
};

static bool is_stranger(enum call_state s)
{
	return s == CALL_STRANGER || s == CALL_CHALLENGED;
}

static struct list *state_list(struct verbs_door *door, enum call_state s)
{
	if (s == CALL_OVER)
		return &door->over;
	if (s == CALL_UP)
		return &door->up;
	return is_stranger(s) ? &door->strangers : &door->talking;
}

void call_state_set(struct verbs_call *call, enum call_state to)
{
	struct verbs_door *door = call->door;
	struct list *list = state_list(door, to);

	assert(state_next[call->state] & TO(to));
	door->stranger_count += is_stranger(to);
	door->stranger_count -= is_stranger(call->state);
	/* A place is free: no need to wait for one. */
	if (is_stranger(call->state) && !is_stranger(to) && door->accept_at)
		door->accept_at = door->now;
	/* All of a list were begun in its order and have the same time, but for those
	 * that come to `talking` from `strangers`: their places are looked for. */
	if (list != state_list(door, call->state)) {
		struct list *at = list->prev;

		while (list == &door->talking && at != list &&
		       container_of(at, struct verbs_call, node)->due > call->due)
			at = at->prev;
		list_remove(&call->node);
		list_insert_after(at, &call->node);
	}
	call->state = to;
}

/* ---- beginning and end --------------------------------------------------------------
 */

static void socket_options(int sock)
{
	int one = 1, idle = ALIVE_IDLE_S, every = ALIVE_EVERY_S, count = ALIVE_COUNT;
	unsigned ms = ALIVE_MS;

	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(sock, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

static uint32_t wanted_events(const struct verbs_call *call)
{
	if (call->state == CALL_CONNECTING)
		return EPOLLOUT;
	return EPOLLIN | EPOLLRDHUP | (call->writing ? EPOLLOUT : 0u);
}

static void watch_change(struct verbs_call *call)
{
	struct epoll_event ev = {.events = wanted_events(call), .data.ptr = call};

	epoll_ctl(call->door->epoll_fd, EPOLL_CTL_MOD, call->sock, &ev);
}

struct verbs_call *call_make(struct verbs_door *door, int sock, bool dialler,
			     const struct wire_addr *peer)
{
	struct verbs_call *call = calloc(1, sizeof(*call));
	struct epoll_event ev;

	if (!call || !call_talk_begin(call)) {
		free(call);
		close(sock);
		return NULL;
	}
	call->door = door;
	call->sock = sock;
	call->dialler = dialler;
	call->known = dialler;
	call->peer = *peer;
	call->since = door->now;
	call->due = door->now + door->config.timeout_ns;
	call->state = dialler ? CALL_CONNECTING : CALL_STRANGER;
	socket_options(sock);
	ev = (struct epoll_event){.events = wanted_events(call), .data.ptr = call};
	if (epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, sock, &ev) < 0) {
		call_free(call);
		return NULL;
	}
	door->stranger_count += !dialler;
	list_push_back(state_list(door, call->state), &call->node);
	return call;
}

void call_free(struct verbs_call *call)
{
	if (call->sock >= 0)
		close(call->sock);
	free(call->talk);
	free(call);
}

bool call_talk_begin(struct verbs_call *call)
{
	if (!call->talk)
		call->talk = calloc(1, sizeof(*call->talk));
	return call->talk != NULL;
}

void call_talk_end(struct verbs_call *call)
{
	if (call->state != CALL_UP || call->writing || call->in_at > VERBS_FRAME_HEAD)
		return;
	free(call->talk);
	call->talk = NULL;
}

void call_over(struct verbs_call *call, int err)
{
	if (call->state == CALL_OVER)
		return;
	call->err = err;
	call_state_set(call, CALL_OVER);
	/* First: a forked child may keep the socket open, and with it the watch. */
	epoll_ctl(call->door->epoll_fd, EPOLL_CTL_DEL, call->sock, NULL);
	close(call->sock);
	call->sock = -1;
	if (!call->door->turning)
		door_kick(call->door);
}

void call_say_end(struct verbs_call *call, enum verbs_end end)
{
	struct verbs_frame frame = {.kind = VERBS_FRAME_END, .end = end};
	uint8_t head[VERBS_FRAME_HEAD];

	/* Whatever waits to be sent comes first, or what follows is no frame. */
	if (call->state == CALL_OVER || call->state == CALL_CONNECTING ||
	    call->state == CALL_LEAVING || call->writing)
		return;
	verbs_frame_write(&frame, head);
	(void)!send(call->sock, head, sizeof(head), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void call_refuse(struct verbs_call *call, enum verbs_end end, int err)
{
	call_say_end(call, end);
	/* What it sent and nobody read would make its end a reset, which overtakes our
	 * word. */
	if (call->state != CALL_OVER) {
		uint8_t rest[4096];

		(void)!recv(call->sock, rest, sizeof(rest), MSG_DONTWAIT);
	}
	call_over(call, err);
}

void call_leave(struct verbs_call *call, enum verbs_end end, uint64_t due)
{
	call_say_end(call, end);
	shutdown(call->sock, SHUT_WR);
	call->known = false;
	call->due = due;
	call_state_set(call, CALL_LEAVING);
	free(call->talk);
	call->talk = NULL;
	call->writing = false;
	watch_change(call);
	if (!call->door->turning)
		door_kick(call->door);
}

/* Reads until the other side has closed its end. */
static void leaving_turn(struct verbs_call *call)
{
	uint8_t rest[1024];

	for (int i = 0; i < TURN_FRAMES; i++) {
		ssize_t n = recv(call->sock, rest, sizeof(rest), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			call_over(call, 0);
			return;
		}
	}
}

/* The connection ended (0), or failed. */
static void call_ended(struct verbs_call *call, int err)
{
	bool before = call->dialler && call->state < CALL_ANSWERED;
	char text[WIRE_ADDR_TEXT_MAX];

	FI_INFO(&weft_provider, FI_LOG_EP_CTRL, "connection with the door of %s: %s\n",
		wire_addr_text(&call->peer, text),
		err ? strerror(err) : "ended by the other side");
	call_over(call, before ? -FI_ECONNREFUSED : -FI_ECONNRESET);
}

/* ---- out ----------------------------------------------------------------------------
 */

static void call_flush(struct verbs_call *call)
{
	struct call_talk *t = call->talk;
	bool was = call->writing;

	while (t && t->out_at < t->out_len) {
		ssize_t n = send(call->sock, t->out + t->out_at,
				 (size_t)(t->out_len - t->out_at),
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
			break;
		if (n < 0) {
			call_ended(call, errno);
			return;
		}
		t->out_at = (uint16_t)(t->out_at + n);
	}
	call->writing = t && t->out_at < t->out_len;
	if (call->writing != was)
		watch_change(call);
	if (!call->writing && t)
		t->out_at = t->out_len = 0;
}

void call_send(struct verbs_call *call, struct verbs_frame *frame, const void *body,
	       size_t len)
{
	struct call_talk *t = call->talk;

	if (call->state == CALL_OVER)
		return;
	if (!t || VERBS_FRAME_HEAD + len > sizeof(t->out) - t->out_len) {
		call_over(call, -FI_ECONNRESET);
		return;
	}
	frame->len = (uint16_t)len;
	verbs_frame_write(frame, t->out + t->out_len);
	if (len)
		memcpy(t->out + t->out_len + VERBS_FRAME_HEAD, body, len);
	t->out_len = (uint16_t)(t->out_len + VERBS_FRAME_HEAD + len);
	call_flush(call);
}

/* ---- in -----------------------------------------------------------------------------
 */

/* Reads up to `want` bytes of head and body; false: they are not all there. */
static bool bytes_take(struct verbs_call *call, uint8_t *to, size_t want)
{
	while (call->in_at < want) {
		size_t skip = to == call->head ? 0 : VERBS_FRAME_HEAD;
		ssize_t n = recv(call->sock, to + (call->in_at - skip),
				 want - call->in_at, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			call_ended(call, n < 0 ? errno : 0);
			return false;
		}
		call->in_at = (uint16_t)(call->in_at + n);
	}
	return true;
}

/* A first frame that means another context goes to its door. True: it went. */
static bool call_pass(struct verbs_call *call, uint16_t context)
{
	struct verbs_door *door = call->door;
	struct verbs_passed what = {.from = call->peer};

	if (call->state != CALL_STRANGER || context == door->addr.context)
		return false;
	memcpy(what.head, call->head, sizeof(what.head));
	what.sock = dup(call->sock);
	if (what.sock < 0 || !verbs_listen_pass(door->listener, context, &what)) {
		if (what.sock >= 0)
			close(what.sock);
		call_refuse(call, VERBS_END_LATER, -FI_ECONNREFUSED);
		return true;
	}
	call_over(call, 0);
	return true;
}

static void not_a_frame(struct verbs_call *call, enum verbs_frame_error why)
{
	if (why == VERBS_FRAME_VERSION) {
		door_log(call, "its version of Weft is another one");
		call_refuse(call, VERBS_END_VERSION, -FI_EHOSTUNREACH);
		return;
	}
	door_log(call, "it doesn't speak Weft's language");
	call_over(call, call->dialler ? -FI_EHOSTUNREACH : -FI_ECONNRESET);
}

/* One frame; false: there is none now. */
static bool call_take(struct verbs_call *call)
{
	enum verbs_frame_error why;
	struct verbs_frame frame;

	if (call->in_at < VERBS_FRAME_HEAD &&
	    !bytes_take(call, call->head, VERBS_FRAME_HEAD))
		return false;
	why = verbs_frame_read(call->head, &frame);
	if (why != VERBS_FRAME_OK) {
		not_a_frame(call, why);
		return false;
	}
	if (frame.len && !call_talk_begin(call)) {
		call_over(call, -FI_ECONNRESET);
		return false;
	}
	if (frame.kind != VERBS_FRAME_END && call_pass(call, frame.context))
		return false;
	if (frame.len && !bytes_take(call, call->talk->in, VERBS_FRAME_HEAD + frame.len))
		return false;
	call->in_at = 0;
	call_frame(call, &frame, call->talk ? call->talk->in : NULL);
	return call->state != CALL_OVER;
}

/* ---- turns --------------------------------------------------------------------------
 */

static int connect_error(int err)
{
	switch (err) {
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case EACCES:
	case EPERM:
		return -FI_EHOSTUNREACH;
	default:
		return -FI_ECONNREFUSED;
	}
}

/* A port that nobody listens at, from which the kernel happened to dial: that is us. */
static bool is_own_end(int sock)
{
	struct sockaddr_in6 a, b;
	socklen_t alen = sizeof(a), blen = sizeof(b);

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	return getsockname(sock, (struct sockaddr *)&a, &alen) == 0 &&
	       getpeername(sock, (struct sockaddr *)&b, &blen) == 0 && alen == blen &&
	       memcmp(&a, &b, alen) == 0;
}

static void call_connected(struct verbs_call *call)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(call->sock, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err || is_own_end(call->sock)) {
		call_over(call, connect_error(err));
		return;
	}
	call_begin(call);
	if (call->state != CALL_OVER)
		watch_change(call);
}

void call_give_head(struct verbs_call *call, const uint8_t head[VERBS_FRAME_HEAD])
{
	memcpy(call->head, head, VERBS_FRAME_HEAD);
	call->in_at = VERBS_FRAME_HEAD;
}

void call_turn(struct verbs_call *call, uint32_t events)
{
	if (call->state == CALL_OVER)
		return;
	if (call->state == CALL_CONNECTING) {
		call_connected(call);
		return;
	}
	if (call->state == CALL_LEAVING) {
		leaving_turn(call);
		return;
	}
	if (call->writing)
		call_flush(call);
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		for (int i = 0; i < TURN_FRAMES && call->state != CALL_OVER; i++)
			if (!call_take(call))
				break;
	call_talk_end(call);
}

/* ---- words --------------------------------------------------------------------------
 */

void door_log(const struct verbs_call *call, const char *fmt, ...)
{
	char text[256], own[WIRE_ADDR_TEXT_MAX], peer[WIRE_ADDR_TEXT_MAX];
	struct verbs_door *door = call->door;
	va_list ap;

	if (door->logged && door->now - door->logged < LOG_EVERY_NS)
		return;
	door->logged = door->now;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "door %s: %s %s: %s\n",
		wire_addr_text(&door->addr, own),
		call->dialler ? "dialling" : "a connection from",
		wire_addr_text(&call->peer, peer), text);
}
