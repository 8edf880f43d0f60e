/* SPDX-License-Identifier: BSD-2-Clause */
/* Name and route look-ups; see addr_resolve.h. No packet is sent by the route ones. */
#include "config.h"

#include "prov/fi/addr_resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/iface.h"

static socklen_t family_len(sa_family_t family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6)
				  : sizeof(struct sockaddr_in);
}

uint16_t wfi_addr_port(const struct wire_addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port
						    : addr->in.sin_port);
}

void wfi_addr_set_port(struct wire_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
	else
		addr->in.sin_port = htons(port);
}

bool wfi_addr_is_any(const struct wire_addr *addr)
{
	if (addr->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
	return addr->in.sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Scope and flow label are not part of an address here, nor is sin_zero. The caller's
 * bytes may lie at any address. */
bool wfi_addr_take(const void *sa, size_t len, struct wire_addr *out)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	sa_family_t family;

	if (!sa || len < sizeof(family))
		return false;
	memcpy(&family, sa, sizeof(family));
	if ((family != AF_INET && family != AF_INET6) || len < family_len(family))
		return false;
	memset(out, 0, sizeof(*out));
	out->sa.sa_family = family;
	if (family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		out->in6.sin6_addr = in6.sin6_addr;
		out->in6.sin6_port = in6.sin6_port;
	} else {
		memcpy(&in, sa, sizeof(in));
		out->in.sin_addr = in.sin_addr;
		out->in.sin_port = in.sin_port;
	}
	return true;
}

int wfi_addr_resolve(const char *node, const char *service, uint64_t flags,
		     sa_family_t family, struct wire_addr *out)
{
	struct addrinfo want = {
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = (flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0) |
			    (flags & FI_SOURCE ? AI_PASSIVE : 0),
	};
	struct addrinfo *found = NULL;
	int rc;

	rc = getaddrinfo(node, service ? service : "0", &want, &found);
	if (rc || !found) {
		FI_INFO(&weft_provider, FI_LOG_CORE,
			"no %s address for node \"%s\", service \"%s\": %s\n",
			family == AF_INET6 ? "IPv6" : "IPv4", node ? node : "",
			service ? service : "", rc ? gai_strerror(rc) : "nothing found");
		return -FI_ENODATA;
	}
	rc = wfi_addr_take(found->ai_addr, found->ai_addrlen, out) ? 0 : -FI_ENODATA;
	freeaddrinfo(found);
	return rc;
}

bool wfi_addr_route(const struct wire_addr *to, struct wire_addr *out)
{
	struct sockaddr_storage self;
	socklen_t len = sizeof(self);
	struct wire_addr dst = *to;
	sa_family_t family = to->sa.sa_family;
	bool good = false;
	int fd;

	/* Connecting a datagram socket only looks the route up; the port is any. */
	if (!wfi_addr_port(&dst))
		wfi_addr_set_port(&dst, 9);
	fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (connect(fd, &dst.sa, family_len(family)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&self, &len) == 0 &&
	    wfi_addr_take(&self, len, out)) {
		wfi_addr_set_port(out, 0);
		good = !wfi_addr_is_any(out);
	}
	close(fd);
	return good;
}

bool wfi_addr_is_local(const struct wire_addr *addr)
{
	struct wire_addr self = *addr;
	bool good;
	int fd;

	wfi_addr_set_port(&self, 0);
	fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	good = bind(fd, &self.sa, family_len(addr->sa.sa_family)) == 0;
	close(fd);
	return good;
}

static bool addr_outward(sa_family_t family, struct wire_addr *out)
{
	/* Addresses reserved for documentation: nobody's, but routed like the world. */
	static const char *const world4 = "192.0.2.1";
	static const char *const world6 = "2001:db8::1";
	struct wire_addr to = {.sa.sa_family = family};

	if (family == AF_INET6)
		inet_pton(AF_INET6, world6, &to.in6.sin6_addr);
	else
		inet_pton(AF_INET, world4, &to.in.sin_addr);
	return wfi_addr_route(&to, out);
}

bool wfi_addr_default(sa_family_t family, struct wire_addr *out)
{
	struct wire_addr addr = {.sa.sa_family = family};

	if (addr_outward(family, out) || wire_iface_find(family, out))
		return true;
	if (family == AF_INET6)
		addr.in6.sin6_addr = in6addr_loopback;
	else
		addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!wfi_addr_is_local(&addr))
		return false;
	*out = addr;
	return true;
}

bool wfi_addr_is_default(const struct wire_addr *addr)
{
	struct wire_addr self;

	if (wfi_addr_is_any(addr))
		return true;
	if (!wfi_addr_default(addr->sa.sa_family, &self))
		return false;
	if (addr->sa.sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&addr->in6.sin6_addr, &self.in6.sin6_addr);
	return addr->in.sin_addr.s_addr == self.in.sin_addr.s_addr;
}
