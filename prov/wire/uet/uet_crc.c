/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C; see uet_crc.h. */
#include "config.h"

#include "prov/wire/uet/uet_crc.h"

#include <endian.h>
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

/* Older Clang has the ARM instructions only where all code may use them. */
#if defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16)
#define ARM
#endif

#if defined(__x86_64__) || defined(ARM)

#if defined(__x86_64__)
#include <immintrin.h>

#define FAST __attribute__((target("sse4.2,pclmul")))

FAST static inline uint64_t sum_8(uint64_t sum, uint64_t word)
{
	return __builtin_ia32_crc32di(sum, word);
}

FAST static inline uint32_t sum_1(uint32_t sum, uint8_t byte)
{
	return __builtin_ia32_crc32qi(sum, byte);
}

/* Without carries; the lower half. */
FAST static inline uint64_t product(uint64_t a, uint32_t b)
{
	typedef long long two __attribute__((vector_size(16)));
	two x = {(long long)a, 0}, y = {(long long)b, 0};

	return (uint64_t)__builtin_ia32_pclmulqdq128(x, y, 0)[0];
}
#else
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>

#include <asm/hwcap.h>

#define FAST __attribute__((target("+crc+crypto")))

FAST static inline uint64_t sum_8(uint64_t sum, uint64_t word)
{
	return __crc32cd((uint32_t)sum, word);
}

FAST static inline uint32_t sum_1(uint32_t sum, uint8_t byte)
{
	return __crc32cb(sum, byte);
}

FAST static inline uint64_t product(uint64_t a, uint32_t b)
{
	return (uint64_t)vmull_p64((poly64_t)a, (poly64_t)b);
}
#endif

/* Three pieces of a length, one behind the other, whose sums don't wait for each other;
 * and what moves the first's sum over the other two, the second's over the third: x to
 * the power of as many bits, less 33, reflected. A long one is a packet of 8 KiB, a short
 * one of Ethernet. */
struct thirds {
	size_t len;
	uint32_t over_two;
	uint32_t over_one;
};

static const struct thirds thirds[] = {{2688, 0x0e0126b2, 0x889774e1},
				       {448, 0x68bce87a, 0x1b03397f}};

/* The first byte is the lowest: both kinds of processors are used so, where there are
 * these instructions. */
static inline uint64_t word_at(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return le64toh(word);
}

/* The product of 32 by 32 bits stands one bit too low, and the instruction multiplies by
 * x^32: the 33 above. */
FAST static inline uint64_t moved(uint64_t sum, uint32_t by)
{
	return sum_8(0, product(sum, by));
}

FAST static uint64_t by_thirds(uint64_t sum, const uint8_t *at, const struct thirds *t)
{
	const uint8_t *end = at + t->len;
	size_t len = t->len;
	uint64_t second = 0, third = 0;

	for (; at < end; at += 8) {
		sum = sum_8(sum, word_at(at));
		second = sum_8(second, word_at(at + len));
		third = sum_8(third, word_at(at + 2 * len));
	}
	return moved(sum, t->over_two) ^ moved(second, t->over_one) ^ third;
}

#if defined(__x86_64__)
/* 64 bytes at a time, where the processor multiplies four pairs of words at once: what
 * was read so far is moved over what comes next, and what is left in the end has the same
 * remainder as all of it. Each 128 bits are moved as two words by two factors: x to the
 * power of as many bits, plus and less 32, reflected, one bit higher. */
#define WIDE __attribute__((target("sse4.2,avx512f,vpclmulqdq")))

typedef long long lanes __attribute__((vector_size(64)));
typedef long long lanes_at __attribute__((vector_size(64), aligned(1), may_alias));

#define STRIDE (4 * sizeof(lanes))

#define FACTORS(a, b)                  \
	{                              \
		a, b, a, b, a, b, a, b \
	}

static const lanes over_four = FACTORS(0xdcb17aa4, 0xb9e02b86);
static const lanes over_one = FACTORS(0x740eef02, 0x9e4addf8);

WIDE static inline lanes lanes_moved(lanes sum, lanes by)
{
	return (lanes)_mm512_clmulepi64_epi128((__m512i)sum, (__m512i)by, 0x00) ^
	       (lanes)_mm512_clmulepi64_epi128((__m512i)sum, (__m512i)by, 0x11);
}

WIDE static inline lanes lanes_from(const uint8_t *at)
{
	return *(const lanes_at *)(const void *)at;
}

/* At least STRIDE bytes; says how many it took. */
WIDE static uint32_t by_lanes(uint32_t crc, const uint8_t *at, size_t len, size_t *took)
{
	lanes a = lanes_from(at) ^ (lanes) { crc }, b = lanes_from(at + 64);
	lanes c = lanes_from(at + 128), d = lanes_from(at + 192);
	uint64_t sum = 0;
	size_t done = STRIDE;

	for (; len - done >= STRIDE; done += STRIDE) {
		a = lanes_moved(a, over_four) ^ lanes_from(at + done);
		b = lanes_moved(b, over_four) ^ lanes_from(at + done + 64);
		c = lanes_moved(c, over_four) ^ lanes_from(at + done + 128);
		d = lanes_moved(d, over_four) ^ lanes_from(at + done + 192);
	}
	b ^= lanes_moved(a, over_one);
	c ^= lanes_moved(b, over_one);
	d ^= lanes_moved(c, over_one);
	for (; len - done >= sizeof(lanes); done += sizeof(lanes))
		d = lanes_moved(d, over_one) ^ lanes_from(at + done);
	for (unsigned i = 0; i < 8; i++)
		sum = __builtin_ia32_crc32di(sum, (uint64_t)d[i]);
	*took = done;
	return (uint32_t)sum;
}

static bool processor_is_wide(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

static size_t wide_first(uint32_t *crc, const uint8_t *at, size_t len)
{
	size_t took = 0;

	if (len >= STRIDE && processor_is_wide())
		*crc = by_lanes(*crc, at, len, &took);
	return took;
}

static bool processor_can(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#else
static size_t wide_first(uint32_t *crc, const uint8_t *at, size_t len)
{
	(void)crc;
	(void)at;
	(void)len;
	return 0;
}

static bool processor_can(void)
{
	const unsigned long both = HWCAP_CRC32 | HWCAP_PMULL;

	return (getauxval(AT_HWCAP) & both) == both;
}
#endif

FAST static uint32_t by_processor(uint32_t crc, const uint8_t *at, size_t len)
{
	size_t took = wide_first(&crc, at, len);
	uint64_t sum = crc;

	at += took;
	len -= took;
	for (unsigned i = 0; i < sizeof(thirds) / sizeof(thirds[0]); i++) {
		size_t step = 3 * thirds[i].len;

		for (; len >= step; at += step, len -= step)
			sum = by_thirds(sum, at, &thirds[i]);
	}
	for (; len >= 8; at += 8, len -= 8)
		sum = sum_8(sum, word_at(at));
	crc = (uint32_t)sum;
	while (len--)
		crc = sum_1(crc, *at++);
	return crc;
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
