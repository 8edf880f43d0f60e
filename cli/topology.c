/* SPDX-License-Identifier: BSD-2-Clause */
/* See topology.h. */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>

#include "cli/topology.h"

#ifdef HAVE_HWLOC

#define HIDE "HWLOC_HIDE_ERRORS"

hwloc_topology_t topology_open(void)
{
	/* Where /sys is not mounted, as in some containers, hwloc complains on stderr, in
	 * the middle of what ranks write; Weft does without. Who set the variable wants
	 * to see it. Ranks get their environment from us: they must not inherit this. */
	const bool hide = !getenv(HIDE) && setenv(HIDE, "2", 1) == 0;
	hwloc_topology_t topo;

	if (hwloc_topology_init(&topo) != 0) {
		topo = NULL;
	} else if (hwloc_topology_load(topo) != 0) {
		hwloc_topology_destroy(topo);
		topo = NULL;
	}
	if (hide)
		unsetenv(HIDE);
	return topo;
}

#endif
