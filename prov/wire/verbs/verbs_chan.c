/* SPDX-License-Identifier: BSD-2-Clause */
/* The control channel's queue pair: packets out and in. Rules B1, B3, C8. */
#include "config.h"

#include "prov/wire/verbs/verbs_chan.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_resume.h"

#define CHAN_STRIDE   ((sizeof(struct verbs_ctl_head) + VERBS_PACKET + 63) & ~(size_t)63)
#define CHAN_RECEIVES (VERBS_CREDITS + VERBS_CTL_SPARE)
#define CHAN_ACK_SIZE 32u

/* Of the send queue: what is numbered, acknowledgements, reads. */
#define CHAN_READS  2u
#define CHAN_SENDS  (VERBS_CREDITS + VERBS_CHAN_ACKS + CHAN_READS)
#define CHAN_SIGNAL 8u /* every so many are signalled */

_Static_assert(VERBS_CREDITS >= VERBS_CTL_WINDOW_MIN &&
		       VERBS_CREDITS <= VERBS_CTL_WINDOW_MAX,
	       "VERBS_CREDITS");
_Static_assert(DQPLB_MSG_MAX <= VERBS_PACKET, "dqplb's messages are packets");

static char *slot_mem(const struct verbs_chan *c, uint64_t number)
{
	return c->mem + number % c->ctl.window * CHAN_STRIDE;
}

static char *receive_mem(const struct verbs_chan *c, uint32_t i)
{
	return c->mem + (VERBS_CREDITS + i) * CHAN_STRIDE;
}

static char *ack_mem(const struct verbs_chan *c, uint32_t i)
{
	return receive_mem(c, CHAN_RECEIVES) + i % VERBS_CHAN_ACKS * CHAN_ACK_SIZE;
}

static char *read_mem(const struct verbs_chan *c, unsigned at)
{
	return ack_mem(c, 0) + VERBS_CHAN_ACKS * CHAN_ACK_SIZE + at * VERBS_CHAN_READ_MAX;
}

int verbs_chan_init(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;
	void *mem;
	int ret;

	c->size = (VERBS_CREDITS + CHAN_RECEIVES) * CHAN_STRIDE +
		  VERBS_CHAN_ACKS * CHAN_ACK_SIZE + 2 * (size_t)VERBS_CHAN_READ_MAX;
	mem = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	if (mem == MAP_FAILED)
		return -FI_ENOMEM;
	ret = verbs_mr_add(link->ep->dom, mem, c->size, IBV_ACCESS_LOCAL_WRITE, false,
			   &c->mr);
	if (ret) {
		munmap(mem, c->size);
		return ret;
	}
	c->mem = mem;
	return 0;
}

void verbs_chan_fini(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;

	if (!c->mem)
		return;
	verbs_mr_drop(link->ep->dom, c->mr);
	munmap(c->mem, c->size);
	c->mem = NULL;
}

static int receive_post(struct verbs_chan *c, struct verbs_qp *qp, uint32_t i)
{
	struct ibv_sge sge = {.addr = (uintptr_t)receive_mem(c, i),
			      .length = CHAN_STRIDE,
			      .lkey = c->mr->lkey[qp->rail]};
	struct ibv_recv_wr wr = {.wr_id = verbs_wr_id(qp, (uint32_t)VERBS_WR_RECV | i),
				 .sg_list = &sge,
				 .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(qp->ib, &wr, &bad))
		return -FI_EIO;
	qp->receives++;
	return 0;
}

int verbs_chan_open(struct verbs_link *link, uint32_t rail, struct verbs_qp **out)
{
	const struct verbs_qp_attr attr = {.rail = rail,
					   .sends = CHAN_SENDS,
					   .receives = CHAN_RECEIVES,
					   .sge = 1,
					   .lane = VERBS_LANE_CONTROL};
	struct verbs_qp *qp;
	int ret = verbs_qp_open(link->ep, link, &attr, &qp);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < CHAN_RECEIVES && ret == 0; i++)
		ret = receive_post(&link->chan, qp, i);
	if (ret) {
		verbs_qp_close(link->ep, qp);
		return ret;
	}
	*out = qp;
	return 0;
}

/* ---- out ----------------------------------------------------------------------------
 */

static bool can_post(const struct verbs_chan *c)
{
	return c->qp && c->qp->state == VERBS_QP_READY && !c->broken && !c->hold &&
	       verbs_qp_sq_room(c->qp) > 0;
}

static void chan_break(struct verbs_link *link)
{
	link->chan.broken = true;
	verbs_link_dirty(link);
}

/* One request; it leaves a place for reads. */
static bool post(struct verbs_link *link, struct ibv_send_wr *wr,
		 enum verbs_chan_cookie cookie)
{
	struct verbs_chan *c = &link->chan;
	struct verbs_qp *qp = c->qp;
	struct ibv_send_wr *bad;

	wr->wr_id = verbs_wr_id(qp, qp->sq_head & qp->sq_mask);
	if (cookie != VERBS_CHAN_PACKET || qp->sq_head % CHAN_SIGNAL == 0 ||
	    verbs_qp_sq_room(qp) <= CHAN_SIGNAL)
		wr->send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(qp->ib, wr, &bad)) {
		chan_break(link);
		return false;
	}
	qp->cookie[qp->sq_head++ & qp->sq_mask] = cookie;
	return true;
}

static bool post_bytes(struct verbs_link *link, char *mem, uint32_t len,
		       enum verbs_chan_cookie cookie)
{
	struct verbs_chan *c = &link->chan;
	struct ibv_sge sge = {
		.addr = (uintptr_t)mem, .length = len, .lkey = c->mr->lkey[c->qp->rail]};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};

	if (len <= c->qp->inline_max)
		wr.send_flags = IBV_SEND_INLINE;
	return post(link, &wr, cookie);
}

static bool send_number(struct verbs_link *link, uint64_t number)
{
	struct verbs_chan *c = &link->chan;
	char *mem = slot_mem(c, number);
	struct verbs_ctl_head *head = (void *)mem;
	enum verbs_chan_cookie cookie =
		head->kind == VERBS_CTL_BYE ? VERBS_CHAN_BYE : VERBS_CHAN_PACKET;

	head->ack = le64_of(verbs_ctl_tell(&c->ctl));
	return post_bytes(link, mem, c->len[number % c->ctl.window], cookie);
}

static void send_queued(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;
	uint64_t number;

	while (can_post(c) && verbs_ctl_next(&c->ctl, &number)) {
		if (!send_number(link, number)) {
			verbs_ctl_unsent(&c->ctl);
			return;
		}
	}
}

void verbs_chan_flush(struct verbs_link *link)
{
	struct verbs_chan *c = &link->chan;
	char *mem;

	if (link->state != VERBS_LINK_UP && link->state != VERBS_LINK_CLOSING)
		return;
	send_queued(link);
	if (!verbs_ctl_due(&c->ctl) || !can_post(c))
		return;
	mem = ack_mem(c, c->acks++);
	verbs_ctl_write(mem, VERBS_CTL_ACK, 0, 0, verbs_ctl_tell(&c->ctl));
	post_bytes(link, mem, sizeof(struct verbs_ctl_head), VERBS_CHAN_PACKET);
}

void *verbs_chan_reserve(struct verbs_link *link, enum verbs_ctl_class cls)
{
	struct verbs_chan *c = &link->chan;

	if (!verbs_ctl_room(&c->ctl, cls) || c->bye_sent)
		return NULL;
	return slot_mem(c, c->ctl.nxt) + sizeof(struct verbs_ctl_head);
}

void verbs_chan_commit(struct verbs_link *link, enum verbs_ctl_kind kind, size_t len)
{
	struct verbs_chan *c = &link->chan;
	uint64_t number = verbs_ctl_take(&c->ctl);

	verbs_ctl_write(slot_mem(c, number), kind, (uint32_t)len, number, 0);
	c->len[number % c->ctl.window] = (uint32_t)(sizeof(struct verbs_ctl_head) + len);
	c->bye_sent = c->bye_sent || kind == VERBS_CTL_BYE;
	if (link->state == VERBS_LINK_UP || link->state == VERBS_LINK_CLOSING)
		send_queued(link);
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
	verbs_chan_commit(verbs_link_of(wlink), VERBS_CTL_PACKET, len);
}

bool verbs_chan_read(struct verbs_link *link, unsigned at, uint64_t addr, uint32_t rkey,
		     size_t len, bool signal)
{
	struct verbs_chan *c = &link->chan;
	struct ibv_sge sge = {.addr = (uintptr_t)read_mem(c, at),
			      .length = (uint32_t)len};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {.remote_addr = addr, .rkey = rkey}};

	if (!can_post(c))
		return false;
	sge.lkey = c->mr->lkey[c->qp->rail];
	return post(link, &wr, signal ? VERBS_CHAN_READ : VERBS_CHAN_PACKET);
}

const void *verbs_chan_read_at(const struct verbs_link *link, unsigned at)
{
	return read_mem(&link->chan, at);
}

/* ---- in -----------------------------------------------------------------------------
 */

static int dqplb_take(struct verbs_link *link, const void *bytes, size_t len)
{
	struct dqplb_msg *m = &link->ep->heard;
	int ret = dqplb_msg_parse(bytes, len, m);

	if (ret)
		return -EPROTO;
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
	switch (said->kind) {
	case VERBS_CTL_PACKET:
		link->ep->events->packet(link->ep->arg, (struct wire_link *)(void *)link,
					 bytes, said->len);
		return 0;
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

static int take(struct verbs_link *link, const char *bytes, size_t len)
{
	struct verbs_chan *c = &link->chan;
	struct verbs_ctl_said said;
	int ret = verbs_ctl_parse(bytes, len, &said);

	if (ret == 0)
		ret = verbs_ctl_acked(&c->ctl, said.ack);
	if (ret || said.kind == VERBS_CTL_ACK || link->state == VERBS_LINK_CLOSING)
		return ret;
	if (c->bye_heard)
		return -EPROTO;
	ret = verbs_ctl_arrived(&c->ctl, said.number);
	if (ret <= 0)
		return ret;
	return packet_take(link, &said, bytes + sizeof(struct verbs_ctl_head));
}

void verbs_chan_received(struct verbs_link *link, struct verbs_qp *qp,
			 const struct ibv_wc *wc)
{
	struct verbs_chan *c = &link->chan;
	uint32_t i = wc->wr_id & 0x7fffffff;

	qp->receives--;
	if (wc->status != IBV_WC_SUCCESS) {
		if (qp == c->qp && qp->state == VERBS_QP_READY)
			chan_break(link);
		return;
	}
	c->passed = true;
	if (c->hold && qp == c->qp)
		verbs_resume_heard(link);
	if ((link->state == VERBS_LINK_UP || link->state == VERBS_LINK_CLOSING) &&
	    !(link->faulty && !link->patient) &&
	    take(link, receive_mem(c, i), wc->byte_len))
		verbs_link_fault(link, -EPROTO);
	if (link->state == VERBS_LINK_UP && qp->state == VERBS_QP_READY &&
	    receive_post(c, qp, i))
		chan_break(link);
}

void verbs_chan_sent(struct verbs_link *link, struct verbs_qp *qp,
		     const struct ibv_wc *wc)
{
	uint32_t at = wc->wr_id & qp->sq_mask;
	uint32_t count = ((at - qp->sq_tail) & qp->sq_mask) + 1;
	bool read = false, bye = false;

	if (count > qp->sq_head - qp->sq_tail)
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t cookie = qp->cookie[qp->sq_tail++ & qp->sq_mask];

		read = read || cookie == VERBS_CHAN_READ;
		bye = bye || cookie == VERBS_CHAN_BYE;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		if (qp == link->chan.qp && qp->state == VERBS_QP_READY &&
		    !link->chan.broken) {
			FI_INFO(&weft_provider, FI_LOG_EP_CTRL, "control channel: %s\n",
				link->ep->lib->wc_status_str(wc->status));
			chan_break(link);
		}
		return;
	}
	link->chan.passed = true;
	if (bye)
		link->chan.bye_done = true;
	if (qp != link->chan.qp || link->state != VERBS_LINK_UP)
		return;
	if (read)
		verbs_rkeys_read(link);
	else
		verbs_rkeys_run(link); /* there may have been no place for it */
}
