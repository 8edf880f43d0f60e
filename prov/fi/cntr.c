/* SPDX-License-Identifier: BSD-2-Clause */
/* Counter; see cntr.h. */
#include "config.h"

#include "prov/fi/cntr.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/fi/domain.h"
#include "prov/fi/import.h"
#include "prov/fi/nosys.h"
#include "prov/fi/progress.h"
#include "prov/fi/wait.h"
#include "prov/fi/work.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

struct wfi_cntr {
	struct fid_cntr fid; /* first: libfabric casts */
	struct wfi_domain *domain;
	uint64_t value;
	uint64_t errors;
	/* As last read by the application: what fi_trywait compares with. */
	uint64_t value_seen;
	uint64_t errors_seen;
	/* As fi_poll last told them; moves with what the application sets and adds. */
	uint64_t value_polled;
	uint64_t errors_polled;
	struct list works; /* wait for a threshold: work.c */
	/* Whose counter this stands for (import.h); NULL: it is one itself. The owner is
	 * then what waits, always, as the only thing on works; value and errors are what
	 * it was not told yet. */
	struct fid_peer_cntr *owner;
	struct list owner_node;
	struct wfi_wait wait;
	enum fi_wait_obj wait_obj;
};

static struct wfi_cntr *cntr_cast(struct fid_cntr *fid)
{
	return (struct wfi_cntr *)fid;
}

struct list *wfi_cntr_works(struct wfi_cntr *cntr)
{
	return &cntr->works;
}

uint64_t wfi_cntr_sum(const struct wfi_cntr *cntr)
{
	return cntr->value + cntr->errors;
}

LOCK_HELD(lock_domain)
static __attribute__((noinline)) void cntr_tell_works(struct wfi_cntr *cntr)
{
	if (!cntr->owner) {
		wfi_work_reached(cntr->domain, &cntr->works, wfi_cntr_sum(cntr));
		return;
	}
	for (; cntr->value; cntr->value--)
		wfi_import_inc(cntr->owner);
	for (; cntr->errors; cntr->errors--)
		wfi_import_inc_error(cntr->owner);
}

/* It has other values: whoever waits for that is told. */
LOCK_HELD(lock_domain) static inline void cntr_tell(struct wfi_cntr *cntr)
{
	wfi_wait_signal(&cntr->wait);
	if (__builtin_expect(!list_empty(&cntr->works), 0))
		cntr_tell_works(cntr);
}

void wfi_cntr_inc(struct wfi_cntr *cntr)
{
	if (!cntr)
		return;
	cntr->value++;
	cntr_tell(cntr);
}

void wfi_cntr_add(struct wfi_cntr *cntr, uint64_t count)
{
	if (!cntr)
		return;
	cntr->value += count;
	cntr_tell(cntr);
}

void wfi_cntr_inc_error(struct wfi_cntr *cntr)
{
	if (!cntr)
		return;
	cntr->errors++;
	cntr_tell(cntr);
}

void wfi_cntr_change(struct wfi_cntr *cntr, bool set, uint64_t value)
{
	uint64_t keep = set ? 0 : UINT64_MAX;

	cntr->value = (cntr->value & keep) + value;
	cntr->value_polled = (cntr->value_polled & keep) + value;
	cntr_tell(cntr);
}

int wfi_cntr_attach(struct wfi_cntr *cntr, struct wfi_pollable *p)
{
	int rc = wfi_progress_attach(cntr->domain->progress, p);

	if (rc)
		return rc;
	rc = wfi_wait_attach(&cntr->wait, p);
	if (rc)
		wfi_progress_detach(cntr->domain->progress, p);
	return rc;
}

void wfi_cntr_detach(struct wfi_cntr *cntr, struct wfi_pollable *p)
{
	wfi_wait_detach(&cntr->wait, p);
	wfi_progress_detach(cntr->domain->progress, p);
}

struct wfi_cntr *wfi_cntr_of(struct fid *fid)
{
	return fid && fid->fclass == FI_CLASS_CNTR ? (struct wfi_cntr *)fid : NULL;
}

struct wfi_cntr *wfi_cntr_with_value(struct fid *fid)
{
	struct wfi_cntr *cntr = wfi_cntr_of(fid);

	return cntr && !cntr->owner ? cntr : NULL;
}

struct wfi_domain *wfi_cntr_domain(struct wfi_cntr *cntr)
{
	return cntr->domain;
}

void wfi_cntr_hold(struct wfi_cntr *cntr, bool on)
{
	cntr->wait.holders += on ? 1 : -1u;
}

bool wfi_cntr_poll(struct wfi_cntr *cntr)
{
	bool changed;

	wfi_wait_progress(&cntr->wait);
	changed =
		cntr->value != cntr->value_polled || cntr->errors != cntr->errors_polled;
	cntr->value_polled = cntr->value;
	cntr->errors_polled = cntr->errors;
	return changed;
}

/* What waits for others may be ready although no endpoint is attached here. */
LOCK_HELD(lock_domain) static void cntr_progress(struct wfi_cntr *cntr)
{
	wfi_wait_progress(&cntr->wait);
	wfi_work_run(cntr->domain);
}

/* ---- calls
 * ----------------------------------------------------------------------------- */

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct wfi_cntr *cntr = cntr_cast(fid);
	uint64_t value;
	bool same;

	wfi_domain_lock(cntr->domain);
	wfi_wait_disarm(&cntr->wait);
	cntr_progress(cntr);
	value = cntr->value;
	same = value == cntr->value_seen;
	cntr->value_seen = value;
	wfi_domain_unlock(cntr->domain);
	if (same)
		wfi_wait_idle(&cntr->wait);
	return value;
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct wfi_cntr *cntr = cntr_cast(fid);
	uint64_t errors;

	wfi_domain_lock(cntr->domain);
	wfi_wait_disarm(&cntr->wait);
	cntr_progress(cntr);
	errors = cntr->errors_seen = cntr->errors;
	wfi_domain_unlock(cntr->domain);
	return errors;
}

static int cntr_change(struct fid_cntr *fid, bool set, uint64_t value)
{
	struct wfi_cntr *cntr = cntr_cast(fid);

	wfi_domain_lock(cntr->domain);
	wfi_cntr_change(cntr, set, value);
	wfi_work_run(cntr->domain);
	wfi_domain_unlock(cntr->domain);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, false, value);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change(fid, true, value);
}

static int cntr_change_errors(struct fid_cntr *fid, uint64_t keep, uint64_t value)
{
	struct wfi_cntr *cntr = cntr_cast(fid);

	wfi_domain_lock(cntr->domain);
	/* Setting it back is no error; what comes after it is. */
	if (!keep && cntr->errors_seen > value)
		cntr->errors_seen = value;
	cntr->errors = (cntr->errors & keep) + value;
	cntr->errors_polled = (cntr->errors_polled & keep) + value;
	cntr_tell(cntr);
	wfi_work_run(cntr->domain);
	wfi_domain_unlock(cntr->domain);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change_errors(fid, UINT64_MAX, value);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	return cntr_change_errors(fid, 0, value);
}

/* An error that the application was not told of ends a wait, also one from before the
 * call: nobody knows in which order the two came. It is told once. */
static int cntr_reached(struct wfi_cntr *cntr, uint64_t threshold)
{
	if (cntr->value >= threshold)
		return 0;
	if (cntr->errors <= cntr->errors_seen)
		return -FI_EAGAIN;
	cntr->errors_seen = cntr->errors;
	return -FI_EAVAIL;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct wfi_cntr *cntr = cntr_cast(fid);
	struct wfi_blocking b = {.deadline = wfi_deadline(timeout)};
	int rc;

	wfi_domain_lock(cntr->domain);
	wfi_wait_disarm(&cntr->wait);
	for (;;) {
		if (cntr->value < threshold)
			cntr_progress(cntr);
		rc = cntr_reached(cntr, threshold);
		if (rc != -FI_EAGAIN)
			break;
		/* A signal handler does not end a wait for a count. */
		rc = wfi_block(&cntr->wait, &b);
		if (rc == -FI_ETIMEDOUT)
			break;
	}
	cntr->value_seen = cntr->value;
	wfi_domain_unlock(cntr->domain);
	return rc;
}

/* Something changed that the application was not told of. */
LOCK_HELD(lock_domain) static bool cntr_news(struct wfi_cntr *cntr)
{
	if (cntr->value == cntr->value_seen && cntr->errors == cntr->errors_seen)
		return false;
	cntr->value_seen = cntr->value;
	cntr->errors_seen = cntr->errors;
	wfi_wait_disarm(&cntr->wait);
	return true;
}

int wfi_cntr_try(struct wfi_cntr *cntr)
{
	int rc;

	wfi_domain_lock(cntr->domain);
	rc = wfi_wait_try(&cntr->wait);
	if (!rc && cntr_news(cntr))
		rc = -FI_EAGAIN;
	wfi_domain_unlock(cntr->domain);
	return rc;
}

static int cntr_watch(void *owner)
{
	struct wfi_cntr *cntr = owner;
	int rc;

	wfi_domain_lock(cntr->domain);
	rc = wfi_wait_watch(&cntr->wait);
	if (cntr_news(cntr))
		rc = 1;
	wfi_domain_unlock(cntr->domain);
	return rc;
}

static void cntr_unwatch(void *owner)
{
	struct wfi_cntr *cntr = owner;

	wfi_domain_lock(cntr->domain);
	wfi_wait_disarm(&cntr->wait);
	wfi_domain_unlock(cntr->domain);
}

static const struct wfi_member_ops cntr_member_ops = {
	.watch = cntr_watch,
	.unwatch = cntr_unwatch,
};

/* ---- life
 * ------------------------------------------------------------------------------ */

static void cntr_end_wait(struct wfi_cntr *cntr)
{
	wfi_wait_leave_set(&cntr->wait);
	wfi_domain_lock(cntr->domain);
	wfi_wait_fini(&cntr->wait);
	wfi_domain_unlock(cntr->domain);
}

static int cntr_close(struct fid *fid)
{
	struct wfi_cntr *cntr = (struct wfi_cntr *)fid;
	bool busy;

	if (wfi_domain_is_inherited(cntr->domain))
		return 0;
	wfi_domain_lock(cntr->domain);
	busy = wfi_wait_is_busy(&cntr->wait);
	wfi_domain_unlock(cntr->domain);
	if (busy) {
		FI_INFO(&weft_provider, FI_LOG_CNTR,
			"close: endpoints are still bound to this counter, it is in a "
			"poll set, or somebody waits\n");
		return -FI_EBUSY;
	}
	cntr_end_wait(cntr);
	wfi_domain_put(cntr->domain);
	free(cntr);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct wfi_cntr *cntr = (struct wfi_cntr *)fid;

	/* Counters have no flags for operations: none are said, and none can be set. */
	if (command == FI_GETOPSFLAG || command == FI_SETOPSFLAG) {
		if (!arg)
			return -FI_EINVAL;
		if (command == FI_SETOPSFLAG)
			return *(const uint64_t *)arg ? -FI_EBADFLAGS : 0;
		*(uint64_t *)arg = 0;
		return 0;
	}
	return wfi_wait_control(&cntr->wait, cntr->wait_obj, command, arg);
}

static struct fi_ops cntr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = wfi_no_bind,
	.control = cntr_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

/* ---- one that stands for its owner's: reading it is progress, and nothing else */

static uint64_t import_read(struct fid_cntr *fid)
{
	struct wfi_cntr *cntr = cntr_cast(fid);

	wfi_domain_lock(cntr->domain);
	wfi_wait_disarm(&cntr->wait);
	cntr_progress(cntr);
	wfi_domain_unlock(cntr->domain);
	return 0;
}

static int import_change(struct fid_cntr *fid, uint64_t value)
{
	(void)fid;
	(void)value;
	return -FI_ENOSYS;
}

static int import_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	(void)fid;
	(void)threshold;
	(void)timeout;
	return -FI_ENOSYS;
}

static struct fi_ops_cntr import_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = import_read,
	.readerr = import_read,
	.add = import_change,
	.set = import_change,
	.wait = import_wait,
	.adderr = import_change,
	.seterr = import_change,
};

static int cntr_check(const struct wfi_domain *d, const struct fi_cntr_attr *attr)
{
	if (attr->flags & ~FI_PEER)
		return -FI_EBADFLAGS;
	if (attr->events != FI_CNTR_EVENTS_COMP) {
		FI_INFO(&weft_provider, FI_LOG_CNTR,
			"events %d: only completions are counted (FI_CNTR_EVENTS_COMP)\n",
			attr->events);
		return -FI_ENOSYS;
	}
	return wfi_wait_obj_check(d->fabric, attr->wait_obj, attr->wait_set);
}

int wfi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		  struct fid_cntr **fid, void *context)
{
	static const struct fi_cntr_attr usual = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_peer_cntr *owner = NULL;
	struct wfi_cntr *cntr;
	int rc;

	if (!attr)
		attr = (struct fi_cntr_attr *)&usual;
	rc = cntr_check(wfi_domain_of(domain), attr);
	if (!rc && (attr->flags & FI_PEER))
		rc = wfi_import_cntr(context, &owner);
	if (rc)
		return rc;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->domain = wfi_domain_of(domain);
	list_init(&cntr->works);
	list_init(&cntr->owner_node);
	cntr->owner = owner;
	if (owner)
		list_push_back(&cntr->works, &cntr->owner_node);
	wfi_wait_init(&cntr->wait, cntr->domain);
	cntr->wait_obj = attr->wait_obj;
	cntr->wait.yields = attr->wait_obj == FI_WAIT_YIELD;
	if (attr->wait_obj == FI_WAIT_SET)
		rc = wfi_wait_enter_set(&cntr->wait, attr->wait_set, &cntr_member_ops,
					cntr);
	if (rc) {
		cntr_end_wait(cntr);
		free(cntr);
		return rc;
	}
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &cntr_fi_ops;
	cntr->fid.ops = owner ? &import_ops : &cntr_ops;
	wfi_domain_get(cntr->domain);
	*fid = &cntr->fid;
	return 0;
}
