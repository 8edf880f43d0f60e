/* SPDX-License-Identifier: BSD-2-Clause */
/* The network of uet_sim.c: what is on its way, in the order of its arrival. */
#ifndef WEFT_UET_TESTS_UET_SIM_AIR_H
#define WEFT_UET_TESTS_UET_SIM_AIR_H

#include "prov/wire/uet/tests/uet_sim.h"

#define US	UINT64_C(1000)
#define MS	UINT64_C(1000000)
#define MTU	256u
#define ROOM	(UET_HEAD_MAX + MTU)
#define IN_AIR	8192u
#define LATERS	64u
#define DIALS	8u
#define LONGEST (4000 * 1000 * MS)
#define GIVE_UP (120 * 1000 * MS) /* so many tries that drawn losses never reach it */

struct dgram {
	uint64_t at;
	uint64_t seq;
	uint8_t to;
	bool ce;
	uint16_t entropy;
	uint32_t len;
	struct uet_peer from;
	uint8_t bytes[ROOM];
};

/* One packet of the application. */
struct item {
	uint8_t side; /* that sends it */
	uint8_t verdict;
	bool sent;
	bool arrived;
	bool done;
	uint8_t len;
	uint32_t dial; /* context of its side; or, for one back, none */
	uint32_t seq;  /* in that context */
	uint8_t bytes[MTU];
};

struct dial {
	struct uet_pdc *pdc;
	bool ordered;
	bool over;
	bool closing;
	bool ask;	/* the other end will ask */
	uint32_t given; /* packets */
	uint32_t taken; /* arrived at the other end */
	uint32_t ended;
};

struct later {
	struct uet_pdc *pdc;
	uint32_t psn;
	uint64_t at;
	uint32_t item;
};

struct side {
	struct sim *sim;
	struct uet_pds *pds;
	struct uet_peer addr;
	struct dial dial[DIALS];
	struct later later[LATERS];
	uint32_t laters;
	uint64_t paused_until;
	uint8_t no;
};

struct sim {
	const struct uet_sim_config *c;
	struct uet_sim_result *r;
	struct side side[2];
	struct item *item;
	uint32_t items;
	uint32_t items_max;
	uint64_t now;
	uint64_t seq;
	uint64_t random;
	uint64_t event_at; /* the one thing that happens: death, restart, pause */
	uint64_t hole_end;
	uint32_t hole_path;
	bool dead;
	bool restarted;
	uint32_t in_air;
	uint32_t heap[IN_AIR]; /* by time; from here on nothing needs to be 0 */
	uint32_t unused[IN_AIR];
	struct dgram air[IN_AIR];
};

static inline uint64_t sim_draw(struct sim *s)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return s->random * UINT64_C(0x2545f4914f6cdd1d);
}

static inline bool sim_odds(struct sim *s, uint32_t in_1000)
{
	return in_1000 > 0 && sim_draw(s) >> 32 < ((uint64_t)in_1000 << 32) / 1000;
}

/* A slot of what is on its way: in again, and the next that arrives out. */
void sim_air_push(struct sim *s, uint32_t slot);
uint32_t sim_air_pop(struct sim *s);
/* Something leaves: it is lost, repeated, late, marked as was drawn. */
void sim_send(struct side *from, const struct uet_out *out);

#endif
