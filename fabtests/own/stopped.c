/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender that is stopped while it writes a piece of a message into a receive: the
 * receiver's endpoint doesn't close before that piece is there (rule D4).
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fabtests/own/util.h"

#define LEN	((size_t)16 << 20)
#define STOP_MS 10000

static const struct want want_tagged = {.caps = FI_TAGGED | FI_MSG};

static volatile sig_atomic_t stop_next;

/* In place of the C library's. */
__attribute__((visibility("default"))) ssize_t process_vm_writev(
	pid_t pid, const struct iovec *local, unsigned long local_count,
	const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
	if (stop_next) {
		stop_next = 0;
		raise(SIGSTOP);
	}
	return syscall(SYS_process_vm_writev, pid, local, local_count, remote,
		       remote_count, flags);
}

static bool is_stopped(pid_t pid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%*d %*s %c", &state) != 1)
			state = '?';
		fclose(f);
	}
	return state == 'T';
}

static void receiver(struct side *s)
{
	const uint64_t until = now_ms() + STOP_MS;
	void *buffer = mem_new(LEN);
	bool attach;
	int rc;

	node_open(s, &want_tagged);
	side_meet(s);
	attach = side_can_attach(s);
	while (node_again(
		s, fi_trecv(s->node.ep, buffer, LEN, NULL, s->node.peer, 1, 0, buffer),
		"fi_trecv"))
		;
	/* A few pieces at a time, so that the sender finds some. */
	while (attach && !is_stopped(s->peer_pid) && now_ms() < until) {
		node_progress(&s->node);
		sleep_ms(20);
	}
	if (attach) {
		side_check(s, is_stopped(s->peer_pid), "the sender is stopped");
		rc = fi_close(&s->node.ep->fid);
		side_check(s, rc == -FI_EBUSY, "meanwhile fi_close gives %d", rc);
		kill(s->peer_pid, SIGCONT);
		for (int i = 0; rc == -FI_EBUSY && i < 10; i++)
			rc = fi_close(&s->node.ep->fid);
		side_check(s, rc == 0, "then %d", rc);
		s->node.ep = NULL;
	}
	node_close(s, &s->node);
}

static void sender(struct side *s)
{
	void *buffer = mem_new(LEN);
	struct done d;

	node_open(s, &want_tagged);
	side_meet(s);
	stop_next = 1;
	while (node_again(
		s, fi_tsend(s->node.ep, buffer, LEN, NULL, s->node.peer, 1, buffer),
		"fi_tsend"))
		;
	if (!node_next(s, &d, 3 * WAIT_MS))
		side_die(s, "the send has no end");
	node_close(s, &s->node);
}

static const struct test_case cases[] = {
	{"D4: closed while the sender is stopped",
	 {receiver, sender},
	 .needs_weft = true},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	/* Not through shared slots. */
	setenv("FI_WEFT_JOINT_SIZE", "65536", 1);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
