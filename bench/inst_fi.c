/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bench/instructions counts: one process, one thread, two endpoints, each with a
 * fabric, a domain and a completion queue of its own, as two processes would have them.
 * Messages go back and forth one by one, so nothing waits for anything, and every read of
 * a queue gives a completion if the provider allows it.
 *
 *   inst_fi PROVIDER OPERATION SIZE COUNT [OPTION]...
 *
 * tagged: post a receive, send, read the send's completion, read the receive's.
 * write, read: into or from the other's memory, read its completion; then the target's
 * queue is read once, which gives nothing: some providers land the bytes there.
 * writedata: a write with remote data; the target's queue gives its completion.
 * inject: a write without completion; both queues are read once.
 * turn: a message has arrived; the read of its completion and the injected reply, which
 * is what a half round trip has of the library between the device and the device.
 *
 * Options: safe, endpoint, completion (FI_THREAD_..., else FI_THREAD_DOMAIN), data
 * (tagged messages carry remote data), directed (receives name their source), ignore
 * (receives ignore bits), counter (sends are counted as well), shared (memory that the
 * provider shares, where it has some), patient (a pause before each look for a
 * completion: a device delivers in its own time, and reads in vain are not what is
 * counted); posted=N, waiting=N (each end has N receives, or messages, of that kind that
 * nothing fits); timed (the median time of one is printed, of a turn likewise of what is
 * counted: in a machine whose clock counts instructions, all of them, the kernel's too).
 * Prints how many reads of a queue found nothing.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/node.h"

enum {
	WARM = 64, /* before counting: connections, caches of the provider */
	TRIES = 1000000,
	SIZE_MOST = 1 << 20,
	COUNT_MOST = 10000000,
	CROWD_MOST = 100000,
	TAG = 7,
	IGNORE = 0xff00,
	DATA = 99,
	PAUSE_NS = 300000,
	LAPS = 16384, /* the last so many are timed */
};

/* Options. */
enum {
	OPT_DATA = 1,
	OPT_DIRECTED = 2,
	OPT_IGNORE = 4,
	OPT_COUNTER = 8,
	OPT_SHARED = 16,
	OPT_PATIENT = 32,
	OPT_TIMED = 64,
};

struct end {
	struct node node;
	struct node_card card;
	struct node_region region;
	struct node_target target;
	char *out, *in;
	bool shared;	/* the provider's memory, not malloc's */
	bool crowded;	/* small messages are announced too: nothing keeps its usual order
			 */
	uint64_t early; /* completions that came before they were waited for */
};

struct pair {
	struct end end[2];
	size_t size;
	unsigned options;
	uint64_t posted, waiting; /* that nothing fits */
	uint64_t empty;		  /* reads that found nothing */
	bool counting;		  /* it is warm */
	uint64_t took; /* ns of the last turn; 0: the operation has no such part */
};

/* Without the C library's wrapper, whose instructions would be counted. */
static void pause_now(void)
{
	syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Progress; there must be no completion but `due` ones, unless it is crowded. */
static void end_drive_due(struct end *e, uint64_t due)
{
	struct fi_cq_tagged_entry entry;
	ssize_t rc = fi_cq_read(e->node.cq, &entry, 1);

	if (rc == 1 && (e->crowded || e->early < due))
		e->early++;
	else if (rc != -FI_EAGAIN)
		bench_die("a completion that nobody waits for, or an error: %zd", rc);
}

static void end_drive(struct end *e)
{
	end_drive_due(e, 0);
}

/* One completion of e's queue; the other is driven while there is none, and may get `due`
 * ones of its own: who pulls a message has it before the sender hears so. */
static void await_one(struct pair *p, struct end *e, struct end *other, uint64_t due)
{
	struct fi_cq_tagged_entry entry;
	ssize_t rc;

	for (int i = 0; i < TRIES; i++) {
		if (p->options & OPT_PATIENT)
			pause_now();
		rc = fi_cq_read(e->node.cq, &entry, 1);
		if (rc == 1)
			return;
		if (rc != -FI_EAGAIN)
			bench_must(rc, "fi_cq_read");
		if (e->early > 0) {
			e->early--;
			return;
		}
		p->empty++;
		end_drive_due(other, due);
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

static inline __attribute__((always_inline)) void tagged_with(struct pair *p,
							      struct end *a,
							      struct end *b, bool data,
							      uint64_t ignore)
{
	while (again(p,
		     fi_trecv(b->node.ep, b->in, p->size, b->region.desc, b->node.peer,
			      TAG, ignore, NULL),
		     "fi_trecv"))
		;
	while (again(p,
		     data ? fi_tsenddata(a->node.ep, a->out, p->size, a->region.desc,
					 DATA, a->node.peer, TAG, NULL)
			  : fi_tsend(a->node.ep, a->out, p->size, a->region.desc,
				     a->node.peer, TAG, NULL),
		     "fi_tsend"))
		;
	await_one(p, a, b, 1);
	await_one(p, b, a, 0);
}

static void tagged_once(struct pair *p, struct end *a, struct end *b)
{
	tagged_with(p, a, b, false, 0);
}

static void tagged_other_once(struct pair *p, struct end *a, struct end *b)
{
	tagged_with(p, a, b, p->options & OPT_DATA, p->options & OPT_IGNORE ? IGNORE : 0);
}

static void write_once(struct pair *p, struct end *a, struct end *b)
{
	while (again(p,
		     fi_write(a->node.ep, a->out, p->size, a->region.desc, a->node.peer,
			      b->target.addr, b->target.key, NULL),
		     "fi_write"))
		;
	await_one(p, a, b, 0);
	end_drive(b);
}

static void read_once(struct pair *p, struct end *a, struct end *b)
{
	while (again(p,
		     fi_read(a->node.ep, a->in, p->size, a->region.desc, a->node.peer,
			     b->target.addr, b->target.key, NULL),
		     "fi_read"))
		;
	await_one(p, a, b, 0);
	end_drive(b);
}

static void writedata_once(struct pair *p, struct end *a, struct end *b)
{
	while (again(p,
		     fi_writedata(a->node.ep, a->out, p->size, a->region.desc, DATA,
				  a->node.peer, b->target.addr, b->target.key, NULL),
		     "fi_writedata"))
		;
	await_one(p, a, b, 1);
	await_one(p, b, a, 0);
}

static void inject_once(struct pair *p, struct end *a, struct end *b)
{
	while (again(p,
		     fi_inject_write(a->node.ep, a->out, p->size, a->node.peer,
				     b->target.addr, b->target.key),
		     "fi_inject_write"))
		;
	end_drive(a);
	end_drive(b);
}

static void recv_now(struct pair *p, struct end *e)
{
	while (again(p,
		     fi_trecv(e->node.ep, e->in, p->size, e->region.desc, e->node.peer,
			      TAG, 0, NULL),
		     "fi_trecv"))
		;
}

static void inject_now(struct pair *p, struct end *e)
{
	while (again(p, fi_tinject(e->node.ep, e->out, p->size, e->node.peer, TAG),
		     "fi_tinject"))
		;
}

static inline __attribute__((always_inline)) void turn_now(struct pair *p, struct end *a,
							   struct end *b)
{
	await_one(p, a, b, 0);
	inject_now(p, a);
}

/* Of a turn the only part that is counted, and not before counting begins:
 * bench/instructions names it to the tool. */
__attribute__((noinline)) static void counted_turn(struct pair *p, struct end *a,
						   struct end *b)
{
	turn_now(p, a, b);
}

static void turn_once(struct pair *p, struct end *a, struct end *b)
{
	uint64_t begin = 0;

	recv_now(p, a);
	recv_now(p, b);
	inject_now(p, b);
	if (p->options & OPT_TIMED)
		begin = bench_now_ns();
	if (p->counting)
		counted_turn(p, a, b);
	else
		turn_now(p, a, b);
	if (p->options & OPT_TIMED)
		p->took = bench_now_ns() - begin;
	await_one(p, b, a, 0);
}

/* ---- a crowd ----------------------------------------------------------------------- */

/* Progress for a while; completions are those of the crowd's sends. */
static void crowd_settle(struct pair *p)
{
	struct fi_cq_tagged_entry entry;

	for (int quiet = 0; quiet < 1000; quiet++) {
		for (int i = 0; i < 2; i++) {
			if (fi_cq_read(p->end[i].node.cq, &entry, 1) == 1)
				quiet = 0;
		}
	}
}

/* Tag number i of those that no message of the benchmark has, and no other receive. */
static uint64_t crowd_tag(uint64_t i)
{
	return TAG | (i + 1) << 16;
}

static ssize_t crowd_post(struct pair *p, struct end *a, struct end *b, uint64_t i,
			  bool message)
{
	uint64_t ignore = p->options & OPT_IGNORE ? IGNORE : 0;

	if (message) /* behind the receives' tags */
		return fi_tsend(a->node.ep, a->out, p->size, a->region.desc, a->node.peer,
				crowd_tag(COUNT_MOST + i), NULL);
	return fi_trecv(b->node.ep, b->in, p->size, b->region.desc, b->node.peer,
			crowd_tag(i), ignore, NULL);
}

static void crowd_make(struct pair *p, uint64_t count, bool message)
{
	for (int i = 0; i < 2; i++)
		p->end[i].crowded |= message && count > 0;
	for (uint64_t i = 0; i < 2 * count; i++) {
		struct end *a = &p->end[i % 2], *b = &p->end[1 - i % 2];
		int tries = 0;

		while (again(p, crowd_post(p, a, b, i, message), "a post")) {
			if (++tries == TRIES)
				bench_die("no room for %" PRIu64 " %s", count,
					  message ? "messages" : "receives");
		}
	}
	crowd_settle(p);
	p->end[0].early = 0;
	p->end[1].early = 0;
}

typedef void once_fn(struct pair *p, struct end *a, struct end *b);

/* The only place that is counted: bench/instructions names it to the tool. */
__attribute__((noinline)) static void counted_loop(struct pair *p, once_fn *once,
						   uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		once(p, &p->end[i % 2], &p->end[1 - i % 2]);
}

static int lap_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void timed_loop(struct pair *p, once_fn *once, uint64_t count)
{
	uint64_t *laps = calloc(LAPS, sizeof(*laps)), begin;
	size_t n = count < LAPS ? (size_t)count : LAPS;

	if (!laps)
		bench_die("no memory for %d times", LAPS);
	for (uint64_t i = 0; i < count; i++) {
		p->took = 0;
		begin = bench_now_ns();
		once(p, &p->end[i % 2], &p->end[1 - i % 2]);
		laps[i % LAPS] = p->took ? p->took : bench_now_ns() - begin;
	}
	qsort(laps, n, sizeof(*laps), lap_order);
	printf("median %" PRIu64 " ns\n", laps[n / 2]);
	free(laps);
}

static void end_open(struct end *e, const char *provider, size_t size, uint64_t key,
		     const struct node_wants *wants, bool shared)
{
	void *mem;

	node_open(&e->node, provider, wants, &e->card);
	e->in = shared ? node_shared_alloc(&e->node, 2 * size) : NULL;
	e->shared = e->in;
	if (!e->shared) {
		if (posix_memalign(&mem, 4096, 2 * size))
			bench_die("no memory for 2 x %zu bytes", size);
		e->in = mem;
	}
	memset(e->in, 1, 2 * size);
	e->out = e->in + size;
	node_region_open(&e->node, &e->region, e->in, 2 * size, key, &e->target);
}

static void end_close(struct end *e)
{
	node_region_close(&e->region);
	if (e->shared)
		node_shared_release(&e->node, e->in);
	else
		free(e->in);
	node_close(&e->node);
}

/* ---- the command line ------------------------------------------------------------- */

static const struct {
	const char *name;
	once_fn *once;
} operations[] = {
	{"tagged", tagged_once},       {"write", write_once},	{"read", read_once},
	{"writedata", writedata_once}, {"inject", inject_once}, {"turn", turn_once},
};

static once_fn *operation_find(const char *name)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(operations[i].name, name) == 0)
			return operations[i].once;
	return NULL;
}

static const struct {
	const char *name;
	enum fi_threading threading; /* 0: not about that */
	unsigned option;
} options[] = {
	{"domain", FI_THREAD_DOMAIN, 0},
	{"safe", FI_THREAD_SAFE, 0},
	{"endpoint", FI_THREAD_ENDPOINT, 0},
	{"completion", FI_THREAD_COMPLETION, 0},
	{"data", 0, OPT_DATA},
	{"directed", 0, OPT_DIRECTED},
	{"ignore", 0, OPT_IGNORE},
	{"counter", 0, OPT_COUNTER},
	{"shared", 0, OPT_SHARED},
	{"patient", 0, OPT_PATIENT},
	{"timed", 0, OPT_TIMED},
};

static bool option_take(const char *name, struct node_wants *wants, struct pair *p)
{
	unsigned *taken = &p->options;

	if (strncmp(name, "posted=", 7) == 0)
		return bench_number(name + 7, 0, CROWD_MOST, &p->posted);
	if (strncmp(name, "waiting=", 8) == 0)
		return bench_number(name + 8, 0, CROWD_MOST, &p->waiting);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (strcmp(options[i].name, name) != 0)
			continue;
		if (options[i].threading)
			wants->threading = options[i].threading;
		*taken |= options[i].option;
		return true;
	}
	return false;
}

static int usage(void)
{
	fprintf(stderr, "usage: inst_fi PROVIDER OPERATION SIZE COUNT [OPTION]...\n"
			"Operations:");
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		fprintf(stderr, " %s", operations[i].name);
	fprintf(stderr, "; options:");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		fprintf(stderr, " %s", options[i].name);
	fprintf(stderr, " posted=N waiting=N\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct node_wants wants = {.threading = FI_THREAD_DOMAIN};
	static struct pair p;
	uint64_t size, count;
	once_fn *once;

	if (argc < 5 || !(once = operation_find(argv[2])) ||
	    !bench_number(argv[3], 1, SIZE_MOST, &size) ||
	    !bench_number(argv[4], 1, COUNT_MOST, &count))
		return usage();
	for (int i = 5; i < argc; i++)
		if (!option_take(argv[i], &wants, &p))
			return usage();
	if (once == tagged_once && (p.options & (OPT_DATA | OPT_IGNORE)))
		once = tagged_other_once; /* which asks each time */
	wants.directed = p.options & OPT_DIRECTED;
	wants.counter = p.options & OPT_COUNTER;
	p.size = size;
	for (int i = 0; i < 2; i++)
		end_open(&p.end[i], argv[1], p.size, (uint64_t)i + 1, &wants,
			 p.options & OPT_SHARED);
	for (int i = 0; i < 2; i++)
		node_join(&p.end[i].node, &p.end[1 - i].card);
	for (int i = 0; i < WARM; i++) {
		once(&p, &p.end[i % 2], &p.end[1 - i % 2]);
		/* Another thread may have to map it first. */
		if (p.end[0].shared)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	crowd_make(&p, p.posted, false);
	crowd_make(&p, p.waiting, true);
	for (int i = 0; i < WARM; i++)
		once(&p, &p.end[i % 2], &p.end[1 - i % 2]);
	p.empty = 0;
	p.counting = true;
	if (p.options & OPT_TIMED)
		timed_loop(&p, once, count);
	else
		counted_loop(&p, once, count);
	printf("%" PRIu64 " empty reads in %" PRIu64 "\n", p.empty, count);
	if ((p.options & OPT_SHARED) && !p.end[0].shared)
		printf("the provider shares no memory of its own\n");
	for (int i = 0; i < 2; i++)
		end_close(&p.end[i]);
	return 0;
}
