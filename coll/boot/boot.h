/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bootstrap: how ranks find each other. One object per context; only used while contexts
 * and communicators are created, never on a data path. Not thread-safe: the caller locks.
 */
#ifndef WEFT_BOOT_BOOT_H
#define WEFT_BOOT_BOOT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

struct boot;

struct boot_attr {
	const struct weft_boot_callbacks *callbacks; /* NULL: the environment */
	int64_t timeout_us;			     /* > 0, or WEFT_TIMEOUT_INFINITE */
};

/*
 * From the environment: WEFT_RANK, WEFT_SIZE, WEFT_ROOT (host:port of rank 0), WEFT_JOB
 * (a secret that every message must carry; strangers are refused), set by `weft run`.
 * With neither of the first two: what another launcher set (boot_launch.h).
 * With none of them set: one rank, alone. Rank 0 listens at WEFT_ROOT, or on the
 * inherited listening descriptor WEFT_ROOT_FD. Each other rank keeps one connection to
 * rank 0. Errors are reported through error_set() (coll/api/error.h): BOOTSTRAP with the
 * ranks that did not come, ARG for a variable that makes no sense.
 */
enum weft_result boot_open(const struct boot_attr *attr, struct boot **boot);
void boot_close(struct boot *boot);

int32_t boot_rank(const struct boot *boot);
int32_t boot_size(const struct boot *boot);

/* out: size * len bytes in rank order. Collective. TIMEOUT and PEER name the rank. */
enum weft_result boot_allgather(struct boot *boot, const void *in, void *out, size_t len,
				int64_t timeout_us);

/* A result that may be one table for all ranks of a host. */
struct boot_view {
	const void *at; /* size * len bytes, aligned for 8 */
	void *memory;	/* what it lies in */
	size_t mapped;	/* bytes of it; 0: it was allocated */
};

/* The same, but nothing is copied where the ranks of a host share the result. Returned by
 * boot_view_end(), also where it failed. */
enum weft_result boot_allgather_view(struct boot *boot, const void *in, size_t len,
				     int64_t timeout_us, struct boot_view *view);
void boot_view_end(struct boot_view *view);

#endif
