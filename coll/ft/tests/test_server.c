/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a coordinator's server does with those who are no members, or bad ones; that it
 * and a link leave nothing behind; and what is refused when either is opened.
 */
#include "config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coll/ft/tests/job.h"
#include "util/tap.h"

enum { SIGN = 7, WAIT_MS = 60000 };

/* A connection to the coordinator, as anybody may make one. */
static int caller(const struct job *job, int room)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		tap_bail("socket: %s", strerror(errno));
	if (room)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons((uint16_t)atoi(strrchr(job->coord[0].address, ':') + 1));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		tap_bail("connect: %s", strerror(errno));
	return fd;
}

/* Waits for the other end to close it; what it says until then is not looked at. */
static bool is_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char bytes[4096];
	ssize_t n = 1;

	while (n > 0 && poll(&p, 1, WAIT_MS) == 1)
		n = recv(fd, bytes, sizeof(bytes), 0);
	close(fd);
	return n == 0 || (n < 0 && errno == ECONNRESET);
}

static bool send_all(int fd, const void *bytes, size_t len)
{
	return send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* A valid message of a member. */
static size_t message(const struct job *job, enum ft_type type, uint64_t id,
		      uint8_t bytes[FT_HDR_LEN + FT_ENTRY_LEN])
{
	struct ft_entry self = {.id = id};
	const struct ft_roster own = {.count = 1, .room = 1, .entry = &self};
	struct ft_msg msg = {.type = type, .id = id};

	if (type == FT_JOIN) {
		msg.sign = SIGN;
		msg.pending_list = &own;
	} else {
		msg.term = 1;
	}
	ft_wire_put(bytes, &msg, job->secret);
	return ft_wire_len(&msg);
}

static bool refused(const struct job *job, const void *bytes, size_t len)
{
	int fd = caller(job, 0);

	return send_all(fd, bytes, len) && is_closed(fd);
}

/* A valid message and what follows. */
static void bad_messages(const struct job *job)
{
	uint8_t good[FT_HDR_LEN + FT_ENTRY_LEN], bytes[2 * sizeof(good)];
	size_t len = message(job, FT_JOIN, 99, good);
	bool all = true;

	memset(bytes, 'x', sizeof(bytes));
	tap_ok(refused(job, bytes, sizeof(bytes)), "garbage is refused");
	memcpy(bytes, good, len);
	bytes[FT_HDR_LEN - 40] ^= 1;
	tap_ok(refused(job, bytes, len), "so is another secret");
	for (size_t i = 0; i < FT_HDR_LEN; i += 8) {
		memcpy(bytes, good, len);
		bytes[i] ^= 0x80; /* of some of the fields all values make sense */
		if (i >= 8 && i < 16)
			continue;
		if (i == 32)
			continue;
		if (i == 16)
			continue;
		all &= refused(job, bytes, len);
	}
	tap_ok(all, "and a header with any field changed that has no such value");
	memset(bytes, 0, sizeof(bytes));
	len = message(job, FT_QUERY, 99, bytes);
	tap_ok(refused(job, bytes, len),
	       "a message that only coordinators say is refused");
	len = message(job, FT_JOIN, 99, bytes);
	len += message(job, FT_JOIN, 98, bytes + len);
	tap_ok(refused(job, bytes, len), "and two members over one connection");
}

/* Connections that say nothing, or not all of a message. */
static void silent_callers(const struct job *job)
{
	uint8_t bytes[FT_HDR_LEN + FT_ENTRY_LEN];
	size_t len = message(job, FT_JOIN, 97, bytes);
	int silent = caller(job, 0), half = caller(job, 0), most = caller(job, 0);
	bool good = send_all(half, bytes, 1) && send_all(most, bytes, len - 1);

	tap_ok(good && is_closed(silent) && is_closed(half) && is_closed(most),
	       "who says nothing, or half a message, is closed in time");
}

static void strangers(void)
{
	struct job *job = job_make(3);
	bool good;

	job->coord[0].attr.stranger_us = 300000;
	good = job_coord_start(job, 0, true);
	for (int i = 0; i < 3; i++)
		job_member_start(job, i, SIGN);
	good &= job_ran(job, 0x7, 3);
	job_run(job, 0x7, JOB_STEPS);
	bad_messages(job);
	silent_callers(job);
	for (int i = 0; i < 3; i++)
		good &= job->member[i].connects == 1 && !job->member[i].fenced;
	tap_ok(good && job_ran(job, 0x7, job->member[0].step + 3),
	       "the members noticed nothing");
	good = job_wait(&job->coord[0].turns, job->coord[0].turns + 2);
	tap_ok(good && job->coord[0].refused > 20 && job->coord[0].conns == 3,
	       "all of them were counted, and none is left");
	job_end(job);
}

/* More than it has room for. */
static void too_many(void)
{
	struct job *job = job_make(2);
	int fd[8];
	bool good;

	job->coord[0].attr.conns_most = 4;
	good = job_coord_start(job, 0, true);
	for (int i = 0; i < 2; i++)
		job_member_start(job, i, SIGN);
	good &= job_ran(job, 0x3, 3);
	for (int i = 0; i < 8; i++)
		fd[i] = caller(job, 0);
	for (int i = 2; i < 8; i++)
		good &= is_closed(fd[i]);
	tap_ok(good && job_ran(job, 0x3, 6), "connections are bounded in number");
	job_end(job);
	close(fd[0]);
	close(fd[1]);
}

/* One that asks all the time, and does not read the answers. */
static void slow_reader(void)
{
	struct job *job = job_make(2);
	uint8_t bytes[FT_HDR_LEN + FT_ENTRY_LEN];
	size_t len = message(job, FT_JOIN, 96, bytes);
	int64_t until = time(NULL) + WAIT_MS / 1000;
	bool good;
	int fd;

	job->coord[0].attr.out_most = 100000;
	good = job_coord_start(job, 0, false); /* asks whoever joins for his state */
	fd = caller(job, 4096);
	while (job->coord[0].slow == 0 && time(NULL) < until) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};

		if (poll(&p, 1, 10) == 1 && send(fd, bytes, len, MSG_NOSIGNAL) < 0)
			usleep(1000); /* it is closed: soon that is counted */
	}
	tap_ok(good && job->coord[0].slow == 1,
	       "who reads nothing is dropped when too much waits for him");
	tap_ok(is_closed(fd), "and closed");
	job_end(job);
}

/* ---- in one process ---------------------------------------------------------------- */

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void *serve(void *arg)
{
	char why[FT_SERVER_WHY];

	return ft_server_run(arg, why) ? arg : NULL;
}

/* Opens a server and links, runs steps, and closes all. */
static bool one_life(const char *folder, int number, bool leave)
{
	char path[300], why[FT_SERVER_WHY];
	struct ft_server_attr attr = {.listen = "127.0.0.1:0",
				      .state = path,
				      .job = "secret",
				      .first = true,
				      .size = 3,
				      .silence_us = 30000000};
	struct ft_link_attr member = {.job = "secret", .sign = SIGN};
	struct ft_link_event e = {0};
	struct ft_server *server;
	struct ft_link *link[3];
	pthread_t thread;
	void *bad = NULL;
	bool good = true;

	snprintf(path, sizeof(path), "%s/in%d", folder, number);
	if (ft_server_open(&attr, &server, why)) {
		tap_diag("%s", why);
		return false;
	}
	if (pthread_create(&thread, NULL, serve, server))
		tap_bail("no thread");
	member.coordinator = ft_server_address(server);
	for (int i = 0; i < 3; i++) {
		if (ft_link_open(&member, &link[i], why))
			tap_bail("%s", why);
		good &= ft_link_begin(link[i]) == 0 && ft_link_begin(link[i]) == -EBUSY;
	}
	for (int i = 0; i < 3; i++) {
		struct pollfd p = {.fd = ft_link_fd(link[i]), .events = POLLIN};

		good &= poll(&p, 1, WAIT_MS) == 1 && ft_link_wait(link[i], &e, -1) == 0 &&
			e.event == FT_JOINED && e.roster.count == 3;
		good &= ft_link_wait(link[i], &e, 60000000) == 0 && e.event == FT_RUN &&
			e.step == 1 && !ft_link_stopped(link[i], e.roster.epoch);
		good &= ft_link_wait(link[i], &e, 0) == -ETIMEDOUT && poll(&p, 1, 0) == 0;
		ft_link_done(link[i], e.roster.epoch, true, 0);
	}
	for (int i = 0; i < 3; i++) {
		good &= ft_link_wait(link[i], &e, 60000000) == 0 &&
			e.event == FT_COMMITTED && e.step == 1 && e.live == 3 &&
			ft_link_stopped(link[i], e.commit.epoch);
		good &= !leave || ft_link_leave(link[i]) == 0;
	}
	for (int i = 0; leave && i < 3; i++)
		good &= ft_link_wait(link[i], &e, 60000000) == 0 &&
			e.event == FT_FENCED_OUT && e.reason == FT_REASON_LEFT &&
			ft_link_begin(link[i]) == -ECONNABORTED;
	if (!leave)
		ft_server_stop(server);
	pthread_join(thread, &bad);
	for (int i = 0; i < 3; i++)
		ft_link_close(link[i]);
	ft_server_close(server);
	ft_roster_fini(&e.roster);
	return good && !bad;
}

static bool nothing_is_left(void)
{
	struct job *job = job_make(1);
	bool good = one_life(job->folder, 0, true);
	int fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");

	for (int i = 1; i < 5; i++)
		good &= one_life(job->folder, i, i % 2);
	good &= entries("/proc/self/fd") == fds;
	/* A thread that was joined may be in the list a moment longer. */
	for (int i = 0; i < WAIT_MS && entries("/proc/self/task") != threads; i++)
		usleep(1000);
	good &= entries("/proc/self/task") == threads;
	job_end(job);
	return good;
}

/* In a process of its own: tests above fork, and this one has threads. */
static void in_one_process(void)
{
	int status = 1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		exit(nothing_is_left() ? 0 : 1);
	if (waitpid(pid, &status, 0) < 0)
		tap_bail("wait: %s", strerror(errno));
	tap_ok(status == 0, "server and links in one process: no descriptor, thread or "
			    "memory is left");
}

static bool server_refuses(struct ft_server_attr attr, int want, const char *text)
{
	char why[FT_SERVER_WHY] = "";
	struct ft_server *server = NULL;
	int rc = ft_server_open(&attr, &server, why);

	ft_server_close(server);
	if (rc != want || !strstr(why, text))
		tap_diag("got %d: %s", rc, why);
	return rc == want && strstr(why, text);
}

static bool link_refuses(struct ft_link_attr attr, const char *text)
{
	char why[FT_LINK_WHY] = "";
	struct ft_link *link = NULL;
	int rc = ft_link_open(&attr, &link, why);

	if (rc == 0)
		ft_link_close(link);
	if (rc != -EINVAL || !strstr(why, text))
		tap_diag("got %d: %s", rc, why);
	return rc == -EINVAL && strstr(why, text);
}

static void bad_attributes(void)
{
	struct job *job = job_make(1);
	const struct ft_server_attr good = {.listen = "127.0.0.1:0",
					    .state = job->coord[0].state,
					    .job = "secret",
					    .first = true,
					    .size = 1};
	const struct ft_link_attr fine = {
		.coordinator = "h:1", .job = "secret", .sign = 1};
	struct ft_server_attr a = good;
	struct ft_link_attr b = fine;

	memset(a.job, 0, sizeof(a.job));
	tap_ok(server_refuses(a, -EINVAL, "secret"), "a server without a secret");
	a = good;
	a.size = 0;
	tap_ok(server_refuses(a, -EINVAL, "1 to 4096"), "for no members");
	a = good;
	a.listen = "127.0.0.1";
	tap_ok(server_refuses(a, -EINVAL, "HOST:PORT"), "at no port");
	a.listen = "192.0.2.1:9";
	tap_ok(server_refuses(a, -EADDRNOTAVAIL, "192.0.2.1:9"), "at another's address");
	a = good;
	a.state = "/dev/null/state";
	tap_ok(server_refuses(a, -ENOTDIR, "/dev/null/state"), "a file that can't be");
	tap_ok(access(job->coord[0].state, F_OK) != 0, "leaves no file behind");
	memset(b.job, 0, sizeof(b.job));
	tap_ok(link_refuses(b, "secret"), "a link without a secret");
	b = fine;
	b.sign = 0;
	tap_ok(link_refuses(b, "sign"), "that reduces nothing");
	b = fine;
	b.card_len = FT_CARD_MAX + 1;
	tap_ok(link_refuses(b, "too long"), "that is reached nowhere");
	b = fine;
	b.coordinator = "h:1,::1:5";
	tap_ok(link_refuses(b, "::1:5"), "to no place");
	b.coordinator = "h:1,";
	tap_ok(link_refuses(b, "h:1,"), "to an empty one");
	b.coordinator = "h:70000";
	tap_ok(link_refuses(b, "70000"), "to no port");
	b.coordinator = NULL;
	tap_ok(link_refuses(b, "not given"), "to nobody");
	job_end(job);
}

int main(void)
{
	strangers();
	too_many();
	slow_reader();
	in_one_process();
	bad_attributes();
	return tap_done();
}
