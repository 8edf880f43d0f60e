/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of endpoints; see ep_option.h. */
#include "config.h"

#include "prov/fi/ep_option.h"

#include <string.h>

#include "prov/fi/ep_int.h"
#include "prov/fi/srx.h"
#include "prov/mem/params.h"

/* Of 1.17 the last is FI_OPT_XPU_TRIGGER, 9. */
enum newer_option {
	NEWER_CUDA_API_PERMITTED = 10, /* bool */
	NEWER_SHARED_MEMORY_PERMITTED, /* bool */
	NEWER_MAX_MSG_SIZE,	       /* size_t, and so are the rest */
	NEWER_MAX_TAGGED_SIZE,
	NEWER_MAX_RMA_SIZE,
	NEWER_MAX_ATOMIC_SIZE,
	NEWER_INJECT_MSG_SIZE,
	NEWER_INJECT_TAGGED_SIZE,
	NEWER_INJECT_RMA_SIZE,
	NEWER_INJECT_ATOMIC_SIZE,
};

/* A value of any option. */
union value {
	size_t size;
	int number;
	bool yes;
};

struct option {
	int name;
	size_t len;
	bool rx; /* a shared receive context has it as well */
	/* NULL: can't be asked, or set. */
	int (*get)(const struct wfi_ep *ep, union value *v);
	int (*set)(struct wfi_ep *ep, const union value *v);
	size_t offset; /* in struct wfi_ep, for those that are kept there as they are */
	size_t most;
};

/* ---- what applications change */

static int multi_recv_get(const struct wfi_ep *ep, union value *v)
{
	v->size = ep->min_multi_recv;
	return 0;
}

LOCK_HELD(lock_domain)
static int multi_recv_set(struct wfi_ep *ep, const union value *v)
{
	ep->min_multi_recv = v->size;
	if (ep->is_srx) {
		receiver_set_min_multi_recv(wfi_srx_receiver(ep->is_srx), v->size);
	} else if (ep->proto) {
		proto_set_min_multi_recv(ep->proto, v->size);
	}
	return 0;
}

/* There are no connections, so nothing travels with their requests. */
static int cm_data_get(const struct wfi_ep *ep, union value *v)
{
	(void)ep;
	v->size = 0;
	return 0;
}

static int tx_size_get(const struct wfi_ep *ep, union value *v)
{
	v->size = ep->tx_size;
	return 0;
}

static int rx_size_get(const struct wfi_ep *ep, union value *v)
{
	v->size = ep->rx_size;
	return 0;
}

/* The queues are made with the door. */
static int queue_size_set(const struct wfi_ep *ep, const union value *v, size_t most,
			  size_t *size)
{
	if (v->size == 0 || v->size > most) {
		return -FI_EINVAL;
	}
	if (ep->proto || ep->enabled) {
		return -FI_EOPBADSTATE;
	}
	*size = v->size;
	return 0;
}

static int tx_size_set(struct wfi_ep *ep, const union value *v)
{
	return queue_size_set(ep, v, WFI_TX_SIZE, &ep->tx_size);
}

static int rx_size_set(struct wfi_ep *ep, const union value *v)
{
	/* That of a shared context is made with it. */
	return ep->is_srx ? -FI_EOPBADSTATE
			  : queue_size_set(ep, v, WFI_RX_SIZE, &ep->rx_size);
}

/* ---- memory of GPUs: which way it goes is the wire's choice */

static int p2p_get(const struct wfi_ep *ep, union value *v)
{
	v->number = ep->hmem_p2p;
	return 0;
}

static int p2p_set(struct wfi_ep *ep, const union value *v)
{
	switch (v->number) {
	case FI_HMEM_P2P_DISABLED:
		/* Regions of GPUs are those of the domain: devices of the network that
		 * were given them can't be kept from using them by one endpoint. */
		if (ep->devices && ep->domain->entry.wire->key_add) {
			return -FI_EOPNOTSUPP;
		}
		if (ep->devices && ep->proto) { /* peers may have mapped some */
			return -FI_EOPBADSTATE;
		}
		/* fallthrough */
	case FI_HMEM_P2P_ENABLED:
	case FI_HMEM_P2P_PREFERRED:
		ep->hmem_p2p = v->number;
		return 0;
	case FI_HMEM_P2P_REQUIRED: /* some of it always goes through the host */
		return -FI_EOPNOTSUPP;
	default:
		return -FI_EINVAL;
	}
}

static int no_xpu(const struct wfi_ep *ep, union value *v)
{
	(void)ep;
	(void)v;
	return -FI_EOPNOTSUPP;
}

static int cuda_get(const struct wfi_ep *ep, union value *v)
{
	v->yes = !ep->no_cuda;
	return 0;
}

/* Without FI_HMEM it is not called whatever is permitted; with it, for every message of
 * the memory that it is about. */
static int cuda_set(struct wfi_ep *ep, const union value *v)
{
	if (ep->devices && !v->yes) {
		return -FI_EOPNOTSUPP;
	}
	ep->no_cuda = !v->yes;
	return 0;
}

static int shared_get(const struct wfi_ep *ep, union value *v)
{
	(void)ep;
	v->yes = true;
	return 0;
}

/* There is no other way to a peer. */
static int shared_set(struct wfi_ep *ep, const union value *v)
{
	(void)ep;
	return v->yes ? 0 : -FI_EOPNOTSUPP;
}

/* ---- the table */

#define LIMIT(option, field, value)                                              \
	{                                                                        \
		.name = (option), .len = sizeof(size_t),                         \
		.offset = offsetof(struct wfi_ep, limits.field), .most = (value) \
	}

static const struct option options[] = {
	{FI_OPT_MIN_MULTI_RECV, sizeof(size_t), true, multi_recv_get, multi_recv_set,
	 .most = 0},
	{FI_OPT_CM_DATA_SIZE, sizeof(size_t), false, cm_data_get, NULL, .most = 0},
	{FI_OPT_TX_SIZE, sizeof(size_t), false, tx_size_get, tx_size_set, .most = 0},
	{FI_OPT_RX_SIZE, sizeof(size_t), true, rx_size_get, rx_size_set, .most = 0},
	{FI_OPT_FI_HMEM_P2P, sizeof(int), true, p2p_get, p2p_set, .most = 0},
	{FI_OPT_XPU_TRIGGER, 0, false, no_xpu, NULL, .most = 0},
	{NEWER_CUDA_API_PERMITTED, sizeof(bool), true, cuda_get, cuda_set, .most = 0},
	{NEWER_SHARED_MEMORY_PERMITTED, sizeof(bool), true, shared_get, shared_set,
	 .most = 0},
	LIMIT(NEWER_MAX_MSG_SIZE, msg, WFI_MAX_MSG_SIZE),
	LIMIT(NEWER_MAX_TAGGED_SIZE, tagged, WFI_MAX_MSG_SIZE),
	LIMIT(NEWER_MAX_RMA_SIZE, rma, WFI_MAX_MSG_SIZE),
	LIMIT(NEWER_MAX_ATOMIC_SIZE, atomic, WFI_ATOMIC_SIZE),
	LIMIT(NEWER_INJECT_MSG_SIZE, inject_msg, WFI_INJECT_SIZE),
	LIMIT(NEWER_INJECT_TAGGED_SIZE, inject_tagged, WFI_INJECT_SIZE),
	LIMIT(NEWER_INJECT_RMA_SIZE, inject_rma, WFI_INJECT_SIZE),
	LIMIT(NEWER_INJECT_ATOMIC_SIZE, inject_atomic, WFI_INJECT_SIZE),
};

/* NULL: there is none of that name for this endpoint. */
static const struct option *find(const struct wfi_ep *ep, int level, int name)
{
	if (level != FI_OPT_ENDPOINT) {
		return NULL;
	}
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (options[i].name == name) {
			return ep->is_srx && !options[i].rx ? NULL : &options[i];
		}
	}
	return NULL;
}

/* What the endpoint can do, where nothing less was set. */
static size_t limit_of(const struct wfi_ep *ep, const struct option *o)
{
	size_t set, most = o->most == WFI_INJECT_SIZE ? ep->inject_size : o->most;

	memcpy(&set, (const char *)ep + o->offset, sizeof(set));
	return set ? set - 1 : most;
}

static int limit_set(struct wfi_ep *ep, const struct option *o, size_t value)
{
	size_t most = o->most == WFI_INJECT_SIZE ? ep->inject_size : o->most;
	size_t kept = value + 1; /* 0: nothing was set */

	if (value > most) {
		return -FI_EINVAL;
	}
	memcpy((char *)ep + o->offset, &kept, sizeof(kept));
	return 0;
}

int wfi_ep_option_get(struct wfi_ep *ep, int level, int name, void *val, size_t *len)
{
	const struct option *o = find(ep, level, name);
	union value v = {0};
	int rc = 0;

	if (!o) {
		return -FI_ENOPROTOOPT;
	}
	if (!val || !len) {
		return -FI_EINVAL;
	}
	if (o->most) {
		v.size = limit_of(ep, o);
	} else {
		rc = o->get(ep, &v);
	}
	if (rc) {
		return rc;
	}
	if (*len < o->len) {
		*len = o->len;
		return -FI_ETOOSMALL;
	}
	memcpy(val, &v, o->len);
	*len = o->len;
	return 0;
}

int wfi_ep_option_set(struct wfi_ep *ep, int level, int name, const void *val, size_t len)
{
	const struct option *o = find(ep, level, name);
	union value v = {0};

	if (!o || (!o->set && !o->most)) {
		return -FI_ENOPROTOOPT;
	}
	if (!val || len != o->len) {
		return -FI_EINVAL;
	}
	memcpy(&v, val, len);
	return o->most ? limit_set(ep, o, v.size) : o->set(ep, &v);
}
