/* SPDX-License-Identifier: BSD-2-Clause */
/* Many processes on few cores: everybody dials everybody at once, then all talk. */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"

#define RANKS	8
#define PACKETS 300 /* from each to each other */

/* Shared by all. */
struct meeting {
	struct wire_addr addr[RANKS];
	_Atomic(int) opened;
	_Atomic(int) finished;
	_Atomic(int) wrong;
};

/* Per sender the next number. */
struct talk {
	uint32_t next[RANKS];
	struct meeting *m;
};

static bool talk_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			size_t len)
{
	struct talk *t = rig->user;
	uint32_t word[2];

	(void)link;
	memcpy(word, pkt, sizeof(word));
	if (len < sizeof(word) || word[0] >= RANKS || t->next[word[0]]++ != word[1])
		atomic_fetch_add(&t->m->wrong, 1);
	return true;
}

static bool wait_shared(struct rig *rig, _Atomic(int) *counter, int want)
{
	uint64_t end = rig_now() + 2 * RIG_WAIT_MS * UINT64_C(1000000);

	while (atomic_load(counter) < want) {
		if (shm_wire_ops.progress(rig->ep, 64) == 0)
			usleep(500);
		if (rig_now() > end)
			return false;
	}
	return true;
}

static bool talk_send(struct rig *rig, struct wire_link *link, uint32_t me, uint32_t n,
		      int *overslept)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	size_t len = 8 + (n * 97) % 3000;
	uint32_t word[2] = {me, n};
	void *pkt;

	while (!(pkt = shm_wire_ops.pkt_reserve(link, len, WIRE_DATA))) {
		rig_sleep(rig, overslept);
		if (rig_now() > end)
			return false;
	}
	memcpy(pkt, word, sizeof(word));
	shm_wire_ops.pkt_commit(link, pkt, len);
	return true;
}

static int rank_run(struct meeting *m, uint32_t me)
{
	struct talk talk = {.m = m};
	struct wire_link *to[RANKS] = {0};
	int overslept = 0;
	struct rig rig;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(280);
	rig_open(&rig, me % 2);
	rig.on_packet = talk_packet;
	rig.user = &talk;
	m->addr[me] = wire_ep_base(rig.ep)->addr;
	atomic_fetch_add(&m->opened, 1);
	if (!wait_shared(&rig, &m->opened, RANKS))
		return 2;
	for (uint32_t i = 0; i < RANKS; i++) {
		if (i == me)
			continue;
		if (rig_dial(&rig, &m->addr[i]))
			return 3;
		to[i] = rig.dialled;
	}
	for (uint32_t n = 0; n < PACKETS; n++)
		for (uint32_t i = 0; i < RANKS; i++)
			if (to[i] && !talk_send(&rig, to[i], me, n, &overslept))
				return 4;
	if (!rig_sleep_packets(&rig, (RANKS - 1) * PACKETS, &overslept))
		return 5;
	atomic_fetch_add(&m->finished, 1);
	if (!wait_shared(&rig, &m->finished, RANKS))
		return 6;
	rig_close(&rig);
	return overslept ? 7 : 0;
}

int main(void)
{
	struct meeting *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t begin = rig_now();
	pid_t pid[RANKS];
	int bad = 0;

	alarm(280);
	if (m == MAP_FAILED)
		tap_bail("no memory");
	for (uint32_t i = 0; i < RANKS; i++) {
		fflush(stdout);
		pid[i] = fork();
		if (pid[i] == 0)
			_exit(rank_run(m, i));
	}
	for (int i = 0; i < RANKS; i++) {
		int status = -1;

		waitpid(pid[i], &status, 0);
		if (status != 0)
			tap_diag("rank %d: status %#x", i, status);
		bad += status != 0;
	}
	tap_is_int(bad, 0, "every process met and heard all others");
	tap_is_int(atomic_load(&m->wrong), 0, "every packet came once, in order");
	tap_diag("%d processes: %.0f ms", RANKS, (double)(rig_now() - begin) / 1e6);
	return tap_done();
}
