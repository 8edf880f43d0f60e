/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint does with a key; see uet_secret.h. */
#include "config.h"

#include "prov/wire/uet/uet_secret.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/uet/uet_ep.h"
#include "prov/wire/uet/uet_hello.h"

/* The longest that is sealed. */
#define TEXT_MAX (UET_SECRET_MAX - UET_SEAL_EXTRA)

struct uet_secret {
	struct uet_seal *seal;
	/* What was said already. */
	bool said_other_key, said_open, said_broken, said_crowded;
	uint8_t text[UET_SEAL_MAX];
};

int uet_secret_open(struct uet_secret **out)
{
	const char *key = prov_params()->uet_key, *why;
	struct uet_secret *secret;
	int ret;

	if (!key && !prov_params()->auth_key)
		return 0;
	if (!key) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"FI_WEFT_AUTH_KEY is set, which the uet wire has no use for: set "
			"FI_WEFT_UET_KEY, or neither\n");
		return -FI_EINVAL;
	}
	secret = calloc(1, sizeof(*secret));
	if (!secret)
		return -FI_ENOMEM;
	ret = uet_seal_open(key, &secret->seal, &why);
	if (ret) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"no endpoint, since nothing can be sealed: %s\n", why);
		free(secret);
		return ret;
	}
	*out = secret;
	return 0;
}

void uet_secret_close(struct uet_secret *secret)
{
	if (!secret)
		return;
	uet_seal_close(secret->seal);
	free(secret);
}

const struct uet_seal_stats *uet_secret_stats(const struct uet_secret *secret)
{
	return uet_seal_stats(secret->seal);
}

/* Said once. */
static void say(bool *said, const struct uet_dgram *d, const char *what)
{
	char text[WIRE_ADDR_TEXT_MAX];

	if (*said)
		return;
	*said = true;
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "%s: %s\n",
		wire_addr_text(&d->from, text), what);
}

void uet_secret_put(struct uet_secret *secret, uint64_t incarnation, uint8_t *at,
		    struct uet_tx *tx)
{
	size_t len = 0;

	if (tx->len <= TEXT_MAX)
		len = uet_seal_put(secret->seal, tx->to, incarnation, tx->iov,
				   tx->iov_count, at);
	if (!len && !secret->said_broken) {
		secret->said_broken = true;
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"a datagram couldn't be sealed and isn't sent: libcrypto "
			"failed\n");
	}
	tx->iov[0] = (struct iovec){at, len};
	tx->iov_count = 1;
	tx->len = len;
}

bool uet_secret_sealed(const struct uet_dgram *d)
{
	return d->len >= UET_SEAL_EXTRA && (d->data[0] & 0xfe) == 0x0c && !d->data[1] &&
	       !d->data[2] && !d->data[3];
}

void uet_secret_no_key(const struct uet_dgram *d)
{
	static _Atomic(bool) said;
	bool before = atomic_exchange_explicit(&said, true, memory_order_relaxed);

	say(&before, d,
	    "what it sends is encrypted, and this process has no key: set "
	    "FI_WEFT_UET_KEY "
	    "here as there, or nowhere; nothing of it is taken");
}

/* An attacker gets one line out of us. */
static void refused(struct uet_secret *secret, const struct uet_dgram *d, int err)
{
	if (err == -FI_ENOSPC) {
		say(&secret->said_crowded, d,
		    "no more senders are known apart: it is one too many, and nothing of "
		    "it is taken");
	} else if (err == -EBADMSG && uet_secret_sealed(d)) {
		say(&secret->said_other_key, d,
		    "a datagram that wasn't sealed with our key for this endpoint isn't "
		    "taken: FI_WEFT_UET_KEY must be the same in all processes, and no "
		    "address may be translated between them");
	} else if (err == -EBADMSG) {
		say(&secret->said_open, d,
		    "a datagram that isn't encrypted isn't taken: FI_WEFT_UET_KEY is set "
		    "here, and must be set there to the same");
	}
}

bool uet_secret_take(struct uet_secret *secret, const struct wire_addr *to,
		     uint64_t incarnation, const struct uet_dgram *d,
		     const uint8_t **data, size_t *len, bool *begins)
{
	int ret = uet_seal_take(secret->seal, to, incarnation, d->data, d->len,
				secret->text, len, begins);

	*data = secret->text;
	if (ret)
		refused(secret, d, ret);
	return ret == 0;
}

bool uet_secret_may_begin(const struct uet_pkt *pkt)
{
	bool request = pkt->pds.type == UET_RUD_REQ || pkt->pds.type == UET_ROD_REQ;

	/* One opens a context that isn't believed yet; the other names numbers of ours
	 * which can't be guessed, and weren't used before. */
	return (request && pkt->pds.syn) || pkt->pds.type == UET_NACK;
}
