/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping on descriptors; the rules are in wait.h. */
#include "config.h"

#include "prov/fi/wait.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/fi/progress.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* How long a blocking call polls before it sleeps: about what a sleep and its wake-up
 * cost. */
#define SPIN_NS 20000ull

/* A pollable that has work each time it is asked is progressed this often before its
 * sleepers are woken to do it themselves. */
#define REARM_TRIES 8

/* The pause where no descriptor can be had, or where a pollable refuses to be armed
 * although it makes no progress. */
#define PAUSE_NS 200000ull

/* Until a close gives up waiting for a condition to be told. */
#define PIN_NS NS_PER_S

/* Reads that found nothing until the processor is offered to others: few where others
 * took it the last time, many where nobody wanted it. */
#define IDLE_LIMIT_MIN	 16u
#define IDLE_LIMIT_FIRST 64u
#define IDLE_LIMIT_MAX	 1024u
/* A yield that took longer let somebody else run. */
#define YIELD_TAKEN_NS 5000ull

uint64_t wfi_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t wfi_deadline(int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return wfi_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
}

static void pause_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / NS_PER_S),
			      .tv_nsec = (long)(ns % NS_PER_S)};

	nanosleep(&ts, NULL);
}

void wfi_wait_init(struct wfi_wait *w, struct wfi_domain *domain)
{
	memset(w, 0, sizeof(*w));
	w->domain = domain;
	list_init(&w->node);
	w->epfd = -1;
	w->evfd = -1;
	w->tmfd = -1;
	atomic_init(&w->interrupts, 0);
	atomic_init(&w->idle, 0);
	atomic_init(&w->idle_limit, IDLE_LIMIT_FIRST);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void wfi_wait_fini(struct wfi_wait *w)
{
	list_remove(&w->node);
	wfi_cond_close(w->cond);
	w->cond = NULL;
	close_fd(&w->epfd);
	close_fd(&w->evfd);
	close_fd(&w->tmfd);
	free(w->rows);
	w->rows = NULL;
	w->row_count = w->row_room = 0;
}

bool wfi_wait_obj_good(enum fi_wait_obj obj)
{
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_SET:
	case FI_WAIT_FD:
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_YIELD:
	case FI_WAIT_POLLFD:
		return true;
	default:
		FI_INFO(&weft_provider, FI_LOG_CQ,
			"wait object %d: FI_WAIT_NONE, _UNSPEC, _SET, _FD, _MUTEX_COND, "
			"_YIELD and _POLLFD are there\n",
			obj);
		return false;
	}
}

int wfi_wait_obj_check(const struct wfi_fabric *fabric, enum fi_wait_obj obj,
		       struct fid_wait *set)
{
	if (!wfi_wait_obj_good(obj))
		return -FI_ENOSYS;
	if (obj != FI_WAIT_SET || wfi_wait_set_of(set, fabric))
		return 0;
	FI_INFO(&weft_provider, FI_LOG_CQ,
		"FI_WAIT_SET: wait_set is no wait set of this fabric\n");
	return -FI_EINVAL;
}

/* ---- pollables
 * ------------------------------------------------------------------------- */

int wfi_wait_attach(struct wfi_wait *w, struct wfi_pollable *p)
{
	for (uint32_t i = 0; i < w->row_count; i++) {
		if (w->rows[i].p == p) {
			w->rows[i].count++;
			return 0;
		}
	}
	if (w->row_count == w->row_room) {
		uint32_t room = w->row_room ? w->row_room * 2 : 2;
		void *rows = realloc(w->rows, room * sizeof(*w->rows));

		if (!rows)
			return -FI_ENOMEM;
		w->rows = rows;
		w->row_room = room;
	}
	w->rows[w->row_count++] = (struct wfi_wait_row){.p = p, .count = 1, .fd = -1};
	/* Whoever sleeps already knows nothing of it. */
	if (w->sleepers || w->armed)
		wfi_wait_wake(w);
	return 0;
}

void wfi_wait_detach(struct wfi_wait *w, struct wfi_pollable *p)
{
	for (uint32_t i = 0; i < w->row_count; i++) {
		struct wfi_wait_row *row = &w->rows[i];

		if (row->p != p)
			continue;
		if (--row->count)
			return;
		if (row->fd >= 0)
			epoll_ctl(w->epfd, EPOLL_CTL_DEL, row->fd, NULL);
		w->rows[i] = w->rows[--w->row_count];
		return;
	}
}

int wfi_wait_progress_rows(struct wfi_wait *w)
{
	int n = 0;

	for (uint32_t i = 0; i < w->row_count; i++) {
		struct wfi_pollable *p = w->rows[i].p;

		n += p->ops->progress(p);
		wfi_domain_rearm(w->domain, p);
	}
	return n;
}

static uint64_t wait_due(const struct wfi_wait *w)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < w->row_count; i++) {
		struct wfi_pollable *p = w->rows[i].p;
		uint64_t t = p->ops->due(p);

		if (t < due)
			due = t;
	}
	return due;
}

static int wait_arm(struct wfi_wait *w)
{
	for (uint32_t i = 0; i < w->row_count; i++) {
		struct wfi_pollable *p = w->rows[i].p;
		int rc = p->ops->arm(p);

		if (rc)
			return rc;
	}
	return 0;
}

/* ---- descriptors
 * ----------------------------------------------------------------------- */

static int epoll_join(struct wfi_wait *w, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Endpoints have a descriptor only once they are enabled, so this looks again each time.
 */
static int join_pollables(struct wfi_wait *w)
{
	w->unjoined = false;
	for (uint32_t i = 0; i < w->row_count; i++) {
		struct wfi_wait_row *row = &w->rows[i];
		int fd, rc;

		if (row->fd >= 0)
			continue;
		fd = row->p->ops->fd(row->p);
		if (fd < 0) {
			w->unjoined = true;
			continue;
		}
		rc = epoll_join(w, fd);
		if (rc)
			return rc;
		row->fd = fd;
	}
	return 0;
}

static int wait_open(struct wfi_wait *w)
{
	int rc;

	if (w->epfd < 0) {
		w->epfd = epoll_create1(EPOLL_CLOEXEC);
		if (w->epfd < 0)
			return -errno;
	}
	if (w->evfd < 0) {
		w->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		rc = w->evfd < 0 ? -errno : epoll_join(w, w->evfd);
		if (rc) {
			close_fd(&w->evfd);
			return rc;
		}
	}
	return join_pollables(w);
}

/* What is due by the clock, for an application that sleeps on the descriptor itself. */
static int timer_set(struct wfi_wait *w, uint64_t due)
{
	struct itimerspec at = {0};
	int rc;

	if (w->tmfd < 0) {
		if (due == UINT64_MAX)
			return 0;
		w->tmfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		rc = w->tmfd < 0 ? -errno : epoll_join(w, w->tmfd);
		if (rc) {
			close_fd(&w->tmfd);
			return rc;
		}
	}
	if (due != UINT64_MAX) {
		/* All zero would switch it off. */
		at.it_value.tv_sec = (time_t)(due / NS_PER_S);
		at.it_value.tv_nsec = due ? (long)(due % NS_PER_S) : 1;
	}
	return timerfd_settime(w->tmfd, TFD_TIMER_ABSTIME, &at, NULL) ? -errno : 0;
}

/* Not before all have seen it whom it was raised for. */
static void event_drain(struct wfi_wait *w)
{
	uint64_t n;

	if (!w->signaled || w->to_wake)
		return;
	w->signaled = false;
	if (read(w->evfd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		FI_WARN(&weft_provider, FI_LOG_CQ, "reading an eventfd: %s\n",
			strerror(errno));
}

static void event_raise(struct wfi_wait *w)
{
	uint64_t one = 1;

	if (w->signaled || w->evfd < 0)
		return;
	w->signaled = true;
	if (write(w->evfd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		FI_WARN(&weft_provider, FI_LOG_CQ, "writing an eventfd: %s\n",
			strerror(errno));
}

/* ---- who sleeps
 * ------------------------------------------------------------------------ */

static void sleeping_update(struct wfi_wait *w)
{
	bool sleeping = w->sleepers || w->armed;

	w->watched = sleeping || w->cond;
	if (sleeping && list_empty(&w->node))
		list_push_back(&w->domain->sleeping, &w->node);
	else if (!sleeping)
		list_remove(&w->node);
}

void wfi_wait_wake(struct wfi_wait *w)
{
	event_raise(w);
	w->wakes++;
	w->to_wake = w->evfd < 0 ? 0 : w->sleepers;
	/* The descriptor stays readable until the application asks again. */
	w->armed = false;
	sleeping_update(w);
	if (w->cond)
		wfi_progress_tell(w->domain->progress, w->cond);
}

void wfi_wait_disarm_slow(struct wfi_wait *w)
{
	w->armed = false;
	sleeping_update(w);
}

LOCK_HELD(lock_domain) static void wake_sleepers(struct wfi_domain *domain, bool all)
{
	list_foreach_safe (pos, tmp, &domain->sleeping) {
		struct wfi_wait *w = container_of(pos, struct wfi_wait, node);

		if (all || w->unjoined)
			wfi_wait_wake(w);
	}
}

void wfi_domain_wake(struct wfi_domain *domain)
{
	wake_sleepers(domain, true);
}

void wfi_rearm_slow(struct wfi_domain *domain, struct wfi_pollable *p)
{
	if (p->ops->fd(p) >= 0)
		wake_sleepers(domain, false);
	for (int i = 0; i < REARM_TRIES; i++) {
		if (p->ops->arm(p) == 0)
			return;
		p->ops->progress(p);
	}
	wake_sleepers(domain, true);
}

/* ---- sleeping
 * -------------------------------------------------------------------------- */

/* Rounded up, so that a wake-up at the deadline finds it passed. */
int wfi_sleep_ms(uint64_t until)
{
	uint64_t now, ms;

	if (until == UINT64_MAX)
		return -1;
	now = wfi_now_ns();
	if (until <= now)
		return 0;
	ms = (until - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

LOCK_HELD(lock_domain) static int sleep_plain(struct wfi_wait *w, uint64_t until)
{
	uint64_t now = wfi_now_ns();
	uint64_t ns = until > now ? until - now : 0;

	wfi_domain_unlock(w->domain);
	pause_ns(ns < PAUSE_NS ? ns : PAUSE_NS);
	wfi_domain_lock(w->domain);
	return 0;
}

/* By poll(): epoll_wait() also ends, as if a signal had been handled, when a process that
 * was stopped goes on (signal(7)). */
int wfi_sleep_on(int fd, uint64_t until)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, wfi_sleep_ms(until)) < 0 && errno == EINTR ? -FI_EINTR : 0;
}

int wfi_wait_sleep(struct wfi_wait *w, uint64_t deadline_ns)
{
	uint64_t until, due, wakes;
	int rc;

	due = wait_due(w);
	until = due < deadline_ns ? due : deadline_ns;
	if (wait_open(w)) {
		FI_WARN_ONCE(
			&weft_provider, FI_LOG_CQ,
			"no descriptors to sleep on (raise the limit of open files): "
			"blocking calls poll instead\n");
		return sleep_plain(w, until);
	}
	rc = wait_arm(w);
	if (rc) {
		/* Work to do; when there really is none, don't burn the processor. */
		return wfi_wait_progress(w) ? 0 : sleep_plain(w, until);
	}
	w->sleepers++;
	wakes = w->wakes;
	sleeping_update(w);
	wfi_domain_unlock(w->domain);
	rc = wfi_sleep_on(w->epfd, until);
	wfi_domain_lock(w->domain);
	w->sleepers--;
	if (wakes != w->wakes)
		w->to_wake--;
	sleeping_update(w);
	event_drain(w);
	return rc;
}

int wfi_wait_try(struct wfi_wait *w)
{
	if (w->cond) { /* its waiter hears of everything */
		wfi_wait_progress(w);
		return 0;
	}
	return wfi_wait_watch(w);
}

int wfi_wait_watch(struct wfi_wait *w)
{
	int rc = wait_open(w);

	if (rc)
		return rc;
	event_drain(w);
	wfi_wait_progress(w);
	rc = wait_arm(w);
	if (rc)
		return -FI_EAGAIN;
	rc = timer_set(w, wait_due(w));
	if (rc)
		return rc;
	w->armed = true;
	sleeping_update(w);
	return 0;
}

static int wait_get_fd(struct wfi_wait *w, int *fd)
{
	int rc = wait_open(w);

	if (!rc)
		*fd = w->epfd;
	return rc;
}

static int wait_get_cond(struct wfi_wait *w, void *arg)
{
	if (!w->domain->progress) {
		FI_WARN(&weft_provider, FI_LOG_CQ,
			"FI_WAIT_MUTEX_COND: with manual progress nothing would arrive "
			"while the application sleeps on the condition; ask for "
			"FI_PROGRESS_AUTO, or wait by fi_cq_sread or fi_cntr_wait\n");
		return -FI_EOPNOTSUPP;
	}
	if (!w->cond)
		w->cond = wfi_cond_open(NULL);
	if (!w->cond)
		return -FI_ENOMEM;
	sleeping_update(w);
	wfi_cond_give(w->cond, arg);
	return 0;
}

int wfi_pollfd_give(int fd, void *arg)
{
	struct fi_wait_pollfd *out = arg;

	if (out->nfds < 1 || !out->fd) {
		out->nfds = 1;
		return -FI_ETOOSMALL;
	}
	/* It is the same for good, so that there is but one change. */
	out->change_index = 1;
	out->nfds = 1;
	out->fd[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	return 0;
}

static int wait_get(struct wfi_wait *w, enum fi_wait_obj obj, void *arg)
{
	int fd, rc;

	switch (obj) {
	case FI_WAIT_FD:
		return wait_get_fd(w, arg);
	case FI_WAIT_POLLFD:
		rc = wait_get_fd(w, &fd);
		return rc ? rc : wfi_pollfd_give(fd, arg);
	case FI_WAIT_MUTEX_COND:
		return wait_get_cond(w, arg);
	default:
		return -FI_ENODATA;
	}
}

int wfi_wait_control(struct wfi_wait *w, enum fi_wait_obj obj, int command, void *arg)
{
	int rc;

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (w->member)
		return wfi_member_control(w->member, command, arg);
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = obj;
		return 0;
	}
	wfi_domain_lock(w->domain);
	rc = wait_get(w, obj, arg);
	wfi_domain_unlock(w->domain);
	return rc;
}

/* ---- as a member of a wait set
 * -------------------------------------------------------------- */

static int enter_open(struct wfi_wait *w, struct wfi_wait_set *set)
{
	struct wfi_cond *cond = wfi_wait_set_cond(set);
	int rc = wait_open(w);

	/* Only the thread of automatic progress may tell a condition. */
	if (!rc && cond && w->domain->progress) {
		w->cond = wfi_cond_open(cond);
		rc = w->cond ? 0 : -FI_ENOMEM;
		sleeping_update(w);
	}
	return rc;
}

int wfi_wait_enter_set(struct wfi_wait *w, struct fid_wait *fid,
		       const struct wfi_member_ops *ops, void *owner)
{
	struct wfi_wait_set *set = wfi_wait_set_of(fid, w->domain->fabric);
	int rc;

	wfi_domain_lock(w->domain);
	rc = enter_open(w, set);
	wfi_domain_unlock(w->domain);
	if (rc)
		return rc;
	return wfi_member_open(set, w->epfd, w->cond, ops, owner, &w->member);
}

void wfi_wait_leave_set(struct wfi_wait *w)
{
	wfi_member_close(w->member);
	w->member = NULL;
}

bool wfi_wait_is_busy(struct wfi_wait *w)
{
	uint64_t deadline = wfi_now_ns() + PIN_NS;

	/* The thread of progress waits for the application's mutex: not for long, unless
	 * it is the closing thread that holds it. */
	while (w->cond && w->cond->pins && wfi_now_ns() < deadline) {
		wfi_domain_unlock(w->domain);
		sched_yield();
		wfi_domain_lock(w->domain);
	}
	return w->row_count || w->sleepers || w->holders || (w->cond && w->cond->pins);
}

void wfi_wait_interrupt(struct wfi_wait *w)
{
	atomic_fetch_add(&w->interrupts, 1);
	wfi_domain_lock(w->domain);
	event_raise(w);
	wfi_domain_unlock(w->domain);
}

bool wfi_wait_interrupted(struct wfi_wait *w)
{
	unsigned int n = atomic_load(&w->interrupts);

	while (n) {
		if (!atomic_compare_exchange_weak(&w->interrupts, &n, n - 1))
			continue;
		/* The event was drained by this sleeper; there may be others to wake. */
		if (n > 1)
			event_raise(w);
		return true;
	}
	return false;
}

void wfi_idle_yield(struct wfi_wait *w)
{
	unsigned int limit = atomic_load_explicit(&w->idle_limit, memory_order_relaxed);
	uint64_t start = wfi_now_ns();

	sched_yield();
	if (wfi_now_ns() - start > YIELD_TAKEN_NS)
		limit = IDLE_LIMIT_MIN;
	else if (limit < IDLE_LIMIT_MAX)
		limit *= 2;
	atomic_store_explicit(&w->idle_limit, limit, memory_order_relaxed);
	atomic_store_explicit(&w->idle, 0, memory_order_relaxed);
}

int wfi_block(struct wfi_wait *w, struct wfi_blocking *b)
{
	uint64_t now = wfi_now_ns();

	if (wfi_wait_interrupted(w))
		return -FI_EINTR;
	if (now >= b->deadline)
		return -FI_ETIMEDOUT;
	if (!b->spin_until)
		b->spin_until = now + SPIN_NS;
	if (now < b->spin_until || w->yields) {
		wfi_domain_unlock(w->domain);
		sched_yield();
		wfi_domain_lock(w->domain);
		return 0;
	}
	return wfi_wait_sleep(w, b->deadline);
}
