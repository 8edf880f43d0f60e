/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a queue or counter sleeps on: the pollables attached to it, an epoll descriptor
 * over theirs, an event descriptor for what other threads write into the queue, and a
 * timer for what is due by the clock only. Descriptors are opened at the first sleep:
 * tens of thousands of idle queues cost none.
 *
 * A pollable is armed until its next progress(). So whoever progresses it while somebody
 * sleeps must arm it again; domain->sleeping says whether anybody does.
 *
 * Everything is called with the domain's lock held unless it says otherwise.
 */
#ifndef WEFT_FI_WAIT_H
#define WEFT_FI_WAIT_H

#include <rdma/fi_eq.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/fi/domain.h"
#include "prov/fi/pollable.h"
#include "prov/fi/wait_cond.h"
#include "prov/fi/wait_set.h"
#include "util/list.h"
#include "util/lock_note.h"

struct wfi_wait_row {
	struct wfi_pollable *p;
	uint32_t count; /* how often it was attached */
	int fd;		/* in the epoll set; -1: not yet */
};

struct wfi_wait {
	struct wfi_wait_row *rows;
	uint32_t row_count;
	uint32_t row_room;
	struct wfi_domain *domain;
	struct list node;      /* on domain->sleeping while sleepers or armed */
	uint32_t sleepers;     /* threads in wfi_wait_sleep */
	uint32_t to_wake;      /* of them: those that the last wake-up was for */
	uint64_t wakes;	       /* counts wake-ups: tells who slept before the last one */
	bool armed;	       /* the application may sleep on epfd by itself */
	bool watched;	       /* somebody must hear of what appears */
	bool signaled;	       /* evfd is readable */
	bool unjoined;	       /* at the last sleep a pollable had no descriptor yet */
	bool yields;	       /* FI_WAIT_YIELD: blocking calls never sleep */
	struct wfi_cond *cond; /* FI_WAIT_MUTEX_COND, once it was asked for */
	struct wfi_member *member; /* FI_WAIT_SET; else NULL */
	uint32_t holders;	   /* poll sets that it is in */
	int epfd;
	int evfd;
	int tmfd;
	atomic_uint interrupts; /* wake-ups without an event, not yet delivered */
	atomic_uint idle;	/* reads in a row that found nothing */
	atomic_uint idle_limit; /* reads until the processor is offered to others */
};

void wfi_wait_init(struct wfi_wait *w, struct wfi_domain *domain);
void wfi_wait_fini(struct wfi_wait *w);

/* What there is, FI_WAIT_SET among it; says so. */
bool wfi_wait_obj_good(enum fi_wait_obj obj);
/* What a queue was asked to be opened with. -FI_ENOSYS; -FI_EINVAL: no set, or not one of
 * this fabric. */
int wfi_wait_obj_check(const struct wfi_fabric *fabric, enum fi_wait_obj obj,
		       struct fid_wait *set);

/* FI_WAIT_SET: enters the set, or leaves it, if there is one. Lock not held. */
LOCK_NOT_HELD(lock_domain)
int wfi_wait_enter_set(struct wfi_wait *w, struct fid_wait *set,
		       const struct wfi_member_ops *ops, void *owner);
LOCK_NOT_HELD(lock_domain) void wfi_wait_leave_set(struct wfi_wait *w);

/* Counted. -FI_ENOMEM. */
LOCK_HELD(lock_domain) int wfi_wait_attach(struct wfi_wait *w, struct wfi_pollable *p);
LOCK_HELD(lock_domain) void wfi_wait_detach(struct wfi_wait *w, struct wfi_pollable *p);

/* Monotonic. */
uint64_t wfi_now_ns(void);
/* As libfabric's calls give it: milliseconds, negative for ever (UINT64_MAX). */
uint64_t wfi_deadline(int timeout_ms);

/* Sleepers look again: something is due earlier than they know. */
LOCK_HELD(lock_domain) void wfi_domain_wake(struct wfi_domain *domain);

/* Arms p again. Wakes sleepers that don't have its descriptor yet (it was enabled
 * meanwhile), and all of the domain's if it never comes to rest. */
LOCK_HELD(lock_domain)
void wfi_rearm_slow(struct wfi_domain *domain, struct wfi_pollable *p);

LOCK_HELD(lock_domain)
static inline void wfi_domain_rearm(struct wfi_domain *domain, struct wfi_pollable *p)
{
	if (__builtin_expect(!list_empty(&domain->sleeping), 0))
		wfi_rearm_slow(domain, p);
}

/* Returns how many things happened. */
LOCK_HELD(lock_domain) int wfi_wait_progress_rows(struct wfi_wait *w);

LOCK_HELD(lock_domain) static inline int wfi_wait_progress(struct wfi_wait *w)
{
	int n;

	if (__builtin_expect(w->row_count != 1, 0))
		return wfi_wait_progress_rows(w);
	n = w->rows[0].p->ops->progress(w->rows[0].p);
	wfi_domain_rearm(w->domain, w->rows[0].p);
	return n;
}

LOCK_HELD(lock_domain) void wfi_wait_wake(struct wfi_wait *w);

/* Something to read appeared. */
LOCK_HELD(lock_domain) static inline void wfi_wait_signal(struct wfi_wait *w)
{
	if (__builtin_expect(w->watched, 0))
		wfi_wait_wake(w);
}

/* The application reads by itself: it does not sleep on the descriptor now. */
LOCK_HELD(lock_domain) void wfi_wait_disarm_slow(struct wfi_wait *w);
LOCK_HELD(lock_domain) static inline void wfi_wait_disarm(struct wfi_wait *w)
{
	if (__builtin_expect(w->armed, 0))
		wfi_wait_disarm_slow(w);
}

/*
 * Sleeps until something may have happened or the deadline; the lock is given up
 * meanwhile. 0: look again; -FI_EINTR: a signal handler ran.
 */
LOCK_HELD(lock_domain) int wfi_wait_sleep(struct wfi_wait *w, uint64_t deadline_ns);

/* fi_trywait: 0 when the application may sleep on the descriptor, -FI_EAGAIN when there
 * is work first. */
LOCK_HELD(lock_domain) int wfi_wait_try(struct wfi_wait *w);
/* The same, for a wait set that sleeps on the descriptor. */
LOCK_HELD(lock_domain) int wfi_wait_watch(struct wfi_wait *w);

/* Lock not held. FI_GETWAIT and FI_GETWAITOBJ, for a queue that was opened with obj.
 * -FI_ENODATA: there is nothing to get; -FI_EOPNOTSUPP: a condition needs automatic
 * progress; -FI_ENOSYS: another command; -FI_EMFILE, -FI_ENOMEM, -FI_ETOOSMALL. */
LOCK_NOT_HELD(lock_domain)
int wfi_wait_control(struct wfi_wait *w, enum fi_wait_obj obj, int command, void *arg);
/* FI_WAIT_POLLFD: struct fi_wait_pollfd with this descriptor alone. -FI_ETOOSMALL. */
int wfi_pollfd_give(int fd, void *arg);

/* Milliseconds until then, for poll; rounded up. */
int wfi_sleep_ms(uint64_t until);
/* Until the descriptor is readable or it is then: 0; -FI_EINTR: a signal handler ran. */
int wfi_sleep_on(int fd, uint64_t until);

/* It can't be ended: pollables are attached, or somebody sleeps. Gives the lock up for a
 * moment where its condition is just being told. */
LOCK_HELD(lock_domain) bool wfi_wait_is_busy(struct wfi_wait *w);

/* Lock not held. One sleeper (now or the next to come) returns with nothing. */
LOCK_NOT_HELD(lock_domain) void wfi_wait_interrupt(struct wfi_wait *w);
/* Takes one; false when there is none. */
bool wfi_wait_interrupted(struct wfi_wait *w);

LOCK_NOT_HELD(lock_domain) void wfi_idle_yield(struct wfi_wait *w);

/* Lock not held; after a read that found nothing. With more ranks than cores a poller
 * must let the others run. */
LOCK_NOT_HELD(lock_domain)
static inline __attribute__((always_inline)) void wfi_wait_idle(struct wfi_wait *w)
{
	unsigned int n = atomic_load_explicit(&w->idle, memory_order_relaxed) + 1;

	atomic_store_explicit(&w->idle, n, memory_order_relaxed);
	if (n >= atomic_load_explicit(&w->idle_limit, memory_order_relaxed))
		wfi_idle_yield(w);
}

/* A blocking read: polls for a moment, then sleeps. */
struct wfi_blocking {
	uint64_t deadline;   /* ns */
	uint64_t spin_until; /* ns; 0: not started */
};

/* Lock held. 0: look again; -FI_ETIMEDOUT; -FI_EINTR: a signal handler ran, or
 * wfi_wait_interrupt was called. */
LOCK_HELD(lock_domain) int wfi_block(struct wfi_wait *w, struct wfi_blocking *b);

#endif
