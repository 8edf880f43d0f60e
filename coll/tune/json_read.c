/* SPDX-License-Identifier: BSD-2-Clause */
/* See json_read.h. */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coll/tune/json_read.h"

static bool fault(struct json_read *j, const char *what)
{
	if (!j->fault)
		j->fault = what;
	return false;
}

static char next(struct json_read *j)
{
	while (j->at < j->len && strchr(" \t\r\n", j->text[j->at]) && j->text[j->at])
		j->at++;
	return j->at < j->len ? j->text[j->at] : '\0';
}

bool json_read_is(struct json_read *j, char mark)
{
	if (j->fault || next(j) != mark)
		return false;
	j->at++;
	return true;
}

bool json_read_mark(struct json_read *j, char mark)
{
	static const char *const wanted[] = {"{", "}", "[", "]", ":", ","};

	if (json_read_is(j, mark))
		return true;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (*wanted[i] == mark)
			return fault(j, wanted[i]);
	}
	return fault(j, "something else");
}

bool json_read_text(struct json_read *j, char text[JSON_READ_TEXT])
{
	size_t used = 0;

	if (j->fault || next(j) != '"')
		return fault(j, "a text");
	for (j->at++; j->at < j->len && j->text[j->at] != '"'; j->at++) {
		/* What is looked at has no escapes: they stay as they are written. */
		if (j->text[j->at] == '\\' && ++j->at == j->len)
			break;
		if ((unsigned char)j->text[j->at] < ' ')
			return fault(j, "a text in one line");
		if (used < JSON_READ_TEXT - 1)
			text[used++] = j->text[j->at];
	}
	text[used] = '\0';
	if (j->at >= j->len)
		return fault(j, "the end of a text");
	j->at++;
	return true;
}

bool json_read_number(struct json_read *j, uint64_t *value)
{
	const size_t begin = j->at;

	*value = 0;
	if (j->fault || !isdigit((unsigned char)next(j)))
		return fault(j, "a whole number");
	for (; j->at < j->len && isdigit((unsigned char)j->text[j->at]); j->at++) {
		if (__builtin_mul_overflow(*value, UINT64_C(10), value) ||
		    __builtin_add_overflow(*value, (uint64_t)(j->text[j->at] - '0'),
					   value)) {
			j->at = begin;
			return fault(j, "a number of 64 bits");
		}
	}
	if (j->at < j->len && strchr(".eE", j->text[j->at]) && j->text[j->at])
		return fault(j, "a whole number");
	return true;
}

/* null, true, -1.5e3: all that has no marks of its own. */
static bool word_skip(struct json_read *j)
{
	const size_t begin = j->at;

	while (j->at < j->len &&
	       (isalnum((unsigned char)j->text[j->at]) ||
		strchr("+-.", j->text[j->at])) &&
	       j->text[j->at])
		j->at++;
	return j->at > begin || fault(j, "a value");
}

bool json_read_real(struct json_read *j, double *value)
{
	char text[JSON_READ_TEXT];
	char *end = text;
	size_t begin, len;

	*value = NAN;
	if (j->fault)
		return false;
	next(j);
	begin = j->at;
	if (!word_skip(j))
		return fault(j, "a number");
	len = j->at - begin;
	if (len < sizeof(text)) {
		memcpy(text, j->text + begin, len);
		text[len] = '\0';
		if (strcmp(text, "null") == 0)
			return true;
		/* As JSON has them: no hexadecimal ones, no infinity. */
		if (strspn(text, "+-.0123456789eE") == len)
			*value = strtod(text, &end);
	}
	if (len >= sizeof(text) || end == text || *end || !isfinite(*value)) {
		j->at = begin;
		return fault(j, "a number");
	}
	return true;
}

bool json_read_skip(struct json_read *j)
{
	char open[JSON_READ_DEPTH], text[JSON_READ_TEXT];
	int depth = 0;

	do {
		const char c = next(j);

		if (j->fault)
			return false;
		if (c == '{' || c == '[') {
			if (depth == JSON_READ_DEPTH)
				return fault(j, "less depth");
			open[depth++] = c;
			j->at++;
		} else if (c == '}' || c == ']') {
			if (!depth || open[--depth] != (c == '}' ? '{' : '['))
				return fault(j, "the other bracket");
			j->at++;
		} else if (depth && (c == ',' || c == ':')) {
			j->at++;
		} else if (c == '"') {
			json_read_text(j, text);
		} else {
			word_skip(j);
		}
	} while (depth && !j->fault);
	return !j->fault;
}

bool json_read_end(struct json_read *j)
{
	if (j->fault)
		return false;
	next(j);
	return j->at == j->len || fault(j, "the end");
}

void json_read_where(const struct json_read *j, int *line, int *column)
{
	*line = *column = 1;
	for (size_t i = 0; i < j->at && i < j->len; i++) {
		*column = j->text[i] == '\n' ? 1 : *column + 1;
		*line += j->text[i] == '\n';
	}
}
