/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection at a door, as the door's own files see it (others: verbs_door.h): its
 * states, its bytes, the exchange.
 *
 *	dialler   CONNECTING -> [OPENED] -> GREETED -> ANSWERED -> UP
 *	answerer  STRANGER -> [CHALLENGED] -> KNOCKED -> AWAITED -> UP
 *
 * and from each of them to OVER; from UP also by LEAVING: its end was said, and what the
 * other side says until it heard that is read and not heeded, for what nobody reads would
 * make the end a reset, which overtakes what was said. States in brackets are those of a
 * door with a key.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_CALL_H
#define WEFT_WIRE_VERBS_VERBS_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/mem/fork.h"
#include "prov/wire/verbs/verbs_auth.h"
#include "prov/wire/verbs/verbs_door.h"
#include "prov/wire/verbs/verbs_frame.h"
#include "prov/wire/verbs/verbs_listen.h"
#include "util/list.h"

enum call_state {
	CALL_CONNECTING, /* dialler: the connection is not there yet */
	CALL_OPENED,	 /* a nonce was sent, the challenge is awaited */
	CALL_GREETED,	 /* the card was sent, the answer is awaited */
	CALL_ANSWERED,	 /* the wire brings its queue pairs up */
	CALL_STRANGER,	 /* answerer: nothing was said yet */
	CALL_CHALLENGED, /* the card is awaited */
	CALL_KNOCKED,	 /* the wire makes queue pairs */
	CALL_AWAITED,	 /* the dialler's queue pairs are awaited */
	CALL_UP,
	CALL_LEAVING,
	CALL_OVER,
	CALL_STATES
};

#define CALL_DIALLER  0
#define CALL_ANSWERER 1

/* Of an exchange, or while a word comes or goes: given back when the call is up. */
struct call_talk {
	uint8_t bytes[2][VERBS_CARD_MAX]; /* of the cards */
	uint16_t len[2];
	struct verbs_card card[2];
	uint16_t context; /* of the endpoint that the dialler means */
	uint8_t in[VERBS_FRAME_BODY];
	uint8_t out[2 * (VERBS_FRAME_HEAD + VERBS_FRAME_BODY)];
	uint16_t out_at; /* sent */
	uint16_t out_len;
};

struct verbs_call {
	struct verbs_door *door;
	int sock; /* -1 when OVER */
	enum call_state state;
	bool dialler;
	bool known;   /* the wire knows of it: it hears of its end */
	bool writing; /* there was no room for all of `out` */
	int err;      /* of OVER: what DOWN says */
	uint64_t since;
	uint64_t due; /* of the exchange */
	void *arg;
	struct wire_addr peer; /* whom was dialled, or where it came from */
	uint8_t head[VERBS_FRAME_HEAD];
	uint8_t nonce[2][VERBS_NONCE]; /* with a key; so the next two: */
	uint32_t said;		       /* words, by this end */
	uint32_t heard;		       /* by the other */
	uint16_t in_at;		       /* bytes of head and body that are there */
	struct call_talk *talk;
	struct list node; /* on the door's list that its state is for */
};

struct verbs_door {
	int epoll_fd;
	struct verbs_listener *listener;
	struct verbs_inbox inbox;
	struct verbs_door_config config;
	struct wire_addr addr;
	struct list strangers; /* STRANGER, CHALLENGED: oldest first */
	struct list talking;   /* all others on their way: likewise */
	struct list up;
	struct list over; /* to be reported and freed */
	uint32_t stranger_count;
	uint64_t accept_at; /* monotonic ns; 0: the listener is watched */
	uint64_t now;	    /* when this turn began */
	uint64_t logged;    /* when a refusal was logged last */
	uint32_t events;    /* of this turn */
	bool turning;
	struct mem_fork fork;
};

/* ---- verbs_call.c ---- */

/* The socket is the call's, also on failure: NULL, no memory. */
struct verbs_call *call_make(struct verbs_door *door, int sock, bool dialler,
			     const struct wire_addr *peer);
/* What was read of it by another door. */
void call_give_head(struct verbs_call *call, const uint8_t head[VERBS_FRAME_HEAD]);
/* What epoll said of it. */
void call_turn(struct verbs_call *call, uint32_t events);
/* Closes the connection; DOWN follows at the end of the turn where the wire knows of it.
 */
void call_over(struct verbs_call *call, int err);
/* Says why first, as far as there is room. */
void call_refuse(struct verbs_call *call, enum verbs_end end, int err);
void call_say_end(struct verbs_call *call, enum verbs_end end);
/* The end of one that is up: from then on it is the door's alone, until `due` at most. */
void call_leave(struct verbs_call *call, enum verbs_end end, uint64_t due);
void call_free(struct verbs_call *call);
/* What is needed to say or hear something; false: there is no memory. */
bool call_talk_begin(struct verbs_call *call);
/* Gives that back, if the call is up, all was sent and nothing came in part. */
void call_talk_end(struct verbs_call *call);

/* ---- verbs_exchange.c ---- */

/* A frame came, all of it. */
void call_frame(struct verbs_call *call, const struct verbs_frame *frame,
		const uint8_t *body);
/* The connection is there: the dialler's first frame. */
void call_begin(struct verbs_call *call);

/* ---- used by those ---- */

/* The only writer of call->state. */
void call_state_set(struct verbs_call *call, enum call_state to);
/* Puts a frame into `out` and sends what there is room for. */
void call_send(struct verbs_call *call, struct verbs_frame *frame, const void *body,
	       size_t len);
void door_event(struct verbs_call *call, enum verbs_door_event_kind kind,
		const struct verbs_card *card, const struct verbs_terms *terms);
void door_word(struct verbs_call *call, const uint8_t *word, size_t len);
/* Makes the door's descriptor readable. */
void door_kick(struct verbs_door *door);
/* One line a second at most. */
__attribute__((format(printf, 2, 3))) void door_log(const struct verbs_call *call,
						    const char *fmt, ...);
/* What the end means to who hears of it. */
int call_end_error(enum verbs_end end);

#endif
