/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many peers of one endpoint, over whatever libibverbs is found (many.t runs it over
 * emulated devices with small queues): what they hold is bounded, never more arrives than
 * receives were posted, and all is given back when they are gone. Rules A7, B3.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_link.h"
#include "util/tap.h"

#define PROCESSES 4u
#define EACH	  16u /* endpoints of a process */
#define PEERS	  (PROCESSES * EACH)
#define ROUNDS	  6u
#define BURST	  60u

/* ---- a peer's process ----------------------------------------------------------------
 */

static bool peer_talk(struct rig *rig, unsigned round)
{
	struct server_packet p = {.op = SERVER_SINK};

	for (unsigned i = 0; i < (round == ROUNDS - 1 ? BURST : 1); i++)
		if (!rig_send(rig, rig->dialled, &p, sizeof(p)))
			return false;
	return server_ask(rig, rig->dialled, SERVER_ECHO, round, 0) &&
	       server_answer(rig).arg == round;
}

static _Noreturn void peers_main(int from)
{
	static struct rig rig[EACH];
	struct wire_addr hub;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(280);
	if (read(from, &hub, sizeof(hub)) != (ssize_t)sizeof(hub))
		_exit(2);
	rig_open(&rig[0]);
	for (unsigned i = 1; i < EACH; i++)
		rig_open_beside(&rig[i], &rig[0]);
	for (unsigned i = 0; i < EACH; i++)
		if (rig_dial(&rig[i], &hub))
			_exit(3);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < EACH; i++)
			if (!peer_talk(&rig[i], round))
				_exit(4);
	/* All are there at the same time: the hub says when it has looked. */
	if (read(from, &hub, 1) != 1)
		_exit(5);
	for (unsigned i = EACH; i-- > 0;)
		rig_close(&rig[i]);
	_exit(0);
}

/* ---- the hub -------------------------------------------------------------------------
 */

struct hub {
	struct rig rig;
	pid_t pid[PROCESSES];
	int to[PROCESSES];
	int echoes;
	int late; /* answers that there was no room for */
};

static bool on_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
		      size_t len)
{
	struct hub *h = rig->user;
	struct server_packet req = {0};
	void *out;

	memcpy(&req, pkt, len < sizeof(req) ? len : sizeof(req));
	if (req.op != SERVER_ECHO)
		return true;
	h->echoes++;
	/* The answer before it was acknowledged with the question. */
	out = verbs_wire_ops.pkt_reserve(link, len, WIRE_CONTROL);
	if (!out) {
		h->late++;
		return true;
	}
	memcpy(out, &req, sizeof(req));
	verbs_wire_ops.pkt_commit(link, out, sizeof(req));
	return true;
}

static void peers_start(struct hub *h)
{
	int end[2];

	fflush(stdout);
	for (unsigned i = 0; i < PROCESSES; i++) {
		if (pipe(end) < 0)
			tap_bail("pipe: %s", strerror(errno));
		h->pid[i] = fork();
		if (h->pid[i] < 0)
			tap_bail("fork: %s", strerror(errno));
		if (h->pid[i] == 0) {
			close(end[1]);
			peers_main(end[0]);
		}
		close(end[0]);
		h->to[i] = end[1];
	}
}

static void peers_tell(struct hub *h, const void *bytes, size_t len)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		if (write(h->to[i], bytes, len) != (ssize_t)len)
			tap_bail("pipe: %s", strerror(errno));
}

static int peers_wait(struct hub *h)
{
	int status, wrong = 0;

	for (unsigned i = 0; i < PROCESSES; i++) {
		while (waitpid(h->pid[i], &status, 0) < 0 && errno == EINTR)
			;
		wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
		close(h->to[i]);
	}
	return wrong;
}

/* What is there while all peers are. */
static void look(const struct hub *h)
{
	const struct verbs_ep *ep = verbs_ep_of(h->rig.ep);
	const struct verbs_ep_rail *er = &ep->rail[0];
	uint32_t full = 0, over = 0, held = 0, posted = 0;
	const char *srqs = getenv("MANY_SRQS"), *cqs = getenv("MANY_CQS");

	for (uint32_t i = 0; i < er->cqs; i++)
		full += er->cq[i]->used > er->cq[i]->size;
	for (uint32_t i = 0; i < er->srqs; i++) {
		over += er->srq[i]->held > er->srq[i]->posted ||
			er->srq[i]->posted > er->srq[i]->size;
		held += er->srq[i]->held;
		posted += er->srq[i]->posted;
	}
	tap_is_int(full, 0, "no completion queue is too small for what is behind it");
	tap_is_int(over, 0, "A7: what peers may send is posted");
	tap_ok(er->cqs >= (uint32_t)atoi(cqs ? cqs : "1"), "%u completion queues",
	       er->cqs);
	tap_ok(er->srqs >= (uint32_t)atoi(srqs ? srqs : "1"), "%u shared queues",
	       er->srqs);
	tap_diag("%u receives for %u links, %u of them of busy ones, %u posted; %u KiB "
		 "received into, %u KiB sent from",
		 held, PEERS, ep->srq_extra, posted,
		 ep->receives.chunks * VERBS_BUF_CHUNK *
			 (uint32_t)sizeof(struct verbs_buf) / 1024,
		 ep->sends.chunks * VERBS_BUF_CHUNK * (uint32_t)sizeof(struct verbs_buf) /
			 1024);
	if (!srqs || atoi(srqs) > 0)
		tap_ok(held <= PEERS * (VERBS_CTL_WINDOW_MIN + VERBS_CTL_SPARE) +
				       VERBS_SRQ_EXTRA,
		       "what links hold is bounded");
	/* The last answer of each may not be acknowledged yet; the next has its place. */
	tap_ok(ep->sends.chunks * VERBS_BUF_CHUNK <= 3 * PEERS,
	       "memory is sent from as far as something is under way");
}

/* Nothing is held any more, once the devices said so. */
static bool given_back(const struct hub *h)
{
	struct verbs_ep *ep = verbs_ep_of(h->rig.ep);
	bool over = list_empty(&ep->links) && !atomic_load(&ep->has_retired) &&
		    ep->srq_extra == 0;

	for (uint32_t i = 0; i < ep->rail[0].srqs; i++)
		over = over && ep->rail[0].srq[i]->held == 0;
	for (uint32_t i = 0; i < ep->rail[0].cqs; i++)
		over = over && (ep->rail[0].srqs || ep->rail[0].cq[i]->used == 0);
	return over;
}

int main(void)
{
	static struct hub h;
	bool heard = true;
	uint64_t end;

	peers_start(&h);
	rig_open(&h.rig);
	h.rig.user = &h;
	h.rig.on_packet = on_packet;
	peers_tell(&h, &wire_ep_base(h.rig.ep)->addr, sizeof(struct wire_addr));
	for (int i = 1; i <= (int)(PEERS * ROUNDS) && heard; i++)
		heard = rig_wait_int(&h.rig, &h.echoes, i);
	tap_ok(heard, "%u peers are heard and answered", PEERS);
	tap_is_int(h.late, 0, "B3: there is room for each answer");
	look(&h);
	peers_tell(&h, "x", 1);
	tap_ok(rig_wait_int(&h.rig, &h.rig.downs, PEERS), "all go");
	tap_is_int(peers_wait(&h), 0, "content");
	end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	while (!given_back(&h) && rig_now() < end)
		rig_step(&h.rig);
	tap_ok(given_back(&h), "C2: and what they held is there again");
	rig_close(&h.rig);
	return tap_done();
}
