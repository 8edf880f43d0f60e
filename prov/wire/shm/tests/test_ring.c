/* SPDX-License-Identifier: BSD-2-Clause */
/* The packet ring: any sizes, any fill, two threads, and a peer that writes nonsense. */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "prov/wire/shm/shm_ring.h"
#include "util/tap.h"

static uint64_t rng_next(uint64_t *s)
{
	uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t rng_seed(void)
{
	const char *env = getenv("WEFT_TEST_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);

	tap_diag("WEFT_TEST_SEED=%" PRIu64, seed);
	return seed;
}

struct ring {
	struct shm_ring_mem *mem;
	struct shm_ring_tx tx;
	struct shm_ring_rx rx;
};

static void ring_open(struct ring *r)
{
	r->mem = aligned_alloc(64, sizeof(*r->mem));
	if (!r->mem)
		tap_bail("no memory");
	/* Old bytes must never be taken for a record: only what the ring itself relies on
	 * is zero, as in fresh memory of a link. */
	memset(r->mem, 0, sizeof(*r->mem));
	shm_ring_tx_init(&r->tx, r->mem);
	shm_ring_rx_init(&r->rx, r->mem);
}

static size_t random_len(uint64_t *s)
{
	switch (rng_next(s) % 4) {
	case 0:
		return rng_next(s) % 64;
	case 1:
		return rng_next(s) % 600;
	case 2:
		return SHM_MAX_PACKET - rng_next(s) % 3;
	default:
		return rng_next(s) % (SHM_MAX_PACKET + 1);
	}
}

static void fill(uint8_t *pkt, size_t len, uint64_t n)
{
	for (size_t i = 0; i < len; i++)
		pkt[i] = (uint8_t)(n * 13 + i);
}

static bool check(const uint8_t *pkt, size_t len, uint64_t n)
{
	for (size_t i = 0; i < len; i++)
		if (pkt[i] != (uint8_t)(n * 13 + i))
			return false;
	return true;
}

/* By the slot where that will do, as the layers above do it. */
static void *room_for(struct shm_ring_tx *tx, size_t len, uint32_t spare)
{
	if ((int64_t)len <= tx->slot.room)
		return tx->slot.at;
	return shm_ring_reserve(tx, len, spare);
}

/* Both ends in one thread, at random: what was committed is what comes, in order. */
static void test_B1_model(uint64_t seed)
{
	enum { QUEUE = 4096 };
	static size_t lens[QUEUE];
	uint64_t sent = 0, got = 0, wrong = 0, full = 0;
	struct ring r;

	ring_open(&r);
	for (int step = 0; step < 400000; step++) {
		const void *pkt;
		uint32_t len;

		if (rng_next(&seed) % 100 < (step / 1000 % 2 ? 60u : 40u)) {
			size_t want = random_len(&seed);
			uint8_t *out = room_for(&r.tx, want, 0);

			if (!out) {
				full++;
				continue;
			}
			wrong += (uintptr_t)out % 8 != 0;
			/* A commit may shorten. */
			if (rng_next(&seed) % 8 == 0)
				want = rng_next(&seed) % (want + 1);
			fill(out, want, sent);
			lens[sent++ % QUEUE] = want;
			shm_ring_commit(&r.tx, out, want);
			continue;
		}
		switch (shm_ring_take(&r.rx, &pkt, &len)) {
		case SHM_RING_EMPTY:
			wrong += got != sent;
			if (rng_next(&seed) % 4 == 0)
				shm_ring_publish(&r.rx);
			break;
		case SHM_RING_PACKET:
			wrong += got >= sent || len != lens[got % QUEUE] ||
				 !check(pkt, len, got);
			got++;
			if (shm_ring_is_due(&r.rx))
				shm_ring_publish(&r.rx);
			break;
		case SHM_RING_BROKEN:
			wrong++;
			break;
		}
	}
	tap_diag("%" PRIu64 " packets, %" PRIu64 " times full", got, full);
	tap_ok(got > 10000 && full > 100, "the ring wrapped and was full often");
	tap_is_int((int64_t)wrong, 0, "every packet came once, whole, in order");
	free(r.mem);
}

/* Rule B3: data leaves the last quarter to control packets. */
static void test_B3_reserve(void)
{
	struct ring r;
	const void *pkt;
	uint32_t len;
	int data = 0, control = 0;
	void *out;

	ring_open(&r);
	while ((out = shm_ring_reserve(&r.tx, 1000, SHM_RING_BYTES / 4))) {
		shm_ring_commit(&r.tx, out, 1000);
		data++;
	}
	while ((out = shm_ring_reserve(&r.tx, 1000, 0))) {
		shm_ring_commit(&r.tx, out, 1000);
		control++;
	}
	tap_ok(data >= 40, "data has its room (%d)", data);
	tap_ok(control >= 14, "control has a quarter when data has none (%d)", control);
	tap_ok(r.tx.blocked && atomic_load(&r.mem->waiting),
	       "the producer asks for room");
	tap_ok(!shm_ring_unblock(&r.tx), "which isn't there yet");
	while (shm_ring_take(&r.rx, &pkt, &len) == SHM_RING_PACKET)
		;
	tap_ok(shm_ring_publish(&r.rx), "the consumer learns that it is waited for");
	tap_ok(!shm_ring_publish(&r.rx), "once");
	tap_ok(shm_ring_unblock(&r.tx), "and there is room");
	tap_ok(shm_ring_reserve(&r.tx, SHM_MAX_PACKET, SHM_RING_BYTES / 4) != NULL,
	       "for the largest packet");
	free(r.mem);
}

/* Rule B3 holds for slots: whatever was sent and taken before, what a slot allows leaves
 * the spare free, and it never leads past the end. */
static void test_B3_slot(uint64_t seed)
{
	uint64_t wrong = 0, used = 0;
	const void *pkt;
	uint32_t len;
	struct ring r;

	ring_open(&r);
	for (int i = 0; i < 200000; i++) {
		size_t want = random_len(&seed);
		bool data = rng_next(&seed) % 4;
		char *out = data ? room_for(&r.tx, want, SHM_RING_DATA_SPARE)
				 : shm_ring_reserve(&r.tx, want, 0);
		uint64_t left;

		if (rng_next(&seed) % 64 == 0) {
			while (shm_ring_take(&r.rx, &pkt, &len) == SHM_RING_PACKET)
				;
			shm_ring_publish(&r.rx);
		}
		if (!out)
			continue;
		used += data;
		wrong += out + want > (char *)r.mem->bytes + SHM_RING_BYTES;
		shm_ring_commit(&r.tx, out, want);
		left = SHM_RING_BYTES - (r.tx.produced - atomic_load(&r.mem->consumed));
		wrong += left < (data ? SHM_RING_DATA_SPARE : 0) + SHM_CACHE_LINE;
	}
	tap_ok(used > 10000 && !wrong, "B3: data by slot leaves the spare, %" PRIu64,
	       used);
	free(r.mem);
}

/* The largest packets always find room in the end, whatever the position. */
static void test_largest(void)
{
	int stuck = 0;

	for (int lead = 0; lead < 200; lead++) {
		struct ring r;
		const void *pkt;
		uint32_t len;

		ring_open(&r);
		for (int i = 0; i < lead; i++) {
			void *out = shm_ring_reserve(&r.tx, 300, 0);

			if (!out)
				break;
			shm_ring_commit(&r.tx, out, 300);
			while (shm_ring_take(&r.rx, &pkt, &len) == SHM_RING_PACKET)
				;
			shm_ring_publish(&r.rx);
		}
		stuck += !shm_ring_reserve(&r.tx, SHM_MAX_PACKET, SHM_RING_BYTES / 4);
		free(r.mem);
	}
	tap_is_int(stuck, 0, "an empty ring takes the largest packet at any position");
}

/* Producer and consumer at once, with cold phases: nothing is lost, nobody waits for
 * ever. */
struct duet {
	struct ring r;
	uint64_t count;
	uint64_t seed;
	_Atomic(uint64_t) rings; /* "look!": times that the producer said so */
	_Atomic(uint64_t) wakes; /* "room!" */
};

static void *duet_produce(void *arg)
{
	struct duet *d = arg;
	uint64_t s = d->seed;

	for (uint64_t n = 0; n < d->count; n++) {
		size_t len = random_len(&s) % 2000;
		uint8_t *out;

		while (!(out = room_for(&d->r.tx, len, SHM_RING_BYTES / 4))) {
			uint64_t wakes = atomic_load(&d->wakes);

			/* Asleep until told, as an endpoint would be. */
			while (!shm_ring_unblock(&d->r.tx) &&
			       atomic_load(&d->wakes) == wakes)
				sched_yield();
		}
		fill(out, len, n);
		if (shm_ring_commit(&d->r.tx, out, len))
			atomic_fetch_add(&d->rings, 1);
	}
	return NULL;
}

static void test_two_threads(uint64_t seed)
{
	struct duet d = {.count = tap_short() ? 30000 : 200000, .seed = seed};
	uint64_t got = 0, wrong = 0, colds = 0, rings = 0;
	pthread_t thread;

	ring_open(&d.r);
	pthread_create(&thread, NULL, duet_produce, &d);
	while (got < d.count && !wrong) {
		const void *pkt;
		uint32_t len;
		enum shm_ring_found found = shm_ring_take(&d.r.rx, &pkt, &len);

		if (found == SHM_RING_PACKET) {
			wrong += !check(pkt, len, got);
			got++;
			if (shm_ring_is_due(&d.r.rx) && shm_ring_publish(&d.r.rx))
				atomic_fetch_add(&d.wakes, 1);
			continue;
		}
		wrong += found == SHM_RING_BROKEN;
		if (shm_ring_publish(&d.r.rx))
			atomic_fetch_add(&d.wakes, 1);
		/* Cold, and blind until the producer rings. */
		shm_ring_set_mode(&d.r.rx, SHM_RING_COLD);
		colds++;
		while (!shm_ring_ready(&d.r.rx) && atomic_load(&d.rings) == rings)
			sched_yield();
		rings = atomic_load(&d.rings);
		shm_ring_set_mode(&d.r.rx, SHM_RING_HOT);
	}
	pthread_join(thread, NULL);
	tap_diag("%" PRIu64 " cold phases", colds);
	tap_ok(got == d.count && wrong == 0, "two threads: every packet once, in order");
	free(d.r.mem);
}

/* A peer may write anything: the consumer stays inside the ring and comes back. */
static void test_hostile_consumer(uint64_t seed)
{
	uint64_t outside = 0, packets = 0, broken = 0;
	struct ring r;

	ring_open(&r);
	for (int round = 0; round < 200000; round++) {
		const uint8_t *begin = r.mem->bytes, *end = begin + SHM_RING_BYTES;
		const void *pkt;
		uint32_t len;
		uint64_t word = rng_next(&seed);

		switch (rng_next(&seed) % 4) {
		case 0:
			break;
		case 1:
			word = shm_record_word(SHM_RECORD_PACKET, (uint32_t)word);
			break;
		case 2:
			word = shm_record_word(SHM_RECORD_PACKET, (uint32_t)word % 9000);
			break;
		default:
			word = shm_record_word(SHM_RECORD_SKIP, (uint32_t)word);
			break;
		}
		atomic_store(shm_ring_word(r.mem, r.rx.offset), word);
		if (round % 3 == 0)
			atomic_store(shm_ring_word(r.mem, 0), rng_next(&seed) >> 28);
		switch (shm_ring_take(&r.rx, &pkt, &len)) {
		case SHM_RING_PACKET:
			packets++;
			outside += (const uint8_t *)pkt < begin ||
				   (const uint8_t *)pkt + len > end;
			outside += r.rx.offset >= SHM_RING_BYTES || r.rx.offset % 64;
			break;
		case SHM_RING_BROKEN:
			broken++;
			shm_ring_rx_init(&r.rx, r.mem); /* the link would be reset */
			r.rx.offset =
				(uint32_t)(rng_next(&seed) % (SHM_RING_BYTES / 64)) * 64;
			break;
		case SHM_RING_EMPTY:
			break;
		}
	}
	tap_ok(packets > 1000 && broken > 1000, "both were seen");
	tap_is_int((int64_t)outside, 0, "nonsense never leads outside the ring");
	free(r.mem);
}

static void test_hostile_producer(uint64_t seed)
{
	uint64_t outside = 0;
	struct ring r;

	ring_open(&r);
	for (int round = 0; round < 100000; round++) {
		const uint8_t *begin = r.mem->bytes, *end = begin + SHM_RING_BYTES;
		size_t len = random_len(&seed);
		uint8_t *out;

		atomic_store(&r.mem->consumed, rng_next(&seed) >> (rng_next(&seed) % 64));
		out = shm_ring_reserve(&r.tx, len, 0);
		if (!out)
			continue;
		outside += out < begin || out + len > end;
		shm_ring_commit(&r.tx, out, len);
		outside += r.tx.offset >= SHM_RING_BYTES;
	}
	tap_is_int((int64_t)outside, 0, "a lying count never leads the producer outside");
	free(r.mem);
}

int main(void)
{
	uint64_t seed = rng_seed();

	alarm(280);
	test_B1_model(seed);
	test_B3_reserve();
	test_B3_slot(seed);
	test_largest();
	test_two_threads(seed);
	test_hostile_consumer(seed);
	test_hostile_producer(seed);
	return tap_done();
}
