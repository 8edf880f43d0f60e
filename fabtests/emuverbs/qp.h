/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: their states, and what ends them. */
#ifndef WEFT_FABTESTS_EMUVERBS_QP_H
#define WEFT_FABTESTS_EMUVERBS_QP_H

#include "fabtests/emuverbs/emu.h"

/* That number on the device with that address; NULL: there is none. */
struct emu_qp *emu_qp_find(const uint8_t address[16], uint32_t number);

/* Into the error state: everything posted is flushed. With `answer` what was asked is
 * answered still: the queue pair's own refusal must get out. */
void emu_qp_error(struct emu_qp *qp, bool answer);
void emu_qp_flush_receives(struct emu_qp *qp);
/* Those with completions there. */
void emu_qp_overrun(struct emu_cq *cq);

/* A receive that was taken is complete. p: what it received, or NULL. */
struct emu_packet;
void emu_rsp_received(struct emu_qp *qp, enum ibv_wc_status status,
		      enum ibv_wc_opcode opcode, const struct emu_packet *p);

/* Of devices. False: the entry is empty, or there is none. */
bool emu_dev_gid(const struct emu_dev *dev, unsigned index, union ibv_gid *gid,
		 enum ibv_gid_type *type);
/* Entries of the table, empty ones too. */
unsigned emu_dev_gids(const struct emu_dev *dev);
/* Whether a queue pair gets from that entry to an address: 0, EINVAL, ENETUNREACH. */
int emu_dev_route(const struct emu_dev *dev, unsigned index, const union ibv_gid *to);
uint16_t emu_dev_lid(const struct emu_dev *dev);
uint32_t emu_dev_pkey(const struct emu_dev *dev, unsigned index);
/* As a packet has it: a GID, or the LID. */
void emu_dev_lid_address(uint16_t lid, uint8_t address[16]);
struct emu_dev *emu_dev_find(const uint8_t address[16]);
enum ibv_mtu emu_dev_mtu(const struct emu_dev *dev);

#endif
