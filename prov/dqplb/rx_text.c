/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver in words; see text.h. */
#include "config.h"

#include <stdio.h>

#include "prov/dqplb/rx_int.h"
#include "prov/dqplb/text.h"

static const char *const lane_state_name[RX_LANE_STATES] = {
	[RX_LANE_CLOSED] = "closed",
	[RX_LANE_UP] = "up",
	[RX_LANE_DRAINED] = "drained",
};

void dqplb_rx_text(const struct dqplb_rx *rx, char text[DQPLB_TEXT])
{
	snprintf(text, DQPLB_TEXT,
		 "numbers before %u came, highest %u; lanes to report 0x%llx, queues "
		 "short "
		 "of receives 0x%llx%s%s",
		 rx->cum, rx->high, (unsigned long long)rx->lanes_drained,
		 (unsigned long long)rx->queues_short,
		 rx->due ? ", a message is due" : "", rx->failed ? ", failed" : "");
}

void dqplb_rx_lane_text(const struct dqplb_rx *rx, uint32_t lane, char text[DQPLB_TEXT])
{
	const struct rx_lane *l = &rx->lane[lane];
	const struct rx_queue *q = &rx->queue[l->queue];

	snprintf(text, DQPLB_TEXT, "receiver %s, receives used %u of %u",
		 lane_state_name[l->state], q->consumed, q->granted);
}
