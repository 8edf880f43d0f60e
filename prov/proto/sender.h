/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom matching knows messages by: one object for each address that anything was heard
 * from or is waited for. Several engines that receive through one receiver each have a
 * peer of their own for the same address, and so do the contexts of one endpoint that has
 * several; this is what these have in common. Counted; freed when nobody refers to it any
 * more.
 */
#ifndef WEFT_PROTO_SENDER_H
#define WEFT_PROTO_SENDER_H

#include <stdint.h>

#include "prov/wire/addr.h"
#include "util/list.h"

struct sender {
	struct list chain; /* sender_table.buckets */
	struct wire_addr addr;
	/* It was dialled by this name, and its door has another, which is the one that
	 * matching knows (holds a reference). NULL: none. */
	struct sender *is;
	uint32_t refs;
};

struct sender_table {
	struct list *buckets;
	uint32_t mask;
	uint32_t count;
};

/* -FI_ENOMEM. */
int sender_table_init(struct sender_table *t);
/* Whoever is still referred to goes as well. */
void sender_table_fini(struct sender_table *t);

/* Found or made, with one more reference; NULL: no memory. */
struct sender *sender_get(struct sender_table *t, const struct wire_addr *addr);
void sender_put(struct sender_table *t, struct sender *s);

static inline void sender_ref(struct sender *s)
{
	s->refs++;
}

/* By which matching knows it. */
static inline struct sender *sender_ident(struct sender *s)
{
	return __builtin_expect(s->is != NULL, 0) ? s->is : s;
}

/* s turns out to be another name of `is`, which is not s. */
void sender_rename(struct sender_table *t, struct sender *s, struct sender *is);

#endif
