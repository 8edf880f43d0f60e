/* SPDX-License-Identifier: BSD-2-Clause */
/* put and get: one copy by cross-memory attach, else through the target's helper thread.
 */
#include "config.h"

#include "prov/wire/shm/shm_rma.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm_cma.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_hazard.h"
#include "prov/wire/shm/shm_link.h"
#include "prov/wire/shm/shm_share.h"

/* What the copy's result means for the caller: 1 or an error, as the wire contract has
 * it. */
static int copy_result(struct shm_link *link, int ret)
{
	switch (ret) {
	case 0:
		return 1;
	case -FI_ECONNRESET:
		/* The process is no more, whatever its socket says (a child may hold it
		 * open). */
		shm_ep_lock(link->ep);
		shm_link_tell_end(link, -FI_ECONNRESET);
		shm_ep_unlock(link->ep);
		return -FI_EAGAIN;
	case -FI_EPERM:
		/* Worked when the link came up: the peer changed its credentials, or
		 * forbade it. */
		link->cma = false;
		link->base.caps.raw = false;
		return ret;
	default:
		return ret;
	}
}

static int move_raw(struct shm_link *link, const struct wire_segment *seg, bool write)
{
	struct iovec remote = {.iov_base = (void *)(uintptr_t)seg->remote.addr,
			       .iov_len = seg->len};
	int ret;

	if (!link->cma)
		return -FI_EACCES;
	ret = copy_result(link, shm_cma_copy(link->pid, seg->local, seg->local_count,
					     &remote, 1, seg->len, write));
	return ret == -FI_EPERM ? -FI_EACCES : ret;
}

/* No errno: memory of a GPU of the peer that isn't mapped here. */
#define SHM_DEVICE 2

/* By load and store where the memory is shared, else by attach. -FI_EPERM: by neither. */
static int move_keyed(struct shm_link *link, const struct wire_segment *seg, bool write)
{
	struct mem_place place;
	int ret;

	shm_hazard_set(link->hazard_mine, seg->remote.key);
	ret = mem_keyview_locate(link->keys, seg->remote.key, seg->remote.addr, seg->len,
				 write ? FI_REMOTE_WRITE : FI_REMOTE_READ, &place);
	if (ret == 0 && place.device) {
		ret = shm_service_busy(link) ? -FI_EPERM
					     : shm_device_copy(link, &place, seg, write);
		ret = ret == -FI_EPERM ? SHM_DEVICE : ret;
	} else if (ret == 0) {
		if (place.count && place.share[0] &&
		    shm_share_copy(link, &place, seg, write))
			ret = 1;
		else if (link->cma)
			ret = copy_result(link,
					  shm_cma_copy(link->pid, seg->local,
						       seg->local_count, place.iov,
						       place.count, seg->len, write));
		else
			ret = -FI_EPERM;
	}
	shm_hazard_clear(link->hazard_mine);
	return ret;
}

static int move(struct wire_link *wlink, const struct wire_segment *seg, bool write)
{
	struct shm_link *link = (struct shm_link *)(void *)wlink;
	int ret;

	if (link->state != SHM_LINK_UP ||
	    atomic_load_explicit(&link->gone, memory_order_relaxed))
		return -FI_EAGAIN; /* link_down follows */
	if (seg->remote.raw)
		return move_raw(link, seg, write);
	/* Segments take effect in the order of the calls: none overtakes what the
	 * target's helper thread has still to do. */
	if (!shm_service_busy(link)) {
		ret = move_keyed(link, seg, write);
		if (ret != -FI_EPERM && ret != SHM_DEVICE)
			return ret;
		if (ret == -FI_EPERM && link->ep->cma == PROV_CMA_ON)
			return -FI_EACCES; /* the user insists */
	}
	return shm_service_ask(link, seg, write ? SHM_SERVICE_PUT : SHM_SERVICE_GET);
}

int shm_put(struct wire_link *link, const struct wire_segment *seg)
{
	return move(link, seg, true);
}

int shm_get(struct wire_link *link, const struct wire_segment *seg)
{
	return move(link, seg, false);
}

uint32_t shm_events(struct wire_link *wlink)
{
	struct shm_link *link = (struct shm_link *)(void *)wlink;

	return mem_keyview_events(link->keys);
}
