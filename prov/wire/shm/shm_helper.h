/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread of an endpoint: answers the door, watches the links' sockets, and
 * carries RMA for peers that can't (rule D6). Asleep when there is nothing to do.
 */
#ifndef WEFT_WIRE_SHM_SHM_HELPER_H
#define WEFT_WIRE_SHM_SHM_HELPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"
#include "util/lock_note.h"

struct shm_ep;
struct shm_link;

#define SHM_HALF_OPEN 16 /* strangers listened to at a time */
#define SHM_HELLO_TIMEOUT_NS \
	UINT64_C(2000000000) /* a stranger must have spoken by then */
#define SHM_ANSWER_TIMEOUT_NS UINT64_C(10000000000)

/* A connection that has not said hello yet. */
struct shm_half_open {
	int sock; /* -1: free */
	int pid;
	uint32_t generation;
	uint64_t since; /* monotonic ns */
};

struct shm_helper {
	pthread_t thread;
	int epoll_fd;
	int kick_fd;  /* eventfd of our own */
	int spare_fd; /* given up for a moment when descriptors run out */
	_Atomic(bool) stop;
	/* ep->mutex: */
	struct shm_half_open half_open[SHM_HALF_OPEN];
	uint32_t half_open_generation;
	struct list serving;  /* links whose peers asked for service lately */
	uint64_t answer_next; /* soonest deadline of a dialled link, 0: none */
};

int shm_helper_start(struct shm_ep *ep);
void shm_helper_stop(struct shm_ep *ep);

/* Mutex held. */
LOCK_HELD(lock_wire) int shm_helper_watch(struct shm_ep *ep, struct shm_link *link);
LOCK_HELD(lock_wire) void shm_helper_unwatch(struct shm_ep *ep, struct shm_link *link);
/* Only hear of the peer's end. */
LOCK_HELD(lock_wire) void shm_helper_watch_end(struct shm_ep *ep, struct shm_link *link);
/* A dialled link must be answered by link->answer_by. */
LOCK_HELD(lock_wire)
void shm_helper_deadline(struct shm_ep *ep, const struct shm_link *link);

#endif
