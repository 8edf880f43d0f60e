/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks as processes: they meet, all-gather, die, hang, do not come, lie. Each rank
 * reports through its exit status; an alarm bounds everything. Who must be before whom
 * waits for it (stage_await): nobody sleeps for as long as others should need.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/boot/boot.h"
#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"
#include "util/tap.h"

enum { MAX_RANKS = 64, TEST_SECONDS = 100 };

#define SECOND ((int64_t)1000000)
#define LONG   (60 * SECOND) /* more than anything needs, on whatever machine */

/* What a rank process does; its return value becomes the exit status, 0 to 99. */
typedef int rank_fn(int32_t rank, int32_t size);

struct job {
	int listen_fd;
	int32_t size;
	char root[BOOT_ADDR_TEXT];
	pid_t pid[MAX_RANKS];
};

/* Distinct exit statuses, so that a failing test says where. */
enum {
	GOOD = 0,
	NOT_OPEN = 10,
	NOT_GATHERED = 20,
	WRONG_DATA = 30,
	WRONG_ERROR = 40,
	TAKEN = 50 /* refused: the rank is taken */
};

/* How many ranks of a job have come to each of its points; all processes see it. */
enum { STAGE_CALL, STAGE_GIVEN_UP, STAGE_END, STAGES };
static _Atomic(int) *stage;

static void stage_await(int which, int count)
{
	while (atomic_load(&stage[which]) < count)
		usleep(1000);
}

static int complain(int status, const char *what)
{
	fprintf(stderr, "# rank %s: %s: %s\n", getenv("WEFT_RANK"), what,
		weft_error_detail());
	return status;
}

static void job_open(struct job *job, int32_t size, const char *host)
{
	const char *what;

	memset(job, 0, sizeof(*job));
	for (int i = 0; i < STAGES; i++)
		atomic_store(&stage[i], 0);
	job->size = size;
	job->listen_fd = boot_io_listen(host, "0", &what);
	if (job->listen_fd < 0)
		tap_bail("listen: %s: %s", what, strerror(errno));
	boot_io_address(job->listen_fd, false, job->root);
}

/* A port that is kept, so that nobody else gets it, but where nobody listens: two sockets
 * with SO_REUSEADDR can have one as long as neither does. */
static void job_open_deaf(struct job *job, int32_t size)
{
	struct sockaddr_in any = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;

	job_open(job, size, "127.0.0.1");
	close(job->listen_fd);
	job->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (job->listen_fd < 0 ||
	    setsockopt(job->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(job->listen_fd, (struct sockaddr *)&any, sizeof(any)))
		tap_bail("a port: %s", strerror(errno));
	boot_io_address(job->listen_fd, false, job->root);
}

/* Until so many have connected to where rank 0 will be. */
static void job_await(const struct job *job, unsigned count)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	while (info.tcpi_unacked < count) { /* of a listening socket: who waits there */
		usleep(1000);
		len = sizeof(info);
		if (getsockopt(job->listen_fd, IPPROTO_TCP, TCP_INFO, &info, &len))
			tap_bail("TCP_INFO: %s", strerror(errno));
	}
}

static void job_start(struct job *job, int place, int32_t rank, const char *secret,
		      rank_fn *fn)
{
	char text[16];

	fflush(stdout);
	job->pid[place] = fork();
	if (job->pid[place] < 0)
		tap_bail("fork: %s", strerror(errno));
	if (job->pid[place] > 0)
		return;
	alarm(TEST_SECONDS);
	snprintf(text, sizeof(text), "%d", rank);
	setenv("WEFT_RANK", text, 1);
	snprintf(text, sizeof(text), "%d", job->size);
	setenv("WEFT_SIZE", text, 1);
	setenv("WEFT_ROOT", job->root, 1);
	setenv("WEFT_JOB", secret, 1);
	snprintf(text, sizeof(text), "%d", job->listen_fd);
	if (rank == 0)
		setenv("WEFT_ROOT_FD", text, 1);
	else
		close(job->listen_fd);
	_exit(fn(rank, job->size));
}

/* Exit status, or 128 + signal. */
static int job_wait(struct job *job, int place)
{
	int status;

	while (waitpid(job->pid[place], &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void job_run(int32_t size, const char *host, rank_fn *fn, const char *what)
{
	struct job job;
	int bad = 0;

	job_open(&job, size, host);
	for (int32_t r = size - 1; r >= 0; r--)
		job_start(&job, r, r, "the secret", fn);
	close(job.listen_fd);
	for (int32_t r = 0; r < size; r++)
		bad += job_wait(&job, r) != GOOD;
	tap_is_int(bad, 0, what);
}

/* The same, but rank 0 starts when all others knock. */
static void job_run_knocked(int32_t size, rank_fn *fn, const char *what)
{
	struct job job;
	int bad = 0;

	job_open(&job, size, "127.0.0.1");
	for (int32_t r = size - 1; r > 0; r--)
		job_start(&job, r, r, "the secret", fn);
	job_await(&job, (unsigned)size - 1);
	job_start(&job, 0, 0, "the secret", fn);
	close(job.listen_fd);
	for (int32_t r = 0; r < size; r++)
		bad += job_wait(&job, r) != GOOD;
	tap_is_int(bad, 0, what);
}

static enum weft_result open_for(struct boot **boot, int64_t timeout_us)
{
	struct boot_attr attr = {.timeout_us = timeout_us};

	return boot_open(&attr, boot);
}

/* An all-gather whose bytes depend on rank, position and round. */
static int gather_round(struct boot *boot, size_t len, unsigned round)
{
	int32_t rank = boot_rank(boot), size = boot_size(boot);
	uint8_t *in = malloc(len + 1), *out = malloc(len * (size_t)size + 1);
	int status = GOOD;

	for (size_t i = 0; i < len; i++)
		in[i] = (uint8_t)((size_t)rank * 31 + i * 7 + round);
	memset(out, 0xee, len * (size_t)size + 1);
	if (boot_allgather(boot, in, out, len, LONG) != WEFT_SUCCESS)
		status = complain(NOT_GATHERED, "all-gather");
	for (int32_t r = 0; r < size && !status; r++)
		for (size_t i = 0; i < len && !status; i++)
			if (out[(size_t)r * len + i] !=
			    (uint8_t)((size_t)r * 31 + i * 7 + round))
				status = WRONG_DATA;
	if (out[len * (size_t)size] != 0xee)
		status = WRONG_DATA;
	free(in);
	free(out);
	return status;
}

static int gather_all(struct boot *boot, int32_t rank, int32_t size)
{
	static const size_t lens[] = {8, 0, 1, 104, 4097, 300000, 8};
	int status = GOOD;

	if (boot_rank(boot) != rank || boot_size(boot) != size)
		status = WRONG_DATA;
	for (unsigned i = 0; i < 7 && !status; i++)
		status = gather_round(boot, lens[i], i);
	boot_close(boot);
	return status;
}

static int rank_normal(int32_t rank, int32_t size)
{
	struct boot *boot;

	if (open_for(&boot, LONG))
		return complain(NOT_OPEN, "open");
	return gather_all(boot, rank, size);
}

/* Two contexts one after the other over the same inherited descriptor. */
static int rank_twice(int32_t rank, int32_t size)
{
	struct boot *first, *second;
	int status;

	(void)rank, (void)size;
	if (open_for(&first, LONG) || open_for(&second, LONG))
		return complain(NOT_OPEN, "open");
	status = gather_round(second, 8, 1);
	if (!status)
		status = gather_round(first, 8, 2);
	boot_close(first);
	if (!status)
		status = gather_round(second, 8, 3);
	boot_close(second);
	return status;
}

/* Rank 2 is killed between two all-gathers; the others must be told so. */
static int rank_death(int32_t rank, int32_t size)
{
	uint32_t in = 1, out[MAX_RANKS];
	struct boot *boot;
	enum weft_result result;

	if (open_for(&boot, LONG) || gather_round(boot, 8, 0))
		return complain(NOT_OPEN, "open");
	if (rank == 2)
		raise(SIGKILL);
	result = boot_allgather(boot, &in, out, sizeof(in), LONG);
	if (result != WEFT_ERR_PEER || !strstr(weft_error_detail(), "rank 2"))
		return complain(WRONG_ERROR, "death of rank 2");
	result = boot_allgather(boot, &in, out, sizeof(in), LONG);
	if (result != WEFT_ERR_PEER || !strstr(weft_error_detail(), "rank 2"))
		return complain(WRONG_ERROR, "the failure stays");
	boot_close(boot);
	(void)size;
	return GOOD;
}

static int alive[2]; /* who can write into it lives */

/* Rank 1 dies with its contribution half sent, others in the middle of long sends. */
static int rank_half(int32_t rank, int32_t size)
{
	size_t len = 8 << 20;
	uint8_t *in = calloc(1, len), *out = malloc(len * (size_t)size);
	struct boot *boot;
	enum weft_result result;
	char byte;

	if (rank != 1)
		close(alive[1]);
	if (open_for(&boot, LONG))
		return complain(NOT_OPEN, "open");
	if (rank == 1) {
		signal(SIGALRM, SIG_DFL);
		ualarm(20000, 0); /* rank 0 reads nothing yet: the send cannot finish */
	}
	if (rank == 0 && read(alive[0], &byte, 1) != 0)
		return complain(WRONG_ERROR, "rank 1 should be dead");
	result = boot_allgather(boot, in, out, len, LONG);
	if (result != WEFT_ERR_PEER || !strstr(weft_error_detail(), "rank 1"))
		return complain(WRONG_ERROR, "death of rank 1");
	boot_close(boot);
	free(in);
	free(out);
	return GOOD;
}

/* Rank 1 does not come to the all-gather in time, which is rank 0's: the others are there
 * before it begins. */
static int rank_late(int32_t rank, int32_t size)
{
	uint32_t in = 1, out[MAX_RANKS];
	struct boot *boot;
	enum weft_result result;

	if (open_for(&boot, LONG))
		return complain(NOT_OPEN, "open");
	if (rank == 0)
		stage_await(STAGE_CALL, size - 2);
	else if (rank == 1)
		stage_await(STAGE_GIVEN_UP, 1);
	else
		atomic_fetch_add(&stage[STAGE_CALL], 1);
	result = boot_allgather(boot, &in, out, sizeof(in), rank ? LONG : 3 * SECOND);
	if (rank == 0)
		atomic_store(&stage[STAGE_GIVEN_UP], 1);
	atomic_fetch_add(&stage[STAGE_END], 1);
	if (result != WEFT_ERR_TIMEOUT || !strstr(weft_error_detail(), "rank 1"))
		return complain(WRONG_ERROR, "rank 1 is late");
	if (rank == 0)
		stage_await(STAGE_END, size);
	boot_close(boot);
	return GOOD;
}

static int rank_lengths(int32_t rank, int32_t size)
{
	uint8_t in[16] = {0}, out[16 * MAX_RANKS];
	struct boot *boot;
	enum weft_result result;

	if (open_for(&boot, LONG))
		return complain(NOT_OPEN, "open");
	result = boot_allgather(boot, in, out, rank == 2 ? 12 : 16, LONG);
	if (result != WEFT_ERR_MISMATCH || !strstr(weft_error_detail(), "rank 2") ||
	    !strstr(weft_error_detail(), "12 bytes") ||
	    !strstr(weft_error_detail(), "16 bytes"))
		return complain(WRONG_ERROR, "lengths differ");
	boot_close(boot);
	(void)size;
	return GOOD;
}

/* The job has ranks that never start. */
static int rank_missing(int32_t rank, int32_t size)
{
	struct boot *boot;
	enum weft_result result = open_for(&boot, rank ? LONG : 2 * SECOND);

	(void)size;
	if (result != WEFT_ERR_BOOTSTRAP || !strstr(weft_error_detail(), "2 of 5") ||
	    !strstr(weft_error_detail(), ": 2, 4;"))
		return complain(WRONG_ERROR, "ranks 2 and 4 are missing");
	return GOOD;
}

static int rank_no_root(int32_t rank, int32_t size)
{
	struct boot *boot;
	enum weft_result result = open_for(&boot, SECOND / 2);

	(void)rank, (void)size;
	if (result != WEFT_ERR_BOOTSTRAP || !strstr(weft_error_detail(), "rank 0"))
		return complain(WRONG_ERROR, "rank 0 is missing");
	return GOOD;
}

static void test_missing(void)
{
	struct job job;
	int bad = 0;

	job_open(&job, 5, "127.0.0.1");
	job_start(&job, 1, 1, "the secret", rank_missing);
	job_start(&job, 3, 3, "the secret", rank_missing);
	job_await(&job, 2);
	job_start(&job, 0, 0, "the secret", rank_missing);
	close(job.listen_fd);
	bad = job_wait(&job, 0) || job_wait(&job, 1) || job_wait(&job, 3);
	tap_is_int(bad, 0, "ranks that never start are named by all that did");

	job_open_deaf(&job, 2);
	job_start(&job, 1, 1, "the secret", rank_no_root);
	tap_is_int(job_wait(&job, 1), GOOD, "rank 0 never starts");
	close(job.listen_fd);
	job_open(&job, 2, "127.0.0.1");
	job_start(&job, 1, 1, "the secret", rank_no_root);
	tap_is_int(job_wait(&job, 1), GOOD, "somebody listens, but never answers");
	close(job.listen_fd);
}

/* ---- strangers -------------------------------------------------------------------- */

static int stranger_connect(const struct job *job)
{
	char why[128], *port = strrchr(job->root, ':') + 1;
	uint32_t backoff = 0;

	return boot_io_connect("127.0.0.1", port, boot_deadline(LONG), &backoff, why,
			       sizeof(why));
}

static void stranger_send(int fd, const void *data, size_t len)
{
	if (send(fd, data, len, MSG_NOSIGNAL) < 0)
		tap_diag("a stranger was cut off: %s", strerror(errno));
}

static int wrong_secret(int32_t rank, int32_t size)
{
	struct boot *boot;

	(void)rank, (void)size;
	return open_for(&boot, SECOND) == WEFT_ERR_BOOTSTRAP
		       ? GOOD
		       : complain(WRONG_ERROR, "wrong secret");
}

static void test_strangers(void)
{
	static char garbage[1 << 16];
	struct boot_msg hello = {BOOT_HELLO, 1, 4, 0, 0, 0};
	struct boot_msg gather = {BOOT_GATHER, 1, 4, 1, 4, 0};
	uint8_t secret[BOOT_JOB_LEN] = "the secret";
	struct boot_hdr hdr;
	struct job job;
	int fd[5], bad = 0;

	memset(garbage, 'G', sizeof(garbage));
	job_open(&job, 4, "127.0.0.1");
	job_start(&job, 0, 0, "the secret", rank_normal);
	fd[0] = stranger_connect(&job); /* silent */
	fd[1] = stranger_connect(&job); /* garbage, long */
	stranger_send(fd[1], garbage, sizeof(garbage));
	fd[2] = stranger_connect(&job); /* half a header, then silence */
	boot_wire_put(&hdr, &hello, secret);
	stranger_send(fd[2], &hdr, sizeof(hdr) / 2);
	fd[3] = stranger_connect(&job); /* hangs up */
	close(fd[3]);
	fd[4] = stranger_connect(&job); /* the secret, but no HELLO */
	boot_wire_put(&hdr, &gather, secret);
	stranger_send(fd[4], &hdr, sizeof(hdr));
	job_start(&job, 4, 1, "another secret", wrong_secret);
	tap_is_int(job_wait(&job, 4), GOOD, "a wrong secret is not let in");
	for (int32_t r = 1; r < 4; r++)
		job_start(&job, r, r, "the secret", rank_normal);
	for (int32_t r = 0; r < 4; r++)
		bad += job_wait(&job, r) != GOOD;
	tap_is_int(bad, 0, "strangers do no harm");
	close(fd[0]), close(fd[1]), close(fd[2]), close(fd[4]);
	close(job.listen_fd);
}

/* More silent strangers than there are places. */
static void test_crowd(void)
{
	struct job job;
	int fd[120], bad = 0;

	job_open(&job, 2, "127.0.0.1");
	job_start(&job, 0, 0, "the secret", rank_normal);
	for (int i = 0; i < 120; i++)
		fd[i] = stranger_connect(&job);
	job_start(&job, 1, 1, "the secret", rank_normal);
	bad = job_wait(&job, 0) != GOOD;
	bad += job_wait(&job, 1) != GOOD;
	tap_is_int(bad, 0, "a crowd of strangers keeps nobody out");
	for (int i = 0; i < 120; i++)
		close(fd[i]);
	close(job.listen_fd);
}

/* One of two processes with the same rank. */
static int rank_either(int32_t rank, int32_t size)
{
	struct boot *boot;
	enum weft_result result = open_for(&boot, LONG);

	if (result == WEFT_ERR_BOOTSTRAP && strstr(weft_error_detail(), "taken"))
		return TAKEN;
	return result ? complain(NOT_OPEN, "open") : gather_all(boot, rank, size);
}

/* Which of two places ends first. */
static int job_wait_first(struct job *job, int a, int b)
{
	siginfo_t info;

	for (;; usleep(1000)) {
		for (int i = 0; i < 2; i++) {
			info.si_pid = 0;
			if (waitid(P_PID, (id_t)job->pid[i ? b : a], &info,
				   WEXITED | WNOHANG | WNOWAIT) ||
			    info.si_pid)
				return i ? b : a;
		}
	}
}

static int held_back[2]; /* until a byte is there */

static int rank_held(int32_t rank, int32_t size)
{
	char byte;

	if (rank == 2 && read(held_back[0], &byte, 1) != 1)
		return complain(WRONG_ERROR, "nobody lets it go");
	return rank_normal(rank, size);
}

static void test_same_rank(void)
{
	struct job job;
	int bad = 0, first;

	if (pipe(held_back))
		tap_bail("pipe");
	job_open(&job, 3, "127.0.0.1");
	job_start(&job, 0, 0, "the secret", rank_held);
	job_start(&job, 1, 1, "the secret", rank_either);
	job_start(&job, 2, 2, "the secret", rank_held);
	job_start(&job, 3, 1, "the secret", rank_either);
	first = job_wait_first(&job, 1, 3);
	tap_is_int(job_wait(&job, first), TAKEN,
		   "the second process with a rank is refused");
	if (write(held_back[1], "", 1) != 1)
		tap_bail("write");
	bad += job_wait(&job, 0) != GOOD;
	bad += job_wait(&job, 4 - first) != GOOD;
	bad += job_wait(&job, 2) != GOOD;
	tap_is_int(bad, 0, "the first goes on");
	close(held_back[0]), close(held_back[1]);
	close(job.listen_fd);
}

static int other_size(int32_t rank, int32_t size)
{
	struct boot *boot;
	enum weft_result result;

	if (rank == 2)
		setenv("WEFT_SIZE", "7", 1);
	result = open_for(&boot, LONG);
	if (result != WEFT_ERR_MISMATCH || !strstr(weft_error_detail(), "rank 2") ||
	    !strstr(weft_error_detail(), "WEFT_SIZE 7"))
		return complain(WRONG_ERROR, "sizes differ");
	(void)size;
	return GOOD;
}

/* ---- without other processes ------------------------------------------------------ */

static int cb_echo(void *arg, const void *in, void *out, size_t len, int64_t timeout_us)
{
	memcpy(out, in, len);
	memcpy((char *)out + len, in, len);
	return timeout_us == 5 * SECOND ? *(int *)arg : -7;
}

static void test_local(void)
{
	int rc = 0;
	struct weft_boot_callbacks cb = {
		.rank = 1, .size = 2, .arg = &rc, .allgather = cb_echo};
	struct boot_attr attr = {.callbacks = &cb, .timeout_us = SECOND};
	struct boot *boot;
	uint32_t in = 42, out[2] = {0};

	tap_ok(boot_open(&attr, &boot) == WEFT_SUCCESS && boot_rank(boot) == 1 &&
		       boot_size(boot) == 2,
	       "callbacks give rank and size");
	tap_ok(boot_allgather(boot, &in, out, 4, 5 * SECOND) == WEFT_SUCCESS &&
		       out[1] == 42,
	       "the all-gather is the caller's, with the deadline");
	rc = 3;
	tap_ok(boot_allgather(boot, &in, out, 4, 5 * SECOND) == WEFT_ERR_BOOTSTRAP &&
		       strstr(weft_error_detail(), "returned 3"),
	       "its failure is reported");
	boot_close(boot);
	cb.rank = 2;
	tap_is_int(boot_open(&attr, &boot), WEFT_ERR_ARG, "rank 2 of 2 is refused");
	cb.rank = 0;
	cb.allgather = NULL;
	tap_is_int(boot_open(&attr, &boot), WEFT_ERR_ARG, "no function is refused");

	tap_ok(open_for(&boot, SECOND) == WEFT_SUCCESS && boot_size(boot) == 1 &&
		       boot_rank(boot) == 0,
	       "no variables: alone");
	tap_ok(boot_allgather(boot, &in, out, 4, SECOND) == WEFT_SUCCESS && out[0] == 42,
	       "alone, one gathers from oneself");
	boot_close(boot);
	boot_close(NULL);
}

/* Rank 0 binds WEFT_ROOT itself, after the others began to knock. */
static int rank_own_port(int32_t rank, int32_t size)
{
	unsetenv("WEFT_ROOT_FD");
	if (rank == 0)
		usleep(300000);
	return rank_normal(rank, size);
}

static void test_own_port(void)
{
	struct job job;
	int bad = 0;

	job_open_deaf(&job, 3);
	for (int32_t r = 0; r < 3; r++)
		job_start(&job, r, r, "the secret", rank_own_port);
	for (int32_t r = 0; r < 3; r++)
		bad += job_wait(&job, r) != GOOD;
	close(job.listen_fd);
	tap_is_int(bad, 0, "rank 0 listens at WEFT_ROOT, later than the others connect");
}

static int few_descriptors(int32_t rank, int32_t size)
{
	struct rlimit limit = {12, 12};
	struct boot *boot;
	enum weft_result result;

	(void)size;
	if (rank == 0)
		setrlimit(RLIMIT_NOFILE, &limit);
	result = open_for(&boot, LONG);
	if (result != WEFT_ERR_NOMEM || !strstr(weft_error_detail(), "ulimit"))
		return complain(WRONG_ERROR, "no descriptors");
	return GOOD;
}

int main(void)
{
	const char *what;
	int v6;

	alarm(280); /* all of it: before the harness ends it */
	stage = mmap(NULL, STAGES * sizeof(*stage), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stage == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	signal(SIGPIPE, SIG_DFL); /* a send to a dead rank must not kill */
	for (int fd = 3; fd < 64; fd++)
		close(fd); /* few_descriptors counts them */
	test_local();
	job_run(2, "127.0.0.1", rank_normal, "2 ranks");
	job_run(5, "127.0.0.1", rank_normal, "5 ranks");
	job_run(MAX_RANKS, "127.0.0.1", rank_twice, "64 ranks, two contexts");
	v6 = boot_io_listen("::1", "0", &what);
	if (v6 >= 0) {
		close(v6);
		job_run(3, "::1", rank_normal, "3 ranks over IPv6");
	} else {
		tap_skip(1, "no IPv6 on this host");
	}
	test_own_port();
	test_missing();
	test_strangers();
	test_crowd();
	test_same_rank();
	job_run_knocked(4, other_size, "a rank with another size is named");
	job_run(4, "127.0.0.1", rank_lengths, "a rank with another length is named");
	job_run(4, "127.0.0.1", rank_late, "a rank that hangs is named");
	job_run_knocked(32, few_descriptors, "descriptors run out at rank 0");
	{
		struct job job;
		int bad = 0;

		job_open(&job, 4, "127.0.0.1");
		for (int32_t r = 0; r < 4; r++)
			job_start(&job, r, r, "the secret", rank_death);
		close(job.listen_fd);
		for (int32_t r = 0; r < 4; r++)
			bad += job_wait(&job, r) != (r == 2 ? 128 + SIGKILL : GOOD);
		tap_is_int(bad, 0, "a rank that dies is named by all others");
		job_open(&job, 3, "127.0.0.1");
		if (pipe(alive))
			tap_bail("pipe");
		for (int32_t r = 0; r < 3; r++)
			job_start(&job, r, r, "the secret", rank_half);
		close(job.listen_fd), close(alive[0]), close(alive[1]);
		bad = 0;
		for (int32_t r = 0; r < 3; r++)
			bad += job_wait(&job, r) != (r == 1 ? 128 + SIGALRM : GOOD);
		tap_is_int(bad, 0, "also with its contribution half sent");
	}
	return tap_done();
}
