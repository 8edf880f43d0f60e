/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of weft/weft_fi.h: memory that peers on the host share. */
#ifndef WEFT_FI_MEM_OPS_H
#define WEFT_FI_MEM_OPS_H

#include "weft/weft_fi.h"

extern const struct weft_fi_mem_ops wfi_mem_ops;

#endif
