/* SPDX-License-Identifier: BSD-2-Clause */
/* See near.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "topo/host/near.h"

const char *host_near_name(enum host_near near)
{
	static const char *const names[] = {"card",    "switch", "bridge", "node",
					    "package", "far",	 "?"};

	return names[near];
}

/* "0000:3b:00.1" without the function. */
static size_t slot_len(const char *pci)
{
	const char *dot = strrchr(pci, '.');

	return dot ? (size_t)(dot - pci) : strlen(pci);
}

static enum host_near node_near(const struct host *host, int a, int b)
{
	int p, q;

	if (a < 0 || b < 0)
		return HOST_NEAR_UNKNOWN;
	if (a == b)
		return HOST_SAME_NODE;
	p = host->node[a].package;
	q = host->node[b].package;
	if (p < 0 || q < 0)
		return HOST_NEAR_UNKNOWN;
	return p == q ? HOST_SAME_PACKAGE : HOST_FAR;
}

enum host_near host_near(const struct host *host, int i, int j)
{
	const struct host_device *a = &host->device[i], *b = &host->device[j];
	unsigned same = 0;

	if (i == j)
		return HOST_SAME_CARD;
	if (!a->pci[0] || !b->pci[0])
		return HOST_NEAR_UNKNOWN;
	if (slot_len(a->pci) == slot_len(b->pci) &&
	    strncmp(a->pci, b->pci, slot_len(a->pci)) == 0)
		return HOST_SAME_CARD;
	while (same < a->bridges && same < b->bridges &&
	       strcmp(a->bridge[same], b->bridge[same]) == 0)
		same++;
	if (same)
		return same > 1 ? HOST_SAME_SWITCH : HOST_SAME_BRIDGE;
	return node_near(host, a->node, b->node);
}

static bool usable_nic(const struct host_device *d, bool rdma)
{
	return d->kind == HOST_NIC && d->state != HOST_DOWN &&
	       (rdma ? d->rdma[0] : d->net[0] || d->rdma[0]);
}

bool host_nic_chosen_from(const struct host *host, int nic)
{
	const struct host_device *d = &host->device[nic];
	uint64_t fastest = 0;
	bool rdma = false;

	for (unsigned i = 0; i < host->devices; i++)
		rdma = rdma || usable_nic(&host->device[i], true);
	for (unsigned i = 0; i < host->devices; i++)
		if (usable_nic(&host->device[i], rdma) &&
		    host->device[i].bits_per_s > fastest)
			fastest = host->device[i].bits_per_s;
	/* Of an unknown speed nothing can be said against it. */
	return usable_nic(d, rdma) && (!d->bits_per_s || d->bits_per_s >= fastest / 2);
}

struct choice {
	const struct host *host;
	unsigned *users; /* by device */
	bool *nic;	 /* by device: may be chosen */
	unsigned *load;	 /* by core */
};

/* The nearest NIC of a GPU; gpu -1: of a node. -1: there is none. */
static int choose_nic(struct choice *c, int gpu, int node, enum host_near *near)
{
	const struct host *host = c->host;
	int best = -1;

	*near = HOST_NEAR_UNKNOWN;
	for (int i = 0; i < (int)host->devices; i++) {
		enum host_near n;

		if (!c->nic[i])
			continue;
		n = gpu >= 0 ? host_near(host, gpu, i)
			     : node_near(host, node, host->device[i].node);
		if (best >= 0 &&
		    (n > *near || (n == *near && c->users[i] >= c->users[best])))
			continue;
		best = i;
		*near = n;
	}
	if (best >= 0)
		c->users[best]++;
	if (gpu < 0)
		*near = HOST_NEAR_UNKNOWN;
	return best;
}

static bool core_better(const struct choice *c, int core, int best, int node)
{
	const bool near = c->host->core[core].node == node,
		   best_near = c->host->core[best].node == node;

	if ((c->load[core] == 0) != (c->load[best] == 0))
		return c->load[core] == 0;
	if (near != best_near)
		return near;
	return c->load[core] < c->load[best];
}

/* A usable core, free ones first, then those of the node (-1: any); from the end or the
 * beginning. */
static int choose_core(struct choice *c, int node, bool from_end, bool only_free)
{
	const int cores = (int)c->host->cores;
	int best = -1;

	for (int k = 0; k < cores; k++) {
		const int core = from_end ? cores - 1 - k : k;

		if (!c->host->core[core].usable || (only_free && c->load[core]))
			continue;
		if (best < 0 || core_better(c, core, best, node))
			best = core;
	}
	if (best >= 0)
		c->load[best]++;
	return best;
}

static int node_of(const struct host *host, int gpu, int nic)
{
	if (gpu >= 0 && host->device[gpu].node >= 0)
		return host->device[gpu].node;
	return nic >= 0 ? host->device[nic].node : -1;
}

static void share_all(struct choice *c, unsigned ranks, struct host_share *share)
{
	const unsigned gpus = host_count(c->host, HOST_GPU);

	for (unsigned r = 0; r < ranks; r++) {
		struct host_share *s = &share[r];
		const unsigned nodes = c->host->nodes;

		s->gpu = gpus ? host_device(c->host, HOST_GPU, r % gpus) : -1;
		s->nic = -1;
		if (s->gpu >= 0)
			s->nic = choose_nic(c, s->gpu, -1, &s->near);
		/* Without GPUs ranks are spread over the nodes evenly, in order. */
		s->core = choose_core(c,
				      s->gpu >= 0 ? node_of(c->host, s->gpu, s->nic)
				      : nodes	  ? (int)((uint64_t)r * nodes / ranks)
						  : -1,
				      false, false);
		if (s->gpu < 0)
			s->nic = choose_nic(
				c, -1, s->core >= 0 ? c->host->core[s->core].node : -1,
				&s->near);
	}
	for (unsigned r = 0; r < ranks; r++) {
		struct host_share *s = &share[r];
		int node = node_of(c->host, s->nic, s->gpu);

		if (node < 0 && s->core >= 0)
			node = c->host->core[s->core].node;
		s->progress = choose_core(c, node, true, true);
	}
}

bool host_shares(const struct host *host, unsigned ranks, struct host_share *share)
{
	struct choice c = {
		.host = host,
		.users = calloc(host->devices + 1, sizeof(*c.users)),
		.nic = calloc(host->devices + 1, sizeof(*c.nic)),
		.load = calloc(host->cores + 1, sizeof(*c.load)),
	};
	const bool good = c.users && c.nic && c.load;

	for (int i = 0; good && i < (int)host->devices; i++)
		c.nic[i] = host_nic_chosen_from(host, i);
	if (good)
		share_all(&c, ranks, share);
	free(c.users);
	free(c.nic);
	free(c.load);
	return good;
}
