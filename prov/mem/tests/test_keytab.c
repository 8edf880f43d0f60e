/* SPDX-License-Identifier: BSD-2-Clause */
/* The key table: what it says, against a model, with a reader beside, from hostile
 * memory. */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/keytab.h"
#include "prov/mem/keytab_format.h"
#include "prov/mem/keytab_own.h"
#include "prov/mem/memfd.h"
#include "util/tap.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* A number generator with a seed, so that a failure can be repeated. */
static uint64_t rng_next(uint64_t *s)
{
	*s += UINT64_C(0x9e3779b97f4a7c15);
	return keytab_mix(*s, 0);
}

static uint64_t rng_seed(void)
{
	const char *env = getenv("WEFT_TEST_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);

	tap_diag("WEFT_TEST_SEED=%" PRIu64, seed);
	return seed;
}

static struct mem_region region_make(uint64_t addr, uint64_t len, uint64_t access,
				     bool virt)
{
	struct mem_region r = {.iov_count = 1, .access = access, .virt_addr = virt};

	r.iov[0].iov_base = (void *)(uintptr_t)addr;
	r.iov[0].iov_len = len;
	return r;
}

/* Look-ups that a hit answers otherwise than the table does; hits that were good. */
static int hits_wrong, hits_good;

static void hit_check(struct mem_keyview *view, uint64_t key, uint64_t addr, uint64_t len,
		      uint64_t access, int ret, const struct iovec *found)
{
	struct mem_keyhit hit;
	uint64_t offset;
	bool good;

	if (!mem_keyview_hit(view, key, &hit)) {
		hits_wrong += hit.seq_at != NULL;
		return;
	}
	good = mem_keyhit_is_fresh(&hit) && (hit.access & access) == access &&
	       mem_keyhit_covers(&hit, addr, len, &offset);
	hits_wrong += good != (ret == 0);
	hits_wrong += good && len > 0 &&
		      (hit.addr + offset != (uintptr_t)found->iov_base ||
		       hit.addr + offset < hit.addr);
	hits_good += good;
}

static int find1(struct mem_keyview *view, uint64_t key, uint64_t addr, uint64_t len,
		 uint64_t access, struct iovec *iov)
{
	struct iovec got[MEM_REGION_IOV];
	uint32_t count = 99, incarnation;
	int ret =
		mem_keyview_find(view, key, addr, len, access, got, &count, &incarnation);

	hit_check(view, key, addr, len, access, ret, got);
	if (ret == 0 && len > 0 && count != 1)
		return 1000;
	if (ret == 0 && len > 0)
		*iov = got[0];
	return ret;
}

static void test_ranges(struct mem_keytab *tab, struct mem_keyview *view)
{
	struct mem_region r = region_make(0x10000, 100, FI_REMOTE_READ, false);
	struct mem_region v = region_make(0x20000, 100, RW, true);
	struct mem_region all = region_make(0, UINT64_MAX, RW, true);
	struct iovec iov = {0};
	uint64_t k, kv, ka;

	mem_keytab_insert(tab, &r, &k);
	mem_keytab_insert(tab, &v, &kv);
	mem_keytab_insert(tab, &all, &ka);
	tap_is_int(find1(view, k, 10, 90, FI_REMOTE_READ, &iov), 0, "offset, to the end");
	tap_ok((uintptr_t)iov.iov_base == 0x1000a && iov.iov_len == 90, "right place");
	tap_is_int(find1(view, k, 10, 91, FI_REMOTE_READ, &iov), -FI_EINVAL, "one more");
	tap_is_int(find1(view, k, 101, 0, FI_REMOTE_READ, &iov), -FI_EINVAL,
		   "nothing, but outside");
	tap_is_int(find1(view, k, 100, 0, FI_REMOTE_READ, &iov), 0, "nothing at the end");
	tap_is_int(find1(view, k, UINT64_MAX, 2, FI_REMOTE_READ, &iov), -FI_EINVAL,
		   "a sum that overflows");
	tap_is_int(find1(view, k, 1, UINT64_MAX, FI_REMOTE_READ, &iov), -FI_EINVAL,
		   "a length that overflows");
	tap_is_int(find1(view, k, 0, 1, FI_REMOTE_WRITE, &iov), -FI_EACCES, "access");
	tap_is_int(find1(view, k, 0, 1, RW, &iov), -FI_EACCES, "access to both");
	tap_is_int(find1(view, kv, 0x20063, 1, RW, &iov), 0,
		   "virtual address, last byte");
	tap_is_int(find1(view, kv, 0x1ffff, 1, RW, &iov), -FI_EINVAL, "before the start");
	tap_is_int(find1(view, kv, 5, 1, RW, &iov), -FI_EINVAL, "an offset there");
	tap_is_int(find1(view, ka, 0xdeadbeef, UINT64_C(1) << 40, RW, &iov), 0,
		   "all of memory");
	tap_ok((uintptr_t)iov.iov_base == 0xdeadbeef && iov.iov_len == 1ull << 40,
	       "right place");
	tap_is_int(find1(view, ka, UINT64_MAX - 1, 2, RW, &iov), -FI_EINVAL,
		   "the last byte is outside");
	tap_is_int(find1(view, ka + 1, 0, 1, RW, &iov), -FI_ENOKEY, "no such key");
	tap_is_int(mem_keytab_remove(tab, k), 0, "remove");
	tap_is_int(mem_keytab_remove(tab, k), -FI_ENOKEY, "remove again");
	tap_is_int(find1(view, k, 0, 1, FI_REMOTE_READ, &iov), -FI_ENOKEY, "gone");
	mem_keytab_remove(tab, kv);
	mem_keytab_remove(tab, ka);
}

static void test_pieces(struct mem_keytab *tab, struct mem_keyview *view)
{
	struct mem_region r = {.iov_count = 3, .access = RW};
	struct iovec iov[MEM_REGION_IOV];
	uint32_t count, incarnation;
	uint64_t key;

	for (int i = 0; i < 3; i++) {
		r.iov[i].iov_base = (void *)(uintptr_t)(0x1000 * (i + 1));
		r.iov[i].iov_len = 10;
	}
	mem_keytab_insert(tab, &r, &key);
	tap_is_int(mem_keyview_find(view, key, 5, 20, RW, iov, &count, &incarnation), 0,
		   "across three pieces");
	tap_is_int(count, 3, "three");
	tap_ok((uintptr_t)iov[0].iov_base == 0x1005 && iov[0].iov_len == 5 &&
		       (uintptr_t)iov[1].iov_base == 0x2000 && iov[1].iov_len == 10 &&
		       (uintptr_t)iov[2].iov_base == 0x3000 && iov[2].iov_len == 5,
	       "cut right");
	tap_is_int(mem_keyview_find(view, key, 10, 10, RW, iov, &count, &incarnation), 0,
		   "exactly the second");
	tap_ok(count == 1 && (uintptr_t)iov[0].iov_base == 0x2000, "only the second");
	tap_is_int(mem_keyview_find(view, key, 25, 6, RW, iov, &count, &incarnation),
		   -FI_EINVAL, "past the third");
	mem_keytab_remove(tab, key);
	r.iov_count = MEM_REGION_IOV + 1;
	tap_is_int(mem_keytab_insert(tab, &r, &key), -FI_EINVAL, "too many pieces");
}

/* Rule D2: the same key again is another incarnation. */
static void test_D2_incarnation(struct mem_keytab *tab, struct mem_keyview *view)
{
	struct mem_region r = region_make(0x1000, 10, RW, false);
	struct iovec iov[MEM_REGION_IOV];
	uint32_t count, a = 0, b = 0;
	uint64_t k1, k2;

	tap_is_int(mem_keytab_insert_at(tab, &r, 42), 0, "a caller's key");
	mem_keyview_find(view, 42, 0, 1, RW, iov, &count, &a);
	tap_is_int(mem_keytab_insert_at(tab, &r, 42), -FI_ENOKEY, "which is taken now");
	mem_keytab_remove(tab, 42);
	tap_is_int(mem_keytab_insert_at(tab, &r, 42), 0, "and then again");
	tap_is_int(mem_keyview_find(view, 42, 0, 1, RW, iov, &count, &b), 0, "found");
	tap_ok(a != b, "another incarnation");
	mem_keytab_remove(tab, 42);
	mem_keytab_insert(tab, &r, &k1);
	tap_is_int(mem_keytab_insert_at(tab, &r, k1), -FI_ENOKEY,
		   "a key of the table's choosing is taken too");
	mem_keytab_remove(tab, k1);
	mem_keytab_insert(tab, &r, &k2);
	tap_ok(k1 != k2, "never the same key twice in a row");
	mem_keytab_remove(tab, k2);
}

static void test_events(struct mem_keytab *tab, struct mem_keyview *view)
{
	tap_ok(mem_keyview_events(view) == 0, "nobody wants to hear of accesses");
	mem_keytab_want(tab, MEM_EVENTS_MR);
	tap_ok(mem_keyview_events(view) == MEM_EVENTS_MR, "now somebody does");
	mem_keytab_want(tab, MEM_EVENTS_EP);
	tap_ok(mem_keyview_events(view) == (MEM_EVENTS_EP | MEM_EVENTS_MR), "for good");
}

/* What was looked up stays true exactly as long as the registration. */
static void test_hit(struct mem_keytab *tab, struct mem_keyview *view)
{
	struct mem_region r = region_make(0x10000, 100, RW, true);
	struct mem_region pieces = {.iov_count = 2, .access = RW};
	struct mem_keyhit hit, later;
	const uint64_t key = 77;
	uint64_t offset;

	tap_ok(!mem_keyview_hit(view, key, &hit) && !hit.seq_at, "no such key");
	r.share[0] = 5;
	mem_keytab_insert_at(tab, &r, key);
	tap_ok(mem_keyview_hit(view, key, &hit), "a key is looked up");
	tap_ok(hit.addr == 0x10000 && hit.base == 0x10000 && hit.len == 100 &&
		       hit.share == 5 && hit.access == RW,
	       "with all that it says");
	tap_ok(mem_keyhit_covers(&hit, 0x10063, 1, &offset) && offset == 99 &&
		       !mem_keyhit_covers(&hit, 0x10063, 2, &offset) &&
		       !mem_keyhit_covers(&hit, 0xffff, 1, &offset) &&
		       !mem_keyhit_covers(&hit, 0, 1, &offset) &&
		       !mem_keyhit_covers(&hit, 0x10001, UINT64_MAX, &offset),
	       "its bounds hold");
	tap_ok(mem_keyhit_is_fresh(&hit), "fresh");
	mem_keytab_remove(tab, key);
	tap_ok(!mem_keyhit_is_fresh(&hit), "not any more when the key is gone");
	mem_keytab_insert_at(tab, &r, key);
	tap_ok(!mem_keyhit_is_fresh(&hit), "nor when it is back");
	tap_ok(mem_keyview_hit(view, key, &later) && mem_keyhit_is_fresh(&later),
	       "then it is looked up again");
	mem_keytab_remove(tab, key);
	pieces.iov[0] = (struct iovec){(void *)0x1000, 10};
	pieces.iov[1] = (struct iovec){(void *)0x2000, 10};
	mem_keytab_insert_at(tab, &pieces, key);
	tap_ok(!mem_keyview_hit(view, key, &hit) && !hit.seq_at,
	       "several pieces are not for this");
	mem_keytab_remove(tab, key);
}

static void test_full(void)
{
	struct mem_region r = region_make(0x1000, 10, RW, false);
	struct mem_keytab *tab;
	uint64_t key = 0;
	int n = 0, m = 0;

	tap_is_int(mem_keytab_open(100, &tab), 0, "a small table");
	while (n < 1000 && mem_keytab_insert(tab, &r, &key) == 0)
		n++;
	tap_is_int(n, 128, "takes its capacity, rounded up");
	tap_is_int(mem_keytab_insert_at(tab, &r, 7), -FI_ENOMEM, "and no more");
	mem_keytab_remove(tab, key);
	tap_is_int(mem_keytab_insert_at(tab, &r, 7), 0, "until one is removed");
	mem_keytab_close(tab);
	/* Addresses of pages and small numbers are what callers choose. */
	mem_keytab_open(4096, &tab);
	for (uint64_t i = 0; i < 4096; i++)
		m += mem_keytab_insert_at(tab, &r, i % 2 ? i : i << 12) == 0;
	tap_is_int(m, 4096, "caller's keys fill it to the last");
	mem_keytab_close(tab);
	tap_is_int(mem_keytab_open(1u << 30, &tab), -FI_ENOMEM, "an absurd capacity");
}

/* ---- property: against a model --------------------------------------------------------
 */

#define MODEL_KEYS 300

struct model {
	uint64_t key;
	uint64_t addr;
	uint64_t len;
	bool live;
};

static bool model_agrees(struct mem_keyview *view, const struct model *m)
{
	struct iovec iov = {0};
	int ret = find1(view, m->key, 0, m->len, FI_REMOTE_WRITE, &iov);

	if (!m->live)
		return ret == -FI_ENOKEY;
	return ret == 0 && (uintptr_t)iov.iov_base == m->addr && iov.iov_len == m->len;
}

static bool model_step(struct mem_keytab *tab, struct model *model, uint64_t *s)
{
	struct model *m = &model[rng_next(s) % MODEL_KEYS];
	struct mem_region r;
	bool own;
	int ret;

	if (m->live) {
		m->live = false;
		return mem_keytab_remove(tab, m->key) == 0;
	}
	m->addr = 4096 + (rng_next(s) >> 20);
	m->len = 1 + rng_next(s) % 100000;
	r = region_make(m->addr, m->len, RW, false);
	own = rng_next(s) % 2;
	if (own) {
		ret = mem_keytab_insert(tab, &r, &m->key);
	} else {
		m->key = (uint64_t)(m - model) | (rng_next(s) % 2 ? KEYTAB_KEY_MARK : 0) |
			 (rng_next(s) % 64) << 40;
		ret = mem_keytab_insert_at(tab, &r, m->key);
	}
	m->live = ret == 0;
	if (ret == 0)
		return true;
	/* The only excuse: another of the model holds that key. */
	for (int i = 0; i < MODEL_KEYS; i++)
		if (&model[i] != m && model[i].live && model[i].key == m->key) {
			m->key = UINT64_C(0x7f00000000000000) + (uint64_t)(m - model);
			return ret == -FI_ENOKEY;
		}
	return false;
}

static void test_model(uint64_t seed)
{
	static struct model model[MODEL_KEYS];
	struct mem_keyview *view;
	struct mem_keytab *tab;
	int wrong = 0, failed = 0;

	mem_keytab_open(MODEL_KEYS, &tab);
	mem_keyview_own(tab, &view);
	for (int i = 0; i < MODEL_KEYS; i++)
		model[i].key = UINT64_C(0x7f00000000000000) + (uint64_t)i;
	for (int step = 0; step < 20000; step++) {
		failed += !model_step(tab, model, &seed);
		if (step % 100)
			continue;
		for (int i = 0; i < MODEL_KEYS; i++) {
			model[i].len += model[i].len == 0;
			wrong += !model_agrees(view, &model[i]);
		}
	}
	tap_is_int(failed, 0, "every insert and remove does what the model says");
	tap_is_int(wrong, 0, "every look-up finds what the model says");
	mem_keyview_close(view);
	mem_keytab_close(tab);
}

/* ---- a reader beside
 * ------------------------------------------------------------------- */

struct beside {
	struct mem_keyview *view;
	_Atomic(uint64_t) key;
	_Atomic(bool) stop;
	uint64_t found;
	uint64_t torn;
};

/* The two pieces of every region are eight bytes apart: a mixture would show. */
static void *beside_read(void *arg)
{
	struct beside *b = arg;

	while (!atomic_load(&b->stop)) {
		struct iovec iov[MEM_REGION_IOV];
		uint32_t count, incarnation;
		int ret = mem_keyview_find(b->view, atomic_load(&b->key), 0, 2, RW, iov,
					   &count, &incarnation);

		if (ret == -FI_ENOKEY)
			continue;
		if (ret || count != 2 ||
		    (uintptr_t)iov[1].iov_base - (uintptr_t)iov[0].iov_base != 8)
			b->torn++;
		b->found++;
	}
	return NULL;
}

static void test_concurrent(void)
{
	struct beside b = {0};
	struct mem_keytab *tab;
	pthread_t thread;
	uint64_t end;
	struct timespec ts;

	mem_keytab_open(64, &tab);
	mem_keyview_own(tab, &b.view);
	pthread_create(&thread, NULL, beside_read, &b);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	end = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + 500;
	for (uint64_t i = 1;; i++) {
		struct mem_region r = region_make(4096 * i, 1, RW, false);
		uint64_t key = 77;

		r.iov[1].iov_base = (void *)(uintptr_t)(4096 * i + 8);
		r.iov[1].iov_len = 1;
		r.iov_count = 2;
		if (i % 2)
			mem_keytab_insert(tab, &r, &key);
		else
			mem_keytab_insert_at(tab, &r, key);
		atomic_store(&b.key, key);
		mem_keytab_remove(tab, key);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		if ((uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 > end)
			break;
	}
	atomic_store(&b.stop, true);
	pthread_join(thread, NULL);
	tap_diag("%" PRIu64 " found", b.found);
	tap_is_int((int64_t)b.torn, 0, "a reader beside never sees a mixture");
	mem_keyview_close(b.view);
	mem_keytab_close(tab);
}

/* ---- hostile memory
 * -------------------------------------------------------------------- */

static int memfd_make(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		tap_bail("memfd");
	return fd;
}

static void test_not_a_table(void)
{
	const int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
	struct keytab_header h = {.magic = KEYTAB_MAGIC,
				  .version = KEYTAB_VERSION,
				  .entry_size = 128,
				  .capacity = 64};
	int fd = memfd_make(keytab_map_size(64), 0), pipes[2];
	struct mem_keyview *view;

	(void)!pwrite(fd, &h, sizeof(h), 0);
	tap_is_int(mem_keyview_open(dup(fd), &view), -FI_EINVAL, "not sealed");
	fcntl(fd, F_ADD_SEALS, sealed);
	tap_is_int(mem_keyview_open(dup(fd), &view), 0, "sealed");
	mem_keyview_close(view);
	h.capacity = 128;
	(void)!pwrite(fd, &h, sizeof(h), 0);
	tap_is_int(mem_keyview_open(dup(fd), &view), -FI_EINVAL, "says it is larger");
	h.capacity = 0;
	(void)!pwrite(fd, &h, sizeof(h), 0);
	tap_is_int(mem_keyview_open(dup(fd), &view), -FI_EINVAL, "says it is nothing");
	h.capacity = 64;
	h.magic++;
	(void)!pwrite(fd, &h, sizeof(h), 0);
	tap_is_int(mem_keyview_open(fd, &view), -FI_EINVAL, "something else");
	tap_is_int(mem_keyview_open(memfd_make(100, sealed), &view), -FI_EINVAL, "short");
	tap_is_int(mem_keyview_open(memfd_make(0, sealed), &view), -FI_EINVAL, "empty");
	tap_is_int(mem_keyview_open(-1, &view), -FI_EINVAL, "no descriptor");
	if (pipe(pipes) < 0)
		tap_bail("pipe");
	tap_is_int(mem_keyview_open(pipes[0], &view), -FI_EINVAL, "a pipe");
	close(pipes[1]);
}

/* Writes random bytes into the entry of key, so that it looks used. */
static void entry_scribble(struct keytab_entry *e, uint64_t key, int round,
			   uint64_t *seed)
{
	for (size_t i = 0; i < sizeof(*e); i += 8) {
		uint64_t v = rng_next(seed) >> (rng_next(seed) % 64);

		memcpy((char *)e + i, &v, 8);
	}
	atomic_store(&e->key, key);
	atomic_store(&e->seq, 2);
	atomic_store(&e->flags, KEYTAB_USED | (round % 2 ? KEYTAB_VIRT_ADDR : 0u));
	atomic_store(&e->iov_count, (uint32_t)(round % 6));
}

/* Random bytes with a good header: any answer, but in bounds and at once. */
static void test_hostile(uint64_t seed)
{
	struct keytab_entry *entries;
	struct mem_keyview *view;
	struct mem_keytab *tab;
	int bad = 0, found = 0;
	size_t size;
	void *map;

	if (mem_keytab_open(64, &tab) || mem_keyview_own(tab, &view))
		tap_bail("table");
	map = (void *)(uintptr_t)mem_keytab_map(tab, &size);
	entries = (void *)((char *)map + KEYTAB_HEADER_SIZE);
	for (int round = 0; round < 20000; round++) {
		uint64_t key = KEYTAB_KEY_MARK | (rng_next(&seed) % 64);
		uint64_t addr = rng_next(&seed) >> (round % 60);
		uint64_t len = rng_next(&seed) >> (addr % 64), sum = 0;
		struct iovec iov[MEM_REGION_IOV];
		uint32_t count = 0, incarnation;
		int ret;

		entry_scribble(&entries[(uint32_t)key], key, round, &seed);
		ret = mem_keyview_find(view, key, addr, len, 0, iov, &count,
				       &incarnation);
		hit_check(view, key, addr, len, 0, ret, iov);
		if (ret)
			continue;
		found++;
		for (uint32_t i = 0; i < count && i < MEM_REGION_IOV; i++) {
			uint64_t base = (uintptr_t)iov[i].iov_base;

			bad += iov[i].iov_len == 0 ||
			       iov[i].iov_len - 1 > UINT64_MAX - base;
			sum += iov[i].iov_len;
		}
		bad += count > MEM_REGION_IOV || sum != len;
	}
	tap_ok(found > 100, "some nonsense makes sense (%d)", found);
	tap_is_int(bad, 0, "but it never gives a range that isn't one");
	mem_keyview_close(view);
	mem_keytab_close(tab);
}

/* The reader's descriptor can't be used to change the table. */
static void test_read_only(struct mem_keytab *tab)
{
	int fd = mem_keytab_fd(tab);
	void *map;

	if (!(fcntl(fd, F_GET_SEALS) & 0x0010)) {
		tap_skip(2, "this kernel can't seal against future writes");
		return;
	}
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	tap_ok(map == MAP_FAILED, "no second writable mapping");
	tap_ok(pwrite(fd, "x", 1, 0) < 0, "no writing through the descriptor");
}

/* Without descriptors, or without memory, it says so. */
static void test_refused(void)
{
	struct rlimit old, none = {0};
	struct mem_keytab *tab;

	getrlimit(RLIMIT_NOFILE, &old);
	none.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	tap_is_int(mem_keytab_open(64, &tab), -FI_EMFILE, "no descriptor left");
	setrlimit(RLIMIT_NOFILE, &old);
#if !TAP_SANITIZED
	getrlimit(RLIMIT_AS, &old);
	none.rlim_cur = 256u << 20;
	none.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_AS, &none);
	tap_is_int(mem_keytab_open(1u << 20, &tab), -FI_ENOMEM, "no address space left");
	setrlimit(RLIMIT_AS, &old);
#else
	tap_skip(1, "a sanitizer needs the address space");
#endif
}

int main(void)
{
	uint64_t seed = rng_seed();
	struct mem_keyview *own, *peer;
	struct mem_keytab *tab;

	alarm(280);
	tap_is_int(mem_keytab_open(1000, &tab), 0, "open");
	tap_is_int(mem_keyview_own(tab, &own), 0, "the owner's view");
	tap_is_int(mem_keyview_open(dup(mem_keytab_fd(tab)), &peer), 0, "a peer's view");
	test_ranges(tab, own);
	test_ranges(tab, peer);
	test_pieces(tab, peer);
	test_D2_incarnation(tab, peer);
	test_events(tab, peer);
	test_hit(tab, own);
	test_hit(tab, peer);
	test_read_only(tab);
	mem_keyview_close(own);
	mem_keyview_close(peer);
	mem_keytab_close(tab);
	test_full();
	test_model(seed);
	test_concurrent();
	test_not_a_table();
	test_hostile(seed);
	tap_ok(hits_wrong == 0 && hits_good > 100,
	       "what is looked up once says the same as the table (%d wrong, %d good)",
	       hits_wrong, hits_good);
	test_refused();
	return tap_done();
}
