/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting: what is checked at once. */
#ifndef WEFT_FABTESTS_EMUVERBS_POST_H
#define WEFT_FABTESTS_EMUVERBS_POST_H

#include "fabtests/emuverbs/emu.h"

/* Of the largest message. */
#define EMU_MESSAGE_MAX (1u << 30)

struct emu_swqe *emu_req_at(struct emu_qp *qp, uint32_t number);

int emu_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int emu_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int emu_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr);

bool emu_rq_init(struct emu_rq *q, unsigned wrs, unsigned sges);
void emu_rq_fini(struct emu_rq *q);

#endif
