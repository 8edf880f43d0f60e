/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/reg.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/itree.h"
#include "util/list.h"

#define PIECES_MAX 65536 /* of one registration: 128 GiB in the smallest pieces */
#define WAIT_S	   60	 /* for a registration that another thread makes */

enum state { NEW, REGISTERING, READY, DRAINING, DEAD };

struct entry {
	struct reg_entry pub; /* first */
	struct itree_node node;
	struct list link; /* of what is unused (READY) or to be made (NEW) */
	enum state state;
	bool keep;
	bool gone; /* REGISTERING, and the memory was freed meanwhile */
	uint32_t users;
	int error; /* of make(), for who waited */
	struct gpu_range first;
	uint64_t *ids; /* of its pieces */
	uint32_t pieces;
};

struct reg {
	struct gpu *gpu;
	const struct reg_ops *ops;
	void *arg;
	bool told;
	struct reg_limits limits;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool closing;
	struct itree tree;  /* what is found: NEW to READY */
	struct list unused; /* READY without a user, the oldest first */
	struct list jobs;   /* NEW, for the thread */
	uint32_t unused_count;
	uint64_t unused_bytes;
	struct reg_stats stats;
};

static const char *const path_names[REG_PATH_COUNT] = {
	[REG_PATH_NONE] = "none",	 [REG_PATH_DMABUF] = "dma-buf",
	[REG_PATH_PEER] = "peer memory", [REG_PATH_IPC] = "ipc",
	[REG_PATH_STAGED] = "staged",
};

const char *reg_path_name(enum reg_path path)
{
	return path < REG_PATH_COUNT ? path_names[path] : "?";
}

/* The only writer of a state. Under the lock. */
static void entry_turn(struct entry *e, enum state to)
{
	static const unsigned allowed[] = {
		[NEW] = 1u << REGISTERING | 1u << DEAD,
		[REGISTERING] = 1u << READY | 1u << DEAD,
		[READY] = 1u << DRAINING,
		[DRAINING] = 1u << DEAD,
		[DEAD] = 0,
	};

	assert(allowed[e->state] >> to & 1);
	(void)allowed;
	e->state = to;
}

static void entry_free(struct entry *e)
{
	free(e->ids);
	free(e);
}

static struct entry *entry_of(struct itree_node *node)
{
	return node ? container_of(node, struct entry, node) : NULL;
}

/* The ids of all pieces of [addr, addr + len), in order, and the first piece. -EINVAL:
 * not all of it is memory of one device. Or compares them with those of *e: -ESTALE. */
static int walk(struct gpu *gpu, uint64_t addr, uint64_t len, struct entry *e,
		bool compare)
{
	const uint64_t end = addr + len;
	uint64_t *room = NULL;
	uint32_t count = 0;
	struct gpu_range r;
	int ret = 0;

	while (addr < end) {
		ret = gpu_query(gpu, (void *)(uintptr_t)addr, 1, &r);
		if (ret == 0 && (r.kind != GPU_MEM_DEVICE || count == PIECES_MAX ||
				 (count && r.device != e->first.device)))
			ret = -EINVAL;
		if (compare && (ret || count == e->pieces || r.id != e->ids[count]))
			return -ESTALE;
		if (ret == 0 && !compare && (count & (count - 1)) == 0) {
			uint64_t *more =
				realloc(room, (count ? 2 * count : 1) * sizeof(*room));

			room = more ? more : room;
			ret = more ? 0 : -ENOMEM;
		}
		if (ret)
			break;
		if (count == 0 && !compare)
			e->first = r;
		if (!compare)
			room[count] = r.id;
		count++;
		addr = r.base + r.len;
	}
	if (compare)
		return count == e->pieces ? 0 : -ESTALE;
	if (ret) {
		free(room);
		return ret;
	}
	e->ids = room;
	e->pieces = count;
	return 0;
}

static int entry_new(struct reg *reg, uint64_t addr, uint64_t len, uint32_t flags,
		     struct entry **out)
{
	struct entry *e;
	int ret;

	if (len == 0 || addr + len < addr)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	ret = walk(reg->gpu, addr, len, e, false);
	if (ret) {
		entry_free(e);
		return ret;
	}
	e->pub.addr = addr;
	e->pub.len = len;
	e->pub.device = e->first.device;
	e->node.start = addr;
	e->node.end = addr + len;
	e->keep = flags & REG_KEEP;
	list_init(&e->link);
	*out = e;
	return 0;
}

/* ---- under the lock ---- */

static void hold(struct reg *reg, struct entry *e)
{
	if (e->users++ == 0 && e->state == READY && !list_empty(&e->link)) {
		list_remove(&e->link);
		reg->unused_count--;
		reg->unused_bytes -= e->pub.len;
	}
}

/* Nobody finds it any more; who holds it goes on. */
static void drain(struct reg *reg, struct entry *e)
{
	itree_take(&reg->tree, &e->node);
	if (e->users == 0 && !list_empty(&e->link)) {
		list_remove(&e->link);
		reg->unused_count--;
		reg->unused_bytes -= e->pub.len;
	}
	entry_turn(e, DRAINING);
}

/* Somebody lets go; what is to be ended goes to the list. */
static void release(struct reg *reg, struct entry *e, struct list *over)
{
	if (--e->users)
		return;
	if (e->state == DRAINING) {
		list_push_back(over, &e->link);
		return;
	}
	if (e->state != READY || e->keep)
		return;
	list_push_back(&reg->unused, &e->link);
	reg->unused_count++;
	reg->unused_bytes += e->pub.len;
	while (reg->unused_count > reg->limits.entries ||
	       reg->unused_bytes > reg->limits.bytes) {
		struct entry *old = container_of(reg->unused.next, struct entry, link);

		drain(reg, old);
		list_push_back(over, &old->link);
		reg->stats.evicted++;
	}
}

/* Gives the lock back, and ends what is over. */
static void unlock_and_end(struct reg *reg, struct list *over)
{
	struct list *link;

	list_foreach (at, over)
		entry_turn(container_of(at, struct entry, link), DEAD);
	pthread_mutex_unlock(&reg->lock);
	while ((link = list_pop_front(over))) {
		struct entry *e = container_of(link, struct entry, link);

		reg->ops->end(reg->arg, &e->pub.made);
		entry_free(e);
	}
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000;
}

static unsigned bucket(uint64_t us)
{
	unsigned i = 0;

	while (i + 1 < REG_BUCKETS && us >> i)
		i++;
	return i;
}

/* Makes one, giving the lock back meanwhile. The caller counts as a user of it. */
static void make(struct reg *reg, struct entry *e)
{
	uint64_t start;
	int ret;

	entry_turn(e, REGISTERING);
	pthread_mutex_unlock(&reg->lock);
	start = now_us();
	ret = reg->ops->make(reg->arg, e->pub.addr, e->pub.len, &e->first, &e->pub.made);
	start = now_us() - start;
	pthread_mutex_lock(&reg->lock);
	reg->stats.took[bucket(start)]++;
	if (ret) {
		reg->stats.failed++;
		if (!e->gone)
			itree_take(&reg->tree, &e->node);
		entry_turn(e, DEAD);
		e->error = ret;
	} else {
		reg->stats.paths[e->pub.made.path]++;
		entry_turn(e, READY);
		if (e->gone) {
			e->error = -EINVAL; /* freed while it was registered */
			entry_turn(e, DRAINING);
		}
	}
	pthread_cond_broadcast(&reg->changed);
}

/* Lets go of one that came to nothing, and says what. */
static int refuse(struct reg *reg, struct entry *e, struct list *over)
{
	const int error = e->error;

	if (e->state == DEAD) {
		if (--e->users == 0)
			entry_free(e);
	} else {
		release(reg, e, over);
	}
	return error;
}

/* Until another thread has made it: 0, it is held; 1, look again; or what went wrong. */
static int await(struct reg *reg, struct entry *e, struct list *over)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_S;
	e->users++;
	while ((e->state == NEW || e->state == REGISTERING) && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&reg->changed, &reg->lock, &until);
	if (e->state == READY)
		return 0;
	if (e->state == NEW || e->state == REGISTERING) {
		e->users--;
		return -ETIMEDOUT;
	}
	rc = refuse(reg, e, over);
	return rc ? rc : 1;
}

/* What is found for a range: as await(). */
static int take(struct reg *reg, struct entry *e, uint32_t flags, bool captured,
		struct list *over)
{
	int ret;

	if (e->state != READY && captured)
		return -EBUSY;
	if (e->state != READY && flags & REG_LATER)
		return -EAGAIN;
	if (e->state != READY)
		return await(reg, e, over);
	hold(reg, e);
	if (!reg->told) {
		pthread_mutex_unlock(&reg->lock);
		ret = walk(reg->gpu, e->pub.addr, e->pub.len, e, true);
		pthread_mutex_lock(&reg->lock);
		if (ret) {
			if (e->state == READY) {
				reg->stats.stale++;
				drain(reg, e);
			}
			release(reg, e, over);
			return 1;
		}
	}
	reg->stats.hits++;
	return 0;
}

/* A new one: made here, or by the thread. Held where 0 is returned. */
static int start(struct reg *reg, struct entry *e, uint32_t flags, struct list *over)
{
	reg->stats.misses++;
	itree_add(&reg->tree, &e->node);
	if (flags & REG_LATER) {
		list_push_back(&reg->jobs, &e->link);
		pthread_cond_broadcast(&reg->changed);
		return -EAGAIN;
	}
	e->users = 1;
	make(reg, e);
	return e->error ? refuse(reg, e, over) : 0;
}

int reg_get(struct reg *reg, const void *addr, uint64_t len, uint32_t flags,
	    bool captured, const struct reg_entry **entry)
{
	const uint64_t at = (uint64_t)(uintptr_t)addr;
	struct entry *e, *fresh = NULL;
	struct list over;
	int ret;

	list_init(&over);
	pthread_mutex_lock(&reg->lock);
	do {
		e = entry_of(itree_cover(&reg->tree, at, at + len));
		if (e) {
			ret = take(reg, e, flags, captured, &over);
		} else if (captured) {
			ret = -EBUSY;
		} else if (fresh) {
			e = fresh;
			fresh = NULL;
			ret = start(reg, e, flags, &over);
		} else {
			pthread_mutex_unlock(&reg->lock);
			ret = entry_new(reg, at, len, flags, &fresh);
			pthread_mutex_lock(&reg->lock);
			ret = ret ? ret : 1;
		}
	} while (ret == 1);
	if (ret == 0 && flags & REG_KEEP)
		e->keep = true;
	unlock_and_end(reg, &over);
	if (fresh)
		entry_free(fresh);
	if (ret == 0)
		*entry = &e->pub;
	return ret;
}

void reg_put(struct reg *reg, const struct reg_entry *entry)
{
	struct entry *e = (struct entry *)(uintptr_t)entry;
	struct list over;

	list_init(&over);
	pthread_mutex_lock(&reg->lock);
	release(reg, e, &over);
	unlock_and_end(reg, &over);
}

int reg_part(struct reg *reg, const void *addr, uint64_t len,
	     const struct reg_entry **entry, uint64_t *part)
{
	const uint64_t at = (uint64_t)(uintptr_t)addr;
	struct itree_node *node;
	struct entry *best;
	struct list over;
	int ret = -ENOENT;

	if (len == 0 || at + len < at)
		return -EINVAL;
	list_init(&over);
	pthread_mutex_lock(&reg->lock);
	do {
		best = NULL;
		node = NULL;
		while ((node = itree_meet(&reg->tree, at, at + 1, node))) {
			struct entry *e = entry_of(node);

			if (e->state == READY && (!best || e->node.end > best->node.end))
				best = e;
		}
		ret = best ? take(reg, best, 0, false, &over) : -ENOENT;
	} while (ret == 1);
	unlock_and_end(reg, &over);
	if (ret)
		return ret;
	*part = best->node.end - at < len ? best->node.end - at : len;
	*entry = &best->pub;
	return 0;
}

uint32_t reg_invalidate(struct reg *reg, const void *addr, uint64_t len)
{
	const uint64_t at = (uint64_t)(uintptr_t)addr;
	struct itree_node *node;
	uint32_t count = 0;
	struct list over;

	list_init(&over);
	pthread_mutex_lock(&reg->lock);
	while ((node = itree_meet(&reg->tree, at, at + len, NULL))) {
		struct entry *e = entry_of(node);

		count++;
		if (e->state == READY) {
			drain(reg, e);
			if (e->users == 0)
				list_push_back(&over, &e->link);
			continue;
		}
		itree_take(&reg->tree, &e->node);
		e->gone = true;
		if (e->state == NEW) {
			list_remove(&e->link);
			entry_turn(e, DEAD);
			e->error = -EINVAL;
			if (e->users == 0)
				entry_free(e);
			pthread_cond_broadcast(&reg->changed);
		}
	}
	unlock_and_end(reg, &over);
	return count;
}

static void *reg_run(void *arg)
{
	struct reg *reg = arg;
	struct list *link;

	gpu_thread_init(reg->gpu);
	pthread_mutex_lock(&reg->lock);
	while (!reg->closing) {
		struct list over;
		struct entry *e;

		link = list_pop_front(&reg->jobs);
		if (!link) {
			pthread_cond_wait(&reg->changed, &reg->lock);
			continue;
		}
		list_init(&over);
		e = container_of(link, struct entry, link);
		e->users++;
		make(reg, e);
		refuse(reg, e, &over);
		unlock_and_end(reg, &over);
		pthread_mutex_lock(&reg->lock);
	}
	pthread_mutex_unlock(&reg->lock);
	return NULL;
}

int reg_open(struct gpu *gpu, const struct reg_ops *ops, void *arg, uint32_t flags,
	     const struct reg_limits *limits, struct reg **out)
{
	struct reg *reg = calloc(1, sizeof(*reg));
	pthread_condattr_t attr;

	if (!reg)
		return -ENOMEM;
	reg->gpu = gpu;
	reg->ops = ops;
	reg->arg = arg;
	reg->told = flags & REG_TOLD;
	reg->limits = *limits;
	pthread_mutex_init(&reg->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&reg->changed, &attr);
	pthread_condattr_destroy(&attr);
	list_init(&reg->unused);
	list_init(&reg->jobs);
	if (pthread_create(&reg->thread, NULL, reg_run, reg) != 0) {
		pthread_cond_destroy(&reg->changed);
		pthread_mutex_destroy(&reg->lock);
		free(reg);
		return -EAGAIN;
	}
	*out = reg;
	return 0;
}

void reg_close(struct reg *reg)
{
	pthread_mutex_lock(&reg->lock);
	reg->closing = true;
	pthread_cond_broadcast(&reg->changed);
	pthread_mutex_unlock(&reg->lock);
	pthread_join(reg->thread, NULL);
	reg_invalidate(reg, NULL, UINT64_MAX);
	pthread_cond_destroy(&reg->changed);
	pthread_mutex_destroy(&reg->lock);
	free(reg);
}

void reg_stats_get(struct reg *reg, struct reg_stats *stats)
{
	pthread_mutex_lock(&reg->lock);
	*stats = reg->stats;
	pthread_mutex_unlock(&reg->lock);
}
