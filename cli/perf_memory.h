/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of what weft perf measures: the host's, or that of a GPU (--memory). Data
 * are made and checked in host memory in any case; those of a GPU are copied there before
 * a call and back behind it, outside of the times.
 */
#ifndef WEFT_CLI_PERF_MEMORY_H
#define WEFT_CLI_PERF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

struct gpu;
struct gpu_queue;
struct perf;
struct perf_op;

/* p->src or p->dst. */
struct perf_side {
	char *host;
	char *device; /* NULL: calls are given the host's */
};

struct perf_memory {
	struct perf_side side[2]; /* src, dst */
	struct gpu *gpu;	  /* NULL: host memory */
	struct gpu_queue *queue;
	int32_t device;
};

/* So many bytes for p->src and p->dst. False: there are none, and it was said why. Ranks
 * of a host take its GPUs in turn, WEFT_LOCAL_RANK modulo their number. */
bool perf_memory_open(struct perf *p, size_t src, size_t dst);
void perf_memory_close(struct perf *p);

/* Tells calls what memory they are given. */
void perf_memory_say(const struct perf *p, struct weft_opts *opts);

/* The operation's prepare() and check(), wherever its memory is. False: it could not be
 * copied, which was said. */
bool perf_prepare(struct perf *p, const struct perf_op *op, uint64_t count, bool sampled);
bool perf_check(struct perf *p, const struct perf_op *op, uint64_t count, bool sampled,
		bool *right);

#endif
