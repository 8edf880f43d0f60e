/* SPDX-License-Identifier: BSD-2-Clause */
/* Bulk slots of the wire: taken and given back, read by the peer and by nobody after
 * that, nonsense, and endpoints that have none. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_format.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"

static void self_open(struct rig *rig)
{
	rig_open(rig, true);
	if (rig_dial(rig, &wire_ep_base(rig->ep)->addr) ||
	    !rig_wait_int(rig, &rig->ups, 2))
		tap_bail("dial");
}

static void test_slots(void)
{
	struct wire_bulk slot[SHM_BULK_SLOTS + 1], again;
	bool seen[SHM_BULK_SLOTS] = {false};
	int bad = 0;
	struct rig rig;

	self_open(&rig);
	tap_is_int((int64_t)wire_link_base(rig.dialled)->caps.bulk, SHM_BULK_SLOT,
		   "the link has slots");
	for (int i = 0; i < SHM_BULK_SLOTS; i++) {
		bad += shm_wire_ops.bulk_get(rig.ep, &slot[i]) != 0;
		bad += slot[i].slot >= SHM_BULK_SLOTS || seen[slot[i].slot];
		seen[slot[i].slot] = true;
		memset(slot[i].at, i + 1, SHM_BULK_SLOT);
	}
	tap_is_int(bad, 0, "each slot once");
	tap_is_int(shm_wire_ops.bulk_get(rig.ep, &again), -FI_EAGAIN, "and no more");
	for (int i = 0; i < SHM_BULK_SLOTS; i++) {
		const uint8_t *at =
			shm_wire_ops.bulk_peer(rig.accepted, slot[i].slot, SHM_BULK_SLOT);

		bad += !at || at[0] != i + 1 || at[SHM_BULK_SLOT - 1] != i + 1;
		bad += !shm_wire_ops.bulk_holds(rig.accepted, slot[i].slot, slot[i].turn);
	}
	tap_is_int(bad, 0, "the peer reads what was written");
	shm_wire_ops.bulk_put(rig.ep, slot[7].slot);
	shm_wire_ops.bulk_get(rig.ep, &again);
	tap_ok(again.slot == slot[7].slot, "the slot that came back last goes out first");
	tap_ok(!shm_wire_ops.bulk_holds(rig.accepted, slot[7].slot, slot[7].turn),
	       "who reads it late is told so");
	tap_ok(!shm_wire_ops.bulk_peer(rig.accepted, SHM_BULK_SLOTS, 1) &&
		       !shm_wire_ops.bulk_peer(rig.accepted, UINT32_MAX, 1) &&
		       !shm_wire_ops.bulk_peer(rig.accepted, 0, SHM_BULK_SLOT + 1) &&
		       !shm_wire_ops.bulk_holds(rig.accepted, SHM_BULK_SLOTS, 0),
	       "no slot, or not so long");
	rig_close(&rig);
}

/* How this process has mapped bulk memory: with these rights, how often. */
static int mapped(const char *rights)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:weft-bulk") && strstr(line, rights);
	if (f)
		fclose(f);
	return n;
}

static void test_mappings(void)
{
	struct rig rig;

	self_open(&rig);
	tap_is_int(mapped("rw-s"), 1, "the owner writes");
	tap_is_int(mapped("r--s"), 2, "both ends of the link only read");
	rig_close(&rig);
	tap_is_int(mapped("memfd"), 0, "nothing stays behind");
}

static void test_none(void)
{
	struct wire_bulk slot;
	struct rig rig;
	uint64_t word = 5;

	rig_no_bulk = true;
	self_open(&rig);
	tap_is_int((int64_t)wire_link_base(rig.dialled)->caps.bulk, 0, "no slots");
	tap_is_int(shm_wire_ops.bulk_get(rig.ep, &slot), -FI_ENOMEM, "none to be had");
	tap_ok(!shm_wire_ops.bulk_peer(rig.dialled, 0, 1), "none to be read");
	tap_ok(rig_send(&rig, rig.dialled, &word, sizeof(word)) &&
		       rig_wait_packets(&rig, 1),
	       "the link works");
	rig_close(&rig);
	rig_no_bulk = false;
}

int main(void)
{
	alarm(280);
	test_slots();
	test_mappings();
	test_none();
	return tap_done();
}
