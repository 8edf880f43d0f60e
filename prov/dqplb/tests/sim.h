/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a link between two hosts, in one process: a transmitter, a receiver,
 * lanes that stall, mix up, lose and die, and a control channel that is reset. What
 * happens next is drawn from a seed. Every rule is checked at the moment at which it
 * could be broken; sim.error says which one was, first.
 *
 * A lane's segment goes through: the sender's queue; it lands (bytes written, immediate
 * in the receiver's completion queue, the sender's completion on its way); both sides
 * poll. On a dying lane each of these may not happen.
 */
#ifndef WEFT_DQPLB_TESTS_SIM_H
#define WEFT_DQPLB_TESTS_SIM_H

#include "prov/dqplb/rx.h"
#include "prov/dqplb/tx.h"

struct sim;

/* Odds are in 1000 of the steps. */
struct sim_config {
	struct dqplb_tx_config tx;
	uint32_t rails;
	uint32_t receives;   /* of each queue */
	bool shared_queues;  /* one for each rail, else one for each lane */
	bool mixed_up;	     /* lanes deliver in any order */
	uint32_t transfers;  /* in all */
	uint32_t unfinished; /* at a time */
	uint32_t pieces;     /* largest transfer */
	uint32_t die;	     /* a lane dies */
	uint32_t rail_die;
	uint32_t stop; /* of a lane that ended, asked for at once (of 1000 looks at it) */
	uint32_t fault; /* a segment's own fault */
	uint32_t cancel;
	uint32_t stall; /* a lane stalls for a while */
	uint32_t reset; /* control channel: acknowledgements on their way are lost */
	uint32_t plain; /* in 1000 transfers */
	uint32_t ordered;
	uint32_t bare;
};

struct sim_result {
	const char *error; /* NULL: every rule held and everything ended */
	uint64_t steps;
	uint64_t finished;
	uint64_t failed;
	uint64_t events;
	uint64_t lanes_died;
	uint64_t lanes_stopped; /* before they were reported */
	uint64_t quick;		/* posted in the call that started them, */
	uint64_t kept;		/* and given to the transmitter before they were done */
	uint64_t
		overtaken; /* events before that of a transfer that was started earlier */
	struct dqplb_tx_stats tx;
	struct dqplb_rx_stats rx;
};

/* False: no memory. */
bool sim_run(const struct sim_config *config, uint64_t seed, struct sim_result *result);

#endif
