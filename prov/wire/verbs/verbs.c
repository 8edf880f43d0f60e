/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs wire's table. */
#include "config.h"

#include "prov/wire/verbs/verbs.h"

#include "prov/wire/verbs/verbs_atomic.h"
#include "prov/wire/verbs/verbs_chan.h"
#include "prov/wire/verbs/verbs_count.h"
#include "prov/wire/verbs/verbs_ep.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_mem.h"
#include "prov/wire/verbs/verbs_quick.h"
#include "prov/wire/verbs/verbs_rma.h"

/* One call's put or get; it is cut and spread below. */
#define VERBS_SEGMENT_MAX ((size_t)1 << 30)

static int wire_mem_add(struct wire_ep *ep, void *start, size_t len, void **handle)
{
	struct verbs_mr *mr;
	int ret = verbs_dom_mem_add(verbs_ep_of(ep)->dom, start, len, &mr);

	if (ret == 0)
		*handle = mr;
	return ret;
}

static void wire_mem_drop(struct wire_ep *ep, void *handle)
{
	verbs_dom_mem_drop(verbs_ep_of(ep)->dom, handle);
}

static uint64_t wire_mem_name(struct wire_ep *ep, void *handle)
{
	return verbs_dom_mem_name(verbs_ep_of(ep)->dom, handle);
}

static int wire_key_add(struct wire_ep *ep, uint64_t key, const struct mem_region *region)
{
	return verbs_dom_key_add(verbs_ep_of(ep)->dom, key, region);
}

static void wire_key_drop(struct wire_ep *ep, uint64_t key)
{
	verbs_dom_key_drop(verbs_ep_of(ep)->dom, key);
}

/* key_drop took the memory from the devices: from its return on they refuse everybody. */
static int wire_quiesce(struct wire_ep *ep, uint64_t key, uint64_t deadline_ns)
{
	(void)ep;
	(void)key;
	(void)deadline_ns;
	return 0;
}

const struct wire_ops verbs_wire_ops = {
	.name = "verbs",
	.what = "RDMA devices: InfiniBand and RoCE",
	.remote = true,
	.absent = verbs_dev_absent,
	.describe = verbs_dev_describe,
	.caps = {.lanes = 1,
		 .max_packet = VERBS_PACKET,
		 .max_segment = VERBS_SEGMENT_MAX,
		 .passive = true,
		 .local = true,
		 .raw = true,
		 .notify = true},
	.ep_open = verbs_ep_open,
	.ep_close = verbs_ep_close,
	.counters = verbs_counters,
	.lanes = verbs_lanes_each,
	.dial = verbs_dial,
	.hangup = verbs_hangup,
	.pkt_reserve = verbs_pkt_reserve,
	.pkt_commit = verbs_pkt_commit,
	.put = verbs_put,
	.get = verbs_get,
	.put_notify = verbs_put_notify,
	.put_soon = verbs_put_soon,
	.atomic = verbs_atomic,
	.events = verbs_link_events,
	.mem_add = wire_mem_add,
	.mem_drop = wire_mem_drop,
	.mem_name = wire_mem_name,
	.key_add = wire_key_add,
	.key_drop = wire_key_drop,
	.progress = verbs_progress,
	.arm = verbs_arm,
	.fd = verbs_fd,
	.look_due = verbs_look_due,
	.quiesce = wire_quiesce,
};
