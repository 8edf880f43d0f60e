/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CUDA backend: struct cuda, what its files share. One file for each group of calls
 * of gpu.h; cuda.c has the table of them.
 *
 * Contexts are the devices' primary ones, made when a device is first needed and released
 * when the backend is closed. A call enters the context (cuda_enter()) and leaves it; in
 * between, the thread is also in relaxed capture mode, so that nothing done here breaks a
 * graph that is being captured anywhere in the process.
 *
 * Locks: cuda->lock covers the two lists and kernels_why, a device's lock its preparation
 * and its table of kernels. Who needs both takes cuda->lock last.
 */
#ifndef WEFT_GPU_CUDA_CUDA_H
#define WEFT_GPU_CUDA_CUDA_H

#include <pthread.h>

#include "gpu/cuda/driver.h"
#include "gpu/gpu.h"

#define CUDA_KERNELS 1024 /* names that one device's table holds; a power of two */

struct cuda_kernel {
	char *name;
	CUfunction function;
};

struct cuda_device {
	CUdevice dev;
	pthread_mutex_t lock;
	_Atomic bool ready;
	CUcontext ctx;	  /* once ready */
	CUstream scratch; /* own; for what is asked of the device itself */
	bool memops;	  /* the driver's waits and writes work */
	CUmodule module;  /* NULL: no kernels */
	uint64_t peers;	  /* bit per device whose memory it was let to; under lock */
	struct cuda_kernel
		*kernels; /* CUDA_KERNELS places, open addressing; under lock */
	uint32_t kernel_count;
};

/* Memory of cuda_alloc(), so that cuda_free() knows its length. */
struct cuda_piece {
	struct cuda_piece *next;
	CUdeviceptr addr;
	size_t len; /* of the mapping; 0: of cuMemAlloc */
	CUmemGenericAllocationHandle handle;
};

struct cuda_import;

struct cuda {
	struct gpu gpu; /* first */
	struct driver drv;
	struct cuda_device *dev;
	uint64_t start; /* when this process started */
	pthread_mutex_t lock;
	struct cuda_piece *pieces;
	struct cuda_import *imports;
};

static inline struct cuda *cuda_of(struct gpu *gpu)
{
	return (struct cuda *)gpu;
}

/* The driver's spelling of an address. */
static inline CUdeviceptr cuda_ptr(const void *addr)
{
	return (CUdeviceptr)(uintptr_t)addr;
}

/* What to put back when a call ends. */
struct cuda_scope {
	CUcontext before;
	CUcontext now;
	int mode;
};

/* Makes a device's context current, preparing the device where nobody has. 0, or what
 * went wrong (nothing is to be left then). */
int cuda_enter(struct cuda *cuda, int device, struct cuda_scope *scope);
void cuda_leave(struct cuda *cuda, const struct cuda_scope *scope);

/* cuda_prepare.c */
int cuda_device_use(struct gpu *gpu, int device);
bool cuda_device_active(struct gpu *gpu, int device);
void cuda_device_fini(struct cuda *cuda, int device);

/* Keeps "WHAT: CUDA_ERROR_X (n), the driver's words" as this thread's error; returns the
 * negative errno for rc. */
__attribute__((format(printf, 3, 4))) int cuda_fail(struct cuda *cuda, CUresult rc,
						    const char *what, ...);
/* The same of an error that is not the driver's: keeps the text, returns ret. */
__attribute__((format(printf, 2, 3))) int cuda_refuse(int ret, const char *text, ...);
const char *cuda_error(struct gpu *gpu);

/* cuda_query.c */
int cuda_query(struct gpu *gpu, const void *addr, uint64_t len, struct gpu_range *range);
int cuda_dmabuf_export(struct gpu *gpu, const void *addr, uint64_t len,
		       struct gpu_dmabuf *buf);
int cuda_sync_memops(struct gpu *gpu, const void *addr);
int cuda_peer(struct gpu *gpu, int device, int other);
int cuda_flush(struct gpu *gpu, int device);
int cuda_device_error(struct gpu *gpu, int device);

/* cuda_ipc.c */
int cuda_ipc_export(struct gpu *gpu, const void *addr, struct gpu_ipc *ipc, int *fd);
int cuda_ipc_import(struct gpu *gpu, int device, const struct gpu_ipc *ipc, int fd,
		    void **base);
int cuda_ipc_release(struct gpu *gpu, void *base);
/* When the process of /proc/self started; 0 where nothing says so. */
uint64_t cuda_ipc_start(void);

/* cuda_mem.c */
int cuda_alloc(struct gpu *gpu, int device, uint64_t len, void **addr);
int cuda_free(struct gpu *gpu, void *addr);
int cuda_pinned_alloc(struct gpu *gpu, uint64_t len, void **addr);
int cuda_pinned_free(struct gpu *gpu, void *addr);
int cuda_pinned_register(struct gpu *gpu, void *addr, uint64_t len);
int cuda_pinned_unregister(struct gpu *gpu, void *addr);
/* Lets `device`, and with others the devices that reach it, use a mapping. */
CUresult cuda_map_access(struct cuda *cuda, int device, CUdeviceptr addr, size_t len,
			 bool others);

/* cuda_queue.c */
int cuda_queue_open(struct gpu *gpu, int device, struct gpu_queue **queue);
int cuda_queue_close(struct gpu_queue *queue);
int cuda_queue_sync(struct gpu_queue *queue, uint64_t timeout_ns);
int cuda_queue_mark(struct gpu_queue *queue);
int cuda_copy(struct gpu_queue *queue, void *dst, const void *src, uint64_t len);
int cuda_copy2d(struct gpu_queue *queue, const struct gpu_copy2d *copy);
int cuda_fill(struct gpu_queue *queue, void *dst, uint8_t byte, uint64_t len);
int cuda_queue_reduce(struct gpu_queue *queue, const struct gpu_reduce *reduce);
int cuda_queue_launch(struct gpu_queue *queue, const struct gpu_launch *launch);
/* Asks until the stream is idle: 0, -ETIMEDOUT, or what failed. The context is current.
 */
int cuda_drain(struct cuda *cuda, CUstream stream, uint64_t timeout_ns);

/* cuda_stream.c */
int cuda_stream_open(struct gpu *gpu, int device, void **stream);
int cuda_stream_close(struct gpu *gpu, int device, void *stream);
int cuda_stream_words(struct gpu *gpu, int device, void *stream,
		      const struct gpu_word_op *ops, uint32_t count);
int cuda_stream_after(struct gpu *gpu, int device, void *stream, void *earlier);
int cuda_stream_call(struct gpu *gpu, int device, void *stream, void (*fn)(void *arg),
		     void *arg);
int cuda_stream_capture(struct gpu *gpu, int device, void *stream,
			enum gpu_capture *state, uint64_t *id);
int cuda_stream_keep(struct gpu *gpu, int device, void *stream, void (*fn)(void *arg),
		     void *arg);
int cuda_stream_copy(struct gpu *gpu, int device, void *stream, void *dst,
		     const void *src, uint64_t len);
int cuda_stream_reduce(struct gpu *gpu, int device, void *stream,
		       const struct gpu_reduce *reduce);
int cuda_stream_launch(struct gpu *gpu, int device, void *stream,
		       const struct gpu_launch *launch);
/* Memory waits and writes by the driver, whatever the device is set to. The context is
 * current. */
CUresult cuda_word_ops(struct cuda *cuda, CUstream stream, const struct gpu_word_op *ops,
		       uint32_t count);

/* The same by the kernel weft_words: 0, or what cuda_launch() returns. */
int cuda_word_kernel(struct cuda *cuda, int device, CUstream stream,
		     const struct gpu_word_op *ops, uint32_t count);

/* cuda_hold.c */
/* How streams of the device are held: what works, and of two the faster, or the one that
 * WEFT_GPU_HOLD names. The device is being prepared and its context is current. */
enum gpu_hold cuda_hold_choose(struct cuda *cuda, int device);

/* cuda_kernel.c */
/* Loads the device's kernels, as its context is current and its lock held. Sets
 * gpu->kernels_why where there are none; that is no error. */
void cuda_kernels_load(struct cuda *cuda, int device);
void cuda_kernels_unload(struct cuda *cuda, int device);
/* Launches one on a stream. The context is current. -ENOSYS: there is none of that name,
 * or none at all. */
int cuda_launch(struct cuda *cuda, int device, CUstream stream,
		const struct gpu_launch *launch);
/* The same while the device is being prepared, under its lock. */
int cuda_launch_locked(struct cuda *cuda, int device, CUstream stream,
		       const struct gpu_launch *launch);

#endif
