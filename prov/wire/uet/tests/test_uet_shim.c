/* SPDX-License-Identifier: BSD-2-Clause */
/* The bad network does what it was told, as often as it was told, the same each time. */
#include "config.h"

#include "prov/wire/uet/uet_shim.h"
#include "util/tap.h"

#define COUNT 20000
#define LEN   64

struct sink {
	uint32_t hash;
	unsigned got, marked, changed, twice, late, refuse;
	unsigned by_path[UET_SOCK_PATHS];
	unsigned acks;
	uint32_t last;
	uint8_t seen[COUNT];
};

static void packet(uint32_t n, uint8_t data[LEN])
{
	memset(data, (int)(n * UINT32_C(2654435761) >> 24), LEN);
	memcpy(data, &n, sizeof(n));
}

static void take(struct sink *s, const struct uet_tx *tx)
{
	uint8_t data[LEN], want[LEN];
	size_t at = 0;
	uint32_t n;

	for (unsigned i = 0; i < tx->iov_count; i++) {
		memcpy(data + at, tx->iov[i].iov_base, tx->iov[i].iov_len);
		at += tx->iov[i].iov_len;
	}
	for (size_t i = 0; i < at; i++)
		s->hash = s->hash * 31 + data[i];
	s->got++;
	s->by_path[tx->path]++;
	s->acks += tx->kind == UET_TX_ACK;
	s->marked += (tx->tos & 3) == 3;
	memcpy(&n, data, sizeof(n));
	packet(n, want);
	if (at != LEN || n >= COUNT || memcmp(data, want, LEN) != 0) {
		s->changed++;
		return;
	}
	s->twice += s->seen[n]++ == 1;
	s->late += n < s->last;
	if (n > s->last)
		s->last = n;
}

static size_t out(void *arg, const struct uet_tx *tx, size_t count)
{
	struct sink *s = arg;

	if (s->refuse && s->refuse-- == 1)
		return 0;
	for (size_t i = 0; i < count; i++)
		take(s, &tx[i]);
	return count;
}

/* COUNT datagrams, eight at a time, a microsecond apart; every fourth an
 * acknowledgement. */
static void run(const char *text, struct sink *s, struct uet_shim_stats *stats)
{
	struct uet_shim_config config;
	struct wire_addr to = {.sa.sa_family = AF_INET};
	struct uet_shim *shim;
	const char *why;
	uint64_t now = 1000;

	if (!uet_shim_parse(text, &config, &why) || !(shim = uet_shim_open(&config)))
		tap_bail("%s: %s", text, why);
	for (uint32_t n = 0; n < COUNT; n += 8, now += 1000) {
		uint8_t data[8][LEN];
		struct uet_tx tx[8];

		for (uint32_t i = 0; i < 8; i++) {
			packet(n + i, data[i]);
			tx[i] = (struct uet_tx){.to = &to,
						.len = LEN,
						.iov_count = 2,
						.path = (uint8_t)i,
						.tos = 2,
						.kind = i % 4 == 3 ? UET_TX_ACK
								   : UET_TX_DATA};
			tx[i].iov[0] = (struct iovec){data[i], 12};
			tx[i].iov[1] = (struct iovec){data[i] + 12, LEN - 12};
		}
		for (size_t at = 0; at < 8;)
			at += uet_shim_send(shim, tx + at, 8 - at, now, out, s);
		uet_shim_poll(shim, now, out, s);
	}
	while (uet_shim_due(shim) != UINT64_MAX)
		uet_shim_poll(shim, uet_shim_due(shim), out, s);
	*stats = *uet_shim_stats(shim);
	uet_shim_close(shim);
}

/* Within a tenth: what these seeds give is always the same. */
static bool about(uint64_t got, double rate, uint64_t of)
{
	double want = rate * (double)of;

	return (double)got > want * 0.9 && (double)got < want * 1.1;
}

static struct sink *sink_new(void)
{
	static struct sink s;

	memset(&s, 0, sizeof(s));
	return &s;
}

static void test_each(void)
{
	struct uet_shim_stats st;
	struct sink *s = sink_new();

	run("", s, &st);
	tap_ok(s->got == COUNT && !s->changed && !s->twice && !s->late,
	       "nothing befalls");
	s = sink_new();
	run("seed=7,drop=0.1", s, &st);
	tap_ok(about(st.dropped, 0.1, COUNT) && s->got == COUNT - st.dropped, "drop");
	s = sink_new();
	run("seed=7,ackdrop=0.5", s, &st);
	tap_ok(about(s->acks, 0.5, COUNT / 4) && s->got - s->acks == COUNT / 4 * 3,
	       "ackdrop takes acknowledgements only");
	s = sink_new();
	run("seed=7,dup=0.2", s, &st);
	tap_ok(about(s->twice, 0.2, COUNT) && s->got == COUNT + st.duplicated, "dup");
	s = sink_new();
	run("seed=7,corrupt=0.1", s, &st);
	tap_ok(about(s->changed, 0.1, COUNT) && s->changed == st.corrupted, "corrupt");
	s = sink_new();
	run("seed=7,mark=0.3", s, &st);
	tap_ok(about(s->marked, 0.3, COUNT) && s->marked == st.marked, "mark");
	s = sink_new();
	run("seed=7,reorder=0.2:50", s, &st);
	tap_ok(s->got == COUNT && !s->twice && s->late > COUNT / 20 &&
		       about(st.held, 0.2, COUNT),
	       "reorder loses nothing");
	s = sink_new();
	run("seed=7,delay=20", s, &st);
	tap_ok(s->got == COUNT && st.held == COUNT && !s->late,
	       "delay alone keeps the order");
	s = sink_new();
	run("hole=3+5:1000:9000", s, &st);
	tap_ok(st.swallowed == 2 * 8000 / 8 && s->by_path[3] == COUNT / 8 - 1000 &&
		       s->by_path[5] == COUNT / 8 - 1000 && s->by_path[4] == COUNT / 8,
	       "a hole swallows its paths, for as long as it is said");
	s = sink_new();
	run("hole=3", s, &st);
	tap_ok(s->by_path[3] == 0 && s->got == COUNT / 8 * 7, "or for ever");
}

static void test_same(void)
{
	static const char all[] = "seed=%d,drop=0.05,dup=0.05,corrupt=0.01,mark=0.1,"
				  "reorder=0.2:80,ackdrop=0.1,delay=3";
	struct uet_shim_stats st;
	uint32_t hash[3];
	char text[160];

	for (int i = 0; i < 3; i++) {
		struct sink *s = sink_new();

		snprintf(text, sizeof(text), all, i < 2 ? 4 : 5);
		run(text, s, &st);
		hash[i] = s->hash;
	}
	tap_ok(hash[0] == hash[1], "a seed gives the same each time");
	tap_ok(hash[0] != hash[2], "another gives another");
}

static void test_no_room(void)
{
	struct uet_shim_stats st;
	struct sink *s = sink_new();

	/* The kernel has no room now and then: what wasn't taken is offered again. */
	s->refuse = 100;
	run("", s, &st);
	tap_ok(s->got == COUNT && !s->twice, "what finds no room is asked for again");
}

static void test_parse(void)
{
	static const char *const wrong[] = {
		"drop",
		"drop=2",
		"drop=-1",
		"drop=x",
		"drop=0.1x",
		"drop=nan",
		"seed=",
		"seed=-1",
		"lose=0.1",
		"reorder=0.1",
		"reorder=0.1:",
		"reorder=0.1:1:1",
		"hole=32",
		"hole=1+",
		"hole=1:5",
		"hole=1:5:x",
		"delay=100000000",
		"=1",
		"drop=0.1,,dup=1",
		"hole=",
	};
	struct uet_shim_config c;
	const char *why;
	unsigned bad = 0;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (uet_shim_parse(wrong[i], &c, &why) || !why) {
			tap_diag("taken: %s", wrong[i]);
			bad++;
		}
	}
	tap_is_int(bad, 0, "what isn't a setting is refused, in words");
	tap_ok(uet_shim_parse("seed=3,drop=1,hole=0+31:5:6,delay=1,reorder=0.5:2", &c,
			      &why) &&
		       c.seed == 3 && c.drop == UINT32_MAX && c.holes == 0x80000001u &&
		       c.hole_from == 5 && c.hole_to == 6 && c.delay_ns == 1000 &&
		       c.reorder_ns == 2000 && !why,
	       "what is one is read");
}

int main(void)
{
	test_each();
	test_same();
	test_no_room();
	test_parse();
	return tap_done();
}
