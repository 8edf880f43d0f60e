/* SPDX-License-Identifier: BSD-2-Clause */
/* See host.h: a host as hwloc has it. The one place that knows hwloc. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/host/host_in.h"

#ifdef HAVE_HWLOC

#include <hwloc.h>

#define HIDE "HWLOC_HIDE_ERRORS"

static hwloc_topology_t loaded(const struct host_options *options)
{
	hwloc_topology_t topo;

	if (hwloc_topology_init(&topo) != 0)
		return NULL;
	/* What this process may not use is shown, too, and marked. */
	if ((options->xml && hwloc_topology_set_xml(topo, options->xml) != 0) ||
	    hwloc_topology_set_flags(topo, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
	    (!options->no_devices &&
	     hwloc_topology_set_io_types_filter(topo, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) !=
		     0) ||
	    hwloc_topology_load(topo) != 0) {
		hwloc_topology_destroy(topo);
		return NULL;
	}
	return topo;
}

static hwloc_topology_t topology_open(const struct host_options *options)
{
	/* Where /sys is not mounted, as in some containers, hwloc complains on stderr, in
	 * the middle of what ranks write; Weft does without. Who set the variable wants
	 * to see it. Ranks get their environment from us: they must not inherit this. */
	const bool hide = !getenv(HIDE) && setenv(HIDE, "2", 1) == 0;
	hwloc_topology_t topo = loaded(options);

	if (hide)
		unsetenv(HIDE);
	return topo;
}

static bool read_cpus(struct host *host, hwloc_topology_t topo)
{
	const hwloc_const_bitmap_t all = hwloc_topology_get_topology_cpuset(topo),
				   allowed = hwloc_topology_get_allowed_cpuset(topo);

	for (int id = hwloc_bitmap_first(all); id >= 0; id = hwloc_bitmap_next(all, id)) {
		if (!host_cpu_add(host, id))
			return false;
		host->cpu[host->cpus - 1].usable = hwloc_bitmap_isset(allowed, id);
	}
	return true;
}

/* The one NUMA node of a set; -1: none, or more. */
static int node_of(const struct host *host, hwloc_const_nodeset_t set)
{
	return set && hwloc_bitmap_weight(set) == 1
		       ? host_node_find(host, hwloc_bitmap_first(set))
		       : -1;
}

static bool read_cores(struct host *host, hwloc_topology_t topo)
{
	hwloc_obj_t core = NULL;

	while ((core = hwloc_get_next_obj_by_type(topo, HWLOC_OBJ_CORE, core))) {
		const hwloc_obj_t package =
			hwloc_get_ancestor_obj_by_type(topo, HWLOC_OBJ_PACKAGE, core);
		const int at = host_core_add(host);

		if (at < 0)
			return false;
		host->core[at].package = package ? (int)package->logical_index : -1;
		host->core[at].node = node_of(host, core->nodeset);
		for (int id = hwloc_bitmap_first(core->cpuset); id >= 0;
		     id = hwloc_bitmap_next(core->cpuset, id)) {
			struct host_cpu *cpu = host_cpu_find(host, id);

			if (cpu)
				cpu->core = at;
		}
	}
	host->packages = (unsigned)hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_PACKAGE);
	return true;
}

/* The largest cache above the core that is also above others. */
static hwloc_obj_t shared_cache(hwloc_topology_t topo, hwloc_obj_t core)
{
	hwloc_obj_t found = NULL;

	for (hwloc_obj_t up = core->parent; up; up = up->parent)
		if (hwloc_obj_type_is_dcache(up->type) &&
		    hwloc_get_nbobjs_inside_cpuset_by_type(topo, up->cpuset,
							   HWLOC_OBJ_CORE) > 1)
			found = up;
	return found;
}

static bool read_caches(struct host *host, hwloc_topology_t topo)
{
	hwloc_obj_t last = NULL, core = NULL;

	/* In hwloc's order those of one cache come one behind the other. */
	for (unsigned c = 0;
	     (core = hwloc_get_next_obj_by_type(topo, HWLOC_OBJ_CORE, core)); c++) {
		const hwloc_obj_t cache = shared_cache(topo, core);

		if (!cache)
			continue;
		if (cache != last && host_cache_add(host, (int)cache->attr->cache.depth,
						    cache->attr->cache.size) < 0)
			return false;
		last = cache;
		host->core[c].cache = (int)host->caches - 1;
		host->cache[host->caches - 1].cores++;
	}
	return true;
}

static bool read_nodes(struct host *host, hwloc_topology_t topo)
{
	hwloc_obj_t node = NULL;

	while ((node = hwloc_get_next_obj_by_type(topo, HWLOC_OBJ_NUMANODE, node)))
		if (host_node_add(host, (int)node->os_index,
				  node->attr->numanode.local_memory) < 0)
			return false;
	return true;
}

/* ---- devices ---------------------------------------------------------------------- */

static void bridge_name(char name[HOST_PCI], hwloc_obj_t bridge)
{
	const struct hwloc_bridge_attr_s *b = &bridge->attr->bridge;

	if (b->upstream_type == HWLOC_OBJ_BRIDGE_PCI)
		snprintf(name, HOST_PCI, "%04x:%02x:%02x.%x", b->upstream.pci.domain,
			 b->upstream.pci.bus, b->upstream.pci.dev & 0xffu,
			 b->upstream.pci.func & 0xfu);
	else
		snprintf(name, HOST_PCI, "pci%04x:%02x", b->downstream.pci.domain,
			 b->downstream.pci.secondary_bus);
}

static void read_bridges(struct host *host, struct host_device *d, hwloc_obj_t pci)
{
	hwloc_obj_t up[HOST_BRIDGES_MAX];
	unsigned n = 0;

	for (hwloc_obj_t o = pci->parent; o && o->type == HWLOC_OBJ_BRIDGE;
	     o = o->parent) {
		if (n == HOST_BRIDGES_MAX) {
			host_miss(host, "bridges beyond %d above %s", HOST_BRIDGES_MAX,
				  d->pci);
			return;
		}
		up[n++] = o;
	}
	while (n--) {
		char name[HOST_PCI];

		bridge_name(name, up[n]);
		host_bridge_add(d, name);
	}
}

static bool read_device(struct host *host, hwloc_topology_t topo, hwloc_obj_t pci)
{
	const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
	const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topo, pci);
	const char *model = hwloc_obj_get_info_by_name(pci, "PCIDevice");
	struct host_device *d;
	enum host_kind kind;
	char name[HOST_PCI];

	if (!host_kind_of(a->class_id, a->vendor_id, a->device_id, &kind))
		return true;
	snprintf(name, sizeof(name), "%04x:%02x:%02x.%x", a->domain, a->bus,
		 a->dev & 0xffu, a->func & 0xfu);
	d = host_device_add(host, kind, name);
	if (!d)
		return host->devices == HOST_DEVICES_MAX;
	d->vendor_id = a->vendor_id;
	d->device_id = a->device_id;
	host_word(d->model, sizeof(d->model), model ? model : "");
	d->node = near ? node_of(host, near->nodeset) : -1;
	read_bridges(host, d, pci);
	for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling) {
		if (os->type != HWLOC_OBJ_OS_DEVICE || !os->name)
			continue;
		if (os->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
			host_word_append(d->net, sizeof(d->net), os->name);
		if (os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
			host_word_append(d->rdma, sizeof(d->rdma), os->name);
	}
	return true;
}

static bool read_devices(struct host *host, hwloc_topology_t topo)
{
	hwloc_obj_t pci = NULL;

	while ((pci = hwloc_get_next_pcidev(topo, pci)))
		if (!read_device(host, topo, pci))
			return false;
	return true;
}

int host_read_hwloc(struct host *host, const struct host_options *options, char *why)
{
	hwloc_topology_t topo = topology_open(options);
	const bool said = options->xml || getenv("HWLOC_XMLFILE") ||
			  getenv("HWLOC_SYNTHETIC") || getenv("HWLOC_FSROOT");
	bool good;

	if (!topo) {
		snprintf(why, HOST_WHY, "hwloc cannot read %.150s: %s",
			 options->xml ? options->xml : "this host",
			 errno ? strerror(errno) : "no XML that it knows");
		return said ? -EINVAL : -ENOTSUP;
	}
	host->here = hwloc_topology_is_thissystem(topo);
	if (options->xml)
		snprintf(host->source, sizeof(host->source), "%.150s", options->xml);
	else
		snprintf(host->source, sizeof(host->source), "hwloc%s",
			 host->here ? "" : ", which its variables tell of another host");
	good = read_cpus(host, topo) && read_nodes(host, topo) &&
	       read_cores(host, topo) && read_caches(host, topo) &&
	       (options->no_devices || read_devices(host, topo));
	hwloc_topology_destroy(topo);
	if (!good)
		return -ENOMEM;
	if (!host->here)
		return 0;
	host_read_usable(host);
	if (!options->no_devices)
		host_read_links(host, "/sys");
	return 0;
}

#else

int host_read_hwloc(struct host *host, const struct host_options *options, char *why)
{
	(void)host;
	if (options->xml)
		snprintf(why, HOST_WHY,
			 "%.80s: this build is without hwloc, which reads such files; a "
			 "copy of /sys can be read",
			 options->xml);
	else
		snprintf(why, HOST_WHY,
			 "what hwloc knows beyond /sys: this build is without it");
	return -ENOTSUP;
}

#endif
