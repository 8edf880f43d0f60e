/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of <weft/weft.h>: all-to-allv with lengths that are known only when it runs. The
 * rules at the top of that header hold here. */
#ifndef WEFT_WEFT_DYNAMIC_H
#define WEFT_WEFT_DYNAMIC_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An entry of weft_dynamic.recv_blocks that is no place. */
#define WEFT_BLOCK_NONE UINT64_MAX

/* What comes from the ranks lies one after the other, without room for more between. */
#define WEFT_DYNAMIC_PACKED (UINT64_C(1) << 0)

/* What a dynamic all-to-allv has besides its buffers and counts: see there. The struct is
 * read at the call; the arrays that it names are read and written when it is executed. */
struct weft_dynamic {
	size_t size;	    /* sizeof(struct weft_dynamic) */
	uint64_t max_count; /* of any rank for any other, the same on all ranks */
	uint64_t block;	    /* elements of a block, the same on all; 0: 1 */
	const uint64_t *send_blocks; /* which blocks of the source; NULL: in one piece */
	const uint64_t *recv_blocks; /* where they go in the destination; NULL: below */
	uint64_t *recv_counts;	     /* written: what came from each rank, in blocks */
	uint64_t flags;		     /* WEFT_DYNAMIC_PACKED, or 0 */
	enum weft_mem_kind kind;     /* where the three arrays lie */
	int32_t device;		     /* of kind CUDA */
};
#define WEFT_DYNAMIC_INIT                           \
	{                                           \
		.size = sizeof(struct weft_dynamic) \
	}

/*
 * An all-to-allv whose lengths only the sender knows, and only when it is executed: each
 * rank sends the others blocks of the same length, as many for each as its counts say
 * then, and learns how many came. Executed means: by the call itself or by its _start
 * twin; of a persistent one by each weft_req_start(). Arrays that the call names stay the
 * library's until the end: only what is needed moves, and nothing beyond it is touched.
 *
 * send_counts->counts[i]: blocks for rank i, max_count at most. Where they are in src, of
 * src_count elements:
 *  - send_counts->displacements (in blocks): those for rank i from there on; parts may
 *    overlap and have any order;
 *  - no displacements: one after the other, by the counts;
 *  - dynamic->send_blocks: counts[0] numbers of blocks of src for rank 0, behind them
 *    counts[1] for rank 1, and so on; any order, and a block may go to many ranks.
 * Where they go in dst, of dst_count elements:
 *  - those from rank i from block i * max_count on; dst has room for max_count from each;
 *  - WEFT_DYNAMIC_PACKED: behind those of the ranks before, by the counts; dst has the
 *    same room;
 *  - dynamic->recv_blocks: size * max_count numbers of blocks of dst: the k-th from rank
 * i goes to block recv_blocks[i * max_count + k]. WEFT_BLOCK_NONE ends the places for a
 *    rank. Places that are used differ from each other.
 * So a list where it sends dispatches tokens to experts, and the same list where it
 * receives brings them back (combine). src and dst are apart.
 *
 * Counts and lists may lie in device memory (send_counts->kind of the counts and
 * displacements, dynamic->kind of the other three arrays; WEFT_MEM_AUTO: each may lie
 * where it does), all of a call on one GPU. They are brought to pinned memory of the host
 * when the call is executed, the list of blocks that are sent as far as the counts say,
 * and the counts of what came go back before the call is over. In a stream (weft_opts)
 * executed means: when the stream has come there, wherever the arrays are, so that a
 * kernel before the call can write them and one behind it read recv_counts; of a call in
 * a graph at each launch.
 *
 * A count over max_count, or a number or a part outside of src or dst, gives ARG on every
 * rank with a detail that names the rank; blocks that differ in length give MISMATCH.
 * Nothing was moved then, and the communicator is as good as before (but for a call in a
 * stream: the next call on the communicator tells it, with COMM, and it is over). More
 * blocks than a rank has places for give MISMATCH, after which it is not. Ranks first
 * tell each other counts, 32 bytes to each, then run alltoallv.
 */
WEFT_API enum weft_result weft_alltoallv_dynamic(struct weft_comm *comm, const void *src,
						 uint64_t src_count,
						 const struct weft_counts *send_counts,
						 void *dst, uint64_t dst_count,
						 const struct weft_dynamic *dynamic,
						 enum weft_type type,
						 const struct weft_opts *opts);
WEFT_API enum weft_result weft_alltoallv_dynamic_start(
	struct weft_comm *comm, const void *src, uint64_t src_count,
	const struct weft_counts *send_counts, void *dst, uint64_t dst_count,
	const struct weft_dynamic *dynamic, enum weft_type type,
	const struct weft_opts *opts, struct weft_req **req);

/* Counts and lists are read at each start, not here; where buffers are is told once. */
WEFT_API enum weft_result weft_alltoallv_dynamic_init(
	struct weft_comm *comm, const void *src, uint64_t src_count,
	const struct weft_counts *send_counts, void *dst, uint64_t dst_count,
	const struct weft_dynamic *dynamic, enum weft_type type,
	const struct weft_opts *opts, struct weft_req **req);

#ifdef __cplusplus
}
#endif

#endif
