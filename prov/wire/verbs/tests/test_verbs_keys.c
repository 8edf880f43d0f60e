/* SPDX-License-Identifier: BSD-2-Clause */
/* Doors with keys: who doesn't know the key gets nothing, and nothing can be changed on
 * the way. */
#include "config.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/door_rig.h"
#include "prov/wire/verbs/verbs_auth.h"
#include "prov/wire/verbs/verbs_call.h"
#include "prov/wire/verbs/verbs_frame.h"

#define KEY_A "correct horse battery"
#define KEY_B "correct horse battery."

static struct verbs_auth *key_open(const char *key)
{
	struct verbs_auth *auth = NULL;
	const char *why = NULL;

	if (verbs_auth_open(key, &auth, &why))
		tap_bail("key: %s", why);
	return auth;
}

static void test_proof(void)
{
	static const uint8_t want[VERBS_PROOF] = {
		0xbd, 0x86, 0x22, 0xf9, 0x92, 0x4e, 0xc9, 0xea, 0x35, 0xea, 0x2c,
		0x86, 0x78, 0xd2, 0xe0, 0x06, 0xe9, 0x10, 0x43, 0x91, 0x40, 0x83,
		0x52, 0xd7, 0x62, 0xa1, 0x0f, 0xf4, 0x9c, 0xa1, 0xeb, 0x3b};
	struct verbs_auth *auth = key_open("0123456789abcdef");
	char weft[] = "weft", verbs[] = "verbs";
	struct iovec part[] = {{weft, 4}, {weft, 0}, {verbs, 5}};
	uint8_t proof[VERBS_PROOF];

	tap_ok(verbs_auth_prove(auth, part, 3, proof) &&
		       memcmp(proof, want, sizeof(want)) == 0,
	       "a proof is HMAC-SHA256 over parts and their lengths");
	part[1].iov_len = 1;
	part[0].iov_len = 3;
	tap_ok(verbs_auth_prove(auth, part, 3, proof) && !verbs_auth_equal(proof, want),
	       "other parts have another");
	part[1].iov_len = 5000;
	tap_ok(!verbs_auth_prove(auth, part, 3, proof), "too much is refused");
	verbs_auth_close(auth);
}

static void test_key_length(void)
{
	struct verbs_auth *auth;
	const char *why = NULL;

	tap_is_int(verbs_auth_open("too short a key", &auth, &why), -FI_EINVAL,
		   "15 characters are no key");
	tap_ok(why && strstr(why, "FI_WEFT_AUTH_KEY"), "which is said");
}

/* Two doors with these keys; NULL: none. */
static void pair_open(struct side *a, const char *key_a, struct side *b,
		      const char *key_b)
{
	struct verbs_door_config config = {.auth = key_a ? key_open(key_a) : NULL};

	if (side_open_with(a, "node1", config))
		tap_bail("no door");
	config.auth = key_b ? key_open(key_b) : NULL;
	if (side_open_with(b, "node2", config))
		tap_bail("no door");
}

static void test_pairs(void)
{
	static const struct {
		const char *a, *b, *name;
	} wrong[] = {
		{KEY_A, KEY_B, "two keys that differ in one character"},
		{KEY_A, NULL, "a dialler with a key at a door without"},
		{NULL, KEY_A, "a dialler without a key at a door with one"},
	};
	struct verbs_call *call;
	struct side a, b;

	pair_open(&a, KEY_A, &b, KEY_A);
	side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
	if (tap_ok(rig_until(&a, &b, &b.readies, 1) && b.hellos == 1 && a.answers == 1,
		   "two with one key have a call"))
		verbs_call_drop(call, 0);
	tap_ok(rig_until(&a, &b, &b.downs, 1) && b.last_err == -FI_ESHUTDOWN,
	       "which ends like any other");
	side_close(&a);
	side_close(&b);
	for (unsigned i = 0; i < 3; i++) {
		pair_open(&a, wrong[i].a, &b, wrong[i].b);
		side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
		tap_ok(rig_until(&a, &b, &a.downs, 1) && a.last_err == -FI_EACCES,
		       "%s: not allowed", wrong[i].name);
		tap_ok(b.hellos == 0 && a.answers == 0, "and no wire has heard of it");
		side_close(&a);
		side_close(&b);
	}
}

/* What is said on a call that is up is proved as well. */
static void test_word(void)
{
	static const uint8_t word[] = "a word";
	struct verbs_frame f = {.kind = VERBS_FRAME_WORD,
				.len = sizeof(word) + VERBS_PROOF};
	uint8_t forged[VERBS_FRAME_HEAD + sizeof(word) + VERBS_PROOF] = {0};
	struct verbs_call *call;
	struct side a, b;

	pair_open(&a, KEY_A, &b, KEY_A);
	side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
	tap_ok(rig_until(&a, &b, &b.readies, 1) &&
		       verbs_call_say(call, word, sizeof(word)) == 0 &&
		       rig_until(&a, &b, &b.words, 1) && b.word_len == sizeof(word) &&
		       memcmp(b.word, word, sizeof(word)) == 0,
	       "a word of who has the key is heard");
	tap_ok(verbs_call_say(b.last, word, 2) == 0 && rig_until(&a, &b, &a.words, 1) &&
		       a.word_len == 2,
	       "and the answer");
	verbs_frame_write(&f, forged);
	memcpy(forged + VERBS_FRAME_HEAD, word, sizeof(word));
	(void)!send(call->sock, forged, sizeof(forged), MSG_NOSIGNAL);
	tap_ok(rig_until(&a, &b, &b.downs, 1) && b.last_err == -FI_EACCES && b.words == 1,
	       "one without proof is not, and ends the call");
	side_close(&a);
	side_close(&b);
}

/* One that was said before is no new one, from either end. */
static void test_word_again(void)
{
	static const uint8_t word[] = "a word";
	struct verbs_call *call;
	struct side a, b;

	for (int back = 0; back < 2; back++) {
		pair_open(&a, KEY_A, &b, KEY_A);
		side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
		if (!rig_until(&a, &b, &b.readies, 1) ||
		    verbs_call_say(call, word, sizeof(word)) ||
		    !rig_until(&a, &b, &b.words, 1))
			tap_bail("no word");
		if (back) {
			/* As the other end would say it. */
			b.last->dialler = true;
			verbs_call_say(b.last, word, sizeof(word));
		} else {
			call->said--;
			verbs_call_say(call, word, sizeof(word));
		}
		tap_ok(rig_until(&a, &b, back ? &a.downs : &b.downs, 1) &&
			       (back ? a.last_err : b.last_err) == -FI_EACCES &&
			       a.words == 0 && b.words == 1,
		       "a word is heard once: %s", back ? "said back" : "said again");
		side_close(&a);
		side_close(&b);
	}
}

/* ---- somebody in between, who changes one byte ---------------------------------------
 */

struct between {
	int sock[2]; /* to the dialler, to the answerer */
	size_t seen[2];
	int side;  /* whose bytes are changed */
	size_t at; /* which */
};

static void between_pump(struct between *m)
{
	for (int from = 0; from < 2; from++) {
		uint8_t bytes[4096];
		ssize_t n = recv(m->sock[from], bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n <= 0)
			continue;
		if (from == m->side && m->at >= m->seen[from] &&
		    m->at < m->seen[from] + (size_t)n)
			bytes[m->at - m->seen[from]] ^= 1;
		m->seen[from] += (size_t)n;
		(void)!send(m->sock[!from], bytes, (size_t)n, MSG_NOSIGNAL);
	}
}

/* Dials through somebody who changes byte `at` of what `side` says. True: it came to a
 * call that both believe in. */
static bool dial_through(int side, size_t at, bool *heard)
{
	struct between m = {.side = side, .at = at};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t end = rig_now() + RIG_PATIENCE_MS * UINT64_C(1000000);
	struct verbs_call *call;
	struct wire_addr door;
	socklen_t len = sizeof(door.in);
	struct side a, b;
	bool up;

	pair_open(&a, KEY_A, &b, KEY_A);
	rig_addr(&door, INADDR_LOOPBACK, 0);
	if (bind(fd, &door.sa, len) || listen(fd, 1) || getsockname(fd, &door.sa, &len))
		tap_bail("no port: %m");
	side_dial(&a, &door, 1, NULL, &call);
	m.sock[0] = accept(fd, NULL, NULL);
	m.sock[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (m.sock[0] < 0 ||
	    connect(m.sock[1], &verbs_door_addr(b.door)->sa, sizeof(door.in)))
		tap_bail("no connection: %m");
	while (rig_now() < end && !b.readies && !a.downs && !b.downs) {
		verbs_door_progress(a.door, rig_now());
		verbs_door_progress(b.door, rig_now());
		between_pump(&m);
	}
	up = b.readies == 1;
	*heard = b.hellos > 0;
	close(m.sock[0]);
	close(m.sock[1]);
	close(fd);
	side_close(&a);
	side_close(&b);
	return up;
}

static void test_between(void)
{
	/* OPEN is 48 bytes, then HELLO; CHALLENGE is 80, then ANSWER. */
	const size_t card = 440, hello = 48, answer = 80;
	static const char *const who[] = {"dialler", "answerer"};
	bool heard;

	tap_ok(dial_through(0, SIZE_MAX, &heard) && heard,
	       "who only listens in between changes nothing");
	for (int side = 0; side < 2; side++) {
		size_t first = side ? answer : hello;
		const size_t at[] = {20, first + VERBS_FRAME_HEAD + 30,
				     first + VERBS_FRAME_HEAD + card - 3,
				     first + VERBS_FRAME_HEAD + card + 5};

		for (unsigned i = 0; i < 4; i++) {
			bool up = dial_through(side, at[i], &heard);

			tap_ok(!up && (side || !heard), "the %s's byte %zu is protected",
			       who[side], at[i]);
		}
	}
	tap_ok(!dial_through(0, hello + 2 * VERBS_FRAME_HEAD + card + VERBS_PROOF + 3,
			     &heard) &&
		       heard,
	       "and the third message");
}

int main(void)
{
	struct verbs_auth *auth = NULL;
	const char *why = NULL;
	int rc = verbs_auth_open(KEY_A, &auth, &why);

#ifndef HAVE_LIBCRYPTO
	tap_ok(rc == -FI_ENOSYS && why && strstr(why, "FI_WEFT_AUTH_KEY"),
	       "without libcrypto a key is refused in words");
	return tap_done();
#endif
	if (rc)
		tap_bail("%s", why);
	verbs_auth_close(auth);
	test_proof();
	test_key_length();
	test_pairs();
	test_word();
	test_word_again();
	test_between();
	return tap_done();
}
