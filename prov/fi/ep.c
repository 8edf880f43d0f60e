/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint: open, door, enable, progress, close. */
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#include "prov/fi/addr_resolve.h"
#include "prov/fi/count_ops.h"
#include "prov/fi/cq_int.h"
#include "prov/fi/ep_int.h"
#include "prov/fi/mr.h"
#include "prov/fi/nosys.h"
#include "prov/fi/sep.h"
#include "prov/fi/work.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

/* A close gives what was promised to peers this long to leave. */
#define EP_DRAIN_NS (1000 * 1000 * 1000ULL)
/* Unexpected payload that the peers of an endpoint are granted. */
#define EP_UNEXPECTED_MAX ((size_t)16 << 20)

static struct wfi_ep *of_pollable(struct wfi_pollable *p)
{
	return container_of(p, struct wfi_ep, pollable);
}

/* It is not enabled, its queue is full, or there is work to be posted first. */
LOCK_HELD(lock_domain)
static __attribute__((noinline)) int ep_progress_slow(struct wfi_ep *ep)
{
	struct wfi_cq *cq = ep->rx_cq;

	if (!ep->enabled || (cq && wfi_cq_is_full(cq))) {
		return 0;
	}
	wfi_work_run(ep->domain);
	return proto_progress(ep->proto) + 1;
}

/* A full receive queue stops the intake (flow control). A full transmit queue does not:
 * what it can still get is bounded by the operations that are posted. */
LOCK_HELD(lock_domain) static int ep_progress(struct wfi_pollable *p)
{
	struct wfi_ep *ep = of_pollable(p);
	struct wfi_cq *cq = ep->rx_cq;

	if (__builtin_expect(!ep->plain || (cq && wfi_cq_is_full(cq)), 0)) {
		return ep_progress_slow(ep);
	}
	return proto_progress(ep->proto);
}

LOCK_HELD(lock_domain) static int ep_arm(struct wfi_pollable *p)
{
	struct wfi_ep *ep = of_pollable(p);

	if (!ep->enabled) {
		return 0;
	}
	return ep->domain->works_ready ? -FI_EAGAIN : proto_arm(ep->proto);
}

static int ep_fd(struct wfi_pollable *p)
{
	struct wfi_ep *ep = of_pollable(p);

	if (!ep->proto) {
		return -1;
	}
	return wire_ep_base(proto_wire_ep(ep->proto))->ops->fd(proto_wire_ep(ep->proto));
}

LOCK_HELD(lock_domain) static uint64_t ep_due(struct wfi_pollable *p)
{
	struct wfi_ep *ep = of_pollable(p);
	uint64_t due, look;

	if (!ep->enabled) {
		return UINT64_MAX;
	}
	due = proto_due(ep->proto);
	look = proto_look_due(ep->proto);
	return look < due ? look : due;
}

static const struct wfi_pollable_ops ep_pollable_ops = {
	.progress = ep_progress,
	.arm = ep_arm,
	.fd = ep_fd,
	.due = ep_due,
};

void wfi_ep_push(struct wfi_ep *ep)
{
	/* Messages may come in, which an owner must be asked about with its locks held.
	 */
	if (ep->av_user.owner) {
		return;
	}
	ep_progress(&ep->pollable);
	wfi_domain_rearm(ep->domain, &ep->pollable);
}

void wfi_ep_posted_slow(struct wfi_ep *ep)
{
	uint64_t due = proto_due(ep->proto);

	if (proto_is_busy(ep->proto)) {
		wfi_rearm_slow(ep->domain, &ep->pollable);
	}
	if (due != UINT64_MAX && due != ep->due_told) {
		ep->due_told = due;
		wfi_domain_wake(ep->domain);
	}
}

static int ep_quiesce(struct wfi_quiesce *q, uint64_t key, uint64_t deadline_ns)
{
	struct wfi_ep *ep = container_of(q, struct wfi_ep, quiesce);
	struct wire_ep *wep;

	if (!ep->proto) {
		return 0;
	}
	wep = proto_wire_ep(ep->proto);
	return wire_ep_base(wep)->ops->quiesce(wep, key, deadline_ns);
}

static int ep_key_add(struct wfi_quiesce *q, uint64_t key,
		      const struct mem_region *region)
{
	struct wfi_ep *ep = container_of(q, struct wfi_ep, quiesce);
	struct wire_ep *wep = ep->proto ? proto_wire_ep(ep->proto) : NULL;
	const struct wire_ops *ops = wep ? wire_ep_base(wep)->ops : NULL;

	return ops && ops->key_add ? ops->key_add(wep, key, region) : 0;
}

static uint32_t ep_counters(struct wfi_quiesce *q, struct wire_counter *at, uint32_t max)
{
	struct wfi_ep *ep = container_of(q, struct wfi_ep, quiesce);
	struct wire_ep *wep = ep->proto ? proto_wire_ep(ep->proto) : NULL;
	const struct wire_ops *ops = wep ? wire_ep_base(wep)->ops : NULL;

	return ops && ops->counters ? ops->counters(wep, at, max) : 0;
}

struct ep_lanes {
	const struct wfi_ep *ep;
	struct wfi_lanes *to;
};

LOCK_HELD(lock_domain)
static void ep_lane(void *arg, const struct wire_lane *lane)
{
	struct ep_lanes *all = arg;
	struct wfi_lanes *to = all->to;

	if (to->count < to->max)
		to->at[to->count] = (struct weft_fi_lane){
			.peer = all->ep->av ? wfi_av_find(all->ep->av, lane->peer)
					    : FI_ADDR_NOTAVAIL,
			.number = lane->number,
			.rail = lane->rail,
			.up = lane->up,
			.packets = lane->packets,
			.bytes = lane->bytes,
			.lost = lane->lost,
			.retired = lane->retired,
		};
	to->count++;
}

static void ep_lanes(struct wfi_quiesce *q, struct wfi_lanes *to)
{
	struct wfi_ep *ep = container_of(q, struct wfi_ep, quiesce);
	struct wire_ep *wep = ep->proto ? proto_wire_ep(ep->proto) : NULL;
	const struct wire_ops *ops = wep ? wire_ep_base(wep)->ops : NULL;
	struct ep_lanes all = {.ep = ep, .to = to};

	if (ops && ops->lanes)
		ops->lanes(wep, ep_lane, &all);
}

static void ep_key_drop(struct wfi_quiesce *q, uint64_t key)
{
	struct wfi_ep *ep = container_of(q, struct wfi_ep, quiesce);
	struct wire_ep *wep = ep->proto ? proto_wire_ep(ep->proto) : NULL;
	const struct wire_ops *ops = wep ? wire_ep_base(wep)->ops : NULL;

	if (ops && ops->key_drop) {
		ops->key_drop(wep, key);
	}
}

LOCK_HELD(lock_domain)
static void ep_av_inserted(struct wfi_av_user *u, fi_addr_t fi_addr)
{
	struct wfi_ep *ep = container_of(u, struct wfi_ep, av_user);
	const struct wire_addr *addr = wfi_av_addr(ep->av, fi_addr);

	if (ep->proto && addr) {
		proto_inserted(ep->proto, fi_addr, addr);
	}
}

LOCK_HELD(lock_domain) static void ep_av_removed(struct wfi_av_user *u, fi_addr_t fi_addr)
{
	struct wfi_ep *ep = container_of(u, struct wfi_ep, av_user);
	const struct wire_addr *addr = wfi_av_addr(ep->av, fi_addr);

	if (ep->proto && addr) {
		proto_removed(ep->proto, fi_addr, addr);
	}
}

LOCK_HELD(lock_domain) static void ep_av_renamed(struct wfi_av_user *u, fi_addr_t fi_addr)
{
	struct wfi_ep *ep = container_of(u, struct wfi_ep, av_user);
	const struct wire_addr *addr = wfi_av_addr(ep->av, fi_addr);

	if (ep->proto && addr) {
		proto_renamed(ep->proto, fi_addr, addr);
	}
}

struct proto_peer *wfi_ep_peer_slow(struct wfi_ep *ep, fi_addr_t fi_addr)
{
	const struct wire_addr *addr = wfi_av_addr(ep->av, fi_addr);
	uint32_t context;
	struct wire_addr at;

	if (addr) {
		return proto_map(ep->proto, fi_addr, addr);
	}
	addr = wfi_av_addr(ep->av, wfi_av_split(ep->av, fi_addr, &context));
	if (!addr || context >= PROTO_CONTEXTS_MAX) {
		return NULL;
	}
	at = *addr;
	at.context = (uint16_t)context;
	return proto_named(ep->proto, &at);
}

static uint64_t random_incarnation(void)
{
	uint64_t r = 0;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r)) {
		r = wfi_now_ns() * 0x9e3779b97f4a7c15ULL;
	}
	return r ? r : 1;
}

int wfi_ep_door(struct wfi_ep *ep)
{
	const struct prov_params *params = prov_params();
	struct proto_attr attr = {
		.wire = ep->domain->entry.wire,
		.near = ep->domain->entry.near,
		.far = ep->domain->entry.far,
		.addr = ep->addr,
		.addr_any = ep->addr_any,
		.incarnation = random_incarnation(),
		.keys = ep->domain->keys,
		.arena = ep->domain->arena,
		.up = &wfi_ep_up[0],
		.arg = ep,
		.tx_size = ep->tx_size,
		.rx_size = ep->rx_size,
		.inject_size = ep->inject_size,
		.eager_size = params->eager_size,
		.bulk_size = params->bulk_size,
		.joint_size = params->joint_size,
		.connect_timeout = params->connect_timeout_ms * 1000000,
		.unexpected_max = EP_UNEXPECTED_MAX,
		.order_rma = ep->msg_order &
			     (FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW |
			      FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |
			      FI_ORDER_RMA_WAW),
		.order_msg_after_rma = ep->msg_order & (FI_ORDER_SAR | FI_ORDER_SAW),
		/* The bits of 1.7 are about one of the two kinds each. */
		.order_atomic = ep->msg_order & (FI_ORDER_RAR | FI_ORDER_RAW |
						 FI_ORDER_WAR | FI_ORDER_WAW),
		.order_after_put =
			ep->msg_order & (FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW |
					 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW),
		.atomics = ep->atomic_caps,
		.devices = ep->devices,
		.no_imports = ep->hmem_p2p == FI_HMEM_P2P_DISABLED,
		/* What its device does no other may. */
		.atomic_access = ep->domain->native ? 0 : ep->atomic_access,
	};
	int ret;

	if (ep->proto) {
		return 0;
	}
	if (ep->sep) {
		ret = wfi_sep_place(ep->sep, ep);
		if (ret) {
			return ret;
		}
		attr.addr = ep->addr;
		attr.addr_any = ep->addr_any;
	}
	ret = proto_ep_open(&attr, &ep->proto);
	if (ret) {
		char text[WIRE_ADDR_TEXT_MAX];

		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"endpoint: the door at %s cannot be opened: %s\n",
			wire_addr_text(&ep->addr, text), fi_strerror(-ret));
		return ret;
	}
	ret = wfi_mr_introduce(ep->domain, &ep->quiesce);
	if (ret) {
		proto_ep_close(ep->proto);
		ep->proto = NULL;
		return ret;
	}
	proto_set_min_multi_recv(ep->proto, ep->min_multi_recv);
	ep->addr = wire_ep_base(proto_wire_ep(ep->proto))->addr;
	if (ep->sep) {
		wfi_sep_placed(ep->sep, ep);
	}
	return 0;
}

/* Detached from everything, so that nobody drives it any more. */
static int ep_close(struct fid *fid)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	struct wfi_domain *domain = ep->domain;
	uint64_t deadline = wfi_now_ns() + EP_DRAIN_NS;

	if (wfi_domain_is_inherited(domain)) {
		return 0;
	}
	wfi_domain_lock(domain);
	if (!list_empty(&ep->aliases)) {
		wfi_domain_unlock(domain);
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"close: this endpoint has aliases, close them first\n");
		return -FI_EBUSY;
	}
	if (ep->enabled) {
		proto_set_closing(ep->proto);
		while (!proto_is_drained(ep->proto) && wfi_now_ns() < deadline) {
			proto_progress(ep->proto);
			wfi_domain_unlock(domain);
			sched_yield();
			wfi_domain_lock(domain);
		}
		/* Rule D4: its caller would take the memory back. */
		if (proto_is_written(ep->proto)) {
			wfi_domain_unlock(domain);
			FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
				"close: a peer that does not run may still write into a "
				"receive of this endpoint; close it again later\n");
			return -FI_EBUSY;
		}
	}
	wfi_work_forget(ep);
	if (ep->sep) {
		wfi_sep_part(ep);
	}
	wfi_ep_unbind_all(ep);
	wfi_mr_detach(domain, &ep->pollable);
	list_remove(&ep->quiesce.node);
	if (ep->proto) {
		proto_ep_close(ep->proto);
	}
	if (ep->sep) {
		wfi_sep_forget(ep->sep, ep);
	}
	wfi_domain_unlock(domain);
	wfi_domain_put(domain);
	free(ep);
	return 0;
}

static struct fi_ops ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = wfi_ep_bind,
	.control = wfi_ep_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

/* Which directions the capabilities name. */
static void ep_set_caps(struct wfi_ep *ep, const struct fi_info *info)
{
	uint64_t msg = info->caps & (FI_MSG | FI_TAGGED);
	uint64_t dir = info->caps & (FI_SEND | FI_RECV);
	uint64_t rma =
		info->caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);

	ep->caps = info->caps;
	ep->can_send = msg && (!dir || (dir & FI_SEND));
	ep->can_recv = msg && (!dir || (dir & FI_RECV));
	ep->can_rma = (info->caps & FI_RMA) && (!rma || (rma & (FI_READ | FI_WRITE)));
	if (info->caps & FI_ATOMIC) {
		uint64_t all = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

		ep->atomic_caps = (rma ? rma : all) & (FI_READ | FI_WRITE);
		ep->atomic_access =
			(rma ? rma : all) & (FI_REMOTE_READ | FI_REMOTE_WRITE);
	}
	ep->directed = info->caps & FI_DIRECTED_RECV;
	ep->devices = ep->domain->devices && (info->caps & FI_HMEM);
}

static size_t ops_size(size_t asked, size_t usual)
{
	if (!asked)
		return usual;
	return asked < WFI_SIZE_MAX ? asked : WFI_SIZE_MAX;
}

static void ep_set_attr(struct wfi_ep *ep, const struct fi_info *info)
{
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;

	ep->tx_op_flags = tx ? tx->op_flags : 0;
	ep->rx_op_flags = rx ? rx->op_flags : 0;
	ep->tx_size = ops_size(tx ? tx->size : 0, WFI_TX_SIZE);
	ep->rx_size = ops_size(rx ? rx->size : 0, WFI_RX_SIZE);
	ep->tx_shared = info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->rx_shared = info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->inject_size = WFI_INJECT_SIZE;
	ep->msg_order = tx ? tx->msg_order : 0;
}

static void ep_set_addr(struct wfi_ep *ep, const struct fi_info *info)
{
	uint16_t port = 0;

	/* The host may be asked for without a port, and the port without a host. */
	if (wfi_addr_take(info->src_addr, info->src_addrlen, &ep->addr)) {
		if (!wfi_addr_is_any(&ep->addr)) {
			ep->addr_any = wfi_addr_is_default(&ep->addr);
			return;
		}
		port = wfi_addr_port(&ep->addr);
	}
	ep->addr_any = true;
	if (!wfi_addr_default(info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET,
			      &ep->addr)) {
		wfi_addr_default(AF_INET, &ep->addr);
	}
	wfi_addr_set_port(&ep->addr, port);
}

struct wfi_ep *wfi_ep_alloc(size_t size, struct wfi_domain *d, size_t fclass,
			    void *context)
{
	static atomic_ullong serial;
	struct wfi_ep *ep = calloc(1, size);

	if (!ep) {
		return NULL;
	}
	ep->fid.fid.fclass = fclass;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fi_ops;
	ep->fid.ops = &wfi_ep_ops_ep;
	ep->fid.cm = &wfi_ep_ops_cm;
	ep->fid.msg = &wfi_ep_ops_msg;
	ep->fid.rma = &wfi_ep_ops_rma;
	ep->fid.tagged = &wfi_ep_ops_tagged;
	ep->fid.atomic = &wfi_ep_ops_atomic;
	ep->fid.collective = &wfi_ep_ops_collective;
	ep->domain = d;
	ep->serial = atomic_fetch_add(&serial, 1) + 1;
	ep->pollable.ops = &ep_pollable_ops;
	ep->quiesce.quiesce = ep_quiesce;
	ep->quiesce.key_add = ep_key_add;
	ep->quiesce.key_drop = ep_key_drop;
	ep->quiesce.counters = ep_counters;
	ep->quiesce.lanes = ep_lanes;
	ep->quiesce.pollable = &ep->pollable;
	ep->av_user.inserted = ep_av_inserted;
	ep->av_user.removed = ep_av_removed;
	ep->av_user.renamed = ep_av_renamed;
	ep->min_multi_recv = 64;
	list_init(&ep->av_user.node);
	list_init(&ep->alias);
	list_init(&ep->aliases);
	list_init(&ep->sharing);
	return ep;
}

int wfi_ep_check(const struct wfi_domain *d, const struct fi_info *info)
{
	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"endpoint: type %d was asked for, only FI_EP_RDM exists: take "
			"the "
			"fi_info that fi_getinfo returned\n",
			info && info->ep_attr ? (int)info->ep_attr->type : -1);
		return -FI_EINVAL;
	}
	if (wfi_domain_is_inherited(d)) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"endpoint: its domain was opened by the process that forked this "
			"one: open a domain here\n");
		return -FI_EOPBADSTATE;
	}
	return 0;
}

int wfi_ep_make(struct wfi_ep *ep, const struct fi_info *info)
{
	struct wfi_domain *d = ep->domain;
	int rc;

	ep_set_caps(ep, info);
	ep_set_attr(ep, info);
	ep_set_addr(ep, info);
	wfi_domain_lock(d);
	rc = wfi_mr_attach(d, &ep->pollable);
	if (!rc) {
		rc = wfi_work_attach(ep);
		if (rc)
			wfi_mr_detach(d, &ep->pollable);
		else
			list_push_back(&d->eps, &ep->quiesce.node);
	}
	wfi_domain_unlock(d);
	if (rc) {
		return rc;
	}
	/* Before its door is open, so that every peer knows. */
	if (ep->caps & FI_RMA_EVENT)
		mem_keytab_want(d->keys, MEM_EVENTS_EP);
	wfi_domain_get(d);
	return 0;
}

int wfi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
		void *context)
{
	struct wfi_domain *d = wfi_domain_of(domain);
	struct wfi_ep *ep;
	int rc = wfi_ep_check(d, info);

	if (rc) {
		return rc;
	}
	ep = wfi_ep_alloc(sizeof(*ep), d, FI_CLASS_EP, context);
	if (!ep) {
		return -FI_ENOMEM;
	}
	rc = wfi_ep_make(ep, info);
	if (rc) {
		free(ep);
		return rc;
	}
	*out = &ep->fid;
	return 0;
}
