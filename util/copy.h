/* SPDX-License-Identifier: BSD-2-Clause */
/* Copying what is small, without a call: what is around it keeps its registers. */
#ifndef WEFT_UTIL_COPY_H
#define WEFT_UTIL_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* From here on memcpy is better. */
#define COPY_SMALL_MAX 256

static inline void copy_16(char *to, const char *from)
{
	struct {
		uint64_t word[2];
	} both;

	memcpy(&both, from, sizeof(both));
	memcpy(to, &both, sizeof(both));
}

/* For lengths that are rarely above COPY_SMALL_MAX; from and to may be anything when len
 * is 0. Pieces overlap where len is no multiple of theirs. */
static inline void copy_small(void *to, const void *from, size_t len)
{
	char *out = to;
	const char *in = from;

	if (__builtin_expect(len - 8 <= 8, 1)) { /* 8 to 16 */
		uint64_t first, last;

		memcpy(&first, in, sizeof(first));
		memcpy(&last, in + len - sizeof(last), sizeof(last));
		memcpy(out, &first, sizeof(first));
		memcpy(out + len - sizeof(last), &last, sizeof(last));
	} else if (len > 16) {
		size_t at = 0;

		do {
			copy_16(out + at, in + at);
			at += 16;
		} while (at < len - 16);
		copy_16(out + len - 16, in + len - 16);
	} else {
		for (size_t at = 0; at < len; at++) {
			/* The compiler must not make a call of it. */
			*(volatile char *)(out + at) = in[at];
		}
	}
}

/* For every length; a call above COPY_SMALL_MAX. */
static inline void copy_any(void *to, const void *from, size_t len)
{
	if (len <= COPY_SMALL_MAX) {
		copy_small(to, from, len);
	} else {
		memcpy(to, from, len);
	}
}

#endif
