/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of the emulated library: states, every kind of work, every error, flushes,
 * what is discarded, completion channels. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabtests/emuverbs/tests/pair.h"
#include "util/tap.h"

static const struct end_wish usual;

static void pattern(uint8_t *at, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static bool is_wc(struct end *e, uint64_t id, enum ibv_wc_status status, const char *what)
{
	struct ibv_wc wc = {0};
	bool good = end_poll(e, &wc) && wc.wr_id == id && wc.status == status &&
		    wc.qp_num == e->qp->qp_num;

	if (!tap_ok(good, "%s", what))
		tap_diag("id %d, %s", (int)wc.wr_id, ibv_wc_status_str(wc.status));
	return good;
}

static void test_states(void)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1}, got;
	struct ibv_qp_init_attr init;
	struct end x, y;

	end_open(&x, &usual);
	end_open(&y, &usual);
	tap_ok(x.qp->qp_num != y.qp->qp_num && x.qp->state == IBV_QPS_RESET, "two, new");
	tap_is_int(end_write(&x, &y, 1, 0, 8, 0), EINVAL, "no work in RESET");
	tap_is_int(end_receive(&x, 1, 0, 8), EINVAL, "no receives in RESET");
	tap_is_int(ibv_modify_qp(x.qp, &a, IBV_QP_STATE | IBV_QP_PORT), EINVAL,
		   "INIT without all that it needs");
	tap_is_int(end_rtr(&x, &y, 1), EINVAL, "RTR from RESET");
	a.port_num = 2;
	tap_is_int(ibv_modify_qp(x.qp, &a,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		   EINVAL, "a port that there isn't");
	tap_is_int(end_init(&x), 0, "INIT");
	tap_is_int(end_receive(&x, 1, 0, 8), 0, "receives in INIT");
	tap_is_int(end_write(&x, &y, 1, 0, 8, 0), EINVAL, "no work in INIT");
	tap_is_int(end_rts(&x, 7), EINVAL, "RTS from INIT");
	tap_is_int(end_rtr(&x, &y, 32), EINVAL, "a timer that there isn't");
	tap_is_int(end_rtr(&x, &y, 12), 0, "RTR");
	tap_is_int(end_write(&x, &y, 1, 0, 8, 0), EINVAL, "no work in RTR");
	tap_is_int(end_rts(&x, 8), EINVAL, "more retries than there are");
	tap_is_int(end_rts(&x, 6), 0, "RTS");
	tap_ok(ibv_query_qp(x.qp, &got, 0, &init) == 0 && got.qp_state == IBV_QPS_RTS &&
		       got.dest_qp_num == y.qp->qp_num && got.rnr_retry == 6 &&
		       got.min_rnr_timer == 12 && init.cap.max_send_wr == 64,
	       "what it says of itself");
	tap_is_int(end_state(&x, IBV_QPS_RTR), EINVAL, "no way back");
	tap_is_int(end_state(&x, IBV_QPS_ERR), 0, "ERR");
	is_wc(&x, 1, IBV_WC_WR_FLUSH_ERR, "the receive is flushed");
	tap_is_int(end_write(&x, &y, 2, 0, 8, 0), 0, "work in ERR is taken");
	is_wc(&x, 2, IBV_WC_WR_FLUSH_ERR, "and flushed");
	tap_is_int(end_state(&x, IBV_QPS_RESET), 0, "RESET");
	end_join(&x, &y);
	tap_is_int(end_write(&x, &y, 3, 0, 8, 0), 0, "once more");
	is_wc(&x, 3, IBV_WC_SUCCESS, "it works again");
	end_close(&x);
	end_close(&y);
}

static void test_work(void)
{
	struct end x, y;
	struct ibv_wc wc;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	pattern(x.bytes, END_BYTES, 1);
	end_write(&x, &y, 1, 0, 300000, 11);
	is_wc(&x, 1, IBV_WC_SUCCESS, "a write");
	tap_ok(memcmp(x.bytes, y.bytes + 11, 300000) == 0 && y.bytes[300011] == 0,
	       "its bytes and no others");
	pattern(y.bytes, END_BYTES, 9);
	end_read(&x, &y, 2, 5, 400001, 7);
	is_wc(&x, 2, IBV_WC_SUCCESS, "a read");
	tap_is_mem(x.bytes + 5, y.bytes + 7, 400001, "its bytes");
	end_receive(&y, 3, 100, 200000);
	end_send(&x, 4, 50, 150000);
	is_wc(&x, 4, IBV_WC_SUCCESS, "a send");
	tap_ok(end_poll(&y, &wc) && wc.wr_id == 3 && wc.byte_len == 150000 &&
		       wc.opcode == IBV_WC_RECV,
	       "its receive");
	tap_is_mem(y.bytes + 100, x.bytes + 50, 150000, "its bytes");
	end_receive(&y, 5, 0, 0);
	end_write_imm(&x, &y, 6, 99, 0xabcd);
	is_wc(&x, 6, IBV_WC_SUCCESS, "a write with a word");
	tap_ok(end_poll(&y, &wc) && wc.wr_id == 5 && wc.byte_len == 99 &&
		       wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == 0xabcd &&
		       wc.wc_flags & IBV_WC_WITH_IMM,
	       "its receive");
	end_write(&x, &y, 7, 0, 0, 0);
	is_wc(&x, 7, IBV_WC_SUCCESS, "a write of nothing");
	end_read(&x, &y, 8, 0, 0, 0);
	is_wc(&x, 8, IBV_WC_SUCCESS, "a read of nothing");
	end_close(&x);
	end_close(&y);
}

static int atomic(struct end *e, const struct end *peer, enum ibv_wr_opcode opcode,
		  size_t at, size_t to, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = end_sge(e, at, 8);
	struct ibv_send_wr wr = {.opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	wr.wr.atomic.remote_addr = (uintptr_t)peer->bytes + to;
	wr.wr.atomic.rkey = peer->mr->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return ibv_post_send(e->qp, &wr, &bad);
}

static void test_atomics(void)
{
	struct end x, y;
	uint64_t *there, *here;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	there = (uint64_t *)(void *)(y.bytes + 64);
	here = (uint64_t *)(void *)x.bytes;
	*there = 40;
	atomic(&x, &y, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 64, 2, 0);
	is_wc(&x, 0, IBV_WC_SUCCESS, "an addition");
	tap_ok(*there == 42 && *here == 40, "new and old");
	atomic(&x, &y, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 64, 41, 1);
	is_wc(&x, 0, IBV_WC_SUCCESS, "a comparison that fails");
	tap_ok(*there == 42 && *here == 42, "nothing new, old");
	atomic(&x, &y, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 64, 42, 1);
	is_wc(&x, 0, IBV_WC_SUCCESS, "one that succeeds");
	tap_ok(*there == 1 && *here == 42, "new and old");
	tap_is_int(atomic(&x, &y, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 65, 2, 0), EINVAL,
		   "an address between words");
	end_close(&x);
	end_close(&y);
}

static void test_pieces(void)
{
	static const char text[] = "one two three four";
	struct end x, y;
	struct ibv_sge sge[4];
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sge};
	struct ibv_recv_wr *bad_receive, receive = {.wr_id = 8, .sg_list = sge};
	struct ibv_wc wc;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	memcpy(x.bytes, text, sizeof(text));
	sge[0] = end_sge(&x, 14, 4);
	sge[1] = end_sge(&x, 3, 1);
	sge[2] = end_sge(&x, 0, 3);
	wr.num_sge = 3;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)y.bytes;
	wr.wr.rdma.rkey = y.mr->rkey;
	ibv_post_send(x.qp, &wr, &bad);
	is_wc(&x, 0, IBV_WC_SUCCESS, "a write of pieces");
	tap_is_mem(y.bytes, "four one", 9, "its bytes");
	sge[0] = (struct ibv_sge){.addr = (uintptr_t) "inline", .length = 7};
	wr.num_sge = 1;
	wr.send_flags |= IBV_SEND_INLINE;
	ibv_post_send(x.qp, &wr, &bad);
	is_wc(&x, 0, IBV_WC_SUCCESS, "an inline write, of memory without a key");
	tap_is_mem(y.bytes, "inline", 7, "its bytes");
	sge[0].length = 65;
	tap_ok(ibv_post_send(x.qp, &wr, &bad) == EINVAL && bad == &wr,
	       "more inline than fits");
	sge[0] = end_sge(&y, 100, 3);
	sge[1] = end_sge(&y, 200, 0);
	sge[2] = end_sge(&y, 300, 100);
	receive.num_sge = 3;
	ibv_post_recv(y.qp, &receive, &bad_receive);
	end_send(&x, 1, 0, sizeof(text));
	is_wc(&x, 1, IBV_WC_SUCCESS, "a send into pieces");
	tap_ok(end_poll(&y, &wc) && memcmp(y.bytes + 100, "one", 3) == 0 &&
		       memcmp(y.bytes + 300, text + 3, sizeof(text) - 3) == 0,
	       "its bytes");
	receive.num_sge = 5;
	tap_is_int(ibv_post_recv(y.qp, &receive, &bad_receive), EINVAL,
		   "more pieces than fit");
	end_close(&x);
	end_close(&y);
}

/* Both ends of work that is refused: with which status, and which event. */
static void refused(const char *what, int (*work)(struct end *x, struct end *y),
		    enum ibv_wc_status status, int event)
{
	struct end x, y;
	struct ibv_wc wc;
	int seen = -1;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	end_receive(&y, 77, 0, 16);
	if (work(&x, &y) != 0)
		tap_bail("%s: not posted", what);
	is_wc(&x, 1, status, what);
	tap_ok(end_poll(&y, &wc) && wc.wr_id == 77 && wc.status != IBV_WC_SUCCESS &&
		       x.qp->state == IBV_QPS_ERR && y.qp->state == IBV_QPS_ERR,
	       "... and both ends are in error");
	if (event)
		seen = end_event(&y);
	tap_ok(!event || seen == event, "... with the event of it");
	end_close(&x);
	end_close(&y);
}

static int old_key(struct end *x, struct end *y)
{
	struct ibv_mr gone = *y->mr;

	ibv_dereg_mr(y->mr);
	y->mr = ibv_reg_mr(y->pd, y->bytes, END_BYTES, END_ALL);
	if (!y->mr || y->mr->rkey == gone.rkey)
		tap_bail("the key is used again");
	y->mr->rkey = gone.rkey;
	return end_write(x, y, 1, 0, 8, 0);
}

static int beyond(struct end *x, struct end *y)
{
	return end_write(x, y, 1, 0, 8, END_BYTES - 7);
}

static int read_beyond(struct end *x, struct end *y)
{
	return end_read(x, y, 1, 0, 100000, END_BYTES - 99999);
}

static int too_long(struct end *x, struct end *y)
{
	(void)y;
	return end_send(x, 1, 0, 17);
}

static int local_key(struct end *x, struct end *y)
{
	struct end other = *x;
	struct ibv_mr mr = *x->mr;

	mr.lkey += 2;
	other.mr = &mr;
	/* The peer hears of nothing: it ends by itself. */
	end_state(y, IBV_QPS_ERR);
	return end_write(&other, y, 1, 0, 8, 0);
}

static int gone(struct end *x, struct end *y)
{
	end_state(y, IBV_QPS_ERR);
	return end_write(x, y, 1, 0, 8, 0);
}

static void test_errors(void)
{
	refused("a key of before", old_key, IBV_WC_REM_ACCESS_ERR,
		IBV_EVENT_QP_ACCESS_ERR);
	refused("bytes beyond", beyond, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	refused("a read beyond", read_beyond, IBV_WC_REM_ACCESS_ERR,
		IBV_EVENT_QP_ACCESS_ERR);
	refused("a receive too short", too_long, IBV_WC_REM_INV_REQ_ERR, 0);
	refused("a wrong local key", local_key, IBV_WC_LOC_PROT_ERR, 0);
	refused("a peer in error", gone, IBV_WC_RETRY_EXC_ERR, 0);
}

static void test_flush(void)
{
	struct end x, y;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	end_write(&x, &y, 1, 0, 8, 0);
	end_write(&x, &y, 2, 0, 8, END_BYTES);
	end_write(&x, &y, 3, 0, 8, 16);
	end_read(&x, &y, 4, 0, 8, 0);
	is_wc(&x, 1, IBV_WC_SUCCESS, "before the error");
	is_wc(&x, 2, IBV_WC_REM_ACCESS_ERR, "the error");
	is_wc(&x, 3, IBV_WC_WR_FLUSH_ERR, "after it");
	is_wc(&x, 4, IBV_WC_WR_FLUSH_ERR, "a read after it");
	end_close(&x);
	end_close(&y);
}

static void test_not_ready(void)
{
	struct end x, y;
	struct ibv_wc wc;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_init(&x);
	end_rtr(&x, &y, 1);
	end_rts(&x, 2);
	end_init(&y);
	end_write(&x, &y, 1, 0, 8, 0);
	is_wc(&x, 1, IBV_WC_RETRY_EXC_ERR, "a peer that is in INIT is not waited for");
	end_state(&x, IBV_QPS_RESET);
	end_state(&y, IBV_QPS_RESET);
	end_init(&x), end_init(&y);
	end_rtr(&x, &y, 1), end_rtr(&y, &x, 14);
	end_rts(&x, 2);
	end_send(&x, 2, 0, 8);
	is_wc(&x, 2, IBV_WC_RNR_RETRY_EXC_ERR, "no receive, after two retries");
	end_state(&x, IBV_QPS_RESET);
	end_state(&y, IBV_QPS_RESET);
	end_init(&x), end_init(&y);
	end_rtr(&x, &y, 1), end_rtr(&y, &x, 1);
	end_rts(&x, 7);
	pattern(x.bytes, 100000, 3);
	end_write(&x, &y, 3, 0, 100000, 0);
	end_send(&x, 4, 0, 100000);
	end_write(&x, &y, 5, 8, 8, 200000);
	usleep(20000);
	is_wc(&x, 3, IBV_WC_SUCCESS, "what is before it is done");
	tap_ok(end_quiet(&x) && y.bytes[200000] == 0, "it waits, and all after it");
	end_receive(&y, 6, 300000, 100000);
	is_wc(&x, 4, IBV_WC_SUCCESS, "a receive that comes late");
	is_wc(&x, 5, IBV_WC_SUCCESS, "and what was after it");
	tap_ok(end_poll(&y, &wc) && memcmp(y.bytes + 300000, x.bytes, 100000) == 0,
	       "the bytes are right");
	end_close(&x);
	end_close(&y);
}

static void test_discarded(void)
{
	struct end x, y;
	uint32_t number;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	end_receive(&y, 1, 0, 8);
	end_receive(&y, 2, 0, 8);
	end_send(&x, 3, 0, 8);
	is_wc(&x, 3, IBV_WC_SUCCESS, "it arrived");
	number = y.qp->qp_num;
	ibv_destroy_qp(y.qp);
	tap_ok(end_quiet(&y), "what was not polled is gone with its queue pair");
	end_qp(&y, &usual);
	tap_ok(y.qp->qp_num == number, "the number is used again");
	end_init(&y);
	y.psn++;
	end_rtr(&y, &x, 1);
	end_write(&x, &y, 4, 0, 8, 0);
	is_wc(&x, 4, IBV_WC_RETRY_EXC_ERR, "but not by who knew the other");
	end_close(&x);
	end_close(&y);
}

static void test_limits(void)
{
	struct end_wish few = {.sends = 4, .receives = 2, .cqe = 3};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct end x, y;
	struct ibv_wc wc;

	end_open(&x, &few);
	end_open(&y, &few);
	end_join(&x, &y);
	tap_ok(!end_receive(&y, 1, 0, 8) && !end_receive(&y, 2, 0, 8) &&
		       end_receive(&y, 3, 0, 8) == ENOMEM,
	       "so many receives");
	end_send(&x, 1, 0, 8);
	tap_ok(end_poll(&x, &wc), "one is taken");
	tap_is_int(end_receive(&y, 3, 0, 8), ENOMEM, "its place is free when it is seen");
	tap_ok(end_poll(&y, &wc) && end_receive(&y, 3, 0, 8) == 0, "then");
	init.send_cq = init.recv_cq = x.cq;
	init.cap.max_send_wr = 100000;
	tap_ok(!ibv_create_qp(x.pd, &init) && !ibv_create_cq(x.context, 100000, 0, 0, 0),
	       "more than the device has");
	tap_ok(!end_write(&x, &y, 4, 0, 8, 0) && !end_write(&x, &y, 5, 0, 8, 0) &&
		       !end_write(&x, &y, 6, 0, 8, 0) && !end_write(&x, &y, 7, 0, 8, 0) &&
		       end_write(&x, &y, 8, 0, 8, 0) == ENOMEM,
	       "so many sends");
	tap_is_int(end_event(&x), IBV_EVENT_CQ_ERR, "a queue that is too small");
	tap_is_int(end_event(&x), IBV_EVENT_QP_FATAL, "ends the queue pair");
	tap_ok(x.qp->state == IBV_QPS_ERR, "so it is");
	end_close(&x);
	end_close(&y);
}

static void test_channel(void)
{
	struct end_wish wish = {.channel = true};
	struct end x, y;
	struct ibv_cq *cq;
	void *context;
	struct pollfd p;
	struct ibv_wc wc;

	end_open(&x, &usual);
	end_open(&y, &wish);
	end_join(&x, &y);
	p = (struct pollfd){.fd = y.channel->fd, .events = POLLIN};
	end_receive(&y, 1, 0, 8);
	end_receive(&y, 2, 0, 8);
	end_receive(&y, 3, 0, 8);
	end_send(&x, 1, 0, 8);
	tap_ok(end_poll(&x, &wc) && poll(&p, 1, 0) == 0, "no event that nobody wants");
	ibv_req_notify_cq(y.cq, 0);
	tap_ok(poll(&p, 1, 0) == 0, "nor of what is there");
	end_send(&x, 2, 0, 8);
	tap_ok(poll(&p, 1, 20000) == 1 &&
		       ibv_get_cq_event(y.channel, &cq, &context) == 0 && cq == y.cq,
	       "one of what comes");
	end_send(&x, 3, 0, 8);
	tap_ok(end_poll(&x, &wc) && end_poll(&x, &wc) && poll(&p, 1, 0) == 0,
	       "one for each demand");
	fcntl(y.channel->fd, F_SETFL, O_NONBLOCK);
	tap_ok(ibv_get_cq_event(y.channel, &cq, &context) == -1 && errno == EAGAIN,
	       "none to be had without waiting");
	ibv_ack_cq_events(y.cq, 1);
	end_close(&x);
	end_close(&y);
}

static void test_itself(void)
{
	struct end x;
	struct ibv_wc wc;

	end_open(&x, &usual);
	end_init(&x);
	end_rtr(&x, &x, 1);
	end_rts(&x, 7);
	pattern(x.bytes, 1000, 4);
	end_write(&x, &x, 1, 0, 1000, 5000);
	is_wc(&x, 1, IBV_WC_SUCCESS, "a queue pair whose peer it is itself");
	tap_is_mem(x.bytes, x.bytes + 5000, 1000, "its bytes");
	end_receive(&x, 2, 8000, 8);
	end_send(&x, 3, 0, 8);
	tap_ok(end_poll(&x, &wc) && end_poll(&x, &wc) &&
		       memcmp(x.bytes, x.bytes + 8000, 8) == 0,
	       "a send to itself");
	end_close(&x);
}

int main(void)
{
	net_begin("emuverbs 1\ndevice emu0 gid=10.0.0.1\n");
	test_states();
	test_work();
	test_atomics();
	test_pieces();
	test_errors();
	test_flush();
	test_not_ready();
	test_discarded();
	test_limits();
	test_channel();
	test_itself();
	return tap_done();
}
