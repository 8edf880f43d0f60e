/* SPDX-License-Identifier: BSD-2-Clause */
/* weft topo: what is shown of a host. */
#ifndef WEFT_CLI_TOPO_H
#define WEFT_CLI_TOPO_H

#include "topo/host/near.h"

struct topo {
	const struct host *host;
	const char *name;		/* the host's; NULL: it is another one */
	const struct host_share *share; /* [ranks] */
	unsigned ranks;
};

void topo_show_text(const struct topo *topo);
void topo_show_json(const struct topo *topo);

#endif
