/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that stands in; see uet_helper.h. */
#include "config.h"

#include "prov/wire/uet/uet_helper.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/fork.h"
#include "prov/wire/uet/uet_ep.h"

/* How long an application that was here may be away: at first, and at most. Each time
 * that it was here again makes it longer, so that one which polls isn't disturbed. */
#define AWAY_MIN_MS 1
#define AWAY_MAX_MS 16
/* Nobody asks for more than what is due in a minute. */
#define SLEEP_MAX_MS 60000

struct uet_helper {
	struct wire_ep *ep;
	pthread_t thread;
	uint32_t generation; /* of the process that has the thread */
	int kick_fd;
	_Atomic(bool) stop;
	/* The thread's own: */
	uint64_t calls; /* of the application, when it was looked at last */
	uint64_t due;	/* when there is something to do, though nothing came */
	int away_ms;
	struct mem_fork fork;
};

/* Milliseconds until then, rounded up. */
static int sleep_ms(uint64_t due)
{
	uint64_t now = uet_ep_now(), ms;

	if (due <= now)
		return 0;
	ms = (due - now + 999999) / 1000000;
	return ms > SLEEP_MAX_MS ? SLEEP_MAX_MS : (int)ms;
}

/* Whether the application makes a call, or has since this was asked last. */
static bool app_was_here(struct uet_helper *h)
{
	uint64_t calls = uet_turn_calls(&h->ep->turn);
	bool here = calls != h->calls || calls & 1;

	h->calls = calls;
	return here;
}

/* What comes meanwhile is the application's. */
static void rest(struct uet_helper *h)
{
	struct pollfd kick = {.fd = h->kick_fd, .events = POLLIN};

	poll(&kick, 1, h->away_ms);
}

/* Until something comes, or is due. True: an error came back on one of the paths. */
static bool await(struct uet_helper *h)
{
	enum { KICK, DOOR, PATHS, ALL };
	struct pollfd fds[ALL] = {
		[KICK] = {.fd = h->kick_fd, .events = POLLIN},
		[DOOR] = {.fd = h->ep->sock->fd, .events = POLLIN},
		[PATHS] = {.fd = h->ep->sock->errors, .events = POLLIN}};

	poll(fds, ALL, sleep_ms(h->due));
	return fds[PATHS].revents != 0;
}

/* As long as there is something to do and the application doesn't come. What came while
 * it was done wakes who asks for it. */
static void stand_in(struct uet_helper *h, bool errors)
{
	bool more = true;

	while (more && !h->stop && uet_turn_try(&h->ep->turn)) {
		more = uet_ep_stand_in(h->ep, errors) >= UET_STAND_IN_BUDGET;
		h->due = uet_look_due(h->ep);
		uet_turn_out(&h->ep->turn);
		if (app_was_here(h))
			return;
	}
}

static void *helper_main(void *arg)
{
	struct uet_helper *h = arg;
	bool errors = false;

	while (!h->stop) {
		if (app_was_here(h) || uet_ep_armed(h->ep)) {
			/* It sees to everything, unless it stays away now. */
			rest(h);
			if (app_was_here(h)) {
				h->away_ms = h->away_ms < AWAY_MAX_MS ? h->away_ms * 2
								      : AWAY_MAX_MS;
				/* What is due is not known any more. */
				h->due = 0;
				continue;
			}
		}
		h->away_ms = AWAY_MIN_MS;
		if (!h->stop)
			stand_in(h, errors);
		errors = await(h);
	}
	return NULL;
}

/* Signals are the application's: this thread takes none. */
static int thread_start(struct uet_helper *h)
{
	sigset_t all, was;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = pthread_create(&h->thread, NULL, helper_main, h);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return rc;
}

/* The child has the sockets and must not use them: they are the parent's. */
static void part(struct mem_fork *f)
{
	struct uet_helper *h = container_of(f, struct uet_helper, fork);
	struct uet_sock *sock = h->ep->sock;

	mem_fork_close(&h->kick_fd);
	mem_fork_close(&h->ep->wake_fd);
	mem_fork_close(&sock->fd);
	mem_fork_close(&sock->epoll);
	mem_fork_close(&sock->errors);
	for (unsigned i = 0; i < sock->paths + sock->fixed; i++)
		mem_fork_close(&sock->path[i].fd);
}

static void helper_free(struct uet_helper *h)
{
	if (h->kick_fd >= 0)
		close(h->kick_fd);
	free(h);
}

int uet_helper_start(struct wire_ep *ep, struct uet_helper **out)
{
	struct uet_helper *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return -FI_ENOMEM;
	h->ep = ep;
	h->away_ms = AWAY_MIN_MS;
	h->generation = mem_fork_generation();
	h->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = h->kick_fd < 0 ? -FI_EMFILE : 0;
	if (!ret && thread_start(h))
		ret = -FI_EAGAIN;
	if (ret) {
		helper_free(h);
		return ret;
	}
	h->fork.lock = &ep->turn.mutex;
	h->fork.child = part;
	mem_fork_enter(&h->fork);
	*out = h;
	return 0;
}

void uet_helper_stop(struct uet_helper *h)
{
	uint64_t one = 1;

	h->stop = true;
	mem_fork_leave(&h->fork);
	/* A forked child has the object and not the thread. */
	if (h->generation == mem_fork_generation()) {
		(void)!write(h->kick_fd, &one, sizeof(one));
		pthread_join(h->thread, NULL);
	}
	helper_free(h);
}
