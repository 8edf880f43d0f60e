/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft check-plans: runs the checker over every algorithm. At the sizes of --ranks with
 * every shape of call, at the random sizes above them with one or two light shapes each,
 * drawn from the printed seed. Tasks are handed out to --jobs processes, the longest
 * first.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/usage.h"
#include "coll/algo/algo.h"
#include "coll/plan/nodes.h"
#include "coll/plan/tables.h"

/* Shapes per algorithm at each random size, and from where on it is one. */
#define DRAWS	    2
#define DRAWS_UP_TO 512

enum { OPT_RANKS = 256, OPT_RANDOM, OPT_MAX, OPT_SEED, OPT_ALGO, OPT_JOBS, OPT_SHAPES };

enum { ALGO_TEXT = 128 }; /* "allreduce/ring" */

struct options {
	int32_t from, to; /* sizes with every shape */
	int64_t random;	  /* sizes with a few */
	int32_t max;
	uint64_t seed;
	regex_t algo;
	bool has_algo;
	int64_t jobs;
	uint64_t shapes; /* drawn at each size of --ranks; 0: every one */
};

/* One algorithm at one size. */
struct task {
	const struct algo *algo;
	int32_t size;
	uint64_t seed;	/* of the shapes that are drawn */
	uint64_t draws; /* so many; 0: every shape */
	bool light;
};

/* What a worker tells the parent; written whole, since it is shorter than PIPE_BUF. */
struct report {
	uint64_t task_done; /* 1: the task is finished, else one plan set was wrong */
	uint64_t checked;
	char text[480];
};
_Static_assert(sizeof(struct report) <= PIPE_BUF, "a report is written whole");

struct tally {
	uint64_t checked;
	uint64_t wrong;
	uint64_t tasks_done;
};

struct shape {
	uint64_t block; /* elements of a rank's block: of the vector in an all-reduce */
	uint64_t more;	/* added to the count */
	uint32_t elem_size;
	uint64_t chunk_bytes;
};

/* Counts of nothing, of one, below the number of ranks (an all-reduce's size - 1), odd,
 * and enough for several chunks; elements so large that recursive doubling has few slots.
 * The first LIGHT shapes have few chunks: a ring's plans together have instances with the
 * square of the ranks, times the chunks.
 */
static const struct shape shapes[] = {
	{0, 0, 4, 0},	{0, 1, 4, 0},	       {1, UINT64_MAX, 4, 0}, {2, 1, 4, 0},
	{6, 1, 4, 16},	{0, 1, 128 * 1024, 0}, {0, 3, 256 * 1024, 0}, {3, 2, 2, 4},
	{13, 5, 4, 16}, {41, 0, 4, 16},	       {0, 65535, 4, 65536},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define LIGHT  7

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(0x2545f4914f6cdd1d);
}

/* ---- one plan set -------------------------------------------------------------------
 */

static void plans_free(struct plan **plans, int32_t size)
{
	for (int32_t r = 0; plans && r < size; r++)
		plan_free(plans[r]);
	free(plans);
}

static int plans_check(const struct algo *algo, const struct plan_call *call, char *why,
		       size_t why_len)
{
	struct plan **plans = calloc((size_t)call->size, sizeof(struct plan *));
	struct plan_check check = {.goal = algo->goal,
				   .call = call,
				   .plans = plans,
				   .window = PLAN_WINDOW_MIN};
	int ret = plans ? 0 : -ENOMEM;

	for (int32_t r = 0; !ret && r < call->size; r++) {
		struct plan_call mine = *call;
		const char *fault = "";

		mine.rank = r;
		ret = algo->build(&mine, &plans[r], &fault);
		if (ret)
			snprintf(why, why_len, "rank %d: building it: %s", r, fault);
	}
	if (!ret)
		ret = plan_check(&check, why, why_len);
	plans_free(plans, call->size);
	return ret;
}

/* ---- workers ------------------------------------------------------------------------
 */

struct worker {
	int out;
	struct report report;
};

static void report_send(struct worker *w)
{
	/* The parent reads until all writers are gone; a parent that died ends us. */
	if (write(w->out, &w->report, sizeof(w->report)) != (ssize_t)sizeof(w->report))
		_exit(1);
}

/* Made-up layouts of an algorithm that goes by them; the first is one node. */
static const struct {
	enum plan_layout layout;
	int32_t per;
} layouts[] = {
	{PLAN_LAYOUT_BLOCKS, INT32_MAX}, {PLAN_LAYOUT_BLOCKS, 2}, {PLAN_LAYOUT_BLOCKS, 8},
	{PLAN_LAYOUT_ROUND, 3},		 {PLAN_LAYOUT_ANY, 2},	  {PLAN_LAYOUT_ANY, 5}};
#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

/* One for each shape and variant; over sizes all of them meet. */
static size_t layout_of(const struct algo *algo, int32_t size, size_t pick)
{
	if (strcmp(algo->name, "hierarchical") != 0)
		return 0;
	return ((size_t)size * 7 + pick / 2 + pick % 2 * 3) % LAYOUTS;
}

/* The same; a (v) form gets blocks made up from its count. */
static int set_wrong(const struct algo *algo, const struct plan_call *call, char *why,
		     size_t why_len)
{
	struct plan_call own = *call;
	int ret;

	if (!call->vector)
		return plans_check(algo, call, why, why_len);
	own.tables = plan_tables_make(algo->goal, call, call->count, call->count + 1);
	snprintf(why, why_len, "out of memory");
	ret = own.tables ? plans_check(algo, &own, why, why_len) : -ENOMEM;
	plan_tables_free(own.tables, call->size);
	return ret;
}

static void set_check(struct worker *w, const struct task *t,
		      const struct plan_call *call)
{
	char why[256] = "";
	uint64_t checked = w->report.checked + 1;

	w->report.checked = checked;
	if (!set_wrong(t->algo, call, why, sizeof(why)))
		return;
	w->report.task_done = 0;
	snprintf(w->report.text, sizeof(w->report.text),
		 "%s/%s: %d ranks, %" PRIu64 " elements of %u bytes, chunk %" PRIu64
		 ", root %d%s%s%s, %d nodes: %s",
		 t->algo->coll, t->algo->name, call->size, call->count, call->elem_size,
		 call->chunk_bytes, call->root, call->in_place ? ", in place" : "",
		 call->average ? ", average" : "", call->ordered ? ", in order" : "",
		 call->nodes ? call->nodes->count : 1, why);
	report_send(w);
}

/* Variants of a call: in place or not, a few roots; plain, an average, or in the order
 * of ranks. */
static unsigned roots_of(const struct algo *algo, int32_t size)
{
	if (!plan_goal_rooted(algo->goal))
		return 1;
	return size < 3 ? (unsigned)size : 3;
}

static unsigned variants(const struct algo *algo, int32_t size)
{
	if (algo->goal == PLAN_GOAL_BARRIER)
		return 1;
	return 2 * roots_of(algo, size) * (plan_goal_reduces(algo->goal) ? 3 : 1);
}

/* One shape and variant, on a layout. */
static void call_check(struct worker *w, const struct task *t, struct plan_call call,
		       size_t layout)
{
	struct plan_nodes *nodes = NULL;

	if (layout)
		nodes = plan_nodes_fake(layouts[layout].layout, call.size,
					layouts[layout].per);
	call.nodes = nodes;
	if (t->algo->supports(&call))
		set_check(w, t, &call);
	/* As doubled calls have them. */
	call.roomy = !call.in_place && (t->algo->goal == PLAN_GOAL_ALLREDUCE ||
					t->algo->goal == PLAN_GOAL_REDUCE_SCATTER);
	if (call.roomy && !t->algo->vector && t->algo->supports(&call))
		set_check(w, t, &call);
	free(nodes);
}

static struct plan_call call_make(const struct algo *algo, int32_t size, size_t shape,
				  unsigned variant)
{
	const struct shape *s = &shapes[shape];
	const unsigned roots = roots_of(algo, size);
	/* Whole vectors are cut by the algorithm itself. */
	const bool whole =
		algo->goal == PLAN_GOAL_ALLREDUCE || algo->goal == PLAN_GOAL_REDUCE;

	return (struct plan_call){
		.size = size,
		.count = s->block * (whole ? (uint64_t)size : 1) + s->more,
		.elem_size = s->elem_size,
		.in_place = variant % 2,
		.root = (int32_t[]){0, size - 1, size / 2}[variant / 2 % roots],
		.average = variant / 2 / roots == 1,
		.ordered = variant / 2 / roots == 2,
		.vector = algo->vector,
		.chunk_bytes = s->chunk_bytes};
}

static void task_do(struct worker *w, const struct task *t)
{
	unsigned per_shape = variants(t->algo, t->size);
	size_t of = t->light ? LIGHT : SHAPES;
	/* Nothing but the layout makes a difference to a barrier. */
	size_t count = t->algo->goal == PLAN_GOAL_BARRIER ? LAYOUTS : of * per_shape;
	uint64_t seed = t->seed;
	size_t draws = count;

	if (t->draws && draws > t->draws)
		draws = t->draws;

	for (size_t i = 0; i < draws; i++) {
		size_t pick = draws < count ? random_next(&seed) % count : i;

		call_check(w, t,
			   call_make(t->algo, t->size, pick / per_shape % SHAPES,
				     (unsigned)(pick % per_shape)),
			   layout_of(t->algo, t->size, pick));
	}
	w->report.task_done = 1;
	w->report.text[0] = '\0';
	report_send(w);
	w->report.checked = 0;
}

/* Takes tasks from the common counter until there is none. */
static void worker_main(int out, const struct task *tasks, uint64_t count,
			uint64_t *shared_next)
{
	struct worker w = {.out = out};

	for (;;) {
		uint64_t i = __atomic_fetch_add(shared_next, 1, __ATOMIC_RELAXED);

		if (i >= count)
			_exit(0);
		task_do(&w, &tasks[i]);
	}
}

/* ---- parent -------------------------------------------------------------------------
 */

static int task_compare(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return (x->size < y->size) - (x->size > y->size);
}

static void algo_name(size_t a, char name[ALGO_TEXT])
{
	snprintf(name, ALGO_TEXT, "%s/%s", algo_table[a].coll, algo_table[a].name);
}

static bool algo_wanted(const struct options *o, size_t a)
{
	char name[ALGO_TEXT];

	algo_name(a, name);
	return !o->has_algo || regexec(&o->algo, name, 0, NULL, 0) == 0;
}

static void tasks_of_size(const struct options *o, struct task like, struct task *tasks,
			  uint64_t *count)
{
	for (size_t a = 0; a < algo_count; a++) {
		like.algo = &algo_table[a];
		if (algo_wanted(o, a))
			tasks[(*count)++] = like;
	}
}

static struct task *tasks_make(const struct options *o, uint64_t *count)
{
	uint64_t sizes = (uint64_t)(o->to - o->from + 1) + (uint64_t)o->random;
	struct task *tasks = calloc(sizes * algo_count + 1, sizeof(*tasks));
	uint64_t seed = o->seed;

	*count = 0;
	if (!tasks)
		return NULL;
	for (int32_t n = o->from; n <= o->to; n++)
		tasks_of_size(o,
			      (struct task){.size = n,
					    .seed = random_next(&seed) | 1,
					    .draws = o->shapes},
			      tasks, count);
	for (int64_t i = 0; i < o->random; i++) {
		uint64_t span = (uint64_t)(o->max - o->to);
		int32_t n = o->to + 1 + (int32_t)(random_next(&seed) % span);

		tasks_of_size(o,
			      (struct task){.size = n,
					    .seed = random_next(&seed) | 1,
					    .draws = n <= DRAWS_UP_TO ? DRAWS : 1,
					    .light = true},
			      tasks, count);
	}
	qsort(tasks, *count, sizeof(*tasks), task_compare);
	return tasks;
}

static void reports_read(int in, uint64_t count, struct tally *tally)
{
	bool terminal = isatty(STDERR_FILENO);
	struct report r;

	while (read(in, &r, sizeof(r)) == (ssize_t)sizeof(r)) {
		if (!r.task_done) {
			tally->wrong++;
			printf("%s%s\n", terminal ? "\r" : "", r.text);
			fflush(stdout);
			continue;
		}
		tally->tasks_done++;
		tally->checked += r.checked;
		if (terminal)
			fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " tasks ",
				tally->tasks_done, count);
	}
	if (terminal)
		fprintf(stderr, "\r%40s\r", "");
}

/* Returns how many workers were started; each has the write end of out. */
static int64_t workers_start(const struct options *o, int out[2],
			     const struct task *tasks, uint64_t count, uint64_t *next)
{
	int64_t started = 0;

	for (; started < o->jobs; started++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			close(out[0]);
			worker_main(out[1], tasks, count, next);
		}
	}
	return started;
}

static bool workers_reap(void)
{
	bool good = true;
	int status;

	while (waitpid(-1, &status, 0) > 0) {
		if (WIFSIGNALED(status))
			fprintf(stderr,
				"weft check-plans: a worker was ended by signal %d\n",
				WTERMSIG(status));
		good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return good;
}

static int check_all(const struct options *o)
{
	struct tally tally = {.checked = 0};
	struct timespec begin, end;
	uint64_t count, *next;
	size_t algos = 0;
	struct task *tasks;
	double seconds;
	int out[2];
	bool good;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (size_t a = 0; a < algo_count; a++)
		algos += algo_wanted(o, a);
	tasks = tasks_make(o, &count);
	next = mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!tasks || next == MAP_FAILED || pipe(out)) {
		fprintf(stderr, "weft check-plans: no memory or pipe: %s\n",
			strerror(errno));
		return 1;
	}
	printf("check-plans: ranks %d:%d, %" PRId64 " random sizes to %d, seed %" PRIu64
	       "\n",
	       o->from, o->to, o->random, o->max, o->seed);
	fflush(stdout);
	good = workers_start(o, out, tasks, count, next) > 0;
	if (!good)
		fprintf(stderr, "weft check-plans: fork: %s\n", strerror(errno));
	close(out[1]);
	reports_read(out[0], count, &tally);
	good &= workers_reap();
	if (tally.tasks_done < count) {
		fprintf(stderr,
			"weft check-plans: %" PRIu64 " of %" PRIu64 " tasks undone\n",
			count - tally.tasks_done, count);
		good = false;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	seconds = (double)(end.tv_sec - begin.tv_sec) +
		  (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	printf("check-plans: %zu algorithm%s, %" PRIu64 " plan sets, %" PRIu64
	       " wrong, %.1f s\n",
	       algos, algos == 1 ? "" : "s", tally.checked, tally.wrong, seconds);
	munmap(next, sizeof(*next));
	close(out[0]);
	free(tasks);
	return good && !tally.wrong ? 0 : 1;
}

/* ---- arguments ----------------------------------------------------------------------
 */

enum { RANKS_MAX = 65536, RANDOM_MAX = 1000000, JOBS_MAX = 1024, SHAPES_MAX = 1000 };

static const char help_text[] =
	"usage: weft check-plans [OPTIONS]\n"
	"\n"
	"Proves the plans of every algorithm: each element of the result holds what it "
	"must,\n"
	"no place is read or written too early, and nobody waits for ever.\n"
	"\n"
	"      --ranks A:B    numbers of ranks that are tried with every shape of call, "
	"1 to\n"
	"                     65536; default 1:64\n"
	"      --shapes K     only K shapes of call at each of them, drawn from the "
	"seed, 1 to\n"
	"                     1000; default: all\n"
	"      --random N     so many random numbers of ranks above B, with one or two "
	"shapes\n"
	"                     each, 0 to 1000000; default 100\n"
	"      --max M        the largest of these, above B and at most 65536; default "
	"1024\n"
	"      --seed S       of random sizes and shapes, 1 or more; printed. Default: "
	"from the\n"
	"                     clock\n"
	"      --algo REGEX   only algorithms COLLECTIVE/NAME that match (extended "
	"regular\n"
	"                     expression; weft info lists them)\n"
	"      --jobs J       processes, 1 to 1024; default: as many as processors, at "
	"most 4\n"
	"  -h, --help\n"
	"\n"
	"Time and memory grow at least with the square of the ranks.\n"
	"Exit status: 0 when all plans are right, 1 when one is wrong or could not be "
	"checked,\n"
	"2 for wrong usage.\n";

static int wrong(const char *what, const char *value)
{
	return usage_error("check-plans", what, value);
}

/* A whole number from lo to hi; *rest is what follows it. */
static bool number_parse(const char *text, const char **rest, uint64_t lo, uint64_t hi,
			 uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	*rest = end;
	return !errno && *out >= lo && *out <= hi;
}

static bool number_whole(const char *text, uint64_t lo, uint64_t hi, uint64_t *out)
{
	const char *rest = "";

	return number_parse(text, &rest, lo, hi, out) && !*rest;
}

static bool ranks_parse(const char *text, struct options *o)
{
	uint64_t from, to;

	if (!number_parse(text, &text, 1, RANKS_MAX, &from))
		return false;
	to = from;
	if (*text == ':' && !number_parse(text + 1, &text, from, RANKS_MAX, &to))
		return false;
	o->from = (int32_t)from;
	o->to = (int32_t)to;
	return !*text;
}

/* 0, or the status after saying what is wrong. */
static int algo_parse(struct options *o, const char *text)
{
	char why[128], what[sizeof(why) + 64], list[512] = "";
	size_t used = 0;
	bool any = false;
	int rc;

	if (o->has_algo)
		return wrong("--algo may be given once; the second is", text);
	rc = regcomp(&o->algo, text, REG_EXTENDED | REG_NOSUB);
	if (rc) {
		regerror(rc, &o->algo, why, sizeof(why));
		snprintf(what, sizeof(what),
			 "--algo is no regular expression (%s):", why);
		return wrong(what, text);
	}
	o->has_algo = true;
	for (size_t a = 0; a < algo_count; a++) {
		char name[ALGO_TEXT];

		any = any || algo_wanted(o, a);
		algo_name(a, name);
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 a ? ", " : "", name);
	}
	if (any)
		return 0;
	fprintf(stderr,
		"weft check-plans: --algo \"%s\" matches no algorithm; there are: %s\n",
		text, list);
	return 2;
}

/* 0, or the status after saying what is wrong. */
static int option_parse(struct options *o, int opt, const char *text)
{
	uint64_t v;

	switch (opt) {
	case OPT_RANKS:
		return ranks_parse(text, o)
			       ? 0
			       : wrong("--ranks must be like 1:64, from 1 to 65536, not",
				       text);
	case OPT_RANDOM:
		if (!number_whole(text, 0, RANDOM_MAX, &v))
			return wrong("--random must be 0 to 1000000, not", text);
		o->random = (int64_t)v;
		return 0;
	case OPT_MAX:
		if (!number_whole(text, 1, RANKS_MAX, &v))
			return wrong("--max must be 1 to 65536, not", text);
		o->max = (int32_t)v;
		return 0;
	case OPT_SHAPES:
		return number_whole(text, 1, SHAPES_MAX, &o->shapes)
			       ? 0
			       : wrong("--shapes must be 1 to 1000, not", text);
	case OPT_SEED:
		return number_whole(text, 1, UINT64_MAX, &o->seed)
			       ? 0
			       : wrong("--seed must be a whole number above 0, not",
				       text);
	case OPT_ALGO:
		return algo_parse(o, text);
	default:
		if (!number_whole(text, 1, JOBS_MAX, &v))
			return wrong("--jobs must be 1 to 1024, not", text);
		o->jobs = (int64_t)v;
		return 0;
	}
}

/* -1: go on; else the exit status. */
static int args_parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"ranks", required_argument, NULL, OPT_RANKS},
		{"random", required_argument, NULL, OPT_RANDOM},
		{"max", required_argument, NULL, OPT_MAX},
		{"seed", required_argument, NULL, OPT_SEED},
		{"algo", required_argument, NULL, OPT_ALGO},
		{"jobs", required_argument, NULL, OPT_JOBS},
		{"shapes", required_argument, NULL, OPT_SHAPES},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int opt, status;

	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help_text, stdout);
			return 0;
		}
		status = opt < OPT_RANKS ? usage_option("check-plans", opt, argv)
					 : option_parse(o, opt, optarg);
		if (status)
			return status;
	}
	if (optind < argc)
		return wrong("this argument is one too many:", argv[optind]);
	if (o->random && o->max <= o->to)
		return wrong(
			"--max must be above the end of --ranks, unless --random is 0",
			NULL);
	return -1;
}

int cmd_check_plans(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct options o = {.from = 1,
			    .to = 64,
			    .random = 100,
			    .max = 1024,
			    .seed = (uint64_t)time(NULL),
			    .jobs = cpus < 1   ? 1
				    : cpus > 4 ? 4
					       : cpus};
	int status = args_parse(&o, argc, argv);

	if (status < 0)
		status = check_all(&o);
	if (o.has_algo)
		regfree(&o.algo);
	return status;
}
