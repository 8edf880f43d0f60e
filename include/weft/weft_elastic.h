/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of <weft/weft.h>: communicators that go on without ranks that died. The rules at
 * the top of that header hold here. */
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

#ifdef __cplusplus
}
#endif

#endif
