/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks that disagree, drawn at random: the call, its algorithm and size, the number of
 * ranks, the rank that differs and in what. Nobody runs into its deadline; a rank
 * succeeds or gets the one sentence that all others get, which names the rank that
 * differs (where a rank was kept from running for a second it may be another sentence,
 * which names it as well); nobody's memory is written beyond its buffers; the next call
 * says the first cause; after that the context works with another communicator.
 * WEFT_TEST_SEED=n repeats a run, WEFT_TEST_RUNS=n makes it longer.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/algo/algo.h"
#include "coll/comm/comm.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define DEADLINE_US INT64_C(60000000) /* nobody runs into it */
#define TRIALS	    6		      /* by the same processes */
#define RUN_TIMEOUT 170
#define GUARD_BYTES 256
#define TEXT_MAX    400
#define HELD_MS	    300 /* a rank that is held is let go then, as others may need it */
/* Who is asked for the sentence may be passed over after so long, and by nobody whose
 * calls took less: only then may there be two sentences (coll/exec/README.md). */
#define PASSED_US INT64_C(1000000)

struct world {
	const char *provider;
	uint32_t seed;
	struct net_attr net;
};

struct args {
	enum weft_coll coll;
	uint8_t algorithm;
	enum weft_type type;
	enum weft_op op;
	uint64_t count;
	int32_t root;
};

struct trial {
	struct args same, other;
	int32_t odd; /* the rank that gives `other` */
	const char *field;
	int warm;
	/* The odd one starts its call and makes no progress with it, until the others are
	 * through with theirs and the next, or need it. */
	bool held;
};

/* What a rank tells the others of how it went. */
struct told {
	int32_t result, next;
	int64_t took_us; /* both calls together */
	char text[TEXT_MAX], next_text[TEXT_MAX];
};

static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(*state >> 4) * below >> 28);
}

static uint64_t draw_count(uint32_t *s)
{
	/* Around nothing, inject, the message threshold, a chunk, and several. */
	static const uint64_t counts[] = {0, 1, 7, 100, 4095, 4097, 16384, 40000, 200000};

	return counts[draw(s, 9)] + draw(s, 3);
}

static uint32_t algorithms_of(enum weft_coll coll)
{
	uint32_t count = 0;

	while (algo_at(weft_coll_name(coll), (uint8_t)count))
		count++;
	return count;
}

static void args_draw(struct args *a, int32_t size, uint32_t *s)
{
	static const enum weft_type types[] = {WEFT_INT32, WEFT_FP32, WEFT_INT64,
					       WEFT_FP64};

	/* Those that have an algorithm. */
	do {
		a->coll = (enum weft_coll)draw(s, WEFT_COLL_COUNT);
	} while (!algorithms_of(a->coll));
	a->algorithm = (uint8_t)draw(s, algorithms_of(a->coll));
	a->type = types[draw(s, 4)];
	a->op = (enum weft_op)draw(s, WEFT_MAX + 1);
	a->count = draw_count(s);
	a->root = (int32_t)draw(s, (uint32_t)size);
}

static struct ref_case args_case(const struct args *a)
{
	return (struct ref_case){
		.coll = a->coll,
		.algorithm = algo_at(weft_coll_name(a->coll), a->algorithm)->name,
		.type = a->type,
		.op = a->op,
		.count = a->count,
		.root = a->root,
	};
}

/*
 * Whether the blocks differ that go between this rank and another. What a root of a (v)
 * form has for itself is its own affair, and two totals can give the same blocks.
 */
static bool blocks_differ(const struct ref_blocks *a, const struct ref_blocks *b,
			  bool shared, int32_t rank)
{
	for (int32_t k = 0; k < a->n; k++) {
		if (a->count[k] != b->count[k] && (shared || k != rank))
			return true;
	}
	return false;
}

static bool counts_differ(const struct args *x, const struct args *y, int32_t rank,
			  int32_t size)
{
	const struct ref_case a = args_case(x), b = args_case(y);
	const struct ref_blocks src[] = {ref_src(&a, rank, size),
					 ref_src(&b, rank, size)},
				dst[] = {ref_dst(&a, rank, size),
					 ref_dst(&b, rank, size)};
	/* The block of a rank passes other hands where every rank knows all blocks. */
	const bool shared = x->coll == WEFT_COLL_ALLGATHERV ||
			    x->coll == WEFT_COLL_REDUCE_SCATTERV,
		   alone = ref_rooted(x->coll) && rank == x->root;

	/* Of a dynamic one the most is what all ranks give. */
	if (x->count == y->count || !ref_vector(x->coll) ||
	    x->coll == WEFT_COLL_ALLTOALLV_DYNAMIC)
		return x->count != y->count;
	return (!(alone && src[0].n == 1) &&
		blocks_differ(&src[0], &src[1], shared || src[0].n == 1, rank)) ||
	       (!(alone && dst[0].n == 1) &&
		blocks_differ(&dst[0], &dst[1], shared || dst[0].n == 1, rank));
}

/* Whether other ranks can see it if `rank` calls with b what they call with a. */
static bool args_differ(const struct args *a, const struct args *b, int32_t rank,
			int32_t size)
{
	if (a->coll != b->coll || a->algorithm != b->algorithm)
		return true;
	if (a->coll == WEFT_COLL_BARRIER)
		return false;
	return counts_differ(a, b, rank, size) || a->type != b->type ||
	       (ref_reduces(a->coll) && a->op != b->op) ||
	       (ref_rooted(a->coll) && a->root != b->root);
}

static void trial_draw(struct trial *t, int32_t size, uint32_t *s)
{
	static const char *const fields[] = {"count", "type", "operation",
					     "root",  "coll", "algorithm"};

	do {
		struct args fresh;
		const uint32_t field = draw(s, 6);

		args_draw(&t->same, size, s);
		args_draw(&fresh, size, s);
		t->other = t->same;
		t->field = fields[field];
		switch (field) {
		case 0:
			t->other.count = draw(s, 2) ? fresh.count : t->same.count + 1;
			break;
		case 1:
			t->other.type = fresh.type;
			break;
		case 2:
			t->other.op = fresh.op;
			break;
		case 3:
			t->other.root = fresh.root;
			break;
		case 4:
			t->other.coll = fresh.coll;
			t->other.algorithm = fresh.algorithm;
			break;
		default:
			t->other.algorithm =
				(uint8_t)draw(s, algorithms_of(t->same.coll));
			break;
		}
		t->odd = (int32_t)draw(s, (uint32_t)size);
	} while (!args_differ(&t->same, &t->other, t->odd, size));
	t->warm = (int)draw(s, 3);
	/* Not rank 0, which says what all shall say: it is passed over after a second. */
	t->held = draw(s, 4) == 0 && t->odd;
}

/* A call of a rank that makes no progress with it for a while. */
struct held {
	int most_ms;
	struct weft_req *open; /* a peer may still write into what its call was given */
};

/* Until as many ranks have marked themselves, or for a while: which of the two it is
 * changes what is tried, not what must come of it. */
static void hold(const struct ranks *r, int32_t marks, int most_ms)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	for (int i = 0; i < most_ms && ranks_marks(r) < marks; i++)
		nanosleep(&nap, NULL);
}

static enum weft_result held_call(struct ranks *r, struct weft_comm *comm,
				  const struct ref_case *c, const struct case_bufs *b,
				  struct held *held)
{
	const int32_t marks = ranks_marks(r) + r->size - 1;
	enum weft_result result = case_start(comm, c, b, &held->open);

	/* The others begin when it has started. */
	if (result != WEFT_SUCCESS || !ranks_barrier(r))
		return WEFT_ERR_INTERNAL;
	hold(r, marks, held->most_ms);
	result = weft_req_wait(held->open, WEFT_TIMEOUT_DEFAULT);
	if (result != WEFT_ERR_BUSY)
		held->open = NULL;
	return result;
}

/* Runs the call of these arguments; *whole says that the guards are. */
static enum weft_result args_run(struct ranks *r, struct weft_comm *comm,
				 const struct args *a, bool *whole, struct held *held)
{
	const struct ref_case c = args_case(a);
	const int32_t rank = weft_comm_rank(comm), size = weft_comm_size(comm);
	const size_t elem = weft_type_size(a->type);
	const size_t src_len = ref_src(&c, rank, size).span * elem,
		     dst_len = ref_dst(&c, rank, size).span * elem;
	uint8_t *src = calloc(1, src_len + 1), *dst = malloc(dst_len + GUARD_BYTES);
	const struct case_bufs b = {
		.src = src, .dst = dst, .dynamic = case_dynamic_open(&c, rank, size)};
	enum weft_result result;

	memset(dst, 0, dst_len);
	memset(dst + dst_len, 0x77, GUARD_BYTES);
	result = held ? held_call(r, comm, &c, &b, held) : case_call(comm, &c, &b);
	*whole = true;
	for (int i = 0; i < GUARD_BYTES; i++)
		*whole = *whole && dst[dst_len + (size_t)i] == 0x77;
	/* Buffers of a failed call may still be written (rule D3): they are leaked. */
	if (result == WEFT_SUCCESS) {
		free(src);
		free(dst);
		free(b.dynamic);
	}
	return result;
}

static void args_print(const struct args *a, char *text, size_t len)
{
	snprintf(text, len, "%s/%u %s %s %llu root %d", weft_coll_name(a->coll),
		 a->algorithm, weft_type_name(a->type), weft_op_name(a->op),
		 (unsigned long long)a->count, a->root);
}

/* Whether it is about the rank that differs, and says of two what they do; not where one
 * that was asked what it did was passed over. */
static bool says_it(const char *cause, const char *odd, bool passed)
{
	return strstr(cause, odd) &&
	       (strstr(cause, " runs ") || strstr(cause, " bytes, rank ") ||
		(passed && strstr(cause, " gave different arguments to a call before ")));
}

/* Whether a next call says why the communicator failed: the one cause, or, of those that
 * there may be, one that is about the rank that differs. */
static bool next_says(const struct told *told, const char *cause, const char *odd,
		      bool one)
{
	const size_t len = strcspn(cause, ";");

	return one ? memmem(told->next_text, strlen(told->next_text), cause, len) != NULL
		   : says_it(told->next_text, odd, true);
}

/* What all ranks got together, judged by each of them. */
static int trial_judge(struct ranks *r, const struct trial *t, struct told *told)
{
	const char *cause = NULL;
	char odd[32];
	bool one = true;

	snprintf(odd, sizeof(odd), "rank %d ", t->odd);
	for (int32_t i = 0; i < r->size; i++)
		one = one && told[i].took_us < PASSED_US;
	for (int32_t i = 0; i < r->size; i++) {
		if (told[i].result == WEFT_SUCCESS)
			continue;
		if (told[i].result != WEFT_ERR_MISMATCH)
			return ranks_say(r, "rank %d: %s: %s", i,
					 weft_strerror((enum weft_result)told[i].result),
					 told[i].text);
		/* Behind it may be a note about the buffers of this rank. */
		told[i].text[strcspn(told[i].text, ";")] = '\0';
		if (cause && one && strcmp(cause, told[i].text) != 0)
			return ranks_say(r, "two sentences: \"%s\", \"%s\"", cause,
					 told[i].text);
		if (!says_it(told[i].text, odd, !one))
			return ranks_say(r, "rank %d is not named: %s", t->odd,
					 told[i].text);
		cause = told[i].text;
	}
	/* All finished: the first of the next call's says it. */
	for (int32_t i = 0; i < r->size && !cause; i++)
		cause = one ? strstr(told[i].next_text, "call ") : told[i].next_text;
	if (!cause || !says_it(cause, odd, !one))
		return ranks_say(r, "rank %d is not named: %s", t->odd,
				 cause ? cause : "nothing said");
	for (int32_t i = 0; i < r->size; i++) {
		if (told[i].next != WEFT_ERR_COMM && told[i].next != WEFT_ERR_MISMATCH)
			return ranks_say(r, "rank %d, next call: %s: %s", i,
					 weft_strerror((enum weft_result)told[i].next),
					 told[i].next_text);
		if (!next_says(&told[i], cause, odd, one))
			return ranks_say(r, "rank %d's next call says: %s, not: %s", i,
					 told[i].next_text, cause);
	}
	return RANKS_GOOD;
}

/* A rank that is safe still answers the others, by a barrier on another communicator. */
static int trial_close(struct ranks *r, struct weft_comm *comm, struct weft_comm *other,
		       struct weft_req *open)
{
	const time_t until = time(NULL) + 60;

	for (;;) {
		const struct timespec nap = {.tv_nsec = 1000000};
		int done = 0;

		if (open)
			weft_req_test(open, &done);
		if (done)
			open = NULL;
		if (!open && weft_comm_destroy(comm) == WEFT_SUCCESS)
			break;
		if (time(NULL) > until)
			return ranks_say(r, "never safe: %s", weft_error_detail());
		nanosleep(&nap, NULL);
	}
	if (weft_barrier(other, NULL) != WEFT_SUCCESS)
		return ranks_say(r, "other communicator: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* What the call has come to, and why: of one that failed already whose buffers a peer may
 * still write the cause stands in what it says of that. */
static void own_say(struct told *own)
{
	static const char failed[] = "the call failed (";
	const char *text = weft_error_detail();
	const size_t len = strlen(weft_strerror(WEFT_ERR_MISMATCH));

	if (own->result == WEFT_ERR_BUSY && !strncmp(text, failed, sizeof(failed) - 1) &&
	    !strncmp(text + sizeof(failed) - 1, weft_strerror(WEFT_ERR_MISMATCH), len)) {
		own->result = WEFT_ERR_MISMATCH;
		text += sizeof(failed) - 1 + len + 2;
	}
	snprintf(own->text, sizeof(own->text), "%s", text);
}

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static int trial_run(struct ranks *r, const struct trial *t, struct weft_ctx *ctx,
		     struct weft_comm *other)
{
	struct told own = {0}, all[RANKS_MAX];
	struct weft_comm *comm;
	struct held held = {.most_ms = HELD_MS};
	char text[2][120];
	bool whole;
	int bad;

	args_print(&t->same, text[0], sizeof(text[0]));
	args_print(&t->other, text[1], sizeof(text[1]));
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	for (int i = 0; i < t->warm; i++) {
		if (args_run(r, comm, &t->same, &whole, NULL) != WEFT_SUCCESS)
			return ranks_say(r, "before: %s", weft_error_detail());
	}
	if (t->held && r->rank != t->odd && !ranks_barrier(r))
		return ranks_say(r, "the ranks of the test lost each other");
	own.took_us = -now_us();
	own.result = args_run(r, comm, r->rank == t->odd ? &t->other : &t->same, &whole,
			      t->held && r->rank == t->odd ? &held : NULL);
	own_say(&own);
	own.next = weft_barrier(comm, NULL);
	own.took_us += now_us();
	snprintf(own.next_text, sizeof(own.next_text), "%s", weft_error_detail());
	if (t->held && r->rank != t->odd)
		ranks_mark(r);
	if (!ranks_gather(r, &own, all, sizeof(own)))
		return ranks_say(r, "the ranks of the test lost each other");
	bad = trial_judge(r, t, all);
	if (!whole)
		bad = ranks_say(r, "wrote beyond the buffer");
	bad = trial_close(r, comm, other, held.open) || bad;
	if (bad)
		ranks_say(r, "%d ranks, %d calls before: %s; rank %d%s other %s: %s",
			  r->size, t->warm, text[0], t->odd, t->held ? ", held," : "",
			  t->field, text[1]);
	return bad;
}

/* A context, and a communicator that nothing of a trial may harm. */
static int world_open(struct ranks *r, struct weft_ctx **ctx, struct weft_comm **other)
{
	const struct world *w = r->arg;
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct net_attr net = w->net;

	opts.boot = &r->boot;
	opts.timeout_us = DEADLINE_US;
	net.provider = w->provider;
	if (ctx_open(&opts, &net, ctx) != WEFT_SUCCESS)
		return strstr(weft_error_detail(), "no libfabric")
			       ? RANKS_ABSENT
			       : ranks_say(r, "open: %s", weft_error_detail());
	if (weft_comm_create(*ctx, NULL, other) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int world_close(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *other)
{
	if (weft_comm_destroy(other) != WEFT_SUCCESS ||
	    weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int world_body(struct ranks *r)
{
	const struct world *w = r->arg;
	struct weft_comm *other;
	struct weft_ctx *ctx;
	uint32_t state = w->seed;
	int bad = world_open(r, &ctx, &other);

	for (int i = 0; i < TRIALS && r->size > 1 && !bad; i++) {
		struct trial t;

		trial_draw(&t, r->size, &state);
		bad = trial_run(r, &t, ctx, other);
	}
	return bad ? bad : world_close(r, ctx, other);
}

/*
 * Lengths on both sides of where a message ends and a put begins: what one rank sends
 * without being asked another wants to have put, and has no receive for; and the other
 * way round. Small ones have left their sender long before.
 */
static int lengths_body(struct ranks *r)
{
	static const uint64_t counts[][2] = {
		{200000, 100}, {200000, 40000}, {100, 200000}, {40000, 200000}};
	struct weft_comm *other;
	struct weft_ctx *ctx;
	int bad = world_open(r, &ctx, &other);

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !bad; i++) {
		struct trial t = {.same = {.coll = WEFT_COLL_GATHERV,
					   .type = WEFT_FP64,
					   .count = counts[i][0],
					   .root = 1},
				  .odd = 2,
				  .field = "count"};

		t.other = t.same;
		t.other.count = counts[i][1];
		bad = trial_run(r, &t, ctx, other);
	}
	return bad ? bad : world_close(r, ctx, other);
}

/* Every collective in turn: one rank gives a count that the others do not. */
static int each_body(struct ranks *r)
{
	struct weft_comm *other;
	struct weft_ctx *ctx;
	int bad = world_open(r, &ctx, &other);

	for (int coll = 0; coll < WEFT_COLL_COUNT && !bad; coll++) {
		struct trial t = {.same = {.coll = (enum weft_coll)coll,
					   .type = WEFT_INT32,
					   .count = 40,
					   .root = 1},
				  .odd = coll % r->size,
				  .field = "count"};

		if (coll == WEFT_COLL_BARRIER || !algorithms_of(t.same.coll))
			continue;
		t.other = t.same;
		while (!args_differ(&t.same, &t.other, t.odd, r->size))
			t.other.count++;
		bad = trial_run(r, &t, ctx, other);
	}
	return bad ? bad : world_close(r, ctx, other);
}

/* Calls of every way: by messages and by lines, near and far; of the first few the others
 * end without rank 2. */
static const struct {
	enum weft_coll coll;
	const char *algorithm;
	uint64_t count;
} ways[] = {
	{WEFT_COLL_BROADCAST, "flat", 8},	  {WEFT_COLL_BROADCAST, "lines", 8},
	{WEFT_COLL_REDUCE, "binomial", 8},	  {WEFT_COLL_GATHER, "lines", 8},
	{WEFT_COLL_ALLREDUCE, "ring", 8},	  {WEFT_COLL_ALLREDUCE, "lines", 8},
	{WEFT_COLL_ALLREDUCE, "lines", 20000},	  {WEFT_COLL_BROADCAST, "lines", 10000},
	{WEFT_COLL_BROADCAST, "binomial", 40000},
};
#define WAYS_ALONE 3
#define WAYS	   ((int)(sizeof(ways) / sizeof(ways[0])))

static struct args way_args(int way)
{
	struct args a = {.coll = ways[way].coll,
			 .type = WEFT_INT32,
			 .op = WEFT_MIN,
			 .count = ways[way].count,
			 .root = 1};

	while (strcmp(algo_at(weft_coll_name(a.coll), a.algorithm)->name,
		      ways[way].algorithm) != 0)
		a.algorithm++;
	return a;
}

/* Each way against each other one, also where the odd one makes no progress while the
 * others end, find in their next call that something is wrong, and leave. */
static int ways_body(struct ranks *r)
{
	struct weft_comm *other;
	struct weft_ctx *ctx;
	int bad = world_open(r, &ctx, &other);

	for (int i = 0; i < 2 * WAYS * WAYS && !bad; i++) {
		const struct trial t = {.same = way_args(i / 2 % WAYS),
					.other = way_args(i / 2 / WAYS),
					.odd = 2,
					.field = "way",
					.warm = i / 2 % 3,
					.held = i % 2};

		if (tap_short() && (!t.held || i / 2 % WAYS >= WAYS_ALONE))
			continue;
		if (args_differ(&t.same, &t.other, t.odd, r->size))
			bad = trial_run(r, &t, ctx, other);
	}
	return bad ? bad : world_close(r, ctx, other);
}

/* Rank 2 stands in a call that the others have ended as another one, makes no progress
 * while they disagree about their next, and nobody is there any more when it goes on. */
static int overtaken_body(struct ranks *r)
{
	const struct args flat = way_args(0), ring = way_args(4), lines = way_args(5),
			  all_pairs = {.coll = WEFT_COLL_ALLTOALL,
				       .type = WEFT_INT32,
				       .count = 1};
	struct held held = {.most_ms = 60000};
	struct weft_comm *comm, *other;
	struct told own = {0}, all[RANKS_MAX];
	struct weft_ctx *ctx;
	bool whole;
	int bad = world_open(r, &ctx, &other);

	if (bad)
		return bad;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	/* Connections take both sides. */
	if (args_run(r, other, &all_pairs, &whole, NULL) != WEFT_SUCCESS)
		return ranks_say(r, "before: %s", weft_error_detail());
	if (r->rank == 2) {
		own.result = args_run(r, comm, &ring, &whole, &held);
	} else {
		if (!ranks_barrier(r) ||
		    args_run(r, comm, &flat, &whole, NULL) != WEFT_SUCCESS)
			return ranks_say(r, "call 0: %s", weft_error_detail());
		own.result = r->rank ? args_run(r, comm, &lines, &whole, NULL)
				     : weft_barrier(comm, NULL);
	}
	own_say(&own);
	if (r->rank != 2)
		ranks_mark(r);
	if (!ranks_gather(r, &own, all, sizeof(own)))
		return ranks_say(r, "the ranks of the test lost each other");
	if (own.result != WEFT_ERR_MISMATCH ||
	    strncmp(own.text, all[0].text, strcspn(own.text, ";")) != 0)
		bad = ranks_say(r, "%s: %s, not: %s",
				weft_strerror((enum weft_result)own.result), own.text,
				all[0].text);
	bad = trial_close(r, comm, other, held.open) || bad;
	return bad ? bad : world_close(r, ctx, other);
}

/* Buffers of failed calls are leaked on purpose. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	const char *seed = getenv("WEFT_TEST_SEED"), *runs = getenv("WEFT_TEST_RUNS");
	uint32_t state = seed ? (uint32_t)strtoul(seed, NULL, 10) : (uint32_t)time(NULL);
	char names[8][32];
	int count = ranks_providers("weft,shm,tcp", names, 8);

	tap_diag("seed %u", state);
	for (int i = 0; i < count; i++) {
		struct world w = {.provider = names[i]};
		const int all = runs ? atoi(runs) : 4;
		int end[RANKS_MAX];

		ranks_run(1, 30, world_body, &w, end);
		if (end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		tap_ok(ranks_run(3, RUN_TIMEOUT, lengths_body, &w, end),
		       "%s: a message here, a put there", names[i]);
		tap_ok(ranks_run(3, RUN_TIMEOUT, each_body, &w, end),
		       "%s: counts that differ, of every collective", names[i]);
		tap_ok(ranks_run(3, RUN_TIMEOUT, ways_body, &w, end),
		       "%s: one goes another way", names[i]);
		tap_ok(ranks_run(3, RUN_TIMEOUT, overtaken_body, &w, end),
		       "%s: one is where nobody else is any more", names[i]);
		for (int k = 0; k < all; k++) {
			const int32_t size = 2 + (int32_t)draw(&state, 7);

			w.seed = state;
			/* Also where messages carry no data, and without puts: not over
			 * shm, whose long sends never complete when their receive was
			 * cancelled. */
			w.net.no_put = k % 4 == 2 && strcmp(names[i], "shm") != 0;
			w.net.no_data = k % 4 == 3;
			tap_ok(ranks_run(size, RUN_TIMEOUT, world_body, &w, end),
			       "%s: %d ranks disagree %d times (%u)%s%s", names[i], size,
			       TRIALS, w.seed, w.net.no_put ? ", messages only" : "",
			       w.net.no_data ? ", no data with messages" : "");
		}
	}
	return tap_done();
}
