/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every way to a peer goes away while operations are under way (whoever runs this makes
 * it so: fabtests/emuverbs/tests/cut.t): each of them ends, with an error whose text
 * names the peer and the cause.
 */
#include "config.h"

#include "fabtests/own/remote.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#define WINDOW	 16u
#define LEN	 65536u
#define TRIES_MS 90000 /* until the ways are gone, and until all has ended */

static const struct want want_cut = {.caps = RMA_CAPS};

struct cut {
	struct side *s;
	uint8_t *mem;
	bool slots[WINDOW];
	uint32_t under_way, good, failed;
	char peer[INET6_ADDRSTRLEN + 16];
};

static void peer_name(struct cut *c)
{
	struct sockaddr_in sa;
	size_t len = sizeof(sa);
	char text[INET_ADDRSTRLEN];

	side_must(c->s, fi_av_lookup(c->s->node.av, c->s->node.peer, &sa, &len),
		  "fi_av_lookup");
	inet_ntop(AF_INET, &sa.sin_addr, text, sizeof(text));
	snprintf(c->peer, sizeof(c->peer), "%s:%u", text, ntohs(sa.sin_port));
}

/* Takes what has ended, and looks at errors. */
static void ends_take(struct cut *c)
{
	struct fid_cq *cq = c->s->node.cq;
	char text[256] = "";
	struct done d;

	while (node_next(c->s, &d, 0)) {
		bool *slot = d.e.op_context;

		if (slot < c->slots || slot >= c->slots + WINDOW || !*slot)
			side_die(c->s, "a completion of nothing");
		*slot = false;
		c->under_way--;
		if (!d.err) {
			c->good++;
			continue;
		}
		c->failed++;
		fi_cq_strerror(cq, d.err, NULL, text, sizeof(text));
		if (c->failed == 1)
			printf("# %s\n", text);
		side_check(c->s, strstr(text, c->peer) != NULL,
			   "the peer, %s, is not named: %s", c->peer, text);
		/* Or the peer was the first to give up. */
		side_check(c->s,
			   strstr(text, "no rail reaches it") ||
				   strstr(text, "the peer doesn't know it any more") ||
				   strstr(text, "it cut its connection"),
			   "the cause is not named: %s", text);
	}
}

static ssize_t post(struct cut *c, uint32_t i)
{
	struct node *n = &c->s->node;

	if (i % 3 == 0)
		return fi_read(n->ep, c->mem + i * LEN, LEN, NULL, n->peer, 0, 0x61,
			       &c->slots[i]);
	if (i % 3 == 1)
		return fi_writedata(n->ep, c->mem + i * LEN, LEN, NULL, i, n->peer, 0,
				    0x61, &c->slots[i]);
	return fi_write(n->ep, c->mem + i * LEN, LEN, NULL, n->peer, 0, 0x61,
			&c->slots[i]);
}

static void cut_run(struct side *s)
{
	struct cut c = {.s = s, .mem = mem_new((size_t)WINDOW * LEN)};
	uint64_t end = now_ms() + TRIES_MS;

	node_open(s, &want_cut);
	peer_name(&c);
	side_meet(s);
	while (c.failed == 0 || c.under_way) {
		for (uint32_t i = 0; i < WINDOW && c.failed == 0; i++) {
			ssize_t rc = c.slots[i] ? -FI_EAGAIN : post(&c, i);

			if (rc == -FI_EAGAIN)
				continue;
			side_must(s, rc, "post");
			c.slots[i] = true;
			c.under_way++;
		}
		ends_take(&c);
		if (now_ms() > end)
			side_die(s, "%u operations have no end; %u good, %u failed",
				 c.under_way, c.good, c.failed);
		sched_yield();
	}
	printf("# %u were good, %u ended with an error\n", c.good, c.failed);
	mem_free(c.mem, (size_t)WINDOW * LEN);
	side_tell(s, "", 1);
	node_close(s, &s->node);
}

/* Its own end of the link goes as well, which is no error of any call here. */
static void target_cut(struct side *s)
{
	uint8_t *mem = mem_new(LEN);
	struct fid_mr *mr;
	char over;

	node_open(s, &want_cut);
	side_must(s,
		  fi_mr_reg(s->node.domain, mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			    0x61, 0, &mr, NULL),
		  "fi_mr_reg");
	side_meet(s);
	side_hear(s, &over, 1);
	side_must(s, fi_close(&mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
	mem_free(mem, LEN);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{.name = "every way to a peer is cut",
		 .run = {cut_run, target_cut},
		 .needs_weft = true},
	};

	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
