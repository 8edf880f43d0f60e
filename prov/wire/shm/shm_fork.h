/* SPDX-License-Identifier: BSD-2-Clause */
/* What a forked child gets of an endpoint: no descriptor, and no memory that peers see.
 * Else it would hold open what its parent closes, and write where its parent writes. */
#ifndef WEFT_WIRE_SHM_SHM_FORK_H
#define WEFT_WIRE_SHM_SHM_FORK_H

struct shm_ep;

/* Once everything is open, and before anything of it is closed. */
void shm_fork_enter(struct shm_ep *ep);
void shm_fork_leave(struct shm_ep *ep);

#endif
