/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of fi_getinfo; see entry.h. */
#include "config.h"

#include "prov/fi/entry.h"

#include <stdio.h>
#include <string.h>

#include "prov/wire/joined.h"

/* By enum prov_wire. */
static const char *const wire_names[] = {
	[PROV_WIRE_AUTO] = NULL,
	[PROV_WIRE_SHM] = "shm",
	[PROV_WIRE_VERBS] = "verbs",
	[PROV_WIRE_UET] = "uet",
};

/* What is looked for: by which options, and by which name of a domain, if any. */
struct want {
	const struct prov_params *params;
	const char *domain;
};

/* FI_WEFT_WIRE and FI_WEFT_SHM allow it, and it was named if it must be. */
static bool wire_wanted(const struct wire_ops *w, const struct want *want)
{
	const char *only = wire_names[want->params->wire];
	bool named = want->domain && strcmp(want->domain, w->name) == 0;

	return (only ? strcmp(only, w->name) == 0 : !w->asked || named) &&
	       (w->remote || want->params->shm);
}

static bool wire_there(const struct wire_ops *w, const char **devices)
{
	const char *why;

	*devices = NULL;
	why = w->absent ? w->absent(devices) : NULL;
	if (why)
		FI_INFO(&weft_provider, FI_LOG_CORE, "no entry for the %s wire: %s\n",
			w->name, why);
	return !why;
}

/* Reaches this host only. */
static const struct wire_ops *near_wire(const struct wire_ops *const *wires, size_t count,
					const struct prov_params *params)
{
	for (size_t i = 0; i < count && params->shm; i++) {
		if (!wires[i]->remote)
			return wires[i];
	}
	return NULL;
}

static void entry_fill(struct wfi_entry *e, const struct wire_ops *w, const char *devices,
		       const struct wire_ops *near)
{
	*e = (struct wfi_entry){.remote = w->remote, .single = w->single, .wire = w};
	snprintf(e->name, sizeof(e->name), "%s%s%s", w->name, devices ? ":" : "",
		 devices ? devices : "");
	if (w->remote && near) {
		e->wire = &joined_wire_ops;
		e->near = near;
		e->far = w;
	}
}

/* Those that reach other hosts, or the others. */
static size_t entries_add(const struct wire_ops *const *wires, size_t count,
			  const struct want *want, bool remote, struct wfi_entry *out,
			  size_t room)
{
	const struct wire_ops *near = near_wire(wires, count, want->params);
	const char *devices;
	size_t n = 0;

	for (size_t i = 0; i < count && n < room; i++) {
		if (wires[i]->remote == remote && wire_wanted(wires[i], want) &&
		    wire_there(wires[i], &devices))
			entry_fill(&out[n++], wires[i], devices, near);
	}
	return n;
}

size_t wfi_entries_of(const struct wire_ops *const *wires, size_t count,
		      const struct prov_params *params, const char *domain,
		      struct wfi_entry out[WFI_ENTRIES_MAX])
{
	const struct want want = {.params = params, .domain = domain};
	size_t n = entries_add(wires, count, &want, true, out, WFI_ENTRIES_MAX);

	n += entries_add(wires, count, &want, false, out + n, WFI_ENTRIES_MAX - n);
	for (size_t i = 0; i < n; i++)
		out[i].remote |= params->claim_remote;
	if (!n)
		FI_INFO(&weft_provider, FI_LOG_CORE,
			"no wire can be used: FI_WEFT_WIRE=%s, FI_WEFT_SHM=%d\n",
			wire_names[params->wire] ? wire_names[params->wire] : "auto",
			(int)params->shm);
	return n;
}

size_t wfi_entries(const char *domain, struct wfi_entry out[WFI_ENTRIES_MAX])
{
	return wfi_entries_of(wire_table, wire_count, prov_params(), domain, out);
}

bool wfi_entry_is(const struct wfi_entry *e, const char *name)
{
	size_t len = strcspn(e->name, ":");

	return strcmp(e->name, name) == 0 ||
	       (strlen(name) == len && strncmp(e->name, name, len) == 0);
}
