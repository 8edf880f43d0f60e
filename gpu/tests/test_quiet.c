/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Held streams and what the driver waits for: neither begins beside the other, whoever
 * asks first; and the stand-in ends with a message where a driver would hang.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/quiet.h"
#include "gpu/tests/app.h"
#include "util/tap.h"
#include "util/tap_fork.h"

#define PATIENCE UINT64_C(60000000000)
#define ROUNDS	 2000
#define THREADS	 4

static void test_rules(void)
{
	tap_ok(quiet_begin(0) && quiet_begin(0), "two quiet times at once");
	tap_ok(!hold_begin(0) && !hold_begin(1000000), "no hold in them");
	quiet_end();
	tap_ok(!hold_begin(0), "nor in what is left of them");
	quiet_end();
	tap_ok(hold_begin(0) && hold_begin(0), "two holds at once");
	tap_ok(!quiet_begin(0) && !quiet_begin(1000000), "no quiet time while they last");
	hold_end();
	hold_end();
	tap_ok(quiet_begin(0), "but after them");
	quiet_end();
}

static _Atomic int inside[2], wrong;

/* Either kind, in turn: never with one of the other kind beside it. */
static void *work(void *arg)
{
	const int first = *(int *)arg;

	for (int i = 0; i < ROUNDS; i++) {
		const int kind = (i + first) % 2;

		if (!(kind ? hold_begin(PATIENCE) : quiet_begin(PATIENCE))) {
			wrong++;
			continue;
		}
		inside[kind]++;
		wrong += inside[!kind] != 0;
		inside[kind]--;
		if (kind)
			hold_end();
		else
			quiet_end();
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread[THREADS];
	int first[THREADS];

	for (int i = 0; i < THREADS; i++) {
		first[i] = i;
		if (pthread_create(&thread[i], NULL, work, &first[i]))
			exit(1);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tap_ok(!wrong, "%d threads, never both", THREADS);
}

/* Frees pinned memory while a stream waits for what this thread does afterwards. */
static int hang(void)
{
	struct app *app;
	struct gpu_word_op op = {.kind = GPU_WORD_WAIT, .value = 1};
	void *words, *memory, *stream;
	struct gpu *gpu;

	setenv("WEFT_MOCK", "idle-ms=200", 1);
	app = app_open();
	if (!app)
		return 1;
	gpu = app_gpu(app);
	if (gpu_pinned_alloc(gpu, 4096, &words) || gpu_pinned_alloc(gpu, 4096, &memory) ||
	    gpu_stream_open(gpu, 0, &stream))
		return 1;
	op.word = words;
	if (gpu_stream_words(gpu, 0, stream, &op, 1))
		return 1;
	gpu_pinned_free(gpu, memory);
	atomic_store(op.word, 1);
	return 0;
}

static void test_hang(void)
{
	char text[512] = "";
	size_t at = 0;
	int fd[2], status = 0;
	ssize_t n = 1;
	pid_t pid;

	if (pipe(fd))
		exit(1);
	pid = tap_fork();
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(fd[1], STDERR_FILENO);
		close(fd[0]);
		_exit(hang());
	}
	close(fd[1]);
	while (n > 0 && at < sizeof(text) - 1) {
		n = read(fd[0], text + at, sizeof(text) - 1 - at);
		at += n > 0 ? (size_t)n : 0;
	}
	close(fd[0]);
	waitpid(pid, &status, 0);
	tap_ok(status != 0 && strstr(text, "cuMemFreeHost has waited"),
	       "the stand-in says so where a driver would hang");
}

int main(void)
{
	const char *real = getenv("WEFT_TEST_GPU");

	test_rules();
	test_threads();
	if (real && strcmp(real, "1") == 0)
		tap_skip(1, "a hang is shown on the stand-in only");
	else
		test_hang();
	return tap_done();
}
