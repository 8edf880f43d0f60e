/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer's state machine: dialling, back-off, links that come and go. The table itself is
 * in table.c. */
#include "config.h"

#include "prov/peer/peer.h"

#include <assert.h>

#include <rdma/fi_errno.h>

#define PEER_BACKOFF_FIRST (1000 * 1000ULL)	  /* ns */
#define PEER_BACKOFF_MAX   (200 * 1000 * 1000ULL) /* ns */

static const char *const state_names[] = {
	[PEER_IDLE] = "idle", [PEER_DIALLING] = "dialling", [PEER_WAITING] = "waiting",
	[PEER_UP] = "up",     [PEER_ENDING] = "ending",	    [PEER_DOWN] = "down",
};
_Static_assert(sizeof(state_names) / sizeof(state_names[0]) == PEER_STATES, "names");

#define TO(state) (1u << (state))
static const uint32_t state_next[PEER_STATES] = {
	[PEER_IDLE] = TO(PEER_DIALLING) | TO(PEER_WAITING) | TO(PEER_UP) | TO(PEER_DOWN),
	[PEER_DIALLING] = TO(PEER_WAITING) | TO(PEER_UP) | TO(PEER_DOWN),
	[PEER_WAITING] =
		TO(PEER_DIALLING) | TO(PEER_WAITING) | TO(PEER_UP) | TO(PEER_DOWN),
	[PEER_UP] = TO(PEER_ENDING) | TO(PEER_DOWN),
	[PEER_ENDING] = TO(PEER_DOWN),
	[PEER_DOWN] = TO(PEER_DIALLING) | TO(PEER_WAITING) | TO(PEER_UP) | TO(PEER_DOWN),
};

const char *peer_state_name(enum peer_state s)
{
	return s < PEER_STATES ? state_names[s] : "?";
}

/* The only writer of p->state. */
static void set_state(struct peer_table *t, struct peer *p, enum peer_state to)
{
	assert(state_next[p->state] & TO(to));
	p->state = to;
	t->transitions[to]++;
	list_remove(&p->timed);
	if (to == PEER_DIALLING || to == PEER_WAITING || to == PEER_ENDING) {
		list_push_back(&t->timed, &p->timed);
		t->chores = true;
	}
}

static uint64_t table_random(struct peer_table *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random;
}

/* Half of the step is certain, half is chance, so that peers that were refused together
 * don't come back together. */
static uint64_t backoff(struct peer_table *t, uint32_t attempt)
{
	uint64_t step = PEER_BACKOFF_FIRST << (attempt < 16 ? attempt : 16);

	if (step > PEER_BACKOFF_MAX) {
		step = PEER_BACKOFF_MAX;
	}
	return step / 2 + table_random(t) % (step / 2 + 1);
}

/* Nobody there yet, or short of something: may be better in a moment. */
static bool worth_retrying(int err)
{
	return err == -FI_ECONNREFUSED || err == -FI_EAGAIN || err == -FI_ECONNRESET ||
	       err == -FI_ESHUTDOWN || err == -FI_ENOMEM || err == -EMFILE;
}

static void dial_failed(struct peer_table *t, struct peer *p, int err)
{
	uint64_t now = t->ops->now(t->arg);

	if (worth_retrying(err) && now < p->deadline) {
		p->due = now + backoff(t, p->attempt++);
		if (p->due > p->deadline) {
			p->due = p->deadline;
		}
		set_state(t, p, PEER_WAITING);
		return;
	}
	set_state(t, p, PEER_DOWN);
	t->ops->down(t->arg, p, err);
}

static void dial(struct peer_table *t, struct peer *p)
{
	struct wire_link *link = NULL;
	int ret = t->wire->dial(t->wep, &p->addr, p, &link);

	if (ret) {
		dial_failed(t, p, ret);
		return;
	}
	p->dialled = link;
	p->due = p->deadline;
	set_state(t, p, PEER_DIALLING);
}

void peer_connect(struct peer_table *t, struct peer *p)
{
	if (p->state != PEER_IDLE && p->state != PEER_DOWN) {
		return;
	}
	p->attempt = 0;
	p->deadline = t->ops->now(t->arg) + t->connect_timeout;
	if (p->dialled) { /* from an attempt that an accepted link overtook */
		p->due = p->deadline;
		set_state(t, p, PEER_DIALLING);
		return;
	}
	dial(t, p);
}

/* A link that nobody may use any more; hung up outside of upcalls. */
static void doom(struct peer_table *t, struct wire_link *link)
{
	wire_link_base(link)->peer_ctx = NULL;
	wire_link_base(link)->doomed = t->doomed;
	t->doomed = link;
	t->doomed_count++;
	t->chores = true;
}

/* If it is one. */
static void doom_forget(struct peer_table *t, const struct wire_link *link)
{
	for (struct wire_link **at = &t->doomed; *at; at = &wire_link_base(*at)->doomed) {
		if (*at == link) {
			*at = wire_link_base(*at)->doomed;
			t->doomed_count--;
			return;
		}
	}
}

/* Of the epoch that runs. */
static void extra_add(struct peer_table *t, struct peer *p, struct wire_link *link)
{
	for (int i = 0; i < PEER_EXTRA_LINKS; i++) {
		if (!p->extra[i]) {
			p->extra[i] = link;
			p->extra_epoch[i] = p->epoch;
			return;
		}
	}
	doom(t, link);
}

bool peer_link_is_current(const struct peer *p, const struct wire_link *link)
{
	if (p->state != PEER_UP && p->state != PEER_ENDING) {
		return false;
	}
	for (int i = 0; i < PEER_EXTRA_LINKS; i++) {
		if (p->extra[i] == link) {
			return p->extra_epoch[i] == p->epoch;
		}
	}
	return p->link == link;
}

/* Takes a link of the epoch out of those beside p->link; NULL: there is none. */
static struct wire_link *extra_take(struct peer *p)
{
	for (int i = 0; i < PEER_EXTRA_LINKS; i++) {
		struct wire_link *link = p->extra[i];

		if (link && p->extra_epoch[i] == p->epoch) {
			p->extra[i] = NULL;
			return link;
		}
	}
	return NULL;
}

/* The transmit link, if it lives, becomes one that is only listened to: what the peer had
 * sent on it before it went away was sent. */
static void epoch_end(struct peer_table *t, struct peer *p, struct wire_link *leftover,
		      int err)
{
	if (leftover) {
		extra_add(t, p, leftover);
	}
	p->link = NULL;
	set_state(t, p, PEER_DOWN);
	t->ops->down(t->arg, p, err);
}

/* The end of one link is the end of the peer, or of our trust in it, but what it sent on
 * its other links came before that: the answer that completes an operation may still lie
 * there. So they are read to their end first. */
static void epoch_ending(struct peer_table *t, struct peer *p, int err)
{
	p->end_err = err;
	p->due = t->ops->now(t->arg) + PEER_ENDING_MAX;
	set_state(t, p, PEER_ENDING);
	t->ops->ending(t->arg, p);
}

/* The rest of an ending epoch lives too long: a peer that broke one link only. */
static void epoch_cut(struct peer_table *t, struct peer *p)
{
	do {
		doom(t, p->link);
		p->link = extra_take(p);
	} while (p->link);
	epoch_end(t, p, NULL, p->end_err);
}

void peer_link_up(struct peer_table *t, struct wire_link *link)
{
	struct wire_link_base *b = wire_link_base(link);
	struct peer *p = b->peer_ctx;

	if (p) {
		p->dialled = NULL;
	} else {
		p = peer_get(t, &b->peer);
		if (!p) {
			doom(t, link);
			return;
		}
		b->peer_ctx = p;
	}
	if ((p->state == PEER_UP || p->state == PEER_ENDING) &&
	    p->incarnation == b->peer_incarnation) {
		extra_add(t, p, link);
		return;
	}
	if (p->state == PEER_UP || p->state == PEER_ENDING) { /* it came back */
		epoch_end(t, p, p->link, -FI_ECONNRESET);
	}
	p->link = link;
	p->incarnation = b->peer_incarnation;
	p->epoch++;
	set_state(t, p, PEER_UP);
	t->ops->up(t->arg, p);
}

/* at_once: the peer can't be trusted, so what it sent elsewhere doesn't matter. */
static void link_gone(struct peer_table *t, struct wire_link *link, int err, bool at_once)
{
	struct peer *p = wire_link_base(link)->peer_ctx;
	bool current;

	if (!p) {
		doom_forget(t, link);
		return;
	}
	if (link == p->dialled) {
		p->dialled = NULL;
		if (p->state == PEER_DIALLING) {
			dial_failed(t, p, err);
		}
		return;
	}
	current = peer_link_is_current(p, link);
	for (int i = 0; i < PEER_EXTRA_LINKS; i++) {
		if (p->extra[i] == link) {
			p->extra[i] = NULL;
		}
	}
	if (!current) {
		return;
	}
	if (link == p->link) {
		p->link = extra_take(p);
	}
	if (at_once || !p->link) {
		epoch_end(t, p, p->link, p->state == PEER_ENDING ? p->end_err : err);
	} else if (p->state == PEER_UP) {
		epoch_ending(t, p, err);
	}
}

void peer_link_down(struct peer_table *t, struct wire_link *link, int err)
{
	link_gone(t, link, err, false);
}

void peer_drop(struct peer_table *t, struct wire_link *link, int err)
{
	link_gone(t, link, err, true);
	doom(t, link);
}

static void poll_peer(struct peer_table *t, struct peer *p)
{
	if (p->state == PEER_WAITING) {
		if (p->due >= p->deadline) {
			set_state(t, p, PEER_DOWN);
			t->ops->down(t->arg, p, -FI_ECONNREFUSED);
		} else {
			dial(t, p);
		}
		return;
	}
	if (p->state == PEER_ENDING) {
		epoch_cut(t, p);
		return;
	}
	/* DIALLING, and no answer until the deadline. */
	wire_link_base(p->dialled)->ops->hangup(p->dialled);
	p->dialled = NULL;
	set_state(t, p, PEER_DOWN);
	t->ops->down(t->arg, p, -FI_ETIMEDOUT);
}

static int poll_timed(struct peer_table *t)
{
	uint64_t now = t->ops->now(t->arg);
	int done = 0;

	list_foreach_safe (n, next, &t->timed) {
		struct peer *p = container_of(n, struct peer, timed);

		if (p->due <= now) {
			poll_peer(t, p);
			done++;
		}
	}
	return done;
}

int peer_table_progress(struct peer_table *t)
{
	int done = 0;

	while (t->doomed) {
		struct wire_link *link = t->doomed;

		doom_forget(t, link);
		wire_link_base(link)->ops->hangup(link);
		t->ops->hung_up(t->arg, link);
		done++;
	}
	if (!list_empty(&t->timed)) {
		done += poll_timed(t);
	}
	t->chores = t->doomed || !list_empty(&t->timed);
	return done;
}

uint64_t peer_table_due(const struct peer_table *t)
{
	uint64_t due = t->doomed ? 0 : UINT64_MAX;

	list_foreach (n, &t->timed) {
		const struct peer *p = container_of(n, struct peer, timed);

		if (p->due < due) {
			due = p->due;
		}
	}
	return due;
}
