/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rank 0 hands out the result of an all-gather. A short one goes to every rank. A long
 * one goes once to each host, whose ranks share it there (boot_table.h): rank 0 makes the
 * table of its own host; on another the first rank gets the bytes and says where its
 * table is. Who can't find the table says so, and gets the bytes after all.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_root.h"
#include "coll/boot/boot_table.h"

enum { EVENTS = 256 }; /* taken from epoll at once */

struct spread {
	struct boot_root *root;
	const struct boot_gather *g;
	int32_t missing;
	enum weft_result result;
};

/* ---- who leads whom --------------------------------------------------------------- */

struct of_host {
	uint64_t host;
	int32_t rank;
};

static int of_host_order(const void *a, const void *b)
{
	const struct of_host *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Each rank's leader is the first of its host; who is alone, or doesn't know its host, is
 * its own and leads nobody. Without memory all are. */
static void leads_find(struct boot_root *root)
{
	struct of_host *list = malloc((size_t)root->size * sizeof(*list));

	root->leads_known = true;
	for (int32_t r = 0; r < root->size; r++) {
		root->peer[r].lead = r;
		if (list)
			list[r] = (struct of_host){root->peer[r].host, r};
	}
	if (!list)
		return;
	qsort(list, (size_t)root->size, sizeof(*list), of_host_order);
	for (int32_t i = 1; i < root->size; i++)
		if (list[i].host && list[i].host == list[i - 1].host) {
			const int32_t lead = root->peer[list[i - 1].rank].lead;

			root->peer[list[i].rank].lead = lead;
			root->peer[lead].leads = true;
		}
	free(list);
}

/* ---- steps ------------------------------------------------------------------------ */

static void spread_step(struct spread *s, int32_t rank);

static void spread_payload(struct spread *s, int32_t rank, enum boot_type type)
{
	struct boot_peer *p = &s->root->peer[rank];
	const struct boot_msg msg = {
		.type = type, .size = s->root->size, .seq = s->g->seq, .len = s->g->len};

	p->tx = (struct boot_tx){.payload = s->g->out,
				 .payload_len = (uint64_t)s->root->size * s->g->len};
	boot_wire_put(&p->tx.hdr, &msg, s->root->job);
	s->root->bytes += sizeof(p->tx.hdr) + p->tx.payload_len;
	p->step = type == BOOT_LEAD ? BOOT_STEP_LEAD : BOOT_STEP_SEND;
	spread_step(s, rank);
}

static void spread_place(struct spread *s, int32_t rank, uint64_t place)
{
	struct boot_peer *p = &s->root->peer[rank];
	const struct boot_msg msg = {
		.type = BOOT_TABLE, .size = s->root->size, .seq = place};

	p->tx = (struct boot_tx){.payload = NULL};
	boot_wire_put(&p->tx.hdr, &msg, s->root->job);
	s->root->bytes += sizeof(p->tx.hdr);
	p->step = BOOT_STEP_TAKE;
	spread_step(s, rank);
}

/* Those that wait for this leader get the place of its table, or, where there is none
 * (0), the bytes. */
static void spread_led(struct spread *s, int32_t lead, uint64_t place)
{
	for (int32_t r = lead + 1; r < s->root->size; r++) {
		struct boot_peer *p = &s->root->peer[r];

		if (p->lead != lead || p->finished || p->step != BOOT_STEP_WAIT)
			continue;
		if (place)
			spread_place(s, r, place);
		else
			spread_payload(s, r, BOOT_RESULT);
	}
}

/* This rank is through, dead or alive. */
static void spread_end(struct spread *s, int32_t rank, bool dead, uint64_t place)
{
	struct boot_peer *p = &s->root->peer[rank];
	const bool led = p->step == BOOT_STEP_LEAD;

	p->dead = p->dead || dead;
	p->finished = true;
	p->step = BOOT_STEP_SEND;
	s->missing--;
	if (led)
		spread_led(s, rank, place);
}

/* What a leader, or one that was told of a table, says to it. */
static void spread_answer(struct spread *s, int32_t rank)
{
	struct boot_peer *p = &s->root->peer[rank];
	enum boot_wire_fault fault;
	struct boot_msg m;

	fault = boot_wire_check(&p->hdr, p->hdr_done, s->root->job, &m);
	p->hdr_done = 0;
	if (fault == BOOT_WIRE_GOOD && m.rank == rank && m.size == s->root->size) {
		if (m.type == BOOT_TABLE && p->step == BOOT_STEP_LEAD) {
			spread_end(s, rank, false, m.seq);
			return;
		}
		if (m.type == BOOT_TOOK && p->step == BOOT_STEP_TAKE &&
		    m.seq == s->g->seq) {
			spread_end(s, rank, false, 0);
			return;
		}
		if (m.type == BOOT_MISS && m.seq == s->g->seq) {
			if (p->step == BOOT_STEP_LEAD)
				spread_end(s, rank, false, 0);
			else
				spread_payload(s, rank, BOOT_RESULT);
			return;
		}
	}
	s->result = boot_root_fail(
		s->root, WEFT_ERR_PEER, rank,
		"bootstrap all-gather %" PRIu64 ": rank %d gave no valid answer to the "
		"result (fault %d); do all ranks run the same version?",
		s->g->seq, rank, (int)fault);
}

/* Sends what the socket takes, and reads what has come where something must. */
static void spread_step(struct spread *s, int32_t rank)
{
	struct boot_peer *p = &s->root->peer[rank];
	enum boot_io io = boot_io_write(p->fd, &p->tx);

	if (io == BOOT_IO_DONE &&
	    (p->step == BOOT_STEP_LEAD || p->step == BOOT_STEP_TAKE)) {
		io = boot_io_read(p->fd, &p->hdr, sizeof(p->hdr), &p->hdr_done);
		if (io == BOOT_IO_DONE) {
			spread_answer(s, rank);
			return;
		}
	}
	if (io == BOOT_IO_ERROR || io == BOOT_IO_EOF)
		spread_end(s, rank, true, 0);
	else if (io == BOOT_IO_DONE && p->step == BOOT_STEP_SEND)
		spread_end(s, rank, false, 0);
}

/* Does a rank begin with waiting for its leader's table? fd: rank 0's, or -1. */
static bool spread_shares(const struct spread *s, int32_t rank, bool shared, int fd)
{
	const int32_t lead = s->root->peer[rank].lead;

	return shared && lead != rank && (lead > 0 || fd >= 0);
}

static void spread_begin(struct spread *s, bool shared, int fd)
{
	struct boot_root *root = s->root;

	for (int32_t r = 1; r < root->size; r++) {
		struct boot_peer *p = &root->peer[r];

		p->finished = false;
		p->hdr_done = 0;
		p->step =
			spread_shares(s, r, shared, fd) ? BOOT_STEP_WAIT : BOOT_STEP_SEND;
	}
	/* Not by step: a leader that is through at once has begun with those it leads. */
	for (int32_t r = 1; r < root->size && !s->result; r++) {
		const struct boot_peer *p = &root->peer[r];

		if (!spread_shares(s, r, shared, fd))
			spread_payload(s, r,
				       shared && p->leads ? BOOT_LEAD : BOOT_RESULT);
		else if (p->lead == 0)
			spread_place(s, r, boot_table_place(fd));
	}
}

static enum weft_result spread_wait(struct spread *s, int64_t deadline)
{
	struct epoll_event events[EVENTS];

	while (s->missing > 0 && !s->result) {
		int n = epoll_wait(s->root->epoll, events, EVENTS,
				   boot_wait_ms(deadline, -1));

		if (n == 0 && boot_clock_us() >= deadline)
			return boot_root_timeout(s->root, s->g);
		for (int i = 0; i < n && !s->result; i++) {
			const int32_t r = (int32_t)(uint32_t)events[i].data.u64;

			if (!s->root->peer[r].finished)
				spread_step(s, r);
		}
	}
	return s->result;
}

enum weft_result boot_root_spread(struct boot_root *root, const struct boot_gather *g,
				  int64_t deadline)
{
	struct spread s = {.root = root, .g = g, .missing = root->size - 1};
	const bool shared = boot_table_pays(root->size, g->len);
	enum weft_result result;
	int fd = -1;

	if (shared) {
		if (!root->leads_known)
			leads_find(root);
		if (root->peer[0].leads)
			fd = boot_table_make(root->job, g, root->size, g->out);
	}
	spread_begin(&s, shared, fd);
	result = spread_wait(&s, deadline);
	if (fd >= 0)
		close(fd);
	/* The others got their result: they hear of a death in the next all-gather. */
	for (int32_t r = 1; r < root->size && !result; r++)
		if (root->peer[r].dead)
			result = boot_root_death(root, g, r);
	return result;
}
