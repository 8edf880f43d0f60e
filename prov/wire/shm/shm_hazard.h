/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rule D3: who reaches into a peer's memory says by which key, before the key is looked
 * up. Either the owner, which removes the key first and has a fence behind that, sees
 * this, or the look-up sees the removal.
 */
#ifndef WEFT_WIRE_SHM_SHM_HAZARD_H
#define WEFT_WIRE_SHM_SHM_HAZARD_H

#include "prov/wire/shm/shm_format.h"

static inline void shm_hazard_set(struct shm_hazard *mine, uint64_t key)
{
	atomic_store_explicit(&mine->key, key, memory_order_relaxed);
	atomic_store_explicit(&mine->active, 1, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void shm_hazard_clear(struct shm_hazard *mine)
{
	atomic_store_explicit(&mine->active, 0, memory_order_release);
}

#endif
