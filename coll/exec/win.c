/* SPDX-License-Identifier: BSD-2-Clause */
/* See win.h. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/name.h"
#include "coll/exec/win.h"

/* What this rank knows of another one's part. */
struct win_peer {
	uint64_t key, base, len;
	uint32_t tag; /* of the next message that we name */
	bool member;
};

/* The same in one context: contexts know nothing of each other. */
struct win_flow {
	uint64_t issued; /* puts to it */
	uint64_t landed; /* puts from it */
	uint32_t open;	 /* puts and gets whose buffers are in use */
};

struct exec_win {
	struct list link; /* exec.wins */
	struct exec *x;
	uint32_t comm, number, signals, contexts;
	char *base;
	uint64_t len;
	struct mem_entry *mr;
	uint64_t *signal;
	struct win_peer *peer; /* by rank */
	struct win_flow *flow; /* by context and rank: win_flow() */
	struct list late;      /* struct win_late */
	struct list ops;       /* struct win_op, all that are not done */
	uint32_t busy;	       /* of them */
	bool closing;
	enum weft_result result;
	char text[EXEC_TEXT_MAX];
};

enum win_kind {
	WIN_WRITE,    /* our put, as a remote write */
	WIN_READ,     /* our get, as a remote read */
	WIN_PUT_SEND, /* our put, as a message */
	WIN_PUT_RECV, /* a put of another rank, into our window */
	WIN_GET_RECV, /* what we asked for */
	WIN_GET_SEND, /* what another rank asked for */
};

struct win_op {
	struct list link;  /* exec_win.ops */
	struct list retry; /* exec.win_retry */
	struct exec_win *win;
	struct net_op *net;   /* while it is posted */
	struct mem_entry *mr; /* of the local memory, where that is needed */
	enum win_kind kind;
	int32_t rank;
	uint32_t context;
	uint32_t tag;
	uint8_t tries;
	struct win_weak *weak; /* told when the put was delivered; NULL: none */
	char *local;
	uint64_t len, offset;
};

/* A signal that came before the puts that it covers. */
struct win_late {
	struct list link;
	int32_t src;
	uint32_t context;
	uint32_t index;
	uint64_t value, puts;
};

/* In the offset of a signal, which is else its context: it says itself that its put has
 * landed, and covers no other. */
#define WIN_SIGNAL_WEAK (UINT64_C(1) << 32)

/* A weak signal, which waits for the operations of its own put alone. */
struct win_weak {
	uint32_t left; /* of them */
	uint32_t index;
	uint64_t value;
};

static struct win_flow *win_flow(const struct exec_win *win, uint32_t context,
				 int32_t rank)
{
	return &win->flow[(size_t)context * (size_t)win->x->size + (size_t)rank];
}

/* ---- failures ---- */

__attribute__((format(printf, 3, 4))) static void win_fail(struct exec_win *win,
							   enum weft_result result,
							   const char *fmt, ...)
{
	va_list ap;

	if (win->result != WEFT_SUCCESS)
		return;
	win->result = result;
	va_start(ap, fmt);
	vsnprintf(win->text, sizeof(win->text), fmt, ap);
	va_end(ap);
}

enum weft_result exec_win_failed(const struct exec_win *win, const char **text)
{
	*text = win->text;
	return win->result;
}

void win_peer_lost(struct exec *x, int32_t rank, const char *why)
{
	list_foreach (pos, &x->wins) {
		struct exec_win *win = container_of(pos, struct exec_win, link);

		if (win->peer[rank].member)
			win_fail(win, WEFT_ERR_PEER,
				 "window %u of communicator %u: rank %d is lost: %s",
				 win->number, win->comm, rank, why);
	}
}

void win_revoked(struct exec *x, uint32_t comm, const char *why)
{
	list_foreach (pos, &x->wins) {
		struct exec_win *win = container_of(pos, struct exec_win, link);

		if (win->comm == comm)
			win_fail(win, WEFT_ERR_REVOKED, "window %u: %s", win->number,
				 why);
	}
}

/* ---- what landed, and signals ---- */

static struct exec_win *win_find(const struct exec *x, uint32_t comm, uint32_t number)
{
	list_foreach (pos, &x->wins) {
		struct exec_win *win = container_of(pos, struct exec_win, link);

		if (win->comm == comm && win->number == number)
			return win;
	}
	return NULL;
}

static void win_landed(struct exec_win *win, uint32_t context, int32_t src)
{
	const uint64_t landed = ++win_flow(win, context, src)->landed;

	trace_put(win->x->trace, TRACE_WIN_LAND, 0, win->comm, win->number, src, 0);
	list_foreach_safe (pos, tmp, &win->late) {
		struct win_late *late = container_of(pos, struct win_late, link);

		if (late->src != src || late->context != context || late->puts > landed)
			continue;
		win->signal[late->index] += late->value;
		list_remove(&late->link);
		pool_put(&win->x->win_lates, late);
	}
}

void win_data(struct exec *x, uint32_t comm, uint32_t number, uint32_t index)
{
	struct exec_win *win = win_find(x, comm, number);
	const uint32_t src = index & NAME_WIN_RANK, context = index >> NAME_WIN_SHIFT;

	if (win && src < (uint32_t)x->size && context < win->contexts)
		win_landed(win, context, (int32_t)src);
	else
		x->stats.foreign++;
}

static void win_signal_came(struct exec_win *win, const struct ctl_msg *msg)
{
	const uint64_t context = msg->win.offset & ~WIN_SIGNAL_WEAK;
	struct win_late *late;

	if (msg->win.index >= win->signals || context >= win->contexts) {
		win->x->garbage++;
		return;
	}
	trace_put(win->x->trace, TRACE_SIGNAL, 0, win->comm, win->number, msg->src,
		  msg->win.value);
	if (msg->win.offset & WIN_SIGNAL_WEAK)
		win_landed(win, (uint32_t)context, msg->src);
	if (win_flow(win, (uint32_t)context, msg->src)->landed >= msg->win.length) {
		win->signal[msg->win.index] += msg->win.value;
		return;
	}
	late = pool_get(&win->x->win_lates);
	if (!late) {
		win_fail(win, WEFT_ERR_NOMEM, "no memory for a signal");
		return;
	}
	*late = (struct win_late){.src = msg->src,
				  .context = (uint32_t)context,
				  .index = msg->win.index,
				  .value = msg->win.value,
				  .puts = msg->win.length};
	list_push_back(&win->late, &late->link);
}

/* ---- operations ---- */

static bool op_is_ours(const struct win_op *op)
{
	return op->kind == WIN_WRITE || op->kind == WIN_READ ||
	       op->kind == WIN_PUT_SEND || op->kind == WIN_GET_RECV;
}

static bool op_receives(const struct win_op *op)
{
	return op->kind == WIN_PUT_RECV || op->kind == WIN_GET_RECV;
}

/* Tells a weak signal once all of its put was delivered. */
static void weak_done(struct win_op *op, bool good)
{
	struct exec_win *win = op->win;
	struct win_weak *weak = op->weak;
	struct ctl_msg msg = {.kind = CTL_WIN_SIGNAL,
			      .comm = win->comm,
			      .call = win->number,
			      .win = {.index = weak->index,
				      .offset = op->context | WIN_SIGNAL_WEAK,
				      .value = weak->value}};

	op->weak = NULL;
	if (--weak->left)
		return;
	pool_put(&win->x->win_weaks, weak);
	if (good && !win->closing && ctl_io_send(win->x, op->rank, &msg))
		win_fail(win, WEFT_ERR_NOMEM, "no memory for a control message");
}

static void op_release(struct win_op *op)
{
	struct exec_win *win = op->win;

	if (op->weak)
		weak_done(op, false);
	list_remove(&op->link);
	list_remove(&op->retry);
	win->busy--;
	if (op_is_ours(op))
		win_flow(win, op->context, op->rank)->open--;
	if (op->mr)
		mem_put(&win->x->mem, op->mr);
	pool_put(&win->x->win_ops, op);
}

static void op_done(struct net_op *net, const struct net_result *result)
{
	struct win_op *op = net->owner;
	struct exec_win *win = op->win;
	struct exec *x = win->x;

	net_op_release(&x->net, net);
	op->net = NULL;
	if (net_broke(result) && op->kind != WIN_WRITE && op->kind != WIN_READ &&
	    !op_receives(op) && ++op->tries < EXEC_SEND_TRIES && !win->closing) {
		list_push_back(&x->win_retry, &op->retry);
		return;
	}
	if (result->err)
		win_fail(win, WEFT_ERR_PEER,
			 "window %u of communicator %u: %s rank %d failed: %s",
			 win->number, win->comm,
			 op_receives(op) ? "receiving from" : "sending to", op->rank,
			 result->text);
	else if (op_receives(op) && result->len != op->len)
		win_fail(win, WEFT_ERR_INTERNAL,
			 "window %u of communicator %u: rank %d sent %zu bytes, not "
			 "%llu",
			 win->number, win->comm, op->rank, result->len,
			 (unsigned long long)op->len);
	else if (op->kind == WIN_PUT_RECV)
		win_landed(win, op->context, op->rank);
	if (op->weak)
		weak_done(op, !result->err);
	op_release(op);
}

static uint64_t op_tag(const struct win_op *op)
{
	const bool get = op->kind == WIN_GET_RECV || op->kind == WIN_GET_SEND;

	return op->win->x->net.job ^ name_pack(NAME_WIN, op->win->comm, op->win->number,
					       (uint64_t)op->tag << 1 | get);
}

/* A remote write or read. */
static int op_rma(struct win_op *op, void *desc, struct net_op *net)
{
	struct exec *x = op->win->x;
	struct iovec iov = {op->local, op->len};
	struct fi_rma_iov rma = {op->win->peer[op->rank].base + op->offset, op->len,
				 op->win->peer[op->rank].key};
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = x->net.addr[op->rank],
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = net,
		.data = x->net.job ^ name_pack(NAME_WIN, op->win->comm, op->win->number,
					       (uint64_t)op->context << NAME_WIN_SHIFT |
						       (uint32_t)x->rank),
	};
	/* The word of a weak signal is the control message that follows. */
	const uint64_t flags =
		FI_COMPLETION | (op->weak ? FI_DELIVERY_COMPLETE : FI_REMOTE_CQ_DATA);
	int rc;

	if (op->kind == WIN_READ)
		return (int)fi_readmsg(x->net.ep, &msg, FI_COMPLETION);
	rc = (int)fi_writemsg(x->net.ep, &msg, flags);
	if (!rc) {
		x->stats.puts++;
		x->stats.put_bytes += op->len;
		trace_put(x->trace, TRACE_WIN_PUT, 0, op->win->comm, op->win->number,
			  op->rank, op->len);
	}
	return rc;
}

static int op_message(struct win_op *op, void *desc, struct net_op *net)
{
	struct exec *x = op->win->x;
	const fi_addr_t addr = x->net.addr[op->rank];

	if (op_receives(op))
		return (int)fi_trecv(x->net.ep, op->local, op->len, desc, addr,
				     op_tag(op), 0, net);
	return (int)fi_tsend(x->net.ep, op->local, op->len, desc, addr, op_tag(op), net);
}

/* 0, -FI_EAGAIN, or what is wrong. */
static int op_post(struct win_op *op)
{
	struct exec *x = op->win->x;
	struct net_op *net = net_op_alloc(&x->net);
	void *desc = NULL;
	int rc = 0;

	if (!net)
		return -FI_ENOMEM;
	net->done = op_done;
	net->owner = op;
	net->peer = op->rank;
	if (x->net.mr_local && !op->mr)
		rc = mem_get(&x->mem, op->local, op->len, false, &op->mr);
	if (op->mr)
		desc = fi_mr_desc(op->mr->mr);
	if (!rc)
		rc = op->kind == WIN_WRITE || op->kind == WIN_READ
			     ? op_rma(op, desc, net)
			     : op_message(op, desc, net);
	if (rc) {
		net_op_release(&x->net, net);
		return rc;
	}
	op->net = net;
	return 0;
}

/* Asks for what the receive that was posted is for. */
static int op_ask(const struct win_op *op, enum ctl_kind kind)
{
	struct ctl_msg msg = {.kind = kind,
			      .comm = op->win->comm,
			      .call = op->win->number,
			      .win = {.index = op->tag,
				      .offset = op->offset,
				      .length = op->len,
				      .value = op->context}};

	return ctl_io_send(op->win->x, op->rank, &msg);
}

/* Posts it now, or later; false when it failed, and is gone. */
static bool op_try(struct win_op *op)
{
	struct exec_win *win = op->win;
	int rc = op_post(op);

	if (rc == -FI_EAGAIN) {
		list_push_back(&win->x->win_retry, &op->retry);
		return true;
	}
	if (!rc && op->kind == WIN_GET_RECV)
		rc = op_ask(op, CTL_WIN_GET);
	if (!rc)
		return true;
	win_fail(win, rc == -FI_ENOMEM ? WEFT_ERR_NOMEM : WEFT_ERR_PEER,
		 "window %u of communicator %u: rank %d cannot be reached: %s",
		 win->number, win->comm, op->rank, fi_strerror(-rc));
	/* One that was posted is ended by closing the window. */
	if (!op->net)
		op_release(op);
	return false;
}

static bool op_start(struct exec_win *win, const struct win_op *what)
{
	struct win_op *op = pool_get(&win->x->win_ops);

	if (!op) {
		win_fail(win, WEFT_ERR_NOMEM, "no memory for an operation of a window");
		return false;
	}
	*op = *what;
	op->win = win;
	list_init(&op->retry);
	list_push_back(&win->ops, &op->link);
	win->busy++;
	if (op_is_ours(op))
		win_flow(win, op->context, op->rank)->open++;
	return op_try(op);
}

bool win_progress(struct exec *x)
{
	struct list again;
	struct list *node;
	bool moved = false;

	list_init(&again);
	while ((node = list_pop_front(&x->win_retry)))
		list_push_back(&again, node);
	while ((node = list_pop_front(&again))) {
		struct win_op *op = container_of(node, struct win_op, retry);

		moved = op_try(op) && op->net ? true : moved;
	}
	return moved;
}

/* ---- what other ranks ask for ---- */

static bool win_holds(const struct exec_win *win, uint64_t offset, uint64_t len)
{
	return offset <= win->len && len <= win->len - offset;
}

void win_ctl(struct exec *x, const struct ctl_msg *msg)
{
	struct exec_win *win = win_find(x, msg->comm, msg->call);
	struct win_op op = {.rank = msg->src};

	if (!win || win->closing) {
		x->garbage++;
		return;
	}
	if (msg->kind == CTL_WIN_SIGNAL) {
		win_signal_came(win, msg);
		return;
	}
	if (!msg->win.length || !win_holds(win, msg->win.offset, msg->win.length)) {
		win_fail(win, WEFT_ERR_MISMATCH,
			 "window %u of communicator %u: rank %d asks for %llu bytes from "
			 "%llu on, rank %d has %llu",
			 win->number, win->comm, msg->src,
			 (unsigned long long)msg->win.length,
			 (unsigned long long)msg->win.offset, x->rank,
			 (unsigned long long)win->len);
		return;
	}
	/* The value of what asks for a message is the context. */
	if (msg->win.value >= win->contexts) {
		x->garbage++;
		return;
	}
	op.context = (uint32_t)msg->win.value;
	op.kind = msg->kind == CTL_WIN_PUT ? WIN_PUT_RECV : WIN_GET_SEND;
	op.tag = msg->win.index;
	op.local = win->base + msg->win.offset;
	op.len = msg->win.length;
	op_start(win, &op);
}

/* ---- calls ---- */

/* The window's failure as that of the call. */
static enum weft_result win_result(const struct exec_win *win)
{
	return win->result == WEFT_SUCCESS ? WEFT_SUCCESS
					   : error_set(win->result, "%s", win->text);
}

/* One put that no transfer is too short for. */
static void win_put_piece(struct exec_win *win, struct win_op op)
{
	struct exec *x = win->x;

	/* A weak one counts as one, whatever its pieces. */
	if (!op.weak)
		win_flow(win, op.context, op.rank)->issued++;
	if (op.kind == WIN_PUT_SEND) {
		op.tag = win->peer[op.rank].tag++;
		op.win = win;
		if (op_ask(&op, CTL_WIN_PUT)) {
			win_fail(win, WEFT_ERR_NOMEM, "no memory for a control message");
			return;
		}
		x->stats.msgs++;
		x->stats.msg_bytes += op.len;
	}
	op_start(win, &op);
}

/* What is longer than the provider carries goes in pieces. */
static enum weft_result win_pieces(struct exec_win *win, struct win_op op,
				   void (*piece)(struct exec_win *win, struct win_op op))
{
	const uint64_t max = win->x->net.transfer_max;
	uint64_t left = op.len;

	while (left && win->result == WEFT_SUCCESS) {
		op.len = left < max ? left : max;
		left -= op.len;
		piece(win, op);
		op.local += op.len;
		op.offset += op.len;
	}
	return win_result(win);
}

static struct win_op win_put_op(const struct exec_win *win, uint32_t context,
				int32_t rank, const void *src, uint64_t len,
				uint64_t offset)
{
	return (struct win_op){.kind = win->x->caps.put ? WIN_WRITE : WIN_PUT_SEND,
			       .rank = rank,
			       .context = context,
			       .local = (char *)(uintptr_t)src,
			       .len = len,
			       .offset = offset};
}

enum weft_result exec_win_put(struct exec_win *win, uint32_t context, int32_t rank,
			      const void *src, uint64_t len, uint64_t offset)
{
	if (win->result != WEFT_SUCCESS || !len)
		return win_result(win);
	if (rank == win->x->rank) {
		memmove(win->base + offset, src, len);
		return WEFT_SUCCESS;
	}
	return win_pieces(win, win_put_op(win, context, rank, src, len, offset),
			  win_put_piece);
}

enum weft_result exec_win_put_weak(struct exec_win *win, uint32_t context, int32_t rank,
				   const void *src, uint64_t len, uint64_t offset,
				   uint32_t index, uint64_t value)
{
	const uint64_t max = win->x->net.transfer_max;
	struct win_op op = win_put_op(win, context, rank, src, len, offset);
	enum weft_result result;

	/* Nothing to wait for, or nothing that says when a write was delivered: one that
	 * covers more is as good. */
	if (!len || rank == win->x->rank || !win->x->caps.put ||
	    !win->x->caps.put_pieces) {
		result = exec_win_put(win, context, rank, src, len, offset);
		return result == WEFT_SUCCESS
			       ? exec_win_signal(win, context, rank, index, value)
			       : result;
	}
	if (win->result != WEFT_SUCCESS)
		return win_result(win);
	op.weak = pool_get(&win->x->win_weaks);
	if (!op.weak)
		return error_set(WEFT_ERR_NOMEM, "no memory for a signal");
	*op.weak = (struct win_weak){.left = (uint32_t)(len / max + (len % max != 0)),
				     .index = index,
				     .value = value};
	win_flow(win, context, rank)->issued++;
	return win_pieces(win, op, win_put_piece);
}

static void win_get_piece(struct exec_win *win, struct win_op op)
{
	if (op.kind == WIN_GET_RECV)
		op.tag = win->peer[op.rank].tag++;
	op_start(win, &op);
}

enum weft_result exec_win_get(struct exec_win *win, uint32_t context, int32_t rank,
			      void *dst, uint64_t len, uint64_t offset)
{
	const struct win_op op = {.kind = win->x->caps.get ? WIN_READ : WIN_GET_RECV,
				  .rank = rank,
				  .context = context,
				  .local = dst,
				  .len = len,
				  .offset = offset};

	if (win->result != WEFT_SUCCESS || !len)
		return win_result(win);
	if (rank == win->x->rank) {
		memmove(dst, win->base + offset, len);
		return WEFT_SUCCESS;
	}
	return win_pieces(win, op, win_get_piece);
}

enum weft_result exec_win_signal(struct exec_win *win, uint32_t context, int32_t rank,
				 uint32_t index, uint64_t value)
{
	struct ctl_msg msg = {.kind = CTL_WIN_SIGNAL,
			      .comm = win->comm,
			      .call = win->number,
			      .win = {.index = index,
				      .offset = context,
				      .length = win_flow(win, context, rank)->issued,
				      .value = value}};

	if (win->result != WEFT_SUCCESS)
		return win_result(win);
	if (rank == win->x->rank)
		win->signal[index] += value;
	else if (ctl_io_send(win->x, rank, &msg))
		win_fail(win, WEFT_ERR_NOMEM, "no memory for a control message");
	return win_result(win);
}

uint32_t exec_win_open_ops(const struct exec_win *win, uint32_t context, int32_t rank)
{
	uint32_t open = 0;

	if (rank >= 0)
		return win_flow(win, context, rank)->open;
	for (int32_t r = 0; r < win->x->size; r++)
		open += win_flow(win, context, r)->open;
	return open;
}

uint32_t exec_win_busy(const struct exec_win *win)
{
	return win->busy;
}

uint64_t exec_win_issued(const struct exec_win *win, int32_t rank)
{
	uint64_t sum = 0;

	for (uint32_t c = 0; c < win->contexts; c++)
		sum += win_flow(win, c, rank)->issued;
	return sum;
}

uint64_t exec_win_landed(const struct exec_win *win, int32_t rank)
{
	uint64_t sum = 0;

	for (uint32_t c = 0; c < win->contexts; c++)
		sum += win_flow(win, c, rank)->landed;
	return sum;
}

uint64_t *exec_win_word(struct exec_win *win, uint32_t index)
{
	return &win->signal[index];
}

/* ---- life ---- */

static void win_free(struct exec_win *win)
{
	free(win->signal);
	free(win->peer);
	free(win->flow);
	free(win);
}

enum weft_result exec_win_open(struct exec *x, uint32_t comm, uint32_t number, void *base,
			       uint64_t len, uint32_t signals, uint32_t contexts,
			       struct exec_win **out)
{
	struct exec_win *win = calloc(1, sizeof(*win));
	int rc = 0;

	if (win) {
		win->signal = calloc((size_t)signals + 1, sizeof(*win->signal));
		win->peer = calloc((size_t)x->size, sizeof(*win->peer));
		win->flow = calloc((size_t)x->size * contexts, sizeof(*win->flow));
	}
	if (!win || !win->signal || !win->peer || !win->flow) {
		if (win)
			win_free(win);
		return error_set(WEFT_ERR_NOMEM, "no memory for a window");
	}
	if (len && x->caps.put)
		rc = mem_get(&x->mem, base, len, true, &win->mr);
	if (rc) {
		win_free(win);
		return error_set(rc == -FI_ENOMEM ? WEFT_ERR_NOMEM : WEFT_ERR_PROVIDER,
				 "registering %llu bytes for a window: %s",
				 (unsigned long long)len, fi_strerror(-rc));
	}
	win->x = x;
	win->comm = comm;
	win->number = number;
	win->signals = signals;
	win->contexts = contexts;
	win->base = base;
	win->len = len;
	list_init(&win->late);
	list_init(&win->ops);
	list_push_back(&x->wins, &win->link);
	*out = win;
	return WEFT_SUCCESS;
}

void exec_win_card(const struct exec_win *win, struct win_card *card)
{
	*card = (struct win_card){
		.len = win->len, .signals = win->signals, .contexts = win->contexts};
	if (win->mr) {
		card->key = win->mr->key;
		card->base = win->mr->base + ((uintptr_t)win->base - win->mr->start);
	}
}

void exec_win_peer(struct exec_win *win, int32_t rank, const struct win_card *card)
{
	struct win_peer *peer = &win->peer[rank];

	peer->key = card->key;
	peer->base = card->base;
	peer->len = card->len;
	peer->member = true;
}

bool exec_win_close(struct exec_win *win, bool quiet)
{
	struct exec *x = win->x;
	struct list *node;

	win->closing = true;
	list_foreach_safe (pos, tmp, &win->ops) {
		struct win_op *op = container_of(pos, struct win_op, link);

		if (!op->net)
			op_release(op);
		else if (op_receives(op))
			fi_cancel(&x->net.ep->fid, op->net);
	}
	if (win->mr) {
		if (!quiet)
			mem_revoke(win->mr);
		mem_put(&x->mem, win->mr);
		win->mr = NULL;
	}
	if (win->busy || (!quiet && win->len && x->caps.put &&
			  !mem_forget(&x->mem, win->base, win->len)))
		return false;
	while ((node = list_pop_front(&win->late)))
		pool_put(&x->win_lates, container_of(node, struct win_late, link));
	list_remove(&win->link);
	win_free(win);
	return true;
}

void wins_init(struct exec *x)
{
	list_init(&x->wins);
	list_init(&x->win_retry);
	pool_init(&x->win_ops, sizeof(struct win_op));
	pool_init(&x->win_lates, sizeof(struct win_late));
	pool_init(&x->win_weaks, sizeof(struct win_weak));
}

void wins_fini(struct exec *x)
{
	struct list *node;

	while ((node = list_pop_front(&x->wins)))
		win_free(container_of(node, struct exec_win, link));
	pool_fini(&x->win_ops);
	pool_fini(&x->win_lates);
	pool_fini(&x->win_weaks);
}
