/* SPDX-License-Identifier: BSD-2-Clause */
/* See epoch.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/boot/boot_clock.h"
#include "coll/comm/comm.h"
#include "coll/ftar/epoch.h"

/* Epochs since a step counted in which attempts are as long as they are by default: two
 * for a path that is broken, and some for newcomers and for others that die meanwhile. */
#define PATIENT_EPOCHS 6

static int alone_allgather(void *arg, const void *in, void *out, size_t len,
			   int64_t timeout_us)
{
	(void)arg;
	(void)timeout_us;
	memcpy(out, in, len);
	return 0;
}

int64_t epoch_patience(struct ft_epoch epoch, struct ft_epoch counted, int64_t attempt_us)
{
	/* A coordinator numbers what it prepares; a later one begins anew. */
	const bool same = epoch.term == counted.term && epoch.seq >= counted.seq;
	const uint64_t prepared = same ? epoch.seq - counted.seq : epoch.seq;

	for (uint64_t n = PATIENT_EPOCHS; n < 8 * PATIENT_EPOCHS && prepared > n;
	     n *= 2) {
		if (attempt_us > INT64_MAX / 2)
			break;
		attempt_us *= 2;
	}
	return attempt_us;
}

enum weft_result epoch_possible(const char *provider, const char *domain,
				int64_t timeout_us)
{
	const struct weft_boot_callbacks alone = {.size = 1,
						  .allgather = alone_allgather};
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct weft_ctx *ctx;
	enum weft_result result;

	opts.provider = provider;
	opts.domain = domain;
	opts.timeout_us = timeout_us;
	opts.boot = &alone;
	opts.progress = WEFT_PROGRESS_CALLER;
	result = weft_ctx_open(&opts, &ctx);
	return result == WEFT_SUCCESS ? weft_ctx_close(ctx) : result;
}

static bool epoch_meets(struct epoch *e, const struct epoch_attr *attr, struct meet *meet,
			char why[EPOCH_WHY])
{
	const struct weft_boot_callbacks boot = {.rank = meet_rank(meet),
						 .size = e->size,
						 .arg = meet,
						 .allgather = meet_allgather};
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;

	opts.provider = attr->provider;
	opts.domain = attr->domain;
	opts.timeout_us = attr->timeout_us;
	opts.boot = &boot;
	opts.progress = WEFT_PROGRESS_CALLER;
	e->rank = boot.rank;
	if (weft_ctx_open(&opts, &e->ctx) != WEFT_SUCCESS) {
		snprintf(why, EPOCH_WHY, "%s", weft_error_detail());
		return false;
	}
	if (weft_comm_create(e->ctx, NULL, &e->comm) == WEFT_SUCCESS)
		return true;
	snprintf(why, EPOCH_WHY, "%s", weft_error_detail());
	weft_ctx_close(e->ctx);
	e->ctx = NULL;
	return false;
}

static void epoch_free(struct epoch *e)
{
	ft_roster_fini(&e->roster);
	free(e);
}

struct epoch *epoch_open(const struct epoch_attr *attr, uint64_t *suspect,
			 char why[EPOCH_WHY])
{
	struct epoch *e = calloc(1, sizeof(*e));
	struct meet *meet;
	char what[MEET_WHY];

	*suspect = 0;
	if (!e || !ft_roster_copy(&e->roster, attr->meet.roster)) {
		snprintf(why, EPOCH_WHY, "no memory for an epoch");
		free(e);
		return NULL;
	}
	list_init(&e->link);
	e->name = e->roster.epoch;
	e->words_us = attr->words_us ? attr->words_us : EPOCH_WORDS_US;
	e->size = (int32_t)e->roster.count;
	meet = meet_open(&attr->meet, suspect, what);
	if (!meet) {
		snprintf(why, EPOCH_WHY, "the members did not meet: %s", what);
		epoch_free(e);
		return NULL;
	}
	if (!epoch_meets(e, attr, meet, why)) {
		*suspect = meet_suspect(meet);
		meet_close(meet);
		epoch_free(e);
		return NULL;
	}
	meet_close(meet);
	return e;
}

enum weft_result epoch_staging(struct epoch *e, size_t len)
{
	enum weft_result result;

	if (len <= e->staging_len)
		return WEFT_SUCCESS;
	if (e->staging) {
		result = weft_mem_free(e->ctx, e->staging);
		if (result != WEFT_SUCCESS && result != WEFT_ERR_BUSY)
			return result;
	}
	/* What is busy goes with the context. */
	e->staging = NULL;
	e->staging_len = 0;
	result = weft_mem_alloc(e->ctx, len, &e->staging);
	if (result == WEFT_SUCCESS)
		e->staging_len = len;
	return result;
}

void epoch_stop(struct epoch *e, const char *reason)
{
	ctx_lock(e->ctx);
	exec_comm_revoke(e->ctx->exec, e->comm->number, reason);
	exec_progress(e->ctx->exec);
	ctx_unlock(e->ctx);
}

/* Whether it is to stay open for what is said to the others. */
static bool epoch_talks(struct epoch *e)
{
	struct exec *x = e->ctx->exec;
	bool talks;

	ctx_lock(e->ctx);
	exec_progress(x);
	talks = exec_has_words(x) && boot_clock_us() < e->words_until;
	if (!talks)
		exec_hush(x);
	ctx_unlock(e->ctx);
	return talks;
}

enum epoch_end epoch_close(struct epoch *e)
{
	bool open = false;

	if (!e->words_until)
		e->words_until = boot_clock_us() + e->words_us;
	for (int i = 0; i < EPOCH_REQS; i++) {
		int done = 0;

		if (!e->req[i])
			continue;
		weft_req_test(e->req[i], &done);
		if (done)
			e->req[i] = NULL;
		else
			open = true;
	}
	if (open)
		return EPOCH_BURIED;
	if (e->comm && weft_comm_destroy(e->comm) != WEFT_SUCCESS)
		return EPOCH_BURIED;
	e->comm = NULL;
	if (epoch_talks(e))
		return EPOCH_TALKS;
	if (weft_ctx_close(e->ctx) != WEFT_SUCCESS)
		return EPOCH_BURIED;
	epoch_free(e);
	return EPOCH_GONE;
}

void epoch_progress(struct epoch *e)
{
	ctx_lock(e->ctx);
	exec_progress(e->ctx->exec);
	ctx_unlock(e->ctx);
}

uint64_t epoch_suspect(const struct epoch *e)
{
	int32_t rank;

	ctx_lock(e->ctx);
	rank = exec_comm_suspect(e->ctx->exec, e->comm->number);
	ctx_unlock(e->ctx);
	return rank >= 0 && rank < e->size && rank != e->rank ? e->roster.entry[rank].id
							      : 0;
}
