/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every rank but 0: one connection to rank 0. Rank 0's FAIL may come at any moment, so
 * the socket is read also while a contribution is being sent.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"
#include "coll/boot/boot_side.h"
#include "coll/boot/boot_table.h"

struct boot_leaf {
	int32_t rank;
	int32_t size;
	uint64_t node;
	uint8_t job[BOOT_JOB_LEN];
	int fd;
	int table; /* a descriptor that others of this host may look for, or -1 */
	struct boot_count count;
};

/* One message on its way in. */
struct leaf_rx {
	struct boot_hdr hdr;
	size_t hdr_done;
	bool hdr_good;
	struct boot_msg msg;
	char text[BOOT_TEXT_MAX + 1]; /* of FAIL */
	size_t body_done;
};

enum leaf_got {
	LEAF_MORE,
	LEAF_MSG,    /* a message is complete */
	LEAF_EOF,    /* or reset */
	LEAF_BROKEN, /* whatever this is, it is not rank 0 of this job */
	LEAF_NO_ROOM /* for the result */
};

/* Memory for a result that isn't shared is there when one comes. */
static void *rx_memory(const struct boot_gather *g, uint64_t len)
{
	if (!g->view)
		return g->out;
	if (!g->view->memory)
		g->view->memory = malloc(len);
	g->view->at = g->view->memory;
	return g->view->memory;
}

/* Where the body of a message goes. Another answer than MSG: none is to be read. */
static enum leaf_got rx_place(struct leaf_rx *rx, const struct boot_gather *g,
			      void **place, uint64_t *len, int32_t size)
{
	*place = rx->text;
	*len = 0;
	switch (rx->msg.type) {
	case BOOT_FAIL:
		*len = rx->msg.len;
		return LEAF_MSG;
	case BOOT_RESULT:
	case BOOT_LEAD:
		if (!g || rx->msg.len != g->len || rx->msg.seq != g->seq)
			return LEAF_BROKEN;
		*len = rx->msg.len * (uint64_t)size;
		if (*len)
			*place = rx_memory(g, *len);
		return *place ? LEAF_MSG : LEAF_NO_ROOM;
	case BOOT_TABLE:
		return g ? LEAF_MSG : LEAF_BROKEN;
	case BOOT_ACCEPT:
	case BOOT_WELCOME:
		return g ? LEAF_BROKEN : LEAF_MSG;
	default:
		return LEAF_BROKEN;
	}
}

static enum leaf_got leaf_read(struct boot_leaf *leaf, struct leaf_rx *rx,
			       const struct boot_gather *g)
{
	enum leaf_got got;
	enum boot_io io;
	uint64_t len;
	void *place;

	if (!rx->hdr_good) {
		io = boot_io_read(leaf->fd, &rx->hdr, sizeof(rx->hdr), &rx->hdr_done);
		if (io == BOOT_IO_MORE)
			return LEAF_MORE;
		if (io != BOOT_IO_DONE)
			return LEAF_EOF;
		if (boot_wire_check(&rx->hdr, rx->hdr_done, leaf->job, &rx->msg) !=
			    BOOT_WIRE_GOOD ||
		    (rx->msg.size != leaf->size && rx->msg.type != BOOT_FAIL))
			return LEAF_BROKEN;
		rx->hdr_good = true;
	}
	got = rx_place(rx, g, &place, &len, leaf->size);
	if (got != LEAF_MSG)
		return got;
	io = boot_io_read(leaf->fd, place, len, &rx->body_done);
	if (io == BOOT_IO_MORE)
		return LEAF_MORE;
	if (io != BOOT_IO_DONE)
		return LEAF_EOF;
	leaf->count.received++;
	leaf->count.bytes += sizeof(rx->hdr) + len;
	return LEAF_MSG;
}

/* Rank 0's words become ours. They come from outside: nothing unprintable passes. */
static enum weft_result leaf_verdict(struct leaf_rx *rx)
{
	rx->text[rx->body_done] = '\0';
	for (char *c = rx->text; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	return error_set((enum weft_result)rx->msg.code, "%s", rx->text);
}

/*
 * Until tx is out and a message is in, or the deadline. tx may be NULL. A send that fails
 * is no answer: what rank 0 said before it hung up may still be there to be read.
 */
static enum leaf_got leaf_exchange(struct boot_leaf *leaf, struct boot_tx *tx,
				   struct leaf_rx *rx, const struct boot_gather *g,
				   int64_t deadline)
{
	bool sending = tx != NULL;
	enum leaf_got got;

	if (tx) {
		leaf->count.sent++;
		leaf->count.bytes += sizeof(tx->hdr) + tx->payload_len;
	}
	for (;;) {
		struct pollfd pfd = {.fd = leaf->fd, .events = POLLIN};

		if (sending)
			sending = boot_io_write(leaf->fd, tx) == BOOT_IO_MORE;
		got = leaf_read(leaf, rx, g);
		if (got != LEAF_MORE || boot_clock_us() >= deadline)
			return got;
		if (sending)
			pfd.events |= POLLOUT;
		(void)poll(&pfd, 1, boot_wait_ms(deadline, -1));
	}
}

/* ---- open ------------------------------------------------------------------------- */

/*
 * One conversation with whoever listens at WEFT_ROOT. True: settled, *result says how.
 * False: that was not rank 0, or not yet; try again, why says what happened.
 */
static bool leaf_hello(struct boot_leaf *leaf, int64_t deadline, enum weft_result *result,
		       char *why, size_t why_len)
{
	struct boot_msg hello = {
		.type = BOOT_HELLO,
		.rank = leaf->rank,
		.size = leaf->size,
		.seq = leaf->node,
	};
	struct boot_tx tx = {.payload = NULL};
	struct leaf_rx rx = {.hdr_done = 0};
	enum leaf_got got;

	boot_wire_put(&tx.hdr, &hello, leaf->job);
	got = leaf_exchange(leaf, &tx, &rx, NULL, deadline);
	if (got != LEAF_MSG) {
		snprintf(why, why_len, "%s",
			 got == LEAF_MORE  ? "it accepts connections, but does not answer"
			 : got == LEAF_EOF ? "it hangs up: another job's, or not rank 0"
					   : "it is not rank 0 of this job and version");
		return false;
	}
	if (rx.msg.type == BOOT_ACCEPT) {
		rx = (struct leaf_rx){.hdr_done = 0};
		got = leaf_exchange(leaf, NULL, &rx, NULL, deadline);
	}
	if (got == LEAF_MSG && rx.msg.type == BOOT_WELCOME)
		*result = WEFT_SUCCESS;
	else if (got == LEAF_MSG && rx.msg.type == BOOT_FAIL)
		*result = leaf_verdict(&rx);
	else if (got == LEAF_MORE)
		*result = error_set(
			WEFT_ERR_BOOTSTRAP,
			"bootstrap: rank 0 accepted rank %d, but did not say until "
			"the deadline that all ranks are there",
			leaf->rank);
	else
		*result = error_set(
			WEFT_ERR_BOOTSTRAP,
			"bootstrap: rank 0 went away before all ranks were there; "
			"see rank 0's output");
	return true;
}

enum weft_result boot_leaf_open(const struct boot_env *env, int64_t timeout_us,
				struct boot_leaf **out)
{
	int64_t deadline = boot_deadline(timeout_us);
	int64_t verdict_by = boot_deadline_later(deadline, BOOT_VERDICT_US);
	struct boot_leaf *leaf = calloc(1, sizeof(*leaf));
	enum weft_result result = WEFT_ERR_BOOTSTRAP;
	char why[160] = "no attempt";
	uint32_t backoff = 0;
	bool settled = false;

	if (!leaf)
		return error_set(WEFT_ERR_NOMEM, "bootstrap: no memory");
	leaf->table = -1;
	leaf->rank = env->rank;
	leaf->size = env->size;
	leaf->node = env->node;
	memcpy(leaf->job, env->job, BOOT_JOB_LEN);
	do {
		leaf->fd = boot_io_connect(env->host, env->port, deadline, &backoff, why,
					   sizeof(why));
		if (leaf->fd < 0)
			break;
		settled = leaf_hello(leaf, verdict_by, &result, why, sizeof(why));
		if (settled && result == WEFT_SUCCESS) {
			*out = leaf;
			return WEFT_SUCCESS;
		}
		close(leaf->fd);
		if (!settled)
			boot_io_backoff(&backoff, deadline);
	} while (!settled && boot_clock_us() < deadline);
	free(leaf);
	if (settled)
		return result;
	return error_set(
		WEFT_ERR_BOOTSTRAP,
		"rank %d did not reach rank 0 at %s port %s within %.1f s (%s): was "
		"rank 0 started, with the same WEFT_ROOT and WEFT_JOB?",
		env->rank, env->host, env->port, (double)timeout_us * 1e-6, why);
}

const struct boot_count *boot_leaf_count(const struct boot_leaf *leaf)
{
	return &leaf->count;
}

static void table_close(struct boot_leaf *leaf)
{
	if (leaf->table >= 0)
		close(leaf->table);
	leaf->table = -1;
}

void boot_leaf_close(struct boot_leaf *leaf)
{
	table_close(leaf);
	close(leaf->fd);
	free(leaf);
}

/* ---- all-gather ------------------------------------------------------------------- */

/* A header to rank 0, which read all that came before it: the socket has room. */
static void leaf_say(struct boot_leaf *leaf, enum boot_type type, uint64_t seq,
		     int64_t deadline)
{
	const struct boot_msg msg = {
		.type = type, .rank = leaf->rank, .size = leaf->size, .seq = seq};
	struct boot_tx tx = {.payload = NULL};
	struct pollfd pfd = {.fd = leaf->fd, .events = POLLOUT};

	boot_wire_put(&tx.hdr, &msg, leaf->job);
	leaf->count.sent++;
	leaf->count.bytes += sizeof(tx.hdr);
	/* If it can't leave, rank 0 is gone or says so. */
	while (boot_io_write(leaf->fd, &tx) == BOOT_IO_MORE && boot_clock_us() < deadline)
		(void)poll(&pfd, 1, boot_wait_ms(deadline, -1));
}

/* Who made the table needs no copy of its own. */
static void view_share(struct boot_leaf *leaf, const struct boot_gather *g)
{
	struct boot_view shared = {.at = NULL};
	struct boot_gather again = *g;

	again.view = &shared;
	if (!boot_table_take(boot_table_place(leaf->table), leaf->job, &again,
			     leaf->size))
		return;
	boot_view_end(g->view);
	*g->view = shared;
}

/* The result is here and there are others on this host: shares it. */
static void leaf_lead(struct boot_leaf *leaf, const struct boot_gather *g,
		      int64_t deadline)
{
	leaf->table =
		boot_table_make(leaf->job, g, leaf->size, g->view ? g->view->at : g->out);
	if (leaf->table < 0) {
		leaf_say(leaf, BOOT_MISS, g->seq, deadline);
		return;
	}
	leaf_say(leaf, BOOT_TABLE, boot_table_place(leaf->table), deadline);
	if (g->view)
		view_share(leaf, g);
}

/* Until the result is here, by one way or the other. */
static enum leaf_got leaf_gather(struct boot_leaf *leaf, const struct boot_gather *g,
				 struct leaf_rx *rx, int64_t deadline)
{
	const struct boot_msg msg = {.type = BOOT_GATHER,
				     .rank = leaf->rank,
				     .size = leaf->size,
				     .seq = g->seq,
				     .len = g->len};
	struct boot_tx tx = {.payload = g->in, .payload_len = g->len};
	enum leaf_got got;

	boot_wire_put(&tx.hdr, &msg, leaf->job);
	got = leaf_exchange(leaf, &tx, rx, g, deadline);
	/* All have contributed to this one, or it failed: that before is needed no more.
	 */
	table_close(leaf);
	if (got == LEAF_MSG && rx->msg.type == BOOT_TABLE) {
		if (boot_table_take(rx->msg.seq, leaf->job, g, leaf->size)) {
			leaf_say(leaf, BOOT_TOOK, g->seq, deadline);
			return LEAF_MSG;
		}
		leaf_say(leaf, BOOT_MISS, g->seq, deadline);
		*rx = (struct leaf_rx){.hdr_done = 0};
		got = leaf_exchange(leaf, NULL, rx, g, deadline);
		if (got == LEAF_MSG && rx->msg.type == BOOT_TABLE)
			return LEAF_BROKEN; /* twice would be without end */
	}
	if (got == LEAF_MSG && rx->msg.type == BOOT_LEAD)
		leaf_lead(leaf, g, deadline);
	return got;
}

enum weft_result boot_leaf_allgather(struct boot_leaf *leaf, const struct boot_gather *g)
{
	int64_t deadline =
		boot_deadline_later(boot_deadline(g->timeout_us), BOOT_VERDICT_US);
	struct leaf_rx rx = {.hdr_done = 0};

	switch (leaf_gather(leaf, g, &rx, deadline)) {
	case LEAF_MSG:
		return rx.msg.type == BOOT_FAIL ? leaf_verdict(&rx) : WEFT_SUCCESS;
	case LEAF_NO_ROOM:
		return error_set(WEFT_ERR_NOMEM,
				 "bootstrap all-gather %" PRIu64 " of %" PRIu64
				 " bytes from each of %d ranks: no memory",
				 g->seq, g->len, leaf->size);
	case LEAF_MORE:
		return error_set(WEFT_ERR_TIMEOUT,
				 "bootstrap all-gather %" PRIu64
				 ": no answer from rank 0 within "
				 "%.1f s; see what holds it, or raise the timeout",
				 g->seq, (double)g->timeout_us * 1e-6);
	case LEAF_EOF:
		return error_set(WEFT_ERR_PEER,
				 "bootstrap all-gather %" PRIu64
				 ": rank 0 died or closed its "
				 "context; see rank 0's output",
				 g->seq);
	default:
		return error_set(WEFT_ERR_PEER,
				 "bootstrap all-gather %" PRIu64
				 ": rank 0 sent no valid message; "
				 "do all ranks run the same version?",
				 g->seq);
	}
}
