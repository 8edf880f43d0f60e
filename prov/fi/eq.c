/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queue; see eq.h. Its descriptor is readable exactly while it is not empty. */
#include "config.h"

#include "prov/fi/eq.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/fi/fabric.h"
#include "prov/fi/nosys.h"
#include "prov/fi/wait.h"
#include "prov/fi/wait_cond.h"
#include "prov/mem/params.h"
#include "util/list.h"

/* An event is small: what is larger is a mistake of the writer. */
#define EVENT_SIZE_MAX 4096

struct event {
	struct list node;
	uint32_t event;
	bool is_error;
	struct fi_eq_err_entry error;
	size_t len;
	char data[];
};

struct wfi_eq {
	struct fid_eq fid; /* first: libfabric casts */
	struct wfi_fabric *fabric;
	atomic_int refs;
	enum fi_wait_obj wait_obj;
	int fd; /* -1: nobody can sleep on it */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct wfi_cond *given;	   /* FI_WAIT_MUTEX_COND, also of a set; else NULL */
	struct wfi_member *member; /* FI_WAIT_SET; else NULL */
	struct list events;	   /* guarded by lock */
};

static struct wfi_eq *eq_cast(struct fid_eq *fid)
{
	return (struct wfi_eq *)fid;
}

void wfi_eq_get(struct wfi_eq *eq)
{
	atomic_fetch_add(&eq->refs, 1);
}

void wfi_eq_put(struct wfi_eq *eq)
{
	atomic_fetch_sub(&eq->refs, 1);
}

/* ---- writing
 * --------------------------------------------------------------------------- */

static void eq_append(struct wfi_eq *eq, struct event *ev)
{
	uint64_t one = 1;
	bool first;

	pthread_mutex_lock(&eq->lock);
	first = list_empty(&eq->events);
	list_push_back(&eq->events, &ev->node);
	if (first && eq->fd >= 0 && write(eq->fd, &one, sizeof(one)) < 0 &&
	    errno != EAGAIN)
		FI_WARN(&weft_provider, FI_LOG_EQ, "writing an eventfd: %s\n",
			strerror(errno));
	pthread_cond_broadcast(&eq->cond);
	pthread_mutex_unlock(&eq->lock);
	/* Not under the lock: the application may read while it holds its mutex. */
	if (eq->given)
		wfi_cond_tell(eq->given);
}

static struct event *event_alloc(const void *buf, size_t len)
{
	struct event *ev = calloc(1, sizeof(*ev) + len);

	if (!ev) {
		FI_WARN(&weft_provider, FI_LOG_EQ,
			"no memory for an event of %zu bytes: it is lost\n", len);
		return NULL;
	}
	list_init(&ev->node);
	ev->len = len;
	if (len)
		memcpy(ev->data, buf, len);
	return ev;
}

int wfi_eq_report(struct wfi_eq *eq, uint32_t event, const void *buf, size_t len)
{
	struct event *ev = event_alloc(buf, len);

	if (!ev)
		return -FI_ENOMEM;
	ev->event = event;
	eq_append(eq, ev);
	return 0;
}

int wfi_eq_hold_error(struct list *held, const struct fi_eq_err_entry *error)
{
	struct event *ev = event_alloc(NULL, 0);

	if (!ev)
		return -FI_ENOMEM;
	ev->is_error = true;
	ev->error = *error;
	list_push_back(held, &ev->node);
	return 0;
}

void wfi_eq_release(struct wfi_eq *eq, struct list *held)
{
	struct list *node;

	while ((node = list_pop_front(held)))
		eq_append(eq, container_of(node, struct event, node));
}

int wfi_eq_report_error(struct wfi_eq *eq, const struct fi_eq_err_entry *error)
{
	struct list held;
	int rc;

	list_init(&held);
	rc = wfi_eq_hold_error(&held, error);
	wfi_eq_release(eq, &held);
	return rc;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			uint64_t flags)
{
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	if (len > EVENT_SIZE_MAX || (len && !buf))
		return -FI_EINVAL;
	rc = wfi_eq_report(eq_cast(fid), event, buf, len);
	return rc ? rc : (ssize_t)len;
}

/* ---- reading
 * --------------------------------------------------------------------------- */

static struct event *eq_first(struct wfi_eq *eq)
{
	if (list_empty(&eq->events))
		return NULL;
	return container_of(eq->events.next, struct event, node);
}

static void eq_drop_first(struct wfi_eq *eq)
{
	struct event *ev = eq_first(eq);
	uint64_t n;

	list_remove(&ev->node);
	free(ev);
	if (list_empty(&eq->events) && eq->fd >= 0 && read(eq->fd, &n, sizeof(n)) < 0 &&
	    errno != EAGAIN)
		FI_WARN(&weft_provider, FI_LOG_EQ, "reading an eventfd: %s\n",
			strerror(errno));
}

static ssize_t eq_take(struct wfi_eq *eq, uint32_t *event, void *buf, size_t len,
		       uint64_t flags)
{
	struct event *ev = eq_first(eq);
	ssize_t size;

	if (!ev)
		return -FI_EAGAIN;
	if (ev->is_error)
		return -FI_EAVAIL;
	if (len < ev->len)
		return -FI_ETOOSMALL;
	size = (ssize_t)ev->len;
	if (event)
		*event = ev->event;
	if (ev->len)
		memcpy(buf, ev->data, ev->len);
	if (!(flags & FI_PEEK))
		eq_drop_first(eq);
	return size;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
		       uint64_t flags)
{
	struct wfi_eq *eq = eq_cast(fid);
	ssize_t rc;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&eq->lock);
	rc = eq_take(eq, event, buf, len, flags);
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			int timeout, uint64_t flags)
{
	struct wfi_eq *eq = eq_cast(fid);
	uint64_t deadline = wfi_deadline(timeout);
	struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000ull),
				 .tv_nsec = (long)(deadline % 1000000000ull)};
	ssize_t rc;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&eq->lock);
	while ((rc = eq_take(eq, event, buf, len, flags)) == -FI_EAGAIN) {
		if (eq->wait_obj == FI_WAIT_YIELD) {
			if (wfi_now_ns() >= deadline)
				break;
			pthread_mutex_unlock(&eq->lock);
			sched_yield();
			pthread_mutex_lock(&eq->lock);
		} else if (deadline == UINT64_MAX)
			pthread_cond_wait(&eq->cond, &eq->lock);
		else if (pthread_cond_timedwait(&eq->cond, &eq->lock, &until))
			break;
	}
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct wfi_eq *eq = eq_cast(fid);
	size_t size = sizeof(*buf);
	ssize_t rc = -FI_EAGAIN;
	struct event *ev;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	/* Before 1.5 the entry ended before err_data_size, which says how much room
	 * err_data has. No error here comes with data. */
	if (eq->fabric->fid.api_version < FI_VERSION(1, 5))
		size = offsetof(struct fi_eq_err_entry, err_data_size);
	pthread_mutex_lock(&eq->lock);
	ev = eq_first(eq);
	if (ev && ev->is_error) {
		void *room = buf->err_data;
		bool owned = size == sizeof(*buf) && buf->err_data_size;

		memcpy(buf, &ev->error, size);
		if (owned)
			buf->err_data = room;
		if (!(flags & FI_PEEK))
			eq_drop_first(eq);
		rc = (ssize_t)sizeof(*buf);
	}
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data,
			       char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno < 0 ? -prov_errno : prov_errno);

	(void)fid;
	(void)err_data;
	if (buf && len) {
		snprintf(buf, len, "%s", text);
		return buf;
	}
	return text;
}

struct wfi_fabric *wfi_eq_fabric(struct wfi_eq *eq)
{
	return eq->fabric;
}

int wfi_eq_try(struct wfi_eq *eq)
{
	bool empty;

	pthread_mutex_lock(&eq->lock);
	empty = list_empty(&eq->events);
	pthread_mutex_unlock(&eq->lock);
	return empty ? 0 : -FI_EAGAIN;
}

static int eq_watch(void *owner)
{
	return wfi_eq_try(owner) ? 1 : 0;
}

static void eq_unwatch(void *owner)
{
	(void)owner; /* its descriptor says what there is, whoever looks */
}

static const struct wfi_member_ops eq_member_ops = {
	.watch = eq_watch,
	.unwatch = eq_unwatch,
};

/* ---- life
 * ------------------------------------------------------------------------------ */

/* Takes back whatever eq_init made. */
static void eq_fini(struct wfi_eq *eq)
{
	wfi_member_close(eq->member);
	if (eq->fd >= 0)
		close(eq->fd);
	wfi_cond_close(eq->given);
}

static int eq_close(struct fid *fid)
{
	struct wfi_eq *eq = (struct wfi_eq *)fid;

	if (wfi_fabric_is_inherited(eq->fabric))
		return 0;
	if (atomic_load(&eq->refs)) {
		FI_INFO(&weft_provider, FI_LOG_EQ,
			"close: %d objects are still bound to this event queue\n",
			atomic_load(&eq->refs));
		return -FI_EBUSY;
	}
	while (eq_first(eq))
		eq_drop_first(eq);
	eq_fini(eq);
	pthread_cond_destroy(&eq->cond);
	pthread_mutex_destroy(&eq->lock);
	atomic_fetch_sub(&eq->fabric->refs, 1);
	free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct wfi_eq *eq = (struct wfi_eq *)fid;

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (eq->member)
		return wfi_member_control(eq->member, command, arg);
	switch (command) {
	case FI_GETWAIT:
		if (eq->wait_obj == FI_WAIT_POLLFD)
			return wfi_pollfd_give(eq->fd, arg);
		if (eq->given)
			wfi_cond_give(eq->given, arg);
		else if (eq->wait_obj == FI_WAIT_FD)
			*(int *)arg = eq->fd;
		else
			return -FI_ENODATA;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = wfi_no_bind,
	.control = eq_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

struct wfi_eq *wfi_eq_of(struct fid *fid)
{
	return fid && fid->fclass == FI_CLASS_EQ ? (struct wfi_eq *)fid : NULL;
}

static int eq_init_wait(struct wfi_eq *eq, struct wfi_wait_set *set)
{
	struct wfi_cond *cond = set ? wfi_wait_set_cond(set) : NULL;

	if (set || eq->wait_obj == FI_WAIT_FD || eq->wait_obj == FI_WAIT_POLLFD) {
		eq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (eq->fd < 0)
			return -errno;
	}
	if (cond || eq->wait_obj == FI_WAIT_MUTEX_COND) {
		eq->given = wfi_cond_open(cond);
		if (!eq->given)
			return -FI_ENOMEM;
	}
	/* Its writers tell the condition themselves. */
	return set ? wfi_member_open(set, eq->fd, true, &eq_member_ops, eq, &eq->member)
		   : 0;
}

static int eq_init(struct wfi_eq *eq, struct wfi_wait_set *set)
{
	pthread_condattr_t attr;
	int rc;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(&eq->cond, &attr);
	pthread_condattr_destroy(&attr);
	if (rc)
		return -rc;
	pthread_mutex_init(&eq->lock, NULL);
	rc = eq_init_wait(eq, set);
	if (rc) {
		eq_fini(eq);
		pthread_mutex_destroy(&eq->lock);
		pthread_cond_destroy(&eq->cond);
	}
	return rc;
}

static int eq_check(const struct wfi_fabric *fabric, const struct fi_eq_attr *attr)
{
	/* FI_AFFINITY (a vector for interrupts) is a hint, and there are none. */
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EBADFLAGS;
	return wfi_wait_obj_check(fabric, attr->wait_obj, attr->wait_set);
}

int wfi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **fid,
		void *context)
{
	static const struct fi_eq_attr usual = {.wait_obj = FI_WAIT_UNSPEC};
	struct wfi_fabric *f = wfi_fabric_of(fabric);
	struct wfi_eq *eq;
	int rc;

	if (!attr)
		attr = (struct fi_eq_attr *)&usual;
	rc = eq_check(f, attr);
	if (rc)
		return rc;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fd = -1;
	eq->fabric = f;
	eq->wait_obj = attr->wait_obj;
	list_init(&eq->events);
	rc = eq_init(eq, attr->wait_obj == FI_WAIT_SET
				 ? wfi_wait_set_of(attr->wait_set, f)
				 : NULL);
	if (rc) {
		free(eq);
		return rc;
	}
	atomic_fetch_add(&f->refs, 1);
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fi_ops;
	eq->fid.ops = &eq_ops;
	*fid = &eq->fid;
	return 0;
}
