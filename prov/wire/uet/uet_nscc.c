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
#define NEAR_JITTERS 4u /* above first_rtt: may be others' queue */
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
#define FEW_PACKETS  3.0 /* in a window of fewer the target is longer, */
#define FEW_JITTERS  0.5 /* by so many for each */
#define LEAST	     16u /* part of a packet that a window is at least */
#define PARTS	     16u /* of others: an ack of more makes room for a queue at once */
#define WND_MIN_MTUS 8u	 /* the largest window is at least this, however near the peer */
#define RECEIVED_MAX 0xffffffu
#define UNIT	     256u
#define SLOW	     2.0 /* times as long as on the usual link: a packet's time on a slow one */
#define DRAIN	     8.0 /* packets that may wait on such, however long they take */
#define SLOW_STEPS   8.0 /* part of the usual steps that a slow link has */
#define TRAIN	     16u /* packets by which a link is measured */
#define OUTLIER	     4u	 /* times what was measured before */
#define CROWD	     8u	 /* of so many packets one is lost where many begin at once */
#define BACK_PERIOD  UINT64_C(1000000000)
#define BACK_LONGEST UINT64_C(60000000) /* what 15 bits of UET_NSCC_BACK_NS can tell */

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A link that is much slower than was thought. */
static bool is_slow(const struct uet_nscc *cc)
{
	return (double)cc->spread * (double)cc->config.link > SLOW * 1024e9;
}

/* Longer ones are somebody who didn't run. */
static uint64_t longest_rtt(const struct uet_nscc *cc)
{
	return BELIEF * (cc->base_rtt + cc->config.jitter + cc->drain);
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
	double link = (double)c->link;
	double a, least;
	double usual = 1024e9 / link;

	cc->drain = 0;
	if (is_slow(cc)) {
		link = 1024e9 / (double)cc->spread;
		cc->drain = (uint64_t)(((double)cc->spread - SLOW * usual) * DRAIN *
				       cc->packet / 1024);
	}
	cc->base_rtt = rtt;
	cc->common = way + c->jitter + cc->drain;
	cc->soft = max_u64(cc->common, rtt + cc->drain + c->jitter / LEAST_TARGET + 1);
	cc->target = cc->soft - rtt;
	cc->bdp = (uint64_t)(link * (double)cc->soft / 1e9);
	cc->bdp = max_u64(cc->bdp, max_u64(c->mtu, cc->packet));
	cc->first_wnd = max_u64(cc->bdp + cc->bdp / 2, (uint64_t)WND_MIN_MTUS * c->mtu);
	cc->max_wnd = cc->first_wnd * max_u64(c->widest, 1);
	a = (double)cc->bdp / REF_BYTES;
	least = (double)c->link * (double)(cc->soft - cc->drain) / 1e9 / REF_BYTES /
		SLOW_STEPS;
	a = a > least ? a : least;
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

static uint64_t few_packets(const struct uet_nscc *cc)
{
	return (uint64_t)(FEW_PACKETS * (double)cc->packet);
}

/* The shortest of a period. Where a window has become small and many packets were lost, a
 * queue was never empty that all of a crowd measure with their ways, each another part of
 * it: it counts as far as it doesn't make the target another than theirs. */
static uint64_t base_of_period(const struct uet_nscc *cc)
{
	const struct uet_nscc_config *c = &cc->config;
	uint64_t most = cc->common - c->jitter / LEAST_TARGET - 1;

	if (cc->cwnd >= few_packets(cc) || CROWD * (cc->count.losses - cc->losses_then) <=
						   cc->count.samples - cc->samples_then)
		return cc->min_now;
	return min_u64(cc->min_now,
		       max_u64(cc->base_rtt, most - min_u64(most, cc->drain)));
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
			base = base_of_period(cc);
		cc->losses_then = cc->count.losses;
		cc->samples_then = cc->count.samples;
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
	return cc->inflight <= (int64_t)cc->cwnd - (int64_t)cc->packet ||
	       (cc->inflight <= 0 && !cc->waits);
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
	cc->cwnd = max_u64(cwnd, cc->packet / LEAST + 1);
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
		cc->qa_end = now + cc->base_rtt + cc->target + cc->waited;
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
	if (avg <= (double)target || now - cc->md_at < cc->base_rtt + delay + cc->waited)
		return;
	keep = 1.0 - GAMMA * (avg - (double)target) / (avg + (double)cc->base_rtt);
	keep = keep < MIN_MD ? keep : MIN_MD;
	lower(cc, (uint64_t)((double)cc->cwnd * (keep > MAX_MD ? keep : MAX_MD)));
	cc->md_at = now;
}

static void fulfil(struct uet_nscc *cc, uint64_t delay, uint64_t now)
{
	bool period = now >= cc->adjust_end;
	double part = 1, step;

	if (!period && cc->received_bytes <= (uint64_t)ADJUST_MTUS * cc->config.mtu)
		return;
	if (cc->cwnd < cc->packet) {
		part = (double)cc->cwnd / (double)cc->packet;
		part *= part;
	}
	step = part * cc->inc_bytes / (double)cc->cwnd;
	if (period) {
		step += cc->eta;
		cc->adjust_end = now + cc->base_rtt + delay + cc->waited;
	}
	cc->cwnd += (uint64_t)step;
	cc->cwnd = min_u64(cc->cwnd, cc->max_wnd);
	cc->inc_bytes = 0;
	cc->received_bytes = 0;
}

/* A round trip of many times the shortest is a thread that didn't run, unless it goes on.
 */
static bool believed(struct uet_nscc *cc, uint64_t rtt, uint64_t now)
{
	if (rtt <= longest_rtt(cc)) {
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
	uint64_t rtt = cc->base_rtt + delay + cc->waited;

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
	uint64_t few = few_packets(cc);
	uint64_t longest;

	if (path_marks || cc->cwnd >= few)
		return cc->target;
	longest = cc->common + (uint64_t)((double)cc->config.jitter * FEW_JITTERS *
					  (double)(few - cc->cwnd) / (double)cc->packet);
	return longest > cc->base_rtt + cc->target ? longest - cc->base_rtt : cc->target;
}

/*
 * What of a round trip is a queue that the acknowledgement stood in, behind what others
 * send this way: no smaller window of ours would make it shorter. The clocks of two hosts
 * say only how much longer its way was than others' of late, of which one, it is taken,
 * met none. What they run apart in two periods is less than a packet's time, and what is
 * always there counts as before. Whatever the peer says, it is no more than what is
 * beyond the base.
 */
static uint64_t waited_back(struct uet_nscc *cc, const struct uet_nscc_ack *ack,
			    uint64_t now)
{
	uint16_t *min = cc->back_min;
	int16_t more;

	if (!ack->has_back || ack->rtt >= BACK_LONGEST)
		return 0;
	if (!cc->back_any || now >= cc->back_end + BACK_PERIOD) {
		min[0] = min[1] = ack->back;
		cc->back_any = true;
		cc->back_end = now + BACK_PERIOD;
	} else if (now >= cc->back_end) {
		min[1] = min[0];
		min[0] = ack->back;
		cc->back_end = now + BACK_PERIOD;
	} else if ((int16_t)(ack->back - min[0]) < 0) {
		min[0] = ack->back;
	}
	more = (int16_t)(ack->back - min[0]);
	if ((int16_t)(min[1] - min[0]) < 0)
		more = (int16_t)(ack->back - min[1]);
	if (more <= 0 || ack->rtt <= cc->base_rtt)
		return 0;
	return min_u64((uint64_t)more * UET_NSCC_BACK_NS, ack->rtt - cc->base_rtt);
}

/*
 * What a packet takes of the slowest link: of those that left together each comes so much
 * later than the one before it, however many senders share the queue, since those stand
 * in it one behind the other. Senders that didn't run in between make single ones much
 * later, which counts as a little. On a slow link a few packets are a long time, and less
 * than those can't keep it busy, whatever the shortest round trip was: that may have been
 * a short packet's.
 */
static void note_spread(struct uet_nscc *cc, const struct uet_nscc_ack *ack, uint64_t rtt,
			uint64_t n)
{
	bool same = ack->sent_at && ack->sent_at == cc->train_at && n > 0;
	uint64_t later = rtt > cc->train_rtt ? rtt - cc->train_rtt : 0;
	uint64_t now;

	cc->train_at = ack->sent_at;
	cc->train_rtt = rtt;
	if (!same)
		return;
	cc->train_ns +=
		min_u64(later, OUTLIER * cc->spread * n / 1024 + cc->config.jitter);
	cc->train_bytes += n;
	if (cc->train_bytes < (uint64_t)TRAIN * cc->packet)
		return;
	now = cc->train_ns * 1024 / cc->train_bytes;
	cc->spread = cc->spread ? (3 * cc->spread + now) / 4 : now;
	cc->train_ns = cc->train_bytes = 0;
	if (cc->drain || is_slow(cc))
		set_base(cc, cc->base_rtt);
}

/* In less than a packet's window nothing is under way when a packet was acknowledged, a
 * round trip after it left: the next waits until the window would have had room for it.
 */
static void pace(struct uet_nscc *cc, uint64_t size, uint64_t now)
{
	double rtt =
		(double)min_u64(cc->last_rtt ? cc->last_rtt : cc->soft, longest_rtt(cc));

	if (size <= cc->cwnd)
		return;
	cc->go_at = now + (uint64_t)(rtt * (double)(size - cc->cwnd) / (double)cc->cwnd);
	cc->waits = true;
}

static uint64_t take_ack(struct uet_nscc *cc, const struct uet_nscc_ack *ack,
			 uint64_t now)
{
	uint64_t n = count_received(cc, ack);
	uint64_t delay, target, rtt;
	bool ce = ack->ce;

	cc->count.acks++;
	cc->count.marks += ack->ce;
	if (penalty(cc, ack, n) || !ack->has_rtt)
		return n;
	cc->count.samples++;
	cc->last_rtt = ack->rtt;
	note_rtt(cc, ack->rtt, now);
	cc->waited = waited_back(cc, ack, now);
	rtt = ack->rtt - cc->waited;
	note_spread(cc, ack, rtt, n);
	if (!believed(cc, rtt, now))
		return n;
	delay = min_u64(rtt, longest_rtt(cc));
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

uint64_t uet_nscc_ack(struct uet_nscc *cc, const struct uet_nscc_ack *ack, uint64_t now)
{
	uint64_t n = take_ack(cc, ack, now);

	if (cc->cwnd < cc->packet)
		pace(cc, n, now);
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
	if (cc->cwnd < cc->packet)
		pace(cc, size, now);
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
	if (cc->cwnd > cc->loss_floor)
		lower(cc, max_u64(cc->loss_floor, cc->cwnd > size ? cc->cwnd - size : 0));
	if (cc->cwnd < cc->packet)
		pace(cc, size, now);
}

void uet_nscc_base(struct uet_nscc *cc, uint64_t rtt, uint64_t now)
{
	note_rtt(cc, rtt, now);
}
