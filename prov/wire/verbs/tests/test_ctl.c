/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of the control channel: two ends, queue pairs between them that die at any
 * moment with whatever is on them, and every packet is delivered once and in order (B1);
 * what one class leaves for the other (B3); bytes of the head.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prov/wire/verbs/verbs_ctl.h"
#include "prov/wire/verbs/verbs_msg.h"
#include "util/tap.h"

#define WINDOW	VERBS_CTL_WINDOW_MAX
#define PACKETS 4000

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 11) % sides;
}

/* One direction of a queue pair: what is on its way, in order. */
struct flight {
	uint64_t what[4 * WINDOW]; /* heads */
	uint32_t first, count;
};

struct end {
	struct verbs_ctl ctl;
	struct flight out; /* to the other end */
	uint64_t begins;   /* number of its first packet */
	uint64_t delivered;
	uint64_t queued;
	uint32_t acks_lying; /* that the other hasn't looked at */
	uint32_t acks_most;
	uint32_t lying; /* packets and acknowledgements, likewise */
	uint32_t room;	/* largest window that the other end gave */
	bool crowded;	/* more than receives were posted */
};

static bool broken;
static uint32_t plain; /* packets that were taken in few steps */

static void flight_add(struct end *e, enum verbs_ctl_kind kind, uint64_t number)
{
	struct flight *f = &e->out;

	if (f->count == 4 * WINDOW) {
		broken = true;
		return;
	}
	verbs_ctl_write(&f->what[(f->first + f->count++) % (4 * WINDOW)], kind,
			e->ctl.grant, number, verbs_ctl_tell(&e->ctl));
	if (++e->lying > e->room + VERBS_CTL_SPARE)
		e->crowded = true;
	if (kind == VERBS_CTL_ACK && ++e->acks_lying > e->acks_most)
		e->acks_most = e->acks_lying;
}

static void send_some(struct end *e)
{
	uint64_t number;

	if (e->queued < PACKETS && verbs_ctl_room(&e->ctl, VERBS_CTL_DATA)) {
		if (verbs_ctl_take(&e->ctl) != e->begins + e->queued)
			broken = true;
		e->queued++;
	}
	if (dice(4) && verbs_ctl_next(&e->ctl, &number))
		flight_add(e, VERBS_CTL_PACKET, number);
	if (verbs_ctl_due(&e->ctl))
		flight_add(e, VERBS_CTL_ACK, 0);
}

/* The first of what `from` sent arrives at `to`. */
static void arrive(struct end *from, struct end *to)
{
	struct flight *f = &from->out;
	struct verbs_ctl_said said;
	const uint64_t *head;
	int ret;

	if (f->count == 0)
		return;
	head = &f->what[f->first];
	if (verbs_ctl_parse(&to->ctl, head, sizeof(*head), &said)) {
		broken = true;
		return;
	}
	f->first = (f->first + 1) % (4 * WINDOW);
	f->count--;
	from->acks_lying -= said.kind == VERBS_CTL_ACK;
	from->lying--;
	ret = dice(2) && verbs_ctl_plain(&to->ctl, head);
	plain += (uint32_t)ret;
	if (ret == 0) {
		if (verbs_ctl_acked(&to->ctl, said.ack, said.window))
			broken = true;
		if (said.kind == VERBS_CTL_ACK)
			return;
		ret = verbs_ctl_arrived(&to->ctl, said.number);
	} else if (said.kind != VERBS_CTL_PACKET ||
		   (int64_t)(to->ctl.una - said.ack) < 0) {
		broken = true;
	}
	if (ret < 0)
		broken = true;
	if (ret == 1 && said.number != from->begins + to->delivered++)
		broken = true;
}

/* The queue pair dies with what is on it, or after some of that was delivered but not
 * acknowledged; then both say what they heard. */
static void die(struct end *a, struct end *b)
{
	for (uint32_t n = dice(WINDOW); n > 0; n--)
		arrive(a, b);
	a->out.count = b->out.count = 0;
	a->acks_lying = b->acks_lying = 0;
	a->lying = b->lying = 0;
	if (verbs_ctl_resume(&a->ctl, atomic_load(&b->ctl.heard)) ||
	    verbs_ctl_resume(&b->ctl, atomic_load(&a->ctl.heard)))
		broken = true;
}

/* The receiver posts more, and then says so. */
static void grow(struct end *from, struct end *to)
{
	uint32_t more = from->ctl.grant + 1 + dice(8);

	if (from->ctl.grant >= VERBS_CTL_WINDOW_MAX)
		return;
	if (more >
	    VERBS_CTL_WINDOW_MAX) /* else chance decides whether it is ever reached */
		more = VERBS_CTL_WINDOW_MAX;
	verbs_ctl_grant(&from->ctl, more);
	to->room = more;
}

/* As if so many packets had gone before: the 16 bits that travel wrap on the way. */
static void begin(struct end *from, struct end *to, uint64_t begins)
{
	struct verbs_ctl *c = &from->ctl;

	from->begins = begins;
	c->una = c->sent = c->high = c->nxt = begins;
	to->ctl.told = begins;
	atomic_store(&to->ctl.heard, begins);
}

static void test_replay(uint32_t window)
{
	static struct end a, b;
	uint32_t deaths = 0, steps = 0;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	verbs_ctl_init(&a.ctl, window, window);
	verbs_ctl_init(&b.ctl, window, window);
	begin(&a, &b, dice(3) * 65536u + 65536u - dice(PACKETS));
	begin(&b, &a, dice(2) * dice(PACKETS));
	a.room = b.room = window;
	while ((a.delivered < PACKETS || b.delivered < PACKETS) && !broken &&
	       ++steps < 100 * PACKETS) {
		send_some(&a);
		send_some(&b);
		if (dice(3))
			arrive(&a, &b);
		if (dice(3))
			arrive(&b, &a);
		if (dice(200) == 0)
			grow(&a, &b);
		if (dice(200) == 0)
			grow(&b, &a);
		if (dice(100) == 0) {
			die(&a, &b);
			deaths++;
		}
	}
	tap_ok(!broken, "B1: nothing is missing, repeated or out of order");
	tap_is_int((long long)a.delivered, PACKETS, "B1: all of one end's arrived");
	tap_is_int((long long)b.delivered, PACKETS, "B1: all of the other's");
	tap_ok(deaths > 10 && a.ctl.replays > 0, "B1: %u deaths, %llu sent again", deaths,
	       (unsigned long long)a.ctl.replays);
	tap_ok(plain > PACKETS / 4, "%u packets were taken in few steps", plain);
	plain = 0;
	tap_ok(a.acks_most <= VERBS_CTL_SPARE && b.acks_most <= VERBS_CTL_SPARE,
	       "acknowledgements fit the spare receives (%u, %u)", a.acks_most,
	       b.acks_most);
	tap_ok(!a.crowded && !b.crowded, "A7: no more is sent than receives are posted");
	tap_is_int(window == WINDOW ? WINDOW : a.ctl.window, WINDOW,
		   "a window grew to the largest");
}

static void test_classes(void)
{
	struct verbs_ctl c;
	uint64_t number;
	uint32_t n = 0;

	verbs_ctl_init(&c, WINDOW, WINDOW);
	while (verbs_ctl_room(&c, VERBS_CTL_DATA) && verbs_ctl_take(&c) < WINDOW)
		n++;
	tap_is_int(n, WINDOW - WINDOW / 4, "B3: data leaves a quarter");
	tap_ok(verbs_ctl_room(&c, VERBS_CTL_CONTROL), "B3: control goes on");
	while (verbs_ctl_room(&c, VERBS_CTL_CONTROL))
		verbs_ctl_take(&c);
	tap_ok(verbs_ctl_room(&c, VERBS_CTL_OWN), "B3: the wire's own goes on behind it");
	while (verbs_ctl_room(&c, VERBS_CTL_OWN))
		verbs_ctl_take(&c);
	tap_is_int((long long)c.nxt, WINDOW, "and that is the window");
	while (verbs_ctl_next(&c, &number))
		;
	tap_is_int(verbs_ctl_acked(&c, WINDOW + 1, 0), -EPROTO,
		   "what wasn't sent can't have been heard");
	tap_is_int(verbs_ctl_acked(&c, WINDOW, 0), 0, "all was heard");
	tap_ok(verbs_ctl_room(&c, VERBS_CTL_DATA), "there is room again");
	tap_is_int(verbs_ctl_resume(&c, WINDOW - 1), -EPROTO,
		   "a peer doesn't forget what it heard");
	tap_is_int(verbs_ctl_arrived(&c, 1), -EPROTO, "a gap is an error");
	tap_is_int(verbs_ctl_arrived(&c, 0), 1, "the next one is not");
	tap_is_int(verbs_ctl_arrived(&c, 0), 0, "seen before");
	for (uint64_t i = 1; i < WINDOW; i++)
		verbs_ctl_arrived(&c, i);
	tap_is_int(verbs_ctl_arrived(&c, WINDOW), -EPROTO,
		   "A7: one more than it was let go is an error");
	verbs_ctl_tell(&c);
	tap_is_int(verbs_ctl_arrived(&c, WINDOW), 1, "and not behind an acknowledgement");
}

/* The smallest window still leaves something for each class. */
static void test_small(void)
{
	struct verbs_ctl c;

	verbs_ctl_init(&c, VERBS_CTL_WINDOW_MIN, VERBS_CTL_WINDOW_MIN);
	tap_ok(c.limit[VERBS_CTL_DATA] > 0 &&
		       c.limit[VERBS_CTL_DATA] < c.limit[VERBS_CTL_CONTROL] &&
		       c.limit[VERBS_CTL_CONTROL] < c.limit[VERBS_CTL_OWN],
	       "B3: in the smallest window too");
	verbs_ctl_acked(&c, 0, 255);
	tap_is_int(c.window, VERBS_CTL_WINDOW_MAX,
		   "no window is larger than what is kept");
	verbs_ctl_acked(&c, 0, VERBS_CTL_WINDOW_MIN);
	tap_is_int(c.window, VERBS_CTL_WINDOW_MAX, "and none shrinks");
}

static bool plain_is(struct verbs_ctl *c, enum verbs_ctl_kind kind, uint32_t window,
		     uint64_t number, uint64_t ack, int wrong)
{
	uint8_t b[8];

	verbs_ctl_write(b, kind, window, number, ack);
	if (wrong >= 0)
		b[wrong] ^= 1;
	return verbs_ctl_plain(c, b);
}

/* Nothing but the usual is taken in few steps. c: WINDOW both ways, fresh. */
static void test_plain(struct verbs_ctl *c)
{
	uint64_t number;
	int taken = 0;

	verbs_ctl_take(c);
	verbs_ctl_next(c, &number);
	for (int at = 6; at < 8; at++)
		taken += plain_is(c, VERBS_CTL_PACKET, WINDOW, 0, 0, at);
	for (int kind = 0; kind < 256; kind++)
		taken += kind != VERBS_CTL_PACKET &&
			 plain_is(c, (enum verbs_ctl_kind)kind, WINDOW, 0, 0, -1);
	taken += plain_is(c, VERBS_CTL_PACKET, WINDOW + 1, 0, 0, -1);
	taken += plain_is(c, VERBS_CTL_PACKET, WINDOW, 1, 0, -1);
	taken += plain_is(c, VERBS_CTL_PACKET, WINDOW, UINT64_MAX, 0, -1);
	taken += plain_is(c, VERBS_CTL_PACKET, WINDOW, 0, 2, -1);
	taken += plain_is(c, VERBS_CTL_PACKET, WINDOW, 0, UINT64_MAX, -1);
	tap_is_int(taken, 0, "what is unusual, or can't be, isn't taken in few steps");
	tap_ok(c->una == 0 && atomic_load(&c->heard) == 0, "and changes nothing");
	tap_ok(plain_is(c, VERBS_CTL_PACKET, WINDOW, 0, 1, -1) && c->una == 1 &&
		       atomic_load(&c->heard) == 1,
	       "what is usual is");
	for (uint64_t i = 1; i < WINDOW; i++)
		taken += plain_is(c, VERBS_CTL_PACKET, WINDOW, i, 1, -1);
	tap_is_int(taken, WINDOW - 1, "all that was let go");
	tap_ok(!plain_is(c, VERBS_CTL_PACKET, WINDOW, WINDOW, 1, -1), "A7: and no more");
}

static void test_bytes(void)
{
	uint8_t b[64] = {0};
	struct verbs_ctl c;
	struct verbs_ctl_said said = {0};
	struct verbs_msg m = {.op = VERBS_MSG_OPEN,
			      .lane = 3,
			      .incarnation = 7,
			      .qpn = 0x123456,
			      .psn = 9,
			      .rail = 1},
			 back;
	int wrong = 0;

	verbs_ctl_init(&c, WINDOW, WINDOW);
	verbs_ctl_write(b, VERBS_CTL_PACKET, 32, 5, 4);
	tap_is_int(verbs_ctl_parse(&c, b, 16, &said), 0, "a head");
	tap_ok(said.kind == VERBS_CTL_PACKET && said.len == 8 && said.number == 5 &&
		       said.ack == 4 && said.window == 32,
	       "says what was written");
	tap_is_int(verbs_ctl_parse(&c, b, 7, &said), -EPROTO, "short");
	verbs_ctl_write(b, VERBS_CTL_PACKET, 0, UINT64_MAX, UINT64_MAX);
	tap_ok(verbs_ctl_parse(&c, b, 8, &said) == 0 &&
		       verbs_ctl_acked(&c, said.ack, 0) == -EPROTO &&
		       verbs_ctl_arrived(&c, said.number) == -EPROTO,
	       "nothing was before the first number");
	verbs_ctl_write(b, VERBS_CTL_ACK, 0, 0, 0);
	tap_is_int(verbs_ctl_parse(&c, b, 9, &said), -EPROTO,
		   "nothing follows an acknowledgement");
	verbs_ctl_write(b, VERBS_CTL_ACK, 0, 1, 0);
	tap_is_int(verbs_ctl_parse(&c, b, 8, &said), -EPROTO, "and it has no number");
	for (int at = 6; at < 8; at++) {
		verbs_ctl_write(b, VERBS_CTL_PACKET, 0, 0, 0);
		b[at] = 1;
		tap_is_int(verbs_ctl_parse(&c, b, 16, &said), -EPROTO,
			   "what nobody has a meaning for");
	}
	test_plain(&c);
	verbs_ctl_write(b, VERBS_CTL_KINDS, 0, 0, 0);
	tap_is_int(verbs_ctl_parse(&c, b, 16, &said), -EPROTO, "unknown kind");
	verbs_msg_write(b, &m);
	tap_is_int(verbs_msg_read(b, sizeof(struct verbs_msg_bytes), &back), 0,
		   "a message about a lane");
	tap_ok(back.op == m.op && back.lane == 3 && back.incarnation == 7 &&
		       back.qpn == 0x123456 && back.psn == 9 && back.rail == 1,
	       "says what was written");
	for (size_t len = 0; len < sizeof(b); len++)
		wrong += len != sizeof(struct verbs_msg_bytes) &&
			 verbs_msg_read(b, len, &back) == 0;
	tap_is_int(wrong, 0, "no other length is one");
	b[0] = 0;
	tap_is_int(verbs_msg_read(b, sizeof(struct verbs_msg_bytes), &back), -EPROTO,
		   "unknown message");
}

int main(void)
{
	const char *text = getenv("WEFT_TEST_SEED");

	seed = text ? strtoull(text, NULL, 0) : (uint64_t)getpid() * 2654435761u + 1;
	tap_diag("seed %llu", (unsigned long long)seed);
	test_replay(WINDOW);
	test_replay(VERBS_CTL_WINDOW_MIN);
	test_classes();
	test_small();
	test_bytes();
	return tap_done();
}
