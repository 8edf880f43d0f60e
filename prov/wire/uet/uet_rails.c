/* SPDX-License-Identifier: BSD-2-Clause */
/* Rails and ways; see uet_rails.h. */
#include "config.h"

#include "prov/wire/uet/uet_rails.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/uet_link.h"

/* ---- this host's ------------------------------------------------------------------- */

static size_t host_len(const struct wire_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? 16 : 4;
}

static const uint8_t *host_of(const struct wire_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? (const void *)&a->in6.sin6_addr
					   : (const void *)&a->in.sin_addr;
}

static bool same_host(const struct wire_addr *a, const struct wire_addr *b)
{
	return a->sa.sa_family == b->sa.sa_family &&
	       memcmp(host_of(a), host_of(b), host_len(a)) == 0;
}

static bool same_net(const struct wire_addr *a, const struct wire_addr *b, unsigned bits)
{
	const uint8_t *x = host_of(a), *y = host_of(b);

	if (memcmp(x, y, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || !((x[bits / 8] ^ y[bits / 8]) >> (8 - bits % 8));
}

/* An interface's address, without port; false: none of that family that peers could use.
 */
static bool iface_addr(const struct ifaddrs *i, sa_family_t family, struct wire_addr *out)
{
	memset(out, 0, sizeof(*out));
	if (!i->ifa_addr || i->ifa_addr->sa_family != family)
		return false;
	out->sa.sa_family = family;
	if (family == AF_INET6) {
		out->in6.sin6_addr =
			((const struct sockaddr_in6 *)(const void *)i->ifa_addr)
				->sin6_addr;
		return !IN6_IS_ADDR_LINKLOCAL(&out->in6.sin6_addr);
	}
	out->in.sin_addr =
		((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
	return true;
}

static uint8_t mask_bits(const struct ifaddrs *i, sa_family_t family)
{
	struct wire_addr mask = {.sa.sa_family = family};
	uint8_t bits = 0;

	if (!i->ifa_netmask)
		return (uint8_t)(8 * host_len(&mask));
	if (family == AF_INET6)
		mask.in6.sin6_addr =
			((const struct sockaddr_in6 *)(const void *)i->ifa_netmask)
				->sin6_addr;
	else
		mask.in.sin_addr =
			((const struct sockaddr_in *)(const void *)i->ifa_netmask)
				->sin_addr;
	while (bits < 8 * host_len(&mask) &&
	       host_of(&mask)[bits / 8] >> (7 - bits % 8) & 1)
		bits++;
	return bits;
}

__attribute__((format(printf, 2, 3))) static int wrong(char why[160], const char *format,
						       ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, 160, format, args);
	va_end(args);
	return -FI_EINVAL;
}

/* One of the list: an address, or an interface's name. */
static int rail_add(const struct ifaddrs *all, const char *name, sa_family_t family,
		    struct uet_rails *rails, char why[160])
{
	struct wire_addr wanted = {.sa.sa_family = family}, at;
	bool is_addr = inet_pton(family, name,
				 family == AF_INET6 ? (void *)&wanted.in6.sin6_addr
						    : (void *)&wanted.in.sin_addr) == 1;

	if (rails->count == UET_SOCK_RAILS)
		return wrong(why, "more than %u", UET_SOCK_RAILS);
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct uet_rail *rail = &rails->rail[rails->count];

		if (!iface_addr(i, family, &at) ||
		    !(is_addr ? same_host(&at, &wanted) : strcmp(i->ifa_name, name) == 0))
			continue;
		for (unsigned r = 0; r < rails->count; r++) {
			if (same_host(&rails->rail[r].addr, &at))
				return wrong(why, "\"%s\" is there twice", name);
		}
		*rail = (struct uet_rail){.addr = at};
		rails->bits[rails->count++] = mask_bits(i, family);
		return 0;
	}
	wrong(why,
	      "\"%s\" is neither an interface with an %s address here nor one of those",
	      name, family == AF_INET6 ? "IPv6" : "IPv4");
	return -FI_ENODEV;
}

static int rails_parse(const struct ifaddrs *all, const char *text, sa_family_t family,
		       struct uet_rails *rails, char why[160])
{
	char name[INET6_ADDRSTRLEN];
	int ret = 0;

	while (!ret) {
		size_t len = strcspn(text, ",");

		if (len == 0 || len >= sizeof(name))
			return wrong(why,
				     "names or addresses of interfaces, as in eth0,eth1");
		memcpy(name, text, len);
		name[len] = '\0';
		ret = rail_add(all, name, family, rails, why);
		if (!text[len])
			break;
		text += len + 1;
	}
	return ret;
}

/* The endpoint's own address is the first; false: it isn't among them. */
static bool own_first(struct uet_rails *rails, const struct wire_addr *door)
{
	for (unsigned r = 0; r < rails->count; r++) {
		struct uet_rail rail = rails->rail[r];
		uint8_t bits = rails->bits[r];

		if (!same_host(&rail.addr, door))
			continue;
		rails->rail[r] = rails->rail[0];
		rails->bits[r] = rails->bits[0];
		rails->rail[0] = rail;
		rails->bits[0] = bits;
		return true;
	}
	return false;
}

int uet_rails_find(const char *text, const struct wire_addr *door, bool any,
		   struct uet_rails *rails, char why[160])
{
	struct ifaddrs *all;
	int ret;

	*rails = (struct uet_rails){0};
	if (!text)
		return 0;
	if (getifaddrs(&all)) {
		wrong(why, "the system doesn't say which interfaces there are");
		return -FI_ENODEV;
	}
	ret = rails_parse(all, text, door->sa.sa_family, rails, why);
	freeifaddrs(all);
	/* An endpoint of another interface, as of the loopback, has its one way. */
	if (ret || (!any && !own_first(rails, door)))
		rails->count = 0;
	return ret;
}

void uet_rails_name(const struct uet_rails *rails, struct wire_addr *addr)
{
	const struct wire_addr *own = &rails->rail[0].addr;

	if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_addr = own->in6.sin6_addr;
	else
		addr->in.sin_addr = own->in.sin_addr;
}

/* ---- what the ends tell each other ------------------------------------------------- */

void uet_ways_say(const struct wire_ep *ep, struct uet_hello *hello)
{
	struct uet_peer peer;

	for (unsigned r = 1; r < ep->sock->rails; r++) {
		uet_ep_peer(&ep->sock->rail[r].addr, &peer);
		memcpy(hello->rail[hello->rails++].bytes, peer.host, sizeof(peer.host));
	}
}

/* Heard once. Those of another family than ours lead nowhere. */
void uet_ways_hear(struct wire_link *link, const struct uet_hello *hello)
{
	if (link->rails)
		return;
	for (uint32_t i = 0; i < hello->rails; i++) {
		struct wire_addr *at = &link->rail[link->rails];
		struct uet_peer peer = *uet_pdc_peer(link->pdc), again;

		memcpy(peer.host, hello->rail[i].bytes, sizeof(peer.host));
		uet_ep_door(&peer, link->base.ep->sock->family, at);
		uet_ep_peer(at, &again);
		if (memcmp(peer.host, again.host, sizeof(peer.host)) == 0 &&
		    uet_pdc_add_host(link->pdc, peer.host) == 0)
			link->rails++;
	}
}

/* ---- ways -------------------------------------------------------------------------- */

static const struct wire_addr *peer_at(const struct wire_link *link, unsigned host)
{
	return host == 0 ? &link->base.peer : &link->rail[host - 1];
}

/* The peer's address for the n-th path of a rail: of those in its network, or else of
 * all. The first path stays where it was. */
static unsigned host_for(const struct wire_link *link, unsigned rail, unsigned n)
{
	const struct wire_ep *ep = link->base.ep;
	unsigned near[1 + UET_HELLO_RAILS], count = 0;

	if (rail == 0 && n == 0)
		return 0;
	for (unsigned h = 0; h <= link->rails; h++) {
		if (same_net(&ep->sock->rail[rail].addr, peer_at(link, h),
			     ep->rail_bits[rail]))
			near[count++] = h;
	}
	return count ? near[n % count] : n % (link->rails + 1);
}

static bool leads_there(const struct wire_link *link, unsigned path,
			const struct wire_addr *to)
{
	int err;

	return uet_ep_part(link->base.ep, path, to, &err) >= link->part;
}

/* As an earlier path of the rail to the same address, or as the system says. */
static bool is_way(const struct wire_link *link, const struct uet_ways *ways, unsigned p)
{
	unsigned rails = link->base.ep->sock->rails;

	for (unsigned q = p; q >= rails; q -= rails) {
		if (ways->host[q - rails] == ways->host[p])
			return ways->used >> (q - rails) & 1;
	}
	return leads_there(link, p, &ways->to[p]);
}

void uet_ways_open(struct wire_link *link, uint64_t now)
{
	const struct uet_sock *sock = link->base.ep->sock;
	struct uet_ways *ways;

	if (sock->rails == 1 && link->rails == 0)
		return;
	/* Without memory it stays one way. */
	ways = calloc(1, sizeof(*ways));
	if (!ways)
		return;
	ways->paths = sock->paths;
	for (unsigned p = 0; p < sock->paths; p++) {
		unsigned host = host_for(link, p % sock->rails, p / sock->rails);
		bool first = p % sock->rails == 0 && host == 0;

		ways->host[p] = (uint8_t)host;
		ways->to[p] = *peer_at(link, host);
		if (!first && !is_way(link, ways, p)) {
			/* Of the first rail: to where it has led so far. */
			ways->host[p] = 0;
			ways->to[p] = link->base.peer;
			first = p % sock->rails == 0;
			if (!first)
				continue;
		}
		ways->used |= UINT32_C(1) << p;
		if (!first)
			uet_pdc_try_path(link->pdc, p, now);
	}
	link->ways = ways;
}

/* What came from one of the peer's addresses is answered by a path that leads there. */
static uint8_t path_back(const struct uet_ways *ways, uint32_t entropy)
{
	uint32_t host = entropy >> 16, start = (entropy & UINT16_MAX) % ways->paths;

	for (uint32_t i = 0; i < ways->paths; i++) {
		uint32_t p = (start + i) % ways->paths;

		if (ways->used >> p & 1 && ways->host[p] == host)
			return (uint8_t)p;
	}
	return 0;
}

uint8_t uet_ways_path(const struct wire_ep *ep, const struct wire_link *link,
		      const struct uet_out *out)
{
	const struct uet_sock *sock = ep->sock;
	uint32_t path;

	if (out->path != UET_PATH_ECHO)
		return (uint8_t)(out->path % sock->paths);
	if (link && link->ways)
		return path_back(link->ways, out->entropy);
	path = (out->entropy & UINT16_MAX) % sock->paths;
	/* Only the first rail's address is known to who isn't a peer yet. */
	return (uint8_t)(path - path % sock->rails);
}

bool uet_ways_lead_to(const struct wire_link *link, const struct wire_addr *to, bool port)
{
	for (uint32_t h = 0; h <= link->rails; h++) {
		const struct wire_addr *at = peer_at(link, h);

		if (port ? wire_addr_equal(at, to) : same_host(at, to))
			return true;
	}
	return false;
}
