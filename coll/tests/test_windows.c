/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows: random puts, gets and signals of all ranks at once against what must be there;
 * whoever sees a signal sees what was put before it; bounds, deadlines and ranks that are
 * lost are said in words; and over providers with and without remote writes alike.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(60000000)

struct world {
	const char *provider;
	struct net_attr net;
	uint32_t seed;
};

static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state % below;
}

static uint8_t byte_of(uint32_t seed, int32_t from, int32_t to, int round, uint64_t at)
{
	uint32_t x = seed + (uint32_t)from * 0x9e3779b1u + (uint32_t)to * 0x85ebca6bu +
		     (uint32_t)round * 0xc2b2ae35u + (uint32_t)at * 0x27d4eb2fu;

	x = (x ^ x >> 15) * 0x2c1b3c6du;
	return (uint8_t)(x ^ x >> 13);
}

static int said(struct ranks *r, const char *what)
{
	return ranks_say(r, "%s: %s", what, weft_error_detail());
}

static bool refused(struct ranks *r, enum weft_result got, enum weft_result want,
		    const char *word)
{
	if (got == want && strstr(weft_error_detail(), word))
		return true;
	ranks_say(r, "\"%s\": got %s (%s)", word, weft_strerror(got),
		  weft_error_detail());
	return false;
}

/* ---- all to all, in pieces ----------------------------------------------------------
 */

#define LANE	 20000 /* bytes of a rank's part that are another one's to write */
#define ROUNDS	 4
#define CONTEXTS 3

/* Pieces of a lane, all of it, in an order that is drawn; then one signal. */
static int lane_put(struct ranks *r, struct weft_win *win, const uint8_t *src, int32_t to,
		    int round, uint32_t *state)
{
	const uint32_t pieces = 1 + draw(state, 12), step = LANE / pieces + 1;
	const uint32_t first = draw(state, pieces);

	for (uint32_t i = 0; i < pieces; i++) {
		const uint64_t at = (uint64_t)((first + i) % pieces) * step;
		const uint64_t len = at >= LANE ? 0 : LANE - at < step ? LANE - at : step;
		const uint64_t offset = (uint64_t)r->rank * LANE + at;
		const bool last = i + 1 == pieces;
		enum weft_result got =
			last && round % 2
				? weft_win_put_signal(win, src + at, len, to,
						      len ? offset : 0, (uint32_t)r->rank,
						      1)
				: weft_win_put(win, src + at, len, to, len ? offset : 0);

		if (got == WEFT_SUCCESS && last && round % 2 == 0)
			got = weft_win_signal(win, to, (uint32_t)r->rank, 1);
		if (got != WEFT_SUCCESS)
			return said(r, "put");
	}
	return RANKS_GOOD;
}

static int lane_check(struct ranks *r, const uint8_t *part, uint32_t seed, int32_t from,
		      int32_t at, int round, const char *what)
{
	for (uint64_t i = 0; i < LANE; i++) {
		if (part[i] != byte_of(seed, from, at, round, i))
			return ranks_say(r,
					 "round %d: byte %llu that rank %d put at rank "
					 "%d, %s",
					 round, (unsigned long long)i, from, at, what);
	}
	return RANKS_GOOD;
}

/* The lane as one put, with a weak signal; something else is put before it, which that
 * signal does not speak of, and no other rank writes or reads. */
static int lane_weak(struct ranks *r, struct weft_win *win, const uint8_t *src,
		     int32_t to)
{
	const uint64_t own = (uint64_t)r->rank * LANE, behind = (uint64_t)r->size * LANE;

	if (weft_win_put(win, src, 8, to, behind + (uint64_t)r->rank * 8) ||
	    weft_win_put_signal_weak(win, src, LANE, to, own, (uint32_t)r->rank, 1))
		return said(r, "weak");
	return RANKS_GOOD;
}

/* One round: everybody writes its lane at everybody, waits for each, reads it back. */
static int storm_round(struct ranks *r, struct weft_comm *comm, struct weft_win *win,
		       uint8_t *mem[3], uint32_t seed, int round)
{
	uint32_t state = seed + (uint32_t)(round * 100 + r->rank) * 7919 + 1;
	struct weft_win *at;
	int bad = RANKS_GOOD;

	for (int32_t k = 0; k < r->size && !bad; k++) {
		const int32_t to = (r->rank + k) % r->size;
		uint8_t *src = mem[1] + (size_t)to * LANE;

		for (uint64_t i = 0; i < LANE; i++)
			src[i] = byte_of(seed, r->rank, to, round, i);
		/* Each pair of ranks in a context of its own, where there are enough. */
		at = weft_win_context(win, (uint32_t)(to + round) % CONTEXTS);
		bad = round == ROUNDS - 1 ? lane_weak(r, at, src, to)
					  : lane_put(r, at, src, to, round, &state);
	}
	for (int32_t k = 0; k < r->size && !bad; k++) {
		const int32_t from = (r->rank + r->size - k) % r->size;

		if (weft_win_wait(win, (uint32_t)from, 1, 0) != WEFT_SUCCESS)
			return said(r, "wait");
		bad = lane_check(r, mem[0] + (size_t)from * LANE, seed, from, r->rank,
				 round, "after its signal");
	}
	for (uint32_t c = 0; c < CONTEXTS && !bad; c++) {
		if (weft_win_flush(weft_win_context(win, c), -1, 0) != WEFT_SUCCESS)
			return said(r, "flush");
	}
	/* Everybody has checked: what was put can be read until the next round. */
	if (!bad && weft_barrier(comm, NULL) != WEFT_SUCCESS)
		return said(r, "barrier");
	for (int32_t k = 0; k < r->size && !bad; k++) {
		if (weft_win_get(win, mem[2] + (size_t)k * LANE, LANE, k,
				 (uint64_t)r->rank * LANE) != WEFT_SUCCESS)
			return said(r, "get");
	}
	for (int32_t k = 0; k < r->size && !bad; k++) {
		if (weft_win_flush(win, k, 0) != WEFT_SUCCESS)
			return said(r, "flush of one");
		bad = lane_check(r, mem[2] + (size_t)k * LANE, seed, r->rank, k, round,
				 "read back");
	}
	if (!bad && weft_barrier(comm, NULL) != WEFT_SUCCESS)
		return said(r, "barrier");
	return bad;
}

static int storm_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	const struct world *w = r->arg;
	const size_t len = (size_t)r->size * (LANE + 8);
	struct weft_win_opts opts = WEFT_WIN_OPTS_INIT;
	uint8_t *mem[3] = {malloc(len), malloc(len), malloc(len)};
	struct weft_win *win;
	int bad = RANKS_GOOD;

	(void)ctx;
	if (!mem[0] || !mem[1] || !mem[2])
		return ranks_say(r, "no memory");
	opts.contexts = CONTEXTS;
	if (weft_win_create(comm, mem[0], len, &opts, &win) != WEFT_SUCCESS)
		return said(r, "create");
	if (weft_win_context(win, CONTEXTS) || weft_win_context(NULL, 0) ||
	    weft_win_context(win, 0) != win ||
	    !refused(r, weft_win_destroy(weft_win_context(win, 1)), WEFT_ERR_ARG,
		     "context 1"))
		return ranks_say(r, "contexts");
	for (int round = 0; round < ROUNDS && !bad; round++)
		bad = storm_round(r, comm, win, mem, w->seed, round);
	if (!bad && !refused(r, weft_comm_destroy(comm), WEFT_ERR_BUSY, "windows exist"))
		return RANKS_BAD;
	if (!bad && weft_win_destroy(win) != WEFT_SUCCESS)
		return said(r, "destroy");
	for (int i = 0; i < 3; i++)
		free(mem[i]);
	return bad;
}

/* ---- sizes that differ, a group of ranks, two windows, destroyed in full flight -----
 */

static int sizes_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	static uint64_t part[2][64], src[64];
	struct weft_comm *sub;
	struct weft_win *win[2];
	int32_t rank, size;

	(void)ctx;
	/* The last rank is alone, the others in the order from behind. */
	if (weft_comm_split(comm, r->rank + 1 == r->size, -r->rank, NULL, &sub) !=
	    WEFT_SUCCESS)
		return said(r, "split");
	rank = weft_comm_rank(sub);
	size = weft_comm_size(sub);
	for (int i = 0; i < 64; i++)
		src[i] = (uint64_t)r->rank * 1000 + (uint64_t)i;
	/* Rank k has 8 k bytes of the first window, and 8 times 64 of the second. */
	if (weft_win_create(sub, rank ? part[0] : NULL, (size_t)rank * 8, NULL,
			    &win[0]) != WEFT_SUCCESS ||
	    weft_win_create(sub, part[1], sizeof(part[1]), NULL, &win[1]) != WEFT_SUCCESS)
		return said(r, "create");
	for (int32_t k = 0; k < size; k++) {
		if (weft_win_len(win[0], k) != (uint64_t)k * 8)
			return ranks_say(r, "length of rank %d", k);
		if (!refused(r, weft_win_put(win[0], src, (size_t)k * 8 + 1, k, 0),
			     WEFT_ERR_ARG, "outside of the window") ||
		    !refused(r, weft_win_get(win[0], src, 1, k, (uint64_t)k * 8),
			     WEFT_ERR_ARG, "outside of the window"))
			return RANKS_BAD;
		/* The last of them counts, and nobody waits for it but the end. */
		if (weft_win_put(win[1], src, 8, k, (uint64_t)rank * 8) != WEFT_SUCCESS)
			return said(r, "put");
	}
	if (weft_win_destroy(win[1]) != WEFT_SUCCESS)
		return said(r, "destroy");
	for (int32_t k = 0; k < size; k++) {
		const uint64_t want =
			(uint64_t)(size > 1 ? size - 1 - k : r->rank) * 1000;

		if (part[1][k] != want)
			return ranks_say(r, "what rank %d put is %llu", k,
					 (unsigned long long)part[1][k]);
	}
	if (weft_win_destroy(win[0]) != WEFT_SUCCESS ||
	    weft_comm_destroy(sub) != WEFT_SUCCESS)
		return said(r, "end");
	return RANKS_GOOD;
}

/* ---- what is refused ----------------------------------------------------------------
 */

static int refuse_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct weft_win_opts opts = WEFT_WIN_OPTS_INIT;
	uint64_t part[4] = {0}, x = 1;
	struct weft_win *win;

	(void)ctx;
	opts.signals = 2 + (uint32_t)(r->rank == 1);
	if (!refused(r, weft_win_create(comm, part, sizeof(part), &opts, &win),
		     WEFT_ERR_MISMATCH, "rank 0 has 2 signals, rank 1 3"))
		return RANKS_BAD;
	opts.signals = 2;
	opts.contexts = 1 + (uint32_t)(r->rank == 2);
	if (!refused(r, weft_win_create(comm, part, sizeof(part), &opts, &win),
		     WEFT_ERR_MISMATCH, "rank 0 has 1 contexts, rank 2 2"))
		return RANKS_BAD;
	opts.contexts = 257;
	if (!refused(r, weft_win_create(comm, part, sizeof(part), &opts, &win),
		     WEFT_ERR_ARG, "contexts is 257"))
		return RANKS_BAD;
	opts.contexts = 0;
	opts.flags = 4;
	if (!refused(r, weft_win_create(comm, part, sizeof(part), &opts, &win),
		     WEFT_ERR_UNSUPPORTED, "weft_win_opts.flags"))
		return RANKS_BAD;
	opts.flags = 0;
	if (!refused(r, weft_win_create(comm, NULL, 8, &opts, &win), WEFT_ERR_ARG,
		     "base is NULL") ||
	    weft_win_create(comm, part, sizeof(part), &opts, &win) != WEFT_SUCCESS)
		return said(r, "create");
	if (!refused(r, weft_win_put(win, &x, 8, r->size, 0), WEFT_ERR_ARG,
		     "ranks are") ||
	    !refused(r, weft_win_put(win, &x, 8, 0, UINT64_MAX - 3), WEFT_ERR_ARG,
		     "outside of the window") ||
	    !refused(r, weft_win_put(win, NULL, 8, 0, 0), WEFT_ERR_ARG, "NULL") ||
	    !refused(r, weft_win_signal(win, 0, 2, 1), WEFT_ERR_ARG, "index is 2") ||
	    !refused(r, weft_win_signal(win, -1, 0, 1), WEFT_ERR_ARG, "rank is -1") ||
	    !refused(r, weft_win_wait(win, 2, 1, 0), WEFT_ERR_ARG, "index is 2") ||
	    !refused(r, weft_win_wait(win, 0, 1, -2), WEFT_ERR_ARG, "timeout_us") ||
	    !refused(r, weft_win_flush(win, -2, 0), WEFT_ERR_ARG, "rank is -2"))
		return RANKS_BAD;
	/* Nobody sends it; then somebody does, and it is there once. */
	if (!refused(r, weft_win_wait(win, 1, 3, 20000), WEFT_ERR_TIMEOUT,
		     "signal 1 of window") ||
	    weft_barrier(comm, NULL) != WEFT_SUCCESS ||
	    weft_win_signal(win, (r->rank + 1) % r->size, 1, 5) != WEFT_SUCCESS ||
	    weft_win_wait(win, 1, 3, 0) != WEFT_SUCCESS ||
	    weft_win_wait(win, 1, 2, 0) != WEFT_SUCCESS ||
	    !refused(r, weft_win_wait(win, 1, 1, 1000), WEFT_ERR_TIMEOUT, "is 0, not 1"))
		return said(r, "signals");
	if (weft_win_destroy(win) != WEFT_SUCCESS)
		return said(r, "destroy");
	return RANKS_GOOD;
}

/* ---- a rank that dies ---------------------------------------------------------------
 */

static int dies_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	uint64_t part[4] = {0};
	struct weft_win *win;
	enum weft_result got;

	(void)ctx;
	if (weft_win_create(comm, part, sizeof(part), NULL, &win) != WEFT_SUCCESS)
		return said(r, "create");
	/* Not before all have it: what it sent last may be lost with it. */
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank + 1 == r->size)
		raise(SIGKILL);
	/* Its signal never comes. */
	got = weft_win_wait(win, 0, 1, 200000);
	if (got != WEFT_ERR_TIMEOUT && got != WEFT_ERR_PEER)
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	return RANKS_GOOD;
}

/* ---- parts --------------------------------------------------------------------------
 */

enum part { STORM_4, STORM_1, SIZES, REFUSE, DIES, PARTS };

static const struct ranks_part parts[PARTS] = {
	[STORM_4] = {4, -1, "everybody writes to everybody, and reads it back"},
	[STORM_1] = {1, -1, "a rank alone"},
	[SIZES] = {5, -1, "sizes differ, groups, the end waits for what was started"},
	[REFUSE] = {3, -1, "what is out of bounds, and what does not come"},
	[DIES] = {3, 2, "a rank that dies"},
};

static int (*const bodies[PARTS])(struct ranks *, struct weft_ctx *,
				  struct weft_comm *) = {
	[STORM_4] = storm_body, [STORM_1] = storm_body, [SIZES] = sizes_body,
	[REFUSE] = refuse_body, [DIES] = dies_body,
};

static int job_body(struct ranks *r)
{
	const struct world *w = r->arg;
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct net_attr net = w->net;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int bad;

	opts.boot = &r->boot;
	opts.timeout_us = TIMEOUT;
	net.provider = w->provider;
	if (ctx_open(&opts, &net, &ctx) != WEFT_SUCCESS)
		return strstr(weft_error_detail(), "no libfabric")
			       ? RANKS_ABSENT
			       : ranks_say(r, "open: %s", weft_error_detail());
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return said(r, "comm");
	bad = bodies[r->part](r, ctx, comm);
	if (!bad && r->part != DIES &&
	    (weft_comm_destroy(comm) != WEFT_SUCCESS ||
	     weft_ctx_close(ctx) != WEFT_SUCCESS))
		bad = said(r, "close");
	return bad;
}

/* A rank that lost a peer leaves with memory held. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

/* As it is; without remote access at all; and so that all goes in pieces, by reads too.
 */
static const struct {
	const char *what;
	struct net_attr net;
} ways[] = {
	{"", {0}},
	{", messages only", {.no_put = true}},
	{", in pieces", {.transfer_max = 777}},
	{", no reads", {.no_get = true, .transfer_max = 5000}},
};

int main(void)
{
	const char *seed = getenv("WEFT_TEST_SEED");
	struct world w = {.seed = seed ? (uint32_t)strtoul(seed, NULL, 10)
				       : (uint32_t)time(NULL) | 1};
	char names[8][32];
	int count = ranks_providers("weft,tcp,shm", names, 8);
	bool good[PARTS];

	tap_diag("seed %u", w.seed);
	for (int i = 0; i < count; i++) {
		w.provider = names[i];
		for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
			w.net = ways[k].net;
			if (!ranks_parts(parts, PARTS, 240, job_body, &w, good)) {
				tap_skip(1, "provider %s is not on this machine",
					 names[i]);
				break;
			}
			for (int p = 0; p < PARTS; p++)
				tap_ok(good[p], "%s%s: %s", names[i], ways[k].what,
				       parts[p].what);
		}
	}
	return tap_done();
}
