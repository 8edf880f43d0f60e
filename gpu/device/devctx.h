/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a context of the device-side calls: how much of which kind, and what lies
 * where in it. Pure arithmetic on addresses: allocating, and copying the result to where
 * kernels read it, is the caller's.
 */
#ifndef WEFT_GPU_DEVICE_DEVCTX_H
#define WEFT_GPU_DEVICE_DEVCTX_H

#include "gpu/device/proxy.h"
#include "weft/weft_device.cuh"

struct devctx_shape {
	uint32_t rank, size; /* 1 to WEFT_DEV_MAX_PEERS ranks */
	uint32_t signals;    /* that kernels name: up to WEFT_DEV_MAX_SIGNALS - size */
	uint32_t counters;   /* up to WEFT_DEV_MAX_COUNTERS */
	uint32_t windows;    /* ids are below; up to WEFT_DEV_MAX_WINDOWS */
	uint64_t depth;	     /* of the ring: a power of two, 2 to 2^16; 0: all peers are
			      * in reach, no ring */
};

/* What the CPU writes of a context, beside its ring. */
struct devctx_words {
	uint64_t *state;      /* enum weft_dev_status; not OK: waits end */
	uint64_t *signal_cpu; /* [signals + size]: adding to one is the CPU's signal */
	uint64_t *counter_cpu;
};

/* NULL, or what is wrong with it: a static sentence. */
const char *devctx_refuse(const struct devctx_shape *shape);

/* Bytes of pinned memory and of memory of the kernels' device, both to be zero and
 * aligned to 64. */
size_t devctx_pinned_len(const struct devctx_shape *shape);
size_t devctx_local_len(const struct devctx_shape *shape);

/*
 * Lays a context out. local is an address that kernels use, and is not written to.
 * ready: this context's byte in the proxy's map (pinned). ctx->peer_signal is the address
 * of `size` pointers in local: the caller fills them (a peer's ctx->signal as this device
 * reaches it, or NULL; the rank's own always) and uploads them with the context. ring is
 * for proxy_open(), untouched where there is none.
 */
void devctx_init(const struct devctx_shape *shape, void *pinned, void *local,
		 uint8_t *ready, struct weft_dev_ctx *ctx, struct proxy_ring *ring,
		 struct devctx_words *words);

#endif
