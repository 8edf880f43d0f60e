/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an endpoint's links have done together, those that are gone too, and what each
 * lane of those that are there has. Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_COUNT_H
#define WEFT_WIRE_VERBS_VERBS_COUNT_H

#include "prov/wire/verbs/verbs_link.h"

/* A link ends, and is none of the endpoint's any more: what it did stays in the
 * endpoint's count. */
void verbs_count_bury(const struct verbs_link *link);

/* wire_ops.counters, wire_ops.lanes */
uint32_t verbs_counters(struct wire_ep *wep, struct wire_counter *at, uint32_t max);
void verbs_lanes_each(struct wire_ep *wep, wire_lane_fn *each, void *arg);

#endif
