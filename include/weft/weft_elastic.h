/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of <weft/weft.h>: communicators without ranks that died, and with newcomers. The
 * rules at the top of that header hold here. */
#ifndef WEFT_WEFT_ELASTIC_H
#define WEFT_WEFT_ELASTIC_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A communicator of those ranks of `comm` that call this, in the order that they have
 * there. All that live are to call it, with the same opts, when a call on `comm` failed
 * or came to nothing; comm is revoked by that, if it has not been. All that get a
 * communicator get the same one: who goes on is decided once for each communicator, by
 * more than half of its ranks, so that two parts of a job which have lost each other
 * never both go on. Half of them or fewer go on only where the processes of all others
 * are known to have ended, as they are on one host where ranks share lines (not with
 * WEFT_LINES=off).
 *
 * timeout_us: how long it may take; 0: the context's default. Ranks that are not known to
 * be lost are waited for during half of that time; who has not called it by then is left
 * out. comm stays what it is, and is destroyed as any other that was revoked. A rank that
 * dies while this is decided, or afterwards, may be in the new communicator, whose calls
 * then fail: that one is shrunk in turn. Meanwhile no other communicator is made of the
 * same ranks. Blocks for timeout_us at most, and a tenth of a second while it tells the
 * others; any thread, one at a time for a communicator.
 *
 * Errors: FENCED: the others went on without this rank, which they had not heard of in
 * time. TIMEOUT: undecided; too few ranks have called it, or can be reached. The same
 * call again goes on with it; who gives up instead may still be a member of what the
 * others decide. ARG (also: comm was shrunk before), UNSUPPORTED (more than 3,072 ranks),
 * NOMEM.
 */
WEFT_API enum weft_result weft_comm_shrink(struct weft_comm *comm,
					   const struct weft_comm_opts *opts,
					   int64_t timeout_us, struct weft_comm **out);

/* How a communicator grows. */
struct weft_grow_opts {
	size_t size; /* sizeof(struct weft_grow_opts) */
	const char
		*place; /* "host:port", where newcomers find the communicator: an address
			 * of the host that its rank 0 is on. Several, separated by
			 * commas, where it is not known on which host that is */
	const char
		*job;  /* a secret that all must have alike, 64 bytes at most; NULL: "" */
	uint64_t sign; /* a number that all must have alike, for what they work on
			* (types, counts): who comes with another one is refused */
	int32_t newcomers;	       /* how many are let in: rank 0's counts */
	const char *provider, *domain; /* of the new context, as in weft_ctx_opts */
	int64_t timeout_us; /* for all of it, and default deadline of the new context;
			     * 0: that of the communicator's context; newcomers: 60 s */
};
#define WEFT_GROW_OPTS_INIT                           \
	{                                             \
		.size = sizeof(struct weft_grow_opts) \
	}

/*
 * Joins the ranks of `comm` and newcomers to a larger communicator. All ranks of comm
 * call this, and each newcomer, a process that was started by itself, with comm NULL.
 * Rank 0 listens at the place, which newcomers dial again and again until it does; who
 * comes with another version of the library or another sign is refused, and told so;
 * strangers and those of other jobs hear nothing. When as many as are let in have come,
 * all open a context of their own, *ctx, with a communicator of all its ranks, *out:
 * those of comm in their order, then the newcomers as they came. Memory of
 * weft_mem_alloc(), windows and persistent requests stay with the old context, which is
 * as it was; it is closed, or used on, as the caller wants. When it fails the old
 * communicator is as it was, and the call can be made again.
 *
 * Blocks for timeout_us, and ten seconds more on ranks that wait for rank 0. Errors: ARG
 * (also: no place is an address of rank 0's host), TIMEOUT (too few came; to a newcomer:
 * nobody let it in), MISMATCH (to a newcomer that is refused), BOOTSTRAP (one went while
 * all met), UNSUPPORTED (more than 4,096 ranks), what weft_ctx_open() fails with; of
 * comm: what weft_broadcast() does.
 */
WEFT_API enum weft_result weft_comm_grow(struct weft_comm *comm,
					 const struct weft_grow_opts *opts,
					 struct weft_ctx **ctx, struct weft_comm **out);

#ifdef __cplusplus
}
#endif

#endif
