/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device-side calls on a device: two ranks in one process, two blocks of one launch; by
 * the CPU (windows in pinned memory, this thread as the proxy) and directly (windows in
 * the device's memory). Usage: device FATBIN [--quick]. Rows of a table begin with '|'.
 */
#include "gpu/device/devctx.h"
#include "gpu/on-gpu/dev.h"
#include "util/tap.h"

#define WINS	2
#define SIGNALS 4
#define WAIT_S	30.0

/* ---- two ranks ---- */

struct net;

struct rank {
	struct net *net;
	struct weft_dev_ctx ctx;
	struct proxy_ring ring;
	struct devctx_words words;
	struct proxy *proxy;
	uint8_t *ready;
	void *pinned, *local;
	char *base[WINS];
	uint64_t token[2 * PROXY_BATCH_MAX]; /* that have completed */
	size_t tokens;
};

struct net {
	struct rank rank[2];
	size_t len;		  /* of a window */
	bool copies;		  /* else operations only complete */
	struct weft_dev_ctx *ctx; /* of the device: [2] */
	struct weft_dev_win *win; /* [2][WINS] */
	struct weft_dev_part *part;
	int *bad; /* pinned: [2] */
};

/* The transport: both ends are here. */
static int post(void *arg, const struct weft_dev_op *op, uint64_t token, bool more)
{
	struct rank *r = arg, *peer = &r->net->rank[op->peer];
	uint64_t *word;

	(void)more;
	if (r->tokens == sizeof(r->token) / sizeof(r->token[0]))
		return -11;
	r->token[r->tokens++] = token;
	if (!r->net->copies)
		return 0;
	if (op->kind == WEFT_DEV_PUT) {
		memcpy(peer->base[op->dst_win] + op->dst_off,
		       r->base[op->src_win] + op->src_off, op->bytes);
	} else if (op->kind == WEFT_DEV_PUT_VALUE) {
		memcpy(peer->base[op->dst_win] + op->dst_off, &op->value, op->bytes);
	} else if (op->kind == WEFT_DEV_GET) {
		memcpy(r->base[op->dst_win] + op->dst_off,
		       peer->base[op->src_win] + op->src_off, op->bytes);
	} else {
		word = &peer->words.signal_cpu[op->signal];
		__atomic_store_n(word, *word + op->add, __ATOMIC_RELEASE);
	}
	return 0;
}

static size_t poll_all(void *arg, struct proxy_done *done, size_t most)
{
	struct rank *r = arg;
	const size_t n = r->tokens < most ? r->tokens : most;

	for (size_t i = 0; i < n; i++)
		done[i] = (struct proxy_done){.token = r->token[--r->tokens]};
	return n;
}

static void upload(struct net *net, bool direct)
{
	for (int a = 0; a < 2; a++) {
		struct rank *r = &net->rank[a];
		uint64_t *signals[2] = {direct || a == 0 ? net->rank[0].ctx.signal : NULL,
					direct || a == 1 ? net->rank[1].ctx.signal
							 : NULL};

		dev_copy((void *)(uintptr_t)r->ctx.peer_signal, signals, sizeof(signals));
		dev_copy(&net->ctx[a], &r->ctx, sizeof(r->ctx));
		for (int w = 0; w < WINS; w++) {
			struct weft_dev_part *part = &net->part[(a * WINS + w) * 2];
			const struct weft_dev_part parts[2] = {
				{net->rank[0].base[w], net->len},
				{net->rank[1].base[w], net->len}};
			const struct weft_dev_win win = {.id = (uint32_t)w,
							 .base = r->base[w],
							 .len = net->len,
							 .part = part};

			dev_copy(part, parts, sizeof(parts));
			dev_copy(&net->win[a * WINS + w], &win, sizeof(win));
		}
	}
}

static struct net *net_open(size_t len, uint64_t depth, bool direct, uint32_t batch)
{
	static const struct proxy_transport transport = {PROXY_ORDERED, post, NULL,
							 poll_all};
	struct net *net = calloc(1, sizeof(*net));

	if (!net)
		tap_bail("out of memory");
	net->len = len;
	net->copies = true;
	net->ctx = dev_alloc(2 * sizeof(*net->ctx));
	net->win = dev_alloc(2 * WINS * sizeof(*net->win));
	net->part = dev_alloc(2 * WINS * 2 * sizeof(*net->part));
	net->bad = dev_pinned(4096);
	for (uint32_t a = 0; a < 2; a++) {
		struct rank *r = &net->rank[a];
		const struct devctx_shape shape = {a, 2, SIGNALS, SIGNALS, WINS, depth};
		struct proxy_opts opts = {&transport, r, &r->ring, 1, NULL, batch};

		r->net = net;
		r->pinned = dev_pinned(devctx_pinned_len(&shape));
		r->local = dev_alloc(devctx_local_len(&shape));
		dev_fill(r->local, 0, devctx_local_len(&shape));
		opts.ready = r->ready = dev_pinned(4096);
		for (int w = 0; w < WINS; w++)
			r->base[w] = direct ? dev_alloc(len) : dev_pinned(len);
		devctx_init(&shape, r->pinned, r->local, r->ready, &r->ctx, &r->ring,
			    &r->words);
		if (depth && proxy_open(&opts, &r->proxy) < 0)
			tap_bail("no proxy");
	}
	upload(net, direct);
	return net;
}

static void net_close(struct net *net)
{
	for (int a = 0; a < 2; a++) {
		struct rank *r = &net->rank[a];

		proxy_close(r->proxy);
		dev_free(r->pinned);
		dev_free(r->local);
		dev_free(r->ready);
		for (int w = 0; w < WINS; w++)
			dev_free(r->base[w]);
	}
	dev_free(net->ctx);
	dev_free(net->win);
	dev_free(net->part);
	dev_free(net->bad);
	free(net);
}

/* Plays the proxies until the kernel has ended; false: it did not, and was given up. */
static bool serve(struct net *net)
{
	const double end = dev_now() + WAIT_S;

	for (uint32_t ticks = 0;; ticks++) {
		for (int a = 0; a < 2; a++) {
			if (net->rank[a].proxy)
				proxy_tick(net->rank[a].proxy);
		}
		if (ticks % 256)
			continue;
		if (dev_idle())
			return true;
		if (dev_now() < end)
			continue;
		for (int a = 0; a < 2; a++)
			__atomic_store_n(net->rank[a].words.state, WEFT_DEV_ABORTED,
					 __ATOMIC_RELEASE);
		dev_sync();
		return false;
	}
}

/* ---- right or wrong ---- */

static void test_calls(bool direct, uint64_t depth, uint32_t rounds)
{
	static const char *const names[] = {"a thread", "a warp", "a block"};
	static const uint32_t threads[] = {1, 32, 256};

	for (uint32_t scope = 0; scope < 3; scope++) {
		struct net *net = net_open(65536, depth, direct, 16);
		void *args[] = {&net->ctx, &net->win, &rounds, &scope, &net->bad};
		bool ended;

		dev_launch(dev_kernel("device_calls"), 2, threads[scope], args);
		ended = serve(net);
		if (!tap_ok(ended && !net->bad[0] && !net->bad[1],
			    "every call %s, by %s a rank, a ring of %llu",
			    direct ? "directly" : "by the CPU", names[scope],
			    (unsigned long long)depth))
			tap_diag("rank 0 stopped at step %d, rank 1 at %d; %s",
				 net->bad[0], net->bad[1],
				 net->rank[0].proxy ? proxy_why(net->rank[0].proxy, 0)
						    : "");
		net_close(net);
	}
}

/* A kernel that waits for what nobody sends ends when the context is given up. */
static void test_abort(void)
{
	struct net *net = net_open(65536, 16, false, 16);
	uint32_t rounds = 1;
	uint64_t bytes = 8, *ns = dev_pinned(4096);
	void *args[] = {&net->ctx, &net->win, &rounds, &bytes, &ns, &net->bad};
	double start;

	dev_launch(dev_kernel("device_pingpong"), 2, 1, args);
	for (start = dev_now(); dev_now() < start + 0.01;)
		;
	start = dev_now();
	proxy_abort(net->rank[0].proxy, 0, WEFT_DEV_ABORTED);
	proxy_abort(net->rank[1].proxy, 0, WEFT_DEV_ABORTED);
	dev_sync();
	tap_ok(net->bad[0] == WEFT_DEV_ABORTED && net->bad[1] == WEFT_DEV_ABORTED,
	       "kernels that wait end when the context is given up (%.0f us)",
	       (dev_now() - start) * 1e6);
	net_close(net);
	dev_free(ns);
}

/* ---- figures ---- */

static void latency(bool direct, uint64_t bytes, uint32_t rounds)
{
	struct net *net = net_open(65536, 64, direct, 16);
	uint64_t *ns = dev_pinned(rounds * sizeof(*ns));
	void *args[] = {&net->ctx, &net->win, &rounds, &bytes, &ns, &net->bad};
	double *v = calloc(rounds, sizeof(*v));
	char what[96], got[64];

	dev_launch(dev_kernel("device_pingpong"), 2, 1, args);
	if (!v || !serve(net) || net->bad[0] || net->bad[1]) {
		tap_ok(false, "%llu bytes and a signal there and back",
		       (unsigned long long)bytes);
		return;
	}
	for (uint32_t i = 0; i < rounds; i++)
		v[i] = (double)ns[i] / 2e3;
	snprintf(what, sizeof(what), "put %llu B to signal seen, %s",
		 (unsigned long long)bytes, direct ? "direct, one GPU" : "by the CPU");
	snprintf(got, sizeof(got), "%.2f us, p99 %.2f", dev_percentile(v, rounds, 0.5),
		 dev_percentile(v, rounds, 0.99));
	dev_row(what, got, "", direct ? "" : "half a round trip");
	net_close(net);
	dev_free(ns);
	free(v);
}

static double pour(uint32_t batch, uint32_t blocks, uint32_t threads, uint32_t each)
{
	struct net *net = net_open(4096, 4096, false, batch);
	void *args[] = {&net->ctx, &net->win, &each, &net->bad};
	const uint64_t all = (uint64_t)blocks * threads * each;
	struct proxy_stats stats;
	double start = 0, s = 0;

	net->copies = false;
	dev_launch(dev_kernel("device_pour"), blocks, threads, args);
	for (uint64_t last = 0; last < all && !net->bad[0];) {
		proxy_tick(net->rank[0].proxy);
		last = *net->rank[0].ring.done;
		if (last && start == 0)
			start = dev_now();
	}
	s = dev_now() - start;
	dev_sync();
	proxy_stats(net->rank[0].proxy, &stats);
	tap_diag("batch %u, %u x %u threads: %llu descriptors in %.1f a batch", batch,
		 blocks, threads, (unsigned long long)stats.taken,
		 (double)stats.taken / (double)stats.batches);
	if (net->bad[0])
		tap_ok(false, "descriptors by %u threads: status %d", blocks * threads,
		       net->bad[0]);
	net_close(net);
	return (double)all / s;
}

static void drain_rates(bool quick)
{
	static const uint32_t batches[] = {1, 4, 16, 64};
	double best = 0;

	for (int i = 0; i < 4; i++) {
		char what[96], got[64];
		const double a = pour(batches[i], 8, 64, quick ? 500 : 4000);
		const double b = pour(batches[i], 64, 128, quick ? 32 : 250);

		snprintf(what, sizeof(what), "one CPU thread drains, GPU fills, batch %u",
			 batches[i]);
		snprintf(got, sizeof(got), "%.2f and %.2f M/s", a * 1e-6, b * 1e-6);
		dev_row(what, got, "512 and 8192 threads", "5 M/s");
		best = a > best ? a : best;
		best = b > best ? b : best;
	}
	tap_ok(best >= 5e6, "one thread drains 5 million descriptors a second (%.2f)",
	       best * 1e-6);
}

static void stream(uint64_t bytes, uint32_t scope, uint32_t blocks, uint32_t threads,
		   uint32_t rounds)
{
	struct net *net = net_open(512ul << 20, 0, true, 16);
	void *args[] = {&net->ctx, &net->win, &bytes, &rounds, &scope, &net->bad};
	const double puts = (double)rounds * blocks *
			    (scope == WEFT_DEV_BLOCK  ? 1
			     : scope == WEFT_DEV_WARP ? threads / 32.0
						      : threads);
	char what[96], got[64];
	double s;

	dev_launch(dev_kernel("device_stream"), blocks, threads, args);
	dev_sync();
	dev_timer_start();
	dev_launch(dev_kernel("device_stream"), blocks, threads, args);
	s = dev_timer_stop();
	snprintf(what, sizeof(what),
		 "direct puts with signal, %llu B, %u x %u threads, by %s",
		 (unsigned long long)bytes, blocks, threads,
		 scope == WEFT_DEV_BLOCK ? "block" : "warp");
	snprintf(got, sizeof(got), "%.1f M/s, %.0f GB/s", puts / s * 1e-6,
		 puts * (double)bytes / s * 1e-9);
	dev_row(what, got, "", "");
	tap_ok(net->bad[0] == 0, "%s", what);
	net_close(net);
}

int main(int argc, char **argv)
{
	const bool quick = argc > 2 && strcmp(argv[2], "--quick") == 0;
	struct dev dev;

	if (argc < 2)
		tap_bail("usage: device FATBIN [--quick]");
	dev_open(&dev, argv[1]);
	test_calls(true, 0, 20);
	test_calls(true, 16, 20);
	test_calls(false, 16, 20);
	test_calls(false, 2, 20);
	test_abort();
	if (argc > 2 && strcmp(argv[2], "--only-calls") == 0)
		return tap_done();
	latency(true, 8, quick ? 1000 : 5000);
	latency(false, 8, quick ? 1000 : 5000);
	latency(false, 4096, quick ? 1000 : 5000);
	drain_rates(quick);
	stream(8, WEFT_DEV_WARP, (uint32_t)dev.processors, 256, 200);
	stream(14336, WEFT_DEV_WARP, (uint32_t)dev.processors, 512, 50);
	stream(1 << 20, WEFT_DEV_BLOCK, (uint32_t)dev.processors * 2, 512, 10);
	return tap_done();
}
