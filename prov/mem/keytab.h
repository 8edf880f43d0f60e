/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key table of a domain (rule D1): which registered memory a key names. It lives in a
 * sealed memfd, so that a peer on the same host reads it by itself and a passive target
 * need not answer. The owner is the only writer. Readers check everything that they find.
 */
#ifndef WEFT_MEM_KEYTAB_H
#define WEFT_MEM_KEYTAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/list.h"

#define MEM_REGION_IOV 4

/* A registered region: pieces laid back to back. */
/* What a file descriptor stands for (a dmabuf): devices can have it without the mapping.
 */
struct mem_dmabuf {
	int fd;
	uint64_t offset; /* of the region's first byte */
};

struct mem_region {
	struct iovec iov[MEM_REGION_IOV];
	uint64_t share[MEM_REGION_IOV]; /* where each piece is shared (arena.h); 0: not */
	uint32_t iov_count;
	uint64_t access; /* FI_REMOTE_READ | FI_REMOTE_WRITE, ... */
	bool virt_addr;	 /* remote address is a virtual address (first piece), else an
			  * offset  from the region's start */
	bool device;	 /* of a GPU: no process but its own moves the bytes (device.h) */
	/* NULL: nothing but what is mapped. Of one piece; as long as the region is. */
	const struct mem_dmabuf *dmabuf;
	uint32_t incarnation; /* set by the table: differs for each registration (rule D2)
			       */
};

/* ---- owner
 * ------------------------------------------------------------------------------ */

struct mem_keytab;

/* capacity: most registrations at once (rounded up to a power of two). The memory is
 * sparse: only what was used is there. -FI_ENOMEM, -FI_EMFILE. Insert and remove are
 * serialised by the table itself. */
int mem_keytab_open(uint32_t capacity, struct mem_keytab **tab);
void mem_keytab_close(struct mem_keytab *tab);

/* A key of the table's choosing (never the same twice in a row). -FI_ENOMEM: full. */
int mem_keytab_insert(struct mem_keytab *tab, const struct mem_region *region,
		      uint64_t *key);
/* The caller's key: -FI_ENOKEY when it is in use. */
int mem_keytab_insert_at(struct mem_keytab *tab, const struct mem_region *region,
			 uint64_t key);
/* What the key gives access to from now on; it was inserted without any. */
int mem_keytab_grant(struct mem_keytab *tab, uint64_t key, uint64_t access);
/* From the return on no new access begins; ones under way are the wire's to wait for. */
int mem_keytab_remove(struct mem_keytab *tab, uint64_t key);

/* The descriptor to send to peers; stays the table's. */
int mem_keytab_fd(const struct mem_keytab *tab);

/* The owner wants to hear, for its counters, of each access that succeeded: for the
 * endpoint that the link leads to, and for the key. Once wanted, for good. */
#define MEM_EVENTS_EP 1u
#define MEM_EVENTS_MR 2u
void mem_keytab_want(struct mem_keytab *tab, uint32_t events);
/* What is wanted so far. From any thread. */
uint32_t mem_keytab_wanted(const struct mem_keytab *tab);

/*
 * Peers that may still be at work by a key although nobody here listens to them any more:
 * their endpoint was closed (rule D4). Embedded in what the wire keeps of such a peer.
 */
enum mem_keyuser_state {
	MEM_KEYUSER_IDLE, /* not by this key just now */
	MEM_KEYUSER_BUSY,
	MEM_KEYUSER_OVER /* never again by any */
};

struct mem_keyuser {
	struct list node;
	/* Both are called with the table's lock held, from any thread; never wait. */
	enum mem_keyuser_state (*look)(struct mem_keyuser *user, uint64_t key);
	void (*drop)(struct mem_keyuser *user); /* frees it */
};

/* Takes the user over: dropped when it is over, with the table at the latest. look and
 * drop are set. */
void mem_keytab_leave(struct mem_keytab *tab, struct mem_keyuser *user);
/* Whether one of them may be using this key, which was removed before. */
bool mem_keytab_in_use(struct mem_keytab *tab, uint64_t key);

/* ---- reader (a peer, or the owner for itself)
 * -------------------------------------------- */

struct mem_keyview;

/* Takes fd over. -FI_EINVAL when the memory isn't a sealed key table. */
int mem_keyview_open(int fd, struct mem_keyview **view);
void mem_keyview_close(struct mem_keyview *view);
/* A view of the owner's own table, without a copy of the descriptor. */
int mem_keyview_own(struct mem_keytab *tab, struct mem_keyview **view);

/*
 * What [addr, addr + len) under key means: fills iov (at most MEM_REGION_IOV pieces) with
 * addresses in the owner's process. -FI_ENOKEY: no such key; -FI_EACCES: registered
 * without `access`; -FI_EINVAL: not inside the region. Bounded time whatever the memory
 * holds.
 */
int mem_keyview_find(const struct mem_keyview *view, uint64_t key, uint64_t addr,
		     uint64_t len, uint64_t access, struct iovec *iov,
		     uint32_t *iov_count, uint32_t *incarnation);

/* MEM_EVENTS_* */
uint32_t mem_keyview_events(const struct mem_keyview *view);

/* The same, with where peers may find it. */
struct mem_place {
	struct iovec iov[MEM_REGION_IOV];
	uint64_t share[MEM_REGION_IOV]; /* of each piece's first byte; 0: not shared */
	uint32_t count;
	uint32_t incarnation;
	bool device; /* of a GPU */
};

int mem_keyview_locate(const struct mem_keyview *view, uint64_t key, uint64_t addr,
		       uint64_t len, uint64_t access, struct mem_place *place);

/*
 * A region of one piece that was looked up, for those who come again: what it says is
 * true while it is fresh. Nothing in it can be changed by the owner. The view must still
 * be open.
 */
struct mem_keyhit {
	const _Atomic(uint32_t) *seq_at; /* NULL: nothing was looked up */
	uint64_t key;
	uint64_t base;	 /* remote address of its first byte */
	uint64_t len;	 /* never 0 */
	uint64_t addr;	 /* in the owner's process; does not wrap */
	uint64_t share;	 /* where it is shared; 0: not. May be a lie */
	uint32_t seq;	 /* of the entry when it was read */
	uint32_t access; /* FI_REMOTE_READ | FI_REMOTE_WRITE, as far as granted */
};

/* False: no such key, not of one piece, of a GPU, or nonsense; then *hit is empty. */
bool mem_keyview_hit(const struct mem_keyview *view, uint64_t key,
		     struct mem_keyhit *hit);

/* Whether the registration is still there: for a wire that has said that it uses the key
 * (rule D3) and has a full fence behind that. */
static inline bool mem_keyhit_is_fresh(const struct mem_keyhit *hit)
{
	return atomic_load_explicit(hit->seq_at, memory_order_acquire) == hit->seq;
}

/* Whether [addr, addr + len) is inside; then *offset is from the region's start. */
static inline bool mem_keyhit_covers(const struct mem_keyhit *hit, uint64_t addr,
				     uint64_t len, uint64_t *offset)
{
	*offset = addr - hit->base;
	return *offset <= hit->len && len <= hit->len - *offset;
}

#endif
