/* SPDX-License-Identifier: BSD-2-Clause */
/* What a look-up in the cache of registrations costs (not a test: nothing is judged). */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "prov/mem/monitor.h"
#include "prov/mem/tests/reg_mock.h"

#define ROUNDS 200000

/* Of this thread: the machine may be busy otherwise. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double settle_ns(void)
{
	struct mem_monitor *m;
	double begin, end;

	if (mem_monitor_get(&m))
		return 0;
	begin = now();
	for (int i = 0; i < ROUNDS; i++)
		mem_monitor_settle(m);
	end = now();
	mem_monitor_put(m);
	return (end - begin) / ROUNDS;
}

/* count registrations of one page, every second page, looked up one after the other. */
static void measure(uint32_t count)
{
	struct mock mock = {0};
	const struct mem_regcache_attr attr = {.ops = &mock_ops,
					       .arg = &mock,
					       .max_count = count,
					       .max_size = UINT64_MAX / 2};
	size_t len = 2 * PAGE * count;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	struct mem_regcache *cache;
	double begin, missed, hit;
	struct mem_reg *reg;

	if (p == MAP_FAILED || mem_regcache_open(&attr, &cache))
		exit(1);
	if (!mem_regcache_keeps(cache)) {
		printf("no memory monitor here\n");
		exit(0);
	}
	memset(p, 1, len);
	begin = now();
	for (uint32_t i = 0; i < count; i++) {
		if (mem_regcache_get(cache, p + 2 * PAGE * i, 64, &reg))
			exit(1);
		mem_regcache_put(cache, reg);
	}
	missed = (now() - begin) / count;
	begin = now();
	for (uint32_t i = 0, at = 0; i < ROUNDS; i++, at = (at + 7) % count) {
		if (mem_regcache_get(cache, p + 2 * PAGE * at, 64, &reg))
			exit(1);
		mem_regcache_put(cache, reg);
	}
	hit = (now() - begin) / ROUNDS;
	printf("%8u %12.0f %12.0f\n", count, hit, missed);
	munmap(p, len);
	mem_regcache_close(cache);
}

int main(void)
{
	printf("one page each, get and put, ns of processor time\n");
	printf("%8s %12s %12s\n", "kept", "hit", "first time");
	measure(1);
	measure(64);
	measure(1024);
	measure(16384);
	printf("of each: asking the kernel whether mappings change: %.0f ns\n",
	       settle_ns());
	return 0;
}
