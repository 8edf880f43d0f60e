/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network costs without simulating it: LogGP terms of each tier where ranks meet,
 * with the oversubscription of what is above them, and formulas for collectives inside a
 * fast domain, across domains, and of both one after the other.
 *
 * Times are in seconds, rates in bytes a second, lengths as weft sim has them (a
 * vector's, else a rank's block's). Nothing is allocated that stays; networks are only
 * read. Source of the terms: Alexandrov, Ionescu, Schauser and Scheiman, "LogGP", 1995.
 */
#ifndef WEFT_TOPO_SIM_MODEL_H
#define WEFT_TOPO_SIM_MODEL_H

#include "topo/sim/net.h"

struct model_tier {
	enum fabric_distance tier;
	int32_t ranks;	/* of its largest group */
	int32_t groups; /* that have ranks */
	double latency; /* L, one way */
	double port;	/* of a rank */
	double link;  /* the narrowest on the way of two that meet here; infinity: none */
	double alone; /* 1/G of two ranks, nobody else sending: the less of these */
	double shared; /* 1/G of each rank where all send to ranks that they meet here */
	/* Whose links `shared` is bound by: the tier itself or one below; FABRIC_UNKNOWN:
	 * the ranks' own ports. */
	enum fabric_distance bound;
};

struct model {
	unsigned tiers;
	struct model_tier
		tier[SIM_LEVELS_MAX]; /* those where ranks meet, from the lowest */
};

/* False: no memory. */
bool model_make(const struct sim_net *net, struct model *model);

/* An answer: seconds, and what most of them are spent on. */
struct model_time {
	double s;
	enum fabric_distance tier;  /* where the messages that limit it meet */
	enum fabric_distance bound; /* as in model_tier */
	bool bytes;		    /* else latencies are most of it */
};

struct model_answer {
	int32_t domain;	 /* ranks of the fast domain: of the lowest tier where ranks meet
			  */
	int32_t domains; /* 1: the rest is one of these all */
	struct model_time inside; /* the collective among the ranks of one domain */
	struct model_time across; /* of one rank of each domain, all ranks of a domain
				   * doing so at once with a part of the bytes each */
	struct model_time both;	  /* the hierarchical form: inside, then across */
	struct model_time flat;	  /* as if there were no domains: around all ranks */
};

/* Overhead is o, what each message takes its sender. False: there are no formulas for the
 * collective. */
bool model_answer(const struct model *model, const char *coll, double bytes,
		  double overhead, struct model_answer *answer);

#endif
