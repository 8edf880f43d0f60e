/* SPDX-License-Identifier: BSD-2-Clause */
/* The remotely readable key table: its bytes, owner's side and reader's. Rules D1, D2. */
#include "config.h"

#include "prov/wire/verbs/verbs_keys.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fi_errno.h>

#include "util/le.h"

#define KEYS_MAGIC UINT64_C(0x317379656b627277) /* "wrbkeys1" */
#define KEYS_USED  0x80u
#define KEYS_VIRT  0x40u

struct root_level {
	struct le64 addr;
	struct le64 buckets;
	struct le32 rkey[DQPLB_RAILS_MAX];
};

struct keys_root {
	struct le64 sum; /* of all that follows */
	struct le64 magic;
	struct le32 rails;
	struct le32 levels;
	struct root_level level[VERBS_KEYS_LEVELS];
};

_Static_assert(sizeof(struct keys_root) == 24 + 80 * VERBS_KEYS_LEVELS, "keys_root");
_Static_assert(sizeof(struct keys_root) <= VERBS_KEYS_ROOT_MAX, "keys_root");

/* Then rkeys: of each piece those of all rails. */
struct keys_entry {
	struct le64 sum; /* of all that follows; 0 with zeros: nobody's */
	struct le64 key;
	struct le32 incarnation;
	uint8_t flags; /* KEYS_USED, KEYS_VIRT, enum verbs_keys_access */
	uint8_t space;
	uint8_t pieces;
	uint8_t zero;
	struct {
		struct le64 addr;
		struct le64 len;
	} piece[VERBS_KEYS_PIECES];
	struct le32 rkey[];
};

_Static_assert(sizeof(struct keys_entry) == 88, "keys_entry");
_Static_assert((88 + 16 * DQPLB_RAILS_MAX) * VERBS_KEYS_BUCKET <= VERBS_KEYS_BUCKET_MAX,
	       "a bucket of all rails");

static size_t entry_size(uint32_t rails)
{
	return sizeof(struct keys_entry) +
	       sizeof(struct le32) * VERBS_KEYS_PIECES * rails;
}

size_t verbs_keys_root_size(void)
{
	return sizeof(struct keys_root);
}

size_t verbs_keys_bucket_size(uint32_t rails)
{
	return entry_size(rails) * VERBS_KEYS_BUCKET;
}

static uint64_t mix(uint64_t h)
{
	h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
	return h ^ (h >> 31);
}

/* Never 0. */
static uint64_t sum_of(const void *bytes, size_t len)
{
	uint64_t h = UINT64_C(0x9e3779b97f4a7c15) + len;

	for (size_t i = 0; i + 8 <= len; i += 8) {
		uint64_t word;

		memcpy(&word, (const char *)bytes + i, 8);
		h = mix(h ^ le64toh(word));
	}
	return h ? h : 1;
}

static uint64_t bucket_index(uint64_t buckets, unsigned choice, uint8_t space,
			     uint64_t key)
{
	uint64_t salt =
		choice ? UINT64_C(0x8f6d0c5a13b7e249) : UINT64_C(0x2b1e94c7f0a35d68);

	return mix(mix(key + salt) + space) & (buckets - 1);
}

/* ---- owner --------------------------------------------------------------------------
 */

struct owner_level {
	char *mem;
	size_t size;
	uint64_t buckets;
	void *handle;
	uint32_t rkey[DQPLB_RAILS_MAX];
};

struct verbs_keys {
	const struct verbs_keys_ops *ops;
	void *arg;
	uint32_t rails;
	uint32_t levels;
	struct keys_root *root;
	void *root_handle;
	uint32_t root_rkey[DQPLB_RAILS_MAX];
	struct owner_level level[VERBS_KEYS_LEVELS];
};

#define ROOT_MAP 4096u

static void *keys_map(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static void root_write(struct verbs_keys *k)
{
	struct keys_root r = {.magic = le64_of(KEYS_MAGIC),
			      .rails = le32_of(k->rails),
			      .levels = le32_of(k->levels)};

	for (uint32_t i = 0; i < k->levels; i++) {
		r.level[i].addr = le64_of((uintptr_t)k->level[i].mem);
		r.level[i].buckets = le64_of(k->level[i].buckets);
		for (uint32_t j = 0; j < k->rails; j++)
			r.level[i].rkey[j] = le32_of(k->level[i].rkey[j]);
	}
	r.sum = le64_of(sum_of(&r.magic, sizeof(r) - sizeof(r.sum)));
	memcpy(k->root, &r, sizeof(r));
}

static int level_add(struct verbs_keys *k)
{
	struct owner_level *l = &k->level[k->levels];
	int ret;

	if (k->levels == VERBS_KEYS_LEVELS)
		return -FI_ENOMEM;
	l->buckets = (uint64_t)VERBS_KEYS_BUCKETS << k->levels;
	l->size = (l->buckets * verbs_keys_bucket_size(k->rails) + ROOT_MAP - 1) &
		  ~(size_t)(ROOT_MAP - 1);
	l->mem = keys_map(l->size);
	if (!l->mem)
		return -FI_ENOMEM;
	ret = k->ops->add(k->arg, l->mem, l->size, &l->handle, l->rkey);
	if (ret) {
		munmap(l->mem, l->size);
		return ret;
	}
	k->levels++;
	root_write(k);
	return 0;
}

int verbs_keys_open(uint32_t rails, const struct verbs_keys_ops *ops, void *arg,
		    struct verbs_keys **out)
{
	struct verbs_keys *k = calloc(1, sizeof(*k));
	int ret;

	if (!k)
		return -FI_ENOMEM;
	*k = (struct verbs_keys){.ops = ops, .arg = arg, .rails = rails};
	k->root = keys_map(ROOT_MAP);
	if (!k->root) {
		free(k);
		return -FI_ENOMEM;
	}
	ret = ops->add(arg, k->root, ROOT_MAP, &k->root_handle, k->root_rkey);
	if (ret) {
		munmap(k->root, ROOT_MAP);
		free(k);
		return ret;
	}
	ret = level_add(k);
	if (ret) {
		verbs_keys_close(k);
		return ret;
	}
	*out = k;
	return 0;
}

void verbs_keys_close(struct verbs_keys *k)
{
	for (uint32_t i = 0; i < k->levels; i++) {
		k->ops->drop(k->arg, k->level[i].handle);
		munmap(k->level[i].mem, k->level[i].size);
	}
	k->ops->drop(k->arg, k->root_handle);
	munmap(k->root, ROOT_MAP);
	free(k);
}

void verbs_keys_root(const struct verbs_keys *k, uint64_t *addr, uint64_t *len,
		     uint32_t rkey[DQPLB_RAILS_MAX])
{
	*addr = (uintptr_t)k->root;
	*len = ROOT_MAP;
	memcpy(rkey, k->root_rkey, sizeof(k->root_rkey));
}

static struct keys_entry *entry_at(const struct verbs_keys *k, uint32_t level,
				   unsigned choice, uint8_t space, uint64_t key,
				   unsigned i)
{
	const struct owner_level *l = &k->level[level];
	uint64_t b = bucket_index(l->buckets, choice, space, key);

	return (void *)(l->mem + b * verbs_keys_bucket_size(k->rails) +
			i * entry_size(k->rails));
}

/* The entry of a key, or (want: 0) a free one for it. NULL: none. */
static struct keys_entry *entry_find(const struct verbs_keys *k, uint8_t space,
				     uint64_t key, bool used)
{
	for (uint32_t n = k->levels; n-- > 0;)
		for (unsigned c = 0; c < 2; c++)
			for (unsigned i = 0; i < VERBS_KEYS_BUCKET; i++) {
				struct keys_entry *e = entry_at(k, n, c, space, key, i);

				if (!(e->flags & KEYS_USED)) {
					if (!used)
						return e;
				} else if (used && e->space == space &&
					   le64_get(e->key) == key) {
					return e;
				}
			}
	return NULL;
}

int verbs_keys_insert(struct verbs_keys *k, const struct verbs_keys_entry *in)
{
	struct keys_entry *e;
	int ret;

	while (!(e = entry_find(k, in->space, in->key, false))) {
		ret = level_add(k);
		if (ret)
			return ret;
	}
	e->key = le64_of(in->key);
	e->incarnation = le32_of(in->incarnation);
	e->space = in->space;
	e->pieces = in->pieces;
	for (uint32_t i = 0; i < in->pieces; i++) {
		e->piece[i].addr = le64_of(in->piece[i].addr);
		e->piece[i].len = le64_of(in->piece[i].len);
		for (uint32_t j = 0; j < k->rails; j++)
			e->rkey[i * k->rails + j] = le32_of(in->piece[i].rkey[j]);
	}
	e->flags = (uint8_t)(KEYS_USED | (in->virt_addr ? KEYS_VIRT : 0) | in->access);
	e->sum = le64_of(sum_of(&e->key, entry_size(k->rails) - sizeof(e->sum)));
	atomic_thread_fence(memory_order_seq_cst);
	return 0;
}

bool verbs_keys_remove(struct verbs_keys *k, uint8_t space, uint64_t key)
{
	struct keys_entry *e = entry_find(k, space, key, true);

	if (!e)
		return false;
	memset(e, 0, entry_size(k->rails));
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

/* ---- reader -------------------------------------------------------------------------
 */

int verbs_keys_root_read(const void *bytes, uint32_t rails, struct verbs_keys_view *view)
{
	struct keys_root r;

	memcpy(&r, bytes, sizeof(r));
	if (le64_get(r.sum) != sum_of(&r.magic, sizeof(r) - sizeof(r.sum)))
		return -EAGAIN;
	view->rails = le32_get(r.rails);
	view->levels = le32_get(r.levels);
	if (le64_get(r.magic) != KEYS_MAGIC || view->rails != rails || rails == 0 ||
	    rails > DQPLB_RAILS_MAX || view->levels == 0 ||
	    view->levels > VERBS_KEYS_LEVELS)
		return -EPROTO;
	for (uint32_t i = 0; i < view->levels; i++) {
		struct verbs_keys_level *l = &view->level[i];

		l->addr = le64_get(r.level[i].addr);
		l->buckets = le64_get(r.level[i].buckets);
		if (l->buckets != (uint64_t)VERBS_KEYS_BUCKETS << i)
			return -EPROTO;
		for (uint32_t j = 0; j < rails; j++)
			l->rkey[j] = le32_get(r.level[i].rkey[j]);
	}
	return 0;
}

uint64_t verbs_keys_bucket_at(const struct verbs_keys_view *view, uint32_t level,
			      unsigned choice, uint8_t space, uint64_t key)
{
	const struct verbs_keys_level *l = &view->level[level];

	return l->addr + bucket_index(l->buckets, choice, space, key) *
				 verbs_keys_bucket_size(view->rails);
}

static bool is_zero(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;

	for (size_t i = 0; i < len; i++)
		if (b[i])
			return false;
	return true;
}

static bool entry_take(const struct keys_entry *e, uint32_t rails,
		       struct verbs_keys_entry *out)
{
	uint64_t total = 0;

	if (e->pieces == 0 || e->pieces > VERBS_KEYS_PIECES)
		return false;
	*out = (struct verbs_keys_entry){.key = le64_get(e->key),
					 .space = e->space,
					 .access = e->flags & VERBS_KEYS_ACCESS,
					 .virt_addr = e->flags & KEYS_VIRT,
					 .pieces = e->pieces,
					 .incarnation = le32_get(e->incarnation)};
	for (uint32_t i = 0; i < e->pieces; i++) {
		struct verbs_keys_piece *p = &out->piece[i];

		p->addr = le64_get(e->piece[i].addr);
		p->len = le64_get(e->piece[i].len);
		if (p->addr + p->len < p->addr || total + p->len < total)
			return false;
		total += p->len;
		for (uint32_t j = 0; j < rails; j++)
			p->rkey[j] = le32_get(e->rkey[i * rails + j]);
	}
	return true;
}

enum verbs_keys_found verbs_keys_bucket_read(const void *bytes, uint32_t rails,
					     uint8_t space, uint64_t key,
					     struct verbs_keys_entry *out)
{
	enum verbs_keys_found found = VERBS_KEYS_NONE;
	size_t size = entry_size(rails);

	for (unsigned i = 0; i < VERBS_KEYS_BUCKET; i++) {
		const struct keys_entry *e =
			(const void *)((const char *)bytes + i * size);

		if (le64_get(e->sum) == sum_of(&e->key, size - sizeof(e->sum))) {
			if (e->space == space && le64_get(e->key) == key &&
			    (e->flags & KEYS_USED) && entry_take(e, rails, out))
				return VERBS_KEYS_FOUND;
		} else if (!is_zero(e, size)) {
			found = VERBS_KEYS_TORN;
		}
	}
	return found;
}
