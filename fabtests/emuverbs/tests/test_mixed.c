/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that places out of order (rules A5, E3): everything arrives once, the
 * immediates in another order than posted; what comes after a write on its queue pair
 * sees it. The seed is printed; give it as the first argument. */
#include "config.h"

#include <dlfcn.h>
#include <time.h>

#ifdef HAVE_INFINIBAND_MLX5DV_H
#include <infiniband/mlx5dv.h>
#endif

#include "fabtests/emuverbs/tests/pair.h"
#include "util/tap.h"

#define MESSAGES 2000u
#define DEPTH	 32u

static void receives(struct end *e, unsigned n)
{
	while (n-- > 0)
		if (end_receive(e, 0, 0, 0) != 0)
			tap_bail("no receive");
}

static size_t message_len(unsigned i)
{
	return i % 37 == 0 ? 60000 : 8 + i % 300;
}

static size_t message_at(unsigned i)
{
	return i % 16 * 65536;
}

static bool message_right(const struct end *y, unsigned i)
{
	const uint8_t *at = y->bytes + message_at(i);

	for (size_t k = 0; k < message_len(i); k++)
		if (at[k] != (uint8_t)(i + k))
			return false;
	return true;
}

static void message_post(struct end *x, const struct end *y, unsigned i)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {.wr_id = i,
				       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				       .imm_data = i,
				       .send_flags = IBV_SEND_SIGNALED,
				       .sg_list = &sge,
				       .num_sge = 1};

	sge = end_sge(x, message_at(i), message_len(i));
	for (size_t k = 0; k < message_len(i); k++)
		x->bytes[message_at(i) + k] = (uint8_t)(i + k);
	wr.wr.rdma.remote_addr = (uintptr_t)y->bytes + message_at(i);
	wr.wr.rdma.rkey = y->mr->rkey;
	if (ibv_post_send(x->qp, &wr, &bad) != 0)
		tap_bail("message %u was not posted", i);
}

/* At most 16 on their way, each with bytes of its own. */
static void test_words(void)
{
	static uint8_t seen[MESSAGES];
	struct end_wish wish = {.receives = DEPTH};
	unsigned posted = 0, arrived = 0, inverted = 0, wrong = 0, last = 0;
	struct end x, y;
	struct ibv_wc wc;

	end_open(&x, &wish);
	end_open(&y, &wish);
	end_join(&x, &y);
	receives(&y, DEPTH);
	tap_is_int(ibv_query_qp_data_in_order(x.qp, IBV_WR_RDMA_WRITE, 0), 0,
		   "the device says that it keeps no order");
	while (arrived < MESSAGES) {
		/* Places are used again when all 16 are there. */
		if (posted < MESSAGES && (posted % 16 != 0 || posted == arrived)) {
			message_post(&x, &y, posted++);
			continue;
		}
		if (!end_poll(&y, &wc) || wc.status != IBV_WC_SUCCESS)
			tap_bail("after %u: %s", arrived, ibv_wc_status_str(wc.status));
		wrong += wc.imm_data >= MESSAGES || seen[wc.imm_data % MESSAGES]++ ||
			 !message_right(&y, wc.imm_data);
		inverted += wc.imm_data < last;
		last = wc.imm_data;
		arrived++;
		receives(&y, 1);
		while (ibv_poll_cq(x.cq, 1, &wc) == 1)
			wrong += wc.status != IBV_WC_SUCCESS;
	}
	tap_is_int(wrong, 0, "each arrives once, with its bytes");
	tap_ok(inverted > MESSAGES / 100, "out of order: %u of %u", inverted, MESSAGES);
	end_close(&x);
	end_close(&y);
}

static void test_after(void)
{
	struct end x, y;
	struct ibv_wc wc;
	unsigned stale = 0, order = 0;

	end_open(&x, &(struct end_wish){0});
	end_open(&y, &(struct end_wish){0});
	end_join(&x, &y);
	for (unsigned i = 1; i <= 300; i++) {
		memset(x.bytes, (int)i, 40000);
		for (unsigned k = 0; k < 5; k++)
			end_write(&x, &y, 10 + k, 0, k % 2 ? 8 : 40000, k * 65536);
		end_receive(&y, 1, 900000, 8);
		if (i % 2)
			end_send(&x, 20, 0, 8);
		else
			end_read(&x, &y, 20, 500000, 8, 4 * 65536 + 39992);
		for (unsigned k = 0; k < 6; k++) {
			if (!end_poll(&x, &wc) || wc.status != IBV_WC_SUCCESS)
				tap_bail("round %u: %s", i, ibv_wc_status_str(wc.status));
			order += wc.wr_id != (k < 5 ? 10 + k : 20);
		}
		if (i % 2)
			end_poll(&y, &wc);
		stale += i % 2 ? y.bytes[2 * 65536 + 39999] != (uint8_t)i
			       : x.bytes[500007] != (uint8_t)i;
		if (i % 2 == 0) {
			end_send(&x, 30, 0, 8);
			end_poll(&x, &wc);
			end_poll(&y, &wc);
		}
	}
	tap_is_int(stale, 0, "E3: a send and a read see the writes before them");
	tap_is_int(order, 0, "completions at the sender are in the order posted");
	end_close(&x);
	end_close(&y);
}

/* A refusal is told in its turn: what is before it succeeds. */
static void test_refusal(void)
{
	unsigned wrong = 0, rounds = 50;

	for (unsigned i = 0; i < rounds; i++) {
		struct end x, y;
		struct ibv_wc wc;

		end_open(&x, &(struct end_wish){0});
		end_open(&y, &(struct end_wish){0});
		end_join(&x, &y);
		for (unsigned k = 0; k < 12; k++)
			end_write(&x, &y, k, 0, k % 3 ? 8 : 50000,
				  k == 7 ? END_BYTES : k * 65536);
		for (unsigned k = 0; k < 12; k++)
			wrong += !end_poll(&x, &wc) || wc.wr_id != k ||
				 wc.status != (k < 7	? IBV_WC_SUCCESS
					       : k == 7 ? IBV_WC_REM_ACCESS_ERR
							: IBV_WC_WR_FLUSH_ERR);
		end_close(&x);
		end_close(&y);
	}
	tap_is_int(wrong, 0, "a refusal comes in its turn");
}

#ifdef HAVE_INFINIBAND_MLX5DV_H
static struct ibv_qp *vendor_qp(struct end *e, void *library)
{
	struct ibv_qp *(*create)(struct ibv_context *, struct ibv_qp_init_attr_ex *,
				 struct mlx5dv_qp_init_attr *);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.pd = e->pd,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1},
	};
	struct mlx5dv_qp_init_attr vendor = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = 1 << 7,
	};

	create = (__typeof__(create))dlsym(library, "mlx5dv_create_qp");
	return create ? create(e->context, &init, &vendor) : NULL;
}

/* A device whose queue pairs place out of order if they are made so. */
static void test_choice(void)
{
	struct end_wish wish = {.device = 1};
	void *library = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);
	struct end x, y;
	struct ibv_wc wc;

	if (!library)
		tap_bail("no vendor's library: %s", dlerror());
	end_open(&x, &wish);
	end_open(&y, &wish);
	tap_is_int(ibv_query_qp_data_in_order(x.qp, IBV_WR_RDMA_WRITE, 0), 1,
		   "by choice: in order without it");
	end_join(&x, &y);
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(end_poll(&x, &wc) && wc.status == IBV_WC_SUCCESS, "which works");
	ibv_destroy_qp(x.qp);
	x.qp = vendor_qp(&x, library);
	tap_ok(x.qp && ibv_query_qp_data_in_order(x.qp, IBV_WR_RDMA_WRITE, 0) == 0,
	       "with it, out of order");
	end_state(&y, IBV_QPS_RESET);
	end_join(&x, &y);
	end_write(&x, &y, 2, 0, 8, 0);
	tap_ok(end_poll(&x, &wc) && wc.status == IBV_WC_RETRY_EXC_ERR,
	       "not with a peer that has made no such choice");
	ibv_destroy_qp(y.qp);
	y.qp = vendor_qp(&y, library);
	end_state(&x, IBV_QPS_RESET);
	end_join(&x, &y);
	end_write(&x, &y, 3, 0, 8, 0);
	tap_ok(end_poll(&x, &wc) && wc.status == IBV_WC_SUCCESS, "but with one that has");
	end_close(&x);
	end_close(&y);
}
#else
static void test_choice(void)
{
	tap_skip(5, "built without infiniband/mlx5dv.h");
}
#endif

int main(int argc, char **argv)
{
	unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0)
				 : (unsigned)time(NULL) % 1000000;
	char config[256];

	tap_diag("seed %u", seed);
	snprintf(config, sizeof(config),
		 "emuverbs 1\nseed %u\ndevice emu0 gid=10.0.0.1 delivery=mixed\n"
		 "device emu1 gid=10.0.0.2 delivery=choice\n",
		 seed);
	net_begin(config);
	test_words();
	test_after();
	test_refusal();
	test_choice();
	return tap_done();
}
