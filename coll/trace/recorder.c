/* SPDX-License-Identifier: BSD-2-Clause */
/* See recorder.h. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coll/trace/armed.h"
#include "coll/trace/dump.h"
#include "coll/trace/recorder.h"

/* Looks for a peer's entry where there are more ranks than entries. */
enum { PEER_LOOKS = 8 };

/* All of it is there at once, so that no event waits for a page. */
static struct trace_image *memory_open(int *fd)
{
	const size_t len = sizeof(struct trace_image);
	void *at = MAP_FAILED;

	*fd = memfd_create(TRACE_MEMORY, MFD_CLOEXEC);
	if (*fd >= 0 && !ftruncate(*fd, (off_t)len))
		at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			  *fd, 0);
	if (at != MAP_FAILED)
		return at;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void head_begin(struct trace_head *head, bool counter)
{
	memcpy(head->magic, TRACE_MAGIC, sizeof(head->magic));
	head->order = TRACE_ORDER;
	head->head_len = TRACE_HEAD_LEN;
	head->event_len = TRACE_EVENT_LEN;
	head->comm_len = TRACE_COMM_LEN;
	head->call_len = TRACE_CALL_LEN;
	head->peer_len = TRACE_PEER_LEN;
	head->pid = getpid();
	head->ticks[0] = ticks_now(counter);
	head->mono[0] = ticks_clock_ns(CLOCK_MONOTONIC);
	head->real[0] = ticks_clock_ns(CLOCK_REALTIME);
	head->looked = head->ticks[0];
	gethostname(head->host, sizeof(head->host) - 1);
}

struct recorder *recorder_open(int32_t rank, int32_t size)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->image = memory_open(&r->fd);
	if (!r->image) {
		free(r);
		return NULL;
	}
	r->counter = ticks_have_counter();
	head_begin(&r->image->head, r->counter);
	r->image->head.rank = rank;
	r->image->head.size = size;
	return r;
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	armed_remove(r);
	munmap(r->image, sizeof(*r->image));
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

void recorder_name(struct recorder *r, uint64_t job, const char *provider)
{
	struct trace_head *head = &r->image->head;

	head->job = job;
	snprintf(head->provider, sizeof(head->provider), "%s", provider);
}

/* ---- tables ------------------------------------------------------------------------ */

/* As few runs as there are, or none where they are too many. */
static void comm_runs(struct trace_comm *c, const int32_t *ranks, int32_t size)
{
	c->runs = 0;
	if (!ranks) {
		c->run[c->runs++] = (struct trace_run){0, 1, size};
		return;
	}
	for (int32_t i = 0; i < size;) {
		int32_t step = i + 1 < size ? ranks[i + 1] - ranks[i] : 1, count = 1;

		while (i + count < size &&
		       ranks[i + count] - ranks[i + count - 1] == step)
			count++;
		if (c->runs == TRACE_RUNS) {
			c->runs = 0;
			return;
		}
		c->run[c->runs++] = (struct trace_run){ranks[i], step, count};
		i += count;
	}
}

void recorder_comm_open(struct recorder *r, uint32_t number, const int32_t *ranks,
			int32_t size, int32_t self)
{
	struct trace_comm *c = &r->image->comm[number & (TRACE_COMMS - 1)];

	/* The one that is there goes on being shown. */
	if (c->state != TRACE_COMM_NONE) {
		r->image->head.lost++;
		return;
	}
	memset(c, 0, sizeof(*c));
	c->number = number;
	c->first = ranks ? ranks[0] : 0;
	c->size = size;
	c->self = self;
	comm_runs(c, ranks, size);
	/* A handler may come between: the rest is there before it counts. */
	atomic_signal_fence(memory_order_release);
	c->state = TRACE_COMM_OPEN;
}

void recorder_comm_close(struct recorder *r, uint32_t number)
{
	struct trace_comm *c = recorder_comm(r, number);

	c->state = TRACE_COMM_NONE;
}

struct trace_call *recorder_call_other(struct recorder *r)
{
	struct trace_image *m = r->image;
	const uint64_t at = m->head.calls - 1;

	for (uint64_t i = 1; i < TRACE_CALLS; i++) {
		struct trace_call *c = &m->call[(at + i) & (TRACE_CALLS - 1)];

		if (c->state == TRACE_CALL_NONE || c->state == TRACE_CALL_DONE)
			return c;
	}
	return &m->call[at & (TRACE_CALLS - 1)];
}

struct trace_peer *recorder_peer(struct recorder *r, int32_t rank)
{
	struct trace_image *m = r->image;
	const uint32_t hash = m->head.size <= TRACE_PEERS
				      ? (uint32_t)rank
				      : (uint32_t)rank * UINT32_C(2654435769) >> 24;

	for (uint32_t i = 0; i < PEER_LOOKS; i++) {
		struct trace_peer *p = &m->peer[(hash + i) & (TRACE_PEERS - 1)];

		if (p->rank == rank && p->used)
			return p;
		if (!p->used) {
			p->rank = rank;
			atomic_signal_fence(memory_order_release);
			p->used = 1;
			return p;
		}
	}
	m->head.lost++;
	return &r->spare_peer;
}

/* ---- dumps ------------------------------------------------------------------------- */

int recorder_dump(const struct recorder *r, enum trace_reason reason, int number,
		  const char *path)
{
	const struct dump_now now = {
		.reason = reason,
		.signal = number,
		.ticks = ticks_now(r->counter),
		.mono = ticks_clock_ns(CLOCK_MONOTONIC),
		.real = ticks_clock_ns(CLOCK_REALTIME),
	};

	return dump_write(r->image, &now, path);
}

void recorder_failed(struct recorder *r)
{
	int rc;

	if (!r->path[0] || r->told)
		return;
	r->told = true;
	rc = recorder_dump(r, TRACE_FAILED, 0, r->path);
	if (rc)
		fprintf(stderr, "weft: the flight recorder can't write %s: %s\n", r->path,
			strerror(-rc));
}
