/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache of local registrations; see regcache.h.
 *
 * Those that are kept are sorted by address and don't overlap: what overlaps is replaced
 * by one that covers all of it. With the lock held nothing is allocated, freed or given
 * to the wire (monitor.h says why): what is over goes to the list `dead`, and whoever
 * comes next drops it.
 */
#include "config.h"

#include "prov/mem/regcache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/fork.h"
#include "prov/mem/monitor.h"
#include "prov/mem/params.h"

struct entry {
	struct mem_reg reg; /* first: it is what the user has */
	struct list node;   /* idle, used, dead or coming of the cache */
	uint32_t users;
	bool kept;    /* in the table */
	bool watched; /* on behalf of this one */
	bool stale;   /* coming: what it is being made of is gone */
};

struct mem_regcache {
	const struct mem_reg_ops *ops;
	void *arg;
	struct mem_monitor *monitor; /* NULL: nothing is kept */
	struct mem_watcher watcher;
	uint32_t born; /* mem_fork_generation */
	uintptr_t page;
	uint32_t max_count;
	uint64_t max_size;
	pthread_mutex_t lock; /* guards all below, and the entries but handle */
	uintptr_t *starts;    /* max_count; by which the table is searched */
	struct entry **table; /* max_count, in the order of addresses */
	uint32_t count;
	struct list idle;   /* struct entry: kept and without users, last used first */
	struct list used;   /* struct entry: with users, kept or not */
	struct list dead;   /* struct entry: to be dropped */
	struct list coming; /* struct entry: being registered */
	struct mem_regcache_stats stats;
};

/* ---- the table, lock held
 * ------------------------------------------------------------------ */

/* How many begin at or before `at`. */
static uint32_t table_rank(const struct mem_regcache *c, uintptr_t at)
{
	uint32_t low = 0, high = c->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (c->starts[mid] <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The first that ends behind `at`; count: none. */
static uint32_t table_from(const struct mem_regcache *c, uintptr_t at)
{
	uint32_t i = table_rank(c, at);

	return i > 0 && c->table[i - 1]->reg.end > at ? i - 1 : i;
}

static struct entry *table_cover(const struct mem_regcache *c, struct mem_range r)
{
	uint32_t i = table_rank(c, r.start);

	return i > 0 && c->table[i - 1]->reg.end >= r.end ? c->table[i - 1] : NULL;
}

static void table_insert(struct mem_regcache *c, struct entry *e)
{
	uint32_t i = table_rank(c, e->reg.start), behind = c->count - i;

	memmove(&c->starts[i + 1], &c->starts[i], behind * sizeof(*c->starts));
	memmove(&c->table[i + 1], &c->table[i], behind * sizeof(struct entry *));
	c->starts[i] = e->reg.start;
	c->table[i] = e;
	c->count++;
	c->stats.size += e->reg.end - e->reg.start;
	e->kept = true;
}

/* Out of the table, in which it is number i; dropped when its last user is done. */
static void table_remove(struct mem_regcache *c, uint32_t i)
{
	struct entry *e = c->table[i];
	uint32_t behind = c->count - i - 1;

	memmove(&c->starts[i], &c->starts[i + 1], behind * sizeof(*c->starts));
	memmove(&c->table[i], &c->table[i + 1], behind * sizeof(struct entry *));
	c->count--;
	c->stats.size -= e->reg.end - e->reg.start;
	e->kept = false;
	if (e->users == 0) {
		list_remove(&e->node);
		list_push_back(&c->dead, &e->node);
	}
}

static void table_remove_entry(struct mem_regcache *c, const struct entry *e)
{
	table_remove(c, table_rank(c, e->reg.start) - 1);
}

/* Gives up the one that was idle longest; false: all are in use. */
static bool evict(struct mem_regcache *c)
{
	if (list_empty(&c->idle))
		return false;
	table_remove_entry(c, container_of(c->idle.prev, struct entry, node));
	c->stats.evicted++;
	return true;
}

/* ---- the monitor's calls
 * --------------------------------------------------------------------- */

static void on_gone(struct mem_watcher *w, struct mem_range r)
{
	struct mem_regcache *c = container_of(w, struct mem_regcache, watcher);
	uint32_t i = table_from(c, r.start);

	list_foreach (n, &c->coming) {
		struct entry *e = container_of(n, struct entry, node);

		e->stale = e->stale || (e->reg.start < r.end && r.start < e->reg.end);
	}
	while (i < c->count && c->starts[i] < r.end) {
		/* What is there now may be watched by somebody else. */
		c->table[i]->watched = false;
		table_remove(c, i);
		c->stats.gone++;
	}
}

static bool on_has(struct mem_watcher *w, struct mem_range r)
{
	struct mem_regcache *c = container_of(w, struct mem_regcache, watcher);
	uint32_t i = table_from(c, r.start);

	return i < c->count && c->starts[i] < r.end;
}

/* ---- dropping, without the lock
 * ------------------------------------------------------------- */

static void entry_drop(struct mem_regcache *c, struct entry *e)
{
	if (e->reg.handle)
		c->ops->drop(c->arg, e->reg.handle);
	if (e->watched)
		mem_monitor_unwatch(c->monitor,
				    (struct mem_range){e->reg.start, e->reg.end});
	free(e);
}

static void bury(struct mem_regcache *c)
{
	for (;;) {
		struct list *n;

		pthread_mutex_lock(&c->lock);
		n = list_pop_front(&c->dead);
		pthread_mutex_unlock(&c->lock);
		if (!n)
			return;
		entry_drop(c, container_of(n, struct entry, node));
	}
}

void mem_regcache_flush(struct mem_regcache *c)
{
	if (c->born != mem_fork_generation())
		return;
	pthread_mutex_lock(&c->lock);
	while (!list_empty(&c->idle))
		table_remove_entry(c, container_of(c->idle.next, struct entry, node));
	pthread_mutex_unlock(&c->lock);
	bury(c);
}

/* ---- getting
 * -------------------------------------------------------------------------------- */

static void use(struct mem_regcache *c, struct entry *e)
{
	if (e->users++ == 0) {
		list_remove(&e->node);
		list_push_back(&c->used, &e->node);
	}
}

/* r, and all that is kept and overlaps with it; what is in the table may change. */
static struct mem_range united(const struct mem_regcache *c, struct mem_range r)
{
	uint32_t i = table_from(c, r.start);

	for (; i < c->count && c->starts[i] < r.end; i++) {
		const struct mem_reg *reg = &c->table[i]->reg;

		r.start = reg->start < r.start ? reg->start : r.start;
		r.end = reg->end > r.end ? reg->end : r.end;
	}
	return r;
}

/* Whether e may replace what it overlaps with, and there is room for it then. */
static bool keep(struct mem_regcache *c, struct entry *e)
{
	struct mem_range r = {e->reg.start, e->reg.end}, all = united(c, r);
	uint64_t size = r.end - r.start;
	uint32_t i;

	if (all.start != r.start || all.end != r.end || size > c->max_size)
		return false;
	for (i = table_from(c, r.start); i < c->count && c->starts[i] < r.end;)
		table_remove(c, i);
	while (c->count >= c->max_count || c->stats.size > c->max_size - size) {
		if (!evict(c))
			return false;
	}
	table_insert(c, e);
	return true;
}

/* Registers r; -FI_ENOMEM is tried again without what is idle. */
static int add(struct mem_regcache *c, struct mem_range r, struct entry *e)
{
	void *start = (void *)r.start;
	size_t len = r.end - r.start;
	int rc = c->ops->add(c->arg, start, len, &e->reg.handle);

	if (rc == -FI_ENOMEM) {
		mem_regcache_flush(c);
		rc = c->ops->add(c->arg, start, len, &e->reg.handle);
	}
	return rc;
}

static void entry_place(struct entry *e, struct mem_range r)
{
	e->reg.start = r.start;
	e->reg.end = r.end;
}

/* With the monitor looking from before it is registered until it is in the table: what
 * ends meanwhile is marked. */
static int add_kept(struct mem_regcache *c, struct mem_range r, struct entry *e)
{
	struct mem_range all;
	int rc;

	pthread_mutex_lock(&c->lock);
	all = united(c, r);
	if (all.end - all.start > c->max_size)
		all = r;
	entry_place(e, all);
	list_push_back(&c->coming, &e->node);
	pthread_mutex_unlock(&c->lock);
	e->watched = mem_monitor_watch(c->monitor, all);
	rc = add(c, all, e);
	if (rc && (all.start != r.start || all.end != r.end)) {
		all = r;
		rc = add(c, all, e);
	}
	pthread_mutex_lock(&c->lock);
	list_remove(&e->node);
	entry_place(e, all);
	if (!rc)
		list_push_back(&c->used, &e->node);
	if (rc || !e->watched || e->stale || !keep(c, e)) {
		e->watched = false; /* as in on_gone */
		c->stats.uncached++;
	}
	pthread_mutex_unlock(&c->lock);
	mem_monitor_watched(c->monitor);
	bury(c);
	return rc;
}

static int miss(struct mem_regcache *c, struct mem_range r, bool settled,
		struct mem_reg **reg)
{
	struct entry *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return -FI_ENOMEM;
	list_init(&e->node);
	e->users = 1;
	if (settled) {
		rc = add_kept(c, r, e);
	} else {
		entry_place(e, r);
		rc = add(c, r, e);
		pthread_mutex_lock(&c->lock);
		if (!rc)
			list_push_back(&c->used, &e->node);
		c->stats.uncached++;
		pthread_mutex_unlock(&c->lock);
	}
	if (rc) {
		e->reg.handle = NULL;
		entry_drop(c, e);
		return rc;
	}
	*reg = &e->reg;
	return 0;
}

int mem_regcache_get(struct mem_regcache *c, const void *base, size_t len,
		     struct mem_reg **reg)
{
	uintptr_t first = (uintptr_t)base, last = first + len - 1;
	struct mem_range r = {first & ~(c->page - 1), (last | (c->page - 1)) + 1};
	struct entry *e = NULL;
	bool settled;

	/* To the very end of the address space there is nothing to register. */
	if (len == 0 || last < first || r.end == 0)
		return -FI_EINVAL;
	if (__builtin_expect(c->born != mem_fork_generation(), 0))
		return -FI_EOPBADSTATE;
	/* Who got these addresses has them since an earlier mapping was gone: that must
	 * be known here before anything is looked up. */
	settled = c->monitor && mem_monitor_settle(c->monitor);
	pthread_mutex_lock(&c->lock);
	if (settled)
		e = table_cover(c, r);
	if (e) {
		use(c, e);
		c->stats.hits++;
	} else {
		c->stats.misses++;
	}
	pthread_mutex_unlock(&c->lock);
	if (!e)
		return miss(c, r, settled, reg);
	*reg = &e->reg;
	return 0;
}

void mem_regcache_put(struct mem_regcache *c, struct mem_reg *reg)
{
	struct entry *e = (struct entry *)reg;
	bool last, dead;

	if (c->born != mem_fork_generation())
		return;
	pthread_mutex_lock(&c->lock);
	last = --e->users == 0;
	if (last) {
		list_remove(&e->node);
		list_push_front(e->kept ? &c->idle : &c->dead, &e->node);
	}
	dead = !list_empty(&c->dead);
	pthread_mutex_unlock(&c->lock);
	if (dead)
		bury(c);
}

/* ---- life
 * ------------------------------------------------------------------------------ */

static void release(struct mem_regcache *c)
{
	pthread_mutex_destroy(&c->lock);
	free(c->starts);
	free(c->table);
	free(c);
}

int mem_regcache_open(const struct mem_regcache_attr *attr, struct mem_regcache **out)
{
	struct mem_regcache *c = calloc(1, sizeof(*c));

	if (!c)
		return -FI_ENOMEM;
	c->ops = attr->ops;
	c->arg = attr->arg;
	c->born = mem_fork_generation();
	c->page = (uintptr_t)sysconf(_SC_PAGESIZE);
	c->max_count = attr->max_count;
	c->max_size = attr->max_size;
	list_init(&c->idle);
	list_init(&c->used);
	list_init(&c->coming);
	list_init(&c->dead);
	pthread_mutex_init(&c->lock, NULL);
	c->starts = calloc((size_t)c->max_count + 1, sizeof(*c->starts));
	c->table = calloc((size_t)c->max_count + 1, sizeof(struct entry *));
	if (!c->starts || !c->table) {
		release(c);
		return -FI_ENOMEM;
	}
	if (c->max_count > 0 && !attr->no_monitor && !mem_monitor_get(&c->monitor)) {
		c->watcher.lock = &c->lock;
		c->watcher.gone = on_gone;
		c->watcher.has = on_has;
		mem_monitor_enter(c->monitor, &c->watcher);
	}
	*out = c;
	return 0;
}

bool mem_regcache_keeps(const struct mem_regcache *c)
{
	return c->monitor != NULL;
}

void mem_regcache_stats(struct mem_regcache *c, struct mem_regcache_stats *stats)
{
	pthread_mutex_lock(&c->lock);
	*stats = c->stats;
	stats->count = c->count;
	pthread_mutex_unlock(&c->lock);
}

/* In a child the locks may be held by threads that aren't there, and the registrations
 * are the parent's. */
static void free_all(struct list *entries)
{
	struct list *n;

	while ((n = list_pop_front(entries)))
		free(container_of(n, struct entry, node));
}

static void close_inherited(struct mem_regcache *c)
{
	free_all(&c->idle);
	free_all(&c->used);
	free_all(&c->dead);
	free(c->starts);
	free(c->table);
	free(c);
}

/* Those that somebody still uses end as well: he doesn't put them any more. */
static int end_used(struct mem_regcache *c)
{
	struct list *n;
	int ended = 0;

	pthread_mutex_lock(&c->lock);
	while ((n = list_pop_front(&c->used))) {
		struct entry *e = container_of(n, struct entry, node);

		e->users = 0;
		if (e->kept)
			table_remove_entry(c, e);
		else
			list_push_back(&c->dead, &e->node);
		ended++;
	}
	pthread_mutex_unlock(&c->lock);
	bury(c);
	return ended;
}

void mem_regcache_close(struct mem_regcache *c)
{
	struct mem_regcache_stats s;
	int ended;

	if (c->born != mem_fork_generation()) {
		close_inherited(c);
		return;
	}
	mem_regcache_flush(c);
	ended = end_used(c);
	mem_regcache_stats(c, &s);
	FI_INFO(&weft_provider, FI_LOG_MR,
		"cache of registrations: %llu hits, %llu misses, %llu gone, %llu "
		"evicted, "
		"%llu not kept; %d were still in use\n",
		(unsigned long long)s.hits, (unsigned long long)s.misses,
		(unsigned long long)s.gone, (unsigned long long)s.evicted,
		(unsigned long long)s.uncached, ended);
	if (c->monitor) {
		mem_monitor_leave(c->monitor, &c->watcher);
		mem_monitor_put(c->monitor);
	}
	release(c);
}
