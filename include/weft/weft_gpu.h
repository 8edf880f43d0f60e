/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of <weft/weft.h>: what programs with data in the memory of GPUs call besides the
 * collectives, which take such memory as it is. The rules at the top of that header hold
 * here. */
#ifndef WEFT_WEFT_GPU_H
#define WEFT_WEFT_GPU_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Prepares a GPU (numbered as CUDA does in this process) for calls of the context, and
 * pins memory of the host for their copies until at least `buffers` pieces of `bytes`
 * each are free: a call of device memory takes one for its source and one for its
 * destination, as long as each is, or one for both in place. bytes or buffers 0: only
 * prepares. Not collective; may wait until the GPU is idle.
 *
 * Making a communicator prepares the GPUs that the process uses by then, and pins 20 MiB.
 * For anything else it is to be called before a stream is made to wait for what the host
 * does only later: calls in streams pin nothing, since the driver may wait for the
 * stream, and copy by way of ordinary memory where no pinned memory is free, which is
 * slower. Calls in no stream, persistent ones when they are made, and captured ones pin
 * what they need while no stream is held and no graph with calls of Weft exists. Errors:
 * ARG, UNSUPPORTED (no GPU), BUSY (streams are held, or the GPU is not idle for 30 s),
 * NOMEM (more than WEFT_GPU_PINNED allows, or the driver pins), DEVICE.
 */
WEFT_API enum weft_result weft_gpu_prepare(struct weft_ctx *ctx, int32_t device,
					   uint64_t bytes, uint32_t buffers);

#ifdef __cplusplus
}
#endif

#endif
