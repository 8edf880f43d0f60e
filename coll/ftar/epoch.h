/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network of one epoch: a context and a communicator of its members, ranks in the
 * order of the roster. Its endpoint, keys and staging are of this epoch alone: nothing
 * that a member of an older one still sends can reach it. What a peer may still write
 * (rule D3) stays buried until it cannot any more.
 */
#ifndef WEFT_FTAR_EPOCH_H
#define WEFT_FTAR_EPOCH_H

#include "coll/ftar/meet.h"
#include "util/list.h"

enum { EPOCH_REQS = 8, EPOCH_WHY = 600, EPOCH_WORDS_US = 200000 };

struct epoch {
	struct list link; /* of those that are buried */
	struct ft_epoch name;
	struct ft_roster roster;
	int32_t rank, size;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	void *staging; /* the context's */
	size_t staging_len;
	struct weft_req *req[EPOCH_REQS]; /* started and not ended; NULL: free */
	uint64_t tally[2][4]; /* what members tell each other beside: own, of all */
	int64_t words_us;     /* as in epoch_attr */
	int64_t words_until;  /* for so long it stays open; 0: it is not closed yet */
};

struct epoch_attr {
	struct meet_attr meet;
	const char *provider, *domain;
	int64_t timeout_us; /* of everything within it */
	/* How long it stays open when it is over, for peers that have not taken the last
	 * words; 0: EPOCH_WORDS_US. A FAIL or a REVOKED that never leaves keeps those
	 * that live waiting for it. */
	int64_t words_us;
};

/* How long a member waits within an epoch, for the others to meet and for the step: what
 * it was told, for the first epochs since a step counted; then more and more, eightfold
 * at last, since where epoch after epoch fails it may be that nobody is gone and all are
 * slow. Every member takes it from the same two names, so that none is blamed for being
 * the most patient. */
int64_t epoch_patience(struct ft_epoch epoch, struct ft_epoch counted,
		       int64_t attempt_us);

/* Whether this process can open such networks at all; if not, the error is set: in an
 * epoch it would be one more that failed, and tried again. */
enum weft_result epoch_possible(const char *provider, const char *domain,
				int64_t timeout_us);

/* NULL, with why and whom it is about (a member's id, or 0). */
struct epoch *epoch_open(const struct epoch_attr *attr, uint64_t *suspect,
			 char why[EPOCH_WHY]);

/* At least len bytes; what was there is lost. */
enum weft_result epoch_staging(struct epoch *e, size_t len);

/* Ends what is under way. The others are told, whoever takes it at once; who does not is
 * told while the epoch is progressed or closed. Does not wait: one that is dead never
 * takes it, and the next epoch would begin later for that. */
void epoch_stop(struct epoch *e, const char *reason);

enum epoch_end {
	EPOCH_GONE,   /* all was given back */
	EPOCH_TALKS,  /* the others have not taken yet what is said to them */
	EPOCH_BURIED, /* a peer may still write into it (D3) */
};

/* Gives back what can be given back now, without waiting. Until it is gone it is to be
 * called again and again, which makes progress. */
enum epoch_end epoch_close(struct epoch *e);

/* Makes progress with what the provider still has to send. */
void epoch_progress(struct epoch *e);

/* The member that the first failure was about (an id), or 0. */
uint64_t epoch_suspect(const struct epoch *e);

#endif
