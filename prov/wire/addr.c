/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint addresses: the one normalised form, comparing, hashing, printing. */
#include "config.h"

#include "prov/wire/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "prov/wire/iface.h"

bool wire_addr_from_sockaddr(struct wire_addr *out, const struct sockaddr *sa,
			     socklen_t len)
{
	struct wire_addr a;

	if (!sa || len < (socklen_t)sizeof(sa->sa_family))
		return false;
	memset(&a, 0, sizeof(a));
	switch (sa->sa_family) {
	case AF_INET: {
		const struct sockaddr_in *in = (const void *)sa;

		if (len < (socklen_t)sizeof(*in) || in->sin_port == 0 ||
		    in->sin_addr.s_addr == htonl(INADDR_ANY))
			return false;
		a.in.sin_family = AF_INET;
		a.in.sin_port = in->sin_port;
		a.in.sin_addr = in->sin_addr;
		break;
	}
	case AF_INET6: {
		const struct sockaddr_in6 *in6 = (const void *)sa;

		if (len < (socklen_t)sizeof(*in6) || in6->sin6_port == 0 ||
		    IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
			return false;
		a.in6.sin6_family = AF_INET6;
		a.in6.sin6_port = in6->sin6_port;
		a.in6.sin6_addr = in6->sin6_addr;
		break;
	}
	default:
		return false;
	}
	*out = a;
	return true;
}

socklen_t wire_addr_len(const struct wire_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

bool wire_addr_equal(const struct wire_addr *a, const struct wire_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family || a->context != b->context)
		return false;
	if (a->sa.sa_family == AF_INET6)
		return a->in6.sin6_port == b->in6.sin6_port &&
		       memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
			      sizeof(a->in6.sin6_addr)) == 0;
	return a->in.sin_port == b->in.sin_port &&
	       a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

/* Multiply and fold: neighbours (same host, ports in a row) must spread. */
static uint64_t hash_step(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ (h >> 32);
}

uint32_t wire_addr_hash(const struct wire_addr *a)
{
	uint64_t h = a->sa.sa_family | (uint64_t)a->context << 16;

	if (a->sa.sa_family == AF_INET6) {
		uint64_t half[2];

		memcpy(half, &a->in6.sin6_addr, sizeof(half));
		h = hash_step(h, half[0]);
		h = hash_step(h, half[1]);
		h = hash_step(h, a->in6.sin6_port);
	} else {
		h = hash_step(h, a->in.sin_addr.s_addr);
		h = hash_step(h, a->in.sin_port);
	}
	return (uint32_t)h;
}

const char *wire_addr_text(const struct wire_addr *a, char text[WIRE_ADDR_TEXT_MAX])
{
	char host[INET6_ADDRSTRLEN], context[8] = "";

	if (a->context)
		snprintf(context, sizeof(context), "/%u", (unsigned)a->context);
	switch (a->sa.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &a->in.sin_addr, host, sizeof(host));
		snprintf(text, WIRE_ADDR_TEXT_MAX, "%s:%u%s", host,
			 (unsigned)ntohs(a->in.sin_port), context);
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &a->in6.sin6_addr, host, sizeof(host));
		snprintf(text, WIRE_ADDR_TEXT_MAX, "[%s]:%u%s", host,
			 (unsigned)ntohs(a->in6.sin6_port), context);
		break;
	default:
		snprintf(text, WIRE_ADDR_TEXT_MAX, "(no address)");
		break;
	}
	return text;
}

bool wire_addr_has_host(const struct wire_addr *a)
{
	if (a->sa.sa_family == AF_INET6)
		return !IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
	return a->in.sin_addr.s_addr != htonl(INADDR_ANY);
}

static void host_set(struct wire_addr *a, const struct wire_addr *from)
{
	if (a->sa.sa_family == AF_INET6)
		a->in6.sin6_addr = from->in6.sin6_addr;
	else
		a->in.sin_addr = from->in.sin_addr;
}

void wire_addr_find_host(struct wire_addr *a)
{
	struct wire_addr out = {.sa.sa_family = a->sa.sa_family}, got;
	socklen_t len = wire_addr_len(a);
	int fd;

	if (a->sa.sa_family == AF_INET6) {
		inet_pton(AF_INET6, "2001:db8::1", &out.in6.sin6_addr);
		a->in6.sin6_addr = in6addr_loopback;
	} else {
		inet_pton(AF_INET, "192.0.2.1", &out.in.sin_addr);
		a->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	if (a->sa.sa_family == AF_INET6)
		out.in6.sin6_port = htons(9);
	else
		out.in.sin_port = htons(9);
	fd = socket(a->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	memset(&got, 0, sizeof(got));
	if (connect(fd, &out.sa, len) == 0 && getsockname(fd, &got.sa, &len) == 0 &&
	    wire_addr_has_host(&got))
		host_set(a, &got);
	else if (wire_iface_find(a->sa.sa_family, &got))
		host_set(a, &got);
	close(fd);
}
