/* SPDX-License-Identifier: BSD-2-Clause */
/* Registrations and keys. A key names a slot, how often the slot was used (so that a key
 * of before is refused) and whether it is the local or the remote one. */
#ifndef WEFT_FABTESTS_EMUVERBS_MR_H
#define WEFT_FABTESTS_EMUVERBS_MR_H

#include "fabtests/emuverbs/emu.h"

/* Where `len` bytes at `addr` are, if the key grants all of `access` (of enum
 * ibv_access_flags; 0: to be read locally) to that domain; else NULL. */
void *emu_mr_find(struct emu_pd *pd, uint32_t key, uint64_t addr, uint64_t len,
		  unsigned access);

/* What is written by that key may be seen in any order. */
bool emu_mr_relaxed(const struct emu_pd *pd, uint32_t key);

/* Into memory that may have been unmapped since: false then. */
bool emu_mr_copy(void *to, const void *from, size_t len);
bool emu_mr_there(const void *at, size_t len);

/* Into pieces, from byte `offset` of them on. */
bool emu_mr_scatter(struct emu_pd *pd, const struct ibv_sge *sge, unsigned sges,
		    uint64_t offset, const uint8_t *from, uint64_t len);

uint64_t emu_sge_sum(const struct ibv_sge *sge, int sges);

#endif
