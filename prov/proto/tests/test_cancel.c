/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancelled receives: always the oldest with that context, against a model, and without
 * looking through all that are posted for each. test_cancel SEED repeats one history.
 */
#include "config.h"

#include <rdma/fabric.h>

#include "prov/proto/ep.h"
#include "util/tap.h"

#define MOST 3000

static struct receiver *open_one(uint32_t size)
{
	struct receiver *rcv;

	if (receiver_open(size, &rcv)) {
		tap_bail("no memory");
	}
	return rcv;
}

static bool post(struct receiver *rcv, uint64_t tag, uintptr_t context)
{
	static char byte;
	const struct iovec iov = {&byte, 1};
	const struct proto_recv r = {.iov = &iov,
				     .count = 1,
				     .tag = tag,
				     .context = (void *)context,
				     .flags = PROTO_TAGGED | PROTO_REPORT};

	return receiver_post(rcv, &r) == 0;
}

static struct match_recv *posted(struct receiver *rcv, uint64_t tag)
{
	return match_recv_find(&rcv->match[PROTO_TAGGED], NULL, tag);
}

/* ---- a model: what is posted, in order */

struct model {
	struct receiver *rcv;
	struct {
		uint64_t tag; /* each another one */
		uintptr_t context;
	} at[MOST];
	uint32_t count;
	uint64_t tags, random;
	bool good;
};

static uint32_t chance(struct model *m, uint32_t of)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (uint32_t)(m->random >> 32) % of;
}

static void forget(struct model *m, uint32_t i)
{
	m->good &= !posted(m->rcv, m->at[i].tag);
	m->count--;
	memmove(&m->at[i], &m->at[i + 1], (m->count - i) * sizeof(m->at[0]));
}

static void model_post(struct model *m, uint32_t contexts)
{
	if (m->count < MOST) {
		m->at[m->count].tag = ++m->tags;
		m->at[m->count].context = 64 * (uintptr_t)chance(m, contexts);
		m->good &= post(m->rcv, m->tags, m->at[m->count].context);
		m->count++;
	}
}

static void model_cancel(struct model *m, uint32_t contexts)
{
	uintptr_t context = 64 * (uintptr_t)chance(m, contexts);
	uint32_t i = 0;

	while (i < m->count && m->at[i].context != context) {
		i++;
	}
	m->good &= receiver_cancel(m->rcv, (void *)context) == (i < m->count);
	if (i < m->count) {
		forget(m, i);
	}
}

/* A message takes one. */
static void model_take(struct model *m)
{
	uint32_t i = m->count ? chance(m, m->count) : 0;
	struct rx_claim claim;
	struct match_recv *r;

	if (m->count) {
		r = posted(m->rcv, m->at[i].tag);
		m->good &= r != NULL;
		if (r) {
			rx_take(m->rcv, container_of(r, struct rx, m), 1, &claim);
			forget(m, i);
		}
	}
}

static bool history(uint64_t seed)
{
	static struct model m;
	uint32_t contexts;

	m = (struct model){.rcv = open_one(64),
			   .random = seed * 0x9e3779b97f4a7c15 + 1,
			   .good = true};
	contexts = 1u << chance(&m, 12);
	for (int streak = 0; streak < 200; streak++) {
		uint32_t what = chance(&m, 4), times = 1 + chance(&m, 120);

		while (times-- > 0) {
			uint32_t now = what < 3 ? what : chance(&m, 3);

			if (now == 0) {
				model_post(&m, contexts);
			} else if (now == 1) {
				model_cancel(&m, contexts);
			} else {
				model_take(&m);
			}
		}
		m.good &= pool_limit(&m.rcv->rx) - m.rcv->rx.free_count == m.count;
	}
	for (uint32_t i = 0; i < m.count; i++) {
		m.good &= posted(m.rcv, m.at[i].tag) != NULL;
	}
	receiver_close(m.rcv);
	return m.good;
}

/* ---- many */

#define MANY 20000

/* step 0: all with one context. */
static void test_many(int64_t step, const char *what)
{
	struct receiver *rcv = open_one(MANY);
	bool good = true;
	uint64_t all;

	for (uint64_t i = 0; i < MANY; i++) {
		good &= post(rcv, i, step ? 16 * i + 16 : 16);
	}
	for (int64_t k = 0; k < MANY; k++) {
		int64_t i = step < 0 ? MANY - 1 - k : k;

		good &= receiver_cancel(rcv,
					(void *)(uintptr_t)(step ? 16 * i + 16 : 16));
		good &= !posted(rcv, (uint64_t)i);
	}
	all = pool_limit(&rcv->rx);
	tap_ok(good, "%s: all are cancelled", what);
	tap_ok(rcv->by_context.scanned <= 10 * all,
	       "and looked through %d times in all, not each time",
	       (int)(rcv->by_context.scanned / all));
	receiver_close(rcv);
}

int main(int argc, char **argv)
{
	uint64_t base = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : 40;
	int bad = 0;

	test_many(1, "oldest first");
	test_many(-1, "youngest first");
	test_many(0, "one context");
	for (uint64_t seed = base; seed < base + count; seed++) {
		if (!history(seed)) {
			tap_diag("seed %" PRIu64, seed);
			bad++;
		}
	}
	tap_is_int(bad, 0, "random histories: the oldest with the context");
	return tap_done();
}
