/* SPDX-License-Identifier: BSD-2-Clause */
/* What device.c and device_copy.c share. */
#ifndef WEFT_MEM_DEVICE_INT_H
#define WEFT_MEM_DEVICE_INT_H

#include <limits.h>
#include <stddef.h>

struct gpu;

/* The one that was found; not before mem_device_open() was true. */
struct gpu *mem_device_gpu(void);

#define MEM_DEVICE_NONE INT_MAX

/* The GPU that has all of [addr, addr + len), len not 0; MEM_DEVICE_NONE: the host has
 * it; -FI_EFAULT: it is registered in part, or no longer what was registered. */
int mem_device_find(const void *addr, size_t len);

#endif
