/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of ranks as text for people: "1-3, 7, 12-15 and 40 more". */
#ifndef WEFT_BOOT_RANKLIST_H
#define WEFT_BOOT_RANKLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranks of [0, size) for which has() says true; at most 8 runs are spelled out. Always
 * terminated; "none" when the set is empty. Returns how many ranks there are. */
int32_t ranklist_format(char *text, size_t len, int32_t size,
			bool (*has)(const void *arg, int32_t rank), const void *arg);

#endif
