/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread of an endpoint: answers its door while the application makes no call
 * (rule D6). Asleep when there is nothing to do; never waits with the mutex held.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_HELPER_H
#define WEFT_WIRE_VERBS_VERBS_HELPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct verbs_door;
struct verbs_helper;

struct verbs_helper_config {
	struct verbs_door *door;
	pthread_mutex_t *mutex; /* the wire's, which every call of the door holds */
	int fd;			/* waited for as well; -1: there is none */
	/* Called after each turn, without the mutex: `readable`: fd is. Returns when the
	 * next is due, of verbs_now's clock; UINT64_MAX: never. May be NULL. */
	uint64_t (*turn)(void *arg, bool readable);
	void *arg;
};

/* -FI_ENOMEM, -FI_EMFILE, -FI_EAGAIN (no thread). */
int verbs_helper_start(const struct verbs_helper_config *config,
		       struct verbs_helper **helper);
/* Another thread of the wire's: as the helper it takes no signals. 0, or its errno. */
int verbs_helper_thread(pthread_t *thread, void *(*run)(void *arg), void *arg);
/* There is something to do: a turn follows. NULL: it was stopped. */
void verbs_helper_kick(struct verbs_helper *helper);
/* Mutex not held. Before the door is closed. */
void verbs_helper_stop(struct verbs_helper *helper);

#endif
