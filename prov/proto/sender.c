/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom matching knows; see sender.h. A hash by address that doubles when senders
 * outnumber buckets. */
#include "config.h"

#include "prov/proto/sender.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#define BUCKETS_FIRST 16

static struct list *buckets_alloc(uint32_t count)
{
	struct list *b = malloc(count * sizeof(*b));

	for (uint32_t i = 0; b && i < count; i++) {
		list_init(&b[i]);
	}
	return b;
}

int sender_table_init(struct sender_table *t)
{
	*t = (struct sender_table){.mask = BUCKETS_FIRST - 1};
	t->buckets = buckets_alloc(BUCKETS_FIRST);
	return t->buckets ? 0 : -FI_ENOMEM;
}

void sender_table_fini(struct sender_table *t)
{
	for (uint32_t i = 0; t->buckets && i <= t->mask; i++) {
		struct list *n;

		while ((n = list_pop_front(&t->buckets[i]))) {
			free(container_of(n, struct sender, chain));
		}
	}
	free(t->buckets);
	t->buckets = NULL;
}

/* Without memory the old buckets go on serving, only slower. */
static void table_double(struct sender_table *t)
{
	uint32_t mask = 2 * t->mask + 1;
	struct list *b = buckets_alloc(mask + 1);

	if (!b) {
		return;
	}
	for (uint32_t i = 0; i <= t->mask; i++) {
		struct list *n;

		while ((n = list_pop_front(&t->buckets[i]))) {
			struct sender *s = container_of(n, struct sender, chain);

			list_push_back(&b[wire_addr_hash(&s->addr) & mask], n);
		}
	}
	free(t->buckets);
	t->buckets = b;
	t->mask = mask;
}

struct sender *sender_get(struct sender_table *t, const struct wire_addr *addr)
{
	struct wire_addr name = *addr;
	struct sender *s;
	uint32_t hash;

	name.context = 0;
	hash = wire_addr_hash(&name);
	list_foreach (n, &t->buckets[hash & t->mask]) {
		s = container_of(n, struct sender, chain);
		if (wire_addr_equal(&s->addr, &name)) {
			s->refs++;
			return s;
		}
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		return NULL;
	}
	if (t->count > t->mask) {
		table_double(t);
	}
	t->count++;
	s->addr = name;
	s->refs = 1;
	list_push_back(&t->buckets[hash & t->mask], &s->chain);
	return s;
}

/* One name of a name: no chain is longer. */
void sender_put(struct sender_table *t, struct sender *s)
{
	while (s && --s->refs == 0) {
		struct sender *is = s->is;

		list_remove(&s->chain);
		t->count--;
		free(s);
		s = is;
	}
}

void sender_rename(struct sender_table *t, struct sender *s, struct sender *is)
{
	struct sender *before = s->is;

	sender_ref(is);
	s->is = is;
	if (is->is == s) { /* the names have changed places */
		is->is = NULL;
		sender_put(t, s);
	}
	if (before) {
		sender_put(t, before);
	}
}
