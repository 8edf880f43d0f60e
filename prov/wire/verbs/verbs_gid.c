/* SPDX-License-Identifier: BSD-2-Clause */
/* The GID table of a port, by libibverbs and by the kernel's files. */
#include "config.h"

#include "prov/wire/verbs/verbs_gid.h"

#include <ctype.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/verbs_rail.h"

#define GIDS_MOST 256 /* verbs_reach.gid_index is a byte */

int verbs_gid_index_read(const char *text, int *index, struct verbs_error *error)
{
	char *end;
	long v;

	*index = -1;
	if (!text)
		return 0;
	v = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || v >= GIDS_MOST)
		return verbs_error_set(error, -FI_EINVAL,
				       "FI_WEFT_GID_INDEX=%.40s: want a number from 0 to "
				       "%d, or unset it to have one chosen",
				       text, GIDS_MOST - 1);
	*index = (int)v;
	return 0;
}

static bool is_mapped(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static bool is_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* ---- reading ------------------------------------------------------------------------
 */

/* What the kernel's file of an entry says, without the line's end; "": nothing. */
static void file_read(const struct verbs_rail *rail, const char *what, int index,
		      char *text, int size)
{
	char path[IBV_SYSFS_PATH_MAX + 64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/ports/%u/gid_attrs/%s/%d",
		 rail->context->device->ibdev_path, rail->port, what, index);
	text[0] = '\0';
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(text, size, file))
		text[0] = '\0';
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
}

/* The type of an entry without ibv_query_gid_ex. */
static uint32_t type_read(const struct verbs_rail *rail, int index)
{
	char text[32];

	file_read(rail, "types", index, text, sizeof(text));
	return strncmp(text, "RoCE v2", 7) == 0 ? IBV_GID_TYPE_ROCE_V2
						: IBV_GID_TYPE_ROCE_V1;
}

static uint32_t ifindex_read(const struct verbs_rail *rail, int index)
{
	char name[IF_NAMESIZE + 1];

	file_read(rail, "ndevs", index, name, sizeof(name));
	return name[0] ? if_nametoindex(name) : 0;
}

static bool has_address(const struct ifaddrs *a, const union ibv_gid *gid)
{
	if (!a->ifa_addr)
		return false;
	if (is_mapped(gid))
		return a->ifa_addr->sa_family == AF_INET &&
		       memcmp(&((const struct sockaddr_in *)(const void *)a->ifa_addr)
				       ->sin_addr,
			      gid->raw + 12, 4) == 0;
	return a->ifa_addr->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)(const void *)a->ifa_addr)
			       ->sin6_addr,
		      gid->raw, 16) == 0;
}

bool verbs_gid_owned(uint32_t ifindex, const union ibv_gid *gid)
{
	struct ifaddrs *all;
	bool owned = false;

	if (getifaddrs(&all) != 0)
		return true;
	for (const struct ifaddrs *a = all; a && !owned; a = a->ifa_next)
		owned = has_address(a, gid) &&
			(!ifindex || if_nametoindex(a->ifa_name) == ifindex);
	freeifaddrs(all);
	return owned;
}

static uint8_t kind_of(const struct ibv_gid_entry *e)
{
	if (e->gid_type == IBV_GID_TYPE_IB)
		return VERBS_RAIL_IB;
	if (e->gid_type != IBV_GID_TYPE_ROCE_V2)
		return VERBS_RAIL_ROCE1;
	return is_mapped(&e->gid) ? VERBS_RAIL_ROCE4 : VERBS_RAIL_ROCE6;
}

static bool entry_read(const struct verbs_lib *lib, const struct verbs_rail *rail,
		       bool ib, int index, struct ibv_gid_entry *entry)
{
	static const union ibv_gid none;

	memset(entry, 0, sizeof(*entry));
	if (lib->query_gid_ex) {
		if (lib->query_gid_ex(rail->context, rail->port, (uint32_t)index, entry,
				      0, sizeof(*entry)) != 0)
			return false;
	} else {
		if (lib->query_gid(rail->context, rail->port, index, &entry->gid) != 0)
			return false;
		entry->gid_type = ib ? IBV_GID_TYPE_IB : type_read(rail, index);
	}
	return memcmp(&entry->gid, &none, sizeof(none)) != 0;
}

bool verbs_gid_read(const struct verbs_lib *lib, const struct verbs_rail *rail, bool ib,
		    int index, struct verbs_gid *gid)
{
	*gid = (struct verbs_gid){.owned = true};
	if (!entry_read(lib, rail, ib, index, &gid->entry))
		return false;
	gid->entry.gid_index = (uint32_t)index;
	gid->kind = kind_of(&gid->entry);
	if (gid->kind == VERBS_RAIL_IB)
		return true;
	gid->ifindex = ifindex_read(rail, index);
	/* All others come and go with the addresses of the interface. */
	if (gid->kind == VERBS_RAIL_ROCE6 && gid->ifindex && is_local(&gid->entry.gid))
		gid->owned = verbs_gid_owned(gid->ifindex, &gid->entry.gid);
	return true;
}

/* ---- choice -------------------------------------------------------------------------
 */

/*
 * The kernel makes an entry of each port's hardware address, of both versions, whether or
 * not its interface has that address: it hasn't where addresses of the link are made
 * otherwise, or IPv6 is off. Nobody answers then who is asked for it, and v2 asks.
 */
unsigned verbs_gid_rank(const struct verbs_gid *gid)
{
	bool v2 = gid->entry.gid_type == IBV_GID_TYPE_ROCE_V2;

	if (!gid->owned)
		return 6;
	if (is_mapped(&gid->entry.gid))
		return v2 ? 0 : 3;
	if (is_local(&gid->entry.gid))
		return v2 ? 2 : 5;
	return v2 ? 1 : 4;
}

void verbs_gid_take(struct verbs_reach *reach, const struct verbs_gid *gid)
{
	reach->gid_index = (uint8_t)gid->entry.gid_index;
	reach->gid = gid->entry.gid;
	if (reach->kind == VERBS_RAIL_IB)
		return;
	reach->kind = gid->kind;
	reach->ifindex = gid->ifindex;
}

bool verbs_gid_choose(const struct verbs_lib *lib, const struct verbs_rail *rail,
		      int count, int wanted, uint8_t kind, struct verbs_reach *reach)
{
	int first = wanted < 0 ? 0 : wanted, end = wanted < 0 ? count : wanted + 1;
	bool ib = reach->kind == VERBS_RAIL_IB;
	unsigned best = UINT32_MAX;
	struct verbs_gid gid;

	if (ib && wanted < 0)
		end = count < 1 ? count : 1;
	for (int i = first; i < end && i < GIDS_MOST; i++) {
		if (!verbs_gid_read(lib, rail, ib, i, &gid) ||
		    (kind && gid.kind != kind) || verbs_gid_rank(&gid) >= best)
			continue;
		best = verbs_gid_rank(&gid);
		verbs_gid_take(reach, &gid);
	}
	return best != UINT32_MAX;
}
