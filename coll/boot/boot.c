/* SPDX-License-Identifier: BSD-2-Clause */
/* See boot.h: chooses how ranks meet, and keeps the first failure. */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "coll/api/error.h"
#include "coll/boot/boot.h"
#include "coll/boot/boot_side.h"

enum boot_way { BOOT_ALONE, BOOT_CALLBACKS, BOOT_ROOT, BOOT_LEAF };

struct boot {
	enum boot_way way;
	int32_t rank;
	int32_t size;
	uint64_t seq; /* all-gathers started */
	struct weft_boot_callbacks callbacks;
	struct boot_root *root;	 /* way ROOT */
	struct boot_leaf *leaf;	 /* way LEAF */
	enum weft_result failed; /* the first failure; SUCCESS: none */
	char detail[BOOT_TEXT_MAX + 1];
};

static enum weft_result open_callbacks(struct boot *boot,
				       const struct weft_boot_callbacks *cb)
{
	if (cb->size < 1 || cb->rank < 0 || cb->rank >= cb->size || !cb->allgather)
		return error_set(
			WEFT_ERR_ARG,
			"boot callbacks: rank %d of %d ranks, allgather %s: rank must "
			"be 0 to size - 1 and the function given",
			cb->rank, cb->size, cb->allgather ? "given" : "NULL");
	boot->way = BOOT_CALLBACKS;
	boot->rank = cb->rank;
	boot->size = cb->size;
	boot->callbacks = *cb;
	return WEFT_SUCCESS;
}

static enum weft_result open_environment(struct boot *boot, int64_t timeout_us)
{
	struct boot_env env;
	enum weft_result result = boot_env_read(&env, timeout_us);

	if (result)
		return result;
	boot->rank = env.rank;
	boot->size = env.size;
	if (env.size == 1) {
		boot->way = BOOT_ALONE;
		return WEFT_SUCCESS;
	}
	if (env.rank == 0) {
		boot->way = BOOT_ROOT;
		return boot_root_open(&env, timeout_us, &boot->root);
	}
	boot->way = BOOT_LEAF;
	return boot_leaf_open(&env, timeout_us, &boot->leaf);
}

enum weft_result boot_open(const struct boot_attr *attr, struct boot **out)
{
	struct boot *boot = calloc(1, sizeof(*boot));
	enum weft_result result;

	if (!boot)
		return error_set(WEFT_ERR_NOMEM, "bootstrap: no memory");
	if (attr->callbacks)
		result = open_callbacks(boot, attr->callbacks);
	else
		result = open_environment(boot, attr->timeout_us);
	if (result)
		free(boot);
	else
		*out = boot;
	return result;
}

void boot_close(struct boot *boot)
{
	if (!boot)
		return;
	if (boot->root)
		boot_root_close(boot->root);
	if (boot->leaf)
		boot_leaf_close(boot->leaf);
	free(boot);
}

int32_t boot_rank(const struct boot *boot)
{
	return boot->rank;
}

int32_t boot_size(const struct boot *boot)
{
	return boot->size;
}

static enum weft_result allgather_callback(struct boot *boot, const struct boot_gather *g)
{
	int rc = boot->callbacks.allgather(boot->callbacks.arg, g->in, g->out, g->len,
					   g->timeout_us);

	if (rc == 0)
		return WEFT_SUCCESS;
	return error_set(
		WEFT_ERR_BOOTSTRAP,
		"rank %d: the caller's all-gather of %zu bytes per rank returned %d: "
		"it must return 0 when it has worked",
		boot->rank, (size_t)g->len, rc);
}

/* Where the result will be, for those who don't share one. */
static enum weft_result view_memory(struct boot *boot, struct boot_gather *g)
{
	g->out = malloc(g->len ? g->len * (size_t)boot->size : 1);
	g->view->memory = g->out;
	g->view->at = g->out;
	if (g->out)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_NOMEM,
			 "bootstrap all-gather of %zu bytes from each of %d ranks: no "
			 "memory",
			 (size_t)g->len, boot->size);
}

static enum weft_result gather_run(struct boot *boot, struct boot_gather *g)
{
	enum weft_result result = WEFT_SUCCESS;

	if (boot->failed)
		return error_set(boot->failed, "%s", boot->detail);
	if (g->len > BOOT_LEN_MAX || g->len > SIZE_MAX / 2 / (size_t)boot->size)
		return error_set(WEFT_ERR_ARG,
				 "bootstrap all-gather of %zu bytes per rank: too long",
				 (size_t)g->len);
	if (g->view && boot->way != BOOT_LEAF)
		result = view_memory(boot, g);
	if (result)
		return result;
	g->seq = ++boot->seq;
	switch (boot->way) {
	case BOOT_ALONE:
		memmove(g->out, g->in, g->len);
		break;
	case BOOT_CALLBACKS:
		result = allgather_callback(boot, g);
		break;
	case BOOT_ROOT:
		result = boot_root_allgather(boot->root, g);
		break;
	case BOOT_LEAF:
		result = boot_leaf_allgather(boot->leaf, g);
		break;
	}
	if (result) {
		boot->failed = result;
		strncpy(boot->detail, weft_error_detail(), BOOT_TEXT_MAX);
	}
	return result;
}

enum weft_result boot_allgather(struct boot *boot, const void *in, void *out, size_t len,
				int64_t timeout_us)
{
	struct boot_gather g = {
		.in = in, .out = out, .len = len, .timeout_us = timeout_us};

	return gather_run(boot, &g);
}

enum weft_result boot_allgather_view(struct boot *boot, const void *in, size_t len,
				     int64_t timeout_us, struct boot_view *view)
{
	struct boot_gather g = {
		.in = in, .view = view, .len = len, .timeout_us = timeout_us};

	*view = (struct boot_view){.at = NULL};
	return gather_run(boot, &g);
}

void boot_view_end(struct boot_view *view)
{
	if (view->mapped)
		munmap(view->memory, view->mapped);
	else
		free(view->memory);
	*view = (struct boot_view){.at = NULL};
}
