/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what verbs_dev makes of the devices of this host and of the environment, for
 * dev.t: a line for each rail, the card, and as many events as
 * RAILS_SHOW_EVENTS says. Else the error.
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prov/wire/verbs/tests/card_make.h"
#include "prov/wire/verbs/verbs_dev.h"

static void want_take(struct verbs_want *want, int argc, char **argv)
{
	*want = (struct verbs_want){.hop_limit = 64};
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			continue;
		*value++ = '\0';
		if (strcmp(argv[i], "rails") == 0)
			want->rails = value;
		else if (strcmp(argv[i], "map") == 0)
			want->fabric_map = value;
		else if (strcmp(argv[i], "host") == 0)
			want->host = value;
		else if (strcmp(argv[i], "gid") == 0)
			want->gid_index = value;
		else if (strcmp(argv[i], "pkey") == 0)
			want->pkey_index = (uint16_t)atoi(value);
		else if (strcmp(argv[i], "lanes") == 0)
			want->lanes = value;
		else if (strcmp(argv[i], "ooo") == 0)
			want->ooo = (enum prov_ooo)atoi(value);
	}
}

static void rail_show(const struct verbs_rail *r)
{
	static const char *const kind[] = {"?", "ib", "roce4", "roce6", "roce1"};
	const struct verbs_reach at = verbs_rail_reach(r);
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, at.gid.raw, gid, sizeof(gid));
	printf("rail %s port %u number %u kind %s gid %u %s lid %s mtu %d pkey %x %s%s "
	       "ooo %u\n",
	       r->name, r->port, r->number, kind[at.kind], at.gid_index, gid,
	       at.lid ? "yes" : "no", 128 << at.mtu, r->pkey, r->up ? "up" : "down",
	       at.global ? " global" : "", r->ooo_depth);
	printf("limits %s qps %s wr %s sge %s inline %u reads %u\n", r->name,
	       r->limits.qps ? "some" : "none", r->limits.qp_wr ? "some" : "none",
	       r->limits.sge ? "some" : "none", r->limits.inlined, r->limits.rd_atomic);
}

/* Our card is one that others take, and our path to ourselves is one. */
static void card_show(const struct verbs_dev *dev)
{
	char place[FABRIC_PLACE_MAX + 1];
	uint8_t bytes[VERBS_CARD_MAX];
	struct verbs_card card, back;
	struct ibv_ah_attr ah;
	const char *why;
	size_t len;

	card_make(&card, "x", 1);
	card.qps = 1;
	card.qp[0].rail = 0;
	verbs_dev_card(dev, &card);
	len = verbs_card_write(&card, bytes);
	why = len ? verbs_card_read(bytes, len, &back) : "it isn't written";
	fabric_place_text(&dev->place, place);
	printf("card %s host %s place %s rails %u lanes %u\n", why ? why : "good",
	       dev->place.host, place, card.rails, card.row[FABRIC_SAME_HOST].lanes);
	verbs_dev_path(&dev->rail[0], &card.rail[0], 7, &ah);
	printf("path port %u sgid %u global %u hops %u class %u mtu %d\n", ah.port_num,
	       ah.grh.sgid_index, ah.is_global, ah.grh.hop_limit, ah.grh.traffic_class,
	       128 << verbs_dev_mtu(&dev->rail[0], &card.rail[0]));
}

static const char *const kind_name[] = {
	[VERBS_EVENT_NONE] = "none",	 [VERBS_EVENT_PORT_DOWN] = "down",
	[VERBS_EVENT_PORT_UP] = "up",	 [VERBS_EVENT_MOVED] = "moved",
	[VERBS_EVENT_DEVICE] = "device", [VERBS_EVENT_QP] = "qp",
	[VERBS_EVENT_QP_LAST] = "last",	 [VERBS_EVENT_CQ] = "cq",
	[VERBS_EVENT_SRQ] = "srq",
};

/* Waits for so many events of any rail. */
static void events_show(struct verbs_dev *dev, int count)
{
	struct pollfd fd[DQPLB_RAILS_MAX];

	for (uint32_t i = 0; i < dev->rails; i++)
		fd[i] = (struct pollfd){.fd = dev->rail[i].async_fd, .events = POLLIN};
	while (count > 0 && poll(fd, dev->rails, 20000) > 0) {
		for (uint32_t i = 0; i < dev->rails; i++) {
			struct verbs_event ev;

			if (!verbs_dev_event(dev, i, &ev))
				continue;
			printf("event %s of %s, which is %s\n", kind_name[ev.kind],
			       dev->rail[ev.rail].name,
			       dev->rail[ev.rail].up ? "up" : "down");
			verbs_dev_event_end(dev, &ev);
			count--;
		}
	}
}

int main(int argc, char **argv)
{
	struct verbs_error error = {""};
	struct verbs_want want;
	struct verbs_event ev;
	struct verbs_dev *dev;
	const char *absent, *names = "none", *events = getenv("RAILS_SHOW_EVENTS");
	int rc;

	want_take(&want, argc, argv);
	rc = verbs_dev_open(&want, &dev, &error);
	if (rc) {
		printf("error %d %s\n", rc, error.text);
	} else {
		for (uint32_t i = 0; i < dev->rails; i++)
			rail_show(&dev->rail[i]);
		card_show(dev);
		if (verbs_dev_event(dev, 0, &ev)) {
			printf("event some\n");
			verbs_dev_event_end(dev, &ev);
		} else {
			printf("event none\n");
		}
		events_show(dev, events ? atoi(events) : 0);
		verbs_dev_close(dev);
	}
	absent = verbs_dev_absent(&names);
	printf("wire %s%s\n", absent ? "absent: " : "over ", absent ? absent : names);
	return 0;
}
