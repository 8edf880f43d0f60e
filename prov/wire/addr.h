/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint's address: the socket address of its door, and of an endpoint that has
 * several contexts, which one is meant. Always compared and hashed in this normalised
 * form (port in network order, no scope, no flow label), IPv4 and IPv6.
 */
#ifndef WEFT_WIRE_ADDR_H
#define WEFT_WIRE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct wire_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	uint16_t context; /* each is an endpoint of its own; 0: what the address names */
};

/* false when sa is no IPv4 or IPv6 address with a port and a host (0.0.0.0:0 is none). */
bool wire_addr_from_sockaddr(struct wire_addr *out, const struct sockaddr *sa,
			     socklen_t len);
/* sizeof(struct sockaddr_in) or sizeof(struct sockaddr_in6). */
socklen_t wire_addr_len(const struct wire_addr *a);
bool wire_addr_equal(const struct wire_addr *a, const struct wire_addr *b);
uint32_t wire_addr_hash(const struct wire_addr *a);

/* Not 0.0.0.0 or [::]. */
bool wire_addr_has_host(const struct wire_addr *a);
/* Puts the local address there that routes outward, found by connecting a datagram socket
 * to an address that is reserved for documentation: no packet is sent; where there is no
 * such route, wire_iface_find's. Else loopback. */
void wire_addr_find_host(struct wire_addr *a);

#define WIRE_ADDR_TEXT_MAX 64
/* "127.0.0.1:9228", "[::1]:9228"; "127.0.0.1:9228/3" of context 3. Returns text. */
const char *wire_addr_text(const struct wire_addr *a, char text[WIRE_ADDR_TEXT_MAX]);

#endif
