/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner's side of a key table: the only writer (rules D1, D2). */
#include "config.h"

#include "prov/mem/keytab.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/keytab_format.h"
#include "prov/mem/keytab_own.h"
#include "prov/mem/memfd.h"

struct mem_keytab {
	pthread_mutex_t lock; /* guards everything below and the writing of entries */
	int fd;
	void *map;
	size_t map_size;
	struct keytab_entry *entries;
	uint32_t capacity;
	uint32_t count;	 /* registrations that exist, at most capacity */
	uint32_t fresh;	 /* direct entries from here on were never used */
	uint32_t *freed; /* stack of direct entries that were used and are free */
	uint32_t freed_count;
	uint32_t generation; /* of the next key of our choosing; 31 bits */
	uint32_t incarnation;
	struct list users; /* struct mem_keyuser */
};

static uint32_t capacity_round(uint32_t want)
{
	uint32_t capacity = KEYTAB_CAPACITY_MIN;

	while (capacity < want)
		capacity *= 2;
	return capacity;
}

/* Where counting starts need not be secret, only different from an earlier process. */
static uint32_t start_value(void)
{
	uint32_t v;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = (uint32_t)getpid() * 2654435761u;
	return v;
}

int mem_keytab_open(uint32_t capacity, struct mem_keytab **tab_out)
{
	struct keytab_header *header;
	struct mem_keytab *tab;
	int ret;

	if (capacity > KEYTAB_CAPACITY_MAX)
		return -FI_ENOMEM;
	tab = calloc(1, sizeof(*tab));
	if (!tab)
		return -FI_ENOMEM;
	tab->capacity = capacity_round(capacity);
	/* Never touched beyond what was in use at once: costs address space only. */
	tab->freed = malloc(sizeof(*tab->freed) * tab->capacity);
	if (!tab->freed) {
		ret = -FI_ENOMEM;
		goto err_tab;
	}
	tab->map_size = keytab_map_size(tab->capacity);
	ret = mem_memfd_create("weft-keys", tab->map_size, &tab->fd, &tab->map);
	if (ret)
		goto err_freed;
	/* Peers get a descriptor that can't be written through (where the kernel can). */
	mem_memfd_seal_writes(tab->fd);

	header = tab->map;
	header->version = KEYTAB_VERSION;
	header->entry_size = sizeof(struct keytab_entry);
	header->capacity = tab->capacity;
	header->magic = KEYTAB_MAGIC;
	tab->entries = (void *)((char *)tab->map + KEYTAB_HEADER_SIZE);
	tab->generation = start_value();
	tab->incarnation = start_value();
	pthread_mutex_init(&tab->lock, NULL);
	list_init(&tab->users);
	*tab_out = tab;
	return 0;

err_freed:
	free(tab->freed);
err_tab:
	free(tab);
	return ret;
}

void mem_keytab_close(struct mem_keytab *tab)
{
	struct list *node;

	while ((node = list_pop_front(&tab->users))) {
		struct mem_keyuser *user = container_of(node, struct mem_keyuser, node);

		user->drop(user);
	}
	munmap(tab->map, tab->map_size);
	close(tab->fd);
	pthread_mutex_destroy(&tab->lock);
	free(tab->freed);
	free(tab);
}

void mem_keytab_want(struct mem_keytab *tab, uint32_t events)
{
	struct keytab_header *header = tab->map;

	atomic_fetch_or(&header->events, events);
}

uint32_t mem_keytab_wanted(const struct mem_keytab *tab)
{
	const struct keytab_header *header = tab->map;

	return atomic_load(&header->events);
}

static uint64_t entry_get(const _Atomic(uint64_t) *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

static void entry_set(_Atomic(uint64_t) *field, uint64_t value)
{
	atomic_store_explicit(field, value, memory_order_relaxed);
}

static bool entry_used(const struct keytab_entry *e)
{
	return atomic_load_explicit(&e->flags, memory_order_relaxed) & KEYTAB_USED;
}

static bool entry_holds(const struct keytab_entry *e, uint64_t key)
{
	return entry_used(e) && entry_get(&e->key) == key;
}

static void entry_begin(struct keytab_entry *e)
{
	uint32_t seq = atomic_load_explicit(&e->seq, memory_order_relaxed);

	atomic_store_explicit(&e->seq, seq + 1, memory_order_relaxed);
	/* The fields' new values must not be seen before the odd count. */
	atomic_thread_fence(memory_order_release);
}

static void entry_end(struct keytab_entry *e)
{
	uint32_t seq = atomic_load_explicit(&e->seq, memory_order_relaxed);

	atomic_store_explicit(&e->seq, seq + 1, memory_order_release);
}

static void entry_fill(struct keytab_entry *e, const struct mem_region *region,
		       uint64_t key, uint32_t incarnation)
{
	uint32_t flags = KEYTAB_USED | (region->virt_addr ? KEYTAB_VIRT_ADDR : 0) |
			 (region->device ? KEYTAB_DEVICE : 0);

	entry_begin(e);
	entry_set(&e->key, key);
	entry_set(&e->access, region->access);
	atomic_store_explicit(&e->iov_count, region->iov_count, memory_order_relaxed);
	atomic_store_explicit(&e->incarnation, incarnation, memory_order_relaxed);
	for (uint32_t i = 0; i < region->iov_count; i++) {
		entry_set(&e->iov[i].addr, (uintptr_t)region->iov[i].iov_base);
		entry_set(&e->iov[i].len, region->iov[i].iov_len);
		entry_set(&e->share[i], region->share[i]);
	}
	atomic_store_explicit(&e->flags, flags, memory_order_relaxed);
	entry_end(e);
}

static void entry_clear(struct keytab_entry *e)
{
	entry_begin(e);
	atomic_store_explicit(&e->flags, 0, memory_order_relaxed);
	entry_end(e);
}

/* The entry that holds key, or NULL. */
static struct keytab_entry *keytab_lookup(struct mem_keytab *tab, uint64_t key)
{
	uint32_t index = (uint32_t)key;

	if ((key & KEYTAB_KEY_MARK) && index < tab->capacity &&
	    entry_holds(&tab->entries[index], key))
		return &tab->entries[index];
	for (unsigned choice = 0; choice < 2; choice++) {
		struct keytab_entry *e =
			&tab->entries[keytab_bucket(tab->capacity, key, choice)];

		for (uint32_t i = 0; i < KEYTAB_BUCKET; i++)
			if (entry_holds(&e[i], key))
				return &e[i];
	}
	return NULL;
}

/* The emptier bucket's first free entry, or NULL when both are full. */
static struct keytab_entry *keytab_free_hashed(struct mem_keytab *tab, uint64_t key)
{
	struct keytab_entry *best = NULL;
	uint32_t best_free = 0;

	for (unsigned choice = 0; choice < 2; choice++) {
		struct keytab_entry *e =
			&tab->entries[keytab_bucket(tab->capacity, key, choice)];
		struct keytab_entry *first = NULL;
		uint32_t count = 0;

		for (uint32_t i = 0; i < KEYTAB_BUCKET; i++) {
			if (entry_used(&e[i]))
				continue;
			count++;
			if (!first)
				first = &e[i];
		}
		if (count > best_free) {
			best = first;
			best_free = count;
		}
	}
	return best;
}

static bool region_valid(const struct mem_region *region)
{
	return region->iov_count <= MEM_REGION_IOV;
}

int mem_keytab_insert(struct mem_keytab *tab, const struct mem_region *region,
		      uint64_t *key_out)
{
	uint32_t index;
	uint64_t key;

	if (!region_valid(region))
		return -FI_EINVAL;
	pthread_mutex_lock(&tab->lock);
	if (tab->count == tab->capacity) {
		pthread_mutex_unlock(&tab->lock);
		return -FI_ENOMEM;
	}
	/* count is below capacity, so that one of the two has an entry. */
	index = tab->freed_count ? tab->freed[--tab->freed_count] : tab->fresh++;
	do {
		key = KEYTAB_KEY_MARK |
		      (uint64_t)(tab->generation++ & UINT32_C(0x7fffffff)) << 32 | index;
	} while (keytab_lookup(tab, key)); /* a caller may have chosen the same */
	entry_fill(&tab->entries[index], region, key, ++tab->incarnation);
	tab->count++;
	pthread_mutex_unlock(&tab->lock);
	*key_out = key;
	return 0;
}

int mem_keytab_insert_at(struct mem_keytab *tab, const struct mem_region *region,
			 uint64_t key)
{
	struct keytab_entry *e;
	int ret = 0;

	if (!region_valid(region))
		return -FI_EINVAL;
	pthread_mutex_lock(&tab->lock);
	if (keytab_lookup(tab, key)) {
		ret = -FI_ENOKEY;
	} else if (tab->count == tab->capacity || !(e = keytab_free_hashed(tab, key))) {
		ret = -FI_ENOMEM;
	} else {
		entry_fill(e, region, key, ++tab->incarnation);
		tab->count++;
	}
	pthread_mutex_unlock(&tab->lock);
	return ret;
}

int mem_keytab_grant(struct mem_keytab *tab, uint64_t key, uint64_t access)
{
	struct keytab_entry *e;

	pthread_mutex_lock(&tab->lock);
	e = keytab_lookup(tab, key);
	if (e) {
		entry_begin(e);
		entry_set(&e->access, access);
		/* Whoever was refused before may try again (rule D2). */
		atomic_store_explicit(&e->incarnation, ++tab->incarnation,
				      memory_order_relaxed);
		entry_end(e);
	}
	pthread_mutex_unlock(&tab->lock);
	return e ? 0 : -FI_ENOKEY;
}

int mem_keytab_remove(struct mem_keytab *tab, uint64_t key)
{
	struct keytab_entry *e;
	uint32_t index;
	int ret = 0;

	pthread_mutex_lock(&tab->lock);
	e = keytab_lookup(tab, key);
	if (e) {
		entry_clear(e);
		index = (uint32_t)(e - tab->entries);
		if (index < tab->capacity)
			tab->freed[tab->freed_count++] = index;
		tab->count--;
		/* Rule D3: whoever announces an access after this must see the removal,
		 * and whoever announced it before must be seen by quiesce. */
		atomic_thread_fence(memory_order_seq_cst);
	} else {
		ret = -FI_ENOKEY;
	}
	pthread_mutex_unlock(&tab->lock);
	return ret;
}

int mem_keytab_fd(const struct mem_keytab *tab)
{
	return tab->fd;
}

const void *mem_keytab_map(const struct mem_keytab *tab, size_t *size)
{
	*size = tab->map_size;
	return tab->map;
}

/* ---- peers that are left ------------------------------------------------------------
 */

/* Those that are over go. Lock held. */
static bool users_look(struct mem_keytab *tab, uint64_t key)
{
	bool busy = false;

	list_foreach_safe (node, next, &tab->users) {
		struct mem_keyuser *user = container_of(node, struct mem_keyuser, node);
		enum mem_keyuser_state state = user->look(user, key);

		busy = busy || state == MEM_KEYUSER_BUSY;
		if (state == MEM_KEYUSER_OVER) {
			list_remove(&user->node);
			user->drop(user);
		}
	}
	return busy;
}

void mem_keytab_leave(struct mem_keytab *tab, struct mem_keyuser *user)
{
	pthread_mutex_lock(&tab->lock);
	users_look(tab, 0);
	list_push_back(&tab->users, &user->node);
	pthread_mutex_unlock(&tab->lock);
}

bool mem_keytab_in_use(struct mem_keytab *tab, uint64_t key)
{
	bool busy;

	pthread_mutex_lock(&tab->lock);
	busy = users_look(tab, key);
	pthread_mutex_unlock(&tab->lock);
	return busy;
}
