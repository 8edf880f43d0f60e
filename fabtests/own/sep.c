/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scalable endpoints: one address, contexts that are named by it and by their number.
 * What is sent to one context comes to that one, whichever sent it; who sent it is known
 * by the one address.
 *
 * Both roles have a scalable endpoint of CTX contexts in either direction, each pair with
 * a queue of its own, beside the ordinary endpoint of their node.
 */
#include "config.h"

#include "fabtests/own/util.h"
#include "util/tap.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include <rdma/fi_atomic.h>

#define CTX  3
#define BITS 2
#define LONG ((1u << 20) + 5)

static const struct want want_all = {
	.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_DIRECTED_RECV |
		FI_NAMED_RX_CTX,
};

struct many {
	struct fi_info *info;
	struct fid_ep *sep, *tx[CTX], *rx[CTX];
	struct fid_cq *cq[CTX];
	struct fid_av *av;
	char name[64], peer_name[64];
	fi_addr_t peer; /* FI_ADDR_NOTAVAIL: not inserted yet */
};

static struct fi_info *many_info(struct side *s)
{
	struct fi_info *hints = node_hints(&want_all), *info;

	hints->ep_attr->tx_ctx_cnt = CTX;
	hints->ep_attr->rx_ctx_cnt = CTX;
	if (fi_getinfo(API_VERSION, "127.0.0.1", NULL, FI_SOURCE, hints, &info))
		side_lacks(s, "no scalable endpoints");
	side_check(s,
		   info->ep_attr->tx_ctx_cnt == CTX && info->ep_attr->rx_ctx_cnt == CTX &&
			   info->domain_attr->max_ep_tx_ctx >= CTX &&
			   info->domain_attr->max_ep_rx_ctx >= CTX &&
			   (info->caps & FI_NAMED_RX_CTX),
		   "scalable endpoints are not announced");
	fi_freeinfo(hints);
	return info;
}

static void rx_open(struct side *s, struct many *m, int i)
{
	side_must(s, fi_rx_context(m->sep, i, NULL, &m->rx[i], m), "fi_rx_context");
	side_must(s, fi_ep_bind(m->rx[i], &m->cq[i]->fid, FI_RECV), "bind");
	side_must(s, fi_enable(m->rx[i]), "fi_enable rx");
}

static void tx_open(struct side *s, struct many *m, int i)
{
	side_must(s, fi_tx_context(m->sep, i, NULL, &m->tx[i], m), "fi_tx_context");
	side_must(s, fi_ep_bind(m->tx[i], &m->cq[i]->fid, FI_TRANSMIT), "bind");
	side_must(s, fi_enable(m->tx[i]), "fi_enable tx");
}

/* Up to the scalable endpoint; names are exchanged, nothing is inserted. */
static void many_open(struct side *s, struct many *m)
{
	struct fi_av_attr av = {.type = FI_AV_MAP, .rx_ctx_bits = BITS};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	size_t len = sizeof(m->name);

	memset(m, 0, sizeof(*m));
	m->peer = FI_ADDR_NOTAVAIL;
	node_open_alone(s, &s->node, &want_all);
	m->info = many_info(s);
	side_must(s, fi_av_open(s->node.domain, &av, &m->av, NULL), "fi_av_open");
	side_must(s, fi_scalable_ep(s->node.domain, m->info, &m->sep, NULL), "sep");
	side_must(s, fi_scalable_ep_bind(m->sep, &m->av->fid, 0), "fi_scalable_ep_bind");
	side_must(s, fi_enable(m->sep), "fi_enable sep");
	for (int i = 0; i < CTX; i++)
		side_must(s, fi_cq_open(s->node.domain, &cq, &m->cq[i], NULL), "cq");
	side_must(s, fi_getname(&m->sep->fid, m->name, &len), "fi_getname");
	side_tell(s, m->name, sizeof(m->name));
	side_hear(s, m->peer_name, sizeof(m->peer_name));
}

static void many_know(struct side *s, struct many *m)
{
	if (fi_av_insert(m->av, m->peer_name, 1, &m->peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
}

static void many_start(struct side *s, struct many *m)
{
	many_open(s, m);
	many_know(s, m);
	for (int i = 0; i < CTX; i++) {
		rx_open(s, m, i);
		tx_open(s, m, i);
	}
	side_meet(s);
}

static void many_close(struct side *s, struct many *m)
{
	side_check(s, fi_close(&m->sep->fid) == -FI_EBUSY || !m->tx[0],
		   "it closes under its contexts");
	for (int i = 0; i < CTX; i++) {
		if (m->tx[i])
			side_must(s, fi_close(&m->tx[i]->fid), "fi_close tx");
		if (m->rx[i])
			side_must(s, fi_close(&m->rx[i]->fid), "fi_close rx");
		side_must(s, fi_close(&m->cq[i]->fid), "fi_close cq");
	}
	side_check(s, fi_close(&m->av->fid) == -FI_EBUSY, "the vector closes before it");
	side_must(s, fi_close(&m->sep->fid), "fi_close sep");
	side_must(s, fi_close(&m->av->fid), "fi_close av");
	fi_freeinfo(m->info);
	node_close(s, &s->node);
}

/* The next completion of any queue; which. -1: none within ms. */
static int many_next(struct side *s, struct many *m, struct done *d, int ms)
{
	uint64_t end = now_ms() + (uint64_t)ms;

	do {
		for (int i = 0; i < CTX; i++) {
			struct fi_cq_err_entry err = {0};
			ssize_t rc;

			memset(d, 0, sizeof(*d));
			rc = fi_cq_readfrom(m->cq[i], &d->e, 1, &d->src);
			if (rc == 1)
				return i;
			if (rc == -FI_EAGAIN)
				continue;
			if (rc != -FI_EAVAIL || fi_cq_readerr(m->cq[i], &err, 0) != 1)
				side_die(s, "fi_cq_readfrom: %zd", rc);
			d->err = err.err;
			d->e.op_context = err.op_context;
			d->e.flags = err.flags;
			return i;
		}
		node_progress(&s->node);
		sched_yield();
	} while (now_ms() < end);
	return -1;
}

static int many_must(struct side *s, struct many *m, struct done *d)
{
	int i = many_next(s, m, d, WAIT_MS);

	if (i < 0)
		side_die(s, "a completion is missing");
	return i;
}

/* The next is on that queue, and good. */
static void many_good(struct side *s, struct many *m, struct done *d, int queue)
{
	int i = many_must(s, m, d);

	side_check(s, i == queue && !d->err, "queue %d: error %d", i, d->err);
}

/* Both are here, and both drive their contexts until the other is. */
static void many_meet(struct side *s, struct many *m)
{
	struct done d;

	side_check(s, many_next(s, m, &d, 20) < 0, "a completion too many");
	side_meet(s);
}

static fi_addr_t rx_addr(const struct many *m, int i)
{
	return i ? fi_rx_addr(m->peer, i, BITS) : m->peer;
}

/* ---- every context to every other */

static void all_run(struct side *s)
{
	static const size_t sizes[] = {0, 8, 4000, 9000, LONG};
	int sent = 0, got = 0, want = CTX * CTX * (int)ARRAY_LEN(sizes);
	char *out = mem_new(LONG), *in[CTX * CTX * ARRAY_LEN(sizes)];
	struct many m;
	struct done d;

	many_start(s, &m);
	mem_fill(out, LONG, 7);
	for (int n = 0; n < want; n++) {
		int to = n % CTX;

		in[n] = mem_new(LONG);
		side_must(s,
			  n % 2 ? fi_trecv(m.rx[to], in[n], LONG, NULL, m.peer,
					   (uint64_t)n, 0, in[n])
				: fi_trecv(m.rx[to], in[n], LONG, NULL, FI_ADDR_UNSPEC,
					   (uint64_t)n, 0, in[n]),
			  "fi_trecv");
	}
	for (int n = 0; n < want;) {
		int to = n % CTX, from = n / CTX % CTX;
		size_t len = sizes[n / (CTX * CTX)];
		ssize_t rc =
			fi_tsend(m.tx[from], out, len, NULL,
				 n % 5 ? rx_addr(&m, to) : fi_rx_addr(m.peer, to, BITS),
				 (uint64_t)n, out);

		if (rc != -FI_EAGAIN) {
			side_must(s, rc, "fi_tsend");
			n++;
		}
		for (int i; (i = many_next(s, &m, &d, 0)) >= 0;) {
			side_check(s, !d.err, "error %d", d.err);
			sent += !!(d.e.flags & FI_SEND);
			got += !!(d.e.flags & FI_RECV);
			side_check(s,
				   !(d.e.flags & FI_RECV) ||
					   (i == (int)d.e.tag % CTX && d.src == m.peer),
				   "message %d on queue %d from %d", (int)d.e.tag, i,
				   (int)d.src);
		}
	}
	while (sent < want || got < want) {
		int i = many_must(s, &m, &d);

		side_check(s, !d.err, "error %d", d.err);
		sent += !!(d.e.flags & FI_SEND);
		got += !!(d.e.flags & FI_RECV);
		side_check(s,
			   !(d.e.flags & FI_RECV) ||
				   (i == (int)d.e.tag % CTX && d.src == m.peer),
			   "message %d on queue %d", (int)d.e.tag, i);
	}
	for (int n = 0; n < want; n++)
		mem_check(s, in[n], sizes[n / (CTX * CTX)], 7, "content");
	many_meet(s, &m);
	many_close(s, &m);
}

/* ---- contexts that open late; a sender that is not known yet */

static void late_one(struct side *s)
{
	char *mem = mem_new(LONG);
	struct many m;
	struct done d;

	many_open(s, &m);
	for (int i = 0; i < 2; i++) { /* number 2 comes later */
		rx_open(s, &m, i);
		tx_open(s, &m, i);
	}
	side_meet(s);
	side_must(s, fi_recv(m.rx[1], mem, 8, NULL, FI_ADDR_UNSPEC, mem), "fi_recv");
	side_check(s, many_must(s, &m, &d) == 1 && d.src == FI_ADDR_NOTAVAIL,
		   "a stranger has a name");
	many_know(s, &m);
	side_meet(s);
	side_must(s, fi_recv(m.rx[1], mem, 8, NULL, FI_ADDR_UNSPEC, mem), "fi_recv");
	side_check(s, many_must(s, &m, &d) == 1 && d.src == m.peer,
		   "who was inserted has none");
	side_must(s, fi_av_remove(m.av, &m.peer, 1, 0), "fi_av_remove");
	side_meet(s);
	side_must(s, fi_recv(m.rx[1], mem, 8, NULL, FI_ADDR_UNSPEC, mem), "fi_recv");
	side_check(s, many_must(s, &m, &d) == 1 && d.src == FI_ADDR_NOTAVAIL,
		   "who was removed has a name");
	many_know(s, &m);
	rx_open(s, &m, 2);
	side_must(s, fi_recv(m.rx[2], mem, LONG, NULL, m.peer, mem), "fi_recv");
	side_check(s, many_must(s, &m, &d) == 2 && !d.err && d.e.len == LONG,
		   "a context that was opened late");
	mem_check(s, mem, LONG, 3, "content");
	/* Number 0 goes and comes back at the same address. */
	side_must(s, fi_close(&m.rx[0]->fid), "fi_close rx");
	rx_open(s, &m, 0);
	side_meet(s);
	side_must(s, fi_recv(m.rx[0], mem, 8, NULL, m.peer, mem), "fi_recv");
	side_check(s, many_must(s, &m, &d) == 0 && !d.err, "number 0 is back");
	side_meet(s);
	m.tx[2] = NULL;
	many_close(s, &m);
}

static void late_other(struct side *s)
{
	char *mem = mem_new(LONG);
	struct many m;
	struct done d;

	many_open(s, &m);
	many_know(s, &m);
	for (int i = 0; i < CTX; i++) {
		tx_open(s, &m, i);
		rx_open(s, &m, i);
	}
	side_meet(s);
	mem_fill(mem, LONG, 3);
	for (int i = 0; i < 3; i++) {
		side_must(s, fi_send(m.tx[i % 2], mem, 8, NULL, rx_addr(&m, 1), mem),
			  "fi_send");
		many_must(s, &m, &d);
		side_check(s, !d.err, "error %d", d.err);
		if (i < 2)
			side_meet(s);
	}
	side_must(s, fi_send(m.tx[0], mem, LONG, NULL, rx_addr(&m, 2), mem), "fi_send");
	many_good(s, &m, &d, 0);
	side_meet(s);
	side_must(s, fi_send(m.tx[2], mem, 8, NULL, m.peer, mem), "fi_send");
	many_must(s, &m, &d);
	side_check(s, !d.err, "error %d", d.err);
	many_meet(s, &m);
	many_close(s, &m);
}

/* ---- remote memory */

static void window_own(struct side *s)
{
	uint64_t *mem = mem_new(65536), key;
	struct fid_mr *mr;
	struct many m;
	struct done d;
	uint8_t byte;

	many_start(s, &m);
	memset(mem, 0, 65536);
	side_must(s,
		  fi_mr_reg(s->node.domain, mem, 65536, FI_REMOTE_READ | FI_REMOTE_WRITE,
			    0, 5, 0, &mr, NULL),
		  "fi_mr_reg");
	side_check(s, fi_mr_bind(mr, &m.sep->fid, 0) == 0, "a region is bound to it");
	key = fi_mr_key(mr);
	side_tell(s, &key, sizeof(key));
	side_must(s, fi_recv(m.rx[0], &byte, 1, NULL, m.peer, &byte), "fi_recv");
	many_good(s, &m, &d, 0);
	for (int i = 0; i < CTX; i++) {
		side_check_u64(s, mem[i], 77 + (uint64_t)i, "written");
		side_check_u64(s, mem[10 + i], CTX, "added");
	}
	side_must(s, fi_close(&mr->fid), "fi_close mr");
	many_meet(s, &m);
	many_close(s, &m);
}

static void window_use(struct side *s)
{
	uint64_t value[CTX], back[CTX] = {0}, one = 1, key;
	struct many m;
	struct done d;

	many_start(s, &m);
	side_hear(s, &key, sizeof(key));
	for (int i = 0; i < CTX; i++) {
		value[i] = 77 + (uint64_t)i;
		side_must(s,
			  fi_write(m.tx[i], &value[i], 8, NULL, rx_addr(&m, i),
				   8 * (uint64_t)i, key, &value[i]),
			  "fi_write");
		many_good(s, &m, &d, i);
		side_must(s,
			  fi_read(m.tx[i], &back[i], 8, NULL, m.peer, 8 * (uint64_t)i,
				  key, &back[i]),
			  "fi_read");
		many_good(s, &m, &d, i);
		side_check_u64(s, back[i], value[i], "read");
		for (int j = 0; j < CTX; j++) {
			side_must(s,
				  fi_atomic(m.tx[i], &one, 1, NULL, rx_addr(&m, j),
					    80 + 8 * (uint64_t)j, key, FI_UINT64, FI_SUM,
					    &one),
				  "fi_atomic");
			many_good(s, &m, &d, i);
		}
	}
	side_must(s, fi_send(m.tx[2], value, 1, NULL, m.peer, value), "fi_send");
	many_must(s, &m, &d);
	many_meet(s, &m);
	many_close(s, &m);
}

/* ---- an ordinary endpoint on the other side */

static void plain_many(struct side *s)
{
	char mem[8], name[64];
	struct many m;
	struct done d;

	many_start(s, &m);
	side_hear(s, name, sizeof(name));
	if (fi_av_insert(m.av, name, 1, &m.peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	side_must(s, fi_trecv(m.rx[0], mem, 8, NULL, m.peer, 4, 0, mem), "trecv");
	side_check(s, many_must(s, &m, &d) == 0 && d.src == m.peer,
		   "from an ordinary one");
	side_must(s, fi_tsend(m.tx[1], mem, 8, NULL, m.peer, 6, mem), "tsend");
	many_good(s, &m, &d, 1);
	side_check(s,
		   fi_tsend(m.tx[1], mem, 8, NULL, fi_rx_addr(m.peer, 5, BITS + 1), 6,
			    mem) == -FI_EINVAL,
		   "a handle that is none");
	many_meet(s, &m);
	many_close(s, &m);
}

static void plain_one(struct side *s)
{
	struct node *n = &s->node;
	char mem[8] = "message", name[64] = {0};
	struct many m;
	struct done d;

	many_start(s, &m);
	memcpy(name, n->name, sizeof(n->name));
	side_tell(s, name, sizeof(name));
	if (fi_av_insert(n->av, m.peer_name, 1, &n->peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	side_must(s, fi_trecv(n->ep, mem, 8, NULL, n->peer, 6, 0, mem), "trecv");
	side_must(s, fi_tinject(n->ep, mem, 8, n->peer, 4), "tinject");
	node_expect(s, &d, FI_TAGGED | FI_RECV, mem);
	side_check(s, d.src == n->peer, "from a context");
	many_meet(s, &m);
	many_close(s, &m);
}

/* ---- threads, each with its pair of contexts */

#define ROUNDS 300

struct worker {
	struct many *m;
	int i;
	bool failed;
};

/* Every message is answered. */
static void *worker_run(void *arg)
{
	struct worker *w = arg;
	struct fid_ep *tx = w->m->tx[w->i], *rx = w->m->rx[w->i];
	fi_addr_t to = rx_addr(w->m, w->i);
	uint64_t end = now_ms() + 2 * WAIT_MS, out, in;

	for (uint64_t n = 0; n < ROUNDS && !w->failed; n++) {
		int sent = 0, got = 0;

		out = n * CTX + (uint64_t)w->i;
		w->failed |= fi_trecv(rx, &in, 8, NULL, FI_ADDR_UNSPEC, n, 0, &in) != 0;
		while (fi_tsend(tx, &out, 8, NULL, to, n, &out) == -FI_EAGAIN)
			;
		while ((!sent || !got) && !w->failed) {
			struct fi_cq_tagged_entry e;
			ssize_t rc = fi_cq_read(w->m->cq[w->i], &e, 1);

			if (rc == 1) {
				sent += !!(e.flags & FI_SEND);
				got += !!(e.flags & FI_RECV);
				continue;
			}
			w->failed |= rc != -FI_EAGAIN || now_ms() > end;
			sched_yield();
		}
		w->failed |= in != out;
	}
	return NULL;
}

static void threads_run(struct side *s)
{
	struct worker w[CTX];
	pthread_t t[CTX];
	struct many m;

	many_start(s, &m);
	for (int i = 0; i < CTX; i++) {
		w[i] = (struct worker){&m, i, false};
		if (pthread_create(&t[i], NULL, worker_run, &w[i]))
			side_die(s, "no thread");
	}
	for (int i = 0; i < CTX; i++) {
		pthread_join(t[i], NULL);
		side_check(s, !w[i].failed, "thread %d", i);
	}
	many_meet(s, &m);
	many_close(s, &m);
}

/* ---- the peer dies */

static void death_wait(struct side *s)
{
	struct many m;
	uint8_t byte = 0;

	many_start(s, &m);
	side_tell(s, &byte, 1);
	for (;;) {
		for (int i = 0; i < CTX; i++)
			fi_cq_read(m.cq[i], NULL, 0);
		sched_yield();
	}
}

static void death_see(struct side *s)
{
	char *mem = mem_new(LONG);
	bool ended[CTX] = {false};
	struct many m;
	struct done d;
	uint8_t byte;

	many_start(s, &m);
	side_hear(s, &byte, 1);
	for (int i = 0; i < CTX; i++) /* announced, and no receive is posted */
		side_must(s, fi_send(m.tx[i], mem, LONG, NULL, rx_addr(&m, i), mem),
			  "send");
	side_check(s, many_next(s, &m, &d, 30) < 0, "a send without a receive is done");
	kill(s->peer_pid, SIGKILL);
	for (int n = 0; n < CTX; n++) {
		int i = many_must(s, &m, &d);

		side_check(s, d.err && !ended[i], "queue %d: error %d", i, d.err);
		ended[i] = true;
	}
	many_close(s, &m);
}

/* ---- what is refused */

static void refuse_open(struct side *s, struct many *m)
{
	struct fi_info *bad = fi_dupinfo(m->info);
	struct fi_av_attr attr = {.rx_ctx_bits = 40};
	struct fid_ep *sep;
	struct fid_av *av;

	bad->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	side_check(s, fi_scalable_ep(s->node.domain, bad, &sep, NULL) == -FI_EINVAL,
		   "shared contexts");
	bad->ep_attr->tx_ctx_cnt = 1 << 20;
	side_check(s, fi_scalable_ep(s->node.domain, bad, &sep, NULL) == -FI_EINVAL,
		   "contexts without end");
	fi_freeinfo(bad);
	side_check(s, fi_av_open(s->node.domain, &attr, &av, NULL) == -FI_EINVAL,
		   "no bits are left for handles");
}

static void refuse_contexts(struct side *s, struct many *m)
{
	struct fi_rx_attr rx = {.total_buffered_recv = 1};
	struct fi_tx_attr tx = {.op_flags = FI_MULTI_RECV};
	struct fid_ep *ep;
	char mem[8];

	side_check(s, fi_tx_context(m->sep, CTX, NULL, &ep, NULL) == -FI_EINVAL, "index");
	side_check(s, fi_rx_context(m->sep, -1, NULL, &ep, NULL) == -FI_EINVAL, "index");
	side_check(s, fi_tx_context(m->sep, 0, NULL, &ep, NULL) == -FI_EBUSY, "twice");
	side_check(s, fi_rx_context(m->sep, 0, NULL, &ep, NULL) == -FI_EBUSY, "twice");
	side_check(s, fi_tx_context(s->node.ep, 0, NULL, &ep, NULL) == -FI_ENOSYS,
		   "of an ordinary endpoint");
	side_must(s, fi_close(&m->rx[2]->fid), "fi_close rx");
	side_must(s, fi_close(&m->tx[2]->fid), "fi_close tx");
	m->rx[2] = m->tx[2] = NULL;
	side_check(s, fi_rx_context(m->sep, 2, &rx, &ep, NULL) == -FI_EINVAL, "rx attr");
	side_check(s, fi_tx_context(m->sep, 2, &tx, &ep, NULL) == -FI_EBADFLAGS,
		   "tx attr");
	memset(&tx, 0, sizeof(tx));
	side_must(s, fi_tx_context(m->sep, 2, &tx, &m->tx[2], NULL), "fi_tx_context");
	side_check(s, tx.size && tx.iov_limit, "attributes are not returned");
	side_check(s, fi_send(m->tx[2], mem, 8, NULL, m->peer, NULL) == -FI_EOPBADSTATE,
		   "before it is enabled");
	side_check(s, fi_enable(m->tx[2]) == -FI_ENOCQ, "without a queue");
	side_check(s, fi_recv(m->tx[0], mem, 8, NULL, FI_ADDR_UNSPEC, NULL) < 0,
		   "a transmit context receives");
	side_check(s, fi_send(m->rx[0], mem, 8, NULL, m->peer, NULL) < 0,
		   "a receive context sends");
	side_check(s, fi_write(m->rx[0], mem, 8, NULL, m->peer, 0, 0, NULL) < 0,
		   "a receive context writes");
	side_check(s, fi_send(m->sep, mem, 8, NULL, m->peer, NULL) < 0,
		   "it sends itself");
	side_check(s, fi_recv(m->sep, mem, 8, NULL, FI_ADDR_UNSPEC, NULL) < 0,
		   "it receives itself");
	side_check(s, fi_scalable_ep_bind(m->sep, &m->cq[0]->fid, FI_RECV) < 0,
		   "it has no queue");
	side_check(s,
		   fi_setname(&m->sep->fid, m->name, sizeof(struct sockaddr_in)) ==
			   -FI_EOPBADSTATE,
		   "a new name");
	for (int i = CTX; i < 1 << BITS; i++) /* nobody there, but not here to know */
		side_check(s,
			   fi_send(m->tx[0], mem, 0, NULL, fi_rx_addr(m->peer, i, BITS),
				   NULL) == 0,
			   "a context that never comes");
}

static void refuse_run(struct side *s)
{
	struct many m;

	many_start(s, &m);
	if (s->role == 0) {
		refuse_open(s, &m);
		refuse_contexts(s, &m);
	}
	side_meet(s);
	many_close(s, &m);
}

static bool wire_is_uet(void)
{
	const char *wire = getenv("FI_WEFT_WIRE");

	return test_is_weft() && wire && strcmp(wire, "uet") == 0;
}

/* What isn't there isn't announced. */
static void expect_none(void)
{
	struct fi_info *hints = node_hints(&want_all), *info = NULL;
	int rc;

	hints->ep_attr->tx_ctx_cnt = CTX;
	hints->ep_attr->rx_ctx_cnt = CTX;
	rc = fi_getinfo(API_VERSION, "127.0.0.1", NULL, FI_SOURCE, hints, &info);
	if (rc != -FI_ENODATA)
		tap_bail("the uet wire announces contexts that it hasn't: %s",
			 fi_strerror(-rc));
	fi_freeinfo(hints);
}

int main(int argc, char **argv)
{
	struct test_case cases[] = {
		{.name = "each to each", .run = {all_run, all_run}},
		{.name = "late", .run = {late_one, late_other}},
		{.name = "remote memory", .run = {window_own, window_use}},
		{.name = "an ordinary endpoint", .run = {plain_many, plain_one}},
		{.name = "threads", .run = {threads_run, threads_run}},
		{.name = "the peer dies", .run = {death_see, death_wait}, .killed = true},
		{.name = "refused", .run = {refuse_run, refuse_run}, .needs_weft = true},
	};

	test_init(argc, argv);
	if (wire_is_uet()) {
		expect_none();
		for (size_t i = 0; i < ARRAY_LEN(cases); i++)
			cases[i].skip =
				"the uet wire has no endpoints with several contexts";
	}
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
