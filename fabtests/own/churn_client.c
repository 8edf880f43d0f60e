/* SPDX-License-Identifier: BSD-2-Clause */
/* A client that comes and goes. See churn.h. */
#include "config.h"

#include "fabtests/own/churn.h"

#include <sched.h>
#include <string.h>

struct client {
	const struct churn_job *job;
	const struct churn_place *place;
	uint8_t *out[CHURN_WINDOW], *in[CHURN_WINDOW];
	uint32_t seq;
	uint64_t end;
};

/* That many completions, all of them good. */
static void ended(struct side *s, struct client *c, int count)
{
	struct done d;

	while (count-- > 0) {
		if (!node_next(s, &d, (int)(c->end - now_ms())))
			side_die(s, "client %d: no completion", c->job->id);
		if (d.err)
			side_die(s, "client %d: %s", c->job->id, fi_strerror(d.err));
	}
}

static void post_send(struct side *s, struct client *c, const void *buf, size_t len,
		      enum churn_what what)
{
	const uint64_t tag = CHURN_TAG(what, c->job->id);
	ssize_t rc;

	for (;;) {
		rc = what == WHAT_DATA && c->job->use == USE_LARGE
			     ? fi_send(s->node.ep, buf, len, NULL, s->node.peer, NULL)
			     : fi_tsend(s->node.ep, buf, len, NULL, s->node.peer, tag,
					NULL);
		if (rc != -FI_EAGAIN)
			break;
		soak_post_wait(s, c->end, "send");
	}
	side_must(s, rc, "send");
}

static void post_recv(struct side *s, struct client *c, void *buf, size_t len,
		      enum churn_what what)
{
	ssize_t rc;

	while ((rc = fi_trecv(s->node.ep, buf, len, NULL, FI_ADDR_UNSPEC,
			      CHURN_TAG(what, c->job->id), 0, NULL)) == -FI_EAGAIN)
		soak_post_wait(s, c->end, "fi_trecv");
	side_must(s, rc, "fi_trecv");
}

/* The server learns our name, and that both directions work. */
static void hello(struct side *s, struct client *c)
{
	uint8_t *out = c->out[0];
	struct churn_head head = {.id = c->job->id, .len = sizeof(head) + 64};

	memcpy(out, &head, sizeof(head));
	memcpy(out + sizeof(head), s->node.name, 64);
	post_recv(s, c, c->in[0], CHURN_SMALL, WHAT_WELCOME);
	post_send(s, c, out, head.len, WHAT_HELLO);
	ended(s, c, 2);
}

static void round_messages(struct side *s, struct client *c)
{
	bool large = c->job->use == USE_LARGE;
	size_t most = large ? CHURN_LARGE : CHURN_SMALL;

	for (int i = 0; i < CHURN_WINDOW; i++) {
		struct churn_head head = {.id = c->job->id,
					  .seq = c->seq++,
					  .large = large,
					  .len = large ? CHURN_LARGE
						       : 64 + c->seq * 97 % 4000};

		post_recv(s, c, c->in[i], most, WHAT_ECHO);
		churn_fill(c->out[i], &head);
		post_send(s, c, c->out[i], head.len, WHAT_DATA);
	}
	ended(s, c, 2 * CHURN_WINDOW);
	for (int i = 0; i < CHURN_WINDOW; i++) {
		struct churn_head head;

		memcpy(&head, c->in[i], sizeof(head));
		/* Large answers are the same bytes for all. */
		side_check(s, head.id == (large ? 0 : c->job->id),
			   "an answer for client %d", head.id);
		churn_check(s, c->in[i], head.len, "answer");
	}
}

/* Writes the stripe in pieces, then reads it back. */
static void round_rma(struct side *s, struct client *c)
{
	const int which = c->job->use == USE_SHARED;
	const size_t piece = CHURN_STRIPE / CHURN_WINDOW;
	const uint64_t at = c->place->base[which] +
			    (uint64_t)(c->job->id % CHURN_CLIENTS) * CHURN_STRIPE;

	for (int write = 1; write >= 0; write--) {
		for (int i = 0; i < CHURN_WINDOW; i++) {
			uint64_t to = at + (uint64_t)i * piece;
			ssize_t rc;

			if (write)
				mem_fill(c->out[i], piece,
					 (uint32_t)c->job->id * 31 + c->seq++);
			while ((rc = write ? fi_write(s->node.ep, c->out[i], piece, NULL,
						      s->node.peer, to,
						      c->place->key[which], NULL)
					   : fi_read(s->node.ep, c->in[i], piece, NULL,
						     s->node.peer, to,
						     c->place->key[which], NULL)) ==
			       -FI_EAGAIN)
				soak_post_wait(s, c->end, "RMA");
			side_must(s, rc, "RMA");
		}
		ended(s, c, CHURN_WINDOW);
	}
	for (int i = 0; i < CHURN_WINDOW; i++)
		side_check(s, memcmp(c->in[i], c->out[i], piece) == 0,
			   "what was written is read");
}

void churn_client(struct side *s, const struct churn_job *job,
		  const struct churn_place *place)
{
	struct client c = {.job = job, .place = place, .end = now_ms() + 30000};
	bool messages = job->use == USE_TAGGED || job->use == USE_LARGE;

	for (int i = 0; i < CHURN_WINDOW; i++) {
		c.out[i] = mem_new(CHURN_LARGE);
		c.in[i] = mem_new(CHURN_LARGE);
	}
	node_open_alone(s, &s->node, &churn_want);
	side_check(s,
		   fi_av_insert(s->node.av, place->name, 1, &s->node.peer, 0, NULL) == 1,
		   "fi_av_insert");
	if (messages)
		hello(s, &c);
	for (int round = 0; round < CHURN_ROUNDS || job->end != END_ORDER; round++) {
		if (messages)
			round_messages(s, &c);
		else
			round_rma(s, &c);
		if (round == 0)
			side_tell(s, "", 1);
	}
	node_close(s, &s->node);
}
