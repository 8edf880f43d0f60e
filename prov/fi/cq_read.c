/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queue: what the application calls. The formats of libfabric are prefixes of
 * one another and of struct wfi_cq_entry, so that conversion is a copy of a constant
 * size: each format has a table of calls of its own.
 */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/fi/cq_int.h"
#include "prov/fi/fabric.h"
#include "prov/fi/newer.h"

_Static_assert(offsetof(struct wfi_cq_entry, op_context) ==
		       offsetof(struct fi_cq_tagged_entry, op_context),
	       "prefix");
_Static_assert(offsetof(struct wfi_cq_entry, flags) ==
		       offsetof(struct fi_cq_tagged_entry, flags),
	       "prefix");
_Static_assert(offsetof(struct wfi_cq_entry, len) ==
		       offsetof(struct fi_cq_tagged_entry, len),
	       "prefix");
_Static_assert(offsetof(struct wfi_cq_entry, buf) ==
		       offsetof(struct fi_cq_tagged_entry, buf),
	       "prefix");
_Static_assert(offsetof(struct wfi_cq_entry, data) ==
		       offsetof(struct fi_cq_tagged_entry, data),
	       "prefix");
_Static_assert(offsetof(struct wfi_cq_entry, tag) ==
		       offsetof(struct fi_cq_tagged_entry, tag),
	       "prefix");
_Static_assert(offsetof(struct fi_cq_data_entry, data) ==
		       offsetof(struct fi_cq_tagged_entry, data),
	       "prefix");
_Static_assert(offsetof(struct fi_cq_msg_entry, len) ==
		       offsetof(struct fi_cq_tagged_entry, len),
	       "prefix");

/* Entries that are read until a read progresses although there are more. */
#define CQ_SIMPLE 64

#define NOINLINE __attribute__((noinline))

static inline struct wfi_cq *cq_cast(struct fid_cq *fid)
{
	return (struct wfi_cq *)fid;
}

static inline struct wfi_cq_fault *cq_first_fault(const struct wfi_cq *cq)
{
	return container_of(cq->errors.next, struct wfi_cq_fault, node);
}

/* Nothing to take at the head: why. */
static __attribute__((noinline)) ssize_t cq_empty(struct wfi_cq *cq)
{
	if (!list_empty(&cq->errors) && cq_first_fault(cq)->position == cq->head)
		return -FI_EAVAIL;
	return cq->overrun ? -FI_EOVERRUN : -FI_EAGAIN;
}

/* Lock held. Entries before the first error. */
LOCK_HELD(lock_domain)
static ssize_t cq_take(struct wfi_cq *cq, char *buf, size_t count, fi_addr_t *src,
		       size_t entry_size)
{
	uint64_t n = cq->tail - cq->head;

	if (__builtin_expect(!list_empty(&cq->errors), 0))
		n = cq_first_fault(cq)->position - cq->head;
	if (!n)
		return cq_empty(cq);
	if (n > count)
		n = count;
	for (uint64_t i = 0; i < n; i++) {
		const struct wfi_cq_entry *entry = &cq->ring[(cq->head + i) & cq->mask];

		memcpy(buf + i * entry_size, entry, entry_size);
		if (src)
			src[i] = entry->src;
	}
	cq->head += n;
	return (ssize_t)n;
}

/* Somebody sleeps on the descriptor, or there are more endpoints than one, or none. */
LOCK_HELD(lock_domain) static NOINLINE void cq_progress_any(struct wfi_cq *cq)
{
	wfi_wait_disarm(&cq->wait);
	wfi_wait_progress_rows(&cq->wait);
}

/* Errors are in the way. */
static NOINLINE uint64_t cq_simple_end(const struct wfi_cq *cq)
{
	uint64_t end = cq->head + CQ_SIMPLE;
	uint64_t fault = cq_first_fault(cq)->position;

	return fault < end ? fault : end;
}

/* Before a read that isn't simple. */
LOCK_HELD(lock_domain) static inline void cq_refill(struct wfi_cq *cq)
{
	struct wfi_pollable *p;

	if (__builtin_expect(cq->wait.armed || cq->wait.row_count != 1 ||
				     !list_empty(&cq->domain->sleeping),
			     0)) {
		cq_progress_any(cq);
	} else {
		p = cq->wait.rows[0].p;
		p->ops->progress(p);
	}
	cq->simple = __builtin_expect(list_empty(&cq->errors), 1) ? cq->head + CQ_SIMPLE
								  : cq_simple_end(cq);
}

/* Lock held. Progresses when there is nothing to give, and when nothing is wanted: a read
 * of count 0 is how applications ask for progress. */
LOCK_HELD(lock_domain)
static ssize_t cq_read_any(struct wfi_cq *cq, void *buf, size_t count, fi_addr_t *src,
			   size_t entry_size)
{
	if (cq->head == cq->tail || count > cq->simple - cq->head || !count)
		cq_refill(cq);
	return cq_take(cq, buf, count, src, entry_size);
}

/*
 * Entries that are there, straight from the ring; 0: something else is to be done. Every
 * now and then that is progress (cq->simple), so that one who reads one entry at a time
 * and never finds the queue empty holds up nobody.
 */
static inline __attribute__((always_inline)) uint64_t cq_read_ready(struct wfi_cq *cq,
								    char *buf,
								    size_t count,
								    size_t entry_size)
{
	uint64_t head = cq->head, n = cq->tail - head;

	if (__builtin_expect(count == 1, 1)) {
		if (__builtin_expect(!n || head == cq->simple, 0))
			return 0;
		memcpy(buf, &cq->ring[head & cq->mask], entry_size);
		cq->head = head + 1;
		return 1;
	}
	if (n > count)
		n = count;
	if (!n || __builtin_expect(n > cq->simple - head, 0))
		return 0;
	cq->head = head + n;
	for (uint64_t end = head + n; head != end; head++, buf += entry_size)
		memcpy(buf, &cq->ring[head & cq->mask], entry_size);
	return n;
}

/* Nothing ready after progress either: errors, very many entries, or nothing. */
LOCK_UNSEEN static NOINLINE ssize_t cq_read_last(struct wfi_cq *cq, void *buf,
						 size_t count, size_t entry_size,
						 bool lock)
{
	ssize_t rc = -FI_EAGAIN;

	if (cq->head != cq->tail || !list_empty(&cq->errors) || cq->overrun)
		rc = cq_take(cq, buf, count, NULL, entry_size);
	if (lock)
		wfi_domain_unlock(cq->domain);
	if (rc == -FI_EAGAIN)
		wfi_wait_idle(&cq->wait);
	return rc;
}

/* A read that found nothing ready. Takes the lock back with it. */
LOCK_UNSEEN static inline __attribute__((always_inline)) ssize_t cq_read_more(
	struct wfi_cq *cq, void *buf, size_t count, size_t entry_size, bool lock)
{
	ssize_t rc;

	cq_refill(cq);
	rc = (ssize_t)cq_read_ready(cq, buf, count, entry_size);
	if (__builtin_expect(!rc, 0) && !lock && cq->head == cq->tail &&
	    list_empty(&cq->errors) && !cq->overrun) {
		wfi_wait_idle(&cq->wait);
		return -FI_EAGAIN;
	}
	if (__builtin_expect(!rc, 0))
		return cq_read_last(cq, buf, count, entry_size, lock);
	if (lock)
		wfi_domain_unlock(cq->domain);
	return rc;
}

static ssize_t cq_readfrom_as(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
			      size_t entry_size)
{
	struct wfi_cq *cq = cq_cast(fid);
	ssize_t rc;

	wfi_domain_lock(cq->domain);
	rc = cq_read_any(cq, buf, count, src, entry_size);
	wfi_domain_unlock(cq->domain);
	if (rc == -FI_EAGAIN)
		wfi_wait_idle(&cq->wait);
	return rc;
}

static ssize_t cq_sread_as(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
			   int timeout, size_t entry_size)
{
	struct wfi_cq *cq = cq_cast(fid);
	struct wfi_blocking b = {.deadline = wfi_deadline(timeout)};
	ssize_t rc;

	wfi_domain_lock(cq->domain);
	for (;;) {
		rc = cq_read_any(cq, buf, count, src, entry_size);
		if (rc != -FI_EAGAIN || wfi_block(&cq->wait, &b))
			break;
	}
	wfi_domain_unlock(cq->domain);
	return rc;
}

/* ---- one set of calls for each format -------------------------------------------- */

#define CQ_CALL(call) call##_context
#define CQ_ENTRY      struct fi_cq_entry
#include "prov/fi/cq_read_template.h"

#define CQ_CALL(call) call##_msg
#define CQ_ENTRY      struct fi_cq_msg_entry
#include "prov/fi/cq_read_template.h"

#define CQ_CALL(call) call##_data
#define CQ_ENTRY      struct fi_cq_data_entry
#include "prov/fi/cq_read_template.h"

#define CQ_CALL(call) call##_tagged
#define CQ_ENTRY      struct fi_cq_tagged_entry
#include "prov/fi/cq_read_template.h"
#include "util/lock_note.h"

/* ---- errors
 * ---------------------------------------------------------------------------- */

/*
 * Only what the application's version of the entry has is written: before 1.5 it ended
 * before err_data_size, from 1.20 it goes on with src_addr. No error here comes with
 * data: an application that gave room for some learns that it has 0 bytes.
 */
static void fault_copy(const struct wfi_cq *cq, const struct wfi_cq_fault *fault,
		       struct fi_cq_err_entry *out)
{
	const struct wfi_cq_error *error = &fault->error;
	uint32_t api = cq->domain->api_version;
	bool copied = api >= FI_VERSION(1, 5) && out->err_data_size;

	out->op_context = error->entry.op_context;
	out->flags = error->entry.flags;
	out->len = error->entry.len;
	out->buf = error->entry.buf;
	out->data = error->entry.data;
	out->tag = error->entry.tag;
	out->olen = error->olen;
	out->err = error->err;
	out->prov_errno = error->prov_errno;
	if (!copied)
		out->err_data = NULL;
	if (api >= FI_VERSION(1, 5))
		out->err_data_size = 0;
	if (api >= FI_VERSION(1, 20))
		newer_err_src_set(out, error->entry.src);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out, uint64_t flags)
{
	struct wfi_cq *cq = cq_cast(fid);
	struct wfi_cq_fault *fault = NULL;

	(void)flags;
	wfi_domain_lock(cq->domain);
	if (!list_empty(&cq->errors) && cq_first_fault(cq)->position == cq->head) {
		fault = cq_first_fault(cq);
		list_remove(&fault->node);
		cq->fault_errno = fault->error.prov_errno;
		snprintf(cq->fault_text, sizeof(cq->fault_text), "%s",
			 fault->error.text ? fault->error.text : "");
	}
	wfi_domain_unlock(cq->domain);
	if (!fault)
		return -FI_EAGAIN;
	fault_copy(cq, fault, out);
	free(fault);
	return 1;
}

/* Of the error that was read last, while its number is asked for: more than that. Without
 * room of the caller's it is good until the next is read. */
static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data,
			       char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno < 0 ? -prov_errno : prov_errno);
	struct wfi_cq *cq = cq_cast(fid);

	(void)err_data;
	wfi_domain_lock(cq->domain);
	if (cq->fault_text[0] && cq->fault_errno == prov_errno)
		text = cq->fault_text;
	if (buf && len) {
		snprintf(buf, len, "%s", text);
		text = buf;
	}
	wfi_domain_unlock(cq->domain);
	return text;
}

static int cq_signal(struct fid_cq *fid)
{
	wfi_wait_interrupt(&cq_cast(fid)->wait);
	return 0;
}

static bool cq_has_any(const struct wfi_cq *cq)
{
	return cq->head != cq->tail || !list_empty(&cq->errors) || cq->overrun;
}

int wfi_cq_try(struct wfi_cq *cq)
{
	int rc;

	wfi_domain_lock(cq->domain);
	rc = wfi_wait_try(&cq->wait);
	if (!rc && cq_has_any(cq)) {
		wfi_wait_disarm(&cq->wait);
		rc = -FI_EAGAIN;
	}
	wfi_domain_unlock(cq->domain);
	return rc;
}

static int cq_watch(void *owner)
{
	struct wfi_cq *cq = owner;
	int rc;

	wfi_domain_lock(cq->domain);
	rc = wfi_wait_watch(&cq->wait);
	if (cq_has_any(cq) || wfi_wait_interrupted(&cq->wait)) {
		wfi_wait_disarm(&cq->wait);
		rc = 1;
	}
	wfi_domain_unlock(cq->domain);
	return rc;
}

static void cq_unwatch(void *owner)
{
	struct wfi_cq *cq = owner;

	wfi_domain_lock(cq->domain);
	wfi_wait_disarm(&cq->wait);
	wfi_domain_unlock(cq->domain);
}

const struct wfi_member_ops wfi_cq_member_ops = {
	.watch = cq_watch,
	.unwatch = cq_unwatch,
};

bool wfi_cq_poll(struct wfi_cq *cq)
{
	wfi_wait_progress(&cq->wait);
	return cq_has_any(cq);
}

/* By lock needed, by format. */
static struct fi_ops_cq cq_ops[2][FI_CQ_FORMAT_TAGGED + 1] = {
	{
		[FI_CQ_FORMAT_CONTEXT] =
			{
				.size = sizeof(struct fi_ops_cq),
				.read = read_bare_context,
				.readfrom = readfrom_context,
				.readerr = cq_readerr,
				.sread = sread_context,
				.sreadfrom = sreadfrom_context,
				.signal = cq_signal,
				.strerror = cq_strerror,
			},
		[FI_CQ_FORMAT_MSG] =
			{
				.size = sizeof(struct fi_ops_cq),
				.read = read_bare_msg,
				.readfrom = readfrom_msg,
				.readerr = cq_readerr,
				.sread = sread_msg,
				.sreadfrom = sreadfrom_msg,
				.signal = cq_signal,
				.strerror = cq_strerror,
			},
		[FI_CQ_FORMAT_DATA] =
			{
				.size = sizeof(struct fi_ops_cq),
				.read = read_bare_data,
				.readfrom = readfrom_data,
				.readerr = cq_readerr,
				.sread = sread_data,
				.sreadfrom = sreadfrom_data,
				.signal = cq_signal,
				.strerror = cq_strerror,
			},
		[FI_CQ_FORMAT_TAGGED] =
			{
				.size = sizeof(struct fi_ops_cq),
				.read = read_bare_tagged,
				.readfrom = readfrom_tagged,
				.readerr = cq_readerr,
				.sread = sread_tagged,
				.sreadfrom = sreadfrom_tagged,
				.signal = cq_signal,
				.strerror = cq_strerror,
			},
	},
	{
		[FI_CQ_FORMAT_CONTEXT] =
			{
				.size = sizeof(struct fi_ops_cq),
				.read = read_context,
				.readfrom = readfrom_context,
				.readerr = cq_readerr,
				.sread = sread_context,
				.sreadfrom = sreadfrom_context,
				.signal = cq_signal,
				.strerror = cq_strerror,
			},
		[FI_CQ_FORMAT_MSG] =
			{
				.size = sizeof(struct fi_ops_cq),
				.read = read_msg,
				.readfrom = readfrom_msg,
				.readerr = cq_readerr,
				.sread = sread_msg,
				.sreadfrom = sreadfrom_msg,
				.signal = cq_signal,
				.strerror = cq_strerror,
			},
		[FI_CQ_FORMAT_DATA] =
			{
				.size = sizeof(struct fi_ops_cq),
				.read = read_data,
				.readfrom = readfrom_data,
				.readerr = cq_readerr,
				.sread = sread_data,
				.sreadfrom = sreadfrom_data,
				.signal = cq_signal,
				.strerror = cq_strerror,
			},
		[FI_CQ_FORMAT_TAGGED] =
			{
				.size = sizeof(struct fi_ops_cq),
				.read = read_tagged,
				.readfrom = readfrom_tagged,
				.readerr = cq_readerr,
				.sread = sread_tagged,
				.sreadfrom = sreadfrom_tagged,
				.signal = cq_signal,
				.strerror = cq_strerror,
			},
	},
};

struct fi_ops_cq *wfi_cq_ops(enum fi_cq_format format, bool lock)
{
	return &cq_ops[lock][format];
}

/* ---- a queue that stands for its owner's: reading it is progress, and nothing else
 * ---------- */

static ssize_t import_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct wfi_cq *cq = cq_cast(fid);
	int moved;

	if (buf || count)
		return -FI_ENOSYS;
	wfi_domain_lock(cq->domain);
	wfi_cq_offer(cq);
	wfi_wait_disarm(&cq->wait);
	moved = wfi_wait_progress_rows(&cq->wait);
	wfi_domain_unlock(cq->domain);
	if (!moved)
		wfi_wait_idle(&cq->wait);
	return 0;
}

static ssize_t import_readfrom(struct fid_cq *fid, void *buf, size_t count,
			       fi_addr_t *src)
{
	(void)src;
	return import_read(fid, buf, count);
}

static ssize_t import_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out,
			      uint64_t flags)
{
	(void)fid;
	(void)out;
	(void)flags;
	return -FI_ENOSYS;
}

static ssize_t import_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
				fi_addr_t *src, const void *cond, int timeout)
{
	(void)fid;
	(void)buf;
	(void)count;
	(void)src;
	(void)cond;
	(void)timeout;
	return -FI_ENOSYS;
}

static ssize_t import_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond,
			    int timeout)
{
	return import_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int import_signal(struct fid_cq *fid)
{
	(void)fid;
	return -FI_ENOSYS;
}

struct fi_ops_cq wfi_cq_import_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = import_read,
	.readfrom = import_readfrom,
	.readerr = import_readerr,
	.sread = import_sread,
	.sreadfrom = import_sreadfrom,
	.signal = import_signal,
	.strerror = cq_strerror,
};
