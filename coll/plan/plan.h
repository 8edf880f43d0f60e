/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan: what one rank does in one collective, as data. An algorithm (coll/algo)
 * builds it, the checker proves it, the executor and the simulator run it. Pure data: no
 * libfabric, no memory addresses, no element type.
 *
 * Space. A range names a buffer, a partition of that buffer into parts, and runs of
 * parts. A partition cuts `total` elements into `parts` pieces: balanced (piece i begins
 * at floor(i * total / parts)), by a table of displacements, or by a table bound late
 * (counts that are known only when the plan is issued; all late tables of a call come
 * from one snapshot), or folded: part i is as long as part i of another partition and
 * lies in slot i mod slots, for scratch that is used over and over.
 *
 * Time. Steps are grouped into loops, run one after the other; a straight piece of plan
 * is a loop of one trip. In trip t a step's peer and ranges have moved on by t times
 * their `advance`, modulo the number of ranks and of parts. So a ring of 131,072 ranks is
 * three steps. A loop's body is numbered trip-major: instance = loop base + trip * body +
 * index. The order of instances is the program order: every dependency points backwards
 * in it.
 *
 * Pairing. The k-th SEND from a to b (in a's program order) pairs with the k-th RECV from
 * a in b's plan; both must have the same length.
 *
 * Readiness. A RECV whose dependencies are done is READY: from then until it is done its
 * peer may write the range at any moment. A SEND by put may start only after its RECV is
 * READY: known from a READY message, or from `proof`, a RECV of the sender whose
 * completion implies it. Rules F1 to F6 of the protocol.
 */
#ifndef WEFT_PLAN_PLAN_H
#define WEFT_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plan_kind { PLAN_SEND, PLAN_RECV, PLAN_REDUCE, PLAN_COPY };

/* ANYBUF: a range at a peer that the sender does not know: where the RECV says. */
enum plan_buf { PLAN_SRC, PLAN_DST, PLAN_SCRATCH, PLAN_NOBUF, PLAN_ANYBUF };

enum plan_part_kind {
	PLAN_BALANCED,
	PLAN_TABLE,
	PLAN_LATE,
	PLAN_FOLDED,
	PLAN_SHIFTED, /* another partition, moved by `base` elements */
};

/* Which of the call's tables a LATE partition is bound to. */
enum plan_table_kind {
	PLAN_TABLE_OTHER,
	PLAN_TABLE_SEND, /* blocks of SRC, one per rank, with what lies between them */
	PLAN_TABLE_RECV, /* the same of DST */
	PLAN_TABLE_OWN,	 /* one part: this rank's block where the buffer has only that */
};

/* A partition. disp has parts + 1 entries (disp[parts] is the end), in elements. */
struct plan_part {
	enum plan_part_kind kind;
	uint32_t parts;
	uint64_t total;	      /* BALANCED: elements cut; LATE: the most there can be;
			       * FOLDED: base + slots * length of a slot;
			       * SHIFTED: base + that of the other */
	const uint64_t *disp; /* TABLE: owned by the plan; LATE: NULL, see plan_binding */
	uint32_t slots;	      /* FOLDED: each (total - base) / slots elements long */
	uint64_t base;	      /* FOLDED, SHIFTED: where the first part begins */
	uint8_t table;	      /* LATE: enum plan_table_kind */
	uint8_t of;	      /* FOLDED, SHIFTED: the partition whose lengths they have */
};

/* Runs j = 0..count-1, each `block` parts from (first + j * stride) mod parts; a run that
 * passes the last part goes on at part 0. count 0 or block 0: nothing (a zero-length
 * pair). */
struct plan_range {
	uint8_t buf;  /* enum plan_buf */
	uint8_t part; /* index into plan->part */
	uint32_t first;
	uint32_t block;
	uint32_t stride;
	uint32_t count;
};

/* `block` parts from `first` on. */
static inline struct plan_range plan_run(enum plan_buf buf, uint8_t part, uint32_t first,
					 uint32_t block)
{
	return (struct plan_range){.buf = (uint8_t)buf,
				   .part = part,
				   .first = first,
				   .block = block,
				   .count = 1};
}

/* Nothing: both ends of a zero-length pair. */
static inline struct plan_range plan_nothing(void)
{
	return (struct plan_range){.buf = PLAN_NOBUF};
}

/* The place at a peer that only its RECV knows. */
static inline struct plan_range plan_anywhere(void)
{
	return (struct plan_range){.buf = PLAN_ANYBUF};
}

enum plan_flag {
	PLAN_SCALE =
		1 << 0, /* REDUCE, COPY: divide the result by plan->divisor (average) */
};

/* Instance (trip0 + advance * my trip) of step; ignored when that is no trip of it. */
struct plan_dep {
	uint32_t step;
	int32_t trip0;
	int32_t advance;
};

#define PLAN_NO_PROOF UINT32_MAX

/* Every algorithm is proven to finish when each rank looks this many instances ahead of
 * its oldest unfinished one. Looking further can only help; an executor must not look
 * less far. */
#define PLAN_WINDOW_MIN 16

struct plan_step {
	uint8_t kind;  /* enum plan_kind */
	uint8_t flags; /* enum plan_flag */
	int32_t peer;  /* SEND, RECV */
	struct plan_range
		dst; /* RECV, REDUCE, COPY: written here. SEND: range at the peer */
	struct plan_range src; /* SEND, COPY: read here. REDUCE: first operand */
	struct plan_range
		src2; /* REDUCE: second operand; dst = src op src2, in this order */
	int32_t peer_advance;
	int32_t dst_advance; /* parts per trip, added to .first */
	int32_t src_advance;
	int32_t src2_advance;
	uint32_t dep_first; /* plan->dep[dep_first .. + dep_count) */
	uint32_t dep_count;
	uint32_t proof; /* SEND: index into plan->dep of the RECV that proves READY, one
			 * of the step's own dependencies; no proof in a trip in which
			 * that dependency is to be ignored */
};

struct plan_loop {
	uint32_t first; /* first step */
	uint32_t count; /* steps in the body */
	uint32_t trips;
	uint64_t base; /* number of the loop's first instance */
};

/* A finished plan is immutable and may be shared by threads. */
struct plan {
	const char *algorithm;
	int32_t rank;
	int32_t size;
	uint64_t divisor;    /* for PLAN_SCALE */
	bool in_place;	     /* SRC lies in DST, as plan_call says */
	bool puts;	     /* plan_prefer_puts() */
	uint8_t lines;	     /* enum plan_lines: plan_by_lines() */
	uint64_t buf_len[3]; /* elements of SRC, DST, SCRATCH that the plan may touch */
	struct plan_part *part;
	uint32_t part_count;
	struct plan_step *step;
	uint32_t step_count;
	struct plan_dep *dep;
	uint32_t dep_count;
	struct plan_loop *loop;
	uint32_t loop_count;
	uint64_t instances; /* of all loops together */
};

/* Tables of a (v) form, for plans that are to be checked: by rank, 2 * size + 1 offsets:
 * block i is [2 i] to [2 i + 1], what lies between it and the next [2 i + 1] to [2 i +
 * 2]. NULL where a rank has no such buffer. */
struct plan_tables {
	const uint64_t *const *send; /* of SRC */
	const uint64_t *const *recv; /* of DST */
};

/* Which ranks share a node: plan/nodes.h. Nodes are numbered in the order of their lowest
 * ranks. */
struct plan_nodes {
	int32_t count;
	const int32_t *of;     /* by rank: its node */
	const int32_t *index;  /* by rank: its place among those of its node */
	const int32_t *first;  /* by node, and one more: where its ranks begin in... */
	const int32_t *member; /* ...ranks by node, ascending within one */
	int32_t most;	       /* ranks of the largest node */
	int32_t even; /* node i has ranks i * even to (i + 1) * even - 1; 0: not so */
};

/* What an algorithm is asked for. Pure: no pointers to user memory. */
struct plan_call {
	int32_t rank;
	int32_t size;
	uint64_t count;	    /* elements, as the API call has them; of a (v) form the most
			     * that there can be in a buffer that scratch mirrors */
	uint32_t elem_size; /* bytes: only for choosing chunk sizes */
	int32_t root;
	bool average; /* the result is to be divided by size once per element */
	bool ordered; /* the operation does not commute: operands in the order of ranks */
	bool in_place; /* DST and SRC share memory as plan_goal_in_place() says. Of rooted
			* ones only the root's plan may depend on it */
	bool roomy;    /* not in place: scratch may be long, so that no receive waits for
			* a step of its own call, as doubled calls want it (rule F5) */
	bool vector;   /* a (v) form: blocks of any lengths */
	const struct plan_tables *tables; /* of a (v) form; NULL: bound late */
	bool fetches; /* a long pair costs its sender little: the receiver moves it */
	bool crowded; /* ranks share processors: a round costs a change of processes */
	bool lines;   /* its ranks share memory for what is short: plan_by_lines() */
	bool reads;   /* and read what each other gives, where it is not short */
	uint64_t chunk_bytes; /* pipelining granule asked for; 0: the algorithm's own */
	const struct plan_nodes *nodes; /* the same on all ranks; NULL: all on one */
};

/* Where the parts of a late partition lie when they lie in no order: part i is pieces
 * first[i] to first[i + 1] - 1, which together have the length that its table says. */
struct plan_piece {
	uint64_t at, length; /* elements */
};
struct plan_map {
	const uint64_t *first; /* parts + 1 of them */
	const struct plan_piece *piece;
};

/* Displacement tables of PLAN_LATE partitions, in the order of their part index. */
struct plan_binding {
	const uint64_t *const *disp;	   /* [part index], NULL where not late */
	const struct plan_map *const *map; /* [part index], NULL: the parts lie where the
					    * table says; NULL: all of them do */
};

/* ---- builder (plan/builder.c): used by algorithms
 * -------------------------------------- */

struct plan_builder;

/* NULL when memory ran out; every later call on NULL or after a failure does nothing, and
 * plan_builder_finish() reports it: algorithms need no error paths of their own. */
struct plan_builder *plan_builder_open(const char *algorithm,
				       const struct plan_call *call);

uint8_t plan_add_balanced(struct plan_builder *b, uint64_t total, uint32_t parts);
uint8_t plan_add_table(struct plan_builder *b, const uint64_t *disp, uint32_t parts);
uint8_t plan_add_late(struct plan_builder *b, uint64_t most, uint32_t parts);
/* The same, bound to a table of the call (enum plan_table_kind). */
uint8_t plan_add_late_table(struct plan_builder *b, enum plan_table_kind table,
			    uint64_t most, uint32_t parts);
/* Lengths of partition `of`, places in `slots` slots of scratch, which are asked for
 * here. A range of it may not hold two parts of one slot. */
uint8_t plan_add_folded(struct plan_builder *b, uint8_t of, uint32_t slots);
/* The same behind `base` elements of scratch, which is not asked for: a rank may only
 * name it as a place at its peers. */
uint8_t plan_add_folded_at(struct plan_builder *b, uint8_t of, uint32_t slots,
			   uint64_t base);
/* Partition `of` again, `base` elements further on: scratch that mirrors a buffer. It is
 * not asked for. */
uint8_t plan_add_shifted(struct plan_builder *b, uint8_t of, uint64_t base);
/* Elements of the longest part. */
uint64_t plan_longest(const struct plan_builder *b, uint8_t part);
/* The largest of all calls counts. */
void plan_need_scratch(struct plan_builder *b, uint64_t elements);

void plan_loop_begin(struct plan_builder *b, uint32_t trips);
void plan_loop_end(struct plan_builder *b);

/* Outside a loop each step is a loop of one trip. Returns the step's index. */
uint32_t plan_add_send(struct plan_builder *b, int32_t peer, struct plan_range src,
		       struct plan_range at_peer);
uint32_t plan_add_recv(struct plan_builder *b, int32_t peer, struct plan_range dst);
uint32_t plan_add_reduce(struct plan_builder *b, struct plan_range dst,
			 struct plan_range src, struct plan_range src2);
uint32_t plan_add_copy(struct plan_builder *b, struct plan_range dst,
		       struct plan_range src);
void plan_set_advance(struct plan_builder *b, uint32_t step, int32_t peer, int32_t dst,
		      int32_t src, int32_t src2);
void plan_set_scale(struct plan_builder *b, uint32_t step);

/* step waits for on: trip (trip0 + advance * own trip) of it. */
void plan_add_dep(struct plan_builder *b, uint32_t step, uint32_t on, int32_t trip0,
		  int32_t advance);
/* The same trip of a step of the same loop, or the only trip of a straight one. */
void plan_add_dep_same(struct plan_builder *b, uint32_t step, uint32_t on);
/* RECV `on` (same trip arithmetic as plan_add_dep) proves READY for SEND `step`. Implies
 * the dependency. */
void plan_set_proof(struct plan_builder *b, uint32_t step, uint32_t on, int32_t trip0,
		    int32_t advance);

/* Long pairs are better written by their sender than fetched by their receiver. The same
 * on all ranks, which go by it; it changes nothing but time. */
void plan_prefer_puts(struct plan_builder *b);

/* Where the ranks have lines (coll/exec/lines.h) the executor does by them what the plan
 * says: one step, of few ranks. The same on all ranks, as above. */
#define PLAN_LINES_RANKS 16
enum plan_lines {
	PLAN_LINES_NONE,
	PLAN_LINES_NEAR, /* what a rank gives goes through its lines */
	PLAN_LINES_FAR,	 /* it is read where it lies */
};
void plan_by_lines(struct plan_builder *b, enum plan_lines how);

/* Frees the builder; 0 and the plan, or -ENOMEM, or -EINVAL (a malformed plan: a fault in
 * the algorithm; *why says which rule, static storage). */
int plan_builder_finish(struct plan_builder *b, struct plan **plan, const char **why);

/* The structural rules: ranges inside their partitions and buffers, peers inside the
 * communicator and never the rank itself, dependencies backwards in program order. 0, or
 * -EINVAL and *why (static storage). plan_builder_finish() has done it. */
int plan_validate(const struct plan *plan, const char **why);

/* ---- reading: nothing here allocates
 * ---------------------------------------------------------------------------- */

void plan_free(struct plan *plan);

/* Whether the late tables are there, ascend, and stay below their `total`: to be asked
 * once per call, since counts are the caller's and not to be trusted. */
bool plan_binding_valid(const struct plan *plan, const struct plan_binding *bind);

/* One instance, with the loop's advance applied. */
struct plan_instance {
	uint64_t number;
	uint32_t step;
	uint32_t trip;
	uint8_t kind;
	uint8_t flags;
	int32_t peer;
	struct plan_range dst, src, src2;
};

void plan_instance_at(const struct plan *plan, uint64_t number,
		      struct plan_instance *out);

/* The loop that holds a step, below step_count. */
const struct plan_loop *plan_loop_of(const struct plan *plan, uint32_t step);

/* Instance number that dependency d of instance i means; false when it is to be ignored.
 */
bool plan_dep_instance(const struct plan *plan, const struct plan_dep *d,
		       const struct plan_instance *i, uint64_t *number);

/* Elements before part i (i may equal parts, except in a folded partition). */
uint64_t plan_part_offset(const struct plan *plan, const struct plan_binding *bind,
			  uint8_t part, uint32_t i);

/* Elements of part i. */
uint64_t plan_part_length(const struct plan *plan, const struct plan_binding *bind,
			  uint8_t part, uint32_t i);

/* Elements of the longest part; of what is not known yet, and of folded and shifted
 * ones, all that there can be. */
uint64_t plan_part_longest(const struct plan_part *part);

uint64_t plan_range_elements(const struct plan *plan, const struct plan_binding *bind,
			     const struct plan_range *r);

/* Walks the contiguous pieces of a range, in order. Adjacent runs are merged. */
struct plan_piece_iter {
	const struct plan *plan;
	const struct plan_binding *bind;
	struct plan_range range;
	uint32_t run;	/* internal */
	uint32_t done;	/* internal: parts of this run already given */
	uint64_t piece; /* internal: pieces of this part already given, of a map */
};
void plan_piece_begin(struct plan_piece_iter *it, const struct plan *plan,
		      const struct plan_binding *bind, const struct plan_range *r);
/* false at the end; offset and length in elements, length > 0. */
bool plan_piece_next(struct plan_piece_iter *it, uint64_t *offset, uint64_t *length);

/* Text of a plan, one line a step, for people and for test failures. */
void plan_print(const struct plan *plan, void (*line)(void *arg, const char *text),
		void *arg);

#endif
