/* SPDX-License-Identifier: BSD-2-Clause */
/* The uet wire: peers on other hosts, by UDP. */
#ifndef WEFT_WIRE_UET_UET_H
#define WEFT_WIRE_UET_UET_H

#include "prov/wire/wire.h"

extern const struct wire_ops uet_wire_ops;

#endif
