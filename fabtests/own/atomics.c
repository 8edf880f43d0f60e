/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations: every call, every operation on every type that is said to be there
 * and none that isn't, limits, refusals. What operations calculate is proven beside their
 * unit, what else happens with them in atomic_events.
 */
#include "config.h"

#include "fabtests/own/atomic_side.h"

#include <string.h>

/* ---- every call */

static void base_calls(struct side *s, struct initiator *in)
{
	struct node *n = &s->node;
	uint64_t *arg = (uint64_t *)(void *)in->mem;
	struct fi_ioc ioc[2] = {{arg, 1}, {arg + 4, 1}};
	void *desc[2] = {in->desc, in->desc};
	struct fi_rma_ioc there[2] = {{in->remote.base + 8, 1, in->remote.key},
				      {in->remote.base + 32, 1, in->remote.key}};
	struct done d;
	struct fi_msg_atomic msg = {.msg_iov = ioc,
				    .desc = desc,
				    .iov_count = 2,
				    .addr = n->peer,
				    .rma_iov = there,
				    .rma_iov_count = 2,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .context = &d};

	for (size_t i = 0; i < 6; i++)
		write_u64(s, in, 8 * i, 100);
	arg[0] = 1, arg[4] = 2;
	while (node_again(s,
			  fi_atomic(n->ep, arg, 1, in->desc, n->peer, in->remote.base,
				    in->remote.key, FI_UINT64, FI_SUM, &d),
			  "fi_atomic"))
		;
	node_expect(s, &d, BASE_DONE, &d);
	while (node_again(s,
			  fi_atomicv(n->ep, ioc, desc, 2, n->peer, in->remote.base + 8,
				     in->remote.key, FI_UINT64, FI_SUM, &d),
			  "fi_atomicv"))
		;
	node_expect(s, &d, BASE_DONE, &d);
	while (node_again(s, fi_atomicmsg(n->ep, &msg, FI_DELIVERY_COMPLETE),
			  "fi_atomicmsg"))
		;
	node_expect(s, &d, BASE_DONE, &d);
	while (node_again(s,
			  fi_inject_atomic(n->ep, arg, 1, n->peer, in->remote.base + 40,
					   in->remote.key, FI_UINT64, FI_SUM),
			  "fi_inject_atomic"))
		;
	arg[0] = 77; /* ours again at once */
	side_check_u64(s, read_u64(s, in, 0), 101, "fi_atomic");
	side_check_u64(s, read_u64(s, in, 8), 102, "fi_atomicv and fi_atomicmsg");
	side_check_u64(s, read_u64(s, in, 16), 102, "fi_atomicv, second piece");
	side_check_u64(s, read_u64(s, in, 24), 100, "between the pieces");
	side_check_u64(s, read_u64(s, in, 32), 102, "fi_atomicmsg, second piece");
	side_check_u64(s, read_u64(s, in, 40), 101, "fi_inject_atomic");
	node_quiet(s, 20);
}

static void fetch_calls(struct side *s, struct initiator *in)
{
	struct node *n = &s->node;
	uint64_t *arg = (uint64_t *)(void *)in->mem, *result = arg + 64;
	struct fi_ioc ioc[2] = {{arg, 1}, {arg + 4, 2}};
	struct fi_ioc to[2] = {{result, 2}, {result + 4, 1}};
	void *desc[2] = {in->desc, in->desc};
	struct fi_rma_ioc there = {in->remote.base, 3, in->remote.key};
	struct done d;
	struct fi_msg_atomic msg = {.msg_iov = ioc,
				    .desc = desc,
				    .iov_count = 2,
				    .addr = n->peer,
				    .rma_iov = &there,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .context = &d};

	for (size_t i = 0; i < 3; i++)
		write_u64(s, in, 8 * i, 10 * i);
	arg[0] = 1, arg[4] = 2, arg[5] = 3;
	while (node_again(s,
			  fi_fetch_atomicv(n->ep, ioc, desc, 2, to, desc, 2, n->peer,
					   in->remote.base, in->remote.key, FI_UINT64,
					   FI_SUM, &d),
			  "fi_fetch_atomicv"))
		;
	node_expect(s, &d, FETCH_DONE, &d);
	side_check(s, result[0] == 0 && result[1] == 10 && result[4] == 20,
		   "fi_fetch_atomicv: %d %d %d", (int)result[0], (int)result[1],
		   (int)result[4]);
	while (node_again(s, fi_fetch_atomicmsg(n->ep, &msg, to, desc, 2, FI_INJECT),
			  "fi_fetch_atomicmsg"))
		;
	node_expect(s, &d, FETCH_DONE, &d);
	side_check(s, result[0] == 1 && result[1] == 12 && result[4] == 23,
		   "fi_fetch_atomicmsg: %d %d %d", (int)result[0], (int)result[1],
		   (int)result[4]);
	/* A read has no operands: nobody looks at what is there in their place. */
	msg.op = FI_ATOMIC_READ, msg.msg_iov = NULL, msg.iov_count = 0;
	while (node_again(s, fi_fetch_atomicmsg(n->ep, &msg, to, desc, 2, 0),
			  "fi_fetch_atomicmsg"))
		;
	node_expect(s, &d, FETCH_DONE, &d);
	while (node_again(s,
			  fi_fetch_atomic(n->ep, NULL, 2, NULL, result + 8, in->desc,
					  n->peer, in->remote.base, in->remote.key,
					  FI_UINT64, FI_ATOMIC_READ, &d),
			  "fi_fetch_atomic"))
		;
	node_expect(s, &d, FETCH_DONE, &d);
	side_check(s,
		   result[0] == 2 && result[1] == 14 && result[4] == 26 &&
			   result[8] == 2 && result[9] == 14,
		   "reads");
}

static void compare_calls(struct side *s, struct initiator *in)
{
	struct node *n = &s->node;
	uint64_t *arg = (uint64_t *)(void *)in->mem, *cmp = arg + 32, *result = arg + 64;
	struct fi_ioc ioc = {arg, 2}, with = {cmp, 2}, to = {result, 2};
	void *desc = in->desc;
	struct fi_rma_ioc there = {in->remote.base, 2, in->remote.key};
	struct done d;
	struct fi_msg_atomic msg = {.msg_iov = &ioc,
				    .desc = &desc,
				    .iov_count = 1,
				    .addr = n->peer,
				    .rma_iov = &there,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_MSWAP,
				    .context = &d};

	write_u64(s, in, 0, 5);
	write_u64(s, in, 8, 6);
	arg[0] = 50, arg[1] = 60, cmp[0] = 5, cmp[1] = 5;
	while (node_again(s,
			  fi_compare_atomic(n->ep, arg, 2, desc, cmp, desc, result, desc,
					    n->peer, in->remote.base, in->remote.key,
					    FI_UINT64, FI_CSWAP, &d),
			  "fi_compare_atomic"))
		;
	node_expect(s, &d, FETCH_DONE, &d);
	side_check(s, result[0] == 5 && result[1] == 6, "fi_compare_atomic");
	while (node_again(s,
			  fi_compare_atomicv(n->ep, &ioc, &desc, 1, &with, &desc, 1, &to,
					     &desc, 1, n->peer, in->remote.base,
					     in->remote.key, FI_UINT64, FI_CSWAP_LT, &d),
			  "fi_compare_atomicv"))
		;
	node_expect(s, &d, FETCH_DONE, &d);
	side_check(s, result[0] == 50 && result[1] == 6, "fi_compare_atomicv");
	arg[0] = 0xff, arg[1] = 0, cmp[0] = 0xf0, cmp[1] = 4;
	while (node_again(s,
			  fi_compare_atomicmsg(n->ep, &msg, &with, &desc, 1, &to, &desc,
					       1, FI_COMPLETION),
			  "fi_compare_atomicmsg"))
		;
	node_expect(s, &d, FETCH_DONE, &d);
	side_check(s, result[0] == 50 && result[1] == 60, "fi_compare_atomicmsg");
	side_check_u64(s, read_u64(s, in, 0), 0xf2, "masked swap");
	side_check_u64(s, read_u64(s, in, 8), 56, "masked swap");
}

static void calls_run(struct side *s)
{
	struct initiator in = {0};

	initiator_open(s, &in, &want_atomic);
	base_calls(s, &in);
	fetch_calls(s, &in);
	compare_calls(s, &in);
	initiator_close(s, &in);
}

/* ---- every operation on every type */

static const uint64_t query_flags[3] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};

static int ep_valid(struct fid_ep *ep, int mode, enum fi_datatype type, enum fi_op op,
		    size_t *count)
{
	switch (mode) {
	case 0:
		return fi_atomicvalid(ep, type, op, count);
	case 1:
		return fi_fetch_atomicvalid(ep, type, op, count);
	default:
		return fi_compare_atomicvalid(ep, type, op, count);
	}
}

/* What is said to be there works, for one element and for the most; what isn't is refused
 * by all that can be asked. */
static bool every_one(struct side *s, struct initiator *in, int mode,
		      enum fi_datatype type, enum fi_op op)
{
	struct fi_atomic_attr attr = {0};
	struct done d;
	size_t count = 0;
	int rc = fi_query_atomic(s->node.domain, type, op, &attr, query_flags[mode]);

	side_check_u64(s, (uint64_t)ep_valid(s->node.ep, mode, type, op, &count),
		       (uint64_t)rc, "the two questions agree");
	if (rc) {
		side_check(s, rc == -FI_EOPNOTSUPP, "fi_query_atomic gave %d", rc);
		side_check(s, post_any(s, in, mode, type, op, 1, NULL) == -FI_EOPNOTSUPP,
			   "type %d, operation %d, call %d: not refused", (int)type,
			   (int)op, mode);
		return false;
	}
	side_check(s, count == attr.count && count > 0 && attr.size > 0,
		   "type %d: %zu or %zu elements of %zu bytes", (int)type, count,
		   attr.count, attr.size);
	for (size_t some = 1; some <= count; some += count - 1) {
		while (node_again(s, post_any(s, in, mode, type, op, some, &d), "atomic"))
			;
		node_expect(s, &d, mode ? FETCH_DONE : BASE_DONE, &d);
	}
	side_check(s, post_any(s, in, mode, type, op, count + 1, NULL) == -FI_EMSGSIZE,
		   "more elements than there may be");
	side_check(s, post_any(s, in, mode, type, op, SIZE_MAX, NULL) == -FI_EMSGSIZE,
		   "far more elements");
	side_check(s, post_any(s, in, mode, type, op, 0, NULL) == -FI_EINVAL,
		   "no elements");
	return true;
}

static void every_run(struct side *s)
{
	/* By call: 8 types of integers and two of 128 bits, 3 real ones, 3 complex ones.
	 */
	const int want[3] = {10 * 11 + 3 * 8 + 3 * 6, 10 * 12 + 3 * 9 + 3 * 7,
			     10 * 7 + 3 * 6 + 3 * 2};
	struct initiator in = {0};

	initiator_open(s, &in, &want_atomic);
	memset(in.mem, 0, 512 << 10);
	for (int mode = 0; mode < 3; mode++) {
		int found = 0;

		for (int type = 0; type <= FI_UINT128 + 1; type++) {
			for (int op = 0; op <= FI_ATOMIC_OP_LAST; op++)
				found += every_one(s, &in, mode, (enum fi_datatype)type,
						   (enum fi_op)op);
		}
		if (test_is_weft())
			side_check_u64(s, (uint64_t)found, (uint64_t)want[mode],
				       "operations that are there");
	}
	initiator_close(s, &in);
}

/* ---- questions and calls that make no sense */

static void misuse_run(struct side *s)
{
	struct initiator in = {0};
	struct fi_atomic_attr attr;
	struct fi_ioc ioc[5], two;
	struct fi_rma_ioc there[5];
	struct done d;
	struct fi_msg_atomic msg = {.msg_iov = ioc,
				    .iov_count = 1,
				    .rma_iov = there,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .context = &d};
	struct node *n = &s->node;
	size_t most;

	initiator_open(s, &in, &want_atomic);
	most = n->info->tx_attr->inject_size;
	msg.addr = n->peer;
	for (int i = 0; i < 5; i++) {
		ioc[i] = (struct fi_ioc){in.mem, 1};
		there[i] = (struct fi_rma_ioc){in.remote.base, 1, in.remote.key};
	}
	two = (struct fi_ioc){in.mem + 64, 2};
	side_check_u64(s,
		       (uint64_t)fi_query_atomic(n->domain, FI_UINT64, FI_SUM, &attr,
						 FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
		       (uint64_t)-FI_EBADFLAGS, "both flags");
	side_check_u64(
		s,
		(uint64_t)fi_query_atomic(n->domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED),
		(uint64_t)-FI_EOPNOTSUPP, "tagged targets");
	side_check_u64(s, (uint64_t)fi_atomicmsg(n->ep, &msg, FI_MULTI_RECV),
		       (uint64_t)-FI_EBADFLAGS, "a flag of receives");
	side_check_u64(s, (uint64_t)fi_atomicmsg(n->ep, &msg, FI_TAGGED),
		       (uint64_t)-FI_EOPNOTSUPP, "a tagged target");
	msg.iov_count = 5, msg.rma_iov_count = 4;
	side_check_u64(s, (uint64_t)fi_atomicmsg(n->ep, &msg, 0), (uint64_t)-FI_EINVAL,
		       "five local pieces");
	msg.iov_count = 4, msg.rma_iov_count = 5;
	side_check_u64(s, (uint64_t)fi_atomicmsg(n->ep, &msg, 0), (uint64_t)-FI_EINVAL,
		       "five remote pieces");
	msg.rma_iov_count = 3;
	side_check_u64(s, (uint64_t)fi_atomicmsg(n->ep, &msg, 0), (uint64_t)-FI_EINVAL,
		       "lists of different lengths");
	msg.iov_count = 1, msg.rma_iov_count = 1;
	side_check_u64(s, (uint64_t)fi_fetch_atomicmsg(n->ep, &msg, &two, NULL, 1, 0),
		       (uint64_t)-FI_EINVAL, "more results than elements");
	side_check_u64(s,
		       (uint64_t)fi_inject_atomic(n->ep, in.mem, most / 8 + 1, n->peer,
						  in.remote.base, in.remote.key,
						  FI_UINT64, FI_SUM),
		       (uint64_t)-FI_EINVAL, "more than can be injected");
	side_check_u64(s,
		       (uint64_t)fi_atomic(n->ep, NULL, 1, NULL, n->peer, in.remote.base,
					   in.remote.key, FI_UINT64, FI_SUM, NULL),
		       (uint64_t)-FI_EINVAL, "no operands");
	side_check_u64(s,
		       (uint64_t)fi_atomic(n->ep, in.mem, 1, in.desc, 12345,
					   in.remote.base, in.remote.key, FI_UINT64,
					   FI_SUM, NULL),
		       (uint64_t)-FI_EINVAL, "an address that nobody inserted");
	/* As much as can be injected goes. */
	memset(in.mem, 0, most);
	while (node_again(s,
			  fi_inject_atomic(n->ep, in.mem, most / 8, n->peer,
					   in.remote.base, in.remote.key, FI_UINT64,
					   FI_ATOMIC_WRITE),
			  "fi_inject_atomic"))
		;
	memset(in.mem, 1, most);
	side_check_u64(s, read_u64(s, &in, most - 8), 0, "injected");
	node_quiet(s, 20);
	initiator_close(s, &in);
}

/* ---- what the target refuses */

static void expect_error(struct side *s, struct initiator *in, uint64_t addr,
			 uint64_t key, enum fi_op op, int err, const char *what)
{
	struct done d;

	while (node_again(s,
			  fi_fetch_atomic(s->node.ep, in->mem, 1, in->desc, in->mem + 64,
					  in->desc, s->node.peer, addr, key, FI_UINT64,
					  op, &d),
			  what))
		;
	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "%s: no completion", what);
	side_check_u64(s, (uint64_t)d.err, (uint64_t)err, what);
	side_check_u64(s, d.e.flags, FETCH_DONE, what);
	side_check(s, d.e.op_context == &d, "%s: context", what);
}

static void refusals_run(struct side *s)
{
	struct initiator in = {0};
	uint64_t base, key;

	initiator_open(s, &in, &want_atomic);
	base = in.remote.base, key = in.remote.key;
	expect_error(s, &in, base, key ^ 0x5a5a00, FI_SUM, FI_ENOKEY, "a wrong key");
	expect_error(s, &in, base + MEM_SIZE - 7, key, FI_SUM, FI_EINVAL,
		     "across the end");
	expect_error(s, &in, base + 4, key, FI_SUM, FI_EINVAL, "not aligned");
	expect_error(s, &in, UINT64_MAX - 7, key, FI_SUM, FI_EINVAL,
		     "the end of the address space");
	in.remote = order_give(s, (struct order){.kind = ORDER_REGISTER,
						 .len = 4096,
						 .access = FI_REMOTE_READ});
	read_u64(s, &in, 0);
	expect_error(s, &in, in.remote.base, in.remote.key, FI_SUM, FI_EACCES,
		     "a change of what may be read");
	in.remote = order_give(s, (struct order){.kind = ORDER_REGISTER,
						 .len = 4096,
						 .access = FI_REMOTE_WRITE});
	expect_error(s, &in, in.remote.base, in.remote.key, FI_ATOMIC_READ, FI_EACCES,
		     "a read of what may be written");
	expect_error(s, &in, base, key, FI_SUM, FI_ENOKEY,
		     "a registration that is closed");
	in.remote = order_give(s, (struct order){.kind = ORDER_REGISTER,
						 .len = 4096,
						 .access = ALL_ACCESS});
	write_u64(s, &in, 4088, 3);
	side_check_u64(s, read_u64(s, &in, 4088), 3, "it goes on");
	initiator_close(s, &in);
}

/* ---- capabilities by direction */

static void only_write_run(struct side *s)
{
	const struct want want = {.caps = FI_ATOMIC | FI_WRITE, .mr_mode = BASE_MODE};
	struct initiator in = {0};
	struct done d;
	size_t count;

	initiator_open(s, &in, &want);
	in.mem[0] = 1;
	while (node_again(s,
			  fi_atomic(s->node.ep, in.mem, 1, in.desc, s->node.peer,
				    in.remote.base, in.remote.key, FI_UINT8, FI_SUM, &d),
			  "fi_atomic"))
		;
	node_expect(s, &d, BASE_DONE, &d);
	side_check(s,
		   post_any(s, &in, 1, FI_UINT8, FI_SUM, 1, NULL) == -FI_EOPNOTSUPP &&
			   fi_fetch_atomicvalid(s->node.ep, FI_UINT8, FI_SUM, &count) ==
				   -FI_EOPNOTSUPP,
		   "a fetch without FI_READ");
	initiator_close(s, &in);
}

static void no_atomics_run(struct side *s)
{
	struct initiator in = {0};

	initiator_open(s, &in, &want_atomic);
	expect_error(s, &in, in.remote.base, in.remote.key, FI_SUM, FI_EOPNOTSUPP,
		     "a target that has no atomics");
	initiator_close(s, &in);
}

static void no_atomics_target(struct side *s)
{
	target_run(s);
}

static const struct test_case cases[] = {
	{.name = "every call", .run = {calls_run, atomic_target}},
	{.name = "every operation on every type", .run = {every_run, atomic_target}},
	{.name = "calls that make no sense", .run = {misuse_run, atomic_target}},
	{.name = "refusals", .run = {refusals_run, atomic_target}},
	{.name = "FI_ATOMIC with FI_WRITE only", .run = {only_write_run, atomic_target}},
	{.name = "a target without FI_ATOMIC",
	 .run = {no_atomics_run, no_atomics_target}},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
