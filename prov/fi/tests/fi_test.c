/* SPDX-License-Identifier: BSD-2-Clause */
/* See fi_test.h. */
#include "config.h"

#include "prov/fi/tests/fi_test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/fi/fabric.h"
#include "prov/fi/wait.h"
#include "util/tap.h"
#include "util/tap_fork.h"

void env_open(struct env *e, const struct env_want *want)
{
	struct fi_fabric_attr attr = {.api_version =
					      want->api ? want->api : FI_VERSION(1, 17)};

	e->info = fi_allocinfo();
	if (!e->info)
		tap_bail("no memory");
	e->info->addr_format = want->addr_format ? want->addr_format : FI_SOCKADDR_IN;
	e->info->domain_attr->threading = want->threading;
	e->info->domain_attr->data_progress = want->progress;
	e->info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	e->info->domain_attr->mr_mode = want->mr_mode;
	if (wfi_fabric_open(&attr, &e->fabric, NULL))
		tap_bail("no fabric");
	if (fi_domain(e->fabric, e->info, &e->domain, NULL))
		tap_bail("no domain");
}

/* ---- engine
 * ---------------------------------------------------------------------------- */

static void engine_deliver(struct engine *g)
{
	struct wfi_cq_entry entry = {
		.op_context = g,
		.flags = FI_RECV | FI_MSG,
		.len = 8,
		.data = g->next++,
		.tag = 7,
		.src = 3,
	};

	if (g->cq)
		wfi_cq_write(g->cq, &entry);
	wfi_cntr_inc(g->cntr);
}

static int engine_progress(struct wfi_pollable *p)
{
	struct engine *g = (struct engine *)p;
	uint64_t due = atomic_load(&g->due);
	uint64_t n;
	int count, errors;

	if (atomic_load(&g->disabled))
		return 0;
	atomic_store(&g->armed, false);
	atomic_fetch_add(&g->polls, 1);
	if (read(g->fd, &n, sizeof(n)) < 0)
		n = 0;
	count = atomic_exchange(&g->pending, 0);
	errors = atomic_exchange(&g->pending_errors, 0);
	if (due <= wfi_now_ns()) {
		atomic_store(&g->due, UINT64_MAX);
		count++;
	}
	for (int i = 0; i < count; i++)
		engine_deliver(g);
	for (int i = 0; i < errors; i++)
		wfi_cntr_inc_error(g->error_cntr);
	return count + errors;
}

static int engine_arm(struct wfi_pollable *p)
{
	struct engine *g = (struct engine *)p;

	if (atomic_load(&g->disabled))
		return 0;
	atomic_store(&g->armed, true);
	return atomic_load(&g->pending) || atomic_load(&g->pending_errors) ? -FI_EAGAIN
									   : 0;
}

static int engine_fd(struct wfi_pollable *p)
{
	struct engine *g = (struct engine *)p;

	return atomic_load(&g->disabled) ? -1 : g->fd;
}

static uint64_t engine_due(struct wfi_pollable *p)
{
	return atomic_load(&((struct engine *)p)->due);
}

static const struct wfi_pollable_ops engine_ops = {
	.progress = engine_progress,
	.arm = engine_arm,
	.fd = engine_fd,
	.due = engine_due,
};

void engine_init(struct engine *g)
{
	memset(g, 0, sizeof(*g));
	g->base.ops = &engine_ops;
	g->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	atomic_store(&g->due, UINT64_MAX);
}

void engine_fini(struct engine *g)
{
	close(g->fd);
}

static void engine_raise(struct engine *g)
{
	uint64_t one = 1;

	if (atomic_load(&g->armed) && write(g->fd, &one, sizeof(one)) < 0)
		tap_bail("eventfd");
}

void engine_post_quietly(struct engine *g, int n)
{
	atomic_fetch_add(&g->pending, n);
}

void engine_post(struct engine *g, int n)
{
	engine_post_quietly(g, n);
	engine_raise(g);
}

void engine_post_error(struct engine *g)
{
	atomic_fetch_add(&g->pending_errors, 1);
	engine_raise(g);
}

/* ---- time
 * ------------------------------------------------------------------------------ */

void sleep_ms(int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000l};

	nanosleep(&ts, NULL);
}

static void *later_run(void *arg)
{
	struct later *l = arg;

	sleep_ms(l->ms);
	l->fn(l->arg);
	return NULL;
}

void later_start(struct later *l, int ms, void (*fn)(void *arg), void *arg)
{
	*l = (struct later){.ms = ms, .fn = fn, .arg = arg};
	if (pthread_create(&l->thread, NULL, later_run, l))
		tap_bail("no thread");
}

void later_join(struct later *l)
{
	pthread_join(l->thread, NULL);
}

/* ---- stopped
 * --------------------------------------------------------------------------- */

#define STOPS 3

static void *stop_run(void *arg)
{
	struct stop *s = arg;
	char byte;

	if (read(s->go, &byte, 1) == 1)
		engine_post(s->engine, 1);
	return NULL;
}

void stop_soon(struct stop *s, struct engine *g)
{
	s->engine = g;
	if (pthread_create(&s->thread, NULL, stop_run, s) || write(s->ready, "", 1) != 1)
		_exit(2);
}

bool stop_while(bool (*fn)(struct stop *s))
{
	int ready[2], go[2], status = -1;
	char byte;
	pid_t pid;

	if (pipe(ready) || pipe(go))
		tap_bail("pipe");
	pid = tap_fork();
	if (pid == 0) {
		struct stop s = {.ready = ready[1], .go = go[0]};
		bool good;

		alarm(280);
		good = fn(&s);
		pthread_join(s.thread, NULL);
		_exit(good ? 0 : 1);
	}
	if (read(ready[0], &byte, 1) != 1)
		tap_bail("no child");
	for (int i = 0; i < STOPS; i++) {
		sleep_ms(50); /* it sleeps by then, most of the time */
		kill(pid, SIGSTOP);
		waitpid(pid, &status, WUNTRACED);
		if (!WIFSTOPPED(status))
			break; /* it is over already */
		kill(pid, SIGCONT);
	}
	if (WIFSTOPPED(status) &&
	    (write(go[1], "", 1) != 1 || waitpid(pid, &status, 0) != pid))
		tap_bail("no end of the child");
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
