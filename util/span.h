/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of a text that is not ended by a zero byte: what parsers of small texts need. A
 * span points into the text, which belongs to somebody else. */
#ifndef WEFT_UTIL_SPAN_H
#define WEFT_UTIL_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const char *at;
	size_t len;
};

static inline struct span span_of(const char *text)
{
	return (struct span){text, strlen(text)};
}

static inline bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static inline bool span_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next word off *s: bytes without blanks. Length 0: there is none. */
static inline struct span span_word(struct span *s)
{
	struct span word;

	while (s->len > 0 && span_blank(*s->at)) {
		s->at++;
		s->len--;
	}
	word.at = s->at;
	while (s->len > 0 && !span_blank(*s->at)) {
		s->at++;
		s->len--;
	}
	word.len = (size_t)(s->at - word.at);
	return word;
}

/* Takes what lies before the next `by` off *s, and that one with it; all where there is
 * none. */
static inline struct span span_cut(struct span *s, char by)
{
	const char *at = s->len ? (const char *)memchr(s->at, by, s->len) : NULL;
	struct span first = *s;

	if (at) {
		first.len = (size_t)(at - s->at);
		s->at = at + 1;
		s->len -= first.len + 1;
	} else {
		s->at += s->len;
		s->len = 0;
	}
	return first;
}

/* Takes the next line off *text, without its end and without a comment that '#' begins.
 */
static inline struct span span_line(struct span *text)
{
	struct span line = span_cut(text, '\n');

	return span_cut(&line, '#');
}

static inline bool span_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A whole number of 1 to 9 decimal digits and nothing else; false: it is none. */
static inline bool span_number(struct span s, uint32_t *value)
{
	uint32_t v = 0;

	if (s.len == 0 || s.len > 9)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!span_digit(s.at[i]))
			return false;
		v = v * 10 + (uint32_t)(s.at[i] - '0');
	}
	*value = v;
	return true;
}

/* The same, and K, M or G (powers of 1024) may come behind it. */
static inline bool span_bytes(struct span s, uint64_t *value)
{
	unsigned shift = 0;
	uint32_t v;

	if (s.len > 0) {
		char unit = s.at[s.len - 1];

		shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
	}
	if (shift)
		s.len--;
	if (!span_number(s, &v))
		return false;
	*value = (uint64_t)v << shift;
	return true;
}

/* For "%.*s": the first 60 bytes of it, since a stranger may have written it. */
#define SPAN_SHOWN(s) ((s).len > 60 ? 60 : (int)(s).len), (s).at

#endif
