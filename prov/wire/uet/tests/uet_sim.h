/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two endpoints in one process, on a virtual clock, and a network between them that
 * loses, repeats, delays, mixes up, marks and swallows whatever a seed says. Every rule
 * is checked at the moment at which it could be broken; sim_result.error says which one
 * was, first.
 */
#ifndef WEFT_UET_TESTS_UET_SIM_H
#define WEFT_UET_TESTS_UET_SIM_H

#include "prov/wire/uet/uet_pds.h"

/* Odds are in 1000. */
struct uet_sim_config {
	uint32_t window;
	uint32_t paths;
	uint32_t contexts; /* that each end dials */
	uint32_t packets;  /* of each context */
	uint32_t bytes;	   /* longest payload, at most 256 */
	uint32_t ordered;  /* contexts */
	uint32_t reverse;  /* requests that are followed by one back */
	uint32_t drop;
	uint32_t drop_acks; /* more of them */
	uint32_t repeat;
	uint32_t mark;
	uint32_t slow; /* packets that are delayed by up to `slow_ns` */
	uint64_t slow_ns;
	uint64_t jitter_ns; /* of every packet */
	uint32_t refuse;    /* requests that find no buffer */
	uint32_t reply;	    /* requests with a response of their own */
	uint32_t later;	    /* requests that are answered later */
	uint32_t asked;	    /* contexts that the other end asks to close */
	bool hole;	    /* one path swallows everything, for good */
	bool heals;	    /* or for half a second */
	bool pause;	    /* one end doesn't run for a while */
	bool dies;	    /* the network is gone at some time */
	bool restarts;	    /* one end is another at some time */
	bool flood;	    /* strangers open contexts all the time */
	bool backlog; /* everything is given to the machine as soon as there is room */
};

struct uet_sim_result {
	const char *error; /* NULL: every rule held */
	uint64_t delivered;
	uint64_t failed; /* packets that ended with an error */
	uint64_t ended;	 /* contexts that did */
	uint64_t ns;	 /* virtual time */
	uint64_t datagrams;
	uint64_t retired; /* paths */
	uint64_t returned;
	uint32_t path_used;	    /* bits: paths that data took */
	struct uet_pds_stats stats; /* of both ends */
};

/* False: no memory. */
bool uet_sim_run(const struct uet_sim_config *config, uint64_t seed,
		 struct uet_sim_result *result);

#endif
