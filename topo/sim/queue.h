/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second engine: packets in first-in-first-out queues of switches, for at most 1,024
 * hosts, where what matters is how much the switches hold. Two tiers: leaves of hosts,
 * and spines that join all leaves. Each sender's transfers are cut and spread by the
 * transmit machine of prov/dqplb, the one that the provider uses, with its limits. A
 * packet that finds a queue full waits where it is, with all behind it (as pause frames
 * do it); one that finds more than `mark` bytes is marked (ECN), which is counted only:
 * nobody slows down by it. A segment is done when its last packet has arrived and the
 * sender has heard of it.
 */
#ifndef WEFT_TOPO_SIM_QUEUE_H
#define WEFT_TOPO_SIM_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "prov/dqplb/tx.h"

enum { QUEUE_HOSTS_MAX = 1024, QUEUE_SAMPLES = 60 };

struct queue_net {
	uint32_t hosts, per_leaf, spines;
	double rate;	 /* bytes/s of a host's port, and of a leaf's to each spine */
	double latency;	 /* s from port to port */
	uint32_t packet; /* bytes */
	uint64_t buffer; /* bytes of a queue; 0: without end */
	uint64_t mark;	 /* bytes */
};

/* `bytes` from each sender to one receiver, host 0; senders are the last hosts. */
struct queue_incast {
	uint32_t senders;
	uint64_t bytes;
	struct dqplb_tx_config tx; /* lanes and limits of each */
};

struct queue_result {
	double time;	/* s until the last sender has heard of its last segment */
	uint64_t peak;	/* bytes in all switches together, at most */
	uint64_t queue; /* in one queue, at most */
	uint64_t packets, marked, events;
	/* Bytes in all switches, the most in each part of the time. */
	uint64_t sample[QUEUE_SAMPLES];
	double sample_time; /* s of each */
};

/* sample_time of *result is to be set. 0, -ENOMEM, -EINVAL: more hosts than there can be,
 * or a configuration that the machine refuses. */
int queue_incast(const struct queue_net *net, const struct queue_incast *incast,
		 struct queue_result *result);

#endif
