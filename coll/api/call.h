/* SPDX-License-Identifier: BSD-2-Clause */
/* From a public call to a checked one: everything that can be wrong about arguments. */
#ifndef WEFT_API_CALL_H
#define WEFT_API_CALL_H

#include "coll/algo/algo.h"
#include "coll/api/device.h"
#include "coll/comm/comm.h"

/* What a (v) form has besides. Tables are the communicator's, until its next call. */
struct checked_vector {
	const uint64_t *send, *recv; /* NULL where this rank has none */
	uint64_t own[2]; /* the one block of a buffer that has one: 0, its end */
	uint64_t total;	 /* elements of all ranks, where all know it; else 0 */
	uint64_t src_len, dst_len; /* elements of the buffers */
};

/* A call that is in order, and the algorithm for it. */
struct checked_call {
	enum weft_coll coll;
	enum weft_type type;
	enum weft_op op;
	const struct comm_op *user; /* what op is, where it is the caller's own */
	void *src, *dst;
	struct plan_call plan; /* what the algorithm is asked for */
	const struct algo *algo;
	int64_t timeout_us;
	uint64_t count;		   /* what ranks must agree about */
	struct exec_device device; /* memory of GPUs among the buffers */
	struct device_stream stream;
	struct checked_vector vector; /* of a (v) form */
	struct dynamic_spec dynamic;  /* of a dynamic one */
};

/* dynamic.c: what a dynamic all-to-allv has besides; ARG, UNSUPPORTED. */
enum weft_result dynamic_check(const struct weft_comm *comm, const struct weft_call *call,
			       struct dynamic_spec *out);

/* ARG, UNSUPPORTED. opts may be NULL. */
enum weft_result call_check(struct weft_comm *comm, const struct weft_call *call,
			    const struct weft_opts *opts, struct checked_call *out);

/* Of a call that is no collective: the options; a buffer, by the name that it has. */
enum weft_result call_check_opts(const struct weft_opts *opts);
enum weft_result call_check_buf(const struct weft_buf *buf, const char *name);

/* What starting one takes, plain or persistent: why nothing starts on the communicator
 * any more (COMM); the call checked, with a request that has its plan; how the executor
 * is told of it, but for its number and tables; these, of a (v) form; memory for a
 * dynamic one. */
LOCK_HELD(lock_context)
enum weft_result call_failed_earlier(const struct weft_comm *comm);
LOCK_HELD(lock_context)
enum weft_result call_prepare(struct weft_comm *comm, const struct weft_call *call,
			      const struct weft_opts *opts, bool roomy,
			      struct checked_call *checked, struct weft_req **req);
struct exec_call call_describe(const struct weft_comm *comm,
			       const struct checked_call *call,
			       const struct comm_plan *plan);
enum weft_result call_bind(const struct plan *plan, const struct checked_vector *v,
			   const uint64_t *disp[COMM_PARTS]);
LOCK_HELD(lock_context)
enum weft_result call_take_dynamic(struct weft_comm *comm,
				   const struct checked_call *call, bool may_pin,
				   struct weft_req *req);

/* Takes the outcome of a request that is done; frees it, unless it is persistent. */
LOCK_HELD(lock_context) enum weft_result call_finish(struct weft_req *req);

/* Of a call that is started and left: whether the progress thread does all of it; and
 * what is to be done when it has been started. */
void call_hand(struct weft_req *req, struct exec_call *run);
LOCK_HELD(lock_context) void call_go_on(struct weft_req *req);

/* The end of a blocking call: waits, and leaves the request. */
LOCK_HELD(lock_context) enum weft_result call_end(struct weft_req *req);

/* The end of one that is in a stream: the communicator keeps it until it is done. */
LOCK_HELD(lock_context) void call_leave_streamed(struct weft_req *req);

/* Starts and waits; what a blocking call does. */
enum weft_result call_run(struct weft_comm *comm, const struct weft_call *call,
			  const struct weft_opts *opts);

#endif
