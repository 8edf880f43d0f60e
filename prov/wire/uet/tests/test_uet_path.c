/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths: all are used, bad ones are left alone and tried again, and one is always left.
 */
#include "config.h"

#include "prov/wire/uet/uet_path.h"
#include "util/tap.h"

#define MS UINT64_C(1000000)

static const struct uet_path_config eight = {
	.paths = 8, .burst = 1, .strikes = 3, .retry_min = 10 * MS, .retry_max = 40 * MS};

static struct uet_paths start(const struct uet_path_config *c)
{
	struct uet_paths p;

	if (!uet_paths_init(&p, c, 12345))
		tap_bail("a good configuration is refused");
	return p;
}

static void test_spread(void)
{
	for (uint32_t paths = 1; paths <= UET_PATHS_MAX; paths++) {
		struct uet_path_config c = eight;
		uint32_t used[UET_PATHS_MAX] = {0}, least = UINT32_MAX, most = 0, number;
		struct uet_paths p;

		c.paths = paths;
		p = start(&c);
		for (uint32_t i = 0; i < 100 * paths; i++)
			used[uet_paths_pick(&p, 0, &number)]++;
		for (uint32_t i = 0; i < paths; i++) {
			least = used[i] < least ? used[i] : least;
			most = used[i] > most ? used[i] : most;
		}
		if (least + 1 < most || least == 0)
			tap_ok(false, "%u paths: from %u to %u packets", paths, least,
			       most);
	}
	tap_ok(true, "each of 1 to 32 paths gets its share");
}

/* One that isn't used from the start is when a packet has come through it. */
static void test_try(void)
{
	struct uet_path_config c = eight;
	uint32_t used[8] = {0}, number, tried = 0;
	struct uet_paths p;

	c.first = 0x55;
	p = start(&c);
	for (uint32_t i = 0; i < 400; i++)
		used[uet_paths_pick(&p, 0, &number)]++;
	tap_ok(used[0] == 100 && used[2] == 100 && used[4] == 100 && used[6] == 100,
	       "four of eight paths from the start");
	for (uint32_t i = 0; i < 400; i++)
		tried += uet_paths_control(&p) % 2;
	tap_is_int(tried, 0, "also for what isn't counted");
	uet_paths_try(&p, 3, 5 * MS);
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t path = uet_paths_pick(&p, 5 * MS, &number);

		tried += path % 2;
		if (path == 3)
			used[3] = number;
	}
	tap_ok(tried == 1 && used[3] == 1, "another is tried with one packet");
	uet_paths_news(&p, 3, used[3], UET_PATH_SILENT, 6 * MS);
	for (uint32_t i = 0; i < 100; i++)
		tried += uet_paths_pick(&p, 7 * MS, &number) % 2;
	tap_is_int(tried, 1, "and left alone while nothing comes through");
	for (uint32_t i = 0; i < 10; i++) {
		uint32_t path = uet_paths_pick(&p, 40 * MS, &number);

		if (path == 3)
			uet_paths_news(&p, 3, number, UET_PATH_DELIVERED, 40 * MS);
	}
	tried = 0;
	for (uint32_t i = 0; i < 500; i++)
		tried += uet_paths_pick(&p, 40 * MS, &number) % 2;
	tap_ok(tried >= 99 && tried <= 101, "then it has its share");
	c.first = 0x100;
	tap_ok(!uet_paths_init(&p, &c, 1), "there is no ninth");
}

static void test_burst(void)
{
	struct uet_path_config c = eight;
	struct uet_paths p;
	uint32_t changes = 0, number, last = UINT32_MAX;

	c.burst = 4;
	p = start(&c);
	for (uint32_t i = 0; i < 400; i++) {
		uint32_t now = uet_paths_pick(&p, 0, &number);

		changes += now != last;
		last = now;
	}
	tap_ok(changes > 80 && changes <= 100, "four in a row stay together");
	c.burst = UINT32_MAX;
	p = start(&c);
	last = uet_paths_pick(&p, 0, &number);
	changes = 0;
	for (uint32_t i = 0; i < 1000; i++)
		changes += uet_paths_pick(&p, 0, &number) != last;
	tap_is_int(changes, 0, "or all do, until a timeout");
	for (uint32_t i = 0; i < 20 && changes == 0; i++) {
		uet_paths_news(&p, last, number, UET_PATH_TIMEOUT, 0);
		changes += uet_paths_pick(&p, 0, &number) != last;
	}
	tap_is_int(changes, 1, "which takes them to another");
}

/* Packets until the path changes, the turn that began before not counted. */
static uint32_t turn_of(struct uet_paths *p)
{
	uint32_t number, n = 0;

	uet_paths_turn(p);
	do {
		uet_paths_pick(p, 0, &number);
		n++;
	} while (p->left > 0);
	return n;
}

static void test_window(void)
{
	struct uet_path_config c = eight;
	struct uet_paths p;

	c.burst = 4;
	c.burst_max = 44;
	p = start(&c);
	tap_is_int(turn_of(&p), 4, "as long as nothing is known of the window: a burst");
	uet_paths_window(&p, 0, 0);
	tap_is_int(turn_of(&p), 4, "a window that is shut: the same");
	uet_paths_window(&p, 16 * 14, 0);
	tap_is_int(turn_of(&p), 14, "a wide one: two bursts for each path fill it");
	uet_paths_window(&p, UINT64_MAX, 0);
	tap_is_int(turn_of(&p), 44, "however wide: what leaves in one call");
	uet_paths_window(&p, 16 * 20, 7);
	tap_is_int(turn_of(&p), 14, "where some leave as one: as many of those as fit");
	uet_paths_window(&p, 16 * 6, 7);
	tap_is_int(turn_of(&p), 6, "or a part of one");
	uet_paths_window(&p, 16 * 3, 0);
	tap_is_int(turn_of(&p), 4, "narrow again: a burst");
	p.share = 1;
	uet_paths_window(&p, 16 * 20, 7);
	tap_is_int(turn_of(&p), 35, "one burst for each path: twice as long");
	c.burst_max = 0;
	p = start(&c);
	uet_paths_window(&p, UINT64_MAX, 0);
	tap_is_int(turn_of(&p), 4, "where no longer ones are wanted there are none");
}

static void test_piece(void)
{
	struct uet_path_config c = eight;
	struct uet_paths p;
	uint32_t number;

	c.burst = 4;
	c.burst_max = 44;
	p = start(&c);
	uet_paths_window(&p, 16 * 20, 7);
	uet_paths_pick(&p, 0, &number);
	uet_paths_piece(&p);
	tap_is_int(p.left, 0, "a turn of whole pieces ends with one that ends early");
	uet_paths_window(&p, 16 * 6, 7);
	uet_paths_pick(&p, 0, &number);
	uet_paths_piece(&p);
	tap_is_int(p.left, 5, "one that is less than a piece goes on");
}

/* Sends `count` packets; those on path `bad` get lost in silence, all others arrive. */
static uint32_t traffic(struct uet_paths *p, uint32_t bad, uint32_t count, uint64_t now)
{
	uint32_t on_bad = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t number;
		uint32_t path = uet_paths_pick(p, now, &number);

		on_bad += path == bad;
		uet_paths_news(p, path, number,
			       path == bad ? UET_PATH_SILENT : UET_PATH_DELIVERED, now);
	}
	return on_bad;
}

static void test_retire(void)
{
	struct uet_paths p = start(&eight);
	uint32_t tries;

	tap_ok(traffic(&p, 5, 1000, MS) == 3 && p.retired == 1 && p.path[5].retired,
	       "a path that swallows three is retired");
	tap_is_int(traffic(&p, 5, 1000, 10 * MS), 0, "and left alone");
	tap_is_int(traffic(&p, 5, 1000, 11 * MS), 1, "then tried, with one packet");
	tap_is_int(traffic(&p, 5, 1000, 25 * MS), 0, "the next time later");
	tap_is_int(traffic(&p, 5, 1000, 31 * MS), 1, "twice as late");
	tries = 0;
	for (uint64_t t = 32; t < 432; t++)
		tries += traffic(&p, 5, 20, t * MS);
	tap_ok(tries >= 8 && tries <= 11, "at last at the longest wait");
	tap_ok(traffic(&p, UINT32_MAX, 1000, 500 * MS) == 0 && p.retired == 0 &&
		       p.returns == 1,
	       "healed, it is used again");
	tap_is_int(p.path[5].penalty, 0, "as all others are");
}

static void test_lost(void)
{
	struct uet_paths p = start(&eight);
	uint32_t number, path = uet_paths_pick(&p, 0, &number);

	for (uint32_t i = 0; i < 100; i++)
		uet_paths_news(&p, path, number, UET_PATH_LOST, 0);
	tap_ok(p.retired == 0 && p.path[path].penalty == 15,
	       "a path that loses some and delivers is used less, and never retired");
	uet_paths_news(&p, path, number + 5, UET_PATH_DELIVERED, 0);
	for (uint32_t i = 0; i < 5; i++)
		uet_paths_news(&p, path, number + i, UET_PATH_SILENT, 0);
	tap_is_int(p.path[path].strikes, 0,
		   "what was overtaken on its path is no silence");
	uet_paths_news(&p, path, number + 6, UET_PATH_MARKED, 0);
	tap_ok(p.path[path].marks, "a path that marks is known to");
}

static void test_all_bad(void)
{
	struct uet_paths p = start(&eight);
	uint32_t seen = 0;

	/* The peer is gone for a while: every path is silent. */
	for (uint32_t i = 0; i < 500; i++) {
		uint32_t number;
		uint32_t path = uet_paths_pick(&p, i * MS / 10, &number);

		seen |= i > 400 ? 1u << path : 0;
		uet_paths_news(&p, path, number, UET_PATH_SILENT, i * MS / 10);
		if (p.retired >= p.config.paths)
			tap_ok(false, "no path is left");
	}
	tap_is_int(seen, 0xff, "when all are silent all are tried");
	seen = 0;
	for (uint32_t i = 0; i < 1000; i++)
		seen |= 1u << uet_paths_control(&p);
	tap_is_int(seen, 0xff, "and packets that aren't counted try them as well");
}

static void test_wrap(void)
{
	struct uet_paths p = start(&eight);

	for (uint32_t i = 0; i < 8; i++)
		p.path[i].sent = p.path[i].delivered = UINT32_MAX - 5;
	tap_ok(traffic(&p, 3, 1000, MS) == 3 && p.path[3].retired,
	       "packets' numbers wrap");
}

static void test_config(void)
{
	struct uet_path_config c = eight;
	struct uet_paths p;
	unsigned refused = 0;

	c.paths = 0;
	refused += !uet_paths_init(&p, &c, 1);
	c.paths = UET_PATHS_MAX + 1;
	refused += !uet_paths_init(&p, &c, 1);
	c = eight;
	c.burst = 0;
	refused += !uet_paths_init(&p, &c, 1);
	c = eight;
	c.retry_max = c.retry_min - 1;
	refused += !uet_paths_init(&p, &c, 1);
	tap_is_int(refused, 4, "configurations that make no sense are refused");
}

int main(void)
{
	test_spread();
	test_try();
	test_burst();
	test_window();
	test_piece();
	test_retire();
	test_lost();
	test_all_bad();
	test_wrap();
	test_config();
	return tap_done();
}
