/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory on demand between two processes, over whatever libibverbs is found (demand.t
 * runs it over emulated devices): all memory as one region, regions that can't be locked.
 * What the devices can is said by DEMAND_WANT: none, explicit or implicit.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "util/tap.h"

#define SOME  ((size_t)100000)
#define LARGE ((size_t)16 << 20)

static struct rig rig;
static struct wire_link *link;
static uint8_t *mem;
static void *handle;

static struct server_packet try(size_t len)
{
	if (!server_ask(&rig, link, SERVER_TRY, len, 0))
		tap_bail("no answer");
	return server_answer(&rig);
}

static bool there(const struct server_packet *at, size_t len)
{
	int wrong = 0;

	for (size_t i = 0; i < SOME; i++)
		mem[i] = (uint8_t)(i * 3 + 1);
	if (rig_move(&rig, link, true, mem, handle, SOME, at->arg + len - SOME, at->arg2))
		return false;
	memset(mem, 0, SOME);
	if (rig_move(&rig, link, false, mem, handle, SOME, at->arg + len - SOME,
		     at->arg2))
		return false;
	for (size_t i = 0; i < SOME; i++)
		wrong += mem[i] != (uint8_t)(i * 3 + 1);
	return wrong == 0;
}

static void test_all(bool can)
{
	struct server_packet at = try(0);
	int ret;

	if (!can) {
		tap_ok(at.arg == 0 && at.arg2 == FI_EOPNOTSUPP,
		       "all memory is refused where a device can't");
		return;
	}
	tap_ok(at.arg != 0, "all memory is one region");
	tap_ok(there(&at, 1 << 20), "what was mapped afterwards is in it");
	ret = rig_move(&rig, link, true, mem, handle, 8, 4096, at.arg2);
	tap_ok(ret == -FI_EACCES || ret == -FI_EFAULT || ret == -FI_EREMOTEIO,
	       "C6: what isn't there is refused (%s)", fi_strerror(-ret));
	tap_ok(there(&at, 1 << 20), "C6: and nothing else");
	server_ask(&rig, link, SERVER_CLOSE, 0, 0);
	tap_ok(rig_move(&rig, link, true, mem, handle, 8, at.arg, at.arg2) != 0,
	       "D2: a key that was closed is refused");
}

static void test_large(bool can)
{
	struct server_packet at = try(LARGE);

	if (can)
		tap_ok(at.arg != 0 && there(&at, LARGE),
		       "what can't be locked is paged in on demand");
	else
		tap_ok(at.arg == 0 && at.arg2 == FI_ENOMEM,
		       "what can't be locked is refused");
}

int main(void)
{
	const char *want = getenv("DEMAND_WANT");
	const struct server_packet quit = {.op = SERVER_QUIT};
	struct server srv;
	int ret;

	server_start(&srv);
	rig_open(&rig);
	ret = rig_dial(&rig, &srv.addr);
	if (ret)
		tap_bail("dial: %s", fi_strerror(-ret));
	link = rig.dialled;
	mem = rig_memory(&rig, SOME, &handle);
	test_all(want && strcmp(want, "implicit") == 0);
	test_large(want && strcmp(want, "none") != 0);
	tap_ok(rig.downs == 0 && server_ask(&rig, link, SERVER_ECHO, 1, 0),
	       "the link lives on");
	rig_send(&rig, link, &quit, sizeof(quit));
	rig_wait_int(&rig, &rig.downs, 1);
	tap_is_int(server_wait(&srv), 0, "the peer ends well");
	rig_close(&rig);
	return tap_done();
}
