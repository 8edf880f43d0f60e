/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire contract: what every way of moving bytes offers to proto and peer, and what it
 * reports upwards. Behaviour above depends on capabilities, never on a wire's name.
 *
 * A wire endpoint has links, one for each connection to a peer. A link moves
 *  - packets: small, copied, in order, exactly once while the link lives;
 *  - segments: zero-copy pieces of a put or a get, on a numbered lane, in any order;
 *  - notices, where it has them: puts whose arrival the peer hears of.
 *
 * One endpoint may have links of two wires (joined.h): what is done on a link is done
 * through the link's own table (wire_link_base.ops), what is done on an endpoint through
 * the table that opened it.
 *
 * Threading. Everything here except open and close is called with the endpoint's lock
 * held (one thread at a time), and every upcall comes from inside progress() or from
 * inside a call that says so. A wire's helper threads never call upwards: they leave what
 * they found for progress() and wake the endpoint's descriptor.
 *
 * Errors are negative fi_errno values.
 */
#ifndef WEFT_WIRE_WIRE_H
#define WEFT_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "prov/wire/addr.h"

struct mem_arena;
struct mem_keytab;
struct mem_regcache;
struct mem_region;
struct wire_ep;	  /* defined by each wire; begins with struct wire_ep_base */
struct wire_link; /* defined by each wire; begins with struct wire_link_base */

/* Longest put_notify. */
#define WIRE_NOTIFY_MAX (UINT64_C(1) << 40)

/* Room for control packets is never taken by data (rule B3). */
enum wire_class { WIRE_CONTROL, WIRE_DATA };

/* What a link can do; true of it once it is up. */
struct wire_caps {
	uint32_t lanes;	    /* numbered from 0 */
	size_t max_packet;  /* bytes of one packet, at least 4096 */
	size_t max_segment; /* bytes of one put or get */
	bool imm;	    /* segments may carry 32 bits of immediate data */
	bool ordered;	    /* segments of one lane arrive in order */
	bool passive;	    /* put and get need no libfabric call at the target */
	bool local; /* memory of ours that segments name must be registered: mem_add */
	uint32_t inlined; /* with `local`: a put of up to so many bytes needs no handles
			   * (NULL): the bytes go with the request */
	bool raw;	  /* put and get may name peer memory by plain address (one copy).
			   * With `local` the memory is registered at the peer as well, has a
			   * name there (mem_name), and can only be read by it */
	bool lends;	  /* with `raw`: memory has a name for its peer where it was lent
			   * (lend),       and can only be read by it */
	bool notify;	  /* put_notify */
	bool atomic;	  /* atomic: and the peer's memory is changed atomically by its
			   * device alone (rule E4) */
	size_t bulk;	  /* bytes of one of the peer's bulk slots; 0: none can be read */
	uint32_t joints;  /* transfers that both ends may copy at once; 0: none. Where
			   * there are any, raw segments are done in the call */
};

/* A bulk slot of one's own. */
struct wire_bulk {
	void *at; /* caps.bulk bytes */
	uint32_t slot;
	uint32_t turn; /* how often it was given out: tells this use from the next */
};

/* A transfer that both ends of a link copy at once: see joint_open. */
struct wire_joint {
	uint32_t cell;	 /* which of the owner's */
	uint32_t turn;	 /* how often it was given out: tells this use from the next */
	uint32_t pieces; /* of the transfer, at most WIRE_JOINT_MAX */
	uint32_t mine;	 /* owner: pieces that it took itself */
	uint32_t theirs; /* owner, once closed: pieces that the peer took */
	uint64_t link;	 /* owner: names the link, also after its end */
};

#define WIRE_JOINT_MAX	0xffffffu
#define WIRE_JOINT_NONE UINT32_MAX

enum wire_joint_state {
	WIRE_JOINT_BUSY,  /* the peer has not finished all that it took */
	WIRE_JOINT_DONE,  /* it has */
	WIRE_JOINT_BROKEN /* some of it is missing */
};

/* Memory of the peer. */
struct wire_remote {
	uint64_t addr; /* key: address or offset as the application gave it; raw: address
			*/
	uint64_t key;  /* raw: what mem_name of the peer said of the registration that
			* the memory is in, or lend of the memory itself, and not trusted;
			* unused where the wire has neither */
	bool raw; /* no key: memory that the peer itself announced for this transfer */
};

/*
 * What the target of put_notify hears. The link carries it and doesn't look into it; the
 * target can't trust it. data and op are not both 0.
 */
struct wire_notice {
	uint64_t data;
	uint32_t op;
	bool ordered; /* the target hears of it after all notices that were given before
		       * it on this link; not set at the target */
};

/*
 * Room that is reserved already: the next packet of class WIRE_DATA may be written at
 * `at` if it is no longer than `room` (and caps.max_packet), and is committed from there
 * like any other. There is none where room is negative: pkt_reserve knows more. Any call
 * on the link may change both.
 */
struct wire_slot {
	void *at;
	int64_t room;
};

/* For whoever wants to close the way through a link's slot. Never changes. */
extern const struct wire_slot wire_slot_none;

/* One piece of a put or a get. local describes exactly len bytes; it is read during the
 * call only, the memory it points to until segment_done. handles likewise. */
struct wire_segment {
	const struct iovec *local;
	void *const *handles; /* caps.local: what mem_add gave, for each of local */
	size_t local_count;
	struct wire_remote remote;
	size_t len;
	uint32_t lane;
	bool placed; /* a put: done means that the bytes are in the peer's memory, and not
		      * that they will be whatever happens here (rule E3) */
	void *cookie; /* handed back by segment_done */
};

/* Of 8 bytes that lie at a multiple of 8, in the byte order of both hosts. */
struct wire_atomic {
	uint64_t addr; /* as wire_remote */
	uint64_t key;
	bool compare; /* writes operand where expect is there; else adds it */
	uint64_t operand;
	uint64_t expect;
	uint64_t cookie; /* handed back by atomic_done */
};

struct wire_events {
	/*
	 * A link is ready: one that was dialled (peer_ctx is what dial was given), or one
	 * that a peer opened (peer_ctx NULL; the receiver of the event sets
	 * link->peer_ctx). From now on packets may be sent and may arrive.
	 */
	void (*link_up)(void *arg, struct wire_link *link);
	/*
	 * A link is gone, or a dial failed; err is -FI_ECONNREFUSED (nobody there),
	 * -FI_EHOSTUNREACH (not a peer that this wire can reach), -FI_ECONNRESET (it
	 * died), -FI_EACCES (not allowed), -FI_ESHUTDOWN (it closed its endpoint). All
	 * its segments were reported before. The link must not be used after this
	 * returns.
	 */
	void (*link_down)(void *arg, struct wire_link *link, int err);
	/* A packet; valid until the callback returns. The bytes come from a peer: not
	 * trusted, and still writable by it: copy a field before it is checked. */
	void (*packet)(void *arg, struct wire_link *link, const void *pkt, size_t len);
	void (*segment_done)(void *arg, struct wire_link *link, void *cookie, int err);
	/* The same of a put that put_soon took and that went well, by a key that no
	 * counter of the peer's wants to hear of; or segment_done, for any reason. Only
	 * from wires that have put_soon. */
	void (*put_over)(void *arg, struct wire_link *link, void *cookie);
	/* Where caps.atomic: what was there before; err: it was not carried out, but
	 * -FI_ECONNABORTED: nobody can say, and it may still be. In the order of the
	 * calls.
	 */
	void (*atomic_done)(void *arg, struct wire_link *link, uint64_t cookie,
			    uint64_t was, int err);
	/* Where caps.notify: all `len` bytes of a put of the peer are in memory (rule
	 * A8). Once for each put_notify that didn't fail there. */
	void (*arrived)(void *arg, struct wire_link *link, const struct wire_notice *n,
			uint64_t len);
};

struct wire_ep_attr {
	struct wire_addr addr; /* in: wanted (port 0: any). See wire_ep_base.addr */
	bool addr_any;	       /* no host was asked for: answer on every local address */
	uint64_t incarnation;  /* random, never 0: tells this endpoint from an earlier one
				* at the same address */
	struct mem_keytab *keys; /* registrations that peers may use; names the domain:
				  * its endpoints have the same */
	struct mem_arena *arena; /* memory that some of them are in; NULL: none */
	const struct wire_events *events;
	void *arg;
	bool no_cma;	 /* shm: as if cross-memory attach were refused (FI_WEFT_CMA=0) */
	bool no_bulk;	 /* as if memory for bulk slots were refused */
	bool no_imports; /* memory of peers' GPUs isn't mapped here, nor ours there */
	bool port_held; /* the port of addr is this process's: somebody else listens at it
			 */
	const struct wire_ops *near; /* joined.h: for peers on this host */
	const struct wire_ops *far;  /* joined.h: for all others */
};

/* A number that only grows. */
struct wire_counter {
	const char *name; /* "uet.resent"; static */
	uint64_t value;
};

/* A way to a peer that work is spread over: a queue pair, a path. */
struct wire_lane {
	const struct wire_addr *peer; /* its door */
	uint32_t number;
	uint32_t rail;
	bool up;
	uint64_t packets; /* or requests, that were given to it; */
	uint64_t bytes;	  /* theirs */
	uint64_t lost;	  /* of them: taken for lost; 0 where a lane loses none alone */
	uint64_t retired; /* how often it was given up */
};

typedef void wire_lane_fn(void *arg, const struct wire_lane *lane);

struct wire_ops {
	const char *name;      /* "shm" */
	const char *what;      /* one line for people */
	struct wire_caps caps; /* the most that a link of this wire can do */
	bool remote;	       /* reaches peers on other hosts */
	bool asked;	       /* used only where it is asked for by name */
	bool single;	       /* an address has no contexts: addr.context is 0 */

	/* Why this wire can't be used just now, in words (good until the thread calls it
	 * again); NULL: it can, and *devices names what it uses, or is NULL. No such
	 * function: it always can. */
	const char *(*absent)(const char **devices);
	/* What is to be known of its devices, and of how links use them: lines, cut where
	 * there is no more room. NULL: nothing. */
	void (*describe)(char *text, size_t len);

	/* What the endpoint has done and suffered, for people: how many of at most max
	 * were written. The names are in weft/weft_fi.h. NULL: nothing is counted. */
	uint32_t (*counters)(struct wire_ep *ep, struct wire_counter *at, uint32_t max);

	/* Those to peers that are reached now. `each` may not call the wire. NULL: there
	 * is nothing to tell them apart by. */
	void (*lanes)(struct wire_ep *ep, wire_lane_fn *each, void *arg);

	/* Opens the door. -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_ENOMEM, -FI_EMFILE. */
	int (*ep_open)(const struct wire_ep_attr *attr, struct wire_ep **ep);
	/* Closes all links without upcalls; peers see link_down. */
	void (*ep_close)(struct wire_ep *ep);

	/*
	 * Starts to connect; never blocks. *link is valid until link_down. One attempt:
	 * the peer layer decides whether to try again. An immediate refusal is returned,
	 * without an upcall. Dialling one's own address is allowed.
	 */
	int (*dial)(struct wire_ep *ep, const struct wire_addr *to, void *peer_ctx,
		    struct wire_link **link);
	/* Gives a link up from this side, without an upcall; what it holds is given back
	 * by the next progress. */
	void (*hangup)(struct wire_link *link);

	/*
	 * Room for one packet of len bytes, 8-byte aligned, or NULL when there is none
	 * now (then progress later makes some, and a sleeper is woken for it). The caller
	 * fills it and commits before any other call on this link; commit may shorten it.
	 */
	void *(*pkt_reserve)(struct wire_link *link, size_t len, enum wire_class cls);
	void (*pkt_commit)(struct wire_link *link, void *pkt, size_t len);

	/*
	 * Moves one segment. 1: done, no segment_done follows. 0: under way. -FI_EAGAIN:
	 * no room now. -FI_ENOKEY, -FI_EACCES, -FI_EINVAL (out of bounds), -FI_EFAULT:
	 * refused, nothing follows. Segments on one lane of an ordered link take effect
	 * in the order of the calls, and before any packet that is committed after they
	 * are done.
	 */
	int (*put)(struct wire_link *link, const struct wire_segment *seg);
	int (*get)(struct wire_link *link, const struct wire_segment *seg);

	/*
	 * One segment between memory of GPUs of this process and of the peer, by key,
	 * without the host: 1, done; -FI_EPERM: not this way, or not yet; else it failed.
	 * In the order of the calls, as put and get. NULL: no link has it.
	 */
	int (*move_device)(struct wire_link *link, const struct wire_segment *seg,
			   bool write);

	/*
	 * Where caps.notify: a put that the target hears of by `arrived`, in one call
	 * whatever its length (up to WIRE_NOTIFY_MAX, and 0: then remote isn't looked
	 * at); the link cuts and spreads it. Returns as put does, and takes memory as put
	 * does: `local` is read until segment_done, which says that the target's link has
	 * consumed it (rule A9), so that `arrived` has been called or is about to be
	 * without anything more from this side. An operation that fails raises nothing.
	 */
	int (*put_notify)(struct wire_link *link, const struct wire_segment *seg,
			  const struct wire_notice *n);

	/*
	 * Where caps.atomic: 0: under way, atomic_done follows, from progress only, after
	 * those of earlier calls. -FI_EAGAIN: no room now. NULL: no link of the wire has
	 * it, whatever is asked for.
	 */
	int (*atomic)(struct wire_link *link, const struct wire_atomic *a);

	/*
	 * Where caps.local: makes memory of this process known to the hardware, so that
	 * segments of any link of the endpoint may name it, and makes it unknown again.
	 * Whole pages; the handle is not NULL. -FI_ENOMEM: there is no room for more at
	 * this time; -FI_EFAULT: it isn't there. mem_drop may come while segments that
	 * name it are under way only right before ep_close; they end without touching it.
	 * Asked through a cache (prov/mem/regcache.h) which the engine opens, closes and
	 * asks while segments are under way. NULL where caps.local is false on every
	 * link.
	 */
	int (*mem_add)(struct wire_ep *ep, void *start, size_t len, void **handle);
	void (*mem_drop)(struct wire_ep *ep, void *handle);
	/*
	 * Where caps.local and caps.raw: the name by which the peer of any link of this
	 * endpoint reaches that registration (wire_remote.key); no peer does before it is
	 * asked for. The same until mem_drop, and not used again soon after: a peer that
	 * is late must not find other memory. 0: there is no memory for it.
	 * NULL where plain addresses are enough.
	 */
	uint64_t (*mem_name)(struct wire_ep *ep, void *handle);

	/*
	 * Where caps.lends: lets the peer of this link, and nobody else, read memory by
	 * raw gets, whose wire_remote.key is the name that is returned; 0: no room for
	 * more just now. unlend: the memory isn't looked at any more once it returns,
	 * also if the peer isn't through; it must come for each name, and may after the
	 * end of the link.
	 */
	uint64_t (*lend)(struct wire_link *link, const void *start, size_t len);
	void (*unlend)(struct wire_ep *ep, uint64_t name);

	/*
	 * A key that peers will be able to use, and one that they may not any more, for
	 * wires whose hardware wants to know the memory of keys; NULL: the table is all
	 * that the wire looks at. key_add comes before peers may use the key, and
	 * directly after ep_open for each key that exists then (a peer that is faster is
	 * refused as if the key weren't there yet); once for each endpoint of the domain.
	 * What it registers may be shared by all of them: the domain is known by
	 * wire_ep_attr.keys. Not 0: the registration fails with it: -FI_ENOMEM (locked
	 * memory, or the device's), -FI_EFAULT (memory that isn't there), -FI_EOPNOTSUPP
	 * (more than the device can have at once); the wire has logged why, in words.
	 * region->incarnation isn't set. What counters want to hear of accesses by this
	 * key is known by then (mem_keytab_wanted); a key whose region gets one later is
	 * dropped and added again.
	 *
	 * key_drop: after the key has left the table, before quiesce; for each key that
	 * was added; ep_close drops what is left. One that is dropped and added again at
	 * once (its pages changed) stays in the table. Peers that look it up are refused
	 * from its return on; quiesce says when none can be using it.
	 */
	int (*key_add)(struct wire_ep *ep, uint64_t key, const struct mem_region *region);
	void (*key_drop)(struct wire_ep *ep, uint64_t key);

	/* Which counters of the peer want to hear of puts and gets on this link
	 * (MEM_EVENTS_*); once set, for good. True of a key that was used, once a put or
	 * get by it is done. NULL: none on any link. */
	uint32_t (*events)(struct wire_link *link);

	/*
	 * One piece of a put or get that is done in the call or not at all, by key, from
	 * or to memory that need not be registered. True:
	 * done, as where put returns 1. False: ask put, which may also say what is wrong;
	 * bytes may have moved that it moves again. Leaves the link's slot as it is. Both
	 * are NULL where a wire has nothing of the kind.
	 */
	bool (*put_now)(struct wire_link *link, uint64_t key, uint64_t addr,
			const void *from, size_t len);
	bool (*get_now)(struct wire_link *link, uint64_t key, uint64_t addr, void *to,
			size_t len);

	/*
	 * A put of at most caps.inlined bytes by key, with nothing that makes it special.
	 * True: under way, as where put returns 0. False: nothing has happened, ask put.
	 * NULL where a wire has nothing that is quicker than put.
	 */
	bool (*put_soon)(struct wire_link *link, uint64_t key, uint64_t addr,
			 const void *from, size_t len, void *cookie);

	/*
	 * Bulk slots: a little memory of this endpoint that all its peers can read, for
	 * messages that both sides copy at once. The owner takes a slot, fills it, names
	 * it (slot, turn, length) in a packet, and gives it back when the reader said in
	 * another that it is through, or can't read any more for all that matters. All
	 * four are NULL where caps.bulk is 0 on every link.
	 *
	 * bulk_get: the slot that was given back last. -FI_EAGAIN: all taken; -FI_ENOMEM:
	 * there are none.
	 * bulk_peer: the bytes of a slot that a peer named (not trusted); NULL: no such
	 * slot, or not so long.
	 * bulk_holds: asked after the bytes were copied: whether they were those of that
	 * turn from beginning to end. False where the owner took the slot back meanwhile.
	 */
	int (*bulk_get)(struct wire_ep *ep, struct wire_bulk *bulk);
	void (*bulk_put)(struct wire_ep *ep, uint32_t slot);
	const void *(*bulk_peer)(struct wire_link *link, uint32_t slot, size_t len);
	bool (*bulk_holds)(struct wire_link *link, uint32_t slot, uint32_t turn);

	/*
	 * Joint transfers: one end (the owner) announces a transfer in pieces to the
	 * other in a packet (cell, turn, pieces); then both take pieces, the owner from
	 * the first on, its peer from the last, until they meet, and move what they took
	 * by put and get. So a peer that is busy elsewhere delays nothing. All are NULL
	 * where caps.joints is 0 on every link.
	 *
	 * joint_open: -FI_EAGAIN when all cells are in use.
	 * joint_take: the next piece, or WIRE_JOINT_NONE: none is left, or this use is
	 * over. The peer (owner false) reports each piece by joint_did before it takes
	 * another; `ok` false: it isn't there.
	 * joint_look: after the last take: whether every piece was taken, and how far the
	 * peer is with its own.
	 * joint_close: the peer takes no more. joint_quiet: after that, true once it
	 * can't be writing any more (rules D3, D4); the cell is given back then. These
	 * two may be called after the end of the link.
	 */
	int (*joint_open)(struct wire_link *link, uint32_t pieces, struct wire_joint *j);
	uint32_t (*joint_take)(struct wire_link *link, struct wire_joint *j, bool owner);
	void (*joint_did)(struct wire_link *link, const struct wire_joint *j, bool ok);
	enum wire_joint_state (*joint_look)(struct wire_link *link,
					    const struct wire_joint *j);
	void (*joint_close)(struct wire_ep *ep, struct wire_joint *j);
	bool (*joint_quiet)(struct wire_ep *ep, const struct wire_joint *j);

	/* Moves what is there, upcalls included; at most about `budget` packets. Returns
	 * how many things happened, so that 0 means idle. */
	int (*progress)(struct wire_ep *ep, int budget);

	/*
	 * Before sleeping: 0 when it is safe to wait for the descriptor to become
	 * readable, -FI_EAGAIN when there is work to do first. Stays armed until the next
	 * progress().
	 */
	int (*arm)(struct wire_ep *ep);
	int (*fd)(struct wire_ep *ep);
	/*
	 * When (monotonic ns) whoever sleeps should make progress and arm again although
	 * nothing was heard, so that a peer that breaks the rules can't keep the others'
	 * news from us for ever. UINT64_MAX, or no such function: never.
	 */
	uint64_t (*look_due)(struct wire_ep *ep);

	/*
	 * After the key was removed from the table: returns 0 when no peer can still be
	 * writing or reading the memory by that key, -FI_EBUSY when one still may at the
	 * deadline (monotonic ns). Rules D3, D4. May be called without the endpoint's
	 * lock.
	 */
	int (*quiesce)(struct wire_ep *ep, uint64_t key, uint64_t deadline_ns);
};

/* Every wire's endpoint and link begin with these; read by anybody, written by the wire
 * (peer_ctx: by whoever handles link_up). */
struct wire_ep_base {
	const struct wire_ops *ops;
	struct wire_addr addr; /* the door's address, port filled in */
};

struct wire_link_base {
	const struct wire_ops *ops; /* of the link's own wire */
	struct wire_ep *ep;	    /* likewise */
	void *peer_ctx;
	struct wire_addr peer;	      /* the peer's door */
	uint64_t peer_incarnation;    /* 0 until up */
	struct wire_caps caps;	      /* of this link, once up */
	const struct wire_slot *slot; /* never NULL, never another; see there */
	struct wire_link *doomed;     /* prov/peer's: the next one to hang up */
	/* Set before link_down where an errno says too little; a constant. */
	const char *why;
};

static inline struct wire_ep_base *wire_ep_base(struct wire_ep *ep)
{
	return (struct wire_ep_base *)ep;
}

static inline struct wire_link_base *wire_link_base(struct wire_link *link)
{
	return (struct wire_link_base *)link;
}

/* All wires that were built, best first. */
extern const struct wire_ops *const wire_table[];
extern const size_t wire_count;

#endif
