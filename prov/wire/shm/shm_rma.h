/* SPDX-License-Identifier: BSD-2-Clause */
/* put and get. */
#ifndef WEFT_WIRE_SHM_SHM_RMA_H
#define WEFT_WIRE_SHM_SHM_RMA_H

#include "prov/wire/wire.h"

int shm_put(struct wire_link *link, const struct wire_segment *seg);
int shm_get(struct wire_link *link, const struct wire_segment *seg);
uint32_t shm_events(struct wire_link *link);

#endif
