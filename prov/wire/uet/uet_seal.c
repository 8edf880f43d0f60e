/* SPDX-License-Identifier: BSD-2-Clause */
/* Sealed datagrams; see uet_seal.h. */
#include "config.h"

#include "prov/wire/uet/uet_seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/uet_replay.h"

#define HEAD_TYPE 0x08 /* type 1, in the upper five bits */
#define HEAD_SP	  0x04 /* a source id is there */
#define HEAD_AN	  0x01 /* the receiver's incarnation is part of the proof */

#define COUNTER_BITS 48
#define COUNTER_MAX  ((UINT64_C(1) << COUNTER_BITS) - 1)
#define BUCKETS	     1024
/* As long as that is a datagram short. */
#define TOGETHER 4096

/* What one source's datagrams are sealed with. */
struct source_key {
	struct uet_gcm *gcm;
	uint8_t mask[UET_IV_BYTES];
	bool shared; /* gcm is everybody's */
};

struct source {
	uint64_t id; /* source id and epoch */
	struct source *next;
	struct source_key key;
	struct uet_replay replay;
	uint64_t since;
	bool known; /* said our incarnation */
};

struct uet_seal {
	struct uet_crypto *crypto;
	struct uet_gcm *direct; /* the key of all; NULL: each has its own */
	uint8_t secret[UET_KEY_BYTES];
	uint64_t id; /* our own: 32 bits of source id, 16 of epoch */
	uint64_t counter;
	struct source_key key;
	uint64_t turn;
	struct uet_seal_stats stats;
	struct source *bucket[BUCKETS];
};

static void put_be(uint8_t *at, uint64_t value, unsigned bytes)
{
	while (bytes--) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static uint64_t get_be(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

/* ---- keys -------------------------------------------------------------------------- */

/* NIST SP 800-108 in counter mode, with CMAC: the key, then what IVs are masked with. */
static bool derive(const struct uet_seal *seal, uint64_t id, uint8_t out[48])
{
	static const char label[] = "weft uet cluster"; /* its 0 is part of it */
	uint8_t said[4 + sizeof(label) + 6 + 4];

	memcpy(said + 4, label, sizeof(label));
	put_be(said + 4 + sizeof(label), id, 6);
	put_be(said + 4 + sizeof(label) + 6, 48 * 8, 4);
	for (unsigned i = 0; i < 3; i++) {
		put_be(said, i + 1, 4);
		if (!uet_crypto_cmac(seal->crypto, seal->secret, said, sizeof(said),
				     out + (size_t)i * UET_MAC_BYTES))
			return false;
	}
	return true;
}

static bool key_make(const struct uet_seal *seal, uint64_t id, struct source_key *key)
{
	uint8_t made[48];

	*key = (struct source_key){.gcm = seal->direct, .shared = seal->direct != NULL};
	if (key->shared)
		return true;
	if (!derive(seal, id, made))
		return false;
	memcpy(key->mask, made + UET_KEY_BYTES, sizeof(key->mask));
	key->gcm = uet_gcm_open(seal->crypto, made);
	explicit_bzero(made, sizeof(made));
	return key->gcm != NULL;
}

static void key_drop(struct source_key *key)
{
	if (!key->shared)
		uet_gcm_close(key->gcm);
	key->gcm = NULL;
}

static int hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 64 digits and nothing else. */
static bool hex_read(const char *text, uint8_t key[UET_KEY_BYTES])
{
	if (strlen(text) != (size_t)2 * UET_KEY_BYTES)
		return false;
	for (unsigned i = 0; i < UET_KEY_BYTES; i++) {
		int high = hex_of(text[2 * i]), low = hex_of(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static int key_read(struct uet_seal *seal, const char *text, const char **why)
{
	bool direct = strncmp(text, "direct:", 7) == 0;

	if (direct)
		text += 7;
	else if (strncmp(text, "cluster:", 8) == 0)
		text += 8;
	*why = direct ? "FI_WEFT_UET_KEY: direct: must be followed by 64 hexadecimal "
			"digits"
		      : "FI_WEFT_UET_KEY must have 16 to 1024 characters: a key that can "
			"be guessed keeps nobody out";
	if (!hex_read(text, seal->secret)) {
		if (direct || strlen(text) < UET_SEAL_KEY_MIN ||
		    strlen(text) > UET_SEAL_KEY_MAX)
			return -FI_EINVAL;
		*why = "libcrypto has no SHA-256";
		if (!uet_crypto_hash(seal->crypto, text, strlen(text), seal->secret))
			return -FI_ENOSYS;
	}
	*why = "libcrypto has no AES-256-GCM, or there is no memory";
	if (direct) {
		seal->direct = uet_gcm_open(seal->crypto, seal->secret);
		if (!seal->direct)
			return -FI_ENOSYS;
	}
	return key_make(seal, seal->id, &seal->key) ? 0 : -FI_ENOSYS;
}

/* ---- open, close ------------------------------------------------------------------- */

int uet_seal_open(const char *key, struct uet_seal **out, const char **why)
{
	struct uet_seal *seal = calloc(1, sizeof(*seal));
	int ret;

	if (!seal) {
		*why = "out of memory";
		return -FI_ENOMEM;
	}
	ret = uet_crypto_open(&seal->crypto, why);
	if (!ret &&
	    getrandom(&seal->id, sizeof(seal->id), GRND_NONBLOCK) != sizeof(seal->id)) {
		*why = "FI_WEFT_UET_KEY: the system has no random bytes yet";
		ret = -FI_EIO;
	}
	seal->id >>= 16;
	if (!ret)
		ret = key_read(seal, key, why);
	if (ret) {
		uet_seal_close(seal);
		return ret;
	}
	*why = NULL;
	*out = seal;
	return 0;
}

void uet_seal_close(struct uet_seal *seal)
{
	if (!seal)
		return;
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct source *s = seal->bucket[i], *next; s; s = next) {
			next = s->next;
			key_drop(&s->key);
			free(s);
		}
	}
	key_drop(&seal->key);
	uet_gcm_close(seal->direct);
	uet_crypto_close(seal->crypto);
	explicit_bzero(seal->secret, sizeof(seal->secret));
	free(seal);
}

const struct uet_seal_stats *uet_seal_stats(const struct uet_seal *seal)
{
	return &seal->stats;
}

/* ---- what the proof is over besides the text --------------------------------------- */

struct said {
	uint8_t bytes[UET_SEAL_HEAD + 2 + 2 + 16 + 8];
};

/* Every address has one spelling: what isn't there is 0. */
static void say(struct said *s, const uint8_t head[UET_SEAL_HEAD],
		const struct wire_addr *to, uint64_t incarnation)
{
	uint8_t *at = s->bytes;

	memset(s, 0, sizeof(*s));
	memcpy(at, head, UET_SEAL_HEAD);
	at += UET_SEAL_HEAD;
	if (to->sa.sa_family == AF_INET6) {
		at[1] = 6;
		memcpy(at + 2, &to->in6.sin6_port, 2);
		memcpy(at + 4, &to->in6.sin6_addr, 16);
	} else {
		at[1] = 4;
		memcpy(at + 2, &to->in.sin_port, 2);
		memcpy(at + 4, &to->in.sin_addr, 4);
	}
	put_be(at + 20, incarnation, 8);
}

static void iv_make(uint8_t iv[UET_IV_BYTES], const uint8_t head[UET_SEAL_HEAD],
		    const struct source_key *key)
{
	for (unsigned i = 0; i < UET_IV_BYTES; i++)
		iv[i] = head[4 + i] ^ key->mask[i];
}

/* ---- sealing ----------------------------------------------------------------------- */

/* Short pieces are copied, and sealed where they are: each call of libcrypto costs more.
 */
static void together(const struct iovec *text, unsigned count, uint8_t *to)
{
	for (unsigned i = 0; i < count; i++) {
		memcpy(to, text[i].iov_base, text[i].iov_len);
		to += text[i].iov_len;
	}
}

size_t uet_seal_put(struct uet_seal *seal, const struct wire_addr *to,
		    uint64_t incarnation, const struct iovec *text, unsigned count,
		    uint8_t *out)
{
	uint8_t iv[UET_IV_BYTES];
	struct said said = {.bytes = {0}};
	struct iovec one;
	size_t len = 0;

	for (unsigned i = 0; i < count; i++)
		len += text[i].iov_len;
	if (seal->counter > COUNTER_MAX || len > UET_SEAL_MAX - UET_SEAL_EXTRA)
		return 0;
	memset(out, 0, 4);
	out[0] = HEAD_TYPE | HEAD_SP | (incarnation ? HEAD_AN : 0);
	put_be(out + 4, seal->id >> 16, 4);
	put_be(out + 8, seal->id, 2);
	put_be(out + 10, seal->counter++, 6);
	say(&said, out, to, incarnation);
	iv_make(iv, out, &seal->key);
	if (len <= TOGETHER) {
		together(text, count, out + UET_SEAL_HEAD);
		one = (struct iovec){out + UET_SEAL_HEAD, len};
		text = &one;
		count = 1;
	}
	if (!uet_gcm_seal(seal->key.gcm, iv, said.bytes, sizeof(said.bytes), text, count,
			  out + UET_SEAL_HEAD, out + UET_SEAL_HEAD + len))
		return 0;
	seal->stats.sealed++;
	return len + UET_SEAL_EXTRA;
}

/* ---- taking ------------------------------------------------------------------------ */

static struct source **source_at(struct uet_seal *seal, uint64_t id)
{
	uint64_t h = id * UINT64_C(0x9e3779b97f4a7c15);
	struct source **at = &seal->bucket[h >> 54];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* The guest that has been here longest goes. */
static void guest_drop(struct uet_seal *seal)
{
	struct source **oldest = NULL;
	struct source *s;

	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct source **at = &seal->bucket[i]; *at; at = &(*at)->next) {
			if (!(*at)->known && (!oldest || (*at)->since < (*oldest)->since))
				oldest = at;
		}
	}
	if (!oldest)
		return;
	s = *oldest;
	*oldest = s->next;
	key_drop(&s->key);
	free(s);
	seal->stats.guests--;
}

/* Who has just proved that it is one. */
static struct source *source_add(struct uet_seal *seal, uint64_t id, bool known,
				 struct source_key *key)
{
	struct source *s;

	if (known && seal->stats.known >= UET_SEAL_SOURCES)
		return NULL;
	if (!known && seal->stats.guests >= UET_SEAL_GUESTS)
		guest_drop(seal);
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->id = id;
	s->key = *key;
	s->known = known;
	s->since = seal->turn++;
	seal->stats.known += known;
	seal->stats.guests += !known;
	s->next = *source_at(seal, id);
	*source_at(seal, id) = s;
	return s;
}

static bool source_known(struct uet_seal *seal, struct source *s)
{
	if (s->known)
		return true;
	if (seal->stats.known >= UET_SEAL_SOURCES)
		return false;
	s->known = true;
	seal->stats.known++;
	seal->stats.guests--;
	return true;
}

static bool unseal(struct source_key *key, const struct said *said, const uint8_t *sealed,
		   size_t len, uint8_t *out)
{
	uint8_t iv[UET_IV_BYTES];

	iv_make(iv, sealed, key);
	return uet_gcm_unseal(key->gcm, iv, said->bytes, sizeof(said->bytes),
			      sealed + UET_SEAL_HEAD, len, out,
			      sealed + UET_SEAL_HEAD + len);
}

/* Nobody is remembered before the proof was good. */
static int take_first(struct uet_seal *seal, uint64_t id, bool known,
		      const struct said *said, const uint8_t *sealed, size_t len,
		      uint8_t *out, struct source **source)
{
	struct source_key key;

	if (!key_make(seal, id, &key)) {
		key_drop(&key);
		return -FI_ENOMEM;
	}
	if (!unseal(&key, said, sealed, len, out)) {
		key_drop(&key);
		seal->stats.forged++;
		return -EBADMSG;
	}
	*source = source_add(seal, id, known, &key);
	if (!*source) {
		key_drop(&key);
		seal->stats.crowded++;
		return -FI_ENOSPC;
	}
	return 0;
}

static int take_next(struct uet_seal *seal, struct source *s, bool known, uint64_t number,
		     const struct said *said, const uint8_t *sealed, size_t len,
		     uint8_t *out)
{
	if (!uet_replay_fresh(&s->replay, number)) {
		seal->stats.replayed++;
		return -FI_EALREADY;
	}
	if (!unseal(&s->key, said, sealed, len, out)) {
		seal->stats.forged++;
		return -EBADMSG;
	}
	if (known && !source_known(seal, s)) {
		seal->stats.crowded++;
		return -FI_ENOSPC;
	}
	return 0;
}

int uet_seal_take(struct uet_seal *seal, const struct wire_addr *to, uint64_t incarnation,
		  const uint8_t *sealed, size_t sealed_len, uint8_t *out, size_t *len,
		  bool *begins)
{
	struct source *s;
	struct said said = {.bytes = {0}};
	uint64_t id, number;
	size_t text;
	bool known;
	int ret;

	if (sealed_len < UET_SEAL_EXTRA || sealed_len > UET_SEAL_MAX ||
	    (sealed[0] & ~HEAD_AN) != (HEAD_TYPE | HEAD_SP) || sealed[1] || sealed[2] ||
	    sealed[3]) {
		seal->stats.forged++;
		return -EBADMSG;
	}
	text = sealed_len - UET_SEAL_EXTRA;
	known = sealed[0] & HEAD_AN;
	id = get_be(sealed + 4, 6);
	number = get_be(sealed + 10, 6);
	say(&said, sealed, to, known ? incarnation : 0);
	s = *source_at(seal, id);
	ret = s ? take_next(seal, s, known, number, &said, sealed, text, out)
		: take_first(seal, id, known, &said, sealed, text, out, &s);
	if (ret)
		return ret;
	uet_replay_take(&s->replay, number);
	seal->stats.taken++;
	*len = text;
	*begins = !known;
	return 0;
}
