/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases of the reference whose buffers lie in device memory. */
#ifndef WEFT_TESTS_DEVICE_CASE_H
#define WEFT_TESTS_DEVICE_CASE_H

#include "coll/tests/run_case.h"
#include "gpu/gpu.h"

/* The devices of a rank. */
struct device_case_gpu {
	struct gpu *gpu;
	struct gpu_queue *queue[2]; /* of the first two devices */
};

/* Opens the backend that WEFT_GPU_LIB names, or else the guarded one. RANKS_ABSENT where
 * it finds no device. */
int device_gpu_open(struct ranks *r, struct device_case_gpu *g);
void device_gpu_close(struct device_case_gpu *g);
/* The guarded backend of the build, for WEFT_GPU_LIB. */
const char *device_gpu_guarded(void);

/* Which buffers are in device memory. */
enum device_where { DEVICE_SRC = 1, DEVICE_DST = 2, DEVICE_BOTH = 3 };

struct device_bufs {
	struct case_bufs host; /* as they were, and as they come back */
	struct case_bufs used; /* what the call is given */
	void *memory[2];       /* of devices, or NULL */
	int device[2];
};

/* In place both are on one device; kinds of the call are AUTO where `found`. */
bool device_bufs_open(struct device_case_gpu *g, struct device_bufs *b,
		      const struct ref_case *c, const struct ranks *r,
		      enum device_where where, int src_device, int dst_device);
void device_bufs_close(struct device_case_gpu *g, struct device_bufs *b);
bool device_bufs_refill(struct device_case_gpu *g, struct device_bufs *b,
			const struct ref_case *c, const struct ranks *r);
/* Says in a general call where its buffers are; found: by AUTO. */
void device_bufs_say(const struct device_bufs *b, bool found, struct weft_call *call);
/* Brings the results back and checks them. */
int device_check(struct device_case_gpu *g, struct ranks *r, const struct ref_case *c,
		 struct device_bufs *b);

#endif
