/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "prov/wire/uet/tests/uet_sim_air.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "prov/wire/uet/uet_pds_int.h" /* how far a context is */

static void broken(struct sim *s, const char *what)
{
	if (!s->r->error)
		s->r->error = what;
}

/* Ends may fail where the network or a peer is gone; nowhere else. */
static bool may_fail(const struct sim *s)
{
	return s->dead || s->restarted;
}

/* Data that leaves for the first time fits what the peer and the window allow. */
static void check_out(struct sim *s, const struct uet_out *out)
{
	const struct uet_nscc *cc;
	struct uet_pkt pkt;
	uint8_t bytes[ROOM];

	memcpy(bytes, out->head, out->head_len);
	if (out->payload_len)
		memcpy(bytes + out->head_len, out->payload, out->payload_len);
	if (uet_pkt_parse(bytes, out->head_len + out->payload_len, MTU, &pkt))
		broken(s, "a packet leaves that the validator refuses");
	if (pkt.pds.type == UET_NACK && pkt.pds.code == UET_NACK_OUT_OF_WINDOW)
		broken(s, "a packet arrived beyond the window");
	if (!out->pdc || out->cls != UET_CLASS_DATA || pkt.pds.retx)
		return;
	cc = uet_pdc_nscc(out->pdc);
	if (cc->inflight > (int64_t)cc->cwnd && cc->inflight > (int64_t)cc->config.mtu)
		broken(s, "more is under way than the congestion window");
	if (uet_pdc_open_packets(out->pdc) > s->c->window)
		broken(s, "more packets are open than the ring has places");
}

/* The application. */

static void fill(struct sim *s, struct item *it)
{
	it->len = (uint8_t)(s->c->bytes ? sim_draw(s) % s->c->bytes : 0);
	for (uint32_t i = 0; i < it->len; i++)
		it->bytes[i] = (uint8_t)sim_draw(s);
}

static int give(struct side *side, struct uet_pdc *pdc, uint32_t dial, uint32_t seq)
{
	struct sim *s = side->sim;
	struct item *it = &s->item[s->items];
	struct uet_ses_req req = {.op = UET_OP_SEND, .som = true, .eom = true};
	struct uet_send send = {.next = UET_NEXT_REQ_STD};
	uint8_t ses[UET_SES_MAX];
	int rc;

	if (s->items == s->items_max)
		return -EAGAIN;
	*it = (struct item){.side = side->no, .dial = dial, .seq = seq};
	fill(s, it);
	req.message = (uint16_t)(s->items % 65535 + 1);
	req.match = s->items;
	req.length = req.part = it->len;
	send.ses = ses;
	send.ses_len = (uint32_t)uet_req_put(ses, &req);
	send.ar = sim_odds(s, 100);
	send.payload = it->bytes;
	send.payload_len = it->len;
	send.cookie = it;
	rc = uet_pdc_send(pdc, &send, s->now);
	if (rc == 0) {
		it->sent = true;
		s->items++;
	}
	return rc;
}

static struct uet_reply reply_for(uint32_t item)
{
	struct uet_ses_resp resp = {.op = UET_RESP_RESPONSE,
				    .rc = UET_RC_NO_MATCH,
				    .message = (uint16_t)(item % 65535 + 1),
				    .modified = item};
	struct uet_reply reply = {.next = UET_NEXT_RESP};

	reply.len = (uint8_t)uet_resp_put(reply.bytes, UET_NEXT_RESP, &resp);
	return reply;
}

static bool is_dial_of(const struct sim *s, const struct item *it)
{
	return it->dial < s->c->contexts;
}

static void check_request(struct sim *s, struct item *it, const struct uet_pkt *pkt)
{
	struct dial *dial;

	if (it->arrived && !s->restarted)
		broken(s, "a packet arrived twice");
	if (it->done && !may_fail(s))
		broken(s, "a packet was over before it arrived");
	if (pkt->payload_len != it->len || memcmp(pkt->payload, it->bytes, it->len) != 0)
		broken(s, "a packet arrived with other bytes");
	if (!is_dial_of(s, it))
		return;
	dial = &s->side[it->side].dial[it->dial];
	if (dial->ordered && dial->taken != it->seq && !s->restarted)
		broken(s, "an ordered packet overtook another");
}

static void taken(struct side *side, struct uet_pdc *pdc, struct item *it)
{
	struct sim *s = side->sim;
	struct dial *dial;

	it->arrived = true;
	s->r->delivered++;
	if (!is_dial_of(s, it))
		return;
	dial = &s->side[it->side].dial[it->dial];
	dial->taken++;
	if (sim_odds(s, s->c->reverse))
		give(side, pdc, UINT32_MAX, 0);
	if (dial->ask && dial->taken == s->c->packets)
		uet_pdc_close(pdc, s->now);
}

static enum uet_verdict on_request(void *arg, struct uet_pdc *pdc,
				   const struct uet_pkt *pkt, bool room,
				   struct uet_reply *reply)
{
	struct side *side = arg;
	struct sim *s = side->sim;
	uint64_t no = pkt->req.match;
	struct item *it;

	if (uet_pdc_peer(pdc)->fep >= 2)
		return UET_TAKEN;
	if (pkt->pds.next != UET_NEXT_REQ_STD || no >= s->items)
		return broken(s, "a packet arrived that nobody sent"), UET_TAKEN;
	it = &s->item[no];
	check_request(s, it, pkt);
	if (sim_odds(s, s->c->refuse))
		return UET_NO_BUFFER;
	it->verdict = UET_TAKEN;
	if (sim_odds(s, s->c->reply))
		it->verdict = UET_REPLIED;
	else if (sim_odds(s, s->c->later) && side->laters < LATERS)
		it->verdict = UET_LATER;
	if (it->verdict != UET_TAKEN && !room)
		return UET_NO_BUFFER;
	if (it->verdict == UET_REPLIED)
		*reply = reply_for((uint32_t)no);
	if (it->verdict == UET_LATER)
		side->later[side->laters++] =
			(struct later){pdc, pkt->pds.psn,
				       s->now + sim_draw(s) % (30 * MS), (uint32_t)no};
	taken(side, pdc, it);
	return it->verdict;
}

static void on_done(void *arg, struct uet_pdc *pdc, void *cookie, int err,
		    const struct uet_pkt *resp)
{
	struct side *side = arg;
	struct sim *s = side->sim;
	struct item *it = cookie;
	uint32_t no = (uint32_t)(it - s->item);
	bool own = it->verdict != UET_TAKEN;

	(void)pdc;
	if (it->done || it->side != side->no)
		broken(s, "a packet was over twice");
	it->done = true;
	if (is_dial_of(s, it))
		side->dial[it->dial].ended++;
	if (err) {
		s->r->failed++;
		if (!may_fail(s))
			broken(s, "a packet failed although nothing broke");
		return;
	}
	if (!it->arrived)
		broken(s, "a packet was acknowledged that had not arrived");
	if (!s->restarted && own != (resp != NULL))
		broken(s, "a response was lost or made up");
	if (resp && resp->resp.modified != no)
		broken(s, "a response of another packet");
}

static int on_opened(void *arg, struct uet_pdc *pdc, const struct uet_pkt *pkt)
{
	(void)arg;
	(void)pdc;
	(void)pkt;
	return 0;
}

static void on_closed(void *arg, struct uet_pdc *pdc, int err, uint8_t code)
{
	struct side *side = arg;
	struct sim *s = side->sim;
	const struct uet_nscc *cc = uet_pdc_nscc(pdc);

	(void)code;
	s->r->ended += err != 0;
	if (err && !may_fail(s) && uet_pdc_peer(pdc)->fep < 2)
		broken(s, "a context failed although nothing broke");
	if (!err && (cc->inflight > 0 || cc->inflight <= -256))
		broken(s, "bytes are left under way when nothing is");
	for (uint32_t i = 0; i < side->laters; i++)
		if (side->later[i].pdc == pdc)
			side->later[i--] = side->later[--side->laters];
	s->r->retired += uet_pdc_paths(pdc)->retirements;
	s->r->returned += uet_pdc_paths(pdc)->returns;
	for (uint32_t i = 0; i < s->c->contexts; i++)
		if (side->dial[i].pdc == pdc) {
			side->dial[i].pdc = NULL;
			side->dial[i].over = true;
			if (!err && side->dial[i].ended != s->c->packets &&
			    !side->dial[i].ask)
				broken(s, "a context closed with packets open");
		}
}

static uint64_t on_random(void *arg)
{
	struct side *side = arg;
	uint64_t v = sim_draw(side->sim);

	/* First numbers near the wrap, and everywhere; but where an end is another, ids
	 * that are as good as drawn. */
	return v & 1 || side->sim->c->restarts ? v : v | 0xffffffc0u;
}

static const struct uet_pds_events events = {on_request, on_done, on_opened, on_closed};

static bool side_open(struct side *side)
{
	const struct uet_sim_config *c = side->sim->c;
	struct uet_pds_config config = {.contexts = (c->flood ? 5 : 4) * DIALS,
					.half_open = c->flood ? DIALS : 2 * DIALS,
					.per_peer = 2 * DIALS,
					.window = c->window,
					.responses = 4,
					.mtu = MTU,
					/* Some wait for room for four packets. */
					.piece = sim_draw(side->sim) % 2 * 4 * ROOM,
					.ack_bytes = 4096,
					.give_up = GIVE_UP,
					.half_open_time =
						c->flood ? 500 * MS : 2 * GIVE_UP,
					.quarantine = 400 * MS,
					.close_time = 2 * GIVE_UP,
					.cc = {.widest = 4},
					.path = {.paths = c->paths, .burst_max = 44},
					.random = on_random,
					.events = &events,
					.arg = side};

	return uet_pds_open(&config, &side->pds) == 0;
}

static void app_dial(struct side *side, uint32_t i)
{
	struct sim *s = side->sim;
	struct dial *d = &side->dial[i];

	d->ordered = sim_odds(s, s->c->ordered);
	d->ask = sim_odds(s, s->c->asked);
	if (uet_pdc_dial(side->pds, &s->side[!side->no].addr, d->ordered, NULL, s->now,
			 &d->pdc))
		broken(s, "no context is free at the beginning");
}

static void app_act(struct side *side)
{
	struct sim *s = side->sim;

	for (uint32_t i = 0; i < s->c->contexts; i++) {
		struct dial *d = &side->dial[i];

		while (d->pdc && !d->closing && d->given < s->c->packets &&
		       (s->c->backlog || sim_odds(s, 500)) &&
		       give(side, d->pdc, i, d->given) == 0)
			d->given++;
		if (d->pdc && !d->closing && !d->ask && d->given == s->c->packets) {
			d->closing = true;
			uet_pdc_close(d->pdc, s->now);
		}
	}
	for (uint32_t i = 0; i < side->laters; i++) {
		struct later l = side->later[i];
		struct uet_reply reply = reply_for(l.item);

		if (s->now < l.at)
			continue;
		side->later[i--] = side->later[--side->laters];
		if (sim_odds(s, 500)) {
			s->item[l.item].verdict = UET_TAKEN;
			uet_pdc_respond(l.pdc, l.psn, NULL, s->now);
		} else {
			uet_pdc_respond(l.pdc, l.psn, &reply, s->now);
		}
	}
}

static uint64_t app_due(const struct side *side)
{
	const struct sim *s = side->sim;
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < side->laters; i++)
		if (side->later[i].at < due)
			due = side->later[i].at;
	for (uint32_t i = 0; i < s->c->contexts; i++)
		if (side->dial[i].pdc && side->dial[i].given < s->c->packets &&
		    uet_pdc_room(side->dial[i].pdc) > 0 && s->now + 10 * US < due)
			due = s->now + 10 * US;
	return due;
}

/* Every context has been proven to its peer: from now on nobody can harm it. */
static bool all_proven(const struct sim *s)
{
	for (uint32_t n = 0; n < 2; n++)
		for (uint32_t i = 0; i < s->c->contexts; i++) {
			const struct dial *d = &s->side[n].dial[i];

			if (!d->over && (d->pdc->peer_id == 0 || d->pdc->tx.unproven))
				return false;
		}
	return true;
}

/* Strangers whose address is forged: they never answer. */
static void flood(struct sim *s)
{
	struct side *side = &s->side[sim_draw(s) & 1];
	struct uet_ses_req req = {
		.op = UET_OP_SEND, .som = true, .eom = true, .message = 1};
	struct uet_pds_head h = {.type = UET_RUD_REQ,
				 .next = UET_NEXT_REQ_STD,
				 .syn = true,
				 .spdcid = (uint16_t)(sim_draw(s) | 1),
				 .psn = (uint32_t)sim_draw(s)};
	uint8_t bytes[UET_HEAD_MAX];
	struct uet_in in = {.from = {.fep = 2 + (uint32_t)(sim_draw(s) >> 40)}};
	struct uet_pkt pkt;
	size_t len;

	h.clear = h.psn - 1;
	in.from.host[0] = (uint8_t)sim_draw(s);
	len = uet_pds_put(bytes, &h);
	len += uet_req_put(bytes + len, &req);
	if (uet_pkt_parse(bytes, len, MTU, &pkt))
		broken(s, "a forged packet isn't even valid");
	else
		uet_pds_rx(side->pds, &in, &pkt, s->now);
}

static void deliver(struct sim *s, uint32_t slot)
{
	struct dgram *d = &s->air[slot];
	struct side *to = &s->side[d->to];
	struct uet_in in = {
		.from = d->from, .entropy = d->entropy, .ce = d->ce, .stamp = d->at};
	struct uet_pkt pkt;
	uint8_t *bytes = malloc(d->len ? d->len : 1); /* reading beyond is seen */

	if (bytes) {
		memcpy(bytes, d->bytes, d->len);
		if (uet_pkt_parse(bytes, d->len, MTU, &pkt))
			broken(s, "a packet was refused on arrival");
		else
			uet_pds_rx(to->pds, &in, &pkt, s->now);
		free(bytes);
	}
	s->unused[s->in_air] = slot;
}

static bool runs(const struct side *side)
{
	return side->sim->now >= side->paused_until;
}

/* What one end does when it runs: takes what came, acts, sends. */
static void pump(struct side *side)
{
	struct uet_out out;

	if (!runs(side))
		return;
	uet_pds_tick(side->pds, side->sim->now);
	app_act(side);
	for (uint32_t n = 0; uet_pds_next(side->pds, side->sim->now, &out); n++) {
		check_out(side->sim, &out);
		sim_send(side, &out);
		if (n > 100000)
			return broken(side->sim, "it never stops sending");
	}
}

static void take_arrivals(struct sim *s)
{
	while (s->in_air > 0) {
		struct dgram *d = &s->air[s->heap[0]];

		if (d->at > s->now)
			return;
		if (!runs(&s->side[d->to])) {
			/* It waits in the socket; its stamp doesn't matter then. */
			uint32_t slot = sim_air_pop(s);

			s->air[slot].at = s->side[s->air[slot].to].paused_until;
			sim_air_push(s, slot);
			continue;
		}
		deliver(s, sim_air_pop(s));
	}
}

static void add_stats(struct uet_pds_stats *to, const struct uet_pds_stats *from)
{
	const uint64_t *f = (const uint64_t *)from;
	uint64_t *t = (uint64_t *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*t); i++)
		t[i] += f[i];
}

static void one_thing(struct sim *s)
{
	struct side *side = &s->side[sim_draw(s) & 1];

	s->event_at = UINT64_MAX;
	if (s->c->dies)
		s->dead = true;
	if (s->c->pause)
		side->paused_until = s->now + 1000 * MS;
	if (!s->c->restarts)
		return;
	s->restarted = true;
	add_stats(&s->r->stats, uet_pds_stats(side->pds));
	uet_pds_close(side->pds);
	side->laters = 0;
	for (uint32_t i = 0; i < s->c->contexts; i++) {
		side->dial[i].pdc = NULL;
		side->dial[i].over = true;
	}
	for (uint32_t i = 0; i < s->items; i++)
		if (s->item[i].side == side->no)
			s->item[i].done = true;
	if (!side_open(side))
		broken(s, "no memory");
}

static bool all_over(const struct sim *s)
{
	for (uint32_t n = 0; n < 2; n++)
		for (uint32_t i = 0; i < s->c->contexts; i++)
			if (!s->side[n].dial[i].over)
				return false;
	return true;
}

static uint64_t next_time(const struct sim *s)
{
	uint64_t t = s->in_air > 0 ? s->air[s->heap[0]].at : UINT64_MAX;

	for (uint32_t n = 0; n < 2; n++) {
		const struct side *side = &s->side[n];
		uint64_t due = uet_pds_due(side->pds);
		uint64_t app = app_due(side);

		due = app < due ? app : due;
		due = due < side->paused_until ? side->paused_until : due;
		t = due < t ? due : t;
	}
	return s->event_at < t ? s->event_at : t;
}

static void check_end(struct sim *s)
{
	for (uint32_t i = 0; i < s->items; i++) {
		const struct item *it = &s->item[i];

		if (!it->done && is_dial_of(s, it))
			broken(s, "a packet was never over");
		if (!it->arrived && !may_fail(s))
			broken(s, "a packet never arrived");
	}
}

static void run(struct sim *s)
{
	for (uint64_t steps = 0; !all_over(s) && !s->r->error; steps++) {
		uint64_t next;

		pump(&s->side[0]);
		pump(&s->side[1]);
		if (s->c->flood && sim_odds(s, 200) && all_proven(s))
			flood(s);
		next = next_time(s);
		if (next == UINT64_MAX) {
			broken(s, "nothing happens any more");
		} else if (next > LONGEST || steps > 3000000) {
			broken(s, "it never ends");
		} else {
			s->now = next > s->now ? next : s->now;
			if (s->now >= s->event_at)
				one_thing(s);
			take_arrivals(s);
		}
	}
	if (!s->r->error)
		check_end(s);
	/* Nobody proved to be behind what strangers opened. */
	if (!s->c->flood || s->r->error)
		return;
	s->now += 1000 * MS;
	for (uint32_t n = 0; n < 2; n++) {
		uet_pds_tick(s->side[n].pds, s->now);
		if (s->side[n].pds->half > 0)
			broken(s, "strangers' contexts stay");
	}
}

static bool sim_open(struct sim *s)
{
	const struct uet_sim_config *c = s->c;

	s->items_max = 4 * c->contexts * c->packets + 64;
	s->item = calloc(s->items_max, sizeof(*s->item));
	if (!s->item)
		return false;
	for (uint32_t i = 0; i < IN_AIR; i++)
		s->unused[i] = i;
	s->now = 1000 * MS;
	s->hole_path = UINT32_MAX;
	s->event_at =
		c->dies || c->restarts || c->pause
			? s->now + sim_draw(s) % (sim_draw(s) & 1 ? 300 * US : 5 * MS)
			: UINT64_MAX;
	if (c->hole || c->heals) {
		s->hole_path = (uint32_t)sim_draw(s) % c->paths;
		s->hole_end = c->heals ? s->now + 500 * MS : UINT64_MAX;
	}
	for (uint8_t n = 0; n < 2; n++) {
		s->side[n].sim = s;
		s->side[n].no = n;
		s->side[n].addr = (struct uet_peer){.host = {n + 1}, .fep = n};
		if (!side_open(&s->side[n]))
			return false;
	}
	return true;
}

bool uet_sim_run(const struct uet_sim_config *config, uint64_t seed,
		 struct uet_sim_result *result)
{
	static struct sim s;
	bool good;

	memset(&s, 0, offsetof(struct sim, heap));
	memset(result, 0, sizeof(*result));
	s.c = config;
	s.r = result;
	s.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	sim_draw(&s);
	good = sim_open(&s);
	if (good) {
		for (uint32_t n = 0; n < 2; n++)
			for (uint32_t i = 0; i < config->contexts; i++)
				app_dial(&s.side[n], i);
		run(&s);
		result->ns = s.now - 1000 * MS;
	}
	for (uint32_t n = 0; n < 2; n++)
		if (s.side[n].pds) {
			add_stats(&result->stats, uet_pds_stats(s.side[n].pds));
			uet_pds_close(s.side[n].pds);
		}
	free(s.item);
	return good;
}
