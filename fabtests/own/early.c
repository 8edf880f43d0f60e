/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts in which the client comes first: it calls an address at which nobody answers
 * yet, and its server opens up to three seconds later. Every start must end well, however
 * the client learned the address, whatever it sends first, and whether it polls or
 * sleeps.
 *
 * --count N starts (the short form of make check otherwise), several at a time.
 */
#include "config.h"

#include "fabtests/own/soak.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/tap.h"

#define STARTS_SHORT 6
#define LATE_SHORT   800 /* ms; of the short form */
#define LATE_MOST    3000
#define AT_A_TIME    16
#define PORT_FIRST   12000 /* below those that are given to whom asks for none... */
#define PORT_BASES   16000 /* ...with as many behind it as there are starts */
#define LARGE	     (256u << 10)
#define START_MS     40000
#define TAG_CALL     7
#define TAG_ANSWER   8

/* What the client does first. */
enum first { FIRST_SMALL, FIRST_LARGE, FIRST_INJECT, FIRST_RECEIVE, FIRSTS };

struct start {
	int number;
	int late_ms;	 /* of the server */
	bool early_name; /* the address is known before the endpoint is there, else after
			  */
	enum first first;
	bool sleeps; /* client and server sleep while they wait */
	char service[16];
};

struct call {
	uint64_t name_len;
	uint8_t name[64];
	uint8_t bytes[LARGE];
};

#define CALL_HEAD offsetof(struct call, bytes)

static size_t call_len(const struct start *st)
{
	switch (st->first) {
	case FIRST_LARGE:
		return sizeof(struct call);
	case FIRST_INJECT:
		return CALL_HEAD + 8;
	default:
		return CALL_HEAD + 1000;
	}
}

/* The next completion, which must be good. */
static void *ended(struct side *s, const struct start *st, uint64_t end)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	for (;;) {
		rc = st->sleeps ? fi_cq_sread(s->node.cq, &e, 1, NULL, 1000)
				: fi_cq_read(s->node.cq, &e, 1);
		if (rc == 1)
			return e.op_context;
		if (rc == -FI_EAVAIL) {
			fi_cq_readerr(s->node.cq, &err, 0);
			side_die(s, "start %d: %s", st->number, fi_strerror(err.err));
		}
		if (rc != -FI_EAGAIN)
			side_die(s, "start %d: reading gave %zd", st->number, rc);
		if (now_ms() > end)
			side_die(s, "start %d: no completion", st->number);
		if (!st->sleeps)
			sched_yield();
	}
}

static struct want want_of(const struct start *st)
{
	return (struct want){.wait_obj = st->sleeps ? FI_WAIT_UNSPEC : FI_WAIT_NONE};
}

/* ---- the client */

static void peer_insert(struct side *s, const struct start *st)
{
	struct want want = want_of(st);
	struct fi_info *hints = node_hints(&want), *info = NULL;

	if (!st->early_name) {
		side_check(s,
			   fi_av_insertsvc(s->node.av, "127.0.0.1", st->service,
					   &s->node.peer, 0, NULL) == 1,
			   "fi_av_insertsvc");
	} else {
		side_must(s,
			  fi_getinfo(API_VERSION, "127.0.0.1", st->service, 0, hints,
				     &info),
			  "fi_getinfo of a peer");
		side_check(s,
			   fi_av_insert(s->node.av, info->dest_addr, 1, &s->node.peer, 0,
					NULL) == 1,
			   "fi_av_insert");
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void client_call(struct side *s, const struct start *st, struct call *call,
			uint64_t end)
{
	struct node *n = &s->node;
	size_t len = call_len(st);
	ssize_t rc;

	call->name_len = n->name_len;
	memcpy(call->name, n->name, sizeof(call->name));
	mem_fill(call->bytes, len - CALL_HEAD, (uint32_t)st->number);
	for (;;) {
		rc = st->first == FIRST_INJECT
			     ? fi_tinject(n->ep, call, len, n->peer, TAG_CALL)
			     : fi_tsend(n->ep, call, len, NULL, n->peer, TAG_CALL, call);
		if (rc != -FI_EAGAIN)
			break;
		soak_post_wait(s, end, "send");
	}
	side_must(s, rc, "send");
}

static void client(struct side *s, const struct start *st, uint64_t end)
{
	struct call *call = mem_new(sizeof(*call));
	struct want want = want_of(st);
	int left = st->first == FIRST_INJECT ? 1 : 2;
	uint64_t answer = 0;
	ssize_t rc;

	node_open_av(s, &s->node, &want);
	if (st->early_name)
		peer_insert(s, st);
	node_open_ep(s, &s->node, &want);
	if (!st->early_name)
		peer_insert(s, st);
	while ((rc = fi_trecv(s->node.ep, &answer, sizeof(answer), NULL,
			      st->first == FIRST_RECEIVE ? s->node.peer : FI_ADDR_UNSPEC,
			      TAG_ANSWER, 0, &answer)) == -FI_EAGAIN)
		soak_post_wait(s, end, "fi_trecv");
	side_must(s, rc, "fi_trecv");
	client_call(s, st, call, end);
	while (left-- > 0)
		ended(s, st, end);
	side_check_u64(s, answer, (uint64_t)st->number, "the answer");
	node_close(s, &s->node);
}

/* ---- the server */

static void server(struct side *s, const struct start *st, uint64_t end)
{
	struct call *call = mem_new(sizeof(*call));
	struct want want = want_of(st);
	uint64_t answer = (uint64_t)st->number;
	ssize_t rc;

	sleep_ms(st->late_ms);
	want.service = st->service;
	node_open_alone(s, &s->node, &want);
	while ((rc = fi_trecv(s->node.ep, call, sizeof(*call), NULL, FI_ADDR_UNSPEC,
			      TAG_CALL, 0, call)) == -FI_EAGAIN)
		soak_post_wait(s, end, "fi_trecv");
	side_must(s, rc, "fi_trecv");
	ended(s, st, end);
	mem_check(s, call->bytes, call_len(st) - CALL_HEAD, (uint32_t)st->number, "call");
	side_check(s,
		   fi_av_insert(s->node.av, call->name, 1, &s->node.peer, 0, NULL) == 1,
		   "fi_av_insert");
	while ((rc = fi_tsend(s->node.ep, &answer, sizeof(answer), NULL, s->node.peer,
			      TAG_ANSWER, &answer)) == -FI_EAGAIN)
		soak_post_wait(s, end, "fi_tsend");
	side_must(s, rc, "fi_tsend");
	ended(s, st, end);
	node_close(s, &s->node);
}

/* ---- many of them */

struct running {
	struct start start;
	pid_t pid[2]; /* 0: ended */
	int sock[2];
	int status[2];
	uint64_t end;
};

static void start_choose(struct soak *k, struct start *st, int number)
{
	bool all = k->count > STARTS_SHORT;

	*st = (struct start){
		.number = number,
		.late_ms = (int)soak_random(k, all ? LATE_MOST + 1 : LATE_SHORT),
		.early_name = number % 2,
		.first = (enum first)(number / 2 % FIRSTS),
		.sleeps = soak_random(k, 2),
	};
	/* Others than a second run's. */
	snprintf(st->service, sizeof(st->service), "%d",
		 PORT_FIRST + (int)getpid() % PORT_BASES + number);
}

static void start_run(struct running *r)
{
	void (*const run[2])(struct side *, const struct start *, uint64_t) = {server,
									       client};

	r->end = now_ms() + START_MS;
	for (int role = 1; role >= 0; role--) {
		struct side s;

		r->status[role] = 0;
		r->pid[role] = soak_fork(&s, &r->sock[role]);
		if (r->pid[role] > 0)
			continue;
		s.role = role;
		run[role](&s, &r->start, now_ms() + START_MS - 5000);
		exit(s.failed ? 1 : 0);
	}
}

/* Whether both are through. */
static bool start_ended(struct running *r)
{
	for (int role = 0; role < 2; role++) {
		bool late = now_ms() > r->end;

		if (r->pid[role] == 0)
			continue;
		if (late)
			kill(r->pid[role], SIGKILL);
		if (waitpid(r->pid[role], &r->status[role], late ? 0 : WNOHANG) <= 0)
			continue;
		r->pid[role] = 0;
		close(r->sock[role]);
	}
	return r->pid[0] == 0 && r->pid[1] == 0;
}

static bool start_judge(const struct running *r)
{
	const struct start *st = &r->start;

	if (r->status[0] == 0 && r->status[1] == 0)
		return true;
	tap_diag(
		"start %d: server %d ms late, address %s, first %d, %s: status of server "
		"0x%x, client 0x%x",
		st->number, st->late_ms, st->early_name ? "before" : "after",
		(int)st->first, st->sleeps ? "asleep" : "polling", r->status[0],
		r->status[1]);
	return false;
}

static int starts_run(struct soak *k)
{
	struct running running[AT_A_TIME] = {{.pid = {0, 0}}};
	bool used[AT_A_TIME] = {false};
	int next = 0, ended_count = 0, good = 0;

	while (ended_count < k->count) {
		for (int i = 0; i < AT_A_TIME; i++) {
			if (used[i] && start_ended(&running[i])) {
				used[i] = false;
				ended_count++;
				good += start_judge(&running[i]);
			}
			if (!used[i] && next < k->count) {
				start_choose(k, &running[i].start, next++);
				start_run(&running[i]);
				used[i] = true;
			}
		}
		sleep_ms(2);
	}
	return good;
}

int main(int argc, char **argv)
{
	struct soak k;

	test_init(argc, argv);
	soak_init(&k, argc, argv, tap_short() ? STARTS_SHORT / 2 : STARTS_SHORT);
	if (strcmp(test_provider(), "shm") == 0)
		tap_skip(1, "early clients: shm has no ports");
	else
		tap_is_int(starts_run(&k), k.count,
			   "starts in which the client is there before its server");
	return tap_done();
}
