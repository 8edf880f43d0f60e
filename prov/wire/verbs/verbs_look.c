/* SPDX-License-Identifier: BSD-2-Clause */
/* What others ask of the rails: cards, paths, events, and whether there are any. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "prov/wire/verbs/verbs_near.h"
#include "prov/wire/verbs/verbs_ooo.h"
#include "prov/wire/verbs/verbs_rail.h"

/* fi_getinfo comes in bursts, and opening devices takes milliseconds. */
#define LOOK_KEPT_NS UINT64_C(1000000000)

void verbs_dev_card_moved(const struct verbs_rail *rail, struct verbs_card_rail *card)
{
	const struct verbs_reach reach = verbs_rail_reach(rail);

	card->kind = reach.kind;
	card->mtu = (uint8_t)reach.mtu;
	card->lid = reach.lid;
	memcpy(card->gid, reach.gid.raw, sizeof(card->gid));
}

void verbs_dev_card(const struct verbs_dev *dev, struct verbs_card *card)
{
	bool ooo = true;

	card->place = dev->place;
	card->rails = (uint8_t)dev->rails;
	for (uint32_t i = 0; i < dev->rails; i++) {
		const struct verbs_rail *r = &dev->rail[i];
		struct verbs_card_rail *c = &card->rail[i];

		memset(c, 0, sizeof(*c));
		verbs_dev_card_moved(r, c);
		c->number = r->number;
		c->rd_atomic =
			r->limits.rd_atomic ? (uint8_t)r->limits.rd_atomic : (uint8_t)1;
		c->pkey = r->pkey;
		ooo = ooo && r->ooo_depth > 0;
	}
	if (ooo)
		card->features |= VERBS_CARD_OOO;
	for (size_t i = 0; i < FABRIC_DISTANCES; i++) {
		struct dqplb_tx_config tx;

		dqplb_profile_tx(&dev->profiles.row[i], dev->rails, &tx);
		card->row[i] = (struct verbs_card_row){
			.lanes = (uint16_t)tx.lanes,
			.window = tx.window,
			.segments = tx.lane_segments,
		};
	}
}

#define LINE_MAX 256

static void row_text(const struct verbs_dev *dev, size_t distance, char line[LINE_MAX])
{
	const struct dqplb_profile *p = &dev->profiles.row[distance];
	struct dqplb_tx_config tx;

	dqplb_profile_tx(p, dev->rails, &tx);
	snprintf(line, LINE_MAX,
		 "profile %s: lanes=%u segment=%u segments=%u lane_bytes=%llu "
		 "link_bytes=%llu turn=%u small=%u traffic_class=%llu, window %u",
		 fabric_distance_name(distance), tx.lanes, tx.max_segment,
		 tx.lane_segments, (unsigned long long)tx.lane_bytes,
		 (unsigned long long)tx.link_bytes, tx.turn, tx.small,
		 (unsigned long long)p->traffic_class, tx.window);
}

static void rail_text(const struct verbs_rail *r, bool native, char line[LINE_MAX])
{
	static const char *const kind[] = {"?", "InfiniBand", "RoCE v2 by IPv4",
					   "RoCE v2 by IPv6", "RoCE v1"};
	const struct verbs_reach at = verbs_rail_reach(r);

	snprintf(line, LINE_MAX,
		 "rail %u: %s port %u, %s, GID %u, MTU %u, %llu Mbit/s, %s%s%s%s",
		 r->number, r->name, r->port, kind[at.kind], at.gid_index, 128u << at.mtu,
		 (unsigned long long)r->speed, r->software ? "software, " : "",
		 r->limits.in_order ? "bytes in order, " : "",
		 native ? "native atomics, " : "", r->up ? "up" : "down");
}

static void place_text(const struct verbs_dev *dev, char line[LINE_MAX])
{
	char place[FABRIC_PLACE_MAX + 1];

	fabric_place_text(&dev->place, place);
	snprintf(line, LINE_MAX, "this host is at %s", place);
}

/* Line `at` of what is said of the devices; false: there are no more. */
static bool dev_line(const struct verbs_dev *dev, uint32_t at, char line[LINE_MAX])
{
	if (at < dev->rails)
		rail_text(&dev->rail[at], dev->native, line);
	else if (at == dev->rails)
		place_text(dev, line);
	else if (at - dev->rails - 1 < FABRIC_DISTANCES)
		row_text(dev, at - dev->rails - 1, line);
	else
		return false;
	return true;
}

void verbs_dev_log(const struct verbs_dev *dev)
{
	char line[LINE_MAX];

	for (uint32_t i = 0; dev_line(dev, i, line); i++)
		FI_INFO(&weft_provider, FI_LOG_DOMAIN, "%s\n", line);
}

enum ibv_mtu verbs_dev_mtu(const struct verbs_rail *rail,
			   const struct verbs_card_rail *peer)
{
	enum ibv_mtu mtu = verbs_rail_reach(rail).mtu;

	return (enum ibv_mtu)peer->mtu < mtu ? (enum ibv_mtu)peer->mtu : mtu;
}

void verbs_dev_path(const struct verbs_rail *rail, const struct verbs_card_rail *peer,
		    uint8_t traffic_class, struct ibv_ah_attr *ah)
{
	static const union ibv_gid none;
	const struct verbs_reach reach = verbs_rail_reach(rail);

	memset(ah, 0, sizeof(*ah));
	ah->port_num = rail->port;
	ah->sl = rail->sl;
	ah->dlid = peer->lid;
	/* Another subnet of InfiniBand is behind a router. Who has no GID says none. */
	ah->is_global = reach.global || peer->lid == 0 ||
			(memcmp(&reach.gid, &none, sizeof(none)) != 0 &&
			 memcmp(peer->gid, &none, sizeof(none)) != 0 &&
			 memcmp(reach.gid.raw, peer->gid, 8) != 0);
	memcpy(ah->grh.dgid.raw, peer->gid, sizeof(peer->gid));
	ah->grh.sgid_index = reach.gid_index;
	ah->grh.hop_limit = rail->hop_limit;
	ah->grh.traffic_class = traffic_class;
}

/* ---- events -------------------------------------------------------------------------
 */

bool verbs_dev_near(const struct verbs_rail *rail, const struct verbs_card_rail *peer)
{
	const struct verbs_reach reach = verbs_rail_reach(rail);

	if (reach.kind != VERBS_RAIL_ROCE4 && reach.kind != VERBS_RAIL_ROCE6)
		return true;
	return verbs_near_known(reach.ifindex, reach.gid.raw, peer->gid);
}

static uint32_t rail_of_port(const struct verbs_dev *dev, uint32_t rail, int port)
{
	for (uint32_t i = 0; i < dev->rails; i++)
		if (dev->rail[i].context == dev->rail[rail].context &&
		    dev->rail[i].port == port)
			return i;
	return UINT32_MAX;
}

static enum verbs_event_kind port_event(struct verbs_dev *dev, uint32_t rail, int port,
					enum ibv_event_type type, struct verbs_event *out)
{
	out->rail = rail_of_port(dev, rail, port);
	if (out->rail == UINT32_MAX) {
		out->rail = rail;
		return VERBS_EVENT_NONE;
	}
	if (type == IBV_EVENT_PORT_ERR) {
		dev->rail[out->rail].up = false;
		return VERBS_EVENT_PORT_DOWN;
	}
	if (verbs_rail_moved(dev->lib, &dev->rail[out->rail]))
		return VERBS_EVENT_MOVED;
	return type == IBV_EVENT_PORT_ACTIVE ? VERBS_EVENT_PORT_UP : VERBS_EVENT_NONE;
}

static enum verbs_event_kind event_kind(struct verbs_dev *dev, uint32_t rail,
					const struct ibv_async_event *ev,
					struct verbs_event *out)
{
	switch (ev->event_type) {
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_GID_CHANGE:
		return port_event(dev, rail, ev->element.port_num, ev->event_type, out);
	case IBV_EVENT_DEVICE_FATAL:
		for (uint32_t i = 0; i < dev->rails; i++)
			if (dev->rail[i].context == dev->rail[rail].context) {
				dev->rail[i].up = false;
				dev->rail[i].dead = true;
			}
		return VERBS_EVENT_DEVICE;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		out->qp = ev->element.qp;
		return VERBS_EVENT_QP;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		out->qp = ev->element.qp;
		return VERBS_EVENT_QP_LAST;
	case IBV_EVENT_CQ_ERR:
		out->cq = ev->element.cq;
		return VERBS_EVENT_CQ;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		out->srq = ev->element.srq;
		return VERBS_EVENT_SRQ;
	default:
		return VERBS_EVENT_NONE;
	}
}

bool verbs_dev_event(struct verbs_dev *dev, uint32_t rail, struct verbs_event *event)
{
	memset(event, 0, sizeof(*event));
	if (dev->lib->get_async_event(dev->rail[rail].context, &event->raw) != 0)
		return false;
	event->type = event->raw.event_type;
	event->rail = rail;
	event->kind = event_kind(dev, rail, &event->raw, event);
	return true;
}

void verbs_dev_event_end(struct verbs_dev *dev, struct verbs_event *event)
{
	dev->lib->ack_async_event(&event->raw);
}

/* ---- whether there are any ----------------------------------------------------------
 */

#define NAMES_MAX (DQPLB_RAILS_MAX * (DQPLB_RAIL_NAME + 1))

#define TEXT_MAX (LINE_MAX * (DQPLB_RAILS_MAX + 1 + FABRIC_DISTANCES))

static struct {
	pthread_mutex_t lock;
	uint64_t when; /* 0: never */
	bool there;
	struct verbs_error why;
	char names[NAMES_MAX];
	char text[TEXT_MAX];
} look = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void text_make(const struct verbs_dev *dev)
{
	char line[LINE_MAX];
	size_t at = 0;

	look.text[0] = '\0';
	for (uint32_t i = 0; dev_line(dev, i, line); i++)
		at += (size_t)snprintf(look.text + at, sizeof(look.text) - at, "%s\n",
				       line);
}

static void look_anew(void)
{
	struct verbs_want want;
	struct verbs_dev *dev;
	size_t at = 0;

	verbs_want_read(&want);
	look.there = verbs_dev_open(&want, &dev, &look.why) == 0;
	if (!look.there)
		return;
	for (uint32_t i = 0; i < dev->rails; i++)
		at += (size_t)snprintf(look.names + at, sizeof(look.names) - at, "%s%s",
				       i ? "+" : "", dev->rail[i].name);
	text_make(dev);
	verbs_dev_close(dev);
}

const char *verbs_dev_absent(const char **names)
{
	static _Thread_local char
		text[NAMES_MAX > VERBS_ERROR_MAX ? NAMES_MAX : VERBS_ERROR_MAX];
	uint64_t now = clock_ns();
	bool there;

	pthread_mutex_lock(&look.lock);
	if (!look.when || now - look.when > LOOK_KEPT_NS) {
		look_anew();
		look.when = clock_ns();
	}
	there = look.there;
	snprintf(text, sizeof(text), "%s", there ? look.names : look.why.text);
	pthread_mutex_unlock(&look.lock);
	if (there && names)
		*names = text;
	return there ? NULL : text;
}

void verbs_dev_describe(char *text, size_t len)
{
	text[0] = '\0';
	if (verbs_dev_absent(NULL))
		return;
	pthread_mutex_lock(&look.lock);
	snprintf(text, len, "%s", look.text);
	pthread_mutex_unlock(&look.lock);
}
