/* SPDX-License-Identifier: BSD-2-Clause */
/* What wasn't sealed by a holder of the key, for us, now, is never taken; what was, is
 * taken once. "test_uet_seal SEED" repeats a run. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/uet_replay.h"
#include "prov/wire/uet/uet_seal.h"
#include "util/tap.h"

#define KEY	"correct horse battery"
#define HEX	"00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef"
#define MAX	1500
#define COUNT	400
#define NOW_INC UINT64_C(0x1122334455667788)

static uint64_t random_state;

static uint64_t draw(void)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static struct uet_seal *seal_of(const char *key)
{
	struct uet_seal *seal = NULL;
	const char *why = NULL;

	if (uet_seal_open(key, &seal, &why))
		tap_bail("key: %s", why);
	return seal;
}

static struct wire_addr addr_of(const char *text, uint16_t port)
{
	struct wire_addr a = {.in = {.sin_family = AF_INET, .sin_port = htons(port)}};

	inet_pton(AF_INET, text, &a.in.sin_addr);
	return a;
}

/* ---- libcrypto does what it should ------------------------------------------------- */

static void test_vectors(void)
{
	static const uint8_t key[UET_KEY_BYTES] = {
		0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae,
		0xf0, 0x85, 0x7d, 0x77, 0x81, 0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61,
		0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4};
	static const uint8_t text[16] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96,
					 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a};
	static const uint8_t mac[16] = {0x28, 0xa7, 0x02, 0x3f, 0x45, 0x2e, 0x8f, 0x82,
					0xbd, 0x4b, 0xf2, 0x8d, 0x8c, 0x37, 0xc3, 0x5c};
	static const uint8_t sealed[16] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60,
					   0x6b, 0x6e, 0x07, 0x4e, 0xc5, 0xd3,
					   0xba, 0xf3, 0x9d, 0x18};
	static const uint8_t tag[16] = {0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
					0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
	uint8_t zero[UET_KEY_BYTES] = {0}, iv[UET_IV_BYTES] = {0}, out[16], icv[16];
	struct iovec part[] = {{zero, 5}, {zero, 0}, {zero, 11}};
	struct uet_crypto *crypto;
	struct uet_gcm *gcm;
	const char *why;

	if (uet_crypto_open(&crypto, &why))
		tap_bail("%s", why);
	tap_ok(uet_crypto_cmac(crypto, key, text, sizeof(text), out) &&
		       memcmp(out, mac, sizeof(mac)) == 0,
	       "CMAC with 256 bits, as published");
	gcm = uet_gcm_open(crypto, zero);
	tap_ok(gcm && uet_gcm_seal(gcm, iv, "", 0, part, 3, out, icv) &&
		       memcmp(out, sealed, 16) == 0 && memcmp(icv, tag, 16) == 0,
	       "GCM with 256 bits, as published");
	tap_ok(gcm && uet_gcm_unseal(gcm, iv, "", 0, sealed, 16, out, tag) &&
		       memcmp(out, zero, 16) == 0,
	       "and back");
	uet_gcm_close(gcm);
	uet_crypto_close(crypto);
}

static void test_keys(void)
{
	static const char *const wrong[] = {"too short a key",
					    "",
					    "cluster:",
					    "direct:",
					    "direct:0123456789abcdef",
					    "direct:" HEX "0",
					    "cluster:fifteen letters"};
	struct uet_seal *seal;
	const char *why;
	unsigned bad = 0;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		why = NULL;
		bad += uet_seal_open(wrong[i], &seal, &why) != -FI_EINVAL || !why ||
		       !strstr(why, "FI_WEFT_UET_KEY");
	}
	tap_is_int(bad, 0, "what is no key is refused, in words");
}

/* ---- numbers ----------------------------------------------------------------------- */

/* Against a list of all that was taken. */
static void test_replay(void)
{
	static uint8_t taken[60000];
	static struct uet_replay r;
	unsigned twice = 0, lost = 0, old = 0;
	uint64_t high = 0;

	for (unsigned i = 0; i < 40000; i++) {
		uint64_t n = high + draw() % 300;
		bool fresh;

		n = n > 200 ? n - 200 : 0;
		if (draw() % 1000 == 0)
			n = draw() % (high + 1);
		if (n >= sizeof(taken))
			break;
		fresh = uet_replay_fresh(&r, n);
		twice += fresh && taken[n];
		old += fresh && n + UET_REPLAY_WINDOW < high;
		lost += !fresh && !taken[n] && n + UET_REPLAY_WINDOW - 64 > high;
		if (!fresh)
			continue;
		uet_replay_take(&r, n);
		taken[n] = 1;
		high = n > high ? n : high;
	}
	tap_ok(!twice && !lost && !old && high > 10000,
	       "a number is fresh once, and not for ever");
	uet_replay_take(&r, high + 10 * UET_REPLAY_WINDOW);
	tap_ok(!uet_replay_fresh(&r, high) &&
		       uet_replay_fresh(&r, high + 10 * UET_REPLAY_WINDOW - 1) &&
		       !uet_replay_fresh(&r, high + 10 * UET_REPLAY_WINDOW),
	       "also after a leap");
}

/* ---- datagrams --------------------------------------------------------------------- */

struct sealed {
	uint8_t bytes[MAX + UET_SEAL_EXTRA];
	size_t len;
	uint8_t text[MAX];
	size_t text_len;
	bool begins;
	bool taken;
};

static struct sealed packet[COUNT];

struct ends {
	struct uet_seal *a, *b;
	struct wire_addr at; /* b's */
};

static void seal_one(struct ends *e, struct sealed *p, bool begins)
{
	struct iovec part[3];
	size_t cut, len = draw() % (MAX + 1);

	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < len; i++)
		p->text[i] = (uint8_t)draw();
	cut = len ? draw() % len : 0;
	part[0] = (struct iovec){p->text, cut};
	part[1] = (struct iovec){p->text + cut, 0};
	part[2] = (struct iovec){p->text + cut, len - cut};
	p->text_len = len;
	p->begins = begins;
	p->len = uet_seal_put(e->a, &e->at, begins ? 0 : NOW_INC, part, 3, p->bytes);
}

static int take(struct ends *e, const uint8_t *bytes, size_t sealed_len, uint8_t *out,
		size_t *len, bool *begins)
{
	return uet_seal_take(e->b, &e->at, NOW_INC, bytes, sealed_len, out, len, begins);
}

/* One that was sealed, as it is: taken if it wasn't before. */
static unsigned wrong_whole(struct ends *e, struct sealed *p)
{
	uint8_t out[UET_SEAL_MAX];
	bool begins = false;
	size_t len = 0;
	int ret = take(e, p->bytes, p->len, out, &len, &begins);

	if (p->taken)
		return ret != -FI_EALREADY;
	p->taken = true;
	return ret || len != p->text_len || begins != p->begins ||
	       memcmp(out, p->text, len) != 0;
}

/* Anything that was done to it makes it nothing. */
static unsigned wrong_changed(struct ends *e, const struct sealed *p)
{
	uint8_t bytes[MAX + UET_SEAL_EXTRA + 64] = {0}, out[UET_SEAL_MAX];
	size_t sealed_len = p->len, len;
	bool begins;

	memcpy(bytes, p->bytes, p->len);
	switch (draw() % 4) {
	case 0:
		sealed_len = draw() % p->len;
		break;
	case 1:
		sealed_len += 1 + draw() % 64;
		break;
	case 2: /* as a number that wasn't seen */
		bytes[10] ^= (uint8_t)(1 + draw() % 255);
		break;
	default:
		bytes[draw() % p->len] ^= (uint8_t)(1u << draw() % 8);
	}
	return take(e, bytes, sealed_len, out, &len, &begins) == 0;
}

static void test_schedule(const char *key)
{
	struct ends e = {seal_of(key), seal_of(key), addr_of("10.0.0.2", 4793)};
	unsigned wrong = 0, took = 0, stolen = 0;

	for (unsigned i = 0; i < COUNT; i++)
		seal_one(&e, &packet[i], i < 5);
	/* Near their turn, some never, some often. */
	for (unsigned i = 0; i < 6 * COUNT; i++) {
		struct sealed *p = &packet[(i / 6 + draw() % 40) % COUNT];

		if (draw() % 2)
			wrong += wrong_whole(&e, p);
		else
			stolen += wrong_changed(&e, p);
	}
	for (unsigned i = 0; i < COUNT; i++)
		took += packet[i].taken;
	tap_ok(!wrong && took > COUNT / 2, "%.7s: each is taken once, as it was", key);
	tap_is_int(stolen, 0, "and nothing that was changed ever is");
	tap_is_int((int64_t)uet_seal_stats(e.b)->taken, took, "which is counted");
	uet_seal_close(e.a);
	uet_seal_close(e.b);
}

static void test_every_bit(void)
{
	struct ends e = {seal_of(KEY), seal_of(KEY), addr_of("10.0.0.2", 4793)};
	uint8_t text[40] = "what is said, and what is to be done", out[UET_SEAL_MAX];
	uint8_t sealed[sizeof(text) + UET_SEAL_EXTRA];
	struct iovec part = {text, sizeof(text)};
	unsigned taken = 0;
	size_t len;
	bool begins;
	size_t got = uet_seal_put(e.a, &e.at, NOW_INC, &part, 1, sealed);

	for (size_t bit = 0; bit < got * 8; bit++) {
		sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
		taken += take(&e, sealed, got, out, &len, &begins) == 0;
		sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	tap_is_int(taken, 0, "no bit can be another");
	for (size_t n = 0; n < got; n++)
		taken += take(&e, sealed, n, out, &len, &begins) == 0;
	tap_is_int(taken, 0, "no byte can be missing");
	tap_ok(uet_seal_stats(e.b)->known == 0 && uet_seal_stats(e.b)->guests == 0,
	       "and nobody is remembered for it");
	tap_is_int(take(&e, sealed, got, out, &len, &begins), 0, "all of them are right");
	uet_seal_close(e.a);
	uet_seal_close(e.b);
}

static void test_elsewhere(void)
{
	struct ends e = {seal_of(KEY), seal_of(KEY), addr_of("10.0.0.2", 4793)};
	struct wire_addr other = addr_of("10.0.0.3", 4793),
			 port = addr_of("10.0.0.2", 4794);
	struct uet_seal *else_key = seal_of(KEY "."), *direct = seal_of("direct:" HEX);
	uint8_t out[UET_SEAL_MAX];
	struct sealed *p = &packet[0], *first = &packet[1];
	bool begins;
	size_t len;

	seal_one(&e, p, false);
	seal_one(&e, first, true);
	tap_is_int(
		uet_seal_take(e.b, &other, NOW_INC, p->bytes, p->len, out, &len, &begins),
		-EBADMSG, "not at another address");
	tap_is_int(
		uet_seal_take(e.b, &port, NOW_INC, p->bytes, p->len, out, &len, &begins),
		-EBADMSG, "not at another port");
	tap_is_int(uet_seal_take(e.b, &e.at, NOW_INC + 1, p->bytes, p->len, out, &len,
				 &begins),
		   -EBADMSG, "not by one who came later at the address");
	tap_is_int(uet_seal_take(else_key, &e.at, NOW_INC, p->bytes, p->len, out, &len,
				 &begins),
		   -EBADMSG, "not with another key");
	tap_is_int(uet_seal_take(direct, &e.at, NOW_INC, p->bytes, p->len, out, &len,
				 &begins),
		   -EBADMSG, "not with another kind of key");
	tap_is_int(uet_seal_take(e.a, &e.at, NOW_INC, p->text, p->text_len, out, &len,
				 &begins),
		   -EBADMSG, "not without a seal");
	tap_ok(uet_seal_take(e.b, &e.at, NOW_INC + 1, first->bytes, first->len, out, &len,
			     &begins) == 0 &&
		       begins,
	       "a beginning is taken by whoever is there now, and told as one");
	tap_is_int(take(&e, p->bytes, p->len, out, &len, &begins), 0,
		   "what goes on is taken by whom it was for");
	uet_seal_close(e.a);
	uet_seal_close(e.b);
	uet_seal_close(else_key);
	uet_seal_close(direct);
}

/* Recorded beginnings of many. */
static void test_guests(void)
{
	struct ends e = {NULL, seal_of(KEY), addr_of("10.0.0.2", 4793)};
	const unsigned crowd = 2 * UET_SEAL_GUESTS;
	struct ends friend = {seal_of(KEY), e.b, e.at};
	uint8_t out[UET_SEAL_MAX];
	unsigned refused = 0;
	bool begins;
	size_t len;

	seal_one(&friend, &packet[0], false);
	refused += take(&e, packet[0].bytes, packet[0].len, out, &len, &begins) != 0;
	for (unsigned i = 0; i < crowd; i++) {
		e.a = seal_of(KEY);
		seal_one(&e, &packet[1], true);
		refused +=
			take(&e, packet[1].bytes, packet[1].len, out, &len, &begins) != 0;
		uet_seal_close(e.a);
	}
	tap_is_int(refused, 0, "all who begin are heard");
	tap_ok(uet_seal_stats(e.b)->guests == UET_SEAL_GUESTS &&
		       uet_seal_stats(e.b)->known == 1,
	       "few of them are remembered");
	tap_is_int(take(&e, packet[0].bytes, packet[0].len, out, &len, &begins),
		   -FI_EALREADY, "and whoever went on is not forgotten for them");
	uet_seal_close(friend.a);
	uet_seal_close(e.b);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	struct uet_crypto *crypto;
	const char *why;

	random_state = seed;
	tap_diag("seed %llu", (unsigned long long)seed);
	test_replay();
	if (uet_crypto_open(&crypto, &why)) {
		tap_skip(1, "%s", why);
		return tap_done();
	}
	uet_crypto_close(crypto);
	test_vectors();
	test_keys();
	test_schedule(KEY);
	test_schedule("direct:" HEX);
	test_schedule("cluster:" HEX);
	test_every_bit();
	test_elsewhere();
	test_guests();
	return tap_done();
}
