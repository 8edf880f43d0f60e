/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress: completions to links, what links do then, news, events, sleeping. */
#include "config.h"

#include "prov/wire/verbs/verbs_poll.h"

#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/dqplb/tx_quick.h"
#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rma.h"
#include "prov/wire/verbs/verbs_watch.h"

/* Clocks are read once in so many turns. */
#define POLL_TIMES 64u
/* Asynchronous events are looked for once in so many nanoseconds: that is a system call.
 * Not once in so many turns: where a turn takes long, a queue pair with nothing under way
 * would be dead for seconds before anybody heard of it. */
#define POLL_ASYNC_NS UINT64_C(1000000)

/* ---- completions --------------------------------------------------------------------
 */

/* Of a queue pair that nobody wants any more. */
static void dispatch_retired(struct verbs_ep *ep, struct verbs_qp *qp,
			     const struct ibv_wc *wc)
{
	if (wc->wr_id & VERBS_WR_SHARED)
		verbs_srq_post(qp->srq,
			       verbs_buf_at(&ep->receives, (uint32_t)(wc->wr_id >> 32)));
}

static struct verbs_qp *qp_find(const struct verbs_ep *ep, uint32_t rail,
				const struct ibv_wc *wc)
{
	if ((wc->wr_id & VERBS_WR_RECV) && (wc->wr_id & VERBS_WR_SHARED))
		return verbs_qp_numbered(ep, rail, wc->qp_num);
	return verbs_qp_of(ep, wc->wr_id);
}

/* Of a link that isn't up, or of none: whether it goes on as of others, and of which
 * queue pair. */
static __attribute__((noinline)) struct verbs_qp *dispatch_other(struct verbs_ep *ep,
								 uint32_t rail,
								 struct verbs_qp *qp,
								 const struct ibv_wc *wc)
{
	struct verbs_link *link = qp->link;

	if (link && (wc->wr_id & VERBS_WR_RECV) && wc->status == IBV_WC_SUCCESS &&
	    verbs_link_heard(link)) {
		/* Whoever was told may have given it up, and its queue pairs with it. */
		qp = qp_find(ep, rail, wc);
		if (!qp)
			return NULL;
		link = qp->link;
	}
	/* What is half-made is the helper thread's. */
	if (link && link->state != VERBS_LINK_NEW && link->state != VERBS_LINK_DOWN)
		return qp;
	dispatch_retired(ep, qp, wc);
	return NULL;
}

/* After any completion of it: what it has to do now is done by its turn. */
static inline void dispatched(struct verbs_link *link)
{
	if (link->state == VERBS_LINK_UP && !verbs_link_is_calm(link))
		verbs_link_dirty(link);
}

static __attribute__((noinline)) void dispatch(struct verbs_ep *ep, uint32_t rail,
					       const struct ibv_wc *wc)
{
	bool recv = wc->wr_id & VERBS_WR_RECV;
	struct verbs_qp *qp = qp_find(ep, rail, wc);
	struct verbs_link *link;

	if (!qp)
		return;
	link = qp->link;
	if (__builtin_expect(!link || link->state != VERBS_LINK_UP, 0)) {
		qp = dispatch_other(ep, rail, qp, wc);
		if (!qp)
			return;
		link = qp->link;
	}
	if (qp->lane == VERBS_LANE_CONTROL) {
		if (recv)
			verbs_chan_received(link, qp, wc);
		else
			verbs_chan_sent(link, qp, wc);
	} else if (link->state == VERBS_LINK_UP) {
		if (recv)
			verbs_lane_received(link, qp, wc);
		else
			verbs_lane_sent(link, qp, wc);
	} else if (recv) {
		verbs_lane_early(qp, wc);
	}
	dispatched(link);
}

static __attribute__((noinline)) void link_stir(struct verbs_link *link)
{
	link->stirred |= STIRRED_TX;
	verbs_link_dirty(link);
}

/* As most completions of writes are: of a quick one, alone. False: dispatch finds out. */
static inline __attribute__((always_inline)) bool dispatch_quick(struct verbs_ep *ep,
								 const struct ibv_wc *wc)
{
	struct verbs_link *link;
	struct verbs_qp *qp;
	struct verbs_op *op;
	uint64_t cookie;
	uint32_t at;

	if (wc->status != IBV_WC_SUCCESS || (wc->wr_id & VERBS_WR_RECV))
		return false;
	qp = verbs_qp_of(ep, wc->wr_id);
	if (__builtin_expect(!qp, 0))
		return false;
	at = qp->sq_tail & qp->sq_mask;
	cookie = qp->cookie[at];
	if (at != (wc->wr_id & qp->sq_mask) || !verbs_quick_is(cookie) ||
	    qp->sq_tail == qp->sq_head)
		return false;
	op = verbs_quick_op(cookie);
	link = atomic_load_explicit(&qp->link, memory_order_relaxed);
	qp->sq_tail++;
	qp->passed = true;
	link->odd = 0;
	if (__builtin_expect(dqplb_tx_quick_done(link->tx, qp->lane), 0))
		link_stir(link);
	verbs_op_free(ep, op);
	ep->events->put_over(ep->arg, (struct wire_link *)(void *)link, op->cookie);
	return true;
}

/* As most receives are: a packet of a link that is up. */
static inline __attribute__((always_inline)) bool dispatch_packet(struct verbs_ep *ep,
								  uint32_t rail,
								  const struct ibv_wc *wc)
{
	struct verbs_link *link;
	struct verbs_qp *qp;

	if (wc->status != IBV_WC_SUCCESS ||
	    (wc->wr_id & (VERBS_WR_RECV | VERBS_WR_SHARED)) !=
		    (VERBS_WR_RECV | VERBS_WR_SHARED))
		return false;
	qp = verbs_qp_numbered(ep, rail, wc->qp_num);
	if (__builtin_expect(!qp, 0))
		return false;
	link = atomic_load_explicit(&qp->link, memory_order_relaxed);
	if (__builtin_expect(!link || link->state != VERBS_LINK_UP ||
				     qp->lane != VERBS_LANE_CONTROL,
			     0))
		return false;
	verbs_chan_received(link, qp, wc);
	dispatched(link);
	return true;
}

static inline __attribute__((always_inline)) void completed(struct verbs_ep *ep,
							    uint32_t rail,
							    const struct ibv_wc *wc)
{
	if (!dispatch_quick(ep, wc) && !dispatch_packet(ep, rail, wc))
		dispatch(ep, rail, wc);
}

static __attribute__((noinline)) void all_completed(struct verbs_ep *ep, uint32_t rail,
						    const struct ibv_wc *wc, int n)
{
	for (const struct ibv_wc *end = wc + n; wc < end; wc++)
		completed(ep, rail, wc);
}

/* Whether there may be more; *count grows. */
static bool cq_poll(struct verbs_ep *ep, uint32_t rail, struct ibv_cq *cq, int *count)
{
	struct ibv_wc wc[VERBS_POLL];
	int n = ibv_poll_cq(cq, VERBS_POLL, wc);

	if (n <= 0)
		return false;
	all_completed(ep, rail, wc, n);
	*count += n;
	return n == (int)VERBS_POLL;
}

static bool rail_poll(struct verbs_ep *ep, uint32_t r, int budget, int *count)
{
	const struct verbs_ep_rail *er = &ep->rail[r];
	uint32_t cqs = atomic_load_explicit(&er->cqs, memory_order_acquire);
	bool more = false;

	for (uint32_t i = 0; i < cqs; i++) {
		bool here;

		do
			here = cq_poll(ep, r, er->cq[i]->ib, count);
		while (here && *count < budget);
		more = more || here;
	}
	return more;
}

static bool cqs_poll(struct verbs_ep *ep, int budget, int *count)
{
	uint32_t rails = ep->dom->dev->rails;
	bool more = false;

	for (uint32_t r = 0; r < rails; r++)
		more = rail_poll(ep, r, budget, count) || more;
	return more;
}

static void stash_take(struct verbs_ep *ep, int *count)
{
	uint32_t n = ep->stashed;

	ep->stashed = 0;
	all_completed(ep, ep->stash_rail, ep->stash, (int)n);
	*count += (int)n;
}

/* ---- everything else ----------------------------------------------------------------
 */

/* Links that the helper thread gave up: nobody polls while this is done. Mutex. */
static void left_take(struct verbs_ep *ep)
{
	struct list *n;

	while ((n = list_pop_front(&ep->left)))
		list_push_back(&ep->graves, n);
	ep->left_count = 0;
}

static int news_take(struct verbs_ep *ep)
{
	int count = 0;

	for (;;) {
		struct list *n;

		pthread_mutex_lock(&ep->mutex);
		n = list_pop_front(&ep->news);
		if (!n) {
			atomic_store(&ep->has_news, false);
			left_take(ep);
		}
		pthread_mutex_unlock(&ep->mutex);
		if (!n)
			return count;
		count += verbs_link_news(container_of(n, struct verbs_link, news));
	}
}

/* A rail went, came back or is reached otherwise: links are told, and tell their peers;
 * so does the card to who calls from now on. */
static void rail_look(struct verbs_ep *ep, uint32_t r)
{
	const struct verbs_rail *rail = &ep->dom->dev->rail[r];
	struct verbs_ep_rail *er = &ep->rail[r];
	uint32_t moves = atomic_load_explicit(&rail->moves, memory_order_acquire);
	bool up = atomic_load_explicit(&rail->up, memory_order_relaxed);
	bool moved = moves != er->moves;

	if (up == er->was_up && !moved)
		return;
	er->downs += (er->was_up && !up) || moved;
	er->ups += up;
	er->was_up = up;
	er->moves = moves;
	FI_INFO(&weft_provider, FI_LOG_EP_CTRL, "rail %s is %s%s\n", rail->name,
		up ? "up" : "down", moved ? ", with another LID or GID" : "");
	pthread_mutex_lock(&ep->mutex);
	if (moved)
		verbs_dev_card_moved(rail, &ep->card.rail[r]);
	list_foreach (n, &ep->links)
		verbs_link_rail(container_of(n, struct verbs_link, member), r, moved);
	if (up)
		verbs_ports_back(ep, r);
	pthread_mutex_unlock(&ep->mutex);
	/* It says that one is back, or asks one that went. */
	verbs_helper_kick(ep->helper);
}

/* A queue pair of any endpoint of the domain, whose lock is ours: an event is read by
 * whoever looks first. */
static void qp_event(struct ibv_qp *ib, bool last)
{
	struct verbs_qp *qp = ib ? ib->qp_context : NULL;
	struct verbs_link *link;
	uint64_t one = 1;

	if (!qp)
		return;
	if (last)
		qp->last = true;
	link = qp->link;
	if (!link || link->state != VERBS_LINK_UP)
		return;
	/* A lane says what happened by its completions; a control channel that has
	 * nothing under way may have none. */
	if (qp == link->chan.qp)
		link->chan.broken = true;
	verbs_link_chore(link);
	if (write(link->ep->wake, &one, sizeof(one)) < 0)
		return; /* it is full: who sleeps is awake already */
}

static int async_take(struct verbs_ep *ep)
{
	struct verbs_dev *dev = ep->dom->dev;
	struct verbs_event ev;
	int count = 0;

	for (uint32_t r = 0; r < dev->rails; r++) {
		while (!dev->rail[r].shared && verbs_dev_event(dev, r, &ev)) {
			count++;
			if (ev.kind == VERBS_EVENT_QP || ev.kind == VERBS_EVENT_QP_LAST)
				qp_event(ev.qp, ev.kind == VERBS_EVENT_QP_LAST);
			/* Before any lock of those who destroy queue pairs. */
			verbs_dev_event_end(dev, &ev);
		}
	}
	for (uint32_t r = 0; r < dev->rails; r++)
		rail_look(ep, r);
	ep->async_due = verbs_now() + POLL_ASYNC_NS;
	return count;
}

void verbs_poll_async(struct verbs_ep *ep)
{
	ep->async_due = 0;
	ep->turns |= POLL_TIMES - 1;
}

static void disarm(struct verbs_ep *ep)
{
	uint64_t news;

	atomic_store(&ep->armed, false);
	for (uint32_t r = 0; r < ep->dom->dev->rails; r++) {
		struct ibv_cq *cq;
		void *context;

		while (ep->lib->get_cq_event(ep->rail[r].channel, &cq, &context) == 0)
			ep->lib->ack_cq_events(cq, 1);
	}
	if (read(ep->wake, &news, sizeof(news)) < 0)
		return; /* nobody rang */
}

static void times_look(struct verbs_ep *ep)
{
	uint64_t now = verbs_now();

	list_foreach_safe (n, tmp, &ep->timed) {
		struct verbs_link *link = container_of(n, struct verbs_link, timed);

		if (link->due > now)
			continue;
		list_remove(&link->timed);
		verbs_link_chore(link);
	}
	list_foreach_safe (n, tmp, &ep->closing)
		verbs_link_gone(container_of(n, struct verbs_link, where), now);
}

static void graves_clear(struct verbs_ep *ep)
{
	while (!list_empty(&ep->graves))
		verbs_link_free(container_of(ep->graves.next, struct verbs_link, where));
}

/* Each link that has something to do; without `idle` it stays one of them. */
static __attribute__((noinline)) int dirty_run(struct verbs_ep *ep, bool idle)
{
	struct list todo;
	struct list *n;
	int count = 0;

	if (list_empty(&ep->dirty))
		return 0;
	/* Upcalls may make others dirty, and end links. */
	list_init(&todo);
	list_insert_after(ep->dirty.prev, &todo);
	list_unlink(&ep->dirty);
	list_init(&ep->dirty);
	while ((n = list_pop_front(&todo))) {
		struct verbs_link *link = container_of(n, struct verbs_link, dirty);

		count += verbs_link_run(link, idle);
		if (!idle && link->state == VERBS_LINK_UP)
			verbs_link_dirty(link);
	}
	return count;
}

/* Those whose last receive is out are polled once more, and destroyed. */
static int retired_look(struct verbs_ep *ep)
{
	uint64_t now = verbs_now();
	struct list over;
	struct list *n;
	int count = 0;

	list_init(&over);
	pthread_mutex_lock(&ep->mutex);
	list_foreach_safe (n, tmp, &ep->retired) {
		struct verbs_qp *qp = container_of(n, struct verbs_qp, where);

		if (!qp->last && qp->due > now)
			continue;
		list_remove(&qp->where);
		list_push_back(&over, &qp->where);
	}
	atomic_store(&ep->has_retired, !list_empty(&ep->retired));
	pthread_mutex_unlock(&ep->mutex);
	if (list_empty(&over))
		return 0;
	stash_take(ep, &count);
	list_foreach (n, &over) {
		const struct verbs_qp *qp = container_of(n, struct verbs_qp, where);
		const struct verbs_cq *cq = qp->srq ? qp->srq->cq : qp->cq;

		/* What was there when the event came. */
		for (uint32_t i = 0; i <= cq->size / VERBS_POLL; i++)
			if (!cq_poll(ep, qp->rail, cq->ib, &count))
				break;
	}
	pthread_mutex_lock(&ep->mutex);
	while ((n = list_pop_front(&over)))
		verbs_qp_destroy(ep, container_of(n, struct verbs_qp, where));
	pthread_mutex_unlock(&ep->mutex);
	return count;
}

static __attribute__((noinline)) int rare(struct verbs_ep *ep)
{
	uint64_t now = verbs_now();
	int count = verbs_watch(ep, now);

	/* Of ports of which no event was seen links hear as of others. */
	if (count)
		ep->async_due = 0;
	if (atomic_load_explicit(&ep->armed, memory_order_relaxed)) {
		disarm(ep);
		count += async_take(ep);
	} else if (now >= ep->async_due) {
		count += async_take(ep);
	}
	if (atomic_load_explicit(&ep->has_news, memory_order_relaxed))
		count += news_take(ep);
	/* Behind those: that it is so is one of them. */
	if (atomic_exchange(&ep->stirred, false))
		count += async_take(ep);
	if (atomic_load_explicit(&ep->has_retired, memory_order_relaxed))
		count += retired_look(ep);
	if (!list_empty(&ep->timed) || !list_empty(&ep->closing))
		times_look(ep);
	graves_clear(ep);
	return count;
}

/* Whatever there may be, of all queues. */
static __attribute__((noinline)) int progress_all(struct verbs_ep *ep, int budget)
{
	int count = 0;
	bool more;

	if (ep->turns % POLL_TIMES == 0 ||
	    atomic_load_explicit(&ep->armed, memory_order_relaxed) ||
	    atomic_load_explicit(&ep->has_news, memory_order_relaxed))
		count += rare(ep);
	if (ep->stashed)
		stash_take(ep, &count);
	more = cqs_poll(ep, budget > 0 ? budget : 1, &count);
	return count + dirty_run(ep, !more);
}

/* Of one queue, unless it was full; then there may be more. */
static inline __attribute__((always_inline)) int progress_one(struct verbs_ep *ep,
							      struct ibv_cq *cq)
{
	struct ibv_wc wc[VERBS_POLL];
	int n = ibv_poll_cq(cq, VERBS_POLL, wc);

	if (n <= 0)
		return 0;
	all_completed(ep, 0, wc, n);
	return n;
}

/* Mostly there is one queue, and nothing to do but what is in it. Where something is
 * stashed it is armed as well. */
int verbs_progress(struct wire_ep *wep, int budget)
{
	struct verbs_ep *ep = verbs_ep_of(wep);
	struct ibv_cq *only = atomic_load_explicit(&ep->only, memory_order_acquire);
	int n;

	if (__builtin_expect(
		    ++ep->turns % POLL_TIMES == 0 || !only ||
			    atomic_load_explicit(&ep->armed, memory_order_relaxed) ||
			    atomic_load_explicit(&ep->has_news, memory_order_relaxed),
		    0))
		return progress_all(ep, budget);
	n = progress_one(ep, only);
	if (__builtin_expect(n == (int)VERBS_POLL, 0))
		return n + progress_all(ep, 3 * (int)VERBS_POLL);
	return __builtin_expect(list_empty(&ep->dirty), 1) ? n : n + dirty_run(ep, true);
}

int verbs_poll_now(struct verbs_ep *ep)
{
	int count = 0;

	stash_take(ep, &count);
	cqs_poll(ep, INT32_MAX, &count);
	return count;
}

int verbs_poll_closing(struct verbs_ep *ep, bool now)
{
	int count = verbs_poll_now(ep);

	list_foreach_safe (n, tmp, &ep->closing)
		count += verbs_link_gone(container_of(n, struct verbs_link, where),
					 now ? UINT64_MAX : verbs_now());
	pthread_mutex_lock(&ep->mutex);
	left_take(ep);
	pthread_mutex_unlock(&ep->mutex);
	graves_clear(ep);
	return count;
}

/* ---- sleeping -----------------------------------------------------------------------
 */

/* Arming must not call upwards: what it finds waits for progress. */
static bool stash_fill(struct verbs_ep *ep)
{
	for (uint32_t r = 0; r < ep->dom->dev->rails; r++) {
		struct verbs_ep_rail *er = &ep->rail[r];
		uint32_t cqs = atomic_load_explicit(&er->cqs, memory_order_acquire);

		for (uint32_t i = 0; i < cqs; i++) {
			int n = ibv_poll_cq(er->cq[i]->ib, VERBS_POLL, ep->stash);

			if (n > 0) {
				ep->stashed = (uint32_t)n;
				ep->stash_rail = r;
				return true;
			}
		}
	}
	return false;
}

int verbs_arm(struct wire_ep *wep)
{
	struct verbs_ep *ep = verbs_ep_of(wep);

	if (ep->stashed || !list_empty(&ep->dirty))
		return -FI_EAGAIN;
	atomic_store(&ep->armed, true);
	verbs_cqs_notify(ep);
	if (stash_fill(ep) || atomic_load(&ep->has_news))
		return -FI_EAGAIN;
	return 0;
}

int verbs_fd(struct wire_ep *wep)
{
	return verbs_ep_of(wep)->epoll;
}

uint64_t verbs_look_due(struct wire_ep *wep)
{
	struct verbs_ep *ep = verbs_ep_of(wep);
	uint64_t due = verbs_watch_due(ep);

	list_foreach (n, &ep->timed)
		if (container_of(n, struct verbs_link, timed)->due < due)
			due = container_of(n, struct verbs_link, timed)->due;
	list_foreach (n, &ep->closing)
		if (container_of(n, struct verbs_link, where)->due < due)
			due = container_of(n, struct verbs_link, where)->due;
	return due;
}
