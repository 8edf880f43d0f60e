/* SPDX-License-Identifier: BSD-2-Clause */
/* See dump.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coll/trace/dump.h"
#include "util/fd.h"

/* Little, since handlers may run on a small stack. */
struct out {
	int fd;
	int rc; /* the first that failed */
	size_t len;
	char buf[1024];
};

static void out_flush(struct out *o)
{
	if (!o->rc)
		o->rc = fd_write_all(o->fd, o->buf, o->len);
	o->len = 0;
}

static void out_put(struct out *o, const void *from, size_t len)
{
	if (o->len + len > sizeof(o->buf))
		out_flush(o);
	memcpy(o->buf + o->len, from, len);
	o->len += len;
}

/* A row that changes while it is copied, since another thread goes on, is left out: what
 * is written is what the validator takes. */
static void put_tables(struct out *o, const struct trace_image *m,
		       struct trace_head *head)
{
	struct trace_comm comm;
	struct trace_call call;
	struct trace_peer peer;

	for (int i = 0; i < TRACE_COMMS; i++) {
		comm = m->comm[i];
		if (!trace_comm_fits(&comm, head))
			continue;
		out_put(o, &comm, sizeof(comm));
		head->comm_count++;
	}
	for (int i = 0; i < TRACE_CALLS; i++) {
		call = m->call[i];
		if (!trace_call_fits(&call, head))
			continue;
		out_put(o, &call, sizeof(call));
		head->call_count++;
	}
	for (int i = 0; i < TRACE_PEERS; i++) {
		peer = m->peer[i];
		if (!trace_peer_fits(&peer, head))
			continue;
		out_put(o, &peer, sizeof(peer));
		head->peer_count++;
	}
	out_flush(o);
}

static void head_begin(struct trace_head *head, const struct dump_now *now)
{
	const uint64_t most = TRACE_EVENTS - TRACE_MARGIN;

	head->reason = (uint32_t)now->reason;
	head->signal = (uint32_t)now->signal;
	head->count = head->total < most ? head->total : most;
	head->ticks[1] = now->ticks;
	head->mono[1] = now->mono;
	head->real[1] = now->real;
	/* Somebody may look while this is written. */
	if (head->looked > now->ticks)
		head->looked = now->ticks;
	head->comm_count = 0;
	head->call_count = 0;
	head->peer_count = 0;
}

/* Oldest first: the ring's end, then its beginning. */
static int put_events(int fd, const struct trace_image *m, uint64_t total)
{
	const uint64_t most = TRACE_EVENTS - TRACE_MARGIN;
	const uint64_t count = total < most ? total : most;
	const uint64_t first = (total - count) & (TRACE_EVENTS - 1);
	uint64_t part = TRACE_EVENTS - first;
	int rc;

	if (part > count)
		part = count;
	rc = fd_write_all(fd, m->event + first, part * sizeof(*m->event));
	return rc ? rc : fd_write_all(fd, m->event, (count - part) * sizeof(*m->event));
}

int dump_write(const struct trace_image *m, const struct dump_now *now, const char *path)
{
	struct trace_head head = m->head;
	char fresh[TRACE_PATH_MAX + 8];
	const size_t len = strlen(path);
	struct out o = {.fd = -1};
	int rc;

	if (len > TRACE_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(fresh, path, len);
	memcpy(fresh + len, ".new", sizeof(".new"));
	o.fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (o.fd < 0)
		return -errno;
	/* The head comes last: it says how many rows there are. */
	head_begin(&head, now);
	if (lseek(o.fd, sizeof(head), SEEK_SET) < 0)
		o.rc = -errno;
	put_tables(&o, m, &head);
	rc = o.rc;
	if (!rc)
		rc = put_events(o.fd, m, head.total);
	if (!rc && lseek(o.fd, 0, SEEK_SET) < 0)
		rc = -errno;
	if (!rc)
		rc = fd_write_all(o.fd, &head, sizeof(head));
	if (close(o.fd) && !rc)
		rc = -errno;
	if (!rc && rename(fresh, path))
		rc = -errno;
	if (rc)
		unlink(fresh);
	return rc;
}
