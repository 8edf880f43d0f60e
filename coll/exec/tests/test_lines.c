/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines: ranks that take random calls in random order, step by step, never read what is
 * not there yet or is overwritten, and never wait for each other in a circle; the same
 * among threads; and the memory of peers, which is mapped only where it is what it
 * claims to be.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/exec/lines.h"
#include "coll/exec/lines_mem.h"
#include "util/tap.h"

#define RANKS 8
#define CALLS 60

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % below;
}

/* ---- a model: all ranks in one thread -----------------------------------------------
 */

/* What a call is: who reads whom, and how long what each publishes is. */
struct turn {
	int32_t root; /* -1: all read all */
	bool up;      /* the root reads all, else all read the root */
	size_t bytes;
};

struct actor {
	struct lines l;
	uint32_t at; /* turns that are done */
	bool published;
	int32_t next;
	const void *held; /* what it is reading, looked at again a step later */
};

struct world {
	struct lines_area *area;
	struct actor actor[RANKS];
	struct turn turn[CALLS];
	int32_t size;
	uint32_t base; /* turn before the first */
	bool careless; /* nobody looks whether a slot is free */
	int wrong;
};

static void fill(void *place, size_t bytes, int32_t rank, uint32_t call)
{
	memset(place, (int)(1 + rank * 31 + (int32_t)call * 7) & 0xff, bytes);
}

static bool is_filled(const void *place, size_t bytes, int32_t rank, uint32_t call)
{
	const uint8_t *at = place;

	for (size_t i = 0; i < bytes; i++) {
		if (at[i] != (uint8_t)(1 + rank * 31 + (int32_t)call * 7))
			return false;
	}
	return true;
}

static bool reads(const struct turn *t, int32_t self, int32_t from)
{
	if (t->root < 0)
		return true;
	return t->up ? self == t->root : from == t->root && self != t->root;
}

static uint64_t sig_of(uint32_t call)
{
	return (uint64_t)call * 977 + 5;
}

/* One step of a rank; false: it waits for another, or has done all. */
static bool actor_step(struct world *w, struct actor *a)
{
	const struct turn *t = &w->turn[a->at];
	const int32_t self = a->l.self;
	const void *data;
	struct lines_call other;

	if (a->at == CALLS)
		return false;
	if (!a->published) {
		if (!w->careless && lines_behind(&a->l) >= 0)
			return false;
		fill(lines_place(&a->l, t->bytes), t->bytes, self, a->at);
		lines_publish(&a->l, a->at, sig_of(a->at));
		a->published = true;
		a->next = 0;
		return true;
	}
	if (a->held) {
		w->wrong += !is_filled(a->held, t->bytes, a->next, a->at);
		a->held = NULL;
		a->next++;
		return true;
	}
	while (a->next < w->size && !reads(t, self, a->next))
		a->next++;
	if (a->next == w->size) {
		if (t->root < 0 || (t->up && self == t->root))
			lines_seen(&a->l);
		a->published = false;
		a->at++;
		return true;
	}
	switch (lines_look(&a->l, a->next, a->at, sig_of(a->at), t->bytes, &data,
			   &other)) {
	case LINES_NOT_YET:
		return false;
	case LINES_THERE:
		a->held = data;
		return true;
	default:
		w->wrong++;
		a->next++;
		return true;
	}
}

static void world_open(struct world *w, bool careless)
{
	memset(w->area, 0, RANKS * sizeof(*w->area));
	w->size = 2 + (int32_t)draw(RANKS - 1);
	w->base = draw(2) ? 0 : UINT32_MAX - draw(CALLS); /* turns wrap */
	w->careless = careless;
	w->wrong = 0;
	for (int i = 0; i < CALLS; i++) {
		static const size_t sizes[] = {0, 8, LINES_SHORT, LINES_SHORT + 1, 300};

		w->turn[i] = (struct turn){
			.root = draw(3) ? (int32_t)draw((uint32_t)w->size) : -1,
			.up = draw(2),
			.bytes = sizes[draw(5)]};
	}
	for (int32_t r = 0; r < w->size; r++) {
		struct actor *a = &w->actor[r];

		*a = (struct actor){
			.l = {.own = &w->area[r], .size = w->size, .self = r}};
		for (int32_t i = 0; i < w->size; i++)
			a->l.of[i] = &w->area[i];
		/* As after so many calls. */
		a->l.turn = w->base ? w->base - LINES_SLOTS : 0;
		while (a->l.turn != w->base)
			lines_publish(&a->l, 0, 0);
		a->l.seen = w->base;
	}
}

/* Runs to the end; false: nobody can go on and somebody has not done all. Ranks are
 * taken in bursts, so that some get far ahead of others. */
static bool world_run(struct world *w)
{
	for (;;) {
		const int32_t r = (int32_t)draw((uint32_t)w->size);
		uint32_t burst = 1 + draw(40);
		bool moved = false;

		while (burst-- && actor_step(w, &w->actor[r]))
			moved = true;
		for (int32_t i = 0; i < w->size && !moved; i++)
			moved = actor_step(w, &w->actor[i]);
		if (moved)
			continue;
		for (int32_t i = 0; i < w->size; i++) {
			if (w->actor[i].at != CALLS)
				return false;
		}
		return true;
	}
}

static void model_tests(void)
{
	static struct world w;
	int wrong = 0, stuck = 0, caught = 0;
	const int worlds = tap_short() ? 300 : 1500;

	w.area = aligned_alloc(LINES_PAGE, RANKS * sizeof(*w.area));
	if (!w.area)
		tap_bail("no memory");
	for (int i = 0; i < worlds; i++) {
		world_open(&w, false);
		stuck += !world_run(&w);
		wrong += w.wrong;
	}
	tap_is_int(wrong, 0, "nothing is read that was overwritten or is not there");
	tap_is_int(stuck, 0, "nobody waits for ever");
	for (int i = 0; i < 50; i++) {
		world_open(&w, true);
		world_run(&w);
		caught += w.wrong > 0;
	}
	tap_ok(caught > 0, "ranks that overwrite too early are found by this test (%d)",
	       caught);
	free(w.area);
}

/* ---- what is seen of a peer -----------------------------------------------------------
 */

static void look_tests(void)
{
	struct lines_area *area = calloc(2, sizeof(*area));
	struct lines a = {.own = &area[0], .size = 2, .self = 0};
	struct lines b = {.own = &area[1], .size = 2, .self = 1};
	const void *data = NULL;
	struct lines_call other = {0};

	if (!area)
		tap_bail("no memory");
	a.of[0] = b.of[0] = &area[0];
	a.of[1] = b.of[1] = &area[1];
	lines_publish(&a, 7, 99);
	tap_ok(lines_look(&a, 1, 7, 99, 8, &data, &other) == LINES_NOT_YET,
	       "a peer that has published nothing");
	memcpy(lines_place(&b, 8), "12345678", 8);
	lines_publish(&b, 7, 98);
	tap_ok(lines_look(&a, 1, 7, 99, 8, &data, &other) == LINES_OTHER &&
		       other.sig == 98 && other.call == 7,
	       "one that runs another call, and which");
	tap_ok(lines_look(&a, 1, 8, 98, 8, &data, &other) == LINES_OTHER,
	       "one whose call has another number");
	tap_ok(lines_look(&a, 1, 7, 98, 8, &data, &other) == LINES_THERE &&
		       !memcmp(data, "12345678", 8),
	       "one that runs the same, and its data");
	lines_withdraw(&b, 1);
	tap_ok(lines_look(&a, 1, 7, 98, 8, &data, &other) == LINES_NOT_YET,
	       "one whose call has failed meanwhile");
	for (int i = 0; i < LINES_SLOTS; i++)
		lines_publish(&b, 8, 98);
	tap_ok(lines_look(&a, 1, 7, 98, 8, &data, &other) == LINES_WRONG,
	       "one that went on without us");
	for (int i = 0; i < LINES_SLOTS - 2; i++)
		lines_publish(&b, 8, 98);
	tap_is_int(lines_behind(&b), 0, "who is behind");
	free(area);
}

/* ---- threads -------------------------------------------------------------------------
 */

#define THREADS	     3
#define THREAD_CALLS 3000

static struct lines_area *shared;
static atomic_int thread_wrong;

static void *thread_body(void *arg)
{
	struct lines l = {.size = THREADS, .self = (int32_t)(intptr_t)arg};
	const size_t bytes[] = {8, 200};

	l.own = &shared[l.self];
	for (int i = 0; i < THREADS; i++)
		l.of[i] = &shared[i];
	for (uint32_t call = 0; call < THREAD_CALLS; call++) {
		const size_t len = bytes[call % 2];
		const int32_t root = call % 3 ? (int32_t)(call % THREADS) : -1;

		while (lines_behind(&l) >= 0)
			sched_yield();
		fill(lines_place(&l, len), len, l.self, call);
		lines_publish(&l, call, sig_of(call));
		for (int32_t i = 0; i < THREADS; i++) {
			enum lines_look look;
			const void *data;
			struct lines_call other;

			if (root >= 0 && i != root)
				continue;
			while ((look = lines_look(&l, i, call, sig_of(call), len, &data,
						  &other)) == LINES_NOT_YET)
				sched_yield();
			if (look != LINES_THERE || !is_filled(data, len, i, call))
				atomic_fetch_add(&thread_wrong, 1);
		}
		if (root < 0)
			lines_seen(&l);
	}
	return NULL;
}

static void thread_tests(void)
{
	pthread_t thread[THREADS];

	shared = aligned_alloc(LINES_PAGE, THREADS * sizeof(*shared));
	if (!shared)
		tap_bail("no memory");
	memset(shared, 0, THREADS * sizeof(*shared));
	for (intptr_t i = 0; i < THREADS; i++) {
		if (pthread_create(&thread[i], NULL, thread_body, (void *)i))
			tap_bail("no thread");
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tap_is_int(atomic_load(&thread_wrong), 0, "threads read what each has published");
	free(shared);
}

/* ---- memory of peers -----------------------------------------------------------------
 */

static const struct lines_card *card_at(const void *arg, int32_t rank)
{
	return &((const struct lines_card *)arg)[rank];
}

static enum lines_level all_have(const void *arg, int32_t rank)
{
	return ((const enum lines_level *)arg)[rank];
}

/* Whether rank 0 maps rank 1's memory by such a card. */
static bool maps(const struct lines_card *card)
{
	static const int32_t lead[2] = {0, 0};
	struct lines_card both[2] = {{0}, *card};
	struct lines_mem mem;
	bool whole;

	lines_mem_open(&mem, LINES_AUTO, &both[0]);
	lines_mem_map(&mem, lead, card_at, both, 2, 0);
	whole = mem.level == LINES_FAR;
	lines_mem_close(&mem);
	return whole;
}

static int other_file(size_t size, unsigned seals)
{
	const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, seals))
		tap_bail("memfd: %s", strerror(errno));
	return fd;
}

/* Of rank 1's memory, which is ours. */
static void read_tests(struct lines_mem *mem)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = calloc(2, page);
	uint64_t at;
	uint32_t pid = mem->pid[1];

	if (pages == MAP_FAILED || !to)
		tap_bail("no memory");
	at = (uintptr_t)pages;
	memset(pages, 77, page);
	memset(pages + page, 78, page);
	tap_ok(lines_mem_read(mem, 1, to, at + page - 3, 6) == 0 &&
		       !memcmp(to, "MMMNNN", 6),
	       "what a rank gives is read where it lies");
	munmap(pages + page, page);
	tap_is_int(lines_mem_read(mem, 1, to, at, 2 * page), EFAULT,
		   "not where some of it is no memory");
	tap_is_int(lines_mem_read(mem, 1, to, at + page, 8), EFAULT, "or all of it");
	mem->pid[1] = (uint32_t)getppid();
	tap_ok(lines_mem_read(mem, 1, to, at, 8) != 0,
	       "not of another process that has got its number");
	mem->pid[1] = pid;
	munmap(pages, page);
	free(to);
}

static void refusal_tests(const struct lines_card *good, size_t size)
{
	struct lines_card card = *good;
	int fd;

	tap_ok(maps(&card), "a peer's memory is mapped");
	card.nonce[3] ^= 1;
	tap_ok(!maps(&card), "not where it begins with something else");
	card = *good;
	card.pid = 0;
	tap_ok(!maps(&card), "nor where there is none");
	card = *good;
	card.fd = UINT16_MAX;
	tap_ok(!maps(&card), "nor where it is not open");
	fd = other_file(size, F_SEAL_GROW | F_SEAL_SEAL);
	card.fd = (uint16_t)fd;
	tap_ok(!maps(&card), "nor where it might get shorter");
	close(fd);
	fd = other_file(4096, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	card.fd = (uint16_t)fd;
	tap_ok(!maps(&card), "nor where it is shorter");
	close(fd);
}

static void mem_tests(void)
{
	static const int32_t lead[3] = {0, 0, 2};
	const enum lines_level all[3] = {LINES_FAR, LINES_FAR, LINES_NONE},
			       near[3] = {LINES_FAR, LINES_NEAR, LINES_NONE},
			       none[3] = {LINES_FAR, LINES_NONE, LINES_NONE};
	struct lines_card card[3] = {{0}};
	struct lines_mem a, b;

	lines_mem_open(&a, LINES_AUTO, &card[0]);
	lines_mem_open(&b, LINES_AUTO, &card[1]);
	if (!card[0].pid || !card[1].pid)
		tap_bail("no memory for lines");
	tap_ok(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, a.fd, 0) == MAP_FAILED ||
		       !(fcntl(a.fd, F_GET_SEALS) & 0x10),
	       "nobody else can write where the kernel can promise it");
	lines_mem_map(&a, lead, card_at, card, 3, 0);
	lines_mem_map(&b, lead, card_at, card, 3, 1);
	tap_ok(a.level == LINES_FAR && b.level == LINES_FAR, "two ranks of one node");
	lines_mem_own(&a, 5)->head[1].sig = 1234;
	tap_ok(lines_mem_of(&b, 0, 5)->head[1].sig == 1234, "see what the other writes");
	read_tests(&a);
	refusal_tests(&card[1],
		      sizeof(struct lines_area) * LINES_AREAS + (size_t)LINES_PAGE);
	lines_mem_agree(&a, lead, 0, all_have, all);
	lines_mem_agree(&b, lead, 1, all_have, none);
	tap_ok(a.good == LINES_FAR && b.good == LINES_NONE,
	       "used where all of the node have all");
	lines_mem_agree(&a, lead, 0, all_have, near);
	tap_ok(a.good == LINES_NEAR, "as far as all of it have it");
	tap_ok(!maps(&card[1]), "once all have it, nobody else gets at it");
	lines_mem_close(&a);
	lines_mem_close(&b);
	lines_mem_open(&a, LINES_OFF, &card[0]);
	lines_mem_map(&a, lead, card_at, card, 3, 0);
	tap_ok(!card[0].pid && a.level == LINES_NONE, "none where they are turned off");
	lines_mem_close(&a);
}

static void wish_tests(void)
{
	enum lines_wish wish = LINES_ON;

	tap_ok(lines_read(NULL, &wish) == WEFT_SUCCESS && wish == LINES_AUTO &&
		       lines_read("off", &wish) == WEFT_SUCCESS && wish == LINES_OFF &&
		       lines_read("on", &wish) == WEFT_SUCCESS && wish == LINES_ON &&
		       lines_read("short", &wish) == WEFT_SUCCESS &&
		       wish == LINES_ONLY_SHORT,
	       "WEFT_LINES");
	tap_ok(lines_read("yes", &wish) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), "auto, on, short or off"),
	       "another word is refused");
}

int main(void)
{
	const char *given = getenv("WEFT_SEED");

	state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	tap_diag("seed %llu (repeat with WEFT_SEED=%llu)", (unsigned long long)state,
		 (unsigned long long)state);
	model_tests();
	look_tests();
	thread_tests();
	mem_tests();
	wish_tests();
	return tap_done();
}
