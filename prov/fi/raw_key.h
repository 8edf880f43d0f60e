/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw keys of registrations (fi_mr_raw_attr, fi_mr_map_raw, fi_mr_unmap_key): a key as
 * bytes that do not depend on who wrote them. Keys here have 8 bytes and mean the same to
 * every peer, so that mapping one keeps nothing. Bytes of a stranger are just a key,
 * which the target's table knows or doesn't.
 */
#ifndef WEFT_FI_RAW_KEY_H
#define WEFT_FI_RAW_KEY_H

#include <stdint.h>

#include <rdma/fi_domain.h>

/* FI_GET_RAW_MR. -FI_ETOOSMALL (then only the size is told), -FI_EINVAL, -FI_EBADFLAGS.
 */
int wfi_raw_key_get(const struct fi_mr_raw_attr *attr, uint64_t key, uint64_t base);

/* FI_MAP_RAW_MR and FI_UNMAP_KEY of a domain. */
int wfi_raw_key_map(const struct fi_mr_map_raw *map);
int wfi_raw_key_unmap(const uint64_t *key);

#endif
