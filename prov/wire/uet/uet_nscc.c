/* SPDX-License-Identifier: BSD-2-Clause */
/* The window and what moves it. */
#include "config.h"

#include <string.h>

#include "prov/wire/uet/uet_nscc.h"

#define REF_BYTES    150000.0 /* 100 Gbit/s for 12 us: what the factors are made for */
#define GAMMA	     0.8
#define MAX_MD	     0.5
#define MIN_MD	     0.875 /* or flows that differ in little would never be alike */
#define AVG_WEIGHT   0.0125
#define LEAST_TARGET 4u /* part of the jitter; of the round trip */
#define QA_GATE	     3
#define QA_TARGETS   4u /* delay that says drops are near */
#define NEAR_JITTERS 2u /* above first_rtt: may be others' queue */
#define ADJUST_MTUS  8u
#define BELIEF	     10u /* base round trips: longer ones are somebody who didn't run */
#define STAMPS	     32u /* part of the jitter: what they can tell */
#define EXCUSED	     48u /* of what arrives, lost with nothing waiting: noise */
#define EXCUSED_MAX  16u /* part of the window, of one burst of losses */
#define PATIENCE     UINT64_C(5000000) /* unless they go on for this long */
#define MIN_FIRST    UINT64_C(100000000)
#define MIN_PERIOD   UINT64_C(10000000000)
#define WIDE	     2u
#define ASKS	     6u	 /* acknowledgements of each window that is wide */
#define FEW_PACKETS  2.5 /* in a window of fewer the target is longer, */
#define FEW_JITTERS  0.7 /* by so many for each */
#define PARTS	     16u /* of others: an ack of more makes room for a queue at once */
#define WND_MIN_MTUS 8u	 /* the largest window is at least this, however near the peer */
#define RECEIVED_MAX 0xffffffu
#define UNIT	     256u

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * A flow that begins while others fill the queue measures a base that has their queue in
 * it, and would be content with more delay than they are, for ever. So all round trips
 * that may be a queue's have one target in common; only a way that is known to be longer
 * has its own.
 */
static void set_base(struct uet_nscc *cc, uint64_t rtt)
{
	const struct uet_nscc_config *c = &cc->config;
	uint64_t alike = c->base_rtt ? c->base_rtt : c->first_rtt;
	bool near = rtt <= alike + NEAR_JITTERS * c->jitter;
	uint64_t way = near ? alike : rtt;
	double mtu = c->mtu;
	double a;

	cc->base_rtt = rtt;
	cc->common = way + c->jitter;
	cc->soft = max_u64(cc->common, rtt + c->jitter / LEAST_TARGET + 1);
	cc->target = cc->soft - rtt;
	cc->bdp = (uint64_t)((double)c->link * (double)cc->soft / 1e9);
	cc->bdp = max_u64(cc->bdp, max_u64(c->mtu, cc->packet));
	cc->first_wnd = max_u64(cc->bdp + cc->bdp / 2, (uint64_t)WND_MIN_MTUS * c->mtu);
	cc->max_wnd = cc->first_wnd * max_u64(c->widest, 1);
	a = (double)cc->bdp / REF_BYTES;
	/* By what is common to all: with each one's own target in it, who has measured a
	 * longer base would be faster. */
	cc->alpha = a * mtu / (double)max_u64(c->jitter, cc->soft / LEAST_TARGET);
	cc->fi = 5.0 * mtu * a;
	cc->eta = 0.15 * mtu * a;
	cc->fi_scale = 0.25 * a;
	if (!cc->lowered)
		cc->cwnd = max_u64(cc->cwnd, cc->first_wnd);
	cc->cwnd = min_u64(cc->cwnd, cc->max_wnd);
}

bool uet_nscc_init(struct uet_nscc *cc, const struct uet_nscc_config *config,
		   uint64_t now)
{
	uint64_t first = config->base_rtt ? config->base_rtt : config->first_rtt;

	if (config->mtu == 0 || config->link == 0 || first == 0 ||
	    first > UINT64_C(10000000000) || config->jitter > UINT64_C(10000000000))
		return false;
	memset(cc, 0, sizeof(*cc));
	cc->config = *config;
	cc->packet = config->mtu;
	cc->min_now = UINT64_MAX;
	cc->min_end = now + MIN_FIRST;
	set_base(cc, first);
	return true;
}

/* The smallest counts at once. A larger one only after a whole period without any
 * smaller: a sample that waited must not pass for the base, or the window would grow with
 * the queue. */
static void note_rtt(struct uet_nscc *cc, uint64_t rtt, uint64_t now)
{
	uint64_t base = cc->base_rtt;

	/* One that is far below what soft stamps can tell was stamped late at this end.
	 */
	rtt = max_u64(rtt, max_u64(cc->config.jitter / STAMPS, 1));
	if (now >= cc->min_end) {
		if (cc->min_now != UINT64_MAX)
			base = cc->min_now;
		cc->min_now = UINT64_MAX;
		cc->min_end = now + MIN_PERIOD;
	}
	cc->min_now = min_u64(cc->min_now, rtt);
	base = min_u64(base, rtt);
	if (cc->config.base_rtt)
		base = min_u64(base, cc->config.base_rtt);
	if (base != cc->base_rtt)
		set_base(cc, base);
}

bool uet_nscc_can_send(const struct uet_nscc *cc)
{
	return cc->inflight <= 0 || (uint64_t)cc->inflight + cc->packet <= cc->cwnd;
}

/* Nobody else is there: a flow among others never has as much. */
static bool is_wide(const struct uet_nscc *cc)
{
	return cc->cwnd >= WIDE * cc->first_wnd;
}

bool uet_nscc_has_room(const struct uet_nscc *cc, uint64_t bytes)
{
	uint64_t inflight = cc->inflight > 0 ? (uint64_t)cc->inflight : 0;

	return !is_wide(cc) || inflight <= cc->cwnd / 2 || inflight + bytes <= cc->cwnd;
}

bool uet_nscc_wants_ack(const struct uet_nscc *cc)
{
	uint64_t gathered = is_wide(cc) ? cc->cwnd / ASKS
					: min_u64(cc->config.ack_bytes, cc->cwnd / PARTS);

	return !uet_nscc_can_send(cc) || cc->cwnd < cc->config.ack_bytes ||
	       cc->unasked >= gathered;
}

void uet_nscc_asked(struct uet_nscc *cc)
{
	cc->unasked = 0;
}

void uet_nscc_sent(struct uet_nscc *cc, uint32_t size)
{
	cc->inflight += size;
	cc->unasked += size;
}

void uet_nscc_set_packet(struct uet_nscc *cc, uint32_t size)
{
	cc->packet = size;
	set_base(cc, cc->base_rtt);
	cc->cwnd = max_u64(cc->cwnd, size);
}

static void lower(struct uet_nscc *cc, uint64_t cwnd)
{
	cc->lowered = true;
	cc->cwnd = max_u64(cwnd, cc->packet);
	cc->count.decreases++;
}

static uint64_t count_received(struct uet_nscc *cc, const struct uet_nscc_ack *ack)
{
	uint32_t units = (ack->received - cc->received) & RECEIVED_MAX;
	uint64_t n = (uint64_t)units * UNIT;

	if (!ack->has_received || units > RECEIVED_MAX / 2)
		return 0;
	cc->received = ack->received;
	cc->inflight -= (int64_t)n;
	cc->bytes_ignored += n;
	cc->received_bytes += n;
	cc->achieved_bytes += n;
	cc->excuse = min_u64(cc->excuse + n / EXCUSED,
			     cc->cwnd / EXCUSED_MAX + 2 * (uint64_t)cc->config.mtu);
	return n;
}

/* The receiver can't keep up. True: no increase now. */
static bool penalty(struct uet_nscc *cc, const struct uet_nscc_ack *ack, uint64_t n)
{
	uint64_t inflight = cc->inflight > 0 ? (uint64_t)cc->inflight : 0;
	uint64_t cut = ack->pend * n >> 7;

	if (ack->pend > 0) {
		if (!cc->saved)
			cc->saved = cc->cwnd;
		lower(cc, min_u64(cc->cwnd, inflight));
		lower(cc, cc->cwnd > cut ? cc->cwnd - cut : 0);
		return true;
	}
	if (ack->restore && cc->saved) {
		cc->cwnd = min_u64(cc->saved, cc->max_wnd);
		cc->saved = 0;
	}
	return false;
}

static bool quick_adapt(struct uet_nscc *cc, bool loss, bool ce, uint64_t delay,
			uint64_t now)
{
	bool acted = cc->bytes_ignored < cc->bytes_to_ignore && ce;

	if (!acted && now >= cc->qa_end) {
		if (cc->qa_end != 0 &&
		    (cc->trigger_qa || loss || delay > QA_TARGETS * cc->soft) &&
		    cc->achieved_bytes < cc->first_wnd >> QA_GATE) {
			lower(cc, min_u64(cc->cwnd, cc->achieved_bytes));
			cc->bytes_to_ignore =
				cc->inflight > 0 ? (uint64_t)cc->inflight : 0;
			cc->bytes_ignored = 0;
			cc->trigger_qa = false;
			cc->count.quick++;
			acted = true;
		}
		cc->achieved_bytes = 0;
		cc->qa_end = now + cc->base_rtt + cc->target;
	}
	if (acted) {
		cc->inc_bytes = 0;
		cc->received_bytes = 0;
	}
	return acted;
}

static bool fast_increase(struct uet_nscc *cc, uint64_t n, uint64_t delay,
			  uint64_t target)
{
	if (delay * 10 >= target) {
		cc->fi_count = 0;
		cc->fast = false;
		return false;
	}
	cc->fi_count += n;
	if (!cc->fast && cc->fi_count <= cc->cwnd)
		return false;
	cc->fast = true;
	cc->cwnd = min_u64(cc->cwnd + (uint64_t)((double)n * cc->fi_scale), cc->max_wnd);
	return true;
}

static void decrease(struct uet_nscc *cc, uint64_t delay, uint64_t target, uint64_t now)
{
	double avg = cc->avg_delay;
	double keep;

	cc->fast = false;
	cc->fi_count = 0;
	if (avg <= (double)target || now - cc->md_at < cc->base_rtt + delay)
		return;
	keep = 1.0 - GAMMA * (avg - (double)target) / (avg + (double)cc->base_rtt);
	keep = keep < MIN_MD ? keep : MIN_MD;
	lower(cc, (uint64_t)((double)cc->cwnd * (keep > MAX_MD ? keep : MAX_MD)));
	cc->md_at = now;
}

static void fulfil(struct uet_nscc *cc, uint64_t delay, uint64_t now)
{
	bool period = now >= cc->adjust_end;

	if (!period && cc->received_bytes <= (uint64_t)ADJUST_MTUS * cc->config.mtu)
		return;
	cc->cwnd += (uint64_t)(cc->inc_bytes / (double)cc->cwnd);
	if (period) {
		cc->cwnd += (uint64_t)cc->eta;
		cc->adjust_end = now + cc->base_rtt + delay;
	}
	cc->cwnd = min_u64(cc->cwnd, cc->max_wnd);
	cc->inc_bytes = 0;
	cc->received_bytes = 0;
}

/* A round trip of many times the shortest is a thread that didn't run, unless it goes on.
 */
static bool believed(struct uet_nscc *cc, uint64_t rtt, uint64_t now)
{
	if (rtt <= BELIEF * (cc->base_rtt + cc->config.jitter)) {
		cc->late_since = 0;
		return true;
	}
	if (cc->late_since == 0)
		cc->late_since = now ? now : 1;
	if (now - cc->late_since >= PATIENCE)
		return true;
	cc->count.late++;
	return false;
}

/* A sample above target that wasn't marked, on a path that does mark, is noise. Two
 * windows' worth of samples make the average, however many they are. */
static void average(struct uet_nscc *cc, uint64_t n, uint64_t delay, uint64_t target,
		    bool ce)
{
	double sample = (double)delay;
	double weight = (double)n / (2.0 * (double)cc->cwnd);

	if (!ce && delay > target)
		sample = 0.25 * (double)cc->base_rtt;
	weight = weight > AVG_WEIGHT ? weight : AVG_WEIGHT;
	cc->avg_delay += (weight < 0.5 ? weight : 0.5) * (sample - cc->avg_delay);
}

/* Marks of a queue that is shorter than the target mean that others are to be avoided.
 * But where everything is marked nobody would ever move, and all would keep what they
 * have. */
static void decrease_marked(struct uet_nscc *cc, uint64_t delay, uint64_t now)
{
	uint64_t rtt = cc->base_rtt + delay;

	if (!cc->marked_since)
		cc->marked_since = now;
	if (now - cc->marked_since < rtt || now - cc->md_at < rtt)
		return;
	cc->marked_since = now;
	cc->md_at = now;
	lower(cc, (uint64_t)((double)cc->cwnd * MIN_MD));
}

static void quadrant(struct uet_nscc *cc, uint64_t n, uint64_t delay, uint64_t target,
		     bool ce, uint64_t now)
{
	if (!ce)
		cc->marked_since = 0;
	if (delay < target && !ce) {
		if (!fast_increase(cc, n, delay, target))
			cc->inc_bytes += cc->alpha * (double)n * (double)(target - delay);
	} else if (!ce) {
		cc->inc_bytes += cc->fi * (double)n;
	} else if (delay >= target) {
		decrease(cc, delay, target, now);
	} else {
		decrease_marked(cc, delay, now);
	}
}

/*
 * The target of this moment. In a window of few packets it is longer, where nothing but
 * delay tells of others: each of so many senders has one packet under way at least, and
 * those fill a queue beyond the usual target, which is never empty then; who began late
 * takes it for part of the way and would let it grow, while all others stay at one packet
 * for ever. With room above that queue all grow, and who has less grows more (flow
 * scaling, as in Swift, SIGCOMM 2020, but linear).
 */
static uint64_t target_now(const struct uet_nscc *cc, bool path_marks)
{
	uint64_t few = (uint64_t)(FEW_PACKETS * (double)cc->packet);
	uint64_t longest;

	if (path_marks || cc->cwnd >= few)
		return cc->target;
	longest = cc->common + (uint64_t)((double)cc->config.jitter * FEW_JITTERS *
					  (double)(few - cc->cwnd) / (double)cc->packet);
	return longest > cc->base_rtt + cc->target ? longest - cc->base_rtt : cc->target;
}

uint64_t uet_nscc_ack(struct uet_nscc *cc, const struct uet_nscc_ack *ack, uint64_t now)
{
	uint64_t n = count_received(cc, ack);
	uint64_t delay, target, longest;
	bool ce = ack->ce;

	cc->count.acks++;
	cc->count.marks += ack->ce;
	if (penalty(cc, ack, n) || !ack->has_rtt)
		return n;
	cc->count.samples++;
	note_rtt(cc, ack->rtt, now);
	if (!believed(cc, ack->rtt, now))
		return n;
	longest = BELIEF * (cc->base_rtt + cc->config.jitter);
	delay = min_u64(ack->rtt, longest);
	delay = delay > cc->base_rtt ? delay - cc->base_rtt : 0;
	/* Rule H2. */
	target = target_now(cc, ack->path_marks);
	if (!ack->path_marks && delay >= target)
		ce = true;
	average(cc, n, delay, target, ce);
	if (quick_adapt(cc, false, ce, delay, now))
		return n;
	quadrant(cc, n, delay, target, ce, now);
	fulfil(cc, delay, now);
	return n;
}

void uet_nscc_nack(struct uet_nscc *cc, uint32_t size, bool trimmed, uint64_t now)
{
	cc->inflight -= size;
	if (!trimmed)
		return;
	cc->avg_delay += AVG_WEIGHT * ((double)cc->base_rtt - cc->avg_delay);
	cc->bytes_ignored += size;
	cc->trigger_qa = true;
	if (!quick_adapt(cc, true, true, 0, now))
		lower(cc, cc->cwnd > size ? cc->cwnd - size : 0);
}

/* Where round trips say that nothing waits, a few losses are the network's, not ours. */
static bool excused(struct uet_nscc *cc, uint32_t size)
{
	if (cc->avg_delay >= (double)cc->target || cc->excuse < size)
		return false;
	cc->excuse -= size;
	return true;
}

void uet_nscc_lost(struct uet_nscc *cc, uint32_t size, bool evidence, uint64_t now)
{
	cc->inflight -= size;
	if (!evidence)
		return;
	cc->bytes_ignored += size;
	cc->count.losses++;
	if (excused(cc, size))
		return;
	if (now >= cc->loss_end) {
		cc->loss_floor = cc->cwnd / 2;
		cc->loss_end = now + cc->base_rtt + cc->target;
	}
	if (cc->cwnd > cc->loss_floor + size)
		lower(cc, cc->cwnd - size);
}

void uet_nscc_base(struct uet_nscc *cc, uint64_t rtt, uint64_t now)
{
	note_rtt(cc, rtt, now);
}
