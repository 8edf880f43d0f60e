/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checked stream between two processes, over any provider and wire: tagged messages of
 * mixed sizes, writes with data, plain writes, reads. Every byte is checked, and every
 * event: none is lost, repeated, or out of order where order is granted. Writes by keys
 * of registrations that were closed are refused, alone.
 *
 *   --size SIZE   bytes of each stream (K, M, G; default 4M)
 *   --seed N      repeats the choices of an earlier run
 *   --keys N      as many closed registrations, one write by each (default 4; weft only)
 *
 * Side 0 says "# stamp PID BYTES" each 64th of the stream, when these bytes were checked,
 * so that whoever makes faults can see that data flows meanwhile.
 */
#include "config.h"

#include "fabtests/own/stream_plan.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "fabtests/own/remote.h"
#include "util/tap.h"

#define OPS	  16 /* of side 0 under way */
#define RECVS	  16 /* posted, of each side */
#define SLOT	  (STREAM_MOST + 4093)
#define KEYS_MOST 16u
#define STALL_MS  60000 /* without anything that ends: it hangs */
#define QUIET_MS  20

#define TAG_MESSAGE 0x100u
#define TAG_ACK	    0x200u

/* ---- what both sides have */

struct ack {
	uint32_t number; /* of acks */
	uint32_t unit;	 /* whose bytes were checked: the slot is free */
};

/* Whatever has a completion: its context. */
struct item {
	enum { ITEM_UNIT, ITEM_REFUSED, ITEM_RECV } what;
	bool busy;
	uint32_t number; /* ITEM_UNIT: of the unit; ITEM_RECV: of the receive */
	uint32_t wanted; /* ITEM_RECV of side 1: the unit that has to come */
	struct stream_unit unit;
	bool reading;	       /* what was written is read back */
	bool waits_completion; /* these two: its end */
	bool waits_ack;
	uint8_t *mem, *back;
};

/* Where things are at side 1. */
struct place {
	uint64_t base, key; /* slots, then the library */
	uint32_t keys;
	uint64_t dead_base[KEYS_MOST], dead_key[KEYS_MOST];
};

struct stream {
	struct side *s;
	const struct stream_plan *plan;
	bool ordered; /* notices come in the order of their writes */
	uint8_t *mem;
	size_t mem_len;
	struct fid_mr *mr;
	void *desc;
	struct place there;
	struct item items[OPS], recvs[RECVS];
	uint32_t posted; /* receives */
	uint64_t last;	 /* when something ended */

	uint32_t next, ended;		  /* side 0: units */
	uint64_t ended_bytes, next_stamp; /* side 0 */
	uint32_t refused;		  /* side 0 */
	uint32_t acks;			  /* both: of notices */
	uint32_t message_cursor, notice_cursor;
	uint32_t messages, notices; /* side 1 */
	bool *seen;		    /* side 1: notices by unit */
};

struct options {
	uint64_t size, seed;
	uint32_t keys;
};

static struct options options = {.size = 4u << 20, .keys = 4};

/* ---- opening and closing */

static void memory_open(struct stream *st, size_t len, uint64_t access)
{
	struct side *s = st->s;

	st->mem_len = len;
	st->mem = mem_new(len);
	if (local_needed(&s->node))
		access |= FI_SEND | FI_RECV | FI_READ | FI_WRITE;
	if (!access)
		return;
	side_must(s,
		  fi_mr_reg(s->node.domain, st->mem, len, access, 0,
			    0x500u + (unsigned)s->role, 0, &st->mr, NULL),
		  "fi_mr_reg");
	st->desc = local_needed(&s->node) ? fi_mr_desc(st->mr) : NULL;
}

static void stream_open(struct stream *st, struct side *s)
{
	struct want want = want_default;
	const bool *ordered = s->arg;

	want.caps = FI_MSG | FI_TAGGED | FI_RMA;
	want.msg_order = FI_ORDER_SAS | (*ordered ? FI_ORDER_WAW : 0);
	memset(st, 0, sizeof(*st));
	st->s = s;
	node_open(s, &want);
	st->ordered = test_is_weft() && s->node.info->tx_attr->msg_order & FI_ORDER_WAW;
	side_check(s, !*ordered || st->ordered || !test_is_weft(),
		   "order is not granted");
	if (s->node.info->domain_attr->cq_data_size < 8)
		side_lacks(s, "remote data of less than 8 bytes");
	st->last = now_ms();
}

static void stream_close(struct stream *st)
{
	struct side *s = st->s;

	side_meet(s);
	node_quiet(s, QUIET_MS);
	side_meet(s);
	if (st->mr)
		side_must(s, fi_close(&st->mr->fid), "fi_close of a registration");
	node_close(s, &s->node);
	mem_free(st->mem, st->mem_len);
}

/* ---- both */

static void recv_post(struct stream *st, struct item *it, uint64_t tag, size_t room)
{
	struct side *s = st->s;

	it->what = ITEM_RECV;
	it->busy = true;
	it->number = st->posted++;
	while (node_again(
		s,
		fi_trecv(s->node.ep, it->mem, room, st->desc, s->node.peer, tag, 0, it),
		"fi_trecv"))
		;
}

static void stall_check(struct stream *st, const char *doing)
{
	struct side *s = st->s;

	if (now_ms() < st->last + STALL_MS)
		return;
	for (int i = 0; i < OPS; i++) {
		const struct item *it = &st->items[i];

		if (it->busy)
			printf("# side %d waits: unit %u, kind %d, %zu bytes%s%s%s\n",
			       s->role, it->number, (int)it->unit.kind, it->unit.len,
			       it->waits_completion ? ", completion" : "",
			       it->waits_ack ? ", acknowledgement" : "",
			       it->reading ? ", reading back" : "");
	}
	side_die(s,
		 "%s: nothing ends for %d s; began %u, ended %u of %u; acks %u, messages "
		 "%u, notices %u",
		 doing, STALL_MS / 1000, st->next, st->ended, st->plan->count, st->acks,
		 st->messages, st->notices);
}

/* ---- side 0 */

static ssize_t unit_post(struct stream *st, struct item *it)
{
	struct node *n = &st->s->node;
	uint64_t slot = (uint64_t)(it - st->items);
	uint64_t there = st->there.base + slot * SLOT;
	uint64_t library = st->there.base + OPS * SLOT + it->unit.from;
	size_t len = it->unit.len;

	switch (it->unit.kind) {
	case STREAM_MESSAGE:
		return fi_tsenddata(n->ep, it->mem, len, st->desc, it->number, n->peer,
				    TAG_MESSAGE, it);
	case STREAM_NOTICE:
		return fi_writedata(n->ep, it->mem, len, st->desc,
				    slot << 32 | it->number, n->peer, there,
				    st->there.key, it);
	case STREAM_WRITE:
		return fi_write(n->ep, it->mem, len, st->desc, n->peer, there,
				st->there.key, it);
	default:
		return fi_read(n->ep, it->back, len, st->desc, n->peer, library,
			       st->there.key, it);
	}
}

static bool posted(struct stream *st, ssize_t rc, const struct item *it)
{
	if (rc == -FI_EAGAIN)
		return false;
	if (rc < 0)
		side_die(st->s, "unit %u, kind %d: %s", it->number, (int)it->unit.kind,
			 fi_strerror((int)-rc));
	return true;
}

static bool unit_start(struct stream *st, struct item *it)
{
	*it = (struct item){.what = ITEM_UNIT,
			    .busy = true,
			    .number = st->next,
			    .unit = stream_unit_of(st->plan, st->next),
			    .mem = it->mem,
			    .back = it->back};
	if (it->unit.kind == STREAM_READ)
		memset(it->back, 0xee, it->unit.len);
	else
		stream_fill(it->mem, it->unit.len, it->unit.seed, 0);
	if (!posted(st, unit_post(st, it), it)) {
		it->busy = false;
		return false;
	}
	it->waits_completion = true;
	it->waits_ack = it->unit.kind == STREAM_NOTICE;
	st->next++;
	return true;
}

/* A write of some bytes by a key that there isn't any more. */
static bool refused_start(struct stream *st, struct item *it)
{
	struct node *n = &st->s->node;
	uint32_t k = st->refused;
	ssize_t rc;

	it->what = ITEM_REFUSED;
	rc = fi_write(n->ep, it->mem, 64 + 8000 * (k % 2), st->desc, n->peer,
		      st->there.dead_base[k], st->there.dead_key[k], it);
	if (!posted(st, rc, it))
		return false;
	it->busy = it->waits_completion = true;
	st->refused++;
	return true;
}

/* They lie between the units, evenly. */
static bool refused_due(const struct stream *st)
{
	return st->refused < st->there.keys && st->next >= (uint64_t)st->plan->count *
								   (st->refused + 1) /
								   (st->there.keys + 1);
}

static void start_all(struct stream *st)
{
	for (int i = 0; i < OPS; i++) {
		struct item *it = &st->items[i];

		if (it->busy)
			continue;
		if (refused_due(st)) {
			if (!refused_start(st, it))
				return;
			continue;
		}
		/* In their order: one that isn't taken is the next. */
		if (st->next == st->plan->count || !unit_start(st, it))
			return;
	}
}

static void unit_end(struct stream *st, struct item *it)
{
	if (it->waits_completion || it->waits_ack)
		return;
	it->busy = false;
	st->ended++;
	st->ended_bytes += it->unit.len;
	if (st->ended_bytes < st->next_stamp)
		return;
	while (st->next_stamp <= st->ended_bytes)
		st->next_stamp += st->plan->bytes / 64 + 1;
	printf("# stamp %d %llu\n", (int)getpid(), (unsigned long long)st->ended_bytes);
}

static void read_back(struct stream *st, struct item *it)
{
	struct node *n = &st->s->node;
	ssize_t rc;

	memset(it->back, 0xee, it->unit.len);
	memset(it->mem, 0xdd, it->unit.len); /* it is ours again */
	do {
		rc = fi_read(n->ep, it->back, it->unit.len, st->desc, n->peer,
			     st->there.base + (uint64_t)(it - st->items) * SLOT,
			     st->there.key, it);
	} while (node_again(st->s, rc, "fi_read"));
	it->reading = true;
	it->waits_completion = true;
}

static void unit_completed(struct stream *st, struct item *it, const struct done *d)
{
	static const uint64_t flags[STREAM_KINDS] = {
		[STREAM_MESSAGE] = FI_TAGGED | FI_SEND,
		[STREAM_NOTICE] = WRITES,
		[STREAM_WRITE] = WRITES,
		[STREAM_READ] = READS,
	};
	const struct stream_unit *u = &it->unit;

	if (!it->waits_completion)
		side_die(st->s, "unit %u, kind %d: a second completion", it->number,
			 (int)u->kind);
	it->waits_completion = false;
	side_check_u64(st->s, d->e.flags, it->reading ? READS : flags[u->kind], "flags");
	if (it->reading)
		stream_check(st->s, it->back, u->len, u->seed, 0, "read back");
	else if (u->kind == STREAM_READ)
		stream_check(st->s, it->back, u->len, 0, u->from / 8, "read");
	else if (u->kind == STREAM_WRITE)
		read_back(st, it);
	else
		memset(it->mem, 0xdd, u->len);
	unit_end(st, it);
}

static void ack_take(struct stream *st, struct item *recv)
{
	struct ack a;

	memcpy(&a, recv->mem, sizeof(a));
	side_check_u64(st->s, a.number, recv->number, "number of an acknowledgement");
	st->acks++;
	for (int i = 0; i < OPS; i++) {
		struct item *it = &st->items[i];

		if (!it->busy || it->what != ITEM_UNIT || it->number != a.unit ||
		    !it->waits_ack)
			continue;
		it->waits_ack = false;
		unit_end(st, it);
		recv_post(st, recv, TAG_ACK, sizeof(a));
		return;
	}
	side_die(st->s, "an acknowledgement of unit %u, which waits for none", a.unit);
}

static void sender_completed(struct stream *st, const struct done *d)
{
	struct item *it = d->e.op_context;

	if (it->what == ITEM_REFUSED) {
		if (!it->busy)
			side_die(st->s, "a second completion of a refused write");
		side_check(st->s, d->err > 0, "a write by a closed key succeeded");
		it->busy = it->waits_completion = false;
		return;
	}
	if (d->err)
		side_die(st->s, "unit %u, kind %d, %zu bytes%s: %s", it->number,
			 (int)it->unit.kind, it->unit.len,
			 it->reading ? ", reading back" : "", fi_strerror(d->err));
	if (!it->busy)
		side_die(st->s, "a second completion");
	if (it->what == ITEM_RECV)
		ack_take(st, it);
	else
		unit_completed(st, it, d);
}

static bool sender_busy(const struct stream *st)
{
	for (int i = 0; i < OPS; i++)
		if (st->items[i].busy)
			return true;
	return st->next < st->plan->count;
}

/* The keys are used once while they are good. */
static void keys_learn(struct stream *st)
{
	struct side *s = st->s;
	struct done d;

	side_hear(s, &st->there, sizeof(st->there));
	for (uint32_t i = 0; i < st->there.keys; i++) {
		while (node_again(s,
				  fi_write(s->node.ep, st->mem, 64, st->desc,
					   s->node.peer, st->there.dead_base[i],
					   st->there.dead_key[i], &d),
				  "fi_write"))
			;
		node_expect(s, &d, WRITES, &d);
	}
	side_meet(s);
	side_meet(s); /* they are closed */
}

static void sender_run(struct side *s)
{
	struct stream_plan plan = stream_plan_make(options.seed, options.size);
	struct stream *st = mem_new(sizeof(*st));
	struct done d;

	stream_open(st, s);
	st->plan = &plan;
	st->next_stamp = plan.bytes / 64 + 1;
	memory_open(st, 2 * OPS * SLOT + RECVS * sizeof(struct ack), 0);
	for (int i = 0; i < OPS; i++) {
		st->items[i].mem = st->mem + (size_t)i * SLOT;
		st->items[i].back = st->mem + (size_t)(OPS + i) * SLOT;
	}
	for (int i = 0; i < RECVS; i++) {
		st->recvs[i].mem =
			st->mem + 2 * OPS * SLOT + (size_t)i * sizeof(struct ack);
		recv_post(st, &st->recvs[i], TAG_ACK, sizeof(struct ack));
	}
	keys_learn(st);
	while (sender_busy(st)) {
		start_all(st);
		if (node_next(s, &d, 0)) {
			sender_completed(st, &d);
			st->last = now_ms();
		} else {
			sched_yield();
			stall_check(st, "sending");
		}
	}
	side_check_u64(s, st->acks, plan.kinds[STREAM_NOTICE], "acknowledgements");
	side_check_u64(s, st->refused, st->there.keys, "refused writes");
	printf("# %llu bytes: %u messages, %u notices, %u writes, %u reads; %u refused\n",
	       (unsigned long long)plan.bytes, plan.kinds[STREAM_MESSAGE],
	       plan.kinds[STREAM_NOTICE], plan.kinds[STREAM_WRITE],
	       plan.kinds[STREAM_READ], st->refused);
	stream_close(st);
}

/* ---- side 1 */

static void notice_take(struct stream *st, const struct done *d)
{
	struct side *s = st->s;
	uint32_t number = (uint32_t)d->e.data;
	uint64_t slot = d->e.data >> 32;
	struct stream_unit u;
	struct ack a = {.number = st->acks++, .unit = number};

	if (number >= st->plan->count || slot >= OPS)
		side_die(s, "data of a write that wasn't sent: 0x%llx",
			 (unsigned long long)d->e.data);
	u = stream_unit_of(st->plan, number);
	if (u.kind != STREAM_NOTICE || st->seen[number])
		side_die(s, "a second notice, or of nothing: unit %u, kind %d", number,
			 (int)u.kind);
	st->seen[number] = true;
	while (st->ordered && st->notice_cursor < number &&
	       stream_unit_of(st->plan, st->notice_cursor).kind != STREAM_NOTICE)
		st->notice_cursor++;
	if (st->ordered)
		side_check_u64(s, number, st->notice_cursor++, "the order of notices");
	if (test_is_weft()) {
		side_check_u64(s, d->e.flags,
			       FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
			       "flags of a notice");
		side_check_u64(s, d->e.len, u.len, "length of a notice");
	}
	stream_check(s, st->mem + slot * SLOT, u.len, u.seed, 0, "written with data");
	memset(st->mem + slot * SLOT, 0xcc, u.len);
	st->notices++;
	while (node_again(s, fi_tinject(s->node.ep, &a, sizeof(a), s->node.peer, TAG_ACK),
			  "fi_tinject"))
		;
}

/* What was posted as the n-th receive takes the n-th message. */
static void message_take(struct stream *st, struct item *it, const struct done *d)
{
	struct side *s = st->s;
	struct stream_unit u = it->unit;

	if (!it->busy || it->what != ITEM_RECV)
		side_die(s, "a second completion of a receive");
	it->busy = false;
	if (d->err)
		side_die(s, "message %u, %zu bytes: %s", it->number, u.len,
			 fi_strerror(d->err));
	if (it->number >= st->plan->kinds[STREAM_MESSAGE])
		side_die(s, "a message more than were sent");
	side_check_u64(s, d->e.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA,
		       "flags of a message");
	side_check_u64(s, d->e.data, it->wanted, "the order of messages");
	side_check_u64(s, d->e.len, u.len, "length of a message");
	side_check_u64(s, d->e.tag, TAG_MESSAGE, "tag of a message");
	stream_check(s, it->mem, u.len, u.seed, 0, "message");
	st->messages++;
}

/* As many receives as there are messages, and one that nothing may take. */
static void receives_post(struct stream *st)
{
	const uint32_t all = st->plan->kinds[STREAM_MESSAGE] + 1;

	for (int i = 0; i < RECVS && st->posted < all; i++) {
		struct item *it = &st->recvs[i];

		if (it->busy)
			continue;
		for (; st->posted < all - 1; st->message_cursor++) {
			it->unit = stream_unit_of(st->plan, st->message_cursor);
			it->wanted = st->message_cursor;
			if (it->unit.kind == STREAM_MESSAGE)
				break;
		}
		st->message_cursor++;
		recv_post(st, it, TAG_MESSAGE, SLOT);
	}
}

static void receiver_completed(struct stream *st, const struct done *d)
{
	if (d->e.op_context)
		message_take(st, d->e.op_context, d);
	else if (d->err)
		side_die(st->s, "an error of nothing: %s", fi_strerror(d->err));
	else
		notice_take(st, d);
}

/* Registrations that are used once, and then closed. */
static void keys_spend(struct stream *st)
{
	struct fid_mr *mr[KEYS_MOST];
	struct side *s = st->s;
	struct place here = {.base = remote_base(&s->node, st->mem),
			     .key = fi_mr_key(st->mr),
			     .keys = test_is_weft() ? options.keys : 0};
	uint8_t *mem = mem_new(16384);

	for (uint32_t i = 0; i < here.keys; i++) {
		side_must(s,
			  fi_mr_reg(s->node.domain, mem, 16384, FI_REMOTE_WRITE, 0,
				    0x700 + i, 0, &mr[i], NULL),
			  "fi_mr_reg");
		here.dead_base[i] = remote_base(&s->node, mem);
		here.dead_key[i] = fi_mr_key(mr[i]);
	}
	side_tell(s, &here, sizeof(here));
	side_meet(s);
	for (uint32_t i = 0; i < here.keys; i++)
		side_must(s, fi_close(&mr[i]->fid), "fi_close of a registration");
	mem_free(mem, 16384);
	side_meet(s);
}

static void receiver_run(struct side *s)
{
	struct stream_plan plan = stream_plan_make(options.seed, options.size);
	struct stream *st = mem_new(sizeof(*st));
	const size_t library = OPS * SLOT, recvs = library + STREAM_LIBRARY;
	struct done d;

	stream_open(st, s);
	st->plan = &plan;
	st->seen = calloc(plan.count, sizeof(*st->seen));
	if (!st->seen)
		side_die(s, "no memory for %u units", plan.count);
	memory_open(st, recvs + RECVS * SLOT, FI_REMOTE_READ | FI_REMOTE_WRITE);
	stream_fill(st->mem + library, STREAM_LIBRARY, 0, 0);
	for (int i = 0; i < RECVS; i++)
		st->recvs[i].mem = st->mem + recvs + (size_t)i * SLOT;
	receives_post(st);
	keys_spend(st);
	while (st->messages < plan.kinds[STREAM_MESSAGE] ||
	       st->notices < plan.kinds[STREAM_NOTICE]) {
		if (node_next(s, &d, 0)) {
			receiver_completed(st, &d);
			receives_post(st);
			st->last = now_ms();
		} else {
			sched_yield();
			stall_check(st, "receiving");
		}
	}
	free(st->seen);
	stream_close(st);
}

/* ---- */

static uint64_t number_of(const char *name, const char *text, uint64_t least)
{
	static const char units[] = "KMG";
	char *end;
	uint64_t n = strtoull(text, &end, 0);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (unit) {
		n <<= 10 * (unit - units + 1);
		end++;
	}
	if (end == text || *end || n < least)
		tap_bail("%s %s: a number from %llu is wanted (K, M, G)", name, text,
			 (unsigned long long)least);
	return n;
}

static void options_read(int argc, char **argv)
{
	if (getrandom(&options.seed, sizeof(options.seed), 0) < 0)
		options.seed = (uint64_t)getpid();
	options.seed &= 0xffffffff;
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(name, "--size") == 0)
			options.size = number_of(name, value, 1);
		else if (strcmp(name, "--seed") == 0)
			options.seed = number_of(name, value, 0);
		else if (strcmp(name, "--keys") == 0)
			options.keys = (uint32_t)number_of(name, value, 0);
		else if (strcmp(name, "--provider") != 0)
			tap_bail("no option '%s': --size, --seed, --keys, --provider",
				 name);
	}
	if (options.size > (uint64_t)1 << 40 || options.keys > KEYS_MOST)
		tap_bail("at most 1024G and %u keys", KEYS_MOST);
	tap_diag("--size %llu --seed %llu", (unsigned long long)options.size,
		 (unsigned long long)options.seed);
}

int main(int argc, char **argv)
{
	static const bool ordered[] = {false, true};
	struct test_case cases[] = {
		{.name = "a checked stream, no order of writes",
		 .run = {sender_run, receiver_run},
		 .arg = &ordered[0]},
		{.name = "a checked stream, writes in order",
		 .run = {sender_run, receiver_run},
		 .arg = &ordered[1]},
	};

	test_init(argc, argv);
	options_read(argc, argv);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cases[i].seconds = 120 + (int)(options.size >> 20);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
