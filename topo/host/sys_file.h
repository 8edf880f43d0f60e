/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of /sys: short texts, numbers, links. Paths are made as by printf; what is not
 * there, cannot be read or is not what it should be is false. */
#ifndef WEFT_TOPO_HOST_SYS_FILE_H
#define WEFT_TOPO_HOST_SYS_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { SYS_TEXT = 4096 };

/* Up to SYS_TEXT - 1 bytes, without the last newline. */
__attribute__((format(printf, 2, 3))) bool sys_text(char text[SYS_TEXT], const char *fmt,
						    ...);
__attribute__((format(printf, 2, 3))) bool sys_int(int64_t *value, const char *fmt, ...);
__attribute__((format(printf, 2, 3))) bool sys_hex(uint64_t *value, const char *fmt, ...);
/* The path without links; it has to be there. */
__attribute__((format(printf, 2, 3))) bool sys_real(char path[PATH_MAX], const char *fmt,
						    ...);

/* "0000:3b:00.0", also with domains of five digits and more. */
bool sys_is_pci(const char *name);

#endif
