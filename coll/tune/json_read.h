/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads one JSON document, token by token, from memory: as much of JSON as is needed to
 * read a table and to pass over what is not known. The first fault stays.
 */
#ifndef WEFT_TUNE_JSON_READ_H
#define WEFT_TUNE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_READ_DEPTH 32
#define JSON_READ_TEXT                                                   \
	64 /* of a name or a text that is looked at; longer ones are cut \
	    */

struct json_read {
	const char *text;
	size_t len, at;
	const char *fault; /* NULL: none; what was wanted at `at` */
};

/* Each skips white space first. False with a fault, or because of an earlier one. */
bool json_read_mark(struct json_read *j, char mark); /* one of {}[]:, */
bool json_read_text(struct json_read *j, char text[JSON_READ_TEXT]);
bool json_read_number(struct json_read *j, uint64_t *value); /* whole, not negative */
bool json_read_real(struct json_read *j, double *value);     /* null: not a number */
bool json_read_skip(struct json_read *j);		     /* any value */
/* Whether the mark is next; then it is taken. */
bool json_read_is(struct json_read *j, char mark);
bool json_read_end(struct json_read *j); /* nothing follows */

/* Line and column of the fault, from 1. */
void json_read_where(const struct json_read *j, int *line, int *column);

#endif
