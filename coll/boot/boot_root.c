/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rank 0's side: receives each contribution straight into its place of the result, from
 * where it goes out (boot_spread.c); nothing is copied per rank. Who fails is
 * found out here and told to everybody (FAIL), so that all ranks report the same.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_root.h"
#include "coll/boot/ranklist.h"

enum {
	EVENTS = 256,	   /* taken from epoll at once */
	LINGER_US = 500000 /* after a failure: time for the ranks to read about it */
};

enum boot_io boot_root_say(struct boot_root *root, int32_t rank, enum boot_type type)
{
	struct boot_peer *p = &root->peer[rank];
	struct boot_msg msg = {.type = type, .size = root->size};

	p->tx = (struct boot_tx){.payload = NULL};
	boot_wire_put(&p->tx.hdr, &msg, root->job);
	return boot_io_write(p->fd, &p->tx);
}

enum weft_result boot_root_fail(struct boot_root *root, enum weft_result result,
				int32_t about, const char *fmt, ...)
{
	char text[BOOT_TEXT_MAX];
	struct boot_msg msg = {.type = BOOT_FAIL,
			       .rank = about,
			       .size = root->size,
			       .code = (uint32_t)result};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	msg.len = strlen(text);
	root->failed = true;
	for (int32_t r = 1; r < root->size; r++) {
		struct boot_peer *p = &root->peer[r];

		/* A result that is half out cannot be interrupted; that rank sees the end
		 * of the connection. */
		if (p->fd < 0 || p->dead ||
		    p->tx.done < sizeof(p->tx.hdr) + p->tx.payload_len)
			continue;
		p->tx = (struct boot_tx){.payload = text, .payload_len = msg.len};
		boot_wire_put(&p->tx.hdr, &msg, root->job);
		(void)boot_io_write(p->fd, &p->tx); /* it fits, or the rank is gone */
		(void)shutdown(p->fd, SHUT_WR);
	}
	return error_set(result, "%s", text);
}

/* ---- all-gather ------------------------------------------------------------------- */

static bool peer_missing(const void *arg, int32_t rank)
{
	const struct boot_root *root = arg;

	/* Who waits for another rank is not the one that is waited for. */
	return rank > 0 && !root->peer[rank].finished && !root->peer[rank].dead &&
	       root->peer[rank].step != BOOT_STEP_WAIT;
}

enum weft_result boot_root_timeout(struct boot_root *root, const struct boot_gather *g)
{
	char list[128];
	int32_t first = 1;
	int32_t n = ranklist_format(list, sizeof(list), root->size, peer_missing, root);

	while (first < root->size - 1 && !peer_missing(root, first))
		first++;
	return boot_root_fail(
		root, WEFT_ERR_TIMEOUT, first,
		"bootstrap all-gather %" PRIu64 " of %d ranks: no answer from "
		"rank%s %s within %.1f s; see what holds %s, or raise the timeout",
		g->seq, root->size, n == 1 ? "" : "s", list, (double)g->timeout_us * 1e-6,
		n == 1 ? "it" : "them");
}

enum weft_result boot_root_death(struct boot_root *root, const struct boot_gather *g,
				 int32_t rank)
{
	root->peer[rank].dead = true;
	return boot_root_fail(
		root, WEFT_ERR_PEER, rank,
		"bootstrap all-gather %" PRIu64 " of %d ranks: rank %d died or "
		"closed its context before it was done; see that rank's output",
		g->seq, root->size, rank);
}

/* The header of a contribution has come: is it the one that must come now? */
static enum weft_result gather_check(struct boot_root *root, const struct boot_gather *g,
				     int32_t rank)
{
	struct boot_peer *p = &root->peer[rank];
	struct boot_msg m;
	enum boot_wire_fault fault = boot_wire_check(&p->hdr, p->hdr_done, root->job, &m);

	if (fault != BOOT_WIRE_GOOD || m.type != BOOT_GATHER || m.rank != rank ||
	    m.size != root->size)
		return boot_root_fail(
			root, WEFT_ERR_PEER, rank,
			"bootstrap all-gather %" PRIu64 ": rank %d sent no valid "
			"message (fault %d); do all ranks run the same version?",
			g->seq, rank, (int)fault);
	if (m.seq != g->seq || m.len != g->len)
		return boot_root_fail(root, WEFT_ERR_MISMATCH, rank,
				      "rank %d is in bootstrap all-gather %" PRIu64
				      " with %" PRIu64 " bytes, rank 0 in %" PRIu64
				      " with %" PRIu64
				      " bytes: all ranks must open contexts and create "
				      "communicators in the same order",
				      rank, m.seq, m.len, g->seq, g->len);
	p->hdr_good = true;
	return WEFT_SUCCESS;
}

/* Reads what has come from one rank. */
static enum weft_result gather_step(struct boot_root *root, const struct boot_gather *g,
				    int32_t rank)
{
	struct boot_peer *p = &root->peer[rank];
	enum weft_result result;
	enum boot_io io;

	if (!p->hdr_good) {
		io = boot_io_read(p->fd, &p->hdr, sizeof(p->hdr), &p->hdr_done);
		if (io == BOOT_IO_MORE)
			return WEFT_SUCCESS;
		if (io != BOOT_IO_DONE)
			return boot_root_death(root, g, rank);
		result = gather_check(root, g, rank);
		if (result)
			return result;
	}
	io = boot_io_read(p->fd, (char *)g->out + (uint64_t)rank * g->len, g->len,
			  &p->body_done);
	if (io != BOOT_IO_DONE && io != BOOT_IO_MORE)
		return boot_root_death(root, g, rank);
	p->finished = io == BOOT_IO_DONE;
	return WEFT_SUCCESS;
}

static enum weft_result gather_phase(struct boot_root *root, const struct boot_gather *g,
				     int64_t deadline)
{
	struct epoll_event events[EVENTS];
	int32_t missing = root->size - 1;
	enum weft_result result = WEFT_SUCCESS;

	for (int32_t r = 1; r < root->size && !result; r++) {
		struct boot_peer *p = &root->peer[r];

		p->finished = p->hdr_good = false;
		p->step = BOOT_STEP_SEND;
		p->hdr_done = p->body_done = 0;
		if (p->dead)
			return boot_root_death(root, g, r);
		result = gather_step(root, g, r);
		missing -= p->finished;
	}
	while (missing > 0 && !result) {
		int n = epoll_wait(root->epoll, events, EVENTS,
				   boot_wait_ms(deadline, -1));

		if (n == 0 && boot_clock_us() >= deadline)
			return boot_root_timeout(root, g);
		for (int i = 0; i < n && !result; i++) {
			int32_t r = (int32_t)(uint32_t)events[i].data.u64;
			struct boot_peer *p = &root->peer[r];

			if (!p->finished) {
				result = gather_step(root, g, r);
				missing -= p->finished;
			}
			/* Nobody who lives hangs up before the result is out. */
			if (!result &&
			    events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
				result = boot_root_death(root, g, r);
		}
	}
	return result;
}

enum weft_result boot_root_allgather(struct boot_root *root, const struct boot_gather *g)
{
	int64_t deadline = boot_deadline(g->timeout_us);
	enum weft_result result;

	memmove(g->out, g->in, g->len);
	result = gather_phase(root, g, deadline);
	return result ? result : boot_root_spread(root, g, deadline);
}

/* ---- open, close ------------------------------------------------------------------ */

enum weft_result boot_root_open(const struct boot_env *env, int64_t timeout_us,
				struct boot_root **out)
{
	struct boot_root *root = calloc(1, sizeof(*root));
	enum weft_result result;

	if (root)
		root->peer = calloc((size_t)env->size, sizeof(*root->peer));
	if (!root || !root->peer) {
		free(root);
		return error_set(WEFT_ERR_NOMEM, "bootstrap of %d ranks: no memory",
				 env->size);
	}
	root->size = env->size;
	root->peer[0].host = env->node;
	memcpy(root->job, env->job, BOOT_JOB_LEN);
	for (int32_t r = 0; r < root->size; r++)
		root->peer[r].fd = -1;
	root->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (root->epoll < 0)
		result = error_set(WEFT_ERR_NOMEM, "bootstrap: epoll_create1: %s",
				   strerror(errno));
	else
		result = boot_join(root, env, timeout_us);
	if (result)
		boot_root_close(root);
	else
		*out = root;
	return result;
}

/*
 * A socket that is closed with data unread resets its connection, and the reset overtakes
 * the FAIL that the other end has not read yet: read until everybody has hung up.
 */
static void root_linger(struct boot_root *root)
{
	int64_t deadline = boot_deadline(LINGER_US);
	int32_t left = 0;
	char sink[4096];

	for (int32_t r = 1; r < root->size; r++)
		left += root->peer[r].fd >= 0 && !root->peer[r].dead;
	while (left > 0 && boot_clock_us() < deadline) {
		for (int32_t r = 1; r < root->size; r++) {
			struct boot_peer *p = &root->peer[r];
			enum boot_io io = BOOT_IO_DONE;
			size_t done = 0;

			for (; p->fd >= 0 && !p->dead && io == BOOT_IO_DONE; done = 0)
				io = boot_io_read(p->fd, sink, sizeof(sink), &done);
			if (io == BOOT_IO_EOF || io == BOOT_IO_ERROR) {
				p->dead = true;
				left--;
			}
		}
		if (left > 0)
			usleep(2000);
	}
}

uint64_t boot_root_bytes(const struct boot_root *root)
{
	return root->bytes;
}

void boot_root_close(struct boot_root *root)
{
	if (root->failed)
		root_linger(root);
	for (int32_t r = 1; r < root->size; r++)
		if (root->peer[r].fd >= 0)
			close(root->peer[r].fd);
	if (root->epoll >= 0)
		close(root->epoll);
	free(root->peer);
	free(root);
}
