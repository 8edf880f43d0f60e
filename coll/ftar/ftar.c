/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault-tolerant all-reduce: steps as the link to the coordinator says (coll/ft),
 * each in the network of the epoch that is on (epoch.h), by pipe.h.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/boot/boot_clock.h"
#include "coll/exec/reduce.h"
#include "coll/ft/link.h"
#include "coll/ftar/pipe.h"

#define FTAR_TIMEOUT_US INT64_C(60000000)
#define FTAR_ATTEMPT_US INT64_C(10000000)
#define FTAR_CHUNK	((size_t)1 << 20)
#define FTAR_CHUNK_UNIT 4096
#define FTAR_CHUNK_MAX	((size_t)1 << 30)
/* While a vote is out: others may need what the provider has not sent yet. */
#define FTAR_LOOK_US 200
#define FTAR_IDLE_US 5000
/* How long closing waits for peers that may still write. */
#define FTAR_CLOSE_US INT64_C(1000000)
#define FTAR_NAP_US   1000

struct weft_ft {
	atomic_flag busy;
	struct ft_link *link;
	int listener;
	uint8_t job[FT_JOB_LEN];
	char *provider, *domain;
	int64_t timeout_us, attempt_us;
	size_t chunk;
	struct epoch *epoch; /* the last that was met; NULL: none */
	struct list graves;  /* struct epoch: ended, and not gone yet */
	uint32_t buried;     /* of them those that peers may still write into, */
	uint32_t talking;    /* and that others have not taken the last words of */
	struct ft_link_event event;
	/* the open step */
	bool open;
	bool voted; /* yes, in `epoch`, whose staging has the result */
	struct pipe_call call;
	void *dst;
	struct pipe_end end;
	int64_t until;
	struct ft_epoch running; /* the epoch of the attempt that is on */
	uint64_t step, runs, epochs;
	uint32_t members;
	enum weft_result failed; /* for good */
	char why[EPOCH_WHY];	 /* the last attempt failed, or that */
};

/* ---- epochs
 * -----------------------------------------------------------------------------
 */

/* Closes the epoch, or buries it. */
static void grave_add(struct weft_ft *ft, struct epoch *e)
{
	const enum epoch_end end = epoch_close(e);

	if (end != EPOCH_GONE)
		list_push_back(&ft->graves, &e->link);
	ft->buried += end == EPOCH_BURIED;
	ft->talking += end == EPOCH_TALKS;
}

static void graves_look(struct weft_ft *ft)
{
	struct list old;
	struct list *node;

	if (list_empty(&ft->graves))
		return;
	list_init(&old);
	while ((node = list_pop_front(&ft->graves)))
		list_push_back(&old, node);
	ft->buried = ft->talking = 0;
	while ((node = list_pop_front(&old)))
		grave_add(ft, container_of(node, struct epoch, link));
}

/* The epoch is over: what peers may still write is buried, and who is yet to be told is
 * told by and by, since the next epoch must not wait for one that is dead. */
static void epoch_retire(struct weft_ft *ft, const char *reason)
{
	struct epoch *e = ft->epoch;

	if (!e)
		return;
	ft->epoch = NULL;
	ft->voted = false;
	if (reason)
		epoch_stop(e, reason);
	grave_add(ft, e);
}

static bool attempt_stopped(void *arg)
{
	struct weft_ft *ft = arg;

	return ft_link_stopped(ft->link, ft->running) || boot_clock_us() >= ft->until;
}

static bool epoch_enter(struct weft_ft *ft, int64_t attempt_us, uint64_t *suspect)
{
	const struct ft_roster *roster = &ft->event.roster;
	const struct epoch_attr attr = {.meet = {.roster = roster,
						 .id = ft_link_id(ft->link),
						 .listener = ft->listener,
						 .job = ft->job,
						 .until = boot_clock_us() + attempt_us,
						 .stopped = attempt_stopped,
						 .arg = ft},
					.provider = ft->provider,
					.domain = ft->domain,
					.timeout_us = attempt_us};

	if (ft->epoch && ft_epoch_same(ft->epoch->name, roster->epoch))
		return true;
	epoch_retire(ft, NULL);
	ft->epoch = epoch_open(&attr, suspect, ft->why);
	if (ft->epoch)
		ft->epochs++;
	return ft->epoch != NULL;
}

/* ---- a step
 * -----------------------------------------------------------------------------
 */

/* Runs it in the epoch of the event, and votes. */
static void attempt(struct weft_ft *ft)
{
	const struct ft_epoch epoch = ft->event.roster.epoch;
	const int64_t attempt_us =
		epoch_patience(epoch, ft->event.commit.epoch, ft->attempt_us);
	enum weft_result result = WEFT_SUCCESS;
	uint64_t suspect = 0;

	ft->running = epoch;
	ft->voted = false;
	ft->runs++;
	ft->call.timeout_us = attempt_us;
	if (!epoch_enter(ft, attempt_us, &suspect)) {
		ft_link_done(ft->link, epoch, false, suspect);
		return;
	}
	switch (pipe_run(ft->epoch, &ft->call, &ft->end, &result)) {
	case PIPE_GOOD:
		ft->voted = true;
		ft_link_done(ft->link, epoch, true, 0);
		return;
	case PIPE_STOPPED:
		snprintf(ft->why, sizeof(ft->why), "the epoch ended meanwhile");
		break;
	case PIPE_REFUSED:
		ft->failed = result;
		/* fall through */
	case PIPE_FAILED:
		snprintf(ft->why, sizeof(ft->why), "%s", weft_error_detail());
		suspect = ft->failed == WEFT_SUCCESS ? epoch_suspect(ft->epoch) : 0;
		break;
	}
	/* Before the others hear of it: what they say then depends on it. */
	ft_link_done(ft->link, epoch, false, suspect);
	/* Of what members disagree about all hear by themselves: who is told that it is
	 * revoked would go on. */
	epoch_retire(ft, ft->failed == WEFT_SUCCESS
				 ? "the step is run again in another epoch"
				 : NULL);
}

static enum weft_result fenced(struct weft_ft *ft, enum ft_reason reason)
{
	ft->failed = WEFT_ERR_FENCED;
	snprintf(ft->why, sizeof(ft->why),
		 "this member takes no part any more: %s; the others go on without it, "
		 "and a process that wants in again opens another handle",
		 ft_reason_name(reason));
	ft->open = false;
	epoch_retire(ft, "this member is fenced");
	return error_set(ft->failed, "%s", ft->why);
}

static enum weft_result committed(struct weft_ft *ft)
{
	ft->open = false;
	ft->step = ft->event.step;
	ft->members = ft->event.live;
	if (!ft->voted || !ft->epoch) {
		ft->failed = WEFT_ERR_INTERNAL;
		snprintf(ft->why, sizeof(ft->why),
			 "step %llu counts, and its result is not here any more",
			 (unsigned long long)ft->step);
		return error_set(ft->failed, "%s", ft->why);
	}
	if (!ft->call.dst)
		pipe_take(ft->epoch, &ft->call, &ft->end, ft->dst);
	return WEFT_SUCCESS;
}

static enum weft_result undecided(struct weft_ft *ft)
{
	struct ft_link_status status;

	ft_link_status(ft->link, &status);
	return error_set(
		WEFT_ERR_TIMEOUT,
		"step %llu is undecided: the coordinator said something %.3f s "
		"ago%s%.200s; the last failure was: %.300s; the same call again "
		"goes on with the step",
		(unsigned long long)ft->step + 1, (double)status.unheard_us * 1e-6,
		status.connected ? "" : " and is not connected: ",
		status.connected ? "" : status.why, ft->why[0] ? ft->why : "none");
}

static enum weft_result step_run(struct weft_ft *ft)
{
	for (;;) {
		const int64_t look =
			ft->epoch || ft->talking ? FTAR_LOOK_US : FTAR_IDLE_US;
		const int rc = ft_link_wait(ft->link, &ft->event, look);

		if (rc == -ETIMEDOUT) {
			if (ft->epoch)
				epoch_progress(ft->epoch);
			graves_look(ft);
			if (boot_clock_us() >= ft->until)
				return undecided(ft);
			continue;
		}
		if (rc)
			return error_set(WEFT_ERR_INTERNAL, "the link failed: %s",
					 strerror(-rc));
		switch (ft->event.event) {
		case FT_RUN:
			attempt(ft);
			if (ft->failed != WEFT_SUCCESS)
				return error_set(ft->failed, "%s", ft->why);
			break;
		case FT_COMMITTED:
			return committed(ft);
		case FT_FENCED_OUT:
			return fenced(ft, ft->event.reason);
		case FT_JOINED:
		case FT_STOP:
			break;
		}
	}
}

/* ---- calls
 * ------------------------------------------------------------------------------
 */

static bool ft_enter(struct weft_ft *ft)
{
	return !atomic_flag_test_and_set_explicit(&ft->busy, memory_order_acquire);
}

static void ft_exit(struct weft_ft *ft)
{
	atomic_flag_clear_explicit(&ft->busy, memory_order_release);
}

static int64_t ft_until(const struct weft_ft *ft, int64_t timeout_us)
{
	return boot_deadline(timeout_us ? timeout_us : ft->timeout_us);
}

static bool zero_is_nothing(enum weft_op op)
{
	return op == WEFT_SUM || op == WEFT_AVG || op == WEFT_BOR || op == WEFT_BXOR;
}

static enum weft_result call_take(struct weft_ft *ft, const struct pipe_call *call,
				  void *dst)
{
	const size_t elem = weft_type_size(call->type);
	const uint64_t max = elem ? (uint64_t)PTRDIFF_MAX / elem : 0;
	const char *a = call->src, *b = dst;
	const uint64_t len = call->count * elem;

	if (!elem || (unsigned)call->op >= WEFT_OP_COUNT ||
	    !reduce_supported(call->type, call->op))
		return error_set(elem && (unsigned)call->op < WEFT_OP_COUNT
					 ? WEFT_ERR_UNSUPPORTED
					 : WEFT_ERR_ARG,
				 "weft_ft_allreduce: %s of %s can't be had",
				 weft_op_name(call->op), weft_type_name(call->type));
	if (call->count > max || (call->count && !dst))
		return error_set(WEFT_ERR_ARG, "weft_ft_allreduce: %s",
				 dst ? "count is more than memory can hold"
				     : "dst is NULL");
	if (!call->src && !zero_is_nothing(call->op))
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_ft_allreduce: src is NULL with %s: to contribute "
				 "nothing is for sum, avg, bor and bxor",
				 weft_op_name(call->op));
	if (a && a != b && a < b + len && b < a + len)
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_allreduce: src and dst overlap: give the same "
				 "address or separate memory");
	ft->call = *call;
	ft->call.dst = a == b ? NULL : dst;
	ft->dst = dst;
	return WEFT_SUCCESS;
}

static bool call_is_open(const struct weft_ft *ft, const struct pipe_call *call,
			 const void *dst)
{
	return ft->call.src == call->src && ft->dst == dst &&
	       ft->call.count == call->count && ft->call.type == call->type &&
	       ft->call.op == call->op;
}

static enum weft_result step_begin(struct weft_ft *ft, const struct pipe_call *call,
				   void *dst)
{
	enum weft_result result;
	int rc;

	if (ft->open)
		return call_is_open(ft, call, dst)
			       ? WEFT_SUCCESS
			       : error_set(WEFT_ERR_BUSY,
					   "weft_ft_allreduce: step %llu is open: give "
					   "the call that began it again",
					   (unsigned long long)ft->step + 1);
	result = call_take(ft, call, dst);
	if (result != WEFT_SUCCESS)
		return result;
	ft->why[0] = '\0';
	rc = ft_link_begin(ft->link);
	/* Out: the event says why. */
	if (rc && rc != -ECONNABORTED)
		return error_set(WEFT_ERR_INTERNAL, "the link takes no step: %s",
				 strerror(-rc));
	ft->open = true;
	return WEFT_SUCCESS;
}

enum weft_result weft_ft_allreduce(struct weft_ft *ft, const void *src, void *dst,
				   uint64_t count, enum weft_type type, enum weft_op op,
				   int64_t timeout_us)
{
	enum weft_result result;
	struct pipe_call call;

	error_clear();
	if (!ft || timeout_us < WEFT_TIMEOUT_INFINITE)
		return error_set(WEFT_ERR_ARG, "weft_ft_allreduce: %s",
				 ft ? "timeout_us is below -1" : "ft is NULL");
	if (!ft_enter(ft))
		return error_set(WEFT_ERR_BUSY, "weft_ft_allreduce: another thread is in "
						"a call on this handle");
	call = (struct pipe_call){.src = src,
				  .count = count,
				  .type = type,
				  .op = op,
				  .chunk = ft->chunk,
				  .stopped = attempt_stopped,
				  .arg = ft};
	ft->until = ft_until(ft, timeout_us);
	graves_look(ft);
	if (ft->failed != WEFT_SUCCESS)
		result = error_set(ft->failed, "%s", ft->why);
	else
		result = step_begin(ft, &call, dst);
	if (result == WEFT_SUCCESS)
		result = step_run(ft);
	ft_exit(ft);
	return result;
}

enum weft_result weft_ft_info(struct weft_ft *ft, struct weft_ft_info *info)
{
	struct weft_ft_info now;

	error_clear();
	if (!ft || !info || info->size < sizeof(info->size))
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_info: ft or info is NULL, or info->size is not "
				 "set");
	if (!ft_enter(ft))
		return error_set(WEFT_ERR_BUSY, "weft_ft_info: another thread is in a "
						"call on this handle");
	graves_look(ft);
	now = (struct weft_ft_info){.size = info->size,
				    .id = ft_link_id(ft->link),
				    .step = ft->step,
				    .members = ft->members,
				    .contributors = ft->end.contributors,
				    .runs = ft->runs,
				    .epochs = ft->epochs,
				    .buried = ft->buried};
	memcpy(info, &now, info->size < sizeof(now) ? info->size : sizeof(now));
	ft_exit(ft);
	return WEFT_SUCCESS;
}

/* ---- life
 * -------------------------------------------------------------------------------
 */

/* Until an event of this kind, or the member is out. */
static enum weft_result wait_for(struct weft_ft *ft, enum ft_event event,
				 const char *what)
{
	for (;;) {
		const int64_t left =
			ft->until == BOOT_NEVER ? -1 : ft->until - boot_clock_us();
		struct ft_link_status status;
		int rc;

		rc = ft_link_wait(ft->link, &ft->event,
				  left < 0 && ft->until != BOOT_NEVER ? 0 : left);
		if (rc == -ETIMEDOUT) {
			ft_link_status(ft->link, &status);
			return error_set(WEFT_ERR_TIMEOUT,
					 "%s: no answer of the coordinator in time (%s)",
					 what,
					 status.connected ? "it is connected: too few "
							    "members, or a step is on"
							  : status.why);
		}
		if (rc)
			return error_set(WEFT_ERR_INTERNAL, "%s: %s", what,
					 strerror(-rc));
		if (ft->event.event == event)
			return WEFT_SUCCESS;
		if (ft->event.event == FT_FENCED_OUT)
			return fenced(ft, ft->event.reason);
	}
}

static enum weft_result opts_check(const struct weft_ft_opts *opts)
{
	if (opts->size < sizeof(*opts))
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_opts.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_FT_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (!opts->coordinator || !*opts->coordinator)
		return error_set(WEFT_ERR_ARG, "weft_ft_opts.coordinator is empty: give "
					       "\"host:port\" of the coordinator");
	if (opts->job && strlen(opts->job) > FT_JOB_LEN)
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_opts.job has %zu bytes, the most "
				 "is %d",
				 strlen(opts->job), FT_JOB_LEN);
	if (opts->timeout_us < WEFT_TIMEOUT_INFINITE || opts->attempt_us < 0)
		return error_set(WEFT_ERR_ARG, "weft_ft_opts.%s is %lld",
				 opts->attempt_us < 0 ? "attempt_us" : "timeout_us",
				 (long long)(opts->attempt_us < 0 ? opts->attempt_us
								  : opts->timeout_us));
	if (opts->chunk % FTAR_CHUNK_UNIT || opts->chunk > FTAR_CHUNK_MAX)
		return error_set(WEFT_ERR_ARG,
				 "weft_ft_opts.chunk is %zu: it is a multiple of %d, %zu "
				 "at most",
				 opts->chunk, FTAR_CHUNK_UNIT, FTAR_CHUNK_MAX);
	return WEFT_SUCCESS;
}

static char *text_copy(const char *text, bool *good)
{
	char *copy = text ? strdup(text) : NULL;

	*good = *good && (!text || copy);
	return copy;
}

static void ft_free(struct weft_ft *ft)
{
	ft_link_close(ft->link);
	if (ft->listener >= 0)
		close(ft->listener);
	ft_roster_fini(&ft->event.roster);
	free(ft->provider);
	free(ft->domain);
	free(ft);
}

static enum weft_result ft_connect(struct weft_ft *ft, const struct weft_ft_opts *opts)
{
	struct ft_link_attr attr = {.coordinator = opts->coordinator,
				    .group = opts->group};
	char why[FT_LINK_WHY], where[MEET_WHY];
	int rc;

	memcpy(attr.job, ft->job, sizeof(attr.job));
	/* Chunks must be alike as well; and it is not 0. */
	attr.sign = (opts->sign ^ ft->chunk * UINT64_C(0x9e3779b97f4a7c15)) | 1;
	ft->listener = meet_listen(opts->address, opts->coordinator, attr.card,
				   &attr.card_len, where);
	if (ft->listener < 0)
		return error_set(WEFT_ERR_BOOTSTRAP, "weft_ft_open: %s", where);
	rc = ft_link_open(&attr, &ft->link, why);
	if (rc == -ENOMEM)
		return error_set(WEFT_ERR_NOMEM, "weft_ft_open: %s", why);
	return rc ? error_set(WEFT_ERR_BOOTSTRAP, "weft_ft_open: %s", why) : WEFT_SUCCESS;
}

enum weft_result weft_ft_open(const struct weft_ft_opts *opts, struct weft_ft **out)
{
	enum weft_result result;
	struct weft_ft *ft;
	bool good = true;

	error_clear();
	if (!opts || !out)
		return error_set(WEFT_ERR_ARG, "weft_ft_open: %s is NULL",
				 opts ? "ft" : "opts");
	result = opts_check(opts);
	if (result != WEFT_SUCCESS)
		return result;
	ft = calloc(1, sizeof(*ft));
	if (!ft)
		return error_set(WEFT_ERR_NOMEM, "weft_ft_open: no memory");
	atomic_flag_clear(&ft->busy);
	list_init(&ft->graves);
	ft->listener = -1;
	ft->timeout_us = opts->timeout_us ? opts->timeout_us : FTAR_TIMEOUT_US;
	ft->attempt_us = opts->attempt_us ? opts->attempt_us : FTAR_ATTEMPT_US;
	ft->chunk = opts->chunk ? opts->chunk : FTAR_CHUNK;
	ft->until = boot_deadline(ft->timeout_us);
	if (opts->job)
		memcpy(ft->job, opts->job, strlen(opts->job));
	ft->provider = text_copy(opts->provider, &good);
	ft->domain = text_copy(opts->domain, &good);
	result = good ? epoch_possible(ft->provider, ft->domain, ft->timeout_us)
		      : error_set(WEFT_ERR_NOMEM, "weft_ft_open: no memory");
	if (result == WEFT_SUCCESS)
		result = ft_connect(ft, opts);
	if (result == WEFT_SUCCESS)
		result = wait_for(ft, FT_JOINED, "weft_ft_open");
	if (result != WEFT_SUCCESS) {
		ft_free(ft);
		return result;
	}
	ft->step = ft->event.commit.step;
	ft->members = ft->event.roster.count;
	*out = ft;
	return WEFT_SUCCESS;
}

enum weft_result weft_ft_leave(struct weft_ft *ft, int64_t timeout_us)
{
	enum weft_result result;
	int rc;

	error_clear();
	if (!ft || timeout_us < WEFT_TIMEOUT_INFINITE)
		return error_set(WEFT_ERR_ARG, "weft_ft_leave: %s",
				 ft ? "timeout_us is below -1" : "ft is NULL");
	if (!ft_enter(ft))
		return error_set(WEFT_ERR_BUSY, "weft_ft_leave: another thread is in a "
						"call on this handle");
	if (ft->failed == WEFT_ERR_FENCED) { /* it is out, and has said so */
		ft_exit(ft);
		return WEFT_SUCCESS;
	}
	ft->until = ft_until(ft, timeout_us);
	/* One that failed for good can't be ended by whoever calls: it is given up. */
	if (ft->open && ft->failed != WEFT_SUCCESS)
		rc = ft_link_give_up(ft->link);
	else
		rc = ft->open ? -EBUSY : ft_link_leave(ft->link);
	if (rc == -EBUSY)
		result = error_set(WEFT_ERR_BUSY,
				   "weft_ft_leave: step %llu is open: end it first, by "
				   "the call that began it",
				   (unsigned long long)ft->step + 1);
	else
		result = wait_for(ft, FT_FENCED_OUT, "weft_ft_leave");
	if (result == WEFT_SUCCESS)
		fenced(ft, ft->event.reason);
	ft_exit(ft);
	return result;
}

enum weft_result weft_ft_close(struct weft_ft *ft)
{
	const int64_t until = boot_deadline(FTAR_CLOSE_US);

	error_clear();
	if (!ft)
		return error_set(WEFT_ERR_ARG, "weft_ft_close: ft is NULL");
	if (!ft_enter(ft))
		return error_set(WEFT_ERR_BUSY, "weft_ft_close: another thread is in a "
						"call on this handle");
	epoch_retire(ft, "this member closes");
	graves_look(ft);
	while (!list_empty(&ft->graves) && boot_clock_us() < until) {
		const struct timespec nap = {.tv_nsec = FTAR_NAP_US * 1000};

		nanosleep(&nap, NULL);
		graves_look(ft);
	}
	ft_free(ft);
	error_clear();
	return WEFT_SUCCESS;
}
