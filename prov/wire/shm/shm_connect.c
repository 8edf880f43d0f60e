/* SPDX-License-Identifier: BSD-2-Clause */
/* Dialling, answering, hearing the answer. */
#include "config.h"

#include "prov/wire/shm/shm_connect.h"

#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/memfd.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_handshake.h"
#include "prov/wire/shm/shm_link.h"
#include "util/lock_note.h"

static void hello_fill(const struct shm_link *link, enum shm_hello_kind kind,
		       struct shm_hello *hello, int fds[SHM_FD_COUNT])
{
	const struct shm_ep *ep = link->ep;

	shm_hello_init(hello, kind, &ep->base.addr);
	hello->incarnation = ep->incarnation;
	hello->cookie_addr = (uintptr_t)ep->cookie;
	hello->cookie[0] = ep->cookie[0];
	hello->cookie[1] = ep->cookie[1];
	hello->hub_bit = (uint16_t)link->index;
	fds[SHM_FD_KEYS] = mem_keytab_fd(ep->keys);
	fds[SHM_FD_HUB] = ep->hub.mem_fd;
	fds[SHM_FD_WAKE] = ep->hub.wake_tx;
	fds[SHM_FD_PAIR] = link->pair_fd;
	fds[SHM_FD_BULK] = ep->bulk.fd;
	hello->bulk_size = ep->bulk.fd >= 0 ? SHM_BULK_SIZE : 0;
}

/* The hello could not be sent: the door may have said why before it closed. Else it is
 * busy or closed just now, and worth a retry. */
static int dial_refused(struct shm_link *link)
{
	struct shm_parcel parcel;
	int ret = -FI_ECONNREFUSED;

	if (shm_parcel_recv(link->sock, SHM_ANSWER, &parcel) == 0) {
		if (parcel.hello.kind == SHM_REFUSAL)
			ret = parcel.hello.status;
		shm_parcel_drop(&parcel);
	}
	return ret;
}

/* Everything that dialling does to a link that has its index. Mutex held; on failure the
 * link is freed by the caller. */
LOCK_HELD(lock_wire)
static int link_dial(struct shm_link *link, const struct wire_addr *to)
{
	struct shm_ep *ep = link->ep;
	struct shm_hello hello;
	int fds[SHM_FD_COUNT];
	void *map;
	int ret;

	ret = shm_door_knock(to, &link->sock);
	if (ret)
		return ret;
	if (!shm_door_peer(link->sock, &link->pid))
		return -FI_EACCES;
	ret = shm_door_process(link->pid, &link->process);
	if (ret)
		return ret;
	ret = mem_memfd_create("weft-pair", SHM_PAIR_SIZE, &link->pair_fd, &map);
	if (ret)
		return ret;
	link->pair = map;
	/* The peer may be at work before its answer is heard. */
	link->hazard_peer = &link->pair->hazard[1];
	hello_fill(link, SHM_HELLO, &hello, fds);
	ret = shm_parcel_send(link->sock, &hello, fds);
	if (ret)
		return dial_refused(link);
	return shm_helper_watch(ep, link);
}

int shm_dial(struct wire_ep *wep, const struct wire_addr *to, void *peer_ctx,
	     struct wire_link **link_out)
{
	struct shm_ep *ep = shm_ep_of(wep);
	struct shm_link *link;
	int ret;

	shm_ep_lock(ep);
	ret = shm_link_alloc(ep, 0, &link);
	if (ret)
		goto out;
	link->base.peer = *to;
	link->base.peer_ctx = peer_ctx;
	shm_link_set_state(link, SHM_LINK_DIALLING);
	ret = link_dial(link, to);
	if (ret) {
		shm_link_free(link);
		goto out;
	}
	link->answer_by = shm_now() + SHM_ANSWER_TIMEOUT_NS;
	shm_helper_deadline(ep, link);
	*link_out = (struct wire_link *)(void *)link;
out:
	shm_ep_unlock(ep);
	return ret;
}

void shm_answered(struct shm_link *link)
{
	struct shm_peer_memory mem;
	struct shm_parcel parcel;
	int ret;

	ret = shm_parcel_recv(link->sock, SHM_ANSWER, &parcel);
	if (ret == -FI_EAGAIN)
		return;
	link->answer_by = 0;
	if (ret == 0 && parcel.hello.kind == SHM_REFUSAL) {
		shm_link_tell_end(link, parcel.hello.status);
		return;
	}
	if (ret == 0)
		ret = shm_parcel_map(&parcel, &mem);
	if (ret) {
		/* Gone: may come back. Nonsense, or another version: no peer for us. */
		shm_link_tell_end(link, ret == -FI_ECONNRESET ? -FI_ECONNREFUSED
							      : -FI_EHOSTUNREACH);
		return;
	}
	ret = shm_link_attach(link, &parcel, &mem);
	if (ret)
		shm_link_tell_end(link, ret);
	else
		shm_link_tell_up(link);
}

void shm_refuse(struct shm_ep *ep, int sock, int err)
{
	struct shm_hello hello;

	shm_hello_init(&hello, SHM_REFUSAL, &ep->base.addr);
	hello.status = err;
	shm_parcel_send(sock, &hello, NULL);
}

int shm_answer(struct shm_ep *ep, int sock, int pid)
{
	struct shm_peer_memory mem;
	struct shm_parcel parcel;
	struct shm_hello hello;
	int fds[SHM_FD_COUNT];
	struct shm_link *link;
	int ret;

	ret = shm_parcel_recv(sock, SHM_HELLO, &parcel);
	if (ret == 0)
		ret = shm_parcel_map(&parcel, &mem);
	if (ret == -FI_EINVAL)
		shm_refuse(ep, sock, -FI_EHOSTUNREACH);
	if (ret)
		return ret;
	ret = shm_link_alloc(ep, 1, &link);
	if (ret) {
		shm_peer_memory_drop(&mem);
		shm_refuse(ep, sock, -FI_ECONNREFUSED);
		return ret;
	}
	link->sock = sock;
	link->pid = pid;
	shm_link_set_state(link, SHM_LINK_ACCEPTED);
	ret = shm_door_process(pid, &link->process);
	if (ret)
		shm_peer_memory_drop(&mem);
	else
		ret = shm_link_attach(link, &parcel, &mem);
	if (ret) {
		shm_refuse(ep, sock, ret);
	} else {
		hello_fill(link, SHM_ANSWER, &hello, fds);
		ret = shm_parcel_send(sock, &hello, fds);
	}
	if (ret == 0)
		ret = shm_helper_watch(ep, link);
	if (ret) {
		link->sock = -1; /* stays the caller's */
		shm_link_free(link);
		return ret;
	}
	shm_link_tell_up(link);
	return 0;
}
