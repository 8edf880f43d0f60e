/* SPDX-License-Identifier: BSD-2-Clause */
/* The mutex and the condition of FI_WAIT_MUTEX_COND; see wait_cond.h. */
#include "config.h"

#include "prov/fi/wait_cond.h"

#include <stdlib.h>

struct wfi_cond *wfi_cond_open(struct wfi_cond *of)
{
	struct wfi_cond *c = calloc(1, sizeof(*c));
	pthread_mutexattr_t attr;

	if (!c)
		return NULL;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&c->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	/* The usual clock, since the application makes the deadlines. */
	pthread_cond_init(&c->cond, NULL);
	list_init(&c->due);
	c->of = of;
	return c;
}

void wfi_cond_close(struct wfi_cond *c)
{
	if (!c)
		return;
	list_remove(&c->due);
	pthread_cond_destroy(&c->cond);
	pthread_mutex_destroy(&c->mutex);
	free(c);
}

void wfi_cond_tell(struct wfi_cond *c)
{
	if (c->of)
		c = c->of;
	/* Under the mutex: one who has just found nothing is waiting by now. */
	pthread_mutex_lock(&c->mutex);
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->mutex);
}

void wfi_cond_give(struct wfi_cond *c, void *arg)
{
	struct fi_mutex_cond *out = arg;

	out->mutex = &c->mutex;
	out->cond = &c->cond;
}
