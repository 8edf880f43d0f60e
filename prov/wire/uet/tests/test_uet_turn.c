/* SPDX-License-Identifier: BSD-2-Clause */
/* Nobody is in while another is, with the system's barrier and without. */
#include "config.h"

#include <pthread.h>
#include <sched.h>

#include "prov/wire/uet/uet_turn.h"
#include "util/tap.h"

struct shared {
	struct uet_turn turn;
	_Atomic(bool) stop;
	uint64_t count; /* both write it, whoever is in */
	uint64_t inside;
	uint64_t taken; /* by the helper */
	uint64_t wrong;
};

static void in_and_out(struct shared *s)
{
	s->wrong += s->inside != 0;
	s->inside = 1;
	s->count++;
	s->inside = 0;
}

static void *helper(void *arg)
{
	struct shared *s = arg;

	while (!s->stop) {
		if (uet_turn_try(&s->turn)) {
			in_and_out(s);
			s->taken++;
			uet_turn_out(&s->turn);
		}
		sched_yield();
	}
	return NULL;
}

static uint64_t taken(struct shared *s)
{
	uint64_t n;

	uet_turn_take(&s->turn);
	n = s->taken;
	uet_turn_give(&s->turn);
	return n;
}

static void both(bool fenced)
{
	const uint64_t rounds = tap_short() ? 20000 : 200000;
	struct shared s = {.count = 0};
	pthread_t thread;
	uint64_t calls, wrong = 0;

	uet_turn_open(&s.turn);
	if (fenced)
		s.turn.fenced = true;
	else if (s.turn.fenced)
		tap_diag("no membarrier here");
	if (pthread_create(&thread, NULL, helper, &s))
		tap_bail("no thread");
	for (uint64_t i = 0; i < rounds; i++) {
		uet_turn_take(&s.turn);
		uet_turn_take(&s.turn);
		in_and_out(&s);
		uet_turn_give(&s.turn);
		wrong += !(uet_turn_calls(&s.turn) & 1);
		uet_turn_give(&s.turn);
		wrong += uet_turn_calls(&s.turn) & 1;
	}
	/* It comes in as soon as nobody is. */
	calls = uet_turn_calls(&s.turn);
	while (!taken(&s))
		sched_yield();
	wrong += uet_turn_calls(&s.turn) == calls;
	s.stop = true;
	pthread_join(thread, NULL);
	tap_ok(s.count == rounds + s.taken && !s.wrong && !wrong && s.taken,
	       "%s: one at a time, each gets in", fenced ? "fences" : "the barrier");
	uet_turn_close(&s.turn);
}

static void *try_in(void *arg)
{
	struct shared *s = arg;

	s->stop = !uet_turn_try(&s->turn);
	if (!s->stop)
		uet_turn_out(&s->turn);
	return NULL;
}

int main(void)
{
	struct shared s = {.count = 0};
	pthread_t thread;

	both(false);
	both(true);
	uet_turn_open(&s.turn);
	uet_turn_take(&s.turn);
	if (pthread_create(&thread, NULL, try_in, &s))
		tap_bail("no thread");
	pthread_join(thread, NULL);
	tap_ok(s.stop, "the helper doesn't wait for an application that is in");
	uet_turn_give(&s.turn);
	uet_turn_close(&s.turn);
	return tap_done();
}
