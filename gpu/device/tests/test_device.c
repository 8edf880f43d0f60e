/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device-side calls with CPU threads in the place of kernels, over a transport that
 * delays and reorders whatever it may (fake.h): the producers run the sources that
 * kernels run. WEFT_SEED repeats a run.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "gpu/device/tests/fake.h"
#include "util/tap.h"

#define LIMIT	60000000000u /* ns, for anything that must come */
#define THREADS 3
#define BLOCK	256 /* bytes of one message */

static uint64_t seed;

/* ---- descriptors ---- */

static const struct desc_limits limits = {4, 2, 8, 8};

static void test_format(void)
{
	const struct weft_dev_op op = {WEFT_DEV_PUT, 3, 1, 0, 0x123456789a,  0x42,
				       4096,	     0, 7, 5, 1ull << 63 | 9};
	const uint64_t want[] = {0x7019 | 7ull << 29 | 1,
				 0x123456789aull << 1 | 1,
				 0x85,
				 0x2001,
				 (3ull | 1ull << 31) << 1 | 1,
				 19,
				 0x11,
				 1};
	struct weft_dev_op got, value = op;
	struct weft_dev_desc d = {.w = {0}};
	char why[PROXY_WHY];

	/* version 1, kind 1, top of add, counter 5 + 1, signal 7 */
	weft_dev_pack(d.w, &op, 8, 1);
	tap_is_int((int64_t)d.w[0],
		   (int64_t)((1 | 1 << 3 | 1 << 7 | 6ull << 8 | 7ull << 28) << 1 | 1),
		   "word 0 of a put, byte for byte");
	for (int i = 1; i < WEFT_DEV_DESC_WORDS; i++)
		tap_ok(d.w[i] == want[i], "word %d", i);
	tap_ok(desc_read(&d, 8, &limits, &got, why, sizeof(why)) == 0 &&
		       memcmp(&got, &op, sizeof(op)) == 0,
	       "what was packed is read");
	value.kind = WEFT_DEV_PUT_VALUE;
	value.src_off = 0;
	value.bytes = 8;
	value.value = 0xfedcba9876543210u;
	weft_dev_pack(d.w, &value, 8, 0);
	tap_ok(desc_read(&d, 8, &limits, &got, why, sizeof(why)) == 0 &&
		       memcmp(&got, &value, sizeof(value)) == 0,
	       "a value of 64 bits too");
}

static void refused(struct weft_dev_op op, const char *text)
{
	struct weft_dev_desc d;
	char why[PROXY_WHY] = "";
	int ret;

	weft_dev_pack(d.w, &op, 8, 1);
	ret = desc_read(&d, 8, &limits, &op, why, sizeof(why));
	if (!tap_ok(ret == -EPROTO && strstr(why, text), "refused: %s", text))
		tap_diag("returned %d: %s", ret, why);
}

static void test_validator(void)
{
	const struct weft_dev_op good = {WEFT_DEV_PUT, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1};
	struct weft_dev_op op = good;
	struct weft_dev_desc d;
	char why[PROXY_WHY];

	op.kind = 0;
	refused(op, "its kind");
	op.kind = WEFT_DEV_KINDS;
	refused(op, "its kind");
	op = good, op.peer = 4;
	refused(op, "its peer");
	op = good, op.dst_win = 2;
	refused(op, "its target window");
	op = good, op.src_win = 2;
	refused(op, "its source window");
	op = good, op.signal = 8;
	refused(op, "its signal");
	op = good, op.counter = 8;
	refused(op, "its counter");
	op = good, op.kind = WEFT_DEV_PUT_VALUE, op.bytes = 9;
	refused(op, "its length");
	weft_dev_pack(d.w, &good, 8, 1);
	tap_ok(desc_read(&d, 9, &limits, &op, why, sizeof(why)) == -EPROTO &&
		       strstr(why, "says that it is 8"),
	       "refused: another number");
	d.w[7] |= 2;
	tap_ok(desc_read(&d, 8, &limits, &op, why, sizeof(why)) == -EPROTO &&
		       strstr(why, "unknown bits"),
	       "refused: unknown bits");
	weft_dev_pack(d.w, &good, 8, 1);
	d.w[0] ^= 4;
	tap_ok(desc_read(&d, 8, &limits, &op, why, sizeof(why)) == -EPROTO &&
		       strstr(why, "version 3"),
	       "refused: another version");
}

/* Each set of words that have arrived but all of them is none. */
static void test_torn(void)
{
	const struct weft_dev_op op = {WEFT_DEV_PUT, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1};
	struct weft_dev_desc d = {.w = {0}}, old = d, slot, copy;
	int taken = 0, whole = 0;

	for (uint64_t index = 0; index < 8; index += 4) {
		weft_dev_pack(d.w, &op, index, ~(index / 4) & 1);
		weft_dev_pack(old.w, &op, index - 4, ~((index - 4) / 4) & 1);
		for (int set = 0; set < 256; set++) {
			for (int i = 0; i < 8; i++)
				slot.w[i] = set >> i & 1 ? d.w[i] : old.w[i];
			if (set == 255)
				whole += desc_take(&slot, index, 4, &copy);
			else
				taken += desc_take(&slot, index, 4, &copy);
		}
	}
	tap_is_int(taken, 0, "a descriptor of which words are missing is not taken");
	tap_is_int(whole, 2, "a whole one is");
}

/* ---- the CPU's thread ---- */

struct driver {
	struct fake *net;
	pthread_t thread;
	uint64_t stop; /* atomic */
};

static void *drive(void *arg)
{
	struct driver *d = arg;

	while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE)) {
		if (fake_tick(d->net) == 0)
			sched_yield();
	}
	return NULL;
}

static void driver_start(struct driver *d, struct fake *net)
{
	*d = (struct driver){.net = net};
	if (pthread_create(&d->thread, NULL, drive, d))
		tap_bail("no thread");
}

static void driver_stop(struct driver *d)
{
	__atomic_store_n(&d->stop, 1, __ATOMIC_RELEASE);
	pthread_join(d->thread, NULL);
}

/* ---- messages: data, then a signal, and answers ---- */

struct sender {
	struct fake *net;
	uint32_t rank, peer, ring, number, count;
	pthread_t thread;
	uint64_t rng;
	int status;
	uint64_t wrong;
};

/* Where message k of sender `number` lies in a window: its own place, used again when the
 * receiver has answered. */
static uint64_t place(const struct sender *s)
{
	return s->number * 2ull * BLOCK;
}

static uint8_t byte_of(const struct sender *s, uint32_t k, uint32_t i)
{
	return (uint8_t)(k * 31 + i * 7 + s->number);
}

/* Sends a block in pieces of random sizes by random calls, and one signal at the end. */
static int send_block(struct sender *s, uint32_t k)
{
	struct fake_rank *r = &s->net->rank[s->rank];
	const struct weft_dev_ctx *ctx = &r->ctx[s->ring];
	struct weft_dev_action action = weft_dev_none();
	uint8_t *src = (uint8_t *)r->win[0].base + place(s);
	uint32_t at = 0;
	int status = WEFT_DEV_OK;

	for (uint32_t i = 0; i < BLOCK; i++)
		src[i] = byte_of(s, k, i);
	while (at < BLOCK && status == WEFT_DEV_OK) {
		uint32_t n = 1 + (uint32_t)(fake_random(&s->rng) % BLOCK);
		uint64_t value = 0;

		n = n > BLOCK - at ? BLOCK - at : n;
		action.add = at + n == BLOCK && k % 2 ? 1 : 0;
		action.signal = s->number;
		if (n > 8 || fake_random(&s->rng) % 2) {
			status = weft_dev_put(ctx, s->peer, &r->win[1], place(s) + at,
					      &r->win[0], place(s) + at, n, action, LIMIT,
					      WEFT_DEV_THREAD);
		} else {
			memcpy(&value, src + at, n);
			status = weft_dev_put_value(ctx, s->peer, &r->win[1],
						    place(s) + at, value, n, action,
						    LIMIT, WEFT_DEV_THREAD);
		}
		at += n;
	}
	if (status == WEFT_DEV_OK && k % 2 == 0)
		status = weft_dev_signal(ctx, s->peer, s->number, 1, LIMIT,
					 WEFT_DEV_THREAD);
	return status;
}

/* The other end: all of a block is there when its signal is. */
static int receive_block(struct sender *s, uint32_t k)
{
	struct fake_rank *p = &s->net->rank[s->peer];
	const struct weft_dev_ctx *ctx = &p->ctx[s->ring];
	const uint8_t *got = (uint8_t *)p->win[1].base + place(s);
	int status = weft_dev_signal_wait(ctx, s->number, k + 1, LIMIT, WEFT_DEV_THREAD);

	for (uint32_t i = 0; status == WEFT_DEV_OK && i < BLOCK; i++)
		s->wrong += got[i] != byte_of(s, k, i);
	return status;
}

/* Plays both ends, as one kernel may. */
static void *play(void *arg)
{
	struct sender *s = arg;

	for (uint32_t k = 0; k < s->count && s->status == WEFT_DEV_OK; k++) {
		s->status = send_block(s, k);
		if (s->status == WEFT_DEV_OK)
			s->status = receive_block(s, k);
		if (s->status == WEFT_DEV_OK) /* the source is written again */
			s->status = weft_dev_flush(&s->net->rank[s->rank].ctx[s->ring],
						   LIMIT, WEFT_DEV_THREAD);
	}
	return NULL;
}

static void messages(struct fake_shape shape, uint32_t count, const char *what)
{
	struct sender s[THREADS];
	struct driver driver;
	struct fake *net;
	uint64_t wrong = 0;
	int bad = 0;

	shape.win_len = 2ul * BLOCK * THREADS;
	shape.signals = THREADS;
	shape.seed = seed;
	net = fake_open(&shape);
	driver_start(&driver, net);
	for (uint32_t i = 0; i < THREADS; i++) {
		s[i] = (struct sender){.net = net,
				       .rank = i % shape.ranks,
				       .peer = (i + 1) % shape.ranks,
				       .ring = i % shape.rings,
				       .number = i,
				       .count = count,
				       .rng = seed + i};
		if (pthread_create(&s[i].thread, NULL, play, &s[i]))
			tap_bail("no thread");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(s[i].thread, NULL);
		wrong += s[i].wrong;
		bad += s[i].status != WEFT_DEV_OK;
	}
	driver_stop(&driver);
	if (!tap_ok(wrong == 0 && bad == 0, "%s", what))
		tap_diag("%llu bytes wrong, %d senders ended early (%s)",
			 (unsigned long long)wrong, bad,
			 proxy_why(net->rank[0].proxy, 0));
	fake_close(net);
}

static void test_messages(void)
{
	const uint32_t n = tap_short() ? 150 : 1000;
	struct fake_shape s = {.ranks = 2, .rings = 1, .batch = 16, .depth = 64};

	messages(s, n, "signals behind data, over a transport without order or fences");
	s.caps = PROXY_FENCE;
	messages(s, n, "with fences");
	s.caps = PROXY_ORDERED;
	messages(s, n, "with order");
	s.caps = 0, s.depth = 2, s.batch = 1;
	messages(s, n, "a ring of two, one at a time");
	s.caps = PROXY_FENCE, s.depth = 4, s.batch = 64, s.rings = 3, s.ranks = 3;
	messages(s, n, "several rings and ranks");
	s.start = (1ull << 48) - 5;
	messages(s, n, "where the transport's tokens wrap");
	s.start = (1ull << 32) - 3, s.caps = 0;
	messages(s, n, "where 32 bits would wrap");
	s.start = (1ull << 63) - 3, s.caps = PROXY_ORDERED;
	messages(s, n, "where 63 bits wrap");
	s.start = 0 - 8ull;
	messages(s, n, "where 64 bits wrap");
	s.direct = true;
	messages(s, n, "peers in reach");
}

/* ---- all threads into one ring, as fast as they can ---- */

static void *pour(void *arg)
{
	struct sender *s = arg;
	struct fake_rank *r = &s->net->rank[0];
	struct weft_dev_action action = {1, 0, s->number};

	for (uint32_t k = 0; k < s->count && s->status == WEFT_DEV_OK; k++)
		s->status = weft_dev_put_value(&r->ctx[0], 1, &r->win[0],
					       8 * ((uint64_t)s->number * s->count + k),
					       s->number * 1000000ull + k, 8, action,
					       LIMIT, WEFT_DEV_THREAD);
	return NULL;
}

static void test_pour(void)
{
	const uint32_t n = tap_short() ? 2000 : 20000;
	const struct fake_shape shape = {.ranks = 2,
					 .rings = 1,
					 .batch = 16,
					 .depth = 16,
					 .win_len = 8ul * n * THREADS,
					 .signals = 1,
					 .counters = THREADS,
					 .caps = PROXY_FENCE,
					 .seed = seed};
	struct fake *net = fake_open(&shape);
	const uint64_t *got = net->rank[1].win[0].base;
	struct sender s[THREADS];
	struct proxy_stats stats;
	struct driver driver;
	bool good = true;

	net->eager = true;
	driver_start(&driver, net);
	for (uint32_t i = 0; i < THREADS; i++) {
		s[i] = (struct sender){.net = net, .number = i, .count = n};
		if (pthread_create(&s[i].thread, NULL, pour, &s[i]))
			tap_bail("no thread");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(s[i].thread, NULL);
		good = good && s[i].status == WEFT_DEV_OK;
	}
	tap_ok(good, "three threads fill one ring");
	tap_is_int(weft_dev_signal_wait(&net->rank[1].ctx[0], 0, (uint64_t)n * THREADS,
					LIMIT, WEFT_DEV_THREAD),
		   WEFT_DEV_OK, "each one's signal comes");
	tap_is_int(weft_dev_flush(&net->rank[0].ctx[0], LIMIT, WEFT_DEV_THREAD),
		   WEFT_DEV_OK, "and all of it is done");
	driver_stop(&driver);
	tap_is_int((int64_t)weft_dev_signal_read(&net->rank[1].ctx[0], 0),
		   (int64_t)n * THREADS, "once");
	for (uint32_t i = 0; i < THREADS; i++) {
		good = good && weft_dev_counter_read(&net->rank[0].ctx[0], i) == n;
		for (uint32_t k = 0; k < n; k++)
			good = good && got[(size_t)i * n + k] == i * 1000000ull + k;
	}
	tap_ok(good, "with its value, and counted");
	proxy_stats(net->rank[0].proxy, &stats);
	tap_ok(stats.taken == (uint64_t)n * THREADS && stats.fences <= stats.batches,
	       "a fence a batch at most: %llu descriptors, %llu batches, %llu fences",
	       (unsigned long long)stats.taken, (unsigned long long)stats.batches,
	       (unsigned long long)stats.fences);
	tap_ok(proxy_idle(net->rank[0].proxy), "nothing is left");
	fake_close(net);
}

/* ---- what goes wrong ---- */

static struct fake *two(uint64_t depth)
{
	const struct fake_shape shape = {.ranks = 2,
					 .rings = 1,
					 .batch = 16,
					 .depth = depth,
					 .win_len = 4096,
					 .signals = 4,
					 .counters = 4,
					 .seed = seed};

	return fake_open(&shape);
}

static int put8(struct fake *net, uint64_t timeout)
{
	struct fake_rank *r = &net->rank[0];

	return weft_dev_put(&r->ctx[0], 1, &r->win[0], 0, &r->win[0], 0, 8,
			    weft_dev_inc(1), timeout, WEFT_DEV_THREAD);
}

static void drain(struct fake *net)
{
	for (int i = 0; i < 1000000 && !(fake_tick(net) == 0 && i > 200 &&
					 proxy_idle(net->rank[0].proxy));
	     i++)
		;
}

static void test_full(void)
{
	struct fake *net = two(4);
	int status = WEFT_DEV_OK;

	for (int i = 0; i < 4; i++)
		status |= put8(net, 0);
	tap_is_int(status, WEFT_DEV_OK, "as many as it has slots");
	tap_is_int(put8(net, 1000000), WEFT_DEV_TIMEOUT, "a full ring: TIMEOUT");
	tap_is_int((int64_t)*net->rank[0].ctx[0].ring.head, 4, "and nothing was claimed");
	tap_is_int(weft_dev_flush(&net->rank[0].ctx[0], 1000000, WEFT_DEV_THREAD),
		   WEFT_DEV_TIMEOUT, "a flush of what nobody drains too");
	drain(net);
	tap_is_int(put8(net, 0), WEFT_DEV_OK, "drained: there is room");
	drain(net);
	tap_is_int((int64_t)weft_dev_signal_read(&net->rank[1].ctx[0], 1), 5,
		   "all have come");
	fake_close(net);
}

static void *wait_signal(void *arg)
{
	struct sender *s = arg;

	s->status = weft_dev_signal_wait(&s->net->rank[0].ctx[0], 0, 1, WEFT_DEV_FOREVER,
					 WEFT_DEV_THREAD);
	return NULL;
}

static void test_abort(void)
{
	struct fake *net = two(4);
	struct sender s = {.net = net};

	if (pthread_create(&s.thread, NULL, wait_signal, &s))
		tap_bail("no thread");
	proxy_abort(net->rank[0].proxy, 0, WEFT_DEV_ABORTED);
	pthread_join(s.thread, NULL);
	tap_is_int(s.status, WEFT_DEV_ABORTED,
		   "a wait for ever ends when it is given up");
	tap_is_int(put8(net, WEFT_DEV_FOREVER), WEFT_DEV_ABORTED, "so does a put");
	tap_is_int(
		weft_dev_flush(&net->rank[0].ctx[0], WEFT_DEV_FOREVER, WEFT_DEV_THREAD),
		WEFT_DEV_OK, "nothing is under way");
	tap_is_str(proxy_why(net->rank[0].proxy, 0), "given up by the caller", "why");
	fake_close(net);
}

static void test_errors(void)
{
	struct fake *net = two(4);
	struct fake_rank *r = &net->rank[0];

	r->fail_at = 2;
	put8(net, 0);
	put8(net, 0);
	drain(net);
	tap_is_int((int64_t)*r->words[0].state, WEFT_DEV_FAILED,
		   "a put that fails ends the context");
	tap_ok(strstr(proxy_why(r->proxy, 0), strerror(EIO)), "with its reason");
	tap_is_int(weft_dev_flush(&r->ctx[0], WEFT_DEV_FOREVER, WEFT_DEV_THREAD),
		   WEFT_DEV_FAILED, "kernels see it");
	fake_close(net);

	net = two(4);
	r = &net->rank[0];
	for (int i = 0; i < WEFT_DEV_DESC_WORDS; i++)
		r->ring[0].slot[0].w[i] = fake_random(&net->rng) | 1;
	r->ready[0] = 1;
	drain(net);
	tap_is_int((int64_t)*r->words[0].state, WEFT_DEV_FAILED,
		   "noise in the ring ends the context");
	tap_ok(strstr(proxy_why(r->proxy, 0), "descriptor 0"), "with its reason");
	fake_close(net);

	net = two(2);
	r = &net->rank[0];
	*r->ctx[0].ring.stuck = 1;
	drain(net);
	tap_ok(*r->words[0].state == WEFT_DEV_FAILED &&
		       strstr(proxy_why(r->proxy, 0), "no room"),
	       "a slot that nobody fills ends it too");
	fake_close(net);
}

static void test_refusals(void)
{
	struct fake *net = two(4);
	struct fake_rank *r = &net->rank[0];
	const struct weft_dev_ctx *ctx = &r->ctx[0];
	const struct weft_dev_win *w = &r->win[0];
	struct weft_dev_action none = weft_dev_none(), action = none;

	tap_is_int(weft_dev_put(ctx, 2, w, 0, w, 0, 8, none, 0, 0), WEFT_DEV_REFUSED,
		   "refused: no such peer");
	tap_is_int(weft_dev_put(ctx, 1, w, 4090, w, 0, 8, none, 0, 0), WEFT_DEV_REFUSED,
		   "refused: past the target's window");
	tap_is_int(weft_dev_put(ctx, 1, w, 0, w, UINT64_MAX, 8, none, 0, 0),
		   WEFT_DEV_REFUSED, "refused: past the source's");
	tap_is_int(weft_dev_put_value(ctx, 1, w, 0, 1, 9, none, 0, 0), WEFT_DEV_REFUSED,
		   "refused: a value of nine bytes");
	action.add = 1;
	tap_is_int(weft_dev_get(ctx, 1, w, 0, w, 0, 8, action, 0, 0), WEFT_DEV_REFUSED,
		   "refused: a get with a signal");
	action.signal = 4;
	tap_is_int(weft_dev_put(ctx, 1, w, 0, w, 0, 8, action, 0, 0), WEFT_DEV_REFUSED,
		   "refused: no such signal");
	action = none, action.counter = 4;
	tap_is_int(weft_dev_put(ctx, 1, w, 0, w, 0, 8, action, 0, 0), WEFT_DEV_REFUSED,
		   "refused: no such counter");
	tap_is_int(weft_dev_counter_wait(ctx, 4, 1, 0, 0), WEFT_DEV_REFUSED,
		   "refused: waiting for no such counter");
	tap_is_int((int64_t)*ctx->ring.head, 0, "none of them was put in");
	tap_is_int(weft_dev_signal_wait(ctx, 0, 1, 1000, 0), WEFT_DEV_TIMEOUT,
		   "a wait ends with its time");
	fake_close(net);
}

/* ---- gets, counters, resets, barriers ---- */

static void test_get(void)
{
	struct fake *net = two(4);
	struct fake_rank *r = &net->rank[0];
	const struct weft_dev_action action = {0, 0, 2};

	memcpy(net->rank[1].win[1].base, "what there is", 14);
	tap_is_int(weft_dev_get(&r->ctx[0], 1, &r->win[0], 64, &r->win[1], 0, 14, action,
				0, WEFT_DEV_THREAD),
		   WEFT_DEV_OK, "a get");
	drain(net);
	tap_is_int(weft_dev_counter_wait(&r->ctx[0], 2, 1, 0, 0), WEFT_DEV_OK,
		   "its counter says when it is done");
	tap_is_str((char *)r->win[0].base + 64, "what there is", "and it is there");
	put8(net, 0);
	drain(net);
	tap_is_int((int64_t)weft_dev_signal_read(&net->rank[1].ctx[0], 1), 1, "a signal");
	weft_dev_signal_reset(&net->rank[1].ctx[0], 1);
	tap_is_int((int64_t)weft_dev_signal_read(&net->rank[1].ctx[0], 1), 0,
		   "counts from 0 after a reset");
	put8(net, 0);
	drain(net);
	tap_is_int(weft_dev_signal_wait(&net->rank[1].ctx[0], 1, 1, 0, 0), WEFT_DEV_OK,
		   "and from there");
	fake_close(net);
}

static void *barriers(void *arg)
{
	struct sender *s = arg;
	struct fake_rank *r = &s->net->rank[s->rank];
	const struct weft_dev_ctx *ctx = &r->ctx[0];
	uint64_t *mine = r->win[0].base, *theirs = r->win[1].base;

	for (uint32_t k = 1; k <= s->count && s->status == WEFT_DEV_OK; k++) {
		for (uint32_t p = 0; p < ctx->size && s->status == WEFT_DEV_OK; p++) {
			mine[p] = k * 10 + s->rank;
			s->status = weft_dev_put(ctx, p, &r->win[1], 8ull * s->rank,
						 &r->win[0], 8ull * p, 8, weft_dev_none(),
						 LIMIT, WEFT_DEV_THREAD);
		}
		if (s->status == WEFT_DEV_OK)
			s->status = weft_dev_barrier(ctx, LIMIT, WEFT_DEV_THREAD);
		for (uint32_t p = 0; p < ctx->size; p++)
			s->wrong += theirs[p] != k * 10 + p;
		if (s->status == WEFT_DEV_OK) /* all have read */
			s->status = weft_dev_barrier(ctx, LIMIT, WEFT_DEV_THREAD);
		if (s->status == WEFT_DEV_OK)
			s->status = weft_dev_flush(ctx, LIMIT, WEFT_DEV_THREAD);
	}
	return NULL;
}

static void test_barrier(bool direct, uint32_t caps, const char *what)
{
	const struct fake_shape shape = {.ranks = THREADS,
					 .rings = 1,
					 .batch = 16,
					 .depth = 8,
					 .win_len = 4096,
					 .caps = caps,
					 .direct = direct,
					 .seed = seed};
	struct fake *net = fake_open(&shape);
	struct sender s[THREADS];
	struct driver driver;
	bool good = true;

	driver_start(&driver, net);
	for (uint32_t i = 0; i < THREADS; i++) {
		s[i] = (struct sender){
			.net = net, .rank = i, .count = tap_short() ? 50 : 400};
		if (pthread_create(&s[i].thread, NULL, barriers, &s[i]))
			tap_bail("no thread");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(s[i].thread, NULL);
		good = good && s[i].status == WEFT_DEV_OK && s[i].wrong == 0;
	}
	driver_stop(&driver);
	tap_ok(good, "puts before a barrier are seen behind it: %s", what);
	fake_close(net);
}

int main(void)
{
	const char *text = getenv("WEFT_SEED");

	seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	tap_diag("WEFT_SEED=%llu", (unsigned long long)seed);
	test_format();
	test_validator();
	test_torn();
	test_full();
	test_abort();
	test_errors();
	test_refusals();
	test_get();
	test_messages();
	test_pour();
	test_barrier(false, 0, "by the CPU");
	test_barrier(false, PROXY_FENCE, "by the CPU, with fences");
	test_barrier(true, 0, "in reach");
	return tap_done();
}
