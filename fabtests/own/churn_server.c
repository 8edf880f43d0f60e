/* SPDX-License-Identifier: BSD-2-Clause */
/* The server that clients come to. See churn.h. */
#include "config.h"

#include "fabtests/own/churn.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "fabtests/own/remote.h"

#include "weft/weft_fi.h"

#define SMALL_RECEIVES 32
#define LARGE_RECEIVES 6
#define SENDS	       256
#define SLOTS	       64 /* clients that are not known to be gone */
#define END_MS	       15000
#define IDS	       65536

const struct want churn_want = {.caps = FI_MSG | FI_TAGGED | FI_RMA,
				.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
					   FI_MR_ALLOCATED,
				.tx_op_flags = FI_DELIVERY_COMPLETE,
				.wait_obj = FI_WAIT_UNSPEC};

uint32_t churn_pattern(const struct churn_head *head)
{
	return (uint32_t)head->id * 2654435761u + head->seq;
}

void churn_fill(uint8_t *buf, const struct churn_head *head)
{
	memcpy(buf, head, sizeof(*head));
	mem_fill(buf + sizeof(*head), head->len - sizeof(*head), churn_pattern(head));
}

bool churn_check(struct side *s, const uint8_t *buf, size_t len, const char *what)
{
	struct churn_head head;

	memcpy(&head, buf, sizeof(head));
	if (!side_check(s, head.len == len && len >= sizeof(head),
			"%s: %zu bytes, and its head says %u", what, len, head.len))
		return false;
	return mem_check(s, buf + sizeof(head), len - sizeof(head), churn_pattern(&head),
			 what);
}

/* ---- what it has */

enum op_kind { OP_SMALL_RECEIVE, OP_LARGE_RECEIVE, OP_SEND };

struct visitor {
	int id; /* 0: free */
	fi_addr_t addr;
	int under_way; /* sends */
};

struct op {
	enum op_kind kind;
	bool used;   /* OP_SEND: under way, or to be posted */
	bool posted; /* else it is tried again */
	struct visitor *to;
	uint64_t tag;
	size_t len;
	uint8_t *own; /* CHURN_SMALL bytes, CHURN_LARGE of a large receive */
	const uint8_t *out;
};

struct server {
	struct op receives[SMALL_RECEIVES + LARGE_RECEIVES];
	struct op sends[SENDS];
	struct visitor visitors[SLOTS];
	uint8_t gone[IDS / 8]; /* clients whose words come too late */
	uint8_t *large;	       /* every large answer */
	uint64_t failed;       /* operations that ended in error */
};

static struct visitor *visitor_find(struct server *v, int id)
{
	for (int i = 0; i < SLOTS; i++)
		if (v->visitors[i].id == id)
			return &v->visitors[i];
	return NULL;
}

/* ---- operations */

static void op_post(struct side *s, struct op *op)
{
	struct node *n = &s->node;
	ssize_t rc = 0;

	switch (op->kind) {
	case OP_SMALL_RECEIVE:
		rc = fi_trecv(n->ep, op->own, CHURN_SMALL, NULL, FI_ADDR_UNSPEC, 0,
			      UINT64_MAX, op);
		break;
	case OP_LARGE_RECEIVE:
		rc = fi_recv(n->ep, op->own, CHURN_LARGE, NULL, FI_ADDR_UNSPEC, op);
		break;
	case OP_SEND:
		rc = fi_tsend(n->ep, op->out, op->len, NULL, op->to->addr, op->tag, op);
		break;
	}
	if (rc != -FI_EAGAIN)
		side_must(s, rc, "post");
	op->posted = rc == 0;
}

static void post_all(struct side *s, struct server *v)
{
	for (int i = 0; i < SMALL_RECEIVES + LARGE_RECEIVES; i++)
		if (!v->receives[i].posted)
			op_post(s, &v->receives[i]);
	for (int i = 0; i < SENDS; i++)
		if (v->sends[i].used && !v->sends[i].posted)
			op_post(s, &v->sends[i]);
}

static void answer(struct side *s, struct server *v, struct visitor *to,
		   enum churn_what what, const struct churn_head *head)
{
	struct op *op = NULL;

	for (int i = 0; i < SENDS && !op; i++)
		if (!v->sends[i].used)
			op = &v->sends[i];
	if (!op)
		side_die(s, "%d sends are under way", SENDS);
	op->used = true;
	op->to = to;
	op->tag = CHURN_TAG(what, to->id);
	op->len = head->len;
	op->out = head->large ? v->large : op->own;
	if (!head->large)
		churn_fill(op->own, head);
	to->under_way++;
	op_post(s, op);
}

static void hello(struct side *s, struct server *v, const struct churn_head *head,
		  const uint8_t *name)
{
	struct visitor *from = visitor_find(v, 0);

	if (!from)
		side_die(s, "no room for client %d", head->id);
	from->id = head->id;
	side_check(s, fi_av_insert(s->node.av, name, 1, &from->addr, 0, NULL) == 1,
		   "fi_av_insert of client %d", head->id);
	answer(s, v, from, WHAT_WELCOME, head);
}

/* A message is there; it may come from somebody who is no more. */
static void heard(struct side *s, struct server *v, const struct op *op, uint64_t tag,
		  size_t len)
{
	struct churn_head head;
	struct visitor *from;

	if (!side_check(s, len >= sizeof(head), "a message of %zu bytes", len))
		return;
	memcpy(&head, op->own, sizeof(head));
	if (!side_check(s, head.id > 0 && head.id < IDS, "client %d", head.id))
		return;
	if (op->kind == OP_SMALL_RECEIVE && tag == CHURN_TAG(WHAT_HELLO, head.id)) {
		if (!(v->gone[head.id / 8] & 1u << head.id % 8))
			hello(s, v, &head, op->own + sizeof(head));
		return;
	}
	churn_check(s, op->own, len, "message");
	from = visitor_find(v, head.id);
	if (!from)
		return;
	if (head.large)
		memcpy(&head, v->large, sizeof(head));
	answer(s, v, from, WHAT_ECHO, &head);
}

static void completed(struct side *s, struct server *v, struct op *op,
		      const struct fi_cq_tagged_entry *e, int err)
{
	op->posted = false;
	v->failed += err != 0;
	if (op->kind == OP_SEND) {
		op->used = false;
		op->to->under_way--;
	} else if (err == 0) {
		heard(s, v, op, e->tag, e->len);
	}
}

/* Sleeps a little where there is nothing. */
static void turn(struct side *s, struct server *v)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry e;
	ssize_t rc = fi_cq_sread(s->node.cq, &e, 1, NULL, 2);

	for (int i = 0; i < 64 && rc != -FI_EAGAIN; i++) {
		if (rc == 1)
			completed(s, v, e.op_context, &e, 0);
		else if (rc == -FI_EAVAIL && fi_cq_readerr(s->node.cq, &err, 0) == 1)
			completed(s, v, err.op_context, NULL, err.err);
		else
			side_die(s, "reading gave %zd", rc);
		rc = fi_cq_read(s->node.cq, &e, 1);
	}
	if (rc == 1)
		completed(s, v, e.op_context, &e, 0);
	post_all(s, v);
}

/* ---- orders */

/* Forgets a client once nothing to it is under way any more; true: it is forgotten. */
static bool visitor_forget(struct side *s, struct server *v, int id)
{
	struct visitor *from = visitor_find(v, id);

	v->gone[id / 8] |= (uint8_t)(1u << id % 8);
	if (!from)
		return true;
	if (from->under_way)
		return false;
	side_must(s, fi_av_remove(s->node.av, &from->addr, 1, 0), "fi_av_remove");
	from->id = 0;
	return true;
}

static void measure(struct side *s, struct server *v, long fds)
{
	const uint64_t end = now_ms() + END_MS;
	struct soak_use use;

	/* Links end when the helper thread and progress have heard of it. */
	do {
		for (int i = 0; i < 10; i++)
			turn(s, v);
		soak_measure(&use);
	} while (fds && use.fds > fds && now_ms() < end);
	side_tell(s, &use, sizeof(use));
}

/* False: enough. */
static bool obey(struct side *s, struct server *v)
{
	struct pollfd p = {.fd = s->sock, .events = POLLIN};
	struct churn_word word;
	uint64_t end = now_ms() + END_MS;

	if (poll(&p, 1, 0) <= 0)
		return true;
	if (recv(s->sock, &word, sizeof(word), MSG_WAITALL) != (ssize_t)sizeof(word))
		side_die(s, "the driver is gone");
	switch ((enum churn_order)word.order) {
	case ORDER_QUIT:
		return false;
	case ORDER_MEASURE:
		measure(s, v, word.fds);
		return true;
	case ORDER_DEAD:
		while (!visitor_forget(s, v, word.id)) {
			if (now_ms() > end)
				side_die(s,
					 "client %d is dead and sends to it have no "
					 "end",
					 word.id);
			turn(s, v);
		}
		return true;
	}
	return true;
}

/* ---- life */

static struct fid_mr *region(struct side *s, void *mem, struct churn_place *place,
			     int which)
{
	struct fid_mr *mr;

	side_must(s,
		  fi_mr_reg(s->node.domain, mem, CHURN_CLIENTS * CHURN_STRIPE,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, (uint64_t)which + 1, 0,
			    &mr, NULL),
		  "fi_mr_reg");
	place->base[which] = remote_base(&s->node, mem);
	place->key[which] = fi_mr_key(mr);
	return mr;
}

static void server_prepare(struct server *v)
{
	struct churn_head head = {.large = 1, .len = CHURN_LARGE};

	for (int i = 0; i < SMALL_RECEIVES + LARGE_RECEIVES; i++) {
		bool large = i >= SMALL_RECEIVES;

		v->receives[i].kind = large ? OP_LARGE_RECEIVE : OP_SMALL_RECEIVE;
		v->receives[i].own = mem_new(large ? CHURN_LARGE : CHURN_SMALL);
	}
	for (int i = 0; i < SENDS; i++) {
		v->sends[i].kind = OP_SEND;
		v->sends[i].own = mem_new(CHURN_SMALL);
	}
	v->large = mem_new(CHURN_LARGE);
	churn_fill(v->large, &head);
}

void churn_server(struct side *s)
{
	const size_t size = CHURN_CLIENTS * CHURN_STRIPE;
	struct server *v = mem_new(sizeof(*v));
	struct weft_fi_mem_ops *ops = NULL;
	struct churn_place place = {0};
	void *mem[2] = {mem_new(size), NULL};
	struct fid *sleeps[1];
	struct fid_mr *mr[2];

	memset(v, 0, sizeof(*v));
	server_prepare(v);
	node_open_alone(s, &s->node, &churn_want);
	/* What sleeping takes is there from the first measure on as well, however late a
	 * loaded machine lets it sleep. */
	sleeps[0] = &s->node.cq->fid;
	fi_trywait(s->node.fabric, sleeps, 1);
	/* Other providers have ordinary memory twice. */
	if (fi_open_ops(&s->node.domain->fid, WEFT_FI_MEM_OPS, 0, (void **)&ops, NULL))
		mem[1] = mem_new(size);
	else
		side_must(s, ops->alloc(s->node.domain, size, 0, &mem[1]), "alloc");
	/* What it has itself is there from the beginning, whichever clients come. */
	memset(mem[1], 0xee, size);
	for (int i = 0; i < 2; i++)
		mr[i] = region(s, mem[i], &place, i);
	memcpy(place.name, s->node.name, sizeof(place.name));
	post_all(s, v);
	side_tell(s, &place, sizeof(place));
	while (obey(s, v))
		turn(s, v);
	for (int i = 0; i < 2; i++)
		side_must(s, fi_close(&mr[i]->fid), "fi_close of a registration");
	if (ops)
		side_must(s, ops->free(s->node.domain, mem[1]), "free");
	printf("# server: %llu operations ended with their clients\n",
	       (unsigned long long)v->failed);
	node_close(s, &s->node);
}
