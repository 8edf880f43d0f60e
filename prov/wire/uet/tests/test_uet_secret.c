/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints with keys, over loopback: those with the same understand each other over any
 * network, nobody else is heard, and nothing can be read or comes twice.
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/tests/uet_side.h"

#define KEY "a key of sixteen characters"

static void test_talk(const char *network)
{
	static struct side a, b;
	struct uet_seal_stats stats;

	side_open(&a, KEY);
	side_open(&b, KEY);
	if (network) {
		side_network(&a, network);
		side_network(&b, network);
	}
	tap_ok(both_dial(&a, &b, &wire_ep_base(b.ep)->addr) && both_talk(&a, &b, 200),
	       "%s: everything comes, once and whole", network ? network : "sealed");
	stats = side_seals(&b);
	if (!network)
		tap_ok(stats.taken && !stats.forged && !stats.replayed,
		       "and nothing is refused");
	else if (strstr(network, "corrupt"))
		tap_ok(stats.forged > 0, "what was changed is refused");
	else
		tap_ok(stats.replayed > 0, "what comes again is refused");
	side_close(&a);
	side_close(&b);
}

/* An endpoint of all addresses is spoken to by any of them. */
static void test_names(void)
{
	static struct side a, b;
	struct wire_addr to;
	int ret = side_try(&b, KEY, "127.0.0.2", 0, true);

	if (ret)
		tap_bail("endpoint: %s", fi_strerror(-ret));
	side_open(&a, KEY);
	to = wire_ep_base(b.ep)->addr;
	to.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	tap_ok(both_dial(&a, &b, &to) && both_talk(&a, &b, 3),
	       "an endpoint of all addresses has many names");
	side_close(&a);
	side_close(&b);
}

/* They never get anywhere, however long; until the door has refused some. */
static void test_strangers(const char *name, const char *key_a, const char *key_b)
{
	static struct side a, b;
	uint64_t end, refused = 0;
	struct wire_link *link;

	side_open(&a, key_a);
	side_open(&b, key_b);
	if (uet_wire_ops.dial(a.ep, &wire_ep_base(b.ep)->addr, &a, &link))
		tap_bail("dial");
	for (end = uet_ep_now() + WAIT_NS; refused < 3 && uet_ep_now() < end;) {
		both_turn(&a, &b);
		refused = side_garbled(&b);
	}
	tap_ok(refused >= 3 && !a.ups && !b.ups && list_empty(&b.ep->links),
	       "%s: nobody is let in", name);
	side_close(&a);
	side_close(&b);
}

/* What a holder of the key sent to another address is good nowhere else, and can't be
 * read; what nobody sealed isn't looked at. */
static void test_recorded(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	static struct side a, b;
	struct wire_addr other;
	struct wire_link *link;
	uint8_t seen[2048];
	struct pollfd p;
	ssize_t got;
	uint64_t end;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		tap_bail("no socket");
	side_open(&a, KEY);
	side_open(&b, KEY);
	other = wire_ep_base(b.ep)->addr;
	other.in.sin_port = at.sin_port;
	if (uet_wire_ops.dial(a.ep, &other, &a, &link))
		tap_bail("dial");
	p = (struct pollfd){.fd = fd, .events = POLLIN};
	got = poll(&p, 1, 60000) == 1 ? recv(fd, seen, sizeof(seen), 0) : -1;
	if (got < 32)
		tap_bail("nothing was sent");
	tap_ok(!memmem(seen, (size_t)got, "WFUE", 4), "how a link begins can't be read");
	at.sin_port = wire_ep_base(b.ep)->addr.in.sin_port;
	for (int i = 0; i < 20; i++) {
		seen[i % got] ^= i > 1 ? (uint8_t)(1u << i % 8) : 0;
		if (sendto(fd, seen, (size_t)(i == 19 ? 5 : got), 0,
			   (struct sockaddr *)&at, sizeof(at)) < 0)
			tap_bail("sendto");
	}
	for (end = uet_ep_now() + WAIT_NS;
	     side_seals(&b).forged < 20 && uet_ep_now() < end;)
		both_turn(&a, &b);
	tap_ok(side_seals(&b).forged == 20 && !side_seals(&b).taken &&
		       list_empty(&b.ep->links),
	       "what was recorded elsewhere, or changed, or is nothing, is refused");
	close(fd);
	side_close(&a);
	side_close(&b);
}

static void test_refusals(void)
{
	static struct side s;

	tap_ok(side_try(&s, "short", "127.0.0.1", 0, false) == -FI_EINVAL && !s.ep,
	       "a key that is too short is none, and there is no endpoint without");
	side_close(&s);
	tap_ok(side_try(&s, "direct:0123", "127.0.0.1", 0, false) == -FI_EINVAL && !s.ep,
	       "nor with one that isn't whole");
	side_close(&s);
	set_keys(NULL, "a key of another wire");
	tap_ok(uet_secret_open(&(struct uet_secret *){NULL}) == -FI_EINVAL,
	       "a key for connections that nobody would look at is an error");
	set_keys(NULL, NULL);
}

int main(void)
{
	struct uet_crypto *crypto;
	const char *why;

	if (uet_crypto_open(&crypto, &why)) {
		tap_ok(uet_secret_open(&(struct uet_secret *){NULL}) == 0,
		       "without a key nothing of it is needed");
		set_keys(KEY, NULL);
		tap_ok(uet_secret_open(&(struct uet_secret *){NULL}) == -FI_ENOSYS,
		       "with one there is no endpoint without libcrypto");
		return tap_done();
	}
	uet_crypto_close(crypto);
	test_talk(NULL);
	test_talk("drop=0.02,dup=0.3,reorder=0.1:500");
	test_talk("corrupt=0.1");
	test_names();
	test_strangers("another key", "another key altogether", KEY);
	test_strangers("no key", NULL, KEY);
	test_strangers("a key where there is none", KEY, NULL);
	test_recorded();
	test_refusals();
	return tap_done();
}
