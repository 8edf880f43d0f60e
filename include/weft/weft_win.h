/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of <weft/weft.h>: windows, memory of ranks that other ranks write and read by
 * themselves. The rules at the top of that header hold here. */
#ifndef WEFT_WEFT_WIN_H
#define WEFT_WEFT_WIN_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_win_opts {
	size_t size;	  /* sizeof(struct weft_win_opts) */
	uint32_t signals; /* words for signals of this rank, the same on all; 0: 64 */
	uint64_t flags;	  /* none defined: 0 */
};
#define WEFT_WIN_OPTS_INIT                           \
	{                                            \
		.size = sizeof(struct weft_win_opts) \
	}

/*
 * A window of the communicator: `len` bytes at `base` of every rank, which may differ
 * from rank to rank and be 0. Collective; ranks create the windows of a communicator in
 * the same order as its collectives. The memory stays the caller's to read and write; it
 * must stay where it is until the window is destroyed. Errors: ARG, UNSUPPORTED, NOMEM,
 * PROVIDER, MISMATCH (of `signals`), those of a collective.
 */
WEFT_API enum weft_result weft_win_create(struct weft_comm *comm, void *base, size_t len,
					  const struct weft_win_opts *opts,
					  struct weft_win **win);

/*
 * Collective: waits until all that ranks have started has landed everywhere. When the
 * communicator or the window has failed it is local instead, and gives BUSY while
 * somebody may still write the memory, which peers end when they call Weft: try again.
 * Otherwise errors leave the window as it was. TIMEOUT, BUSY, those of a collective.
 */
WEFT_API enum weft_result weft_win_destroy(struct weft_win *win);

/* Bytes of the part of a rank; 0 where there is no such rank. */
WEFT_API uint64_t weft_win_len(const struct weft_win *win, int32_t rank);

/*
 * Starts to write `len` bytes of src to the part of `rank`, `offset` bytes behind its
 * begin; to read them from there. Both return at once; src may be written, and dst read,
 * after weft_win_flush(). Any rank may be named, the own one too. Nothing says when a put
 * has landed but a signal that was sent after it; puts land in any order, and gets see
 * what is there when they are served. ARG where it is outside of the part; errors of what
 * was started before: PEER, MISMATCH, NOMEM.
 *
 * Over providers with remote writes the target need not call Weft for puts. It must for
 * gets and signals, and for puts over other providers: any call that waits will do.
 */
WEFT_API enum weft_result weft_win_put(struct weft_win *win, const void *src, size_t len,
				       int32_t rank, uint64_t offset);
WEFT_API enum weft_result weft_win_get(struct weft_win *win, void *dst, size_t len,
				       int32_t rank, uint64_t offset);

/*
 * Adds `value` to signal word `index` of `rank`, after all puts of this window that this
 * rank has started to that one have landed. So whoever sees the signal sees what was put
 * before it. Errors as above.
 */
WEFT_API enum weft_result weft_win_signal(struct weft_win *win, int32_t rank,
					  uint32_t index, uint64_t value);

/* A put and a signal behind it. len 0: the signal alone. */
WEFT_API enum weft_result weft_win_put_signal(struct weft_win *win, const void *src,
					      size_t len, int32_t rank, uint64_t offset,
					      uint32_t index, uint64_t value);

/*
 * Waits until signal word `index` of this rank is `value` or more, and takes `value` from
 * it: so each signal is waited for once. TIMEOUT: it is not, and keeps what it has; PEER:
 * a rank of the window is lost; ARG.
 */
WEFT_API enum weft_result weft_win_wait(struct weft_win *win, uint32_t index,
					uint64_t value, int64_t timeout_us);

/* Waits until the buffers of puts and gets with `rank` (-1: with all) are the caller's
 * again, what was read included. It says nothing of what has landed. TIMEOUT, ARG, PEER.
 */
WEFT_API enum weft_result weft_win_flush(struct weft_win *win, int32_t rank,
					 int64_t timeout_us);

#ifdef __cplusplus
}
#endif

#endif
