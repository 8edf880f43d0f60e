/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows, as ranks of a context see them. How a put travels is the provider's affair: a
 * remote write with CQ data where there are such, else a message that the target takes
 * into its window. Either way the target counts what has landed from each rank, and a
 * signal says how many puts went before it: so it is applied when they are there,
 * whatever order things arrive in. A get is asked for by a control message and answered
 * by a message. Not thread-safe: the context's lock covers it.
 */
#ifndef WEFT_EXEC_WIN_H
#define WEFT_EXEC_WIN_H

#include "coll/exec/exec.h"

struct exec;
struct exec_win;

/* What a rank tells the others of its part. */
struct win_card {
	uint64_t key, base, len;
	uint32_t signals, contexts;
	uint32_t result; /* enum weft_result of opening it */
	char text[108];	 /* why it failed */
};

/* The part of this rank; known to the others by (comm, number), at once: what they send
 * meanwhile finds it. NOMEM, PROVIDER. */
LOCK_HELD(lock_context)
enum weft_result exec_win_open(struct exec *x, uint32_t comm, uint32_t number, void *base,
			       uint64_t len, uint32_t signals, uint32_t contexts,
			       struct exec_win **win);
LOCK_HELD(lock_context)
void exec_win_card(const struct exec_win *win, struct win_card *card);
/* The part of another rank; ranks are the context's from here on. */
LOCK_HELD(lock_context)
void exec_win_peer(struct exec_win *win, int32_t rank, const struct win_card *card);

/* Start; NOMEM, PEER. Arguments were checked. */
LOCK_HELD(lock_context)
enum weft_result exec_win_put(struct exec_win *win, uint32_t context, int32_t rank,
			      const void *src, uint64_t len, uint64_t offset);
/* A put and a signal that covers nothing but this. */
LOCK_HELD(lock_context)
enum weft_result exec_win_put_weak(struct exec_win *win, uint32_t context, int32_t rank,
				   const void *src, uint64_t len, uint64_t offset,
				   uint32_t index, uint64_t value);
LOCK_HELD(lock_context)
enum weft_result exec_win_get(struct exec_win *win, uint32_t context, int32_t rank,
			      void *dst, uint64_t len, uint64_t offset);
LOCK_HELD(lock_context)
enum weft_result exec_win_signal(struct exec_win *win, uint32_t context, int32_t rank,
				 uint32_t index, uint64_t value);

/* Puts and gets of a context to a rank (-1: to all) whose buffers are still in use here.
 */
LOCK_HELD(lock_context)
uint32_t exec_win_open_ops(const struct exec_win *win, uint32_t context, int32_t rank);
/* Operations of any kind, those for others included. */
LOCK_HELD(lock_context) uint32_t exec_win_busy(const struct exec_win *win);
/* Puts that were started to a rank, and that landed from one, of all contexts. */
LOCK_HELD(lock_context)
uint64_t exec_win_issued(const struct exec_win *win, int32_t rank);
LOCK_HELD(lock_context)
uint64_t exec_win_landed(const struct exec_win *win, int32_t rank);
/* A signal word of this rank. */
LOCK_HELD(lock_context)
uint64_t *exec_win_word(struct exec_win *win, uint32_t index);
/* Why the window failed first; WEFT_SUCCESS: it did not. */
LOCK_HELD(lock_context)
enum weft_result exec_win_failed(const struct exec_win *win, const char **text);

/* Takes the window back. quiet: all that was sent has landed. Otherwise the registration
 * is closed, after which nobody can write; false while that can't be or operations are
 * open: call again. When true the window is gone. */
LOCK_HELD(lock_context) bool exec_win_close(struct exec_win *win, bool quiet);

#endif
