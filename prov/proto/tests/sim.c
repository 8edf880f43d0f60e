/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "prov/proto/tests/sim.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/keytab.h"
#include "prov/proto/atomic_op.h"
#include "prov/proto/small.h"
#include "prov/wire/joined.h"
#include "util/tap.h"

static void complain(struct sim *s, const struct sim_op *op, const char *what)
{
	if (s->bad++ < 10) {
		tap_diag("operation %d (kind %d, endpoint %d, peer %d, %zu bytes, tag "
			 "%" PRIx64 ", flags %x): %s; err %d, len %zu, id %" PRIx64,
			 (int)(op - s->ops), op->kind, op->ep, op->to, op->len, op->tag,
			 op->flags, what, op->err, op->got_len, op->got_id);
	}
}

/* One message of a multi-receive buffer. Its sender's entry counts who received it. */
static void multi_done(struct sim *s, struct sim_op *op, const struct proto_done *d)
{
	struct sim_op *m =
		d->data && d->data <= (uint64_t)s->op_count ? &s->ops[d->data - 1] : NULL;
	char *at = d->buf;

	if (op->done) {
		complain(s, op, "a message after the release");
	}
	if (!d->err) {
		if (!m || m->kind != SIM_SEND || m->len != d->len || at < op->buf ||
		    at + d->len > op->buf + op->len ||
		    !sim_is_pattern(at, d->len, m->id)) {
			complain(s, op, "wrong message in a multi-receive buffer");
		} else {
			m->messages++;
			op->messages++;
			op->used += d->len;
		}
	}
	if (d->flags & FI_MULTI_RECV) {
		op->done++;
		op->err = d->err;
		s->open--;
	}
}

static void done(struct sim_ep *e, const struct proto_done *d, bool rx)
{
	struct sim *s = e->sim;
	struct sim_op *op = d->context;

	if (op < s->ops || op >= s->ops + s->op_count) {
		tap_diag("completion with unknown context");
		s->bad++;
		return;
	}
	if (rx != (op->kind == SIM_RECV) || op->ep != e->index) {
		complain(s, op, "completed on the wrong side");
	}
	if (op->flags & PROTO_MULTI) {
		multi_done(s, op, d);
		return;
	}
	if (op->done++) {
		complain(s, op, "completed twice");
		return;
	}
	s->open--;
	op->err = d->err;
	op->got_len = d->len;
	op->olen = d->olen;
	op->got_id = d->data;
	if (op->kind == SIM_RECV && d->len >= 8 && !(d->flags & FI_REMOTE_CQ_DATA)) {
		for (int i = 0; i < 8; i++) {
			op->got_id |= (uint64_t)(uint8_t)op->buf[i] << (8 * i);
		}
	}
	op->done_at = s->net.now;
	if (s->on_done) {
		s->on_done(s, op);
	}
	if (d->err && d->err != FI_ETRUNC && op->buf) {
		/* Rule D3: from here on the memory is the caller's. */
		memset(op->buf, 0xee, op->len);
	}
}

static void tx_done(void *arg, const struct proto_done *d)
{
	done(arg, d, false);
}

static void rx_done(void *arg, const struct proto_done *d)
{
	done(arg, d, true);
}

static void rx_ok(void *arg, void *context, uint64_t flags, size_t len, uint64_t tag,
		  uint64_t src)
{
	struct proto_done d = {.context = context,
			       .flags = flags,
			       .len = len,
			       .tag = tag,
			       .source = src,
			       .report = true};

	done(arg, &d, true);
}

static void rx_ok_data(void *arg, void *context, uint64_t flags, size_t len, uint64_t tag,
		       uint64_t src, uint64_t data)
{
	struct proto_done d = {.context = context,
			       .flags = flags,
			       .len = len,
			       .data = data,
			       .tag = tag,
			       .source = src,
			       .report = true};

	done(arg, &d, true);
}

static void remote_done(void *arg, const struct proto_done *d)
{
	struct sim_ep *e = arg;

	if (d->flags & FI_ATOMIC) {
		e->atomics++;
	}
	if (d->report) {
		e->remote_events++;
		e->remote_bytes += d->len;
		if (e->sim->on_remote) {
			e->sim->on_remote(e, d);
		}
	}
}

static void remote_count(void *arg, uint64_t key, uint32_t count, bool read, bool ep,
			 bool region)
{
	struct sim_ep *e = arg;

	(void)key;
	(void)read;
	e->counted += ep ? count : 0;
	e->counted_regions += region ? count : 0;
}

static uint64_t source(void *arg, const struct wire_addr *addr)
{
	struct sim_ep *e = arg;

	for (int i = 0; i < e->sim->ep_count; i++) {
		if (wire_addr_equal(&e->sim->eps[i].addr, addr)) {
			return i;
		}
	}
	return FI_ADDR_NOTAVAIL;
}

static uint64_t now(void *arg)
{
	return ((struct sim_ep *)arg)->sim->net.now;
}

static const struct proto_up up = {
	.tx_done = tx_done,
	.rx_done = rx_done,
	.rx_ok = rx_ok,
	.rx_ok_data = rx_ok_data,
	.remote_done = remote_done,
	.remote_count = remote_count,
	.source = source,
	.now = now,
};

/* Known to the wire, or to both. */
static void region_add(const struct proto_ep *ep, const struct mock_region *r)
{
	struct wire_ep *wep = proto_wire_ep(ep);

	if (wire_ep_base(wep)->ops != &joined_wire_ops) {
		mock_region_add(wep, r);
		return;
	}
	mock_region_add(joined_near(wep), r);
	mock_region_add(joined_far(wep), r);
}

void sim_ep_open(struct sim *s, int index)
{
	struct sim_ep *e = &s->eps[index];
	struct proto_attr attr = s->attr;
	struct mock_region r = {0};

	mock_net = &s->net;
	attr.addr = e->addr;
	attr.incarnation = ++s->incarnation;
	attr.arg = e;
	attr.keys = e->keys;
	if (proto_ep_open(&attr, &e->ep) || proto_enable(e->ep)) {
		tap_bail("endpoint %d does not open", index);
	}
	r.key = 1;
	r.base = e->region;
	r.len = SIM_REGION;
	r.access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	region_add(e->ep, &r);
	r.key = 2;
	r.access = FI_REMOTE_READ;
	region_add(e->ep, &r);
}

/* The keys that the mock wire knows, where the engine looks for them. */
static void keys_open(struct sim_ep *e)
{
	struct mem_region r = {.iov = {{e->region, SIM_REGION}}, .iov_count = 1};

	r.access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	if (mem_keytab_open(64, &e->keys) || mem_keytab_insert_at(e->keys, &r, 1)) {
		tap_bail("no keys");
	}
	r.access = FI_REMOTE_READ;
	if (mem_keytab_insert_at(e->keys, &r, 2)) {
		tap_bail("no key");
	}
}

void sim_init(struct sim *s, uint64_t seed, int eps)
{
	memset(s, 0, sizeof(*s));
	s->net.random = seed;
	s->net.now = 1;
	s->net.ring = 16;
	s->net.max_delay = 1000;
	s->net.caps = mock_wire.caps;
	s->net.caps.raw = true;
	s->ops = calloc(SIM_OPS, sizeof(*s->ops));
	s->attr = (struct proto_attr){.wire = &mock_wire,
				      .up = &up,
				      .tx_size = 64,
				      .rx_size = 64,
				      .tx_max = 64,
				      .rx_max = 64,
				      .inject_size = 256,
				      .eager_size = 2048,
				      .bulk_size = 4096,
				      .joint_size = 4096,
				      .connect_timeout = 10000000000ULL,
				      .unexpected_max = 1 << 20,
				      .order_rma = true,
				      .order_atomic = true,
				      .atomics = true,
				      .atomic_access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				      .order_msg_after_rma = true};
	s->ep_count = eps;
	for (int i = 0; i < eps; i++) {
		struct sim_ep *e = &s->eps[i];

		e->sim = s;
		e->index = i;
		e->addr.in.sin_family = AF_INET;
		e->addr.in.sin_port = htons(1000 + i);
		e->addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		e->region = aligned_alloc(64, SIM_REGION);
		memset(e->region, 0, SIM_REGION);
		keys_open(e);
	}
	for (int i = 0; i < eps; i++) {
		sim_ep_open(s, i);
	}
}

void sim_fini(struct sim *s)
{
	for (int i = 0; i < s->ep_count; i++) {
		if (s->eps[i].ep) {
			proto_ep_close(s->eps[i].ep);
		}
	}
	for (int i = 0; i < s->ep_count; i++) {
		free(s->eps[i].region);
		mem_keytab_close(s->eps[i].keys);
	}
	for (int i = 0; i < s->op_count; i++) {
		free(s->ops[i].buf);
	}
	free(s->ops);
}

void sim_step(struct sim *s, uint64_t ns)
{
	s->net.now += ns;
	for (int i = 0; i < s->ep_count; i++) {
		if (s->eps[i].ep && !s->eps[i].paused) {
			proto_progress(s->eps[i].ep);
		}
	}
}

bool sim_settle(struct sim *s)
{
	int quiet = 0, idle = 0;

	for (int step = 0; step < 100000 && quiet < 200; step++) {
		int moved = 0;

		s->net.now += s->net.max_delay / 4 + 1;
		for (int i = 0; i < s->ep_count; i++) {
			if (s->eps[i].ep && !s->eps[i].paused) {
				moved += proto_progress(s->eps[i].ep);
			}
		}
		idle = moved ? 0 : idle + 1;
		/* Nothing is on its way any more: a jump to what is due. */
		if (idle > 5) {
			uint64_t due = UINT64_MAX;

			for (int i = 0; i < s->ep_count; i++) {
				uint64_t d = s->eps[i].ep ? proto_due(s->eps[i].ep)
							  : UINT64_MAX;

				due = d < due ? d : due;
			}
			if (due != UINT64_MAX && due > s->net.now) {
				s->net.now = due;
			}
			quiet += due == UINT64_MAX;
		} else if (moved) {
			quiet = 0;
		}
	}
	return quiet >= 200;
}

struct proto_peer *sim_peer(struct sim *s, int ep, int to)
{
	struct proto_peer *pp = proto_mapped(s->eps[ep].ep, to);

	if (s->other_name && ep == 0 && to == 1) {
		return s->other_name;
	}

	return pp ? pp : proto_map(s->eps[ep].ep, to, &s->eps[to].addr);
}

/* Long ones begin with their id, for messages without remote data. */
static char pattern_byte(size_t i, size_t len, uint64_t id)
{
	if (len >= sizeof(id) && i < sizeof(id)) {
		return (char)(id >> (8 * i));
	}
	return (char)(id * 131 + i * 7 + (i >> 8));
}

void sim_pattern(char *buf, size_t len, uint64_t id)
{
	for (size_t i = 0; i < len; i++) {
		buf[i] = pattern_byte(i, len, id);
	}
}

bool sim_is_part(const char *buf, size_t len, size_t whole, uint64_t id)
{
	for (size_t i = 0; i < len; i++) {
		if (buf[i] != pattern_byte(i, whole, id)) {
			return false;
		}
	}
	return true;
}

static struct sim_op *op_new(struct sim *s, enum sim_kind kind, int ep, int to,
			     size_t len, uint32_t flags)
{
	struct sim_op *op = &s->ops[s->op_count];

	if (s->op_count == SIM_OPS) {
		tap_bail("ledger full");
	}
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->ep = ep;
	op->to = to;
	op->len = len;
	op->flags = flags;
	op->id = s->op_count + 1;
	op->buf = malloc(len ? len : 1);
	s->op_count++;
	s->open++;
	return op;
}

static struct sim_op *posted(struct sim *s, struct sim_op *op, ssize_t ret)
{
	if (ret == 0) {
		return op;
	}
	if (ret != -FI_EAGAIN || op->done) {
		complain(s, op, "refused with something else than -FI_EAGAIN");
	}
	free(op->buf);
	s->op_count--;
	s->open--;
	return NULL;
}

/* Cuts the buffer in 1 to 4 pieces. */
static size_t cut(struct sim *s, char *buf, size_t len, struct iovec *iov)
{
	size_t count = 1 + mock_random(&s->net) % PROTO_IOV_MAX, at = 0;

	for (size_t i = 0; i < count; i++) {
		size_t here =
			i + 1 == count ? len - at : mock_random(&s->net) % (len - at + 1);

		iov[i].iov_base = buf + at;
		iov[i].iov_len = here;
		at += here;
	}
	return count;
}

/* Every other one that it is made for is tried by the frequent way. */
static bool send_small(struct sim *s, struct sim_op *op, const struct proto_msg *m)
{
	struct sim_ep *e = &s->eps[op->ep];
	struct proto_done d = {.context = op};
	uint32_t kind = m->flags & (PROTO_TAGGED | PROTO_DATA);
	struct proto_peer *pp;
	bool any;

	if (m->count != 1 || (m->flags & ~(PROTO_TAGGED | PROTO_DATA | PROTO_REPORT)) ||
	    mock_chance(&s->net, 50)) {
		return false;
	}
	sim_peer(s, op->ep, op->to); /* makes the mapping */
	any = mock_chance(&s->net, 50);
	pp = proto_small_open(e->ep, op->to, m->len, kind, any);
	if (!pp) {
		return false;
	}
	proto_small_write(pp, m->iov[0].iov_base, m->len, m->tag, m->data, kind, any);
	proto_small_commit(pp, m->len, kind);
	s->small_sent++;
	done(e, &d, false);
	return true;
}

static bool recv_small(struct sim *s, struct sim_op *op, const struct proto_recv *r)
{
	if (r->count != 1 || (r->flags & PROTO_MULTI) || !(r->flags & PROTO_REPORT) ||
	    mock_chance(&s->net, 50)) {
		return false;
	}
	if (r->ignore || r->source) {
		if (!proto_small_recv_special(s->eps[op->ep].ep, r->iov[0].iov_base,
					      r->iov[0].iov_len, r->source, r->tag,
					      r->ignore, r->context, r->flags)) {
			return false;
		}
		s->small_special++;
	} else if (!proto_small_recv(s->eps[op->ep].ep, r->iov[0].iov_base,
				     r->iov[0].iov_len, r->tag, r->context, r->flags)) {
		return false;
	}
	s->small_received++;
	return true;
}

struct sim_op *sim_send(struct sim *s, int ep, int to, size_t len, uint64_t tag,
			uint32_t flags)
{
	struct sim_op *op = op_new(s, SIM_SEND, ep, to, len, flags);
	struct iovec iov[PROTO_IOV_MAX];
	struct proto_msg m = {.iov = iov,
			      .len = len,
			      .tag = tag,
			      .data = op->id,
			      .context = op,
			      .flags = flags};
	ssize_t ret;

	op->tag = tag;
	sim_pattern(op->buf, len, op->id);
	m.count = cut(s, op->buf, len, iov);
	if (send_small(s, op, &m)) {
		return posted(s, op, 0);
	}
	ret = proto_send(s->eps[ep].ep, sim_peer(s, ep, to), &m);
	if (flags & PROTO_INJECT) {
		memset(op->buf, 0xdd, len);
	}
	return posted(s, op, ret);
}

struct sim_op *sim_recv(struct sim *s, int ep, int from, size_t len, uint64_t tag,
			uint64_t ignore, uint32_t flags)
{
	struct sim_op *op = op_new(s, SIM_RECV, ep, from, len, flags);
	struct iovec iov[PROTO_IOV_MAX];
	struct proto_recv r = {.iov = iov,
			       .tag = tag,
			       .ignore = ignore,
			       .context = op,
			       .flags = flags,
			       .source = from < 0 ? NULL : sim_peer(s, ep, from)};

	op->tag = tag;
	op->ignore = ignore;
	memset(op->buf, 0x55, len);
	if (flags & PROTO_MULTI) {
		iov[0] = (struct iovec){op->buf, len};
		r.count = 1;
	} else {
		r.count = cut(s, op->buf, len, iov);
	}
	if (recv_small(s, op, &r)) {
		return posted(s, op, 0);
	}
	return posted(s, op, proto_recv(s->eps[ep].ep, &r));
}

static bool rma_now(struct sim *s, struct sim_op *op, const struct proto_rma *r)
{
	const struct proto_rma_iov *remote = r->remote;
	struct sim_ep *e = &s->eps[op->ep];
	struct proto_done d = {.context = op};
	struct proto_peer *pp;
	bool good;

	if ((r->flags & PROTO_FENCE) || mock_chance(&s->net, 50)) {
		return false;
	}
	sim_peer(s, op->ep, op->to); /* makes the mapping */
	pp = proto_now_open(e->ep, op->to, r->len);
	if (!pp || ((r->flags & PROTO_DATA) && !proto_now_has_room(pp))) {
		return false;
	}
	good = op->kind == SIM_WRITE
		       ? proto_now_put(pp, remote->key, remote->addr, op->buf, r->len)
		       : proto_now_get(pp, remote->key, remote->addr, op->buf, r->len);
	if (!good) {
		return false;
	}
	if (r->flags & PROTO_DATA) {
		proto_now_event(pp, r->data, r->len);
	}
	s->moved_now++;
	done(e, &d, false);
	return true;
}

struct sim_op *sim_rma(struct sim *s, int ep, int to, size_t len, uint64_t off,
		       uint64_t key, uint32_t flags)
{
	struct sim_op *op = op_new(s, (flags & PROTO_WRITE) ? SIM_WRITE : SIM_READ, ep,
				   to, len, flags);
	struct iovec iov[PROTO_IOV_MAX];
	struct proto_rma_iov remote[2] = {{off, len / 3, key},
					  {off + len / 3, len - len / 3, key}};
	struct proto_rma r = {.iov = iov,
			      .remote = remote,
			      .remote_count = s->one_piece ? 1 : 2,
			      .len = len,
			      .data = op->id,
			      .context = op,
			      .flags = flags};
	ssize_t ret;

	if (s->one_piece) {
		remote[0].len = len;
	}
	op->remote_off = off;
	sim_pattern(op->buf, len, op->id);
	r.count = cut(s, op->buf, len, iov);
	if (rma_now(s, op, &r)) {
		return posted(s, op, 0);
	}
	ret = proto_rma(s->eps[ep].ep, sim_peer(s, ep, to), &r);
	if (flags & PROTO_INJECT) {
		memset(op->buf, 0xdd, len);
	}
	return posted(s, op, ret);
}

/* The same between elements. */
static size_t cut_words(struct sim *s, uint64_t *words, size_t count, struct iovec *iov)
{
	size_t pieces = 1 + mock_random(&s->net) % PROTO_IOV_MAX, at = 0;

	for (size_t i = 0; i < pieces; i++) {
		size_t here = i + 1 == pieces ? count - at
					      : mock_random(&s->net) % (count - at + 1);

		iov[i].iov_base = words + at;
		iov[i].iov_len = here * sizeof(*words);
		at += here;
	}
	return pieces;
}

/* The target memory in as many pieces as the address is cut in. */
static size_t cut_remote(struct sim *s, const struct sim_atomic *a,
			 struct proto_rma_iov *remote)
{
	struct iovec iov[PROTO_IOV_MAX];
	size_t count = cut_words(s, (uint64_t *)(uintptr_t)a->off, a->count, iov);

	for (size_t i = 0; i < count; i++) {
		remote[i].addr = (uintptr_t)iov[i].iov_base;
		remote[i].len = iov[i].iov_len;
		remote[i].key = a->key;
	}
	return count;
}

struct sim_op *sim_atomic(struct sim *s, int ep, int to, const struct sim_atomic *a)
{
	struct sim_op *op = op_new(s, SIM_ATOMIC, ep, to, 3 * a->count * 8, a->flags);
	uint64_t *words = (uint64_t *)(void *)op->buf;
	struct iovec iov[3][PROTO_IOV_MAX];
	struct proto_rma_iov remote[PROTO_IOV_MAX];
	struct proto_atomic p = {.mode = (uint8_t)a->mode,
				 .op = (uint8_t)a->op,
				 .type = FI_UINT64,
				 .remote = remote,
				 .len = a->count * 8,
				 .data = op->id,
				 .context = op,
				 .flags = a->flags};
	ssize_t ret;

	memset(op->buf, 0x55, op->len);
	op->result = words;
	for (size_t i = 0; i < a->count; i++) {
		words[a->count + i] = a->arg + i;
		words[2 * a->count + i] = a->cmp + i;
	}
	p.remote_count = cut_remote(s, a, remote);
	if (a->mode != ATOMIC_BASE) {
		p.result = iov[0];
		p.result_count = cut_words(s, words, a->count, iov[0]);
	}
	if (a->op != FI_ATOMIC_READ) {
		p.iov = iov[1];
		p.count = cut_words(s, words + a->count, a->count, iov[1]);
	}
	if (a->mode == ATOMIC_COMPARE) {
		p.compare = iov[2];
		p.compare_count = cut_words(s, words + 2 * a->count, a->count, iov[2]);
	}
	op->remote_off = a->off;
	ret = proto_atomic(s->eps[ep].ep, sim_peer(s, ep, to), &p);
	if (a->flags & PROTO_INJECT) {
		memset(words + a->count, 0xdd, 2 * a->count * 8);
	}
	return posted(s, op, ret);
}

void sim_cancel_all(struct sim *s)
{
	for (int i = 0; i < s->op_count; i++) {
		struct sim_op *op = &s->ops[i];

		if (op->kind == SIM_RECV && !op->done && s->eps[op->ep].ep) {
			proto_cancel(s->eps[op->ep].ep, op);
		}
	}
}

static bool fits(const struct sim_op *r, const struct sim_op *m)
{
	return (r->to < 0 || r->to == m->ep) && ((r->tag ^ m->tag) & ~r->ignore) == 0;
}

static void check_recv(struct sim *s, const struct sim_op *r)
{
	const struct sim_op *m;

	if (r->err && r->err != FI_ETRUNC) {
		for (size_t i = 0; i < r->len; i++) {
			if ((unsigned char)r->buf[i] != 0xee) {
				complain(s, r, "D3: written after it completed in error");
				break;
			}
		}
		return;
	}
	m = &s->ops[r->got_id - 1];
	if (r->got_id == 0 || r->got_id > (uint64_t)s->op_count || m->kind != SIM_SEND ||
	    m->to != r->ep || ((m->flags ^ r->flags) & PROTO_TAGGED) || !fits(r, m)) {
		complain(s, r, "got a message that it doesn't fit");
		return;
	}
	if (r->got_len != (m->len < r->len ? m->len : r->len) ||
	    (r->err == FI_ETRUNC) != (m->len > r->len) ||
	    r->olen != (m->len > r->len ? m->len - r->len : 0)) {
		complain(s, r, "wrong length or truncation");
	}
	if (!sim_is_part(r->buf, r->got_len, m->len, m->id)) {
		complain(s, r, "wrong bytes");
	}
}

/* Two messages of one sender and two receives must not cross (send after send). */
static void check_order(struct sim *s, const struct sim_op *r1)
{
	const struct sim_op *m2 = &s->ops[r1->got_id - 1];

	for (const struct sim_op *r2 = r1 + 1; r2 < s->ops + s->op_count; r2++) {
		const struct sim_op *m1;

		if (r2->kind != SIM_RECV || r2->ep != r1->ep || !r2->done ||
		    (r2->err && r2->err != FI_ETRUNC) ||
		    ((r1->flags ^ r2->flags) & PROTO_TAGGED)) {
			continue;
		}
		m1 = &s->ops[r2->got_id - 1];
		if (m1 < m2 && m1->ep == m2->ep && fits(r1, m1)) {
			complain(s, r1,
				 "order: took a later message than the next receive");
		}
	}
}

void sim_check(struct sim *s)
{
	for (int i = 0; i < s->op_count; i++) {
		struct sim_op *op = &s->ops[i];

		if (op->done != 1) {
			complain(s, op, "did not complete");
			continue;
		}
		if (op->kind != SIM_RECV || (op->flags & PROTO_MULTI)) {
			continue;
		}
		check_recv(s, op);
		if (!s->bad && (!op->err || op->err == FI_ETRUNC)) {
			check_order(s, op);
		}
	}
}

bool sim_storm(struct sim *s, int steps, uint32_t kills)
{
	const uint32_t recv_flags = PROTO_TAGGED | PROTO_REPORT;
	bool good;

	for (int i = 0; i < steps; i++) {
		int a = (int)(mock_random(&s->net) % (uint64_t)s->ep_count);
		int b = (int)(mock_random(&s->net) % (uint64_t)s->ep_count);

		if (mock_chance(&s->net, 30)) {
			sim_send(s, a, b, mock_random(&s->net) % 400000, 1,
				 recv_flags | PROTO_DATA);
			sim_recv(s, b, a, mock_random(&s->net) % 500000, 1, 0,
				 recv_flags);
		} else if (mock_chance(&s->net, 10)) {
			s->eps[a].paused = !s->eps[a].paused;
		} else if (mock_chance(&s->net, kills)) {
			mock_kill_pair(&s->net);
		} else {
			sim_step(s, mock_random(&s->net) % 40000);
		}
	}
	for (int e = 0; e < s->ep_count; e++) {
		s->eps[e].paused = false;
	}
	good = sim_settle(s);
	/* What has no receive any more gets one. */
	for (int round = 0; round < 60 && s->open; round++) {
		for (int e = 0; e < s->ep_count; e++) {
			sim_recv(s, e, -1, 500000, 0, ~0ULL, recv_flags);
		}
		good &= sim_settle(s);
	}
	sim_cancel_all(s);
	return sim_settle(s) && good;
}
