/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations that are closed and made again under their keys, each time of other
 * memory, while a peer writes and reads by these keys. Each operation succeeds or is
 * refused, and nothing else: no byte of one key gets into the memory of another, none
 * moves behind fi_close, none that is read was never there. What paths do meanwhile is
 * whoever runs this to decide (fabtests/emuverbs/tests/rekey.t).
 *
 *   --seed N   repeats the choices of an earlier run
 */
#include "config.h"

#include "fabtests/own/remote.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "util/tap.h"

#define SLOTS	8u /* keys, one of which is closed at any time */
#define KEY	0x5100u
#define LEN	131072u
#define WINDOW	8u  /* operations under way */
#define TURN	12u /* of these to a change of keys */
#define GOOD	1000u
#define REFUSED 50u

#define FRESH	   0xc5 /* what memory has when its key begins, and after its end */
#define MARK(slot) (0x40 + (int)(slot))

/* Both sides'. */
static struct board {
	_Atomic(uint32_t) ended; /* operations */
	_Atomic(uint32_t) turns; /* changes of keys */
	_Atomic(bool) over;
} * board;

static uint64_t seed;

static uint32_t draw(uint64_t *state, uint32_t below)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) % below);
}

/* Every byte is fresh or has the slot's mark; with `mark` 0 fresh. */
static bool bytes_check(struct side *s, const uint8_t *mem, size_t len, int mark,
			const char *what)
{
	for (size_t i = 0; i < len; i++)
		if (mem[i] != FRESH && (!mark || mem[i] != mark))
			return side_check(s, false, "%s: byte %zu is 0x%02x", what, i,
					  mem[i]);
	return true;
}

/* ---- whose keys they are */

struct slot {
	struct fid_mr *mr; /* NULL: closed */
	uint8_t *mem[2];
	unsigned which; /* is or was registered last */
};

static void slot_open(struct side *s, struct slot *slots, uint32_t i)
{
	struct slot *sl = &slots[i];

	sl->which ^= 1;
	side_must(s,
		  fi_mr_reg(s->node.domain, sl->mem[sl->which], LEN,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY + i, 0, &sl->mr,
			    NULL),
		  "fi_mr_reg");
}

static void slot_close(struct side *s, struct slot *slots, uint32_t i)
{
	struct slot *sl = &slots[i];

	side_must(s, fi_close(&sl->mr->fid), "fi_close of a registration");
	sl->mr = NULL;
	bytes_check(s, sl->mem[sl->which], LEN, MARK(i), "what came by a key");
	memset(sl->mem[sl->which], FRESH, LEN);
}

/* One closes, the one that was closed opens. Returns which is closed. */
static uint32_t keys_turn(struct side *s, struct slot *slots, uint32_t closed,
			  uint64_t *state)
{
	uint32_t next = (closed + 1 + draw(state, SLOTS - 1)) % SLOTS;

	slot_close(s, slots, next);
	for (int k = 0; k < 2; k++)
		bytes_check(s, slots[closed].mem[k], LEN, 0, "behind fi_close");
	slot_open(s, slots, closed);
	return next;
}

static const struct want want_keys = {.caps = RMA_CAPS};

static void keys_run(struct side *s)
{
	struct slot slots[SLOTS] = {0};
	uint32_t closed = 0, seen = 0, turns = 0;
	uint64_t state = seed;

	node_open(s, &want_keys);
	for (uint32_t i = 0; i < SLOTS; i++) {
		for (int k = 0; k < 2; k++)
			slots[i].mem[k] = memset(mem_new(LEN), FRESH, LEN);
		if (i != closed)
			slot_open(s, slots, i);
	}
	side_meet(s);
	while (!atomic_load(&board->over)) {
		if (atomic_load(&board->ended) - seen >= TURN) {
			seen = atomic_load(&board->ended);
			closed = keys_turn(s, slots, closed, &state);
			atomic_store(&board->turns, ++turns);
		}
		node_progress(&s->node);
		sched_yield();
	}
	printf("# %u changes of keys\n", turns);
	side_check(s, turns > 0, "keys were never changed");
	for (uint32_t i = 0; i < SLOTS; i++) {
		if (slots[i].mr)
			slot_close(s, slots, i);
		for (int k = 0; k < 2; k++)
			mem_free(slots[i].mem[k], LEN);
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- who uses them */

struct use {
	bool busy, read;
	uint32_t slot, len;
	uint8_t *mem;
};

struct user {
	struct side *s;
	uint64_t state;
	struct use uses[WINDOW];
	uint32_t busy, good, refused;
};

static void use_start(struct user *u, struct use *use)
{
	static const uint32_t most[] = {8, 500, 4096, LEN};
	struct node *n = &u->s->node;
	uint32_t at;
	ssize_t rc;

	use->slot = draw(&u->state, SLOTS);
	use->read = draw(&u->state, 3) == 0;
	use->len = 1 + draw(&u->state, most[draw(&u->state, ARRAY_LEN(most))]);
	at = draw(&u->state, LEN - use->len + 1);
	memset(use->mem, use->read ? FRESH : MARK(use->slot), use->len);
	do {
		rc = use->read ? fi_read(n->ep, use->mem, use->len, NULL, n->peer, at,
					 KEY + use->slot, use)
			       : fi_write(n->ep, use->mem, use->len, NULL, n->peer, at,
					  KEY + use->slot, use);
	} while (node_again(u->s, rc, use->read ? "fi_read" : "fi_write"));
	use->busy = true;
	u->busy++;
}

static void use_end(struct user *u, const struct done *d)
{
	struct use *use = d->e.op_context;

	if (!use->busy)
		side_die(u->s, "a second completion");
	use->busy = false;
	u->busy--;
	atomic_fetch_add(&board->ended, 1);
	if (d->err == FI_EACCES || d->err == FI_ENOKEY) {
		u->refused++;
		return;
	}
	if (d->err)
		side_die(u->s, "%s of %u bytes: %s", use->read ? "a read" : "a write",
			 use->len, fi_strerror(d->err));
	u->good++;
	if (use->read)
		bytes_check(u->s, use->mem, use->len, MARK(use->slot), "what was read");
}

static bool user_wants(const struct user *u)
{
	return u->good < GOOD || u->refused < REFUSED;
}

/* Keys keep up with operations. */
static bool user_may(const struct user *u)
{
	return user_wants(u) &&
	       (u->good + u->refused) / TURN < atomic_load(&board->turns) + 2;
}

static void user_run(struct side *s)
{
	struct user u = {.s = s, .state = ~seed};
	struct done d;

	node_open(s, &want_keys);
	for (uint32_t i = 0; i < WINDOW; i++)
		u.uses[i].mem = mem_new(LEN);
	side_meet(s);
	while (user_wants(&u) || u.busy) {
		for (uint32_t i = 0; i < WINDOW && user_may(&u); i++)
			if (!u.uses[i].busy)
				use_start(&u, &u.uses[i]);
		if (!u.busy) {
			sched_yield();
			continue;
		}
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "no operation ends; %u good, %u refused", u.good,
				 u.refused);
		use_end(&u, &d);
	}
	atomic_store(&board->over, true);
	printf("# %u were good, %u refused\n", u.good, u.refused);
	for (uint32_t i = 0; i < WINDOW; i++)
		mem_free(u.uses[i].mem, LEN);
	side_meet(s);
	node_close(s, &s->node);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{.name = "keys that come and go under traffic",
		 .run = {user_run, keys_run},
		 .needs_weft = true},
	};

	test_init(argc, argv);
	if (getrandom(&seed, sizeof(seed), 0) < 0)
		seed = (uint64_t)getpid();
	seed &= 0xffffffff;
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
	tap_diag("--seed %llu", (unsigned long long)seed);
	board = memset(mem_new_shared(sizeof(*board)), 0, sizeof(*board));
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
