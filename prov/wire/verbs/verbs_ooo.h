/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data placement out of order: newer mlx5 devices may place what one queue pair carries
 * in any order, which lets switches spread its packets (adaptive routing). Receives may
 * then be consumed out of order too. Set per queue pair, on both ends, when it is made,
 * by the vendor's library, which is loaded here.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_OOO_H
#define WEFT_WIRE_VERBS_VERBS_OOO_H

#include <stdint.h>

#include "prov/wire/verbs/verbs_lib.h"

/* Fewer receives of a queue pair than this aren't worth it. */
#define VERBS_OOO_DEPTH 128

/*
 * Most receives that such an RC queue pair of this device may have, at least
 * VERBS_OOO_DEPTH; 0: it has none, and *why says so in words (it may be NULL).
 */
uint32_t verbs_ooo_depth(struct ibv_context *context, const char **why);

/* As ibv_create_qp. Only where both cards have VERBS_CARD_OOO, and for data lanes: a
 * control channel needs its order. */
struct ibv_qp *verbs_ooo_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

#endif
