/* SPDX-License-Identifier: BSD-2-Clause */
/* What weft sim was asked for, and one run of it. */
#ifndef WEFT_CLI_SIM_H
#define WEFT_CLI_SIM_H

#include <stdio.h>

#include "cli/json.h"
#include "topo/draw/plot.h"
#include "topo/sim/engine.h"
#include "topo/sim/layers.h"
#include "topo/sim/model.h"

enum { SIM_LIST_MAX = 32, SIM_LATE_MAX = 16, SIM_ALSO_MAX = 16, SIM_GROUPS_MAX = 65536 };

/* Ranks first, first + step and so on; step 0: not said, all. */
struct sim_some {
	int32_t first, last, step;
};

/* A collective beside others. */
struct sim_part {
	const char *coll;
	const struct algo *algo; /* NULL: the library's choice */
	uint64_t bytes, chunk;
	double begin; /* s */
	struct sim_some on;
};

struct sim_late {
	int32_t rank;
	double by;     /* s */
	double factor; /* of what it does itself: 1 and more */
};

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
	struct sim_fault fault[SIM_FAULTS_MAX];
	unsigned faults;
	struct sim_late late[SIM_LATE_MAX];
	unsigned late_count;
	uint32_t shape[FABRIC_TORUS_DIMS]; /* 0: the map's */
	struct sim_some on;
	int32_t groups; /* 0: none */
	bool strided;	/* groups are every so many ranks, else ranks beside each other */
	struct sim_part also[SIM_ALSO_MAX];
	unsigned alsos;
	bool explain;
	bool full; /* no symmetry */
	bool json;
	/* Of a step over layers only: */
	const char *layers;
	const char *step_algorithm; /* NULL: the library's choice */
	uint64_t bucket;
	uint32_t prefetch;
	bool sharded, bucketed, prefetched; /* what was said */
};

/* Collectives that run at once; the first `mains` are what was asked for first. */
struct sim_set {
	struct sim_job *job;
	struct sim_some *some;
	uint64_t *bytes;
	struct plan_nodes **nodes;
	double *end;   /* s at which its last rank is through */
	double *alone; /* s that it takes alone; below 0: not known */
	unsigned jobs, mains;
};

/* One algorithm at one size. */
struct sim_row {
	const struct sim_set *set;
	int32_t ranks;
	uint64_t bytes;
	struct sim_result r;
	int32_t period; /* of so many ranks times were found; 0: of all */
	double wall;	/* s that it took to find out */
};

/* ---- sim.c ---- */
/* By symmetry where that is so, else message by message. 0, or -errno and *why. */
int sim_one(const struct sim_ask *ask, const struct sim_net *net, struct sim_set *set,
	    const struct sim_options *o, struct sim_result *result, int32_t *period,
	    char *why, size_t why_len);

/* ---- sim_step.c ---- */
/* Where results go; NULL: nowhere. */
struct sim_step_out {
	struct json *json;
	FILE *csv;
	struct plot_curve *curve;
	bool first; /* the table has no head yet */
};
void sim_step_csv_head(FILE *csv);
/* 0, or 1, which was said. */
int sim_step(const struct sim_ask *ask, const struct sim_net *net,
	     const struct layers *layers, const struct sim_step_out *out);

/* ---- sim_jobs.c ---- */
/* 0, or -errno and *why; sim_set_free() in any case. algo NULL: the library's choice. */
int sim_set_make(struct sim_set *set, const struct sim_ask *ask,
		 const struct sim_net *net, const struct algo *algo, uint64_t bytes,
		 char *why, size_t why_len);
/* All at once, and then each alone. */
int sim_set_run(struct sim_set *set, const struct sim_net *net,
		const struct sim_options *o, struct sim_result *result, char *why,
		size_t why_len);
void sim_set_free(struct sim_set *set);

/* ---- sim_out.c ---- */
void sim_csv_head(FILE *csv);
void sim_csv_row(FILE *csv, const struct sim_ask *ask, const struct sim_row *row);
void sim_json_begin(struct json *j, const struct sim_ask *ask);
void sim_json_row(struct json *j, const struct sim_net *net, const struct sim_row *row);
void sim_json_end(struct json *j);
void sim_row_show(const struct sim_ask *ask, const struct sim_net *net,
		  const struct model *model, const struct sim_row *row, bool head);

/* ---- sim_model.c ---- */
/* LogGP terms of the tiers, a line each. */
void sim_terms_show(const struct sim_ask *ask, const struct model *model);
/* What formulas say of a length; false: they say nothing of the collective. */
bool sim_answer_show(const struct sim_ask *ask, const struct model *model,
		     uint64_t bytes);

/* ---- sim_args.c ---- */
/* -1: go on; else the exit status. */
int sim_args(struct sim_ask *ask, int argc, char **argv);

/* ---- sim_parts.c: options that say who is slow, late, or beside ---- */
/* 0, or 2 for wrong usage, which was said. Texts are cut up, and stay the ask's. */
int sim_fault_parse(struct sim_ask *ask, char *text, bool dead);
int sim_late_parse(struct sim_ask *ask, char *text, bool factor);
int sim_some_parse(struct sim_some *some, const char *option, const char *text);
int sim_also_parse(struct sim_ask *ask, char *text);
/* The next of a list with commas, cut off; NULL: there is none. */
char *sim_item(char **list);
/* A number within the limits and nothing behind it. */
bool sim_number(const char *text, double least, double most, double *value);
/* What a step needs, and what it does not know. -1: all is well. */
int sim_step_check(const struct sim_ask *ask);

#endif
