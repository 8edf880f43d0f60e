/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two jobs of two ranks each. The addresses that the second has of its own ranks are
 * those of the first, as if its ranks had died and the first had got their ports:
 * everything that it says, with the names that the first uses itself, comes to the wrong
 * job. That one computes all the while; its results are right, and nothing is reported.
 */
#include "config.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "coll/comm/comm.h"
#include "coll/exec/engine.h"
#include "coll/exec/name.h"
#include "coll/tests/ranks.h"
#include "util/tap.h"

#define DEADLINE_US INT64_C(120000000)
#define KINDS	    CTL_FORGOTTEN /* the last of the control messages */
#define CALLS	    8		  /* of which they are, one after the other from 0 */
#define TAGGED	    8		  /* messages to each rank */
#define WORDS	    32		  /* places of a call */
#define COUNT	    40000	  /* elements: more than goes without READY over tcp */

/* Both pairs make the same calls, so that all four take part in each all-gather. */
static int pair_gather(void *arg, const void *in, void *out, size_t len,
		       int64_t timeout_us)
{
	struct ranks *r = arg;
	char *all = malloc(4 * len + 1);
	int bad;

	(void)timeout_us;
	if (!all)
		return 1;
	bad = ranks_gather(r, in, all, len) ? 0 : 1;
	if (!bad)
		memcpy(out, all + (r->rank < 2 ? 0 : 2 * len), 2 * len);
	free(all);
	return bad;
}

struct job {
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	struct exec *exec;
	uint64_t word;
};

static int job_open(struct ranks *r, struct job *job)
{
	int bad;

	r->boot.rank = r->rank % 2;
	r->boot.size = 2;
	r->boot.allgather = pair_gather;
	bad = ranks_open(r, r->arg, DEADLINE_US, &job->ctx);
	if (bad)
		return bad;
	if (weft_comm_create(job->ctx, NULL, &job->comm) != WEFT_SUCCESS)
		return ranks_say(r, "comm: %s", weft_error_detail());
	ctx_lock(job->ctx);
	job->exec = job->ctx->exec;
	job->word = job->exec->net.job;
	ctx_unlock(job->ctx);
	return RANKS_GOOD;
}

/* What a rank tells the others of the test. */
struct card {
	uint64_t word;
	uint64_t key; /* by which its memory is written; 0: by none of our choice */
	uint8_t name[NET_NAME_MAX];
};

/* A call that lets peers write here, so that there is a key. */
LOCK_UNSEEN static int job_card(struct ranks *r, struct job *job, struct card *card)
{
	static uint64_t in[COUNT], out[COUNT];
	const struct mem *mem = &job->exec->mem;
	uint32_t len = 0;

	memset(card, 0, sizeof(*card));
	card->word = job->word;
	if (weft_allreduce(job->comm, in, out, COUNT, WEFT_UINT64, WEFT_SUM, NULL) !=
		    WEFT_SUCCESS ||
	    net_name(&job->exec->net, card->name, &len) != WEFT_SUCCESS)
		return ranks_say(r, "first call: %s", weft_error_detail());
	for (int i = 0; i < MEM_ENTRIES_MAX && !job->exec->net.mr_prov_key; i++) {
		if (mem->entry[i].mr && mem->entry[i].remote)
			card->key = mem->entry[i].key;
	}
	return RANKS_GOOD;
}

/* Words and keys are not those of the other job. */
static int cards_check(struct ranks *r, const struct card all[4])
{
	if (all[0].word != all[1].word || all[2].word != all[3].word ||
	    all[0].word == all[2].word)
		return ranks_say(
			r, "the words of the jobs: %llx %llx, %llx %llx",
			(unsigned long long)all[0].word, (unsigned long long)all[1].word,
			(unsigned long long)all[2].word, (unsigned long long)all[3].word);
	for (int i = 0; i < 4; i++) {
		if (all[i].key && all[i].key == all[(i + 2) % 4].key)
			return ranks_say(r, "a key of both jobs: %llx",
					 (unsigned long long)all[i].key);
	}
	return RANKS_GOOD;
}

/* ---- the strangers ------------------------------------------------------------------
 */

/* The other rank of this job has the address of a rank of the first. */
static int stranger_aim(struct ranks *r, struct net *net, const void *name0,
			const void *name1)
{
	if (fi_av_insert(net->av, name0, 1, &net->addr[0], 0, NULL) != 1 ||
	    fi_av_insert(net->av, name1, 1, &net->addr[1], 0, NULL) != 1)
		return ranks_say(r, "the addresses of the first job are refused");
	return RANKS_GOOD;
}

/* What would be believed: each kind, of a call that runs, was or comes. */
static struct ctl_msg stranger_says(int kind, uint32_t call)
{
	struct ctl_msg msg = {.kind = (enum ctl_kind)kind, .call = call, .sig = 77};

	switch (msg.kind) {
	case CTL_READY:
		msg.ready.entries = 1;
		msg.ready.entry[0].length = 8;
		break;
	case CTL_FAIL:
	case CTL_REPORT:
	case CTL_VERDICT:
	case CTL_REVOKE:
		msg.fail = (struct ctl_fail){.result = WEFT_ERR_MISMATCH, .culprit = 1};
		strcpy(msg.fail.text, "of another job");
		break;
	case CTL_PROBE:
	case CTL_STATUS:
		msg.status.call = (struct sig_call){.count = 1, .type = WEFT_UINT32};
		msg.status.waits_for = 0;
		break;
	case CTL_PAST:
		msg.past.entries = 1;
		break;
	case CTL_AGREE:
		msg.agree = (struct agree_msg){.phase = AGREE_DECIDED,
					       .value = {.number = 7, .list = {1}}};
		break;
	case CTL_FORGOTTEN:
		msg.forgotten.since = 20;
		break;
	case CTL_REVOKED:
	case CTL_ELSEWHERE:
	case CTL_WIN_SIGNAL:
	case CTL_WIN_PUT:
	case CTL_WIN_GET:
		msg.win = (struct ctl_win){.length = 8, .value = 1};
		break;
	}
	return msg;
}

static void poison_done(struct net_op *op, const struct net_result *result)
{
	(void)result;
	op->owner = NULL;
}

/* A message to a rank, with a tag that may be of any job. */
static int poison_send(struct ranks *r, struct exec *x, struct net_op *op, uint64_t tag)
{
	static const uint64_t poison = UINT64_C(0x6666666666666666);
	const int64_t until = exec_now() + DEADLINE_US;
	const int32_t to = 1 - x->rank;
	ssize_t rc;

	op->done = poison_done;
	op->owner = x;
	op->peer = to;
	while ((rc = fi_tsend(x->net.ep, &poison, sizeof(poison), NULL, x->net.addr[to],
			      tag, op)) == -FI_EAGAIN) {
		net_progress(&x->net);
		if (exec_now() > until)
			break;
	}
	return rc ? ranks_say(r, "sending: %s", fi_strerror((int)-rc)) : RANKS_GOOD;
}

/* Each kind, of some calls, to both ranks. */
static int stranger_batch(struct ranks *r, struct exec *x, uint32_t call)
{
	for (int i = 0; i < 2 * KINDS * CALLS; i++) {
		struct ctl_msg msg =
			stranger_says(1 + i / 2 % KINDS, call + (uint32_t)i / 2 / KINDS);

		if (ctl_io_send(x, i % 2, &msg))
			return ranks_say(r, "no memory");
	}
	return RANKS_GOOD;
}

/* Calls what the first job calls too, and says what it can, until that one has had
 * enough. Its own call never ends: it is left open. */
LOCK_UNSEEN static int stranger_run(struct ranks *r, struct job *job)
{
	static struct net_op op[TAGGED];
	static uint32_t in = 7, out;
	const int64_t until = exec_now() + DEADLINE_US;
	static struct weft_req *req;
	struct exec *x = job->exec;
	uint32_t call = 0;
	int bad = 0, done = 0;

	if (weft_allreduce_start(job->comm, &in, &out, 1, WEFT_UINT32, WEFT_SUM, NULL,
				 &req) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	for (uint32_t i = 0; i < TAGGED && !bad; i++)
		bad = poison_send(r, x, &op[i],
				  x->net.job ^ name_pack(NAME_MESSAGE, 0, i, 0));
	while (!bad && ranks_marks(r) < 2) {
		if (!exec_has_words(x)) {
			bad = stranger_batch(r, x, call);
			call += CALLS;
		}
		/* Should it end all the same, messages still go out. */
		if (req)
			weft_req_test(req, &done);
		if (done)
			req = NULL;
		exec_progress(x);
		if (exec_now() > until)
			bad = ranks_say(r, "the first job does not end");
		poll(NULL, 0, 1);
	}
	return bad;
}

/* ---- the job that computes ----------------------------------------------------------
 */

/* Messages from the right address before those that are meant, with the names of the
 * short calls that come: under another job's word, and under none. One of those is over.
 */
LOCK_UNSEEN static int native_poison(struct ranks *r, struct exec *x, uint64_t foreign)
{
	static struct net_op op[2 * TAGGED];
	const uint32_t over = x->comms[0].next_call - 1;
	const struct exec_past *past = exec_comm_past(x, 0, over);
	uint64_t index = 0;
	int bad = 0;

	if (!x->caps.truncates)
		index = (uint64_t)sig_length_hash(&past->id) << NAME_HASH_SHIFT;
	for (uint32_t i = 0; i < 2 * TAGGED && !bad; i++) {
		const uint64_t word = i % 2 ? foreign : 0;
		const uint32_t call = over + 2 * (1 + i / 2);

		bad = poison_send(r, x, &op[i],
				  word ^ name_pack(NAME_MESSAGE, 0, call, index));
	}
	return bad;
}

static uint64_t native_foreign(const struct job *job)
{
	struct weft_stats stats = {.size = sizeof(stats)};

	return weft_ctx_stats(job->ctx, &stats) == WEFT_SUCCESS ? stats.foreign : 0;
}

/* The words of puts into the places of the call that has just started, and of a window:
 * as above. */
LOCK_UNSEEN static void native_words(struct exec *x, uint64_t foreign)
{
	const uint32_t call = x->comms[0].next_call - 1;

	for (int i = 0; i < 2 * WORDS; i++) {
		const uint64_t word = i % 2 ? foreign : 0;

		event_data(x, word ^ name_pack(NAME_PUT, 0, call, (uint64_t)i / 2));
		event_data(x, word ^ name_pack(NAME_WIN, 0, call, (uint64_t)i / 2));
	}
}

/* Element 0 counts the ranks that have had enough. */
static int native_round(struct ranks *r, const struct job *job, int round,
			uint64_t foreign, bool enough, bool *over)
{
	static uint64_t in[COUNT], out[COUNT];
	const size_t count = round % 2 ? COUNT : 1;
	struct weft_req *req;

	for (size_t i = 0; i < count; i++)
		in[i] = i + (uint64_t)round * (uint64_t)(1 + job->exec->rank);
	in[0] = enough;
	if (weft_allreduce_start(job->comm, in, out, count, WEFT_UINT64, WEFT_SUM, NULL,
				 &req) != WEFT_SUCCESS)
		return ranks_say(r, "round %d: %s", round, weft_error_detail());
	native_words(job->exec, foreign);
	if (weft_req_wait(req, DEADLINE_US) != WEFT_SUCCESS)
		return ranks_say(r, "round %d: %s", round, weft_error_detail());
	for (size_t i = 1; i < count; i++) {
		if (out[i] != 2 * i + (uint64_t)round * 3)
			return ranks_say(r, "round %d: element %zu is %llu", round, i,
					 (unsigned long long)out[i]);
	}
	if (out[0] > 2)
		return ranks_say(r, "round %d: element 0 is %llu", round,
				 (unsigned long long)out[0]);
	*over = out[0] == 2;
	return RANKS_GOOD;
}

static int native_run(struct ranks *r, struct job *job, uint64_t foreign)
{
	const int64_t until = exec_now() + DEADLINE_US;
	uint64_t words = 0, came = 0;
	bool over = false;
	int bad = 0;

	/* At least a batch of each of the two strangers. */
	for (int round = 0; !over && !bad; round++) {
		const bool enough = came >= 2 * KINDS * CALLS && round > 2 * TAGGED;

		bad = native_round(r, job, round, foreign, enough, &over);
		if (!bad && round == 0)
			bad = native_poison(r, job->exec, foreign);
		words += 4 * WORDS;
		came = native_foreign(job) - words;
		if (!bad && exec_now() > until)
			bad = ranks_say(r, "%llu foreign messages came",
					(unsigned long long)came);
	}
	ranks_mark(r);
	return bad;
}

static int foreign_body(struct ranks *r)
{
	static struct job job;
	struct card own, all[4];
	int bad = job_open(r, &job);

	if (!bad)
		bad = job_card(r, &job, &own);
	if (bad)
		return bad;
	if (!ranks_gather(r, &own, all, sizeof(own)))
		return ranks_say(r, "the others do not begin");
	bad = cards_check(r, all);
	if (bad)
		return bad;
	if (r->rank < 2)
		bad = native_run(r, &job, all[2].word);
	else
		bad = stranger_aim(r, &job.exec->net, all[0].name, all[1].name);
	if (r->rank >= 2 && !bad)
		bad = stranger_run(r, &job);
	/* Nobody leaves while somebody sends to it. */
	if (!ranks_barrier(r) && !bad)
		bad = ranks_say(r, "the others do not end");
	if (bad || r->rank >= 2)
		return bad;
	if (weft_comm_destroy(job.comm) != WEFT_SUCCESS ||
	    weft_ctx_close(job.ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* Ranks leave with peers of another job connected: tcp of libfabric 1.17 then leaks what
 * belongs to a connection that was being made. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("tcp", names, 8);

	for (int i = 0; i < count; i++) {
		const bool good = ranks_run(4, 300, foreign_body, names[i], end);

		if (!good && end[0] == RANKS_ABSENT) {
			tap_skip(1, "provider %s is not on this machine", names[i]);
			continue;
		}
		tap_ok(good, "%s: what another job sends changes nothing", names[i]);
	}
	return tap_done();
}
