/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread of an endpoint: answers its door while the application makes no call
 * (rule D6). Asleep when there is nothing to do; never waits with the mutex held.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_HELPER_H
#define WEFT_WIRE_VERBS_VERBS_HELPER_H

#include <pthread.h>

struct verbs_door;
struct verbs_helper;

/* mutex: the wire's, which every call of the door holds. `more` is called after each
 * turn with it held; may be NULL. -FI_ENOMEM, -FI_EMFILE, -FI_EAGAIN (no thread). */
int verbs_helper_start(struct verbs_door *door, pthread_mutex_t *mutex,
		       void (*more)(void *arg), void *arg, struct verbs_helper **helper);
/* Another thread of the wire's: as the helper it takes no signals. 0, or its errno. */
int verbs_helper_thread(pthread_t *thread, void *(*run)(void *arg), void *arg);
/* Mutex held: the door's due time may have become sooner. NULL: it was stopped. */
void verbs_helper_kick(struct verbs_helper *helper);
/* Mutex not held. Before the door is closed. */
void verbs_helper_stop(struct verbs_helper *helper);

#endif
