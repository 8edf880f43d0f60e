/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "prov/dqplb/tests/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prov/dqplb/rx_int.h"
#include "prov/dqplb/tx_quick.h"

enum { FLYING_MAX = 64, CTL_MAX = 8192, PIECES_MAX = 96, MSG_MAX = 1200 };

/* The cookie of what is quick, and the sender's own: with the transfer's number. */
#define QUICK (UINT64_C(1) << 62)

/* A transfer, as both ends and an onlooker see it. */
struct deal {
	struct dqplb_xfer x;
	uint32_t pieces;
	uint32_t landed[PIECES_MAX]; /* how often each was written */
	uint32_t in_queues;	     /* segments that the sender's lanes may read */
	bool live;		     /* started */
	bool finished;
	bool raised;
	bool at_fault; /* one of its segments got an error, or it was cancelled */
	uint64_t order;
};

struct flying {
	struct dqplb_post post;
	uint32_t deal;
	bool landed;
};

struct arrived {
	uint32_t imm;
	uint32_t len;
};

/* One queue pair, with both ends. */
struct lane {
	uint32_t incarnation;
	uint32_t queue;
	uint32_t rail;
	bool dead;	 /* new postings go nowhere */
	bool tx_drained; /* the sender is through with it */
	bool stopped;	 /* nothing lands at the receiver any more, whose queue it has to
			    poll */
	bool rx_drained;
	uint32_t stalled; /* steps */
	/* Posted and not completed at the sender, oldest first. */
	struct flying fly[FLYING_MAX];
	uint32_t flies;
	/* The sender's completions, the receiver's. */
	uint64_t done[FLYING_MAX];
	uint32_t dones;
	struct arrived cq[FLYING_MAX * 4];
	uint32_t cqs;
};

struct ctl {
	uint8_t bytes[MSG_MAX];
	uint32_t len;
	bool may_be_lost;
};

struct channel {
	struct ctl *msg;
	uint32_t first;
	uint32_t count;
};

struct sim {
	const struct sim_config *c;
	uint64_t state;
	struct dqplb_tx *tx;
	struct dqplb_rx *rx;
	struct dqplb_rq rq[DQPLB_LANES_MAX];
	struct lane lane[DQPLB_LANES_MAX];
	struct channel up;   /* to the receiver */
	struct channel down; /* to the sender */
	struct deal *deal;
	uint32_t *number_deal; /* of the last 2^16 numbers: which transfer */
	uint32_t started;
	uint32_t unfinished;
	bool calm; /* nothing breaks any more */
	struct sim_result *r;
};

static uint64_t draw(struct sim *s)
{
	s->state ^= s->state >> 12;
	s->state ^= s->state << 25;
	s->state ^= s->state >> 27;
	return s->state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static bool chance(struct sim *s, uint32_t of_1000)
{
	return draw(s) % 1000 < of_1000;
}

static void rule(struct sim *s, bool held, const char *text)
{
	if (!held && !s->r->error)
		s->r->error = text;
}

static void ctl_push(struct sim *s, struct channel *ch, const void *bytes, size_t len,
		     bool may_be_lost)
{
	struct ctl *m = &ch->msg[(ch->first + ch->count) % CTL_MAX];

	rule(s, ch->count < CTL_MAX, "the control channel's queue is bounded");
	rule(s, len > 0 && len <= MSG_MAX, "a message has its length");
	if (s->r->error)
		return;
	memcpy(m->bytes, bytes, len);
	m->len = (uint32_t)len;
	m->may_be_lost = may_be_lost;
	ch->count++;
}

static bool ctl_pop(struct sim *s, struct channel *ch, struct dqplb_msg *m)
{
	struct ctl *c = &ch->msg[ch->first];

	if (ch->count == 0)
		return false;
	ch->first = (ch->first + 1) % CTL_MAX;
	ch->count--;
	rule(s, dqplb_msg_parse(c->bytes, c->len, m) == 0, "what is sent is valid");
	return !s->r->error;
}

/* The control channel is lost and comes back: what was not an acknowledgement is sent
 * again (B1), the others are gone. */
static void ctl_reset(struct sim *s)
{
	uint32_t count = s->down.count;

	for (uint32_t i = 0; i < count; i++) {
		struct ctl c = s->down.msg[s->down.first];

		s->down.first = (s->down.first + 1) % CTL_MAX;
		s->down.count--;
		if (!c.may_be_lost)
			ctl_push(s, &s->down, c.bytes, c.len, false);
	}
	dqplb_rx_resend(s->rx);
}

static bool deal_whole(const struct deal *d)
{
	for (uint32_t i = 0; i < d->pieces; i++)
		if (d->landed[i] == 0)
			return false;
	return true;
}

static void on_event(void *arg, const struct dqplb_event *ev)
{
	struct sim *s = arg;
	uint32_t id = ev->fast ? s->number_deal[ev->number & 0xffff] : (uint32_t)ev->data;
	struct deal *d;

	rule(s, id < s->started, "an event is a transfer's");
	if (s->r->error)
		return;
	d = &s->deal[id];
	s->r->events++;
	rule(s, !d->raised, "an event is raised once");
	rule(s, d->x.kind == DQPLB_NUMBERED, "a plain transfer raises no event");
	rule(s, deal_whole(d), "an event never overtakes a segment of its transfer");
	rule(s, ev->len == d->x.len, "an event says the length");
	rule(s, ev->fast || ev->op == d->x.op, "an event says the operation");
	d->raised = true;
	for (uint32_t i = id; i-- > 0;) {
		const struct deal *e = &s->deal[i];

		if (e->x.kind != DQPLB_NUMBERED || e->raised || e->at_fault)
			continue;
		rule(s, !d->x.ordered, "an ordered event comes after all before it");
		s->r->overtaken++;
		break;
	}
}

static void post_segment(struct sim *s, const struct dqplb_post *post)
{
	struct lane *l = &s->lane[post->lane];
	struct deal *d = (struct deal *)post->xfer;
	uint32_t piece = (uint32_t)(post->offset / s->c->tx.max_segment);
	struct flying *f;

	rule(s, post->lane < s->c->tx.lanes && !l->tx_drained,
	     "a drained lane is not posted on");
	rule(s, l->flies < s->c->tx.lane_segments, "a lane has its limit of segments");
	rule(s, post->offset + post->len <= d->x.len, "a segment lies in its transfer");
	rule(s, piece < d->pieces, "a segment is one of its transfer");
	rule(s, !d->finished, "nothing is posted of what is finished");
	if (s->r->error)
		return;
	f = &l->fly[l->flies++];
	*f = (struct flying){.post = *post, .deal = (uint32_t)(d - s->deal)};
	d->in_queues++;
	if (post->kind == DQPLB_POST_WRITE_IMM)
		s->number_deal[post->imm & 0xffff] = f->deal;
}

static void start_one(struct sim *s)
{
	struct dqplb_post post = {.kind = DQPLB_POST_WRITE};
	uint32_t id = s->started, lane;
	struct deal *d = &s->deal[id];
	const struct sim_config *c = s->c;
	/* Mostly small ones. */
	uint32_t most = draw(s) % 4 == 0 ? c->pieces : 2;
	uint64_t seg = c->tx.max_segment;

	memset(d, 0, sizeof(*d));
	d->x.kind = chance(s, c->plain) ? (draw(s) & 1 ? DQPLB_WRITE : DQPLB_READ)
					: DQPLB_NUMBERED;
	if (d->x.kind == DQPLB_NUMBERED) {
		d->x.ordered = chance(s, c->ordered);
		d->x.bare = chance(s, c->bare);
	}
	d->pieces = 1 + (uint32_t)(draw(s) % most);
	d->x.len = (d->pieces - 1) * seg + 1 + draw(s) % seg;
	if (d->pieces == 1 && draw(s) % 8 == 0)
		d->x.len = 0;
	d->x.data = id;
	d->x.op = id * 3;
	d->order = id;
	d->live = true;
	s->started++;
	s->unfinished++;
	if (d->x.kind == DQPLB_WRITE && d->pieces == 1 && draw(s) % 8) {
		lane = dqplb_tx_quick(s->tx, (uint32_t)d->x.len);
		if (lane != DQPLB_NO_LANE) {
			s->r->quick++;
			post.lane = (uint8_t)lane;
			post.len = (uint32_t)d->x.len;
			post.cookie = QUICK | id;
			post.xfer = &d->x;
			post_segment(s, &post);
			return;
		}
	}
	rule(s, dqplb_tx_start(s->tx, &d->x) == 0, "a valid transfer is started");
}

static void pump(struct sim *s)
{
	uint32_t times = 1 + (uint32_t)(draw(s) % 16);
	struct dqplb_post post;
	struct dqplb_msg m;

	while (times-- > 0 && !s->r->error) {
		bool room = draw(s) % 4 != 0;

		if (!dqplb_tx_next(s->tx, &post, room ? &m : NULL))
			break;
		if (post.kind == DQPLB_POST_MSG) {
			uint8_t bytes[MSG_MAX] = {0};

			ctl_push(s, &s->up, bytes,
				 dqplb_msg_put(bytes, sizeof(bytes), &m), false);
		} else {
			post_segment(s, &post);
		}
	}
	rule(s, s->tx->nxt - s->tx->una <= s->c->tx.window,
	     "the sender never runs a window ahead");
}

/* Bytes are written at the target, and the receiver's queue hears of it, or not. */
static void land(struct sim *s, struct lane *l, struct flying *f, bool heard)
{
	struct deal *d = &s->deal[f->deal];
	uint32_t piece = (uint32_t)(f->post.offset / s->c->tx.max_segment);

	f->landed = true;
	rule(s, !d->finished, "nothing is written after its transfer finished");
	rule(s, !d->raised, "nothing is written after its event");
	d->landed[piece]++;
	if (f->post.kind == DQPLB_POST_WRITE_IMM && heard)
		l->cq[l->cqs++] = (struct arrived){f->post.imm, f->post.len};
}

static void fly_remove(struct sim *s, struct lane *l, uint32_t at)
{
	s->deal[l->fly[at].deal].in_queues--;
	l->flies--;
	memmove(&l->fly[at], &l->fly[at + 1], (l->flies - at) * sizeof(l->fly[0]));
}

static bool is_quick(uint64_t cookie)
{
	return cookie >> 62 == 1;
}

/* What was quick on the lane becomes the transmitter's. */
static void quick_keep(struct sim *s, struct lane *l)
{
	uint32_t lane = (uint32_t)(l - s->lane);

	for (uint32_t i = 0; i < l->dones + l->flies; i++) {
		uint64_t *cookie =
			i < l->dones ? &l->done[i] : &l->fly[i - l->dones].post.cookie;

		if (!is_quick(*cookie))
			continue;
		*cookie = dqplb_tx_quick_keep(s->tx, &s->deal[(uint32_t)*cookie].x, lane);
		s->r->kept++;
	}
}

static void lane_die(struct sim *s, struct lane *l)
{
	if (l->dead)
		return;
	l->dead = true;
	s->r->lanes_died++;
}

static uint32_t lane_index(struct sim *s, const struct lane *l)
{
	return (uint32_t)(l - s->lane);
}

/* A segment moves: lands, and is completed at the sender. */
static void fly(struct sim *s, struct lane *l)
{
	uint32_t at = s->c->mixed_up && l->flies ? (uint32_t)(draw(s) % l->flies) : 0;
	struct flying *f = &l->fly[at];
	struct deal *d;

	if (l->flies == 0 || (l->stalled && !s->calm))
		return;
	if (l->dead) {
		/* What was under way may still land, its completions get lost. What is
		 * read lands at the sender. */
		bool gone = f->post.kind == DQPLB_POST_READ ? l->tx_drained
							    : l->rx_drained || l->stopped;

		if (!gone && !f->landed && draw(s) % 2)
			land(s, l, f, draw(s) % 2);
		return;
	}
	d = &s->deal[f->deal];
	if (!s->calm && chance(s, s->c->fault)) {
		quick_keep(s, l);
		rule(s, dqplb_tx_fault(s->tx, f->post.cookie, -EACCES) == 0,
		     "a fault is taken");
		d->at_fault = true;
		fly_remove(s, l, at);
		lane_die(s, l);
		return;
	}
	if (l->dones == FLYING_MAX || l->cqs == FLYING_MAX * 4)
		return;
	land(s, l, f, true);
	l->done[l->dones++] = f->post.cookie;
	fly_remove(s, l, at);
	/* Its completion is not polled yet: the memory still counts as read. */
	d->in_queues++;
}

static uint32_t cookie_deal(struct sim *s, uint64_t cookie)
{
	uint32_t index = (uint32_t)cookie;
	const struct tx_slot *slot =
		cookie >> 63 ? &s->tx->plain[index] : tx_slot(s->tx, index);

	if (is_quick(cookie))
		return index;
	return (uint32_t)((struct deal *)slot->xfer - s->deal);
}

static void taken(struct sim *s, const struct dqplb_xfer *x)
{
	struct deal *d = (struct deal *)(uintptr_t)x;

	rule(s, !d->finished, "a transfer finishes once");
	rule(s, d->in_queues == 0, "no lane reads what is finished");
	rule(s, x->error ? d->at_fault : deal_whole(d),
	     "what finishes without error has arrived");
	d->finished = true;
	s->unfinished--;
	s->r->finished++;
	s->r->failed += x->error != 0;
}

static void tx_poll(struct sim *s, struct lane *l)
{
	uint64_t cookie;

	if (l->dones == 0)
		return;
	cookie = l->done[0];
	l->dones--;
	memmove(l->done, l->done + 1, l->dones * sizeof(l->done[0]));
	s->deal[cookie_deal(s, cookie)].in_queues--;
	if (is_quick(cookie)) {
		bool waits = dqplb_tx_quick_done(s->tx, lane_index(s, l));

		rule(s, waits == dqplb_tx_waits(s->tx),
		     "it is said that something waits");
		taken(s, &s->deal[(uint32_t)cookie].x);
		return;
	}
	if (draw(s) % 2) {
		struct dqplb_xfer *x = dqplb_tx_done_take(s->tx, cookie);

		if (x) {
			rule(s, x->error == 0 && x->kind != DQPLB_NUMBERED,
			     "only what is plain and good is taken at once");
			taken(s, x);
		}
	} else {
		rule(s, dqplb_tx_done(s->tx, cookie) == 0, "a completion is taken");
	}
	rule(s, dqplb_tx_done(s->tx, cookie) == -EINVAL, "and a second time it is not");
}

static void rx_poll(struct sim *s, struct lane *l)
{
	struct arrived a;

	if (l->cqs == 0)
		return;
	a = l->cq[0];
	l->cqs--;
	memmove(l->cq, l->cq + 1, l->cqs * sizeof(l->cq[0]));
	rule(s, dqplb_rx_imm(s->rx, lane_index(s, l), l->incarnation, a.imm, a.len) == 0,
	     "an immediate is taken");
	dqplb_rq_posted(&s->rq[l->queue], 1);
}

/* The sender's half of a lane's end: what is flushed says nothing. */
static void tx_drain(struct sim *s, struct lane *l)
{
	uint32_t lane = lane_index(s, l);

	if (draw(s) % 2)
		dqplb_tx_lane_down(s->tx, lane, l->incarnation);
	while (l->dones > 0 && draw(s) % 8)
		tx_poll(s, l);
	quick_keep(s, l);
	for (uint32_t i = 0; i < l->dones; i++)
		s->deal[cookie_deal(s, l->done[i])].in_queues--;
	l->dones = 0;
	for (uint32_t i = 0; i < l->flies; i++)
		s->deal[l->fly[i].deal].in_queues--;
	l->tx_drained = true;
	rule(s, dqplb_tx_lane_drained(s->tx, lane, l->incarnation) == 0,
	     "a lane is drained");
}

static void rx_drain(struct sim *s, struct lane *l)
{
	while (l->cqs > 0)
		rx_poll(s, l);
	l->rx_drained = true;
	rule(s, dqplb_rx_lane_drained(s->rx, lane_index(s, l), l->incarnation) == 0,
	     "a lane is drained at the receiver");
}

static void lane_open(struct sim *s, struct lane *l)
{
	uint32_t lane = lane_index(s, l);

	l->flies = 0;
	l->dead = l->tx_drained = l->rx_drained = l->stopped = false;
	l->stalled = 0;
	l->incarnation++;
	rule(s, dqplb_rx_lane_open(s->rx, lane, l->incarnation, l->queue) == 0,
	     "the receiver opens a lane");
	rule(s, dqplb_tx_lane_open(s->tx, lane, l->incarnation, l->queue, l->rail) == 0,
	     "the sender opens a lane");
}

/* The receiver's end goes to the error state though its owner does nothing, first the one
 * and then the sender hears of it. */
static void lane_stop(struct sim *s, struct lane *l)
{
	uint32_t lane = lane_index(s, l);

	if (!l->stopped) {
		l->stopped = true;
		return;
	}
	if (!dqplb_tx_lane_unstopped(s->tx, lane))
		return;
	rule(s, dqplb_tx_lane_stopped(s->tx, lane, l->incarnation - 1) == -EINVAL,
	     "a lane before it is not stopped");
	rule(s, dqplb_tx_lane_stopped(s->tx, lane, l->incarnation) == 0,
	     "a lane is stopped");
	s->r->lanes_stopped++;
}

/* A dead lane goes on by one step. */
static void lane_bury(struct sim *s, struct lane *l)
{
	uint32_t lane = lane_index(s, l);

	if (chance(s, s->c->stop))
		lane_stop(s, l);
	else if (!l->tx_drained && draw(s) % 2)
		tx_drain(s, l);
	else if (!l->rx_drained && draw(s) % 2)
		rx_drain(s, l);
	else if (l->tx_drained && l->rx_drained &&
		 s->tx->lane[lane].state == TX_LANE_CLOSED)
		lane_open(s, l);
}

static void lane_step(struct sim *s, struct lane *l)
{
	if (!s->calm && !l->dead && chance(s, s->c->die))
		lane_die(s, l);
	if (!s->calm && chance(s, s->c->stall))
		l->stalled = 200;
	if (l->stalled)
		l->stalled--;
	/* For no reason. */
	if (draw(s) % 64 == 0)
		quick_keep(s, l);
	switch (draw(s) % 4) {
	case 0:
		tx_poll(s, l);
		break;
	case 1:
		rx_poll(s, l);
		break;
	default:
		fly(s, l);
	}
	if (l->dead && draw(s) % 8 == 0)
		lane_bury(s, l);
}

static void ack_send(struct sim *s)
{
	uint8_t bytes[MSG_MAX];
	size_t len;

	if (!dqplb_rx_due(s->rx, draw(s) % 8 == 0))
		return;
	len = dqplb_rx_ack(s->rx, bytes, sizeof(bytes));
	ctl_push(s, &s->down, bytes, len, bytes[0] == DQPLB_MSG_ACK);
}

static void ctl_step(struct sim *s)
{
	struct dqplb_msg m;

	if (draw(s) % 2 && ctl_pop(s, &s->up, &m))
		rule(s, dqplb_rx_msg(s->rx, &m) == 0, "the receiver takes a message");
	if (draw(s) % 2 && ctl_pop(s, &s->down, &m))
		rule(s, dqplb_tx_msg(s->tx, &m) == 0, "the sender takes a message");
	ack_send(s);
}

static void take_all(struct sim *s)
{
	struct dqplb_xfer *x;

	while ((x = dqplb_tx_take(s->tx)))
		taken(s, x);
	rule(s, !dqplb_tx_idle(s->tx) || !dqplb_tx_waits(s->tx),
	     "nothing waits where nothing is left");
}

static void cancel_one(struct sim *s)
{
	struct deal *d = &s->deal[draw(s) % s->started];

	if (d->finished || d->at_fault)
		return;
	if (dqplb_tx_cancel(s->tx, &d->x, -ECANCELED) == 0)
		d->at_fault = true;
}

static void rail_die(struct sim *s)
{
	uint32_t rail = (uint32_t)(draw(s) % s->c->rails);
	uint64_t lanes;

	for (uint32_t i = 0; i < s->c->tx.lanes; i++)
		if (s->lane[i].rail == rail)
			lane_die(s, &s->lane[i]);
	if (draw(s) % 2)
		dqplb_tx_rail_down(s->tx, rail, &lanes);
}

static void step(struct sim *s)
{
	const struct sim_config *c = s->c;

	if (s->started < c->transfers && s->unfinished < c->unfinished &&
	    draw(s) % 4 == 0)
		start_one(s);
	if (s->started && !s->calm && chance(s, c->cancel))
		cancel_one(s);
	if (!s->calm && chance(s, c->rail_die))
		rail_die(s);
	if (!s->calm && chance(s, c->reset))
		ctl_reset(s);
	pump(s);
	lane_step(s, &s->lane[draw(s) % c->tx.lanes]);
	lane_step(s, &s->lane[draw(s) % c->tx.lanes]);
	ctl_step(s);
	take_all(s);
	s->r->steps++;
}

static bool at_rest(const struct sim *s)
{
	bool rest = s->started == s->c->transfers && s->unfinished == 0 &&
		    s->up.count == 0 && s->down.count == 0;

	for (uint32_t i = 0; i < s->c->tx.lanes && rest; i++)
		rest = !s->lane[i].dead && s->lane[i].cqs == 0;
	return rest && !dqplb_rx_due(s->rx, true);
}

/* Nothing is left anywhere. */
static void check_end(struct sim *s)
{
	uint32_t queues = s->c->shared_queues ? s->c->rails : s->c->tx.lanes;
	uint32_t free_entries = 0;

	rule(s, dqplb_tx_idle(s->tx), "the transmitter is idle");
	rule(s, s->tx->tail == s->tx->nxt && s->rx->cum == s->tx->nxt,
	     "both ends agree on the next number");
	rule(s, s->tx->bytes == 0, "no byte is in flight");
	rule(s, s->tx->records_out == 0, "no record is out");
	for (uint32_t i = s->rx->entry_free; i != s->rx->entries;
	     i = s->rx->entry[i].next)
		free_entries++;
	rule(s, free_entries == s->rx->entries, "no event waits");
	for (uint32_t i = 0; i < queues; i++)
		rule(s,
		     s->tx->queue[i].granted - s->tx->queue[i].used ==
			     dqplb_rx_outstanding(s->rx, i),
		     "both ends agree on the credits");
	for (uint32_t i = 0; i < s->started; i++) {
		const struct deal *d = &s->deal[i];

		rule(s, d->finished, "every transfer finishes");
		rule(s, d->x.kind != DQPLB_NUMBERED || d->x.error || d->raised,
		     "every transfer without error raises its event");
	}
}

static bool sim_open(struct sim *s)
{
	const struct sim_config *c = s->c;
	struct dqplb_rx_config rc = {.window = c->tx.window,
				     .records = c->tx.records,
				     .gen = c->tx.gen,
				     .first = c->tx.first,
				     .event = on_event,
				     .arg = s};
	uint32_t queues = c->shared_queues ? c->rails : c->tx.lanes;

	s->deal = calloc(c->transfers, sizeof(*s->deal));
	s->number_deal = calloc(1 << 16, sizeof(*s->number_deal));
	s->up.msg = calloc(CTL_MAX, sizeof(struct ctl));
	s->down.msg = calloc(CTL_MAX, sizeof(struct ctl));
	if (!s->deal || !s->number_deal || !s->up.msg || !s->down.msg ||
	    dqplb_tx_open(&c->tx, &s->tx) || dqplb_rx_open(&rc, &s->rx))
		return false;
	for (uint32_t i = 0; i < queues; i++) {
		dqplb_rq_posted(&s->rq[i], c->receives);
		rule(s, dqplb_rx_queue(s->rx, i, &s->rq[i], c->receives) == 0,
		     "a queue is taken");
	}
	for (uint32_t i = 0; i < c->tx.lanes; i++) {
		s->lane[i].rail = i % c->rails;
		s->lane[i].queue = c->shared_queues ? i % c->rails : i;
		lane_open(s, &s->lane[i]);
	}
	return true;
}

static void sim_close(struct sim *s)
{
	if (s->tx)
		dqplb_tx_close(s->tx);
	if (s->rx)
		dqplb_rx_close(s->rx);
	free(s->up.msg);
	free(s->down.msg);
	free(s->number_deal);
	free(s->deal);
	free(s);
}

bool sim_run(const struct sim_config *config, uint64_t seed, struct sim_result *result)
{
	struct sim *s = calloc(1, sizeof(*s));
	uint64_t rest = 0;
	bool good;

	memset(result, 0, sizeof(*result));
	if (!s)
		return false;
	s->c = config;
	s->r = result;
	s->state = seed * 2 + 1;
	good = sim_open(s);
	while (good && !result->error && s->started < config->transfers)
		step(s);
	/* From now on nothing breaks, so everything ends. */
	s->calm = true;
	while (good && !result->error && !at_rest(s)) {
		step(s);
		rule(s, ++rest < 2000000, "everything ends");
	}
	if (good && !result->error)
		check_end(s);
	if (good) {
		result->tx = *dqplb_tx_stats(s->tx);
		result->rx = *dqplb_rx_stats(s->rx);
	}
	sim_close(s);
	return good;
}
