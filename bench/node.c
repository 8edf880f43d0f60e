/* SPDX-License-Identifier: BSD-2-Clause */
/* One endpoint with its objects, for benchmarks. See node.h. */
#include "config.h"

#include "bench/node.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft_fi.h"

enum {
	API_MAJOR = 1,
	API_MINOR = 17,
	CQ_SIZE = 4096,
	CQ_BATCH = 64,	   /* completions read at once */
	IDLE_LOOK = 16384, /* empty polls between two looks at the clock */
	SLEEP_MS = 100,
};

void bench_must(ssize_t rc, const char *call)
{
	if (rc < 0)
		bench_die("%s: %s (%zd)", call, fi_strerror((int)-rc), rc);
}

/* ---- open and close --------------------------------------------------------------- */

static const struct node_wants usual = {.threading = FI_THREAD_DOMAIN};

static struct fi_info *info_get(const char *provider, const struct node_wants *wants)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int rc;

	if (!hints)
		bench_die("no memory");
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	if (wants->directed)
		hints->caps |= FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->threading = wants->threading;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->fabric_attr->prov_name = strdup(provider);
	rc = fi_getinfo(FI_VERSION(API_MAJOR, API_MINOR), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (rc == -FI_ENODATA)
		bench_die(
			"libfabric has no provider \"%s\" with FI_EP_RDM, FI_TAGGED, "
			"FI_RMA%s at this level of threading; fi_info lists those there "
			"are (FI_PROVIDER_PATH names the folder of libweft-fi.so)",
			provider, wants->directed ? ", FI_DIRECTED_RECV" : "");
	bench_must(rc, "fi_getinfo");
	return info;
}

static void cntr_open(struct node *n)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP,
				    .wait_obj = FI_WAIT_NONE};

	bench_must(fi_cntr_open(n->domain, &attr, &n->cntr, NULL), "fi_cntr_open");
	bench_must(fi_ep_bind(n->ep, &n->cntr->fid, FI_SEND), "fi_ep_bind (counter)");
}

void node_open(struct node *n, const char *provider, const struct node_wants *wants,
	       struct node_card *card)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_NONE,
		.size = CQ_SIZE,
	};

	memset(n, 0, sizeof(*n));
	if (!wants)
		wants = &usual;
	n->sleeps = wants->sleeps;
	if (n->sleeps)
		cq.wait_obj = FI_WAIT_UNSPEC;
	n->info = info_get(provider, wants);
	bench_must(fi_fabric(n->info->fabric_attr, &n->fabric, NULL), "fi_fabric");
	bench_must(fi_domain(n->fabric, n->info, &n->domain, NULL), "fi_domain");
	bench_must(fi_av_open(n->domain, &av, &n->av, NULL), "fi_av_open");
	bench_must(fi_cq_open(n->domain, &cq, &n->cq, NULL), "fi_cq_open");
	bench_must(fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
	bench_must(fi_ep_bind(n->ep, &n->av->fid, 0), "fi_ep_bind (av)");
	bench_must(fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV),
		   "fi_ep_bind (cq)");
	if (wants->counter)
		cntr_open(n);
	bench_must(fi_enable(n->ep), "fi_enable");
	memset(card, 0, sizeof(*card));
	card->name_len = sizeof(card->name);
	bench_must(fi_getname(&n->ep->fid, card->name, &card->name_len), "fi_getname");
}

void node_join(struct node *n, const struct node_card *peer)
{
	int rc = fi_av_insert(n->av, peer->name, 1, &n->peer, 0, NULL);

	if (rc != 1)
		bench_die("fi_av_insert takes the peer's address not: %d", rc);
}

void node_close(struct node *n)
{
	struct fid *order[] = {&n->cq->fid, &n->av->fid, &n->domain->fid,
			       &n->fabric->fid};

	bench_must(fi_close(&n->ep->fid), "fi_close (endpoint)");
	if (n->cntr)
		bench_must(fi_close(&n->cntr->fid), "fi_close (counter)");
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		bench_must(fi_close(order[i]), "fi_close");
	fi_freeinfo(n->info);
}

void node_region_open(struct node *n, struct node_region *r, void *addr, size_t len,
		      uint64_t key, struct node_target *target)
{
	uint64_t access =
		FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	bench_must(fi_mr_reg(n->domain, addr, len, access, 0, key, 0, &r->mr, NULL),
		   "fi_mr_reg");
	r->desc = fi_mr_desc(r->mr);
	target->key = fi_mr_key(r->mr);
	target->addr = n->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR
			       ? (uint64_t)(uintptr_t)addr
			       : 0;
}

void node_region_close(struct node_region *r)
{
	bench_must(fi_close(&r->mr->fid), "fi_close (memory region)");
}

void *node_shared_alloc(struct node *n, size_t len)
{
	struct weft_fi_mem_ops *ops;
	void *mem;

	if (fi_open_ops(&n->domain->fid, WEFT_FI_MEM_OPS, 0, (void **)&ops, NULL))
		return NULL;
	bench_must(ops->alloc(n->domain, len, 0, &mem), "alloc of shared memory");
	return mem;
}

void node_shared_release(struct node *n, void *mem)
{
	struct weft_fi_mem_ops *ops;

	bench_must(fi_open_ops(&n->domain->fid, WEFT_FI_MEM_OPS, 0, (void **)&ops, NULL),
		   "fi_open_ops");
	bench_must(ops->free(n->domain, mem), "free of shared memory");
}

/* ---- completions ------------------------------------------------------------------ */

/* Called after many polls in a row that found nothing. */
static void node_idle(struct node *n)
{
	uint64_t now = bench_now_ns();

	if (n->idle == IDLE_LOOK)
		n->idle_since = now;
	else if (now - n->idle_since > (uint64_t)NODE_WAIT_S * 1000000000)
		bench_die("nothing has completed for %d s; %llu sends or writes and %llu "
			  "receives before that",
			  NODE_WAIT_S, (unsigned long long)n->tx_done,
			  (unsigned long long)n->rx_done);
	/* On a quiet machine an answer never takes so long that this is reached. */
	sched_yield();
}

static void error_die(struct node *n)
{
	struct fi_cq_err_entry e = {0};
	ssize_t rc = fi_cq_readerr(n->cq, &e, 0);

	if (rc != 1)
		bench_die("fi_cq_readerr after -FI_EAVAIL: %zd", rc);
	bench_die("an operation ended in error: %s", fi_strerror(e.err));
}

int node_poll(struct node *n)
{
	struct fi_cq_tagged_entry e[CQ_BATCH];
	ssize_t rc = fi_cq_read(n->cq, e, CQ_BATCH);

	if (rc == -FI_EAGAIN && n->sleeps)
		rc = fi_cq_sread(n->cq, e, CQ_BATCH, NULL, SLEEP_MS);
	if (rc == -FI_EAGAIN) {
		n->idle += n->sleeps ? IDLE_LOOK : 1;
		if (n->idle % IDLE_LOOK == 0)
			node_idle(n);
		return 0;
	}
	if (rc == -FI_EAVAIL)
		error_die(n);
	bench_must(rc, "fi_cq_read");
	n->idle = 0;
	for (ssize_t i = 0; i < rc; i++) {
		if (e[i].flags & FI_RECV)
			n->rx_done++;
		else
			n->tx_done++;
	}
	return (int)rc;
}

void node_await_tx(struct node *n, uint64_t count)
{
	while (n->tx_done < count)
		node_poll(n);
}

void node_await_rx(struct node *n, uint64_t count)
{
	while (n->rx_done < count)
		node_poll(n);
}

bool node_again(struct node *n, ssize_t rc, const char *call)
{
	if (rc == 0)
		return false;
	if (rc != -FI_EAGAIN)
		bench_must(rc, call);
	node_poll(n);
	return true;
}
