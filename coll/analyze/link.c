/* SPDX-License-Identifier: BSD-2-Clause */
/* See link.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "coll/analyze/link.h"

/* What one has given and the other not got; false: nothing. */
static bool link_is_short(const struct job *job, int32_t from, int32_t to,
			  struct link_cause *cause)
{
	static const struct job_end none;
	const struct job_end *a = job_link(job, from, to), *b = job_link(job, to, from);
	const struct {
		const char *what;
		uint64_t given, come;
	} row[] = {
		{"puts with a notification", a ? a->told : 0, (b ? b : &none)->notes},
		{"messages", a ? a->sends : 0, (b ? b : &none)->recvs},
		{"places that are ready", a ? a->ready_out : 0,
		 (b ? b : &none)->ready_in},
		{"puts that completed", a ? a->puts : 0, a ? a->put : 0},
		{"messages that completed", a ? a->sends : 0, a ? a->sent : 0},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (row[i].given <= row[i].come)
			continue;
		*cause = (struct link_cause){from, to, row[i].what, row[i].given,
					     row[i].come};
		return true;
	}
	return false;
}

/* From one that waits along those that are waited for. */
static bool walk(const struct job *job, int64_t group, uint32_t call, int32_t rank,
		 int8_t *seen, struct link_cause *cause)
{
	while (rank >= 0 && !seen[rank]) {
		const struct job_part *p = job_part(job, rank, (uint32_t)group);
		int32_t on;

		seen[rank] = 1;
		if (!p || !p->open || p->first != call)
			return false;
		on = p->call.waits;
		if (on < 0 || !job->seat[on].there)
			return false;
		/* What it waits for; or what it has sent, and waits to be taken. */
		if (link_is_short(job, on, rank, cause) ||
		    link_is_short(job, rank, on, cause))
			return true;
		rank = on;
	}
	return false;
}

bool link_find(const struct job *job, int64_t group, uint32_t call,
	       struct link_cause *cause)
{
	int8_t *seen = calloc((size_t)job->size, 1);
	bool found = false;

	for (int64_t i = seen ? job->group[group].parts : -1; i >= 0 && !found;
	     i = job->part[i].next)
		found = walk(job, group, call, job->part[i].rank, seen, cause);
	free(seen);
	return found;
}

/* The last that the provider told one of the two about the other, or about itself. */
static void say_provider(const struct job *job, int32_t rank, int32_t peer,
			 struct verdict *v)
{
	const struct trace_event *last = NULL;
	struct trace_dump d;
	char who[128];

	if (trace_load(job_path(job, rank), &d) != WEFT_SUCCESS)
		return;
	for (uint64_t i = 0; i < d.head.count; i++) {
		const struct trace_event *e = &d.event[i];

		if (e->kind == TRACE_NET && (e->peer == peer || e->peer < 0))
			last = e;
	}
	if (last) {
		verdict_say(v,
			    "the provider of %s: %s %" PRIu64 ", %.3f s before its dump",
			    job_who(job, rank, who), trace_what_name(last), last->bytes,
			    (double)(d.head.real[1] - trace_when(&d.head, last->ticks)) *
				    1e-9);
		snprintf(v->nic, sizeof(v->nic), "rank %" PRId32 ": %s %" PRIu64, rank,
			 trace_what_name(last), last->bytes);
	}
	trace_free(&d);
}

void link_say(const struct job *job, const struct link_cause *cause, struct verdict *v)
{
	char from[128], to[128];

	verdict_say(v, "%s gave %" PRIu64 " %s for %s, of which %" PRIu64 " have come",
		    job_who(job, cause->from, from), cause->given, cause->what,
		    job_who(job, cause->to, to), cause->come);
	say_provider(job, cause->from, cause->to, v);
	say_provider(job, cause->to, cause->from, v);
}
