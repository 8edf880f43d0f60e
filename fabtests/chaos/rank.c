/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank: steps, each checked. Element 0 counts the contributors, element 1 has a bit
 * for each of them, so that all others can be known in full; and of each step all ranks
 * must have the same contributors.
 */
#include "config.h"

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fabtests/chaos/chaos.h"
#include "weft/weft.h"

enum { WARM_STEPS = 100, PAUSE_US = 1000, CALL_US = 120000000 };

/* What a rank contributes to an element of a step. */
static uint64_t part(int slot, uint64_t step, uint64_t i)
{
	uint64_t x = ((uint64_t)slot << 48) ^ step * 0x9e3779b97f4a7c15u ^ i;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static void fill(uint64_t *src, uint64_t count, int slot, uint64_t step)
{
	src[0] = 1;
	src[1] = UINT64_C(1) << slot;
	for (uint64_t i = 2; i < count; i++)
		src[i] = part(slot, step, i);
}

/* NULL, or what is wrong with the result. */
static const char *check(struct chaos *c, int slot, const uint64_t *dst,
			 const struct weft_ft_info *info)
{
	uint64_t mask = dst[1], none = 0;

	if ((uint64_t)__builtin_popcountll(mask) != dst[0])
		return "the bits of the contributors are not as many as they";
	if (!(mask & UINT64_C(1) << slot))
		return "this rank is not in the sum";
	if (dst[0] != info->contributors)
		return "there are not as many contributors as the library says";
	for (uint64_t i = 2; i < c->count; i++) {
		uint64_t want = 0;

		for (uint64_t m = mask; m; m &= m - 1)
			want += part(__builtin_ctzll(m), info->step, i);
		if (dst[i] != want)
			return "an element is wrong";
	}
	if (info->step >= CHAOS_STEPS)
		return "more steps than the table has room for";
	if (atomic_compare_exchange_strong(&c->mask[info->step], &none, mask))
		c->when[info->step] = chaos_clock_us();
	else if (none != mask)
		return "another rank has a sum of others";
	return NULL;
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static int64_t memory_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long all, resident = 0;

	if (file && fscanf(file, "%ld %ld", &all, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What malloc() gave out and did not get back; 0: this C library does not say. */
static int64_t heap_kib(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
	const struct mallinfo2 m = mallinfo2();

	return (int64_t)((m.uordblks + m.hblkhd) / 1024);
#else
	return 0;
#endif
}

static void look_at_memory(struct chaos_rank *me)
{
	if (me->steps % WARM_STEPS)
		return;
	me->memory_last = memory_kib();
	me->heap_last = heap_kib();
	me->files_last = open_files();
	if (!me->memory_first) {
		me->memory_first = me->memory_last;
		me->heap_first = me->heap_last;
		me->files_first = me->files_last;
	}
}

static void failed(struct chaos_rank *me, const char *what)
{
	snprintf(me->why, sizeof(me->why), "%s: %.250s", what, weft_error_detail());
	me->errors++;
}

/* Steps until the end, or until this rank is out. */
static void take_part(struct chaos *c, int slot, struct weft_ft *ft, uint64_t *src,
		      uint64_t *dst)
{
	struct chaos_rank *me = &c->rank[slot];
	struct weft_ft_info info = {.size = sizeof(info)};
	enum weft_result result = weft_ft_info(ft, &info);

	while (result == WEFT_SUCCESS && !c->end) {
		const char *wrong;

		fill(src, c->count, slot, info.step + 1);
		result = weft_ft_allreduce(ft, src, dst, c->count, WEFT_UINT64, WEFT_SUM,
					   0);
		if (result != WEFT_SUCCESS)
			break;
		result = weft_ft_info(ft, &info);
		wrong = check(c, slot, dst, &info);
		if (wrong) {
			snprintf(me->why, sizeof(me->why), "step %llu: %s",
				 (unsigned long long)info.step, wrong);
			me->wrong++;
		}
		me->step = info.step;
		me->steps++;
		if (info.step > c->last)
			c->last = info.step;
		look_at_memory(me);
		usleep(PAUSE_US);
	}
	if (result == WEFT_ERR_FENCED)
		me->fenced = 1;
	else if (result != WEFT_SUCCESS)
		failed(me, "weft_ft_allreduce");
	else if (weft_ft_leave(ft, CALL_US) == WEFT_SUCCESS)
		me->left = 1;
	else
		failed(me, "weft_ft_leave");
}

void chaos_rank_main(struct chaos *c, int slot)
{
	struct chaos_rank *me = &c->rank[slot];
	struct weft_ft_opts opts = WEFT_FT_OPTS_INIT;
	uint64_t *src = malloc(c->count * sizeof(*src));
	uint64_t *dst = malloc(c->count * sizeof(*dst));
	enum weft_result result;
	struct weft_ft *ft;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	opts.coordinator = c->address;
	opts.job = c->job;
	opts.sign = 1;
	opts.provider = c->provider;
	opts.timeout_us = CALL_US;
	opts.attempt_us = c->deadline_us;
	opts.chunk = 4096;
	if (!src || !dst)
		abort();
	result = weft_ft_open(&opts, &ft);
	if (result == WEFT_SUCCESS) {
		take_part(c, slot, ft, src, dst);
		weft_ft_close(ft);
	} else if (result == WEFT_ERR_FENCED) {
		me->fenced = 1;
	} else {
		failed(me, "weft_ft_open");
	}
	free(src);
	free(dst);
	exit(0);
}
