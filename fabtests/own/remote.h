/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of remote memory access share: a target that does what it is told over the
 * socket (fill, check, register anew, sleep), and an initiator that reads and writes its
 * memory. Role 0 is the initiator.
 */
#ifndef WEFT_FABTESTS_OWN_REMOTE_H
#define WEFT_FABTESTS_OWN_REMOTE_H

#include "fabtests/own/util.h"

#define MEM_SIZE  (SIZE_MOST + 8192)
#define RMA_CAPS  (FI_RMA | FI_MSG)
#define BASE_MODE (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED)
#define WRITES	  (FI_RMA | FI_WRITE)
#define READS	  (FI_RMA | FI_READ)

/* ---- the target */

enum order_kind {
	ORDER_FILL,
	ORDER_CHECK,
	ORDER_REGISTER,
	ORDER_SLEEP,
	ORDER_PAUSE, /* no call at all until order_wake */
	ORDER_END
};

struct order {
	enum order_kind kind;
	size_t offset, len;
	uint64_t access; /* ORDER_REGISTER */
	uint32_t seed;	 /* ORDER_SLEEP: milliseconds without any call */
};

struct answer {
	bool good;
	uint64_t key;
	uint64_t base; /* address of the registration's first byte as RMA names it */
};

struct target {
	uint8_t *mem;
	struct fid_mr *mr;
};

/* BASE_MODE, completions when delivered. */
extern const struct want want_default;

/* How RMA names the first byte of a registration of mem. */
uint64_t remote_base(const struct node *n, const void *mem);
/* Closes what was registered, and registers anew if o->access is not 0. */
void target_register(struct side *s, struct target *t, const struct order *o,
		     struct answer *a);
/* Serves orders until ORDER_END. */
void target_serve(struct side *s, struct target *t);
/* A whole side: opens, serves, closes. */
void target_run_as(struct side *s, const struct want *want);
void target_run(struct side *s);

/* ---- the initiator */

struct initiator {
	uint8_t *mem;
	struct fid_mr *mr;
	void *desc; /* NULL unless FI_MR_LOCAL is required */
	struct answer remote;
};

bool local_needed(const struct node *n);
/* Ends ORDER_PAUSE. */
void order_wake(struct side *s);
struct answer order_give(struct side *s, struct order o);
void initiator_open(struct side *s, struct initiator *in, const struct want *want);
void initiator_close(struct side *s, struct initiator *in);
void write_post(struct side *s, struct initiator *in, size_t off, size_t len, void *ctx);
void read_post(struct side *s, struct initiator *in, size_t off, size_t len, void *ctx);
/* Writes and reads back, with the target's word for both. */
void both_ways(struct side *s, struct initiator *in, size_t off, size_t len,
	       uint32_t seed);
/* The operation must end in error, whatever error. */
void refused(struct side *s, struct initiator *in, bool write, uint64_t addr,
	     uint64_t key, size_t len, const char *what);

/* For cases_before: makes the kernel refuse cross-memory attach between the sides, and
 * proves it. */
void attach_probe(struct side *s);

#endif
