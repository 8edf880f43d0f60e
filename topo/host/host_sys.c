/* SPDX-License-Identifier: BSD-2-Clause */
/* See host.h: a host as /sys has it, without hwloc. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/host/host_in.h"
#include "topo/host/sys_file.h"

/* Lists like "0-3,8": calls `each` until it says false. False: that is no such list. */
static bool list_each(const char *text, bool (*each)(void *arg, int id), void *arg)
{
	while (*text && *text != '\n') {
		char *end;
		long first = strtol(text, &end, 10), last = first;

		if (end == text || first < 0)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtol(text, &end, 10);
			if (end == text)
				return false;
		}
		if (last < first || last >= HOST_CPUS_MAX)
			return false;
		for (long id = first; id <= last; id++)
			if (!each(arg, (int)id))
				return false;
		text = end + (*end == ',');
	}
	return true;
}

static bool add_cpu(void *arg, int id)
{
	struct host *host = arg;

	/* Ascending: they are searched by halves. */
	return (!host->cpus || host->cpu[host->cpus - 1].id < id) &&
	       host_cpu_add(host, id);
}

struct place_node {
	struct host *host;
	const char *sys;
	int node;
};

static bool place_cpu(void *arg, int id)
{
	const struct place_node *p = arg;
	const struct host_cpu *cpu = host_cpu_find(p->host, id);

	if (cpu && cpu->core >= 0)
		p->host->core[cpu->core].node = p->node;
	return true;
}

static bool add_node(void *arg, int id)
{
	struct place_node *p = arg;
	char text[SYS_TEXT], list[SYS_TEXT];
	const char *total;
	uint64_t kib = 0;

	if (sys_text(text, "%s/devices/system/node/node%d/meminfo", p->sys, id)) {
		total = strstr(text, "MemTotal:");
		if (total)
			kib = strtoull(total + strlen("MemTotal:"), NULL, 10);
	}
	p->node = host_node_add(p->host, id, kib * 1024);
	if (p->node < 0)
		return false;
	if (sys_text(list, "%s/devices/system/node/node%d/cpulist", p->sys, id))
		list_each(list, place_cpu, p);
	return true;
}

/* The first of a list is the number of what all in it share. */
static int list_first(const char *text)
{
	return *text >= '0' && *text <= '9' ? atoi(text) : -1;
}

/* Dense numbers of what the kernel numbers as it likes. */
struct ids {
	int id[1024];
	unsigned count;
};

static int ids_of(struct ids *ids, int id)
{
	for (unsigned i = 0; i < ids->count; i++)
		if (ids->id[i] == id)
			return (int)i;
	if (ids->count == sizeof(ids->id) / sizeof(ids->id[0]))
		return -1;
	ids->id[ids->count] = id;
	return (int)ids->count++;
}

static bool read_core(struct host *host, const char *sys, struct host_cpu *cpu,
		      struct ids *packages)
{
	char text[SYS_TEXT];
	const struct host_cpu *first;
	int64_t package;

	/* The older name of the same. */
	if (!sys_text(text, "%s/devices/system/cpu/cpu%d/topology/core_cpus_list", sys,
		      cpu->id) &&
	    !sys_text(text, "%s/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		      sys, cpu->id))
		return true;
	first = host_cpu_find(host, list_first(text));
	/* Threads that are not online may come first: then this one is. */
	if (first && first->id < cpu->id && first->core >= 0) {
		cpu->core = first->core;
		return true;
	}
	cpu->core = host_core_add(host);
	if (cpu->core < 0)
		return false;
	if (sys_int(&package, "%s/devices/system/cpu/cpu%d/topology/physical_package_id",
		    sys, cpu->id) &&
	    package >= 0 && package <= INT_MAX)
		host->core[cpu->core].package = ids_of(packages, (int)package);
	return true;
}

static uint64_t size_of(const char *text)
{
	char *end;
	const uint64_t n = strtoull(text, &end, 10);

	return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : n;
}

struct share_cache {
	struct host *host;
	int core, cache;
};

static bool is_same_core(void *arg, int id)
{
	const struct share_cache *s = arg;
	const struct host_cpu *cpu = host_cpu_find(s->host, id);

	return !cpu || cpu->core == s->core;
}

static bool share_core(void *arg, int id)
{
	const struct share_cache *s = arg;
	const struct host_cpu *cpu = host_cpu_find(s->host, id);

	if (cpu && cpu->core >= 0 && s->host->core[cpu->core].cache != s->cache) {
		s->host->core[cpu->core].cache = s->cache;
		s->host->cache[s->cache].cores++;
	}
	return true;
}

/* The largest cache that this core shares with others; those get it, too. */
static bool read_cache(struct host *host, const char *sys, const struct host_cpu *cpu)
{
	char text[SYS_TEXT], list[SYS_TEXT] = "";
	int64_t level, most = 0;
	uint64_t bytes = 0;
	struct share_cache share = {.host = host, .core = cpu->core};

	for (int i = 0; i < 16; i++) {
		if (!sys_int(&level, "%s/devices/system/cpu/cpu%d/cache/index%d/level",
			     sys, cpu->id, i))
			break;
		if (level <= most || level > 9 ||
		    !sys_text(text,
			      "%s/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list",
			      sys, cpu->id, i) ||
		    list_each(text, is_same_core, &share))
			continue;
		most = level;
		memcpy(list, text, sizeof(list));
		bytes = sys_text(text, "%s/devices/system/cpu/cpu%d/cache/index%d/size",
				 sys, cpu->id, i)
				? size_of(text)
				: 0;
	}
	if (!most)
		return true;
	share.cache = host_cache_add(host, (int)most, bytes);
	if (share.cache < 0)
		return false;
	list_each(list, share_core, &share);
	return true;
}

static int read_cpus(struct host *host, const char *sys)
{
	struct ids packages = {.count = 0};

	for (unsigned i = 0; i < host->cpus; i++)
		if (!read_core(host, sys, &host->cpu[i], &packages))
			return -ENOMEM;
	host->packages = packages.count;
	for (unsigned i = 0; i < host->cpus; i++) {
		const struct host_cpu *cpu = &host->cpu[i];

		if (cpu->core >= 0 && host->core[cpu->core].cache < 0 &&
		    !read_cache(host, sys, cpu))
			return -ENOMEM;
	}
	return 0;
}

/* ---- PCI -------------------------------------------------------------------------- */

static void read_bridges(struct host *host, struct host_device *d, const char *sys)
{
	char path[PATH_MAX], link[PATH_MAX], *save = NULL;

	if (!sys_real(path, "%s/bus/pci/devices/%s", sys, d->pci))
		return;
	memcpy(link, path, sizeof(link));
	for (char *part = strtok_r(link, "/", &save); part;
	     part = strtok_r(NULL, "/", &save)) {
		const bool root = strncmp(part, "pci", 3) == 0 && strlen(part) == 10;

		if (strcmp(part, d->pci) == 0)
			break;
		if (!root && (!d->bridges || !sys_is_pci(part)))
			continue;
		if (!host_bridge_add(d, part))
			host_miss(host, "bridges beyond the first %d above %s",
				  HOST_BRIDGES_MAX, d->pci);
	}
}

static bool read_device(struct host *host, const char *sys, const char *pci)
{
	uint64_t class, vendor = 0, device = 0;
	enum host_kind kind;
	struct host_device *d;
	int64_t node;

	if (!sys_hex(&class, "%s/bus/pci/devices/%s/class", sys, pci))
		return true;
	if (sys_hex(&vendor, "%s/bus/pci/devices/%s/vendor", sys, pci))
		sys_hex(&device, "%s/bus/pci/devices/%s/device", sys, pci);
	if (!host_kind_of((unsigned)(class >> 8) & 0xffff, (unsigned)vendor,
			  (unsigned)device, &kind))
		return true;
	d = host_device_add(host, kind, pci);
	if (!d)
		return false;
	d->vendor_id = (uint16_t)vendor;
	d->device_id = (uint16_t)device;
	if (sys_int(&node, "%s/bus/pci/devices/%s/numa_node", sys, pci) && node >= 0 &&
	    node <= INT_MAX)
		d->node = host_node_find(host, (int)node);
	read_bridges(host, d, sys);
	return true;
}

static int read_pci(struct host *host, const char *sys)
{
	char path[PATH_MAX];
	const struct dirent *e;
	int rc = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/bus/pci/devices", sys);
	dir = opendir(path);
	if (!dir) {
		host_miss(host, "PCI devices: %.100s: %s", path, strerror(errno));
		return 0;
	}
	while (!rc && (e = readdir(dir)))
		if (sys_is_pci(e->d_name) && !read_device(host, sys, e->d_name) &&
		    host->devices < HOST_DEVICES_MAX)
			rc = -ENOMEM;
	closedir(dir);
	return rc;
}

int host_read_sys(struct host *host, const char *sys, bool devices, char *why)
{
	struct place_node nodes = {.host = host, .sys = sys};
	char text[SYS_TEXT];
	int rc;

	if (snprintf(host->source, sizeof(host->source), "%s", sys) >=
	    (int)sizeof(host->source)) {
		snprintf(why, HOST_WHY, "the path is longer than %d bytes", HOST_WHY - 1);
		return -EINVAL;
	}
	if (!sys_text(text, "%s/devices/system/cpu/online", sys) ||
	    !list_each(text, add_cpu, host) || !host->cpus) {
		snprintf(
			why, HOST_WHY,
			"%.100s/devices/system/cpu/online has no list of CPUs: is that a "
			"copy of /sys?",
			sys);
		return -EINVAL;
	}
	rc = read_cpus(host, sys);
	if (rc)
		return rc;
	if (sys_text(text, "%s/devices/system/node/online", sys) &&
	    !list_each(text, add_node, &nodes))
		host_miss(host, "some NUMA nodes: %.100s/devices/system/node", sys);
	for (unsigned i = 0; !host->here && i < host->cpus; i++)
		host->cpu[i].usable = true;
	if (!devices)
		return 0;
	rc = read_pci(host, sys);
	if (!rc)
		host_read_links(host, sys);
	return rc;
}
