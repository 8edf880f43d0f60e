/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared-memory wire: peers on the same host. */
#ifndef WEFT_WIRE_SHM_SHM_H
#define WEFT_WIRE_SHM_SHM_H

#include "prov/wire/wire.h"

extern const struct wire_ops shm_wire_ops;

#endif
