/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints with keys, over loopback: those with the same understand each other over any
 * network, nobody else is heard, and nothing can be read or comes twice.
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/uet/uet.h"
#include "prov/wire/uet/uet_link.h"
#include "util/tap.h"

#define WAIT_NS (UINT64_C(60) * 1000000000)
#define MEMORY	((size_t)100000)
#define KEY	"a key of sixteen characters"
#define SECRET	"the secret that nobody else may read"

struct side {
	struct mem_keytab *keys;
	struct wire_ep *ep;
	struct wire_link *link;
	unsigned ups, downs, packets, segments, bad;
	uint64_t key;
	uint8_t memory[MEMORY];
};

static void on_up(void *arg, struct wire_link *link)
{
	struct side *s = arg;

	s->ups++;
	s->link = link;
}

static void on_down(void *arg, struct wire_link *link, int err)
{
	struct side *s = arg;

	(void)err;
	s->downs++;
	if (s->link == link)
		s->link = NULL;
}

static void on_packet(void *arg, struct wire_link *link, const void *pkt, size_t len)
{
	struct side *s = arg;
	unsigned n;

	(void)link;
	memcpy(&n, pkt, sizeof(n));
	s->bad += len != sizeof(n) + sizeof(SECRET) || n != s->packets ||
		  memcmp((const uint8_t *)pkt + sizeof(n), SECRET, sizeof(SECRET)) != 0;
	s->packets++;
}

static void on_segment(void *arg, struct wire_link *link, void *cookie, int err)
{
	struct side *s = arg;

	(void)link;
	(void)cookie;
	s->segments++;
	s->bad += err != 0;
}

static const struct wire_events events = {.link_up = on_up,
					  .link_down = on_down,
					  .packet = on_packet,
					  .segment_done = on_segment};

static void set_keys(const char *key, const char *auth_key)
{
	struct prov_params *params = (struct prov_params *)(uintptr_t)prov_params();

	params->uet_key = key;
	params->auth_key = auth_key;
}

static int try_open(struct side *s, const char *key, const char *host, bool any)
{
	struct wire_ep_attr attr = {.events = &events, .arg = s, .addr_any = any};
	struct mem_region region = {.iov_count = 1,
				    .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				    .virt_addr = true};

	memset(s, 0, sizeof(*s));
	if (mem_keytab_open(64, &s->keys))
		tap_bail("no key table");
	region.iov[0] = (struct iovec){s->memory, MEMORY};
	if (mem_keytab_insert(s->keys, &region, &s->key))
		tap_bail("no key");
	attr.addr.in.sin_family = AF_INET;
	if (inet_pton(AF_INET, host, &attr.addr.in.sin_addr) != 1)
		tap_bail("%s", host);
	attr.keys = s->keys;
	if (getrandom(&attr.incarnation, sizeof(attr.incarnation), 0) < 0)
		tap_bail("no random numbers");
	attr.incarnation |= 1;
	set_keys(key, NULL);
	return uet_wire_ops.ep_open(&attr, &s->ep);
}

static void side_open(struct side *s, const char *key)
{
	int ret = try_open(s, key, "127.0.0.1", false);

	if (ret)
		tap_bail("endpoint: %s", fi_strerror(-ret));
}

static void side_close(struct side *s)
{
	if (s->ep)
		uet_wire_ops.ep_close(s->ep);
	mem_keytab_close(s->keys);
}

static void bad_network(struct side *s, const char *text)
{
	struct uet_shim_config config;
	const char *why;

	if (!uet_shim_parse(text, &config, &why))
		tap_bail("%s: %s", text, why);
	config.seed = 7;
	uet_turn_take(&s->ep->turn);
	s->ep->shim = uet_shim_open(&config);
	uet_turn_give(&s->ep->turn);
	if (!s->ep->shim)
		tap_bail("no memory");
}

static struct uet_seal_stats stats_of(struct side *s)
{
	struct uet_seal_stats stats;

	uet_turn_take(&s->ep->turn);
	stats = *uet_secret_stats(s->ep->secret);
	uet_turn_give(&s->ep->turn);
	return stats;
}

static void turn(struct side *a, struct side *b)
{
	struct pollfd p[2] = {{.fd = uet_wire_ops.fd(a->ep), .events = POLLIN},
			      {.fd = uet_wire_ops.fd(b->ep), .events = POLLIN}};

	if (uet_wire_ops.progress(a->ep, 64) + uet_wire_ops.progress(b->ep, 64) == 0)
		poll(p, 2, 1);
}

static bool until(struct side *a, struct side *b, const unsigned *count, unsigned want)
{
	uint64_t end = uet_ep_now() + WAIT_NS;

	while (*count < want && uet_ep_now() < end)
		turn(a, b);
	return *count >= want;
}

static bool dial(struct side *a, struct side *b, const struct wire_addr *to)
{
	struct wire_link *link;

	return uet_wire_ops.dial(a->ep, to, a, &link) == 0 && until(a, b, &a->ups, 1) &&
	       until(a, b, &b->ups, 1);
}

static bool send_one(struct side *s, unsigned n)
{
	uint8_t *at =
		s->link ? uet_wire_ops.pkt_reserve(s->link, 4 + sizeof(SECRET), WIRE_DATA)
			: NULL;

	if (!at)
		return false;
	memcpy(at, &n, sizeof(n));
	memcpy(at + sizeof(n), SECRET, sizeof(SECRET));
	uet_wire_ops.pkt_commit(s->link, at, 4 + sizeof(SECRET));
	return true;
}

/* Packets, and bytes there and back. */
static bool talk(struct side *a, struct side *b, unsigned count)
{
	static uint8_t local[MEMORY], back[MEMORY];
	struct iovec out = {local, MEMORY}, in = {back, MEMORY};
	struct wire_segment seg = {
		.local = &out,
		.local_count = 1,
		.remote = {.addr = (uintptr_t)b->memory, .key = b->key},
		.len = MEMORY};
	uint64_t end = uet_ep_now() + WAIT_NS;
	unsigned sent = 0;

	while (b->packets < count && uet_ep_now() < end) {
		sent += sent < count && send_one(a, sent);
		turn(a, b);
	}
	for (size_t i = 0; i < MEMORY; i++)
		local[i] = (uint8_t)(i * 3 + (i >> 8));
	if (b->packets != count || !a->link || uet_wire_ops.put(a->link, &seg) ||
	    !until(a, b, &a->segments, 1))
		return false;
	seg.local = &in;
	return a->link && !uet_wire_ops.get(a->link, &seg) &&
	       until(a, b, &a->segments, 2) && !a->bad && !b->bad &&
	       memcmp(local, b->memory, MEMORY) == 0 && memcmp(local, back, MEMORY) == 0;
}

static void test_talk(const char *network)
{
	static struct side a, b;
	struct uet_seal_stats stats;

	side_open(&a, KEY);
	side_open(&b, KEY);
	if (network) {
		bad_network(&a, network);
		bad_network(&b, network);
	}
	tap_ok(dial(&a, &b, &wire_ep_base(b.ep)->addr) && talk(&a, &b, 200),
	       "%s: everything comes, once and whole", network ? network : "sealed");
	stats = stats_of(&b);
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
	int ret = try_open(&b, KEY, "127.0.0.2", true);

	if (ret)
		tap_bail("endpoint: %s", fi_strerror(-ret));
	side_open(&a, KEY);
	to = wire_ep_base(b.ep)->addr;
	to.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	tap_ok(dial(&a, &b, &to) && talk(&a, &b, 3),
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
		turn(&a, &b);
		uet_turn_take(&b.ep->turn);
		refused = b.ep->garbled;
		uet_turn_give(&b.ep->turn);
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
	     stats_of(&b).forged < 20 && uet_ep_now() < end;)
		turn(&a, &b);
	tap_ok(stats_of(&b).forged == 20 && !stats_of(&b).taken &&
		       list_empty(&b.ep->links),
	       "what was recorded elsewhere, or changed, or is nothing, is refused");
	close(fd);
	side_close(&a);
	side_close(&b);
}

static void test_refusals(void)
{
	static struct side s;

	tap_ok(try_open(&s, "short", "127.0.0.1", false) == -FI_EINVAL && !s.ep,
	       "a key that is too short is none, and there is no endpoint without");
	side_close(&s);
	tap_ok(try_open(&s, "direct:0123", "127.0.0.1", false) == -FI_EINVAL && !s.ep,
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
