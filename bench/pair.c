/* SPDX-License-Identifier: BSD-2-Clause */
/* Two pinned processes with a shared page. See pair.h. */
#include "config.h"

#include "bench/pair.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/cpus.h"
#include "bench/say.h"

enum {
	RELAX_SPINS = 16384, /* between two looks at the clock */
	RELAX_WAIT_S = 60,
	LINE_BATCHES = 9,
	LINE_TRIPS = 400, /* round trips in a batch */
};

/* ---- the two processes ------------------------------------------------------------ */

static pid_t role_start(struct pair_shared *shared, int role, int cpu, pair_main *main,
			void *arg)
{
	struct pair p = {.shared = shared, .role = role};
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
#ifdef PR_SET_PTRACER
	/* Where the kernel restricts cross-memory attach to descendants. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
	if (!cpus_pin(cpu))
		bench_die("processor %d: %s; choose allowed ones with --cpus", cpu,
			  strerror(errno));
	main(&p, arg);
	exit(0);
}

/* True when both have ended well before the deadline. */
static bool both_end(pid_t pid[2], uint64_t deadline)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	int left = 2, status;

	while (left > 0) {
		for (int i = 0; i < 2; i++) {
			if (pid[i] <= 0 || waitpid(pid[i], &status, WNOHANG) != pid[i])
				continue;
			pid[i] = 0;
			left--;
			if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
				return false;
		}
		if (left > 0 && bench_now_ns() > deadline) {
			bench_say("the two processes have not ended in time");
			return false;
		}
		if (left > 0)
			nanosleep(&pause, NULL);
	}
	return true;
}

int pair_run(const int cpu[2], unsigned seconds, pair_main *main, void *arg)
{
	struct pair_shared *shared;
	pid_t pid[2] = {0, 0};
	bool good;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		bench_die("no shared page: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		pid[i] = role_start(shared, i, cpu[i], main, arg);
	good = pid[0] > 0 && pid[1] > 0;
	if (!good)
		bench_say("fork: %s", strerror(errno));
	if (good)
		good = both_end(pid, bench_now_ns() + (uint64_t)seconds * 1000000000);
	for (int i = 0; i < 2; i++) {
		if (pid[i] <= 0)
			continue;
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	munmap(shared, sizeof(*shared));
	return good ? 0 : 1;
}

/* ---- meeting ---------------------------------------------------------------------- */

void pair_relax(uint32_t *spins, uint64_t *since)
{
	uint64_t now;

	if (++*spins % RELAX_SPINS != 0)
		return;
	now = bench_now_ns();
	if (*spins == RELAX_SPINS)
		*since = now;
	else if (now - *since > (uint64_t)RELAX_WAIT_S * 1000000000)
		bench_die("no answer from the other process for %d s", RELAX_WAIT_S);
	sched_yield();
}

void pair_meet(struct pair *p)
{
	struct pair_shared *s = p->shared;
	uint32_t spins = 0, mine = ++p->meetings;
	uint64_t since = 0;

	atomic_store_explicit(&s->met[p->role], mine, memory_order_release);
	while (atomic_load_explicit(&s->met[1 - p->role], memory_order_acquire) < mine) {
		pair_relax(&spins, &since);
		if (p->meanwhile)
			p->meanwhile(p->arg);
	}
}

void pair_exchange(struct pair *p, const void *mine, void *others, size_t len)
{
	if (len > PAIR_CARD_MAX)
		bench_die("a card of %zu bytes: at most %d", len, PAIR_CARD_MAX);
	memcpy(p->shared->card[p->role], mine, len);
	pair_meet(p);
	memcpy(others, p->shared->card[1 - p->role], len);
	pair_meet(p);
}

uint64_t pair_tell(struct pair *p, uint64_t value)
{
	if (p->role == 0)
		atomic_store_explicit(&p->shared->word, value, memory_order_relaxed);
	pair_meet(p);
	value = atomic_load_explicit(&p->shared->word, memory_order_relaxed);
	pair_meet(p);
	return value;
}

/* ---- the line --------------------------------------------------------------------- */

static void line_await(struct pair_shared *s, uint32_t turn)
{
	uint32_t spins = 0;
	uint64_t since = 0;

	while (atomic_load_explicit(&s->line, memory_order_acquire) != turn)
		pair_relax(&spins, &since);
}

/* LINE_TRIPS round trips; ns. The line holds odd numbers on the way to role 1. */
static uint64_t line_batch(struct pair *p)
{
	uint64_t begin = bench_now_ns();

	for (int i = 0; i < LINE_TRIPS; i++) {
		uint32_t turn = p->line_turn;

		if (p->role == 0) {
			atomic_store_explicit(&p->shared->line, turn + 1,
					      memory_order_release);
			line_await(p->shared, turn + 2);
		} else {
			line_await(p->shared, turn + 1);
			atomic_store_explicit(&p->shared->line, turn + 2,
					      memory_order_release);
		}
		p->line_turn += 2;
	}
	return bench_now_ns() - begin;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double pair_line_ns(struct pair *p)
{
	uint64_t took[LINE_BATCHES];

	pair_meet(p);
	for (int i = 0; i < LINE_BATCHES; i++)
		took[i] = line_batch(p);
	qsort(took, LINE_BATCHES, sizeof(took[0]), by_value);
	return p->role == 0 ? (double)took[LINE_BATCHES / 2] / LINE_TRIPS / 2 : 0;
}
