/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: a control channel and lanes to one peer endpoint, from the cards to the end.
 *
 * Endpoint lock, but for the fields marked "mutex" and for links that are not up yet,
 * which the helper thread makes under ep->mutex.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_LINK_H
#define WEFT_WIRE_VERBS_VERBS_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/dqplb/rx.h"
#include "prov/dqplb/tx.h"
#include "prov/wire/verbs/verbs_atomic.h"
#include "prov/wire/verbs/verbs_card.h"
#include "prov/wire/verbs/verbs_chan.h"
#include "prov/wire/verbs/verbs_ep.h"
#include "prov/wire/verbs/verbs_flush.h"
#include "prov/wire/verbs/verbs_lane.h"
#include "prov/wire/verbs/verbs_quick.h"
#include "prov/wire/verbs/verbs_rkey.h"
#include "prov/wire/verbs/verbs_spare.h"
#include "prov/wire/verbs/verbs_watch.h"
#include "prov/wire/wire.h"
#include "util/list.h"

enum verbs_link_state {
	VERBS_LINK_NEW,
	VERBS_LINK_DIALLING, /* hello sent */
	VERBS_LINK_ANSWERED, /* the peer's was answered; up when it is heard */
	VERBS_LINK_UP,
	VERBS_LINK_CLOSING, /* given up from this side; says so, then goes */
	VERBS_LINK_DOWN,    /* over; freed by the next progress */
	VERBS_LINK_STATES
};

/* Something may have moved since dqplb had nothing more to post, or to say: packets alone
 * needn't ask it. */
#define STIRRED_TX 1u
#define STIRRED_RX 2u

struct verbs_link {
	struct wire_link_base base; /* first */
	struct verbs_ep *ep;
	_Atomic(enum verbs_link_state) state;
	bool dialler;
	bool patient;
	union {
		struct {
			/* The end is due: at once, or (patient) when all is polled. */
			bool faulty;
			bool chores; /* lanes want something */
			bool owing;  /* and something is to be said as soon as there is
				      * room */
			uint8_t stirred; /* STIRRED_ */
		};
		uint32_t unrest; /* any of them */
	};
	int fault;
	struct list dirty;
	struct list timed;
	struct list where; /* ep->closing or ep->graves */
	uint64_t due;	   /* when it has to be looked at again */
	struct wire_slot slot;
	struct verbs_quick quick;

	struct verbs_card peer;
	struct verbs_terms terms;
	uint64_t session;
	uint32_t round;

	struct verbs_chan chan;
	struct dqplb_tx *tx;
	struct dqplb_rx *rx;
	uint8_t traffic_class;
	uint32_t lanes;
	uint32_t lanes_wanted;
	uint32_t lanes_said; /* answerer: how many were asked for */
	struct verbs_lane lane[DQPLB_LANES_MAX];
	struct verbs_lane_stats lane_stats;
	uint64_t rail_bytes[DQPLB_RAILS_MAX]; /* by queue pairs that are gone */
	uint32_t odd;			      /* local errors of queue pairs, in a row */
	uint32_t rails_turned;		      /* bits: went or came back, not looked at */
	uint32_t rails_moved; /* bits: likewise, reached by something else now */
	uint32_t peer_down;   /* bits: rails of the peer's that it said are down */
	uint32_t rails_owed;  /* bits: the peer is to be told */
	uint64_t stops;	      /* bits: lanes that the peer is to be asked to stop, */
	uint64_t stops_due;   /* then */
	struct verbs_spare spare;
	struct verbs_rkeys rkeys;
	struct verbs_atomics atomics;
	uint32_t events;	  /* MEM_EVENTS_* that entries of the peer's keys said */
	struct list ops;	  /* under way */
	struct verbs_flush flush; /* puts that are, behind those */
	struct list notices;	  /* in the order of the calls, that have no number yet */
	struct list ops_failed;	  /* over, and not reported */
	struct verbs_watch watch; /* whether it stands still */

	/* The control channel is being made anew (verbs_resume.c). */
	bool resuming;
	uint32_t resumes;
	uint32_t resume_rail; /* that is tried next */
	uint64_t resume_until;
	uint64_t resume_back; /* when it was there again, or there at first */
	uint64_t resume_due;
	uint64_t resume_dialled; /* when that was last tried */
	bool resume_refused;	 /* the peer answers, and can't */

	/* Mutex. */
	struct list member; /* ep->links */
	struct list news;   /* ep->news */
	bool news_up;
	bool news_down;
	int news_err;
	struct verbs_call *call;      /* NULL: there is none (any more) */
	struct verbs_call *next_call; /* of the new channel */
	bool next_answered;	      /* answerer: it has our answer */
	struct verbs_card *next_card; /* what was said in it */
	uint8_t next_news;
	int next_err;
	bool recalled;	  /* dialler: the peer's end of the channel died */
	uint64_t stopped; /* bits: lanes that the peer said it stopped, */
	uint32_t stopped_incarnation[DQPLB_LANES_MAX]; /* these of them */
	uint32_t rails_back; /* bits: rails of ours that the peer is to be told at its
			      * door are back */
	uint32_t peer_back;  /* bits: likewise, of the peer's, */
	struct verbs_msg peer_back_as[VERBS_CARD_RAILS]; /* so */
};

static inline struct verbs_link *verbs_link_of(struct wire_link *link)
{
	return (struct verbs_link *)(void *)link;
}

static inline unsigned verbs_link_side(const struct verbs_link *link)
{
	return link->dialler ? 0 : 1;
}

/* A turn of verbs_link_run would find nothing to do. */
static inline bool verbs_link_is_calm(const struct verbs_link *link)
{
	return !link->unrest && !link->chan.broken &&
	       link->chan.ctl.sent == link->chan.ctl.nxt &&
	       !verbs_ctl_due(&link->chan.ctl) && list_empty(&link->flush.waiting) &&
	       list_empty(&link->flush.behind) && list_empty(&link->ops_failed);
}

/* Every put has a number: both ends are to (FI_WEFT_NUMBERED). */
static inline bool verbs_link_numbers(const struct verbs_link *link)
{
	return link->terms.features & VERBS_CARD_NUMBERED;
}

/* Door events. Mutex. */
void verbs_link_hello(struct verbs_ep *ep, struct verbs_call *call,
		      const struct verbs_card *card);
void verbs_link_event(struct verbs_link *link, const struct verbs_door_event *event);

/* News, endpoint lock: returns how many things happened. */
int verbs_link_news(struct verbs_link *link);
/* The peer was heard: up, if it isn't. True: it was not, and the layer above was told. */
bool verbs_link_heard(struct verbs_link *link);
/* It has something to do once the queues are polled; with its lanes as well. */
void verbs_link_dirty(struct verbs_link *link);
void verbs_link_chore(struct verbs_link *link);
/* Does it; `idle`: nothing more is there just now. Returns how many things happened. */
int verbs_link_run(struct verbs_link *link, bool idle);
/* The peer broke a rule: ends with err at the next run. */
void verbs_link_fault(struct verbs_link *link, int err);
/* It is gone: ends with err once all that came before is polled. */
void verbs_link_end(struct verbs_link *link, int err);
/* Looked at again then. */
void verbs_link_wake(struct verbs_link *link, uint64_t due);
/* A rail of ours went or came back; `moved`: no queue pair of before reaches anything. */
void verbs_link_rail(struct verbs_link *link, uint32_t rail, bool moved);
/* Ends it here and now, and says so. */
void verbs_link_finish(struct verbs_link *link, int err);
void verbs_link_set_state(struct verbs_link *link, enum verbs_link_state to);
/* Frees what is over. Mutex not held. */
void verbs_link_free(struct verbs_link *link);
/* Gives it up from this side, without an upcall: nothing of it touches memory of the
 * application from the return on. Says goodbye; until verbs_link_gone. */
void verbs_link_close(struct verbs_link *link);
/* CLOSING: whether its peer has been told, or it is too late. */
bool verbs_link_gone(struct verbs_link *link, uint64_t now);
/* What it has done; also at its end, in the log. Endpoint lock, mutex. */
void verbs_link_count(const struct verbs_link *link, struct verbs_link_counts *counts);

/* Wire functions. */
int verbs_dial(struct wire_ep *ep, const struct wire_addr *to, void *peer_ctx,
	       struct wire_link **link);
void verbs_hangup(struct wire_link *link);
uint32_t verbs_link_events(struct wire_link *link);

#endif
