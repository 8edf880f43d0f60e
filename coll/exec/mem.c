/* SPDX-License-Identifier: BSD-2-Clause */
/* See mem.h. */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coll/exec/mem.h"

void mem_init(struct mem *mem, struct net *net)
{
	memset(mem, 0, sizeof(*mem));
	mem->net = net;
	list_init(&mem->lru);
	list_init(&mem->blocks);
	for (int i = 0; i < MEM_ENTRIES_MAX; i++) {
		mem->entry[i].id = (uint16_t)i;
		list_init(&mem->entry[i].lru);
	}
}

/* False when the provider still uses the registration: it is tried again later. */
static bool mem_entry_close(struct mem_entry *entry)
{
	if (fi_close(&entry->mr->fid) == -FI_EBUSY)
		return false;
	entry->mr = NULL;
	free(entry->told);
	entry->told = NULL;
	list_remove(&entry->lru);
	return true;
}

void mem_fini(struct mem *mem)
{
	for (int i = 0; i < MEM_ENTRIES_MAX; i++) {
		if (mem->entry[i].mr)
			mem_entry_close(&mem->entry[i]);
	}
	blocks_fini(mem);
}

static struct mem_entry *mem_find(struct mem *mem, uintptr_t start, size_t len,
				  bool remote)
{
	list_foreach (pos, &mem->lru) {
		struct mem_entry *e = container_of(pos, struct mem_entry, lru);

		if (!e->revoked && e->remote == remote && start >= e->start &&
		    len <= e->len && start - e->start <= e->len - len)
			return e;
	}
	return NULL;
}

/* A free place: an empty one, else that of the longest unused registration. */
static struct mem_entry *mem_place(struct mem *mem)
{
	for (int i = 0; i < MEM_ENTRIES_MAX; i++) {
		if (!mem->entry[i].mr)
			return &mem->entry[i];
	}
	for (struct list *pos = mem->lru.prev; pos != &mem->lru; pos = pos->prev) {
		struct mem_entry *e = container_of(pos, struct mem_entry, lru);

		if (e->refs == 0 && mem_entry_close(e))
			return e;
	}
	return NULL;
}

/* Keys of our own choice must differ between registrations that live together and should
 * differ from those that died, so that a late put is refused; and from those of other
 * jobs, whose puts may come to an address that was a rank of theirs. */
static uint64_t mem_key(const struct mem *mem, const struct mem_entry *entry)
{
	const size_t bytes = mem->net->info->domain_attr->mr_key_size;
	uint64_t key = (entry->incarnation ^ mem->net->job) << 7 | entry->id;

	static_assert(MEM_ENTRIES_MAX <= 1 << 7, "the id has 7 bits of the key");
	if (bytes < 8)
		key &= (UINT64_C(1) << (8 * bytes)) - 1;
	return key;
}

static int mem_register(struct mem *mem, struct mem_entry *entry, void *addr, size_t len,
			bool remote)
{
	struct net *net = mem->net;
	const uint64_t reads = net->caps.get ? FI_READ : 0;
	const uint64_t access = FI_SEND | FI_RECV | FI_WRITE | reads |
				(remote ? FI_REMOTE_WRITE : 0) |
				(remote && reads ? FI_REMOTE_READ : 0);
	int rc;

	if (remote) {
		entry->told = calloc(((size_t)net->size + 7) / 8, 1);
		if (!entry->told)
			return -FI_ENOMEM;
	}
	entry->incarnation++;
	rc = fi_mr_reg(net->domain, addr, len, access, 0, mem_key(mem, entry), 0,
		       &entry->mr, NULL);
	if (rc) {
		entry->mr = NULL;
		free(entry->told);
		entry->told = NULL;
		return rc;
	}
	entry->start = (uintptr_t)addr;
	entry->len = len;
	entry->remote = remote;
	entry->revoked = false;
	entry->key = fi_mr_key(entry->mr);
	entry->base = net->mr_virt_addr ? (uint64_t)(uintptr_t)addr : 0;
	entry->refs = 0;
	list_push_front(&mem->lru, &entry->lru);
	return 0;
}

int mem_get(struct mem *mem, void *addr, size_t len, bool remote,
	    struct mem_entry **entry)
{
	struct mem_entry *e = mem_find(mem, (uintptr_t)addr, len, remote);

	if (!e) {
		const struct block *block = block_find(mem, addr, len);
		int rc;

		e = mem_place(mem);
		if (!e)
			return -FI_ENOMEM;
		rc = block ? mem_register(mem, e, block->addr, block->len, remote)
			   : mem_register(mem, e, addr, len, remote);
		if (rc)
			return rc;
		e->kept = block != NULL;
	}
	e->refs++;
	list_remove(&e->lru);
	list_push_front(&mem->lru, &e->lru);
	*entry = e;
	return 0;
}

void mem_put(struct mem *mem, struct mem_entry *entry)
{
	entry->refs--;
	if (entry->refs == 0 &&
	    (entry->revoked || (mem->net->mr_allocated && !entry->kept)))
		mem_entry_close(entry);
}

void mem_revoke(struct mem_entry *entry)
{
	entry->revoked = true;
}

bool mem_forget(struct mem *mem, const void *addr, size_t len)
{
	const uintptr_t start = (uintptr_t)addr;
	bool all = true;

	for (int i = 0; i < MEM_ENTRIES_MAX; i++) {
		struct mem_entry *e = &mem->entry[i];

		if (!e->mr || e->start >= start + len || start >= e->start + e->len)
			continue;
		mem_revoke(e);
		if (e->refs || !mem_entry_close(e))
			all = false;
	}
	return all;
}

bool mem_tell(struct mem_entry *entry, int32_t rank)
{
	const uint8_t bit = (uint8_t)(1u << (rank % 8));
	const bool told = entry->told[rank / 8] & bit;

	entry->told[rank / 8] |= bit;
	return told;
}
