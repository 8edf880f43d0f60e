/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs whose path failed are destroyed by a thread that holds no lock. A driver
 * may wait meanwhile for packets of the queue pair that are still on their way, as long
 * as a path holds them up: rxe does for up to 50 s, and whoever makes progress would
 * stand still for so long, with all links of the endpoint and its door. Such a queue pair
 * is quiet: all that it had was answered for, or it is in the reset state.
 *
 * The thread is made for the first one, and is there until the endpoint is closed, which
 * waits for it. Mutex, unless said otherwise.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_REAPER_H
#define WEFT_WIRE_VERBS_VERBS_REAPER_H

#include <stdbool.h>

struct verbs_ep;
struct verbs_qp;
struct verbs_reaper;

/* It is on no list, and nothing finds it any more. False: the caller has to do it. */
bool verbs_reaper_take(struct verbs_ep *ep, struct verbs_qp *qp);
/* All that it took is gone on return. Mutex not held. */
void verbs_reaper_stop(struct verbs_reaper *reaper);

#endif
