/* SPDX-License-Identifier: BSD-2-Clause */
/* See nodes.h. */
#include "config.h"

#include <stdlib.h>

#include "coll/plan/nodes.h"

/* One piece of memory: the struct, then its four tables. */
struct nodes_memory {
	struct plan_nodes nodes;
	int32_t table[];
};

static bool leads_good(const int32_t *lead, int32_t size)
{
	for (int32_t r = 0; r < size; r++) {
		if (lead[r] < 0 || lead[r] > r || lead[lead[r]] != lead[r])
			return false;
	}
	return size > 0;
}

struct plan_nodes *plan_nodes_make(const int32_t *lead, int32_t size)
{
	struct nodes_memory *m;
	int32_t *of, *index, *first, *member;
	size_t n = (size_t)size;

	if (!leads_good(lead, size))
		return NULL;
	m = calloc(1, sizeof(*m) + (4 * n + 1) * sizeof(int32_t));
	if (!m)
		return NULL;
	of = m->table;
	index = of + n;
	member = index + n;
	first = member + n;
	/* first[i + 1] counts the ranks of node i, then says where they end. */
	for (int32_t r = 0; r < size; r++) {
		of[r] = lead[r] == r ? m->nodes.count++ : of[lead[r]];
		index[r] = first[of[r] + 1]++;
	}
	for (int32_t i = 0; i < m->nodes.count; i++) {
		if (first[i + 1] > m->nodes.most)
			m->nodes.most = first[i + 1];
		first[i + 1] += first[i];
	}
	m->nodes.even = size % m->nodes.most ? 0 : m->nodes.most;
	for (int32_t r = 0; r < size; r++) {
		member[first[of[r]] + index[r]] = r;
		if (m->nodes.even && of[r] != r / m->nodes.even)
			m->nodes.even = 0;
	}
	m->nodes.of = of;
	m->nodes.index = index;
	m->nodes.first = first;
	m->nodes.member = member;
	return &m->nodes;
}

/* The lowest rank of rank r's node. */
static int32_t fake_lead(enum plan_layout layout, int32_t r, int32_t size, int32_t per,
			 const int32_t *lead)
{
	const uint32_t draw = (uint32_t)r * UINT32_C(2654435761) + (uint32_t)size;

	switch (layout) {
	case PLAN_LAYOUT_BLOCKS:
		return r - r % per;
	case PLAN_LAYOUT_ROUND:
		return r % per;
	default:
		/* A new node, or that of some rank before. */
		if (r == 0 || (draw >> 16) % (uint32_t)per == 0)
			return r;
		return lead[(draw >> 8) % (uint32_t)r];
	}
}

struct plan_nodes *plan_nodes_fake(enum plan_layout layout, int32_t size, int32_t per)
{
	int32_t *lead = calloc(size > 0 ? (size_t)size : 1, sizeof(*lead));
	struct plan_nodes *nodes = NULL;

	if (lead && per > 0) {
		for (int32_t r = 0; r < size; r++)
			lead[r] = fake_lead(layout, r, size, per, lead);
		nodes = plan_nodes_make(lead, size);
	}
	free(lead);
	return nodes;
}
