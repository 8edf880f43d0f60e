/* SPDX-License-Identifier: BSD-2-Clause */
/* What the analyzer comes to: who is at fault, and why one thinks so. */
#ifndef WEFT_ANALYZE_VERDICT_H
#define WEFT_ANALYZE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

enum verdict_kind {
	VERDICT_NONE,	  /* nothing stands still, nothing is slow */
	VERDICT_OUTSIDE,  /* a rank is not in the collective, nor in any other call */
	VERDICT_DEAD,	  /* a rank is dead, or crashed */
	VERDICT_LINK,	  /* what was sent over a link has not come */
	VERDICT_MISMATCH, /* ranks disagree about what the call is */
	VERDICT_ORDER,	  /* communicators are called in different orders */
	VERDICT_SLOW_RANK,
	VERDICT_SLOW_LINK,
	VERDICT_UNKNOWN, /* something stands still, and the dumps don't say why */
	VERDICT_KINDS
};

enum { VERDICT_LINES = 16, VERDICT_LINE = 320 };

struct verdict {
	enum verdict_kind kind;
	int32_t rank; /* at fault; of a link the one that sends; -1: none */
	int32_t to;   /* of a link the one that receives; else -1 */
	bool stopped; /* there is a call: */
	uint32_t comm, call;
	int32_t first;	/* of the communicator */
	char what[128]; /* "allreduce (ring) of 8 fp32 sum" */
	char nic[64];	/* of a link: "lane 3 is down", or "" */
	int lines;	/* of evidence */
	char line[VERDICT_LINES][VERDICT_LINE];
};

/* "rank outside communication" */
const char *verdict_name(enum verdict_kind kind);

/* One more line of evidence; what is too much is dropped. */
__attribute__((format(printf, 2, 3))) void verdict_say(struct verdict *v, const char *fmt,
						       ...);

#endif
