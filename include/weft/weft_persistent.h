/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of <weft/weft.h>: calls that are made once and started many times. The rules at
 * the top of that header hold here. */
#ifndef WEFT_WEFT_PERSISTENT_H
#define WEFT_WEFT_PERSISTENT_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A collective that is checked, chosen and planned once, to be started many times: it
 * saves what a call spends on that. Making one is local and starts nothing; counts are
 * read then, and buffers stay those that were given. Each weft_req_start() counts as a
 * call of the collective in the order that all ranks share, and a rank may use the plain
 * call where another starts a persistent one. weft_req_wait() and weft_req_test() report
 * the end of what was started and leave the request, which can be started again;
 * weft_req_free() gives it back. Until it is started, and after its end was told, the
 * buffers are the caller's to read and write; they must stay where they are. The deadline
 * counts from each start. A communicator is destroyed after its persistent requests were
 * freed. Errors: ARG, UNSUPPORTED, COMM, NOMEM.
 */
WEFT_API enum weft_result weft_call_init(struct weft_comm *comm,
					 const struct weft_call *call,
					 const struct weft_opts *opts,
					 struct weft_req **req);
WEFT_API enum weft_result weft_barrier_init(struct weft_comm *comm,
					    const struct weft_opts *opts,
					    struct weft_req **req);
WEFT_API enum weft_result weft_broadcast_init(struct weft_comm *comm, void *buf,
					      uint64_t count, enum weft_type type,
					      int32_t root, const struct weft_opts *opts,
					      struct weft_req **req);
WEFT_API enum weft_result weft_allgather_init(struct weft_comm *comm, const void *src,
					      void *dst, uint64_t count,
					      enum weft_type type,
					      const struct weft_opts *opts,
					      struct weft_req **req);
WEFT_API enum weft_result weft_allreduce_init(struct weft_comm *comm, const void *src,
					      void *dst, uint64_t count,
					      enum weft_type type, enum weft_op op,
					      const struct weft_opts *opts,
					      struct weft_req **req);
WEFT_API enum weft_result weft_reduce_scatter_init(struct weft_comm *comm,
						   const void *src, void *dst,
						   uint64_t count, enum weft_type type,
						   enum weft_op op,
						   const struct weft_opts *opts,
						   struct weft_req **req);
WEFT_API enum weft_result weft_alltoall_init(struct weft_comm *comm, const void *src,
					     void *dst, uint64_t count,
					     enum weft_type type,
					     const struct weft_opts *opts,
					     struct weft_req **req);
WEFT_API enum weft_result weft_reduce_init(struct weft_comm *comm, const void *src,
					   void *dst, uint64_t count, enum weft_type type,
					   enum weft_op op, int32_t root,
					   const struct weft_opts *opts,
					   struct weft_req **req);
WEFT_API enum weft_result weft_gather_init(struct weft_comm *comm, const void *src,
					   void *dst, uint64_t count, enum weft_type type,
					   int32_t root, const struct weft_opts *opts,
					   struct weft_req **req);
WEFT_API enum weft_result weft_scatter_init(struct weft_comm *comm, const void *src,
					    void *dst, uint64_t count,
					    enum weft_type type, int32_t root,
					    const struct weft_opts *opts,
					    struct weft_req **req);
WEFT_API enum weft_result weft_allgatherv_init(struct weft_comm *comm, const void *src,
					       uint64_t src_count, void *dst,
					       const struct weft_counts *recv_counts,
					       enum weft_type type,
					       const struct weft_opts *opts,
					       struct weft_req **req);
WEFT_API enum weft_result weft_reduce_scatterv_init(
	struct weft_comm *comm, const void *src, const struct weft_counts *send_counts,
	void *dst, uint64_t dst_count, enum weft_type type, enum weft_op op,
	const struct weft_opts *opts, struct weft_req **req);
WEFT_API enum weft_result weft_alltoallv_init(
	struct weft_comm *comm, const void *src, const struct weft_counts *send_counts,
	void *dst, const struct weft_counts *recv_counts, enum weft_type type,
	const struct weft_opts *opts, struct weft_req **req);
WEFT_API enum weft_result weft_gatherv_init(struct weft_comm *comm, const void *src,
					    uint64_t src_count, void *dst,
					    const struct weft_counts *recv_counts,
					    enum weft_type type, int32_t root,
					    const struct weft_opts *opts,
					    struct weft_req **req);
WEFT_API enum weft_result weft_scatterv_init(struct weft_comm *comm, const void *src,
					     const struct weft_counts *send_counts,
					     void *dst, uint64_t dst_count,
					     enum weft_type type, int32_t root,
					     const struct weft_opts *opts,
					     struct weft_req **req);

/*
 * weft_opts.flags of a persistent all-gather, all-reduce, reduce-scatter or all-to-all:
 * the destination is the library's, twice, and starts take turns with the two; dst.addr
 * is NULL. Ranks tell each other once where these are, so that after two starts blocks go
 * straight to their places without a control message. In return
 * - starting it says that the result before is not needed any more: a peer may write over
 *   it from then on;
 * - every rank makes its doubled requests in the same order, and starts them in the same
 *   calls: no plain call in place of one (MISMATCH, or COMM for those that follow).
 * Plans of more than 256 steps, receives that must wait for something of their own call
 * (long all-reduces by double-tree and hierarchical), and providers without remote writes
 * have the messages as before. Reductions take scratch as long as the vector, by halves
 * several times that. Memory of a call that failed stays until the context closes. Errors
 * besides those of weft_call_init(): ARG: dst.addr is not NULL; UNSUPPORTED: another
 * collective.
 */
#define WEFT_DOUBLE (UINT64_C(1) << 0)

/* Where the result of the last start of a doubled request is, which has ended: valid
 * until the request is started again or freed. ARG: not doubled; there is no result. */
WEFT_API enum weft_result weft_req_result(struct weft_req *req, const void **result);

/* Starts it once more. ARG: not persistent, or started and not waited for; COMM; NOMEM.
 */
WEFT_API enum weft_result weft_req_start(struct weft_req *req);

/* Local. ARG: not persistent; BUSY: started and not waited for, also when it failed: wait
 * for it or test it first. The request is gone when it succeeds. */
WEFT_API enum weft_result weft_req_free(struct weft_req *req);

#ifdef __cplusplus
}
#endif

#endif
