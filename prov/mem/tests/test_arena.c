/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for applications against a model: blocks don't overlap, come zeroed, can't be
 * freed while held, and a word leads to the very bytes that a peer would map.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/arena.h"
#include "prov/mem/memfd.h"
#include "util/tap.h"

#define BLOCKS 64

struct model {
	uint8_t *at; /* NULL: free */
	size_t len;
	uint8_t fill;
	uint64_t held; /* a word, or 0 */
};

static uint64_t random_state;

static uint64_t next_random(void)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	return z ^ (z >> 29);
}

/* First and last bytes, and some between: enough to notice a neighbour. */
static bool is_filled(const uint8_t *p, size_t len, uint8_t with)
{
	for (size_t i = 0; i < len; i += i % 4096 < 64 || len - i < 64 ? 1 : 61)
		if (p[i] != with)
			return false;
	return p[len - 1] == with;
}

static int step_alloc(struct mem_arena *a, struct model *m)
{
	void *at;

	m->len = 1 + (size_t)(next_random() % (next_random() % 8 ? 30000 : 9000000));
	if (mem_arena_alloc(a, m->len, &at))
		return 1;
	m->at = at;
	m->fill = (uint8_t)(1 + next_random() % 255);
	if ((uintptr_t)at % 4096 || !is_filled(at, m->len, 0))
		return 1;
	memset(at, m->fill, m->len);
	return 0;
}

static int step_used(struct mem_arena *a, struct model *m)
{
	if (!is_filled(m->at, m->len, m->fill))
		return 1;
	if (m->held) {
		if (mem_arena_free(a, m->at) != -FI_EBUSY)
			return 1;
		mem_arena_drop(a, m->held);
		m->held = 0;
		return 0;
	}
	if (next_random() % 2) {
		size_t off = (size_t)(next_random() % m->len);

		m->held = mem_arena_hold(a, m->at + off, m->len - off);
		return m->held == 0;
	}
	if (mem_arena_free(a, m->at + 1) != -FI_EINVAL || mem_arena_free(a, m->at) ||
	    mem_arena_free(a, m->at) != -FI_EINVAL)
		return 1;
	m->at = NULL;
	return 0;
}

static void test_model(uint64_t seed)
{
	static struct model model[BLOCKS];
	struct mem_arena *a;
	int bad = 0;

	random_state = seed;
	memset(model, 0, sizeof(model));
	if (mem_arena_open(&a))
		tap_bail("arena");
	for (int i = 0; i < 4000 && !bad; i++) {
		struct model *m = &model[next_random() % BLOCKS];

		bad += m->at ? step_used(a, m) : step_alloc(a, m);
	}
	tap_ok(!bad, "blocks against a model, seed %" PRIu64, seed);
	mem_arena_close(a);
}

static void test_words(void)
{
	uint8_t other[8] = {0};
	struct mem_arena *a;
	size_t size;
	void *p, *q, *map;
	uint64_t word;
	int fd;

	mem_arena_open(&a);
	tap_is_int(mem_arena_fd(a, 0, &size), -1, "no segment before it is needed");
	tap_is_int(mem_arena_alloc(a, 0, &p), -FI_EINVAL, "no bytes");
	tap_ok(mem_arena_alloc(a, SIZE_MAX, &p) < 0, "all bytes");
	tap_is_int(mem_arena_alloc(a, 5000, &p), 0, "a block");
	tap_is_int(mem_arena_alloc(a, 100, &q), 0, "another");
	tap_ok(mem_arena_hold(a, other, 8) == 0, "other memory lies nowhere");
	tap_ok(mem_arena_hold(a, p, 8193) == 0, "nor does what is longer than a block");
	word = mem_arena_hold(a, (char *)p + 4096, 904);
	tap_ok(word != 0, "a part of a block does");
	fd = mem_arena_fd(a, mem_share_segment(word), &size);
	tap_is_int(mem_memfd_map(fd, &size, true, &map), 0, "a peer may map it");
	memcpy((char *)map + mem_share_offset(word), "hello", 5);
	tap_ok(memcmp((char *)p + 4096, "hello", 5) == 0, "and writes the very bytes");
	munmap(map, size);
	mem_arena_drop(a, word);
	tap_is_int(mem_arena_free(a, p), 0, "free when dropped");
	tap_is_int(mem_arena_alloc(a, (size_t)300 << 20, &p), 0, "a large one");
	word = mem_arena_hold(a, p, (size_t)300 << 20);
	tap_is_int(mem_share_segment(word), 1, "has a segment of its own");
	((char *)p)[((size_t)300 << 20) - 1] = 1;
	mem_arena_close(a);
}

int main(void)
{
	const char *env = getenv("WEFT_TEST_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);

	alarm(280);
	tap_diag("WEFT_TEST_SEED=%" PRIu64, seed);
	test_words();
	for (uint64_t i = 0; i < 4; i++)
		test_model(seed + i);
	return tap_done();
}
