/* SPDX-License-Identifier: BSD-2-Clause */
/* A picture of a host as SVG: NUMA nodes with their cores, and beside each the PCI
 * switches and bridges with the GPUs and NICs that are on it. */
#ifndef WEFT_TOPO_DRAW_MACHINE_H
#define WEFT_TOPO_DRAW_MACHINE_H

#include <stdio.h>

#include "topo/host/near.h"

/* False: it cannot be written. `name` is the host's, NULL: not known. */
bool machine_draw(const struct host *host, const char *name,
		  const struct host_share *share, unsigned ranks, FILE *file);

#endif
