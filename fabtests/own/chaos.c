/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Four ranks that send each other small and large messages and write and read each
 * other's memory, while they are stopped and continued at random, and one is killed. No
 * byte is wrong, nothing between those who live fails, and every operation with the dead
 * one has an end.
 *
 * --count N runs for each way that large messages go (the short form of make check
 * otherwise); a run takes two seconds.
 */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabtests/own/remote.h"
#include "fabtests/own/soak.h"
#include "util/tap.h"

#define RANKS	  4
#define WINDOW	  2 /* messages of a kind and direction to a peer */
#define SMALL	  4000u
#define LARGE	  (400u << 10)
#define STRIPE	  (96u << 10) /* of a rank's memory, one for each peer */
#define END_MS	  30000	      /* for everything to end */
#define RUN_MS	  1500
#define RUN_SHORT 600

enum kind { KIND_SMALL, KIND_LARGE, KINDS };
enum phase { PHASE_OPEN, PHASE_RUN, PHASE_DRAIN };
#define NOBODY RANKS

/* What all of them see. */
struct board {
	_Atomic(int) phase;
	_Atomic(int) killed; /* written before it is */
	_Atomic(int) ready, connected;
	uint8_t names[RANKS][64];
	uint64_t base[RANKS], key[RANKS];
	_Atomic(uint32_t) sent[RANKS][RANKS][KINDS]; /* valid once told */
	_Atomic(bool) told[RANKS];
	_Atomic(bool) through[RANKS];	/* with everything that it began itself */
	_Atomic(uint64_t) moved[RANKS]; /* operations that ended well */
	_Atomic(uint64_t) failed[RANKS];
};

enum what { WHAT_SEND, WHAT_RECV, WHAT_WRITE, WHAT_READ };

struct op {
	enum what what;
	enum kind kind;
	int peer;
	bool busy;
	uint32_t seq;
	size_t len;
	uint8_t *buf;
};

struct peer {
	fi_addr_t addr;
	bool dead; /* an operation said so */
	struct op send[KINDS][WINDOW], recv[KINDS][WINDOW];
	struct op write, read;
	uint32_t sent[KINDS], posted[KINDS], received[KINDS];
	uint32_t rma;
};

struct rank {
	struct side *s;
	struct board *b;
	int me;
	struct peer peers[RANKS];
	uint8_t *mem;
	struct fid_mr *mr;
	uint64_t end; /* 0: no deadline yet */
};

/* ---- what is in a message */

static uint32_t seed_of(int from, int to, enum kind kind, uint32_t seq)
{
	return (((uint32_t)from * RANKS + (uint32_t)to) * KINDS + kind) * 1000003u +
	       seq * 7919u;
}

static size_t len_of(enum kind kind, uint32_t seed)
{
	if (kind == KIND_SMALL)
		return 1 + seed % SMALL;
	return LARGE - seed % (LARGE - 20000);
}

static uint64_t tag_of(int from, enum kind kind)
{
	return 0x100u * (uint64_t)from + kind + 1;
}

/* ---- posting */

static bool taken(struct rank *r, struct op *op, ssize_t rc)
{
	if (rc == -FI_EAGAIN)
		return false;
	if (rc < 0 && atomic_load(&r->b->killed) == op->peer) {
		r->peers[op->peer].dead = true;
		return false;
	}
	side_must(r->s, rc, "post");
	op->busy = true;
	return true;
}

static void send_post(struct rank *r, struct op *op)
{
	struct peer *p = &r->peers[op->peer];
	uint32_t seed;

	op->seq = p->sent[op->kind];
	seed = seed_of(r->me, op->peer, op->kind, op->seq);
	op->len = len_of(op->kind, seed);
	mem_fill(op->buf, op->len, seed);
	if (taken(r, op,
		  fi_tsend(r->s->node.ep, op->buf, op->len, NULL, p->addr,
			   tag_of(r->me, op->kind), op)))
		p->sent[op->kind]++;
}

static void recv_post(struct rank *r, struct op *op)
{
	struct peer *p = &r->peers[op->peer];
	size_t room = op->kind == KIND_SMALL ? SMALL : LARGE;

	op->seq = p->posted[op->kind];
	if (taken(r, op,
		  fi_trecv(r->s->node.ep, op->buf, room, NULL, FI_ADDR_UNSPEC,
			   tag_of(op->peer, op->kind), 0, op)))
		p->posted[op->kind]++;
}

/* A write of the whole stripe or a part, and then a read of it. */
static void rma_post(struct rank *r, struct op *op, bool write)
{
	struct peer *p = &r->peers[op->peer];
	uint64_t at = r->b->base[op->peer] + (uint64_t)r->me * STRIPE;
	uint64_t key = r->b->key[op->peer];

	if (write) {
		op->seq = p->rma++;
		op->len = op->seq % 3 ? 1 + op->seq * 131 % 2000 : STRIPE;
		mem_fill(op->buf, op->len, op->seq);
		taken(r, op,
		      fi_write(r->s->node.ep, op->buf, op->len, NULL, p->addr, at, key,
			       op));
	} else {
		taken(r, op,
		      fi_read(r->s->node.ep, op->buf, op->len, NULL, p->addr, at, key,
			      op));
	}
}

static void post_all(struct rank *r)
{
	bool run = atomic_load(&r->b->phase) == PHASE_RUN;

	for (int i = 0; i < RANKS; i++) {
		struct peer *p = &r->peers[i];

		if (i == r->me || p->dead)
			continue;
		for (int k = 0; k < KINDS * WINDOW; k++) {
			struct op *send = &p->send[k % KINDS][k / KINDS];
			struct op *recv = &p->recv[k % KINDS][k / KINDS];

			if (!recv->busy)
				recv_post(r, recv);
			if (!send->busy && run)
				send_post(r, send);
		}
		/* A write that wasn't taken goes again, under a new number. */
		if (!p->write.busy && !p->read.busy && run)
			rma_post(r, &p->write, true);
	}
}

/* ---- completions */

static void ended_well(struct rank *r, struct op *op, size_t len)
{
	struct peer *p = &r->peers[op->peer];
	uint32_t seed;

	switch (op->what) {
	case WHAT_SEND:
		break;
	case WHAT_RECV:
		seed = seed_of(op->peer, r->me, op->kind, op->seq);
		side_check_u64(r->s, len, len_of(op->kind, seed), "length of a message");
		mem_check(r->s, op->buf, len, seed, "message");
		p->received[op->kind]++;
		break;
	case WHAT_WRITE:
		p->read.seq = op->seq;
		p->read.len = op->len;
		rma_post(r, &p->read, false);
		break;
	case WHAT_READ:
		mem_check(r->s, op->buf, op->len, op->seq, "what was written");
		break;
	}
	atomic_fetch_add(&r->b->moved[r->me], 1);
}

static void completed(struct rank *r, const struct done *d)
{
	struct op *op = d->e.op_context;

	if (!op->busy)
		side_die(r->s, "a second completion");
	op->busy = false;
	if (d->err == 0) {
		ended_well(r, op, d->e.len);
		return;
	}
	if (d->err == FI_ECANCELED && op->what == WHAT_RECV &&
	    atomic_load(&r->b->phase) == PHASE_DRAIN)
		return;
	if (atomic_load(&r->b->killed) != op->peer)
		side_die(r->s, "rank %d: an operation with rank %d, which lives: %s",
			 r->me, op->peer, fi_strerror(d->err));
	atomic_fetch_add(&r->b->failed[r->me], 1);
	r->peers[op->peer].dead = true;
}

static void step(struct rank *r)
{
	struct done d;
	int i;

	for (i = 0; i < 16 && node_next(r->s, &d, 0); i++)
		completed(r, &d);
	if (i == 0)
		sched_yield();
}

/* ---- the end */

/* All that living peers sent is here, and nothing of ours is under way. */
static bool is_drained(struct rank *r)
{
	int killed = atomic_load(&r->b->killed);

	for (int i = 0; i < RANKS; i++) {
		struct peer *p = &r->peers[i];

		if (i == r->me)
			continue;
		for (int k = 0; k < KINDS * WINDOW; k++)
			if (p->send[k % KINDS][k / KINDS].busy)
				return false;
		if (p->write.busy || p->read.busy)
			return false;
		if (i == killed)
			continue;
		if (!atomic_load(&r->b->told[i]))
			return false;
		for (int k = 0; k < KINDS; k++)
			if (p->received[k] != atomic_load(&r->b->sent[i][r->me][k]))
				return false;
	}
	return true;
}

/* Cancels what waits for messages that don't come. True: no receive is left. */
static bool receives_end(struct rank *r)
{
	int left = 0;

	for (int i = 0; i < RANKS; i++) {
		for (int k = 0; k < KINDS * WINDOW; k++) {
			struct op *op = &r->peers[i].recv[k % KINDS][k / KINDS];

			if (op->busy && fi_cancel(&r->s->node.ep->fid, op) < 0)
				side_die(r->s, "fi_cancel");
			left += op->busy;
		}
	}
	return left == 0;
}

/* Others may still be at work in our memory. */
static bool all_through(struct rank *r)
{
	atomic_store(&r->b->through[r->me], true);
	for (int i = 0; i < RANKS; i++)
		if (!atomic_load(&r->b->through[i]) && i != atomic_load(&r->b->killed))
			return false;
	return true;
}

static void deadline(struct rank *r, const char *what)
{
	if (now_ms() < r->end)
		return;
	for (int i = 0; i < RANKS; i++) {
		struct peer *p = &r->peers[i];

		if (i == r->me)
			continue;
		printf("# rank %d, peer %d (%s): small sent %u, received %u of %u; large "
		       "sent %u, received %u of %u; write %d, read %d under way\n",
		       r->me, i, i == atomic_load(&r->b->killed) ? "killed" : "alive",
		       p->sent[0], p->received[0],
		       (unsigned)atomic_load(&r->b->sent[i][r->me][0]), p->sent[1],
		       p->received[1], (unsigned)atomic_load(&r->b->sent[i][r->me][1]),
		       p->write.busy, p->read.busy);
	}
	side_die(r->s, "rank %d: %s", r->me, what);
}

static void tell_sent(struct rank *r)
{
	for (int i = 0; i < RANKS; i++)
		for (int k = 0; k < KINDS; k++)
			atomic_store(&r->b->sent[r->me][i][k], r->peers[i].sent[k]);
	atomic_store(&r->b->told[r->me], true);
}

/* ---- a rank */

static void op_init(struct op *op, enum what what, enum kind kind, int peer, size_t len)
{
	*op = (struct op){.what = what, .kind = kind, .peer = peer, .buf = mem_new(len)};
}

static void rank_open(struct rank *r)
{
	const struct want want = {.caps = FI_MSG | FI_TAGGED | FI_RMA,
				  .mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
					     FI_MR_ALLOCATED,
				  .tx_op_flags = FI_DELIVERY_COMPLETE};
	struct node *n = &r->s->node;

	node_open_alone(r->s, n, &want);
	r->mem = mem_new(RANKS * STRIPE);
	side_must(r->s,
		  fi_mr_reg(n->domain, r->mem, RANKS * STRIPE,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &r->mr, NULL),
		  "fi_mr_reg");
	memcpy(r->b->names[r->me], n->name, 64);
	r->b->base[r->me] = remote_base(n, r->mem);
	r->b->key[r->me] = fi_mr_key(r->mr);
	for (int i = 0; i < RANKS; i++) {
		struct peer *p = &r->peers[i];

		for (int k = 0; k < KINDS * WINDOW; k++) {
			enum kind kind = (enum kind)(k % KINDS);

			op_init(&p->send[kind][k / KINDS], WHAT_SEND, kind, i, LARGE);
			op_init(&p->recv[kind][k / KINDS], WHAT_RECV, kind, i, LARGE);
		}
		op_init(&p->write, WHAT_WRITE, KIND_LARGE, i, STRIPE);
		op_init(&p->read, WHAT_READ, KIND_LARGE, i, STRIPE);
	}
}

static void all_here(struct rank *r, _Atomic(int) *count)
{
	atomic_fetch_add(count, 1);
	while (atomic_load(count) < RANKS) {
		node_progress(&r->s->node);
		deadline(r, "not all ranks start");
		sched_yield();
	}
}

static void rank_run(struct side *s, struct board *b, int me)
{
	struct rank *r = mem_new(sizeof(*r));

	memset(r, 0, sizeof(*r));
	*r = (struct rank){.s = s, .b = b, .me = me, .end = now_ms() + END_MS};
	rank_open(r);
	all_here(r, &b->ready);
	for (int i = 0; i < RANKS; i++)
		side_check(s,
			   fi_av_insert(s->node.av, b->names[i], 1, &r->peers[i].addr, 0,
					NULL) == 1,
			   "fi_av_insert");
	all_here(r, &b->connected);
	while (atomic_load(&b->phase) != PHASE_DRAIN) {
		post_all(r);
		step(r);
	}
	tell_sent(r);
	r->end = now_ms() + END_MS;
	while (!is_drained(r)) {
		post_all(r);
		step(r);
		deadline(r, "operations have no end");
	}
	while (!receives_end(r)) {
		step(r);
		deadline(r, "receives have no end");
	}
	while (!all_through(r)) {
		step(r);
		deadline(r, "another rank has no end");
	}
	side_must(s, fi_close(&r->mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

/* ---- chaos */

struct run {
	struct soak *k;
	struct board *b;
	pid_t pid[RANKS]; /* 0: ended */
	int sock[RANKS];
	int stops;
};

static void nap(struct run *run, uint32_t least, uint32_t more)
{
	sleep_ms((int)(least + soak_random(run->k, more)));
}

static void disturb(struct run *run, int victim, int ms, int kill_at)
{
	uint64_t begin = now_ms();
	int killed = NOBODY;

	while (now_ms() < begin + (uint64_t)ms) {
		int i = (int)soak_random(run->k, RANKS);
		bool late = now_ms() >= begin + (uint64_t)kill_at;

		if (late && killed == NOBODY)
			i = victim;
		if (i == killed)
			continue;
		kill(run->pid[i], SIGSTOP);
		run->stops++;
		nap(run, 3, 120);
		if (late && killed == NOBODY) {
			/* From a stop, or out of the middle. */
			if (soak_random(run->k, 2)) {
				kill(run->pid[i], SIGCONT);
				nap(run, 1, 10);
			}
			atomic_store(&run->b->killed, victim);
			kill(run->pid[i], SIGKILL);
			killed = victim;
		} else {
			kill(run->pid[i], SIGCONT);
		}
		nap(run, 2, 30);
	}
}

static bool ranks_end(struct run *run, int victim)
{
	const uint64_t end = now_ms() + 2 * END_MS;
	bool good = true;

	for (int i = 0; i < RANKS; i++) {
		int status = 0;

		while (waitpid(run->pid[i], &status, WNOHANG) != run->pid[i]) {
			if (now_ms() > end)
				kill(run->pid[i], SIGKILL);
			sleep_ms(1);
		}
		close(run->sock[i]);
		if (i == victim ? !WIFSIGNALED(status) : status != 0) {
			tap_diag("rank %d (rank %d was killed): status 0x%x", i, victim,
				 status);
			good = false;
		}
	}
	return good;
}

static bool chaos_run(struct soak *k, int ms)
{
	struct run run = {.k = k, .b = mem_new_shared(sizeof(struct board))};
	int victim = (int)soak_random(k, RANKS);
	uint64_t moved = 0, failed = 0, end = now_ms() + END_MS;
	bool good;

	memset(run.b, 0, sizeof(*run.b));
	atomic_store(&run.b->killed, NOBODY);
	for (int i = 0; i < RANKS; i++) {
		struct side s;

		run.pid[i] = soak_fork(&s, &run.sock[i]);
		if (run.pid[i] == 0) {
			rank_run(&s, run.b, i);
			exit(s.failed ? 1 : 0);
		}
	}
	while (atomic_load(&run.b->connected) < RANKS && now_ms() < end)
		sleep_ms(1);
	atomic_store(&run.b->phase, PHASE_RUN);
	disturb(&run, victim, ms, (int)soak_random(k, (uint32_t)ms * 2 / 3) + 50);
	if (atomic_load(&run.b->killed) == NOBODY) {
		atomic_store(&run.b->killed, victim);
		kill(run.pid[victim], SIGKILL);
	}
	atomic_store(&run.b->phase, PHASE_DRAIN);
	good = ranks_end(&run, victim);
	for (int i = 0; i < RANKS; i++) {
		moved += atomic_load(&run.b->moved[i]);
		failed += atomic_load(&run.b->failed[i]);
	}
	tap_diag("rank %d killed, %d stops, %llu operations ended well, %llu with the "
		 "dead",
		 victim, run.stops, (unsigned long long)moved,
		 (unsigned long long)failed);
	mem_free(run.b, sizeof(*run.b));
	return good && moved > 0;
}

int main(int argc, char **argv)
{
	/* Large messages by every way. */
	static const char *const ways[][2] = {{"FI_WEFT_CMA", "auto"},
					      {"FI_WEFT_CMA", "0"},
					      {"FI_WEFT_BULK_SIZE", "16384"}};
	struct soak k;

	test_init(argc, argv);
	setenv("FI_WEFT_CONNECT_TIMEOUT", "2000", 0);
	soak_init(&k, argc, argv, 1);
	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		setenv(ways[w][0], ways[w][1], 1);
		for (int i = 0; i < k.count; i++)
			tap_ok(chaos_run(&k, k.count > 1 ? RUN_MS : RUN_SHORT),
			       "run %d, %s=%s", i + 1, ways[w][0], ways[w][1]);
		unsetenv(ways[w][0]);
		if (!test_is_weft() || tap_short())
			break;
	}
	return tap_done();
}
