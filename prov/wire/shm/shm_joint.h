/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joint transfers: cells in the pair memory by which both ends of a link share out the
 * pieces of a transfer. Contract: joint_open in wire.h. The endpoint's lock is held.
 *
 * A peer can write anything into a cell. What that changes is which bytes of its own
 * message are there; nothing leads outside, and nobody waits for more than its answer or
 * its end.
 */
#ifndef WEFT_WIRE_SHM_SHM_JOINT_H
#define WEFT_WIRE_SHM_SHM_JOINT_H

#include "prov/wire/wire.h"

struct shm_ep;

int shm_joint_open(struct wire_link *link, uint32_t pieces, struct wire_joint *j);
uint32_t shm_joint_take(struct wire_link *link, struct wire_joint *j, bool owner);
void shm_joint_did(struct wire_link *link, const struct wire_joint *j, bool ok);
enum wire_joint_state shm_joint_look(struct wire_link *link, const struct wire_joint *j);
void shm_joint_close(struct wire_ep *ep, struct wire_joint *j);
bool shm_joint_quiet(struct wire_ep *ep, const struct wire_joint *j);

/* The endpoint closes: no peer takes any piece from here on. ep->mutex held. */
void shm_joint_close_all(struct shm_ep *ep);

#endif
