/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long results, which the ranks of a host share: over several hosts (WEFT_NODES), where
 * a table can't be made or found, and where a leader dies or lies. Each rank is a process
 * and reports by its exit status; an alarm bounds everything.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/boot/boot.h"
#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"
#include "coll/boot/boot_table.h"
#include "util/fd.h"
#include "util/tap.h"

enum { RANKS = 12, NODE = 4, LEN = 20008, TEST_SECONDS = 200 };

#define LONG	 ((int64_t)100 * 1000000)
#define NODE_TXT "4" /* NODE */

static const uint8_t secret[BOOT_JOB_LEN] = "the secret";

static _Atomic(int) *ended; /* ranks that have seen it all, of this job */

typedef bool rank_fn(int32_t rank);

static uint8_t byte_of(int32_t rank, size_t i, unsigned round)
{
	return (uint8_t)((size_t)rank * 31 + i * 7 + round);
}

static void own_bytes(uint8_t *in, int32_t rank, unsigned round)
{
	for (size_t i = 0; i < LEN; i++)
		in[i] = byte_of(rank, i, round);
}

static bool all_bytes(const uint8_t *all, unsigned round)
{
	for (int32_t r = 0; r < RANKS; r++)
		for (size_t i = 0; i < LEN; i++)
			if (all[(size_t)r * LEN + i] != byte_of(r, i, round))
				return false;
	return true;
}

static struct boot *open_boot(void)
{
	struct boot_attr attr = {.timeout_us = LONG};
	struct boot *boot;

	if (boot_open(&attr, &boot) == WEFT_SUCCESS)
		return boot;
	fprintf(stderr, "# open: %s\n", weft_error_detail());
	_exit(2);
}

/* An all-gather that must succeed, the one way and the other. */
static bool round_good(struct boot *boot, unsigned round)
{
	static uint8_t in[LEN], out[RANKS * LEN];
	struct boot_view view;
	bool good;

	own_bytes(in, boot_rank(boot), round);
	if (round % 2) {
		good = boot_allgather(boot, in, out, LEN, LONG) == WEFT_SUCCESS &&
		       all_bytes(out, round);
	} else {
		good = boot_allgather_view(boot, in, LEN, LONG, &view) == WEFT_SUCCESS &&
		       (uintptr_t)view.at % 8 == 0 && all_bytes(view.at, round);
		boot_view_end(&view);
	}
	if (!good)
		fprintf(stderr, "# rank %d, round %u: %s\n", boot_rank(boot), round,
			weft_error_detail());
	return good;
}

static bool rank_shares(int32_t rank)
{
	struct boot *boot = open_boot();
	bool good = true;

	(void)rank;
	for (unsigned i = 0; i < 6; i++)
		good = round_good(boot, i) && good;
	boot_close(boot);
	return good;
}

static void no_descriptors(void)
{
	struct rlimit limit = {3, 3}; /* those that are open stay */

	setrlimit(RLIMIT_NOFILE, &limit);
}

/* One that follows, one that leads and rank 0 can open nothing more. */
static bool rank_full(int32_t rank)
{
	struct boot *boot = open_boot();
	bool good = round_good(boot, 0);

	if (rank == NODE + 1 || rank == 2 * NODE)
		no_descriptors();
	good = round_good(boot, 1) && round_good(boot, 2) && good;
	if (rank == 0 || rank == 1)
		no_descriptors();
	good = round_good(boot, 3) && round_good(boot, 4) && good;
	boot_close(boot);
	return good;
}

/* ---- a leader by hand ------------------------------------------------------------- */

static void hand_send(int fd, const struct boot_msg *msg, const void *payload, size_t len)
{
	struct boot_tx tx = {.payload = payload, .payload_len = len};

	boot_wire_put(&tx.hdr, msg, secret);
	while (boot_io_write(fd, &tx) == BOOT_IO_MORE)
		usleep(1000);
}

static bool hand_read(int fd, void *buf, size_t len)
{
	size_t done = 0;
	enum boot_io io;

	while ((io = boot_io_read(fd, buf, len, &done)) == BOOT_IO_MORE)
		usleep(1000);
	return io == BOOT_IO_DONE;
}

static bool hand_expect(int fd, enum boot_type type)
{
	struct boot_hdr hdr;
	struct boot_msg m;

	return hand_read(fd, &hdr, sizeof(hdr)) &&
	       boot_wire_check(&hdr, sizeof(hdr), secret, &m) == BOOT_WIRE_GOOD &&
	       m.type == type;
}

/* Rank NODE until it was told to make a table; -1: it wasn't. */
static int hand_lead(int32_t rank)
{
	static uint8_t in[LEN], out[RANKS * LEN];
	const struct boot_msg hello = {BOOT_HELLO, rank, RANKS, boot_table_host(rank),
				       0,	   0};
	const struct boot_msg gather = {BOOT_GATHER, rank, RANKS, 1, LEN, 0};
	uint32_t backoff = 0;
	char why[128];
	const int fd = boot_io_connect("127.0.0.1", strrchr(getenv("WEFT_ROOT"), ':') + 1,
				       boot_deadline(LONG), &backoff, why, sizeof(why));

	hand_send(fd, &hello, NULL, 0);
	if (!hand_expect(fd, BOOT_ACCEPT) || !hand_expect(fd, BOOT_WELCOME))
		return -1;
	own_bytes(in, rank, 0);
	hand_send(fd, &gather, in, LEN);
	return hand_expect(fd, BOOT_LEAD) && hand_read(fd, out, sizeof(out)) ? fd : -1;
}

/* The others have the first result all the same; rank 0 finds the death with it or in
 * the next, and the next is an error that names it everywhere. */
static bool death_seen(void)
{
	struct boot *boot = open_boot();
	static uint8_t in[LEN], out[RANKS * LEN];
	enum weft_result result;
	bool good;

	own_bytes(in, boot_rank(boot), 0);
	result = boot_allgather(boot, in, out, LEN, LONG);
	good = boot_rank(boot) == 0 || (result == WEFT_SUCCESS && all_bytes(out, 0));
	result = boot_allgather(boot, in, out, LEN, LONG);
	good = good && result == WEFT_ERR_PEER && strstr(weft_error_detail(), "rank 4 ");
	if (!good)
		fprintf(stderr, "# rank %d: %d, %s\n", boot_rank(boot), (int)result,
			weft_error_detail());
	atomic_fetch_add(ended, 1);
	while (boot_rank(boot) == 0 && atomic_load(ended) < RANKS - 1)
		usleep(1000); /* what closes would be heard of before what it said */
	boot_close(boot);
	return good;
}

static bool rank_leader_dies(int32_t rank)
{
	return rank == NODE ? hand_lead(rank) >= 0 : death_seen();
}

/* Says that some other file of its own, long enough, is the table; and goes. */
static bool rank_leader_lies(int32_t rank)
{
	struct boot_msg table = {BOOT_TABLE, rank, RANKS, 0, 0, 0};
	char byte;
	int fd, file;

	if (rank != NODE)
		return death_seen();
	fd = hand_lead(rank);
	file = memfd_create("lie", MFD_CLOEXEC);
	if (fd < 0 || file < 0 || ftruncate(file, BOOT_HDR_LEN + RANKS * LEN) != 0)
		return false;
	table.seq = boot_table_place(file);
	hand_send(fd, &table, NULL, 0);
	/* Until the others have failed for want of a second contribution: rank 0 says so.
	 * They can't before they have the first result. */
	shutdown(fd, SHUT_WR);
	while (hand_read(fd, &byte, 1))
		;
	return true;
}

/* ---- a table by itself ------------------------------------------------------------ */

static void test_table(void)
{
	static uint8_t all[RANKS * LEN], got[RANKS * LEN];
	struct boot_gather g = {.out = got, .len = LEN, .seq = 5};
	const uint8_t other[BOOT_JOB_LEN] = "another";
	struct boot_gather wrong = g;
	const int fd = boot_table_make(secret, &g, RANKS, all);
	const uint64_t at = boot_table_place(fd);
	const int dull = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	tap_ok(fd >= 0 && boot_table_take(at, secret, &g, RANKS), "a table is taken");
	tap_ok(write(fd, "x", 1) < 0 && ftruncate(fd, 10) < 0, "nobody changes it");
	tap_ok(!boot_table_take(at, other, &g, RANKS), "not by another job");
	wrong.seq = 6;
	tap_ok(!boot_table_take(at, secret, &wrong, RANKS), "not for another all-gather");
	wrong = g;
	wrong.len = LEN - 1;
	tap_ok(!boot_table_take(at, secret, &wrong, RANKS), "not of another length");
	tap_ok(!boot_table_take(at, secret, &g, RANKS + 1), "not of other ranks");
	tap_ok(!boot_table_take(boot_table_place(dull), secret, &g, RANKS),
	       "another kind of file is none");
	close(dull);
	close(fd);
	tap_ok(!boot_table_take(at, secret, &g, RANKS), "nor is what was closed");
}

static void job_run(rank_fn *fn, const char *what)
{
	const char *failed;
	char root[BOOT_ADDR_TEXT], text[16];
	const int listen_fd = boot_io_listen("127.0.0.1", "0", &failed);
	pid_t pid[RANKS];
	int bad = 0, status;

	if (listen_fd < 0)
		tap_bail("listen: %s: %s", failed, strerror(errno));
	boot_io_address(listen_fd, false, root);
	atomic_store(ended, 0);
	for (int32_t r = 0; r < RANKS; r++) {
		fflush(stdout);
		pid[r] = fork();
		if (pid[r] < 0)
			tap_bail("fork: %s", strerror(errno));
		if (pid[r] > 0)
			continue;
		alarm(TEST_SECONDS);
		snprintf(text, sizeof(text), "%d", r);
		setenv("WEFT_RANK", text, 1);
		snprintf(text, sizeof(text), "%d", RANKS);
		setenv("WEFT_SIZE", text, 1);
		setenv("WEFT_ROOT", root, 1);
		setenv("WEFT_JOB", (const char *)secret, 1);
		setenv("WEFT_NODES", NODE_TXT, 1);
		snprintf(text, sizeof(text), "%d", listen_fd);
		if (r == 0)
			setenv("WEFT_ROOT_FD", text, 1);
		else
			close(listen_fd);
		_exit(fn(r) ? 0 : 1);
	}
	close(listen_fd);
	for (int32_t r = 0; r < RANKS; r++)
		if (waitpid(pid[r], &status, 0) != pid[r] || status != 0) {
			tap_diag("rank %d: status 0x%x", r, (unsigned)status);
			bad++;
		}
	tap_is_int(bad, 0, what);
}

/* More than a pipe takes at once, so that it goes in parts on both sides. */
static void test_whole(void)
{
	enum { MUCH = 300000 };
	uint8_t *out = malloc(MUCH), *in = calloc(1, MUCH), more;
	int end[2], status;
	pid_t pid;

	if (!out || !in || pipe(end))
		tap_bail("no memory or pipe");
	for (size_t i = 0; i < MUCH; i++)
		out[i] = byte_of(3, i, 1);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("fork: %s", strerror(errno));
	if (pid == 0) {
		close(end[0]);
		_exit(fd_write_all(end[1], out, MUCH) != 0);
	}
	close(end[1]);
	tap_ok(fd_read_all(end[0], in, MUCH) == 0 && memcmp(in, out, MUCH) == 0,
	       "what goes in parts comes whole");
	tap_is_int(fd_read_all(end[0], &more, 1), -ENODATA, "then there is no more");
	tap_ok(waitpid(pid, &status, 0) == pid && status == 0, "its writer knows");
	close(end[0]);
	if (pipe(end))
		tap_bail("no pipe");
	close(end[0]);
	signal(SIGPIPE, SIG_IGN);
	tap_is_int(fd_write_all(end[1], out, MUCH), -EPIPE, "nobody takes it");
	signal(SIGPIPE, SIG_DFL);
	close(end[1]);
	free(out);
	free(in);
}

int main(void)
{
	ended = mmap(NULL, sizeof(*ended), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ended == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	alarm(280); /* all of it: before the harness ends it */
	test_whole();
	test_table();
	job_run(rank_shares, "ranks of three hosts share long results");
	job_run(rank_full, "who can't make or find a table gets the bytes");
	job_run(rank_leader_dies,
		"a leader that dies costs the others nothing but itself");
	job_run(rank_leader_lies, "what a leader says is not believed");
	return tap_done();
}
