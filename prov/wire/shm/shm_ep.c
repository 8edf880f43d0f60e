/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: opening and closing, progress, sleeping, quiescing. */
#include "config.h"

#include "prov/wire/shm/shm_ep.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_fork.h"
#include "prov/wire/shm/shm_joint.h"
#include "prov/wire/shm/shm_link.h"

#define EP_LINK_QUOTA 16  /* packets of one link in a row */
#define EP_NEWS_QUOTA 256 /* links heard of in one progress */

/* How long closing waits for peers that are just writing their share of a message: that
 * memory has no key, so nobody could ask for it later. */
#define EP_CLOSE_WAIT_NS UINT64_C(1000000000)

/* Whoever goes to sleep looks at cold links as well, so often. A peer may write all over
 * our hub, and what others said there is lost then. */
#define EP_LOOK_NS UINT64_C(1000000000)

uint64_t shm_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- opening and closing -------------------------------------------------------------
 */

static int ep_init_memory(struct shm_ep *ep)
{
	ep->links = calloc(SHM_HUB_BITS, sizeof(struct shm_link *));
	ep->hot = calloc(SHM_HUB_BITS, sizeof(struct shm_link *));
	if (!ep->links || !ep->hot)
		return -FI_ENOMEM;
	if (getrandom(ep->cookie, sizeof(ep->cookie), 0) != (ssize_t)sizeof(ep->cookie))
		return -FI_ENOMEM;
	return 0;
}

static void ep_fini_memory(struct shm_ep *ep)
{
	free(ep->links);
	free(ep->hot);
	free(ep);
}

static struct shm_ep *ep_alloc(const struct wire_ep_attr *attr)
{
	struct shm_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->base.ops = &shm_wire_ops;
	ep->events = attr->events;
	ep->arg = attr->arg;
	ep->incarnation = attr->incarnation;
	ep->keys = attr->keys;
	ep->arena = attr->arena;
	ep->cma = attr->no_cma ? PROV_CMA_OFF : (enum prov_cma)prov_params()->cma;
	ep->no_imports = attr->no_imports;
	ep->pid = getpid();
	list_init(&ep->graveyard);
	list_init(&ep->news);
	return ep;
}

/* Says why an endpoint could not be opened, and what to do. */
static void open_warn(const struct wire_ep_attr *attr, int err)
{
	char text[WIRE_ADDR_TEXT_MAX];
	const char *advice;

	switch (err) {
	case -FI_EADDRINUSE:
		advice = "somebody has this port: ask for another one, or for none";
		break;
	case -FI_EADDRNOTAVAIL:
		advice = "not an address of this host (see: ip address)";
		break;
	case -FI_EMFILE:
		advice = "no descriptors left: raise the limit (ulimit -n)";
		break;
	default:
		advice = "out of memory, processes or address space";
		break;
	}
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "endpoint at %s: %s; %s\n",
		wire_addr_text(&attr->addr, text), fi_strerror(-err), advice);
}

int shm_ep_open(const struct wire_ep_attr *attr, struct wire_ep **ep_out)
{
	struct shm_ep *ep;
	int ret;

	if (!attr->keys || !attr->events || attr->incarnation == 0)
		return -FI_EINVAL;
	ep = ep_alloc(attr);
	if (!ep)
		return -FI_ENOMEM;
	ret = ep_init_memory(ep);
	if (ret)
		goto err_memory;
	ret = mem_keyview_own(ep->keys, &ep->own_keys);
	if (ret)
		goto err_memory;
	ret = shm_hub_init(&ep->hub);
	if (ret)
		goto err_keys;
	ret = shm_door_open(&ep->door, &attr->addr, attr->addr_any, attr->port_held);
	if (ret)
		goto err_hub;
	ep->base.addr = ep->door.addr;
	ep->bulk.fd = -1;
	if (!attr->no_bulk)
		shm_bulk_init(&ep->bulk);
	pthread_mutex_init(&ep->mutex, NULL);
	ret = shm_helper_start(ep);
	if (ret)
		goto err_door;
	shm_fork_enter(ep);
	*ep_out = (struct wire_ep *)(void *)ep;
	return 0;

err_door:
	pthread_mutex_destroy(&ep->mutex);
	shm_bulk_fini(&ep->bulk);
	shm_door_close(&ep->door);
err_hub:
	shm_hub_fini(&ep->hub);
err_keys:
	mem_keyview_close(ep->own_keys);
err_memory:
	open_warn(attr, ret);
	ep_fini_memory(ep);
	return ret;
}

/* Whether a living peer is just using the key. Mutex held. */
static bool ep_key_in_use(struct shm_ep *ep, uint64_t key)
{
	for (uint32_t i = 0; i < ep->link_top; i++) {
		struct shm_link *link = ep->links[i];

		if (!link || !link->hazard_peer || atomic_load(&link->gone))
			continue;
		if (!atomic_load_explicit(&link->hazard_peer->active,
					  memory_order_seq_cst))
			continue;
		if (atomic_load_explicit(&link->hazard_peer->key, memory_order_relaxed) ==
		    key)
			return true;
	}
	return false;
}

int shm_quiesce(struct wire_ep *wep, uint64_t key, uint64_t deadline_ns)
{
	struct shm_ep *ep = shm_ep_of(wep);
	struct timespec nap = {.tv_nsec = 10000};

	atomic_thread_fence(memory_order_seq_cst);
	for (;;) {
		bool busy;

		shm_ep_lock(ep);
		busy = ep_key_in_use(ep, key);
		shm_ep_unlock(ep);
		if (!busy)
			return 0;
		if (shm_now() >= deadline_ns)
			return -FI_EBUSY;
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < 1000000)
			nap.tv_nsec *= 2;
	}
}

/* Without the mutex towards the end: the other thread is gone by then. */
LOCK_UNSEEN void shm_ep_close(struct wire_ep *wep)
{
	struct shm_ep *ep = shm_ep_of(wep);

	/* A forked child has no helper thread, and nothing of this is its to end. */
	if (getpid() != ep->pid)
		return;
	shm_ep_lock(ep);
	shm_joint_close_all(ep);
	shm_ep_unlock(ep);
	shm_fork_leave(ep);
	/* The helper still hears of peers that end meanwhile. */
	shm_quiesce(wep, SHM_HAZARD_JOINT, shm_now() + EP_CLOSE_WAIT_NS);
	shm_helper_stop(ep);
	while (ep->link_top > 0) {
		struct shm_link *link = ep->links[ep->link_top - 1];

		/* Orderly: what was committed is still read by the peer. */
		if (link->state == SHM_LINK_UP)
			atomic_store_explicit(&link->tx.mem->closed, 1,
					      memory_order_release);
		shm_link_leave(link);
	}
	shm_door_close(&ep->door);
	shm_bulk_fini(&ep->bulk);
	shm_hub_fini(&ep->hub);
	mem_keyview_close(ep->own_keys);
	pthread_mutex_destroy(&ep->mutex);
	ep_fini_memory(ep);
}

/* ---- progress ------------------------------------------------------------------------
 */

/* One link's news. Returns how many things happened. */
static int link_news(struct shm_link *link, bool up, int err)
{
	struct shm_ep *ep = link->ep;
	int count = 0;

	if (link->state == SHM_LINK_DOWN)
		return 0; /* given up in this very progress */
	if (up) {
		shm_link_set_state(link, SHM_LINK_UP);
		shm_link_heat(link);
		if (ep->look_next == 0)
			ep->look_next = shm_now() + EP_LOOK_NS;
		count++;
		ep->events->link_up(ep->arg, (struct wire_link *)(void *)link);
	}
	if (err == 0 || link->state == SHM_LINK_DOWN)
		return count;
	if (link->state == SHM_LINK_UP) {
		/* What it sent before it went is delivered first. */
		shm_link_set_state(link, SHM_LINK_DRAINING);
		shm_link_heat(link);
	} else if (link->state == SHM_LINK_DIALLING) {
		shm_link_finish(link, err);
	}
	return count + 1;
}

static int ep_news(struct shm_ep *ep)
{
	int count = 0;

	for (int i = 0; i < EP_NEWS_QUOTA; i++) {
		struct shm_link *link;
		struct list *node;
		bool up;
		int err;

		shm_ep_lock(ep);
		node = list_pop_front(&ep->news);
		if (!node) {
			atomic_store(&ep->has_news, false);
			shm_ep_unlock(ep);
			break;
		}
		link = container_of(node, struct shm_link, news);
		up = link->news_up;
		err = link->news_err;
		link->news_up = false;
		shm_ep_unlock(ep);
		count += link_news(link, up, err);
	}
	return count;
}

/* Links that rang become hot. Bits that mean nothing are dropped. */
static void ep_heat(struct shm_ep *ep)
{
	uint64_t summary =
		atomic_exchange_explicit(&ep->hub.mem->summary, 0, memory_order_seq_cst);

	shm_ep_lock(ep);
	while (summary) {
		uint32_t w = (uint32_t)__builtin_ctzll(summary);
		uint64_t bits = atomic_exchange_explicit(&ep->hub.mem->words[w], 0,
							 memory_order_seq_cst);

		summary &= summary - 1;
		while (bits) {
			uint32_t index = w * 64 + (uint32_t)__builtin_ctzll(bits);
			struct shm_link *link =
				index < ep->link_top ? ep->links[index] : NULL;

			bits &= bits - 1;
			if (link && !link->limbo)
				shm_link_heat(link);
		}
	}
	shm_ep_unlock(ep);
}

/* Closes the gaps that links left in the hot list. */
static void ep_compact(struct shm_ep *ep)
{
	int n = 0;

	for (int i = 0; i < ep->hot_count; i++) {
		struct shm_link *link = ep->hot[i];

		if (!link)
			continue;
		link->hot_at = n;
		ep->hot[n++] = link;
	}
	ep->hot_count = n;
	ep->hot_holes = 0;
}

static __attribute__((noinline)) int ep_poll(struct shm_ep *ep, int budget)
{
	int links = ep->hot_count, at = ep->hot_next, count = 0;

	for (int i = 0; i < links; i++) {
		int quota = budget - count;
		struct shm_link *link;

		if (at >= links)
			at = 0;
		link = ep->hot[at++];
		if (!link)
			continue;
		count += shm_link_poll(link,
				       quota < EP_LINK_QUOTA ? quota : EP_LINK_QUOTA);
		if (count >= budget)
			break;
	}
	ep->hot_next = at;
	return count;
}

static void ep_tidy(struct shm_ep *ep)
{
	ep->untidy = false;
	if (ep->hot_holes)
		ep_compact(ep);
	shm_link_reap(ep);
}

/* What others left since the last look, and what was left of links that ended. */
static __attribute__((noinline)) int ep_hear(struct shm_ep *ep)
{
	int count = 0;

	if (ep->hub.armed)
		shm_hub_disarm(&ep->hub, true);
	if (atomic_load_explicit(&ep->has_news, memory_order_relaxed))
		count = ep_news(ep);
	if (atomic_load_explicit(&ep->hub.mem->summary, memory_order_relaxed))
		ep_heat(ep);
	if (ep->untidy)
		ep_tidy(ep);
	return count;
}

int shm_progress(struct wire_ep *wep, int budget)
{
	struct shm_ep *ep = shm_ep_of(wep);
	int count;

	if (__builtin_expect(
		    ep->hub.armed || ep->untidy ||
			    atomic_load_explicit(&ep->has_news, memory_order_relaxed) ||
			    atomic_load_explicit(&ep->hub.mem->summary,
						 memory_order_relaxed),
		    0)) {
		count = ep_hear(ep);
		return count + ep_poll(ep, budget > 0 ? budget : 1);
	}
	/* One link can't be unfair to others. */
	if (__builtin_expect(ep->hot_count == 1, 1))
		return shm_link_poll(ep->hot[0], budget);
	return ep_poll(ep, budget > 0 ? budget : 1);
}

/* ---- sleeping ------------------------------------------------------------------------
 */

static bool link_has_work(struct shm_link *link)
{
	return shm_ring_ready(&link->rx) || link->state == SHM_LINK_DRAINING ||
	       (link->tx.blocked && shm_ring_unblock(&link->tx)) ||
	       shm_service_ready(link);
}

/* All hot links go cold; false, and nothing changed, when one has something to do. */
static bool ep_cool(struct shm_ep *ep)
{
	bool quiet = true;

	for (int i = 0; i < ep->hot_count; i++) {
		struct shm_link *link = ep->hot[i];

		shm_link_flush(link);
		shm_ring_set_mode(&link->rx, SHM_RING_COLD);
	}
	for (int i = 0; i < ep->hot_count && quiet; i++)
		quiet = !link_has_work(ep->hot[i]);
	for (int i = 0; i < ep->hot_count; i++) {
		if (!quiet)
			shm_ring_set_mode(&ep->hot[i]->rx, SHM_RING_HOT);
		else
			ep->hot[i]->hot_at = -1;
	}
	if (quiet)
		ep->hot_count = 0;
	return quiet;
}

/* Cold links that have something become hot. Returns whether there are any. */
static bool ep_look(struct shm_ep *ep)
{
	uint64_t now;
	bool found = false;

	if (ep->look_next == 0)
		return false;
	now = shm_now();
	if (now < ep->look_next)
		return false;
	ep->look_next = now + EP_LOOK_NS;
	shm_ep_lock(ep);
	for (uint32_t i = 0; i < ep->link_top; i++) {
		struct shm_link *link = ep->links[i];

		if (!link || link->limbo || link->hot_at >= 0 ||
		    (link->state != SHM_LINK_UP && link->state != SHM_LINK_DRAINING))
			continue;
		if (link_has_work(link)) {
			shm_link_heat(link);
			found = true;
		}
	}
	shm_ep_unlock(ep);
	return found;
}

int shm_arm(struct wire_ep *wep)
{
	struct shm_ep *ep = shm_ep_of(wep);

	bool was_armed = ep->hub.armed; /* and somebody may sleep on that */

	if (ep->untidy)
		ep_tidy(ep);
	shm_hub_arm(&ep->hub);
	if (ep_cool(ep) && !atomic_load(&ep->has_news) &&
	    !atomic_load_explicit(&ep->hub.mem->summary, memory_order_seq_cst) &&
	    !ep_look(ep))
		return 0;
	shm_hub_disarm(&ep->hub, was_armed);
	return -FI_EAGAIN;
}

int shm_fd(struct wire_ep *wep)
{
	return shm_ep_of(wep)->hub.wake_rx;
}

uint64_t shm_look_due(struct wire_ep *wep)
{
	struct shm_ep *ep = shm_ep_of(wep);
	uint64_t now;

	if (ep->look_next == 0)
		return UINT64_MAX;
	/* Arming looks at once when it is late. */
	now = shm_now();
	return ep->look_next > now ? ep->look_next : now + EP_LOOK_NS;
}
