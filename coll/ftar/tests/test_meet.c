/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members that meet by the cards of a roster, among strangers who say wrong things or
 * nothing, and members that do not come.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/ftar/meet.h"
#include "util/tap.h"

enum { MEMBERS = 5, STRANGERS = 300, PATIENT_S = 120, ELSEWHERE = 77 };

static const uint8_t job[MEET_JOB_LEN] = "secret", other_job[MEET_JOB_LEN] = "Secret";

struct member {
	struct scene *scene;
	pthread_t thread;
	int listener;
	bool good;
	uint64_t suspect;
	char why[MEET_WHY];
};

struct scene {
	struct ft_entry entry[MEMBERS];
	struct ft_roster roster;
	struct member member[MEMBERS];
	int64_t until;
	atomic_bool stop;
	int stranger[STRANGERS];
};

static bool stopped(void *arg)
{
	return atomic_load(&((struct scene *)arg)->stop);
}

static void scene_open(struct scene *s, int64_t wait_us)
{
	*s = (struct scene){.roster = {{3, 4}, MEMBERS, MEMBERS, s->entry},
			    .until = boot_clock_us() + wait_us};
	for (int i = 0; i < MEMBERS; i++) {
		struct member *m = &s->member[i];

		m->scene = s;
		s->entry[i].id = 10 + (uint64_t)i;
		m->listener = meet_listen("127.0.0.1", "", s->entry[i].card,
					  &s->entry[i].card_len, m->why);
		if (m->listener < 0)
			tap_bail("%s", m->why);
	}
	for (int i = 0; i < STRANGERS; i++)
		s->stranger[i] = -1;
}

static void scene_close(struct scene *s)
{
	for (int i = 0; i < MEMBERS; i++)
		close(s->member[i].listener);
	for (int i = 0; i < STRANGERS; i++) {
		if (s->stranger[i] >= 0)
			close(s->stranger[i]);
	}
}

static void *member_run(void *arg)
{
	struct member *m = arg;
	struct scene *s = m->scene;
	const int32_t self = (int32_t)(m - s->member);
	const struct meet_attr attr = {.roster = &s->roster,
				       .id = s->entry[self].id,
				       .listener = m->listener,
				       .job = job,
				       .until = s->until,
				       .stopped = stopped,
				       .arg = s};
	struct meet *meet = meet_open(&attr, &m->suspect, m->why);
	int32_t all[MEMBERS], mine = self + 100;

	if (!meet)
		return NULL;
	m->good = meet_rank(meet) == self;
	for (int round = 0; round < 3; round++) {
		memset(all, 0, sizeof(all));
		m->good &= !meet_allgather(meet, &mine, all, sizeof(mine),
					   (int64_t)PATIENT_S * 1000000);
		for (int i = 0; i < MEMBERS; i++)
			m->good &= all[i] == i + 100;
	}
	meet_close(meet);
	return NULL;
}

static void members_start(struct scene *s, int from, int end)
{
	for (int i = from; i < end; i++) {
		if (pthread_create(&s->member[i].thread, NULL, member_run, &s->member[i]))
			tap_bail("no thread");
	}
}

/* How many of them have met. */
static int members_join(struct scene *s, int from, int end)
{
	int good = 0;

	for (int i = from; i < end; i++) {
		pthread_join(s->member[i].thread, NULL);
		good += s->member[i].good;
		if (!s->member[i].good)
			tap_diag("member %d: %s", i, s->member[i].why);
	}
	return good;
}

/* To where the first member listens. */
static int stranger_connect(const struct scene *s)
{
	struct sockaddr_storage at;
	socklen_t len = 0;
	int fd;

	if (!meet_card_get(s->entry[0].card, s->entry[0].card_len, &at, &len))
		tap_bail("no card");
	fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, len))
		tap_bail("a stranger cannot connect");
	return fd;
}

/* One of each kind of wrong word; they stay until the end. */
static void strangers_speak(struct scene *s)
{
	struct ft_roster old = s->roster, many = s->roster;
	struct ft_entry entry[MEMBERS];
	uint8_t word[5][MEET_HELLO_LEN];

	old.epoch.seq--;
	memcpy(entry, s->entry, sizeof(entry));
	entry[1].id = ELSEWHERE;
	many.entry = entry;
	memset(word[0], 'x', sizeof(word[0]));
	meet_hello_put(word[1], &old, 1, job);
	meet_hello_put(word[2], &s->roster, 1, other_job);
	meet_hello_put(word[3], &many, 1, job);
	meet_hello_put(word[4], &s->roster, 0, job);
	for (int i = 0; i < 5; i++) {
		s->stranger[i] = stranger_connect(s);
		if (send(s->stranger[i], word[i], sizeof(word[i]), MSG_NOSIGNAL) !=
		    MEET_HELLO_LEN)
			tap_bail("a stranger cannot speak");
	}
	/* Half a hello of somebody who is welcome, and one that hangs up in the middle.
	 */
	meet_hello_put(word[0], &s->roster, 1, job);
	for (int i = 5; i < 7; i++) {
		s->stranger[i] = stranger_connect(s);
		if (send(s->stranger[i], word[0], 40, MSG_NOSIGNAL) != 40)
			tap_bail("a stranger cannot speak");
	}
	close(s->stranger[6]);
	s->stranger[6] = -1;
}

static void test_strangers(void)
{
	struct scene s;
	uint8_t byte;

	scene_open(&s, (int64_t)PATIENT_S * 1000000);
	strangers_speak(&s);
	members_start(&s, 0, MEMBERS);
	tap_ok(members_join(&s, 0, MEMBERS) == MEMBERS,
	       "all meet, and strangers who say wrong things are no harm");
	for (int i = 0; i < 6; i++) {
		if (recv(s.stranger[i], &byte, 1, 0) > 0)
			tap_bail("stranger %d was taken for a member", i);
	}
	tap_ok(true, "no stranger was told anything");
	scene_close(&s);
}

static void test_silent(void)
{
	struct scene s;

	scene_open(&s, (int64_t)PATIENT_S * 1000000);
	for (int i = 0; i < STRANGERS; i++)
		s.stranger[i] = stranger_connect(&s);
	members_start(&s, 0, MEMBERS);
	tap_ok(members_join(&s, 0, MEMBERS) == MEMBERS,
	       "%d that say nothing keep no member out", STRANGERS);
	scene_close(&s);
}

static void test_missing(void)
{
	struct scene s;

	/* The first that is missing is named, whoever else is late on a busy machine. */
	scene_open(&s, 300000);
	members_start(&s, 0, 1);
	members_start(&s, 2, MEMBERS);
	members_join(&s, 0, 1);
	members_join(&s, 2, MEMBERS);
	tap_ok(s.member[0].suspect == s.entry[1].id,
	       "the first names who did not come: %s", s.member[0].why);
	scene_close(&s);
}

static void test_stopped(void)
{
	struct scene s;
	bool told = true;

	scene_open(&s, (int64_t)PATIENT_S * 1000000);
	members_start(&s, 0, MEMBERS - 1);
	atomic_store(&s.stop, true);
	members_join(&s, 0, MEMBERS - 1);
	for (int i = 0; i < MEMBERS - 1; i++)
		told &= !s.member[i].good && s.member[i].suspect == 0;
	tap_ok(told && boot_clock_us() < s.until,
	       "an epoch that is over lets all go, and nobody is blamed");
	scene_close(&s);
}

static void test_card(void)
{
	struct scene s;

	scene_open(&s, 300000);
	s.entry[0].card[0] = 5;
	members_start(&s, 1, 2);
	members_join(&s, 1, 2);
	tap_ok(strstr(s.member[1].why, "card of member 0") != NULL,
	       "a card that is none is said: %s", s.member[1].why);
	scene_close(&s);
}

int main(void)
{
	test_strangers();
	test_silent();
	test_missing();
	test_stopped();
	test_card();
	return tap_done();
}
