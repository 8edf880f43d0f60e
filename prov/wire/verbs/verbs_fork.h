/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fork may do to memory that devices know. The pages of a registration are the
 * device's for as long as it lasts. Where a fork leaves them shared by parent and child
 * until one of the two writes there, the parent may be the one that gets other pages, and
 * the device goes on in those of before: what arrives is never seen. Kernels that copy
 * such pages for the child when it is made have no such fault; of the others libibverbs
 * keeps it away, when it is told to before anything is registered, by leaving these pages
 * out of the child altogether.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_FORK_H
#define WEFT_WIRE_VERBS_VERBS_FORK_H

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_dev.h"

enum verbs_fork {
	VERBS_FORK_COPIED, /* the child gets copies: a fork does no harm */
	VERBS_FORK_KEPT,   /* the child doesn't get pages that are registered */
	VERBS_FORK_HARMS   /* a fork may divert what devices write: nobody may fork */
};

/*
 * Before anything is registered: sees to it that a fork does no harm, as
 * FI_WEFT_VERBS_FORK says (off: nothing is seen to). -FI_EINVAL: `on`, and it can't be
 * helped; *error says why. May be called again.
 */
int verbs_fork_ready(const struct verbs_lib *lib, enum prov_fork want,
		     enum verbs_fork *state, struct verbs_error *error);

#endif
