/* SPDX-License-Identifier: BSD-2-Clause */
/* Links that come up twice, end in every way, and memory that is at risk meanwhile. */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_link.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"
#include "util/tap_fork.h"

#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)

static void meet(struct server *srv, struct rig *rig, bool no_cma)
{
	int ret;

	server_start(srv, no_cma);
	rig_open(rig, no_cma);
	ret = rig_dial(rig, &srv->addr);
	if (ret)
		tap_bail("dial: %d", ret);
}

static int fd_count(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Both dial at once: two links, and both work in both directions. */
static void test_simultaneous(void)
{
	uint64_t word = 1;
	struct rig a, b;
	struct wire_link *la, *lb;
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	rig_open(&a, false);
	rig_open(&b, false);
	tap_is_int(shm_wire_ops.dial(a.ep, &wire_ep_base(b.ep)->addr, &a, &la), 0,
		   "a dials b");
	tap_is_int(shm_wire_ops.dial(b.ep, &wire_ep_base(a.ep)->addr, &b, &lb), 0,
		   "b dials a");
	while ((a.ups < 2 || b.ups < 2) && rig_now() < end) {
		shm_wire_ops.progress(a.ep, 64);
		shm_wire_ops.progress(b.ep, 64);
		sched_yield();
	}
	tap_ok(a.ups == 2 && b.ups == 2, "two links between the two");
	tap_ok(wire_addr_equal(&wire_link_base(a.accepted)->peer,
			       &wire_ep_base(b.ep)->addr),
	       "the one that was dialled knows by whom");
	tap_ok(wire_link_base(a.accepted)->peer_incarnation ==
			       wire_link_base(a.dialled)->peer_incarnation &&
		       wire_link_base(a.accepted)->peer_incarnation != 0,
	       "and that it is the same peer");
	rig_send(&a, a.dialled, &word, sizeof(word));
	rig_send(&a, a.accepted, &word, sizeof(word));
	rig_send(&b, b.dialled, &word, sizeof(word));
	rig_send(&b, b.accepted, &word, sizeof(word));
	tap_ok(rig_wait_packets(&a, 2) && rig_wait_packets(&b, 2),
	       "packets on both, both ways");
	rig_close(&a);
	tap_ok(rig_wait_int(&b, &b.downs, 2), "both end when one endpoint closes");
	tap_is_int(b.down_err, -FI_ESHUTDOWN, "in order");
	rig_close(&b);
}

static void test_hangup(void)
{
	struct rig a, b;
	uint64_t word = 5;
	int before;

	rig_open(&a, false);
	rig_open(&b, false);
	before = fd_count();
	for (int i = 0; i < 30; i++) {
		struct wire_link *link;

		if (i % 3 == 0) {
			/* In the middle of the handshake. */
			if (shm_wire_ops.dial(a.ep, &wire_ep_base(b.ep)->addr, &a, &link))
				tap_bail("dial");
			shm_wire_ops.hangup(link);
		} else {
			if (rig_dial(&a, &wire_ep_base(b.ep)->addr))
				tap_bail("dial");
			rig_send(&a, a.dialled, &word, sizeof(word));
			shm_wire_ops.hangup(a.dialled);
		}
	}
	tap_ok(rig_wait_int(&b, &b.downs, 20), "the peer sees every hang-up");
	rig_wait_int(&b, &b.downs, b.ups);
	tap_is_int((int64_t)b.packets, 20, "after what was sent before");
	tap_is_int(b.down_err, -FI_ECONNRESET, "as a reset");
	for (int i = 0; i < RIG_WAIT_MS / 10 && fd_count() != before; i++) {
		/* What was hung up is given back by the next progress. */
		shm_wire_ops.progress(a.ep, 1);
		shm_wire_ops.progress(b.ep, 1);
		usleep(10000);
	}
	tap_is_int(fd_count(), before, "no descriptor stays behind");
	rig_close(&a);
	rig_close(&b);
}

/* Whoever hangs up from inside an event gets no more of that link. */
static bool hang_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			size_t len)
{
	uint8_t before[64];

	memcpy(before, pkt, len);
	shm_wire_ops.hangup(link);
	/* The packet is valid until we return. */
	rig->segment_err += memcmp(before, pkt, len) != 0;
	return true;
}

static void test_hangup_inside(void)
{
	uint64_t word = 5;
	struct rig a, b;

	rig_open(&a, false);
	rig_open(&b, false);
	b.on_packet = hang_packet;
	if (rig_dial(&a, &wire_ep_base(b.ep)->addr))
		tap_bail("dial");
	for (int i = 0; i < 10; i++)
		rig_send(&a, a.dialled, &word, sizeof(word));
	tap_ok(rig_wait_packets(&b, 1), "a packet comes");
	for (int i = 0; i < 100; i++)
		shm_wire_ops.progress(b.ep, 64);
	tap_is_int((int64_t)b.packets, 1, "and no other after the hang-up");
	tap_is_int(b.downs, 0, "nor an event about its end");
	tap_is_int(b.segment_err, 0, "the packet stayed valid");
	tap_ok(rig_wait_int(&a, &a.downs, 1), "the other side hears of it");
	rig_close(&a);
	rig_close(&b);
}

/* Sends sock over itself: while that lies there unread, nobody sees it close. */
static void send_itself(int sock)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec iov = {.iov_base = "", .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &sock, sizeof(sock));
	if (sendmsg(sock, &msg, MSG_NOSIGNAL) != 1)
		tap_bail("sendmsg");
}

/* What a peer leaves in the socket of a link that is over holds nothing open. */
static void test_D4_left_in_socket(void)
{
	struct rig a, b;
	int before;

	rig_open(&a, false);
	before = fd_count();
	rig_open(&b, false);
	if (rig_dial(&b, &wire_ep_base(a.ep)->addr) || !rig_wait_int(&a, &a.ups, 1))
		tap_bail("dial");
	shm_wire_ops.hangup(a.accepted);
	send_itself(((struct shm_link *)(void *)b.dialled)->sock);
	rig_close(&b);
	/* What a hang-up holds is given back by the next progress. */
	for (int i = 0; i < RIG_WAIT_MS / 10 && fd_count() != before; i++) {
		shm_wire_ops.progress(a.ep, 64);
		usleep(10000);
	}
	tap_is_int(fd_count(), before, "a socket that was sent over itself is let go of");
	rig_close(&a);
}

/* Segments that are under way fail before the link is told to be gone. */
static int segments_at_down;
static void note_down(struct rig *rig)
{
	if (rig->downs == 0)
		segments_at_down = rig->segments;
}

static void test_death_in_service(void)
{
	/* Far more than moves until the peer is killed. */
	const size_t size = tap_short() ? 16u << 20 : 64u << 20;
	uint8_t *buf = calloc(1, size);
	struct iovec iov = {.iov_base = buf, .iov_len = size};
	struct wire_segment seg = {.local = &iov, .local_count = 1, .len = size};
	uint64_t end;
	struct server_packet where;
	struct server srv;
	struct rig rig;
	int under_way = 0;

	meet(&srv, &rig, true);
	if (!server_ask(&rig, rig.dialled, SERVER_REGISTER, size, RW))
		tap_bail("the server does not answer");
	end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	memcpy(&where, rig.last, sizeof(where));
	seg.remote.addr = where.arg;
	seg.remote.key = where.arg2;
	for (int i = 0; i < 3; i++)
		under_way += shm_wire_ops.put(rig.dialled, &seg) == 0;
	/* Without progress here only the first pieces can have been moved. */
	kill(srv.pid, SIGKILL);
	while (rig.downs == 0 && rig_now() < end) {
		note_down(&rig);
		shm_wire_ops.progress(rig.ep, 64);
	}
	note_down(&rig);
	tap_is_int(rig.downs, 1, "death is noticed in the middle of a transfer");
	tap_is_int(under_way, 3, "three segments were under way");
	tap_is_int(rig.segments, 3, "each is reported");
	tap_is_int(rig.segment_err, -FI_ECONNRESET, "as failed");
	server_wait(&srv);
	rig_close(&rig);
	free(buf);
}

/* ---- rules D3 and D4
 * ------------------------------------------------------------------- */

static bool wait_stopped(pid_t pid)
{
	int status;

	return waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
}

/* Registers, has the server stop in the middle of using the key. */
static uint64_t hold_only(struct server *srv, struct rig *rig)
{
	static uint64_t word;
	struct mem_region region = {.iov_count = 1, .access = RW};
	struct server_packet req = {.op = SERVER_HOLD};

	region.iov[0].iov_base = &word;
	region.iov[0].iov_len = sizeof(word);
	if (mem_keytab_insert(rig->keys, &region, &req.arg))
		tap_bail("insert");
	rig_send(rig, rig->dialled, &req, sizeof(req));
	tap_ok(wait_stopped(srv->pid), "a peer is stopped in the middle of a put");
	return req.arg;
}

/* And removes the key. */
static uint64_t hold(struct server *srv, struct rig *rig)
{
	uint64_t key = hold_only(srv, rig);

	mem_keytab_remove(rig->keys, key);
	return key;
}

static int quiesce(struct rig *rig, uint64_t key, unsigned ms)
{
	return shm_wire_ops.quiesce(rig->ep, key, rig_now() + ms * UINT64_C(1000000));
}

static void test_D4_quiesce_stopped(void)
{
	struct server_packet quit = {.op = SERVER_QUIT};
	struct server srv;
	struct rig rig;
	uint64_t key;

	meet(&srv, &rig, false);
	key = hold(&srv, &rig);
	tap_is_int(quiesce(&rig, key, 50), -FI_EBUSY, "its memory isn't given back");
	tap_is_int(quiesce(&rig, key + 1, 50), 0, "another key's is");
	kill(srv.pid, SIGCONT);
	tap_is_int(quiesce(&rig, key, RIG_WAIT_MS), 0, "until it goes on");
	rig_send(&rig, rig.dialled, &quit, sizeof(quit));
	server_wait(&srv);
	rig_close(&rig);
}

static void test_D4_quiesce_killed(void)
{
	struct server srv;
	struct rig rig;
	uint64_t key;

	meet(&srv, &rig, false);
	key = hold(&srv, &rig);
	shm_wire_ops.hangup(rig.dialled);
	tap_is_int(quiesce(&rig, key, 50), -FI_EBUSY, "not even after a hang-up");
	kill(srv.pid, SIGKILL);
	tap_is_int(quiesce(&rig, key, RIG_WAIT_MS), 0, "until it is dead");
	server_wait(&srv);
	rig_close(&rig);
}

static bool let_go(struct rig *rig, uint64_t key)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (mem_keytab_in_use(rig->keys, key))
		if (rig_now() > end)
			return false;
	return true;
}

/* The endpoint is closed before the region, by which a peer is stopped or goes on. */
static void test_D4_endpoint_first(bool killed)
{
	int before = fd_count();
	struct server srv;
	struct rig rig;
	uint64_t key;

	meet(&srv, &rig, false);
	key = hold_only(&srv, &rig);
	shm_wire_ops.ep_close(rig.ep);
	mem_keytab_remove(rig.keys, key);
	tap_ok(mem_keytab_in_use(rig.keys, key),
	       "its memory isn't given back after the endpoint's end");
	tap_ok(!mem_keytab_in_use(rig.keys, key + 1), "another key's is");
	kill(srv.pid, killed ? SIGKILL : SIGCONT);
	tap_ok(let_go(&rig, key), "until it is %s", killed ? "dead" : "through");
	kill(srv.pid, SIGKILL);
	server_wait(&srv);
	tap_ok(!mem_keytab_in_use(rig.keys, key) && fd_count() == before + 1,
	       "nothing but the key table is left of a dead one");
	mem_keytab_close(rig.keys);
}

/* A peer is writing its share of a message, into memory that has no key. */
struct sharer {
	struct shm_hazard *hazard;
	_Atomic(bool) through;
};

static void *share_end(void *arg)
{
	struct sharer *s = arg;

	usleep(20000);
	atomic_store(&s->through, true);
	atomic_store(&s->hazard->active, 0);
	return NULL;
}

static void test_D4_share(void)
{
	struct sharer s = {.through = false};
	pthread_t thread;
	struct rig a, b;

	rig_open(&a, false);
	rig_open(&b, false);
	if (rig_dial(&b, &wire_ep_base(a.ep)->addr) || !rig_wait_int(&a, &a.ups, 1))
		tap_bail("dial");
	s.hazard = ((struct shm_link *)(void *)b.dialled)->hazard_mine;
	atomic_store(&s.hazard->key, SHM_HAZARD_JOINT);
	atomic_store(&s.hazard->active, 1);
	pthread_create(&thread, NULL, share_end, &s);
	shm_wire_ops.ep_close(a.ep);
	tap_ok(atomic_load(&s.through), "closing waits for a peer's share of a message");
	pthread_join(thread, NULL);
	mem_keytab_close(a.keys);
	rig_close(&b);
}

/* A child of the peer lives on and holds the peer's sockets open. */
static void test_D4_child_left(void)
{
	struct wire_link *link;
	struct server srv;
	struct rig rig;
	uint64_t key;
	pid_t child = 0;

	meet(&srv, &rig, false);
	if (server_ask(&rig, rig.dialled, SERVER_FORK, 0, 0))
		child = (pid_t)((const struct server_packet *)(void *)rig.last)->arg;
	tap_ok(child > 0, "a peer forks");
	key = hold(&srv, &rig);
	tap_is_int(quiesce(&rig, key, 50), -FI_EBUSY, "and is stopped: memory stays");
	kill(srv.pid, SIGKILL);
	tap_ok(rig_wait_int(&rig, &rig.downs, 1), "its death is told, child or not");
	tap_is_int(quiesce(&rig, key, RIG_WAIT_MS), 0, "and gives the memory back");
	server_wait(&srv);
	tap_is_int(shm_wire_ops.dial(rig.ep, &srv.addr, &rig, &link), -FI_ECONNREFUSED,
		   "nobody is called by the door that the child holds open");
	kill(child, SIGKILL);
	rig_close(&rig);
}

/* Rule D3: after quiesce returned, nothing is written by that key any more: many rounds
 * of register, put from the peer's side, remove, look. */
static void test_D3_no_late_write(void)
{
	int late = 0, done = 0;
	struct rig a, b;

	rig_open(&a, false);
	rig_open(&b, false);
	if (rig_dial(&a, &wire_ep_base(b.ep)->addr))
		tap_bail("dial");
	for (int i = 0; i < 4000; i++) {
		uint64_t word = 0, value = (uint64_t)i + 1, key, seen;
		struct mem_region region = {.iov_count = 1, .access = RW};

		region.iov[0].iov_base = &word;
		region.iov[0].iov_len = sizeof(word);
		/* A caller's key is always the same, and so is its place in the table. */
		key = 7;
		if (i % 2)
			mem_keytab_insert(b.keys, &region, &key);
		else
			mem_keytab_insert_at(b.keys, &region, key);
		done += rig_put(&a, a.dialled, &value, sizeof(value), 0, key) == 0;
		done += rig_put(&a, a.dialled, &value, sizeof(value), 0, key) == 0;
		mem_keytab_remove(b.keys, key);
		quiesce(&b, key, 1000);
		seen = word;
		late += seen != value;
		late += rig_put(&a, a.dialled, &value, sizeof(value), 0, key) !=
			-FI_ENOKEY;
		late += word != seen;
	}
	tap_is_int(done, 8000, "puts by a live key arrive");
	tap_is_int(late, 0, "none by a removed key does");
	tap_ok(wire_link_base(a.dialled)->caps.raw ? a.moved_now > 1000 : !a.moved_now,
	       "many of them in one call where attach is allowed (%d)", (int)a.moved_now);
	rig_close(&a);
	rig_close(&b);
}

/* The same while the peer keeps putting. */
#define STORM_SIZE (128 * 1024)

struct storm {
	struct rig rig; /* the peer's */
	_Atomic(uint64_t) key;
	_Atomic(bool) stop;
	_Atomic(int) done;
};

static void *storm_run(void *arg)
{
	static uint8_t zeros[STORM_SIZE];
	struct storm *s = arg;

	while (!atomic_load(&s->stop))
		if (rig_put(&s->rig, s->rig.dialled, zeros, STORM_SIZE, 0,
			    atomic_load(&s->key)) == 0)
			atomic_fetch_add(&s->done, 1);
	return NULL;
}

static void test_D3_storm(bool no_cma)
{
	uint8_t *buf = malloc(STORM_SIZE);
	struct mem_region region = {.iov_count = 1, .access = RW};
	struct storm s = {.key = 1};
	int late = 0, busy = 0, rounds = 0;
	uint64_t end = rig_now() + 700 * UINT64_C(1000000), key;
	const uint64_t last = end + RIG_WAIT_MS * UINT64_C(1000000);
	pthread_t thread;
	struct rig rig;

	region.iov[0].iov_base = buf;
	region.iov[0].iov_len = STORM_SIZE;
	rig_open(&rig, false);
	rig_open(&s.rig, no_cma);
	if (rig_dial(&s.rig, &wire_ep_base(rig.ep)->addr))
		tap_bail("dial");
	pthread_create(&thread, NULL, storm_run, &s);
	/* On a machine with much else to do a round takes as long as it takes. */
	while (rig_now() < end || (rounds <= 10 && rig_now() < last)) {
		int before = atomic_load(&s.done);

		mem_keytab_insert(rig.keys, &region, &key);
		atomic_store(&s.key, key);
		while (atomic_load(&s.done) < before + 2 && rig_now() < last)
			sched_yield();
		mem_keytab_remove(rig.keys, key);
		busy += quiesce(&rig, key, RIG_WAIT_MS) != 0;
		/* Ours again. */
		memset(buf, 0xff, STORM_SIZE);
		usleep(300);
		for (size_t i = 0; i < STORM_SIZE; i += 64)
			late += buf[i] != 0xff;
		rounds++;
	}
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	tap_diag("%d rounds, %d puts", rounds, atomic_load(&s.done));
	tap_ok(rounds > 10, "a peer puts without a pause, attach %s",
	       no_cma ? "off" : "on");
	tap_ok(late == 0 && busy == 0, "never after quiesce");
	rig_close(&s.rig);
	rig_close(&rig);
	free(buf);
}

/* A forked child that closes what it inherited harms nobody. */
static void test_fork(void)
{
	uint64_t word = 3;
	struct rig a, b;
	int status = -1;
	pid_t pid;

	rig_open(&a, false);
	rig_open(&b, false);
	if (rig_dial(&a, &wire_ep_base(b.ep)->addr))
		tap_bail("dial");
	pid = tap_fork();
	if (pid == 0) {
		alarm(280);
		shm_wire_ops.ep_close(a.ep);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	tap_is_int(status, 0, "a child closes its copy of an endpoint");
	rig_send(&a, a.dialled, &word, sizeof(word));
	tap_ok(rig_wait_packets(&b, 1), "the parent's goes on");
	rig_close(&a);
	rig_close(&b);
}

int main(void)
{
	alarm(280);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	test_D4_quiesce_stopped();
	test_D4_quiesce_killed();
	test_D4_child_left();
	test_D4_endpoint_first(false);
	test_D4_endpoint_first(true);
	test_D4_share();
	test_death_in_service();
	test_simultaneous();
	test_hangup();
	test_hangup_inside();
	test_D4_left_in_socket();
	test_D3_no_late_write();
	test_D3_storm(false);
	test_D3_storm(true);
	test_fork();
	return tap_done();
}
