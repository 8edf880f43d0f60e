/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts that are done when their bytes are in the peer's memory, over devices that
 * acknowledge writes before they are there (placed.t): whoever looks when a put is done
 * sees all of it, whatever queue pairs it used and whichever of these died meanwhile.
 * Rules A8, E3.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_link.h"
#include "util/tap.h"

#define MEMORY ((size_t)2 << 20)
#define ROUNDS 150

struct ends {
	struct rig a;
	struct rig b;
	uint8_t *from;
	void *handle;
	uint8_t *to;
	uint64_t key;
	bool helps; /* the target makes calls: lanes that die want a report of it */
};

static void step(struct ends *e)
{
	verbs_wire_ops.progress(e->a.ep, 64);
	if (e->helps)
		verbs_wire_ops.progress(e->b.ep, 64);
}

static bool wait_puts(struct ends *e, int want)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (e->a.segments < want && rig_now() < end)
		step(e);
	return e->a.segments >= want;
}

static void fill(struct ends *e, size_t len, int round)
{
	for (size_t i = 0; i < len; i++)
		e->from[i] = (uint8_t)(i * 5 + (i >> 8) + (size_t)round * 3);
}

/* One put, waited for. Whether all of it is there by then. */
static bool put_seen(struct ends *e, size_t at, size_t len, int round, bool placed)
{
	struct iovec iov = {.iov_base = e->from, .iov_len = len};
	struct wire_segment seg = {
		.local = &iov,
		.handles = &e->handle,
		.local_count = 1,
		.remote = {.addr = (uintptr_t)e->to + at, .key = e->key},
		.len = len,
		.placed = placed,
		.cookie = e};
	int before = e->a.segments, ret;

	fill(e, len, round);
	do {
		ret = verbs_wire_ops.put(e->a.dialled, &seg);
		if (ret == -FI_EAGAIN)
			step(e);
	} while (ret == -FI_EAGAIN);
	if (ret || !wait_puts(e, before + 1))
		tap_bail("a put: %d", ret);
	return memcmp(e->to + at, e->from, len) == 0;
}

static size_t length_of(int round)
{
	return round % 3 == 0 ? MEMORY - (size_t)round : (size_t)round * 7 + 1;
}

/* Many at once: the reads behind them are shared. */
static bool crowd_seen(struct ends *e)
{
	enum { CROWD = 64, EACH = 5000 };
	int before = e->a.segments;

	fill(e, CROWD * EACH, 999);
	for (int i = 0; i < CROWD; i++) {
		uint8_t *at = e->from + (size_t)i * EACH;
		struct iovec iov = {.iov_base = at, .iov_len = EACH};
		struct wire_segment seg = {
			.local = &iov,
			.handles = &e->handle,
			.local_count = 1,
			.remote = {.addr = (uintptr_t)e->to + (size_t)i * EACH,
				   .key = e->key},
			.len = EACH,
			.placed = true,
			.cookie = e};

		while (verbs_wire_ops.put(e->a.dialled, &seg) == -FI_EAGAIN)
			step(e);
	}
	return wait_puts(e, before + CROWD) &&
	       memcmp(e->to, e->from, (size_t)CROWD * EACH) == 0;
}

/* A notice of memory in two pieces comes behind both. */
static bool notice_seen(struct ends *e, int round)
{
	struct mem_region region = {
		.iov_count = 2, .access = FI_REMOTE_WRITE, .virt_addr = false};
	const struct wire_notice n = {.data = (uint64_t)round + 1, .op = 1};
	uint64_t key, before = e->b.arrived;
	bool there, helps = e->helps;
	int puts = e->a.segments;

	region.iov[0] = (struct iovec){e->to, 70000};
	region.iov[1] = (struct iovec){e->to + MEMORY / 2, 3000};
	if (mem_keytab_insert(e->b.keys, &region, &key) ||
	    verbs_wire_ops.key_add(e->b.ep, key, &region))
		tap_bail("no key");
	fill(e, 73000, round);
	if (rig_start(&e->a, e->a.dialled, true, e->from, e->handle, 73000, 0, key, &n))
		tap_bail("a notice");
	for (uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	     e->b.arrived == before && rig_now() < end;) {
		verbs_wire_ops.progress(e->b.ep, 64);
		if (e->b.arrived == before)
			verbs_wire_ops.progress(e->a.ep, 64);
	}
	there = e->b.arrived == before + 1 && memcmp(e->to, e->from, 70000) == 0 &&
		memcmp(e->to + MEMORY / 2, e->from + 70000, 3000) == 0;
	e->helps = true;
	there = wait_puts(e, puts + 1) && there;
	e->helps = helps;
	rig_unregister(&e->b, key);
	return there;
}

static void ends_open(struct ends *e)
{
	rig_open(&e->a);
	rig_open(&e->b);
	e->from = rig_memory(&e->a, MEMORY, &e->handle);
	e->to = mmap(NULL, MEMORY + 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (e->to == MAP_FAILED ||
	    rig_register(&e->b, e->to, MEMORY + 4096, FI_REMOTE_READ | FI_REMOTE_WRITE,
			 &e->key))
		tap_bail("no memory");
	if (rig_dial(&e->a, &wire_ep_base(e->b.ep)->addr))
		tap_bail("dial: %d, down %d", e->a.downs, e->a.down_err);
}

/* The target sees a word, and writes over it. What is written again after that shows at
 * the end. */
static int numbered(void)
{
	enum { WORDS = 300 };
	struct verbs_link_counts c;
	int again = 0, unseen = 0;
	struct ends e;

	ends_open(&e);
	e.helps = true;
	for (int i = 0; i < WORDS; i++) {
		_Atomic(uint64_t) *words = (void *)e.to, *at = &words[i];
		uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
		int before = e.a.segments;

		memset(e.from, i % 250 + 1, 8);
		if (rig_start(&e.a, e.a.dialled, true, e.from, e.handle, 8, (uintptr_t)at,
			      e.key, NULL))
			tap_bail("a put");
		while (atomic_load(at) == 0 && rig_now() < end)
			step(&e);
		unseen += atomic_load(at) == 0;
		atomic_store(at, UINT64_MAX);
		unseen += !wait_puts(&e, before + 1);
	}
	for (int i = 0; i < WORDS; i++)
		again += ((uint64_t *)(void *)e.to)[i] != UINT64_MAX;
	tap_is_int(unseen, 0, "all puts arrive and end");
	tap_is_int(again, 0, "C4: none is written again after its target saw it");
	tap_is_int((long long)e.b.arrived, 0, "and nobody hears of them");
	tap_is_int(e.a.segment_errs, 0, "without an error");
	verbs_link_count(verbs_link_of(e.a.dialled), &c);
	tap_ok(c.retired > 0, "although acknowledgements were lost");
	verbs_wire_ops.hangup(e.a.dialled);
	rig_close(&e.a);
	rig_close(&e.b);
	return tap_done();
}

int main(void)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	struct verbs_link_counts c;
	int unseen = 0, early = 0, round = 0;
	struct ends e;

	if (getenv("FI_WEFT_NUMBERED"))
		return numbered();
	ends_open(&e);
	e.helps = getenv("PLACED_WANT") != NULL;
	/* Without it these devices do say so too early: else nothing is tried here. */
	while (!early && rig_now() < end)
		early += !put_seen(&e, MEMORY, 8, ++round, false);
	tap_ok(early, "an acknowledgement may come before the bytes are there");
	/* They may still land: nothing is looked for where they do. */
	for (round = 0; round < ROUNDS; round++)
		unseen += !put_seen(&e, 0, length_of(round), round, true);
	tap_is_int(unseen, 0, "E3: a put that is done is in the peer's memory");
	tap_ok(crowd_seen(&e), "E3: and so are many");
	for (unseen = 0, round = 0; round < 20; round++)
		unseen += !notice_seen(&e, round);
	tap_is_int(unseen, 0, "A8: a notice comes behind all pieces of memory");
	tap_is_int(e.a.segment_errs, 0, "without an error");
	tap_ok(verbs_link_of(e.a.dialled)->flush.with > 0,
	       "E3: the read of a put of one segment goes with it");
	verbs_link_count(verbs_link_of(e.a.dialled), &c);
	tap_diag("%llu segments, %llu again, %llu retired",
		 (unsigned long long)c.segments, (unsigned long long)c.again,
		 (unsigned long long)c.retired);
	if (getenv("PLACED_WANT"))
		tap_ok(c.retired > 0, "although lanes were retired");
	if (getenv("PLACED_STOPS"))
		tap_ok(c.stops > 0 && c.again > 0, "C4: lanes of a target that made no "
						   "call were stopped at its door");
	verbs_wire_ops.hangup(e.a.dialled);
	rig_close(&e.a);
	rig_close(&e.b);
	return tap_done();
}
