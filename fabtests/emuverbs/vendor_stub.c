/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated libmlx5.so.1: what it has is in the libibverbs.so.1 that it needs. */
#include "config.h"

#include <infiniband/verbs.h>

/* A linker leaves out a library of which nothing is used. */
extern const char *(*const emu_vendor_stub)(enum ibv_wc_status);
const char *(*const emu_vendor_stub)(enum ibv_wc_status) = ibv_wc_status_str;
