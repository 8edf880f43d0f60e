/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many at the same words: threads of two processes, each with a domain and an endpoint of
 * its own, add to and compare and swap memory that all domains of its process have
 * registered. Nothing may get lost, and no two may be told the same.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define ALL	(2 * THREADS)
#define BURST	8				 /* adds under way at once */
#define BURSTS	10				 /* to each endpoint */
#define SWAPS	20				 /* to each endpoint */
#define ADDS	(ALL * THREADS * BURST * BURSTS) /* that one process gets */

static const struct want want_contend = {.caps = FI_ATOMIC,
					 .mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY};

/* What everybody hammers, one in each process. */
struct words {
	uint64_t sum;
	uint64_t swapped;
	uint32_t small; /* beside another that nobody touches */
	uint32_t beside;
	_Alignas(32) long double wide;
};

/* Shared by both processes. */
static struct board {
	uint32_t finished;
	uint8_t told[2][ADDS]; /* how often an add was told that value */
} * board;

struct door {
	char name[64];
	uint64_t base, key;
	int side;
};

struct worker {
	struct side *s;
	struct node node;
	struct fid_mr *mr;
	pthread_t thread;
	fi_addr_t to[ALL];
	const struct door *doors; /* ALL of them */
	bool only64;		  /* devices do it, and know nothing else */
	const char *failed;
};

/* Waits for that many completions. */
static bool await(struct worker *w, int count)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (count > 0) {
		struct fi_cq_tagged_entry e;
		ssize_t rc = fi_cq_read(w->node.cq, &e, 1);

		if (rc == 1) {
			count--;
			end = now_ms() + WAIT_MS;
		} else if (rc != -FI_EAGAIN) {
			w->failed = "a completion in error";
		} else if (now_ms() > end) {
			w->failed = "a completion that doesn't come";
		} else {
			sched_yield();
		}
		if (w->failed)
			return false;
	}
	return true;
}

/* One operation on a field of the target's words, with what it takes. */
struct change {
	enum fi_datatype type;
	enum fi_op op;
	size_t at;
	const void *arg, *cmp;
	void *result;
};

static void post(struct worker *w, int target, const struct change *c)
{
	const struct door *d = &w->doors[target];
	struct fid_ep *ep = w->node.ep;
	ssize_t rc;

	do {
		rc = c->cmp ? fi_compare_atomic(ep, c->arg, 1, NULL, c->cmp, NULL,
						c->result, NULL, w->to[target],
						d->base + c->at, d->key, c->type, c->op,
						NULL)
			    : fi_fetch_atomic(ep, c->arg, 1, NULL, c->result, NULL,
					      w->to[target], d->base + c->at, d->key,
					      c->type, c->op, NULL);
	} while (rc == -FI_EAGAIN);
	if (rc)
		w->failed = "a call that was refused";
}

static bool adds(struct worker *w, int target)
{
	const uint64_t one = 1;
	uint64_t was[BURST] = {0};

	for (int i = 0; i < BURST; i++)
		post(w, target,
		     &(struct change){.type = FI_UINT64,
				      .op = FI_SUM,
				      .at = offsetof(struct words, sum),
				      .arg = &one,
				      .result = &was[i]});
	if (!await(w, BURST))
		return false;
	for (int i = 0; i < BURST; i++) {
		if (was[i] >= ADDS) {
			w->failed = "a value that cannot be";
			return false;
		}
		__atomic_add_fetch(&board->told[w->doors[target].side][was[i]], 1,
				   __ATOMIC_RELAXED);
	}
	return true;
}

static bool swap(struct worker *w, int target)
{
	uint64_t seen = 0, next, was = 0;

	for (;;) {
		next = seen + 1;
		post(w, target,
		     &(struct change){.type = FI_UINT64,
				      .op = FI_CSWAP,
				      .at = offsetof(struct words, swapped),
				      .arg = &next,
				      .cmp = &seen,
				      .result = &was});
		if (!await(w, 1) || was == seen)
			return !w->failed;
		seen = was;
	}
}

static bool others(struct worker *w, int target)
{
	const long double two = 2;
	const uint32_t one = 1;
	long double wide;
	uint32_t small;

	post(w, target,
	     &(struct change){.type = FI_LONG_DOUBLE,
			      .op = FI_SUM,
			      .at = offsetof(struct words, wide),
			      .arg = &two,
			      .result = &wide});
	post(w, target,
	     &(struct change){.type = FI_UINT32,
			      .op = FI_SUM,
			      .at = offsetof(struct words, small),
			      .arg = &one,
			      .result = &small});
	return await(w, 2);
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	uint64_t end;

	for (int i = 0; i < SWAPS && !w->failed; i++) {
		for (int target = 0; target < ALL && !w->failed; target++) {
			if (i % (SWAPS / BURSTS) == 0 && !adds(w, target))
				break;
			if (!swap(w, target) || (!w->only64 && !others(w, target)))
				break;
		}
	}
	__atomic_add_fetch(&board->finished, 1, __ATOMIC_SEQ_CST);
	end = now_ms() + WAIT_MS;
	while (__atomic_load_n(&board->finished, __ATOMIC_SEQ_CST) < ALL) {
		node_progress(&w->node);
		sched_yield();
		if (now_ms() > end) {
			w->failed = "others that don't finish";
			break;
		}
	}
	return NULL;
}

static void totals_check(struct side *s, const struct words *words, bool only64)
{
	uint64_t each = only64 ? 0 : ALL * SWAPS * THREADS;

	side_check_u64(s, words->sum, ADDS, "adds");
	side_check_u64(s, words->swapped, ALL * SWAPS * THREADS, "swaps");
	side_check_u64(s, words->small, each, "small adds");
	side_check_u64(s, words->beside, 0x12345678, "the word beside them");
	side_check_u64(s, (uint64_t)words->wide, 2 * each, "wide adds");
	for (int i = 0; i < ADDS; i++) {
		if (board->told[s->role][i] != 1) {
			side_check(s, false, "value %d was told %d times", i,
				   board->told[s->role][i]);
			return;
		}
	}
}

static void contend_run(struct side *s)
{
	struct words *words = mem_new(4096);
	struct worker workers[THREADS] = {0};
	struct door doors[ALL] = {0};
	const char *who = getenv("FI_WEFT_VERBS_ATOMICS");
	bool only64 = who && strcmp(who, "native") == 0;

	memset(words, 0, sizeof(*words));
	words->beside = 0x12345678;
	for (int i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];
		struct door *d = &doors[s->role * THREADS + i];

		w->s = s;
		w->doors = doors;
		node_open_alone(s, &w->node, &want_contend);
		w->only64 = only64;
		side_check(s,
			   !fi_fetch_atomicvalid(w->node.ep, FI_UINT32, FI_SUM,
						 &(size_t){0}) != only64,
			   "sums of 32 bits are there, or not");
		side_must(s,
			  fi_mr_reg(w->node.domain, words, 4096,
				    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &w->mr,
				    NULL),
			  "fi_mr_reg");
		memcpy(d->name, w->node.name, sizeof(d->name));
		d->base = (uintptr_t)words;
		d->key = fi_mr_key(w->mr);
		d->side = s->role;
	}
	side_tell(s, &doors[s->role * THREADS], THREADS * sizeof(doors[0]));
	side_hear(s, &doors[!s->role * THREADS], THREADS * sizeof(doors[0]));
	for (int i = 0; i < THREADS; i++) {
		for (int k = 0; k < ALL; k++) {
			if (fi_av_insert(workers[i].node.av, doors[k].name, 1,
					 &workers[i].to[k], 0, NULL) != 1)
				side_die(s, "fi_av_insert");
		}
	}
	side_meet(s);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]))
			side_die(s, "no thread");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		side_check(s, !workers[i].failed, "thread %d: %s", i, workers[i].failed);
	}
	side_meet(s);
	totals_check(s, words, only64);
	for (int i = 0; i < THREADS; i++) {
		side_must(s, fi_close(&workers[i].mr->fid), "fi_close");
		node_close(s, &workers[i].node);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case one = {
		.name = "B1, E4: two processes of three threads at the same words",
		.run = {contend_run, contend_run}};

	test_init(argc, argv);
	board = mem_new_shared(sizeof(*board));
	memset(board, 0, sizeof(*board));
	cases_run(&one, 1, "");
	return test_done();
}
