/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: made, connected, ended; completion queues for them. Rules C1, C2, C8. */
#include "config.h"

#include "prov/wire/verbs/verbs_qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_ep.h"
#include "prov/wire/verbs/verbs_ooo.h"
#include "prov/wire/verbs/verbs_reaper.h"
#include "prov/wire/verbs/verbs_srq.h"

/* 4.096 us * 2^17 = 0.54 s for an acknowledgement, seven times; a receiver that isn't
 * ready is waited for as long as it lives. Where acknowledgements come later than that
 * everything is sent again, lane by lane, which makes a slow path slower: many lanes with
 * large segments want more time than one queue pair. A path that dies without its port is
 * noticed after some 4 s; ports, queue pairs and hosts that go say so. */
#define QP_TIMEOUT   17
#define QP_RETRIES   6 /* rxe takes 7 for: without end */
#define QP_RNR_RETRY 7
#define QP_RNR_TIMER 12 /* 0.64 ms */

/* A device that doesn't say when a queue pair's last receive is out. */
#define QP_LAST_NS UINT64_C(5000000000)

/* ---- completion queues --------------------------------------------------------------
 */

static struct verbs_cq *cq_open(struct verbs_ep *ep, uint32_t r, uint32_t need)
{
	const struct verbs_rail *rail = &ep->dom->dev->rail[r];
	struct verbs_ep_rail *er = &ep->rail[r];
	uint32_t count = atomic_load_explicit(&er->cqs, memory_order_relaxed);
	struct verbs_cq *cq;

	if (count == VERBS_CQS_MAX)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->size = need > VERBS_CQ_SIZE ? need : VERBS_CQ_SIZE;
	if (cq->size > rail->limits.cqe && rail->limits.cqe >= need)
		cq->size = rail->limits.cqe;
	cq->ib = ep->lib->create_cq(rail->context, (int)cq->size, NULL, er->channel, 0);
	if (!cq->ib) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"%s: a completion queue of %u entries, the %uth: %s\n",
			rail->name, cq->size, count + 1, strerror(errno));
		free(cq);
		return NULL;
	}
	er->cq[count] = cq;
	/* Who arms says so first and looks at the count then (verbs_cqs_notify): one of
	 * the two sees the other, since neither order is given up for a faster one. */
	atomic_store(&er->cqs, count + 1);
	atomic_store_explicit(&ep->only,
			      count == 0 && ep->dom->dev->rails == 1 ? cq->ib : NULL,
			      memory_order_release);
	if (atomic_load(&ep->armed))
		ibv_req_notify_cq(cq->ib, 0);
	return cq;
}

/* One that has room for so many completions: never more can come than it holds. */
struct verbs_cq *verbs_cq_get(struct verbs_ep *ep, uint32_t r, uint32_t need)
{
	struct verbs_ep_rail *er = &ep->rail[r];
	uint32_t count = atomic_load_explicit(&er->cqs, memory_order_relaxed);
	struct verbs_cq *cq = NULL;

	for (uint32_t i = 0; i < count && !cq; i++)
		if (er->cq[i]->size - er->cq[i]->used >= need)
			cq = er->cq[i];
	if (!cq)
		cq = cq_open(ep, r, need);
	if (cq)
		cq->used += need;
	return cq;
}

void verbs_cq_put(struct verbs_cq *cq, uint32_t need)
{
	cq->used -= need;
}

void verbs_cqs_notify(struct verbs_ep *ep)
{
	for (uint32_t r = 0; r < ep->dom->dev->rails; r++) {
		struct verbs_ep_rail *er = &ep->rail[r];
		uint32_t count = atomic_load(&er->cqs);

		for (uint32_t i = 0; i < count; i++)
			ibv_req_notify_cq(er->cq[i]->ib, 0);
	}
}

void verbs_cqs_close(struct verbs_ep *ep)
{
	for (uint32_t r = 0; r < ep->dom->dev->rails; r++) {
		struct verbs_ep_rail *er = &ep->rail[r];
		uint32_t count = atomic_load_explicit(&er->cqs, memory_order_relaxed);

		for (uint32_t i = 0; i < count; i++) {
			int err = ep->lib->destroy_cq(er->cq[i]->ib);

			if (err)
				FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
					"%s: destroying a completion queue: %s\n",
					ep->dom->dev->rail[r].name, strerror(err));
			free(er->cq[i]);
		}
		atomic_store_explicit(&er->cqs, 0, memory_order_relaxed);
		atomic_store_explicit(&ep->only, NULL, memory_order_relaxed);
	}
}

/* ---- slots --------------------------------------------------------------------------
 */

static bool slot_take(struct verbs_ep *ep, struct verbs_qp *qp)
{
	for (uint32_t i = 0; i < ep->slots_made; i++) {
		uint32_t slot = (ep->slot_hint + i) % ep->slots_made;

		if (atomic_load_explicit(verbs_slot_at(ep, slot), memory_order_relaxed))
			continue;
		qp->slot = (uint16_t)slot;
		qp->name = (uint64_t)qp->gen << 48 | (uint64_t)slot << 32;
		ep->slot_hint = slot + 1;
		atomic_store_explicit(verbs_slot_at(ep, slot), qp, memory_order_release);
		return true;
	}
	if (ep->slots_made == VERBS_QP_SLOTS)
		return false;
	ep->slots[ep->slots_made / VERBS_QP_CHUNK] =
		calloc(VERBS_QP_CHUNK, sizeof(*ep->slots[0]));
	if (!ep->slots[ep->slots_made / VERBS_QP_CHUNK])
		return false;
	ep->slots_made += VERBS_QP_CHUNK;
	ep->slot_hint = ep->slots_made - VERBS_QP_CHUNK;
	return slot_take(ep, qp);
}

/* ---- numbers ------------------------------------------------------------------------
 */

static bool number_set(struct verbs_ep *ep, struct verbs_qp *qp)
{
	struct verbs_ep_rail *er = &ep->rail[qp->rail];
	uint32_t n = qp->ib->qp_num, c = n / VERBS_QPN_CHUNK % VERBS_QPN_CHUNKS;
	_Atomic(struct verbs_qp *) *chunk;

	if (!er->numbered)
		er->numbered = calloc(VERBS_QPN_CHUNKS, sizeof(*er->numbered));
	if (!er->numbered)
		return false;
	chunk = atomic_load_explicit(&er->numbered[c], memory_order_relaxed);
	if (!chunk) {
		chunk = calloc(VERBS_QPN_CHUNK, sizeof(*chunk));
		if (!chunk)
			return false;
		atomic_store_explicit(&er->numbered[c], chunk, memory_order_release);
	}
	atomic_store_explicit(&chunk[n % VERBS_QPN_CHUNK], qp, memory_order_release);
	return true;
}

static void number_clear(struct verbs_ep *ep, const struct verbs_qp *qp)
{
	uint32_t n = qp->ib->qp_num, c = n / VERBS_QPN_CHUNK % VERBS_QPN_CHUNKS;

	atomic_store_explicit(&ep->rail[qp->rail].numbered[c][n % VERBS_QPN_CHUNK], NULL,
			      memory_order_release);
}

void verbs_numbers_close(struct verbs_ep *ep)
{
	for (uint32_t r = 0; r < ep->dom->dev->rails; r++) {
		struct verbs_ep_rail *er = &ep->rail[r];

		for (uint32_t c = 0; er->numbered && c < VERBS_QPN_CHUNKS; c++)
			free(er->numbered[c]);
		free(er->numbered);
		er->numbered = NULL;
	}
}

/* ---- queue pairs --------------------------------------------------------------------
 */

static int qp_fail(const struct verbs_ep *ep, uint32_t rail, const char *what, int err)
{
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "%s: %s: %s\n",
		ep->dom->dev->rail[rail].name, what, strerror(err));
	return err == ENOMEM ? -FI_ENOMEM : -FI_EIO;
}

static uint32_t inline_wish(const struct verbs_rail *rail)
{
	return rail->limits.inlined < VERBS_INLINE_MAX ? rail->limits.inlined
						       : VERBS_INLINE_MAX;
}

uint32_t verbs_qp_inlined(const struct verbs_ep *ep)
{
	uint32_t least = VERBS_INLINE_MAX;

	for (uint32_t r = 0; r < ep->dom->dev->rails; r++)
		if (inline_wish(&ep->dom->dev->rail[r]) < least)
			least = inline_wish(&ep->dom->dev->rail[r]);
	return least;
}

static int qp_create(struct verbs_ep *ep, struct verbs_qp *qp,
		     const struct verbs_qp_attr *attr)
{
	const struct verbs_rail *rail = &ep->dom->dev->rail[attr->rail];
	struct ibv_qp_init_attr init = {
		.qp_context = qp,
		.send_cq = qp->cq->ib,
		.recv_cq = qp->srq ? qp->srq->cq->ib : qp->cq->ib,
		.srq = qp->srq ? qp->srq->ib : NULL,
		.cap = {.max_send_wr = attr->sends,
			.max_recv_wr = qp->srq ? 0 : attr->receives,
			.max_send_sge = attr->sge,
			.max_recv_sge = qp->srq ? 0 : 1,
			.max_inline_data = inline_wish(rail)},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 0,
	};
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT,
				 .pkey_index = rail->pkey_index,
				 .port_num = rail->port,
				 .qp_access_flags = IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_WRITE};
	int err;

	if (ep->dom->dev->native)
		to.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	qp->ib = attr->ooo ? verbs_ooo_create_qp(rail->pd, &init)
			   : ep->lib->create_qp(rail->pd, &init);
	if (!qp->ib)
		return qp_fail(ep, attr->rail, "no further queue pair", errno);
	qp->inline_max = init.cap.max_inline_data;
	err = ep->lib->modify_qp(qp->ib, &to,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS);
	if (err) {
		ep->lib->destroy_qp(qp->ib);
		return qp_fail(ep, attr->rail, "queue pair to INIT", err);
	}
	return 0;
}

/* By what completions name it. */
static int qp_name(struct verbs_ep *ep, struct verbs_qp *qp)
{
	bool numbered = qp->srq && number_set(ep, qp);

	if ((numbered || !qp->srq) && slot_take(ep, qp))
		return 0;
	if (numbered)
		number_clear(ep, qp);
	ep->lib->destroy_qp(qp->ib);
	return -FI_ENOMEM;
}

int verbs_qp_open(struct verbs_ep *ep, struct verbs_link *link,
		  const struct verbs_qp_attr *attr, struct verbs_qp **out)
{
	uint32_t room = 1, need = attr->sends + (attr->srq ? 0 : attr->receives);
	struct verbs_qp *qp;
	int ret;

	while (room < attr->sends)
		room *= 2;
	qp = calloc(1, sizeof(*qp) + room * sizeof(qp->cookie[0]));
	if (!qp)
		return -FI_ENOMEM;
	list_init(&qp->where);
	qp->link = link;
	qp->srq = attr->srq;
	qp->rail = (uint8_t)attr->rail;
	qp->lane = attr->lane;
	qp->incarnation = attr->incarnation;
	qp->sq_depth = attr->sends;
	qp->sq_mask = room - 1;
	qp->gen = ++ep->gens;
	if (getrandom(&qp->psn, sizeof(qp->psn), 0) < 0)
		qp->psn = (uint32_t)verbs_now();
	qp->psn &= 0xffffff;
	qp->cq = verbs_cq_get(ep, attr->rail, need);
	if (!qp->cq) {
		free(qp);
		return -FI_ENOMEM;
	}
	ret = qp_create(ep, qp, attr);
	if (ret == 0)
		ret = qp_name(ep, qp);
	if (ret) {
		verbs_cq_put(qp->cq, need);
		free(qp);
		return ret;
	}
	qp->receives_max = attr->receives;
	*out = qp;
	return 0;
}

void verbs_qp_end(const struct verbs_ep *ep, const struct verbs_qp *qp)
{
	int err = ep->lib->destroy_qp(qp->ib);

	if (err)
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"%s: destroying a queue pair: %s\n",
			ep->dom->dev->rail[qp->rail].name, strerror(err));
}

void verbs_qp_free(struct verbs_ep *ep, struct verbs_qp *qp)
{
	struct verbs_buf *b;

	verbs_cq_put(qp->cq, qp->sq_depth + (qp->srq ? 0 : qp->receives_max));
	if (qp->srq)
		verbs_srq_put(ep, qp->srq, qp->receives_max, qp->receives_extra);
	if (qp->scratch)
		verbs_buf_put(&ep->receives, qp->scratch);
	if (qp->results)
		verbs_buf_put(&ep->receives, qp->results);
	while ((b = qp->own)) {
		qp->own = b->next;
		verbs_buf_put(&ep->receives, b);
	}
	free(qp);
}

/* Nothing of it reads or writes memory from now on, nor of the peer's, although it is
 * still there. */
static bool qp_hush(const struct verbs_ep *ep, const struct verbs_qp *qp)
{
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_RESET};

	return (qp->state == VERBS_QP_ERROR && verbs_qp_is_quiet(qp)) ||
	       ep->lib->modify_qp(qp->ib, &to, IBV_QP_STATE) == 0;
}

void verbs_qp_destroy(struct verbs_ep *ep, struct verbs_qp *qp)
{
	list_remove(&qp->where);
	/* Before another has its number. */
	if (qp->srq)
		number_clear(ep, qp);
	qp->link = NULL;
	if (qp->lost && qp_hush(ep, qp)) {
		atomic_store_explicit(verbs_slot_at(ep, qp->slot), NULL,
				      memory_order_release);
		if (verbs_reaper_take(ep, qp))
			return;
	}
	verbs_qp_end(ep, qp);
	atomic_store_explicit(verbs_slot_at(ep, qp->slot), NULL, memory_order_release);
	verbs_qp_free(ep, qp);
}

void verbs_qp_close(struct verbs_ep *ep, struct verbs_qp *qp)
{
	if (!qp->srq || !qp->connected) {
		verbs_qp_destroy(ep, qp);
		return;
	}
	verbs_qp_error(ep, qp);
	qp->link = NULL;
	qp->due = verbs_now() + QP_LAST_NS;
	list_push_back(&ep->retired, &qp->where);
	atomic_store(&ep->has_retired, true);
}

bool verbs_qp_unheard(const struct verbs_qp *qp)
{
	return qp->srq && !qp->connected;
}

void verbs_qp_leave(struct verbs_ep *ep, struct verbs_qp *qp)
{
	if (verbs_qp_unheard(qp)) {
		verbs_qp_destroy(ep, qp);
		return;
	}
	if (qp->connected)
		verbs_qp_error(ep, qp);
	qp->link = NULL;
	qp->due = verbs_now() + QP_LAST_NS;
	/* Of its own receives none is lost to others. */
	if (!qp->srq)
		qp->last = true;
	list_push_back(&ep->retired, &qp->where);
	atomic_store(&ep->has_retired, true);
}

int verbs_qp_connect(struct verbs_ep *ep, struct verbs_qp *qp,
		     const struct verbs_card *card, uint32_t peer_rail, uint32_t qpn,
		     uint32_t psn, uint8_t traffic_class)
{
	const struct verbs_card_rail *peer = &card->rail[peer_rail];
	const struct verbs_rail *rail = &ep->dom->dev->rail[qp->rail];
	uint32_t reads = rail->limits.init_rd_atomic;
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTR,
				 .path_mtu = verbs_dev_mtu(rail, peer),
				 .dest_qp_num = qpn,
				 .rq_psn = psn,
				 .max_dest_rd_atomic = (uint8_t)rail->limits.rd_atomic,
				 .min_rnr_timer = QP_RNR_TIMER};
	int err;

	if (!verbs_dev_near(rail, peer)) {
		FI_INFO(&weft_provider, FI_LOG_EP_CTRL,
			"%s: the hardware address of the peer isn't known: it is asked "
			"for\n",
			rail->name);
		return -FI_EAGAIN;
	}
	qp->connected = true;
	verbs_dev_path(rail, peer, traffic_class, &to.ah_attr);
	err = ep->lib->modify_qp(
		qp->ib, &to,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (err)
		return qp_fail(ep, qp->rail, "queue pair to RTR", err);
	if (reads > peer->rd_atomic)
		reads = peer->rd_atomic;
	to = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				  .timeout = QP_TIMEOUT,
				  .retry_cnt = QP_RETRIES,
				  .rnr_retry = QP_RNR_RETRY,
				  .sq_psn = qp->psn,
				  .max_rd_atomic = (uint8_t)reads};
	err = ep->lib->modify_qp(qp->ib, &to,
				 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					 IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		return qp_fail(ep, qp->rail, "queue pair to RTS", err);
	qp->peer_rail = (uint8_t)peer_rail;
	qp->state = VERBS_QP_READY;
	return 0;
}

void verbs_qp_error(struct verbs_ep *ep, struct verbs_qp *qp)
{
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_ERR};
	int err;

	if (qp->state == VERBS_QP_ERROR)
		return;
	qp->state = VERBS_QP_ERROR;
	err = ep->lib->modify_qp(qp->ib, &to, IBV_QP_STATE);
	/* A device that is gone flushes by itself, or never: see verbs_lane.c. */
	if (err)
		qp_fail(ep, qp->rail, "queue pair to ERR", err);
}

bool verbs_qp_stop(struct verbs_ep *ep, struct verbs_qp *qp)
{
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_ERR};
	int err = ep->lib->modify_qp(qp->ib, &to, IBV_QP_STATE);

	if (err)
		qp_fail(ep, qp->rail, "queue pair to ERR", err);
	return err == 0;
}

int verbs_qp_receive(struct verbs_qp *qp, uint32_t count)
{
	struct ibv_recv_wr wr = {.wr_id = verbs_wr_id(qp, (uint32_t)VERBS_WR_RECV)};
	struct ibv_recv_wr *bad;

	for (uint32_t i = 0; i < count; i++) {
		if (ibv_post_recv(qp->ib, &wr, &bad))
			return -FI_EIO;
		qp->receives++;
	}
	return 0;
}
