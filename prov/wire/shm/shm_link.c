/* SPDX-License-Identifier: BSD-2-Clause */
/* Links: life, polling, packets. */
#include "config.h"

#include "prov/wire/shm/shm_link.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_bulk.h"
#include "prov/wire/shm/shm_cma.h"
#include "prov/wire/shm/shm_ep.h"

/* Polls in a row without anything before a link goes cold: long enough that an exchange
 * that goes back and forth never pays for ringing. */
#define LINK_IDLE_POLLS 512

#define LINK_JUNK 16 /* messages taken per look at a link that is left */

static const char *const state_names[SHM_LINK_STATES] = {
	[SHM_LINK_NEW] = "new",		  [SHM_LINK_DIALLING] = "dialling",
	[SHM_LINK_ACCEPTED] = "accepted", [SHM_LINK_UP] = "up",
	[SHM_LINK_DRAINING] = "draining", [SHM_LINK_DOWN] = "down",
	[SHM_LINK_LIMBO] = "limbo",
};

/* Bit s of entry f: the state may change from f to s. */
static const unsigned char state_next[SHM_LINK_STATES] = {
	[SHM_LINK_NEW] = 1u << SHM_LINK_DIALLING | 1u << SHM_LINK_ACCEPTED,
	[SHM_LINK_DIALLING] = 1u << SHM_LINK_UP | 1u << SHM_LINK_DOWN,
	[SHM_LINK_ACCEPTED] = 1u << SHM_LINK_UP | 1u << SHM_LINK_DOWN,
	[SHM_LINK_UP] = 1u << SHM_LINK_DRAINING | 1u << SHM_LINK_DOWN,
	[SHM_LINK_DRAINING] = 1u << SHM_LINK_DOWN,
	[SHM_LINK_DOWN] = 1u << SHM_LINK_LIMBO,
};

void shm_link_set_state(struct shm_link *link, enum shm_link_state state)
{
	assert(state_next[link->state] & 1u << state);
	FI_TRACE(&weft_provider, FI_LOG_EP_CTRL, "link %u (pid %d): %s, now %s\n",
		 link->index, link->pid, state_names[link->state], state_names[state]);
	/* Only a link that was up has room in its slot, and only then is tx this
	 * thread's: the helper may be filling it in while a dial is hung up. */
	if (link->state == SHM_LINK_UP)
		link->tx.slot.room = -1;
	link->state = state;
}

/* ---- life ---------------------------------------------------------------------------
 */

/* The lowest free index, so that a look at all links is short. Mutex held. SHM_HUB_BITS
 * when all are taken. */
static uint32_t link_index_find(struct shm_ep *ep)
{
	for (uint32_t i = 0; i < ep->link_top; i++)
		if (!ep->links[i])
			return i;
	return ep->link_top;
}

int shm_link_alloc(struct shm_ep *ep, unsigned side, struct shm_link **link_out)
{
	uint32_t index = link_index_find(ep);
	struct shm_link *link;

	if (index == SHM_HUB_BITS)
		return -FI_ENOMEM;
	link = aligned_alloc(SHM_CACHE_LINE, (sizeof(*link) + SHM_CACHE_LINE - 1) /
						     SHM_CACHE_LINE * SHM_CACHE_LINE);
	if (!link)
		return -FI_ENOMEM;
	*link = (struct shm_link){
		.base = {.ops = &shm_wire_ops, .ep = (struct wire_ep *)(void *)ep},
		.ep = ep,
		.state = SHM_LINK_NEW,
		.hot_at = -1,
		.tx = {.slot = {.room = -1}},
		.peer_hub = {.wake = -1},
		.index = index,
		.generation = ++ep->link_generation,
		.side = side,
		.sock = -1,
		.process = -1,
		.pair_fd = -1,
	};
	link->base.slot = &link->tx.slot;
	list_init(&link->grave);
	list_init(&link->news);
	list_init(&link->service_rx.node);
	ep->links[index] = link;
	if (index == ep->link_top)
		ep->link_top++;
	*link_out = link;
	return 0;
}

/* What only a living link needs. Mutex held. */
static void link_release_peer(struct shm_link *link)
{
	list_remove(&link->news);
	list_remove(&link->service_rx.node);
	if (link->keys)
		mem_keyview_close(link->keys);
	link->keys = NULL;
	memset(link->routes, 0, sizeof(link->routes));
	if (link->peer_hub.mem)
		munmap(link->peer_hub.mem, SHM_HUB_SIZE);
	link->peer_hub.mem = NULL;
	if (link->peer_hub.wake >= 0)
		close(link->peer_hub.wake);
	link->peer_hub.wake = -1;
	shm_bulk_unmap(link->peer_bulk);
	link->peer_bulk = NULL;
	shm_share_fini(&link->share);
	shm_device_fini(link->imports);
	shm_service_tx_free(link->service_tx);
	link->service_tx = NULL;
}

/* Nobody finds it any more. Mutex held. */
LOCK_HELD(lock_wire) static void link_part(struct shm_link *link)
{
	struct shm_ep *ep = link->ep;

	link_release_peer(link);
	ep->links[link->index] = NULL;
	while (ep->link_top > 0 && !ep->links[ep->link_top - 1])
		ep->link_top--;
	shm_helper_unwatch(ep, link);
}

/* After link_part. */
static void link_drop(struct shm_link *link)
{
	if (link->sock >= 0)
		close(link->sock);
	if (link->process >= 0)
		close(link->process);
	if (link->pair)
		munmap(link->pair, SHM_PAIR_SIZE);
	if (link->pair_fd >= 0)
		close(link->pair_fd);
	free(link);
}

void shm_link_free(struct shm_link *link)
{
	link_part(link);
	link_drop(link);
}

/* ---- left to the key table
 * ----------------------------------------------------------- */

/* What the peer still says goes, and what it sends along with it. */
static enum mem_keyuser_state left_look(struct mem_keyuser *user, uint64_t key)
{
	struct shm_link *link = container_of(user, struct shm_link, left);
	struct pollfd ends[2] = {{.fd = link->sock, .events = POLLRDHUP},
				 {.fd = link->process, .events = POLLIN}};
	char junk[16];

	for (int i = 0; i < LINK_JUNK; i++)
		if (recv(link->sock, junk, sizeof(junk), MSG_DONTWAIT) <= 0)
			break;
	if (poll(ends, 2, 0) > 0)
		return MEM_KEYUSER_OVER;
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&link->hazard_peer->active, memory_order_seq_cst) &&
	    atomic_load_explicit(&link->hazard_peer->key, memory_order_relaxed) == key)
		return MEM_KEYUSER_BUSY;
	return MEM_KEYUSER_IDLE;
}

static void left_drop(struct mem_keyuser *user)
{
	link_drop(container_of(user, struct shm_link, left));
}

void shm_link_leave(struct shm_link *link)
{
	struct mem_keytab *keys = link->ep->keys;

	link_part(link);
	if (!link->pair || link->sock < 0 || atomic_load(&link->gone)) {
		link_drop(link);
		return;
	}
	/* One way only, as in limbo. */
	shutdown(link->sock, SHUT_WR);
	link->left.look = left_look;
	link->left.drop = left_drop;
	mem_keytab_leave(keys, &link->left);
}

/* Tells how RMA will go when the kernel refuses attach. */
static int link_check_cma(const struct shm_link *link)
{
	char text[WIRE_ADDR_TEXT_MAX];

	if (link->cma || link->ep->cma == PROV_CMA_OFF)
		return 0;
	wire_addr_text(&link->base.peer, text);
	if (link->ep->cma == PROV_CMA_ON) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"cross-memory attach to peer %s (pid %d) is refused and "
			"FI_WEFT_CMA=1 insists on it: see ptrace_scope, PR_SET_DUMPABLE "
			"and containers' seccomp profiles, or unset the variable\n",
			text, link->pid);
		return -FI_EACCES;
	}
	FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
		"cross-memory attach to peer %s (pid %d) is refused: RMA goes through "
		"its "
		"helper thread (two copies)\n",
		text, link->pid);
	return 0;
}

int shm_link_attach(struct shm_link *link, const struct shm_parcel *parcel,
		    struct shm_peer_memory *mem)
{
	const struct shm_hello *hello = &parcel->hello;
	unsigned side = link->side;

	if (mem->pair) {
		link->pair = mem->pair;
		link->pair_fd = mem->pair_fd;
	}
	link->keys = mem->keys;
	link->peer_bulk = mem->bulk;
	link->peer_hub = (struct shm_hub_peer){
		.mem = mem->hub, .wake = mem->wake, .bit = hello->hub_bit};
	link->hazard_mine = &link->pair->hazard[side];
	link->hazard_peer = &link->pair->hazard[!side];
	shm_ring_tx_init(&link->tx, &link->pair->ring[side]);
	shm_ring_rx_init(&link->rx, &link->pair->ring[!side]);
	link->cma = link->ep->cma != PROV_CMA_OFF &&
		    shm_cma_probe(link->pid, hello->cookie_addr, hello->cookie);
	link->base.peer = parcel->addr;
	link->base.peer_incarnation = hello->incarnation;
	link->base.caps = shm_wire_ops.caps;
	link->base.caps.raw = link->cma;
	/* Within a process one copy beats two that take turns. */
	link->base.caps.bulk = mem->bulk && !(link->cma && link->pid == link->ep->pid)
				       ? SHM_BULK_SLOT
				       : 0;
	/* Nor would the other end have a processor of its own. */
	link->base.caps.joints = link->cma && link->pid != link->ep->pid ? SHM_JOINTS : 0;
	return link_check_cma(link);
}

static void link_tell(struct shm_link *link)
{
	struct shm_ep *ep = link->ep;

	if (list_empty(&link->news))
		list_push_back(&ep->news, &link->news);
	atomic_store_explicit(&ep->has_news, true, memory_order_seq_cst);
	shm_hub_wake_own(&ep->hub);
}

void shm_link_tell_up(struct shm_link *link)
{
	link->news_up = true;
	link_tell(link);
}

void shm_link_tell_end(struct shm_link *link, int err)
{
	if (link->news_err)
		return; /* the first reason is the true one */
	link->news_err = err;
	link_tell(link);
}

/* ---- ending --------------------------------------------------------------------------
 */

/* Lets go of the memory now, or, while the peer may still be at work in it by a key of
 * ours, when it has let go itself (rule D4). */
static void link_bury(struct shm_link *link)
{
	struct shm_ep *ep = link->ep;

	shm_ep_lock(ep);
	if (!link->pair || link->sock < 0 || atomic_load(&link->gone)) {
		shm_link_free(link);
	} else {
		link_release_peer(link);
		shm_link_set_state(link, SHM_LINK_LIMBO);
		link->limbo = true;
		link->answer_by = 0;
		/* One way only: our side still hears when the peer closes. */
		shutdown(link->sock, SHUT_WR);
		shm_helper_watch_end(ep, link);
	}
	shm_ep_unlock(ep);
}

void shm_link_let_go(struct shm_link *link)
{
	struct shm_ep *ep = link->ep;

	assert(link->state == SHM_LINK_DOWN);
	if (link->hot_at >= 0) {
		ep->hot[link->hot_at] = NULL;
		ep->hot_holes++;
		ep->untidy = true;
		link->hot_at = -1;
	}
	/* A packet of this link may be in somebody's hands further up the stack: the next
	 * progress, or going to sleep, buries it. */
	list_push_back(&ep->graveyard, &link->grave);
	ep->untidy = true;
}

void shm_link_reap(struct shm_ep *ep)
{
	struct list *node;

	while ((node = list_pop_front(&ep->graveyard)))
		link_bury(container_of(node, struct shm_link, grave));
}

void shm_link_finish(struct shm_link *link, int err)
{
	struct shm_ep *ep = link->ep;

	shm_service_fail(link, err);
	if (link->state == SHM_LINK_DOWN)
		return; /* hung up by whoever heard of a failed segment */
	shm_link_set_state(link, SHM_LINK_DOWN);
	ep->events->link_down(ep->arg, (struct wire_link *)(void *)link, err);
	shm_link_let_go(link);
}

int shm_link_end_reason(const struct shm_link *link)
{
	const struct shm_ring_mem *mem = link->rx.mem;

	return atomic_load_explicit(&mem->closed, memory_order_relaxed) == 1
		       ? -FI_ESHUTDOWN
		       : -FI_ECONNRESET;
}

void shm_hangup(struct wire_link *wlink)
{
	struct shm_link *link = (struct shm_link *)(void *)wlink;

	if (link->state == SHM_LINK_DOWN)
		return; /* from inside its own link_down */
	shm_link_set_state(link, SHM_LINK_DOWN);
	shm_link_let_go(link);
}

/* ---- polling -------------------------------------------------------------------------
 */

void shm_link_heat(struct shm_link *link)
{
	struct shm_ep *ep = link->ep;

	link->idle = 0;
	if (link->hot_at >= 0 ||
	    (link->state != SHM_LINK_UP && link->state != SHM_LINK_DRAINING))
		return;
	shm_ring_set_mode(&link->rx, SHM_RING_HOT);
	link->hot_at = ep->hot_count;
	ep->hot[ep->hot_count++] = link;
}

/* Tells the producer what was taken, and wakes it if it waits for that. */
static void link_publish(struct shm_link *link)
{
	if (shm_ring_publish(&link->rx))
		shm_hub_ring(&link->peer_hub);
}

void shm_link_flush(struct shm_link *link)
{
	if (link->rx.consumed != link->rx.published)
		link_publish(link);
}

static void link_cool(struct shm_link *link)
{
	struct shm_ep *ep = link->ep;

	shm_link_flush(link);
	shm_ring_set_mode(&link->rx, SHM_RING_COLD);
	ep->hot[link->hot_at] = NULL;
	ep->hot_holes++;
	ep->untidy = true;
	link->hot_at = -1;
	if (shm_ring_ready(&link->rx))
		shm_link_heat(link);
}

/* What is due when no packet came. */
static __attribute__((noinline)) int link_idle(struct shm_link *link)
{
	int count = 0;

	/* Late on purpose: in an exchange that goes back and forth this is done while
	 * waiting for the answer. */
	shm_link_flush(link);
	if (link->tx.blocked && shm_ring_unblock(&link->tx))
		count++;
	if (link->service_tx && shm_service_busy(link)) {
		count += shm_service_collect(link);
		if (link->state > SHM_LINK_DRAINING)
			return count;
		if (shm_service_busy(link))
			link->idle = 0;
	}
	if (link->state == SHM_LINK_DRAINING) {
		shm_link_finish(link, shm_link_end_reason(link));
		return count + 1;
	}
	if (++link->idle > LINK_IDLE_POLLS)
		link_cool(link);
	return count;
}

static void link_warn_broken(const struct shm_link *link)
{
	char text[WIRE_ADDR_TEXT_MAX];

	FI_WARN(&weft_provider, FI_LOG_EP_DATA,
		"peer %s (pid %d) wrote what is no packet at offset %u of its ring; the "
		"link "
		"is reset: look for a stray write in that process\n",
		wire_addr_text(&link->base.peer, text), link->pid, link->rx.offset);
}

static __attribute__((noinline, cold)) void link_break(struct shm_link *link)
{
	link_warn_broken(link);
	shm_link_finish(link, -FI_ECONNRESET);
}

/* After packets came: room that somebody waits for, RMA that the peer's thread did. */
static __attribute__((noinline)) int link_rest(struct shm_link *link)
{
	int count = 0;

	if (link->tx.blocked && shm_ring_unblock(&link->tx))
		count++;
	if (link->service_tx && shm_service_busy(link))
		count += shm_service_collect(link);
	return count;
}

/* A packet, to the layers above. False: the link is over. */
static inline bool link_hand_up(struct shm_link *link, const void *pkt, uint32_t len)
{
	struct shm_ep *ep = link->ep;

	ep->events->packet(ep->arg, (struct wire_link *)(void *)link, pkt, len);
	if (__builtin_expect(link->state > SHM_LINK_DRAINING, 0))
		return false; /* hung up by the receiver of the packet */
	if (__builtin_expect(shm_ring_is_due(&link->rx), 0))
		link_publish(link);
	return true;
}

/* Whatever is there, after `count` packets. */
static __attribute__((noinline)) int link_poll_any(struct shm_link *link, int quota,
						   int count)
{
	const void *pkt;
	uint32_t len;

	while (count < quota) {
		enum shm_ring_found found = shm_ring_take(&link->rx, &pkt, &len);

		if (found == SHM_RING_EMPTY)
			break;
		count++;
		if (found == SHM_RING_BROKEN) {
			link_break(link);
			return count;
		}
		if (!link_hand_up(link, pkt, len))
			return count;
	}
	if (count == 0)
		return link_idle(link);
	link->idle = 0;
	return count + link_rest(link);
}

/* Straight to the end where one packet is there, the usual case. */
int shm_link_poll(struct shm_link *link, int quota)
{
	const void *pkt;
	uint32_t len;

	if (!shm_ring_take_next(&link->rx, &pkt, &len))
		return link_poll_any(link, quota, 0);
	if (__builtin_expect(!link_hand_up(link, pkt, len), 0))
		return 1;
	link->idle = 0;
	if (shm_ring_ready(&link->rx) || link->tx.blocked || link->service_tx)
		return link_poll_any(link, quota, 1);
	return 1;
}

/* ---- packets -------------------------------------------------------------------------
 */

void *shm_pkt_reserve(struct wire_link *wlink, size_t len, enum wire_class cls)
{
	struct shm_link *link = (struct shm_link *)(void *)wlink;
	uint32_t spare = cls == WIRE_DATA ? SHM_RING_DATA_SPARE : 0;

	if (link->state != SHM_LINK_UP || len > SHM_MAX_PACKET)
		return NULL;
	return shm_ring_reserve(&link->tx, len, spare);
}

/* Of more than one line. */
static __attribute__((noinline)) void pkt_commit_long(struct shm_link *link, void *pkt,
						      size_t len)
{
	if (shm_ring_commit(&link->tx, pkt, len))
		shm_hub_ring(&link->peer_hub);
	shm_ring_claim(&link->tx, len);
}

void shm_pkt_commit(struct wire_link *wlink, void *pkt, size_t len)
{
	struct shm_link *link = (struct shm_link *)(void *)wlink;

	if (__builtin_expect(len > SHM_CACHE_LINE - SHM_RECORD_HEADER, 0)) {
		pkt_commit_long(link, pkt, len);
		return;
	}
	if (shm_ring_commit(&link->tx, pkt, len))
		shm_hub_ring(&link->peer_hub);
}
