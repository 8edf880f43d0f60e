/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues and their events (rule C2), draining, rights of registrations and
 * queue pairs (D1, D2), what devices say of themselves, both kinds of link, limits. */
#include "config.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fabtests/emuverbs/tests/pair.h"
#include "util/tap.h"

static const struct end_wish usual;

enum { ROCE, IB, BARE, SMALL, PORTS, SIX };

static bool wc_is(struct end *e, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {0};
	bool good = end_poll(e, &wc) && wc.wr_id == id && wc.status == status;

	if (!good)
		tap_diag("id %d, %s", (int)wc.wr_id, ibv_wc_status_str(wc.status));
	return good;
}

static void test_shared(void)
{
	struct end_wish wish = {.shared = true};
	struct ibv_srq_attr limit = {.srq_limit = 2}, got;
	struct end x, y;
	struct ibv_wc wc;

	end_open(&x, &usual);
	end_open(&y, &wish);
	end_join(&x, &y);
	tap_is_int(ibv_destroy_srq(y.srq), EBUSY, "a shared queue in use stays");
	for (unsigned i = 0; i < 3; i++)
		end_receive(&y, 10 + i, i * 1000, 100);
	tap_ok(ibv_modify_srq(y.srq, &limit, IBV_SRQ_LIMIT) == 0 &&
		       ibv_query_srq(y.srq, &got) == 0 && got.srq_limit == 2 &&
		       got.max_wr == 64,
	       "a limit");
	end_send(&x, 1, 0, 8);
	end_send(&x, 2, 0, 8);
	tap_ok(wc_is(&y, 10, IBV_WC_SUCCESS) && wc_is(&y, 11, IBV_WC_SUCCESS),
	       "receives in order");
	tap_is_int(end_event(&y), IBV_EVENT_SRQ_LIMIT_REACHED, "fewer than the limit");
	end_send(&x, 3, 0, 101);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS) && wc_is(&x, 2, IBV_WC_SUCCESS) &&
		       wc_is(&x, 3, IBV_WC_REM_INV_REQ_ERR),
	       "one that is too long");
	/* The event is there already: the completion is too. */
	tap_is_int(end_event(&y), IBV_EVENT_QP_LAST_WQE_REACHED, "the last receive");
	tap_ok(ibv_poll_cq(y.cq, 1, &wc) == 1 && wc.wr_id == 12 &&
		       wc.status == IBV_WC_LOC_LEN_ERR,
	       "C2: comes before its event");
	end_state(&x, IBV_QPS_RESET);
	end_state(&y, IBV_QPS_RESET);
	end_join(&x, &y);
	end_receive(&y, 13, 0, 100);
	end_send(&x, 4, 0, 8);
	tap_ok(wc_is(&y, 13, IBV_WC_SUCCESS), "the shared queue goes on");
	end_close(&x);
	end_close(&y);
}

static void test_drain(void)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct end x, y;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_init(&x), end_init(&y);
	end_rtr(&x, &y, 1), end_rtr(&y, &x, 1);
	end_rts(&x, 7);
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS), "one before");
	tap_is_int(end_event(&y), IBV_EVENT_COMM_EST, "the peer hears of its first");
	ibv_modify_qp(x.qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	tap_is_int(end_event(&x), IBV_EVENT_SQ_DRAINED, "drained");
	end_write(&x, &y, 2, 0, 8, 0);
	tap_ok(end_quiet(&x), "nothing goes out");
	a.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(x.qp, &a, IBV_QP_STATE);
	tap_ok(wc_is(&x, 2, IBV_WC_SUCCESS), "then it does");
	end_close(&x);
	end_close(&y);
}

/* A write or a read of 8 bytes to an end whose rights were changed. */
static enum ibv_wc_status outcome(int mr_access, unsigned qp_access, bool read)
{
	struct ibv_qp_attr a = {.qp_access_flags = qp_access};
	struct end x, y;
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	ibv_modify_qp(y.qp, &a, IBV_QP_ACCESS_FLAGS);
	ibv_dereg_mr(y.mr);
	y.mr = ibv_reg_mr(y.pd, y.bytes, END_BYTES, mr_access);
	if (!y.mr)
		tap_bail("no registration");
	if (read)
		end_read(&x, &y, 1, 0, 8, 0);
	else
		end_write(&x, &y, 1, 0, 8, 0);
	end_poll(&x, &wc);
	end_close(&x);
	end_close(&y);
	return wc.status;
}

static void test_rights(void)
{
	struct end x, y, z;

	tap_is_int(outcome(END_ALL, END_ALL, false), IBV_WC_SUCCESS, "all rights");
	tap_is_int(
		outcome(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, END_ALL, false),
		IBV_WC_REM_ACCESS_ERR, "memory that may not be written");
	tap_is_int(
		outcome(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, END_ALL, true),
		IBV_WC_REM_ACCESS_ERR, "memory that may not be read");
	tap_is_int(outcome(END_ALL, IBV_ACCESS_REMOTE_READ, false),
		   IBV_WC_REM_INV_REQ_ERR, "a queue pair that takes no writes");
	tap_is_int(outcome(END_ALL, IBV_ACCESS_REMOTE_WRITE, true),
		   IBV_WC_REM_INV_REQ_ERR, "a queue pair that takes no reads");
	end_open(&x, &usual);
	end_open(&y, &usual);
	end_open(&z, &usual);
	end_join(&x, &y);
	tap_ok(!ibv_reg_mr(x.pd, x.bytes, 8, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL,
	       "who may write from afar may write from here");
	end_write(&x, &z, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_REM_ACCESS_ERR), "a key of another domain");
	tap_is_int(ibv_dealloc_pd(x.pd), EBUSY, "a domain in use stays");
	tap_is_int(ibv_destroy_cq(x.cq), EBUSY, "a completion queue as well");
	end_close(&x);
	end_close(&y);
	end_close(&z);
}

/* Memory whose pages are gone, though its registration is not. */
static void test_unmapped(void)
{
	size_t len = 1 << 16;
	struct end x, y;
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	void *locked = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	tap_ok(!ibv_reg_mr(y.pd, locked, len, END_ALL) && errno == EFAULT,
	       "memory that can't be written");
	free(y.bytes);
	ibv_dereg_mr(y.mr);
	y.bytes = at;
	y.mr = ibv_reg_mr(y.pd, at, len, END_ALL);
	munmap(at, len);
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_REM_ACCESS_ERR), "memory that went away: a few bytes");
	end_state(&x, IBV_QPS_RESET);
	end_state(&y, IBV_QPS_RESET);
	end_join(&x, &y);
	end_write(&x, &y, 2, 0, len, 0);
	tap_ok(wc_is(&x, 2, IBV_WC_REM_ACCESS_ERR), "many bytes");
	end_state(&x, IBV_QPS_RESET);
	end_state(&y, IBV_QPS_RESET);
	end_join(&x, &y);
	end_write(&y, &x, 3, 0, len, 0);
	tap_ok(wc_is(&y, 3, IBV_WC_LOC_PROT_ERR), "one's own");
	y.bytes = NULL;
	munmap(locked, len);
	end_close(&x);
	end_close(&y);
}

static struct ibv_context *device(unsigned i)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[i]);

	ibv_free_device_list(list);
	if (!context)
		tap_bail("device %u", i);
	return context;
}

/* To the peer by that entry of the table: what ibv_modify_qp says. */
static int path(struct end *x, const struct end *y, uint8_t index)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.dest_qp_num = y->qp->qp_num,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = y->gid, .sgid_index = index}}};

	return ibv_modify_qp(x->qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void test_devices(void)
{
	struct ibv_context *roce = device(ROCE), *ib = device(IB), *bare = device(BARE);
	struct ibv_device_attr_ex attr;
	struct ibv_gid_entry gids[8];
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	tap_ok(ibv_query_device_ex(roce, NULL, &attr) == 0 &&
		       attr.orig_attr.max_qp == 4096 && attr.orig_attr.phys_port_cnt == 1,
	       "limits");
	tap_ok(ibv_query_port(roce, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE &&
		       port.link_layer == IBV_LINK_LAYER_ETHERNET && port.lid == 0 &&
		       port.active_mtu == IBV_MTU_4096,
	       "an Ethernet port");
	tap_ok(ibv_query_port(ib, 1, &port) == 0 &&
		       port.link_layer == IBV_LINK_LAYER_INFINIBAND && port.lid != 0 &&
		       port.active_mtu == IBV_MTU_2048,
	       "an InfiniBand port");
	tap_ok(ibv_query_port(ib, 2, &port) != 0, "no second port");
	tap_is_int(ibv_query_gid_table(roce, gids, 8, 0), 4, "four addresses");
	tap_ok(gids[3].gid_type == IBV_GID_TYPE_ROCE_V2 && gids[2].gid_index == 2 &&
		       memcmp(gids[3].gid.raw + 10, "\xff\xff\x0a\0\0\1", 6) == 0,
	       "the last is the IPv4 address, version 2");
	tap_is_int(ibv_query_gid_table(bare, gids, 8, 0), 0, "no addresses");
	tap_ok(ibv_query_gid(bare, 1, 0, &gid) == 0 && gid.global.interface_id == 0,
	       "empty ones");
	tap_ok(ibv_query_pkey(roce, 1, 0, &pkey) == 0 && pkey == 0xffff &&
		       ibv_get_pkey_index(roce, 1, pkey) == 0,
	       "the partition");
	tap_ok(ibv_get_device_guid(roce->device) != ibv_get_device_guid(ib->device),
	       "names of their own");
	ibv_close_device(roce);
	ibv_close_device(ib);
	ibv_close_device(bare);
}

/* IPv6 addresses, and those that nothing comes or goes by. */
static void test_addresses(void)
{
	struct ibv_context *six = device(SIX);
	struct ibv_gid_entry gids[16], none;
	struct ibv_port_attr port;
	struct end x, y;
	struct end_wish wish = {.device = SIX};
	union ibv_gid gid;
	ssize_t n = ibv_query_gid_table(six, gids, 16, 0);

	ibv_query_port(six, 1, &port);
	tap_is_int(port.gid_tbl_len, 10, "places in the table");
	tap_is_int(n, 7, "entries of it that are there");
	tap_ok(gids[3].gid_index == 3 && gids[3].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		       memcmp(gids[3].gid.raw, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
			      16) == 0,
	       "an IPv6 one");
	tap_ok(gids[4].gid_index == 6 && gids[6].gid_index == 8 &&
		       gids[6].gid_type == IBV_GID_TYPE_ROCE_V1,
	       "none where one was taken away, and one of version 1 only");
	tap_ok(ibv_query_gid_ex(six, 1, 4, &none, 0) == ENODATA &&
		       ibv_query_gid(six, 1, 4, &gid) == 0 &&
		       gid.global.interface_id == 0,
	       "whoever asks for it is told so");
	ibv_close_device(six);

	end_open(&x, &wish);
	end_open(&y, &wish);
	end_join(&x, &y);
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS), "IPv6 to IPv6 works");
	end_state(&x, IBV_QPS_RESET);
	end_init(&x);
	y.gid = gids[4].gid;
	tap_is_int(path(&x, &y, 3), EINVAL, "from IPv6 there is no way to IPv4");
	tap_is_int(path(&x, &y, 7), ENETUNREACH, "and none by one that is dead");
	tap_is_int(path(&x, &y, 5), EINVAL, "or by an empty one");
	memset(&y.gid, 0, sizeof(y.gid));
	tap_is_int(path(&x, &y, 3), EINVAL, "or to nobody");
	end_close(&x);
	end_close(&y);
}

static void read_is(struct end *x, const struct end *y, uint64_t id, size_t from,
		    uint64_t want, const char *what)
{
	uint64_t got;

	end_read(x, y, id, 4096, 8, from);
	if (!wc_is(x, id, IBV_WC_SUCCESS))
		tap_bail("a read");
	memcpy(&got, x->bytes + 4096, 8);
	tap_ok(got == want, "%s", what);
}

static void put(struct end *x, const struct end *y, uint64_t id, uint64_t value,
		size_t to)
{
	memcpy(x->bytes, &value, 8);
	end_write(x, y, id, 0, 8, to);
	tap_ok(wc_is(x, id, IBV_WC_SUCCESS), "%u is acknowledged", (unsigned)value);
}

/* A page of the peer's, registered anew with that access. */
static void anew(struct end *y, unsigned access)
{
	ibv_dereg_mr(y->mr);
	y->mr = ibv_reg_mr_iova2(y->pd, y->bytes, END_BYTES, (uintptr_t)y->bytes, access);
	if (!y->mr)
		tap_bail("no registration");
}

/* What may be relied on of memory with relaxed ordering is what is heard of only. */
static void test_relaxed(void)
{
	struct end x, y;
	struct ibv_wc wc;
	uint64_t last;

	end_open(&x, &usual);
	end_open(&y, &usual);
	anew(&y, END_ALL);
	end_join(&x, &y);
	put(&x, &y, 1, 1, 0);
	put(&x, &y, 2, 2, 0);
	read_is(&x, &y, 3, 0, 2, "in order a read sees the last");
	anew(&y, END_ALL | IBV_ACCESS_RELAXED_ORDERING);
	memset(y.bytes, 0, 8);
	end_receive(&y, 9, 0, 0);
	put(&x, &y, 4, 1, 0);
	put(&x, &y, 5, 2, 0);
	end_write_imm(&x, &y, 6, 0, 7);
	tap_ok(wc_is(&x, 6, IBV_WC_SUCCESS) && end_poll(&y, &wc) && wc.imm_data == 7,
	       "an immediate behind two writes to one place");
	memcpy(&last, y.bytes, 8);
	tap_ok(last == 1, "both are there, the older one on top");
	end_close(&x);
	end_close(&y);
}

static void test_infiniband(void)
{
	struct end_wish wish = {.device = IB};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
				.path_mtu = IBV_MTU_1024,
				.max_dest_rd_atomic = 1,
				.ah_attr = {.port_num = 1}};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_port_attr port;
	struct end x, y;

	end_open(&x, &wish);
	end_open(&y, &wish);
	ibv_query_port(x.context, 1, &port);
	end_init(&x), end_init(&y);
	a.ah_attr.dlid = port.lid;
	a.dest_qp_num = y.qp->qp_num;
	a.rq_psn = y.psn;
	tap_is_int(ibv_modify_qp(x.qp, &a, mask), 0, "a path by LID");
	a.dest_qp_num = x.qp->qp_num;
	a.rq_psn = x.psn;
	ibv_modify_qp(y.qp, &a, mask);
	end_rts(&x, 7);
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS), "it works");
	end_close(&x);
	end_close(&y);
}

/* What both ends must agree upon. */
static void test_agreement(void)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 3}}};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct end x, y;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_init(&x), end_init(&y);
	end_rtr(&x, &y, 1);
	a.dest_qp_num = x.qp->qp_num;
	a.rq_psn = x.psn;
	a.ah_attr.grh.dgid = x.gid;
	ibv_modify_qp(y.qp, &a, mask);
	end_rts(&x, 7);
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_REM_INV_REQ_ERR), "path MTUs that do not fit");
	end_state(&x, IBV_QPS_RESET);
	end_state(&y, IBV_QPS_RESET);
	end_init(&x), end_init(&y);
	end_rtr(&x, &y, 1);
	x.psn ^= 1;
	end_rtr(&y, &x, 1);
	x.psn ^= 1;
	end_rts(&x, 7);
	end_write(&x, &y, 2, 0, 8, 0);
	tap_ok(wc_is(&x, 2, IBV_WC_RETRY_EXC_ERR), "numbers that do not fit");
	end_close(&x);
	end_close(&y);
}

static void test_small(void)
{
	struct end_wish wish = {.device = SMALL};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1}};
	struct end x, y;

	end_open(&x, &wish);
	end_open(&y, &wish);
	init.send_cq = init.recv_cq = x.cq;
	tap_ok(!ibv_create_qp(x.pd, &init) && errno == ENOMEM, "no third queue pair");
	tap_ok(!ibv_create_cq(x.context, 1, NULL, NULL, 0) && errno == ENOMEM,
	       "no third completion queue");
	tap_ok(!ibv_reg_mr(x.pd, x.bytes, 8, 0) && errno == ENOMEM,
	       "no third registration");
	end_close(&y);
	tap_ok(ibv_dereg_mr(ibv_reg_mr(x.pd, x.bytes, 8, 0)) == 0, "until one is gone");
	init.qp_type = IBV_QPT_UD;
	tap_ok(!ibv_create_qp(x.pd, &init) && errno == EOPNOTSUPP, "no other transports");
	end_close(&x);
}

static void test_ports(void)
{
	struct ibv_context *c = device(PORTS);
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_port_attr port;
	struct ibv_mr *mr[2];
	union ibv_gid gid;
	__be16 pkey = 0;
	static char bytes[100000];

	tap_ok(ibv_query_port(c, 1, &port) == 0 && port.state == IBV_PORT_DOWN &&
		       ibv_query_port(c, 2, &port) == 0 &&
		       port.state == IBV_PORT_ACTIVE && ibv_query_port(c, 3, &port) != 0,
	       "two ports, one with a cable");
	tap_ok(ibv_query_gid(c, 1, 3, &gid) == 0 && gid.raw[15] == 0 &&
		       ibv_query_gid(c, 2, 3, &gid) == 0 && gid.raw[15] == 5,
	       "which has the addresses");
	tap_ok(ibv_query_pkey(c, 2, 1, &pkey) == 0 &&
		       ibv_get_pkey_index(c, 2, pkey) == 1 &&
		       ibv_query_pkey(c, 2, 2, &pkey) != 0,
	       "two partitions");
	mr[0] = ibv_reg_mr(pd, bytes, 30000, 0);
	mr[1] = ibv_reg_mr(pd, bytes, 40000, 0);
	tap_ok(mr[0] && !mr[1] && errno == ENOMEM, "so much memory and no more");
	ibv_dereg_mr(mr[0]);
	mr[1] = ibv_reg_mr(pd, bytes, 40000, 0);
	tap_ok(mr[1] != NULL, "at once");
	ibv_dereg_mr(mr[1]);
	ibv_dealloc_pd(pd);
	ibv_close_device(c);
}

int main(void)
{
	net_begin("emuverbs 1\n"
		  "device emu0 gid=10.0.0.1\n"
		  "device emu1 gid=10.0.0.2 link=infiniband mtu=2048\n"
		  "device emu2 gid=10.0.0.3 gids=none\n"
		  "device emu3 gid=10.0.0.4 max_qp=2 max_cq=2 max_mr=2\n"
		  "device emu4 gid=10.0.0.5 ports=2 port=2 pkeys=2 max_locked=64\n"
		  "device emu5 gid=fd00::1 gid=fd00::2,empty gid=10.0.0.6,dead "
		  "gid=fd00::3,v1\n");
	test_shared();
	test_drain();
	test_rights();
	test_unmapped();
	test_devices();
	test_addresses();
	test_relaxed();
	test_infiniband();
	test_agreement();
	test_small();
	test_ports();
	return tap_done();
}
