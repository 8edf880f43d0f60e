/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of the peer: remembered, fetched, dropped. Rules D1, D2. */
#include "config.h"

#include "prov/wire/verbs/verbs_rkey.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rma.h"

/* Torn reads in a row before a peer is thought to write nonsense. */
#define RKEY_AGAIN_MAX 10000u

static struct list *bucket_of(struct verbs_rkeys *r, uint8_t space, uint64_t key)
{
	uint64_t h = (key + space) * UINT64_C(0x9e3779b97f4a7c15);

	return &r->bucket[h >> 56 & (VERBS_RKEY_BUCKETS - 1)];
}

void verbs_rkeys_init(struct verbs_link *link)
{
	struct verbs_rkeys *r = &link->rkeys;

	for (uint32_t i = 0; i < VERBS_RKEY_BUCKETS; i++)
		list_init(&r->bucket[i]);
	list_init(&r->known);
	list_init(&r->fetches);
}

static void forget(struct verbs_rkeys *r, struct verbs_rkey *k)
{
	struct verbs_link *link = container_of(r, struct verbs_link, rkeys);

	if (link->quick.rkey == k)
		verbs_quick_stop(link);
	list_remove(&k->chain);
	list_remove(&k->where);
	r->count--;
}

void verbs_rkeys_fini(struct verbs_link *link)
{
	struct verbs_rkeys *r = &link->rkeys;

	for (uint32_t i = 0; i < VERBS_RKEY_BUCKETS; i++)
		list_foreach_safe (n, tmp, &r->bucket[i]) {
			struct verbs_rkey *k = container_of(n, struct verbs_rkey, chain);

			forget(r, k);
			free(k);
		}
}

/* The oldest that nobody uses goes. */
static void make_room(struct verbs_rkeys *r)
{
	list_foreach (n, &r->known) {
		struct verbs_rkey *k = container_of(n, struct verbs_rkey, where);

		if (k->users)
			continue;
		forget(r, k);
		free(k);
		return;
	}
}

struct verbs_rkey *verbs_rkey_known(struct verbs_link *link, uint8_t space, uint64_t key)
{
	list_foreach (n, bucket_of(&link->rkeys, space, key)) {
		struct verbs_rkey *k = container_of(n, struct verbs_rkey, chain);

		if (k->entry.key == key && k->entry.space == space)
			return k->state == VERBS_RKEY_KNOWN ? k : NULL;
	}
	return NULL;
}

struct verbs_rkey *verbs_rkey_get(struct verbs_link *link, uint8_t space, uint64_t key)
{
	struct verbs_rkeys *r = &link->rkeys;
	struct list *bucket = bucket_of(r, space, key);
	struct verbs_rkey *k;

	list_foreach (n, bucket) {
		k = container_of(n, struct verbs_rkey, chain);
		if (k->entry.key == key && k->entry.space == space) {
			k->users++;
			return k;
		}
	}
	if (r->count >= VERBS_RKEY_MAX)
		make_room(r);
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->entry.key = key;
	k->entry.space = space;
	k->users = 1;
	list_init(&k->waiting);
	list_push_front(bucket, &k->chain);
	list_push_back(&r->fetches, &k->where);
	r->count++;
	verbs_rkeys_run(link);
	return k;
}

void verbs_rkey_refused(struct verbs_link *link, struct verbs_rkey *k)
{
	if (k->state != VERBS_RKEY_KNOWN)
		return;
	k->state = VERBS_RKEY_GONE;
	k->err = -FI_EACCES;
	forget(&link->rkeys, k);
}

/* ---- fetching -----------------------------------------------------------------------
 */

static struct verbs_rkey *fetched(struct verbs_rkeys *r)
{
	return container_of(r->fetches.next, struct verbs_rkey, where);
}

static void fetch_end(struct verbs_link *link, struct verbs_rkey *k, int err)
{
	struct verbs_rkeys *r = &link->rkeys;
	struct list *n;

	r->root_fresh = false;
	r->level = 0;
	r->again = 0;
	k->users++; /* of this very function */
	if (err) {
		forget(r, k);
		k->state = VERBS_RKEY_GONE;
		k->err = err;
	} else {
		list_remove(&k->where);
		list_push_back(&r->known, &k->where);
		k->state = VERBS_RKEY_KNOWN;
		if (k->entry.access & (VERBS_KEYS_COUNT_EP | VERBS_KEYS_COUNT_MR))
			verbs_quick_stop(link);
		if (k->entry.access & VERBS_KEYS_COUNT_EP)
			link->events |= MEM_EVENTS_EP;
		if (k->entry.access & VERBS_KEYS_COUNT_MR)
			link->events |= MEM_EVENTS_MR;
	}
	while ((n = list_pop_front(&k->waiting)))
		verbs_op_key(container_of(n, struct verbs_op, node));
	verbs_atomics_run(link);
	verbs_rkey_put(k);
}

/* The queue pair that takes two reads just now; NULL: none. */
static const struct verbs_qp *reader(struct verbs_link *link)
{
	struct verbs_rkeys *r = &link->rkeys;

	r->spare = false;
	if (verbs_chan_can_read(link, 2))
		return link->chan.qp;
	r->spare = true;
	return verbs_spare_qp(link, 2);
}

static bool table_read(struct verbs_link *link, unsigned at, uint64_t addr, uint32_t rkey,
		       size_t len, bool signal)
{
	return link->rkeys.spare ? verbs_spare_read(link, at, addr, rkey, len, signal)
				 : verbs_chan_read(link, at, addr, rkey, len, signal);
}

static const void *table_at(const struct verbs_link *link, unsigned at)
{
	return link->rkeys.spare ? verbs_spare_read_at(link, at)
				 : verbs_chan_read_at(link, at);
}

static bool root_read(struct verbs_link *link)
{
	const struct verbs_qp *qp = reader(link);

	link->rkeys.root_reading =
		qp && table_read(link, 0, link->peer.table_addr,
				 link->peer.rail[qp->peer_rail].table_key,
				 verbs_keys_root_size(), true);
	return link->rkeys.root_reading;
}

/* Both buckets of the level that is next. */
static bool level_read(struct verbs_link *link, const struct verbs_rkey *k)
{
	struct verbs_rkeys *r = &link->rkeys;
	const struct verbs_qp *qp = reader(link);
	size_t len = verbs_keys_bucket_size(r->view.rails);
	uint32_t level = r->level - 1;
	uint32_t rkey;

	if (!qp)
		return false;
	rkey = r->view.level[level].rkey[qp->peer_rail];
	for (unsigned c = 0; c < 2; c++)
		if (!table_read(link, c,
				verbs_keys_bucket_at(&r->view, level, c, k->entry.space,
						     k->entry.key),
				rkey, len, c == 1))
			return false;
	return true;
}

void verbs_rkeys_run(struct verbs_link *link)
{
	struct verbs_rkeys *r = &link->rkeys;

	if (r->reading || list_empty(&r->fetches))
		return;
	if (r->root_known && r->level == 0)
		r->level = r->view.levels;
	r->reading = r->root_known && r->level ? level_read(link, fetched(r))
					       : root_read(link);
}

static void root_take(struct verbs_link *link, struct verbs_rkey *k)
{
	struct verbs_rkeys *r = &link->rkeys;
	int ret = verbs_keys_root_read(table_at(link, 0), link->peer.rails, &r->view);

	r->root_reading = false;
	if (ret == -EAGAIN && ++r->again < RKEY_AGAIN_MAX)
		return;
	if (ret) {
		fetch_end(link, k, -EPROTO);
		return;
	}
	r->root_known = true;
	r->root_fresh = true;
	r->level = r->view.levels;
	r->again = 0;
}

static void level_take(struct verbs_link *link, struct verbs_rkey *k)
{
	struct verbs_rkeys *r = &link->rkeys;
	bool torn = false;

	for (unsigned c = 0; c < 2; c++) {
		enum verbs_keys_found found =
			verbs_keys_bucket_read(table_at(link, c), r->view.rails,
					       k->entry.space, k->entry.key, &k->entry);

		if (found == VERBS_KEYS_FOUND) {
			fetch_end(link, k, 0);
			return;
		}
		torn = torn || found == VERBS_KEYS_TORN;
	}
	if (torn && ++r->again < RKEY_AGAIN_MAX)
		return;
	r->again = 0;
	if (--r->level > 0)
		return;
	/* Not in what was remembered of the table: it may have grown. */
	if (r->root_fresh)
		fetch_end(link, k, -FI_ENOKEY);
	else
		r->root_known = false;
}

void verbs_rkeys_read(struct verbs_link *link, bool spare)
{
	struct verbs_rkeys *r = &link->rkeys;

	if (!r->reading || r->spare != spare)
		return;
	r->reading = false;
	if (list_empty(&r->fetches))
		return;
	if (r->root_reading)
		root_take(link, fetched(r));
	else
		level_take(link, fetched(r));
	verbs_rkeys_run(link);
}

void verbs_rkeys_restart(struct verbs_link *link, bool spare)
{
	if (link->rkeys.reading && link->rkeys.spare != spare)
		return;
	link->rkeys.reading = false;
	link->rkeys.root_reading = false;
	verbs_rkeys_run(link);
}
