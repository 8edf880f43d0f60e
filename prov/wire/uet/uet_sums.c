/* SPDX-License-Identifier: BSD-2-Clause */
/* Which datagrams have a checksum; see uet_sums.h. */
#include "config.h"

#include "prov/wire/uet/uet_sums.h"

#include <string.h>

#include "prov/wire/uet/uet_crc.h"
#include "util/be.h"

_Static_assert(UET_SUMS_BYTES == UET_CRC_BYTES, "one checksum");

static bool is_own(const struct uet_sums *sums, const uint8_t host[16])
{
	for (uint32_t i = 0; i < sums->count; i++) {
		if (memcmp(sums->own[i], host, 16) == 0)
			return true;
	}
	return false;
}

bool uet_sums_own(struct uet_sums *sums, const uint8_t host[16])
{
	if (is_own(sums, host))
		return true;
	if (sums->count == UET_SUMS_OWN)
		return false;
	memcpy(sums->own[sums->count++], host, 16);
	return true;
}

bool uet_sums_good(const struct uet_sums *sums, const uint8_t host[16],
		   const uint8_t *data, size_t len)
{
	struct be32 sum;

	if (len <= UET_SUMS_BYTES)
		return false;
	memcpy(&sum, data + len - UET_SUMS_BYTES, sizeof(sum));
	if (be32_get(sum) == 0 && is_own(sums, host))
		return true;
	return be32_get(sum) == uet_crc(0, data, len - UET_SUMS_BYTES);
}
