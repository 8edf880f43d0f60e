/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion levels: what a completion of each level promises is so when it is there, and
 * no level waits for what it doesn't promise. And shared transmit contexts.
 *
 * Role 0 sends and writes, role 1 receives when it is told to.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <stdlib.h>
#include <string.h>

#define LEN_MAX 100000

static const struct want want_rma = {.caps = FI_MSG | FI_TAGGED | FI_RMA,
				     .counters = true};
static const struct want want_selective = {
	.caps = FI_MSG | FI_TAGGED | FI_RMA, .counters = true, .selective = true};

struct level {
	uint64_t flags;
	size_t len;
	bool tagged;
	bool awaits; /* no completion before the message has its receive */
};

static const struct level levels[] = {
	{FI_INJECT_COMPLETE, 8, false, false},
	{FI_INJECT_COMPLETE, 8, true, false},
	{FI_TRANSMIT_COMPLETE, 8, false, false},
	{FI_TRANSMIT_COMPLETE, 8, true, false},
	{FI_DELIVERY_COMPLETE, 8, false, true},
	{FI_DELIVERY_COMPLETE, 8, true, true},
	{FI_MATCH_COMPLETE, 8, true, true},
	{FI_INJECT_COMPLETE, LEN_MAX, true, true}, /* not copied, so: as long */
	{FI_DELIVERY_COMPLETE, LEN_MAX, false, true},
	{FI_DELIVERY_COMPLETE, LEN_MAX, true, true},
	{FI_MATCH_COMPLETE, LEN_MAX, true, true},
	{FI_INJECT, 64, true, false},
};

static void level_send(struct side *s, const struct level *l, uint8_t *buf,
		       uint64_t flags)
{
	struct iovec iov = {buf, l->len};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = s->node.peer, .context = buf};
	struct fi_msg_tagged tagged = {.msg_iov = &iov,
				       .iov_count = 1,
				       .addr = s->node.peer,
				       .tag = 5,
				       .context = buf};

	while (node_again(s,
			  l->tagged ? fi_tsendmsg(s->node.ep, &tagged, flags)
				    : fi_sendmsg(s->node.ep, &msg, flags),
			  "sendmsg"))
		;
}

static void sender_run(struct side *s)
{
	const struct want *want = s->arg;
	uint8_t *buf = mem_new(LEN_MAX);
	struct done d;
	uint8_t go = 1;

	node_open(s, want);
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		const struct level *l = &levels[i];
		uint64_t kind = FI_SEND | (l->tagged ? FI_TAGGED : FI_MSG);

		mem_fill(buf, l->len, (uint32_t)i);
		level_send(s, l, buf, l->flags | FI_COMPLETION);
		if (l->flags & FI_INJECT)
			memset(buf, 0, l->len);
		if (l->awaits) {
			node_quiet(s, 20);
		} else {
			node_expect(s, &d, kind, buf);
			memset(buf, 0, l->len); /* it is ours again */
		}
		side_tell(s, &go, 1); /* receive it */
		if (l->awaits) {
			node_expect(s, &d, kind, buf);
			memset(buf, 0, l->len);
		}
		side_meet(s);
		if (!want->selective)
			continue;
		/* The same, but nobody wants to hear of it. */
		mem_fill(buf, l->len, (uint32_t)i);
		level_send(s, l, buf, l->flags);
		side_tell(s, &go, 1);
		side_check(s, fi_cntr_wait(s->node.tx_cntr, 2 * (i + 1), WAIT_MS) == 0,
			   "a send that is not reported is not counted");
		side_meet(s);
	}
	node_quiet(s, 10);
	side_check_u64(s, fi_cntr_read(s->node.tx_cntr),
		       ARRAY_LEN(levels) * (want->selective ? 2 : 1), "sends");
	side_meet(s);
	node_close(s, &s->node);
	mem_free(buf, LEN_MAX);
}

static void receiver_run(struct side *s)
{
	const struct want *want = s->arg;
	int rounds = want->selective ? 2 : 1;
	uint8_t *buf = mem_new(LEN_MAX), go;
	uint64_t count = 0;

	node_open(s, want);
	for (size_t i = 0; i < ARRAY_LEN(levels) * (size_t)rounds; i++) {
		const struct level *l = &levels[i / (size_t)rounds];

		side_hear(s, &go, 1);
		while (node_again(s,
				  l->tagged ? fi_trecv(s->node.ep, buf, l->len, NULL,
						       FI_ADDR_UNSPEC, 5, 0, buf)
					    : fi_recv(s->node.ep, buf, l->len, NULL,
						      FI_ADDR_UNSPEC, buf),
				  "recv"))
			;
		side_check(s, fi_cntr_wait(s->node.rx_cntr, ++count, WAIT_MS) == 0,
			   "message %zu does not come", i);
		mem_check(s, buf, l->len, (uint32_t)(i / (size_t)rounds), "message");
		side_meet(s);
	}
	side_meet(s);
	node_close(s, &s->node);
	mem_free(buf, LEN_MAX);
}

/* ---- writes */

struct named {
	uint64_t key;
	uint8_t *mem;
};

/* A write that is delivered is seen by the target without any call. */
static void writer_run(struct side *s)
{
	uint8_t *buf = mem_new(LEN_MAX);
	struct named r;
	struct done d;

	node_open(s, &want_rma);
	side_hear(s, &r, sizeof(r));
	for (int i = 0; i < 200; i++) {
		size_t len = i % 2 ? 8 : LEN_MAX;
		struct iovec iov = {buf, len};
		struct fi_rma_iov at = {0, len, r.key};
		struct fi_msg_rma msg = {.msg_iov = &iov,
					 .iov_count = 1,
					 .addr = s->node.peer,
					 .rma_iov = &at,
					 .rma_iov_count = 1,
					 .context = buf};
		uint8_t ok;

		mem_fill(buf, len, (uint32_t)i);
		while (node_again(s,
				  fi_writemsg(s->node.ep, &msg,
					      FI_DELIVERY_COMPLETE | FI_COMPLETION),
				  "fi_writemsg"))
			;
		node_expect(s, &d, FI_RMA | FI_WRITE, buf);
		side_tell(s, &i, sizeof(i));
		side_hear(s, &ok, 1);
	}
	side_meet(s);
	node_close(s, &s->node);
	mem_free(buf, LEN_MAX);
}

static void target_run(struct side *s)
{
	struct named r = {.mem = mem_new(LEN_MAX)};
	struct fid_mr *mr;

	node_open(s, &want_rma);
	side_must(s,
		  fi_mr_reg(s->node.domain, r.mem, LEN_MAX, FI_REMOTE_WRITE, 0, 9, 0, &mr,
			    NULL),
		  "fi_mr_reg");
	r.key = fi_mr_key(mr);
	side_tell(s, &r, sizeof(r));
	for (int n = 0; n < 200; n++) {
		int i;

		side_hear_passive(s, &i, sizeof(i));
		mem_check(s, r.mem, i % 2 ? 8 : LEN_MAX, (uint32_t)i, "written");
		side_tell(s, &i, 1);
	}
	side_meet(s);
	side_must(s, fi_close(&mr->fid), "fi_close of a region");
	node_close(s, &s->node);
	mem_free(r.mem, LEN_MAX);
}

/* ---- shared transmit contexts */

static struct fid_ep *shared_ep(struct side *s, struct fid_stx *stx)
{
	struct node *n = &s->node;
	struct fi_info *info = fi_dupinfo(n->info);
	struct fid_ep *ep;

	free(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	side_must(s, fi_endpoint(n->domain, info, &ep, NULL), "fi_endpoint");
	fi_freeinfo(info);
	side_must(s, fi_ep_bind(ep, &n->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	side_must(s, fi_ep_bind(ep, &n->av->fid, 0), "fi_ep_bind");
	side_check(s, fi_enable(ep) == -FI_EOPBADSTATE,
		   "enabled without the context that it was to share");
	side_must(s, fi_ep_bind(ep, &stx->fid, 0), "fi_ep_bind of a shared context");
	side_check(s, fi_ep_bind(ep, &stx->fid, 0) != 0, "bound twice");
	side_must(s, fi_enable(ep), "fi_enable");
	return ep;
}

static void shared_run(struct side *s)
{
	struct fi_info *hints, *info = NULL;
	struct fid_ep *ep[2];
	struct fid_stx *stx;
	uint8_t in[2];
	struct done d;

	node_open(s, &want_rma);
	hints = node_hints(&want_rma);
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->domain_attr->max_ep_stx_ctx = 4;
	side_must(s, fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info), "fi_getinfo");
	side_check(s,
		   info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT &&
			   info->domain_attr->max_ep_stx_ctx >= 4,
		   "shared contexts are not announced");
	fi_freeinfo(info);
	fi_freeinfo(hints);
	side_must(s, fi_stx_context(s->node.domain, s->node.info->tx_attr, &stx, NULL),
		  "fi_stx_context");
	for (int i = 0; i < 2; i++)
		ep[i] = shared_ep(s, stx);
	side_check(s, fi_close(&stx->fid) == -FI_EBUSY, "it closes under endpoints");
	for (int i = 0; i < 2; i++) {
		while (node_again(
			s, fi_recv(s->node.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, &in[i]),
			"fi_recv"))
			;
		while (node_again(
			s, fi_send(ep[i], &"ab"[i], 1, NULL, s -> node.self, ep[i]),
			"fi_send"))
			;
	}
	for (int i = 0; i < 4; i++)
		side_check(s, node_next(s, &d, WAIT_MS) && !d.err, "completion %d", i);
	side_check(s, in[0] + in[1] == 'a' + 'b', "messages");
	for (int i = 0; i < 2; i++)
		side_must(s, fi_close(&ep[i]->fid), "fi_close of an endpoint");
	side_must(s, fi_close(&stx->fid), "fi_close of a shared context");
	side_meet(s);
	node_close(s, &s->node);
}

static const struct test_case cases[] = {
	{.name = "completion levels",
	 .run = {sender_run, receiver_run},
	 .arg = &want_rma},
	{.name = "completion levels, selective completion",
	 .run = {sender_run, receiver_run},
	 .arg = &want_selective},
	{.name = "a delivered write is there", .run = {writer_run, target_run}},
	{.name = "shared transmit contexts", .run = {shared_run, shared_run}},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	if (!test_is_weft())
		return test_done();
	setenv("FI_WEFT_CMA", "0", 1);
	cases_run(cases, ARRAY_LEN(cases) - 1, ", FI_WEFT_CMA=0");
	return test_done();
}
