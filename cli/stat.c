/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft stat: how running processes stand. Nothing is asked of them: what they do is in
 * memory that another process of the same user can read (coll/trace/look.h). "hang" hands
 * what is there to the analyzer.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/analyze.h"
#include "cli/cmd.h"
#include "cli/parse.h"
#include "cli/stat.h"
#include "cli/usage.h"
#include "coll/trace/take.h"

/* Contexts that are shown at once. */
enum { SHOWN_MAX = 4096 };

static const char help_text[] =
	"usage: weft stat [OPTIONS] [PID...]\n"
	"       weft stat hang [--stuck S] [--json] [--job PID] [PID...]\n"
	"How the processes stand that have opened a context: collectives in flight, "
	"peers,\n"
	"lanes, what the provider counts, memory. Without PID and --job: all of this "
	"user "
	"on\n"
	"this host. They need not answer, and may be stopped.\n"
	"  hang          which collective stopped first, which rank or link holds it, "
	"and "
	"who\n"
	"                is missing; status 3 where something stands still\n"
	"  --job PID     all processes below this one, such as weft run's\n"
	"  --watch S     again every S seconds, with rates, until it is interrupted or "
	"they\n"
	"                have ended\n"
	"  --count N     so many times, with --watch\n"
	"  --stuck S     hang: a call that has not moved for S seconds stands still "
	"(default 1)\n"
	"  --json        one document for each time\n";

struct stat_opts {
	const char *job, *stuck;
	int64_t watch_us, count;
	bool json, hang;
};

struct stat_run {
	const struct stat_opts *opts;
	int argc;
	char **argv; /* processes */
	struct look *now[SHOWN_MAX], *was[SHOWN_MAX];
	int64_t shown, before, left_out;
	bool bad; /* something could not be had; it was said */
};

static void say(struct stat_run *s, const char *what)
{
	fprintf(stderr, "weft stat: %s\n", what);
	s->bad = true;
}

/* ---- looking ------------------------------------------------------------------------
 */

static void keep(void *arg, const struct look *look)
{
	struct stat_run *s = arg;
	struct look *copy = s->shown < SHOWN_MAX ? malloc(sizeof(*copy)) : NULL;

	if (!copy) {
		s->left_out++;
		return;
	}
	*copy = *look;
	s->now[s->shown++] = copy;
}

/* Most processes have no recorder. */
static void keep_any(void *arg, pid_t pid)
{
	(void)look_process(pid, keep, arg);
}

static void look_at(struct stat_run *s, const char *word)
{
	int64_t pid;

	if (!parse_int(word, 1, INT32_MAX, &pid)) {
		fprintf(stderr, "weft stat: \"%s\" is no number of a process\n", word);
		s->bad = true;
	} else if (look_process((pid_t)pid, keep, s) != WEFT_SUCCESS) {
		say(s, weft_error_detail());
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct trace_head *x = &(*(struct look *const *)a)->head,
				*y = &(*(struct look *const *)b)->head;

	return x->job != y->job	    ? (x->job < y->job ? -1 : 1)
	       : x->rank != y->rank ? (x->rank < y->rank ? -1 : 1)
				    : 0;
}

static void look_all(struct stat_run *s)
{
	const struct stat_opts *o = s->opts;
	int64_t pid;

	for (int i = 0; i < s->argc; i++)
		look_at(s, s->argv[i]);
	if (o->job && !parse_int(o->job, 1, INT32_MAX, &pid)) {
		fprintf(stderr, "weft stat: --job: \"%s\" is no number of a process\n",
			o->job);
		s->bad = true;
	} else if (o->job && take_children((pid_t)pid, keep_any, s) != WEFT_SUCCESS) {
		say(s, weft_error_detail());
	}
	if (!s->argc && !o->job)
		take_everybody(keep_any, s);
	qsort(s->now, (size_t)s->shown, sizeof(s->now[0]), by_rank);
	if (s->left_out)
		fprintf(stderr, "weft stat: %lld contexts more are not shown\n",
			(long long)s->left_out);
}

static const struct look *was_of(const struct stat_run *s, const struct look *now)
{
	for (int64_t i = 0; i < s->before; i++)
		if (s->was[i]->head.pid == now->head.pid &&
		    s->was[i]->head.job == now->head.job &&
		    s->was[i]->head.ticks[0] == now->head.ticks[0])
			return s->was[i];
	return NULL;
}

static void free_was(struct stat_run *s)
{
	for (int64_t i = 0; i < s->before; i++)
		free(s->was[i]);
	s->before = 0;
}

/* ---- showing ------------------------------------------------------------------------
 */

static void show(struct stat_run *s)
{
	struct json j;

	if (s->opts->json) {
		json_init(&j, stdout);
		json_object_begin(&j, NULL);
		json_uint(&j, "schema", 1);
		json_text(&j, "program", "weft stat");
		json_text(&j, "version", PACKAGE_VERSION);
		json_array_begin(&j, "contexts");
		for (int64_t i = 0; i < s->shown; i++)
			stat_json(&j, s->now[i], was_of(s, s->now[i]));
		json_array_end(&j);
		json_object_end(&j);
		json_fini(&j);
	} else {
		/* A terminal is written anew. */
		if (s->opts->watch_us && isatty(STDOUT_FILENO))
			printf("\033[H\033[2J");
		for (int64_t i = 0; i < s->shown; i++)
			stat_text(s->now[i], was_of(s, s->now[i]));
	}
	fflush(stdout);
}

static void pause_us(int64_t us)
{
	struct timespec t = {.tv_sec = (time_t)(us / 1000000),
			     .tv_nsec = (long)(us % 1000000) * 1000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* Until there is nobody any more, or so many times. */
static int watch(struct stat_run *s)
{
	const struct stat_opts *o = s->opts;

	for (int64_t i = 0;; i++) {
		if (i)
			pause_us(o->watch_us);
		s->shown = 0;
		s->left_out = 0;
		s->bad = false;
		look_all(s);
		if (i && !s->shown)
			break;
		if (!s->shown && !s->bad)
			say(s, "no process of this user has opened a context (or see it "
			       "with "
			       "--job PID or PID as the user whose processes they are)");
		show(s);
		free_was(s);
		memcpy(s->was, s->now, (size_t)s->shown * sizeof(s->now[0]));
		s->before = s->shown;
		s->shown = 0;
		if (s->bad || !o->watch_us || (o->count && i + 1 == o->count) ||
		    ferror(stdout))
			break;
	}
	free_was(s);
	return s->bad && !o->watch_us;
}

static int hang(const struct stat_opts *o, int argc, char **argv)
{
	struct trace_src src;
	int status;

	trace_src_begin(&src, "stat hang", NULL);
	for (int i = 0; i < argc; i++)
		trace_src_pids(&src, argv[i]);
	if (o->job)
		trace_src_job(&src, o->job);
	if (!argc && !o->job)
		trace_src_everybody(&src);
	status = analyze_run(&src, o->stuck, o->json);
	if (src.bad && !status)
		status = 1;
	trace_src_end(&src);
	return status;
}

/* ---- the command line ---------------------------------------------------------------
 */

/* 0: go on; else the status to end with, or -1: with 0. */
static int read_opts(int argc, char **argv, struct stat_opts *o)
{
	static const struct option longs[] = {{"job", required_argument, NULL, 'j'},
					      {"watch", required_argument, NULL, 'w'},
					      {"count", required_argument, NULL, 'c'},
					      {"stuck", required_argument, NULL, 's'},
					      {"json", no_argument, NULL, 'J'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(help_text, stdout);
			return -1;
		case 'j':
			o->job = optarg;
			break;
		case 'w':
			if (!parse_seconds(optarg, &o->watch_us) || o->watch_us < 1000)
				return usage_error(
					"stat",
					"--watch wants seconds, at least 0.001, not",
					optarg);
			break;
		case 'c':
			if (!parse_int(optarg, 1, INT32_MAX, &o->count))
				return usage_error(
					"stat", "--count wants a number from 1 on, not",
					optarg);
			break;
		case 's':
			o->stuck = optarg;
			break;
		case 'J':
			o->json = true;
			break;
		default:
			return usage_option("stat", c, argv);
		}
	}
	return 0;
}

int cmd_stat(int argc, char **argv)
{
	struct stat_opts opts = {0};
	struct stat_run *s;
	int status = read_opts(argc, argv, &opts);

	if (status)
		return status < 0 ? 0 : status;
	opts.hang = optind < argc && strcmp(argv[optind], "hang") == 0;
	if (opts.hang && (opts.watch_us || opts.count))
		return usage_error("stat", "--watch and --count are not for hang", NULL);
	if (!opts.hang && opts.stuck)
		return usage_error("stat", "--stuck is for hang:", opts.stuck);
	if (opts.count && !opts.watch_us)
		return usage_error("stat", "--count is for --watch", NULL);
	if (opts.hang)
		return hang(&opts, argc - optind - 1, argv + optind + 1);
	s = calloc(1, sizeof(*s));
	if (!s) {
		fprintf(stderr, "weft stat: no memory\n");
		return 1;
	}
	s->opts = &opts;
	s->argc = argc - optind;
	s->argv = argv + optind;
	status = watch(s);
	free(s);
	return status;
}
