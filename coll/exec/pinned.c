/* SPDX-License-Identifier: BSD-2-Clause */
/* See pinned.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/gpus.h"
#include "coll/exec/pinned.h"

/* Pinning costs time, and memory of many sizes would stay unused: powers of two. */
#define PINNED_MIN ((size_t)64 << 10)

/* Of a context, where WEFT_GPU_PINNED says nothing. */
#define PINNED_MOST (UINT64_C(2) << 30)

enum weft_result pinned_pool_open(struct pinned_pool *pool)
{
	const char *text = getenv("WEFT_GPU_PINNED");
	char *end = NULL;
	unsigned long long mib;

	list_init(&pool->idle);
	pool->bytes = pool->plain = 0;
	pool->most = PINNED_MOST;
	if (!text || !*text)
		return WEFT_SUCCESS;
	errno = 0;
	mib = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || mib > UINT64_MAX >> 20)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_GPU_PINNED is \"%s\": it must be a number of MiB",
				 text);
	pool->most = (uint64_t)mib << 20;
	return WEFT_SUCCESS;
}

size_t pinned_round(size_t size)
{
	size_t round = PINNED_MIN;

	while (round < size && round <= SIZE_MAX / 2)
		round *= 2;
	return round < size ? size : round;
}

struct pinned *pinned_new(struct exec *x, size_t size)
{
	struct pinned *p = calloc(1, sizeof(*p));
	void *addr;

	if (!p)
		return NULL;
	list_init(&p->link);
	p->size = pinned_round(size);
	p->plain = true;
	/* Memory that providers register as a whole, and some share between processes. */
	if (block_alloc(&x->mem, p->size, &addr)) {
		free(p);
		return NULL;
	}
	p->memory = addr;
	p->block = true;
	return p;
}

int pinned_pin(struct gpu *gpu, struct pinned *pinned)
{
	const int rc = gpu_pinned_register(gpu, pinned->memory, pinned->size);

	pinned->plain = rc != 0;
	return rc;
}

void pinned_free(struct exec *x, struct pinned *p)
{
	struct gpu *gpu = x->gpus->gpu;

	if (!p->plain)
		x->gpus->pool.bytes -= p->size;
	/* What a provider still holds of it goes first. */
	if (!p->block) {
		if (mem_forget(&x->mem, p->memory, p->size))
			gpu_pinned_free(gpu, p->memory);
	} else {
		if (!p->plain)
			gpu_pinned_unregister(gpu, p->memory);
		block_free(&x->mem, p->memory);
	}
	free(p);
}

void pinned_pool_close(struct exec *x)
{
	struct list *node;

	while ((node = list_pop_front(&x->gpus->pool.idle)))
		pinned_free(x, container_of(node, struct pinned, link));
}

bool pinned_fits(const struct exec *x, uint64_t more, size_t size)
{
	const struct pinned_pool *pool = &x->gpus->pool;
	const size_t round = pinned_round(size);

	return round <= pool->most && more <= pool->most - round &&
	       pool->bytes <= pool->most - round - more;
}

/* The shortest that is long enough; NULL: there is none. */
static struct pinned *idle_find(const struct exec *x, size_t size, bool plain)
{
	list_foreach (pos, &x->gpus->pool.idle) {
		struct pinned *p = container_of(pos, struct pinned, link);

		if (p->size >= size && p->plain == plain)
			return p;
	}
	return NULL;
}

uint32_t pinned_count(const struct exec *x, size_t size)
{
	uint32_t count = 0;

	list_foreach (pos, &x->gpus->pool.idle) {
		const struct pinned *p = container_of(pos, struct pinned, link);

		count += p->size >= size && !p->plain;
	}
	return count;
}

static struct pinned *idle_take(struct exec *x, struct pinned *p)
{
	if (p && p->plain)
		x->gpus->pool.plain -= p->size;
	if (p)
		list_remove(&p->link);
	return p;
}

enum weft_result pinned_get(struct exec *x, size_t size, bool may_pin,
			    struct pinned **pinned)
{
	struct pinned *p = idle_take(x, idle_find(x, size, false));

	if (!p) {
		p = idle_take(x, idle_find(x, size, true));
		if (!p)
			p = pinned_new(x, size);
		if (!p)
			return error_set(WEFT_ERR_NOMEM,
					 "no %zu bytes for copies of device memory",
					 pinned_round(size));
		if (may_pin && !gpus_pin(x, p))
			return error_set(WEFT_ERR_BUSY,
					 "pinning %zu bytes for copies of device memory "
					 "goes on: the driver waits until the GPU is "
					 "idle; let held streams go on, and call "
					 "weft_gpu_prepare() before they are held",
					 size);
	}
	*pinned = p;
	return WEFT_SUCCESS;
}

void pinned_put(struct exec *x, struct pinned *pinned)
{
	struct pinned_pool *pool = &x->gpus->pool;
	struct list *pos = pool->idle.next;

	pinned->kept = false;
	if (pinned->plain && pinned->size > pool->most - pool->plain) {
		pinned_free(x, pinned);
		return;
	}
	if (pinned->plain)
		pool->plain += pinned->size;
	while (pos != &pool->idle &&
	       container_of(pos, struct pinned, link)->size < pinned->size)
		pos = pos->next;
	list_push_back(pos, &pinned->link);
}
