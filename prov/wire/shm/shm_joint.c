/* SPDX-License-Identifier: BSD-2-Clause */
/* Joint transfers; see shm_joint.h. */
#include "config.h"

#include "prov/wire/shm/shm_joint.h"

#include <assert.h>

#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_hub.h"
#include "prov/wire/shm/shm_link.h"

static_assert(SHM_JOINTS <= 32, "a bit per cell");
static_assert(WIRE_JOINT_MAX == (1u << SHM_JOINT_BITS) - 1, "counts fit");

#define TURN_MASK 0xffffu

static uint64_t claim_word(uint32_t turn, uint32_t owner, uint32_t peer)
{
	return (uint64_t)(turn & TURN_MASK) << (2 * SHM_JOINT_BITS) |
	       (uint64_t)owner << SHM_JOINT_BITS | peer;
}

static uint32_t claim_turn(uint64_t word)
{
	return (uint32_t)(word >> (2 * SHM_JOINT_BITS));
}

static uint32_t claim_owner(uint64_t word)
{
	return word >> SHM_JOINT_BITS & WIRE_JOINT_MAX;
}

static uint32_t claim_peer(uint64_t word)
{
	return word & WIRE_JOINT_MAX;
}

static struct shm_link *link_of(struct wire_link *link)
{
	return (struct shm_link *)(void *)link;
}

static struct shm_joint_cell *cell_of(const struct shm_link *link, uint32_t cell,
				      bool owner)
{
	return &link->pair->joint[owner ? link->side : !link->side][cell];
}

int shm_joint_open(struct wire_link *wlink, uint32_t pieces, struct wire_joint *j)
{
	struct shm_link *link = link_of(wlink);
	struct shm_joint_cell *cell;
	uint32_t index;

	if (link->state != SHM_LINK_UP ||
	    link->joint_used == UINT32_MAX >> (32 - SHM_JOINTS))
		return -FI_EAGAIN;
	if (pieces == 0 || pieces > WIRE_JOINT_MAX)
		return -FI_EINVAL;
	index = (uint32_t)__builtin_ctz(~link->joint_used);
	cell = cell_of(link, index, true);
	*j = (struct wire_joint){
		.cell = index,
		/* Even while closed: the next is odd, whatever the peer wrote there. */
		.turn = ((link->joint_turn += 2) | 1) & TURN_MASK,
		.pieces = pieces,
		.link = (uint64_t)link->generation << 32 | link->index,
	};
	link->joint_used |= 1u << index;
	atomic_store_explicit(&cell->done, 0, memory_order_relaxed);
	atomic_store_explicit(&cell->broken, 0, memory_order_relaxed);
	atomic_store_explicit(&cell->claim, claim_word(j->turn, 0, 0),
			      memory_order_release);
	return 0;
}

/* Rule D3: says that this side may be writing before it takes anything, so that an owner
 * that closes either sees this or takes the piece back. */
static void hazard_set(struct shm_link *link)
{
	atomic_store_explicit(&link->hazard_mine->key, SHM_HAZARD_JOINT,
			      memory_order_relaxed);
	atomic_store_explicit(&link->hazard_mine->active, 1, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
}

static void hazard_clear(struct shm_link *link)
{
	atomic_store_explicit(&link->hazard_mine->active, 0, memory_order_release);
}

uint32_t shm_joint_take(struct wire_link *wlink, struct wire_joint *j, bool owner)
{
	struct shm_link *link = link_of(wlink);
	struct shm_joint_cell *cell;
	uint64_t old, next;

	if (j->cell >= SHM_JOINTS || link->state != SHM_LINK_UP)
		return WIRE_JOINT_NONE;
	cell = cell_of(link, j->cell, owner);
	if (!owner)
		hazard_set(link);
	old = atomic_load_explicit(&cell->claim, memory_order_relaxed);
	do {
		uint32_t front = claim_owner(old), back = claim_peer(old);

		/* Counts that can't be are as good as "none left". */
		if (claim_turn(old) != j->turn || front + back >= j->pieces ||
		    (owner && front != j->mine)) {
			if (!owner)
				hazard_clear(link);
			return WIRE_JOINT_NONE;
		}
		next = claim_word(j->turn, front + owner, back + !owner);
	} while (!atomic_compare_exchange_weak_explicit(
		&cell->claim, &old, next, memory_order_acq_rel, memory_order_relaxed));
	if (owner)
		return j->mine++;
	return j->pieces - 1 - claim_peer(old);
}

void shm_joint_did(struct wire_link *wlink, const struct wire_joint *j, bool ok)
{
	struct shm_link *link = link_of(wlink);
	struct shm_joint_cell *cell = cell_of(link, j->cell, false);

	if (!ok)
		atomic_store_explicit(&cell->broken, 1, memory_order_relaxed);
	/* Sequentially consistent: the owner looks, then sleeps; we count, then ring. */
	atomic_fetch_add_explicit(&cell->done, 1, memory_order_seq_cst);
	hazard_clear(link);
	shm_hub_ring(&link->peer_hub);
}

enum wire_joint_state shm_joint_look(struct wire_link *wlink, const struct wire_joint *j)
{
	struct shm_joint_cell *cell = cell_of(link_of(wlink), j->cell, true);
	uint64_t word = atomic_load_explicit(&cell->claim, memory_order_acquire);
	uint32_t done = atomic_load_explicit(&cell->done, memory_order_seq_cst);

	if (claim_turn(word) != j->turn || claim_owner(word) != j->mine)
		return WIRE_JOINT_BROKEN;
	if (done < claim_peer(word))
		return WIRE_JOINT_BUSY;
	/* Where a take failed for another reason than that they met, some are nobody's.
	 */
	return claim_owner(word) + claim_peer(word) != j->pieces ||
			       atomic_load_explicit(&cell->broken, memory_order_relaxed)
		       ? WIRE_JOINT_BROKEN
		       : WIRE_JOINT_DONE;
}

/* The owner's link, if it is still there in any state. Mutex held. */
static struct shm_link *joint_link(struct shm_ep *ep, const struct wire_joint *j)
{
	uint32_t index = (uint32_t)j->link;
	struct shm_link *link = index < ep->link_top ? ep->links[index] : NULL;

	return link && link->generation == j->link >> 32 && link->pair ? link : NULL;
}

/* From here on the peer takes nothing. Returns what was there. */
static uint64_t cell_close(struct shm_joint_cell *cell)
{
	return atomic_exchange_explicit(&cell->claim, 0, memory_order_seq_cst);
}

void shm_joint_close(struct wire_ep *wep, struct wire_joint *j)
{
	struct shm_ep *ep = shm_ep_of(wep);
	struct shm_link *link;
	uint64_t word;

	shm_ep_lock(ep);
	link = joint_link(ep, j);
	word = link ? cell_close(cell_of(link, j->cell, true)) : 0;
	if (claim_turn(word) == j->turn) /* else it was closed before */
		j->theirs = claim_peer(word);
	shm_ep_unlock(ep);
}

bool shm_joint_quiet(struct wire_ep *wep, const struct wire_joint *j)
{
	struct shm_ep *ep = shm_ep_of(wep);
	struct shm_link *link;
	bool quiet = true;

	shm_ep_lock(ep);
	link = joint_link(ep, j);
	if (link) {
		/* `gone`: all descriptors of that process are closed, or its endpoint is,
		 * and neither happens in the middle of a piece. */
		quiet = atomic_load_explicit(&cell_of(link, j->cell, true)->done,
					     memory_order_acquire) >= j->theirs ||
			atomic_load_explicit(&link->gone, memory_order_acquire);
		if (quiet)
			link->joint_used &= ~(1u << j->cell);
	}
	shm_ep_unlock(ep);
	return quiet;
}

void shm_joint_close_all(struct shm_ep *ep)
{
	for (uint32_t i = 0; i < ep->link_top; i++) {
		struct shm_link *link = ep->links[i];

		for (uint32_t c = 0; link && link->pair && c < SHM_JOINTS; c++)
			if (link->joint_used >> c & 1)
				cell_close(cell_of(link, c, true));
	}
}
