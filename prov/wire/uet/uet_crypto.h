/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-256-GCM, AES-256-CMAC and SHA-256 of the system's libcrypto, which is loaded when
 * a key is set; nothing of it is linked.
 */
#ifndef WEFT_WIRE_UET_UET_CRYPTO_H
#define WEFT_WIRE_UET_UET_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define UET_KEY_BYTES 32
#define UET_MAC_BYTES 16
#define UET_IV_BYTES  12
#define UET_ICV_BYTES 16

struct uet_crypto;
struct uet_gcm; /* a key in use: one thread at a time */

/* 0; -FI_ENOSYS: no libcrypto, or not what is needed; *why says it. */
int uet_crypto_open(struct uet_crypto **crypto, const char **why);
void uet_crypto_close(struct uet_crypto *crypto);

/* False: libcrypto failed. */
bool uet_crypto_hash(const struct uet_crypto *crypto, const void *text, size_t len,
		     uint8_t hash[UET_KEY_BYTES]);
bool uet_crypto_cmac(const struct uet_crypto *crypto, const uint8_t key[UET_KEY_BYTES],
		     const void *text, size_t len, uint8_t mac[UET_MAC_BYTES]);

struct uet_gcm *uet_gcm_open(const struct uet_crypto *crypto,
			     const uint8_t key[UET_KEY_BYTES]);
void uet_gcm_close(struct uet_gcm *gcm);

/* Writes as many bytes as `text` has (which may be there already), and the proof. An IV
 * is used once in a key's life.
 */
bool uet_gcm_seal(struct uet_gcm *gcm, const uint8_t iv[UET_IV_BYTES], const void *said,
		  size_t said_len, const struct iovec *text, unsigned count, uint8_t *out,
		  uint8_t icv[UET_ICV_BYTES]);
/* False: it isn't what was sealed. `out` is garbage then. */
bool uet_gcm_unseal(struct uet_gcm *gcm, const uint8_t iv[UET_IV_BYTES], const void *said,
		    size_t said_len, const uint8_t *text, size_t len, uint8_t *out,
		    const uint8_t icv[UET_ICV_BYTES]);

#endif
