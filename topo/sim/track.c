/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages from one rank to another: which SEND is which RECV's, and their order. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "topo/sim/engine_in.h"

/* ---- finding -------------------------------------------------------------------------
 */

static uint32_t hash_of(const struct engine *e, int32_t from, int32_t to)
{
	uint64_t h = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32) & (e->track_room - 1);
}

/* Twice the room. */
static bool tracks_grow(struct engine *e)
{
	const uint32_t room = e->track_room ? e->track_room * 2 : 1024;
	struct track *track = realloc(e->track, room * sizeof(*track));
	uint32_t *hash;

	if (!track)
		return false;
	e->track = track;
	hash = realloc(e->track_hash, room * sizeof(*hash));
	if (!hash)
		return false;
	e->track_hash = hash;
	e->track_room = room;
	memset(hash, 0xff, room * sizeof(*hash));
	for (uint32_t i = 0; i < e->tracks; i++) {
		const uint32_t at = hash_of(e, track[i].from, track[i].to);

		track[i].chain = hash[at];
		hash[at] = i;
	}
	return true;
}

uint32_t track_of(struct engine *e, int32_t from, int32_t to)
{
	uint32_t at;

	if (e->tracks == e->track_room && !tracks_grow(e)) {
		e->failed = true;
		return SHARE_NONE;
	}
	at = hash_of(e, from, to);
	for (uint32_t i = e->track_hash[at]; i != SHARE_NONE; i = e->track[i].chain)
		if (e->track[i].from == from && e->track[i].to == to)
			return i;
	e->track[e->tracks] = (struct track){.from = from,
					     .to = to,
					     .queue = SHARE_NONE,
					     .tail = SHARE_NONE,
					     .early = SHARE_NONE,
					     .ready = SHARE_NONE,
					     .chain = e->track_hash[at]};
	e->track_hash[at] = e->tracks;
	return e->tracks++;
}

/* ---- notes ---------------------------------------------------------------------------
 */

static uint32_t note_new(struct engine *e, uint64_t number, uint32_t next)
{
	uint32_t i = e->note_free;

	if (i != SHARE_NONE) {
		e->note_free = e->note[i].next;
	} else {
		if (e->notes == e->note_room) {
			const uint32_t room = e->note_room ? e->note_room * 2 : 1024;
			struct note *more = realloc(e->note, room * sizeof(*more));

			if (!more) {
				e->failed = true;
				return SHARE_NONE;
			}
			e->note = more;
			e->note_room = room;
		}
		i = e->notes++;
	}
	e->note[i] = (struct note){number, next};
	return i;
}

static void note_release(struct engine *e, uint32_t i)
{
	e->note[i].next = e->note_free;
	e->note_free = i;
}

bool track_take(struct engine *e, uint32_t *list, uint32_t turn)
{
	while (*list != SHARE_NONE && e->note[*list].number != turn)
		list = &e->note[*list].next;
	if (*list == SHARE_NONE)
		return false;
	turn = *list;
	*list = e->note[turn].next;
	note_release(e, turn);
	return true;
}

/* ---- messages ------------------------------------------------------------------------
 */

static uint32_t carried_new(struct engine *e)
{
	uint32_t i = e->carry_free;

	if (i != SHARE_NONE) {
		e->carry_free = e->carried[i].next;
		return i;
	}
	if (e->carries == e->carry_room) {
		const uint32_t room = e->carry_room ? e->carry_room * 2 : 1024;
		struct carried *more = realloc(e->carried, room * sizeof(*more));

		if (!more) {
			e->failed = true;
			return SHARE_NONE;
		}
		e->carried = more;
		e->carry_room = room;
	}
	return e->carries++;
}

static void path_count(struct engine *e, const struct sim_path *path, double bytes)
{
	e->result->level_bytes[path->level] += bytes;
	e->result->messages++;
	for (unsigned i = 0; i < path->links; i++)
		e->link_bytes[path->link[i]] += bytes;
	e->port_bytes[path->out] += bytes;
	e->port_bytes[path->in] += bytes;
}

static void flow_begin(struct engine *e, uint32_t track, uint64_t number)
{
	const struct track *p = &e->track[track];
	const struct actor *from = &e->actor[p->from], *to = &e->actor[p->to];
	const struct slot *slot = actor_slot(from, number);
	const double bytes = (double)actor_bytes(e, from, number, slot);
	const uint32_t i = carried_new(e);
	struct sim_path path;
	uint32_t route;

	if (i == SHARE_NONE)
		return;
	sim_net_path(e->net, from->rank, to->rank, &path);
	path_count(e, &path, bytes);
	e->carried[i] = (struct carried){.number = number,
					 .latency = path.latency,
					 .track = track,
					 .turn = slot->turn};
	e->track[track].busy = true;
	if (bytes <= 0) {
		track_flown(e, i);
		return;
	}
	route = share_route(e->share, path.link, path.links);
	if (route == SHARE_NONE || share_begin(e->share, route, path.out, path.in,
					       path.most, bytes, i, e->now) == SHARE_NONE)
		e->failed = true;
}

void track_send(struct engine *e, uint32_t track, uint64_t number)
{
	struct track *p = &e->track[track];
	uint32_t note;

	if (!p->busy) {
		flow_begin(e, track, number);
		return;
	}
	note = note_new(e, number, SHARE_NONE);
	if (note == SHARE_NONE)
		return;
	if (p->queue == SHARE_NONE)
		p->queue = note;
	else
		e->note[p->tail].next = note;
	p->tail = note;
}

void track_flown(struct engine *e, uint32_t carried)
{
	const struct carried c = e->carried[carried];
	struct track *p = &e->track[c.track];
	const uint32_t from = (uint32_t)p->from, next = p->queue;

	e->carried[carried].next = e->carry_free;
	e->carry_free = carried;
	engine_event(e, e->now + c.latency, EVENT_ARRIVE, c.track, c.turn);
	p->busy = false;
	if (next != SHARE_NONE) {
		const uint64_t number = e->note[next].number;

		p->queue = e->note[next].next;
		note_release(e, next);
		flow_begin(e, c.track, number);
	}
	actor_done(e, from, c.number);
}

/* The instance of an actor's window that has that turn among those of its track; false:
 * it isn't there yet. */
static bool slot_find(const struct actor *a, uint8_t kind, int32_t peer, uint32_t turn,
		      uint64_t *number)
{
	for (*number = a->head; *number < a->next; ++*number) {
		const struct slot *s = actor_slot(a, *number);

		if (s->kind == kind && s->peer == peer && s->turn == turn)
			return true;
	}
	return false;
}

void track_arrived(struct engine *e, uint32_t track, uint32_t turn)
{
	struct track *p = &e->track[track];
	const struct actor *to = &e->actor[p->to];
	struct slot *slot;
	uint64_t number;

	if (turn >= p->recvs) {
		p->early = note_new(e, turn, p->early);
		return;
	}
	if (!slot_find(to, PLAN_RECV, p->from, turn, &number))
		return; /* it was open, and is not done: it is in the window */
	slot = actor_slot(to, number);
	slot->flags |= SLOT_THERE;
	if (slot->flags & SLOT_OPEN)
		actor_done(e, (uint32_t)p->to, number);
}

void track_ready(struct engine *e, uint32_t track, uint32_t turn)
{
	struct track *p = &e->track[track];
	const struct actor *from = &e->actor[p->from];
	struct slot *slot;
	uint64_t number;

	if (turn >= p->sends) {
		p->ready = note_new(e, turn, p->ready);
		return;
	}
	if (!slot_find(from, PLAN_SEND, p->to, turn, &number))
		return; /* proof was there first, and the SEND is done */
	slot = actor_slot(from, number);
	if (slot->flags & SLOT_THERE)
		return;
	slot->flags |= SLOT_THERE;
	if (slot->flags & SLOT_OPEN)
		actor_start(e, (uint32_t)p->from, number);
}
