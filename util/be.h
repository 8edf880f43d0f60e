/* SPDX-License-Identifier: BSD-2-Clause */
/* Big-endian fields of what goes over a wire. A bare integer cannot be assigned to these
 * by accident. */
#ifndef WEFT_UTIL_BE_H
#define WEFT_UTIL_BE_H

#include <endian.h>
#include <stdint.h>

struct be16 {
	uint16_t v;
};
struct be32 {
	uint32_t v;
};
struct be64 {
	uint64_t v;
};

static inline struct be16 be16_of(uint16_t v)
{
	return (struct be16){htobe16(v)};
}

static inline struct be32 be32_of(uint32_t v)
{
	return (struct be32){htobe32(v)};
}

static inline struct be64 be64_of(uint64_t v)
{
	return (struct be64){htobe64(v)};
}

static inline uint16_t be16_get(struct be16 v)
{
	return be16toh(v.v);
}

static inline uint32_t be32_get(struct be32 v)
{
	return be32toh(v.v);
}

static inline uint64_t be64_get(struct be64 v)
{
	return be64toh(v.v);
}

#endif
