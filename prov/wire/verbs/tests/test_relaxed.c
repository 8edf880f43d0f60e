/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where memory is registered with relaxed ordering: what only this end's completions
 * speak of, which is what local buffers are, and nothing that a peer may write or read,
 * or that is polled (rule E3). libibverbs' calls are looked at on their way. relaxed.t
 * runs it.
 */
#include "config.h"

#include <string.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs_ep.h"
#include "prov/wire/verbs/verbs_mem.h"
#include "util/tap.h"

#define SOME 8192

static const struct verbs_lib *real;
static unsigned seen;	 /* registrations */
static unsigned relaxed; /* of them */
static unsigned access_of_last;

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	seen++;
	access_of_last = (unsigned)access;
	relaxed += ((unsigned)access & IBV_ACCESS_RELAXED_ORDERING) != 0;
	return real->reg_mr(pd, addr, length, access);
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				   uint64_t iova, unsigned access)
{
	seen++;
	access_of_last = access;
	relaxed += (access & IBV_ACCESS_RELAXED_ORDERING) != 0;
	return real->reg_mr_iova2(pd, addr, length, iova, access);
}

/* What was registered since the last time: how many, and whether each was relaxed. */
static void registered(bool wanted, const char *what)
{
	tap_ok(seen > 0 && relaxed == (wanted ? seen : 0), "%s: %s", what,
	       wanted ? "relaxed" : "in order");
	seen = relaxed = 0;
}

static bool is_remote(unsigned access)
{
	return access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_ATOMIC);
}

static void test_regions(struct rig *rig, void *memory)
{
	static const struct {
		uint64_t access;
		const char *what;
	} regions[] = {
		{FI_REMOTE_WRITE, "a region that peers write"},
		{FI_REMOTE_READ, "one that they read"},
		{FI_REMOTE_READ | FI_REMOTE_WRITE, "one that they do both with"},
	};

	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		uint64_t key;

		if (rig_register(rig, memory, SOME, regions[i].access, &key) != 0)
			tap_bail("no registration");
		tap_ok(is_remote(access_of_last), "%s: they can", regions[i].what);
		registered(false, regions[i].what);
		rig_unregister(rig, key);
	}
}

static void test_all(bool can)
{
	struct rig rig;
	struct verbs_ep *ep;
	struct verbs_lib between;
	struct verbs_mr *mr;
	void *handle, *memory;

	memset(&rig, 0, sizeof(rig));
	rig_open(&rig);
	ep = (struct verbs_ep *)rig.ep;
	real = ep->dom->dev->lib;
	between = *real;
	between.reg_mr = reg_mr;
	between.reg_mr_iova2 = can ? reg_mr_iova2 : NULL;
	ep->dom->dev->lib = &between;

	memory = rig_memory(&rig, SOME, &handle);
	tap_ok(!is_remote(access_of_last) && (access_of_last & IBV_ACCESS_LOCAL_WRITE),
	       "a local buffer is for this end alone");
	registered(can, "a local buffer");
	if (verbs_dom_mem_name(ep->dom, handle) == 0)
		tap_bail("no name");
	tap_ok(is_remote(access_of_last), "one that is announced can be read");
	registered(false, "what peers read of it");
	test_regions(&rig, memory);
	if (verbs_mr_add(ep->dom, memory, SOME, IBV_ACCESS_LOCAL_WRITE, 0, &mr) != 0)
		tap_bail("no registration");
	registered(false, "memory of the wire's own, which is polled");
	verbs_mr_drop(ep->dom, mr);

	ep->dom->dev->lib = real;
	rig_close(&rig);
}

int main(void)
{
	test_all(true);
	tap_diag("an older library");
	test_all(false);
	return tap_done();
}
