/* SPDX-License-Identifier: BSD-2-Clause */
/* See srx_group.h. */
#include "config.h"

#include "fabtests/own/srx_group.h"

#include <sched.h>
#include <string.h>

static const struct want want_source = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE |
						FI_DIRECTED_RECV | FI_MULTI_RECV};

static struct fi_info *shared_info(struct side *s)
{
	struct fi_info *hints = node_hints(&want_source), *info;

	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->domain_attr->max_ep_srx_ctx = 2;
	if (fi_getinfo(API_VERSION, "127.0.0.1", NULL, FI_SOURCE, hints, &info))
		side_lacks(s, "no shared receive contexts");
	side_check(s,
		   info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT &&
			   info->domain_attr->max_ep_srx_ctx >= 2,
		   "shared receive contexts are not announced");
	fi_freeinfo(hints);
	return info;
}

void member_open(struct side *s, struct group *g, int i, uint64_t flags)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_cntr_attr cntr = {.events = FI_CNTR_EVENTS_COMP};
	struct node *n = &s->node;

	side_must(s, fi_cq_open(n->domain, &cq, &g->cq[i], NULL), "fi_cq_open");
	side_must(s, fi_cntr_open(n->domain, &cntr, &g->cntr[i], NULL), "fi_cntr_open");
	side_must(s, fi_endpoint(n->domain, g->info, &g->ep[i], NULL), "fi_endpoint");
	side_must(s, fi_ep_bind(g->ep[i], &n->av->fid, 0), "bind av");
	side_must(s, fi_ep_bind(g->ep[i], &g->cq[i]->fid, FI_TRANSMIT | FI_RECV | flags),
		  "bind cq");
	side_must(s, fi_ep_bind(g->ep[i], &g->cntr[i]->fid, FI_RECV), "bind counter");
	side_must(s, fi_ep_bind(g->ep[i], &g->srx->fid, 0), "bind srx");
	side_must(s, fi_enable(g->ep[i]), "fi_enable");
}

/* Both sides know each other afterwards. flags: for the bind of queue number 0. */
void group_open(struct side *s, struct group *g, uint64_t flags)
{
	char names[EPS][NAMES] = {{0}}, name[NAMES] = {0};

	memset(g, 0, sizeof(*g));
	node_open_alone(s, &s->node, &want_source);
	g->info = shared_info(s);
	side_must(s, fi_srx_context(s->node.domain, g->info->rx_attr, &g->srx, NULL),
		  "fi_srx_context");
	for (int i = 0; i < EPS; i++) {
		size_t len = NAMES;

		member_open(s, g, i, i ? 0 : flags);
		side_must(s, fi_getname(&g->ep[i]->fid, names[i], &len), "fi_getname");
	}
	side_tell(s, names, sizeof(names));
	side_hear(s, name, sizeof(name));
	if (fi_av_insert(s->node.av, name, 1, &g->from, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	side_meet(s);
}

void member_close(struct side *s, struct group *g, int i)
{
	if (!g->ep[i])
		return;
	side_must(s, fi_close(&g->ep[i]->fid), "fi_close ep");
	side_must(s, fi_close(&g->cq[i]->fid), "fi_close cq");
	side_must(s, fi_close(&g->cntr[i]->fid), "fi_close cntr");
	g->ep[i] = NULL;
}

void group_close(struct side *s, struct group *g)
{
	side_check(s, fi_close(&g->srx->fid) == -FI_EBUSY, "it closes under endpoints");
	for (int i = 0; i < EPS; i++)
		member_close(s, g, i);
	side_must(s, fi_close(&g->srx->fid), "fi_close srx");
	fi_freeinfo(g->info);
	node_close(s, &s->node);
}

/* Role 1: addresses of the endpoints. */
void sender_open(struct side *s, fi_addr_t to[EPS])
{
	char names[EPS][NAMES] = {{0}}, name[NAMES] = {0};

	node_open_alone(s, &s->node, &want_source);
	memcpy(name, s->node.name, sizeof(s->node.name));
	side_hear(s, names, sizeof(names));
	side_tell(s, name, sizeof(name));
	for (int i = 0; i < EPS; i++)
		if (fi_av_insert(s->node.av, names[i], 1, &to[i], 0, NULL) != 1)
			side_die(s, "fi_av_insert");
	side_meet(s);
}

/* The next completion of any of the endpoints; which. -1: none within ms. */
int group_next(struct side *s, struct group *g, struct done *d, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;

	do {
		for (int i = 0; i < EPS; i++) {
			struct fi_cq_err_entry err = {0};
			ssize_t rc;

			if (!g->ep[i])
				continue;
			memset(d, 0, sizeof(*d));
			rc = fi_cq_readfrom(g->cq[i], &d->e, 1, &d->src);
			if (rc == 1)
				return i;
			if (rc == -FI_EAGAIN)
				continue;
			if (rc != -FI_EAVAIL || fi_cq_readerr(g->cq[i], &err, 0) != 1)
				side_die(s, "fi_cq_readfrom: %zd", rc);
			d->err = err.err;
			d->olen = err.olen;
			d->e = (struct fi_cq_tagged_entry){.op_context = err.op_context,
							   .flags = err.flags,
							   .len = err.len,
							   .buf = err.buf,
							   .data = err.data,
							   .tag = err.tag};
			return i;
		}
		sched_yield();
	} while (now_ms() < end);
	return -1;
}

int group_must(struct side *s, struct group *g, struct done *d)
{
	int i = group_next(s, g, d, WAIT_MS);

	if (i < 0)
		side_die(s, "a completion is missing");
	return i;
}

void group_quiet(struct side *s, struct group *g, int ms)
{
	struct done d;
	int i = group_next(s, g, &d, ms);

	side_check(s, i < 0, "endpoint %d has a completion too many (error %d)", i,
		   d.err);
}

/* Waits for one byte, driving all endpoints; nothing may complete. */
static void group_hear(struct side *s, struct group *g)
{
	uint8_t byte;

	group_quiet(s, g, 1);
	side_hear(s, &byte, 1);
	group_quiet(s, g, 20);
}

/* ---- a sender that does what it is told */

void obey(struct side *s)
{
	fi_addr_t to[EPS];
	int open = 0;
	struct order o;
	struct done d;

	sender_open(s, to);
	for (;;) {
		char *mem;
		ssize_t rc;

		side_hear(s, &o, sizeof(o));
		if (o.to >= EPS)
			break;
		mem = mem_new(o.len + 1);
		mem_fill(mem, o.len, (uint32_t)o.tag);
		do {
			rc = o.tagged ? fi_tsend(s->node.ep, mem, o.len, NULL, to[o.to],
						 o.tag, mem)
				      : fi_send(s->node.ep, mem, o.len, NULL, to[o.to],
						mem);
		} while (node_again(s, rc, "send"));
		open++;
		while (node_next(s, &d, 5))
			open--;
		side_tell(s, "", 1);
	}
	while (open > 0 && node_next(s, &d, WAIT_MS))
		open--;
	side_check(s, open == 0, "%d sends have no end", open);
	side_meet(s);
	node_close(s, &s->node);
}

void order_send(struct side *s, struct group *g, int to, uint64_t tag, size_t len,
		bool tagged)
{
	struct order o = {
		.tag = tag, .len = (uint32_t)len, .to = (uint32_t)to, .tagged = tagged};

	side_tell(s, &o, sizeof(o));
	group_hear(s, g);
}

/* The same where something is to complete meanwhile. */
void order_only(struct side *s, int to, uint64_t tag, size_t len, bool tagged)
{
	struct order o = {
		.tag = tag, .len = (uint32_t)len, .to = (uint32_t)to, .tagged = tagged};
	uint8_t byte;

	side_tell(s, &o, sizeof(o));
	side_hear(s, &byte, 1);
}

void order_end(struct side *s, struct group *g)
{
	struct order o = {.to = EPS};

	side_tell(s, &o, sizeof(o));
	group_quiet(s, g, 20);
	side_meet(s);
}
