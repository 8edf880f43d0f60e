/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages of the executor, as a rank that went wrong may send them: what
 * ctl_decode accepts stays inside the tables that it indexes, and is the same after
 * another way through encode and decode.
 */
#include "config.h"

#include <string.h>

#include "coll/exec/ctl.h"
#include "coll/exec/mem.h"
#include "coll/exec/name.h"
#include "tests/fuzz/fuzz.h"

#define RANKS 5

static void ready_require(const struct ctl_ready *ready)
{
	fuzz_require(ready->entries >= 1 && ready->entries <= CTL_ENTRY_MAX);
	fuzz_require(ready->handles <= CTL_HANDLE_MAX);
	for (int i = 0; i < ready->handles; i++)
		fuzz_require(ready->handle[i].id < MEM_ENTRIES_MAX);
	for (int i = 0; i < ready->entries; i++) {
		fuzz_require(ready->entry[i].recv <= NAME_INDEX_MASK);
		fuzz_require(ready->entry[i].handle < MEM_ENTRIES_MAX);
		fuzz_require(ready->entry[i].choice <= CTL_CHOICE_PUT);
		/* Pieces of one place belong together, and the last one says so. */
		fuzz_require(!ready->entry[i].more ||
			     (i + 1 < ready->entries &&
			      ready->entry[i].k == ready->entry[i + 1].k));
	}
}

static void msg_require(const struct ctl_msg *msg)
{
	fuzz_require(msg->src >= 0 && msg->src < RANKS && msg->comm <= NAME_COMM_MAX);
	switch (msg->kind) {
	case CTL_READY:
		ready_require(&msg->ready);
		return;
	case CTL_FAIL:
	case CTL_REPORT:
	case CTL_VERDICT:
	case CTL_REVOKE:
		fuzz_require(msg->fail.culprit >= -1 && msg->fail.culprit < RANKS);
		fuzz_require(msg->fail.result > 0 &&
			     msg->fail.result < WEFT_RESULT_COUNT);
		fuzz_require(memchr(msg->fail.text, 0, sizeof(msg->fail.text)) != NULL);
		return;
	case CTL_PROBE:
	case CTL_STATUS:
		fuzz_require(msg->status.waits_for >= -1 &&
			     msg->status.waits_for < RANKS);
		return;
	case CTL_ELSEWHERE:
		fuzz_require(msg->elsewhere.waits_for >= -1 &&
			     msg->elsewhere.waits_for < RANKS);
		fuzz_require(msg->elsewhere.comm <= NAME_COMM_MAX);
		return;
	case CTL_PAST:
		fuzz_require(msg->past.entries <= CTL_PAST_MAX);
		return;
	case CTL_REVOKED:
	case CTL_FORGOTTEN: /* any number of calls */
		return;
	case CTL_AGREE:
		fuzz_require(msg->agree.phase >= AGREE_JOIN &&
			     msg->agree.phase < AGREE_PHASES);
		fuzz_require(msg->agree.ballot <= AGREE_BALLOT_MAX &&
			     msg->agree.taken <= AGREE_BALLOT_MAX);
		/* One above the highest: none is left. */
		fuzz_require(msg->agree.value.number <= NAME_COMM_MAX + 1);
		return;
	case CTL_WIN_SIGNAL:
	case CTL_WIN_PUT:
	case CTL_WIN_GET:
		return; /* what they name is looked up, and compared with the window */
	}
	fuzz_require(false);
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	uint8_t once[CTL_MAX] = {0}, twice[CTL_MAX] = {0};
	struct ctl_msg msg = {0}, again = {0};
	uint64_t job = 0;
	const bool told = ctl_job(data, size, &job);

	if (!ctl_decode(data, size, RANKS, &msg))
		return false;
	msg_require(&msg);
	/* Whoever reads the whole read the job before. */
	fuzz_require(told && job == msg.job);
	fuzz_require(ctl_encode(&msg, once) == size);
	fuzz_require(ctl_decode(once, size, RANKS, &again));
	fuzz_require(ctl_encode(&again, twice) == size);
	fuzz_require(memcmp(once, twice, size) == 0);
	return true;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const struct ctl_ready place = {
		.entries = 1, .entry = {{.k = 7, .recv = 9, .length = 4096}}};
	static const struct ctl_ready pieces = {
		.entries = 3,
		.handles = 2,
		.handle = {{.id = 1, .incarnation = 3, .key = 77, .base = 4096},
			   {.id = 2, .incarnation = 4, .key = 78}},
		.entry = {{.k = 7, .recv = 9, .handle = 1, .choice = 1, .more = 1},
			  {.k = 7, .recv = 9, .handle = 1, .choice = 1, .offset = 64},
			  {.k = 8, .recv = 10, .handle = 2, .choice = 1}}};
	struct ctl_msg msg = {
		.job = UINT64_C(0x8123456789abcdef), .src = 4, .comm = 3, .call = 1000};
	uint8_t buf[CTL_MAX];
	size_t len;

	switch (number) {
	case 0:
		msg.kind = CTL_READY;
		msg.ready = place;
		break;
	case 1:
		msg.kind = CTL_READY;
		msg.ready = pieces;
		break;
	case 2:
		msg.kind = CTL_FAIL;
		msg.fail = (struct ctl_fail){.result = WEFT_ERR_PEER, .culprit = 2};
		strcpy(msg.fail.text, "rank 2 left");
		break;
	case 3:
		msg.kind = CTL_REVOKED;
		break;
	case 4:
	case 5:
		msg.kind = number == 4 ? CTL_PROBE : CTL_STATUS;
		msg.status = (struct ctl_status){
			.call = {.count = 100, .type = WEFT_FP32, .algorithm = 5},
			.waits_for = 1,
			.place = true,
			.place_k = 3,
			.place_bytes = 1600000};
		break;
	case 6:
	case 7:
		msg.kind = number == 6 ? CTL_REPORT : CTL_VERDICT;
		msg.fail = (struct ctl_fail){.result = WEFT_ERR_MISMATCH, .culprit = -1};
		strcpy(msg.fail.text, "rank 0 runs a barrier, rank 1 a broadcast");
		break;
	case 8:
		msg.kind = CTL_PAST;
		msg.past = (struct ctl_past){.entries = 2,
					     .call = {{.count = 9}, {.root = 1}}};
		break;
	case 9:
	case 10:
	case 11:
		msg.kind = number == 9	  ? CTL_WIN_SIGNAL
			   : number == 10 ? CTL_WIN_PUT
					  : CTL_WIN_GET;
		msg.win = (struct ctl_win){
			.index = 3, .offset = 64, .length = 4096, .value = 1};
		break;
	case 12:
		msg.kind = CTL_ELSEWHERE;
		msg.elsewhere = (struct ctl_elsewhere){
			.id = {.count = 100}, .comm = 2, .call = 7, .waits_for = 1};
		break;
	case 13:
		msg.kind = CTL_REVOKE;
		msg.fail = (struct ctl_fail){.result = WEFT_ERR_REVOKED, .culprit = 2};
		strcpy(msg.fail.text, "rank 2 revoked communicator 3: enough");
		break;
	case 14:
		msg.kind = CTL_FORGOTTEN;
		msg.forgotten.since = 17;
		break;
	default:
		return 0;
	}
	len = ctl_encode(&msg, buf);
	fuzz_require(len <= FUZZ_ROOM);
	memcpy(room, buf, len);
	return len;
}
