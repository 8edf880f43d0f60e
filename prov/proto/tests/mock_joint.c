/* SPDX-License-Identifier: BSD-2-Clause */
/* Joint transfers of the mock wire. */
#include "config.h"

#include "prov/proto/tests/mock_link.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

static struct list *pushes_of(struct mock_net *net)
{
	if (!net->pushes.next) {
		list_init(&net->pushes);
	}
	return &net->pushes;
}

static void push_free(struct mock_push *p)
{
	while (p) {
		struct mock_push *next = p->next;

		free(p);
		p = next;
	}
}

void mock_pushes_drop(struct mock_net *net, uint32_t cell)
{
	list_foreach_safe (n, next, pushes_of(net)) {
		struct mock_push *p = container_of(n, struct mock_push, node);

		if (p->cell == cell) {
			list_remove(n);
			push_free(p);
		}
	}
}

/* Lands what is due. */
int mock_pushes_run(struct mock_net *net)
{
	int done = 0;

	list_foreach_safe (n, next, pushes_of(net)) {
		struct mock_push *p = container_of(n, struct mock_push, node);

		if (p->due > net->now) {
			continue;
		}
		for (struct mock_push *q = p; q; q = q->next) {
			memcpy(q->to, q->bytes, q->len);
		}
		net->cells[p->cell].done++;
		list_remove(n);
		push_free(p);
		done++;
	}
	return done;
}

void mock_hold(struct mock_link *l, const struct wire_segment *seg, char *at)
{
	struct mock_push *p = calloc(1, sizeof(*p) + seg->len);
	size_t off = 0;

	for (size_t i = 0; i < seg->local_count; i++) {
		memcpy(p->bytes + off, seg->local[i].iov_base, seg->local[i].iov_len);
		off += seg->local[i].iov_len;
	}
	p->to = at;
	p->len = seg->len;
	p->next = l->held;
	l->held = p;
}

int mock_joint_open(struct wire_link *link, uint32_t pieces, struct wire_joint *j)
{
	struct mock_ep *ep = link_of(link)->ep;

	for (uint32_t i = 0;
	     i < MOCK_CELLS && !mock_chance(ep->net, ep->net->refuse_cell); i++) {
		struct mock_cell *c = &ep->net->cells[i];

		if (!c->owner) {
			*c = (struct mock_cell){.owner = (struct wire_ep *)ep,
						.turn = c->turn + 1,
						.pieces = pieces};
			*j = (struct wire_joint){
				.cell = i, .turn = c->turn, .pieces = pieces};
			return 0;
		}
	}
	return -FI_EAGAIN;
}

uint32_t mock_joint_take(struct wire_link *link, struct wire_joint *j, bool owner)
{
	struct mock_link *l = link_of(link);
	struct mock_cell *c = &l->ep->net->cells[j->cell];

	if (l->pushing) {
		abort(); /* the last piece was not reported */
	}
	/* As a link that is about to end does it. */
	if (mock_chance(l->ep->net, l->ep->net->refuse_take)) {
		return WIRE_JOINT_NONE;
	}
	if (!c->owner || c->turn != j->turn || c->closed ||
	    c->front + c->back >= c->pieces) {
		return WIRE_JOINT_NONE;
	}
	if (owner) {
		j->mine++;
		return c->front++;
	}
	l->pushing = true;
	l->holding = mock_chance(l->ep->net, l->ep->net->late_push);
	l->ep->net->pushed++;
	return c->pieces - 1 - c->back++;
}

void mock_joint_did(struct wire_link *link, const struct wire_joint *j, bool ok)
{
	struct mock_link *l = link_of(link);
	struct mock_cell *c = &l->ep->net->cells[j->cell];

	if (!l->pushing) {
		abort();
	}
	l->pushing = false;
	l->holding = false;
	c->broken |= !ok || mock_chance(l->ep->net, l->ep->net->break_push);
	if (l->held) {
		l->held->cell = j->cell;
		l->held->due = l->ep->net->now + 20 * l->ep->net->max_delay;
		list_push_back(pushes_of(l->ep->net), &l->held->node);
		l->held = NULL;
	} else {
		c->done++;
	}
}

enum wire_joint_state mock_joint_look(struct wire_link *link, const struct wire_joint *j)
{
	struct mock_cell *c = &link_of(link)->ep->net->cells[j->cell];

	if (c->done < c->back) {
		return WIRE_JOINT_BUSY;
	}
	return c->broken || c->front + c->back != c->pieces ? WIRE_JOINT_BROKEN
							    : WIRE_JOINT_DONE;
}

void mock_joint_close(struct wire_ep *wep, struct wire_joint *j)
{
	ep_of(wep)->net->cells[j->cell].closed = true;
}

bool mock_joint_quiet(struct wire_ep *wep, const struct wire_joint *j)
{
	struct mock_cell *c = &ep_of(wep)->net->cells[j->cell];

	if (!c->owner || !c->closed) {
		abort(); /* given back already, or never closed */
	}
	if (c->done < c->back) {
		return false;
	}
	c->owner = NULL;
	return true;
}

int mock_cells_used(const struct mock_net *net)
{
	int used = 0;

	for (int i = 0; i < MOCK_CELLS; i++) {
		used += net->cells[i].owner != NULL;
	}
	return used;
}
