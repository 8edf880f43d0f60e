/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the network of an epoch ends: whoever goes on does not wait for a member that takes
 * nothing, and the others are told nevertheless.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/comm/comm.h"
#include "coll/ftar/epoch.h"
#include "util/tap.h"
#include "util/tap_fork.h"

/* The last rank stands still; the others are this process and one that goes on. */
enum { MEMBERS = 3, STILL = 2, PATIENT_US = 120000000, BRIEF_US = 1000 };

static const uint8_t job[MEET_JOB_LEN] = "secret";

struct scene {
	struct ft_entry entry[MEMBERS];
	struct ft_roster roster;
	int listener[MEMBERS];
	pid_t pid[MEMBERS];
	struct epoch *epoch; /* of this process, the first rank */
};

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static struct epoch *enter(const struct scene *s, int self, int64_t words_us, char *why)
{
	const struct epoch_attr attr = {.meet = {.roster = &s->roster,
						 .id = s->entry[self].id,
						 .listener = s->listener[self],
						 .job = job,
						 .until = boot_deadline(PATIENT_US),
						 .stopped = never},
					.provider = "tcp",
					.timeout_us = PATIENT_US,
					.words_us = words_us};
	uint64_t suspect;

	return epoch_open(&attr, &suspect, why);
}

static bool close_wholly(struct epoch *e)
{
	const int64_t until = boot_deadline(PATIENT_US);

	while (epoch_close(e) != EPOCH_GONE) {
		if (boot_clock_us() >= until)
			return false;
		usleep(1000);
	}
	return true;
}

static bool is_revoked(struct epoch *e)
{
	bool is;

	ctx_lock(e->ctx);
	exec_progress(e->ctx->exec);
	is = exec_comm_revoked(e->ctx->exec, e->comm->number);
	ctx_unlock(e->ctx);
	return is;
}

/* In the epoch until somebody ends it, then out of it. Status 0: that was told. */
static void other(const struct scene *s, int self)
{
	char why[EPOCH_WHY];
	struct epoch *e;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	e = enter(s, self, BRIEF_US, why);
	if (!e) {
		fprintf(stderr, "member %d: %s\n", self, why);
		_exit(2);
	}
	if (self == STILL)
		raise(SIGSTOP);
	while (!is_revoked(e))
		usleep(1000);
	_exit(close_wholly(e) ? 0 : 1);
}

static void scene_open(struct scene *s, int64_t words_us)
{
	char why[EPOCH_WHY];
	int status;

	*s = (struct scene){.roster = {{3, 4}, MEMBERS, MEMBERS, s->entry}};
	for (int i = 0; i < MEMBERS; i++) {
		s->entry[i].id = 10 + (uint64_t)i;
		s->listener[i] = meet_listen("127.0.0.1", "", s->entry[i].card,
					     &s->entry[i].card_len, why);
		if (s->listener[i] < 0)
			tap_bail("%s", why);
	}
	for (int i = 1; i < MEMBERS; i++) {
		s->pid[i] = tap_fork();
		if (s->pid[i] == 0)
			other(s, i);
	}
	s->epoch = enter(s, 0, words_us, why);
	if (!s->epoch)
		tap_bail("%s", why);
	if (waitpid(s->pid[STILL], &status, WUNTRACED) < 0 || !WIFSTOPPED(status))
		tap_bail("member %d did not stop: status %x", STILL, (unsigned)status);
}

static void scene_close(struct scene *s)
{
	for (int i = 0; i < MEMBERS; i++)
		close(s->listener[i]);
}

static bool ended_well(const struct scene *s, int member)
{
	int status = -1;

	return waitpid(s->pid[member], &status, 0) > 0 && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* What is said to the one that stands still can't leave: its host takes a connection for
 * it, but nobody answers there. */
static void stands_still(void)
{
	struct scene s;

	scene_open(&s, PATIENT_US);
	epoch_stop(s.epoch, "the test ends it");
	tap_ok(epoch_close(s.epoch) == EPOCH_TALKS,
	       "an epoch ends at once while a member stands still, and is not gone");
	kill(s.pid[STILL], SIGCONT);
	tap_ok(close_wholly(s.epoch), "it is gone when that one goes on");
	tap_ok(ended_well(&s, 1) && ended_well(&s, STILL), "which heard of it, as all");
	scene_close(&s);
}

/* Nobody refuses what is said to one that is dead: some providers call it again and
 * again.
 */
static void is_dead(void)
{
	struct scene s;
	int status = -1;

	scene_open(&s, PATIENT_US);
	kill(s.pid[STILL], SIGKILL);
	waitpid(s.pid[STILL], NULL, 0);
	epoch_stop(s.epoch, "the test ends it");
	while (waitpid(s.pid[1], &status, WNOHANG) == 0) {
		if (s.epoch && epoch_close(s.epoch) == EPOCH_GONE)
			s.epoch = NULL;
		usleep(1000);
	}
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	       "where one is dead the others hear");
	if (s.epoch) {
		s.epoch->words_until = 1;
		close_wholly(s.epoch);
	}
	scene_close(&s);
}

/* Who stands still is not waited for longer than that. */
static void for_so_long(void)
{
	struct scene s;

	scene_open(&s, BRIEF_US);
	epoch_stop(s.epoch, "the test ends it");
	tap_ok(close_wholly(s.epoch) && waitpid(s.pid[STILL], NULL, WNOHANG) == 0,
	       "after some time it is gone although nobody took its words");
	kill(s.pid[STILL], SIGKILL);
	waitpid(s.pid[STILL], NULL, 0);
	/* It may have heard, or not: that is what the time is for. */
	kill(s.pid[1], SIGKILL);
	waitpid(s.pid[1], NULL, 0);
	scene_close(&s);
}

int main(void)
{
	if (epoch_possible("tcp", NULL, PATIENT_US) != WEFT_SUCCESS) {
		tap_skip(5, "%.200s", weft_error_detail());
		return tap_done();
	}
	stands_still();
	is_dead();
	for_so_long();
	return tap_done();
}
