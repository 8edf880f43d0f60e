/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "prov/wire/uet/tests/uet_switch.h"

#include <stdlib.h>
#include <string.h>

#define ENDS	 (UET_SWITCH_SENDERS + 1)
#define FLIGHT	 (1u << 17) /* packets anywhere */
#define OVERHEAD UET_NSCC_OVERHEAD
#define NS	 UINT64_C(1000000000)

/* Where a packet goes next. */
enum stop { STOP_QUEUE, STOP_ARRIVE };

struct flight {
	uint64_t at;
	uint64_t order;
	uint8_t stop;
	uint8_t path;
	uint16_t from;
	uint16_t to;
	bool ce;
	bool data;
	uint32_t head_len;
	uint32_t payload_len;
	uint8_t head[UET_HEAD_MAX];
};

/* First in, first out; its length follows from when it will be empty. */
struct queue {
	uint64_t rate; /* 0: any */
	uint64_t free_at;
};

struct end {
	struct net *net;
	struct uet_pds *pds;
	struct uet_pdc *pdc;
	uint64_t begin;
	uint64_t given;
	uint16_t no;
};

struct net {
	const struct uet_switch_config *c;
	struct uet_switch_result *r;
	uint64_t now, random, order;
	uint64_t got[ENDS]; /* of this interval */
	struct uet_switch_tick tick;
	struct queue path[UET_PATHS_MAX];
	struct queue last;
	struct end end[ENDS];
	uint8_t *seen[ENDS]; /* a bit for each packet of a sender */
	uint32_t flying;
	uint32_t heap[FLIGHT];
	uint32_t unused[FLIGHT];
	struct flight flight[FLIGHT];
	uint8_t bytes[UET_HEAD_MAX + UET_PAYLOAD_MAX];
};

static const uint8_t payload[UET_PAYLOAD_MAX];
#define PACKETS (1u << 22) /* of a sender; more than a run has */

static uint64_t draw(struct net *n)
{
	n->random ^= n->random >> 12;
	n->random ^= n->random << 25;
	n->random ^= n->random >> 27;
	return n->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* ---- what is under way: a heap by time --------------------------------------------- */

static bool sooner(const struct net *n, uint32_t a, uint32_t b)
{
	const struct flight *x = &n->flight[a], *y = &n->flight[b];

	return x->at != y->at ? x->at < y->at : x->order < y->order;
}

static void push(struct net *n, uint32_t slot)
{
	uint32_t at = n->flying++;

	n->flight[slot].order = n->order++;
	while (at != 0) {
		uint32_t up = (at - 1) / 2;

		if (!sooner(n, slot, n->heap[up]))
			break;
		n->heap[at] = n->heap[up];
		at = up;
	}
	n->heap[at] = slot;
}

static uint32_t pop(struct net *n)
{
	uint32_t top = n->heap[0], last = n->heap[--n->flying], at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < n->flying &&
		    sooner(n, n->heap[child + 1], n->heap[child]))
			child++;
		if (child >= n->flying || !sooner(n, n->heap[child], last))
			break;
		n->heap[at] = n->heap[child];
		at = child;
	}
	n->heap[at] = last;
	return top;
}

/* ---- the switch -------------------------------------------------------------------- */

static uint64_t waiting(const struct net *n, const struct queue *q)
{
	return q->free_at > n->now ? (q->free_at - n->now) * q->rate / NS : 0;
}

/* False: there is no room for it. */
static bool enqueue(struct net *n, struct queue *q, struct flight *f)
{
	uint32_t size = f->head_len + f->payload_len + OVERHEAD;
	uint64_t before = waiting(n, q);

	f->at = n->now;
	if (!q->rate)
		return true;
	if (before + size > n->c->room) {
		n->r->dropped++;
		return false;
	}
	if (n->c->mark && before + size > n->c->mark && f->data && !f->ce) {
		f->ce = true;
		n->r->marked++;
	}
	q->free_at = (q->free_at > n->now ? q->free_at : n->now) + size * NS / q->rate;
	f->at = q->free_at;
	return true;
}

static bool swallowed(const struct net *n, uint32_t path)
{
	return path == n->c->hole && n->now >= n->c->hole_from && n->now < n->c->hole_to;
}

static void leave(struct end *from, const struct uet_out *out)
{
	struct net *n = from->net;
	uint32_t path = out->path == UET_PATH_ECHO ? out->entropy : out->path;
	struct flight *f;
	uint32_t slot;

	if (swallowed(n, path) || n->flying == FLIGHT ||
	    (n->c->loss && draw(n) % n->c->loss == 0))
		return;
	slot = n->unused[n->flying];
	f = &n->flight[slot];
	*f = (struct flight){.stop = STOP_QUEUE,
			     .path = (uint8_t)path,
			     .from = from->no,
			     .to = (uint16_t)out->peer.fep,
			     .data = out->cls == UET_CLASS_DATA,
			     .head_len = out->head_len,
			     .payload_len = out->payload_len};
	memcpy(f->head, out->head, out->head_len);
	if (f->data && n->now >= n->c->hole_to)
		n->r->sender[from->no].path_used_late |= UINT32_C(1) << path;
	if (f->to != n->c->senders) {
		f->stop = STOP_ARRIVE;
		f->at = n->now + n->c->base_rtt / 2;
		if (n->c->back_ns)
			f->at += draw(n) % n->c->back_ns;
	} else if (!enqueue(n, &n->path[path], f)) {
		n->unused[n->flying] = slot;
		return;
	}
	push(n, slot);
}

/* It has come to the receiver's queue. */
static void through_last(struct net *n, uint32_t slot)
{
	struct flight *f = &n->flight[slot];
	uint64_t queue;

	if (!enqueue(n, &n->last, f)) {
		n->unused[n->flying] = slot;
		return;
	}
	queue = waiting(n, &n->last);
	if (queue > n->tick.queue)
		n->tick.queue = queue;
	n->tick.passed += f->head_len + f->payload_len + OVERHEAD;
	f->stop = STOP_ARRIVE;
	f->at += n->c->base_rtt / 2;
	if (n->c->jitter_ns)
		f->at += draw(n) % n->c->jitter_ns;
	push(n, slot);
}

static struct uet_peer peer_of(uint32_t no)
{
	return (struct uet_peer){.host = {(uint8_t)(no >> 8), (uint8_t)no}, .fep = no};
}

static void arrive(struct net *n, uint32_t slot)
{
	const struct flight *f = &n->flight[slot];
	struct uet_in in = {.from = peer_of(f->from),
			    .entropy = f->path,
			    .ce = f->ce,
			    .stamp = n->now};
	struct uet_pkt pkt;

	memset(n->bytes + f->head_len, 0, UET_HEAD_MAX);
	memcpy(n->bytes, f->head, f->head_len);
	n->unused[n->flying] = slot;
	if (uet_pkt_parse(n->bytes, f->head_len + f->payload_len, UET_PAYLOAD_MAX, &pkt))
		abort();
	uet_pds_rx(n->end[f->to].pds, &in, &pkt, n->now);
}

/* ---- the ends ---------------------------------------------------------------------- */

static enum uet_verdict on_request(void *arg, struct uet_pdc *pdc,
				   const struct uet_pkt *pkt, bool room,
				   struct uet_reply *reply)
{
	struct end *to = arg;
	struct net *n = to->net;
	uint32_t from = uet_pdc_peer(pdc)->fep;
	uint64_t no = pkt->req.match;

	(void)room;
	(void)reply;
	if (no >= PACKETS || from >= n->c->senders)
		abort();
	n->r->twice |= n->seen[from][no / 8] >> no % 8 & 1;
	n->seen[from][no / 8] |= (uint8_t)(1u << no % 8);
	n->got[from] += pkt->payload_len;
	n->r->sender[from].delivered += pkt->payload_len;
	return UET_TAKEN;
}

static void on_done(void *arg, struct uet_pdc *pdc, void *cookie, int err,
		    const struct uet_pkt *resp)
{
	(void)arg;
	(void)pdc;
	(void)cookie;
	(void)err;
	(void)resp;
}

static int on_opened(void *arg, struct uet_pdc *pdc, const struct uet_pkt *pkt)
{
	(void)arg;
	(void)pdc;
	(void)pkt;
	return 0;
}

static void on_closed(void *arg, struct uet_pdc *pdc, int err, uint8_t code)
{
	struct end *e = arg;

	(void)code;
	(void)err;
	if (e->pdc != pdc)
		return;
	e->pdc = NULL;
	e->net->r->sender[e->no].failed = true;
}

static uint64_t on_random(void *arg)
{
	return draw(((struct end *)arg)->net);
}

static const struct uet_pds_events events = {on_request, on_done, on_opened, on_closed};

/* Its ring is always full. */
static void fill(struct end *e)
{
	struct net *n = e->net;

	while (e->pdc && e->given < PACKETS && uet_pdc_room(e->pdc) > 0) {
		struct uet_ses_req req = {.op = UET_OP_SEND,
					  .som = true,
					  .eom = true,
					  .message = (uint16_t)(e->given % 65535 + 1),
					  .match = e->given,
					  .length = n->c->bytes,
					  .part = n->c->bytes};
		uint8_t ses[UET_SES_MAX];
		struct uet_send send = {.ses = ses,
					.next = UET_NEXT_REQ_STD,
					.payload = payload,
					.payload_len = n->c->bytes};

		send.ses_len = (uint32_t)uet_req_put(ses, &req);
		if (uet_pdc_send(e->pdc, &send, n->now))
			return;
		e->given++;
	}
}

static bool sends(const struct end *e)
{
	return e->no < e->net->c->senders;
}

static void pump(struct end *e)
{
	struct net *n = e->net;
	struct uet_out out;

	uet_pds_tick(e->pds, n->now);
	if (sends(e) && n->now >= e->begin)
		fill(e);
	while (uet_pds_next(e->pds, n->now, &out))
		leave(e, &out);
}

static bool end_open(struct net *n, uint16_t no)
{
	struct end *e = &n->end[no];
	struct uet_pds_config config = n->c->pds;
	struct uet_peer to = peer_of(n->c->senders);

	*e = (struct end){.net = n, .no = no, .begin = no * n->c->start_ns};
	config.path.paths = n->c->paths;
	config.random = on_random;
	config.events = &events;
	config.arg = e;
	if (sends(e)) /* its own one, and one that rests */
		config.contexts = config.half_open = 2;
	if (uet_pds_open(&config, &e->pds))
		return false;
	if (!sends(e))
		return true;
	n->seen[no] = calloc(PACKETS / 8, 1);
	if (!n->seen[no] || uet_pdc_dial(e->pds, &to, false, NULL, 0, &e->pdc))
		return false;
	if (n->c->payload)
		uet_pdc_set_payload(e->pdc, n->c->payload);
	return true;
}

/* ---- the run ----------------------------------------------------------------------- */

static uint64_t next_time(const struct net *n)
{
	uint64_t t = n->flying ? n->flight[n->heap[0]].at : UINT64_MAX;

	for (uint32_t i = 0; i <= n->c->senders; i++) {
		const struct end *e = &n->end[i];
		uint64_t due = uet_pds_due(e->pds);

		if (sends(e) && e->begin > n->now && e->begin < due)
			due = e->begin;
		t = due < t ? due : t;
	}
	return t > n->now ? t : n->now;
}

static void run(struct net *n, uint64_t tick_ns, uet_switch_watch *watch, void *arg)
{
	uint64_t tick_end = tick_ns;

	for (uint32_t i = 0; i < n->c->senders; i++)
		pump(&n->end[i]);
	while (n->now < n->c->run_ns) {
		uint64_t next = next_time(n);

		while (next >= tick_end && tick_end <= n->c->run_ns) {
			watch(arg, tick_end - tick_ns, &n->tick, n->got);
			n->r->passed += n->tick.passed;
			memset(&n->tick, 0, sizeof(n->tick));
			memset(n->got, 0, sizeof(n->got));
			tick_end += tick_ns;
		}
		if (next >= n->c->run_ns)
			return;
		n->now = next;
		while (n->flying && n->flight[n->heap[0]].at <= n->now) {
			uint32_t slot = pop(n);
			uint16_t to = n->flight[slot].to;

			if (n->flight[slot].stop == STOP_QUEUE) {
				through_last(n, slot);
				continue;
			}
			arrive(n, slot);
			pump(&n->end[to]);
		}
		for (uint32_t i = 0; i <= n->c->senders; i++)
			if (uet_pds_due(n->end[i].pds) <= n->now ||
			    n->end[i].begin == n->now)
				pump(&n->end[i]);
	}
}

static void note(struct net *n)
{
	for (uint32_t i = 0; i < n->c->senders; i++) {
		struct uet_switch_sender *s = &n->r->sender[i];

		s->stats = *uet_pds_stats(n->end[i].pds);
		if (!n->end[i].pdc)
			continue;
		s->paths = *uet_pdc_paths(n->end[i].pdc);
		s->cc = *uet_pdc_nscc(n->end[i].pdc);
	}
}

bool uet_switch_run(const struct uet_switch_config *config, uint64_t seed,
		    uint64_t tick_ns, uet_switch_watch *watch, void *arg,
		    struct uet_switch_result *result)
{
	struct net *n;
	bool good = config->senders > 0 && config->senders <= UET_SWITCH_SENDERS &&
		    config->paths > 0 && config->paths <= UET_PATHS_MAX &&
		    config->bytes <= UET_PAYLOAD_MAX;

	memset(result, 0, sizeof(*result));
	n = good ? calloc(1, sizeof(*n)) : NULL;
	if (!n)
		return false;
	n->c = config;
	n->r = result;
	n->random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	draw(n);
	n->last.rate = config->rate;
	for (uint32_t i = 0; i < config->paths; i++)
		n->path[i].rate = config->path_rate;
	for (uint32_t i = 0; i < FLIGHT; i++)
		n->unused[i] = i;
	for (uint32_t i = 0; i <= config->senders; i++)
		good = good && end_open(n, (uint16_t)i);
	if (good) {
		run(n, tick_ns, watch, arg);
		note(n);
	}
	for (uint32_t i = 0; i < ENDS; i++) {
		uet_pds_close(n->end[i].pds);
		free(n->seen[i]);
	}
	free(n);
	return good;
}
