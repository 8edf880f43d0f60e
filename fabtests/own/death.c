/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that dies (SIGKILL) in the middle of something: whoever is left gets an error
 * for each operation, reaches a new process at the same address, and
 * nothing stays behind.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_SIZE (4u << 20)

static const struct want want_all = {.caps = FI_MSG | FI_TAGGED | FI_RMA,
				     .mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
						FI_MR_ALLOCATED};

/* What is sent or written until the peer is gone. */
enum traffic { TRAFFIC_EAGER, TRAFFIC_RENDEZVOUS, TRAFFIC_WRITE, TRAFFIC_READ };

struct remote {
	uint64_t base, key;
};

static ssize_t traffic_post(struct side *s, enum traffic kind, uint8_t *buf,
			    const struct remote *r, void *context)
{
	struct node *n = &s->node;

	switch (kind) {
	case TRAFFIC_EAGER:
		return fi_send(n->ep, buf, 64, NULL, n->peer, context);
	case TRAFFIC_RENDEZVOUS:
		return fi_send(n->ep, buf, LONG_SIZE, NULL, n->peer, context);
	case TRAFFIC_WRITE:
		return fi_write(n->ep, buf, LONG_SIZE, NULL, n->peer, r->base, r->key,
				context);
	case TRAFFIC_READ:
		return fi_read(n->ep, buf, LONG_SIZE, NULL, n->peer, r->base, r->key,
			       context);
	}
	return -FI_EINVAL;
}

/* Errors that say what happened; none that blames the caller. */
static void error_plausible(struct side *s, int err)
{
	static const int known[] = {FI_ECONNRESET,   FI_ECONNREFUSED, FI_ENOTCONN,
				    FI_ECONNABORTED, FI_ESHUTDOWN,    FI_EHOSTUNREACH,
				    FI_ETIMEDOUT,    FI_EHOSTDOWN,    FI_EIO};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (err == known[i])
			return;
	}
	side_check(s, false, "error %d (%s) of an operation on a dead peer", err,
		   fi_strerror(err));
}

#define WINDOW 8

/* Keeps a few operations under way, kills the peer in the middle, and wants an end of
 * each, the last ones in error. */
static void killer_run(struct side *s)
{
	const enum traffic *kind = s->arg;
	uint8_t *buf = mem_new(LONG_SIZE);
	bool killed = false, failed = false;
	int slots[WINDOW] = {0}, under_way = 0, done = 0;
	uint64_t begin, end = 0;
	struct remote r;
	struct done d;

	node_open(s, &want_all);
	side_hear(s, &r, sizeof(r));
	for (begin = now_ms(); !failed || under_way;) {
		for (int i = 0; i < WINDOW && !failed; i++) {
			ssize_t rc;

			if (slots[i])
				continue;
			rc = traffic_post(s, *kind, buf, &r, &slots[i]);
			if (rc == -FI_EAGAIN)
				break;
			if (rc < 0 && killed) { /* said at once is as good */
				error_plausible(s, (int)-rc);
				failed = true;
				break;
			}
			side_must(s, rc, "post");
			slots[i] = 1;
			under_way++;
		}
		while (node_next(s, &d, 0)) {
			int *slot = d.e.op_context;

			if (slot < slots || slot >= slots + WINDOW || !*slot)
				side_die(s, "a completion of nothing: context %p, err %d",
					 d.e.op_context, d.err);
			*slot = 0;
			under_way--;
			done++;
			failed = failed || d.err;
			if (d.err &&
			    side_check(s, killed, "error %s before", fi_strerror(d.err)))
				error_plausible(s, d.err);
		}
		if (!killed && (done > 20 || now_ms() > begin + 300)) {
			kill(s->peer_pid, SIGKILL);
			killed = true;
			end = now_ms() + WAIT_MS;
		}
		if (killed && now_ms() > end)
			side_die(s, "%d operations have no end %d ms after the peer's",
				 under_way, WAIT_MS);
		sched_yield();
	}
	node_close(s, &s->node);
}

/* Receives everything until it is killed. */
static void victim_run(struct side *s)
{
	uint8_t *buf = mem_new(LONG_SIZE), *in = mem_new(LONG_SIZE);
	struct remote r;
	struct fid_mr *mr;
	struct done d;

	node_open(s, &want_all);
	side_must(s,
		  fi_mr_reg(s->node.domain, buf, LONG_SIZE,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL),
		  "fi_mr_reg");
	r.key = fi_mr_key(mr);
	r.base =
		s->node.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)buf : 0;
	side_tell(s, &r, sizeof(r));
	for (;;) {
		if (fi_recv(s->node.ep, in, LONG_SIZE, NULL, FI_ADDR_UNSPEC, NULL) == 0)
			while (!node_next(s, &d, 1000))
				;
		else
			node_progress(&s->node);
	}
}

/* ---- a receive that was matched, or may be */

static void stopped_sender(struct side *s)
{
	uint8_t *out = mem_new(LONG_SIZE);

	node_open(s, &want_all);
	mem_fill(out, LONG_SIZE, 1);
	while (node_again(s,
			  fi_send(s->node.ep, out, LONG_SIZE, NULL, s->node.peer, NULL),
			  "fi_send"))
		;
	node_quiet(s, 50);
	side_meet(s);
	for (;;)
		pause();
}

static void matched_end(struct side *s, const struct done *d, const uint8_t *in)
{
	side_check(s, d->e.op_context == in, "the wrong receive ended");
	if (d->err)
		error_plausible(s, d->err);
	else
		mem_check(s, in, LONG_SIZE, 1, "message of a dead sender");
}

/* The sender announced a long message and dies before it is fetched: the receive of it
 * ends (well or in error), the others stay as they are. */
static void stopped_receiver(struct side *s)
{
	uint8_t *in = mem_new(LONG_SIZE), other[8], *own = mem_new(8);
	struct done d;

	node_open(s, &want_all);
	side_meet(s);
	node_quiet(s, 50);
	kill(s->peer_pid, SIGKILL);
	sleep_ms(50);
	while (node_again(s, fi_recv(s->node.ep, in, LONG_SIZE, NULL, FI_ADDR_UNSPEC, in),
			  "fi_recv"))
		;
	while (node_again(
		s, fi_trecv(s->node.ep, other, 8, NULL, FI_ADDR_UNSPEC, 1, 0, other),
		"fi_trecv"))
		;
	/* Forgotten with its sender, or matched and failed: both are allowed. Then it
	 * fails when the link has been read to its end, which may take a second. */
	if (node_next(s, &d, 1500))
		matched_end(s, &d, in);
	mem_fill(own, 8, 3);
	while (node_again(s, fi_tsend(s->node.ep, own, 8, NULL, s->node.self, 1, NULL),
			  "fi_tsend"))
		;
	for (int i = 0; i < 2;) {
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "the endpoint serves no one any more");
		if (d.e.op_context == in) {
			matched_end(s, &d, in);
			continue;
		}
		side_check(s, !d.err, "a message to oneself: %s", fi_strerror(d.err));
		i++;
	}
	mem_check(s, other, 8, 3, "a message from somebody else");
	node_close(s, &s->node);
}

/* ---- nobody there */

static void nobody_run(struct side *s)
{
	struct sockaddr_in *sin;
	uint8_t buf[64] = {0};
	fi_addr_t nobody;
	struct done d;
	ssize_t rc;

	node_open(s, &(struct want){0});
	if (s->node.info->addr_format != FI_SOCKADDR_IN)
		side_lacks(s, "has no socket addresses");
	sin = (struct sockaddr_in *)s->node.name;
	sin->sin_port = htons(9);
	side_check(s, fi_av_insert(s->node.av, sin, 1, &nobody, 0, NULL) == 1,
		   "fi_av_insert");
	for (int i = 0; i < 3; i++) {
		uint64_t end = now_ms() + WAIT_MS;

		while ((rc = fi_send(s->node.ep, buf, 64, NULL, nobody, &d)) ==
			       -FI_EAGAIN &&
		       now_ms() < end)
			node_progress(&s->node);
		if (rc < 0) {
			error_plausible(s, (int)-rc);
			continue;
		}
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "a send to nobody has no end");
		error_plausible(s, d.err);
		side_check(s, d.e.op_context == &d, "context");
		side_check_u64(s, d.e.flags, FI_MSG | FI_SEND, "flags");
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- a new process at the same address */

#define LIVES 4

/* Role 1 forks a process for each life and never calls libfabric itself. */
static void lives_run(struct side *s)
{
	char service[16];
	int status;

	/* Below those that the system hands out, and another than a second run's. */
	snprintf(service, sizeof(service), "%d", 12000 + (int)getpid() % 20000);
	for (int life = 0; life < LIVES; life++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct want want = want_all;
			struct done d;
			uint8_t in[8];

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			want.service = service;
			node_open(s, &want);
			while (node_again(s,
					  fi_send(s->node.ep, &life, sizeof(life), NULL,
						  s->node.peer, NULL),
					  "fi_send"))
				;
			for (;;) {
				if (fi_recv(s->node.ep, in, 8, NULL, FI_ADDR_UNSPEC,
					    NULL) == 0)
					while (!node_next(s, &d, 1000))
						;
			}
		}
		waitpid(pid, &status, 0);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			side_die(s, "life %d ended by itself", life);
	}
	side_meet(s);
}

/* What the survivor waits for in each life. */
struct meeting {
	int life; /* the word of this life: received into here */
	bool heard;
	bool reached; /* a send arrived */
	bool sending;
	uint8_t out[8];
};

static void meeting_step(struct side *s, struct meeting *m)
{
	struct done d;

	/* Earlier ones may fail, not for ever. */
	if (!m->reached && !m->sending)
		m->sending =
			fi_send(s->node.ep, m->out, 8, NULL, s->node.peer, m->out) == 0;
	if (!node_next(s, &d, 10))
		return;
	if (d.e.op_context == m->out) {
		m->sending = false;
		m->reached = !d.err;
	} else if (d.e.op_context == &m->life) {
		m->heard = true;
		side_check(s, !d.err, "error %s of a receive", fi_strerror(d.err));
	} else {
		side_die(s, "a completion of nothing");
	}
}

static void lives_peer(struct side *s)
{
	if (strcmp(test_provider(), "shm") == 0)
		side_lacks(s, "has no ports");
	node_open_alone(s, &s->node, &want_all);
	for (int i = 0; i < LIVES; i++) {
		struct meeting m = {.life = -1};
		uint64_t end = now_ms() + WAIT_MS;
		char name[64];

		while (node_again(s,
				  fi_recv(s->node.ep, &m.life, sizeof(m.life), NULL,
					  FI_ADDR_UNSPEC, &m.life),
				  "fi_recv"))
			;
		/* What node_open does, with one address vector for all lives. */
		side_tell(s, s->node.name, sizeof(s->node.name));
		side_hear(s, name, sizeof(name));
		if (i == 0 &&
		    fi_av_insert(s->node.av, name, 1, &s->node.peer, 0, NULL) != 1)
			side_die(s, "fi_av_insert");
		side_meet(s);
		while ((!m.heard || !m.reached) && now_ms() < end)
			meeting_step(s, &m);
		if (!m.heard || !m.reached)
			side_die(s, "life %d: heard %d, reached %d", i, m.heard,
				 m.reached);
		side_check_u64(s, (uint64_t)m.life, (uint64_t)i, "the word of this life");
		kill(s->peer_pid, SIGKILL);
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- what is left */

static int shm_files(void)
{
	DIR *dir = opendir("/dev/shm");
	int n = -2; /* . and .. */

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int sockets_named(const char *what)
{
	FILE *f = fopen("/proc/self/net/unix", "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, what) != NULL;
	if (f)
		fclose(f);
	return n;
}

/* Role 0 looks; the sides of all earlier cases were killed. */
static void left_run(struct side *s)
{
	if (s->role == 0) {
		side_check(s, shm_files() == 0, "%d files are left in /dev/shm",
			   shm_files());
		side_check(s, sockets_named("@weft") == 0, "%d abstract sockets are left",
			   sockets_named("@weft"));
	}
	side_meet(s);
}

static const enum traffic kinds[] = {TRAFFIC_EAGER, TRAFFIC_RENDEZVOUS, TRAFFIC_WRITE,
				     TRAFFIC_READ};

#define KILLED(name_, kind_)                                                          \
	{                                                                             \
		.name = name_, .run = {killer_run, victim_run}, .arg = &kinds[kind_], \
		.killed = true                                                        \
	}

static const struct test_case cases[] = {
	KILLED("killed during small messages", 0),
	KILLED("killed during long messages", 1),
	KILLED("killed during writes", 2),
	KILLED("killed during reads", 3),
	{.name = "killed after announcing a long message",
	 .run = {stopped_receiver, stopped_sender},
	 .killed = true},
	{.name = "nobody at the address", .run = {nobody_run, nobody_run}},
	{.name = "restarted at the same address", .run = {lives_peer, lives_run}},
};

static const struct test_case last = {.name = "nothing is left behind",
				      .run = {left_run, left_run}};

int main(int argc, char **argv)
{
	struct test_case left = last;

	test_init(argc, argv);
	/* A peer that isn't there is knocked for so long, since it may be about to come.
	 */
	setenv("FI_WEFT_CONNECT_TIMEOUT", "2000", 0);
	cases_run(cases, ARRAY_LEN(cases), "");
	if (test_is_weft()) {
		setenv("FI_WEFT_CMA", "0", 1);
		cases_run(cases, 5, ", FI_WEFT_CMA=0");
	}
	if (!test_is_isolated())
		left.skip = "no namespace of its own: others' files can't be told apart";
	cases_run(&left, 1, "");
	return test_done();
}
