/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrival at rank 0. Whoever connects is a stranger until it has sent a HELLO with the
 * job's secret: strangers wait in a table of bounded size, for a bounded time, and cost
 * nothing else. Nothing that a stranger sends fails the job.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_root.h"
#include "coll/boot/ranklist.h"

enum {
	EVENTS = 64,
	STRANGERS_SPARE = 64,  /* beyond one per rank ... */
	STRANGERS_MOST = 1024, /* ... and at most */
	STRANGER_US = 5000000, /* a silent stranger is dropped */
	LATE_US = 1000000,     /* after a failure: time for the others to hear of it */
	SWEEP_MS = 250,	       /* how often silence is looked for */
	FULL_US = 1000,	       /* between looks for a descriptor that became free */
};

struct stranger {
	int fd; /* -1: free place */
	int64_t since;
	size_t done;
	struct boot_hdr hdr;
};

struct join {
	struct boot_root *root;
	int listen_fd;
	char address[BOOT_ADDR_TEXT]; /* where rank 0 listens */
	int32_t missing;
	enum weft_result failed; /* latecomers are told so ... */
	const char *failed_text; /* ... in these words */
	bool full;		 /* no descriptor for who comes next */
	uint32_t stranger_count;
	struct stranger *stranger;
};

static bool absent(const void *arg, int32_t rank)
{
	const struct boot_root *root = arg;

	return rank > 0 && root->peer[rank].fd < 0;
}

static void stranger_drop(struct stranger *s)
{
	close(s->fd);
	s->fd = -1;
}

/* A free place, else the one that has been silent longest. */
static struct stranger *stranger_place(struct join *j)
{
	struct stranger *oldest = &j->stranger[0];

	for (uint32_t i = 0; i < j->stranger_count; i++) {
		if (j->stranger[i].fd < 0)
			return &j->stranger[i];
		if (j->stranger[i].since < oldest->since)
			oldest = &j->stranger[i];
	}
	stranger_drop(oldest);
	return oldest;
}

static void strangers_sweep(struct join *j)
{
	int64_t before = boot_clock_us() - STRANGER_US;

	for (uint32_t i = 0; i < j->stranger_count; i++)
		if (j->stranger[i].fd >= 0 && j->stranger[i].since < before)
			stranger_drop(&j->stranger[i]);
}

static int watch(struct join *j, int op, int fd, enum boot_event kind, uint32_t index)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				 .data.u64 = boot_event_key(kind, index)};

	if (kind == BOOT_EVENT_LISTEN)
		ev.events = EPOLLIN;
	return epoll_ctl(j->root->epoll, op, fd, &ev);
}

/* It holds the secret, so it is worth an answer. */
static void refuse(struct join *j, struct stranger *s, enum weft_result code,
		   const char *text)
{
	struct boot_msg msg = {.type = BOOT_FAIL,
			       .size = j->root->size,
			       .len = strlen(text),
			       .code = (uint32_t)code};
	struct boot_tx tx = {.payload = text, .payload_len = strlen(text)};

	boot_wire_put(&tx.hdr, &msg, j->root->job);
	(void)boot_io_write(s->fd, &tx);
	stranger_drop(s);
}

static enum weft_result join_rank(struct join *j, struct stranger *s,
				  const struct boot_msg *m)
{
	struct boot_peer *p = &j->root->peer[m->rank];
	char text[BOOT_TEXT_MAX], other[BOOT_ADDR_TEXT] = "";

	if (m->rank == 0 || p->fd >= 0) {
		boot_io_address(m->rank == 0 ? j->listen_fd : p->fd, m->rank != 0, other);
		snprintf(text, sizeof(text),
			 "rank %d is taken already, by the process at %s: WEFT_RANK must "
			 "be "
			 "different in every process of a job",
			 m->rank, other);
		refuse(j, s, WEFT_ERR_BOOTSTRAP, text);
		return WEFT_SUCCESS;
	}
	if (watch(j, EPOLL_CTL_MOD, s->fd, BOOT_EVENT_PEER, (uint32_t)m->rank) != 0)
		return boot_root_fail(j->root, WEFT_ERR_NOMEM, 0,
				      "bootstrap: epoll_ctl: %s", strerror(errno));
	p->fd = s->fd;
	p->host = m->seq;
	s->fd = -1;
	j->missing--;
	if (boot_root_say(j->root, m->rank, BOOT_ACCEPT) == BOOT_IO_DONE)
		return WEFT_SUCCESS;
	p->dead = true;
	return boot_root_fail(
		j->root, WEFT_ERR_BOOTSTRAP, m->rank,
		"bootstrap: rank %d came and left again before all ranks were "
		"there; see that rank's output",
		m->rank);
}

static enum weft_result stranger_step(struct join *j, struct stranger *s)
{
	char text[BOOT_TEXT_MAX];
	struct boot_msg m;
	enum boot_io io;

	if (s->fd < 0)
		return WEFT_SUCCESS;
	io = boot_io_read(s->fd, &s->hdr, sizeof(s->hdr), &s->done);
	if (io == BOOT_IO_MORE)
		return WEFT_SUCCESS;
	if (io != BOOT_IO_DONE ||
	    boot_wire_check(&s->hdr, s->done, j->root->job, &m) != BOOT_WIRE_GOOD ||
	    m.type != BOOT_HELLO) {
		stranger_drop(s);
		return WEFT_SUCCESS;
	}
	if (j->failed) {
		refuse(j, s, j->failed, j->failed_text);
		j->missing--;
		return WEFT_SUCCESS;
	}
	if (m.size == j->root->size)
		return join_rank(j, s, &m);
	snprintf(text, sizeof(text),
		 "bootstrap: rank %d was started with WEFT_SIZE %d, rank 0 with %d: it "
		 "must be "
		 "the same in every process of a job",
		 m.rank, m.size, j->root->size);
	refuse(j, s, WEFT_ERR_MISMATCH, text);
	return boot_root_fail(j->root, WEFT_ERR_MISMATCH, 0, "%s", text);
}

static enum weft_result fail_descriptors(struct join *j)
{
	return boot_root_fail(
		j->root, WEFT_ERR_NOMEM, 0,
		"bootstrap: rank 0 needs a descriptor for each of %d ranks: %s; "
		"raise the limit (ulimit -n)",
		j->root->size, strerror(errno));
}

/* Those that are told of a failure give theirs back when they have said who they are. */
static enum weft_result join_full(struct join *j)
{
	if (!j->failed)
		return fail_descriptors(j);
	j->full = true;
	return WEFT_SUCCESS;
}

static enum weft_result join_accept(struct join *j)
{
	enum weft_result result = WEFT_SUCCESS;

	j->full = false;
	while (!result) {
		int fd = accept4(j->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct stranger *s;

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			       errno == ENOBUFS))
			return join_full(j);
		if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (fd < 0)
			continue; /* this connection failed, the next may not have */
		s = stranger_place(j);
		*s = (struct stranger){.fd = fd, .since = boot_clock_us()};
		if (boot_io_prepare(fd) != 0 ||
		    watch(j, EPOLL_CTL_ADD, fd, BOOT_EVENT_STRANGER,
			  (uint32_t)(s - j->stranger)) != 0)
			stranger_drop(s);
		else
			result = stranger_step(j, s);
	}
	return result;
}

static enum weft_result join_event(struct join *j, const struct epoll_event *ev)
{
	uint32_t index = (uint32_t)ev->data.u64;

	switch ((enum boot_event)(ev->data.u64 >> 32)) {
	case BOOT_EVENT_LISTEN:
		return join_accept(j);
	case BOOT_EVENT_STRANGER:
		return stranger_step(j, &j->stranger[index]);
	default:
		break;
	}
	if (!(ev->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		return WEFT_SUCCESS;
	j->root->peer[index].dead = true;
	return boot_root_fail(j->root, WEFT_ERR_BOOTSTRAP, (int32_t)index,
			      "bootstrap: rank %" PRIu32
			      " came and left again before all "
			      "ranks were there; see that rank's output",
			      index);
}

/*
 * The job failed while ranks were still on their way: those that have come know already,
 * those that come within a second are told the same instead of knocking until their
 * deadline. Closing makes room where descriptors ran out; all that was sent has been
 * read, so no connection is reset.
 */
static void join_tell_late(struct join *j, enum weft_result result)
{
	int64_t deadline = boot_deadline(LATE_US);
	struct epoll_event events[EVENTS];
	char text[BOOT_TEXT_MAX];

	snprintf(text, sizeof(text), "%s", weft_error_detail());
	j->failed = result;
	j->failed_text = text;
	for (int32_t r = 1; r < j->root->size; r++) {
		if (j->root->peer[r].fd >= 0)
			close(j->root->peer[r].fd);
		j->root->peer[r].fd = -1;
	}
	if (join_accept(j) != WEFT_SUCCESS)
		return;
	while (j->missing > 0 && boot_clock_us() < deadline) {
		int n = epoll_wait(j->root->epoll, events, EVENTS,
				   boot_wait_ms(deadline, SWEEP_MS));

		for (int i = 0; i < n; i++)
			if (events[i].data.u64 >> 32 != BOOT_EVENT_PEER &&
			    join_event(j, &events[i]) != WEFT_SUCCESS)
				return;
		if (j->full)
			usleep(FULL_US);
	}
}

static enum weft_result join_wait(struct join *j, int64_t timeout_us)
{
	int64_t deadline = boot_deadline(timeout_us);
	struct epoll_event events[EVENTS];
	enum weft_result result = WEFT_SUCCESS;
	char list[128];

	while (j->missing > 0 && !result) {
		int n = epoll_wait(j->root->epoll, events, EVENTS,
				   boot_wait_ms(deadline, SWEEP_MS));

		for (int i = 0; i < n && !result; i++)
			result = join_event(j, &events[i]);
		if (result)
			join_tell_late(j, result);
		if (result || j->missing == 0)
			break;
		strangers_sweep(j);
		if (boot_clock_us() < deadline)
			continue;
		ranklist_format(list, sizeof(list), j->root->size, absent, j->root);
		result = boot_root_fail(
			j->root, WEFT_ERR_BOOTSTRAP, 0,
			"%d of %d ranks did not come to rank 0 at %s within "
			"%.1f s: %s; were they started, with the same "
			"WEFT_ROOT and WEFT_JOB?",
			j->missing, j->root->size, j->address, (double)timeout_us * 1e-6,
			list);
	}
	for (int32_t r = 1; r < j->root->size && !result; r++)
		if (boot_root_say(j->root, r, BOOT_WELCOME) != BOOT_IO_DONE)
			j->root->peer[r].dead = true; /* the first all-gather says so */
	return result;
}

static enum weft_result join_listen(struct join *j, const struct boot_env *env)
{
	const char *what = "fcntl";

	if (env->root_fd >= 0) {
		j->listen_fd = env->root_fd;
		if (boot_io_prepare(j->listen_fd) != 0)
			return error_set(WEFT_ERR_BOOTSTRAP,
					 "bootstrap: WEFT_ROOT_FD %d: %s", j->listen_fd,
					 strerror(errno));
	} else {
		j->listen_fd = boot_io_listen(env->host, env->port, &what);
		if (j->listen_fd < 0)
			return error_set(
				WEFT_ERR_BOOTSTRAP,
				"bootstrap: rank 0 cannot listen at %s port %s (%s: %s): "
				"WEFT_ROOT must be an address of this host and a free "
				"port",
				env->host, env->port, what, strerror(errno));
	}
	boot_io_address(j->listen_fd, false, j->address);
	if (watch(j, EPOLL_CTL_ADD, j->listen_fd, BOOT_EVENT_LISTEN, 0) != 0)
		return error_set(WEFT_ERR_NOMEM, "bootstrap: epoll_ctl: %s",
				 strerror(errno));
	return WEFT_SUCCESS;
}

enum weft_result boot_join(struct boot_root *root, const struct boot_env *env,
			   int64_t timeout_us)
{
	struct join j = {.root = root, .listen_fd = -1, .missing = root->size - 1};
	enum weft_result result;

	j.stranger_count = (uint32_t)root->size < STRANGERS_MOST - STRANGERS_SPARE
				   ? (uint32_t)root->size + STRANGERS_SPARE
				   : STRANGERS_MOST;
	j.stranger = calloc(j.stranger_count, sizeof(*j.stranger));
	if (!j.stranger)
		return error_set(WEFT_ERR_NOMEM, "bootstrap of %d ranks: no memory",
				 root->size);
	for (uint32_t i = 0; i < j.stranger_count; i++)
		j.stranger[i].fd = -1;
	result = join_listen(&j, env);
	if (!result)
		result = join_wait(&j, timeout_us);
	for (uint32_t i = 0; i < j.stranger_count; i++)
		if (j.stranger[i].fd >= 0)
			stranger_drop(&j.stranger[i]);
	free(j.stranger);
	if (j.listen_fd < 0)
		return result;
	(void)epoll_ctl(root->epoll, EPOLL_CTL_DEL, j.listen_fd, NULL);
	if (env->root_fd < 0)
		close(j.listen_fd);
	return result;
}
