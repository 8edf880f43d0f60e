/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching against a model that does the obvious thing: two arrays in order, scanned from
 * the front. Random operations from a printed seed; test_match SEED repeats one. And:
 * what a match costs must not grow with what is queued.
 */
#include "config.h"

#include "prov/proto/match.h"
#include "prov/proto/match_index.h"
#include "util/tap.h"

#define MOST 400
#define MANY 20000

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
	char sources[4][64]; /* addresses stand for peers */
	/* Drawn for each seed: few and many tags and masks, so that entries are found in
	 * every way, and classes and views run out. */
	uint64_t tags, masks;
	uint32_t share_first, share_then; /* of messages, in percent */
	bool was_indexed, was_full, was_viewed, was_given_up;
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
	return (next_random(w) % w->tags) << (next_random(w) % 2 ? 0 : 40);
}

static uint64_t random_mask(struct world *w)
{
	uint64_t k = next_random(w) % w->masks;

	if (w->masks == 3) { /* nothing, a few bits, everything */
		return k == 0 ? 0 : k == 1 ? 6 : UINT64_MAX;
	}
	return next_random(w) % 3 ? k : k << 40;
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
	m->m.source = w->sources[next_random(w) % 4];
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
	r->m.source = next_random(w) % 2 ? w->sources[next_random(w) % 4] : NULL;
	r->m.tag = random_tag(w);
	r->m.ignore = random_mask(w);
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

/* A receive's source gets another name. */
static void retarget(struct world *w)
{
	struct recv *r = &w->recvs[next_random(w) % MOST];

	if (r->posted && r->m.source) {
		match_recv_retarget(&w->q, &r->m, w->sources[next_random(w) % 4]);
	}
}

static void look(struct world *w)
{
	const struct match_index *x = w->q.index;

	w->was_indexed |= w->q.wild_few == 0;
	w->was_full |= w->q.wild_few == 0 && x->other_count > 0;
	w->was_viewed |= w->q.views != 0;
	w->was_given_up |= x->victim > 0;
}

static void step(struct world *w, int i, bool *good)
{
	/* Waves: now more receives wait, now more messages. */
	uint64_t share = (i / 500) % 2 ? w->share_first : w->share_then;
	uint64_t what = next_random(w) % 1000;

	if (what < share * 10) {
		*good = arrive(w);
	} else if (what < 960) {
		*good = post(w);
	} else if (what < 998) {
		cancel(w);
	} else {
		retarget(w);
	}
	look(w);
}

static struct world seen; /* of all seeds */

static bool run(uint64_t seed)
{
	static struct world w;
	bool good = true;

	memset(&w, 0, sizeof(w));
	w.random = seed * 0x9e3779b97f4a7c15ULL + 1;
	w.tags = 1 + (seed & 1 ? 6 : 300);
	w.masks = seed % 5 == 0 ? 3 : seed % 5 == 1 ? 40 : 8;
	w.share_first = seed % 3 ? 60 : 80;
	w.share_then = seed % 3 ? 35 : 10;
	if (match_queue_init(&w.q, seed % 3 ? 64 : 1)) {
		tap_bail("no memory");
	}
	for (int i = 0; i < 5000 && good; i++) {
		if (i == 2500) {
			match_queue_reserve(&w.q, 1000);
		}
		step(&w, i, &good);
	}
	seen.was_indexed |= w.was_indexed;
	seen.was_full |= w.was_full;
	seen.was_viewed |= w.was_viewed;
	seen.was_given_up |= w.was_given_up;
	match_queue_fini(&w.q);
	return good;
}

/* Every kind of receive: from any source or one, all bits of the tag, some, none. */
struct kind {
	const char *what;
	uint64_t ignore;
	bool directed;
};

static const struct kind kinds[] = {
	{"exact tags", 0, false},
	{"exact tags of one source", 0, true},
	{"some bits of the tag", 0xffff, false},
	{"the tag's high bits, of one source", UINT64_MAX << 48, true},
};

/* In a crowd of entries of its kind, each must be found in its bucket: the longest that
 * may be looked through for chance, times what is wanted. */
#define LOOKS 16

static size_t list_length(const struct list *head)
{
	size_t n = 0;

	list_foreach (at, head) {
		n++;
	}
	return n;
}

/* The average length of the lists that the entries are in, times 100. */
static size_t crowding(const struct match_table *t)
{
	size_t squares = 0, all = 0;

	for (uint32_t i = 0; i < 1u << t->log2; i++) {
		size_t n = list_length(&t->buckets[i]);

		squares += n * n;
		all += n;
	}
	return all ? squares * 100 / all : 0;
}

static size_t recvs_crowding(const struct match_queue *q)
{
	struct match_table t = {.buckets = q->recvs};

	while ((1u << t.log2) <= q->mask) {
		t.log2++;
	}
	return crowding(&t);
}

/* The tag of entry i: a byte of it, wherever the mask leaves room. */
static uint64_t many_tag(const struct kind *k, uint64_t i)
{
	return k->ignore & 1 ? i << 16 : i;
}

static void test_many(const struct kind *k)
{
	struct recv *recvs = calloc(MANY, sizeof(*recvs));
	struct msg *msgs = calloc(MANY, sizeof(*msgs));
	static int source;
	struct match_queue q;
	bool good = true;
	size_t crowd;

	if (!recvs || !msgs || match_queue_init(&q, 64)) {
		tap_bail("no memory");
	}
	for (uint64_t i = 0; i < MANY; i++) {
		recvs[i].m.source = k->directed ? &source : NULL;
		recvs[i].m.tag = many_tag(k, i);
		recvs[i].m.ignore = k->ignore;
		match_recv_add(&q, &recvs[i].m);
		if ((i & (i - 1)) == 0) { /* as the pool of receives grows */
			match_queue_reserve(&q, (uint32_t)(2 * i));
		}
	}
	crowd = k->ignore ? crowding(&q.index->wilds) : recvs_crowding(&q);
	for (uint64_t i = MANY; i-- > 0;) {
		struct match_recv *r = match_recv_find(&q, &source, many_tag(k, i));

		good &= r == &recvs[i].m;
		match_recv_remove(&q, &recvs[i].m);
	}
	tap_ok(good && crowd < LOOKS * 100,
	       "%d receives, %s: each is found, %zu.%02zu in a list", MANY, k->what,
	       crowd / 100, crowd % 100);
	good = match_recv_find(&q, &source, 0) == NULL;
	for (uint64_t i = 0; i < MANY; i++) {
		msgs[i].m.source = &source;
		msgs[i].m.tag = many_tag(k, i);
		match_msg_add(&q, &msgs[i].m);
	}
	for (uint64_t i = MANY; i-- > 0;) {
		good &= match_msg_find(&q, &recvs[i].m) == &msgs[i].m;
		if (i == MANY / 2) {
			crowd = crowding(&q.index->views[MATCH_VIEWS - 1].table);
		}
		match_msg_remove(&q, &msgs[i].m);
	}
	tap_ok(good && crowd > 0 && crowd < LOOKS * 100,
	       "%d messages, %s: each is found, %zu.%02zu in a list", MANY, k->what,
	       crowd / 100, crowd % 100);
	match_queue_fini(&q);
	free(recvs);
	free(msgs);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 1 ? 1 : 60;
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
	if (argc > 1) {
		return tap_done();
	}
	tap_ok(seen.was_indexed && seen.was_full && seen.was_viewed && seen.was_given_up,
	       "among them: an index, one without place for a class, views, one given "
	       "up");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		test_many(&kinds[i]);
	}
	return tap_done();
}
