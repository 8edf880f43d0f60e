/* SPDX-License-Identifier: BSD-2-Clause */
/* weft sim: which collectives run at once, on which ranks, and what each is kept waiting
 * by the others. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sim.h"
#include "coll/plan/nodes.h"

static int fail(char *why, size_t why_len, const char *text)
{
	snprintf(why, why_len, "%s", text);
	return -EINVAL;
}

/* Ranks at[0] to at[n - 1] that share a host: the lowest of them. NULL: no memory. */
static struct plan_nodes *nodes_of(const struct sim_net *net, const int32_t *at,
				   int32_t n)
{
	int32_t *lead = malloc((size_t)n * sizeof(*lead)), *first = NULL;
	struct plan_nodes *nodes = NULL;
	uint32_t most = 0;

	for (int32_t r = 0; r < net->ranks; r++)
		most = net->host[r] > most ? net->host[r] : most;
	first = malloc(((size_t)most + 1) * sizeof(*first));
	if (lead && first) {
		memset(first, 0xff, ((size_t)most + 1) * sizeof(*first));
		for (int32_t r = 0; r < n; r++) {
			const uint32_t host = net->host[at ? at[r] : r];

			if (first[host] < 0)
				first[host] = r;
			lead[r] = first[host];
		}
		nodes = plan_nodes_make(lead, n);
	}
	free(lead);
	free(first);
	return nodes;
}

/* first, first + step and so on; those of one group. */
static int32_t *ranks_list(const struct sim_some *some, int32_t *count)
{
	const int32_t n = (some->last - some->first) / some->step + 1;
	int32_t *at = malloc((size_t)n * sizeof(*at));

	for (int32_t i = 0; at && i < n; i++)
		at[i] = some->first + i * some->step;
	*count = n;
	return at;
}

/* All of the network are no list: the engine and the ring know them so. */
static int job_add(struct sim_set *set, const struct sim_net *net,
		   const struct sim_some *some, const struct sim_part *part)
{
	struct sim_job *job = &set->job[set->jobs];
	const uint32_t elem = part->bytes % 4 ? 1 : 4;
	const bool all =
		some->first == 0 && some->step == 1 && some->last == net->ranks - 1;
	int32_t n = net->ranks, *at = NULL;

	if (!all) {
		at = ranks_list(some, &n);
		if (!at)
			return -ENOMEM;
	}
	set->some[set->jobs] = *some;
	set->bytes[set->jobs] = part->bytes;
	set->nodes[set->jobs] = nodes_of(net, at, n);
	*job = (struct sim_job){.algo = part->algo,
				.at = at,
				.begin = part->begin,
				.call = {.size = n,
					 .count = part->bytes / elem,
					 .elem_size = elem,
					 .chunk_bytes = part->chunk,
					 .nodes = set->nodes[set->jobs]}};
	set->jobs++;
	if (!job->call.nodes)
		return -ENOMEM;
	if (!job->algo)
		job->algo = algo_choose(part->coll, &job->call);
	return 0;
}

/* The main one's ranks: all, or some, or those of each group. */
static int main_add(struct sim_set *set, const struct sim_ask *ask,
		    const struct sim_net *net, const struct sim_part *part, char *why,
		    size_t why_len)
{
	const int32_t n = net->ranks, groups = ask->groups ? ask->groups : 1;
	struct sim_some some = {0, n - 1, 1};
	int rc = 0;

	if (ask->on.step) {
		if (ask->on.last >= n)
			return fail(why, why_len,
				    "--on names ranks that there are not; the last is "
				    "--ranks less one");
		return job_add(set, net, &ask->on, part);
	}
	if (n % groups)
		return fail(why, why_len,
			    "--groups: the ranks cannot be parted into so many groups "
			    "that are equal");
	for (int32_t g = 0; !rc && g < groups; g++) {
		if (ask->groups && ask->strided)
			some = (struct sim_some){g, n - groups + g, groups};
		else if (ask->groups)
			some = (struct sim_some){g * (n / groups),
						 (g + 1) * (n / groups) - 1, 1};
		rc = job_add(set, net, &some, part);
	}
	return rc;
}

int sim_set_make(struct sim_set *set, const struct sim_ask *ask,
		 const struct sim_net *net, const struct algo *algo, uint64_t bytes,
		 char *why, size_t why_len)
{
	const struct sim_part first = {
		.coll = ask->coll, .algo = algo, .bytes = bytes, .chunk = ask->chunk};
	const size_t room = (size_t)(ask->groups ? ask->groups : 1) + ask->alsos;
	int rc;

	*set = (struct sim_set){.job = calloc(room, sizeof(*set->job)),
				.some = calloc(room, sizeof(*set->some)),
				.bytes = calloc(room, sizeof(*set->bytes)),
				.nodes = calloc(room, sizeof(void *)),
				.end = calloc(room, sizeof(*set->end)),
				.alone = calloc(room, sizeof(*set->alone))};
	snprintf(why, why_len, "no memory");
	if (!set->job || !set->some || !set->bytes || !set->nodes || !set->end ||
	    !set->alone)
		return -ENOMEM;
	rc = main_add(set, ask, net, &first, why, why_len);
	set->mains = set->jobs;
	for (unsigned i = 0; !rc && i < ask->alsos; i++) {
		struct sim_some some = ask->also[i].on;

		if (!some.step)
			some = (struct sim_some){0, net->ranks - 1, 1};
		if (some.last >= net->ranks)
			return fail(why, why_len,
				    "--also names ranks that there are not; the last is "
				    "--ranks less one");
		rc = job_add(set, net, &some, &ask->also[i]);
	}
	return rc;
}

void sim_set_free(struct sim_set *set)
{
	for (unsigned i = 0; i < set->jobs; i++) {
		free((int32_t *)set->job[i].at);
		free(set->nodes[i]);
	}
	free(set->job);
	free(set->some);
	free(set->bytes);
	free(set->nodes);
	free(set->end);
	free(set->alone);
}

/* What each takes when the others are not there; of many only the one that ends last. */
static int alone_run(struct sim_set *set, const struct sim_net *net,
		     const struct sim_options *o, char *why, size_t why_len)
{
	enum { EACH_MOST = 16 };
	struct sim_result r;
	unsigned last = 0;
	int rc = 0;

	for (unsigned i = 0; i < set->jobs; i++)
		if (set->end[i] > set->end[last])
			last = i;
	for (unsigned i = 0; !rc && i < set->jobs; i++) {
		double end = 0;

		set->alone[i] = -1;
		if (set->jobs > EACH_MOST && i != last)
			continue;
		rc = sim_run(net, &set->job[i], 1, o, &r, &end, why, why_len);
		set->alone[i] = end - set->job[i].begin;
	}
	return rc;
}

int sim_set_run(struct sim_set *set, const struct sim_net *net,
		const struct sim_options *o, struct sim_result *result, char *why,
		size_t why_len)
{
	int rc = sim_run(net, set->job, set->jobs, o, result, set->end, why, why_len);

	return rc ? rc : alone_run(set, net, o, why, why_len);
}
