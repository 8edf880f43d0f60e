/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft perf: what its parts share. Every rank runs the same program; rank 0 decides how
 * often a call is repeated, and reports.
 */
#ifndef WEFT_CLI_PERF_H
#define WEFT_CLI_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/perf_counts.h"
#include "cli/perf_data.h"
#include "cli/perf_memory.h"
#include "coll/algo/algo.h"
#include "coll/tune/cost.h"
#include "weft/weft.h"

/* From the command line. */
struct perf_opts {
	const char *who;       /* the command that speaks */
	const char *operation; /* or "all" */
	const char *sizes;     /* as given, or NULL */
	uint64_t first, last;  /* bytes */
	int64_t budget_us;
	int64_t iters; /* 0: as many as the budget allows */
	const char *algorithm;
	enum weft_type type;
	enum weft_op op;
	bool in_place, stats, explain, json, overlap, breakdown;
	bool cuda; /* memory of GPUs */
	int argc;
	char **argv; /* for the report */
};

struct perf_op;

/* What calls were spent on (--stats), by the flight recorder: nanoseconds. */
enum { PERF_STAGES = 5 };
struct perf_spent {
	uint64_t calls,
		lines; /* that ended; of them by shared lines, which have no stages */
	uint64_t time, stage[PERF_STAGES];
	uint64_t sent,
		busy; /* bytes of the communicator; ns in which some were on their way */
};

struct perf {
	const struct perf_opts *opts;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int32_t rank, size;
	const char *provider;
	/* For the largest size: what calls are given; while data are made and checked,
	 * the host's (perf_memory.h). */
	void *src, *dst;
	struct perf_memory memory;
	size_t elem; /* bytes */
	struct data data;
	int64_t begin_us; /* of all measurements */
	uint64_t round;	  /* of the data; never the same twice */
	int64_t *times;	  /* [PERF_ITERS_MAX + PERF_FLAGS], ns; first the flags */
	int64_t *all;	  /* those of all ranks */
	uint64_t *even;	  /* counts of blocks, one per rank, all the same */
	uint64_t *got;	  /* what a dynamic one says that came */
	struct weft_counts counts; /* even */
	struct weft_dynamic dynamic;
	struct weft_stats moved; /* by the measured calls of the operation that is on */
	uint64_t moved_calls;
	struct perf_spent spent;    /* by all its calls, of this rank, then of all */
	struct perf_counts counted; /* likewise, by the provider */
};

/* times[0]: elements found wrong; times[1]: calls checked */
enum { PERF_FLAGS = 2, PERF_ITERS_MAX = 2000 };

/* How much of a call passes while its caller computes (--overlap). */
struct perf_overlap {
	double alone_us, work_us, together_us; /* medians of the slowest ranks */
	double part;			       /* of the call, 0 to 1 */
	double early; /* calls that were done when the caller came back, of all */
};

/* What a call is spent on (--breakdown): medians, on average over the ranks. */
struct perf_stage_times {
	double call_us;	   /* checks, the choice, the plan */
	double control_us; /* until the last READY that something was sent for */
	double issue_us;   /* until the last transfer was given to the provider */
	double wait_us;	   /* until it was done */
	double readys;	   /* control messages of a call, of all ranks */
};

/* One row of the report. */
struct perf_row {
	const struct perf_op *op;
	uint64_t bytes; /* per rank, as the call's count says */
	uint64_t count;
	const char *algorithm;
	char why[192]; /* it was chosen; "": nobody asks */
	int64_t iters;
	double median_us, p99_us;
	double low_us, high_us;	   /* the median is between them, with 95 % confidence */
	double alg_gbps, bus_gbps; /* 1e9 bytes per second */
	uint64_t wrong;		   /* checks that failed, on all ranks */
	struct perf_overlap overlap;
	struct perf_stage_times stages, doubled;
	bool has_doubled; /* the call can be, see WEFT_DOUBLE */
};

/* A collective that can be measured. */
struct perf_op {
	const char *name;
	enum weft_coll coll;
	bool sized;		/* else one measurement, without data */
	bool reduces;		/* type and operation matter, else type alone */
	bool in_place;		/* may have source and destination in one */
	bool counts;		/* counts say how long its blocks are: not in "all" */
	const char *size_means; /* for the table's title */
	/* The call itself. */
	enum weft_result (*call)(struct perf *p, uint64_t count,
				 const struct weft_opts *opts);
	/* New data in, destination overwritten, before a call. */
	void (*prepare)(struct perf *p, uint64_t count, bool sampled);
	/* False: said on stderr what is wrong. */
	bool (*check)(struct perf *p, uint64_t count, bool sampled);
	/* Bytes of the call by convention, and the part that the busiest link must carry.
	 */
	double (*bytes)(double per_rank, double ranks);
	double (*bus_factor)(double ranks);
	/* Blocks of count elements in src and dst: 0 stands for one per rank. */
	int32_t src_blocks, dst_blocks;
};

extern const struct perf_op perf_op_table[];
extern const size_t perf_op_count;

/* Opens a context and a communicator of all ranks, with memory for opts->last bytes; says
 * what is wrong. After a failed call peers may still write there: leave the process. */
bool perf_open(struct perf *p, const struct perf_opts *opts);
bool perf_close(struct perf *p);

/* Measures one size. False: a call failed, its error detail was said. */
bool perf_measure(struct perf *p, const struct perf_op *op, uint64_t count,
		  int64_t budget_us, struct perf_row *row);

/* Blocks of `count` elements for all ranks, for ops with counts: into p->counts and
 * p->dynamic. */
void perf_counts_fill(struct perf *p, uint64_t count);

/* The call in its general form. Rank 0 is the root of those that have one. */
void perf_call(struct perf *p, const struct perf_op *op, uint64_t count,
	       struct weft_call *call);

/* Name of the algorithm that would run; NULL when the library refuses, which has set the
 * error detail then. */
const char *perf_algorithm(struct perf *p, const struct perf_op *op, uint64_t count);
/* Whether a table (weft tune) that names this algorithm for the call would count. */
bool perf_table_counts(const struct perf *p, const struct perf_op *op, uint64_t count,
		       const struct algo *algo);

/* What the model of costs says that the algorithm takes; 0: nothing. */
double perf_model_us(const struct perf *p, const struct perf_op *op, uint64_t count,
		     const struct algo *algo, const struct cost_terms *terms);

/* Says why a call failed. */
void perf_say_error(const struct perf *p, const char *what, enum weft_result result);

#endif
