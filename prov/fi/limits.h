/* SPDX-License-Identifier: BSD-2-Clause */
/* What getinfo announces and the data path keeps: one place, so that they cannot differ.
 */
#ifndef WEFT_FI_LIMITS_H
#define WEFT_FI_LIMITS_H

#include "prov/proto/engine.h"

#define WFI_TX_CAPS                                                               \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | \
	 FI_TRIGGER | FI_FENCE | FI_NAMED_RX_CTX)
#define WFI_RX_CAPS                                                                      \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ |            \
	 FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT | \
	 FI_TRIGGER)

#define WFI_IOV_LIMIT	  4
#define WFI_RMA_IOV_LIMIT 4
#define WFI_INJECT_SIZE	  2048
/* Operations that can be posted for sure, unless hints ask for more, and at most: an
 * endpoint takes memory for more when they are first needed. */
#define WFI_TX_SIZE	 1024
#define WFI_RX_SIZE	 1024
#define WFI_SIZE_MAX	 PROTO_OPS_MAX
#define WFI_CQ_DATA_SIZE 8
#define WFI_MR_KEY_SIZE	 8
#define WFI_MR_IOV_LIMIT 4
#define WFI_MAX_MSG_SIZE (SIZE_MAX >> 1)
#define WFI_ATOMIC_SIZE	 65536 /* bytes of all elements of one atomic operation */

/* How many of each one domain is meant for; nothing is set aside for them. The count of
 * registrations is the key table's size, a power of two. */
#define WFI_CQ_CNT   32768
#define WFI_CNTR_CNT 32768
#define WFI_EP_CNT   1024
#define WFI_MR_CNT   65536
#define WFI_STX_CNT  1024
#define WFI_SRX_CNT  1024

/* Contexts of each direction that one scalable endpoint may have. Each is an engine. */
#define WFI_SEP_CTX 64

#define WFI_TX_OP_FLAGS                                                          \
	(FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define WFI_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/* Ordering that the engine really keeps (rule E1): messages among themselves; RMA of one
 * endpoint to one peer is done in the order of the calls, and a message posted after it
 * leaves after it is done. So are atomics, among themselves and, with the four bits
 * before 1.7, against RMA; the FI_ORDER_RMA_ and FI_ORDER_ATOMIC_ bits say the same of
 * one kind alone. */
#define WFI_MSG_ORDER                                                               \
	(FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | \
	 FI_ORDER_SAR | FI_ORDER_SAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW |        \
	 FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR |                \
	 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

#endif
