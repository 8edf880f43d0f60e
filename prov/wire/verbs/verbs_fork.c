/* SPDX-License-Identifier: BSD-2-Clause */
/* What a fork may do to registered memory; see verbs_fork.h. */
#include "config.h"

#include "prov/wire/verbs/verbs_fork.h"

#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/verbs_rail.h"

static enum verbs_fork fork_state(const struct verbs_lib *lib)
{
	/* Libraries that can't say so can't tell what the kernel does either. */
	if (!lib->is_fork_initialized)
		return VERBS_FORK_HARMS;
	switch (lib->is_fork_initialized()) {
	case IBV_FORK_UNNEEDED:
		return VERBS_FORK_COPIED;
	case IBV_FORK_ENABLED:
		return VERBS_FORK_KEPT;
	default:
		return VERBS_FORK_HARMS;
	}
}

int verbs_fork_ready(const struct verbs_lib *lib, enum prov_fork want,
		     enum verbs_fork *state, struct verbs_error *error)
{
	const char *why = "this libibverbs can't see to it";
	int err;

	*state = fork_state(lib);
	if (*state != VERBS_FORK_HARMS || want == PROV_FORK_OFF)
		return 0;
	err = lib->fork_init ? lib->fork_init() : ENOSYS;
	if (err == 0) {
		*state = lib->is_fork_initialized ? fork_state(lib) : VERBS_FORK_KEPT;
		/* It may have found out only now that nothing is needed. */
		if (*state != VERBS_FORK_HARMS)
			return 0;
	} else if (err == EINVAL) {
		why = "memory was registered by others before; set RDMAV_FORK_SAFE=1";
	} else if (lib->fork_init) {
		why = strerror(err);
	}
	if (want == PROV_FORK_ON)
		return verbs_error_set(
			error, -FI_EINVAL,
			"FI_WEFT_VERBS_FORK=on: this kernel shares registered "
			"memory with a forked child, and that can't be "
			"changed: %s",
			why);
	return 0;
}
