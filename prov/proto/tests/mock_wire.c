/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "prov/proto/tests/mock_link.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

struct mock_net *mock_net;

uint64_t mock_random(struct mock_net *net)
{
	uint64_t z = (net->random += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

bool mock_chance(struct mock_net *net, uint32_t percent)
{
	return mock_random(net) % 100 < percent;
}

uint64_t mock_later(struct mock_net *net)
{
	return net->now + (net->max_delay ? mock_random(net) % net->max_delay : 0);
}

static int ep_open(const struct wire_ep_attr *attr, struct wire_ep **out)
{
	struct mock_ep *ep = calloc(1, sizeof(*ep));
	int slot = -1;

	for (int i = 0; i < MOCK_EPS; i++) {
		if (mock_net->eps[i] &&
		    wire_addr_equal(&wire_ep_base(mock_net->eps[i])->addr, &attr->addr)) {
			free(ep);
			return -FI_EADDRINUSE;
		}
		if (!mock_net->eps[i] && slot < 0) {
			slot = i;
		}
	}
	ep->base.ops = mock_net->ops ? mock_net->ops : &mock_wire;
	ep->base.addr = attr->addr;
	ep->net = mock_net;
	ep->attr = *attr;
	list_init(&ep->links);
	list_init(&ep->mems);
	for (int i = 0; i < MOCK_SLOTS; i++) {
		ep->slots[i].bytes = malloc(MOCK_SLOT_SIZE);
	}
	mock_net->eps[slot] = (struct wire_ep *)ep;
	*out = (struct wire_ep *)ep;
	return 0;
}

static struct mock_link *link_new(struct mock_ep *ep, const struct wire_addr *to,
				  enum mock_state state)
{
	struct mock_link *l = calloc(1, sizeof(*l));

	l->base.ops = ep->base.ops;
	l->base.ep = (struct wire_ep *)ep;
	l->base.peer = *to;
	l->base.caps = ep->net->caps;
	l->ep = ep;
	l->state = state;
	l->slot.room = -1;
	l->base.slot = &l->slot;
	list_init(&l->in);
	list_init(&l->segs);
	list_init(&l->notes);
	list_push_back(&ep->links, &l->node);
	return l;
}

static void link_free(struct mock_link *l)
{
	struct list *n;

	if (l->other) {
		l->other->other = NULL;
	}
	while ((n = list_pop_front(&l->in))) {
		free(container_of(n, struct mock_pkt, node));
	}
	while ((n = list_pop_front(&l->segs))) {
		free(container_of(n, struct mock_seg, node));
	}
	mock_notes_drop(l);
	free(l->reserved);
	free(l->offered);
	list_remove(&l->node);
	free(l);
}

static void link_die(struct mock_link *l, int err)
{
	if (l && !l->dying) {
		l->dying = err;
	}
}

static void ep_close(struct wire_ep *wep)
{
	struct mock_ep *ep = ep_of(wep);

	for (int i = 0; i < MOCK_EPS; i++) {
		if (ep->net->eps[i] == wep) {
			ep->net->eps[i] = NULL;
		}
	}
	/* As the real one does it, which waits for who is in the middle of it. */
	for (int i = 0; i < MOCK_CELLS; i++) {
		if (ep->net->cells[i].owner == wep) {
			mock_pushes_drop(ep->net, (uint32_t)i);
			ep->net->cells[i].owner = NULL;
		}
	}
	while (!list_empty(&ep->links)) {
		struct mock_link *l =
			container_of(ep->links.next, struct mock_link, node);

		link_die(l->other, -FI_ESHUTDOWN);
		link_free(l);
	}
	for (int i = 0; i < MOCK_SLOTS; i++) {
		free(ep->slots[i].bytes);
	}
	while (!list_empty(&ep->mems)) {
		struct mock_mem *m = container_of(ep->mems.next, struct mock_mem, node);

		if (!m->dropped) {
			abort(); /* it is dropped before the endpoint closes */
		}
		list_remove(&m->node);
		free(m);
	}
	free(ep);
}

static int dial(struct wire_ep *wep, const struct wire_addr *to, void *ctx,
		struct wire_link **link)
{
	struct mock_ep *ep = ep_of(wep);
	struct mock_link *l;

	if (mock_chance(ep->net, ep->net->refuse_dial)) {
		return -FI_ECONNREFUSED;
	}
	l = link_new(ep, to, MOCK_DIALLING);
	l->base.peer_ctx = ctx;
	l->due = mock_later(ep->net);
	*link = (struct wire_link *)l;
	return 0;
}

static void hangup(struct wire_link *link)
{
	struct mock_link *l = link_of(link);

	link_die(l->other, -FI_ECONNRESET);
	link_free(l);
}

/* Bytes of a slot: enough for most small packets. */
#define MOCK_SLOT 256

static bool pkt_fits(struct mock_link *l, uint32_t room)
{
	return !mock_chance(l->ep->net, l->ep->net->refuse_room) &&
	       !(l->other && l->other->in_count >= room);
}

/* After each packet: the next one's place, or none. */
static void slot_offer(struct mock_link *l)
{
	free(l->offered);
	l->offered = NULL;
	l->slot.room = -1;
	if (l->state != MOCK_UP || !pkt_fits(l, l->ep->net->ring * 3 / 4)) {
		return;
	}
	l->offered = malloc(sizeof(struct mock_pkt) + MOCK_SLOT);
	l->offered->len = MOCK_SLOT;
	l->slot.at = l->offered->bytes;
	l->slot.room = MOCK_SLOT;
}

static void *pkt_reserve(struct wire_link *link, size_t len, enum wire_class cls)
{
	struct mock_link *l = link_of(link);
	uint32_t room = l->ep->net->ring;

	if (len > l->base.caps.max_packet) {
		abort(); /* a caller's mistake, not a peer's */
	}
	free(l->reserved);
	l->reserved = NULL;
	if (cls == WIRE_DATA) {
		room = room * 3 / 4;
	}
	if (!pkt_fits(l, room)) {
		return NULL;
	}
	l->reserved = malloc(sizeof(struct mock_pkt) + len);
	l->reserved->len = len;
	return l->reserved->bytes;
}

static void queue_pkt(struct mock_link *to, struct mock_pkt *p)
{
	p->due = mock_later(to->ep->net);
	if (p->due < to->last_due) {
		p->due = to->last_due;
	}
	to->last_due = p->due;
	to->in_count++;
	to->ep->net->packets++;
	list_push_back(&to->in, &p->node);
}

static void pkt_commit(struct wire_link *link, void *pkt, size_t len)
{
	struct mock_link *l = link_of(link);
	struct mock_pkt *p = l->reserved;

	if (l->offered && pkt == l->offered->bytes) {
		p = l->offered;
		l->offered = NULL;
	} else {
		l->reserved = NULL;
	}
	if (!p || pkt != p->bytes || len > p->len) {
		abort();
	}
	p->len = len;
	if (l->other && !l->other->dying) {
		queue_pkt(l->other, p);
	} else {
		free(p);
	}
	slot_offer(l);
}

void mock_inject(struct wire_link *link, const void *pkt, size_t len)
{
	struct mock_pkt *p = malloc(sizeof(*p) + len);

	p->len = len;
	memcpy(p->bytes, pkt, len);
	queue_pkt(link_of(link), p);
}

static int mem_add(struct wire_ep *wep, void *start, size_t len, void **handle)
{
	struct mock_ep *ep = ep_of(wep);
	struct mock_mem *m;

	if (((uintptr_t)start | len) & 4095) {
		abort();
	}
	if (mock_chance(ep->net, ep->net->refuse_mem)) {
		return -FI_ENOMEM;
	}
	m = calloc(1, sizeof(*m));
	m->start = start;
	m->len = len;
	m->name = mock_random(ep->net) | 1;
	list_push_back(&ep->mems, &m->node);
	ep->net->mems++;
	*handle = m;
	return 0;
}

static void mem_drop(struct wire_ep *wep, void *handle)
{
	struct mock_mem *m = handle;

	if (m->dropped) {
		abort();
	}
	m->dropped = true;
	ep_of(wep)->net->mems_dropped++;
}

static uint64_t mem_name(struct wire_ep *wep, void *handle)
{
	const struct mock_mem *m = handle;

	(void)wep;
	if (m->dropped) {
		abort();
	}
	return m->name;
}

void mock_check_local(const struct mock_link *l, const struct wire_segment *seg)
{
	for (size_t i = 0; l->base.caps.local && i < seg->local_count; i++) {
		const struct mock_mem *m = seg->handles[i];
		const char *at = seg->local[i].iov_base;

		if (!m || m->dropped || at < m->start ||
		    at + seg->local[i].iov_len > m->start + m->len) {
			abort();
		}
	}
}

/* Memory of the peer that it announced by name. */
static char *resolve_named(struct mock_ep *target, const struct wire_segment *seg,
			   int *err)
{
	char *at = (char *)(uintptr_t)seg->remote.addr;

	*err = -FI_ENOKEY;
	if (!target) {
		return NULL;
	}
	list_foreach (n, &target->mems) {
		const struct mock_mem *m = container_of(n, struct mock_mem, node);

		if (m->name != seg->remote.key) {
			continue;
		}
		if (at < m->start || at + seg->len > m->start + m->len) {
			abort(); /* the engine announced what isn't registered */
		}
		if (m->dropped) {
			target->net->named_late++;
			return NULL;
		}
		target->net->named++;
		return at;
	}
	return NULL;
}

char *mock_resolve(struct mock_link *l, const struct wire_segment *seg, bool put,
		   int *err)
{
	struct mock_ep *target = l->other ? l->other->ep : NULL;

	if (seg->remote.raw) {
		*err = -FI_EACCES;
		if (l->ep->net->raw_refused) {
			return NULL;
		}
		return l->base.caps.local || l->base.caps.lends
			       ? resolve_named(target, seg, err)
			       : (char *)(uintptr_t)seg->remote.addr;
	}
	*err = -FI_ENOKEY;
	for (int i = 0; target && i < target->region_count; i++) {
		const struct mock_region *r = &target->regions[i];

		if (r->key != seg->remote.key) {
			continue;
		}
		if (!(r->access & (put ? FI_REMOTE_WRITE : FI_REMOTE_READ))) {
			*err = -FI_EACCES;
			return NULL;
		}
		if (seg->remote.addr > r->len || seg->len > r->len - seg->remote.addr) {
			*err = -FI_EINVAL;
			return NULL;
		}
		return r->base + seg->remote.addr;
	}
	return NULL;
}

void mock_move(const struct wire_segment *seg, char *at, bool put)
{
	for (size_t i = 0; i < seg->local_count; i++) {
		if (put) {
			memcpy(at, seg->local[i].iov_base, seg->local[i].iov_len);
		} else {
			memcpy(seg->local[i].iov_base, at, seg->local[i].iov_len);
		}
		at += seg->local[i].iov_len;
	}
}

static int segment(struct wire_link *link, const struct wire_segment *seg, bool put)
{
	struct mock_link *l = link_of(link);
	size_t sum = 0;
	struct mock_seg *s;
	char *at;
	int err;

	for (size_t i = 0; i < seg->local_count; i++) {
		sum += seg->local[i].iov_len;
	}
	if (sum != seg->len || seg->len > l->base.caps.max_segment || seg->len == 0) {
		abort();
	}
	mock_check_local(l, seg);
	if (!l->pushing && mock_chance(l->ep->net, l->ep->net->refuse_segment)) {
		return -FI_EAGAIN;
	}
	if (l->dying) {
		return -FI_ECONNRESET;
	}
	at = mock_resolve(l, seg, put, &err);
	if (!at) {
		return err;
	}
	if (l->holding && seg->remote.raw && put) {
		mock_hold(l, seg, at);
		return 1;
	}
	if ((l->base.caps.joints && seg->remote.raw) ||
	    (!mock_chance(l->ep->net, l->ep->net->late_segment) &&
	     (!l->base.caps.ordered || list_empty(&l->segs)))) {
		mock_move(seg, at, put);
		return 1;
	}
	s = calloc(1, sizeof(*s));
	s->put = put;
	s->seg = *seg;
	s->due = mock_later(l->ep->net);
	memcpy(s->local, seg->local, seg->local_count * sizeof(s->local[0]));
	s->seg.local = s->local;
	if (l->base.caps.local) {
		memcpy(s->handles, seg->handles,
		       seg->local_count * sizeof(s->handles[0]));
		s->seg.handles = s->handles;
	}
	list_push_back(&l->segs, &s->node);
	return 0;
}

static int put(struct wire_link *link, const struct wire_segment *seg)
{
	return segment(link, seg, true);
}

static int get(struct wire_link *link, const struct wire_segment *seg)
{
	return segment(link, seg, false);
}

/* In the call or not at all, whatever else is under way: order is the caller's. */
static bool move_now(struct wire_link *link, uint64_t key, uint64_t addr, void *local,
		     size_t len, bool put)
{
	struct mock_link *l = link_of(link);
	struct iovec iov = {local, len};
	struct wire_segment seg = {.local = &iov,
				   .local_count = 1,
				   .remote = {.addr = addr, .key = key},
				   .len = len};
	char *at;
	int err;

	if (len == 0) {
		abort();
	}
	/* It would have to be cut, or be registered. */
	if (len > l->base.caps.max_segment || l->base.caps.local) {
		return false;
	}
	if (l->dying || mock_chance(l->ep->net, l->ep->net->refuse_segment) ||
	    mock_chance(l->ep->net, l->ep->net->late_segment)) {
		return false;
	}
	at = mock_resolve(l, &seg, put, &err);
	if (at) {
		mock_move(&seg, at, put);
	}
	return at;
}

static bool put_now(struct wire_link *link, uint64_t key, uint64_t addr, const void *from,
		    size_t len)
{
	return move_now(link, key, addr, (void *)(uintptr_t)from, len, true);
}

static bool get_now(struct wire_link *link, uint64_t key, uint64_t addr, void *to,
		    size_t len)
{
	return move_now(link, key, addr, to, len, false);
}

static int bulk_get(struct wire_ep *wep, struct wire_bulk *bulk)
{
	struct mock_ep *ep = ep_of(wep);

	if (mock_chance(ep->net, ep->net->refuse_slot)) {
		return -FI_EAGAIN;
	}
	for (uint32_t i = 0; i < MOCK_SLOTS; i++) {
		if (!ep->slots[i].taken) {
			ep->slots[i].taken = true;
			*bulk = (struct wire_bulk){.at = ep->slots[i].bytes,
						   .slot = i,
						   .turn = ++ep->slots[i].turn};
			return 0;
		}
	}
	return -FI_EAGAIN;
}

/* What is read after it was given back is wrong. */
static void bulk_put(struct wire_ep *wep, uint32_t slot)
{
	struct mock_ep *ep = ep_of(wep);

	if (slot >= MOCK_SLOTS || !ep->slots[slot].taken) {
		abort(); /* exactly once */
	}
	ep->slots[slot].taken = false;
	memset(ep->slots[slot].bytes, 0xbb, MOCK_SLOT_SIZE);
}

static const void *bulk_peer(struct wire_link *link, uint32_t slot, size_t len)
{
	struct mock_link *l = link_of(link);
	static const char gone[MOCK_SLOT_SIZE]; /* stays mapped when its owner is dead */

	if (slot >= MOCK_SLOTS || len > MOCK_SLOT_SIZE) {
		return NULL;
	}
	return l->other ? l->other->ep->slots[slot].bytes : gone;
}

static bool bulk_holds(struct wire_link *link, uint32_t slot, uint32_t turn)
{
	struct mock_link *l = link_of(link);

	return l->other && l->other->ep->slots[slot].taken &&
	       l->other->ep->slots[slot].turn == turn;
}

int mock_slots_taken(struct wire_ep *wep)
{
	int taken = 0;

	for (uint32_t i = 0; i < MOCK_SLOTS; i++) {
		taken += ep_of(wep)->slots[i].taken;
	}
	return taken;
}

static bool answers_to(const struct mock_ep *ep, const struct wire_addr *to)
{
	return wire_addr_equal(&ep->base.addr, to) ||
	       (ep->net->alias_host && to->in.sin_port == ep->base.addr.in.sin_port &&
		to->in.sin_addr.s_addr == htonl(ep->net->alias_host));
}

static int dialled(struct mock_link *l)
{
	const struct wire_events *ev = l->ep->attr.events;
	struct mock_ep *target = NULL;
	void *arg = l->ep->attr.arg;

	for (int i = 0; i < MOCK_EPS; i++) {
		struct wire_ep *e = l->ep->net->eps[i];

		if (e && answers_to(ep_of(e), &l->base.peer)) {
			target = ep_of(e);
		}
	}
	if (!target || mock_chance(l->ep->net, l->ep->net->refuse_dial)) {
		ev->link_down(arg, (struct wire_link *)l, -FI_ECONNREFUSED);
		link_free(l);
		return 1;
	}
	l->other = link_new(target, &l->ep->base.addr, MOCK_NEW);
	l->other->other = l;
	l->other->base.peer_incarnation = l->ep->attr.incarnation;
	l->base.peer_incarnation = target->attr.incarnation;
	l->base.peer = target->base.addr;
	l->state = MOCK_UP;
	ev->link_up(arg, (struct wire_link *)l);
	return 1;
}

static int segs_done(struct mock_link *l)
{
	const struct wire_events *ev = l->ep->attr.events;
	int done = 0;

	list_foreach_safe (n, next, &l->segs) {
		struct mock_seg *s = container_of(n, struct mock_seg, node);
		char *at;
		int err = -FI_ECONNRESET;

		if (s->due > l->ep->net->now && !l->dying) {
			if (l->base.caps.ordered) {
				break;
			}
			continue;
		}
		at = l->dying ? NULL : mock_resolve(l, &s->seg, s->put, &err);
		mock_check_local(l, &s->seg);
		if (at) {
			mock_move(&s->seg, at, s->put);
			err = 0;
		}
		list_remove(n);
		ev->segment_done(l->ep->attr.arg, (struct wire_link *)l, s->seg.cookie,
				 err);
		free(s);
		done++;
	}
	return done;
}

static int link_progress(struct mock_link *l, int budget)
{
	const struct wire_events *ev = l->ep->attr.events;
	void *arg = l->ep->attr.arg;
	int done = 0;

	if (l->state == MOCK_DIALLING) {
		return l->due <= l->ep->net->now ? dialled(l) : 0;
	}
	if (l->state == MOCK_NEW) {
		l->state = MOCK_UP;
		ev->link_up(arg, (struct wire_link *)l);
		done++;
	}
	while (!list_empty(&l->in) && done < budget) {
		struct mock_pkt *p = container_of(l->in.next, struct mock_pkt, node);

		if (p->due > l->ep->net->now && !l->dying) {
			break;
		}
		list_remove(&p->node);
		l->in_count--;
		ev->packet(arg, (struct wire_link *)l, p->bytes, p->len);
		free(p);
		done++;
	}
	done += segs_done(l);
	done += mock_notes_sent(l) + mock_notes_heard(l);
	if (l->dying && list_empty(&l->in)) {
		ev->link_down(arg, (struct wire_link *)l, l->dying);
		link_free(l);
		done++;
	}
	return done;
}

static int progress(struct wire_ep *wep, int budget)
{
	struct mock_ep *ep = ep_of(wep);
	int done = mock_pushes_run(ep->net);

	list_foreach_safe (n, next, &ep->links) {
		if (done >= budget) {
			break;
		}
		done += link_progress(container_of(n, struct mock_link, node),
				      budget - done);
	}
	return done;
}

static uint32_t events(struct wire_link *link)
{
	return link_of(link)->ep->net->events;
}

static int arm(struct wire_ep *ep)
{
	(void)ep;
	return 0;
}

static int fd(struct wire_ep *ep)
{
	(void)ep;
	return -1;
}

static int quiesce(struct wire_ep *ep, uint64_t key, uint64_t deadline)
{
	(void)ep;
	(void)key;
	(void)deadline;
	return 0;
}

const struct wire_ops mock_wire = {
	.name = "mock",
	.what = "in one process, on a virtual clock",
	.caps = {.lanes = 1,
		 .max_packet = 4096,
		 .max_segment = 1 << 20,
		 .bulk = MOCK_SLOT_SIZE},
	.ep_open = ep_open,
	.ep_close = ep_close,
	.dial = dial,
	.hangup = hangup,
	.pkt_reserve = pkt_reserve,
	.pkt_commit = pkt_commit,
	.put = put,
	.get = get,
	.put_notify = mock_put_notify,
	.events = events,
	.put_now = put_now,
	.get_now = get_now,
	.mem_add = mem_add,
	.mem_drop = mem_drop,
	.mem_name = mem_name,
	.bulk_get = bulk_get,
	.bulk_put = bulk_put,
	.bulk_peer = bulk_peer,
	.bulk_holds = bulk_holds,
	.joint_open = mock_joint_open,
	.joint_take = mock_joint_take,
	.joint_did = mock_joint_did,
	.joint_look = mock_joint_look,
	.joint_close = mock_joint_close,
	.joint_quiet = mock_joint_quiet,
	.progress = progress,
	.arm = arm,
	.fd = fd,
	.quiesce = quiesce,
};

const struct wire_ops *mock_wire_local(void)
{
	static struct wire_ops ops;

	ops = mock_wire;
	ops.caps.local = true;
	return &ops;
}

void mock_region_add(struct wire_ep *wep, const struct mock_region *r)
{
	struct mock_ep *ep = ep_of(wep);

	ep->regions[ep->region_count++] = *r;
}

struct wire_link *mock_some_link(struct wire_ep *wep)
{
	struct mock_ep *ep = ep_of(wep);

	list_foreach (n, &ep->links) {
		struct mock_link *l = container_of(n, struct mock_link, node);

		if (l->state == MOCK_UP && !l->dying) {
			return (struct wire_link *)l;
		}
	}
	return NULL;
}

bool mock_kill_random(struct mock_net *net)
{
	struct wire_ep *wep = net->eps[mock_random(net) % MOCK_EPS];
	struct wire_link *link = wep ? mock_some_link(wep) : NULL;

	if (!link) {
		return false;
	}
	link_die(link_of(link)->other, -FI_ECONNRESET);
	link_die(link_of(link), -FI_ECONNRESET);
	net->links_killed++;
	return true;
}

void mock_kill_pair(struct mock_net *net)
{
	struct wire_ep *wep = net->eps[mock_random(net) % MOCK_EPS];
	struct wire_link *some = wep ? mock_some_link(wep) : NULL;
	struct mock_ep *other;

	if (!some || !link_of(some)->other) {
		return;
	}
	other = link_of(some)->other->ep;
	list_foreach (n, &ep_of(wep)->links) {
		struct mock_link *l = container_of(n, struct mock_link, node);

		if (l->other && l->other->ep == other) {
			link_die(l->other, -FI_ECONNRESET);
			link_die(l, -FI_ECONNRESET);
			net->links_killed++;
		}
	}
}
