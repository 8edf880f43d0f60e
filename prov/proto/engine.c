/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine as a whole: open, enable, close, packets in, progress. */
#include "config.h"

#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/keytab.h"
#include "prov/mem/params.h"
#include "prov/mem/regcache.h"
#include "prov/proto/ep.h"
#include "prov/proto/stage.h"

/* Packets per progress pass. */
#define PROGRESS_BUDGET 64

typedef void (*pkt_handler)(struct proto_ep *ep, struct proto_peer *pp,
			    struct wire_link *link, const struct pkt_view *v);

static const pkt_handler handlers[] = {
	[PKT_EAGER] = eager_arrived,   [PKT_RTS] = rts_arrived,
	[PKT_CTS] = cts_arrived,       [PKT_DATA] = data_arrived,
	[PKT_FIN] = fin_arrived,       [PKT_ACK] = ack_arrived,
	[PKT_CREDIT] = credit_arrived, [PKT_EVENT] = event_arrived,
	[PKT_CHUNK] = chunk_arrived,   [PKT_TAKEN] = taken_arrived,
	[PKT_JOIN] = join_arrived,     [PKT_COUNT] = count_arrived,
	[PKT_ATOMIC] = atomic_arrived, [PKT_RESULT] = result_arrived,
};
_Static_assert(sizeof(handlers) / sizeof(handlers[0]) == PKT_KINDS, "a handler per kind");

void proto_violation(struct proto_ep *ep, struct wire_link *link)
{
	ep->bad_packets++;
	peer_drop(&ep->peers, link, -FI_EIO);
}

void proto_give_up(struct proto_ep *ep, struct proto_peer *pp)
{
	pp->lost_memory = true;
	ep->busy = true;
	proto_activate(ep, pp);
}

/* What was promised to leave (injected messages, atomics) may wait for these. */
static bool is_answer(uint8_t kind)
{
	return kind == PKT_RESULT || kind == PKT_CTS || kind == PKT_TAKEN ||
	       kind == PKT_FIN || kind == PKT_ACK;
}

void proto_packet(struct proto_ep *ep, struct wire_link *link, const void *pkt,
		  size_t len)
{
	struct proto_peer *pp = wire_link_base(link)->peer_ctx;
	struct pkt_view v;

	if (!pp) {
		return;
	}
	if (pkt_parse(pkt, len, &v)) {
		proto_violation(ep, link);
		return;
	}
	if (ep->closing && !is_answer(v.kind)) {
		return;
	}
	handlers[v.kind](ep, pp, link, &v);
}

/* A put of the peer, with what a packet would have said after it. */
static void on_arrived(void *arg, struct wire_link *link, const struct wire_notice *n,
		       uint64_t len)
{
	struct proto_peer *pp = wire_link_base(link)->peer_ctx;
	struct proto_ep *ep = arg;
	struct pkt_view v;

	if (!pp || ep->closing) {
		return;
	}
	if (pkt_parse_notice(n->op, n->data, len, &v)) {
		proto_violation(ep, link);
		return;
	}
	handlers[v.kind](ep, pp, link, &v);
}

static void on_link_up(void *arg, struct wire_link *link)
{
	struct proto_ep *ep = arg;

	peer_link_up(&ep->peers, link);
}

const struct proto_blame *proto_ep_blame(const struct proto_ep *ep)
{
	return &ep->blame;
}

/* What was on its way ends before its link does. */
void proto_blame_set(struct proto_ep *ep, const struct proto_peer *pp)
{
	ep->blame.peer = &pp->peer.addr;
	ep->blame.why = ep->down_why;
	if (!ep->blame.why && pp->peer.state == PEER_UP && pp->peer.link)
		ep->blame.why = wire_link_base(pp->peer.link)->why;
}

void proto_blame_clear(struct proto_ep *ep)
{
	ep->blame = (struct proto_blame){NULL, NULL};
}

static void on_link_down(void *arg, struct wire_link *link, int err)
{
	struct proto_ep *ep = arg;

	ep->down_why = wire_link_base(link)->why;
	peer_link_down(&ep->peers, link, err);
	ep->down_why = NULL;
}

static const struct wire_events events = {
	.link_up = on_link_up,
	.link_down = on_link_down,
	.packet = eager_packet,
	.segment_done = proto_segment_done,
	.put_over = proto_put_over,
	.atomic_done = proto_atomic_done,
	.arrived = on_arrived,
};

/* ---- local memory that a wire wants registered */

static int mem_add(void *arg, void *start, size_t len, void **handle)
{
	const struct proto_ep *ep = arg;

	return ep->wire->mem_add(ep->wep, start, len, handle);
}

static void mem_drop(void *arg, void *handle)
{
	const struct proto_ep *ep = arg;

	ep->wire->mem_drop(ep->wep, handle);
}

static int regs_open(struct proto_ep *ep)
{
	static const struct mem_reg_ops ops = {.add = mem_add, .drop = mem_drop};
	const struct prov_params *p = prov_params();
	const struct mem_regcache_attr attr = {.ops = &ops,
					       .arg = ep,
					       .max_count =
						       (uint32_t)p->mr_cache_max_count,
					       .max_size = p->mr_cache_max_size};

	return ep->wire->caps.local ? mem_regcache_open(&attr, &ep->regs) : 0;
}

/* What is under way is over with the endpoint, so its memory may go before. */
static void wire_close(struct proto_ep *ep)
{
	if (ep->regs) {
		mem_regcache_close(ep->regs);
		ep->regs = NULL;
	}
	ep->wire->ep_close(ep->wep);
}

static void ep_free(struct proto_ep *ep)
{
	stage_close(ep->stage);
	peer_table_fini(&ep->peers);
	receiver_fini(&ep->own);
	pool_fini(&ep->tx);
	pool_fini(&ep->arrivals);
	payload_store_fini(&ep->payloads);
	tx_extras_fini(ep);
	if (ep->keys) {
		mem_keyview_close(ep->keys);
	}
	free(ep->map);
	free(ep);
}

int proto_ep_open(const struct proto_attr *attr, struct proto_ep **out)
{
	struct wire_ep_attr wa = {.addr = attr->addr,
				  .addr_any = attr->addr_any,
				  .incarnation = attr->incarnation,
				  .keys = attr->keys,
				  .arena = attr->arena,
				  .no_imports = !attr->devices || attr->no_imports,
				  .near = attr->near,
				  .far = attr->far,
				  .events = &events};
	struct proto_ep *ep = calloc(1, sizeof(*ep));
	int ret;

	if (!ep) {
		return -FI_ENOMEM;
	}
	ep->wire = attr->wire;
	ep->up = attr->up;
	ep->arg = attr->arg;
	ep->order_rma = attr->order_rma;
	ep->order_msg_after_rma = attr->order_msg_after_rma;
	ep->order_atomic = attr->order_atomic;
	ep->order_after_put = attr->order_after_put;
	ep->atomics = attr->atomics;
	ep->atomic_access = attr->atomic_access;
	ep->inject_size = attr->inject_size;
	ep->eager_size = attr->eager_size;
	ep->bulk_size = attr->bulk_size;
	ep->joint_size = attr->joint_size;
	ep->unexpected_max = attr->unexpected_max;
	ep->tx_size = attr->tx_size;
	ep->rx_size = attr->rx_size;
	ep->tx_max = attr->tx_max ? attr->tx_max : PROTO_OPS_MAX;
	ep->rx_max = attr->rx_max ? attr->rx_max : PROTO_OPS_MAX;
	ep->incarnation = attr->incarnation;
	ep->connect_timeout = attr->connect_timeout;
	ep->min_multi_recv = 16;
	list_init(&ep->receives);
	list_init(&ep->active);
	list_init(&ep->reap);
	list_init(&ep->orphan_txs);
	list_init(&ep->orphan_arrivals);
	wa.arg = ep;
	ret = attr->devices ? stage_open(&ep->busy, &ep->stage) : 0;
	if (ret) {
		ep_free(ep);
		return ret;
	}
	ret = attr->atomic_access ? mem_keyview_own(attr->keys, &ep->keys) : 0;
	if (!ret) {
		ret = attr->wire->ep_open(&wa, &ep->wep);
	}
	if (ret) {
		ep_free(ep);
		return ret;
	}
	ret = regs_open(ep);
	if (!ret) {
		ret = peer_table_init(&ep->peers, &proto_peer_ops, ep, ep->wire, ep->wep,
				      ep->connect_timeout, attr->incarnation);
	}
	if (ret) {
		wire_close(ep);
		ep_free(ep);
		return ret;
	}
	*out = ep;
	return 0;
}

/* In small steps, so that a moment of many costs little for good; more than a pass asks
 * for is there from the beginning. */
static int arrivals_init(struct proto_ep *ep)
{
	int ret = pool_init(&ep->arrivals, sizeof(struct arrival), 6);

	while (!ret && ep->arrivals.free_count < 4 * PROGRESS_BUDGET) {
		ret = pool_grow(&ep->arrivals);
	}
	return ret;
}

/* All that posting usually needs is taken here, once. */
static int resources_alloc(struct proto_ep *ep)
{
	if (!ep->rcv) {
		if (receiver_init(&ep->own, ep->rx_size, ep->rx_max)) {
			return -FI_ENOMEM;
		}
		ep->own.min_multi_recv = ep->min_multi_recv;
		ep->rcv = &ep->own;
	}
	if (tx_pool_init(ep) || arrivals_init(ep)) {
		return -FI_ENOMEM;
	}
	return 0;
}

int proto_enable(struct proto_ep *ep)
{
	int ret = resources_alloc(ep);

	if (ret) { /* as before the call, so that it can be repeated */
		if (ep->rcv == &ep->own) {
			receiver_fini(&ep->own);
			ep->rcv = NULL;
		}
		pool_fini(&ep->tx);
		pool_fini(&ep->arrivals);
		tx_extras_fini(ep);
		return ret;
	}
	ep->enabled = true;
	receiver_join(ep);
	return 0;
}

void proto_share(struct proto_ep *ep, struct receiver *rcv)
{
	ep->rcv = rcv;
}

void proto_set_up(struct proto_ep *ep, const struct proto_up *up)
{
	ep->up = up;
}

void proto_ep_close(struct proto_ep *ep)
{
	proto_set_closing(ep);
	wire_close(ep);
	receiver_abandon(ep);
	ep_free(ep);
}

void proto_set_closing(struct proto_ep *ep)
{
	bool first = !ep->closing && ep->enabled;

	if (first) {
		receiver_leave(ep);
	}
	ep->closing = true;
	if (first) {
		joints_abandon(ep);
	}
}

bool proto_is_written(const struct proto_ep *ep)
{
	return ep->joint_orphans != 0;
}

bool proto_is_drained(const struct proto_ep *ep)
{
	/* The first also to peers that are still being dialled. */
	if (ep->injected || proto_is_written(ep)) {
		return false;
	}
	list_foreach (n, &ep->active) {
		struct proto_peer *pp = container_of(n, struct proto_peer, active);

		if (!list_empty(&pp->owed) || !list_empty(&pp->msgs) || pp->counts.rows ||
		    !list_empty(&pp->atomics) || !list_empty(&pp->results)) {
			return false;
		}
	}
	return true;
}

struct wire_ep *proto_wire_ep(const struct proto_ep *ep)
{
	return ep->wep;
}

struct proto_peer *proto_mapped(const struct proto_ep *ep, uint64_t fi_addr)
{
	return likely(fi_addr < ep->map_len) ? ep->map[fi_addr] : NULL;
}

struct proto_peer *proto_map(struct proto_ep *ep, uint64_t fi_addr,
			     const struct wire_addr *addr)
{
	struct proto_peer *pp;

	if (fi_addr >= ep->map_len) {
		size_t len = ep->map_len ? ep->map_len : 16;
		struct proto_peer **map;

		while (len <= fi_addr) {
			len *= 2;
		}
		map = realloc(ep->map, len * sizeof(*map));
		if (!map) {
			return NULL;
		}
		for (size_t i = ep->map_len; i < len; i++) {
			map[i] = NULL;
		}
		ep->map = map;
		ep->map_len = len;
	}
	pp = proto_peer_of(peer_get(&ep->peers, addr));
	if (pp && !ep->map[fi_addr]) {
		ep->map[fi_addr] = pp;
		proto_peer_ref(pp);
	}
	return pp;
}

struct proto_peer *proto_named(struct proto_ep *ep, const struct wire_addr *addr)
{
	return proto_peer_of(peer_get(&ep->peers, addr));
}

/* The peers of that address, one context after the other; NULL: no more. Only who has met
 * peers with contexts looks further than the first. */
static struct proto_peer *next_context(struct proto_ep *ep, struct wire_addr *addr,
				       uint32_t *step)
{
	while (*step < 1 + (ep->contexts ? 2 * PROTO_CONTEXTS_MAX : 0)) {
		uint32_t i = (*step)++;
		struct peer *p;

		addr->context = (uint16_t)(i <= PROTO_CONTEXTS_MAX
						   ? i
						   : PROTO_CONTEXT_TX + i -
							     PROTO_CONTEXTS_MAX - 1);
		p = peer_find(&ep->peers, addr);
		if (p) {
			return proto_peer_of(p);
		}
	}
	return NULL;
}

void proto_inserted(struct proto_ep *ep, uint64_t fi_addr, const struct wire_addr *addr)
{
	struct wire_addr at = *addr;
	struct proto_peer *pp;
	uint32_t step = 0;

	while ((pp = next_context(ep, &at, &step))) {
		if (fi_addr < pp->index) {
			proto_peer_index_set(ep, pp, fi_addr);
		}
	}
}

/* The entry is still there: the lowest other mapping of the same peer, if there is one.
 */
static uint64_t other_index(const struct proto_ep *ep, const struct proto_peer *pp,
			    uint64_t but)
{
	for (size_t i = 0; i < ep->map_len; i++) {
		if (i != but && ep->map[i] == pp) {
			return i;
		}
	}
	return FI_ADDR_NOTAVAIL;
}

void proto_renamed(struct proto_ep *ep, uint64_t fi_addr, const struct wire_addr *addr)
{
	struct wire_addr at = *addr;
	struct proto_peer *pp;
	uint32_t step = 0;

	while ((pp = next_context(ep, &at, &step))) {
		if (pp->index == fi_addr) {
			proto_peer_index_set(ep, pp, fi_addr);
		}
		if (pp->ident->index == fi_addr) {
			proto_peer_index_set(ep, pp->ident, fi_addr);
		}
	}
}

void proto_removed(struct proto_ep *ep, uint64_t fi_addr, const struct wire_addr *addr)
{
	struct wire_addr at = *addr;
	struct proto_peer *pp;
	uint64_t other = FI_ADDR_NOTAVAIL;
	uint32_t step = 0;

	while ((pp = next_context(ep, &at, &step))) {
		if (!at.context) { /* the others have no mapping */
			other = other_index(ep, pp, fi_addr);
		}
		if (pp->index == fi_addr) {
			proto_peer_index_set(ep, pp, other);
		}
		if (pp->ident->index == fi_addr) {
			proto_peer_index_set(ep, pp->ident,
					     other_index(ep, pp->ident, fi_addr));
		}
	}
	pp = proto_mapped(ep, fi_addr);
	if (pp) {
		ep->map[fi_addr] = NULL;
		proto_peer_unref(ep, pp);
	}
}

void proto_set_min_multi_recv(struct proto_ep *ep, size_t len)
{
	ep->min_multi_recv = len;
	ep->own.min_multi_recv = len;
}

size_t proto_min_multi_recv(const struct proto_ep *ep)
{
	return ep->min_multi_recv;
}

size_t proto_tx_left(const struct proto_ep *ep)
{
	return ep->tx.free_count;
}

size_t proto_rx_left(const struct proto_ep *ep)
{
	return receiver_left(ep->rcv);
}

/* Control first, then messages, then bulk (rule B3). */
static int peer_work(struct proto_ep *ep, struct proto_peer *pp)
{
	int moved;

	if (!proto_peer_is_up(pp)) {
		list_remove(&pp->active);
		return 0;
	}
	if (unlikely(pp->lost_memory)) {
		pp->lost_memory = false;
		peer_drop(&ep->peers, pp->peer.link, -FI_EIO);
		return 1;
	}
	moved = owed_run(ep, pp);
	moved += results_run(ep, pp);
	moved += rma_run(ep, pp);
	moved += counts_run(ep, pp);
	moved += atomics_run(ep, pp);
	moved += msgs_run(ep, pp);
	moved += streams_run(ep, pp);
	moved += bulks_run(ep, pp);
	moved += bulks_in_run(ep, pp);
	moved += helps_run(ep, pp);
	moved += pulls_run(ep, pp);
	if (list_empty(&pp->owed) && !pp->credit_owed && list_empty(&pp->rma) &&
	    list_empty(&pp->msgs) && list_empty(&pp->streams) && list_empty(&pp->pulls) &&
	    list_empty(&pp->bulks) && list_empty(&pp->helps) &&
	    list_empty(&pp->atomics) && list_empty(&pp->results) &&
	    !pp->bulk_in.watched && !pp->bulk_in.owes_taken && !pp->counts.rows) {
		list_remove(&pp->active);
	}
	return moved;
}

/* Arrivals for a pass; outside of upcalls, so that headers never find the pool empty. */
static __attribute__((noinline, cold)) bool arrivals_grow(struct proto_ep *ep)
{
	return pool_grow(&ep->arrivals) == 0 || ep->arrivals.free_count > PROGRESS_BUDGET;
}

static inline bool arrivals_ready(struct proto_ep *ep)
{
	return likely(ep->arrivals.free_count >= 2 * PROGRESS_BUDGET) ||
	       arrivals_grow(ep);
}

/* Whatever a pass may have to do beside taking what the wire has. */
static __attribute__((noinline)) int chores_run(struct proto_ep *ep)
{
	int moved = 0;

	list_foreach_safe (n, next, &ep->active) {
		moved += peer_work(ep, container_of(n, struct proto_peer, active));
	}
	moved += peer_table_progress(&ep->peers);
	if (unlikely(ep->joint_orphans)) {
		moved += joints_settle(ep);
	}
	if (unlikely(!list_empty(&ep->rcv->unasked))) {
		moved += matcher_run(ep);
	}
	proto_reap(ep);
	ep->chores = !list_empty(&ep->active) || !list_empty(&ep->reap) ||
		     ep->joint_orphans || !list_empty(&ep->rcv->unasked);
	return moved;
}

static __attribute__((noinline)) int chores_after(struct proto_ep *ep, int moved)
{
	return moved + chores_run(ep);
}

/* There is no memory for what may come: nothing is taken from the wire. */
static __attribute__((noinline)) int proto_progress_full(struct proto_ep *ep)
{
	return ep->chores || ep->peers.chores ? chores_run(ep) : 0;
}

int proto_progress(struct proto_ep *ep)
{
	int moved;

	ep->busy = false;
	if (unlikely(!arrivals_ready(ep))) {
		return proto_progress_full(ep);
	}
	moved = ep->wire->progress(ep->wep, PROGRESS_BUDGET);
	if (likely(!ep->chores && !ep->peers.chores)) {
		return moved;
	}
	return chores_after(ep, moved);
}

bool proto_is_busy(const struct proto_ep *ep)
{
	return ep->busy;
}

int proto_arm(struct proto_ep *ep)
{
	return ep->busy ? -FI_EAGAIN : ep->wire->arm(ep->wep);
}

uint64_t proto_due(const struct proto_ep *ep)
{
	return peer_table_due(&ep->peers);
}

uint64_t proto_look_due(const struct proto_ep *ep)
{
	return ep->wire->look_due ? ep->wire->look_due(ep->wep) : UINT64_MAX;
}
