/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows that processes share: who finds them, who may, and what somebody else can do to
 * them. */
#include "config.h"

#include "prov/fi/av_share.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "util/tap.h"
#include "util/tap_fork.h"

static char name[64];

static void name_new(void)
{
	static int number;

	snprintf(name, sizeof(name), "test %d %d", (int)getpid(), number++);
}

static struct wire_addr addr_of(uint16_t port)
{
	struct wire_addr a = {0};

	a.in.sin_family = AF_INET;
	a.in.sin_port = htons(port);
	a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void test_both(void)
{
	struct av_share *mine, *other;
	struct wire_addr a = addr_of(7), got;
	uint32_t index = 9;

	name_new();
	tap_is_int(av_share_open(name, true, 0, &other), -FI_ENOENT, "nobody has it");
	if (av_share_open(name, false, 0, &mine) || av_share_open(name, true, 0, &other))
		tap_bail("it can't be opened");
	tap_ok(av_share_limit(other) == 0 && av_share_changes(other) == 0, "empty");
	tap_ok(av_share_add(mine, &a, &index) == 0 && index == 0, "the first row");
	tap_ok(av_share_limit(other) == 1 && av_share_changes(other) == 1 &&
		       av_share_row(other, 0, &got) == AV_SHARE_USED &&
		       wire_addr_equal(&a, &got) && av_share_handles(other)[0] == 0,
	       "is there for the other");
	tap_ok(av_share_is_read_only(other) && !av_share_is_read_only(mine), "who may");
	av_share_remove(mine, 0);
	tap_ok(av_share_row(other, 0, &got) == AV_SHARE_GONE &&
		       av_share_changes(other) == 2,
	       "removed for the other");
	av_share_close(mine);
	tap_ok(av_share_row(other, 0, &got) == AV_SHARE_GONE, "who has it keeps it");
	av_share_close(other);
	tap_is_int(av_share_open(name, true, 0, &other), -FI_ENOENT, "the name is gone");
}

#define WRITERS 4
#define EACH	3000

/* One of them makes the name; all write at once. */
static void writer(int go)
{
	struct av_share *s;
	char byte;

	if (read(go, &byte, 1) != 0 || av_share_open(name, false, WRITERS * EACH, &s))
		_exit(1);
	for (int i = 0; i < EACH; i++) {
		struct wire_addr a = addr_of((uint16_t)(i + 1)), got;
		uint32_t index;

		if (av_share_add(s, &a, &index) ||
		    av_share_row(s, index, &got) != AV_SHARE_USED ||
		    !wire_addr_equal(&a, &got))
			_exit(2);
	}
	/* Until all are there: who made the name must not go before they have it. */
	for (int i = 0; i < 10000 && av_share_changes(s) < WRITERS * EACH; i++)
		usleep(1000);
	_exit(av_share_changes(s) == WRITERS * EACH && av_share_limit(s) == WRITERS * EACH
		      ? 0
		      : 3);
}

static void test_writers(void)
{
	int go[2], bad = 0, status;

	name_new();
	if (pipe(go))
		tap_bail("no pipe");
	for (int i = 0; i < WRITERS; i++) {
		if (tap_fork() == 0) {
			close(go[1]);
			writer(go[0]);
		}
	}
	close(go[1]);
	for (int i = 0; i < WRITERS; i++) {
		wait(&status);
		bad += status != 0;
	}
	close(go[0]);
	tap_is_int(bad, 0, "writers at once: every row is one's, and all see all");
}

static void test_killed(void)
{
	struct av_share *s = NULL;
	pid_t pid;
	int ret = -FI_ENOENT;

	name_new();
	pid = tap_fork();
	if (pid == 0) {
		if (av_share_open(name, false, 0, &s))
			_exit(1);
		for (;;)
			pause();
	}
	for (int i = 0; i < 1000 && ret == -FI_ENOENT; i++) {
		ret = av_share_open(name, true, 0, &s);
		usleep(10000);
	}
	tap_is_int(ret, 0, "another process has it");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_is_int(av_share_limit(s), 0, "who has it keeps it when its maker is killed");
	av_share_close(s);
	tap_is_int(av_share_open(name, true, 0, &s), -FI_ENOENT,
		   "and nothing is left behind");
	tap_is_int(av_share_open(name, false, 0, &s), 0, "the name can be made again");
	if (tap_fork() == 0)
		_exit(0); /* a child doesn't keep it, and ends nothing */
	wait(NULL);
	{
		struct av_share *other;

		tap_is_int(av_share_open(name, true, 0, &other), 0, "after a fork");
		av_share_close(other);
	}
	av_share_close(s);
	tap_is_int(av_share_open(name, true, 0, &s), -FI_ENOENT, "closed");
}

/* ---- strangers */

/* As av_share.c lays it out. */
struct fake {
	uint32_t magic, version, room, next, changes;
};

#define FAKE_ROOM 65536u
#define FAKE_SIZE (4096 + (size_t)FAKE_ROOM * 40)

static void send_fd(int to, int fd)
{
	char byte = 1;
	struct iovec iov = {&byte, 1};
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(fd));
	}
	sendmsg(to, &msg, MSG_NOSIGNAL);
}

/* A socket that has the name. */
static int door_bind(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "weft/av/%u/%s",
			 (unsigned)geteuid(), name);
	int door = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	if (bind(door, (struct sockaddr *)&un, (socklen_t)(3 + n)))
		tap_bail("no door");
	return door;
}

/* A process that answers for the name once, with that descriptor. */
static pid_t stranger(int fd)
{
	int door = door_bind(), to;
	pid_t pid;

	if (listen(door, 1))
		tap_bail("no door");
	pid = tap_fork();
	if (pid == 0) {
		to = accept(door, NULL, NULL);
		send_fd(to, fd);
		close(to);
		_exit(0);
	}
	close(door);
	return pid;
}

/* What an opener says to that memory; it stays in *out if that is nothing. */
static int meet(int fd, struct av_share **out)
{
	pid_t pid;
	int ret;

	name_new();
	pid = stranger(fd);
	ret = av_share_open(name, true, 0, out);
	waitpid(pid, NULL, 0);
	return ret;
}

static int memory(const struct fake *f, size_t size, bool sealed, char **map)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size))
		tap_bail("no memory");
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED)
		tap_bail("no mapping");
	memcpy(*map, f, sizeof(*f));
	if (sealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		tap_bail("no seals");
	return fd;
}

static void test_strangers(void)
{
	const struct fake good = {0x77617631, 1, FAKE_ROOM, 0, 0};
	struct {
		const char *what;
		struct fake f;
		size_t size;
		bool sealed;
	} rows[] = {
		{"memory that may shrink", good, FAKE_SIZE, false},
		{"another magic", {1, 1, FAKE_ROOM, 0, 0}, FAKE_SIZE, true},
		{"another version", {0x77617631, 2, FAKE_ROOM, 0, 0}, FAKE_SIZE, true},
		{"more rows than memory",
		 {0x77617631, 1, FAKE_ROOM * 2, 0, 0},
		 FAKE_SIZE,
		 true},
		{"no power of two",
		 {0x77617631, 1, FAKE_ROOM + 1, 0, 0},
		 FAKE_SIZE,
		 true},
		{"rows without end", {0x77617631, 1, 0x80000000u, 0, 0}, FAKE_SIZE, true},
		{"no memory to speak of", good, 4096, true},
	};
	struct av_share *s;
	char *map;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fd = memory(&rows[i].f, rows[i].size, rows[i].sealed, &map);

		tap_is_int(meet(fd, &s), -FI_EOTHER, rows[i].what);
		munmap(map, rows[i].size);
		close(fd);
	}
	tap_is_int(meet(-1, &s), -FI_ETIMEDOUT, "no descriptor");
}

/* One that has the name, and leaves when somebody knocks. */
static void test_leaves(void)
{
	struct av_share *s = NULL;
	int door, to;
	pid_t pid;

	name_new();
	door = door_bind();
	if (listen(door, 1))
		tap_bail("no door");
	pid = tap_fork();
	if (pid == 0) {
		alarm(30); /* nobody may come */
		to = accept(door, NULL, NULL);
		close(door);
		close(to);
		_exit(0);
	}
	close(door);
	tap_is_int(av_share_open(name, false, 0, &s), 0,
		   "whoever had it leaves: it is made again");
	waitpid(pid, NULL, 0);
	if (s)
		av_share_close(s);
}

static void on_signal(int number)
{
	(void)number;
}

/* One that has the name, and was stopped before it listens; signals come meanwhile. */
static void test_late(void)
{
	const struct fake good = {0x77617631, 1, FAKE_ROOM, 0, 0};
	struct sigaction action = {.sa_handler = on_signal};
	struct av_share *s = NULL;
	char *map;
	int door, to, fd = memory(&good, FAKE_SIZE, true, &map);
	pid_t pid;

	name_new();
	sigaction(SIGUSR1, &action, NULL);
	door = door_bind();
	pid = tap_fork();
	if (pid == 0) {
		alarm(30); /* nobody may come */
		usleep(30000);
		if (listen(door, 1))
			_exit(1);
		to = accept(door, NULL, NULL);
		for (int i = 0; i < 10; i++) {
			usleep(2000);
			kill(getppid(), SIGUSR1);
		}
		send_fd(to, fd);
		_exit(0);
	}
	close(door);
	tap_is_int(av_share_open(name, false, 0, &s), 0, "whoever has it answers late");
	tap_ok(s && av_share_limit(s) == 0, "and is waited for");
	waitpid(pid, NULL, 0);
	if (s)
		av_share_close(s);
	munmap(map, FAKE_SIZE);
	close(fd);
}

static void test_rows_of_a_stranger(void)
{
	const struct fake good = {0x77617631, 1, FAKE_ROOM, 0xffffffffu, 1};
	unsigned int seed = (unsigned int)getpid(), used = 0;
	struct wire_addr a;
	struct av_share *s;
	char *map;
	int fd = memory(&good, FAKE_SIZE, true, &map);

	for (size_t i = 4096; i < FAKE_SIZE; i++)
		map[i] = (char)rand_r(&seed);
	for (size_t i = 0; i < FAKE_ROOM; i++) { /* families that exist are rare */
		char *row = map + 4096 + 8 * (size_t)FAKE_ROOM + 32 * i;

		memset(row, 0, 8);
		row[0] = (char)(i % 4);
		row[4] = (char)(i % 7 == 0 ? AF_INET : i % 7 == 1 ? AF_INET6 : 9);
		row[6] = (char)(i % 3);
	}
	tap_diag("seed %d", (int)getpid());
	if (meet(fd, &s))
		tap_bail("it can't be opened");
	tap_is_int(av_share_limit(s), FAKE_ROOM, "no more rows than there is memory");
	*(uint32_t *)(map + 8) = 0x80000000u; /* too late */
	for (uint32_t i = 0; i < av_share_limit(s); i++) {
		enum av_share_state state = av_share_row(s, i, &a);

		if (state != AV_SHARE_USED)
			continue;
		used++;
		if (a.sa.sa_family != AF_INET && a.sa.sa_family != AF_INET6)
			used = FAKE_ROOM;
	}
	tap_ok(used > 0 && used < FAKE_ROOM / 3, "only addresses are believed (%u)",
	       used);
	av_share_close(s);
	munmap(map, FAKE_SIZE);
	close(fd);
}

int main(void)
{
	test_both();
	test_writers();
	test_killed();
	test_strangers();
	test_leaves();
	test_late();
	test_rows_of_a_stranger();
	return tap_done();
}
