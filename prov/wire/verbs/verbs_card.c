/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a card, and the one validator of them. */
#include "config.h"

#include "prov/wire/verbs/verbs_card.h"

#include <assert.h>
#include <string.h>

#include "util/le.h"

#define CARD_MAGIC 0x63765457u /* "WTvc" */

#define PACKET_MIN  4096u
#define PACKET_MAX  (1u << 20)
#define COUNT_MAX   65536u
#define RECORDS_MAX 4096u
#define TABLE_MAX   (UINT64_C(1) << 40)
#define BITS_24	    0xffffffu
#define GEN_MAX	    63u

/* ---- bytes --------------------------------------------------------------------------
 *
 * A card: head, FABRIC_DISTANCES rows, its rails, its queue pairs. All zero fields are
 * zero, and text is filled up with zero bytes: of one card there is one spelling.
 */

struct card_door {
	uint8_t family; /* 4 or 6 */
	uint8_t zero;
	uint8_t port[2]; /* as in a socket address */
	struct le16 context;
	uint8_t zero2[2];
	uint8_t host[16]; /* IPv4: the first four */
};

struct card_place {
	char host[FABRIC_HOST_MAX + 1];
	char building[FABRIC_PART_MAX + 1];
	char zone[FABRIC_PART_MAX + 1];
	char rack[FABRIC_PART_MAX + 1];
};

struct card_head {
	struct le32 magic;
	struct le16 version;
	struct le16 len; /* of the whole card */
	struct le32 features;
	uint8_t rails;
	uint8_t qps;
	uint8_t rows;
	uint8_t zero;
	struct card_door door;
	struct le64 incarnation;
	struct le64 session;
	struct le64 heard;
	struct le64 table_addr;
	struct le64 table_len;
	struct le32 round;
	struct le32 generation;
	struct le32 packet;
	struct le32 credits;
	struct le32 receives;
	struct le32 records;
	struct card_place place;
};

struct card_row {
	struct le16 lanes;
	uint8_t zero[2];
	struct le32 window;
	struct le32 segments;
};

struct card_rail {
	uint8_t kind;
	uint8_t number;
	uint8_t mtu;
	uint8_t rd_atomic;
	struct le16 lid;
	struct le16 pkey;
	uint8_t gid[16];
	struct le32 table_key;
};

struct card_qp {
	struct le16 lane;
	uint8_t rail;
	uint8_t zero;
	struct le32 incarnation;
	struct le32 qpn;
	struct le32 psn;
};

static_assert(sizeof(struct card_door) == 24, "door");
static_assert(sizeof(struct card_place) == 160, "place");
static_assert(sizeof(struct card_head) == 264, "head");
static_assert(sizeof(struct card_row) == 12, "row");
static_assert(sizeof(struct card_rail) == 28, "rail");
static_assert(sizeof(struct card_qp) == 16, "queue pair");
static_assert(VERBS_CARD_MAX == sizeof(struct card_head) +
					FABRIC_DISTANCES * sizeof(struct card_row) +
					VERBS_CARD_RAILS * sizeof(struct card_rail) +
					VERBS_CARD_QPS * sizeof(struct card_qp),
	      "longest card");

static size_t card_len(size_t rails, size_t qps)
{
	return sizeof(struct card_head) + FABRIC_DISTANCES * sizeof(struct card_row) +
	       rails * sizeof(struct card_rail) + qps * sizeof(struct card_qp);
}

/* ---- reading ------------------------------------------------------------------------
 */

static bool all_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

static bool within(uint64_t v, uint64_t min, uint64_t max)
{
	return v >= min && v <= max;
}

static bool door_read(const struct card_door *in, struct wire_addr *out)
{
	struct wire_addr a;

	memset(&a, 0, sizeof(a));
	if (in->family == 4) {
		if (!all_zero(in->host + 4, sizeof(in->host) - 4))
			return false;
		a.in.sin_family = AF_INET;
		memcpy(&a.in.sin_port, in->port, 2);
		memcpy(&a.in.sin_addr, in->host, 4);
	} else if (in->family == 6) {
		a.in6.sin6_family = AF_INET6;
		memcpy(&a.in6.sin6_port, in->port, 2);
		memcpy(&a.in6.sin6_addr, in->host, 16);
	} else {
		return false;
	}
	if (in->zero || in->zero2[0] || in->zero2[1] ||
	    !wire_addr_from_sockaddr(out, &a.sa, sizeof(a)))
		return false;
	out->context = le16_get(in->context);
	return true;
}

/* A name, or nothing, and zero bytes up to the end of its field. */
static bool name_read(const char *in, char *out, size_t size)
{
	size_t len = strnlen(in, size);

	if (len == size || !all_zero((const uint8_t *)in + len, size - len) ||
	    (len && !fabric_name_valid(in, len, size - 1)))
		return false;
	memcpy(out, in, size);
	return true;
}

static bool place_read(const struct card_place *in, struct fabric_place *out)
{
	return name_read(in->host, out->host, sizeof(in->host)) &&
	       name_read(in->building, out->building, sizeof(in->building)) &&
	       name_read(in->zone, out->zone, sizeof(in->zone)) &&
	       name_read(in->rack, out->rack, sizeof(in->rack)) &&
	       (out->building[0] || !out->zone[0]) && (out->zone[0] || !out->rack[0]);
}

static const char *head_read(const struct card_head *h, struct verbs_card *card)
{
	if (!door_read(&h->door, &card->door))
		return "its door's address is none";
	if (!place_read(&h->place, &card->place))
		return "its place is no building/zone/rack of a host";
	card->features = le32_get(h->features);
	card->rails = h->rails;
	card->qps = h->qps;
	card->incarnation = le64_get(h->incarnation);
	card->session = le64_get(h->session);
	card->heard = le64_get(h->heard);
	card->table_addr = le64_get(h->table_addr);
	card->table_len = le64_get(h->table_len);
	card->round = le32_get(h->round);
	card->generation = le32_get(h->generation);
	card->packet = le32_get(h->packet);
	card->credits = le32_get(h->credits);
	card->receives = le32_get(h->receives);
	card->records = le32_get(h->records);
	return NULL;
}

static void row_read(const struct card_row *in, struct verbs_card_row *out)
{
	out->lanes = le16_get(in->lanes);
	out->window = le32_get(in->window);
	out->segments = le32_get(in->segments);
}

static void rail_read(const struct card_rail *in, struct verbs_card_rail *out)
{
	out->kind = in->kind;
	out->number = in->number;
	out->mtu = in->mtu;
	out->rd_atomic = in->rd_atomic;
	out->lid = le16_get(in->lid);
	out->pkey = le16_get(in->pkey);
	memcpy(out->gid, in->gid, sizeof(out->gid));
	out->table_key = le32_get(in->table_key);
}

static void qp_read(const struct card_qp *in, struct verbs_card_qp *out)
{
	out->lane = le16_get(in->lane);
	out->rail = in->rail;
	out->incarnation = le32_get(in->incarnation);
	out->qpn = le32_get(in->qpn);
	out->psn = le32_get(in->psn);
}

/* ---- what a card may say ------------------------------------------------------------
 */

static const char *numbers_check(const struct verbs_card *c)
{
	if (!c->incarnation || !c->session)
		return "its incarnation or session is 0";
	if (c->generation > GEN_MAX)
		return "its generation has more than 6 bits";
	if (!within(c->packet, PACKET_MIN, PACKET_MAX))
		return "its packets are shorter than 4 KiB or longer than 1 MiB";
	if (!within(c->credits, 1, COUNT_MAX) || !within(c->receives, 1, COUNT_MAX))
		return "its receives are none or more than 65536";
	if (!within(c->records, 1, RECORDS_MAX))
		return "its records are none or more than 4096";
	if (c->table_len > TABLE_MAX || c->table_addr + c->table_len < c->table_addr)
		return "its table doesn't fit into memory";
	return NULL;
}

static const char *rows_check(const struct verbs_card *c)
{
	for (size_t i = 0; i < FABRIC_DISTANCES; i++) {
		const struct verbs_card_row *r = &c->row[i];

		if (!within(r->lanes, 1, VERBS_CARD_LANES))
			return "its lanes are none or more than 64";
		if (!dqplb_window_valid(r->window))
			return "its window is no power of two from 64 to 16384";
		if (!within(r->segments, 1, r->window))
			return "its segments of a lane are none or more than its window";
	}
	return NULL;
}

static bool gid_fits(const struct verbs_card_rail *r)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	if (all_zero(r->gid, sizeof(r->gid)))
		return r->kind == VERBS_RAIL_IB && r->lid != 0;
	if (r->kind == VERBS_RAIL_ROCE4)
		return memcmp(r->gid, mapped, sizeof(mapped)) == 0;
	return r->kind != VERBS_RAIL_ROCE6 || memcmp(r->gid, mapped, sizeof(mapped)) != 0;
}

bool verbs_card_rail_move(struct verbs_card_rail *rail, uint16_t lid,
			  const uint8_t gid[16])
{
	struct verbs_card_rail now = *rail;

	now.lid = lid;
	memcpy(now.gid, gid, sizeof(now.gid));
	if (!gid_fits(&now) || (now.kind != VERBS_RAIL_IB && lid))
		return false;
	*rail = now;
	return true;
}

static const char *rails_check(const struct verbs_card *c)
{
	uint32_t seen = 0;

	if (!within(c->rails, 1, VERBS_CARD_RAILS))
		return "it has no rails or more than 16";
	for (size_t i = 0; i < c->rails; i++) {
		const struct verbs_card_rail *r = &c->rail[i];

		if (!within(r->kind, VERBS_RAIL_IB, VERBS_RAIL_ROCE1))
			return "a rail is of a kind that there isn't";
		if (r->number >= VERBS_CARD_RAILS || (seen & 1u << r->number))
			return "a rail's number is above 15 or another's too";
		if (!within(r->mtu, 1, 5))
			return "a rail's MTU is none";
		if (!r->rd_atomic)
			return "a rail serves no reads";
		if (!gid_fits(r))
			return "a rail's GID is none of its kind";
		if (r->kind != VERBS_RAIL_IB && r->lid)
			return "a rail of Ethernet has a LID";
		seen |= 1u << r->number;
	}
	return NULL;
}

static const char *qps_check(const struct verbs_card *c)
{
	uint64_t seen = 0;
	unsigned controls = 0;

	if (c->qps > VERBS_CARD_QPS)
		return "it has more than 17 queue pairs";
	for (size_t i = 0; i < c->qps; i++) {
		const struct verbs_card_qp *q = &c->qp[i];
		bool control = q->lane == VERBS_LANE_CONTROL;

		if (!control && q->lane >= VERBS_CARD_LANES)
			return "a queue pair's lane is above 63";
		if (!control && (seen & UINT64_C(1) << q->lane))
			return "a lane has two queue pairs";
		if (q->rail >= c->rails)
			return "a queue pair is on a rail that the card doesn't have";
		if (!within(q->qpn, 1, BITS_24) || q->psn > BITS_24)
			return "a queue pair's number is 0 or above 24 bits";
		if (control)
			controls++;
		else
			seen |= UINT64_C(1) << q->lane;
	}
	return controls == 1 ? NULL : "it has no control queue pair, or two";
}

static const char *card_check(const struct verbs_card *c)
{
	const char *why = numbers_check(c);

	if (!why)
		why = rows_check(c);
	if (!why)
		why = rails_check(c);
	if (!why)
		why = qps_check(c);
	return why;
}

/* Fields that mean nothing are zero. */
static bool zeros_read(const struct card_head *h, const uint8_t *rows, const uint8_t *qps)
{
	struct card_row row;
	struct card_qp qp;

	if (h->zero)
		return false;
	for (size_t i = 0; i < FABRIC_DISTANCES; i++) {
		memcpy(&row, rows + i * sizeof(row), sizeof(row));
		if (!all_zero(row.zero, sizeof(row.zero)))
			return false;
	}
	for (size_t i = 0; i < h->qps; i++) {
		memcpy(&qp, qps + i * sizeof(qp), sizeof(qp));
		if (qp.zero)
			return false;
	}
	return true;
}

/* Rows, rails and queue pairs; there are as many bytes as the head says. */
static bool lists_read(const struct card_head *h, const uint8_t *at,
		       struct verbs_card *card)
{
	const uint8_t *rows = at,
		      *rails = rows + FABRIC_DISTANCES * sizeof(struct card_row);
	const uint8_t *qps = rails + h->rails * sizeof(struct card_rail);

	for (size_t i = 0; i < FABRIC_DISTANCES; i++) {
		struct card_row row;

		memcpy(&row, rows + i * sizeof(row), sizeof(row));
		row_read(&row, &card->row[i]);
	}
	for (size_t i = 0; i < h->rails; i++) {
		struct card_rail rail;

		memcpy(&rail, rails + i * sizeof(rail), sizeof(rail));
		rail_read(&rail, &card->rail[i]);
	}
	for (size_t i = 0; i < h->qps; i++) {
		struct card_qp qp;

		memcpy(&qp, qps + i * sizeof(qp), sizeof(qp));
		qp_read(&qp, &card->qp[i]);
	}
	return zeros_read(h, rows, qps);
}

const char *verbs_card_read(const uint8_t *bytes, size_t len, struct verbs_card *card)
{
	struct card_head h;
	const char *why;

	memset(card, 0, sizeof(*card));
	if (len < sizeof(h))
		return "it is shorter than any card";
	memcpy(&h, bytes, sizeof(h));
	if (le32_get(h.magic) != CARD_MAGIC)
		return "it is no card";
	if (le16_get(h.version) != VERBS_CARD_VERSION)
		return "it is a card of another version";
	if (h.rows != FABRIC_DISTANCES || h.rails > VERBS_CARD_RAILS ||
	    h.qps > VERBS_CARD_QPS)
		return "it has too many rails or queue pairs, or other distances";
	if (le16_get(h.len) != len || card_len(h.rails, h.qps) != len)
		return "its length isn't what it says";
	why = head_read(&h, card);
	if (why)
		return why;
	if (!lists_read(&h, bytes + sizeof(h), card))
		return "a field that means nothing isn't 0";
	return card_check(card);
}

/* ---- writing ------------------------------------------------------------------------
 */

static bool door_write(const struct wire_addr *a, struct card_door *out)
{
	struct wire_addr back;

	out->context = le16_of(a->context);
	if (a->sa.sa_family == AF_INET6) {
		out->family = 6;
		memcpy(out->port, &a->in6.sin6_port, 2);
		memcpy(out->host, &a->in6.sin6_addr, 16);
	} else {
		out->family = 4;
		memcpy(out->port, &a->in.sin_port, 2);
		memcpy(out->host, &a->in.sin_addr, 4);
	}
	return door_read(out, &back);
}

static bool head_write(const struct verbs_card *c, struct card_head *h)
{
	struct fabric_place back;

	h->magic = le32_of(CARD_MAGIC);
	h->version = le16_of(VERBS_CARD_VERSION);
	h->len = le16_of((uint16_t)card_len(c->rails, c->qps));
	h->features = le32_of(c->features);
	h->rails = c->rails;
	h->qps = c->qps;
	h->rows = FABRIC_DISTANCES;
	h->incarnation = le64_of(c->incarnation);
	h->session = le64_of(c->session);
	h->heard = le64_of(c->heard);
	h->table_addr = le64_of(c->table_addr);
	h->table_len = le64_of(c->table_len);
	h->round = le32_of(c->round);
	h->generation = le32_of(c->generation);
	h->packet = le32_of(c->packet);
	h->credits = le32_of(c->credits);
	h->receives = le32_of(c->receives);
	h->records = le32_of(c->records);
	memcpy(h->place.host, c->place.host,
	       strnlen(c->place.host, sizeof(h->place.host)));
	memcpy(h->place.building, c->place.building,
	       strnlen(c->place.building, sizeof(h->place.building)));
	memcpy(h->place.zone, c->place.zone,
	       strnlen(c->place.zone, sizeof(h->place.zone)));
	memcpy(h->place.rack, c->place.rack,
	       strnlen(c->place.rack, sizeof(h->place.rack)));
	return door_write(&c->door, &h->door) && place_read(&h->place, &back);
}

static uint8_t *rows_write(const struct verbs_card *c, uint8_t *at)
{
	for (size_t i = 0; i < FABRIC_DISTANCES; i++) {
		struct card_row row = {
			.lanes = le16_of(c->row[i].lanes),
			.window = le32_of(c->row[i].window),
			.segments = le32_of(c->row[i].segments),
		};

		memcpy(at, &row, sizeof(row));
		at += sizeof(row);
	}
	return at;
}

static uint8_t *rails_write(const struct verbs_card *c, uint8_t *at)
{
	for (size_t i = 0; i < c->rails; i++) {
		const struct verbs_card_rail *r = &c->rail[i];
		struct card_rail rail = {
			.kind = r->kind,
			.number = r->number,
			.mtu = r->mtu,
			.rd_atomic = r->rd_atomic,
			.lid = le16_of(r->lid),
			.pkey = le16_of(r->pkey),
			.table_key = le32_of(r->table_key),
		};

		memcpy(rail.gid, r->gid, sizeof(rail.gid));
		memcpy(at, &rail, sizeof(rail));
		at += sizeof(rail);
	}
	return at;
}

static void qps_write(const struct verbs_card *c, uint8_t *at)
{
	for (size_t i = 0; i < c->qps; i++) {
		const struct verbs_card_qp *q = &c->qp[i];
		struct card_qp qp = {
			.lane = le16_of(q->lane),
			.rail = q->rail,
			.incarnation = le32_of(q->incarnation),
			.qpn = le32_of(q->qpn),
			.psn = le32_of(q->psn),
		};

		memcpy(at, &qp, sizeof(qp));
		at += sizeof(qp);
	}
}

size_t verbs_card_write(const struct verbs_card *card, uint8_t bytes[VERBS_CARD_MAX])
{
	struct card_head h;
	uint8_t *at;

	memset(&h, 0, sizeof(h));
	if (card_check(card) || !head_write(card, &h))
		return 0;
	memcpy(bytes, &h, sizeof(h));
	at = rows_write(card, bytes + sizeof(h));
	at = rails_write(card, at);
	qps_write(card, at);
	return card_len(card->rails, card->qps);
}

/* ---- two cards ----------------------------------------------------------------------
 */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t verbs_card_rail_for(const struct verbs_card *mine, const struct verbs_card *peer,
			     uint32_t theirs)
{
	const struct verbs_card_rail *want;

	if (theirs >= peer->rails)
		return UINT32_MAX;
	want = &peer->rail[theirs];
	for (uint32_t i = 0; i < mine->rails; i++)
		if (mine->rail[i].number == want->number &&
		    mine->rail[i].kind == want->kind)
			return i;
	for (uint32_t i = 0; i < mine->rails; i++) {
		uint32_t at = (theirs + i) % mine->rails;

		if (mine->rail[at].kind == want->kind)
			return at;
	}
	return UINT32_MAX;
}

const struct verbs_card_qp *verbs_card_qp(const struct verbs_card *card, uint16_t lane)
{
	for (uint32_t i = 0; i < card->qps; i++)
		if (card->qp[i].lane == lane)
			return &card->qp[i];
	return NULL;
}

static bool rails_meet(const struct verbs_card *a, const struct verbs_card *b)
{
	for (uint32_t i = 0; i < a->rails; i++)
		if (verbs_card_rail_for(b, a, i) != UINT32_MAX)
			return true;
	return false;
}

const char *verbs_card_agree(const struct verbs_card *dialler,
			     const struct verbs_card *answerer, struct verbs_terms *terms)
{
	const struct verbs_card *side[2] = {dialler, answerer};

	if (dialler->session != answerer->session || dialler->round != answerer->round)
		return "they speak of two links";
	if (!rails_meet(dialler, answerer))
		return "no rail of the one reaches one of the other: InfiniBand, RoCE v2 "
		       "by IPv4, by IPv6, and RoCE v1 are four kinds, and "
		       "FI_WEFT_GID_INDEX chooses between those of a port";
	terms->distance = fabric_distance(&dialler->place, &answerer->place);
	terms->lanes = least(dialler->row[terms->distance].lanes,
			     answerer->row[terms->distance].lanes);
	terms->packet = least(dialler->packet, answerer->packet);
	terms->features = dialler->features & answerer->features;
	for (unsigned i = 0; i < 2; i++) {
		const struct verbs_card_row *row = &side[i]->row[terms->distance];

		terms->window[i] = row->window;
		terms->segments[i] = least(row->segments, side[!i]->receives);
		terms->records[i] = side[!i]->records;
	}
	return NULL;
}
