/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Point-to-point figures of one libfabric provider between two pinned processes: what
 * bench/p2p runs for Weft and for a peer, the same code for both.
 *
 *   p2p_fi [--median] PROVIDER MEMORY CPU_A CPU_B MS TEST:SIZE...
 *
 * Every measurement takes about MS ms; of a latency it is the mean of all turns, or, with
 * --median, the median of the last 16384. For each a line on stdout: TEST:SIZE, the
 * figure, and the one-way latency in ns of a cache line between the two, before and
 * after; with --median 0 for both: where processors come and go, that takes longer than
 * the measurement and says nothing of it. Before them "writes land: HOW"
 * (p2p_target_text), if something writes. One test that waits for its queue (effort)
 * makes all of them wait.
 *
 * P2P_AWAY=FILE: the second process moves to the network namespace that the file is.
 * P2P_CARE=1: who waits for the other process outside of a measurement makes progress:
 * where packets get lost somebody must send them again.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/p2p.h"

enum {
	CPU_MOST = 1023,
	MS_MOST = 10000,
	SECONDS = 120, /* for everything; with medians, which are for slow machines: */
	SECONDS_SLOW = 590,
	WARM = 32, /* operations before the first look at the time */
	COUNT_MOST = 50000000,
	KEY = 1,
	JOBS_MOST = 64,
};

/* ---- the other host ---------------------------------------------------------------- */

static void away_go(void)
{
	const char *name = getenv("P2P_AWAY");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;

	if (!name)
		return;
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		bench_die("P2P_AWAY: the network namespace %s: %s", name,
			  strerror(errno));
	close(fd);
}

/* ---- memory ----------------------------------------------------------------------- */

static void *plain_alloc(struct node *n, size_t len)
{
	void *mem;

	(void)n;
	if (posix_memalign(&mem, 4096, len) != 0)
		bench_die("no memory for %zu bytes", len);
	return mem;
}

static void plain_release(struct node *n, void *mem, size_t len)
{
	(void)n, (void)len;
	free(mem);
}

static void *shared_alloc(struct node *n, size_t len)
{
	void *mem = node_shared_alloc(n, len);

	if (!mem)
		bench_die("the provider has no shared memory of its own");
	return mem;
}

static void shared_release(struct node *n, void *mem, size_t len)
{
	(void)len;
	node_shared_release(n, mem);
}

static const struct p2p_memory memory_table[] = {
	{"malloc", plain_alloc, plain_release},
	{"shared", shared_alloc, shared_release},
};

const struct p2p_memory *p2p_memory_find(const char *name)
{
	for (size_t i = 0; i < sizeof(memory_table) / sizeof(memory_table[0]); i++)
		if (strcmp(memory_table[i].name, name) == 0)
			return &memory_table[i];
	return NULL;
}

/* ---- one side --------------------------------------------------------------------- */

static size_t block_len(size_t most)
{
	return 2 * most + 2 * P2P_LINE;
}

static void queue_look(void *arg)
{
	struct node *n = arg;
	bool sleeps = n->sleeps;

	n->sleeps = false;
	node_poll(n);
	n->sleeps = sleeps;
}

void p2p_open(struct p2p *p, struct pair *pair, const char *provider, bool sleeps,
	      const struct p2p_memory *memory, size_t most)
{
	struct node_wants wants = {.threading = FI_THREAD_DOMAIN, .sleeps = sleeps};
	struct node_target target;
	struct node_card card, peer;

	memset(p, 0, sizeof(*p));
	p->pair = pair;
	p->memory = memory;
	p->most = (most + P2P_LINE - 1) / P2P_LINE * P2P_LINE;
	node_open(&p->node, provider, &wants, &card);
	pair_exchange(pair, &card, &peer, sizeof(card));
	node_join(&p->node, &peer);
	p->mem = memory->alloc(&p->node, block_len(p->most));
	memset(p->mem, 0, block_len(p->most));
	p->out = p->mem;
	p->in_offset = p->most;
	p->cell_offset = 2 * p->most;
	p->quiet_offset = p->cell_offset + P2P_LINE;
	p->in = p->mem + p->in_offset;
	p->cell = (_Atomic uint64_t *)(void *)(p->mem + p->cell_offset);
	node_region_open(&p->node, &p->region, p->mem, block_len(p->most), KEY, &target);
	pair_exchange(pair, &target, &p->target, sizeof(target));
	if (getenv("P2P_CARE")) {
		pair->meanwhile = queue_look;
		pair->arg = &p->node;
	}
}

void p2p_close(struct p2p *p)
{
	pair_meet(p->pair);
	p->pair->meanwhile = NULL;
	node_region_close(&p->region);
	p->memory->release(&p->node, p->mem, block_len(p->most));
	node_close(&p->node);
}

/* ---- the tests -------------------------------------------------------------------- */

static double half_trip_us(double size, double count, double ns)
{
	(void)size;
	return ns / count / 2 / 1e3;
}

static double each_us(double size, double count, double ns)
{
	(void)size;
	return ns / count / 1e3;
}

static double rate_millions(double size, double count, double ns)
{
	(void)size;
	return count / ns * 1e3;
}

static double bandwidth_gb(double size, double count, double ns)
{
	return size * count / ns;
}

/* ---- single turns ----------------------------------------------------------------- */

void p2p_lap_begin(struct p2p *p)
{
	if (p->lap)
		p->lap_began = bench_now_ns();
}

void p2p_lap_end(struct p2p *p, uint64_t turn)
{
	if (p->lap)
		p->lap[turn % P2P_LAPS] = bench_now_ns() - p->lap_began;
}

static int lap_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t lap_median(struct p2p *p, uint64_t count)
{
	size_t n = count < P2P_LAPS ? (size_t)count : P2P_LAPS;

	qsort(p->lap, n, sizeof(*p->lap), lap_order);
	return p->lap[n / 2];
}

static const struct p2p_test test_table[] = {
	{"lat", p2p_msg_latency, false, false, half_trip_us, true},
	{"rate", p2p_msg_stream, false, false, rate_millions, false},
	{"bw", p2p_msg_stream, false, false, bandwidth_gb, false},
	{"effort", p2p_msg_effort, false, true, bandwidth_gb, false},
	{"restbw", p2p_msg_stream, false, true, bandwidth_gb, false},
	{"put", p2p_write_polled, true, false, half_trip_us, true},
	{"putdone", p2p_write_done, true, false, each_us, true},
	{"putcall", p2p_write_called, true, false, half_trip_us, true},
	{"putcalldone", p2p_write_called_done, true, false, each_us, true},
	{"putbw", p2p_write_stream, true, false, bandwidth_gb, false},
};

struct job {
	const struct p2p_test *test;
	const char *text;
	size_t size;
};

static uint64_t round_up(uint64_t count, uint64_t step)
{
	return (count + step - 1) / step * step;
}

/* As many operations as take about ms; both sides get the same number. */
static uint64_t count_agree(struct p2p *p, const struct job *j, uint64_t ms)
{
	bool stream = j->test->run == p2p_msg_stream || j->test->run == p2p_msg_effort;
	uint64_t step = stream ? p2p_msg_window(j->size) : 1;
	uint64_t count = round_up(WARM, step), ns, limit = ms * 1000000;

	/* The first look at the time has everything that is done once in it. */
	j->test->run(p, j->size, count);
	for (;;) {
		ns = j->test->run(p, j->size, count);
		ns = pair_tell(p->pair, ns > 0 ? ns : 1);
		if (ns >= limit / 8 || count >= COUNT_MOST)
			break;
		count = count * 4;
	}
	if (ns >= limit)
		return count;
	count = (uint64_t)((double)count * (double)limit / (double)ns);
	return round_up(count < COUNT_MOST ? count : COUNT_MOST, step);
}

static void job_run(struct p2p *p, const struct job *j, uint64_t ms)
{
	uint64_t count = count_agree(p, j, ms), ns;
	double before, after;

	before = p->slow ? 0 : pair_line_ns(p->pair);
	ns = j->test->run(p, j->size, count);
	if (p->lap && j->test->turns)
		ns = lap_median(p, count) * count;
	after = p->slow ? 0 : pair_line_ns(p->pair);
	if (p->pair->role == 0)
		printf("%s %.6g %.1f %.1f\n", j->text,
		       j->test->figure((double)j->size, (double)count, (double)ns),
		       before, after);
}

struct plan {
	const char *provider;
	const struct p2p_memory *memory;
	uint64_t ms;
	size_t most;
	bool writes;
	bool sleeps;
	bool median;
	int count;
	struct job jobs[JOBS_MOST];
};

static void side_main(struct pair *pair, void *arg)
{
	const struct plan *plan = arg;
	static struct p2p p;

	if (pair->role == 1)
		away_go();
	p2p_open(&p, pair, plan->provider, plan->sleeps, plan->memory, plan->most);
	p.slow = plan->median;
	if (plan->median && pair->role == 0 &&
	    !(p.lap = calloc(P2P_LAPS, sizeof(*p.lap))))
		bench_die("no memory for %d times", P2P_LAPS);
	if (plan->writes) {
		p2p_write_probe(&p);
		if (pair->role == 0)
			printf("writes land: %s\n", p2p_target_text[p.target_mode]);
	}
	for (int i = 0; i < plan->count; i++)
		job_run(&p, &plan->jobs[i], plan->ms);
	free(p.lap);
	p2p_close(&p);
}

/* ---- the command line ------------------------------------------------------------- */

/* "TEST:SIZE" */
static bool job_parse(const char *text, struct job *j)
{
	const char *colon = strchr(text, ':');
	uint64_t size;

	if (!colon || !bench_number(colon + 1, 8, P2P_MOST, &size))
		return false;
	j->text = text;
	j->size = size;
	for (size_t i = 0; i < sizeof(test_table) / sizeof(test_table[0]); i++) {
		j->test = &test_table[i];
		if (strncmp(text, j->test->name, (size_t)(colon - text)) == 0 &&
		    strlen(j->test->name) == (size_t)(colon - text))
			return true;
	}
	return false;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: p2p_fi [--median] PROVIDER MEMORY CPU_A CPU_B MS TEST:SIZE...\n"
		"--median: of the turns of a latency, instead of their mean, and no "
		"latency of\na cache line\nTests:");
	for (size_t i = 0; i < sizeof(test_table) / sizeof(test_table[0]); i++)
		fprintf(stderr, " %s", test_table[i].name);
	fprintf(stderr, "; memory:");
	for (size_t i = 0; i < sizeof(memory_table) / sizeof(memory_table[0]); i++)
		fprintf(stderr, " %s", memory_table[i].name);
	fprintf(stderr, "\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct plan plan = {.most = 8};
	uint64_t cpu[2];

	if (argc > 1 && strcmp(argv[1], "--median") == 0) {
		plan.median = true;
		argc--;
		argv++;
	}
	if (argc < 7 || argc - 6 > JOBS_MOST ||
	    !bench_number(argv[3], 0, CPU_MOST, &cpu[0]) ||
	    !bench_number(argv[4], 0, CPU_MOST, &cpu[1]) || cpu[0] == cpu[1] ||
	    !bench_number(argv[5], 1, MS_MOST, &plan.ms))
		return usage();
	plan.provider = argv[1];
	plan.memory = p2p_memory_find(argv[2]);
	plan.count = argc - 6;
	for (int i = 0; i < plan.count; i++) {
		if (!job_parse(argv[6 + i], &plan.jobs[i]))
			return usage();
		if (plan.jobs[i].size > plan.most)
			plan.most = plan.jobs[i].size;
		plan.writes = plan.writes || plan.jobs[i].test->writes;
		plan.sleeps = plan.sleeps || plan.jobs[i].test->sleeps;
	}
	if (!plan.memory)
		return usage();
	return pair_run((const int[2]){(int)cpu[0], (int)cpu[1]},
			plan.median ? SECONDS_SLOW : SECONDS, side_main, &plan);
}
