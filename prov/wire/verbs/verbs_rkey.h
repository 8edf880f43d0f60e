/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of the peer that a link remembers, and how they are found: by reading the peer's
 * table over the control channel, or over a spare lane while there is none, one key at a
 * time (rule D1). A key that was refused is dropped and fetched again; it is gone if its
 * incarnation is the same (rule D2).
 * Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_RKEY_H
#define WEFT_WIRE_VERBS_VERBS_RKEY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "prov/wire/verbs/verbs_keys.h"
#include "util/list.h"

struct verbs_link;

#define VERBS_RKEY_BUCKETS 256u
#define VERBS_RKEY_MAX	   4096u /* remembered; then the oldest that nobody uses goes */

enum verbs_rkey_state {
	VERBS_RKEY_FETCHING,
	VERBS_RKEY_KNOWN,
	VERBS_RKEY_GONE /* not found, or refused; not remembered any more */
};

struct verbs_rkey {
	struct list chain;   /* of its bucket */
	struct list where;   /* on known or fetches */
	struct list waiting; /* operations */
	enum verbs_rkey_state state;
	uint32_t users;		       /* operations that point here */
	int err;		       /* GONE */
	struct verbs_keys_entry entry; /* key and space always */
};

struct verbs_rkeys {
	struct list bucket[VERBS_RKEY_BUCKETS];
	struct list known;   /* oldest first */
	struct list fetches; /* the first is being fetched */
	uint32_t count;
	/* The fetch. */
	struct verbs_keys_view view;
	bool root_known;
	bool root_fresh; /* read for this very fetch */
	bool reading;	 /* posted and not answered, */
	bool spare;	 /* on the lane that was made at the door (verbs_spare.h) */
	bool root_reading;
	uint32_t level; /* that is looked at next, plus one */
	uint32_t again; /* torn reads in a row */
};

void verbs_rkeys_init(struct verbs_link *link);
/* No operation points to any. */
void verbs_rkeys_fini(struct verbs_link *link);

/* The key if it is known: no more users of it. */
struct verbs_rkey *verbs_rkey_known(struct verbs_link *link, uint8_t space, uint64_t key);
/* The key, being fetched where it isn't known; one more user. NULL: no memory. */
struct verbs_rkey *verbs_rkey_get(struct verbs_link *link, uint8_t space, uint64_t key);
static inline void verbs_rkey_put(struct verbs_rkey *k)
{
	if (__builtin_expect(--k->users == 0 && k->state == VERBS_RKEY_GONE, 0))
		free(k);
}
/* It was refused: not given out any more. */
void verbs_rkey_refused(struct verbs_link *link, struct verbs_rkey *k);

/* Goes on fetching. */
void verbs_rkeys_run(struct verbs_link *link);
/* What was read is there; `spare`: by that lane. */
void verbs_rkeys_read(struct verbs_link *link, bool spare);
/* The channel, or the spare lane, is gone, and with it what was read by it. */
void verbs_rkeys_restart(struct verbs_link *link, bool spare);

#endif
