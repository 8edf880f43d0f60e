/* SPDX-License-Identifier: BSD-2-Clause */
/* The answering half of a queue pair: what a device does with what comes in, without its
 * application. Keys and bounds are looked at when bytes are moved, never before. */
#ifndef WEFT_FABTESTS_EMUVERBS_RSP_H
#define WEFT_FABTESTS_EMUVERBS_RSP_H

#include "fabtests/emuverbs/conn.h"

bool emu_rsp_init(struct emu_rsp *r, unsigned max_recv_sge);
void emu_rsp_fini(struct emu_rsp *r);
/* Before anything was heard. */
bool emu_rsp_reset(struct emu_rsp *r, unsigned max_reads);
/* Who asked and has no answer yet hears that nobody is there. */
void emu_rsp_end(struct emu_qp *qp);

void emu_rsp_request(struct emu_conn *c, const struct emu_packet *p,
		     const uint8_t *payload);
enum emu_sent emu_rsp_emit(struct list *node);
void emu_rsp_lost(struct emu_conn *c);

#endif
