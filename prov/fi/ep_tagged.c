/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_tagged(3). */
#include "config.h"

#include "prov/fi/ep_int.h"

/* A multi-receive buffer is for messages without a tag only, also as an op_flag. */
static ssize_t tag_recvv_bits(struct wfi_ep *ep, const struct iovec *iov, size_t count,
			      fi_addr_t source, uint64_t tag, uint64_t ignore,
			      void *context, uint32_t bits)
{
	struct proto_recv r = {.iov = iov,
			       .count = count,
			       .tag = tag,
			       .ignore = ignore,
			       .context = context,
			       .flags = (bits & ~PROTO_MULTI) | PROTO_TAGGED};
	size_t len;

	if (!wfi_iov_sum(iov, count, &len)) {
		return -FI_EINVAL;
	}
	return wfi_ep_recv(ep, &r, source);
}

static ssize_t tag_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t source, uint64_t tag, uint64_t ignore, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);
	struct iovec iov = {buf, len};
	struct proto_recv r = {.iov = &iov,
			       .count = 1,
			       .tag = tag,
			       .ignore = ignore,
			       .context = context,
			       .flags = (ep->rx_bits & ~PROTO_MULTI) | PROTO_TAGGED};

	(void)desc;
	if (__builtin_expect(len > WFI_MAX_MSG_SIZE, 0)) {
		return -FI_EINVAL;
	}
	return wfi_ep_recv(ep, &r, source);
}

static ssize_t tag_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			 size_t count, fi_addr_t source, uint64_t tag, uint64_t ignore,
			 void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	(void)desc;
	return tag_recvv_bits(ep, iov, count, source, tag, ignore, context, ep->rx_bits);
}

#define TRECVMSG_FLAGS \
	(FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER)

static ssize_t tag_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			   uint64_t flags)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (flags & ~TRECVMSG_FLAGS) {
		return -FI_EBADFLAGS;
	}
	if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
		if (flags & FI_TRIGGER) {
			return -FI_EBADFLAGS;
		}
		return wfi_ep_peek(ep, msg, flags);
	}
	return tag_recvv_bits(ep, msg->msg_iov, msg->iov_count, msg->addr, msg->tag,
			      msg->ignore, msg->context, wfi_ep_rx_bits(ep, flags));
}

static ssize_t tag_send_bits(struct fid_ep *fid, const void *buf, size_t len,
			     uint64_t data, fi_addr_t dest, uint64_t tag, void *context,
			     uint32_t bits)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct proto_msg m = {.iov = &iov,
			      .count = 1,
			      .len = len,
			      .tag = tag,
			      .data = data,
			      .context = context,
			      .flags = bits | PROTO_TAGGED};

	if (__builtin_expect(len > WFI_MAX_MSG_SIZE, 0)) {
		return -FI_EMSGSIZE;
	}
	return wfi_ep_send(wfi_ep_of_ep(fid), &m, dest);
}

static ssize_t tag_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	return tag_send_bits(fid, buf, len, 0, dest, tag, context,
			     wfi_ep_of_ep(fid)->tx_bits);
}

static ssize_t tag_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	return tag_send_bits(fid, buf, len, data, dest, tag, context,
			     wfi_ep_of_ep(fid)->tx_bits | PROTO_DATA);
}

static ssize_t tag_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t tag)
{
	return tag_send_bits(fid, buf, len, 0, dest, tag, NULL, PROTO_INJECT);
}

static ssize_t tag_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t tag)
{
	return tag_send_bits(fid, buf, len, data, dest, tag, NULL,
			     PROTO_INJECT | PROTO_DATA);
}

static ssize_t tag_sendv_bits(struct wfi_ep *ep, const struct iovec *iov, size_t count,
			      uint64_t data, fi_addr_t dest, uint64_t tag, void *context,
			      uint32_t bits)
{
	struct proto_msg m = {.iov = iov,
			      .count = count,
			      .tag = tag,
			      .data = data,
			      .context = context,
			      .flags = bits | PROTO_TAGGED};

	if (!wfi_iov_sum(iov, count, &m.len)) {
		return -FI_EINVAL;
	}
	return wfi_ep_send(ep, &m, dest);
}

static ssize_t tag_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			 size_t count, fi_addr_t dest, uint64_t tag, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	(void)desc;
	return tag_sendv_bits(ep, iov, count, 0, dest, tag, context, ep->tx_bits);
}

#define TSENDMSG_FLAGS \
	(WFI_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE | FI_TRIGGER | FI_FENCE)

static ssize_t tag_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			   uint64_t flags)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (flags & ~TSENDMSG_FLAGS) {
		return -FI_EBADFLAGS;
	}
	return tag_sendv_bits(ep, msg->msg_iov, msg->iov_count, msg->data, msg->addr,
			      msg->tag, msg->context, wfi_ep_tx_bits(ep, flags));
}

struct fi_ops_tagged wfi_ep_ops_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tag_recv,
	.recvv = tag_recvv,
	.recvmsg = tag_recvmsg,
	.send = tag_send,
	.sendv = tag_sendv,
	.sendmsg = tag_sendmsg,
	.inject = tag_inject,
	.senddata = tag_senddata,
	.injectdata = tag_injectdata,
};
