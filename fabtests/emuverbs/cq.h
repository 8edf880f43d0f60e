/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues and channels. */
#ifndef WEFT_FABTESTS_EMUVERBS_CQ_H
#define WEFT_FABTESTS_EMUVERBS_CQ_H

#include "fabtests/emuverbs/emu.h"

/* One that does not fit is lost: the queue, and the queue pairs on it, are in error. */
void emu_cq_push(struct ibv_cq *cq, const struct emu_cqe *e, bool solicited);
/* What was not polled of a queue pair that goes away. */
void emu_cq_discard(struct ibv_cq *cq, struct emu_qp *qp);

int emu_cq_poll(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int emu_cq_arm(struct ibv_cq *cq, int solicited_only);

#endif
