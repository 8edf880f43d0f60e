/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-way latency of a cache line between two processors.
 *
 *   linelat choose        which two a benchmark would take: "A B WHY"
 *   linelat CPU_A CPU_B   the latency in ns
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "bench/cpus.h"
#include "bench/pair.h"
#include "bench/say.h"

enum { CPU_MOST = 1023, SECONDS = 60 };

static void line_main(struct pair *p, void *arg)
{
	double ns;

	(void)arg;
	pair_line_ns(p); /* the processors wake up */
	ns = pair_line_ns(p);
	if (p->role == 0)
		printf("%.1f\n", ns);
}

static int choose(void)
{
	const char *why;
	int cpu[2];

	if (!cpus_choose(cpu, &why)) {
		bench_say("two processors are needed, fewer are allowed to this process");
		return 2;
	}
	printf("%d %d %s\n", cpu[0], cpu[1], why);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t cpu[2];

	if (argc == 2 && strcmp(argv[1], "choose") == 0)
		return choose();
	if (argc != 3 || !bench_number(argv[1], 0, CPU_MOST, &cpu[0]) ||
	    !bench_number(argv[2], 0, CPU_MOST, &cpu[1]) || cpu[0] == cpu[1]) {
		fprintf(stderr, "usage: linelat choose | linelat CPU_A CPU_B\n");
		return 2;
	}
	return pair_run((const int[2]){(int)cpu[0], (int)cpu[1]}, SECONDS, line_main,
			NULL);
}
