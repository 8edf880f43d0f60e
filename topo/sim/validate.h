/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of topo/sim/validate. */
#ifndef WEFT_TOPO_SIM_VALIDATE_H
#define WEFT_TOPO_SIM_VALIDATE_H

#include <stdint.h>

/* Print what they look at; how many were wrong. */
unsigned validate_closed_forms(void);
unsigned validate_max_min(uint64_t seed);

/* Runs topo/sim/real with these options, and compares; -1: that cannot be done here,
 * which has been said. */
int validate_real(char **options);

/* ---- a rank of topo/sim/real ---- */

/* Bytes of messages between two ranks, of which latency and rate are taken; rate also of
 * four times as many as the longer one. */
#define VALIDATE_PAIR_BRIEF 8
#define VALIDATE_PAIR_LONG  (1 << 20)

struct validate_call {
	const char *coll, *algo;
};
extern const struct validate_call validate_calls[];
extern const unsigned validate_call_count;

/* Of "ROUNDS BYTES..."; the exit status, -1: wrong usage. */
int validate_rank(int argc, char **argv);

#endif
