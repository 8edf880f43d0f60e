/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the dynamic all-to-allv of any shape, as every rank can work them out. */
#ifndef WEFT_TESTS_DYNAMIC_CASE_H
#define WEFT_TESTS_DYNAMIC_CASE_H

#include "coll/tests/ranks.h"

#define DYNAMIC_FILL 0x5a /* what a destination holds before */

uint32_t dynamic_draw(uint32_t *state, uint32_t below);
uint32_t dynamic_mix(uint32_t a, uint32_t b, uint32_t c);

enum sends { BY_PLACE, ONE_BY_ONE, BY_LIST, SENDS };
enum takes { WITH_ROOM, PACKED, TO_LIST, TAKES };

struct dynamic_shape {
	int32_t size;
	enum sends sends;
	enum takes takes;
	enum weft_type type;
	uint64_t max_count, block;
	uint32_t salt;
	uint64_t src_blocks, dst_blocks;
};

void dynamic_shape_draw(struct dynamic_shape *s, int32_t size, uint32_t *state);
/* How many blocks a rank sends another. */
uint64_t dynamic_blocks(const struct dynamic_shape *s, int32_t from, int32_t to);

/* A call and its memory. */
struct dynamic_job {
	const struct dynamic_shape *shape;
	size_t unit; /* bytes of a block */
	uint8_t *src, *dst;
	uint64_t counts[RANKS_MAX], at[RANKS_MAX], got[RANKS_MAX];
	uint64_t *send_blocks, *recv_blocks;
	struct weft_counts send;
	struct weft_dynamic dynamic;
	const struct weft_opts *opts; /* of the call; NULL: none */
};

/* False: no memory. */
bool dynamic_job_open(struct dynamic_job *j, const struct dynamic_shape *s, int32_t rank);
void dynamic_job_close(struct dynamic_job *j);
/* What the arrays say, and the contents, for the shape's salt as it is now. */
void dynamic_job_fill(struct dynamic_job *j, int32_t rank);

enum weft_result dynamic_job_start(const struct dynamic_job *j, struct weft_comm *comm,
				   struct weft_req **req);
enum weft_result dynamic_job_init(const struct dynamic_job *j, struct weft_comm *comm,
				  struct weft_req **req);
enum weft_result dynamic_job_call(const struct dynamic_job *j, struct weft_comm *comm);

/* The whole destination, and the counts. */
int dynamic_job_check(struct ranks *r, const struct dynamic_job *j);

#endif
