/* SPDX-License-Identifier: BSD-2-Clause */
/* Doors for tests: a side is a door that answers, holds or refuses, and counts. */
#ifndef WEFT_WIRE_VERBS_TESTS_DOOR_RIG_H
#define WEFT_WIRE_VERBS_TESTS_DOOR_RIG_H

#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "prov/wire/verbs/tests/card_make.h"
#include "prov/wire/verbs/verbs_auth.h"
#include "prov/wire/verbs/verbs_door.h"
#include "prov/wire/verbs/verbs_frame.h"
#include "util/tap.h"

#define RIG_PATIENCE_MS 30000 /* for what must happen */

/* What a side does with who knocks. */
enum side_manner { SIDE_ANSWERS, SIDE_HOLDS, SIDE_REFUSES };

struct side {
	struct verbs_door *door;
	struct verbs_auth *auth; /* its own */
	const char *host;
	enum side_manner manner;
	int refusal;
	bool slow; /* doesn't say ready by itself */
	/* What happened. */
	unsigned hellos, answers, readies, downs, words;
	uint8_t word[VERBS_WORD_MAX]; /* newest */
	size_t word_len;
	int last_err;
	struct verbs_call *last;
	struct verbs_card heard;
	struct verbs_terms terms;
	void *last_arg;
};

static inline uint64_t rig_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void side_hello(struct side *s, const struct verbs_door_event *ev)
{
	struct verbs_card card;

	s->hellos++;
	s->heard = *ev->card;
	s->last = ev->call;
	if (s->manner == SIDE_REFUSES)
		verbs_call_drop(ev->call, s->refusal);
	if (s->manner != SIDE_ANSWERS)
		return;
	card_make(&card, s->host, ev->card->session);
	card.door = *verbs_door_addr(s->door);
	card.round = ev->card->round;
	if (verbs_call_answer(ev->call, &card, s, &s->terms))
		tap_diag("%s could not answer", s->host);
}

static inline void side_event(void *arg, const struct verbs_door_event *ev)
{
	struct side *s = arg;

	switch (ev->kind) {
	case VERBS_CALL_HELLO:
		side_hello(s, ev);
		break;
	case VERBS_CALL_ANSWER:
		s->answers++;
		s->heard = *ev->card;
		s->terms = *ev->terms;
		s->last_arg = ev->arg;
		if (!s->slow)
			verbs_call_ready(ev->call);
		break;
	case VERBS_CALL_READY:
		s->readies++;
		break;
	case VERBS_CALL_WORD:
		s->words++;
		s->word_len = ev->word_len;
		memcpy(s->word, ev->word, ev->word_len);
		s->last = ev->call;
		break;
	case VERBS_CALL_DOWN:
		s->downs++;
		s->last_err = ev->err;
		s->last_arg = ev->arg;
		break;
	}
}

static inline void rig_addr(struct wire_addr *a, uint32_t host, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	a->in.sin_family = AF_INET;
	a->in.sin_addr.s_addr = htonl(host);
	a->in.sin_port = htons(port);
}

/* A door at 127.0.0.1 with what `config` says more. */
static inline int side_open_with(struct side *s, const char *host,
				 struct verbs_door_config config)
{
	memset(s, 0, sizeof(*s));
	s->host = host;
	s->auth = config.auth;
	config.event = side_event;
	config.arg = s;
	if (!config.addr.sa.sa_family)
		rig_addr(&config.addr, INADDR_LOOPBACK, 0);
	return verbs_door_open(&config, &s->door);
}

static inline void side_open(struct side *s, const char *host)
{
	int rc = side_open_with(s, host, (struct verbs_door_config){.timeout_ns = 0});

	if (rc)
		tap_bail("no door at 127.0.0.1: %d", rc);
}

static inline void side_close(struct side *s)
{
	verbs_door_close(s->door);
	verbs_auth_close(s->auth);
	s->door = NULL;
}

static inline int side_dial(struct side *s, const struct wire_addr *to, uint64_t session,
			    void *arg, struct verbs_call **call)
{
	struct verbs_card card;

	card_make(&card, s->host, session);
	card.door = *verbs_door_addr(s->door);
	return verbs_door_dial(s->door, to, &card, arg, call);
}

/* Turns both until the counter has that value; false: it didn't come to that. */
static inline bool rig_until(struct side *a, struct side *b, const unsigned *counter,
			     unsigned want)
{
	uint64_t end = rig_now() + RIG_PATIENCE_MS * UINT64_C(1000000);

	while (*counter < want && rig_now() < end) {
		struct pollfd fds[2] = {{.fd = verbs_door_fd(a->door), .events = POLLIN},
					{.fd = verbs_door_fd(b->door), .events = POLLIN}};

		poll(fds, 2, 2);
		verbs_door_progress(a->door, rig_now());
		if (b != a)
			verbs_door_progress(b->door, rig_now());
	}
	return *counter == want;
}

#endif
