/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll set; see poll_set.h. Its members can't be closed while they are in it. */
#include "config.h"

#include "prov/fi/poll_set.h"

#include <stdbool.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/fi/cntr.h"
#include "prov/fi/cq.h"
#include "prov/fi/domain.h"
#include "prov/fi/eq.h"
#include "prov/fi/nosys.h"
#include "prov/fi/wait.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

struct wfi_poll {
	struct fid_poll fid; /* first: libfabric casts */
	struct wfi_domain *domain;
	struct fid **members; /* guarded by the domain's lock, as all that follows */
	uint32_t count;
	uint32_t room;
	uint32_t first;	      /* whom the next look begins with */
	struct wfi_wait idle; /* only counts looks that found nothing */
};

/* What a class of members can do. Domain lock held. */
struct member_ops {
	size_t fclass;
	bool (*is_ours)(struct fid *fid, const struct wfi_domain *d);
	bool (*poll)(struct fid *fid);
	void (*hold)(struct fid *fid, bool on);
};

static bool cq_is_ours(struct fid *fid, const struct wfi_domain *d)
{
	return wfi_cq_domain(wfi_cq_of(fid)) == d;
}

LOCK_HELD(lock_domain) static bool cq_poll(struct fid *fid)
{
	return wfi_cq_poll(wfi_cq_of(fid));
}

LOCK_HELD(lock_domain) static void cq_hold(struct fid *fid, bool on)
{
	wfi_cq_hold(wfi_cq_of(fid), on);
}

static bool cntr_is_ours(struct fid *fid, const struct wfi_domain *d)
{
	return wfi_cntr_domain(wfi_cntr_of(fid)) == d;
}

LOCK_HELD(lock_domain) static bool cntr_poll(struct fid *fid)
{
	return wfi_cntr_poll(wfi_cntr_of(fid));
}

LOCK_HELD(lock_domain) static void cntr_hold(struct fid *fid, bool on)
{
	wfi_cntr_hold(wfi_cntr_of(fid), on);
}

static bool eq_is_ours(struct fid *fid, const struct wfi_domain *d)
{
	return wfi_eq_fabric(wfi_eq_of(fid)) == d->fabric;
}

static bool eq_poll(struct fid *fid)
{
	return wfi_eq_try(wfi_eq_of(fid)) != 0;
}

static void eq_hold(struct fid *fid, bool on)
{
	if (on)
		wfi_eq_get(wfi_eq_of(fid));
	else
		wfi_eq_put(wfi_eq_of(fid));
}

static const struct member_ops member_ops[] = {
	{FI_CLASS_CQ, cq_is_ours, cq_poll, cq_hold},
	{FI_CLASS_CNTR, cntr_is_ours, cntr_poll, cntr_hold},
	{FI_CLASS_EQ, eq_is_ours, eq_poll, eq_hold},
};

static const struct member_ops *member_ops_of(const struct fid *fid)
{
	for (size_t i = 0; i < sizeof(member_ops) / sizeof(member_ops[0]); i++) {
		if (member_ops[i].fclass == fid->fclass)
			return &member_ops[i];
	}
	return NULL;
}

/* count: not there. */
static uint32_t member_find(const struct wfi_poll *set, const struct fid *fid)
{
	uint32_t i = 0;

	while (i < set->count && set->members[i] != fid)
		i++;
	return i;
}

/* ---- calls
 * ----------------------------------------------------------------------------- */

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct wfi_poll *set = (struct wfi_poll *)fid;
	uint32_t i = 0;
	int found = 0;

	if (count < 0 || (count && !context))
		return -FI_EINVAL;
	wfi_domain_lock(set->domain);
	for (; i < set->count && (found < count || !count); i++) {
		struct fid *member = set->members[(set->first + i) % set->count];

		if (member_ops_of(member)->poll(member) && count)
			context[found++] = member->context;
	}
	/* Whoever found no place any more comes first the next time. */
	if (set->count)
		set->first = (set->first + i) % set->count;
	wfi_domain_unlock(set->domain);
	if (!found)
		wfi_wait_idle(&set->idle);
	return found;
}

static int member_add(struct wfi_poll *set, struct fid *member,
		      const struct member_ops *ops)
{
	if (!ops->is_ours(member, set->domain))
		return -FI_EINVAL;
	if (member_find(set, member) < set->count)
		return 0;
	if (set->count == set->room) {
		uint32_t room = set->room ? set->room * 2 : 8;
		void *members = realloc(set->members, room * sizeof(*set->members));

		if (!members)
			return -FI_ENOMEM;
		set->members = members;
		set->room = room;
	}
	ops->hold(member, true);
	set->members[set->count++] = member;
	return 0;
}

static int poll_add(struct fid_poll *fid, struct fid *member, uint64_t flags)
{
	struct wfi_poll *set = (struct wfi_poll *)fid;
	const struct member_ops *ops = member ? member_ops_of(member) : NULL;
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	if (!ops) {
		FI_INFO(&weft_provider, FI_LOG_DOMAIN,
			"fi_poll_add: only queues and counters\n");
		return -FI_EINVAL;
	}
	wfi_domain_lock(set->domain);
	rc = member_add(set, member, ops);
	wfi_domain_unlock(set->domain);
	return rc;
}

static int poll_del(struct fid_poll *fid, struct fid *member, uint64_t flags)
{
	struct wfi_poll *set = (struct wfi_poll *)fid;
	uint32_t at;
	int rc = -FI_EINVAL;

	if (flags)
		return -FI_EBADFLAGS;
	wfi_domain_lock(set->domain);
	at = member_find(set, member);
	if (at < set->count) {
		member_ops_of(member)->hold(member, false);
		set->members[at] = set->members[--set->count];
		set->first = 0;
		rc = 0;
	}
	wfi_domain_unlock(set->domain);
	return rc;
}

/* ---- life
 * ------------------------------------------------------------------------------ */

static int poll_close(struct fid *fid)
{
	struct wfi_poll *set = (struct wfi_poll *)fid;

	if (wfi_domain_is_inherited(set->domain))
		return 0;
	wfi_domain_lock(set->domain);
	for (uint32_t i = 0; i < set->count; i++)
		member_ops_of(set->members[i])->hold(set->members[i], false);
	wfi_domain_unlock(set->domain);
	wfi_domain_put(set->domain);
	wfi_wait_fini(&set->idle);
	free(set->members);
	free(set);
	return 0;
}

static struct fi_ops poll_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = wfi_no_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int wfi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		  struct fid_poll **fid)
{
	struct wfi_poll *set;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->domain = wfi_domain_of(domain);
	wfi_wait_init(&set->idle, set->domain);
	set->fid.fid.fclass = FI_CLASS_POLL;
	set->fid.fid.ops = &poll_fi_ops;
	set->fid.ops = &poll_ops;
	wfi_domain_get(set->domain);
	*fid = &set->fid;
	return 0;
}
