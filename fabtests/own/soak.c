/* SPDX-License-Identifier: BSD-2-Clause */
/* What the long tests share. See soak.h. */
#include "config.h"

#include "fabtests/own/soak.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/tap.h"
#include "util/tap_fork.h"

static uint64_t option(int argc, char **argv, const char *name, uint64_t value)
{
	for (int i = 1; i + 1 < argc; i++) {
		char *end;

		if (strcmp(argv[i], name) != 0)
			continue;
		value = strtoull(argv[i + 1], &end, 0);
		if (*end || end == argv[i + 1])
			tap_bail("%s %s: a number is wanted", name, argv[i + 1]);
	}
	return value;
}

void soak_init(struct soak *k, int argc, char **argv, int count)
{
	uint64_t seed = 1;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		tap_diag("no random seed here");
	seed &= 0xffffffff; /* short to type */
	k->count = (int)option(argc, argv, "--count", (uint64_t)count);
	k->seed = option(argc, argv, "--seed", seed);
	k->state = k->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	if (k->count < 1)
		tap_bail("--count: at least 1");
	tap_diag("--count %d --seed %llu", k->count, (unsigned long long)k->seed);
}

uint32_t soak_random(struct soak *k, uint32_t below)
{
	uint64_t z = k->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static long lines_of(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = 0;

	for (int c; f && (c = fgetc(f)) != EOF;)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* Without . and .. */
static long entries_of(const char *path)
{
	DIR *dir = opendir(path);
	long n = -2;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static bool is_field(const char *line, const char *name)
{
	return strncmp(line, name, strlen(name)) == 0;
}

/* Of every mapping what isn't a file's, page by page as it is: the counts in "status" are
 * off by up to 32 pages for every processor of the machine. Without the pages of files,
 * which the system brings and takes as it likes. */
static long pages_kb(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	bool shared = false;
	char line[512];
	long kb = 0;

	if (!f)
		tap_bail("/proc/self/smaps: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		/* A mapping's first line begins with its addresses, others with a name.
		 */
		if (line[0] < 'A' || line[0] > 'Z')
			shared = strstr(line, " /memfd:") || strstr(line, " /dev/shm/") ||
				 strstr(line, " /dev/zero");
		else if (is_field(line, shared ? "Rss:" : "Anonymous:"))
			kb += strtol(strchr(line, ':') + 1, NULL, 10);
	}
	fclose(f);
	return kb;
}

void soak_measure(struct soak_use *use)
{
	struct mallinfo2 heap = mallinfo2();

	use->heap = (long)(heap.uordblks + heap.hblkhd);
	/* How much malloc keeps of what was freed is chance: one piece behind it is
	 * enough.
	 */
	malloc_trim(0);
	use->held_kb = pages_kb();
	use->maps = lines_of("/proc/self/maps");
	use->fds = entries_of("/proc/self/fd") - 1; /* the one that looks */
	use->threads = entries_of("/proc/self/task");
}

static long field_of(const struct soak_use *use, size_t offset)
{
	long value;

	memcpy(&value, (const char *)use + offset, sizeof(value));
	return value;
}

static int long_compare(const void *a, const void *b)
{
	long x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

static long growth_of(const struct soak_use *use, int steps, size_t offset)
{
	long step[SOAK_MEASURES] = {0};

	for (int i = 0; i < steps; i++)
		step[i] = field_of(&use[i + 1], offset) - field_of(&use[i], offset);
	qsort(step, (size_t)steps, sizeof(step[0]), long_compare);
	return step[(steps - 1) / 2] * steps;
}

struct soak_use soak_growth(const struct soak_use *use, int count)
{
	int steps = count - 1;

	if (steps < 1)
		return (struct soak_use){0};
	if (count > SOAK_MEASURES)
		tap_bail("%d measures are more than %d", count, SOAK_MEASURES);
	return (struct soak_use){
		.held_kb = growth_of(use, steps, offsetof(struct soak_use, held_kb)),
		.heap = growth_of(use, steps, offsetof(struct soak_use, heap)),
		.maps = growth_of(use, steps, offsetof(struct soak_use, maps)),
	};
}

bool soak_is_exact(const struct soak_use *use)
{
	return use->heap != 0; /* not the C library's malloc */
}

pid_t soak_fork(struct side *s, int *sock)
{
	pid_t parent = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		tap_bail("socketpair: %s", strerror(errno));
	pid = tap_fork();
	if (pid < 0)
		tap_bail("fork: %s", strerror(errno));
	if (pid > 0) {
		close(pair[1]);
		*sock = pair[0];
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(pair[0]);
	*s = (struct side){.role = 1, .sock = pair[1], .peer_pid = parent};
	return 0;
}

static bool leaks_off;

/* Asked by LeakSanitizer, if there is one, before it looks. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return leaks_off;
}

void soak_leaks_off(void)
{
	leaks_off = true;
}

void soak_post_wait(struct side *s, uint64_t end, const char *call)
{
	if (now_ms() > end)
		side_die(s, "%s: -FI_EAGAIN until the deadline", call);
	node_progress(&s->node);
	sched_yield();
}
