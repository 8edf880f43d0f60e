/* SPDX-License-Identifier: BSD-2-Clause */
/* See parse.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/parse.h"

static const char size_unit[] = "KMGT";

bool parse_int(const char *text, int64_t min, int64_t max, int64_t *value)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || end == text || *end || v < min || v > max)
		return false;
	*value = v;
	return true;
}

bool parse_seconds(const char *text, int64_t *us)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (errno || end == text || *end || !(v >= 1e-6) || v > 1e9)
		return false;
	*us = (int64_t)(v * 1e6);
	return true;
}

static bool size_at(const char *text, const char *end, uint64_t *bytes)
{
	uint64_t v = 0;
	const char *unit;

	if (text == end)
		return false;
	for (; text < end && *text >= '0' && *text <= '9'; text++) {
		if (v > (UINT64_MAX - 9) / 10)
			return false;
		v = v * 10 + (uint64_t)(*text - '0');
	}
	if (text < end) {
		unit = memchr(size_unit, *text, sizeof(size_unit) - 1);
		for (int k = 0; unit && k <= unit - size_unit; k++) {
			if (v > UINT64_MAX / 1024)
				return false;
			v *= 1024;
		}
		if (!unit || text + 1 != end)
			return false;
	}
	*bytes = v;
	return true;
}

bool parse_size(const char *text, uint64_t *bytes)
{
	return size_at(text, text + strlen(text), bytes);
}

const char *parse_size_range(const char *text, uint64_t *first, uint64_t *last)
{
	const char *colon = strchr(text, ':');
	uint64_t a, b;

	if (!size_at(text, colon ? colon : text + strlen(text), &a))
		return "--sizes must be A:B or A, in bytes or with K, M or G, not";
	b = a;
	if (colon && !parse_size(colon + 1, &b))
		return "--sizes must end in bytes or with K, M or G, not as";
	if (a > b)
		return "--sizes must begin with the smaller size, not be";
	*first = a;
	*last = b;
	return NULL;
}

void parse_size_print(uint64_t bytes, char text[PARSE_SIZE_TEXT])
{
	char unit[2] = "";

	for (int k = 0; bytes && bytes % 1024 == 0 && size_unit[k]; k++) {
		bytes /= 1024;
		unit[0] = size_unit[k];
	}
	snprintf(text, PARSE_SIZE_TEXT, "%" PRIu64 "%s", bytes, unit);
}
