/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting: what messages and tagged messages share, and fi_msg(3). */
#include "config.h"

#include "prov/fi/ep_int.h"
#include "prov/fi/srx.h"
#include "prov/fi/work.h"
#include "prov/mem/params.h"

bool wfi_iov_sum(const struct iovec *iov, size_t count, size_t *len)
{
	size_t sum = 0;

	if (count > WFI_IOV_LIMIT || (count && !iov)) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > WFI_MAX_MSG_SIZE - sum) {
			return false;
		}
		sum += iov[i].iov_len;
	}
	*len = sum;
	return true;
}

static ssize_t send_refused(const struct wfi_ep *ep)
{
	if (!ep->enabled && !ep->is_srx) {
		return -FI_EOPBADSTATE;
	}
	return ep->can_send ? -FI_EINVAL : -FI_EOPNOTSUPP;
}

ssize_t wfi_ep_send_locked(struct wfi_ep *ep, const struct proto_msg *m, fi_addr_t dest)
{
	struct proto_peer *pp;
	ssize_t ret;

	if (__builtin_expect(
		    !ep->enabled || !ep->can_send ||
			    ((m->flags & PROTO_INJECT) && m->len > ep->inject_size),
		    0)) {
		return send_refused(ep);
	}
	pp = wfi_ep_peer(ep, dest);
	if (__builtin_expect(!pp, 0)) {
		return -FI_EINVAL;
	}
	ret = __builtin_expect(ep->tx_cq && wfi_cq_full(ep->tx_cq), 0)
		      ? -FI_EAGAIN
		      : proto_send(ep->proto, pp, m);
	if (__builtin_expect(ret == -FI_EAGAIN, 0)) {
		wfi_ep_push(ep);
	}
	wfi_ep_posted(ep);
	return ret;
}

ssize_t wfi_ep_send(struct wfi_ep *ep, const struct proto_msg *m, fi_addr_t dest)
{
	ssize_t ret;

	wfi_domain_lock(ep->domain);
	ret = __builtin_expect(m->flags & WFI_TRIGGER, 0)
		      ? wfi_work_send(ep, m, dest)
		      : wfi_ep_send_locked(ep, m, dest);
	wfi_domain_unlock(ep->domain);
	return ret;
}

static ssize_t recv_refused(const struct wfi_ep *ep)
{
	if (!ep->enabled) {
		return -FI_EOPBADSTATE;
	}
	if (ep->srx) {
		FI_WARN(&weft_provider, FI_LOG_EP_DATA,
			"receive: this endpoint receives through the shared context "
			"that it is bound to: post there\n");
	}
	return -FI_EOPNOTSUPP;
}

ssize_t wfi_ep_recv_locked(struct wfi_ep *ep, struct proto_recv *r, fi_addr_t source)
{
	ssize_t ret;

	if (__builtin_expect(!ep->enabled || !ep->can_recv, 0)) {
		return ep->is_srx ? wfi_srx_recv(ep->is_srx, r, source)
				  : recv_refused(ep);
	}
	r->source = NULL;
	if (ep->directed && source != FI_ADDR_UNSPEC) {
		r->source = wfi_ep_peer(ep, source);
		if (!r->source) {
			return -FI_EINVAL;
		}
	}
	ret = __builtin_expect(ep->rx_cq && wfi_cq_full(ep->rx_cq), 0)
		      ? -FI_EAGAIN
		      : proto_recv(ep->proto, r);
	if (__builtin_expect(ret == -FI_EAGAIN, 0)) {
		wfi_ep_push(ep);
	}
	wfi_ep_posted(ep);
	return ret;
}

ssize_t wfi_ep_recv(struct wfi_ep *ep, struct proto_recv *r, fi_addr_t source)
{
	ssize_t ret;

	wfi_domain_lock(ep->domain);
	ret = __builtin_expect(r->flags & WFI_TRIGGER, 0)
		      ? wfi_work_recv(ep, r, source)
		      : wfi_ep_recv_locked(ep, r, source);
	wfi_domain_unlock(ep->domain);
	return ret;
}

/* ---- fi_msg */

static ssize_t msg_recvv_bits(struct wfi_ep *ep, const struct iovec *iov, size_t count,
			      fi_addr_t source, void *context, uint32_t bits)
{
	struct proto_recv r = {
		.iov = iov, .count = count, .context = context, .flags = bits};
	size_t len;

	if (!wfi_iov_sum(iov, count, &len) || ((bits & PROTO_MULTI) && count != 1)) {
		return -FI_EINVAL;
	}
	return wfi_ep_recv(ep, &r, source);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t source, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);
	struct iovec iov = {buf, len};

	(void)desc;
	return msg_recvv_bits(ep, &iov, 1, source, context, ep->rx_bits);
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			 size_t count, fi_addr_t source, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	(void)desc;
	return msg_recvv_bits(ep, iov, count, source, context, ep->rx_bits);
}

#define RECVMSG_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE | FI_TRIGGER)

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (flags & ~RECVMSG_FLAGS) {
		return -FI_EBADFLAGS;
	}
	return msg_recvv_bits(ep, msg->msg_iov, msg->iov_count, msg->addr, msg->context,
			      wfi_ep_rx_bits(ep, flags));
}

static ssize_t msg_send_bits(struct fid_ep *fid, const void *buf, size_t len,
			     uint64_t data, fi_addr_t dest, void *context, uint32_t bits)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct proto_msg m = {.iov = &iov,
			      .count = 1,
			      .len = len,
			      .data = data,
			      .context = context,
			      .flags = bits};

	if (__builtin_expect(len > WFI_MAX_MSG_SIZE, 0)) {
		return -FI_EMSGSIZE;
	}
	return wfi_ep_send(wfi_ep_of_ep(fid), &m, dest);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest, void *context)
{
	(void)desc;
	return msg_send_bits(fid, buf, len, 0, dest, context, wfi_ep_of_ep(fid)->tx_bits);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, void *context)
{
	(void)desc;
	return msg_send_bits(fid, buf, len, data, dest, context,
			     wfi_ep_of_ep(fid)->tx_bits | PROTO_DATA);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	return msg_send_bits(fid, buf, len, 0, dest, NULL, PROTO_INJECT);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest)
{
	return msg_send_bits(fid, buf, len, data, dest, NULL, PROTO_INJECT | PROTO_DATA);
}

static ssize_t msg_sendv_bits(struct wfi_ep *ep, const struct iovec *iov, size_t count,
			      uint64_t data, fi_addr_t dest, void *context, uint32_t bits)
{
	struct proto_msg m = {.iov = iov,
			      .count = count,
			      .data = data,
			      .context = context,
			      .flags = bits};

	if (!wfi_iov_sum(iov, count, &m.len)) {
		return -FI_EINVAL;
	}
	return wfi_ep_send(ep, &m, dest);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			 size_t count, fi_addr_t dest, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	(void)desc;
	return msg_sendv_bits(ep, iov, count, 0, dest, context, ep->tx_bits);
}

#define SENDMSG_FLAGS \
	(WFI_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE | FI_TRIGGER | FI_FENCE)

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (flags & ~SENDMSG_FLAGS) {
		return -FI_EBADFLAGS;
	}
	return msg_sendv_bits(ep, msg->msg_iov, msg->iov_count, msg->data, msg->addr,
			      msg->context, wfi_ep_tx_bits(ep, flags));
}

struct fi_ops_msg wfi_ep_ops_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
