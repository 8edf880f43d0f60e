/* SPDX-License-Identifier: BSD-2-Clause */
/* How a link comes to be: dialling, answering, hearing the answer. */
#ifndef WEFT_WIRE_SHM_SHM_CONNECT_H
#define WEFT_WIRE_SHM_SHM_CONNECT_H

#include "prov/wire/wire.h"
#include "util/lock_note.h"

struct shm_ep;
struct shm_link;

/* Wire function; endpoint lock. */
LOCK_NOT_HELD(lock_wire)
int shm_dial(struct wire_ep *ep, const struct wire_addr *to, void *peer_ctx,
	     struct wire_link **link);

/* Helper thread, mutex held. */

/* Something came on a socket that was accepted: 0: a link was made of it and the socket
 * is the link's; -FI_EAGAIN: nothing yet; else the socket should be dropped. */
LOCK_HELD(lock_wire) int shm_answer(struct shm_ep *ep, int sock, int pid);
/* Something came on the socket of a link that is being dialled. */
LOCK_HELD(lock_wire) void shm_answered(struct shm_link *link);
/* Tells a stranger why it isn't let in. */
void shm_refuse(struct shm_ep *ep, int sock, int err);

#endif
