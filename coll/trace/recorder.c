/* SPDX-License-Identifier: BSD-2-Clause */
/* See recorder.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/trace/recorder.h"
#include "util/fd.h"

/* A signal's handler is given nothing, so this is the one thing that is not found from a
 * context: recorders that dump at SIGUSR2. More of them than places are not dumped. */
enum { ARMED_MAX = 16 };
static _Atomic(struct recorder *) armed[ARMED_MAX];
static atomic_uint opened; /* so that two contexts of a process have files of their own */

struct recorder *recorder_open(int32_t rank, int32_t size)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->event = calloc(TRACE_EVENTS, sizeof(*r->event));
	if (!r->event) {
		free(r);
		return NULL;
	}
	r->counter = ticks_have_counter();
	memcpy(r->head.magic, TRACE_MAGIC, sizeof(r->head.magic));
	r->head.order = TRACE_ORDER;
	r->head.head_len = TRACE_HEAD_LEN;
	r->head.event_len = TRACE_EVENT_LEN;
	r->head.rank = rank;
	r->head.size = size;
	r->head.ticks[0] = ticks_now(r->counter);
	r->head.mono[0] = ticks_clock_ns(CLOCK_MONOTONIC);
	r->head.real[0] = ticks_clock_ns(CLOCK_REALTIME);
	gethostname(r->head.host, sizeof(r->head.host) - 1);
	return r;
}

void recorder_close(struct recorder *r)
{
	for (int i = 0; r && i < ARMED_MAX; i++) {
		struct recorder *mine = r;

		atomic_compare_exchange_strong(&armed[i], &mine, NULL);
	}
	if (r)
		free(r->event);
	free(r);
}

/* The events, oldest first: the ring's end, then its beginning. */
static int write_events(int fd, const struct recorder *r, uint64_t total, uint64_t count)
{
	const uint64_t first = (total - count) & (TRACE_EVENTS - 1);
	uint64_t part = TRACE_EVENTS - first;
	int rc;

	if (part > count)
		part = count;
	rc = fd_write_all(fd, r->event + first, part * sizeof(*r->event));
	return rc ? rc : fd_write_all(fd, r->event, (count - part) * sizeof(*r->event));
}

/* Nothing here but what a signal's handler may call. */
int recorder_dump(const struct recorder *r, enum trace_reason reason, const char *path)
{
	const uint64_t total = r->count, most = TRACE_EVENTS - TRACE_MARGIN;
	struct trace_head head = r->head;
	char fresh[TRACE_PATH_MAX + 8];
	size_t len = strlen(path);
	int fd, rc;

	if (len > TRACE_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(fresh, path, len);
	memcpy(fresh + len, ".new", sizeof(".new"));
	head.reason = (uint32_t)reason;
	head.pid = getpid();
	head.total = total;
	head.count = total < most ? total : most;
	head.ticks[1] = ticks_now(r->counter);
	head.mono[1] = ticks_clock_ns(CLOCK_MONOTONIC);
	head.real[1] = ticks_clock_ns(CLOCK_REALTIME);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, &head, sizeof(head));
	if (!rc)
		rc = write_events(fd, r, total, head.count);
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && rename(fresh, path))
		rc = -errno;
	if (rc)
		unlink(fresh);
	return rc;
}

static void on_signal(int number)
{
	const int kept = errno;

	(void)number;
	for (int i = 0; i < ARMED_MAX; i++) {
		const struct recorder *r = atomic_load(&armed[i]);

		if (r)
			recorder_dump(r, TRACE_SIGNALLED, r->path);
	}
	errno = kept;
}

/* The program's own use of the signal goes first. */
static void take_signal(void)
{
	struct sigaction now;

	if (sigaction(SIGUSR2, NULL, &now) || (now.sa_flags & SA_SIGINFO) ||
	    now.sa_handler != SIG_DFL)
		return;
	memset(&now, 0, sizeof(now));
	now.sa_handler = on_signal;
	now.sa_flags = SA_RESTART;
	sigemptyset(&now.sa_mask);
	sigaction(SIGUSR2, &now, NULL);
}

enum weft_result recorder_arm(struct recorder *r, const char *folder,
			      const char *provider)
{
	const unsigned number = atomic_fetch_add(&opened, 1);
	struct stat st;
	int n;

	if (stat(folder, &st) || !S_ISDIR(st.st_mode) || access(folder, W_OK | X_OK))
		return error_set(
			WEFT_ERR_ARG,
			"WEFT_TRACE: %.200s: %s; name a folder that dumps can be "
			"written to",
			folder, errno ? strerror(errno) : "it is no folder");
	n = snprintf(r->path, sizeof(r->path), "%s/rank-%d.%ld.%u.trace", folder,
		     r->head.rank, (long)getpid(), number);
	if (n < 0 || (size_t)n >= sizeof(r->path)) {
		r->path[0] = '\0';
		return error_set(WEFT_ERR_ARG,
				 "WEFT_TRACE: %.60s...: longer than %d bytes", folder,
				 TRACE_PATH_MAX - 40);
	}
	snprintf(r->head.provider, sizeof(r->head.provider), "%s", provider);
	for (int i = 0; i < ARMED_MAX; i++) {
		struct recorder *none = NULL;

		if (atomic_compare_exchange_strong(&armed[i], &none, r))
			break;
	}
	take_signal();
	return WEFT_SUCCESS;
}

void recorder_failed(struct recorder *r)
{
	int rc;

	if (!r->path[0] || r->told)
		return;
	r->told = true;
	rc = recorder_dump(r, TRACE_FAILED, r->path);
	if (rc)
		fprintf(stderr, "weft: the flight recorder can't write %s: %s\n", r->path,
			strerror(-rc));
}
