/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner of imported objects; see peer_owner.h. */
#include "config.h"

#ifdef HAVE_STRUCT_FI_PEER_MATCH_ATTR

#include "fabtests/own/peer_owner.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct owner *of_srx(struct fid_peer_srx *srx)
{
	return container_of(srx, struct owner, srx);
}

static struct owner_entry *of_entry(struct fi_peer_rx_entry *e)
{
	return (struct owner_entry *)e;
}

/* ---- completions */

static void done_add(struct owner *o, const struct done *d)
{
	if (o->done_count < OWNER_DONE_MAX)
		o->done[o->done_count] = *d;
	o->done_count++;
}

static ssize_t cq_write(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len,
			void *buf, uint64_t data, uint64_t tag, fi_addr_t src)
{
	done_add(container_of(cq, struct owner, cq),
		 &(struct done){.e = {.op_context = context,
				      .flags = flags,
				      .len = len,
				      .buf = buf,
				      .data = data,
				      .tag = tag},
				.src = src});
	return 0;
}

static ssize_t cq_writeerr(struct fid_peer_cq *cq, const struct fi_cq_err_entry *e)
{
	done_add(container_of(cq, struct owner, cq),
		 &(struct done){.e = {.op_context = e->op_context,
				      .flags = e->flags,
				      .len = e->len,
				      .buf = e->buf,
				      .data = e->data,
				      .tag = e->tag},
				.src = e->src_addr,
				.err = e->err,
				.olen = e->olen});
	return 0;
}

static struct fi_ops_cq_owner cq_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = cq_write,
	.writeerr = cq_writeerr,
};

/* ---- matching */

static bool fits(const struct owner_entry *posted, const struct fi_peer_match_attr *m,
		 uint64_t kind)
{
	return (posted->e.flags & kind) &&
	       ((posted->e.tag ^ m->tag) & ~posted->ignore) == 0 &&
	       (posted->e.addr == FI_ADDR_UNSPEC || posted->e.addr == m->addr);
}

static struct owner_entry *entry_new(struct owner *o)
{
	struct owner_entry *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->e.srx = &o->srx;
	x->e.iov = &x->iov;
	o->alive++;
	return x;
}

/* The piece of a multi-receive buffer for a message of len bytes. */
static struct owner_entry *piece_new(struct owner *o, struct owner_entry *whole,
				     size_t len)
{
	struct owner_entry *x = entry_new(o);
	size_t take = len < whole->iov.iov_len ? len : whole->iov.iov_len;

	x->whole = whole;
	x->e.count = 1;
	x->e.context = whole->e.context;
	x->e.flags = whole->e.flags & ~FI_MULTI_RECV;
	x->iov = whole->iov;
	whole->parts++;
	whole->iov.iov_base = (char *)whole->iov.iov_base + take;
	whole->iov.iov_len -= take;
	if (whole->iov.iov_len < o->min_multi)
		list_remove(&whole->node);
	return x;
}

static struct owner_entry *take_posted(struct owner *o,
				       const struct fi_peer_match_attr *m, uint64_t kind)
{
	list_foreach (n, &o->posted) {
		struct owner_entry *x = container_of(n, struct owner_entry, node);

		if (!fits(x, m, kind))
			continue;
		if (x->e.flags & FI_MULTI_RECV)
			return piece_new(o, x, m->msg_size);
		list_remove(&x->node);
		return x;
	}
	return NULL;
}

static int get(struct fid_peer_srx *srx, struct fi_peer_match_attr *m, uint64_t kind,
	       struct fi_peer_rx_entry **out)
{
	struct owner *o = of_srx(srx);
	struct owner_entry *x;

	o->out_of_turn += !o->progressing;
	if (o->no_memory) {
		o->no_memory--;
		return -FI_ENOMEM;
	}
	x = take_posted(o, m, kind);
	if (x) {
		x->e.msg_size = m->msg_size;
		*out = &x->e;
		return 0;
	}
	x = entry_new(o);
	x->e.addr = m->addr;
	x->e.tag = m->tag;
	x->e.msg_size = m->msg_size;
	x->e.flags = kind | FI_RECV;
	*out = &x->e;
	return -FI_ENOENT;
}

static int get_msg(struct fid_peer_srx *srx, struct fi_peer_match_attr *m,
		   struct fi_peer_rx_entry **out)
{
	return get(srx, m, FI_MSG, out);
}

static int get_tag(struct fid_peer_srx *srx, struct fi_peer_match_attr *m,
		   struct fi_peer_rx_entry **out)
{
	return get(srx, m, FI_TAGGED, out);
}

static int queue(struct fi_peer_rx_entry *e)
{
	struct owner *o = of_srx(e->srx);

	o->out_of_turn += !o->progressing;
	if (o->refuse) {
		o->refuse--;
		return -FI_ENOMEM;
	}
	list_push_back(&o->unexpected, &of_entry(e)->node);
	o->unexpected_count++;
	return 0;
}

static void free_entry(struct fi_peer_rx_entry *e)
{
	struct owner_entry *x = of_entry(e), *whole = x->whole;
	struct owner *o = of_srx(e->srx);

	free(x);
	o->alive--;
	if (!whole || --whole->parts || whole->iov.iov_len >= o->min_multi)
		return;
	done_add(o, &(struct done){.e = {.op_context = whole->e.context,
					 .flags = FI_MULTI_RECV}});
	free(whole);
	o->alive--;
}

static void take_unexpected(struct owner *o, struct owner_entry *x)
{
	list_remove(&x->node);
	o->unexpected_count--;
}

static void foreach_unspec_addr(struct fid_peer_srx *srx,
				fi_addr_t (*source)(struct fi_peer_rx_entry *))
{
	struct owner *o = of_srx(srx);

	o->looked++;
	list_foreach (n, &o->unexpected) {
		struct owner_entry *x = container_of(n, struct owner_entry, node);

		if (x->e.addr == FI_ADDR_UNSPEC)
			x->e.addr = source(&x->e);
	}
}

static struct fi_ops_srx_owner srx_ops = {
	.size = sizeof(struct fi_ops_srx_owner),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

/* ---- what the tests call */

static int start(struct owner *o, struct owner_entry *x)
{
	return x->e.flags & FI_TAGGED ? o->srx.peer_ops->start_tag(&x->e)
				      : o->srx.peer_ops->start_msg(&x->e);
}

int owner_recv(struct owner *o, void *buf, size_t len, fi_addr_t from, uint64_t tag,
	       uint64_t ignore, void *context, uint64_t flags)
{
	struct owner_entry *x = entry_new(o);

	x->iov = (struct iovec){buf, len};
	x->e.count = 1;
	x->e.addr = from;
	x->e.tag = tag;
	x->ignore = ignore;
	x->e.context = context;
	x->e.flags = flags | FI_RECV;
	list_foreach (n, &o->unexpected) {
		struct owner_entry *u = container_of(n, struct owner_entry, node);
		struct fi_peer_match_attr m = {.addr = u->e.addr, .tag = u->e.tag};

		if (!fits(x, &m, u->e.flags & (FI_MSG | FI_TAGGED)))
			continue;
		take_unexpected(o, u);
		u->iov = x->iov;
		u->e.count = 1;
		u->e.context = context;
		free_entry(&x->e);
		return start(o, u);
	}
	list_push_back(&o->posted, &x->node);
	return 0;
}

struct owner_entry *owner_first(struct owner *o)
{
	return list_empty(&o->unexpected)
		       ? NULL
		       : container_of(o->unexpected.next, struct owner_entry, node);
}

int owner_discard(struct owner *o)
{
	struct owner_entry *x = owner_first(o);
	int rc = x->e.flags & FI_TAGGED ? o->srx.peer_ops->discard_tag(&x->e)
					: o->srx.peer_ops->discard_msg(&x->e);

	take_unexpected(o, x);
	free_entry(&x->e);
	return rc;
}

void owner_progress(struct owner *o)
{
	o->progressing = true;
	fi_cq_read(o->peer_cq, NULL, 0);
	o->progressing = false;
}

void owner_await(struct side *s, struct owner *o, int unexpected)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (o->unexpected_count < unexpected) {
		owner_progress(o);
		if (now_ms() >= end)
			side_die(s, "%d messages wait, %d should", o->unexpected_count,
				 unexpected);
		sched_yield();
	}
}

bool owner_next(struct owner *o, struct done *d, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;

	while (o->done_read == o->done_count) {
		owner_progress(o);
		if (now_ms() >= end)
			return false;
		sched_yield();
	}
	*d = o->done[o->done_read++];
	if (o->done_read == o->done_count)
		o->done_read = o->done_count = 0;
	return true;
}

void owner_expect(struct side *s, struct owner *o, struct done *d, uint64_t flags)
{
	if (!owner_next(o, d, WAIT_MS))
		side_die(s, "no completion (wanted flags 0x%llx)",
			 (unsigned long long)flags);
	if (d->err)
		side_die(s, "error completion: %s", fi_strerror(d->err));
	side_check_u64(s, d->e.flags, flags, "flags of a completion");
}

/* ---- life */

void owner_open(struct side *s, struct owner *o, const struct want *want, bool known)
{
	struct fi_cq_attr cq_attr = {.flags = FI_PEER};
	struct fi_rx_attr rx_attr = {.op_flags = FI_PEER};
	struct fi_peer_cq_context cq = {.size = sizeof(cq), .cq = &o->cq};
	struct fi_peer_srx_context srx = {.size = sizeof(srx), .srx = &o->srx};
	char name[sizeof(s->node.name)] = {0};
	struct node *n = &s->node;

	memset(o, 0, sizeof(*o));
	o->s = s;
	o->cq.owner_ops = &cq_ops;
	o->srx.owner_ops = &srx_ops;
	o->min_multi = 64;
	list_init(&o->posted);
	list_init(&o->unexpected);
	node_open_av(s, n, want);
	side_must(s, fi_cq_open(n->domain, &cq_attr, &o->peer_cq, &cq), "fi_cq_open");
	side_must(s, fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
	side_must(s, fi_ep_bind(n->ep, &n->av->fid, 0), "fi_ep_bind av");
	side_must(s, fi_ep_bind(n->ep, &o->peer_cq->fid, FI_TRANSMIT | FI_RECV),
		  "fi_ep_bind cq");
	side_must(s, fi_srx_context(n->domain, &rx_attr, &o->peer_srx, &srx),
		  "fi_srx_context");
	side_must(s, fi_ep_bind(n->ep, &o->peer_srx->fid, 0), "fi_ep_bind srx");
	side_must(s, fi_enable(n->ep), "fi_enable");
	n->name_len = sizeof(n->name);
	side_must(s, fi_getname(&n->ep->fid, n->name, &n->name_len), "fi_getname");
	side_tell(s, n->name, sizeof(n->name));
	side_hear(s, name, sizeof(name));
	memcpy(n->name, name, sizeof(name)); /* of the peer, from here on */
	n->peer = FI_ADDR_NOTAVAIL;
	if (known && fi_av_insert(n->av, name, 1, &n->peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert refuses the peer's address");
	side_meet(s);
}

void owner_close(struct side *s, struct owner *o)
{
	struct node *n = &s->node;

	if (n->ep)
		side_must(s, fi_close(&n->ep->fid), "fi_close ep");
	n->ep = NULL;
	side_must(s, fi_close(&o->peer_srx->fid), "fi_close srx");
	side_must(s, fi_close(&o->peer_cq->fid), "fi_close cq");
	node_close(s, n);
	side_check(s, o->out_of_turn == 0, "asked %d times without its progress",
		   o->out_of_turn);
	side_check(s, o->alive == 0, "%d entries were not given back", o->alive);
}

#endif
