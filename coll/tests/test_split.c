/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators of some ranks: every collective and algorithm in all groups at the same
 * time, groups of groups, duplicates, messages, many of them; what ranks disagree about
 * in one group others never hear; a rank that dies ends its groups only.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "coll/algo/algo.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(30000000)

/* The rank as the tests of collectives want it: of a communicator. */
static struct ranks as_in(const struct ranks *r, const struct weft_comm *comm)
{
	struct ranks own = *r;

	own.rank = weft_comm_rank(comm);
	own.size = weft_comm_size(comm);
	return own;
}

static int failed(struct ranks *r, const char *what)
{
	return ranks_say(r, "%s: %s", what, weft_error_detail());
}

/* Every algorithm, out of place and in place, short and by READY. */
static int collectives(struct ranks *r, struct weft_comm *comm, uint32_t salt)
{
	struct ranks own = as_in(r, comm);
	int bad = RANKS_GOOD;

	for (size_t a = 0; a < algo_count && !bad; a++) {
		struct ref_case c = {.algorithm = algo_table[a].name,
				     .type = WEFT_INT32,
				     .op = a % 2 ? WEFT_SUM : WEFT_MAX,
				     .root = (int32_t)(a + salt) % own.size,
				     .count = (a + salt) % 3 ? 21 : 20011,
				     .salt = salt + (uint32_t)a};

		while (strcmp(weft_coll_name(c.coll), algo_table[a].coll) != 0)
			c.coll = (enum weft_coll)(c.coll + 1);
		c.in_place = (a + salt) % 2 && !ref_apart(c.coll) &&
			     c.coll != WEFT_COLL_BROADCAST;
		bad = case_run(&own, comm, &c, false);
	}
	return bad;
}

/* The ranks of the context in a communicator, in its order. */
static int members_are(struct ranks *r, struct weft_comm *comm, const int32_t *want,
		       int32_t count)
{
	int32_t own = r->rank, got[RANKS_MAX];

	if (weft_comm_size(comm) != count)
		return ranks_say(r, "%d ranks, not %d", weft_comm_size(comm), count);
	if (weft_allgather(comm, &own, got, 1, WEFT_INT32, NULL) != WEFT_SUCCESS)
		return failed(r, "members");
	for (int32_t i = 0; i < count; i++) {
		if (got[i] != want[i])
			return ranks_say(r, "rank %d is %d, not %d", i, got[i], want[i]);
	}
	return RANKS_GOOD;
}

static int message_round(struct ranks *r, struct weft_comm *comm)
{
	const int32_t rank = weft_comm_rank(comm), size = weft_comm_size(comm);
	int32_t out = r->rank * 10, in = -1, want;

	if (size < 2)
		return RANKS_GOOD;
	if (weft_group_begin(comm) != WEFT_SUCCESS ||
	    weft_send(comm, &out, 1, WEFT_INT32, (rank + 1) % size, NULL) ||
	    weft_recv(comm, &in, 1, WEFT_INT32, (rank + size - 1) % size, NULL) ||
	    weft_group_end(comm) != WEFT_SUCCESS)
		return failed(r, "messages");
	want = size == 3 ? (r->rank == 0 ? 20 : r->rank == 2 ? 40 : 0) : in;
	return in == want ? RANKS_GOOD : ranks_say(r, "message %d, not %d", in, want);
}

/* Six ranks: even and odd, the even ones backwards; then halves of those; rank 5 leaves.
 */
static int groups_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *all)
{
	static const int32_t even[] = {4, 2, 0}, odd[] = {1, 3, 5};
	struct weft_comm *two, *part = NULL, *twin, *again;
	int bad;

	if (weft_comm_split(all, r->rank % 2, r->rank % 2 ? 0 : -r->rank, NULL, &two))
		return failed(r, "split");
	bad = members_are(r, two, r->rank % 2 ? odd : even, 3);
	if (!bad)
		bad = collectives(r, two, (uint32_t)r->rank % 2);
	if (!bad && r->rank % 2 == 0)
		bad = message_round(r, two);
	if (bad)
		return bad;
	/* Of a part, where the other group has not the same. */
	if (weft_comm_split(two, r->rank == 5 ? WEFT_SPLIT_NONE : r->rank / 4, 0, NULL,
			    &part))
		return failed(r, "split of a part");
	if ((part == NULL) != (r->rank == 5))
		return ranks_say(r, "a part where there is none");
	if (part && (bad = collectives(r, part, 7)))
		return bad;
	if (weft_comm_dup(two, NULL, &twin))
		return failed(r, "duplicate");
	/* In other orders on the two. */
	bad = members_are(r, twin, r->rank % 2 ? odd : even, 3);
	if (!bad)
		bad = members_are(r, two, r->rank % 2 ? odd : even, 3);
	if (bad)
		return bad;
	/* All of the context go on, in spite of different counts. */
	if (weft_comm_create(ctx, NULL, &again))
		return failed(r, "of all ranks");
	bad = collectives(r, again, 3);
	if (!bad)
		bad = collectives(r, all, 4);
	if (!bad && ((part && weft_comm_destroy(part)) || weft_comm_destroy(twin) ||
		     weft_comm_destroy(two) || weft_comm_destroy(again)))
		bad = failed(r, "destroy");
	return bad;
}

/* Sixty-four over the same ranks, used in turn. */
static int many_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *all)
{
	struct weft_comm *comm[64];
	int32_t x, sum;

	(void)ctx;
	for (int i = 0; i < 64; i++) {
		if (weft_comm_split(all, i % 2 ? r->rank % 2 : 0, 0, NULL, &comm[i]))
			return failed(r, "split");
	}
	for (int i = 0; i < 64; i++) {
		x = i;
		if (weft_allreduce(comm[i], &x, &sum, 1, WEFT_INT32, WEFT_SUM, NULL) ||
		    sum != i * weft_comm_size(comm[i]))
			return failed(r, "all-reduce");
	}
	for (int i = 0; i < 64; i++) {
		if (weft_comm_destroy(comm[i]))
			return failed(r, "destroy");
	}
	return RANKS_GOOD;
}

/* What is not closed although other parts come: known to whoever looks for leaks. */
static void *volatile left[2];

/* The even ranks disagree; both of them hear it, the odd ones and all do not. */
static int disagree_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *all)
{
	static struct weft_comm *two;
	int32_t x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, sum[8];
	enum weft_result got;

	left[0] = ctx;
	left[1] = all;
	if (weft_comm_split(all, r->rank % 2, 0, NULL, &two))
		return failed(r, "split");
	got = weft_allreduce(two, x, sum, r->rank == 2 ? 8 : 7, WEFT_INT32, WEFT_SUM,
			     NULL);
	if (r->rank % 2 == 0 &&
	    (got != WEFT_ERR_MISMATCH || !strstr(weft_error_detail(), "rank 2")))
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	if (r->rank % 2 && got != WEFT_SUCCESS)
		return failed(r, "the odd ones");
	if (weft_barrier(all, NULL) != WEFT_SUCCESS)
		return failed(r, "all");
	got = weft_barrier(two, NULL);
	if (got != (r->rank % 2 ? WEFT_SUCCESS : WEFT_ERR_COMM))
		return ranks_say(r, "next: %s (%s)", weft_strerror(got),
				 weft_error_detail());
	return RANKS_GOOD;
}

/* Rank 3 dies while the others split with it; a group without it goes on. */
static int dies_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *all)
{
	struct weft_comm *without, *rest = NULL;
	enum weft_result got;
	int32_t x = 1, sum = 0;

	(void)ctx;
	if (weft_comm_split(all, r->rank == 3, 0, NULL, &without))
		return failed(r, "split");
	if (weft_barrier(all, NULL) != WEFT_SUCCESS)
		return failed(r, "barrier");
	/* Not before all have it: what it sent last may be lost with it. */
	if (!ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	if (r->rank == 3)
		raise(SIGKILL);
	got = weft_comm_split(all, 0, 0, NULL, &rest);
	if ((got != WEFT_ERR_PEER && got != WEFT_ERR_TIMEOUT) || rest ||
	    !strstr(weft_error_detail(), "rank 3"))
		return ranks_say(r, "%s (%s)", weft_strerror(got), weft_error_detail());
	if (weft_comm_split(all, 0, 0, NULL, &rest) != WEFT_ERR_COMM)
		return ranks_say(r, "again: %s", weft_error_detail());
	if (weft_allreduce(without, &x, &sum, 1, WEFT_INT32, WEFT_SUM, NULL) || sum != 3)
		return failed(r, "without it");
	if (weft_comm_dup(without, NULL, &rest) || weft_barrier(rest, NULL))
		return failed(r, "a duplicate without it");
	return RANKS_GOOD;
}

enum part { GROUPS, MANY, DISAGREE, DIES, PARTS };

static const struct ranks_part parts[PARTS] = {
	[GROUPS] = {6, -1, "groups of groups"},
	[MANY] = {4, -1, "64 at a time"},
	[DISAGREE] = {4, -1, "ranks of one group disagree"},
	[DIES] = {4, 3, "a rank that dies"},
};

static int (*const bodies[PARTS])(struct ranks *, struct weft_ctx *,
				  struct weft_comm *) = {
	[GROUPS] = groups_body,
	[MANY] = many_body,
	[DISAGREE] = disagree_body,
	[DIES] = dies_body,
};

/* arg: the provider. */
static int job_body(struct ranks *r)
{
	struct weft_ctx *ctx;
	struct weft_comm *all;
	int bad = ranks_open(r, r->arg, r->part == DIES ? 4000000 : TIMEOUT, &ctx);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &all) != WEFT_SUCCESS)
		return failed(r, "comm");
	bad = bodies[r->part](r, ctx, all);
	if (!bad && (r->part == GROUPS || r->part == MANY) &&
	    (weft_comm_destroy(all) != WEFT_SUCCESS ||
	     weft_ctx_close(ctx) != WEFT_SUCCESS))
		bad = failed(r, "close");
	return bad;
}

/* A rank that lost a peer, or disagreed, cannot close everything (rule D3): it leaves
 * with memory held. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	char names[8][32];
	bool good[PARTS];
	int count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		if (!ranks_parts(parts, PARTS, 240, job_body, names[i], good)) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		for (int p = 0; p < PARTS; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
