/* SPDX-License-Identifier: BSD-2-Clause */
/* One rail: a port of a device, opened and looked at. */
#ifndef WEFT_WIRE_VERBS_VERBS_RAIL_H
#define WEFT_WIRE_VERBS_VERBS_RAIL_H

#include "prov/wire/verbs/verbs_dev.h"

/* Fills *error; returns rc. */
__attribute__((format(printf, 3, 4))) int verbs_error_set(struct verbs_error *error,
							  int rc, const char *fmt, ...);

/*
 * Looks at the port of rail->context: link layer, LID, GID, MTU, partition key, limits,
 * and makes the protection domain unless it has one (of another port of the device).
 * rail->name, port, context are set. -FI_ENODATA: no GID, no such index; -FI_ENOMEM;
 * -FI_EIO.
 */
int verbs_rail_look(const struct verbs_lib *lib, const struct verbs_want *want,
		    struct verbs_rail *rail, struct verbs_error *error);
/* LID, GID and MTU once more: true when queue pairs of before are of no use; then
 * rail->moves was counted up. */
bool verbs_rail_moved(const struct verbs_lib *lib, struct verbs_rail *rail);
/* The port is not in the state that is known of it: then all of it was looked at once
 * more, as with an event. One that can't be asked is as it was. Any thread. */
bool verbs_rail_turned(const struct verbs_lib *lib, struct verbs_rail *rail);

#endif
