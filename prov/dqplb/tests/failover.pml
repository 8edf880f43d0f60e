/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hand-over when a lane dies (rules A9, C2, C3), for a model checker: one numbered
 * transfer of two segments over two lanes that may die DEATHS times in all, at any
 * moment, with an acknowledgement that may be lost. Checked in every interleaving: nothing
 * is written after the event or after the transfer finished, what finished has arrived,
 * and everything ends.
 *
 * Each of these takes one rule away, and the checker must find what breaks then:
 *   REPORT_EARLY  the receiver reports before its queue pair is quiet (C2)
 *   REPOST_EARLY  the sender posts again without the report (C3)
 *   FINISH_EARLY  the sender finishes when its lane says so (A9)
 *   FORGET_LANE   the sender finishes while its own queue pair may read (C2)
 *   RESEND_NOT    a lost acknowledgement is not repeated (C5)
 */
#ifndef DEATHS
#define DEATHS 2
#endif
#define SEGMENTS 2
#define LANES 2
#define ALL 3
#define NO_LANE LANES
/* A segment on a lane. */
#define AT(s, l) ((s) * LANES + (l))

mtype = { ack, report };
mtype = { up, down, drained, reported, closed };

/* The network, for each segment and lane: a copy that may still land; an immediate that
 * was not polled; the sender's queue pair may still read it. */
bool flying[SEGMENTS * LANES];
bool heard[SEGMENTS * LANES];
bool reading[SEGMENTS * LANES];
bool dead[LANES];
byte deaths;
bool lost_one;

/* The receiver. */
byte arrived;
bool raised;
bool quiet[LANES];
bool due;

/* The sender. */
mtype lane[LANES] = up;
byte on[SEGMENTS] = NO_LANE;
byte posted;
byte acked;
bool finished;

chan control = [LANES + 1] of { mtype, byte, byte };

#define BUSY (reading[0] || reading[1] || reading[2] || reading[3])

/* Bytes land. On a dead lane the immediate may get lost, and the sender's completion is
 * flushed. */
inline land(s, l)
{
	assert(!finished);
	assert(!raised);
	flying[AT(s, l)] = false;
	if
	:: heard[AT(s, l)] = true
	:: dead[l]
	fi;
	if
	:: !dead[l] -> reading[AT(s, l)] = false
	:: dead[l]
	fi
}

active proctype network()
{
end:
	do
	:: atomic { flying[AT(0, 0)] -> land(0, 0) }
	:: atomic { flying[AT(0, 1)] -> land(0, 1) }
	:: atomic { flying[AT(1, 0)] -> land(1, 0) }
	:: atomic { flying[AT(1, 1)] -> land(1, 1) }
	:: atomic { deaths < DEATHS && !dead[0] -> dead[0] = true; deaths++ }
	:: atomic { deaths < DEATHS && !dead[1] -> dead[1] = true; deaths++ }
	/* Both ends are through with it: it comes back. */
	:: atomic { dead[0] && quiet[0] && lane[0] == closed ->
		dead[0] = false; quiet[0] = false; lane[0] = up }
	:: atomic { dead[1] && quiet[1] && lane[1] == closed ->
		dead[1] = false; quiet[1] = false; lane[1] = up }
	od
}

inline poll(s, l)
{
	heard[AT(s, l)] = false;
	arrived = arrived | (1 << s);
	due = true;
	if
	:: arrived == ALL && !raised -> raised = true
	:: else
	fi
}

/* Everything was polled, nothing comes any more. */
inline hand_over(l)
{
	quiet[l] = true;
#ifndef REPORT_EARLY
	flying[AT(0, l)] = false;
	flying[AT(1, l)] = false;
#endif
	control ! report(arrived, l);
	due = false
}

active proctype receiver()
{
end:
	do
	:: atomic { heard[AT(0, 0)] -> poll(0, 0) }
	:: atomic { heard[AT(0, 1)] -> poll(0, 1) }
	:: atomic { heard[AT(1, 0)] -> poll(1, 0) }
	:: atomic { heard[AT(1, 1)] -> poll(1, 1) }
	:: atomic { dead[0] && !quiet[0] && !heard[AT(0, 0)] && !heard[AT(1, 0)] &&
		nfull(control) -> hand_over(0) }
	:: atomic { dead[1] && !quiet[1] && !heard[AT(0, 1)] && !heard[AT(1, 1)] &&
		nfull(control) -> hand_over(1) }
	:: atomic { due && empty(control) -> control ! ack(arrived, 0); due = false }
	od
}

inline post(s, l)
{
	posted = posted | (1 << s);
	on[s] = l;
	reading[AT(s, l)] = true;
	/* The peer's end may be quiet before this one knows: then it goes nowhere. */
	flying[AT(s, l)] = !quiet[l]
}

/* What the lane lost is to be posted again. */
inline again(s, l)
{
	if
	:: on[s] == l && !(acked & (1 << s)) ->
		on[s] = NO_LANE;
		posted = posted & ~(1 << s)
	:: else
	fi
}

inline resolve(l)
{
	again(0, l);
	again(1, l);
	lane[l] = closed
}

/* The own queue pair is in the error state and was flushed. */
inline drain(l)
{
	reading[AT(0, l)] = false;
	reading[AT(1, l)] = false;
	if
	:: lane[l] == reported -> resolve(l)
	:: else ->
#ifdef REPOST_EARLY
		resolve(l)
#else
		lane[l] = drained
#endif
	fi
}

inline hear_report(bitmap, l)
{
	acked = acked | bitmap;
	if
	:: lane[l] == drained -> resolve(l)
	:: lane[l] == up || lane[l] == down -> lane[l] = reported
	:: else
	fi
}

active proctype sender()
{
	byte bitmap, which;

	do
	:: atomic { !(posted & 1) && lane[0] == up -> post(0, 0) }
	:: atomic { !(posted & 1) && lane[1] == up -> post(0, 1) }
	:: atomic { !(posted & 2) && lane[0] == up -> post(1, 0) }
	:: atomic { !(posted & 2) && lane[1] == up -> post(1, 1) }
	:: atomic { dead[0] && lane[0] == up -> lane[0] = down }
	:: atomic { dead[1] && lane[1] == up -> lane[1] = down }
	:: atomic { lane[0] == down || lane[0] == reported -> drain(0) }
	:: atomic { lane[1] == down || lane[1] == reported -> drain(1) }
	:: atomic {
		control ? report(bitmap, which) -> hear_report(bitmap, which);
		bitmap = 0; which = 0
	   }
	:: atomic {
		control ? ack(bitmap, which) ->
		if
		:: acked = acked | bitmap
		/* The channel was lost with it, and is there again. */
		:: !lost_one -> lost_one = true;
#ifndef RESEND_NOT
			due = true
#endif
		fi;
		bitmap = 0
	   }
	:: atomic {
#ifdef FINISH_EARLY
		posted == ALL && !BUSY
#else
#ifdef FORGET_LANE
		acked == ALL
#else
		acked == ALL && !BUSY
#endif
#endif
		-> assert(!BUSY); finished = true; break
	   }
	od;
	assert(arrived == ALL && raised)
}
