/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_WAIT_MUTEX_COND and FI_WAIT_YIELD: whoever waits on a condition misses nothing and
 * may hold the mutex while it reads; what can't work is refused. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include "prov/fi/eq.h"
#include "prov/fi/tests/fi_test.h"
#include "prov/fi/wait.h"
#include "util/tap.h"

#define ROUNDS	2000
#define LONG_MS 60000 /* more than anything needs, on whatever machine */

static struct env env;
static struct engine engine;

static struct fid_cq *cq_open(enum fi_wait_obj wait_obj)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = wait_obj};
	struct fid_cq *cq;

	if (fi_cq_open(env.domain, &attr, &cq, NULL))
		tap_bail("no queue");
	engine.cq = wfi_cq_of(&cq->fid);
	wfi_domain_lock(wfi_domain_of(env.domain));
	wfi_cq_attach(engine.cq, &engine.base);
	wfi_domain_unlock(wfi_domain_of(env.domain));
	return cq;
}

static void cq_close(struct fid_cq *cq)
{
	wfi_domain_lock(wfi_domain_of(env.domain));
	wfi_cq_detach(wfi_cq_of(&cq->fid), &engine.base);
	wfi_domain_unlock(wfi_domain_of(env.domain));
	engine.cq = NULL;
	tap_is_int(fi_close(&cq->fid), 0, "close");
}

static struct timespec in_ms(int ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += (ms % 1000) * 1000000L;
	if (ts.tv_nsec >= 1000000000L) {
		ts.tv_nsec -= 1000000000L;
		ts.tv_sec++;
	}
	return ts;
}

/* As an application does it: reads under the mutex, waits when there is nothing. */
static ssize_t cond_read(struct fid_cq *cq, struct fi_mutex_cond *mc,
			 struct fi_cq_data_entry *got)
{
	struct timespec until = in_ms(LONG_MS);
	ssize_t rc;

	pthread_mutex_lock(mc->mutex);
	while ((rc = fi_cq_read(cq, got, 1)) == -FI_EAGAIN)
		if (pthread_cond_timedwait(mc->cond, mc->mutex, &until))
			break;
	pthread_mutex_unlock(mc->mutex);
	return rc;
}

static void *poster(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		engine_post(&engine, 1);
		if (i % 16 == 0)
			sleep_ms(1);
	}
	return NULL;
}

/* Writes into the queue under the domain's lock, as a call on an endpoint does. */
static void *writer(void *arg)
{
	struct wfi_cq *cq = arg;
	struct wfi_domain *d = wfi_cq_domain(cq);
	struct wfi_cq_entry entry = {.data = 7};

	for (int i = 0; i < ROUNDS; i++) {
		wfi_domain_lock(d);
		wfi_cq_write(cq, &entry);
		wfi_domain_unlock(d);
		if (i % 16 == 0)
			sleep_ms(1);
	}
	return NULL;
}

static void test_cond_auto(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_MUTEX_COND);
	struct fi_mutex_cond mc = {0}, again = {0};
	struct fid *fids[] = {&cq->fid};
	struct fi_cq_data_entry got;
	pthread_t threads[2];
	enum fi_wait_obj obj;
	int missing = 0;

	tap_ok(!fi_control(&cq->fid, FI_GETWAITOBJ, &obj) && obj == FI_WAIT_MUTEX_COND,
	       "it is that object");
	tap_is_int(fi_control(&cq->fid, FI_GETWAIT, &mc), 0, "mutex and condition");
	tap_ok(mc.mutex && mc.cond, "are there");
	tap_is_int(fi_control(&cq->fid, FI_GETWAIT, &again), 0, "and again");
	tap_ok(again.mutex == mc.mutex && again.cond == mc.cond, "the same ones");
	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "nothing there: wait");
	pthread_create(&threads[0], NULL, poster, NULL);
	pthread_create(&threads[1], NULL, writer, engine.cq);
	for (int i = 0; i < 2 * ROUNDS; i++)
		missing += cond_read(cq, &mc, &got) != 1;
	tap_is_int(missing, 0, "of many entries none is missed by a waiter");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	engine_post(&engine, 1);
	/* When the thread has brought it. */
	for (int i = 0; i < 2000 && fi_trywait(env.fabric, fids, 1) == 0; i++)
		sleep_ms(5);
	tap_is_int(fi_trywait(env.fabric, fids, 1), -FI_EAGAIN, "one there: read");
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, 1000), 1, "sread works beside it");
	cq_close(cq);
}

static void test_cond_counter(void)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_MUTEX_COND};
	struct timespec until = in_ms(LONG_MS);
	struct fid_cntr *cntr;
	struct fi_mutex_cond mc;
	pthread_t thread;

	fi_cntr_open(env.domain, &attr, &cntr, NULL);
	engine.cntr = wfi_cntr_of(&cntr->fid);
	wfi_domain_lock(wfi_domain_of(env.domain));
	wfi_cntr_attach(engine.cntr, &engine.base);
	wfi_domain_unlock(wfi_domain_of(env.domain));
	tap_is_int(fi_control(&cntr->fid, FI_GETWAIT, &mc), 0, "of a counter");
	pthread_create(&thread, NULL, poster, NULL);
	pthread_mutex_lock(mc.mutex);
	while (fi_cntr_read(cntr) < ROUNDS)
		if (pthread_cond_timedwait(mc.cond, mc.mutex, &until))
			break;
	pthread_mutex_unlock(mc.mutex);
	tap_is_int((int64_t)fi_cntr_read(cntr), ROUNDS, "its waiter hears of each");
	pthread_join(thread, NULL);
	wfi_domain_lock(wfi_domain_of(env.domain));
	wfi_cntr_detach(engine.cntr, &engine.base);
	engine.cntr = NULL;
	wfi_domain_unlock(wfi_domain_of(env.domain));
	tap_is_int(fi_close(&cntr->fid), 0, "close");
}

static void post_one(void *arg)
{
	(void)arg;
	engine_post(&engine, 1);
}

/* With manual progress nothing would come while the application sleeps on it. */
static void test_cond_manual(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_MUTEX_COND);
	struct fi_cq_data_entry got;
	struct fi_mutex_cond mc;
	struct later l;

	tap_is_int(fi_control(&cq->fid, FI_GETWAIT, &mc), -FI_EOPNOTSUPP,
		   "manual progress: no condition to wait on");
	later_start(&l, 50, post_one, NULL);
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, LONG_MS), 1,
		   "but a blocking read works");
	later_join(&l);
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, 20), -FI_EAGAIN, "and ends in time");
	cq_close(cq);
}

static void test_yield(void)
{
	struct fid_cq *cq = cq_open(FI_WAIT_YIELD);
	uint64_t start = wfi_now_ns();
	struct fi_cq_data_entry got;
	struct later l;
	int fd;

	tap_is_int(fi_control(&cq->fid, FI_GETWAIT, &fd), -FI_ENODATA,
		   "yield: nothing to get");
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, 30), -FI_EAGAIN, "nothing comes");
	tap_ok(wfi_now_ns() - start >= 29000000, "in 30 ms");
	later_start(&l, 30, post_one, NULL);
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, LONG_MS), 1, "something comes");
	later_join(&l);
	cq_close(cq);
}

static void write_event(void *arg)
{
	fi_eq_write(arg, FI_NOTIFY, "abc", 3, 0);
}

static void test_eq_cond(void)
{
	struct fi_eq_attr attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_MUTEX_COND};
	struct timespec until = in_ms(LONG_MS);
	struct fi_mutex_cond mc;
	struct fid_eq *eq;
	struct later l;
	uint32_t event;
	char buf[8];
	ssize_t rc;

	tap_is_int(fi_eq_open(env.fabric, &attr, &eq, NULL), 0, "an event queue");
	tap_is_int(fi_control(&eq->fid, FI_GETWAIT, &mc), 0, "with a condition");
	later_start(&l, 30, write_event, eq);
	pthread_mutex_lock(mc.mutex);
	while ((rc = fi_eq_read(eq, &event, buf, sizeof(buf), 0)) == -FI_EAGAIN)
		if (pthread_cond_timedwait(mc.cond, mc.mutex, &until))
			break;
	/* Its holder may write. */
	write_event(eq);
	pthread_mutex_unlock(mc.mutex);
	later_join(&l);
	tap_is_int(rc, 3, "an event wakes");
	tap_is_int(fi_eq_sread(eq, &event, buf, sizeof(buf), 1000, 0), 3,
		   "written under the mutex");
	tap_is_int(fi_close(&eq->fid), 0, "close");
}

static void test_eq_yield(void)
{
	struct fi_eq_attr attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_YIELD};
	uint64_t start = wfi_now_ns();
	struct fid_eq *eq;
	struct later l;
	uint32_t event;
	char buf[8];

	tap_is_int(fi_eq_open(env.fabric, &attr, &eq, NULL), 0, "an event queue");
	tap_is_int(fi_eq_sread(eq, &event, buf, sizeof(buf), 30, 0), -FI_EAGAIN,
		   "that yields");
	tap_ok(wfi_now_ns() - start >= 29000000, "for 30 ms");
	later_start(&l, 30, write_event, eq);
	tap_is_int(fi_eq_sread(eq, &event, buf, sizeof(buf), -1, 0), 3, "or for ever");
	later_join(&l);
	tap_is_int(fi_close(&eq->fid), 0, "close");
}

int main(void)
{
	engine_init(&engine);
	env_open(&env, &(struct env_want){.progress = FI_PROGRESS_AUTO});
	test_cond_auto();
	test_cond_counter();
	test_eq_cond();
	env_close(&env);
	env_open(&env, &(struct env_want){.progress = FI_PROGRESS_MANUAL});
	test_cond_manual();
	test_yield();
	test_eq_yield();
	env_close(&env);
	engine_fini(&engine);
	return tap_done();
}
