/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bench/instructions counts: one process, one thread, two endpoints, each with a
 * fabric, a domain and a completion queue of its own, as two processes would have them.
 * Messages go back and forth one by one, so nothing waits for anything, and every read of
 * a queue gives a completion if the provider allows it.
 *
 *   inst_fi PROVIDER tagged|write SIZE COUNT
 *
 * tagged: post a receive, send, read the send's completion, read the receive's.
 * write: write into the other's memory, read its completion; then the target's queue is
 * read once, which gives nothing: some providers land the bytes there.
 * Prints how many reads of a queue found nothing.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/node.h"

enum {
	WARM = 64, /* before counting: connections, caches of the provider */
	TRIES = 1000000,
	SIZE_MOST = 1 << 20,
	COUNT_MOST = 10000000,
	TAG = 7,
};

struct end {
	struct node node;
	struct node_card card;
	struct node_region region;
	struct node_target target;
	char *out, *in;
};

struct pair {
	struct end end[2];
	size_t size;
	uint64_t empty; /* reads that found nothing */
};

/* Progress; there must be no completion. */
static void end_drive(struct end *e)
{
	struct fi_cq_tagged_entry entry;
	ssize_t rc = fi_cq_read(e->node.cq, &entry, 1);

	if (rc != -FI_EAGAIN)
		bench_die("a completion that nobody waits for, or an error: %zd", rc);
}

/* One completion of e's queue; the other is driven while there is none. */
static void await_one(struct pair *p, struct end *e, struct end *other)
{
	struct fi_cq_tagged_entry entry;
	ssize_t rc;

	for (int i = 0; i < TRIES; i++) {
		rc = fi_cq_read(e->node.cq, &entry, 1);
		if (rc == 1)
			return;
		if (rc != -FI_EAGAIN)
			bench_must(rc, "fi_cq_read");
		p->empty++;
		end_drive(other);
	}
	bench_die("no completion in %d reads", TRIES);
}

/* After a post that was refused for the moment. */
static bool again(struct pair *p, ssize_t rc, const char *call)
{
	if (rc == 0)
		return false;
	if (rc != -FI_EAGAIN)
		bench_must(rc, call);
	end_drive(&p->end[0]);
	end_drive(&p->end[1]);
	return true;
}

static void tagged_once(struct pair *p, struct end *a, struct end *b)
{
	while (again(p,
		     fi_trecv(b->node.ep, b->in, p->size, b->region.desc, b->node.peer,
			      TAG, 0, NULL),
		     "fi_trecv"))
		;
	while (again(p,
		     fi_tsend(a->node.ep, a->out, p->size, a->region.desc, a->node.peer,
			      TAG, NULL),
		     "fi_tsend"))
		;
	await_one(p, a, b);
	await_one(p, b, a);
}

static void write_once(struct pair *p, struct end *a, struct end *b)
{
	while (again(p,
		     fi_write(a->node.ep, a->out, p->size, a->region.desc, a->node.peer,
			      b->target.addr, b->target.key, NULL),
		     "fi_write"))
		;
	await_one(p, a, b);
	end_drive(b);
}

typedef void once_fn(struct pair *p, struct end *a, struct end *b);

/* The only place that is counted: bench/instructions names it to the tool. */
__attribute__((noinline)) static void counted_loop(struct pair *p, once_fn *once,
						   uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		once(p, &p->end[i % 2], &p->end[1 - i % 2]);
}

static void end_open(struct end *e, const char *provider, size_t size, uint64_t key)
{
	node_open(&e->node, provider, &e->card);
	if (posix_memalign((void **)&e->in, 4096, 2 * size))
		bench_die("no memory for 2 x %zu bytes", size);
	memset(e->in, 1, 2 * size);
	e->out = e->in + size;
	node_region_open(&e->node, &e->region, e->in, 2 * size, key, &e->target);
}

static void end_close(struct end *e)
{
	node_region_close(&e->region);
	node_close(&e->node);
	free(e->in);
}

int main(int argc, char **argv)
{
	void (*once)(struct pair * p, struct end * a, struct end * b) = NULL;
	static struct pair p;
	uint64_t size, count;

	if (argc == 5 && strcmp(argv[2], "tagged") == 0)
		once = tagged_once;
	else if (argc == 5 && strcmp(argv[2], "write") == 0)
		once = write_once;
	if (!once || !bench_number(argv[3], 1, SIZE_MOST, &size) ||
	    !bench_number(argv[4], 1, COUNT_MOST, &count)) {
		fprintf(stderr, "usage: inst_fi PROVIDER tagged|write SIZE COUNT\n");
		return 2;
	}
	p.size = size;
	for (int i = 0; i < 2; i++)
		end_open(&p.end[i], argv[1], p.size, (uint64_t)i + 1);
	for (int i = 0; i < 2; i++)
		node_join(&p.end[i].node, &p.end[1 - i].card);
	for (int i = 0; i < WARM; i++)
		once(&p, &p.end[i % 2], &p.end[1 - i % 2]);
	p.empty = 0;
	counted_loop(&p, once, count);
	printf("%" PRIu64 " empty reads in %" PRIu64 "\n", p.empty, count);
	for (int i = 0; i < 2; i++)
		end_close(&p.end[i]);
	return 0;
}
