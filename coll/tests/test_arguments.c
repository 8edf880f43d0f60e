/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad input of one rank: each wrong argument is refused with a sentence that names it. */
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "coll/tests/ranks.h"
#include "util/tap.h"

static bool refused(enum weft_result got, enum weft_result want, const char *word,
		    const char *what)
{
	const char *detail = weft_error_detail();
	bool good = tap_ok(got == want && strstr(detail, word), "%s", what);

	if (!good)
		tap_diag("got %s (%s), want %s with \"%s\"", weft_strerror(got), detail,
			 weft_strerror(want), word);
	return good;
}

static void test_buffers(struct weft_comm *comm)
{
	float a[64] = {0}, b[64] = {0};

	refused(weft_allreduce(comm, NULL, b, 4, WEFT_FP32, WEFT_SUM, NULL), WEFT_ERR_ARG,
		"src is NULL", "a null source");
	refused(weft_allreduce(comm, a, NULL, 4, WEFT_FP32, WEFT_SUM, NULL), WEFT_ERR_ARG,
		"dst is NULL", "a null destination");
	refused(weft_broadcast(comm, NULL, 4, WEFT_FP32, 0, NULL), WEFT_ERR_ARG,
		"is NULL", "a null broadcast buffer");
	refused(weft_allreduce(comm, a, a + 2, 4, WEFT_FP32, WEFT_SUM, NULL),
		WEFT_ERR_ARG, "overlap", "overlapping buffers");
	refused(weft_allgather(comm, a + 1, a, 8, WEFT_FP32, NULL), WEFT_ERR_ARG,
		"overlap", "a source inside a wrong block");
	refused(weft_allgather(comm, a, b, UINT64_MAX / 2, WEFT_FP32, NULL), WEFT_ERR_ARG,
		"more than memory", "a count that overflows");
	refused(weft_allreduce(comm, a, b, UINT64_MAX, WEFT_FP64, WEFT_SUM, NULL),
		WEFT_ERR_ARG, "more than memory", "another count that overflows");
	tap_ok(weft_allreduce(comm, NULL, NULL, 0, WEFT_FP32, WEFT_SUM, NULL) ==
		       WEFT_SUCCESS,
	       "null buffers with nothing to move are good");
}

/* Of a dynamic all-to-allv, what can be seen at the call. */
static void test_dynamic(struct weft_comm *comm)
{
	uint64_t counts[1] = {1}, got[1];
	const struct weft_counts good_counts = {.counts = counts};
	struct weft_counts send = good_counts;
	struct weft_dynamic good = WEFT_DYNAMIC_INIT, d;
	float a[8] = {0}, b[8];

	good.max_count = 4;
	good.block = 2;
	good.recv_counts = got;
	d = good;
	d.size = 8;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "WEFT_DYNAMIC_INIT", "a dynamic struct of a wrong size");
	d = good;
	d.flags = 8;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_UNSUPPORTED, "weft_dynamic.flags", "a flag that is none");
	d = good;
	d.recv_counts = NULL;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "recv_counts is NULL", "nowhere for the counts");
	d = good;
	refused(weft_alltoallv_dynamic(comm, a, 8, NULL, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "send_counts is NULL", "no counts");
	send.kind = WEFT_MEM_CUDA;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_UNSUPPORTED, "send_counts.kind is WEFT_MEM_CUDA, but",
		"counts that live elsewhere");
	send = good_counts;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 7, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "must have 8", "a destination without room for the most");
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, a + 4, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "overlap", "source and destination that overlap");
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, a, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_UNSUPPORTED, "in place", "a dynamic one in place");
}

/* Of places, and of what persistent ones and counts say. */
static void test_dynamic_more(struct weft_comm *comm)
{
	uint64_t counts[1] = {1}, got[1], at[1] = {0}, list[4] = {0};
	const struct weft_counts good_counts = {.counts = counts};
	struct weft_counts send = good_counts;
	struct weft_dynamic good = WEFT_DYNAMIC_INIT, d;
	float a[8] = {0}, b[8];
	struct weft_req *req;

	good.max_count = 4;
	good.block = 2;
	good.recv_counts = got;
	d = good;
	d.max_count = UINT64_MAX / 2;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "more than memory", "a maximum that overflows");
	d = good;
	d.send_blocks = list;
	send.displacements = at;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "send_blocks both", "two ways to say where blocks are");
	send = good_counts;
	d = good;
	d.recv_blocks = list;
	d.flags = WEFT_DYNAMIC_PACKED;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "recv_blocks both", "two ways to say where blocks go");
	d = good;
	refused(weft_alltoallv_dynamic_init(comm, a, 8, &send, b, 7, &d, WEFT_FP32, NULL,
					    &req),
		WEFT_ERR_ARG, "must have 8", "and of a persistent one");
	counts[0] = 5;
	refused(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL),
		WEFT_ERR_ARG, "max_count is 4", "a count over the most");
	counts[0] = 4;
	tap_ok(weft_alltoallv_dynamic(comm, a, 8, &send, b, 8, &d, WEFT_FP32, NULL) ==
			       WEFT_SUCCESS &&
		       got[0] == 4,
	       "after which one that is in order is good");
}

static void test_values(struct weft_comm *comm)
{
	float a[4] = {0}, b[4];

	refused(weft_allreduce(comm, a, b, 4, (enum weft_type)77, WEFT_SUM, NULL),
		WEFT_ERR_ARG, "no type", "a type that is none");
	refused(weft_allreduce(comm, a, b, 4, WEFT_FP32, (enum weft_op)99, NULL),
		WEFT_ERR_ARG, "no operation", "an operation that is none");
	refused(weft_allreduce(comm, a, b, 4, WEFT_FP32, WEFT_BXOR, NULL),
		WEFT_ERR_UNSUPPORTED, "supported:", "an operation that is not there");
	refused(weft_broadcast(comm, a, 4, WEFT_FP32, 1, NULL), WEFT_ERR_ARG, "root is 1",
		"a root beyond the ranks");
	refused(weft_broadcast(comm, a, 4, WEFT_FP32, -1, NULL), WEFT_ERR_ARG,
		"root is -1", "a negative root");
}

static void test_call(struct weft_comm *comm)
{
	float a[4] = {0}, b[4];
	struct weft_counts counts = {0};
	struct weft_req *req;
	struct weft_call good = WEFT_CALL_INIT, call;

	good.coll = WEFT_COLL_ALLREDUCE;
	good.src = (struct weft_buf){.addr = a, .count = 4, .type = WEFT_FP32};
	good.dst = (struct weft_buf){.addr = b, .count = 4, .type = WEFT_FP32};
	call = good;
	call.dst.count = 3;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG, "3 elements",
		"counts of source and destination that differ");
	call = good;
	call.dst.type = WEFT_FP64;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG, "fp64",
		"types of source and destination that differ");
	call = good;
	call.size = 8;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG, "WEFT_CALL_INIT",
		"a call of a wrong size");
	call = good;
	call.coll = WEFT_COLL_ALLTOALLV_DYNAMIC;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG,
		"weft_call.dynamic is NULL", "a dynamic one without what it needs");
	call.size = offsetof(struct weft_call, dynamic);
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG,
		"weft_call.dynamic is NULL", "and from a caller that does not know it");
	call = good;
	call.coll = (enum weft_coll)200;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG, "no collective",
		"a collective that is none");
	call = good;
	call.send_counts = &counts;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG, "send_counts",
		"counts where none belong");
	call.coll = WEFT_COLL_ALLTOALL;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG,
		"takes no send_counts", "and where the source has a block per rank");
	call = good;
	call.src.kind = WEFT_MEM_CUDA;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_UNSUPPORTED,
		"src.kind is WEFT_MEM_CUDA, but this process has no GPU: turned off",
		"device memory where there is no GPU");
	call = good;
	call.dst.kind = (enum weft_mem_kind)9;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG, "dst.kind is 9",
		"a kind that is none");
	call = good;
	call.dst.mem = (struct weft_mem *)a;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_UNSUPPORTED, "dst.mem",
		"a registration of the caller");
	refused(weft_call_start(NULL, &good, NULL, &req), WEFT_ERR_ARG, "comm is NULL",
		"no communicator");
	refused(weft_call_start(comm, &good, NULL, NULL), WEFT_ERR_ARG, "req is NULL",
		"nowhere to put the request");
	tap_is_str(weft_algorithm(comm, &good, NULL), "recursive-doubling",
		   "the algorithm that would run is named");
}

/* Blocks of one rank by counts that make no sense. */
static void test_counts(struct weft_comm *comm)
{
	const uint64_t zero = 0, four = 4, many = UINT64_MAX / 2, far = UINT64_MAX;
	const struct weft_counts good = {.counts = &four}, none = {0},
				 nothing = {.counts = &zero}, huge = {.counts = &many},
				 away = {.counts = &four, .displacements = &far},
				 gpu = {.counts = &four, .kind = WEFT_MEM_CUDA};
	struct weft_call call = WEFT_CALL_INIT;
	float a[8] = {1, 2, 3, 4}, b[8] = {0};
	struct weft_req *req;

	tap_ok(weft_alltoallv(comm, a, &good, b, &good, WEFT_FP32, NULL) ==
			       WEFT_SUCCESS &&
		       memcmp(a, b, sizeof(a)) == 0,
	       "counts that are good");
	refused(weft_allgatherv(comm, a, 4, b, NULL, WEFT_FP32, NULL), WEFT_ERR_ARG,
		"recv_counts is NULL", "no counts");
	refused(weft_allgatherv(comm, a, 4, b, &none, WEFT_FP32, NULL), WEFT_ERR_ARG,
		"recv_counts->counts is NULL", "counts without an array");
	refused(weft_allgatherv(comm, a, 4, b, &gpu, WEFT_FP32, NULL),
		WEFT_ERR_UNSUPPORTED, "recv_counts->kind", "counts on a device");
	refused(weft_allgatherv(comm, a, 3, b, &good, WEFT_FP32, NULL), WEFT_ERR_ARG,
		"recv_counts->counts[0]", "a source of another length");
	refused(weft_scatterv(comm, a, &good, b, 5, WEFT_FP32, 0, NULL), WEFT_ERR_ARG,
		"send_counts->counts[0]", "a destination of another length");
	refused(weft_alltoallv(comm, a, &huge, b, &huge, WEFT_FP32, NULL), WEFT_ERR_ARG,
		"more than memory", "counts that are more than memory");
	refused(weft_alltoallv(comm, a, &away, b, &good, WEFT_FP32, NULL), WEFT_ERR_ARG,
		"more than memory", "a displacement that is");
	refused(weft_alltoallv(comm, a, &good, a, &good, WEFT_FP32, NULL),
		WEFT_ERR_UNSUPPORTED, "in place", "blocks in place");
	tap_ok(weft_alltoallv(comm, NULL, &nothing, NULL, &nothing, WEFT_FP32, NULL) ==
		       WEFT_SUCCESS,
	       "null buffers with no blocks are good");
	refused(weft_reduce_scatterv(comm, a, &good, b, 4, WEFT_FP32, WEFT_BOR, NULL),
		WEFT_ERR_UNSUPPORTED, "supported:", "an operation that is not there");
	call.coll = WEFT_COLL_GATHERV;
	call.src = (struct weft_buf){.addr = a, .count = 4, .type = WEFT_FP32};
	call.dst = (struct weft_buf){.addr = b, .count = 3, .type = WEFT_FP32};
	call.recv_counts = &good;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG,
		"recv_counts need 4 elements, the buffer has 3",
		"a buffer that is too short");
	call.send_counts = &good;
	refused(weft_call_start(comm, &call, NULL, &req), WEFT_ERR_ARG, "send_counts",
		"counts of the wrong side");
}

static void test_opts(struct weft_comm *comm)
{
	const struct weft_opts good = WEFT_OPTS_INIT;
	struct weft_opts opts = good;

	opts.size = 4;
	refused(weft_barrier(comm, &opts), WEFT_ERR_ARG, "WEFT_OPTS_INIT",
		"options of a wrong size");
	opts = good;
	opts.flags = 1;
	refused(weft_barrier(comm, &opts), WEFT_ERR_UNSUPPORTED, "flags",
		"an unknown flag");
	opts = good;
	opts.timeout_us = -7;
	refused(weft_barrier(comm, &opts), WEFT_ERR_ARG, "timeout_us",
		"a negative timeout");
	opts = good;
	opts.stream_kind = WEFT_STREAM_CUDA;
	refused(weft_barrier(comm, &opts), WEFT_ERR_UNSUPPORTED, "no GPU: turned off",
		"a stream where there is no GPU");
	opts = good;
	opts.stream = comm;
	refused(weft_barrier(comm, &opts), WEFT_ERR_ARG, "stream_kind",
		"a stream of no kind");
	opts = good;
	opts.src_kind = (enum weft_mem_kind)9;
	refused(weft_barrier(comm, &opts), WEFT_ERR_ARG, "src_kind is 9",
		"a kind of memory that is none");
	opts = good;
	opts.dst_mem = (struct weft_mem *)comm;
	refused(weft_barrier(comm, &opts), WEFT_ERR_UNSUPPORTED, "dst_mem",
		"a registration in the options");
	opts = good;
	opts.algorithm = "magic";
	refused(weft_barrier(comm, &opts), WEFT_ERR_ARG, "dissemination",
		"an unknown algorithm: the message lists those there are");
}

static enum weft_result started(struct weft_comm *comm, const struct weft_call *call)
{
	struct weft_req *req;
	const enum weft_result result = weft_call_start(comm, call, NULL, &req);

	return result == WEFT_SUCCESS ? weft_req_wait(req, 0) : result;
}

/* The last call that was in order is remembered: one thing that is wrong is seen. */
static void test_again(struct weft_comm *comm)
{
	struct weft_call good = WEFT_CALL_INIT, call;
	float a[4] = {1, 2, 3, 4}, b[4];

	good.coll = WEFT_COLL_REDUCE;
	good.src = (struct weft_buf){.addr = a, .count = 4, .type = WEFT_FP32};
	good.dst = (struct weft_buf){.addr = b, .count = 4, .type = WEFT_FP32};
	for (int i = 0; i < 2; i++) {
		b[3] = 0;
		tap_ok(started(comm, &good) == WEFT_SUCCESS && b[3] == 4,
		       "a call that is in order");
	}
	call = good;
	call.op = WEFT_BAND;
	refused(started(comm, &call), WEFT_ERR_UNSUPPORTED, "fp32",
		"then another operation");
	call = good;
	call.root = 1;
	refused(started(comm, &call), WEFT_ERR_ARG, "root", "then another root");
	call = good;
	call.dst.addr = a + 1;
	refused(started(comm, &call), WEFT_ERR_ARG, "", "then buffers that overlap");
	call = good;
	call.src.addr = NULL;
	refused(started(comm, &call), WEFT_ERR_ARG, "NULL", "then no buffer");
	call = good;
	call.src.count = 3;
	refused(started(comm, &call), WEFT_ERR_ARG, "", "then another count");
	call = good;
	call.dst.type = WEFT_INT32;
	refused(started(comm, &call), WEFT_ERR_ARG, "", "then another type");
	call = good;
	call.src.kind = WEFT_MEM_CUDA;
	refused(started(comm, &call), WEFT_ERR_UNSUPPORTED, "kind",
		"then another kind of memory");
	call = good;
	call.src.mem = (struct weft_mem *)comm;
	refused(started(comm, &call), WEFT_ERR_UNSUPPORTED, "mem", "then a registration");
}

static void test_objects(struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct weft_boot_callbacks boot = {.rank = 3, .size = 2};
	struct weft_stats stats = {0};
	struct weft_ctx *other;
	int done;

	refused(weft_ctx_open(NULL, NULL), WEFT_ERR_ARG, "ctx is NULL",
		"nowhere to put the context");
	opts.boot = &boot;
	refused(weft_ctx_open(&opts, &other), WEFT_ERR_ARG, "rank 3 of 2",
		"a rank beyond the size");
	opts.boot = NULL;
	opts.flags = 2;
	refused(weft_ctx_open(&opts, &other), WEFT_ERR_UNSUPPORTED, "flags",
		"an unknown flag of a context");
	opts.flags = 0;
	opts.provider = "no-such-provider";
	refused(weft_ctx_open(&opts, &other), WEFT_ERR_PROVIDER, "tcp",
		"an unknown provider: the message lists those there are");
	opts.provider = "tcp";
	opts.domain = "no-such-domain";
	refused(weft_ctx_open(&opts, &other), WEFT_ERR_PROVIDER, "no-such-domain",
		"an unknown domain");
	refused(weft_ctx_close(ctx), WEFT_ERR_BUSY, "communicators",
		"closing a context with a communicator");
	refused(weft_ctx_stats(ctx, &stats), WEFT_ERR_ARG, "stats->size",
		"counters without a size");
	refused(weft_req_test(NULL, &done), WEFT_ERR_ARG, "req is NULL",
		"testing no request");
	refused(weft_req_wait(NULL, 0), WEFT_ERR_ARG, "req is NULL",
		"waiting for no request");
	tap_is_int(weft_comm_size(comm), 1, "a communicator of one rank");
}

static void count_apply(void *arg, enum weft_type type, void *dst, const void *a,
			const void *b, uint64_t count)
{
	(void)arg, (void)type, (void)dst, (void)a, (void)b, (void)count;
}

static void test_operations(struct weft_ctx *ctx, struct weft_comm *comm)
{
	struct weft_opts call = WEFT_OPTS_INIT;
	struct weft_op_opts opts = WEFT_OP_OPTS_INIT, small = {.size = 4};
	uint32_t a[2] = {1, 2}, b[2];
	enum weft_op op = WEFT_SUM;
	int taken = 0;

	refused(weft_op_create(NULL, &opts, &op), WEFT_ERR_ARG, "ctx is NULL",
		"an operation of no context");
	refused(weft_op_create(ctx, &small, &op), WEFT_ERR_ARG, "weft_op_opts.size",
		"a small struct of options");
	refused(weft_op_create(ctx, &opts, &op), WEFT_ERR_ARG, "apply", "no function");
	opts.apply = count_apply;
	opts.flags = 6;
	refused(weft_op_create(ctx, &opts, &op), WEFT_ERR_UNSUPPORTED, "flags",
		"unknown flags of an operation");
	refused(weft_allreduce(comm, a, b, 2, WEFT_UINT32, WEFT_OP_USER, NULL),
		WEFT_ERR_ARG, "no such operation", "an operation that nobody created");
	opts.flags = 0;
	while (taken < 100 && weft_op_create(ctx, &opts, &op) == WEFT_SUCCESS)
		taken++;
	tap_is_int(taken, 24, "24 operations");
	refused(weft_op_create(ctx, &opts, &op), WEFT_ERR_UNSUPPORTED, "destroy one",
		"one too many");
	tap_is_str(weft_op_name(op), "user", "they have a name");
	refused(weft_op_destroy(ctx, WEFT_SUM), WEFT_ERR_ARG, "no operation",
		"one of the library's is not destroyed");
	tap_ok(weft_op_destroy(ctx, op) == WEFT_SUCCESS, "one of the caller's is");
	refused(weft_op_destroy(ctx, op), WEFT_ERR_ARG, "no operation", "only once");
	refused(weft_allreduce(comm, a, b, 2, WEFT_UINT32, op, NULL), WEFT_ERR_ARG,
		"no such operation", "and is not used then");
	tap_ok(weft_op_create(ctx, &opts, &op) == WEFT_SUCCESS, "its place is free");
	opts.flags = WEFT_OP_ORDERED;
	tap_ok(weft_op_destroy(ctx, op) == WEFT_SUCCESS &&
		       weft_op_create(ctx, &opts, &op) == WEFT_SUCCESS,
	       "for one that does not commute");
	call.algorithm = "ring";
	refused(weft_reduce_scatter(comm, a, b, 2, WEFT_UINT32, op, &call),
		WEFT_ERR_UNSUPPORTED, "order of ranks",
		"which a ring does not keep the order for");
}

static void test_messages(struct weft_comm *comm)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_req *req;
	char a[4];

	refused(weft_send(NULL, a, 4, WEFT_INT8, 0, NULL), WEFT_ERR_ARG, "comm is NULL",
		"a message on no communicator");
	refused(weft_send_start(comm, a, 4, WEFT_INT8, 0, NULL, NULL), WEFT_ERR_ARG,
		"req is NULL", "one without a request");
	refused(weft_send(comm, a, 4, WEFT_INT8, 1, NULL), WEFT_ERR_ARG, "peer is 1",
		"one to nobody");
	refused(weft_recv(comm, a, 4, WEFT_INT8, -1, NULL), WEFT_ERR_ARG, "peer is -1",
		"one from nobody");
	refused(weft_recv_start(comm, a, 4, WEFT_INT8, 0, NULL, &req), WEFT_ERR_ARG,
		"itself", "one from itself");
	refused(weft_send(comm, NULL, 4, WEFT_INT8, 0, NULL), WEFT_ERR_ARG, "buf is NULL",
		"one of no memory");
	refused(weft_send(comm, a, 4, (enum weft_type)50, 0, NULL), WEFT_ERR_ARG,
		"buf.type", "one of no type");
	opts.flags = 1;
	refused(weft_send(comm, a, 4, WEFT_INT8, 0, &opts), WEFT_ERR_UNSUPPORTED, "flags",
		"one with unknown flags");
	opts = (struct weft_opts)WEFT_OPTS_INIT;
	opts.algorithm = "ring";
	refused(weft_send(comm, a, 4, WEFT_INT8, 0, &opts), WEFT_ERR_ARG, "ring",
		"one by an algorithm");
	refused(weft_group_end(comm), WEFT_ERR_ARG, "no group", "the end of no group");
	refused(weft_group_begin(NULL), WEFT_ERR_ARG, "comm is NULL",
		"a group of no communicator");
	tap_ok(weft_group_begin(comm) == WEFT_SUCCESS, "a group");
	refused(weft_group_begin(comm), WEFT_ERR_ARG, "already", "in a group");
	tap_ok(weft_group_end(comm) == WEFT_SUCCESS, "of nothing");
}

static void test_splits(struct weft_comm *comm)
{
	struct weft_comm_opts opts = WEFT_COMM_OPTS_INIT;
	struct weft_comm *other;

	refused(weft_comm_split(NULL, 0, 0, NULL, &other), WEFT_ERR_ARG, "comm is NULL",
		"a split of nothing");
	refused(weft_comm_split(comm, 0, 0, NULL, NULL), WEFT_ERR_ARG, "out is NULL",
		"one into nothing");
	refused(weft_comm_split(comm, -2, 0, NULL, &other), WEFT_ERR_ARG, "color is -2",
		"one of a color that is none");
	opts.flags = 4;
	refused(weft_comm_split(comm, 0, 0, &opts, &other), WEFT_ERR_UNSUPPORTED, "flags",
		"one with unknown flags");
	refused(weft_comm_dup(comm, &opts, &other), WEFT_ERR_UNSUPPORTED, "flags",
		"a duplicate with unknown flags");
	refused(weft_comm_dup(NULL, NULL, &other), WEFT_ERR_ARG, "comm is NULL",
		"a duplicate of nothing");
	tap_ok(weft_comm_split(comm, WEFT_SPLIT_NONE, 0, NULL, &other) == WEFT_SUCCESS &&
		       !other,
	       "nobody joins");
	tap_ok(weft_comm_dup(comm, NULL, &other) == WEFT_SUCCESS &&
		       weft_comm_size(other) == 1 &&
		       weft_comm_destroy(other) == WEFT_SUCCESS,
	       "a duplicate of one rank");
}

/* A request is gone once its end was told; a caller that comes again breaks nothing. */
static void test_over(struct weft_comm *comm)
{
	struct weft_req *req;
	int done = 0;

	if (weft_barrier_start(comm, NULL, &req) != WEFT_SUCCESS)
		tap_bail("%s", weft_error_detail());
	tap_ok(weft_req_wait(req, 0) == WEFT_SUCCESS, "a request that is waited for");
	refused(weft_req_wait(req, 0), WEFT_ERR_ARG, "is over", "and once more");
	refused(weft_req_test(req, &done), WEFT_ERR_ARG, "is over", "or tested");
	for (int i = 0; i < 3; i++)
		tap_ok(weft_barrier(comm, NULL) == WEFT_SUCCESS, "the next call");
}

static int absent_body(struct ranks *r)
{
	struct weft_ctx *ctx;
	int absent;

	/* The copy of libfabric that is asked for the names cannot load a module that
	 * needs a sanitizer's run-time library. */
	if (TAP_SANITIZED)
		unsetenv("FI_PROVIDER_PATH");
	setenv("FI_PROVIDER", "nonsense", 1);
	absent = ranks_open(r, NULL, 1000000, &ctx);
	ranks_say(r, "(%s)", weft_error_detail());
	/* libfabric shows none of them under this name; the sentence has them. */
	return absent == RANKS_ABSENT && strstr(weft_error_detail(), "nonsense") &&
			       strstr(weft_error_detail(), "those there are: ") &&
			       strstr(weft_error_detail(), r->arg)
		       ? RANKS_GOOD
		       : RANKS_BAD;
}

/* In a process of its own: libfabric reads the variable once. */
static void test_absent(char *there)
{
	int end[RANKS_MAX];

	tap_ok(ranks_run(1, 30, absent_body, there, end),
	       "an unknown FI_PROVIDER: the sentence has those there are (%s)", there);
}

int main(void)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	char names[1][32];

	/* Device memory is refused where there is none. */
	setenv("WEFT_GPU_LIB", "none", 1);
	ranks_providers("tcp", names, 1);
	test_absent(TAP_SANITIZED ? "tcp" : names[0]);
	unsetenv("FI_PROVIDER");
	opts.provider = names[0];
	if (weft_ctx_open(&opts, &ctx) != WEFT_SUCCESS ||
	    weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		tap_bail("%s", weft_error_detail());
	test_buffers(comm);
	test_dynamic(comm);
	test_dynamic_more(comm);
	test_values(comm);
	test_call(comm);
	test_counts(comm);
	test_opts(comm);
	test_objects(ctx, comm);
	test_again(comm);
	test_over(comm);
	test_operations(ctx, comm);
	test_messages(comm);
	test_splits(comm);
	tap_ok(weft_comm_destroy(comm) == WEFT_SUCCESS &&
		       weft_ctx_close(ctx) == WEFT_SUCCESS,
	       "everything closes after all that");
	return tap_done();
}
