/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting: blocking reads keep their deadlines both ways, descriptors wake whoever polls
 * them, counters and event queues wait too, and eight processes on few cores do not
 * stall.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS 4000 /* how late one wait may end on a busy machine */
#define SLOW_MS 100  /* most must end within that: else something looks now and then */

/*
 * How many of a case's waits there were, and how many ended late. A wait may also be late
 * because the machine is busy, for its own process as for the one that ends it: so late
 * is compared with how late plain sleeps are beside the waits. Where nothing else runs
 * that is nothing at all.
 */
struct tally {
	int all, slow;
};

/* How late a sleep of 5 ms ends just now. */
static uint64_t lateness_ms(void)
{
	uint64_t begin = now_ms(), took;

	sleep_ms(5);
	took = now_ms() - begin;
	return took > 5 ? took - 5 : 0;
}

static void tally_add(struct side *s, struct tally *t, uint64_t took, uint64_t want)
{
	side_check(s, took <= want + LATE_MS, "woken after %u ms instead of %u",
		   (unsigned)took, (unsigned)want);
	t->all++;
	if (took > want + SLOW_MS)
		t->slow += took > want + SLOW_MS + 2 * lateness_ms();
}

static void tally_check(struct side *s, const struct tally *t)
{
	side_check(s, t->slow <= t->all / 2, "%d of %d waits ended more than %d ms late",
		   t->slow, t->all, SLOW_MS);
}

static uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static const struct want want_fd = {.wait_obj = FI_WAIT_FD};
static const struct want want_unspec = {.wait_obj = FI_WAIT_UNSPEC};

/* ---- fi_cq_sread */

static void sread_run(struct side *s)
{
	struct fi_cq_tagged_entry e;
	uint64_t begin, took, cpu;
	struct tally t = {0};
	uint8_t in[8];
	ssize_t rc;

	node_open(s, s->arg);
	for (int ms = 0; ms <= 300; ms += 150) {
		begin = now_ms();
		cpu = cpu_ms();
		rc = fi_cq_sread(s->node.cq, &e, 1, NULL, ms);
		took = now_ms() - begin;
		side_check(s, rc == -FI_EAGAIN, "fi_cq_sread of nothing gave %zd", rc);
		side_check(s, took + 2 >= (uint64_t)ms && took <= (uint64_t)ms + LATE_MS,
			   "a wait of %d ms took %u", ms, (unsigned)took);
		side_check(s, cpu_ms() - cpu <= 20 + (uint64_t)ms / 4,
			   "a wait of %d ms cost %u ms of processor time", ms,
			   (unsigned)(cpu_ms() - cpu));
	}
	for (int i = 0; i < 20; i++) {
		while (node_again(s, fi_recv(s->node.ep, in, 8, NULL, FI_ADDR_UNSPEC, in),
				  "fi_recv"))
			;
		side_meet(s);
		begin = now_ms();
		rc = fi_cq_sread(s->node.cq, &e, 1, NULL, 5000);
		took = now_ms() - begin;
		side_check(s, rc == 1, "fi_cq_sread of a message gave %zd", rc);
		tally_add(s, &t, took, 20);
	}
	tally_check(s, &t);
	side_meet(s);
	node_close(s, &s->node);
}

static void sread_sender(struct side *s)
{
	struct done d;

	node_open(s, s->arg);
	for (int i = 0; i < 20; i++) {
		side_meet(s);
		sleep_ms(20);
		while (node_again(
			s, fi_send(s->node.ep, "1234567", 8, NULL, s->node.peer, &d),
			"fi_send"))
			;
		node_expect(s, &d, FI_MSG | FI_SEND, &d);
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- FI_WAIT_FD */

/* As an application does: trywait, then poll, then read. Milliseconds it took. */
static uint64_t fd_wait(struct side *s, struct done *d, int ms, int *wakes)
{
	struct fid *fids[1] = {&s->node.cq->fid};
	uint64_t begin = now_ms(), end = begin + (uint64_t)ms;
	struct pollfd p = {.events = POLLIN};

	side_must(s, fi_control(&s->node.cq->fid, FI_GETWAIT, &p.fd), "FI_GETWAIT");
	for (;;) {
		int rc, left;

		if (node_next(s, d, 0))
			return now_ms() - begin;
		rc = fi_trywait(s->node.fabric, fids, 1);
		if (rc == -FI_EAGAIN)
			continue;
		side_must(s, rc, "fi_trywait");
		left = (int)(end - now_ms());
		if (left <= 0)
			side_die(s, "the descriptor does not wake within %d ms", ms);
		poll(&p, 1, left);
		if (wakes)
			(*wakes)++;
	}
}

#define FD_ROUNDS 30
#define FD_LONG	  (1u << 20)

static void fd_receiver(struct side *s)
{
	uint8_t *in = mem_new(FD_LONG);
	struct tally t = {0};
	int wakes = 0;
	struct done d;

	node_open(s, &want_fd);
	for (uint32_t i = 0; i < FD_ROUNDS; i++) {
		uint64_t took;

		while (node_again(
			s, fi_recv(s->node.ep, in, FD_LONG, NULL, FI_ADDR_UNSPEC, in),
			"fi_recv"))
			;
		side_meet(s);
		took = fd_wait(s, &d, 5000, &wakes);
		tally_add(s, &t, took, 20);
		side_check_u64(s, (uint64_t)d.err, 0, "error");
		side_check_u64(s, d.e.len, i % 3 == 2 ? FD_LONG : 8, "length");
	}
	side_check(s, wakes < 100 * FD_ROUNDS, "%d wake-ups for %d messages", wakes,
		   FD_ROUNDS);
	tally_check(s, &t);
	side_meet(s);
	node_close(s, &s->node);
}

static void fd_sender(struct side *s)
{
	uint8_t *out = mem_new(FD_LONG);
	struct done d;

	node_open(s, &want_fd);
	for (uint32_t i = 0; i < FD_ROUNDS; i++) {
		size_t len = i % 3 == 2 ? FD_LONG : 8;

		side_meet(s);
		sleep_ms(20);
		while (node_again(s,
				  fi_send(s->node.ep, out, len, NULL, s->node.peer, &d),
				  "fi_send"))
			;
		fd_wait(s, &d, 5000, NULL);
		side_check_u64(s, d.e.flags, FI_MSG | FI_SEND, "flags");
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* A send that can't go on until the receiver posts: its end wakes the sender. */
static void blocked_sender(struct side *s)
{
	uint8_t *out = mem_new(FD_LONG);
	struct tally t = {0};
	uint64_t took, cpu;
	struct done d;

	node_open(s, &want_fd);
	for (int i = 0; i < 5; i++) {
		side_meet(s);
		while (node_again(
			s, fi_send(s->node.ep, out, FD_LONG, NULL, s->node.peer, &d),
			"fi_send"))
			;
		cpu = cpu_ms();
		took = fd_wait(s, &d, 5000, NULL);
		side_check_u64(s, (uint64_t)d.err, 0, "error");
		tally_add(s, &t, took, 200);
		side_check(s, cpu_ms() - cpu < 100,
			   "asleep it used %u ms of processor time",
			   (unsigned)(cpu_ms() - cpu));
	}
	tally_check(s, &t);
	side_meet(s);
	node_close(s, &s->node);
}

static void blocked_receiver(struct side *s)
{
	uint8_t *in = mem_new(FD_LONG);
	struct done d;

	node_open(s, &want_fd);
	for (int i = 0; i < 5; i++) {
		side_meet(s);
		node_quiet(s, 200);
		while (node_again(
			s, fi_recv(s->node.ep, in, FD_LONG, NULL, FI_ADDR_UNSPEC, in),
			"fi_recv"))
			;
		fd_wait(s, &d, 5000, NULL);
		side_check_u64(s, (uint64_t)d.err, 0, "error");
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- signals and threads */

static void *signaller(void *arg)
{
	struct side *s = arg;

	sleep_ms(100);
	fi_cq_signal(s->node.cq);
	return NULL;
}

static void signal_run(struct side *s)
{
	struct fi_cq_tagged_entry e;
	uint64_t begin;
	pthread_t t;
	ssize_t rc;

	node_open(s, &want_unspec);
	for (int i = 0; i < 3; i++) {
		if (pthread_create(&t, NULL, signaller, s) != 0)
			side_die(s, "no thread");
		begin = now_ms();
		rc = fi_cq_sread(s->node.cq, &e, 1, NULL, 5000);
		side_check(s, rc == -FI_EAGAIN || rc == -FI_ECANCELED,
			   "fi_cq_sread after a signal gave %zd", rc);
		side_check(s, now_ms() - begin < 100 + LATE_MS, "the signal took %u ms",
			   (unsigned)(now_ms() - begin));
		pthread_join(t, NULL);
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- counters */

static const struct want want_counters = {.counters = true, .wait_obj = FI_WAIT_UNSPEC};

static void counter_receiver(struct side *s)
{
	uint64_t begin;
	uint8_t in[8];
	int rc;

	node_open(s, &want_counters);
	begin = now_ms();
	rc = fi_cntr_wait(s->node.rx_cntr, 1, 200);
	side_check(s, rc == -FI_ETIMEDOUT, "fi_cntr_wait for nothing gave %d", rc);
	side_check(s, now_ms() - begin >= 198 && now_ms() - begin < 200 + LATE_MS,
		   "it took %u ms instead of 200", (unsigned)(now_ms() - begin));
	for (int i = 0; i < 3; i++)
		while (node_again(s, fi_recv(s->node.ep, in, 8, NULL, FI_ADDR_UNSPEC, in),
				  "fi_recv"))
			;
	side_meet(s);
	begin = now_ms();
	rc = fi_cntr_wait(s->node.rx_cntr, 3, 5000);
	side_check(s, rc == 0, "fi_cntr_wait gave %d", rc);
	side_check(s, now_ms() - begin < 50 + LATE_MS, "it took %u ms instead of 50",
		   (unsigned)(now_ms() - begin));
	side_check_u64(s, fi_cntr_read(s->node.rx_cntr), 3, "receives");
	side_must(s, fi_cntr_add(s->node.rx_cntr, 7), "fi_cntr_add");
	side_check_u64(s, fi_cntr_read(s->node.rx_cntr), 10, "after fi_cntr_add");
	side_must(s, fi_cntr_set(s->node.rx_cntr, 1), "fi_cntr_set");
	side_check_u64(s, fi_cntr_read(s->node.rx_cntr), 1, "after fi_cntr_set");
	/* An error wakes a waiter too. */
	while (node_again(s, fi_recv(s->node.ep, in, 8, NULL, FI_ADDR_UNSPEC, in),
			  "fi_recv"))
		;
	side_must(s, fi_cancel(&s->node.ep->fid, in), "fi_cancel");
	rc = fi_cntr_wait(s->node.rx_cntr, 1000, 2000);
	side_check(s, rc == -FI_EAVAIL, "fi_cntr_wait with an error gave %d", rc);
	side_check_u64(s, fi_cntr_readerr(s->node.rx_cntr), 1, "errors");
	side_meet(s);
	node_close(s, &s->node);
}

static void counter_sender(struct side *s)
{
	node_open(s, &want_counters);
	side_meet(s);
	sleep_ms(50);
	for (int i = 0; i < 3; i++)
		while (node_again(
			s,
			i == 1 ? fi_inject(s->node.ep, "1234567", 8, s->node.peer)
			       : fi_send(s->node.ep, "1234567", 8, NULL, s->node.peer,
					 NULL),
			"fi_send"))
			;
	side_check(s, fi_cntr_wait(s->node.tx_cntr, 3, 5000) == 0,
		   "fi_cntr_wait for sends");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- wait sets and poll sets */

static const struct want want_set = {.wait_obj = FI_WAIT_SET, .counters = true};

/* Which of the two has something, as fi_poll says; reads it. */
static void set_read(struct side *s, struct fid_poll *poll, int *messages, int *counts)
{
	void *who[4];
	struct done d;
	int n = fi_poll(poll, who, 4);

	side_check(s, n >= 0 && n <= 3, "fi_poll gave %d", n);
	for (int i = 0; i < n; i++) {
		/* The objects of a node have no context: only the number counts. */
		side_check(s, who[i] == NULL, "a context that nobody gave");
	}
	while (n > 0 && node_next(s, &d, 0))
		++*messages;
	*counts = (int)fi_cntr_read(s->node.rx_cntr);
}

static void set_run(struct side *s)
{
	struct fi_poll_attr attr = {0};
	struct fid_poll *poll;
	int messages = 0, counts = 0;
	struct tally t = {0};
	uint64_t begin;
	uint8_t in[8];

	node_open(s, &want_set);
	side_must(s, fi_poll_open(s->node.domain, &attr, &poll), "fi_poll_open");
	side_must(s, fi_poll_add(poll, &s->node.cq->fid, 0), "fi_poll_add");
	side_must(s, fi_poll_add(poll, &s->node.rx_cntr->fid, 0), "fi_poll_add");
	side_check(s, fi_wait(s->node.wait_set, 100) == -FI_ETIMEDOUT,
		   "fi_wait for nothing does not time out");
	for (int i = 0; i < 20; i++) {
		while (node_again(s, fi_recv(s->node.ep, in, 8, NULL, FI_ADDR_UNSPEC, in),
				  "fi_recv"))
			;
		side_meet(s);
		begin = now_ms();
		while (messages <= i && now_ms() < begin + WAIT_MS) {
			side_must(s, fi_wait(s->node.wait_set, WAIT_MS), "fi_wait");
			set_read(s, poll, &messages, &counts);
		}
		tally_add(s, &t, now_ms() - begin, 20);
		side_check(s, messages == i + 1 && counts == i + 1,
			   "message %d: %d completions, counter at %d", i, messages,
			   counts);
	}
	tally_check(s, &t);
	side_must(s, fi_close(&poll->fid), "fi_close of a poll set");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- event queues */

static void eq_run(struct side *s)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD, .flags = FI_WRITE};
	struct fi_eq_entry in = {.context = s, .data = 5}, out = {0};
	struct pollfd p = {.events = POLLIN};
	struct fid *fids[1];
	struct fid_eq *eq;
	uint32_t event = 0;
	uint64_t begin;
	ssize_t rc;

	node_open_alone(s, &s->node, &want_unspec);
	side_must(s, fi_eq_open(s->node.fabric, &attr, &eq, NULL), "fi_eq_open");
	begin = now_ms();
	rc = fi_eq_sread(eq, &event, &out, sizeof(out), 150, 0);
	side_check(s, rc == -FI_EAGAIN, "fi_eq_sread of nothing gave %zd", rc);
	side_check(s, now_ms() - begin >= 148 && now_ms() - begin < 150 + LATE_MS,
		   "it took %u ms instead of 150", (unsigned)(now_ms() - begin));
	fids[0] = &eq->fid;
	side_must(s, fi_control(&eq->fid, FI_GETWAIT, &p.fd), "FI_GETWAIT");
	side_check(s, fi_trywait(s->node.fabric, fids, 1) == 0, "fi_trywait of nothing");
	side_check(s, poll(&p, 1, 0) == 0, "readable with nothing in it");
	rc = fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0);
	side_check(s, rc == sizeof(in), "fi_eq_write gave %zd", rc);
	side_check(s,
		   fi_trywait(s->node.fabric, fids, 1) == -FI_EAGAIN ||
			   poll(&p, 1, 0) == 1,
		   "neither fi_trywait nor poll tells of an event");
	rc = fi_eq_sread(eq, &event, &out, sizeof(out), 1000, 0);
	side_check(s, rc == sizeof(out) && event == FI_NOTIFY && out.context == s,
		   "fi_eq_sread gave %zd, event %u", rc, event);
	side_must(s, fi_close(&eq->fid), "fi_close of the event queue");
	node_close(s, &s->node);
}

/* ---- more processes than cores */

#define CROWD	     8
#define CROWD_ROUNDS 200

/* Shared by all: addresses, and who has come how far. */
struct crowd {
	char names[CROWD][64];
	int opened, ended;
	uint64_t worst_ms[CROWD];
};

static struct crowd *crowd;

static void crowd_await(struct side *s, int *counter)
{
	uint64_t end = now_ms() + 2 * WAIT_MS;

	__atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) < CROWD) {
		if (now_ms() > end)
			side_die(s, "not everybody has come");
		node_progress(&s->node);
		sched_yield();
	}
}

/* Everybody sends to everybody and waits for all, so that one that is late holds all. */
static void crowd_member(struct side *s, int me)
{
	fi_addr_t addr[CROWD];
	uint32_t in[CROWD], out;

	node_open_alone(s, &s->node, &want_unspec);
	memcpy(crowd->names[me], s->node.name, sizeof(s->node.name));
	crowd_await(s, &crowd->opened);
	for (int i = 0; i < CROWD; i++) {
		if (fi_av_insert(s->node.av, crowd->names[i], 1, &addr[i], 0, NULL) != 1)
			side_die(s, "fi_av_insert");
	}
	for (out = 0; out < CROWD_ROUNDS; out++) {
		uint64_t begin = now_ms(), took;

		for (int i = 0; i < CROWD; i++) {
			while (node_again(
				s,
				fi_trecv(s->node.ep, &in[i], 4, NULL, FI_ADDR_UNSPEC,
					 (uint64_t)out << 8 | (uint64_t)i, 0, NULL),
				"fi_trecv"))
				;
			while (node_again(s,
					  fi_tsend(s->node.ep, &out, 4, NULL, addr[i],
						   (uint64_t)out << 8 | (uint64_t)me,
						   NULL),
					  "fi_tsend"))
				;
		}
		for (int i = 0; i < 2 * CROWD; i++) {
			struct done d;

			if (!node_next(s, &d, WAIT_MS) || d.err)
				side_die(s, "round %u is not complete", out);
		}
		took = now_ms() - begin;
		if (out > 0 && took > crowd->worst_ms[me])
			crowd->worst_ms[me] = took;
	}
	crowd_await(s, &crowd->ended);
	node_close(s, &s->node);
	fflush(stdout);
	_exit(s->failed ? 1 : 0);
}

static void crowd_run(struct side *s)
{
	uint64_t begin = now_ms(), worst = 0, late = 0;
	int status, bad = 0;
	pid_t pid;

	if (s->role == 1)
		return;
	for (int i = 0; i < CROWD; i++) {
		if (fork() == 0)
			crowd_member(s, i);
	}
	/* Beside them: what holds up a plain sleep holds up a round as well. */
	while ((pid = waitpid(-1, &status, WNOHANG)) >= 0) {
		uint64_t now_late = pid ? 0 : lateness_ms();

		bad += pid && status != 0;
		late = now_late > late ? now_late : late;
	}
	side_check(s, bad == 0, "%d of %d processes failed", bad, CROWD);
	for (int i = 0; i < CROWD; i++)
		worst = crowd->worst_ms[i] > worst ? crowd->worst_ms[i] : worst;
	printf("# %d processes, %d rounds: %u ms in all, slowest round %u ms, latest "
	       "sleep "
	       "%u ms\n",
	       CROWD, CROWD_ROUNDS, (unsigned)(now_ms() - begin), (unsigned)worst,
	       (unsigned)late);
	/* Who spins instead of yielding holds the others for whole time slices; how long
	 * those take depends on what else runs. */
	side_check(s, worst < 2000 + 20 * late, "a round took %u ms", (unsigned)worst);
}

static const struct test_case cases[] = {
	{.name = "fi_cq_sread, FI_WAIT_UNSPEC",
	 .run = {sread_run, sread_sender},
	 .arg = &want_unspec},
	{.name = "fi_cq_sread, FI_WAIT_FD",
	 .run = {sread_run, sread_sender},
	 .arg = &want_fd},
	{.name = "a descriptor wakes for a message", .run = {fd_receiver, fd_sender}},
	{.name = "and for the end of a send that was held up",
	 .run = {blocked_receiver, blocked_sender}},
	{.name = "fi_cq_signal", .run = {signal_run, signal_run}},
	{.name = "counters", .run = {counter_receiver, counter_sender}},
	{.name = "a wait set and a poll set",
	 .run = {set_run, sread_sender},
	 .arg = &want_set},
	{.name = "event queues", .run = {eq_run, eq_run}},
	{.name = "eight processes, all pairs", .run = {crowd_run, crowd_run}},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	crowd = mem_new_shared(sizeof(*crowd));
	memset(crowd, 0, sizeof(*crowd));
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
