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
	size_t size;	   /* sizeof(struct weft_win_opts) */
	uint32_t signals;  /* words for signals of this rank, the same on all; 0: 64 */
	uint64_t flags;	   /* none defined: 0 */
	uint32_t contexts; /* the same on all ranks, at most 256; 0: 1 */
};
#define WEFT_WIN_OPTS_INIT                           \
	{                                            \
		.size = sizeof(struct weft_win_opts) \
	}

/*
 * A window of the communicator: `len` bytes at `base` of every rank, which may differ
 * from rank to rank and be 0. Collective; ranks create the windows of a communicator in
 * the same order as its collectives. The memory stays the caller's to read and write; it
 * must stay where it is until the window is destroyed. It is the host's: memory of a GPU
 * is refused on all ranks (UNSUPPORTED) where the process has used GPUs before it made
 * the communicator, or calls have. Errors: ARG, UNSUPPORTED, NOMEM, PROVIDER, MISMATCH
 * (of `signals`), those of a collective.
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

/*
 * A context of the window: the same parts and signals, by which puts, gets, signals and
 * flushes go that know nothing of those of the other contexts: a signal covers the puts
 * of its own, a flush waits for no other's. The window itself is context 0. NULL where
 * there is no such context. It lives as long as the window, and is not destroyed by
 * itself.
 */
WEFT_API struct weft_win *weft_win_context(struct weft_win *win, uint32_t context);

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
 * Where the provider has remote writes and reads, puts and gets are those, and take
 * nothing of the target's but what the provider may want for them. Otherwise, and for
 * signals, the target must call Weft: any call that waits will do. What is longer than
 * the provider carries at a time goes in pieces.
 */
WEFT_API enum weft_result weft_win_put(struct weft_win *win, const void *src, size_t len,
				       int32_t rank, uint64_t offset);
WEFT_API enum weft_result weft_win_get(struct weft_win *win, void *dst, size_t len,
				       int32_t rank, uint64_t offset);

/*
 * Adds `value` to signal word `index` of `rank`, after all puts of this context that this
 * rank has started to that one have landed (a strong signal). So whoever sees the signal
 * sees what was put before it. Errors as above.
 */
WEFT_API enum weft_result weft_win_signal(struct weft_win *win, int32_t rank,
					  uint32_t index, uint64_t value);

/* A put and a signal behind it. len 0: the signal alone. */
WEFT_API enum weft_result weft_win_put_signal(struct weft_win *win, const void *src,
					      size_t len, int32_t rank, uint64_t offset,
					      uint32_t index, uint64_t value);

/* The same with a weak signal: whoever sees it sees what this put has written, and
 * nothing is said of others; nor does it wait for them, but for this one's delivery.
 * Where the provider cannot say when a write is delivered it is a strong one. */
WEFT_API enum weft_result weft_win_put_signal_weak(struct weft_win *win, const void *src,
						   size_t len, int32_t rank,
						   uint64_t offset, uint32_t index,
						   uint64_t value);

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
