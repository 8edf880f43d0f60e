/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control at the sender (NSCC): a window of bytes that follows the queueing
 * delay and the ECN marks that acknowledgements report. Pure: no clock, no allocation;
 * the struct is its user's. README.md says where it leaves the published rules.
 *
 * Sizes are nominal: payload, headers, and UET_NSCC_OVERHEAD, alike on both sides.
 */
#ifndef WEFT_UET_NSCC_H
#define WEFT_UET_NSCC_H

#include <stdbool.h>
#include <stdint.h>

#define UET_NSCC_OVERHEAD 48u /* UDP 8, and 40 for what lies below */

/* Of how long an acknowledgement was on its way; as the wire has it. */
#define UET_NSCC_BACK_NS 2048u

struct uet_nscc_config {
	uint64_t link;	    /* bytes each second of the slower end */
	uint64_t base_rtt;  /* ns, of the longest path when nothing waits; 0: measured */
	uint64_t first_rtt; /* assumed until one was measured; and shorter ones aren't
			     * told apart: all have the same target */
	uint64_t jitter; /* ns by which a round trip is longer although nothing waits in
			  * the network: soft stamps, threads that aren't running */
	uint32_t mtu; /* nominal size of a full packet: steps of the window are by it */
	uint32_t ack_bytes; /* that are acknowledged together: it asks after so many */
	uint32_t widest;    /* the largest window, in those of `link` (half as much again
			     * as it holds), with which it begins; 0: 1 */
};

/* Written by uet_nscc.c only. */
struct uet_nscc {
	struct uet_nscc_config config;
	/* What follows from base_rtt. */
	uint32_t packet; /* size of a full packet of this flow [mtu] */
	uint64_t base_rtt;
	uint64_t target; /* queueing delay */
	uint64_t soft;	 /* round trip at the target */
	uint64_t drain;	 /* of it: what a few packets take of a slow link */
	uint64_t common; /* the same for all whose ways may be alike */
	uint64_t bdp;
	uint64_t first_wnd; /* what it begins with, and what the factors are made for */
	uint64_t max_wnd;
	double alpha;
	double fi;
	double eta;
	double fi_scale;
	/* State. Bytes, ns. */
	int64_t inflight; /* below 0 by what the peer's counter rounds up */
	uint64_t cwnd;
	uint64_t unasked; /* that left since an acknowledgement was asked for */
	uint64_t saved;	  /* cwnd before a receiver's penalty; 0: none */
	double avg_delay;
	double inc_bytes;
	uint64_t fi_count;
	uint64_t received_bytes;
	uint64_t achieved_bytes;
	uint64_t bytes_ignored;
	uint64_t bytes_to_ignore;
	uint64_t qa_end;
	uint64_t adjust_end;
	uint64_t md_at;
	uint64_t marked_since; /* all were, with a delay below target; 0: not all */
	uint64_t loss_end;     /* losses until then ... */
	uint64_t excuse;       /* bytes that may be lost without anybody's fault */
	uint64_t loss_floor;   /* ... don't bring the window below this */
	uint64_t last_rtt;     /* the last sample, as it was */
	uint64_t go_at;	    /* a window of less than a packet: none leaves before then ...
			     */
	bool waits;	    /* ... which is to come, as uet_nscc_tick knows */
	uint64_t train_at;  /* when the packet that was acknowledged last had left ... */
	uint64_t train_rtt; /* ... its round trip, without what the ack waited ... */
	uint64_t train_ns; /* ... and how much later than the one before it others came */
	uint64_t train_bytes; /* that have left with it: so many of these */
	uint64_t spread;      /* ns for 1024 bytes, of those that leave together */
	uint64_t waited;      /* the last acknowledgement, ns: more than others of late */
	uint64_t back_end;    /* of the period ... */
	uint16_t back_min[2]; /* ... whose shortest way back this is, and of the one
				 before */
	bool back_any;
	uint64_t late_since; /* samples are beyond belief since; 0: they aren't */
	uint64_t min_now;    /* smallest sample of this period */
	uint64_t min_end;
	uint32_t received; /* as the last ack said */
	bool fast;
	bool trigger_qa;
	bool lowered;	       /* it was, ever */
	uint64_t losses_then;  /* count.losses when the base's period began ... */
	uint64_t samples_then; /* ... and count.samples */
	struct {
		uint64_t acks;
		uint64_t samples;
		uint64_t late; /* samples that were not believed */
		uint64_t marks;
		uint64_t decreases;
		uint64_t quick;
		uint64_t losses;
	} count;
};

struct uet_nscc_ack {
	uint32_t received; /* as in uet_ack_state */
	bool has_received;
	bool ce;
	bool path_marks; /* the packet's path has marked, ever: that it didn't mark this
			  * one says something (rule H2) */
	bool restore;
	uint8_t pend;
	bool has_rtt;
	uint64_t rtt;	  /* ns, without the receiver's own time */
	uint64_t sent_at; /* ns: those that left together have the same; 0: not known */
	bool has_back;
	uint16_t back; /* how long it was on its way, in UET_NSCC_BACK_NS, and any number
			* that is the same for a while: their clocks differ */
};

/* False: configuration. */
bool uet_nscc_init(struct uet_nscc *cc, const struct uet_nscc_config *config,
		   uint64_t now);
/* Full packets of this flow have another size than config.mtu. */
void uet_nscc_set_packet(struct uet_nscc *cc, uint32_t size);
/* Whether a full packet may leave. Of a window that is less than one they leave one by
 * one, and each after the other as much later as it takes to have as many bytes in a
 * round trip as the window has: until then, cc->go_at, cc->waits is set, and
 * uet_nscc_tick takes it back. */
bool uet_nscc_can_send(const struct uet_nscc *cc);
/* Whether a piece of so many bytes should begin, or wait until all of it has room: in a
 * wide window only, of which so much is under way that room will come. */
bool uet_nscc_has_room(const struct uet_nscc *cc, uint64_t bytes);
/* Whether the packet that was just counted should ask for an acknowledgement. In a window
 * that is wider than one that others share ever is, some are enough. */
bool uet_nscc_wants_ack(const struct uet_nscc *cc);
void uet_nscc_asked(struct uet_nscc *cc);
/* Time passes. */
static inline void uet_nscc_tick(struct uet_nscc *cc, uint64_t now)
{
	if (cc->waits && now >= cc->go_at)
		cc->waits = false;
}
void uet_nscc_sent(struct uet_nscc *cc, uint32_t size);
/* Returns the bytes that the receiver got since the last one. */
uint64_t uet_nscc_ack(struct uet_nscc *cc, const struct uet_nscc_ack *ack, uint64_t now);
/* A packet was refused; `trimmed`: in a switch, for lack of room. */
void uet_nscc_nack(struct uet_nscc *cc, uint32_t size, bool trimmed, uint64_t now);
/* A packet is taken for lost; `evidence`: later ones came through. Without, it is only
 * late (its receiver may not be running), and the window stays. */
void uet_nscc_lost(struct uet_nscc *cc, uint32_t size, bool evidence, uint64_t now);
/* A round trip of a control packet that met no queue of ours. */
void uet_nscc_base(struct uet_nscc *cc, uint64_t rtt, uint64_t now);

#endif
