/* SPDX-License-Identifier: BSD-2-Clause */
/* See json.h. */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/json.h"

void json_init(struct json *j, FILE *out)
{
	memset(j, 0, sizeof(*j));
	j->out = out;
}

void json_fini(struct json *j)
{
	assert(j->depth == 0);
	fputc('\n', j->out);
}

/* Length of the UTF-8 sequence at s, 0 if it is none. */
static int utf8_len(const unsigned char *s)
{
	int len = s[0] < 0x80	? 1
		  : s[0] < 0xc2 ? 0
		  : s[0] < 0xe0 ? 2
		  : s[0] < 0xf0 ? 3
		  : s[0] < 0xf5 ? 4
				: 0;

	for (int i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, beyond U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static void put_text(struct json *j, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', j->out);
	while (*s) {
		int len = utf8_len(s);

		if (*s == '"' || *s == '\\')
			fprintf(j->out, "\\%c", *s);
		else if (*s < 0x20)
			fprintf(j->out, "\\u%04x", *s);
		else if (len == 0)
			fputs("\\ufffd", j->out);
		else
			fwrite(s, 1, (size_t)len, j->out);
		s += len ? len : 1;
	}
	fputc('"', j->out);
}

/* Comma, new line, indentation, key: all that stands before a value. */
static void put_lead(struct json *j, const char *key)
{
	assert(j->depth == 0 || j->object[j->depth] == (key != NULL));
	if (j->depth > 0)
		fprintf(j->out, "%s\n%*s", j->any[j->depth] ? "," : "", 2 * j->depth, "");
	j->any[j->depth] = true;
	if (key) {
		put_text(j, key);
		fputs(": ", j->out);
	}
}

static void nest(struct json *j, const char *key, bool object)
{
	put_lead(j, key);
	assert(j->depth < JSON_DEPTH);
	j->depth++;
	j->any[j->depth] = false;
	j->object[j->depth] = object;
	fputc(object ? '{' : '[', j->out);
}

static void unnest(struct json *j, bool object)
{
	assert(j->depth > 0 && j->object[j->depth] == object);
	j->depth--;
	if (j->any[j->depth + 1])
		fprintf(j->out, "\n%*s", 2 * j->depth, "");
	fputc(object ? '}' : ']', j->out);
}

void json_object_begin(struct json *j, const char *key)
{
	nest(j, key, true);
}

void json_object_end(struct json *j)
{
	unnest(j, true);
}

void json_array_begin(struct json *j, const char *key)
{
	nest(j, key, false);
}

void json_array_end(struct json *j)
{
	unnest(j, false);
}

void json_text(struct json *j, const char *key, const char *value)
{
	put_lead(j, key);
	if (value)
		put_text(j, value);
	else
		fputs("null", j->out);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	put_lead(j, key);
	fprintf(j->out, "%" PRId64, value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	put_lead(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_real(struct json *j, const char *key, double value)
{
	put_lead(j, key);
	if (isfinite(value))
		fprintf(j->out, "%.9g", value);
	else
		fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	put_lead(j, key);
	fputs(value ? "true" : "false", j->out);
}
