/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints of the engine over the mock wire, with a ledger: every operation is posted
 * through it, every completion is checked off in it.
 */
#ifndef WEFT_PROTO_TESTS_SIM_H
#define WEFT_PROTO_TESTS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/proto/engine.h"
#include "prov/proto/tests/mock_wire.h"

#define SIM_EPS	   3
#define SIM_OPS	   4096
#define SIM_REGION (1u << 20)

enum sim_kind { SIM_SEND, SIM_RECV, SIM_WRITE, SIM_READ, SIM_ATOMIC };

struct sim_op {
	enum sim_kind kind;
	int ep; /* that posted it */
	int to; /* target or wanted source; -1: any */
	uint32_t flags;
	uint64_t tag, ignore;
	uint64_t id; /* travels as remote CQ data */
	size_t len;
	char *buf;
	uint64_t remote_off; /* RMA */
	int done;	     /* completions seen */
	int err;
	size_t got_len, olen;
	uint64_t got_id;
	uint64_t done_at;
	int messages;	  /* PROTO_MULTI: received into it */
	size_t used;	  /* PROTO_MULTI: where the next message must start */
	uint64_t *result; /* SIM_ATOMIC: in buf */
};

struct sim_ep {
	struct sim *sim;
	int index;
	struct proto_ep *ep;
	struct wire_addr addr;
	char *region;
	bool paused;		/* makes no call */
	uint64_t remote_events; /* writes with data that arrived */
	uint64_t remote_bytes;
	uint64_t atomics;		   /* that were carried out here */
	uint64_t counted, counted_regions; /* accesses, as counters would */
	struct mem_keytab *keys;
};

struct sim {
	struct mock_net net;
	struct sim_ep eps[SIM_EPS];
	int ep_count;
	struct sim_op *ops;
	int op_count;
	int open; /* operations without completion */
	/* By the frequent way; special: from one source, or with ignored bits. */
	uint64_t small_sent, small_received, small_special;
	uint64_t moved_now; /* RMA, likewise */
	bool one_piece;	    /* RMA is to one piece of remote memory, not to two */
	bool plain;	    /* messages of 8 bytes and more may go without remote data */
	int bad;	    /* things that must not happen, each said in a diagnostic */
	uint64_t incarnation;
	struct proto_peer *other_name; /* endpoint 0 knows endpoint 1 by it */
	struct proto_attr attr;	       /* defaults for every endpoint */
	/* Called when an operation completes, which a test may look at; or NULL. */
	void (*on_done)(struct sim *s, const struct sim_op *op);
	void *on_done_arg;
	/* Called when a write of a peer with data has arrived; or NULL. */
	void (*on_remote)(struct sim_ep *e, const struct proto_done *d);
};

struct sim_atomic {
	uint32_t mode; /* enum atomic_mode */
	uint32_t op;   /* enum fi_op */
	size_t count;
	uint64_t arg, cmp;
	uint64_t off, key;
	uint32_t flags;
};

void sim_init(struct sim *s, uint64_t seed, int eps);
void sim_ep_open(struct sim *s, int index);
void sim_fini(struct sim *s);
/* One step of virtual time; progress of every endpoint. */
void sim_step(struct sim *s, uint64_t ns);
/* Steps until nothing happens for a while; false: 100,000 steps weren't enough. */
bool sim_settle(struct sim *s);
/* NULL: -FI_EAGAIN. */
struct sim_op *sim_send(struct sim *s, int ep, int to, size_t len, uint64_t tag,
			uint32_t flags);
struct sim_op *sim_recv(struct sim *s, int ep, int from, size_t len, uint64_t tag,
			uint64_t ignore, uint32_t flags);
struct sim_op *sim_rma(struct sim *s, int ep, int to, size_t len, uint64_t off,
		       uint64_t key, uint32_t flags);
/* Of FI_UINT64; arg and cmp: what each element gets, with the element's index added. */
struct sim_op *sim_atomic(struct sim *s, int ep, int to, const struct sim_atomic *a);
void sim_cancel_all(struct sim *s);
/* Random messages of up to 400,000 bytes between all, pauses, and in `kills` percent of
 * the rest the death of a pair; then all of it comes to its end. False: something hung.
 */
bool sim_storm(struct sim *s, int steps, uint32_t kills);
struct proto_peer *sim_peer(struct sim *s, int ep, int to);
void sim_pattern(char *buf, size_t len, uint64_t id);
/* The first len bytes of the pattern of whole bytes. */
bool sim_is_part(const char *buf, size_t len, size_t whole, uint64_t id);
static inline bool sim_is_pattern(const char *buf, size_t len, uint64_t id)
{
	return sim_is_part(buf, len, len, id);
}
/* Data, lengths, truncation and order of everything that was received; counts in bad. */
void sim_check(struct sim *s);

#endif
