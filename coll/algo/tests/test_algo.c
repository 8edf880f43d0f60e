/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every algorithm on real arrays: the plans of all ranks are run in random order and the
 * results compared with what the collective's definition says. The seed is printed;
 * WEFT_SEED repeats a run.
 */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "coll/algo/algo.h"
#include "coll/algo/tests/interp.h"
#include "coll/plan/nodes.h"
#include "coll/plan/tables.h"
#include "util/tap.h"

#define GUARD	  3
#define GUARD_VAL UINT64_C(0x5afe5afe5afe5afe)
#define CASES	  60

struct job {
	const struct algo *algo;
	struct plan_call call;
	struct interp_rank *rank;
	uint64_t **in; /* what the elements of a rank's source were */
};

static uint64_t length(const struct job *j, int32_t rank, enum plan_buf buf)
{
	return plan_goal_length(j->algo->goal, &j->call, rank, buf);
}

static uint64_t *buffer(uint64_t len)
{
	uint64_t *b = malloc((len + GUARD) * sizeof(*b));

	if (!b)
		tap_bail("out of memory");
	for (uint64_t i = 0; i < len + GUARD; i++)
		b[i] = GUARD_VAL;
	return b;
}

static bool guards_good(const struct interp_rank *r, const struct plan_goal_alias *alias)
{
	for (int b = PLAN_SRC; b <= PLAN_SCRATCH; b++) {
		if (alias->shared && b == (int)alias->inner)
			continue;
		for (int i = 0; i < GUARD; i++) {
			if (r->buf[b][r->buf_len[b] + i] != GUARD_VAL)
				return false;
		}
	}
	return true;
}

static void rank_open(struct job *j, int32_t r, uint64_t *seed)
{
	struct interp_rank *k = &j->rank[r];
	const struct plan_goal_alias alias =
		plan_goal_in_place(j->algo->goal, &j->call, r);
	struct plan_call call = j->call;
	const char *why = "";
	struct plan *plan;

	call.rank = r;
	if (j->algo->build(&call, &plan, &why))
		tap_bail("%s/%s rank %d of %d: %s", j->algo->coll, j->algo->name, r,
			 call.size, why);
	k->plan = plan;
	k->ordered = call.ordered;
	k->buf_len[PLAN_SRC] = length(j, r, PLAN_SRC);
	k->buf_len[PLAN_DST] = length(j, r, PLAN_DST);
	k->buf_len[PLAN_SCRATCH] = plan->buf_len[PLAN_SCRATCH];
	for (int b = PLAN_SRC; b <= PLAN_SCRATCH; b++) {
		if (!alias.shared || b != (int)alias.inner)
			k->buf[b] = buffer(k->buf_len[b]);
	}
	if (alias.shared)
		k->buf[alias.inner] =
			k->buf[alias.inner == PLAN_SRC ? PLAN_DST : PLAN_SRC] + alias.at;
	j->in[r] = buffer(k->buf_len[PLAN_SRC]);
	for (uint64_t i = 0; i < k->buf_len[PLAN_SRC]; i++) {
		k->buf[PLAN_SRC][i] = interp_random(seed) >> 20;
		j->in[r][i] = k->buf[PLAN_SRC][i];
	}
}

static void rank_close(struct job *j, int32_t r)
{
	const struct plan_goal_alias alias =
		plan_goal_in_place(j->algo->goal, &j->call, r);
	struct interp_rank *k = &j->rank[r];

	plan_free((struct plan *)(uintptr_t)k->plan);
	for (int b = PLAN_SRC; b <= PLAN_SCRATCH; b++) {
		if (!alias.shared || b != (int)alias.inner)
			free(k->buf[b]);
	}
	free(j->in[r]);
}

static uint64_t expected(const struct job *j, const struct plan_goal_piece *p, uint64_t i)
{
	uint64_t sum = 0;

	if (p->from == PLAN_GOAL_UNTOUCHED)
		return GUARD_VAL;
	if (p->from >= 0)
		return j->in[p->from][p->pos + i];
	for (int32_t r = 0; r < j->call.size; r++) {
		const uint64_t next = j->in[r][p->pos + i];

		sum = j->call.ordered && r ? interp_compose(sum, next) : sum + next;
	}
	return j->call.average ? sum / (uint64_t)j->call.size : sum;
}

static bool result_good(const struct job *j, int32_t r)
{
	const uint64_t *dst = j->rank[r].buf[PLAN_DST];
	struct plan_goal_piece p;

	for (uint32_t k = 0; plan_goal_piece(j->algo->goal, &j->call, r, k, &p); k++) {
		for (uint64_t i = 0; i < p.length; i++) {
			if (*dst++ != expected(j, &p, i))
				return false;
		}
	}
	return true;
}

/* What is not the result's is as it was. */
static bool source_good(const struct job *j, int32_t r,
			const struct plan_goal_alias *alias)
{
	const struct interp_rank *k = &j->rank[r];
	const uint64_t dst = alias->at + k->buf_len[PLAN_DST];

	if (alias->shared && alias->inner == PLAN_SRC)
		return true;
	for (uint64_t i = 0; i < k->buf_len[PLAN_SRC]; i++) {
		if (alias->shared && i >= alias->at && i < dst)
			continue;
		if (k->buf[PLAN_SRC][i] != j->in[r][i])
			return false;
	}
	return true;
}

static bool results_good(const struct job *j)
{
	for (int32_t r = 0; r < j->call.size; r++) {
		const struct plan_goal_alias alias =
			plan_goal_in_place(j->algo->goal, &j->call, r);

		if (!guards_good(&j->rank[r], &alias) || !result_good(j, r) ||
		    !source_good(j, r, &alias))
			return false;
	}
	return true;
}

static bool job_run(struct job *j, uint64_t *seed)
{
	uint64_t n = (uint64_t)j->call.size;
	char why[256] = "wrong result, source or guard";
	bool good;

	j->rank = calloc(n, sizeof(*j->rank));
	j->in = calloc(n, sizeof(*j->in));
	if (!j->rank || !j->in)
		tap_bail("out of memory");
	for (int32_t r = 0; r < j->call.size; r++)
		rank_open(j, r, seed);
	good = interp_run(j->rank, j->call.size, seed, why, sizeof(why)) &&
	       results_good(j);
	if (!good)
		tap_diag("%d ranks, count %" PRIu64 ", root %d, chunk %" PRIu64
			 "%s%s%s: %s",
			 j->call.size, j->call.count, j->call.root, j->call.chunk_bytes,
			 j->call.average ? ", average" : "",
			 j->call.in_place ? ", in place" : "",
			 j->call.ordered ? ", in order"
			 : j->call.roomy ? ", roomy"
					 : "",
			 why);
	for (int32_t r = 0; r < j->call.size; r++)
		rank_close(j, r);
	free(j->rank);
	free(j->in);
	return good;
}

static struct plan_call random_call(uint64_t *seed)
{
	uint64_t most = interp_random(seed) % 4 ? 40 : 4;
	struct plan_call c = {
		.size = 1 + (int32_t)(interp_random(seed) % 12),
		.count = interp_random(seed) % most,
		.elem_size = 8,
		.average = interp_random(seed) % 2,
		.ordered = interp_random(seed) % 3 == 0,
		.in_place = interp_random(seed) % 2,
		.chunk_bytes = interp_random(seed) % 3 * 8,
	};

	c.roomy = !c.in_place && interp_random(seed) % 3 == 0;
	if (c.ordered)
		c.average = false;
	c.root = (int32_t)(interp_random(seed) % (uint64_t)c.size);
	return c;
}

/* NULL, too: all ranks on one. */
static struct plan_nodes *random_nodes(const struct plan_call *call, uint64_t *seed)
{
	const uint64_t layout = interp_random(seed) % (PLAN_LAYOUTS + 1);

	if (layout == PLAN_LAYOUTS)
		return NULL;
	return plan_nodes_fake((enum plan_layout)layout, call->size,
			       1 + (int32_t)(interp_random(seed) % 5));
}

static void results_tests(uint64_t *seed)
{
	for (size_t a = 0; a < algo_count; a++) {
		int wrong = 0;

		for (int i = 0; i < CASES; i++) {
			struct job j = {.algo = &algo_table[a],
					.call = random_call(seed)};

			struct plan_nodes *nodes = random_nodes(&j.call, seed);

			j.call.nodes = nodes;
			j.call.vector = algo_table[a].vector;
			if (j.call.vector)
				j.call.tables = plan_tables_make(algo_table[a].goal,
								 &j.call, j.call.count,
								 interp_random(seed));
			if (algo_table[a].supports(&j.call))
				wrong += !job_run(&j, seed);
			plan_tables_free(j.call.tables, j.call.size);
			free(nodes);
		}
		tap_ok(!wrong, "%s/%s: %d random calls, %d wrong", algo_table[a].coll,
		       algo_table[a].name, CASES, wrong);
	}
}

static void choice_tests(void)
{
	struct plan_call c = {.size = 4, .count = 2, .elem_size = 4};
	char text[128];

	tap_is_str(algo_choose("allreduce", &c)->name, "recursive-doubling",
		   "a short all-reduce doubles");
	tap_is_str(algo_choose("allgather", &c)->name, "recursive-doubling",
		   "a short all-gather doubles");
	c.count = 1 << 14;
	tap_is_str(algo_choose("allreduce", &c)->name, "halving-doubling",
		   "between them an all-reduce goes by halves");
	c.size = 2;
	tap_is_str(algo_choose("allreduce", &c)->name, "recursive-doubling",
		   "which is nothing for two ranks");
	c.size = 6;
	c.count = 1 << 15;
	tap_is_str(algo_choose("allreduce", &c)->name, "ring",
		   "and little for numbers that are no power of two");
	c.size = 4;
	c.count = 1 << 22;
	tap_is_str(algo_choose("allreduce", &c)->name, "ring", "a long all-reduce: ring");
	tap_is_str(algo_choose("allgather", &c)->name, "ring", "a long all-gather: ring");
	c.count = UINT64_MAX;
	tap_is_str(algo_choose("allreduce", &c)->name, "ring",
		   "a count whose bytes do not fit 64 bits is still chosen for");
	tap_is_str(algo_choose("barrier", &c)->name, "dissemination",
		   "a barrier in rounds");
	c = (struct plan_call){.size = 4, .count = 1 << 20, .elem_size = 4};
	tap_is_str(algo_choose("broadcast", &c)->name, "binomial",
		   "a long broadcast that the root has to send: a tree");
	c.fetches = true;
	tap_is_str(algo_choose("broadcast", &c)->name, "flat",
		   "one that the others fetch: flat");
	c.count = 2;
	tap_is_str(algo_choose("broadcast", &c)->name, "flat", "a tiny one: to very few");
	c.size = 5;
	tap_is_str(algo_choose("broadcast", &c)->name, "binomial", "to more by a tree");
	c.crowded = true;
	tap_is_str(algo_choose("broadcast", &c)->name, "flat",
		   "but not where they share processors");
	c.count = 2000;
	tap_is_str(algo_choose("broadcast", &c)->name, "flat", "a short one: to few");
	c = (struct plan_call){.size = 4, .count = 1024, .elem_size = 4};
	tap_is_str(algo_choose("reduce_scatter", &c)->name, "recursive-halving",
		   "a short reduce-scatter goes by halves");
	tap_is_str(algo_choose("alltoall", &c)->name, "direct", "an all-to-all: direct");
	tap_is_str(algo_choose("gather", &c)->name, "direct", "a gather of few: direct");
	tap_is_str(algo_choose("reduce", &c)->name, "binomial", "a reduce: a tree");
	c.count = 1 << 20;
	tap_is_str(algo_choose("reduce", &c)->name, "chain", "a long reduce: a chain");
	tap_is_str(algo_choose("reduce_scatter", &c)->name, "ring",
		   "a long reduce-scatter: ring");
	tap_is_str(algo_choose("alltoall", &c)->name, "pairwise",
		   "a long all-to-all: one at a time");
	c.size = 40;
	tap_is_str(algo_choose("scatter", &c)->name, "direct",
		   "a long scatter: nothing is carried twice");
	c.count = 2;
	tap_is_str(algo_choose("scatter", &c)->name, "binomial",
		   "a tiny one to many: a tree");
	tap_is_str(algo_choose("alltoall", &c)->name, "bruck",
		   "a tiny all-to-all of many: fewest rounds");
	c = (struct plan_call){
		.size = 4, .count = 1 << 22, .elem_size = 4, .ordered = true};
	tap_is_str(algo_choose("allreduce", &c)->name, "recursive-doubling",
		   "what does not commute doubles, however long");
	tap_is_str(algo_choose("reduce", &c)->name, "chain", "or goes by a chain");
	tap_is_str(algo_choose("reduce_scatter", &c)->name, "recursive-halving",
		   "or halves with its neighbours first");
	c = (struct plan_call){.size = 17, .elem_size = 4};
	tap_ok(!algo_find("barrier", "flat")->supports(&c) &&
		       !algo_find("broadcast", "flat")->supports(&c),
	       "17 ranks are too many for one");
	tap_ok(!algo_choose("gossip", &c), "no algorithm for an unknown collective");
	tap_ok(!algo_find("allreduce", "gossip"), "no algorithm of an unknown name");
	tap_ok(algo_find("allgather", "ring") != algo_find("allreduce", "ring"),
	       "names belong to a collective");
	algo_list("allgather", text, sizeof(text));
	tap_is_str(text,
		   "ring, recursive-doubling, ffbruck, streamed-doubling, hierarchical, "
		   "lines",
		   "the list of a collective");
	algo_list("allgather", text, 6);
	tap_is_str(text, "ring,", "a short buffer cuts the list");
}

static void lines_tests(void)
{
	struct plan_call c = {.size = 8, .count = 64, .elem_size = 8, .lines = true};

	tap_is_str(algo_choose("allreduce", &c)->name, "lines",
		   "where ranks share memory a short all-reduce goes by it");
	c.count = 512; /* 32 KiB in all */
	tap_is_str(algo_choose("alltoall", &c)->name, "lines",
		   "so do blocks that are short together");
	c.count++;
	tap_is_str(algo_choose("alltoall", &c)->name, "direct", "and not longer ones");
	c.count = 4096;
	tap_is_str(algo_choose("allreduce", &c)->name, "lines", "up to 32 KiB");
	c.count++;
	tap_is_str(algo_choose("allreduce", &c)->name, "halving-doubling",
		   "nor a long all-reduce");
	c.reads = true;
	tap_is_str(algo_choose("allreduce", &c)->name, "lines",
		   "but where they can read what each other gives");
	c.in_place = true;
	tap_ok(strcmp(algo_choose("alltoall", &c)->name, "lines") != 0,
	       "which blocks that are exchanged in place are not");
	c.in_place = false;
	c.count = (UINT64_C(1) << 20) / 8 + 1;
	tap_ok(strcmp(algo_choose("allreduce", &c)->name, "lines") != 0,
	       "nor what is very long");
	c.count = 0;
	tap_is_str(algo_choose("barrier", &c)->name, "lines", "a barrier does");
	tap_is_str(algo_choose("allreduce", &c)->name, "recursive-doubling",
		   "an all-reduce of nothing meets nobody");
	c = (struct plan_call){
		.size = 8, .count = 4, .elem_size = 8, .lines = true, .ordered = true};
	tap_is_str(algo_choose("reduce", &c)->name, "lines",
		   "it keeps the order of ranks");
	c = (struct plan_call){.size = 17, .elem_size = 4, .lines = true};
	tap_ok(!algo_find("barrier", "lines")->supports(&c), "and is for few ranks");
}

/* What an algorithm must refuse. */
static void refusal_tests(void)
{
	for (size_t a = 0; a < algo_count; a++) {
		struct plan_call c = {.rank = 3, .size = 3, .count = 1, .elem_size = 4};
		const char *why = NULL;
		struct plan *plan;
		int ret = algo_table[a].build(&c, &plan, &why);

		tap_ok(ret == -EINVAL && why, "%s/%s: a rank outside is refused",
		       algo_table[a].coll, algo_table[a].name);
		if (algo_table[a].goal == PLAN_GOAL_BARRIER)
			continue;
		c = (struct plan_call){.size = 3,
				       .count = UINT64_MAX,
				       .elem_size = 4,
				       .vector = algo_table[a].vector};
		ret = algo_table[a].build(&c, &plan, &why);
		tap_ok(ret == -EINVAL && why, "%s/%s: more than 64 bits are refused",
		       algo_table[a].coll, algo_table[a].name);
		if (!plan_goal_rooted(algo_table[a].goal))
			continue;
		c = (struct plan_call){.size = 3, .count = 1, .elem_size = 4, .root = -1};
		ret = algo_table[a].build(&c, &plan, &why);
		tap_ok(ret == -EINVAL && why, "%s/%s: a root that is no rank is refused",
		       algo_table[a].coll, algo_table[a].name);
	}
}

/* Plans stay small: the point of loops. */
static void economy_tests(void)
{
	struct plan_call c = {.rank = 70000,
			      .size = 131072,
			      .count = UINT64_C(1) << 32,
			      .elem_size = 4,
			      .in_place = true};
	const char *why = "";

	for (size_t a = 0; a < algo_count; a++) {
		struct plan *plan;
		uint32_t most;

		c.vector = algo_table[a].vector;
		if (!algo_table[a].supports(&c))
			continue;
		if (algo_table[a].build(&c, &plan, &why)) {
			tap_ok(false, "%s/%s at 131072 ranks: %s", algo_table[a].coll,
			       algo_table[a].name, why);
			continue;
		}
		/* 17 rounds there and back, 5 steps for both; 17 of 6 steps. */
		most = strcmp(algo_table[a].name, "halving-doubling") &&
				       !strstr(algo_table[a].name, "bruck")
			       ? 64
			       : 128;
		/* 17 * 18 / 2 messages, each way. */
		if (!strcmp(algo_table[a].name, "streamed-doubling"))
			most = 320;
		tap_ok(plan->step_count < most && plan->dep_count < 4 * most,
		       "%s/%s at 131072 ranks: %u steps", algo_table[a].coll,
		       algo_table[a].name, plan->step_count);
		plan_free(plan);
	}
	/* 1 GiB in place over 8 ranks: a few chunks of scratch. */
	c = (struct plan_call){
		.size = 8, .count = UINT64_C(1) << 28, .elem_size = 4, .in_place = true};
	struct plan *plan;

	if (algo_find("allreduce", "ring")->build(&c, &plan, &why))
		tap_bail("allreduce/ring: %s", why);
	tap_ok(plan->buf_len[PLAN_SCRATCH] * 4 <= 1024 * 1024,
	       "in-place ring: scratch of %" PRIu64 " bytes for 1 GiB",
	       plan->buf_len[PLAN_SCRATCH] * 4);
	plan_free(plan);
}

int main(void)
{
	const char *given = getenv("WEFT_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

	seed += !seed;
	tap_diag("seed %" PRIu64 " (repeat with WEFT_SEED=%" PRIu64 ")", seed, seed);
	choice_tests();
	lines_tests();
	refusal_tests();
	economy_tests();
	results_tests(&seed);
	return tap_done();
}
