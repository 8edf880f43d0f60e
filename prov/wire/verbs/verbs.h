/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs wire: peers that RDMA devices reach. */
#ifndef WEFT_WIRE_VERBS_VERBS_H
#define WEFT_WIRE_VERBS_VERBS_H

#include "prov/wire/wire.h"

extern const struct wire_ops verbs_wire_ops;

#endif
