/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_rma(3). */
#include "config.h"

#include "prov/fi/ep_int.h"
#include "prov/fi/work.h"

ssize_t wfi_ep_rma_locked(struct wfi_ep *ep, const struct proto_rma *r, fi_addr_t target)
{
	struct proto_peer *pp;
	ssize_t ret;

	if (__builtin_expect(!ep->enabled, 0)) {
		return -FI_EOPBADSTATE;
	}
	if (!ep->can_rma) {
		return -FI_EOPNOTSUPP;
	}
	if ((r->flags & PROTO_INJECT) && r->len > ep->inject_size) {
		return -FI_EINVAL;
	}
	pp = wfi_ep_peer(ep, target);
	if (!pp) {
		return -FI_EINVAL;
	}
	ret = ep->tx_cq && wfi_cq_full(ep->tx_cq) ? -FI_EAGAIN
						  : proto_rma(ep->proto, pp, r);
	if (ret == -FI_EAGAIN) {
		wfi_ep_push(ep);
	}
	wfi_ep_posted(ep);
	return ret;
}

static ssize_t post(struct wfi_ep *ep, const struct proto_rma *r, fi_addr_t target)
{
	ssize_t ret;

	wfi_domain_lock(ep->domain);
	ret = __builtin_expect(r->flags & WFI_TRIGGER, 0)
		      ? wfi_work_rma(ep, r, target)
		      : wfi_ep_rma_locked(ep, r, target);
	wfi_domain_unlock(ep->domain);
	return ret;
}

/* One remote piece, as most calls have it. */
static ssize_t post_plain(struct wfi_ep *ep, const struct iovec *iov, size_t count,
			  uint64_t data, fi_addr_t target, uint64_t addr, uint64_t key,
			  void *context, uint32_t bits)
{
	struct proto_rma_iov remote = {.addr = addr, .key = key};
	struct proto_rma r = {.iov = iov,
			      .count = count,
			      .remote = &remote,
			      .remote_count = 1,
			      .data = data,
			      .context = context,
			      .flags = bits};

	if (!wfi_iov_sum(iov, count, &r.len)) {
		return -FI_EINVAL;
	}
	remote.len = r.len;
	return post(ep, &r, target);
}

/* PROTO_DATA is for writes, PROTO_INJECT as well: a read has nothing to give away. */
static uint32_t read_bits(uint32_t bits)
{
	return bits & ~(PROTO_DATA | PROTO_INJECT);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t source, uint64_t addr, uint64_t key, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);
	struct iovec iov = {buf, len};

	(void)desc;
	return post_plain(ep, &iov, 1, 0, source, addr, key, context,
			  read_bits(ep->tx_bits));
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			 size_t count, fi_addr_t source, uint64_t addr, uint64_t key,
			 void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	(void)desc;
	return post_plain(ep, iov, count, 0, source, addr, key, context,
			  read_bits(ep->tx_bits));
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return post_plain(ep, &iov, 1, 0, dest, addr, key, context,
			  ep->tx_bits | PROTO_WRITE);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc,
			  size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
			  void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	(void)desc;
	return post_plain(ep, iov, count, 0, dest, addr, key, context,
			  ep->tx_bits | PROTO_WRITE);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	(void)desc;
	return post_plain(ep, &iov, 1, data, dest, addr, key, context,
			  ep->tx_bits | PROTO_WRITE | PROTO_DATA);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return post_plain(wfi_ep_of_ep(fid), &iov, 1, 0, dest, addr, key, NULL,
			  PROTO_WRITE | PROTO_INJECT);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return post_plain(wfi_ep_of_ep(fid), &iov, 1, data, dest, addr, key, NULL,
			  PROTO_WRITE | PROTO_INJECT | PROTO_DATA);
}

int wfi_rma_of_msg(const struct fi_msg_rma *msg, uint32_t bits,
		   struct proto_rma_iov *remote, struct proto_rma *r)
{
	size_t sum = 0;

	*r = (struct proto_rma){.iov = msg->msg_iov,
				.count = msg->iov_count,
				.remote = remote,
				.remote_count = msg->rma_iov_count,
				.data = msg->data,
				.context = msg->context,
				.flags = bits};
	if (!wfi_iov_sum(msg->msg_iov, msg->iov_count, &r->len) ||
	    msg->rma_iov_count > WFI_RMA_IOV_LIMIT ||
	    (msg->rma_iov_count && !msg->rma_iov)) {
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < msg->rma_iov_count; i++) {
		remote[i].addr = msg->rma_iov[i].addr;
		remote[i].len = msg->rma_iov[i].len;
		remote[i].key = msg->rma_iov[i].key;
		if (remote[i].len > r->len - sum) {
			return -FI_EINVAL;
		}
		sum += remote[i].len;
	}
	return sum == r->len ? 0 : -FI_EINVAL;
}

static ssize_t post_msg(struct wfi_ep *ep, const struct fi_msg_rma *msg, uint32_t bits)
{
	struct proto_rma_iov remote[WFI_RMA_IOV_LIMIT];
	struct proto_rma r;
	int rc = wfi_rma_of_msg(msg, bits, remote, &r);

	return rc ? rc : post(ep, &r, msg->addr);
}

#define READMSG_FLAGS                                                            \
	(FI_COMPLETION | FI_MORE | FI_DELIVERY_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_TRIGGER | FI_FENCE)
#define WRITEMSG_FLAGS \
	(WFI_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE | FI_TRIGGER | FI_FENCE)

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (flags & ~(uint64_t)READMSG_FLAGS) {
		return -FI_EBADFLAGS;
	}
	return post_msg(ep, msg, read_bits(wfi_ep_tx_bits(ep, flags)));
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	if (flags & ~(uint64_t)WRITEMSG_FLAGS) {
		return -FI_EBADFLAGS;
	}
	return post_msg(ep, msg, wfi_ep_tx_bits(ep, flags) | PROTO_WRITE);
}

struct fi_ops_rma wfi_ep_ops_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
