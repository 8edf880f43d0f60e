/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper thread. */
#include "config.h"

#include "prov/wire/verbs/verbs_helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/fork.h"
#include "prov/wire/verbs/verbs_door.h"

struct verbs_helper {
	struct verbs_helper_config config;
	int kick_fd;
	uint32_t generation; /* of the process that has the thread */
	_Atomic(bool) stop;
	pthread_t thread;
};

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Milliseconds until `due`, rounded up; -1: for ever. */
static int wait_ms(uint64_t due)
{
	uint64_t now = clock_ns(), ms;

	if (due == UINT64_MAX)
		return -1;
	if (due <= now)
		return 0;
	ms = (due - now + 999999) / 1000000;
	return ms > 60000 ? 60000 : (int)ms;
}

/* Returns when the door's next turn is due. */
static uint64_t door_turn(struct verbs_helper *h)
{
	const struct verbs_helper_config *c = &h->config;
	uint64_t due;

	pthread_mutex_lock(c->mutex);
	if (!h->stop)
		verbs_door_progress(c->door, clock_ns());
	due = verbs_door_due(c->door);
	pthread_mutex_unlock(c->mutex);
	return due;
}

static void *helper_main(void *arg)
{
	struct verbs_helper *h = arg;
	const struct verbs_helper_config *c = &h->config;
	uint64_t due = 0, other, count;

	while (!h->stop) {
		struct pollfd fds[3] = {
			{.fd = verbs_door_fd(c->door), .events = POLLIN},
			{.fd = h->kick_fd, .events = POLLIN},
			{.fd = c->fd, .events = POLLIN},
		};

		poll(fds, 3, wait_ms(due));
		if (fds[1].revents)
			(void)!read(h->kick_fd, &count, sizeof(count));
		/* What it says at the door the door sends in its own turn. */
		other = c->turn && !h->stop ? c->turn(c->arg, fds[2].revents)
					    : UINT64_MAX;
		due = door_turn(h);
		if (other < due)
			due = other;
	}
	return NULL;
}

void verbs_helper_kick(struct verbs_helper *h)
{
	uint64_t one = 1;

	if (!h)
		return; /* closing: nobody is there to be woken */
	(void)!write(h->kick_fd, &one, sizeof(one));
}

/* Signals are the application's: this thread takes none. */
int verbs_helper_thread(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, was;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return rc;
}

int verbs_helper_start(const struct verbs_helper_config *config,
		       struct verbs_helper **out)
{
	struct verbs_helper *h = calloc(1, sizeof(*h));

	if (!h)
		return -FI_ENOMEM;
	h->config = *config;
	h->generation = mem_fork_generation();
	h->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->kick_fd < 0) {
		free(h);
		return -FI_EMFILE;
	}
	if (verbs_helper_thread(&h->thread, helper_main, h)) {
		close(h->kick_fd);
		free(h);
		return -FI_EAGAIN;
	}
	*out = h;
	return 0;
}

void verbs_helper_stop(struct verbs_helper *h)
{
	h->stop = true;
	/* A forked child has the object and not the thread. */
	if (h->generation == mem_fork_generation()) {
		verbs_helper_kick(h);
		pthread_join(h->thread, NULL);
	}
	close(h->kick_fd);
	free(h);
}
