/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What makes matching fast when a queue holds many; match.c's own. A few entries are
 * compared one by one, and cost nothing to keep.
 *
 * Receives with ignored bits, once there are more than MATCH_FEW, are found through a
 * hash on (source, what counts of the tag, ignored bits): one look for each set of
 * ignored bits that is in use. Messages are found through views, each a hash on what
 * counts for one kind of receive (its ignored bits; whether it names a source). A view is
 * made when a receive of its kind looks through more than MATCH_FEW messages, and in use
 * until the queue is empty.
 *
 * Memory is taken when a queue holds more than ever before, and kept. Where there is
 * none, and where more different bits are ignored at a time than there are classes or
 * views, entries are compared one by one.
 */
#ifndef WEFT_PROTO_MATCH_INDEX_H
#define WEFT_PROTO_MATCH_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/proto/match.h"

#define MATCH_FEW     16
#define MATCH_CLASSES 16

struct match_table {
	struct list *buckets; /* NULL: no memory yet */
	uint32_t log2;	      /* how many */
	uint32_t crowded_at;  /* from so many entries on more buckets are wanted */
};

/* Receives that ignore the same bits. */
struct match_class {
	uint64_t ignore;
	bool any, directed; /* there may be some from any source, from one */
};

struct match_view {
	struct match_table table;
	uint64_t ignore;
	bool directed;
};

struct match_index {
	struct match_table wilds;
	uint32_t class_count;
	uint32_t other_count; /* of receives in others */
	struct match_class classes[MATCH_CLASSES];
	struct list others;	 /* whose class found no place; by match_recv.by_tag */
	uint64_t wilds_built_at; /* stamp */
	struct match_view views[MATCH_VIEWS];
	uint32_t victim;  /* the view that is given up next */
	uint64_t scanned; /* messages that were compared for want of a view */
};

struct match_index *match_index_open(void);
void match_index_close(struct match_index *x);

/* The queue has many receives with ignored bits: all are put into the index. */
void match_wilds_build(struct match_queue *q);
/* One more, which is in q->wild already; only while the index is in use. */
void match_wilds_add(struct match_queue *q, struct match_recv *r);
/* A receive in the index has another source now. */
void match_wilds_move(struct match_queue *q, struct match_recv *r);
/* The earliest that fits a message, if it was posted before `best` (which may be NULL);
 * else best. */
struct match_recv *match_wilds_find(struct match_queue *q, const void *source,
				    uint64_t tag, struct match_recv *best);

/* Of many messages, the earliest that fits. */
struct match_msg *match_views_find(struct match_queue *q, const struct match_recv *r);
/* A message that is in q->msgs already is added to the views that are in use. */
void match_views_add(struct match_queue *q, struct match_msg *m);
void match_views_remove(struct match_queue *q, struct match_msg *m);

static inline bool match_fits(const struct match_recv *r, const void *source,
			      uint64_t tag)
{
	return ((r->tag ^ tag) & ~r->ignore) == 0 && (!r->source || r->source == source);
}

#endif
