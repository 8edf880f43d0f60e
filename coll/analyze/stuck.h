/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which collective stopped first, and who holds it. A communicator that stands still
 * waits for its members that have not entered the call; one of those that is in a call of
 * another communicator waits for that one in turn. Where this ends is the cause: a member
 * that is in no call, or is gone; a circle, where communicators are called in different
 * orders; or a call that all have entered, where what was sent and what has come are
 * compared along those that wait.
 */
#ifndef WEFT_ANALYZE_STUCK_H
#define WEFT_ANALYZE_STUCK_H

#include "coll/analyze/job.h"
#include "coll/analyze/verdict.h"

/* False: nothing stands still. NOMEM is VERDICT_UNKNOWN, and said. */
bool stuck_find(const struct job *job, struct verdict *v);

#endif
