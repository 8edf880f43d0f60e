/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which datagrams have a checksum: all, but those that stay within a host. These go from
 * memory to memory by the kernel's copies, as shared memory and the loopback of TCP do,
 * past everything that the checksum is there for: cables, switches, devices. They have 0
 * in its place, which is looked at only where it comes from an address of this host:
 * kernels let no such address in from outside. Both ends of a link say so before it is
 * done (uet_hello.h), and who is told otherwise (FI_WEFT_UET_CHECKSUM=always), or has a
 * bad network to test with, computes all.
 *
 * One thread at a time.
 */
#ifndef WEFT_WIRE_UET_UET_SUMS_H
#define WEFT_WIRE_UET_UET_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UET_SUMS_BYTES 4u
/* Addresses of this host that peers have; those of more have checksums. */
#define UET_SUMS_OWN 8u

struct uet_sums {
	uint32_t count;
	uint8_t own[UET_SUMS_OWN][16]; /* as in struct uet_peer */
};

/* It is one of this host's. False: there are too many. */
bool uet_sums_own(struct uet_sums *sums, const uint8_t host[16]);
/* A datagram of such a host is what was sent: its last bytes are its checksum, or 0 where
 * none is needed. `len` with them. */
bool uet_sums_good(const struct uet_sums *sums, const uint8_t host[16],
		   const uint8_t *data, size_t len);

#endif
