/* SPDX-License-Identifier: BSD-2-Clause */
/* A look inside of a context, for tests that drive an endpoint. */
#ifndef WEFT_WIRE_UET_TESTS_UET_PEEK_H
#define WEFT_WIRE_UET_TESTS_UET_PEEK_H

#include <stdint.h>

struct uet_pdc;

/* Packets with payload that are on their way; *after: those of them of which it is known
 * that they left after that moment. */
unsigned uet_peek_flying(const struct uet_pdc *pdc, uint64_t moment, unsigned *after);

/* Packets that its window takes. */
uint32_t uet_peek_wide(const struct uet_pdc *pdc);

#endif
