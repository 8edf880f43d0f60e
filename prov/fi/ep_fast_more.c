/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes between the calls of ep_fast.c and the general ones: messages of one piece
 * that leave as one packet although they aren't small, and small ones that are counted.
 * Whether a lock is needed, a completion wanted, a counter bound is asked in each call.
 * The endpoint reports all sends or none.
 */
#include "config.h"

#include "prov/fi/cq_int.h"
#include "prov/fi/ep_int.h"
#include "prov/proto/small.h"
#include "util/lock_note.h"

#define FAST static inline __attribute__((always_inline))

LOCK_HELD(lock_domain)
FAST void more_report(struct wfi_cq *cq, void *context, uint64_t flags)
{
	struct wfi_cq_entry *e = &cq->ring[cq->tail & cq->mask];

	e->op_context = context;
	e->flags = flags;
	e->len = 0;
	e->buf = NULL;
	e->data = 0;
	e->tag = 0;
	e->src = FI_ADDR_NOTAVAIL;
	wfi_cq_push(cq);
}

/* True: it left. kind: of PROTO_TAGGED and PROTO_DATA, a constant. */
FAST bool more_send(struct wfi_ep *ep, const void *buf, size_t len, uint64_t data,
		    fi_addr_t dest, uint64_t tag, uint32_t kind, void *context,
		    bool report)
{
	struct wfi_cntr *cntr = ep->cntrs[EP_CNTR_SEND];
	struct wfi_cq *cq = ep->tx_cq;
	struct proto_peer *pp = NULL;

	wfi_domain_lock(ep->domain);
	if (!report || wfi_cq_is_calm(cq)) {
		pp = proto_small_open(ep->proto, dest, len, kind, true);
	}
	if (__builtin_expect(pp != NULL, 1)) {
		proto_small_write(pp, buf, len, tag, data, kind, true);
		proto_small_commit(pp, len, kind);
		if (report) {
			more_report(cq, context,
				    FI_SEND | (kind & PROTO_TAGGED ? FI_TAGGED : FI_MSG));
		}
		if (cntr) {
			wfi_cntr_inc(cntr);
		}
	}
	wfi_domain_unlock(ep->domain);
	return pp;
}

static ssize_t tag_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest, uint64_t tag, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (more_send(ep, buf, len, 0, dest, tag, PROTO_TAGGED, context,
		      ep->tx_bits & PROTO_REPORT)) {
		return 0;
	}
	return wfi_ep_ops_tagged.send(fid, buf, len, desc, dest, tag, context);
}

static ssize_t tag_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (more_send(ep, buf, len, data, dest, tag, PROTO_TAGGED | PROTO_DATA, context,
		      ep->tx_bits & PROTO_REPORT)) {
		return 0;
	}
	return wfi_ep_ops_tagged.senddata(fid, buf, len, desc, data, dest, tag, context);
}

static ssize_t tag_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t tag)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    more_send(ep, buf, len, 0, dest, tag, PROTO_TAGGED, NULL, false)) {
		return 0;
	}
	return wfi_ep_ops_tagged.inject(fid, buf, len, dest, tag);
}

static ssize_t tag_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t tag)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size && more_send(ep, buf, len, data, dest, tag,
						PROTO_TAGGED | PROTO_DATA, NULL, false)) {
		return 0;
	}
	return wfi_ep_ops_tagged.injectdata(fid, buf, len, data, dest, tag);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (more_send(ep, buf, len, 0, dest, 0, 0, context, ep->tx_bits & PROTO_REPORT)) {
		return 0;
	}
	return wfi_ep_ops_msg.send(fid, buf, len, desc, dest, context);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    more_send(ep, buf, len, 0, dest, 0, 0, NULL, false)) {
		return 0;
	}
	return wfi_ep_ops_msg.inject(fid, buf, len, dest);
}

const struct wfi_ep_more_tagged wfi_ep_more_tagged = {
	.send = tag_send,
	.senddata = tag_senddata,
	.inject = tag_inject,
	.injectdata = tag_injectdata,
};

const struct wfi_ep_more_msg wfi_ep_more_msg = {
	.send = msg_send,
	.inject = msg_inject,
};
