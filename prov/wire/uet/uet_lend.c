/* SPDX-License-Identifier: BSD-2-Clause */
/* Lent memory; see uet_lend.h. */
#include "config.h"

#include "prov/wire/uet/uet_lend.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/uet_leave.h"

#define LOANS 1024u

struct loan {
	struct wire_link *link; /* NULL: free, or its link is gone */
	const uint8_t *start;
	size_t len;
	uint32_t turn; /* how often the place was used: the upper half of a name */
};

struct uet_loans {
	struct loan loan[LOANS];
	uint16_t free[LOANS];
	uint32_t frees;
};

/* ---- names ------------------------------------------------------------------------- */

int uet_loans_open(struct uet_loans **out)
{
	struct uet_loans *loans = calloc(1, sizeof(*loans));

	if (!loans)
		return -FI_ENOMEM;
	while (loans->frees < LOANS) {
		loans->free[loans->frees] = (uint16_t)(LOANS - 1 - loans->frees);
		loans->frees++;
	}
	*out = loans;
	return 0;
}

void uet_loans_close(struct uet_loans *loans)
{
	free(loans);
}

void uet_loans_end(struct wire_link *link)
{
	struct uet_loans *loans = link->base.ep->loans;

	/* The places are given back by unlend. */
	for (unsigned i = 0; loans && i < LOANS; i++) {
		if (loans->loan[i].link == link)
			loans->loan[i].link = NULL;
	}
}

uint64_t uet_lend(struct wire_link *link, const void *start, size_t len)
{
	struct uet_loans *loans = link->base.ep->loans;
	struct loan *loan;
	uint32_t place;

	if (!loans->frees || link->state != UET_LINK_UP)
		return 0;
	place = loans->free[--loans->frees];
	loan = &loans->loan[place];
	*loan = (struct loan){
		.link = link, .start = start, .len = len, .turn = loan->turn + 1};
	return (uint64_t)loan->turn << 32 | (place + 1);
}

/* Not trusted; NULL: there is no such name. */
static struct loan *loan_of(struct uet_loans *loans, uint64_t name)
{
	uint32_t place = (uint32_t)name - 1;

	return place < LOANS && loans->loan[place].turn == name >> 32
		       ? &loans->loan[place]
		       : NULL;
}

static uint32_t answer_put(const struct uet_give *give, uint32_t part, uint8_t rc,
			   uint8_t *ses)
{
	struct uet_ses_resp resp = {.op = UET_RESP_WITH_DATA,
				    .rc = rc,
				    .message = give->read,
				    .read = give->read,
				    .at = give->cut,
				    .modified = give->len,
				    .part = part};

	return (uint32_t)uet_resp_put(ses, UET_NEXT_RESP_DATA, &resp);
}

/* Whoever still waits for some of it hears that there is no more. */
static void gives_stop(struct wire_link *link, uint64_t name)
{
	for (unsigned i = 0; i < UET_GIVES; i++) {
		struct uet_give *give = &link->give[i];
		uint8_t ses[UET_SES_MAX];

		if (!give->used || give->name != name)
			continue;
		if (give->left && link->pdc)
			uet_pdc_empty(link->pdc, give, ses,
				      answer_put(give, 0, UET_RC_BAD_MKEY, ses));
		if (give->cut < give->len) {
			give->broken = true;
			uet_link_has_work(link);
		}
	}
}

void uet_unlend(struct wire_ep *ep, uint64_t name)
{
	struct loan *loan = loan_of(ep->loans, name);

	if (!loan)
		return;
	if (loan->link)
		gives_stop(loan->link, name);
	/* Copies that still wait for the kernel. */
	uet_leave_forget(ep, loan->start, loan->len);
	loan->link = NULL;
	loan->turn++; /* so that nobody gives it back twice, or reads it late */
	ep->loans->free[ep->loans->frees++] = (uint16_t)(loan - ep->loans->loan);
}

/* ---- reads ------------------------------------------------------------------------- */

/* What the peer may read of what it asks for; NULL: not that. */
static const uint8_t *borrowed(struct wire_link *link, const struct uet_ses_req *req)
{
	const struct loan *loan = loan_of(link->base.ep->loans, req->match);
	uint64_t offset;

	if (!loan || loan->link != link)
		return NULL;
	offset = req->offset - (uintptr_t)loan->start;
	if (req->offset < (uintptr_t)loan->start || offset > loan->len ||
	    req->length > loan->len - offset)
		return NULL;
	return loan->start + offset;
}

static struct uet_give *give_get(struct wire_link *link)
{
	for (unsigned i = 0; i < UET_GIVES; i++) {
		if (!link->give[i].used)
			return &link->give[i];
	}
	return NULL;
}

static enum uet_verdict give_refuse(const struct uet_ses_req *req, bool room,
				    struct uet_reply *reply)
{
	struct uet_ses_resp resp = {.op = UET_RESP_RESPONSE,
				    .rc = UET_RC_BAD_MKEY,
				    .message = req->message,
				    .job = req->job};

	if (!room)
		return UET_NO_BUFFER;
	reply->next = UET_NEXT_RESP;
	reply->len = (uint8_t)uet_resp_put(reply->bytes, UET_NEXT_RESP, &resp);
	return UET_REPLIED;
}

enum uet_verdict uet_give_request(struct wire_link *link, const struct uet_pkt *pkt,
				  bool room, struct uet_reply *reply)
{
	const struct uet_ses_req *req = &pkt->req;
	const uint8_t *from = borrowed(link, req);
	struct uet_give *give;

	/* A read's other packets say nothing that its first one doesn't. */
	if (!from || !req->som || !req->length)
		return give_refuse(req, room, reply);
	give = give_get(link);
	if (!give)
		return UET_NO_BUFFER;
	give->used = true;
	give->broken = false;
	give->read = req->message;
	give->len = req->length;
	give->cut = give->left = 0;
	give->name = req->match;
	give->from = from;
	give->part = uet_link_part(link, req->length);
	list_push_back(&link->giving, &give->node);
	uet_link_has_work(link);
	return UET_TAKEN;
}

/* One packet; false: the context has no room. */
static bool give_cut(struct wire_link *link, struct uet_give *give, uint64_t now)
{
	uint32_t most = give->part < link->part ? give->part : link->part;
	uint32_t part = give->len - give->cut;
	uint8_t rc = give->broken ? UET_RC_BAD_MKEY : UET_RC_OK;
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {.ses = ses, .next = UET_NEXT_RESP_DATA, .cookie = give};

	/* One is always under way, also where all places are taken by requests. */
	if ((uet_pdc_room(link->pdc) <= UET_PLACES_KEPT ||
	     uet_pdc_backlogged(link->pdc)) &&
	    (give->left > 0 || uet_pdc_room_back(link->pdc) <= 1))
		return false;
	part = part < most ? part : most;
	send.ar = give->broken || give->cut + part == give->len;
	if (!give->broken) {
		send.payload = give->from + give->cut;
		send.payload_len = part;
	}
	send.ses_len = answer_put(give, send.payload_len, rc, ses);
	if (uet_pdc_send(link->pdc, &send, now))
		return false;
	give->left++;
	give->cut = give->broken ? give->len : give->cut + part;
	return true;
}

bool uet_give_pump(struct wire_link *link, uint64_t now)
{
	while (!list_empty(&link->giving)) {
		struct uet_give *give =
			container_of(link->giving.next, struct uet_give, node);

		while (give->cut < give->len) {
			if (!give_cut(link, give, now))
				return false;
		}
		list_remove(&give->node);
	}
	return true;
}

void uet_give_done(struct uet_give *give)
{
	give->left--;
	if (!give->left && give->cut == give->len)
		give->used = false;
}
