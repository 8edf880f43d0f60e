/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target that makes no call while queue pairs die under who writes there and reads,
 * over whatever libibverbs is found (asleep.t runs it over emulated devices): all lanes
 * of the link, the control channel, what takes their place; ports that come back. Rules
 * C4, C5, D1, D6.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_call.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_poll.h"
#include "prov/wire/verbs/verbs_rail.h"
#include "util/tap.h"

#define MEMORY	((size_t)1 << 20)
#define PATIENT UINT64_C(90000000000)

struct ends {
	struct rig a; /* dials */
	struct rig b;
	struct rig *active;
	struct rig *asleep;
	struct verbs_link *link; /* of who is active */
	const char *who;
	uint8_t *from;
	uint8_t *back;
	void *handle;
	void *back_handle;
	uint8_t *to;
	uint64_t key;
};

/* Memory of who sleeps that nobody has a key of yet. */
static uint64_t key_new(struct ends *e, size_t from)
{
	uint64_t key;

	if (rig_register(e->asleep, e->to + from, MEMORY - from,
			 FI_REMOTE_READ | FI_REMOTE_WRITE, &key))
		tap_bail("no key");
	return key;
}

static void ends_open(struct ends *e, bool back)
{
	memset(e, 0, sizeof(*e));
	rig_open(&e->a);
	rig_open(&e->b);
	e->active = back ? &e->b : &e->a;
	e->asleep = back ? &e->a : &e->b;
	e->who = back ? "who was dialled" : "who dialled";
	e->from = rig_memory(e->active, MEMORY, &e->handle);
	e->back = rig_memory(e->active, MEMORY, &e->back_handle);
	e->to = malloc(MEMORY);
	if (!e->to)
		tap_bail("no memory");
	e->key = key_new(e, 0);
	if (rig_dial(&e->a, &wire_ep_base(e->b.ep)->addr) ||
	    !rig_wait_int(&e->b, &e->b.ups, 1))
		tap_bail("dial: %d, down %d", e->a.downs, e->a.down_err);
	e->link = verbs_link_of(back ? e->b.accepted : e->a.dialled);
}

static void ends_close(struct ends *e)
{
	verbs_wire_ops.hangup((struct wire_link *)(void *)e->link);
	rig_close(&e->a);
	rig_close(&e->b);
	free(e->to);
}

/* Its queue pairs of lanes, and of the control channel, are of no use from now on. */
static void kill_lanes(struct verbs_link *link)
{
	pthread_mutex_lock(&link->ep->mutex);
	for (uint32_t i = 0; i < DQPLB_LANES_MAX; i++)
		if (link->lane[i].qp)
			verbs_qp_stop(link->ep, link->lane[i].qp);
	pthread_mutex_unlock(&link->ep->mutex);
}

static void kill_channel(struct verbs_link *link)
{
	pthread_mutex_lock(&link->ep->mutex);
	if (link->chan.qp)
		verbs_qp_stop(link->ep, link->chan.qp);
	pthread_mutex_unlock(&link->ep->mutex);
}

/* Written, read back, and there: by calls of the one side only. */
static bool moves(struct ends *e, size_t at, size_t len, uint64_t key, unsigned seed)
{
	struct wire_link *link = (struct wire_link *)(void *)e->link;

	for (size_t i = 0; i < len; i++)
		e->from[i] = (uint8_t)(i * 7 + (i >> 9) + seed * 31);
	memset(e->back, 0, len);
	return rig_move(e->active, link, true, e->from, e->handle, len, at, key) == 0 &&
	       rig_move(e->active, link, false, e->back, e->back_handle, len, at, key) ==
		       0 &&
	       memcmp(e->back, e->from, len) == 0;
}

static bool all_move(struct ends *e, unsigned seed)
{
	static const size_t some[] = {8, 4096, 65537, MEMORY};

	for (unsigned i = 0; i < 4; i++)
		if (!moves(e, (uintptr_t)e->to, some[i], e->key, seed + i))
			return false;
	return true;
}

static struct verbs_link_counts counts(const struct ends *e)
{
	struct verbs_link_counts c;

	verbs_link_count(e->link, &c);
	return c;
}

/* Steps of who is active, and (both) of the other, until it is so. */
static bool until(struct ends *e, bool both, bool (*so)(struct ends *e))
{
	uint64_t end = rig_now() + PATIENT;

	while (!so(e) && e->a.downs + e->b.downs == 0 && rig_now() < end) {
		rig_step(e->active);
		if (both)
			rig_step(e->asleep);
	}
	return so(e);
}

static bool alone(struct ends *e)
{
	return e->link->resuming && verbs_spare_qp(e->link, 1);
}

static bool whole(struct ends *e)
{
	const struct verbs_lane *spare = &e->link->lane[verbs_spare_lane(e->link)];

	return dqplb_tx_lane_up(e->link->tx, 0) && !e->link->resuming &&
	       !e->link->chan.broken && spare->state == VERBS_LANE_CLOSED &&
	       dqplb_tx_lane_closed(e->link->tx, verbs_spare_lane(e->link));
}

/* Room for a packet may be had only once the other end was told of the channel: both make
 * steps. */
static bool packet_sent(struct ends *e, struct rig *from, struct wire_link *link)
{
	const uint64_t end = rig_now() + PATIENT;
	const int downs = from->downs;
	void *pkt;

	while (!(pkt = verbs_wire_ops.pkt_reserve(link, 6, WIRE_DATA))) {
		rig_step(&e->a);
		rig_step(&e->b);
		if (rig_now() > end || from->downs > downs)
			return false;
	}
	memcpy(pkt, "hello", 6);
	verbs_wire_ops.pkt_commit(link, pkt, 6);
	return true;
}

/* Packets go both ways. */
static bool packets_go(struct ends *e)
{
	struct rig *to[2] = {&e->b, &e->a};
	struct wire_link *by[2] = {e->a.dialled, e->b.accepted};

	for (unsigned i = 0; i < 2; i++) {
		uint64_t before = to[i]->packets, end = rig_now() + PATIENT;

		if (!by[i] || !packet_sent(e, i ? &e->b : &e->a, by[i]))
			return false;
		while (to[i]->packets == before && rig_now() < end) {
			rig_step(&e->a);
			rig_step(&e->b);
		}
		if (to[i]->packets != before + 1)
			return false;
	}
	return true;
}

static uint64_t until_before;

static bool given_time(struct ends *e)
{
	return e->link->resume_until > until_before;
}

static void test_lanes(struct ends *e)
{
	uint64_t spares;

	tap_ok(all_move(e, 1), "%s: a target that makes no call", e->who);
	kill_lanes(e->link);
	tap_ok(all_move(e, 2) && counts(e).spares == 1,
	       "%s: all lanes ended: one is made at the door", e->who);
	for (unsigned i = 0; i < 3; i++) {
		spares = counts(e).spares;
		kill_lanes(e->link);
		tap_ok(all_move(e, 10 + i) && counts(e).spares > spares,
		       "%s: that one ended too", e->who);
	}
}

static void test_channel(struct ends *e)
{
	struct wire_notice n = {.data = 77, .op = 1};
	uint64_t key;
	int ended;

	kill_channel(e->link);
	tap_ok(until(e, false, alone), "%s: the channel ended: a lane is there", e->who);
	key = key_new(e, 4096);
	tap_ok(moves(e, (uintptr_t)e->to + 4096, 5000, key, 20) &&
		       memcmp(e->to + 4096, e->from, 5000) == 0 && e->link->resuming,
	       "%s: D1: a new key is found without a channel", e->who);
	kill_lanes(e->link);
	tap_ok(all_move(e, 30) && e->link->resuming, "%s: nor is there any other lane",
	       e->who);
	for (unsigned i = 0; i < 2; i++) {
		until_before = e->link->resume_until;
		tap_ok(until(e, false, given_time) && e->link->resuming,
		       "%s: C5: what gets through gives the target time", e->who);
	}
	if (rig_start(e->active, (struct wire_link *)(void *)e->link, true, e->from,
		      e->handle, 100000, (uintptr_t)e->to, e->key, &n))
		tap_bail("a notice");
	tap_ok(all_move(e, 40), "%s: a notice that waits stops nobody", e->who);
	ended = e->active->segments;
	tap_ok(until(e, true, whole), "%s: it wakes: all is as before", e->who);
	tap_ok(packets_go(e), "%s: packets go both ways", e->who);
	/* Until who sent it has its end too: the next one to wait for an end would take
	 * it for its own. */
	while ((e->asleep->arrived == 0 || e->active->segments == ended) &&
	       e->a.downs + e->b.downs == 0) {
		rig_step(&e->a);
		rig_step(&e->b);
	}
	tap_ok(e->asleep->arrived == 1 && e->asleep->arrived_sum == 77 &&
		       e->asleep->arrived_len == 100000,
	       "%s: A8: the notice came, once", e->who);
}

static bool resuming(struct ends *e)
{
	return e->link->resuming;
}

/* The end of who was dialled dies while its connection isn't up yet: who dialled can't be
 * asked then for another channel, and is later. */
static void test_asked(struct ends *e)
{
	struct verbs_link *link = e->link;

	pthread_mutex_lock(&link->ep->mutex);
	link->call->state = CALL_AWAITED;
	pthread_mutex_unlock(&link->ep->mutex);
	kill_channel(link);
	tap_ok(until(e, false, resuming), "%s: C5: the channel ended before it was up",
	       e->who);
	pthread_mutex_lock(&link->ep->mutex);
	link->call->state = CALL_UP;
	pthread_mutex_unlock(&link->ep->mutex);
	tap_ok(until(e, true, whole), "%s: C5: another is made", e->who);
}

/* ---- ports --------------------------------------------------------------------------
 */

/* A device that says of its port what this test wants, and has no event of it. */
struct made {
	struct verbs_context *device;
	int (*query)(struct ibv_context *context, uint8_t port,
		     struct ibv_port_attr *attr, size_t len);
	atomic_bool down;
};

static struct made made[2]; /* of who is active, of who sleeps */

static int made_query(struct ibv_context *context, uint8_t port,
		      struct ibv_port_attr *attr, size_t len)
{
	struct verbs_context *v = verbs_get_ctx_op(context, query_port);
	struct made *m = &made[v == made[1].device];
	int ret = m->query(context, port, attr, len);

	if (ret == 0 && atomic_load(&m->down))
		attr->state = IBV_PORT_DOWN;
	return ret;
}

static struct verbs_rail *rail_of(struct rig *rig, uint32_t r)
{
	return &verbs_ep_of(rig->ep)->dom->dev->rail[r];
}

/* Before the helper thread has any port to ask; it stays so. */
static void made_open(struct made *m, struct rig *rig, uint32_t r)
{
	m->device = verbs_get_ctx_op(rail_of(rig, r)->context, query_port);
	if (!m->device)
		tap_bail("a library without a way to ask ports");
	m->query = m->device->query_port;
	atomic_store(&m->down, false);
	m->device->query_port = made_query;
}

/* It went: its host hears of that in its next turn. */
static void made_down(struct made *m, struct rig *rig, uint32_t r)
{
	struct verbs_ep *ep = verbs_ep_of(rig->ep);

	atomic_store(&m->down, true);
	if (!verbs_rail_turned(ep->lib, rail_of(rig, r)))
		tap_bail("a port doesn't go");
	verbs_poll_async(ep);
}

static uint32_t other; /* the rail that the control channel isn't on */

static bool told(struct ends *e)
{
	return e->link->peer_down >> other & 1;
}

static bool rung(struct ends *e)
{
	return atomic_load(&verbs_ep_of(e->asleep->ep)->stirred);
}

/* The only rail that both ends have is back: who sleeps says so. */
static void test_return(struct ends *e)
{
	struct verbs_ep *ep = verbs_ep_of(e->asleep->ep);
	uint32_t at = e->link->chan.qp->rail;

	other = 1 - at;
	made_open(&made[0], e->active, at);
	made_open(&made[1], e->asleep, other);
	made_down(&made[1], e->asleep, other);
	tap_ok(until(e, true, told), "%s: C5: a rail of the target went", e->who);
	made_down(&made[0], e->active, at);
	tap_ok(until(e, false, resuming) && told(e),
	       "%s: it sleeps, and the other rail went", e->who);
	atomic_store(&made[1].down, false);
	tap_ok(all_move(e, 60) && !told(e) && counts(e).bytes[other] > 0,
	       "%s: D6: who sleeps says that one is back", e->who);
	/* Not by the clock, nor by the number of its turns. */
	ep->turns = 0;
	ep->async_due = ep->watch_due = UINT64_MAX;
	tap_ok(until(e, false, rung), "%s: and wants to hear of it", e->who);
	rig_step(e->asleep);
	tap_ok(ep->rail[other].was_up, "%s: which it does in its first turn", e->who);
	ep->async_due = ep->watch_due = 0;
	atomic_store(&made[0].down, false);
	tap_ok(until(e, true, whole), "%s: it wakes: all is as before", e->who);
	tap_ok(packets_go(e), "%s: packets go both ways", e->who);
}

static bool is_back(struct ends *e)
{
	struct ibv_port_attr attr;
	const struct verbs_rail *rail = rail_of(e->asleep, other);

	return verbs_query_port(verbs_ep_of(e->asleep->ep)->lib, rail->context,
				rail->port, &attr) == 0 &&
	       attr.state == IBV_PORT_ACTIVE;
}

/* The devices' script takes a port down, and up again: with events, for both ends. */
static void test_events(void)
{
	struct verbs_event ev;
	struct verbs_ep *ep;
	struct ends e;
	uint64_t end = rig_now() + PATIENT;
	unsigned seed = 0;

	ends_open(&e, false);
	ep = verbs_ep_of(e.asleep->ep);
	other = 1;
	/* Nothing else ends a queue pair here. */
	while (!rung(&e) && rig_now() < end)
		if (!all_move(&e, seed++))
			tap_bail("nothing moves");
	tap_ok(rung(&e), "a port went: who sleeps wants to hear of it");
	tap_ok(until(&e, false, is_back), "it came back");
	ep->turns = 0;
	ep->async_due = ep->watch_due = UINT64_MAX;
	rig_step(e.asleep);
	tap_ok(!verbs_dev_event(ep->dom->dev, other, &ev),
	       "who sleeps has read all events in its first turn");
	ep->async_due = ep->watch_due = 0;
	tap_ok(packets_go(&e) && all_move(&e, seed), "all is as before");
	tap_ok(e.a.downs + e.b.downs == 0, "the link is the same");
	ends_close(&e);
}

int main(void)
{
	if (getenv("ASLEEP_EVENTS")) {
		test_events();
		return tap_done();
	}
	for (int back = 0; back < 2; back++) {
		struct ends e;

		ends_open(&e, back);
		test_lanes(&e);
		test_channel(&e);
		if (back)
			test_asked(&e);
		if (verbs_ep_of(e.a.ep)->dom->dev->rails == 2)
			test_return(&e);
		tap_ok(all_move(&e, 50), "%s: and so do puts and gets", e.who);
		tap_ok(e.a.segment_errs + e.b.segment_errs == 0, "%s: nothing failed",
		       e.who);
		tap_ok(e.a.downs + e.b.downs == 0, "%s: the link is the same", e.who);
		ends_close(&e);
	}
	return tap_done();
}
