/* SPDX-License-Identifier: BSD-2-Clause */
/* Choosing processors by what the kernel's sysfs says about them. See cpus.h. */
#include "config.h"

#include "bench/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	/* What speaks for a pair, most first. */
	OTHER_CORE = 4,
	ONE_CACHE = 2,
	ONE_PACKAGE = 1,
	LIST_TEXT = 4096,
};

/* What kernel text like "0-3,8" says of a processor; false when there is no such file. */
static bool list_has(int cpu, const char *file, int other)
{
	char path[128], text[LIST_TEXT] = "", *at = text;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	while (*at >= '0' && *at <= '9') {
		long first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		if (other >= first && other <= last)
			return true;
		if (*at == ',')
			at++;
	}
	return false;
}

static int pair_score(int a, int b)
{
	int score = 0;

	if (!list_has(a, "topology/thread_siblings_list", b))
		score |= OTHER_CORE;
	if (list_has(a, "cache/index3/shared_cpu_list", b))
		score |= ONE_CACHE;
	if (list_has(a, "topology/core_siblings_list", b))
		score |= ONE_PACKAGE;
	return score;
}

static const char *score_text(int score)
{
	if (!(score & OTHER_CORE))
		return "two threads of one core";
	if (score & ONE_CACHE)
		return "different cores, one L3 cache";
	if (score & ONE_PACKAGE)
		return "different cores, one package";
	return "different cores";
}

bool cpus_choose(int cpu[2], const char **why)
{
	cpu_set_t allowed;
	int first = -1, best = -1;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return false;
	for (int c = CPU_COUNT(&allowed) > 2 ? 1 : 0; c < CPU_SETSIZE; c++) {
		if (!CPU_ISSET(c, &allowed))
			continue;
		if (first < 0) {
			first = c;
			continue;
		}
		if (pair_score(first, c) > best) {
			best = pair_score(first, c);
			cpu[1] = c;
		}
	}
	if (best < 0)
		return false;
	cpu[0] = first;
	*why = score_text(best);
	return true;
}

bool cpus_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}
