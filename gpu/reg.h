/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations of device memory, remembered. What a registration is, is the owner's: a
 * memory region of a provider over a DMA buffer, a mapping that peers were given, or
 * nothing, where device memory goes through the host. Making one takes from tens of
 * microseconds to a tenth of a second, so that each is made once, used many times, and
 * may be made by a thread of the cache while its first users copy instead.
 *
 * Memory may be freed and its addresses used anew behind our back. Whoever knows when
 * that happens (an allocator's callback) says so with reg_invalidate(); unless the owner
 * has promised that (REG_TOLD), every hit asks the driver for the id of each piece below
 * the registration, and one that has changed makes the entry a dead one.
 *
 * An entry's life, changed by entry_turn() only:
 *
 *   NEW -> REGISTERING -> READY -> DRAINING -> DEAD
 *                      -> DEAD (refused)
 *
 * DRAINING: nobody finds it any more, and it ends with its last user.
 *
 * Threads: every call by any thread. One lock, which is not held while the owner's
 * functions run.
 */
#ifndef WEFT_GPU_REG_H
#define WEFT_GPU_REG_H

#include "gpu/gpu.h"

/* How peers reach what was registered; why, where it is not the first. */
enum reg_path {
	REG_PATH_NONE,	 /* not yet, or refused */
	REG_PATH_DMABUF, /* a NIC, by a DMA buffer of ours */
	REG_PATH_PEER,	 /* a NIC, by the address itself: the kernel knows the device */
	REG_PATH_IPC,	 /* processes of this host, by a mapping */
	REG_PATH_STAGED, /* nobody: through pinned memory of the host */
	REG_PATH_COUNT
};

/* "dma-buf", "peer memory", "ipc", "staged", "none". */
const char *reg_path_name(enum reg_path path);

/* What an owner has made. */
struct reg_made {
	enum reg_path path;
	void *handle;	       /* the owner's */
	char why[GPU_WHY_LEN]; /* why not a better path; "" */
};

struct reg_ops {
	/* Registers [addr, addr + len), device memory of pieces that start with *first.
	 * 0 or a negative errno; a path that stages is no error. */
	int (*make)(void *arg, uint64_t addr, uint64_t len, const struct gpu_range *first,
		    struct reg_made *made);
	/* Ends one; from any thread that calls the cache, once. */
	void (*end)(void *arg, struct reg_made *made);
};

enum reg_flags {
	REG_TOLD = 1, /* reg_open(): reg_invalidate() is called for whatever is freed */

	REG_LATER = 2, /* reg_get(): do not wait; by the cache's thread */
	REG_KEEP = 4, /* reg_get(): stays until it is invalidated, however full it gets */
};

struct reg_limits {
	uint32_t entries; /* that are remembered without a user */
	uint64_t bytes;	  /* of them */
};

#define REG_BUCKETS 24

/* Counted since reg_open(). */
struct reg_stats {
	uint64_t hits, misses;
	uint64_t stale;	  /* found changed by the driver's ids */
	uint64_t evicted; /* to make room */
	uint64_t failed;
	uint64_t paths[REG_PATH_COUNT];
	/* How long making one took: bucket i has those of less than 2^i us, and not less
	 * than half of that; the last has all that took longer. */
	uint64_t took[REG_BUCKETS];
};

struct reg;

/* What reg_get() gives: constant while it is held. */
struct reg_entry {
	uint64_t addr, len; /* all of what is registered, maybe more than was asked */
	int device;
	struct reg_made made;
};

/* ops, gpu and arg live as long as the cache. -ENOMEM, -EAGAIN: no thread. */
int reg_open(struct gpu *gpu, const struct reg_ops *ops, void *arg, uint32_t flags,
	     const struct reg_limits *limits, struct reg **reg);

/* Ends every registration. Nothing may be held. */
void reg_close(struct reg *reg);

/*
 * The registration of [addr, addr + len), device memory, for the caller until reg_put().
 * Errors: -EINVAL (no device memory, or of two devices), -EAGAIN (REG_LATER: it is being
 * made), -EBUSY (`captured`: there is none, and one cannot be made while the caller's
 * stream is captured: register before), and what the owner's make() returned. The same
 * range asked for by several threads at once is made once.
 */
int reg_get(struct reg *reg, const void *addr, uint64_t len, uint32_t flags,
	    bool captured, const struct reg_entry **entry);
void reg_put(struct reg *reg, const struct reg_entry *entry);

/* For memory that is registered in parts (an allocator's segments): the registration that
 * has addr, and how many of the len bytes there it covers (*part). Makes nothing:
 * -ENOENT. */
int reg_part(struct reg *reg, const void *addr, uint64_t len,
	     const struct reg_entry **entry, uint64_t *part);

/* That memory is freed, or about to be: nothing of it is found any more, and what is not
 * held is ended before this returns. How many registrations that were. */
uint32_t reg_invalidate(struct reg *reg, const void *addr, uint64_t len);

void reg_stats_get(struct reg *reg, struct reg_stats *stats);

#endif
