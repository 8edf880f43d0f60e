/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire between two processes: packets, RMA with and without attach, death and close.
 */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Opens server and rig, and a link from rig to server. */
static void meet(struct server *srv, struct rig *rig, bool no_cma)
{
	int ret;

	server_start(srv, no_cma);
	rig_open(rig, no_cma);
	ret = rig_dial(rig, &srv->addr);
	if (ret)
		tap_bail("dial: %d", ret);
}

static void part(struct server *srv, struct rig *rig)
{
	struct server_packet quit = {.op = SERVER_QUIT};

	rig_send(rig, rig->dialled, &quit, sizeof(quit));
	tap_is_int(server_wait(srv), 0, "the server ends well");
	rig_close(rig);
}

struct order {
	uint64_t next;
	uint64_t wrong;
};

static bool order_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			 size_t len)
{
	struct order *o = rig->user;
	uint64_t n;

	(void)link;
	memcpy(&n, pkt + 8, sizeof(n));
	if (n != o->next++)
		o->wrong++;
	for (size_t i = 16; i < len; i++)
		if (pkt[i] != (uint8_t)(n + i))
			o->wrong++;
	return true;
}

/* Rule B1: the ring loses nothing and keeps order, at every size. */
static void test_B1_packets_in_order(void)
{
	static uint8_t pkt[RIG_PACKET_MAX];
	struct order order = {0};
	const uint64_t count = 20000;
	struct server srv;
	struct rig rig;
	bool sent = true;

	meet(&srv, &rig, false);
	rig.on_packet = order_packet;
	rig.user = &order;
	for (uint64_t n = 0; n < count && sent; n++) {
		size_t len = 16 + (size_t)(n * n * 37 % (RIG_PACKET_MAX - 16));
		uint32_t op = SERVER_ECHO;

		/* Mostly small, as in life. */
		if (n % 5)
			len = 16 + len % 100;
		memcpy(pkt, &op, sizeof(op));
		memcpy(pkt + 8, &n, sizeof(n));
		for (size_t i = 16; i < len; i++)
			pkt[i] = (uint8_t)(n + i);
		sent = rig_send(&rig, rig.dialled, pkt, len);
		/* The echo is answered from the server's reserve: not too many at once.
		 */
		while (sent && n + 1 - rig.packets > 3)
			sent = rig_wait_packets(&rig, rig.packets + 1);
	}
	tap_ok(sent && rig_wait_packets(&rig, count), "every packet comes back");
	tap_is_int((int64_t)order.wrong, 0, "in order and intact");
	part(&srv, &rig);
}

static void rma_check(struct rig *rig, struct server_packet *where, size_t size)
{
	uint8_t *mine = malloc(size), *back = malloc(size);
	struct server_packet answer;
	int ret;

	for (size_t i = 0; i < size; i++)
		mine[i] = (uint8_t)(i * 31 + 5);
	ret = rig_get(rig, rig->dialled, back, size, where->arg, where->arg2);
	tap_is_int(ret, 0, "get of everything");
	for (size_t i = 0; i < size && ret == 0; i++)
		if (back[i] != (uint8_t)(i * 7 + (i >> 8)))
			ret = 1;
	tap_is_int(ret, 0, "get brings the right bytes");
	tap_is_int(rig_put(rig, rig->dialled, mine, size, where->arg, where->arg2), 0,
		   "put of everything");
	tap_ok(server_ask(rig, rig->dialled, SERVER_HASH, 0, 0), "ask for a hash");
	memcpy(&answer, rig->last, sizeof(answer));
	tap_ok(answer.arg == hash_bytes(mine, size), "put brought the right bytes");
	tap_is_int(rig_put(rig, rig->dialled, mine, 1, where->arg + size, where->arg2),
		   -FI_EINVAL, "put behind the end");
	tap_is_int(
		rig_put(rig, rig->dialled, mine, 2, where->arg + size - 1, where->arg2),
		-FI_EINVAL, "put across the end");
	memset(back, 0, size);
	tap_is_int(rig_put(rig, rig->dialled, back, size, where->arg + 1, where->arg2),
		   -FI_EINVAL, "a large put, across the end with its last byte");
	tap_ok(server_ask(rig, rig->dialled, SERVER_HASH, 0, 0), "ask for a hash");
	memcpy(&answer, rig->last, sizeof(answer));
	tap_ok(answer.arg == hash_bytes(mine, size), "moves no byte at all");
	tap_is_int(rig_get(rig, rig->dialled, mine, 1, where->arg - 1, where->arg2),
		   -FI_EINVAL, "get before the beginning");
	tap_is_int(rig_put(rig, rig->dialled, mine, 1, where->arg, where->arg2 + 1),
		   -FI_ENOKEY, "put by a key that isn't");
	tap_is_int(rig_put(rig, rig->dialled, mine, 0, where->arg + size, where->arg2), 0,
		   "put of nothing at the end");
	free(mine);
	free(back);
}

/* Whether the system lets a process read memory as others' is read. */
static bool attach_is_allowed(void)
{
	char word = 0, copy;
	const struct iovec here = {&copy, 1}, there = {&word, 1};

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static void test_rma(bool no_cma)
{
	const size_t size = 3 * 1024 * 1024 + 77;
	struct server_packet where;
	struct server srv;
	struct rig rig;
	uint8_t byte = 0;

	tap_diag("cross-memory attach: %s", no_cma ? "off" : "on");
	meet(&srv, &rig, no_cma);
	tap_ok(wire_link_base(rig.dialled)->caps.raw == !no_cma, "raw access is offered");
	tap_ok(server_ask(&rig, rig.dialled, SERVER_REGISTER, size, RW), "register");
	memcpy(&where, rig.last, sizeof(where));
	rma_check(&rig, &where, size);
	tap_ok(server_ask(&rig, rig.dialled, SERVER_REGISTER, 4096, FI_REMOTE_READ),
	       "register for reading");
	memcpy(&where, rig.last, sizeof(where));
	tap_is_int(rig_put(&rig, rig.dialled, &byte, 1, where.arg, where.arg2),
		   -FI_EACCES, "put where only reading is allowed");
	part(&srv, &rig);
}

/* Rule D6: RMA moves while the target makes no call at all, which it does until it is
 * woken. */
static void test_D6_passive_target(bool no_cma)
{
	const size_t size = 1024 * 1024;
	struct server_packet where;
	struct server srv;
	struct rig rig;
	uint8_t *buf = calloc(1, size);
	uint64_t before;

	meet(&srv, &rig, no_cma);
	server_ask(&rig, rig.dialled, SERVER_REGISTER, size, RW);
	memcpy(&where, rig.last, sizeof(where));
	tap_ok(server_ask(&rig, rig.dialled, SERVER_PAUSE, 0, 0), "the target sleeps");
	before = rig.packets;
	tap_is_int(rig_put(&rig, rig.dialled, buf, size, where.arg, where.arg2), 0,
		   "put while the target sleeps");
	tap_is_int(rig_get(&rig, rig.dialled, buf, size, where.arg, where.arg2), 0,
		   "get while the target sleeps");
	shm_wire_ops.progress(rig.ep, 64);
	tap_is_int((int64_t)(rig.packets - before), 0, "neither waited for it");
	server_wake(&srv);
	tap_ok(rig_wait_packets(&rig, before + 1), "it wakes");
	free(buf);
	part(&srv, &rig);
}

/* Memory that was registered but isn't there: an error, on either side, in either way. */
static void test_bad_address(bool no_cma)
{
	static uint64_t sink;
	struct mem_region region = {.iov_count = 1, .access = RW, .virt_addr = true};
	uint64_t word = 1, key;
	struct rig rig;

	rig_open(&rig, no_cma);
	if (rig_dial(&rig, &wire_ep_base(rig.ep)->addr))
		tap_bail("dial");
	region.iov[0].iov_len = SIZE_MAX;
	tap_is_int(mem_keytab_insert(rig.keys, &region, &key), 0, "all of memory");
	tap_is_int(rig_put(&rig, rig.dialled, &word, sizeof(word), 64, key), -FI_EFAULT,
		   "put to an address that isn't");
	tap_is_int(rig_get(&rig, rig.dialled, &word, sizeof(word), 64, key), -FI_EFAULT,
		   "get from one");
	tap_is_int(rig_get(&rig, rig.dialled, &word, sizeof(word),
			   UINT64_C(0xffff800000000000), key),
		   -FI_EFAULT, "get from the kernel's memory");
	if (!no_cma)
		tap_is_int(rig_put(&rig, rig.dialled, (void *)64, sizeof(word),
				   (uintptr_t)&word, key),
			   -FI_EFAULT, "put from a local address that isn't");
	tap_is_int(rig_put(&rig, rig.dialled, &word, sizeof(word), (uintptr_t)&sink, key),
		   0, "the link goes on");
	rig_close(&rig);
}

/* Many segments of many pieces at a time; what doesn't fit says so; all are reported. */
static void test_many_segments(bool no_cma)
{
	enum { WORDS = 3000, PIECES = 5 };
	static uint32_t from[WORDS * PIECES], to[WORDS * PIECES];
	struct mem_region region = {.iov_count = 2, .access = RW};
	int at_once = 0, again = 0, want = 0;
	uint64_t cookies = 0, key;
	struct rig rig;

	rig_open(&rig, no_cma);
	if (rig_dial(&rig, &wire_ep_base(rig.ep)->addr))
		tap_bail("dial");
	region.iov[0].iov_base = to;
	region.iov[0].iov_len = sizeof(to) / 2 + 4;
	region.iov[1].iov_base = (char *)to + sizeof(to) / 2 + 4;
	region.iov[1].iov_len = sizeof(to) / 2 - 4;
	mem_keytab_insert(rig.keys, &region, &key);
	memset(to, 0, sizeof(to));
	for (int i = 0; i < WORDS * PIECES; i++)
		from[i] = (uint32_t)(i * 2654435761u);
	for (int i = 0; i < WORDS; i++) {
		struct iovec iov[PIECES];
		struct wire_segment seg = {
			.local = iov,
			.local_count = PIECES,
			.remote = {.addr = (uint64_t)i * PIECES * 4, .key = key},
			.len = PIECES * 4,
			.cookie = (void *)(uintptr_t)(i + 1)};
		int ret;

		for (int p = 0; p < PIECES; p++)
			iov[p] = (struct iovec){.iov_base = &from[i * PIECES + p],
						.iov_len = 4};
		while ((ret = shm_wire_ops.put(rig.dialled, &seg)) == -FI_EAGAIN) {
			again++;
			shm_wire_ops.progress(rig.ep, 64);
		}
		if (ret == 1) {
			at_once++;
		} else if (ret == 0) {
			want++;
			cookies += (uint64_t)i + 1;
		}
	}
	tap_ok(rig_wait_int(&rig, &rig.segments, want), "all segments are reported");
	tap_is_int(at_once + want, WORDS, "none is refused");
	tap_ok(no_cma ? want == WORDS && again > 0 : at_once == WORDS, "in their way");
	tap_ok(rig.segment_cookie_sum == cookies, "each with its own cookie, once");
	tap_ok(same_bytes(from, to, sizeof(to)), "every byte is in its place");
	rig_close(&rig);
}

static void test_death(void)
{
	struct server srv;
	struct rig rig;

	meet(&srv, &rig, false);
	kill(srv.pid, SIGKILL);
	tap_is_int(server_wait(&srv), -SIGKILL, "the server was killed");
	tap_ok(rig_wait_int(&rig, &rig.downs, 1), "its death is noticed");
	tap_is_int(rig.down_err, -FI_ECONNRESET, "and told as a reset");
	tap_is_int(rig_dial(&rig, &srv.addr), -FI_ECONNREFUSED,
		   "nothing is left of its door");
	rig_close(&rig);
}

static void test_close_drains(void)
{
	struct server_packet quit = {.op = SERVER_QUIT, .arg = 40};
	struct server srv;
	struct rig rig;

	meet(&srv, &rig, false);
	rig_send(&rig, rig.dialled, &quit, sizeof(quit));
	tap_is_int(server_wait(&srv), 0, "the server closed and ended");
	tap_ok(rig_wait_int(&rig, &rig.downs, 1), "the close is noticed");
	tap_is_int(rig.down_err, -FI_ESHUTDOWN, "and told as one");
	tap_is_int((int64_t)rig.packets, 40, "after everything that was sent before");
	rig_close(&rig);
}

static void test_self(void)
{
	struct rig rig;
	uint64_t word = 7, copy = 0, key;
	struct mem_region region = {.iov_count = 1, .access = RW};

	rig_open(&rig, false);
	tap_is_int(rig_dial(&rig, &wire_ep_base(rig.ep)->addr), 0, "dial to self");
	tap_ok(rig_wait_int(&rig, &rig.ups, 2), "both ends come up");
	tap_ok(rig_send(&rig, rig.dialled, &word, sizeof(word)) &&
		       rig_wait_packets(&rig, 1),
	       "a packet to self");
	region.iov[0].iov_base = &word;
	region.iov[0].iov_len = sizeof(word);
	mem_keytab_insert(rig.keys, &region, &key);
	tap_is_int(rig_get(&rig, rig.accepted, &copy, sizeof(copy), 0, key), 0,
		   "get from self");
	tap_is_int((int64_t)copy, 7, "the right bytes");
	copy = 9;
	tap_is_int(rig_put(&rig, rig.dialled, &copy, sizeof(copy), 0, key), 0,
		   "put to self");
	tap_is_int((int64_t)word, 9, "the right bytes");
	rig_close(&rig);
}

int main(void)
{
	/* Where attach is refused to all, both ways are the one without. */
	const bool refused = !attach_is_allowed();

	alarm(280);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	test_B1_packets_in_order();
	test_rma(refused);
	test_rma(true);
	test_bad_address(refused);
	test_bad_address(true);
	test_many_segments(refused);
	test_many_segments(true);
	test_D6_passive_target(refused);
	test_D6_passive_target(true);
	test_death();
	test_close_drains();
	test_self();
	return tap_done();
}
