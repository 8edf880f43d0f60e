/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of a domain's memory its peers reach, over whatever libibverbs is found (reach.t
 * runs it over emulated devices): announced buffers by name, others not even by their
 * true key.
 */
#include "config.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rkey.h"
#include "util/tap.h"

#define LEN 8192u

static struct rig here, there;

/* Both ends are in this process. */
static bool both(const int *counter, int want)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (*counter < want && rig_now() < end) {
		rig_step(&here);
		rig_step(&there);
	}
	return *counter >= want;
}

/* A read by name: its error. */
static int read_named(void *to, void *handle, const void *from, uint64_t name)
{
	struct iovec iov = {.iov_base = to, .iov_len = LEN};
	struct wire_segment seg = {
		.local = &iov,
		.handles = &handle,
		.local_count = 1,
		.remote = {.addr = (uintptr_t)from, .key = name, .raw = true},
		.len = LEN,
		.cookie = &here};
	int before = here.segments, ret;

	do {
		ret = verbs_wire_ops.get(here.dialled, &seg);
		rig_step(&here);
		rig_step(&there);
	} while (ret == -FI_EAGAIN);
	if (ret)
		return ret;
	return both(&here.segments, before + 1) ? here.segment_err : -FI_ETIMEDOUT;
}

static void test_reach(void)
{
	void *mine, *secret, *shown;
	uint8_t *to = rig_memory(&here, LEN, &mine);
	uint8_t *hidden = rig_memory(&there, LEN, &secret);
	uint8_t *open = rig_memory(&there, LEN, &shown);
	const struct verbs_mr *mr = secret;
	struct verbs_rkey *k;
	uint64_t name;

	memset(hidden, 0x5e, LEN);
	memset(open, 0x0b, LEN);
	tap_ok(mr->name == 0, "a local buffer has no name");
	name = verbs_wire_ops.mem_name(there.ep, shown);
	tap_ok(name && verbs_wire_ops.mem_name(there.ep, shown) == name,
	       "one that is announced has one, and keeps it");
	tap_ok(read_named(to, mine, open, name) == 0 && memcmp(to, open, LEN) == 0,
	       "a peer reads it by that");
	/* A peer that knows where the other is, and its key of each device. */
	k = verbs_rkey_get(verbs_link_of(here.dialled), VERBS_KEYS_NAME, name);
	if (!k)
		tap_bail("no key");
	k->entry.piece[0].addr = (uintptr_t)hidden;
	memcpy(k->entry.piece[0].rkey, mr->rkey, sizeof(mr->rkey));
	/* The device refuses; the key that is fetched then isn't of that memory. */
	tap_ok(read_named(to, mine, hidden, name) &&
		       verbs_link_of(here.dialled)->lane_stats.rebuilt == 1 &&
		       to[0] != 0x5e && to[LEN - 1] != 0x5e,
	       "what was never announced it can't read");
	verbs_rkey_put(k);
	name = verbs_wire_ops.mem_name(there.ep, secret);
	tap_ok(read_named(to, mine, hidden, name) == 0 && memcmp(to, hidden, LEN) == 0,
	       "when it is announced it can");
}

int main(void)
{
	struct wire_link *link;

	rig_open(&here);
	rig_open(&there);
	if (verbs_wire_ops.dial(here.ep, &wire_ep_base(there.ep)->addr, &here, &link) ||
	    !both(&here.ups, 1))
		tap_bail("no link");
	test_reach();
	rig_close(&here);
	rig_close(&there);
	return tap_done();
}
