/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's life, its tables and its one progress function. See exec.h. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "coll/api/error.h"
#include "coll/exec/crowd.h"
#include "coll/exec/engine.h"
#include "coll/exec/gpus.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/mirror.h"
#include "coll/exec/name.h"
#include "coll/exec/nodes.h"
#include "coll/exec/pair.h"
#include "coll/exec/passage.h"
#include "coll/exec/tables.h"

/* How long a wait spins before it offers the processor to others, and how long before it
 * sleeps. Where ranks share processors it offers at once: what is waited for can't come
 * before another rank has run. */
#define IDLE_SPIN_US  50
#define IDLE_YIELD_US 5000
#define IDLE_NAP_NS   50000 /* well under what a stalled collective costs anyway */

#define ROUNDS_TIMED 32 /* rounds of progress with movement to a look at the clock */

/* How long closing waits for control messages that the provider did not send yet. */
#define CLOSE_GRACE_US 200000

/* What each rank says about itself when contexts are opened. */
struct engine_card {
	char provider[32];
	union {
		char detail[384]; /* of the failure, where there is one */
		struct {
			uint8_t name[NET_NAME_MAX];
			struct crowd_place place;
		};
	};
	uint16_t name_len;
	uint16_t result;     /* enum weft_result of its net_open() */
	uint32_t node_ranks; /* WEFT_NODES */
	uint64_t message_max;
	uint64_t long_max;
	uint8_t put;
	uint8_t put_pieces;
	uint8_t data;
	uint8_t get;
	struct lines_card lines;
	uint64_t choices; /* WEFT_TUNE */
	uint64_t job;	  /* that of rank 0 is taken */
};

_Static_assert(sizeof(struct engine_card) == 512, "there are as many as ranks");

int64_t exec_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t exec_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void exec_time_calls(struct exec *x, struct exec_times *times)
{
	x->times = times;
}

int64_t exec_clock(const struct exec *x)
{
	return x->now;
}

void exec_idle_wait(const struct exec *x, struct exec_idle *idle, bool moved, int64_t now)
{
	if (moved) {
		idle->since = 0;
		return;
	}
	if (!idle->since)
		idle->since = now;
	if (now - idle->since > IDLE_YIELD_US) {
		struct timespec nap = {.tv_nsec = IDLE_NAP_NS};

		nanosleep(&nap, NULL);
	} else if (x->tight || now - idle->since > IDLE_SPIN_US) {
		sched_yield();
	}
}

static void engine_free(struct exec *x)
{
	ctl_io_close(x);
	pool_fini(&x->readys);
	pool_fini(&x->peers);
	pool_fini(&x->stashes);
	twins_fini(x);
	sinks_fini(x);
	list_foreach_safe (pos, tmp, &x->stages) {
		struct stage *stage = container_of(pos, struct stage, link);

		if (stage->mr)
			mem_put(&x->mem, stage->mr);
		free(stage->memory);
		free(stage);
	}
	gpus_close(x);
	mem_fini(&x->mem);
	net_close(&x->net);
	wins_fini(x);
	shrinks_fini(x);
	lines_mem_close(&x->lines);
	for (int32_t i = 0; x->handles && i < x->size; i++)
		free(x->handles[i]);
	free(x->handles);
	free(x->comms);
	free(x->lead);
	counts_close(x->counts);
	recorder_close(x->trace);
	free(x);
}

static struct exec *engine_alloc(struct boot *boot)
{
	struct exec *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->rank = boot_rank(boot);
	x->size = boot_size(boot);
	list_init(&x->reqs);
	list_init(&x->replays);
	for (int i = 0; i < EXEC_BUCKETS; i++)
		list_init(&x->bucket[i]);
	list_init(&x->stash);
	sinks_init(x);
	wins_init(x);
	twins_init(x);
	list_init(&x->stages);
	list_init(&x->ctl_free);
	list_init(&x->ctl_out);
	list_init(&x->ctl_repost);
	pool_init(&x->readys, sizeof(struct ready));
	pool_init(&x->peers, sizeof(struct exec_peer));
	pool_init(&x->stashes, sizeof(struct stash));
	x->lines.fd = -1;
	x->handles = calloc((size_t)x->size, sizeof(*x->handles));
	x->trace = recorder_open(x->rank, x->size);
	if (!x->handles || !x->trace) {
		recorder_close(x->trace);
		free(x->handles);
		free(x);
		return NULL;
	}
	return x;
}

static void engine_card_fill(struct exec *x, enum weft_result result,
			     const struct net_attr *attr, struct engine_card *card)
{
	uint32_t name_len = 0;

	memset(card, 0, sizeof(*card));
	card->node_ranks = attr->node_ranks;
	card->choices = attr->choices;
	lines_mem_open(&x->lines, (enum lines_wish)attr->lines, &card->lines);
	if (result == WEFT_SUCCESS)
		result = net_name(&x->net, card->name, &name_len);
	card->name_len = (uint16_t)name_len;
	if (result == WEFT_SUCCESS && x->rank == 0 &&
	    getrandom(&card->job, sizeof(card->job), 0) != (ssize_t)sizeof(card->job))
		result = error_set(WEFT_ERR_BOOTSTRAP,
				   "no random word for the job: getrandom: %s",
				   strerror(errno));
	card->result = (uint16_t)result;
	if (result != WEFT_SUCCESS) {
		snprintf(card->detail, sizeof(card->detail), "%.383s",
			 weft_error_detail());
		return;
	}
	snprintf(card->provider, sizeof(card->provider), "%.31s",
		 x->net.info->fabric_attr->prov_name);
	card->message_max = x->net.caps.message_max;
	card->long_max = x->net.caps.long_max;
	card->put = x->net.caps.put;
	card->put_pieces = x->net.caps.put_pieces;
	crowd_place_own(&card->place);
	card->data = x->net.caps.data;
	card->get = x->net.caps.get;
}

/* One card against ours; takes over the address and the least of the abilities. */
static enum weft_result engine_card_take(struct exec *x, int32_t rank,
					 const struct engine_card *own,
					 const struct engine_card *card)
{
	if (card->result != WEFT_SUCCESS)
		return error_set(WEFT_ERR_PROVIDER,
				 "rank %d could not open a provider: %.*s", rank,
				 (int)sizeof(card->detail), card->detail);
	if (card->name_len > NET_NAME_MAX)
		return error_set(WEFT_ERR_BOOTSTRAP,
				 "rank %d sent an address of %u bytes", rank,
				 card->name_len);
	if (strncmp(card->provider, own->provider, sizeof(own->provider)) != 0)
		return error_set(WEFT_ERR_MISMATCH,
				 "rank %d runs on provider %.*s, rank %d on %s: set "
				 "FI_PROVIDER to the same on all ranks",
				 rank, (int)sizeof(card->provider), card->provider,
				 x->rank, own->provider);
	if (card->node_ranks != own->node_ranks)
		return error_set(WEFT_ERR_MISMATCH,
				 "rank %d has WEFT_NODES=%llu, rank %d has %llu (0: not "
				 "set): set it to the same on all ranks",
				 rank, (unsigned long long)card->node_ranks, x->rank,
				 (unsigned long long)own->node_ranks);
	if (card->choices != own->choices)
		return error_set(WEFT_ERR_MISMATCH,
				 "rank %d and rank %d choose algorithms by different "
				 "tables, or one by none: set WEFT_TUNE to the same file "
				 "(or to measure) on all ranks",
				 rank, x->rank);
	if (card->message_max < x->caps.message_max)
		x->caps.message_max = card->message_max;
	if (card->long_max < x->caps.long_max)
		x->caps.long_max = card->long_max;
	x->caps.put = x->caps.put && card->put;
	x->caps.put_pieces = x->caps.put_pieces && card->put_pieces;
	x->caps.data = x->caps.data && card->data;
	x->caps.get = x->caps.get && card->get;
	return net_peer_add(&x->net, rank, card->name);
}

/* Everybody's view, from what everybody has, so that all come to the same. Among many
 * ranks nobody asks, and it would take long. */
static bool cards_crowded(const struct engine_card *cards, int32_t count)
{
	if (count > EXEC_CROWD_RANKS)
		return false;
	for (int32_t i = 0; i < count; i++) {
		struct crowd crowd = {0};

		for (int32_t k = 0; k < count; k++)
			crowd_add(&crowd, &cards[i].place, &cards[k].place);
		if (crowd_is_tight(&crowd))
			return true;
	}
	return false;
}

static const struct crowd_place *card_place(const void *cards, int32_t rank)
{
	return &((const struct engine_card *)cards)[rank].place;
}

static const struct lines_card *card_lines(const void *cards, int32_t rank)
{
	return &((const struct engine_card *)cards)[rank].lines;
}

static enum weft_result engine_meet(struct exec *x, const struct net_attr *attr,
				    struct boot *boot, enum weft_result result,
				    int64_t timeout_us)
{
	const struct engine_card *cards;
	struct engine_card own;
	struct boot_view view;
	struct crowd crowd = {0};
	enum weft_result met;

	/* A rank without provider still takes part, so that the others hear why. */
	engine_card_fill(x, result, attr, &own);
	met = boot_allgather_view(boot, &own, sizeof(own), timeout_us, &view);
	cards = view.at;
	if (own.result != WEFT_SUCCESS) {
		boot_view_end(&view);
		return error_set((enum weft_result)own.result, "%s", own.detail);
	}
	if (met == WEFT_SUCCESS)
		met = net_peers_reserve(&x->net, x->size);
	x->caps = x->net.caps;
	if (met == WEFT_SUCCESS)
		x->net.job = cards[0].job;
	for (int32_t i = 0; i < x->size && met == WEFT_SUCCESS; i++) {
		met = engine_card_take(x, i, &own, &cards[i]);
		if (met == WEFT_SUCCESS)
			crowd_add(&crowd, &own.place, &cards[i].place);
	}
	x->tight = crowd_is_tight(&crowd);
	x->crowded = met == WEFT_SUCCESS && cards_crowded(cards, x->size);
	if (met == WEFT_SUCCESS) {
		x->lead = nodes_leads(card_place, cards, x->size, attr->node_ranks);
		if (!x->lead)
			met = error_set(WEFT_ERR_NOMEM, "no memory for %d ranks",
					x->size);
		else
			lines_mem_map(&x->lines, x->lead, card_lines, cards, x->size,
				      x->rank);
	}
	boot_view_end(&view);
	return met;
}

enum weft_result exec_open(const struct net_attr *attr, struct boot *boot,
			   int64_t timeout_us, struct exec **out)
{
	struct exec *x = engine_alloc(boot);
	enum weft_result result;

	if (!x)
		return error_set(WEFT_ERR_NOMEM, "no memory for a context of %d ranks",
				 boot_size(boot));
	result = net_open(attr, &x->net);
	mem_init(&x->mem, &x->net);
	x->net.on_data = event_data;
	x->net.arg = x;
	if (result == WEFT_SUCCESS) {
		x->net.size = x->size;
		result = ctl_io_open(x);
	}
	result = engine_meet(x, attr, boot, result, timeout_us);
	if (result != WEFT_SUCCESS) {
		engine_free(x);
		return result;
	}
	recorder_name(x->trace, x->net.job, exec_provider(x));
	x->counts = counts_open(&x->net, x->trace);
	*out = x;
	return WEFT_SUCCESS;
}

bool exec_has_words(const struct exec *x)
{
	return x->ctl_sends || !list_empty(&x->ctl_out);
}

/* Waits with the lock held: nobody else has the context any more. */
LOCK_UNSEEN enum weft_result exec_close(struct exec *x)
{
	const int64_t until = exec_now() + CLOSE_GRACE_US;
	struct exec_idle idle = {0};

	if (!list_empty(&x->reqs))
		return error_set(WEFT_ERR_BUSY, "requests of the context are unfinished");
	/* The last words (REVOKED to a peer that failed) should leave with us. */
	while (!x->hushed && exec_has_words(x) && exec_now() < until) {
		ctl_io_progress(x);
		x->now = exec_now();
		exec_idle_wait(x, &idle, net_progress(&x->net) > 0, x->now);
	}
	engine_free(x);
	return WEFT_SUCCESS;
}

void exec_counts(struct exec *x)
{
	counts_now(x->counts);
}

struct recorder *exec_trace(const struct exec *x)
{
	return x->trace;
}

const struct weft_stats *exec_stats(const struct exec *x)
{
	return &x->stats;
}

const struct net_caps *exec_caps(const struct exec *x)
{
	return &x->caps;
}

const char *exec_provider(const struct exec *x)
{
	return x->net.info->fabric_attr->prov_name;
}

static enum weft_result engine_comm_members(struct exec *x, struct exec_comm *comm,
					    const int32_t *ranks, int32_t count)
{
	comm->ranks = NULL;
	comm->members = ranks ? count : x->size;
	if (!ranks)
		return WEFT_SUCCESS;
	comm->ranks = malloc((size_t)count * sizeof(*ranks));
	if (!comm->ranks)
		return error_set(WEFT_ERR_NOMEM, "no memory for %d ranks", count);
	memcpy(comm->ranks, ranks, (size_t)count * sizeof(*ranks));
	return WEFT_SUCCESS;
}

enum weft_result exec_comm_open(struct exec *x, uint32_t comm, const int32_t *ranks,
				int32_t count, int32_t self)
{
	enum weft_result result;

	if (comm >= x->comms_max) {
		uint32_t max = (comm + 16) & ~UINT32_C(15);
		struct exec_comm *comms = realloc(x->comms, max * sizeof(*comms));

		if (!comms)
			return error_set(WEFT_ERR_NOMEM, "no memory for communicator %u",
					 comm);
		memset(comms + x->comms_max, 0, (max - x->comms_max) * sizeof(*comms));
		x->comms = comms;
		x->comms_max = max;
	}
	if (x->comms[comm].state != COMM_UNKNOWN)
		return error_set(WEFT_ERR_BUSY,
				 "communicator %u exists: communicators of a context are "
				 "created one after the other",
				 comm);
	result = engine_comm_members(x, &x->comms[comm], ranks, count);
	if (result != WEFT_SUCCESS)
		return result;
	x->comms[comm].self = self;
	x->comms[comm].state = COMM_OPEN;
	x->comms[comm].next_call = 0;
	x->comms[comm].past = 0;
	x->comms[comm].failed = WEFT_SUCCESS;
	x->comms[comm].pairs = NULL;
	x->comms[comm].revoked = false;
	recorder_comm_open(x->trace, comm, x->comms[comm].ranks, count, self);
	revoke_opened(x, comm);
	return WEFT_SUCCESS;
}

void exec_comm_seed(struct exec *x, uint32_t comm, uint64_t seed)
{
	x->comms[comm].past = sig_past_add(0, seed);
}

/* Whom the first call that is open waits for. */
static int32_t comm_waits_for(struct exec *x, uint32_t comm)
{
	const struct exec_req *first = NULL;

	list_foreach (pos, &x->reqs) {
		const struct exec_req *req = container_of(pos, struct exec_req, link);

		if (req->call.comm == comm && !req->call.pair &&
		    (!first || (int32_t)(req->call.call - first->call.call) < 0))
			first = req;
	}
	return first ? req_waits_for(first, NULL) : -1;
}

void exec_comm_fail(struct exec *x, uint32_t comm, uint32_t call, enum weft_result result,
		    int32_t culprit, const char *text)
{
	struct exec_comm *c = &x->comms[comm];

	if (c->failed != WEFT_SUCCESS)
		return;
	c->failed = result;
	c->failed_call = call;
	c->culprit = culprit;
	c->waited = comm_waits_for(x, comm);
	snprintf(c->text, sizeof(c->text), "%s", text);
}

const struct exec_past *exec_comm_past(const struct exec *x, uint32_t comm, uint32_t call)
{
	const struct exec_comm *c;

	if (comm >= x->comms_max)
		return NULL;
	c = &x->comms[comm];
	return call < c->next_call && c->next_call - call <= CTL_PAST_MAX
		       ? &c->recent[call % CTL_PAST_MAX]
		       : NULL;
}

enum weft_result exec_comm_failed(const struct exec *x, uint32_t comm, const char **text)
{
	*text = x->comms[comm].text;
	return x->comms[comm].failed;
}

int32_t exec_comm_culprit(const struct exec *x, uint32_t comm)
{
	return x->comms[comm].failed != WEFT_SUCCESS ? x->comms[comm].culprit : -1;
}

int32_t exec_comm_suspect(const struct exec *x, uint32_t comm)
{
	const struct exec_comm *c = &x->comms[comm];

	if (c->failed == WEFT_SUCCESS)
		return -1;
	/* Who is lost is found by whoever talks to it, and all others hear of it. Time
	 * runs out for all at once, and of the revoker it says nothing but that it was
	 * the first. */
	return c->failed == WEFT_ERR_TIMEOUT || c->failed == WEFT_ERR_REVOKED
		       ? c->waited
		       : c->culprit;
}

void exec_comm_close(struct exec *x, uint32_t comm)
{
	if (comm < x->comms_max) {
		x->comms[comm].state = COMM_CLOSED;
		recorder_comm_close(x->trace, comm);
		pairs_free(x, comm);
		lines_comm_close(&x->comms[comm]);
		free(x->comms[comm].ranks);
		x->comms[comm].ranks = NULL;
		x->comms[comm].members = 0;
	}
	sink_close(x, comm);
	twin_comm_close(x, comm);
	list_foreach_safe (pos, tmp, &x->stash) {
		struct stash *stash = container_of(pos, struct stash, link);

		if (stash->msg.comm != comm)
			continue;
		list_remove(&stash->link);
		x->stashed--;
		pool_put(&x->stashes, stash);
	}
}

const int32_t *exec_leads(const struct exec *x)
{
	return x->lead;
}

enum lines_level exec_lines_level(const struct exec *x)
{
	return x->lines.level;
}

void exec_agree_lines(struct exec *x,
		      enum lines_level (*of)(const void *arg, int32_t rank),
		      const void *arg)
{
	lines_mem_agree(&x->lines, x->lead, x->rank, of, arg);
}

bool exec_is_crowded(const struct exec *x)
{
	return x->crowded;
}

bool exec_fetches(const struct exec *x)
{
	return x->caps.long_max > x->caps.message_max;
}

bool exec_registers_per_call(const struct exec *x)
{
	return x->net.mr_allocated;
}

static struct list *engine_bucket(struct exec *x, uint32_t comm, uint32_t call)
{
	return &x->bucket[(comm * 7 + (call & NAME_CALL_MASK)) % EXEC_BUCKETS];
}

struct exec_req *engine_find(struct exec *x, uint32_t comm, uint32_t call,
			     uint32_t call_mask, int32_t pair)
{
	list_foreach (pos, engine_bucket(x, comm, call)) {
		struct exec_req *req = container_of(pos, struct exec_req, bucket);

		if (req->call.comm == comm &&
		    (req->call.call & call_mask) == (call & call_mask) &&
		    (req->call.pair ? req->call.peer : -1) == pair)
			return req;
	}
	return NULL;
}

void engine_link(struct exec *x, struct exec_req *req)
{
	struct exec_comm *comm = &x->comms[req->call.comm];

	list_push_back(&x->reqs, &req->link);
	list_push_back(engine_bucket(x, req->call.comm, req->call.call), &req->bucket);
	req->sig = sig_pack(&req->call.id,
			    req->call.pair   ? 0
			    : req->call.twin ? twin_mix(req->call.twin, comm->past)
					     : comm->past,
			    x->size);
	req->k_mask = UINT32_MAX;
	req->k_hash = 0;
	if (!x->caps.truncates) {
		req->k_mask = (1u << NAME_HASH_SHIFT) - 1;
		req->k_hash = sig_length_hash(&req->call.id) << NAME_HASH_SHIFT;
	}
	req->tag = x->net.job ^ name_pack(req->call.pair ? NAME_PAIR : NAME_MESSAGE,
					  req->call.comm, req->call.call, 0);
	if (req->call.pair) {
		pair_link(req);
		return;
	}
	exec_comm_started(comm, req);
}

void engine_unlink(struct exec_req *req)
{
	list_remove(&req->link);
	list_remove(&req->bucket);
}

/* The last used that is large enough; sizes are powers of two, so that a few serve all.
 */
struct stage *stage_get(struct exec *x, size_t size)
{
	struct stage *stage;
	size_t round = 4096;

	list_foreach (pos, &x->stages) {
		stage = container_of(pos, struct stage, link);
		if (stage->size >= size) {
			list_remove(&stage->link);
			return stage;
		}
	}
	while (round < size && round <= SIZE_MAX / 2)
		round *= 2;
	stage = calloc(1, sizeof(*stage));
	if (!stage)
		return NULL;
	stage->memory = round >= size ? aligned_alloc(4096, round) : NULL;
	stage->size = round;
	list_init(&stage->link);
	if (!stage->memory) {
		free(stage);
		return NULL;
	}
	return stage;
}

void stage_put(struct exec *x, struct stage *stage)
{
	list_push_front(&x->stages, &stage->link);
}

int stage_desc(struct exec *x, struct stage *stage, void **desc)
{
	int rc;

	*desc = NULL;
	if (!x->net.mr_local)
		return 0;
	if (!stage->mr) {
		rc = mem_get(&x->mem, stage->memory, stage->size, false, &stage->mr);
		if (rc)
			return rc;
	}
	*desc = fi_mr_desc(stage->mr->mr);
	return 0;
}

enum exec_work exec_work(const struct exec *x)
{
	if (!list_empty(&x->reqs) || !list_empty(&x->replays) ||
	    !list_empty(&x->win_retry) || ctl_io_waits(x))
		return EXEC_WORK_OPEN;
	return list_empty(&x->wins) ? EXEC_WORK_NONE : EXEC_WORK_WATCH;
}

/* idle: the clock is looked at also where nothing moved. */
static bool engine_round(struct exec *x, bool idle)
{
	bool moved = net_progress(&x->net) > 0;
	bool clock;

	if (ctl_io_waits(x) && ctl_io_progress(x))
		moved = true;
	if (!list_empty(&x->win_retry) && win_progress(x))
		moved = true;
	/* Where things move, nothing is late: the clock is looked at now and then. */
	clock = moved ? ++x->rounds % ROUNDS_TIMED == 0 : idle;
	if (clock) {
		x->now = exec_now();
		x->trace->image->head.looked = ticks_now(x->trace->counter);
		counts_look(x->counts, x->now);
	}
	if (!list_empty(&x->replays) && replays_run(x))
		moved = true;
	list_foreach_safe (pos, tmp, &x->reqs) {
		struct exec_req *req = container_of(pos, struct exec_req, link);

		if (req->mirror && mirror_run(req))
			moved = true;
		if (req->call.tables && tables_run(req))
			moved = true;
		if (req_run(req))
			moved = true;
		if (clock && req_clock(req, x->now))
			moved = true;
	}
	/* What the requests had to say leaves in the same round. */
	if (!list_empty(&x->ctl_out) && ctl_io_progress(x))
		moved = true;
	return moved;
}

bool exec_progress(struct exec *x)
{
	return engine_round(x, true);
}

bool exec_look(struct exec *x)
{
	return engine_round(x, false);
}

bool exec_is_tight(const struct exec *x)
{
	return x->tight;
}

/* ---- memory for callers ---------------------------------------------------------------
 */

/* Registrations that are held, at most: the others are for calls. */
#define HELD_MAX (MEM_ENTRIES_MAX / 2)

void exec_hold(struct exec *x, void *addr, size_t len, bool remote,
	       struct mem_entry **hold)
{
	if (*hold || !len || !x->net.mr_allocated || x->held == HELD_MAX ||
	    (remote && !x->caps.put))
		return;
	/* What fails here fails again in the call, which says so. */
	if (mem_get(&x->mem, addr, len, remote, hold))
		*hold = NULL;
	else
		x->held++;
}

void exec_hold_end(struct exec *x, struct mem_entry **hold)
{
	if (!*hold)
		return;
	mem_put(&x->mem, *hold);
	x->held--;
	*hold = NULL;
}

enum weft_result exec_mem_alloc(struct exec *x, size_t len, void **addr)
{
	int rc = block_alloc(&x->mem, len, addr);

	switch (rc) {
	case 0:
		return WEFT_SUCCESS;
	case -FI_EINVAL:
		return error_set(WEFT_ERR_ARG, "weft_mem_alloc: %zu bytes can't be had",
				 len);
	case -FI_ENOMEM:
	case -FI_EMFILE:
		return error_set(WEFT_ERR_NOMEM, "weft_mem_alloc: %zu bytes: %s", len,
				 fi_strerror(-rc));
	default:
		return error_set(WEFT_ERR_PROVIDER, "weft_mem_alloc: %zu bytes: %s", len,
				 fi_strerror(-rc));
	}
}

enum weft_result exec_mem_free(struct exec *x, void *addr)
{
	const struct block *b = block_find(&x->mem, addr, 0);
	int rc = b && lines_hold(x, b->addr, b->len) ? -FI_EBUSY
						     : block_free(&x->mem, addr);

	if (rc == -FI_EINVAL)
		return error_set(WEFT_ERR_ARG,
				 "weft_mem_free: %p is not what weft_mem_alloc gave, or "
				 "it was freed",
				 addr);
	if (rc)
		return error_set(
			WEFT_ERR_BUSY,
			"weft_mem_free: a request uses the memory, or a peer may "
			"still write it: try again");
	return WEFT_SUCCESS;
}
