/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that were acknowledged and are not in memory yet, of devices with
 * `placing=late`. An acknowledgement says no more than that the peer's device has the
 * bytes; they are seen in memory at the latest by what comes behind them on the same
 * queue pair and is answered or heard of: a read, an atomic, a send, a write with
 * immediate data. Else after a while.
 */
#ifndef WEFT_FABTESTS_EMUVERBS_LATE_H
#define WEFT_FABTESTS_EMUVERBS_LATE_H

#include "fabtests/emuverbs/emu.h"

/* False: no such memory, or no memory. */
bool emu_late_hold(struct emu_qp *qp, const struct emu_packet *p, const uint8_t *payload);
/* All of the queue pair's; NULL: all of all. */
void emu_late_place(const struct emu_qp *qp);
void emu_late_timers(uint64_t now);
/* A forked child: they are its parent's to place. */
void emu_late_forget(void);

#endif
