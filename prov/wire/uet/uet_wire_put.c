/* SPDX-License-Identifier: BSD-2-Clause */
/* The encoders, and names for people. */
#include "config.h"

#include <string.h>

#include "prov/wire/uet/uet_wire.h"

#define LEN14  0x3fffu
#define MASK12 0xfffu
#define MASK24 0xffffffu

static struct be16 prologue(const struct uet_pds_head *h, unsigned slot, unsigned flags)
{
	return be16_of((uint16_t)(h->type << 11 | (slot & 0xf) << 7 | flags |
				  (h->retx ? UET_F_RETX : 0)));
}

static struct be16 dest(const struct uet_pds_head *h)
{
	return be16_of(h->syn ? h->syn_offset & MASK12 : h->dpdcid);
}

/* Far behind: the field says as much as it can. */
static struct be16 below(uint32_t psn, uint32_t from)
{
	int32_t d = (int32_t)(psn - from);

	return be16_of((uint16_t)(d < INT16_MIN ? INT16_MIN : d > 0 ? 0 : d));
}

static size_t put_req(void *to, const struct uet_pds_head *h)
{
	struct uet_req_bytes b = {
		.prologue = prologue(h, h->next,
				     (h->ar ? UET_F_AR : 0) | (h->syn ? UET_F_SYN : 0)),
		.clear = below(h->clear, h->psn),
		.psn = be32_of(h->psn),
		.spdcid = be16_of(h->spdcid),
		.dpdcid = dest(h),
	};

	memcpy(to, &b, sizeof(b));
	return sizeof(b);
}

static size_t put_ack(void *to, const struct uet_pds_head *h)
{
	const struct uet_ack_state *cc = &h->cc;
	unsigned flags = (h->mark ? UET_F_MARK : 0) | (h->probe ? UET_F_P : 0) |
			 (unsigned)h->ask << 1;
	struct uet_ack_cc_bytes b = {
		.ack = {.prologue = prologue(h, h->next, flags),
			.ack = be16_of(h->probe ? h->opaque
						: (uint16_t)(h->psn - h->cack)),
			.cack = be32_of(h->cack),
			.spdcid = be16_of(h->spdcid),
			.dpdcid = be16_of(h->dpdcid)},
		.cc = cc->has_arrived ? UET_CC_F_ARRIVED : 0,
		.mpr = h->mpr,
		.sack = be16_of((uint16_t)(h->sack_base - h->cack)),
		.bits = be64_of(h->sack_bits),
		.state = be64_of((uint64_t)cc->service << 48 |
				 (uint64_t)cc->restore << 47 |
				 (uint64_t)(cc->pend & 0x7f) << 40 |
				 (uint64_t)(cc->received & MASK24) << 16 |
				 (cc->has_arrived ? cc->arrived : cc->ooo)),
	};
	size_t len = h->type == UET_ACK ? sizeof(b.ack) : sizeof(b);

	memcpy(to, &b, len);
	return len;
}

static size_t put_nack(void *to, const struct uet_pds_head *h)
{
	struct uet_nack_bytes b = {
		.prologue = prologue(h, 0, h->mark ? UET_F_MARK : 0),
		.code = h->code,
		.psn = be32_of(h->psn),
		.spdcid = be16_of(h->spdcid),
		.dpdcid = be16_of(h->dpdcid),
		.payload = be32_of(h->payload),
	};

	memcpy(to, &b, sizeof(b));
	return sizeof(b);
}

static size_t put_cp(void *to, const struct uet_pds_head *h)
{
	unsigned flags = (h->rod ? UET_F_ROD : 0) | (h->ar ? UET_F_AR : 0) |
			 (h->syn ? UET_F_SYN : 0);
	struct uet_cp_bytes b = {
		.prologue = prologue(h, h->ctl, flags),
		.opaque = be16_of(h->opaque),
		.psn = be32_of(h->psn),
		.spdcid = be16_of(h->spdcid),
		.dpdcid = dest(h),
		.payload = be32_of(h->payload),
	};

	memcpy(to, &b, sizeof(b));
	return sizeof(b);
}

size_t uet_pds_put(void *to, const struct uet_pds_head *h)
{
	switch (h->type) {
	case UET_ACK:
	case UET_ACK_CC:
		return put_ack(to, h);
	case UET_NACK:
		return put_nack(to, h);
	case UET_CP:
		return put_cp(to, h);
	default:
		return put_req(to, h);
	}
}

static void put_extension(uint8_t *at, const struct uet_ses_req *r, size_t len)
{
	struct uet_rndv_bytes rndv = {
		.eager = be32_of(r->rndv.eager),
		.where = be32_of((uint32_t)r->rndv.generation << 24 |
				 (r->rndv.pid & MASK12) << 12 | (r->rndv.index & MASK12)),
		.offset = be64_of(r->rndv.offset),
		.key = be64_of(r->rndv.key),
	};
	struct uet_swap_bytes swap = {.amo = {.op = r->amo.op,
					      .type = r->amo.type,
					      .semantics = r->amo.semantics}};

	memcpy(swap.compare, r->amo.compare, sizeof(swap.compare));
	memcpy(swap.swap, r->amo.swap, sizeof(swap.swap));
	if (r->op == UET_OP_RNDV_SEND || r->op == UET_OP_RNDV_TSEND)
		memcpy(at, &rndv, len);
	else
		memcpy(at, &swap, len);
}

size_t uet_req_put(void *to, const struct uet_ses_req *r)
{
	size_t len = uet_req_size(r->op, r->amo.op);
	struct uet_std_bytes b = {
		.op = r->op,
		.flags = (uint8_t)((r->dc ? UET_STD_DC : 0) | (r->ie ? UET_STD_IE : 0) |
				   (r->rel ? UET_STD_REL : 0) | (r->hd ? UET_STD_HD : 0) |
				   (r->eom ? UET_STD_EOM : 0) |
				   (r->som ? UET_STD_SOM : 0)),
		.message = be16_of(r->message),
		.job = be32_of((uint32_t)r->generation << 24 | (r->job & MASK24)),
		.pid = be16_of(r->pid & MASK12),
		.index = be16_of(r->index & MASK12),
		.offset = be64_of(r->offset),
		.initiator = be32_of(r->initiator),
		.match = be64_of(r->match),
		.data = be64_of(r->som ? r->data
				       : (uint64_t)(r->part & LEN14) << 32 | r->at),
		.length = be32_of(r->length),
	};

	memcpy(to, &b, sizeof(b));
	if (len > sizeof(b))
		put_extension((uint8_t *)to + sizeof(b), r, len - sizeof(b));
	return len;
}

static size_t put_resp(void *to, uint8_t op, struct be32 job,
		       const struct uet_ses_resp *r)
{
	struct uet_resp_bytes b = {.op = op,
				   .rc = r->rc,
				   .message = be16_of(r->message),
				   .job = job,
				   .modified = be32_of(r->modified)};

	memcpy(to, &b, sizeof(b));
	return sizeof(b);
}

static size_t put_resp_data(void *to, uint8_t op, struct be32 job,
			    const struct uet_ses_resp *r)
{
	struct uet_resp_data_bytes b = {.op = op,
					.rc = r->rc,
					.message = be16_of(r->message),
					.job = job,
					.read = be16_of(r->read),
					.payload = be16_of(r->part & LEN14),
					.modified = be32_of(r->modified),
					.offset = be32_of(r->at)};

	memcpy(to, &b, sizeof(b));
	return sizeof(b);
}

static size_t put_resp_small(void *to, uint8_t op, struct be32 job,
			     const struct uet_ses_resp *r)
{
	struct uet_resp_small_bytes b = {.op = op,
					 .rc = r->rc,
					 .payload = be16_of(r->part & LEN14),
					 .job = job,
					 .psn = be32_of(r->psn)};

	memcpy(to, &b, sizeof(b));
	return sizeof(b);
}

size_t uet_resp_put(void *to, uint8_t next, const struct uet_ses_resp *r)
{
	uint8_t op = (uint8_t)(r->list << 6 | r->op);
	struct be32 job =
		be32_of((next == UET_NEXT_RESP ? (uint32_t)r->generation << 24 : 0) |
			(r->job & MASK24));

	switch (next) {
	case UET_NEXT_RESP:
		return put_resp(to, op, job, r);
	case UET_NEXT_RESP_DATA:
		return put_resp_data(to, op, job, r);
	default:
		return put_resp_small(to, op, job, r);
	}
}

struct nack_row {
	const char *name;
	enum uet_nack_class class;
};

static const struct nack_row nacks[] = {
	[UET_NACK_TRIMMED] = {"trimmed", UET_NACK_AGAIN_NOW},
	[UET_NACK_TRIMMED_LASTHOP] = {"trimmed at the last hop", UET_NACK_AGAIN_NOW},
	[UET_NACK_NO_PDC] = {"no context free", UET_NACK_AGAIN_LATER},
	[UET_NACK_NO_CCC] = {"no congestion context free", UET_NACK_AGAIN_LATER},
	[UET_NACK_NO_BITMAP] = {"no bitmap free", UET_NACK_AGAIN_LATER},
	[UET_NACK_NO_BUFFER] = {"no packet buffer", UET_NACK_AGAIN_LATER},
	[UET_NACK_NO_GTD] = {"no room for a response", UET_NACK_AGAIN_LATER},
	[UET_NACK_NO_MESSAGE] = {"no message state", UET_NACK_AGAIN_LATER},
	[UET_NACK_NO_RESOURCE] = {"no resource", UET_NACK_AGAIN_LATER},
	[UET_NACK_OUT_OF_WINDOW] = {"out of window", UET_NACK_AGAIN_LATER},
	[UET_NACK_ROD_OOO] = {"out of order", UET_NACK_AGAIN_NOW},
	[UET_NACK_INV_DPDCID] = {"no such context", UET_NACK_FATAL},
	[UET_NACK_MISMATCH] = {"header of another context", UET_NACK_FATAL},
	[UET_NACK_CLOSING] = {"closing", UET_NACK_FATAL},
	[UET_NACK_CLOSING_IN_ERR] = {"closing in error", UET_NACK_FATAL_LOST},
	[UET_NACK_NOT_RECEIVED] = {"not received", UET_NACK_AGAIN_NOW},
	[UET_NACK_GTD_GONE] = {"response is gone", UET_NACK_FATAL_LOST},
	[UET_NACK_WITH_DATA] = {"ask again for the data", UET_NACK_AGAIN_NOW},
	[UET_NACK_INVALID_SYN] = {"invalid syn", UET_NACK_FATAL},
	[UET_NACK_MODE_MISMATCH] = {"context of another mode", UET_NACK_FATAL},
	[UET_NACK_NEW_START] = {"another first number wanted", UET_NACK_FATAL},
	[UET_NACK_PROCESSING] = {"received, in work", UET_NACK_AGAIN_LATER},
	[UET_NACK_UNEXPECTED] = {"unexpected event", UET_NACK_FATAL},
	[UET_NACK_INFERRED] = {"receiver infers loss", UET_NACK_AGAIN_NOW},
};

enum uet_nack_class uet_nack_class(uint8_t code)
{
	return code < sizeof(nacks) / sizeof(nacks[0]) && nacks[code].name
		       ? nacks[code].class
		       : UET_NACK_UNKNOWN;
}

const char *uet_nack_name(uint8_t code)
{
	return uet_nack_class(code) == UET_NACK_UNKNOWN ? "?" : nacks[code].name;
}

const char *uet_type_name(uint8_t type)
{
	static const char *const names[] = {
		[UET_RUD_REQ] = "rud-request",
		[UET_ROD_REQ] = "rod-request",
		[UET_ACK] = "ack",
		[UET_ACK_CC] = "ack-cc",
		[UET_NACK] = "nack",
		[UET_CP] = "control",
	};

	return type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "?";
}

const char *uet_ctl_name(uint8_t ctl)
{
	static const char *const names[UET_CTL_KINDS] = {
		[UET_CTL_NOOP] = "noop",       [UET_CTL_ACK_REQ] = "ack-request",
		[UET_CTL_CLEAR_CMD] = "clear", [UET_CTL_CLEAR_REQ] = "clear-request",
		[UET_CTL_CLOSE_CMD] = "close", [UET_CTL_CLOSE_REQ] = "close-request",
		[UET_CTL_PROBE] = "probe",
	};

	return ctl < UET_CTL_KINDS ? names[ctl] : "?";
}
