/* SPDX-License-Identifier: BSD-2-Clause */
/* Wait set; see wait_set.h. */
#include "config.h"

#include "prov/fi/wait_set.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/fi/fabric.h"
#include "prov/fi/nosys.h"
#include "prov/fi/wait.h"
#include "prov/mem/params.h"
#include "util/list.h"

struct wfi_member {
	struct list node; /* wfi_wait_set.members */
	struct wfi_wait_set *set;
	const struct wfi_member_ops *ops;
	void *owner;
	int fd;
	bool tells;
};

struct wfi_wait_set {
	struct fid_wait fid; /* first: libfabric casts */
	struct wfi_fabric *fabric;
	enum fi_wait_obj wait_obj;
	int epfd;
	struct wfi_cond *cond; /* FI_WAIT_MUTEX_COND; else NULL */
	pthread_mutex_t lock;
	struct list members; /* guarded by lock, as is all below */
	uint32_t silent;     /* of them: those that tell no condition */
	bool given;	     /* the application has the condition */
};

/* ---- members
 * --------------------------------------------------------------------------- */

static int set_add(struct wfi_wait_set *set, struct wfi_member *m)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (set->given && !m->tells) {
		FI_WARN(&weft_provider, FI_LOG_FABRIC,
			"wait set: its condition is in use, and a queue of a domain with "
			"manual progress could not tell it; ask for FI_PROGRESS_AUTO\n");
		return -FI_EOPNOTSUPP;
	}
	if (epoll_ctl(set->epfd, EPOLL_CTL_ADD, m->fd, &ev))
		return -errno;
	list_push_back(&set->members, &m->node);
	set->silent += !m->tells;
	return 0;
}

int wfi_member_open(struct wfi_wait_set *set, int fd, bool tells,
		    const struct wfi_member_ops *ops, void *owner,
		    struct wfi_member **out)
{
	struct wfi_member *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -FI_ENOMEM;
	*m = (struct wfi_member){
		.set = set, .ops = ops, .owner = owner, .fd = fd, .tells = tells};
	pthread_mutex_lock(&set->lock);
	rc = set_add(set, m);
	pthread_mutex_unlock(&set->lock);
	if (rc) {
		free(m);
		return rc;
	}
	*out = m;
	return 0;
}

void wfi_member_close(struct wfi_member *m)
{
	struct wfi_wait_set *set;

	if (!m)
		return;
	set = m->set;
	pthread_mutex_lock(&set->lock);
	epoll_ctl(set->epfd, EPOLL_CTL_DEL, m->fd, NULL);
	list_remove(&m->node);
	set->silent -= !m->tells;
	pthread_mutex_unlock(&set->lock);
	free(m);
}

/* 1: some member has something; 0: all are safe to sleep on; -FI_EAGAIN; an error. */
static int set_watch(struct wfi_wait_set *set)
{
	int all = 0;

	pthread_mutex_lock(&set->lock);
	list_foreach (n, &set->members) {
		struct wfi_member *m = container_of(n, struct wfi_member, node);
		int rc = m->ops->watch(m->owner);

		if (rc) {
			all = rc;
			if (rc != -FI_EAGAIN)
				break;
		}
	}
	pthread_mutex_unlock(&set->lock);
	return all;
}

static void set_unwatch(struct wfi_wait_set *set)
{
	pthread_mutex_lock(&set->lock);
	list_foreach (n, &set->members) {
		struct wfi_member *m = container_of(n, struct wfi_member, node);

		m->ops->unwatch(m->owner);
	}
	pthread_mutex_unlock(&set->lock);
}

/* ---- waiting
 * --------------------------------------------------------------------------- */

int wfi_wait_set_try(struct wfi_wait_set *set)
{
	int rc = set_watch(set);

	return rc > 0 ? -FI_EAGAIN : rc;
}

/* Until something may have happened. */
static int set_sleep(struct wfi_wait_set *set, uint64_t deadline)
{
	if (set->wait_obj == FI_WAIT_YIELD) {
		sched_yield();
		return 0;
	}
	return wfi_sleep_on(set->epfd, deadline);
}

static int set_wait(struct fid_wait *fid, int timeout)
{
	struct wfi_wait_set *set = (struct wfi_wait_set *)fid;
	uint64_t deadline = wfi_deadline(timeout);
	int rc;

	for (;;) {
		rc = set_watch(set);
		if (rc && rc != -FI_EAGAIN)
			break;
		if (wfi_now_ns() >= deadline) {
			rc = -FI_ETIMEDOUT;
			break;
		}
		if (rc) {
			sched_yield();
			continue;
		}
		rc = set_sleep(set, deadline);
		if (rc)
			break;
	}
	set_unwatch(set);
	return rc > 0 ? 0 : rc;
}

/* ---- what is under it
 * ------------------------------------------------------------------ */

struct wfi_cond *wfi_wait_set_cond(struct wfi_wait_set *set)
{
	return set->cond;
}

static int set_give_cond(struct wfi_wait_set *set, void *arg)
{
	int rc = 0;

	pthread_mutex_lock(&set->lock);
	if (set->silent)
		rc = -FI_EOPNOTSUPP;
	else
		set->given = true;
	pthread_mutex_unlock(&set->lock);
	if (!rc)
		wfi_cond_give(set->cond, arg);
	else
		FI_WARN(&weft_provider, FI_LOG_FABRIC,
			"wait set: %u queues are of domains with manual progress, where "
			"nothing would arrive while the application sleeps on the "
			"condition; ask for FI_PROGRESS_AUTO, or wait by fi_wait\n",
			set->silent);
	return rc;
}

static int set_getwait(struct wfi_wait_set *set, void *arg)
{
	switch (set->wait_obj) {
	case FI_WAIT_FD:
		*(int *)arg = set->epfd;
		return 0;
	case FI_WAIT_POLLFD:
		return wfi_pollfd_give(set->epfd, arg);
	case FI_WAIT_MUTEX_COND:
		return set_give_cond(set, arg);
	default:
		return -FI_ENODATA;
	}
}

static int set_control_on(struct wfi_wait_set *set, int command, void *arg)
{
	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	switch (command) {
	case FI_GETWAIT:
		return set_getwait(set, arg);
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = set->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static int set_control(struct fid *fid, int command, void *arg)
{
	return set_control_on((struct wfi_wait_set *)fid, command, arg);
}

int wfi_member_control(struct wfi_member *m, int command, void *arg)
{
	return set_control_on(m->set, command, arg);
}

/* ---- life
 * ------------------------------------------------------------------------------ */

static int set_close(struct fid *fid)
{
	struct wfi_wait_set *set = (struct wfi_wait_set *)fid;
	bool busy;

	if (wfi_fabric_is_inherited(set->fabric))
		return 0;
	pthread_mutex_lock(&set->lock);
	busy = !list_empty(&set->members);
	pthread_mutex_unlock(&set->lock);
	if (busy) {
		FI_INFO(&weft_provider, FI_LOG_FABRIC,
			"close: queues or counters still use this wait set\n");
		return -FI_EBUSY;
	}
	close(set->epfd);
	wfi_cond_close(set->cond);
	pthread_mutex_destroy(&set->lock);
	atomic_fetch_sub(&set->fabric->refs, 1);
	free(set);
	return 0;
}

static struct fi_ops set_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = set_close,
	.bind = wfi_no_bind,
	.control = set_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

static struct fi_ops_wait set_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = set_wait,
};

struct wfi_wait_set *wfi_wait_set_of(struct fid_wait *fid,
				     const struct wfi_fabric *fabric)
{
	struct wfi_wait_set *set = (struct wfi_wait_set *)fid;

	/* A hook in front of it makes it somebody else's. */
	if (!fid || fid->fid.fclass != FI_CLASS_WAIT || fid->ops != &set_ops ||
	    set->fabric != fabric)
		return NULL;
	return set;
}

static int set_init(struct wfi_wait_set *set)
{
	set->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (set->epfd < 0)
		return -errno;
	if (set->wait_obj == FI_WAIT_MUTEX_COND) {
		set->cond = wfi_cond_open(NULL);
		if (!set->cond) {
			close(set->epfd);
			return -FI_ENOMEM;
		}
	}
	pthread_mutex_init(&set->lock, NULL);
	list_init(&set->members);
	return 0;
}

int wfi_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		      struct fid_wait **fid)
{
	enum fi_wait_obj wait_obj = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct wfi_wait_set *set;
	int rc;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	if (wait_obj == FI_WAIT_NONE || wait_obj == FI_WAIT_SET)
		return -FI_EINVAL;
	if (!wfi_wait_obj_good(wait_obj))
		return -FI_ENOSYS;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->wait_obj = wait_obj;
	rc = set_init(set);
	if (rc) {
		free(set);
		return rc;
	}
	set->fabric = wfi_fabric_of(fabric);
	atomic_fetch_add(&set->fabric->refs, 1);
	set->fid.fid.fclass = FI_CLASS_WAIT;
	set->fid.fid.ops = &set_fi_ops;
	set->fid.ops = &set_ops;
	*fid = &set->fid;
	return 0;
}
