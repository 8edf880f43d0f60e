/* SPDX-License-Identifier: BSD-2-Clause */
/* The control channel's queue pair: packets out and in. Rules B1, B3, C8. */
#include "config.h"

#include "prov/wire/verbs/verbs_chan.h"

#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_resume.h"

/* A queue pair's scratch buffer: what reads bring, acknowledgements. */
#define CHAN_ACK_SIZE 32u
#define CHAN_ACKS_AT  (2 * VERBS_CHAN_READ_MAX)
/* What a read brings that only asks whether it is answered. */
#define CHAN_PROBE 8u

/* Of the send queue: what is numbered, acknowledgements, reads. */
#define CHAN_READS  3u
#define CHAN_SENDS  (VERBS_CREDITS + VERBS_CHAN_ACKS + CHAN_READS)
#define CHAN_SIGNAL 16u /* every so many are signalled */

/* Receives that a peer with such a window may use. */
#define CHAN_RECEIVES(window) ((window) + VERBS_CTL_SPARE)
/* A link that got no larger window asks again after so many packets. */
#define CHAN_GROW_PAUSE 1024u
/* There is no memory to send from. */
#define CHAN_NAP_NS UINT64_C(10000000)

_Static_assert(VERBS_CREDITS >= VERBS_CTL_WINDOW_MIN &&
		       VERBS_CREDITS <= VERBS_CTL_WINDOW_MAX,
	       "VERBS_CREDITS");
_Static_assert(DQPLB_MSG_MAX <= VERBS_PACKET, "dqplb's messages are packets");
_Static_assert(sizeof(struct verbs_ctl_head) + VERBS_PACKET <= VERBS_BUF_SIZE,
	       "a packet fits a buffer");
_Static_assert(CHAN_ACKS_AT + VERBS_CHAN_ACKS * CHAN_ACK_SIZE <= VERBS_BUF_SIZE,
	       "scratch");

void verbs_chan_init(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;

	link->slot.room = -1;
	c->wr.opcode = IBV_WR_SEND;
	c->wr.sg_list = &c->sge;
	c->wr.num_sge = 1;
}

void verbs_chan_fini(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;

	for (uint32_t i = 0; i < VERBS_CREDITS; i++)
		if (c->slot[i])
			verbs_buf_put(&link->ep->sends, c->slot[i]);
}

/* ---- receives -----------------------------------------------------------------------
 */

static __attribute__((noinline)) int receive_post_own(struct verbs_qp *qp,
						      const struct verbs_buf *buf)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf->bytes,
			      .length = VERBS_BUF_SIZE,
			      .lkey = buf->lkey[qp->rail]};
	struct ibv_recv_wr wr = {
		.wr_id = verbs_wr_id(qp, (uint32_t)VERBS_WR_RECV | buf->index),
		.sg_list = &sge,
		.num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(qp->ib, &wr, &bad) ? -FI_EIO : 0;
}

static inline int receive_post(struct verbs_qp *qp, struct verbs_buf *buf)
{
	return qp->srq ? verbs_srq_post(qp->srq, buf) : receive_post_own(qp, buf);
}

static int receives_own(struct verbs_ep *ep, struct verbs_qp *qp, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct verbs_buf *buf = verbs_buf_get(&ep->receives);

		if (!buf)
			return -FI_ENOMEM;
		buf->next = qp->own;
		qp->own = buf;
		if (receive_post(qp, buf))
			return -FI_EIO;
	}
	return 0;
}

int verbs_chan_open(struct verbs_link *link, uint32_t rail, struct verbs_qp **out)
{
	struct verbs_ep *ep = link->ep;
	struct verbs_chan *c = &link->chan;
	struct verbs_qp_attr attr = {
		.rail = rail, .sends = CHAN_SENDS, .sge = 1, .lane = VERBS_LANE_CONTROL};
	struct verbs_qp *qp;
	uint32_t extra;
	int ret;

	if (ep->dom->dev->native)
		attr.sends += VERBS_ATOMICS;
	/* Another queue pair's: the peer has its window. */
	if (c->ctl.grant)
		c->grant = c->ctl.grant;
	else
		c->grant = VERBS_CTL_WINDOW_MIN;
	attr.receives = CHAN_RECEIVES(c->grant);
	extra = c->grant - VERBS_CTL_WINDOW_MIN;
	attr.srq = verbs_srq_get(ep, rail, attr.receives, extra);
	if (!attr.srq) {
		if (!c->ctl.grant)
			c->grant = VERBS_CREDITS;
		attr.receives = CHAN_RECEIVES(c->grant);
	}
	ret = verbs_qp_open(ep, link, &attr, &qp);
	if (ret) {
		if (attr.srq)
			verbs_srq_put(ep, attr.srq, attr.receives, extra);
		return ret;
	}
	c->probed = false;
	qp->receives_extra = attr.srq ? extra : 0;
	qp->scratch = verbs_buf_get(&ep->receives);
	if (ep->dom->dev->native)
		qp->results = verbs_buf_get(&ep->receives);
	if (!qp->scratch || (ep->dom->dev->native && !qp->results))
		ret = -FI_ENOMEM;
	else if (!qp->srq)
		ret = receives_own(ep, qp, attr.receives);
	if (ret) {
		verbs_qp_leave(ep, qp);
		return ret;
	}
	*out = qp;
	return 0;
}

/* It has used all that it may: it gets as much again, if there is so much. */
static __attribute__((noinline)) void grow(struct verbs_link *link, uint64_t heard)
{
	struct verbs_chan *c = &link->chan;
	struct verbs_ep *ep = link->ep;
	uint32_t more = c->ctl.grant;
	bool got = false;

	if (more > VERBS_CREDITS - c->ctl.grant)
		more = VERBS_CREDITS - c->ctl.grant;
	if (more == 0 || !c->qp || !c->qp->srq) {
		c->grow_at = UINT64_MAX;
		return;
	}
	pthread_mutex_lock(&ep->mutex);
	got = verbs_srq_more(ep, c->qp->srq, more);
	pthread_mutex_unlock(&ep->mutex);
	if (got) {
		c->qp->receives_max += more;
		c->qp->receives_extra += more;
		verbs_ctl_grant(&c->ctl, c->ctl.grant + more);
	}
	c->grow_at = heard + (got ? c->ctl.grant : CHAN_GROW_PAUSE);
}

/* ---- out ----------------------------------------------------------------------------
 */

/* The queue pair can be posted on. */
static inline bool can_post(const struct verbs_chan *c)
{
	return c->qp && c->qp->state == VERBS_QP_READY && !c->broken && !c->hold &&
	       verbs_qp_sq_room(c->qp) > 0;
}

static __attribute__((noinline)) void chan_break(struct verbs_link *link)
{
	link->chan.broken = true;
	verbs_link_dirty(link);
}

/* One request. */
static inline bool post(struct verbs_link *link, struct ibv_send_wr *wr,
			enum verbs_chan_cookie cookie)
{
	struct verbs_qp *qp = link->chan.qp;
	struct ibv_send_wr *bad;

	wr->wr_id = verbs_wr_id(qp, qp->sq_head & qp->sq_mask);
	if (cookie != VERBS_CHAN_PACKET || qp->sq_head % CHAN_SIGNAL == 0 ||
	    verbs_qp_sq_room(qp) <= CHAN_SIGNAL)
		wr->send_flags |= IBV_SEND_SIGNALED;
	if (__builtin_expect(ibv_post_send(qp->ib, wr, &bad), 0)) {
		chan_break(link);
		return false;
	}
	qp->cookie[qp->sq_head++ & qp->sq_mask] = cookie;
	return true;
}

/* Says what was heard, and how far the peer may go, in the last moment. */
static inline bool post_bytes(struct verbs_link *link, const struct verbs_buf *buf,
			      char *mem, uint32_t len, enum verbs_ctl_kind kind,
			      uint64_t number, enum verbs_chan_cookie cookie)
{
	struct verbs_chan *c = &link->chan;

	verbs_ctl_write(mem, kind, c->ctl.grant, number, verbs_ctl_tell(&c->ctl));
	c->sge.addr = (uintptr_t)mem;
	c->sge.length = len;
	/* Bytes that go with the request need no key. */
	c->wr.send_flags = IBV_SEND_INLINE;
	if (len > c->qp->inline_max) {
		c->wr.send_flags = 0;
		c->sge.lkey = buf->lkey[c->qp->rail];
	}
	return post(link, &c->wr, cookie);
}

static void send_queued(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;
	uint64_t number;

	while (c->ctl.sent != c->ctl.nxt && can_post(c) &&
	       verbs_ctl_next(&c->ctl, &number)) {
		struct verbs_buf *buf = c->slot[number % VERBS_CREDITS];
		const struct verbs_ctl_head *head = (const void *)buf->bytes;

		if (post_bytes(link, buf, buf->bytes, c->len[number % VERBS_CREDITS],
			       head->kind, number,
			       head->kind == VERBS_CTL_BYE ? VERBS_CHAN_BYE
							   : VERBS_CHAN_PACKET))
			continue;
		verbs_ctl_unsent(&c->ctl);
		return;
	}
}

void verbs_chan_flush(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;
	char *mem;

	if (c->ctl.sent == c->ctl.nxt && !verbs_ctl_due(&c->ctl))
		return;
	if (link->state != VERBS_LINK_UP && link->state != VERBS_LINK_CLOSING)
		return;
	send_queued(link);
	if (!verbs_ctl_due(&c->ctl) || !can_post(c))
		return;
	mem = c->qp->scratch->bytes + CHAN_ACKS_AT +
	      c->acks++ % VERBS_CHAN_ACKS * CHAN_ACK_SIZE;
	post_bytes(link, c->qp->scratch, mem, sizeof(struct verbs_ctl_head),
		   VERBS_CTL_ACK, 0, VERBS_CHAN_PACKET);
}

bool verbs_chan_ready(struct verbs_link *link, enum verbs_ctl_class cls)
{
	struct verbs_chan *c = &link->chan;

	if (!verbs_ctl_room(&c->ctl, cls) || c->bye_sent)
		return false;
	if (c->slot[c->ctl.nxt % VERBS_CREDITS] || link->ep->sends.free ||
	    verbs_bufs_grow(&link->ep->sends) == 0)
		return true;
	/* Whoever has some gives them back. */
	verbs_link_wake(link, verbs_now() + CHAN_NAP_NS);
	return false;
}

void *verbs_chan_reserve(struct verbs_link *link, enum verbs_ctl_class cls)
{
	struct verbs_buf **slot = &link->chan.slot[link->chan.ctl.nxt % VERBS_CREDITS];

	if (!verbs_chan_ready(link, cls)) {
		link->chan.waits++;
		return NULL;
	}
	if (!*slot)
		*slot = verbs_buf_get(&link->ep->sends);
	return (*slot)->bytes + sizeof(struct verbs_ctl_head);
}

/* What the next packet of data may be written into without being asked for. */
static inline void slot_show(struct verbs_link *link, enum verbs_link_state state)
{
	struct verbs_chan *c = &link->chan;
	struct verbs_buf **slot = &c->slot[c->ctl.nxt % VERBS_CREDITS];

	link->slot.room = -1;
	if (!verbs_ctl_room(&c->ctl, VERBS_CTL_DATA) || state != VERBS_LINK_UP)
		return;
	if (!*slot) {
		if (!link->ep->sends.free)
			return;
		*slot = verbs_buf_get(&link->ep->sends);
	}
	link->slot.at = (*slot)->bytes + sizeof(struct verbs_ctl_head);
	link->slot.room = (int64_t)link->base.caps.max_packet;
}

void verbs_chan_up(struct verbs_link *link)
{
	slot_show(link, link->state);
}

static inline __attribute__((always_inline)) void commit(struct verbs_link *link,
							 enum verbs_ctl_kind kind,
							 size_t len)
{
	enum verbs_link_state state =
		atomic_load_explicit(&link->state, memory_order_relaxed);
	struct verbs_chan *c = &link->chan;
	uint64_t number = verbs_ctl_take(&c->ctl);
	struct verbs_buf *buf = c->slot[number % VERBS_CREDITS];
	uint32_t whole = (uint32_t)(sizeof(struct verbs_ctl_head) + len);

	c->len[number % VERBS_CREDITS] = whole;
	/* As a rule nothing waits before it. */
	if (__builtin_expect(state == VERBS_LINK_UP && c->ctl.sent == number &&
				     can_post(c) && kind != VERBS_CTL_BYE,
			     1)) {
		verbs_ctl_next(&c->ctl, &number);
		if (!post_bytes(link, buf, buf->bytes, whole, kind, number,
				VERBS_CHAN_PACKET))
			verbs_ctl_unsent(&c->ctl);
	} else {
		/* The rest of its head is said when it leaves. */
		verbs_ctl_write(buf->bytes, kind, 0, number, 0);
		if (state == VERBS_LINK_UP || state == VERBS_LINK_CLOSING)
			send_queued(link);
	}
	slot_show(link, state);
}

void verbs_chan_commit(struct verbs_link *link, enum verbs_ctl_kind kind, size_t len)
{
	link->chan.bye_sent = link->chan.bye_sent || kind == VERBS_CTL_BYE;
	commit(link, kind, len);
}

void *verbs_pkt_reserve(struct wire_link *wlink, size_t len, enum wire_class cls)
{
	struct verbs_link *link = verbs_link_of(wlink);

	if (link->state != VERBS_LINK_UP || len > link->base.caps.max_packet)
		return NULL;
	return verbs_chan_reserve(link,
				  cls == WIRE_DATA ? VERBS_CTL_DATA : VERBS_CTL_CONTROL);
}

void verbs_pkt_commit(struct wire_link *wlink, void *pkt, size_t len)
{
	(void)pkt;
	commit(verbs_link_of(wlink), VERBS_CTL_PACKET, len);
}

bool verbs_chan_can_read(const struct verbs_link *link, uint32_t count)
{
	return can_post(&link->chan) && verbs_qp_sq_room(link->chan.qp) >= count;
}

bool verbs_chan_read(struct verbs_link *link, unsigned at, uint64_t addr, uint32_t rkey,
		     size_t len, bool signal)
{
	struct verbs_chan *c = &link->chan;
	struct ibv_sge sge = {.length = (uint32_t)len};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = addr, .rkey = rkey}};

	if (!can_post(c))
		return false;
	sge.addr = (uintptr_t)c->qp->scratch->bytes + at * VERBS_CHAN_READ_MAX;
	sge.lkey = c->qp->scratch->lkey[c->qp->rail];
	return post(link, &wr, signal ? VERBS_CHAN_READ : VERBS_CHAN_PACKET);
}

bool verbs_chan_atomic(struct verbs_link *link, uint32_t at, uint64_t addr, uint32_t rkey,
		       const struct wire_atomic *a)
{
	struct verbs_chan *c = &link->chan;
	struct ibv_sge sge = {.length = sizeof(uint64_t)};
	struct ibv_send_wr wr = {
		.opcode = a->compare ? IBV_WR_ATOMIC_CMP_AND_SWP
				     : IBV_WR_ATOMIC_FETCH_AND_ADD,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.atomic = {.remote_addr = addr,
			      .rkey = rkey,
			      .compare_add = a->compare ? a->expect : a->operand,
			      .swap = a->operand}};

	if (!can_post(c) || !c->qp->results)
		return false;
	sge.addr = (uintptr_t)c->qp->results->bytes + at * sizeof(uint64_t);
	sge.lkey = c->qp->results->lkey[c->qp->rail];
	return post(link, &wr, VERBS_CHAN_ATOMIC);
}

uint64_t verbs_chan_result(const struct verbs_link *link, uint32_t at)
{
	uint64_t was;

	memcpy(&was, link->chan.qp->results->bytes + at * sizeof(was), sizeof(was));
	return was;
}

void verbs_chan_probe(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;
	const struct verbs_mr *bin = link->ep->dom->bin;
	struct ibv_sge sge = {.addr = bin->start, .length = CHAN_PROBE};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = link->peer.table_addr}};

	if (c->probed || !can_post(c))
		return;
	sge.lkey = bin->lkey[c->qp->rail];
	wr.wr.rdma.rkey = link->peer.rail[c->qp->peer_rail].table_key;
	c->probed = post(link, &wr, VERBS_CHAN_PROBE);
}

const void *verbs_chan_read_at(const struct verbs_link *link, unsigned at)
{
	return link->chan.qp->scratch->bytes + at * VERBS_CHAN_READ_MAX;
}

/* ---- in -----------------------------------------------------------------------------
 */

static int dqplb_take(struct verbs_link *link, const void *bytes, size_t len)
{
	struct dqplb_msg *m = &link->ep->heard;
	int ret = dqplb_msg_parse(bytes, len, m);

	if (ret)
		return -EPROTO;
	link->stirred = STIRRED_TX | STIRRED_RX;
	if (m->kind == DQPLB_MSG_RECORD || m->kind == DQPLB_MSG_VOID)
		return dqplb_rx_msg(link->rx, m);
	ret = dqplb_tx_msg(link->tx, m);
	if (ret == 0 && m->kind == DQPLB_MSG_REPORT)
		verbs_lanes_reported(link);
	return ret;
}

static int packet_take(struct verbs_link *link, const struct verbs_ctl_said *said,
		       const char *bytes)
{
	/* Most are. */
	if (__builtin_expect(said->kind == VERBS_CTL_PACKET, 1)) {
		link->ep->events->packet(link->ep->arg, (struct wire_link *)(void *)link,
					 bytes, said->len);
		return 0;
	}
	switch (said->kind) {
	case VERBS_CTL_DQPLB:
		return dqplb_take(link, bytes, said->len);
	case VERBS_CTL_LANE:
		return verbs_lanes_msg(link, bytes, said->len);
	case VERBS_CTL_BYE:
		link->chan.bye_heard = true;
		verbs_link_end(link, -FI_ESHUTDOWN);
		return 0;
	default:
		return -EPROTO;
	}
}

/* What the peer heard, from `una` on, is never sent again: others may have the memory. */
static inline void slots_release(struct verbs_link *link, uint64_t una)
{
	struct verbs_chan *c = &link->chan;

	for (; una < c->ctl.una; una++) {
		struct verbs_buf **slot = &c->slot[una % VERBS_CREDITS];

		verbs_buf_put(&link->ep->sends, *slot);
		*slot = NULL;
	}
	if (link->slot.room < 0)
		slot_show(link, link->state);
}

static int acked(struct verbs_link *link, uint64_t ack, uint32_t window)
{
	uint64_t una = link->chan.ctl.una;
	int ret = verbs_ctl_acked(&link->chan.ctl, ack, window);

	slots_release(link, una);
	return ret;
}

int verbs_chan_resume(struct verbs_link *link, uint64_t heard)
{
	int ret = acked(link, heard, 0);

	return ret ? ret : verbs_ctl_resume(&link->chan.ctl, heard);
}

static int take(struct verbs_link *link, const char *bytes, size_t len)
{
	struct verbs_chan *c = &link->chan;
	struct verbs_ctl_said said;
	int ret = verbs_ctl_parse(&c->ctl, bytes, len, &said);

	if (ret == 0)
		ret = acked(link, said.ack, said.window);
	if (ret || said.kind == VERBS_CTL_ACK || link->state == VERBS_LINK_CLOSING)
		return ret;
	if (c->bye_heard)
		return -EPROTO;
	ret = verbs_ctl_arrived(&c->ctl, said.number);
	if (ret <= 0)
		return ret;
	if (__builtin_expect(said.number >= c->grow_at, 0))
		grow(link, said.number);
	return packet_take(link, &said, bytes + sizeof(struct verbs_ctl_head));
}

/* Whatever it is. */
static __attribute__((noinline)) void received_any(struct verbs_link *link,
						   struct verbs_qp *qp,
						   const struct ibv_wc *wc,
						   struct verbs_buf *buf)
{
	struct verbs_chan *c = &link->chan;
	enum verbs_link_state state;

	if (wc->status != IBV_WC_SUCCESS) {
		if (qp->srq)
			receive_post(qp, buf);
		if (qp == c->qp && qp->state == VERBS_QP_READY)
			chan_break(link);
		return;
	}
	c->passed = true;
	if (__builtin_expect(c->hold, 0) && qp == c->qp)
		verbs_resume_heard(link);
	state = atomic_load_explicit(&link->state, memory_order_relaxed);
	if (__builtin_expect(state == VERBS_LINK_UP || state == VERBS_LINK_CLOSING, 1) &&
	    !(link->faulty && !link->patient) && take(link, buf->bytes, wc->byte_len)) {
		const struct verbs_ctl_head *head = (const void *)buf->bytes;

		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"control channel: no such packet: kind %u, number ..%04x, "
			"ack ..%04x, %u bytes; numbers before %llx were heard, those "
			"before %llx sent\n",
			head->kind, le16_get(head->number), le16_get(head->ack),
			wc->byte_len,
			(unsigned long long)atomic_load_explicit(&c->ctl.heard,
								 memory_order_relaxed),
			(unsigned long long)c->ctl.high);
		verbs_link_fault(link, -EPROTO);
	}
	/* A shared queue is others' too, whatever became of the link. */
	if ((qp->srq || (link->state == VERBS_LINK_UP && qp->state == VERBS_QP_READY)) &&
	    receive_post(qp, buf) && link->state == VERBS_LINK_UP)
		chan_break(link);
}

void verbs_chan_received(struct verbs_link *link, struct verbs_qp *qp,
			 const struct ibv_wc *wc)
{
	struct verbs_chan *c = &link->chan;
	struct verbs_buf *buf =
		verbs_buf_at(&link->ep->receives, wc->wr_id & VERBS_WR_SHARED
							  ? (uint32_t)(wc->wr_id >> 32)
							  : wc->wr_id & VERBS_WR_INDEX);
	uint64_t una = c->ctl.una, heard;

	heard = atomic_load_explicit(&c->ctl.heard, memory_order_relaxed);
	if (__builtin_expect(
		    wc->status != IBV_WC_SUCCESS || c->odd || link->faulty || !qp->srq ||
			    wc->byte_len < sizeof(struct verbs_ctl_head) ||
			    atomic_load_explicit(&link->state, memory_order_relaxed) !=
				    VERBS_LINK_UP ||
			    heard >= c->grow_at || !verbs_ctl_plain(&c->ctl, buf->bytes),
		    0)) {
		received_any(link, qp, wc, buf);
		return;
	}
	c->passed = true;
	slots_release(link, una);
	link->ep->events->packet(link->ep->arg, (struct wire_link *)(void *)link,
				 buf->bytes + sizeof(struct verbs_ctl_head),
				 wc->byte_len - (uint32_t)sizeof(struct verbs_ctl_head));
	if (__builtin_expect(verbs_srq_post(qp->srq, buf), 0) &&
	    link->state == VERBS_LINK_UP)
		chan_break(link);
}

void verbs_chan_sent(struct verbs_link *link, struct verbs_qp *qp,
		     const struct ibv_wc *wc)
{
	uint32_t at = wc->wr_id & qp->sq_mask;
	uint32_t count = ((at - qp->sq_tail) & qp->sq_mask) + 1;
	uint64_t were = 0;

	if (count > qp->sq_head - qp->sq_tail)
		return;
	for (uint32_t i = 0; i < count; i++)
		were |= qp->cookie[qp->sq_tail++ & qp->sq_mask];
	if (wc->status != IBV_WC_SUCCESS) {
		/* Those behind it were not carried out either. The device's event may
		 * have come before. */
		if (qp == link->chan.qp && (were & VERBS_CHAN_ATOMIC) &&
		    (wc->status == IBV_WC_REM_ACCESS_ERR ||
		     wc->status == IBV_WC_REM_INV_REQ_ERR))
			link->atomics.refused = true;
		if (qp == link->chan.qp && qp->state == VERBS_QP_READY &&
		    !link->chan.broken) {
			FI_INFO(&weft_provider, FI_LOG_EP_CTRL, "control channel: %s\n",
				link->ep->lib->wc_status_str(wc->status));
			chan_break(link);
		}
		return;
	}
	link->chan.passed = true;
	if (were & VERBS_CHAN_BYE)
		link->chan.bye_done = true;
	if (qp != link->chan.qp || link->state != VERBS_LINK_UP)
		return;
	if (were & VERBS_CHAN_ATOMIC)
		verbs_atomics_done(link);
	if (link->state != VERBS_LINK_UP)
		return;
	if (were & VERBS_CHAN_PROBE)
		link->chan.probed = false;
	if (were & VERBS_CHAN_READ)
		verbs_rkeys_read(link, false);
	else
		verbs_rkeys_run(link); /* there may have been no place for it */
}
