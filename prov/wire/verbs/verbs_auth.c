/* SPDX-License-Identifier: BSD-2-Clause */
/* HMAC-SHA256 of the system's libcrypto. */
#include "config.h"

#include "prov/wire/verbs/verbs_auth.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rdma/fi_errno.h>

#include "util/le.h"

#ifdef HAVE_LIBCRYPTO
#include <openssl/hmac.h>
#include <openssl/opensslv.h>

#define TEXT_OF(x)   #x
#define TEXT_OF_(x)  TEXT_OF(x)
#define LIBRARY_NAME "libcrypto.so." TEXT_OF_(OPENSSL_SHLIB_VERSION)

typedef __typeof__(&HMAC) hmac_call;
typedef __typeof__(&EVP_sha256) sha256_call;
#endif

/* All parts of a proof: two nonces, two cards, and lengths. */
#define SAID_MAX 4096

struct verbs_auth {
	void *library;
#ifdef HAVE_LIBCRYPTO
	hmac_call hmac;
	sha256_call sha256;
#endif
	int key_len;
	uint8_t key[];
};

#ifdef HAVE_LIBCRYPTO

static const char *library_open(struct verbs_auth *auth)
{
	auth->library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
	if (!auth->library)
		return "FI_WEFT_AUTH_KEY needs " LIBRARY_NAME
		       ", which is not on this host: install it (Debian: libssl3), or "
		       "unset the variable on all hosts";
	auth->hmac = (hmac_call)dlsym(auth->library, "HMAC");
	auth->sha256 = (sha256_call)dlsym(auth->library, "EVP_sha256");
	return auth->hmac && auth->sha256 ? NULL
					  : "FI_WEFT_AUTH_KEY: " LIBRARY_NAME
					    " has no HMAC-SHA256";
}

bool verbs_auth_prove(const struct verbs_auth *auth, const struct iovec *part,
		      size_t parts, uint8_t proof[VERBS_PROOF])
{
	uint8_t said[SAID_MAX];
	unsigned int len = 0;
	size_t at = 0;

	for (size_t i = 0; i < parts; i++) {
		struct le32 n = le32_of((uint32_t)part[i].iov_len);

		if (part[i].iov_len > sizeof(said) - at - sizeof(n))
			return false;
		memcpy(said + at, &n, sizeof(n));
		at += sizeof(n);
		memcpy(said + at, part[i].iov_base, part[i].iov_len);
		at += part[i].iov_len;
	}
	return auth->hmac(auth->sha256(), auth->key, auth->key_len, said, at, proof,
			  &len) &&
	       len == VERBS_PROOF;
}

#else

static const char *library_open(struct verbs_auth *auth)
{
	(void)auth;
	return "FI_WEFT_AUTH_KEY: this provider was built without libcrypto: build it "
	       "where its headers are (Debian: libssl-dev), or unset the variable on all "
	       "hosts";
}

bool verbs_auth_prove(const struct verbs_auth *auth, const struct iovec *part,
		      size_t parts, uint8_t proof[VERBS_PROOF])
{
	(void)auth;
	(void)part;
	(void)parts;
	(void)proof;
	return false;
}

#endif

int verbs_auth_open(const char *key, struct verbs_auth **out, const char **why)
{
	size_t len = strlen(key);
	struct verbs_auth *auth;

	if (len < VERBS_KEY_MIN || len > VERBS_KEY_MAX) {
		*why = "FI_WEFT_AUTH_KEY must have 16 to 1024 characters: a key that can "
		       "be guessed keeps nobody out";
		return -FI_EINVAL;
	}
	auth = calloc(1, sizeof(*auth) + len);
	if (!auth) {
		*why = "out of memory";
		return -FI_ENOMEM;
	}
	auth->key_len = (int)len;
	memcpy(auth->key, key, len);
	*why = library_open(auth);
	if (*why) {
		verbs_auth_close(auth);
		return -FI_ENOSYS;
	}
	*out = auth;
	return 0;
}

void verbs_auth_close(struct verbs_auth *auth)
{
	if (!auth)
		return;
	if (auth->library)
		dlclose(auth->library);
	explicit_bzero(auth->key, (size_t)auth->key_len);
	free(auth);
}

bool verbs_auth_nonce(uint8_t nonce[VERBS_NONCE])
{
	return getrandom(nonce, VERBS_NONCE, GRND_NONBLOCK) == VERBS_NONCE;
}

bool verbs_auth_equal(const uint8_t a[VERBS_PROOF], const uint8_t b[VERBS_PROOF])
{
	volatile uint8_t differ = 0;

	for (size_t i = 0; i < VERBS_PROOF; i++)
		differ = (uint8_t)(differ | (a[i] ^ b[i]));
	return differ == 0;
}
