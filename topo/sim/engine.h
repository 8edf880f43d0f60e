/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the plans of collectives on a network, event by event: the very plans that the
 * executor runs (coll/algo), with its window and its READY messages. A message occupies
 * its sender for `gap`, then flows at the rate that share.h gives it, and is there when
 * its last byte has travelled for the latency of the tier where the two ranks meet. Sends
 * of one rank to another go one after the other. Processors add and copy one thing at a
 * time. Nothing is random; the same input gives the same times.
 */
#ifndef WEFT_TOPO_SIM_ENGINE_H
#define WEFT_TOPO_SIM_ENGINE_H

#include "coll/algo/algo.h"
#include "topo/sim/net.h"

/* One collective. */
struct sim_job {
	const struct algo *algo;
	struct plan_call call; /* its rank is ignored */
	const int32_t *at;     /* by rank: who it is on the network; NULL: the same */
	double begin;	       /* s */
};

struct sim_options {
	uint64_t eager; /* messages of more bytes wait for READY */
	double gap;	/* s that a message takes its sender */
	double work;	/* bytes/s that a rank adds or copies; 0: that takes no time */
	const double
		*delay;	   /* by rank of the network: s that it is late; NULL: none is */
	const double *lag; /* by rank: so many times gap and work take it; NULL: once */
	/* Told now and then how far it is; NULL: nobody is. */
	void (*progress)(void *arg, uint64_t done, uint64_t all, double time);
	void *progress_arg;
};

struct sim_result {
	double time;			    /* s, until the last rank is through */
	double first;			    /* the first rank that was */
	double level_bytes[SIM_LEVELS_MAX]; /* of messages between ranks that meet there
					     */
	uint64_t messages, events;
	struct share_cost share;
	uint64_t shapes;
	/* Of the shared link that carried the most for what it can: part of the time in
	 * which it would have to be busy. link: SHARE_NONE: no shared link carried. */
	double busiest;
	uint32_t link;
	double port; /* the same of ports */
};

/* Seconds at which each job's last rank was through go to job_end[], unless it is NULL.
 * 0; -ENOMEM; -EINVAL: *why says what cannot be done; -EDEADLK: it does not end. */
int sim_run(const struct sim_net *net, const struct sim_job *job, unsigned jobs,
	    const struct sim_options *options, struct sim_result *result, double *job_end,
	    char *why, size_t why_len);

#endif
