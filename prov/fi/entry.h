/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fi_getinfo has an entry for: each way to reach other hosts, together with shared
 * memory for this one (prov/wire/joined.h), and shared memory alone. One domain is one
 * entry.
 */
#ifndef WEFT_FI_ENTRY_H
#define WEFT_FI_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "prov/mem/params.h"
#include "prov/wire/wire.h"

#define WFI_ENTRY_NAME	256
#define WFI_ENTRIES_MAX 4

struct wfi_entry {
	char name[WFI_ENTRY_NAME]; /* the domain's: "shm", "verbs:mlx5_0+mlx5_1" */
	bool remote;		   /* FI_REMOTE_COMM */
	bool single;		   /* no endpoints with several contexts */
	/* As in struct proto_attr. */
	const struct wire_ops *wire;
	const struct wire_ops *near;
	const struct wire_ops *far;
};

/* Those that there are just now, best first; returns how many. `domain` is the name that
 * was asked for, or NULL: some are there only for who names them. What was looked for and
 * isn't there is said at info level. */
size_t wfi_entries(const char *domain, struct wfi_entry out[WFI_ENTRIES_MAX]);
/* The same of other wires and options. */
size_t wfi_entries_of(const struct wire_ops *const *wires, size_t count,
		      const struct prov_params *params, const char *domain,
		      struct wfi_entry out[WFI_ENTRIES_MAX]);

/* Whether that is its name, or what is before the devices in it ("verbs"). */
bool wfi_entry_is(const struct wfi_entry *e, const char *name);

#endif
