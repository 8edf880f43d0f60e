/* SPDX-License-Identifier: BSD-2-Clause */
/* Matching among many; see match_index.h. */
#include "config.h"

#include "prov/proto/match_index.h"

#include <stdlib.h>

#define LOG2_MIN 6
#define LOG2_MAX 17

/* tag: without what is ignored. */
static struct list *bucket_of(const struct match_table *t, const void *source,
			      uint64_t tag, uint64_t ignore)
{
	uint64_t key = tag ^ ((uint64_t)(uintptr_t)source >> 4) ^ (ignore << 1);

	return &t->buckets[match_hash_of(key, (1u << t->log2) - 1)];
}

/* The table, which is empty, is to hold `count` entries and some more. False: there is no
 * memory for any. */
static bool table_reserve(struct match_table *t, uint32_t count)
{
	uint32_t log2 = LOG2_MIN;
	struct list *more;

	while (log2 < LOG2_MAX && (1u << log2) < 2 * count) {
		log2++;
	}
	more = t->buckets && log2 <= t->log2 ? NULL : malloc(sizeof(*more) << log2);
	if (more) {
		for (uint32_t i = 0; i < 1u << log2; i++) {
			list_init(&more[i]);
		}
		free(t->buckets);
		t->buckets = more;
		t->log2 = log2;
	}
	if (!t->buckets) {
		return false;
	}
	t->crowded_at = t->log2 == LOG2_MAX ? UINT32_MAX : 2u << t->log2;
	if (t->crowded_at < 2 * count) { /* as often as if there were memory */
		t->crowded_at = 2 * count;
	}
	return true;
}

struct match_index *match_index_open(void)
{
	struct match_index *x = calloc(1, sizeof(*x));

	if (x) {
		list_init(&x->others);
	}
	return x;
}

void match_index_close(struct match_index *x)
{
	if (!x) {
		return;
	}
	free(x->wilds.buckets);
	for (int i = 0; i < MATCH_VIEWS; i++) {
		free(x->views[i].table.buckets);
	}
	free(x);
}

/* ---- receives ---------------------------------------------------------------------- */

/* NULL: no place for another one. */
static struct match_class *class_of(struct match_index *x, uint64_t ignore)
{
	struct match_class *c;

	for (uint32_t i = 0; i < x->class_count; i++) {
		if (x->classes[i].ignore == ignore) {
			return &x->classes[i];
		}
	}
	if (x->class_count == MATCH_CLASSES) {
		return NULL;
	}
	c = &x->classes[x->class_count++];
	*c = (struct match_class){.ignore = ignore};
	return c;
}

/* Its list in the index. */
static struct list *wild_home(struct match_index *x, const struct match_recv *r)
{
	struct match_class *c = class_of(x, r->ignore);

	if (!c) {
		x->other_count++;
		return &x->others;
	}
	c->any |= !r->source;
	c->directed |= r->source != NULL;
	return bucket_of(&x->wilds, r->source, r->tag & ~r->ignore, r->ignore);
}

void match_wilds_build(struct match_queue *q)
{
	struct match_index *x = q->index;

	/* Out of the old buckets, which may be given back. */
	if (!q->wild_few) {
		list_foreach (n, &q->wild) {
			list_remove(&container_of(n, struct match_recv, node)->by_tag);
		}
	}
	q->wild_few = table_reserve(&x->wilds, q->wild_count) ? 0 : 2 * q->wild_count;
	x->class_count = 0;
	x->other_count = 0;
	x->wilds_built_at = q->stamp;
	if (q->wild_few) { /* no memory: later again */
		return;
	}
	list_foreach (n, &q->wild) {
		struct match_recv *r = container_of(n, struct match_recv, node);

		list_push_back(wild_home(x, r), &r->by_tag);
	}
}

/* Worth the time, which is that of twice the posts that there were since the last: the
 * table is small for what it holds, or classes may be empty that others need. */
static bool wilds_need_build(const struct match_queue *q)
{
	const struct match_index *x = q->index;

	return q->stamp - x->wilds_built_at > q->wild_count / 2 &&
	       (q->wild_count > x->wilds.crowded_at || x->other_count > MATCH_FEW);
}

void match_wilds_add(struct match_queue *q, struct match_recv *r)
{
	struct match_index *x = q->index;

	list_push_back(wild_home(x, r), &r->by_tag);
	if (__builtin_expect(wilds_need_build(q), 0)) {
		match_wilds_build(q);
	}
}

void match_wilds_move(struct match_queue *q, struct match_recv *r)
{
	struct list *home, *at;

	list_remove(&r->by_tag);
	home = wild_home(q->index, r);
	at = home->prev;
	while (at != home &&
	       container_of(at, struct match_recv, by_tag)->stamp > r->stamp) {
		at = at->prev;
	}
	list_insert_after(at, &r->by_tag);
}

static struct match_recv *class_find(const struct match_index *x,
				     const struct match_class *c, const void *source,
				     uint64_t tag, uint64_t before)
{
	struct list *bucket = bucket_of(&x->wilds, source, tag & ~c->ignore, c->ignore);

	list_foreach (n, bucket) {
		struct match_recv *r = container_of(n, struct match_recv, by_tag);

		if (r->stamp >= before) {
			break;
		}
		if (r->source == source && r->ignore == c->ignore &&
		    ((r->tag ^ tag) & ~c->ignore) == 0) {
			return r;
		}
	}
	return NULL;
}

struct match_recv *match_wilds_find(struct match_queue *q, const void *source,
				    uint64_t tag, struct match_recv *best)
{
	const struct match_index *x = q->index;
	uint64_t before = best ? best->stamp : UINT64_MAX;
	struct match_recv *r;

	for (uint32_t i = 0; i < 2 * x->class_count; i++) {
		const struct match_class *c = &x->classes[i / 2];
		bool directed = i % 2;

		r = (directed ? c->directed : c->any)
			    ? class_find(x, c, directed ? source : NULL, tag, before)
			    : NULL;
		if (r) {
			best = r;
			before = r->stamp;
		}
	}
	list_foreach (n, &x->others) {
		r = container_of(n, struct match_recv, by_tag);
		if (r->stamp >= before) {
			break;
		}
		if (match_fits(r, source, tag)) {
			return r;
		}
	}
	return best;
}

/* ---- messages ---------------------------------------------------------------------- */

static struct list *view_bucket(const struct match_view *v, const void *source,
				uint64_t tag)
{
	return bucket_of(&v->table, v->directed ? source : NULL, tag & ~v->ignore,
			 v->ignore);
}

/* Puts all messages into view i, in their order. */
static bool view_build(struct match_queue *q, uint32_t i, uint64_t ignore, bool directed)
{
	struct match_view *v = &q->index->views[i];

	if (q->views & 1u << i) {
		list_foreach (n, &q->msgs) {
			list_remove(&container_of(n, struct match_msg, all)->by_view[i]);
		}
		q->views &= ~(1u << i);
	}
	if (!table_reserve(&v->table, q->msg_count)) {
		return false;
	}
	v->ignore = ignore;
	v->directed = directed;
	q->views |= 1u << i;
	list_foreach (n, &q->msgs) {
		struct match_msg *m = container_of(n, struct match_msg, all);

		list_push_back(view_bucket(v, m->source, m->tag), &m->by_view[i]);
	}
	return true;
}

/* For receives like r; MATCH_VIEWS: there is none, and it isn't worth to make one. */
static uint32_t view_for(struct match_queue *q, const struct match_recv *r)
{
	struct match_index *x = q->index;
	bool directed = r->source != NULL;
	uint32_t i, free_one = MATCH_VIEWS;

	for (i = 0; i < MATCH_VIEWS; i++) {
		if (!(q->views & 1u << i)) {
			free_one = i;
		} else if (x->views[i].ignore == r->ignore &&
			   x->views[i].directed == directed) {
			return i;
		}
	}
	i = free_one;
	if (i == MATCH_VIEWS) { /* another one is given up, now and then */
		if (x->scanned < 4 * (uint64_t)q->msg_count) {
			return MATCH_VIEWS;
		}
		i = x->victim++ % MATCH_VIEWS;
	}
	x->scanned = 0;
	return view_build(q, i, r->ignore, directed) ? i : MATCH_VIEWS;
}

struct match_msg *match_views_find(struct match_queue *q, const struct match_recv *r)
{
	uint32_t i = view_for(q, r);
	uint64_t compared = 0;

	if (i == MATCH_VIEWS) {
		list_foreach (n, &q->msgs) {
			struct match_msg *m = container_of(n, struct match_msg, all);

			compared++;
			if (match_fits(r, m->source, m->tag)) {
				q->index->scanned += compared;
				return m;
			}
		}
		q->index->scanned += compared;
		return NULL;
	}
	list_foreach (n, view_bucket(&q->index->views[i], r->source, r->tag)) {
		struct match_msg *m = container_of(n - i, struct match_msg, by_view[0]);

		if (match_fits(r, m->source, m->tag)) {
			return m;
		}
	}
	return NULL;
}

void match_views_add(struct match_queue *q, struct match_msg *m)
{
	for (uint32_t i = 0; i < MATCH_VIEWS; i++) {
		struct match_view *v = &q->index->views[i];

		if (!(q->views & 1u << i)) {
			continue;
		}
		list_push_back(view_bucket(v, m->source, m->tag), &m->by_view[i]);
		if (q->msg_count > v->table.crowded_at) {
			view_build(q, i, v->ignore, v->directed);
		}
	}
}

void match_views_remove(struct match_queue *q, struct match_msg *m)
{
	for (uint32_t i = 0; i < MATCH_VIEWS; i++) {
		if (q->views & 1u << i) {
			list_remove(&m->by_view[i]);
		}
	}
}
