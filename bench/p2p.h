/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of a point-to-point measurement: the endpoint, its memory and the other
 * process. A measurement is a function that both sides call with the same size and count;
 * role 0's value is how long the count took, in ns.
 */
#ifndef WEFT_BENCH_P2P_H
#define WEFT_BENCH_P2P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/node.h"
#include "bench/pair.h"

enum {
	P2P_LINE = 128, /* cells of 8 B are at least so far apart */
	P2P_MOST = 16 << 20,
	P2P_LAPS = 1 << 14,
};

/* Where the buffers of a measurement come from. */
struct p2p_memory {
	const char *name;
	void *(*alloc)(struct node *n, size_t len); /* dies when there is none */
	void (*release)(struct node *n, void *mem, size_t len);
};

/* The kind of that name, or NULL. */
const struct p2p_memory *p2p_memory_find(const char *name);

/* What a provider asks of the target of writes. */
enum p2p_target {
	P2P_TARGET_CARRIES, /* bytes land in the target's libfabric calls */
	P2P_TARGET_DRAINS, /* they land alone, but in the end nothing more goes without */
	P2P_TARGET_RESTS,  /* it need not call libfabric at all */
	P2P_TARGET_COUNT
};

extern const char *const p2p_target_text[P2P_TARGET_COUNT];

struct p2p {
	struct pair *pair;
	struct node node;
	const struct p2p_memory *memory;
	size_t most; /* bytes of the largest size */
	/* One block: what is sent, where data arrive, and the two cells of 8 B. */
	char *mem, *out, *in;
	_Atomic uint64_t *cell;			     /* polled */
	size_t in_offset, cell_offset, quiet_offset; /* quiet: a line that nobody polls */
	struct node_region region;
	struct node_target target; /* the other's block */
	enum p2p_target target_mode;
	uint64_t polled; /* the last value that was written to each cell */
	uint64_t effort; /* of this process in a stream; ns of its processor */
	bool slow;	 /* processors come and go: no latency of a line */
	/* Where not NULL: how long each of the last P2P_LAPS turns of a latency test
	 * took; role 0. */
	uint64_t *lap;
	uint64_t lap_began;
};

/* A turn begins, and is over. */
void p2p_lap_begin(struct p2p *p);
void p2p_lap_end(struct p2p *p, uint64_t turn);

typedef uint64_t p2p_fn(struct p2p *p, size_t size, uint64_t count);

struct p2p_test {
	const char *name;
	p2p_fn *run;
	bool writes;
	bool sleeps; /* of its own endpoints, which wait for their queues */
	/* Figure from bytes, count and time, in the test's unit. */
	double (*figure)(double size, double count, double ns);
	bool turns; /* whose times are kept: a latency */
};

void p2p_open(struct p2p *p, struct pair *pair, const char *provider, bool sleeps,
	      const struct p2p_memory *memory, size_t most);
void p2p_close(struct p2p *p);

/* Messages: see p2p_msg.c. */
uint64_t p2p_msg_latency(struct p2p *p, size_t size, uint64_t count);
uint64_t p2p_msg_stream(struct p2p *p, size_t size, uint64_t count);
/* The same; the value is what both processes have used of their processors, in ns. */
uint64_t p2p_msg_effort(struct p2p *p, size_t size, uint64_t count);
/* Of a stream of that size: messages per acknowledgement. */
uint64_t p2p_msg_window(size_t size);

/* Writes: see p2p_write.c. p2p_write_probe finds out p->target_mode; both sides call it
 * before all others. */
void p2p_write_probe(struct p2p *p);
uint64_t p2p_write_polled(struct p2p *p, size_t size, uint64_t count);
uint64_t p2p_write_done(struct p2p *p, size_t size, uint64_t count);
/* The same two with a target that calls after every look, though it may not have to. */
uint64_t p2p_write_called(struct p2p *p, size_t size, uint64_t count);
uint64_t p2p_write_called_done(struct p2p *p, size_t size, uint64_t count);
uint64_t p2p_write_stream(struct p2p *p, size_t size, uint64_t count);

#endif
