/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of transfers (rule F4) and control messages: golden values, round trips, and what
 * the validator refuses: every truncation of every message, and random damage.
 */
#include "config.h"

#include <string.h>

#include "coll/algo/algo.h"
#include "coll/exec/ctl.h"
#include "coll/exec/mem.h"
#include "coll/exec/name.h"
#include "coll/exec/pool.h"
#include "util/tap.h"

static void test_name_F4(void)
{
	const uint64_t word = name_pack(NAME_PUT, 0xabc, 0x12345, 0x2aaaaaaa);
	struct name n = name_unpack(word);

	tap_ok(word == UINT64_C(0xaaf048d16aaaaaaa), "F4: layout of a name (%llx)",
	       (unsigned long long)word);
	tap_ok(n.kind == NAME_PUT && n.comm == 0xabc && n.call == 0x12345 &&
		       n.index == 0x2aaaaaaa,
	       "F4: a name reads back");
	n = name_unpack(name_pack(NAME_MESSAGE, NAME_COMM_MAX, UINT32_MAX, UINT64_MAX));
	tap_ok(n.kind == NAME_MESSAGE && n.comm == NAME_COMM_MAX &&
		       n.call == NAME_CALL_MASK && n.index == NAME_INDEX_MASK,
	       "F4: fields do not run into each other");
}

/* What differs in a call differs in its signature, and can be read from it. */
static void test_signature(void)
{
	const struct sig_call a = {.count = UINT64_C(1) << 20,
				   .root = 6,
				   .coll = WEFT_COLL_BROADCAST,
				   .type = WEFT_FP64,
				   .op = WEFT_BXOR,
				   .algorithm = 1};
	const uint64_t sig = sig_pack(&a, 77, 8);
	struct sig_call b = a, back;
	int beyond = 0;
	char text[128];

	tap_ok(sig_unpack(sig, 8, &back) && sig_call_same(&a, &back),
	       "a signature reads back");
	b.count++;
	tap_ok(sig_pack(&b, 77, 8) != sig && !sig_call_same(&a, &b), "the count counts");
	b = a;
	b.root = 7;
	tap_ok(sig_pack(&b, 77, 8) != sig && !sig_call_same(&a, &b), "the root counts");
	b = a;
	b.type = WEFT_INT64;
	tap_ok(sig_pack(&b, 77, 8) != sig && !sig_call_same(&a, &b), "the type counts");
	b = a;
	b.algorithm = 0;
	tap_ok(sig_pack(&b, 77, 8) != sig, "the algorithm counts");
	b = a;
	b.op = sig_op((enum weft_op)(WEFT_OP_USER + SIG_OPS - WEFT_OP_COUNT - 1));
	tap_ok(sig_unpack(sig_pack(&b, 77, 8), 8, &back) && sig_call_same(&b, &back),
	       "the last operation of a caller reads back");
	b = a;
	b.count = UINT64_MAX / 8;
	tap_ok(!sig_unpack(sig_pack(&b, 77, 131072), 131072, &back) &&
		       back.count <= b.count && back.root == 6,
	       "a count that does not fit is told to be large");
	tap_ok(sig_pack(&a, sig_past_add(0, 1), 8) != sig_pack(&a, sig_past_add(0, 2), 8),
	       "the calls before count");
	for (size_t i = 0; i < algo_count; i++)
		beyond += algo_index(&algo_table[i]) >= SIG_ALGORITHMS;
	tap_is_int(beyond, 0, "algorithms of a collective fit their field");
	sig_unpack(UINT64_MAX, 8, &back);
	sig_call_print(&back, false, text, sizeof(text));
	tap_ok(strstr(text, "?") != NULL, "nonsense has a text: %s", text);
	sig_call_print(&a, true, text, sizeof(text));
	tap_is_str(text, "broadcast (flat) of 1048576 fp64 from root 6",
		   "a call has a text");
}

static struct ctl_msg full_ready(void)
{
	struct ctl_msg msg = {.job = UINT64_C(0xf1e2d3c4b5a69788),
			      .kind = CTL_READY,
			      .src = 2,
			      .comm = 5,
			      .call = 0x1020304};

	msg.ready.handles = CTL_HANDLE_MAX;
	msg.ready.entries = CTL_ENTRY_MAX;
	for (int i = 0; i < CTL_HANDLE_MAX; i++)
		msg.ready.handle[i] = (struct ctl_handle){.id = (uint16_t)(7 + i),
							  .incarnation = 9,
							  .key = UINT64_MAX - 1,
							  .base = UINT64_C(1) << 40};
	for (int i = 0; i < CTL_ENTRY_MAX; i++)
		msg.ready.entry[i] = (struct ctl_entry){.k = (uint32_t)i / 3,
							.recv = (uint32_t)i / 3 + 100,
							.handle = 7,
							.choice = CTL_CHOICE_PUT,
							.more = i % 3 != 2,
							.incarnation = 9,
							.offset = 4096,
							.length = UINT64_C(1) << 33};
	return msg;
}

static void check_message(struct ctl_msg msg, const char *what)
{
	unsigned char buf[CTL_MAX], again[CTL_MAX];
	const size_t len = ctl_encode(&msg, buf);
	struct ctl_msg back = {0};
	int taken = 0;

	tap_ok(len <= CTL_MAX && ctl_decode(buf, len, 4, &back), "%s is understood",
	       what);
	tap_ok(ctl_encode(&back, again) == len && memcmp(buf, again, len) == 0,
	       "%s comes back the same", what);
	for (size_t cut = 0; cut < len; cut++)
		taken += ctl_decode(buf, cut, 4, &back);
	taken += ctl_decode(buf, len + 1 <= CTL_MAX ? len + 1 : len, 2, &back);
	tap_is_int(taken, 0, "and refused when short, long, or of a rank that is none");
}

static void test_messages(void)
{
	struct ctl_msg fail = {.kind = CTL_FAIL,
			       .src = 2,
			       .fail = {.result = WEFT_ERR_TIMEOUT, .culprit = 3}};
	struct ctl_msg probe = {
		.kind = CTL_PROBE,
		.src = 2,
		.status = {.call = {.count = 77, .algorithm = 1, .root = -1, .coll = 3},
			   .waits_for = 1,
			   .place = true,
			   .place_k = 70000,
			   .place_bytes = UINT64_C(1) << 33}};
	struct ctl_msg past = {.kind = CTL_PAST, .src = 2, .call = 3};
	struct ctl_msg signal = {
		.kind = CTL_WIN_SIGNAL,
		.src = 2,
		.call = 1,
		.win = {.index = 7, .offset = 1, .length = UINT64_MAX, .value = 3}};
	struct ctl_msg elsewhere = {.kind = CTL_ELSEWHERE,
				    .src = 2,
				    .comm = 1,
				    .call = 9,
				    .elsewhere = {.id = {.count = 77, .coll = 3},
						  .comm = 5,
						  .call = 70000,
						  .waits_for = -1}};
	struct ctl_msg forgotten = {.kind = CTL_FORGOTTEN,
				    .src = 2,
				    .comm = 1,
				    .call = 9,
				    .forgotten = {.since = 70000}};
	struct ctl_msg revoked = {.kind = CTL_REVOKED, .src = 2, .call = 12};
	struct ctl_msg agree = {
		.kind = CTL_AGREE,
		.src = 2,
		.comm = 1,
		.agree = {.phase = AGREE_TAKE, .ballot = 70000, .value = {.number = 5}}};

	strcpy(fail.fail.text, "no answer from rank 3");
	check_message(full_ready(), "READY");
	check_message(fail, "FAIL");
	fail.kind = CTL_VERDICT;
	check_message(fail, "VERDICT");
	fail.kind = CTL_REVOKE;
	check_message(fail, "REVOKE");
	check_message(probe, "PROBE");
	probe.pair = true;
	check_message(probe, "PROBE of two ranks");
	past.past.entries = CTL_PAST_MAX;
	past.past.call[CTL_PAST_MAX - 1] = (struct sig_call){.count = 9, .root = 1};
	check_message(past, "PAST");
	check_message(revoked, "REVOKED");
	check_message(forgotten, "FORGOTTEN");
	forgotten.pair = true;
	check_message(forgotten, "FORGOTTEN of two ranks");
	check_message(signal, "WIN_SIGNAL");
	signal.kind = CTL_WIN_GET;
	check_message(signal, "WIN_GET");
	check_message(elsewhere, "ELSEWHERE");
	agree.agree.value.list[AGREE_LIST_BYTES - 1] = 0x80;
	check_message(agree, "AGREE with the longest list");
	agree.agree.value.list[AGREE_LIST_BYTES - 1] = 0;
	agree.agree.value.list[0] = 5;
	check_message(agree, "AGREE with a short list");
	agree.agree = (struct agree_msg){.phase = AGREE_JOIN, .value.number = 9};
	check_message(agree, "AGREE without a list");
}

/* It is read before everything else, also where the rest means nothing here. */
static void test_job(void)
{
	static const unsigned char head[] = {0x34, 0x43, 0x46, 0x57, CTL_REVOKED};
	static const unsigned char word[] = {0x88, 0x97, 0xa6, 0xb5,
					     0xc4, 0xd3, 0xe2, 0xf1};
	struct ctl_msg msg = {.job = UINT64_C(0xf1e2d3c4b5a69788),
			      .kind = CTL_REVOKED,
			      .src = 6,
			      .call = 12};
	unsigned char buf[CTL_MAX + 1] = {0};
	const size_t len = ctl_encode(&msg, buf);
	struct ctl_msg back;
	uint64_t job = 0;
	int taken = 0;

	tap_ok(len == 40 && memcmp(buf, head, sizeof(head)) == 0 &&
		       memcmp(buf + 32, word, sizeof(word)) == 0,
	       "layout of a header with its job");
	tap_ok(ctl_job(buf, len, &job) && job == msg.job &&
		       !ctl_decode(buf, len, 4, &back),
	       "the job of a message from a rank that is none here");
	for (size_t cut = 0; cut < len; cut++)
		taken += ctl_job(buf, cut, &job);
	taken += ctl_job(buf, sizeof(buf), &job);
	buf[0] ^= 1;
	taken += ctl_job(buf, len, &job);
	tap_is_int(taken, 0, "no job of what is short, long, or no control message");
}

static void refuse(struct ctl_msg msg, const char *what)
{
	unsigned char buf[CTL_MAX];
	struct ctl_msg back;
	const size_t len = ctl_encode(&msg, buf);

	tap_ok(!ctl_decode(buf, len, 4, &back), "refused: %s", what);
}

static void test_refusals(void)
{
	struct ctl_msg m = full_ready();

	m.ready.entry[CTL_ENTRY_MAX - 1].more = 1;
	refuse(m, "a place that does not end");
	m = full_ready();
	m.ready.entry[1].k = 99;
	refuse(m, "pieces of one place with different numbers");
	m = full_ready();
	m.ready.entry[0].handle = MEM_ENTRIES_MAX;
	refuse(m, "a handle beyond the table");
	m = full_ready();
	m.ready.handle[0].id = MEM_ENTRIES_MAX;
	refuse(m, "a told handle beyond the table");
	m = full_ready();
	m.ready.entry[0].choice = 9;
	refuse(m, "an unknown choice");
	m = full_ready();
	m.comm = NAME_COMM_MAX + 1;
	refuse(m, "a communicator that has no name");
	m = full_ready();
	m.pair = true;
	refuse(m, "READY of a message between two ranks");
	m = full_ready();
	m.kind = (enum ctl_kind)77;
	refuse(m, "an unknown kind");
	m = (struct ctl_msg){.kind = CTL_FAIL, .src = 1, .fail = {.result = 0}};
	refuse(m, "a failure that is a success");
	m = (struct ctl_msg){
		.kind = CTL_FAIL, .src = 1, .fail = {.result = 1, .culprit = 4}};
	refuse(m, "a culprit that is no rank");
	m = (struct ctl_msg){.kind = CTL_STATUS, .src = 1, .status = {.waits_for = 4}};
	refuse(m, "waiting for what is no rank");
	m = (struct ctl_msg){
		.kind = CTL_ELSEWHERE, .src = 1, .elsewhere = {.waits_for = 4}};
	refuse(m, "waiting elsewhere for what is no rank");
	m = (struct ctl_msg){.kind = CTL_ELSEWHERE,
			     .src = 1,
			     .elsewhere = {.comm = NAME_COMM_MAX + 1}};
	refuse(m, "waiting in a communicator that has no name");
	m = (struct ctl_msg){.kind = CTL_AGREE, .src = 1};
	refuse(m, "a word of no phase about who goes on");
	m.agree.phase = AGREE_PHASES;
	refuse(m, "a word of an unknown one");
	m.agree.phase = AGREE_JOIN;
	m.agree.value.number = NAME_COMM_MAX + 2;
	refuse(m, "a number that no communicator can have");
	m.agree.value.number = 1;
	m.agree.ballot = AGREE_BALLOT_MAX + 1;
	refuse(m, "a ballot that is never reached");
}

/* Whatever is taken must be within bounds: the fields index tables. */
static void test_damage(void)
{
	unsigned char buf[CTL_MAX];
	struct ctl_msg msg = full_ready(), back;
	const size_t len = ctl_encode(&msg, buf);
	uint32_t state = 12345;
	int wrong = 0;

	for (int i = 0; i < 200000; i++) {
		unsigned char bad[CTL_MAX];

		memcpy(bad, buf, len);
		for (int k = 0; k < 3; k++) {
			state = state * 1664525u + 1013904223u;
			bad[(state >> 8) % len] = (unsigned char)(state >> 24);
		}
		if (!ctl_decode(bad, len, 4, &back) || back.kind != CTL_READY)
			continue;
		for (int e = 0; e < back.ready.entries; e++)
			wrong += back.ready.entry[e].handle >= MEM_ENTRIES_MAX;
		wrong += back.src < 0 || back.src >= 4;
	}
	tap_is_int(wrong, 0, "200000 damaged messages: nothing out of range is taken");
}

static void test_pool(void)
{
	struct pool pool;
	void *seen[200];
	bool good = true;

	pool_init(&pool, 24);
	for (int i = 0; i < 200; i++) {
		seen[i] = pool_get(&pool);
		memset(seen[i], i, 24);
	}
	for (int i = 0; i < 200; i++)
		good = good && *(unsigned char *)seen[i] == (unsigned char)i;
	tap_ok(good, "pool: objects are apart");
	for (int i = 0; i < 200; i++)
		pool_put(&pool, seen[i]);
	good = true;
	for (int i = 0; i < 200; i++) {
		void *object = pool_get(&pool);
		bool found = false;

		for (int k = 0; k < 200; k++)
			found = found || seen[k] == object;
		good = good && found;
	}
	tap_ok(good, "pool: what was returned is used again");
	pool_fini(&pool);
}

int main(void)
{
	test_name_F4();
	test_signature();
	test_messages();
	test_job();
	test_refusals();
	test_damage();
	test_pool();
	return tap_done();
}
