/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the rest of Weft knows of GPUs: whose memory an address is, how others reach that
 * memory, copies and reductions, and the order against streams of the application. Nobody
 * outside gpu/ includes anything else of it, and no type of a vendor appears here:
 * streams are void *, addresses are those that the application uses (one address space
 * for host and devices).
 *
 * A backend fills a table of functions (struct gpu_ops). gpu_open() looks for the library
 * that has one, at run time, and takes the null backend where there is none: then every
 * memory is host memory, and whatever needs a device is refused with -ENODEV and the
 * reason (gpu_why()).
 *
 * Errors: 0 or a negative errno, from every function that returns int. Of a failed call
 * gpu_error() has a sentence: what was asked, what was found, what to do. It belongs to
 * the thread that called, until that thread's next call of this table. Outputs are
 * written only on success. Where nothing else is said: -ENODEV   no such device, or no
 * GPU at all -EINVAL   an argument is wrong, or an address is of another kind than the
 * call wants -ENOMEM   memory, of host or device, is used up -ENOSYS   this driver or
 * this device does not have that -EBUSY    not while the stream is being captured -EIO
 * the driver failed; after gpu_device_error() the device stays failed
 *
 * Threads: every function may be called from any thread, at the same time, except that
 * one queue belongs to one thread at a time. The device's context is made current inside,
 * and what was current before is current again afterwards. A thread of Weft's own that
 * calls while the application captures graphs calls gpu_thread_init() once.
 *
 * Units: lengths are bytes and counts elements; times are nanoseconds.
 */
#ifndef WEFT_GPU_GPU_H
#define WEFT_GPU_GPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_ABI	     2	 /* of struct gpu_ops; a library of another one is not taken */
#define GPU_WHY_LEN  512 /* a reason with its zero byte */
#define GPU_NAME_LEN 128
#define GPU_UUID_LEN 16
#define GPU_DEVICES  64 /* that are looked at */
#define GPU_SOURCES  8	/* of one reduction */
#define GPU_WORD_OPS 8	/* of one call of gpu_stream_words() */
#define GPU_IPC_LEN  64 /* a handle of the driver */

/* ---- backends -----------------------------------------------------------------------
 */

/* How a stream can be made to wait for a word that the host writes. */
enum gpu_hold {
	GPU_HOLD_NONE,	 /* it cannot: collectives on streams are refused */
	GPU_HOLD_MEMOPS, /* the driver's memory waits: no kernel */
	GPU_HOLD_KERNEL, /* a kernel of one block that polls */
};

/* What makes bytes that a NIC wrote into device memory visible to the device. */
enum gpu_flush {
	GPU_FLUSH_NONE,	  /* nothing needed: writes of others arrive in order */
	GPU_FLUSH_DRIVER, /* gpu_flush() */
	GPU_FLUSH_READ,	  /* only a read by that NIC of what it wrote */
};

/* What one device has. Filled when the backend is opened; gpu_device_use() tries out what
 * can only be found by trying. */
struct gpu_device {
	char name[GPU_NAME_LEN];
	char pci[32];		    /* domain:bus:device.function, lower case */
	uint8_t uuid[GPU_UUID_LEN]; /* the same in every process */
	int major, minor;	    /* compute capability */
	int blocks;		    /* multiprocessors */
	uint64_t memory;	    /* bytes */
	enum gpu_hold hold;
	char hold_why[GPU_NAME_LEN]; /* NONE: why; "" where streams can be held */
	enum gpu_flush flush;
	bool dmabuf; /* gpu_dmabuf_export() of its memory */
	bool rdma;   /* a NIC may reach its memory at all */
	bool vmm;    /* memory of gpu_alloc() is mapped pieces, exported by descriptor */
	bool ipc;    /* the older handles, which need no descriptor */
	bool copy_engine; /* copies run beside kernels */
	bool kernels;	  /* gpu_launch(), gpu_reduce() */
};

struct gpu_ops;

/* An opened backend. Belongs to the caller of gpu_open(); every backend has it as the
 * first member of its own struct. */
struct gpu {
	const struct gpu_ops *ops;
	const char *name;      /* "cuda", "null" */
	char why[GPU_WHY_LEN]; /* null: why there is no other; else the driver's version
				*/
	char kernels_why[GPU_WHY_LEN]; /* why devices have no kernels; "" where they have
					*/
	int devices;
	struct gpu_device *device; /* devices of them */
};

struct gpu_opts {
	/* File of the library, instead of looking for it; NULL: WEFT_GPU_LIB, else
	 * libweft-gpu.so where the caller's library is, else where the linker looks.
	 * "none": the null backend. */
	const char *library;
};

/*
 * Opens the backend that this machine has: the one of the library where that is found,
 * fits and finds a device; else the null backend, whose `why` says what was missing. Only
 * -ENOMEM fails. opts may be NULL. Environment: WEFT_GPU_LIB names the library, "none"
 * turns GPUs off; a library that was named and is not there is no error either, but its
 * reason is in `why`. Tens to hundreds of milliseconds where there is a driver, so not
 * before somebody wants it; takes no memory of a device. WEFT_GPU_KERNELS names a file of
 * kernels that is taken instead of the built-in ones.
 */
int gpu_open(const struct gpu_opts *opts, struct gpu **gpu);

/* Ends what was opened and frees it. Queues, memory and imports must be gone. The library
 * stays loaded. NULL is allowed. Not after fork(): a child opens its own. */
void gpu_close(struct gpu *gpu);

/* ---- whose memory is this -----------------------------------------------------------
 */

enum gpu_mem {
	GPU_MEM_HOST,	 /* ordinary memory: the driver does not know it */
	GPU_MEM_PINNED,	 /* of the host, and devices reach it at the same address */
	GPU_MEM_DEVICE,	 /* of a device */
	GPU_MEM_MANAGED, /* moves between the two by itself: treated as host memory is */
};

struct gpu_range {
	enum gpu_mem kind;
	int device; /* whose it is, of DEVICE; -1: of none */
	uint64_t base,
		len; /* the piece of memory that has the address: one allocation, or one
		      * mapped piece of a reserved range; HOST: what was asked */
	uint64_t reserved_base, reserved_len; /* the whole range it is mapped in; base and
					       * len where there is no other */
	uint64_t id; /* of this piece: never used again in this process, so that memory
		      * freed and allocated anew at one address differs. 0: none (HOST) */
	bool whole;  /* all of what was asked is in this one piece */
	bool vmm;    /* mapped pieces, not one allocation of the driver */
	bool ipc;    /* the older handles can export it */
	bool fd;     /* can be exported by descriptor */
	bool rdma;   /* a NIC may reach it */
};

/* ---- reach it from elsewhere --------------------------------------------------------
 */

/* Device memory as a DMA buffer of the kernel, for fi_mr_regattr() with FI_MR_DMABUF. */
struct gpu_dmabuf {
	int fd;		 /* the caller's, to be closed */
	uint64_t offset; /* where the asked address lies in it */
	uint64_t base;	 /* the address at offset 0: page-aligned */
	uint64_t len;	 /* of the buffer: whole pages */
	bool pcie; /* its mapping is that of the bus, whatever faster way there is */
};

/* How one process lets another one map a piece. Plain bytes: sent as they are between
 * processes of one host (one build), and looked at by gpu_ipc_import() before use. */
enum gpu_ipc_kind {
	GPU_IPC_HANDLE = 1, /* handle[] is all there is */
	GPU_IPC_FD = 2,	    /* a descriptor goes with it */
};

struct gpu_ipc {
	uint32_t kind; /* enum gpu_ipc_kind */
	uint32_t pid; /* of the exporter, in its own namespace: to tell exporters apart */
	uint64_t start; /* when that process started, so that a pid used again differs */
	uint64_t base;	/* address of the piece, in the exporter */
	uint64_t len;	/* of the piece */
	uint64_t id;	/* of the piece, in the exporter */
	uint8_t uuid[GPU_UUID_LEN]; /* of the device */
	uint8_t handle[GPU_IPC_LEN];
};

/* ---- order against streams ----------------------------------------------------------
 */

enum gpu_word_kind {
	GPU_WORD_WRITE, /* stores the value, after all that the stream did before */
	GPU_WORD_WAIT,	/* until (int64_t)(*word - value) >= 0 */
};

/* One step of a stream on an 8-byte word in pinned or device memory. */
struct gpu_word_op {
	uint32_t kind; /* enum gpu_word_kind */
	uint32_t unused;
	_Atomic uint64_t *word;
	uint64_t value;
};

enum gpu_capture {
	GPU_CAPTURE_NONE,
	GPU_CAPTURE_ACTIVE, /* what is put on it becomes part of a graph */
	GPU_CAPTURE_BROKEN, /* of a graph that can no longer be made */
};

/* ---- work ---------------------------------------------------------------------------
 */

/* Types and operations have the numbers of enum weft_type and enum weft_op, and mean
 * the same (include/weft/weft.h; coll asserts it). fp16, bf16 and fp8 are accumulated in
 * fp32 over all sources and rounded once. */
enum gpu_type {
	GPU_INT8,
	GPU_UINT8,
	GPU_INT16,
	GPU_UINT16,
	GPU_INT32,
	GPU_UINT32,
	GPU_INT64,
	GPU_UINT64,
	GPU_FP16,
	GPU_BF16,
	GPU_FP8_E4M3,
	GPU_FP8_E5M2,
	GPU_FP32,
	GPU_FP64,
	GPU_TYPE_COUNT
};

enum gpu_op {
	GPU_SUM,
	GPU_PROD,
	GPU_MIN,
	GPU_MAX,
	GPU_AVG, /* sum, then divided by `divisor` */
	GPU_BAND,
	GPU_BOR,
	GPU_BXOR,
	GPU_OP_COUNT
};

/* dst[i] = cast(scale * (src[0][i] op src[1][i] ...)), for count elements; dst2 the same.
 * dst may be one of the sources, at the same address; any other overlap is not allowed.
 * All of them are memory that the queue's device reaches, aligned to their element. */
struct gpu_reduce {
	uint32_t sources; /* 1 .. GPU_SOURCES; 1 copies, with cast and scale */
	enum gpu_type type;
	enum gpu_op op;
	enum gpu_type
		out; /* of dst and dst2: `type`, or another one where both are floating */
	const void *src[GPU_SOURCES];
	void *dst;
	void *dst2; /* or NULL */
	uint64_t count;
	uint64_t divisor; /* of GPU_AVG, at least 1 */
	double scale;	  /* 1: none; only of floating types */
	uint32_t blocks;  /* at most so many; 0: as many as full speed takes */
};

/* rows of `width` bytes each, `dst_pitch` and `src_pitch` apart (not less than width). */
struct gpu_copy2d {
	void *dst;
	const void *src;
	uint64_t width, rows;
	uint64_t dst_pitch, src_pitch;
};

struct gpu_launch {
	const char *function;
	uint32_t grid[3], block[3];
	uint32_t shared; /* bytes of dynamic shared memory */
	void **args;	 /* one pointer for each argument */
};

/*
 * A queue of Weft's own: work runs in order, beside the application's streams. Every
 * piece of work has a number, counted from 1; gpu_queue_done() reads how far the queue
 * has come, from a word in pinned memory that the device writes: no call of the driver.
 */
struct gpu_queue {
	struct gpu *gpu;
	int device;
	void *stream;		/* the stream below it, for gpu_stream_after() */
	uint64_t issued;	/* number of the last piece of work */
	_Atomic uint64_t *done; /* pinned: number of the last that is done */
};

/* ---- the table ----------------------------------------------------------------------
 * One row for each call below, where it is described. `struct gpu` comes first.
 */
struct gpu_ops {
	uint32_t abi;  /* GPU_ABI */
	uint32_t size; /* of this struct */
	void (*close)(struct gpu *gpu);
	const char *(*error)(struct gpu *gpu);
	int (*thread_init)(struct gpu *gpu);
	bool (*device_active)(struct gpu *gpu, int device);
	int (*device_use)(struct gpu *gpu, int device);
	int (*device_error)(struct gpu *gpu, int device);

	int (*query)(struct gpu *gpu, const void *addr, uint64_t len,
		     struct gpu_range *range);
	int (*dmabuf_export)(struct gpu *gpu, const void *addr, uint64_t len,
			     struct gpu_dmabuf *buf);
	int (*ipc_export)(struct gpu *gpu, const void *addr, struct gpu_ipc *ipc,
			  int *fd);
	int (*ipc_import)(struct gpu *gpu, int device, const struct gpu_ipc *ipc, int fd,
			  void **base);
	int (*ipc_release)(struct gpu *gpu, void *base);
	int (*peer)(struct gpu *gpu, int device, int other);
	int (*flush)(struct gpu *gpu, int device);
	int (*sync_memops)(struct gpu *gpu, const void *addr);

	int (*alloc)(struct gpu *gpu, int device, uint64_t len, void **addr);
	int (*free)(struct gpu *gpu, void *addr);
	int (*pinned_alloc)(struct gpu *gpu, uint64_t len, void **addr);
	int (*pinned_free)(struct gpu *gpu, void *addr);
	int (*pinned_register)(struct gpu *gpu, void *addr, uint64_t len);
	int (*pinned_unregister)(struct gpu *gpu, void *addr);

	int (*queue_open)(struct gpu *gpu, int device, struct gpu_queue **queue);
	int (*queue_close)(struct gpu_queue *queue);
	int (*queue_sync)(struct gpu_queue *queue, uint64_t timeout_ns);
	int (*queue_mark)(struct gpu_queue *queue);
	int (*copy)(struct gpu_queue *queue, void *dst, const void *src, uint64_t len);
	int (*copy2d)(struct gpu_queue *queue, const struct gpu_copy2d *copy);
	int (*fill)(struct gpu_queue *queue, void *dst, uint8_t byte, uint64_t len);
	int (*reduce)(struct gpu_queue *queue, const struct gpu_reduce *reduce);
	int (*queue_launch)(struct gpu_queue *queue, const struct gpu_launch *launch);

	int (*stream_open)(struct gpu *gpu, int device, void **stream);
	int (*stream_close)(struct gpu *gpu, int device, void *stream);
	int (*stream_words)(struct gpu *gpu, int device, void *stream,
			    const struct gpu_word_op *ops, uint32_t count);
	int (*stream_after)(struct gpu *gpu, int device, void *stream, void *earlier);
	int (*stream_call)(struct gpu *gpu, int device, void *stream,
			   void (*fn)(void *arg), void *arg);
	int (*stream_capture)(struct gpu *gpu, int device, void *stream,
			      enum gpu_capture *state, uint64_t *id);
	int (*stream_keep)(struct gpu *gpu, int device, void *stream,
			   void (*fn)(void *arg), void *arg);
	int (*stream_copy)(struct gpu *gpu, int device, void *stream, void *dst,
			   const void *src, uint64_t len);
	int (*stream_reduce)(struct gpu *gpu, int device, void *stream,
			     const struct gpu_reduce *reduce);
	int (*stream_launch)(struct gpu *gpu, int device, void *stream,
			     const struct gpu_launch *launch);
};

/* What a library of a backend exports, under the name "weft_gpu_backend": opens it, or
 * fills why (GPU_WHY_LEN bytes) and returns a negative errno. */
typedef int gpu_backend_open_fn(uint32_t abi, struct gpu **gpu, char *why);

/* ---- calls --------------------------------------------------------------------------
 */

/* The sentence of this thread's last failed call; "" where there was none. */
static inline const char *gpu_error(struct gpu *gpu)
{
	return gpu->ops->error(gpu);
}

/* For a thread of Weft's own: what it does from now on does not break graphs that other
 * threads capture. Once per thread; cheap. */
static inline int gpu_thread_init(struct gpu *gpu)
{
	return gpu->ops->thread_init(gpu);
}

/* Whether something in this process uses the device already, so that its context is there
 * and preparing it takes only what Weft adds. Never waits. */
static inline bool gpu_device_active(struct gpu *gpu, int device)
{
	return gpu->ops->device_active(gpu, device);
}

/* Prepares a device: its context (hundreds of MiB of its memory), its kernels, loaded now
 * so that no first launch has to wait for the device to be idle, and how streams are
 * held, tried out. Whatever needs this does it by itself; who knows that a device will be
 * used calls it where there is time. device[].hold and .kernels may come down in it, and
 * are final after it. */
static inline int gpu_device_use(struct gpu *gpu, int device)
{
	return gpu->ops->device_use(gpu, device);
}

/* 0, or -EIO where the device has failed for good (a kernel that trapped, memory that
 * cannot be corrected): nothing works on it until the process ends. Asks the driver: not
 * on a hot path. */
static inline int gpu_device_error(struct gpu *gpu, int device)
{
	return gpu->ops->device_error(gpu, device);
}

/* Whose memory [addr, addr + len) is. Memory that the driver does not know is HOST and no
 * error. Costs up to a few microseconds: ask an own table first where that matters. Where
 * more than one piece is touched (range->whole is false), ask again at base + len. */
static inline int gpu_query(struct gpu *gpu, const void *addr, uint64_t len,
			    struct gpu_range *range)
{
	return gpu->ops->query(gpu, addr, len, range);
}

/* Device memory [addr, addr + len), of one piece or of several of one device, as a DMA
 * buffer; widened to whole pages. The mapping of the bus is tried first. A descriptor
 * covers what is mapped now: after a remap it has to be made anew. -EINVAL: not all of it
 * is mapped memory of one device. */
static inline int gpu_dmabuf_export(struct gpu *gpu, const void *addr, uint64_t len,
				    struct gpu_dmabuf *buf)
{
	return gpu->ops->dmabuf_export(gpu, addr, len, buf);
}

/* What another process of this host needs to map the piece that has addr (the whole
 * piece; see ipc->base). *fd is the caller's, to be sent along and closed, or -1 where
 * none is needed. */
static inline int gpu_ipc_export(struct gpu *gpu, const void *addr, struct gpu_ipc *ipc,
				 int *fd)
{
	return gpu->ops->ipc_export(gpu, addr, ipc, fd);
}

/* Maps what another process exported, for use by `device` (the one that has the memory or
 * one that reaches it); *base is where ipc->base is now. fd stays the caller's and may be
 * closed after the call. Imports of one piece share one mapping and are counted. Bytes
 * from a stranger: -EINVAL names what is wrong with them. The exporter may die: the
 * memory stays as long as it is mapped. */
static inline int gpu_ipc_import(struct gpu *gpu, int device, const struct gpu_ipc *ipc,
				 int fd, void **base)
{
	return gpu->ops->ipc_import(gpu, device, ipc, fd, base);
}

/* Once for each import. Nothing may use the mapping any more when the last one goes. */
static inline int gpu_ipc_release(struct gpu *gpu, void *base)
{
	return gpu->ops->ipc_release(gpu, base);
}

/* Lets kernels and copies of `device` reach the memory of `other` directly. -ENOSYS: they
 * have no way to. Nothing to undo. */
static inline int gpu_peer(struct gpu *gpu, int device, int other)
{
	return gpu->ops->peer(gpu, device, other);
}

/* What NICs have written to the device's memory before this call is visible to the
 * device after it. Nothing happens where device[].flush is GPU_FLUSH_NONE; -ENOSYS where
 * it is GPU_FLUSH_READ. */
static inline int gpu_flush(struct gpu *gpu, int device)
{
	return gpu->ops->flush(gpu, device);
}

/* For device memory that a NIC reads: copies that the driver may leave unfinished at
 * their return are finished from now on. -ENOSYS is common (mapped pieces) and harmless:
 * then the application orders them, as with any stream. */
static inline int gpu_sync_memops(struct gpu *gpu, const void *addr)
{
	return gpu->ops->sync_memops(gpu, addr);
}

/* Device memory of at least len bytes, that NICs and other processes may be given, where
 * the device can. Aligned to 2 MiB, and rounded up to that: for pools, not for messages.
 */
static inline int gpu_alloc(struct gpu *gpu, int device, uint64_t len, void **addr)
{
	return gpu->ops->alloc(gpu, device, len, addr);
}

/* What gpu_alloc() gave. Waits for nothing: the caller knows that no work uses it. */
static inline int gpu_free(struct gpu *gpu, void *addr)
{
	return gpu->ops->free(gpu, addr);
}

/* Host memory that all devices reach at the same address; page-aligned, zeroed. */
static inline int gpu_pinned_alloc(struct gpu *gpu, uint64_t len, void **addr)
{
	return gpu->ops->pinned_alloc(gpu, len, addr);
}

static inline int gpu_pinned_free(struct gpu *gpu, void *addr)
{
	return gpu->ops->pinned_free(gpu, addr);
}

/* The same of memory that the caller has: whole pages. -ENOSYS where devices would see it
 * at another address. */
static inline int gpu_pinned_register(struct gpu *gpu, void *addr, uint64_t len)
{
	return gpu->ops->pinned_register(gpu, addr, len);
}

static inline int gpu_pinned_unregister(struct gpu *gpu, void *addr)
{
	return gpu->ops->pinned_unregister(gpu, addr);
}

/* ---- queues ---- */

static inline int gpu_queue_open(struct gpu *gpu, int device, struct gpu_queue **queue)
{
	return gpu->ops->queue_open(gpu, device, queue);
}

/* Waits for what is on it: see that it can end. NULL is not allowed. */
static inline int gpu_queue_close(struct gpu_queue *queue)
{
	return queue->gpu->ops->queue_close(queue);
}

/* Until all that was put on it is done, or -ETIMEDOUT; 0 ns: only looks. An error of the
 * work itself is returned here (-EIO). */
static inline int gpu_queue_sync(struct gpu_queue *queue, uint64_t timeout_ns)
{
	return queue->gpu->ops->queue_sync(queue, timeout_ns);
}

/* What was put on the queue so far gets a number, queue->issued, which gpu_queue_done()
 * asks for. One mark behind several copies is cheaper than one each. */
static inline int gpu_queue_mark(struct gpu_queue *queue)
{
	return queue->gpu->ops->queue_mark(queue);
}

/* Whether the work up to that mark is done and visible to the host. Never true of work
 * that failed: who has waited too long asks gpu_queue_sync(queue, 0). Any thread. */
static inline bool gpu_queue_done(const struct gpu_queue *queue, uint64_t mark)
{
	return atomic_load_explicit(queue->done, memory_order_acquire) >= mark;
}

/* Copies between two memories that the queue's device reaches, by copy engines: no
 * kernel. One of them at least is a device's: between two of the host the driver makes
 * the caller wait until the queue has come there, for ever where it waits for this very
 * thread. Host memory is pinned; of ordinary memory the driver copies with the caller's
 * help. */
static inline int gpu_copy(struct gpu_queue *queue, void *dst, const void *src,
			   uint64_t len)
{
	return queue->gpu->ops->copy(queue, dst, src, len);
}

static inline int gpu_copy2d(struct gpu_queue *queue, const struct gpu_copy2d *copy)
{
	return queue->gpu->ops->copy2d(queue, copy);
}

static inline int gpu_fill(struct gpu_queue *queue, void *dst, uint8_t byte, uint64_t len)
{
	return queue->gpu->ops->fill(queue, dst, byte, len);
}

/* -ENOSYS: no kernels, gpu->kernels_why says why; -EINVAL: not that type with that
 * operation (bitwise ones of floating types). */
static inline int gpu_reduce(struct gpu_queue *queue, const struct gpu_reduce *reduce)
{
	return queue->gpu->ops->reduce(queue, reduce);
}

static inline int gpu_queue_launch(struct gpu_queue *queue, const struct gpu_launch *l)
{
	return queue->gpu->ops->queue_launch(queue, l);
}

/* ---- streams: the application's, or one of gpu_stream_open() ----
 * `device` is the one that the stream belongs to. A stream of NULL is the device's
 * default one. None of these waits. All of them may be called while the stream is
 * captured. */

static inline int gpu_stream_open(struct gpu *gpu, int device, void **stream)
{
	return gpu->ops->stream_open(gpu, device, stream);
}

static inline int gpu_stream_close(struct gpu *gpu, int device, void *stream)
{
	return gpu->ops->stream_close(gpu, device, stream);
}

/* 1 to GPU_WORD_OPS steps in order, by whatever device[].hold says. The words are the
 * caller's, in pinned memory mostly, and live as long as the stream may get there. A
 * stream that waits holds up all that is put on it later, and nothing cancels it but the
 * awaited value: gpu/gate.h. -ENOSYS: GPU_HOLD_NONE. */
static inline int gpu_stream_words(struct gpu *gpu, int device, void *stream,
				   const struct gpu_word_op *ops, uint32_t count)
{
	return gpu->ops->stream_words(gpu, device, stream, ops, count);
}

/* What is put on `stream` from now on waits for what is on `earlier` now. Of two streams
 * of one device; while `earlier` is captured, `stream` joins that capture. */
static inline int gpu_stream_after(struct gpu *gpu, int device, void *stream,
				   void *earlier)
{
	return gpu->ops->stream_after(gpu, device, stream, earlier);
}

/* The host calls fn(arg) when the stream has come there. Tens of microseconds late, from
 * a thread of the driver that serves all streams: fn must not wait, nor call this table.
 */
static inline int gpu_stream_call(struct gpu *gpu, int device, void *stream,
				  void (*fn)(void *arg), void *arg)
{
	return gpu->ops->stream_call(gpu, device, stream, fn, arg);
}

/* Whether the stream is being captured, and of which capture (*id; 0: none). */
static inline int gpu_stream_capture(struct gpu *gpu, int device, void *stream,
				     enum gpu_capture *state, uint64_t *id)
{
	return gpu->ops->stream_capture(gpu, device, stream, state, id);
}

/* While the stream is captured: fn(arg) is called once when the graph and everything made
 * of it are gone. From a thread of the driver: fn hands over to a thread of its own, and
 * must not call this table. -EINVAL: not captured. */
static inline int gpu_stream_keep(struct gpu *gpu, int device, void *stream,
				  void (*fn)(void *arg), void *arg)
{
	return gpu->ops->stream_keep(gpu, device, stream, fn, arg);
}

/* As the calls of queues, on a stream (gpu_copy() says what may not be copied). */
static inline int gpu_stream_copy(struct gpu *gpu, int device, void *stream, void *dst,
				  const void *src, uint64_t len)
{
	return gpu->ops->stream_copy(gpu, device, stream, dst, src, len);
}

static inline int gpu_stream_reduce(struct gpu *gpu, int device, void *stream,
				    const struct gpu_reduce *reduce)
{
	return gpu->ops->stream_reduce(gpu, device, stream, reduce);
}

static inline int gpu_stream_launch(struct gpu *gpu, int device, void *stream,
				    const struct gpu_launch *launch)
{
	return gpu->ops->stream_launch(gpu, device, stream, launch);
}

#endif
