/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between two ranks: plan_call.root is the other one. */
#ifndef WEFT_ALGO_PAIR_H
#define WEFT_ALGO_PAIR_H

#include "coll/algo/algo.h"

extern const struct algo pair_send, pair_receive;

#endif
