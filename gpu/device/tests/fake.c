/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake.h. */
#include "config.h"

#include "gpu/device/tests/fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/tap.h"

uint64_t fake_random(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* ---- the transport ---- */

static int post(void *arg, const struct weft_dev_op *op, uint64_t token, bool more)
{
	struct fake_rank *r = arg;

	(void)more;
	if (r->ops == FAKE_OPS || (!r->net->eager && fake_random(&r->net->rng) % 8 == 0))
		return -EAGAIN;
	r->op[r->ops++] = (struct fake_op){*op, token, r->fences[op->peer]};
	return 0;
}

static int fence(void *arg, uint32_t peer)
{
	struct fake_rank *r = arg;

	r->fences[peer]++;
	return 0;
}

static void apply(struct fake_rank *r, const struct fake_op *o)
{
	const struct weft_dev_op *op = &o->op;
	struct fake_rank *peer = &r->net->rank[op->peer];
	uint64_t *word;

	switch (op->kind) {
	case WEFT_DEV_PUT:
		memcpy((char *)peer->win[op->dst_win].base + op->dst_off,
		       (char *)r->win[op->src_win].base + op->src_off, op->bytes);
		break;
	case WEFT_DEV_PUT_VALUE:
		memcpy((char *)peer->win[op->dst_win].base + op->dst_off, &op->value,
		       op->bytes);
		break;
	case WEFT_DEV_GET:
		memcpy((char *)r->win[op->dst_win].base + op->dst_off,
		       (char *)peer->win[op->src_win].base + op->src_off, op->bytes);
		break;
	default:
		word = &peer->words[o->token >> 48].signal_cpu[op->signal];
		__atomic_store_n(word, *word + op->add, __ATOMIC_RELEASE);
		break;
	}
}

/* Whether number i of those under way may complete before the ones posted earlier. */
static bool may(const struct fake_rank *r, uint32_t i)
{
	const uint32_t caps = r->net->transport.caps;
	const struct fake_op *o = &r->op[i];

	for (uint32_t k = 0; k < i; k++) {
		if (r->op[k].op.peer == o->op.peer &&
		    (caps & PROXY_ORDERED || r->op[k].fence < o->fence))
			return false;
	}
	return true;
}

static size_t poll_some(void *arg, struct proxy_done *done, size_t most)
{
	struct fake_rank *r = arg;
	size_t n = 0;

	while (n < most && r->ops) {
		const bool eager = r->net->eager;
		const uint32_t i =
			eager ? 0 : (uint32_t)(fake_random(&r->net->rng) % r->ops);

		if (!eager && (!may(r, i) || fake_random(&r->net->rng) % 3 == 0))
			break;
		done[n] = (struct proxy_done){.token = r->op[i].token};
		if (++r->posted == (uint64_t)r->fail_at)
			done[n].error = -EIO;
		else
			apply(r, &r->op[i]);
		memmove(&r->op[i], &r->op[i + 1], (--r->ops - i) * sizeof(r->op[0]));
		n++;
	}
	return n;
}

/* ---- ranks ---- */

static void *room(size_t len)
{
	void *p = aligned_alloc(128, (len + 127) / 128 * 128);

	if (!p)
		tap_bail("out of memory");
	memset(p, 0, len);
	return p;
}

static void open_ring(struct fake_rank *r, const struct fake_shape *s, uint32_t i)
{
	const struct devctx_shape shape = {r->rank,	s->ranks,  s->signals,
					   s->counters, FAKE_WINS, s->depth};

	if (devctx_refuse(&shape))
		tap_bail("%s", devctx_refuse(&shape));
	r->pinned[i] = room(devctx_pinned_len(&shape));
	r->local[i] = room(devctx_local_len(&shape));
	devctx_init(&shape, r->pinned[i], r->local[i], &r->ready[i], &r->ctx[i],
		    &r->ring[i], &r->words[i]);
	*r->ctx[i].ring.head = *r->ctx[i].ring.tail_seen = s->start;
	*r->ring[i].tail = *r->ring[i].done = s->start;
	/* A ring that begins later has slots of the round before. */
	for (uint64_t k = 0; k < s->depth; k++) {
		const uint64_t index = s->start + (k - s->start) % s->depth;

		for (int w = 0; w < WEFT_DEV_DESC_WORDS; w++)
			r->ring[i].slot[k].w[w] = (index / s->depth) & 1;
	}
}

static void connect_ranks(struct fake *net, const struct fake_shape *s)
{
	for (uint32_t a = 0; a < s->ranks; a++) {
		struct fake_rank *r = &net->rank[a];

		for (uint32_t i = 0; i < s->rings; i++) {
			uint64_t **to = (uint64_t **)(void *)r->ctx[i].peer_signal;

			for (uint32_t b = 0; b < s->ranks; b++)
				to[b] = a == b || s->direct ? net->rank[b].ctx[i].signal
							    : NULL;
		}
		for (int w = 0; w < FAKE_WINS; w++) {
			for (uint32_t b = 0; b < s->ranks; b++)
				r->part[w][b] = (struct weft_dev_part){
					a == b || s->direct ? net->rank[b].win[w].base
							    : NULL,
					s->win_len};
		}
	}
}

struct fake *fake_open(const struct fake_shape *s)
{
	struct fake *net = room(sizeof(*net));

	net->transport = (struct proxy_transport){s->caps, post, fence, poll_some};
	net->ranks = s->ranks;
	net->rings = s->rings;
	net->rng = s->seed;
	for (uint32_t a = 0; a < s->ranks; a++) {
		struct fake_rank *r = &net->rank[a];
		struct proxy_opts opts = {.transport = &net->transport,
					  .arg = r,
					  .ring = r->ring,
					  .rings = s->rings,
					  .ready = r->ready,
					  .batch = s->batch};

		r->net = net;
		r->rank = a;
		r->op = room(FAKE_OPS * sizeof(*r->op));
		for (int w = 0; w < FAKE_WINS; w++)
			r->win[w] = (struct weft_dev_win){.id = (uint32_t)w,
							  .base = room(s->win_len),
							  .len = s->win_len,
							  .part = r->part[w]};
		for (uint32_t i = 0; i < s->rings; i++)
			open_ring(r, s, i);
		if (proxy_open(&opts, &r->proxy) < 0)
			tap_bail("no proxy");
	}
	connect_ranks(net, s);
	return net;
}

void fake_close(struct fake *net)
{
	for (uint32_t a = 0; a < net->ranks; a++) {
		struct fake_rank *r = &net->rank[a];

		proxy_close(r->proxy);
		for (uint32_t i = 0; i < net->rings; i++) {
			free(r->pinned[i]);
			free(r->local[i]);
		}
		for (int w = 0; w < FAKE_WINS; w++)
			free(r->win[w].base);
		free(r->op);
	}
	free(net);
}

size_t fake_tick(struct fake *net)
{
	size_t work = 0;

	for (uint32_t a = 0; a < net->ranks; a++)
		work += proxy_tick(net->rank[a].proxy);
	return work;
}
