/* SPDX-License-Identifier: BSD-2-Clause */
/* Tag matching; see match.h. */
#include "config.h"

#include "prov/proto/match.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

int match_queue_init(struct match_queue *q, uint32_t size)
{
	uint32_t buckets = 16;

	while (buckets < size && buckets < (1u << 16)) {
		buckets *= 2;
	}
	q->recvs = calloc(3 * (size_t)buckets, sizeof(*q->recvs));
	if (!q->recvs) {
		return -FI_ENOMEM;
	}
	q->msgs_tag = q->recvs + buckets;
	q->msgs_source = q->msgs_tag + buckets;
	for (size_t i = 0; i < 3 * (size_t)buckets; i++) {
		list_init(&q->recvs[i]);
	}
	q->mask = buckets - 1;
	q->special_count = 0;
	q->directed_count = 0;
	q->wild_count = 0;
	q->msg_count = 0;
	q->stamp = 0;
	list_init(&q->wild);
	list_init(&q->msgs);
	return 0;
}

void match_queue_fini(struct match_queue *q)
{
	free(q->recvs);
	q->recvs = NULL;
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

static struct match_recv *find_wild(struct match_queue *q, const void *source,
				    uint64_t tag, uint64_t before)
{
	list_foreach (n, &q->wild) {
		struct match_recv *r = container_of(n, struct match_recv, node);

		if (r->stamp > before) {
			return NULL;
		}
		if (((r->tag ^ tag) & ~r->ignore) == 0 &&
		    (!r->source || r->source == source)) {
			return r;
		}
	}
	return NULL;
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
		r = find_wild(q, source, tag, best ? best->stamp : UINT64_MAX);
		if (r) {
			best = r;
		}
	}
	return best;
}

/* Those with an exact tag from any source aren't counted: they are looked for always. */
static void count_change(struct match_queue *q, const struct match_recv *r, uint32_t by)
{
	if (r->ignore) {
		q->wild_count += by;
	} else if (r->source) {
		q->directed_count += by;
	} else {
		return;
	}
	q->special_count += by;
}

void match_recv_add(struct match_queue *q, struct match_recv *r)
{
	struct list *at =
		r->ignore ? &q->wild : &q->recvs[match_hash(q, r->source, r->tag)];

	r->stamp = q->stamp++;
	count_change(q, r, 1);
	list_push_back(at, &r->node);
}

void match_recv_remove(struct match_queue *q, struct match_recv *r)
{
	count_change(q, r, UINT32_MAX); /* minus one */
	list_remove(&r->node);
}

void match_recv_retarget(struct match_queue *q, struct match_recv *r, const void *source)
{
	struct list *bucket, *at;

	r->source = source;
	if (r->ignore) {
		return; /* its list is not by source */
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
	struct list *bucket;

	if (q->msg_count == 0) {
		return NULL;
	}
	if (r->ignore) {
		list_foreach (n, &q->msgs) {
			struct match_msg *m = container_of(n, struct match_msg, all);

			if (((r->tag ^ m->tag) & ~r->ignore) == 0 &&
			    (!r->source || r->source == m->source)) {
				return m;
			}
		}
		return NULL;
	}
	if (r->source) {
		bucket = &q->msgs_source[match_hash(q, r->source, r->tag)];
		list_foreach (n, bucket) {
			struct match_msg *m =
				container_of(n, struct match_msg, by_source);

			if (m->tag == r->tag && m->source == r->source) {
				return m;
			}
		}
		return NULL;
	}
	bucket = &q->msgs_tag[match_hash(q, NULL, r->tag)];
	list_foreach (n, bucket) {
		struct match_msg *m = container_of(n, struct match_msg, by_tag);

		if (m->tag == r->tag) {
			return m;
		}
	}
	return NULL;
}

void match_msg_add(struct match_queue *q, struct match_msg *m)
{
	list_push_back(&q->msgs, &m->all);
	list_push_back(&q->msgs_tag[match_hash(q, NULL, m->tag)], &m->by_tag);
	list_push_back(&q->msgs_source[match_hash(q, m->source, m->tag)], &m->by_source);
	q->msg_count++;
}

void match_msg_remove(struct match_queue *q, struct match_msg *m)
{
	list_remove(&m->all);
	list_remove(&m->by_tag);
	list_remove(&m->by_source);
	q->msg_count--;
}
