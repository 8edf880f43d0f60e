/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping and waking, and what polling costs when most links are idle. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"

static void meet(struct server *srv, struct rig *rig)
{
	int ret;

	server_start(srv, false);
	rig_open(rig, false);
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

/* Both sleep whenever there is nothing: no wake-up may be lost. */
static void test_both_sleep(void)
{
	struct server_packet block = {.op = SERVER_BLOCK}, echo = {.op = SERVER_ECHO};
	struct server srv;
	struct rig rig;
	int overslept = 0, lost = 0;

	meet(&srv, &rig);
	rig_send(&rig, rig.dialled, &block, sizeof(block));
	for (uint64_t i = 1; i <= 3000 && !lost; i++) {
		rig_send(&rig, rig.dialled, &echo, sizeof(echo));
		lost += !rig_sleep_packets(&rig, i, &overslept);
	}
	tap_is_int(lost, 0, "every packet is answered");
	tap_is_int(overslept, 0, "and no sleep ends by the clock");
	part(&srv, &rig);
}

/* A producer that found no room sleeps until the consumer made some. */
static void test_full_ring_sleep(void)
{
	struct server_packet block = {.op = SERVER_BLOCK}, wait = {.op = SERVER_PAUSE},
			     echo = {.op = SERVER_ECHO};
	uint8_t bytes[3000] = {SERVER_SINK};
	struct server srv;
	struct rig rig;
	int overslept = 0, blocked = 0, pauses = 0;
	bool paused = false;
	uint64_t end;

	meet(&srv, &rig);
	rig_send(&rig, rig.dialled, &block, sizeof(block));
	end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	for (int i = 0; i < 2000 && rig_now() < end; i++) {
		void *pkt;

		/* The consumer takes nothing until the ring is full, however long that
		 * takes. */
		if (i % 500 == 0 && !paused) {
			rig_send(&rig, rig.dialled, &wait, sizeof(wait));
			paused = true;
			pauses++;
		}
		while (!(pkt = shm_wire_ops.pkt_reserve(rig.dialled, sizeof(bytes),
							WIRE_DATA))) {
			blocked++;
			if (paused)
				server_wake(&srv);
			paused = false;
			rig_sleep(&rig, &overslept);
			if (rig_now() > end)
				tap_bail("blocked for ever");
		}
		memcpy(pkt, bytes, sizeof(bytes));
		shm_wire_ops.pkt_commit(rig.dialled, pkt, sizeof(bytes));
	}
	tap_ok(blocked > 3, "the ring was full (%d times)", blocked);
	tap_is_int(overslept, 0, "room always wakes");
	rig_send(&rig, rig.dialled, &echo, sizeof(echo));
	/* Two for each pause: at its begin, at its end. */
	tap_ok(!paused && rig_sleep_packets(&rig, 2 * (uint64_t)pauses + 1, &overslept),
	       "everything was taken");
	part(&srv, &rig);
}

/* Asleep, and the peer dies: that wakes as well. */
static void test_death_wakes(void)
{
	struct server srv;
	struct rig rig;
	int overslept = 0;

	meet(&srv, &rig);
	rig_sleep(&rig, &overslept);
	overslept = 0;
	kill(srv.pid, SIGKILL);
	while (rig.downs == 0 && overslept == 0)
		rig_sleep(&rig, &overslept);
	tap_is_int(overslept, 0, "a death ends the sleep");
	tap_is_int(rig.downs, 1, "and is told");
	server_wait(&srv);
	rig_close(&rig);
}

/* In front of the C library's: the process dies in the middle of waking somebody. */
static bool die_in_send;

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	if (die_in_send)
		kill(getpid(), SIGKILL);
	return sendto(fd, buf, len, flags, NULL, 0);
}

/* Whoever dies while it wakes a sleeper leaves the waking to others. */
static void test_death_while_waking(void)
{
	int overslept = 0, status;
	uint64_t word = 1, end;
	struct wire_addr addr;
	struct rig rig;
	int tell[2];
	pid_t pid;

	if (pipe(tell))
		tap_bail("pipe");
	fflush(stdout);
	/* Before this process has threads: a sanitizer wants it so. */
	pid = fork();
	if (pid == 0) {
		struct rig peer;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(280);
		rig_open(&peer, false);
		if (read(tell[0], &addr, sizeof(addr)) != sizeof(addr) ||
		    rig_dial(&peer, &addr))
			_exit(1);
		/* It sleeps by then, its side of the link cold; if not, by the next. */
		die_in_send = true;
		for (int i = 0; i < 30; i++) {
			usleep(300000);
			rig_send(&peer, peer.dialled, &word, sizeof(word));
		}
		_exit(2); /* it never sleeps */
	}
	rig_open(&rig, false);
	addr = wire_ep_base(rig.ep)->addr;
	if (write(tell[1], &addr, sizeof(addr)) != sizeof(addr))
		tap_bail("write");
	close(tell[0]);
	close(tell[1]);
	end = rig_now() + 10 * UINT64_C(1000000000);
	while (rig.downs == 0 && rig_now() < end)
		rig_sleep(&rig, &overslept);
	waitpid(pid, &status, 0);
	tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	       "a peer dies while it wakes a sleeper");
	tap_ok(rig.downs == 1 && overslept == 0,
	       "who hears of its death all the same (%d sleeps ended by the clock)",
	       overslept);
	rig_close(&rig);
}

static void test_arm(void)
{
	int settled = 0, woken = 0;
	struct pollfd p = {.events = POLLIN};
	struct rig a, b;
	uint64_t word = 1;

	rig_open(&a, false);
	rig_open(&b, false);
	if (rig_dial(&a, &wire_ep_base(b.ep)->addr) || !rig_wait_int(&b, &b.ups, 1))
		tap_bail("dial");
	p.fd = shm_wire_ops.fd(b.ep);
	tap_is_int(shm_wire_ops.arm(b.ep), 0, "nothing to do: it may sleep");
	tap_is_int(shm_wire_ops.arm(b.ep), 0, "armed twice");
	rig_send(&a, a.dialled, &word, sizeof(word));
	tap_is_int(shm_wire_ops.arm(b.ep), -FI_EAGAIN, "a packet came meanwhile");
	tap_ok(rig_wait_packets(&b, 1), "it is there");
	for (uint64_t i = 2; i < 50; i++) {
		settled += shm_wire_ops.arm(b.ep) == 0 && poll(&p, 1, 0) == 0;
		rig_send(&a, a.dialled, &word, sizeof(word));
		woken += poll(&p, 1, RIG_WAIT_MS) == 1;
		rig_wait_packets(&b, i);
	}
	tap_is_int(settled, 48, "then it may sleep again, and nothing stale wakes it");
	tap_is_int(woken, 48, "but every packet does");
	tap_is_int(shm_wire_ops.arm(b.ep), 0, "and again");
	rig_close(&a);
	tap_is_int(poll(&p, 1, RIG_WAIT_MS), 1, "the peer's end wakes");
	tap_is_int(shm_wire_ops.arm(b.ep), -FI_EAGAIN, "and is work too");
	tap_ok(rig_wait_int(&b, &b.downs, 1), "it is told");
	rig_close(&b);
}

/* ---- active pairs
 * ---------------------------------------------------------------------- */

#define LINKS 64

static struct wire_link *many[LINKS];
static int many_count;

static double poll_ns(struct rig *rig, int batches)
{
	double best = 1e9;

	for (int batch = 0; batch < batches; batch++) {
		uint64_t begin = rig_now();
		double ns;

		for (int i = 0; i < 200; i++)
			shm_wire_ops.progress(rig->ep, 64);
		ns = (double)(rig_now() - begin) / 200;
		best = ns < best ? ns : best;
	}
	return best;
}

static bool many_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			size_t len)
{
	(void)rig;
	(void)link;
	(void)pkt;
	(void)len;
	return true;
}

/* Polling cost follows the active pairs: 64 links of which 2 are used. */
static void test_active_pairs(void)
{
	struct shm_ep *inside;
	uint64_t word = 1;
	struct rig a, b;
	double hot, cold;

	rig_open(&a, false);
	rig_open(&b, false);
	b.on_packet = many_packet;
	for (many_count = 0; many_count < LINKS; many_count++) {
		if (rig_dial(&a, &wire_ep_base(b.ep)->addr))
			tap_bail("dial %d", many_count);
		many[many_count] = a.dialled;
	}
	rig_wait_int(&b, &b.ups, LINKS);
	inside = shm_ep_of(b.ep);
	tap_is_int(inside->hot_count, LINKS, "all are looked at in the beginning");
	for (int i = 0; i < LINKS; i++)
		rig_send(&a, many[i], &word, sizeof(word));
	rig_wait_packets(&b, LINKS);
	hot = poll_ns(&b, 1);
	for (int i = 0; i < 3000; i++) {
		if (i % 100 == 0) {
			rig_send(&a, many[5], &word, sizeof(word));
			rig_send(&a, many[50], &word, sizeof(word));
		}
		shm_wire_ops.progress(b.ep, 64);
	}
	tap_is_int(inside->hot_count, 2, "then only the two that are used");
	cold = poll_ns(&b, 20);
	tap_diag("a poll of %d idle links: %.1f ns all hot, %.1f ns when cold", LINKS,
		 hot, cold);
	for (int i = 0; i < LINKS; i++)
		rig_send(&a, many[i], &word, sizeof(word));
	tap_ok(rig_wait_packets(&b, LINKS * 2 + 60), "the others are heard at once");
	rig_close(&a);
	tap_ok(rig_wait_int(&b, &b.downs, LINKS), "and all end");
	rig_close(&b);
}

/* One peer wipes the hub after another one rang: the packet is found all the same. */
static void test_wiped_hub(void)
{
	uint64_t word = 7, end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	struct rig a, b, c;
	struct shm_ep *ep;

	rig_open(&a, false);
	rig_open(&b, false);
	rig_open(&c, false);
	tap_ok(shm_wire_ops.look_due(a.ep) == UINT64_MAX, "nobody to look for");
	if (rig_dial(&b, &wire_ep_base(a.ep)->addr) ||
	    rig_dial(&c, &wire_ep_base(a.ep)->addr) || !rig_wait_int(&a, &a.ups, 2))
		tap_bail("dial");
	ep = (struct shm_ep *)(void *)a.ep;
	while (shm_wire_ops.arm(a.ep) != 0)
		shm_wire_ops.progress(a.ep, 64);
	rig_send(&b, b.dialled, &word, sizeof(word));
	atomic_store(&ep->hub.mem->summary, 0);
	for (int i = 0; i < SHM_HUB_WORDS; i++)
		atomic_store(&ep->hub.mem->words[i], 0);
	shm_wire_ops.progress(a.ep, 64);
	tap_is_int((int64_t)a.packets, 0, "a packet that rang in a hub that was wiped");
	tap_ok(shm_wire_ops.look_due(a.ep) < end, "is looked for");
	while (a.packets == 0 && rig_now() < end) {
		shm_wire_ops.progress(a.ep, 64);
		shm_wire_ops.arm(a.ep);
		usleep(1000);
	}
	tap_is_int((int64_t)a.packets, 1, "and found by whoever goes to sleep");
	rig_close(&c);
	rig_close(&b);
	rig_close(&a);
}

int main(void)
{
	alarm(280);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	test_both_sleep();
	test_full_ring_sleep();
	test_death_wakes();
	test_death_while_waking();
	test_arm();
	test_active_pairs();
	test_wiped_hub();
	return tap_done();
}
