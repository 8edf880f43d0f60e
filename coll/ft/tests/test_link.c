/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members and their coordinator as processes: deaths of either, stops, newcomers, and
 * who comes back. That the machines are right is for the model; here it is whether they
 * are told and heard.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "coll/ft/tests/job.h"
#include "util/tap.h"

enum { SIGN = 7, OTHER_SIGN = 8 };

/* Members 0 to count - 1, joined. */
static struct job *started(uint32_t count)
{
	struct job *job = job_make(count);

	if (!job_coord_start(job, 0, true))
		tap_bail("no coordinator: %s", job->coord[0].why);
	for (uint32_t i = 0; i < count; i++)
		job_member_start(job, (int)i, SIGN);
	return job;
}

static void life(void)
{
	struct job *job = started(4);
	bool good = job_ran(job, 0xf, 20);

	for (int i = 0; i < 4; i++)
		good &= job->member[i].live == 4 && job->member[i].joined == 1;
	tap_ok(good, "4 members run 20 steps");
	good = true;
	for (int i = 0; i < 4; i++)
		good &= job->member[i].runs == 20 && job->member[i].connects == 1;
	tap_ok(good, "each of them once, over one connection each");
	tap_ok(job_leave(job, 0xf, 0),
	       "all leave, are told so, and the coordinator ends");
	tap_ok(job_agrees(job), "all counted the same");
	job_end(job);
}

static void member_dies(void)
{
	struct job *job = started(4);
	bool good = job_ran(job, 0xf, 5);

	for (int i = 0; i < 3; i++)
		job->member[i].hold = true;
	job_run(job, 0xf, 10);
	for (int i = 0; i < 3; i++)
		good &= job_wait(&job->member[i].runs, 6);
	job_member_kill(job, 3);
	for (int i = 0; i < 3; i++)
		good &= job_wait(&job->member[i].stops, 1);
	tap_ok(good, "who runs a step is stopped when another dies");
	for (int i = 0; i < 3; i++)
		job->member[i].hold = false;
	good = job_ran(job, 0x7, 10);
	for (int i = 0; i < 3; i++)
		good &= job->member[i].live == 3 && job->member[i].count == 3;
	tap_ok(good, "the others run it again, and count without it");
	tap_ok(job_agrees(job), "and agree");
	job_end(job);
}

/* The step of a path that is broken, with both ends alive. */
static void step_fails(void)
{
	struct job *job = started(3);
	bool good = job_ran(job, 0x7, 2);

	job->member[0].suspect = job->member[2].id;
	job->member[0].fail = true;
	good &= job_ran(job, 0x7, 3);
	tap_ok(good && job->member[0].runs + job->member[1].runs > 6,
	       "a step that one could not run is run again");
	tap_ok(job->member[0].live == 3, "with the one that it waited for");
	job_end(job);
}

static void coordinator_dies(void)
{
	struct job *job = started(4);
	bool good = job_ran(job, 0xf, 5);

	job_coord_kill(job, 0);
	job_run(job, 0xf, 10);
	good &= job_coord_start(job, 0, false);
	tap_ok(good && job_ran(job, 0xf, 10),
	       "a coordinator that was killed and comes back goes on");
	tap_ok(job->member[0].live == 4, "with everybody");
	job_coord_kill(job, 0);
	job_coord_forget(job, 0);
	good = job_coord_start(job, 0, false);
	if (!good)
		tap_diag("%s", job->coord[0].why);
	tap_ok(good && job_ran(job, 0xf, 15),
	       "one whose file is lost has its state from the members");
	job_coord_kill(job, 0);
	tap_ok(!job_coord_start(job, 0, true) && job->coord[0].up == -EEXIST &&
		       strstr(job->coord[0].why, job->coord[0].state),
	       "one that says it is the first is refused where there was one");
	good = job_coord_start(job, 0, false) && job_ran(job, 0xf, 20);
	tap_ok(good && job->member[3].live == 4 && job_leave(job, 0xf, 0),
	       "the steps go on");
	tap_ok(job_agrees(job), "all counted the same");
	job_end(job);
}

static void two_coordinators(void)
{
	struct job *job = job_make(4);
	bool good = job_coord_start(job, 0, true);

	good &= job_coord_start(job, 1, false);
	for (int i = 0; i < 4; i++)
		job_member_start(job, i, SIGN);
	tap_ok(good && job_ran(job, 0xf, 5), "of two coordinators one is heard");
	tap_ok(job->coord[1].conns == 0, "the other has nobody");
	job_coord_kill(job, 0);
	tap_ok(job_ran(job, 0xf, 10), "until the first is gone: it takes over");
	/* The first comes back with its old file, and is the first that a newcomer asks.
	 * Which of the two goes on depends on whose term is higher. */
	good = job_coord_start(job, 0, false);
	job_member_start(job, 4, SIGN);
	tap_ok(good && job_wait(&job->member[4].joined, 1) && job_ran(job, 0x1f, 15),
	       "when it is back one of the two goes on, and lets a newcomer in");
	good = true;
	for (int i = 0; i < 5; i++)
		good &= !job->member[i].fenced;
	tap_ok(good && job_agrees(job), "nobody is out, and all agree");
	tap_ok(job->coord[0].up == 1 || job->coord[1].up == 1,
	       "only the other may have ended");
	job_end(job);
}

/* What a member that was stopped for longer than the silence comes back to. */
static void member_stops(void)
{
	struct job *job = job_make(4);
	bool good;

	job->coord[0].attr.silence_us = 3000000;
	good = job_coord_start(job, 0, true);
	for (int i = 0; i < 4; i++)
		job_member_start(job, i, SIGN);
	good &= job_ran(job, 0xf, 3);
	kill(job->member[2].pid, SIGSTOP);
	tap_ok(good && job_ran(job, 0xb, 6), "without one that says nothing it goes on");
	tap_ok(job->member[0].live == 3, "with the others");
	kill(job->member[2].pid, SIGCONT);
	tap_ok(job_wait(&job->member[2].fenced, 1) &&
		       job->member[2].reason == FT_REASON_EXCLUDED,
	       "one that comes back after it was declared dead is refused and told so");
	tap_ok(job->member[2].step == 3, "it counted nothing meanwhile");
	job_member_start(job, 3 + 2, SIGN);
	tap_ok(job_wait(&job->member[5].joined, 1) && job_ran(job, 0x2b, 9),
	       "as a new member it may come");
	tap_ok(job_agrees(job), "all agree");
	job_end(job);
}

static void newcomers(void)
{
	struct job *job = started(2);
	bool good = job_ran(job, 0x3, 4);

	job_member_start(job, 2, SIGN);
	tap_ok(good && job_wait(&job->member[2].joined, 5),
	       "a newcomer is let in, and knows how far the steps are");
	tap_ok(job_ran(job, 0x7, 8) && job->member[0].live == 3, "it counts");
	job_member_start(job, 3, OTHER_SIGN);
	tap_ok(job_wait(&job->member[3].fenced, 1) &&
		       job->member[3].reason == FT_REASON_SIGN,
	       "one that reduces something else is refused and told so");
	tap_ok(job_ran(job, 0x7, 10) && !job->member[3].joined, "the others go on");
	job->member[2].leave = true;
	tap_ok(job_wait(&job->member[2].fenced, 1) &&
		       job->member[2].reason == FT_REASON_LEFT,
	       "one leaves");
	tap_ok(job_ran(job, 0x3, 12) && job->member[0].live == 2 && job_agrees(job),
	       "the others go on without it");
	job_end(job);
}

int main(void)
{
	life();
	member_dies();
	step_fails();
	coordinator_dies();
	two_coordinators();
	member_stops();
	newcomers();
	return tap_done();
}
