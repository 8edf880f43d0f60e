/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two sides of the star: rank 0 (boot_root.c) holds one connection to every other
 * rank, each other rank (boot_leaf.c) holds one to rank 0. boot.c owns either and keeps
 * the first failure; nothing is called on a side after it failed but close.
 */
#ifndef WEFT_BOOT_BOOT_SIDE_H
#define WEFT_BOOT_BOOT_SIDE_H

#include <stddef.h>
#include <stdint.h>

#include "coll/boot/boot.h"
#include "coll/boot/boot_env.h"
#include "weft/weft.h"

/* A rank that waits for rank 0's verdict waits this much longer than rank 0 waits for the
 * ranks, so that it can say which of them was missing. Microseconds. */
#define BOOT_VERDICT_US 500000

/* What seq, len and timeout of an all-gather are, handed down together. */
struct boot_gather {
	const void *in; /* len bytes */
	void *out;	/* size * len bytes; a leaf's is NULL where there is a view */
	struct boot_view *view;
	uint64_t len;
	uint64_t seq; /* counts the all-gathers of this object, from 1 */
	int64_t timeout_us;
};

/* What a rank and rank 0 told each other. */
struct boot_count {
	uint64_t sent, received; /* messages */
	uint64_t bytes;		 /* of both */
};

struct boot_root;
struct boot_leaf;

enum weft_result boot_root_open(const struct boot_env *env, int64_t timeout_us,
				struct boot_root **root);
enum weft_result boot_root_allgather(struct boot_root *root, const struct boot_gather *g);
void boot_root_close(struct boot_root *root);

enum weft_result boot_leaf_open(const struct boot_env *env, int64_t timeout_us,
				struct boot_leaf **leaf);
enum weft_result boot_leaf_allgather(struct boot_leaf *leaf, const struct boot_gather *g);
const struct boot_count *boot_leaf_count(const struct boot_leaf *leaf);
/* What rank 0 sent to all, bytes. */
uint64_t boot_root_bytes(const struct boot_root *root);
void boot_leaf_close(struct boot_leaf *leaf);

#endif
