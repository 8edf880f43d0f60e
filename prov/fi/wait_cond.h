/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_WAIT_MUTEX_COND: a mutex and a condition that the application waits on by itself.
 *
 * It may read a queue while it holds the mutex, so whoever tells it must hold none of
 * ours: a queue's writers, who hold the domain's lock, leave that to the thread of
 * automatic progress. Without that thread nothing would arrive while the application
 * sleeps on a condition, so the pair is only given out where it exists.
 */
#ifndef WEFT_FI_WAIT_COND_H
#define WEFT_FI_WAIT_COND_H

#include <pthread.h>
#include <stdint.h>

#include <rdma/fi_eq.h>

#include "util/list.h"

struct wfi_wait;

struct wfi_cond {
	pthread_mutex_t mutex; /* recursive: its holder may write into the queue */
	pthread_cond_t cond;
	struct list due;     /* wfi_progress.due: to be told; domain's lock */
	uint32_t pins;	     /* being told, without the domain's lock; guarded by it */
	struct wfi_cond *of; /* told in its place: a wait set's; NULL: none */
};

/* of: whom telling it tells, which outlives it; NULL: itself. NULL: no memory. */
struct wfi_cond *wfi_cond_open(struct wfi_cond *of);
/* Nobody waits on it or tells it any more. NULL is ignored. */
void wfi_cond_close(struct wfi_cond *c);
/* No lock of ours held. */
void wfi_cond_tell(struct wfi_cond *c);
/* Where FI_GETWAIT's argument points to. */
void wfi_cond_give(struct wfi_cond *c, void *arg);

#endif
