/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain calls: each fills in a struct weft_call for the general one. */
#include "config.h"

#include "coll/api/call.h"
#include "coll/api/error.h"

static struct weft_buf call_buf(const void *addr, uint64_t count, enum weft_type type)
{
	return (struct weft_buf){.addr = (void *)addr, .count = count, .type = type};
}

static struct weft_call barrier_call(void)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_BARRIER;
	return call;
}

static struct weft_call broadcast_call(void *buf, uint64_t count, enum weft_type type,
				       int32_t root)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_BROADCAST;
	call.root = root;
	call.src = call_buf(buf, count, type);
	call.dst = call.src;
	return call;
}

/* count elements for each rank. */
static uint64_t call_all(const struct weft_comm *comm, uint64_t count)
{
	uint64_t total;

	/* An overflow is found and explained by the check of the other count. */
	if (__builtin_mul_overflow(count, comm ? (uint64_t)comm->size : 1, &total))
		total = UINT64_MAX;
	return total;
}

static struct weft_call allgather_call(const struct weft_comm *comm, const void *src,
				       void *dst, uint64_t count, enum weft_type type)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_ALLGATHER;
	call.src = call_buf(src, count, type);
	call.dst = call_buf(dst, call_all(comm, count), type);
	return call;
}

static struct weft_call allreduce_call(const void *src, void *dst, uint64_t count,
				       enum weft_type type, enum weft_op op)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_ALLREDUCE;
	call.op = op;
	call.src = call_buf(src, count, type);
	call.dst = call_buf(dst, count, type);
	return call;
}

enum weft_result weft_barrier(struct weft_comm *comm, const struct weft_opts *opts)
{
	const struct weft_call call = barrier_call();

	return call_run(comm, &call, opts);
}

enum weft_result weft_barrier_start(struct weft_comm *comm, const struct weft_opts *opts,
				    struct weft_req **req)
{
	const struct weft_call call = barrier_call();

	return weft_call_start(comm, &call, opts, req);
}

enum weft_result weft_broadcast(struct weft_comm *comm, void *buf, uint64_t count,
				enum weft_type type, int32_t root,
				const struct weft_opts *opts)
{
	const struct weft_call call = broadcast_call(buf, count, type, root);

	return call_run(comm, &call, opts);
}

enum weft_result weft_broadcast_start(struct weft_comm *comm, void *buf, uint64_t count,
				      enum weft_type type, int32_t root,
				      const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = broadcast_call(buf, count, type, root);

	return weft_call_start(comm, &call, opts, req);
}

enum weft_result weft_allgather(struct weft_comm *comm, const void *src, void *dst,
				uint64_t count, enum weft_type type,
				const struct weft_opts *opts)
{
	const struct weft_call call = allgather_call(comm, src, dst, count, type);

	return call_run(comm, &call, opts);
}

enum weft_result weft_allgather_start(struct weft_comm *comm, const void *src, void *dst,
				      uint64_t count, enum weft_type type,
				      const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = allgather_call(comm, src, dst, count, type);

	return weft_call_start(comm, &call, opts, req);
}

enum weft_result weft_allreduce(struct weft_comm *comm, const void *src, void *dst,
				uint64_t count, enum weft_type type, enum weft_op op,
				const struct weft_opts *opts)
{
	const struct weft_call call = allreduce_call(src, dst, count, type, op);

	return call_run(comm, &call, opts);
}

enum weft_result weft_allreduce_start(struct weft_comm *comm, const void *src, void *dst,
				      uint64_t count, enum weft_type type,
				      enum weft_op op, const struct weft_opts *opts,
				      struct weft_req **req)
{
	const struct weft_call call = allreduce_call(src, dst, count, type, op);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call reduce_scatter_call(const struct weft_comm *comm, const void *src,
					    void *dst, uint64_t count,
					    enum weft_type type, enum weft_op op)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_REDUCE_SCATTER;
	call.op = op;
	call.src = call_buf(src, call_all(comm, count), type);
	call.dst = call_buf(dst, count, type);
	return call;
}

enum weft_result weft_reduce_scatter(struct weft_comm *comm, const void *src, void *dst,
				     uint64_t count, enum weft_type type, enum weft_op op,
				     const struct weft_opts *opts)
{
	const struct weft_call call =
		reduce_scatter_call(comm, src, dst, count, type, op);

	return call_run(comm, &call, opts);
}

enum weft_result weft_reduce_scatter_start(struct weft_comm *comm, const void *src,
					   void *dst, uint64_t count, enum weft_type type,
					   enum weft_op op, const struct weft_opts *opts,
					   struct weft_req **req)
{
	const struct weft_call call =
		reduce_scatter_call(comm, src, dst, count, type, op);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call alltoall_call(const struct weft_comm *comm, const void *src,
				      void *dst, uint64_t count, enum weft_type type)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_ALLTOALL;
	call.src = call_buf(src, call_all(comm, count), type);
	call.dst = call_buf(dst, call_all(comm, count), type);
	return call;
}

enum weft_result weft_alltoall(struct weft_comm *comm, const void *src, void *dst,
			       uint64_t count, enum weft_type type,
			       const struct weft_opts *opts)
{
	const struct weft_call call = alltoall_call(comm, src, dst, count, type);

	return call_run(comm, &call, opts);
}

enum weft_result weft_alltoall_start(struct weft_comm *comm, const void *src, void *dst,
				     uint64_t count, enum weft_type type,
				     const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = alltoall_call(comm, src, dst, count, type);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call reduce_call(const void *src, void *dst, uint64_t count,
				    enum weft_type type, enum weft_op op, int32_t root)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_REDUCE;
	call.op = op;
	call.root = root;
	call.src = call_buf(src, count, type);
	call.dst = call_buf(dst, count, type);
	return call;
}

enum weft_result weft_reduce(struct weft_comm *comm, const void *src, void *dst,
			     uint64_t count, enum weft_type type, enum weft_op op,
			     int32_t root, const struct weft_opts *opts)
{
	const struct weft_call call = reduce_call(src, dst, count, type, op, root);

	return call_run(comm, &call, opts);
}

enum weft_result weft_reduce_start(struct weft_comm *comm, const void *src, void *dst,
				   uint64_t count, enum weft_type type, enum weft_op op,
				   int32_t root, const struct weft_opts *opts,
				   struct weft_req **req)
{
	const struct weft_call call = reduce_call(src, dst, count, type, op, root);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call gather_call(const struct weft_comm *comm, const void *src,
				    void *dst, uint64_t count, enum weft_type type,
				    int32_t root)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_GATHER;
	call.root = root;
	call.src = call_buf(src, count, type);
	call.dst = call_buf(dst, call_all(comm, count), type);
	return call;
}

enum weft_result weft_gather(struct weft_comm *comm, const void *src, void *dst,
			     uint64_t count, enum weft_type type, int32_t root,
			     const struct weft_opts *opts)
{
	const struct weft_call call = gather_call(comm, src, dst, count, type, root);

	return call_run(comm, &call, opts);
}

enum weft_result weft_gather_start(struct weft_comm *comm, const void *src, void *dst,
				   uint64_t count, enum weft_type type, int32_t root,
				   const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = gather_call(comm, src, dst, count, type, root);

	return weft_call_start(comm, &call, opts, req);
}

static struct weft_call scatter_call(const struct weft_comm *comm, const void *src,
				     void *dst, uint64_t count, enum weft_type type,
				     int32_t root)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_SCATTER;
	call.root = root;
	call.src = call_buf(src, call_all(comm, count), type);
	call.dst = call_buf(dst, count, type);
	return call;
}

enum weft_result weft_scatter(struct weft_comm *comm, const void *src, void *dst,
			      uint64_t count, enum weft_type type, int32_t root,
			      const struct weft_opts *opts)
{
	const struct weft_call call = scatter_call(comm, src, dst, count, type, root);

	return call_run(comm, &call, opts);
}

enum weft_result weft_scatter_start(struct weft_comm *comm, const void *src, void *dst,
				    uint64_t count, enum weft_type type, int32_t root,
				    const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = scatter_call(comm, src, dst, count, type, root);

	return weft_call_start(comm, &call, opts, req);
}

enum weft_result weft_barrier_init(struct weft_comm *comm, const struct weft_opts *opts,
				   struct weft_req **req)
{
	const struct weft_call call = barrier_call();

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_broadcast_init(struct weft_comm *comm, void *buf, uint64_t count,
				     enum weft_type type, int32_t root,
				     const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = broadcast_call(buf, count, type, root);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_allgather_init(struct weft_comm *comm, const void *src, void *dst,
				     uint64_t count, enum weft_type type,
				     const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = allgather_call(comm, src, dst, count, type);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_allreduce_init(struct weft_comm *comm, const void *src, void *dst,
				     uint64_t count, enum weft_type type, enum weft_op op,
				     const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = allreduce_call(src, dst, count, type, op);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_reduce_scatter_init(struct weft_comm *comm, const void *src,
					  void *dst, uint64_t count, enum weft_type type,
					  enum weft_op op, const struct weft_opts *opts,
					  struct weft_req **req)
{
	const struct weft_call call =
		reduce_scatter_call(comm, src, dst, count, type, op);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_alltoall_init(struct weft_comm *comm, const void *src, void *dst,
				    uint64_t count, enum weft_type type,
				    const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = alltoall_call(comm, src, dst, count, type);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_reduce_init(struct weft_comm *comm, const void *src, void *dst,
				  uint64_t count, enum weft_type type, enum weft_op op,
				  int32_t root, const struct weft_opts *opts,
				  struct weft_req **req)
{
	const struct weft_call call = reduce_call(src, dst, count, type, op, root);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_gather_init(struct weft_comm *comm, const void *src, void *dst,
				  uint64_t count, enum weft_type type, int32_t root,
				  const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = gather_call(comm, src, dst, count, type, root);

	return weft_call_init(comm, &call, opts, req);
}

enum weft_result weft_scatter_init(struct weft_comm *comm, const void *src, void *dst,
				   uint64_t count, enum weft_type type, int32_t root,
				   const struct weft_opts *opts, struct weft_req **req)
{
	const struct weft_call call = scatter_call(comm, src, dst, count, type, root);

	return weft_call_init(comm, &call, opts, req);
}
