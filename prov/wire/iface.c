/* SPDX-License-Identifier: BSD-2-Clause */
/* This host's interfaces, and which of their addresses peers are told. */
#include "config.h"

#include "prov/wire/iface.h"

#include <glob.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define IFACES_MOST 256u
/* A port's GID table names the interface of each entry. */
#define NDEVS "/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/0"

static bool reaches_others(const struct wire_iface *f, sa_family_t family)
{
	if (!f->up || f->loopback || f->addr.sa.sa_family != family ||
	    !wire_addr_has_host(&f->addr))
		return false;
	if (family == AF_INET6)
		return !IN6_IS_ADDR_LINKLOCAL(&f->addr.in6.sin6_addr) &&
		       !IN6_IS_ADDR_LOOPBACK(&f->addr.in6.sin6_addr);
	return ntohl(f->addr.in.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
}

const struct wire_iface *wire_iface_choose(const struct wire_iface *list, size_t count,
					   sa_family_t family)
{
	const struct wire_iface *best = NULL;
	int most = -1;

	for (size_t i = 0; i < count; i++) {
		int rank = list[i].rdma * 2 + list[i].running;

		if (rank <= most || !reaches_others(&list[i], family))
			continue;
		most = rank;
		best = &list[i];
	}
	return best;
}

/* Whether a port's file has the interface's name. */
static bool is_named(const char *path, const char *name)
{
	char line[IF_NAMESIZE + 2] = "";
	FILE *file = fopen(path, "re");

	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return strcmp(line, name) == 0;
}

static bool has_rdma(const glob_t *ports, const char *name)
{
	for (size_t i = 0; i < ports->gl_pathc; i++)
		if (is_named(ports->gl_pathv[i], name))
			return true;
	return false;
}

static void take(const struct ifaddrs *ifa, const glob_t *ports, struct wire_iface *f)
{
	memset(f, 0, sizeof(*f));
	f->addr.sa.sa_family = ifa->ifa_addr->sa_family;
	if (f->addr.sa.sa_family == AF_INET6)
		f->addr.in6.sin6_addr =
			((const struct sockaddr_in6 *)(const void *)ifa->ifa_addr)
				->sin6_addr;
	else
		f->addr.in.sin_addr =
			((const struct sockaddr_in *)(const void *)ifa->ifa_addr)
				->sin_addr;
	f->up = ifa->ifa_flags & IFF_UP;
	f->running = ifa->ifa_flags & IFF_RUNNING;
	f->loopback = ifa->ifa_flags & IFF_LOOPBACK;
	f->rdma = has_rdma(ports, ifa->ifa_name);
}

bool wire_iface_find(sa_family_t family, struct wire_addr *out)
{
	struct wire_iface list[IFACES_MOST];
	const struct wire_iface *best;
	glob_t ports = {.gl_pathc = 0};
	struct ifaddrs *all;
	size_t count = 0;

	if (getifaddrs(&all))
		return false;
	if (glob(NDEVS, GLOB_NOSORT, NULL, &ports))
		ports.gl_pathc = 0;
	for (const struct ifaddrs *i = all; i && count < IFACES_MOST; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == family)
			take(i, &ports, &list[count++]);
	globfree(&ports);
	freeifaddrs(all);
	best = wire_iface_choose(list, count, family);
	if (best)
		*out = best->addr;
	return best != NULL;
}
