/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of queue pairs. Whatever a test does not try must work, or it gives up. */
#include "config.h"

#include "fabtests/emuverbs/tests/pair.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "util/tap.h"

#define DEADLINE_S 20

static void must(bool good, const char *what)
{
	if (!good)
		tap_bail("%s failed", what);
}

void net_begin(const char *config)
{
	char name[] = "/tmp/emuverbs.XXXXXX", net[32];
	int fd = mkstemp(name);
	struct ibv_device **list;

	must(fd >= 0 && write(fd, config, strlen(config)) == (ssize_t)strlen(config),
	     "writing the file");
	close(fd);
	snprintf(net, sizeof(net), "test-%d", (int)getpid());
	setenv("EMUVERBS_CONFIG", name, 1);
	setenv("EMUVERBS_NET", net, 1);
	unsetenv("EMUVERBS_FAULTS");
	list = ibv_get_device_list(NULL);
	must(list && list[0], "the list of devices");
	ibv_free_device_list(list);
	unlink(name);
}

void end_qp(struct end *e, const struct end_wish *wish)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = e->srq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = wish->sq_sig_all,
		.cap = {.max_send_wr = wish->sends ? wish->sends : 64,
			.max_recv_wr = wish->receives ? wish->receives : 64,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
	};

	e->qp = ibv_create_qp(e->pd, &init);
	must(e->qp, "ibv_create_qp");
}

void end_open(struct end *e, const struct end_wish *wish)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 64, .max_sge = 4}};
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(e, 0, sizeof(*e));
	must(list, "ibv_get_device_list");
	e->context = ibv_open_device(list[wish->device]);
	ibv_free_device_list(list);
	must(e->context, "ibv_open_device");
	e->pd = ibv_alloc_pd(e->context);
	e->channel = wish->channel ? ibv_create_comp_channel(e->context) : NULL;
	e->cq = ibv_create_cq(e->context, wish->cqe ? wish->cqe : 256, NULL, e->channel,
			      0);
	must(e->pd && e->cq, "a domain and a queue");
	if (wish->shared)
		e->srq = ibv_create_srq(e->pd, &srq);
	e->bytes = calloc(1, END_BYTES);
	must(e->bytes, "memory");
	e->mr = ibv_reg_mr(e->pd, e->bytes, END_BYTES, END_ALL);
	/* InfiniBand has one. */
	must(e->mr && (ibv_query_gid(e->context, 1, 3, &e->gid) == 0 ||
		       ibv_query_gid(e->context, 1, 0, &e->gid) == 0),
	     "a registration");
	e->psn = (uint32_t)rand() & 0xffffff;
	end_qp(e, wish);
}

void end_close(struct end *e)
{
	if (e->qp)
		must(ibv_destroy_qp(e->qp) == 0, "ibv_destroy_qp");
	if (e->srq)
		must(ibv_destroy_srq(e->srq) == 0, "ibv_destroy_srq");
	must(ibv_destroy_cq(e->cq) == 0, "ibv_destroy_cq");
	if (e->channel)
		must(ibv_destroy_comp_channel(e->channel) == 0, "the channel's end");
	if (e->mr)
		must(ibv_dereg_mr(e->mr) == 0, "ibv_dereg_mr");
	must(ibv_dealloc_pd(e->pd) == 0 && ibv_close_device(e->context) == 0,
	     "closing the device");
	free(e->bytes);
}

int end_init(struct end *e)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = END_ALL};

	return ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS);
}

int end_rtr(struct end *e, const struct end *peer, int min_rnr_timer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = (uint8_t)min_rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 3, .hop_limit = 64}},
	};

	return ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int end_rts(struct end *e, int rnr_retry)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
				.timeout = 14,
				.retry_cnt = 7,
				.rnr_retry = (uint8_t)rnr_retry,
				.sq_psn = e->psn,
				.max_rd_atomic = 4};

	return ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

int end_state(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state};

	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE);
}

void end_join(struct end *a, struct end *b)
{
	must(end_init(a) == 0 && end_init(b) == 0, "INIT");
	must(end_rtr(a, b, 1) == 0 && end_rtr(b, a, 1) == 0, "RTR");
	must(end_rts(a, 7) == 0 && end_rts(b, 7) == 0, "RTS");
}

struct ibv_sge end_sge(const struct end *e, size_t at, size_t len)
{
	return (struct ibv_sge){.addr = (uintptr_t)e->bytes + at,
				.length = (uint32_t)len,
				.lkey = e->mr ? e->mr->lkey : 0};
}

static int post(struct end *e, const struct end *peer, const struct ibv_send_wr *what,
		size_t at, size_t len, size_t to)
{
	struct ibv_sge sge = end_sge(e, at, len);
	struct ibv_send_wr *bad, wr = *what;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags |= IBV_SEND_SIGNALED;
	if (peer && peer->mr) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->bytes + to;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

int end_write(struct end *e, const struct end *peer, uint64_t id, size_t at, size_t len,
	      size_t to)
{
	struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_RDMA_WRITE};

	return post(e, peer, &wr, at, len, to);
}

int end_write_imm(struct end *e, const struct end *peer, uint64_t id, size_t len,
		  uint32_t imm)
{
	struct ibv_send_wr wr = {
		.wr_id = id, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = imm};

	return post(e, peer, &wr, 0, len, 0);
}

int end_read(struct end *e, const struct end *peer, uint64_t id, size_t at, size_t len,
	     size_t from)
{
	struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_RDMA_READ};

	return post(e, peer, &wr, at, len, from);
}

int end_send(struct end *e, uint64_t id, size_t at, size_t len)
{
	struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_SEND};

	return post(e, NULL, &wr, at, len, 0);
}

int end_receive(struct end *e, uint64_t id, size_t at, size_t len)
{
	struct ibv_sge sge = end_sge(e, at, len);
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad)
		      : ibv_post_recv(e->qp, &wr, &bad);
}

bool end_poll(struct end *e, struct ibv_wc *wc)
{
	time_t end = time(NULL) + DEADLINE_S;
	int n;

	while ((n = ibv_poll_cq(e->cq, 1, wc)) == 0 && time(NULL) < end)
		;
	return n == 1;
}

bool end_quiet(struct end *e)
{
	struct ibv_wc wc;

	for (int i = 0; i < 100; i++) {
		if (ibv_poll_cq(e->cq, 1, &wc) != 0)
			return false;
		usleep(200);
	}
	return true;
}

int end_event(struct end *e)
{
	struct pollfd p = {.fd = e->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	if (poll(&p, 1, DEADLINE_S * 1000) != 1 ||
	    ibv_get_async_event(e->context, &event) != 0)
		return -1;
	ibv_ack_async_event(&event);
	return event.event_type;
}
