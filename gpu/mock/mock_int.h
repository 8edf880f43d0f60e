/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the stand-in share. One lock covers everything but what a stream's
 * own thread does with the work that it has taken. */
#ifndef WEFT_GPU_MOCK_MOCK_INT_H
#define WEFT_GPU_MOCK_MOCK_INT_H

#include <pthread.h>
#include <stdbool.h>

#include "gpu/cuda/driver.h"
#include "gpu/mock/mock.h"

#define MOCK_DEVICES_MAX 8
#define MOCK_GRAIN	 (2u << 20) /* of mapped pieces, and of the addresses of all */
#define MOCK_WORDS	 256	    /* in one batch: fewer than that */

/* Memory that was created, mapped or not. */
struct mock_phys {
	int fd;
	size_t len;
	int refs; /* mappings, and handles that were given out */
	int device;
	bool rdma, exportable;
};

enum mock_kind {
	MOCK_MEM_DEVICE,
	MOCK_MEM_HOST,	     /* allocated */
	MOCK_MEM_REGISTERED, /* the caller's */
	MOCK_MEM_MANAGED,
};

/* A piece of memory at an address. */
struct mock_piece {
	struct mock_piece *next;
	uintptr_t addr;
	size_t len;
	enum mock_kind kind;
	int device;
	uint64_t id;
	struct mock_phys *phys; /* of devices */
	bool mapped;		/* by cuMemMap; else allocated */
	bool opened;		/* by cuIpcOpenMemHandle */
	bool access;		/* mapped: whether it may be used */
};

struct CUctx_st {
	int device;
	int refs;
};

/* What one capture is about, shared by the streams that are in it. */
struct mock_capture {
	uint64_t id;
	struct CUgraph_st *graph;
	struct CUstream_st *origin;
	pthread_t thread;
	int mode;
	bool broken;
	int refs; /* streams and events */
	struct mock_capture *next;
};

struct CUevent_st {
	int refs;
	uint64_t recorded, done; /* counted; done: how far streams have come */
	struct mock_capture *capture;
};

enum mock_work_kind {
	MOCK_WORK_COPY,
	MOCK_WORK_COPY2D,
	MOCK_WORK_FILL,
	MOCK_WORK_WRITE,
	MOCK_WORK_WAIT,
	MOCK_WORK_CALL,
	MOCK_WORK_KERNEL,
	MOCK_WORK_RECORD,
	MOCK_WORK_AFTER,
	MOCK_WORK_DROP, /* of a graph's objects */
};

struct mock_kernel_call {
	mock_kernel_fn *fn;
	struct mock_grid grid;
	void **args; /* into the bytes behind it, one allocation */
};

struct mock_work {
	struct mock_work *next;
	enum mock_work_kind kind;
	uintptr_t dst, src;
	size_t len, rows, dst_pitch, src_pitch;
	uint64_t value;
	CUhostFn call;
	void *arg;
	struct CUevent_st *event;
	struct mock_kernel_call *kernel;
	size_t kernel_len; /* of that allocation */
	struct CUgraph_st *graph;
};

struct CUstream_st {
	struct CUstream_st *next;
	int device;
	bool started, closed, busy;
	struct mock_work *first, **last;
	struct mock_capture *capture;
};

struct CUuserObject_st {
	void *ptr;
	CUhostFn destroy;
	int refs;
};

#define MOCK_OBJECTS 64 /* of one graph */

struct CUgraph_st {
	int refs;
	struct mock_work *first, **last;
	struct CUuserObject_st *object[MOCK_OBJECTS];
	int objects;
};

struct CUgraphExec_st {
	struct CUgraph_st *graph;
};

struct mock {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a stream's work, or an event */
	long knob[MOCK_KNOBS];
	bool started; /* cuInit */
	struct CUctx_st ctx[MOCK_DEVICES_MAX];
	struct CUstream_st null_stream[MOCK_DEVICES_MAX];
	struct mock_piece *pieces;
	uint64_t last_id, last_capture;
	struct CUstream_st *streams;
	struct mock_capture *captures;
	bool idling[MOCK_DEVICES_MAX];	   /* a call waits until it is idle, and... */
	pthread_t idler[MOCK_DEVICES_MAX]; /* ...this is the thread that made it */
};

extern struct mock mock;

/* mock.c */
/* What every call begins with: an error that sticks, or that nothing was begun. Outside
 * the lock. */
CUresult mock_ready(void);
/* The same, and a context must be current: its device goes to *device. */
CUresult mock_current(int *device);
/* Under the lock. */
long mock_knob(enum mock_knob knob);
/* Takes one off a knob that counts failures; whether there was one. Takes the lock. */
bool mock_fails(enum mock_knob knob);
void mock_pause(enum mock_knob knob);
/* The work of a stream has failed: from now on everything does. */
void mock_stick(CUresult rc);

/* mock_mem.c */
/* The piece that has addr; under the lock. */
struct mock_piece *mock_piece_at(uintptr_t addr);
/* Whether addresses that are a device's are all there. Takes the lock. */
bool mock_reachable(uintptr_t addr, size_t len);
/* Device addresses; 0: used up. Under the lock. */
uintptr_t mock_va_get(size_t len);
void mock_va_put(uintptr_t addr, size_t len);
struct mock_phys *mock_phys_new(int fd, size_t len, int device);
void mock_phys_put(struct mock_phys *phys);
/* Lays memory at an address of ours, and notes it. Under the lock. */
struct mock_piece *mock_piece_new(uintptr_t addr, size_t len, enum mock_kind kind,
				  struct mock_phys *phys, int device);
/* Takes it away again. Under the lock. */
void mock_piece_end(struct mock_piece *piece);

/* mock_work.c */
/* Does one piece of work, on a stream's thread, outside the lock. */
CUresult mock_work_do(struct mock_work *work);
struct mock_work *mock_work_copy(const struct mock_work *work);
void mock_work_free(struct mock_work *work);

/* mock_stream.c */
/* Puts work on a stream, or into the graph that it is captured into. Takes the work. */
CUresult mock_put(CUstream stream, struct mock_work *work);
/* The stream, of the current device where it is NULL. */
struct CUstream_st *mock_stream(CUstream stream, int device);
/* Until all that is on a stream is done, whoever captures what; not of one that is
 * captured. */
CUresult mock_stream_settle(CUstream stream);
void mock_event_put(struct CUevent_st *event);
/* Under the lock: whether a call that captures do not allow breaks one, as it does unless
 * the thread has said that it does not care. Breaks it, then. */
bool mock_unsafe(void);
void mock_capture_put(struct mock_capture *capture);

/* mock_idle.c */
/* What such a call of the driver does first: waits until all that is on streams of the
 * device, or of all devices (-1), is done, with the context in its hands. `call` is its
 * name, for the message of one that waits too long. */
void mock_idle(int device, const char *call);
/* Waits until no other thread's call has the device's context in its hands. */
void mock_turn(int device);

/* mock_graph.c */
void mock_graph_put(struct CUgraph_st *graph);

/* mock_table.c: every entry point, and the version that first had it. */
CUresult mock_look_up(const char *name, void **fn, int version);

#endif
