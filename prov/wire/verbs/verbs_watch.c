/* SPDX-License-Identifier: BSD-2-Clause */
/* A look at everything now and then; see verbs_watch.h. */
#include "config.h"

#include "prov/wire/verbs/verbs_watch.h"

#include "prov/dqplb/text.h"
#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rail.h"
#include "prov/wire/verbs/verbs_state.h"

/* At most so far apart; more often where one of the times that are looked for is short.
 */
#define WATCH_NS    UINT64_C(1000000000)
#define WATCH_LOOKS 10u /* at least, before a queue pair is taken for dead */
/* Ports that are up are asked once in so many looks; the others by verbs_port.h. */
#define WATCH_PORTS 8u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t watch_ns(void)
{
	const struct prov_params *p = prov_params();
	uint64_t ns = least(WATCH_NS, p->answer_time_ms * 1000000 / WATCH_LOOKS);

	return p->stall_time_ms ? least(ns, p->stall_time_ms * 1000000 / 2) : ns;
}

/* So many looks: of a process that runs, FI_WEFT_ANSWER_TIME. */
static uint64_t answer_looks(void)
{
	return prov_params()->answer_time_ms * 1000000 / watch_ns();
}

/* ---- queue pairs --------------------------------------------------------------------
 */

/* In how many looks nothing was answered of what waits. */
static uint32_t silence(struct verbs_qp *qp)
{
	if (qp->sq_head == qp->sq_tail || qp->sq_tail != qp->watch_tail)
		qp->silent = 0;
	else
		qp->silent++;
	qp->watch_tail = qp->sq_tail;
	return qp->silent;
}

static void lanes_watch(struct verbs_link *link)
{
	for (uint32_t i = 0; i <= link->lanes && i < DQPLB_LANES_MAX; i++) {
		struct verbs_lane *l = &link->lane[i];

		if (l->state != VERBS_LANE_UP || silence(l->qp) < answer_looks())
			continue;
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"lane %u.%u on %s: %u requests wait and none was answered for "
			"FI_WEFT_ANSWER_TIME, %llu ms\n",
			i, l->incarnation, link->ep->dom->dev->rail[l->rail].name,
			l->qp->sq_head - l->qp->sq_tail,
			(unsigned long long)prov_params()->answer_time_ms);
		link->lane_stats.silent++;
		verbs_lane_down(link, i, VERBS_LANE_PATH);
	}
}

/* `still`: nothing of the link has ended since the last look. Then its peer may have no
 * end of the channel any more, which who sends nothing doesn't hear. */
static void chan_watch(struct verbs_link *link, bool still)
{
	struct verbs_qp *qp = link->chan.qp;
	uint32_t looks;

	if (!qp || qp->state != VERBS_QP_READY || link->chan.broken)
		return;
	looks = silence(qp);
	if (looks == 0 && !still)
		return;
	if (looks < answer_looks()) {
		verbs_chan_probe(link);
		return;
	}
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
		"control channel on %s: %u requests wait and none was answered for "
		"FI_WEFT_ANSWER_TIME, %llu ms\n",
		link->ep->dom->dev->rail[qp->rail].name, qp->sq_head - qp->sq_tail,
		(unsigned long long)prov_params()->answer_time_ms);
	link->lane_stats.silent++;
	link->chan.broken = true;
	verbs_link_dirty(link);
}

/* ---- links --------------------------------------------------------------------------
 */

/* Small puts are nothing but requests. */
static bool lanes_wait(const struct verbs_link *link)
{
	for (uint32_t i = 0; i <= link->lanes && i < DQPLB_LANES_MAX; i++) {
		const struct verbs_qp *qp = link->lane[i].qp;

		if (qp && qp->sq_head != qp->sq_tail)
			return true;
	}
	return false;
}

static bool is_under_way(const struct verbs_link *link)
{
	return !list_empty(&link->ops) || !list_empty(&link->flush.waiting) ||
	       !list_empty(&link->flush.behind) || !list_empty(&link->rkeys.fetches) ||
	       lanes_wait(link);
}

/* What has ended, as a number that grows with it; what is written again has not. */
static uint64_t progress_of(const struct verbs_link *link)
{
	return dqplb_tx_progress(link->tx) - link->flush.anew;
}

/* Whether nothing has ended since the last look, of what is under way. */
static bool still_watch(struct verbs_link *link, uint64_t now)
{
	uint64_t limit = prov_params()->stall_time_ms * UINT64_C(1000000);
	struct verbs_watch *w = &link->watch;
	uint64_t progress = progress_of(link);

	if (w->since == 0 || progress != w->progress || !is_under_way(link)) {
		*w = (struct verbs_watch){
			.progress = progress,
			.since = is_under_way(link) ? now : 0,
		};
		return false;
	}
	if (!w->said && limit && now - w->since >= limit) {
		w->said = true;
		verbs_state_say(link, now - w->since);
	}
	return true;
}

/* ---- ports --------------------------------------------------------------------------
 */

/* What an event would have said. */
static int ports_watch(struct verbs_ep *ep)
{
	struct verbs_dev *dev = ep->dom->dev;
	int count = 0;

	if (ep->watches % WATCH_PORTS != 0)
		return 0;
	for (uint32_t r = 0; r < dev->rails; r++) {
		if (!atomic_load_explicit(&dev->rail[r].up, memory_order_relaxed) ||
		    !verbs_rail_turned(dev->lib, &dev->rail[r]))
			continue;
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"rail %s: its port went, and no event said so\n",
			dev->rail[r].name);
		count++;
	}
	return count;
}

/* ---- all ----------------------------------------------------------------------------
 */

static bool waits(const struct verbs_link *link)
{
	const struct verbs_qp *qp = link->chan.qp;

	return is_under_way(link) || (qp && qp->sq_head != qp->sq_tail);
}

void verbs_watch_link(struct verbs_link *link)
{
	bool still;

	if (!link->watch.due)
		return;
	link->watch.due = false;
	still = still_watch(link, verbs_now());
	lanes_watch(link);
	chan_watch(link, still);
}

int verbs_watch(struct verbs_ep *ep, uint64_t now)
{
	if (now < ep->watch_due)
		return 0;
	ep->watch_due = now + watch_ns();
	ep->watches++;
	pthread_mutex_lock(&ep->mutex);
	list_foreach (n, &ep->links) {
		struct verbs_link *link = container_of(n, struct verbs_link, member);

		if (link->state != VERBS_LINK_UP || (!waits(link) && !link->watch.since))
			continue;
		link->watch.due = true;
		verbs_link_chore(link);
	}
	pthread_mutex_unlock(&ep->mutex);
	return ports_watch(ep);
}

uint64_t verbs_watch_due(struct verbs_ep *ep)
{
	uint64_t due = UINT64_MAX;

	pthread_mutex_lock(&ep->mutex);
	list_foreach (n, &ep->links)
		if (waits(container_of(n, struct verbs_link, member)))
			due = ep->watch_due;
	pthread_mutex_unlock(&ep->mutex);
	return due;
}
