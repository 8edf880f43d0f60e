/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_RMA_EVENT: the target's counters hear of accesses that it had no part in. It says in
 * its key table that it wants that; whoever accessed tells it afterwards, by a packet for
 * each region, or for several accesses at once where packets find no room.
 */
#include "config.h"

#include <string.h>

#include "prov/mem/keytab.h"
#include "prov/proto/ep.h"

uint32_t counts_wanted(const struct proto_peer *pp)
{
	struct wire_link *link = pp->peer.link;

	return link_ops(link)->events ? link_ops(link)->events(link) : 0;
}

static struct count_row *row_find(struct counts *c, uint64_t key, uint8_t flags)
{
	for (uint32_t i = 0; i < c->rows; i++) {
		struct count_row *row = &c->row[i];

		if (row->key == key && row->flags == flags && row->count != UINT32_MAX) {
			return row;
		}
	}
	return NULL;
}

static void row_add(struct counts *c, uint64_t key, uint8_t flags)
{
	struct count_row *row = row_find(c, key, flags);

	if (row) {
		row->count++;
	} else {
		c->row[c->rows++] = (struct count_row){key, 1, flags};
	}
}

/* The rows that one operation needs. */
static uint32_t rows_make(const struct tx *tx, uint32_t wanted,
			  struct count_row rows[PKT_IOV_MAX])
{
	const struct xfer *x = &tx->x;
	uint8_t dir = (tx->flags & PROTO_WRITE) ? 0 : PKT_COUNT_READ;
	/* Data of its own tells the endpoint by PKT_EVENT. */
	bool for_ep = (wanted & MEM_EVENTS_EP) && !(tx->flags & PROTO_DATA);
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->remote_count; i++) {
		bool first = true;

		for (uint32_t j = 0; j < i; j++) {
			first &= x->remote[j].key != x->remote[i].key;
		}
		if (first && (wanted & MEM_EVENTS_MR)) {
			rows[n].key = x->remote[i].key;
			rows[n].flags = dir | PKT_COUNT_MR | (for_ep ? PKT_COUNT_EP : 0);
			n++;
		} else if (first && for_ep) {
			rows[n].key = 0;
			rows[n].flags = dir | PKT_COUNT_EP;
			n++;
		}
		for_ep = false; /* once for all pieces */
	}
	return n;
}

static bool rows_fit(struct counts *c, const struct count_row *rows, uint32_t n)
{
	uint32_t more = 0;

	for (uint32_t i = 0; i < n; i++) {
		more += !row_find(c, rows[i].key, rows[i].flags);
	}
	return c->rows + more <= COUNT_ROWS;
}

bool counts_add(struct proto_ep *ep, struct proto_peer *pp, const struct tx *tx,
		uint32_t wanted)
{
	struct count_row rows[PKT_IOV_MAX] = {0};
	uint32_t n = rows_make(tx, wanted, rows);

	if (!rows_fit(&pp->counts, rows, n)) {
		counts_run(ep, pp);
		if (!rows_fit(&pp->counts, rows, n)) {
			return false;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		row_add(&pp->counts, rows[i].key, rows[i].flags);
	}
	counts_run(ep, pp);
	return true;
}

int counts_run(struct proto_ep *ep, struct proto_peer *pp)
{
	struct counts *c = &pp->counts;
	uint32_t sent = 0;

	while (sent < c->rows) {
		const struct count_row *row = &c->row[sent];
		void *pkt =
			link_reserve(pp->peer.link, sizeof(struct pkt_count), WIRE_DATA);

		if (!pkt) {
			break;
		}
		link_commit(pp->peer.link, pkt,
			    pkt_put_count(pkt, row->flags, row->count, row->key));
		sent++;
	}
	if (sent) {
		c->rows -= sent;
		memmove(c->row, c->row + sent, c->rows * sizeof(c->row[0]));
	}
	if (c->rows) {
		proto_activate(ep, pp);
	}
	return (int)sent;
}

void count_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		   const struct pkt_view *v)
{
	(void)pp;
	(void)link;
	if (ep->up->remote_count) {
		ep->up->remote_count(ep->arg, v->key, v->len, v->flags & PKT_COUNT_READ,
				     v->flags & PKT_COUNT_EP, v->flags & PKT_COUNT_MR);
	}
}
