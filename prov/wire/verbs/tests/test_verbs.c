/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs wire between two processes, over whatever libibverbs is found (verbs.t runs
 * it over the emulated one): packets, puts, gets, notices, keys, the end of a peer.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_connect.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_poll.h"
#include "util/tap.h"
#include "util/tap_fork.h"

#define RW    (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define LARGE ((size_t)5 << 20)

struct pair {
	struct server srv;
	struct rig rig;
	struct wire_link *link;
};

static void pair_open(struct pair *p)
{
	int ret;

	server_start(&p->srv);
	rig_open(&p->rig);
	ret = rig_dial(&p->rig, &p->srv.addr);
	if (ret)
		tap_bail("dial: %s", fi_strerror(-ret));
	p->link = p->rig.dialled;
}

static void pair_close(struct pair *p)
{
	const struct server_packet quit = {.op = SERVER_QUIT};

	rig_send(&p->rig, p->link, &quit, sizeof(quit));
	tap_ok(rig_wait_int(&p->rig, &p->rig.downs, 1), "the link ends");
	tap_is_int(p->rig.down_err, -FI_ESHUTDOWN,
		   "because the peer closed its endpoint");
	tap_is_int(server_wait(&p->srv), 0, "which ended well");
	rig_close(&p->rig);
}

static void test_packets(void)
{
	static uint8_t echo[4096];
	struct pair p;
	uint64_t before;
	int wrong = 0;

	pair_open(&p);
	tap_ok(wire_link_base(p.link)->peer_incarnation != 0, "the link is up");
	for (int i = 0; i < 2000; i++) {
		uint32_t op = SERVER_ECHO;
		size_t len = sizeof(struct server_packet) + (size_t)(i * 37) % 4000;

		memset(echo, i, sizeof(echo));
		memcpy(echo, &op, sizeof(op));
		before = p.rig.packets;
		wrong += !rig_send(&p.rig, p.link, echo, len) ||
			 !rig_wait_u64(&p.rig, &p.rig.packets, before + 1) ||
			 p.rig.last_len != len || memcmp(p.rig.last, echo, len) != 0;
		if (wrong)
			break;
	}
	tap_is_int(wrong, 0, "B1: packets of any length come back");
	before = p.rig.packets;
	for (int i = 0; i < 20000; i++) {
		struct server_packet sink = {.op = SERVER_SINK, .arg = (uint64_t)i};

		wrong += !rig_send(&p.rig, p.link, &sink, sizeof(sink));
	}
	tap_ok(wrong == 0 && server_ask(&p.rig, p.link, SERVER_ECHO, 5, 0),
	       "B3: many packets that are only swallowed");
	pair_close(&p);
}

static void test_memory(void)
{
	struct server_packet a;
	uint8_t *mem;
	void *handle;
	struct pair p;
	int wrong = 0;

	pair_open(&p);
	mem = rig_memory(&p.rig, LARGE, &handle);
	server_ask(&p.rig, p.link, SERVER_REGISTER, LARGE, RW);
	a = server_answer(&p.rig);
	tap_is_int(rig_move(&p.rig, p.link, false, mem, handle, LARGE, a.arg, a.arg2), 0,
		   "a large get");
	for (size_t i = 0; i < LARGE; i++)
		wrong += mem[i] != (uint8_t)(i * 7 + (i >> 8));
	tap_is_int(wrong, 0, "brings every byte");
	for (size_t i = 0; i < LARGE; i++)
		mem[i] = (uint8_t)(i * 13 + (i >> 9));
	tap_is_int(rig_move(&p.rig, p.link, true, mem, handle, LARGE, a.arg, a.arg2), 0,
		   "a large put");
	server_ask(&p.rig, p.link, SERVER_HASH, 0, 0);
	tap_ok(server_answer(&p.rig).arg == hash_bytes(mem, LARGE), "carries every byte");
	for (int i = 0; i < 500; i++) {
		size_t at = (size_t)i * 1000, len = (size_t)i % 300 + 1;

		mem[at] = (uint8_t)i;
		wrong += rig_move(&p.rig, p.link, true, mem + at, handle, len, a.arg + at,
				  a.arg2) != 0;
	}
	tap_is_int(wrong, 0, "small puts");
	/* All of those that may, but where each has a number. */
	tap_ok(p.rig.soon >= 50 || verbs_link_numbers(verbs_link_of(p.link)),
	       "of which some leave in a straight line");
	server_ask(&p.rig, p.link, SERVER_HASH, 0, 0);
	tap_ok(server_answer(&p.rig).arg == hash_bytes(mem, LARGE), "are all there");
	tap_is_int(
		rig_move(&p.rig, p.link, true, mem, handle, 8, a.arg + LARGE - 4, a.arg2),
		-FI_EINVAL, "a put that isn't inside the region");
	tap_ok(!verbs_wire_ops.put_soon(p.link, a.arg2, a.arg + LARGE - 4, mem, 8,
					NULL) &&
		       !verbs_wire_ops.put_soon(p.link, a.arg2, a.arg - 4, mem, 8,
						NULL) &&
		       !verbs_wire_ops.put_soon(p.link, a.arg2 + 1, a.arg, mem, 8, NULL),
	       "nor does one that isn't, or has no such key, leave so");
	tap_is_int(rig_move(&p.rig, p.link, true, mem, handle, 8, a.arg, a.arg2 + 1),
		   -FI_ENOKEY, "a key that isn't there");
	pair_close(&p);
}

static void test_keys(void)
{
	struct server_packet a, b;
	uint8_t *mem;
	void *handle;
	struct pair p;
	uint64_t old;

	pair_open(&p);
	mem = rig_memory(&p.rig, 65536, &handle);
	server_ask(&p.rig, p.link, SERVER_REGISTER, 65536, FI_REMOTE_READ);
	a = server_answer(&p.rig);
	tap_is_int(rig_move(&p.rig, p.link, true, mem, handle, 8, a.arg, a.arg2),
		   -FI_EACCES, "a put into what may only be read");
	tap_is_int(rig_move(&p.rig, p.link, false, mem, handle, 8, a.arg, a.arg2), 0,
		   "a get from there");
	server_ask(&p.rig, p.link, SERVER_REGISTER, 65536, RW);
	a = server_answer(&p.rig);
	tap_is_int(rig_move(&p.rig, p.link, true, mem, handle, 8, a.arg, a.arg2), 0,
		   "a put by a key that is remembered now");
	server_ask(&p.rig, p.link, SERVER_HASH, 0, 0);
	old = server_answer(&p.rig).arg;
	server_ask(&p.rig, p.link, SERVER_RENEW, 0, 0);
	b = server_answer(&p.rig);
	memset(mem, 0xee, 65536);
	tap_is_int(rig_move(&p.rig, p.link, true, mem, handle, 8, a.arg, a.arg2),
		   -FI_EINVAL,
		   "D2: the same key of other memory: refused, fetched, not inside it");
	tap_is_int(rig_move(&p.rig, p.link, true, mem, handle, 65536, b.arg, b.arg2), 0,
		   "D2: and good for the new memory");
	server_ask(&p.rig, p.link, SERVER_HASH, 0, 0);
	tap_ok(server_answer(&p.rig).arg == hash_bytes(mem, 65536) && old != 0,
	       "which was written");
	server_ask(&p.rig, p.link, SERVER_CLOSE, 0, 0);
	tap_is_int(rig_move(&p.rig, p.link, true, mem, handle, 8, b.arg, b.arg2),
		   -FI_ENOKEY, "D2, D3: a closed key is refused by the device");
	tap_ok(server_ask(&p.rig, p.link, SERVER_ECHO, 0, 0),
	       "C6: and that was the operation's end only");
	pair_close(&p);
}

/* Innocent puts beside one whose key was closed: they don't notice. */
static void test_innocent(void)
{
	struct server_packet a, b;
	uint8_t *mem;
	void *handle;
	struct pair p;
	int ret = 0;

	pair_open(&p);
	mem = rig_memory(&p.rig, LARGE, &handle);
	memset(mem, 0x17, LARGE);
	server_ask(&p.rig, p.link, SERVER_REGISTER, 4096, RW);
	a = server_answer(&p.rig);
	ret |= rig_move(&p.rig, p.link, true, mem, handle, 8, a.arg, a.arg2);
	server_ask(&p.rig, p.link, SERVER_CLOSE, 0, 0);
	server_ask(&p.rig, p.link, SERVER_REGISTER, LARGE, RW);
	b = server_answer(&p.rig);
	for (int i = 0; i < 64; i++) {
		ret |= rig_start(&p.rig, p.link, true, mem, handle, LARGE / 8, b.arg,
				 b.arg2, NULL);
		if (i == 20)
			ret |= rig_start(&p.rig, p.link, true, mem, handle, 8, a.arg,
					 a.arg2, NULL);
	}
	tap_is_int(ret, 0, "puts, one of them by a closed key");
	tap_ok(rig_wait_int(&p.rig, &p.rig.segments, 1 + 65), "all end");
	tap_is_int(p.rig.segment_errs, 1, "C6: only that one with an error");
	pair_close(&p);
}

static void test_notices(void)
{
	struct server_packet a;
	uint8_t *mem;
	void *handle;
	struct pair p;
	uint64_t bytes = 0;
	int ret = 0, count = 600;

	pair_open(&p);
	mem = rig_memory(&p.rig, LARGE, &handle);
	memset(mem, 0x2b, LARGE);
	server_ask(&p.rig, p.link, SERVER_REGISTER, LARGE, RW);
	a = server_answer(&p.rig);
	for (int i = 0; i < count; i++) {
		const struct wire_notice n = {
			.data = (uint64_t)i + 1, .op = 3, .ordered = true};
		size_t len = i % 7 == 0 ? (size_t)600000 : i % 5 == 0 ? 0 : 64;

		ret |= rig_start(&p.rig, p.link, true, mem, handle, len, a.arg, a.arg2,
				 &n);
		bytes += len;
	}
	tap_is_int(ret, 0, "puts that the target hears of");
	tap_ok(rig_wait_int(&p.rig, &p.rig.segments, count), "A9: all are acknowledged");
	tap_is_int(p.rig.segment_errs, 0, "without an error");
	server_ask(&p.rig, p.link, SERVER_NOTICES, 0, 0);
	tap_is_int((long long)server_answer(&p.rig).arg, count,
		   "A8: each was heard once");
	tap_is_int((long long)server_answer(&p.rig).arg2, (long long)bytes,
		   "A8: with its length");
	server_ask(&p.rig, p.link, SERVER_LATE, 0, 0);
	tap_is_int((long long)server_answer(&p.rig).arg, 0, "A8: in order");
	pair_close(&p);
}

static void test_passive(void)
{
	const struct server_packet sleep = {.op = SERVER_SLEEP, .arg = 1500};
	struct server_packet a;
	uint8_t *mem;
	void *handle;
	struct pair p;
	uint64_t begin;
	int ret = 0;

	pair_open(&p);
	mem = rig_memory(&p.rig, LARGE, &handle);
	server_ask(&p.rig, p.link, SERVER_REGISTER, LARGE, RW);
	a = server_answer(&p.rig);
	rig_send(&p.rig, p.link, &sleep, sizeof(sleep));
	usleep(100000);
	begin = rig_now();
	ret |= rig_move(&p.rig, p.link, true, mem, handle, LARGE, a.arg, a.arg2);
	ret |= rig_move(&p.rig, p.link, false, mem, handle, LARGE, a.arg, a.arg2);
	tap_is_int(ret, 0, "D1: put and get while the target makes no call");
	tap_diag("%llu ms", (unsigned long long)(rig_now() - begin) / 1000000);
	server_ask(&p.rig, p.link, SERVER_NAME, 8192, 0);
	pair_close(&p);
}

/* Both ends sleep whenever there is nothing to do; nobody sleeps too long. */
static void test_sleep(void)
{
	const struct server_packet block = {.op = SERVER_BLOCK};
	struct server_packet a;
	uint8_t *mem;
	void *handle;
	struct pair p;
	int ret = 0;

	pair_open(&p);
	p.rig.sleeps = true;
	mem = rig_memory(&p.rig, LARGE, &handle);
	server_ask(&p.rig, p.link, SERVER_REGISTER, LARGE, RW);
	a = server_answer(&p.rig);
	rig_send(&p.rig, p.link, &block, sizeof(block));
	for (int i = 0; i < 300; i++) {
		const struct wire_notice n = {.data = (uint64_t)i + 1, .ordered = true};
		int before = p.rig.segments;

		ret |= !server_ask(&p.rig, p.link, SERVER_ECHO, 7, 0);
		ret |= rig_start(&p.rig, p.link, true, mem, handle, i % 10 ? 100 : 600000,
				 a.arg, a.arg2, &n);
		ret |= !rig_wait_int(&p.rig, &p.rig.segments, before + 1);
		ret |= rig_move(&p.rig, p.link, false, mem, handle, 1000, a.arg, a.arg2);
	}
	tap_is_int(ret, 0, "asleep: packets, puts, notices and gets");
	tap_is_int(p.rig.overslept, 0, "and every sleep is ended by news");
	pair_close(&p);
}

/* What that peer is believed to allow by the one name that is known of it. */
static void name_allows(struct pair *p, uint8_t access)
{
	struct verbs_link *link = verbs_link_of(p->link);

	list_foreach (n, &link->rkeys.known)
		container_of(n, struct verbs_rkey, where)->entry.access = access;
}

static int name_move(struct pair *p, const struct wire_segment *seg, bool write)
{
	int before = p->rig.segments;
	int ret = write ? verbs_wire_ops.put(p->link, seg)
			: verbs_wire_ops.get(p->link, seg);

	if (ret == 0 && !rig_wait_int(&p->rig, &p->rig.segments, before + 1))
		return -FI_ETIMEDOUT;
	return ret ? ret : p->rig.segment_err;
}

static void test_raw(void)
{
	struct server_packet a;
	struct wire_segment seg;
	struct iovec iov;
	uint64_t hash;
	uint8_t *mem;
	void *handle;
	struct pair p;

	pair_open(&p);
	mem = rig_memory(&p.rig, 8192, &handle);
	for (int i = 0; i < 8192; i++)
		mem[i] = (uint8_t)(i * 3);
	server_ask(&p.rig, p.link, SERVER_NAME, 8192, 0);
	a = server_answer(&p.rig);
	server_ask(&p.rig, p.link, SERVER_HASH, 0, 0);
	hash = server_answer(&p.rig).arg;
	iov = (struct iovec){mem, 8192};
	seg = (struct wire_segment){.local = &iov,
				    .handles = &handle,
				    .local_count = 1,
				    .remote = {a.arg, a.arg2, true},
				    .len = 8192};
	tap_is_int(name_move(&p, &seg, true), -FI_EACCES,
		   "D3: what has a name only can't be written");
	name_allows(&p, VERBS_KEYS_READ | VERBS_KEYS_WRITE);
	tap_is_int(name_move(&p, &seg, true), -FI_EACCES,
		   "D3: by its device's word, not by the peer's");
	server_ask(&p.rig, p.link, SERVER_HASH, 0, 0);
	tap_ok(server_answer(&p.rig).arg == hash, "and is as it was");
	tap_is_int(name_move(&p, &seg, false), 0, "a get by name");
	tap_ok(hash_bytes(mem, 8192) == hash, "brings every byte");
	pair_close(&p);
}

/* An answerer that speaks for the dialler. */
static void test_lies(void)
{
	const struct verbs_msg ready = {.op = VERBS_MSG_READY, .incarnation = 1};
	struct verbs_msg_bytes bytes;
	struct pair p;

	pair_open(&p);
	verbs_msg_write(&bytes, &ready);
	tap_is_int(verbs_lanes_msg(verbs_link_of(p.link), &bytes, sizeof(bytes)), -EPROTO,
		   "C7: a dialler isn't told that its own lane can send");
	pair_close(&p);
}

/* Status of a child that opens the domain of a key table that it inherited. */
static void test_fork(void)
{
	struct verbs_error error = {""};
	struct verbs_dom *own, *dom;
	int status = -1;
	struct rig a;
	pid_t child;

	rig_open(&a);
	own = verbs_ep_of(a.ep)->dom;
	child = tap_fork();
	if (child == 0) {
		alarm(280);
		if (verbs_dom_get(a.keys, &dom, &error))
			_exit(1);
		_exit(dom == own ? 2 : 0);
	}
	waitpid(child, &status, 0);
	tap_is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
		   "a forked child gets devices of its own, not its parent's");
	rig_close(&a);
}

static void child_speaks(const struct wire_addr *to)
{
	const struct server_packet word = {.op = SERVER_SINK};
	struct rig own;

	alarm(280);
	rig_open(&own);
	if (rig_dial(&own, to) || !rig_send(&own, own.dialled, &word, sizeof(word)))
		_exit(1);
	rig_close(&own);
	_exit(0);
}

/* A child of an endpoint that has connections dials it. */
static void test_child(void)
{
	int status = -1;
	struct rig a;
	pid_t child;

	rig_open(&a);
	tap_ok(rig_dial(&a, &wire_ep_base(a.ep)->addr) == 0 &&
		       rig_wait_int(&a, &a.ups, 2),
	       "connected to itself");
	child = tap_fork();
	if (child == 0)
		child_speaks(&wire_ep_base(a.ep)->addr);
	tap_ok(rig_wait_u64(&a, &a.packets, 1), "a forked child is heard");
	waitpid(child, &status, 0);
	tap_is_int(status, 0, "and ends well");
	rig_close(&a);
}

/* A child that writes all over what it got, in the middle of it. */
static void test_scribble(void)
{
	struct server_packet a;
	int status = -1, ret = 0;
	uint8_t *mem, *back;
	void *handle, *back_handle;
	struct pair p;
	pid_t child;

	pair_open(&p);
	mem = rig_memory(&p.rig, LARGE, &handle);
	back = rig_memory(&p.rig, LARGE, &back_handle);
	for (size_t i = 0; i < LARGE; i++)
		mem[i] = (uint8_t)(i * 11 + (i >> 7));
	server_ask(&p.rig, p.link, SERVER_REGISTER, LARGE, RW);
	a = server_answer(&p.rig);
	ret |= rig_start(&p.rig, p.link, true, mem, handle, LARGE, a.arg, a.arg2, NULL);
	child = tap_fork();
	if (child == 0) {
		memset(mem, 0xee, LARGE);
		memset(back, 0xee, LARGE);
		_exit(0);
	}
	tap_ok(ret == 0 && rig_wait_int(&p.rig, &p.rig.segments, 1),
	       "a put during which the process forks");
	ret = rig_move(&p.rig, p.link, false, back, back_handle, LARGE, a.arg, a.arg2);
	waitpid(child, &status, 0);
	tap_ok(ret == 0 && memcmp(mem, back, LARGE) == 0 && status == 0,
	       "and a get: the child has pages of its own");
	pair_close(&p);
}

/* ---- two ends in this process -------------------------------------------------------
 */

static bool ends_wait(struct rig *a, struct rig *b,
		      bool (*is)(struct rig *, struct rig *))
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (!is(a, b)) {
		verbs_wire_ops.progress(a->ep, 64);
		if (b)
			verbs_wire_ops.progress(b->ep, 64);
		if (rig_now() > end)
			return false;
	}
	return true;
}

static struct verbs_link *first_link(struct rig *rig)
{
	struct verbs_ep *ep = verbs_ep_of(rig->ep);
	struct verbs_link *link = NULL;

	pthread_mutex_lock(&ep->mutex);
	if (!list_empty(&ep->links))
		link = container_of(ep->links.next, struct verbs_link, member);
	pthread_mutex_unlock(&ep->mutex);
	return link;
}

/* What its helper thread heard of it. */
static bool news_take(struct verbs_link *link)
{
	bool up;

	pthread_mutex_lock(&link->ep->mutex);
	up = link->news_up;
	link->news_up = false;
	pthread_mutex_unlock(&link->ep->mutex);
	return up;
}

/* a called, and both helper threads are through; neither end has made any progress, and
 * b's will hear of its link by what arrives only. Returns that link. */
static struct verbs_link *ends_open(struct rig *a, struct rig *b)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	struct wire_link *dialled;
	struct verbs_link *link;
	bool ready = false;

	rig_open(a);
	rig_open(b);
	if (verbs_wire_ops.dial(a->ep, &wire_ep_base(b->ep)->addr, a, &dialled))
		tap_bail("dial");
	while (!ready && rig_now() < end) {
		usleep(1000);
		link = first_link(b);
		ready = link && news_take(link);
	}
	if (!ready)
		tap_bail("the answering end isn't there");
	return link;
}

static bool both_up(struct rig *a, struct rig *b)
{
	return a->ups + b->ups == 2;
}

static bool lane_again(struct rig *a, struct rig *b)
{
	const struct verbs_lane *mine = &verbs_link_of(a->dialled)->lane[0];
	const struct verbs_lane *theirs = &verbs_link_of(b->accepted)->lane[0];

	return mine->incarnation == 2 && mine->state == VERBS_LANE_UP &&
	       theirs->incarnation == 2 && theirs->state == VERBS_LANE_UP;
}

/* A lane's queue pair ends before its link is up. */
static void test_early(void)
{
	struct verbs_link *link;
	uint32_t posted;
	struct rig a, b;

	link = ends_open(&a, &b);
	posted = link->lane[0].qp->receives;
	verbs_qp_error(link->ep, link->lane[0].qp);
	verbs_wire_ops.progress(b.ep, 1024);
	tap_ok(posted > 0 && link->lane[0].qp->receives == 0 && b.ups == 0,
	       "C2: receives that are flushed before the link is up are counted");
	tap_ok(ends_wait(&a, &b, both_up) && ends_wait(&a, &b, lane_again),
	       "C2: and the lane is made anew once it is");
	rig_close(&a);
	rig_close(&b);
}

static bool hang_up(struct rig *rig, struct wire_link *link)
{
	(void)rig;
	verbs_wire_ops.hangup(link);
	return true;
}

static bool is_up(struct rig *rig, struct rig *none)
{
	(void)none;
	return rig->ups == 1;
}

static bool heard_of_end(struct rig *a, struct rig *b)
{
	(void)b;
	return a->downs == 1;
}

/* The first that is heard of a peer comes on a lane, and the link is given up in the
 * upcall that says so: the lane's queue pair is gone when it returns. */
static void test_given_up(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
	struct ibv_send_wr *bad;
	struct rig a, b;

	ends_open(&a, &b);
	b.on_up = hang_up;
	/* A peer that was granted nothing yet doesn't, if it is one of ours. */
	tap_is_int(ibv_post_send(first_link(&a)->lane[0].qp->ib, &wr, &bad), 0,
		   "an immediate");
	tap_ok(ends_wait(&b, NULL, is_up), "is the first that is heard");
	tap_ok(ends_wait(&a, &b, heard_of_end), "and the link may be given up for it");
	rig_close(&a);
	rig_close(&b);
}

/* The GID of a rail is read anew after an event of its port. */
static void rail_move(struct rig *rig, uint8_t last)
{
	struct verbs_ep *ep = verbs_ep_of(rig->ep);
	struct verbs_rail *rail = &ep->dom->dev->rail[0];

	pthread_mutex_lock(rail->moving);
	rail->reach.gid.raw[15] = last;
	pthread_mutex_unlock(rail->moving);
	atomic_fetch_add(&rail->moves, 1);
	verbs_poll_async(ep);
	verbs_wire_ops.progress(rig->ep, 64);
}

static uint8_t card_says(struct rig *rig)
{
	struct verbs_card card;

	verbs_card_make(verbs_link_of(rig->dialled), &card, false);
	return card.rail[0].gid[15];
}

static bool rail_lanes_again(struct rig *rig, struct rig *none)
{
	const struct verbs_link *link = verbs_link_of(rig->dialled);

	(void)none;
	return link->lane[0].incarnation > 1 && link->lane[0].state == VERBS_LANE_UP &&
	       link->chan.qp && !link->resuming;
}

static void test_moved(void)
{
	struct verbs_link_counts c;
	struct verbs_ep *ep;
	struct pair p;
	uint8_t was;

	pair_open(&p);
	ep = verbs_ep_of(p.rig.ep);
	was = verbs_rail_reach(&ep->dom->dev->rail[0]).gid.raw[15];
	tap_is_int(ep->card.rail[0].gid[15], was, "a card says where a rail is");
	rail_move(&p.rig, was ^ 0x40);
	tap_is_int(ep->card.rail[0].gid[15], was ^ 0x40, "and where it is after a move");
	rail_move(&p.rig, was);
	tap_is_int(ep->card.rail[0].gid[15], was, "each time");
	tap_ok(ends_wait(&p.rig, NULL, rail_lanes_again) && card_says(&p.rig) == was,
	       "C2, C5: queue pairs on that rail are made anew");
	tap_diag("lane 0.%u %d, channel %d, resuming %d",
		 verbs_link_of(p.link)->lane[0].incarnation,
		 (int)verbs_link_of(p.link)->lane[0].state,
		 verbs_link_of(p.link)->chan.qp != NULL, verbs_link_of(p.link)->resuming);
	tap_ok(server_ask(&p.rig, p.link, SERVER_ECHO, 1, 0), "and the link goes on");
	verbs_link_count(verbs_link_of(p.link), &c);
	tap_ok(c.retired > 0 && c.resumes > 0, "which is counted");
	pair_close(&p);
}

static void test_death(void)
{
	struct pair p;
	uint64_t packets;
	const struct server_packet quit = {.op = SERVER_QUIT, .arg = 20};

	pair_open(&p);
	kill(p.srv.pid, SIGKILL);
	tap_ok(rig_wait_int(&p.rig, &p.rig.downs, 1), "a peer that is killed is missed");
	tap_is_int(p.rig.down_err, -FI_ECONNRESET, "and the link says so");
	server_wait(&p.srv);
	rig_close(&p.rig);

	pair_open(&p);
	packets = p.rig.packets;
	rig_send(&p.rig, p.link, &quit, sizeof(quit));
	tap_ok(rig_wait_int(&p.rig, &p.rig.downs, 1), "a peer that closes");
	tap_is_int((long long)(p.rig.packets - packets), 20,
		   "what it sent before is delivered");
	server_wait(&p.srv);
	tap_is_int(rig_dial(&p.rig, &p.srv.addr), -FI_ECONNREFUSED,
		   "nobody is there now");
	rig_close(&p.rig);
}

static void test_self(void)
{
	struct rig a, b;
	uint8_t *mem, *target;
	void *handle;
	uint64_t key;

	rig_open(&a);
	rig_open_beside(&b, &a);
	tap_is_int(rig_dial(&a, &wire_ep_base(a.ep)->addr), 0, "dial to oneself");
	tap_ok(rig_wait_int(&a, &a.ups, 2), "both ends are up");
	mem = rig_memory(&a, 4096, &handle);
	target = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	tap_is_int(rig_register(&a, target, 4096, RW, &key), 0, "memory");
	memcpy(mem, "to myself", 10);
	tap_is_int(rig_move(&a, a.dialled, true, mem, handle, 10, (uintptr_t)target, key),
		   0, "put to oneself");
	tap_ok(memcmp(target, "to myself", 10) == 0, "arrived");
	tap_is_int(rig_dial(&b, &wire_ep_base(a.ep)->addr), 0,
		   "a second endpoint of the process");
	tap_is_int(rig_move(&b, b.dialled, false, mem + 100, handle, 10,
			    (uintptr_t)target, key),
		   0, "gets from the first, with a registration of the first");
	tap_ok(memcmp(mem + 100, "to myself", 10) == 0, "arrived");
	verbs_wire_ops.hangup(b.dialled);
	tap_ok(rig_wait_int(&a, &a.downs, 1), "hanging up is heard");
	rig_close(&b);
	rig_close(&a);
}

int main(void)
{
	test_packets();
	test_memory();
	test_keys();
	test_innocent();
	test_notices();
	test_passive();
	test_sleep();
	test_raw();
	test_lies();
	test_fork();
	test_child();
	test_scribble();
	test_early();
	test_given_up();
	test_moved();
	test_death();
	test_self();
	return tap_done();
}
