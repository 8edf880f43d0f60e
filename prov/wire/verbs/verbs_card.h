/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Business cards: what two endpoints tell each other at the door before their queue pairs
 * can meet. Bytes in one place, one validator; all numbers are little-endian, GIDs as
 * they are. Pure, and built without any header of libibverbs.
 *
 * Both read both cards and derive the same terms from them (verbs_card_agree): what one
 * says alone counts for nothing.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_CARD_H
#define WEFT_WIRE_VERBS_VERBS_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/dqplb/imm.h"
#include "prov/dqplb/rails.h"
#include "prov/wire/addr.h"
#include "topo/fabric/place.h"

#define VERBS_CARD_VERSION 2

#define VERBS_CARD_RAILS DQPLB_RAILS_MAX
/* Control queue pair and first data lanes: at most one for each rail, and the control's.
 */
#define VERBS_CARD_QPS	 (DQPLB_RAILS_MAX + 1u)
#define VERBS_CARD_LANES DQPLB_LANES_MAX

/* Longest: with all rails and queue pairs. */
#define VERBS_CARD_MAX 1056u

/* lane of the control queue pair. */
#define VERBS_LANE_CONTROL UINT16_MAX

/* Rails of different kinds can't reach each other. */
enum verbs_rail_kind {
	VERBS_RAIL_IB = 1,    /* InfiniBand */
	VERBS_RAIL_ROCE4 = 2, /* RoCE v2, IPv4-mapped GID */
	VERBS_RAIL_ROCE6 = 3, /* RoCE v2, IPv6 GID */
	VERBS_RAIL_ROCE1 = 4  /* RoCE v1 */
};

/* Features; both sides have those that count. Unknown bits are ignored. */
#define VERBS_CARD_OOO	    1u /* queue pairs may place data out of order */
#define VERBS_CARD_NUMBERED 2u /* every put is numbered (FI_WEFT_NUMBERED) */
#define VERBS_CARD_STOPS    4u /* lanes are stopped at the door (verbs_stop.h), */
#define VERBS_CARD_SPARES   8u /* and made there (verbs_spare.h) */
/* Its device carries out all atomics (FI_WEFT_VERBS_ATOMICS), and no one else. */
#define VERBS_CARD_ATOMICS 16u

struct verbs_card_rail {
	uint8_t kind;	/* enum verbs_rail_kind */
	uint8_t number; /* below VERBS_CARD_RAILS: rails of one number are one fabric */
	uint8_t mtu;	/* enum ibv_mtu, 1 (256) to 5 (4096) */
	uint8_t rd_atomic; /* reads that a queue pair serves at a time */
	uint16_t lid;	   /* InfiniBand, else 0 */
	uint16_t pkey;
	uint8_t gid[16];
	uint32_t table_key; /* rkey of the table below on this rail */
};

struct verbs_card_qp {
	uint16_t lane;	      /* or VERBS_LANE_CONTROL */
	uint8_t rail;	      /* index into the same card's rails */
	uint32_t incarnation; /* of the lane (rule C1) */
	uint32_t qpn;	      /* 24 bits, not 0 */
	uint32_t psn;	      /* 24 bits */
};

/* A row for each distance (enum fabric_distance). */
struct verbs_card_row {
	uint16_t lanes;	   /* wanted, 1 to VERBS_CARD_LANES */
	uint32_t window;   /* of this side's transmitter: power of two */
	uint32_t segments; /* this side has in flight on a lane, at most */
};

struct verbs_card {
	struct wire_addr door;
	uint64_t incarnation; /* of the endpoint, never 0 */
	uint32_t features;
	struct fabric_place place;

	/* The link. A dialler names it at random; who dials again because the control
	 * channel died (rule C5) says the same name, `round` one higher, and what it has
	 * heard. The answerer repeats name and round. */
	uint64_t session;    /* never 0 */
	uint32_t round;	     /* 0: a new link */
	uint64_t heard;	     /* packets (rule B1) of the session that arrived in order */
	uint32_t generation; /* of its number space (A1), 0 to 63 */

	/* Control channel: bytes of one packet, receives that are posted. */
	uint32_t packet;
	uint32_t credits;
	uint32_t receives; /* posted for each data lane */
	uint32_t records;  /* events that may wait here */

	/* Memory that the peer may read: the key table (rule D1), and one word (E3). */
	uint64_t table_addr;
	uint64_t table_len;

	struct verbs_card_row row[FABRIC_DISTANCES];
	uint8_t rails;
	uint8_t qps;
	struct verbs_card_rail rail[VERBS_CARD_RAILS];
	struct verbs_card_qp qp[VERBS_CARD_QPS];
};

/* Writes the card; returns its length. The card is valid (one that isn't is a fault of
 * the caller: 0 is returned). */
size_t verbs_card_write(const struct verbs_card *card, uint8_t bytes[VERBS_CARD_MAX]);

/*
 * Reads a stranger's bytes, every one of them once. NULL: *card is what they say, and
 * everything in it is in range. Else why not, in words (*card is nonsense then).
 */
const char *verbs_card_read(const uint8_t *bytes, size_t len, struct verbs_card *card);

/* What both sides derive from the two cards. */
struct verbs_terms {
	enum fabric_distance distance;
	uint32_t lanes;	   /* the lower of the two rows' */
	uint32_t packet;   /* bytes, the lower */
	uint32_t features; /* those of both */
	/* Index 0: the dialler's, 1: the answerer's transmitter. */
	uint32_t window[2];
	uint32_t segments[2]; /* at most the other side's receives */
	uint32_t records[2];  /* events that may wait at the other side */
};

/* NULL, or why these two can't have a link. */
const char *verbs_card_agree(const struct verbs_card *dialler,
			     const struct verbs_card *answerer,
			     struct verbs_terms *terms);

/* A peer's rail is reached by that now. False: no rail of its kind can be, and nothing
 * has changed. */
bool verbs_card_rail_move(struct verbs_card_rail *rail, uint16_t lid,
			  const uint8_t gid[16]);

/*
 * The rail of `mine` for a lane that the peer has on rail `theirs` of its card: of the
 * same number where there is one, else by index, always of the same kind. UINT32_MAX:
 * there is none, the lane can't be.
 */
uint32_t verbs_card_rail_for(const struct verbs_card *mine, const struct verbs_card *peer,
			     uint32_t theirs);

/* The queue pair of that lane; NULL: the card has none. */
const struct verbs_card_qp *verbs_card_qp(const struct verbs_card *card, uint16_t lane);

#endif
