/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a peer's GPUs, mapped here; see shm_device.h. */
#include "config.h"

#include "prov/wire/shm/shm_device.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/device.h"
#include "prov/mem/keytab.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_hazard.h"
#include "prov/wire/shm/shm_link.h"
#include "prov/wire/shm/shm_service.h"
#include "prov/wire/shm/shm_share.h"

/* A question may get lost (a full socket): asked again after so many more uses. */
#define ASK_EVERY 1024

/* A piece that was used among so many last ones isn't given up for another. */
#define KEEP_USES 256

/* ---- the owner ----------------------------------------------------------------------
 */

static void device_answer(struct shm_link *link, const struct shm_device_msg *ask)
{
	struct shm_device_msg give = {
		.kind = SHM_DEVICE_GIVE, .key = ask->key, .addr = ask->addr};
	struct mem_place place;
	int fd = -1, ret;

	/* Access is checked when it is used; whoever has a key may map what it names. */
	ret = mem_keyview_locate(link->ep->own_keys, ask->key, ask->addr, 1, 0, &place);
	if (ret || !place.device)
		return; /* gone: who asks finds that out */
	give.incarnation = place.incarnation;
	if (link->ep->no_imports ||
	    mem_device_export(place.iov[0].iov_base, &give.name, &fd))
		give.name.len = 0;
	shm_share_send(link->sock, &give, sizeof(give), fd);
	if (fd >= 0)
		close(fd);
}

/* ---- who asks ------------------------------------------------------------------------
 */

static void device_take(struct shm_link *link, const struct shm_device_msg *give, int fd)
{
	for (int i = 0; i < SHM_IMPORTS; i++) {
		struct shm_import *im = &link->imports[i];

		if (atomic_load_explicit(&im->state, memory_order_acquire) !=
			    SHM_IMPORT_ASKED ||
		    im->key != give->key || im->incarnation != give->incarnation ||
		    im->addr != give->addr)
			continue;
		if (!give->name.len || mem_device_import(&give->name, fd, &im->mem)) {
			atomic_store_explicit(&im->state, SHM_IMPORT_REFUSED,
					      memory_order_release);
			return;
		}
		im->base = give->name.base;
		im->len = give->name.len;
		atomic_store_explicit(&im->state, SHM_IMPORT_READY, memory_order_release);
		return;
	}
}

void shm_device_message(struct shm_link *link, const struct shm_device_msg *msg, int fd)
{
	if (link->keys && msg->kind == SHM_DEVICE_ASK)
		device_answer(link, msg);
	else if (link->keys && msg->kind == SHM_DEVICE_GIVE)
		device_take(link, msg, fd);
	if (fd >= 0)
		close(fd);
}

static void import_free(struct shm_import *im)
{
	if (atomic_load_explicit(&im->state, memory_order_acquire) == SHM_IMPORT_READY)
		mem_device_release(im->mem);
	atomic_store_explicit(&im->state, SHM_IMPORT_FREE, memory_order_release);
}

void shm_device_fini(struct shm_import imports[SHM_IMPORTS])
{
	for (int i = 0; i < SHM_IMPORTS; i++)
		import_free(&imports[i]);
}

static void import_ask(struct shm_link *link, const struct shm_import *im)
{
	const struct shm_device_msg ask = {.kind = SHM_DEVICE_ASK,
					   .incarnation = im->incarnation,
					   .key = im->key,
					   .addr = im->addr};

	shm_share_send(link->sock, &ask, sizeof(ask), -1);
}

/* Whether that is about this registration. */
static bool is_of(const struct shm_import *im, const struct mem_place *place,
		  uint64_t key)
{
	return im->key == key && im->incarnation == place->incarnation;
}

/* What is free, or was used longest ago; NULL: all are in use. */
static struct shm_import *import_oldest(struct shm_link *link)
{
	struct shm_import *found = NULL;

	for (int i = 0; i < SHM_IMPORTS; i++) {
		struct shm_import *im = &link->imports[i];
		uint32_t state = atomic_load_explicit(&im->state, memory_order_acquire);

		if (state == SHM_IMPORT_FREE)
			return im;
		if (state != SHM_IMPORT_ASKED && (!found || im->used < found->used))
			found = im;
	}
	return found && link->import_uses - found->used > KEEP_USES ? found : NULL;
}

/* Nobody has said anything of it. */
static void import_new(struct shm_link *link, const struct mem_place *place, uint64_t key,
		       uint64_t addr)
{
	struct shm_import *im = import_oldest(link);

	if (!im)
		return;
	import_free(im);
	im->key = key;
	im->incarnation = place->incarnation;
	im->addr = addr;
	im->missed = 0;
	im->used = link->import_uses;
	atomic_store_explicit(&im->state, SHM_IMPORT_ASKED, memory_order_release);
	import_ask(link, im);
}

/* Where the byte at `at` of the owner is here, and how many from there on; NULL: not. */
static char *import_find(struct shm_link *link, const struct mem_place *place,
			 const struct wire_remote *remote, uint64_t at, size_t *room)
{
	bool waits = false;

	link->import_uses++;
	for (int i = 0; i < SHM_IMPORTS; i++) {
		struct shm_import *im = &link->imports[i];
		uint32_t state = atomic_load_explicit(&im->state, memory_order_acquire);

		if (state == SHM_IMPORT_FREE || !is_of(im, place, remote->key))
			continue;
		if (state == SHM_IMPORT_READY && at - im->base < im->len) {
			im->used = link->import_uses;
			*room = im->len - (at - im->base);
			return (char *)mem_device_at(im->mem) + (at - im->base);
		}
		if (state == SHM_IMPORT_REFUSED) {
			im->used = link->import_uses;
			return NULL;
		}
		/* One question of a region at a time. */
		if (state == SHM_IMPORT_ASKED) {
			waits = true;
			if (im->missed++ % ASK_EVERY == ASK_EVERY - 1)
				import_ask(link, im);
		}
	}
	if (!waits)
		import_new(link, place, remote->key,
			   remote->addr + (at - (uintptr_t)place->iov[0].iov_base));
	return NULL;
}

/* Copies [0, len) of the local pieces' bytes from `offset` on. */
static int local_copy(const struct wire_segment *seg, size_t offset, char *there,
		      size_t len, bool write)
{
	int ret = 0;

	for (size_t i = 0; !ret && len > 0 && i < seg->local_count; i++) {
		char *own = seg->local[i].iov_base;
		size_t here = seg->local[i].iov_len;

		if (offset >= here) {
			offset -= here;
			continue;
		}
		here = here - offset < len ? here - offset : len;
		ret = write ? mem_copy(there, own + offset, here)
			    : mem_copy(own + offset, there, here);
		there += here;
		len -= here;
		offset = 0;
	}
	return ret;
}

int shm_device_copy(struct shm_link *link, const struct mem_place *place,
		    const struct wire_segment *seg, bool write)
{
	const uint64_t first = place->count ? (uintptr_t)place->iov[0].iov_base : 0;
	size_t room[2] = {0, 0}, here;
	char *at[2] = {NULL, NULL};
	int ret;

	if (place->count != 1 || link->ep->no_imports)
		return place->count ? -FI_EPERM : 1;
	/* A segment lies in two pieces at most, nearly always. */
	at[0] = import_find(link, place, &seg->remote, first, &room[0]);
	if (!at[0])
		return -FI_EPERM;
	if (room[0] < seg->len) {
		at[1] = import_find(link, place, &seg->remote, first + room[0], &room[1]);
		if (!at[1] || room[0] + room[1] < seg->len)
			return -FI_EPERM;
	}
	here = room[0] < seg->len ? room[0] : seg->len;
	ret = local_copy(seg, 0, at[0], here, write);
	if (!ret && here < seg->len)
		ret = local_copy(seg, here, at[1], seg->len - here, write);
	return ret ? ret : 1;
}

int shm_move_device(struct wire_link *wlink, const struct wire_segment *seg, bool write)
{
	struct shm_link *link = (struct shm_link *)(void *)wlink;
	struct mem_place place;
	int ret;

	if (link->state != SHM_LINK_UP || seg->remote.raw ||
	    atomic_load_explicit(&link->gone, memory_order_relaxed) ||
	    shm_service_busy(link)) /* nothing overtakes that */
		return -FI_EPERM;
	shm_hazard_set(link->hazard_mine, seg->remote.key);
	ret = mem_keyview_locate(link->keys, seg->remote.key, seg->remote.addr, seg->len,
				 write ? FI_REMOTE_WRITE : FI_REMOTE_READ, &place);
	ret = ret || !place.device ? -FI_EPERM
				   : shm_device_copy(link, &place, seg, write);
	shm_hazard_clear(link->hazard_mine);
	return ret;
}
