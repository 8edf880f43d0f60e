/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows and hash of an address vector; see av_table.h. */
#include "config.h"

#include "prov/fi/av_table.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#define ROOM_FIRST 16

void av_table_init(struct av_table *t)
{
	memset(t, 0, sizeof(*t));
}

void av_table_fini(struct av_table *t)
{
	free(t->rows);
	free(t->buckets);
	memset(t, 0, sizeof(*t));
}

static uint32_t *bucket_of(const struct av_table *t, uint32_t hash)
{
	return &t->buckets[hash & (t->bucket_count - 1)];
}

/* A bucket for each row there is room for. */
static int buckets_grow(struct av_table *t, uint32_t room)
{
	uint32_t *buckets = malloc(room * sizeof(*buckets));

	if (!buckets)
		return -FI_ENOMEM;
	memset(buckets, 0xff, room * sizeof(*buckets));
	free(t->buckets);
	t->buckets = buckets;
	t->bucket_count = room;
	for (uint32_t i = 0; i < t->limit; i++) {
		struct av_row *row = &t->rows[i];
		uint32_t *head;

		if (!row->used || !row->first)
			continue;
		head = bucket_of(t, row->hash);
		row->next = *head;
		*head = i;
	}
	return 0;
}

int av_table_reserve(struct av_table *t, size_t count)
{
	uint32_t room = t->room ? t->room : ROOM_FIRST;
	struct av_row *rows;

	if (count <= t->room && t->bucket_count)
		return 0;
	if (count > AV_TABLE_NONE / 2)
		return -FI_ENOMEM;
	while (room < count)
		room *= 2;
	rows = realloc(t->rows, room * sizeof(*rows));
	if (!rows)
		return -FI_ENOMEM;
	t->rows = rows;
	t->room = room;
	return buckets_grow(t, room);
}

static uint32_t table_find(const struct av_table *t, const struct wire_addr *addr,
			   uint32_t hash)
{
	uint32_t i;

	if (!t->bucket_count)
		return AV_TABLE_NONE;
	for (i = *bucket_of(t, hash); i != AV_TABLE_NONE; i = t->rows[i].next) {
		if (t->rows[i].hash == hash && wire_addr_equal(&t->rows[i].addr, addr))
			return i;
	}
	return AV_TABLE_NONE;
}

uint32_t av_table_find(const struct av_table *t, const struct wire_addr *addr)
{
	return table_find(t, addr, wire_addr_hash(addr));
}

static uint32_t lowest_free(const struct av_table *t)
{
	uint32_t i = t->lowest;

	while (i < t->limit && t->rows[i].used)
		i++;
	return i;
}

/* The link in a bucket's list that leads to `index`. */
static uint32_t *link_to(struct av_table *t, uint32_t hash, uint32_t index)
{
	uint32_t *link = bucket_of(t, hash);

	while (*link != index)
		link = &t->rows[*link].next;
	return link;
}

/* `to` takes the place of `from` at the head of their address's chain. */
static void first_replace(struct av_table *t, uint32_t from, uint32_t to)
{
	struct av_row *old = &t->rows[from], *row = &t->rows[to];

	*link_to(t, old->hash, from) = to;
	row->next = old->next;
	row->last = old->last;
	row->first = true;
	old->first = false;
}

static void twin_join(struct av_table *t, uint32_t first, uint32_t index)
{
	struct av_row *head = &t->rows[first], *row = &t->rows[index];
	uint32_t at = first;

	if (index < first) {
		first_replace(t, first, index);
		row->twin = first;
		return;
	}
	/* Indices mostly come in ascending order. */
	if (head->last < index)
		at = head->last;
	while (t->rows[at].twin < index)
		at = t->rows[at].twin;
	row->twin = t->rows[at].twin;
	t->rows[at].twin = index;
	if (row->twin == AV_TABLE_NONE)
		head->last = index;
}

int av_table_insert(struct av_table *t, const struct wire_addr *addr, uint32_t *index)
{
	uint32_t hash = wire_addr_hash(addr);
	uint32_t i, first;
	int rc;

	if (t->count == t->room) {
		rc = av_table_reserve(t, (size_t)t->room + 1);
		if (rc)
			return rc;
	}
	first = table_find(t, addr, hash);
	i = lowest_free(t);
	if (i == t->limit)
		t->limit++;
	t->lowest = i + 1;
	t->count++;
	t->rows[i] = (struct av_row){
		.addr = *addr,
		.user_id = i,
		.hash = hash,
		.next = AV_TABLE_NONE,
		.twin = AV_TABLE_NONE,
		.last = i,
		.used = true,
	};
	if (first != AV_TABLE_NONE) {
		twin_join(t, first, i);
	} else {
		t->rows[i].first = true;
		t->rows[i].next = *bucket_of(t, hash);
		*bucket_of(t, hash) = i;
	}
	*index = i;
	return 0;
}

int av_table_place(struct av_table *t, const struct wire_addr *addr, uint32_t index)
{
	uint32_t got;
	int rc;

	if (av_table_addr(t, index))
		return -FI_EINVAL;
	rc = av_table_reserve(t, (size_t)index + 1);
	if (rc)
		return rc;
	while (t->limit < index)
		t->rows[t->limit++].used = false;
	t->lowest = index; /* the first that insert looks at */
	return av_table_insert(t, addr, &got);
}

static void twin_leave(struct av_table *t, uint32_t first, uint32_t index)
{
	uint32_t at = first;

	while (t->rows[at].twin != index)
		at = t->rows[at].twin;
	t->rows[at].twin = t->rows[index].twin;
	if (t->rows[first].last == index)
		t->rows[first].last = at;
}

void av_table_remove(struct av_table *t, uint32_t index)
{
	struct av_row *row = &t->rows[index];

	if (!row->first)
		twin_leave(t, table_find(t, &row->addr, row->hash), index);
	else if (row->twin != AV_TABLE_NONE)
		first_replace(t, index, row->twin);
	else
		*link_to(t, row->hash, index) = row->next;
	row->used = false;
	row->first = false;
	t->count--;
	if (index < t->lowest)
		t->lowest = index;
	while (t->limit && !t->rows[t->limit - 1].used)
		t->limit--;
}
