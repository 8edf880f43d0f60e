/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases in two processes, messages between the sides, memory patterns. See util.h. */
#include "config.h"

#include "fabtests/own/util.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fabtests/own/apart.h"
#include "util/tap.h"

#define EXIT_LACKS 77 /* the provider does not offer what the case is about */

const size_t sizes_all[] = {0,	       1,	  8,	 37,
			    4095,      4096,	  4097,	 (64u << 10) - 1,
			    64u << 10, 65u << 10, 65537, (1u << 20) + 3,
			    SIZE_MOST};
const size_t sizes_count = ARRAY_LEN(sizes_all);

static const char *provider = "weft";
static bool isolated;
static void (*before_case)(struct side *s);

/* ---- time and memory */

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static void *mem_map(size_t len, int kind)
{
	void *p = mmap(NULL, len ? len : 1, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED) {
		printf("# no memory for %zu bytes\n", len);
		_exit(1);
	}
	return memset(p, 0xee, len);
}

void *mem_new(size_t len)
{
	return mem_map(len, MAP_PRIVATE);
}

void *mem_new_shared(size_t len)
{
	return mem_map(len, MAP_SHARED);
}

void mem_free(void *p, size_t len)
{
	munmap(p, len ? len : 1);
}

/* A byte that depends on its place, so that shifted data is noticed. */
static uint8_t pattern(size_t i, uint32_t seed)
{
	return (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16) * 31 + seed * 97 + 5);
}

void mem_fill(void *p, size_t len, uint32_t seed)
{
	uint8_t *b = p;

	for (size_t i = 0; i < len; i++)
		b[i] = pattern(i, seed);
}

bool mem_check(struct side *s, const void *p, size_t len, uint32_t seed, const char *what)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < len; i++) {
		if (b[i] != pattern(i, seed))
			return side_check(s, false,
					  "%s: byte %zu of %zu is 0x%02x, want 0x%02x",
					  what, i, len, b[i], pattern(i, seed));
	}
	return true;
}

/* ---- program */

/* Loopback is down in a new network namespace. */
static bool loopback_up(void)
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool good;

	if (fd < 0)
		return false;
	strcpy(ifr.ifr_name, "lo");
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	good = ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;
	close(fd);
	return good;
}

/* So that two test programs never meet, and what one leaves behind can be told. */
static void isolate(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0) {
		tap_diag("no namespaces here (%s): ports are shared", strerror(errno));
		return;
	}
	if (!loopback_up() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") < 0)
		tap_bail("namespaces can't be set up: %s", strerror(errno));
	/* libfabric's provider for verbs reads all names of the kernel whenever a process
	 * loads the library, to see whether GPUs' drivers are there: that is half of what
	 * a short case costs. Where this is refused it costs that. */
	if (mount("/dev/null", "/proc/kallsyms", NULL, MS_BIND, NULL) < 0)
		tap_diag("/proc/kallsyms stays as it is: %s", strerror(errno));
	isolated = true;
}

void test_init(int argc, char **argv)
{
	const char *env = getenv("WEFT_TEST_PROVIDER");

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (env && *env)
		provider = env;
	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--provider") == 0)
			provider = argv[i + 1];
	}
	setenv("FI_PROVIDER", provider, 1);
	/* Whoever a dying side leaves behind comes to us. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	apart_init();
	if (!apart_is())
		isolate();
}

int test_done(void)
{
	return tap_done();
}

const char *test_provider(void)
{
	return provider;
}

bool test_is_weft(void)
{
	return strcmp(provider, "weft") == 0;
}

bool test_is_isolated(void)
{
	return isolated;
}

static void side_run(const struct test_case *c, int role, const int sock[2], pid_t peer)
{
	struct side s = {
		.role = role, .sock = sock[role], .peer_pid = peer, .arg = c->arg};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sock[!role] >= 0)
		close(sock[!role]);
	if (before_case)
		before_case(&s);
	c->run[role](&s);
	/* Libraries' destructors and a leak checker have their turn; the latter traces
	 * us. */
	prctl(PR_SET_DUMPABLE, 1);
	exit(s.failed ? 1 : 0);
}

/* Both statuses, or false when the deadline came first (then both are killed). Of a side
 * that is elsewhere (0) nothing is known. */
static bool sides_wait(pid_t pid[2], int status[2], int seconds)
{
	uint64_t end = now_ms() + (uint64_t)seconds * 1000;
	bool in_time = true, ended[2] = {pid[0] == 0, pid[1] == 0};

	while (!ended[0] || !ended[1]) {
		bool late = now_ms() > end;

		for (int i = 0; i < 2; i++) {
			if (ended[i])
				continue;
			if (late)
				kill(pid[i], SIGKILL);
			ended[i] = waitpid(pid[i], &status[i], late ? 0 : WNOHANG) != 0;
			/* One that failed would only leave the other waiting. */
			if (ended[i] && !late && !ended[!i] &&
			    (!WIFEXITED(status[i]) || WEXITSTATUS(status[i]) != 0) &&
			    end > now_ms() + 3000 && !WIFSIGNALED(status[i]))
				end = now_ms() + 3000;
		}
		in_time = in_time && !late;
		sleep_ms(1);
	}
	return in_time;
}

static int orphans_reap(void)
{
	int n = 0;
	pid_t pid;

	/* One that is about to end by itself is no orphan. */
	for (int i = 0; i < WAIT_MS / 10; i++) {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return n;
		sleep_ms(10);
	}
	tap_diag("children are left");
	return n + 1;
}

/* -1: of a side that runs elsewhere. */
static void sides_meet(int sock[2])
{
	sock[0] = sock[1] = -1;
	if (apart_is())
		sock[apart_side()] = apart_meet();
	else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		tap_bail("socketpair: %s", strerror(errno));
}

static void case_run(const struct test_case *c, const char *suffix)
{
	int sock[2], status[2] = {0, 0};
	pid_t pid[2] = {0, 0};
	bool good, lacks = false;

	if (c->skip || (c->needs_weft && !test_is_weft())) {
		tap_skip(1, "%s%s: %s", c->name, suffix, c->skip ? c->skip : "only weft");
		return;
	}
	sides_meet(sock);
	for (int role = 1; role >= 0; role--) {
		if (sock[role] < 0)
			continue;
		pid[role] = fork();
		if (pid[role] < 0)
			tap_bail("fork: %s", strerror(errno));
		if (pid[role] == 0)
			side_run(c, role, sock, role == 0 ? pid[1] : 0);
	}
	for (int i = 0; i < 2; i++)
		if (sock[i] >= 0)
			close(sock[i]);
	good = sides_wait(pid, status, c->seconds ? c->seconds : CASE_SECONDS);
	if (!good)
		tap_diag("%s%s: ended by the deadline", c->name, suffix);
	for (int i = 0; i < 2; i++) {
		if (i == 1 && c->killed && WIFSIGNALED(status[i]) &&
		    WTERMSIG(status[i]) == SIGKILL)
			continue;
		if (WIFSIGNALED(status[i]))
			tap_diag("side %d: signal %d", i, WTERMSIG(status[i]));
		lacks = lacks ||
			(WIFEXITED(status[i]) && WEXITSTATUS(status[i]) == EXIT_LACKS);
		good = good && WIFEXITED(status[i]) && WEXITSTATUS(status[i]) == 0;
	}
	good = orphans_reap() == 0 && good;
	if (lacks && !test_is_weft())
		tap_skip(1, "%s%s: not offered by %s", c->name, suffix, provider);
	else
		tap_ok(good, "%s%s", c->name, suffix);
}

void cases_before(void (*before)(struct side *s))
{
	before_case = before;
}

void cases_run(const struct test_case *cases, size_t count, const char *suffix)
{
	const char *only = getenv("WEFT_TEST_CASE"); /* to debug one */

	for (size_t i = 0; i < count; i++) {
		if (!only || strstr(cases[i].name, only))
			case_run(&cases[i], suffix);
	}
}

/* ---- sides */

static void side_say(struct side *s, const char *fmt, va_list ap)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	printf("# side %d: %s\n", s->role, text);
	fflush(stdout);
}

bool side_check(struct side *s, bool good, const char *fmt, ...)
{
	va_list ap;

	if (good)
		return true;
	s->failed++;
	va_start(ap, fmt);
	side_say(s, fmt, ap);
	va_end(ap);
	return false;
}

bool side_check_u64(struct side *s, uint64_t got, uint64_t want, const char *what)
{
	return side_check(s, got == want, "%s: got 0x%" PRIx64 ", want 0x%" PRIx64, what,
			  got, want);
}

void side_die(struct side *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	side_say(s, fmt, ap);
	va_end(ap);
	_exit(1);
}

void side_lacks(struct side *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	side_say(s, fmt, ap);
	va_end(ap);
	_exit(EXIT_LACKS);
}

void side_must(struct side *s, ssize_t rc, const char *call)
{
	if (rc < 0)
		side_die(s, "%s: %s", call, fi_strerror((int)-rc));
}

void side_tell(struct side *s, const void *data, size_t len)
{
	if (send(s->sock, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		side_die(s, "the other side is gone");
}

static void side_hear_driving(struct side *s, void *data, size_t len, bool drive)
{
	struct pollfd p = {.fd = s->sock, .events = POLLIN};
	uint64_t end = now_ms() + 2 * WAIT_MS;

	for (size_t got = 0; got < len;) {
		ssize_t n;

		if (drive && s->node.cq)
			node_progress(&s->node);
		if (poll(&p, 1, drive ? 0 : 100) <= 0) {
			if (now_ms() > end)
				side_die(s, "no word from the other side");
			if (drive)
				sched_yield();
			continue;
		}
		n = read(s->sock, (char *)data + got, len - got);
		if (n <= 0)
			side_die(s, "the other side is gone");
		got += (size_t)n;
	}
}

void side_hear(struct side *s, void *data, size_t len)
{
	side_hear_driving(s, data, len, true);
}

void side_hear_passive(struct side *s, void *data, size_t len)
{
	side_hear_driving(s, data, len, false);
}

void side_meet(struct side *s)
{
	pid_t me = getpid();

	side_tell(s, &me, sizeof(me));
	side_hear(s, &s->peer_pid, sizeof(s->peer_pid));
}

/* The other side has the same variables at the same places. */
bool side_can_attach(struct side *s)
{
	static char byte;
	char copy;
	const struct iovec here = {&copy, 1}, there = {&byte, 1};

	return syscall(SYS_process_vm_readv, s->peer_pid, &here, 1, &there, 1, 0) == 1;
}
