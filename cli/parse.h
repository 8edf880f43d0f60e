/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of command line options: the whole text must make sense. */
#ifndef WEFT_CLI_PARSE_H
#define WEFT_CLI_PARSE_H

#include <stdbool.h>
#include <stdint.h>

bool parse_int(const char *text, int64_t min, int64_t max, int64_t *value);

/* "1.5": seconds > 0, as microseconds. */
bool parse_seconds(const char *text, int64_t *us);

/* "8", "64K", "16M", "1G": bytes, powers of 1024. */
bool parse_size(const char *text, uint64_t *bytes);

/* "8:16M", or one size alone. NULL, or what is wrong, to be followed by the text. */
const char *parse_size_range(const char *text, uint64_t *first, uint64_t *last);

/* The shortest of the forms that parse_size reads: 65536 is "64K". */
enum { PARSE_SIZE_TEXT = 24 };
void parse_size_print(uint64_t bytes, char text[PARSE_SIZE_TEXT]);

#endif
