/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rail whose LID, GID and MTU move while others look for a path: they get all of one
 * time; which GID it is reached by. The devices are made up here.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "prov/wire/verbs/verbs_gid.h"
#include "prov/wire/verbs/verbs_rail.h"
#include "util/tap.h"

#define LOOKS 5000
#define LID   100

static atomic_uint turn;
static atomic_bool over;

static int query_port(struct ibv_context *context, uint8_t port,
		      struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *p = (struct ibv_port_attr *)attr;
	unsigned t = atomic_load(&turn);

	(void)context;
	(void)port;
	p->state = IBV_PORT_ACTIVE;
	p->link_layer = IBV_LINK_LAYER_INFINIBAND;
	p->lid = (uint16_t)(LID + t);
	p->active_mtu = t ? IBV_MTU_4096 : IBV_MTU_1024;
	p->gid_tbl_len = 1;
	return 0;
}

static int query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
			struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	(void)context;
	(void)port;
	(void)index;
	(void)flags;
	(void)size;
	entry->gid_type = IBV_GID_TYPE_IB;
	memset(entry->gid.raw, (int)atomic_load(&turn) + 1, sizeof(entry->gid.raw));
	return 0;
}

static const struct verbs_lib lib = {.query_port = query_port,
				     .query_gid_ex = query_gid_ex};

struct reader {
	struct verbs_rail *rail;
	atomic_uint looks;
	unsigned mixed;
};

/* Of the place with that LID: all of it. */
static bool whole(const struct verbs_card_rail *c)
{
	unsigned t = c->lid - LID;
	uint8_t gid[sizeof(c->gid)];

	memset(gid, (int)t + 1, sizeof(gid));
	return t < 2 && memcmp(c->gid, gid, sizeof(gid)) == 0 &&
	       c->mtu == (t ? IBV_MTU_4096 : IBV_MTU_1024);
}

/* As helper threads do that make and connect queue pairs. */
static void *reader_main(void *arg)
{
	struct reader *r = arg;
	struct verbs_card_rail card, peer = {.lid = 7, .mtu = IBV_MTU_4096};
	struct ibv_ah_attr ah;

	memset(&card, 0, sizeof(card));
	do {
		verbs_dev_card_moved(r->rail, &card);
		r->mixed += !whole(&card);
		verbs_dev_path(r->rail, &peer, 0, &ah);
		r->mixed += verbs_dev_mtu(r->rail, &peer) < IBV_MTU_1024;
		atomic_fetch_add(&r->looks, 1);
	} while (!atomic_load(&over));
	return NULL;
}

/* ---- the kind of a rail -------------------------------------------------------------
 */

static const union ibv_gid four = {
	.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};
static const union ibv_gid six = {.raw = {[0] = 0xfd, [15] = 1}};

static struct ibv_gid_entry table[4]; /* of an Ethernet port; zeros: empty */

static int ethernet_port(struct ibv_context *context, uint8_t port,
			 struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *p = (struct ibv_port_attr *)attr;

	(void)context;
	(void)port;
	p->state = IBV_PORT_ACTIVE;
	p->link_layer = IBV_LINK_LAYER_ETHERNET;
	p->active_mtu = IBV_MTU_1024;
	p->gid_tbl_len = 4;
	return 0;
}

static int ethernet_gid(struct ibv_context *context, uint32_t port, uint32_t index,
			struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	(void)context;
	(void)port;
	(void)flags;
	memcpy(entry, &table[index], size);
	return 0;
}

static void table_put(unsigned index, const union ibv_gid *gid)
{
	table[index] = (struct ibv_gid_entry){
		.gid = *gid, .gid_index = index, .gid_type = IBV_GID_TYPE_ROCE_V2};
}

static bool reached(const struct verbs_rail *rail, unsigned index,
		    const union ibv_gid *gid)
{
	const struct verbs_reach at = verbs_rail_reach(rail);

	return at.kind == VERBS_RAIL_ROCE6 && at.gid_index == index &&
	       memcmp(&at.gid, gid, sizeof(*gid)) == 0;
}

/* Peers know a rail's kind from its card, for good: addresses of another kind that its
 * interface gets, even better ones, are none that they can be told of. */
static void test_kind(struct verbs_rail *rail)
{
	static const struct verbs_lib ethernet = {.query_port = ethernet_port,
						  .query_gid_ex = ethernet_gid};
	static const union ibv_gid none;

	table_put(1, &six);
	rail->reach = (struct verbs_reach){
		.kind = VERBS_RAIL_ROCE6, .gid_index = 1, .global = true, .gid = six};
	table_put(0, &four);
	tap_ok(!verbs_rail_moved(&ethernet, rail) && reached(rail, 1, &six),
	       "a rail by IPv6 stays where it is when IPv4 comes");
	table_put(1, &none);
	tap_ok(!verbs_rail_moved(&ethernet, rail) && reached(rail, 1, &six),
	       "also while its address is gone");
	table_put(3, &six);
	table_put(1, &four);
	(void)verbs_rail_moved(&ethernet, rail);
	tap_ok(reached(rail, 3, &six), "and goes to where it is again");
}

static void test_rank(void)
{
	static const union ibv_gid local = {.raw = {[0] = 0xfe, [1] = 0x80, [15] = 1}};
	static const union ibv_gid self = {.raw = {[15] = 1}};
	/* In falling order. */
	static const struct {
		const union ibv_gid *gid;
		uint32_t type;
		bool owned;
	} order[] = {
		{&four, IBV_GID_TYPE_ROCE_V2, true},
		{&six, IBV_GID_TYPE_ROCE_V2, true},
		{&local, IBV_GID_TYPE_ROCE_V2, true},
		{&four, IBV_GID_TYPE_ROCE_V1, true},
		{&six, IBV_GID_TYPE_ROCE_V1, true},
		{&local, IBV_GID_TYPE_ROCE_V1, true},
		{&local, IBV_GID_TYPE_ROCE_V2, false},
	};
	unsigned wrong = 0, last = 0;

	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct verbs_gid gid = {.owned = order[i].owned};

		gid.entry.gid = *order[i].gid;
		gid.entry.gid_type = order[i].type;
		wrong += i > 0 && verbs_gid_rank(&gid) <= last;
		last = verbs_gid_rank(&gid);
	}
	tap_is_int(wrong, 0,
		   "v2 before v1, IPv4 before IPv6 before the link's own, last what the "
		   "interface doesn't have");
	tap_ok(!verbs_gid_owned(0, &local),
	       "no interface has an address that is made up");
	if (verbs_gid_owned(0, &self))
		tap_ok(!verbs_gid_owned(UINT32_MAX, &self),
		       "that one has an address doesn't mean that another has");
	else
		tap_skip(1, "this host has no IPv6");
}

int main(void)
{
	static struct ibv_context context;
	static struct ibv_device device; /* the kernel has no files of it */
	pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;
	struct verbs_rail rail = {.context = &context,
				  .port = 1,
				  .looking = &looking,
				  .moving = &moving,
				  .reach = {.kind = VERBS_RAIL_IB}};
	struct reader r = {.rail = &rail};
	struct verbs_card_rail card = {0};
	unsigned moves = 0, stayed = 0;
	pthread_t thread;

	context.device = &device;
	test_rank();
	tap_ok(verbs_rail_moved(&lib, &rail), "a rail moves");
	tap_ok(!verbs_rail_moved(&lib, &rail), "and doesn't where all is as it was");
	tap_is_int(atomic_load(&rail.moves), 1, "which is counted");
	if (pthread_create(&thread, NULL, reader_main, &r) != 0)
		tap_bail("no thread");
	while (atomic_load(&r.looks) < LOOKS) {
		atomic_store(&turn, ++moves % 2);
		stayed += !verbs_rail_moved(&lib, &rail);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	tap_is_int(stayed, 0, "it moves again and again");
	tap_is_int(atomic_load(&rail.moves), 1 + moves, "each time is counted");
	tap_is_int(r.mixed, 0, "whoever looks meanwhile sees one place, and all of it");
	tap_diag("%u moves, %u looks", moves, atomic_load(&r.looks));
	verbs_dev_card_moved(&rail, &card);
	tap_is_int(card.lid, LID + moves % 2, "a card says where it is now");
	test_kind(&rail);
	return tap_done();
}
