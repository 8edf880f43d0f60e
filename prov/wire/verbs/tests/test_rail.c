/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rail whose LID, GID and MTU move while others look for a path: they get all of one
 * time. The device is made up here: two places that it alternates between.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

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

int main(void)
{
	static struct ibv_context context;
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
	return tap_done();
}
