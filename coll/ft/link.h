/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member's link to its coordinator: a thread of its own that owns the member's machine
 * (member.h) and a connection, shows that the member lives while the application
 * computes, and comes back with back-off and jitter when the connection breaks or the
 * coordinator is restarted.
 *
 * The owner's calls may come from any thread. What the machine tells is kept until the
 * owner takes it: an event of each kind at most, in order. A RUN that nobody took before
 * its epoch ended is taken back.
 *
 *   open -> JOINED
 *   begin -> RUN (step, from the untouched input) -> done -> COMMITTED, or RUN again
 *   STOP: the epoch that is being run is over; done() of it does nothing; RUN follows
 *   leave, give_up -> FENCED_OUT
 */
#ifndef WEFT_FT_LINK_H
#define WEFT_FT_LINK_H

#include "coll/ft/member.h"

struct ft_link;

enum { FT_LINK_WHY = 300 };

struct ft_link_attr {
	const char *coordinator; /* "host:port", or several separated by commas, of which
				  * one at a time is the coordinator */
	uint8_t job[FT_JOB_LEN]; /* the secret, padded with zeros */
	uint64_t id;		 /* of this life of this process; 0: drawn */
	uint64_t sign;		 /* what is reduced; not 0 */
	uint32_t group;
	uint32_t card_len; /* FT_CARD_MAX at most: how others reach this member */
	uint8_t card[FT_CARD_MAX];
	int64_t beat_us;   /* how often it shows that it lives; 0: FT_LINK_BEAT_US */
	int64_t silent_us; /* a connection on which nothing can be sent for so long is
			    * given up, and made anew; 0: FT_LINK_SILENT_US */
};

#define FT_LINK_BEAT_US	  100000
#define FT_LINK_SILENT_US 5000000

struct ft_link_event {
	enum ft_event event;
	enum ft_reason reason;	 /* FENCED_OUT */
	uint64_t step;		 /* RUN: the step to be run; COMMITTED: that counts */
	struct ft_commit commit; /* the last that counts */
	uint32_t live;		 /* COMMITTED: members that contributed */
	/* The epoch that is on: of RUN the one to run in, of COMMITTED perhaps a later
	 * one than the step's. A copy; its memory is kept from event to event. Starts as
	 * zeros, ends with ft_roster_fini(). */
	struct ft_roster roster;
};

struct ft_link_status {
	enum ft_phase phase;
	enum ft_work work;
	enum ft_reason reason;
	uint64_t id;
	struct ft_epoch epoch;
	struct ft_commit commit;
	bool connected;
	int64_t unheard_us;    /* since the coordinator said something last (any message),
				* or since the link was opened */
	uint64_t connects;     /* that were made, with the first */
	char why[FT_LINK_WHY]; /* there is no connection; or empty */
};

/* Does not wait for the coordinator. Negative errno, and why as a sentence. */
int ft_link_open(const struct ft_link_attr *attr, struct ft_link **link,
		 char why[FT_LINK_WHY]);

/* Ends the thread. A member that is neither fenced nor left is dead to the others soon
 * after. No call may be under way. May be NULL. */
void ft_link_close(struct ft_link *link);

uint64_t ft_link_id(const struct ft_link *link);

/* Wants to run the next step. -EBUSY: a step is under way, or its end was not taken;
 * -ECONNABORTED: the member is out or leaves. */
int ft_link_begin(struct ft_link *link);

/* What became of running the step in an epoch (of a RUN): good, or not, and then whom it
 * waited for (an id, or 0). Of an epoch that is over: nothing happens. Anything of the
 * input and output may be used again only after COMMITTED. */
void ft_link_done(struct ft_link *link, struct ft_epoch epoch, bool good,
		  uint64_t suspect);

/* Wants out, between two steps; FENCED_OUT comes when it is. -EBUSY as for begin. */
int ft_link_leave(struct ft_link *link);

/* The same within a step, which is given up: nobody runs it here any more. -EBUSY: it was
 * done well, and may count. */
int ft_link_give_up(struct ft_link *link);

/* The next event. timeout_us: 0 looks only, negative waits without end. -ETIMEDOUT: none
 * came (ft_link_status() says whether the coordinator is there). One waits at a time, or
 * several that may each get any. */
int ft_link_wait(struct ft_link *link, struct ft_link_event *event, int64_t timeout_us);

/* Readable while an event waits to be taken; for poll(), never to be read. */
int ft_link_fd(const struct ft_link *link);

/* Whether running a step in this epoch is to be stopped. Two loads, no lock: for loops
 * that run one. */
bool ft_link_stopped(const struct ft_link *link, struct ft_epoch epoch);

void ft_link_status(struct ft_link *link, struct ft_link_status *status);

#endif
