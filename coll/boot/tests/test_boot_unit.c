/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the bootstrap that need no other process: wire format, variables, text. */
#include "config.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/boot/boot_env.h"
#include "coll/boot/boot_io.h"
#include "coll/boot/boot_wire.h"
#include "coll/boot/ranklist.h"
#include "util/tap.h"
#include "weft/weft.h"

static const uint8_t job[BOOT_JOB_LEN] = "secret";

static void test_golden(void)
{
	static const uint8_t want[BOOT_HDR_LEN] = {
		'W', 'E', 'F', 'B', 2,	 BOOT_GATHER, 0, 0, /* magic, version, type */
		0,   0,	  0,   5,   0,	 0,	      1, 2, /* rank, size */
		0,   0,	  0,   0,   0,	 0,	      0, 7, /* seq */
		0,   0,	  0,   0,   0,	 1,	      0, 3, /* len */
		0,   0,	  0,   0,   0,	 0,	      0, 0, /* code */
		's', 'e', 'c', 'r', 'e', 't',
	};
	struct boot_msg m = {BOOT_GATHER, 5, 258, 7, 65539, 0}, back;
	struct boot_hdr hdr;

	boot_wire_put(&hdr, &m, job);
	tap_is_mem(&hdr, want, sizeof(want), "golden bytes of a GATHER");
	tap_is_int(boot_wire_check(&hdr, sizeof(hdr), job, &back), BOOT_WIRE_GOOD,
		   "they are valid");
	tap_ok(back.type == m.type && back.rank == m.rank && back.size == m.size &&
		       back.seq == m.seq && back.len == m.len && back.code == m.code,
	       "and read back as they were written");
	tap_is_str(boot_type_name(BOOT_RESULT), "result", "types have names");
	tap_is_str(boot_type_name(BOOT_TYPE_END), "?", "others have none");
}

struct bad_row {
	const char *what;
	struct boot_msg msg;
	enum boot_wire_fault want;
};

static void test_bad_fields(void)
{
	static const struct bad_row rows[] = {
		{"rank equal to size", {BOOT_HELLO, 4, 4, 0, 0, 0}, BOOT_WIRE_RANK},
		{"negative rank", {BOOT_HELLO, -1, 4, 0, 0, 0}, BOOT_WIRE_RANK},
		{"no ranks", {BOOT_HELLO, 0, 0, 0, 0, 0}, BOOT_WIRE_RANK},
		{"too many ranks",
		 {BOOT_HELLO, 0, BOOT_SIZE_MAX + 1, 0, 0, 0},
		 BOOT_WIRE_RANK},
		{"HELLO with payload", {BOOT_HELLO, 1, 4, 0, 1, 0}, BOOT_WIRE_LEN},
		{"GATHER too long",
		 {BOOT_GATHER, 1, 4, 1, BOOT_LEN_MAX + 1, 0},
		 BOOT_WIRE_LEN},
		{"FAIL without text", {BOOT_FAIL, 1, 4, 0, 0, 1}, BOOT_WIRE_LEN},
		{"FAIL with a long text",
		 {BOOT_FAIL, 1, 4, 0, BOOT_TEXT_MAX + 1, 1},
		 BOOT_WIRE_LEN},
		{"FAIL with success", {BOOT_FAIL, 1, 4, 0, 9, 0}, BOOT_WIRE_CODE},
		{"FAIL with no result",
		 {BOOT_FAIL, 1, 4, 0, 9, WEFT_RESULT_COUNT},
		 BOOT_WIRE_CODE},
		{"ACCEPT with a number", {BOOT_ACCEPT, 1, 4, 1, 0, 0}, BOOT_WIRE_ZERO},
		{"TABLE of no process", {BOOT_TABLE, 1, 4, 7, 0, 0}, BOOT_WIRE_PLACE},
		{"TABLE of a process that can't be",
		 {BOOT_TABLE, 1, 4, UINT64_C(1) << 63 | 7, 0, 0},
		 BOOT_WIRE_PLACE},
		{"TABLE at no descriptor",
		 {BOOT_TABLE, 1, 4, UINT64_C(1) << 32 | UINT32_C(1) << 31, 0, 0},
		 BOOT_WIRE_PLACE},
		{"TABLE with payload",
		 {BOOT_TABLE, 1, 4, UINT64_C(1) << 32, 1, 0},
		 BOOT_WIRE_LEN},
		{"GATHER with a code", {BOOT_GATHER, 1, 4, 1, 0, 1}, BOOT_WIRE_ZERO},
	};
	struct boot_msg out;
	struct boot_hdr hdr;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		boot_wire_put(&hdr, &rows[i].msg, job);
		tap_is_int(boot_wire_check(&hdr, sizeof(hdr), job, &out), rows[i].want,
			   rows[i].what);
	}
}

static void test_bad_bytes(void)
{
	static const uint8_t other[BOOT_JOB_LEN] = "secreu";
	struct boot_msg m = {BOOT_ACCEPT, 1, 4, 0, 0, 0}, out = {.rank = 77};
	struct boot_hdr good, hdr;
	int wrong = 0;

	boot_wire_put(&good, &m, job);
	for (size_t len = 0; len < sizeof(good); len++)
		wrong += boot_wire_check(&good, len, job, &out) != BOOT_WIRE_SHORT;
	tap_is_int(wrong, 0, "every truncated header is short");
	tap_is_int(boot_wire_check(&good, sizeof(good), other, &out), BOOT_WIRE_JOB,
		   "another secret is refused");
	/* Any flipped bit but those of rank and size makes an ACCEPT invalid. */
	for (size_t bit = 0; bit < 8 * sizeof(good); bit++) {
		if (bit >= 8 * 8 && bit < 16 * 8)
			continue;
		hdr = good;
		((uint8_t *)&hdr)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (boot_wire_check(&hdr, sizeof(hdr), job, &out) == BOOT_WIRE_GOOD &&
		    out.type == BOOT_ACCEPT)
			wrong++;
		out.rank = 77;
	}
	tap_is_int(wrong, 0, "a flipped bit makes it another message or none");
	(void)boot_wire_check(&good, 3, job, &out);
	tap_is_int(out.rank, 77, "nothing is written for a bad message");
}

static void env_clear(void)
{
	unsetenv("WEFT_RANK");
	unsetenv("WEFT_SIZE");
	unsetenv("WEFT_ROOT");
	unsetenv("WEFT_ROOT_FD");
	unsetenv("WEFT_JOB");
}

static enum weft_result env_try(const char *rank, const char *size, const char *root,
				const char *secret, struct boot_env *env)
{
	env_clear();
	if (rank)
		setenv("WEFT_RANK", rank, 1);
	if (size)
		setenv("WEFT_SIZE", size, 1);
	if (root)
		setenv("WEFT_ROOT", root, 1);
	if (secret)
		setenv("WEFT_JOB", secret, 1);
	return boot_env_read(env, 0);
}

static void env_refused(const char *rank, const char *size, const char *root,
			const char *secret, const char *word)
{
	struct boot_env env;
	enum weft_result result = env_try(rank, size, root, secret, &env);

	if (!tap_ok(result == WEFT_ERR_ARG && strstr(weft_error_detail(), word),
		    "rank %s size %s root %s: refused, naming %s", rank ? rank : "-",
		    size ? size : "-", root ? root : "-", word))
		tap_diag("result %d: %s", (int)result, weft_error_detail());
}

static void test_env(void)
{
	char long_secret[BOOT_JOB_LEN + 2];
	struct boot_env env;

	memset(long_secret, 'x', sizeof(long_secret) - 1);
	long_secret[sizeof(long_secret) - 1] = '\0';
	tap_ok(env_try(NULL, NULL, NULL, NULL, &env) == WEFT_SUCCESS && env.alone &&
		       env.size == 1,
	       "no variable: one rank, alone");
	tap_ok(env_try("3", "8", "node7:4711", "s", &env) == WEFT_SUCCESS && !env.alone &&
		       env.rank == 3 && env.size == 8 && !strcmp(env.host, "node7") &&
		       !strcmp(env.port, "4711") && env.job[0] == 's' && !env.job[1],
	       "all four");
	tap_ok(env_try("3", "8", "[fe80::1]:1", "s", &env) == WEFT_SUCCESS &&
		       !strcmp(env.host, "fe80::1") && !strcmp(env.port, "1"),
	       "IPv6 in brackets");
	tap_is_int(env_try("0", "1", NULL, NULL, &env), WEFT_SUCCESS,
		   "one rank needs no root");
	long_secret[BOOT_JOB_LEN] = '\0';
	tap_is_int(env_try("1", "2", "h:1", long_secret, &env), WEFT_SUCCESS,
		   "a secret of 64 characters");
	long_secret[BOOT_JOB_LEN] = 'x';
	env_refused("1", "2", "h:1", long_secret, "WEFT_JOB");
	env_refused("1", "2", "h:1", "", "WEFT_JOB");
	env_refused("1", "2", "h:1", NULL, "WEFT_JOB");
	env_refused(NULL, "2", "h:1", "s", "WEFT_RANK");
	env_refused("1", NULL, "h:1", "s", "WEFT_SIZE");
	env_refused("1", "2", NULL, "s", "WEFT_ROOT");
	env_refused("2", "2", "h:1", "s", "WEFT_RANK");
	env_refused("-1", "2", "h:1", "s", "WEFT_RANK");
	env_refused("1x", "2", "h:1", "s", "WEFT_RANK");
	env_refused("1", "0", "h:1", "s", "WEFT_SIZE");
	env_refused("1", "99999999999999999999", "h:1", "s", "WEFT_SIZE");
	env_refused("1", "2", "h", "s", "WEFT_ROOT");
	env_refused("1", "2", ":1", "s", "WEFT_ROOT");
	env_refused("1", "2", "h:", "s", "port");
	env_refused("1", "2", "h:0", "s", "port");
	env_refused("1", "2", "h:65536", "s", "port");
	env_refused("1", "2", "h:1x", "s", "port");
	env_refused("1", "2", "::1:5", "s", "WEFT_ROOT");
	env_refused("1", "2", "[::1:5", "s", "WEFT_ROOT");
	env_clear();
}

/* Jobs of MPICH's mpiexec, which are told apart by a socket that ranks inherit. */
static bool job_is_of(const struct boot_env *env, int fd)
{
	struct boot_env own;
	char text[16];

	snprintf(text, sizeof(text), "%d", fd);
	setenv("HYDI_CONTROL_FD", text, 1);
	return boot_env_read(&own, 0) == WEFT_SUCCESS &&
	       memcmp(own.job, env->job, sizeof(own.job)) == 0 &&
	       strcmp(own.port, env->port) == 0;
}

static void control_tests(const struct boot_env *nameless)
{
	struct boot_env env;
	char text[16];
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0)
		tap_bail("socketpair: %s", strerror(errno));
	snprintf(text, sizeof(text), "%d", fd[0]);
	setenv("HYDI_CONTROL_FD", text, 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS && job_is_of(&env, dup(fd[0])),
	       "a socket's job is the same for all who have it");
	tap_ok(!job_is_of(&env, fd[1]), "another socket's is another");
	tap_ok(!job_is_of(nameless, fd[0]), "and none's, too");
	tap_ok(job_is_of(nameless, -1) && job_is_of(nameless, 1 << 20),
	       "what is no socket is none");
	setenv("HYDI_CONTROL_FD", "3x", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS &&
		       memcmp(env.job, nameless->job, sizeof(env.job)) == 0,
	       "nor is what is no number");
	close(fd[0]);
	close(fd[1]);
}

/* The variables of other launchers: rank, size, and where rank 0 is. */
static void test_launchers(void)
{
	static const char *const none[] = {
		"RANK",
		"WORLD_SIZE",
		"MASTER_ADDR",
		"MASTER_PORT",
		"TORCHELASTIC_RUN_ID",
		"SLURM_PROCID",
		"SLURM_STEP_NUM_TASKS",
		"SLURM_STEP_NUM_NODES",
		"SLURM_JOB_ID",
		"SLURM_STEP_ID",
		"OMPI_COMM_WORLD_RANK",
		"OMPI_COMM_WORLD_SIZE",
		"OMPI_COMM_WORLD_LOCAL_SIZE",
		"PMIX_NAMESPACE",
		"PMIX_RANK",
		"PMI_RANK",
		"PMI_SIZE",
		"MPI_LOCALNRANKS",
		"PMI_ID",
		"HYDI_CONTROL_FD",
	};
	struct boot_env env, other;

	env_clear();
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		unsetenv(none[i]);
	setenv("RANK", "1", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS && env.alone,
	       "a rank without a number of ranks is nobody's");
	setenv("WORLD_SIZE", "3", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), "MASTER_ADDR"),
	       "torchrun without an address: %s", weft_error_detail());
	setenv("MASTER_ADDR", "node7", 1);
	setenv("MASTER_PORT", "29500", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS && env.rank == 1 && env.size == 3 &&
		       !strcmp(env.host, "node7") && !strcmp(env.port, "29501") &&
		       env.job[0],
	       "torchrun: rank 0 is at the port behind its own");
	setenv("WEFT_ROOT", "[::1]:77", 1);
	setenv("WEFT_JOB", "mine", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS && env.rank == 1 &&
		       !strcmp(env.host, "::1") && !strcmp(env.port, "77") &&
		       !strcmp((char *)env.job, "mine"),
	       "WEFT_ROOT and WEFT_JOB count more");
	env_clear();
	setenv("RANK", "3", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), "RANK of torchrun is \"3\""),
	       "a rank that there isn't: %s", weft_error_detail());
	unsetenv("RANK");
	setenv("SLURM_PROCID", "0", 1);
	setenv("SLURM_JOB_ID", "17", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS && env.alone,
	       "a batch script of Slurm is no rank");
	setenv("SLURM_STEP_NUM_TASKS", "2", 1);
	setenv("SLURM_STEP_NUM_NODES", "1", 1);
	setenv("SLURM_STEP_ID", "0", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS && env.size == 2 &&
		       !strcmp(env.host, "127.0.0.1"),
	       "a step of it on one host");
	setenv("SLURM_STEP_ID", "1", 1);
	tap_ok(boot_env_read(&other, 0) == WEFT_SUCCESS &&
		       strcmp((char *)env.job, (char *)other.job) != 0,
	       "another step is another job");
	setenv("SLURM_STEP_NUM_NODES", "2", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), "set WEFT_ROOT=HOST:PORT"),
	       "on two hosts: %s", weft_error_detail());
	unsetenv("SLURM_PROCID");
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "2", 1);
	setenv("MPI_LOCALNRANKS", "2", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS && env.rank == 1 && env.size == 2,
	       "MPICH's");
	control_tests(&env);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		unsetenv(none[i]);
}

static void test_env_fd(void)
{
	const char *what;
	struct boot_env env;
	char text[16];
	int fd = boot_io_listen("127.0.0.1", "0", &what);

	env_clear();
	setenv("WEFT_RANK", "0", 1);
	setenv("WEFT_SIZE", "2", 1);
	setenv("WEFT_JOB", "s", 1);
	snprintf(text, sizeof(text), "%d", fd);
	setenv("WEFT_ROOT_FD", text, 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_SUCCESS && env.root_fd == fd,
	       "WEFT_ROOT_FD: a listening socket is taken");
	setenv("WEFT_ROOT_FD", "0", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_ERR_ARG, "standard input is not");
	setenv("WEFT_ROOT_FD", "987654", 1);
	tap_ok(boot_env_read(&env, 0) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), "WEFT_ROOT_FD"),
	       "nor a descriptor that is not open");
	close(fd);
	env_clear();
}

static bool in_word(const void *arg, int32_t rank)
{
	return ((const char *)arg)[rank] == 'x';
}

static void test_ranklist(void)
{
	char text[128], sparse[100], tiny[8];

	ranklist_format(text, sizeof(text), 10, in_word, ".xxx.x..xx");
	tap_is_str(text, "1-3, 5, 8-9", "runs and single ranks");
	ranklist_format(text, sizeof(text), 3, in_word, "...");
	tap_is_str(text, "none", "no rank");
	for (int i = 0; i < 100; i++)
		sparse[i] = i % 2 ? 'x' : '.';
	tap_is_int(ranklist_format(text, sizeof(text), 100, in_word, sparse), 50,
		   "the count covers those not shown");
	tap_is_str(text, "1, 3, 5, 7, 9, 11, 13, 15 and 42 more", "a long list is cut");
	ranklist_format(tiny, sizeof(tiny), 100, in_word, sparse);
	tap_ok(strlen(tiny) < sizeof(tiny), "a short buffer is respected");
}

int main(void)
{
	test_golden();
	test_bad_fields();
	test_bad_bytes();
	test_env();
	test_launchers();
	test_env_fd();
	test_ranklist();
	return tap_done();
}
