/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators that grow: by newcomers, again after one died and the others shrank;
 * callers that are refused, lie, hang up or say nothing; and too few of them.
 */
#include "config.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/comm/comm.h"
#include "coll/grow/gate.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define LONG_US INT64_C(120000000)
#define FEW_US	INT64_C(1500000)
#define RUN_S	180
#define OLD	3 /* ranks of the communicator that grows; the others are newcomers */
#define SIZE	5

static const char *provider;

struct scene {
	struct ranks *r;
	struct weft_ctx *ctx;
	struct weft_comm *world, *old; /* old: NULL for newcomers */
	char place[32];
	int holds; /* the port, on rank 0 */
	struct weft_grow_opts opts;
};

/* A port of this host that stays ours: bound, but nobody listens, until the library does.
 */
static int hold_port(uint16_t *port)
{
	const int one = 1;
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&at, len) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		return -1;
	*port = ntohs(at.sin_port);
	return fd;
}

static int begin(struct scene *s, struct ranks *r)
{
	uint16_t port = 0, ports[RANKS_MAX];
	int bad;

	*s = (struct scene){.r = r, .holds = -1};
	bad = ranks_open(r, provider, LONG_US, &s->ctx);
	if (bad)
		return bad;
	if (r->rank == 0)
		s->holds = hold_port(&port);
	if (weft_comm_create(s->ctx, NULL, &s->world) != WEFT_SUCCESS ||
	    weft_comm_split(s->world, r->rank < OLD ? 0 : WEFT_SPLIT_NONE, 0, NULL,
			    &s->old) != WEFT_SUCCESS ||
	    !ranks_gather(r, &port, ports, sizeof(port)) || !ports[0])
		return ranks_say(r, "begin: %s", weft_error_detail());
	snprintf(s->place, sizeof(s->place), "127.0.0.1:%u", ports[0]);
	s->opts = (struct weft_grow_opts)WEFT_GROW_OPTS_INIT;
	s->opts.place = s->place;
	s->opts.job = "the test's";
	s->opts.sign = 7;
	s->opts.newcomers = SIZE - OLD;
	s->opts.provider = provider;
	s->opts.timeout_us = LONG_US;
	return RANKS_GOOD;
}

static int gone(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	const int64_t until = exec_now() + LONG_US;
	enum weft_result result;

	do
		result = weft_comm_destroy(comm);
	while (result == WEFT_ERR_BUSY && exec_now() < until);
	if (result == WEFT_SUCCESS && ctx)
		result = weft_ctx_close(ctx);
	return result == WEFT_SUCCESS ? RANKS_GOOD
				      : ranks_say(r, "end: %s", weft_error_detail());
}

static int end(struct scene *s)
{
	int bad = s->old ? gone(s->r, NULL, s->old) : RANKS_GOOD;

	if (!bad)
		bad = gone(s->r, s->ctx, s->world);
	if (s->holds >= 0)
		close(s->holds);
	return bad;
}

/* Ranks and sums of what came of it; first: the rank of the first newcomer. */
static int is_right(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm,
		    int32_t size, int32_t first, bool newcomer)
{
	int64_t mine = INT64_C(1) << 8 * weft_comm_rank(comm), sum = 0, all = 0;
	struct weft_comm *second;
	int bad;

	for (int32_t i = 0; i < size; i++)
		all |= INT64_C(1) << 8 * i;
	if (weft_comm_size(comm) != size || (weft_comm_rank(comm) >= first) != newcomer)
		return ranks_say(r, "rank %d of %d", weft_comm_rank(comm),
				 weft_comm_size(comm));
	if (weft_allreduce(comm, &mine, &sum, 1, WEFT_INT64, WEFT_SUM, NULL) !=
		    WEFT_SUCCESS ||
	    sum != all)
		return ranks_say(r, "sum %llx: %s", (unsigned long long)sum,
				 weft_error_detail());
	/* The bootstrap is of use as long as the context lives. */
	if (weft_comm_create(ctx, NULL, &second) != WEFT_SUCCESS ||
	    weft_barrier(second, NULL) != WEFT_SUCCESS)
		return ranks_say(r, "another: %s", weft_error_detail());
	bad = gone(r, NULL, second);
	return bad ? bad : gone(r, ctx, comm);
}

static int plain_body(struct ranks *r)
{
	struct weft_comm *comm;
	struct weft_ctx *ctx;
	struct scene s;
	int bad = begin(&s, r);

	if (bad)
		return bad;
	if (s.old && weft_comm_rank(s.old) != r->rank)
		return ranks_say(r, "the split is wrong");
	if (weft_comm_grow(s.old, &s.opts, &ctx, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "grow: %s", weft_error_detail());
	if (s.old && weft_comm_rank(comm) != r->rank)
		return ranks_say(r, "rank %d now", weft_comm_rank(comm));
	bad = is_right(r, ctx, comm, SIZE, OLD, !s.old);
	if (!bad && s.old && weft_barrier(s.old, NULL) != WEFT_SUCCESS)
		bad = ranks_say(r, "the old one: %s", weft_error_detail());
	return bad ? bad : end(&s);
}

/* Rank 0 dies; the others of the old communicator shrink, and its new rank 0 listens. */
static int again_body(struct ranks *r)
{
	static struct scene s; /* left as it is where this can't be had: no leak */
	struct weft_comm *comm, *left;
	struct weft_ctx *ctx;
	char places[64];
	int bad = begin(&s, r);

	if (bad)
		return bad;
	if (exec_lines_level(s.ctx->exec) == LINES_NONE)
		return RANKS_ABSENT;
	/* The first is no address of any host here. */
	snprintf(places, sizeof(places), "192.0.2.7:9,%s", s.place);
	s.opts.place = places;
	if (!ranks_barrier(r))
		return RANKS_BAD;
	if (r->rank == 0)
		kill(getpid(), SIGKILL);
	if (s.old) {
		if (weft_comm_shrink(s.old, NULL, LONG_US, &left) != WEFT_SUCCESS)
			return ranks_say(r, "shrink: %s", weft_error_detail());
		bad = gone(r, NULL, s.old);
		s.old = left;
	}
	if (!bad && weft_comm_grow(s.old, &s.opts, &ctx, &comm) != WEFT_SUCCESS)
		bad = ranks_say(r, "grow: %s", weft_error_detail());
	if (!bad)
		bad = is_right(r, ctx, comm, SIZE - 1, OLD - 1, !s.old);
	return bad ? bad : end(&s);
}

/* ---- callers that are no newcomers ----------------------------------------------------
 */

/* Connects, when somebody listens, says `len` bytes, and hangs up or stays. */
static int call_and_say(const char *place, const void *what, size_t len, bool stays)
{
	const int64_t until = exec_now() + LONG_US;
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port =
					 htons((uint16_t)atoi(strchr(place, ':') + 1)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timespec nap = {.tv_nsec = 5000000};

	while (exec_now() < until) {
		const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
		    (!len || send(fd, what, len, MSG_NOSIGNAL) == (ssize_t)len)) {
			if (stays)
				return fd;
			close(fd);
			return 0;
		}
		if (fd >= 0)
			close(fd);
		nanosleep(&nap, NULL);
	}
	return -1;
}

static int refused_with(struct scene *s, struct weft_grow_opts opts,
			enum weft_result want, const char *words)
{
	struct weft_comm *comm;
	struct weft_ctx *ctx;
	const enum weft_result result = weft_comm_grow(NULL, &opts, &ctx, &comm);

	if (result == want && strstr(weft_error_detail(), words))
		return RANKS_GOOD;
	return ranks_say(s->r, "%s: %s", weft_strerror(result), weft_error_detail());
}

/* All that a newcomer does wrong, before it comes as it should. */
static int wrong_callers(struct scene *s)
{
	struct gate_hello hello = {.major = WEFT_VERSION_MAJOR,
				   .minor = WEFT_VERSION_MINOR + 1,
				   .sign = 7,
				   .drawn = 5,
				   .job = "the test's"};
	struct weft_grow_opts opts = s->opts;
	uint8_t raw[GATE_HELLO_LEN];
	struct gate_answer answer;
	char why[GATE_WHY];
	int bad, silent;

	opts.sign = 8;
	bad = refused_with(s, opts, WEFT_ERR_MISMATCH, "of the newcomer is 8, that of");
	opts = s->opts;
	opts.job = "another";
	opts.timeout_us = FEW_US;
	if (!bad)
		bad = refused_with(s, opts, WEFT_ERR_TIMEOUT, "nobody let this process");
	if (bad)
		return bad;
	if (gate_ask(s->place, &hello, boot_deadline(LONG_US), &answer, why) !=
		    WEFT_ERR_MISMATCH ||
	    !strstr(why, "version"))
		return ranks_say(s->r, "another version: %s", why);
	/* Who says all that is right, and hangs up, is none of them. */
	hello.minor--;
	gate_hello_put(raw, &hello);
	silent = call_and_say(s->place, raw, 11, true);
	if (call_and_say(s->place, raw, sizeof(raw), false) ||
	    call_and_say(s->place, "GET / HTTP/1.1\r\n\r\n", 18, false) || silent < 0)
		return ranks_say(s->r, "no connection");
	for (int i = 0; i < 5; i++) {
		hello.drawn++;
		gate_hello_put(raw, &hello);
		if (call_and_say(s->place, raw, sizeof(raw), false))
			return ranks_say(s->r, "no connection");
	}
	close(silent);
	return RANKS_GOOD;
}

static int wrong_body(struct ranks *r)
{
	const int64_t until = exec_now() + LONG_US;
	const struct timespec nap = {.tv_nsec = 5000000};
	struct weft_comm *comm;
	struct weft_ctx *ctx;
	struct scene s;
	int bad = begin(&s, r);

	if (!bad && r->rank == SIZE - 1) {
		bad = wrong_callers(&s);
		ranks_mark(r);
	}
	/* The others come when that has been said, but for the old ones. */
	while (!bad && r->rank == SIZE - 2 && ranks_marks(r) < 1 && exec_now() < until)
		nanosleep(&nap, NULL);
	if (bad)
		return bad;
	if (weft_comm_grow(s.old, &s.opts, &ctx, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "grow: %s", weft_error_detail());
	bad = is_right(r, ctx, comm, SIZE, OLD, !s.old);
	return bad ? bad : end(&s);
}

/* ---- too few --------------------------------------------------------------------------
 */

static int fails(struct scene *s, enum weft_result want, const char *words)
{
	struct weft_comm *comm;
	struct weft_ctx *ctx;
	const enum weft_result result = weft_comm_grow(s->old, &s->opts, &ctx, &comm);

	if (result != want || !strstr(weft_error_detail(), words))
		return ranks_say(s->r, "%s: %s", weft_strerror(result),
				 weft_error_detail());
	if (s->old && weft_barrier(s->old, NULL) != WEFT_SUCCESS)
		return ranks_say(s->r, "the old one: %s", weft_error_detail());
	return RANKS_GOOD;
}

static int few_body(struct ranks *r)
{
	struct weft_comm *comm;
	struct weft_ctx *ctx;
	struct scene s;
	int bad = begin(&s, r);

	if (bad)
		return bad;
	if (weft_comm_grow(s.old, NULL, &ctx, &comm) != WEFT_ERR_ARG ||
	    weft_comm_grow(s.old, &s.opts, NULL, &comm) != WEFT_ERR_ARG ||
	    weft_comm_grow(s.old, &s.opts, &ctx, NULL) != WEFT_ERR_ARG)
		return ranks_say(r, "what makes no sense is not refused");
	s.opts.timeout_us = FEW_US;
	bad = s.old ? fails(&s, WEFT_ERR_TIMEOUT, "0 of 2 newcomers came") : RANKS_GOOD;
	if (!bad && !ranks_barrier(r))
		bad = RANKS_BAD;
	/* Nobody listens any more. */
	if (!bad && !s.old)
		bad = fails(&s, WEFT_ERR_TIMEOUT, "nobody let this process in");
	s.opts.place = "192.0.2.7:9";
	if (!bad && s.old)
		bad = fails(&s, WEFT_ERR_ARG, "192.0.2.7:9");
	s.opts.place = "nonsense";
	if (!bad)
		bad = fails(&s, WEFT_ERR_ARG, "nonsense");
	s.opts.place = "0.0.0.0:9";
	if (!bad && s.old)
		bad = fails(&s, WEFT_ERR_ARG, "names no host");
	s.opts.newcomers = 0;
	if (!bad && s.old)
		bad = fails(&s, WEFT_ERR_ARG, "newcomers is 0");
	return bad ? bad : end(&s);
}

static void run(int (*body)(struct ranks *r), int32_t dead, const char *what)
{
	int ends[RANKS_MAX];
	int32_t killed = 0, good = 0, absent = 0;

	ranks_run(SIZE, RUN_S, body, NULL, ends);
	for (int32_t i = 0; i < SIZE; i++) {
		killed += ends[i] == RANKS_KILLED;
		good += ends[i] == RANKS_GOOD;
		absent += ends[i] == RANKS_ABSENT;
	}
	if (absent)
		tap_skip(1, "%s: %s: not on this machine", provider, what);
	else if (!tap_ok(killed == dead && good == SIZE - dead, "%s: %s", provider, what))
		tap_diag("%d ranks ended well, %d were killed", good, killed);
}

int main(void)
{
	char names[8][32];
	const int count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		provider = names[i];
		run(plain_body, 0, "three ranks and two newcomers");
		run(again_body, 1, "rank 0 dies, the others shrink, and grow again");
		run(wrong_body, 0, "who is refused, lies, hangs up or says nothing");
		run(few_body, 0, "too few, and places that are none");
	}
	return tap_done();
}
