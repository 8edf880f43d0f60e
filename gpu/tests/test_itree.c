/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges: every answer against a list that is searched from end to end, over random
 * sequences of calls. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/itree.h"
#include "util/tap.h"

#define NODES 200
#define SPACE 500 /* addresses: small, so that much overlaps */

static uint64_t state;

static uint64_t next(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

struct model {
	struct itree tree;
	struct itree_node node[NODES];
	bool in[NODES];
};

static bool meets(const struct itree_node *n, uint64_t start, uint64_t end)
{
	return n->start < end && n->end > start;
}

/* All that meet come, each once, by start; and one covers where one does. */
static bool same(const struct model *m, uint64_t start, uint64_t end)
{
	const struct itree_node *found = NULL, *last = NULL;
	const struct itree_node *cover = itree_cover(&m->tree, start, end);
	int want = 0, got = 0;
	bool covered = false;

	for (int i = 0; i < NODES; i++) {
		want += m->in[i] && meets(&m->node[i], start, end);
		covered = covered || (m->in[i] && m->node[i].start <= start &&
				      m->node[i].end >= end);
	}
	while ((found = itree_meet(&m->tree, start, end, found))) {
		if (!meets(found, start, end) || !m->in[found - m->node] ||
		    (last && last->start > found->start) || ++got > want)
			return false;
		last = found;
	}
	if (got != want || covered != (cover != NULL))
		return false;
	return !cover ||
	       (m->in[cover - m->node] && cover->start <= start && cover->end >= end);
}

static void step(struct model *m)
{
	const int i = (int)next(NODES);

	if (m->in[i]) {
		itree_take(&m->tree, &m->node[i]);
	} else {
		m->node[i].start = next(SPACE);
		m->node[i].end = m->node[i].start + 1 + next(next(4) ? 10 : SPACE);
		itree_add(&m->tree, &m->node[i]);
	}
	m->in[i] = !m->in[i];
}

int main(void)
{
	const char *env = getenv("WEFT_SEED");
	const uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);
	const int rounds = tap_short() ? 3000 : 30000;
	static struct model m;
	int bad = -1;

	state = seed * 2 + 1;
	tap_diag("WEFT_SEED=%llu", (unsigned long long)seed);
	for (int i = 0; i < rounds && bad < 0; i++) {
		const uint64_t start = next(SPACE);

		step(&m);
		if (!same(&m, start, start + 1 + next(20)))
			bad = i;
	}
	tap_is_int(bad, -1, "every question is answered as by a list");
	for (int i = 0; i < NODES; i++) {
		if (m.in[i])
			itree_take(&m.tree, &m.node[i]);
	}
	tap_ok(!m.tree.root && !itree_meet(&m.tree, 0, SPACE, NULL),
	       "and in the end it is empty");
	return tap_done();
}
