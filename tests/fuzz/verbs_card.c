/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A business card, as a stranger at the door may forge it: one that is accepted has every
 * number in range and only one spelling, and agrees with others without doubt.
 */
#include "config.h"

#include "prov/wire/verbs/verbs_card.h"

#include <string.h>

#include "prov/wire/verbs/tests/card_make.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_one(const uint8_t *data, size_t size)
{
	struct verbs_card card, own;
	struct verbs_terms terms;
	uint8_t again[VERBS_CARD_MAX];

	if (verbs_card_read(data, size, &card))
		return false;
	fuzz_require(size <= VERBS_CARD_MAX);
	fuzz_require(verbs_card_write(&card, again) == size);
	fuzz_require(memcmp(data, again, size) == 0);
	fuzz_require(card.rails >= 1 && card.rails <= VERBS_CARD_RAILS);
	fuzz_require(card.qps >= 1 && card.qps <= VERBS_CARD_QPS);
	fuzz_require(verbs_card_qp(&card, VERBS_LANE_CONTROL) != NULL);
	card_make(&own, "node1", card.session);
	own.round = card.round;
	if (!verbs_card_agree(&own, &card, &terms)) {
		fuzz_require(terms.lanes >= 1 && terms.lanes <= VERBS_CARD_LANES);
		fuzz_require(terms.segments[0] <= card.receives);
		fuzz_require(terms.packet >= 4096);
	}
	for (uint32_t i = 0; i < card.qps; i++) {
		uint32_t at = verbs_card_rail_for(&own, &card, card.qp[i].rail);

		fuzz_require(at == UINT32_MAX || at < own.rails);
	}
	return true;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	uint8_t bytes[VERBS_CARD_MAX];
	struct verbs_card card;
	size_t len;

	if (number > 2)
		return 0;
	card_make(&card, number ? "gpu017" : "a", number + 1);
	if (number == 1) {
		card.rails = 1;
		card.qps = 1;
		card.rail[0].kind = VERBS_RAIL_IB;
		card.rail[0].lid = 17;
		memset(card.place.rack, 0, sizeof(card.place.rack));
	}
	if (number == 2) {
		memset(&card.door, 0, sizeof(card.door));
		card.door.in6.sin6_family = AF_INET6;
		card.door.in6.sin6_port = htons(9228);
		card.door.in6.sin6_addr.s6_addr[15] = 1;
		card.door.context = 3;
	}
	len = verbs_card_write(&card, bytes);
	memcpy(room, bytes, len);
	return len;
}
