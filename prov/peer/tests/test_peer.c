/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer table over a wire that does nothing but what the test says. */
#include "config.h"

#include <arpa/inet.h>

#include <rdma/fi_errno.h>

#include "prov/peer/peer.h"
#include "util/tap.h"

struct fake_link {
	struct wire_link_base base;
	bool hung_up;
};

static struct {
	uint64_t now;
	int dial_result; /* of the next dials */
	int dials;
	uint64_t dial_times[256];
	struct fake_link links[256];
	int link_count;
	int ups, endings, downs, last_err, hung_up, finis;
	bool no_memory; /* for what the user's object holds */
} fake;

static const struct wire_ops fake_wire;

static int fake_dial(struct wire_ep *ep, const struct wire_addr *to, void *ctx,
		     struct wire_link **link)
{
	struct fake_link *l = &fake.links[fake.link_count];

	(void)ep;
	fake.dial_times[fake.dials++ % 256] = fake.now;
	if (fake.dial_result) {
		return fake.dial_result;
	}
	fake.link_count++;
	memset(l, 0, sizeof(*l));
	l->base.ops = &fake_wire;
	l->base.peer_ctx = ctx;
	l->base.peer = *to;
	*link = (struct wire_link *)l;
	return 0;
}

static void fake_hangup(struct wire_link *link)
{
	((struct fake_link *)link)->hung_up = true;
}

static const struct wire_ops fake_wire = {
	.name = "fake", .dial = fake_dial, .hangup = fake_hangup};

static bool on_init(void *arg, struct peer *p)
{
	(void)arg;
	(void)p;
	return !fake.no_memory;
}

static void on_fini(void *arg, struct peer *p)
{
	(void)arg;
	(void)p;
	fake.finis++;
}

static void on_up(void *arg, struct peer *p)
{
	(void)arg;
	(void)p;
	fake.ups++;
}

static void on_ending(void *arg, struct peer *p)
{
	(void)arg;
	(void)p;
	fake.endings++;
}

static void on_down(void *arg, struct peer *p, int err)
{
	(void)arg;
	(void)p;
	fake.downs++;
	fake.last_err = err;
}

static void on_hung_up(void *arg, struct wire_link *link)
{
	(void)arg;
	(void)link;
	fake.hung_up++;
}

static uint64_t on_now(void *arg)
{
	(void)arg;
	return fake.now;
}

static const struct peer_ops ops = {.size = sizeof(struct peer),
				    .init = on_init,
				    .fini = on_fini,
				    .up = on_up,
				    .ending = on_ending,
				    .down = on_down,
				    .hung_up = on_hung_up,
				    .now = on_now};

static struct wire_addr addr_of(uint16_t port)
{
	struct wire_addr a = {0};

	a.in.sin_family = AF_INET;
	a.in.sin_port = htons(port);
	a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void start(struct peer_table *t)
{
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	if (peer_table_init(t, &ops, NULL, &fake_wire, NULL, 10000000000ULL, 42)) {
		tap_bail("no memory");
	}
}

/* A link that the peer opened. */
static struct wire_link *accept_from(struct peer_table *t, uint16_t port, uint64_t inc)
{
	struct fake_link *l = &fake.links[fake.link_count++];

	memset(l, 0, sizeof(*l));
	l->base.ops = &fake_wire;
	l->base.peer = addr_of(port);
	l->base.peer_incarnation = inc;
	peer_link_up(t, (struct wire_link *)l);
	return (struct wire_link *)l;
}

static void test_table(void)
{
	struct peer_table t;
	bool good = true;

	start(&t);
	for (int i = 1; i <= 3000; i++) {
		struct wire_addr a = addr_of(i);

		good &= peer_find(&t, &a) == NULL;
		good &= peer_get(&t, &a) != NULL;
	}
	for (int i = 1; i <= 3000; i++) {
		struct wire_addr a = addr_of(i);
		struct peer *p = peer_find(&t, &a);

		good &= p && wire_addr_equal(&p->addr, &a) && peer_get(&t, &a) == p;
		if (i % 2) {
			peer_free(&t, p);
			good &= peer_find(&t, &a) == NULL;
		}
	}
	tap_ok(good && t.count == 1500,
	       "3000 peers found by address, half of them freed");
	fake.no_memory = true;
	good = !peer_get(&t, &(struct wire_addr){.in = addr_of(3001).in}) &&
	       t.count == 1500;
	peer_table_fini(&t);
	tap_ok(good && fake.finis == 3000, "what each was given is taken back once");
}

static void test_refused(void)
{
	struct wire_addr a = addr_of(1);
	struct peer_table t;
	struct peer *p;
	uint64_t longest = 0;

	start(&t);
	fake.dial_result = -FI_ECONNREFUSED;
	p = peer_get(&t, &a);
	peer_connect(&t, p);
	tap_ok(p->state == PEER_WAITING && fake.downs == 0, "refused: waits");
	tap_ok(peer_table_due(&t) <= fake.now + 1000000, "the first back-off is short");
	while (!fake.downs && fake.dials < 1000) {
		fake.now = peer_table_due(&t);
		peer_table_progress(&t);
	}
	for (int i = 1; i < fake.dials && i < 256; i++) {
		uint64_t gap = fake.dial_times[i] - fake.dial_times[i - 1];

		longest = gap > longest ? gap : longest;
	}
	tap_ok(fake.dials > 40 && fake.dials < 150 && longest <= 200000000,
	       "%d dials, at most %" PRIu64 " ms apart", fake.dials, longest / 1000000);
	tap_ok(fake.downs == 1 && fake.last_err == -FI_ECONNREFUSED &&
		       p->state == PEER_DOWN,
	       "given up, refused");
	tap_is_int((int64_t)(fake.now / 1000000), 10000, "after 10 s (ms)");
	tap_ok(peer_table_due(&t) == UINT64_MAX, "nothing is due any more");
	fake.dial_result = 0;
	peer_connect(&t, p);
	tap_ok(p->state == PEER_DIALLING, "the next operation dials anew");
	peer_table_fini(&t);
}

static void test_fatal(void)
{
	static const int errs[] = {-FI_EHOSTUNREACH, -FI_EACCES};
	struct wire_addr a = addr_of(1);
	struct peer_table t;

	for (int i = 0; i < 2; i++) {
		struct peer *p;

		start(&t);
		fake.dial_result = errs[i];
		p = peer_get(&t, &a);
		peer_connect(&t, p);
		tap_ok(p->state == PEER_DOWN && fake.dials == 1 &&
			       fake.last_err == errs[i],
		       "%s is not retried", fi_strerror(-errs[i]));
		peer_table_fini(&t);
	}
}

static void test_silence(void)
{
	struct wire_addr a = addr_of(1);
	struct peer_table t;
	struct peer *p;

	start(&t);
	p = peer_get(&t, &a);
	peer_connect(&t, p);
	fake.now = peer_table_due(&t);
	peer_table_progress(&t);
	tap_ok(p->state == PEER_DOWN && fake.last_err == -FI_ETIMEDOUT &&
		       fake.links[0].hung_up,
	       "no answer: hung up at the deadline");
	peer_table_fini(&t);
}

static void test_simultaneous(void)
{
	struct wire_addr a = addr_of(1);
	struct wire_link *accepted, *dialled;
	struct peer_table t;
	struct peer *p;

	start(&t);
	p = peer_get(&t, &a);
	peer_connect(&t, p);
	dialled = p->dialled;
	accepted = accept_from(&t, 1, 7);
	tap_ok(p->state == PEER_UP && p->link == accepted && fake.ups == 1,
	       "an accepted link overtakes the dial");
	wire_link_base(dialled)->peer_incarnation = 7;
	peer_link_up(&t, dialled);
	tap_ok(p->link == accepted && fake.ups == 1 && peer_link_is_current(p, dialled),
	       "the dialled one is a second link, transmission stays");
	peer_link_down(&t, dialled, -FI_ECONNRESET);
	tap_ok(p->state == PEER_ENDING && fake.endings == 1 && fake.downs == 0 &&
		       p->link == accepted,
	       "either link's death is the beginning of the end");
	tap_ok(peer_link_is_current(p, accepted) && peer_has_links(p),
	       "what comes on the other one still counts");
	peer_link_down(&t, accepted, -FI_ESHUTDOWN);
	tap_ok(!peer_has_links(p) && p->state == PEER_DOWN && fake.downs == 1 &&
		       fake.last_err == -FI_ECONNRESET,
	       "until it is gone as well: down, for the first one's reason");
	peer_table_fini(&t);
}

/* A peer that loses one link and keeps the other for ever. */
static void test_ending_deadline(void)
{
	struct wire_link *first, *second;
	struct wire_addr a = addr_of(1);
	struct peer_table t;
	struct peer *p;

	start(&t);
	first = accept_from(&t, 1, 7);
	second = accept_from(&t, 1, 7);
	p = peer_find(&t, &a);
	peer_link_down(&t, first, -FI_ECONNRESET);
	tap_ok(peer_table_due(&t) == fake.now + PEER_ENDING_MAX, "an end has a deadline");
	peer_table_progress(&t);
	tap_ok(p->state == PEER_ENDING, "not before it");
	fake.now += PEER_ENDING_MAX;
	peer_table_progress(&t);
	tap_ok(p->state == PEER_DOWN && fake.downs == 1 && !peer_has_links(p),
	       "then the peer is down");
	peer_table_progress(&t);
	tap_ok(((struct fake_link *)second)->hung_up, "and what is left is hung up");
	first = accept_from(&t, 1, 7);
	accept_from(&t, 1, 7);
	peer_drop(&t, first, -FI_EIO);
	tap_ok(p->state == PEER_DOWN && fake.downs == 2 && fake.last_err == -FI_EIO,
	       "a peer that broke the protocol is down at once");
	accept_from(&t, 1, 7);
	first = accept_from(&t, 1, 7);
	peer_link_down(&t, first, -FI_ESHUTDOWN);
	accept_from(&t, 1, 8);
	tap_ok(p->state == PEER_UP && fake.downs == 3 && p->incarnation == 8,
	       "a new incarnation does not wait for the end of the old one");
	peer_table_fini(&t);
}

static void test_incarnations(void)
{
	struct wire_addr a = addr_of(1);
	struct wire_link *first, *second;
	struct peer_table t;
	struct peer *p;

	start(&t);
	first = accept_from(&t, 1, 100);
	p = peer_find(&t, &a);
	second = accept_from(&t, 1, 200);
	tap_ok(fake.downs == 1 && fake.ups == 2 && p->link == second && p->epoch == 2 &&
		       p->incarnation == 200,
	       "a new incarnation ends the epoch of the old one and takes its place");
	peer_link_down(&t, first, -FI_ECONNRESET);
	tap_ok(p->state == PEER_UP && fake.downs == 1,
	       "the old link's end changes nothing");
	peer_drop(&t, second, -FI_EIO);
	tap_ok(p->state == PEER_DOWN && fake.last_err == -FI_EIO && t.doomed_count == 1,
	       "dropped");
	peer_table_progress(&t);
	tap_ok(((struct fake_link *)second)->hung_up && fake.hung_up == 1,
	       "and hung up outside of upcalls");
	for (int i = 0; i < PEER_EXTRA_LINKS + 4; i++) {
		accept_from(&t, 1, 300);
	}
	tap_is_int(t.doomed_count, 3, "links without end are hung up");
	for (int i = 0; i < 150; i++) {
		accept_from(&t, 1, 300);
	}
	fake.hung_up = 0;
	peer_table_progress(&t);
	tap_is_int(fake.hung_up, 153, "all of them, however many come at once");
	tap_is_str(peer_state_name(p->state), "up", "state name");
	tap_is_str(peer_state_name(PEER_STATES), "?", "no such state");
	peer_table_fini(&t);
}

int main(void)
{
	test_table();
	test_refused();
	test_fatal();
	test_silence();
	test_simultaneous();
	test_ending_deadline();
	test_incarnations();
	return tap_done();
}
