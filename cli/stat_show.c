/* SPDX-License-Identifier: BSD-2-Clause */
/* See stat.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/stat.h"
#include "coll/trace/take.h"

/* ---- what the system says of the process --------------------------------------------
 */

struct memory {
	uint64_t resident, locked, pinned; /* KiB */
	uint64_t threads;
};

static void memory_read(int64_t pid, struct memory *m)
{
	const struct {
		const char *name;
		uint64_t *value;
	} rows[] = {{"VmRSS:", &m->resident},
		    {"VmLck:", &m->locked},
		    {"VmPin:", &m->pinned},
		    {"Threads:", &m->threads}};
	char name[64], line[256];
	FILE *in;

	memset(m, 0, sizeof(*m));
	snprintf(name, sizeof(name), "/proc/%" PRId64 "/status", pid);
	in = fopen(name, "re");
	while (in && fgets(line, sizeof(line), in)) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			const size_t len = strlen(rows[i].name);

			if (strncmp(line, rows[i].name, len) == 0)
				*rows[i].value = strtoull(line + len, NULL, 10);
		}
	}
	if (in)
		fclose(in);
}

static const char *state_name(char state)
{
	return state == 'T' || state == 't' ? "stopped"
	       : state == 'Z' || state == 0 ? "dead"
	       : state == 'R'		    ? "running"
					    : "sleeping";
}

/* ---- figures ------------------------------------------------------------------------
 */

static double span(const struct look *l, uint64_t ticks)
{
	return (double)trace_span(&l->head, ticks) * 1e-9;
}

/* Seconds since; -1: never. */
static double ago(const struct look *l, uint64_t ticks)
{
	return !ticks			  ? -1
	       : ticks > l->head.ticks[1] ? 0
					  : span(l, l->head.ticks[1] - ticks);
}

/* Seconds between the two. */
static double between(const struct look *now, const struct look *was)
{
	return was ? (double)(now->head.mono[1] - was->head.mono[1]) * 1e-9 : 0;
}

static double rate(uint64_t now, uint64_t was, double seconds)
{
	return seconds > 0 && now >= was ? (double)(now - was) / seconds : 0;
}

static const struct trace_peer *peer_of(const struct look *l, int32_t rank)
{
	for (uint32_t i = 0; l && i < l->head.peer_count; i++)
		if (l->peer[i].rank == rank)
			return &l->peer[i];
	return NULL;
}

static uint64_t count_of(const struct look *l, const char *name)
{
	for (int i = 0; l && i < TRACE_COUNTS && *l->live.count[i].name; i++)
		if (strcmp(l->live.count[i].name, name) == 0)
			return l->live.count[i].value;
	return 0;
}

static const char *sum_name(int i)
{
	return i < WEFT_COLL_COUNT ? weft_coll_name((enum weft_coll)i) : "message";
}

static bool is_open(const struct trace_call *c)
{
	return c->state == TRACE_CALL_OPEN || c->state == TRACE_CALL_FAILED;
}

static const char *call_name(const struct trace_call *c)
{
	return c->flags & TRACE_CALL_PAIR ? "message" : sum_name(c->coll);
}

/* Puts and messages that were given to the provider and have not completed. */
static uint64_t under_way(const struct trace_peer *p)
{
	return (p->puts > p->put ? p->puts - p->put : 0) +
	       (p->sends > p->sent ? p->sends - p->sent : 0);
}

/* ---- text ---------------------------------------------------------------------------
 */

static void text_calls(const struct look *l)
{
	bool any = false;

	for (int i = 0; i < TRACE_SUMS; i++) {
		const struct trace_sum *s = &l->live.sum[i];

		if (!s->calls)
			continue;
		printf("%s%s %" PRIu64, any ? ", " : "  calls that ended: ", sum_name(i),
		       s->calls);
		if (s->failed)
			printf(" (%" PRIu64 " failed)", s->failed);
		any = true;
	}
	printf("%s", any ? "\n" : "  no call has ended\n");
	for (uint32_t i = 0; i < l->head.call_count; i++) {
		const struct trace_call *c = &l->call[i];

		if (!is_open(c))
			continue;
		printf("  %s: call %u of communicator %u, %s of %" PRIu64,
		       c->state == TRACE_CALL_OPEN ? "in flight" : "failed", c->call,
		       c->comm, call_name(c), c->count);
		if (!(c->flags & TRACE_CALL_LINES))
			printf(", %u of %u steps, %s", c->steps, c->all,
			       trace_stage_name(c->on));
		if (c->start)
			printf(", began %.3f s ago", ago(l, c->start));
		if (c->moved)
			printf(", moved %.3f s ago", ago(l, c->moved));
		if (c->waits >= 0)
			printf(", waits for rank %" PRId32, c->waits);
		if (c->state == TRACE_CALL_FAILED)
			printf(": %s", weft_strerror((enum weft_result)c->result));
		printf("\n");
	}
}

static void text_comms(const struct look *l)
{
	for (uint32_t i = 0; i < l->head.comm_count; i++) {
		const struct trace_comm *c = &l->comm[i];

		printf("  communicator %u: rank %" PRId32 " of %" PRId32
		       ", %u calls started, %u ended%s\n",
		       c->number, c->self, c->size, c->started, c->ended,
		       c->state == TRACE_COMM_BAD ? "; it failed" : "");
	}
}

static void text_peers(const struct look *l, const struct look *was)
{
	const double seconds = between(l, was);

	if (l->head.peer_count)
		printf("  %6s %14s %14s %10s %10s %9s %9s %9s\n", "peer", "bytes to it",
		       "bytes from it", "MB/s to", "MB/s from", "under way", "ready to",
		       "last, s");
	for (uint32_t i = 0; i < l->head.peer_count; i++) {
		const struct trace_peer *p = &l->peer[i], *b = peer_of(was, p->rank);
		const uint64_t last = p->last_out > p->last_in ? p->last_out : p->last_in;

		printf("  %6" PRId32 " %14" PRIu64 " %14" PRIu64, p->rank, p->bytes_out,
		       p->bytes_in);
		if (b)
			printf(" %10.2f %10.2f",
			       rate(p->bytes_out, b->bytes_out, seconds) / 1e6,
			       rate(p->bytes_in, b->bytes_in, seconds) / 1e6);
		else
			printf(" %10s %10s", "-", "-");
		printf(" %9" PRIu64 " %9" PRIu64, under_way(p), p->ready_in);
		if (last)
			printf(" %9.3f", ago(l, last));
		else
			printf(" %9s", "-");
		printf("%s\n", p->lost ? "  lost" : "");
	}
}

static void text_lanes(const struct look *l)
{
	if (l->live.lanes)
		printf("  %6s %5s %5s %12s %14s %8s %8s\n", "peer", "lane", "rail",
		       "packets", "bytes", "lost", "retired");
	for (uint32_t i = 0; i < l->live.lanes; i++) {
		const struct trace_lane *n = &l->live.lane[i];

		printf("  %6" PRId32 " %5u %5u %12" PRIu64 " %14" PRIu64 " %8" PRIu64
		       " %8" PRIu64 "%s\n",
		       n->peer, n->number, n->rail, n->packets, n->bytes, n->lost,
		       n->retired, n->up ? "" : "  down");
	}
}

static void text_counts(const struct look *l, const struct look *was)
{
	const double seconds = between(l, was);
	bool any = false;

	if (!l->live.counted) {
		printf("  its provider counts nothing, or was not looked at yet\n");
		return;
	}
	printf("  its provider counted, as of %.1f s ago:", ago(l, l->live.counted));
	for (int i = 0; i < TRACE_COUNTS && *l->live.count[i].name; i++) {
		const struct trace_count *c = &l->live.count[i];

		if (!c->value)
			continue;
		any = true;
		printf(" %s %" PRIu64, c->name, c->value);
		if (was)
			printf(" (%.0f/s)",
			       rate(c->value, count_of(was, c->name), seconds));
	}
	printf("%s\n", any ? "" : " nothing");
}

void stat_text(const struct look *l, const struct look *was)
{
	const struct trace_head *h = &l->head;
	struct memory m;

	memory_read(h->pid, &m);
	printf("rank %" PRId32 " of %" PRId32 " on %s, process %" PRId64
	       " (%s), provider %s, open for %.1f s; it looked at the network %.3f s "
	       "ago\n",
	       h->rank, h->size, h->host, h->pid, state_name(take_state((pid_t)h->pid)),
	       *h->provider ? h->provider : "not known",
	       span(l, h->ticks[1] - h->ticks[0]), ago(l, h->looked));
	printf("  memory: %.1f MiB resident, %.1f locked, %.1f pinned; %" PRIu64
	       " threads\n",
	       (double)m.resident / 1024, (double)m.locked / 1024,
	       (double)m.pinned / 1024, m.threads);
	text_comms(l);
	text_calls(l);
	text_peers(l, was);
	text_lanes(l);
	text_counts(l, was);
}

/* ---- JSON ---------------------------------------------------------------------------
 */

static void json_calls(struct json *j, const struct look *l)
{
	json_array_begin(j, "ended");
	for (int i = 0; i < TRACE_SUMS; i++) {
		const struct trace_sum *s = &l->live.sum[i];

		if (!s->calls)
			continue;
		json_object_begin(j, NULL);
		json_text(j, "collective", sum_name(i));
		json_uint(j, "calls", s->calls);
		json_uint(j, "failed", s->failed);
		json_uint(j, "by_lines", s->lines);
		json_uint(j, "sent_bytes", s->sent);
		json_uint(j, "received_bytes", s->got);
		json_object_end(j);
	}
	json_array_end(j);
	json_array_begin(j, "in_flight");
	for (uint32_t i = 0; i < l->head.call_count; i++) {
		const struct trace_call *c = &l->call[i];

		if (!is_open(c))
			continue;
		json_object_begin(j, NULL);
		json_uint(j, "communicator", c->comm);
		json_uint(j, "call", c->call);
		json_text(j, "collective", call_name(c));
		json_uint(j, "count", c->count);
		json_uint(j, "steps", c->steps);
		json_uint(j, "all_steps", c->all);
		json_text(j, "stage", trace_stage_name(c->on));
		json_real(j, "began_s", ago(l, c->start));
		json_real(j, "moved_s", ago(l, c->moved));
		json_int(j, "waits_for", c->waits);
		json_bool(j, "failed", c->state == TRACE_CALL_FAILED);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_comms(struct json *j, const struct look *l)
{
	json_array_begin(j, "communicators");
	for (uint32_t i = 0; i < l->head.comm_count; i++) {
		const struct trace_comm *c = &l->comm[i];

		json_object_begin(j, NULL);
		json_uint(j, "number", c->number);
		json_int(j, "rank", c->self);
		json_int(j, "size", c->size);
		json_uint(j, "started", c->started);
		json_uint(j, "ended", c->ended);
		json_bool(j, "failed", c->state == TRACE_COMM_BAD);
		json_uint(j, "sent_bytes", c->sent);
		json_uint(j, "received_bytes", c->got);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_peers(struct json *j, const struct look *l, const struct look *was)
{
	const double seconds = between(l, was);

	json_array_begin(j, "peers");
	for (uint32_t i = 0; i < l->head.peer_count; i++) {
		const struct trace_peer *p = &l->peer[i], *b = peer_of(was, p->rank);

		json_object_begin(j, NULL);
		json_int(j, "rank", p->rank);
		json_uint(j, "sent_bytes", p->bytes_out);
		json_uint(j, "received_bytes", p->bytes_in);
		if (b) {
			json_real(j, "sent_bytes_per_s",
				  rate(p->bytes_out, b->bytes_out, seconds));
			json_real(j, "received_bytes_per_s",
				  rate(p->bytes_in, b->bytes_in, seconds));
		}
		json_uint(j, "under_way", under_way(p));
		json_uint(j, "ready_to_it", p->ready_out);
		json_uint(j, "ready_from_it", p->ready_in);
		json_bool(j, "lost", p->lost);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_provider(struct json *j, const struct look *l)
{
	json_array_begin(j, "lanes");
	for (uint32_t i = 0; i < l->live.lanes; i++) {
		const struct trace_lane *n = &l->live.lane[i];

		json_object_begin(j, NULL);
		json_int(j, "peer", n->peer);
		json_uint(j, "lane", n->number);
		json_uint(j, "rail", n->rail);
		json_bool(j, "up", n->up);
		json_uint(j, "packets", n->packets);
		json_uint(j, "bytes", n->bytes);
		json_uint(j, "lost", n->lost);
		json_uint(j, "retired", n->retired);
		json_object_end(j);
	}
	json_array_end(j);
	json_real(j, "counted_s", ago(l, l->live.counted));
	json_object_begin(j, "counters");
	for (int i = 0; i < TRACE_COUNTS && *l->live.count[i].name; i++)
		json_uint(j, l->live.count[i].name, l->live.count[i].value);
	json_object_end(j);
}

void stat_json(struct json *j, const struct look *l, const struct look *was)
{
	const struct trace_head *h = &l->head;
	char job[17];
	struct memory m;

	memory_read(h->pid, &m);
	snprintf(job, sizeof(job), "%016" PRIx64, h->job);
	json_object_begin(j, NULL);
	json_int(j, "process", h->pid);
	json_text(j, "state", state_name(take_state((pid_t)h->pid)));
	json_text(j, "context", job);
	json_int(j, "rank", h->rank);
	json_int(j, "size", h->size);
	json_text(j, "host", h->host);
	json_text(j, "provider", h->provider);
	json_real(j, "open_s", span(l, h->ticks[1] - h->ticks[0]));
	json_real(j, "looked_s", ago(l, h->looked));
	json_uint(j, "resident_kib", m.resident);
	json_uint(j, "locked_kib", m.locked);
	json_uint(j, "pinned_kib", m.pinned);
	json_uint(j, "threads", m.threads);
	json_comms(j, l);
	json_calls(j, l);
	json_peers(j, l, was);
	json_provider(j, l);
	json_object_end(j);
}
