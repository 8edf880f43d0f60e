/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links that the helper thread gives up half-made, while somebody polls, over whatever
 * libibverbs is found (left.t runs it over emulated devices): a queue pair that has a
 * completion just then, and its link, are there until progress is through with them.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_link.h"
#include "util/tap.h"

#define DIALS 24u

static struct verbs_lib lib; /* the endpoint's, whose queue pairs never can send */
static int (*real_modify)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
static _Atomic(uint64_t) failing; /* wr_id of the newest that could not */
static _Atomic(struct verbs_link *) half;
static _Atomic(unsigned) failures;

static int modify(struct ibv_qp *ib, struct ibv_qp_attr *attr, int mask)
{
	struct verbs_qp *qp = ib->qp_context;

	if (attr->qp_state != IBV_QPS_RTS)
		return real_modify(ib, attr, mask);
	half = qp->link;
	failing = verbs_wr_id(qp, 0);
	failures++;
	return EIO;
}

/* The endpoint hears of a request of that queue pair's, as if the device had said so. */
static void complete(struct verbs_ep *ep, uint64_t wr_id)
{
	memset(&ep->stash[0], 0, sizeof(ep->stash[0]));
	ep->stash[0].wr_id = wr_id;
	ep->stash[0].status = IBV_WC_WR_FLUSH_ERR;
	ep->stash_rail = 0;
	ep->stashed = 1;
}

static uint32_t left_count(struct verbs_ep *ep)
{
	uint32_t count;

	pthread_mutex_lock(&ep->mutex);
	count = ep->left_count;
	pthread_mutex_unlock(&ep->mutex);
	return count;
}

static bool retired_any(struct verbs_ep *ep)
{
	bool any;

	pthread_mutex_lock(&ep->mutex);
	any = !list_empty(&ep->retired);
	pthread_mutex_unlock(&ep->mutex);
	return any;
}

/* Until nothing of what was given up is left; not for ever. */
static bool clear(struct rig *rig)
{
	struct verbs_ep *ep = verbs_ep_of(rig->ep);
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while ((left_count(ep) || retired_any(ep)) && rig_now() < end)
		rig_step(rig);
	return !left_count(ep) && !retired_any(ep);
}

static void test_stays(struct rig *target, struct rig *caller)
{
	struct verbs_ep *ep = verbs_ep_of(target->ep);
	int ret = rig_dial(caller, &wire_ep_base(target->ep)->addr);
	const struct verbs_link *link = half;
	const struct verbs_qp *qp;
	uint64_t wr_id = failing;

	tap_ok(ret == -FI_ECONNREFUSED, "the caller hears that it is refused");
	qp = verbs_qp_of(ep, wr_id);
	tap_ok(failures == 1 && left_count(ep) == 1 && qp && !qp->link &&
		       link->state == VERBS_LINK_DOWN,
	       "queue pair and link stay while the application makes no call");
	complete(ep, wr_id);
	tap_ok(clear(target), "they go with its next calls");
	tap_ok(!verbs_qp_of(ep, wr_id), "the completion's name means nothing then");
}

struct dials {
	struct rig *rig;
	const struct wire_addr *to;
	unsigned refused;
	_Atomic(bool) over;
};

static void *dials_main(void *arg)
{
	struct dials *d = arg;

	for (unsigned i = 0; i < DIALS; i++)
		d->refused += rig_dial(d->rig, d->to) == -FI_ECONNREFUSED;
	d->over = true;
	return NULL;
}

static void test_polled(struct rig *target, struct rig *caller)
{
	struct verbs_ep *ep = verbs_ep_of(target->ep);
	struct dials d = {.rig = caller, .to = &wire_ep_base(target->ep)->addr};
	unsigned before = failures;
	pthread_t thread;

	if (pthread_create(&thread, NULL, dials_main, &d))
		tap_bail("no thread");
	while (!d.over) {
		complete(ep, failing);
		rig_step(target);
	}
	pthread_join(thread, NULL);
	tap_ok(d.refused == DIALS && failures == before + DIALS && target->ups == 0,
	       "%u were given up while they were polled for", DIALS);
	tap_ok(clear(target), "nothing of them is left");
}

int main(void)
{
	struct rig target, caller;
	struct verbs_ep *ep;

	rig_open(&target);
	rig_open(&caller);
	ep = verbs_ep_of(target.ep);
	lib = *ep->lib;
	real_modify = lib.modify_qp;
	lib.modify_qp = modify;
	pthread_mutex_lock(&ep->mutex);
	ep->lib = &lib;
	pthread_mutex_unlock(&ep->mutex);
	test_stays(&target, &caller);
	test_polled(&target, &caller);
	pthread_mutex_lock(&ep->mutex);
	ep->lib = ep->dom->dev->lib;
	pthread_mutex_unlock(&ep->mutex);
	tap_ok(rig_dial(&caller, &wire_ep_base(target.ep)->addr) == 0,
	       "whoever calls then gets in");
	rig_close(&caller);
	rig_close(&target);
	return tap_done();
}
