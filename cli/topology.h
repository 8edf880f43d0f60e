/* SPDX-License-Identifier: BSD-2-Clause */
/* hwloc's picture of this host, for weft run --bind and weft info. */
#ifndef WEFT_CLI_TOPOLOGY_H
#define WEFT_CLI_TOPOLOGY_H

#ifdef HAVE_HWLOC

#include <hwloc.h>

/* NULL when hwloc finds nothing out. Give it back with hwloc_topology_destroy. For a
 * process of one thread: the environment changes meanwhile. */
hwloc_topology_t topology_open(void);

#endif

#endif
