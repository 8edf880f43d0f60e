/* SPDX-License-Identifier: BSD-2-Clause */
/* Doors: addresses, collisions, strangers, other users, no descriptors left. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_door.h"
#include "prov/wire/shm/shm_format.h"
#include "prov/wire/shm/shm_helper.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"
#include "util/tap_fork.h"

#define NOBODY 65534

static struct wire_addr v4(const char *host, uint16_t port)
{
	struct wire_addr a;

	memset(&a, 0, sizeof(a));
	a.in.sin_family = AF_INET;
	a.in.sin_port = htons(port);
	inet_pton(AF_INET, host, &a.in.sin_addr);
	return a;
}

static void test_collision(void)
{
	struct wire_addr want = v4("127.0.0.1", 0), far = v4("203.0.113.77", 4000);
	struct shm_door a, b;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	tap_is_int(shm_door_open(&a, &want, false, false), 0, "a door with any port");
	tap_ok(a.addr.in.sin_port != 0, "the port is filled in");
	tap_is_int(shm_door_open(&b, &a.addr, false, false), -FI_EADDRINUSE, "not twice");
	tap_ok(bind(fd, &a.addr.sa, sizeof(a.addr.in)) < 0 && errno == EADDRINUSE,
	       "nor by anybody else");
	tap_is_int(shm_door_open(&b, &far, false, false), -FI_EADDRNOTAVAIL,
		   "an address that isn't ours");
	want = a.addr;
	shm_door_close(&a);
	tap_is_int(shm_door_open(&b, &want, false, false), 0,
		   "again at once after a close");
	shm_door_close(&b);
	close(fd);
}

static void test_any(void)
{
	struct wire_addr want = v4("0.0.0.0", 0), to;
	char text[WIRE_ADDR_TEXT_MAX];
	struct shm_door door;
	int fd;

	tap_is_int(shm_door_open(&door, &want, true, false), 0, "a door without a host");
	tap_diag("%s", wire_addr_text(&door.addr, text));
	tap_ok(door.addr.in.sin_addr.s_addr != htonl(INADDR_ANY), "a host is found");
	tap_is_int(shm_door_knock(&door.addr, &fd), 0, "it answers by its address");
	close(fd);
	to = v4("127.0.0.1", ntohs(door.addr.in.sin_port));
	tap_is_int(shm_door_knock(&to, &fd), 0, "by another local address too");
	close(fd);
	to = v4("127.0.0.77", ntohs(door.addr.in.sin_port));
	tap_is_int(shm_door_knock(&to, &fd), 0, "and by any of them");
	close(fd);
	to = v4("203.0.113.77", ntohs(door.addr.in.sin_port));
	tap_is_int(shm_door_knock(&to, &fd), -FI_EHOSTUNREACH, "not by a foreign one");
	shm_door_close(&door);
	to = v4("127.0.0.1", ntohs(door.addr.in.sin_port));
	tap_is_int(shm_door_knock(&to, &fd), -FI_ECONNREFUSED, "nobody there any more");
}

static void test_v6(void)
{
	struct wire_addr want;
	char text[WIRE_ADDR_TEXT_MAX];
	struct shm_door door;
	int fd, ret;

	memset(&want, 0, sizeof(want));
	want.in6.sin6_family = AF_INET6;
	want.in6.sin6_addr = in6addr_loopback;
	ret = shm_door_open(&door, &want, false, false);
	if (ret) {
		tap_skip(3, "no IPv6 here (%d)", ret);
		return;
	}
	tap_diag("%s", wire_addr_text(&door.addr, text));
	tap_is_int(shm_door_knock(&door.addr, &fd), 0, "an IPv6 door answers");
	close(fd);
	shm_door_close(&door);
	want.in6.sin6_addr = in6addr_any;
	tap_is_int(shm_door_open(&door, &want, true, false), 0, "without a host");
	tap_ok(!IN6_IS_ADDR_UNSPECIFIED(&door.addr.in6.sin6_addr), "one is found");
	shm_door_close(&door);
}

/* The port belongs to somebody else in this process, who listens at it. */
static void test_held(void)
{
	struct wire_addr want;
	struct shm_door door;
	socklen_t len;
	int fd, to;

	memset(&want, 0, sizeof(want));
	want.in.sin_family = AF_INET;
	want.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	tap_is_int(shm_door_open(&door, &want, false, true), -FI_EADDRNOTAVAIL,
		   "a held port must be said");
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	len = sizeof(want.in);
	if (fd < 0 || bind(fd, &want.sa, len) || listen(fd, 1) ||
	    getsockname(fd, &want.sa, &len))
		tap_bail("no port");
	tap_is_int(shm_door_open(&door, &want, false, false), -FI_EADDRINUSE,
		   "a port that somebody listens at");
	tap_is_int(shm_door_open(&door, &want, false, true), 0, "one that is held");
	tap_is_int(shm_door_knock(&door.addr, &to), 0, "the door answers");
	close(to);
	shm_door_close(&door);
	close(fd);
}

/* ---- strangers
 * ------------------------------------------------------------------------- */

static int knock(struct rig *rig)
{
	int fd;

	if (shm_door_knock(&wire_ep_base(rig->ep)->addr, &fd))
		tap_bail("knock");
	return fd;
}

static bool closed_within(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t end = rig_now() + (uint64_t)ms * 1000000;
	char junk[256];

	while (rig_now() < end) {
		if (poll(&p, 1, 100) <= 0)
			continue;
		if (recv(fd, junk, sizeof(junk), MSG_DONTWAIT) <= 0)
			return true;
	}
	return false;
}

/* A hello that never comes is waited for so long. What goes before that goes for another
 * reason; what a loaded machine shows later says nothing. */
#define HELLO_NS (SHM_HELLO_TIMEOUT_NS - UINT64_C(100000000))

/* 40 callers that say nothing, more than there is room for. True: the oldest went at
 * once, to make room. */
static bool silent_try(struct rig *rig, int silent[40])
{
	uint64_t begin = rig_now();

	for (int i = 0; i < 40; i++)
		silent[i] = knock(rig);
	return closed_within(silent[0], 1000) && rig_now() - begin < HELLO_NS;
}

static void silent_hang_up(const int silent[40])
{
	for (int i = 0; i < 40; i++)
		close(silent[i]);
}

/* True: it was shown out at once. */
static bool loud_try(struct rig *rig, const void *words, size_t len)
{
	uint64_t begin = rig_now();
	int loud = knock(rig);
	bool closed;

	(void)!send(loud, words, len, MSG_NOSIGNAL);
	closed = closed_within(loud, 1000) && rig_now() - begin < HELLO_NS;
	close(loud);
	return closed;
}

static bool loud_closed(struct rig *rig, const void *words, size_t len)
{
	for (int i = 0; i < 10; i++)
		if (loud_try(rig, words, len))
			return true;
	return false;
}

static void test_strangers(void)
{
	int silent[40], closed = 0;
	struct shm_hello hello;
	bool oldest = false;
	struct rig rig;

	rig_open(&rig, false);
	for (int i = 0; i < 10 && !oldest; i++) {
		if (i > 0)
			silent_hang_up(silent);
		oldest = silent_try(&rig, silent);
	}
	tap_ok(oldest, "of too many silent ones the oldest go");
	for (int i = 0; i < 20; i++) {
		char junk[300];

		memset(junk, i * 37, sizeof(junk));
		closed += loud_closed(&rig, junk, (size_t)(1 + i * 14));
	}
	tap_is_int(closed, 20, "garbage is shown out at once");
	shm_hello_init(&hello, SHM_HELLO, &wire_ep_base(rig.ep)->addr);
	hello.incarnation = 1;
	tap_ok(loud_closed(&rig, &hello, sizeof(hello)),
	       "a hello without its memory too");
	tap_is_int(rig_dial(&rig, &wire_ep_base(rig.ep)->addr), 0,
		   "meanwhile others get in");
	closed = 0;
	for (int i = 0; i < 40; i++)
		closed += closed_within(silent[i], RIG_WAIT_MS);
	tap_is_int(closed, 40, "the others when their time is up");
	silent_hang_up(silent);
	rig_close(&rig);
}

/* Without descriptors an endpoint sends callers away, and recovers. */
static void test_no_descriptors(void)
{
	struct rlimit old, none;
	struct rig rig;
	int fd, last = 0, status = 0, go[2];
	char byte = 0;
	pid_t pid;

	if (pipe(go))
		tap_bail("pipe");
	rig_open(&rig, false);
	pid = tap_fork();
	if (pid == 0) {
		/* Not before there is none left. */
		if (read(go[0], &byte, 1) != 1)
			_exit(2);
		fd = knock(&rig);
		_exit(closed_within(fd, 30000) ? 0 : 1);
	}
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 64;
	setrlimit(RLIMIT_NOFILE, &none);
	while ((fd = dup(1)) >= 0)
		last = fd;
	if (write(go[1], &byte, 1) != 1)
		tap_bail("write");
	waitpid(pid, &status, 0);
	close(go[0]);
	close(go[1]);
	setrlimit(RLIMIT_NOFILE, &old);
	/* The gaps below are filled as well; only these are in a row. */
	for (int i = last; i > 32; i--)
		close(i);
	tap_is_int(status, 0, "no descriptor left: callers are sent away");
	tap_is_int(rig_dial(&rig, &wire_ep_base(rig.ep)->addr), 0,
		   "and let in when there are some again");
	rig_close(&rig);
}

/* Opening says what it ran out of. */
static void test_open_refused(void)
{
	struct wire_ep_attr attr = {.incarnation = 1};
	struct wire_events events = {0};
	struct wire_ep *ep;
	struct rlimit old, few;
	int good = 0, bad = 0, first;

	attr.addr = v4("127.0.0.1", 0);
	attr.events = &events;
	if (mem_keytab_open(64, &attr.keys))
		tap_bail("keys");
	first = open("/dev/null", O_RDONLY);
	close(first);
	getrlimit(RLIMIT_NOFILE, &old);
	few = old;
	/* One descriptor more each time: every place of failure in turn. */
	for (int n = 0; n < 20; n++) {
		int ret;

		few.rlim_cur = (rlim_t)(first + n);
		setrlimit(RLIMIT_NOFILE, &few);
		ret = shm_wire_ops.ep_open(&attr, &ep);
		setrlimit(RLIMIT_NOFILE, &old);
		if (ret == 0) {
			shm_wire_ops.ep_close(ep);
			good++;
		} else {
			bad += ret != -FI_EMFILE;
		}
	}
	tap_ok(good > 5 && good < 20, "with enough descriptors it opens");
	tap_is_int(bad, 0, "with too few it says so");
	tap_is_int(open("/dev/null", O_RDONLY), first, "and leaves none behind");
	close(first);
	mem_keytab_close(attr.keys);
}

/* ---- other users
 * ----------------------------------------------------------------------- */

static void test_other_user(void)
{
	struct server srv;
	int status = -1;
	pid_t pid;

	if (geteuid() != 0) {
		tap_skip(1, "only root can be somebody else");
		return;
	}
	server_start(&srv, false);
	pid = tap_fork();
	if (pid == 0) {
		struct rig rig;
		int ret;

		alarm(280);
		if (setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			_exit(98);
		rig_open(&rig, false);
		ret = rig_dial(&rig, &srv.addr);
		rig_close(&rig);
		_exit(-ret);
	}
	waitpid(pid, &status, 0);
	tap_is_int(WEXITSTATUS(status), FI_EACCES, "another user's process isn't let in");
	kill(srv.pid, SIGKILL);
	server_wait(&srv);
}

static void be_undumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0);
}

static void be_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 1);
}

enum forbidden { FORBIDDEN, FORBIDDEN_LATER, FORBIDDEN_INSISTED };

/* As an ordinary user, in a process of its own: a peer that forbids attach from the
 * beginning, or while the link lives. */
static int forbidden_run(enum forbidden how)
{
	bool later = how == FORBIDDEN_LATER;
	uint8_t data[5000], back[5000];
	struct server_packet where;
	struct server srv;
	struct rig rig;

	if (geteuid() == 0 &&
	    (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		return 98;
	server_prelude = later ? be_dumpable : be_undumpable;
	server_start(&srv, false);
	rig_open(&rig, false);
	if (how == FORBIDDEN_INSISTED) {
		/* Only our side insists: the server was started with the default. */
		rig_close(&rig);
		setenv("FI_WEFT_CMA", "1", 1);
		prov_params_init();
		rig_open(&rig, false);
		return rig_dial(&rig, &srv.addr) == -FI_EACCES ? 0 : 5;
	}
	if (rig_dial(&rig, &srv.addr))
		return 1;
	server_ask(&rig, rig.dialled, SERVER_REGISTER, sizeof(data),
		   FI_REMOTE_READ | FI_REMOTE_WRITE);
	memcpy(&where, rig.last, sizeof(where));
	if (later) {
		/* Where attach is refused to everybody there is nothing to take back. */
		if (!wire_link_base(rig.dialled)->caps.raw)
			return 77;
		server_ask(&rig, rig.dialled, SERVER_FORBID, 0, 0);
	}
	memset(data, 0x5a, sizeof(data));
	if (rig_put(&rig, rig.dialled, data, sizeof(data), where.arg, where.arg2) ||
	    rig_get(&rig, rig.dialled, back, sizeof(back), where.arg, where.arg2))
		return 3;
	if (wire_link_base(rig.dialled)->caps.raw)
		return 2;
	if (memcmp(data, back, sizeof(data)) != 0)
		return 4;
	kill(srv.pid, SIGKILL);
	server_wait(&srv);
	rig_close(&rig);
	return 0;
}

static void test_D6_forbidden(enum forbidden how)
{
	static const char *const what[] = {
		[FORBIDDEN] = "a peer that forbids attach is served",
		[FORBIDDEN_LATER] = "attach is forbidden while the link lives: served",
		[FORBIDDEN_INSISTED] =
			"FI_WEFT_CMA=1: a peer that forbids attach is refused",
	};
	int status = -1;
	pid_t pid;

	pid = tap_fork();
	if (pid == 0) {
		alarm(280);
		_exit(forbidden_run(how));
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		tap_skip(1, "attach is refused here from the beginning");
	else
		tap_is_int(status, 0, what[how]);
}

/* FI_WEFT_CMA=0 reaches the wire. */
static void test_switched_off(void)
{
	struct rig rig;
	bool raw;

	setenv("FI_WEFT_CMA", "0", 1);
	prov_params_init();
	rig_open(&rig, false);
	if (rig_dial(&rig, &wire_ep_base(rig.ep)->addr))
		tap_bail("dial");
	raw = wire_link_base(rig.dialled)->caps.raw;
	rig_close(&rig);
	tap_ok(!raw, "FI_WEFT_CMA=0 switches attach off");
	setenv("FI_WEFT_CMA", "auto", 1);
	prov_params_init();
}

int main(void)
{
	alarm(280);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	test_other_user();
	test_D6_forbidden(FORBIDDEN);
	test_D6_forbidden(FORBIDDEN_LATER);
	test_D6_forbidden(FORBIDDEN_INSISTED);
	test_switched_off();
	test_collision();
	test_any();
	test_v6();
	test_held();
	test_open_refused();
	test_no_descriptors();
	test_strangers();
	return tap_done();
}
