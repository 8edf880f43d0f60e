/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rails: which of this host's addresses an endpoint is told to use, and two hosts
 * (network namespaces) with two cables between them, each of which goes and comes back.
 */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/tests/uet_side.h"

static void rails_set(const char *text)
{
	struct prov_params *params = (struct prov_params *)(uintptr_t)prov_params();

	params->uet_rails = text;
}

/* ---- what is asked for ------------------------------------------------------------- */

static int find(const char *text, const char *door, bool any, struct uet_rails *rails)
{
	struct wire_addr at = {.in.sin_family = AF_INET};
	char why[160] = "";
	int ret;

	inet_pton(AF_INET, door, &at.in.sin_addr);
	ret = uet_rails_find(text, &at, any, rails, why);
	if (ret)
		tap_diag("%s: %s", text, why);
	return ret && !why[0] ? 0 : ret;
}

static void test_words(void)
{
	static struct side s;
	struct uet_rails r;

	tap_ok(!find(NULL, "127.0.0.1", false, &r) && r.count == 0,
	       "none are asked for, and there are none");
	tap_ok(!find("lo", "127.0.0.1", false, &r) && r.count == 1 && r.bits[0] == 8,
	       "an interface's name");
	tap_ok(!find("127.0.0.1", "0.0.0.0", true, &r) && r.count == 1, "its address");
	tap_ok(!find("lo", "127.0.0.9", false, &r) && r.count == 0,
	       "an endpoint elsewhere has none");
	tap_is_int(find("lo,127.0.0.1", "127.0.0.1", false, &r), -FI_EINVAL,
		   "no address is there twice");
	tap_is_int(find("lo,", "127.0.0.1", false, &r), -FI_EINVAL, "no name is none");
	tap_is_int(find("nobody7", "127.0.0.1", false, &r), -FI_ENODEV,
		   "nor is one that no interface has");
	tap_is_int(find("192.0.2.77", "127.0.0.1", false, &r), -FI_ENODEV,
		   "nor another host's address");
	rails_set("nobody7");
	tap_is_int(side_try(&s, NULL, "127.0.0.1", 0, false), -FI_ENODEV,
		   "an endpoint isn't opened without what was asked for");
	side_close(&s);
	rails_set(NULL);
}

/* ---- two hosts --------------------------------------------------------------------- */

struct host {
	int net;
	const char *ip, *rails;
	struct side side;
};

static struct host a = {.ip = "10.98.0.1", .rails = "a0,a1"},
		   b = {.ip = "10.98.0.2", .rails = "10.98.0.2,b1"};

static bool run(const char *command)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "PATH=/usr/sbin:/sbin:$PATH; { %s; } >/dev/null 2>&1", command);
	return system(line) == 0;
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static void enter(const struct host *h)
{
	if (setns(h->net, CLONE_NEWNET))
		tap_bail("setns");
}

static int net_here(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* NULL: they are there. Else why not. */
static const char *hosts_make(void)
{
	char map[64], make[200];
	uid_t uid = getuid();

	if (!run("ip -V"))
		return "no ip (Debian: iproute2)";
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return "no network of one's own here";
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
	b.net = write_file("/proc/self/uid_map", map) ? net_here() : -1;
	if (b.net < 0 || unshare(CLONE_NEWNET) || (a.net = net_here()) < 0)
		return "no second network here";
	/* The other ends are made where descriptor b.net says. */
	snprintf(make, sizeof(make),
		 "for i in 0 1; do ip link add a$i type veth peer name b$i netns "
		 "/proc/%d/fd/%d || exit 1; ip addr add 10.98.$i.1/24 dev a$i; "
		 "ip link set a$i up; done; ip link set lo up",
		 (int)getpid(), b.net);
	if (!run(make))
		return "no virtual cables here";
	enter(&b);
	if (!run("for i in 0 1; do ip addr add 10.98.$i.2/24 dev b$i; ip link set b$i "
		 "up; "
		 "done; ip link set lo up"))
		return "no addresses";
	return NULL;
}

static void turn(void)
{
	int n = 0;

	enter(&a);
	n += uet_wire_ops.progress(a.side.ep, 64);
	enter(&b);
	n += uet_wire_ops.progress(b.side.ep, 64);
	if (!n)
		usleep(200);
}

static void host_open(struct host *h, const char *key)
{
	enter(h);
	rails_set(h->rails);
	if (side_try(&h->side, key, h->ip, 0, false))
		tap_bail("no endpoint at %s", h->ip);
	rails_set(NULL);
}

static void host_close(struct host *h)
{
	enter(h);
	side_close(&h->side);
}

static bool hosts_join(void)
{
	uint64_t end = uet_ep_now() + WAIT_NS;
	struct wire_link *link;

	enter(&a);
	if (uet_wire_ops.dial(a.side.ep, &wire_ep_base(b.side.ep)->addr, &a.side, &link))
		return false;
	while (!(a.side.ups && b.side.ups) && uet_ep_now() < end)
		turn();
	return a.side.ups && b.side.ups;
}

/* A few put bytes from one side to the other; false: the link is gone. */
static bool put(struct host *from, struct host *to, unsigned seed)
{
	static uint8_t bytes[MEMORY];
	struct iovec iov = {bytes, MEMORY};
	struct wire_segment seg = {
		.local = &iov,
		.local_count = 1,
		.remote = {.addr = (uintptr_t)to->side.memory, .key = to->side.key},
		.len = MEMORY};
	unsigned want = from->side.segments + 1;
	uint64_t end = uet_ep_now() + WAIT_NS;

	for (size_t i = 0; i < MEMORY; i++)
		bytes[i] = (uint8_t)(i * 5 + (i >> 8) + seed);
	enter(from);
	if (!from->side.link || uet_wire_ops.put(from->side.link, &seg))
		return false;
	while (from->side.segments < want && uet_ep_now() < end)
		turn();
	return from->side.segments == want && !from->side.bad && to->side.link &&
	       memcmp(bytes, to->side.memory, MEMORY) == 0;
}

/* Bits of the paths of a rail whose packets come through, and that are used. */
static unsigned alive(struct host *h, unsigned rail)
{
	struct wire_ep *ep = h->side.ep;
	unsigned n = 0;

	uet_turn_take(&ep->turn);
	if (h->side.link && h->side.link->pdc) {
		const struct uet_paths *p = uet_pdc_paths(h->side.link->pdc);

		for (unsigned i = rail; i < p->config.paths; i += ep->sock->rails)
			n += p->used >> i & 1 && p->path[i].any && !p->path[i].retired;
	}
	uet_turn_give(&ep->turn);
	return n;
}

/* Puts both ways until so many paths of a rail are alive at both ends. */
static bool until_alive(unsigned rail, unsigned want)
{
	uint64_t end = uet_ep_now() + WAIT_NS;
	unsigned n = 0;

	while (uet_ep_now() < end) {
		if (!put(&a, &b, n++) || !put(&b, &a, n++))
			return false;
		if (alive(&a, rail) == want && alive(&b, rail) == want)
			return true;
	}
	tap_diag("rail %u: %u and %u paths", rail, alive(&a, rail), alive(&b, rail));
	return false;
}

static void cable(unsigned rail, bool up)
{
	char command[64];

	enter(&a);
	snprintf(command, sizeof(command), "ip link set a%u %s", rail,
		 up ? "up" : "down");
	if (!run(command))
		tap_bail("%s", command);
}

static void test_cables(const char *key, const char *words)
{
	unsigned all = PROV_UET_PATHS / 2;

	host_open(&a, key);
	host_open(&b, key);
	if (!hosts_join())
		tap_bail("no link");
	tap_ok(a.side.ep->sock->rails == 2 && b.side.ep->sock->rails == 2,
	       "%s: two rails at each end", words);
	tap_ok(until_alive(0, all) && until_alive(1, all),
	       "%s: all paths of both are used, both ways", words);
	for (unsigned rail = 2; rail-- > 0;) {
		cable(rail, false);
		tap_ok(until_alive(rail, 0), "%s: cable %u goes, everything comes", words,
		       rail);
		cable(rail, true);
		tap_ok(until_alive(rail, all) && until_alive(1 - rail, all),
		       "%s: it comes back, and is used", words);
	}
	tap_ok(!a.side.downs && !b.side.downs, "%s: nobody heard of it", words);
	host_close(&a);
	host_close(&b);
}

/* Who has two reaches who has one, by both where they lead there. */
static void test_one(void)
{
	const char *two = b.rails;

	b.rails = NULL;
	host_open(&a, NULL);
	host_open(&b, NULL);
	if (!hosts_join())
		tap_bail("no link");
	tap_ok(put(&a, &b, 1) && put(&b, &a, 2) && b.side.ep->sock->rails == 1,
	       "one end has two, the other one");
	host_close(&a);
	host_close(&b);
	b.rails = two;
}

static void test_few_paths(void)
{
	struct prov_params *params = (struct prov_params *)(uintptr_t)prov_params();
	uint64_t usual = params->uet_paths;
	static struct side s;

	params->uet_paths = 1;
	enter(&a);
	rails_set(a.rails);
	tap_is_int(side_try(&s, NULL, a.ip, 0, false), -FI_EINVAL,
		   "two rails want two paths");
	rails_set(NULL);
	side_close(&s);
	params->uet_paths = usual;
}

int main(void)
{
	const char *why;

	test_words();
	why = hosts_make();
	if (why) {
		tap_skip(16, "%s", why);
		return tap_done();
	}
	test_cables(NULL, "plain");
	test_cables("a key of sixteen and more characters", "sealed");
	test_one();
	test_few_paths();
	return tap_done();
}
