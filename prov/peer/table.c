/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of peers: a hash by address that doubles when peers outnumber buckets. Grows
 * at first contact with a peer only. */
#include "config.h"

#include "prov/peer/peer.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#define PEER_BUCKETS_FIRST 16

static struct list *buckets_alloc(uint32_t count)
{
	struct list *b = malloc(count * sizeof(*b));

	for (uint32_t i = 0; b && i < count; i++) {
		list_init(&b[i]);
	}
	return b;
}

int peer_table_init(struct peer_table *t, const struct peer_ops *ops, void *arg,
		    const struct wire_ops *wire, struct wire_ep *wep,
		    uint64_t connect_timeout, uint64_t seed)
{
	*t = (struct peer_table){.ops = ops,
				 .arg = arg,
				 .wire = wire,
				 .wep = wep,
				 .connect_timeout = connect_timeout,
				 .random = seed | 1,
				 .mask = PEER_BUCKETS_FIRST - 1};
	list_init(&t->timed);
	t->buckets = buckets_alloc(PEER_BUCKETS_FIRST);
	return t->buckets ? 0 : -FI_ENOMEM;
}

void peer_table_fini(struct peer_table *t)
{
	for (uint32_t i = 0; t->buckets && i <= t->mask; i++) {
		struct list *n;

		while ((n = list_pop_front(&t->buckets[i]))) {
			struct peer *p = container_of(n, struct peer, chain);

			t->ops->fini(t->arg, p);
			free(p);
		}
	}
	free(t->buckets);
	t->buckets = NULL;
}

struct peer *peer_find(struct peer_table *t, const struct wire_addr *addr)
{
	struct list *bucket = &t->buckets[wire_addr_hash(addr) & t->mask];

	list_foreach (n, bucket) {
		struct peer *p = container_of(n, struct peer, chain);

		if (wire_addr_equal(&p->addr, addr)) {
			return p;
		}
	}
	return NULL;
}

/* Without memory the old buckets go on serving, only slower. */
static void table_double(struct peer_table *t)
{
	uint32_t mask = 2 * t->mask + 1;
	struct list *b = buckets_alloc(mask + 1);

	if (!b) {
		return;
	}
	for (uint32_t i = 0; i <= t->mask; i++) {
		struct list *n;

		while ((n = list_pop_front(&t->buckets[i]))) {
			struct peer *p = container_of(n, struct peer, chain);

			list_push_back(&b[wire_addr_hash(&p->addr) & mask], n);
		}
	}
	free(t->buckets);
	t->buckets = b;
	t->mask = mask;
}

struct peer *peer_get(struct peer_table *t, const struct wire_addr *addr)
{
	struct peer *p = peer_find(t, addr);

	if (p) {
		return p;
	}
	p = calloc(1, t->ops->size);
	if (!p) {
		return NULL;
	}
	p->addr = *addr;
	list_init(&p->timed);
	if (t->count > t->mask) {
		table_double(t);
	}
	t->count++;
	list_push_back(&t->buckets[wire_addr_hash(addr) & t->mask], &p->chain);
	if (!t->ops->init(t->arg, p)) {
		list_remove(&p->chain);
		t->count--;
		free(p);
		return NULL;
	}
	return p;
}

void peer_free(struct peer_table *t, struct peer *p)
{
	list_remove(&p->timed);
	list_remove(&p->chain);
	t->count--;
	t->ops->fini(t->arg, p);
	free(p);
}

bool peer_has_links(const struct peer *p)
{
	for (int i = 0; i < PEER_EXTRA_LINKS; i++) {
		if (p->extra[i]) {
			return true;
		}
	}
	return p->link || p->dialled;
}
