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
static bool processor_can(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#else
static bool processor_can(void)
{
	const unsigned long both = HWCAP_CRC32 | HWCAP_PMULL;

	return (getauxval(AT_HWCAP) & both) == both;
}
#endif

FAST static uint32_t by_processor(uint32_t crc, const uint8_t *at, size_t len)
{
	uint64_t sum = crc;

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

#if defined(__x86_64__)
/* 64 bytes at a time, where the processor multiplies four pairs of words at once: what
 * was read so far is moved over what comes next, and what is left in the end has the same
 * remainder as all of it. Each 128 bits are moved as two words by two factors: x to the
 * power of as many bits, plus and less 32, reflected, one bit higher. */
#define WIDE __attribute__((target("sse4.2,avx512f,avx512bw,avx512vbmi2,vpclmulqdq")))

typedef long long lanes __attribute__((vector_size(64)));
typedef long long lanes_at __attribute__((vector_size(64), aligned(1), may_alias));

#define STRIDE (4 * sizeof(lanes))
/* Four lanes, and what may come before them. */
#define WIDE_LEAST (5 * sizeof(lanes))

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

/* The bytes there; copied, if there is a place for them. */
WIDE static inline lanes lanes_take(uint8_t *to, const uint8_t *from, size_t at)
{
	lanes v = *(const lanes_at *)(const void *)(from + at);

	if (to)
		*(lanes_at *)(void *)(to + at) = v;
	return v;
}

/* The first bytes, fewer than a vector has, and what was summed up before them; as if
 * only zeros had been before, which don't count. Whole vectors follow, so that more of
 * them may be read and written. */
WIDE static inline lanes lanes_first(uint8_t *to, const uint8_t *from, size_t len,
				     uint32_t crc)
{
	lanes v = lanes_take(to, from, 0) ^ (lanes) { crc };

	return (lanes)_mm512_maskz_expand_epi8(~UINT64_C(0) << (sizeof(lanes) - len),
					       (__m512i)v);
}

/* At least WIDE_LEAST bytes. What makes no whole vector comes first: at the end it would
 * be taken word by word. */
WIDE static inline uint32_t by_lanes(uint32_t crc, uint8_t *to, const uint8_t *from,
				     size_t len)
{
	size_t at = len % sizeof(lanes);
	lanes before = {0};
	lanes a, b, c, d;
	uint64_t sum = 0;

	if (at)
		before = lanes_first(to, from, at, crc);
	crc = at < sizeof(crc) ? crc >> 8 * at : 0;
	a = lanes_take(to, from, at) ^ (lanes) { crc } ^ lanes_moved(before, over_one);
	b = lanes_take(to, from, at + 64);
	c = lanes_take(to, from, at + 128);
	d = lanes_take(to, from, at + 192);
	for (at += STRIDE; len - at >= STRIDE; at += STRIDE) {
		a = lanes_moved(a, over_four) ^ lanes_take(to, from, at);
		b = lanes_moved(b, over_four) ^ lanes_take(to, from, at + 64);
		c = lanes_moved(c, over_four) ^ lanes_take(to, from, at + 128);
		d = lanes_moved(d, over_four) ^ lanes_take(to, from, at + 192);
	}
	b ^= lanes_moved(a, over_one);
	c ^= lanes_moved(b, over_one);
	d ^= lanes_moved(c, over_one);
	for (; at < len; at += sizeof(lanes))
		d = lanes_moved(d, over_one) ^ lanes_take(to, from, at);
	for (unsigned i = 0; i < 8; i++)
		sum = __builtin_ia32_crc32di(sum, (uint64_t)d[i]);
	return (uint32_t)sum;
}

WIDE static uint32_t wide_look(uint32_t crc, const uint8_t *at, size_t len)
{
	return by_lanes(crc, NULL, at, len);
}

WIDE static uint32_t wide_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t len)
{
	return by_lanes(crc, to, from, len);
}

static bool is_wide(size_t len)
{
	return len >= WIDE_LEAST && __builtin_cpu_supports("vpclmulqdq") &&
	       __builtin_cpu_supports("avx512vbmi2") &&
	       __builtin_cpu_supports("avx512bw");
}
#else
static bool is_wide(size_t len)
{
	(void)len;
	return false;
}

static uint32_t wide_look(uint32_t crc, const uint8_t *at, size_t len)
{
	(void)at;
	(void)len;
	return crc;
}

static uint32_t wide_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t len)
{
	(void)to;
	(void)from;
	(void)len;
	return crc;
}
#endif

uint32_t uet_crc(uint32_t crc, const void *data, size_t len)
{
	crc = ~crc;
	if (is_wide(len))
		crc = wide_look(crc, data, len);
	else
		crc = processor_can() ? by_processor(crc, data, len)
				      : by_table(crc, data, len);
	return ~crc;
}

uint32_t uet_crc_copy(uint32_t crc, void *to, const void *from, size_t len)
{
	if (is_wide(len))
		return ~wide_copy(~crc, to, from, len);
	if (len)
		memcpy(to, from, len);
	return uet_crc(crc, to, len);
}

uint32_t uet_crc_plain(uint32_t crc, const void *data, size_t len)
{
	return ~by_table(~crc, data, len);
}
