/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small messages of one piece, from the call down to the engine in as few steps as there
 * are. What depends on how the endpoint was opened is decided when it is enabled, by the
 * tables that it gets here: whether the lock is needed is a constant in each function.
 * Whatever is out of the ordinary is left to the calls of ep_fast_more.c, ep_msg.c and
 * ep_tagged.c, which begin from the beginning: nothing has happened by then. They don't
 * need descriptors.
 */
#include "config.h"

#include "prov/fi/cq_int.h"
#include "prov/fi/ep_int.h"
#include "prov/fi/work.h"
#include "prov/proto/small.h"
#include "util/lock_note.h"

#define FAST static inline __attribute__((always_inline))

LOCK_TAKE(lock_domain) FAST void fast_lock(struct wfi_ep *ep, bool lock)
{
	if (lock) {
		wfi_domain_lock(ep->domain);
	}
}

LOCK_GIVE(lock_domain) FAST void fast_unlock(struct wfi_ep *ep, bool lock)
{
	if (lock) {
		wfi_domain_unlock(ep->domain);
	}
}

/* A message that leaves whole is complete. */
LOCK_HELD(lock_domain)
FAST void fast_report(struct wfi_cq *cq, void *context, uint64_t flags)
{
	struct wfi_cq_entry *e = &cq->ring[cq->tail & cq->mask];

	e->op_context = context;
	e->flags = flags;
	e->len = 0;
	e->buf = NULL;
	e->data = 0;
	e->tag = 0;
	e->src = FI_ADDR_NOTAVAIL;
	cq->tail++;
}

/* True: it left. kind: of PROTO_TAGGED and PROTO_DATA, a constant; report: into the
 * queue, which is there then. */
FAST bool fast_send_kind(struct wfi_ep *ep, const void *buf, size_t len, uint64_t data,
			 fi_addr_t dest, uint64_t tag, uint32_t kind, void *context,
			 bool report, bool lock)
{
	struct wfi_cq *cq = ep->tx_cq;
	struct proto_peer *pp = NULL;

	fast_lock(ep, lock);
	if (!report || wfi_cq_is_calm(cq)) {
		pp = proto_small_open(ep->proto, dest, len, kind, false);
	}
	if (__builtin_expect(pp != NULL, 1)) {
		/* All that the caller gave is used up before the first call, so that
		 * nothing of it must be kept over one. */
		proto_small_write(pp, buf, len, tag, data, kind, false);
		if (report) {
			fast_report(cq, context,
				    FI_SEND | (kind & PROTO_TAGGED ? FI_TAGGED : FI_MSG));
		}
		proto_small_commit(pp, len, kind);
		if (report) {
			wfi_wait_signal(&cq->wait);
		}
	}
	fast_unlock(ep, lock);
	return pp;
}

FAST bool fast_send(struct wfi_ep *ep, const void *buf, size_t len, fi_addr_t dest,
		    uint64_t tag, uint32_t tagged, void *context, bool report, bool lock)
{
	return fast_send_kind(ep, buf, len, 0, dest, tag, tagged, context, report, lock);
}

/* Only directed receives look at the source. */
FAST bool fast_is_any(const struct wfi_ep *ep, fi_addr_t source)
{
	return !ep->directed || source == FI_ADDR_UNSPEC;
}

FAST bool fast_recv(struct wfi_ep *ep, void *buf, size_t len, uint64_t tag,
		    uint32_t tagged, void *context, bool lock)
{
	bool posted;

	fast_lock(ep, lock);
	/* A full queue is no obstacle: it only stops what comes in. */
	posted = proto_small_recv(ep->proto, buf, len, tag, context, tagged);
	fast_unlock(ep, lock);
	return posted;
}

/* From one source where the endpoint looks at that, with bits that don't count. */
FAST bool fast_recv_special(struct wfi_ep *ep, void *buf, size_t len, fi_addr_t source,
			    uint64_t tag, uint64_t ignore, void *context, bool lock)
{
	struct proto_peer *from = NULL;
	bool posted = true;

	fast_lock(ep, lock);
	if (source != FI_ADDR_UNSPEC) {
		from = proto_mapped(ep->proto, source);
		posted = from != NULL;
	}
	posted = posted && proto_small_recv_special(ep->proto, buf, len, from, tag,
						    ignore, context, PROTO_TAGGED);
	fast_unlock(ep, lock);
	return posted;
}

/* ---- without a lock */

static ssize_t tag_send_bare(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	if (fast_send(wfi_ep_of_ep(fid), buf, len, dest, tag, PROTO_TAGGED, context, true,
		      false)) {
		return 0;
	}
	return wfi_ep_more_tagged.send(fid, buf, len, NULL, dest, tag, context);
}

static ssize_t msg_send_bare(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     fi_addr_t dest, void *context)
{
	(void)desc;
	if (fast_send(wfi_ep_of_ep(fid), buf, len, dest, 0, 0, context, true, false)) {
		return 0;
	}
	return wfi_ep_more_msg.send(fid, buf, len, NULL, dest, context);
}

static ssize_t tag_send_quiet_bare(struct fid_ep *fid, const void *buf, size_t len,
				   void *desc, fi_addr_t dest, uint64_t tag,
				   void *context)
{
	(void)desc;
	if (fast_send(wfi_ep_of_ep(fid), buf, len, dest, tag, PROTO_TAGGED, context,
		      false, false)) {
		return 0;
	}
	return wfi_ep_more_tagged.send(fid, buf, len, NULL, dest, tag, context);
}

static ssize_t msg_send_quiet_bare(struct fid_ep *fid, const void *buf, size_t len,
				   void *desc, fi_addr_t dest, void *context)
{
	(void)desc;
	if (fast_send(wfi_ep_of_ep(fid), buf, len, dest, 0, 0, context, false, false)) {
		return 0;
	}
	return wfi_ep_more_msg.send(fid, buf, len, NULL, dest, context);
}

static ssize_t tag_inject_bare(struct fid_ep *fid, const void *buf, size_t len,
			       fi_addr_t dest, uint64_t tag)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    fast_send(ep, buf, len, dest, tag, PROTO_TAGGED, NULL, false, false)) {
		return 0;
	}
	return wfi_ep_more_tagged.inject(fid, buf, len, dest, tag);
}

static ssize_t msg_inject_bare(struct fid_ep *fid, const void *buf, size_t len,
			       fi_addr_t dest)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    fast_send(ep, buf, len, dest, 0, 0, NULL, false, false)) {
		return 0;
	}
	return wfi_ep_more_msg.inject(fid, buf, len, dest);
}

static ssize_t tag_recv_bare(struct fid_ep *fid, void *buf, size_t len, void *desc,
			     fi_addr_t source, uint64_t tag, uint64_t ignore,
			     void *context)
{
	(void)desc;
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (!ignore && fast_is_any(ep, source) &&
	    fast_recv(ep, buf, len, tag, PROTO_TAGGED, context, false)) {
		return 0;
	}
	return wfi_ep_ops_tagged.recv(fid, buf, len, NULL, source, tag, ignore, context);
}

static ssize_t tag_recv_directed_bare(struct fid_ep *fid, void *buf, size_t len,
				      void *desc, fi_addr_t source, uint64_t tag,
				      uint64_t ignore, void *context)
{
	(void)desc;
	if (fast_recv_special(wfi_ep_of_ep(fid), buf, len, source, tag, ignore, context,
			      false)) {
		return 0;
	}
	return wfi_ep_ops_tagged.recv(fid, buf, len, NULL, source, tag, ignore, context);
}

static ssize_t tag_senddata_bare(struct fid_ep *fid, const void *buf, size_t len,
				 void *desc, uint64_t data, fi_addr_t dest, uint64_t tag,
				 void *context)
{
	(void)desc;
	if (fast_send_kind(wfi_ep_of_ep(fid), buf, len, data, dest, tag,
			   PROTO_TAGGED | PROTO_DATA, context, true, false)) {
		return 0;
	}
	return wfi_ep_more_tagged.senddata(fid, buf, len, NULL, data, dest, tag, context);
}

static ssize_t tag_injectdata_bare(struct fid_ep *fid, const void *buf, size_t len,
				   uint64_t data, fi_addr_t dest, uint64_t tag)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    fast_send_kind(ep, buf, len, data, dest, tag, PROTO_TAGGED | PROTO_DATA, NULL,
			   false, false)) {
		return 0;
	}
	return wfi_ep_more_tagged.injectdata(fid, buf, len, data, dest, tag);
}

static ssize_t msg_recv_bare(struct fid_ep *fid, void *buf, size_t len, void *desc,
			     fi_addr_t source, void *context)
{
	(void)desc;
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (fast_is_any(ep, source) && fast_recv(ep, buf, len, 0, 0, context, false)) {
		return 0;
	}
	return wfi_ep_ops_msg.recv(fid, buf, len, NULL, source, context);
}

/* ---- with the lock */

static ssize_t tag_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	if (fast_send(wfi_ep_of_ep(fid), buf, len, dest, tag, PROTO_TAGGED, context, true,
		      true)) {
		return 0;
	}
	return wfi_ep_more_tagged.send(fid, buf, len, NULL, dest, tag, context);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest, void *context)
{
	(void)desc;
	if (fast_send(wfi_ep_of_ep(fid), buf, len, dest, 0, 0, context, true, true)) {
		return 0;
	}
	return wfi_ep_more_msg.send(fid, buf, len, NULL, dest, context);
}

static ssize_t tag_send_quiet(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	if (fast_send(wfi_ep_of_ep(fid), buf, len, dest, tag, PROTO_TAGGED, context,
		      false, true)) {
		return 0;
	}
	return wfi_ep_more_tagged.send(fid, buf, len, NULL, dest, tag, context);
}

static ssize_t msg_send_quiet(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      fi_addr_t dest, void *context)
{
	(void)desc;
	if (fast_send(wfi_ep_of_ep(fid), buf, len, dest, 0, 0, context, false, true)) {
		return 0;
	}
	return wfi_ep_more_msg.send(fid, buf, len, NULL, dest, context);
}

static ssize_t tag_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t tag)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    fast_send(ep, buf, len, dest, tag, PROTO_TAGGED, NULL, false, true)) {
		return 0;
	}
	return wfi_ep_more_tagged.inject(fid, buf, len, dest, tag);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    fast_send(ep, buf, len, dest, 0, 0, NULL, false, true)) {
		return 0;
	}
	return wfi_ep_more_msg.inject(fid, buf, len, dest);
}

static ssize_t tag_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t source, uint64_t tag, uint64_t ignore, void *context)
{
	(void)desc;
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (!ignore && fast_is_any(ep, source) &&
	    fast_recv(ep, buf, len, tag, PROTO_TAGGED, context, true)) {
		return 0;
	}
	return wfi_ep_ops_tagged.recv(fid, buf, len, NULL, source, tag, ignore, context);
}

static ssize_t tag_recv_directed(struct fid_ep *fid, void *buf, size_t len, void *desc,
				 fi_addr_t source, uint64_t tag, uint64_t ignore,
				 void *context)
{
	(void)desc;
	if (fast_recv_special(wfi_ep_of_ep(fid), buf, len, source, tag, ignore, context,
			      true)) {
		return 0;
	}
	return wfi_ep_ops_tagged.recv(fid, buf, len, NULL, source, tag, ignore, context);
}

static ssize_t tag_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	if (fast_send_kind(wfi_ep_of_ep(fid), buf, len, data, dest, tag,
			   PROTO_TAGGED | PROTO_DATA, context, true, true)) {
		return 0;
	}
	return wfi_ep_more_tagged.senddata(fid, buf, len, NULL, data, dest, tag, context);
}

static ssize_t tag_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t tag)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    fast_send_kind(ep, buf, len, data, dest, tag, PROTO_TAGGED | PROTO_DATA, NULL,
			   false, true)) {
		return 0;
	}
	return wfi_ep_more_tagged.injectdata(fid, buf, len, data, dest, tag);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t source, void *context)
{
	(void)desc;
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (fast_is_any(ep, source) && fast_recv(ep, buf, len, 0, 0, context, true)) {
		return 0;
	}
	return wfi_ep_ops_msg.recv(fid, buf, len, NULL, source, context);
}

/* ---- which */

/* By lock needed. */
struct fast_calls {
	typeof(tag_send) *tag_send, *tag_send_quiet;
	typeof(msg_send) *msg_send, *msg_send_quiet;
	typeof(tag_inject) *tag_inject;
	typeof(msg_inject) *msg_inject;
	typeof(tag_recv) *tag_recv, *tag_recv_directed;
	typeof(msg_recv) *msg_recv;
	typeof(tag_senddata) *tag_senddata;
	typeof(tag_injectdata) *tag_injectdata;
};

static const struct fast_calls fast_calls[2] = {
	{tag_send_bare, tag_send_quiet_bare, msg_send_bare, msg_send_quiet_bare,
	 tag_inject_bare, msg_inject_bare, tag_recv_bare, tag_recv_directed_bare,
	 msg_recv_bare, tag_senddata_bare, tag_injectdata_bare},
	{tag_send, tag_send_quiet, msg_send, msg_send_quiet, tag_inject, msg_inject,
	 tag_recv, tag_recv_directed, msg_recv, tag_senddata, tag_injectdata},
};

static void select_send(struct wfi_ep *ep, const struct fast_calls *calls)
{
	ep->fast_tagged.inject = calls->tag_inject;
	ep->fast_tagged.injectdata = calls->tag_injectdata;
	ep->fast_msg.inject = calls->msg_inject;
	if (ep->tx_bits == PROTO_REPORT) {
		ep->fast_tagged.senddata = calls->tag_senddata;
		ep->fast_tagged.send = calls->tag_send;
		ep->fast_msg.send = calls->msg_send;
	} else if (ep->tx_bits == 0) {
		ep->fast_tagged.send = calls->tag_send_quiet;
		ep->fast_msg.send = calls->msg_send_quiet;
	} /* else delivery or the inject flag: the whole way round */
}

/* Where sends are counted as well. */
static void select_counted(struct wfi_ep *ep)
{
	ep->fast_tagged.inject = wfi_ep_more_tagged.inject;
	ep->fast_tagged.injectdata = wfi_ep_more_tagged.injectdata;
	ep->fast_msg.inject = wfi_ep_more_msg.inject;
	if ((ep->tx_bits & ~PROTO_REPORT) == 0) {
		ep->fast_tagged.senddata = wfi_ep_more_tagged.senddata;
		ep->fast_tagged.send = wfi_ep_more_tagged.send;
		ep->fast_msg.send = wfi_ep_more_msg.send;
	}
}

void wfi_ep_fast_select(struct wfi_ep *ep)
{
	const struct fast_calls *calls = &fast_calls[ep->domain->lock_needed];

	ep->fast_msg = wfi_ep_ops_msg;
	ep->fast_tagged = wfi_ep_ops_tagged;
	if (ep->devices) {
		/* The straight ways ask nothing of a buffer. */
	} else if (ep->can_send && ep->cntrs[EP_CNTR_SEND]) {
		select_counted(ep);
	} else if (ep->can_send) {
		select_send(ep, calls);
	}
	if (ep->can_recv && !ep->devices &&
	    (ep->rx_bits & (PROTO_REPORT | WFI_TRIGGER)) == PROTO_REPORT) {
		ep->fast_tagged.recv =
			ep->directed ? calls->tag_recv_directed : calls->tag_recv;
		if (ep->rx_bits == PROTO_REPORT) {
			ep->fast_msg.recv = calls->msg_recv;
		}
	}
	ep->fid.msg = &ep->fast_msg;
	ep->fid.tagged = &ep->fast_tagged;
	wfi_ep_fast_select_rma(ep);
}
