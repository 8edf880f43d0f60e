/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bad network, for tests: between whoever sends datagrams and uet_send. Without it
 * (NULL) everything goes straight through. What happens to the n-th datagram depends on
 * the seed and on nothing else.
 */
#ifndef WEFT_WIRE_UET_UET_SHIM_H
#define WEFT_WIRE_UET_UET_SHIM_H

#include "prov/wire/uet/uet_send.h"

/* Datagrams that are held back at once; further ones leave at once. */
#define UET_SHIM_HELD 512
/* Longer ones aren't touched. */
#define UET_SHIM_LEN 9216

/* Rates are of 2^32: how many of so many datagrams. */
struct uet_shim_config {
	uint64_t seed;
	uint32_t drop;
	uint32_t ack_drop; /* more, of those that are UET_TX_ACK */
	uint32_t dup;	   /* sent twice */
	uint32_t corrupt;  /* a bit is another */
	uint32_t mark;	   /* as a congested switch marks those that may be */
	uint32_t reorder;  /* held back, up to reorder_ns */
	uint64_t reorder_ns;
	uint64_t delay_ns; /* all of them */
	uint32_t holes;	   /* a bit for each path that swallows everything ... */
	uint64_t hole_from, hole_to; /* ... of the n-th datagrams from, before to */
};

struct uet_shim_stats {
	uint64_t seen, dropped, duplicated, corrupted, marked, held, swallowed, full;
};

struct uet_shim;

/*
 * "seed=N,drop=RATE,ackdrop=RATE,dup=RATE,corrupt=RATE,mark=RATE,reorder=RATE:US,
 * delay=US,hole=PATH[+PATH...][:FROM:TO]", any of them in any order; rates are 0 to 1 as
 * in 0.05. False: it is something else; *why says what.
 */
bool uet_shim_parse(const char *text, struct uet_shim_config *config, const char **why);

struct uet_shim *uet_shim_open(const struct uet_shim_config *config);
void uet_shim_close(struct uet_shim *shim);
const struct uet_shim_stats *uet_shim_stats(const struct uet_shim *shim);

/* What uet_send is: how many it took. */
typedef size_t uet_shim_out(void *arg, const struct uet_tx *tx, size_t count);

/* As uet_send. shim NULL: straight to `out`. `now` in ns. */
size_t uet_shim_send(struct uet_shim *shim, const struct uet_tx *tx, size_t count,
		     uint64_t now, uet_shim_out *out, void *arg);
/* Lets go what was held long enough. */
void uet_shim_poll(struct uet_shim *shim, uint64_t now, uet_shim_out *out, void *arg);
/* When the next is due; UINT64_MAX: none is held. */
uint64_t uet_shim_due(const struct uet_shim *shim);

#endif
