/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports that come back; see verbs_port.h. Rules C5, D6. */
#include "config.h"

#include "prov/wire/verbs/verbs_port.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_link.h"
#include "prov/wire/verbs/verbs_rail.h"
#include "prov/wire/verbs/verbs_stop.h"

/* Those that are down are asked so often; and none sooner than that after the last time,
 * since queue pairs that die have events too. */
#define PORT_ASK_NS   UINT64_C(250000000)
#define PORT_APART_NS UINT64_C(10000000)

/* ---- the helper thread --------------------------------------------------------------
 */

int verbs_ports_open(struct verbs_ep *ep)
{
	const struct verbs_dev *dev = ep->dom->dev;
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	ep->ports.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ep->ports.epoll < 0)
		return -FI_EMFILE;
	for (uint32_t r = 0; r < dev->rails; r++) {
		if (epoll_ctl(ep->ports.epoll, EPOLL_CTL_ADD, dev->rail[r].async_fd,
			      &ev) < 0 &&
		    errno != EEXIST)
			return errno == ENOMEM || errno == ENOSPC ? -FI_ENOMEM : -FI_EIO;
	}
	return 0;
}

void verbs_ports_close(struct verbs_ep *ep)
{
	if (ep->ports.epoll >= 0)
		close(ep->ports.epoll);
	ep->ports.epoll = -1;
}

/* Progress reads events and tells links, in its next turn. */
static void stir(struct verbs_ep *ep)
{
	atomic_store(&ep->stirred, true);
	verbs_ep_ring(ep);
}

/* They stay where they are: each wakes this thread once. */
static void events_hear(struct verbs_ep *ep)
{
	struct epoll_event ev[DQPLB_RAILS_MAX];

	while (epoll_wait(ep->ports.epoll, ev, DQPLB_RAILS_MAX, 0) > 0)
		ep->ports.stirred = true;
	if (ep->ports.stirred)
		stir(ep);
}

static bool is_up(const struct verbs_rail *rail)
{
	return atomic_load_explicit(&rail->up, memory_order_relaxed);
}

/* Those that are down; after an event, the others as well. */
static void ports_ask(struct verbs_ep *ep)
{
	struct verbs_dev *dev = ep->dom->dev;
	bool turned = false;

	for (uint32_t r = 0; r < dev->rails; r++) {
		struct verbs_rail *rail = &dev->rail[r];

		if (is_up(rail) && !ep->ports.stirred)
			continue;
		if (!verbs_rail_turned(dev->lib, rail))
			continue;
		turned = true;
		if (!is_up(rail))
			continue;
		pthread_mutex_lock(&ep->mutex);
		verbs_ports_back(ep, r);
		pthread_mutex_unlock(&ep->mutex);
	}
	if (turned)
		stir(ep);
	ep->ports.stirred = false;
}

/* When ports are to be asked. */
static uint64_t ask_due(const struct verbs_ep *ep)
{
	const struct verbs_dev *dev = ep->dom->dev;

	if (ep->ports.stirred)
		return ep->ports.asked + PORT_APART_NS;
	for (uint32_t r = 0; r < dev->rails; r++)
		if (!is_up(&dev->rail[r]) &&
		    !atomic_load_explicit(&dev->rail[r].dead, memory_order_relaxed))
			return ep->ports.asked + PORT_ASK_NS;
	return UINT64_MAX;
}

/* As words at the peer's door. False: not all could be said yet. Mutex. */
static bool back_say(struct verbs_link *link)
{
	const struct verbs_dev *dev = link->ep->dom->dev;

	if (!link->call || !(link->terms.features & VERBS_CARD_STOPS))
		link->rails_back = 0; /* who calls again says what is */
	for (; link->rails_back; link->rails_back &= link->rails_back - 1) {
		uint32_t r = (uint32_t)__builtin_ctz(link->rails_back);
		const struct verbs_reach at = verbs_rail_reach(&dev->rail[r]);
		struct verbs_msg m = {.op = VERBS_MSG_RAIL,
				      .rail = (uint8_t)r,
				      .lane = 1,
				      .lid = at.lid};

		memcpy(m.gid, at.gid.raw, sizeof(m.gid));
		if (is_up(&dev->rail[r]) && verbs_stop_say(link->call, &m) == -FI_EAGAIN)
			return false;
	}
	return true;
}

static bool all_say(struct verbs_ep *ep)
{
	bool all = true;

	pthread_mutex_lock(&ep->mutex);
	list_foreach_safe (n, tmp, &ep->links)
		all = back_say(container_of(n, struct verbs_link, member)) && all;
	pthread_mutex_unlock(&ep->mutex);
	return all;
}

uint64_t verbs_ports_turn(void *arg, bool readable)
{
	struct verbs_ep *ep = arg;
	uint64_t due, now;

	if (readable)
		events_hear(ep);
	now = verbs_now();
	if (now >= ask_due(ep)) {
		ports_ask(ep);
		ep->ports.asked = verbs_now();
	}
	due = ask_due(ep);
	if (!all_say(ep) && due > now + PORT_ASK_NS)
		due = now + PORT_ASK_NS;
	return due;
}

void verbs_ports_back(struct verbs_ep *ep, uint32_t rail)
{
	list_foreach (n, &ep->links)
		container_of(n, struct verbs_link, member)->rails_back |= 1u << rail;
}

/* ---- the peer's ---------------------------------------------------------------------
 */

void verbs_port_word(struct verbs_link *link, const struct verbs_msg *m)
{
	/* That one went is said by the control channel, behind what it said before. */
	if (m->rail >= VERBS_CARD_RAILS || m->lane != 1)
		return;
	link->peer_back |= 1u << m->rail;
	link->peer_back_as[m->rail] = *m;
	verbs_ep_news(link->ep, link);
}

bool verbs_port_news(struct verbs_link *link)
{
	struct verbs_msg m[VERBS_CARD_RAILS];
	uint32_t rails;

	pthread_mutex_lock(&link->ep->mutex);
	rails = link->peer_back;
	if (rails)
		memcpy(m, link->peer_back_as, sizeof(m));
	link->peer_back = 0;
	pthread_mutex_unlock(&link->ep->mutex);
	if (!rails || link->state != VERBS_LINK_UP)
		return false;
	for (; rails; rails &= rails - 1)
		verbs_lanes_peer_rail(link, &m[__builtin_ctz(rails)]);
	verbs_link_chore(link);
	return true;
}
