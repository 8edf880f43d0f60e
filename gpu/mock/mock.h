/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for libcuda.so.1, for tests on machines without a GPU. Device memory is host
 * memory (memfd), streams are threads, kernels are C functions. Times taken on it mean
 * nothing. What is different from a device: README.md.
 *
 * Knobs make it fail, or lack something. They are set by the environment (WEFT_MOCK,
 * "name=number,name=number", read by cuInit) or by a test in the same process, which
 * looks up weft_mock_set() in the library.
 */
#ifndef WEFT_GPU_MOCK_MOCK_H
#define WEFT_GPU_MOCK_MOCK_H

#include <stdint.h>

enum mock_knob {
	MOCK_DEVICES, /* 2 */
	MOCK_DRIVER,  /* 12080: version; entry points that are newer are missing */
	MOCK_CC,      /* 90: compute capability */
	MOCK_P2P,     /* 1: devices reach each other */
	MOCK_MEMOPS,  /* 1: memory waits; 0: refused when tried; -1: not even announced */
	MOCK_VMM,     /* 1: mapped pieces */
	MOCK_DMABUF,  /* 1 */
	MOCK_PCIE,    /* 1: DMA buffers with the mapping of the bus */
	MOCK_IPC,     /* 1: the older handles */
	MOCK_SYNC_MEMOPS, /* 1 */
	MOCK_FAIL_ALLOC,  /* 0: so many allocations fail, of devices and of pinned memory
			   */
	MOCK_FAIL_PIN,	  /* 0: so many cuMemHostRegister fail */
	MOCK_PIN_MS,	  /* 0: each takes so long */
	MOCK_FAIL_EXPORT, /* 0: so many exports of DMA buffers fail */
	MOCK_EXPORT_MS,	  /* 0: each takes so long */
	MOCK_STALL_MS,	  /* 0: each piece of work of a stream takes so long */
	MOCK_ERROR,	  /* 0: every call and all work fails with this result (719) */
	MOCK_NEW_IDS,	  /* set: every buffer gets a new id */
	MOCK_HOST,	  /* 1: the host can touch devices' memory that is made from now
			   * on; 0: it can't, as on a device, and nor can kernels */
	MOCK_IDLE_MS,	  /* 30000: calls that wait until a device is idle end the process
			   * with a message when it isn't for so long; 0: they don't wait
			   */
	MOCK_KNOBS
};

/* 0, or -1: no such knob. */
int weft_mock_set(const char *knob, long value);

/* How a kernel was launched. */
struct mock_grid {
	uint32_t grid[3], block[3];
	uint32_t shared;
};

/*
 * A kernel: an exported function of the shared object that cuModuleLoad() is given,
 * called once for a whole launch, on the thread of the stream. Beside it lies the
 * exported array `NAME_args`, uint32_t: the bytes of each argument, ended by a 0.
 */
typedef void mock_kernel_fn(const struct mock_grid *grid, void **args);

#endif
