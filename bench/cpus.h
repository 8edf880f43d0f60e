/* SPDX-License-Identifier: BSD-2-Clause */
/* Which two processors the two processes of a benchmark are pinned to. */
#ifndef WEFT_BENCH_CPUS_H
#define WEFT_BENCH_CPUS_H

#include <stdbool.h>

/*
 * Two different allowed processors: of different cores if there are such, then of one
 * last-level cache, then of one package; processor 0, which usually serves the
 * interrupts, only where there are no two others. *why: what they share, a constant.
 * False: fewer than two are allowed.
 */
bool cpus_choose(int cpu[2], const char **why);
/* False, with errno, when the process may not run there. */
bool cpus_pin(int cpu);

#endif
