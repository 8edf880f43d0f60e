/* SPDX-License-Identifier: BSD-2-Clause */
/* See model.h. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/model.h"

/* ---- terms ---------------------------------------------------------------------------
 */

/* Ranks by number of a group or a child. NULL: no memory. */
static uint32_t *members(const uint32_t *of, int32_t ranks, uint32_t *numbers)
{
	uint32_t most = 0, *count;

	for (int32_t r = 0; r < ranks; r++)
		most = of[r] > most ? of[r] : most;
	*numbers = most + 1;
	count = calloc((size_t)most + 1, sizeof(*count));
	for (int32_t r = 0; count && r < ranks; r++)
		count[of[r]]++;
	return count;
}

static void lower(struct model_tier *t, double link, double shared,
		  enum fabric_distance bound)
{
	if (link < t->link)
		t->link = link;
	if (shared < t->shared) {
		t->shared = shared;
		t->bound = bound;
	}
}

/* The narrowest link of a child of a mesh. */
static double row_least(const struct sim_net *net, const struct sim_level *l, uint32_t c,
			uint32_t first, uint32_t size)
{
	double least = INFINITY;

	for (uint32_t j = 0; j < size; j++)
		/* Its own place in the row has no link behind it. */
		if (j != l->index[c] && net->capacity[first + j] < least)
			least = net->capacity[first + j];
	return least;
}

/* The narrowest of a place's links. */
static double torus_least(const struct sim_net *net, const struct sim_level *l, int32_t r)
{
	const struct sim_torus *t = l->torus;
	const uint32_t first =
		t->first[l->group[r]] + l->index[l->child[r]] * 2 * t->dims;
	double least = INFINITY;

	for (uint32_t i = 0; i < 2 * t->dims; i++)
		if (net->capacity[first + i] < least)
			least = net->capacity[first + i];
	return least;
}

/* So many links' worth a place has when all send to all: its two along the longest way by
 * the mean number of links that a message takes there. */
static double torus_spread(const struct sim_torus *t)
{
	double least = INFINITY;

	for (unsigned i = 0; i < t->dims; i++) {
		const double n = t->dim[i],
			     mean = (double)(t->dim[i] * t->dim[i] / 4) / n;

		least = 2 / mean < least ? 2 / mean : least;
	}
	return least;
}

/* The links from the children of a level into it. A mesh has one to each other child,
 * which counts only where ranks meet there: what passes on its way up is not held by it.
 */
static bool level_lower(const struct sim_net *net, const struct sim_level *l, bool meet,
			struct model_tier *t)
{
	uint32_t children, *count = members(l->child, net->ranks, &children);

	if (!count)
		return false;
	for (int32_t r = 0; r < net->ranks; r++) {
		const uint32_t c = l->child[r];

		if (r && c == l->child[r - 1])
			continue; /* the same links again */
		if (l->up && l->up[c] != SHARE_NONE) {
			const double wide = net->capacity[l->up[c]];

			lower(t, wide, wide / count[c], l->tier);
		} else if (meet && l->mesh && l->size[l->group[r]] > 1) {
			const uint32_t size = l->size[l->group[r]],
				       first = l->pair[l->group[r]] + l->index[c] * size;
			const double one = row_least(net, l, c, first, size);

			lower(t, one, one * (size - 1) / count[c], l->tier);
		} else if (meet && l->torus &&
			   l->torus->first[l->group[r]] != SHARE_NONE) {
			const double one = torus_least(net, l, r);

			lower(t, one, one * torus_spread(l->torus) / count[c], l->tier);
		}
	}
	free(count);
	return true;
}

static bool tier_make(const struct sim_net *net, unsigned at, struct model_tier *t)
{
	const struct sim_level *l = &net->level[at];
	const unsigned port = at == 0 ? SIM_HOST_OUT : SIM_OUT;
	uint32_t groups, *count = members(l->group, net->ranks, &groups);

	if (!count)
		return false;
	*t = (struct model_tier){.tier = l->tier,
				 .latency = l->latency,
				 .bound = FABRIC_UNKNOWN,
				 .link = INFINITY,
				 .port = net->capacity[net->links + port]};
	for (uint32_t g = 0; g < groups; g++) {
		t->ranks = (int32_t)count[g] > t->ranks ? (int32_t)count[g] : t->ranks;
		t->groups += count[g] > 0;
	}
	free(count);
	for (int32_t r = 0; r < net->ranks; r++) {
		const double mine =
			net->capacity[net->links + (uint32_t)r * SIM_PORTS + port];

		t->port = mine < t->port ? mine : t->port;
	}
	t->shared = t->port;
	for (unsigned i = 1; i <= at; i++)
		if (!level_lower(net, &net->level[i], i == at, t))
			return false;
	t->alone = t->link < t->port ? t->link : t->port;
	return true;
}

bool model_make(const struct sim_net *net, struct model *model)
{
	int32_t below = 1;

	model->tiers = 0;
	for (unsigned i = 0; i < net->levels; i++) {
		struct model_tier *t = &model->tier[model->tiers];

		if (!net->level[i].said)
			continue;
		if (!tier_make(net, i, t))
			return false;
		/* Where no more meet than below, nobody's way leads here. */
		if (t->ranks > below) {
			below = t->ranks;
			model->tiers++;
		}
	}
	return true;
}

/* ---- formulas ------------------------------------------------------------------------
 */

/* What each rank does: so many messages one after the other, so many bytes in all, and
 * bytes that go to each other rank (all-to-all) or to a neighbour. */
struct form {
	double steps, bytes;
	bool spread; /* to all ranks alike */
};

/* Of n ranks with m bytes. False: there are no formulas for it. */
static bool form_of(const char *coll, double n, double m, struct form *f)
{
	*f = (struct form){.steps = n - 1, .bytes = (n - 1) * m};
	if (strcmp(coll, "allgather") == 0 || strcmp(coll, "reduce_scatter") == 0)
		return true;
	if (strcmp(coll, "alltoall") == 0) {
		f->spread = true;
		return true;
	}
	if (strcmp(coll, "allreduce") == 0) {
		*f = (struct form){.steps = 2 * (n - 1), .bytes = 2 * (n - 1) / n * m};
		return true;
	}
	if (strcmp(coll, "broadcast") == 0) { /* scattered and gathered: van de Geijn */
		*f = (struct form){.steps = 2 * (n - 1), .bytes = 2 * (n - 1) / n * m};
		return true;
	}
	return false;
}

static struct model_time time_of(const struct form *f, const struct model_tier *t,
				 double rate, enum fabric_distance bound, double overhead)
{
	const double start = f->steps * (t->latency + overhead), carry = f->bytes / rate;

	return (struct model_time){.s = start + carry,
				   .tier = t->tier,
				   .bound = bound,
				   .bytes = carry >= start};
}

/* A ring of domains, `lanes` ranks of each: neighbours are near each other, so that a
 * link is shared by no more than these. */
static double ring_rate(const struct model_tier *t, int32_t lanes,
			enum fabric_distance *bound)
{
	const double share = t->link / lanes;

	*bound = share < t->port ? t->bound : FABRIC_UNKNOWN;
	return share < t->port ? fmax(share, t->shared) : t->port;
}

bool model_answer(const struct model *model, const char *coll, double bytes,
		  double overhead, struct model_answer *answer)
{
	const struct model_tier *low = &model->tier[0],
				*top = model->tiers ? &model->tier[model->tiers - 1]
						    : low;
	enum fabric_distance bound;
	struct form f;
	double n, d, rate;

	memset(answer, 0, sizeof(*answer));
	if (!form_of(coll, 2, bytes, &f))
		return false;
	answer->domain = model->tiers ? low->ranks : 1;
	answer->domains = model->tiers > 1 ? low->groups : 1;
	if (!model->tiers)
		return true;
	n = top->ranks;
	d = answer->domain;
	form_of(coll, d, bytes, &f);
	answer->inside = time_of(&f, low, low->shared, low->bound, overhead);
	form_of(coll, n, bytes, &f);
	rate = f.spread ? top->shared : ring_rate(top, 1, &bound);
	if (f.spread)
		bound = top->bound;
	answer->flat = time_of(&f, top, rate, bound, overhead);
	if (answer->domains == 1) {
		answer->across = (struct model_time){.tier = low->tier};
		answer->both = answer->inside;
		return true;
	}
	/* Each rank of a domain has its part of a vector, or its own block. */
	if (strcmp(coll, "allreduce") == 0 || strcmp(coll, "broadcast") == 0)
		form_of(coll, answer->domains, bytes / d, &f);
	else if (f.spread)
		form_of(coll, answer->domains, bytes * d, &f);
	else
		form_of(coll, answer->domains, bytes, &f);
	rate = f.spread ? top->shared : ring_rate(top, answer->domain, &bound);
	if (f.spread)
		bound = top->bound;
	answer->across = time_of(&f, top, rate, bound, overhead);
	/* Blocks of all domains pass inside after they came across. */
	if (strcmp(coll, "allgather") == 0 || strcmp(coll, "reduce_scatter") == 0 ||
	    f.spread) {
		form_of(coll, d, bytes * answer->domains, &f);
		answer->both = time_of(&f, low, low->shared, low->bound, overhead);
	} else {
		answer->both = answer->inside;
	}
	if (answer->across.s >= answer->both.s) {
		rate = answer->both.s;
		answer->both = answer->across;
		answer->both.s += rate;
	} else {
		answer->both.s += answer->across.s;
	}
	return true;
}
