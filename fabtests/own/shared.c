/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of WEFT_FI_MEM_OPS: remote memory access into it at every size, bounds, keys
 * that are gone, a target that is stopped or dead, and what allocation and freeing allow.
 * With cross-memory attach and without.
 */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fabtests/own/remote.h"
#include "weft/weft_fi.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct weft_fi_mem_ops *mem_ops(struct side *s)
{
	struct weft_fi_mem_ops *ops = NULL;
	int rc = fi_open_ops(&s->node.domain->fid, WEFT_FI_MEM_OPS, 0, (void **)&ops,
			     NULL);

	if (rc)
		side_lacks(s, "no " WEFT_FI_MEM_OPS ": %s", fi_strerror(-rc));
	side_check(s, ops->size >= sizeof(*ops), "size %zu", ops->size);
	return ops;
}

static void target_shared(struct side *s)
{
	struct weft_fi_mem_ops *ops;
	struct target t = {0};
	void *mem;

	node_open(s, &want_default);
	ops = mem_ops(s);
	side_must(s, ops->alloc(s->node.domain, MEM_SIZE, 0, &mem), "alloc");
	t.mem = mem;
	target_serve(s, &t);
	if (t.mr) {
		side_check_u64(s, (uint64_t)-ops->free(s->node.domain, mem), FI_EBUSY,
			       "free of registered memory");
		side_must(s, fi_close(&t.mr->fid), "fi_close of a registration");
	}
	side_must(s, ops->free(s->node.domain, mem), "free");
	node_close(s, &s->node);
}

/* How many mappings of a peer's shared memory this process has. */
static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:weft-mem") != NULL;
	if (f)
		fclose(f);
	return n;
}

/* Uses it until it is mapped. */
static void warm_up(struct side *s, struct initiator *in)
{
	const uint64_t end = now_ms() + WAIT_MS;
	struct done d;

	while (mappings() == 0) {
		write_post(s, in, 0, 8, &d);
		node_expect(s, &d, WRITES, &d);
		if (now_ms() > end)
			side_die(s, "the target's memory is not mapped");
		sleep_ms(1);
	}
}

static void sizes_run(struct side *s)
{
	struct initiator in = {0};

	initiator_open(s, &in, &want_default);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizes_count; i++)
			both_ways(s, &in, i % 3 * 13, sizes_all[i], (uint32_t)i);
		warm_up(s, &in);
	}
	initiator_close(s, &in);
}

static void bounds_run(struct side *s)
{
	struct initiator in = {0};
	uint64_t base, key;

	initiator_open(s, &in, &want_default);
	warm_up(s, &in);
	base = in.remote.base;
	key = in.remote.key;
	refused(s, &in, true, base + MEM_SIZE, key, 1, "write behind the end");
	refused(s, &in, true, base + MEM_SIZE - 7, key, 8, "write across the end");
	refused(s, &in, false, base + MEM_SIZE - 7, key, 8, "read across the end");
	refused(s, &in, false, base - 1, key, 1, "read before the beginning");
	refused(s, &in, true, base, key + 1, 8, "a key that isn't");
	/* A part of it, for reading only. */
	in.remote = order_give(s, (struct order){.kind = ORDER_REGISTER,
						 .offset = 4096 + 8,
						 .len = 100,
						 .access = FI_REMOTE_READ});
	refused(s, &in, true, base, key, 8, "a key that was closed");
	refused(s, &in, true, in.remote.base, in.remote.key, 8, "write to read");
	refused(s, &in, false, in.remote.base + 93, in.remote.key, 8, "behind a part");
	order_give(s, (struct order){.kind = ORDER_FILL,
				     .offset = 4096 + 8,
				     .len = 100,
				     .seed = 9});
	{
		struct done d;

		read_post(s, &in, 0, 100, &d);
		node_expect(s, &d, READS, &d);
		mem_check(s, in.mem, 100, 9, "a part");
	}
	initiator_close(s, &in);
}

/* The target's process is stopped, its helper thread with it: what works then is load and
 * store. */
static void stopped_run(struct side *s)
{
	struct initiator in = {0};
	uint64_t word = 0;
	struct done d;

	initiator_open(s, &in, &want_default);
	warm_up(s, &in);
	kill(s->peer_pid, SIGSTOP);
	for (uint64_t i = 1; i <= 1000; i++) {
		memcpy(in.mem, &i, sizeof(i));
		write_post(s, &in, 4096, 65536, &d);
		node_expect(s, &d, WRITES, &d);
		write_post(s, &in, 0, 8, &d);
		node_expect(s, &d, WRITES, &d);
	}
	memset(in.mem, 0, 8);
	read_post(s, &in, 0, 8, &d);
	node_expect(s, &d, READS, &d);
	memcpy(&word, in.mem, sizeof(word));
	kill(s->peer_pid, SIGCONT);
	side_check_u64(s, word, 1000, "the last write");
	initiator_close(s, &in);
}

static void dead_run(struct side *s)
{
	struct initiator in = {0};
	const uint64_t end = now_ms() + WAIT_MS;
	struct done d = {0};

	initiator_open(s, &in, &want_default);
	warm_up(s, &in);
	kill(s->peer_pid, SIGKILL);
	while (!d.err && now_ms() < end) {
		ssize_t rc = fi_write(s->node.ep, in.mem, 65536, in.desc, s->node.peer,
				      in.remote.base, in.remote.key, &d);

		if (node_again(s, rc, "fi_write"))
			continue;
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "no completion");
	}
	side_check(s, d.err > 0, "writes to a dead target go on");
	while (mappings() && now_ms() < end)
		node_progress(&s->node);
	side_check_u64(s, (uint64_t)mappings(), 0, "mappings that stay behind");
	if (in.mr)
		fi_close(&in.mr->fid);
	node_close(s, &s->node);
}

/* One word to and fro, polled. */
#define ROUNDS 3000

static void pingpong_run(struct side *s)
{
	struct answer mine = {0}, yours;
	struct weft_fi_mem_ops *ops;
	_Atomic uint64_t *word;
	struct fid_mr *mr;
	void *mem;

	node_open(s, &want_default);
	ops = mem_ops(s);
	side_must(s, ops->alloc(s->node.domain, 8, 0, &mem), "alloc");
	word = mem;
	side_must(s, fi_mr_reg(s->node.domain, mem, 4096, RW, 0, 5, 0, &mr, NULL), "reg");
	mine.key = fi_mr_key(mr);
	mine.base = remote_base(&s->node, mem);
	side_tell(s, &mine, sizeof(mine));
	side_hear(s, &yours, sizeof(yours));
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		const uint64_t end = now_ms() + WAIT_MS;

		while (s->role == 1 && *word != i) {
			node_progress(&s->node);
			sched_yield();
			if (now_ms() > end)
				side_die(s, "round %d: nothing comes", (int)i);
		}
		while (node_again(s,
				  fi_inject_write(s->node.ep, &i, sizeof(i), s->node.peer,
						  yours.base, yours.key),
				  "fi_inject_write"))
			;
		while (s->role == 0 && *word != i) {
			node_progress(&s->node);
			sched_yield();
			if (now_ms() > end)
				side_die(s, "round %d: nothing comes back", (int)i);
		}
	}
	side_meet(s);
	node_quiet(s, 10);
	side_must(s, fi_close(&mr->fid), "fi_close of a registration");
	side_must(s, ops->free(s->node.domain, mem), "free");
	node_close(s, &s->node);
}

/* ---- allocation */

static bool is_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

static void alloc_run(struct side *s)
{
	struct weft_fi_mem_ops *ops;
	struct fid_domain *dom;
	uint8_t *big, *mem[64];
	void *at;

	node_open_alone(s, &s->node, &want_default);
	dom = s->node.domain;
	ops = mem_ops(s);
	side_check_u64(s, (uint64_t)-ops->alloc(dom, 0, 0, &at), FI_EINVAL, "no bytes");
	side_check_u64(s, (uint64_t)-ops->alloc(dom, 1, 1, &at), FI_EBADFLAGS, "flags");
	side_check(s, ops->alloc(dom, SIZE_MAX / 2, 0, &at) < 0, "all of memory");
	for (int i = 0; i < 64; i++) {
		side_must(s, ops->alloc(dom, (size_t)1 + (size_t)i * 3000, 0, &at),
			  "alloc");
		mem[i] = at;
		side_check(s, (uintptr_t)at % 4096 == 0, "alignment");
		side_check(s, is_zero(at, (size_t)1 + (size_t)i * 3000), "not zeroed");
		memset(at, i + 1, (size_t)1 + (size_t)i * 3000);
	}
	for (int i = 0; i < 64; i++)
		side_check(s, mem[i][0] == i + 1 && mem[i][i * 3000] == i + 1, "overlap");
	side_check_u64(s, (uint64_t)-fi_close(&dom->fid), FI_EBUSY,
		       "close of the domain");
	side_check_u64(s, (uint64_t)-ops->free(dom, mem[1] + 1), FI_EINVAL, "inside");
	side_check_u64(s, (uint64_t)-ops->free(dom, &at), FI_EINVAL, "other memory");
	for (int i = 0; i < 64; i += 2)
		side_must(s, ops->free(dom, mem[i]), "free");
	side_check_u64(s, (uint64_t)-ops->free(dom, mem[2]), FI_EINVAL, "twice");
	for (int i = 0; i < 64; i += 2) {
		side_must(s, ops->alloc(dom, (size_t)1 + (size_t)i * 3000, 0, &at),
			  "again");
		side_check(s, is_zero(at, (size_t)1 + (size_t)i * 3000), "zeroed again");
		mem[i] = at;
	}
	/* More than the first segment has. */
	side_must(s, ops->alloc(dom, (size_t)200 << 20, 0, &at), "200 MiB");
	big = at;
	big[0] = 1;
	big[((size_t)200 << 20) - 1] = 1;
	side_must(s, ops->free(dom, big), "free");
	for (int i = 0; i < 64; i++)
		side_must(s, ops->free(dom, mem[i]), "free");
	node_close(s, &s->node);
}

static void idle(struct side *s)
{
	(void)s;
}

static const struct test_case cases[] = {
	{"shared memory: every size", {sizes_run, target_shared}, .needs_weft = true},
	{"bounds, access, closed keys", {bounds_run, target_shared}, .needs_weft = true},
	{"a target that is stopped", {stopped_run, target_shared}, .needs_weft = true},
	{"a target that dies",
	 {dead_run, target_shared},
	 .killed = true,
	 .needs_weft = true},
	{"polled ping-pong", {pingpong_run, pingpong_run}, .needs_weft = true},
	{"allocation", {alloc_run, idle}, .needs_weft = true},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	/* The write behind the one that saw the target die is tried for so long. */
	setenv("FI_WEFT_CONNECT_TIMEOUT", "2000", 0);
	cases_run(cases, ARRAY_LEN(cases), "");
	setenv("FI_WEFT_CMA", "0", 1);
	cases_run(cases, ARRAY_LEN(cases), ", without attach");
	return test_done();
}
