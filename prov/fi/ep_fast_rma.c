/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts and gets of one piece that are done in the call, for which no operation is made,
 * and puts that a link takes at once: what can go wrong is left to the calls of ep_rma.c.
 * Chosen as the calls of ep_fast.c are.
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

/* What differs from call to call; all constants. */
struct fast_kind {
	bool write;
	bool data;   /* the target hears of it */
	bool inject; /* nobody here does */
};

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
	wfi_cq_push(cq);
}

FAST bool fast_move(struct wfi_ep *ep, void *buf, size_t len, uint64_t data,
		    fi_addr_t peer, uint64_t addr, uint64_t key,
		    const struct fast_kind kind)
{
	struct proto_peer *pp = proto_now_open(ep->proto, peer, len);

	if (__builtin_expect(!pp || (kind.data && !proto_now_has_room(pp)), 0)) {
		return false;
	}
	if (!kind.write) {
		return proto_now_get(pp, key, addr, buf, len);
	}
	if (!proto_now_put(pp, key, addr, buf, len)) {
		return false;
	}
	if (kind.data) {
		proto_now_event(pp, data, len);
	}
	return true;
}

/* True: under way, and reported as it is asked for when it is done. */
FAST bool soon_write(struct wfi_ep *ep, const void *buf, size_t len, fi_addr_t peer,
		     uint64_t addr, uint64_t key, void *context, bool inject, bool lock)
{
	struct proto_peer *pp;
	bool done;

	fast_lock(ep, lock);
	pp = proto_soon_open(ep->proto, peer, len);
	done = pp && !(ep->tx_cq && wfi_cq_is_full(ep->tx_cq)) &&
	       proto_soon_put(ep->proto, pp, key, addr, buf, len, context,
			      inject ? PROTO_INJECT : ep->tx_bits & PROTO_REPORT);
	if (__builtin_expect(done, 1)) {
		wfi_ep_posted(ep);
	}
	fast_unlock(ep, lock);
	return done;
}

/* True: done, and reported as was asked for. */
FAST bool fast_rma(struct wfi_ep *ep, void *buf, size_t len, uint64_t data,
		   fi_addr_t peer, uint64_t addr, uint64_t key, void *context,
		   const struct fast_kind kind)
{
	struct wfi_cntr *cntr = ep->cntrs[kind.write ? EP_CNTR_WRITE : EP_CNTR_READ];
	bool report = !kind.inject && (ep->tx_bits & PROTO_REPORT);
	bool done;

	wfi_domain_lock(ep->domain);
	done = (!report || wfi_cq_is_calm(ep->tx_cq)) &&
	       fast_move(ep, buf, len, data, peer, addr, key, kind);
	if (__builtin_expect(done, 1)) {
		if (report) {
			fast_report(ep->tx_cq, context,
				    FI_RMA | (kind.write ? FI_WRITE : FI_READ));
		}
		if (cntr) {
			wfi_cntr_inc(cntr);
		}
	}
	wfi_domain_unlock(ep->domain);
	return done;
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t source, uint64_t addr, uint64_t key, void *context)
{
	const struct fast_kind kind = {.write = false};

	(void)desc;
	if (fast_rma(wfi_ep_of_ep(fid), buf, len, 0, source, addr, key, context, kind)) {
		return 0;
	}
	return wfi_ep_ops_rma.read(fid, buf, len, NULL, source, addr, key, context);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	const struct fast_kind kind = {.write = true};

	(void)desc;
	if (fast_rma(wfi_ep_of_ep(fid), (void *)(uintptr_t)buf, len, 0, dest, addr, key,
		     context, kind)) {
		return 0;
	}
	return wfi_ep_ops_rma.write(fid, buf, len, NULL, dest, addr, key, context);
}

/* Where a link may take it at once, though it isn't done then. */
static ssize_t rma_write_soon(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	if (soon_write(wfi_ep_of_ep(fid), buf, len, dest, addr, key, context, false,
		       true)) {
		return 0;
	}
	return rma_write(fid, buf, len, NULL, dest, addr, key, context);
}

/* The same without a lock. */
static ssize_t rma_write_soon_bare(struct fid_ep *fid, const void *buf, size_t len,
				   void *desc, fi_addr_t dest, uint64_t addr,
				   uint64_t key, void *context)
{
	(void)desc;
	if (soon_write(wfi_ep_of_ep(fid), buf, len, dest, addr, key, context, false,
		       false)) {
		return 0;
	}
	return rma_write(fid, buf, len, NULL, dest, addr, key, context);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	const struct fast_kind kind = {.write = true, .data = true};

	(void)desc;
	if (fast_rma(wfi_ep_of_ep(fid), (void *)(uintptr_t)buf, len, data, dest, addr,
		     key, context, kind)) {
		return 0;
	}
	return wfi_ep_ops_rma.writedata(fid, buf, len, NULL, data, dest, addr, key,
					context);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	const struct fast_kind kind = {.write = true, .inject = true};
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    fast_rma(ep, (void *)(uintptr_t)buf, len, 0, dest, addr, key, NULL, kind)) {
		return 0;
	}
	return wfi_ep_ops_rma.inject(fid, buf, len, dest, addr, key);
}

static ssize_t rma_inject_soon(struct fid_ep *fid, const void *buf, size_t len,
			       fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size &&
	    soon_write(ep, buf, len, dest, addr, key, NULL, true, true)) {
		return 0;
	}
	return rma_inject(fid, buf, len, dest, addr, key);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key)
{
	const struct fast_kind kind = {.write = true, .data = true, .inject = true};
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (len <= ep->inject_size && fast_rma(ep, (void *)(uintptr_t)buf, len, data,
					       dest, addr, key, NULL, kind)) {
		return 0;
	}
	return wfi_ep_ops_rma.injectdata(fid, buf, len, data, dest, addr, key);
}

void wfi_ep_fast_select_rma(struct wfi_ep *ep)
{
	/* Nothing that only the calls of ep_rma.c know what to do about. */
	bool soon = !(ep->tx_bits & ~PROTO_REPORT);

	ep->fast_rma = wfi_ep_ops_rma;
	if (ep->can_rma && !ep->devices && !(ep->tx_bits & WFI_TRIGGER)) {
		ep->fast_rma.inject = soon ? rma_inject_soon : rma_inject;
		ep->fast_rma.injectdata = rma_injectdata;
		ep->fast_rma.read = rma_read;
		if (!(ep->tx_bits & PROTO_INJECT)) { /* which has a limit of its own */
			ep->fast_rma.write = !soon ? rma_write
					     : ep->domain->lock_needed
						     ? rma_write_soon
						     : rma_write_soon_bare;
			ep->fast_rma.writedata = rma_writedata;
		}
	}
	ep->fid.rma = &ep->fast_rma;
}
