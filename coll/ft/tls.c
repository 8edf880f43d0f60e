/* SPDX-License-Identifier: BSD-2-Clause */
/* See tls.h. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/ft/tls.h"

#ifdef HAVE_LIBCRYPTO
#include <openssl/err.h>
#include <openssl/opensslv.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define TEXT_OF(x)   #x
#define TEXT_OF_(x)  TEXT_OF(x)
#define LIBRARY_NAME "libssl.so." TEXT_OF_(OPENSSL_SHLIB_VERSION)

/* Every function that is called, by its own name. */
#define CALLS(X)                              \
	X(TLS_client_method)                  \
	X(SSL_CTX_new)                        \
	X(SSL_CTX_free)                       \
	X(SSL_CTX_ctrl)                       \
	X(SSL_CTX_set_verify)                 \
	X(SSL_CTX_load_verify_file)           \
	X(SSL_CTX_set_default_verify_paths)   \
	X(SSL_CTX_use_certificate_chain_file) \
	X(SSL_CTX_use_PrivateKey_file)        \
	X(SSL_CTX_check_private_key)          \
	X(SSL_new)                            \
	X(SSL_free)                           \
	X(SSL_ctrl)                           \
	X(SSL_get0_param)                     \
	X(SSL_set1_host)                      \
	X(SSL_set_bio)                        \
	X(SSL_set_connect_state)              \
	X(SSL_write)                          \
	X(SSL_read)                           \
	X(SSL_get_error)                      \
	X(SSL_get_verify_result)              \
	X(X509_VERIFY_PARAM_set1_ip_asc)      \
	X(X509_verify_cert_error_string)      \
	X(BIO_new)                            \
	X(BIO_free)                           \
	X(BIO_s_mem)                          \
	X(BIO_read)                           \
	X(BIO_write)                          \
	X(ERR_clear_error)                    \
	X(ERR_peek_last_error)                \
	X(ERR_reason_error_string)

#define CALL_FIELD(name) __typeof__(&name) name;
#define CALL_NAME(name)	 #name,

struct calls {
	CALLS(CALL_FIELD)
};

static const char *const call_names[] = {CALLS(CALL_NAME)};
#define CALL_COUNT (sizeof(call_names) / sizeof(call_names[0]))
_Static_assert(sizeof(struct calls) == CALL_COUNT * sizeof(void *), "calls");

struct ft_tls {
	void *library;
	union {
		struct calls call;
		void *symbol[CALL_COUNT];
	};
	SSL_CTX *ctx;
};

struct ft_tls_conn {
	const struct ft_tls *tls;
	SSL *ssl;
	BIO *in, *out; /* the ssl's */
};

static int library_open(struct ft_tls *t, char why[FT_TLS_WHY])
{
	t->library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
	if (!t->library) {
		snprintf(why, FT_TLS_WHY,
			 "TLS needs " LIBRARY_NAME
			 ", which is not on this host: install it (Debian: libssl3)");
		return -ENOSYS;
	}
	for (size_t i = 0; i < CALL_COUNT; i++) {
		t->symbol[i] = dlsym(t->library, call_names[i]);
		if (t->symbol[i])
			continue;
		snprintf(why, FT_TLS_WHY, LIBRARY_NAME " has no %s", call_names[i]);
		return -ENOSYS;
	}
	return 0;
}

/* What libssl says went wrong last. */
static const char *last_error(const struct ft_tls *t)
{
	const unsigned long error = t->call.ERR_peek_last_error();
	const char *text = error ? t->call.ERR_reason_error_string(error) : NULL;

	if (error && ERR_SYSTEM_ERROR(error))
		text = strerror((int)ERR_GET_REASON(error));
	return text ? text : "no reason is given";
}

static int bad_file(const struct ft_tls *t, const char *what, const char *name,
		    char why[FT_TLS_WHY])
{
	snprintf(why, FT_TLS_WHY, "%.150s is no file of %s: %.80s", name, what,
		 last_error(t));
	return -EINVAL;
}

static int files_read(struct ft_tls *t, const struct ft_tls_files *f,
		      char why[FT_TLS_WHY])
{
	const bool cert = f->cert && *f->cert, key = f->key && *f->key;

	t->call.ERR_clear_error();
	if (cert != key) {
		snprintf(why, FT_TLS_WHY,
			 "there is a %s and no %s: name both files, or none",
			 cert ? "certificate" : "key", cert ? "key" : "certificate");
		return -EINVAL;
	}
	if (f->ca && *f->ca) {
		if (!t->call.SSL_CTX_load_verify_file(t->ctx, f->ca))
			return bad_file(t, "authorities' certificates", f->ca, why);
	} else if (!t->call.SSL_CTX_set_default_verify_paths(t->ctx)) {
		return bad_file(t, "authorities' certificates", "the system's", why);
	}
	if (!cert)
		return 0;
	if (t->call.SSL_CTX_use_certificate_chain_file(t->ctx, f->cert) != 1)
		return bad_file(t, "certificates", f->cert, why);
	if (t->call.SSL_CTX_use_PrivateKey_file(t->ctx, f->key, SSL_FILETYPE_PEM) != 1 ||
	    t->call.SSL_CTX_check_private_key(t->ctx) != 1)
		return bad_file(t, "the certificate's key", f->key, why);
	return 0;
}

int ft_tls_open(const struct ft_tls_files *files, struct ft_tls **tls,
		char why[FT_TLS_WHY])
{
	struct ft_tls *t = calloc(1, sizeof(*t));
	int rc;

	snprintf(why, FT_TLS_WHY, "no memory");
	if (!t)
		return -ENOMEM;
	rc = library_open(t, why);
	if (rc == 0) {
		t->ctx = t->call.SSL_CTX_new(t->call.TLS_client_method());
		rc = t->ctx ? 0 : -ENOMEM;
	}
	if (rc == 0) {
		t->call.SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
		t->call.SSL_CTX_ctrl(t->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION,
				     TLS1_2_VERSION, NULL);
		rc = files_read(t, files, why);
	}
	if (rc) {
		ft_tls_close(t);
		return rc;
	}
	*tls = t;
	return 0;
}

/* The library stays: it has handlers for the end of the process. */
void ft_tls_close(struct ft_tls *t)
{
	if (t && t->ctx)
		t->call.SSL_CTX_free(t->ctx);
	free(t);
}

/* An address must be in the certificate as one, a name as a name. */
static bool conn_expect(struct ft_tls_conn *c, const char *host)
{
	const struct calls *call = &c->tls->call;

	if (call->X509_VERIFY_PARAM_set1_ip_asc(call->SSL_get0_param(c->ssl), host) == 1)
		return true;
	return call->SSL_set1_host(c->ssl, host) == 1 &&
	       call->SSL_ctrl(c->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
			      TLSEXT_NAMETYPE_host_name, (void *)host) == 1;
}

struct ft_tls_conn *ft_tls_connect(const struct ft_tls *tls, const char *host)
{
	struct ft_tls_conn *c = calloc(1, sizeof(*c));
	const struct calls *call = &tls->call;

	if (!c)
		return NULL;
	c->tls = tls;
	c->ssl = call->SSL_new(tls->ctx);
	c->in = call->BIO_new(call->BIO_s_mem());
	c->out = call->BIO_new(call->BIO_s_mem());
	if (!c->ssl || !c->in || !c->out || !conn_expect(c, host)) {
		call->BIO_free(c->in);
		call->BIO_free(c->out);
		call->SSL_free(c->ssl);
		free(c);
		return NULL;
	}
	call->SSL_set_bio(c->ssl, c->in, c->out);
	call->SSL_set_connect_state(c->ssl);
	return c;
}

void ft_tls_end(struct ft_tls_conn *c)
{
	if (!c)
		return;
	c->tls->call.SSL_free(c->ssl);
	free(c);
}

bool ft_tls_put(struct ft_tls_conn *c, const void *bytes, size_t len)
{
	return len <= INT_MAX &&
	       c->tls->call.BIO_write(c->in, bytes, (int)len) == (int)len;
}

size_t ft_tls_get(struct ft_tls_conn *c, void *bytes, size_t most)
{
	const int n = c->tls->call.BIO_read(c->out, bytes,
					    most > INT_MAX ? INT_MAX : (int)most);

	return n > 0 ? (size_t)n : 0;
}

/* What a call that did not end well came to. */
static enum ft_tls_end conn_end(const struct ft_tls_conn *c, int rc, char why[FT_TLS_WHY])
{
	const struct calls *call = &c->tls->call;
	const int error = call->SSL_get_error(c->ssl, rc);
	const long verified = call->SSL_get_verify_result(c->ssl);

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return FT_TLS_WAITS;
	if (error == SSL_ERROR_ZERO_RETURN)
		return FT_TLS_OVER;
	if (verified != X509_V_OK)
		snprintf(why, FT_TLS_WHY, "its certificate is not accepted: %.200s",
			 call->X509_verify_cert_error_string(verified));
	else
		snprintf(why, FT_TLS_WHY, "TLS: %.200s", last_error(c->tls));
	return FT_TLS_BAD;
}

enum ft_tls_end ft_tls_write(struct ft_tls_conn *c, const void *bytes, size_t len,
			     char why[FT_TLS_WHY])
{
	int rc;

	c->tls->call.ERR_clear_error();
	rc = len <= INT_MAX ? c->tls->call.SSL_write(c->ssl, bytes, (int)len) : 0;
	return rc > 0 ? FT_TLS_GOOD : conn_end(c, rc, why);
}

enum ft_tls_end ft_tls_read(struct ft_tls_conn *c, void *bytes, size_t most, size_t *len,
			    char why[FT_TLS_WHY])
{
	int rc;

	c->tls->call.ERR_clear_error();
	rc = c->tls->call.SSL_read(c->ssl, bytes, most > INT_MAX ? INT_MAX : (int)most);
	*len = rc > 0 ? (size_t)rc : 0;
	return rc > 0 ? FT_TLS_GOOD : conn_end(c, rc, why);
}
#else
int ft_tls_open(const struct ft_tls_files *files, struct ft_tls **tls,
		char why[FT_TLS_WHY])
{
	(void)files;
	*tls = NULL;
	snprintf(why, FT_TLS_WHY,
		 "this Weft was built without libcrypto and has no TLS: build it with "
		 "libssl-dev (openssl-devel), or use etcd:// to a tunnel on this host");
	return -ENOSYS;
}

void ft_tls_close(struct ft_tls *tls)
{
	(void)tls;
}

struct ft_tls_conn *ft_tls_connect(const struct ft_tls *tls, const char *host)
{
	(void)tls;
	(void)host;
	return NULL;
}

void ft_tls_end(struct ft_tls_conn *c)
{
	(void)c;
}

bool ft_tls_put(struct ft_tls_conn *c, const void *bytes, size_t len)
{
	(void)c;
	(void)bytes;
	(void)len;
	return false;
}

size_t ft_tls_get(struct ft_tls_conn *c, void *bytes, size_t most)
{
	(void)c;
	(void)bytes;
	(void)most;
	return 0;
}

enum ft_tls_end ft_tls_write(struct ft_tls_conn *c, const void *bytes, size_t len,
			     char why[FT_TLS_WHY])
{
	(void)c;
	(void)bytes;
	(void)len;
	snprintf(why, FT_TLS_WHY, "no TLS");
	return FT_TLS_BAD;
}

enum ft_tls_end ft_tls_read(struct ft_tls_conn *c, void *bytes, size_t most, size_t *len,
			    char why[FT_TLS_WHY])
{
	*len = 0;
	return ft_tls_write(c, bytes, most, why);
}
#endif
