/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of this host's addresses peers on other hosts would reach, where no route leads
 * outward that would say: of clusters whose networks end at their own switch.
 */
#ifndef WEFT_WIRE_IFACE_H
#define WEFT_WIRE_IFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "prov/wire/addr.h"

/* One address of an interface. */
struct wire_iface {
	struct wire_addr addr;
	bool up;
	bool running; /* has a carrier */
	bool loopback;
	bool rdma; /* an RDMA device's port is behind it */
};

/*
 * The best of them for peers on other hosts: up, not loopback, of that family and of more
 * than its own link; among those RDMA devices' first, then those with a carrier, then the
 * first. NULL: there is none.
 */
const struct wire_iface *wire_iface_choose(const struct wire_iface *list, size_t count,
					   sa_family_t family);

/* The same of this host's interfaces: the host part; the port is 0. */
bool wire_iface_find(sa_family_t family, struct wire_addr *out);

#endif
