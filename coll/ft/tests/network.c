/* SPDX-License-Identifier: BSD-2-Clause */
/* Chance, time and the network of the world. See world_int.h. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/ft/tests/world_int.h"

const uint8_t world_job[FT_JOB_LEN] = "model";

uint64_t world_draw(struct world *w)
{
	uint64_t z = (w->rng += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

int64_t world_below(struct world *w, int64_t n)
{
	return (int64_t)(world_draw(w) % (uint64_t)n);
}

bool world_chance(struct world *w, int per_mille)
{
	return world_below(w, 1000) < per_mille;
}

void world_fault(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->result->fault[0])
		return;
	va_start(ap, fmt);
	vsnprintf(w->result->fault, sizeof(w->result->fault), fmt, ap);
	va_end(ap);
}

void world_trace(const struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	printf("%8.3f ms ", (double)w->now / MS);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* Events in order of time. */

static bool event_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void world_put(struct world *w, struct event e)
{
	size_t i = w->count++;

	if (w->count > w->room) {
		w->room = w->room ? 2 * w->room : 256;
		w->heap = realloc(w->heap, w->room * sizeof(*w->heap));
		if (!w->heap)
			abort();
	}
	e.seq = w->seq++;
	for (; i > 0 && event_before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = e;
}

struct event world_get(struct world *w)
{
	struct event first = w->heap[0], last = w->heap[--w->count];
	size_t i = 0;

	for (;;) {
		size_t k = 2 * i + 1;

		if (k + 1 < w->count && event_before(&w->heap[k + 1], &w->heap[k]))
			k++;
		if (k >= w->count || !event_before(&w->heap[k], &last))
			break;
		w->heap[i] = w->heap[k];
		i = k;
	}
	w->heap[i] = last;
	return first;
}

void world_after(struct world *w, int64_t us, enum kind kind, int who)
{
	world_put(w, (struct event){.at = w->now + us, .kind = kind, .who = who});
}

/* The network. */

/* Whether a message gets out. */
bool fuse_pass(struct fuse *f)
{
	if (f->blown)
		return false;
	if (f->left == 0 || --f->left > 0)
		return true;
	f->blown = true;
	return f->after;
}

void fuse_light(struct world *w, struct fuse *f)
{
	*f = (struct fuse){.left = 1 + (int)world_below(w, 12),
			   .after = world_chance(w, 500)};
}

void world_post(struct world *w, enum kind kind, int who, int from,
		const struct ft_msg *msg)
{
	int copies = 1;
	size_t len = ft_wire_len(msg);

	w->result->messages++;
	if (!w->healed && world_chance(w, w->loss))
		copies = 0;
	else if (!w->healed && world_chance(w, w->dup))
		copies = 2;
	while (copies-- > 0) {
		int64_t delay = 100 + world_below(w, 5 * MS);
		uint8_t *bytes = malloc(len);

		if (!bytes)
			abort();
		if (!w->healed && world_chance(w, w->late))
			delay += world_below(w, 3000 * MS);
		ft_wire_put(bytes, msg, world_job);
		world_put(w, (struct event){.at = w->now + delay,
					    .kind = kind,
					    .who = who,
					    .from = from,
					    .bytes = bytes,
					    .len = len});
	}
}
