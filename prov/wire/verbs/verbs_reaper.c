/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that destroys queue pairs; see verbs_reaper.h. */
#include "config.h"

#include "prov/wire/verbs/verbs_reaper.h"

#include <pthread.h>
#include <stdlib.h>

#include "prov/wire/verbs/verbs_ep.h"
#include "prov/wire/verbs/verbs_helper.h"
#include "prov/wire/verbs/verbs_qp.h"

struct verbs_reaper {
	struct verbs_ep *ep;
	pthread_t thread;
	pthread_cond_t more; /* with the endpoint's mutex */
	struct list todo;
	bool stop;
};

static void *reaper_main(void *arg)
{
	struct verbs_reaper *r = arg;
	struct verbs_ep *ep = r->ep;

	pthread_mutex_lock(&ep->mutex);
	for (;;) {
		struct list *n = list_pop_front(&r->todo);
		struct verbs_qp *qp;

		if (!n && r->stop)
			break;
		if (!n) {
			pthread_cond_wait(&r->more, &ep->mutex);
			continue;
		}
		qp = container_of(n, struct verbs_qp, where);
		pthread_mutex_unlock(&ep->mutex);
		verbs_qp_end(ep, qp);
		pthread_mutex_lock(&ep->mutex);
		verbs_qp_free(ep, qp);
	}
	pthread_mutex_unlock(&ep->mutex);
	return NULL;
}

static struct verbs_reaper *reaper_start(struct verbs_ep *ep)
{
	struct verbs_reaper *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ep = ep;
	list_init(&r->todo);
	pthread_cond_init(&r->more, NULL);
	if (verbs_helper_thread(&r->thread, reaper_main, r)) {
		pthread_cond_destroy(&r->more);
		free(r);
		return NULL;
	}
	return r;
}

bool verbs_reaper_take(struct verbs_ep *ep, struct verbs_qp *qp)
{
	if (!ep->reaper)
		ep->reaper = reaper_start(ep);
	if (!ep->reaper)
		return false;
	list_push_back(&ep->reaper->todo, &qp->where);
	pthread_cond_signal(&ep->reaper->more);
	return true;
}

void verbs_reaper_stop(struct verbs_reaper *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->ep->mutex);
	r->stop = true;
	pthread_cond_signal(&r->more);
	pthread_mutex_unlock(&r->ep->mutex);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->more);
	free(r);
}
