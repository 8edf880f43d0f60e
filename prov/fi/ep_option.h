/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of endpoints (fi_getopt, fi_setopt), one row of a table each. Options of later
 * versions of libfabric have their numbers here: an application that knows them may run
 * over a module that was built without them.
 */
#ifndef WEFT_FI_EP_OPTION_H
#define WEFT_FI_EP_OPTION_H

#include <stddef.h>

#include "util/lock_note.h"

struct wfi_ep;

/* -FI_ENOPROTOOPT: no such option (or none that may be set); -FI_ETOOSMALL: *len says how
 * long the value is; -FI_EINVAL: wrong size or value; -FI_EOPNOTSUPP: not with this
 * provider; -FI_EOPBADSTATE: too late. */
LOCK_HELD(lock_domain)
int wfi_ep_option_get(struct wfi_ep *ep, int level, int name, void *val, size_t *len);
LOCK_HELD(lock_domain)
int wfi_ep_option_set(struct wfi_ep *ep, int level, int name, const void *val,
		      size_t len);

#endif
