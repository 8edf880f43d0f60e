/* SPDX-License-Identifier: BSD-2-Clause */
/* Two wires as one endpoint; see joined.h. */
#include "config.h"

#include "prov/wire/joined.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

/* Ports that one of the two could have and the other couldn't, before giving up. */
#define OPEN_TRIES 16

struct joined_ep {
	struct wire_ep_base base;
	const struct wire_ops *near_ops;
	const struct wire_ops *far_ops;
	struct wire_ep *near;
	struct wire_ep *far;
	bool far_first; /* went first the last time */
	int epoll;	/* of both descriptors; -1: nobody wanted to sleep yet */
};

static struct joined_ep *joined_of(struct wire_ep *ep)
{
	return (struct joined_ep *)(void *)ep;
}

struct wire_ep *joined_near(struct wire_ep *ep)
{
	return joined_of(ep)->near;
}

struct wire_ep *joined_far(struct wire_ep *ep)
{
	return joined_of(ep)->far;
}

/* ---- opening, closing -------------------------------------------------------------- */

static in_port_t addr_port(const struct wire_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in.sin_port;
}

static void addr_set_port(struct wire_addr *a, in_port_t port)
{
	if (a->sa.sa_family == AF_INET6) {
		a->in6.sin6_port = port;
	} else {
		a->in.sin_port = port;
	}
}

/* The far door has the port; the near one has its name from it. */
static int open_both(struct joined_ep *ep, const struct wire_ep_attr *attr)
{
	struct wire_ep_attr inner = *attr;
	int ret;

	inner.near = NULL;
	inner.far = NULL;
	ret = ep->far_ops->ep_open(&inner, &ep->far);
	if (ret) {
		return ret;
	}
	addr_set_port(&inner.addr, addr_port(&wire_ep_base(ep->far)->addr));
	inner.port_held = true;
	ret = ep->near_ops->ep_open(&inner, &ep->near);
	if (ret) {
		ep->far_ops->ep_close(ep->far);
		return ret;
	}
	ep->base.addr = wire_ep_base(ep->near)->addr;
	return 0;
}

static int joined_open(const struct wire_ep_attr *attr, struct wire_ep **out)
{
	bool any_port = addr_port(&attr->addr) == 0;
	struct joined_ep *ep;
	int ret = -FI_EADDRINUSE;

	if (!attr->near || !attr->far) {
		return -FI_EINVAL;
	}
	ep = calloc(1, sizeof(*ep));
	if (!ep) {
		return -FI_ENOMEM;
	}
	ep->base.ops = &joined_wire_ops;
	ep->near_ops = attr->near;
	ep->far_ops = attr->far;
	ep->epoll = -1;
	/* Somebody else may have the near name of a port that was free. */
	for (int i = 0; i < (any_port ? OPEN_TRIES : 1) && ret == -FI_EADDRINUSE; i++) {
		ret = open_both(ep, attr);
	}
	if (ret) {
		free(ep);
		return ret;
	}
	*out = (struct wire_ep *)(void *)ep;
	return 0;
}

static void joined_close(struct wire_ep *wep)
{
	struct joined_ep *ep = joined_of(wep);

	ep->near_ops->ep_close(ep->near);
	ep->far_ops->ep_close(ep->far);
	if (ep->epoll >= 0) {
		close(ep->epoll);
	}
	free(ep);
}

static int joined_dial(struct wire_ep *wep, const struct wire_addr *to, void *peer_ctx,
		       struct wire_link **link)
{
	struct joined_ep *ep = joined_of(wep);
	int ret = ep->near_ops->dial(ep->near, to, peer_ctx, link);

	return ret == -FI_EHOSTUNREACH ? ep->far_ops->dial(ep->far, to, peer_ctx, link)
				       : ret;
}

/* ---- what only one of the two has -------------------------------------------------- */

static int joined_mem_add(struct wire_ep *wep, void *start, size_t len, void **handle)
{
	struct joined_ep *ep = joined_of(wep);

	return ep->far_ops->mem_add(ep->far, start, len, handle);
}

static void joined_mem_drop(struct wire_ep *wep, void *handle)
{
	struct joined_ep *ep = joined_of(wep);

	ep->far_ops->mem_drop(ep->far, handle);
}

static uint64_t joined_mem_name(struct wire_ep *wep, void *handle)
{
	struct joined_ep *ep = joined_of(wep);

	return ep->far_ops->mem_name(ep->far, handle);
}

/* lend is the link's. */
static void joined_unlend(struct wire_ep *wep, uint64_t name)
{
	struct joined_ep *ep = joined_of(wep);

	ep->far_ops->unlend(ep->far, name);
}

static int joined_key_add(struct wire_ep *wep, uint64_t key,
			  const struct mem_region *region)
{
	struct joined_ep *ep = joined_of(wep);

	return ep->far_ops->key_add ? ep->far_ops->key_add(ep->far, key, region) : 0;
}

static void joined_key_drop(struct wire_ep *wep, uint64_t key)
{
	struct joined_ep *ep = joined_of(wep);

	if (ep->far_ops->key_drop) {
		ep->far_ops->key_drop(ep->far, key);
	}
}

static int joined_bulk_get(struct wire_ep *wep, struct wire_bulk *bulk)
{
	struct joined_ep *ep = joined_of(wep);

	return ep->near_ops->bulk_get(ep->near, bulk);
}

static void joined_bulk_put(struct wire_ep *wep, uint32_t slot)
{
	struct joined_ep *ep = joined_of(wep);

	ep->near_ops->bulk_put(ep->near, slot);
}

static void joined_joint_close(struct wire_ep *wep, struct wire_joint *j)
{
	struct joined_ep *ep = joined_of(wep);

	ep->near_ops->joint_close(ep->near, j);
}

static bool joined_joint_quiet(struct wire_ep *wep, const struct wire_joint *j)
{
	struct joined_ep *ep = joined_of(wep);

	return ep->near_ops->joint_quiet(ep->near, j);
}

/* ---- both -------------------------------------------------------------------------- */

/* They take turns at going first, so that neither starves the other; together they take
 * no more than the caller has room for. */
static int joined_progress(struct wire_ep *wep, int budget)
{
	struct joined_ep *ep = joined_of(wep);
	int done = 0;

	ep->far_first = !ep->far_first;
	if (ep->far_first) {
		done = ep->far_ops->progress(ep->far, budget);
	}
	if (done < budget) {
		done += ep->near_ops->progress(ep->near, budget - done);
	}
	if (!ep->far_first && done < budget) {
		done += ep->far_ops->progress(ep->far, budget - done);
	}
	return done;
}

static int joined_arm(struct wire_ep *wep)
{
	struct joined_ep *ep = joined_of(wep);
	int ret = ep->near_ops->arm(ep->near);

	return ret ? ret : ep->far_ops->arm(ep->far);
}

static bool watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Readable when one of them is. */
static int joined_fd(struct wire_ep *wep)
{
	struct joined_ep *ep = joined_of(wep);
	int fd;

	if (ep->epoll >= 0) {
		return ep->epoll;
	}
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	if (!watch(fd, ep->near_ops->fd(ep->near)) ||
	    !watch(fd, ep->far_ops->fd(ep->far))) {
		close(fd);
		return -1;
	}
	ep->epoll = fd;
	return fd;
}

static uint64_t due_of(const struct wire_ops *ops, struct wire_ep *ep)
{
	return ops->look_due ? ops->look_due(ep) : UINT64_MAX;
}

static uint64_t joined_look_due(struct wire_ep *wep)
{
	struct joined_ep *ep = joined_of(wep);
	uint64_t near = due_of(ep->near_ops, ep->near);
	uint64_t far = due_of(ep->far_ops, ep->far);

	return near < far ? near : far;
}

static int joined_quiesce(struct wire_ep *wep, uint64_t key, uint64_t deadline_ns)
{
	struct joined_ep *ep = joined_of(wep);
	int ret = ep->near_ops->quiesce(ep->near, key, deadline_ns);

	return ret ? ret : ep->far_ops->quiesce(ep->far, key, deadline_ns);
}

static uint32_t joined_counters(struct wire_ep *wep, struct wire_counter *at,
				uint32_t max)
{
	struct joined_ep *ep = joined_of(wep);
	uint32_t n =
		ep->near_ops->counters ? ep->near_ops->counters(ep->near, at, max) : 0;

	if (ep->far_ops->counters)
		n += ep->far_ops->counters(ep->far, at + n, max - n);
	return n;
}

static void joined_lanes(struct wire_ep *wep, wire_lane_fn *each, void *arg)
{
	struct joined_ep *ep = joined_of(wep);

	if (ep->near_ops->lanes)
		ep->near_ops->lanes(ep->near, each, arg);
	if (ep->far_ops->lanes)
		ep->far_ops->lanes(ep->far, each, arg);
}

/* No links of its own: what is done on a link isn't here. */
const struct wire_ops joined_wire_ops = {
	.name = "joined",
	.what = "one wire for peers on this host, another for all others",
	.caps = {.local = true},
	.remote = true,
	.ep_open = joined_open,
	.ep_close = joined_close,
	.counters = joined_counters,
	.lanes = joined_lanes,
	.dial = joined_dial,
	.mem_add = joined_mem_add,
	.mem_drop = joined_mem_drop,
	.mem_name = joined_mem_name,
	.unlend = joined_unlend,
	.key_add = joined_key_add,
	.key_drop = joined_key_drop,
	.bulk_get = joined_bulk_get,
	.bulk_put = joined_bulk_put,
	.joint_close = joined_joint_close,
	.joint_quiet = joined_joint_quiet,
	.progress = joined_progress,
	.arm = joined_arm,
	.fd = joined_fd,
	.look_due = joined_look_due,
	.quiesce = joined_quiesce,
};
