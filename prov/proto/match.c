/* SPDX-License-Identifier: BSD-2-Clause */
/* Tag matching; see match.h. */
#include "config.h"

#include "prov/proto/match.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/proto/match_index.h"

static uint32_t mask_for(uint32_t size)
{
	uint32_t buckets = 16;

	while (buckets < size && buckets < (1u << 17)) {
		buckets *= 2;
	}
	return buckets - 1;
}

/* NULL: no memory. */
static struct list *recvs_new(uint32_t mask)
{
	struct list *recvs = malloc(((size_t)mask + 1) * sizeof(*recvs));

	for (uint32_t i = 0; recvs && i <= mask; i++) {
		list_init(&recvs[i]);
	}
	return recvs;
}

int match_queue_init(struct match_queue *q, uint32_t size)
{
	*q = (struct match_queue){0};
	list_init(&q->wild);
	list_init(&q->msgs);
	q->wild_few = MATCH_FEW;
	q->mask = mask_for(size);
	q->recvs = recvs_new(q->mask);
	q->index = match_index_open();
	if (!q->recvs || !q->index) {
		match_queue_fini(q);
		return -FI_ENOMEM;
	}
	return 0;
}

void match_queue_fini(struct match_queue *q)
{
	match_index_close(q->index);
	free(q->recvs);
	q->index = NULL;
	q->recvs = NULL;
}

void match_queue_reserve(struct match_queue *q, uint32_t size)
{
	uint32_t old_mask = q->mask;
	struct list *old = q->recvs, *recvs;

	recvs = mask_for(size) > old_mask ? recvs_new(mask_for(size)) : NULL;
	if (!recvs) {
		return;
	}
	q->recvs = recvs;
	q->mask = mask_for(size);
	/* What comes together in a bucket was together in one, so it keeps its order. */
	for (uint32_t i = 0; i <= old_mask; i++) {
		struct list *n;

		while ((n = list_pop_front(&old[i]))) {
			struct match_recv *r = container_of(n, struct match_recv, node);

			list_push_back(&recvs[match_hash(q, r->source, r->tag)], n);
		}
	}
	free(old);
}

static struct match_recv *find_exact(struct match_queue *q, const void *source,
				     uint64_t tag)
{
	struct list *bucket = &q->recvs[match_hash(q, source, tag)];

	list_foreach (n, bucket) {
		struct match_recv *r = container_of(n, struct match_recv, node);

		if (r->tag == tag && r->source == source) {
			return r;
		}
	}
	return NULL;
}

/* Among few: the earliest, if it was posted before `best`; else best. */
static struct match_recv *find_wild(struct match_queue *q, const void *source,
				    uint64_t tag, struct match_recv *best)
{
	uint64_t before = best ? best->stamp : UINT64_MAX;

	list_foreach (n, &q->wild) {
		struct match_recv *r = container_of(n, struct match_recv, node);

		if (r->stamp > before) {
			return best;
		}
		if (match_fits(r, source, tag)) {
			return r;
		}
	}
	return best;
}

struct match_recv *match_recv_find(struct match_queue *q, const void *source,
				   uint64_t tag)
{
	struct match_recv *best = find_exact(q, NULL, tag), *r;

	if (q->directed_count) {
		r = find_exact(q, source, tag);
		if (r && (!best || r->stamp < best->stamp)) {
			best = r;
		}
	}
	if (q->wild_count) {
		return __builtin_expect(q->wild_few != 0, 1)
			       ? find_wild(q, source, tag, best)
			       : match_wilds_find(q, source, tag, best);
	}
	return best;
}

static __attribute__((noinline)) void wild_joins_many(struct match_queue *q,
						      struct match_recv *r)
{
	if (q->wild_few) {
		match_wilds_build(q);
	} else {
		match_wilds_add(q, r);
	}
}

/* Those with an exact tag from any source aren't counted: they are looked for always. */
void match_recv_add(struct match_queue *q, struct match_recv *r)
{
	r->stamp = q->stamp++;
	if (r->ignore) {
		q->wild_count++;
		list_push_back(&q->wild, &r->node);
		if (__builtin_expect(q->wild_count > q->wild_few, 0)) {
			wild_joins_many(q, r);
		}
		return;
	}
	q->directed_count += r->source != NULL;
	list_push_back(&q->recvs[match_hash(q, r->source, r->tag)], &r->node);
}

void match_recv_remove(struct match_queue *q, struct match_recv *r)
{
	list_unlink(&r->node);
	if (r->ignore) {
		q->wild_count--;
		if (__builtin_expect(q->wild_few == 0, 0)) {
			list_remove(&r->by_tag);
			q->wild_few = q->wild_count ? 0 : MATCH_FEW;
		}
		return;
	}
	q->directed_count -= r->source != NULL;
}

void match_recv_retarget(struct match_queue *q, struct match_recv *r, const void *source)
{
	struct list *bucket, *at;

	r->source = source;
	if (r->ignore) { /* its list is not by source, the index is */
		if (!q->wild_few) {
			match_wilds_move(q, r);
		}
		return;
	}
	bucket = &q->recvs[match_hash(q, source, r->tag)];
	list_remove(&r->node);
	at = bucket->prev;
	while (at != bucket &&
	       container_of(at, struct match_recv, node)->stamp > r->stamp) {
		at = at->prev;
	}
	list_insert_after(at, &r->node);
}

struct match_msg *match_msg_find(struct match_queue *q, const struct match_recv *r)
{
	if (q->msg_count > MATCH_FEW) {
		return match_views_find(q, r);
	}
	list_foreach (n, &q->msgs) {
		struct match_msg *m = container_of(n, struct match_msg, all);

		if (match_fits(r, m->source, m->tag)) {
			return m;
		}
	}
	return NULL;
}

void match_msg_add(struct match_queue *q, struct match_msg *m)
{
	list_push_back(&q->msgs, &m->all);
	q->msg_count++;
	if (__builtin_expect(q->views, 0)) {
		match_views_add(q, m);
	}
}

void match_msg_remove(struct match_queue *q, struct match_msg *m)
{
	list_remove(&m->all);
	q->msg_count--;
	if (__builtin_expect(q->views, 0)) {
		match_views_remove(q, m);
		if (q->msg_count == 0) {
			q->views = 0;
		}
	}
}
