/* SPDX-License-Identifier: BSD-2-Clause */
/* See prom.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coll/trace/prom.h"

void prom_take(const struct recorder *r, struct prom *prom)
{
	prom->head = r->image->head;
	prom->head.ticks[1] = ticks_now(r->counter);
	prom->head.mono[1] = ticks_clock_ns(CLOCK_MONOTONIC);
	memcpy(prom->sum, r->image->live.sum, sizeof(prom->sum));
	memcpy(prom->comm, r->image->comm, sizeof(prom->comm));
	memcpy(prom->peer, r->image->peer, sizeof(prom->peer));
	memcpy(prom->count, r->image->live.count, sizeof(prom->count));
	memcpy(prom->lane, r->image->live.lane, sizeof(prom->lane));
	prom->lanes = r->image->live.lanes;
}

static void family(FILE *out, const char *name, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
}

static double seconds(const struct prom *prom, uint64_t ticks)
{
	return (double)trace_span(&prom->head, ticks) * 1e-9;
}

/* With what is on its way now. */
static double busy(const struct prom *prom, uint64_t ticks, uint32_t flying,
		   uint64_t since)
{
	if (flying && prom->head.ticks[1] > since)
		ticks += prom->head.ticks[1] - since;
	return seconds(prom, ticks);
}

/* ---- collectives ------------------------------------------------------------------- */

static const char *sum_name(int i)
{
	return i < WEFT_COLL_COUNT ? weft_coll_name((enum weft_coll)i) : "message";
}

enum sum_field { SUM_CALLS, SUM_FAILURES, SUM_SENT, SUM_GOT, SUM_FIELDS };

static const struct {
	const char *name, *help;
} sum_family[SUM_FIELDS] = {
	{"weft_calls_total", "Calls that ended."},
	{"weft_failures_total", "Calls that failed."},
	{"weft_sent_bytes_total", "Payload sent."},
	{"weft_received_bytes_total", "Payload received."},
};

static uint64_t sum_value(const struct trace_sum *s, enum sum_field field)
{
	const uint64_t value[SUM_FIELDS] = {s->calls, s->failed, s->sent, s->got};

	return value[field];
}

static void put_sums(FILE *out, const struct prom *prom)
{
	const int32_t rank = prom->head.rank;

	for (int f = 0; f < SUM_FIELDS; f++) {
		family(out, sum_family[f].name, sum_family[f].help);
		for (int i = 0; i < TRACE_SUMS; i++) {
			if (prom->sum[i].calls)
				fprintf(out,
					"%s{rank=\"%" PRId32
					"\",collective=\"%s\"} %" PRIu64 "\n",
					sum_family[f].name, rank, sum_name(i),
					sum_value(&prom->sum[i], (enum sum_field)f));
		}
	}
	family(out, "weft_call_seconds_total", "Time in calls that do not go by lines.");
	for (int i = 0; i < TRACE_SUMS; i++) {
		if (prom->sum[i].calls)
			fprintf(out,
				"weft_call_seconds_total{rank=\"%" PRId32
				"\",collective=\"%s\"} %.9f\n",
				rank, sum_name(i), seconds(prom, prom->sum[i].ticks));
	}
}

static void put_stages(FILE *out, const struct prom *prom)
{
	family(out, "weft_stage_seconds_total", "What that time was spent on.");
	for (int i = 0; i < TRACE_SUMS; i++) {
		for (unsigned k = 0; prom->sum[i].calls && k < TRACE_STAGES; k++)
			fprintf(out,
				"weft_stage_seconds_total{rank=\"%" PRId32
				"\",collective=\"%s\",stage=\"%s\"} %.9f\n",
				prom->head.rank, sum_name(i), trace_stage_name(k),
				seconds(prom, prom->sum[i].stage[k]));
	}
}

/* ---- communicators and peers --------------------------------------------------------
 */

/* Those that are closed are shown until another one takes their place. */
static void put_comms(FILE *out, const struct prom *prom)
{
	static const char sent[] = "weft_communicator_sent_bytes_total",
			  time[] = "weft_communicator_busy_seconds_total";

	family(out, sent, "Payload sent.");
	for (int i = 0; i < TRACE_COMMS; i++) {
		const struct trace_comm *c = &prom->comm[i];

		if (c->state != TRACE_COMM_NONE || c->started)
			fprintf(out,
				"%s{rank=\"%" PRId32
				"\",communicator=\"%u\",size=\"%" PRId32 "\"} %" PRIu64
				"\n",
				sent, prom->head.rank, c->number, c->size, c->sent);
	}
	family(out, time, "Time in which something was on its way.");
	for (int i = 0; i < TRACE_COMMS; i++) {
		const struct trace_comm *c = &prom->comm[i];

		if (c->state != TRACE_COMM_NONE || c->started)
			fprintf(out,
				"%s{rank=\"%" PRId32
				"\",communicator=\"%u\",size=\"%" PRId32 "\"} %.9f\n",
				time, prom->head.rank, c->number, c->size,
				busy(prom, c->busy, c->flying, c->since));
	}
}

enum peer_field { PEER_SENT, PEER_PUTS, PEER_NOTES, PEER_FIELDS };

static const struct {
	const char *name, *help;
} peer_family[PEER_FIELDS] = {
	{"weft_peer_sent_bytes_total", "Payload sent to a rank."},
	{"weft_peer_puts_total", "Remote writes given to the provider."},
	{"weft_peer_notifications_total", "Notifications of its writes that came."},
};

static void put_peers(FILE *out, const struct prom *prom)
{
	for (int f = 0; f < PEER_FIELDS; f++) {
		family(out, peer_family[f].name, peer_family[f].help);
		for (int i = 0; i < TRACE_PEERS; i++) {
			const struct trace_peer *p = &prom->peer[i];
			const uint64_t value[PEER_FIELDS] = {p->bytes_out, p->puts,
							     p->notes};

			if (p->used)
				fprintf(out,
					"%s{rank=\"%" PRId32 "\",peer=\"%" PRId32
					"\"} %" PRIu64 "\n",
					peer_family[f].name, prom->head.rank, p->rank,
					value[f]);
		}
	}
	family(out, "weft_peer_busy_seconds_total",
	       "Time in which something was on its way to it.");
	for (int i = 0; i < TRACE_PEERS; i++) {
		const struct trace_peer *p = &prom->peer[i];

		if (p->used)
			fprintf(out,
				"weft_peer_busy_seconds_total{rank=\"%" PRId32
				"\",peer=\"%" PRId32 "\"} %.9f\n",
				prom->head.rank, p->rank,
				busy(prom, p->busy, p->flying, p->since));
	}
}

/* ---- the provider ------------------------------------------------------------------
 */

static void put_counts(FILE *out, const struct prom *prom)
{
	family(out, "weft_provider_total", "What the provider counts.");
	for (int i = 0; i < TRACE_COUNTS && *prom->count[i].name; i++)
		fprintf(out,
			"weft_provider_total{rank=\"%" PRId32
			"\",counter=\"%s\"} %" PRIu64 "\n",
			prom->head.rank, prom->count[i].name, prom->count[i].value);
}

enum lane_field { LANE_PACKETS, LANE_BYTES, LANE_LOST, LANE_RETIRED, LANE_FIELDS };

static const struct {
	const char *name, *help;
} lane_family[LANE_FIELDS] = {
	{"weft_lane_packets_total", "Requests or packets given to a queue pair or path."},
	{"weft_lane_bytes_total", "Their payload."},
	{"weft_lane_lost_total", "Of them: taken for lost."},
	{"weft_lane_retired_total", "How often it was given up."},
};

static void put_lanes(FILE *out, const struct prom *prom)
{
	for (int f = 0; f < LANE_FIELDS; f++) {
		family(out, lane_family[f].name, lane_family[f].help);
		for (uint32_t i = 0; i < prom->lanes; i++) {
			const struct trace_lane *l = &prom->lane[i];
			const uint64_t value[LANE_FIELDS] = {l->packets, l->bytes,
							     l->lost, l->retired};

			fprintf(out,
				"%s{rank=\"%" PRId32 "\",peer=\"%" PRId32
				"\",lane=\"%" PRIu32 "\",rail=\"%" PRIu32 "\"} %" PRIu64
				"\n",
				lane_family[f].name, prom->head.rank, l->peer, l->number,
				l->rail, value[f]);
		}
	}
}

/* ---- the file ---------------------------------------------------------------------- */

int prom_write(const struct prom *prom, const char *path)
{
	char fresh[TRACE_PATH_MAX + 8];
	FILE *out;
	int rc = 0;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	out = fopen(fresh, "we");
	if (!out)
		return -errno;
	put_sums(out, prom);
	put_stages(out, prom);
	put_comms(out, prom);
	put_peers(out, prom);
	put_counts(out, prom);
	put_lanes(out, prom);
	if (ferror(out))
		rc = -EIO;
	if (fclose(out) && !rc)
		rc = -errno;
	if (!rc && rename(fresh, path))
		rc = -errno;
	if (rc)
		unlink(fresh);
	return rc;
}
