/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Weft collectives: the public interface.
 *
 * A process opens one context (endpoint, registrations and connections live there),
 * creates communicators on it and calls collectives on those, or sends messages between
 * two of their ranks. Every one of these exists as a blocking function and as a _start
 * twin that returns a request; collectives also as an _init twin, whose request can be
 * started many times.
 *
 * Rules that hold for every function unless its comment says otherwise:
 *  - Counts are elements, lengths and sizes are bytes, times are microseconds.
 *  - The caller owns every buffer that it passes. From the call until its request is done
 *    the source must not be written and the destination must be neither read nor written.
 *  - Results are returned as enum weft_result; outputs are written only on WEFT_SUCCESS.
 *    weft_error_detail() then says what was asked, what was found and what to do.
 *  - Calls on different contexts may run in different threads. Calls on one context are
 *    serialised by a lock inside the library; every rank must issue the collectives of
 *    one communicator in the same order. What ends an object (weft_ctx_close,
 *    weft_comm_destroy, weft_req_free, and the wait or test that frees a request) must
 *    not run beside another call that is given the same object.
 *  - Every wait has a deadline: 60 s unless the options or the context say otherwise.
 *  - Options structs begin with their size (WEFT_..._INIT sets it), so that fields can be
 *    added at the end; NULL options mean the defaults. A field value that this version
 *    does not support gives WEFT_ERR_UNSUPPORTED with the field's name in the detail.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_API __attribute__((visibility("default")))

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1

/* ---- results ------------------------------------------------------------------------
 */

enum weft_result {
	WEFT_SUCCESS = 0,
	WEFT_ERR_ARG,	      /* an argument is wrong; nothing was started */
	WEFT_ERR_UNSUPPORTED, /* understood, but not in this version or for this pair */
	WEFT_ERR_NOMEM,	      /* memory or descriptors ran out */
	WEFT_ERR_TIMEOUT,  /* the deadline passed; the detail names the rank waited for */
	WEFT_ERR_PEER,	   /* a rank died or cannot be reached; the detail names it */
	WEFT_ERR_PROVIDER, /* no such provider, or it failed; the detail has its words */
	WEFT_ERR_BOOTSTRAP, /* ranks could not find each other */
	WEFT_ERR_COMM, /* the communicator failed earlier; the detail has the first cause
			*/
	WEFT_ERR_MISMATCH, /* ranks disagree about the call; the detail names two and both
			      values */
	WEFT_ERR_BUSY, /* still in use: memory that a peer may yet write, open requests */
	WEFT_ERR_INTERNAL, /* a fault in Weft; the detail says where */
	WEFT_ERR_REVOKED, /* weft_comm_revoke() ended the call; the detail says by whom */
	WEFT_ERR_FENCED,  /* a member that takes no part any more; the detail says why */
	WEFT_ERR_DEVICE,  /* a GPU or its driver failed; the detail has its words */
	WEFT_RESULT_COUNT
};

/* Short text of a result ("no answer before the deadline"). Static storage. */
WEFT_API const char *weft_strerror(enum weft_result result);

/*
 * What the last failing call in this thread found, as one sentence: what was asked, what
 * was found, what to do. Valid until the thread's next weft_ call; "" when none failed.
 */
WEFT_API const char *weft_error_detail(void);

/* Version of the library in use, for example "0.1.0". */
WEFT_API const char *weft_version(void);

/* ---- types and operations -----------------------------------------------------------
 */

enum weft_type {
	WEFT_INT8,
	WEFT_UINT8,
	WEFT_INT16,
	WEFT_UINT16,
	WEFT_INT32,
	WEFT_UINT32,
	WEFT_INT64,
	WEFT_UINT64,
	WEFT_FP16,     /* IEEE binary16 */
	WEFT_BF16,     /* bfloat16 */
	WEFT_FP8_E4M3, /* OCP 8-bit float, 4 exponent bits; no infinity, up to 448 */
	WEFT_FP8_E5M2, /* OCP 8-bit float, 5 exponent bits; up to 57344 */
	WEFT_FP32,
	WEFT_FP64,
	WEFT_TYPE_COUNT
};

/*
 * What reductions do. Sums and products of integers wrap, and are exact but for that.
 * fp16, bf16 and fp8 are computed in fp32 and rounded to nearest even after each step:
 * results beyond the type's largest become infinity, and NaN in fp8_e4m3, which has no
 * infinity. Minimum and maximum return NaN where an operand is one; -0 is less than 0. An
 * average is a sum first, with all that a sum may lose, then divided once.
 */
enum weft_op {
	WEFT_SUM,
	WEFT_PROD,
	WEFT_MIN,
	WEFT_MAX,
	WEFT_AVG, /* sum divided by the number of ranks; integers truncate towards zero */
	WEFT_BAND, /* bitwise: of integers, refused of others */
	WEFT_BOR,
	WEFT_BXOR,
	WEFT_OP_COUNT,
	WEFT_OP_USER = 64 /* from here on: weft_op_create() */
};

/* Bytes of one element; 0 for a value that is no type. */
WEFT_API size_t weft_type_size(enum weft_type type);

/* Name ("fp32", "sum", "user"), static storage; "?" for a value that is none. */
WEFT_API const char *weft_type_name(enum weft_type type);
WEFT_API const char *weft_op_name(enum weft_op op);

/* ---- objects ------------------------------------------------------------------------
 */

struct weft_ctx;  /* endpoint, registrations, connections: one per process is usual */
struct weft_comm; /* an ordered group of ranks */
struct weft_req;  /* a collective in progress, or a persistent one */
struct weft_win;  /* a registered window, one part per rank */
struct weft_mem;  /* memory registered with a context */

/*
 * Where memory lives. Device memory works in every collective and message, over any
 * provider: what is read of it goes through pinned host memory piece by piece while other
 * pieces are on their way, by copy engines, and results the same way back. Reductions are
 * done on the host, operations of the caller (weft_op_create()) see host memory. A call
 * whose buffers are longer together than any before it pins as much more memory, which
 * the context keeps. WEFT_DOUBLE, windows, counts (but those of a dynamic all-to-allv),
 * buckets and prefetching take host memory only. Managed memory counts as the host's.
 * Errors besides those of the call: ARG (memory of another kind or device than was said),
 * UNSUPPORTED (no GPU: the detail says what is missing), DEVICE.
 */
enum weft_mem_kind {
	WEFT_MEM_HOST = 0,
	WEFT_MEM_CUDA,
	WEFT_MEM_AUTO, /* ask the GPU library whose memory this is */
};

/* A buffer, for the general call weft_call_start(). One of kind HOST is of the kind that
 * weft_opts says (src_kind, dst_kind). */
struct weft_buf {
	void *addr;
	uint64_t count; /* elements */
	enum weft_type type;
	enum weft_mem_kind kind;
	int32_t device;	      /* of kind CUDA; ignored for host memory */
	struct weft_mem *mem; /* registration that covers it, or NULL */
};

/* Counts of a (v) form, and where these arrays live: read during the call that starts it,
 * and not after. (A dynamic all-to-allv reads them when it is executed.) */
struct weft_counts {
	const uint64_t *counts;	       /* one per rank, elements */
	const uint64_t *displacements; /* one per rank, elements; NULL: packed */
	enum weft_mem_kind kind;
	int32_t device;
};

/* ---- context ------------------------------------------------------------------------
 */

/* A wait that never gives up; only a caller can ask for it. */
#define WEFT_TIMEOUT_INFINITE ((int64_t)-1)
/* The default of the level above (60 s at the top). */
#define WEFT_TIMEOUT_DEFAULT ((int64_t)0)

/*
 * Bootstrap by the caller's own means: an all-gather over all ranks. in has len bytes,
 * out has size * len in rank order. Returns 0, or non-zero when it failed or timed out.
 */
struct weft_boot_callbacks {
	int32_t rank;
	int32_t size;
	void *arg;
	int (*allgather)(void *arg, const void *in, void *out, size_t len,
			 int64_t timeout_us);
};

/* Who makes progress with what was started. */
enum weft_progress {
	WEFT_PROGRESS_DEFAULT, /* as WEFT_PROGRESS says, else CALLER */
	WEFT_PROGRESS_CALLER,  /* calls of Weft do, each for all of the context */
	WEFT_PROGRESS_THREAD,  /* and a thread of the context, while nobody calls */
};

/*
 * The thread is for callers that compute between a _start and its wait: it needs a
 * processor of its own to be of use. It sleeps while nothing is started, and while a
 * thread of the caller waits in a call. While windows exist it looks once in a
 * millisecond whether a peer wants something of them. It takes no signals.
 */
struct weft_ctx_opts {
	size_t size;	      /* sizeof(struct weft_ctx_opts) */
	const char *provider; /* NULL: FI_PROVIDER, else the best that fits */
	const char *domain;   /* libfabric domain; NULL: the first */
	int64_t timeout_us;   /* default deadline of every wait */
	const struct weft_boot_callbacks *boot; /* NULL: environment variables */
	uint64_t flags;				/* none defined: 0 */
	enum weft_progress progress;
	const char
		*progress_cpus; /* where its thread may run: "3", "0,2-4"; NULL: as
				 * WEFT_PROGRESS_CPUS says, else where the caller may */
};
#define WEFT_CTX_OPTS_INIT                           \
	{                                            \
		.size = sizeof(struct weft_ctx_opts) \
	}

/*
 * Opens a context: reads the environment, finds the other ranks, opens the provider.
 * Collective over all ranks of the job. Connections are made at their first use.
 * Errors: ARG, PROVIDER (the detail lists those there are), BOOTSTRAP (the detail names
 * ranks that did not come), TIMEOUT, NOMEM. Thread-safe.
 */
WEFT_API enum weft_result weft_ctx_open(const struct weft_ctx_opts *opts,
					struct weft_ctx **ctx);

/*
 * Closes a context; its communicators must be destroyed. Not collective: ranks may leave
 * at different times. BUSY while communicators exist or memory may still be written by a
 * peer.
 */
WEFT_API enum weft_result weft_ctx_close(struct weft_ctx *ctx);

/*
 * Memory that is registered once for all calls of the context, and that ranks of one host
 * share: what they send each other there moves by load and store. Whole pages, zeroed.
 * Providers without shared memory give ordinary memory. Errors: ARG (len is 0), NOMEM,
 * PROVIDER.
 */
WEFT_API enum weft_result weft_mem_alloc(struct weft_ctx *ctx, size_t len, void **addr);

/*
 * Gives it back; closing the context does as well. ARG: not an address that
 * weft_mem_alloc gave; BUSY: a request uses it, or a peer may still write it: try again.
 */
WEFT_API enum weft_result weft_mem_free(struct weft_ctx *ctx, void *addr);

/* ---- communicators ------------------------------------------------------------------
 */

struct weft_comm_opts {
	size_t size;	 /* sizeof(struct weft_comm_opts) */
	uint64_t flags;	 /* none defined: 0 */
	uint32_t groups; /* that weft_comm_group() shall make of it, the same on all
			  * ranks; 256 at most */
};
#define WEFT_COMM_OPTS_INIT                           \
	{                                             \
		.size = sizeof(struct weft_comm_opts) \
	}

/*
 * A communicator of all ranks of the context. Collective; each rank creates the
 * communicators of a context in the same order.
 */
WEFT_API enum weft_result weft_comm_create(struct weft_ctx *ctx,
					   const struct weft_comm_opts *opts,
					   struct weft_comm **comm);

/* The color of a rank that joins none. */
#define WEFT_SPLIT_NONE (-1)

/*
 * Communicators of the ranks of comm that give the same color (0 or more), ordered by key
 * and, where that is equal, by rank in comm. Collective over comm; *out is NULL with
 * WEFT_SPLIT_NONE. Endpoints, registrations and connections are the context's, so that it
 * costs one all-gather of 16 bytes. Communicators are created one after the other, in the
 * same order on all ranks that take part. Sentences about failures name ranks of the
 * context. comm may be destroyed before or after what came of it. Errors: ARG (a color
 * below -1), those of a collective on comm, UNSUPPORTED (4,096 in the life of a context),
 * BUSY (another thread created one meanwhile).
 */
WEFT_API enum weft_result weft_comm_split(struct weft_comm *comm, int32_t color,
					  int32_t key, const struct weft_comm_opts *opts,
					  struct weft_comm **out);

/* The same ranks again: calls on one do not meet those on the other. Collective over
 * comm; errors of weft_comm_split(). */
WEFT_API enum weft_result weft_comm_dup(struct weft_comm *comm,
					const struct weft_comm_opts *opts,
					struct weft_comm **out);

/*
 * A communicator of the ranks of comm that the list names, in its order, without any
 * communication: as many as comm was created for (weft_comm_opts.groups). All ranks of
 * comm call it, in the same order as each other; those of one group give the same list,
 * lists of one call have no rank in common, and who joins none gives count 0, and gets
 * NULL. Lists that differ are a mismatch in the first collective of the group. Errors:
 * ARG (a rank that is none, or twice, or not the own one), UNSUPPORTED (no group left).
 */
WEFT_API enum weft_result weft_comm_group(struct weft_comm *comm, const int32_t *ranks,
					  int32_t count,
					  const struct weft_comm_opts *opts,
					  struct weft_comm **out);

/*
 * Local. BUSY while requests are open or memory may still be written by a peer. That is
 * so after a blocking call failed whose buffers could not be made safe within a second:
 * the communicator keeps that call, and its buffers are the caller's again when
 * destroying it succeeds (each try makes progress). Peers release them when they next
 * call Weft; a peer that is known to be unreachable holds nothing.
 */
WEFT_API enum weft_result weft_comm_destroy(struct weft_comm *comm);

/*
 * Ends a communicator for all of its ranks, from any thread, at any time: while other
 * threads wait in calls on it, without the other ranks calling anything. All that is open
 * on it, here and at every other rank when that next makes progress, ends with
 * WEFT_ERR_REVOKED and a detail that says which rank revoked it, the reason, and what had
 * failed before, if anything had; calls that come later get WEFT_ERR_COMM with the first
 * cause. What these calls would have written is undefined. Buffers are given back as
 * after any failure: by waiting for the request (WEFT_ERR_BUSY while a peer may still
 * write), or by destroying the communicator or window. That still has to be done, on
 * every rank. reason: a short text for people, or NULL. Again, and by several ranks: the
 * first that a rank hears of counts. Takes a tenth of a second at most, while it tells
 * the others. Errors: ARG.
 */
WEFT_API enum weft_result weft_comm_revoke(struct weft_comm *comm, const char *reason);

WEFT_API int32_t weft_comm_rank(const struct weft_comm *comm);
WEFT_API int32_t weft_comm_size(const struct weft_comm *comm);

/* ---- operations of the caller -------------------------------------------------------
 */

/* The operation does not commute: operands are joined in the order of the ranks. */
#define WEFT_OP_ORDERED (UINT64_C(1) << 0)

/*
 * dst[i] = a[i] op b[i] for count elements of host memory; dst may be a or b. The
 * operation must be associative, since the library chooses the brackets, and give the
 * same bits on every rank. Without WEFT_OP_ORDERED it must commute as well. Called from
 * within calls of Weft, or its progress thread, for any part of a vector and with no
 * alignment beyond the type's; it must not call Weft itself. Calls for one context come
 * one at a time.
 */
struct weft_op_opts {
	size_t size; /* sizeof(struct weft_op_opts) */
	void (*apply)(void *arg, enum weft_type type, void *dst, const void *a,
		      const void *b, uint64_t count);
	void *arg;
	uint64_t flags; /* WEFT_OP_ORDERED, or 0 */
};
#define WEFT_OP_OPTS_INIT                           \
	{                                           \
		.size = sizeof(struct weft_op_opts) \
	}

/*
 * An operation for the reductions of a context, of elements of any type. Local; ranks
 * create (and destroy) the operations of a context in the same order, so that the same
 * value means the same everywhere. One with WEFT_OP_ORDERED can be used where an
 * algorithm keeps the order of ranks: all-reduce (recursive-doubling, lines) and reduce
 * (chain, lines); elsewhere it gives UNSUPPORTED. Errors: ARG, UNSUPPORTED (more than 24
 * at a time).
 */
WEFT_API enum weft_result weft_op_create(struct weft_ctx *ctx,
					 const struct weft_op_opts *opts,
					 enum weft_op *op);

/* Calls that were started, and persistent ones that were made, keep apply and arg: what
 * arg points to must live as long as they. ARG: no operation of the context. */
WEFT_API enum weft_result weft_op_destroy(struct weft_ctx *ctx, enum weft_op op);

/* ---- collectives --------------------------------------------------------------------
 */

enum weft_coll {
	WEFT_COLL_BARRIER,
	WEFT_COLL_BROADCAST,
	WEFT_COLL_ALLGATHER,
	WEFT_COLL_ALLREDUCE,
	WEFT_COLL_ALLGATHERV,
	WEFT_COLL_REDUCE_SCATTER,
	WEFT_COLL_REDUCE_SCATTERV,
	WEFT_COLL_ALLTOALL,
	WEFT_COLL_ALLTOALLV,
	WEFT_COLL_ALLTOALLV_DYNAMIC,
	WEFT_COLL_REDUCE,
	WEFT_COLL_GATHER,
	WEFT_COLL_GATHERV,
	WEFT_COLL_SCATTER,
	WEFT_COLL_SCATTERV,
	WEFT_COLL_COUNT
};

WEFT_API const char *weft_coll_name(enum weft_coll coll);

enum weft_stream_kind {
	WEFT_STREAM_NONE = 0,
	WEFT_STREAM_CUDA,
};

/*
 * A call in a stream (stream_kind, stream) begins when the stream has come to it, and the
 * stream goes on when the result is there; the host waits for neither. A blocking call
 * returns at once then, and its errors are told by the next call on the communicator
 * (COMM, with the first cause); a request of a _start twin or of a persistent call can be
 * waited for as well. When a call fails the stream goes on all the same, with what the
 * buffers hold undefined, within the call's deadline, which counts from the moment when
 * the stream comes to the call. The stream belongs to the device that has the call's
 * device memory, or else to src_device. Since calls in streams have to end while nobody
 * calls, the first one starts the context's progress thread (weft_ctx_opts.progress)
 * where there is none. A communicator whose calls are still in streams is not destroyed
 * (BUSY): wait for the streams first. Groups of messages are UNSUPPORTED.
 *
 * While the stream is being captured a blocking collective becomes part of the graph: it
 * starts nothing, and each launch of the graph runs it when it comes there, with what the
 * buffers hold then. All ranks capture the same collectives of a communicator in the same
 * order, which for the first of each graph waits for the other ranks, and give the calls
 * of one graph an order (one stream, or streams that wait for each other). Launches need
 * no order against other calls of the communicator. One launch of a graph runs at a time.
 * A call that fails in a launch is told by the next call on the communicator, as above;
 * launches go on without waiting then. Buffers stay until the graph is destroyed, and the
 * communicator is destroyed after that. A communicator for each graph comes of the
 * context's 4,096. _start twins, persistent requests and messages cannot be captured
 * (UNSUPPORTED).
 */
struct weft_opts {
	size_t size;	       /* sizeof(struct weft_opts) */
	int64_t timeout_us;    /* WEFT_TIMEOUT_DEFAULT, WEFT_TIMEOUT_INFINITE or > 0 */
	const char *algorithm; /* name ("ring"); NULL: chosen by size and ranks */
	uint64_t flags;	       /* WEFT_DOUBLE, of persistent calls only, or 0 */
	enum weft_stream_kind stream_kind;
	void *stream; /* a cudaStream_t where stream_kind says so */
	enum weft_mem_kind src_kind,
		dst_kind; /* of buffers that do not say themselves; where source and
			   * destination are one (broadcast), either */
	int32_t src_device, dst_device;
	struct weft_mem *src_mem, *dst_mem; /* registrations, or NULL */
};
#define WEFT_OPTS_INIT                           \
	{                                        \
		.size = sizeof(struct weft_opts) \
	}

struct weft_dynamic; /* <weft/weft_dynamic.h>, which is a part of this header */

/* Any collective, in its general form. */
struct weft_call {
	size_t size; /* sizeof(struct weft_call) */
	enum weft_coll coll;
	enum weft_op op; /* reductions only */
	int32_t root;	 /* rooted collectives only */
	struct weft_buf src;
	struct weft_buf dst;
	const struct weft_counts *send_counts; /* (v) forms only */
	const struct weft_counts *recv_counts;
	const struct weft_dynamic *dynamic; /* dynamic all-to-allv only */
};
#define WEFT_CALL_INIT                           \
	{                                        \
		.size = sizeof(struct weft_call) \
	}

/*
 * Starts a collective. *req is owned by the caller until weft_req_wait() or
 * weft_req_test() reports it done, which frees it. Errors: ARG, UNSUPPORTED, COMM, NOMEM.
 * Shapes: as at the plain calls below; a broadcast has src equal to dst, a barrier
 * neither.
 */
WEFT_API enum weft_result weft_call_start(struct weft_comm *comm,
					  const struct weft_call *call,
					  const struct weft_opts *opts,
					  struct weft_req **req);

/* Returns when every rank has called it. Dissemination. */
WEFT_API enum weft_result weft_barrier(struct weft_comm *comm,
				       const struct weft_opts *opts);
WEFT_API enum weft_result weft_barrier_start(struct weft_comm *comm,
					     const struct weft_opts *opts,
					     struct weft_req **req);

/* buf: count elements on every rank, read at root and written elsewhere. */
WEFT_API enum weft_result weft_broadcast(struct weft_comm *comm, void *buf,
					 uint64_t count, enum weft_type type,
					 int32_t root, const struct weft_opts *opts);
WEFT_API enum weft_result weft_broadcast_start(struct weft_comm *comm, void *buf,
					       uint64_t count, enum weft_type type,
					       int32_t root, const struct weft_opts *opts,
					       struct weft_req **req);

/*
 * src: count elements; dst: size * count elements in rank order.
 * In place when src is dst + rank * count elements. Other overlaps give WEFT_ERR_ARG.
 */
WEFT_API enum weft_result weft_allgather(struct weft_comm *comm, const void *src,
					 void *dst, uint64_t count, enum weft_type type,
					 const struct weft_opts *opts);
WEFT_API enum weft_result weft_allgather_start(struct weft_comm *comm, const void *src,
					       void *dst, uint64_t count,
					       enum weft_type type,
					       const struct weft_opts *opts,
					       struct weft_req **req);

/*
 * src, dst: count elements each. In place when src equals dst; other overlaps give
 * WEFT_ERR_ARG. All ranks get the same bits.
 */
WEFT_API enum weft_result weft_allreduce(struct weft_comm *comm, const void *src,
					 void *dst, uint64_t count, enum weft_type type,
					 enum weft_op op, const struct weft_opts *opts);
WEFT_API enum weft_result weft_allreduce_start(struct weft_comm *comm, const void *src,
					       void *dst, uint64_t count,
					       enum weft_type type, enum weft_op op,
					       const struct weft_opts *opts,
					       struct weft_req **req);

/*
 * src: size * count elements in rank order; dst: count elements, the reduction over all
 * ranks of their block for this rank. In place when dst is src + rank * count elements;
 * the other blocks stay as they are.
 */
WEFT_API enum weft_result weft_reduce_scatter(struct weft_comm *comm, const void *src,
					      void *dst, uint64_t count,
					      enum weft_type type, enum weft_op op,
					      const struct weft_opts *opts);
WEFT_API enum weft_result weft_reduce_scatter_start(struct weft_comm *comm,
						    const void *src, void *dst,
						    uint64_t count, enum weft_type type,
						    enum weft_op op,
						    const struct weft_opts *opts,
						    struct weft_req **req);

/*
 * src, dst: size * count elements each: block i of src goes to rank i, block i of dst
 * comes from rank i. In place when src equals dst, which it does at all ranks or at none.
 */
WEFT_API enum weft_result weft_alltoall(struct weft_comm *comm, const void *src,
					void *dst, uint64_t count, enum weft_type type,
					const struct weft_opts *opts);
WEFT_API enum weft_result weft_alltoall_start(struct weft_comm *comm, const void *src,
					      void *dst, uint64_t count,
					      enum weft_type type,
					      const struct weft_opts *opts,
					      struct weft_req **req);

/*
 * src: count elements; dst: count elements at root, looked at nowhere else. In place when
 * src equals dst at root.
 */
WEFT_API enum weft_result weft_reduce(struct weft_comm *comm, const void *src, void *dst,
				      uint64_t count, enum weft_type type,
				      enum weft_op op, int32_t root,
				      const struct weft_opts *opts);
WEFT_API enum weft_result weft_reduce_start(struct weft_comm *comm, const void *src,
					    void *dst, uint64_t count,
					    enum weft_type type, enum weft_op op,
					    int32_t root, const struct weft_opts *opts,
					    struct weft_req **req);

/*
 * src: count elements; dst: size * count elements in rank order at root, looked at
 * nowhere else. In place when src is dst + root * count elements at root.
 */
WEFT_API enum weft_result weft_gather(struct weft_comm *comm, const void *src, void *dst,
				      uint64_t count, enum weft_type type, int32_t root,
				      const struct weft_opts *opts);
WEFT_API enum weft_result weft_gather_start(struct weft_comm *comm, const void *src,
					    void *dst, uint64_t count,
					    enum weft_type type, int32_t root,
					    const struct weft_opts *opts,
					    struct weft_req **req);

/*
 * src: size * count elements in rank order at root, looked at nowhere else; dst: count
 * elements. In place when dst is src + root * count elements at root.
 */
WEFT_API enum weft_result weft_scatter(struct weft_comm *comm, const void *src, void *dst,
				       uint64_t count, enum weft_type type, int32_t root,
				       const struct weft_opts *opts);
WEFT_API enum weft_result weft_scatter_start(struct weft_comm *comm, const void *src,
					     void *dst, uint64_t count,
					     enum weft_type type, int32_t root,
					     const struct weft_opts *opts,
					     struct weft_req **req);

/*
 * The (v) forms: blocks of any lengths. counts: a block's elements, one per rank, nothing
 * included. displacements: where each begins in its buffer; blocks lie in the order of
 * the ranks, do not overlap, and may have gaps between them, which stay as they are. Both
 * are read during the call that starts it. Lengths that ranks give differently for the
 * same block are a mismatch, which may be found after some have finished.
 *
 * src: src_count elements; dst: a block from each rank, by recv_counts, in which every
 * rank has the same counts. In place when src is this rank's block of dst.
 */
WEFT_API enum weft_result weft_allgatherv(struct weft_comm *comm, const void *src,
					  uint64_t src_count, void *dst,
					  const struct weft_counts *recv_counts,
					  enum weft_type type,
					  const struct weft_opts *opts);
WEFT_API enum weft_result weft_allgatherv_start(struct weft_comm *comm, const void *src,
						uint64_t src_count, void *dst,
						const struct weft_counts *recv_counts,
						enum weft_type type,
						const struct weft_opts *opts,
						struct weft_req **req);

/*
 * src: a block for each rank, by send_counts, in which every rank has the same counts;
 * dst: dst_count elements, the reduction over all ranks of the block for this one. In
 * place when dst is this rank's block of src.
 */
WEFT_API enum weft_result weft_reduce_scatterv(struct weft_comm *comm, const void *src,
					       const struct weft_counts *send_counts,
					       void *dst, uint64_t dst_count,
					       enum weft_type type, enum weft_op op,
					       const struct weft_opts *opts);
WEFT_API enum weft_result weft_reduce_scatterv_start(
	struct weft_comm *comm, const void *src, const struct weft_counts *send_counts,
	void *dst, uint64_t dst_count, enum weft_type type, enum weft_op op,
	const struct weft_opts *opts, struct weft_req **req);

/*
 * src: a block for each rank, by send_counts; dst: one from each, by recv_counts. Not in
 * place.
 */
WEFT_API enum weft_result weft_alltoallv(struct weft_comm *comm, const void *src,
					 const struct weft_counts *send_counts, void *dst,
					 const struct weft_counts *recv_counts,
					 enum weft_type type,
					 const struct weft_opts *opts);
WEFT_API enum weft_result weft_alltoallv_start(
	struct weft_comm *comm, const void *src, const struct weft_counts *send_counts,
	void *dst, const struct weft_counts *recv_counts, enum weft_type type,
	const struct weft_opts *opts, struct weft_req **req);

/*
 * src: src_count elements; dst: a block from each rank, by recv_counts; both are looked
 * at only at root. In place when src is root's block of dst there.
 */
WEFT_API enum weft_result weft_gatherv(struct weft_comm *comm, const void *src,
				       uint64_t src_count, void *dst,
				       const struct weft_counts *recv_counts,
				       enum weft_type type, int32_t root,
				       const struct weft_opts *opts);
WEFT_API enum weft_result weft_gatherv_start(struct weft_comm *comm, const void *src,
					     uint64_t src_count, void *dst,
					     const struct weft_counts *recv_counts,
					     enum weft_type type, int32_t root,
					     const struct weft_opts *opts,
					     struct weft_req **req);

/*
 * src: a block for each rank, by send_counts; both are looked at only at root; dst:
 * dst_count elements. In place when dst is root's block of src there.
 */
WEFT_API enum weft_result weft_scatterv(struct weft_comm *comm, const void *src,
					const struct weft_counts *send_counts, void *dst,
					uint64_t dst_count, enum weft_type type,
					int32_t root, const struct weft_opts *opts);
WEFT_API enum weft_result weft_scatterv_start(struct weft_comm *comm, const void *src,
					      const struct weft_counts *send_counts,
					      void *dst, uint64_t dst_count,
					      enum weft_type type, int32_t root,
					      const struct weft_opts *opts,
					      struct weft_req **req);

/* ---- messages -----------------------------------------------------------------------
 */

/*
 * Messages between two ranks of a communicator: the k-th that one sends to the other is
 * the k-th that this one receives from it; there are no tags. Both give the same count
 * and type: otherwise WEFT_ERR_MISMATCH, on both sides with the same words; a sender
 * whose message had left already hears it in its next call. A send returns when the
 * buffer is the caller's again, which may be before the other rank has called. A failure
 * is of the two ranks: later messages between them give COMM, other ranks and collectives
 * are not touched. Errors: ARG (also for the rank itself), UNSUPPORTED, COMM, NOMEM,
 * TIMEOUT, PEER, MISMATCH.
 */
WEFT_API enum weft_result weft_send(struct weft_comm *comm, const void *buf,
				    uint64_t count, enum weft_type type, int32_t peer,
				    const struct weft_opts *opts);
WEFT_API enum weft_result weft_send_start(struct weft_comm *comm, const void *buf,
					  uint64_t count, enum weft_type type,
					  int32_t peer, const struct weft_opts *opts,
					  struct weft_req **req);
WEFT_API enum weft_result weft_recv(struct weft_comm *comm, void *buf, uint64_t count,
				    enum weft_type type, int32_t peer,
				    const struct weft_opts *opts);
WEFT_API enum weft_result weft_recv_start(struct weft_comm *comm, void *buf,
					  uint64_t count, enum weft_type type,
					  int32_t peer, const struct weft_opts *opts,
					  struct weft_req **req);

/*
 * Between begin and end, weft_send() and weft_recv() of the communicator start and do not
 * wait; the end waits for all of them, so that no order of the calls on any rank can make
 * ranks wait for each other for good. Buffers are in use until then. The result is that
 * of the first that failed; deadlines are those of each. What gave an error where it was
 * called is not in the group. weft_send_start() and weft_recv_start() are not part of it,
 * nor are collectives. One group of a communicator is open at a time, and one thread's. A
 * message that failed and whose buffer a peer might still write after a second stays with
 * the communicator, as with a blocking call (see weft_comm_destroy()). Errors: ARG (open
 * already, or none open); of the end those of messages.
 */
WEFT_API enum weft_result weft_group_begin(struct weft_comm *comm);
WEFT_API enum weft_result weft_group_end(struct weft_comm *comm);

/* ---- requests -----------------------------------------------------------------------
 */

/*
 * Of persistent requests: "freed" below means that they may be started again.
 *
 * Makes progress; *done is set to 1 when the request is finished and freed, else to 0.
 * Returns the collective's result when done. A failed call whose buffers a peer might
 * still write stays unfinished: *done is 0 and the result is WEFT_ERR_BUSY until they are
 * safe.
 */
WEFT_API enum weft_result weft_req_test(struct weft_req *req, int *done);

/*
 * Waits until the request is finished, frees it and returns its result. timeout_us bounds
 * this wait; when it passes first the result is WEFT_ERR_TIMEOUT and the request lives
 * on. WEFT_TIMEOUT_DEFAULT waits for the request's own deadline. When the call failed and
 * a peer might still write its buffers at the end of the wait (by default a second after
 * the failure), the result is WEFT_ERR_BUSY, the detail has the failure, and the request
 * lives on: test it or wait again.
 */
WEFT_API enum weft_result weft_req_wait(struct weft_req *req, int64_t timeout_us);

/* ---- what happened ------------------------------------------------------------------
 */

struct weft_stats {
	size_t size;	/* sizeof(struct weft_stats), set by the caller */
	uint64_t calls; /* collectives and messages finished well */
	uint64_t puts;	/* remote writes started */
	uint64_t put_bytes;
	uint64_t msgs; /* tagged messages that carried payload */
	uint64_t msg_bytes;
	uint64_t readys;	  /* READY messages sent */
	uint64_t handles;	  /* handles that travelled (others were remembered) */
	uint64_t staged_bytes;	  /* payload that coll copied through memory of its own */
	uint64_t plan_copy_bytes; /* COPY steps of plans: the caller's own block */
	uint64_t reduced_bytes;	  /* bytes of results of REDUCE steps */
	/* What came from other jobs and was dropped: control messages, and words of puts
	 * that name nothing here. */
	uint64_t foreign;
};

/* Counters of a context since it was opened. */
WEFT_API enum weft_result weft_ctx_stats(struct weft_ctx *ctx, struct weft_stats *stats);

/*
 * The flight recorder: every context remembers its last 8,000 events (calls, their steps,
 * what was written to and by other ranks), always, in memory of a fixed size. This writes
 * them to a file, which weft trace reads; one of that name is replaced once the new one
 * is whole. Any thread, any time, also while calls are under way. Where WEFT_TRACE names
 * a folder, a context writes there by itself when a call fails for the first time, at
 * SIGUSR2, and when the process dies of a fault. ARG when the file can't be written; the
 * detail says why.
 */
WEFT_API enum weft_result weft_trace_dump(struct weft_ctx *ctx, const char *path);

/* Name of the algorithm that would run ("ring"); static storage, NULL if the call is
 * wrong. */
WEFT_API const char *weft_algorithm(struct weft_comm *comm, const struct weft_call *call,
				    const struct weft_opts *opts);

#ifdef __cplusplus
}
#endif

#include <weft/weft_dynamic.h>	  /* all-to-allv with lengths known only when it runs */
#include <weft/weft_elastic.h>	  /* communicators without the dead, and with newcomers */
#include <weft/weft_ft.h>	  /* all-reduce that survives the death of members */
#include <weft/weft_gpu.h>	  /* device memory: what is prepared ahead */
#include <weft/weft_overlap.h>	  /* gradient buckets, all-gathers ahead of their use */
#include <weft/weft_persistent.h> /* calls that are made once, started many times */
#include <weft/weft_win.h> /* windows: memory that ranks write and read by themselves */

#endif
