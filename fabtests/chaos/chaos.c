/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver: keeps so many ranks in the job, harms one after the other, or their
 * coordinator, waits until the others go on without it, and starts another. One process,
 * without threads or libfabric: ranks are forks of it (rank.c).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabtests/chaos/chaos.h"

enum {
	HANG_US = 120000000, /* nothing goes on for so long */
	LOOK_US = 500,
	RECOVERIES = 4096,
	COUNT = 4096, /* elements of a step */
	BEHIND = 20,  /* a rank takes part when it is not further behind */
};

enum harm { HARM_KILL, HARM_STOP, HARM_COORD, HARM_KINDS };

struct driver {
	struct chaos *c;
	const char *weft;
	char state[200];
	pid_t coord;
	int size;
	int64_t every_us;
	uint64_t seed;
	bool verbose;
	uint64_t harms[HARM_KINDS], joins, fenced, unharmed, hangs, wrong, errors;
	int64_t recovery[RECOVERIES]; /* of ranks that died or were stopped */
	int recoveries;
	int64_t memory; /* the most that one grew, KiB */
	int files;
};

static uint64_t draw(struct driver *d)
{
	d->seed ^= d->seed >> 12;
	d->seed ^= d->seed << 25;
	d->seed ^= d->seed >> 27;
	return d->seed * UINT64_C(0x2545f4914f6cdd1d);
}

/* ---- processes --------------------------------------------------------------------- */

static void die(const char *what)
{
	fprintf(stderr, "chaos: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* The first says where it listens; later ones listen there. */
static void start_coordinator(struct driver *d, bool first)
{
	char silence[32], size[16];
	int out[2];
	size_t len = 0;

	snprintf(silence, sizeof(silence), "%.3f", (double)d->c->deadline_us * 1e-6);
	snprintf(size, sizeof(size), "%d", d->size);
	if (pipe2(out, O_CLOEXEC))
		die("pipe");
	d->coord = fork();
	if (d->coord < 0)
		die("fork");
	if (d->coord == 0) {
		int null = open("/dev/null", O_WRONLY);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		if (!d->verbose)
			dup2(null, STDERR_FILENO);
		setenv("WEFT_JOB", d->c->job, 1);
		execl(d->weft, "weft", "coordinator", "--listen", d->c->address,
		      "--state", d->state, "--size", size, "--silence", silence,
		      first ? "--first" : NULL, NULL);
		die(d->weft);
	}
	close(out[1]);
	while (len < sizeof(d->c->address) - 1) {
		ssize_t n = read(out[0], d->c->address + len, 1);

		if (n <= 0)
			die("the coordinator ended at once");
		if (d->c->address[len] == '\n')
			break;
		len++;
	}
	d->c->address[len] = '\0';
	/* What else it says is for nobody; it ignores that nobody reads. */
	close(out[0]);
}

static void start_rank(struct driver *d)
{
	struct chaos_rank *r = NULL;
	int slot = 0;
	pid_t pid;

	for (int i = 0; i < CHAOS_SLOTS; i++) {
		struct chaos_rank *it = &d->c->rank[i];

		if (it->pid == 0 && (!r || it->ended < r->ended)) {
			r = it;
			slot = i;
		}
	}
	if (!r)
		return; /* when one has ended */
	memset(r, 0, sizeof(*r));
	fflush(NULL);
	pid = fork(); /* the child must not write that it is 0 */
	if (pid < 0)
		die("fork");
	if (pid == 0)
		chaos_rank_main(d->c, slot);
	r->pid = pid;
	d->joins++;
}

static void take_memory(struct driver *d, const struct chaos_rank *r)
{
	int64_t grown = r->memory_last - r->memory_first;
	int files = r->files_last - r->files_first;

	d->memory = grown > d->memory ? grown : d->memory;
	d->files = files > d->files ? files : d->files;
}

static void rank_ended(struct driver *d, int slot, int status)
{
	struct chaos_rank *r = &d->c->rank[slot];
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && r->harmed;

	d->wrong += r->wrong;
	d->errors += r->errors;
	d->fenced += r->fenced;
	d->unharmed += r->fenced && !r->harmed;
	if (r->wrong || r->errors)
		printf("rank %d: %s\n", slot, r->why);
	if (!killed && status != 0) {
		printf("rank %d: ended by itself: status %x\n", slot, (unsigned)status);
		d->errors++;
	}
	take_memory(d, r);
	r->pid = 0;
	r->ended = chaos_clock_us();
}

static void reap(struct driver *d)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (int i = 0; i < CHAOS_SLOTS; i++) {
			if (d->c->rank[i].pid == pid)
				rank_ended(d, i, status);
		}
		if (pid == d->coord)
			d->coord = 0;
	}
}

/* ---- harm -------------------------------------------------------------------------- */

static bool takes_part(const struct driver *d, const struct chaos_rank *r)
{
	return r->pid && !r->harmed && r->step && r->step + BEHIND >= d->c->last;
}

/* Ranks that are there and unharmed; of them, how many take part. */
static int count_ranks(const struct driver *d, int *taking_part)
{
	int there = 0;

	*taking_part = 0;
	for (int i = 0; i < CHAOS_SLOTS; i++) {
		const struct chaos_rank *r = &d->c->rank[i];

		there += r->pid && !r->harmed;
		*taking_part += takes_part(d, r);
	}
	return there;
}

/* Newcomers for whoever is gone; until all take part. False: that hangs. */
static bool fill_up(struct driver *d)
{
	int64_t until = chaos_clock_us() + HANG_US;
	int part;

	for (;;) {
		int there;

		reap(d);
		there = count_ranks(d, &part);
		for (; there < d->size; there++)
			start_rank(d);
		if (part >= d->size)
			return true;
		if (chaos_clock_us() >= until)
			break;
		usleep(LOOK_US);
	}
	printf("hang: %d of %d ranks take part\n", part, d->size);
	d->hangs++;
	return false;
}

/* Until a step counts that was run after `since`, without the rank of this slot; -1: any
 * step. When that was; 0: it hangs. */
static int64_t next_step(struct driver *d, int slot, uint64_t since, int64_t from)
{
	int64_t until = from + HANG_US;
	uint64_t at = since + 1;

	while (chaos_clock_us() < until) {
		const uint64_t bit = slot < 0 ? 0 : UINT64_C(1) << slot;

		reap(d);
		/* `when` is written after the mask; an earlier step is known by then. */
		while (at <= d->c->last && d->c->when[at]) {
			if (!(d->c->mask[at] & bit) && d->c->when[at] > from)
				return d->c->when[at];
			at++;
		}
		usleep(LOOK_US);
	}
	printf("hang: no step after %" PRIu64 "\n", since);
	d->hangs++;
	return 0;
}

static void harm_rank(struct driver *d, int kind)
{
	uint64_t since = d->c->last;
	int64_t from, when;
	int slot;

	do
		slot = (int)(draw(d) % CHAOS_SLOTS);
	while (!takes_part(d, &d->c->rank[slot]));
	d->c->rank[slot].harmed = true;
	from = chaos_clock_us();
	kill(d->c->rank[slot].pid, kind == HARM_KILL ? SIGKILL : SIGSTOP);
	when = next_step(d, slot, since, from);
	if (when && d->recoveries < RECOVERIES)
		d->recovery[d->recoveries++] = when - from;
	if (d->verbose)
		printf("rank %d %s: %.3f s\n", slot,
		       kind == HARM_KILL ? "killed" : "stopped",
		       (double)(when - from) * 1e-6);
	/* It finds out that it is dead, and ends. */
	if (kind == HARM_STOP)
		kill(d->c->rank[slot].pid, SIGCONT);
}

static void harm_coordinator(struct driver *d)
{
	uint64_t since = d->c->last;
	int64_t from = chaos_clock_us();

	kill(d->coord, SIGKILL);
	waitpid(d->coord, NULL, 0);
	start_coordinator(d, false);
	next_step(d, -1, since, from);
}

static void harm(struct driver *d)
{
	uint64_t x = draw(d) % 16;
	enum harm kind = x == 0 ? HARM_COORD : x % 2 ? HARM_KILL : HARM_STOP;

	d->harms[kind]++;
	if (kind == HARM_COORD)
		harm_coordinator(d);
	else
		harm_rank(d, kind);
}

/* ---- the whole --------------------------------------------------------------------- */

/* All leave; nobody and nothing is left. */
static void finish(struct driver *d)
{
	int64_t until = chaos_clock_us() + HANG_US;
	int there = 1;

	d->c->end = 1;
	while (there && chaos_clock_us() < until) {
		reap(d);
		there = 0;
		for (int i = 0; i < CHAOS_SLOTS; i++)
			there += d->c->rank[i].pid != 0;
		usleep(LOOK_US);
	}
	for (int i = 0; i < CHAOS_SLOTS; i++) {
		if (!d->c->rank[i].pid)
			continue;
		printf("hang: rank %d does not end, at step %" PRIu64 " of %" PRIu64 "\n",
		       i, (uint64_t)d->c->rank[i].step, (uint64_t)d->c->last);
		d->hangs++;
		kill(d->c->rank[i].pid, SIGKILL);
	}
	if (d->coord)
		kill(d->coord, SIGKILL);
	while (wait(NULL) > 0)
		;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void report(struct driver *d)
{
	int64_t median;

	qsort(d->recovery, (size_t)d->recoveries, sizeof(d->recovery[0]), by_value);
	median = d->recoveries ? d->recovery[d->recoveries / 2] : 0;
	printf("unharmed ranks that were excluded: %" PRIu64 "; most that a rank grew: "
	       "%" PRId64 " KiB, %d descriptors\n",
	       d->unharmed, d->memory, d->files);
	printf("chaos: deaths %" PRIu64 " (killed %" PRIu64 ", stopped %" PRIu64
	       "), coordinator killed %" PRIu64 ", joins %" PRIu64 ", steps %" PRIu64
	       ", wrong sums %" PRIu64 ", errors %" PRIu64 ", hangs %" PRIu64
	       ", median recovery %.3f s (deadline %.3f s)\n",
	       d->harms[HARM_KILL] + d->harms[HARM_STOP], d->harms[HARM_KILL],
	       d->harms[HARM_STOP], d->harms[HARM_COORD], d->joins, (uint64_t)d->c->last,
	       d->wrong, d->errors, d->hangs, (double)median * 1e-6,
	       (double)d->c->deadline_us * 1e-6);
}

/* chaos WEFT FOLDER SECONDS SEED RANKS DEADLINE PROVIDER [verbose]: what run hands over.
 */
int main(int argc, char **argv)
{
	static struct driver d;
	int64_t until;

	if (argc < 8)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	d.c = mmap(NULL, sizeof(*d.c), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (d.c == MAP_FAILED)
		die("mmap");
	d.weft = argv[1];
	d.seed = strtoull(argv[4], NULL, 10) * 2 + 1;
	d.size = atoi(argv[5]);
	d.every_us = 1000000;
	d.verbose = argc > 8;
	d.c->deadline_us = (int64_t)(atof(argv[6]) * 1e6);
	d.c->count = COUNT;
	snprintf(d.state, sizeof(d.state), "%s/state", argv[2]);
	snprintf(d.c->job, sizeof(d.c->job), "%.60s", argv[2]);
	snprintf(d.c->provider, sizeof(d.c->provider), "%s", argv[7]);
	snprintf(d.c->address, sizeof(d.c->address), "127.0.0.1:0");
	start_coordinator(&d, true);
	fill_up(&d);
	/* From here: coming up may take long on a busy machine. */
	until = chaos_clock_us() + atoll(argv[3]) * 1000000;
	while (!d.hangs && fill_up(&d) && chaos_clock_us() < until && !d.hangs) {
		int64_t next = chaos_clock_us() + d.every_us;

		harm(&d);
		while (!d.hangs && chaos_clock_us() < next) {
			reap(&d);
			usleep(LOOK_US);
		}
	}
	finish(&d);
	report(&d);
	return d.wrong || d.hangs || d.errors;
}
