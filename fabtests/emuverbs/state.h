/* SPDX-License-Identifier: BSD-2-Clause */
/* Which changes of a reliable connected queue pair's state there are, with which
 * attributes, and which values these may have. */
#ifndef WEFT_FABTESTS_EMUVERBS_STATE_H
#define WEFT_FABTESTS_EMUVERBS_STATE_H

#include "fabtests/emuverbs/emu.h"

/* 0, EINVAL, or ENETUNREACH of a path. */
int emu_state_check(struct emu_qp *qp, const struct ibv_qp_attr *attr, int mask);
void emu_state_keep(struct emu_qp *qp, const struct ibv_qp_attr *attr, int mask);

#endif
