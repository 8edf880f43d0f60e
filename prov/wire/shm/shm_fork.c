/* SPDX-License-Identifier: BSD-2-Clause */
/* What a forked child gets of an endpoint. */
#include "config.h"

#include "prov/wire/shm/shm_fork.h"

#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_link.h"

static void link_part(struct shm_link *link)
{
	atomic_store(&link->gone, true); /* no put or get by attach either */
	mem_fork_close(&link->sock);
	mem_fork_close(&link->process);
	mem_fork_close(&link->pair_fd);
	mem_fork_close(&link->peer_hub.wake);
	mem_fork_cover(link->pair, SHM_PAIR_SIZE);
	mem_fork_cover(link->peer_hub.mem, SHM_HUB_SIZE);
}

static void helper_part(struct shm_helper *h)
{
	for (int i = 0; i < SHM_HALF_OPEN; i++)
		mem_fork_close(&h->half_open[i].sock);
	mem_fork_close(&h->spare_fd);
	mem_fork_close(&h->kick_fd);
	mem_fork_close(&h->epoll_fd);
}

static void ep_part(struct mem_fork *f)
{
	struct shm_ep *ep = container_of(f, struct shm_ep, fork);

	for (uint32_t i = 0; i < ep->link_top; i++)
		if (ep->links[i])
			link_part(ep->links[i]);
	helper_part(&ep->helper);
	mem_fork_close(&ep->door.listen_fd);
	mem_fork_close(&ep->door.any_fd);
	mem_fork_close(&ep->door.port_fd);
	mem_fork_close(&ep->hub.mem_fd);
	mem_fork_close(&ep->hub.wake_rx);
	mem_fork_close(&ep->hub.wake_tx);
	mem_fork_cover(ep->hub.mem, SHM_HUB_SIZE);
	mem_fork_close(&ep->bulk.fd);
	mem_fork_cover(ep->bulk.mem, SHM_BULK_SIZE);
}

void shm_fork_enter(struct shm_ep *ep)
{
	ep->fork.lock = &ep->mutex;
	ep->fork.child = ep_part;
	mem_fork_enter(&ep->fork);
}

void shm_fork_leave(struct shm_ep *ep)
{
	mem_fork_leave(&ep->fork);
}
