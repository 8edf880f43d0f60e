/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows: checks, creating and destroying them together, and waiting. */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/call.h"
#include "coll/api/error.h"
#include "coll/exec/name.h"
#include "coll/exec/win.h"
#include "util/lock_note.h"

#define WIN_SIGNALS	 64
#define WIN_SIGNALS_MAX	 (UINT32_C(1) << 20)
#define WIN_CONTEXTS_MAX 256u

struct weft_win {
	struct weft_comm *comm;
	struct exec_win *exec;
	uint32_t number, signals, contexts;
	uint32_t context;      /* this one's number */
	struct weft_win *view; /* those from 1 on; of context 0 only */
	uint64_t *len;	       /* by rank */
};

/* The context's number of a rank. */
static int32_t win_rank(const struct weft_win *win, int32_t rank)
{
	return win->comm->ranks ? win->comm->ranks[rank] : rank;
}

/* ---- waiting ------------------------------------------------------------------------
 */

/* What is waited for. True when it is so. */
typedef bool (*win_until)(struct weft_win *win, const void *arg);

LOCK_HELD(lock_context)
static enum weft_result win_failed(const struct weft_win *win)
{
	const char *text;
	const enum weft_result result = exec_win_failed(win->exec, &text);

	return result == WEFT_SUCCESS ? result : error_set(result, "%s", text);
}

/* Progress until it is so, the window fails, or the time is over. */
LOCK_HELD(lock_context)
static enum weft_result win_wait_rounds(struct weft_win *win, win_until until,
					const void *arg, int64_t timeout_us)
{
	struct weft_ctx *ctx = win->comm->ctx;
	const int64_t now = exec_now();
	int64_t end = INT64_MAX;
	struct exec_idle idle = {0};

	if (timeout_us == WEFT_TIMEOUT_DEFAULT)
		timeout_us = ctx->timeout_us;
	if (timeout_us > 0 && timeout_us < INT64_MAX - now)
		end = now + timeout_us;
	for (;;) {
		const bool moved = exec_progress(ctx->exec);
		int64_t clock;

		if (until(win, arg))
			return WEFT_SUCCESS;
		if (win_failed(win) != WEFT_SUCCESS)
			return win_failed(win);
		clock = exec_clock(ctx->exec);
		if (clock >= end)
			return WEFT_ERR_TIMEOUT;
		ctx_unlock(ctx);
		exec_idle_wait(ctx->exec, &idle, moved, clock);
		ctx_lock(ctx);
	}
}

LOCK_HELD(lock_context)
static enum weft_result win_wait(struct weft_win *win, win_until until, const void *arg,
				 int64_t timeout_us)
{
	struct weft_ctx *ctx = win->comm->ctx;
	enum weft_result result;

	ctx_wait_begin(ctx);
	result = win_wait_rounds(win, until, arg, timeout_us);
	ctx_wait_end(ctx);
	return result;
}

/* ---- creating -----------------------------------------------------------------------
 */

static uint32_t win_contexts(const struct weft_win_opts *opts)
{
	return opts && opts->size >= sizeof(*opts) && opts->contexts ? opts->contexts : 1;
}

static enum weft_result win_opts_check(const struct weft_win_opts *opts)
{
	/* Callers that were built before there was `contexts` want one. */
	if (opts->size < offsetof(struct weft_win_opts, contexts))
		return error_set(WEFT_ERR_ARG,
				 "weft_win_opts.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_WIN_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (opts->flags)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_win_opts.flags is 0x%llx, no flag is defined",
				 (unsigned long long)opts->flags);
	if (opts->signals > WIN_SIGNALS_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_win_opts.signals is %u, the most is %u",
				 opts->signals, WIN_SIGNALS_MAX);
	if (win_contexts(opts) > WIN_CONTEXTS_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_win_opts.contexts is %u, the most is %u",
				 opts->contexts, WIN_CONTEXTS_MAX);
	return WEFT_SUCCESS;
}

/* Providers write and read it at any time, and as the host's memory. Where no GPU is used
 * nobody is asked. */
LOCK_HELD(lock_context)
static enum weft_result win_memory(const struct weft_comm *comm, void *base, size_t len)
{
	const struct weft_buf buf = {
		.addr = base, .count = len, .type = WEFT_UINT8, .kind = WEFT_MEM_AUTO};
	int32_t device = -1;
	enum weft_result result = WEFT_SUCCESS;

	if (len && exec_has_gpus(comm->ctx->exec))
		result = exec_find_memory(comm->ctx->exec, "base", &buf, &device);
	if (result != WEFT_SUCCESS || device < 0)
		return result;
	return error_set(WEFT_ERR_UNSUPPORTED,
			 "base is memory of GPU %d: windows take host memory only; copy "
			 "to and from one there",
			 device);
}

/* Opens the own part; the card says how that went. */
LOCK_HELD(lock_context)
static void win_open(struct weft_win *win, void *base, size_t len, struct win_card *card)
{
	struct weft_comm *comm = win->comm;
	enum weft_result result = win_memory(comm, base, len);

	if (result == WEFT_SUCCESS)
		result = exec_win_open(comm->ctx->exec, comm->number, win->number, base,
				       len, win->signals, win->contexts, &win->exec);

	if (result == WEFT_SUCCESS) {
		exec_win_card(win->exec, card);
		return;
	}
	*card = (struct win_card){
		.signals = win->signals, .contexts = win->contexts, .result = result};
	snprintf(card->text, sizeof(card->text), "%.107s", weft_error_detail());
}

/* All ranks have the same cards, and come to the same. */
LOCK_HELD(lock_context)
static enum weft_result win_meet(struct weft_win *win, struct win_card *card)
{
	for (int32_t r = 0; r < win->comm->size; r++) {
		card[r].text[sizeof(card[r].text) - 1] = '\0';
		if (card[r].result >= WEFT_RESULT_COUNT)
			card[r].result = WEFT_ERR_INTERNAL;
		if (card[r].result != WEFT_SUCCESS)
			return error_set((enum weft_result)card[r].result,
					 "weft_win_create: rank %d: %s", win_rank(win, r),
					 card[r].text);
		if (card[r].signals != card[0].signals)
			return error_set(WEFT_ERR_MISMATCH,
					 "weft_win_create: rank %d has %u signals, rank "
					 "%d %u; every rank must give the same",
					 win_rank(win, 0), card[0].signals,
					 win_rank(win, r), card[r].signals);
		if (card[r].contexts != card[0].contexts)
			return error_set(WEFT_ERR_MISMATCH,
					 "weft_win_create: rank %d has %u contexts, rank "
					 "%d %u; every rank must give the same",
					 win_rank(win, 0), card[0].contexts,
					 win_rank(win, r), card[r].contexts);
	}
	for (int32_t r = 0; r < win->comm->size; r++) {
		win->len[r] = card[r].len;
		exec_win_peer(win->exec, win_rank(win, r), &card[r]);
	}
	return WEFT_SUCCESS;
}

static enum weft_result win_gather(struct weft_comm *comm, struct win_card *all)
{
	const uint64_t len = sizeof(*all);

	return weft_allgather(comm, &all[comm->rank], all, len, WEFT_UINT8, NULL);
}

static void win_free(struct weft_win *win)
{
	free(win->len);
	free(win->view);
	free(win);
}

/* The other contexts: the same window, but for the number. */
static void win_views(struct weft_win *win)
{
	for (uint32_t c = 1; c < win->contexts; c++) {
		win->view[c - 1] = *win;
		win->view[c - 1].view = NULL;
		win->view[c - 1].context = c;
	}
}

/* With memory for all; the lock is not held. */
static enum weft_result win_make(struct weft_win *win, void *base, size_t len)
{
	struct weft_comm *comm = win->comm;
	struct win_card *all = comm->win_cards;
	enum weft_result result;

	ctx_lock(comm->ctx);
	win->number = comm->next_win++ & NAME_CALL_MASK;
	win_open(win, base, len, &all[comm->rank]);
	ctx_unlock(comm->ctx);
	result = win_gather(comm, all);
	ctx_lock(comm->ctx);
	/* Others may have it already where the gathering failed; where ranks came to the
	 * same nobody has. What can't be closed now stays with the context. */
	if (result != WEFT_SUCCESS && win->exec)
		exec_win_close(win->exec, false);
	if (result == WEFT_SUCCESS)
		result = win_meet(win, all);
	else
		win->exec = NULL;
	if (result == WEFT_SUCCESS) {
		comm->wins++;
		win_views(win);
		ctx_started(comm->ctx);
	} else if (win->exec) {
		exec_win_close(win->exec, true);
	}
	ctx_unlock(comm->ctx);
	return result;
}

enum weft_result weft_win_create(struct weft_comm *comm, void *base, size_t len,
				 const struct weft_win_opts *opts, struct weft_win **out)
{
	enum weft_result result = opts ? win_opts_check(opts) : WEFT_SUCCESS;
	struct weft_win *win;

	error_clear();
	if (!comm || !out || (len && !base))
		return error_set(WEFT_ERR_ARG, "weft_win_create: %s is NULL",
				 !comm ? "comm" : (!out ? "win" : "base"));
	if (opts)
		result = win_opts_check(opts);
	if (result != WEFT_SUCCESS)
		return result;
	if (len > (size_t)PTRDIFF_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_win_create: %zu bytes are more than "
				 "memory can hold",
				 len);
	win = calloc(1, sizeof(*win));
	if (win) {
		win->contexts = win_contexts(opts);
		win->len = calloc((size_t)comm->size, sizeof(*win->len));
		win->view = calloc(win->contexts, sizeof(*win->view));
	}
	if (win && !comm->win_cards)
		comm->win_cards = calloc((size_t)comm->size, sizeof(struct win_card));
	if (!win || !win->len || !win->view || !comm->win_cards) {
		if (win)
			win_free(win);
		return error_set(WEFT_ERR_NOMEM, "no memory for a window");
	}
	win->comm = comm;
	win->signals = opts && opts->signals ? opts->signals : WIN_SIGNALS;
	result = win_make(win, base, len);
	if (result != WEFT_SUCCESS) {
		win_free(win);
		return result;
	}
	*out = win;
	return WEFT_SUCCESS;
}

/* ---- destroying ---------------------------------------------------------------------
 */

LOCK_HELD(lock_context)
static bool until_flushed(struct weft_win *win, const void *arg)
{
	const int32_t rank = *(const int32_t *)arg;

	return !exec_win_open_ops(win->exec, win->context,
				  rank < 0 ? rank : win_rank(win, rank));
}

/* Of every context. */
LOCK_HELD(lock_context)
static bool until_all_flushed(struct weft_win *win, const void *arg)
{
	(void)arg;
	for (uint32_t c = 0; c < win->contexts; c++) {
		if (exec_win_open_ops(win->exec, c, -1))
			return false;
	}
	return true;
}

/* arg: puts that each rank has started to this one. */
LOCK_HELD(lock_context)
static bool until_landed(struct weft_win *win, const void *arg)
{
	const uint64_t *puts = arg;

	for (int32_t r = 0; r < win->comm->size; r++) {
		if (exec_win_landed(win->exec, win_rank(win, r)) < puts[r])
			return false;
	}
	return !exec_win_busy(win->exec);
}

/* Everybody's puts land everywhere. The counts live in memory of the communicator, since
 * peers may write there when this fails. */
static enum weft_result win_quiet(struct weft_win *win)
{
	struct weft_comm *comm = win->comm;
	uint64_t *out = comm->win_cards, *in = out + comm->size;
	enum weft_result result;

	static_assert(sizeof(struct win_card) >= 2 * sizeof(uint64_t), "room for both");
	ctx_lock(comm->ctx);
	result = win_wait(win, until_all_flushed, NULL, WEFT_TIMEOUT_DEFAULT);
	for (int32_t r = 0; r < comm->size; r++)
		out[r] = exec_win_issued(win->exec, win_rank(win, r));
	ctx_unlock(comm->ctx);
	if (result == WEFT_SUCCESS)
		result = weft_alltoall(comm, out, in, 1, WEFT_UINT64, NULL);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(comm->ctx);
	result = win_wait(win, until_landed, in, WEFT_TIMEOUT_DEFAULT);
	ctx_unlock(comm->ctx);
	return result;
}

/* Neither the communicator nor the window is good any more. */
static bool win_is_over(struct weft_win *win)
{
	const char *text;
	bool over;

	ctx_lock(win->comm->ctx);
	exec_progress(win->comm->ctx->exec);
	over = exec_win_failed(win->exec, &text) != WEFT_SUCCESS ||
	       exec_comm_failed(win->comm->ctx->exec, win->comm->number, &text) !=
		       WEFT_SUCCESS;
	ctx_unlock(win->comm->ctx);
	return over;
}

enum weft_result weft_win_destroy(struct weft_win *win)
{
	enum weft_result result = WEFT_SUCCESS;
	struct weft_comm *comm;
	bool over, gone;

	error_clear();
	if (!win)
		return error_set(WEFT_ERR_ARG, "weft_win_destroy: win is NULL");
	if (win->context)
		return error_set(
			WEFT_ERR_ARG,
			"weft_win_destroy: this is context %u of a window, which "
			"goes with the window itself",
			win->context);
	comm = win->comm;
	over = win_is_over(win);
	if (!over)
		result = win_quiet(win);
	if (result == WEFT_ERR_TIMEOUT && !*weft_error_detail())
		error_set(result, "weft_win_destroy: what ranks have started did not "
				  "land before the deadline");
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(comm->ctx);
	gone = exec_win_close(win->exec, !over);
	if (gone)
		comm->wins--;
	ctx_unlock(comm->ctx);
	if (!gone)
		return error_set(WEFT_ERR_BUSY,
				 "weft_win_destroy: a peer may still write into the "
				 "window: try again");
	win_free(win);
	return WEFT_SUCCESS;
}

struct weft_win *weft_win_context(struct weft_win *win, uint32_t context)
{
	if (!win || win->context || context >= win->contexts)
		return NULL;
	return context ? &win->view[context - 1] : win;
}

/* ---- calls --------------------------------------------------------------------------
 */

uint64_t weft_win_len(const struct weft_win *win, int32_t rank)
{
	return win && rank >= 0 && rank < win->comm->size ? win->len[rank] : 0;
}

static enum weft_result rank_check(const struct weft_win *win, const char *name,
				   int32_t rank)
{
	if (!win)
		return error_set(WEFT_ERR_ARG, "%s: win is NULL", name);
	if (rank < 0 || rank >= win->comm->size)
		return error_set(WEFT_ERR_ARG, "%s: rank is %d, ranks are 0 to %d", name,
				 rank, win->comm->size - 1);
	return WEFT_SUCCESS;
}

static enum weft_result range_check(const struct weft_win *win, const char *name,
				    const void *buf, size_t len, int32_t rank,
				    uint64_t offset)
{
	enum weft_result result = rank_check(win, name, rank);

	if (result != WEFT_SUCCESS)
		return result;
	if (len && !buf)
		return error_set(WEFT_ERR_ARG, "%s: the buffer is NULL, with %zu bytes",
				 name, len);
	if (offset <= win->len[rank] && len <= win->len[rank] - offset)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG,
			 "%s: %zu bytes from %llu on are outside of the window: the part "
			 "of rank %d has %llu",
			 name, len, (unsigned long long)offset, rank,
			 (unsigned long long)win->len[rank]);
}

static enum weft_result index_check(const struct weft_win *win, const char *name,
				    uint32_t index)
{
	if (index < win->signals)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_ARG, "%s: index is %u, the window has %u signals", name,
			 index, win->signals);
}

enum weft_result weft_win_put(struct weft_win *win, const void *src, size_t len,
			      int32_t rank, uint64_t offset)
{
	enum weft_result result;

	error_clear();
	result = range_check(win, "weft_win_put", src, len, rank, offset);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(win->comm->ctx);
	result = exec_win_put(win->exec, win->context, win_rank(win, rank), src, len,
			      offset);
	ctx_started(win->comm->ctx);
	ctx_unlock(win->comm->ctx);
	return result;
}

enum weft_result weft_win_get(struct weft_win *win, void *dst, size_t len, int32_t rank,
			      uint64_t offset)
{
	enum weft_result result;

	error_clear();
	result = range_check(win, "weft_win_get", dst, len, rank, offset);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(win->comm->ctx);
	result = exec_win_get(win->exec, win->context, win_rank(win, rank), dst, len,
			      offset);
	ctx_started(win->comm->ctx);
	ctx_unlock(win->comm->ctx);
	return result;
}

enum weft_result weft_win_put_signal(struct weft_win *win, const void *src, size_t len,
				     int32_t rank, uint64_t offset, uint32_t index,
				     uint64_t value)
{
	enum weft_result result;

	error_clear();
	result = range_check(win, "weft_win_put_signal", src, len, rank, offset);
	if (result == WEFT_SUCCESS)
		result = index_check(win, "weft_win_put_signal", index);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(win->comm->ctx);
	result = exec_win_put(win->exec, win->context, win_rank(win, rank), src, len,
			      offset);
	if (result == WEFT_SUCCESS)
		result = exec_win_signal(win->exec, win->context, win_rank(win, rank),
					 index, value);
	ctx_started(win->comm->ctx);
	ctx_unlock(win->comm->ctx);
	return result;
}

enum weft_result weft_win_put_signal_weak(struct weft_win *win, const void *src,
					  size_t len, int32_t rank, uint64_t offset,
					  uint32_t index, uint64_t value)
{
	enum weft_result result;

	error_clear();
	result = range_check(win, "weft_win_put_signal_weak", src, len, rank, offset);
	if (result == WEFT_SUCCESS)
		result = index_check(win, "weft_win_put_signal_weak", index);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(win->comm->ctx);
	result = exec_win_put_weak(win->exec, win->context, win_rank(win, rank), src, len,
				   offset, index, value);
	ctx_started(win->comm->ctx);
	ctx_unlock(win->comm->ctx);
	return result;
}

enum weft_result weft_win_signal(struct weft_win *win, int32_t rank, uint32_t index,
				 uint64_t value)
{
	enum weft_result result;

	error_clear();
	result = rank_check(win, "weft_win_signal", rank);
	if (result == WEFT_SUCCESS)
		result = index_check(win, "weft_win_signal", index);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(win->comm->ctx);
	result = exec_win_signal(win->exec, win->context, win_rank(win, rank), index,
				 value);
	ctx_started(win->comm->ctx);
	ctx_unlock(win->comm->ctx);
	return result;
}

struct wanted {
	uint32_t index;
	uint64_t value;
};

LOCK_HELD(lock_context)
static bool until_signalled(struct weft_win *win, const void *arg)
{
	const struct wanted *want = arg;
	uint64_t *word = exec_win_word(win->exec, want->index);

	if (*word < want->value)
		return false;
	*word -= want->value;
	return true;
}

static enum weft_result timeout_check(const char *name, int64_t timeout_us)
{
	return timeout_us >= WEFT_TIMEOUT_INFINITE
		       ? WEFT_SUCCESS
		       : error_set(WEFT_ERR_ARG, "%s: timeout_us is %lld", name,
				   (long long)timeout_us);
}

enum weft_result weft_win_wait(struct weft_win *win, uint32_t index, uint64_t value,
			       int64_t timeout_us)
{
	const struct wanted want = {index, value};
	enum weft_result result;

	error_clear();
	if (!win)
		return error_set(WEFT_ERR_ARG, "weft_win_wait: win is NULL");
	result = index_check(win, "weft_win_wait", index);
	if (result == WEFT_SUCCESS)
		result = timeout_check("weft_win_wait", timeout_us);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(win->comm->ctx);
	result = win_wait(win, until_signalled, &want, timeout_us);
	if (result == WEFT_ERR_TIMEOUT)
		error_set(result,
			  "weft_win_wait: signal %u of window %u is %llu, not %llu, at "
			  "the deadline",
			  index, win->number,
			  (unsigned long long)*exec_win_word(win->exec, index),
			  (unsigned long long)value);
	ctx_unlock(win->comm->ctx);
	return result;
}

enum weft_result weft_win_flush(struct weft_win *win, int32_t rank, int64_t timeout_us)
{
	enum weft_result result;

	error_clear();
	result = rank_check(win, "weft_win_flush", rank == -1 ? 0 : rank);
	if (result == WEFT_SUCCESS)
		result = timeout_check("weft_win_flush", timeout_us);
	if (result != WEFT_SUCCESS)
		return result;
	ctx_lock(win->comm->ctx);
	result = win_wait(win, until_flushed, &rank, timeout_us);
	if (result == WEFT_ERR_TIMEOUT)
		error_set(result,
			  "weft_win_flush: %u operations with rank %d of window %u "
			  "(-1: any) are unfinished at the deadline",
			  exec_win_open_ops(win->exec, win->context,
					    rank < 0 ? rank : win_rank(win, rank)),
			  rank, win->number);
	ctx_unlock(win->comm->ctx);
	return result;
}
