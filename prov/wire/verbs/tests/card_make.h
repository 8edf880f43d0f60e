/* SPDX-License-Identifier: BSD-2-Clause */
/* A valid card for tests: two RoCE rails, a control queue pair and two lanes. */
#ifndef WEFT_WIRE_VERBS_TESTS_CARD_MAKE_H
#define WEFT_WIRE_VERBS_TESTS_CARD_MAKE_H

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "prov/wire/verbs/verbs_card.h"

static inline void card_make(struct verbs_card *c, const char *host, uint64_t session)
{
	static const char place[] = "b1/z2/r3";

	memset(c, 0, sizeof(*c));
	c->door.in.sin_family = AF_INET;
	c->door.in.sin_port = htons(9228);
	c->door.in.sin_addr.s_addr = htonl(0x0a010203);
	c->incarnation = 0x1122334455667788u;
	c->session = session;
	c->heard = 5;
	c->generation = 3;
	c->features = VERBS_CARD_NUMBERED;
	snprintf(c->place.host, sizeof(c->place.host), "%s", host);
	fabric_place_parse(place, sizeof(place) - 1, &c->place);
	c->packet = 8192;
	c->credits = 128;
	c->receives = 64;
	c->records = 256;
	c->table_addr = 0x7f0000001000u;
	c->table_len = 0x10000;
	for (int i = 0; i < FABRIC_DISTANCES; i++)
		c->row[i] = (struct verbs_card_row){
			.lanes = (uint16_t)(4 + i), .window = 1024, .segments = 16};
	c->rails = 2;
	for (uint8_t i = 0; i < c->rails; i++) {
		static const uint8_t gid[16] = {0, 0, 0,    0,	  0,  0, 0, 0,
						0, 0, 0xff, 0xff, 10, 1, 2, 3};

		c->rail[i] = (struct verbs_card_rail){.kind = VERBS_RAIL_ROCE4,
						      .number = i,
						      .mtu = 5,
						      .rd_atomic = 16,
						      .pkey = 0xffff,
						      .table_key = 0x1000u + i};
		memcpy(c->rail[i].gid, gid, sizeof(gid));
		c->rail[i].gid[15] = (uint8_t)(c->rail[i].gid[15] + i);
	}
	c->qps = 3;
	c->qp[0] = (struct verbs_card_qp){
		.lane = VERBS_LANE_CONTROL, .qpn = 0x11, .psn = 0xabcdef};
	c->qp[1] = (struct verbs_card_qp){
		.lane = 0, .incarnation = 1, .qpn = 0x12, .psn = 0x123456};
	c->qp[2] = (struct verbs_card_qp){
		.lane = 1, .rail = 1, .incarnation = 1, .qpn = 0x13};
}

#endif
