/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory monitor: tells caches of registrations which mappings of this process are
 * gone, before their addresses can be used for anything else. One for a process, shared
 * by its caches. It is a descriptor that the kernel tells (uffd.h) and a thread that
 * reads it; whoever can't wait for the thread reads it himself.
 *
 * Who unmaps watched memory waits in that call until the news was read, and reading takes
 * the locks of all caches. So with such a lock held nobody may do anything that could
 * give memory back: no free, no munmap, no call into a wire.
 */
#ifndef WEFT_MEM_MONITOR_H
#define WEFT_MEM_MONITOR_H

#include <pthread.h>
#include <stdbool.h>

#include "prov/mem/uffd.h"
#include "util/list.h"

struct mem_monitor;

/* Who wants to hear. */
struct mem_watcher {
	struct list node;
	pthread_mutex_t *lock; /* held during both */
	/* Those pages are gone, or may be others. Never waits, never frees. */
	void (*gone)(struct mem_watcher *w, struct mem_range r);
	/* Whether it has something there. */
	bool (*has)(struct mem_watcher *w, struct mem_range r);
};

/* The process's monitor, begun by the first who asks. -FI_ENOSYS: there can't be one;
 * why is said once (FI_LOG_LEVEL=info). */
int mem_monitor_get(struct mem_monitor **m);
void mem_monitor_put(struct mem_monitor *m);

/* Not with the watcher's lock held. */
void mem_monitor_enter(struct mem_monitor *m, struct mem_watcher *w);
void mem_monitor_leave(struct mem_monitor *m, struct mem_watcher *w);

/*
 * From the return on its end will be told. False: it can't be watched. Either way
 * mem_monitor_watched follows, when the watcher has noted (or dropped) what it is for.
 */
bool mem_monitor_watch(struct mem_monitor *m, struct mem_range r);
void mem_monitor_watched(struct mem_monitor *m);
/* A watcher has nothing there any more. */
void mem_monitor_unwatch(struct mem_monitor *m, struct mem_range r);

/* All that was gone when this was called has been told. False: not within a second. No
 * watcher's lock is held by the caller. */
bool mem_monitor_settle_slow(struct mem_monitor *m);
bool mem_monitor_settle(struct mem_monitor *m);

#endif
