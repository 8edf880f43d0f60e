/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Not a test: how many descriptors one thread drains in a second, by batch; a ring that
 * is full at the start, and a transport that completes at once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu/device/devctx.h"
#include "util/tap.h"

#define DEPTH  65536ull
#define ROUNDS 40

struct nothing {
	uint64_t token[PROXY_BATCH_MAX * 2];
	size_t n;
};

static int post(void *arg, const struct weft_dev_op *op, uint64_t token, bool more)
{
	struct nothing *t = arg;

	(void)op;
	(void)more;
	if (t->n == sizeof(t->token) / sizeof(t->token[0]))
		return -11;
	t->token[t->n++] = token;
	return 0;
}

static size_t poll_all(void *arg, struct proxy_done *done, size_t most)
{
	struct nothing *t = arg;
	const size_t n = t->n < most ? t->n : most;

	for (size_t i = 0; i < n; i++)
		done[i] = (struct proxy_done){.token = t->token[--t->n]};
	return n;
}

/* Of this thread: others on the machine do not count. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double rate(uint32_t batch)
{
	static const struct proxy_transport transport = {PROXY_ORDERED, post, NULL,
							 poll_all};
	const struct devctx_shape shape = {0, 2, 4, 4, 1, DEPTH};
	void *pinned = aligned_alloc(128, (devctx_pinned_len(&shape) + 127) / 128 * 128);
	void *local = aligned_alloc(128, (devctx_local_len(&shape) + 127) / 128 * 128);
	const struct weft_dev_op op = {WEFT_DEV_PUT, 1, 0, 0, 64, 128, 4096, 0, 1, 1, 0};
	struct nothing nothing = {.n = 0};
	struct devctx_words words;
	struct weft_dev_ctx ctx;
	struct proxy_ring ring;
	struct proxy *proxy;
	uint8_t ready = 0;
	struct proxy_opts opts = {&transport, &nothing, &ring, 1, &ready, batch};
	uint64_t ns = 0;

	if (!pinned || !local)
		tap_bail("out of memory");
	memset(pinned, 0, devctx_pinned_len(&shape));
	memset(local, 0, devctx_local_len(&shape));
	devctx_init(&shape, pinned, local, &ready, &ctx, &ring, &words);
	if (proxy_open(&opts, &proxy) < 0)
		tap_bail("no proxy");
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start;

		for (uint64_t k = 0; k < DEPTH; k++)
			weft_dev_post(&ctx.ring, &op, 0);
		start = cpu_ns();
		while (*ring.done != (i + 1) * DEPTH)
			proxy_tick(proxy);
		ns += cpu_ns() - start;
	}
	proxy_close(proxy);
	free(pinned);
	free(local);
	return (double)DEPTH * ROUNDS / (double)ns * 1e3;
}

int main(void)
{
	static const uint32_t batches[] = {1, 4, 16, 64};

	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
		printf("batch %2u: %6.2f million descriptors a second\n", batches[i],
		       rate(batches[i]));
	return 0;
}
