/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint addresses. */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "prov/wire/addr.h"
#include "prov/wire/iface.h"
#include "util/tap.h"

static struct sockaddr_in v4(const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	memset(in.sin_zero, 0xa5, sizeof(in.sin_zero)); /* as callers leave it */
	inet_pton(AF_INET, host, &in.sin_addr);
	return in;
}

static struct sockaddr_in6 v6(const char *host, uint16_t port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_flowinfo = 77,
				   .sin6_scope_id = 3};

	inet_pton(AF_INET6, host, &in6.sin6_addr);
	return in6;
}

static bool take(struct wire_addr *a, const void *sa, socklen_t len)
{
	return wire_addr_from_sockaddr(a, sa, len);
}

static void test_refused(void)
{
	struct sockaddr_in in = v4("0.0.0.0", 5), port0 = v4("10.0.0.1", 0),
			   good = v4("10.0.0.1", 5);
	struct sockaddr_in6 any6 = v6("::", 5), good6 = v6("::1", 5);
	struct sockaddr other = {.sa_family = AF_UNIX};
	struct wire_addr a;

	tap_ok(!take(&a, &in, sizeof(in)), "no host");
	tap_ok(!take(&a, &port0, sizeof(port0)), "no port");
	tap_ok(!take(&a, &any6, sizeof(any6)), "no IPv6 host");
	tap_ok(!take(&a, &good, sizeof(good) - 1), "short");
	tap_ok(!take(&a, &good6, sizeof(good)), "IPv6, short");
	tap_ok(!take(&a, &good, 1), "very short");
	tap_ok(!take(&a, NULL, 0), "nothing");
	tap_ok(!take(&a, &other, sizeof(other)), "another family");
}

static void test_normal(void)
{
	struct sockaddr_in in = v4("192.168.7.9", 9228);
	struct sockaddr_in6 in6 = v6("fe80::12", 4711), in6b;
	char text[WIRE_ADDR_TEXT_MAX];
	struct wire_addr a, b, c;

	tap_ok(take(&a, &in, sizeof(in)), "IPv4");
	tap_is_str(wire_addr_text(&a, text), "192.168.7.9:9228", "as text");
	tap_is_int(wire_addr_len(&a), sizeof(struct sockaddr_in), "its length");
	memset(in.sin_zero, 0, sizeof(in.sin_zero));
	take(&b, &in, sizeof(in));
	tap_ok(memcmp(&a, &b, sizeof(a)) == 0, "padding doesn't matter");

	tap_ok(take(&c, &in6, sizeof(in6)), "IPv6");
	tap_is_str(wire_addr_text(&c, text), "[fe80::12]:4711", "as text");
	tap_is_int(wire_addr_len(&c), sizeof(struct sockaddr_in6), "its length");
	in6b = in6;
	in6b.sin6_scope_id = 9;
	take(&b, &in6b, sizeof(in6b));
	tap_ok(wire_addr_equal(&c, &b) && wire_addr_hash(&c) == wire_addr_hash(&b),
	       "scope and flow label don't count");
	tap_ok(!wire_addr_equal(&a, &c), "families differ");
	in6b.sin6_port = htons(4712);
	take(&b, &in6b, sizeof(in6b));
	tap_ok(!wire_addr_equal(&c, &b), "ports differ");
	b = a;
	b.context = 3;
	tap_ok(!wire_addr_equal(&a, &b) && wire_addr_hash(&a) != wire_addr_hash(&b),
	       "contexts differ");
	tap_is_str(wire_addr_text(&b, text), "192.168.7.9:9228/3", "as text");
	memset(&b, 0, sizeof(b));
	tap_is_str(wire_addr_text(&b, text), "(no address)", "none, as text");
}

/* Ports in a row on one host are what a table of peers holds. */
static void test_hash(void)
{
	enum { N = 4096 };
	static uint8_t seen[N];
	int used = 0;

	for (int i = 0; i < N; i++) {
		struct sockaddr_in in = v4("10.1.2.3", (uint16_t)(30000 + i));
		struct wire_addr a;

		take(&a, &in, sizeof(in));
		seen[wire_addr_hash(&a) % N] = 1;
	}
	for (int i = 0; i < N; i++)
		used += seen[i];
	/* Chance would use 63 of 100. */
	tap_ok(used > N / 2, "hashes of neighbours spread (%d of %d)", used, N);
}

static struct wire_iface iface(const char *host, bool up, bool running, bool loopback,
			       bool rdma)
{
	struct wire_iface f = {
		.up = up, .running = running, .loopback = loopback, .rdma = rdma};

	if (inet_pton(AF_INET, host, &f.addr.in.sin_addr) == 1)
		f.addr.sa.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, host, &f.addr.in6.sin6_addr) == 1)
		f.addr.sa.sa_family = AF_INET6;
	return f;
}

static void test_iface(void)
{
	const struct wire_iface f[] = {
		iface("127.0.0.1", true, true, true, false),
		iface("10.0.0.1", false, false, false, true), /* down */
		iface("10.1.0.1", true, false, false, false), /* no carrier */
		iface("10.2.0.1", true, true, false, false),
		iface("10.3.0.1", true, true, false, false),
		iface("10.4.0.1", true, false, false, true),
		iface("10.5.0.1", true, true, false, true),
		iface("::1", true, true, true, false),
		iface("fe80::1", true, true, false, true), /* of its own link only */
		iface("fd00::1", true, true, false, false),
		iface("127.1.0.1", true, true, false, false),
		iface("0.0.0.0", true, true, false, true),
	};
	size_t count = sizeof(f) / sizeof(f[0]);

	tap_ok(wire_iface_choose(f, count, AF_INET) == &f[6],
	       "an RDMA device's interface with a carrier");
	tap_ok(wire_iface_choose(f, 6, AF_INET) == &f[5], "an RDMA device's without one");
	tap_ok(wire_iface_choose(f, 5, AF_INET) == &f[3], "the first with a carrier");
	tap_ok(wire_iface_choose(f, 3, AF_INET) == &f[2], "one that is up");
	tap_ok(!wire_iface_choose(f, 2, AF_INET), "not loopback, none that is down");
	tap_ok(!wire_iface_choose(f + 10, 2, AF_INET), "nor addresses that say the same");
	tap_ok(wire_iface_choose(f, count, AF_INET6) == &f[9],
	       "of IPv6 one of more than its own link");
	tap_ok(!wire_iface_choose(f, 9, AF_INET6), "or none");
	tap_ok(!wire_iface_choose(NULL, 0, AF_INET), "no interface");
}

int main(int argc, char **argv)
{
	/* iface.t: what this host says of itself. */
	if (argc > 1) {
		struct wire_addr a = {.sa.sa_family =
					      strcmp(argv[1], "6") ? AF_INET : AF_INET6};
		char text[WIRE_ADDR_TEXT_MAX];

		wire_addr_find_host(&a);
		puts(wire_addr_text(&a, text));
		return 0;
	}
	test_iface();
	test_refused();
	test_normal();
	test_hash();
	return tap_done();
}
