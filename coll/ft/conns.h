/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of a coordinator's server, and which member each is: who has said
 * nothing valid yet is a stranger. A member whose connection broke is remembered until it
 * returns or is given up.
 *
 * Not thread-safe.
 */
#ifndef WEFT_FT_CONNS_H
#define WEFT_FT_CONNS_H

#include "coll/ft/stream.h"

struct ft_conn {
	struct ft_stream stream;
	uint64_t id;	 /* the member; 0: a stranger */
	int64_t heard;	 /* its last message, or when it came */
	uint32_t events; /* what is waited for at the socket */
	bool dirty;	 /* in the list of those to be looked after */
	struct ft_conn *next_dirty;
	struct ft_conn *prev, *next; /* of all, in the order of `heard` */
};

/* A member that is, or was, connected. */
struct ft_seat {
	uint64_t id;	      /* first: places.h */
	struct ft_conn *conn; /* NULL: it broke, at `gone` */
	int64_t gone;
};

struct ft_conns {
	struct ft_conn *first, *last; /* first: silent longest */
	struct ft_conn *dirty;
	uint32_t count, strangers;
	struct ft_seat *seat; /* sorted by id; owned */
	uint32_t seats, seat_room;
};

/* Takes the socket; NULL: no memory, and it is closed. */
struct ft_conn *ft_conns_add(struct ft_conns *cs, int fd, const uint8_t *job,
			     int64_t now);

/* Closes it. A member's seat stays, as gone. */
void ft_conns_drop(struct ft_conns *cs, struct ft_conn *conn, int64_t now);

/* It said something. */
void ft_conns_heard(struct ft_conns *cs, struct ft_conn *conn, int64_t now);

/* A stranger said which member it is; *before is the connection that the member had, or
 * NULL. False: no memory. */
bool ft_conns_name(struct ft_conns *cs, struct ft_conn *conn, uint64_t id,
		   struct ft_conn **before);

/* Of a member; NULL: it has none. */
struct ft_conn *ft_conns_of(const struct ft_conns *cs, uint64_t id);

/* A member that has been gone for so long, who is forgotten; 0: nobody. */
uint64_t ft_conns_gone(struct ft_conns *cs, int64_t now, int64_t return_us);

/* It is to be looked after: something waits to be written, or it has ended. */
void ft_conns_mark(struct ft_conns *cs, struct ft_conn *conn);
struct ft_conn *ft_conns_marked(struct ft_conns *cs); /* taken; NULL: none */

void ft_conns_fini(struct ft_conns *cs);

#endif
