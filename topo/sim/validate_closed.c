/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator against formulas: on a network where no link but a rank's own port is too
 * narrow, where a message of m bytes takes L + m b, the algorithms of the textbooks take
 * what the textbooks say. Where several messages leave one port at once they share it.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topo/sim/engine.h"
#include "topo/sim/validate.h"

#define WITHIN 1e-3

#define LATENCY 2e-6 /* as in the map below */
#define BYTE	(8 / 100e9)
#define GAP	0.5e-6
#define WORK	20e9

static const char map_text[] = "weft-fabric 1\n"
			       "rail r0 100G\n"
			       "grid n[0001-2048] 1/1/1\n"
			       "tier rack latency=2us\n";

/* A formula's terms: n ranks, k rounds, m bytes, c pieces. */
struct terms {
	double n, k, m, c;
};
typedef double formula(const struct terms *t);

static double ring_sum(const struct terms *t)
{
	return 2 * (t->n - 1) * (LATENCY + t->m / t->n * BYTE);
}

static double ring_all(const struct terms *t)
{
	return (t->n - 1) * (LATENCY + t->m * BYTE);
}

static double doubling_sum(const struct terms *t)
{
	return t->k * (LATENCY + t->m * BYTE);
}

static double doubling_work(const struct terms *t)
{
	return t->k * (LATENCY + t->m * BYTE + t->m / WORK);
}

static double halving(const struct terms *t)
{
	return 2 * t->k * LATENCY + 2 * (t->n - 1) / t->n * t->m * BYTE;
}

static double rounds_all(const struct terms *t)
{
	return t->k * LATENCY + (t->n - 1) * t->m * BYTE;
}

/* A rank's messages to its j children share its port: all are through after j m b. */
static double tree(const struct terms *t)
{
	return t->k * LATENCY + t->k * (t->k + 1) / 2 * t->m * BYTE;
}

/* The largest subtree is told first, after one gap. */
static double tree_gap(const struct terms *t)
{
	return t->k * (LATENCY + GAP);
}

static double chain(const struct terms *t)
{
	return (t->n - 1) * LATENCY + (t->c + t->n - 2) * t->m / t->c * BYTE;
}

static double rounds_empty(const struct terms *t)
{
	return t->k * LATENCY;
}

/* The first place has to be told; all others have been by the time they are wanted. */
static double ring_told(const struct terms *t)
{
	return LATENCY + ring_all(t);
}

static const struct {
	const char *coll, *name;
	formula *formula;
	uint64_t bytes, chunk, eager;
	double gap, work;
	bool powers; /* only where n is a power of two */
	const char *says;
} forms[] = {
	{"allreduce", "ring", ring_sum, 1 << 20, 1 << 30, UINT64_MAX, 0, 0, false,
	 "2 (n-1) (L + m/n b)"},
	{"allreduce", "recursive-doubling", doubling_sum, 1 << 16, 0, UINT64_MAX, 0, 0,
	 true, "k (L + m b)"},
	{"allreduce", "recursive-doubling", doubling_work, 1 << 16, 0, UINT64_MAX, 0,
	 WORK, true, "k (L + m b + m g)"},
	{"allreduce", "halving-doubling", halving, 1 << 20, 0, UINT64_MAX, 0, 0, true,
	 "2 k L + 2 (n-1)/n m b"},
	{"allgather", "ring", ring_all, 1 << 12, 0, UINT64_MAX, 0, 0, false,
	 "(n-1) (L + m b)"},
	{"allgather", "ring", ring_told, 1 << 12, 0, 0, 0, 0, false,
	 "L + (n-1) (L + m b)"},
	{"allgather", "ffbruck", rounds_all, 1 << 12, 0, UINT64_MAX, 0, 0, true,
	 "k L + (n-1) m b"},
	{"allgather", "recursive-doubling", rounds_all, 1 << 12, 0, UINT64_MAX, 0, 0,
	 true, "k L + (n-1) m b"},
	{"alltoall", "pairwise", ring_all, 1 << 12, 0, UINT64_MAX, 0, 0, false,
	 "(n-1) (L + m b)"},
	{"broadcast", "binomial", tree, 1 << 16, 0, UINT64_MAX, 0, 0, true,
	 "k L + k (k+1) / 2 m b"},
	{"broadcast", "binomial", tree_gap, 1, 0, UINT64_MAX, GAP, 0, true, "k (L + o)"},
	{"broadcast", "chain", chain, 1 << 22, 1 << 18, UINT64_MAX, 0, 0, false,
	 "(n-1) L + (C+n-2) m/C b"},
	{"barrier", "dissemination", rounds_empty, 0, 0, UINT64_MAX, 0, 0, true, "k L"},
};

static unsigned form_wrong(const struct fabric_map *map, size_t i, int32_t n)
{
	const struct sim_net_options where = {.ranks = n};
	const struct sim_options o = {
		.eager = forms[i].eager, .gap = forms[i].gap, .work = forms[i].work};
	const struct sim_job job = {.algo = algo_find(forms[i].coll, forms[i].name),
				    .call = {.size = n,
					     .count = forms[i].bytes,
					     .elem_size = 1,
					     .chunk_bytes = forms[i].chunk}};
	struct terms t = {.n = n, .m = (double)forms[i].bytes, .c = 1};
	struct fabric_error error;
	struct sim_result r = {0};
	struct sim_net *net;
	char why[256] = "";
	double want;
	int rc;

	while (1 << (unsigned)t.k < n)
		t.k++;
	if (forms[i].chunk)
		t.c = (double)forms[i].bytes / (double)forms[i].chunk;
	want = forms[i].formula(&t);
	rc = sim_net_open(map, &where, &net, &error);
	if (!rc) {
		rc = sim_run(net, &job, 1, &o, &r, NULL, why, sizeof(why));
		sim_net_close(net);
	}
	if (!rc && fabs(r.time - want) <= want * WITHIN) {
		printf("%s/%s, %d ranks: %.6f us, %s within %.1e\n", forms[i].coll,
		       forms[i].name, n, r.time * 1e6, forms[i].says,
		       fabs(r.time - want) / want);
		return 0;
	}
	printf("WRONG %s/%s, %d ranks: %.6f us, %s says %.6f us %s\n", forms[i].coll,
	       forms[i].name, n, r.time * 1e6, forms[i].says, want * 1e6, rc ? why : "");
	return 1;
}

unsigned validate_closed_forms(void)
{
	static const int32_t sizes[] = {2, 4, 5, 8, 24, 64, 100, 256, 1024};
	struct fabric_error error;
	struct fabric_map *map;
	unsigned wrong = 0;

	if (fabric_map_parse(map_text, strlen(map_text), &map, &error)) {
		printf("WRONG line %u: %s\n", error.line, error.text);
		return 1;
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			const int32_t n = sizes[s];
			/* What has n^2 messages need not be large. */
			const bool square = strstr(forms[i].name, "ring") ||
					    strstr(forms[i].name, "pairwise");

			if (!(forms[i].powers && n & (n - 1)) && !(square && n > 256))
				wrong += form_wrong(map, i, n);
		}
	}
	fabric_map_free(map);
	return wrong;
}
