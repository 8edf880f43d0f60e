/* SPDX-License-Identifier: BSD-2-Clause */
/* Counter: arithmetic, waiting, errors that end a wait, descriptors. */
#include "config.h"

#include <poll.h>

#include <rdma/fi_errno.h>

#include "prov/fi/tests/fi_test.h"
#include "prov/fi/wait.h"
#include "util/tap.h"

#define NEVER_MS 60000 /* more than anything needs, on whatever machine */

static struct env env;
static struct engine engine;
static struct fid_cntr *cntr;

static void cntr_open(enum fi_wait_obj wait_obj)
{
	struct fi_cntr_attr attr = {.wait_obj = wait_obj};

	if (fi_cntr_open(env.domain, &attr, &cntr, NULL))
		tap_bail("no counter");
	engine.cntr = engine.error_cntr = wfi_cntr_of(&cntr->fid);
	wfi_cntr_attach(engine.cntr, &engine.base);
}

static void cntr_close(void)
{
	tap_is_int(fi_close(&cntr->fid), -FI_EBUSY, "no close while attached");
	wfi_cntr_detach(engine.cntr, &engine.base);
	tap_is_int(fi_close(&cntr->fid), 0, "close");
	engine.cntr = engine.error_cntr = NULL;
}

static void test_arithmetic(void)
{
	cntr_open(FI_WAIT_NONE);
	tap_is_int((int64_t)fi_cntr_read(cntr), 0, "0 at first");
	fi_cntr_set(cntr, 10);
	fi_cntr_add(cntr, 5);
	fi_cntr_seterr(cntr, 20);
	fi_cntr_adderr(cntr, 7);
	tap_is_int((int64_t)fi_cntr_read(cntr), 15, "set, add");
	tap_is_int((int64_t)fi_cntr_readerr(cntr), 27, "seterr, adderr");
	engine_post(&engine, 3);
	tap_is_int((int64_t)fi_cntr_read(cntr), 18, "reading progresses");
	engine_post_error(&engine);
	tap_is_int((int64_t)fi_cntr_readerr(cntr), 28, "and so does readerr");
	cntr_close();
}

static void post_two(void *arg)
{
	(void)arg;
	engine_post(&engine, 1);
	sleep_ms(20);
	engine_post(&engine, 1);
}

static void post_error(void *arg)
{
	(void)arg;
	engine_post_error(&engine);
}

static void add_two(void *arg)
{
	(void)arg;
	fi_cntr_add(cntr, 2);
}

static void test_wait(enum fi_wait_obj wait_obj)
{
	uint64_t start = wfi_now_ns();
	struct later l;

	cntr_open(wait_obj);
	tap_is_int(fi_cntr_wait(cntr, 0, 0), 0, "0 is there");
	tap_is_int(fi_cntr_wait(cntr, 1, 50), -FI_ETIMEDOUT, "1 is not");
	tap_ok(wfi_now_ns() - start >= 49000000, "it waited");
	later_start(&l, 30, post_two, NULL);
	tap_is_int(fi_cntr_wait(cntr, 2, NEVER_MS), 0, "two arrive, one after the other");
	later_join(&l);
	later_start(&l, 30, add_two, NULL);
	tap_is_int(fi_cntr_wait(cntr, 4, NEVER_MS), 0, "the application adds two");
	later_join(&l);
	later_start(&l, 30, post_error, NULL);
	tap_is_int(fi_cntr_wait(cntr, 9, NEVER_MS), -FI_EAVAIL, "an error ends the wait");
	later_join(&l);
	tap_is_int(fi_cntr_wait(cntr, 9, 30), -FI_ETIMEDOUT, "once");
	engine_post_error(&engine);
	fi_cntr_read(cntr);
	tap_is_int(fi_cntr_wait(cntr, 9, NEVER_MS), -FI_EAVAIL,
		   "one from before the call too");
	engine_post_error(&engine);
	tap_is_int((int64_t)fi_cntr_readerr(cntr), 3, "unless the application knows");
	tap_is_int(fi_cntr_wait(cntr, 9, 30), -FI_ETIMEDOUT, "of it");
	fi_cntr_seterr(cntr, 0);
	tap_is_int(fi_cntr_wait(cntr, 9, 30), -FI_ETIMEDOUT, "setting it back is none");
	engine_post_error(&engine);
	tap_is_int(fi_cntr_wait(cntr, 9, NEVER_MS), -FI_EAVAIL,
		   "and the next is one again");
	tap_ok(wfi_now_ns() - start < NEVER_MS / 2 * 1000000ull,
	       "none of it by the clock");
	cntr_close();
}

static void test_fd(void)
{
	struct pollfd p = {.events = POLLIN};
	struct fid *fids[1];

	cntr_open(FI_WAIT_FD);
	fids[0] = &cntr->fid;
	tap_is_int(fi_control(&cntr->fid, FI_GETWAIT, &p.fd), 0, "a descriptor");
	engine_post(&engine, 1);
	tap_is_int(fi_trywait(env.fabric, fids, 1), -FI_EAGAIN,
		   "it counted: don't sleep");
	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "nothing since: sleep");
	tap_is_int(poll(&p, 1, 20), 0, "quiet");
	fi_cntr_add(cntr, 1);
	tap_is_int(poll(&p, 1, 1000), 1, "readable for a count");
	tap_is_int((int64_t)fi_cntr_read(cntr), 2, "2");
	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "sleep");
	engine_post(&engine, 1);
	tap_is_int(poll(&p, 1, 1000), 1, "readable for the transport");
	cntr_close();
}

static void test_refused(void)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_SET};

	tap_is_int(fi_cntr_open(env.domain, &attr, &cntr, NULL), -FI_EINVAL,
		   "no wait set is given");
	attr.wait_obj = 99;
	tap_is_int(fi_cntr_open(env.domain, &attr, &cntr, NULL), -FI_ENOSYS,
		   "no such wait object");
	attr = (struct fi_cntr_attr){.events = 1};
	tap_is_int(fi_cntr_open(env.domain, &attr, &cntr, NULL), -FI_ENOSYS,
		   "counting bytes");
	attr = (struct fi_cntr_attr){.flags = 1};
	tap_is_int(fi_cntr_open(env.domain, &attr, &cntr, NULL), -FI_EBADFLAGS, "flags");
	wfi_cntr_inc(NULL);
	wfi_cntr_inc_error(NULL);
	tap_ok(true, "no counter is fine");
}

int main(void)
{
	env_open(&env, &(struct env_want){0});
	engine_init(&engine);
	test_arithmetic();
	test_wait(FI_WAIT_NONE);
	test_wait(FI_WAIT_UNSPEC);
	test_wait(FI_WAIT_FD);
	test_fd();
	test_refused();
	engine_fini(&engine);
	env_close(&env);
	return tap_done();
}
