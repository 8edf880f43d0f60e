/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A communicator and newcomers become a larger one. Its first rank lets the newcomers in
 * (gate.h), and tells the others of the communicator, over that, what it told them; then
 * all meet as the members of an epoch of fault-tolerant all-reduces do
 * (coll/ftar/meet.h), and open a context.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/boot/boot_clock.h"
#include "coll/comm/comm.h"
#include "coll/ftar/meet.h"
#include "coll/grow/gate.h"

#define GROW_TIMEOUT_US INT64_C(60000000)
/* Who waits for rank 0 waits so much longer than it does, which knows better. */
#define GROW_GRACE_US INT64_C(10000000)

_Static_assert((int)GATE_JOB_LEN == (int)MEET_JOB_LEN, "one secret for both");

/* What the bootstrap of the new context goes by, as long as that lives. */
struct grown {
	struct ft_roster roster;
	struct meet *meet;
	uint8_t job[MEET_JOB_LEN];
};

struct grow {
	struct weft_comm *comm; /* NULL: a newcomer */
	const struct weft_grow_opts *opts;
	int64_t timeout_us, until;
	struct gate_hello hello;
	struct gate_answer answer;
	int listener; /* rank 0; else -1 */
};

static enum weft_result grow_check(const struct weft_grow_opts *opts)
{
	if (opts->size < sizeof(*opts))
		return error_set(WEFT_ERR_ARG,
				 "weft_grow_opts.size is %zu, this library needs %zu: "
				 "initialise it with WEFT_GROW_OPTS_INIT",
				 opts->size, sizeof(*opts));
	if (!opts->place || !*opts->place)
		return error_set(WEFT_ERR_ARG,
				 "weft_grow_opts.place is %s: give the \"host:port\" "
				 "where rank 0 lets newcomers in",
				 opts->place ? "empty" : "NULL");
	if (opts->job && strlen(opts->job) > GATE_JOB_LEN)
		return error_set(WEFT_ERR_ARG,
				 "weft_grow_opts.job has %zu bytes, the most are %d",
				 strlen(opts->job), GATE_JOB_LEN);
	if (opts->timeout_us < WEFT_TIMEOUT_INFINITE)
		return error_set(WEFT_ERR_ARG, "weft_grow_opts.timeout_us is %lld",
				 (long long)opts->timeout_us);
	return WEFT_SUCCESS;
}

/* A word that no other growth has, never 0. */
static bool grow_draw(uint64_t *word)
{
	const bool good = getrandom(word, sizeof(*word), 0) == (ssize_t)sizeof(*word);

	*word |= 1;
	return good;
}

/* ---- letting in, being let in ---------------------------------------------------------
 */

static enum weft_result grow_admit(struct grow *g)
{
	struct gate_attr attr = {.first = g->comm->size,
				 .count = g->opts->newcomers,
				 .wanted = g->hello,
				 .until = g->until};
	char why[GATE_WHY];
	enum weft_result result;

	/* Here, so that the other ranks hear of it. */
	if (g->opts->newcomers < 1)
		return error_set(WEFT_ERR_ARG,
				 "weft_grow_opts.newcomers is %d: give how many are let "
				 "in",
				 g->opts->newcomers);
	if (g->opts->newcomers > FT_MEMBERS_MAX - g->comm->size)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "%d ranks and %d newcomers: the most are %d together",
				 g->comm->size, g->opts->newcomers, FT_MEMBERS_MAX);
	g->answer = (struct gate_answer){.size = g->comm->size + g->opts->newcomers};
	if (!grow_draw(&g->answer.word))
		return error_set(WEFT_ERR_BOOTSTRAP, "weft_comm_grow: getrandom: %s",
				 strerror(errno));
	g->listener = gate_listen(g->opts->place, &g->answer, why);
	if (g->listener < 0)
		return error_set(WEFT_ERR_ARG, "weft_comm_grow: %s", why);
	attr.listener = g->listener;
	result = gate_admit(&attr, &g->answer, why);
	return result == WEFT_SUCCESS ? result
				      : error_set(result, "weft_comm_grow: at %.100s: %s",
						  g->opts->place, why);
}

/* Rank 0 of the old communicator tells the others what came of it. */
static enum weft_result grow_share(struct grow *g, enum weft_result result)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	uint8_t buf[GATE_ANSWER_LEN] = {0};
	enum weft_result told;

	opts.timeout_us =
		g->timeout_us < 0 ? WEFT_TIMEOUT_INFINITE : g->timeout_us + GROW_GRACE_US;
	if (g->comm->rank == 0) {
		g->answer.result = result;
		if (result != WEFT_SUCCESS)
			snprintf(g->answer.text, sizeof(g->answer.text), "%.199s",
				 weft_error_detail());
		gate_answer_put(buf, &g->answer);
	}
	told = weft_broadcast(g->comm, buf, sizeof(buf), WEFT_UINT8, 0, &opts);
	if (result != WEFT_SUCCESS)
		return error_set(result, "%s", g->answer.text);
	if (told != WEFT_SUCCESS || g->comm->rank == 0)
		return told;
	if (!gate_answer_get(buf, &g->answer))
		return error_set(WEFT_ERR_INTERNAL,
				 "weft_comm_grow: what rank 0 said makes no sense");
	if (g->answer.result != WEFT_SUCCESS)
		return error_set(g->answer.result, "rank 0 says: %s", g->answer.text);
	if (g->answer.size <= g->comm->size)
		return error_set(WEFT_ERR_INTERNAL,
				 "weft_comm_grow: rank 0 said that %d ranks grow to %d",
				 g->comm->size, g->answer.size);
	g->answer.rank = g->comm->rank;
	return WEFT_SUCCESS;
}

static enum weft_result grow_ask(struct grow *g)
{
	char why[GATE_WHY];
	enum weft_result result;

	if (!grow_draw(&g->hello.drawn))
		return error_set(WEFT_ERR_BOOTSTRAP, "weft_comm_grow: getrandom: %s",
				 strerror(errno));
	result = gate_ask(g->opts->place, &g->hello, g->until, &g->answer, why);
	if (result == WEFT_SUCCESS)
		return result;
	if (result == WEFT_ERR_TIMEOUT)
		return error_set(result,
				 "weft_comm_grow: nobody let this process in at %.100s "
				 "within %.3f s: %s",
				 g->opts->place, (double)g->timeout_us * 1e-6, why);
	return error_set(result, "weft_comm_grow: refused at %.100s: %s", g->opts->place,
			 why);
}

/* ---- what becomes of them -------------------------------------------------------------
 */

static void grown_free(void *arg)
{
	struct grown *grown = arg;

	meet_close(grown->meet);
	ft_roster_fini(&grown->roster);
	free(grown);
}

static bool grow_go_on(void *arg)
{
	(void)arg;
	return false;
}

/* Members are known by their ranks; where they meet is the card of the first. */
static bool grown_roster(struct grown *grown, const struct gate_answer *answer)
{
	grown->roster.epoch = (struct ft_epoch){.term = answer->word, .seq = 1};
	for (int32_t i = 0; i < answer->size; i++) {
		struct ft_entry entry = {.id = (uint64_t)i + 1};

		if (i == 0) {
			memcpy(entry.card, answer->card, sizeof(entry.card));
			entry.card_len = answer->card_len;
		}
		if (!ft_roster_add(&grown->roster, &entry))
			return false;
	}
	return true;
}

/* NULL: *result says why. */
static struct grown *grow_meet(struct grow *g, enum weft_result *result)
{
	struct grown *grown = calloc(1, sizeof(*grown));
	struct meet_attr attr = {.listener = g->listener,
				 .id = (uint64_t)g->answer.rank + 1,
				 .until = boot_deadline_later(g->until, GROW_GRACE_US),
				 .stopped = grow_go_on};
	char why[MEET_WHY];
	uint64_t suspect = 0;

	if (!grown || !grown_roster(grown, &g->answer)) {
		if (grown)
			grown_free(grown);
		*result = error_set(WEFT_ERR_NOMEM, "no memory for %d ranks",
				    g->answer.size);
		return NULL;
	}
	memcpy(grown->job, g->hello.job, sizeof(grown->job));
	attr.roster = &grown->roster;
	attr.job = grown->job;
	grown->meet = meet_open(&attr, &suspect, why);
	if (!grown->meet) {
		grown_free(grown);
		if (suspect)
			*result = error_set(
				WEFT_ERR_BOOTSTRAP,
				"weft_comm_grow: %s (it would be rank %d of %d)", why,
				(int)suspect - 1, g->answer.size);
		else
			*result =
				error_set(WEFT_ERR_BOOTSTRAP, "weft_comm_grow: %s", why);
		return NULL;
	}
	return grown;
}

static enum weft_result grow_open(const struct grow *g, struct grown *grown,
				  struct weft_ctx **ctx, struct weft_comm **out)
{
	const struct weft_boot_callbacks boot = {.rank = g->answer.rank,
						 .size = g->answer.size,
						 .arg = grown->meet,
						 .allgather = meet_allgather};
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct weft_comm *comm;
	struct weft_ctx *made;
	enum weft_result result;
	char why[GATE_WHY];

	opts.provider = g->opts->provider;
	opts.domain = g->opts->domain;
	opts.timeout_us = g->timeout_us;
	opts.boot = &boot;
	result = weft_ctx_open(&opts, &made);
	if (result != WEFT_SUCCESS) {
		grown_free(grown);
		return result;
	}
	made->boot_end = grown_free;
	made->boot_arg = grown;
	result = weft_comm_create(made, NULL, &comm);
	if (result != WEFT_SUCCESS) {
		snprintf(why, sizeof(why), "%.299s", weft_error_detail());
		weft_ctx_close(made);
		return error_set(result, "%s", why);
	}
	*ctx = made;
	*out = comm;
	return WEFT_SUCCESS;
}

static enum weft_result grow_run(struct grow *g, struct weft_ctx **ctx,
				 struct weft_comm **out)
{
	struct grown *grown = NULL;
	enum weft_result result = WEFT_SUCCESS;

	if (!g->comm) {
		result = grow_ask(g);
	} else {
		if (g->comm->rank == 0)
			result = grow_admit(g);
		result = grow_share(g, result);
	}
	if (result == WEFT_SUCCESS)
		grown = grow_meet(g, &result);
	if (grown)
		result = grow_open(g, grown, ctx, out);
	if (g->listener >= 0)
		close(g->listener);
	return result;
}

enum weft_result weft_comm_grow(struct weft_comm *comm, const struct weft_grow_opts *opts,
				struct weft_ctx **ctx, struct weft_comm **out)
{
	struct grow g = {.comm = comm, .opts = opts, .listener = -1};
	enum weft_result result;

	error_clear();
	if (!opts || !ctx || !out)
		return error_set(WEFT_ERR_ARG, "weft_comm_grow: %s is NULL",
				 !opts ? "opts" : (ctx ? "out" : "ctx"));
	result = grow_check(opts);
	if (result != WEFT_SUCCESS)
		return result;
	g.timeout_us = opts->timeout_us ? opts->timeout_us
		       : comm		? comm->ctx->timeout_us
					: GROW_TIMEOUT_US;
	g.until = boot_deadline(g.timeout_us);
	g.hello = (struct gate_hello){.major = WEFT_VERSION_MAJOR,
				      .minor = WEFT_VERSION_MINOR,
				      .sign = opts->sign};
	if (opts->job)
		memcpy(g.hello.job, opts->job, strlen(opts->job));
	return grow_run(&g, ctx, out);
}
