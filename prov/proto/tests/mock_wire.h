/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wire inside one process on a virtual clock: it delays packets, refuses room, delays
 * and refuses dials, finishes segments late and out of order, and lets links die. All by
 * a seeded generator, so that a run can be repeated.
 */
#ifndef WEFT_PROTO_TESTS_MOCK_WIRE_H
#define WEFT_PROTO_TESTS_MOCK_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/wire.h"
#include "util/list.h"

#define MOCK_EPS       16
#define MOCK_SLOTS     6
#define MOCK_SLOT_SIZE 16384
#define MOCK_CELLS     8

struct mock_region {
	uint64_t key;
	char *base;
	size_t len;
	uint64_t access;
};

/* A joint transfer's; like the real ones they outlive their link. */
struct mock_cell {
	struct wire_ep *owner; /* NULL: free */
	uint32_t turn;
	bool closed;
	uint32_t pieces, front, back, done;
	bool broken;
};

struct mock_net {
	uint64_t now; /* ns */
	uint64_t random;
	/* Knobs; chances are in percent. */
	uint32_t refuse_room;
	uint32_t refuse_dial;
	uint32_t late_segment;	 /* else done in the call */
	uint32_t refuse_segment; /* -FI_EAGAIN */
	uint64_t max_delay;	 /* ns of a packet, a dial or a segment */
	uint32_t ring;		 /* packets under way per direction of a link */
	struct wire_caps caps;
	/* Doors answer to their port on this host as well (host order); links carry the
	 * door's own name. */
	uint32_t alias_host;
	uint32_t refuse_slot; /* percent: no bulk slot just now */
	bool raw_refused;     /* raw gets give -FI_EACCES although caps say raw */
	/* Joint transfers; percent. */
	uint32_t refuse_cell;
	uint32_t refuse_take;
	uint32_t
		late_push; /* what was pushed lands later, the link may be gone by then */
	uint32_t break_push; /* a piece that was pushed isn't there */
	uint64_t pushed;     /* pieces */
	struct mock_cell cells[MOCK_CELLS];
	struct list pushes; /* under way */
	struct wire_ep *eps[MOCK_EPS];
	uint32_t refuse_mem;	     /* percent: there is no room to register more */
	uint64_t mems, mems_dropped; /* that were registered */
	/* Raw segments of links with caps.local or caps.lends: done by a name that its
	 * owner gave back before, and all of them. */
	uint64_t named_late, named;
	uint64_t notices;	    /* that were taken */
	const struct wire_ops *ops; /* of endpoints and links; NULL: mock_wire */
	uint32_t events; /* which counters want to hear of accesses: MEM_EVENTS_* */
	uint64_t links_killed;
	uint64_t packets;
};

/* The net that ep_open attaches to. */
extern struct mock_net *mock_net;
extern const struct wire_ops mock_wire;
/* The same, but links may need local registrations (mock_net.caps.local). */
const struct wire_ops *mock_wire_local(void);
/* The same, but links may lend (mock_net.caps.lends): mock_lend.c. */
const struct wire_ops *mock_wire_lends(void);

uint64_t mock_random(struct mock_net *net);
/* True in `percent` of the calls. */
bool mock_chance(struct mock_net *net, uint32_t percent);
void mock_region_add(struct wire_ep *ep, const struct mock_region *r);
/* Kills one random link between any two endpoints; false: there is none. */
bool mock_kill_random(struct mock_net *net);
/* As when a process dies: all links between two random endpoints. */
void mock_kill_pair(struct mock_net *net);
/* Puts bytes on a link as if the peer had sent them. */
void mock_inject(struct wire_link *link, const void *pkt, size_t len);
/* Cells that are in use. */
int mock_cells_used(const struct mock_net *net);
/* Bulk slots of ep that are taken. */
int mock_slots_taken(struct wire_ep *ep);
/* Some link of ep that is up, or NULL. */
struct wire_link *mock_some_link(struct wire_ep *ep);

#endif
