/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine again, for plans in which every rank talks to one neighbour only, as in a
 * ring: n ranks in n steps have n^2 messages, too many to be events. Where all ranks have
 * plans of one shape, the ranks are one circle, and no link is too narrow for all
 * neighbours at once, a message's rate does not depend on others: instance after instance
 * of all ranks together is plain arithmetic on rows of times. Where the circle repeats
 * itself (rack after rack, building after building) one period stands for all.
 *
 * The times are the engine's (tests/test_ring.c compares them). What cannot be shown to
 * be so is not done here: rows far back are kept as a bound only, and when a bound might
 * decide, the answer is that this way cannot be taken.
 */
#ifndef WEFT_TOPO_SIM_RING_H
#define WEFT_TOPO_SIM_RING_H

#include "topo/sim/engine.h"

/* 0: *result is what sim_run() says of this one job; -ENOTSUP: it is to be asked, *why
 * says why; else as sim_run(). *period: of so many ranks times were found. */
int sim_ring(const struct sim_net *net, const struct sim_job *job,
	     const struct sim_options *options, struct sim_result *result,
	     int32_t *period, char *why, size_t why_len);

#endif
