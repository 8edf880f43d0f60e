/* SPDX-License-Identifier: BSD-2-Clause */
/* Rank 0's side, shared by boot_root.c (all-gather, failure), boot_join.c (arrival) and
 * boot_spread.c (handing out results). */
#ifndef WEFT_BOOT_BOOT_ROOT_H
#define WEFT_BOOT_BOOT_ROOT_H

#include <stdbool.h>
#include <sys/epoll.h>

#include "coll/boot/boot_io.h"
#include "coll/boot/boot_side.h"

/* Where a rank is while a result is handed out. */
enum boot_step {
	BOOT_STEP_SEND, /* it gets the bytes; or nothing is handed out */
	BOOT_STEP_LEAD, /* the same, and then says where its table is */
	BOOT_STEP_WAIT, /* for its leader */
	BOOT_STEP_TAKE, /* it was told of a table */
};

/* One other rank. */
struct boot_peer {
	uint64_t host; /* boot_table_host() there */
	int32_t lead;  /* the first rank of its host */
	bool leads;    /* others of its host */
	enum boot_step step;
	int fd;	       /* -1: did not come */
	bool finished; /* with the phase that is on */
	bool dead;     /* its connection broke */
	size_t hdr_done, body_done;
	bool hdr_good;
	struct boot_hdr hdr;
	struct boot_tx tx;
};

struct boot_root {
	int32_t size;
	uint8_t job[BOOT_JOB_LEN];
	int epoll; /* edge-triggered: a socket is worked until it has no more */
	bool failed;
	bool leads_known;
	uint64_t bytes;		/* sent as results */
	struct boot_peer *peer; /* [size]; of [0] only what its host is */
};

/* In the high half of epoll_event.data.u64; the low half is an index. */
enum boot_event { BOOT_EVENT_LISTEN, BOOT_EVENT_STRANGER, BOOT_EVENT_PEER };

static inline uint64_t boot_event_key(enum boot_event kind, uint32_t index)
{
	return (uint64_t)kind << 32 | index;
}

/* Waits until all ranks have come, says WELCOME to them. Owns no descriptor of its own
 * after it returned; env->root_fd stays open. */
enum weft_result boot_join(struct boot_root *root, const struct boot_env *env,
			   int64_t timeout_us);

/* Starts a message without payload to a peer. */
enum boot_io boot_root_say(struct boot_root *root, int32_t rank, enum boot_type type);

/* Hands out g->out. */
enum weft_result boot_root_spread(struct boot_root *root, const struct boot_gather *g,
				  int64_t deadline);

/* boot_root_fail() about those that are missing in an all-gather, or died in it. */
enum weft_result boot_root_timeout(struct boot_root *root, const struct boot_gather *g);
enum weft_result boot_root_death(struct boot_root *root, const struct boot_gather *g,
				 int32_t rank);

/* Records the failure, tells every rank that is there, returns result. */
__attribute__((format(printf, 4, 5))) enum weft_result boot_root_fail(
	struct boot_root *root, enum weft_result result, int32_t about, const char *fmt,
	...);

#endif
