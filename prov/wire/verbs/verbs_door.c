/* SPDX-License-Identifier: BSD-2-Clause */
/* The door: accepting, dialling, deadlines, telling the wire. */
#include "config.h"

#include "prov/wire/verbs/verbs_door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/verbs_call.h"

#define DOOR_TIMEOUT_NS UINT64_C(10000000000)
#define DOOR_STRANGERS	64
#define DOOR_EVENTS	64 /* of one look at the descriptor */
#define DOOR_ACCEPTS	32 /* of one turn */
/* When all places are taken, who has said nothing for so long makes room. */
#define DOOR_PATIENCE_NS UINT64_C(250000000)
/* Out of descriptors: others may give some back. */
#define DOOR_PAUSE_NS UINT64_C(100000000)

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct verbs_call *call_of(struct list *node)
{
	return container_of(node, struct verbs_call, node);
}

/* ---- opening and closing ------------------------------------------------------------
 */

static void list_fork_close(struct list *list)
{
	for (struct list *at = list->next; at != list; at = at->next)
		mem_fork_close(&call_of(at)->sock);
}

/* In a forked child: the connections are its parent's, and must end with it. */
static void door_child(struct mem_fork *f)
{
	struct verbs_door *door = container_of(f, struct verbs_door, fork);

	list_fork_close(&door->strangers);
	list_fork_close(&door->talking);
	list_fork_close(&door->up);
	mem_fork_close(&door->inbox.fd);
	mem_fork_close(&door->epoll_fd);
}

static int watch_add(struct verbs_door *door, int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -FI_ENOMEM;
}

static int door_start(struct verbs_door *door)
{
	bool any = door->config.any || !wire_addr_has_host(&door->addr);
	int rc;

	door->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	door->inbox.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (door->epoll_fd < 0 || door->inbox.fd < 0)
		return errno == ENOMEM ? -FI_ENOMEM : -FI_EMFILE;
	rc = verbs_listen_open(&door->addr, any, &door->inbox, &door->listener);
	if (rc)
		return rc;
	rc = watch_add(door, door->inbox.fd, &door->inbox);
	if (!rc)
		rc = watch_add(door, verbs_listen_fd(door->listener), &door->listener);
	return rc;
}

int verbs_door_open(const struct verbs_door_config *config, struct verbs_door **out)
{
	struct verbs_door *door = calloc(1, sizeof(*door));
	int rc;

	if (!door)
		return -FI_ENOMEM;
	door->config = *config;
	if (!config->timeout_ns)
		door->config.timeout_ns = DOOR_TIMEOUT_NS;
	if (!config->half_open)
		door->config.half_open = DOOR_STRANGERS;
	door->addr = config->addr;
	door->now = clock_ns();
	list_init(&door->strangers);
	list_init(&door->talking);
	list_init(&door->up);
	list_init(&door->over);
	list_init(&door->inbox.node);
	rc = door_start(door);
	if (rc) {
		verbs_door_close(door);
		return rc;
	}
	if (config->mutex) {
		door->fork =
			(struct mem_fork){.lock = config->mutex, .child = door_child};
		mem_fork_enter(&door->fork);
	}
	*out = door;
	return 0;
}

static void list_end(struct list *list)
{
	while (!list_empty(list)) {
		struct verbs_call *call = call_of(list->next);

		call_refuse(call, VERBS_END_CLOSED, -FI_ESHUTDOWN);
	}
}

void verbs_door_close(struct verbs_door *door)
{
	if (door->fork.child)
		mem_fork_leave(&door->fork);
	list_end(&door->strangers);
	list_end(&door->talking);
	list_end(&door->up);
	while (!list_empty(&door->over)) {
		struct verbs_call *call = call_of(door->over.next);

		list_remove(&call->node);
		call_free(call);
	}
	if (door->listener)
		verbs_listen_close(door->listener, &door->inbox);
	if (door->inbox.fd >= 0)
		close(door->inbox.fd);
	if (door->epoll_fd >= 0)
		close(door->epoll_fd);
	free(door);
}

const struct wire_addr *verbs_door_addr(const struct verbs_door *door)
{
	return &door->addr;
}

int verbs_door_fd(const struct verbs_door *door)
{
	return door->epoll_fd;
}

void door_kick(struct verbs_door *door)
{
	uint64_t one = 1;

	(void)!write(door->inbox.fd, &one, sizeof(one));
}

/* ---- accepting ----------------------------------------------------------------------
 */

static void accept_watch(struct verbs_door *door, bool on)
{
	struct epoll_event ev = {.events = on ? EPOLLIN : 0u,
				 .data.ptr = &door->listener};

	epoll_ctl(door->epoll_fd, EPOLL_CTL_MOD, verbs_listen_fd(door->listener), &ev);
}

static void accept_pause(struct verbs_door *door, uint64_t until)
{
	door->accept_at = until;
	accept_watch(door, false);
}

/* A place for one more stranger; false: not before door->accept_at. */
static bool stranger_place(struct verbs_door *door)
{
	struct verbs_call *oldest;

	if (door->stranger_count < door->config.half_open)
		return true;
	oldest = call_of(door->strangers.next);
	if (door->now - oldest->since < DOOR_PATIENCE_NS) {
		accept_pause(door, oldest->since + DOOR_PATIENCE_NS);
		return false;
	}
	door_log(oldest, "it said nothing for long, and others are waiting");
	call_over(oldest, -FI_ECONNRESET);
	return true;
}

static void door_accept(struct verbs_door *door)
{
	for (int i = 0; i < DOOR_ACCEPTS && stranger_place(door); i++) {
		struct wire_addr from;
		socklen_t len = sizeof(from.in6);
		int sock;

		memset(&from, 0, sizeof(from));
		sock = accept4(verbs_listen_fd(door->listener), &from.sa, &len,
			       SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0) {
			call_make(door, sock, false, &from);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS)
			accept_pause(door, door->now + DOOR_PAUSE_NS);
		/* One that is gone already is no reason not to take the next. */
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

static void accept_again(struct verbs_door *door)
{
	if (!door->accept_at || door->now < door->accept_at)
		return;
	door->accept_at = 0;
	accept_watch(door, true);
	door_accept(door);
}

static void inbox_take(struct verbs_door *door)
{
	struct verbs_passed *p;
	uint64_t count;

	(void)!read(door->inbox.fd, &count, sizeof(count));
	while ((p = verbs_listen_take(&door->inbox))) {
		struct verbs_call *call = call_make(door, p->sock, false, &p->from);

		if (call) {
			call_give_head(call, p->head);
			call_turn(call, EPOLLIN);
		}
		free(p);
	}
}

/* ---- dialling -----------------------------------------------------------------------
 */

static int dial_error(int err)
{
	if (err == EMFILE || err == ENFILE)
		return -FI_EMFILE;
	if (err == ENOMEM || err == ENOBUFS)
		return -FI_ENOMEM;
	return err == ENETUNREACH || err == EHOSTUNREACH || err == EACCES ||
			       err == EPERM || err == EAFNOSUPPORT
		       ? -FI_EHOSTUNREACH
		       : -FI_ECONNREFUSED;
}

int verbs_door_dial(struct verbs_door *door, const struct wire_addr *to,
		    const struct verbs_card *card, void *arg, struct verbs_call **out)
{
	struct verbs_call *call;
	struct call_talk *t;
	int sock;

	sock = socket(to->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return dial_error(errno);
	if (connect(sock, &to->sa, wire_addr_len(to)) < 0 && errno != EINPROGRESS) {
		int rc = dial_error(errno);

		close(sock);
		return rc;
	}
	door->now = clock_ns();
	call = call_make(door, sock, true, to);
	if (!call)
		return -FI_ENOMEM;
	t = call->talk;
	call->arg = arg;
	t->context = to->context;
	t->card[CALL_DIALLER] = *card;
	t->len[CALL_DIALLER] = (uint16_t)verbs_card_write(card, t->bytes[CALL_DIALLER]);
	if (!t->len[CALL_DIALLER]) {
		verbs_call_drop(call, 0);
		return -FI_EINVAL;
	}
	if (!door->turning)
		door_kick(door); /* whoever sleeps has a deadline more */
	*out = call;
	return 0;
}

/* ---- what the wire does with a call -------------------------------------------------
 */

static enum verbs_end end_of_error(int err)
{
	switch (err) {
	case -FI_EACCES:
		return VERBS_END_KEY;
	case -FI_EHOSTUNREACH:
		return VERBS_END_CANT;
	case 0:
	case -FI_ESHUTDOWN:
		return VERBS_END_CLOSED;
	default:
		return VERBS_END_LATER;
	}
}

void verbs_call_drop(struct verbs_call *call, int err)
{
	struct verbs_door *door = call->door;

	call->known = false;
	if (err == -FI_ECONNRESET)
		call_over(call, err);
	else if (call->state == CALL_UP)
		call_leave(call, end_of_error(err), clock_ns() + door->config.timeout_ns);
	else
		call_refuse(call, end_of_error(err), err);
	if (door->turning || call->state == CALL_LEAVING)
		return; /* its turn may go on, or it is the door's */
	list_remove(&call->node);
	call_free(call);
}

void verbs_call_set_arg(struct verbs_call *call, void *arg)
{
	call->arg = arg;
}

void door_event(struct verbs_call *call, enum verbs_door_event_kind kind,
		const struct verbs_card *card, const struct verbs_terms *terms)
{
	struct verbs_door_event ev = {
		.kind = kind,
		.call = call,
		.arg = call->arg,
		.card = card,
		.terms = terms,
		.err = kind == VERBS_CALL_DOWN ? call->err : 0,
	};

	call->door->events++;
	call->door->config.event(call->door->config.arg, &ev);
}

void door_word(struct verbs_call *call, const uint8_t *word, size_t len)
{
	const struct verbs_door_event ev = {.kind = VERBS_CALL_WORD,
					    .call = call,
					    .arg = call->arg,
					    .word = word,
					    .word_len = len};

	call->door->events++;
	call->door->config.event(call->door->config.arg, &ev);
}

/* ---- turns --------------------------------------------------------------------------
 */

static void deadlines(struct verbs_door *door, struct list *list)
{
	while (!list_empty(list)) {
		struct verbs_call *call = call_of(list->next);

		if (call->due > door->now)
			return;
		call_refuse(call, VERBS_END_LATER,
			    call->dialler ? -FI_ECONNREFUSED : -FI_ECONNRESET);
	}
}

static void over_report(struct verbs_door *door)
{
	while (!list_empty(&door->over)) {
		struct verbs_call *call = call_of(door->over.next);

		list_remove(&call->node);
		if (call->known)
			door_event(call, VERBS_CALL_DOWN, NULL, NULL);
		call_free(call);
	}
}

uint64_t verbs_door_due(const struct verbs_door *door)
{
	uint64_t due = door->accept_at ? door->accept_at : UINT64_MAX;

	if (!list_empty(&door->over))
		return 0;
	if (!list_empty(&door->strangers) && call_of(door->strangers.next)->due < due)
		due = call_of(door->strangers.next)->due;
	if (!list_empty(&door->talking) && call_of(door->talking.next)->due < due)
		due = call_of(door->talking.next)->due;
	return due;
}

int verbs_door_progress(struct verbs_door *door, uint64_t now_ns)
{
	struct epoll_event ev[DOOR_EVENTS];
	int n = epoll_wait(door->epoll_fd, ev, DOOR_EVENTS, 0);

	door->now = now_ns;
	door->events = 0;
	door->turning = true;
	for (int i = 0; i < n; i++) {
		if (ev[i].data.ptr == &door->listener)
			door_accept(door);
		else if (ev[i].data.ptr == &door->inbox)
			inbox_take(door);
		else
			call_turn(ev[i].data.ptr, ev[i].events);
	}
	accept_again(door);
	deadlines(door, &door->strangers);
	deadlines(door, &door->talking);
	over_report(door);
	door->turning = false;
	/* One that ended while it was reported, which is no turn of its own. */
	if (!list_empty(&door->over))
		door_kick(door);
	return (int)door->events;
}
