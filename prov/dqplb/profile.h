/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a link spreads its transfers, by the distance of its ends: a table with a row for
 * each distance, and what a user changes in it:
 *
 *	FI_WEFT_LANES=8
 *	FI_WEFT_PROFILE=all:segment=256K;far:lanes=16,segments=128
 *
 * Pure: whoever reads the variables hands their text in (prov/wire/verbs/verbs_dev.c).
 */
#ifndef WEFT_DQPLB_PROFILE_H
#define WEFT_DQPLB_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/dqplb/tx.h"
#include "topo/fabric/place.h"

/* One row. Numbers are 64 bits wide, so that one table reads them all. */
struct dqplb_profile {
	uint64_t lanes;	     /* queue pairs of a link, over all rails */
	uint64_t segment;    /* bytes of the largest */
	uint64_t segments;   /* in flight on a lane */
	uint64_t lane_bytes; /* a lane takes more while it has less than this in flight */
	uint64_t link_bytes; /* likewise all lanes together */
	uint64_t turn;	     /* segments of a transfer before the next has its turn */
	uint64_t small;	     /* segments up to this stay on one rail; 0: none do */
	uint64_t traffic_class; /* of the packets */
};

/* What a number is called, what it may be. */
struct dqplb_profile_key {
	const char *name;
	size_t offset; /* of a uint64_t in struct dqplb_profile */
	uint64_t min;
	uint64_t max;
	bool bytes; /* may end in K, M, G: powers of 1024 */
	const char *text;
};

extern const struct dqplb_profile_key dqplb_profile_keys[];
extern const size_t dqplb_profile_key_count;

/* The rows of all distances, as a link uses them. */
struct dqplb_profiles {
	struct dqplb_profile row[FABRIC_DISTANCES];
};

struct dqplb_profile_error {
	char text[240];
};

void dqplb_profiles_init(struct dqplb_profiles *all);

/* For links over devices of software: one lane on each rail, at any distance. */
void dqplb_profiles_software(struct dqplb_profiles *all);

/* FI_WEFT_LANES: lanes of every row. False: it is no such number; *error says what was
 * asked and what may be; *all is untouched. */
bool dqplb_profiles_lanes(struct dqplb_profiles *all, const char *text,
			  struct dqplb_profile_error *error);

/*
 * FI_WEFT_PROFILE: CLASS:KEY=VALUE[,KEY=VALUE]...[;CLASS:...]..., where CLASS is the name
 * of a distance or "all", and the last that is said counts. False: likewise, nothing of
 * it is taken.
 */
bool dqplb_profiles_set(struct dqplb_profiles *all, const char *text,
			struct dqplb_profile_error *error);

/* Numbers of a row that fit each other: twice the segments that can be in flight fit the
 * largest window. */
bool dqplb_profile_valid(const struct dqplb_profile *p);

/* Lanes over so many rails (1 to DQPLB_LANES_MAX): a multiple of them, the next one or,
 * where that is too many, the last. Lane i is on rail i % rails. */
uint32_t dqplb_profile_lanes(const struct dqplb_profile *p, uint32_t rails);

/* The transmitter's configuration of a valid row over so many rails; generation and home
 * rail are 0. */
void dqplb_profile_tx(const struct dqplb_profile *p, uint32_t rails,
		      struct dqplb_tx_config *config);

#endif
