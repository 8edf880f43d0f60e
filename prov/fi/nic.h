/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fi_info -v shows of an entry's devices: their names as attributes, and as text
 * what the wire says of them and of how links spread over them.
 */
#ifndef WEFT_FI_NIC_H
#define WEFT_FI_NIC_H

#include "prov/fi/entry.h"

struct fid_nic;

/* NULL in *nic: the entry has no devices. 0 or -FI_ENOMEM. Whoever has the fi_info closes
 * it: fi_freeinfo does. */
int wfi_nic_make(const struct wfi_entry *entry, struct fid_nic **nic);

#endif
