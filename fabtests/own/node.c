/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint with its objects, and its completions. See util.h. */
#include "config.h"

#include "fabtests/own/util.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "fabtests/own/apart.h"
#include "util/fi_names.h"

struct fi_info *node_hints(const struct want *want)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		abort();
	hints->caps = want->caps ? want->caps : FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = want->mr_mode;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->control_progress = want->progress;
	hints->domain_attr->data_progress = want->progress;
	hints->tx_attr->op_flags = want->tx_op_flags;
	hints->tx_attr->msg_order = want->msg_order;
	hints->rx_attr->msg_order = want->msg_order;
	if (want->automatic) {
		hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
		hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	}
	hints->fabric_attr->prov_name = strdup(test_provider());
	return hints;
}

void node_open_av(struct side *s, struct node *n, const struct want *want)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_info *hints = node_hints(want);
	/* The shm provider has names instead of hosts. */
	const char *host = strcmp(test_provider(), "shm") == 0 ? NULL : apart_source();
	int rc = fi_getinfo(API_VERSION, host, want->service, host ? FI_SOURCE : 0, hints,
			    &n->info);

	fi_freeinfo(hints);
	if (rc == -FI_ENODATA)
		side_lacks(s, "fi_getinfo: no data");
	side_must(s, rc, "fi_getinfo");
	/* Weft demands none of these, and honours them where a caller adds them. */
	if (test_is_weft() && !(want->mr_mode & (FI_MR_BASIC | FI_MR_SCALABLE)))
		n->info->domain_attr->mr_mode |=
			want->mr_mode &
			(FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED);
	side_must(s, fi_fabric(n->info->fabric_attr, &n->fabric, NULL), "fi_fabric");
	side_must(s, fi_domain(n->fabric, n->info, &n->domain, NULL), "fi_domain");
	side_must(s, fi_av_open(n->domain, &av, &n->av, NULL), "fi_av_open");
}

static void node_open_queues(struct side *s, struct node *n, const struct want *want)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED,
				.wait_obj = want->wait_obj};
	struct fi_cntr_attr cntr = {.events = FI_CNTR_EVENTS_COMP,
				    .wait_obj = FI_WAIT_UNSPEC};
	struct fi_wait_attr set = {.wait_obj = FI_WAIT_UNSPEC};
	uint64_t flags = FI_TRANSMIT | FI_RECV;

	if (want->wait_obj == FI_WAIT_SET) {
		side_must(s, fi_wait_open(n->fabric, &set, &n->wait_set), "fi_wait_open");
		cq.wait_set = cntr.wait_set = n->wait_set;
		cntr.wait_obj = FI_WAIT_SET;
	}
	side_must(s, fi_cq_open(n->domain, &cq, &n->cq, NULL), "fi_cq_open");
	side_must(s, fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
	side_must(s, fi_ep_bind(n->ep, &n->av->fid, 0), "fi_ep_bind av");
	if (want->selective)
		flags |= FI_SELECTIVE_COMPLETION;
	side_must(s, fi_ep_bind(n->ep, &n->cq->fid, flags), "fi_ep_bind cq");
	if (want->remote_counters) {
		side_must(s, fi_cntr_open(n->domain, &cntr, &n->write_cntr, NULL),
			  "fi_cntr_open");
		side_must(s, fi_cntr_open(n->domain, &cntr, &n->read_cntr, NULL),
			  "fi_cntr_open");
		side_must(s, fi_ep_bind(n->ep, &n->write_cntr->fid, FI_REMOTE_WRITE),
			  "fi_ep_bind counter");
		side_must(s, fi_ep_bind(n->ep, &n->read_cntr->fid, FI_REMOTE_READ),
			  "fi_ep_bind counter");
	}
	if (!want->counters)
		return;
	side_must(s, fi_cntr_open(n->domain, &cntr, &n->tx_cntr, NULL), "fi_cntr_open");
	side_must(s, fi_cntr_open(n->domain, &cntr, &n->rx_cntr, NULL), "fi_cntr_open");
	flags = FI_SEND | (want->caps & FI_RMA ? FI_WRITE | FI_READ : 0);
	side_must(s, fi_ep_bind(n->ep, &n->tx_cntr->fid, flags), "fi_ep_bind counter");
	side_must(s, fi_ep_bind(n->ep, &n->rx_cntr->fid, FI_RECV), "fi_ep_bind counter");
}

void node_open_ep(struct side *s, struct node *n, const struct want *want)
{
	node_open_queues(s, n, want);
	side_must(s, fi_enable(n->ep), "fi_enable");
	n->name_len = sizeof(n->name);
	side_must(s, fi_getname(&n->ep->fid, n->name, &n->name_len), "fi_getname");
	if (fi_av_insert(n->av, n->name, 1, &n->self, 0, NULL) != 1)
		side_die(s, "fi_av_insert refuses our own address");
}

void node_open_alone(struct side *s, struct node *n, const struct want *want)
{
	node_open_av(s, n, want);
	node_open_ep(s, n, want);
}

void node_open(struct side *s, const struct want *want)
{
	struct node *n = &s->node;
	char name[sizeof(n->name)] = {0};

	node_open_alone(s, n, want);
	side_tell(s, n->name, sizeof(n->name));
	side_hear(s, name, sizeof(name));
	n->peer = FI_ADDR_NOTAVAIL;
	if (!want->stranger && fi_av_insert(n->av, name, 1, &n->peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert refuses the peer's address");
	side_meet(s);
}

void node_close(struct side *s, struct node *n)
{
	struct fid *order[] = {
		n->ep ? &n->ep->fid : NULL,
		n->cq ? &n->cq->fid : NULL,
		n->tx_cntr ? &n->tx_cntr->fid : NULL,
		n->rx_cntr ? &n->rx_cntr->fid : NULL,
		n->write_cntr ? &n->write_cntr->fid : NULL,
		n->read_cntr ? &n->read_cntr->fid : NULL,
		n->wait_set ? &n->wait_set->fid : NULL,
		n->av ? &n->av->fid : NULL,
		n->domain ? &n->domain->fid : NULL,
		n->fabric ? &n->fabric->fid : NULL,
	};

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		if (order[i])
			side_check(s, fi_close(order[i]) == 0, "fi_close of object %zu",
				   i);
	}
	fi_freeinfo(n->info);
	memset(n, 0, sizeof(*n));
}

void node_progress(struct node *n)
{
	/* Reads nothing, and must drive progress all the same. */
	fi_cq_read(n->cq, NULL, 0);
}

static void error_read(struct side *s, struct done *d)
{
	struct fi_cq_err_entry e = {0};
	ssize_t rc = fi_cq_readerr(s->node.cq, &e, 0);

	if (rc != 1)
		side_die(s, "fi_cq_readerr after -FI_EAVAIL gave %zd", rc);
	side_check(s, e.err > 0, "an error entry with err %d", e.err);
	d->e.op_context = e.op_context;
	d->e.flags = e.flags;
	d->e.len = e.len;
	d->e.buf = e.buf;
	d->e.data = e.data;
	d->e.tag = e.tag;
	d->err = e.err;
	d->olen = e.olen;
}

bool node_next(struct side *s, struct done *d, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;

	for (;;) {
		ssize_t rc;

		memset(d, 0, sizeof(*d));
		d->src = FI_ADDR_NOTAVAIL;
		/* A provider without the capability may leave the source as it is. */
		rc = fi_cq_readfrom(s->node.cq, &d->e, 1, &d->src);
		if (rc == 1)
			return true;
		if (rc == -FI_EAVAIL) {
			error_read(s, d);
			return true;
		}
		if (rc != -FI_EAGAIN)
			side_die(s, "fi_cq_readfrom gave %zd", rc);
		if (now_ms() >= end)
			return false;
		sched_yield();
	}
}

void node_expect(struct side *s, struct done *d, uint64_t flags, const void *context)
{
	if (!node_next(s, d, WAIT_MS))
		side_die(s, "no completion within %d s (wanted flags 0x%llx)",
			 WAIT_MS / 1000, (unsigned long long)flags);
	if (d->err)
		side_die(s, "error completion: %s (%d), flags 0x%llx",
			 fi_strerror(d->err), d->err, (unsigned long long)d->e.flags);
	side_check_u64(s, d->e.flags, flags, "flags of a completion");
	side_check(s, d->e.op_context == context, "context of a completion: %p, want %p",
		   d->e.op_context, context);
}

void node_quiet(struct side *s, int ms)
{
	struct done d;

	if (node_next(s, &d, ms))
		side_check(s, false,
			   "a completion that nobody waits for: flags 0x%llx, err %d",
			   (unsigned long long)d.e.flags, d.err);
}

bool node_again(struct side *s, ssize_t rc, const char *call)
{
	if (rc == -FI_EAGAIN) {
		node_progress(&s->node);
		sched_yield();
		return true;
	}
	side_must(s, rc, call);
	return false;
}
