/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service RMA, as a peer may ask for it that writes anything into its slot: the target
 * moves bytes inside what it registered for that, or none. The input is the slot.
 */
#include "config.h"

#include <string.h>

#include <rdma/fabric.h>

#include "prov/mem/memfd.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_link.h"
#include "tests/fuzz/fuzz.h"

#define GUARD 64
#define PIECE 1000

enum region { REGION_WRITE, REGION_READ, REGIONS };

/* A target without an endpoint's threads. */
struct target {
	struct shm_ep ep;
	struct shm_link link;
	uint64_t key[REGIONS];
	/* Two pieces each, with a guard around every piece. */
	uint8_t memory[REGIONS][2 * (GUARD + PIECE) + GUARD];
	uint8_t before[REGIONS][2 * (GUARD + PIECE) + GUARD];
};

static struct target *target_open(void)
{
	struct target *t = calloc(1, sizeof(*t));
	struct mem_keyview *view = NULL;
	void *map = NULL;

	fuzz_require(t && mem_keytab_open(64, &t->ep.keys) == 0 &&
		     mem_keyview_own(t->ep.keys, &view) == 0 &&
		     shm_hub_init(&t->ep.hub) == 0 &&
		     mem_memfd_create("fuzz-pair", SHM_PAIR_SIZE, &t->link.pair_fd,
				      &map) == 0);
	t->ep.own_keys = view;
	t->link.ep = &t->ep;
	t->link.pair = map;
	t->link.side = 1;
	t->link.peer_hub =
		(struct shm_hub_peer){.mem = t->ep.hub.mem, .wake = t->ep.hub.wake_tx};
	for (int r = 0; r < REGIONS; r++) {
		struct mem_region region = {
			.iov = {{.iov_base = t->memory[r] + GUARD, .iov_len = PIECE},
				{.iov_base = t->memory[r] + 2 * GUARD + PIECE,
				 .iov_len = PIECE}},
			.iov_count = 2,
			.access = r == REGION_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE};

		fuzz_require(mem_keytab_insert(t->ep.keys, &region, &t->key[r]) == 0);
	}
	return t;
}

/* Where byte `at` of a region lies in its memory. */
static size_t region_place(uint64_t at)
{
	return GUARD + (size_t)at + (at >= PIECE ? GUARD : 0);
}

/* What the answer promises about the memory of the target. */
static void memory_require(const struct target *t, const struct shm_service_slot *asked,
			   int status, const uint8_t *chunk)
{
	const bool put = status == 0 && asked->op == SHM_SERVICE_PUT;
	const bool get = status == 0 && asked->op == SHM_SERVICE_GET;
	uint8_t want[sizeof(t->memory[0])];

	memcpy(want, t->before[REGION_WRITE], sizeof(want));
	for (uint32_t i = 0; put && i < asked->len; i++)
		want[region_place(asked->addr + asked->offset + i)] = chunk[i];
	fuzz_require(memcmp(t->memory[REGION_WRITE], want, sizeof(want)) == 0);
	fuzz_require(memcmp(t->memory[REGION_READ], t->before[REGION_READ],
			    sizeof(want)) == 0);
	for (uint32_t i = 0; get && i < asked->len; i++)
		fuzz_require(chunk[i] == t->memory[REGION_READ][region_place(
						 asked->addr + asked->offset + i)]);
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	static struct target *t;
	struct shm_service_slot asked, *slot;
	struct shm_service_mem *mem;
	unsigned index;
	bool right, served;

	if (!t)
		t = target_open();
	if (size != sizeof(asked))
		return false;
	memcpy(&asked, data, size);
	/* Keys that exist can't be guessed; small numbers stand for them. */
	if (asked.key < REGIONS)
		asked.key = t->key[asked.key];
	mem = &t->link.pair->service[0];
	index = (unsigned)(t->link.service_rx.served % SHM_SERVICE_SLOTS);
	slot = &mem->slots[index];
	/* So does the state that is expected. */
	if (asked.state == SHM_SLOT_ASKED)
		asked.state = t->link.service_rx.served / SHM_SERVICE_SLOTS * 4 +
			      SHM_SLOT_ASKED;
	right = asked.state ==
		t->link.service_rx.served / SHM_SERVICE_SLOTS * 4 + SHM_SLOT_ASKED;
	for (size_t i = 0; i < sizeof(t->memory[0]); i++) {
		t->memory[REGION_WRITE][i] = (uint8_t)(i * 7);
		t->memory[REGION_READ][i] = (uint8_t)(i * 5 + 1);
	}
	memcpy(t->before, t->memory, sizeof(t->memory));
	for (size_t i = 0; i < 2 * PIECE; i++)
		mem->chunks[index][i] = (uint8_t)(i * 3 + 2);
	memcpy(slot, &asked, sizeof(*slot));
	served = shm_service_serve(&t->link);
	fuzz_require(served == right);
	if (!served)
		return false;
	fuzz_require(slot->status <= 0 && slot->status >= -4095);
	memory_require(t, &asked, slot->status, mem->chunks[index]);
	shm_hub_disarm(&t->ep.hub, true);
	return slot->status == 0;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	struct shm_service_slot slot = {.state = SHM_SLOT_ASKED,
					.addr = 0,
					.total = 2 * PIECE,
					.offset = 100,
					.len = 2 * PIECE - 100};

	if (number > 2)
		return 0;
	slot.op = number == 1 ? SHM_SERVICE_GET : SHM_SERVICE_PUT;
	slot.key = number == 1 ? REGION_READ : REGION_WRITE;
	if (number == 2) {
		slot.addr = PIECE - 10;
		slot.total = slot.len = 20;
		slot.offset = 0;
	}
	memcpy(room, &slot, sizeof(slot));
	return sizeof(slot);
}
