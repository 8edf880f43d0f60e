/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages between executors: formats, and the one validator. They travel as
 * untagged messages of at most CTL_MAX bytes; fields are little-endian. Whatever a peer
 * sends is checked here before a field is used: lengths, counts, ranks, kinds.
 */
#ifndef WEFT_EXEC_CTL_H
#define WEFT_EXEC_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CTL_MAX	       512
#define CTL_ENTRY_MAX  12 /* pieces of READY places in one message */
#define CTL_HANDLE_MAX 2  /* handles that travel in one message: destination, scratch */
#define CTL_TEXT_MAX   200

enum ctl_kind {
	CTL_READY = 1, /* places of the sender's that may be filled now */
	CTL_FAIL,      /* the sender's call failed: nothing more comes or is taken */
	CTL_REVOKED, /* answer to FAIL: the sender has no put in flight to you any more */
	CTL_PROBE,   /* the sender waits: what it runs and whom it waits for */
	CTL_STATUS,  /* answer to PROBE, the same fields */
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
	uint32_t incarnation;
	uint64_t offset; /* from the handle's base */
	uint64_t length; /* limit of this piece */
};

/* What a rank believes that the call is; compared between ranks that stall. */
struct ctl_call {
	uint64_t count;
	uint32_t elem_size;
	int32_t root;
	uint8_t coll;
	uint8_t type;
	uint8_t op;
	uint8_t pad;
	uint32_t algorithm; /* hash of its name */
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
	char text[CTL_TEXT_MAX]; /* terminated by the validator */
};

struct ctl_status {
	struct ctl_call call;
	int32_t waits_for; /* rank, or -1 */
};

struct ctl_msg {
	enum ctl_kind kind;
	int32_t src; /* rank */
	uint32_t comm;
	uint32_t call; /* full call number */
	union {
		struct ctl_ready ready;
		struct ctl_fail fail;
		struct ctl_status status;
	};
};

/* Bytes written to buf (CTL_MAX bytes). */
size_t ctl_encode(const struct ctl_msg *msg, void *buf);

/* False for anything short, long or out of range; size is the number of ranks. */
bool ctl_decode(const void *buf, size_t len, int32_t size, struct ctl_msg *msg);

#endif
