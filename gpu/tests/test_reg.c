/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remembered registrations: made once and found again, over several pieces; dead when the
 * memory below them changed, told or not; held until the last user; made by the cache's
 * thread; refused while a stream is captured; the oldest given up when there are too
 * many.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/reg.h"
#include "gpu/tests/app.h"
#include "util/tap.h"

#define PIECE (2u << 20)

static struct app *app;
static struct gpu *gpu;

/* The owner: a registration is a DMA buffer, whose descriptor is closed at once. */
struct owner {
	_Atomic int made, ended, alive;
	_Atomic int fail; /* the next so many */
	_Atomic int slow; /* ms */
};

static int owner_make(void *arg, uint64_t addr, uint64_t len,
		      const struct gpu_range *first, struct reg_made *made)
{
	struct owner *o = arg;
	struct gpu_dmabuf d;
	int ret;

	if (first->kind != GPU_MEM_DEVICE || addr - first->base >= first->len)
		return -EDOM;
	usleep((useconds_t)atomic_load(&o->slow) * 1000);
	if (atomic_load(&o->fail) > 0 && atomic_fetch_sub(&o->fail, 1) > 0)
		return -ENOMEM;
	ret = gpu_dmabuf_export(gpu, (void *)(uintptr_t)addr, len, &d);
	if (ret) {
		made->path = REG_PATH_STAGED;
		snprintf(made->why, sizeof(made->why), "%.*s", GPU_WHY_LEN - 1,
			 gpu_error(gpu));
	} else {
		made->path = REG_PATH_DMABUF;
		close(d.fd);
	}
	made->handle = o;
	atomic_fetch_add(&o->made, 1);
	atomic_fetch_add(&o->alive, 1);
	return 0;
}

static void owner_end(void *arg, struct reg_made *made)
{
	struct owner *o = arg;

	if (made->handle == o)
		atomic_fetch_add(&o->ended, 1);
	atomic_fetch_sub(&o->alive, 1);
}

static const struct reg_ops ops = {owner_make, owner_end};

static struct reg *open_with(struct owner *o, uint32_t flags, uint32_t entries)
{
	const struct reg_limits limits = {entries, 1ull << 40};
	struct reg *reg = NULL;

	if (reg_open(gpu, &ops, o, flags, &limits, &reg) != 0)
		exit(1);
	return reg;
}

static void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

static void found(void)
{
	const uint64_t addr = app_map(app, 0, PIECE, 3, true);
	const struct reg_entry *a = NULL, *b = NULL;
	struct owner o = {0};
	struct reg *reg = open_with(&o, 0, 10);
	struct reg_stats s;
	int here;

	tap_is_int(reg_get(reg, at(addr + 100), 2 * PIECE, 0, false, &a), 0,
		   "a registration over pieces");
	tap_ok(a->addr <= addr + 100 && a->addr + a->len >= addr + 100 + 2 * PIECE &&
		       a->device == 0 && a->made.path == REG_PATH_DMABUF,
	       "has all of them, by %s", reg_path_name(a->made.path));
	tap_is_int(reg_get(reg, at(addr + PIECE), 10, 0, false, &b), 0, "a part of it");
	tap_ok(a == b && atomic_load(&o.made) == 1, "is the same, made once");
	reg_put(reg, a);
	reg_put(reg, b);
	tap_is_int(atomic_load(&o.ended), 0, "without a user it is remembered");
	b = NULL;
	tap_is_int(reg_get(reg, &here, sizeof(here), 0, false, &b), -EINVAL,
		   "host memory is refused");
	tap_is_int(reg_get(reg, at(addr + 2 * PIECE), 2 * PIECE, 0, false, &b), -EINVAL,
		   "more than is mapped, too");
	tap_ok(b == NULL, "and nothing was written");
	reg_stats_get(reg, &s);
	tap_ok(s.hits == 1 && s.misses == 1 && s.paths[REG_PATH_DMABUF] == 1 &&
		       s.stale == 0,
	       "it is counted so");
	app_remap(app, 0, addr, PIECE, 2, true);
	tap_is_int(reg_get(reg, at(addr + 200), 10, 0, false, &a), 0,
		   "another piece below it was mapped anew: the part that is asked for "
		   "is there");
	tap_is_int(atomic_load(&o.made), 2, "but made anew");
	tap_is_int(atomic_load(&o.ended), 1, "and the old one ended");
	reg_put(reg, a);
	reg_close(reg);
	tap_is_int(atomic_load(&o.alive), 0, "closed: none is left");
	app_unmap(app, addr, PIECE, 3);
}

static void freed(void)
{
	uint64_t addr = app_alloc(app, PIECE), again;
	const struct reg_entry *a = NULL, *b = NULL;
	struct owner o = {0};
	struct reg *reg = open_with(&o, 0, 10);
	struct reg_stats s;

	tap_is_int(reg_get(reg, at(addr), PIECE, 0, false, &a), 0,
		   "memory is registered");
	reg_put(reg, a);
	app_free(app, addr);
	again = app_alloc(app, PIECE);
	tap_is_int(reg_get(reg, at(again), PIECE, 0, false, &b), 0,
		   "freed and allocated anew");
	reg_stats_get(reg, &s);
	if (again == addr)
		tap_ok(atomic_load(&o.made) == 2 && s.stale == 1 &&
			       atomic_load(&o.ended) == 1,
		       "at the same address: registered anew");
	else
		tap_is_int(atomic_load(&o.made), 2, "elsewhere: registered");
	app_free(app, again);
	a = NULL;
	tap_is_int(reg_get(reg, at(again), PIECE, 0, false, &a), -EINVAL,
		   "freed and not allocated: refused");
	tap_is_int(atomic_load(&o.alive), again == addr ? 1 : 2,
		   "while somebody holds the old one");
	reg_put(reg, b);
	reg_close(reg);
	tap_is_int(atomic_load(&o.alive), 0, "which ends with its last user");
}

static void told(void)
{
	const uint64_t addr = app_map(app, 0, PIECE, 3, true);
	const struct reg_entry *a = NULL, *b = NULL, *c = NULL;
	struct owner o = {0};
	struct reg *reg = open_with(&o, REG_TOLD, 10);

	reg_get(reg, at(addr), PIECE, 0, false, &a);
	reg_get(reg, at(addr + PIECE), PIECE, 0, false, &b);
	reg_get(reg, at(addr + 2 * PIECE), PIECE, 0, false, &c);
	reg_put(reg, a);
	tap_is_int(reg_invalidate(reg, at(addr + 10), PIECE), 2,
		   "two of three are freed");
	tap_is_int(atomic_load(&o.ended), 1, "the one that nobody holds ends at once");
	reg_put(reg, b);
	tap_is_int(atomic_load(&o.ended), 2, "the other when it is let go");
	reg_put(reg, c);
	tap_ok(reg_get(reg, at(addr + 2 * PIECE), 5, 0, false, &a) == 0 && a == c,
	       "the third is there");
	reg_put(reg, a);
	tap_ok(reg_get(reg, at(addr), PIECE, 0, false, &a) == 0 &&
		       atomic_load(&o.made) == 4,
	       "the first is made anew");
	reg_put(reg, a);
	reg_close(reg);
	tap_is_int(atomic_load(&o.alive), 0, "and none is left");
	app_unmap(app, addr, PIECE, 3);
}

static void oldest(void)
{
	const uint64_t addr = app_map(app, 0, PIECE, 6, true);
	const struct reg_entry *e[6], *kept = NULL;
	struct owner o = {0};
	struct reg *reg = open_with(&o, REG_TOLD, 2);
	uint64_t part = 0;
	struct reg_stats s;

	reg_get(reg, at(addr + 5 * PIECE), PIECE, REG_KEEP, false, &kept);
	reg_put(reg, kept);
	for (uint32_t i = 0; i < 5; i++)
		reg_get(reg, at(addr + i * PIECE), PIECE, 0, false, &e[i]);
	tap_is_int(atomic_load(&o.ended), 0, "more than may be remembered, all held");
	for (int i = 0; i < 5; i++)
		reg_put(reg, e[i]);
	reg_stats_get(reg, &s);
	tap_ok(atomic_load(&o.ended) == 3 && s.evicted == 3,
	       "let go: two are remembered");
	tap_is_int(reg_part(reg, at(addr), PIECE, &e[0], &part), -ENOENT,
		   "the oldest went");
	tap_ok(reg_part(reg, at(addr + 5 * PIECE + 7), PIECE, &e[5], &part) == 0 &&
		       e[5] == kept && part == PIECE - 7,
	       "but not the one to be kept");
	reg_put(reg, e[5]);
	tap_ok(reg_part(reg, at(addr + 3 * PIECE + 9), 3 * PIECE, &e[3], &part) == 0 &&
		       part == PIECE - 9,
	       "a transfer over several registrations is cut at their ends");
	reg_put(reg, e[3]);
	reg_close(reg);
	tap_is_int(atomic_load(&o.alive), 0, "and none is left");
	app_unmap(app, addr, PIECE, 6);
}

static void later(void)
{
	const uint64_t addr = app_map(app, 0, PIECE, 2, true);
	const struct reg_entry *e = NULL;
	struct owner o = {.slow = 100};
	struct reg *reg = open_with(&o, 0, 10);
	struct reg_stats s;
	int ret, tries = 0;

	tap_is_int(reg_get(reg, at(addr), PIECE, 0, true, &e), -EBUSY,
		   "none, while a stream is captured: refused");
	tap_is_int(reg_get(reg, at(addr), PIECE, REG_LATER, false, &e), -EAGAIN,
		   "one that takes long is left to the thread");
	while ((ret = reg_get(reg, at(addr), PIECE, REG_LATER, false, &e)) == -EAGAIN &&
	       tries++ < 60000)
		usleep(1000);
	tap_ok(ret == 0 && atomic_load(&o.made) == 1,
	       "and is there in the end, made once");
	if (ret == 0)
		reg_put(reg, e);
	ret = reg_get(reg, at(addr), PIECE, 0, true, &e);
	tap_is_int(ret, 0, "one that is there is found in a capture, too");
	if (ret == 0)
		reg_put(reg, e);
	reg_stats_get(reg, &s);
	ret = 0;
	for (int i = 17; i < REG_BUCKETS; i++)
		ret += (int)s.took[i];
	tap_is_int(ret, 1, "the histogram has one of a tenth of a second, or longer");
	atomic_store(&o.slow, 0);
	atomic_store(&o.fail, 1);
	tap_is_int(reg_get(reg, at(addr + PIECE), PIECE, 0, false, &e), -ENOMEM,
		   "an owner that cannot: said");
	tap_is_int(reg_get(reg, at(addr + PIECE), PIECE, 0, false, &e), 0,
		   "and asked again the next time");
	reg_put(reg, e);
	if (app_on_mock(app)) {
		app_knob(app, "dmabuf", 0);
		reg_invalidate(reg, at(addr), 2 * PIECE);
		tap_is_int(reg_get(reg, at(addr), PIECE, 0, false, &e), 0,
			   "an owner that finds no direct path");
		tap_ok(e->made.path == REG_PATH_STAGED && e->made.why[0],
		       "has one that stages, with the reason: %s", e->made.why);
		reg_put(reg, e);
		app_knob(app, "dmabuf", 1);
	}
	reg_invalidate(reg, at(addr), 2 * PIECE);
	atomic_store(&o.slow, 50);
	tap_is_int(reg_get(reg, at(addr), 10, REG_LATER, false, &e), -EAGAIN,
		   "another one");
	reg_close(reg);
	tap_is_int(atomic_load(&o.alive), 0, "closed with one to be made: none is left");
	app_unmap(app, addr, PIECE, 2);
}

#define THREADS 6

struct crowd {
	struct reg *reg;
	uint64_t addr;
	unsigned seed;
	_Atomic int *bad;
};

/* Gets and lets go, and now and then frees, all over the same few pieces. */
static void *crowd_run(void *arg)
{
	struct crowd *c = arg;
	const int rounds = tap_short() ? 300 : 3000;

	for (int i = 0; i < rounds; i++) {
		const uint64_t start = c->addr + (uint64_t)(rand_r(&c->seed) % 7) * PIECE;
		const uint64_t len = (1u + (uint64_t)rand_r(&c->seed) % 2) * PIECE;
		const struct reg_entry *e = NULL;
		int ret;

		if (rand_r(&c->seed) % 20 == 0) {
			reg_invalidate(c->reg, at(start), len);
			continue;
		}
		ret = reg_get(c->reg, at(start), len,
			      rand_r(&c->seed) % 3 == 0 ? REG_LATER : 0, false, &e);
		if (ret == 0 && (e->addr > start || e->addr + e->len < start + len ||
				 e->made.path == REG_PATH_NONE))
			atomic_fetch_add(c->bad, 1);
		if (ret && ret != -EAGAIN && ret != -EINVAL)
			atomic_fetch_add(c->bad, 1);
		if (ret == 0)
			reg_put(c->reg, e);
	}
	return NULL;
}

static void crowd(void)
{
	const uint64_t addr = app_map(app, 0, PIECE, 8, true);
	struct crowd c[THREADS];
	pthread_t thread[THREADS];
	struct owner o = {0};
	struct reg *reg = open_with(&o, 0, 3);
	_Atomic int bad = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		c[i] = (struct crowd){reg, addr, i + 1, &bad};
		if (pthread_create(&thread[i], NULL, crowd_run, &c[i]) != 0)
			exit(1);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tap_is_int(atomic_load(&bad), 0,
		   "threads that get, put and free at once get what they ask");
	reg_close(reg);
	tap_ok(atomic_load(&o.alive) == 0 &&
		       atomic_load(&o.made) == atomic_load(&o.ended),
	       "each of %d was ended once", atomic_load(&o.made));
	app_unmap(app, addr, PIECE, 8);
}

int main(void)
{
	app = app_open();
	if (!app)
		return 1;
	gpu = app_gpu(app);
	app_device(app, 0);
	found();
	freed();
	told();
	oldest();
	later();
	crowd();
	gpu_close(gpu);
	return tap_done();
}
