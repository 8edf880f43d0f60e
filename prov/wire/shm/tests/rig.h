/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the shared-memory wire share: an endpoint that records its events,
 * and a server in a process of its own that obeys small packets.
 */
#ifndef WEFT_WIRE_SHM_TESTS_RIG_H
#define WEFT_WIRE_SHM_TESTS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "prov/mem/keytab.h"
#include "prov/wire/wire.h"

#define RIG_PACKET_MAX 8448
#define RIG_WAIT_MS    40000 /* any wait of a test, on whatever machine */

struct rig {
	struct mem_keytab *keys;
	struct wire_ep *ep;

	/* Events. */
	struct wire_link *dialled; /* newest that is up */
	struct wire_link *accepted;
	int ups;
	int downs;
	int down_err; /* newest */
	uint64_t packets;
	size_t last_len;
	uint8_t last[RIG_PACKET_MAX]; /* newest packet */
	int segments;
	int segment_err;
	uint64_t segment_cookie_sum;
	uint64_t moves, moved_now; /* rig_put and rig_get; those in one call */

	/* Called first when set; true: handled. */
	bool (*on_packet)(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			  size_t len);
	void *user;
};

/* Bails out on failure. no_cma as in wire_ep_attr. */
void rig_open(struct rig *rig, bool no_cma);
/* Endpoints that are opened from now on have no bulk slots. */
extern bool rig_no_bulk;
void rig_close(struct rig *rig);

/* Progress until *counter reaches want; false at the deadline. */
bool rig_wait_int(struct rig *rig, const int *counter, int want);
bool rig_wait_packets(struct rig *rig, uint64_t want);
/* Dials and waits: 0 and rig->dialled, or the error. */
int rig_dial(struct rig *rig, const struct wire_addr *to);
/* Waits for room. */
bool rig_send(struct rig *rig, struct wire_link *link, const void *bytes, size_t len);
/* One segment, waited for; the wire's error. */
int rig_put(struct rig *rig, struct wire_link *link, void *local, size_t len,
	    uint64_t addr, uint64_t key);
int rig_get(struct rig *rig, struct wire_link *link, void *local, size_t len,
	    uint64_t addr, uint64_t key);
uint64_t rig_now(void);

/* ---- server --------------------------------------------------------------------------
 */

enum server_op {
	SERVER_ECHO = 1, /* sends the packet back */
	SERVER_REGISTER, /* arg: bytes, arg2: access; answers with an address and a key */
	SERVER_HASH,	 /* answers with a hash of the registered memory */
	SERVER_SLEEP,	 /* arg: ms without any call into the wire */
	SERVER_PAUSE,	 /* answers, makes no call into the wire until it is woken, and
			    answers again */
	SERVER_QUIT,	 /* arg: packets sent before an orderly close */
	SERVER_BLOCK,	 /* from now on sleeps on the descriptor when idle */
	SERVER_SINK,	 /* nothing */
	SERVER_FORBID,	 /* forbids attach from now on; answers */
	SERVER_FORK, /* leaves a child that does nothing; answers with its process id */
	SERVER_HOLD, /* stops in the middle of an access by key arg, until continued */
	SERVER_JOIN, /* takes a piece of cell arg, turn arg >> 32, which has arg2 pieces,
			and stops before it reports it */
};

struct server_packet {
	uint32_t op;
	uint32_t pad;
	uint64_t arg;
	uint64_t arg2;
};

struct server {
	pid_t pid;
	struct wire_addr addr;
};

/* Forks; call before this process opens an endpoint. */
void server_start(struct server *srv, bool no_cma);
/* Waits for the process; its exit status, or -signal. */
int server_wait(struct server *srv);
/* Ends SERVER_PAUSE. */
void server_wake(const struct server *srv);
/* What the server's process does first; set before server_start. */
extern void (*server_prelude)(void);

/* As rig_wait_packets, but asleep on the descriptor when idle; counts sleeps that ended
 * by the clock. */
bool rig_sleep_packets(struct rig *rig, uint64_t want, int *overslept);
/* One sleep, if there is nothing to do. */
void rig_sleep(struct rig *rig, int *overslept);

/* Sends a request and waits for the answer packet (rig->last). */
bool server_ask(struct rig *rig, struct wire_link *link, enum server_op op, uint64_t arg,
		uint64_t arg2);
uint64_t hash_bytes(const void *bytes, size_t len);
bool same_bytes(const void *a, const void *b, size_t len);

#endif
