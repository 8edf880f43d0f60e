/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory monitor; see monitor.h. */
#include "config.h"

#include "prov/mem/monitor.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/fork.h"
#include "prov/mem/params.h"

#define READ_MOST 32
#define SETTLE_NS 1000000000ull
#define TRIAL_NS  10000000000ull

struct mem_monitor {
	pthread_mutex_t lock; /* the list, reading, watching */
	int refs;	      /* begin_lock */
	int fd, stop;
	struct list watchers;
	int watching; /* between watch and watched */
	pthread_t thread;
	struct mem_fork fork;
};

/* One that begins or ends. */
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mem_monitor monitor = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .stop = -1};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- reading
 * ------------------------------------------------------------------------------ */

/* With all locks held from before the news is read until it was told: who waits for it in
 * a system call, and whoever gets the same addresses then, comes after that. */
static void drain(struct mem_monitor *m)
{
	struct mem_range gone[READ_MOST];
	int count;

	pthread_mutex_lock(&m->lock);
	list_foreach (n, &m->watchers)
		pthread_mutex_lock(container_of(n, struct mem_watcher, node)->lock);
	while ((count = mem_uffd_read(m->fd, gone, READ_MOST)) > 0) {
		list_foreach (n, &m->watchers) {
			struct mem_watcher *w = container_of(n, struct mem_watcher, node);

			for (int i = 0; i < count; i++)
				w->gone(w, gone[i]);
		}
	}
	list_foreach (n, &m->watchers)
		pthread_mutex_unlock(container_of(n, struct mem_watcher, node)->lock);
	pthread_mutex_unlock(&m->lock);
}

bool mem_monitor_settle(struct mem_monitor *m)
{
	return __builtin_expect(!mem_uffd_is_changing(m->fd), 1) ||
	       mem_monitor_settle_slow(m);
}

bool mem_monitor_settle_slow(struct mem_monitor *m)
{
	uint64_t deadline = now_ns() + SETTLE_NS;

	for (;;) {
		drain(m);
		if (!mem_uffd_is_changing(m->fd))
			return true;
		if (now_ns() > deadline)
			return false;
		sched_yield(); /* it has begun, but is not told yet */
	}
}

static void *run(void *arg)
{
	struct mem_monitor *m = arg;
	struct pollfd p[2] = {{.fd = m->fd, .events = POLLIN},
			      {.fd = m->stop, .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents)
			return NULL;
		drain(m);
	}
}

/* ---- watching
 * ----------------------------------------------------------------------------- */

void mem_monitor_enter(struct mem_monitor *m, struct mem_watcher *w)
{
	pthread_mutex_lock(&m->lock);
	list_push_back(&m->watchers, &w->node);
	pthread_mutex_unlock(&m->lock);
}

void mem_monitor_leave(struct mem_monitor *m, struct mem_watcher *w)
{
	pthread_mutex_lock(&m->lock);
	list_remove(&w->node);
	pthread_mutex_unlock(&m->lock);
}

bool mem_monitor_watch(struct mem_monitor *m, struct mem_range r)
{
	bool can;

	pthread_mutex_lock(&m->lock);
	m->watching++;
	can = mem_uffd_watch(m->fd, r);
	pthread_mutex_unlock(&m->lock);
	return can;
}

void mem_monitor_watched(struct mem_monitor *m)
{
	pthread_mutex_lock(&m->lock);
	m->watching--;
	pthread_mutex_unlock(&m->lock);
}

static bool anybody_has(struct mem_monitor *m, struct mem_range r)
{
	bool has = false;

	list_foreach (n, &m->watchers) {
		struct mem_watcher *w = container_of(n, struct mem_watcher, node);

		pthread_mutex_lock(w->lock);
		has = has || w->has(w, r);
		pthread_mutex_unlock(w->lock);
	}
	return has;
}

/* Only to spare the kernel the news: what stays watched does no harm. */
void mem_monitor_unwatch(struct mem_monitor *m, struct mem_range r)
{
	pthread_mutex_lock(&m->lock);
	if (m->watching == 0 && !anybody_has(m, r))
		mem_uffd_unwatch(m->fd, r);
	pthread_mutex_unlock(&m->lock);
}

/* ---- life
 * ------------------------------------------------------------------------------ */

/* A page that is unmapped while nobody reads: is it told that something changes? */
struct trial {
	void *page;
	size_t len;
	atomic_bool over;
};

static void *trial_run(void *arg)
{
	struct trial *t = arg;

	munmap(t->page, t->len);
	atomic_store(&t->over, true);
	return NULL;
}

static bool tells_in_time(struct mem_monitor *m)
{
	struct trial t = {.len = (size_t)sysconf(_SC_PAGESIZE)};
	struct pollfd news = {.fd = m->fd, .events = POLLIN};
	uint64_t deadline = now_ns() + TRIAL_NS;
	pthread_t thread;
	bool seen;

	t.page = mmap(NULL, t.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (t.page == MAP_FAILED)
		return false;
	if (!mem_uffd_watch(m->fd, (struct mem_range){(uintptr_t)t.page,
						      (uintptr_t)t.page + t.len}) ||
	    mem_uffd_is_changing(m->fd) ||
	    pthread_create(&thread, NULL, trial_run, &t) != 0) {
		munmap(t.page, t.len);
		return false;
	}
	/* Once there is news that nobody has read, the change must be told of. Until then
	 * the thread may only not have had its turn. */
	while (poll(&news, 1, 1) <= 0 && !atomic_load(&t.over) && now_ns() < deadline)
		;
	seen = mem_uffd_is_changing(m->fd);
	while (!atomic_load(&t.over)) {
		drain(m);
		sched_yield();
	}
	pthread_join(thread, NULL);
	return seen && !mem_uffd_is_changing(m->fd);
}

/* The thread isn't there in a child, and the descriptor is about the parent's memory. */
static void forked(struct mem_fork *f)
{
	struct mem_monitor *m = container_of(f, struct mem_monitor, fork);

	mem_fork_close(&m->fd);
	mem_fork_close(&m->stop);
	m->refs = 0;
	m->watching = 0;
	list_init(&m->watchers);
}

static void closed(struct mem_monitor *m)
{
	mem_fork_close(&m->fd);
	mem_fork_close(&m->stop);
}

/* No signal of the application is ever handled on this thread: a handler that gives
 * memory back would wait for the thread that it runs on. */
static int spawn(struct mem_monitor *m)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&m->thread, NULL, run, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int begin(struct mem_monitor *m, const char **why)
{
	int rc = mem_uffd_open(&m->fd, why);

	if (rc)
		return rc;
	list_init(&m->watchers);
	m->watching = 0;
	m->stop = eventfd(0, EFD_CLOEXEC);
	if (m->stop < 0) {
		*why = "no descriptor is left";
		closed(m);
		return -FI_EMFILE;
	}
	if (!tells_in_time(m)) {
		*why = "the kernel does not say in time that mappings change";
		closed(m);
		return -FI_ENOSYS;
	}
	m->fork.lock = &m->lock;
	m->fork.child = forked;
	mem_fork_enter(&m->fork);
	if (spawn(m) != 0) {
		mem_fork_leave(&m->fork);
		*why = "no thread can be made";
		closed(m);
		return -FI_ENOMEM;
	}
	return 0;
}

/* Louder when it was asked for by name. */
static void say(int rc, const char *why)
{
	enum fi_log_level level =
		prov_params()->mr_cache_monitor == PROV_MONITOR_USERFAULTFD ? FI_LOG_WARN
									    : FI_LOG_INFO;

	if (rc)
		FI_LOG(&weft_provider, level, FI_LOG_MR,
		       "no memory monitor: %s; memory is registered for each "
		       "operation\n",
		       why);
	else
		FI_INFO(&weft_provider, FI_LOG_MR, "memory monitor: userfaultfd\n");
}

int mem_monitor_get(struct mem_monitor **out)
{
	struct mem_monitor *m = &monitor;
	const char *why = "FI_WEFT_MR_CACHE_MONITOR=disabled";
	int rc = 0;

	pthread_mutex_lock(&begin_lock);
	if (m->refs == 0) {
		rc = prov_params()->mr_cache_monitor == PROV_MONITOR_DISABLED
			     ? -FI_ENOSYS
			     : begin(m, &why);
		say(rc, why);
	}
	if (!rc) {
		m->refs++;
		*out = m;
	}
	pthread_mutex_unlock(&begin_lock);
	return rc;
}

void mem_monitor_put(struct mem_monitor *m)
{
	uint64_t one = 1;

	pthread_mutex_lock(&begin_lock);
	if (m->refs > 0 && --m->refs == 0) {
		/* It can't fail: the count is far from full. */
		if (write(m->stop, &one, sizeof(one)) == (ssize_t)sizeof(one))
			pthread_join(m->thread, NULL);
		mem_fork_leave(&m->fork);
		closed(m);
	}
	pthread_mutex_unlock(&begin_lock);
}
