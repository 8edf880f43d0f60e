/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire over loopback, through the contract alone: two endpoints of one process, over
 * a good network and over bad ones (rules B, D, E5, H3). "test_uet SEED" repeats a run.
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/uet/tests/uet_peek.h"
#include "prov/wire/uet/uet.h"
#include "prov/wire/uet/uet_leave.h"
#include "prov/wire/uet/uet_link.h"
#include "util/tap.h"

#define WAIT_NS	 (UINT64_C(60) * 1000000000)
#define MEMORY	 ((size_t)300000)
#define PATTERNS 5

static uint64_t random_state;

static uint64_t draw(void)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct side {
	struct mem_keytab *keys;
	struct wire_ep *ep;
	struct wire_link *dialled, *accepted;
	unsigned ups, downs, segments, errors;
	int down_err, segment_err;
	uint64_t packets, wrong;
	uint8_t *memory;
	uint64_t key;
};

/* ---- what is sent: its number says its length and its bytes ------------------------ */

static size_t length_of(uint64_t n)
{
	static const size_t length[] = {8, 64, 1, 4096, 300, 8192, 5000, 17, 2048};

	return n % 100 == 99 ? 8191 : length[n % (sizeof(length) / sizeof(length[0]))];
}

static void fill(uint8_t *bytes, uint64_t n, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(n * 131 + i * 7 + (i >> 8));
}

static void on_up(void *arg, struct wire_link *link)
{
	struct side *s = arg;

	s->ups++;
	if (wire_link_base(link)->peer_ctx)
		s->dialled = link;
	else
		s->accepted = link;
}

static void on_down(void *arg, struct wire_link *link, int err)
{
	struct side *s = arg;

	s->downs++;
	s->down_err = err;
	if (s->dialled == link)
		s->dialled = NULL;
	if (s->accepted == link)
		s->accepted = NULL;
}

static void on_packet(void *arg, struct wire_link *link, const void *pkt, size_t len)
{
	struct side *s = arg;
	uint8_t want[8192];

	(void)link;
	if (len != length_of(s->packets)) {
		s->wrong++;
	} else {
		fill(want, s->packets, len);
		s->wrong += memcmp(pkt, want, len) != 0;
	}
	s->packets++;
}

static void on_segment(void *arg, struct wire_link *link, void *cookie, int err)
{
	struct side *s = arg;

	(void)link;
	s->segments++;
	s->segment_err = err;
	s->errors += err != 0;
	s->wrong += cookie != s;
}

static const struct wire_events events = {.link_up = on_up,
					  .link_down = on_down,
					  .packet = on_packet,
					  .segment_done = on_segment};

static void side_open(struct side *s)
{
	struct wire_ep_attr attr = {.events = &events, .arg = s};
	struct mem_region region = {.iov_count = 1,
				    .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				    .virt_addr = true};
	int ret;

	memset(s, 0, sizeof(*s));
	if (mem_keytab_open(64, &s->keys))
		tap_bail("no key table");
	s->memory = calloc(1, MEMORY);
	if (!s->memory)
		tap_bail("no memory");
	region.iov[0] = (struct iovec){s->memory, MEMORY};
	if (mem_keytab_insert(s->keys, &region, &s->key))
		tap_bail("no key");
	attr.addr.in.sin_family = AF_INET;
	attr.addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	attr.keys = s->keys;
	if (getrandom(&attr.incarnation, sizeof(attr.incarnation), 0) < 0)
		tap_bail("no random numbers");
	attr.incarnation |= 1;
	ret = uet_wire_ops.ep_open(&attr, &s->ep);
	if (ret)
		tap_bail("endpoint: %s", fi_strerror(-ret));
}

static void side_close(struct side *s)
{
	uet_wire_ops.ep_close(s->ep);
	mem_keytab_close(s->keys);
	free(s->memory);
}

static void bad_network(struct side *s, const char *text)
{
	struct uet_shim_config config;
	const char *why;

	if (!text)
		return;
	if (!uet_shim_parse(text, &config, &why))
		tap_bail("%s: %s", text, why);
	config.seed = draw();
	uet_turn_take(&s->ep->turn);
	s->ep->shim = uet_shim_open(&config);
	uet_turn_give(&s->ep->turn);
	if (!s->ep->shim)
		tap_bail("no memory");
}

/* A moment without anything is left to others. */
static void turn(struct side *a, struct side *b)
{
	struct pollfd p[2] = {{.fd = uet_wire_ops.fd(a->ep), .events = POLLIN},
			      {.fd = b ? uet_wire_ops.fd(b->ep) : -1, .events = POLLIN}};
	int n = uet_wire_ops.progress(a->ep, 64);

	if (b)
		n += uet_wire_ops.progress(b->ep, 64);
	if (!n)
		poll(p, b ? 2 : 1, 1);
}

/* Datagrams that were none. */
static uint64_t garbled(struct side *s)
{
	uint64_t n;

	uet_turn_take(&s->ep->turn);
	n = s->ep->garbled;
	uet_turn_give(&s->ep->turn);
	return n;
}

/* Until *count is at least `want`; false: it never is. */
static bool until(struct side *a, struct side *b, const unsigned *count, unsigned want)
{
	uint64_t end = uet_ep_now() + WAIT_NS;

	while (*count < want && uet_ep_now() < end)
		turn(a, b);
	return *count >= want;
}

static struct wire_link *dial(struct side *a, struct side *b)
{
	unsigned ups = a->ups, others = b->ups;
	struct wire_link *link;
	int ret = uet_wire_ops.dial(a->ep, &wire_ep_base(b->ep)->addr, a, &link);

	if (ret)
		tap_bail("dial: %s", fi_strerror(-ret));
	/* To oneself both are one's own. */
	if (!until(a, b, &a->ups, ups + 1) || !until(a, b, &b->ups, others + 1))
		return NULL;
	return link;
}

/* ---- packets ----------------------------------------------------------------------- */

static bool send_one(struct wire_link *link, uint64_t n)
{
	size_t len = length_of(n);
	void *at = uet_wire_ops.pkt_reserve(link, len, n % 7 ? WIRE_DATA : WIRE_CONTROL);

	if (!at)
		return false;
	fill(at, n, len);
	uet_wire_ops.pkt_commit(link, at, len);
	return true;
}

static void test_packets(const char *network, uint64_t count)
{
	const char *name = network ? network : "a good network";
	uint64_t end = uet_ep_now() + 2 * WAIT_NS, to_b = 0, to_a = 0;
	struct side a, b;

	side_open(&a);
	side_open(&b);
	bad_network(&a, network);
	bad_network(&b, network);
	if (!dial(&a, &b))
		tap_bail("%s: no link", name);
	while ((a.packets < count || b.packets < count) && uet_ep_now() < end &&
	       a.dialled && b.accepted) {
		for (int i = 0; i < 10 && to_b < count && send_one(a.dialled, to_b); i++)
			to_b++;
		for (int i = 0; i < 10 && to_a < count && send_one(b.accepted, to_a); i++)
			to_a++;
		turn(&a, &b);
	}
	tap_ok(a.packets == count && b.packets == count && !a.wrong && !b.wrong,
	       "%s: packets come both ways, once, whole, in order", name);
	if (a.packets != count || b.packets != count)
		tap_diag("%" PRIu64 " and %" PRIu64 " of %" PRIu64 ", downs %u and %u",
			 a.packets, b.packets, count, a.downs, b.downs);
	if (network && strstr(network, "corrupt")) {
		uint64_t seen_a = garbled(&a), seen_b = garbled(&b);

		tap_ok(seen_a + seen_b > 0, "what was changed was seen");
		tap_diag("%" PRIu64 " and %" PRIu64 " were", seen_a, seen_b);
	}
	side_close(&a);
	side_close(&b);
}

/* ---- a path that swallows everything, and heals --------------------------------------
 */

#define HOLE 3u

/* Streams until that path is retired, or is not; false: it never is. */
static bool stream_until(struct side *a, struct side *b, bool retired, uint64_t *sent)
{
	uint64_t end = uet_ep_now() + 2 * WAIT_NS;
	bool is = !retired;

	while (is != retired && a->dialled && uet_ep_now() < end) {
		for (int i = 0; i < 10 && send_one(a->dialled, *sent); i++)
			++*sent;
		turn(a, b);
		uet_turn_take(&a->ep->turn);
		if (a->dialled && a->dialled->pdc)
			is = uet_pdc_paths(a->dialled->pdc)->path[HOLE].retired;
		uet_turn_give(&a->ep->turn);
	}
	return is == retired;
}

static void test_hole(void)
{
	uint64_t sent = 0, end;
	struct side a, b;

	side_open(&a);
	side_open(&b);
	if (!dial(&a, &b))
		tap_bail("no link");
	bad_network(&a, "hole=3");
	tap_ok(stream_until(&a, &b, true, &sent), "a path that swallows all is retired");
	uet_turn_take(&a.ep->turn);
	uet_shim_close(a.ep->shim);
	a.ep->shim = NULL;
	uet_turn_give(&a.ep->turn);
	tap_ok(stream_until(&a, &b, false, &sent), "and used again when it is healed");
	end = uet_ep_now() + WAIT_NS;
	while (b.packets < sent && uet_ep_now() < end)
		turn(&a, &b);
	tap_ok(b.packets == sent && !b.wrong, "without the loss of anything");
	side_close(&a);
	side_close(&b);
}

/* ---- puts and gets ----------------------------------------------------------------- */

static int move(struct side *a, struct side *b, bool put, const struct iovec *iov,
		size_t count, uint64_t addr, uint64_t key)
{
	struct wire_segment seg = {.local = iov,
				   .local_count = count,
				   .remote = {.addr = addr, .key = key},
				   .cookie = a};
	unsigned before = a->segments;
	int ret = -FI_ECONNRESET;

	for (size_t i = 0; i < count; i++)
		seg.len += iov[i].iov_len;
	while (a->dialled &&
	       (ret = put ? uet_wire_ops.put(a->dialled, &seg)
			  : uet_wire_ops.get(a->dialled, &seg)) == -FI_EAGAIN)
		turn(a, b);
	if (ret)
		return ret;
	return until(a, b, &a->segments, before + 1) ? a->segment_err : -FI_ETIMEDOUT;
}

static void test_moves(const char *network, unsigned rounds)
{
	const char *name = network ? network : "a good network";
	static uint8_t local[MEMORY], back[MEMORY];
	unsigned bad = 0, failed = 0;
	struct side a, b;

	side_open(&a);
	side_open(&b);
	bad_network(&a, network);
	bad_network(&b, network);
	if (!dial(&a, &b))
		tap_bail("%s: no link", name);
	for (unsigned i = 0; i < rounds; i++) {
		size_t len = 1 + draw() % (i % 3 ? 3000 : MEMORY / 2);
		size_t at = draw() % (MEMORY - len), cut = draw() % len;
		struct iovec out[2] = {{local, cut}, {local + cut, len - cut}};
		struct iovec in[2] = {{back + 1, len - cut}, {back + 1 + len - cut, cut}};

		fill(local, draw(), len);
		memset(back, 0, len + 2);
		failed +=
			move(&a, &b, true, out, 2, (uintptr_t)b.memory + at, b.key) != 0;
		bad += memcmp(b.memory + at, local, len) != 0;
		failed +=
			move(&a, &b, false, in, 2, (uintptr_t)b.memory + at, b.key) != 0;
		bad += memcmp(back + 1, local, len) != 0 || back[0] || back[len + 1];
	}
	tap_ok(!failed && !bad, "%s: puts and gets of any length and pieces", name);
	if (failed || bad)
		tap_diag("%u failed, %u wrong, downs %u", failed, bad, a.downs);
	side_close(&a);
	side_close(&b);
}

#include "prov/wire/uet/tests/uet_lent.h"

/* The helper may be at work. */
static bool rests(struct side *s, struct wire_link *link)
{
	bool quiet;

	uet_turn_take(&s->ep->turn);
	quiet = uet_link_quiet(link);
	uet_turn_give(&s->ep->turn);
	return quiet;
}

/* What was made ready long ago has its round trip begin when the kernel gets it: a few
 * long packets are a batch as well as many short ones. */
static void test_leaves(void)
{
	struct iovec iov;
	struct wire_segment seg = {.local = &iov, .local_count = 1};
	unsigned flying, timed;
	struct side a, b;
	uint64_t before;

	side_open(&a);
	side_open(&b);
	if (!dial(&a, &b))
		tap_bail("no link");
	for (uint64_t end = uet_ep_now() + WAIT_NS;
	     a.dialled && !rests(&a, a.dialled) && uet_ep_now() < end;)
		turn(&a, &b);
	if (!a.dialled || !rests(&a, a.dialled))
		tap_bail("the link has no rest");
	seg.len = 5 * a.dialled->part;
	seg.remote = (struct wire_remote){.addr = (uintptr_t)b.memory, .key = b.key};
	seg.cookie = &a;
	iov = (struct iovec){a.memory, seg.len};
	uet_turn_take(&a.ep->turn);
	a.ep->busy = true;
	if (uet_wire_ops.put(a.dialled, &seg))
		tap_bail("no put");
	a.ep->busy = false;
	before = uet_ep_now();
	while (uet_ep_now() == before)
		;
	uet_link_pump(a.dialled, before);
	uet_leave(a.ep, before);
	flying = uet_peek_flying(a.dialled->pdc, before, &timed);
	uet_turn_give(&a.ep->turn);
	tap_ok(flying == 5 && timed == flying,
	       "a round trip begins when its packets leave");
	if (timed != flying)
		tap_diag("%u of %u", timed, flying);
	tap_ok(until(&a, &b, &a.segments, 1) && !a.errors, "and they arrive");
	side_close(&a);
	side_close(&b);
}

/* More at once than the peer has room for. */
static void test_many(void)
{
	static uint8_t back[MEMORY];
	const size_t len = MEMORY / 30;
	unsigned started = 0, refused = 0;
	uint64_t end = uet_ep_now() + WAIT_NS;
	struct side a, b;

	side_open(&a);
	side_open(&b);
	if (!dial(&a, &b))
		tap_bail("no link");
	fill(b.memory, 1, MEMORY);
	while (started < 300 && uet_ep_now() < end) {
		size_t at = started % 30 * len;
		struct iovec iov = {back + at, len};
		struct wire_segment seg = {
			.local = &iov,
			.local_count = 1,
			.remote = {.addr = (uintptr_t)b.memory + at, .key = b.key},
			.len = len,
			.cookie = &a};

		if (uet_wire_ops.get(a.dialled, &seg) == 0) {
			started++;
			continue;
		}
		refused++;
		turn(&a, &b);
	}
	tap_ok(until(&a, &b, &a.segments, 300) && !a.errors && refused &&
		       memcmp(back, b.memory, MEMORY) == 0,
	       "many gets at once");
	side_close(&a);
	side_close(&b);
}

static void test_refused(void)
{
	struct mem_region region = {
		.iov_count = 1, .access = FI_REMOTE_READ, .virt_addr = true};
	uint8_t local[20000];
	struct iovec iov = {local, sizeof(local)};
	struct side a, b;
	uint64_t key;

	memset(local, 1, sizeof(local));
	side_open(&a);
	side_open(&b);
	region.iov[0] = (struct iovec){b.memory, MEMORY};
	if (mem_keytab_insert(b.keys, &region, &key) || !dial(&a, &b))
		tap_bail("no link");
	tap_is_int(move(&a, &b, true, &iov, 1, (uintptr_t)b.memory, key), -FI_EACCES,
		   "a put where only gets are allowed");
	tap_is_int(move(&a, &b, true, &iov, 1, (uintptr_t)b.memory, b.key + 1000),
		   -FI_ENOKEY, "a put by no key");
	tap_is_int(move(&a, &b, false, &iov, 1, (uintptr_t)b.memory, b.key + 1000),
		   -FI_ENOKEY, "a get by no key");
	tap_is_int(
		move(&a, &b, true, &iov, 1, (uintptr_t)b.memory + MEMORY - 10000, b.key),
		-FI_EINVAL, "a put beyond the end");
	tap_is_int(move(&a, &b, false, &iov, 1, (uintptr_t)b.memory - 1, b.key),
		   -FI_EINVAL, "a get before the beginning");
	tap_is_int(move(&a, &b, true, &iov, 1, UINT64_MAX - 100, b.key), -FI_EINVAL,
		   "a put around the end of everything");
	tap_ok(b.memory[MEMORY - 1] == 0 && b.memory[MEMORY - 10000] == 0,
	       "which changes nothing");
	mem_keytab_want(b.keys, MEM_EVENTS_EP);
	tap_ok(!uet_wire_ops.events(a.dialled) &&
		       move(&a, &b, true, &iov, 1, (uintptr_t)b.memory, b.key) == 0 &&
		       uet_wire_ops.events(a.dialled) == MEM_EVENTS_EP,
	       "what counters want to hear is known with the put's end");
	mem_keytab_want(b.keys, MEM_EVENTS_MR);
	tap_ok(move(&a, &b, false, &iov, 1, (uintptr_t)b.memory, b.key) == 0 &&
		       uet_wire_ops.events(a.dialled) == (MEM_EVENTS_EP | MEM_EVENTS_MR),
	       "and with a get's");
	mem_keytab_remove(b.keys, b.key);
	tap_is_int(uet_wire_ops.quiesce(b.ep, b.key, uet_ep_now() + WAIT_NS), 0,
		   "a key that is dropped is quiet");
	tap_is_int(move(&a, &b, true, &iov, 1, (uintptr_t)b.memory, b.key), -FI_ENOKEY,
		   "a put by it");
	tap_is_int(move(&a, &b, false, &iov, 1, (uintptr_t)b.memory, key), 0,
		   "the link is none the worse for it");
	tap_ok(!a.downs && !b.downs, "and up");
	side_close(&a);
	side_close(&b);
}

/* ---- ends -------------------------------------------------------------------------- */

/* Keeps a port from others and hears nobody but itself. */
static int deaf_socket(struct wire_addr *addr)
{
	socklen_t len = sizeof(addr->in);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	memset(addr, 0, sizeof(*addr));
	addr->in.sin_family = AF_INET;
	addr->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, &addr->sa, len) || getsockname(fd, &addr->sa, &len) ||
	    connect(fd, &addr->sa, len))
		tap_bail("no deaf socket");
	return fd;
}

static void test_ends(void)
{
	struct wire_link *link;
	struct wire_addr gone;
	struct side a, b;
	int deaf;

	side_open(&a);
	tap_ok(dial(&a, &a) != NULL, "an endpoint dials itself");
	side_open(&b);
	link = dial(&a, &b);
	tap_ok(link && wire_link_base(link)->peer_incarnation == b.ep->incarnation &&
		       wire_link_base(b.accepted)->peer_incarnation ==
			       a.ep->incarnation &&
		       wire_addr_equal(&wire_link_base(b.accepted)->peer,
				       &wire_ep_base(a.ep)->addr),
	       "both know who the other is");
	a.downs = 0;
	/* What was sent before the end arrives before it. */
	a.packets = 0;
	for (uint64_t n = 0; n < 20; n++)
		while (!send_one(b.accepted, n))
			turn(&b, &a);
	for (int i = 0; i < 2; i++)
		turn(&a, NULL);
	side_close(&b);
	tap_ok(until(&a, NULL, &a.downs, 1) && a.down_err == -FI_ESHUTDOWN,
	       "a peer that closes says so");
	tap_ok(a.packets == 20 && !a.wrong, "after all that it had sent");
	a.downs = 0;
	deaf = deaf_socket(&gone);
	if (uet_wire_ops.dial(a.ep, &gone, &a, &link))
		tap_bail("dial");
	tap_ok(until(&a, NULL, &a.downs, 1) && a.down_err == -FI_ECONNREFUSED,
	       "nobody there: refused");
	close(deaf);
	side_open(&b);
	link = dial(&a, &b);
	uet_wire_ops.hangup(link);
	tap_ok(until(&a, &b, &b.downs, 1), "one that hangs up is heard");
	tap_is_int(a.downs, 1, "and hears nothing itself");
	side_close(&a);
	side_close(&b);
}

static void test_kill(void)
{
	struct wire_addr addr;
	struct wire_link *link;
	struct side a;
	int ready[2];
	pid_t pid;

	if (pipe(ready))
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		struct side b;

		side_open(&b);
		addr = wire_ep_base(b.ep)->addr;
		if (write(ready[1], &addr, sizeof(addr)) != sizeof(addr))
			_exit(1);
		for (;;)
			turn(&b, NULL);
	}
	if (read(ready[0], &addr, sizeof(addr)) != sizeof(addr))
		tap_bail("no peer");
	side_open(&a);
	if (uet_wire_ops.dial(a.ep, &addr, &a, &link) || !until(&a, NULL, &a.ups, 1))
		tap_bail("no link to it");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(until(&a, NULL, &a.downs, 1) && a.down_err == -FI_ECONNRESET,
	       "a peer that is killed is found gone, though nothing is sent to it");
	side_close(&a);
	close(ready[0]);
	close(ready[1]);
}

/* ---- sleeping ---------------------------------------------------------------------- */

/* Waits on the descriptor as those above do. */
static void sleep_once(struct side *s)
{
	struct pollfd p = {.fd = uet_wire_ops.fd(s->ep), .events = POLLIN};
	uint64_t due, now;

	if (uet_wire_ops.progress(s->ep, 64) || uet_wire_ops.arm(s->ep))
		return;
	due = uet_wire_ops.look_due(s->ep);
	now = uet_ep_now();
	due = due > now ? (due - now) / 1000000 + 1 : 0;
	poll(&p, 1, due < 30000 ? (int)due : 30000);
}

static void test_sleep(void)
{
	uint64_t end = uet_ep_now() + WAIT_NS;
	struct wire_addr addr;
	struct wire_link *link;
	struct side a;
	int ready[2];
	pid_t pid;

	if (pipe(ready))
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		uint64_t n = 0;
		struct side b;

		side_open(&b);
		addr = wire_ep_base(b.ep)->addr;
		if (write(ready[1], &addr, sizeof(addr)) != sizeof(addr))
			_exit(1);
		/* Answers each with one. */
		while (!b.downs) {
			sleep_once(&b);
			while (b.accepted && n < b.packets && send_one(b.accepted, n))
				n++;
		}
		_exit(b.wrong != 0);
	}
	if (read(ready[0], &addr, sizeof(addr)) != sizeof(addr))
		tap_bail("no peer");
	side_open(&a);
	if (uet_wire_ops.dial(a.ep, &addr, &a, &link))
		tap_bail("dial");
	while (!a.dialled && uet_ep_now() < end)
		sleep_once(&a);
	for (uint64_t n = 0; n < 50 && a.dialled && uet_ep_now() < end; n++) {
		while (!send_one(a.dialled, n))
			sleep_once(&a);
		while (a.packets <= n && uet_ep_now() < end)
			sleep_once(&a);
	}
	tap_ok(a.packets == 50 && !a.wrong, "two that sleep wake each other");
	side_close(&a);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

/* ---- a side that makes no calls ---------------------------------------------------- */

/* Everything that was given to the link is with the peer. */
static bool arrived(struct side *s, struct wire_link *link)
{
	uint64_t end = uet_ep_now() + WAIT_NS;
	bool quiet = false;

	while (!quiet && uet_ep_now() < end) {
		turn(s, NULL);
		quiet = rests(s, link);
	}
	return quiet;
}

static void test_silent(void)
{
	static uint8_t local[MEMORY], back[MEMORY];
	struct iovec out = {local, MEMORY}, in = {back, MEMORY};
	unsigned failed = 0, packets = 0;
	struct wire_link *link;
	struct side a, b;

	side_open(&a);
	side_open(&b);
	if (uet_wire_ops.dial(a.ep, &wire_ep_base(b.ep)->addr, &a, &link))
		tap_bail("dial");
	tap_ok(until(&a, NULL, &a.ups, 1), "D6: who makes no calls answers who dials");
	while (send_one(link, packets))
		packets++;
	tap_ok(packets >= UET_MSGS_DATA && arrived(&a, link),
	       "and takes what there is room for");
	/* Many more packets than may be under way at once. */
	fill(local, 5, MEMORY);
	for (int i = 0; i < 10; i++) {
		failed += move(&a, NULL, true, &out, 1, (uintptr_t)b.memory, b.key) != 0;
		failed += move(&a, NULL, false, &in, 1, (uintptr_t)b.memory, b.key) != 0;
	}
	tap_ok(!failed && memcmp(back, local, MEMORY) == 0,
	       "D6: puts and gets to it go on, though it takes no more packets");
	tap_ok(!send_one(link, packets), "of which none is sent without room");
	tap_ok(!b.ups && !b.packets && until(&a, &b, &b.ups, 1) && b.ups == 1,
	       "it hears of it all when it makes calls");
	for (uint64_t end = uet_ep_now() + WAIT_NS;
	     (packets < 200 || b.packets < packets) && uet_ep_now() < end;) {
		packets += packets < 200 && send_one(link, packets);
		turn(&a, &b);
	}
	tap_ok(b.packets == 200 && !b.wrong, "in order, and there is room again");
	side_close(&a);
	side_close(&b);
}

/* A sleeper that doesn't run in time: what wakes it is still there when it looks. */
static void test_late(void)
{
	struct pollfd p;
	struct side a, b;

	side_open(&a);
	side_open(&b);
	if (!dial(&a, &b))
		tap_bail("no link");
	while (uet_wire_ops.arm(b.ep))
		uet_wire_ops.progress(b.ep, 64);
	if (!send_one(a.dialled, 0) || !arrived(&a, a.dialled))
		tap_bail("nothing arrives");
	p = (struct pollfd){.fd = uet_wire_ops.fd(b.ep), .events = POLLIN};
	tap_ok(poll(&p, 1, 60000) == 1, "a sleeper is woken for what was taken for it");
	tap_ok(poll(&p, 1, 0) == 1 && uet_wire_ops.arm(b.ep) == -FI_EAGAIN,
	       "as long as it makes no progress");
	uet_wire_ops.progress(b.ep, 64);
	tap_ok(b.packets == 1 && !b.wrong, "and finds it");
	side_close(&a);
	side_close(&b);
}

int main(int argc, char **argv)
{
	static const char *const network[] = {
		NULL, "drop=0.05", "dup=0.1,reorder=0.2:2000",
		"drop=0.02,ackdrop=0.2,reorder=0.1:500,corrupt=0.05,mark=0.1", "hole=3"};
	uint64_t count = tap_short() ? 120 : 300;

	random_state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	tap_diag("seed %" PRIu64, random_state);
	for (unsigned i = 0; i < PATTERNS; i++)
		test_packets(network[i], count);
	for (unsigned i = 0; i < PATTERNS; i++)
		test_moves(network[i], tap_short() ? 2 : 4);
	test_hole();
	test_lent(network[0], 6);
	test_lent(network[3], 6);
	test_taken_back(network[0], tap_short() ? 8 : 24);
	test_taken_back(network[3], tap_short() ? 8 : 24);
	test_leaves();
	test_many();
	test_refused();
	test_ends();
	test_kill();
	test_sleep();
	test_silent();
	test_late();
	return tap_done();
}
