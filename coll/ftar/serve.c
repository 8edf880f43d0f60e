/* SPDX-License-Identifier: BSD-2-Clause */
/* A coordinator in a thread of the calling process: coll/ft/server.h as a public call. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/ft/server.h"
#include "weft/weft.h"

struct weft_ft_server {
	struct ft_server *server;
	pthread_t thread;
	int rc; /* of the thread, once it was joined */
	char why[FT_SERVER_WHY];
};

static enum weft_result serve_check(const struct weft_ft_serve_opts *opts)
{
	if (opts->size < sizeof(*opts))
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_serve_opts.size is %zu, this library needs "
				 "%zu: initialise it with WEFT_FT_SERVE_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (!opts->listen || !opts->state)
		return error_set(WEFT_ERR_ARG, "weft_ft_serve_opts.%s is NULL",
				 opts->listen ? "state" : "listen");
	if (opts->members < 1 || opts->members > FT_MEMBERS_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_serve_opts.members is %u: give how many the "
				 "first epoch waits for, 1 to %d",
				 opts->members, FT_MEMBERS_MAX);
	if (opts->group_size > FT_MEMBERS_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_serve_opts.group_size is %u, the most is %d",
				 opts->group_size, FT_MEMBERS_MAX);
	if (opts->silence_us < 0)
		return error_set(WEFT_ERR_ARG, "weft_ft_serve_opts.silence_us is %lld",
				 (long long)opts->silence_us);
	if (opts->job && strlen(opts->job) > FT_JOB_LEN)
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_serve_opts.job has %zu bytes, the most are %d",
				 strlen(opts->job), FT_JOB_LEN);
	return WEFT_SUCCESS;
}

static void *serve_run(void *arg)
{
	struct weft_ft_server *s = arg;

	s->rc = ft_server_run(s->server, s->why);
	return NULL;
}

/* Signals are the caller's other threads'. 0 or an errno. */
static int serve_start(struct weft_ft_server *s)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, NULL, serve_run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

enum weft_result weft_ft_serve(const struct weft_ft_serve_opts *opts,
			       struct weft_ft_server **out)
{
	struct ft_server_attr attr = {0};
	struct weft_ft_server *s;
	enum weft_result result;
	int rc;

	error_clear();
	if (!opts || !out)
		return error_set(WEFT_ERR_ARG, "weft_ft_serve: %s is NULL",
				 opts ? "server" : "opts");
	result = serve_check(opts);
	if (result != WEFT_SUCCESS)
		return result;
	attr.listen = opts->listen;
	attr.state = opts->state;
	attr.first = opts->first;
	attr.size = opts->members;
	attr.group_size = opts->group_size;
	attr.silence_us = opts->silence_us;
	if (opts->job)
		memcpy(attr.job, opts->job, strlen(opts->job));
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(WEFT_ERR_NOMEM, "no memory for a coordinator");
	rc = ft_server_open(&attr, &s->server, s->why);
	if (!rc) {
		rc = -serve_start(s);
		if (rc) {
			snprintf(s->why, sizeof(s->why), "no thread: %s", strerror(-rc));
			ft_server_close(s->server);
		}
	}
	if (rc) {
		result = error_set(rc == -EAGAIN   ? WEFT_ERR_BUSY
				   : rc == -ENOMEM ? WEFT_ERR_NOMEM
						   : WEFT_ERR_BOOTSTRAP,
				   "weft_ft_serve: %.400s", s->why);
		free(s);
		return result;
	}
	*out = s;
	return WEFT_SUCCESS;
}

const char *weft_ft_serve_address(const struct weft_ft_server *server)
{
	return server ? ft_server_address(server->server) : NULL;
}

enum weft_result weft_ft_serve_end(struct weft_ft_server *server)
{
	enum weft_result result = WEFT_SUCCESS;

	error_clear();
	if (!server)
		return error_set(WEFT_ERR_ARG, "weft_ft_serve_end: server is NULL");
	ft_server_stop(server->server);
	pthread_join(server->thread, NULL);
	if (server->rc)
		result = error_set(server->rc == -ESTALE ? WEFT_ERR_FENCED
							 : WEFT_ERR_BOOTSTRAP,
				   "the coordinator at %s ended by itself: %.300s",
				   ft_server_address(server->server), server->why);
	ft_server_close(server->server);
	free(server);
	return result;
}
