/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocking calls: they end in time, they are woken, and nobody is forgotten. */
#include "config.h"

#include <poll.h>
#include <sys/resource.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/cq_int.h"
#include "prov/fi/tests/fi_test.h"
#include "prov/fi/wait.h"
#include "util/tap.h"

/* A wake-up that comes is here well before, one that is missing well after. */
#define SOON_MS	 10000
#define NEVER_MS 30000

static struct env env;
static struct engine engine;

static struct fid_cq *cq_open(enum fi_wait_obj wait_obj)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = wait_obj};
	struct fid_cq *cq;

	if (fi_cq_open(env.domain, &attr, &cq, NULL))
		tap_bail("no queue");
	if (wfi_cq_attach(wfi_cq_of(&cq->fid), &engine.base))
		tap_bail("no memory");
	return cq;
}

static void cq_close(struct fid_cq *cq)
{
	wfi_cq_detach(wfi_cq_of(&cq->fid), &engine.base);
	tap_is_int(fi_close(&cq->fid), 0, "close");
}

/* A blocking read on a thread of its own. */
struct reader {
	pthread_t thread;
	struct fid_cq *cq;
	ssize_t rc;
	int64_t ms;
	atomic_bool done;
};

static void *reader_run(void *arg)
{
	struct reader *r = arg;
	struct fi_cq_data_entry got;
	uint64_t start = wfi_now_ns();

	r->rc = fi_cq_sread(r->cq, &got, 1, NULL, NEVER_MS);
	r->ms = (int64_t)((wfi_now_ns() - start) / 1000000);
	atomic_store(&r->done, true);
	return NULL;
}

static void reader_start(struct reader *r, struct fid_cq *cq)
{
	memset(r, 0, sizeof(*r));
	r->cq = cq;
	if (pthread_create(&r->thread, NULL, reader_run, r))
		tap_bail("no thread");
}

/* Until that many sleep on the queue. Goes on after a while all the same, for what comes
 * before a sleep must not be lost either; whoever sleeps otherwise isn't counted. */
static void readers_asleep(struct fid_cq *cq, uint32_t count)
{
	struct wfi_domain *domain = wfi_domain_of(env.domain);

	for (int i = 0; i < SOON_MS; i++) {
		const struct wfi_wait *wait = &wfi_cq_of(&cq->fid)->wait;
		bool ready;

		wfi_domain_lock(domain);
		ready = wait->sleepers == count ||
			((wait->cond || wait->yields) && i >= 50);
		wfi_domain_unlock(domain);
		if (ready)
			return;
		sleep_ms(1);
	}
	tap_diag("%u readers do not sleep", count);
}

static void reader_expect(struct reader *r, ssize_t rc, const char *what)
{
	pthread_join(r->thread, NULL);
	tap_is_int(r->rc, rc, what);
	tap_ok(r->ms < SOON_MS, "  and in time (%" PRId64 " ms)", r->ms);
}

static void post_one(void *arg)
{
	(void)arg;
	engine_post(&engine, 1);
}

static void test_timeout(enum fi_wait_obj wait_obj)
{
	struct fid_cq *cq = cq_open(wait_obj);
	struct fi_cq_data_entry got;
	uint64_t start = wfi_now_ns(), ms;

	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, 60), -FI_EAGAIN, "nothing comes");
	ms = (wfi_now_ns() - start) / 1000000;
	tap_ok(ms >= 59 && ms < SOON_MS, "60 ms: %" PRIu64, ms);
	cq_close(cq);
}

static void test_wake(enum fi_wait_obj wait_obj)
{
	struct fid_cq *cq = cq_open(wait_obj);
	struct reader r;

	engine.cq = wfi_cq_of(&cq->fid);
	reader_start(&r, cq);
	readers_asleep(cq, 1);
	post_one(NULL);
	reader_expect(&r, 1, "what arrives wakes the reader");
	cq_close(cq);
}

/* Another thread progresses the engine, which disarms it, and goes away. */
static void test_rearm(void)
{
	struct fid_cq *a = cq_open(FI_WAIT_UNSPEC), *b = cq_open(FI_WAIT_NONE);
	struct fi_cq_data_entry got;
	struct reader r;

	engine.cq = wfi_cq_of(&a->fid);
	reader_start(&r, a);
	readers_asleep(a, 1);
	tap_is_int(fi_cq_read(b, &got, 1), -FI_EAGAIN, "another queue is read meanwhile");
	post_one(NULL);
	reader_expect(&r, 1, "the sleeper still hears what arrives");
	cq_close(a);
	cq_close(b);
}

static void test_written_by_others(void)
{
	struct fid_cq *a = cq_open(FI_WAIT_UNSPEC), *b = cq_open(FI_WAIT_NONE);
	struct fi_cq_data_entry got;
	struct reader r;

	engine.cq = wfi_cq_of(&a->fid);
	reader_start(&r, a);
	readers_asleep(a, 1);
	engine_post_quietly(&engine, 1);
	tap_is_int(fi_cq_read(b, &got, 1), -FI_EAGAIN,
		   "another queue's reader progresses");
	reader_expect(&r, 1, "the sleeper gets what that brought");
	cq_close(a);
	cq_close(b);
}

static void test_two_sleepers(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_UNSPEC);
	struct reader r[2];

	engine.cq = wfi_cq_of(&cq->fid);
	reader_start(&r[0], cq);
	reader_start(&r[1], cq);
	readers_asleep(cq, 2);
	post_one(NULL);
	for (int i = 0; i < SOON_MS / 10; i++) {
		if (atomic_load(&r[0].done) || atomic_load(&r[1].done))
			break;
		sleep_ms(10);
	}
	tap_ok(atomic_load(&r[0].done) != atomic_load(&r[1].done),
	       "one entry ends one of two sleeps");
	post_one(NULL);
	reader_expect(&r[0], 1, "two entries, two readers");
	reader_expect(&r[1], 1, "the other");
	cq_close(cq);
}

#define CROWD	     6
#define CROWD_ROUNDS 25

struct crowd {
	struct fid_cntr *cntr;
	uint64_t want;
	atomic_int late;
};

static void *crowd_run(void *arg)
{
	struct crowd *c = arg;
	uint64_t start = wfi_now_ns();

	if (fi_cntr_wait(c->cntr, c->want, NEVER_MS) ||
	    wfi_now_ns() - start > SOON_MS * 1000000ull)
		atomic_fetch_add(&c->late, 1);
	return NULL;
}

/* One event wakes all who wait for it: whoever is first must not take it from the
 * others. */
static void test_crowd(void)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_cq *other = cq_open(FI_WAIT_NONE);
	struct fi_cq_data_entry got;
	pthread_t threads[CROWD];
	struct crowd c = {.want = 0};

	if (fi_cntr_open(env.domain, &attr, &c.cntr, NULL) ||
	    wfi_cntr_attach(wfi_cntr_of(&c.cntr->fid), &engine.base))
		tap_bail("no counter");
	engine.cq = NULL;
	engine.cntr = wfi_cntr_of(&c.cntr->fid);
	for (int round = 0; round < CROWD_ROUNDS && !atomic_load(&c.late); round++) {
		c.want++;
		for (int i = 0; i < CROWD; i++)
			if (pthread_create(&threads[i], NULL, crowd_run, &c))
				tap_bail("no thread");
		sleep_ms(5);
		engine_post_quietly(&engine, 1);
		fi_cq_read(other, &got, 1); /* progresses the engine for all of them */
		for (int i = 0; i < CROWD; i++)
			pthread_join(threads[i], NULL);
	}
	tap_is_int(atomic_load(&c.late), 0, "nobody of a crowd sleeps on");
	engine.cntr = NULL;
	wfi_cntr_detach(wfi_cntr_of(&c.cntr->fid), &engine.base);
	tap_is_int(fi_close(&c.cntr->fid), 0, "close");
	cq_close(other);
}

static void test_signal(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_UNSPEC);
	struct fi_cq_data_entry got;
	struct reader r[2];
	uint64_t start;

	reader_start(&r[0], cq);
	reader_start(&r[1], cq);
	readers_asleep(cq, 2);
	tap_is_int(fi_cq_signal(cq), 0, "a signal");
	tap_is_int(fi_cq_signal(cq), 0, "and another");
	reader_expect(&r[0], -FI_EAGAIN, "each wakes a reader");
	reader_expect(&r[1], -FI_EAGAIN, "with nothing");
	tap_is_int(fi_cq_signal(cq), 0, "a signal when nobody sleeps");
	start = wfi_now_ns();
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, NEVER_MS), -FI_EAGAIN,
		   "is kept for the next");
	tap_ok(wfi_now_ns() - start < SOON_MS * 1000000ull, "which comes back at once");
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, 20), -FI_EAGAIN,
		   "the one after it waits");
	cq_close(cq);
}

/* Something is due in a while, and who asks before that may sleep: in a longer while
 * where the first is over before it could be asked. What fi_trywait said. */
static int due_later(struct fid_cq *cq, struct fid **fids)
{
	struct fi_cq_data_entry got;
	int rc = -FI_EAGAIN;

	for (uint64_t ms = 50; ms <= NEVER_MS / 4; ms *= 4) {
		const uint64_t due = wfi_now_ns() + ms * 1000000;

		atomic_store(&engine.due, due);
		rc = fi_trywait(env.fabric, fids, 1);
		if (rc != -FI_EAGAIN || wfi_now_ns() < due)
			break;
		fi_cq_read(cq, &got, 1);
	}
	return rc;
}

static void test_due(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_FD);
	struct fid *fids[] = {&cq->fid};
	struct fi_cq_data_entry got;
	struct pollfd p = {.events = POLLIN};
	uint64_t start = wfi_now_ns();

	engine.cq = wfi_cq_of(&cq->fid);
	atomic_store(&engine.due, start + 50000000);
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, NEVER_MS), 1, "due by the clock only");
	tap_ok(wfi_now_ns() - start < SOON_MS * 1000000ull, "it ended the sleep");

	tap_is_int(fi_control(&cq->fid, FI_GETWAIT, &p.fd), 0, "its descriptor");
	tap_is_int(due_later(cq, fids), 0, "nothing yet");
	tap_is_int(poll(&p, 1, NEVER_MS), 1, "the descriptor says so as well");
	tap_is_int(fi_cq_read(cq, &got, 1), 1, "here it is");
	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "then nothing is due");
	tap_is_int(poll(&p, 1, 20), 0, "and the descriptor is quiet");
	cq_close(cq);
}

static void test_trywait(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_FD), *other = cq_open(FI_WAIT_NONE);
	struct fid *fids[] = {&cq->fid};
	struct fi_cq_data_entry got;
	struct pollfd p = {.events = POLLIN};

	engine.cq = wfi_cq_of(&cq->fid);
	tap_is_int(fi_control(&cq->fid, FI_GETWAIT, &p.fd), 0, "a descriptor");
	engine_post(&engine, 1);
	tap_is_int(fi_trywait(env.fabric, fids, 1), -FI_EAGAIN,
		   "something came: don't sleep");
	tap_is_int(fi_cq_read(cq, &got, 1), 1, "it is read");
	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "nothing left: sleep");
	tap_is_int(poll(&p, 1, 0), 0, "quiet");
	engine_post(&engine, 1);
	tap_is_int(poll(&p, 1, SOON_MS), 1, "readable for what the transport has");
	tap_is_int(fi_cq_read(cq, &got, 1), 1, "read");

	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "sleep again");
	tap_is_int(fi_cq_read(other, &got, 1), -FI_EAGAIN, "another queue is read");
	engine_post(&engine, 1);
	tap_is_int(poll(&p, 1, SOON_MS), 1, "readable all the same");
	tap_is_int(fi_cq_read(cq, &got, 1), 1, "read");

	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "sleep again");
	engine_post_quietly(&engine, 1);
	tap_is_int(fi_cq_read(other, &got, 1), -FI_EAGAIN, "another's reader brings it");
	tap_is_int(poll(&p, 1, SOON_MS), 1, "readable for an entry");
	tap_is_int(fi_cq_read(cq, &got, 1), 1, "read");
	cq_close(cq);
	cq_close(other);
}

static void test_attach_while_asleep(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA};
	struct fid_cq *cq;
	struct reader r;

	fi_cq_open(env.domain, &attr, &cq, NULL);
	reader_start(&r, cq);
	readers_asleep(cq, 1);
	engine.cq = wfi_cq_of(&cq->fid);
	wfi_domain_lock(wfi_domain_of(env.domain));
	wfi_cq_attach(wfi_cq_of(&cq->fid), &engine.base);
	wfi_domain_unlock(wfi_domain_of(env.domain));
	sleep_ms(50);
	post_one(NULL);
	reader_expect(&r, 1, "an engine that came after the sleep began");
	cq_close(cq);
}

static void test_enable_while_asleep(void)
{
	struct wfi_domain *domain = wfi_domain_of(env.domain);
	struct fid_cq *cq;
	struct reader r;

	atomic_store(&engine.disabled, true);
	cq = cq_open(FI_WAIT_UNSPEC);
	engine.cq = wfi_cq_of(&cq->fid);
	reader_start(&r, cq);
	readers_asleep(cq, 1);
	wfi_domain_lock(domain);
	atomic_store(&engine.disabled, false);
	wfi_domain_rearm(domain, &engine.base);
	wfi_domain_unlock(domain);
	sleep_ms(50);
	post_one(NULL);
	reader_expect(&r, 1, "an engine that was enabled after the sleep began");
	cq_close(cq);
}

static void test_no_descriptors(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_UNSPEC);
	struct rlimit old, none;
	struct fi_cq_data_entry got;
	struct later l;

	engine.cq = wfi_cq_of(&cq->fid);
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, 30), -FI_EAGAIN, "without descriptors");
	later_start(&l, 50, post_one, NULL);
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, NEVER_MS), 1,
		   "what comes is found by polling");
	later_join(&l);
	setrlimit(RLIMIT_NOFILE, &old);
	cq_close(cq);
}

static int never_armed(struct wfi_pollable *p)
{
	(void)p;
	return -FI_EAGAIN;
}

/* An engine that never comes to rest must not burn a processor. */
static void test_restless(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_UNSPEC);
	const struct wfi_pollable_ops *usual = engine.base.ops;
	struct wfi_pollable_ops restless = *usual;
	struct fi_cq_data_entry got;
	int polls;

	restless.arm = never_armed;
	engine.base.ops = &restless;
	/* The first 20 us are polling; after that a pause follows each poll. */
	polls = atomic_load(&engine.polls);
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, 100), -FI_EAGAIN, "100 ms of nothing");
	polls = atomic_load(&engine.polls) - polls;
	tap_ok(polls < 3000, "%d polls", polls);
	engine.base.ops = usual;
	cq_close(cq);
}

static bool sread_sleeps(struct stop *s)
{
	struct fi_cq_data_entry got;
	struct fid_cq *cq;

	env_open(&env, &(struct env_want){.threading = FI_THREAD_SAFE});
	engine_init(&engine);
	cq = cq_open(FI_WAIT_UNSPEC);
	engine.cq = wfi_cq_of(&cq->fid);
	stop_soon(s, &engine);
	return fi_cq_sread(cq, &got, 1, NULL, NEVER_MS) == 1;
}

int main(void)
{
	tap_ok(stop_while(sread_sleeps), "a process that is stopped sleeps on after it");
	env_open(&env, &(struct env_want){.threading = FI_THREAD_SAFE});
	engine_init(&engine);
	test_timeout(FI_WAIT_NONE);
	test_timeout(FI_WAIT_UNSPEC);
	test_timeout(FI_WAIT_FD);
	test_timeout(FI_WAIT_MUTEX_COND);
	test_timeout(FI_WAIT_YIELD);
	test_wake(FI_WAIT_NONE);
	test_wake(FI_WAIT_UNSPEC);
	test_wake(FI_WAIT_FD);
	test_wake(FI_WAIT_MUTEX_COND);
	test_wake(FI_WAIT_YIELD);
	test_rearm();
	test_written_by_others();
	test_two_sleepers();
	test_crowd();
	test_signal();
	test_due();
	test_trywait();
	test_attach_while_asleep();
	test_enable_while_asleep();
	test_no_descriptors();
	test_restless();
	engine_fini(&engine);
	env_close(&env);
	return tap_done();
}
