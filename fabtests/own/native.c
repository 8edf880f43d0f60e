/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics that devices carry out (FI_WEFT_VERBS_ATOMICS=native), which
 * emuverbs/tests/atomics.t sets: what there is, a target that makes no call, and peers
 * that don't agree about it (rule E4: the same memory is never changed by a device and by
 * a library).
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>
#include <string.h>

static const struct want want_atomics = {.caps = FI_ATOMIC | FI_MSG,
					 .mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY};

struct door {
	uint64_t base, key;
};

/* One word of this side's, and where the other's is. */
struct words {
	struct fid_mr *mr;
	uint64_t *own;
	struct door peer;
};

static void words_open(struct side *s, struct words *w, uint64_t first)
{
	struct door own;

	node_open(s, &want_atomics);
	w->own = mem_new(4096);
	w->own[0] = first;
	side_must(s,
		  fi_mr_reg(s->node.domain, w->own, 4096,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &w->mr, NULL),
		  "fi_mr_reg");
	own = (struct door){(uintptr_t)w->own, fi_mr_key(w->mr)};
	side_tell(s, &own, sizeof(own));
	side_hear(s, &w->peer, sizeof(w->peer));
}

static void words_close(struct side *s, struct words *w)
{
	side_must(s, fi_close(&w->mr->fid), "fi_close");
	node_close(s, &s->node);
	mem_free(w->own, 4096);
}

/* Adds 1: what was there; dies where the call is refused. */
static int add(struct side *s, const struct words *w, uint64_t *was)
{
	const uint64_t one = 1;
	struct done d;
	ssize_t rc;

	do {
		rc = fi_fetch_atomic(s->node.ep, &one, 1, NULL, was, NULL, s->node.peer,
				     w->peer.base, w->peer.key, FI_UINT64, FI_SUM, NULL);
	} while (node_again(s, rc, "fi_fetch_atomic"));
	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "an atomic that doesn't end");
	return d.err;
}

/* ---- peers that don't agree */

static void library_side(struct side *s)
{
	struct words w;
	uint64_t was = 0;

	setenv("FI_WEFT_VERBS_ATOMICS", "library", 1);
	words_open(s, &w, 0);
	side_check_u64(s, (uint64_t)add(s, &w, &was), FI_EOPNOTSUPP,
		       "an atomic of a library on a device's memory");
	side_meet(s);
	side_check_u64(s, w.own[0], 3, "what the other side added");
	words_close(s, &w);
}

static void native_side(struct side *s)
{
	struct words w;
	uint64_t was = 0;

	words_open(s, &w, 7);
	for (uint64_t i = 0; i < 3; i++) {
		side_check_u64(s, (uint64_t)add(s, &w, &was), 0, "a library's memory");
		side_check_u64(s, was, i, "what was there");
	}
	side_meet(s);
	side_check_u64(s, w.own[0], 7, "what nobody may have changed");
	words_close(s, &w);
}

/* ---- a target that makes no call */

static void refusals_check(struct side *s, const struct words *w)
{
	const uint64_t two[2] = {1, 1};
	struct fi_ioc ioc = {(void *)two, 1};
	struct fi_rma_ioc to = {w->peer.base, 1, w->peer.key};
	struct fi_msg_atomic msg = {.msg_iov = &ioc,
				    .iov_count = 1,
				    .addr = s->node.peer,
				    .rma_iov = &to,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .data = 1};
	struct fi_atomic_attr attr;
	struct fid_ep *ep = s->node.ep;
	size_t count = 0;

	side_check(s, fi_atomicvalid(ep, FI_UINT64, FI_SUM, &count) == 0 && count == 1,
		   "sums of 64 bits, one at a time");
	side_check(s, fi_compare_atomicvalid(ep, FI_INT64, FI_CSWAP, &count) == 0,
		   "swaps of 64 bits");
	side_check(s, fi_atomicvalid(ep, FI_UINT64, FI_BOR, &count) == -FI_EOPNOTSUPP,
		   "no other operation");
	side_check(s,
		   fi_query_atomic(s->node.domain, FI_UINT64, FI_BOR, &attr, 0) ==
				   -FI_EOPNOTSUPP &&
			   fi_query_atomic(s->node.domain, FI_UINT64, FI_SUM, &attr, 0) ==
				   0,
		   "the domain says the same");
	side_check(s,
		   fi_atomic(ep, two, 1, NULL, s->node.peer, w->peer.base, w->peer.key,
			     FI_UINT64, FI_BOR, NULL) == -FI_EOPNOTSUPP,
		   "which is refused");
	side_check(s,
		   fi_atomic(ep, two, 2, NULL, s->node.peer, w->peer.base, w->peer.key,
			     FI_UINT64, FI_SUM, NULL) == -FI_EMSGSIZE,
		   "so are two at once");
	side_check(s, fi_atomicmsg(ep, &msg, FI_REMOTE_CQ_DATA) == -FI_EOPNOTSUPP,
		   "and data for the target");
}

static void asking_side(struct side *s)
{
	struct words w;
	uint64_t was = 0, total = 0;

	words_open(s, &w, 0);
	/* The link is up before the other one goes to sleep. */
	side_check_u64(s, (uint64_t)add(s, &w, &was), 0, "the first");
	side_tell(s, &total, sizeof(total));
	for (uint64_t i = 1; i < 50; i++) {
		side_check_u64(s, (uint64_t)add(s, &w, &was), 0, "a target that sleeps");
		side_check_u64(s, was, i, "what was there");
	}
	refusals_check(s, &w);
	total = 50;
	side_tell(s, &total, sizeof(total));
	side_meet(s);
	words_close(s, &w);
}

static void sleeping_side(struct side *s)
{
	struct words w;
	uint64_t total = 0;

	words_open(s, &w, 0);
	side_hear(s, &total, sizeof(total));
	side_hear_passive(s, &total, sizeof(total));
	side_check_u64(s, w.own[0], total, "what was added meanwhile");
	side_meet(s);
	words_close(s, &w);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{.name = "E4: a target that makes no call",
		 .run = {asking_side, sleeping_side},
		 .needs_weft = true},
		{.name = "E4: peers that don't agree",
		 .run = {library_side, native_side},
		 .needs_weft = true},
	};

	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
