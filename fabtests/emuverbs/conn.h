/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections between the devices of processes: one for what this process asks of
 * another, one for what the other asks of it. Everything that goes out is made from the
 * state of queue pairs at the moment at which the socket takes it, so nothing is queued
 * but short refusals, and no two processes can wait for each other.
 */
#ifndef WEFT_FABTESTS_EMUVERBS_CONN_H
#define WEFT_FABTESTS_EMUVERBS_CONN_H

#include <sys/uio.h>

#include "fabtests/emuverbs/emu.h"

struct emu_conn {
	struct list node;
	int fd;
	unsigned slot; /* of the peer; of one that was accepted: unknown */
	bool asks;     /* this process asks */
	bool dead;
	bool blocked;
	struct list out;  /* packets that wait, before everything else */
	struct list rsps; /* queue pairs with something to answer */
	struct list reqs; /* queue pairs with something to send */
};

enum emu_sent {
	EMU_SENT_MORE, /* and there may be more */
	EMU_SENT_IDLE, /* nothing is left to send */
	EMU_SENT_BLOCKED,
	EMU_SENT_DEAD,
	EMU_SENT_FAULT, /* the memory that was to be sent is not there */
};

/* To the process in that slot; NULL: nobody is there. */
struct emu_conn *emu_conn_get(unsigned slot);

/* One packet with its payload. */
enum emu_sent emu_conn_send(struct emu_conn *c, const struct emu_packet *p,
			    const struct iovec *iov, unsigned pieces);

/* A packet without payload, kept if it can't be sent now. */
void emu_conn_say(struct emu_conn *c, const struct emu_packet *p);

/* Sends all that may be sent. */
void emu_conn_pump(struct emu_conn *c);

/* Receives some packets; the thread's. */
void emu_conn_take(struct emu_conn *c);
void emu_conn_accept(void);

/* All are closed: of a process that forked. */
void emu_conn_forget(void);
void emu_conn_bury(void);

#endif
