/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The coordinator's side of membership and commit (PROTOCOL.md, G): a machine without I/O
 * and without a clock. Whoever owns it hands it messages and the time, sends what it
 * says, and keeps what it wants kept.
 *
 * What must outlive it is given to save() and is durable when that returns true; only
 * then somebody hears it (G2). If what was kept is lost, or older than what the members
 * know, it is rebuilt from a majority of them (G4).
 *
 * Not thread-safe. Nothing is allocated but room for lists and tables that grow.
 */
#ifndef WEFT_FT_COORD_H
#define WEFT_FT_COORD_H

#include "coll/ft/ft_wire.h"

enum ft_coord_state {
	FT_COORD_FORM,	  /* waits for the first members */
	FT_COORD_REBUILD, /* asks members what they know */
	FT_COORD_STEADY,  /* an epoch is on; counts votes */
	FT_COORD_PREPARE, /* the next epoch is prepared */
	FT_COORD_STALLED, /* too few members of the epoch live: waits for them */
	FT_COORD_DONE,	  /* everybody has left: for good */
	FT_COORD_OVER,	  /* another coordinator has taken over: for good */
	FT_COORD_BROKEN,  /* could not keep what it must, or no memory: for good */
	FT_COORD_STATE_END
};

/* What is kept. */
struct ft_durable {
	bool fresh;	/* the job never had an epoch: the first may be formed */
	uint64_t term;	/* the last that was taken; 0: nothing is kept */
	uint64_t valid; /* the term in which `active` was known to be the last epoch */
	uint64_t sign;	/* what is reduced */
	struct ft_roster active;
	struct ft_commit commit;
};

enum ft_saved { FT_SAVE_TERM, FT_SAVE_EPOCH, FT_SAVE_COMMIT };

struct ft_coord_out {
	void *arg;
	void (*say)(void *arg, const struct ft_msg *msg); /* to member msg->id */
	/* `what` changed; true: durable. Never after false. */
	bool (*save)(void *arg, enum ft_saved what, const struct ft_durable *d);
};

struct ft_coord_attr {
	bool fresh;    /* the job's first coordinator. One that comes where nothing is
			* kept but members may live waits for them, since newcomers
			* that it made an epoch of would be a second half of the job */
	uint32_t size; /* members that the first epoch waits for */
	uint32_t group_size; /* members of a group; 1: everybody for himself */
	uint32_t lineage;    /* drawn once with the first save, the same ever after */
	int64_t silence_us;  /* who says nothing for so long is dead */
	int64_t prepare_us;  /* for members to prepare for an epoch */
	int64_t rebuild_us;  /* for late answers, once there are enough of them */
	int64_t join_us;     /* newcomers wait so long for the end of a step */
	int64_t blame_us;    /* where one could not run the step: for the others' words */
};

struct ft_peer {
	uint64_t id; /* first: places.h */
	int64_t heard;
	struct ft_entry entry; /* as it wants to join */
	bool wants_in, leaving;
	/* Of the epoch that is on, but did not hear that it was started: */
	bool anew;    /* nor is in any other: to the next it comes as a newcomer */
	bool missed;  /* and does not know it any more: it is told who is in it */
	bool out;     /* not in the next attempt: did not prepare, or is to blame */
	bool replied; /* to the QUERY of this term */
	uint64_t prior;
	uint64_t blamed_step; /* it was to blame in so many epochs of this step */
	uint32_t blamed;
	uint32_t walk;			 /* blame.c */
	uint64_t promised;		 /* the highest term that it said it follows */
	struct ft_epoch active, pending; /* as it said last */
	struct ft_commit commit;
	struct ft_vote vote;
};

/* An epoch that some answer to QUERY named, and how it was known. */
struct ft_known {
	struct ft_roster roster;
	bool active;
};

enum { FT_KNOWN_MAX = 64 };

/* One writer: this machine (coord.c, next.c, blame.c, rebuild.c). Others read. */
struct ft_coord {
	struct ft_coord_attr attr;
	struct ft_coord_out out;
	enum ft_coord_state state;
	struct ft_durable d;
	struct ft_roster next; /* PREPARE: what is prepared */
	uint64_t seq;
	int64_t now, until;   /* until: when PREPARE, STALLED is looked at again */
	int64_t joiner_since; /* a newcomer waits since then; 0: none */
	int64_t no_until;     /* STEADY: votes of NO are gathered until then; 0: none */
	uint32_t failed;      /* epochs in which the step that is on could not be run */
	struct ft_peer *peer; /* sorted by id */
	uint32_t peers, peer_room;
	/* REBUILD */
	bool kept;	    /* d.active came from what was kept */
	uint64_t seen_term; /* the highest that anybody promised to somebody else */
	int64_t since, raise_at, raise_wait;
	struct ft_known known[FT_KNOWN_MAX];
	uint32_t knowns;
};

/* kept: what save() was given last, or NULL; it is copied. false: no memory, or the new
 * term could not be kept. */
bool ft_coord_init(struct ft_coord *c, const struct ft_coord_attr *attr,
		   const struct ft_coord_out *out, const struct ft_durable *kept,
		   int64_t now);
void ft_coord_fini(struct ft_coord *c);

void ft_coord_hear(struct ft_coord *c, const struct ft_msg *msg, int64_t now);
void ft_coord_tick(struct ft_coord *c, int64_t now);

/* The connection to a member broke and it did not come back: it is dead. */
void ft_coord_lost(struct ft_coord *c, uint64_t id, int64_t now);

const char *ft_coord_state_name(enum ft_coord_state state);

#endif
