/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints; see uet_ep.h. */
#include "config.h"

#include "prov/wire/uet/uet_ep.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/uet/uet.h"
#include "prov/wire/uet/uet_helper.h"
#include "prov/wire/uet/uet_leave.h"
#include "prov/wire/uet/uet_lend.h"
#include "prov/wire/uet/uet_link.h"
#include "prov/wire/uet/uet_recv.h"

/* What is asked of the system for each endpoint and each path. */
#define RCVBUF ((size_t)8 << 20)
#define SNDBUF ((size_t)1 << 20)
/* Packets of each context in each direction, and bytes that are acknowledged together:
 * what the kernel hands over at once, and more where the window is so wide that its
 * sender doesn't ask. */
#define WINDOW	  1024
#define ACK_BYTES 65536
#define ACK_MOST  262144
/* Windows begin as those for 10 Gbit/s, and grow to so many of them. */
#define LINK_SPEED UINT64_C(1250000000)
#define WIDEST	   4
/* Packets that take the same path one after the other: only those are one piece of work
 * for the kernel, which takes BURST_MAX. More than BURST where the window is so wide that
 * no path has to wait for them. */
#define BURST	  4
#define BURST_MAX 44
/* The packet that steps of windows are made for. */
#define NOMINAL 8296
/* Headers of a packet of a message. */
#define PACKET_HEAD (12 + 44)
/* Polls without anything before the kernel is asked for errors. */
#define IDLE_LOOK 256
/* An endpoint that closes waits as long for what it sent to arrive, and for its peers to
 * hear of the end. */
#define LINGER_NS UINT64_C(3000000000)
#define BYE_NS	  UINT64_C(60000000)
/* Peers say that they are there, at least so often. */
#define PING_NS UINT64_C(1000000000)
/* And are asked at least so often while they say nothing. */
#define RTO_MAX_NS UINT64_C(500000000)

uint64_t uet_ep_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* ---- names of peers ---------------------------------------------------------------- */

void uet_ep_peer(const struct wire_addr *addr, struct uet_peer *peer)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memset(peer, 0, sizeof(*peer));
	peer->fep = uet_door_port(addr);
	if (addr->sa.sa_family == AF_INET6) {
		memcpy(peer->host, &addr->in6.sin6_addr, 16);
		return;
	}
	memcpy(peer->host, mapped, sizeof(mapped));
	memcpy(peer->host + 12, &addr->in.sin_addr, 4);
}

void uet_ep_door(const struct uet_peer *peer, int family, struct wire_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = (sa_family_t)family;
	if (family == AF_INET6) {
		addr->in6.sin6_port = htons((uint16_t)peer->fep);
		memcpy(&addr->in6.sin6_addr, peer->host, 16);
		return;
	}
	addr->in.sin_port = htons((uint16_t)peer->fep);
	memcpy(&addr->in.sin_addr, peer->host + 12, 4);
}

/* What a datagram has besides payload. */
static size_t head_of(const struct wire_ep *ep)
{
	return PACKET_HEAD + (ep->secret ? UET_SECRET_EXTRA : UET_CRC_BYTES);
}

bool uet_ep_inside(struct wire_ep *ep, const struct wire_addr *to)
{
	struct uet_peer peer;

	/* Rails have more addresses than the one that is asked about here. */
	if (ep->secret || ep->sock->rails > 1 ||
	    prov_params()->uet_checksum == PROV_CHECKSUM_ALWAYS ||
	    !uet_sock_stays(ep->sock, to))
		return false;
	uet_ep_peer(to, &peer);
	return uet_sums_own(&ep->sums, peer.host);
}

uint32_t uet_ep_part(struct wire_ep *ep, unsigned path, const struct wire_addr *to,
		     int *err)
{
	size_t room = uet_sock_room(ep->sock, path, to, err);

	if (!room)
		return 0;
	if (room < UET_PART_MIN + head_of(ep)) {
		*err = -EMSGSIZE;
		return 0;
	}
	room -= head_of(ep);
	return room < UET_PART_MAX ? (uint32_t)room : UET_PART_MAX;
}

/* ---- arriving ---------------------------------------------------------------------- */

/* Whole, and a packet. */
static bool open_dgram(const struct wire_ep *ep, const struct uet_dgram *d,
		       const uint8_t host[16], struct uet_pkt *pkt)
{
	if (uet_sums_good(&ep->sums, host, d->data, d->len) &&
	    !uet_pkt_parse(d->data, d->len - UET_SUMS_BYTES, UET_PART_MAX, pkt))
		return true;
	if (uet_secret_sealed(d))
		uet_secret_no_key(d);
	return false;
}

static bool sealed_dgram(struct wire_ep *ep, const struct uet_dgram *d,
			 struct uet_pkt *pkt)
{
	/* An endpoint of all local addresses has many names. */
	const struct wire_addr *to = d->to.sa.sa_family ? &d->to : &ep->base.addr;
	const uint8_t *data;
	bool begins;
	size_t len;

	return uet_secret_take(ep->secret, to, ep->incarnation, d, &data, &len,
			       &begins) &&
	       !uet_pkt_parse(data, len, UET_PART_MAX, pkt) &&
	       (!begins || uet_secret_may_begin(pkt));
}

static void on_dgram(void *arg, const struct uet_dgram *d)
{
	struct wire_ep *ep = arg;
	struct uet_in in = {.ce = (d->tos & UET_TOS_ECN) == UET_ECN_CE,
			    .stamp = d->stamp};
	struct uet_pkt pkt;

	uet_ep_peer(&d->from, &in.from);
	if (!(ep->secret ? sealed_dgram(ep, d, &pkt)
			 : open_dgram(ep, d, in.from.host, &pkt))) {
		ep->garbled++;
		return;
	}
	in.entropy = (uint16_t)in.from.fep;
	/* Its door is what it says; a packet that doesn't say it needs a context. */
	in.from.fep = pkt.pds.next == UET_NEXT_REQ_STD && pkt.pds.type != UET_CP &&
				      pkt.req.initiator <= UINT16_MAX
			      ? pkt.req.initiator
			      : 0;
	uet_pds_rx(ep->pds, &in, &pkt, d->now);
}

static struct wire_link *link_to(struct wire_ep *ep, const struct wire_addr *to)
{
	list_foreach (pos, &ep->links) {
		struct wire_link *link = container_of(pos, struct wire_link, node);

		/* Those that are over are passed by: another may be at that address. */
		if (link->state != UET_LINK_OVER && uet_ways_lead_to(link, to, true))
			return link;
	}
	return NULL;
}

/* A way is narrower than it was: what was made for it before is cut by the kernel. */
static void narrower(struct wire_ep *ep, const struct uet_sock_news *news)
{
	uet_sock_fragment(ep->sock, news->path);
	if (news->room < UET_PART_MIN + head_of(ep))
		return;
	list_foreach (pos, &ep->links) {
		struct wire_link *link = container_of(pos, struct wire_link, node);

		/* Whatever the port: our own kernel doesn't name it. */
		if (uet_ways_lead_to(link, &news->to, false) &&
		    news->room - head_of(ep) < link->part) {
			link->part = (uint32_t)(news->room - head_of(ep));
			if (link->pdc)
				uet_pdc_set_payload(link->pdc, link->part);
		}
	}
}

/* The kernel, or a host on the way, has an answer to what was sent. */
static void look_for_news(struct wire_ep *ep, bool all)
{
	struct uet_sock_news news;

	while (uet_sock_news(ep->sock, all, &news)) {
		struct wire_link *link;

		if (news.err == -FI_EMSGSIZE) {
			narrower(ep, &news);
			continue;
		}
		/* Only a host that is there says that nobody listens. */
		if (news.err != -FI_ECONNREFUSED)
			continue;
		while ((link = link_to(ep, &news.to)))
			uet_link_refused(link);
	}
}

/* ---- progress ---------------------------------------------------------------------- */

static void reap(struct wire_ep *ep)
{
	struct list *node;

	while ((node = list_pop_front(&ep->dead))) {
		struct wire_link *link = container_of(node, struct wire_link, node);

		if (link->pdc)
			uet_pdc_abort(link->pdc, -ECONNRESET, uet_ep_now());
		uet_link_free(link);
	}
}

static void pump_all(struct wire_ep *ep, uint64_t now)
{
	struct list todo, *node;

	if (list_empty(&ep->pump))
		return;
	/* Those that find no room come back to the list. */
	list_init(&todo);
	while ((node = list_pop_front(&ep->pump)))
		list_push_back(&todo, node);
	while ((node = list_pop_front(&todo)))
		uet_link_pump(container_of(node, struct wire_link, pump), now);
}

static void ping_all(struct wire_ep *ep, uint64_t now)
{
	if (now < ep->ping_at)
		return;
	ep->ping_at = now + ep->ping_ns;
	list_foreach (pos, &ep->links) {
		struct wire_link *link = container_of(pos, struct wire_link, node);

		if (link->state == UET_LINK_UP && link->pdc &&
		    !uet_pdc_open_packets(link->pdc))
			uet_link_ping(link, now);
	}
}

/* All but what the layers above are told. `seen`: the time of the last turn, where it
 * wasn't long ago, or 0. */
static int turn(struct wire_ep *ep, int budget, uint64_t seen)
{
	int n = (int)uet_recv(ep->sock, (size_t)budget, seen, on_dgram, ep);
	uint64_t now = uet_ep_now();

	ep->seen = now;
	if (uet_pds_due(ep->pds) <= now)
		uet_pds_tick(ep->pds, now);
	uet_leave_late(ep, now);
	ep->idle = n ? 0 : ep->idle + 1;
	look_for_news(ep, ep->idle % IDLE_LOOK == IDLE_LOOK - 1);
	ping_all(ep, now);
	pump_all(ep, now);
	uet_leave(ep, now);
	return n;
}

static int tell_all(struct wire_ep *ep, int budget)
{
	struct list todo, *node;
	int n = 0;

	list_init(&todo);
	while ((node = list_pop_front(&ep->news)))
		list_push_back(&todo, node);
	while ((node = list_pop_front(&todo)))
		n += uet_link_tell(container_of(node, struct wire_link, news), budget);
	return n;
}

/* Nobody sleeps any more. */
static void disarm(struct wire_ep *ep)
{
	uint64_t count;

	atomic_store_explicit(&ep->armed, false, memory_order_relaxed);
	if (!ep->woken)
		return;
	ep->woken = false;
	(void)!read(ep->wake_fd, &count, sizeof(count));
}

int uet_progress(struct wire_ep *ep, int budget)
{
	int n;

	ep->busy = true;
	disarm(ep);
	reap(ep);
	n = turn(ep, budget, ep->seen);
	if (!list_empty(&ep->news)) {
		uint64_t now;

		n += tell_all(ep, budget);
		now = uet_ep_now();
		pump_all(ep, now);
		uet_leave(ep, now);
	}
	ep->busy = false;
	return n;
}

int uet_arm(struct wire_ep *ep)
{
	bool ready = uet_sock_ready(ep->sock);

	look_for_news(ep, false);
	if (!list_empty(&ep->news) || !list_empty(&ep->dead) || uet_leave_waits(ep))
		return -FI_EAGAIN;
	if (ready || uet_look_due(ep) <= uet_ep_now())
		return -FI_EAGAIN;
	atomic_store_explicit(&ep->armed, true, memory_order_relaxed);
	return 0;
}

bool uet_ep_armed(struct wire_ep *ep)
{
	return atomic_load_explicit(&ep->armed, memory_order_relaxed);
}

/* What a sleeper waits for may be what was taken here: it would find nothing. */
int uet_ep_stand_in(struct wire_ep *ep, bool errors)
{
	uint64_t one = 1;
	int n;

	if (errors)
		look_for_news(ep, true);
	n = turn(ep, UET_STAND_IN_BUDGET, 0);
	if ((n || !list_empty(&ep->news)) && uet_ep_armed(ep) && !ep->woken) {
		ep->woken = true;
		(void)!write(ep->wake_fd, &one, sizeof(one));
	}
	return n;
}

int uet_fd(struct wire_ep *ep)
{
	return ep->sock->epoll;
}

uint64_t uet_look_due(struct wire_ep *ep)
{
	uint64_t due = uet_pds_due(ep->pds), shim = uet_shim_due(ep->shim);

	due = shim < due ? shim : due;
	return list_empty(&ep->links) || due < ep->ping_at ? due : ep->ping_at;
}

/* Nobody reads or writes a key's memory but whose turn it is, who says when it does. */
int uet_quiesce(struct wire_ep *ep, uint64_t key, uint64_t deadline_ns)
{
	while (atomic_load(&ep->using_any) && atomic_load(&ep->using_key) == key) {
		if (uet_ep_now() >= deadline_ns)
			return -FI_EBUSY;
		sched_yield();
	}
	return 0;
}

/* ---- opening, closing -------------------------------------------------------------- */

static uint64_t random_number(void *arg)
{
	uint64_t n = 0;

	(void)arg;
	/* Without random bytes the clock: another start than the last one's. */
	if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != sizeof(n))
		n = uet_ep_now() * UINT64_C(0x9e3779b97f4a7c15);
	return n;
}

/* One that is asked for and can't be had isn't left out. */
static int open_rails(struct wire_ep *ep, const struct wire_ep_attr *attr,
		      struct uet_rails *rails)
{
	const char *text = prov_params()->uet_rails;
	char why[160];
	int ret = uet_rails_find(text, &attr->addr, attr->addr_any, rails, why);

	if (!ret && rails->count > UET_EP_PATHS) {
		ret = -FI_EINVAL;
		snprintf(why, sizeof(why), "%u are more than FI_WEFT_UET_PATHS=%u",
			 rails->count, UET_EP_PATHS);
	}
	if (ret)
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "FI_WEFT_UET_RAILS=%s: %s\n",
			text, why);
	memcpy(ep->rail_bits, rails->bits, sizeof(rails->bits));
	return ret;
}

static int open_sock(struct wire_ep *ep, const struct wire_ep_attr *attr,
		     const struct uet_rails *rails)
{
	/* What comes to the other rails' addresses comes to the same door. */
	bool many = rails->count > 1;
	struct uet_sock_config config = {.door = attr->addr,
					 .any = attr->addr_any || many,
					 .rails = rails->rail,
					 .rail_count = rails->count,
					 .paths = UET_EP_PATHS,
					 .rcvbuf = RCVBUF,
					 .sndbuf = SNDBUF,
					 .tos = UET_ECN_ECT,
					 .want_to =
						 ep->secret && (attr->addr_any || many)};
	int ret = uet_sock_open(&config, &ep->sock);

	if (ret)
		return ret;
	if (ep->sock->warning[0])
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "%s\n", ep->sock->warning);
	ep->base.addr = ep->sock->addr;
	if (rails->count)
		uet_rails_name(rails, &ep->base.addr);
	if (!wire_addr_has_host(&ep->base.addr))
		wire_addr_find_host(&ep->base.addr);
	return 0;
}

/* One that was heard last just after it was asked is asked again, asked some more, and
 * given up, all in that time. */
static int open_pds(struct wire_ep *ep)
{
	uint64_t gone = prov_params()->uet_timeout_ms * UINT64_C(1000000);
	struct uet_pds_config config = {.mtu = UET_PART_MAX,
					.give_up = gone / 4 * 3,
					.rto_max = gone / 16 < RTO_MAX_NS ? gone / 16
									  : RTO_MAX_NS,
					.window = WINDOW,
					.piece = UET_LEAVE_PIECE,
					.ack_bytes = ACK_BYTES,
					.ack_most = ACK_MOST,
					.cc = {.link = LINK_SPEED,
					       .widest = WIDEST,
					       .first_rtt = 100000,
					       .mtu = NOMINAL},
					.path = {.paths = UET_EP_PATHS,
						 .burst = BURST,
						 .burst_max = BURST_MAX,
						 .strikes = 3,
						 .retry_min = 10000000,
						 .retry_max = 1000000000},
					.random = random_number,
					.events = &uet_link_events,
					.arg = ep};

	/* The first rail's; the others' when it is known where they lead. */
	for (unsigned i = 0; i < UET_EP_PATHS; i += ep->sock->rails)
		config.path.first |= UINT32_C(1) << i;
	ep->ping_ns = gone / 8 < PING_NS ? gone / 8 : PING_NS;
	return uet_pds_open(&config, &ep->pds);
}

/* A network that is asked for and can't be had isn't replaced by a good one. */
static int open_shim(struct wire_ep *ep)
{
	const char *text = prov_params()->uet_shim, *why;
	struct uet_shim_config config;

	if (!text)
		return 0;
	if (!uet_shim_parse(text, &config, &why)) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"FI_WEFT_UET_SHIM: \"%s\" is no setting: %s\n", text, why);
		return -FI_EINVAL;
	}
	ep->shim = uet_shim_open(&config);
	return ep->shim ? 0 : -FI_ENOMEM;
}

/* Sleepers hear of what the helper found. */
static int open_helper(struct wire_ep *ep)
{
	struct epoll_event event = {.events = EPOLLIN};
	int ret;

	ep->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ep->wake_fd < 0)
		return -FI_EMFILE;
	if (epoll_ctl(ep->sock->epoll, EPOLL_CTL_ADD, ep->wake_fd, &event))
		return -FI_ENOMEM;
	ret = uet_helper_start(ep, &ep->helper);
	if (ret)
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"no thread for an endpoint of the uet wire: %s\n",
			fi_strerror(-ret));
	return ret;
}

static void ep_free(struct wire_ep *ep)
{
	if (ep->helper)
		uet_helper_stop(ep->helper);
	if (ep->wake_fd >= 0)
		close(ep->wake_fd);
	uet_turn_close(&ep->turn);
	uet_pds_close(ep->pds);
	uet_sock_close(ep->sock);
	uet_shim_close(ep->shim);
	uet_secret_close(ep->secret);
	uet_loans_close(ep->loans);
	free(ep->room);
	if (ep->view)
		mem_keyview_close(ep->view);
	free(ep);
}

int uet_ep_open(const struct wire_ep_attr *attr, struct wire_ep **out)
{
	struct wire_ep *ep;
	struct uet_rails rails;
	int ret;

	if (attr->addr.context) {
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"the uet wire has no endpoints with several contexts: "
			"FI_WEFT_WIRE must be another for them\n");
		return -FI_EOPNOTSUPP;
	}
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->base.ops = &uet_wire_ops;
	uet_turn_open(&ep->turn);
	ep->wake_fd = -1;
	ep->events = attr->events;
	ep->arg = attr->arg;
	ep->incarnation = attr->incarnation;
	ep->keys = attr->keys;
	list_init(&ep->links);
	list_init(&ep->dead);
	list_init(&ep->news);
	list_init(&ep->pump);
	ret = mem_keyview_own(attr->keys, &ep->view);
	if (!ret)
		ret = uet_secret_open(&ep->secret);
	if (!ret)
		ret = open_rails(ep, attr, &rails);
	if (!ret)
		ret = open_sock(ep, attr, &rails);
	if (!ret)
		ret = open_pds(ep);
	if (!ret)
		ret = open_shim(ep);
	if (!ret)
		ret = uet_loans_open(&ep->loans);
	if (!ret)
		ret = uet_leave_open(ep);
	if (!ret)
		ret = open_helper(ep);
	if (ret) {
		ep_free(ep);
		return ret;
	}
	*out = ep;
	return 0;
}

static bool all_quiet(const struct wire_ep *ep)
{
	list_foreach (pos, &ep->links) {
		if (!uet_link_quiet(container_of(pos, struct wire_link, node)))
			return false;
	}
	return true;
}

/* Until everything arrived, or that time is over. Tells nobody. */
static void linger(struct wire_ep *ep, uint64_t ns)
{
	uint64_t end = uet_ep_now() + ns;

	/* A forked child has no sockets, and nothing to say. */
	if (ep->sock->fd < 0)
		return;
	while (!all_quiet(ep) && uet_ep_now() < end) {
		struct pollfd p = {.fd = ep->sock->fd, .events = POLLIN};

		if (!turn(ep, 64, 0))
			poll(&p, 1, 1);
	}
}

void uet_ep_close(struct wire_ep *ep)
{
	uet_helper_stop(ep->helper);
	ep->helper = NULL;
	ep->busy = true;
	linger(ep, LINGER_NS);
	list_foreach (pos, &ep->links) {
		struct wire_link *link = container_of(pos, struct wire_link, node);

		if (link->pdc && link->base.peer_incarnation &&
		    link->state != UET_LINK_OVER)
			uet_link_say(link, UET_SAID_BYE, 0, uet_ep_now());
	}
	linger(ep, BYE_NS);
	while (!list_empty(&ep->links)) {
		struct list *node = list_pop_front(&ep->links);

		list_push_back(&ep->dead, node);
	}
	reap(ep);
	ep_free(ep);
}
