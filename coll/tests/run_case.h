/* SPDX-License-Identifier: BSD-2-Clause */
/* One case of the reference, run on a communicator by every rank and checked. */
#ifndef WEFT_TESTS_RUN_CASE_H
#define WEFT_TESTS_RUN_CASE_H

#include "coll/tests/ranks.h"
#include "coll/tests/reference.h"

/* Buffers of a case; guards behind both are checked. */
struct case_bufs {
	void *memory[2]; /* of the source, of the destination; in place one is NULL */
	void *src, *dst;
	size_t src_len, dst_len;
	struct case_dynamic *dynamic; /* what a dynamic one reads when it is executed */
};

/* Of a dynamic case; NULL: no memory. Freed by free(). */
struct case_dynamic *case_dynamic_open(const struct ref_case *c, int32_t rank,
				       int32_t size);

bool case_bufs_open(struct case_bufs *b, const struct ref_case *c, const struct ranks *r);
void case_bufs_close(struct case_bufs *b);
/* As they were when opened, for another call. */
void case_bufs_refill(struct case_bufs *b, const struct ref_case *c,
		      const struct ranks *r);

/* The call of the case in its general form; it names what `counts` and `blocks` get. */
struct weft_call case_general(const struct weft_comm *comm, const struct ref_case *c,
			      const struct case_bufs *b, struct weft_counts counts[2],
			      struct ref_blocks blocks[2]);

enum weft_result case_start(struct weft_comm *comm, const struct ref_case *c,
			    const struct case_bufs *b, struct weft_req **req);

/* The persistent call of the case, by its own function. */
enum weft_result case_init(struct weft_comm *comm, const struct ref_case *c,
			   const struct case_bufs *b, struct weft_req **req);

/* The blocking call of the case. */
enum weft_result case_call(struct weft_comm *comm, const struct ref_case *c,
			   const struct case_bufs *b);

/* 0 when the result, the source and the guards are right; else says what is not. */
int case_check(struct ranks *r, const struct ref_case *c, const struct case_bufs *b);

/* All of it, blocking. `compare` also proves that every rank holds the same bits. */
int case_run(struct ranks *r, struct weft_comm *comm, const struct ref_case *c,
	     bool compare);

#endif
