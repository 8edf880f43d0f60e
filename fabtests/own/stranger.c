/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strangers at the door: role 1 finds the abstract socket of role 0's endpoint in
 * /proc/net/unix, as anybody could, and sends it what no peer would. After each kind of
 * trouble a new, honest endpoint must be served as if nothing had happened.
 *
 * What an honest greeting looks like is not known here: one is taken from the endpoint
 * itself, by a false door that it is made to knock at, and then sent back changed.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FALSE_PORT 19778
#define FDS_MOST   8
#define NOBODY	   65534

static const struct want want_plain = {.tx_op_flags = FI_DELIVERY_COMPLETE};

/* ---- role 0: serves whoever comes, until it is told how many messages there were */

enum word_kind { WORD_KNOCK, WORD_FDS, WORD_END };

struct word {
	enum word_kind kind;
	uint32_t count;
};

static int fds_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Goes to the false door; whether an end comes of that is none of this test's concern. */
static void knock(struct side *s)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)s->node.name;
	struct sockaddr_in to = *sin;
	static uint8_t byte;
	fi_addr_t addr;

	to.sin_port = htons(FALSE_PORT);
	if (fi_av_insert(s->node.av, &to, 1, &addr, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	side_must(s, fi_send(s->node.ep, &byte, 1, NULL, addr, &byte), "fi_send");
}

static void served_take(struct side *s, uint32_t *got, uint32_t in[2])
{
	struct done d;

	while (node_next(s, &d, 0)) {
		if (d.e.op_context != in)
			continue; /* the knock's */
		side_check(s, !d.err, "a receive ended in error %d", d.err);
		side_check_u64(s, in[0], 0x600d, "a message from somebody honest");
		(*got)++;
		side_must(s, fi_recv(s->node.ep, in, 8, NULL, FI_ADDR_UNSPEC, in),
			  "fi_recv");
	}
}

static void serve(struct side *s)
{
	uint32_t got = 0, in[2];
	struct word w = {0};

	side_tell(s, s->node.name, sizeof(s->node.name));
	side_must(s, fi_recv(s->node.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), "fi_recv");
	while (w.kind != WORD_END) {
		struct pollfd p = {.fd = s->sock, .events = POLLIN};

		served_take(s, &got, in);
		if (poll(&p, 1, 1) != 1)
			continue;
		side_hear(s, &w, sizeof(w));
		if (w.kind == WORD_KNOCK)
			knock(s);
		if (w.kind == WORD_FDS)
			w.count = (uint32_t)fds_count();
		if (w.kind == WORD_FDS)
			side_tell(s, &w, sizeof(w));
	}
	served_take(s, &got, in);
	side_check_u64(s, got, w.count, "messages of honest peers");
	node_close(s, &s->node);
}

static void served_run(struct side *s)
{
	node_open_alone(s, &s->node, &want_plain);
	serve(s);
}

/* ---- role 1: honest */

struct visit {
	char name[64]; /* of role 0's endpoint */
	struct sockaddr_un door;
	socklen_t door_len;
	int type; /* of the door's socket */
	uint32_t pings;
};

/* A whole new endpoint, which sends one message and hears that it was delivered. */
static void ping(struct side *s, struct visit *v, const char *after)
{
	const uint32_t out[2] = {0x600d, 0};
	struct done d;

	node_open_alone(s, &s->node, &want_plain);
	if (fi_av_insert(s->node.av, v->name, 1, &s->node.peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	while (node_again(s, fi_send(s->node.ep, out, 8, NULL, s->node.peer, &d),
			  "fi_send"))
		;
	if (!node_next(s, &d, WAIT_MS) || d.err)
		side_die(s, "an honest peer is not served after %s: %s", after,
			 d.err ? fi_strerror(d.err) : "no end");
	v->pings++;
	node_close(s, &s->node);
}

static uint32_t served_fds(struct side *s)
{
	struct word w = {.kind = WORD_FDS};

	side_tell(s, &w, sizeof(w));
	side_hear(s, &w, sizeof(w));
	return w.count;
}

/* The number when no more than `fds` are open any more, or when they should not be. */
static uint32_t fds_settle(struct side *s, uint32_t fds)
{
	const uint64_t end = now_ms() + WAIT_MS;
	uint32_t now = served_fds(s);

	while (now > fds && now_ms() < end) {
		sleep_ms(20);
		now = served_fds(s);
	}
	return now;
}

/* The door: an abstract socket whose name begins with "weft" and has the port.
 */
static void door_find(struct side *s, struct visit *v)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)v->name;
	char line[512], port[16], path[108];
	FILE *f = fopen("/proc/self/net/unix", "re");
	unsigned type;

	snprintf(port, sizeof(port), ":%u", ntohs(sin->sin_port));
	v->door.sun_family = AF_UNIX;
	while (f && !v->door_len && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %*s %*s %*s %x %*s %*s @%107s", &type, path) != 2 ||
		    strncmp(path, "weft", 4) != 0 || !strstr(path, port))
			continue;
		memcpy(v->door.sun_path + 1, path, strlen(path));
		v->door_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					  strlen(path));
		v->type = (int)type;
	}
	if (f)
		fclose(f);
	if (!v->door_len)
		side_die(s, "no door with %s in /proc/net/unix", port);
}

static void visit_begin(struct side *s, struct visit *v)
{
	side_hear(s, v->name, sizeof(v->name));
	door_find(s, v);
	ping(s, v, "nothing");
}

static void visit_end(struct side *s, struct visit *v)
{
	side_tell(s, &(struct word){.kind = WORD_END, .count = v->pings},
		  sizeof(struct word));
}

/* ---- role 1: otherwise */

static int door_connect(struct side *s, const struct visit *v)
{
	struct timeval soon = {.tv_sec = 2};
	int fd = socket(AF_UNIX, v->type | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	if (fd < 0 || connect(fd, (const struct sockaddr *)&v->door, v->door_len) < 0) {
		/* To turn a stranger away at once is fine too. */
		side_check(s, errno == EAGAIN || errno == ECONNREFUSED, "connect: %s",
			   strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* Sends bytes and descriptors on a new connection, and waits for what the door makes of
 * them: an answer or the end. */
static void door_send(struct side *s, const struct visit *v, const void *bytes,
		      size_t len, const int *fds, int fd_count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * 32)];
	} control = {0};
	struct iovec iov = {(void *)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct pollfd p = {.fd = door_connect(s, v), .events = POLLIN};
	char answer[256];

	if (p.fd < 0)
		return;
	if (fd_count) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)fd_count);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)fd_count);
		memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * (size_t)fd_count);
	}
	sendmsg(p.fd, &msg, MSG_NOSIGNAL);
	if (poll(&p, 1, 50) == 1)
		recv(p.fd, answer, sizeof(answer), MSG_DONTWAIT);
	close(p.fd);
}

static void garbage_run(struct side *s)
{
	uint8_t bytes[8192];
	struct visit v = {0};

	visit_begin(s, &v);
	srand(1);
	for (size_t len = 0; len <= sizeof(bytes); len = len < 4 ? len + 1 : len * 2) {
		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)rand();
		door_send(s, &v, bytes, len, NULL, 0);
		memset(bytes, 0, len);
		door_send(s, &v, bytes, len, NULL, 0);
		memset(bytes, 0xff, len);
		door_send(s, &v, bytes, len, NULL, 0);
	}
	ping(s, &v, "garbage");
	visit_end(s, &v);
}

/* Connections without a word: 200 at once, and some half closed. */
static void silent_run(struct side *s)
{
	uint32_t fds, later;
	struct visit v = {0};
	int open[200];

	visit_begin(s, &v);
	fds = served_fds(s);
	for (int i = 0; i < 200; i++) {
		open[i] = door_connect(s, &v);
		if (open[i] >= 0 && i % 3 == 0)
			shutdown(open[i], i % 2 ? SHUT_WR : SHUT_RD);
		if (i % 50 == 49)
			ping(s, &v, "silent connections");
	}
	for (int i = 0; i < 200; i++) {
		if (open[i] >= 0)
			close(open[i]);
	}
	ping(s, &v, "silent connections that left");
	later = fds_settle(s, fds);
	side_check(s, later <= fds, "%u descriptors before, %u after", fds, later);
	visit_end(s, &v);
}

/* ---- a greeting, taken and changed */

struct greeting {
	uint8_t bytes[4096];
	size_t len;
	int fds[FDS_MOST];
	int fd_count;
};

static int false_door(struct side *s, const struct visit *v)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)v->name;
	char port[16], path[108] = {0}, *at;
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, v->type | SOCK_CLOEXEC, 0), len;

	memcpy(path, v->door.sun_path + 1,
	       v->door_len - offsetof(struct sockaddr_un, sun_path) - 1);
	snprintf(port, sizeof(port), ":%u", ntohs(sin->sin_port));
	at = strstr(path, port);
	len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%.*s:%u%s",
		       (int)(at - path), path, FALSE_PORT, at + strlen(port));
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&un,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) <
		    0 ||
	    listen(fd, 8) < 0)
		side_die(s, "no false door: %s", strerror(errno));
	return fd;
}

static void greeting_take(struct side *s, const struct visit *v, struct greeting *g)
{
	struct pollfd p = {.fd = false_door(s, v), .events = POLLIN};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * FDS_MOST)];
	} control;
	struct iovec iov = {g->bytes, sizeof(g->bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	side_tell(s, &(struct word){.kind = WORD_KNOCK}, sizeof(struct word));
	if (poll(&p, 1, WAIT_MS) != 1 || (fd = accept(p.fd, NULL, NULL)) < 0)
		side_die(s, "nobody knocks at the false door");
	close(p.fd);
	p.fd = fd;
	if (poll(&p, 1, WAIT_MS) != 1 || (n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC)) <= 0)
		side_die(s, "no greeting at the false door");
	g->len = (size_t)n;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		g->fd_count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(g->fds, CMSG_DATA(c), sizeof(int) * (size_t)g->fd_count);
	}
	/* A dialler must bear an answer of nonsense too. */
	send(fd, "nonsense", 8, MSG_NOSIGNAL);
	close(fd);
}

static void greeting_run(struct side *s)
{
	struct greeting g = {0};
	struct visit v = {0};

	visit_begin(s, &v);
	greeting_take(s, &v, &g);
	ping(s, &v, "an answer of nonsense");
	for (size_t len = 0; len < g.len; len++)
		door_send(s, &v, g.bytes, len, g.fds, g.fd_count);
	door_send(s, &v, g.bytes, g.len + 1, g.fds, g.fd_count);
	ping(s, &v, "greetings of a wrong length");
	for (size_t i = 0; i < g.len; i++) {
		static const uint8_t flips[] = {0x01, 0x80, 0xff};

		for (size_t k = 0; k < ARRAY_LEN(flips); k++) {
			g.bytes[i] ^= flips[k];
			door_send(s, &v, g.bytes, g.len, g.fds, g.fd_count);
			g.bytes[i] ^= flips[k];
		}
	}
	ping(s, &v, "greetings with a wrong byte");
	/* Word for word, but from somebody else. */
	for (int i = 0; i < 3; i++)
		door_send(s, &v, g.bytes, g.len, g.fds, g.fd_count);
	ping(s, &v, "a greeting repeated");
	visit_end(s, &v);
}

/* Descriptors that are no memory, or memory that its owner could shrink. */
static int wrong_fd(int kind, int like)
{
	off_t size = lseek(like, 0, SEEK_END);
	int fd, pair[2];

	switch (kind) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		return open("/", O_PATH | O_CLOEXEC);
	case 2:
		return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	case 3:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			return -1;
		close(pair[1]);
		return pair[0];
	case 4:
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -1;
		close(pair[1]);
		return pair[0];
	case 5: /* empty */
		return memfd_create("wrong", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	default: /* right in size, not sealed: truncated below */
		fd = memfd_create("wrong", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (ftruncate(fd, size > 0 ? size : 1 << 20) < 0)
			perror("# ftruncate");
		return fd;
	}
}

static void descriptors_run(struct side *s)
{
	struct greeting g = {0};
	struct visit v = {0};
	uint32_t fds, later;
	int many[32];

	visit_begin(s, &v);
	greeting_take(s, &v, &g);
	ping(s, &v, "an answer of nonsense");
	fds = served_fds(s);
	side_check(s, g.fd_count > 0, "a greeting without descriptors");
	for (int i = 0; i < g.fd_count; i++) {
		for (int kind = 0; kind <= 6; kind++) {
			int right = g.fds[i];

			g.fds[i] = wrong_fd(kind, right);
			door_send(s, &v, g.bytes, g.len, g.fds, g.fd_count);
			if (kind == 6 && ftruncate(g.fds[i], 0) < 0)
				perror("# ftruncate");
			close(g.fds[i]);
			g.fds[i] = right;
		}
		ping(s, &v, "a wrong descriptor");
	}
	for (int n = 0; n < g.fd_count; n++)
		door_send(s, &v, g.bytes, g.len, g.fds, n);
	for (int i = 0; i < 32; i++)
		many[i] = g.fds[i % g.fd_count];
	door_send(s, &v, g.bytes, g.len, many, 32);
	ping(s, &v, "a wrong number of descriptors");
	later = fds_settle(s, fds);
	side_check(s, later <= fds, "%u descriptors before, %u after", fds, later);
	visit_end(s, &v);
}

/* ---- other users */

static void become_nobody(struct side *s)
{
	struct fi_info *info = NULL, *hints = node_hints(&want_plain);

	/* Loads the provider, which that user might not be able to read. */
	fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		side_die(s, "setresuid: %s", strerror(errno));
}

static void other_user_run(struct side *s)
{
	struct visit v = {0};
	struct done d;
	int status;
	pid_t pid;

	side_hear(s, v.name, sizeof(v.name));
	pid = fork();
	if (pid == 0) {
		become_nobody(s);
		node_open_alone(s, &s->node, &want_plain);
		side_check(s,
			   fi_av_insert(s->node.av, v.name, 1, &s->node.peer, 0, NULL) ==
				   1,
			   "fi_av_insert");
		side_must(s, fi_send(s->node.ep, "12345678", 8, NULL, s->node.peer, &d),
			  "fi_send");
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "another user's send has no end");
		side_check(s,
			   d.err == FI_EACCES || d.err == FI_EHOSTUNREACH ||
				   d.err == FI_ECONNREFUSED,
			   "another user's send: %d (%s)", d.err, fi_strerror(d.err));
		node_close(s, &s->node);
		fflush(stdout);
		_exit(s->failed ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	side_check(s, status == 0, "status 0x%x of the other user's process", status);
	ping(s, &v, "another user");
	visit_end(s, &v);
}

static void served_as_nobody(struct side *s)
{
	become_nobody(s);
	served_run(s);
}

/* The door lets root in; root itself may or may not trust another user's door, which
 * could be anybody's, but hears so at once. */
static void root_run(struct side *s)
{
	struct visit v = {0};
	struct done d;

	side_hear(s, v.name, sizeof(v.name));
	node_open_alone(s, &s->node, &want_plain);
	if (fi_av_insert(s->node.av, v.name, 1, &s->node.peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	while (node_again(
		s, fi_send(s->node.ep, (uint32_t[2]){0x600d}, 8, NULL, s->node.peer, &d),
		"fi_send"))
		;
	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "root's send has no end");
	side_check(s, d.err == 0 || d.err == FI_EACCES, "root's send: %d (%s)", d.err,
		   fi_strerror(d.err));
	v.pings += d.err == 0;
	node_close(s, &s->node);
	visit_end(s, &v);
}

static struct test_case cases[] = {
	{.name = "garbage", .run = {served_run, garbage_run}, .needs_weft = true},
	{.name = "200 silent connections",
	 .run = {served_run, silent_run},
	 .needs_weft = true},
	{.name = "greetings cut or changed",
	 .run = {served_run, greeting_run},
	 .needs_weft = true},
	{.name = "wrong descriptors",
	 .run = {served_run, descriptors_run},
	 .needs_weft = true},
	{.name = "another user is refused",
	 .run = {served_run, other_user_run},
	 .needs_weft = true},
	{.name = "root is answered",
	 .run = {served_as_nobody, root_run},
	 .needs_weft = true},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	for (size_t i = 4; geteuid() != 0 && i < ARRAY_LEN(cases); i++)
		cases[i].skip = "needs root";
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
