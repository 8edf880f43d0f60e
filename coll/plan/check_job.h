/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: the state of one plan_check() and what its parts share: the plans
 * prepared for fast walking, the channels between ranks, and the sentence of a fault.
 */
#ifndef WEFT_PLAN_CHECK_JOB_H
#define WEFT_PLAN_CHECK_JOB_H

#include "coll/plan/check_expr.h"
#include "coll/plan/check_mem.h"
#include "coll/plan/check_space.h"
#include "coll/plan/checker.h"

/* A dependency with its loop looked up. */
struct check_dep {
	uint64_t base; /* instance of trip 0 */
	uint32_t body;
	uint32_t trips;
	int32_t trip0;
	int32_t advance;
};

/* All SENDs from one rank to another and their RECVs. */
struct check_channel {
	int32_t from, to;
	uint64_t sends, recvs;		 /* in the plans */
	uint64_t sends_seen, recvs_seen; /* by the run so far: k of the next */
	int64_t apart; /* the last pair's instances: RECV's less SEND's */
};

struct check_rank {
	const struct plan *plan;
	const struct check_space **space; /* by partition */
	struct check_dep *dep;		  /* as plan->dep */
	uint32_t *channel; /* by step; of pairs with one peer in all trips */
	struct plan_goal_alias alias;
	struct check_mem mem[3]; /* by buffer; unused of one that lies in the other */
	uint64_t *pair; /* by instance, the other half's; only if a plan has a proof */
};

struct check_job {
	const struct plan_check *check;
	const struct plan_call *call;
	int32_t size;
	struct check_rank *rank;
	struct check_space *spaces;
	struct check_channel *channel;
	size_t channels, channel_room;
	uint32_t *channel_slot; /* index + 1; 0: free; direct or open addressing */
	size_t channel_slots;
	struct check_exprs exprs;
	bool proofs; /* some plan has one */
	char *why;
	size_t why_len;
};

/* One instance of one rank, as a walk gives it. */
struct check_instance {
	uint64_t number;
	uint32_t step;
	uint32_t trip;
	int32_t peer;
	uint32_t dst, src, src2; /* first parts */
};

/* Goes through a rank's instances in program order, by additions only. */
struct check_walk {
	const struct check_rank *rank;
	struct check_instance *at; /* by step: its next instance */
	uint64_t number;
	uint32_t loop, trip, index;
};

/* Prepares everything; 0, -EINVAL (with a sentence) or -ENOMEM. Fini also after errors.
 */
int check_job_init(struct check_job *job, const struct plan_check *check, char *why,
		   size_t why_len);
void check_job_fini(struct check_job *job);

/* Writes the sentence of a fault and returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int check_fault(struct check_job *job,
						      const char *fmt, ...);

/* The same, opening with "rank R, instance I (#step kind, trip T): ". */
__attribute__((format(printf, 4, 5))) int check_fault_at(struct check_job *job,
							 int32_t rank, uint64_t number,
							 const char *fmt, ...);

bool check_walk_init(struct check_walk *w, const struct check_rank *rank);
void check_walk_fini(struct check_walk *w);
/* false at the end. */
bool check_walk_next(struct check_walk *w, struct check_instance *out);

/* Where a buffer's first element is in the memory that holds it. */
static inline uint64_t check_shift(const struct check_rank *rank, uint8_t buf)
{
	return rank->alias.shared && buf == rank->alias.inner ? rank->alias.at : 0;
}

/* Contents of the memory that holds a buffer. */
static inline struct check_mem *check_mem_of(struct check_rank *rank, uint8_t buf)
{
	if (rank->alias.shared && buf == rank->alias.inner)
		buf = buf == PLAN_SRC ? PLAN_DST : PLAN_SRC;
	return &rank->mem[buf];
}

/* The range of an instance that begins at part `first`. */
static inline struct check_range check_range_of(const struct check_rank *rank,
						const struct plan_range *r,
						uint32_t first)
{
	if (!r->count || !r->block)
		return (struct check_range){.space = NULL, .buf = PLAN_NOBUF};
	return (struct check_range){.space = rank->space[r->part],
				    .buf = r->buf,
				    .first = first,
				    .block = r->block,
				    .stride = r->stride,
				    .count = r->count};
}

/* Instance that dependency d means in trip `trip`; false: to be ignored. */
static inline bool check_dep_on(const struct check_dep *d, uint32_t trip,
				uint64_t *number)
{
	int64_t t = d->trip0 + (int64_t)d->advance * trip;

	if (t < 0 || t >= d->trips)
		return false;
	*number = d->base + (uint64_t)t * d->body;
	return true;
}

/* Index of the channel, made if there is none; UINT32_MAX: out of memory. */
uint32_t check_channel_get(struct check_job *job, int32_t from, int32_t to);

/* Whether `from` is done before `to` starts by rank's own dependencies (or is it). */
struct check_reach {
	const struct check_rank *rank;
	uint32_t *seen; /* by instance: the last question that came by */
	uint32_t question;
	uint64_t *stack;
	size_t room;
};
bool check_reach_init(struct check_reach *r, const struct check_rank *rank);
void check_reach_fini(struct check_reach *r);
/* 1 yes, 0 no, -ENOMEM. */
int check_reaches(struct check_reach *r, uint64_t from, uint64_t to);

/* The proofs, one each. 0, -EINVAL or -ENOMEM. */
int check_conflicts(struct check_job *job);
int check_run(struct check_job *job, uint64_t window, bool *stuck);
int check_result(struct check_job *job);
int check_proofs(struct check_job *job);

#endif
