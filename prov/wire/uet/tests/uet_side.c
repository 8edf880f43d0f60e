/* SPDX-License-Identifier: BSD-2-Clause */
/* Two endpoints in one process; see uet_side.h. */
#include "config.h"

#include "prov/wire/uet/tests/uet_side.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/random.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#define SECRET "the secret that nobody else may read"

static void on_up(void *arg, struct wire_link *link)
{
	struct side *s = arg;

	s->ups++;
	s->link = link;
}

static void on_down(void *arg, struct wire_link *link, int err)
{
	struct side *s = arg;

	s->down_err = err;
	s->downs++;
	if (s->link == link)
		s->link = NULL;
}

static void on_packet(void *arg, struct wire_link *link, const void *pkt, size_t len)
{
	struct side *s = arg;
	unsigned n;

	(void)link;
	memcpy(&n, pkt, sizeof(n));
	s->bad += len != sizeof(n) + sizeof(SECRET) || n != s->packets ||
		  memcmp((const uint8_t *)pkt + sizeof(n), SECRET, sizeof(SECRET)) != 0;
	s->packets++;
}

static void on_segment(void *arg, struct wire_link *link, void *cookie, int err)
{
	struct side *s = arg;

	(void)link;
	(void)cookie;
	s->segments++;
	s->bad += err != 0;
}

static const struct wire_events events = {.link_up = on_up,
					  .link_down = on_down,
					  .packet = on_packet,
					  .segment_done = on_segment};

void set_keys(const char *key, const char *auth_key)
{
	struct prov_params *params = (struct prov_params *)(uintptr_t)prov_params();

	params->uet_key = key;
	params->auth_key = auth_key;
}

int side_try(struct side *s, const char *key, const char *host, uint16_t port, bool any)
{
	struct wire_ep_attr attr = {.events = &events, .arg = s, .addr_any = any};
	struct mem_region region = {.iov_count = 1,
				    .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				    .virt_addr = true};

	memset(s, 0, sizeof(*s));
	if (mem_keytab_open(64, &s->keys))
		tap_bail("no key table");
	region.iov[0] = (struct iovec){s->memory, MEMORY};
	if (mem_keytab_insert(s->keys, &region, &s->key))
		tap_bail("no key");
	attr.addr.in.sin_family = AF_INET;
	if (inet_pton(AF_INET, host, &attr.addr.in.sin_addr) != 1)
		tap_bail("%s", host);
	attr.addr.in.sin_port = htons(port);
	attr.keys = s->keys;
	if (getrandom(&attr.incarnation, sizeof(attr.incarnation), 0) < 0)
		tap_bail("no random numbers");
	attr.incarnation |= 1;
	set_keys(key, NULL);
	return uet_wire_ops.ep_open(&attr, &s->ep);
}

void side_open(struct side *s, const char *key)
{
	int ret = side_try(s, key, "127.0.0.1", 0, false);

	if (ret)
		tap_bail("endpoint: %s", fi_strerror(-ret));
}

void side_close(struct side *s)
{
	if (s->ep)
		uet_wire_ops.ep_close(s->ep);
	mem_keytab_close(s->keys);
}

void side_network(struct side *s, const char *text)
{
	struct uet_shim_config config;
	struct uet_shim *shim = NULL;
	const char *why;

	if (text && !uet_shim_parse(text, &config, &why))
		tap_bail("%s: %s", text, why);
	config.seed = 7;
	if (text)
		shim = uet_shim_open(&config);
	if (text && !shim)
		tap_bail("no memory");
	uet_turn_take(&s->ep->turn);
	uet_shim_close(s->ep->shim);
	s->ep->shim = shim;
	uet_turn_give(&s->ep->turn);
}

uint64_t side_garbled(struct side *s)
{
	uint64_t n;

	uet_turn_take(&s->ep->turn);
	n = s->ep->garbled;
	uet_turn_give(&s->ep->turn);
	return n;
}

struct uet_seal_stats side_seals(struct side *s)
{
	struct uet_seal_stats stats;

	uet_turn_take(&s->ep->turn);
	stats = *uet_secret_stats(s->ep->secret);
	uet_turn_give(&s->ep->turn);
	return stats;
}

void both_turn(struct side *a, struct side *b)
{
	struct pollfd p[2] = {{.fd = uet_wire_ops.fd(a->ep), .events = POLLIN},
			      {.fd = uet_wire_ops.fd(b->ep), .events = POLLIN}};

	if (uet_wire_ops.progress(a->ep, 64) + uet_wire_ops.progress(b->ep, 64) == 0)
		poll(p, 2, 1);
}

bool both_until(struct side *a, struct side *b, const unsigned *count, unsigned want)
{
	uint64_t end = uet_ep_now() + WAIT_NS;

	while (*count < want && uet_ep_now() < end)
		both_turn(a, b);
	return *count >= want;
}

bool both_dial(struct side *a, struct side *b, const struct wire_addr *to)
{
	struct wire_link *link;

	return uet_wire_ops.dial(a->ep, to, a, &link) == 0 &&
	       both_until(a, b, &a->ups, 1) && both_until(a, b, &b->ups, 1);
}

static bool send_one(struct side *s, unsigned n)
{
	uint8_t *at =
		s->link ? uet_wire_ops.pkt_reserve(s->link, 4 + sizeof(SECRET), WIRE_DATA)
			: NULL;

	if (!at)
		return false;
	memcpy(at, &n, sizeof(n));
	memcpy(at + sizeof(n), SECRET, sizeof(SECRET));
	uet_wire_ops.pkt_commit(s->link, at, 4 + sizeof(SECRET));
	return true;
}

/* Packets, and bytes there and back. */
bool both_talk(struct side *a, struct side *b, unsigned count)
{
	static uint8_t local[MEMORY], back[MEMORY];
	struct iovec out = {local, MEMORY}, in = {back, MEMORY};
	struct wire_segment seg = {
		.local = &out,
		.local_count = 1,
		.remote = {.addr = (uintptr_t)b->memory, .key = b->key},
		.len = MEMORY};
	unsigned sent = b->packets, segments = a->segments;
	uint64_t end = uet_ep_now() + WAIT_NS;

	count += sent;
	while (b->packets < count && uet_ep_now() < end) {
		sent += sent < count && send_one(a, sent);
		both_turn(a, b);
	}
	for (size_t i = 0; i < MEMORY; i++)
		local[i] = (uint8_t)(i * 3 + (i >> 8) + count);
	memset(back, 0, MEMORY);
	if (b->packets != count || !a->link || uet_wire_ops.put(a->link, &seg) ||
	    !both_until(a, b, &a->segments, segments + 1))
		return false;
	seg.local = &in;
	return a->link && !uet_wire_ops.get(a->link, &seg) &&
	       both_until(a, b, &a->segments, segments + 2) && !a->bad && !b->bad &&
	       memcmp(local, b->memory, MEMORY) == 0 && memcmp(local, back, MEMORY) == 0;
}
