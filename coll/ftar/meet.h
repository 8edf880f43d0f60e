/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the members of an epoch find each other, without the job's bootstrap: each listens
 * at an address that its card in the roster has; the first of the roster is the root of a
 * star over TCP, by which they hold all-gathers while the epoch's context is opened.
 * Connections say which job, epoch and member they are of; others are closed.
 */
#ifndef WEFT_FTAR_MEET_H
#define WEFT_FTAR_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/ft/roster.h"
#include "coll/ftar/meet_wire.h"
#include "weft/weft.h"

enum { MEET_WHY = 240 };

/* Listens at a free port of `host` (NULL or "": that of this machine by which it reaches
 * `towards`, "host:port"), and writes the card. The descriptor, or -1 with why. */
int meet_listen(const char *host, const char *towards, uint8_t card[FT_CARD_MAX],
		uint32_t *card_len, char why[MEET_WHY]);

struct meet;

struct meet_attr {
	const struct ft_roster *roster; /* of the epoch; stays until meet_close() */
	uint64_t id;			/* of this member */
	int listener;
	const uint8_t *job; /* MEET_JOB_LEN bytes */
	int64_t until;	    /* boot_clock_us() */
	/* The epoch is over: give up. */
	bool (*stopped)(void *arg);
	void *arg;
};

/* Meets all members. NULL with why, and the member that did not come in *suspect, or 0.
 */
struct meet *meet_open(const struct meet_attr *attr, uint64_t *suspect,
		       char why[MEET_WHY]);
void meet_close(struct meet *meet); /* may be NULL */

/* As weft_boot_callbacks want it; arg is the meet. */
int meet_allgather(void *arg, const void *in, void *out, size_t len, int64_t timeout_us);
int32_t meet_rank(const struct meet *meet);

/* The member that an all-gather waited for in vain, or 0: none, or it gave up itself. */
uint64_t meet_suspect(const struct meet *meet);

#endif
