/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault-tolerant all-reduces among processes: members die, are stopped and come back,
 * leave and come; the coordinator stands still. Each step counts for all who go on or for
 * none, with the sum over those that took part.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "coll/ftar/epoch.h"
#include "coll/ftar/tests/crew.h"
#include "util/tap.h"

static const char *provider;

static struct crew *started(uint32_t count, int64_t silence_us, uint64_t elements)
{
	struct crew *crew = crew_make(count, silence_us, provider);

	for (int m = 0; m < CREW_MEMBERS; m++)
		crew->member[m].count = elements;
	for (uint32_t m = 0; m < count; m++) {
		crew->member[m].in_place = m % 2;
		crew_start(crew, (int)m);
	}
	return crew;
}

/* They leave, and end well. */
static bool all_leave(struct crew *crew, uint32_t mask)
{
	bool good = true;

	for (int m = 0; m < CREW_MEMBERS; m++) {
		if (mask & 1u << m)
			atomic_store(&crew->member[m].leave, true);
	}
	for (int m = 0; m < CREW_MEMBERS; m++) {
		if (!(mask & 1u << m))
			continue;
		if (crew_result(crew, m) == WEFT_SUCCESS)
			continue;
		printf("# member %d: %s\n", m, crew->member[m].text);
		good = false;
	}
	return good;
}

static bool counted(const struct crew *crew, int member, uint64_t step, uint8_t who,
		    uint8_t live)
{
	const struct crew_member *me = &crew->member[member];

	if (me->who[step] == who && me->live[step] == live)
		return true;
	printf("# step %llu of member %d: %02x of %u, not %02x of %u\n",
	       (unsigned long long)step, member, me->who[step], me->live[step], who,
	       live);
	return false;
}

static void life(uint64_t elements)
{
	struct crew *crew = started(3, CREW_PATIENT_US, elements);
	bool good = crew_steps(crew, 7, 8);

	for (int m = 0; m < 3; m++) {
		good &= counted(crew, m, 1, elements ? 7 : 0, 3);
		good &= counted(crew, m, 8, elements ? 7 : 0, 3);
		good &= crew->member[m].runs == 8 && crew->member[m].epochs == 1;
	}
	good &= all_leave(crew, 7) && (!elements || crew_agrees(crew));
	tap_ok(good, "%s: 3 members reduce %llu elements 8 times and leave", provider,
	       (unsigned long long)elements);
	crew_end(crew);
}

/* One is killed while steps go on. */
static void death(void)
{
	struct crew *crew = started(4, CREW_MISSED_US, 100000);
	bool good = crew_steps(crew, 0xf, 3);

	for (int m = 0; m < 4; m++)
		atomic_store(&crew->member[m].until, 20);
	good &= crew_wait(&crew->member[3].step, 4);
	crew_signal(crew, 3, SIGKILL);
	good &= crew_steps(crew, 7, 20);
	good &= counted(crew, 0, 20, 7, 3) && crew_agrees(crew);
	good &= all_leave(crew, 7);
	tap_ok(good, "%s: one of 4 is killed, the others go on", provider);
	crew_end(crew);
}

/* One stands still until it is excluded; it hears so when it wakes. */
static void stopped(void)
{
	struct crew *crew = started(3, CREW_MISSED_US, 100000);
	bool good = crew_steps(crew, 7, 3);

	crew_signal(crew, 2, SIGSTOP);
	good &= crew_steps(crew, 3, 8);
	good &= counted(crew, 0, 8, 3, 2);
	crew_signal(crew, 2, SIGCONT);
	atomic_store(&crew->member[2].until, 8);
	good &= crew_result(crew, 2) == WEFT_ERR_FENCED;
	good &= crew_steps(crew, 3, 12) && crew_agrees(crew);
	good &= all_leave(crew, 3);
	for (int m = 0; m < 2; m++)
		good &= crew->member[m].buried == 0;
	tap_ok(good, "%s: who stood still is fenced, and nothing stays buried", provider);
	crew_end(crew);
}

/* A newcomer contributes nothing at first, and another one leaves. */
static void newcomer(void)
{
	struct crew *crew = started(2, CREW_PATIENT_US, 5000);
	bool good = crew_steps(crew, 3, 3);
	uint64_t first;

	atomic_store(&crew->member[2].silent, CREW_STEPS);
	crew_start(crew, 2);
	good &= crew_wait(&crew->member[2].joined, 1);
	first = crew->member[2].joined;
	good &= crew_steps(crew, 7, first + 3);
	good &= counted(crew, 2, first + 3, 3, 3) && counted(crew, 0, first + 3, 3, 3);
	atomic_store(&crew->member[2].silent, 0);
	good &= crew_steps(crew, 7, first + 6) && counted(crew, 1, first + 6, 7, 3);
	good &= all_leave(crew, 1);
	good &= crew_steps(crew, 6, first + 9) && counted(crew, 1, first + 9, 6, 2);
	good &= crew_agrees(crew) && all_leave(crew, 6);
	tap_ok(good, "%s: one comes, catches up, contributes; one leaves", provider);
	crew_end(crew);
}

/* Steps wait for the coordinator, as long as their callers want. */
static void coordinator_stands(void)
{
	struct crew *crew = crew_make(2, CREW_PATIENT_US, provider);
	bool good;

	for (int m = 0; m < 2; m++) {
		crew->member[m].timeout_us = 50000;
		crew_start(crew, m);
	}
	good = crew_steps(crew, 3, 3);
	crew_signal(crew, -1, SIGSTOP);
	for (int m = 0; m < 2; m++)
		atomic_store(&crew->member[m].until, 6);
	usleep(300000);
	good &= crew->member[0].step < 6;
	crew_signal(crew, -1, SIGCONT);
	good &= crew_steps(crew, 3, 6) && counted(crew, 0, 6, 3, 2) && crew_agrees(crew);
	good &= all_leave(crew, 3);
	tap_ok(good, "%s: the same call again goes on with a step that was undecided",
	       provider);
	crew_end(crew);
}

/* Whoever hears of it is out; the rest may go on, if it is half of them, never with one
 * that differs. */
static bool disagree_ends(struct crew *crew)
{
	const time_t until = time(NULL) + CREW_WAIT_S;
	int over, heard;
	bool good = true;

	do {
		over = heard = 0;
		for (int m = 0; m < 3; m++) {
			struct crew_member *me = &crew->member[m];

			over += me->result || me->step == 3;
			heard += me->result == 1 + (int)WEFT_ERR_MISMATCH;
		}
		usleep(1000);
	} while (over < 3 && heard < 2 && time(NULL) < until);
	for (int m = 0; m < 3; m++) {
		struct crew_member *me = &crew->member[m];

		if (me->step == 3)
			good &= me->who[3] == 2 ? m == 1 : !(me->who[3] & 2);
		if (!me->result || me->result == 1 + (int)WEFT_ERR_MISMATCH ||
		    me->result == 1 + (int)WEFT_ERR_FENCED)
			continue;
		printf("# member %d: %s\n", m, me->text);
		good = false;
	}
	return good && heard > 0;
}

static void disagree(void)
{
	struct crew *crew = crew_make(3, CREW_PATIENT_US, provider);
	bool good;

	crew->member[1].other_count_at = 3;
	for (int m = 0; m < 3; m++)
		crew_start(crew, m);
	good = crew_steps(crew, 7, 2);
	for (int m = 0; m < 3; m++)
		atomic_store(&crew->member[m].until, 3);
	good &= disagree_ends(crew) && crew_agrees(crew);
	tap_ok(good, "%s: another count is refused", provider);
	crew_end(crew);
	crew = crew_make(1, CREW_PATIENT_US, provider);
	crew->member[1].sign = 6;
	crew_start(crew, 0);
	good = crew_steps(crew, 1, 1);
	crew_start(crew, 1);
	good &= crew_result(crew, 1) == WEFT_ERR_FENCED && all_leave(crew, 1);
	tap_ok(good, "%s: who reduces something else is refused", provider);
	crew_end(crew);
}

/* Who died contributes nothing, nor does who only looks on: neither counts (G5). */
static void average(void)
{
	struct crew *crew = crew_make(3, CREW_MISSED_US, provider);
	bool good;

	for (int m = 0; m < 3; m++) {
		crew->member[m].average = true;
		crew->member[m].in_place = m == 1;
		crew_start(crew, m);
	}
	good = crew_steps(crew, 7, 2) && counted(crew, 0, 2, 7, 3);
	crew_signal(crew, 2, SIGKILL);
	good &= crew_steps(crew, 3, 6) && counted(crew, 1, 6, 3, 2);
	atomic_store(&crew->member[0].silent, CREW_STEPS);
	good &= crew_steps(crew, 3, 7) && counted(crew, 0, 7, 2, 2) && crew_agrees(crew);
	good &= all_leave(crew, 3);
	tap_ok(good, "%s: averages are of those that contributed", provider);
	crew_end(crew);
}

/* Replicas of two members: a member that dies takes the other one of its group along, a
 * group comes when it is whole, and goes as a whole when one of it leaves. */
static void groups(void)
{
	struct crew *crew = crew_groups(6, 2, CREW_MISSED_US, provider);
	uint64_t first;
	bool good;

	for (int m = 0; m < 6; m++)
		crew_start(crew, m);
	good = crew_steps(crew, 0x3f, 3) && counted(crew, 0, 3, 0x3f, 6);
	crew_signal(crew, 5, SIGKILL);
	atomic_store(&crew->member[4].until, 8);
	good &= crew_steps(crew, 0xf, 8) && counted(crew, 0, 8, 0xf, 4);
	good &= crew_result(crew, 4) == WEFT_ERR_FENCED;
	tap_ok(good, "%s: a group with a dead member is out, the others go on", provider);
	crew_start(crew, 6);
	good = crew_steps(crew, 0xf, 12) && counted(crew, 0, 12, 0xf, 4) &&
	       !crew->member[6].joined;
	crew_start(crew, 7);
	/* Newcomers are let in between steps. */
	for (int m = 0; m < 4; m++)
		atomic_store(&crew->member[m].until, 14);
	good &= crew_wait(&crew->member[6].joined, 1) &&
		crew_wait(&crew->member[7].joined, 1);
	good &= crew->member[6].joined == crew->member[7].joined;
	first = crew->member[6].joined > 14 ? crew->member[6].joined : 14;
	good &= crew_steps(crew, 0xcf, first + 3) && counted(crew, 6, first + 3, 0xcf, 6);
	tap_ok(good, "%s: half a group waits, a whole one is let in at once", provider);
	atomic_store(&crew->member[1].until, first + 6);
	good = all_leave(crew, 1);
	good &= crew_steps(crew, 0xcc, first + 6) && counted(crew, 6, first + 6, 0xcc, 4);
	good &= crew_result(crew, 1) == WEFT_ERR_FENCED && crew_agrees(crew);
	good &= all_leave(crew, 0xcc);
	tap_ok(good, "%s: one leaves, and its group is out with it", provider);
	crew_end(crew);
}

/* One of the only group leaves, and the other one does not: there is nothing to go on
 * with, and both are out. */
static void last_group(void)
{
	struct crew *crew = crew_groups(2, 2, CREW_PATIENT_US, provider);
	bool good;

	for (int m = 0; m < 2; m++)
		crew_start(crew, m);
	good = crew_steps(crew, 3, 3) && counted(crew, 0, 3, 3, 2);
	good &= all_leave(crew, 1);
	atomic_store(&crew->member[1].until, 4);
	good &= crew_result(crew, 1) == WEFT_ERR_FENCED && crew_agrees(crew);
	tap_ok(good, "%s: one of the last group leaves, and it is out with it", provider);
	crew_end(crew);
}

/* Where epoch after epoch fails nobody may be gone, and all be slow. */
static void patience(void)
{
	const struct ft_epoch counted_in = {3, 10};
	const int64_t base = 1000;
	int64_t before = 0;
	bool good = true;

	for (uint64_t seq = 10; seq < 200; seq++) {
		const int64_t now =
			epoch_patience((struct ft_epoch){3, seq}, counted_in, base);

		good &= now >= before && now <= 8 * base && (seq > 16 || now == base);
		before = now;
	}
	tap_ok(good && before == 8 * base, "attempts get longer, eightfold at last");
	tap_ok(epoch_patience((struct ft_epoch){4, 2}, counted_in, base) == base &&
		       epoch_patience((struct ft_epoch){4, 90}, counted_in, base) > base,
	       "another coordinator's epochs count by themselves");
	tap_ok(epoch_patience((struct ft_epoch){3, 99}, counted_in, INT64_MAX) ==
		       INT64_MAX,
	       "an attempt without an end has none");
}

/* It is said at once, and not tried again and again in epochs that fail. */
static void no_provider(void)
{
	struct crew *crew = crew_make(1, CREW_PATIENT_US, "nosuchprovider");

	crew_start(crew, 0);
	tap_ok(crew_result(crew, 0) == WEFT_ERR_PROVIDER &&
		       strstr(crew->member[0].text, "nosuchprovider"),
	       "a provider that isn't there: %s", crew->member[0].text);
	crew_end(crew);
}

int main(void)
{
	const char *list = getenv("WEFT_TEST_PROVIDER");

	provider = list && *list ? list : "weft";
	life(20000);
	life(1);
	life(0);
	death();
	stopped();
	newcomer();
	coordinator_stands();
	disagree();
	average();
	groups();
	last_group();
	patience();
	no_provider();
	return tap_done();
}
