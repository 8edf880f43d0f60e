/* SPDX-License-Identifier: BSD-2-Clause */
/* Small puts and gets by routes; see shm_route.h. */
#include "config.h"

#include "prov/wire/shm/shm_route.h"

#include <sys/uio.h>

#include <rdma/fabric.h>

#include "prov/wire/shm/shm_hazard.h"
#include "prov/wire/shm/shm_link.h"
#include "prov/wire/shm/shm_share.h"

/* Looks the key up. False: the region has no route, or none yet. */
static __attribute__((noinline)) bool route_learn(struct shm_link *link,
						  struct shm_route *route, uint64_t key)
{
	struct mem_keyhit hit;

	route->hit.seq_at = NULL;
	route->map = NULL;
	if (!mem_keyview_hit(link->keys, key, &hit))
		return false;
	if (hit.share) {
		route->map = shm_share_find(link, hit.share, hit.len);
		if (!route->map)
			return false; /* it was asked for */
	}
	route->hit = hit;
	return true;
}

/* The route of a key for a link on which everything so far is done; NULL: none. */
static inline struct shm_route *route_find(struct shm_link *link, uint64_t key)
{
	struct shm_route *route = &link->routes[key % SHM_ROUTES];

	if (__builtin_expect(
		    link->state != SHM_LINK_UP ||
			    atomic_load_explicit(&link->gone, memory_order_relaxed),
		    0))
		return NULL;
	/* Nothing overtakes what the target's helper thread has still to do. */
	if (__builtin_expect(link->service_tx && shm_service_busy(link), 0))
		return NULL;
	/* Counters of the target that want to hear of it. */
	if (__builtin_expect(mem_keyview_events(link->keys) != 0, 0))
		return NULL;
	if (__builtin_expect(route->hit.seq_at && route->hit.key == key, 1))
		return route;
	return route_learn(link, route, key) ? route : NULL;
}

/* The registration may have ended since it was looked up; not any more after this, until
 * the hazard is cleared. */
static inline bool route_holds(struct shm_route *route, uint32_t access, uint64_t addr,
			       size_t len, uint64_t *offset)
{
	if (__builtin_expect(!mem_keyhit_is_fresh(&route->hit), 0)) {
		route->hit.seq_at = NULL;
		return false;
	}
	return (route->hit.access & access) &&
	       mem_keyhit_covers(&route->hit, addr, len, offset);
}

static __attribute__((noinline)) bool route_attach(struct shm_link *link,
						   const struct shm_route *route,
						   uint64_t offset, void *local,
						   size_t len, bool write)
{
	struct iovec here = {local, len};
	struct iovec there = {(void *)(uintptr_t)(route->hit.addr + offset), len};
	ssize_t n;

	if (!link->cma)
		return false;
	if (write)
		n = process_vm_writev(link->pid, &here, 1, &there, 1, 0);
	else
		n = process_vm_readv(link->pid, &here, 1, &there, 1, 0);
	return n == (ssize_t)len;
}

static inline __attribute__((always_inline)) bool route_move(struct wire_link *wlink,
							     uint64_t key, uint64_t addr,
							     void *local, size_t len,
							     bool write)
{
	struct shm_link *link = (struct shm_link *)(void *)wlink;
	struct shm_route *route = route_find(link, key);
	uint64_t offset;
	bool done = false;

	if (__builtin_expect(!route, 0))
		return false;
	shm_hazard_set(link->hazard_mine, key);
	if (route_holds(route, write ? FI_REMOTE_WRITE : FI_REMOTE_READ, addr, len,
			&offset)) {
		done = true;
		if (__builtin_expect(route->map != NULL, 1))
			shm_share_move(route->map + offset, local, len, write);
		else
			done = route_attach(link, route, offset, local, len, write);
	}
	shm_hazard_clear(link->hazard_mine);
	return done;
}

bool shm_put_now(struct wire_link *link, uint64_t key, uint64_t addr, const void *from,
		 size_t len)
{
	return route_move(link, key, addr, (void *)(uintptr_t)from, len, true);
}

bool shm_get_now(struct wire_link *link, uint64_t key, uint64_t addr, void *to,
		 size_t len)
{
	return route_move(link, key, addr, to, len, false);
}
