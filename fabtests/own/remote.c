/* SPDX-License-Identifier: BSD-2-Clause */
/* Both ends of tests of remote memory access. See remote.h. */
#include "config.h"

#include "fabtests/own/remote.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/fi_names.h"

/* ---- the target */

uint64_t remote_base(const struct node *n, const void *mem)
{
	const int mode = n->info->domain_attr->mr_mode;

	return mode & FI_MR_VIRT_ADDR || mode == FI_MR_BASIC ? (uintptr_t)mem : 0;
}

void target_register(struct side *s, struct target *t, const struct order *o,
		     struct answer *a)
{
	static uint64_t next_key = 0x1000;

	if (t->mr)
		side_must(s, fi_close(&t->mr->fid), "fi_close of a registration");
	t->mr = NULL;
	if (!o->access)
		return;
	side_must(s,
		  fi_mr_reg(s->node.domain, t->mem + o->offset, o->len, o->access, 0,
			    next_key++, 0, &t->mr, NULL),
		  "fi_mr_reg");
	a->key = fi_mr_key(t->mr);
	a->base = remote_base(&s->node, t->mem + o->offset);
}

/* Serves orders until ORDER_END. */
void target_serve(struct side *s, struct target *t)
{
	struct order o;
	char woken;

	for (;;) {
		struct answer a = {.good = true};

		side_hear(s, &o, sizeof(o));
		switch (o.kind) {
		case ORDER_FILL:
			mem_fill(t->mem + o.offset, o.len, o.seed);
			break;
		case ORDER_CHECK:
			a.good = mem_check(s, t->mem + o.offset, o.len, o.seed, "target");
			break;
		case ORDER_REGISTER:
			target_register(s, t, &o, &a);
			break;
		case ORDER_SLEEP:
			side_tell(s, &a, sizeof(a));
			sleep_ms((int)o.seed);
			continue;
		case ORDER_PAUSE:
			side_tell(s, &a, sizeof(a));
			side_hear_passive(s, &woken, sizeof(woken));
			continue;
		case ORDER_END:
			side_tell(s, &a, sizeof(a));
			return;
		}
		side_tell(s, &a, sizeof(a));
	}
}

const struct want want_default = {
	.caps = RMA_CAPS, .mr_mode = BASE_MODE, .tx_op_flags = FI_DELIVERY_COMPLETE};

void target_run_as(struct side *s, const struct want *want)
{
	struct target t = {.mem = mem_new(MEM_SIZE)};

	node_open(s, want);
	target_serve(s, &t);
	if (t.mr)
		side_must(s, fi_close(&t.mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

void target_run(struct side *s)
{
	target_run_as(s, &want_default);
}

/* ---- the initiator */

bool local_needed(const struct node *n)
{
	const int mode = n->info->domain_attr->mr_mode;

	return mode & FI_MR_LOCAL;
}

struct answer order_give(struct side *s, struct order o)
{
	struct answer a;

	side_tell(s, &o, sizeof(o));
	side_hear(s, &a, sizeof(a));
	if (!a.good)
		s->failed++;
	return a;
}

void order_wake(struct side *s)
{
	side_tell(s, "", 1);
}

void initiator_open(struct side *s, struct initiator *in, const struct want *want)
{
	node_open(s, want);
	in->mem = mem_new(MEM_SIZE);
	if (local_needed(&s->node)) {
		side_must(s,
			  fi_mr_reg(s->node.domain, in->mem, MEM_SIZE, FI_READ | FI_WRITE,
				    0, 0x77, 0, &in->mr, NULL),
			  "fi_mr_reg");
		in->desc = fi_mr_desc(in->mr);
	}
	in->remote =
		order_give(s, (struct order){.kind = ORDER_REGISTER,
					     .len = MEM_SIZE,
					     .access = FI_REMOTE_READ | FI_REMOTE_WRITE});
}

void initiator_close(struct side *s, struct initiator *in)
{
	order_give(s, (struct order){.kind = ORDER_END});
	if (in->mr)
		side_must(s, fi_close(&in->mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

void write_post(struct side *s, struct initiator *in, size_t off, size_t len, void *ctx)
{
	while (node_again(s,
			  fi_write(s->node.ep, in->mem + off, len, in->desc, s->node.peer,
				   in->remote.base + off, in->remote.key, ctx),
			  "fi_write"))
		;
}

void read_post(struct side *s, struct initiator *in, size_t off, size_t len, void *ctx)
{
	while (node_again(s,
			  fi_read(s->node.ep, in->mem + off, len, in->desc, s->node.peer,
				  in->remote.base + off, in->remote.key, ctx),
			  "fi_read"))
		;
}

/* Writes and reads back, with the target's word for both. */
void both_ways(struct side *s, struct initiator *in, size_t off, size_t len,
	       uint32_t seed)
{
	struct done d;

	mem_fill(in->mem + off, len, seed);
	write_post(s, in, off, len, &d);
	node_expect(s, &d, WRITES, &d);
	order_give(s,
		   (struct order){
			   .kind = ORDER_CHECK, .offset = off, .len = len, .seed = seed});
	order_give(s,
		   (struct order){
			   .kind = ORDER_FILL, .offset = off, .len = len, .seed = ~seed});
	read_post(s, in, off, len, &d);
	node_expect(s, &d, READS, &d);
	mem_check(s, in->mem + off, len, ~seed, "what was read");
}

void refused(struct side *s, struct initiator *in, bool write, uint64_t addr,
	     uint64_t key, size_t len, const char *what)
{
	struct done d;

	for (;;) {
		ssize_t rc = write ? fi_write(s->node.ep, in->mem, len, in->desc,
					      s->node.peer, addr, key, &d)
				   : fi_read(s->node.ep, in->mem, len, in->desc,
					     s->node.peer, addr, key, &d);

		if (!node_again(s, rc, what))
			break;
	}
	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "%s: no completion", what);
	side_check(s, d.err > 0, "%s: it succeeded", what);
	side_check_u64(s, d.e.flags, write ? WRITES : READS, what);
	side_check(s, d.e.op_context == &d, "%s: context", what);
}

/* ---- cross-memory attach refused */

/* In a side, before anything else: no process without that capability may reach us. */
static void attach_refuse(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) == 0) {
		for (int i = 0; i < 3; i++) {
			uint32_t *set = i == 0	 ? &data[0].effective
					: i == 1 ? &data[0].permitted
						 : &data[0].inheritable;

			*set &= ~(1u << CAP_SYS_PTRACE);
		}
		syscall(SYS_capset, &head, data);
	}
	prctl(PR_SET_DUMPABLE, 0);
}

/* The proof that it is refused, between the two sides. */
void attach_probe(struct side *s)
{
	char byte = 0, got;
	struct iovec here = {&got, 1}, there = {&byte, 1};

	attach_refuse();
	side_meet(s);
	/* Forked from one image: the other's variable has our address. */
	side_check(s,
		   syscall(SYS_process_vm_readv, s->peer_pid, &here, 1, &there, 1, 0) <
				   0 &&
			   errno == EPERM,
		   "cross-memory attach is still allowed");
	side_meet(s);
}
