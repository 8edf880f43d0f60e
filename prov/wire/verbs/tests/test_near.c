/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbours, in a network namespace that near.t makes: an interface "own" with 10.77.0.1
 * and fd00:77::1, at whose other end nobody answers. With headers of libibverbs the same
 * of a link, over emulated devices.
 */
#include "config.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prov/wire/verbs/verbs_near.h"
#include "util/tap.h"

#ifdef HAVE_VERBS
#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_ep.h"
#endif

#define LLADDR "lladdr 02:00:00:00:00:02 dev own nud permanent"

static bool known(const char *own, const char *peer)
{
	uint8_t a[16] = {0}, b[16] = {0};

	a[10] = a[11] = b[10] = b[11] = 0xff;
	if (inet_pton(AF_INET6, own, a) != 1 && inet_pton(AF_INET, own, a + 12) != 1)
		tap_bail("%s", own);
	if (inet_pton(AF_INET6, peer, b) != 1 && inet_pton(AF_INET, peer, b + 12) != 1)
		tap_bail("%s", peer);
	return verbs_near_known(if_nametoindex("own"), a, b);
}

static void sh(const char *command)
{
	if (system(command))
		tap_bail("%s", command);
}

static void test_neighbours(void)
{
	tap_ok(!known("10.77.0.1", "10.77.0.2"), "nobody has answered yet");
	tap_ok(system("ip neigh show 10.77.0.2 dev own | grep -q 10.77.0.2") == 0,
	       "but the kernel has been made to ask");
	tap_ok(!known("10.77.0.1", "10.77.0.2"), "still nobody");
	tap_ok(!known("10.77.0.1", "10.88.0.9"), "nor the router to others");
	sh("ip neigh replace 10.77.0.2 " LLADDR);
	tap_ok(known("10.77.0.1", "10.77.0.2"), "one that answered");
	tap_ok(known("10.77.0.1", "10.88.0.9"), "who is behind a router that did");
	tap_ok(!known("fd00:77::1", "fd00:77::2"), "IPv6: nobody yet");
	sh("ip -6 neigh replace fd00:77::2 " LLADDR);
	tap_ok(known("fd00:77::1", "fd00:77::2"), "IPv6: one that answered");
	tap_ok(known("10.77.0.1", "10.77.0.1"), "oneself");
	tap_ok(verbs_near_known(0, (const uint8_t[16]){0}, (const uint8_t[16]){0}),
	       "where the interface isn't known, the device is asked");
}

#ifdef HAVE_VERBS
/* Both ends' device has 10.77.1.1. */
static void test_link(void)
{
	const struct server_packet quit = {.op = SERVER_QUIT};
	struct server srv;
	struct rig rig;
	struct verbs_reach *reach;
	int ret;

	server_start(&srv);
	rig_open(&rig);
	reach = &verbs_ep_of(rig.ep)->dom->dev->rail[0].reach;
	reach->ifindex = if_nametoindex("own");
	ret = rig_dial(&rig, &srv.addr);
	tap_ok(ret == -FI_EAGAIN,
	       "a link whose neighbour isn't known is to be tried again (%d)", ret);
	sh("ip neigh replace 10.77.1.1 " LLADDR);
	ret = rig_dial(&rig, &srv.addr);
	tap_ok(ret == 0, "and gets in when it is (%d)", ret);
	if (ret)
		return;
	tap_ok(server_ask(&rig, rig.dialled, SERVER_ECHO, 5, 0) &&
		       server_answer(&rig).arg == 5,
	       "it works");
	rig_send(&rig, rig.dialled, &quit, sizeof(quit));
	rig_wait_int(&rig, &rig.downs, 2);
	rig_close(&rig);
	tap_ok(server_wait(&srv) == 0, "the server ends well");
}
#endif

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "link") == 0) {
#ifdef HAVE_VERBS
		test_link();
#endif
	} else {
		test_neighbours();
	}
	return tap_done();
}
