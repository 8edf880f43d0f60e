/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What members and the coordinator say to each other: one header for every message, then
 * lists of members. All fields are big-endian. Only this file and ft_wire.c know the
 * layout; ft_wire_get() rejects anything short, long or out of range before a field is
 * used.
 *
 *   member to coordinator
 *   JOIN      here I am and want to take part; one entry in list `pending`
 *   STATUS    where I stand: epochs, commit, vote. Said at every change and every beat,
 * so that a lost one does no harm STATE     the answer to QUERY: STATUS with both lists
 * and the promise before this one REFUSED   you are of a term that is over LEAVE     I
 * want to take part no more
 *
 *   coordinator to member
 *   QUERY     I am the coordinator of this term; promise to hear no older, say your state
 *   PREPARE   stop what you do in epoch `active`; `pending` is to follow it (list)
 *   START     epoch `active` is on; everything up to `commit` counts, what was voted upon
 *             and is not in it does not
 *   COMMIT    the step counts
 *   FENCED    you take no part (any more); reason
 *   WAIT      to a newcomer: members are asked whether this coordinator can go on
 *
 * Every message carries the job's secret, in clear: it keeps strangers and other jobs
 * away, not somebody who reads the network.
 */
#ifndef WEFT_FT_FT_WIRE_H
#define WEFT_FT_FT_WIRE_H

#include <stddef.h>

#include "coll/ft/roster.h"

enum ft_type {
	FT_JOIN = 1,
	FT_STATUS,
	FT_STATE,
	FT_REFUSED,
	FT_LEAVE,
	FT_QUERY,
	FT_PREPARE,
	FT_START,
	FT_COMMIT,
	FT_FENCED,
	FT_WAIT,
	FT_TYPE_END
};

enum ft_answer { FT_VOTE_NONE, FT_VOTE_YES, FT_VOTE_NO, FT_ANSWER_END };

/* Why somebody takes no part. */
enum ft_reason {
	FT_REASON_NONE,
	FT_REASON_EXCLUDED, /* declared dead, or of a group with one that is, or left */
	FT_REASON_LEFT,	    /* as it asked for */
	FT_REASON_SIGN,	    /* reduces something else than the others */
	FT_REASON_FULL,	    /* FT_MEMBERS_MAX are there */
	FT_REASON_CONFLICT, /* was told what cannot be; says so of itself */
	FT_REASON_TERM,	    /* a newcomer that promised to follow another coordinator */
	FT_REASON_END
};

struct ft_vote {
	struct ft_epoch epoch;
	uint64_t step;
	uint64_t suspect; /* with NO: the member that was waited for; 0: nobody */
	enum ft_answer answer;
};

/* A message. The lists are the caller's. */
struct ft_msg {
	enum ft_type type;
	enum ft_reason reason;
	uint64_t id;	/* the member that says it, or that it is said to */
	uint64_t term;	/* coordinator's; a member's promise */
	uint64_t prior; /* the last promise to another lineage */
	uint64_t sign;	/* what is reduced, as a number that all must have alike */
	struct ft_epoch active, pending;
	struct ft_commit commit;
	struct ft_vote vote;
	/* NULL: empty. PREPARE has the active one for who missed that epoch only. */
	const struct ft_roster *active_list, *pending_list;
};

/* Where a message that arrived has its lists; kept from message to message. */
struct ft_inbox {
	struct ft_roster active, pending;
};

enum {
	FT_WIRE_VERSION = 1,
	FT_JOB_LEN = 64, /* the secret, padded with zeros */
	FT_HDR_LEN = 208,
	FT_ENTRY_LEN = 128,
	FT_MSG_MAX = FT_HDR_LEN + 2 * FT_MEMBERS_MAX * FT_ENTRY_LEN,
};

enum ft_fault {
	FT_FAULT_NONE,
	FT_FAULT_SHORT, /* or long: not what the header says */
	FT_FAULT_MAGIC,
	FT_FAULT_VERSION,
	FT_FAULT_JOB,
	FT_FAULT_TYPE,
	FT_FAULT_ZERO, /* a field that this type has no use for */
	FT_FAULT_RANGE,
	FT_FAULT_LIST, /* entries out of order, twice, or of a later epoch */
	FT_FAULT_MEMORY,
};

void ft_inbox_fini(struct ft_inbox *inbox);

/* Bytes that a message takes. */
size_t ft_wire_len(const struct ft_msg *msg);

/* Writes ft_wire_len() bytes. job has FT_JOB_LEN bytes. */
void ft_wire_put(void *buf, const struct ft_msg *msg, const uint8_t *job);

/* Of a header of FT_HDR_LEN bytes: how long its message is, or 0 for one that is of
 * another job or makes no sense. */
size_t ft_wire_whole(const void *hdr, const uint8_t *job);

/* msg is complete only when the answer is NONE; its lists lie in the inbox. */
enum ft_fault ft_wire_get(const void *buf, size_t len, const uint8_t *job,
			  struct ft_msg *msg, struct ft_inbox *inbox);

const char *ft_type_name(enum ft_type type);
const char *ft_reason_name(enum ft_reason reason);

#endif
