/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams that only holders of one key can write and read (FI_WEFT_UET_KEY), each at
 * most once. A sealed datagram is
 *
 *   16 bytes	who and which: the layout of the transport's security header with a source
 *		id; the numbers of one source never repeat
 *   the rest, encrypted, headers included
 *   16 bytes	proof, over all of it, the address that it was sent to, and, once the
 *		receiver said it, the receiver's incarnation
 *
 * So what was recorded on its way to another endpoint, or to an earlier one at the same
 * address, is refused as what was changed is. The one exception is what begins a
 * conversation (incarnation 0): that may come from an earlier one, and its receiver must
 * believe nothing before it hears its own incarnation.
 *
 * Key material, by what stands before a colon in the text:
 *   cluster (or nothing): each source has a key of its own, derived from the text's hash,
 *		or from 64 hexadecimal digits
 *   direct	64 hexadecimal digits are the key of all sources
 *
 * One thread at a time.
 */
#ifndef WEFT_WIRE_UET_UET_SEAL_H
#define WEFT_WIRE_UET_UET_SEAL_H

#include "prov/wire/uet/uet_crypto.h"

#include "prov/wire/addr.h"

#define UET_SEAL_HEAD  16
#define UET_SEAL_EXTRA (UET_SEAL_HEAD + UET_ICV_BYTES)
#define UET_SEAL_MAX   16384 /* of a sealed datagram */

#define UET_SEAL_KEY_MIN 16 /* characters */
#define UET_SEAL_KEY_MAX 1024

/* Sources that have said our incarnation, and those that have not: the latter give way to
 * each other. */
#define UET_SEAL_SOURCES 65536
#define UET_SEAL_GUESTS	 64

struct uet_seal;

struct uet_seal_stats {
	uint64_t sealed, taken;
	uint64_t forged;   /* or changed, or of another key, or for another receiver */
	uint64_t replayed; /* or too old */
	uint64_t crowded;  /* from one source more than there can be */
	uint32_t known;	   /* sources that have said our incarnation */
	uint32_t guests;   /* and those that haven't */
};

/* 0; -FI_EINVAL: no key; -FI_ENOSYS: no libcrypto; -FI_ENOMEM; -FI_EIO: no random bytes.
 * *why says it. */
int uet_seal_open(const char *key, struct uet_seal **seal, const char **why);
void uet_seal_close(struct uet_seal *seal);
const struct uet_seal_stats *uet_seal_stats(const struct uet_seal *seal);

/* The length of what was written to `out`, which has room for UET_SEAL_EXTRA more than
 * the text has; 0: it can't be sealed (numbers are used up, libcrypto failed). `begin`:
 * the receiver's incarnation isn't known. */
size_t uet_seal_put(struct uet_seal *seal, const struct wire_addr *to,
		    uint64_t incarnation, const struct iovec *text, unsigned count,
		    uint8_t *out);

/* What somebody sent to us, at our address `to`. 0: *len bytes are in `out`, *begins
 * says whether it may be an earlier conversation's. -EBADMSG: forged; -FI_EALREADY:
 * replayed; -FI_ENOSPC: too many sources; -FI_ENOMEM. */
int uet_seal_take(struct uet_seal *seal, const struct wire_addr *to, uint64_t incarnation,
		  const uint8_t *sealed, size_t sealed_len, uint8_t *out, size_t *len,
		  bool *begins);

#endif
