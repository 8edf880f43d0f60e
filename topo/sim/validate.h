/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of topo/sim/validate. */
#ifndef WEFT_TOPO_SIM_VALIDATE_H
#define WEFT_TOPO_SIM_VALIDATE_H

#include <stdint.h>

/* Print what they look at; how many were wrong. */
unsigned validate_closed_forms(void);
unsigned validate_max_min(uint64_t seed);

#endif
