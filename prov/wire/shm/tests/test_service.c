/* SPDX-License-Identifier: BSD-2-Clause */
/* An initiator that breaks the rules: the target's helper thread believes nothing. */
#include "config.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_link.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

struct bad {
	struct rig a; /* the initiator's */
	struct rig b; /* the target's; makes no call */
	struct shm_link *link;
	uint64_t chunks;
};

/* What the target says to one chunk; 1: nothing within the time. */
static int ask(struct bad *bad, uint64_t key, uint64_t addr, uint64_t total,
	       uint64_t offset, uint32_t len, uint32_t op)
{
	struct shm_service_mem *mem = &bad->link->pair->service[0];
	struct shm_service_slot *slot = &mem->slots[bad->chunks % SHM_SERVICE_SLOTS];
	uint64_t turn = bad->chunks / SHM_SERVICE_SLOTS * 4;
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	slot->key = key;
	slot->addr = addr;
	slot->total = total;
	slot->offset = offset;
	slot->len = len;
	slot->op = op;
	slot->status = 1;
	atomic_store(&slot->state, turn + SHM_SLOT_ASKED);
	send(bad->link->sock, "", 1, MSG_NOSIGNAL);
	while (atomic_load(&slot->state) != turn + SHM_SLOT_DONE) {
		usleep(100);
		if (rig_now() > end)
			return 1;
	}
	bad->chunks++;
	return slot->status;
}

static void test_chunks(struct bad *bad, uint64_t key, uint64_t ro)
{
	const uint32_t put = SHM_SERVICE_PUT, get = SHM_SERVICE_GET;

	tap_is_int(ask(bad, key, 0, 100, 0, 100, put), 0, "a good chunk");
	tap_is_int(ask(bad, key, 0, 101, 0, 50, put), -FI_EINVAL,
		   "a chunk inside, of a segment that isn't");
	tap_is_int(ask(bad, key, 0, 100, 101, 0, put), -FI_EINVAL, "behind its segment");
	tap_is_int(ask(bad, key, 0, 100, 50, 51, put), -FI_EINVAL, "across its end");
	tap_is_int(ask(bad, key, 0, 100, UINT64_MAX - 9, 20, put), -FI_EINVAL,
		   "a sum that overflows");
	tap_is_int(ask(bad, key, UINT64_MAX, 2, 0, 2, put), -FI_EINVAL, "another");
	tap_is_int(ask(bad, key, 0, 100, 0, SHM_SERVICE_CHUNK + 1, put), -FI_EINVAL,
		   "more than a chunk holds");
	tap_is_int(ask(bad, key, 0, 100, 0, UINT32_MAX, get), -FI_EINVAL, "much more");
	tap_is_int(ask(bad, key, 0, 100, 0, 10, 0), -FI_EINVAL, "no operation");
	tap_is_int(ask(bad, key, 0, 100, 0, 10, 77), -FI_EINVAL, "an unknown one");
	tap_is_int(ask(bad, key + 1, 0, 100, 0, 10, put), -FI_ENOKEY, "no key");
	tap_is_int(ask(bad, ro, 0, 100, 0, 10, put), -FI_EACCES, "only for reading");
	tap_is_int(ask(bad, ro, 0, 100, 90, 10, get), 0, "which goes");
	mem_keytab_remove(bad->b.keys, key);
	tap_is_int(ask(bad, key, 0, 100, 0, 10, put), -FI_ENOKEY, "a key removed");
}

/* State words that mean nothing never make the target do something. */
static void test_states(struct bad *bad, uint64_t key)
{
	struct shm_service_mem *mem = &bad->link->pair->service[0];
	struct shm_service_slot *slot = &mem->slots[bad->chunks % SHM_SERVICE_SLOTS];

	for (uint64_t s = 0; s < 64; s++) {
		if (s == bad->chunks / SHM_SERVICE_SLOTS * 4 + SHM_SLOT_ASKED)
			continue;
		slot->status = 1;
		atomic_store(&slot->state, s);
		send(bad->link->sock, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	usleep(50000);
	tap_is_int(slot->status, 1, "wrong turns are left alone");
	tap_is_int(ask(bad, key, 0, 100, 0, 10, SHM_SERVICE_GET), 0,
		   "and the right one is served after them");
}

int main(void)
{
	static uint8_t memory[100], readable[100];
	struct mem_region rw = {.iov_count = 1, .access = RW},
			  ro = {.iov_count = 1, .access = FI_REMOTE_READ};
	uint64_t key, ro_key, word = 1;
	struct bad bad = {0};

	alarm(280);
	rig_open(&bad.a, true);
	rig_open(&bad.b, true);
	rw.iov[0] = (struct iovec){.iov_base = memory, .iov_len = sizeof(memory)};
	ro.iov[0] = (struct iovec){.iov_base = readable, .iov_len = sizeof(readable)};
	if (mem_keytab_insert(bad.b.keys, &rw, &key) ||
	    mem_keytab_insert(bad.b.keys, &ro, &ro_key) ||
	    rig_dial(&bad.a, &wire_ep_base(bad.b.ep)->addr))
		tap_bail("setting up");
	bad.link = (struct shm_link *)(void *)bad.a.dialled;
	memset(bad.link->pair->service[0].chunks, 0x5a, SHM_SERVICE_CHUNK);
	test_chunks(&bad, key, ro_key);
	/* Both ends have mappings of their own of the slots, so that only a lock tells a
	 * thread sanitizer that the helper thread is done. */
	tap_is_int(
		shm_quiesce(bad.b.ep, key, rig_now() + RIG_WAIT_MS * UINT64_C(1000000)),
		0, "nothing of the key is under way");
	tap_ok(memory[0] == 0x5a && memory[99] == 0x5a && readable[0] == 0,
	       "only the good chunk wrote");
	test_states(&bad, ro_key);
	tap_ok(rig_send(&bad.a, bad.a.dialled, &word, sizeof(word)) &&
		       rig_wait_packets(&bad.b, 1),
	       "the link goes on");
	rig_close(&bad.a);
	rig_close(&bad.b);
	return tap_done();
}
