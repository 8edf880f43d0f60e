/* SPDX-License-Identifier: BSD-2-Clause */
/* Hub: who has something for this endpoint, and how it is woken. */
#include "config.h"

#include "prov/wire/shm/shm_hub.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/memfd.h"

#define HUB_DRAIN 64 /* wake-ups taken in a row */

int shm_hub_init(struct shm_hub *hub)
{
	void *map;
	int pair[2], ret;

	ret = mem_memfd_create("weft-hub", SHM_HUB_SIZE, &hub->mem_fd, &map);
	if (ret)
		return ret;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		ret = errno == EMFILE || errno == ENFILE ? -FI_EMFILE : -FI_ENOMEM;
		munmap(map, SHM_HUB_SIZE);
		close(hub->mem_fd);
		return ret;
	}
	hub->mem = map;
	hub->wake_rx = pair[0];
	hub->wake_tx = pair[1];
	hub->armed = false;
	hub->wakes_due = 0;
	return 0;
}

void shm_hub_fini(struct shm_hub *hub)
{
	munmap(hub->mem, SHM_HUB_SIZE);
	close(hub->mem_fd);
	close(hub->wake_rx);
	close(hub->wake_tx);
}

void shm_hub_arm(struct shm_hub *hub)
{
	hub->armed = true;
	if (++hub->sleeps == 0) /* 0 is: awake */
		hub->sleeps = 1;
	atomic_store_explicit(&hub->mem->sleeping, hub->sleeps, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
}

void shm_hub_disarm(struct shm_hub *hub, bool slept)
{
	int left = HUB_DRAIN; /* a peer that floods us doesn't hold us */
	char junk[16];

	hub->armed = false;
	if (atomic_exchange_explicit(&hub->mem->sleeping, 0, memory_order_seq_cst) == 0)
		hub->wakes_due++; /* somebody took it: a wake-up is there */
	else if (!slept)
		return;
	/* A wake-up that is left there would end the next sleep, and every one after it.
	 * When none is due, whatever ended the sleep may have been one all the same. */
	while (left-- > 0 && recv(hub->wake_rx, junk, sizeof(junk), MSG_DONTWAIT) >= 0)
		if (hub->wakes_due > 0 && --hub->wakes_due == 0)
			return;
}

/*
 * Sends first, then takes the announcement back, so that a sender that dies or is stopped
 * in between leaves it to the others: the sleeper would hear of nobody any more, not even
 * of that death. A second sender at the same moment does no harm, and whoever is late
 * finds the number of another sleep. EAGAIN means that enough wake-ups lie there already;
 * any other failure, that nobody is there to be woken.
 */
static void hub_wake(struct shm_hub_mem *mem, int wake)
{
	uint32_t sleep = atomic_load_explicit(&mem->sleeping, memory_order_seq_cst);

	if (sleep == 0)
		return;
	(void)!send(wake, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	atomic_compare_exchange_strong_explicit(
		&mem->sleeping, &sleep, 0, memory_order_seq_cst, memory_order_relaxed);
}

void shm_hub_wake_own(struct shm_hub *hub)
{
	atomic_thread_fence(memory_order_seq_cst);
	hub_wake(hub->mem, hub->wake_tx);
}

void shm_hub_ring(const struct shm_hub_peer *peer)
{
	uint32_t word = peer->bit / 64;

	/* The bit before the summary: the owner takes them in the other order. */
	atomic_fetch_or_explicit(&peer->mem->words[word], UINT64_C(1) << (peer->bit % 64),
				 memory_order_seq_cst);
	atomic_fetch_or_explicit(&peer->mem->summary, UINT64_C(1) << word,
				 memory_order_seq_cst);
	hub_wake(peer->mem, peer->wake);
}
