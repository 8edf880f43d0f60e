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

static void put_head(struct out *o, const struct trace_image *m,
		     const struct dump_now *now, uint64_t total)
{
	const uint64_t most = TRACE_EVENTS - TRACE_MARGIN;
	struct trace_head head = m->head;

	head.reason = (uint32_t)now->reason;
	head.signal = (uint32_t)now->signal;
	head.total = total;
	head.count = total < most ? total : most;
	head.ticks[1] = now->ticks;
	head.mono[1] = now->mono;
	head.real[1] = now->real;
	/* Somebody may look while this is written. */
	if (head.looked > now->ticks)
		head.looked = now->ticks;
	head.comm_count = 0;
	for (int i = 0; i < TRACE_COMMS; i++)
		head.comm_count += m->comm[i].state != TRACE_COMM_NONE;
	head.call_count = 0;
	for (int i = 0; i < TRACE_CALLS; i++)
		head.call_count += m->call[i].state != TRACE_CALL_NONE;
	head.peer_count = 0;
	for (int i = 0; i < TRACE_PEERS; i++)
		head.peer_count += m->peer[i].used;
	out_put(o, &head, sizeof(head));
}

static void put_tables(struct out *o, const struct trace_image *m)
{
	for (int i = 0; i < TRACE_COMMS; i++) {
		if (m->comm[i].state != TRACE_COMM_NONE)
			out_put(o, &m->comm[i], sizeof(m->comm[i]));
	}
	for (int i = 0; i < TRACE_CALLS; i++) {
		if (m->call[i].state != TRACE_CALL_NONE)
			out_put(o, &m->call[i], sizeof(m->call[i]));
	}
	for (int i = 0; i < TRACE_PEERS; i++) {
		if (m->peer[i].used)
			out_put(o, &m->peer[i], sizeof(m->peer[i]));
	}
	out_flush(o);
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
	const uint64_t total = m->head.total;
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
	put_head(&o, m, now, total);
	put_tables(&o, m);
	rc = o.rc;
	if (!rc)
		rc = put_events(o.fd, m, total);
	if (close(o.fd) && !rc)
		rc = -errno;
	if (!rc && rename(fresh, path))
		rc = -errno;
	if (rc)
		unlink(fresh);
	return rc;
}
