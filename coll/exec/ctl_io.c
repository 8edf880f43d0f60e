/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages on the wire: a set of posted receives, and a queue of sends that the
 * provider did not take yet. Buffers come in slabs, registered where the provider wants
 * local buffers registered.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"

#define CTL_RECVS      32 /* posted at a time */
#define CTL_SLAB_COUNT 64 /* buffers allocated at a time */

struct ctl_slab {
	struct ctl_slab *next;
	struct mem_entry *mr;
	struct ctl_buf buf[CTL_SLAB_COUNT];
	char data[CTL_SLAB_COUNT * CTL_MAX];
};

static int ctl_slab_alloc(struct exec *x)
{
	struct ctl_slab *slab = calloc(1, sizeof(*slab));
	void *desc = NULL;
	int rc;

	if (!slab)
		return -FI_ENOMEM;
	if (x->net.mr_local) {
		rc = mem_get(&x->mem, slab->data, sizeof(slab->data), false, &slab->mr);
		if (rc) {
			free(slab);
			return rc;
		}
		desc = fi_mr_desc(slab->mr->mr);
	}
	for (int i = 0; i < CTL_SLAB_COUNT; i++) {
		struct ctl_buf *buf = &slab->buf[i];

		buf->x = x;
		buf->data = slab->data + (size_t)i * CTL_MAX;
		buf->desc = desc;
		list_push_back(&x->ctl_free, &buf->link);
	}
	slab->next = x->slabs;
	x->slabs = slab;
	return 0;
}

static struct ctl_buf *ctl_buf_get(struct exec *x)
{
	struct list *node;

	if (list_empty(&x->ctl_free) && ctl_slab_alloc(x))
		return NULL;
	node = list_pop_front(&x->ctl_free);
	return container_of(node, struct ctl_buf, link);
}

/* Survivors of another job may go on sending to the address of a rank that died. They
 * hear nothing: an answer would be as foreign to them. */
static void ctl_foreign(struct exec *x, uint64_t job)
{
	x->stats.foreign++;
	if (!x->foreign_told)
		fprintf(stderr,
			"weft: rank %d of job %016llx got a control message of job "
			"%016llx, and drops such: a rank of that one had this address\n",
			x->rank, (unsigned long long)x->net.job, (unsigned long long)job);
	x->foreign_told = true;
}

static void ctl_take(struct exec *x, const struct ctl_buf *buf, size_t len)
{
	struct ctl_msg msg;
	uint64_t job;

	/* Of another job even the ranks mean something else. */
	if (ctl_job(buf->data, len, &job) && job != x->net.job)
		ctl_foreign(x, job);
	else if (ctl_decode(buf->data, len, x->size, &msg))
		event_ctl(x, &msg);
	else
		x->garbage++;
}

static void ctl_recv_done(struct net_op *op, const struct net_result *result)
{
	struct ctl_buf *buf = op->owner;
	struct exec *x = buf->x;

	net_op_release(&x->net, op);
	if (!result->err)
		ctl_take(x, buf, result->len);
	if (result->err != FI_ECANCELED)
		list_push_back(&x->ctl_repost, &buf->link);
}

static int ctl_recv_post(struct exec *x, struct ctl_buf *buf)
{
	struct net_op *op = net_op_alloc(&x->net);
	ssize_t rc;

	if (!op)
		return -FI_ENOMEM;
	op->done = ctl_recv_done;
	op->owner = buf;
	op->peer = -1;
	rc = fi_recv(x->net.ep, buf->data, CTL_MAX, buf->desc, FI_ADDR_UNSPEC, op);
	if (rc)
		net_op_release(&x->net, op);
	return (int)rc;
}

enum weft_result ctl_io_open(struct exec *x)
{
	for (int i = 0; i < CTL_RECVS; i++) {
		struct ctl_buf *buf = ctl_buf_get(x);
		int rc = buf ? ctl_recv_post(x, buf) : -FI_ENOMEM;

		if (rc && buf)
			list_push_back(&x->ctl_repost, &buf->link);
		if (rc && rc != -FI_EAGAIN)
			return error_set(
				WEFT_ERR_PROVIDER, "provider %s refused a receive: %s",
				x->net.info->fabric_attr->prov_name, fi_strerror(-rc));
	}
	return WEFT_SUCCESS;
}

/* The endpoint may still own posted buffers: it is closed first, then they go. */
void ctl_io_close(struct exec *x)
{
	if (x->net.ep) {
		fi_close(&x->net.ep->fid);
		x->net.ep = NULL;
	}
	while (x->slabs) {
		struct ctl_slab *next = x->slabs->next;

		if (x->slabs->mr)
			mem_put(&x->mem, x->slabs->mr);
		free(x->slabs);
		x->slabs = next;
	}
}

static void ctl_send_done(struct net_op *op, const struct net_result *result)
{
	struct ctl_buf *buf = op->owner;
	struct exec *x = buf->x;
	const int32_t peer = buf->peer;

	x->ctl_sends--;
	net_op_release(&x->net, op);
	if (net_broke(result) && ++buf->tries < EXEC_SEND_TRIES) {
		list_push_back(&x->ctl_out, &buf->link);
		return;
	}
	list_push_front(&x->ctl_free, &buf->link);
	if (result->err)
		event_peer_lost(x, peer, result->text);
}

/* 0 also when the peer turned out to be lost: the message has no addressee any more. */
static int ctl_send_post(struct exec *x, struct ctl_buf *buf)
{
	struct net_op *op = net_op_alloc(&x->net);
	const int32_t peer = buf->peer;
	ssize_t rc;

	if (!op)
		return -FI_EAGAIN;
	op->done = ctl_send_done;
	op->owner = buf;
	op->peer = peer;
	rc = fi_send(x->net.ep, buf->data, buf->len, buf->desc, x->net.addr[peer], op);
	if (rc == 0) {
		x->ctl_sends++;
		return 0;
	}
	net_op_release(&x->net, op);
	if (rc == -FI_EAGAIN)
		return -FI_EAGAIN;
	list_push_front(&x->ctl_free, &buf->link);
	event_peer_lost(x, peer, fi_strerror((int)-rc));
	return 0;
}

int ctl_io_send(struct exec *x, int32_t peer, struct ctl_msg *msg)
{
	struct ctl_buf *buf = ctl_buf_get(x);

	if (!buf)
		return -FI_ENOMEM;
	msg->src = x->rank;
	msg->job = x->net.job;
	buf->len = ctl_encode(msg, buf->data);
	buf->peer = peer;
	buf->tries = 0;
	list_push_back(&x->ctl_out, &buf->link);
	return 0;
}

bool ctl_io_progress(struct exec *x)
{
	bool moved = false;

	/* One peer that takes nothing does not hold up the others: they may overtake
	 * each other, which every kind of control message allows. */
	list_foreach_safe (pos, tmp, &x->ctl_out) {
		struct ctl_buf *buf = container_of(pos, struct ctl_buf, link);

		list_remove(&buf->link);
		if (ctl_send_post(x, buf) == 0) {
			moved = true;
			continue;
		}
		list_insert_after(tmp->prev, &buf->link);
	}
	list_foreach_safe (pos, tmp, &x->ctl_repost) {
		struct ctl_buf *buf = container_of(pos, struct ctl_buf, link);

		list_remove(&buf->link);
		if (ctl_recv_post(x, buf)) {
			list_push_back(&x->ctl_repost, &buf->link);
			break;
		}
	}
	return moved;
}
