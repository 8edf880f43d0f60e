/* SPDX-License-Identifier: BSD-2-Clause */
/* See queue.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/queue.h"

#define NONE UINT32_MAX

/* Ports along a way: out of the host, up to a spine, down to a leaf, to the host. */
enum { HOPS = 4 };

struct packet {
	uint32_t next; /* in its queue, or that is free */
	uint32_t bytes;
	uint32_t sender;
	uint32_t port[HOPS];
	uint8_t hop;
	bool last; /* of its segment */
	uint64_t cookie;
};

struct port {
	uint32_t first, last; /* packets */
	uint64_t bytes;
	uint32_t waiter; /* the first port that waits for room here... */
	uint32_t beside; /* ...the next one that waits where this one does */
	bool busy, held, host;
};

/* A segment that a sender's port cuts into packets. */
struct segment {
	uint64_t cookie;
	uint32_t left;
	uint32_t lane;
};

struct sender {
	struct dqplb_tx *tx;
	struct dqplb_xfer xfer;
	struct segment *segment; /* in the order of turns */
	uint32_t segments, room, turn;
	uint32_t host;
	bool done;
};

enum kind { SENT, ARRIVED, HEARD };

struct event {
	double at;
	uint64_t order, what;
	uint32_t who;
	uint8_t kind;
};

struct world {
	const struct queue_net *net;
	const struct queue_incast *in;
	struct queue_result *r;
	struct port *port;
	struct packet *packet;
	uint32_t packets, packet_room, packet_free;
	struct sender *sender;
	struct event *event;
	uint32_t events, event_room;
	uint64_t order, held; /* bytes in switches */
	uint32_t left;
	double now;
	bool failed;
};

static uint32_t leaves(const struct queue_net *n)
{
	return (n->hosts + n->per_leaf - 1) / n->per_leaf;
}

/* ---- events --------------------------------------------------------------------------
 */

static bool before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void event_add(struct world *w, double at, enum kind kind, uint32_t who,
		      uint64_t what)
{
	uint32_t i = w->events;

	if (w->events == w->event_room) {
		const uint32_t room = w->event_room ? w->event_room * 2 : 4096;
		struct event *more = realloc(w->event, room * sizeof(*more));

		if (!more) {
			w->failed = true;
			return;
		}
		w->event = more;
		w->event_room = room;
	}
	w->events++;
	while (i > 0 && w->event[(i - 1) / 2].at > at) {
		w->event[i] = w->event[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->event[i] = (struct event){at, w->order++, what, who, (uint8_t)kind};
}

static struct event event_take(struct world *w)
{
	const struct event first = w->event[0], last = w->event[--w->events];
	uint32_t i = 0, below;

	while ((below = 2 * i + 1) < w->events) {
		if (below + 1 < w->events &&
		    before(&w->event[below + 1], &w->event[below]))
			below++;
		if (before(&last, &w->event[below]))
			break;
		w->event[i] = w->event[below];
		i = below;
	}
	w->event[i] = last;
	return first;
}

/* ---- queues --------------------------------------------------------------------------
 */

static void sample(struct world *w)
{
	const double at = w->now / w->r->sample_time;
	const unsigned i = at < QUEUE_SAMPLES - 1 ? (unsigned)at : QUEUE_SAMPLES - 1;

	if (w->held > w->r->sample[i])
		w->r->sample[i] = w->held;
	if (w->held > w->r->peak)
		w->r->peak = w->held;
}

static void port_send(struct world *w, uint32_t at)
{
	struct port *p = &w->port[at];

	if (p->busy || p->held || p->first == NONE)
		return;
	p->busy = true;
	event_add(w, w->now + w->packet[p->first].bytes / w->net->rate, SENT, at, 0);
}

static bool has_room(const struct world *w, const struct port *p, uint32_t bytes)
{
	return !w->net->buffer || p->bytes + bytes <= w->net->buffer;
}

/* A packet is one of a port's; the queue of a host's port is its own memory. */
static void port_add(struct world *w, uint32_t at, uint32_t i)
{
	struct port *p = &w->port[at];
	struct packet *k = &w->packet[i];

	k->next = NONE;
	if (p->first == NONE)
		p->first = i;
	else
		w->packet[p->last].next = i;
	p->last = i;
	if (!p->host && p->bytes > w->net->mark + k->bytes)
		w->r->marked++;
	port_send(w, at);
}

static void sender_feed(struct world *w, struct sender *s);

/* Moves the first packet of a port on, or has it wait for room where it goes. */
static void port_pass(struct world *w, uint32_t at)
{
	struct port *p = &w->port[at];
	const uint32_t i = p->first;
	struct packet *k = &w->packet[i];
	const bool arrives = k->hop + 1 == HOPS;

	if (!arrives && !has_room(w, &w->port[k->port[k->hop + 1]], k->bytes)) {
		struct port *to = &w->port[k->port[k->hop + 1]];

		uint32_t *end = &to->waiter;

		while (*end != NONE)
			end = &w->port[*end].beside;
		*end = at;
		p->beside = NONE;
		p->held = true;
		return;
	}
	p->first = k->next;
	if (!p->host) {
		uint32_t waiter = p->waiter;

		p->bytes -= k->bytes;
		w->held -= k->bytes;
		p->waiter = NONE;
		while (waiter != NONE) {
			const uint32_t next = w->port[waiter].beside;

			w->port[waiter].held = false;
			port_pass(w, waiter);
			waiter = next;
		}
	}
	k = &w->packet[i];
	/* Room is taken when it leaves: what is on its way counts where it goes. */
	if (!arrives) {
		struct port *to = &w->port[k->port[++k->hop]];

		to->bytes += k->bytes;
		w->held += k->bytes;
		if (to->bytes > w->r->queue)
			w->r->queue = to->bytes;
		sample(w);
		event_add(w, w->now + w->net->latency, ARRIVED, k->port[k->hop], i);
	} else {
		event_add(w, w->now + w->net->latency, ARRIVED, NONE, i);
	}
	if (p->host)
		sender_feed(w, &w->sender[k->sender]);
	port_send(w, at);
}

/* ---- senders -------------------------------------------------------------------------
 */

static uint32_t packet_new(struct world *w)
{
	uint32_t i = w->packet_free;

	if (i != NONE) {
		w->packet_free = w->packet[i].next;
		return i;
	}
	if (w->packets == w->packet_room) {
		const uint32_t room = w->packet_room ? w->packet_room * 2 : 4096;
		struct packet *more = realloc(w->packet, room * sizeof(*more));

		if (!more) {
			w->failed = true;
			return NONE;
		}
		w->packet = more;
		w->packet_room = room;
	}
	return w->packets++;
}

/* What the machine lets go now. */
static void sender_ask(struct world *w, struct sender *s)
{
	struct dqplb_post post;

	while (dqplb_tx_next(s->tx, &post, NULL)) {
		if (s->segments == s->room) {
			const uint32_t room = s->room ? s->room * 2 : 64;
			struct segment *more = realloc(s->segment, room * sizeof(*more));

			if (!more) {
				w->failed = true;
				return;
			}
			s->segment = more;
			s->room = room;
		}
		s->segment[s->segments++] =
			(struct segment){post.cookie, post.len, post.lane};
	}
}

static void ports_set(const struct world *w, const struct sender *s, struct packet *k,
		      uint32_t lane)
{
	const struct queue_net *n = w->net;
	const uint32_t all = leaves(n), from = s->host / n->per_leaf;
	const uint32_t spine = (s->host * 7 + lane) % n->spines;

	k->port[0] = s->host;
	k->port[1] = n->hosts + from * n->spines + spine;
	k->port[2] = n->hosts + all * n->spines + spine * all;
	k->port[3] = n->hosts + 2 * all * n->spines;
}

/* One packet for the host's port when that has none: of each segment in turn, as a NIC
 * does with its queues. */
static void sender_feed(struct world *w, struct sender *s)
{
	struct segment *g;
	struct packet *k;
	uint32_t i;

	if (w->port[s->host].first != NONE || !s->segments)
		return;
	i = packet_new(w);
	if (i == NONE)
		return;
	s->turn = s->turn < s->segments ? s->turn : 0;
	g = &s->segment[s->turn];
	k = &w->packet[i];
	*k = (struct packet){.sender = (uint32_t)(s - w->sender), .cookie = g->cookie};
	k->bytes = g->left < w->net->packet ? g->left : w->net->packet;
	ports_set(w, s, k, g->lane);
	g->left -= k->bytes;
	k->last = !g->left;
	if (k->last) {
		s->segments--;
		memmove(g, g + 1, (s->segments - s->turn) * sizeof(*g));
	} else {
		s->turn++;
	}
	w->r->packets++;
	port_add(w, s->host, i);
}

static void sender_heard(struct world *w, struct sender *s, uint64_t cookie)
{
	if (dqplb_tx_done(s->tx, cookie)) {
		w->failed = true;
		return;
	}
	if (dqplb_tx_take(s->tx)) {
		s->done = true;
		w->left--;
		w->r->time = w->now;
		return;
	}
	sender_ask(w, s);
	sender_feed(w, s);
}

static void event_do(struct world *w, const struct event *e)
{
	switch ((enum kind)e->kind) {
	case SENT:
		w->port[e->who].busy = false;
		port_pass(w, e->who);
		break;
	case ARRIVED: {
		const uint32_t i = (uint32_t)e->what;
		const struct packet k = w->packet[i];

		if (e->who != NONE) {
			port_add(w, e->who, i);
			break;
		}
		if (k.last)
			event_add(w, w->now + HOPS * w->net->latency, HEARD, k.sender,
				  k.cookie);
		w->packet[i].next = w->packet_free;
		w->packet_free = i;
		break;
	}
	case HEARD:
		sender_heard(w, &w->sender[e->who], e->what);
		break;
	}
	w->r->events++;
}

/* ---- all together --------------------------------------------------------------------
 */

static int sender_open(struct world *w, uint32_t i)
{
	struct sender *s = &w->sender[i];
	int rc = dqplb_tx_open(&w->in->tx, &s->tx);

	for (uint32_t lane = 0; !rc && lane < w->in->tx.lanes; lane++)
		rc = dqplb_tx_lane_open(s->tx, lane, 1, DQPLB_QUEUE_NONE, 0);
	if (rc)
		return rc;
	s->host = w->net->hosts - 1 - i;
	s->xfer = (struct dqplb_xfer){.kind = DQPLB_WRITE, .len = w->in->bytes};
	rc = dqplb_tx_start(s->tx, &s->xfer);
	if (rc)
		return rc;
	sender_ask(w, s);
	sender_feed(w, s);
	return 0;
}

static int world_open(struct world *w)
{
	const struct queue_net *n = w->net;
	uint32_t ports;
	int rc = 0;

	if (!n->hosts || n->hosts > QUEUE_HOSTS_MAX || !n->per_leaf || !n->spines ||
	    n->spines > QUEUE_HOSTS_MAX || n->rate <= 0 || !n->packet ||
	    w->in->senders >= n->hosts || !w->in->bytes || w->r->sample_time <= 0 ||
	    (n->buffer && n->buffer < n->packet))
		return -EINVAL;
	ports = n->hosts + 2 * leaves(n) * n->spines + n->hosts;
	w->port = calloc(ports, sizeof(*w->port));
	w->sender = calloc(w->in->senders + 1, sizeof(*w->sender));
	w->packet_free = NONE;
	w->left = w->in->senders;
	if (!w->port || !w->sender)
		return -ENOMEM;
	for (uint32_t i = 0; i < ports; i++) {
		w->port[i].first = w->port[i].waiter = NONE;
		w->port[i].host = i < n->hosts;
	}
	for (uint32_t i = 0; !rc && i < w->in->senders; i++)
		rc = sender_open(w, i);
	return rc;
}

int queue_incast(const struct queue_net *net, const struct queue_incast *incast,
		 struct queue_result *result)
{
	struct world w = {.net = net, .in = incast, .r = result};
	int rc;

	*result = (struct queue_result){.sample_time = result->sample_time};
	rc = world_open(&w);
	while (!rc && w.left) {
		struct event e;

		if (!w.events || w.failed) {
			rc = -ENOMEM;
			break;
		}
		e = event_take(&w);
		w.now = e.at;
		event_do(&w, &e);
	}
	for (uint32_t i = 0; w.sender && i < incast->senders; i++) {
		if (w.sender[i].tx)
			dqplb_tx_close(w.sender[i].tx);
		free(w.sender[i].segment);
	}
	free(w.sender);
	free(w.port);
	free(w.packet);
	free(w.event);
	return rc;
}
