/* SPDX-License-Identifier: BSD-2-Clause */
/* See uet_sim_air.h. */
#include "config.h"

#include "prov/wire/uet/tests/uet_sim_air.h"

#include <string.h>

static bool sooner(const struct sim *s, uint32_t a, uint32_t b)
{
	const struct dgram *x = &s->air[a], *y = &s->air[b];

	return x->at != y->at ? x->at < y->at : x->seq < y->seq;
}

void sim_air_push(struct sim *s, uint32_t slot)
{
	uint32_t at = s->in_air++;

	while (at != 0) {
		uint32_t up = (at - 1) / 2;

		if (!sooner(s, slot, s->heap[up]))
			break;
		s->heap[at] = s->heap[up];
		at = up;
	}
	s->heap[at] = slot;
}

uint32_t sim_air_pop(struct sim *s)
{
	uint32_t top = s->heap[0];
	uint32_t last = s->heap[--s->in_air];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < s->in_air &&
		    sooner(s, s->heap[child + 1], s->heap[child]))
			child++;
		if (child >= s->in_air || !sooner(s, s->heap[child], last))
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = last;
	return top;
}

static uint64_t delay(struct sim *s, uint32_t path)
{
	uint64_t d = 10 * US + path * 500;

	if (s->c->jitter_ns)
		d += sim_draw(s) % s->c->jitter_ns;
	if (sim_odds(s, s->c->slow))
		d += sim_draw(s) % s->c->slow_ns;
	return d;
}

static struct dgram *air_add(struct sim *s, uint8_t to, uint64_t at)
{
	uint32_t slot;
	struct dgram *d;

	if (s->in_air == IN_AIR)
		return NULL; /* a full network drops */
	slot = s->unused[s->in_air];
	d = &s->air[slot];
	d->at = at;
	d->seq = s->seq++;
	d->to = to;
	sim_air_push(s, slot);
	return d;
}

static bool swallowed(struct sim *s, uint32_t path)
{
	return s->dead || (path == s->hole_path && s->now < s->hole_end);
}

void sim_send(struct side *from, const struct uet_out *out)
{
	struct sim *s = from->sim;
	uint32_t path = out->path == UET_PATH_ECHO ? out->entropy : out->path;
	uint32_t copies = sim_odds(s, s->c->repeat) ? 2 : 1;
	bool control = out->cls == UET_CLASS_CONTROL;

	s->r->datagrams++;
	if (!control)
		s->r->path_used |= 1u << path;
	if (swallowed(s, path) || sim_odds(s, s->c->drop) ||
	    (control && sim_odds(s, s->c->drop_acks)))
		return;
	if (out->peer.fep >= 2) /* a stranger of the flood */
		return;
	while (copies-- > 0) {
		struct dgram *d =
			air_add(s, (uint8_t)out->peer.fep, s->now + delay(s, path));

		if (!d)
			return;
		d->from = from->addr;
		d->entropy = (uint16_t)path;
		d->ce = !control && sim_odds(s, s->c->mark);
		d->len = out->head_len + out->payload_len;
		memcpy(d->bytes, out->head, out->head_len);
		if (out->payload_len)
			memcpy(d->bytes + out->head_len, out->payload, out->payload_len);
	}
}
