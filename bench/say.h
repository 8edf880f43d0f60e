/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors and time of the benchmark programs. */
#ifndef WEFT_BENCH_SAY_H
#define WEFT_BENCH_SAY_H

#include <stdbool.h>
#include <stdint.h>

/* A line on stderr. */
__attribute__((format(printf, 1, 2))) void bench_say(const char *fmt, ...);
/* And the process ends with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void bench_die(const char *fmt, ...);
uint64_t bench_now_ns(void);
/* A whole number from least to most. */
bool bench_number(const char *text, uint64_t least, uint64_t most, uint64_t *value);

#endif
