/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics of the peer's device between two processes, over whatever libibverbs is found
 * (native.t runs it over emulated devices, also over such that fail): each is carried out
 * once, or fails and was carried out at most once (rule E4). NATIVE_FAILS: none, some.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "util/tap.h"

/* Each add has a byte of its own, which says how often it was carried out. */
#define WORDS 64u
#define ADDS  (WORDS * 8u)

static struct rig rig;
static struct server_packet mem; /* the peer's: arg address, arg2 key */
static uint64_t *copy;
static void *handle;

static struct {
	int over;
	int err[ADDS];
	uint64_t was[ADDS];
	uint64_t last;
	int late; /* that ended before one that was called before */
} heard;

static void on_atomic(struct rig *r, uint64_t cookie, uint64_t was, int err)
{
	(void)r;
	heard.over++;
	heard.late += cookie < heard.last;
	heard.last = cookie;
	heard.err[cookie] = err;
	heard.was[cookie] = was;
}

static void forget(void)
{
	memset(&heard, 0, sizeof(heard));
}

/* Waits for room. */
static void start(const struct wire_atomic *a)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (rig_now() < end) {
		int ret = rig.dialled ? verbs_wire_ops.atomic(rig.dialled, a) : 0;

		if (!rig.dialled)
			tap_bail("the link went: %s", fi_strerror(-rig.down_err));
		if (ret == 0)
			return;
		rig_step(&rig);
	}
	tap_bail("no room for an atomic");
}

/* One, waited for: its error. */
static int once(bool compare, uint64_t addr, uint64_t key, uint64_t operand,
		uint64_t expect)
{
	const struct wire_atomic a = {.addr = addr,
				      .key = key,
				      .compare = compare,
				      .operand = operand,
				      .expect = expect};

	forget();
	start(&a);
	if (!rig_wait_int(&rig, &heard.over, 1))
		tap_bail("an atomic that doesn't end");
	return heard.err[0];
}

static struct server_packet registered(uint64_t len, uint64_t access)
{
	if (!server_ask(&rig, rig.dialled, SERVER_REGISTER, len, access))
		tap_bail("no answer");
	return server_answer(&rig);
}

static void look(void)
{
	if (rig_move(&rig, rig.dialled, false, copy, handle, WORDS * 8, mem.arg,
		     mem.arg2))
		tap_bail("the memory can't be read");
}

static void test_values(void)
{
	uint64_t before;

	look();
	before = copy[0];
	tap_ok(once(false, mem.arg, mem.arg2, 5, 0) == 0 && heard.was[0] == before,
	       "a sum says what was there");
	tap_ok(once(true, mem.arg, mem.arg2, 77, before + 4) == 0 &&
		       heard.was[0] == before + 5,
	       "a swap that expects something else says what is there");
	look();
	tap_ok(copy[0] == before + 5, "and changes nothing");
	tap_ok(once(true, mem.arg, mem.arg2, 77, before + 5) == 0, "one that is right");
	look();
	tap_ok(copy[0] == 77, "does");
}

static void test_refused(void)
{
	struct server_packet one;

	tap_is_int(once(false, mem.arg + 4, mem.arg2, 1, 0), -FI_EINVAL,
		   "what isn't aligned is refused");
	tap_is_int(once(false, mem.arg + WORDS * 8, mem.arg2, 1, 0), -FI_EINVAL,
		   "so is what lies behind the region");
	one = registered(4096, FI_REMOTE_WRITE);
	tap_is_int(once(false, one.arg, one.arg2, 1, 0), -FI_EACCES,
		   "and a region that can't be read and written");
	server_ask(&rig, rig.dialled, SERVER_CLOSE, 0, 0);
	one = registered(4096, FI_REMOTE_WRITE | FI_REMOTE_READ);
	tap_ok(once(false, one.arg, one.arg2, 1, 0) == 0, "another key");
	server_ask(&rig, rig.dialled, SERVER_CLOSE, 0, 0);
	tap_ok(once(false, one.arg, one.arg2, 1, 0) != 0, "D2: once closed is refused");
	tap_ok(rig.downs == 0 && server_ask(&rig, rig.dialled, SERVER_ECHO, 1, 0),
	       "C6: and the link lives on");
}

/* One that the device refuses, between others: those are carried out, once. */
static void test_innocent(void)
{
	struct server_packet bad = registered(4096, FI_REMOTE_WRITE | FI_REMOTE_READ);
	int wrong = 0;

	if (once(false, bad.arg, bad.arg2, 1, 0))
		tap_bail("the key is not known");
	server_ask(&rig, rig.dialled, SERVER_CLOSE, 0, 0);
	mem = registered(WORDS * 8, FI_REMOTE_WRITE | FI_REMOTE_READ);
	memset(copy, 0, WORDS * 8);
	if (rig_move(&rig, rig.dialled, true, copy, handle, WORDS * 8, mem.arg, mem.arg2))
		tap_bail("the memory can't be written");
	forget();
	for (uint64_t i = 0; i < 21; i++) {
		struct wire_atomic a = {
			.addr = mem.arg, .key = mem.arg2, .operand = 1, .cookie = i};

		if (i == 10) {
			a.addr = bad.arg;
			a.key = bad.arg2;
		}
		start(&a);
	}
	tap_ok(rig_wait_int(&rig, &heard.over, 21), "C6: all end");
	for (int i = 0; i < 21; i++)
		wrong += (heard.err[i] != 0) != (i == 10);
	tap_is_int(wrong, 0, "but for the one that is refused all go well");
	look();
	tap_is_int(copy[0], 20, "and were carried out once");
}

static void test_many(bool fails)
{
	const uint8_t *count = (const uint8_t *)copy;
	int lost = 0, twice = 0, failed = 0, odd = 0;

	mem = registered(WORDS * 8, FI_REMOTE_WRITE | FI_REMOTE_READ);
	memset(copy, 0, WORDS * 8);
	if (rig_move(&rig, rig.dialled, true, copy, handle, WORDS * 8, mem.arg, mem.arg2))
		tap_bail("the memory can't be written");
	forget();
	for (uint64_t i = 0; i < ADDS; i++) {
		const struct wire_atomic a = {.addr = mem.arg + i / 8 * 8,
					      .key = mem.arg2,
					      .operand = UINT64_C(1) << i % 8 * 8,
					      .cookie = i};

		start(&a);
	}
	tap_ok(rig_wait_int(&rig, &heard.over, ADDS), "E4: all end");
	tap_is_int(heard.late, 0, "in the order of the calls");
	look();
	for (uint32_t i = 0; i < ADDS; i++) {
		failed += heard.err[i] != 0;
		odd += heard.err[i] != 0 && heard.err[i] != -FI_ECONNABORTED &&
		       heard.err[i] != -FI_EACCES;
		lost += (heard.err[i] == 0 || heard.err[i] == -FI_EACCES) &&
			count[i] != (heard.err[i] == 0);
		twice += count[i] > 1;
	}
	tap_is_int(twice, 0, "E4: none was carried out twice");
	tap_is_int(lost, 0, "each that went well was carried out, none that was refused");
	tap_is_int(odd, 0, "those that failed say why");
	tap_ok(fails ? failed > 0 : failed == 0, "%d of %u failed", failed, ADDS);
	tap_ok(rig.downs == 0, "the link lives on");
}

int main(void)
{
	const struct server_packet quit = {.op = SERVER_QUIT};
	const char *want = getenv("NATIVE_FAILS");
	bool fails = want && strcmp(want, "some") == 0;
	struct server srv;
	int ret;

	server_start(&srv);
	rig_open(&rig);
	rig.on_atomic = on_atomic;
	ret = rig_dial(&rig, &srv.addr);
	if (ret)
		tap_bail("dial: %s", fi_strerror(-ret));
	if (!tap_ok(wire_link_base(rig.dialled)->caps.atomic, "the link has them"))
		tap_bail("nothing to try");
	copy = rig_memory(&rig, WORDS * 8, &handle);
	if (!fails) {
		mem = registered(WORDS * 8, FI_REMOTE_WRITE | FI_REMOTE_READ);
		test_values();
		test_refused();
		test_innocent();
	}
	test_many(fails);
	rig_send(&rig, rig.dialled, &quit, sizeof(quit));
	rig_wait_int(&rig, &rig.downs, 1);
	tap_is_int(server_wait(&srv), 0, "the peer ends well");
	rig_close(&rig);
	return tap_done();
}
