/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reading calls of one completion format, included by cq_read.c for each of them:
 * CQ_CALL(name) makes their names, CQ_ENTRY is the entry. With a size that the compiler
 * knows a conversion is a few moves, and nothing of the format is asked per entry.
 * "bare": where the threading level spares the lock.
 */

LOCK_GIVE(lock_domain)
static NOINLINE ssize_t CQ_CALL(more)(struct wfi_cq *cq, void *buf, size_t count)
{
	return cq_read_more(cq, buf, count, sizeof(CQ_ENTRY), true);
}

static ssize_t CQ_CALL(read)(struct fid_cq *fid, void *buf, size_t count)
{
	struct wfi_cq *cq = cq_cast(fid);
	uint64_t n;

	wfi_domain_lock(cq->domain);
	n = cq_read_ready(cq, buf, count, sizeof(CQ_ENTRY));
	if (__builtin_expect(!n, 0))
		return CQ_CALL(more)(cq, buf, count);
	wfi_domain_unlock(cq->domain);
	return (ssize_t)n;
}

static NOINLINE ssize_t CQ_CALL(more_bare)(struct wfi_cq *cq, void *buf, size_t count)
{
	return cq_read_more(cq, buf, count, sizeof(CQ_ENTRY), false);
}

static ssize_t CQ_CALL(read_bare)(struct fid_cq *fid, void *buf, size_t count)
{
	struct wfi_cq *cq = cq_cast(fid);
	uint64_t n = cq_read_ready(cq, buf, count, sizeof(CQ_ENTRY));

	if (__builtin_expect(!n, 0))
		return CQ_CALL(more_bare)(cq, buf, count);
	return (ssize_t)n;
}

static ssize_t CQ_CALL(readfrom)(struct fid_cq *cq, void *buf, size_t count,
				 fi_addr_t *src)
{
	return cq_readfrom_as(cq, buf, count, src, sizeof(CQ_ENTRY));
}

static ssize_t CQ_CALL(sreadfrom)(struct fid_cq *cq, void *buf, size_t count,
				  fi_addr_t *src, const void *cond, int timeout)
{
	(void)cond;
	return cq_sread_as(cq, buf, count, src, timeout, sizeof(CQ_ENTRY));
}

static ssize_t CQ_CALL(sread)(struct fid_cq *cq, void *buf, size_t count,
			      const void *cond, int timeout)
{
	return CQ_CALL(sreadfrom)(cq, buf, count, NULL, cond, timeout);
}

#undef CQ_CALL
#undef CQ_ENTRY
