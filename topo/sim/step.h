/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A step of training over a list of layers: what ranks compute, and the collectives that
 * go on meanwhile.
 *
 * Two things go on side by side: computing, layer after layer, forward and then backward;
 * and collectives, one after the other in the order in which they were handed over. All
 * ranks hand over together (the slowest decides), so that a collective takes what it
 * takes alone; its time is asked of the caller.
 *
 * Replicated (STEP_BUCKETS): gradients go into a bucket as the way backward makes them;
 * when it has at least `bucket` bytes, or with the first layer, all its bytes are reduced
 * over all ranks (an all-reduce). The step ends when the last of them has.
 *
 * Sharded (STEP_SHARDS): a layer's parameters lie in parts on the ranks, and are gathered
 * (an all-gather) before the layer is computed, forward and backward again: asked for
 * when the computing of the layer `prefetch` before begins (0: when the one before has
 * ended, so that nothing overlaps with it). The last layer's are still there when the way
 * backward begins. Each layer's gradients are reduced into parts (a reduce-scatter) when
 * it is through. Layers without bytes have no collectives.
 *
 * Source: S. Li and others, "PyTorch Distributed" (VLDB 2020), for buckets; Y. Zhao and
 * others, "PyTorch FSDP" (VLDB 2023), for shards. Pure arithmetic; thread-safe.
 */
#ifndef WEFT_TOPO_SIM_STEP_H
#define WEFT_TOPO_SIM_STEP_H

#include "topo/sim/layers.h"

enum step_kind { STEP_BUCKETS, STEP_SHARDS };
enum step_op { STEP_ALLREDUCE, STEP_ALLGATHER, STEP_REDUCE_SCATTER, STEP_OPS };

struct step_ask {
	enum step_kind kind;
	uint64_t bucket;   /* STEP_BUCKETS: bytes; 0: each layer is one */
	uint32_t prefetch; /* STEP_SHARDS: layers */
	double lag; /* so many times as long computing takes the slowest rank; >= 1 */
	/* Seconds of a collective of so many bytes of all parameters or gradients that it
	 * is over; below 0: it cannot be said, and neither can the step. */
	double (*cost)(void *arg, enum step_op op, uint64_t bytes);
	void *arg;
};

struct step_result {
	double time;	   /* s, of the step */
	double compute;	   /* s, of a rank that nobody holds up and that is not slow */
	double busy;	   /* s, of collectives */
	double exposed;	   /* s, in which they went on and nothing was computed */
	double efficiency; /* compute / time: 1 where nothing is lost */
	uint32_t collectives;
};

/* False: a cost could not be said. */
bool step_run(const struct layers *layers, const struct step_ask *ask,
	      struct step_result *result);

#endif
