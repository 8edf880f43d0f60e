/* SPDX-License-Identifier: BSD-2-Clause */
/* See ranks.h. */
#include "config.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coll/tests/ranks.h"

/* Times what a test asks for: its time is against hangs only, and machines are busy. */
#define PATIENCE 4

#define RANKS_GATHER_S	60
#define RANKS_PARTS_MAX 16

struct ranks_shared {
	_Atomic uint32_t arrived;
	_Atomic uint32_t round;
	_Atomic int32_t marks;
	_Atomic int end[RANKS_MAX]; /* of a part: 0 before it, else 1 + enum ranks_end */
	uint8_t card[2][RANKS_MAX][RANKS_CARD]; /* by parity of the round */
};

static double ranks_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void ranks_nap(long us)
{
	const struct timespec nap = {.tv_nsec = us * 1000};

	nanosleep(&nap, NULL);
}

static bool ranks_gather_once(struct ranks *r, const void *in, void *out, size_t len)
{
	struct ranks_shared *s = r->shared;
	const uint32_t round = atomic_load(&s->round);
	const double end = ranks_clock() + RANKS_GATHER_S;

	if (len)
		memcpy(s->card[round % 2][r->rank], in, len);
	if (atomic_fetch_add(&s->arrived, 1) + 1 == (uint32_t)r->size) {
		atomic_store(&s->arrived, 0);
		atomic_store(&s->round, round + 1);
	}
	while (atomic_load(&s->round) == round) {
		if (ranks_clock() > end)
			return false;
		ranks_nap(200);
	}
	for (int32_t i = 0; i < r->size && len; i++)
		memcpy((char *)out + (size_t)i * len, s->card[round % 2][i], len);
	return true;
}

bool ranks_gather(struct ranks *r, const void *in, void *out, size_t len)
{
	char block[RANKS_MAX * RANKS_CARD];
	size_t at = 0;

	if (len == 0)
		return ranks_gather_once(r, NULL, NULL, 0);
	do {
		const size_t part = len - at < RANKS_CARD ? len - at : RANKS_CARD;

		if (!ranks_gather_once(r, (const char *)in + at, block, part))
			return false;
		for (int32_t i = 0; i < r->size && part; i++)
			memcpy((char *)out + (size_t)i * len + at,
			       block + (size_t)i * part, part);
		at += part;
	} while (at < len);
	return true;
}

bool ranks_barrier(struct ranks *r)
{
	return ranks_gather(r, NULL, NULL, 0);
}

void ranks_mark(struct ranks *r)
{
	atomic_fetch_add(&r->shared->marks, 1);
}

int32_t ranks_marks(const struct ranks *r)
{
	return atomic_load(&r->shared->marks);
}

static int ranks_boot(void *arg, const void *in, void *out, size_t len,
		      int64_t timeout_us)
{
	(void)timeout_us;
	return ranks_gather(arg, in, out, len) ? 0 : 1;
}

static struct ranks *ranks_join(struct ranks *r, int32_t rank, int32_t size, void *arg,
				struct ranks_shared *shared)
{
	*r = (struct ranks){.rank = rank, .size = size, .arg = arg, .shared = shared};
	r->boot = (struct weft_boot_callbacks){
		.rank = rank, .size = size, .arg = r, .allgather = ranks_boot};
	return r;
}

static void ranks_child(int32_t rank, int32_t size, int (*body)(struct ranks *r),
			void *arg, struct ranks_shared *shared)
{
	struct ranks r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	exit(body(ranks_join(&r, rank, size, arg, shared)));
}

/* What libfabric's shm provider leaves of a process that could not close: the last is the
 * number of the endpoint in it. */
static void ranks_sweep(pid_t pid)
{
	char name[64];

	for (int i = 0; i < RANKS_PARTS_MAX; i++) {
		snprintf(name, sizeof(name), "/%d:0:%d", (int)pid, i);
		shm_unlink(name);
	}
}

/* Waits for the children; kills what is left when the time is over. */
static bool ranks_wait(int32_t size, const pid_t pid[], double end_at, int end[RANKS_MAX])
{
	int32_t left = size;
	bool good = true, over = false;

	while (left) {
		int status;
		pid_t one = waitpid(-1, &status, WNOHANG);

		if (one == 0) {
			if (!over && ranks_clock() > end_at) {
				over = true;
				printf("# time is over: killing the ranks left\n");
				for (int32_t i = 0; i < size; i++) {
					if (end[i] == -2)
						kill(pid[i], SIGKILL);
				}
			}
			ranks_nap(2000);
			continue;
		}
		for (int32_t i = 0; i < size; i++) {
			if (pid[i] != one)
				continue;
			end[i] = WIFEXITED(status) ? WEXITSTATUS(status) : RANKS_KILLED;
			if (WIFSIGNALED(status))
				printf("# rank %d ended by signal %d\n", i,
				       WTERMSIG(status));
			good = good && end[i] == RANKS_GOOD;
			ranks_sweep(one);
			left--;
		}
	}
	return good;
}

bool ranks_run(int32_t size, int timeout_s, int (*body)(struct ranks *r), void *arg,
	       int end[RANKS_MAX])
{
	struct ranks_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[RANKS_MAX];
	bool good;

	if (shared == MAP_FAILED || size > RANKS_MAX)
		return false;
	fflush(stdout);
	for (int32_t i = 0; i < size; i++) {
		end[i] = -2; /* running */
		pid[i] = fork();
		if (pid[i] == 0)
			ranks_child(i, size, body, arg, shared);
		if (pid[i] < 0) {
			printf("# fork failed\n");
			exit(99);
		}
	}
	good = ranks_wait(size, pid, ranks_clock() + PATIENCE * timeout_s, end);
	munmap(shared, sizeof(*shared));
	return good;
}

/* What ranks_parts() has its processes run. */
struct ranks_list {
	const struct ranks_part *part;
	int count;
	int (*body)(struct ranks *r);
	void *arg;
	struct ranks_shared *shared; /* one for each part */
};

static bool part_failed(const struct ranks_list *list, int part)
{
	const struct ranks_part *p = &list->part[part];

	for (int32_t i = 0; i < p->size; i++) {
		if (atomic_load(&list->shared[part].end[i]) > 1 + RANKS_GOOD)
			return true;
	}
	return false;
}

static bool part_good(const struct ranks_list *list, int part)
{
	const struct ranks_part *p = &list->part[part];

	for (int32_t i = 0; i < p->size; i++) {
		if (i != p->dies &&
		    atomic_load(&list->shared[part].end[i]) != 1 + RANKS_GOOD)
			return false;
	}
	return true;
}

static int ranks_list_body(struct ranks *r)
{
	const struct ranks_list *list = r->arg;

	for (int p = 0; p < list->count; p++) {
		struct ranks own;
		int end;

		if (p && part_failed(list, p - 1))
			return RANKS_BAD;
		if (r->rank >= list->part[p].size)
			continue;
		ranks_join(&own, r->rank, list->part[p].size, list->arg,
			   &list->shared[p]);
		own.part = p;
		end = list->body(&own);
		atomic_store(&list->shared[p].end[r->rank], 1 + end);
		if (end != RANKS_GOOD)
			return end;
	}
	return RANKS_GOOD;
}

bool ranks_parts(const struct ranks_part *part, int count, int timeout_s,
		 int (*body)(struct ranks *r), void *arg, bool good[])
{
	const size_t len = (size_t)count * sizeof(struct ranks_shared);
	struct ranks_list list = {.part = part, .count = count, .body = body, .arg = arg};
	int32_t size = 0;
	int end[RANKS_MAX];
	bool absent;

	list.shared = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			   -1, 0);
	if (list.shared == MAP_FAILED || count > RANKS_PARTS_MAX) {
		printf("# no memory for %d parts, or too many\n", count);
		exit(99);
	}
	for (int p = 0; p < count; p++)
		size = part[p].size > size ? part[p].size : size;
	ranks_run(size, timeout_s, ranks_list_body, &list, end);
	absent = atomic_load(&list.shared[0].end[0]) == 1 + RANKS_ABSENT;
	for (int p = 0; p < count; p++)
		good[p] = part_good(&list, p);
	munmap(list.shared, len);
	return !absent;
}

int ranks_say(const struct ranks *r, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("# [rank %d] %s\n", r->rank, text);
	fflush(stdout);
	return RANKS_BAD;
}

int ranks_open(struct ranks *r, const char *provider, int64_t timeout_us,
	       struct weft_ctx **ctx)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	const char *wire = provider ? strchr(provider, '+') : NULL;
	enum weft_result result;
	char name[32];

	if (wire) {
		snprintf(name, sizeof(name), "%.*s", (int)(wire - provider), provider);
		provider = name;
		setenv("FI_WEFT_WIRE", wire + 1, 1);
		setenv("FI_WEFT_SHM", "0", 1);
	}
	opts.provider = provider;
	opts.timeout_us = timeout_us;
	opts.boot = &r->boot;
	result = weft_ctx_open(&opts, ctx);
	if (result == WEFT_ERR_PROVIDER && strstr(weft_error_detail(), "no libfabric"))
		return RANKS_ABSENT;
	if (result != WEFT_SUCCESS)
		return ranks_say(r, "open: %s", weft_error_detail());
	return RANKS_GOOD;
}

int ranks_providers(const char *fallback, char names[][32], int max)
{
	const char *list = getenv("WEFT_TEST_PROVIDER");
	char copy[256];
	char *save = NULL;
	int count = 0;

	snprintf(copy, sizeof(copy), "%s", list && *list ? list : fallback);
	for (char *name = strtok_r(copy, ", ", &save); name && count < max;
	     name = strtok_r(NULL, ", ", &save))
		snprintf(names[count++], 32, "%s", name);
	return count;
}
