/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw keys; see raw_key.h. */
#include "config.h"

#include "prov/fi/raw_key.h"

#include <rdma/fi_errno.h>

#include "prov/fi/limits.h"
#include "prov/mem/params.h"

int wfi_raw_key_get(const struct fi_mr_raw_attr *attr, uint64_t key, uint64_t base)
{
	size_t room;

	if (!attr || !attr->key_size)
		return -FI_EINVAL;
	if (attr->flags)
		return -FI_EBADFLAGS;
	room = *attr->key_size;
	*attr->key_size = WFI_MR_KEY_SIZE;
	if (room < WFI_MR_KEY_SIZE)
		return -FI_ETOOSMALL;
	if (!attr->raw_key)
		return -FI_EINVAL;
	for (int i = 0; i < WFI_MR_KEY_SIZE; i++)
		attr->raw_key[i] = (uint8_t)(key >> (8 * i));
	if (attr->base_addr)
		*attr->base_addr = base;
	return 0;
}

int wfi_raw_key_map(const struct fi_mr_map_raw *map)
{
	uint64_t key = 0;

	if (!map || !map->raw_key || !map->key)
		return -FI_EINVAL;
	if (map->flags)
		return -FI_EBADFLAGS;
	if (map->key_size != WFI_MR_KEY_SIZE) {
		FI_INFO(&weft_provider, FI_LOG_MR,
			"a raw key of %zu bytes: keys of this provider have %d\n",
			map->key_size, WFI_MR_KEY_SIZE);
		return -FI_EINVAL;
	}
	for (int i = 0; i < WFI_MR_KEY_SIZE; i++)
		key |= (uint64_t)map->raw_key[i] << (8 * i);
	/* No registration has it. */
	if (key == FI_KEY_NOTAVAIL)
		return -FI_ENOKEY;
	*map->key = key;
	return 0;
}

int wfi_raw_key_unmap(const uint64_t *key)
{
	return key ? 0 : -FI_EINVAL;
}
