/* SPDX-License-Identifier: BSD-2-Clause */
/* What weft sim was asked for, and one run of it. */
#ifndef WEFT_CLI_SIM_H
#define WEFT_CLI_SIM_H

#include <stdio.h>

#include "topo/sim/engine.h"
#include "topo/sim/model.h"

enum { SIM_LIST_MAX = 32, SIM_SLOW_MAX = 16 };

struct sim_ask {
	const char *coll;
	const struct algo *algo[SIM_LIST_MAX];
	unsigned algos; /* 0: the library's choice */
	int32_t ranks[SIM_LIST_MAX];
	unsigned ranks_count;
	uint64_t bytes[SIM_LIST_MAX];
	unsigned bytes_count;
	const char *fabric, *csv, *svg;
	enum sim_placement placement;
	uint64_t seed, eager, chunk;
	double gap, work;
	struct sim_slow slow[SIM_SLOW_MAX];
	unsigned slows;
	double late_by; /* s that rank `late` is late */
	int32_t late;
	bool explain;
	bool full; /* no symmetry */
};

/* One algorithm at one size. */
struct sim_row {
	const struct algo *algo;
	int32_t ranks;
	uint64_t bytes;
	struct sim_result r;
	int32_t period; /* of so many ranks times were found; 0: of all */
	double wall;	/* s that it took to find out */
};

/* LogGP terms of the tiers, a line each. */
void sim_terms_show(const struct sim_ask *ask, const struct model *model);
/* What formulas say of a length; false: they say nothing of the collective. */
bool sim_answer_show(const struct sim_ask *ask, const struct model *model,
		     uint64_t bytes);

/* -1: go on; else the exit status. */
int sim_args(struct sim_ask *ask, int argc, char **argv);

#endif
