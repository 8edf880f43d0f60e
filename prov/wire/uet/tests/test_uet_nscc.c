/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window: flows share one queue on a virtual clock, with and without marks; and what
 * must not lower it. Rules H2 and those of README.md.
 */
#include "config.h"

#include "prov/wire/uet/uet_nscc.h"
#include "util/tap.h"

#include <stdlib.h>

#define US    UINT64_C(1000)
#define MS    UINT64_C(1000000)
#define BASE  (20 * US)
#define LINK  UINT64_C(5000000000)
#define SIZE  4200u
#define FLOWS 16u
#define AIR   4096u

static const struct uet_nscc_config config = {.link = LINK,
					      .first_rtt = BASE,
					      .jitter = 5 * US,
					      .mtu = SIZE,
					      .ack_bytes = 16384};

static struct uet_nscc start(void)
{
	struct uet_nscc cc;

	if (!uet_nscc_init(&cc, &config, MS))
		tap_bail("a good configuration is refused");
	return cc;
}

struct packet {
	uint64_t sent;
	uint64_t acked;
	uint32_t flow;
	bool ce;
};

/* One queue of LINK bytes each second, BASE there and back; first in, first out. */
struct bottleneck {
	struct uet_nscc cc[FLOWS];
	uint64_t got[FLOWS]; /* bytes, counted from half-time on */
	uint64_t total[FLOWS];
	struct packet air[AIR];
	uint32_t first, count;
	uint64_t free_at;
	uint64_t longest; /* queueing delay, after half-time */
	uint64_t marks;
};

static struct bottleneck net;

static void send_all(uint32_t flows, uint64_t now, bool marks)
{
	bool any = true;

	while (any) {
		any = false;
		for (uint32_t f = 0; f < flows && net.count < AIR; f++) {
			struct packet *p = &net.air[(net.first + net.count) % AIR];
			uint64_t wait = net.free_at > now ? net.free_at - now : 0;

			if (!uet_nscc_can_send(&net.cc[f]))
				continue;
			uet_nscc_sent(&net.cc[f], SIZE);
			net.free_at = now + wait + SIZE * UINT64_C(1000000000) / LINK;
			*p = (struct packet){now, net.free_at + BASE, f,
					     marks && wait > BASE / 2};
			net.count++;
			any = true;
		}
	}
}

static void take(struct packet p, bool marks, bool counted)
{
	struct uet_nscc_ack ack = {.has_received = true,
				   .ce = p.ce,
				   .path_marks = marks,
				   .has_rtt = true,
				   .sent_at = p.sent,
				   .rtt = p.acked - p.sent};
	uint64_t wait = p.acked - p.sent - BASE;

	net.total[p.flow] += SIZE;
	ack.received = (uint32_t)((net.total[p.flow] + 255) / 256) & 0xffffff;
	uet_nscc_ack(&net.cc[p.flow], &ack, p.acked);
	if (!counted)
		return;
	net.got[p.flow] += SIZE;
	net.marks += p.ce;
	net.longest = wait > net.longest ? wait : net.longest;
}

/* Flow f begins f / 4 ms late: the first have all of the queue by then. */
static void run(uint32_t flows, bool marks, uint64_t ns)
{
	uint64_t now = MS;

	memset(&net, 0, sizeof(net));
	for (uint32_t f = 0; f < flows; f++)
		net.cc[f] = start();
	while (now < MS + ns) {
		uint64_t begun = (now - MS) / (MS / 4) + 1;
		uint64_t go = UINT64_MAX;
		struct packet p;

		for (uint32_t f = 0; f < flows; f++) {
			uet_nscc_tick(&net.cc[f], now);
			if (net.cc[f].waits && net.cc[f].go_at < go)
				go = net.cc[f].go_at;
		}
		send_all(begun < flows ? (uint32_t)begun : flows, now, marks);
		if (go < net.air[net.first].acked || net.count == 0) {
			now = go;
			continue;
		}
		p = net.air[net.first];
		net.first = (net.first + 1) % AIR;
		net.count--;
		now = p.acked;
		take(p, marks, now > MS + ns / 2);
	}
}

static void test_shares(uint32_t flows, bool marks, double fair)
{
	const uint64_t ns = 60 * MS;
	double sum = 0, squares = 0, use, jain;

	run(flows, marks, ns);
	for (uint32_t f = 0; f < flows; f++) {
		sum += (double)net.got[f];
		squares += (double)net.got[f] * (double)net.got[f];
	}
	use = sum / ((double)LINK * (double)(ns / 2) / 1e9);
	jain = sum * sum / (flows * squares);
	tap_diag("%u flows, %s: use %.3f, fairness %.3f, longest wait %.1f us, %lu marks",
		 flows, marks ? "marked" : "never marked", use, jain,
		 (double)net.longest / 1000, (unsigned long)net.marks);
	tap_ok(use > 0.9 && use < 1.01, "%u flows use the link", flows);
	tap_ok(jain > fair, "and share it");
	/* Windows of the floor, one packet each, or twice the target, where that is more.
	 */
	tap_ok(net.longest < 6 * (BASE + config.jitter) +
				     2 * flows * SIZE * UINT64_C(1000000000) / LINK,
	       "H2: and the queue stays short, %s", marks ? "by marks" : "without one");
	tap_ok(!marks == (net.marks == 0), "as it was meant");
}

static void ack(struct uet_nscc *cc, uint64_t bytes, uint64_t rtt, uint64_t now)
{
	struct uet_nscc_ack a = {.has_received = true,
				 .received = (uint32_t)(bytes / 256) & 0xffffff,
				 .has_rtt = rtt > 0,
				 .rtt = rtt};

	uet_nscc_ack(cc, &a, now);
}

/* A peer that doesn't run for a while answers late, to everything at once. */
static void test_paused(void)
{
	struct uet_nscc cc = start();
	uint64_t before, n = 0;

	ack(&cc, 0, BASE, 2 * MS);
	before = cc.cwnd;
	while (uet_nscc_can_send(&cc)) {
		uet_nscc_sent(&cc, 4096);
		n++;
	}
	uet_nscc_lost(&cc, 4096, false, 22 * MS);
	uet_nscc_sent(&cc, 4096);
	for (uint64_t i = 1; i <= n; i++)
		ack(&cc, i * 4096, 50 * MS, 52 * MS);
	tap_is_int((int64_t)cc.cwnd, (int64_t)before,
		   "a peer that didn't run doesn't cost the window");
	tap_ok(cc.inflight == 0 && cc.count.late == n, "nothing is left under way");
	for (uint64_t t = 0; t < 400; t++)
		ack(&cc, (n + t) * 4096, 50 * MS, 60 * MS + t * MS);
	tap_ok(cc.cwnd < before, "but one that is slow for good does");
}

static void test_loss(void)
{
	struct uet_nscc cc = start();
	uint64_t before = cc.cwnd;

	for (uint32_t i = 0; i < 100; i++)
		uet_nscc_lost(&cc, SIZE, true, 10 * MS);
	tap_ok(cc.cwnd >= before / 2 && cc.cwnd < before / 2 + 2 * SIZE,
	       "a burst that is lost halves the window, and no more");
	for (uint32_t i = 0; i < 100; i++)
		uet_nscc_lost(&cc, SIZE, true, 20 * MS + i * MS);
	tap_ok(cc.cwnd > 0 && cc.cwnd < SIZE / 8, "loss that goes on empties it");
	cc.inflight = 0;
	tap_ok(!uet_nscc_can_send(&cc), "a packet waits then");
	uet_nscc_tick(&cc, 120 * MS + cc.soft * SIZE / cc.cwnd);
	tap_ok(uet_nscc_can_send(&cc), "but for so many round trips as it is windows");
}

static void test_counter(void)
{
	struct uet_nscc cc = start();
	struct uet_nscc_ack a = {.has_received = true};

	cc.received = 0xfffff0;
	cc.inflight = 0x40 * 256;
	a.received = 0x10;
	tap_is_int((int64_t)uet_nscc_ack(&cc, &a, MS), 0x20 * 256,
		   "bytes received are counted over the wrap");
	a.received = 0xfffff8;
	tap_is_int((int64_t)uet_nscc_ack(&cc, &a, MS), 0,
		   "an ack that is late takes nothing back");
	tap_is_int(cc.inflight, 0x20 * 256, "nor gives");
}

static void test_penalty(void)
{
	struct uet_nscc cc = start();
	struct uet_nscc_ack a = {.has_received = true, .pend = 64};
	uint64_t before = cc.cwnd;

	cc.inflight = (int64_t)before;
	a.received = 64;
	uet_nscc_ack(&cc, &a, 2 * MS);
	tap_ok(cc.cwnd < before, "a receiver that can't keep up lowers it");
	a.pend = 0;
	a.restore = true;
	a.received = 128;
	uet_nscc_ack(&cc, &a, 3 * MS);
	tap_is_int((int64_t)cc.cwnd, (int64_t)before, "and gives it back");
}

static void test_trimmed(void)
{
	struct uet_nscc cc = start();
	uint64_t before = cc.cwnd;

	uet_nscc_sent(&cc, SIZE);
	uet_nscc_nack(&cc, SIZE, false, 2 * MS);
	tap_ok(cc.cwnd == before && cc.inflight == 0,
	       "a refusal says nothing of the network");
	uet_nscc_sent(&cc, SIZE);
	uet_nscc_nack(&cc, SIZE, true, 2 * MS);
	tap_ok(cc.cwnd == before - SIZE && cc.inflight == 0,
	       "a packet that was cut does");
}

static void test_base(void)
{
	struct uet_nscc_config c = config;
	struct uet_nscc cc = start();

	uet_nscc_base(&cc, 8 * US, 2 * MS);
	tap_is_int((int64_t)cc.base_rtt, 8 * US, "the base is what was measured");
	uet_nscc_base(&cc, 30 * US, 3 * MS);
	tap_is_int((int64_t)cc.base_rtt, 8 * US, "the shortest");
	for (uint64_t s = 0; s < 30; s++)
		uet_nscc_base(&cc, 30 * US, (s + 1) * 1000 * MS);
	tap_is_int((int64_t)cc.base_rtt, 30 * US, "of late: a way may become longer");
	c.base_rtt = 25 * US;
	tap_ok(uet_nscc_init(&cc, &c, MS), "one is configured");
	uet_nscc_base(&cc, 30 * US, 2 * MS);
	tap_is_int((int64_t)cc.base_rtt, 25 * US, "then it is at most that");
	c.link = 0;
	tap_ok(!uet_nscc_init(&cc, &c, MS), "a link that carries nothing is refused");
}

/* A way that holds more than the first window has: it grows, as far as it may. */
static void test_widest(void)
{
	struct uet_nscc_config c = config;
	struct uet_nscc cc = start();
	uint64_t first = cc.cwnd, now = MS;
	struct uet_nscc_ack ack = {.has_received = true, .has_rtt = true, .rtt = BASE};

	tap_ok(first == cc.max_wnd, "a window begins as wide as it may ever be");
	c.widest = 4;
	tap_ok(uet_nscc_init(&cc, &c, MS) && cc.cwnd == first && cc.max_wnd == 4 * first,
	       "one that may grow to four of those begins as one");
	for (uint32_t i = 0; i < 100000; i++) {
		uet_nscc_sent(&cc, SIZE);
		ack.received = (ack.received + SIZE / 256) & 0xffffff;
		uet_nscc_ack(&cc, &ack, now += US);
	}
	tap_ok(cc.cwnd == cc.max_wnd && cc.max_wnd == 4 * first,
	       "and gets there while nothing waits");
	uet_nscc_base(&cc, BASE / 2, now);
	tap_ok(cc.cwnd <= cc.max_wnd, "a way that is shorter than was thought: no wider");
}

/* Sends all that the window takes; returns how many packets asked. */
static uint32_t fill(struct uet_nscc *cc, uint32_t *sent)
{
	uint32_t asked = 0;

	for (*sent = 0; uet_nscc_can_send(cc); ++*sent) {
		uet_nscc_sent(cc, SIZE);
		if (uet_nscc_wants_ack(cc)) {
			uet_nscc_asked(cc);
			asked++;
		}
	}
	return asked;
}

static void test_asks(void)
{
	struct uet_nscc_config c = config;
	struct uet_nscc cc;
	uint32_t sent, asked, least;

	c.widest = 4;
	if (!uet_nscc_init(&cc, &c, MS))
		tap_bail("a good configuration is refused");
	least = (uint32_t)(cc.cwnd / (16384 + SIZE));
	asked = fill(&cc, &sent);
	tap_ok(asked >= least && asked < sent, "an answer is asked for after ack_bytes");
	tap_ok(!uet_nscc_can_send(&cc) && uet_nscc_has_room(&cc, 8 * SIZE),
	       "a window that others may share doesn't wait for whole pieces");
	cc.inflight = 0;
	cc.cwnd = cc.max_wnd;
	asked = fill(&cc, &sent);
	tap_ok(asked >= 4 && asked <= 8, "of a wide one some packets ask");
	tap_ok(!uet_nscc_has_room(&cc, 8 * SIZE), "a piece waits until it has room");
	cc.inflight = (int64_t)cc.cwnd - 8 * SIZE;
	tap_ok(uet_nscc_has_room(&cc, 8 * SIZE), "and leaves then");
	cc.inflight = (int64_t)cc.cwnd / 2;
	tap_ok(uet_nscc_has_room(&cc, cc.cwnd), "or when half of the window is empty");
	cc.inflight = 0;
	cc.cwnd = 16383;
	asked = fill(&cc, &sent);
	tap_is_int(asked, sent, "in a narrow one each packet asks");
}

/* So many of a stream's packets are lost, with that delay: the window after it. */
static uint64_t after_losses(unsigned one_in, uint64_t delay)
{
	struct uet_nscc cc = start();
	uint64_t now = MS;
	struct uet_nscc_ack ack = {.has_received = true, .has_rtt = true, .rtt = BASE};

	for (uint32_t i = 1; i <= 4000; i++) {
		uet_nscc_sent(&cc, SIZE);
		if (i % one_in == 0) {
			uet_nscc_lost(&cc, SIZE, true, now);
			continue;
		}
		ack.received = (ack.received + SIZE / 256) & 0xffffff;
		/* The base is measured first. */
		ack.rtt = BASE + (i > 10 ? delay : 0);
		uet_nscc_ack(&cc, &ack, now += US);
	}
	return cc.cwnd;
}

static void test_excused(void)
{
	uint64_t first = start().cwnd;

	tap_ok(after_losses(100, 0) == first, "one in 100 lost with nothing waiting: the "
					      "network's doing");
	tap_ok(after_losses(4, 0) < first, "one in four isn't");
	tap_ok(after_losses(100, 60 * US) < first, "nor is any where much waits");
}

/* A window of `packets` after a while of round trips of that delay above BASE. */
static uint64_t after_delay(double packets, uint64_t delay, bool path_marks)
{
	struct uet_nscc cc = start();
	struct uet_nscc_ack ack = {.has_received = true,
				   .has_rtt = true,
				   .path_marks = path_marks,
				   .ce = path_marks,
				   .rtt = BASE + delay};
	uint64_t now = MS;

	cc.cwnd = (uint64_t)(packets * SIZE);
	cc.lowered = true; /* else it is what windows begin with */
	for (uint32_t i = 0; i < 64; i++) {
		uet_nscc_sent(&cc, SIZE);
		ack.received = (ack.received + (SIZE + 255) / 256) & 0xffffff;
		uet_nscc_ack(&cc, &ack, now += BASE + delay);
	}
	return cc.cwnd;
}

/* Of many senders each has one packet under way at least, and all of them may be a longer
 * queue than is aimed at: who has few aims at more, or would stay there. */
static void test_few(void)
{
	struct uet_nscc cc = start();
	uint64_t above = cc.target + cc.target / 8;

	tap_ok(after_delay(1.2, above, false) > (uint64_t)(1.2 * SIZE),
	       "a window of one packet grows with a little more delay than is aimed at");
	tap_ok(after_delay(8, above, false) < 8 * SIZE, "one of many doesn't");
	tap_ok(after_delay(1.2, above, true) < (uint64_t)(1.2 * SIZE),
	       "nor where marks tell of others");
	tap_ok(after_delay(1.2, 4 * cc.target, false) < (uint64_t)(1.2 * SIZE),
	       "nor with much more");
}

/* Ways have packets of other sizes than the steps are made for. */
static void test_packet(void)
{
	struct uet_nscc cc = start();
	uint64_t alpha = (uint64_t)(cc.alpha * 1e6);

	uet_nscc_set_packet(&cc, SIZE / 4);
	tap_ok((uint64_t)(cc.alpha * 1e6) == alpha, "shorter packets: the same steps");
	cc.cwnd = SIZE;
	cc.inflight = 3 * (SIZE / 4);
	tap_ok(uet_nscc_can_send(&cc), "a short one leaves where a long one wouldn't");
	for (uint64_t i = 0; i < 64; i++)
		uet_nscc_nack(&cc, SIZE, true, (i + 2) * MS);
	tap_is_int((int64_t)cc.cwnd, SIZE / 4 / 16 + 1,
		   "a sixteenth of it is the least window");
	cc.inflight = 0;
	uet_nscc_set_packet(&cc, 4 * SIZE);
	tap_ok(cc.cwnd >= 4 * SIZE && uet_nscc_can_send(&cc), "as a longer one is");
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* How long a packet waits after a peer that didn't run for a second. */
static uint64_t after_late(void)
{
	struct uet_nscc cc = start();
	struct uet_nscc_ack a = {.has_received = true,
				 .received = (SIZE + 255) / 256,
				 .has_rtt = true,
				 .rtt = 1000 * MS};

	cc.lowered = true;
	cc.cwnd = SIZE / 16 + 1;
	uet_nscc_sent(&cc, SIZE);
	uet_nscc_ack(&cc, &a, 2000 * MS);
	return cc.go_at - 2000 * MS;
}

/* In less than a packet's window they leave one by one, as many bytes in each round trip
 * as the window has. */
static void test_paced(uint64_t *seed)
{
	bool early = false, late = false, two = false;
	double worst = 1;

	for (int round = 0; round < 500; round++) {
		struct uet_nscc cc = start();
		struct uet_nscc_ack a = {.has_received = true};
		uint64_t window = SIZE / 16 + 1 + draw(seed) % (SIZE - SIZE / 16 - 512);
		uint64_t rtt = BASE + draw(seed) % (10 * BASE);
		uint64_t now = MS, got = 0;
		double rate;

		cc.lowered = true;
		for (int i = 0; i < 64; i++) {
			cc.cwnd = window; /* whatever the acks would make of it */
			cc.max_wnd = window;
			uet_nscc_sent(&cc, SIZE);
			two |= uet_nscc_can_send(&cc);
			got += SIZE;
			a.received = (uint32_t)((got + 255) / 256) & 0xffffff;
			a.has_rtt = i % 4 == 0; /* else it was as the last */
			a.rtt = rtt;
			cc.late_since = 0;
			uet_nscc_ack(&cc, &a, now += rtt);
			if (!cc.waits)
				continue;
			uet_nscc_tick(&cc, cc.go_at - 1);
			early |= uet_nscc_can_send(&cc);
			now = cc.go_at > now ? cc.go_at : now;
			uet_nscc_tick(&cc, now);
			late |= !uet_nscc_can_send(&cc);
		}
		rate = (double)got * (double)rtt / (double)(now - MS) / (double)window;
		worst = rate > worst ? rate : worst;
	}
	tap_ok(!two, "of less than a packet's window one is under way");
	tap_ok(!early && !late, "the next leaves when it is time, and not before");
	tap_diag("at most %.2f windows in a round trip", worst);
	tap_ok(worst < 1.1, "which are no more bytes than it has");
	tap_ok(after_late() <= 16 * 10 * (BASE + config.jitter),
	       "for one that answered a second late they don't wait for long");
}

/* The window after round trips whose way back takes `always` longer than no time, and but
 * for one in eight `more`; `told`: acks say so. */
static uint64_t after_back(bool told, uint64_t always, uint64_t more)
{
	struct uet_nscc cc = start();
	struct uet_nscc_ack ack = {
		.has_received = true, .has_rtt = true, .has_back = told};
	uint64_t now = MS;

	cc.cwnd = 8 * SIZE;
	cc.lowered = true;
	for (uint32_t i = 0; i < 4000; i++) {
		uint64_t back = always + (i % 8 ? more : 0);

		uet_nscc_sent(&cc, SIZE);
		ack.received = (ack.received + (SIZE + 255) / 256) & 0xffffff;
		ack.rtt = BASE + back;
		ack.back = (uint16_t)(60000 + back / UET_NSCC_BACK_NS);
		uet_nscc_ack(&cc, &ack, now += (BASE + back) / 8);
	}
	return cc.cwnd;
}

/* What an acknowledgement waits for is no queue of ours. */
static void test_back(void)
{
	struct uet_nscc cc = start();
	struct uet_nscc_ack ack = {
		.has_received = true, .has_rtt = true, .has_back = true};

	tap_diag("windows after answers that wait: %lu where nobody says so, else %lu",
		 (unsigned long)after_back(false, 0, 20 * config.jitter),
		 (unsigned long)after_back(true, 0, 20 * config.jitter));
	tap_ok(after_back(false, 0, 20 * config.jitter) < 4 * SIZE,
	       "round trips that are long leave little of a window");
	tap_ok(after_back(true, 0, 20 * config.jitter) > 8 * SIZE,
	       "but where it was the answers that waited it grows");
	tap_ok(after_back(true, 20 * config.jitter, 0) < 2 * SIZE,
	       "a way back that is always as long says nothing of answers");
	/* A peer that says so of each, more and more. */
	for (uint32_t i = 0; i < 200; i++) {
		ack.rtt = BASE + i % 2 * US;
		ack.back = (uint16_t)(i * 1000);
		uet_nscc_ack(&cc, &ack, MS + i * BASE);
		if (cc.waited > ack.rtt - cc.base_rtt)
			break;
	}
	tap_ok(cc.waited <= ack.rtt - cc.base_rtt,
	       "no answer waited for more than there was");
}

/* 64 trains of 8 packets, of which each comes `apart` after the one before it; each tenth
 * train has one that comes `outlier` later. */
static struct uet_nscc after_trains(uint64_t apart, uint64_t outlier)
{
	struct uet_nscc cc = start();
	struct uet_nscc_ack ack = {.has_received = true, .has_rtt = true};
	uint64_t now = MS;

	for (uint32_t t = 0; t < 64; t++) {
		uint64_t rtt = BASE;

		ack.sent_at = now;
		for (uint32_t i = 0; i < 8; i++) {
			rtt += apart + (t % 10 == 5 && i == 4 ? outlier : 0);
			uet_nscc_sent(&cc, SIZE);
			ack.received = (ack.received + (SIZE + 255) / 256) & 0xffffff;
			ack.rtt = rtt;
			uet_nscc_ack(&cc, &ack, now + rtt);
		}
		now += rtt;
	}
	return cc;
}

static void test_slow(void)
{
	uint64_t usual = SIZE * UINT64_C(1000000000) / LINK;
	struct uet_nscc fast = after_trains(usual, 0),
			slow = after_trains(100 * usual, 0);
	struct uet_nscc once = after_trains(usual, 3 * MS);

	tap_ok(fast.drain == 0 && fast.soft == BASE + config.jitter,
	       "a link that is as fast as was thought: the usual target");
	tap_ok(slow.drain > 6 * 100 * usual && slow.drain < 10 * 100 * usual,
	       "on a slow one some packets may wait");
	tap_diag("a slow link: steps %.3f and %.0f of %.3f and %.0f", slow.alpha,
		 slow.eta, fast.alpha, fast.eta);
	tap_ok(slow.alpha < fast.alpha / 4 && slow.eta < fast.eta / 2,
	       "and the steps are smaller");
	tap_ok(once.drain == 0, "one that was late makes none slow");
}

int main(void)
{
	const char *given = getenv("WEFT_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 1;

	tap_diag("seed %llu (repeat with WEFT_SEED=%llu)", (unsigned long long)seed,
		 (unsigned long long)seed);
	seed |= UINT64_C(1) << 63; /* never 0 */

	test_shares(1, true, 0.99);
	test_shares(4, true, 0.95);
	test_shares(16, true, 0.95);
	test_shares(1, false, 0.99);
	test_shares(4, false, 0.95);
	test_shares(16, false, 0.95);
	test_paused();
	test_loss();
	test_counter();
	test_penalty();
	test_trimmed();
	test_base();
	test_widest();
	test_asks();
	test_excused();
	test_few();
	test_paced(&seed);
	test_back();
	test_slow();
	test_packet();
	return tap_done();
}
