/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an endpoint does with a key (FI_WEFT_UET_KEY): each datagram is sealed before it
 * leaves, and nothing is looked at that wasn't sealed for this endpoint by a holder of
 * the key. A key that can't be used is an error, never a reason to do without.
 *
 * What doesn't fit the key of this end, or its lack of one, is logged once, with what to
 * do about it.
 */
#ifndef WEFT_WIRE_UET_UET_SECRET_H
#define WEFT_WIRE_UET_UET_SECRET_H

#include "prov/wire/uet/uet_recv.h"
#include "prov/wire/uet/uet_seal.h"
#include "prov/wire/uet/uet_wire.h"
#include "prov/wire/wire.h"

struct uet_secret;
struct uet_tx;
struct uet_out;

/* *secret is NULL where no key is set. Errors of uet_seal_open; logged. */
int uet_secret_open(struct uet_secret **secret);
void uet_secret_close(struct uet_secret *secret);
const struct uet_seal_stats *uet_secret_stats(const struct uet_secret *secret);

/* Bytes that a datagram is longer for it. */
#define UET_SECRET_EXTRA UET_SEAL_EXTRA
/* The longest that there is. */
#define UET_SECRET_MAX (UET_HEAD_MAX + UET_PART_MAX + UET_SEAL_EXTRA)

/* Seals a datagram at `at`, which has room for UET_SECRET_MAX: tx says what it is made
 * of, and what to send then; its length is 0 if it can't be sealed. incarnation: the
 * receiver's, or 0. */
void uet_secret_put(struct uet_secret *secret, uint64_t incarnation, uint8_t *at,
		    struct uet_tx *tx);

/* What is in a datagram that was sent to `to`. False: nothing that may be looked at. Good
 * until the next call. *begins: somebody said it who doesn't know our incarnation, or
 * said it to another. */
bool uet_secret_take(struct uet_secret *secret, const struct wire_addr *to,
		     uint64_t incarnation, const struct uet_dgram *d,
		     const uint8_t **data, size_t *len, bool *begins);
/* What may be in a packet of somebody who doesn't know our incarnation, so that it may
 * have been recorded: nothing that changes what this end believes. */
bool uet_secret_may_begin(const struct uet_pkt *pkt);

/* An endpoint without a key has got something that it can't read. */
bool uet_secret_sealed(const struct uet_dgram *d);
void uet_secret_no_key(const struct uet_dgram *d);

#endif
