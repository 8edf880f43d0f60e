/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the libfabric provider "weft" offers beyond libfabric's own interface. Programs
 * that use it go on working with other providers: opening the operations fails there.
 *
 * Memory that peers on the same host share. RMA into such memory is load and store by the
 * initiator: no system call, nothing for the target to do.
 *
 *	struct weft_fi_mem_ops *mem;
 *
 *	if (fi_open_ops(&domain->fid, WEFT_FI_MEM_OPS, 0, (void **)&mem, NULL) == 0)
 *		ret = mem->alloc(domain, len, 0, &addr);
 */
#ifndef WEFT_WEFT_FI_H
#define WEFT_WEFT_FI_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_FI_MEM_OPS "weft_mem_ops"

/*
 * Both may be called from any thread and return 0 or a negative fi_errno value.
 *
 * The memory is the caller's like any other: registered with fi_mr_reg (all of it, or any
 * part), read and written freely. An aligned word of 8 bytes that a peer writes is seen
 * whole or not at all. A peer that has not used the memory yet writes the first few times
 * as into ordinary memory.
 *
 * A child made by fork(2) shares it with its parent. It does not outlive the process,
 * however that ends.
 */
struct weft_fi_mem_ops {
	size_t size; /* of this structure, as the provider knows it; fields that lie
		      * behind it are not there */

	/* Whole pages, zeroed. flags: none defined, 0. Counts as an open object of the
	 * domain. -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM, -FI_EMFILE. */
	int (*alloc)(struct fid_domain *domain, size_t len, uint64_t flags, void **addr);

	/* addr is what alloc gave. -FI_EBUSY: a registration of it is still open, or a
	 * peer may still be writing (fi_close of the registration said so). */
	int (*free)(struct fid_domain *domain, void *addr);
};

#define WEFT_FI_COUNT_OPS "weft_count_ops"

/* A number that only grows, of all endpoints of a domain together, those that were closed
 * not among them. */
struct weft_fi_count {
	const char *name; /* "uet.resent"; static storage of the provider */
	uint64_t value;
};

/* A queue pair or a path to a peer that is reached now. Its numbers begin again when the
 * peer was lost meanwhile, a path's also with a new context between the two. */
struct weft_fi_lane {
	fi_addr_t
		peer; /* in the endpoint's address vector; FI_ADDR_NOTAVAIL: not there */
	uint32_t number;  /* among the lanes to that peer */
	uint32_t rail;	  /* place of the device in FI_WEFT_RAILS, or of the interface */
	uint32_t up;	  /* 0: it was given up, and may come again */
	uint32_t unused;  /* 0 */
	uint64_t packets; /* of data that it was given; of a queue pair requests */
	uint64_t bytes;	  /* their payload */
	uint64_t lost;	  /* of them: taken for lost; 0 of a queue pair */
	uint64_t retired; /* how often it was given up */
};

/*
 * What the ways between hosts have done and suffered; of memory that is shared there are
 * no numbers. Called like anything else of the domain (its threading level); takes its
 * lock for a moment, so not many times a second. The names, of which there may be more in
 * another version:
 *
 *   uet.sent, uet.resent, uet.timeouts, uet.duplicates, uet.failed   packets over UDP,
 *	those that were sent again, waits for an answer that ended, packets that came
 *	twice, contexts between two hosts that failed
 *   verbs.packets, verbs.replays   messages of control channels, and those sent again
 *   verbs.segments, verbs.again   pieces given to queue pairs, and again to another one
 *   verbs.lanes_opened, verbs.lanes_retired, verbs.lanes_rebuilt   queue pairs of links;
 *	those that a path's error ended, and that an operation's own fault did
 *   verbs.silent, verbs.resumes   queue pairs that answered nothing; control channels
 *	that were made anew
 *   verbs.rail0_bytes, _downs, _ups ... verbs.rail7_bytes, _downs, _ups   by the device's
 *	place in FI_WEFT_RAILS: payload, and how often its port went and came back
 *   hmem.registered, hmem.found, hmem.changed, hmem.evicted, hmem.failed   of domains
 *	with FI_HMEM, and of the whole process: registrations of memory of GPUs that were
 *	made; that were there already; that were of memory freed or mapped anew meanwhile;
 *	that had to make room; that came to nothing
 *   hmem.dmabuf, hmem.staged   of those made: a NIC can be given it; it goes by the host
 *   hmem.exported, hmem.imported   pieces that processes of this host were given, and
 *were mapped of theirs hmem.under_128us, hmem.under_1ms, hmem.under_16ms, hmem.longer
 *what making took
 */
struct weft_fi_count_ops {
	size_t size; /* of this structure, as the provider knows it */

	/* *count: room in counts, then how many there are, of which no more than the room
	 * were written. 0, -FI_EINVAL, -FI_EOPBADSTATE (a child after a fork). */
	int (*read)(struct fid_domain *domain, struct weft_fi_count *counts,
		    size_t *count);
	/* Likewise. */
	int (*lanes)(struct fid_domain *domain, struct weft_fi_lane *lanes,
		     size_t *count);
};

#ifdef __cplusplus
}
#endif

#endif
