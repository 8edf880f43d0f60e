/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_THREAD_SAFE: eight threads share one endpoint and one queue. Each sends messages to
 * that endpoint, posts their receives and reads whatever completions there are, also
 * those of others. Every operation completes exactly once, with its bytes.
 *
 *   test_threads [MESSAGES]
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "prov/fi/tests/end.h"
#include "util/tap.h"

#define THREADS	 8
#define WINDOW	 16
#define LONG	 70000 /* a rendezvous */
#define PATIENCE 100   /* s without a completion of one's own */

struct op {
	atomic_int sent, received; /* completions seen; 1 when it is over */
	uint64_t tag;
	size_t len;
	char *out, *in;
};

struct worker {
	pthread_t thread;
	unsigned int index;
	unsigned int random;
	long messages; /* to send */
	long done;
	struct op ops[WINDOW];
};

static struct end end;
static fi_addr_t self;
static struct worker workers[THREADS];
static atomic_long reads, wrong, errors;

static uint64_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

static void entry_take(const struct fi_cq_tagged_entry *e)
{
	struct op *op = e->op_context;

	if (e->flags & FI_SEND) {
		if (atomic_fetch_add(&op->sent, 1) != 0)
			atomic_fetch_add(&wrong, 1);
		return;
	}
	if (e->tag != op->tag || e->len != op->len ||
	    atomic_fetch_add(&op->received, 1) != 0)
		atomic_fetch_add(&wrong, 1);
}

/* Now and then sleeping, so that sleepers are woken by what others do. */
static void queue_read(struct worker *w)
{
	struct fi_cq_tagged_entry entries[32];
	size_t count = 1 + rand_r(&w->random) % 32;
	ssize_t n;

	if (rand_r(&w->random) % 4096 == 0)
		n = fi_cq_sread(end.cq, entries, count, NULL, 2);
	else
		n = fi_cq_read(end.cq, entries, count);
	if (n < 0 && n != -FI_EAGAIN)
		atomic_fetch_add(&errors, 1);
	for (ssize_t i = 0; i < n; i++)
		entry_take(&entries[i]);
	if (n > 0)
		atomic_fetch_add(&reads, n);
}

static size_t random_len(struct worker *w)
{
	unsigned int r = rand_r(&w->random) % 4096;

	if (r == 0)
		return LONG;
	return r < 64 ? r * 40 : 8 + r % 64;
}

/* False: still waiting for it. */
static bool op_step(struct worker *w, struct op *op, long *started)
{
	if (op->tag) {
		if (atomic_load(&op->sent) != 1 || atomic_load(&op->received) != 1)
			return false;
		if (memcmp(op->in, op->out, op->len))
			atomic_fetch_add(&wrong, 1);
		op->tag = 0;
		w->done++;
	}
	if (*started == w->messages)
		return true;
	op->len = random_len(w);
	op->tag = (uint64_t)(w->index + 1) << 48 | (uint64_t)++ * started;
	memcpy(op->out, &op->tag, sizeof(op->tag));
	atomic_store(&op->sent, 0);
	atomic_store(&op->received, 0);
	while (fi_trecv(end.ep, op->in, op->len, NULL, FI_ADDR_UNSPEC, op->tag, 0, op))
		queue_read(w);
	while (fi_tsend(end.ep, op->out, op->len, NULL, self, op->tag, op))
		queue_read(w);
	return true;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	uint64_t since = now_s();
	long started = 0;

	while (w->done < w->messages && now_s() - since < PATIENCE) {
		for (int i = 0; i < WINDOW; i++)
			if (op_step(w, &w->ops[i], &started))
				since = now_s();
		queue_read(w);
	}
	return NULL;
}

static void worker_start(struct worker *w, unsigned int index, long messages)
{
	w->index = index;
	w->random = index + 1;
	w->messages = messages;
	for (int i = 0; i < WINDOW; i++) {
		w->ops[i].out = malloc(LONG);
		w->ops[i].in = malloc(LONG);
		if (!w->ops[i].out || !w->ops[i].in)
			tap_bail("no memory");
		memset(w->ops[i].out, (int)index + i, LONG);
	}
	if (pthread_create(&w->thread, NULL, worker_run, w))
		tap_bail("no thread");
}

static long worker_join(struct worker *w)
{
	pthread_join(w->thread, NULL);
	for (int i = 0; i < WINDOW; i++) {
		if (w->ops[i].tag)
			tap_diag("thread %u, message %lld: sent %d, received %d",
				 w->index, (long long)(w->ops[i].tag & 0xffffffffffff),
				 atomic_load(&w->ops[i].sent),
				 atomic_load(&w->ops[i].received));
		free(w->ops[i].out);
		free(w->ops[i].in);
	}
	return w->done;
}

int main(int argc, char **argv)
{
	long messages = argc > 1      ? atol(argv[1])
			: tap_short() ? 20000
				      : 100000,
	     each = messages / THREADS;
	long done = 0;

	end_open(&end, FI_THREAD_SAFE);
	self = end_join(&end, &end);
	for (unsigned int i = 0; i < THREADS; i++)
		worker_start(&workers[i], i, each);
	for (int i = 0; i < THREADS; i++)
		done += worker_join(&workers[i]);
	tap_is_int(done, each * THREADS, "every message arrived and every send ended");
	tap_is_int(atomic_load(&reads), 2 * each * THREADS, "by one completion each");
	tap_is_int(atomic_load(&wrong), 0, "nothing twice, nothing for another");
	tap_is_int(atomic_load(&errors), 0, "no error");
	end_close(&end);
	return tap_done();
}
