/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is long does not stand before what is short: of a put, and of memory that a peer
 * reads, no more is made ready than may leave, so that a get that is asked for meanwhile
 * goes out, and what it brings comes in beside.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "prov/wire/uet/tests/uet_peek.h"
#include "prov/wire/uet/tests/uet_side.h"
#include "prov/wire/uet/uet_leave.h"

#define PART 256 /* bytes of a packet here, so that there are many */

static struct side a, b;

/* Nothing leaves until let_go(). */
static void hold(void)
{
	uet_turn_take(&a.ep->turn);
	a.ep->busy = true;
}

static void let_go(void)
{
	a.ep->busy = false;
	uet_turn_give(&a.ep->turn);
}

/* Packets that may be ready. */
static uint32_t most_ready(void)
{
	const uint32_t wide = uet_peek_wide(a.link->pdc);

	return wide > 32 ? wide : 32;
}

static void settle(void)
{
	const uint64_t end = uet_ep_now() + WAIT_NS;
	bool quiet = false;

	while (!quiet && uet_ep_now() < end) {
		both_turn(&a, &b);
		uet_turn_take(&a.ep->turn);
		quiet = uet_link_quiet(a.link);
		uet_turn_give(&a.ep->turn);
	}
	if (!quiet)
		tap_bail("the link has no rest");
}

/* A get behind a put is asked for while the put is not all cut. */
static void test_put(uint8_t *local)
{
	struct iovec out = {local, MEMORY / 2}, in = {local + MEMORY / 2, 1000};
	struct wire_segment put = {.local = &out, .local_count = 1, .cookie = &a};
	struct wire_segment get = {.local = &in, .local_count = 1, .cookie = &a};
	const unsigned before = a.segments;
	uint32_t ready, asked;
	bool cut;

	put.len = out.iov_len;
	put.remote = (struct wire_remote){.addr = (uintptr_t)b.memory, .key = b.key};
	get.len = in.iov_len;
	get.remote = (struct wire_remote){.addr = (uintptr_t)b.memory + MEMORY / 2,
					  .key = b.key};
	hold();
	a.link->part = PART;
	if (uet_wire_ops.put(a.link, &put))
		tap_bail("no put");
	uet_link_pump(a.link, uet_ep_now());
	ready = uet_pdc_open_packets(a.link->pdc);
	tap_ok(ready > 0 && ready <= most_ready() && !list_empty(&a.link->pending),
	       "no more of a put is ready than may leave");
	if (uet_wire_ops.get(a.link, &get))
		tap_bail("no get");
	uet_link_pump(a.link, uet_ep_now());
	asked = uet_pdc_open_packets(a.link->pdc) - ready;
	cut = list_empty(&a.link->pending);
	tap_ok(asked == (get.len + PART - 1) / PART && list_empty(&a.link->asking) &&
		       !cut,
	       "a get goes out before the rest of it");
	if (ready > most_ready() || cut)
		tap_diag("%u packets ready, %u may be, %u of the get", ready,
			 most_ready(), asked);
	uet_leave(a.ep, uet_ep_now());
	let_go();
	tap_ok(both_until(&a, &b, &a.segments, before + 2) &&
		       memcmp(b.memory, local, put.len) == 0 &&
		       memcmp(b.memory + MEMORY / 2, in.iov_base, get.len) == 0,
	       "and all of both arrives");
}

/* Memory that the peer reads, as if it had asked. */
static void test_give(const uint8_t *local)
{
	struct uet_give *give = &a.link->give[0];
	uint32_t ready, after;
	void *pkt;

	settle();
	hold();
	*give = (struct uet_give){.used = true,
				  .len = MEMORY,
				  .part = PART,
				  .from = local,
				  .node = give->node};
	list_push_back(&a.link->giving, &give->node);
	uet_link_pump(a.link, uet_ep_now());
	ready = uet_pdc_open_packets(a.link->pdc);
	tap_ok(give->cut > 0 && give->cut < give->len && ready <= most_ready(),
	       "no more of what a peer reads is ready than may leave");
	pkt = uet_wire_ops.pkt_reserve(a.link, 8, WIRE_CONTROL);
	if (!pkt)
		tap_bail("no packet");
	memset(pkt, 0, 8);
	uet_wire_ops.pkt_commit(a.link, pkt, 8);
	uet_link_pump(a.link, uet_ep_now());
	after = uet_pdc_open_packets(a.link->pdc);
	tap_is_int(after, ready + 1, "a packet goes out before the rest of it");
	let_go();
}

int main(void)
{
	uint8_t *local = malloc(MEMORY);

	if (!local)
		tap_bail("no memory");
	for (size_t i = 0; i < MEMORY; i++)
		local[i] = (uint8_t)(i * 7 + (i >> 8));
	side_open(&a, NULL);
	side_open(&b, NULL);
	for (size_t i = 0; i < MEMORY; i++)
		b.memory[i] = (uint8_t)(i * 3 + (i >> 9));
	if (!both_dial(&a, &b, &wire_ep_base(b.ep)->addr))
		tap_bail("no link");
	settle();
	test_put(local);
	test_give(local);
	side_close(&a);
	side_close(&b);
	free(local);
	return tap_done();
}
