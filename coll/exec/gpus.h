/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GPUs of a context: opened when a call first names device memory or a stream, so
 * that nobody else pays for them. Two queues of each device that is used: one brings what
 * lies there to the host, one takes results back, so that both directions of the bus are
 * busy at once. Pinned memory for copies is kept for the next call.
 */
#ifndef WEFT_EXEC_GPUS_H
#define WEFT_EXEC_GPUS_H

#include "gpu/gpu.h"
#include "util/list.h"
#include "weft/weft.h"

struct exec;

struct gpus_queues {
	struct gpu_queue *in;  /* device to host */
	struct gpu_queue *out; /* host to device */
};

/* Host memory that devices and peers reach. */
struct pinned {
	struct list link; /* gpus.idle */
	char *memory;
	size_t size;
	bool block; /* memory of ours that was pinned; else the driver's */
};

struct gpus {
	struct gpu *gpu;
	struct gpus_queues *queues; /* by device, NULL until used */
	struct list idle;	    /* struct pinned */
	struct list gates;	    /* struct stream_gate, passage.h */
};

/* Opens them; UNSUPPORTED with the reason where there is none: `what` is what asked
 * ("src.kind is WEFT_MEM_CUDA"). */
enum weft_result gpus_get(struct exec *x, const char *what, struct gpus **gpus);
/* Where nothing is open there is nothing to close. Before the registrations go. */
void gpus_close(struct exec *x);

/* The queues of a device, opened at their first use. */
enum weft_result gpus_queues(struct exec *x, int32_t device, struct gpus_queues *queues);

/* At least so many bytes. NOMEM, BUSY (a graph is being captured). */
enum weft_result pinned_get(struct exec *x, size_t size, struct pinned **pinned);
void pinned_put(struct exec *x, struct pinned *pinned);

#endif
