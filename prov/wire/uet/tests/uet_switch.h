/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Senders that stream to one receiver through a switch, on a virtual clock: real delivery
 * machines at the ends, between them paths with a queue each, and behind those the one
 * queue to the receiver, which is what everybody shares. Queues drop what has no room and
 * mark (ECN) above a level. Answers come back over the same path, which has room for
 * them. The same for a seed, wherever it runs.
 */
#ifndef WEFT_UET_TESTS_UET_SWITCH_H
#define WEFT_UET_TESTS_UET_SWITCH_H

#include "prov/wire/uet/uet_pds.h"

#define UET_SWITCH_SENDERS 256u

struct uet_switch_config {
	uint32_t senders;   /* at most UET_SWITCH_SENDERS */
	uint32_t paths;	    /* of each sender; all senders' i-th ones are one queue */
	uint32_t bytes;	    /* of a packet */
	uint64_t rate;	    /* of the receiver's queue: bytes each second */
	uint64_t path_rate; /* of a path; 0: any */
	uint64_t base_rtt;  /* ns, when nothing waits */
	uint64_t room;	    /* bytes that a queue holds */
	uint64_t mark;	    /* bytes above which it marks; 0: never */
	uint64_t jitter_ns; /* by which packets are later than that, drawn */
	uint64_t back_ns;   /* by which answers are later, drawn: others' data is before
			       them */
	uint32_t payload;   /* of a full packet, as the link agreed; 0: pds.mtu */
	uint64_t start_ns;  /* a sender begins so long after the one before it */
	uint64_t run_ns;
	uint32_t loss; /* of so many packets one is lost, either way; 0: none */
	uint32_t hole; /* the path that swallows everything, both ways ... */
	uint64_t hole_from, hole_to; /* ... from then, before then (ns) */
	struct uet_pds_config pds; /* of all ends; events and what belongs to them not */
};

/* What one interval of the run saw. */
struct uet_switch_tick {
	uint64_t passed; /* bytes that left the receiver's queue */
	uint64_t queue;	 /* the longest it was, bytes */
};

struct uet_switch_sender {
	uint64_t delivered; /* payload bytes: all, each once */
	struct uet_paths paths;
	struct uet_nscc cc;
	struct uet_pds_stats stats;
	uint32_t path_used_late; /* bits: paths that carried data after hole_to */
	bool failed;
};

/* Called after each interval of tick_ns; got: payload bytes of each sender in it. */
typedef void uet_switch_watch(void *arg, uint64_t from_ns,
			      const struct uet_switch_tick *tick, const uint64_t *got);

struct uet_switch_result {
	uint64_t dropped, marked, passed;
	bool twice; /* a packet was delivered again: never */
	struct uet_switch_sender sender[UET_SWITCH_SENDERS];
};

/* False: no memory, or a configuration that can't be. */
bool uet_switch_run(const struct uet_switch_config *config, uint64_t seed,
		    uint64_t tick_ns, uet_switch_watch *watch, void *arg,
		    struct uet_switch_result *result);

#endif
