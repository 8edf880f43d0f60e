/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory, no descriptors, no thread: whichever system call fails, at whichever time,
 * the libfabric call or its completion says so, nothing crashes or hangs, and when there
 * is room again everything works in the same process.
 *
 * Role 0 opens an endpoint and uses it; role 1 is served by one that stays. The failing
 * call is role 0's, or role 1's while it lets role 0 in.
 */
#include "config.h"

#include "fabtests/own/fault.h"
#include "fabtests/own/util.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_SIZE   (300u << 10)
#define NTH_MOST    40
#define STANDSTILLS 3

static const struct want want_rma = {.caps = FI_MSG | FI_TAGGED | FI_RMA,
				     .mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
						FI_MR_ALLOCATED,
				     .tx_op_flags = FI_DELIVERY_COMPLETE};

struct hello {
	char name[64];
	uint64_t base, key;
};

struct order {
	int call; /* -1: disarm */
	int err, nth;
	bool for_ever, end;
};

/* ---- role 1 */

static void server_run(struct side *s)
{
	uint8_t *mem = mem_new(LONG_SIZE), *in = mem_new(LONG_SIZE);
	struct order o = {0};
	struct hello h = {0};
	struct fid_mr *mr;
	struct done d;

	node_open_alone(s, &s->node, &want_rma);
	side_must(s,
		  fi_mr_reg(s->node.domain, mem, LONG_SIZE, FI_REMOTE_WRITE, 0, 1, 0, &mr,
			    NULL),
		  "fi_mr_reg");
	memcpy(h.name, s->node.name, sizeof(h.name));
	h.key = fi_mr_key(mr);
	h.base =
		s->node.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)mem : 0;
	side_tell(s, &h, sizeof(h));
	side_must(s, fi_recv(s->node.ep, in, LONG_SIZE, NULL, FI_ADDR_UNSPEC, in),
		  "fi_recv");
	while (!o.end) {
		struct pollfd p = {.fd = s->sock, .events = POLLIN};
		bool hit = false;

		/* A sender that could not go on fails its message, not the next one. */
		if (node_next(s, &d, 0))
			while (node_again(s,
					  fi_recv(s->node.ep, in, LONG_SIZE, NULL,
						  FI_ADDR_UNSPEC, in),
					  "fi_recv"))
				;
		if (poll(&p, 1, 0) != 1)
			continue;
		side_hear(s, &o, sizeof(o));
		if (o.call < 0)
			hit = fault_disarm();
		else
			fault_arm((enum fault_call)o.call, o.err, o.nth, o.for_ever);
		side_tell(s, &hit, sizeof(hit));
	}
	side_must(s, fi_close(&mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
}

static bool server_order(struct side *s, struct order o)
{
	bool hit;

	side_tell(s, &o, sizeof(o));
	side_hear(s, &hit, sizeof(hit));
	return hit;
}

/* ---- role 0 */

/* Everything up to an enabled endpoint, stopping at the first error. */
static int try_open(struct node *n)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
	struct fi_info *hints = node_hints(&want_rma);
	int rc = fi_getinfo(API_VERSION, "127.0.0.1", NULL, FI_SOURCE, hints, &n->info);

	fi_freeinfo(hints);
	if (!rc)
		rc = fi_fabric(n->info->fabric_attr, &n->fabric, NULL);
	if (!rc)
		rc = fi_domain(n->fabric, n->info, &n->domain, NULL);
	if (!rc)
		rc = fi_av_open(n->domain, &av, &n->av, NULL);
	if (!rc)
		rc = fi_cq_open(n->domain, &cq, &n->cq, NULL);
	if (!rc)
		rc = fi_endpoint(n->domain, n->info, &n->ep, NULL);
	if (!rc)
		rc = fi_ep_bind(n->ep, &n->av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV);
	return rc ? rc : fi_enable(n->ep);
}

static int try_end(struct side *s, ssize_t rc, void *context)
{
	struct done d;

	if (rc)
		return (int)rc;
	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "an operation has no end");
	side_check(s, d.e.op_context == context, "context");
	return -d.err;
}

static int try_use(struct side *s, const struct hello *h, uint8_t *out)
{
	struct node *n = &s->node;
	struct fid_mr *mr = NULL;
	int rc, own = 0;

	if (fi_av_insert(n->av, h->name, 1, &n->peer, 0, NULL) != 1)
		return -FI_ENOMEM;
	rc = fi_mr_reg(n->domain, out, LONG_SIZE, FI_REMOTE_READ, 0, 2, 0, &mr, NULL);
	if (!rc)
		rc = try_end(s, fi_send(n->ep, out, 8, NULL, n->peer, &own), &own);
	if (!rc)
		rc = try_end(s, fi_send(n->ep, out, LONG_SIZE, NULL, n->peer, &own),
			     &own);
	if (!rc)
		rc = try_end(s,
			     fi_write(n->ep, out, LONG_SIZE, NULL, n->peer, h->base,
				      h->key, &own),
			     &own);
	if (mr)
		side_check(s, fi_close(&mr->fid) == 0, "fi_close of a registration");
	return rc;
}

static int try_all(struct side *s, const struct hello *h, uint8_t *out)
{
	int rc = try_open(&s->node);

	if (!rc)
		rc = try_use(s, h, out);
	node_close(s, &s->node);
	return rc;
}

/* The time for which a peer is called is short here (main), and over on a machine that
 * stands still meanwhile: such an attempt is made again, a few in a run. */
static bool stood_still(int rc)
{
	static int so_far;

	return rc == -FI_ETIMEDOUT && so_far++ < STANDSTILLS;
}

static void after_it(struct side *s, const struct hello *h, uint8_t *out,
		     const char *what)
{
	int rc;

	do
		rc = try_all(s, h, out);
	while (stood_still(rc));
	if (rc)
		side_die(s, "%s: still %s when there is room again", what,
			 fi_strerror(-rc));
}

/* The fault is ours (server false) or the server's; each call in turn, until the whole
 * attempt goes by without the fault. How many there were. */
static int one_fault(struct side *s, const struct hello *h, enum fault_call call, int err,
		     bool server, bool for_ever)
{
	uint8_t *out = mem_new(LONG_SIZE);
	char what[96];
	bool hit = true;
	int nth, rc;

	for (nth = 1; hit && nth <= NTH_MOST; nth++) {
		struct order o = {
			.call = (int)call, .err = err, .nth = nth, .for_ever = for_ever};

		snprintf(what, sizeof(what), "%s%s number %d%s gives %s",
			 server ? "server's " : "", fault_names[call], nth,
			 for_ever ? " and later" : "", strerror(err));
		if (server)
			server_order(s, o);
		else
			fault_arm(call, err, nth, for_ever);
		rc = try_all(s, h, out);
		hit = server ? server_order(s, (struct order){.call = -1})
			     : fault_disarm();
		if (!hit && stood_still(rc)) {
			hit = true;
			nth--;
			continue;
		}
		side_check(s, rc == 0 || hit, "%s: %s without a fault", what,
			   fi_strerror(-rc));
		if (hit)
			after_it(s, h, out, what);
	}
	mem_free(out, LONG_SIZE);
	side_check(s, !hit, "%s: no end", what);
	return nth - 2;
}

struct plan {
	bool server, for_ever;
};

static void faults_run(struct side *s)
{
	const struct plan *plan = s->arg;
	int hits[FAULT_CALLS] = {0};
	struct hello h;

	side_hear(s, &h, sizeof(h));
	for (int call = 0; call < FAULT_CALLS && !s->failed; call++) {
		if (call == FAULT_THREAD) {
			hits[call] = one_fault(s, &h, call, EAGAIN, plan->server,
					       plan->for_ever);
			continue;
		}
		hits[call] = one_fault(s, &h, call, ENOMEM, plan->server, plan->for_ever);
		if (call != FAULT_MMAP)
			one_fault(s, &h, call, EMFILE, plan->server, plan->for_ever);
	}
	server_order(s, (struct order){.call = -1, .end = true});
	printf("# calls that failed:");
	for (int call = 0; call < FAULT_CALLS; call++)
		printf(" %d %s", hits[call], fault_names[call]);
	printf("\n");
	/* Else the faults do not reach the provider, and this test shows nothing. */
	side_check(s,
		   plan->server ? hits[FAULT_MMAP] > 0 && hits[FAULT_ACCEPT] > 0
				: hits[FAULT_MMAP] > 0 && hits[FAULT_SOCKET] > 0 &&
					  hits[FAULT_MEMFD_CREATE] > 0,
		   "the faults miss the provider");
}

#define PLAN(name_, server_, ever_)                                             \
	{                                                                       \
		.name = name_, .run = {faults_run, server_run},                 \
		.arg = &(const struct plan){server_, ever_}, .needs_weft = true \
	}

static const struct test_case cases[] = {
	PLAN("our own calls, one of them", false, false),
	PLAN("our own calls, from one on", false, true),
	PLAN("calls of the peer, one of them", true, false),
	PLAN("calls of the peer, from one on", true, true),
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	setenv("FI_WEFT_CONNECT_TIMEOUT", "1000", 0);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
