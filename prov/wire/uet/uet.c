/* SPDX-License-Identifier: BSD-2-Clause */
/* The uet wire's table. */
#include "config.h"

#include "prov/wire/uet/uet.h"

#include "prov/wire/uet/uet_ep.h"
#include "prov/wire/uet/uet_lend.h"
#include "prov/wire/uet/uet_link.h"
#include "prov/wire/uet/uet_rma.h"

/* Every call has its turn (uet_turn.h); those that upcalls make are inside of another. */

static int dial(struct wire_ep *ep, const struct wire_addr *to, void *peer_ctx,
		struct wire_link **link)
{
	int ret;

	uet_turn_take(&ep->turn);
	ret = uet_dial(ep, to, peer_ctx, link);
	uet_turn_give(&ep->turn);
	return ret;
}

static void hangup(struct wire_link *link)
{
	struct uet_turn *turn = &link->base.ep->turn;

	uet_turn_take(turn);
	uet_hangup(link);
	uet_turn_give(turn);
}

static void *pkt_reserve(struct wire_link *link, size_t len, enum wire_class cls)
{
	struct uet_turn *turn = &link->base.ep->turn;
	void *at;

	uet_turn_take(turn);
	at = uet_pkt_reserve(link, len, cls);
	uet_turn_give(turn);
	return at;
}

static void pkt_commit(struct wire_link *link, void *pkt, size_t len)
{
	struct uet_turn *turn = &link->base.ep->turn;

	uet_turn_take(turn);
	uet_pkt_commit(link, pkt, len);
	uet_turn_give(turn);
}

static int put(struct wire_link *link, const struct wire_segment *seg)
{
	struct uet_turn *turn = &link->base.ep->turn;
	int ret;

	uet_turn_take(turn);
	ret = uet_put(link, seg);
	uet_turn_give(turn);
	return ret;
}

static int get(struct wire_link *link, const struct wire_segment *seg)
{
	struct uet_turn *turn = &link->base.ep->turn;
	int ret;

	uet_turn_take(turn);
	ret = uet_get(link, seg);
	uet_turn_give(turn);
	return ret;
}

static uint64_t lend(struct wire_link *link, const void *start, size_t len)
{
	struct uet_turn *turn = &link->base.ep->turn;
	uint64_t ret;

	uet_turn_take(turn);
	ret = uet_lend(link, start, len);
	uet_turn_give(turn);
	return ret;
}

static void unlend(struct wire_ep *ep, uint64_t name)
{
	uet_turn_take(&ep->turn);
	uet_unlend(ep, name);
	uet_turn_give(&ep->turn);
}

static uint32_t events(struct wire_link *link)
{
	struct uet_turn *turn = &link->base.ep->turn;
	uint32_t ret;

	uet_turn_take(turn);
	ret = uet_events(link);
	uet_turn_give(turn);
	return ret;
}

static int progress(struct wire_ep *ep, int budget)
{
	int ret;

	uet_turn_take(&ep->turn);
	ret = uet_progress(ep, budget);
	uet_turn_give(&ep->turn);
	return ret;
}

static int arm(struct wire_ep *ep)
{
	int ret;

	uet_turn_take(&ep->turn);
	ret = uet_arm(ep);
	uet_turn_give(&ep->turn);
	return ret;
}

static uint64_t look_due(struct wire_ep *ep)
{
	uint64_t ret;

	uet_turn_take(&ep->turn);
	ret = uet_look_due(ep);
	uet_turn_give(&ep->turn);
	return ret;
}

static uint32_t counters(struct wire_ep *ep, struct wire_counter *at, uint32_t max)
{
	struct uet_pds_stats s;
	uint32_t n = 0;

	uet_turn_take(&ep->turn);
	s = *uet_pds_stats(ep->pds);
	uet_turn_give(&ep->turn);

	const struct wire_counter all[] = {
		{"uet.sent", s.sent},	      {"uet.resent", s.resent},
		{"uet.timeouts", s.timeouts}, {"uet.duplicates", s.duplicates},
		{"uet.failed", s.failed},
	};

	for (; n < sizeof(all) / sizeof(all[0]) && n < max; n++)
		at[n] = all[n];
	return n;
}

/* As long as a link's context is the same. */
static void link_lanes(const struct wire_link *link, const struct uet_sock *sock,
		       wire_lane_fn *each, void *arg)
{
	const struct uet_paths *p = uet_pdc_paths(link->pdc);

	for (uint32_t left = p->used; left; left &= left - 1) {
		const uint32_t i = (uint32_t)__builtin_ctz(left);
		const struct uet_path *path = &p->path[i];
		const struct wire_lane out = {.peer = &link->base.peer,
					      .number = i,
					      .rail = sock->path[i].rail,
					      .up = !path->retired,
					      .packets = path->sent,
					      .bytes = path->bytes,
					      .lost = path->lost,
					      .retired = path->retirements};

		each(arg, &out);
	}
}

static void lanes(struct wire_ep *ep, wire_lane_fn *each, void *arg)
{
	uet_turn_take(&ep->turn);
	list_foreach (pos, &ep->links) {
		const struct wire_link *link = container_of(pos, struct wire_link, node);

		if (link->pdc && link->state == UET_LINK_UP)
			link_lanes(link, ep->sock, each, arg);
	}
	uet_turn_give(&ep->turn);
}

const struct wire_ops uet_wire_ops = {
	.name = "uet",
	.what = "UDP, in the style of Ultra Ethernet's transport",
	.remote = true,
	.asked = true,
	.single = true,
	.caps = {.lanes = 1,
		 .max_packet = UET_PACKET,
		 .max_segment = (size_t)1 << 30,
		 .passive = true,
		 .raw = true,
		 .lends = true},
	.ep_open = uet_ep_open,
	.ep_close = uet_ep_close,
	.counters = counters,
	.lanes = lanes,
	.dial = dial,
	.hangup = hangup,
	.pkt_reserve = pkt_reserve,
	.pkt_commit = pkt_commit,
	.put = put,
	.get = get,
	.lend = lend,
	.unlend = unlend,
	.events = events,
	.progress = progress,
	.arm = arm,
	.fd = uet_fd,
	.look_due = look_due,
	.quiesce = uet_quiesce,
};
