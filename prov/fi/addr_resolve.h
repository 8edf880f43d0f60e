/* SPDX-License-Identifier: BSD-2-Clause */
/* From names to addresses: node and service, and the address that a door has when nobody
 * asked for one. */
#ifndef WEFT_FI_ADDR_RESOLVE_H
#define WEFT_FI_ADDR_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "prov/wire/addr.h"

/*
 * node may be NULL (family's loopback for a destination), service may be NULL (port 0).
 * flags: FI_NUMERICHOST, FI_SOURCE. -FI_ENODATA when there is no such host in that
 * family or no such service.
 */
int wfi_addr_resolve(const char *node, const char *service, uint64_t flags,
		     sa_family_t family, struct wire_addr *out);

/* As an application gave it: neither a host nor a port is needed. False when sa is no
 * whole IPv4 or IPv6 address. */
bool wfi_addr_take(const void *sa, size_t len, struct wire_addr *out);

/* The local host part that routes to `to`; port 0. False when there is no route. */
bool wfi_addr_route(const struct wire_addr *to, struct wire_addr *out);

/* The host part that a door has when none was asked for: the one that routes outward,
 * else an interface's (wire_iface_find), else loopback; port 0. False when the host
 * doesn't speak that family. */
bool wfi_addr_default(sa_family_t family, struct wire_addr *out);

/* The host part is that of wfi_addr_default: nobody asked for it, so the door answers on
 * every local address. */
bool wfi_addr_is_default(const struct wire_addr *addr);

/* Host part is an address of this host, or unspecified. */
bool wfi_addr_is_local(const struct wire_addr *addr);

/* 0.0.0.0 or ::. */
bool wfi_addr_is_any(const struct wire_addr *addr);

uint16_t wfi_addr_port(const struct wire_addr *addr);
void wfi_addr_set_port(struct wire_addr *addr, uint16_t port);

#endif
