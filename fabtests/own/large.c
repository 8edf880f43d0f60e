/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large messages while one side makes no call for a second, or dies in the middle; with
 * shared slots, by attach only, and without attach.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>

#include "fabtests/own/util.h"

#define LEN   ((size_t)5 << 20)
#define COUNT 6
#define STOP  1000 /* ms */

static const struct want want_tagged = {.caps = FI_TAGGED | FI_MSG};

static void *buffers[COUNT];

static void post_recvs(struct side *s)
{
	for (int i = 0; i < COUNT; i++) {
		buffers[i] = mem_new(LEN);
		while (node_again(s,
				  fi_trecv(s->node.ep, buffers[i], LEN, NULL,
					   s->node.peer, (uint64_t)i, 0, buffers[i]),
				  "fi_trecv"))
			;
	}
}

static void post_sends(struct side *s)
{
	for (int i = 0; i < COUNT; i++) {
		buffers[i] = mem_new(LEN);
		mem_fill(buffers[i], LEN, (uint32_t)i);
		while (node_again(s,
				  fi_tsend(s->node.ep, buffers[i], LEN, NULL,
					   s->node.peer, (uint64_t)i, buffers[i]),
				  "fi_tsend"))
			;
	}
}

static void collect(struct side *s)
{
	struct done d;

	for (int i = 0; i < COUNT; i++) {
		if (!node_next(s, &d, WAIT_MS) || d.err)
			side_die(s, "completion %d: error %d", i, d.err);
	}
}

/* A few calls after the posts, so that the transfers are under way: how many differs. */
static void begin_all(struct side *s)
{
	const uint64_t until = now_ms() + 1 + (uint64_t)(getpid() % 3);

	while (now_ms() < until)
		node_progress(&s->node);
}

static void stop_here(struct side *s)
{
	begin_all(s);
	sleep_ms(STOP);
}

/* Without attach the receiver needs the sender's calls: it finds out, and both know. */
static bool needs_sender(struct side *s)
{
	bool needs = getenv("FI_WEFT_CMA") || !test_is_weft();

	if (s->role == 1) {
		needs = needs || !side_can_attach(s);
		side_tell(s, &needs, sizeof(needs));
	} else {
		side_hear_passive(s, &needs, sizeof(needs));
	}
	return needs;
}

static void sender_stops(struct side *s)
{
	uint8_t go = 1;
	bool needs;

	node_open(s, &want_tagged);
	side_meet(s);
	needs = needs_sender(s);
	if (s->role == 0) {
		post_sends(s);
		if (needs) {
			stop_here(s);
		} else { /* no call until the receiver has everything */
			begin_all(s);
			side_hear_passive(s, &go, sizeof(go));
		}
		collect(s);
	} else {
		post_recvs(s);
		collect(s);
		if (!needs)
			side_tell(s, &go, sizeof(go));
		for (int i = 0; i < COUNT; i++)
			mem_check(s, buffers[i], LEN, (uint32_t)i, "received");
	}
	node_close(s, &s->node);
}

static void receiver_stops(struct side *s)
{
	node_open(s, &want_tagged);
	side_meet(s);
	if (s->role == 0) {
		post_sends(s);
		collect(s);
	} else {
		post_recvs(s);
		stop_here(s);
		collect(s);
		for (int i = 0; i < COUNT; i++)
			mem_check(s, buffers[i], LEN, (uint32_t)i, "received");
	}
	node_close(s, &s->node);
}

/* Every receive ends, well or in error; what ended well is right. */
static void survivor(struct side *s)
{
	struct done d;

	node_open(s, &want_tagged);
	side_meet(s);
	post_recvs(s);
	for (int i = 0; i < COUNT; i++) {
		if (!node_next(s, &d, 2000)) {
			/* Directed receives whose message never came: nobody ends them.
			 */
			while (i < COUNT) {
				for (int k = 0; k < COUNT; k++)
					fi_cancel(&s->node.ep->fid, buffers[k]);
				if (!node_next(s, &d, WAIT_MS))
					side_die(s, "receive %d has no end", i);
				i++;
			}
			break;
		}
		if (!d.err)
			mem_check(s, d.e.op_context, LEN, (uint32_t)d.e.tag, "received");
	}
	node_close(s, &s->node);
}

static void victim(struct side *s)
{
	node_open(s, &want_tagged);
	side_meet(s);
	post_sends(s);
	for (int i = 0; i < 300 + getpid() % 2000; i++)
		node_progress(&s->node);
	raise(SIGKILL);
}

/* And the other way round: sends end. */
static void sender_survives(struct side *s)
{
	struct done d;

	node_open(s, &want_tagged);
	side_meet(s);
	post_sends(s);
	for (int i = 0; i < COUNT; i++)
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "send %d has no end", i);
	node_close(s, &s->node);
}

static void receiver_dies(struct side *s)
{
	node_open(s, &want_tagged);
	side_meet(s);
	post_recvs(s);
	for (int i = 0; i < 300 + getpid() % 2000; i++)
		node_progress(&s->node);
	raise(SIGKILL);
}

static const struct test_case cases[] = {
	{.name = "a sender that stops", .run = {sender_stops, sender_stops}},
	{.name = "a receiver that stops", .run = {receiver_stops, receiver_stops}},
	{"a sender that dies", {survivor, victim}, .killed = true, .needs_weft = true},
	{"a receiver that dies",
	 {sender_survives, receiver_dies},
	 .killed = true,
	 .needs_weft = true},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	if (test_is_weft()) {
		setenv("FI_WEFT_JOINT_SIZE", "1000000000", 1);
		cases_run(cases, ARRAY_LEN(cases), ", pulled");
		unsetenv("FI_WEFT_JOINT_SIZE");
		setenv("FI_WEFT_BULK_SIZE", "16384", 1);
		cases_run(cases, ARRAY_LEN(cases), ", by slots");
		unsetenv("FI_WEFT_BULK_SIZE");
		setenv("FI_WEFT_CMA", "0", 1);
		cases_run(cases, ARRAY_LEN(cases), ", no attach");
	}
	return test_done();
}
