/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain calls of the (v) forms: each fills in a struct weft_call for the general one.
 */
#include "config.h"

#include "coll/api/call.h"
#include "coll/api/vector.h"

static struct weft_buf block_buf(const void *addr, uint64_t count, enum weft_type type)
{
	return (struct weft_buf){
		.addr = (void *)(uintptr_t)addr, .count = count, .type = type};
}

/* A buffer of as many elements as the counts span, where they are looked at. */
static struct weft_buf blocks_buf(const struct weft_comm *comm, const void *addr,
				  const struct weft_counts *counts, enum weft_type type,
				  bool here)
{
	return block_buf(addr, comm && here ? vector_span(comm->size, counts) : 0, type);
}

static bool is_root(const struct weft_comm *comm, int32_t root)
{
	return comm && comm->rank == root;
}

static struct weft_call allgatherv_call(const struct weft_comm *comm, const void *src,
					uint64_t src_count, void *dst,
					const struct weft_counts *recv_counts,
					enum weft_type type)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_ALLGATHERV;
	call.src = block_buf(src, src_count, type);
	call.dst = blocks_buf(comm, dst, recv_counts, type, true);
	call.recv_counts = recv_counts;
	return call;
}

enum weft_result weft_allgatherv(struct weft_comm *comm, const void *src,
				 uint64_t src_count, void *dst,
				 const struct weft_counts *recv_counts,
				 enum weft_type type, const struct weft_opts *opts)
{
	const struct weft_call call =
		allgatherv_call(comm, src, src_count, dst, recv_counts, type);

	return call_run(comm, &call, opts);
}

enum weft_result weft_allgatherv_start(struct weft_comm *comm, const void *src,
				       uint64_t src_count, void *dst,
				       const struct weft_counts *recv_counts,
				       enum weft_type type, const struct weft_opts *opts,
				       struct weft_req **req)
{
	const struct weft_call call =
		allgatherv_call(comm, src, src_count, dst, recv_counts, type);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call reduce_scatterv_call(const struct weft_comm *comm,
					     const void *src,
					     const struct weft_counts *send_counts,
					     void *dst, uint64_t dst_count,
					     enum weft_type type, enum weft_op op)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_REDUCE_SCATTERV;
	call.op = op;
	call.src = blocks_buf(comm, src, send_counts, type, true);
	call.dst = block_buf(dst, dst_count, type);
	call.send_counts = send_counts;
	return call;
}

enum weft_result weft_reduce_scatterv(struct weft_comm *comm, const void *src,
				      const struct weft_counts *send_counts, void *dst,
				      uint64_t dst_count, enum weft_type type,
				      enum weft_op op, const struct weft_opts *opts)
{
	const struct weft_call call =
		reduce_scatterv_call(comm, src, send_counts, dst, dst_count, type, op);

	return call_run(comm, &call, opts);
}

enum weft_result weft_reduce_scatterv_start(struct weft_comm *comm, const void *src,
					    const struct weft_counts *send_counts,
					    void *dst, uint64_t dst_count,
					    enum weft_type type, enum weft_op op,
					    const struct weft_opts *opts,
					    struct weft_req **req)
{
	const struct weft_call call =
		reduce_scatterv_call(comm, src, send_counts, dst, dst_count, type, op);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call alltoallv_call(const struct weft_comm *comm, const void *src,
				       const struct weft_counts *send_counts, void *dst,
				       const struct weft_counts *recv_counts,
				       enum weft_type type)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_ALLTOALLV;
	call.src = blocks_buf(comm, src, send_counts, type, true);
	call.dst = blocks_buf(comm, dst, recv_counts, type, true);
	call.send_counts = send_counts;
	call.recv_counts = recv_counts;
	return call;
}

enum weft_result weft_alltoallv(struct weft_comm *comm, const void *src,
				const struct weft_counts *send_counts, void *dst,
				const struct weft_counts *recv_counts,
				enum weft_type type, const struct weft_opts *opts)
{
	const struct weft_call call =
		alltoallv_call(comm, src, send_counts, dst, recv_counts, type);

	return call_run(comm, &call, opts);
}

enum weft_result weft_alltoallv_start(struct weft_comm *comm, const void *src,
				      const struct weft_counts *send_counts, void *dst,
				      const struct weft_counts *recv_counts,
				      enum weft_type type, const struct weft_opts *opts,
				      struct weft_req **req)
{
	const struct weft_call call =
		alltoallv_call(comm, src, send_counts, dst, recv_counts, type);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call gatherv_call(const struct weft_comm *comm, const void *src,
				     uint64_t src_count, void *dst,
				     const struct weft_counts *recv_counts,
				     enum weft_type type, int32_t root)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_GATHERV;
	call.root = root;
	call.src = block_buf(src, src_count, type);
	call.dst = blocks_buf(comm, dst, recv_counts, type, is_root(comm, root));
	call.recv_counts = recv_counts;
	return call;
}

enum weft_result weft_gatherv(struct weft_comm *comm, const void *src, uint64_t src_count,
			      void *dst, const struct weft_counts *recv_counts,
			      enum weft_type type, int32_t root,
			      const struct weft_opts *opts)
{
	const struct weft_call call =
		gatherv_call(comm, src, src_count, dst, recv_counts, type, root);

	return call_run(comm, &call, opts);
}

enum weft_result weft_gatherv_start(struct weft_comm *comm, const void *src,
				    uint64_t src_count, void *dst,
				    const struct weft_counts *recv_counts,
				    enum weft_type type, int32_t root,
				    const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call =
		gatherv_call(comm, src, src_count, dst, recv_counts, type, root);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call scatterv_call(const struct weft_comm *comm, const void *src,
				      const struct weft_counts *send_counts, void *dst,
				      uint64_t dst_count, enum weft_type type,
				      int32_t root)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_SCATTERV;
	call.root = root;
	call.src = blocks_buf(comm, src, send_counts, type, is_root(comm, root));
	call.dst = block_buf(dst, dst_count, type);
	call.send_counts = send_counts;
	return call;
}

enum weft_result weft_scatterv(struct weft_comm *comm, const void *src,
			       const struct weft_counts *send_counts, void *dst,
			       uint64_t dst_count, enum weft_type type, int32_t root,
			       const struct weft_opts *opts)
{
	const struct weft_call call =
		scatterv_call(comm, src, send_counts, dst, dst_count, type, root);

	return call_run(comm, &call, opts);
}

enum weft_result weft_scatterv_start(struct weft_comm *comm, const void *src,
				     const struct weft_counts *send_counts, void *dst,
				     uint64_t dst_count, enum weft_type type,
				     int32_t root, const struct weft_opts *opts,
				     struct weft_req **req)
{
	const struct weft_call call =
		scatterv_call(comm, src, send_counts, dst, dst_count, type, root);

	return weft_call_start(comm, &call, opts, req);
}

enum weft_result weft_allgatherv_init(struct weft_comm *comm, const void *src,
				      uint64_t src_count, void *dst,
				      const struct weft_counts *recv_counts,
				      enum weft_type type, const struct weft_opts *opts,
				      struct weft_req **req)
{
	const struct weft_call call =
		allgatherv_call(comm, src, src_count, dst, recv_counts, type);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_reduce_scatterv_init(struct weft_comm *comm, const void *src,
					   const struct weft_counts *send_counts,
					   void *dst, uint64_t dst_count,
					   enum weft_type type, enum weft_op op,
					   const struct weft_opts *opts,
					   struct weft_req **req)
{
	const struct weft_call call =
		reduce_scatterv_call(comm, src, send_counts, dst, dst_count, type, op);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_alltoallv_init(struct weft_comm *comm, const void *src,
				     const struct weft_counts *send_counts, void *dst,
				     const struct weft_counts *recv_counts,
				     enum weft_type type, const struct weft_opts *opts,
				     struct weft_req **req)
{
	const struct weft_call call =
		alltoallv_call(comm, src, send_counts, dst, recv_counts, type);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_gatherv_init(struct weft_comm *comm, const void *src,
				   uint64_t src_count, void *dst,
				   const struct weft_counts *recv_counts,
				   enum weft_type type, int32_t root,
				   const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call =
		gatherv_call(comm, src, src_count, dst, recv_counts, type, root);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_scatterv_init(struct weft_comm *comm, const void *src,
				    const struct weft_counts *send_counts, void *dst,
				    uint64_t dst_count, enum weft_type type, int32_t root,
				    const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call =
		scatterv_call(comm, src, send_counts, dst, dst_count, type, root);

	return weft_call_init(comm, &call, opts, req);
}
