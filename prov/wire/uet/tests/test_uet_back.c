/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests both ways that are answered by packets of their own, as gets are, by ends that
 * have few places for answers, over a network that loses packets: neither end ever waits
 * for the other's waiting. On a virtual clock; arguments SEED show another run.
 */
#include "config.h"

#include "prov/wire/uet/uet_pds.h"
#include "util/tap.h"

#include <errno.h>
#include <string.h>

#define US	UINT64_C(1000)
#define MS	UINT64_C(1000000)
#define WINDOW	16u
#define ANSWERS 4u
#define WANTED	300u
#define AIR	256u
#define BYTES	256u

struct flight {
	uint64_t at;
	uint8_t to;
	uint16_t entropy;
	uint32_t len;
	uint8_t bytes[UET_HEAD_MAX + BYTES];
};

struct end {
	struct uet_pds *pds;
	struct uet_pdc *pdc;
	uint32_t asked, came, answers;
	uint8_t no;
	bool over;
};

static struct end end[2];
static struct flight air[AIR]; /* first in, first out: all take as long */
static uint32_t air_first, air_count;
static uint64_t now, state, drop;
static const uint8_t data[BYTES];

static uint64_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(0x2545f4914f6cdd1d);
}

static enum uet_verdict answer(struct end *e, struct uet_pdc *pdc,
			       const struct uet_pkt *pkt)
{
	bool lowest = uet_pdc_lowest(pdc, pkt->pds.psn);
	struct uet_ses_resp resp = {.op = UET_RESP_WITH_DATA,
				    .rc = UET_RC_OK,
				    .message = pkt->req.message,
				    .read = pkt->req.message,
				    .modified = BYTES,
				    .part = BYTES};
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {.ses = ses,
				.next = UET_NEXT_RESP_DATA,
				.payload = data,
				.payload_len = BYTES,
				.cookie = e};

	if (e->answers >= ANSWERS ||
	    (!lowest && (e->answers + 1 >= ANSWERS || uet_pdc_room_back(pdc) <= 1)))
		return UET_NO_BUFFER;
	send.ses_len = (uint32_t)uet_resp_put(ses, UET_NEXT_RESP_DATA, &resp);
	if (uet_pdc_send(pdc, &send, now))
		return UET_NO_BUFFER;
	e->answers++;
	return UET_TAKEN;
}

static enum uet_verdict on_request(void *arg, struct uet_pdc *pdc,
				   const struct uet_pkt *pkt, bool room,
				   struct uet_reply *reply)
{
	struct end *e = arg;

	(void)room;
	(void)reply;
	if (pkt->pds.next == UET_NEXT_REQ_STD)
		return answer(e, pdc, pkt);
	e->asked--;
	e->came++;
	return UET_TAKEN;
}

static void on_done(void *arg, struct uet_pdc *pdc, void *cookie, int err,
		    const struct uet_pkt *resp)
{
	(void)arg;
	(void)pdc;
	(void)err;
	(void)resp;
	if (cookie)
		((struct end *)cookie)->answers--;
}

static int on_opened(void *arg, struct uet_pdc *pdc, const struct uet_pkt *pkt)
{
	(void)pkt;
	((struct end *)arg)->pdc = pdc;
	return 0;
}

static void on_closed(void *arg, struct uet_pdc *pdc, int err, uint8_t code)
{
	(void)pdc;
	(void)err;
	(void)code;
	((struct end *)arg)->over = true;
}

static uint64_t on_random(void *arg)
{
	(void)arg;
	return draw();
}

static const struct uet_pds_events events = {on_request, on_done, on_opened, on_closed};

static void ask(struct end *e)
{
	while (e->pdc && !e->over && e->came + e->asked < WANTED && e->asked < ANSWERS) {
		struct uet_ses_req req = {
			.op = UET_OP_SEND, .som = true, .eom = true, .message = 1};
		uint8_t ses[UET_SES_MAX];
		struct uet_send send = {.ses = ses, .next = UET_NEXT_REQ_STD};

		send.ses_len = (uint32_t)uet_req_put(ses, &req);
		if (uet_pdc_send(e->pdc, &send, now))
			return;
		e->asked++;
	}
}

static void leave(struct end *e)
{
	struct uet_out out;

	while (uet_pds_next(e->pds, now, &out)) {
		struct flight *f = &air[(air_first + air_count) % AIR];

		if (air_count == AIR || draw() >> 32 < drop)
			continue;
		air_count++;
		f->at = now + 10 * US;
		f->to = !e->no;
		f->entropy =
			(uint16_t)(out.path == UET_PATH_ECHO ? out.entropy : out.path);
		f->len = out.head_len + out.payload_len;
		memcpy(f->bytes, out.head, out.head_len);
		if (out.payload_len)
			memcpy(f->bytes + out.head_len, out.payload, out.payload_len);
	}
}

static void arrive(void)
{
	while (air_count && air[air_first].at <= now) {
		const struct flight *f = &air[air_first];
		struct uet_in in = {.from = {.host = {1}, .fep = !f->to},
				    .entropy = f->entropy};
		struct uet_pkt pkt;

		if (uet_pkt_parse(f->bytes, f->len, BYTES, &pkt))
			tap_bail("a packet leaves that the validator refuses");
		air_first = (air_first + 1) % AIR;
		air_count--;
		uet_pds_rx(end[f->to].pds, &in, &pkt, now);
	}
}

static bool done(void)
{
	return end[0].came == WANTED && end[1].came == WANTED;
}

static void run(uint64_t seed, uint64_t in_1000)
{
	const uint64_t until = 600 * 1000 * MS;

	memset(end, 0, sizeof(end));
	state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	drop = (in_1000 << 32) / 1000;
	air_count = 0;
	now = MS;
	for (uint8_t n = 0; n < 2; n++) {
		struct uet_pds_config config = {.contexts = 4,
						.window = WINDOW,
						.mtu = BYTES,
						.give_up = until,
						.random = on_random,
						.events = &events,
						.arg = &end[n]};

		end[n].no = n;
		if (uet_pds_open(&config, &end[n].pds))
			tap_bail("out of memory");
	}
	if (uet_pdc_dial(end[0].pds, &(struct uet_peer){.host = {1}, .fep = 1}, false,
			 NULL, now, &end[0].pdc))
		tap_bail("no context is free at the beginning");
	while (!done() && now < until && !end[0].over && !end[1].over) {
		uint64_t next = air_count ? air[air_first].at : UINT64_MAX;

		for (unsigned n = 0; n < 2; n++) {
			uet_pds_tick(end[n].pds, now);
			ask(&end[n]);
			leave(&end[n]);
		}
		for (unsigned n = 0; n < 2; n++)
			next = uet_pds_due(end[n].pds) < next ? uet_pds_due(end[n].pds)
							      : next;
		if (air_count && air[air_first].at < next)
			next = air[air_first].at;
		now = next > now ? next : now + 1;
		arrive();
	}
	for (unsigned n = 0; n < 2; n++)
		uet_pds_close(end[n].pds);
}

int main(int argc, char **argv)
{
	static const uint64_t losses[] = {0, 10, 50, 200};
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t seeds = argc > 1 ? 1 : 200;

	for (unsigned i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		unsigned stuck = 0;

		for (uint64_t n = 0; n < seeds; n++) {
			run(seed + n, losses[i]);
			if (!done() && stuck++ == 0)
				tap_diag("seed %" PRIu64 ": %u and %u of %u came, %u and "
					 "%u answers wait",
					 seed + n, end[0].came, end[1].came, WANTED,
					 end[0].answers, end[1].answers);
		}
		tap_ok(stuck == 0, "gets both ways end, %.1f %% of packets lost",
		       (double)losses[i] / 10);
	}
	return tap_done();
}
