/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrivals and the store for unexpected payload. */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "prov/proto/ep.h"

static const char *const state_names[] = {
	[ARRIVAL_FREE] = "free",
	[ARRIVAL_UNEXPECTED] = "unexpected",
	[ARRIVAL_CLAIMED] = "claimed",
	[ARRIVAL_PULL] = "pull",
	[ARRIVAL_OWES_CTS] = "owes-cts",
	[ARRIVAL_STREAM] = "stream",
	[ARRIVAL_OWES_FIN] = "owes-fin",
	[ARRIVAL_OWES_ACK] = "owes-ack",
	[ARRIVAL_OWES_RESULT] = "owes-result",
	[ARRIVAL_ORPHAN] = "orphan",
};
_Static_assert(sizeof(state_names) / sizeof(state_names[0]) == ARRIVAL_STATES, "names");

#define TO(state) (1u << (state))
static const uint32_t state_next[ARRIVAL_STATES] = {
	[ARRIVAL_FREE] = TO(ARRIVAL_UNEXPECTED) | TO(ARRIVAL_PULL) |
			 TO(ARRIVAL_OWES_CTS) | TO(ARRIVAL_OWES_FIN) |
			 TO(ARRIVAL_OWES_ACK) | TO(ARRIVAL_OWES_RESULT),
	[ARRIVAL_UNEXPECTED] = TO(ARRIVAL_PULL) | TO(ARRIVAL_OWES_CTS) |
			       TO(ARRIVAL_OWES_FIN) | TO(ARRIVAL_OWES_ACK) |
			       TO(ARRIVAL_CLAIMED) | TO(ARRIVAL_FREE),
	[ARRIVAL_CLAIMED] = TO(ARRIVAL_PULL) | TO(ARRIVAL_OWES_CTS) |
			    TO(ARRIVAL_OWES_FIN) | TO(ARRIVAL_OWES_ACK) |
			    TO(ARRIVAL_FREE),
	[ARRIVAL_PULL] = TO(ARRIVAL_OWES_CTS) | TO(ARRIVAL_OWES_FIN) |
			 TO(ARRIVAL_STREAM) | TO(ARRIVAL_ORPHAN) | TO(ARRIVAL_FREE),
	[ARRIVAL_OWES_CTS] = TO(ARRIVAL_STREAM) | TO(ARRIVAL_FREE),
	[ARRIVAL_STREAM] = TO(ARRIVAL_PULL) | TO(ARRIVAL_OWES_FIN) | TO(ARRIVAL_FREE),
	[ARRIVAL_OWES_FIN] = TO(ARRIVAL_FREE),
	[ARRIVAL_OWES_ACK] = TO(ARRIVAL_FREE),
	[ARRIVAL_OWES_RESULT] = TO(ARRIVAL_FREE),
	[ARRIVAL_ORPHAN] = TO(ARRIVAL_FREE),
};

const char *arrival_state_name(enum arrival_state s)
{
	return s < ARRIVAL_STATES ? state_names[s] : "?";
}

/* The only writer of a->state. */
void arrival_set_state(struct arrival *a, enum arrival_state to)
{
	assert(state_next[a->state] & TO(to));
	a->state = to;
}

struct arrival *arrival_alloc(struct proto_ep *ep, struct proto_peer *pp,
			      struct wire_link *link)
{
	struct arrival *a;

	if (unlikely(pp->arrivals >= ARRIVALS_PEER_MAX)) {
		return NULL;
	}
	a = pool_alloc(&ep->arrivals);
	if (a) {
		pp->arrivals++;
		list_init(&a->node);
		a->ep = ep;
		a->peer = pp;
		a->link = link;
		a->epoch = pp->peer.epoch;
		a->payload = NULL;
		a->x.inflight = 0;
		a->bulk = false;
		a->can_pull = false;
		a->owes_taken = false;
		a->lost = false;
		a->joint = false;
		proto_peer_ref(pp);
	}
	return a;
}

void arrival_release(struct proto_ep *ep, struct arrival *a)
{
	if (a->payload) {
		payload_release(&ep->payloads, a->payload, a->size_class);
	}
	list_remove(&a->node);
	a->peer->arrivals--;
	proto_peer_unref(ep, a->peer);
	arrival_set_state(a, ARRIVAL_FREE);
	pool_release(&ep->arrivals, a);
}

void arrival_complete(struct proto_ep *ep, struct arrival *a, int err)
{
	struct rx_result r = {.len = a->len,
			      .tag = a->tag,
			      .data = a->data,
			      .flags = a->flags,
			      .source = a->peer->source,
			      .err = err};

	if (unlikely(err)) {
		proto_blame_set(ep, a->peer);
		rx_finish(ep, &a->claim, &r);
		proto_blame_clear(ep);
		return;
	}
	rx_finish(ep, &a->claim, &r);
}

/* Bytes that are taken from the system at once. */
#define PAYLOAD_SLAB ((size_t)64 << 10)

void payload_store_fini(struct payload_store *s)
{
	while (s->slabs) {
		void *next = *(void **)s->slabs;

		free(s->slabs);
		s->slabs = next;
	}
	*s = (struct payload_store){0};
}

static bool payload_grow(struct payload_store *s, uint32_t class)
{
	size_t size = (size_t)1 << (class + PAYLOAD_CLASS_MIN);
	size_t bytes = size * 4 > PAYLOAD_SLAB ? size * 4 : PAYLOAD_SLAB;
	char *slab = malloc(64 + bytes);

	if (!slab) {
		return false;
	}
	*(void **)slab = s->slabs;
	s->slabs = slab;
	for (size_t at = 0; at + size <= bytes; at += size) {
		payload_release(s, slab + 64 + at, class);
	}
	return true;
}

void *payload_alloc(struct payload_store *s, size_t len, uint8_t *size_class)
{
	uint32_t class = 0;
	void *p;

	while (len > (size_t)1 << (class + PAYLOAD_CLASS_MIN)) {
		class ++;
	}
	if (class >= PAYLOAD_CLASSES || (!s->free[class] && !payload_grow(s, class))) {
		return NULL;
	}
	p = s->free[class];
	s->free[class] = *(void **)p;
	*size_class = class;
	return p;
}

void payload_release(struct payload_store *s, void *p, uint8_t size_class)
{
	*(void **)p = s->free[size_class];
	s->free[size_class] = p;
}
