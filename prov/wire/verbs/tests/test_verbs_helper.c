/* SPDX-License-Identifier: BSD-2-Clause */
/* Doors that helper threads answer (rule D6), and processes that die. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/door_rig.h"
#include "prov/wire/verbs/verbs_helper.h"
#include "util/tap_fork.h"

struct aided {
	struct side side;
	pthread_mutex_t mutex;
	struct verbs_helper *helper;
	unsigned turns;
};

static uint64_t turn_count(void *arg, bool readable)
{
	struct aided *x = arg;

	(void)readable;
	pthread_mutex_lock(&x->mutex);
	x->turns++;
	pthread_mutex_unlock(&x->mutex);
	return UINT64_MAX;
}

static void aided_open(struct aided *x, const char *host)
{
	struct verbs_door_config config = {.mutex = &x->mutex};
	struct verbs_helper_config helper = {
		.mutex = &x->mutex, .fd = -1, .turn = turn_count, .arg = x};

	pthread_mutex_init(&x->mutex, NULL);
	x->turns = 0;
	if (side_open_with(&x->side, host, config))
		tap_bail("no door");
	helper.door = x->side.door;
	if (verbs_helper_start(&helper, &x->helper))
		tap_bail("no helper");
}

static void aided_close(struct aided *x)
{
	verbs_helper_stop(x->helper);
	side_close(&x->side);
	pthread_mutex_destroy(&x->mutex);
}

/* Sleeps until the counter has that value. */
static bool aided_until(struct aided *x, const unsigned *counter, unsigned want)
{
	bool there = false;

	for (int ms = 0; ms < RIG_PATIENCE_MS && !there; ms++) {
		pthread_mutex_lock(&x->mutex);
		there = *counter >= want;
		pthread_mutex_unlock(&x->mutex);
		if (!there)
			usleep(1000);
	}
	return there;
}

/* A while with next to no turns. It may be late to its sleep on a busy machine; one that
 * never sleeps makes many in every while. */
static bool aided_rests(struct aided *x)
{
	for (int i = 0; i < 100; i++) {
		unsigned before, turns;

		pthread_mutex_lock(&x->mutex);
		before = x->turns;
		pthread_mutex_unlock(&x->mutex);
		usleep(50000);
		pthread_mutex_lock(&x->mutex);
		turns = x->turns - before;
		pthread_mutex_unlock(&x->mutex);
		if (turns <= 2)
			return true;
	}
	return false;
}

static void test_answers(void)
{
	static struct aided a, b;
	struct verbs_call *call;

	aided_open(&a, "node1");
	aided_open(&b, "node2");
	pthread_mutex_lock(&a.mutex);
	side_dial(&a.side, verbs_door_addr(b.side.door), 1, NULL, &call);
	pthread_mutex_unlock(&a.mutex);
	tap_ok(aided_until(&b, &b.side.readies, 1),
	       "D6: a door is answered while nobody makes progress");
	tap_ok(aided_rests(&b), "and the helper sleeps when there is nothing to do");
	pthread_mutex_lock(&a.mutex);
	verbs_call_drop(call, 0);
	pthread_mutex_unlock(&a.mutex);
	tap_ok(aided_until(&b, &b.side.downs, 1) && b.side.last_err == -FI_ESHUTDOWN,
	       "an end is heard likewise");
	aided_close(&a);
	aided_close(&b);
}

/* The child: a peer with a child of its own, which holds on to what it inherited. */
static void peer_run(int hear, int tell)
{
	static struct aided own;
	struct verbs_call *call;
	struct wire_addr to;

	if (read(hear, &to, sizeof(to)) != sizeof(to))
		_exit(1);
	aided_open(&own, "node9");
	pthread_mutex_lock(&own.mutex);
	side_dial(&own.side, &to, 9, NULL, &call);
	pthread_mutex_unlock(&own.mutex);
	if (!aided_until(&own, &own.side.answers, 1))
		_exit(1);
	if (fork() == 0) {
		/* Ends with the test, whose pipe this is. */
		while (write(tell, "", 1) == 1)
			usleep(20000);
		_exit(0);
	}
	(void)!write(tell, "u", 1);
	for (;;)
		pause();
}

/* The process forks while it has no thread: ThreadSanitizer knows no other. */
static pid_t peer_fork(int *tell, int *hear)
{
	int to[2], from[2];
	pid_t child;

	if (pipe(to) || pipe(from))
		tap_bail("pipe: %m");
	child = tap_fork();
	if (child == 0) {
		close(to[1]);
		close(from[0]);
		peer_run(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	*tell = to[1];
	*hear = from[0];
	return child;
}

/* An endpoint that closes ends calls after its helper did. */
static void test_stopped(void)
{
	static struct aided a;

	aided_open(&a, "node1");
	verbs_helper_stop(a.helper);
	verbs_helper_kick(NULL);
	tap_ok(a.side.downs == 0, "no helper, nobody to be woken");
	side_close(&a.side);
	pthread_mutex_destroy(&a.mutex);
}

static void test_death(void)
{
	static struct aided a;
	char word = 0;
	int tell, hear;
	pid_t child;

	child = peer_fork(&tell, &hear);
	aided_open(&a, "node1");
	(void)!write(tell, verbs_door_addr(a.side.door), sizeof(struct wire_addr));
	while (read(hear, &word, 1) == 1 && word != 'u')
		;
	tap_ok(word == 'u' && aided_until(&a, &a.side.readies, 1),
	       "a forked child has doors of its own");
	tap_is_int(a.side.downs, 0, "its peer is there");
	kill(child, SIGKILL);
	tap_ok(aided_until(&a, &a.side.downs, 1) && a.side.last_err == -FI_ECONNRESET,
	       "a process that is killed is down, though a child of it lives");
	waitpid(child, NULL, 0);
	close(hear);
	close(tell);
	aided_close(&a);
}

int main(void)
{
	test_answers();
	test_stopped();
	test_death();
	return tap_done();
}
