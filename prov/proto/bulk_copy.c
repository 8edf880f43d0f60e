/* SPDX-License-Identifier: BSD-2-Clause */
/* Filling a bulk slot; see bulk_copy.h. */
#include "config.h"

#include "prov/proto/bulk_copy.h"

#include <stdbool.h>
#include <string.h>

#include "prov/mem/device.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LINE 64

static void fill(char *to, const char *from, size_t len)
{
	size_t head = -(uintptr_t)to & (LINE - 1);

	head = head < len ? head : len;
	memcpy(to, from, head);
	to += head;
	from += head;
	len -= head;
	for (; len >= LINE; len -= LINE, to += LINE, from += LINE) {
		const __m128i *f = (const __m128i *)(const void *)from;
		__m128i *t = (__m128i *)(void *)to;
		__m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1);
		__m128i c = _mm_loadu_si128(f + 2), d = _mm_loadu_si128(f + 3);

		_mm_stream_si128(t, a);
		_mm_stream_si128(t + 1, b);
		_mm_stream_si128(t + 2, c);
		_mm_stream_si128(t + 3, d);
	}
	memcpy(to, from, len);
}

static void fence(void)
{
	_mm_sfence();
}

__attribute__((target("avx2"))) static size_t empty_wide(char *to, const char *from,
							 size_t len)
{
	size_t at = 0;

	for (; at + 2 * LINE <= len; at += 2 * LINE) {
		const __m256i *f = (const __m256i *)(const void *)(from + at);
		__m256i *t = (__m256i *)(void *)(to + at);
		__m256i a = _mm256_loadu_si256(f), b = _mm256_loadu_si256(f + 1);
		__m256i c = _mm256_loadu_si256(f + 2), d = _mm256_loadu_si256(f + 3);

		_mm256_storeu_si256(t, a);
		_mm256_storeu_si256(t + 1, b);
		_mm256_storeu_si256(t + 2, c);
		_mm256_storeu_si256(t + 3, d);
	}
	return at;
}

static void empty(char *to, const char *from, size_t len)
{
	size_t done = 0;

	if (__builtin_cpu_supports("avx2")) {
		done = empty_wide(to, from, len);
	}
	memcpy(to + done, from + done, len - done);
}

#else

static void fill(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
}

static void empty(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
}

static void fence(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

#endif

/* Walks over the pieces of [offset, offset + len). */
static int walk(const struct iovec *iov, uint32_t count, size_t offset, char *slot,
		size_t len, bool filling)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && len > 0 && i < count; i++) {
		char *user;
		size_t here;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		user = (char *)iov[i].iov_base + offset;
		here = iov[i].iov_len - offset;
		here = here < len ? here : len;
		if (mem_is_device(user, here)) {
			ret = filling ? mem_copy(slot, user, here)
				      : mem_copy(user, slot, here);
		} else if (filling) {
			fill(slot, user, here);
		} else {
			empty(user, slot, here);
		}
		slot += here;
		len -= here;
		offset = 0;
	}
	return ret;
}

int bulk_gather(const struct iovec *iov, uint32_t count, size_t offset, void *to,
		size_t len)
{
	int ret = walk(iov, count, offset, to, len, true);

	fence();
	return ret;
}

int bulk_scatter(const struct iovec *iov, uint32_t count, size_t offset, const void *from,
		 size_t len)
{
	return walk(iov, count, offset, (char *)(uintptr_t)from, len, false);
}
