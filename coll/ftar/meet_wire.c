/* SPDX-License-Identifier: BSD-2-Clause */
/* See meet_wire.h. */
#include "config.h"

#include "coll/ftar/meet_wire.h"

#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#define MEET_MAGIC UINT32_C(0x57464d31) /* "WFM1" */

struct meet_card {
	uint8_t family; /* 4 or 6 */
	uint8_t zero;
	uint8_t port[2];
	uint8_t addr[16];
};
_Static_assert(sizeof(struct meet_card) == MEET_CARD_LEN, "wire format");
_Static_assert((int)MEET_CARD_LEN <= (int)FT_CARD_MAX, "fits into the roster");

struct meet_hello {
	uint32_t magic;
	uint32_t rank;
	uint64_t term, seq, id;
	uint8_t job[MEET_JOB_LEN];
};
_Static_assert(sizeof(struct meet_hello) == MEET_HELLO_LEN, "wire format");

static const uint8_t zeros[16];

bool meet_card_put(const struct sockaddr_storage *at, uint8_t card[FT_CARD_MAX])
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)at;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)at;
	struct meet_card c = {.family = at->ss_family == AF_INET ? 4 : 6};

	if (at->ss_family == AF_INET) {
		memcpy(c.addr, &in4->sin_addr, 4);
		memcpy(c.port, &in4->sin_port, 2);
	} else if (at->ss_family == AF_INET6) {
		memcpy(c.addr, &in6->sin6_addr, 16);
		memcpy(c.port, &in6->sin6_port, 2);
	}
	if (memcmp(c.port, zeros, 2) == 0)
		return false;
	memcpy(card, &c, sizeof(c));
	return true;
}

bool meet_card_get(const uint8_t *card, uint32_t card_len, struct sockaddr_storage *at,
		   socklen_t *len)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)at;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)at;
	struct meet_card c;

	if (card_len != sizeof(c))
		return false;
	memcpy(&c, card, sizeof(c));
	if (c.zero || memcmp(c.port, zeros, 2) == 0)
		return false;
	memset(at, 0, sizeof(*at));
	if (c.family == 4 && memcmp(c.addr + 4, zeros, 12) == 0) {
		in4->sin_family = AF_INET;
		memcpy(&in4->sin_addr, c.addr, 4);
		memcpy(&in4->sin_port, c.port, 2);
		*len = sizeof(*in4);
		return true;
	}
	in6->sin6_family = AF_INET6;
	memcpy(&in6->sin6_addr, c.addr, 16);
	memcpy(&in6->sin6_port, c.port, 2);
	*len = sizeof(*in6);
	return c.family == 6;
}

void meet_hello_put(void *buf, const struct ft_roster *roster, uint32_t rank,
		    const uint8_t *job)
{
	struct meet_hello h = {.magic = htobe32(MEET_MAGIC),
			       .rank = htobe32(rank),
			       .term = htobe64(roster->epoch.term),
			       .seq = htobe64(roster->epoch.seq),
			       .id = htobe64(roster->entry[rank].id)};

	memcpy(h.job, job, MEET_JOB_LEN);
	memcpy(buf, &h, sizeof(h));
}

int32_t meet_hello_get(const void *buf, const struct ft_roster *roster,
		       const uint8_t *job)
{
	struct meet_hello h;
	uint32_t rank;

	memcpy(&h, buf, sizeof(h));
	rank = be32toh(h.rank);
	if (be32toh(h.magic) != MEET_MAGIC || memcmp(h.job, job, MEET_JOB_LEN) != 0)
		return -1;
	if (be64toh(h.term) != roster->epoch.term || be64toh(h.seq) != roster->epoch.seq)
		return -1;
	if (rank == 0 || rank >= roster->count || be64toh(h.id) != roster->entry[rank].id)
		return -1;
	return (int32_t)rank;
}
