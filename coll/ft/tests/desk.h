/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A coordinator's machine on a desk, for tests: it is handed messages one by one, and
 * what it says is noted.
 */
#ifndef WEFT_FT_TESTS_DESK_H
#define WEFT_FT_TESTS_DESK_H

#include "coll/ft/coord.h"

enum { MS = 1000, SAID = 64, LINEAGE = 5 };

/* What it said last, in order. */
struct said {
	enum ft_type type;
	enum ft_reason reason;
	uint64_t id;
	uint32_t listed; /* members of the epoch that is prepared, ... */
	uint32_t before; /* and of the one that it follows */
};

struct desk {
	struct ft_coord c;
	struct said said[SAID];
	int count;
	uint64_t out; /* who was told that it is, of the members 0 to 63, as bits */
	int64_t now;
};

/* What is kept is thought to be. fresh: the job's first coordinator. */
void desk_start(struct desk *d, uint32_t size, uint32_t group_size, bool fresh);
void desk_open(struct desk *d, uint32_t size, uint32_t group_size); /* a fresh one */

/* Whether a member was told that, and why that it is out. */
bool desk_said(const struct desk *d, enum ft_type type, uint64_t id);
enum ft_reason desk_fenced(const struct desk *d, uint64_t id);

void desk_hear(struct desk *d, const struct ft_msg *msg);
void desk_join(struct desk *d, uint64_t id, uint32_t group, uint64_t term);
/* A member of the epoch that is on; prepared: for the next one, too. */
void desk_status(struct desk *d, uint64_t id, uint64_t term, bool prepared);
void desk_leave(struct desk *d, uint64_t id);
/* All that are asked to prepare do. */
void desk_prepare(struct desk *d);

#endif
