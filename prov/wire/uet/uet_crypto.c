/* SPDX-License-Identifier: BSD-2-Clause */
/* What the system's libcrypto does for us; see uet_crypto.h. */
#include "config.h"

#include "prov/wire/uet/uet_crypto.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#ifdef HAVE_LIBCRYPTO
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/opensslv.h>

#define TEXT_OF(x)   #x
#define TEXT_OF_(x)  TEXT_OF(x)
#define LIBRARY_NAME "libcrypto.so." TEXT_OF_(OPENSSL_SHLIB_VERSION)

/* Every function that is called, by its own name. */
#define CALLS(X)                             \
	X(EVP_sha256)                        \
	X(EVP_Digest)                        \
	X(EVP_MAC_fetch)                     \
	X(EVP_MAC_free)                      \
	X(EVP_MAC_CTX_new)                   \
	X(EVP_MAC_CTX_free)                  \
	X(EVP_MAC_init)                      \
	X(EVP_MAC_update)                    \
	X(EVP_MAC_final)                     \
	X(EVP_aes_256_gcm)                   \
	X(EVP_CIPHER_CTX_new)                \
	X(EVP_CIPHER_CTX_free)               \
	X(EVP_CIPHER_CTX_get_params)         \
	X(EVP_CIPHER_CTX_set_params)         \
	X(EVP_CipherInit_ex)                 \
	X(EVP_CipherUpdate)                  \
	X(EVP_CipherFinal_ex)                \
	X(OSSL_PARAM_construct_utf8_string)  \
	X(OSSL_PARAM_construct_octet_string) \
	X(OSSL_PARAM_construct_end)

#define CALL_FIELD(name) __typeof__(&name) name;
#define CALL_NAME(name)	 #name,

struct calls {
	CALLS(CALL_FIELD)
};

static const char *const call_names[] = {CALLS(CALL_NAME)};
#define CALL_COUNT (sizeof(call_names) / sizeof(call_names[0]))
_Static_assert(sizeof(struct calls) == CALL_COUNT * sizeof(void *), "calls");

struct uet_crypto {
	void *library;
	union {
		struct calls call;
		void *symbol[CALL_COUNT];
	};
	EVP_MAC *cmac;
};

struct uet_gcm {
	const struct uet_crypto *crypto;
	EVP_CIPHER_CTX *seal, *unseal;
	/* Where libcrypto puts a proof, and has one from, made once: asked for by number
	 * it would make the same each time, which is a tenth of a short datagram's seal.
	 */
	uint8_t tag[UET_ICV_BYTES];
	OSSL_PARAM tag_params[2];
};

static int library_open(struct uet_crypto *c, const char **why)
{
	c->library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
	if (!c->library) {
		*why = "FI_WEFT_UET_KEY needs " LIBRARY_NAME
		       ", which is not on this host: install it (Debian: libssl3), or "
		       "unset the variable on all hosts";
		return -FI_ENOSYS;
	}
	for (size_t i = 0; i < CALL_COUNT; i++) {
		c->symbol[i] = dlsym(c->library, call_names[i]);
		if (!c->symbol[i])
			return -FI_ENOSYS;
	}
	c->cmac = c->call.EVP_MAC_fetch(NULL, "CMAC", NULL);
	return c->cmac ? 0 : -FI_ENOSYS;
}

int uet_crypto_open(struct uet_crypto **out, const char **why)
{
	struct uet_crypto *c = calloc(1, sizeof(*c));
	int ret;

	*why = "FI_WEFT_UET_KEY: " LIBRARY_NAME " has no AES-GCM or no CMAC";
	if (!c)
		return -FI_ENOMEM;
	ret = library_open(c, why);
	if (ret) {
		uet_crypto_close(c);
		return ret;
	}
	*out = c;
	return 0;
}

void uet_crypto_close(struct uet_crypto *c)
{
	if (!c)
		return;
	if (c->cmac)
		c->call.EVP_MAC_free(c->cmac);
	if (c->library)
		dlclose(c->library);
	free(c);
}

bool uet_crypto_hash(const struct uet_crypto *c, const void *text, size_t len,
		     uint8_t hash[UET_KEY_BYTES])
{
	unsigned int got = 0;

	return c->call.EVP_Digest(text, len, hash, &got, c->call.EVP_sha256(), NULL) &&
	       got == UET_KEY_BYTES;
}

bool uet_crypto_cmac(const struct uet_crypto *c, const uint8_t key[UET_KEY_BYTES],
		     const void *text, size_t len, uint8_t mac[UET_MAC_BYTES])
{
	EVP_MAC_CTX *ctx = c->call.EVP_MAC_CTX_new(c->cmac);
	char cipher[] = "AES-256-CBC";
	OSSL_PARAM params[2];
	size_t got = 0;
	bool ok;

	if (!ctx)
		return false;
	params[0] = c->call.OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER,
							     cipher, 0);
	params[1] = c->call.OSSL_PARAM_construct_end();
	ok = c->call.EVP_MAC_init(ctx, key, UET_KEY_BYTES, params) &&
	     c->call.EVP_MAC_update(ctx, text, len) &&
	     c->call.EVP_MAC_final(ctx, mac, &got, UET_MAC_BYTES) && got == UET_MAC_BYTES;
	c->call.EVP_MAC_CTX_free(ctx);
	return ok;
}

static EVP_CIPHER_CTX *cipher_open(const struct uet_crypto *c, const uint8_t *key,
				   int encrypt)
{
	EVP_CIPHER_CTX *ctx = c->call.EVP_CIPHER_CTX_new();

	if (ctx && !c->call.EVP_CipherInit_ex(ctx, c->call.EVP_aes_256_gcm(), NULL, key,
					      NULL, encrypt)) {
		c->call.EVP_CIPHER_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

struct uet_gcm *uet_gcm_open(const struct uet_crypto *c, const uint8_t key[UET_KEY_BYTES])
{
	struct uet_gcm *gcm = calloc(1, sizeof(*gcm));

	if (!gcm)
		return NULL;
	gcm->crypto = c;
	gcm->tag_params[0] = c->call.OSSL_PARAM_construct_octet_string(
		OSSL_CIPHER_PARAM_AEAD_TAG, gcm->tag, sizeof(gcm->tag));
	gcm->tag_params[1] = c->call.OSSL_PARAM_construct_end();
	gcm->seal = cipher_open(c, key, 1);
	gcm->unseal = cipher_open(c, key, 0);
	if (!gcm->seal || !gcm->unseal) {
		uet_gcm_close(gcm);
		return NULL;
	}
	return gcm;
}

void uet_gcm_close(struct uet_gcm *gcm)
{
	if (!gcm)
		return;
	if (gcm->seal)
		gcm->crypto->call.EVP_CIPHER_CTX_free(gcm->seal);
	if (gcm->unseal)
		gcm->crypto->call.EVP_CIPHER_CTX_free(gcm->unseal);
	free(gcm);
}

static bool update(const struct uet_crypto *c, EVP_CIPHER_CTX *ctx, uint8_t *out,
		   const void *in, size_t len)
{
	int got = 0;

	return len <= INT_MAX && c->call.EVP_CipherUpdate(ctx, out, &got, in, (int)len) &&
	       got == (int)len;
}

bool uet_gcm_seal(struct uet_gcm *gcm, const uint8_t iv[UET_IV_BYTES], const void *said,
		  size_t said_len, const struct iovec *text, unsigned count, uint8_t *out,
		  uint8_t icv[UET_ICV_BYTES])
{
	const struct uet_crypto *c = gcm->crypto;
	EVP_CIPHER_CTX *ctx = gcm->seal;
	int got = 0;

	if (!c->call.EVP_CipherInit_ex(ctx, NULL, NULL, NULL, iv, -1) ||
	    !update(c, ctx, NULL, said, said_len))
		return false;
	for (unsigned i = 0; i < count; i++) {
		/* Nothing at all isn't an update: NULL would begin anew. */
		if (text[i].iov_len &&
		    !update(c, ctx, out, text[i].iov_base, text[i].iov_len))
			return false;
		out += text[i].iov_len;
	}
	if (!c->call.EVP_CipherFinal_ex(ctx, out, &got) || got != 0 ||
	    !c->call.EVP_CIPHER_CTX_get_params(ctx, gcm->tag_params))
		return false;
	memcpy(icv, gcm->tag, sizeof(gcm->tag));
	return true;
}

bool uet_gcm_unseal(struct uet_gcm *gcm, const uint8_t iv[UET_IV_BYTES], const void *said,
		    size_t said_len, const uint8_t *text, size_t len, uint8_t *out,
		    const uint8_t icv[UET_ICV_BYTES])
{
	const struct uet_crypto *c = gcm->crypto;
	EVP_CIPHER_CTX *ctx = gcm->unseal;
	int got = 0;

	memcpy(gcm->tag, icv, sizeof(gcm->tag));
	return c->call.EVP_CipherInit_ex(ctx, NULL, NULL, NULL, iv, -1) &&
	       update(c, ctx, NULL, said, said_len) &&
	       (!len || update(c, ctx, out, text, len)) &&
	       c->call.EVP_CIPHER_CTX_set_params(ctx, gcm->tag_params) &&
	       c->call.EVP_CipherFinal_ex(ctx, out + len, &got) > 0 && got == 0;
}

#else

int uet_crypto_open(struct uet_crypto **crypto, const char **why)
{
	(void)crypto;
	*why = "FI_WEFT_UET_KEY: this provider was built without libcrypto: build it "
	       "where "
	       "its headers are (Debian: libssl-dev), or unset the variable on all hosts";
	return -FI_ENOSYS;
}

void uet_crypto_close(struct uet_crypto *crypto)
{
	(void)crypto;
}

bool uet_crypto_hash(const struct uet_crypto *crypto, const void *text, size_t len,
		     uint8_t hash[UET_KEY_BYTES])
{
	(void)crypto;
	(void)text;
	(void)len;
	(void)hash;
	return false;
}

bool uet_crypto_cmac(const struct uet_crypto *crypto, const uint8_t key[UET_KEY_BYTES],
		     const void *text, size_t len, uint8_t mac[UET_MAC_BYTES])
{
	(void)crypto;
	(void)key;
	(void)text;
	(void)len;
	(void)mac;
	return false;
}

struct uet_gcm *uet_gcm_open(const struct uet_crypto *crypto,
			     const uint8_t key[UET_KEY_BYTES])
{
	(void)crypto;
	(void)key;
	return NULL;
}

void uet_gcm_close(struct uet_gcm *gcm)
{
	(void)gcm;
}

bool uet_gcm_seal(struct uet_gcm *gcm, const uint8_t iv[UET_IV_BYTES], const void *said,
		  size_t said_len, const struct iovec *text, unsigned count, uint8_t *out,
		  uint8_t icv[UET_ICV_BYTES])
{
	(void)gcm;
	(void)iv;
	(void)said;
	(void)said_len;
	(void)text;
	(void)count;
	(void)out;
	(void)icv;
	return false;
}

bool uet_gcm_unseal(struct uet_gcm *gcm, const uint8_t iv[UET_IV_BYTES], const void *said,
		    size_t said_len, const uint8_t *text, size_t len, uint8_t *out,
		    const uint8_t icv[UET_ICV_BYTES])
{
	(void)gcm;
	(void)iv;
	(void)said;
	(void)said_len;
	(void)text;
	(void)len;
	(void)out;
	(void)icv;
	return false;
}

#endif
