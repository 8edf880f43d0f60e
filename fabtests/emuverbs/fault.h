/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to devices, by count and by clock. */
#ifndef WEFT_FABTESTS_EMUVERBS_FAULT_H
#define WEFT_FABTESTS_EMUVERBS_FAULT_H

#include "fabtests/emuverbs/emu.h"

/* The clock begins. */
void emu_fault_start(void);
/* One more was posted: what is due happens, to it or to more than it. */
void emu_fault_count(struct emu_qp *qp, struct emu_swqe *w);
void emu_fault_timers(uint64_t now);

#endif
