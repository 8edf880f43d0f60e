/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of a context in the text format that Prometheus reads (and its node exporter,
 * from files). All of them only grow; times are seconds. The label `rank` is on each.
 *
 *   weft_calls_total, weft_failures_total           by collective
 *   weft_call_seconds_total                         those that do not go by shared lines
 *   weft_stage_seconds_total                        by collective and stage
 *   weft_sent_bytes_total, weft_received_bytes_total   by collective
 *   weft_communicator_sent_bytes_total, weft_communicator_busy_seconds_total
 *   weft_peer_sent_bytes_total, weft_peer_busy_seconds_total,
 *   weft_peer_puts_total, weft_peer_notifications_total
 *   weft_provider_total                             by counter, as the provider names it
 *   weft_lane_packets_total, weft_lane_bytes_total, weft_lane_lost_total,
 *   weft_lane_retired_total                         by peer, lane and rail
 *
 * Busy is the time in which something was on its way: bytes over it are the bandwidth.
 */
#ifndef WEFT_TRACE_PROM_H
#define WEFT_TRACE_PROM_H

#include "coll/trace/recorder.h"

/* A moment of a recorder, without its events. */
struct prom {
	struct trace_head head;
	struct trace_sum sum[TRACE_SUMS];
	struct trace_comm comm[TRACE_COMMS];
	struct trace_peer peer[TRACE_PEERS];
	struct trace_count count[TRACE_COUNTS];
	struct trace_lane lane[TRACE_LANES];
	uint32_t lanes;
};

/* With what the recorder's writer holds. */
void prom_take(const struct recorder *r, struct prom *prom);

/* A file of that name is replaced at once, when the new one is whole. Negative errno. */
int prom_write(const struct prom *prom, const char *path);

#endif
