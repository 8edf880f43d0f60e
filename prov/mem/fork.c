/* SPDX-License-Identifier: BSD-2-Clause */
/* What a forked child gets; see fork.h. */
#include "config.h"

#include "prov/mem/fork.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* How long a fork waits for all locks together: a busy machine may let their holders wait
 * for a while. Whoever forks in a signal handler may have interrupted a holder, which
 * never lets go meanwhile: then the child keeps what it got. */
#define FORK_TRIES  5000
#define FORK_NAP_NS 1000000

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list fork_users = {&fork_users, &fork_users};
static bool fork_held;
static _Atomic(uint32_t) generation;

/* Of the tries that are left to this fork. */
static bool lock_patiently(pthread_mutex_t *lock, int *tries)
{
	const struct timespec nap = {.tv_nsec = FORK_NAP_NS};

	while (pthread_mutex_trylock(lock) != 0) {
		if (*tries <= 0)
			return false;
		--*tries;
		nanosleep(&nap, NULL);
	}
	return true;
}

static void fork_prepare(void)
{
	int tries = FORK_TRIES;

	fork_held = lock_patiently(&fork_lock, &tries);
	if (!fork_held)
		return;
	list_foreach (n, &fork_users) {
		struct mem_fork *f = container_of(n, struct mem_fork, node);

		f->held = lock_patiently(f->lock, &tries);
	}
}

static void fork_release(void)
{
	list_foreach (n, &fork_users) {
		struct mem_fork *f = container_of(n, struct mem_fork, node);

		if (f->held)
			pthread_mutex_unlock(f->lock);
	}
	pthread_mutex_unlock(&fork_lock);
}

static void fork_parent(void)
{
	if (fork_held)
		fork_release();
}

static void fork_child(void)
{
	struct list *n;

	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
	if (!fork_held) {
		pthread_mutex_init(&fork_lock, NULL);
		list_init(&fork_users); /* may be half done */
		return;
	}
	list_foreach (at, &fork_users) {
		struct mem_fork *f = container_of(at, struct mem_fork, node);

		if (f->held)
			f->child(f);
	}
	fork_release();
	/* None of them is anything to this process's own children. */
	while ((n = list_pop_front(&fork_users)))
		;
}

static void fork_init(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

uint32_t mem_fork_generation(void)
{
	pthread_once(&fork_once, fork_init);
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

void mem_fork_enter(struct mem_fork *f)
{
	pthread_once(&fork_once, fork_init);
	pthread_mutex_lock(&fork_lock);
	list_push_back(&fork_users, &f->node);
	pthread_mutex_unlock(&fork_lock);
}

void mem_fork_leave(struct mem_fork *f)
{
	pthread_mutex_lock(&fork_lock);
	list_remove(&f->node);
	pthread_mutex_unlock(&fork_lock);
}

void mem_fork_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void mem_fork_cover(void *at, size_t len)
{
	if (at)
		mmap(at, len, PROT_READ | PROT_WRITE,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
