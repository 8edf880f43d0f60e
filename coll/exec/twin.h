/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two sides of a persistent call with WEFT_DOUBLE (rule F5): each has a destination
 * and scratch of its own, memory of ours, and its starts take turns with them. A place
 * that may be written from the begin of its call on (nothing in the plan comes before its
 * RECV) is told to its peer once for each side, by a READY that says that it stays. Two
 * starts later that peer puts there without asking, maybe before the call starts here:
 *
 *   it has finished the start before, which takes something that this rank gave in that
 *   start (only such collectives may be doubled: twin_may(), and coll/plan/repeat.h
 *   proves it of each plan); and who starts a call again is done with the result of the
 *   start before. So the side of two starts ago is free.
 *
 * What arrives before its call started is kept (twin_early). Memory of a call that failed
 * stays until the context closes, since a peer that does not know yet may still write it
 * (D3); so nobody has to be asked.
 */
#ifndef WEFT_EXEC_TWIN_H
#define WEFT_EXEC_TWIN_H

#include "coll/exec/exec.h"

/* number: the same on all ranks, for the request that starts of all of them belong to;
 * not 0. NOMEM. */
LOCK_HELD(lock_context)
enum weft_result exec_twin_open(struct exec *x, uint32_t comm, uint32_t number,
				const struct plan *plan, size_t elem_size,
				struct exec_twin **twin);
/* Its request is idle or done. failed: peers may still write. */
LOCK_HELD(lock_context) void exec_twin_close(struct exec_twin *twin, bool failed);

/* The destination of the last start; NULL: there was none. */
const void *exec_twin_result(const struct exec_twin *twin);

#endif
