/* SPDX-License-Identifier: BSD-2-Clause */
/* See host.h: what both sources share. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/host/host_in.h"

const char *host_kind_name(enum host_kind kind)
{
	static const char *const names[] = {"gpu", "nic", "display", "virtual"};

	return names[kind];
}

void host_miss(struct host *host, const char *fmt, ...)
{
	va_list ap;

	if (host->gaps == HOST_GAPS_MAX) {
		snprintf(host->missing[HOST_GAPS_MAX - 1], HOST_WHY,
			 "and more than can be said here");
		return;
	}
	va_start(ap, fmt);
	vsnprintf(host->missing[host->gaps++], HOST_WHY, fmt, ap);
	va_end(ap);
}

void host_word(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; from[i] && i + 1 < size; i++)
		to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
	to[i] = '\0';
}

void host_word_append(char *to, size_t size, const char *from)
{
	char word[HOST_NAME], *at = to;
	size_t used = strlen(to), len;

	host_word(word, sizeof(word), from);
	len = strlen(word);
	while (*at) {
		const size_t n = strcspn(at, ",");

		if (n == len && strncmp(at, word, n) == 0)
			return;
		at += n + (at[n] == ',');
	}
	if (used + 1 + len < size)
		snprintf(to + used, size - used, "%s%s", used ? "," : "", word);
}

/* Room for one more in an array that doubles; NULL: no memory. */
static void *grown(void *array, unsigned count, size_t size)
{
	if (count & (count - 1))
		return array;
	return realloc(array, size * (count ? (size_t)count * 2 : 1));
}

bool host_cpu_add(struct host *host, int id)
{
	struct host_cpu *cpu;

	if (id < 0 || id >= HOST_CPUS_MAX)
		return false;
	cpu = grown(host->cpu, host->cpus, sizeof(*cpu));
	if (!cpu)
		return false;
	host->cpu = cpu;
	cpu[host->cpus++] = (struct host_cpu){.id = id, .core = -1};
	return true;
}

int host_core_add(struct host *host)
{
	struct host_core *core = grown(host->core, host->cores, sizeof(*core));

	if (!core)
		return -1;
	host->core = core;
	core[host->cores] = (struct host_core){.package = -1, .node = -1, .cache = -1};
	return (int)host->cores++;
}

int host_node_add(struct host *host, int id, uint64_t memory)
{
	struct host_node *node = grown(host->node, host->nodes, sizeof(*node));

	if (!node)
		return -1;
	host->node = node;
	node[host->nodes] = (struct host_node){.id = id, .package = -1, .memory = memory};
	return (int)host->nodes++;
}

int host_cache_add(struct host *host, int level, uint64_t bytes)
{
	struct host_cache *cache = grown(host->cache, host->caches, sizeof(*cache));

	if (!cache)
		return -1;
	host->cache = cache;
	cache[host->caches] = (struct host_cache){.level = level, .bytes = bytes};
	return (int)host->caches++;
}

static int cpu_order(const void *a, const void *b)
{
	const struct host_cpu *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

struct host_cpu *host_cpu_find(const struct host *host, int id)
{
	const struct host_cpu key = {.id = id};

	if (!host->cpus)
		return NULL;
	return bsearch(&key, host->cpu, host->cpus, sizeof(key), cpu_order);
}

int host_node_find(const struct host *host, int id)
{
	for (unsigned n = 0; n < host->nodes; n++)
		if (host->node[n].id == id)
			return (int)n;
	return -1;
}

struct host_device *host_device_at(const struct host *host, const char *pci)
{
	for (unsigned i = 0; *pci && i < host->devices; i++)
		if (strcmp(host->device[i].pci, pci) == 0)
			return &host->device[i];
	return NULL;
}

struct host_device *host_device_add(struct host *host, enum host_kind kind,
				    const char *pci)
{
	struct host_device *d;

	if (host->devices == HOST_DEVICES_MAX) {
		host_miss(host, "devices beyond the first %d", HOST_DEVICES_MAX);
		return NULL;
	}
	d = grown(host->device, host->devices, sizeof(*d));
	if (!d)
		return NULL;
	host->device = d;
	d += host->devices++;
	*d = (struct host_device){.kind = kind, .node = -1};
	host_word(d->pci, sizeof(d->pci), pci);
	return d;
}

bool host_bridge_add(struct host_device *d, const char *name)
{
	if (d->bridges == HOST_BRIDGES_MAX)
		return false;
	host_word(d->bridge[d->bridges++], HOST_PCI, name);
	return true;
}

/* Displays of consoles and of virtual machines; device 0: all of that vendor. */
static const struct {
	unsigned vendor, device;
} displays[] = {
	{0x1a03, 0},	  /* ASPEED: management controllers */
	{0x102b, 0},	  /* Matrox: the same */
	{0x1234, 0},	  /* the emulator's VGA */
	{0x1013, 0},	  /* Cirrus, emulated */
	{0x1b36, 0},	  /* QXL */
	{0x1af4, 0x1050}, /* virtio */
	{0x15ad, 0},	  /* VMware */
	{0x1414, 0x5353}, /* Hyper-V's VGA */
	{0x80ee, 0},	  /* VirtualBox */
};

bool host_kind_of(unsigned pci_class, unsigned vendor, unsigned device,
		  enum host_kind *kind)
{
	const unsigned base = pci_class >> 8;

	/* Network; InfiniBand, which is 0c06 or 0207. */
	if (base == 0x02 || pci_class == 0x0c06) {
		*kind = HOST_NIC;
		return true;
	}
	/* Displays and 3D controllers; processing accelerators. */
	if (base != 0x03 && base != 0x12)
		return false;
	*kind = HOST_GPU;
	for (unsigned i = 0; i < sizeof(displays) / sizeof(displays[0]); i++)
		if (displays[i].vendor == vendor &&
		    (!displays[i].device || displays[i].device == device))
			*kind = HOST_DISPLAY;
	return true;
}

/* The kernel refuses a mask that is too small for it: try larger ones. */
void host_read_usable(struct host *host)
{
	for (int bits = 1024; bits <= HOST_CPUS_MAX; bits *= 2) {
		cpu_set_t *set = CPU_ALLOC(bits);
		const size_t len = CPU_ALLOC_SIZE(bits);
		int rc;

		if (!set)
			break;
		rc = sched_getaffinity(0, len, set) ? errno : 0;
		for (unsigned i = 0; !rc && i < host->cpus; i++)
			host->cpu[i].usable = CPU_ISSET_S(host->cpu[i].id, len, set);
		CPU_FREE(set);
		if (!rc)
			return;
		if (rc != EINVAL)
			break;
	}
	host_miss(host, "which CPUs this process may use: the kernel does not say");
}

static int device_order(const void *a, const void *b)
{
	const struct host_device *x = a, *y = b;
	int order;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	order = strcmp(x->pci, y->pci);
	if (!order)
		order = strcmp(x->net, y->net);
	return order ? order : strcmp(x->rdma, y->rdma);
}

/* Sums, and what only one thing can be. */
static void finish(struct host *host)
{
	for (unsigned i = 0; i < host->cpus; i++) {
		const struct host_cpu *cpu = &host->cpu[i];

		if (cpu->core < 0)
			continue;
		host->core[cpu->core].cpus++;
		host->core[cpu->core].usable += cpu->usable;
	}
	for (unsigned c = 0; c < host->cores; c++) {
		struct host_core *core = &host->core[c];
		struct host_node *node;

		if (core->node < 0)
			continue;
		node = &host->node[core->node];
		if (!node->cores)
			node->package = core->package;
		else if (node->package != core->package)
			node->package = -1;
		node->cores++;
		node->usable += core->usable > 0;
	}
	if (host->devices)
		qsort(host->device, host->devices, sizeof(*host->device), device_order);
	for (unsigned i = 0; i < host->devices; i++) {
		struct host_device *d = &host->device[i];

		d->nth = i && d[-1].kind == d->kind ? d[-1].nth + 1 : 0;
		if (d->node < 0 && host->nodes == 1 && d->kind != HOST_VIRTUAL)
			d->node = 0;
	}
}

static void name_missing(struct host *host, bool devices)
{
	bool package = host->packages > 0;

	if (!host->cores)
		host_miss(host, "which CPUs are one core");
	if (!package)
		host_miss(host, "packages");
	if (!host->nodes)
		host_miss(host, "NUMA nodes");
	if (host->cores && !host->caches)
		host_miss(host, "caches that cores share: none is said");
	for (unsigned i = 0; devices && i < host->devices; i++) {
		const struct host_device *d = &host->device[i];
		const char *kind = host_kind_name(d->kind);

		if (d->kind == HOST_VIRTUAL || d->kind == HOST_DISPLAY)
			continue;
		if (d->node < 0)
			host_miss(host, "the NUMA node of %s%u (%s)", kind, d->nth,
				  d->pci);
		if (!d->bridges)
			host_miss(host, "the bridges above %s%u (%s)", kind, d->nth,
				  d->pci);
		if (d->kind == HOST_NIC && !d->net[0] && !d->rdma[0])
			host_miss(host,
				  "a name of nic%u (%s): no driver has it, or another "
				  "network namespace",
				  d->nth, d->pci);
		else if (d->kind == HOST_NIC && !d->bits_per_s)
			host_miss(host, "the speed of nic%u (%s%s%s)%s", d->nth, d->rdma,
				  d->rdma[0] && d->net[0] ? ", " : "", d->net,
				  d->state == HOST_DOWN ? ", which is down" : "");
	}
}

int host_open(const struct host_options *options, struct host **host, char *why)
{
	static const struct host_options all = {.xml = NULL};
	struct host *h = calloc(1, sizeof(*h));
	int rc;

	why[0] = '\0';
	if (!options)
		options = &all;
	if (!h) {
		snprintf(why, HOST_WHY, "no memory");
		return -ENOMEM;
	}
	if (options->sys)
		rc = host_read_sys(h, options->sys, !options->no_devices, why);
	else
		rc = host_read_hwloc(h, options, why);
	if (rc == -ENOTSUP && !options->xml && !options->sys) {
		host_miss(h, "%s", why);
		h->here = true;
		rc = host_read_sys(h, "/sys", !options->no_devices, why);
		if (!rc)
			host_read_usable(h);
	}
	if (rc) {
		if (rc == -ENOMEM)
			snprintf(why, HOST_WHY, "no memory");
		host_close(h);
		return rc;
	}
	finish(h);
	name_missing(h, !options->no_devices);
	*host = h;
	return 0;
}

void host_close(struct host *host)
{
	if (!host)
		return;
	free(host->cpu);
	free(host->core);
	free(host->node);
	free(host->cache);
	free(host->device);
	free(host);
}

unsigned host_count(const struct host *host, enum host_kind kind)
{
	unsigned n = 0;

	for (unsigned i = 0; i < host->devices; i++)
		n += host->device[i].kind == kind;
	return n;
}

int host_device(const struct host *host, enum host_kind kind, unsigned nth)
{
	for (unsigned i = 0; i < host->devices; i++)
		if (host->device[i].kind == kind && host->device[i].nth == nth)
			return (int)i;
	return -1;
}
