/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queue: opening, closing, writing; see cq.h. Reading is in cq_read.c. */
#include "config.h"

#include "prov/fi/cq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/fi/cq_int.h"
#include "prov/fi/import.h"
#include "prov/fi/limits.h"
#include "prov/fi/nosys.h"
#include "prov/fi/progress.h"
#include "prov/mem/params.h"

#define RING_ROOM_FIRST 64
/* More is asked for by mistake. */
#define CQ_SIZE_MAX (1ull << 30)

/* ---- writing
 * --------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) bool cq_grow(struct wfi_cq *cq)
{
	uint64_t room = cq->room ? cq->room * 2 : RING_ROOM_FIRST;
	struct wfi_cq_entry *ring;

	_Static_assert(sizeof(*ring) == 64, "a cache line");
	ring = room < CQ_SIZE_MAX * 2 ? aligned_alloc(64, room * sizeof(*ring)) : NULL;
	if (!ring) {
		if (!cq->overrun)
			FI_WARN(&weft_provider, FI_LOG_CQ,
				"no memory to hold %llu completions: some are lost; read "
				"the "
				"queue more often\n",
				(unsigned long long)room);
		cq->overrun = true;
		return false;
	}
	for (uint64_t i = cq->head; i != cq->tail; i++)
		ring[i & (room - 1)] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->room = room;
	cq->mask = room - 1;
	cq->calm = room < cq->size ? room : cq->size;
	return true;
}

LOCK_HELD(lock_domain)
static inline void cq_put(struct wfi_cq *cq, const struct wfi_cq_entry *entry)
{
	cq->ring[cq->tail & cq->mask] = *entry;
	wfi_cq_push(cq);
}

static struct wfi_cq_fault *fault_alloc(struct wfi_cq *cq,
					const struct wfi_cq_error *error)
{
	struct wfi_cq_fault *fault = malloc(sizeof(*fault));

	if (fault) {
		fault->error = *error;
		if (error->text) {
			snprintf(fault->text, sizeof(fault->text), "%s", error->text);
			fault->error.text = fault->text;
		}
		return fault;
	}
	FI_WARN(&weft_provider, FI_LOG_CQ,
		"no memory for a completion (%s): it is lost\n", fi_strerror(error->err));
	cq->overrun = true;
	return NULL;
}

static bool owner_takes(struct wfi_cq *cq, const struct wfi_cq_error *error)
{
	return error->err ? wfi_import_write_error(cq->owner, error)
			  : wfi_import_write(cq->owner, &error->entry);
}

/* Of a queue that stands for another: in order, and nothing is lost. */
LOCK_HELD(lock_domain)
static void owner_write(struct wfi_cq *cq, const struct wfi_cq_error *error)
{
	struct wfi_cq_fault *fault;

	if (!list_empty(&cq->held) || !owner_takes(cq, error)) {
		fault = fault_alloc(cq, error);
		if (!fault)
			return;
		list_push_back(&cq->held, &fault->node);
		cq->size = 0;
	}
	wfi_wait_signal(&cq->wait);
}

void wfi_cq_offer(struct wfi_cq *cq)
{
	while (!list_empty(&cq->held)) {
		struct wfi_cq_fault *fault =
			container_of(cq->held.next, struct wfi_cq_fault, node);

		if (!owner_takes(cq, &fault->error))
			return;
		list_remove(&fault->node);
		free(fault);
	}
	cq->size = UINT64_MAX;
}

/* There is no room. */
LOCK_HELD(lock_domain)
static __attribute__((noinline)) void cq_write_slow(struct wfi_cq *cq,
						    const struct wfi_cq_entry *entry)
{
	if (cq->owner) {
		const struct wfi_cq_error e = {.entry = *entry};

		owner_write(cq, &e);
	} else if (cq_grow(cq)) {
		cq_put(cq, entry);
	}
}

void wfi_cq_write(struct wfi_cq *cq, const struct wfi_cq_entry *entry)
{
	if (wfi_cq_has_room(cq))
		cq_put(cq, entry);
	else
		cq_write_slow(cq, entry);
}

void wfi_cq_write_error(struct wfi_cq *cq, const struct wfi_cq_error *error)
{
	struct wfi_cq_fault *fault;

	if (cq->owner) {
		owner_write(cq, error);
		return;
	}
	fault = fault_alloc(cq, error);
	if (!fault)
		return;
	fault->position = cq->tail;
	if (cq->simple > cq->tail)
		cq->simple = cq->tail;
	list_push_back(&cq->errors, &fault->node);
	wfi_wait_signal(&cq->wait);
}

bool wfi_cq_full(const struct wfi_cq *cq)
{
	return cq->tail - cq->head >= cq->size;
}

/* ---- who is attached
 * ------------------------------------------------------------------- */

int wfi_cq_attach(struct wfi_cq *cq, struct wfi_pollable *p)
{
	int rc = wfi_progress_attach(cq->domain->progress, p);

	if (rc)
		return rc;
	rc = wfi_wait_attach(&cq->wait, p);
	if (rc)
		wfi_progress_detach(cq->domain->progress, p);
	return rc;
}

void wfi_cq_detach(struct wfi_cq *cq, struct wfi_pollable *p)
{
	wfi_wait_detach(&cq->wait, p);
	wfi_progress_detach(cq->domain->progress, p);
}

struct wfi_cq *wfi_cq_of(struct fid *fid)
{
	return fid && fid->fclass == FI_CLASS_CQ ? (struct wfi_cq *)fid : NULL;
}

struct wfi_domain *wfi_cq_domain(struct wfi_cq *cq)
{
	return cq->domain;
}

void wfi_cq_hold(struct wfi_cq *cq, bool on)
{
	cq->wait.holders += on ? 1 : -1u;
}

/* ---- life
 * ------------------------------------------------------------------------------ */

static void cq_end_wait(struct wfi_cq *cq)
{
	wfi_wait_leave_set(&cq->wait);
	wfi_domain_lock(cq->domain);
	wfi_wait_fini(&cq->wait);
	wfi_domain_unlock(cq->domain);
}

static int cq_close(struct fid *fid)
{
	struct wfi_cq *cq = (struct wfi_cq *)fid;
	struct list *node;
	bool busy;

	if (wfi_domain_is_inherited(cq->domain))
		return 0;
	wfi_domain_lock(cq->domain);
	busy = wfi_wait_is_busy(&cq->wait);
	wfi_domain_unlock(cq->domain);
	if (busy) {
		FI_INFO(&weft_provider, FI_LOG_CQ,
			"close: endpoints are still bound to this queue, it is in a poll "
			"set, or somebody waits\n");
		return -FI_EBUSY;
	}
	cq_end_wait(cq);
	while ((node = list_pop_front(&cq->errors)) || (node = list_pop_front(&cq->held)))
		free(container_of(node, struct wfi_cq_fault, node));
	free(cq->ring);
	wfi_domain_put(cq->domain);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct wfi_cq *cq = (struct wfi_cq *)fid;

	return wfi_wait_control(&cq->wait, cq->wait_obj, command, arg);
}

static struct fi_ops cq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = wfi_no_bind,
	.control = cq_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

static int cq_check(const struct wfi_domain *d, const struct fi_cq_attr *attr)
{
	/* FI_AFFINITY (a vector for interrupts) is a hint, and there are none. */
	if (attr->flags & ~(FI_AFFINITY | FI_PEER))
		return -FI_EBADFLAGS;
	if (attr->format > FI_CQ_FORMAT_TAGGED || attr->size > CQ_SIZE_MAX)
		return -FI_EINVAL;
	/* FI_CQ_COND_THRESHOLD is a hint: one entry wakes the reader. */
	return wfi_wait_obj_check(d->fabric, attr->wait_obj, attr->wait_set);
}

int wfi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **fid,
		void *context)
{
	static const struct fi_cq_attr usual = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_peer_cq *owner = NULL;
	struct wfi_cq *cq;
	int rc;

	if (!attr)
		attr = (struct fi_cq_attr *)&usual;
	rc = cq_check(wfi_domain_of(domain), attr);
	if (!rc && (attr->flags & FI_PEER))
		rc = wfi_import_cq(context, &owner);
	if (rc)
		return rc;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->domain = wfi_domain_of(domain);
	list_init(&cq->errors);
	list_init(&cq->held);
	cq->owner = owner;
	wfi_wait_init(&cq->wait, cq->domain);
	cq->size = attr->size ? attr->size : WFI_TX_SIZE + WFI_RX_SIZE;
	if (owner)
		cq->size = UINT64_MAX;
	cq->format = attr->format ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->wait_obj = attr->wait_obj;
	cq->wait.yields = attr->wait_obj == FI_WAIT_YIELD;
	if (attr->wait_obj == FI_WAIT_SET)
		rc = wfi_wait_enter_set(&cq->wait, attr->wait_set, &wfi_cq_member_ops,
					cq);
	if (rc) {
		cq_end_wait(cq);
		free(cq);
		return rc;
	}
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fi_ops;
	cq->fid.ops = owner ? &wfi_cq_import_ops
			    : wfi_cq_ops(cq->format, cq->domain->lock_needed);
	wfi_domain_get(cq->domain);
	*fid = &cq->fid;
	return 0;
}
