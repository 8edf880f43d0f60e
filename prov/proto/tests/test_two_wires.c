/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine over two wires at once: some peers are reached by one that keeps order and
 * needs nothing registered, the others by one that does and keeps none, as it is with
 * shared memory and a network. test_two_wires SEED repeats one random case.
 */
#include "config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/regcache.h"
#include "prov/proto/ep.h"
#include "prov/proto/tests/sim.h"
#include "prov/wire/joined.h"
#include "util/tap.h"

#define FLAGS (PROTO_TAGGED | PROTO_DATA | PROTO_REPORT)
#define KEY   1 /* of sim: all of its region */

static struct mock_net near_net;
static struct wire_ops near_ops;
static const struct mock_net *clock_net; /* the far one's clock is everybody's */
static int together;			 /* endpoints 0 to here - 1 are on one host */

/* Addresses are 127.0.0.1, and ports 1000 and up. */
static int index_of(const struct wire_addr *a)
{
	return ntohs(a->in.sin_port) - 1000;
}

static int near_open(const struct wire_ep_attr *attr, struct wire_ep **ep)
{
	struct mock_net *net = mock_net;
	int ret;

	mock_net = &near_net;
	ret = mock_wire.ep_open(attr, ep);
	mock_net = net;
	return ret;
}

static int near_dial(struct wire_ep *ep, const struct wire_addr *to, void *ctx,
		     struct wire_link **link)
{
	bool mine = index_of(&wire_ep_base(ep)->addr) < together;

	if (mine != (index_of(to) < together)) {
		return -FI_EHOSTUNREACH;
	}
	return mock_wire.dial(ep, to, ctx, link);
}

static int near_progress(struct wire_ep *ep, int budget)
{
	near_net.now = clock_net->now;
	return mock_wire.progress(ep, budget);
}

static void two_init(struct sim *s, uint64_t seed, int eps, int on_one_host)
{
	sim_init(s, seed, eps);
	for (int i = 0; i < eps; i++) {
		proto_ep_close(s->eps[i].ep);
	}
	near_net = s->net;
	near_net.random ^= 77;
	near_net.caps.ordered = seed & 1;
	near_ops = mock_wire;
	near_ops.ep_open = near_open;
	near_ops.dial = near_dial;
	near_ops.progress = near_progress;
	near_ops.mem_add = NULL;
	near_ops.mem_drop = NULL;
	near_ops.mem_name = NULL;
	clock_net = &s->net;
	together = on_one_host;
	s->net.caps.local = true;
	s->net.caps.bulk = 0;
	s->net.late_segment = 60;
	s->attr.wire = &joined_wire_ops;
	s->attr.near = &near_ops;
	s->attr.far = mock_wire_local();
	for (int i = 0; i < eps; i++) {
		sim_ep_open(s, i);
	}
}

static bool two_fini(struct sim *s)
{
	bool good;

	sim_check(s);
	good = s->bad == 0 && s->open == 0;
	for (int i = 0; i < s->ep_count; i++) {
		mem_regcache_flush(s->eps[i].ep->regs);
	}
	good &= s->net.mems == s->net.mems_dropped && near_net.mems == 0;
	sim_fini(s);
	return good;
}

static uint64_t errors_of(const struct sim *s)
{
	uint64_t errors = 0;

	for (int i = 0; i < s->op_count; i++) {
		errors += s->ops[i].err != 0;
	}
	return errors;
}

/* Messages of every protocol, writes and reads from 0 to `to` and back. */
static void traffic(struct sim *s, int to)
{
	for (int i = 0; i < 12; i++) {
		size_t len = 8 + (size_t)i * i * 1500;

		sim_recv(s, to, 0, len, (uint64_t)i, 0, PROTO_TAGGED | PROTO_REPORT);
		sim_send(s, 0, to, len, (uint64_t)i, FLAGS);
		sim_rma(s, 0, to, len, 64, KEY, PROTO_WRITE | PROTO_DATA | PROTO_REPORT);
		sim_rma(s, to, 0, len, 64, KEY, PROTO_REPORT);
		sim_settle(s);
	}
}

static void test_by_which(void)
{
	uint64_t packets;
	struct sim s;

	two_init(&s, 1, 3, 2);
	traffic(&s, 1);
	tap_is_int((int64_t)errors_of(&s), 0, "to a peer on this host: no error");
	tap_ok(near_net.packets > 0 && s.net.packets == 0, "all by the near wire");
	tap_is_int((int64_t)s.net.mems, 0, "nothing is registered");
	packets = near_net.packets;
	traffic(&s, 2);
	tap_is_int((int64_t)errors_of(&s), 0, "to one elsewhere: no error");
	tap_ok(near_net.packets == packets && s.net.packets > 0, "all by the far wire");
	tap_ok(s.net.named > 0, "by registered memory");
	tap_ok(two_fini(&s), "nothing is left");
}

static bool storm(uint64_t seed)
{
	struct sim s;
	bool good;

	two_init(&s, seed, 3, 2);
	s.net.refuse_mem = seed % 3 == 0 ? 20 : 0;
	s.net.refuse_segment = near_net.refuse_segment = 10;
	s.net.refuse_room = near_net.refuse_room = 20;
	s.net.refuse_dial = near_net.refuse_dial = seed % 5 == 0 ? 30 : 0;
	good = sim_storm(&s, 150, seed % 2 ? 3 : 0);
	good &= near_net.packets > 0 && s.net.packets > 0;
	return two_fini(&s) && good;
}

int main(int argc, char **argv)
{
	uint64_t first = (uint64_t)time(NULL), bad = 0;
	int count = tap_short() ? 8 : 40;

	if (argc > 1) {
		tap_ok(storm(strtoull(argv[1], NULL, 0)), "storm of seed %s", argv[1]);
		return tap_done();
	}
	test_by_which();
	for (int i = 0; i < count; i++) {
		if (!storm(first + (uint64_t)i)) {
			tap_diag("test_two_wires %" PRIu64, first + (uint64_t)i);
			bad++;
		}
	}
	tap_is_int((int64_t)bad, 0,
		   "random schedules over both, with and without deaths");
	return tap_done();
}
