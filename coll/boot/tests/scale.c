/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the bootstrap costs a rank among many. Ranks are threads of a few processes; each
 * has a bootstrap of its own, as it is, over sockets of this host: it meets the others
 * and takes part in one all-gather as long as what a context says of itself, and a short
 * one, as for a communicator. All of them are held while memory is counted. Rank 0, which
 * has a connection to each, is not in the figures of ranks. See usage().
 */
#include "config.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"
#include "coll/boot/boot_side.h"
#include "coll/boot/boot_table.h"
#include "weft/weft.h"

enum {
	PROCESSES = 5, /* the first has rank 0 alone */
	SIZES_MOST = 16,
	SIZE_MOST = 16384,
	STACK = 128 << 10,
	LIMIT_S = 500, /* one size; whatever hangs ends then */
};

#define LONG ((int64_t)300 * 1000000)

struct options {
	int32_t size[SIZES_MOST];
	int sizes;
	int32_t len;  /* bytes of a contribution */
	int32_t node; /* ranks that are taken for a host; 0: each for itself */
};

/* What one rank says. */
struct rank_report {
	struct boot_count count;
	uint64_t cpu_ns, table;
	bool done;
};

/* Seen by all processes. */
struct shared {
	pthread_barrier_t held, counted; /* of the processes */
	uint64_t memory[PROCESSES];	 /* bytes that ranks of a process allocated */
	uint64_t root_bytes;
	struct rank_report rank[];
};

struct job {
	const struct options *opts;
	int32_t size;
	struct boot_env env;
	struct shared *shared;
	pthread_barrier_t held, counted; /* of the threads of this process */
};

struct rank {
	struct job *job;
	int32_t rank;
	pthread_t thread;
};

/* The means of a size. */
struct row {
	double size, messages, bytes, cpu_us, memory, table, root, wall_ms;
};

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "scale: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void need(enum weft_result result, int32_t rank)
{
	if (result == WEFT_SUCCESS)
		return;
	fprintf(stderr, "scale: rank %d: %s\n", rank, weft_error_detail());
	_exit(1);
}

static void check(const struct job *job, const uint8_t *all, int32_t len)
{
	for (int32_t r = 0; r < job->size; r += 1 + job->size / 16)
		if (memcmp(all + (size_t)r * (size_t)len, &r, sizeof(r)) != 0) {
			fprintf(stderr, "scale: a wrong result\n");
			_exit(1);
		}
}

/* ---- ranks ------------------------------------------------------------------------ */

static void *leaf_run(void *arg)
{
	const struct rank *self = arg;
	struct job *job = self->job;
	struct rank_report *report = &job->shared->rank[self->rank];
	struct boot_env env = job->env;
	struct boot_view view = {.at = NULL}, small = {.at = NULL};
	struct boot_gather g = {.view = &view, .seq = 1, .timeout_us = LONG};
	uint8_t *in = calloc(1, (size_t)job->opts->len);
	const uint64_t began = cpu_ns();
	struct boot_leaf *leaf;

	if (!in)
		die("calloc");
	memcpy(in, &self->rank, sizeof(self->rank));
	env.rank = self->rank;
	env.node = job->opts->node > 0
			   ? env.node + (uint64_t)(self->rank / job->opts->node)
			   : 0;
	need(boot_leaf_open(&env, LONG, &leaf), self->rank);
	g.in = in;
	g.len = (uint64_t)job->opts->len;
	need(boot_leaf_allgather(leaf, &g), self->rank);
	free(in);
	g = (struct boot_gather){.in = &self->rank,
				 .view = &small,
				 .len = sizeof(self->rank),
				 .seq = 2,
				 .timeout_us = LONG};
	need(boot_leaf_allgather(leaf, &g), self->rank);
	report->cpu_ns = cpu_ns() - began;
	check(job, view.at, job->opts->len);
	check(job, small.at, sizeof(self->rank));
	report->count = *boot_leaf_count(leaf);
	report->table = view.mapped;
	boot_view_end(&small); /* a communicator keeps nothing of it */
	report->done = true;
	pthread_barrier_wait(&job->held);
	pthread_barrier_wait(&job->counted);
	boot_view_end(&view);
	boot_leaf_close(leaf);
	return NULL;
}

static void root_run(struct job *job)
{
	const size_t len = (size_t)job->opts->len, size = (size_t)job->size;
	uint8_t *in = calloc(1, len), *out = malloc(len * size);
	const int32_t rank = 0;
	struct boot_gather g = {
		.in = in, .out = out, .len = len, .seq = 1, .timeout_us = LONG};
	struct boot_root *root;

	if (!in || !out)
		die("calloc");
	job->env.node = job->opts->node > 0 ? job->env.node : 0;
	need(boot_root_open(&job->env, LONG, &root), 0);
	need(boot_root_allgather(root, &g), 0);
	check(job, out, job->opts->len);
	g = (struct boot_gather){.in = &rank,
				 .out = out,
				 .len = sizeof(rank),
				 .seq = 2,
				 .timeout_us = LONG};
	need(boot_root_allgather(root, &g), 0);
	job->shared->root_bytes = boot_root_bytes(root);
	pthread_barrier_wait(&job->shared->held);
	pthread_barrier_wait(&job->shared->counted);
	boot_root_close(root);
	free(in);
	free(out);
}

/* Ranks from first on, count of them, as threads. */
static void leaves_run(struct job *job, int process, int32_t first, int32_t count)
{
	struct rank *rank = calloc((size_t)count, sizeof(*rank));
	pthread_attr_t attr;
	struct mallinfo2 before, now;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_barrier_init(&job->held, NULL, (unsigned)count + 1);
	pthread_barrier_init(&job->counted, NULL, (unsigned)count + 1);
	before = mallinfo2();
	for (int32_t i = 0; i < count; i++) {
		rank[i] = (struct rank){.job = job, .rank = first + i};
		errno = pthread_create(&rank[i].thread, &attr, leaf_run, &rank[i]);
		if (errno)
			die("pthread_create");
	}
	pthread_barrier_wait(&job->held);
	now = mallinfo2();
	job->shared->memory[process] =
		now.uordblks + now.hblkhd - before.uordblks - before.hblkhd;
	pthread_barrier_wait(&job->shared->held);
	pthread_barrier_wait(&job->shared->counted);
	pthread_barrier_wait(&job->counted);
	for (int32_t i = 0; i < count; i++)
		pthread_join(rank[i].thread, NULL);
	free(rank);
}

/* ---- a size ----------------------------------------------------------------------- */

static void shared_barrier(pthread_barrier_t *barrier, unsigned count)
{
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attr, count);
}

static struct row row_of(const struct job *job, int64_t began)
{
	const double n = job->size - 1;
	struct row row = {.size = job->size};

	for (int32_t r = 1; r < job->size; r++) {
		const struct rank_report *report = &job->shared->rank[r];

		if (!report->done) {
			fprintf(stderr, "scale: rank %d did not end\n", r);
			exit(1);
		}
		row.messages += (double)(report->count.sent + report->count.received) / n;
		row.bytes += (double)report->count.bytes / n;
		row.cpu_us += (double)report->cpu_ns * 1e-3 / n;
		if ((double)report->table > row.table)
			row.table = (double)report->table;
	}
	for (int p = 0; p < PROCESSES; p++)
		row.memory += (double)job->shared->memory[p] / n;
	row.root = (double)job->shared->root_bytes;
	row.wall_ms = (double)(boot_clock_us() - began) * 1e-3;
	return row;
}

static void process_run(struct job *job, int process)
{
	const int32_t others = job->size - 1, parts = PROCESSES - 1;
	const int32_t part = process - 1;

	alarm(LIMIT_S);
	if (process == 0)
		root_run(job);
	else
		leaves_run(job, process, 1 + (int32_t)((int64_t)others * part / parts),
			   (int32_t)((int64_t)others * (part + 1) / parts -
				     (int64_t)others * part / parts));
	_exit(0);
}

/* Rank 0 listens before anybody comes. */
static void env_fill(struct job *job)
{
	const char *what;
	char text[BOOT_ADDR_TEXT];

	job->env = (struct boot_env){.size = job->size, .node = boot_table_host(0)};
	job->env.root_fd = boot_io_listen("127.0.0.1", "0", &what);
	if (job->env.root_fd < 0)
		die(what);
	boot_io_address(job->env.root_fd, false, text);
	snprintf(job->env.host, sizeof(job->env.host), "127.0.0.1");
	snprintf(job->env.port, sizeof(job->env.port), "%.7s", strrchr(text, ':') + 1);
	memcpy(job->env.job, "scale", 6);
}

static struct row size_run(const struct options *opts, int32_t size)
{
	const size_t bytes =
		sizeof(struct shared) + (size_t)size * sizeof(struct rank_report);
	struct job job = {.opts = opts, .size = size};
	const int64_t began = boot_clock_us();
	pid_t pid[PROCESSES];
	struct row row;
	int status;

	job.shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	if (job.shared == MAP_FAILED)
		die("mmap");
	shared_barrier(&job.shared->held, PROCESSES);
	shared_barrier(&job.shared->counted, PROCESSES);
	env_fill(&job);
	fflush(stdout);
	for (int p = 0; p < PROCESSES; p++) {
		pid[p] = fork();
		if (pid[p] < 0)
			die("fork");
		if (pid[p] == 0)
			process_run(&job, p);
	}
	close(job.env.root_fd);
	for (int p = 0; p < PROCESSES; p++)
		if (waitpid(-1, &status, 0) < 0 || status != 0) {
			fprintf(stderr, "scale: a process ended with status 0x%x\n",
				(unsigned)status);
			for (int q = 0; q < PROCESSES; q++)
				kill(pid[q], SIGKILL); /* they would wait for it */
			exit(1);
		}
	row = row_of(&job, began);
	munmap(job.shared, bytes);
	return row;
}

/* ---- fits ------------------------------------------------------------------------- */

/* Least squares of y = a + b x. */
static void line_fit(const double *x, const double *y, int n, double *a, double *b)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0, d;

	for (int i = 0; i < n; i++) {
		sx += x[i];
		sy += y[i];
		sxx += x[i] * x[i];
		sxy += x[i] * y[i];
	}
	d = n * sxx - sx * sx;
	*b = d != 0 ? (n * sxy - sx * sy) / d : 0;
	*a = (sy - *b * sx) / n;
}

/* y over the sizes: as a + b log2 N, and as N to which power. Returns that. */
static double fit_say(const struct row *row, int n, size_t field, const char *what)
{
	double x[SIZES_MOST], y[SIZES_MOST], lg[SIZES_MOST], a, b, power, unused;

	for (int i = 0; i < n; i++) {
		memcpy(&y[i], (const char *)&row[i] + field, sizeof(y[i]));
		x[i] = log2(row[i].size);
		lg[i] = log2(y[i] > 0 ? y[i] : 1);
	}
	line_fit(x, y, n, &a, &b);
	line_fit(x, lg, n, &unused, &power);
	printf("%-24s %12.1f + %10.2f log2 N   as N^%.2f\n", what, a, b, power);
	return power;
}

static void fits(const struct row *row, int n)
{
	const struct row *last = &row[n - 1];
	double messages, memory, cpu;

	messages = fit_say(row, n, offsetof(struct row, messages), "messages per rank");
	(void)fit_say(row, n, offsetof(struct row, bytes), "bytes per rank");
	cpu = fit_say(row, n, offsetof(struct row, cpu_us), "cpu us per rank");
	memory = fit_say(row, n, offsetof(struct row, memory), "memory B per rank");
	(void)fit_say(row, n, offsetof(struct row, root), "bytes from rank 0");
	printf("scale: %.0f ranks, %.1f messages (N^%.2f), %.1f us (N^%.2f), %.0f B "
	       "(N^%.2f) a rank, table %.0f B\n",
	       last->size, last->messages, messages, last->cpu_us, cpu, last->memory,
	       memory, last->table);
}

static void usage(void)
{
	printf("usage: scale [--ranks A:B] [--len BYTES] [--node RANKS | --apart]\n"
	       "  --ranks A:B   numbers of ranks, doubled from A to B (default "
	       "128:4096)\n"
	       "  --len BYTES   of a rank's contribution (default 504)\n"
	       "  --node RANKS  so many are taken for a host (default: all)\n"
	       "  --apart       nobody shares a host: every rank gets all bytes\n"
	       "  --quick       128:512\n"
	       "Messages and bytes are those that a rank sends and gets; cpu is of its\n"
	       "thread, memory what it has allocated; table is mapped, once a host.\n");
}

static bool ranks_read(const char *text, struct options *opts)
{
	int from, to;

	if (sscanf(text, "%d:%d", &from, &to) != 2 || from < 8 || to > SIZE_MOST ||
	    to < 2 * from)
		return false;
	for (opts->sizes = 0; from <= to && opts->sizes < SIZES_MOST; from *= 2)
		opts->size[opts->sizes++] = from;
	return true;
}

static bool options_read(int argc, char **argv, struct options *opts)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--apart") == 0) {
			opts->node = 0;
			continue;
		}
		if (strcmp(argv[i], "--quick") == 0) {
			(void)ranks_read("128:512", opts);
			continue;
		}
		if (strcmp(argv[i], "--len") == 0)
			opts->len = atoi(value);
		else if (strcmp(argv[i], "--node") == 0)
			opts->node = atoi(value);
		else if (strcmp(argv[i], "--ranks") != 0 || !ranks_read(value, opts))
			return false;
		i++;
	}
	return opts->len >= 4 && opts->len <= 1 << 20 && opts->node >= 0;
}

int main(int argc, char **argv)
{
	struct options opts = {.len = 504, .node = SIZE_MOST};
	struct row row[SIZES_MOST];
	struct rlimit limit;

	(void)ranks_read("128:4096", &opts);
	if (!options_read(argc, argv, &opts)) {
		usage();
		return 2;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	printf("%d bytes a rank, %s\n", opts.len,
	       opts.node ? "hosts share results" : "nobody shares a result");
	printf("%6s %9s %12s %10s %12s %12s %14s %9s\n", "ranks", "messages", "bytes",
	       "cpu us", "memory B", "table B", "rank 0 sent", "all ms");
	for (int i = 0; i < opts.sizes; i++) {
		row[i] = size_run(&opts, opts.size[i]);
		printf("%6.0f %9.2f %12.0f %10.1f %12.0f %12.0f %14.0f %9.1f\n",
		       row[i].size, row[i].messages, row[i].bytes, row[i].cpu_us,
		       row[i].memory, row[i].table, row[i].root, row[i].wall_ms);
		fflush(stdout);
	}
	fits(row, opts.sizes);
	return 0;
}
