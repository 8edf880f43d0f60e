/* SPDX-License-Identifier: BSD-2-Clause */
/* Joint transfers of the wire: who takes which piece, uses that are over, nonsense from
 * the peer, and a peer that is stopped or dies in the middle of a piece (D3, D4). */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_format.h"
#include "prov/wire/shm/shm_link.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"

static const struct wire_ops *const ops = &shm_wire_ops;

static void self_open(struct rig *rig)
{
	rig_open(rig, false);
	if (rig_dial(rig, &wire_ep_base(rig->ep)->addr) ||
	    !rig_wait_int(rig, &rig->ups, 2))
		tap_bail("dial");
}

/* What the owner's packet tells its peer. */
static struct wire_joint told(const struct wire_joint *j)
{
	return (struct wire_joint){.cell = j->cell, .turn = j->turn, .pieces = j->pieces};
}

static bool give_back(struct rig *rig, struct wire_joint *j)
{
	ops->joint_close(rig->ep, j);
	return ops->joint_quiet(rig->ep, j);
}

static void test_pieces(void)
{
	struct wire_joint j, peer;
	struct rig rig;

	self_open(&rig);
	tap_is_int((int64_t)wire_link_base(rig.dialled)->caps.joints, 0,
		   "not offered within one process");
	tap_is_int(ops->joint_open(rig.dialled, 5, &j), 0, "a cell");
	peer = told(&j);
	tap_is_int(ops->joint_take(rig.dialled, &j, true), 0, "the owner's first");
	tap_is_int(ops->joint_take(rig.accepted, &peer, false), 4, "the peer's last");
	tap_is_int(ops->joint_look(rig.dialled, &j), WIRE_JOINT_BUSY, "is awaited");
	ops->joint_did(rig.accepted, &peer, true);
	tap_is_int(ops->joint_look(rig.dialled, &j), WIRE_JOINT_BROKEN,
		   "then only what nobody took is missing");
	tap_is_int(ops->joint_take(rig.dialled, &j, true), 1, "the next");
	tap_is_int(ops->joint_take(rig.dialled, &j, true), 2, "and the next");
	tap_is_int(ops->joint_take(rig.accepted, &peer, false), 3, "they meet");
	tap_is_int(ops->joint_take(rig.dialled, &j, true), WIRE_JOINT_NONE, "none left");
	ops->joint_did(rig.accepted, &peer, false);
	tap_is_int(ops->joint_look(rig.dialled, &j), WIRE_JOINT_BROKEN,
		   "a piece that isn't there is said so");
	tap_is_int(ops->joint_take(rig.accepted, &peer, false), WIRE_JOINT_NONE,
		   "none for the peer");
	tap_ok(give_back(&rig, &j), "given back");
	tap_is_int(ops->joint_open(rig.dialled, 5, &j), 0, "used again");
	tap_is_int(ops->joint_take(rig.accepted, &peer, false), WIRE_JOINT_NONE,
		   "who is late gets nothing of the next use");
	tap_ok(give_back(&rig, &j), "given back");
	rig_close(&rig);
}

static void test_cells(void)
{
	struct wire_joint j[SHM_JOINTS], more,
		strange = {.cell = SHM_JOINTS, .pieces = 3};
	int bad = 0;
	struct rig rig;

	self_open(&rig);
	for (int i = 0; i < SHM_JOINTS; i++)
		bad += ops->joint_open(rig.dialled, 3, &j[i]) != 0;
	tap_is_int(bad, 0, "all cells");
	tap_is_int(ops->joint_open(rig.dialled, 3, &more), -FI_EAGAIN, "and no more");
	tap_is_int(ops->joint_open(rig.accepted, 3, &more), 0,
		   "the other way has its own");
	tap_ok(give_back(&rig, &more), "given back");
	for (int i = 0; i < SHM_JOINTS; i++)
		bad += !give_back(&rig, &j[i]);
	tap_is_int(bad, 0, "all come back");
	tap_is_int(ops->joint_take(rig.accepted, &strange, false), WIRE_JOINT_NONE,
		   "no such cell");
	strange.cell = UINT32_MAX;
	tap_is_int(ops->joint_take(rig.accepted, &strange, false), WIRE_JOINT_NONE,
		   "nor such a one");
	rig_close(&rig);
}

/* A peer may write anything into a cell. */
static void test_nonsense(void)
{
	struct wire_joint j;
	struct shm_joint_cell *cell;
	struct shm_link *link;
	uint64_t random = 7;
	int bad = 0;
	struct rig rig;

	self_open(&rig);
	link = (struct shm_link *)(void *)rig.dialled;
	for (int i = 0; i < 10000; i++) {
		uint32_t piece;

		if (ops->joint_open(rig.dialled, 4, &j))
			tap_bail("no cell");
		cell = &link->pair->joint[link->side][j.cell];
		ops->joint_take(rig.dialled, &j, true);
		random = random * 6364136223846793005u + 1442695040888963407u;
		atomic_store(&cell->claim,
			     i % 2 ? random
				   : (random & 0xffffffffffffu) | (uint64_t)j.turn << 48);
		atomic_store(&cell->done, (uint32_t)(random >> 7));
		piece = ops->joint_take(rig.dialled, &j, true);
		bad += piece != WIRE_JOINT_NONE && piece != 1;
		atomic_store(&cell->done, WIRE_JOINT_MAX);
		bad += ops->joint_look(rig.dialled, &j) == WIRE_JOINT_BUSY;
		bad += !give_back(&rig, &j);
	}
	tap_is_int(bad, 0, "nonsense leads nowhere: seed 7");
	rig_close(&rig);
}

#define RACE_PIECES 2000

struct race {
	struct wire_link *link;
	struct wire_joint j;
	bool owner;
	uint8_t *got;
};

static void *race_run(void *arg)
{
	struct race *r = arg;
	uint32_t k;

	while ((k = ops->joint_take(r->link, &r->j, r->owner)) != WIRE_JOINT_NONE) {
		r->got[k]++;
		if (!r->owner)
			ops->joint_did(r->link, &r->j, true);
	}
	return NULL;
}

/* Two at once: each piece is one's. */
static void test_race(void)
{
	uint8_t mine[RACE_PIECES], theirs[RACE_PIECES];
	int bad = 0;
	struct rig rig;

	self_open(&rig);
	for (int round = 0; round < 50; round++) {
		struct race a = {.link = rig.dialled, .owner = true, .got = mine};
		struct race b = {.link = rig.accepted, .got = theirs};
		pthread_t thread;

		memset(mine, 0, sizeof(mine));
		memset(theirs, 0, sizeof(theirs));
		if (ops->joint_open(rig.dialled, RACE_PIECES, &a.j))
			tap_bail("no cell");
		b.j = told(&a.j);
		pthread_create(&thread, NULL, race_run, &b);
		race_run(&a);
		pthread_join(thread, NULL);
		for (int i = 0; i < RACE_PIECES; i++)
			bad += mine[i] + theirs[i] != 1;
		bad += ops->joint_look(rig.dialled, &a.j) != WIRE_JOINT_DONE;
		bad += !give_back(&rig, &a.j);
	}
	tap_is_int(bad, 0, "two at once: each piece once, and all");
	rig_close(&rig);
}

/* ---- rules D3 and D4 -----------------------------------------------------------------
 */

static void meet(struct server *srv, struct rig *rig)
{
	server_start(srv, false);
	rig_open(rig, false);
	if (rig_dial(rig, &srv->addr))
		tap_bail("dial");
}

static void hold(struct server *srv, struct rig *rig, struct wire_joint *j)
{
	struct server_packet req = {.op = SERVER_JOIN, .arg2 = 4};
	int status;

	if (ops->joint_open(rig->dialled, 4, j))
		tap_bail("no cell");
	req.arg = (uint64_t)j->turn << 32 | j->cell;
	rig_send(rig, rig->dialled, &req, sizeof(req));
	tap_ok(waitpid(srv->pid, &status, WUNTRACED) == srv->pid && WIFSTOPPED(status),
	       "a peer is stopped in the middle of a piece");
	ops->joint_close(rig->ep, j);
}

static bool quiet_soon(struct rig *rig, const struct wire_joint *j)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (rig_now() < end) {
		if (ops->joint_quiet(rig->ep, j))
			return true;
		ops->progress(rig->ep, 64);
		usleep(1000);
	}
	return false;
}

static void test_D4_stopped(bool hang_up)
{
	struct wire_joint j;
	struct server srv;
	struct rig rig;

	meet(&srv, &rig);
	tap_ok((wire_link_base(rig.dialled)->caps.joints > 0) ==
		       wire_link_base(rig.dialled)->caps.raw,
	       "offered to another process where attach is allowed");
	hold(&srv, &rig, &j);
	if (hang_up) {
		ops->hangup(rig.dialled);
		ops->progress(rig.ep, 64);
	}
	tap_ok(!ops->joint_quiet(rig.ep, &j), "the memory isn't given back");
	kill(srv.pid, SIGCONT);
	tap_ok(quiet_soon(&rig, &j), "until it goes on");
	kill(srv.pid, SIGKILL);
	server_wait(&srv);
	rig_close(&rig);
}

static void test_D4_killed(void)
{
	struct wire_joint j;
	struct server srv;
	struct rig rig;

	meet(&srv, &rig);
	hold(&srv, &rig, &j);
	ops->hangup(rig.dialled);
	ops->progress(rig.ep, 64);
	tap_ok(!ops->joint_quiet(rig.ep, &j), "nor after a hang-up");
	kill(srv.pid, SIGKILL);
	tap_ok(quiet_soon(&rig, &j), "until it is dead");
	server_wait(&srv);
	rig_close(&rig);
}

int main(void)
{
	alarm(280);
	test_D4_stopped(false);
	test_D4_stopped(true);
	test_D4_killed();
	test_pieces();
	test_cells();
	test_nonsense();
	test_race();
	return tap_done();
}
