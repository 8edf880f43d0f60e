/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine of one endpoint: messages, tags and RMA over a wire. Everything here is
 * called with the endpoint's lock held, never blocks and makes no system call of its own.
 * Completions go up through struct proto_up, from inside any of these calls.
 */
#ifndef WEFT_PROTO_ENGINE_H
#define WEFT_PROTO_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "prov/wire/addr.h"
#include "prov/wire/wire.h"
#include "util/lock_note.h"

struct proto_ep;
struct proto_peer;
struct receiver; /* what engines receive through: receiver.h */

#define PROTO_IOV_MAX 4
/* Operations that one endpoint may have under way, of each side (a power of two). What is
 * asked for by tx_size and rx_size is there from the start; more is taken from the system
 * when it is first needed, and kept. */
#define PROTO_OPS_MAX (128u << 10)

/* Contexts of one endpoint: those that are sent to have the numbers below
 * PROTO_CONTEXTS_MAX (0: the endpoint's address), those that send PROTO_CONTEXT_TX + i.
 */
#define PROTO_CONTEXTS_MAX 64
#define PROTO_CONTEXT_TX   0x8000u

/* What an operation is; the engine's own bits are above these (tx_op.h, rx_op.h). */
#define PROTO_TAGGED   0x0001u /* FI_TAGGED, else FI_MSG */
#define PROTO_DATA     0x0002u /* carries remote CQ data */
#define PROTO_INJECT   0x0004u /* the buffer is the caller's again on return */
#define PROTO_REPORT   0x0008u /* success goes to the completion queue */
#define PROTO_DELIVERY 0x0010u /* completes when placed at the target */
#define PROTO_MULTI    0x0020u /* multi-receive buffer */
#define PROTO_WRITE    0x0040u /* RMA: write, else read; atomic: without result */
#define PROTO_ASKED    0x0100u /* a shared receive: its report was asked for */
#define PROTO_FENCE    0x0080u /* -FI_EAGAIN while older ones to that peer are open */

/* A completion, success (err 0) or error (err > 0, fi_errno). flags as fi_cq(3) has them,
 * except that success with report false is for counters only. */
struct proto_done {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	uint64_t source; /* fi_addr_t */
	size_t olen;
	int err;
	bool report;
};

/* While an operation's error is told: the peer that it was with, and, where that is
 * known, why it can't be reached. */
struct proto_blame {
	const struct wire_addr *peer; /* NULL: none */
	const char *why;	      /* or NULL */
};
const struct proto_blame *proto_ep_blame(const struct proto_ep *ep);

struct proto_up {
	void (*tx_done)(void *arg, const struct proto_done *d);
	/* The frequent case of tx_done: a put without fault. */
	void (*put_ok)(void *arg, void *context, bool report);
	void (*rx_done)(void *arg, const struct proto_done *d);
	/* The frequent case of rx_done: success with report, no data, no buffer. */
	void (*rx_ok)(void *arg, void *context, uint64_t flags, size_t len, uint64_t tag,
		      uint64_t source);
	/* The same with data. */
	void (*rx_ok_data)(void *arg, void *context, uint64_t flags, size_t len,
			   uint64_t tag, uint64_t source, uint64_t data);
	/* A peer's remote write with data; an atomic operation of a peer, which goes to
	 * the completion queue if report says so. */
	void (*remote_done)(void *arg, const struct proto_done *d);
	/* A peer's reads or writes that counters want to hear of: how many, of the
	 * region with that key, for the endpoint, for the region. NULL: none do. */
	void (*remote_count)(void *arg, uint64_t key, uint32_t count, bool read, bool ep,
			     bool region);
	/* The lowest index of that address in the address vector, or FI_ADDR_NOTAVAIL */
	uint64_t (*source)(void *arg, const struct wire_addr *addr);
	/* What completions say instead of that index. NULL: nothing else. */
	uint64_t (*told)(void *arg, uint64_t index);
	uint64_t (*now)(void *arg); /* monotonic ns */
};

struct proto_attr {
	const struct wire_ops *wire;
	const struct wire_ops *near, *far; /* of joined_wire_ops, else NULL */
	struct wire_addr addr;		   /* the door wanted; port 0: any */
	bool addr_any;
	uint64_t incarnation;
	struct mem_keytab *keys;
	struct mem_arena *arena; /* NULL: no memory is shared */
	const struct proto_up *up;
	void *arg;
	uint32_t tx_size, rx_size; /* operations that there is room for at once */
	uint32_t tx_max, rx_max;   /* and at most; a power of two, or 0: PROTO_OPS_MAX */
	size_t inject_size;
	size_t eager_size;	  /* most payload bytes of an eager message */
	size_t bulk_size;	  /* messages from here on may go through bulk slots */
	size_t joint_size;	  /* messages from here on are copied by both sides */
	uint64_t connect_timeout; /* ns */
	size_t unexpected_max;	  /* bytes of unexpected payload that are granted */
	bool order_rma;		  /* RMA keeps its order (RAR, RAW, WAR or WAW granted) */
	bool order_msg_after_rma; /* SAR or SAW granted */
	bool order_atomic;	  /* RMA and atomics keep their order among them */
	bool order_after_put;	  /* RAW, WAW or SAW granted: of what sees a write */
	bool atomics;		  /* atomic operations will be posted */
	bool devices;		  /* memory of GPUs will be used */
	bool no_imports;	  /* ... and never be mapped by peers, nor theirs here */
	uint64_t atomic_access;	  /* FI_REMOTE_READ, FI_REMOTE_WRITE: what atomics of
				   * peers may do here */
};

struct proto_msg {
	const struct iovec *iov;
	size_t count;
	size_t len; /* sum of iov */
	uint64_t tag;
	uint64_t data;
	void *context;
	uint32_t flags;
};

struct proto_recv {
	const struct iovec *iov;
	size_t count;
	struct proto_peer *source; /* NULL: any */
	uint64_t tag;
	uint64_t ignore;
	void *context;
	uint32_t flags;
};

struct proto_rma_iov {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

struct proto_rma {
	const struct iovec *iov;
	size_t count;
	const struct proto_rma_iov *remote; /* same sum of lengths as iov */
	size_t remote_count;
	size_t len;
	uint64_t data;
	void *context;
	uint32_t flags;
};

/* An atomic operation that exists (atomic_op.h); lengths in bytes. */
struct proto_atomic {
	uint8_t mode, op, type;
	const struct iovec *iov; /* operands; none for FI_ATOMIC_READ */
	size_t count;
	const struct iovec *compare;
	size_t compare_count;
	const struct iovec *result;
	size_t result_count;
	const struct proto_rma_iov *remote;
	size_t remote_count;
	size_t len; /* sum of each of those that there are; not 0 */
	uint64_t data;
	void *context;
	/* With PROTO_INJECT operands and compare together are no longer than inject_size.
	 */
	uint32_t flags;
};

/* The door is open from here on, so that the address is known; operations may be posted
 * after proto_enable. */
int proto_ep_open(const struct proto_attr *attr, struct proto_ep **ep);
/* Between the two: it receives through what others receive through as well, and posts
 * nothing itself. */
LOCK_HELD(lock_domain) void proto_share(struct proto_ep *ep, struct receiver *rcv);
LOCK_HELD(lock_domain) int proto_enable(struct proto_ep *ep);
/* Where completions go from now on. */
LOCK_HELD(lock_domain) void proto_set_up(struct proto_ep *ep, const struct proto_up *up);
/* Outstanding operations vanish without completion. */
LOCK_HELD(lock_domain) void proto_ep_close(struct proto_ep *ep);
/* Nothing that was promised waits any more: no owed acknowledgement, no injected message,
 * no access that the target counts; and proto_is_written is false.
 * Before a close, progress with proto_set_closing until this is true or patience ends. */
LOCK_HELD(lock_domain) bool proto_is_drained(const struct proto_ep *ep);
/* From now on nothing is completed and nothing is taken in. Peers that help with messages
 * are told to stop. */
LOCK_HELD(lock_domain) void proto_set_closing(struct proto_ep *ep);
/* After that: one of them has not stopped yet, and may still be writing into memory that
 * was posted here (rules D3, D4). Progress finds out. Such an engine must not be closed.
 */
LOCK_HELD(lock_domain) bool proto_is_written(const struct proto_ep *ep);

struct wire_ep *proto_wire_ep(const struct proto_ep *ep);

/* fi_addr_t to peer. NULL: not known yet, see proto_map. */
LOCK_HELD(lock_domain)
struct proto_peer *proto_mapped(const struct proto_ep *ep, uint64_t fi_addr);
/* Makes the mapping; NULL: no memory. */
LOCK_HELD(lock_domain)
struct proto_peer *proto_map(struct proto_ep *ep, uint64_t fi_addr,
			     const struct wire_addr *addr);
/* By address, for this call only: a context of an endpoint that has several. NULL: no
 * memory. */
LOCK_HELD(lock_domain)
struct proto_peer *proto_named(struct proto_ep *ep, const struct wire_addr *addr);
/* The address vector has a new entry; one is about to go; one is told differently. */
LOCK_HELD(lock_domain)
void proto_inserted(struct proto_ep *ep, uint64_t fi_addr, const struct wire_addr *addr);
LOCK_HELD(lock_domain)
void proto_removed(struct proto_ep *ep, uint64_t fi_addr, const struct wire_addr *addr);
LOCK_HELD(lock_domain)
void proto_renamed(struct proto_ep *ep, uint64_t fi_addr, const struct wire_addr *addr);

/* 0, or -FI_EAGAIN when there is no operation left (or no memory for more). The frequent
 * ones are also in small.h. */
LOCK_HELD(lock_domain)
ssize_t proto_send(struct proto_ep *ep, struct proto_peer *to, const struct proto_msg *m);
LOCK_HELD(lock_domain)
ssize_t proto_recv(struct proto_ep *ep, const struct proto_recv *r);
LOCK_HELD(lock_domain)
ssize_t proto_rma(struct proto_ep *ep, struct proto_peer *to, const struct proto_rma *r);
ssize_t proto_atomic(struct proto_ep *ep, struct proto_peer *to,
		     const struct proto_atomic *a);
/* Cancels the oldest receive that was posted with this context and isn't matched. True
 * when there was one. */
LOCK_HELD(lock_domain) bool proto_cancel(struct proto_ep *ep, const void *context);

/* A message that has arrived and has no receive, or is still arriving. */
struct proto_found {
	uint64_t len; /* all of it, however much is here */
	uint64_t tag;
	uint64_t data;
	uint64_t source; /* fi_addr_t */
	uint64_t id;	 /* of a claimed message */
	uint32_t flags;	 /* PROTO_TAGGED, PROTO_DATA */
	void *arg;	 /* of the engine that it came to */
};

enum proto_peek {
	PROTO_PEEK_LOOK,    /* it stays where it is */
	PROTO_PEEK_CLAIM,   /* from now on only found->id names it */
	PROTO_PEEK_DISCARD, /* it is gone, and its sender doesn't wait for it any more */
};

/* The message that this receive would take. 0, or -FI_ENOMSG. Nothing is completed. */
LOCK_HELD(lock_domain)
int proto_peek(struct proto_ep *ep, const struct proto_recv *r, enum proto_peek what,
	       struct proto_found *found);
/* A claimed message gets its receive, or is dropped. -FI_EINVAL: id names none. */
LOCK_HELD(lock_domain)
int proto_recv_claimed(struct proto_ep *ep, const struct proto_recv *r, uint64_t id);
LOCK_HELD(lock_domain)
int proto_discard_claimed(struct proto_ep *ep, uint64_t id, struct proto_found *found);

/* ---- a receiver of several engines; a source is a peer of any of them */

/* size: receives that can be posted at a time. -FI_ENOMEM. */
int receiver_open(uint32_t size, struct receiver **rcv);
/* No engine receives through it any more. Receives that are posted vanish. */
LOCK_HELD(lock_domain) void receiver_close(struct receiver *rcv);
/* As proto_recv, proto_cancel and proto_peek. What comes of a receive is told to the
 * engine that the message came to; that it was cancelled, to any. */
LOCK_HELD(lock_domain)
ssize_t receiver_post(struct receiver *rcv, const struct proto_recv *r);
LOCK_HELD(lock_domain) bool receiver_cancel(struct receiver *rcv, const void *context);
LOCK_HELD(lock_domain)
int receiver_peek(struct receiver *rcv, const struct proto_recv *r, enum proto_peek what,
		  struct proto_found *found);
/* From now on, and for those that are posted, only what was asked for reports by itself:
 * PROTO_ASKED. */
LOCK_HELD(lock_domain) void receiver_set_selective(struct receiver *rcv);
LOCK_HELD(lock_domain)
void receiver_set_min_multi_recv(struct receiver *rcv, size_t len);
size_t receiver_left(const struct receiver *rcv);

/* ---- a receiver whose receives somebody else has, and matches */

struct arrival; /* a message that is kept there: its name */

struct proto_matcher_ops {
	/* A message came. 0: r says where it goes (iov, count, context, flags).
	 * -FI_ENOENT: nobody waits for it, queue follows. Both with *entry, which names
	 * it there until release. -FI_EAGAIN: asked again later. All else: it is dropped.
	 */
	int (*get)(void *arg, const struct proto_found *message, struct proto_recv *r,
		   void **entry);
	/* It waits, by that name here; not 0: it can't. */
	int (*queue)(void *arg, void *entry, const struct proto_found *message,
		     struct arrival *name);
	/* That name is none any more: the engine ends. */
	void (*forget)(void *arg, void *entry);
	void (*release)(void *arg, void *entry);
};

int receiver_open_matched(const struct proto_matcher_ops *ops, void *arg,
			  struct receiver **rcv);
/* A message that waits gets its receive; or is dropped, then entry is not released. */
LOCK_HELD(lock_domain) void matcher_start(struct arrival *a, const struct proto_recv *r);
LOCK_HELD(lock_domain) void matcher_discard(struct arrival *a);
/* Its sender's fi_addr_t, as far as it is known by now. */
LOCK_HELD(lock_domain) uint64_t matcher_source(const struct arrival *a);
/* proto_attr.arg of its engine. */
void *matcher_engine_arg(const struct arrival *a);

/* Receives that are posted later use it. */
LOCK_HELD(lock_domain) void proto_set_min_multi_recv(struct proto_ep *ep, size_t len);
LOCK_HELD(lock_domain) size_t proto_min_multi_recv(const struct proto_ep *ep);

/* After proto_enable. How many more operations there is certainly room for. */
size_t proto_tx_left(const struct proto_ep *ep);
size_t proto_rx_left(const struct proto_ep *ep);

/* After proto_enable. How many things happened. */
LOCK_HELD(lock_domain) int proto_progress(struct proto_ep *ep);
/* Work is left that needs no event to go on: whoever sleeps must be woken for it. */
LOCK_HELD(lock_domain) bool proto_is_busy(const struct proto_ep *ep);
LOCK_HELD(lock_domain) int proto_arm(struct proto_ep *ep);
LOCK_HELD(lock_domain) uint64_t proto_due(const struct proto_ep *ep);
/* When a sleeper should look although nothing was heard; UINT64_MAX: never. */
uint64_t proto_look_due(const struct proto_ep *ep);

#endif
