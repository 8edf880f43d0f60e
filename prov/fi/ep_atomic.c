/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_atomic(3). Counts are in elements on this side, in bytes below. */
#include "config.h"

#include "prov/fi/atomic.h"
#include "prov/fi/ep_int.h"
#include "prov/fi/work.h"
#include "prov/proto/atomic_op.h"

int wfi_ep_atomic_check(const struct wfi_ep *ep, const struct proto_atomic *a)
{
	uint64_t need = a->mode == ATOMIC_BASE ? FI_WRITE : FI_READ;
	size_t operands = atomic_op_operands(a->mode, a->op) * a->len;

	if (!ep->enabled) {
		return -FI_EOPBADSTATE;
	}
	if (!(ep->atomic_caps & need)) {
		return -FI_EOPNOTSUPP;
	}
	if (ep->domain->native) {
		if (wfi_atomic_native(a->mode, a->type, a->op, NULL) ||
		    (a->flags & PROTO_DATA)) {
			return -FI_EOPNOTSUPP;
		}
		if (a->len != sizeof(uint64_t) || a->remote_count != 1) {
			return -FI_EMSGSIZE;
		}
	}
	return (a->flags & PROTO_INJECT) && operands > ep->inject_size ? -FI_EINVAL : 0;
}

ssize_t wfi_ep_atomic_locked(struct wfi_ep *ep, const struct proto_atomic *a,
			     fi_addr_t target)
{
	ssize_t ret = wfi_ep_atomic_check(ep, a);
	struct proto_peer *pp;

	if (ret) {
		return ret;
	}
	pp = wfi_ep_peer(ep, target);
	if (!pp) {
		return -FI_EINVAL;
	}
	ret = ep->tx_cq && wfi_cq_full(ep->tx_cq) ? -FI_EAGAIN
						  : proto_atomic(ep->proto, pp, a);
	if (ret == -FI_EAGAIN) {
		wfi_ep_push(ep);
	}
	wfi_ep_posted(ep);
	return ret;
}

static ssize_t post(struct wfi_ep *ep, const struct proto_atomic *a, fi_addr_t target)
{
	ssize_t ret;

	wfi_domain_lock(ep->domain);
	if (__builtin_expect(a->flags & WFI_TRIGGER, 0)) {
		ret = wfi_ep_atomic_check(ep, a);
		ret = ret ? ret : wfi_work_atomic(ep, a, target);
	} else {
		ret = wfi_ep_atomic_locked(ep, a, target);
	}
	wfi_domain_unlock(ep->domain);
	return ret;
}

/* -FI_EOPNOTSUPP: there is no such operation. bits: PROTO_*. */
static int call_begin(struct wfi_atomic_call *c, uint32_t mode, enum fi_datatype type,
		      enum fi_op op, void *context, uint32_t bits)
{
	if (wfi_atomic_valid(mode, type, op, NULL)) {
		return -FI_EOPNOTSUPP;
	}
	c->size = atomic_type_size((uint32_t)type);
	c->a = (struct proto_atomic){.mode = (uint8_t)mode,
				     .op = (uint8_t)op,
				     .type = (uint8_t)type,
				     .iov = c->iov,
				     .compare = c->compare,
				     .result = c->result,
				     .remote = c->remote,
				     .context = context,
				     .flags = bits};
	if (mode == ATOMIC_BASE) {
		c->a.flags |= PROTO_WRITE;
	}
	if (op == FI_ATOMIC_READ) { /* nothing to give away */
		c->a.flags &= ~PROTO_INJECT;
	}
	return 0;
}

/* All lists are of the same length; the first says which. */
static int len_agree(struct wfi_atomic_call *c, size_t len)
{
	if (len == 0 || (c->a.len && len != c->a.len)) {
		return -FI_EINVAL;
	}
	c->a.len = len;
	return 0;
}

/* One of the local lists. */
static int call_local(struct wfi_atomic_call *c, const struct fi_ioc *ioc, size_t count,
		      struct iovec *iov, size_t *iov_count)
{
	size_t len = 0;

	if (count > WFI_IOV_LIMIT || (count && !ioc)) {
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		if (ioc[i].count > (WFI_ATOMIC_SIZE - len) / c->size) {
			return -FI_EMSGSIZE;
		}
		if (ioc[i].count && !ioc[i].addr) {
			return -FI_EINVAL;
		}
		iov[i].iov_base = ioc[i].addr;
		iov[i].iov_len = ioc[i].count * c->size;
		len += iov[i].iov_len;
	}
	*iov_count = count;
	return len_agree(c, len);
}

static int call_operands(struct wfi_atomic_call *c, const struct fi_ioc *ioc,
			 size_t count)
{
	/* What an application has put there for a read has no meaning. */
	return c->a.op == FI_ATOMIC_READ ? 0
					 : call_local(c, ioc, count, c->iov, &c->a.count);
}

static int call_compare(struct wfi_atomic_call *c, const struct fi_ioc *ioc, size_t count)
{
	return call_local(c, ioc, count, c->compare, &c->a.compare_count);
}

static int call_result(struct wfi_atomic_call *c, const struct fi_ioc *ioc, size_t count)
{
	return call_local(c, ioc, count, c->result, &c->a.result_count);
}

/* One remote piece, as most calls have it; the local lists are there. */
static ssize_t call_post(struct wfi_ep *ep, struct wfi_atomic_call *c, fi_addr_t target,
			 uint64_t addr, uint64_t key)
{
	c->remote[0] = (struct proto_rma_iov){.addr = addr, .len = c->a.len, .key = key};
	c->a.remote_count = 1;
	return post(ep, &c->a, target);
}

static int call_remote(struct wfi_atomic_call *c, const struct fi_msg_atomic *msg)
{
	size_t len = 0;

	if (msg->rma_iov_count > WFI_RMA_IOV_LIMIT ||
	    (msg->rma_iov_count && !msg->rma_iov)) {
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < msg->rma_iov_count; i++) {
		if (msg->rma_iov[i].count > (WFI_ATOMIC_SIZE - len) / c->size) {
			return -FI_EMSGSIZE;
		}
		c->remote[i].addr = msg->rma_iov[i].addr;
		c->remote[i].len = msg->rma_iov[i].count * c->size;
		c->remote[i].key = msg->rma_iov[i].key;
		len += c->remote[i].len;
	}
	c->a.remote_count = msg->rma_iov_count;
	c->a.data = msg->data;
	return len_agree(c, len);
}

int wfi_atomic_of_msg(struct wfi_atomic_call *c, uint32_t mode,
		      const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
		      const struct fi_msg_compare *compare, uint32_t bits)
{
	int ret = call_begin(c, mode, msg->datatype, msg->op, msg->context, bits);

	if (!ret && mode != ATOMIC_BASE) {
		ret = call_result(c, fetch->msg_iov, fetch->iov_count);
	}
	if (!ret) {
		ret = call_operands(c, msg->msg_iov, msg->iov_count);
	}
	if (!ret && mode == ATOMIC_COMPARE) {
		ret = call_compare(c, compare->msg_iov, compare->iov_count);
	}
	return ret ? ret : call_remote(c, msg);
}

#define MSG_FLAGS (WFI_TX_OP_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE | FI_TRIGGER)

static int flags_check(uint64_t flags)
{
	if (flags & FI_TAGGED) { /* a tagged receive as the target */
		return -FI_EOPNOTSUPP;
	}
	return flags & ~(uint64_t)MSG_FLAGS ? -FI_EBADFLAGS : 0;
}

static ssize_t post_msg(struct wfi_ep *ep, uint32_t mode, const struct fi_msg_atomic *msg,
			const struct fi_msg_fetch *fetch,
			const struct fi_msg_compare *compare, uint64_t flags)
{
	struct wfi_atomic_call c;
	int ret = flags_check(flags);

	if (!ret) {
		ret = wfi_atomic_of_msg(&c, mode, msg, fetch, compare,
					wfi_ep_tx_bits(ep, flags));
	}
	return ret ? ret : post(ep, &c.a, msg->addr);
}

/* ---- without result */

static ssize_t base(struct wfi_ep *ep, const struct fi_ioc *ioc, size_t count,
		    fi_addr_t target, uint64_t addr, uint64_t key, enum fi_datatype type,
		    enum fi_op op, void *context, uint32_t bits)
{
	struct wfi_atomic_call c;
	int ret = call_begin(&c, ATOMIC_BASE, type, op, context, bits);

	if (!ret) {
		ret = call_operands(&c, ioc, count);
	}
	return ret ? ret : call_post(ep, &c, target, addr, key);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key,
			    enum fi_datatype type, enum fi_op op, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);
	struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};

	(void)desc;
	return base(ep, &ioc, 1, dest, addr, key, type, op, context, ep->tx_bits);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *ioc, void **desc,
			     size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op, void *context)
{
	struct wfi_ep *ep = wfi_ep_of_ep(fid);

	(void)desc;
	return base(ep, ioc, count, dest, addr, key, type, op, context, ep->tx_bits);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			       uint64_t flags)
{
	return post_msg(wfi_ep_of_ep(fid), ATOMIC_BASE, msg, NULL, NULL, flags);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count,
			     fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op)
{
	struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};

	return base(wfi_ep_of_ep(fid), &ioc, 1, dest, addr, key, type, op, NULL,
		    PROTO_INJECT);
}

/* ---- with a result */

static ssize_t fetch(struct wfi_ep *ep, const struct fi_ioc *ioc, size_t count,
		     const struct fi_ioc *resultv, size_t result_count, fi_addr_t target,
		     uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op,
		     void *context)
{
	struct wfi_atomic_call c;
	int ret = call_begin(&c, ATOMIC_FETCH, type, op, context, ep->tx_bits);

	if (!ret) {
		ret = call_result(&c, resultv, result_count);
	}
	if (!ret) {
		ret = call_operands(&c, ioc, count);
	}
	return ret ? ret : call_post(ep, &c, target, addr, key);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count,
				void *desc, void *result, void *result_desc,
				fi_addr_t dest, uint64_t addr, uint64_t key,
				enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc ioc = {(void *)(uintptr_t)buf, count};
	struct fi_ioc to = {result, count};

	(void)desc;
	(void)result_desc;
	return fetch(wfi_ep_of_ep(fid), &ioc, 1, &to, 1, dest, addr, key, type, op,
		     context);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *ioc,
				 void **desc, size_t count, struct fi_ioc *resultv,
				 void **result_desc, size_t result_count, fi_addr_t dest,
				 uint64_t addr, uint64_t key, enum fi_datatype type,
				 enum fi_op op, void *context)
{
	(void)desc;
	(void)result_desc;
	return fetch(wfi_ep_of_ep(fid), ioc, count, resultv, result_count, dest, addr,
		     key, type, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	struct fi_msg_fetch fetch = {resultv, result_desc, result_count};

	return post_msg(wfi_ep_of_ep(fid), ATOMIC_FETCH, msg, &fetch, NULL, flags);
}

/* ---- with a comparison */

struct compare_lists {
	const struct fi_ioc *iov, *compare, *result;
	size_t count, compare_count, result_count;
};

static int call_lists(struct wfi_atomic_call *c, const struct compare_lists *l)
{
	int ret = call_operands(c, l->iov, l->count);

	if (!ret) {
		ret = call_compare(c, l->compare, l->compare_count);
	}
	return ret ? ret : call_result(c, l->result, l->result_count);
}

static ssize_t compare(struct wfi_ep *ep, const struct compare_lists *l, fi_addr_t target,
		       uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op,
		       void *context)
{
	struct wfi_atomic_call c;
	int ret = call_begin(&c, ATOMIC_COMPARE, type, op, context, ep->tx_bits);

	if (!ret) {
		ret = call_lists(&c, l);
	}
	return ret ? ret : call_post(ep, &c, target, addr, key);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count,
				void *desc, const void *cmp, void *compare_desc,
				void *result, void *result_desc, fi_addr_t dest,
				uint64_t addr, uint64_t key, enum fi_datatype type,
				enum fi_op op, void *context)
{
	struct fi_ioc ioc[3] = {{(void *)(uintptr_t)buf, count},
				{(void *)(uintptr_t)cmp, count},
				{result, count}};
	struct compare_lists l = {&ioc[0], &ioc[1], &ioc[2], 1, 1, 1};

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return compare(wfi_ep_of_ep(fid), &l, dest, addr, key, type, op, context);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *ioc,
				 void **desc, size_t count, const struct fi_ioc *comparev,
				 void **compare_desc, size_t compare_count,
				 struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest, uint64_t addr,
				 uint64_t key, enum fi_datatype type, enum fi_op op,
				 void *context)
{
	struct compare_lists l = {ioc,	 comparev,	resultv,
				  count, compare_count, result_count};

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return compare(wfi_ep_of_ep(fid), &l, dest, addr, key, type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv,
				   void **result_desc, size_t result_count,
				   uint64_t flags)
{
	struct fi_msg_fetch fetch = {resultv, result_desc, result_count};
	struct fi_msg_compare cmp = {comparev, compare_desc, compare_count};

	return post_msg(wfi_ep_of_ep(fid), ATOMIC_COMPARE, msg, &fetch, &cmp, flags);
}

/* ---- what there is */

static int valid(struct fid_ep *fid, uint32_t mode, enum fi_datatype type, enum fi_op op,
		 size_t *count)
{
	uint64_t need = mode == ATOMIC_BASE ? FI_WRITE : FI_READ;

	if (!count) {
		return -FI_EINVAL;
	}
	if (!(wfi_ep_of_ep(fid)->atomic_caps & need)) {
		return -FI_EOPNOTSUPP;
	}
	return wfi_ep_of_ep(fid)->domain->native
		       ? wfi_atomic_native(mode, type, op, count)
		       : wfi_atomic_valid(mode, type, op, count);
}

static int atomic_writevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
			     size_t *count)
{
	return valid(ep, ATOMIC_BASE, type, op, count);
}

static int atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
				 size_t *count)
{
	return valid(ep, ATOMIC_FETCH, type, op, count);
}

static int atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op,
				 size_t *count)
{
	return valid(ep, ATOMIC_COMPARE, type, op, count);
}

struct fi_ops_atomic wfi_ep_ops_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};
