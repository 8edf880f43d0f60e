/* SPDX-License-Identifier: BSD-2-Clause */
/* A wire whose ends lend memory to each other; counted as registrations are. */
#include "config.h"

#include <stdlib.h>

#include "prov/proto/tests/mock_link.h"

static uint64_t lend(struct wire_link *link, const void *start, size_t len)
{
	struct mock_ep *ep = link_of(link)->ep;
	struct mock_mem *m;

	if (mock_chance(ep->net, ep->net->refuse_mem)) {
		return 0;
	}
	m = calloc(1, sizeof(*m));
	m->start = (char *)(uintptr_t)start;
	m->len = len;
	m->name = mock_random(ep->net) | 1;
	list_push_back(&ep->mems, &m->node);
	ep->net->mems++;
	return m->name;
}

static void unlend(struct wire_ep *wep, uint64_t name)
{
	list_foreach (n, &ep_of(wep)->mems) {
		struct mock_mem *m = container_of(n, struct mock_mem, node);

		if (m->name == name && !m->dropped) {
			m->dropped = true;
			ep_of(wep)->net->mems_dropped++;
			return;
		}
	}
	abort(); /* twice, or never lent */
}

const struct wire_ops *mock_wire_lends(void)
{
	static struct wire_ops ops;

	ops = mock_wire;
	ops.caps.lends = true;
	ops.lend = lend;
	ops.unlend = unlend;
	return &ops;
}
