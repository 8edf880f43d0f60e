/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What members of an epoch say to each other before they have a network: the card by
 * which the roster says where a member listens, and the hello of who comes there. All
 * fields are big-endian. Only this file and meet_wire.c know the layout; nothing of a
 * card or a hello is used before it was checked in full.
 *
 *   card    family (4 or 6), 0, port, 16 bytes of address (4 and zeros)
 *   hello   magic "WFM1", rank in the roster, term and number of the epoch, id, the job's
 *           secret, in clear: as with the coordinator it keeps strangers and other jobs
 *           away, not somebody who reads the network
 */
#ifndef WEFT_FTAR_MEET_WIRE_H
#define WEFT_FTAR_MEET_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "coll/ft/roster.h"

enum { MEET_JOB_LEN = 64, MEET_CARD_LEN = 20, MEET_HELLO_LEN = 96 };

/* Writes MEET_CARD_LEN bytes. False: it is no address of the Internet, or has no port. */
bool meet_card_put(const struct sockaddr_storage *at, uint8_t card[FT_CARD_MAX]);

/* False: it is no card. */
bool meet_card_get(const uint8_t *card, uint32_t card_len, struct sockaddr_storage *at,
		   socklen_t *len);

/* Writes MEET_HELLO_LEN bytes, of the member at place `rank` of the roster. */
void meet_hello_put(void *buf, const struct ft_roster *roster, uint32_t rank,
		    const uint8_t *job);

/* Of MEET_HELLO_LEN bytes: the place in the roster of who says so, which is never the
 * first, that listens; or -1: it is not of this epoch, or not of this job. */
int32_t meet_hello_get(const void *buf, const struct ft_roster *roster,
		       const uint8_t *job);

#endif
