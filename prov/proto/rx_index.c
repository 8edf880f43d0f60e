/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted receives by context; see rx_index.h. */
#include "config.h"

#include "prov/proto/rx_index.h"

#include <stdlib.h>

#include "prov/proto/ep.h"

/* So often all receives are looked through before the index is made: that costs about as
 * much. */
#define RX_SCANS 8

/* A stamp is given out once for each queue, so that this tells a receive from a later one
 * in the same place. */
struct rx_indexed {
	uintptr_t context;
	uint64_t stamp;
	uint32_t index; /* in the pool */
	uint32_t tagged;
	uint32_t over; /* first with a context: so many, from here on, are posted no more
			*/
};

static int indexed_compare(const void *a, const void *b)
{
	const struct rx_indexed *x = a, *y = b;

	if (x->context != y->context) {
		return x->context < y->context ? -1 : 1;
	}
	return x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

static bool index_make(struct receiver *rcv)
{
	struct rx_index *x = &rcv->by_context;
	uint32_t limit = pool_limit(&rcv->rx);
	struct rx_indexed *at = malloc(limit * sizeof(*at));

	x->made_at = x->scanned; /* without memory as well: tried again as much later */
	if (!at) {
		return false;
	}
	free(x->at);
	x->at = at;
	x->count = 0;
	for (uint32_t i = 0; i < limit; i++) {
		const struct rx *rx = pool_at(&rcv->rx, i);

		if (rx->state == RX_POSTED) {
			at[x->count++] =
				(struct rx_indexed){.context = (uintptr_t)rx->context,
						    .stamp = rx->m.stamp,
						    .index = i,
						    .tagged = rx->flags & PROTO_TAGGED};
		}
	}
	qsort(at, x->count, sizeof(*at), indexed_compare);
	x->stamps[0] = rcv->match[0].stamp;
	x->stamps[1] = rcv->match[1].stamp;
	return true;
}

/* The receive, if it is still the one that was noted. */
static struct rx *indexed_rx(const struct receiver *rcv, const struct rx_indexed *e)
{
	struct rx *rx = pool_at(&rcv->rx, e->index);

	return rx->state == RX_POSTED && rx->m.stamp == e->stamp &&
			       (rx->flags & PROTO_TAGGED) == e->tagged
		       ? rx
		       : NULL;
}

static struct rx *look_up(struct receiver *rcv, uintptr_t context)
{
	struct rx_index *x = &rcv->by_context;
	uint32_t low = 0, high = x->count;
	struct rx_indexed *first;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (x->at[mid].context < context) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	if (low == x->count) {
		return NULL;
	}
	first = &x->at[low];
	while (low + first->over < x->count && first[first->over].context == context) {
		struct rx *rx = indexed_rx(rcv, &first[first->over]);

		if (rx) {
			return rx;
		}
		first->over++;
	}
	return NULL;
}

static struct rx *scan(struct receiver *rcv, const void *context)
{
	struct rx *found = NULL;

	for (uint32_t i = 0; i < pool_limit(&rcv->rx); i++) {
		struct rx *rx = pool_at(&rcv->rx, i);

		if (rx->state == RX_POSTED && rx->context == context &&
		    (!found || rx->m.stamp < found->m.stamp)) {
			found = rx;
		}
	}
	rcv->by_context.scanned += pool_limit(&rcv->rx);
	return found;
}

/* What was posted since the index was made is younger than what is in it. */
struct rx *rx_index_find(struct receiver *rcv, const void *context)
{
	struct rx_index *x = &rcv->by_context;
	struct rx *rx = look_up(rcv, (uintptr_t)context);

	if (rx || (x->at && x->stamps[0] == rcv->match[0].stamp &&
		   x->stamps[1] == rcv->match[1].stamp)) {
		return rx;
	}
	if (x->scanned - x->made_at >= RX_SCANS * (uint64_t)pool_limit(&rcv->rx) &&
	    index_make(rcv)) {
		return look_up(rcv, (uintptr_t)context);
	}
	return scan(rcv, context);
}

void rx_index_fini(struct rx_index *x)
{
	free(x->at);
	*x = (struct rx_index){0};
}
