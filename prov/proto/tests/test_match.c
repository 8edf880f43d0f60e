/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching against a model that does the obvious thing: two arrays in order, scanned from
 * the front. Random operations from a printed seed; test_match SEED repeats one.
 */
#include "config.h"

#include "prov/proto/match.h"
#include "util/tap.h"

#define MOST 400

struct recv {
	struct match_recv m;
	bool posted;
	uint64_t order;
};

struct msg {
	struct match_msg m;
	bool queued;
	uint64_t order;
};

struct world {
	struct match_queue q;
	struct recv recvs[MOST];
	struct msg msgs[MOST];
	uint64_t order;
	uint64_t random;
	int sources[4]; /* addresses stand for peers */
};

static uint64_t next_random(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static bool fits(const struct match_recv *r, const struct match_msg *m)
{
	return ((r->tag ^ m->tag) & ~r->ignore) == 0 &&
	       (!r->source || r->source == m->source);
}

static struct recv *model_recv(struct world *w, const struct match_msg *m)
{
	struct recv *best = NULL;

	for (int i = 0; i < MOST; i++) {
		struct recv *r = &w->recvs[i];

		if (r->posted && fits(&r->m, m) && (!best || r->order < best->order)) {
			best = r;
		}
	}
	return best;
}

static struct msg *model_msg(struct world *w, const struct match_recv *r)
{
	struct msg *best = NULL;

	for (int i = 0; i < MOST; i++) {
		struct msg *m = &w->msgs[i];

		if (m->queued && fits(r, &m->m) && (!best || m->order < best->order)) {
			best = m;
		}
	}
	return best;
}

static uint64_t random_tag(struct world *w)
{
	/* Few tags, some of them far apart, so that buckets are shared. */
	return (next_random(w) % 6) << (next_random(w) % 2 ? 0 : 40);
}

/* A message arrives; false: the queue and the model disagree. */
static bool arrive(struct world *w)
{
	struct msg *m = &w->msgs[next_random(w) % MOST];
	struct match_recv *got;
	struct recv *want;

	if (m->queued) {
		return true;
	}
	m->m.source = &w->sources[next_random(w) % 4];
	m->m.tag = random_tag(w);
	want = model_recv(w, &m->m);
	got = match_recv_find(&w->q, m->m.source, m->m.tag);
	if (got != (want ? &want->m : NULL)) {
		return false;
	}
	if (want) {
		match_recv_remove(&w->q, got);
		want->posted = false;
	} else {
		match_msg_add(&w->q, &m->m);
		m->queued = true;
		m->order = w->order++;
	}
	return true;
}

static bool post(struct world *w)
{
	struct recv *r = &w->recvs[next_random(w) % MOST];
	struct match_msg *got;
	struct msg *want;

	if (r->posted) {
		return true;
	}
	r->m.source = next_random(w) % 2 ? &w->sources[next_random(w) % 4] : NULL;
	r->m.tag = random_tag(w);
	r->m.ignore = next_random(w) % 3 ? 0 : next_random(w) % 8;
	want = model_msg(w, &r->m);
	got = match_msg_find(&w->q, &r->m);
	if (got != (want ? &want->m : NULL)) {
		return false;
	}
	if (want) {
		match_msg_remove(&w->q, got);
		want->queued = false;
	} else {
		match_recv_add(&w->q, &r->m);
		r->posted = true;
		r->order = w->order++;
	}
	return true;
}

static void cancel(struct world *w)
{
	struct recv *r = &w->recvs[next_random(w) % MOST];

	if (r->posted) {
		match_recv_remove(&w->q, &r->m);
		r->posted = false;
	}
}

static bool run(uint64_t seed)
{
	static struct world w;
	bool good = true;

	memset(&w, 0, sizeof(w));
	w.random = seed * 0x9e3779b97f4a7c15ULL + 1;
	if (match_queue_init(&w.q, seed % 3 ? 64 : 1)) {
		tap_bail("no memory");
	}
	for (int i = 0; i < 5000 && good; i++) {
		uint64_t what = next_random(&w) % 100;
		/* Waves: now more receives wait, now more messages. */
		uint64_t share = (i / 500) % 2 ? 60 : 35;

		if (what < share) {
			good = arrive(&w);
		} else if (what < 96) {
			good = post(&w);
		} else {
			cancel(&w);
		}
	}
	match_queue_fini(&w.q);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : 40;
	uint64_t bad = 0;

	for (uint64_t seed = first; seed < first + count && !bad; seed++) {
		if (!run(seed)) {
			bad = seed;
		}
	}
	tap_ok(!bad, "same matches as the model, seeds %" PRIu64 " to %" PRIu64, first,
	       first + count - 1);
	if (bad) {
		tap_diag("repeat with: test_match %" PRIu64, bad);
	}
	return tap_done();
}
