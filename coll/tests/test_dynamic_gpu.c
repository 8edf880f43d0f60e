/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamic all-to-allv whose counts and lists lie in device memory, which no processor can
 * touch: any forms, with buffers on the device or not, plain, persistent and in streams,
 * where an earlier step of the stream writes them and a later one reads what came; lists
 * as long as the counts say and no longer; what is refused, and what a stream makes of
 * that; a device that fails.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/tests/device_case.h"
#include "coll/tests/dynamic_case.h"
#include "util/tap.h"

#define TIMEOUT	    INT64_C(60000000)
#define PATIENCE_MS 60000
#define CALLS	    4

struct world {
	const char *provider;
	uint32_t seed;
};

struct scene {
	struct device_case_gpu g;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	void *stream;
	void *words; /* pinned: one that the stream waits for, one that it writes */
};

/* ---- a call in device memory ---------------------------------------------------------
 */

enum place { SRC, DST, COUNTS, AT, GOT, SEND_BLOCKS, RECV_BLOCKS, PLACES };

/* All of it on the device, or only what the mask says. */
#define ALL	((1u << PLACES) - 1)
#define TABLES	(ALL & ~(1u << SRC | 1u << DST))
#define BUFFERS (1u << SRC | 1u << DST)

struct pair {
	struct dynamic_job host; /* as it was, and as it comes back */
	struct dynamic_job used; /* what the call is given */
	bool roomy;		 /* the list has room for the most */
	void *there[PLACES];	 /* NULL: on the host */
};

static void *host_of(struct pair *p, enum place place, size_t *len)
{
	struct dynamic_job *j = &p->host;
	const struct dynamic_shape *s = j->shape;
	const size_t each = (size_t)s->size * sizeof(uint64_t);
	uint64_t sum = 0;

	for (int32_t i = 0; i < s->size; i++)
		sum += p->roomy ? s->max_count : j->counts[i];
	switch (place) {
	case SRC:
		*len = s->src_blocks * j->unit;
		return j->src;
	case DST:
		*len = s->dst_blocks * j->unit;
		return j->dst;
	case COUNTS:
		*len = each;
		return j->counts;
	case AT:
		*len = each;
		return j->at;
	case GOT:
		*len = each;
		return j->got;
	case SEND_BLOCKS:
		*len = sum * sizeof(uint64_t);
		return j->send_blocks;
	default:
		*len = each * s->max_count;
		return j->recv_blocks;
	}
}

static bool copy(struct device_case_gpu *g, void *dst, const void *src, size_t len)
{
	return !len ||
	       (!gpu_copy(g->queue[0], dst, src, len) && !gpu_queue_mark(g->queue[0]) &&
		!gpu_queue_sync(g->queue[0], UINT64_C(30000000000)));
}

/* Memory for the list is as long as the counts are now, where it is not to have room: who
 * reads beyond it dies. */
static bool pair_push(struct scene *sc, struct pair *p)
{
	size_t len;

	for (int i = 0; i < PLACES; i++) {
		void *host = host_of(p, (enum place)i, &len);

		if (!p->there[i])
			continue;
		if (i == SEND_BLOCKS &&
		    (gpu_free(sc->g.gpu, p->there[i]) ||
		     gpu_alloc(sc->g.gpu, 0, len ? len : 1, &p->there[i])))
			return false;
		if (!copy(&sc->g, p->there[i], host, len))
			return false;
	}
	return true;
}

static void pair_close(struct scene *sc, struct pair *p)
{
	for (int i = 0; i < PLACES; i++) {
		if (p->there[i])
			gpu_free(sc->g.gpu, p->there[i]);
	}
	dynamic_job_close(&p->host);
}

static void *used_of(struct pair *p, enum place place)
{
	size_t len;

	return p->there[place] ? p->there[place] : host_of(p, place, &len);
}

static void pair_use(struct pair *p, const struct weft_opts *opts, bool mixed)
{
	struct dynamic_job *u = &p->used;

	*u = p->host;
	u->opts = opts;
	u->src = used_of(p, SRC);
	u->dst = used_of(p, DST);
	u->send.counts = used_of(p, COUNTS);
	if (u->send.displacements)
		u->send.displacements = used_of(p, AT);
	u->dynamic.recv_counts = used_of(p, GOT);
	if (u->dynamic.send_blocks)
		u->dynamic.send_blocks = used_of(p, SEND_BLOCKS);
	if (u->dynamic.recv_blocks)
		u->dynamic.recv_blocks = used_of(p, RECV_BLOCKS);
	u->send.kind = mixed	       ? WEFT_MEM_AUTO
		       : p->there[GOT] ? WEFT_MEM_CUDA
				       : WEFT_MEM_HOST;
	u->dynamic.kind = u->send.kind;
}

static bool pair_open(struct scene *sc, struct pair *p, const struct dynamic_shape *s,
		      int32_t rank, uint32_t mask, bool roomy)
{
	size_t len;

	memset(p, 0, sizeof(*p));
	p->roomy = roomy;
	if (!dynamic_job_open(&p->host, s, rank))
		return false;
	for (int i = 0; i < PLACES; i++) {
		host_of(p, (enum place)i, &len);
		if (mask & 1u << i &&
		    gpu_alloc(sc->g.gpu, 0, len ? len : 1, &p->there[i]))
			return false;
	}
	return pair_push(sc, p);
}

static int pair_check(struct ranks *r, struct scene *sc, struct pair *p)
{
	for (int i = DST; i <= GOT; i += GOT - DST) {
		size_t len;
		void *host = host_of(p, (enum place)i, &len);

		if (p->there[i] && !copy(&sc->g, host, p->there[i], len))
			return ranks_say(r, "copy: %s", gpu_error(sc->g.gpu));
	}
	return dynamic_job_check(r, &p->host);
}

/* ---- any shapes ----------------------------------------------------------------------
 */

static struct weft_opts auto_opts(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.src_kind = opts.dst_kind = WEFT_MEM_AUTO;
	return opts;
}

static int any_run(struct ranks *r, struct scene *sc, uint32_t *state, uint32_t mask,
		   bool persistent)
{
	const struct weft_opts opts = auto_opts();
	const bool mixed = (mask & TABLES) != TABLES;
	struct weft_req *req = NULL;
	struct dynamic_shape s;
	struct pair p;
	int bad = RANKS_GOOD;

	dynamic_shape_draw(&s, r->size, state);
	if (!pair_open(sc, &p, &s, r->rank, mask, false))
		return ranks_say(r, "no memory");
	for (int round = 0; round < 3 && !bad; round++) {
		enum weft_result got = WEFT_SUCCESS;

		/* Persistent: the list must stay where it is. */
		if (round) {
			s.salt += !(persistent && p.there[SEND_BLOCKS]);
			dynamic_job_fill(&p.host, r->rank);
			if (!pair_push(sc, &p))
				return ranks_say(r, "push: %s", gpu_error(sc->g.gpu));
		}
		pair_use(&p, &opts, mixed);
		if (!persistent)
			got = dynamic_job_call(&p.used, sc->comm);
		else if (!req)
			got = dynamic_job_init(&p.used, sc->comm, &req);
		if (persistent && got == WEFT_SUCCESS)
			got = weft_req_start(req);
		if (persistent && got == WEFT_SUCCESS)
			got = weft_req_wait(req, WEFT_TIMEOUT_DEFAULT);
		if (got != WEFT_SUCCESS)
			return ranks_say(r, "round %d: %s", round, weft_error_detail());
		bad = pair_check(r, sc, &p);
		/* Another list would be elsewhere. */
		if (req && p.there[SEND_BLOCKS])
			break;
	}
	if (req && weft_req_free(req) != WEFT_SUCCESS)
		return ranks_say(r, "free: %s", weft_error_detail());
	pair_close(sc, &p);
	return bad;
}

static int any_body(struct ranks *r, struct scene *sc)
{
	const struct world *w = r->arg;
	static const uint32_t masks[] = {ALL, TABLES, BUFFERS | 1u << COUNTS,
					 1u << GOT | 1u << RECV_BLOCKS | 1u << SRC};
	uint32_t state = w->seed;
	int bad = RANKS_GOOD;

	for (int i = 0; i < 8 && !bad; i++)
		bad = any_run(r, sc, &state, masks[i % 4], i % 3 == 2);
	return bad;
}

/* ---- streams -------------------------------------------------------------------------
 */

static _Atomic uint64_t *word(const struct scene *sc, int i)
{
	return (_Atomic uint64_t *)(void *)((char *)sc->words + 128 * i);
}

static bool stream_word(struct scene *sc, uint32_t kind, int i, uint64_t value)
{
	const struct gpu_word_op op = {.kind = kind, .word = word(sc, i), .value = value};

	return gpu_stream_words(sc->g.gpu, 0, sc->stream, &op, 1) == 0;
}

static bool comes(const struct scene *sc, uint64_t value)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (atomic_load(word(sc, 1)) >= value)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

static bool stream_copy(struct scene *sc, void *dst, const void *src, size_t len)
{
	return !len || !gpu_stream_copy(sc->g.gpu, 0, sc->stream, dst, src, len);
}

/* What the call is given, as a kernel would write it, or back. */
static bool stream_copies(struct scene *sc, struct pair *p, struct pair *other, bool in)
{
	for (int i = 0; i < PLACES; i++) {
		size_t len;
		void *host = host_of(other, (enum place)i, &len);
		void *used = used_of(p, (enum place)i);

		if (!in && i != DST && i != GOT)
			continue;
		if (!(in ? stream_copy(sc, used, host, len)
			 : stream_copy(sc, host, used, len)))
			return false;
	}
	return true;
}

/*
 * The stream brings the contents and tables of each call, one behind the other, before
 * it, and takes the results behind it; all was put there before the stream is let go. In
 * the memory of the call there is nonsense until then. Tables of the host as well.
 */
static int stream_run(struct ranks *r, struct scene *sc, uint32_t *state, uint32_t mask,
		      bool persistent)
{
	struct weft_opts opts = auto_opts();
	const uint64_t go = atomic_load(word(sc, 0)) + 1;
	struct dynamic_shape s[CALLS];
	struct pair p, host[CALLS];
	struct weft_req *req = NULL;
	int bad = RANKS_GOOD;

	opts.stream_kind = WEFT_STREAM_CUDA;
	opts.stream = sc->stream;
	dynamic_shape_draw(&s[0], r->size, state);
	if (!pair_open(sc, &p, &s[0], r->rank, mask, true))
		return ranks_say(r, "no memory");
	pair_use(&p, &opts, true);
	/* To pin memory the driver may wait for a stream that is held. */
	if (persistent && dynamic_job_init(&p.used, sc->comm, &req) != WEFT_SUCCESS)
		return ranks_say(r, "init: %s", weft_error_detail());
	memset(p.host.counts, 0xee, sizeof(p.host.counts));
	if (!stream_word(sc, GPU_WORD_WAIT, 0, go))
		return ranks_say(r, "stream: %s", gpu_error(sc->g.gpu));
	for (int k = 0; k < (persistent ? 1 : CALLS); k++) {
		s[k] = s[0];
		s[k].salt += (uint32_t)k;
		if (!pair_open(sc, &host[k], &s[k], r->rank, 0, true) ||
		    !stream_copies(sc, &p, &host[k], true))
			return ranks_say(r, "stream: %s", gpu_error(sc->g.gpu));
		if ((req ? weft_req_start(req) : dynamic_job_call(&p.used, sc->comm)) !=
		    WEFT_SUCCESS)
			return ranks_say(r, "call %d: %s", k, weft_error_detail());
		if (!stream_copies(sc, &p, &host[k], false))
			return ranks_say(r, "stream: %s", gpu_error(sc->g.gpu));
	}
	if (!stream_word(sc, GPU_WORD_WRITE, 1, go))
		return ranks_say(r, "stream: %s", gpu_error(sc->g.gpu));
	atomic_store(word(sc, 0), go);
	if (!comes(sc, go))
		return ranks_say(r, "the stream does not end");
	for (int k = 0; k < (persistent ? 1 : CALLS); k++) {
		bad = bad ? bad : dynamic_job_check(r, &host[k].host);
		dynamic_job_close(&host[k].host);
	}
	if (req &&
	    (weft_req_wait(req, 0) != WEFT_SUCCESS || weft_req_free(req) != WEFT_SUCCESS))
		return ranks_say(r, "end: %s", weft_error_detail());
	pair_close(sc, &p);
	return bad;
}

static int stream_body(struct ranks *r, struct scene *sc)
{
	const struct world *w = r->arg;
	uint32_t state = w->seed + 77;
	int bad = RANKS_GOOD;

	for (int i = 0; i < 6 && !bad; i++)
		bad = stream_run(r, sc, &state,
				 i % 3 == 0   ? 0
				 : i % 3 == 1 ? ALL
					      : TABLES,
				 i >= 4);
	return bad;
}

/* ---- refused -------------------------------------------------------------------------
 */

/* A count on the device that is too much: without a stream all refuse and go on; in one
 * the stream goes on, nothing was written, and the next call says why. */
static int refused_body(struct ranks *r, struct scene *sc)
{
	struct dynamic_shape s = {.size = r->size,
				  .sends = BY_LIST,
				  .takes = WITH_ROOM,
				  .type = WEFT_FP32,
				  .block = 4,
				  .max_count = 10};
	struct weft_opts opts = auto_opts();
	enum weft_result got;
	struct pair p;

	s.src_blocks = s.dst_blocks = (uint64_t)r->size * s.max_count;
	for (int streamed = 0; streamed < 2; streamed++) {
		if (!pair_open(sc, &p, &s, r->rank, ALL, false))
			return ranks_say(r, "no memory");
		if (r->rank == 1)
			p.host.counts[0] = s.max_count + 1;
		if (!copy(&sc->g, p.there[COUNTS], p.host.counts,
			  (size_t)r->size * sizeof(uint64_t)))
			return ranks_say(r, "copy: %s", gpu_error(sc->g.gpu));
		if (streamed) {
			opts.stream_kind = WEFT_STREAM_CUDA;
			opts.stream = sc->stream;
		}
		pair_use(&p, &opts, false);
		got = dynamic_job_call(&p.used, sc->comm);
		if (streamed && (got != WEFT_SUCCESS ||
				 !stream_word(sc, GPU_WORD_WRITE, 1, 1) || !comes(sc, 1)))
			return ranks_say(r, "in a stream: %s", weft_error_detail());
		if (streamed)
			got = weft_barrier(sc->comm, NULL);
		if (got != (streamed ? WEFT_ERR_COMM : WEFT_ERR_ARG) ||
		    !strstr(weft_error_detail(), "max_count is 10") ||
		    !strstr(weft_error_detail(), "rank 1"))
			return ranks_say(r, "%s: %s", weft_strerror(got),
					 weft_error_detail());
		if (!copy(&sc->g, p.host.dst, p.there[DST], s.dst_blocks * p.host.unit))
			return ranks_say(r, "copy: %s", gpu_error(sc->g.gpu));
		for (uint64_t i = 0; i < s.dst_blocks * p.host.unit; i++) {
			if (p.host.dst[i] != DYNAMIC_FILL)
				return ranks_say(r, "something was written");
		}
		pair_close(sc, &p);
	}
	return RANKS_GOOD;
}

/* What is said of the arrays has to be so. */
static int said_body(struct ranks *r, struct scene *sc)
{
	struct dynamic_shape s = {
		.size = r->size, .type = WEFT_UINT8, .block = 1, .max_count = 3};
	const struct weft_opts opts = auto_opts();
	struct pair p;

	s.sends = ONE_BY_ONE;
	s.src_blocks = s.dst_blocks = (uint64_t)r->size * s.max_count;
	if (!pair_open(sc, &p, &s, r->rank, 0, false))
		return ranks_say(r, "no memory");
	pair_use(&p, &opts, false);
	p.used.send.kind = WEFT_MEM_CUDA;
	if (dynamic_job_call(&p.used, sc->comm) != WEFT_ERR_ARG ||
	    !strstr(weft_error_detail(), "send_counts"))
		return ranks_say(r, "counts of the host: %s", weft_error_detail());
	p.used.send.kind = WEFT_MEM_HOST;
	p.used.dynamic.kind = (enum weft_mem_kind)9;
	if (dynamic_job_call(&p.used, sc->comm) != WEFT_ERR_ARG ||
	    !strstr(weft_error_detail(), "no kind of memory"))
		return ranks_say(r, "kind 9: %s", weft_error_detail());
	if (sc->g.gpu->devices > 1) {
		pair_use(&p, &opts, true);
		if (gpu_alloc(sc->g.gpu, 0, 4096, &p.there[COUNTS]) ||
		    gpu_alloc(sc->g.gpu, 1, 4096, &p.there[GOT]))
			return ranks_say(r, "no memory");
		pair_use(&p, &opts, true);
		if (dynamic_job_call(&p.used, sc->comm) != WEFT_ERR_ARG ||
		    !strstr(weft_error_detail(), "on GPU 0 and on GPU 1"))
			return ranks_say(r, "two devices: %s", weft_error_detail());
	}
	pair_close(sc, &p);
	return weft_barrier(sc->comm, NULL) == WEFT_SUCCESS
		       ? RANKS_GOOD
		       : ranks_say(r, "after it: %s", weft_error_detail());
}

/* The device of rank 1 fails before the counts are brought: all hear of it. */
static int fails_body(struct ranks *r, struct scene *sc)
{
	struct dynamic_shape s = {.size = r->size,
				  .sends = ONE_BY_ONE,
				  .takes = WITH_ROOM,
				  .type = WEFT_FP32,
				  .block = 4,
				  .max_count = 10};
	const struct weft_opts opts = auto_opts();
	void (*break_it)(int device);
	enum weft_result got;
	struct pair p;
	void *lib = dlopen(getenv("WEFT_GPU_LIB"), RTLD_NOW);

	*(void **)(void *)&break_it = lib ? dlsym(lib, "guarded_break") : NULL;
	if (!break_it)
		return RANKS_GOOD; /* of a real device */
	s.src_blocks = s.dst_blocks = (uint64_t)r->size * s.max_count;
	if (!pair_open(sc, &p, &s, r->rank, TABLES, false))
		return ranks_say(r, "no memory");
	pair_use(&p, &opts, false);
	if (dynamic_job_call(&p.used, sc->comm) != WEFT_SUCCESS)
		return ranks_say(r, "before: %s", weft_error_detail());
	if (r->rank == 1)
		break_it(0);
	got = dynamic_job_call(&p.used, sc->comm);
	if (got != (r->rank == 1 ? WEFT_ERR_DEVICE : got) || got == WEFT_SUCCESS)
		return ranks_say(r, "%s: %s", weft_strerror(got), weft_error_detail());
	return RANKS_GOOD;
}

/* ---- parts ---------------------------------------------------------------------------
 */

enum part { ANY_3, STREAM_3, ANY_1, STREAM_1, REFUSED, SAID, FAILS, PARTS };

static const struct ranks_part parts[PARTS] = {
	[ANY_3] = {3, -1, "any shapes on 3 ranks"},
	[STREAM_3] = {3, -1, "in streams, on 3 ranks"},
	[ANY_1] = {1, -1, "any shapes on 1 rank"},
	[STREAM_1] = {1, -1, "in streams, on 1 rank"},
	[REFUSED] = {3, -1, "a count that is too much"},
	[SAID] = {2, -1, "memory that is elsewhere"},
	[FAILS] = {2, -1, "a device that fails"},
};

static int (*const bodies[PARTS])(struct ranks *, struct scene *) = {
	[ANY_3] = any_body,	  [STREAM_3] = stream_body, [ANY_1] = any_body,
	[STREAM_1] = stream_body, [REFUSED] = refused_body, [SAID] = said_body,
	[FAILS] = fails_body,
};

static int scene_body(struct ranks *r)
{
	const struct world *w = r->arg;
	struct scene sc;
	int bad = device_gpu_open(r, &sc.g);

	if (!bad)
		bad = ranks_open(r, w->provider, TIMEOUT, &sc.ctx);
	if (bad)
		return bad;
	if (weft_comm_create(sc.ctx, NULL, &sc.comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	if (gpu_stream_open(sc.g.gpu, 0, &sc.stream) ||
	    gpu_pinned_alloc(sc.g.gpu, 4096, &sc.words))
		return ranks_say(r, "stream: %s", gpu_error(sc.g.gpu));
	bad = bodies[r->part](r, &sc);
	/* What failed holds memory (rule D3), and a device that fails works off nothing.
	 */
	if (bad || r->part == FAILS)
		return bad;
	if (weft_comm_destroy(sc.comm) != WEFT_SUCCESS ||
	    weft_ctx_close(sc.ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	gpu_stream_close(sc.g.gpu, 0, sc.stream);
	gpu_pinned_free(sc.g.gpu, sc.words);
	device_gpu_close(&sc.g);
	return RANKS_GOOD;
}

/* Ranks that lost a device leave with memory held. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	const char *seed = getenv("WEFT_TEST_SEED");
	struct world w = {.seed = seed ? (uint32_t)strtoul(seed, NULL, 10)
				       : (uint32_t)time(NULL) | 1};
	char names[8][32];
	bool good[PARTS];
	int count = ranks_providers("weft,tcp", names, 8);

	tap_diag("seed %u", w.seed);
	for (int i = 0; i < count; i++) {
		w.provider = names[i];
		if (!ranks_parts(parts, PARTS, 240, scene_body, &w, good)) {
			tap_skip(1, "provider %s or a GPU is not on this machine",
				 names[i]);
			continue;
		}
		for (int p = 0; p < PARTS; p++)
			tap_ok(good[p], "%s: %s", names[i], parts[p].what);
	}
	return tap_done();
}
