/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the verbs wire share: an endpoint that records its events, and a
 * server in a process of its own that obeys small packets.
 */
#ifndef WEFT_WIRE_VERBS_TESTS_RIG_H
#define WEFT_WIRE_VERBS_TESTS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "prov/mem/keytab.h"
#include "prov/wire/wire.h"

#define RIG_PACKET_MAX 8192
#define RIG_WAIT_MS    90000 /* any wait of a test */

struct rig {
	struct mem_keytab *keys;
	struct wire_ep *ep;

	bool sleeps;	   /* waits on the descriptor */
	int overslept;	   /* sleeps that ended by the clock */
	bool beside;	   /* the key table is another's */
	void *handles[64]; /* of rig_memory */
	unsigned handle_count;

	/* Events. */
	struct wire_link *dialled; /* newest that is up */
	struct wire_link *accepted;
	int ups;
	int downs;
	int down_err; /* newest */
	uint64_t packets;
	size_t last_len;
	uint8_t last[RIG_PACKET_MAX]; /* newest packet */
	int soon; /* puts that put_soon took, of which it is asked every second */
	bool soon_next;
	int segments;
	int segment_err; /* newest */
	int segment_errs;
	uint64_t arrived;
	uint64_t arrived_len;
	uint64_t arrived_sum;  /* of their data */
	uint64_t arrived_late; /* ordered ones whose data isn't one more than the last */
	uint64_t arrived_last;

	/* Called first when set; true: handled. */
	bool (*on_packet)(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			  size_t len);
	/* A native atomic is over. */
	void (*on_atomic)(struct rig *rig, uint64_t cookie, uint64_t was, int err);
	void *user;
	/* Called for a link that is up, when set; true: it isn't kept. */
	bool (*on_up)(struct rig *rig, struct wire_link *link);
};

/* Bails out on failure. */
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);
/* A second endpoint of the same domain. */
void rig_open_beside(struct rig *rig, const struct rig *other);

/* One turn of progress, and a nap where that is wanted. */
void rig_step(struct rig *rig);
/* Progress until *counter reaches want; false at the deadline. */
bool rig_wait_int(struct rig *rig, const int *counter, int want);
bool rig_wait_u64(struct rig *rig, const uint64_t *counter, uint64_t want);
/* Dials and waits: 0 and rig->dialled, or the error. */
int rig_dial(struct rig *rig, const struct wire_addr *to);
/* Waits for room. */
bool rig_send(struct rig *rig, struct wire_link *link, const void *bytes, size_t len);
uint64_t rig_now(void);

/* A put or get, started; waits for room. -FI_EAGAIN: a link went down meanwhile. */
int rig_start(struct rig *rig, struct wire_link *link, bool write, void *local,
	      void *handle, size_t len, uint64_t addr, uint64_t key,
	      const struct wire_notice *n);
/* The same, waited for: the wire's error. */
int rig_move(struct rig *rig, struct wire_link *link, bool write, void *local,
	     void *handle, size_t len, uint64_t addr, uint64_t key);
/* Memory with a registration; bails out. */
void *rig_memory(struct rig *rig, size_t len, void **handle);
/* Registers for peers: 0 and the key. */
int rig_register(struct rig *rig, void *memory, size_t len, uint64_t access,
		 uint64_t *key);
void rig_unregister(struct rig *rig, uint64_t key);

/* ---- server --------------------------------------------------------------------------
 */

enum server_op {
	SERVER_ECHO = 1, /* sends the packet back */
	SERVER_REGISTER, /* arg: bytes, arg2: access; answers with an address and a key */
	SERVER_RENEW,	 /* closes that and registers other memory under the same key */
	SERVER_CLOSE,	 /* closes it; answers */
	SERVER_HASH,	 /* answers with a hash of the registered memory */
	SERVER_SLEEP,	 /* arg: ms without any call into the wire */
	SERVER_QUIT,	 /* arg: packets sent before an orderly close */
	SERVER_SINK,	 /* nothing */
	SERVER_NOTICES,	 /* answers with how many arrived, and their bytes */
	SERVER_LATE,  /* answers with how many came out of order, and the sum of data */
	SERVER_BLOCK, /* from now on sleeps on the descriptor when idle */
	SERVER_TRY,   /* registers memory of arg bytes (0: all memory), if it can: answers
		       * with an address and a key, or 0 and an error */
	SERVER_NAME,  /* registers memory of arg bytes by mem_add: address and name */
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

/* Forks; call before this process opens an endpoint. RIG_SERVER_RAILS: its FI_WEFT_RAILS.
 */
void server_start(struct server *srv);
/* Waits for the process; its exit status, or -signal. */
int server_wait(struct server *srv);
/* Sends a request and waits for the answer packet (rig->last). */
bool server_ask(struct rig *rig, struct wire_link *link, enum server_op op, uint64_t arg,
		uint64_t arg2);
struct server_packet server_answer(const struct rig *rig);
uint64_t hash_bytes(const void *bytes, size_t len);

#endif
