/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages between executors: formats, and the one validator. They travel as
 * untagged messages of at most CTL_MAX bytes; fields are little-endian. Whatever a peer
 * sends is checked here before a field is used: lengths, counts, ranks, kinds. Each says
 * which job it is of (net.h), for addresses of ranks that died are used again.
 */
#ifndef WEFT_EXEC_CTL_H
#define WEFT_EXEC_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/exec/agree.h"
#include "coll/exec/sig.h"

#define CTL_MAX	       512
#define CTL_ENTRY_MAX  12 /* pieces of READY places in one message */
#define CTL_HANDLE_MAX 2  /* handles that travel in one message: destination, scratch */
#define CTL_TEXT_MAX   320
#define CTL_PAST_MAX   16 /* calls that a rank remembers, and tells in one message */

enum ctl_kind {
	CTL_READY = 1, /* places of the sender's that may be filled now */
	CTL_FAIL,      /* the sender's call failed: nothing more comes or is taken */
	CTL_REVOKED, /* answer to FAIL: the sender has no put in flight to you any more */
	CTL_PROBE,   /* the sender waits: what it runs and whom it waits for */
	CTL_STATUS,  /* answer to PROBE, the same fields */
	CTL_REPORT,  /* ranks disagree, says the sender: asks for the verdict */
	CTL_VERDICT, /* what every rank shall say about it */
	CTL_PAST,    /* the last calls that the sender started */
	CTL_WIN_SIGNAL, /* of a window, whose number is msg.call: adds to a word */
	CTL_WIN_PUT,	/* a message for it is under way */
	CTL_WIN_GET,	/* asks for a message from it */
	CTL_ELSEWHERE,	/* answer to PROBE of a call that has not started: what runs */
	CTL_REVOKE,	/* the communicator is taken back: nothing goes on with it */
	CTL_AGREE,	/* who of its members goes on (agree.h) */
	/* Answer to PROBE of a call that the sender has ended so many calls ago that it
	 * does not know any more what it was. */
	CTL_FORGOTTEN,
};

enum ctl_choice { CTL_CHOICE_MESSAGE = 0, CTL_CHOICE_PUT = 1 };

struct ctl_handle {
	uint16_t id;
	uint32_t incarnation;
	uint64_t key;
	uint64_t base;
};

/* A piece of a READY place; a place of several pieces has them next to each other. */
struct ctl_entry {
	uint32_t k;	 /* pair number */
	uint32_t recv;	 /* index of the remote CQ data word (name.h) */
	uint16_t handle; /* id; PUT only */
	uint8_t choice;	 /* enum ctl_choice */
	uint8_t more;	 /* 1: another piece of the same place follows */
	bool stays;	 /* the place is that of later starts as well (twin.h) */
	uint32_t incarnation;
	uint64_t offset; /* from the handle's base */
	uint64_t length; /* limit of this piece */
};

struct ctl_ready {
	uint8_t entries;
	uint8_t handles;
	struct ctl_handle handle[CTL_HANDLE_MAX];
	struct ctl_entry entry[CTL_ENTRY_MAX];
};

struct ctl_fail {
	uint32_t result;	 /* enum weft_result */
	int32_t culprit;	 /* rank, or -1 */
	uint64_t msg_bytes;	 /* longest message in flight to the receiver, or 0 */
	char text[CTL_TEXT_MAX]; /* terminated by the validator */
};

struct ctl_status {
	struct sig_call call;
	int32_t waits_for;    /* rank, or -1 */
	bool place;	      /* and so for a place of the receiver's: */
	uint32_t place_k;     /* of this pair */
	uint64_t place_bytes; /* that would be put there */
};

/* The call that the sender waits in. */
struct ctl_elsewhere {
	struct sig_call id;
	uint32_t comm;
	uint32_t call;
	int32_t waits_for; /* rank, or -1 */
};

struct ctl_forgotten {
	uint32_t since; /* calls that the sender has started after that one */
};

/* Calls msg.call, msg.call - 1, ... of the sender. */
struct ctl_past {
	uint8_t entries;
	struct sig_call call[CTL_PAST_MAX];
};

struct ctl_win {
	uint32_t index;	 /* signal: the word; else the number of the message */
	uint64_t offset; /* bytes of the receiver's part */
	uint64_t length; /* signal: the puts that it covers */
	uint64_t value;	 /* signal: what is added */
};

struct ctl_msg {
	uint64_t job; /* of the sender */
	enum ctl_kind kind;
	int32_t src; /* rank */
	uint32_t comm;
	uint32_t call; /* full call number */
	bool pair;     /* the call is one of two ranks (pair.h): FAIL, PROBE, STATUS,
		     FORGOTTEN */
	uint64_t sig;  /* of the sender's call: READY, PROBE, STATUS */
	union {
		struct ctl_ready ready;
		struct ctl_fail fail;
		struct ctl_status status;
		struct ctl_past past;
		struct ctl_win win;
		struct ctl_forgotten forgotten;
		struct ctl_elsewhere elsewhere;
		struct agree_msg agree;
	};
};

/* Bytes written to buf (CTL_MAX bytes). */
size_t ctl_encode(const struct ctl_msg *msg, void *buf);

/* The job that a control message is of: the rest of it means something in that one only.
 * False for what is no control message. */
bool ctl_job(const void *buf, size_t len, uint64_t *job);

/* False for anything short, long or out of range; size is the number of ranks. */
bool ctl_decode(const void *buf, size_t len, int32_t size, struct ctl_msg *msg);

#endif
