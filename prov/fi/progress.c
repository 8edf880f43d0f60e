/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of automatic progress; see progress.h. */
#include "config.h"

#include "prov/fi/progress.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/fi/wait.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

struct wfi_progress {
	struct wfi_wait wait; /* its rows: what to drive */
	struct wfi_domain *domain;
	pthread_t thread;
	bool stop;	 /* guarded by the domain's lock */
	struct list due; /* struct wfi_cond.due: what appeared there must be told */
};

/* Lock held, given up meanwhile. What becomes due then is for the next round. */
LOCK_HELD(lock_domain) static void conds_tell(struct wfi_progress *self)
{
	struct list *node;

	while ((node = list_pop_front(&self->due))) {
		struct wfi_cond *c = container_of(node, struct wfi_cond, due);

		c->pins++;
		wfi_domain_unlock(self->domain);
		wfi_cond_tell(c);
		wfi_domain_lock(self->domain);
		c->pins--;
	}
}

void wfi_progress_tell(struct wfi_progress *self, struct wfi_cond *cond)
{
	if (!list_empty(&cond->due))
		return;
	list_push_back(&self->due, &cond->due);
	wfi_wait_wake(&self->wait);
}

static void *progress_run(void *arg)
{
	struct wfi_progress *self = arg;

	wfi_domain_lock(self->domain);
	while (!self->stop) {
		int done = wfi_wait_progress(&self->wait);

		if (!list_empty(&self->due)) {
			conds_tell(self);
			continue;
		}
		if (!done) {
			wfi_wait_sleep(&self->wait, UINT64_MAX);
			continue;
		}
		/* The application's threads want the lock as well. */
		wfi_domain_unlock(self->domain);
		sched_yield();
		wfi_domain_lock(self->domain);
	}
	wfi_domain_unlock(self->domain);
	return NULL;
}

/* Signals are the application's: none may be handled on this thread. */
static int thread_start(struct wfi_progress *self)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	rc = pthread_sigmask(SIG_SETMASK, &all, &old);
	if (rc)
		return -rc;
	rc = pthread_create(&self->thread, NULL, progress_run, self);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

int wfi_progress_open(struct wfi_domain *domain, struct wfi_progress **progress)
{
	struct wfi_progress *self = calloc(1, sizeof(*self));
	int rc;

	if (!self)
		return -FI_ENOMEM;
	self->domain = domain;
	wfi_wait_init(&self->wait, domain);
	list_init(&self->due);
	rc = thread_start(self);
	if (rc) {
		FI_WARN(&weft_provider, FI_LOG_DOMAIN,
			"no thread for FI_PROGRESS_AUTO (%s): ask for FI_PROGRESS_MANUAL "
			"or "
			"raise the limit of threads\n",
			fi_strerror(-rc));
		wfi_wait_fini(&self->wait);
		free(self);
		return rc;
	}
	*progress = self;
	return 0;
}

void wfi_progress_close(struct wfi_progress *self)
{
	if (!self)
		return;
	wfi_domain_lock(self->domain);
	self->stop = true;
	wfi_wait_wake(&self->wait);
	wfi_domain_unlock(self->domain);
	pthread_join(self->thread, NULL);
	wfi_wait_fini(&self->wait);
	free(self);
}

int wfi_progress_attach(struct wfi_progress *self, struct wfi_pollable *p)
{
	return self ? wfi_wait_attach(&self->wait, p) : 0;
}

void wfi_progress_detach(struct wfi_progress *self, struct wfi_pollable *p)
{
	if (self)
		wfi_wait_detach(&self->wait, p);
}
