/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports that come back, whether or not the application makes calls. That a port went or
 * came back is an event of its device, which may be lost, and which progress reads, once
 * in so many turns or when it sleeps on the endpoint's descriptor. So the helper thread
 * waits for events as well, and asks the ports that are down four times a second: within
 * half a second it is known that a port is there again. Progress hears of both in its
 * next turn, however busy it is; peers hear of a port that is back by a word at their
 * doors (VERBS_MSG_RAIL), since a target that sleeps says nothing by its control channel,
 * which may have died with the port.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_PORT_H
#define WEFT_WIRE_VERBS_VERBS_PORT_H

#include <stdbool.h>
#include <stdint.h>

struct verbs_ep;
struct verbs_link;
struct verbs_msg;

/* How far the helper thread is. */
struct verbs_ports {
	int epoll; /* of what devices say by events, each of which wakes it once */
	/* The helper thread's. */
	uint64_t asked; /* ports were, the last time */
	bool stirred;	/* there were events since */
};

/* 0, -FI_EMFILE, -FI_ENOMEM, -FI_EIO. */
int verbs_ports_open(struct verbs_ep *ep);
void verbs_ports_close(struct verbs_ep *ep);

/* A turn of the helper thread's; `readable`: the descriptor is. Mutex not held. Returns
 * when the next is due. */
uint64_t verbs_ports_turn(void *ep, bool readable);
/* The peers are to hear that this rail is back. Mutex. */
void verbs_ports_back(struct verbs_ep *ep, uint32_t rail);

/* A word of the peer's. Mutex. */
void verbs_port_word(struct verbs_link *link, const struct verbs_msg *m);
/* What it said since; endpoint lock. True: something. */
bool verbs_port_news(struct verbs_link *link);

#endif
