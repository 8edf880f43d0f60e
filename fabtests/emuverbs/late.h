/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that were acknowledged and are not in memory yet. An acknowledgement says no
 * more than that the peer's device has the bytes.
 *
 * Of devices with `placing=late` they are seen in memory at the latest by what comes
 * behind them on the same queue pair and is answered or heard of: a read, an atomic, a
 * send, a write with immediate data. Else after a while.
 *
 * Into memory that was registered with relaxed ordering, of any device, reads and atomics
 * see what was there before, and of two writes to one place the older one is seen in the
 * end: what one can rely on is only what is heard of behind them, a send or a write with
 * immediate data.
 */
#ifndef WEFT_FABTESTS_EMUVERBS_LATE_H
#define WEFT_FABTESTS_EMUVERBS_LATE_H

#include "fabtests/emuverbs/emu.h"

/* False: no memory. */
bool emu_late_hold(struct emu_qp *qp, const struct emu_packet *p, const uint8_t *payload,
		   bool relaxed);
/* Those of the queue pair, NULL: of all; relaxed ones too. */
void emu_late_place(const struct emu_qp *qp, bool relaxed);
void emu_late_timers(uint64_t now);
/* A forked child: they are its parent's to place. */
void emu_late_forget(void);

#endif
