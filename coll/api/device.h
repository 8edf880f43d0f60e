/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call says of devices: the kinds of its buffers, each from itself or, where it
 * says host memory, from the options; and the stream that it belongs to.
 */
#ifndef WEFT_API_DEVICE_H
#define WEFT_API_DEVICE_H

#include "coll/comm/comm.h"

/* Where the buffers are: NULL for one that the call does not look at here. one: they are
 * the same, and either says of what kind. Sets on, src, dst and the lengths. ARG,
 * UNSUPPORTED, NOMEM, DEVICE. */
enum weft_result device_find(const struct weft_comm *comm, const struct weft_buf *src,
			     const struct weft_buf *dst, bool one,
			     const struct weft_opts *opts, struct exec_device *device);

/* The stream of a call; given by the options, or none. */
struct device_stream {
	bool given;
	int32_t device;
	void *stream;
};
struct device_stream device_stream(const struct weft_opts *opts,
				   const struct exec_device *device);

/* What holds a stream has to end while nobody calls: the context gets a progress thread
 * where it has none. */
LOCK_HELD(lock_context) enum weft_result device_thread(struct weft_ctx *ctx);

/* Puts the call that starts next into its stream: run->passage. If the call does not
 * start, the passage has to be closed. */
LOCK_HELD(lock_context)
enum weft_result device_pass(struct weft_ctx *ctx, const struct device_stream *stream,
			     struct exec_call *run);
/* What device_pass() gave a call that did not start. */
LOCK_HELD(lock_context) void device_pass_back(struct exec_call *run);

#endif
