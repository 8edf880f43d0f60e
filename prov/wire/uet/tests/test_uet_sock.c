/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of an endpoint, with and without what the kernel may lack. */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/uet_recv.h"
#include "prov/wire/uet/uet_send.h"
#include "util/tap.h"

#define PATHS	8
#define DGRAMS	160
#define FEW	10 /* on one path before the next */
#define SIZE	1300
#define WAIT_MS 30000

static struct wire_addr addr_of(const char *text, int family)
{
	struct wire_addr a = {0};

	a.sa.sa_family = (sa_family_t)family;
	inet_pton(family, text,
		  family == AF_INET6 ? (void *)&a.in6.sin6_addr : &a.in.sin_addr);
	return a;
}

static in_port_t port_of(const struct wire_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in.sin_port;
}

static struct uet_sock_config config_of(const char *text, int family)
{
	return (struct uet_sock_config){.door = addr_of(text, family),
					.paths = PATHS,
					.rcvbuf = 1 << 20,
					.sndbuf = 1 << 18};
}

/* ---- what is sent arrives ---------------------------------------------------------- */

struct seen {
	uint8_t count[DGRAMS];
	in_port_t ports[UET_SOCK_PATHS];
	unsigned port_count;
	unsigned total, wrong, other_tos, no_stamp;
	uint8_t tos;
};

static size_t size_of(unsigned n)
{
	/* Runs of one size, shorter ones at their ends and in between. */
	return n % 7 == 6 ? 64 + n : SIZE;
}

static void fill(uint8_t *data, unsigned n)
{
	memset(data, (int)(n * 37 + 1), size_of(n));
	memcpy(data, &n, sizeof(n));
}

static void note_port(struct seen *s, in_port_t port)
{
	for (unsigned i = 0; i < s->port_count; i++) {
		if (s->ports[i] == port)
			return;
	}
	if (s->port_count < UET_SOCK_PATHS)
		s->ports[s->port_count++] = port;
}

static void see(void *arg, const struct uet_dgram *d)
{
	struct seen *s = arg;
	uint8_t want[SIZE];
	unsigned n;

	s->total++;
	memcpy(&n, d->data, sizeof(n));
	if (n >= DGRAMS || d->len != size_of(n)) {
		s->wrong++;
		return;
	}
	fill(want, n);
	s->wrong += memcmp(d->data, want, d->len) != 0;
	s->count[n]++;
	s->other_tos += d->tos != s->tos;
	s->no_stamp += d->stamp == 0;
	note_port(s, port_of(&d->from));
}

static void wait_for(struct uet_sock *sock, struct seen *s, unsigned want)
{
	struct pollfd p = {.fd = sock->fd, .events = POLLIN};

	while (s->total < want) {
		if (uet_recv(sock, 64, 0, see, s))
			continue;
		if (poll(&p, 1, WAIT_MS) <= 0)
			return;
	}
}

/* A few at a time: a receiver's buffer may be as small as the system likes. */
static void send_all(struct uet_sock *from, struct uet_sock *to, uint8_t tos,
		     struct seen *s)
{
	static uint8_t data[DGRAMS][SIZE];
	static struct uet_tx tx[DGRAMS];

	for (unsigned i = 0; i < DGRAMS; i++) {
		size_t len = size_of(i);

		fill(data[i], i);
		tx[i] = (struct uet_tx){.to = &to->addr,
					.len = len,
					.iov_count = 2,
					.path = (uint8_t)(i / FEW % from->paths),
					.tos = tos};
		tx[i].iov[0] = (struct iovec){data[i], 44};
		tx[i].iov[1] = (struct iovec){data[i] + 44, len - 44};
	}
	for (unsigned at = 0; at < DGRAMS; at += 2 * FEW) {
		for (size_t gone = 0; gone < 2 * FEW;)
			gone += uet_send(from, tx + at + gone, 2 * FEW - gone);
		wait_for(to, s, at + 2 * FEW);
	}
}

static void pass(struct uet_sock *a, struct uet_sock *b, uint8_t tos, const char *what)
{
	struct seen s = {.tos = tos};
	unsigned once = 0;

	send_all(a, b, tos, &s);
	for (unsigned i = 0; i < DGRAMS; i++)
		once += s.count[i] == 1;
	tap_ok(once == DGRAMS && !s.wrong, "%s: each once, as it was sent", what);
	tap_ok(!s.other_tos, "%s: with its class and mark 0x%02x", what, tos);
	tap_is_int(s.port_count, PATHS, "each path has a port of its own");
	tap_is_int(s.no_stamp, 0, "when they came is known");
}

static void test_pass(const char *text, int family)
{
	bool absent = false;
	char what[64];

	for (unsigned i = 0; i < 4; i++) {
		struct uet_sock_config c = config_of(text, family);
		struct uet_sock *a = NULL, *b = NULL;
		int ret;

		/* Where there is no such address one at any may open, and reaches nobody.
		 */
		if (absent) {
			tap_skip(9, "no IPv6 here");
			continue;
		}

		c.no_gso = i & 1;
		c.no_gro = i & 2;
		c.any = i == 3;
		c.tos = i & 2 ? UET_ECN_ECT : 0;
		ret = uet_sock_open(&c, &a);
		if (!ret)
			ret = uet_sock_open(&c, &b);
		if (ret == -FI_EADDRNOTAVAIL && family == AF_INET6) {
			uet_sock_close(a);
			tap_skip(9, "no IPv6 here");
			absent = true;
			continue;
		}
		if (ret)
			tap_bail("sockets at %s: %s", text, fi_strerror(-ret));
		snprintf(what, sizeof(what), "%s, %s segments, %s put together", text,
			 a->path[0].gso ? "with" : "without", b->gro ? "also" : "not");
		pass(a, b, i & 1 ? UET_ECN_ECT : 0xb8 | UET_ECN_CE, what);
		tap_ok(!uet_sock_fix(a, &b->addr), "%s: connected", what);
		pass(a, b, i & 1 ? UET_ECN_ECT : 0xb8 | UET_ECN_CE, what);
		uet_sock_close(a);
		uet_sock_close(b);
	}
}

/* Sockets that are connected to one peer: others are reached as before. */
static void test_fixed(void)
{
	struct uet_sock_config c = config_of("127.0.0.1", AF_INET);
	struct wire_addr six = addr_of("::1", AF_INET6);
	struct uet_sock *a, *b, *other;
	struct seen s = {0}, s2 = {0};

	if (uet_sock_open(&c, &a) || uet_sock_open(&c, &b) || uet_sock_open(&c, &other))
		tap_bail("no sockets");
	tap_ok(uet_sock_fix(a, &six) && !a->fixed, "not to an address of another family");
	tap_ok(!uet_sock_fix(a, &b->addr) && a->fixed == PATHS, "connected to one");
	tap_ok(uet_sock_fix(a, &other->addr) == -FI_EBUSY &&
		       wire_addr_equal(&a->fixed_to, &b->addr),
	       "to one at a time");
	send_all(a, other, 0, &s);
	tap_ok(s.total == DGRAMS && !s.wrong, "others are reached");
	uet_sock_unfix(a, &other->addr);
	tap_is_int(a->fixed, PATHS, "what ends with another peer doesn't end this");
	uet_sock_unfix(a, &b->addr);
	tap_is_int(a->fixed, 0, "its own end does");
	tap_ok(!uet_sock_fix(a, &other->addr), "there may be another then");
	send_all(a, b, 0, &s2);
	tap_ok(s2.total == DGRAMS && !s2.wrong, "and the first is reached as before");
	uet_sock_close(a);
	uet_sock_close(b);
	uet_sock_close(other);
}

/* ---- when the kernel is asked ------------------------------------------------------ */

/* Some KiB, as few datagrams as loopback takes. */
static void stream(struct uet_sock *from, struct uet_sock *to, unsigned count)
{
	static uint8_t data[32768];
	struct uet_tx tx = {.to = &to->addr, .len = sizeof(data), .iov_count = 1};

	tx.iov[0] = (struct iovec){data, sizeof(data)};
	while (count)
		count -= (unsigned)uet_send(from, &tx, 1);
}

static void count_it(void *arg, const struct uet_dgram *d)
{
	(void)d;
	++*(unsigned *)arg;
}

/* Time is what the test says it is. Over loopback what was sent is there. */
static void test_rest(void)
{
	struct uet_sock_config c = config_of("127.0.0.1", AF_INET);
	uint64_t long_after = UINT64_MAX / 2;
	unsigned n = 0, before;
	struct uet_sock *a, *b;

	if (uet_sock_open(&c, &a) || uet_sock_open(&c, &b))
		tap_bail("no sockets");
	for (unsigned i = 0; i < 4; i++) {
		stream(a, b, 1);
		uet_recv(b, 64, 1, count_it, &n);
	}
	tap_is_int(n, 4, "a few datagrams: each time that the kernel is asked");
	while (n < 16) {
		stream(a, b, 1);
		before = n;
		uet_recv(b, 64, long_after, count_it, &n);
		if (n == before)
			break;
	}
	tap_is_int(n, 16, "more of them, asked for long after the last: the same");
	stream(a, b, 1);
	uet_recv(b, 64, 1, count_it, &n);
	tap_is_int(n, 16, "in a long stream the kernel isn't asked again at once");
	uet_recv(b, 64, long_after, count_it, &n);
	tap_is_int(n, 17, "but after a while");
	uet_recv(b, 64, long_after + 1000000, count_it, &n);
	uet_recv(b, 64, long_after + 2000000, count_it, &n);
	stream(a, b, 1);
	uet_recv(b, 64, 1, count_it, &n);
	tap_is_int(n, 18, "twice in vain, and the stream is over");
	stream(a, b, 1);
	uet_recv(b, 64, 0, count_it, &n);
	tap_is_int(n, 19, "whoever says no time asks in any case");
	uet_sock_close(a);
	uet_sock_close(b);
}

/* One that is sent alone: of the class that its socket has, and of another. */
static void test_alone(void)
{
	struct uet_sock_config c = config_of("127.0.0.1", AF_INET);
	struct uet_sock *a, *b;
	uint8_t data[SIZE];

	c.tos = UET_ECN_ECT;
	if (uet_sock_open(&c, &a) || uet_sock_open(&c, &b))
		tap_bail("no sockets");
	fill(data, 6);
	for (unsigned i = 0; i < 2; i++) {
		struct seen s = {.tos = i ? 0 : UET_ECN_ECT};
		struct uet_tx tx = {.to = &b->addr,
				    .len = size_of(6),
				    .iov_count = 2,
				    .tos = s.tos,
				    .iov = {{data, 44}, {data + 44, size_of(6) - 44}}};

		while (!uet_send(a, &tx, 1))
			;
		wait_for(b, &s, 1);
		tap_ok(s.count[6] == 1 && !s.wrong, "a short one comes as it was sent");
		tap_ok(!s.other_tos, "with its class 0x%02x", s.tos);
	}
	uet_sock_close(a);
	uet_sock_close(b);
}

/* ---- what is refused --------------------------------------------------------------- */

static void test_refusals(void)
{
	struct uet_sock_config c = config_of("127.0.0.1", AF_INET);
	struct uet_rail rail = {.addr = c.door, .device = "no-such-if"};
	struct uet_sock *a, *b = NULL;

	if (uet_sock_open(&c, &a))
		tap_bail("no sockets");
	c.door = a->addr;
	tap_is_int(uet_sock_open(&c, &b), -FI_EADDRINUSE, "a port that is taken");
	uet_sock_close(a);
	c.door = addr_of("192.0.2.1", AF_INET);
	tap_is_int(uet_sock_open(&c, &b), -FI_EADDRNOTAVAIL, "an address of others");
	c.door = addr_of("127.0.0.1", AF_INET);
	c.rails = &rail;
	c.rail_count = 1;
	tap_is_int(uet_sock_open(&c, &b), -FI_ENODEV, "an interface that isn't there");
	rail.addr = addr_of("::1", AF_INET6);
	tap_is_int(uet_sock_open(&c, &b), -FI_EINVAL, "a rail of the other family");
	c.rail_count = UET_SOCK_RAILS + 1;
	tap_is_int(uet_sock_open(&c, &b), -FI_EINVAL, "too many rails");
	c.rail_count = 0;
	c.paths = UET_SOCK_PATHS + 1;
	tap_is_int(uet_sock_open(&c, &b), -FI_EINVAL, "too many paths");
}

static void test_buffers(void)
{
	struct uet_sock_config c = config_of("127.0.0.1", AF_INET);
	struct uet_sock *a;

	c.rcvbuf = c.sndbuf = 65536;
	if (uet_sock_open(&c, &a))
		tap_bail("no sockets");
	tap_ok(a->rcvbuf >= 65536 && a->sndbuf >= 65536 && !a->warning[0],
	       "small buffers are there, without a word");
	uet_sock_close(a);
	c.rcvbuf = 1 << 30;
	c.no_force = true;
	if (uet_sock_open(&c, &a))
		tap_bail("no sockets");
	if (a->rcvbuf >= c.rcvbuf)
		tap_skip(1, "the system gives as much as there is");
	else
		tap_ok(strstr(a->warning, "net.core.rmem_max") != NULL,
		       "a buffer that is cut is told, with what to raise");
	uet_sock_close(a);
}

static bool news_wait(struct uet_sock *sock, struct uet_sock_news *news)
{
	for (int i = 0; i < WAIT_MS; i++) {
		struct timespec ms = {.tv_nsec = 1000000};

		if (uet_sock_news(sock, true, news))
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

/* Sends `count` datagrams of that size at once. */
static size_t send_some(struct uet_sock *sock, const struct wire_addr *to, size_t len,
			unsigned count)
{
	static uint8_t data[65536];
	struct uet_tx tx[8];

	for (unsigned i = 0; i < count; i++) {
		tx[i] = (struct uet_tx){.to = to, .len = len, .iov_count = 1};
		tx[i].iov[0] = (struct iovec){data, len};
	}
	return uet_send(sock, tx, count);
}

static void test_nobody(bool fixed)
{
	struct uet_sock_config c = config_of("127.0.0.1", AF_INET);
	struct uet_sock_news news = {.err = 0};
	struct uet_sock *a, *deaf;
	struct seen s = {0};
	struct wire_addr to;

	if (uet_sock_open(&c, &a) || uet_sock_open(&c, &deaf))
		tap_bail("no sockets");
	/* It keeps its port from others, and hears nobody but one who says nothing. */
	to = deaf->addr;
	if (connect(deaf->fd, &deaf->addr.sa, wire_addr_len(&deaf->addr)))
		tap_bail("no deaf socket");
	if (fixed && uet_sock_fix(a, &to))
		tap_bail("no sockets that are connected");
	tap_is_int((int64_t)send_some(a, &to, 100, 1), 1, "what nobody hears leaves");
	tap_ok(news_wait(a, &news) && news.err == -FI_ECONNREFUSED &&
		       wire_addr_equal(&news.to, &to),
	       "and that there is nobody comes back, with the address");
	/* An error of before doesn't stop what goes elsewhere. */
	send_some(a, &to, 100, 1);
	tap_is_int((int64_t)send_some(a, &a->addr, 100, 1), 1,
		   "others are still reached");
	wait_for(a, &s, 1);
	tap_is_int(s.total, 1, "and hear");
	while (uet_sock_news(a, true, &news))
		;
	uet_sock_close(a);
	uet_sock_close(deaf);
}

/* ---- an interface of our own ------------------------------------------------------- */

static bool lo_set(int mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = {.ifr_name = "lo"};
	bool ok;

	r.ifr_mtu = mtu;
	ok = ioctl(fd, SIOCSIFMTU, &r) == 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0;
	r.ifr_flags |= IFF_UP;
	ok = ok && ioctl(fd, SIOCSIFFLAGS, &r) == 0;
	close(fd);
	return ok;
}

#define STEP(n, cond) ((cond) ? 0u : 1u << (n))

/* What went wrong, a bit for each step. */
static unsigned shrink(void)
{
	struct uet_sock_config c = config_of("127.0.0.1", AF_INET);
	struct uet_rail rail = {.addr = c.door, .device = "lo"};
	struct uet_sock_news news = {.err = 0};
	struct uet_sock *a;
	unsigned bad;
	int err;

	c.rails = &rail;
	c.rail_count = 1;
	if (!lo_set(1500) || uet_sock_open(&c, &a))
		return 1;
	bad = STEP(1, uet_sock_room(a, 0, &a->addr, &err) == 1500 - UET_OVERHEAD_IP4);
	lo_set(1300);
	bad |= STEP(2, uet_sock_room(a, 0, &a->addr, &err) == 1300 - UET_OVERHEAD_IP4);
	bad |= STEP(3, send_some(a, &a->addr, 1472, 1) == 1 && news_wait(a, &news) &&
			       news.err == -FI_EMSGSIZE && news.room == 1272);
	news.err = 0;
	bad |= STEP(4, send_some(a, &a->addr, 1472, 8) == 8 && news_wait(a, &news) &&
			       news.err == -FI_EMSGSIZE && news.room == 1272);
	while (uet_sock_news(a, true, &news))
		;
	bad |= STEP(5, send_some(a, &a->addr, 1272, 8) == 8 &&
			       !uet_sock_news(a, true, &news));
	uet_sock_close(a);
	return bad;
}

static void test_shrink(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWNET) ? 255 : (int)shrink());
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 255) {
		tap_skip(1, "no network namespace of our own: not permitted");
		return;
	}
	tap_is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
		   "a way that gets narrower is told, one datagram or many at once");
}

/* ---- who is this host ----------------------------------------------------------------
 */

static bool stays(const struct uet_sock *sock, const char *text, int family)
{
	struct wire_addr to = addr_of(text, family);

	if (family == AF_INET6)
		to.in6.sin6_port = htons(9);
	else
		to.in.sin_port = htons(9);
	return uet_sock_stays(sock, &to);
}

static void test_stays(void)
{
	struct uet_sock_config config = config_of("127.0.0.1", AF_INET);
	struct wire_addr own = {.in.sin_family = AF_INET};
	struct uet_sock *sock;

	if (uet_sock_open(&config, &sock))
		tap_bail("no sockets");
	wire_addr_find_host(&own);
	own.in.sin_port = htons(9);
	tap_ok(uet_sock_stays(sock, &own), "its own address is this host's");
	tap_ok(stays(sock, "127.0.0.1", AF_INET) && stays(sock, "127.9.9.9", AF_INET),
	       "so is all of loopback");
	tap_ok(!stays(sock, "198.51.100.7", AF_INET), "another address isn't");
	tap_ok(!stays(sock, "::1", AF_INET6), "nor one of a kind that it can't talk to");
	uet_sock_close(sock);
	config = config_of("::1", AF_INET6);
	if (uet_sock_open(&config, &sock)) {
		tap_skip(1, "no IPv6");
		return;
	}
	tap_ok(stays(sock, "::1", AF_INET6) && !stays(sock, "2001:db8::7", AF_INET6),
	       "the same with IPv6");
	uet_sock_close(sock);
}

int main(void)
{
	test_pass("127.0.0.1", AF_INET);
	test_pass("::1", AF_INET6);
	test_fixed();
	test_rest();
	test_alone();
	test_refusals();
	test_buffers();
	test_nobody(false);
	test_nobody(true);
	test_shrink();
	test_stays();
	return tap_done();
}
