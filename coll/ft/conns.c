/* SPDX-License-Identifier: BSD-2-Clause */
/* See conns.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/ft/conns.h"
#include "coll/ft/places.h"

static void unlink_conn(struct ft_conns *cs, struct ft_conn *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		cs->first = c->next;
	if (c->next)
		c->next->prev = c->prev;
	else
		cs->last = c->prev;
}

static void append_conn(struct ft_conns *cs, struct ft_conn *c)
{
	c->prev = cs->last;
	c->next = NULL;
	if (cs->last)
		cs->last->next = c;
	else
		cs->first = c;
	cs->last = c;
}

struct ft_conn *ft_conns_add(struct ft_conns *cs, int fd, const uint8_t *job, int64_t now)
{
	struct ft_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return NULL;
	}
	ft_stream_init(&c->stream, fd, job);
	c->heard = now;
	append_conn(cs, c);
	cs->count++;
	cs->strangers++;
	return c;
}

void ft_conns_heard(struct ft_conns *cs, struct ft_conn *c, int64_t now)
{
	c->heard = now;
	unlink_conn(cs, c);
	append_conn(cs, c);
}

static uint32_t seat_place(const struct ft_conns *cs, uint64_t id)
{
	return ft_place(cs->seat, cs->seats, sizeof(*cs->seat), id);
}

static struct ft_seat *seat_of(const struct ft_conns *cs, uint64_t id)
{
	uint32_t at = seat_place(cs, id);

	return at < cs->seats && cs->seat[at].id == id ? &cs->seat[at] : NULL;
}

/* NULL: no memory. */
static struct ft_seat *seat_get(struct ft_conns *cs, uint64_t id)
{
	uint32_t at = seat_place(cs, id);
	struct ft_seat *seat = seat_of(cs, id);

	if (seat)
		return seat;
	if (cs->seats == cs->seat_room) {
		uint32_t room = cs->seat_room ? 2 * cs->seat_room : 16;

		seat = realloc(cs->seat, room * sizeof(*seat));
		if (!seat)
			return NULL;
		cs->seat = seat;
		cs->seat_room = room;
	}
	seat = &cs->seat[at];
	memmove(seat + 1, seat, (cs->seats - at) * sizeof(*seat));
	cs->seats++;
	*seat = (struct ft_seat){.id = id};
	return seat;
}

static void unmark(struct ft_conns *cs, struct ft_conn *c)
{
	struct ft_conn **at = &cs->dirty;

	if (!c->dirty)
		return;
	while (*at != c)
		at = &(*at)->next_dirty;
	*at = c->next_dirty;
	c->dirty = false;
}

void ft_conns_drop(struct ft_conns *cs, struct ft_conn *c, int64_t now)
{
	struct ft_seat *seat = c->id ? seat_of(cs, c->id) : NULL;

	if (seat && seat->conn == c) {
		seat->conn = NULL;
		seat->gone = now;
	}
	if (c->id == 0)
		cs->strangers--;
	cs->count--;
	unmark(cs, c);
	unlink_conn(cs, c);
	ft_stream_fini(&c->stream);
	free(c);
}

bool ft_conns_name(struct ft_conns *cs, struct ft_conn *c, uint64_t id,
		   struct ft_conn **before)
{
	struct ft_seat *seat = seat_get(cs, id);

	*before = NULL;
	if (!seat)
		return false;
	*before = seat->conn;
	seat->conn = c;
	c->id = id;
	cs->strangers--;
	return true;
}

struct ft_conn *ft_conns_of(const struct ft_conns *cs, uint64_t id)
{
	const struct ft_seat *seat = seat_of(cs, id);

	return seat ? seat->conn : NULL;
}

uint64_t ft_conns_gone(struct ft_conns *cs, int64_t now, int64_t return_us)
{
	for (uint32_t i = 0; i < cs->seats; i++) {
		uint64_t id = cs->seat[i].id;

		if (cs->seat[i].conn || now - cs->seat[i].gone < return_us)
			continue;
		cs->seats--;
		memmove(&cs->seat[i], &cs->seat[i + 1],
			(cs->seats - i) * sizeof(cs->seat[0]));
		return id;
	}
	return 0;
}

void ft_conns_mark(struct ft_conns *cs, struct ft_conn *c)
{
	if (c->dirty)
		return;
	c->dirty = true;
	c->next_dirty = cs->dirty;
	cs->dirty = c;
}

struct ft_conn *ft_conns_marked(struct ft_conns *cs)
{
	struct ft_conn *c = cs->dirty;

	if (c) {
		cs->dirty = c->next_dirty;
		c->dirty = false;
	}
	return c;
}

void ft_conns_fini(struct ft_conns *cs)
{
	while (cs->first)
		ft_conns_drop(cs, cs->first, 0);
	free(cs->seat);
	memset(cs, 0, sizeof(*cs));
}
