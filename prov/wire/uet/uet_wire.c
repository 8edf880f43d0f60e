/* SPDX-License-Identifier: BSD-2-Clause */
/* The validator, the encoders, and the tables of names. */
#include "config.h"

#include "prov/wire/uet/uet_wire.h"

#include <errno.h>
#include <string.h>

#define LEN14	 0x3fffu
#define MASK12	 0xfffu
#define MASK24	 0xffffffu
#define OP_MASK	 0x3fu
#define VER_MASK 0xc0u

/* Which lengths must fit each other. */
enum length_rule {
	RULE_NONE,  /* not spoken */
	RULE_EMPTY, /* one packet, nothing in it */
	RULE_DATA,  /* the packets' payloads are the message */
	RULE_READ,  /* each asks for a part of it */
	RULE_AMO,   /* one packet: operands */
	RULE_RNDV,  /* the packets' payloads are its first `eager` bytes */
	RULE_ERROR  /* the end of a message that was begun */
};

struct op_row {
	const char *name;
	enum length_rule rule;
};

static const struct op_row ops[] = {
	[UET_OP_NOOP] = {"noop", RULE_EMPTY},
	[UET_OP_WRITE] = {"write", RULE_DATA},
	[UET_OP_READ] = {"read", RULE_READ},
	[UET_OP_ATOMIC] = {"atomic", RULE_AMO},
	[UET_OP_FETCH_ATOMIC] = {"fetch-atomic", RULE_AMO},
	[UET_OP_SEND] = {"send", RULE_DATA},
	[UET_OP_RNDV_SEND] = {"rendezvous-send", RULE_RNDV},
	[UET_OP_TAGGED_SEND] = {"tagged-send", RULE_DATA},
	[UET_OP_RNDV_TSEND] = {"rendezvous-tagged-send", RULE_RNDV},
	[UET_OP_MSG_ERROR] = {"message-error", RULE_ERROR},
};

#define OPS (sizeof(ops) / sizeof(ops[0]))

static enum length_rule rule_of(uint8_t op)
{
	return op < OPS ? ops[op].rule : RULE_NONE;
}

static bool is_swap(uint8_t amo)
{
	return amo >= UET_AMO_CSWAP && amo <= UET_AMO_MSWAP;
}

size_t uet_req_size(uint8_t op, uint8_t amo)
{
	size_t len = sizeof(struct uet_std_bytes);

	if (rule_of(op) == RULE_RNDV)
		return len + sizeof(struct uet_rndv_bytes);
	if (rule_of(op) != RULE_AMO)
		return len;
	return len + (is_swap(amo) ? sizeof(struct uet_swap_bytes)
				   : sizeof(struct uet_amo_bytes));
}

/* A piece of a message of `whole` bytes: nothing beyond it, the last one ends it, and
 * one that isn't the last leaves something. */
static bool piece_fits(const struct uet_ses_req *r, uint32_t whole)
{
	uint64_t end = (uint64_t)r->at + r->part;

	if (r->som && r->eom)
		return r->part == whole;
	if (r->part == 0 || (!r->som && r->at == 0))
		return false;
	return r->eom ? end == whole : end < whole;
}

static bool amo_fits(const struct uet_ses_req *r)
{
	bool bare = is_swap(r->amo.op) || r->amo.op == UET_AMO_READ;

	if (!r->som || !r->eom || r->length == 0)
		return false;
	return bare ? r->part == 0 && r->length <= sizeof(r->amo.swap)
		    : r->part == r->length;
}

/* said: what the header says of the payload's length, where it does; here: what is
 * there. */
static bool lengths_fit(struct uet_ses_req *r, uint32_t said, uint32_t here, uint32_t mtu)
{
	enum length_rule rule = rule_of(r->op);

	r->part = here;
	if (rule == RULE_READ) {
		if (here != 0)
			return false;
		r->part = !r->som ? said : r->eom ? r->length : mtu;
	} else if (!r->som && said != here) {
		return false;
	}
	if (r->part > mtu || r->offset + r->length < r->offset)
		return false;
	switch (rule) {
	case RULE_EMPTY:
		return r->som && r->eom && here == 0 && r->length == 0;
	case RULE_DATA:
	case RULE_READ:
		return piece_fits(r, r->length);
	case RULE_RNDV:
		return r->rndv.eager <= r->length && piece_fits(r, r->rndv.eager);
	case RULE_AMO:
		return amo_fits(r);
	case RULE_ERROR:
		return r->eom && here == 0 && r->at <= r->length;
	default:
		return false;
	}
}

static void get_rndv(struct uet_ses_req *r, const uint8_t *at)
{
	struct uet_rndv_bytes b;
	uint32_t where;

	memcpy(&b, at, sizeof(b));
	where = be32_get(b.where);
	r->rndv.eager = be32_get(b.eager);
	r->rndv.generation = (uint8_t)(where >> 24);
	r->rndv.pid = where >> 12 & MASK12;
	r->rndv.index = where & MASK12;
	r->rndv.offset = be64_get(b.offset);
	r->rndv.key = be64_get(b.key);
}

/* 0; the length of the extension is known and is there. */
static int get_extension(struct uet_ses_req *r, const uint8_t *at, size_t len)
{
	enum length_rule rule = rule_of(r->op);
	struct uet_swap_bytes b;

	if (rule == RULE_RNDV) {
		if (len < sizeof(struct uet_rndv_bytes))
			return -EINVAL;
		get_rndv(r, at);
		return 0;
	}
	if (rule != RULE_AMO)
		return 0;
	if (len < sizeof(b.amo))
		return -EINVAL;
	memcpy(&b.amo, at, sizeof(b.amo));
	r->amo.op = b.amo.op;
	r->amo.type = b.amo.type;
	r->amo.semantics = b.amo.semantics;
	if (r->amo.op > UET_AMO_INVAL)
		return -EOPNOTSUPP;
	if (!is_swap(r->amo.op))
		return 0;
	if (len < sizeof(b))
		return -EINVAL;
	memcpy(&b, at, sizeof(b));
	memcpy(r->amo.compare, b.compare, sizeof(b.compare));
	memcpy(r->amo.swap, b.swap, sizeof(b.swap));
	return 0;
}

static void get_std(struct uet_ses_req *r, const struct uet_std_bytes *b)
{
	uint32_t job = be32_get(b->job);

	r->op = b->op & OP_MASK;
	r->dc = b->flags & UET_STD_DC;
	r->ie = b->flags & UET_STD_IE;
	r->rel = b->flags & UET_STD_REL;
	r->hd = b->flags & UET_STD_HD;
	r->eom = b->flags & UET_STD_EOM;
	r->som = b->flags & UET_STD_SOM;
	r->message = be16_get(b->message);
	r->generation = (uint8_t)(job >> 24);
	r->job = job & MASK24;
	r->pid = be16_get(b->pid) & MASK12;
	r->index = be16_get(b->index) & MASK12;
	r->offset = be64_get(b->offset);
	r->initiator = be32_get(b->initiator);
	r->match = be64_get(b->match);
	r->length = be32_get(b->length);
}

static int parse_std(const uint8_t *at, size_t len, uint32_t mtu, struct uet_pkt *pkt)
{
	struct uet_ses_req *r = &pkt->req;
	struct uet_std_bytes b;
	uint64_t data;
	uint32_t said = 0;
	size_t head;
	int rc;

	if (len < sizeof(b))
		return -EINVAL;
	memcpy(&b, at, sizeof(b));
	if (b.flags & VER_MASK)
		return -EPROTO;
	memset(r, 0, sizeof(*r));
	get_std(r, &b);
	if (rule_of(r->op) == RULE_NONE)
		return -EOPNOTSUPP;
	rc = get_extension(r, at + sizeof(b), len - sizeof(b));
	if (rc)
		return rc;
	data = be64_get(b.data);
	if (r->som) {
		r->data = data;
	} else {
		said = data >> 32 & LEN14;
		r->at = (uint32_t)data;
	}
	head = uet_req_size(r->op, r->amo.op);
	if (r->message == 0 || r->length > UET_MESSAGE_MAX || len - head > mtu ||
	    !lengths_fit(r, said, (uint32_t)(len - head), mtu))
		return -EINVAL;
	pkt->ses_len = (uint32_t)head;
	return 0;
}

static bool resp_fits(const struct uet_ses_resp *r, bool data)
{
	if (r->list > 1 || r->op > UET_RESP_NONE)
		return false;
	if (data)
		return r->op == UET_RESP_WITH_DATA;
	if (r->op != UET_RESP_DEFAULT)
		return r->op != UET_RESP_WITH_DATA;
	return r->list == 0 && r->modified == 0 && r->rc <= UET_RC_OK;
}

static int parse_resp(const uint8_t *at, size_t len, struct uet_pkt *pkt)
{
	struct uet_ses_resp *r = &pkt->resp;
	struct uet_resp_bytes b;

	if (len != sizeof(b))
		return -EINVAL;
	memcpy(&b, at, sizeof(b));
	r->message = be16_get(b.message);
	r->generation = (uint8_t)(be32_get(b.job) >> 24);
	r->job = be32_get(b.job) & MASK24;
	r->modified = be32_get(b.modified);
	pkt->ses_len = sizeof(b);
	return resp_fits(r, false) ? 0 : -EINVAL;
}

static int parse_resp_data(const uint8_t *at, size_t len, uint32_t mtu,
			   struct uet_pkt *pkt)
{
	struct uet_ses_resp *r = &pkt->resp;
	struct uet_resp_data_bytes b;

	if (len < sizeof(b))
		return -EINVAL;
	memcpy(&b, at, sizeof(b));
	r->message = be16_get(b.message);
	r->job = be32_get(b.job) & MASK24;
	r->read = be16_get(b.read);
	r->part = be16_get(b.payload) & LEN14;
	r->modified = be32_get(b.modified);
	r->at = be32_get(b.offset);
	pkt->ses_len = sizeof(b);
	if (!resp_fits(r, true) || r->part > mtu || len - sizeof(b) != r->part)
		return -EINVAL;
	if (r->rc > UET_RC_OK)
		return r->part == 0 ? 0 : -EINVAL;
	return (uint64_t)r->at + r->part <= r->modified ? 0 : -EINVAL;
}

static int parse_resp_small(const uint8_t *at, size_t len, uint32_t mtu,
			    struct uet_pkt *pkt)
{
	struct uet_ses_resp *r = &pkt->resp;
	struct uet_resp_small_bytes b;

	if (len < sizeof(b))
		return -EINVAL;
	memcpy(&b, at, sizeof(b));
	r->part = be16_get(b.payload) & LEN14;
	r->job = be32_get(b.job) & MASK24;
	r->psn = be32_get(b.psn);
	pkt->ses_len = sizeof(b);
	if (!resp_fits(r, true) || r->part > mtu || len - sizeof(b) != r->part)
		return -EINVAL;
	return r->rc <= UET_RC_OK || r->part == 0 ? 0 : -EINVAL;
}

/* A response begins alike in its three forms. */
static int parse_response(const uint8_t *at, size_t len, uint32_t mtu,
			  struct uet_pkt *pkt)
{
	struct uet_ses_resp *r = &pkt->resp;

	if (len < 2)
		return -EINVAL;
	if (at[1] & VER_MASK)
		return -EPROTO;
	memset(r, 0, sizeof(*r));
	r->list = at[0] >> 6;
	r->op = at[0] & OP_MASK;
	r->rc = at[1] & OP_MASK;
	switch (pkt->pds.next) {
	case UET_NEXT_RESP:
		return parse_resp(at, len, pkt);
	case UET_NEXT_RESP_DATA:
		return parse_resp_data(at, len, mtu, pkt);
	default:
		return parse_resp_small(at, len, mtu, pkt);
	}
}

static int parse_next(const uint8_t *at, size_t len, uint32_t mtu, struct uet_pkt *pkt)
{
	bool ack = pkt->pds.type == UET_ACK || pkt->pds.type == UET_ACK_CC;
	int rc;

	switch (pkt->pds.next) {
	case UET_NEXT_NONE:
		return ack && len == 0 ? 0 : -EINVAL;
	case UET_NEXT_REQ_STD:
		rc = ack ? -EINVAL : parse_std(at, len, mtu, pkt);
		break;
	case UET_NEXT_RESP:
	case UET_NEXT_RESP_SMALL:
		rc = ack ? parse_response(at, len, mtu, pkt) : -EINVAL;
		break;
	case UET_NEXT_RESP_DATA:
		rc = parse_response(at, len, mtu, pkt);
		break;
	default:
		return pkt->pds.next <= UET_NEXT_RESP_SMALL ? -EOPNOTSUPP : -EINVAL;
	}
	if (rc)
		return rc;
	pkt->ses = at;
	pkt->payload = at + pkt->ses_len;
	pkt->payload_len = (uint32_t)len - pkt->ses_len;
	return 0;
}

/* Requests and control packets name the peer's context, or say how far from the first
 * they are. */
static bool get_dest(struct uet_pds_head *h, uint16_t dest)
{
	if (h->syn)
		h->syn_offset = dest & MASK12;
	else
		h->dpdcid = dest;
	return h->spdcid != 0 && (h->syn || h->dpdcid != 0);
}

static int parse_req(const uint8_t *at, size_t len, uint32_t mtu, struct uet_pkt *pkt)
{
	struct uet_pds_head *h = &pkt->pds;
	struct uet_req_bytes b;
	int16_t clear;

	if (len < sizeof(b))
		return -EINVAL;
	memcpy(&b, at, sizeof(b));
	clear = (int16_t)be16_get(b.clear);
	h->rod = h->type == UET_ROD_REQ;
	h->psn = be32_get(b.psn);
	h->clear = h->psn + (uint32_t)(int32_t)clear;
	h->spdcid = be16_get(b.spdcid);
	if (clear > 0 || !get_dest(h, be16_get(b.dpdcid)))
		return -EINVAL;
	return parse_next(at + sizeof(b), len - sizeof(b), mtu, pkt);
}

static int parse_state(const uint8_t *at, struct uet_pds_head *h)
{
	struct uet_ack_cc_bytes b;
	uint64_t state;

	memcpy(&b, at, sizeof(b));
	state = be64_get(b.state);
	h->mpr = b.mpr;
	h->sack_base = h->cack + (uint32_t)(int32_t)(int16_t)be16_get(b.sack);
	h->sack_bits = be64_get(b.bits);
	h->cc.service = (uint16_t)(state >> 48);
	h->cc.restore = state >> 47 & 1;
	h->cc.pend = state >> 40 & 0x7f;
	h->cc.received = state >> 16 & MASK24;
	h->cc.has_arrived = b.cc & UET_CC_F_ARRIVED;
	if (h->cc.has_arrived)
		h->cc.arrived = (uint16_t)state;
	else
		h->cc.ooo = (uint16_t)state;
	return b.cc >> 4 == 0 ? 0 : -EOPNOTSUPP;
}

static int parse_ack(const uint8_t *at, size_t len, uint32_t mtu, struct uet_pkt *pkt)
{
	struct uet_pds_head *h = &pkt->pds;
	size_t head = h->type == UET_ACK ? sizeof(struct uet_ack_bytes)
					 : sizeof(struct uet_ack_cc_bytes);
	struct uet_ack_bytes b;
	uint16_t ack;

	if (len < head)
		return -EINVAL;
	memcpy(&b, at, sizeof(b));
	ack = be16_get(b.ack);
	h->cack = be32_get(b.cack);
	h->spdcid = be16_get(b.spdcid);
	h->dpdcid = be16_get(b.dpdcid);
	if (h->probe) {
		h->opaque = ack;
		h->psn = h->cack;
	} else {
		h->psn = h->cack + (uint32_t)(int32_t)(int16_t)ack;
	}
	if (h->ask > UET_ASK_CLOSE || h->spdcid == 0 || h->dpdcid == 0)
		return -EINVAL;
	if (h->type == UET_ACK_CC && parse_state(at, h))
		return -EOPNOTSUPP;
	return parse_next(at + head, len - head, mtu, pkt);
}

static int parse_nack(const uint8_t *at, size_t len, bool nt, struct uet_pds_head *h)
{
	struct uet_nack_bytes b;

	if (len != sizeof(b))
		return -EINVAL;
	if (nt)
		return -EOPNOTSUPP;
	memcpy(&b, at, sizeof(b));
	h->code = b.code;
	h->psn = be32_get(b.psn);
	h->spdcid = be16_get(b.spdcid);
	h->dpdcid = be16_get(b.dpdcid);
	h->payload = be32_get(b.payload);
	return h->code != 0 && h->dpdcid != 0 ? 0 : -EINVAL;
}

static int parse_cp(const uint8_t *at, size_t len, struct uet_pds_head *h)
{
	struct uet_cp_bytes b;

	if (len != sizeof(b))
		return -EINVAL;
	if (h->ctl >= UET_CTL_KINDS)
		return -EOPNOTSUPP;
	memcpy(&b, at, sizeof(b));
	h->opaque = be16_get(b.opaque);
	h->psn = be32_get(b.psn);
	h->spdcid = be16_get(b.spdcid);
	h->payload = be32_get(b.payload);
	return get_dest(h, be16_get(b.dpdcid)) ? 0 : -EINVAL;
}

int uet_pkt_parse(const void *bytes, size_t len, uint32_t mtu, struct uet_pkt *pkt)
{
	const uint8_t *at = bytes;
	struct uet_pds_head *h = &pkt->pds;
	uint16_t prologue;

	if (len < 2 || mtu > UET_PAYLOAD_MAX)
		return -EINVAL;
	prologue = (uint16_t)(at[0] << 8 | at[1]);
	memset(h, 0, sizeof(*h));
	pkt->ses = pkt->payload = NULL;
	pkt->ses_len = pkt->payload_len = 0;
	h->type = (uint8_t)(prologue >> 11);
	h->retx = prologue & UET_F_RETX;
	switch (h->type) {
	case UET_RUD_REQ:
	case UET_ROD_REQ:
		h->next = prologue >> 7 & 0xf;
		h->ar = prologue & UET_F_AR;
		h->syn = prologue & UET_F_SYN;
		return parse_req(at, len, mtu, pkt);
	case UET_ACK:
	case UET_ACK_CC:
		h->next = prologue >> 7 & 0xf;
		h->mark = prologue & UET_F_MARK;
		h->probe = prologue & UET_F_P;
		h->ask = (prologue & UET_F_ASK) >> 1;
		return parse_ack(at, len, mtu, pkt);
	case UET_NACK:
		h->mark = prologue & UET_F_MARK;
		return parse_nack(at, len, prologue & UET_F_NT, h);
	case UET_CP:
		h->ctl = prologue >> 7 & 0xf;
		h->rod = prologue & UET_F_ROD;
		h->ar = prologue & UET_F_AR;
		h->syn = prologue & UET_F_SYN;
		return parse_cp(at, len, h);
	case 0:
		return -EINVAL;
	default:
		return h->type <= 14 ? -EOPNOTSUPP : -EINVAL;
	}
}

const char *uet_op_name(uint8_t op)
{
	return rule_of(op) == RULE_NONE ? "?" : ops[op].name;
}
