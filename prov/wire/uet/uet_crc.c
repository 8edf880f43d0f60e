/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C; see uet_crc.h. */
#include "config.h"

#include "prov/wire/uet/uet_crc.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* A nibble at a time: small, and only for processors without the instruction. */
static uint32_t by_table(uint32_t crc, const uint8_t *at, size_t len)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	while (len--) {
		crc ^= *at++;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_processor(uint32_t crc,
							       const uint8_t *at,
							       size_t len)
{
	uint64_t wide = crc;

	for (; len >= 8; at += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *at++);
	return crc;
}

static bool processor_can(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t by_processor(uint32_t crc, const uint8_t *at, size_t len)
{
	return by_table(crc, at, len);
}

static bool processor_can(void)
{
	return false;
}
#endif

uint32_t uet_crc(uint32_t crc, const void *data, size_t len)
{
	crc = ~crc;
	crc = processor_can() ? by_processor(crc, data, len) : by_table(crc, data, len);
	return ~crc;
}

uint32_t uet_crc_plain(uint32_t crc, const void *data, size_t len)
{
	return ~by_table(~crc, data, len);
}
