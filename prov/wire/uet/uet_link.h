/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link: one delivery context, in which each end numbers its messages. Packets of the
 * layers above are messages to resource index 1; they arrive in any order and are handed
 * up in the order of their numbers (rule E5), each when all its bytes are there (H3).
 *
 * The link ends when its context does, so that nothing is ever sent again on another
 * (rule H1).
 */
#ifndef WEFT_WIRE_UET_UET_LINK_H
#define WEFT_WIRE_UET_UET_LINK_H

#include "prov/wire/uet/uet_ep.h"
#include "prov/wire/uet/uet_hello.h"
#include "prov/wire/uet/uet_pds.h"
#include "prov/wire/wire.h"
#include "util/list.h"

/* Longest packet of the layers above: one of the transport's where the way is wide. */
#define UET_PACKET 8192u
/* Messages in each direction that the receiver hasn't handed up; data leaves the rest to
 * control (rule B3). None is sent that might find no place: one that was refused would
 * hold up puts and gets, which need no call of the receiver (rule D6). */
#define UET_MSGS      64u
#define UET_MSGS_DATA 48u
/* So many were handed up: their sender hears of it, if not by what is sent to it. */
#define UET_MSGS_TELL (UET_MSGS / 4)
/* Puts and gets under way; packets that are asked for at once. More answers to them,
 * since the next packet is asked for before its sender hears that the last one has
 * arrived. */
#define UET_OPS	    64u
#define UET_ASKED   64u
#define UET_ANSWERS 128u
/* Reads of lent memory: an initiator begins another when it has all of one, which may be
 * before we hear that it has. */
#define UET_GIVES (2 * UET_OPS)
/* Places of the context that puts, gets and their answers leave to packets (rule B3). */
#define UET_PLACES_KEPT 16u

/* Resource indices. */
enum uet_index { UET_INDEX_LINK, UET_INDEX_PACKETS, UET_INDEX_MEMORY, UET_INDEX_LENT };

struct uet_msg_out {
	bool cut; /* all of it was given to the context */
	uint32_t len;
	uint32_t left; /* packets that the peer may not have */
	uint8_t *bytes;
};

struct uet_msg_in {
	uint32_t len; /* 0: nothing of it arrived */
	uint32_t got;
	uint8_t *bytes;
};

/* A put or a get of ours. */
struct uet_move {
	bool used;
	bool get;
	bool over; /* to be reported */
	int err;
	uint16_t turn; /* how often it was used: part of its message id */
	uint32_t left; /* packets that the peer may not have */
	uint32_t part; /* of one packet, where our memory isn't in pieces */
	uint32_t local_count;
	struct iovec local[4];
	struct wire_remote remote;
	size_t len;
	size_t cut;	/* bytes that were given to the context, or asked for */
	size_t came;	/* get: bytes that arrived */
	uint32_t asked; /* get: packets whose bytes haven't */
	void *user;
	struct list node; /* of the link's asking or pending */
};

/* What a get of the peer asked for. */
struct uet_answer {
	bool used;
	uint8_t *bytes;
};

/* A read of lent memory by the peer. */
struct uet_give {
	bool used;
	bool broken;   /* it was taken back before all was cut */
	uint16_t read; /* the peer's message id */
	uint32_t len;
	uint32_t part; /* of one packet */
	uint32_t cut;
	uint32_t left; /* packets that the peer may not have */
	uint64_t name;
	const uint8_t *from;
	struct list node; /* of the link's giving, until all is cut */
};

enum uet_link_state {
	UET_LINK_DIALLED,  /* waits for an answer */
	UET_LINK_ANSWERED, /* waits until the dialler is ready */
	UET_LINK_UP,
	UET_LINK_OVER /* nothing is sent any more; to be reported, then freed */
};

struct wire_link {
	struct wire_link_base base;
	struct list node;    /* of the endpoint's links, or of the dead */
	struct list news;    /* of the endpoint's news; empty: none */
	struct list pump;    /* of those with something to cut */
	struct uet_pdc *pdc; /* NULL: over */
	uint8_t state;
	bool tell_up;
	bool tell_down;
	bool gone;	/* nobody above knows it any more */
	bool abort;	/* the context is to be ended, outside of its events */
	bool wanted;	/* dialled by us */
	bool inside;	/* what comes from the peer stayed within this host */
	bool says_bare; /* the peer: it takes what has no checksum */
	bool bare;	/* so does what is sent: it needs no checksum */
	int err;	/* why it is over */
	uint32_t part;
	uint32_t sent;	 /* datagrams, as long as it matters how many */
	uint32_t events; /* MEM_EVENTS_* of the peer */
	/* Numbers of messages: out.tail <= out.next <= out.head. */
	uint64_t head, next, tail;
	uint64_t taken;	   /* of them: handed up by the peer, as far as it said */
	uint32_t at;	   /* of `next`: bytes that were cut */
	uint64_t in, told; /* messages that were handed up; of them: the peer knows of */
	struct uet_hello_bytes ping; /* the same for all that are sent */
	/* The peer's other addresses; NULL: it is reached by one way. */
	uint32_t rails;
	struct wire_addr rail[UET_HELLO_RAILS];
	struct uet_ways *ways;
	struct uet_msg_out out_msg[UET_MSGS];
	struct uet_msg_in in_msg[UET_MSGS];
	/* Memory of messages that are over: what was used last is used next. */
	uint8_t *spare[2 * UET_MSGS];
	uint32_t spares;
	struct uet_move op[UET_OPS];
	struct uet_answer answer[UET_ANSWERS];
	struct list asking;  /* gets that are not all asked for */
	struct list pending; /* puts that are not all cut */
	struct uet_give give[UET_GIVES];
	struct list giving;
	bool gives_first; /* puts and gives take turns when there is little room */
	uint32_t over;	  /* ops to be reported */
	uint32_t answers; /* that are used */
	uint32_t asked;	  /* of all gets: at most UET_ASKED */
};

/* NULL: no memory. Listed with the endpoint. */
struct wire_link *uet_link_new(struct wire_ep *ep, const struct wire_addr *peer);
void uet_link_free(struct wire_link *link);

/* Says something to the other end; 0 or the context's error. */
int uet_link_say(struct wire_link *link, uint8_t kind, uint16_t err, uint64_t now);
/* That we are there, and how many of its messages were handed up. */
int uet_link_ping(struct wire_link *link, uint64_t now);
/* Cuts what is queued into the context. */
void uet_link_pump(struct wire_link *link, uint64_t now);
/* It is over, for that reason; told by uet_link_tell. */
void uet_link_over(struct wire_link *link, int err);
/* Its host says that nobody listens there. */
void uet_link_refused(struct wire_link *link);
/* Upcalls that are due, at most about `budget` packets. Returns how many. */
int uet_link_tell(struct wire_link *link, int budget);
/* Something is to be told, or cut. */
void uet_link_has_news(struct wire_link *link);
void uet_link_has_work(struct wire_link *link);
/* The same, and it leaves in this call, unless it is one of progress, which ends so. */
void uet_link_work(struct wire_link *link);
/* Bytes of each packet of so many, all about alike: a last one that is much shorter would
 * cost as much as one that isn't. */
uint32_t uet_link_part(const struct wire_link *link, size_t len);
/* Everything that was committed is with the peer. */
bool uet_link_quiet(const struct wire_link *link);

/* Events of the delivery machine. */
extern const struct uet_pds_events uet_link_events;

/* The wire's table. */
int uet_dial(struct wire_ep *ep, const struct wire_addr *to, void *peer_ctx,
	     struct wire_link **link);
void uet_hangup(struct wire_link *link);
void *uet_pkt_reserve(struct wire_link *link, size_t len, enum wire_class cls);
void uet_pkt_commit(struct wire_link *link, void *pkt, size_t len);
uint32_t uet_events(struct wire_link *link);

#endif
