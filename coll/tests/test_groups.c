/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of ranks by list: made without a message, ordered as listed, at work at once;
 * lists that differ are found; what is wrong with a list is said.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "coll/tests/ranks.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(60000000)

static int said(struct ranks *r, const char *what)
{
	return ranks_say(r, "%s: %s", what, weft_error_detail());
}

static bool refused(struct ranks *r, enum weft_result got, enum weft_result want,
		    const char *word)
{
	if (got == want && strstr(weft_error_detail(), word))
		return true;
	ranks_say(r, "\"%s\": got %s (%s)", word, weft_strerror(got),
		  weft_error_detail());
	return false;
}

/* A communicator with room for so many groups; from another one with other numbers used
 * by some ranks only. */
static int open_comm(struct ranks *r, struct weft_ctx *ctx, uint32_t groups,
		     struct weft_comm **comm)
{
	struct weft_comm_opts opts = WEFT_COMM_OPTS_INIT;
	struct weft_comm *all, *odd;

	opts.groups = groups;
	if (weft_comm_create(ctx, NULL, &all) != WEFT_SUCCESS ||
	    weft_comm_split(all, r->rank % 2 ? 0 : WEFT_SPLIT_NONE, 0, NULL, &odd) !=
		    WEFT_SUCCESS ||
	    weft_comm_create(ctx, &opts, comm) != WEFT_SUCCESS ||
	    weft_comm_destroy(all) != WEFT_SUCCESS ||
	    (odd && weft_comm_destroy(odd) != WEFT_SUCCESS))
		return said(r, "communicators");
	return RANKS_GOOD;
}

/* The sum of the members' numbers, and the order, are those of the list. */
static int group_works(struct ranks *r, struct weft_comm *group, const int32_t *list,
		       int32_t count)
{
	int32_t own = r->rank, all[RANKS_MAX];

	if (weft_comm_size(group) != count || list[weft_comm_rank(group)] != r->rank)
		return ranks_say(r, "is rank %d of %d", weft_comm_rank(group),
				 weft_comm_size(group));
	for (int round = 0; round < 3; round++) {
		if (weft_allgather(group, &own, all, 1, WEFT_INT32, NULL) != WEFT_SUCCESS)
			return said(r, "all-gather");
		if (memcmp(all, list, (size_t)count * sizeof(*list)) != 0)
			return ranks_say(r, "other ranks are in it");
	}
	return RANKS_GOOD;
}

/* Two groups at once that use one number, then one that some join, then all backwards. */
static int lists_body(struct ranks *r, struct weft_ctx *ctx)
{
	static const int32_t low[] = {1, 0}, high[] = {2, 4, 3}, ends[] = {4, 0},
			     back[] = {4, 3, 2, 1, 0};
	const bool is_low = r->rank < 2, is_end = r->rank == 0 || r->rank == 4;
	struct weft_comm *comm, *group[3];

	if (open_comm(r, ctx, 3, &comm))
		return RANKS_BAD;
	if (weft_comm_group(comm, is_low ? low : high, is_low ? 2 : 3, NULL, &group[0]) !=
		    WEFT_SUCCESS ||
	    weft_comm_group(comm, ends, is_end ? 2 : 0, NULL, &group[1]) !=
		    WEFT_SUCCESS ||
	    weft_comm_group(comm, back, 5, NULL, &group[2]) != WEFT_SUCCESS)
		return said(r, "group");
	if (!refused(r, weft_comm_group(comm, back, 5, NULL, &group[2]),
		     WEFT_ERR_UNSUPPORTED, "created for 3 groups"))
		return RANKS_BAD;
	if (!is_end != !group[1])
		return ranks_say(r, "a group of others, or none of the own");
	if (group_works(r, group[0], is_low ? low : high, is_low ? 2 : 3) ||
	    (is_end && group_works(r, group[1], ends, 2)) ||
	    group_works(r, group[2], back, 5))
		return RANKS_BAD;
	for (int i = 0; i < 3; i++) {
		if (group[i] && weft_comm_destroy(group[i]) != WEFT_SUCCESS)
			return said(r, "destroy");
	}
	return weft_barrier(comm, NULL) == WEFT_SUCCESS &&
			       weft_comm_destroy(comm) == WEFT_SUCCESS
		       ? RANKS_GOOD
		       : said(r, "end");
}

static int wrong_body(struct ranks *r, struct weft_ctx *ctx)
{
	struct weft_comm_opts opts = WEFT_COMM_OPTS_INIT;
	const int32_t twice[] = {r->rank, r->rank}, beyond[] = {r->rank, r->size},
		      other[] = {(r->rank + 1) % r->size};
	struct weft_comm *comm, *group;

	if (open_comm(r, ctx, 1, &comm))
		return RANKS_BAD;
	opts.groups = 257;
	if (!refused(r, weft_comm_create(ctx, &opts, &group), WEFT_ERR_ARG,
		     "groups is 257") ||
	    !refused(r, weft_comm_group(comm, twice, 2, NULL, &group), WEFT_ERR_ARG,
		     "in the list already") ||
	    !refused(r, weft_comm_group(comm, beyond, 2, NULL, &group), WEFT_ERR_ARG,
		     "no rank") ||
	    !refused(r, weft_comm_group(comm, other, 1, NULL, &group), WEFT_ERR_ARG,
		     "does not have this rank") ||
	    !refused(r, weft_comm_group(comm, NULL, 1, NULL, &group), WEFT_ERR_ARG,
		     "ranks is NULL") ||
	    !refused(r, weft_comm_group(comm, twice, -1, NULL, &group), WEFT_ERR_ARG,
		     "count is -1") ||
	    weft_comm_destroy(comm) != WEFT_SUCCESS)
		return RANKS_BAD;
	return RANKS_GOOD;
}

/* Rank 1 has another order: all hear of it, in this collective or in the next. */
static int differ_body(struct ranks *r, struct weft_ctx *ctx)
{
	const int32_t list[2][3] = {{0, 1, 2}, {0, 2, 1}};
	struct weft_comm *comm, *group;
	enum weft_result got = WEFT_SUCCESS;

	if (open_comm(r, ctx, 1, &comm) ||
	    weft_comm_group(comm, list[r->rank == 1], 3, NULL, &group) != WEFT_SUCCESS)
		return said(r, "group");
	for (int i = 0; i < 3 && got == WEFT_SUCCESS; i++)
		got = weft_barrier(group, NULL);
	if (got != WEFT_ERR_MISMATCH && got != WEFT_ERR_COMM)
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	for (int i = 0; weft_comm_destroy(group) != WEFT_SUCCESS; i++) {
		const struct timespec nap = {.tv_nsec = 1000000};

		if (i == 60000)
			return said(r, "destroy");
		nanosleep(&nap, NULL);
	}
	/* Nobody leaves while others want an answer. */
	return weft_barrier(comm, NULL) == WEFT_SUCCESS &&
			       weft_comm_destroy(comm) == WEFT_SUCCESS
		       ? RANKS_GOOD
		       : said(r, "end");
}

static const struct ranks_part parts[] = {
	{5, -1, "groups by list, in their order, at once"},
	{2, -1, "lists that are wrong"},
	{3, -1, "lists that differ"},
};

static int (*const bodies[])(struct ranks *, struct weft_ctx *) = {lists_body, wrong_body,
								   differ_body};

static int job_body(struct ranks *r)
{
	struct weft_ctx *ctx;
	int bad = ranks_open(r, r->arg, TIMEOUT, &ctx);

	if (!bad)
		bad = bodies[r->part](r, ctx);
	if (!bad && weft_ctx_close(ctx) != WEFT_SUCCESS)
		bad = said(r, "close");
	return bad;
}

int main(void)
{
	char names[8][32];
	bool good[3];
	int count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		if (!ranks_parts(parts, 3, 240, job_body, names[i], good)) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		for (int p = 0; p < 3; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
