/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exchange: who says what when. Each proof is over what it is for, both nonces, and
 * the cards that were said until then, so none can be used in another place.
 */
#include "config.h"

#include "prov/wire/verbs/verbs_call.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "util/le.h"

/* ---- proofs -------------------------------------------------------------------------
 */

enum proof_kind { PROOF_CHALLENGE, PROOF_HELLO, PROOF_ANSWER, PROOF_READY };

static const struct {
	const char *name;
	unsigned cards; /* that were said by then */
} proof_table[] = {
	[PROOF_CHALLENGE] = {"weft verbs challenge", 0},
	[PROOF_HELLO] = {"weft verbs hello", 1},
	[PROOF_ANSWER] = {"weft verbs answer", 2},
	[PROOF_READY] = {"weft verbs ready", 2},
};

static bool proof_make(const struct verbs_call *call, enum proof_kind kind,
		       uint8_t proof[VERBS_PROOF])
{
	struct call_talk *t = call->talk;
	struct le16 context = le16_of(t->context);
	const struct iovec part[] = {
		{(char *)proof_table[kind].name, strlen(proof_table[kind].name)},
		{(void *)call->nonce[CALL_DIALLER], VERBS_NONCE},
		{(void *)call->nonce[CALL_ANSWERER], VERBS_NONCE},
		{&context, sizeof(context)},
		{t->bytes[CALL_DIALLER], t->len[CALL_DIALLER]},
		{t->bytes[CALL_ANSWERER], t->len[CALL_ANSWERER]},
	};

	return verbs_auth_prove(call->door->config.auth, part,
				4 + proof_table[kind].cards, proof);
}

/* Of a word: the nonces are of this call alone, who says it and how many it said before
 * tell it from all others. */
static bool word_proof(const struct verbs_call *call, bool dialler, uint32_t number,
		       const uint8_t *word, size_t len, uint8_t proof[VERBS_PROOF])
{
	static const char *const name[] = {"weft verbs word of the answerer",
					   "weft verbs word of the dialler"};
	struct le32 count = le32_of(number);
	const struct iovec part[] = {
		{(char *)name[dialler], strlen(name[dialler])},
		{(void *)call->nonce[CALL_DIALLER], VERBS_NONCE},
		{(void *)call->nonce[CALL_ANSWERER], VERBS_NONCE},
		{&count, sizeof(count)},
		{(void *)word, len},
	};

	return verbs_auth_prove(call->door->config.auth, part, 5, proof);
}

static bool proof_holds(const struct verbs_call *call, enum proof_kind kind,
			const uint8_t *said)
{
	uint8_t want[VERBS_PROOF];

	return proof_make(call, kind, want) && verbs_auth_equal(want, said);
}

static void wrong_key(struct verbs_call *call)
{
	door_log(call, "it has another key: FI_WEFT_AUTH_KEY must be the same on all "
		       "hosts");
	call_refuse(call, VERBS_END_KEY, -FI_EACCES);
}

static void out_of_turn(struct verbs_call *call)
{
	door_log(call, "it spoke out of turn");
	call_refuse(call, VERBS_END_CANT, -FI_ECONNRESET);
}

/* A frame's body, and proof of the key behind it where there is one. */
static void say(struct verbs_call *call, enum verbs_frame_kind kind,
		enum proof_kind proof_kind, const uint8_t *bytes, size_t len)
{
	struct verbs_frame frame = {.kind = kind};
	uint8_t body[VERBS_FRAME_BODY];

	if (kind == VERBS_FRAME_OPEN || kind == VERBS_FRAME_HELLO)
		frame.context = call->talk->context;
	if (len)
		memcpy(body, bytes, len);
	if (call->door->config.auth && kind != VERBS_FRAME_OPEN) {
		if (!proof_make(call, proof_kind, body + len)) {
			door_log(call, "libcrypto made no HMAC");
			call_refuse(call, VERBS_END_LATER, -FI_EACCES);
			return;
		}
		len += VERBS_PROOF;
	}
	call_send(call, &frame, body, len);
}

/* ---- the dialler --------------------------------------------------------------------
 */

static void say_hello(struct verbs_call *call)
{
	struct call_talk *t = call->talk;

	call_state_set(call, CALL_GREETED);
	say(call, VERBS_FRAME_HELLO, PROOF_HELLO, t->bytes[CALL_DIALLER],
	    t->len[CALL_DIALLER]);
}

void call_begin(struct verbs_call *call)
{
	if (!call->door->config.auth) {
		say_hello(call);
		return;
	}
	if (!verbs_auth_nonce(call->nonce[CALL_DIALLER])) {
		call_over(call, -FI_ECONNREFUSED);
		return;
	}
	call_state_set(call, CALL_OPENED);
	say(call, VERBS_FRAME_OPEN, PROOF_CHALLENGE, call->nonce[CALL_DIALLER],
	    VERBS_NONCE);
}

static void take_challenge(struct verbs_call *call, const uint8_t *body, size_t len)
{
	(void)len;
	memcpy(call->nonce[CALL_ANSWERER], body, VERBS_NONCE);
	if (!proof_holds(call, PROOF_CHALLENGE, body + VERBS_NONCE))
		wrong_key(call);
	else
		say_hello(call);
}

/* The peer's card of `len` bytes, proof included. False: the call is over. */
static bool card_take(struct verbs_call *call, unsigned side, enum proof_kind proof,
		      const uint8_t *body, size_t len)
{
	struct call_talk *t = call->talk;
	size_t proof_len = call->door->config.auth ? VERBS_PROOF : 0;
	const char *why;

	if (len <= proof_len || len - proof_len > VERBS_CARD_MAX) {
		door_log(call, "its card is too short or too long");
		call_refuse(call, VERBS_END_CANT, -FI_EHOSTUNREACH);
		return false;
	}
	len -= proof_len;
	memcpy(t->bytes[side], body, len);
	t->len[side] = (uint16_t)len;
	if (proof_len && !proof_holds(call, proof, body + len)) {
		wrong_key(call);
		return false;
	}
	why = verbs_card_read(t->bytes[side], len, &t->card[side]);
	if (why) {
		door_log(call, "its card is not good: %s", why);
		call_refuse(call, VERBS_END_CANT, -FI_EHOSTUNREACH);
	}
	return !why;
}

static void take_answer(struct verbs_call *call, const uint8_t *body, size_t len)
{
	struct call_talk *t = call->talk;
	struct verbs_terms terms;
	const char *why;

	if (!card_take(call, CALL_ANSWERER, PROOF_ANSWER, body, len))
		return;
	why = verbs_card_agree(&t->card[CALL_DIALLER], &t->card[CALL_ANSWERER], &terms);
	if (why) {
		door_log(call, "its card and ours don't fit: %s", why);
		call_refuse(call, VERBS_END_CANT, -FI_EHOSTUNREACH);
		return;
	}
	call_state_set(call, CALL_ANSWERED);
	door_event(call, VERBS_CALL_ANSWER, &t->card[CALL_ANSWERER], &terms);
}

void verbs_call_ready(struct verbs_call *call)
{
	if (call->state != CALL_ANSWERED)
		return;
	say(call, VERBS_FRAME_READY, PROOF_READY, NULL, 0);
	if (call->state == CALL_OVER)
		return;
	call_state_set(call, CALL_UP);
	if (!call->door->turning)
		call_talk_end(call);
}

/* ---- the answerer -------------------------------------------------------------------
 */

static void take_open(struct verbs_call *call, const uint8_t *body, size_t len)
{
	(void)len;
	if (!call->door->config.auth) {
		door_log(call, "it has a key, and there is none here: FI_WEFT_AUTH_KEY "
			       "must be the same on all hosts");
		call_refuse(call, VERBS_END_KEY, -FI_EACCES);
		return;
	}
	memcpy(call->nonce[CALL_DIALLER], body, VERBS_NONCE);
	if (!verbs_auth_nonce(call->nonce[CALL_ANSWERER])) {
		call_refuse(call, VERBS_END_LATER, -FI_ECONNREFUSED);
		return;
	}
	call_state_set(call, CALL_CHALLENGED);
	say(call, VERBS_FRAME_CHALLENGE, PROOF_CHALLENGE, call->nonce[CALL_ANSWERER],
	    VERBS_NONCE);
}

static void take_hello(struct verbs_call *call, const uint8_t *body, size_t len)
{
	if (call->door->config.auth && call->state == CALL_STRANGER) {
		door_log(call, "it has no key: FI_WEFT_AUTH_KEY must be the same on all "
			       "hosts");
		call_refuse(call, VERBS_END_KEY, -FI_EACCES);
		return;
	}
	if (!card_take(call, CALL_DIALLER, PROOF_HELLO, body, len))
		return;
	call_state_set(call, CALL_KNOCKED);
	call->known = true;
	door_event(call, VERBS_CALL_HELLO, &call->talk->card[CALL_DIALLER], NULL);
}

int verbs_call_answer(struct verbs_call *call, const struct verbs_card *card, void *arg,
		      struct verbs_terms *terms)
{
	struct call_talk *t = call->talk;
	size_t len;

	if (call->state != CALL_KNOCKED)
		return -FI_ECONNRESET;
	len = verbs_card_write(card, t->bytes[CALL_ANSWERER]);
	if (!len)
		return -FI_EINVAL;
	if (verbs_card_agree(&t->card[CALL_DIALLER], card, terms))
		return -FI_EHOSTUNREACH;
	t->len[CALL_ANSWERER] = (uint16_t)len;
	call->arg = arg;
	call_state_set(call, CALL_AWAITED);
	say(call, VERBS_FRAME_ANSWER, PROOF_ANSWER, t->bytes[CALL_ANSWERER], len);
	return call->state == CALL_OVER ? -FI_ECONNRESET : 0;
}

static void take_ready(struct verbs_call *call, const uint8_t *body, size_t len)
{
	size_t proof_len = call->door->config.auth ? VERBS_PROOF : 0;

	if (len != proof_len) {
		out_of_turn(call);
		return;
	}
	if (proof_len && !proof_holds(call, PROOF_READY, body)) {
		wrong_key(call);
		return;
	}
	call_state_set(call, CALL_UP);
	door_event(call, VERBS_CALL_READY, NULL, NULL);
}

/* ---- both ---------------------------------------------------------------------------
 */

int verbs_call_say(struct verbs_call *call, const void *word, size_t len)
{
	struct verbs_frame frame = {.kind = VERBS_FRAME_WORD};
	uint8_t body[VERBS_WORD_MAX + VERBS_PROOF];
	bool made = true;

	if (call->state != CALL_UP)
		return -FI_EAGAIN;
	if (len == 0 || len > VERBS_WORD_MAX)
		return -FI_EINVAL;
	if (!call_talk_begin(call))
		return -FI_ENOMEM;
	memcpy(body, word, len);
	if (call->door->config.auth) {
		made = word_proof(call, call->dialler, call->said++, body, len,
				  body + len);
		len += VERBS_PROOF;
	}
	if (made)
		call_send(call, &frame, body, len);
	else
		call_over(call, -FI_ECONNRESET);
	if (!call->door->turning)
		call_talk_end(call);
	return call->state == CALL_OVER ? -FI_ECONNRESET : 0;
}

static void take_word(struct verbs_call *call, const uint8_t *body, size_t len)
{
	size_t proof_len = call->door->config.auth ? VERBS_PROOF : 0;
	uint8_t want[VERBS_PROOF];

	if (len <= proof_len || len - proof_len > VERBS_WORD_MAX) {
		out_of_turn(call);
		return;
	}
	len -= proof_len;
	if (proof_len &&
	    (!word_proof(call, !call->dialler, call->heard++, body, len, want) ||
	     !verbs_auth_equal(want, body + len))) {
		wrong_key(call);
		return;
	}
	door_word(call, body, len);
}

struct turn_row {
	enum call_state state;
	enum verbs_frame_kind kind;
	void (*take)(struct verbs_call *call, const uint8_t *body, size_t len);
};

static const struct turn_row turn_table[] = {
	{CALL_OPENED, VERBS_FRAME_CHALLENGE, take_challenge},
	{CALL_GREETED, VERBS_FRAME_ANSWER, take_answer},
	{CALL_STRANGER, VERBS_FRAME_OPEN, take_open},
	{CALL_STRANGER, VERBS_FRAME_HELLO, take_hello},
	{CALL_CHALLENGED, VERBS_FRAME_HELLO, take_hello},
	{CALL_AWAITED, VERBS_FRAME_READY, take_ready},
	{CALL_UP, VERBS_FRAME_WORD, take_word},
};

static const char *const end_text[VERBS_ENDS] = {
	[VERBS_END_CLOSED] = "it closed its endpoint",
	[VERBS_END_LATER] = "it takes no more links now",
	[VERBS_END_KEY] = "it doesn't let us in: FI_WEFT_AUTH_KEY must be the same on "
			  "all hosts",
	[VERBS_END_CANT] = "it says that its card and ours don't fit: its log says why",
	[VERBS_END_VERSION] = "its version of Weft is another one",
};

int call_end_error(enum verbs_end end)
{
	static const int error[VERBS_ENDS] = {
		[VERBS_END_CLOSED] = -FI_ESHUTDOWN,
		[VERBS_END_LATER] = -FI_ECONNREFUSED,
		[VERBS_END_KEY] = -FI_EACCES,
		[VERBS_END_CANT] = -FI_EHOSTUNREACH,
		[VERBS_END_VERSION] = -FI_EHOSTUNREACH,
	};

	return error[end];
}

void call_frame(struct verbs_call *call, const struct verbs_frame *frame,
		const uint8_t *body)
{
	if (frame->kind == VERBS_FRAME_END) {
		if (frame->end != VERBS_END_CLOSED && frame->end != VERBS_END_LATER)
			door_log(call, "%s", end_text[frame->end]);
		call_over(call, call_end_error(frame->end));
		return;
	}
	for (size_t i = 0; i < sizeof(turn_table) / sizeof(turn_table[0]); i++) {
		const struct turn_row *row = &turn_table[i];

		if (row->state != call->state || row->kind != frame->kind)
			continue;
		/* Once for all: what is proved, and to whom it is said. */
		if (call->state == CALL_STRANGER)
			call->talk->context = frame->context;
		row->take(call, body, frame->len);
		return;
	}
	out_of_turn(call);
}
