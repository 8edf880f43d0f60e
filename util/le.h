/* SPDX-License-Identifier: BSD-2-Clause */
/* Little-endian fields of what goes over a wire. A bare integer cannot be assigned to
 * these by accident. */
#ifndef WEFT_UTIL_LE_H
#define WEFT_UTIL_LE_H

#include <endian.h>
#include <stdint.h>

struct le16 {
	uint16_t v;
};
struct le32 {
	uint32_t v;
};
struct le64 {
	uint64_t v;
};

static inline struct le16 le16_of(uint16_t v)
{
	return (struct le16){htole16(v)};
}

static inline struct le32 le32_of(uint32_t v)
{
	return (struct le32){htole32(v)};
}

static inline struct le64 le64_of(uint64_t v)
{
	return (struct le64){htole64(v)};
}

static inline uint16_t le16_get(struct le16 v)
{
	return le16toh(v.v);
}

static inline uint32_t le32_get(struct le32 v)
{
	return le32toh(v.v);
}

static inline uint64_t le64_get(struct le64 v)
{
	return le64toh(v.v);
}

#endif
