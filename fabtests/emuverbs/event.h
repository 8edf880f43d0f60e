/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of events behind descriptors that poll: of contexts and completion channels. */
#ifndef WEFT_FABTESTS_EMUVERBS_EVENT_H
#define WEFT_FABTESTS_EMUVERBS_EVENT_H

#include "fabtests/emuverbs/emu.h"

bool emu_queue_open(struct emu_queue *q);
void emu_queue_close(struct emu_queue *q);
void emu_queue_put(struct emu_queue *q, const struct emu_event *event);
/* Waits as the descriptor's flags say; false: errno. Takes the lock; called without it,
 * returns with it when true. */
bool emu_queue_take(struct emu_queue *q, struct emu_event *event);

/* Events of something that goes away, which were not handed out. */
void emu_queue_drop(struct emu_queue *q, const void *element);

/* To every context of the device: of its port. */
void emu_event_port(struct emu_dev *dev, enum ibv_event_type type);
void emu_event_qp(struct emu_qp *qp, enum ibv_event_type type);
void emu_event_cq(struct emu_cq *cq);
void emu_event_srq(struct emu_srq *srq, enum ibv_event_type type);

#endif
