/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote memory access: every size and registration mode, pieces, data, refusals, targets
 * that make no libfabric call. All of it three times: as the machine allows, with
 * cross-memory attach refused by the kernel, and with it turned off.
 */
#include "config.h"

#include "fabtests/own/remote.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "util/fi_names.h"

static void sizes_run(struct side *s)
{
	struct initiator in = {0};

	initiator_open(s, &in, &want_default);
	for (size_t i = 0; i < sizes_count; i++)
		both_ways(s, &in, i % 3 * 13, sizes_all[i], (uint32_t)i);
	initiator_close(s, &in);
}

/* ---- registration modes */

static void modes_want(const struct side *s, struct want *want)
{
	const int *mode = s->arg;

	*want = want_default;
	want->mr_mode = *mode;
}

static void modes_run(struct side *s)
{
	const size_t some[] = {1, 8, 4097, 65537};
	const int *asked = s->arg;
	struct initiator in = {0};
	struct want want;
	int got;

	modes_want(s, &want);
	initiator_open(s, &in, &want);
	got = s->node.info->domain_attr->mr_mode;
	if (*asked == FI_MR_BASIC || *asked == FI_MR_SCALABLE)
		side_check_u64(s, (uint64_t)got, (uint64_t)*asked, "mode");
	else
		side_check_u64(s, (uint64_t)(got & ~*asked), 0,
			       "modes that nobody offered");
	if (!(got & FI_MR_PROV_KEY) && got != FI_MR_BASIC)
		side_check_u64(s, in.remote.key, 0x1000, "the key that was asked for");
	for (size_t i = 0; i < ARRAY_LEN(some); i++)
		both_ways(s, &in, 21, some[i], (uint32_t)i);
	initiator_close(s, &in);
}

static void modes_target(struct side *s)
{
	struct want want;

	modes_want(s, &want);
	target_run_as(s, &want);
}

/* ---- other calls */

static void pieces_run(struct side *s)
{
	struct initiator in = {0};
	struct fi_rma_iov there[2];
	struct iovec here[3];
	void *desc[3];
	struct done d;
	struct fi_msg_rma msg = {.msg_iov = here,
				 .desc = desc,
				 .iov_count = 3,
				 .rma_iov = there,
				 .rma_iov_count = 2,
				 .context = &d};

	initiator_open(s, &in, &want_default);
	if (s->node.info->tx_attr->rma_iov_limit < 2 ||
	    s->node.info->tx_attr->iov_limit < 3)
		side_lacks(s, "no vectors");
	for (size_t scale = 1; scale <= 100000; scale *= 1000) {
		const size_t total = 60 * scale;

		for (int i = 0; i < 3; i++) {
			here[i] = (struct iovec){in.mem + (size_t)i * 30 * scale,
						 20 * scale};
			desc[i] = in.desc;
			mem_fill(here[i].iov_base, 20 * scale, 7 + (uint32_t)i);
		}
		/* Cut elsewhere than here: 45 and 15. */
		there[0] = (struct fi_rma_iov){in.remote.base + 5, 45 * scale,
					       in.remote.key};
		there[1] = (struct fi_rma_iov){in.remote.base + 5 + total, 15 * scale,
					       in.remote.key};
		msg.addr = s->node.peer;
		while (node_again(s, fi_writemsg(s->node.ep, &msg, FI_DELIVERY_COMPLETE),
				  "fi_writemsg"))
			;
		node_expect(s, &d, WRITES, &d);
		order_give(s, (struct order){.kind = ORDER_CHECK,
					     .offset = 5,
					     .len = 20 * scale,
					     .seed = 7});
		order_give(s, (struct order){.kind = ORDER_CHECK,
					     .offset = 5 + 20 * scale,
					     .len = 20 * scale,
					     .seed = 8});
		for (int i = 0; i < 3; i++)
			memset(here[i].iov_base, 0, here[i].iov_len);
		while (node_again(s, fi_readmsg(s->node.ep, &msg, 0), "fi_readmsg"))
			;
		node_expect(s, &d, READS, &d);
		for (int i = 0; i < 3; i++)
			mem_check(s, here[i].iov_base, here[i].iov_len, 7 + (uint32_t)i,
				  "a piece read back");
	}
	initiator_close(s, &in);
}

static void inject_run(struct side *s)
{
	struct initiator in = {0};
	size_t most;
	struct done d;

	initiator_open(s, &in, &want_default);
	most = s->node.info->tx_attr->inject_size;
	for (uint32_t i = 0; i < 20; i++) {
		size_t len = i == 19 ? most : most * i / 20;

		mem_fill(in.mem, len, i);
		while (node_again(s,
				  fi_inject_write(s->node.ep, in.mem, len, s->node.peer,
						  in.remote.base + i * 4096,
						  in.remote.key),
				  "fi_inject_write"))
			;
		memset(in.mem, 0, len);
	}
	/* A read behind them: when it is done, so are they. */
	mem_fill(in.mem, 8, 99);
	write_post(s, &in, 0, 8, &d);
	node_expect(s, &d, WRITES, &d);
	node_quiet(s, 50);
	for (uint32_t i = 1; i < 20; i++)
		order_give(s, (struct order){.kind = ORDER_CHECK,
					     .offset = i * 4096,
					     .len = i == 19 ? most : most * i / 20,
					     .seed = i});
	initiator_close(s, &in);
}

/* Writes with data: the target has a completion of each. */
#define DATA_COUNT 8

static size_t data_size(int i)
{
	return i < 4 ? (size_t)i * 8 : sizes_all[4 + i];
}

static void data_run(struct side *s)
{
	struct initiator in = {0};
	struct done d;

	initiator_open(s, &in, &want_default);
	order_give(s, (struct order){.kind = ORDER_END});
	for (int i = 0; i < DATA_COUNT; i++) {
		size_t len = data_size(i);
		ssize_t rc;

		mem_fill(in.mem, len, (uint32_t)i);
		do {
			if (i == 1)
				rc = fi_inject_writedata(s->node.ep, in.mem, len,
							 0xabcd00000001, s->node.peer,
							 in.remote.base, in.remote.key);
			else
				rc = fi_writedata(s->node.ep, in.mem, len, in.desc,
						  0xabcd00000000 + (uint64_t)i,
						  s->node.peer, in.remote.base,
						  in.remote.key, &d);
		} while (node_again(s, rc, "fi_writedata"));
		if (i != 1)
			node_expect(s, &d, WRITES, &d);
		side_meet(s);
	}
	if (in.mr)
		side_must(s, fi_close(&in.mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

static void data_target(struct side *s)
{
	struct target t = {.mem = mem_new(MEM_SIZE)};
	struct done d;

	node_open(s, &want_default);
	target_serve(s, &t);
	for (int i = 0; i < DATA_COUNT; i++) {
		node_expect(s, &d, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, NULL);
		side_check_u64(s, d.e.data, 0xabcd00000000 + (uint64_t)i,
			       "data of a write");
		side_check_u64(s, d.e.len, data_size(i), "length of a write");
		mem_check(s, t.mem, data_size(i), (uint32_t)i, "written with data");
		side_meet(s);
	}
	side_must(s, fi_close(&t.mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

/* ---- what must be refused */

static void write_checked(struct side *s, struct initiator *in, size_t len)
{
	struct done d;

	mem_fill(in->mem, len, 44);
	write_post(s, in, 0, len, &d);
	node_expect(s, &d, WRITES, &d);
	order_give(s, (struct order){.kind = ORDER_CHECK, .len = len, .seed = 44});
}

static void refusals_run(struct side *s)
{
	const size_t lens[] = {8, 1u << 20};
	struct initiator in = {0};

	initiator_open(s, &in, &want_default);
	mem_fill(in.mem, 1u << 20, 1);
	for (size_t i = 0; i < 2; i++) {
		const size_t len = lens[i];
		uint64_t base, key;

		in.remote = order_give(
			s, (struct order){.kind = ORDER_REGISTER,
					  .offset = 4096,
					  .len = 2u << 20,
					  .access = FI_REMOTE_READ | FI_REMOTE_WRITE});
		base = in.remote.base, key = in.remote.key;
		order_give(s, (struct order){
				      .kind = ORDER_FILL, .len = 4u << 20, .seed = 5});
		refused(s, &in, true, base, key ^ 0x5a5a00, len, "write by a wrong key");
		refused(s, &in, false, base, key ^ 0x5a5a00, len, "read by a wrong key");
		refused(s, &in, true, base + (2u << 20) - len + 1, key, len,
			"write past the end");
		refused(s, &in, false, base + (2u << 20) - len + 1, key, len,
			"read past the end");
		refused(s, &in, true, base - 1, key, len, "write before the start");
		refused(s, &in, true, UINT64_MAX - 2, key, len,
			"write round the address space");
		order_give(s, (struct order){
				      .kind = ORDER_CHECK, .len = 4u << 20, .seed = 5});
		in.remote = order_give(s, (struct order){.kind = ORDER_REGISTER,
							 .len = 2u << 20,
							 .access = FI_REMOTE_READ});
		refused(s, &in, true, in.remote.base, in.remote.key, len,
			"write where only reading is allowed");
		in.remote = order_give(s, (struct order){.kind = ORDER_REGISTER,
							 .len = 2u << 20,
							 .access = FI_REMOTE_WRITE});
		refused(s, &in, false, in.remote.base, in.remote.key, len,
			"read where only writing is allowed");
		write_checked(s, &in, len);
		order_give(s, (struct order){.kind = ORDER_REGISTER, .access = 0});
		refused(s, &in, true, in.remote.base, in.remote.key, len,
			"write to a closed registration");
	}
	in.remote =
		order_give(s, (struct order){.kind = ORDER_REGISTER,
					     .len = MEM_SIZE,
					     .access = FI_REMOTE_READ | FI_REMOTE_WRITE});
	both_ways(s, &in, 0, 1u << 20, 3);
	initiator_close(s, &in);
}

/* ---- a target that makes no call */

#define PASSIVE_MANY 600u

static const uint64_t passive_plain, passive_delivered = FI_DELIVERY_COMPLETE;

/* The target sleeps until it is told that all is over: whatever needed its help would
 * never end. Once with completions as they are by default, once when delivered. */
static void passive_run(struct side *s)
{
	const size_t some[] = {8, 4096, 65537, SIZE_MOST};
	const uint64_t *flags = s->arg;
	struct want want = want_default;
	struct initiator in = {0};
	struct done d;

	want.tx_op_flags = *flags;
	initiator_open(s, &in, &want);
	both_ways(s, &in, 0, 8, 1); /* the connection is up */
	order_give(s, (struct order){.kind = ORDER_PAUSE});
	for (uint32_t i = 0; i < ARRAY_LEN(some); i++) {
		mem_fill(in.mem, some[i], i);
		write_post(s, &in, 0, some[i], &d);
		node_expect(s, &d, WRITES, &d);
		memset(in.mem, 0, some[i]);
		read_post(s, &in, 0, some[i], &d);
		node_expect(s, &d, READS, &d);
		mem_check(s, in.mem, some[i], i, "what was read back");
	}
	/* Many at once, more than any queue holds. */
	for (uint32_t i = 0; i < PASSIVE_MANY; i++) {
		mem_fill(in.mem + i * 64, 64, i);
		write_post(s, &in, i * 64, 64, &d);
	}
	for (uint32_t i = 0; i < PASSIVE_MANY; i++)
		node_expect(s, &d, WRITES, &d);
	memset(in.mem, 0, PASSIVE_MANY * 64);
	for (uint32_t i = 0; i < PASSIVE_MANY; i++)
		read_post(s, &in, i * 64, 64, &d);
	for (uint32_t i = 0; i < PASSIVE_MANY; i++)
		node_expect(s, &d, READS, &d);
	for (uint32_t i = 0; i < PASSIVE_MANY; i++)
		mem_check(s, in.mem + i * 64, 64, i, "what was read back");
	order_wake(s);
	initiator_close(s, &in);
}

static void passive_target(struct side *s)
{
	const uint64_t *flags = s->arg;
	struct want want = want_default;

	want.tx_op_flags = *flags;
	target_run_as(s, &want);
}

/* ---- many at once, and order against messages */

#define MANY 600

static void many_run(struct side *s)
{
	struct initiator in = {0};
	struct done d;
	int done = 0;

	initiator_open(s, &in, &want_default);
	for (uint32_t i = 0; i < MANY; i++) {
		mem_fill(in.mem + i * 8192, 8000, i);
		write_post(s, &in, (size_t)i * 8192, 8000, &d);
	}
	for (; done < MANY; done++)
		node_expect(s, &d, WRITES, &d);
	for (uint32_t i = 0; i < MANY; i++)
		order_give(s, (struct order){.kind = ORDER_CHECK,
					     .offset = (size_t)i * 8192,
					     .len = 8000,
					     .seed = i});
	initiator_close(s, &in);
}

/* FI_ORDER_SAW: a message after a write finds it done. */
static const struct want want_order = {
	.caps = RMA_CAPS, .mr_mode = BASE_MODE, .msg_order = FI_ORDER_SAW};

static void behind_run(struct side *s)
{
	struct initiator in = {0};
	struct done d;

	initiator_open(s, &in, &want_order);
	order_give(s, (struct order){.kind = ORDER_END});
	for (uint32_t i = 0; i < sizes_count; i++) {
		mem_fill(in.mem, sizes_all[i], i);
		write_post(s, &in, 0, sizes_all[i], &d);
		while (node_again(
			s, fi_send(s->node.ep, in.mem, 8, in.desc, s->node.peer, &d),
			"fi_send"))
			;
		for (int k = 0; k < 2; k++) {
			if (!node_next(s, &d, WAIT_MS) || d.err)
				side_die(s, "a write and a message behind it do not "
					    "complete");
		}
		side_meet(s);
	}
	if (in.mr)
		side_must(s, fi_close(&in.mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

static void behind_target(struct side *s)
{
	struct target t = {.mem = mem_new(MEM_SIZE)};
	struct fid_mr *mr = NULL;
	struct done d;
	uint8_t in[8];

	node_open(s, &want_order);
	if (local_needed(&s->node))
		side_must(s,
			  fi_mr_reg(s->node.domain, in, sizeof(in), FI_RECV, 0, 3, 0, &mr,
				    NULL),
			  "fi_mr_reg");
	target_serve(s, &t);
	for (uint32_t i = 0; i < sizes_count; i++) {
		while (node_again(s,
				  fi_recv(s->node.ep, in, sizeof(in),
					  mr ? fi_mr_desc(mr) : NULL, FI_ADDR_UNSPEC, &d),
				  "fi_recv"))
			;
		node_expect(s, &d, FI_MSG | FI_RECV, &d);
		mem_check(s, t.mem, sizes_all[i], i, "written before the message");
		side_meet(s);
	}
	side_must(s, fi_close(&t.mr->fid), "fi_close of a registration");
	if (mr)
		side_must(s, fi_close(&mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

/* ---- to oneself, and through a registration of several pieces */

static void self_run(struct side *s)
{
	uint8_t *there = mem_new(SIZE_MOST + 64), *here;
	struct initiator in = {0};
	struct fid_mr *mr;
	struct done d;

	initiator_open(s, &in, &want_default);
	here = in.mem;
	side_must(s,
		  fi_mr_reg(s->node.domain, there, SIZE_MOST + 64,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0x99, 0, &mr, NULL),
		  "fi_mr_reg");
	in.remote.key = fi_mr_key(mr);
	in.remote.base = remote_base(&s->node, there);
	s->node.peer = s->node.self;
	for (uint32_t i = 0; i < sizes_count; i++) {
		mem_fill(here, sizes_all[i], i);
		write_post(s, &in, 0, sizes_all[i], &d);
		node_expect(s, &d, WRITES, &d);
		mem_check(s, there, sizes_all[i], i, "written to oneself");
		mem_fill(there, sizes_all[i], i + 50);
		read_post(s, &in, 0, sizes_all[i], &d);
		node_expect(s, &d, READS, &d);
		mem_check(s, here, sizes_all[i], i + 50, "read from oneself");
	}
	refused(s, &in, true, in.remote.base + SIZE_MOST + 60, in.remote.key, 8,
		"write past our own end");
	side_must(s, fi_close(&mr->fid), "fi_close of a registration");
	initiator_close(s, &in);
}

/* Two pieces far apart, registered as one. */
static void joined_target(struct side *s)
{
	uint8_t *mem = mem_new(MEM_SIZE);
	const struct iovec iov[2] = {{mem + 4096, 100000}, {mem + (4u << 20), 100000}};
	struct answer a = {0};
	struct fid_mr *mr;

	node_open(s, &want_default);
	if (s->node.info->domain_attr->mr_iov_limit < 2)
		side_lacks(s, "registers one piece at a time");
	side_must(s,
		  fi_mr_regv(s->node.domain, iov, 2, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			     5, 0, &mr, NULL),
		  "fi_mr_regv");
	a.key = fi_mr_key(mr);
	a.base = remote_base(&s->node, iov[0].iov_base);
	side_tell(s, &a, sizeof(a));
	side_meet(s);
	mem_check(s, iov[0].iov_base, 100000, 9, "first piece");
	side_check(s, mem[4096 + 100000] == 0xee, "written behind the first piece");
	/* The second piece goes on where the first ends. */
	for (size_t i = 0; i < 100000; i += 999) {
		uint8_t want[2 * 100000];

		mem_fill(want, sizeof(want), 9);
		side_check(s, mem[(4u << 20) + i] == want[100000 + i],
			   "second piece is wrong at %zu", i);
	}
	side_meet(s);
	side_must(s, fi_close(&mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

static void joined_run(struct side *s)
{
	struct initiator in = {.mem = mem_new(MEM_SIZE)};
	struct done d;

	node_open(s, &want_default);
	if (s->node.info->domain_attr->mr_iov_limit < 2)
		side_lacks(s, "registers one piece at a time");
	if (local_needed(&s->node))
		side_lacks(s, "wants local registration");
	side_hear(s, &in.remote, sizeof(in.remote));
	mem_fill(in.mem, 200000, 9);
	write_post(s, &in, 0, 200000, &d);
	node_expect(s, &d, WRITES, &d);
	side_meet(s);
	memset(in.mem, 0, 200000);
	read_post(s, &in, 99000, 2000, &d);
	node_expect(s, &d, READS, &d);
	side_check(s, in.mem[98999] == 0 && in.mem[101000] == 0, "read too much");
	refused(s, &in, true, in.remote.base + 199999, in.remote.key, 2,
		"write past the last piece");
	side_meet(s);
	node_close(s, &s->node);
}

/* Rules D2 and D3: after fi_close of a registration its memory is the owner's alone. */
static void revoke_target(struct side *s)
{
	struct target t = {.mem = mem_new(MEM_SIZE)};
	const struct order o = {.len = MEM_SIZE, .access = FI_REMOTE_WRITE};
	struct answer a = {.good = true};
	uint64_t end;

	node_open(s, &want_default);
	for (int round = 0; round < 5; round++) {
		target_register(s, &t, &o, &a);
		side_tell(s, &a, sizeof(a));
		for (end = now_ms() + 30 + 20 * (uint64_t)round; now_ms() < end;)
			node_progress(&s->node);
		side_must(s, fi_close(&t.mr->fid), "fi_close of a registration in use");
		t.mr = NULL;
		memset(t.mem, 0x77, MEM_SIZE);
		for (end = now_ms() + 50; now_ms() < end;)
			node_progress(&s->node);
		for (size_t i = 0; i < MEM_SIZE; i++) {
			if (!side_check(s, t.mem[i] == 0x77,
					"byte %zu was written after fi_close", i))
				break;
		}
		side_meet(s);
	}
	node_close(s, &s->node);
}

static void revoke_run(struct side *s)
{
	struct initiator in = {.mem = mem_new(MEM_SIZE)};
	struct done d;

	node_open(s, &want_default);
	if (local_needed(&s->node))
		side_lacks(s, "wants local registration");
	mem_fill(in.mem, MEM_SIZE, 1);
	for (int round = 0; round < 5; round++) {
		uint64_t end = now_ms() + WAIT_MS;

		side_hear(s, &in.remote, sizeof(in.remote));
		do { /* until the first one fails */
			write_post(s, &in, 0, SIZE_MOST, &d);
			if (!node_next(s, &d, WAIT_MS))
				side_die(s, "a write never ends");
		} while (!d.err && now_ms() < end);
		side_check(s, d.err > 0, "writes go on without a registration");
		side_meet(s);
	}
	node_close(s, &s->node);
}

/* ---- the table */

#define MODES 16

static const struct test_case cases[] = {
	{.name = "every size", .run = {sizes_run, target_run}},
	{.name = "in pieces on both sides", .run = {pieces_run, target_run}},
	{.name = "pieces registered as one", .run = {joined_run, joined_target}},
	{.name = "fi_inject_write", .run = {inject_run, target_run}},
	{.name = "writes with data", .run = {data_run, data_target}},
	{.name = "refusals", .run = {refusals_run, target_run}},
	{.name = "a registration closed in use", .run = {revoke_run, revoke_target}},
	{.name = "a target that makes no call until all is over",
	 .run = {passive_run, passive_target},
	 .arg = &passive_plain,
	 .needs_weft = true},
	{.name = "a target that makes no call, delivered",
	 .run = {passive_run, passive_target},
	 .arg = &passive_delivered,
	 .needs_weft = true},
	{.name = "600 writes at once", .run = {many_run, target_run}},
	{.name = "a message behind a write", .run = {behind_run, behind_target}},
	{.name = "to oneself", .run = {self_run, target_run}},
};

/* Every combination of the four bits, and the two old modes. */
static void modes_cases_run(void)
{
	static const int bits[] = {FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_PROV_KEY,
				   FI_MR_ALLOCATED};
	static const char *const names[] = {" LOCAL", " VIRT_ADDR", " PROV_KEY",
					    " ALLOCATED"};
	static int modes[MODES + 2];
	static char text[MODES + 2][64];
	static struct test_case made[MODES + 2];

	for (int i = 0; i < MODES + 2; i++) {
		strcpy(text[i], i == MODES  ? "mode BASIC"
				: i > MODES ? "mode SCALABLE"
					    : "mode");
		modes[i] = i == MODES ? FI_MR_BASIC : i > MODES ? FI_MR_SCALABLE : 0;
		for (int k = 0; k < 4 && i < MODES; k++) {
			if (!(i & 1 << k))
				continue;
			modes[i] |= bits[k];
			strcat(text[i], names[k]);
		}
		made[i] = (struct test_case){.name = text[i],
					     .run = {modes_run, modes_target},
					     .arg = &modes[i]};
	}
	strcpy(text[0], "mode 0");
	cases_run(made, ARRAY_LEN(made), "");
}

int main(int argc, char **argv)
{
	test_init(argc, argv);
	modes_cases_run();
	cases_run(cases, ARRAY_LEN(cases), "");
	if (!test_is_weft())
		return test_done();
	cases_before(attach_probe);
	cases_run(cases, ARRAY_LEN(cases), ", cross-memory attach refused");
	cases_before(NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	cases_run(cases, ARRAY_LEN(cases), ", FI_WEFT_CMA=0");
	return test_done();
}
