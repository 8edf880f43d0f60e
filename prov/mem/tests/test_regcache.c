/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of registrations: what it keeps and gives up, and that a registration of
 * memory that is gone is never given out again, however it went and whoever has its
 * addresses now. Last, a random history against a model.
 */
#include "config.h"

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "prov/mem/tests/reg_mock.h"
#include "util/tap.h"
#include "util/tap_fork.h"

static struct mem_regcache *cache;
static struct mock mock;
static bool keeps;

static void begin_with(uint32_t count, uint64_t size, bool no_monitor)
{
	const struct mem_regcache_attr attr = {.ops = &mock_ops,
					       .arg = &mock,
					       .max_count = count,
					       .max_size = size,
					       .no_monitor = no_monitor};

	memset(&mock, 0, sizeof(mock));
	if (mem_regcache_open(&attr, &cache))
		tap_bail("no cache");
}

static void begin(void)
{
	begin_with(64, 64 << 20, false);
}

static void end(void)
{
	mem_regcache_close(cache);
	tap_is_int(atomic_load(&mock.made), atomic_load(&mock.dropped),
		   "all that was registered is dropped, once");
}

static struct mem_regcache_stats stats(void)
{
	struct mem_regcache_stats s;

	mem_regcache_stats(cache, &s);
	return s;
}

/* Where the kernel puts nothing by itself, so that holes stay holes; and where
 * ThreadSanitizer allows memory. */
#ifdef __SANITIZE_THREAD__
#define FAR_AWAY UINT64_C(0x7e9000000000)
#else
#define FAR_AWAY UINT64_C(0x200000000000)
#endif

static void *far_away(size_t len)
{
	static uintptr_t next = FAR_AWAY;

	next += len + 64 * PAGE;
	return (void *)(next - len);
}

static void *map_at(void *at, size_t len)
{
	void *p =
		mmap(at ? at : far_away(len), len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (p == MAP_FAILED || (at && p != at))
		tap_bail("no memory at %p", at);
	stamp(p, len);
	return p;
}

static struct mem_reg *get(const void *at, size_t len)
{
	struct mem_reg *reg;
	int rc = mem_regcache_get(cache, at, len, &reg);

	if (rc)
		tap_bail("get: %d", rc);
	return reg;
}

/* Whether it was made for this, and is of the memory as it is. */
static bool is_new(const void *at, size_t len)
{
	int made = atomic_load(&mock.made);
	struct mem_reg *reg = get(at, len);
	bool true_of = is_true_of(reg, at, len);

	mem_regcache_put(cache, reg);
	return true_of && atomic_load(&mock.made) == made + 1;
}

static bool is_kept(const void *at, size_t len)
{
	int made = atomic_load(&mock.made);
	struct mem_reg *reg = get(at, len);
	bool true_of = is_true_of(reg, at, len);

	mem_regcache_put(cache, reg);
	return true_of && atomic_load(&mock.made) == made;
}

/* ---- what is kept */

static void test_keeping(void)
{
	struct mem_reg *a, *b;
	char *p;

	begin();
	p = map_at(NULL, 16 * PAGE);
	tap_ok(is_new(p, 100), "the first time");
	tap_ok(is_kept(p, 100), "the second");
	tap_ok(is_kept(p + 4000, 96), "part of its page");
	tap_ok(is_new(p + 4000, 97), "a byte of the next");
	tap_is_int(stats().count, 1, "both are one now");
	tap_ok(is_kept(p, 2 * PAGE), "which covers both");
	a = get(p + PAGE, PAGE);
	tap_ok(is_new(p, 4 * PAGE), "more, while it is in use");
	tap_ok(is_true_of(a, p + PAGE, PAGE), "whoever uses the old one has it");
	tap_is_int(atomic_load(&mock.dropped), 1, "so it is not dropped");
	mem_regcache_put(cache, a);
	tap_is_int(atomic_load(&mock.dropped), 2, "until it is put");
	a = get(p, PAGE);
	b = get(p, PAGE);
	tap_ok(a == b, "two users of one");
	mem_regcache_flush(cache);
	tap_is_int(stats().count, 1, "what is in use is not flushed");
	mem_regcache_put(cache, a);
	mem_regcache_flush(cache);
	tap_is_int(stats().count, 1, "by neither of them");
	mem_regcache_put(cache, b);
	mem_regcache_flush(cache);
	tap_is_int(stats().count, 0, "what is idle is");
	get(p, PAGE); /* and is left for the end, as an endpoint does that closes early */
	get(p + 8 * PAGE, PAGE);
	tap_is_int(mem_regcache_get(cache, p, 0, &a), -FI_EINVAL, "nothing");
	tap_is_int(mem_regcache_get(cache, (void *)(UINTPTR_MAX - 10), 20, &a),
		   -FI_EINVAL, "round the end of memory");
	tap_is_int(mem_regcache_get(cache, (void *)(UINTPTR_MAX - 10), 5, &a), -FI_EINVAL,
		   "its last page");
	munmap(p, 16 * PAGE);
	tap_is_int(mem_regcache_get(cache, p, 100, &a), -FI_EFAULT,
		   "what the wire refuses");
	tap_is_int(stats().count, 0, "is not kept");
	end();
}

static void test_limits(void)
{
	struct mem_reg *held[4];
	char *p = map_at(NULL, 64 * PAGE);

	begin_with(4, 64 << 20, false);
	for (int i = 0; i < 4; i++)
		tap_ok(is_new(p + 4 * i * (int)PAGE, PAGE), "number %d", i);
	tap_ok(is_kept(p, PAGE), "the first is used again");
	tap_ok(is_new(p + 40 * PAGE, PAGE), "a fifth");
	tap_ok(is_kept(p, PAGE), "leaves the one that was used");
	tap_ok(is_new(p + 4 * PAGE, PAGE), "and takes the place of the oldest");
	tap_is_int(stats().count, 4, "never more than the limit");
	tap_is_int((int64_t)stats().evicted, 2, "the rest had to go");
	mem_regcache_flush(cache);
	for (int i = 0; i < 4; i++)
		held[i] = get(p + 4 * i * (int)PAGE, PAGE);
	tap_ok(is_new(p + 40 * PAGE, PAGE) && is_new(p + 40 * PAGE, PAGE),
	       "where all are in use nothing more is kept");
	tap_is_int((int64_t)stats().uncached, 2, "and that is counted");
	for (int i = 0; i < 4; i++) {
		tap_ok(is_true_of(held[i], p + 4 * i * (int)PAGE, PAGE), "in use: %d", i);
		mem_regcache_put(cache, held[i]);
	}
	end();
	begin_with(100, 8 * PAGE, false);
	is_new(p, 3 * PAGE);
	is_new(p + 8 * PAGE, 3 * PAGE);
	tap_ok(is_kept(p, 3 * PAGE), "two that fit");
	is_new(p + 16 * PAGE, 3 * PAGE);
	tap_ok(is_new(p + 8 * PAGE, 3 * PAGE), "a third needs the room of one");
	tap_is_int((int64_t)stats().size, 6 * (int64_t)PAGE, "bytes are counted");
	tap_ok(is_new(p, 9 * PAGE) && is_new(p, 9 * PAGE), "more than all the room");
	tap_is_int((int64_t)stats().size, 6 * (int64_t)PAGE, "drives nothing out");
	atomic_store(&mock.fail, 1);
	tap_ok(is_new(p + 40 * PAGE, PAGE), "a wire that has no room any more");
	tap_is_int(stats().count, 1, "gets that of all that is idle");
	end();
	munmap(p, 64 * PAGE);
}

static void test_without(void)
{
	char *p = map_at(NULL, PAGE);

	begin_with(64, 64 << 20, true);
	tap_ok(!mem_regcache_keeps(cache), "no monitor");
	tap_ok(is_new(p, PAGE) && is_new(p, PAGE), "nothing is kept");
	tap_is_int(atomic_load(&mock.dropped), 2, "each is dropped when it is put");
	end();
	begin_with(0, 0, false);
	tap_ok(is_new(p, PAGE) && is_new(p, PAGE), "no room at all");
	end();
	munmap(p, PAGE);
}

/* No descriptor is left for a monitor: as if there could be none. */
static void test_no_descriptor(void)
{
	struct rlimit old, none;
	char *p = map_at(NULL, PAGE);
	int fd = dup(2);

	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = (rlim_t)fd; /* the lowest that is free */
	close(fd);
	setrlimit(RLIMIT_NOFILE, &none);
	begin();
	setrlimit(RLIMIT_NOFILE, &old);
	tap_ok(!mem_regcache_keeps(cache), "no descriptor: no monitor");
	tap_ok(is_new(p, PAGE) && is_new(p, PAGE), "registered for each use");
	end();
	begin();
	tap_ok(mem_regcache_keeps(cache) && is_new(p, PAGE) && is_kept(p, PAGE),
	       "and with descriptors again");
	end();
	munmap(p, PAGE);
}

/* A registration that takes a while, of memory that goes meanwhile. */
static int slow_add(void *arg, void *start, size_t len, void **handle)
{
	int rc = mock_add(arg, start, len, handle);

	if (!rc && atomic_exchange(&mock.remap, 0)) {
		munmap(start, len);
		map_at(start, len);
	}
	return rc;
}

static void test_gone_meanwhile(void)
{
	static const struct mem_reg_ops ops = {.add = slow_add, .drop = mock_drop};
	const struct mem_regcache_attr attr = {
		.ops = &ops, .arg = &mock, .max_count = 8, .max_size = 1 << 20};
	char *p = map_at(NULL, 2 * PAGE), *far = map_at(NULL, PAGE);
	struct mem_reg *reg;

	memset(&mock, 0, sizeof(mock));
	if (mem_regcache_open(&attr, &cache))
		tap_bail("no cache");
	is_new(far, PAGE);
	atomic_store(&mock.remap, 1);
	reg = get(p, 2 * PAGE);
	tap_ok(!is_true_of(reg, p, 2 * PAGE), "gone while it was registered");
	mem_regcache_put(cache, reg);
	tap_ok(is_new(p, 2 * PAGE), "it is not given out again");
	tap_ok(is_kept(p, 2 * PAGE) && is_kept(far, PAGE), "others are");
	end();
	munmap(p, 2 * PAGE);
	munmap(far, PAGE);
}

/* ---- how memory goes */

static void test_gone(void)
{
	struct mem_reg *used;
	char *p, *q;
	void *at;
	int fd;

	begin();
	p = map_at(NULL, 8 * PAGE);
	is_new(p, 8 * PAGE);
	munmap(p, 8 * PAGE);
	map_at(p, 8 * PAGE);
	tap_ok(is_new(p, 8 * PAGE), "unmapped, and other memory there");
	tap_is_int((int64_t)stats().gone, 1, "is counted");
	used = get(p, PAGE);
	munmap(p + 3 * PAGE, PAGE);
	map_at(p + 3 * PAGE, PAGE);
	tap_ok(is_new(p, 8 * PAGE), "a page in the middle, while it is in use");
	tap_is_int(atomic_load(&mock.dropped), 1, "which is not dropped yet");
	mem_regcache_put(cache, used);
	tap_is_int(atomic_load(&mock.dropped), 2, "but is now");
	at = mmap(p, 2 * PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	stamp(at, 2 * PAGE);
	tap_ok(is_new(p + PAGE, PAGE), "mapped over");

	/* One mapping again: only such is moved. */
	munmap(p, 8 * PAGE);
	p = map_at(NULL, 8 * PAGE);
	q = map_at(NULL, 8 * PAGE);
	is_new(p, 8 * PAGE);
	is_new(q, 8 * PAGE);
	at = mremap(p, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q);
	tap_ok(at == q, "moved onto what was registered");
	map_at(p, 8 * PAGE);
	tap_ok(is_new(p, 8 * PAGE), "other memory where it was");
	tap_ok(is_new(q, 8 * PAGE), "and what was there is not known");
	at = mremap(q, 8 * PAGE, 6 * PAGE, 0);
	map_at(q + 6 * PAGE, 2 * PAGE);
	tap_ok(at == q && is_new(q, 8 * PAGE), "made shorter");
	munmap(q, 8 * PAGE);

	is_new(p + 4 * PAGE, 4 * PAGE);
	madvise(p + 4 * PAGE, 4 * PAGE, MADV_DONTNEED);
	stamp(p + 4 * PAGE, 4 * PAGE);
	tap_ok(is_new(p + 4 * PAGE, 4 * PAGE), "MADV_DONTNEED");
	is_new(p, 4 * PAGE);
	tap_ok(is_kept(p, 4 * PAGE), "its neighbour is kept");
	munmap(p, 8 * PAGE);

	fd = memfd_create("regcache", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 4 * (off_t)PAGE))
		tap_bail("no memory file");
	p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	stamp(p, 4 * PAGE);
	tap_ok(is_new(p, 4 * PAGE), "shared memory");
	madvise(p, 2 * PAGE, MADV_REMOVE);
	stamp(p, 2 * PAGE);
	tap_ok(is_new(p, 4 * PAGE), "MADV_REMOVE");
	munmap(p, 4 * PAGE);
	close(fd);
	end();
}

/* Allocations of the C library: what it maps for itself, and its break. */
static void test_heap(void)
{
	size_t len = 1 << 20;
	int wrong = 0, same = 0;
	char *before = NULL, *b;

	begin();
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	for (int i = 0; i < 50; i++) {
		char *p = malloc(len), *inner;
		struct mem_reg *reg;

		if (!p)
			tap_bail("no memory");
		/* Its whole pages: they are nobody else's. */
		inner = (char *)(((uintptr_t)p + PAGE - 1) & ~(PAGE - 1));
		stamp(inner, len - 2 * PAGE);
		reg = get(inner, len - 2 * PAGE);
		wrong += !is_true_of(reg, inner, len - 2 * PAGE);
		mem_regcache_put(cache, reg);
		same += p == before;
		before = p;
		free(p);
	}
	tap_ok(wrong == 0, "50 times malloc and free: %d stale, %d at the same address",
	       wrong, same);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	tap_ok(same > 0, "the same addresses came again");
#endif
	b = sbrk(0);
	if (b == (void *)-1 || ((uintptr_t)b & (PAGE - 1)) || sbrk(8 * PAGE) != b) {
		tap_skip(1, "the break can't be moved by pages here");
	} else {
		stamp(b, 8 * PAGE);
		is_new(b, 8 * PAGE);
		sbrk(-8 * (intptr_t)PAGE);
		sbrk(8 * (intptr_t)PAGE);
		stamp(b, 8 * PAGE);
		tap_ok(is_new(b, 8 * PAGE), "the break, down and up again");
		sbrk(-8 * (intptr_t)PAGE);
	}
	end();
}

/* ---- fork */

static int child_run(char *p)
{
	struct mem_regcache *inherited = cache;
	struct mem_reg *reg;
	int good;

	good = mem_regcache_get(cache, p, PAGE, &reg) == -FI_EOPBADSTATE;
	mem_regcache_flush(inherited);
	munmap(p, PAGE); /* nobody waits for the parent's monitor */
	mem_regcache_close(inherited);
	good &= atomic_load(&mock.dropped) == 0;
#ifdef __SANITIZE_THREAD__
	return good ? 0 : 1; /* it allows a child of threads no thread */
#endif
	/* A cache of its own, with a monitor of its own. */
	begin();
	p = map_at(NULL, PAGE);
	good &= mem_regcache_keeps(cache) && is_new(p, PAGE) && is_kept(p, PAGE);
	munmap(p, PAGE);
	map_at(p, PAGE);
	good &= is_new(p, PAGE);
	mem_regcache_close(cache);
	return good ? 0 : 1;
}

static void test_fork(void)
{
	struct mem_reg *reg;
	int status;
	char *p;
	pid_t pid;

	begin();
	p = map_at(NULL, 2 * PAGE);
	is_new(p, PAGE);
	reg = get(p + PAGE, PAGE);
	pid = tap_fork();
	if (pid == 0) {
		alarm(280);
		_exit(child_run(p));
	}
	tap_ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
	       "a child: not its parent's cache, but one of its own");
	tap_ok(is_kept(p, PAGE), "what the child unmapped is still the parent's");
	tap_ok(is_true_of(reg, p + PAGE, PAGE), "and what it uses");
	mem_regcache_put(cache, reg);
	munmap(p, PAGE);
	map_at(p, PAGE);
	tap_ok(is_new(p, PAGE), "the parent's monitor still looks");
	munmap(p, 2 * PAGE);
	end();
}

/* ---- threads: each maps, registers, unmaps, and gets the addresses of the others */

#define THREADS 4

static atomic_int stale, errors;
static int rounds;

static void *thread_run(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 0x9e3779b97f4a7c15u;

	for (int i = 0; i < rounds; i++) {
		size_t len = (1 + seed % 4) * PAGE;
		struct mem_reg *reg;
		void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		stamp(p, len);
		for (int k = 0; k < 2; k++) {
			if (mem_regcache_get(cache, p, len, &reg)) {
				atomic_fetch_add(&errors, 1);
				continue;
			}
			if (!is_true_of(reg, p, len))
				atomic_fetch_add(&stale, 1);
			mem_regcache_put(cache, reg);
		}
		if (seed >> 63)
			madvise(p, len, MADV_DONTNEED);
		munmap(p, len);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t t[THREADS];

	begin();
	rounds = tap_short() ? 200 : 1000;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, thread_run, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	tap_is_int(atomic_load(&stale), 0, "threads: no stale registration");
	tap_is_int(atomic_load(&errors), 0, "threads: no error");
	tap_diag("%llu hits, %llu gone, %llu not kept", (unsigned long long)stats().hits,
		 (unsigned long long)stats().gone, (unsigned long long)stats().uncached);
	end();
}

/* ---- a random history */

#define PAGES 48
#define HELD  12

struct model {
	char *base;
	bool mapped[PAGES];
	struct mem_reg *held[HELD];
	uint64_t words[HELD][PAGES]; /* what it was of when it was given out */
	int first[HELD], pages[HELD];
	int wrong;
};

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)((z ^ (z >> 29)) >> 32) % n;
}

static void model_map(struct model *m, int i)
{
	if (m->mapped[i])
		return;
	map_at(m->base + (size_t)i * PAGE, PAGE);
	m->mapped[i] = true;
}

static void step_get(struct model *m)
{
	int first = (int)below(PAGES), pages = 1 + (int)below(8), slot = (int)below(HELD);
	int made = atomic_load(&mock.made);
	bool all = true;
	struct mem_reg *reg;
	char *at;
	int rc;

	if (first + pages > PAGES)
		pages = PAGES - first;
	for (int i = 0; i < pages; i++)
		all = all && m->mapped[first + i];
	at = m->base + (size_t)first * PAGE;
	rc = mem_regcache_get(cache, at + 7, (size_t)pages * PAGE - 9, &reg);
	if (rc) {
		m->wrong += all || rc != -FI_EFAULT;
		return;
	}
	m->wrong += !all || !is_true_of(reg, at, (size_t)pages * PAGE);
	(void)made;
	if (m->held[slot]) {
		mem_regcache_put(cache, reg);
		return;
	}
	m->held[slot] = reg;
	m->first[slot] = first;
	m->pages[slot] = pages;
	for (int i = 0; i < pages; i++)
		m->words[slot][i] = *(uint64_t *)(void *)(at + (size_t)i * PAGE);
}

/* What it was of when it was given out is what it is of until it is put. */
static void step_put(struct model *m)
{
	int slot = (int)below(HELD);
	const struct mock_reg *r;
	uintptr_t at;

	if (!m->held[slot])
		return;
	r = m->held[slot]->handle;
	at = (uintptr_t)m->base + (size_t)m->first[slot] * PAGE;
	m->wrong += atomic_load(&r->alive) != 1;
	for (int i = 0; i < m->pages[slot]; i++)
		m->wrong +=
			r->words[(at - r->start) / PAGE + (size_t)i] != m->words[slot][i];
	mem_regcache_put(cache, m->held[slot]);
	m->held[slot] = NULL;
}

static void step_change(struct model *m)
{
	int first = (int)below(PAGES), pages = 1 + (int)below(4);

	for (int i = first; i < first + pages && i < PAGES; i++) {
		char *at = m->base + (size_t)i * PAGE;

		switch (below(3)) {
		case 0:
			munmap(at, PAGE);
			m->mapped[i] = false;
			break;
		case 1:
			model_map(m, i);
			break;
		default:
			if (m->mapped[i]) {
				madvise(at, PAGE, MADV_DONTNEED);
				stamp(at, PAGE);
			}
		}
	}
}

static void test_random(void)
{
	const char *given = getenv("WEFT_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	int steps = tap_short() ? 3000 : 20000;
	static struct model m;
	uint64_t most = 0;

	tap_diag("random history: WEFT_TEST_SEED=%" PRIu64, seed);
	random_state = seed;
	begin_with(6, 24 * PAGE, false);
	m.base = mmap(far_away(PAGES * PAGE), PAGES * PAGE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(m.base, PAGES * PAGE);
	for (int i = 0; i < PAGES; i++)
		model_map(&m, i);
	for (int i = 0; i < steps; i++) {
		switch (below(8)) {
		case 0:
			step_change(&m);
			break;
		case 1:
		case 2:
			step_put(&m);
			break;
		default:
			step_get(&m);
		}
		if (below(500) == 0)
			mem_regcache_flush(cache);
		most = stats().size > most ? stats().size : most;
		m.wrong += stats().count > 6 || stats().size > 24 * PAGE;
	}
	tap_is_int(m.wrong, 0, "random history: nothing stale, no limit exceeded");
	tap_ok(stats().hits > 0 && stats().gone > 0 && stats().evicted > 0 && most > 0,
	       "random history: %llu hits, %llu gone, %llu evicted",
	       (unsigned long long)stats().hits, (unsigned long long)stats().gone,
	       (unsigned long long)stats().evicted);
	for (int i = 0; i < HELD; i++)
		if (m.held[i])
			mem_regcache_put(cache, m.held[i]);
	end();
	munmap(m.base, PAGES * PAGE);
}

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
	(void)number;
	handled = 1;
}

static void test_signals(void)
{
	const struct timespec second = {.tv_sec = 1};
	sigset_t one, before;

	begin();
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	signal(SIGUSR1, on_signal);
	pthread_sigmask(SIG_BLOCK, &one, &before);
	kill(getpid(), SIGUSR1);
	/* Whoever takes it has the time to. */
	for (int i = 0; i < 50 && !handled; i++)
		usleep(1000);
	tap_ok(sigtimedwait(&one, NULL, &second) == SIGUSR1 && !handled,
	       "the monitor's thread takes no signal of the application's");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	signal(SIGUSR1, SIG_DFL);
	end();
}

int main(void)
{
	alarm(300);
	test_without();
	begin();
	keeps = mem_regcache_keeps(cache);
	end();
	if (!keeps) {
		tap_skip(1, "this machine has no memory monitor: nothing is kept");
		return tap_done();
	}
	test_keeping();
	test_limits();
	test_no_descriptor();
	test_gone_meanwhile();
	test_gone();
	test_heap();
	test_fork();
	test_signals();
	test_threads();
	test_random();
	return tap_done();
}
