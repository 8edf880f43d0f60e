/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomics of the peer's device, from the call to the end. Rules C6, D2, E4. */
#include "config.h"

#include "prov/wire/verbs/verbs_atomic.h"

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rma.h"

_Static_assert((VERBS_ATOMICS & (VERBS_ATOMICS - 1)) == 0, "a ring");
_Static_assert(VERBS_ATOMICS * sizeof(uint64_t) <= VERBS_BUF_SIZE, "room for results");

static struct verbs_atomic *at(struct verbs_link *link, uint32_t i)
{
	return &link->atomics.ring[i & (VERBS_ATOMICS - 1)];
}

/* ---- start --------------------------------------------------------------------------
 */

/* Where it is and with which key; or why it can't be. */
static int place_find(const struct verbs_atomic *a, uint32_t peer_rail, uint64_t *addr,
		      uint32_t *rkey)
{
	const struct verbs_keys_entry *e = &a->rkey->entry;
	uint64_t offset = a->call.addr - (e->virt_addr ? e->piece[0].addr : 0);
	const uint8_t need = VERBS_KEYS_READ | VERBS_KEYS_WRITE;
	uint32_t i = 0;

	if (a->tries && e->incarnation == a->refused)
		return -FI_EACCES; /* it was this very one (rule D2) */
	if ((e->access & need) != need)
		return -FI_EACCES;
	/* Nobody there would count it. */
	if (e->access & (VERBS_KEYS_COUNT_EP | VERBS_KEYS_COUNT_MR))
		return -FI_EOPNOTSUPP;
	for (; i < e->pieces && offset >= e->piece[i].len; i++)
		offset -= e->piece[i].len;
	if (i == e->pieces || e->piece[i].len - offset < sizeof(uint64_t))
		return -FI_EINVAL;
	*addr = e->piece[i].addr + offset;
	*rkey = e->piece[i].rkey[peer_rail];
	return *addr % sizeof(uint64_t) ? -FI_EINVAL : 0;
}

static void end(struct verbs_link *link, struct verbs_atomic *a, int err)
{
	a->err = err;
	a->over = true;
	/* Not in an upcall's reach. */
	link->stirred |= STIRRED_TX;
	verbs_link_dirty(link);
}

void verbs_atomics_run(struct verbs_link *link)
{
	struct verbs_atomics *s = &link->atomics;

	for (; s->posted != s->head; s->posted++) {
		struct verbs_atomic *a = at(link, s->posted);
		uint64_t addr = 0;
		uint32_t rkey = 0;
		int err;

		if (a->over)
			continue;
		if (a->rkey->state == VERBS_RKEY_FETCHING || !link->chan.qp)
			return;
		err = a->rkey->state == VERBS_RKEY_GONE
			      ? a->rkey->err
			      : place_find(a, link->chan.qp->peer_rail, &addr, &rkey);
		if (err)
			end(link, a, err);
		else if (!verbs_chan_atomic(link, s->posted & (VERBS_ATOMICS - 1), addr,
					    rkey, &a->call))
			return;
	}
}

int verbs_atomic(struct wire_link *wlink, const struct wire_atomic *call)
{
	struct verbs_link *link = verbs_link_of(wlink);
	struct verbs_atomics *s = &link->atomics;
	struct verbs_rkey *rkey;

	if (link->state != VERBS_LINK_UP || link->faulty || link->chan.bye_sent ||
	    s->head - s->tail == VERBS_ATOMICS)
		return -FI_EAGAIN;
	rkey = verbs_rkey_get(link, VERBS_KEYS_APP, call->key);
	if (!rkey)
		return -FI_EAGAIN;
	*at(link, s->head++) = (struct verbs_atomic){.call = *call, .rkey = rkey};
	verbs_atomics_run(link);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------
 */

/* The oldest that is posted and not over; NULL: none. */
static struct verbs_atomic *oldest(struct verbs_link *link, uint32_t *i)
{
	for (*i = link->atomics.tail; *i != link->atomics.posted; ++*i)
		if (!at(link, *i)->over)
			return at(link, *i);
	return NULL;
}

void verbs_atomics_done(struct verbs_link *link)
{
	uint32_t i;
	struct verbs_atomic *a = oldest(link, &i);

	if (!a)
		return;
	a->was = verbs_chan_result(link, i & (VERBS_ATOMICS - 1));
	a->over = true;
	verbs_atomics_reap(link);
	if (link->state == VERBS_LINK_UP)
		verbs_atomics_run(link);
}

static void report(struct verbs_link *link, int err, bool tell)
{
	struct verbs_atomic a = *at(link, link->atomics.tail++);

	verbs_rkey_put(a.rkey);
	if (tell)
		link->ep->events->atomic_done(link->ep->arg,
					      (struct wire_link *)(void *)link,
					      a.call.cookie, a.was, err ? err : a.err);
}

int verbs_atomics_reap(struct verbs_link *link)
{
	struct verbs_atomics *s = &link->atomics;
	int count = 0;

	for (; link->state == VERBS_LINK_UP && s->tail != s->posted; count++) {
		if (!at(link, s->tail)->over)
			break;
		report(link, 0, true);
	}
	return count;
}

/* Refused by the peer's device: perhaps the key means something else by now (D2). */
static void again(struct verbs_link *link, struct verbs_atomic *a)
{
	struct verbs_rkey *k = a->rkey, *next = NULL;

	if (++a->tries <= VERBS_OP_TRIES) {
		a->refused = k->entry.incarnation;
		verbs_rkey_refused(link, k);
		next = verbs_rkey_get(link, VERBS_KEYS_APP, a->call.key);
	}
	if (!next) {
		end(link, a, -FI_EACCES);
		return;
	}
	a->rkey = next;
	verbs_rkey_put(k);
}

void verbs_atomics_cut(struct verbs_link *link)
{
	struct verbs_atomics *s = &link->atomics;
	bool refused = s->refused;
	uint32_t i;
	struct verbs_atomic *a = oldest(link, &i);

	s->refused = false;
	if (!a)
		return;
	if (refused) {
		/* Before verbs_rkey_get, which may come back here by what it reads. */
		s->posted = i;
		again(link, a);
		verbs_atomics_run(link);
		return;
	}
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
		"the queue pair of native atomics died: those under way may have been "
		"carried out or not, and fail (FI_WEFT_VERBS_ATOMICS)\n");
	for (; i != s->posted; i++)
		if (!at(link, i)->over)
			end(link, at(link, i), -FI_ECONNABORTED);
}

void verbs_atomics_fail(struct verbs_link *link, int err, bool tell)
{
	struct verbs_atomics *s = &link->atomics;

	while (s->tail != s->head) {
		/* What was over already ends as it did. */
		bool over = at(link, s->tail)->over;

		report(link, over ? 0 : err, tell);
	}
	s->posted = s->head;
}
