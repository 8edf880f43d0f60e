/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door of an endpoint: a TCP port at which cards are exchanged. Nothing here waits,
 * and nothing here is trusted: a stranger costs its own connection and no more.
 *
 *	dialler				answerer
 *	HELLO (card)		->
 *			<-		ANSWER (card)
 *	READY			->	(its queue pairs can receive: rule C7)
 *
 * With a key (FI_WEFT_AUTH_KEY) two messages go before that: OPEN (a nonce) and CHALLENGE
 * (a nonce, and proof of the key), and all others carry proof of it over both nonces and
 * all that was said. So no queue pair is made for who doesn't know the key.
 *
 * The connection stays open as long as the link: its end is the sign that the peer's
 * process is dead, at once even after kill -9, and within 20 seconds where a whole host
 * is gone (keepalive). It carries nothing after READY but words (verbs_call_say), which
 * the helper thread hears while the application makes no call, and GOODBYE. Links whose
 * connection was cut by something between the hosts are dialled again (rule C5).
 *
 * Threads: one caller at a time; the wire holds its mutex (not the endpoint's lock) for
 * every call here but open and close, and events come from inside verbs_door_progress
 *with it held. A helper thread (verbs_helper.h) waits for the descriptor and calls
 *progress, so that doors are answered while the application makes no call (rule D6).
 */
#ifndef WEFT_WIRE_VERBS_VERBS_DOOR_H
#define WEFT_WIRE_VERBS_VERBS_DOOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/verbs/verbs_card.h"

struct verbs_auth;
struct verbs_door;
struct verbs_call; /* one connection */

enum verbs_door_event_kind {
	/* Somebody wants a link: verbs_call_answer or verbs_call_drop, now or by the
	 * exchange's deadline. */
	VERBS_CALL_HELLO,
	/* The answer to a dial: bring the queue pairs up, then verbs_call_ready. */
	VERBS_CALL_ANSWER,
	/* The dialler of a call that was answered: its queue pairs can receive. */
	VERBS_CALL_READY,
	/* The other end of a call that is up said something: verbs_call_say. */
	VERBS_CALL_WORD,
	/* It is over, and the call is gone when the event returns. err as of link_down:
	 * -FI_ECONNREFUSED (nobody there, not now, or no answer in time: try again),
	 * -FI_EHOSTUNREACH (no way to it, another version or wire, cards that don't
	 * fit), -FI_ECONNRESET (it died, or broke a rule), -FI_EACCES (the keys differ,
	 * or only one has one), -FI_ESHUTDOWN (it closed its endpoint). */
	VERBS_CALL_DOWN
};

struct verbs_door_event {
	enum verbs_door_event_kind kind;
	struct verbs_call *call;
	void *arg;		       /* of the call; NULL with HELLO */
	const struct verbs_card *card; /* the peer's, of HELLO and ANSWER; until return */
	const struct verbs_terms *terms; /* of ANSWER */
	int err;			 /* of DOWN */
	const uint8_t *word;		 /* of WORD, until return */
	size_t word_len;
};

struct verbs_door_config {
	struct wire_addr addr;	 /* in: wanted; port 0: any */
	bool any;		 /* answer on every local address */
	struct verbs_auth *auth; /* NULL: no key. The caller's, outlives the door */
	uint64_t timeout_ns;	 /* an exchange is over by then; 0: 10 s */
	uint32_t half_open;	 /* strangers listened to at a time; 0: 64 */
	pthread_mutex_t *mutex;	 /* the wire's, held while the process forks; NULL in
				  * tests that don't */
	void (*event)(void *arg, const struct verbs_door_event *event);
	void *arg;
};

/* -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_EMFILE, -FI_ENOMEM, -FI_EACCES. A door with a
 * context (addr.context) shares the port of the one without in this process. */
int verbs_door_open(const struct verbs_door_config *config, struct verbs_door **door);
/* Says goodbye to all calls and drops them, without events. */
void verbs_door_close(struct verbs_door *door);

/* The address, with the port, and a host where any was asked for. */
const struct wire_addr *verbs_door_addr(const struct verbs_door *door);
/* Readable when verbs_door_progress has something to do. */
int verbs_door_fd(const struct verbs_door *door);
/* Monotonic ns when progress must be called although the descriptor isn't readable;
 * UINT64_MAX: never. Calls that make it sooner make the descriptor readable. */
uint64_t verbs_door_due(const struct verbs_door *door);
/* Moves what is there; returns how many events there were. In an event every call of this
 * header but open, close and progress is allowed. */
int verbs_door_progress(struct verbs_door *door, uint64_t now_ns);

/* Starts to connect. The call is valid until DOWN or verbs_call_drop. -FI_ECONNREFUSED,
 * -FI_EHOSTUNREACH, -FI_EMFILE, -FI_ENOMEM at once, else by the event. */
int verbs_door_dial(struct verbs_door *door, const struct wire_addr *to,
		    const struct verbs_card *card, void *arg, struct verbs_call **call);

/* After HELLO: the queue pairs of `card` can receive. *terms is what both derived.
 * -FI_EHOSTUNREACH: the cards don't fit (the call is still to be dropped);
 * -FI_ECONNRESET: it is dead, DOWN follows. */
int verbs_call_answer(struct verbs_call *call, const struct verbs_card *card, void *arg,
		      struct verbs_terms *terms);
/* After ANSWER: this side's queue pairs can receive and send. */
void verbs_call_ready(struct verbs_call *call);
/* A word of up to VERBS_WORD_MAX bytes to the other end of a call that is up; one whose
 * other end takes none is over. -FI_EAGAIN: it isn't up yet; -FI_ENOMEM; -FI_ECONNRESET:
 * it is over, DOWN follows. */
int verbs_call_say(struct verbs_call *call, const void *word, size_t len);
/* Ends a call in any state, without an event; tells the peer why: 0 or -FI_ESHUTDOWN
 * (goodbye), -FI_EACCES, -FI_EHOSTUNREACH, -FI_ECONNREFUSED (not now, try again); not
 * a word with -FI_ECONNRESET: it broke. */
void verbs_call_drop(struct verbs_call *call, int err);
void verbs_call_set_arg(struct verbs_call *call, void *arg);

#endif
