/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may be wrong around an endpoint: its port is taken, its peer gone, the way
 * narrower or away for a while, strangers who begin thousands of conversations.
 */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/tests/uet_side.h"
#include "prov/wire/uet/uet_crc.h"

static void pair_open(struct side *a, struct side *b)
{
	side_open(a, NULL);
	side_open(b, NULL);
	if (!both_dial(a, b, &wire_ep_base(b->ep)->addr) || !both_talk(a, b, 20))
		tap_bail("no link, or it carries nothing");
}

static void test_port(void)
{
	static struct side a, b;
	uint16_t port;

	side_open(&a, NULL);
	port = uet_door_port(&wire_ep_base(a.ep)->addr);
	tap_is_int(side_try(&b, NULL, "127.0.0.1", port, false), -FI_EADDRINUSE,
		   "a port that is taken");
	side_close(&b);
	side_close(&a);
}

/* Nothing comes from there any more, and nobody says why. */
static void test_gone(void)
{
	struct prov_params *params = (struct prov_params *)(uintptr_t)prov_params();
	uint64_t usual = params->uet_timeout_ms;
	static struct side a, b;

	params->uet_timeout_ms = 1000;
	pair_open(&a, &b);
	side_network(&a, "drop=1");
	side_network(&b, "drop=1");
	tap_ok(both_until(&a, &b, &a.downs, 1) && both_until(&a, &b, &b.downs, 1) &&
		       a.down_err == -FI_ECONNRESET && b.down_err == -FI_ECONNRESET,
	       "a peer that says nothing is gone, though nothing is sent to it");
	side_close(&a);
	side_close(&b);
	params->uet_timeout_ms = usual;
}

/* Not bad, but another number than usual: of each end's own choice. */
static void test_paths(void)
{
	struct prov_params *params = (struct prov_params *)(uintptr_t)prov_params();
	uint64_t usual = params->uet_paths;
	static struct side a, b;
	unsigned ways;

	params->uet_paths = PROV_UET_PATHS_MAX;
	side_open(&a, NULL);
	params->uet_paths = 1;
	side_open(&b, NULL);
	params->uet_paths = usual;
	if (!both_dial(&a, &b, &wire_ep_base(b.ep)->addr))
		tap_bail("no link");
	tap_ok(both_talk(&a, &b, 300) && both_talk(&b, &a, 300),
	       "32 source ports at one end, one at the other");
	ways = a.ep->sock->paths * 100 + b.ep->sock->paths;
	tap_is_int(ways, 3201, "as many as were asked for");
	side_close(&a);
	side_close(&b);
}

/* ---- strangers --------------------------------------------------------------------- */

/* How somebody begins a link: what a dialler sends to a socket of ours. */
static size_t begin(uint8_t *bytes, size_t room)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	socklen_t len = sizeof(at);
	static struct side s;
	struct wire_link *link;
	struct wire_addr to;
	ssize_t got;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		tap_bail("no socket");
	side_open(&s, NULL);
	to = wire_ep_base(s.ep)->addr;
	to.in.sin_port = at.sin_port;
	if (uet_wire_ops.dial(s.ep, &to, &s, &link))
		tap_bail("dial");
	got = poll(&p, 1, 60000) == 1 ? recv(fd, bytes, room, 0) : -1;
	close(fd);
	side_close(&s);
	if (got < 64)
		tap_bail("nothing was sent");
	return (size_t)got;
}

/* The same from somebody else: another door, context and number. */
static void another(uint8_t *bytes, size_t len, uint32_t n)
{
	struct uet_req_bytes pds;
	struct uet_std_bytes ses;
	struct be32 crc;

	memcpy(&pds, bytes, sizeof(pds));
	memcpy(&ses, bytes + sizeof(pds), sizeof(ses));
	pds.psn = be32_of(n * UINT32_C(2654435761));
	pds.spdcid = be16_of((uint16_t)(1 + n % 65535));
	ses.initiator = be32_of(1 + n % 65000);
	memcpy(bytes, &pds, sizeof(pds));
	memcpy(bytes + sizeof(pds), &ses, sizeof(ses));
	crc = be32_of(uet_crc(0, bytes, len - UET_CRC_BYTES));
	memcpy(bytes + len - UET_CRC_BYTES, &crc, sizeof(crc));
}

static unsigned links_of(struct side *s)
{
	unsigned n = 0;

	uet_turn_take(&s->ep->turn);
	list_foreach (pos, &s->ep->links)
		n++;
	uet_turn_give(&s->ep->turn);
	return n;
}

static void test_strangers(void)
{
	const unsigned count = tap_short() ? 2000 : 20000;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned most = 0, bad = 0, sent = 0;
	const struct wire_addr *door;
	static struct side a, b;
	uint8_t bytes[2048];
	size_t len = begin(bytes, sizeof(bytes));

	if (fd < 0)
		tap_bail("no socket");
	pair_open(&a, &b);
	door = &wire_ep_base(b.ep)->addr;
	while (sent < count) {
		for (int i = 0; i < 50; i++) {
			another(bytes, len, ++sent);
			if (sendto(fd, bytes, len, 0, &door->sa, sizeof(door->in)) < 0)
				tap_bail("sendto");
		}
		both_turn(&a, &b);
		if (links_of(&b) > most)
			most = links_of(&b);
		bad += sent % 1000 == 0 && !both_talk(&a, &b, 5);
	}
	tap_ok(most > 1 && most <= 1 + uet_pds_config(b.ep->pds)->half_open,
	       "strangers who begin and say no more are a few at a time");
	tap_diag("%u of %u", most, count);
	tap_ok(!bad && both_talk(&a, &b, 20) && !a.downs && a.link,
	       "who was there before hears nothing of them");
	tap_ok(b.ups == 1, "nor do the layers above");
	close(fd);
	side_close(&a);
	side_close(&b);
}

/* ---- the way, in a network of our own ---------------------------------------------- */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool loopback(unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok;

	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "lo");
	ok = fd >= 0 && ioctl(fd, request, ifr) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool loopback_up(bool up)
{
	struct ifreq ifr = {.ifr_flags = 0};

	if (!loopback(SIOCGIFFLAGS, &ifr))
		return false;
	ifr.ifr_flags = (short)(up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP);
	return loopback(SIOCSIFFLAGS, &ifr);
}

static bool loopback_mtu(int mtu)
{
	struct ifreq ifr = {.ifr_mtu = mtu};

	return loopback(SIOCSIFMTU, &ifr);
}

static bool own_network(void)
{
	char map[64];
	uid_t uid = getuid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
	return write_file("/proc/self/uid_map", map) && loopback_up(true);
}

static uint32_t part_of(struct side *s)
{
	uint32_t part;

	uet_turn_take(&s->ep->turn);
	part = s->link ? s->link->part : 0;
	uet_turn_give(&s->ep->turn);
	return part;
}

static void test_narrower(void)
{
	static struct side a, b;
	uint32_t before;

	pair_open(&a, &b);
	before = part_of(&a);
	if (!loopback_mtu(1500))
		tap_bail("the way doesn't get narrower");
	tap_ok(both_talk(&a, &b, 100), "everything comes where the way gets narrower");
	tap_ok(before > 1500 && part_of(&a) < 1500, "what is made after that fits it");
	if (!loopback_mtu(1280))
		tap_bail("the way doesn't get narrower");
	tap_ok(both_talk(&a, &b, 100) && both_talk(&b, &a, 100), "and once more");
	if (!loopback_mtu(65536))
		tap_bail("nor wider");
	tap_ok(both_talk(&a, &b, 100) && !a.downs && !b.downs, "and where it is wider");
	side_close(&a);
	side_close(&b);
}

static uint64_t timeouts_of(struct side *s)
{
	uint64_t n;

	uet_turn_take(&s->ep->turn);
	n = uet_pds_stats(s->ep->pds)->timeouts;
	uet_turn_give(&s->ep->turn);
	return n;
}

static void test_away(void)
{
	static struct side a, b;
	uint64_t before;

	pair_open(&a, &b);
	before = timeouts_of(&a);
	if (!loopback_up(false))
		tap_bail("the interface doesn't go");
	for (unsigned i = 0; i < 20; i++) {
		void *at = uet_wire_ops.pkt_reserve(a.link, 8, WIRE_CONTROL);

		if (at)
			uet_wire_ops.pkt_commit(a.link, at, 8);
		both_turn(&a, &b);
	}
	/* Long enough for it to have been tried in vain. */
	for (uint64_t end = uet_ep_now() + WAIT_NS;
	     timeouts_of(&a) < before + 3 && uet_ep_now() < end;)
		both_turn(&a, &b);
	if (!loopback_up(true))
		tap_bail("the interface doesn't come back");
	tap_ok(both_until(&a, &b, &b.packets, 40) && !a.downs && !b.downs,
	       "an interface that goes and comes back costs no link");
	side_close(&a);
	side_close(&b);
}

int main(void)
{
	test_port();
	test_gone();
	test_paths();
	test_strangers();
	if (!own_network()) {
		tap_skip(5, "no network of one's own here");
		return tap_done();
	}
	test_narrower();
	test_away();
	return tap_done();
}
