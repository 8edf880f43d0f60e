/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint that records its events, and the server process. */
#include "config.h"

#include "prov/wire/shm/tests/rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/shm_link.h"
#include "util/tap.h"
#include "util/tap_fork.h"

uint64_t rig_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Of memory that the helper thread wrote for the peer whose packet asks for the hash: an
 * order by way of another process, which no sanitizer sees. */
__attribute__((no_sanitize_thread)) uint64_t hash_bytes(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * 1099511628211u;
	return h;
}

/* Of memory that this process's helper thread wrote: the order comes by an atomic word of
 * the pair memory, which the two ends of a link to oneself map at two addresses, and a
 * sanitizer takes for two words. */
__attribute__((no_sanitize_thread)) bool same_bytes(const void *a, const void *b,
						    size_t len)
{
	const uint8_t *x = a, *y = b;

	for (size_t i = 0; i < len; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

static void on_up(void *arg, struct wire_link *link)
{
	struct rig *rig = arg;

	rig->ups++;
	if (wire_link_base(link)->peer_ctx)
		rig->dialled = link;
	else
		rig->accepted = link;
}

static void on_down(void *arg, struct wire_link *link, int err)
{
	struct rig *rig = arg;

	rig->downs++;
	rig->down_err = err;
	if (rig->dialled == link)
		rig->dialled = NULL;
	if (rig->accepted == link)
		rig->accepted = NULL;
}

static void on_packet(void *arg, struct wire_link *link, const void *pkt, size_t len)
{
	struct rig *rig = arg;

	rig->packets++;
	if (rig->on_packet && rig->on_packet(rig, link, pkt, len))
		return;
	rig->last_len = len;
	memcpy(rig->last, pkt, len);
}

static void on_segment(void *arg, struct wire_link *link, void *cookie, int err)
{
	struct rig *rig = arg;

	(void)link;
	rig->segments++;
	rig->segment_err = err;
	rig->segment_cookie_sum += (uintptr_t)cookie;
}

static const struct wire_events rig_events = {.link_up = on_up,
					      .link_down = on_down,
					      .packet = on_packet,
					      .segment_done = on_segment};

bool rig_no_bulk;

void rig_open(struct rig *rig, bool no_cma)
{
	struct wire_ep_attr attr = {.events = &rig_events,
				    .arg = rig,
				    .no_cma = no_cma,
				    .no_bulk = rig_no_bulk};
	int ret;

	memset(rig, 0, sizeof(*rig));
	ret = mem_keytab_open(1024, &rig->keys);
	if (ret)
		tap_bail("key table: %d", ret);
	attr.addr.in.sin_family = AF_INET;
	attr.addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	attr.keys = rig->keys;
	if (getrandom(&attr.incarnation, sizeof(attr.incarnation), 0) < 0)
		tap_bail("no random numbers");
	attr.incarnation |= 1;
	ret = shm_wire_ops.ep_open(&attr, &rig->ep);
	if (ret)
		tap_bail("endpoint: %d", ret);
}

void rig_close(struct rig *rig)
{
	shm_wire_ops.ep_close(rig->ep);
	mem_keytab_close(rig->keys);
}

bool rig_wait_int(struct rig *rig, const int *counter, int want)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (*counter < want) {
		if (shm_wire_ops.progress(rig->ep, 64) == 0)
			sched_yield();
		if (rig_now() > end)
			return false;
	}
	return true;
}

bool rig_wait_packets(struct rig *rig, uint64_t want)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (rig->packets < want) {
		if (shm_wire_ops.progress(rig->ep, 64) == 0)
			sched_yield();
		if (rig_now() > end)
			return false;
	}
	return true;
}

void rig_sleep(struct rig *rig, int *overslept)
{
	struct pollfd p = {.fd = shm_wire_ops.fd(rig->ep), .events = POLLIN};

	if (shm_wire_ops.progress(rig->ep, 64) > 0 || shm_wire_ops.arm(rig->ep) != 0)
		return;
	if (poll(&p, 1, RIG_WAIT_MS / 4) == 0)
		(*overslept)++;
}

bool rig_sleep_packets(struct rig *rig, uint64_t want, int *overslept)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);

	while (rig->packets < want) {
		rig_sleep(rig, overslept);
		if (rig_now() > end)
			return false;
	}
	return true;
}

int rig_dial(struct rig *rig, const struct wire_addr *to)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	struct wire_link *link;
	int downs = rig->downs;
	int ret;

	rig->dialled = NULL;
	ret = shm_wire_ops.dial(rig->ep, to, rig, &link);
	if (ret)
		return ret;
	while (!rig->dialled && rig->downs == downs) {
		shm_wire_ops.progress(rig->ep, 64);
		sched_yield();
		if (rig_now() > end)
			return -FI_ETIMEDOUT;
	}
	return rig->dialled ? 0 : rig->down_err;
}

bool rig_send(struct rig *rig, struct wire_link *link, const void *bytes, size_t len)
{
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	int downs = rig->downs;
	void *pkt;

	while (!(pkt = shm_wire_ops.pkt_reserve(link, len, WIRE_DATA))) {
		if (shm_wire_ops.progress(rig->ep, 64) == 0)
			sched_yield();
		if (rig_now() > end || rig->downs > downs)
			return false;
	}
	memcpy(pkt, bytes, len);
	shm_wire_ops.pkt_commit(link, pkt, len);
	return true;
}

static int rig_move(struct rig *rig, struct wire_link *link, void *local, size_t len,
		    uint64_t addr, uint64_t key, bool write)
{
	struct iovec iov = {.iov_base = local, .iov_len = len};
	struct wire_segment seg = {.local = &iov,
				   .local_count = 1,
				   .remote = {.addr = addr, .key = key},
				   .len = len,
				   .cookie = rig};
	uint64_t end = rig_now() + RIG_WAIT_MS * UINT64_C(1000000);
	int before = rig->segments, ret;

	/* Every other one by the straight way, where there is one. */
	if (len > 0 && rig->moves++ % 2 == 0 &&
	    (write ? shm_wire_ops.put_now(link, key, addr, local, len)
		   : shm_wire_ops.get_now(link, key, addr, local, len))) {
		rig->moved_now++;
		return 0;
	}
	do {
		ret = write ? shm_wire_ops.put(link, &seg) : shm_wire_ops.get(link, &seg);
		if (ret == -FI_EAGAIN)
			shm_wire_ops.progress(rig->ep, 64);
	} while (ret == -FI_EAGAIN && rig_now() < end);
	if (ret)
		return ret == 1 ? 0 : ret;
	if (!rig_wait_int(rig, &rig->segments, before + 1))
		return -FI_ETIMEDOUT;
	return rig->segment_err;
}

int rig_put(struct rig *rig, struct wire_link *link, void *local, size_t len,
	    uint64_t addr, uint64_t key)
{
	return rig_move(rig, link, local, len, addr, key, true);
}

int rig_get(struct rig *rig, struct wire_link *link, void *local, size_t len,
	    uint64_t addr, uint64_t key)
{
	return rig_move(rig, link, local, len, addr, key, false);
}

/* ---- server --------------------------------------------------------------------------
 */

void (*server_prelude)(void);

struct server_state {
	struct rig rig;
	uint8_t *memory;
	size_t size;
	uint64_t key;
	bool block;
	bool quit;
	uint64_t farewell;
	struct wire_link *quit_link;
};

static void server_answer(struct wire_link *link, uint64_t a, uint64_t b)
{
	struct server_packet answer = {.arg = a, .arg2 = b};
	void *pkt = shm_wire_ops.pkt_reserve(link, sizeof(answer), WIRE_CONTROL);

	if (!pkt)
		_exit(3);
	memcpy(pkt, &answer, sizeof(answer));
	shm_wire_ops.pkt_commit(link, pkt, sizeof(answer));
}

static void server_register(struct server_state *s, struct wire_link *link,
			    const struct server_packet *req)
{
	struct mem_region region = {
		.iov_count = 1, .access = req->arg2, .virt_addr = true};

	s->size = req->arg;
	s->memory = mmap(NULL, s->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory == MAP_FAILED)
		_exit(4);
	for (size_t i = 0; i < s->size; i++)
		s->memory[i] = (uint8_t)(i * 7 + (i >> 8));
	region.iov[0].iov_base = s->memory;
	region.iov[0].iov_len = s->size;
	if (mem_keytab_insert(s->rig.keys, &region, &s->key))
		_exit(5);
	server_answer(link, (uintptr_t)s->memory, s->key);
}

/* As if this process were stopped in the middle of a put. */
static void server_join(struct wire_link *link, const struct server_packet *req)
{
	struct wire_joint j = {.cell = (uint32_t)req->arg,
			       .turn = (uint32_t)(req->arg >> 32),
			       .pieces = (uint32_t)req->arg2};

	if (shm_wire_ops.joint_take(link, &j, false) == WIRE_JOINT_NONE)
		return;
	raise(SIGSTOP);
	shm_wire_ops.joint_did(link, &j, true);
}

static void wake_signal(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGUSR1);
}

static void server_pause(struct wire_link *link)
{
	const struct timespec longest = {.tv_sec = 60};
	sigset_t set;

	server_answer(link, 0, 0);
	wake_signal(&set);
	if (sigtimedwait(&set, NULL, &longest) < 0)
		_exit(7);
	server_answer(link, 0, 0);
}

static void server_hold(struct wire_link *link, uint64_t key)
{
	struct shm_hazard *hazard = ((struct shm_link *)(void *)link)->hazard_mine;

	atomic_store(&hazard->key, key);
	atomic_store(&hazard->active, 1);
	raise(SIGSTOP);
	atomic_store(&hazard->active, 0);
}

/* A child that has everything of its parent, does nothing, and lives longer. By the bare
 * system call, so that nobody in it lets go of anything. */
static pid_t server_fork(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0) {
		alarm(280);
		for (;;)
			pause();
	}
	return pid;
}

static bool server_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			  size_t len)
{
	struct server_state *s = rig->user;
	struct server_packet req;
	void *out;

	memcpy(&req, pkt, len < sizeof(req) ? len : sizeof(req));
	switch ((enum server_op)req.op) {
	case SERVER_ECHO:
		out = shm_wire_ops.pkt_reserve(link, len, WIRE_CONTROL);
		if (!out)
			_exit(6);
		memcpy(out, pkt, len);
		shm_wire_ops.pkt_commit(link, out, len);
		break;
	case SERVER_REGISTER:
		server_register(s, link, &req);
		break;
	case SERVER_HASH:
		server_answer(link, hash_bytes(s->memory, s->size), 0);
		break;
	case SERVER_SLEEP:
		usleep((useconds_t)(req.arg * 1000));
		break;
	case SERVER_PAUSE:
		server_pause(link);
		break;
	case SERVER_QUIT:
		s->quit = true;
		s->farewell = req.arg;
		s->quit_link = link;
		break;
	case SERVER_BLOCK:
		s->block = true;
		break;
	case SERVER_SINK:
		break;
	case SERVER_FORBID:
		prctl(PR_SET_DUMPABLE, 0);
		server_answer(link, 0, 0);
		break;
	case SERVER_FORK:
		server_answer(link, (uint64_t)server_fork(), 0);
		break;
	case SERVER_HOLD:
		server_hold(link, req.arg);
		break;
	case SERVER_JOIN:
		server_join(link, &req);
		break;
	}
	return true;
}

static void server_run(struct server_state *s)
{
	while (!s->quit) {
		struct pollfd p = {.fd = shm_wire_ops.fd(s->rig.ep), .events = POLLIN};

		if (shm_wire_ops.progress(s->rig.ep, 64) > 0)
			continue;
		if (!s->block)
			sched_yield();
		else if (shm_wire_ops.arm(s->rig.ep) == 0)
			poll(&p, 1, RIG_WAIT_MS * 3);
	}
	for (uint64_t i = 0; i < s->farewell; i++)
		server_answer(s->quit_link, i, 0);
}

static _Noreturn void server_main(int report, bool no_cma)
{
	static struct server_state s;
	sigset_t set;

	wake_signal(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(280);
	if (server_prelude)
		server_prelude();
	rig_open(&s.rig, no_cma);
	s.rig.on_packet = server_packet;
	s.rig.user = &s;
	if (write(report, &wire_ep_base(s.rig.ep)->addr, sizeof(struct wire_addr)) < 0)
		_exit(2);
	close(report);
	server_run(&s);
	rig_close(&s.rig);
	_exit(0);
}

void server_start(struct server *srv, bool no_cma)
{
	int report[2];

	fflush(stdout);
	if (pipe(report) < 0)
		tap_bail("pipe: %s", strerror(errno));
	srv->pid = tap_fork();
	if (srv->pid < 0)
		tap_bail("fork: %s", strerror(errno));
	if (srv->pid == 0) {
		close(report[0]);
		server_main(report[1], no_cma);
	}
	close(report[1]);
	if (read(report[0], &srv->addr, sizeof(srv->addr)) != (ssize_t)sizeof(srv->addr))
		tap_bail("the server did not start");
	close(report[0]);
}

void server_wake(const struct server *srv)
{
	kill(srv->pid, SIGUSR1);
}

int server_wait(struct server *srv)
{
	int status;

	if (waitpid(srv->pid, &status, 0) < 0)
		return -1000;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool server_ask(struct rig *rig, struct wire_link *link, enum server_op op, uint64_t arg,
		uint64_t arg2)
{
	struct server_packet req = {.op = op, .arg = arg, .arg2 = arg2};
	uint64_t before = rig->packets;

	return rig_send(rig, link, &req, sizeof(req)) &&
	       rig_wait_packets(rig, before + 1);
}
