/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dumps of processes that die of a fault, with and without a handler of the program's,
 * and of processes that another one reads.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/trace/armed.h"
#include "coll/trace/take.h"
#include "util/tap.h"

static char folder[256];

enum { OWN_STATUS = 42 };

/* ---- faults ------------------------------------------------------------------------ */

static void own_handler(int number)
{
	_exit(number == SIGSEGV ? OWN_STATUS : 1);
}

static void own_action(int number, siginfo_t *info, void *context)
{
	_exit(number == SIGSEGV && info && context ? OWN_STATUS : 1);
}

/* How the program has set the signal before the context was opened. */
enum before { BY_DEFAULT, BY_HANDLER, BY_ACTION };

static void set_signal(int number, enum before before)
{
	struct sigaction how;

	memset(&how, 0, sizeof(how));
	how.sa_handler = before == BY_HANDLER ? own_handler : SIG_DFL;
	if (before == BY_ACTION) {
		how.sa_sigaction = own_action;
		how.sa_flags = SA_SIGINFO;
	}
	sigaction(number, &how, NULL);
}

static void fault(int number)
{
	volatile char *page;

	if (number != SIGSEGV) {
		raise(number);
		return;
	}
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED)
		*page = 1;
}

/* How a process ends that has a recorder and dies; its dump is then at `path`. */
static int crash(int number, enum before before, char path[400])
{
	const pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		struct recorder *r = recorder_open(1, 3);

		set_signal(number, before);
		if (!r || armed_add(r, folder) != WEFT_SUCCESS)
			_exit(3);
		trace_put(r, TRACE_STEP, 0, 0, 7, 2, 11);
		fault(number);
		_exit(4);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		tap_bail("no process: %s", strerror(errno));
	snprintf(path, 400, "%s/rank-1.%ld.0.trace", folder, (long)pid);
	return status;
}

static bool dumped(const char *path, int number)
{
	struct trace_dump dump;
	bool good;

	if (trace_load(path, &dump) != WEFT_SUCCESS) {
		tap_diag("%s", weft_error_detail());
		return false;
	}
	good = dump.head.reason == TRACE_CRASHED && (int)dump.head.signal == number &&
	       dump.head.count == 1 && dump.event[0].bytes == 11;
	trace_free(&dump);
	return good;
}

static void crashes(void)
{
	static const int number[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	char path[400];
	int status;

	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		status = crash(number[i], BY_DEFAULT, path);
		tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == number[i] &&
			       dumped(path, number[i]),
		       "signal %d: there is a dump, and the process ends of it",
		       number[i]);
	}
	status = crash(SIGSEGV, BY_HANDLER, path);
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == OWN_STATUS &&
		       dumped(path, SIGSEGV),
	       "the program's handler is called after the dump");
	status = crash(SIGSEGV, BY_ACTION, path);
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == OWN_STATUS &&
		       dumped(path, SIGSEGV),
	       "and has what came with the signal");
}

/* In a process of its own, since sanitizers have handlers. */
static void given_back(void)
{
	const pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		struct recorder *a = recorder_open(0, 1), *b = recorder_open(0, 1);
		struct sigaction now;
		bool good;

		set_signal(SIGSEGV, BY_HANDLER);
		good = a && b && armed_add(a, folder) == WEFT_SUCCESS &&
		       armed_add(b, folder) == WEFT_SUCCESS;
		recorder_close(a);
		sigaction(SIGSEGV, NULL, &now);
		good = good && (now.sa_flags & SA_SIGINFO);
		recorder_close(b);
		sigaction(SIGSEGV, NULL, &now);
		good = good && !(now.sa_flags & SA_SIGINFO) &&
		       now.sa_handler == own_handler;
		sigaction(SIGUSR2, NULL, &now);
		_exit(good && now.sa_handler == SIG_DFL ? 0 : 1);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	       "with the last context the signals are the program's again");
}

/* ---- other processes ----------------------------------------------------------------
 */

struct taken {
	int count;
	char path[400];
};

static void one_taken(void *arg, const char *path)
{
	struct taken *t = arg;

	t->count++;
	snprintf(t->path, sizeof(t->path), "%s", path);
}

/* A process that has recorded something and is stopped then. */
static pid_t stopped_process(void)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct recorder *r = recorder_open(2, 4);

		if (!r)
			_exit(1);
		recorder_name(r, 99, "none");
		recorder_comm_open(r, 5, NULL, 4, 2);
		recorder_peer(r, 3)->told = 17;
		trace_put(r, TRACE_PUT, 0, 5, 1, 3, 8);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid > 0 && (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)))
		tap_bail("the process did not stop");
	return pid;
}

static void check_taken(const struct taken *t)
{
	struct trace_dump dump;

	if (trace_load(t->path, &dump) != WEFT_SUCCESS) {
		tap_ok(false, "what was taken: %s", weft_error_detail());
		return;
	}
	tap_ok(dump.head.reason == TRACE_TAKEN && dump.head.rank == 2 &&
		       dump.head.job == 99 && dump.head.count == 1 &&
		       dump.head.comm_count == 1 && dump.comm[0].number == 5 &&
		       dump.comm[0].runs == 1 && dump.head.peer_count == 1 &&
		       dump.peer[0].rank == 3 && dump.peer[0].told == 17,
	       "with its tables and events");
	trace_free(&dump);
}

static void takes(void)
{
	const pid_t pid = stopped_process();
	struct taken t = {0};
	int status;

	if (pid < 0)
		tap_bail("no process: %s", strerror(errno));
	tap_ok(take_state(pid) == 'T', "a stopped process is seen as such");
	tap_ok(take_process(pid, folder, one_taken, &t) == WEFT_SUCCESS && t.count == 1,
	       "its recorder is read: %s", weft_error_detail());
	check_taken(&t);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	tap_ok(take_process(pid, folder, one_taken, &t) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), "No such file"),
	       "one that is gone is said: %s", weft_error_detail());
	tap_ok(take_process(getpid(), folder, one_taken, &t) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), "no flight recorder"),
	       "one that has none, too: %s", weft_error_detail());
}

/* ---- tables ------------------------------------------------------------------------ */

static void members(void)
{
	static const int32_t even[] = {4, 6, 8, 10}, mixed[] = {1, 2, 9, 12, 3, 0, 7};
	struct recorder *r = recorder_open(6, 1000);
	const struct trace_comm *c;

	if (!r)
		tap_bail("no memory");
	recorder_comm_open(r, 1, even, 4, 1);
	c = recorder_comm(r, 1);
	tap_ok(c->state == TRACE_COMM_OPEN && c->runs == 1 && c->first == 4 &&
		       c->run[0].step == 2 && c->run[0].count == 4,
	       "members in steps are one run");
	recorder_comm_open(r, 2, mixed, 7, 1);
	tap_ok(recorder_comm(r, 2)->runs == 4, "some few are some few");
	recorder_comm_close(r, 2);
	tap_ok(recorder_comm(r, 2)->state == TRACE_COMM_NONE, "a closed one is gone");
	recorder_comm_open(r, 1 + TRACE_COMMS, even, 4, 1);
	tap_ok(recorder_comm(r, 1)->state == TRACE_COMM_OPEN &&
		       r->image->head.lost == 1 &&
		       recorder_comm(r, 1 + TRACE_COMMS) == &r->spare_comm,
	       "one without a place is counted");
	for (int32_t i = 0; i < 1000; i++)
		recorder_peer(r, i)->recvs++;
	tap_ok(r->image->head.lost > 700 && recorder_peer(r, 0)->recvs == 1,
	       "so are peers, the first of which stay");
	recorder_close(r);
}

int main(void)
{
	char command[320];

	snprintf(folder, sizeof(folder), "%s/weft-crash-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(folder))
		tap_bail("%s: %s", folder, strerror(errno));
	members();
	crashes();
	given_back();
	takes();
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		tap_diag("%s is left", folder);
	return tap_done();
}
