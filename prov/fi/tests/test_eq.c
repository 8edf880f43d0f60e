/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queue: sizes, peeking, errors in their place, sleeping. */
#include "config.h"

#include <poll.h>

#include <rdma/fi_errno.h>

#include "prov/fi/eq.h"
#include "prov/fi/tests/fi_test.h"
#include "prov/fi/wait.h"
#include "util/fi_names.h"
#include "util/tap.h"

static struct env env;
static struct fid_eq *eq;

static void eq_open(enum fi_wait_obj wait_obj)
{
	struct fi_eq_attr attr = {.flags = FI_WRITE, .wait_obj = wait_obj};

	if (fi_eq_open(env.fabric, &attr, &eq, NULL))
		tap_bail("no event queue");
}

static void write_one(void *arg)
{
	fi_eq_write(eq, FI_NOTIFY, arg, 3, 0);
}

static void test_order(void)
{
	struct fi_eq_err_entry error = {
		.fid = &env.domain->fid, .data = 4, .err = FI_EINVAL};
	struct fi_eq_err_entry got = {0};
	uint32_t event = 99;
	char buf[16];

	eq_open(FI_WAIT_NONE);
	tap_is_int(fi_eq_read(eq, &event, buf, sizeof(buf), 0), -FI_EAGAIN, "empty");
	tap_is_int(fi_eq_readerr(eq, &got, 0), -FI_EAGAIN, "no error");
	tap_is_int(fi_eq_write(eq, 7, "abc", 3, 0), 3, "write 3 bytes");
	tap_is_int(wfi_eq_report_error(wfi_eq_of(&eq->fid), &error), 0, "an error");
	tap_is_int(fi_eq_write(eq, 8, "", 0, 0), 0, "an event without data");
	tap_is_int(fi_eq_read(eq, &event, buf, 2, 0), -FI_ETOOSMALL, "no room");
	tap_is_int(fi_eq_read(eq, &event, buf, sizeof(buf), FI_PEEK), 3, "peek");
	tap_is_int(fi_eq_read(eq, &event, buf, sizeof(buf), 0), 3, "read");
	tap_is_int(event, 7, "the event");
	tap_is_mem(buf, "abc", 3, "the data");
	tap_is_int(fi_eq_read(eq, &event, buf, sizeof(buf), 0), -FI_EAVAIL,
		   "then the error");
	tap_is_int(fi_eq_sread(eq, &event, buf, sizeof(buf), 1000, 0), -FI_EAVAIL,
		   "sread too");
	tap_is_int(fi_eq_readerr(eq, &got, FI_PEEK), sizeof(got), "peek at it");
	got.err_data = buf;
	got.err_data_size = sizeof(buf);
	tap_is_int(fi_eq_readerr(eq, &got, 0), sizeof(got), "read it");
	tap_ok(got.err == FI_EINVAL && got.data == 4 && got.fid == &env.domain->fid,
	       "it is it");
	tap_ok(got.err_data == buf && !got.err_data_size, "without data");
	tap_is_int(fi_eq_read(eq, &event, buf, sizeof(buf), 0), 0, "the last event");
	tap_is_int(event, 8, "is the right one");
	tap_is_int(fi_eq_read(eq, &event, buf, sizeof(buf), 0), -FI_EAGAIN, "empty");
	tap_is_int(fi_eq_write(eq, 1, buf, 1 << 20, 0), -FI_EINVAL, "too much");
	tap_is_int(fi_eq_write(eq, 1, buf, 1, FI_MORE), -FI_EBADFLAGS, "unknown flags");
	tap_is_int(fi_eq_read(eq, &event, buf, 1, FI_MORE), -FI_EBADFLAGS,
		   "unknown flags");
	fi_eq_write(eq, 1, "x", 1, 0);
	tap_is_int(fi_close(&eq->fid), 0, "closing drops what wasn't read");
}

static void test_sleep(void)
{
	struct pollfd p = {.events = POLLIN};
	struct fid *fids[1];
	uint64_t start = wfi_now_ns();
	struct later l;
	uint32_t event;
	char buf[16];

	eq_open(FI_WAIT_FD);
	fids[0] = &eq->fid;
	tap_is_int(fi_eq_sread(eq, &event, buf, sizeof(buf), 50, 0), -FI_EAGAIN,
		   "nothing");
	tap_ok(wfi_now_ns() - start >= 49000000, "it waited");
	later_start(&l, 30, write_one, "xyz");
	tap_is_int(fi_eq_sread(eq, &event, buf, sizeof(buf), 10000, 0), 3,
		   "an event wakes");
	later_join(&l);
	later_start(&l, 30, write_one, "xyz");
	tap_is_int(fi_eq_sread(eq, &event, buf, sizeof(buf), -1, 0), 3,
		   "without a limit too");
	later_join(&l);
	tap_is_int(fi_control(&eq->fid, FI_GETWAIT, &p.fd), 0, "a descriptor");
	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "nothing: sleep");
	tap_is_int(poll(&p, 1, 10), 0, "quiet");
	write_one("abc");
	write_one("abc");
	tap_is_int(poll(&p, 1, 1000), 1, "readable");
	tap_is_int(fi_trywait(env.fabric, fids, 1), -FI_EAGAIN, "don't sleep");
	fi_eq_read(eq, &event, buf, sizeof(buf), 0);
	tap_is_int(poll(&p, 1, 0), 1, "while one is left");
	fi_eq_read(eq, &event, buf, sizeof(buf), 0);
	tap_is_int(poll(&p, 1, 0), 0, "then quiet");
	wfi_eq_get(wfi_eq_of(&eq->fid));
	tap_is_int(fi_close(&eq->fid), -FI_EBUSY, "no close while bound");
	wfi_eq_put(wfi_eq_of(&eq->fid));
	tap_is_int(fi_close(&eq->fid), 0, "close");
}

static void test_refused(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_SET};
	int fd;

	tap_is_int(fi_eq_open(env.fabric, &attr, &eq, NULL), -FI_EINVAL,
		   "no wait set is given");
	attr.wait_obj = 99;
	tap_is_int(fi_eq_open(env.fabric, &attr, &eq, NULL), -FI_ENOSYS,
		   "no such wait object");
	attr = (struct fi_eq_attr){.flags = 1ull << 40};
	tap_is_int(fi_eq_open(env.fabric, &attr, &eq, NULL), -FI_EBADFLAGS,
		   "unknown flags");
	eq_open(FI_WAIT_UNSPEC);
	tap_is_int(fi_control(&eq->fid, FI_GETWAIT, &fd), -FI_ENODATA,
		   "no descriptor to give");
	tap_is_int(fi_domain_bind(env.domain, &eq->fid, FI_REG_MR), -FI_ENOSYS,
		   "no events for registrations");
	tap_is_int(fi_close(&env.fabric->fid), -FI_EBUSY,
		   "the fabric waits for its objects");
	fi_close(&eq->fid);
}

int main(void)
{
	env_open(&env, &(struct env_want){0});
	test_order();
	test_sleep();
	test_refused();
	env_close(&env);
	return tap_done();
}
