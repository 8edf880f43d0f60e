/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A coordinator that a process starts for itself and others: members of two processes
 * reduce by it, it is ended between two steps and started again with its state, and they
 * go on; and what it refuses.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/tap.h"
#include "weft/weft.h"

#define LONG_US INT64_C(120000000)
#define STEPS	6

struct shared {
	char address[80];
	_Atomic int counted; /* steps of both members, first half */
	_Atomic int again;   /* the coordinator is there again */
};

static struct shared *shared;
static char folder[] = "/tmp/weft-serve-XXXXXX";
static char state[64];

static struct weft_ft_serve_opts plain(const char *listen, int first)
{
	struct weft_ft_serve_opts opts = WEFT_FT_SERVE_OPTS_INIT;

	opts.listen = listen;
	opts.state = state;
	opts.job = "tests";
	opts.members = 2;
	opts.first = first;
	opts.silence_us = LONG_US;
	return opts;
}

static int failed(const char *what)
{
	printf("# %s: %s\n", what, weft_error_detail());
	fflush(stdout);
	return 1;
}

/* Steps; between the two halves it waits, with a naps' clock of its own. */
static int member_run(void)
{
	struct weft_ft_opts opts = WEFT_FT_OPTS_INIT;
	struct weft_ft *ft;
	int bad = 0;

	opts.coordinator = shared->address;
	opts.job = "tests";
	opts.address = "127.0.0.1";
	opts.provider = "tcp";
	opts.timeout_us = LONG_US;
	if (weft_ft_open(&opts, &ft) != WEFT_SUCCESS)
		return failed("open");
	for (int i = 0; i < 2 * STEPS && !bad; i++) {
		int32_t one = 1, sum = 0;

		for (int naps = 0; i == STEPS && !atomic_load(&shared->again); naps++) {
			if (naps > 120000)
				return failed("it doesn't come back");
			usleep(1000);
		}
		if (weft_ft_allreduce(ft, &one, &sum, 1, WEFT_INT32, WEFT_SUM, 0) !=
			    WEFT_SUCCESS ||
		    sum != 2)
			bad = failed("step");
		if (i < STEPS)
			atomic_fetch_add(&shared->counted, 1);
	}
	if (!bad && weft_ft_leave(ft, LONG_US) != WEFT_SUCCESS)
		bad = failed("leave");
	if (weft_ft_close(ft) != WEFT_SUCCESS)
		bad = failed("close");
	return bad;
}

/* The one that serves has no threads but the server's when it forks the members. */
static int members_start(pid_t pid[2])
{
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			return 1;
		if (pid[i] == 0)
			exit(member_run());
	}
	return 0;
}

static bool members_end(const pid_t pid[2])
{
	bool good = true;

	for (int i = 0; i < 2; i++) {
		int status = 0;

		good &= waitpid(pid[i], &status, 0) == pid[i] && status == 0;
	}
	return good;
}

/* A process of its own, which serves twice at one place. */
static int server_run(int up)
{
	struct weft_ft_serve_opts opts = plain("127.0.0.1:0", 1);
	struct weft_ft_server *server;

	if (weft_ft_serve(&opts, &server) != WEFT_SUCCESS)
		return failed("serve");
	snprintf(shared->address, sizeof(shared->address), "%s",
		 weft_ft_serve_address(server));
	if (write(up, "", 1) != 1)
		return failed("up");
	for (int naps = 0; atomic_load(&shared->counted) < 2 * STEPS; naps++) {
		if (naps > 120000)
			return failed("no steps");
		usleep(1000);
	}
	if (weft_ft_serve_end(server) != WEFT_SUCCESS)
		return failed("end");
	opts = plain(shared->address, 0);
	if (weft_ft_serve(&opts, &server) != WEFT_SUCCESS)
		return failed("serve again");
	atomic_store(&shared->again, 1);
	/* Until it is told that the members have left. */
	for (int naps = 0; atomic_load(&shared->again) == 1; naps++) {
		if (naps > 240000)
			return failed("nobody says the end");
		usleep(1000);
	}
	return weft_ft_serve_end(server) == WEFT_SUCCESS ? 0 : failed("end again");
}

static void test_both(void)
{
	int up[2], status = 1;
	pid_t server, pid[2];
	bool good;
	char byte;

	if (pipe(up) || (server = fork()) < 0)
		tap_bail("no process");
	if (server == 0)
		exit(server_run(up[1]));
	close(up[1]);
	good = read(up[0], &byte, 1) == 1 && members_start(pid) == 0 && members_end(pid);
	tap_ok(good, "two members reduce %d times, over one end of the coordinator",
	       2 * STEPS);
	atomic_store(&shared->again, 2);
	tap_ok(waitpid(server, &status, 0) == server && status == 0,
	       "the coordinator is ended, goes on with its state, and ends well");
	close(up[0]);
}

static void refuses(struct weft_ft_serve_opts opts, enum weft_result want,
		    const char *words, const char *what)
{
	struct weft_ft_server *server;
	const enum weft_result got = weft_ft_serve(&opts, &server);

	if (!tap_ok(got == want && strstr(weft_error_detail(), words), "refused: %s",
		    what))
		tap_diag("%s: %s", weft_strerror(got), weft_error_detail());
	if (got == WEFT_SUCCESS)
		weft_ft_serve_end(server);
}

static void test_refusals(void)
{
	struct weft_ft_serve_opts opts = plain("127.0.0.1:0", 0);
	struct weft_ft_server *server;
	char missing[80];

	opts.members = 0;
	refuses(opts, WEFT_ERR_ARG, "members is 0", "no members");
	opts = plain(NULL, 0);
	refuses(opts, WEFT_ERR_ARG, "listen is NULL", "no place");
	opts = plain("127.0.0.1", 0);
	refuses(opts, WEFT_ERR_BOOTSTRAP, "127.0.0.1", "a place without a port");
	opts = plain("127.0.0.1:0", 1);
	refuses(opts, WEFT_ERR_BOOTSTRAP, "", "the first one, where one has been");
	opts = plain("127.0.0.1:0", 0);
	snprintf(missing, sizeof(missing), "%s/none/state", folder);
	opts.state = missing;
	refuses(opts, WEFT_ERR_BOOTSTRAP, "none/state", "a state that can't be had");
	opts.size = 3;
	refuses(opts, WEFT_ERR_ARG, "size is 3", "a struct that is none");
	tap_ok(weft_ft_serve(NULL, &server) == WEFT_ERR_ARG &&
		       weft_ft_serve_end(NULL) == WEFT_ERR_ARG &&
		       !weft_ft_serve_address(NULL),
	       "refused: nothing");
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || !mkdtemp(folder))
		tap_bail("no memory or folder");
	snprintf(state, sizeof(state), "%s/state", folder);
	test_both();
	test_refusals();
	unlink(state);
	rmdir(folder);
	munmap(shared, sizeof(*shared));
	return tap_done();
}
