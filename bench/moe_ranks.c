/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank of bench/moe: tokens go to their experts and back (dispatch, combine), by the
 * dynamic all-to-allv that moves what is there, and by an all-to-all with room for the
 * most. Rank 0 prints the table. Routing is skewed: experts are chosen as by Zipf's law,
 * the same on every rank from one seed.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/say.h"
#include "weft/weft.h"

#define TOP_MAX	    16
#define EXPERTS_MAX 1024

struct moe {
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int32_t rank, size;
	uint64_t tokens, hidden, experts, top, rounds, seed;
	bool copies; /* one for each expert, not one for each rank */
	double skew;
	uint64_t most; /* tokens from a rank to another, at most */
	uint64_t *counts, *at, *got, *back, *list, *places;
	uint16_t *token, *returned, *there, *padded_src, *padded_dst;
};

struct figure {
	double us, bytes;
};

static void need(enum weft_result result, const char *what)
{
	if (result != WEFT_SUCCESS)
		bench_die("%s: %s: %s", what, weft_strerror(result), weft_error_detail());
}

static void *memory(uint64_t count, size_t size)
{
	void *p = calloc(count + 1, size);

	if (!p)
		bench_die("no memory for %" PRIu64 " times %zu bytes", count, size);
	return p;
}

/* ---- routing ------------------------------------------------------------------------
 */

static double uniform(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (double)((*state * UINT64_C(0x2545f4914f6cdd1d)) >> 11) * 0x1p-53;
}

/* `top` different experts, a popular one more often; popular ones lie on all ranks. */
static void token_route(const struct moe *m, const double *weight, uint64_t *state,
			uint64_t expert[TOP_MAX])
{
	bool taken[EXPERTS_MAX] = {false};

	for (uint64_t i = 0; i < m->top; i++) {
		double sum = 0, at;
		uint64_t e = 0;

		for (uint64_t k = 0; k < m->experts; k++)
			sum += taken[k] ? 0 : weight[k];
		at = uniform(state) * sum;
		for (e = 0; e + 1 < m->experts; e++) {
			at -= taken[e] ? 0 : weight[e];
			if (!taken[e] && at < 0)
				break;
		}
		while (taken[e])
			e--;
		taken[e] = true;
		expert[i] = e;
	}
}

/* counts and lists of this rank: for each rank the tokens that it gets. */
static void route(struct moe *m)
{
	const uint64_t per = m->experts / (uint64_t)m->size;
	uint64_t state = m->seed * 1000003 + (uint64_t)m->rank + 1, n = 0;
	uint8_t *wants = memory(m->tokens * (uint64_t)m->size, 1);
	double weight[EXPERTS_MAX];

	for (uint64_t e = 0; e < m->experts; e++)
		weight[e] = pow((double)(e + 1), -m->skew);
	for (uint64_t t = 0; t < m->tokens; t++) {
		uint64_t expert[TOP_MAX];

		token_route(m, weight, &state, expert);
		for (uint64_t i = 0; i < m->top; i++)
			wants[t * (uint64_t)m->size + expert[i] / per]++;
	}
	for (uint64_t i = 0; i < (uint64_t)m->size * m->most; i++)
		m->places[i] = WEFT_BLOCK_NONE;
	for (int32_t r = 0; r < m->size; r++) {
		m->counts[r] = 0;
		for (uint64_t t = 0; t < m->tokens; t++) {
			uint64_t w = wants[t * (uint64_t)m->size + (uint64_t)r];

			w = m->copies ? w : w > 0;
			for (; w; w--) {
				m->places[(uint64_t)r * m->most + m->counts[r]++] = n;
				m->list[n++] = t;
			}
		}
	}
	free(wants);
}

/* ---- calls --------------------------------------------------------------------------
 */

static struct weft_req *dispatch_init(struct moe *m)
{
	struct weft_counts send = {.counts = m->counts};
	struct weft_dynamic d = WEFT_DYNAMIC_INIT;
	struct weft_req *req;

	d.max_count = m->most;
	d.block = m->hidden;
	d.send_blocks = m->list;
	d.recv_counts = m->got;
	need(weft_alltoallv_dynamic_init(
		     m->comm, m->token, m->tokens * m->hidden, &send, m->there,
		     (uint64_t)m->size * m->most * m->hidden, &d, WEFT_BF16, NULL, &req),
	     "dispatch");
	return req;
}

/* What came goes back, from where it lies, to a place of its own for each copy. */
static struct weft_req *combine_init(struct moe *m)
{
	struct weft_counts send = {.counts = m->got, .displacements = m->at};
	struct weft_dynamic d = WEFT_DYNAMIC_INIT;
	struct weft_req *req;

	d.max_count = m->most;
	d.block = m->hidden;
	d.recv_blocks = m->places;
	d.recv_counts = m->back;
	need(weft_alltoallv_dynamic_init(m->comm, m->there,
					 (uint64_t)m->size * m->most * m->hidden, &send,
					 m->returned, m->tokens * m->top * m->hidden, &d,
					 WEFT_BF16, NULL, &req),
	     "combine");
	return req;
}

static void padded(struct moe *m)
{
	need(weft_alltoall(m->comm, m->padded_src, m->padded_dst, m->most * m->hidden,
			   WEFT_BF16, NULL),
	     "padded all-to-all");
}

static uint64_t moved(struct moe *m)
{
	struct weft_stats s = {.size = sizeof(s)};

	need(weft_ctx_stats(m->ctx, &s), "counters");
	return s.msg_bytes + s.put_bytes;
}

/* The slowest rank's time and the mean of the bytes. */
static struct figure measure(struct moe *m, struct weft_req *req)
{
	double own[2], all[2];
	uint64_t bytes, begin;

	need(weft_barrier(m->comm, NULL), "barrier");
	bytes = moved(m);
	begin = bench_now_ns();
	if (req) {
		need(weft_req_start(req), "start");
		need(weft_req_wait(req, 0), "wait");
	} else {
		padded(m);
	}
	own[0] = (double)(bench_now_ns() - begin) * 1e-3;
	own[1] = (double)(moved(m) - bytes);
	need(weft_allreduce(m->comm, own, all, 1, WEFT_FP64, WEFT_MAX, NULL), "time");
	need(weft_allreduce(m->comm, own + 1, all + 1, 1, WEFT_FP64, WEFT_AVG, NULL),
	     "bytes");
	return (struct figure){all[0], all[1]};
}

/* Every copy of a token came back as it went. */
static void verify(const struct moe *m)
{
	uint64_t n = 0;

	for (int32_t r = 0; r < m->size; r++) {
		for (uint64_t k = 0; k < m->counts[r]; k++, n++) {
			if (memcmp(m->returned + n * m->hidden,
				   m->token + m->list[n] * m->hidden,
				   m->hidden * sizeof(uint16_t)) != 0)
				bench_die("rank %d: token %" PRIu64 " came back wrong "
					  "from rank %d",
					  m->rank, m->list[n], r);
		}
	}
}

static int by_time(const void *a, const void *b)
{
	const double x = ((const struct figure *)a)->us,
		     y = ((const struct figure *)b)->us;

	return x < y ? -1 : x > y;
}

static void row(const char *name, struct figure dynamic, struct figure other)
{
	printf("%-10s %12.0f %12.0f %7.2f %12.1f %12.1f %7.2f\n", name,
	       dynamic.bytes / 1024, other.bytes / 1024, other.bytes / dynamic.bytes,
	       dynamic.us, other.us, other.us / dynamic.us);
}

static void run(struct moe *m)
{
	struct figure *f[3];
	struct weft_req *req[3] = {dispatch_init(m), combine_init(m), NULL};
	uint64_t most = 0, own = 0;

	for (int i = 0; i < 3; i++)
		f[i] = memory(m->rounds, sizeof(struct figure));
	/* Once without counting: connections, registrations. Sides take turns. */
	for (uint64_t round = 0; round <= m->rounds; round++) {
		for (int i = 0; i < 3; i++) {
			const struct figure one = measure(m, req[i]);

			if (round)
				f[i][round - 1] = one;
		}
		if (!round)
			verify(m);
	}
	for (int32_t r = 0; r < m->size; r++)
		own = m->counts[r] > own ? m->counts[r] : own;
	need(weft_allreduce(m->comm, &own, &most, 1, WEFT_UINT64, WEFT_MAX, NULL),
	     "largest count");
	for (int i = 0; i < 3; i++)
		qsort(f[i], m->rounds, sizeof(struct figure), by_time);
	if (m->rank == 0) {
		struct figure d = f[0][m->rounds / 2], c = f[1][m->rounds / 2],
			      p = f[2][m->rounds / 2];

		printf("most tokens from rank to rank: %" PRIu64 " of %" PRIu64 "\n",
		       most, m->most);
		printf("%-10s %12s %12s %7s %12s %12s %7s\n", "", "dynamic KiB",
		       "padded KiB", "ratio", "dynamic us", "padded us", "ratio");
		row("dispatch", d, p);
		row("combine", c, p);
		d.us += c.us;
		d.bytes += c.bytes;
		p.us *= 2;
		p.bytes *= 2;
		row("both", d, p);
	}
	for (int i = 0; i < 2; i++)
		need(weft_req_free(req[i]), "free");
	for (int i = 0; i < 3; i++)
		free(f[i]);
}

static void buffers(struct moe *m)
{
	const uint64_t size = (uint64_t)m->size, all = size * m->most * m->hidden;

	m->counts = memory(size, sizeof(uint64_t));
	m->at = memory(size, sizeof(uint64_t));
	m->got = memory(size, sizeof(uint64_t));
	m->back = memory(size, sizeof(uint64_t));
	m->list = memory(m->tokens * m->top, sizeof(uint64_t));
	m->places = memory(size * m->most, sizeof(uint64_t));
	m->token = memory(m->tokens * m->hidden, sizeof(uint16_t));
	m->returned = memory(m->tokens * m->top * m->hidden, sizeof(uint16_t));
	m->there = memory(all, sizeof(uint16_t));
	m->padded_src = memory(all, sizeof(uint16_t));
	m->padded_dst = memory(all, sizeof(uint16_t));
	for (uint64_t i = 0; i < m->tokens * m->hidden; i++)
		m->token[i] = (uint16_t)(i * 31 + (uint64_t)m->rank * 7 + 1);
	/* Touched, so that no side finds pages of zeros that nobody has yet. */
	memset(m->padded_src, 1, all * sizeof(uint16_t));
	memset(m->padded_dst, 1, all * sizeof(uint16_t));
	memset(m->there, 1, all * sizeof(uint16_t));
	for (int32_t r = 0; r < m->size; r++)
		m->at[r] = (uint64_t)r * m->most;
}

static void option(struct moe *m, const char *text)
{
	uint64_t skew = 0;
	bool good = true;

	if (!strncmp(text, "tokens=", 7))
		good = bench_number(text + 7, 1, 1 << 20, &m->tokens);
	else if (!strncmp(text, "hidden=", 7))
		good = bench_number(text + 7, 1, 1 << 20, &m->hidden);
	else if (!strncmp(text, "experts=", 8))
		good = bench_number(text + 8, 1, EXPERTS_MAX, &m->experts);
	else if (!strncmp(text, "top=", 4))
		good = bench_number(text + 4, 1, TOP_MAX, &m->top);
	else if (!strncmp(text, "rounds=", 7))
		good = bench_number(text + 7, 1, 100000, &m->rounds);
	else if (!strncmp(text, "seed=", 5))
		good = bench_number(text + 5, 1, UINT32_MAX, &m->seed);
	else if (!strncmp(text, "skew=", 5))
		good = bench_number(text + 5, 0, 400, &skew);
	else if (!strcmp(text, "copies=expert"))
		m->copies = true;
	else
		good = !strcmp(text, "copies=rank");
	if (!good)
		bench_die("\"%s\" is no option, or its value is out of bounds", text);
	if (!strncmp(text, "skew=", 5))
		m->skew = (double)skew / 100;
}

int main(int argc, char **argv)
{
	struct moe m = {.tokens = 128,
			.hidden = 7168,
			.experts = 64,
			.top = 8,
			.rounds = 20,
			.seed = 1,
			.skew = 1};
	uint64_t per;

	for (int i = 1; i < argc; i++)
		option(&m, argv[i]);
	need(weft_ctx_open(NULL, &m.ctx), "open");
	need(weft_comm_create(m.ctx, NULL, &m.comm), "communicator");
	m.rank = weft_comm_rank(m.comm);
	m.size = weft_comm_size(m.comm);
	per = m.experts / (uint64_t)m.size;
	if (m.experts % (uint64_t)m.size || m.top > m.experts)
		bench_die("%" PRIu64 " experts (%" PRIu64 " for a token) can't be shared "
			  "by %d ranks",
			  m.experts, m.top, m.size);
	/* A token may want all of a rank's experts. */
	m.most = m.tokens * (!m.copies ? 1 : per < m.top ? per : m.top);
	buffers(&m);
	route(&m);
	run(&m);
	need(weft_comm_destroy(m.comm), "destroy");
	need(weft_ctx_close(m.ctx), "close");
	return 0;
}
