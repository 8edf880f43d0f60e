/* SPDX-License-Identifier: BSD-2-Clause */
/* weft topo as text and as JSON. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/topo.h"

enum { SCHEMA = 1, LIST = 160 };

static double gib(uint64_t bytes)
{
	return (double)bytes / (1 << 30);
}

/* Which CPUs: of a core, of a node, or all; -1: whatever. */
struct which {
	int core, node;
	bool usable;
};

static bool is_of(const struct host *host, const struct host_cpu *cpu,
		  const struct which *w)
{
	return (w->core < 0 || cpu->core == w->core) &&
	       (w->node < 0 ||
		(cpu->core >= 0 && host->core[cpu->core].node == w->node)) &&
	       (!w->usable || cpu->usable);
}

/* "0-3,8", with dots where it is longer than there is room for. */
static void cpu_list(const struct host *host, const struct which *w, char out[LIST])
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < host->cpus; i++) {
		const int first = host->cpu[i].id;
		int last = first;

		if (!is_of(host, &host->cpu[i], w))
			continue;
		while (i + 1 < host->cpus && host->cpu[i + 1].id == last + 1 &&
		       is_of(host, &host->cpu[i + 1], w)) {
			last++;
			i++;
		}
		if (used + 16 > LIST) {
			snprintf(out + used, LIST - used, ",...");
			return;
		}
		used += (size_t)snprintf(out + used, LIST - used, "%s%d", used ? "," : "",
					 first);
		if (last > first)
			used += (size_t)snprintf(out + used, LIST - used, "-%d", last);
	}
}

static const char *state_name(enum host_state state)
{
	static const char *const names[] = {NULL, "up", "down"};

	return names[state];
}

/* ---- text ------------------------------------------------------------------------- */

/* The caches of a node's cores, or of all (-1): "2 x L3 of 32 MiB". */
static void caches_text(const struct host *host, int node, char *out, size_t size)
{
	int last = -1;
	unsigned n = 0;

	out[0] = '\0';
	for (unsigned c = 0; c < host->cores; c++) {
		const struct host_core *core = &host->core[c];

		if ((node >= 0 && core->node != node) || core->cache < 0 ||
		    core->cache == last)
			continue;
		last = core->cache;
		n++;
	}
	if (n)
		snprintf(out, size, ", %u x L%d of %.4g MiB", n, host->cache[last].level,
			 (double)host->cache[last].bytes / (1 << 20));
}

static void nodes_text(const struct host *host)
{
	char list[LIST], usable[LIST], caches[64];

	printf("\nNUMA nodes%s\n", host->nodes ? "" : ": not known");
	for (int n = 0; n < (int)host->nodes; n++) {
		const struct host_node *node = &host->node[n];

		caches_text(host, n, caches, sizeof(caches));
		printf("  node %d", node->id);
		if (node->package >= 0)
			printf("  package %d", node->package);
		if (node->memory)
			printf("  %.1f GiB", gib(node->memory));
		cpu_list(host, &(struct which){.core = -1, .node = n}, list);
		printf("  %u core%s%s; CPUs %s", node->cores, node->cores == 1 ? "" : "s",
		       caches, list[0] ? list : "none");
		if (node->usable < node->cores) {
			cpu_list(host,
				 &(struct which){.core = -1, .node = n, .usable = true},
				 usable);
			printf(", usable: %s", usable[0] ? usable : "none");
		}
		printf("\n");
	}
}

static void device_text(const struct host *host, const struct host_device *d)
{
	char name[16], names[2 * HOST_NAME + 4];

	snprintf(name, sizeof(name), "%s%u", host_kind_name(d->kind), d->nth);
	snprintf(names, sizeof(names), "%s%s%s", d->rdma,
		 d->rdma[0] && d->net[0] ? ", " : "", d->net);
	printf("  %-9s %-13s", name, d->pci[0] ? d->pci : "-");
	if (d->vendor_id)
		printf(" %04x:%04x", d->vendor_id, d->device_id);
	if (d->node >= 0)
		printf("  node %d", host->node[d->node].id);
	if (names[0])
		printf("  %s", names);
	if (d->model[0])
		printf("  %s", d->model);
	if (d->bits_per_s)
		printf("  %.4g Gb/s", (double)d->bits_per_s / 1e9);
	if (state_name(d->state))
		printf("  %s", state_name(d->state));
	printf("\n");
}

static void devices_text(const struct host *host, enum host_kind kind, const char *title)
{
	const unsigned n = host_count(host, kind);

	if (!n && (kind == HOST_DISPLAY || kind == HOST_VIRTUAL))
		return;
	printf("\n%s%s\n", title, n ? "" : ": none is seen");
	for (unsigned i = 0; i < host->devices; i++)
		if (host->device[i].kind == kind)
			device_text(host, &host->device[i]);
}

/* GPUs against NICs; without GPUs NICs against NICs. */
static void distances_text(const struct host *host)
{
	const enum host_kind rows = host_count(host, HOST_GPU) ? HOST_GPU : HOST_NIC;
	const unsigned nics = host_count(host, HOST_NIC);

	if (!nics || (rows == HOST_NIC && nics < 2))
		return;
	printf("\nDistances (card < switch < bridge < node < package < far)\n  %-6s", "");
	for (unsigned n = 0; n < nics; n++)
		printf("  %*s%u", n < 10 ? 6 : 5, "nic", n);
	printf("\n");
	for (unsigned r = 0; r < host_count(host, rows); r++) {
		const int i = host_device(host, rows, r);

		printf("  %s%-3u", host_kind_name(rows), r);
		for (unsigned n = 0; n < nics; n++) {
			const int j = host_device(host, HOST_NIC, n);

			printf(" %8s",
			       i == j ? "-" : host_near_name(host_near(host, i, j)));
		}
		printf("\n");
	}
}

static void core_text(const struct host *host, const char *what, int core)
{
	char list[LIST];

	if (core < 0) {
		printf(", %s: %s", what, host->cores ? "none is left" : "not known");
		return;
	}
	cpu_list(host, &(struct which){.core = core, .node = -1, .usable = true}, list);
	printf(", %s: CPUs %s", what, list);
}

static void shares_text(const struct topo *t)
{
	const struct host *host = t->host;

	printf("\nFor %u rank%s\n", t->ranks, t->ranks == 1 ? "" : "s");
	for (unsigned r = 0; r < t->ranks; r++) {
		const struct host_share *s = &t->share[r];

		printf("  rank %-3u ", r);
		if (s->gpu >= 0)
			printf("gpu%u, ", host->device[s->gpu].nth);
		if (s->nic >= 0) {
			const struct host_device *nic = &host->device[s->nic];

			printf("nic%u (%s", nic->nth,
			       nic->rdma[0] ? nic->rdma : nic->net);
			if (s->gpu >= 0)
				printf("; %s", s->near == HOST_NEAR_UNKNOWN
						       ? "how near is not known"
						       : host_near_name(s->near));
			printf(")");
		} else {
			printf("no NIC");
		}
		core_text(host, "core", s->core);
		core_text(host, "progress", s->progress);
		printf("\n");
	}
}

void topo_show_text(const struct topo *topo)
{
	const struct host *h = topo->host;
	unsigned usable = 0;

	for (unsigned i = 0; i < h->cpus; i++)
		usable += h->cpu[i].usable;
	printf("%s (%s): %u CPU%s, %u usable", topo->name ? topo->name : "another host",
	       h->source, h->cpus, h->cpus == 1 ? "" : "s", usable);
	if (h->cores)
		printf(", %u core%s", h->cores, h->cores == 1 ? "" : "s");
	if (h->packages)
		printf(", %u package%s", h->packages, h->packages == 1 ? "" : "s");
	printf("\n");
	nodes_text(h);
	devices_text(h, HOST_GPU, "GPUs");
	devices_text(h, HOST_NIC, "NICs");
	devices_text(h, HOST_DISPLAY, "Displays that compute nothing");
	devices_text(h, HOST_VIRTUAL, "Interfaces without a PCI device");
	distances_text(h);
	shares_text(topo);
	if (h->gaps)
		printf("\nNot known\n");
	for (unsigned i = 0; i < h->gaps; i++)
		printf("  %s\n", h->missing[i]);
}

/* ---- JSON ------------------------------------------------------------------------- */

/* An index, or the kernel's number of a node; null: not known. */
static void json_index(struct json *j, const char *key, int index)
{
	if (index >= 0)
		json_int(j, key, index);
	else
		json_text(j, key, NULL);
}

static void nodes_json(struct json *j, const struct host *host)
{
	json_array_begin(j, "numa_nodes");
	for (unsigned n = 0; n < host->nodes; n++) {
		const struct host_node *node = &host->node[n];

		json_object_begin(j, NULL);
		json_int(j, "id", node->id);
		json_index(j, "package", node->package);
		json_uint(j, "memory_bytes", node->memory);
		json_uint(j, "cores", node->cores);
		json_uint(j, "usable_cores", node->usable);
		json_object_end(j);
	}
	json_array_end(j);
}

static int node_id(const struct host *host, int node)
{
	return node >= 0 ? host->node[node].id : -1;
}

static void cores_json(struct json *j, const struct host *host)
{
	json_array_begin(j, "cores");
	for (int c = 0; c < (int)host->cores; c++) {
		const struct host_core *core = &host->core[c];

		json_object_begin(j, NULL);
		json_index(j, "package", core->package);
		json_index(j, "numa_node", node_id(host, core->node));
		json_index(j, "cache", core->cache);
		json_array_begin(j, "cpus");
		for (unsigned i = 0; i < host->cpus; i++)
			if (host->cpu[i].core == c)
				json_int(j, NULL, host->cpu[i].id);
		json_array_end(j);
		json_uint(j, "usable_cpus", core->usable);
		json_object_end(j);
	}
	json_array_end(j);
	json_array_begin(j, "caches");
	for (unsigned i = 0; i < host->caches; i++) {
		json_object_begin(j, NULL);
		json_int(j, "level", host->cache[i].level);
		json_uint(j, "bytes", host->cache[i].bytes);
		json_uint(j, "cores", host->cache[i].cores);
		json_object_end(j);
	}
	json_array_end(j);
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static void devices_json(struct json *j, const struct host *host, enum host_kind kind,
			 const char *key)
{
	json_array_begin(j, key);
	for (unsigned i = 0; i < host->devices; i++) {
		const struct host_device *d = &host->device[i];
		char id[16];

		if (d->kind != kind)
			continue;
		snprintf(id, sizeof(id), "%04x:%04x", d->vendor_id, d->device_id);
		json_object_begin(j, NULL);
		json_text(j, "pci", or_null(d->pci));
		json_text(j, "id", d->vendor_id ? id : NULL);
		json_text(j, "model", or_null(d->model));
		json_text(j, "net", or_null(d->net));
		json_text(j, "rdma", or_null(d->rdma));
		json_index(j, "numa_node", node_id(host, d->node));
		json_text(j, "state", state_name(d->state));
		json_uint(j, "bits_per_s", d->bits_per_s);
		json_array_begin(j, "bridges");
		for (unsigned b = 0; b < d->bridges; b++)
			json_text(j, NULL, d->bridge[b]);
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void distances_json(struct json *j, const struct host *host)
{
	json_array_begin(j, "gpu_nic_distances");
	for (unsigned g = 0; g < host_count(host, HOST_GPU); g++) {
		json_array_begin(j, NULL);
		for (unsigned n = 0; n < host_count(host, HOST_NIC); n++) {
			const enum host_near near =
				host_near(host, host_device(host, HOST_GPU, g),
					  host_device(host, HOST_NIC, n));

			json_text(j, NULL,
				  near == HOST_NEAR_UNKNOWN ? NULL
							    : host_near_name(near));
		}
		json_array_end(j);
	}
	json_array_end(j);
}

static void shares_json(struct json *j, const struct topo *t)
{
	json_array_begin(j, "ranks");
	for (unsigned r = 0; r < t->ranks; r++) {
		const struct host_share *s = &t->share[r];

		json_object_begin(j, NULL);
		json_index(j, "gpu", s->gpu >= 0 ? (int)t->host->device[s->gpu].nth : -1);
		json_index(j, "nic", s->nic >= 0 ? (int)t->host->device[s->nic].nth : -1);
		json_index(j, "core", s->core);
		json_index(j, "progress_core", s->progress);
		json_object_end(j);
	}
	json_array_end(j);
}

void topo_show_json(const struct topo *topo)
{
	const struct host *h = topo->host;
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_int(&j, "schema", SCHEMA);
	json_text(&j, "host", topo->name);
	json_text(&j, "source", h->source);
	json_bool(&j, "this_host", h->here);
	json_uint(&j, "packages", h->packages);
	json_uint(&j, "cpus", h->cpus);
	nodes_json(&j, h);
	cores_json(&j, h);
	devices_json(&j, h, HOST_GPU, "gpus");
	devices_json(&j, h, HOST_NIC, "nics");
	devices_json(&j, h, HOST_DISPLAY, "displays");
	devices_json(&j, h, HOST_VIRTUAL, "virtual");
	distances_json(&j, h);
	shares_json(&j, topo);
	json_array_begin(&j, "missing");
	for (unsigned i = 0; i < h->gaps; i++)
		json_text(&j, NULL, h->missing[i]);
	json_array_end(&j);
	json_object_end(&j);
	json_fini(&j);
}
