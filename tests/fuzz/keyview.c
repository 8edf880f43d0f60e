/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key table that a peer filled at will: whatever a reader finds in it, the pieces that
 * it gives are as many and as long as was asked, and none wraps around. The input is a
 * question, the table's header and entries, which are laid where the question looks.
 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>

#include "prov/mem/keytab.h"
#include "prov/mem/keytab_format.h"
#include "prov/mem/memfd.h"
#include "tests/fuzz/fuzz.h"

#define CAPACITY KEYTAB_CAPACITY_MIN

struct question {
	uint64_t key, addr, len, access;
	struct keytab_header header;
};

static uint8_t *table; /* CAPACITY entries behind their header; zero between inputs */
static int table_fd;

static void table_open(void)
{
	void *map;

	fuzz_require(mem_memfd_create("fuzz-keys", keytab_map_size(CAPACITY), &table_fd,
				      &map) == 0);
	table = map;
}

/* Index of the entry that a reader looks at in its step-th look for the key. */
static uint32_t looked_at(uint64_t key, uint32_t step)
{
	if (key & KEYTAB_KEY_MARK && step == 0 && (uint32_t)key < CAPACITY)
		return (uint32_t)key;
	return keytab_bucket(CAPACITY, key, step / KEYTAB_BUCKET % 2) +
	       step % KEYTAB_BUCKET;
}

static uint8_t *entry_place(uint64_t key, uint32_t step)
{
	return table + KEYTAB_HEADER_SIZE +
	       (size_t)looked_at(key, step) * sizeof(struct keytab_entry);
}

/* Entries that fit; puts them there, or takes them away. */
static void entries_lay(const struct question *q, const uint8_t *data, size_t size,
			bool there)
{
	const size_t len = sizeof(struct keytab_entry);

	for (uint32_t i = 0; size >= len && i < 2 * KEYTAB_BUCKET; i++, size -= len) {
		if (there)
			memcpy(entry_place(q->key, i), data + i * len, len);
		else
			memset(entry_place(q->key, i), 0, len);
	}
}

static bool view_ask(const struct mem_keyview *view, const struct question *q)
{
	struct iovec iov[MEM_REGION_IOV + 1];
	uint32_t count = UINT32_MAX, incarnation;
	uint64_t sum = 0;

	memset(iov, 0xee, sizeof(iov));
	if (mem_keyview_find(view, q->key, q->addr, q->len, q->access, iov, &count,
			     &incarnation))
		return false;
	fuzz_require(count <= MEM_REGION_IOV);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t base = (uintptr_t)iov[i].iov_base;

		fuzz_require(iov[i].iov_len > 0);
		fuzz_require(iov[i].iov_len - 1 <= UINT64_MAX - base);
		sum += iov[i].iov_len;
	}
	fuzz_require(sum == q->len);
	fuzz_require((uintptr_t)iov[MEM_REGION_IOV].iov_base ==
		     UINT64_C(0xeeeeeeeeeeeeeeee));
	return true;
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	struct mem_keyview *view;
	struct question q;
	bool found = false;

	if (!table)
		table_open();
	if (size < sizeof(q))
		return false;
	memcpy(&q, data, sizeof(q));
	data += sizeof(q);
	size -= sizeof(q);
	memcpy(table, &q.header, sizeof(q.header));
	entries_lay(&q, data, size, true);
	if (mem_keyview_open(dup(table_fd), &view) == 0) {
		fuzz_require(q.header.magic == KEYTAB_MAGIC &&
			     q.header.capacity == CAPACITY);
		found = view_ask(view, &q);
		mem_keyview_close(view);
	}
	entries_lay(&q, data, size, false);
	return found;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	struct question q = {.access = FI_REMOTE_WRITE,
			     .addr = 100,
			     .len = 300,
			     .header = {.magic = KEYTAB_MAGIC,
					.version = KEYTAB_VERSION,
					.entry_size = sizeof(struct keytab_entry),
					.capacity = CAPACITY}};
	struct keytab_entry e = {
		.seq = 2,
		.flags = KEYTAB_USED,
		.access = FI_REMOTE_WRITE | FI_REMOTE_READ,
		.iov_count = 2,
		.incarnation = 1,
		.iov = {{.addr = 1 << 20, .len = 200}, {.addr = 2 << 20, .len = 200}}};

	switch (number) {
	case 0:
		q.key = 42; /* the owner's own key: hashed */
		break;
	case 1:
		q.key = KEYTAB_KEY_MARK | UINT64_C(3) << 32 | 5; /* the table's choice */
		break;
	case 2:
		q.key = 42;
		q.addr += 1 << 20;
		e.flags |= KEYTAB_VIRT_ADDR;
		break;
	case 3:
		q.key = 42;
		q.addr = 400;
		q.len = 0;
		break;
	default:
		return 0;
	}
	e.key = q.key;
	memcpy(room, &q, sizeof(q));
	memcpy(room + sizeof(q), &e, sizeof(e));
	return sizeof(q) + sizeof(e);
}
