/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator against what happens: collectives between network namespaces whose links
 * are limited (topo/sim/real). Latency and rate are those of messages between two ranks
 * and the speed of sums that of one rank alone; nothing is taken from the collectives
 * that are compared.
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topo/sim/engine.h"
#include "topo/sim/validate.h"

#define WITHIN 0.15

/* Messages of more bytes wait for READY, as with providers that have RMA. */
#define EAGER 16384

/* What point-to-point runs say. */
struct terms {
	int ranks;
	double brief, lengthy, longest; /* s one way: 8 bytes, 1 MiB, 4 MiB */
	double work;			/* bytes/s */
};

static double rate_of(const struct terms *t)
{
	return 3.0 * VALIDATE_PAIR_LONG / (t->longest - t->lengthy);
}

/* Whether the line is one of those that terms are taken from. */
static bool terms_take(struct terms *t, const char *line)
{
	unsigned long long bytes;
	double s;

	if (sscanf(line, "real %d", &t->ranks) == 1)
		return true;
	if (sscanf(line, "work %llu %lf", &bytes, &s) == 2) {
		t->work = (double)bytes / s;
		return true;
	}
	if (sscanf(line, "pair %llu %lf", &bytes, &s) != 2)
		return false;
	if (bytes == VALIDATE_PAIR_BRIEF)
		t->brief = s;
	else if (bytes == VALIDATE_PAIR_LONG)
		t->lengthy = s;
	else
		t->longest = s;
	return true;
}

static bool terms_good(const struct terms *t)
{
	return t->ranks >= 2 && t->ranks <= 16 && t->brief > 0 && t->lengthy > t->brief &&
	       t->longest > t->lengthy && t->work > 0;
}

static struct sim_net *net_make(const struct terms *t)
{
	const struct sim_net_options o = {.ranks = t->ranks};
	struct fabric_error error = {0};
	struct fabric_map *map = NULL;
	struct sim_net *net = NULL;
	char text[256];

	snprintf(text, sizeof(text),
		 "weft-fabric 1\nrail r0 %.0fM\ngrid n[01-%02d] 1/1/1\n"
		 "tier rack latency=%.3fus\n",
		 fmax(rate_of(t) * 8e-6, 1), t->ranks, t->brief * 1e6);
	if (fabric_map_parse(text, strlen(text), &map, &error) ||
	    sim_net_open(map, &o, &net, &error))
		printf("WRONG line %u: %s\n", error.line, error.text);
	fabric_map_free(map);
	return net;
}

/* One line of what was measured; 1 where it is wrong. */
static unsigned line_wrong(const struct terms *t, const struct sim_net *net,
			   const char *line)
{
	const struct sim_options o = {.eager = EAGER, .work = t->work};
	struct sim_job job = {.call = {.size = t->ranks, .elem_size = 4}};
	char coll[32], algo[32], why[256] = "";
	unsigned long long bytes;
	struct sim_result r;
	double took, off;

	if (sscanf(line, "%31s %31s %llu %lf", coll, algo, &bytes, &took) != 4 ||
	    !(job.algo = algo_find(coll, algo)) || !(took > 0)) {
		printf("WRONG this line is not understood: %s", line);
		return 1;
	}
	job.call.count = bytes / 4;
	/* As the library's communicators have it where ranks share processors. */
	job.call.crowded = true;
	if (sim_run(net, &job, 1, &o, &r, NULL, why, sizeof(why))) {
		printf("WRONG %s/%s: %s\n", coll, algo, why);
		return 1;
	}
	off = r.time / took - 1;
	printf("%s%-15s %-20s %9llu: measured %9.3f ms, simulated %9.3f ms, %+5.1f %%\n",
	       fabs(off) > WITHIN ? "WRONG " : "", coll, algo, bytes, took * 1e3,
	       r.time * 1e3, off * 100);
	return fabs(off) > WITHIN;
}

/* Terms come first. How many were wrong; -1: there were none. */
static int lines_compare(FILE *from)
{
	struct sim_net *net = NULL;
	struct terms t = {0};
	unsigned wrong = 0, compared = 0;
	char line[256];

	while (fgets(line, sizeof(line), from)) {
		if (terms_take(&t, line))
			continue;
		if (!net) {
			if (!terms_good(&t) || !(net = net_make(&t))) {
				printf("WRONG no terms before: %s", line);
				return 1;
			}
			printf("terms: latency %.1f us, %.2f MB/s, sums %.2f GB/s\n",
			       t.brief * 1e6, rate_of(&t) * 1e-6, t.work * 1e-9);
		}
		wrong += line_wrong(&t, net, line);
		compared++;
	}
	sim_net_close(net);
	return compared ? (int)wrong : -1;
}

/* The script with these options, its output in *out. */
static pid_t script_start(char **options, FILE **out)
{
	int end[2];
	pid_t pid;

	if (pipe(end))
		return -1;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setenv("WEFT_TOP_BUILDDIR", VALIDATE_BUILD, 0);
		dup2(end[1], STDOUT_FILENO);
		close(end[0]);
		close(end[1]);
		execv(VALIDATE_REAL, options);
		fprintf(stderr, "validate: %s: %s\n", VALIDATE_REAL, strerror(errno));
		_exit(127);
	}
	close(end[1]);
	*out = fdopen(end[0], "r");
	return *out ? pid : -1;
}

int validate_real(char **options)
{
	FILE *out = NULL;
	const pid_t pid = script_start(options, &out);
	int status, wrong;

	if (pid < 0) {
		fprintf(stderr, "validate: %s: %s\n", VALIDATE_REAL, strerror(errno));
		return -1;
	}
	wrong = lines_compare(out);
	fclose(out);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	if (WEXITSTATUS(status) == 2)
		return -1;
	if (WEXITSTATUS(status) || wrong < 0) {
		printf("WRONG nothing was measured, or not all\n");
		return 1;
	}
	return wrong;
}
