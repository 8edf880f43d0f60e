/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proof that both ends of a call know the same key (FI_WEFT_AUTH_KEY): HMAC-SHA256 by
 * the system's libcrypto, which is loaded when a key is set. Proves who is at the door;
 * what goes over the queue pairs afterwards is neither signed nor encrypted.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_AUTH_H
#define WEFT_WIRE_VERBS_VERBS_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define VERBS_NONCE   32
#define VERBS_PROOF   32
#define VERBS_KEY_MIN 16 /* characters */
#define VERBS_KEY_MAX 1024

struct verbs_auth;

/* 0; -FI_EINVAL: too short a key; -FI_ENOSYS: no libcrypto; -FI_ENOMEM. *why says it. */
int verbs_auth_open(const char *key, struct verbs_auth **auth, const char **why);
void verbs_auth_close(struct verbs_auth *auth);

/* False: the system has no random bytes. */
bool verbs_auth_nonce(uint8_t nonce[VERBS_NONCE]);
/* Over all parts, each with its length before it. False: libcrypto failed. */
bool verbs_auth_prove(const struct verbs_auth *auth, const struct iovec *part,
		      size_t parts, uint8_t proof[VERBS_PROOF]);
/* Takes as long whether they are equal or not. */
bool verbs_auth_equal(const uint8_t a[VERBS_PROOF], const uint8_t b[VERBS_PROOF]);

#endif
