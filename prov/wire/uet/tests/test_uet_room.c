/* SPDX-License-Identifier: BSD-2-Clause */
/* Places for contexts: who gets one, and whose is taken back. */
#include "config.h"

#include <errno.h>

#include "prov/wire/uet/uet_pds.h"
#include "util/tap.h"

#define S   UINT64_C(1000000000)
#define MTU 256u

static struct uet_pds *pds;
static uint8_t closed_host;
static int closed_err;
static uint64_t drawn;

static enum uet_verdict on_request(void *arg, struct uet_pdc *pdc,
				   const struct uet_pkt *pkt, bool room,
				   struct uet_reply *reply)
{
	(void)arg;
	(void)pdc;
	(void)pkt;
	(void)room;
	(void)reply;
	return UET_TAKEN;
}

static void on_done(void *arg, struct uet_pdc *pdc, void *cookie, int err,
		    const struct uet_pkt *resp)
{
	(void)arg;
	(void)pdc;
	(void)cookie;
	(void)err;
	(void)resp;
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
	(void)arg;
	(void)code;
	closed_host = uet_pdc_peer(pdc)->host[0];
	closed_err = err;
}

static uint64_t on_random(void *arg)
{
	(void)arg;
	return ++drawn;
}

static const struct uet_pds_events events = {on_request, on_done, on_opened, on_closed};

/* What a host sends, and the answer to it; false: there is none. */
static bool say(uint8_t host, const struct uet_pds_head *h, uint64_t now,
		struct uet_pds_head *answer)
{
	static const struct uet_ses_req req = {
		.op = UET_OP_NOOP, .som = true, .eom = true, .message = 1};
	struct uet_in in = {.from = {.host = {host}, .fep = 1}};
	uint8_t bytes[UET_HEAD_MAX];
	size_t len = uet_pds_put(bytes, h);
	struct uet_out out;
	struct uet_pkt pkt;

	if (h->next == UET_NEXT_REQ_STD)
		len += uet_req_put(bytes + len, &req);
	if (uet_pkt_parse(bytes, len, MTU, &pkt))
		tap_bail("a packet that isn't valid");
	uet_pds_rx(pds, &in, &pkt, now);
	if (!uet_pds_next(pds, now, &out) ||
	    uet_pkt_parse(out.head, out.head_len, MTU, &pkt))
		return false;
	*answer = pkt.pds;
	return true;
}

/* Opens a context, and shows that it hears us; false: there was no place. */
static bool opens(uint8_t host, uint16_t id, uint64_t now)
{
	struct uet_pds_head h = {.type = UET_RUD_REQ,
				 .next = UET_NEXT_REQ_STD,
				 .syn = true,
				 .spdcid = id,
				 .psn = 1000,
				 .clear = 999};
	struct uet_pds_head answer;

	if (!say(host, &h, now, &answer))
		tap_bail("no answer");
	if (answer.type == UET_NACK)
		return answer.code != UET_NACK_NO_PDC;
	h = (struct uet_pds_head){.type = UET_CP,
				  .ctl = UET_CTL_PROBE,
				  .spdcid = id,
				  .dpdcid = answer.spdcid,
				  .payload = 1001};
	return say(host, &h, now, &answer) && answer.probe;
}

/* Nothing comes from a peer that is sent to: it is told when the time is over, and how
 * long after that is bounded by when it is asked again. */
static void test_silence(uint64_t give_up)
{
	static const struct uet_ses_req req = {
		.op = UET_OP_NOOP, .som = true, .eom = true, .message = 1};
	struct uet_pds_config config = {.contexts = 3,
					.mtu = MTU,
					.give_up = give_up,
					.random = on_random,
					.events = &events};
	struct uet_peer to = {.host = {7}, .fep = 1};
	uint8_t ses[UET_SES_MAX];
	struct uet_send send = {.ses = ses, .next = UET_NEXT_REQ_STD};
	struct uet_pdc *pdc;
	struct uet_out out;
	uint64_t now = S, before = S, asked = 0;

	if (uet_pds_open(&config, &pds))
		tap_bail("out of memory");
	closed_err = closed_host = 0;
	send.ses_len = (uint32_t)uet_req_put(ses, &req);
	if (uet_pdc_dial(pds, &to, false, NULL, now, &pdc) ||
	    uet_pdc_send(pdc, &send, now))
		tap_bail("nothing can be sent");
	while (!closed_err && now <= S + 2 * give_up + 2 * S) {
		while (uet_pds_next(pds, now, &out))
			asked++;
		before = now;
		now = uet_pds_due(pds);
		uet_pds_tick(pds, now);
	}
	tap_diag("%.1f s: over after %.3f s, sent %lu times", (double)give_up / 1e9,
		 (double)(now - S) / 1e9, (unsigned long)asked);
	tap_ok(closed_err == -ETIMEDOUT && closed_host == 7,
	       "a peer that says nothing is over, and it is said which");
	tap_ok(now >= S + give_up && before < S + give_up,
	       "when it has been silent for so long, not before, and not once more");
	tap_ok(now <= S + give_up + uet_pds_config(pds)->rto_max,
	       "and no later than its next question");
	tap_ok(asked > 2, "it was asked again until then");
	uet_pds_close(pds);
}

int main(void)
{
	struct uet_pds_config config = {.contexts = 3,
					.half_open = 1,
					.per_peer = 2,
					.mtu = MTU,
					.random = on_random,
					.events = &events};

	if (uet_pds_open(&config, &pds))
		tap_bail("out of memory");
	tap_ok(opens(1, 11, S) && opens(2, 21, 2 * S), "two hosts open contexts");
	tap_ok(opens(2, 22, 3 * S), "one of them another");
	tap_ok(!opens(2, 23, 4 * S), "but not more than its share");
	tap_ok(!opens(3, 31, 5 * S), "when all are in use there is none for a third");
	tap_is_int(closed_host, 0, "and nobody lost one");
	tap_ok(opens(1, 11, 6 * S), "a context that there is goes on");
	tap_ok(opens(3, 31, 25 * S), "one that was silent for long makes room");
	tap_ok(closed_host == 2 && closed_err == -ETIMEDOUT,
	       "that was silent the longest, and it is told");
	tap_ok(opens(4, 41, 26 * S - 1) && closed_host == 2, "then that host's other");
	tap_ok(!opens(5, 51, 26 * S - 1),
	       "one that spoke less than 20 s ago keeps its own");
	tap_is_int((int64_t)uet_pds_stats(pds)->reaped, 2, "two were taken back");
	uet_pds_close(pds);
	test_silence(S);
	test_silence(20 * S);
	return tap_done();
}
