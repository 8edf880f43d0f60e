/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data lanes of a link: a queue pair each, that prov/dqplb says what to post on. The
 * dialler of the link opens them, the first with the cards, others and new ones by
 * messages on the control channel (rule C7):
 *
 *	CLOSED -> OPENING -> UP -> DRAINING -> CLOSED
 *
 * and both ends end them (rules C1, C2): to the error state, polled until everything was
 * answered for, reported (rule C3), closed. Endpoint lock, unless said otherwise.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_LANE_H
#define WEFT_WIRE_VERBS_VERBS_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/dqplb/rq.h"
#include "prov/wire/verbs/verbs_msg.h"
#include "prov/wire/verbs/verbs_qp.h"

struct verbs_card_qp;

enum verbs_lane_state {
	VERBS_LANE_CLOSED,
	VERBS_LANE_OPENING, /* dialler: its queue pair can receive; answerer: both can,
			     * and it waits for the dialler's word */
	VERBS_LANE_UP,
	VERBS_LANE_DRAINING,
	VERBS_LANE_STATES
};

struct verbs_lane {
	struct verbs_qp *qp;
	enum verbs_lane_state state;
	uint32_t incarnation; /* of qp, or of the last one */
	uint8_t rail;	      /* ours */
	uint8_t peer_rail;    /* of the peer's card */
	bool never;	      /* the rails of the two ends don't meet here */
	bool receiving;	      /* dqplb's receiver has it open */
	uint8_t owe;	      /* bits of enum verbs_msg_op to be said */
	uint32_t refused;     /* answerer: incarnation that it could not open */
	uint32_t faults;      /* in a row */
	uint8_t behind;	      /* reads under way that were posted with what they follow */
	uint64_t due;	      /* CLOSED: opened again then; DRAINING: given up then */
	struct dqplb_rq rq;
	/* Of queue pairs that it had: */
	uint64_t requests;
	uint64_t bytes;
	uint64_t retired; /* how many of them a path's error ended */
};

const char *verbs_lane_state_name(enum verbs_lane_state state);

struct verbs_lane_stats {
	uint64_t retired; /* lanes that a path's error ended */
	uint64_t rebuilt; /* that an operation's own fault ended */
	uint64_t opened;
	uint64_t stopped; /* by the peer's door, before they were reported */
	uint64_t silent;  /* queue pairs, of control too, that answered nothing */
};

/* A queue pair in INIT with its receives, as incarnation `incarnation`. Mutex. */
int verbs_lane_prepare(struct verbs_link *link, uint32_t lane, uint32_t rail,
		       uint32_t incarnation);
/* Connects it to the peer's queue pair. Mutex, or endpoint lock. */
int verbs_lane_connect(struct verbs_link *link, uint32_t lane, uint32_t peer_rail,
		       uint32_t qpn, uint32_t psn);
/* What is posted on it may be received, and counts from now on. */
int verbs_lane_listen(struct verbs_link *link, uint32_t lane);
/* May be sent on from now on. */
void verbs_lane_up(struct verbs_link *link, uint32_t lane);
/* Something is wrong with it, or (DONE) it isn't needed any more: ends it. The peer is
 * told that doesn't know. */
enum verbs_lane_why {
	VERBS_LANE_PATH,
	VERBS_LANE_FAULT,
	VERBS_LANE_TOLD,
	VERBS_LANE_DONE
};
void verbs_lane_down(struct verbs_link *link, uint32_t lane, enum verbs_lane_why why);
/* After completions of a lane that ends: whether that was the last. */
void verbs_lane_settle(struct verbs_link *link, uint32_t lane);
/* Ends it at once, without a word: the link is over. Mutex. */
void verbs_lane_cut(struct verbs_link *link, uint32_t lane);

/* A queue pair in INIT, without receives, as that lane's next incarnation. Mutex. */
int verbs_lane_make(struct verbs_link *link, uint32_t lane,
		    const struct verbs_qp_attr *attr);
/* One that is DRAINING: closes it when it is time. Returns when that is; UINT64_MAX: it
 * was closed. */
uint64_t verbs_lane_drain(struct verbs_link *link, uint32_t lane, uint64_t now);
/* A request of the wire's own, which dqplb knows nothing of. False: not on this lane. */
bool verbs_lane_post_own(struct verbs_link *link, uint32_t lane, struct ibv_send_wr *wr,
			 uint64_t cookie);
/* Cookies from here on are of such requests. */
#define VERBS_LANE_OWN (UINT64_MAX - 4)

/* The same without the endpoint's lock: the link never was up. Mutex. */
void verbs_lane_leave(struct verbs_link *link, uint32_t lane);
/* And the peer is told so when it is. */
void verbs_lane_refuse(struct verbs_link *link, uint32_t lane);

/* More than the first lanes are wanted: a large transfer. */
void verbs_lanes_want(struct verbs_link *link);
/* Says what is owed, opens what is due. Returns when the next is due (UINT64_MAX: none
 * is). */
uint64_t verbs_lanes_run(struct verbs_link *link, uint64_t now);
/* Something that is to be said found no room. */
bool verbs_lanes_owe(const struct verbs_link *link);
/* A rail of the peer's went or came back, with what its card says now. 0 or -EPROTO. */
int verbs_lanes_peer_rail(struct verbs_link *link, const struct verbs_msg *m);
/* A message about lanes. 0 or -EPROTO. */
int verbs_lanes_msg(struct verbs_link *link, const void *bytes, size_t len);
/* Lanes that the peer's report ended. */
void verbs_lanes_reported(struct verbs_link *link);
/* Lanes of a rail of ours or (peer) of the peer's. */
void verbs_lanes_rail_down(struct verbs_link *link, uint32_t rail, bool peer);
/* It came back: lanes of it may be opened at once. */
void verbs_lanes_rail_up(struct verbs_link *link, uint32_t rail, bool peer);

/* Posts what the transmitter says: segments and, as far as there is room, messages. */
void verbs_lanes_post(struct verbs_link *link);
void verbs_lane_received(struct verbs_link *link, struct verbs_qp *qp,
			 const struct ibv_wc *wc);
/* The same while the link isn't up: nothing but receives of a queue pair that ended. */
void verbs_lane_early(struct verbs_qp *qp, const struct ibv_wc *wc);
void verbs_lane_sent(struct verbs_link *link, struct verbs_qp *qp,
		     const struct ibv_wc *wc);

#endif
