/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the world only: world.c is what happens, network.c how it
 * travels, actors.c who does it and what must hold of it. */
#ifndef WEFT_FT_TESTS_WORLD_INT_H
#define WEFT_FT_TESTS_WORLD_INT_H

#include "coll/ft/coord.h"
#include "coll/ft/member.h"
#include "coll/ft/tests/world.h"

enum {
	NODES = 48,
	SLOTS = 2,
	STEPS = 512,
	EPOCHS = 1024,
	MS = 1000,
	BEAT = 200 * MS,
	SILENCE = 1000 * MS,
	DEADLINE = 700 * MS, /* of a ring */
	ACT = 9000 * MS,     /* then everything is healed */
	END = 60000 * MS,
};

enum kind {
	EV_TO_NODE,
	EV_TO_SLOT,
	EV_NODE_TICK,
	EV_SLOT_TICK,
	EV_BEGIN,
	EV_LEAVE,
	EV_RING,
	EV_CHAOS,
};

struct event {
	int64_t at;
	uint64_t seq;
	enum kind kind;
	int who, from;
	struct ft_epoch epoch; /* EV_RING */
	int64_t until;
	uint8_t *bytes;
	size_t len;
};

/* A process that may die at a message: before it is sent, or after. */
struct fuse {
	int left; /* messages; 0: none is lit */
	bool after, blown;
};

struct world;

struct slot {
	struct world *w;
	bool up;
	struct ft_coord c;
	struct ft_durable file;
	uint32_t lineage;
	struct fuse fuse;
};

struct node {
	struct world *w;
	bool used, up;
	bool wants_out; /* leaves at the end of its step */
	struct ft_member m;
	struct fuse fuse;
	int home, answer_to;
	int64_t paused_until, cut_until;
	struct ft_epoch entered, ran;
	uint64_t ran_step;
	uint64_t came_with; /* steps counted when it came into its epoch */
	uint64_t first;	    /* the first step that it may count itself */
	struct ft_epoch hist[STEPS];
};

struct epoch_record {
	struct ft_epoch epoch;
	struct ft_commit commit;
	struct ft_epoch hist[STEPS];
};

struct world {
	uint64_t rng, seq;
	int64_t now;
	bool trace, healed, kept_always, two;
	int loss, dup, late, chaos_ms; /* per mille; mean time between deeds */
	uint32_t group_size, size;
	struct event *heap;
	size_t count, room;
	struct slot slot[SLOTS];
	struct node node[NODES];
	struct epoch_record *record;
	uint32_t records;
	struct ft_epoch counted[STEPS];
	struct ft_inbox inbox;
	struct world_result *result;
	uint64_t next_id;
	uint32_t next_group;
	uint64_t healed_step;
};

/* network.c */
extern const uint8_t world_job[FT_JOB_LEN];
uint64_t world_draw(struct world *w);
int64_t world_below(struct world *w, int64_t n); /* 0 to n - 1 */
bool world_chance(struct world *w, int per_mille);
__attribute__((format(printf, 2, 3))) void world_fault(struct world *w, const char *fmt,
						       ...);
__attribute__((format(printf, 2, 3))) void world_trace(const struct world *w,
						       const char *fmt, ...);
void world_put(struct world *w, struct event e);
struct event world_get(struct world *w); /* the first; there is one */
void world_after(struct world *w, int64_t us, enum kind kind, int who);
void world_post(struct world *w, enum kind kind, int who, int from,
		const struct ft_msg *msg);
bool fuse_pass(struct fuse *f); /* whether a message gets out */
void fuse_light(struct world *w, struct fuse *f);

/* actors.c */
struct node *node_by_id(const struct world *w, uint64_t id);
int node_index(const struct node *n);
int slot_index(const struct slot *s);
void slot_start(struct world *w, int i, bool fresh);
void slot_crash(struct slot *s);
/* After every call of a machine: it died, it came into an epoch. */
void slot_settle(struct slot *s);
void node_settle(struct node *n);
void node_start(struct world *w, uint32_t group);

#endif
