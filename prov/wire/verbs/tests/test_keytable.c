/* SPDX-License-Identifier: BSD-2-Clause */
/* The remotely readable key table: found, refused, torn, grown. Rules D1, D2. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prov/wire/verbs/verbs_keys.h"
#include "util/tap.h"

#define RAILS 3
#define MANY  5000

static int adds, drops;

static int mem_add(void *arg, void *start, size_t len, void **handle,
		   uint32_t rkey[DQPLB_RAILS_MAX])
{
	(void)arg;
	(void)start;
	(void)len;
	adds++;
	*handle = &adds;
	for (uint32_t i = 0; i < RAILS; i++)
		rkey[i] = (uint32_t)adds * 16 + i;
	return 0;
}

static void mem_drop(void *arg, void *handle)
{
	(void)arg;
	(void)handle;
	drops++;
}

static const struct verbs_keys_ops ops = {mem_add, mem_drop};

static struct verbs_keys_entry entry(uint64_t key, uint32_t incarnation)
{
	struct verbs_keys_entry e = {.key = key,
				     .space = VERBS_KEYS_APP,
				     .access = VERBS_KEYS_READ,
				     .virt_addr = true,
				     .pieces = 2,
				     .incarnation = incarnation};

	e.piece[0].addr = key << 12;
	e.piece[0].len = 100;
	e.piece[1].addr = 77;
	e.piece[1].len = 5;
	for (uint32_t i = 0; i < RAILS; i++) {
		e.piece[0].rkey[i] = (uint32_t)key + i;
		e.piece[1].rkey[i] = (uint32_t)key + 100 + i;
	}
	return e;
}

/* As a peer does it, but by plain loads: this is its own memory. */
static enum verbs_keys_found look(const struct verbs_keys *keys, uint64_t key,
				  struct verbs_keys_entry *e)
{
	uint32_t rkey[DQPLB_RAILS_MAX];
	struct verbs_keys_view view;
	uint64_t addr, len;

	verbs_keys_root(keys, &addr, &len, rkey);
	if (verbs_keys_root_read((const void *)(uintptr_t)addr, RAILS, &view))
		return VERBS_KEYS_TORN;
	for (uint32_t l = 0; l < view.levels; l++)
		for (unsigned c = 0; c < 2; c++) {
			uint64_t at =
				verbs_keys_bucket_at(&view, l, c, VERBS_KEYS_APP, key);
			enum verbs_keys_found f =
				verbs_keys_bucket_read((const void *)(uintptr_t)at, RAILS,
						       VERBS_KEYS_APP, key, e);

			if (f != VERBS_KEYS_NONE)
				return f;
		}
	return VERBS_KEYS_NONE;
}

static void test_find(struct verbs_keys *keys)
{
	struct verbs_keys_entry e = entry(42, 1), got;

	tap_is_int(look(keys, 42, &got), VERBS_KEYS_NONE, "D1: not there yet");
	tap_is_int(verbs_keys_insert(keys, &e), 0, "a key");
	tap_is_int(look(keys, 42, &got), VERBS_KEYS_FOUND, "D1: found");
	tap_ok(got.incarnation == 1 && got.pieces == 2 && got.virt_addr &&
		       got.access == VERBS_KEYS_READ &&
		       memcmp(got.piece, e.piece, sizeof(e.piece)) == 0,
	       "D1: says what was inserted, for all rails");
	tap_ok(verbs_keys_remove(keys, VERBS_KEYS_APP, 42), "removed");
	tap_is_int(look(keys, 42, &got), VERBS_KEYS_NONE, "D2: not found any more");
	tap_ok(!verbs_keys_remove(keys, VERBS_KEYS_APP, 42), "nor removed again");
	e.incarnation = 2;
	verbs_keys_insert(keys, &e);
	look(keys, 42, &got);
	tap_is_int(got.incarnation, 2, "D2: the same key is another incarnation");
}

static void test_torn(const struct verbs_keys *keys)
{
	uint32_t rkey[DQPLB_RAILS_MAX];
	uint8_t bytes[VERBS_KEYS_BUCKET_MAX], root[VERBS_KEYS_ROOT_MAX];
	struct verbs_keys_view view;
	struct verbs_keys_entry got;
	size_t size = verbs_keys_bucket_size(RAILS);
	uint64_t addr, len;
	int wrong = 0, where = -1;

	verbs_keys_root(keys, &addr, &len, rkey);
	memcpy(root, (const void *)(uintptr_t)addr, verbs_keys_root_size());
	verbs_keys_root_read(root, RAILS, &view);
	for (unsigned c = 0; c < 2 && where < 0; c++) {
		memcpy(bytes,
		       (const void *)(uintptr_t)verbs_keys_bucket_at(&view, 0, c,
								     VERBS_KEYS_APP, 42),
		       size);
		if (verbs_keys_bucket_read(bytes, RAILS, VERBS_KEYS_APP, 42, &got) ==
		    VERBS_KEYS_FOUND)
			where = (int)c;
	}
	tap_ok(where >= 0, "a bucket that has it");
	/* Any one byte of another time. */
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 0x5a;
		wrong += verbs_keys_bucket_read(bytes, RAILS, VERBS_KEYS_APP, 42, &got) ==
			 VERBS_KEYS_NONE;
		bytes[i] ^= 0x5a;
	}
	tap_is_int(wrong, 0, "D1: what is torn is never taken for \"not there\"");
	root[100] ^= 1;
	tap_is_int(verbs_keys_root_read(root, RAILS, &view), -EAGAIN, "D1: a torn root");
	root[100] ^= 1;
	tap_is_int(verbs_keys_root_read(root, RAILS + 1, &view), -EPROTO,
		   "another number of rails");
}

static void test_many(struct verbs_keys *keys)
{
	struct verbs_keys_entry got;
	int missing = 0, left = 0;

	for (uint64_t k = 1000; k < 1000 + MANY; k++) {
		struct verbs_keys_entry e = entry(k, 1);

		missing += verbs_keys_insert(keys, &e) != 0;
	}
	for (uint64_t k = 1000; k < 1000 + MANY; k++)
		missing += look(keys, k, &got) != VERBS_KEYS_FOUND || got.key != k ||
			   got.piece[0].rkey[1] != k + 1;
	tap_is_int(missing, 0, "thousands of keys are all found");
	tap_ok(adds > 3, "the table grew: %d pieces of memory", adds);
	for (uint64_t k = 1000; k < 1000 + MANY; k++)
		verbs_keys_remove(keys, VERBS_KEYS_APP, k);
	for (uint64_t k = 1000; k < 1000 + MANY; k++)
		left += look(keys, k, &got) != VERBS_KEYS_NONE;
	tap_is_int(left, 0, "and none is left");
}

int main(void)
{
	struct verbs_keys *keys;

	if (verbs_keys_open(RAILS, &ops, NULL, &keys))
		tap_bail("no table");
	test_find(keys);
	test_torn(keys);
	test_many(keys);
	verbs_keys_close(keys);
	tap_is_int(drops, adds, "all memory was given back");
	return tap_done();
}
