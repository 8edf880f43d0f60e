/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated libmlx5.so.1: what it has is in the libibverbs.so.1 that it needs. */
#include "config.h"

extern const char emu_vendor_stub[];
const char emu_vendor_stub[] = "see vendor.c";
