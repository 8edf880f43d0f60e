/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes one JSON document, piece by piece, indented. The caller nests correctly
 * (asserted): inside an object every value has a key, inside an array none (NULL).
 */
#ifndef WEFT_CLI_JSON_H
#define WEFT_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16 };

struct json {
	FILE *out;
	int depth;
	bool any[JSON_DEPTH + 1];    /* something was written at this depth */
	bool object[JSON_DEPTH + 1]; /* else an array */
};

void json_init(struct json *j, FILE *out);
void json_fini(struct json *j); /* ends the document's last line */

void json_object_begin(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_begin(struct json *j, const char *key);
void json_array_end(struct json *j);

/* Text may hold any bytes; what is not UTF-8 is replaced by U+FFFD. NULL gives null. */
void json_text(struct json *j, const char *key, const char *value);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_real(struct json *j, const char *key, double value); /* null if not finite */
void json_bool(struct json *j, const char *key, bool value);

#endif
