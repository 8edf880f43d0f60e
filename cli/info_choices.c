/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info --algorithms: which there are, and which is chosen when. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/info_more.h"
#include "coll/algo/algo.h"
#include "coll/comm/force.h"
#include "coll/tune/tune.h"
#include "weft/weft.h"

/* Lengths that are asked about, each twice the last. */
#define SIZE_FIRST UINT64_C(8)
#define SIZE_LAST  (UINT64_C(1) << 30)

static const int32_t rank_counts[] = {2, 4, 8, 16, 64, 256};

enum { RANK_COUNTS = sizeof(rank_counts) / sizeof(rank_counts[0]) };

/* A length up to which one algorithm is chosen. */
struct segment {
	uint64_t up_to; /* 0: all that is longer */
	const char *name;
};

enum { SEGMENTS_MAX = 32 };

/* As a communicator would ask: ranks of one host have lines and read each other's memory,
 * others have neither. */
static struct plan_call call_of(uint64_t bytes, int32_t ranks, bool one_host)
{
	return (struct plan_call){.rank = 0,
				  .size = ranks,
				  .count = bytes / 4,
				  .elem_size = 4,
				  .fetches = one_host,
				  .lines = one_host,
				  .reads = one_host};
}

static int segments_of(const struct tune *tune, const char *coll, int32_t ranks,
		       bool one_host, struct segment seg[SEGMENTS_MAX])
{
	int n = 0;

	for (uint64_t bytes = SIZE_FIRST; bytes <= SIZE_LAST && n < SEGMENTS_MAX;
	     bytes *= 2) {
		const struct plan_call call = call_of(bytes, ranks, one_host);
		const struct algo *algo = tune_choose(tune, coll, &call);
		const char *name = !algo ? "none"
				   : algo_goes_by_lines(coll, &call) && !tune
					   ? ALGO_LINES
					   : algo->name;

		if (n && strcmp(seg[n - 1].name, name) == 0)
			seg[n - 1].up_to = bytes;
		else
			seg[n++] = (struct segment){bytes, name};
	}
	seg[n - 1].up_to = 0;
	return n;
}

static const char *size_text(uint64_t bytes, char text[32])
{
	static const char units[] = " KMG";
	int u = 0;

	while (bytes >= 1024 && bytes % 1024 == 0 && units[u + 1]) {
		bytes /= 1024;
		u++;
	}
	snprintf(text, 32, "%" PRIu64 "%.1s", bytes, u ? &units[u] : "");
	return text;
}

static void segments_text(const struct segment *seg, int n)
{
	char size[32];

	for (int i = 0; i < n; i++)
		if (seg[i].up_to)
			printf("%s up to %s, ", seg[i].name,
			       size_text(seg[i].up_to, size));
		else
			printf("%s%s\n", n > 1 ? "then " : "", seg[i].name);
}

static bool segments_same(const struct segment *a, int n, const struct segment *b, int m)
{
	if (n != m)
		return false;
	for (int i = 0; i < n; i++)
		if (a[i].up_to != b[i].up_to || strcmp(a[i].name, b[i].name) != 0)
			return false;
	return true;
}

/* Rows of one collective; numbers of ranks for which the same is chosen are one row. */
static void choices_text(const struct tune *tune, const char *coll, bool one_host)
{
	struct segment seg[2][SEGMENTS_MAX];
	int n[2], at = 0;

	for (int i = 0; i < RANK_COUNTS; i = at) {
		n[0] = segments_of(tune, coll, rank_counts[i], one_host, seg[0]);
		for (at = i + 1; at < RANK_COUNTS; at++) {
			n[1] = segments_of(tune, coll, rank_counts[at], one_host, seg[1]);
			if (!segments_same(seg[0], n[0], seg[1], n[1]))
				break;
		}
		if (at - 1 > i)
			printf("  %-15s %3" PRId32 " to %-4" PRId32, coll, rank_counts[i],
			       rank_counts[at - 1]);
		else
			printf("  %-15s %3" PRId32 "        ", coll, rank_counts[i]);
		segments_text(seg[0], n[0]);
	}
}

/* Whether row i is the first of its collective, which has no lengths of each block. */
static bool first_of_coll(size_t i)
{
	return !algo_table[i].vector &&
	       (i == 0 || strcmp(algo_table[i].coll, algo_table[i - 1].coll) != 0);
}

int info_algorithms_text(void)
{
	struct force table[WEFT_COLL_COUNT];
	struct tune *tune = NULL;

	if (tune_open(getenv("WEFT_TUNE"), &tune) != WEFT_SUCCESS ||
	    force_read(getenv("WEFT_ALGO"), table) != WEFT_SUCCESS) {
		fprintf(stderr, "weft info: %s\n", weft_error_detail());
		tune_close(tune);
		return 1;
	}
	printf("algorithms (a: start-up time, b: time per byte, m: bytes, n: ranks)\n");
	for (size_t i = 0; i < algo_count; i++)
		printf("  %-17s %-19s %s\n", algo_table[i].coll, algo_table[i].name,
		       algo_table[i].what);
	for (int one = 1; one >= 0; one--) {
		printf("\nchosen for %s, by %s; ranks, and bytes as the call's count "
		       "says\n",
		       one ? "ranks of one host that share lines"
			   : "ranks of which each is on a host of its own",
		       tune ? "WEFT_TUNE" : "built-in limits");
		for (size_t i = 0; i < algo_count; i++)
			if (first_of_coll(i))
				choices_text(tune, algo_table[i].coll, one);
	}
	for (int c = 0; c < WEFT_COLL_COUNT; c++)
		if (table[c].algo)
			printf("\nWEFT_ALGO has %s by %s, whenever that can do it\n",
			       weft_coll_name((enum weft_coll)c), table[c].algo->name);
	tune_close(tune);
	return 0;
}

void info_algorithms_json(struct json *j)
{
	struct segment seg[SEGMENTS_MAX];
	struct tune *tune = NULL;

	if (tune_open(getenv("WEFT_TUNE"), &tune) != WEFT_SUCCESS)
		tune = NULL; /* "variables_wrong" says why */
	json_array_begin(j, "choices");
	for (size_t i = 0; i < algo_count * 2 * RANK_COUNTS; i++) {
		const size_t row = i / (2 * RANK_COUNTS);
		const bool one_host = i / RANK_COUNTS % 2;
		const int32_t ranks = rank_counts[i % RANK_COUNTS];
		int n;

		if (!first_of_coll(row))
			continue;
		n = segments_of(tune, algo_table[row].coll, ranks, one_host, seg);
		json_object_begin(j, NULL);
		json_text(j, "collective", algo_table[row].coll);
		json_bool(j, "one_host", one_host);
		json_int(j, "ranks", ranks);
		json_array_begin(j, "chosen");
		for (int k = 0; k < n; k++) {
			json_object_begin(j, NULL);
			json_text(j, "algorithm", seg[k].name);
			if (seg[k].up_to)
				json_uint(j, "up_to", seg[k].up_to);
			json_object_end(j);
		}
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
	tune_close(tune);
}
