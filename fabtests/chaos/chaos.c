/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver: keeps so many ranks in the job, harms one after the other, or their
 * coordinator, or the network between them (space.c), waits until the others go on
 * without it, and starts another. One process, without threads or libfabric: ranks are
 * forks of it (rank.c).
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
#include "fabtests/chaos/space.h"

enum {
	HANG_US = 120000000, /* nothing goes on for so long */
	LOOK_US = 500,
	RECOVERIES = 4096,
	COUNT = 4096, /* elements of a step */
	BEHIND = 20,  /* a rank takes part when it is not further behind */
};

enum harm {
	HARM_KILL,
	HARM_STOP,
	HARM_CUT,   /* the network of a seat, until the others go on */
	HARM_BRIEF, /* for less than the deadline */
	HARM_PART,  /* two seats from each other, not from the coordinator */
	HARM_COORD,
	HARM_KINDS
};

struct driver {
	struct chaos *c;
	const char *weft;
	char state[200];
	pid_t coord;
	int size;
	int seats;	    /* 0: no networks, nothing is cut */
	uint64_t seats_cut; /* bits */
	struct space space;
	int64_t every_us;
	uint64_t seed;
	bool verbose;
	int only; /* enum harm, or -1: of all kinds */
	uint64_t harms[HARM_KINDS], joins, fenced, unharmed, hangs, wrong, errors;
	int64_t recovery[RECOVERIES]; /* of ranks that died or were stopped */
	int recoveries;
	int64_t memory, heap; /* the most that one grew, KiB */
	int files;
	uint64_t longest;     /* steps of one rank */
	int64_t longest_heap; /* what that one grew, KiB */
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

/* The one with the fewest ranks that has a network. */
static int free_seat(const struct driver *d)
{
	int best = 0, least = CHAOS_SLOTS + 1;

	for (int i = 0; i < d->seats; i++) {
		int ranks = 0;

		for (int k = 0; k < CHAOS_SLOTS; k++)
			ranks += d->c->rank[k].pid && d->c->rank[k].seat == i;
		if (!(d->seats_cut & UINT64_C(1) << i) && ranks < least) {
			best = i;
			least = ranks;
		}
	}
	return best;
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
	r->seat = free_seat(d);
	fflush(NULL);
	pid = fork(); /* the child must not write that it is 0 */
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		if (d->seats && !space_enter(&d->space, r->seat))
			die("setns");
		chaos_rank_main(d->c, slot);
	}
	r->pid = pid;
	d->joins++;
}

static void take_memory(struct driver *d, const struct chaos_rank *r)
{
	int64_t grown = r->memory_last - r->memory_first;
	int64_t heap = r->heap_last - r->heap_first;
	int files = r->files_last - r->files_first;

	d->heap = heap > d->heap ? heap : d->heap;
	if (r->steps > d->longest) {
		d->longest = r->steps;
		d->longest_heap = heap;
	}
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

/* Until a step counts that was run after `since` and `from`, without the ranks of these
 * slots. When that was; 0: it hangs. */
static int64_t next_step(struct driver *d, uint64_t slots, uint64_t since, int64_t from)
{
	int64_t until = from + HANG_US;
	uint64_t at = since + 1;

	while (chaos_clock_us() < until) {
		reap(d);
		/* `when` is written after the mask; an earlier step is known by then. */
		while (at <= d->c->last && d->c->when[at]) {
			if (!(d->c->mask[at] & slots) && d->c->when[at] > from)
				return d->c->when[at];
			at++;
		}
		usleep(LOOK_US);
	}
	printf("hang: no step after %" PRIu64 "\n", since);
	d->hangs++;
	return 0;
}

static void pause_for(struct driver *d, int64_t us)
{
	int64_t until = chaos_clock_us() + us;

	while (chaos_clock_us() < until) {
		reap(d);
		usleep(LOOK_US);
	}
}

static int some_slot(struct driver *d)
{
	int slot;

	do
		slot = (int)(draw(d) % CHAOS_SLOTS);
	while (!takes_part(d, &d->c->rank[slot]));
	return slot;
}

static void note_recovery(struct driver *d, const char *what, int64_t from, int64_t when)
{
	if (when && d->recoveries < RECOVERIES)
		d->recovery[d->recoveries++] = when - from;
	if (d->verbose)
		printf("%s: %.3f s\n", what, (double)(when - from) * 1e-6);
}

static void harm_rank(struct driver *d, enum harm kind)
{
	uint64_t since = d->c->last;
	int slot = some_slot(d);
	int64_t from;

	d->c->rank[slot].harmed = true;
	from = chaos_clock_us();
	kill(d->c->rank[slot].pid, kind == HARM_KILL ? SIGKILL : SIGSTOP);
	note_recovery(d, kind == HARM_KILL ? "killed" : "stopped", from,
		      next_step(d, UINT64_C(1) << slot, since, from));
	/* It finds out that it is dead, and ends. */
	if (kind == HARM_STOP)
		kill(d->c->rank[slot].pid, SIGCONT);
}

/* All ranks of a seat lose the network, until the others go on; then they find out. */
static void harm_seat(struct driver *d)
{
	int seat = d->c->rank[some_slot(d)].seat;
	uint64_t since = d->c->last, slots = 0;
	int64_t from = chaos_clock_us();

	for (int i = 0; i < CHAOS_SLOTS; i++) {
		struct chaos_rank *r = &d->c->rank[i];

		if (!r->pid || r->seat != seat)
			continue;
		r->harmed = true;
		slots |= UINT64_C(1) << i;
	}
	d->seats_cut |= UINT64_C(1) << seat;
	if (!space_cut(&d->space, seat))
		die("a link is not cut");
	note_recovery(d, "cut", from, next_step(d, slots, since, from));
	if (!space_heal(&d->space, seat))
		die("a link is not healed");
	d->seats_cut &= ~(UINT64_C(1) << seat);
}

/* For so short that nobody needs to be given up. */
static void harm_briefly(struct driver *d)
{
	int seat = d->c->rank[some_slot(d)].seat;
	uint64_t since = d->c->last;
	int64_t from = chaos_clock_us(), when;

	if (!space_cut(&d->space, seat))
		die("a link is not cut");
	pause_for(d, d->c->deadline_us * (1 + (int64_t)(draw(d) % 5)) / 10);
	if (!space_heal(&d->space, seat))
		die("a link is not healed");
	when = next_step(d, 0, since, chaos_clock_us());
	if (d->verbose)
		printf("cut briefly: %.3f s\n", (double)(when - from) * 1e-6);
}

/* Both ends hear the coordinator, and not each other. Whether that holds up anybody
 * depends on who talks to whom. */
static void harm_path(struct driver *d)
{
	int a = d->c->rank[some_slot(d)].seat, b = a;
	int64_t from = chaos_clock_us(), when;
	uint64_t since;

	for (int i = 0; i < CHAOS_SLOTS && b == a; i++)
		b = d->c->rank[some_slot(d)].seat;
	if (b == a)
		return;
	if (!space_part(&d->space, a, b, true))
		die("two seats are not parted");
	pause_for(d, d->c->deadline_us * 5 / 2);
	since = d->c->last;
	/* Without one of them, where they need each other. */
	when = next_step(d, 0, since, chaos_clock_us());
	if (d->verbose)
		printf("two parted: %.3f s\n", (double)(when - from) * 1e-6);
	if (!space_part(&d->space, a, b, false))
		die("two seats stay parted");
}

static void harm_coordinator(struct driver *d)
{
	uint64_t since = d->c->last;
	int64_t from = chaos_clock_us();

	kill(d->coord, SIGKILL);
	waitpid(d->coord, NULL, 0);
	start_coordinator(d, false);
	next_step(d, 0, since, from);
}

static void harm(struct driver *d)
{
	static const enum harm all[] = {HARM_KILL,  HARM_STOP,	HARM_CUT, HARM_KILL,
					HARM_BRIEF, HARM_STOP,	HARM_CUT, HARM_PART,
					HARM_KILL,  HARM_COORD, HARM_CUT, HARM_STOP};
	enum harm kind;

	do
		kind = all[draw(d) % (sizeof(all) / sizeof(all[0]))];
	while (!d->seats &&
	       (kind == HARM_CUT || kind == HARM_BRIEF || kind == HARM_PART));
	if (d->only >= 0)
		kind = (enum harm)d->only;
	d->harms[kind]++;
	switch (kind) {
	case HARM_CUT:
		harm_seat(d);
		break;
	case HARM_BRIEF:
		harm_briefly(d);
		break;
	case HARM_PART:
		harm_path(d);
		break;
	case HARM_COORD:
		harm_coordinator(d);
		break;
	default:
		harm_rank(d, kind);
		break;
	}
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
	space_close(&d->space);
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
	printf("unharmed ranks that were excluded: %" PRIu64 "\n", d->unharmed);
	printf("most that a rank grew: %" PRId64 " KiB resident, %" PRId64
	       " KiB allocated, %d descriptors; the one of most steps, %" PRIu64
	       ": %" PRId64 " KiB allocated\n",
	       d->memory, d->heap, d->files, d->longest, d->longest_heap);
	printf("cut briefly %" PRIu64 ", two ranks parted %" PRIu64 "\n",
	       d->harms[HARM_BRIEF], d->harms[HARM_PART]);
	printf("chaos: deaths %" PRIu64 " (killed %" PRIu64 ", stopped %" PRIu64
	       ", cut off %" PRIu64 "), coordinator killed %" PRIu64 ", joins %" PRIu64
	       ", steps %" PRIu64 ", wrong sums %" PRIu64 ", errors %" PRIu64
	       ", hangs %" PRIu64 ", median recovery %.3f s (deadline %.3f s)\n",
	       d->harms[HARM_KILL] + d->harms[HARM_STOP] + d->harms[HARM_CUT],
	       d->harms[HARM_KILL], d->harms[HARM_STOP], d->harms[HARM_CUT],
	       d->harms[HARM_COORD], d->joins, (uint64_t)d->c->last, d->wrong, d->errors,
	       d->hangs, (double)median * 1e-6, (double)d->c->deadline_us * 1e-6);
}

static bool option(int argc, char **argv, const char *name)
{
	for (int i = 8; i < argc; i++) {
		if (strcmp(argv[i], name) == 0)
			return true;
	}
	return false;
}

static int only(int argc, char **argv)
{
	static const char *const name[HARM_KINDS] = {
		[HARM_KILL] = "kill", [HARM_STOP] = "stop",
		[HARM_CUT] = "cut",   [HARM_BRIEF] = "brief",
		[HARM_PART] = "part", [HARM_COORD] = "coordinator",
	};

	for (int i = 0; i < HARM_KINDS; i++) {
		if (option(argc, argv, name[i]))
			return i;
	}
	return -1;
}

/* A few more seats than ranks: who is out holds one until it knows. */
static void open_network(struct driver *d, bool pairs)
{
	d->seats = pairs ? d->size / 2 + 3 : d->size + 6;
	if (!space_open(&d->space, d->seats))
		exit(2);
	snprintf(d->c->address, sizeof(d->c->address), SPACE_HUB ":0");
	setenv("FI_TCP_IFACE", "eth0", 1);
	setenv("WEFT_LINES", "off", 1); /* they would go past the network */
	/* Each epoch opens an endpoint, which libfabric fills with that many buffers of
	 * 16 KiB before it is of use: by default 17 MiB of them. */
	setenv("FI_OFI_RXM_MSG_RX_SIZE", "64", 0);
}

/* chaos WEFT FOLDER SECONDS SEED RANKS DEADLINE PROVIDER [verbose] [cuts] [pairs]
 * [HARM]: what run hands over. */
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
	d.verbose = option(argc, argv, "verbose");
	d.only = only(argc, argv);
	d.c->deadline_us = (int64_t)(atof(argv[6]) * 1e6);
	d.c->count = COUNT;
	snprintf(d.state, sizeof(d.state), "%s/state", argv[2]);
	snprintf(d.c->job, sizeof(d.c->job), "%.60s", argv[2]);
	snprintf(d.c->provider, sizeof(d.c->provider), "%s", argv[7]);
	snprintf(d.c->address, sizeof(d.c->address), "127.0.0.1:0");
	if (option(argc, argv, "cuts"))
		open_network(&d, option(argc, argv, "pairs"));
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
