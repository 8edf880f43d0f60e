/* SPDX-License-Identifier: BSD-2-Clause */
/* The wires that were built, best first. */
#include "config.h"

#include "prov/wire/wire.h"

#include "prov/wire/shm/shm.h"
#include "prov/wire/uet/uet.h"
#ifdef HAVE_VERBS
#include "prov/wire/verbs/verbs.h"
#endif

const struct wire_ops *const wire_table[] = {
	&shm_wire_ops,
#ifdef HAVE_VERBS
	&verbs_wire_ops,
#endif
	&uet_wire_ops,
};

const struct wire_slot wire_slot_none = {.room = -1};

const size_t wire_count = sizeof(wire_table) / sizeof(wire_table[0]);
