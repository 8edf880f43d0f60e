/* SPDX-License-Identifier: BSD-2-Clause */
/* The asking half of a queue pair: its send queue. */
#ifndef WEFT_FABTESTS_EMUVERBS_REQ_H
#define WEFT_FABTESTS_EMUVERBS_REQ_H

#include "fabtests/emuverbs/conn.h"

bool emu_req_init(struct emu_req *r, const struct ibv_qp_cap *cap);
void emu_req_fini(struct emu_req *r);
/* Nothing was ever posted. */
void emu_req_reset(struct emu_req *r);

int emu_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

/* The next packet of the queue pair that has this node. */
enum emu_sent emu_req_emit(struct list *node);
/* Something may be sent that could not. */
void emu_req_kick(struct emu_qp *qp);

void emu_req_answer(struct emu_conn *c, const struct emu_packet *p,
		    const uint8_t *payload);

/* The oldest ends with that status, the others flushed, the queue pair in error. */
void emu_req_fail(struct emu_qp *qp, enum ibv_wc_status status);
void emu_req_flush(struct emu_qp *qp);
/* Draws what is to become of one that was posted, on a device without order. */
void emu_req_mix(struct emu_qp *qp, struct emu_swqe *w);
/* Whether anything is not yet complete. */
bool emu_req_busy(const struct emu_qp *qp);

void emu_req_lost(struct emu_conn *c);
/* Sends nothing before that time. */
void emu_req_hold(struct emu_qp *qp, uint64_t until);
void emu_req_timers(uint64_t now);
void emu_req_hasten(void);

#endif
