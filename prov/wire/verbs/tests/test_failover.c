/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checked stream of packets, puts, gets and notices while queue pairs and ports die, as
 * the emulated devices' fault script says (failover.t): nothing is lost, repeated, out of
 * order or reported, and the counters show that something did happen. With
 * FAILOVER_MODE=dead nothing works any more after a while: everything that is under way
 * ends with an error.
 */
#include "config.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_link.h"
#include "util/tap.h"

#define RW     (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MEMORY ((size_t)4 << 20)

static uint64_t echoes;
static uint64_t echoes_wrong;

static bool on_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
		      size_t len)
{
	struct server_packet p;

	(void)rig;
	(void)link;
	memcpy(&p, pkt, sizeof(p));
	if (len != sizeof(p) || p.op != SERVER_ECHO)
		return false;
	echoes_wrong += p.arg != echoes;
	echoes++;
	return true;
}

static int stream(struct rig *rig, struct wire_link *link, uint8_t *mem, void *handle,
		  const struct server_packet *to, int rounds)
{
	int ret = 0;

	for (int i = 0; i < rounds && ret == 0; i++) {
		const struct server_packet echo = {.op = SERVER_ECHO, .arg = (uint64_t)i};
		const struct wire_notice n = {
			.data = (uint64_t)i + 1, .op = 1, .ordered = true};
		size_t len = i % 5 == 0 ? (size_t)700000 : 1000;
		size_t at = (size_t)i * 4099 % (MEMORY - len);

		if (!rig_send(rig, link, &echo, sizeof(echo)))
			return -FI_ETIMEDOUT;
		ret = rig_start(rig, link, true, mem + at, handle, len, to->arg + at,
				to->arg2, &n);
		if (ret == 0 && i % 3 == 0)
			ret = rig_start(rig, link, true, mem + at, handle, len,
					to->arg + at, to->arg2, NULL);
		if (ret == 0 && i % 3 == 1)
			ret = rig_start(rig, link, true, mem + at, handle, 64,
					to->arg + at, to->arg2, NULL);
	}
	return ret;
}

/* ---- queue pairs that take for ever to destroy ----------------------------------------
 */

static struct {
	int (*destroy)(struct ibv_qp *qp);
	_Atomic(bool) let_go;
	_Atomic(int) waiting;
} slow;

/* As of a driver that waits for what a path still holds. */
static int slow_destroy(struct ibv_qp *qp)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	atomic_fetch_add(&slow.waiting, 1);
	while (!atomic_load(&slow.let_go) && rig_now() < end)
		usleep(1000);
	return slow.destroy(qp);
}

static void slow_begin(struct rig *rig, struct verbs_lib *lib)
{
	struct verbs_ep *ep = verbs_ep_of(rig->ep);

	*lib = *ep->lib;
	slow.destroy = lib->destroy_qp;
	lib->destroy_qp = slow_destroy;
	ep->lib = lib;
}

static int survive(void)
{
	const char *text = getenv("FAILOVER_ROUNDS");
	const char *want = getenv("FAILOVER_WANT");
	int rounds = text ? atoi(text) : 400, plain = (rounds + 2) / 3 + (rounds + 1) / 3;
	bool held = getenv("FAILOVER_HELD") != NULL;
	struct verbs_link_counts c;
	struct verbs_lib lib;
	struct server_packet to;
	struct wire_link *link;
	struct server srv;
	struct rig rig;
	void *handle, *back_handle;
	uint8_t *mem, *back;
	int ret;

	server_start(&srv);
	rig_open(&rig);
	ret = rig_dial(&rig, &srv.addr);
	if (ret)
		tap_bail("dial: %s", fi_strerror(-ret));
	link = rig.dialled;
	if (held)
		slow_begin(&rig, &lib);
	rig.on_packet = on_packet;
	mem = rig_memory(&rig, MEMORY, &handle);
	back = rig_memory(&rig, MEMORY, &back_handle);
	for (size_t i = 0; i < MEMORY; i++)
		mem[i] = (uint8_t)(i * 31 + (i >> 11));
	if (!server_ask(&rig, link, SERVER_REGISTER, MEMORY, RW))
		tap_bail("no memory at the server");
	to = server_answer(&rig);
	tap_is_int(rig_move(&rig, link, true, mem, handle, MEMORY, to.arg, to.arg2), 0,
		   "C3: all of the memory");
	tap_is_int(stream(&rig, link, mem, handle, &to, rounds), 0,
		   "C3: packets, puts and notices are taken");
	tap_ok(rig_wait_int(&rig, &rig.segments, 1 + rounds + plain), "C3: all end");
	tap_is_int(rig.segment_errs, 0, "C3: without an error");
	tap_ok(rig_wait_u64(&rig, &echoes, (uint64_t)rounds),
	       "B1: all packets come back");
	tap_is_int((long long)echoes_wrong, 0, "B1: once each, in order");
	tap_is_int(
		rig_move(&rig, link, false, back, back_handle, MEMORY, to.arg, to.arg2),
		0, "C4: a get of all of it");
	tap_ok(memcmp(mem, back, MEMORY) == 0, "C4: brings every byte");
	tap_ok(server_ask(&rig, link, SERVER_NOTICES, 0, 0), "the server answers");
	tap_is_int((long long)server_answer(&rig).arg, rounds,
		   "A8: each notice was heard once");
	server_ask(&rig, link, SERVER_LATE, 0, 0);
	tap_is_int((long long)server_answer(&rig).arg, 0, "A8: in order");
	tap_is_int(rig.downs, 0, "C5: the link never ended");

	verbs_link_count((struct verbs_link *)(void *)link, &c);
	tap_diag("replays %llu, again %llu, opened %llu, retired %llu, rebuilt %llu, "
		 "resumes %llu, bytes %llu %llu",
		 (unsigned long long)c.replays, (unsigned long long)c.again,
		 (unsigned long long)c.opened, (unsigned long long)c.retired,
		 (unsigned long long)c.rebuilt, (unsigned long long)c.resumes,
		 (unsigned long long)c.bytes[0], (unsigned long long)c.bytes[1]);
	if (held)
		tap_ok(atomic_load(&slow.waiting) > 0 && !atomic_load(&slow.let_go),
		       "C1: all of it while a queue pair that died was being destroyed");
	atomic_store(&slow.let_go, true);
	if (want && strstr(want, "retired"))
		tap_ok(c.retired > 0, "C2: lanes were retired");
	if (want && strstr(want, "again"))
		tap_ok(c.again > 0, "C3: segments were moved");
	if (want && strstr(want, "resumes"))
		tap_ok(c.resumes > 0, "C5: the control channel was made anew");
	verbs_wire_ops.hangup(link);
	rig_close(&rig);
	kill(srv.pid, SIGKILL);
	server_wait(&srv);
	return tap_done();
}

/* All rails go for good while puts, notices and gets are under way. */
static int dead(void)
{
	struct prov_params *params = (struct prov_params *)(uintptr_t)prov_params();
	int before, started = 0, ret = 0;
	struct server_packet to;
	struct wire_link *link;
	struct server srv;
	struct rig rig;
	void *handle;
	uint8_t *mem;

	server_start(&srv);
	rig_open(&rig);
	ret = rig_dial(&rig, &srv.addr);
	if (ret)
		tap_bail("dial: %s", fi_strerror(-ret));
	link = rig.dialled;
	mem = rig_memory(&rig, MEMORY, &handle);
	if (!server_ask(&rig, link, SERVER_REGISTER, MEMORY, RW))
		tap_bail("no memory at the server");
	to = server_answer(&rig);
	/* Not before they are connected, which may take longer. */
	params->connect_timeout_ms = 1000;
	before = rig.segments;
	/* As many as it takes: of a link that is over nothing is asked. */
	for (int i = 0; i < 100000 && rig.downs == 0; i++) {
		const struct wire_notice n = {.data = (uint64_t)i + 1, .op = 1};

		if (started - (rig.segments - before) >= 64) {
			int seen = rig.segments;

			if (!rig_wait_int(&rig, &rig.segments, seen + 1))
				break;
			continue;
		}
		ret = rig_start(&rig, link, i % 4 != 0, mem, handle, 100000, to.arg,
				to.arg2, i % 4 == 1 ? &n : NULL);
		if (ret)
			break;
		started++;
	}
	if (ret == -FI_EAGAIN && rig.downs > 0)
		ret = 0; /* its end was due */
	tap_is_int(ret, 0, "C5: all were taken");
	tap_ok(rig_wait_int(&rig, &rig.downs, 1), "C5: the link ends by its deadline");
	tap_is_int(rig.down_err, -FI_ECONNRESET, "C5: as one that broke");
	tap_is_int(rig.segments - before, started, "A9: what was under way has ended");
	tap_ok(rig.segment_errs > 0, "A9: with errors");
	tap_is_int(rig.segment_err, -FI_ECONNRESET, "A9: that say so");
	rig_close(&rig);
	kill(srv.pid, SIGKILL);
	server_wait(&srv);
	return tap_done();
}

int main(void)
{
	const char *mode = getenv("FAILOVER_MODE");

	return mode && strcmp(mode, "dead") == 0 ? dead() : survive();
}
