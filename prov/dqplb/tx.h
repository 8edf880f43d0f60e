/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transmitter of one link: cuts transfers into segments, spreads them over lanes,
 * numbers those that raise a remote event, and knows what to send again when a lane is
 * lost. Pure: it says what to post and is told what became of it; it makes no system
 * call, reads no clock, and allocates nothing after dqplb_tx_open. One caller at a time.
 *
 * The caller's loop: dqplb_tx_start for each transfer; dqplb_tx_next and post what it
 * says until it says nothing; dqplb_tx_done for each completion of a lane, and
 * dqplb_tx_msg for each message of the peer's receiver, each followed by dqplb_tx_next
 * again; dqplb_tx_take for what is finished.
 *
 * Numbered transfers (A2) raise an event at the target and are finished when the target
 * acknowledged every number (A9) and no lane reads their memory any more. Plain writes
 * and reads are finished when their lanes said so; they prove nothing about each other,
 * and a numbered transfer proves nothing about plain ones before it: who needs that
 * numbers them, or starts the later one when the earlier is finished (E2).
 *
 * Turns: transfers that wait share the lanes in turns of a few segments, so a small one
 * behind a large one waits for a turn, not for the large one (A3). An ordered one gives
 * out its first number when every numbered transfer that was started before it has given
 * out its last; so "every number before mine has arrived", which its receiver waits for,
 * covers them all. Later ones that are not ordered may overtake it.
 *
 * Errors: -EINVAL: the caller's fault, nothing has changed. -EPROTO: the peer broke a
 * rule, the link has to be reset.
 *
 * Units: lengths in bytes, numbers as in imm.h.
 */
#ifndef WEFT_DQPLB_TX_H
#define WEFT_DQPLB_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/dqplb/msg.h"
#include "util/list.h"

struct dqplb_tx;

enum dqplb_kind {
	DQPLB_WRITE,	/* plain write */
	DQPLB_READ,	/* plain read */
	DQPLB_NUMBERED, /* write that raises an event */
	DQPLB_KINDS
};

/*
 * A transfer. The caller owns the memory; from dqplb_tx_start until dqplb_tx_take returns
 * it, or dqplb_tx_close, it belongs to the transmitter.
 */
struct dqplb_xfer {
	/* The caller's, set before dqplb_tx_start. */
	uint8_t kind;  /* enum dqplb_kind */
	bool ordered;  /* NUMBERED: its event comes after those of all before it */
	bool bare;     /* NUMBERED: data and op are 0 and needn't travel */
	uint32_t op;   /* what the event says, with the length */
	uint64_t data; /* likewise */
	uint64_t len;  /* 0 to DQPLB_LEN_MAX */
	int error;     /* when finished: 0, or negative errno as given */

	/* The transmitter's. */
	uint8_t state;
	bool fast;
	uint32_t pieces;    /* segments of it */
	uint32_t next;	    /* first that was not posted yet */
	uint32_t turn;	    /* segments left of its turn */
	uint32_t in_flight; /* posted, and not known to be over */
	uint32_t lost;	    /* to be posted again */
	uint64_t lanes;	  /* bits: a segment was done there; yours to read and to clear */
	uint32_t unacked; /* numbers */
	uint32_t runs;
	struct dqplb_run run[DQPLB_RUNS_MAX]; /* its numbers of the window */
	struct list order;		      /* on tx.started, tx.posted or tx.plains */
	struct list where;		      /* on the queue that its state stands for */
};

enum dqplb_post_kind {
	DQPLB_POST_WRITE,
	DQPLB_POST_READ,
	DQPLB_POST_WRITE_IMM,
	DQPLB_POST_MSG, /* a control message: the one that dqplb_tx_next filled */
	DQPLB_POST_KINDS
};

/* What to do next. A segment is bytes offset to offset + len of the transfer; one that
 * can't be posted is one that a lane lost: dqplb_tx_lane_down. */
struct dqplb_post {
	uint8_t kind; /* enum dqplb_post_kind */
	uint8_t lane;
	bool again;   /* was posted before, on a lane that is gone */
	uint32_t imm; /* WRITE_IMM */
	uint32_t len;
	uint64_t offset;
	uint64_t cookie; /* for dqplb_tx_done */
	struct dqplb_xfer *xfer;
};

struct dqplb_tx_config {
	uint32_t window;      /* numbers; power of two, DQPLB_WINDOW_MIN to _MAX */
	uint32_t records;     /* events that may wait at the peer, 1 to 4096 */
	uint32_t gen;	      /* of the number space */
	uint32_t first;	      /* number: 0; tests begin near the wrap */
	uint32_t max_segment; /* bytes, 1 to 2^30 */
	uint32_t turn;	      /* segments of a turn, 1 to window / 4 */
	/* In flight on one lane: at most the depth of its queue. */
	uint32_t lane_segments;
	uint64_t lane_bytes; /* a lane takes more while it has less than this */
	uint64_t link_bytes; /* likewise of all lanes together */
	uint32_t small;	     /* segments up to this length stay on the home rail */
	uint32_t home_rail;  /* while a lane of it has room */
	uint32_t lanes;	     /* 1 to DQPLB_LANES_MAX */
};

struct dqplb_tx_stats {
	uint64_t segments; /* posted, each again included */
	uint64_t again;
	uint64_t numbers;
	uint64_t fast;
	uint64_t records;
	uint64_t voids;
	uint64_t finished;
	uint64_t failed;
};

int dqplb_tx_open(const struct dqplb_tx_config *config, struct dqplb_tx **tx);
/* Whatever was started and not taken is the caller's again; no lane may be using it. */
void dqplb_tx_close(struct dqplb_tx *tx);
/* Bytes that an open takes, all in one piece. */
size_t dqplb_tx_size(const struct dqplb_tx_config *config);

/* -EINVAL: kind, length, or an ordered or bare one that is not numbered. */
int dqplb_tx_start(struct dqplb_tx *tx, struct dqplb_xfer *x);

/* Something waits to be posted, or said, or taken: dqplb_tx_next and dqplb_tx_take may
 * give it. */
bool dqplb_tx_waits(const struct dqplb_tx *tx);

/*
 * What to post next; false: nothing now. Control messages only where msg is not NULL: it
 * is filled for DQPLB_POST_MSG. What is said has been counted, so it must be done.
 */
bool dqplb_tx_next(struct dqplb_tx *tx, struct dqplb_post *post, struct dqplb_msg *msg);

/* A lane's completion without error. -EINVAL: no such segment is in flight there (a lane
 * that was said to be drained can't complete). */
int dqplb_tx_done(struct dqplb_tx *tx, uint64_t cookie);
/* The same; where that was the last of a plain transfer without a fault, it is taken at
 * once, and returned. */
struct dqplb_xfer *dqplb_tx_done_take(struct dqplb_tx *tx, uint64_t cookie);

/*
 * A lane's completion with an error that is the operation's own fault (C6: access,
 * protection, invalid request): its transfer fails with `error`, its numbers are voided,
 * and it is finished once nothing of it can be in flight. The lane is down too, as far
 * as the queue pair is: dqplb_tx_lane_down. Flushed completions are not reported at all.
 */
int dqplb_tx_fault(struct dqplb_tx *tx, uint64_t cookie, int error);

/* Like a fault. -EALREADY: every number is given out, it will finish by itself. */
int dqplb_tx_cancel(struct dqplb_tx *tx, struct dqplb_xfer *x, int error);

/* The next transfer that is finished; NULL: none. */
struct dqplb_xfer *dqplb_tx_take(struct dqplb_tx *tx);

/* ACK or REPORT. 0, -EPROTO; -EINVAL: another kind. A lane that a report names is down,
 * whether or not the caller knew: see dqplb_tx_lane_up. */
int dqplb_tx_msg(struct dqplb_tx *tx, const struct dqplb_msg *m);

/*
 * Lanes (C1 to C4). lane_open: may be sent on from now (C7); a lane that was used before
 * has a higher incarnation. lane_down: nothing more is posted. lane_drained: its queue
 * pair is in the error state and every completion was polled, reported or flushed: no
 * memory is read or written by it any more. When also the peer's report of the lane has
 * come, in whatever order, what was lost is posted again on other lanes, and the lane may
 * be opened again. Reads are posted again without the report.
 *
 * queue: which of the peer's receive queues feeds it. -EINVAL: no such lane in a state
 * in which this may happen.
 */
int dqplb_tx_lane_open(struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation,
		       uint32_t queue, uint32_t rail);
/* As a queue: the lane has no receives and takes nothing with a number. There is nothing
 * to be reported of it: it is closed as soon as it is stopped. A lane has a queue always,
 * or never. */
#define DQPLB_QUEUE_NONE UINT32_MAX
int dqplb_tx_lane_down(struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation);
int dqplb_tx_lane_drained(struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation);
/*
 * The peer's queue pair of a lane that is drained here is in the error state, so nothing
 * of it is written any more; what arrived on it isn't reported yet. Plain writes are
 * posted again on other lanes, numbered ones wait for the report (a lane without a queue
 * is closed). -EINVAL: the lane isn't drained, is reported already, or is another one:
 * nothing has changed.
 */
int dqplb_tx_lane_stopped(struct dqplb_tx *tx, uint32_t lane, uint32_t incarnation);
/* Drained, and the peer has said neither. */
bool dqplb_tx_lane_unstopped(const struct dqplb_tx *tx, uint32_t lane);
/* Stopped or closed: nothing that was posted on it is written any more. */
bool dqplb_tx_lane_quiet(const struct dqplb_tx *tx, uint32_t lane);
/* What got through on a lane that is up, or ends, turns out to be worth nothing: its next
 * incarnation begins with one segment. */
void dqplb_tx_lane_unproven(struct dqplb_tx *tx, uint32_t lane);
/* Every lane of the rail that is up; returns how many (their bits in *lanes). */
uint32_t dqplb_tx_rail_down(struct dqplb_tx *tx, uint32_t rail, uint64_t *lanes);
bool dqplb_tx_lane_up(const struct dqplb_tx *tx, uint32_t lane);
/* It may be opened. */
bool dqplb_tx_lane_closed(const struct dqplb_tx *tx, uint32_t lane);
/* "closed", "up", "down", "drained", "stopped", "reported". */
const char *dqplb_tx_lane_state(const struct dqplb_tx *tx, uint32_t lane);

/*
 * The link is over: every transfer is finished with `error`. -EBUSY: a lane is up or
 * down and not drained, so memory may still be read. Afterwards nothing but take and
 * close makes sense.
 */
int dqplb_tx_abort(struct dqplb_tx *tx, int error);

/* Nothing is unfinished. */
bool dqplb_tx_idle(const struct dqplb_tx *tx);

const struct dqplb_tx_stats *dqplb_tx_stats(const struct dqplb_tx *tx);

#endif
