/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader of a key table: a peer's, or one's own. The memory belongs to somebody else
 * who may write anything at any time, so that every field is copied once and then
 * checked.
 */
#include "config.h"

#include "prov/mem/keytab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/arena.h"
#include "prov/mem/keytab_format.h"
#include "prov/mem/keytab_own.h"
#include "prov/mem/memfd.h"

struct mem_keyview {
	const struct keytab_header *header;
	const struct keytab_entry *entries;
	uint32_t capacity; /* checked once against the size; never read again */
	void *map;	   /* to unmap, or NULL for the owner's own */
	size_t map_size;
};

/* A private copy of an entry. */
struct entry_copy {
	const struct keytab_entry *from;
	uint32_t seq;
	uint64_t access;
	uint32_t flags;
	uint32_t iov_count;
	uint32_t incarnation;
	struct {
		uint64_t addr;
		uint64_t len;
		uint64_t share;
	} iov[MEM_REGION_IOV];
};

static int header_check(const void *map, size_t size, uint32_t *capacity)
{
	struct keytab_header h;

	if (size < KEYTAB_HEADER_SIZE)
		return -FI_EINVAL;
	memcpy(&h, map, sizeof(h));
	if (h.magic != KEYTAB_MAGIC || h.version != KEYTAB_VERSION ||
	    h.entry_size != sizeof(struct keytab_entry))
		return -FI_EINVAL;
	if (h.capacity < KEYTAB_CAPACITY_MIN || h.capacity > KEYTAB_CAPACITY_MAX ||
	    (h.capacity & (h.capacity - 1)) != 0 || keytab_map_size(h.capacity) != size)
		return -FI_EINVAL;
	*capacity = h.capacity;
	return 0;
}

static int view_create(const void *map, size_t size, struct mem_keyview **view_out)
{
	struct mem_keyview *view;
	uint32_t capacity;
	int ret;

	ret = header_check(map, size, &capacity);
	if (ret)
		return ret;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -FI_ENOMEM;
	view->capacity = capacity;
	view->header = map;
	view->entries = (const void *)((const char *)map + KEYTAB_HEADER_SIZE);
	*view_out = view;
	return 0;
}

int mem_keyview_open(int fd, struct mem_keyview **view_out)
{
	size_t size = 0;
	void *map;
	int ret;

	ret = mem_memfd_map(fd, &size, false, &map);
	close(fd);
	if (ret)
		return ret;
	ret = view_create(map, size, view_out);
	if (ret) {
		munmap(map, size);
		return ret;
	}
	(*view_out)->map = map;
	(*view_out)->map_size = size;
	return 0;
}

int mem_keyview_own(struct mem_keytab *tab, struct mem_keyview **view)
{
	size_t size;
	const void *map = mem_keytab_map(tab, &size);

	return view_create(map, size, view);
}

uint32_t mem_keyview_events(const struct mem_keyview *view)
{
	return atomic_load_explicit(&view->header->events, memory_order_acquire) &
	       (MEM_EVENTS_EP | MEM_EVENTS_MR);
}

void mem_keyview_close(struct mem_keyview *view)
{
	if (view->map)
		munmap(view->map, view->map_size);
	free(view);
}

static uint64_t load64(const _Atomic(uint64_t) *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

static uint32_t load32(const _Atomic(uint32_t) *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

/* Copies the entry when it holds key and did not change meanwhile. */
static bool entry_read(const struct keytab_entry *e, uint64_t key,
		       struct entry_copy *copy)
{
	uint32_t seq = atomic_load_explicit(&e->seq, memory_order_acquire);

	if (load64(&e->key) != key || (seq & 1))
		return false;
	copy->from = e;
	copy->seq = seq;
	copy->flags = load32(&e->flags);
	copy->access = load64(&e->access);
	copy->iov_count = load32(&e->iov_count);
	copy->incarnation = load32(&e->incarnation);
	for (uint32_t i = 0; i < MEM_REGION_IOV; i++) {
		copy->iov[i].addr = load64(&e->iov[i].addr);
		copy->iov[i].len = load64(&e->iov[i].len);
		copy->iov[i].share = load64(&e->share[i]);
	}
	atomic_thread_fence(memory_order_acquire);
	return load32(&e->seq) == seq && (copy->flags & KEYTAB_USED);
}

static bool view_lookup(const struct mem_keyview *view, uint64_t key,
			struct entry_copy *copy)
{
	uint32_t index = (uint32_t)key;

	if ((key & KEYTAB_KEY_MARK) && index < view->capacity &&
	    entry_read(&view->entries[index], key, copy))
		return true;
	for (unsigned choice = 0; choice < 2; choice++) {
		const struct keytab_entry *e =
			&view->entries[keytab_bucket(view->capacity, key, choice)];

		for (uint32_t i = 0; i < KEYTAB_BUCKET; i++)
			if (entry_read(&e[i], key, copy))
				return true;
	}
	return false;
}

/* A word `offset` bytes further on; 0 where a lie would lead out of its segment. */
static uint64_t share_move(uint64_t word, uint64_t offset)
{
	uint64_t room = mem_share_offset(UINT64_MAX) - mem_share_offset(word);

	return word && offset <= room ? word + offset : 0;
}

/* The pieces of [offset, offset + len) of the region. */
static int region_cut(const struct entry_copy *e, uint64_t offset, uint64_t len,
		      struct mem_place *place)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < e->iov_count && len > 0; i++) {
		uint64_t room = e->iov[i].len, addr, take;

		if (offset >= room) {
			offset -= room;
			continue;
		}
		take = room - offset < len ? room - offset : len;
		/* The owner may lie: no piece wraps around the address space. */
		if (__builtin_add_overflow(e->iov[i].addr, offset, &addr) ||
		    take - 1 > UINT64_MAX - addr)
			return -FI_EINVAL;
		place->iov[count].iov_base = (void *)(uintptr_t)addr;
		place->iov[count].iov_len = take;
		place->share[count] = share_move(e->iov[i].share, offset);
		count++;
		len -= take;
		offset = 0;
	}
	if (len > 0)
		return -FI_EINVAL;
	place->count = count;
	return 0;
}

int mem_keyview_locate(const struct mem_keyview *view, uint64_t key, uint64_t addr,
		       uint64_t len, uint64_t access, struct mem_place *place)
{
	uint64_t offset = addr;
	struct entry_copy e;

	if (!view_lookup(view, key, &e))
		return -FI_ENOKEY;
	if ((e.access & access) != access)
		return -FI_EACCES;
	if (e.iov_count > MEM_REGION_IOV)
		return -FI_EINVAL;
	if (e.flags & KEYTAB_VIRT_ADDR) {
		uint64_t first = e.iov_count ? e.iov[0].addr : 0;

		if (addr < first)
			return -FI_EINVAL;
		offset = addr - first;
	}
	place->device = e.flags & KEYTAB_DEVICE;
	if (len == 0) {
		uint64_t left = offset;

		/* Still inside: at the end at most. */
		for (uint32_t i = 0; i < e.iov_count; i++)
			left -= left < e.iov[i].len ? left : e.iov[i].len;
		if (left)
			return -FI_EINVAL;
		place->count = 0;
		place->incarnation = e.incarnation;
		return 0;
	}
	place->incarnation = e.incarnation;
	return region_cut(&e, offset, len, place);
}

bool mem_keyview_hit(const struct mem_keyview *view, uint64_t key, struct mem_keyhit *hit)
{
	struct entry_copy e;

	hit->seq_at = NULL;
	if (!view_lookup(view, key, &e) || e.iov_count != 1 || e.iov[0].len == 0 ||
	    (e.flags & KEYTAB_DEVICE) || e.iov[0].len - 1 > UINT64_MAX - e.iov[0].addr)
		return false;
	hit->key = key;
	hit->base = e.flags & KEYTAB_VIRT_ADDR ? e.iov[0].addr : 0;
	hit->len = e.iov[0].len;
	hit->addr = e.iov[0].addr;
	hit->share = e.iov[0].share;
	hit->seq = e.seq;
	hit->access = (uint32_t)e.access & (FI_REMOTE_READ | FI_REMOTE_WRITE);
	hit->seq_at = &e.from->seq;
	return true;
}

int mem_keyview_find(const struct mem_keyview *view, uint64_t key, uint64_t addr,
		     uint64_t len, uint64_t access, struct iovec *iov,
		     uint32_t *iov_count, uint32_t *incarnation)
{
	struct mem_place place;
	int ret = mem_keyview_locate(view, key, addr, len, access, &place);

	if (ret)
		return ret;
	memcpy(iov, place.iov, place.count * sizeof(*iov));
	*iov_count = place.count;
	*incarnation = place.incarnation;
	return 0;
}
