/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the host that devices and peers reach, for copies of device memory. It is
 * pinned where it can be: when a device is prepared, and by calls in no stream (and
 * requests that are made for many starts) while no stream is held (gpu/quiet.h), up to a
 * bound. Who finds none that is free gets ordinary memory, of which the driver copies
 * with the caller's help: slower, and never a reason to wait.
 */
#ifndef WEFT_EXEC_PINNED_H
#define WEFT_EXEC_PINNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"
#include "weft/weft.h"

struct exec;
struct gpu;

struct pinned {
	struct list link; /* pinned_pool.idle */
	char *memory;
	size_t size;
	bool block; /* memory of ours; else the driver's */
	bool plain; /* not pinned */
	bool kept;  /* by a request that is started many times */
};

struct pinned_pool {
	struct list idle; /* short ones first */
	uint64_t bytes;	  /* that are pinned now */
	uint64_t most;	  /* WEFT_GPU_PINNED */
	uint64_t plain;	  /* bytes of idle ones that are not */
};

/* Reads the bound. ARG. */
enum weft_result pinned_pool_open(struct pinned_pool *pool);
/* Frees those that are idle; in a quiet time. */
void pinned_pool_close(struct exec *x);

/* At least so many bytes. may_pin: more may be pinned for it, if nothing is in the way.
 * NOMEM. */
enum weft_result pinned_get(struct exec *x, size_t size, bool may_pin,
			    struct pinned **pinned);
void pinned_put(struct exec *x, struct pinned *pinned);

/* For gpus.c: a buffer of at least so many bytes that is not pinned yet, or NULL; what a
 * thread of its own does to pin it (0, or the backend's error); and giving it up. */
struct pinned *pinned_new(struct exec *x, size_t size);
int pinned_pin(struct gpu *gpu, struct pinned *pinned);
void pinned_free(struct exec *x, struct pinned *pinned);
/* So many idle ones that are pinned and long enough. */
uint32_t pinned_count(const struct exec *x, size_t size);
/* Whether a buffer of so many bytes may be pinned besides `more` bytes that will be. */
bool pinned_fits(const struct exec *x, uint64_t more, size_t size);
/* What a buffer of so many bytes takes. */
size_t pinned_round(size_t size);

#endif
