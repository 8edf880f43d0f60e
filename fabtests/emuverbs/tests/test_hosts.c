/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes as hosts: a target that makes no call, one that is killed, stopped, or comes
 * again; what a fork inherits. */
#include "config.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabtests/emuverbs/tests/pair.h"
#include "util/tap.h"
#include "util/tap_fork.h"

static const struct end_wish usual;

/* What the other process must know of an end. */
struct card {
	uint32_t number;
	uint32_t psn;
	uint32_t rkey;
	uint64_t bytes;
	union ibv_gid gid;
};

/* An end of another process, as far as pair.h's functions look at a peer. */
struct far {
	struct end end;
	struct ibv_qp qp;
	struct ibv_mr mr;
	pid_t pid;
	int fd;
};

static void card_send(int fd, const struct end *e)
{
	struct card c = {.number = e->qp->qp_num,
			 .psn = e->psn,
			 .rkey = e->mr->rkey,
			 .bytes = (uintptr_t)e->bytes,
			 .gid = e->gid};

	if (write(fd, &c, sizeof(c)) != (ssize_t)sizeof(c))
		_exit(3);
}

static void card_receive(int fd, struct far *f)
{
	struct card c;

	if (recv(fd, &c, sizeof(c), MSG_WAITALL) != (ssize_t)sizeof(c))
		tap_bail("the other process is not there");
	f->qp.qp_num = c.number;
	f->mr.rkey = c.rkey;
	f->end = (struct end){.qp = &f->qp,
			      .mr = &f->mr,
			      .bytes = (uint8_t *)(uintptr_t)c.bytes,
			      .psn = c.psn,
			      .gid = c.gid};
}

/* The other process: an end, then nothing but what it is told by a byte. */
__attribute__((noreturn)) static void child(int fd)
{
	struct far parent;
	struct end e;
	char told;

	end_open(&e, &usual);
	e.psn = (uint32_t)getpid() & 0xffffff;
	card_send(fd, &e);
	card_receive(fd, &parent);
	end_init(&e);
	end_rtr(&e, &parent.end, 1);
	end_rts(&e, 7);
	if (write(fd, "", 1) != 1)
		_exit(3);
	while (read(fd, &told, 1) == 1) {
		if (told == 'r')
			end_receive(&e, 1, 0, 8);
		else if (told != 'b')
			break;
		/* Its first byte, after nothing was asked of the library. */
		if (write(fd, e.bytes, 1) != 1)
			break;
	}
	_exit(0);
}

static void far_start(struct far *f)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		tap_bail("no sockets");
	f->pid = tap_fork();
	if (f->pid == 0) {
		close(fds[0]);
		child(fds[1]);
	}
	close(fds[1]);
	f->fd = fds[0];
	card_receive(f->fd, f);
}

static void far_join(struct far *f, struct end *e, int rnr_retry)
{
	char ready;

	card_send(f->fd, e);
	if (read(f->fd, &ready, 1) != 1)
		tap_bail("the other process has no queue pair");
	end_init(e);
	end_rtr(e, &f->end, 1);
	end_rts(e, rnr_retry);
}

static int far_ask(struct far *f, char what)
{
	unsigned char first;

	return write(f->fd, &what, 1) == 1 && read(f->fd, &first, 1) == 1 ? first : -1;
}

static void far_end(struct far *f)
{
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	close(f->fd);
}

static bool wc_is(struct end *e, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {0};
	bool good = end_poll(e, &wc) && wc.wr_id == id && wc.status == status;

	if (!good)
		tap_diag("id %d, %s", (int)wc.wr_id, ibv_wc_status_str(wc.status));
	return good;
}

static void test_passive(void)
{
	struct end e;
	struct far f;

	far_start(&f);
	end_open(&e, &usual);
	far_join(&f, &e, 7);
	memset(e.bytes, 7, END_BYTES);
	end_write(&e, &f.end, 1, 0, END_BYTES, 0);
	tap_ok(wc_is(&e, 1, IBV_WC_SUCCESS), "a write to who makes no call");
	tap_is_int(far_ask(&f, 'b'), 7, "its bytes are there");
	memset(e.bytes, 8, END_BYTES);
	end_read(&e, &f.end, 2, 0, END_BYTES, 0);
	tap_ok(wc_is(&e, 2, IBV_WC_SUCCESS) && e.bytes[0] == 7 &&
		       e.bytes[END_BYTES - 1] == 7,
	       "a read");
	kill(f.pid, SIGSTOP);
	waitpid(f.pid, NULL, WUNTRACED);
	end_write(&e, &f.end, 3, 0, 8, 0);
	tap_ok(end_quiet(&e), "one that is stopped does not answer");
	kill(f.pid, SIGCONT);
	tap_ok(wc_is(&e, 3, IBV_WC_SUCCESS), "and does when it goes on");
	far_end(&f);
	end_close(&e);
}

static void test_killed(void)
{
	struct end e;
	struct far f;
	uint32_t number;

	far_start(&f);
	end_open(&e, &usual);
	far_join(&f, &e, 7);
	number = f.qp.qp_num;
	end_send(&e, 1, 0, 8);
	tap_ok(end_quiet(&e), "a send waits for its receive");
	far_end(&f);
	tap_ok(wc_is(&e, 1, IBV_WC_RETRY_EXC_ERR), "who waits hears that the peer died");
	end_write(&e, &f.end, 2, 0, 8, 0);
	tap_ok(wc_is(&e, 2, IBV_WC_WR_FLUSH_ERR), "its queue pair is in error");
	end_state(&e, IBV_QPS_RESET);
	far_start(&f);
	tap_ok(f.qp.qp_num == number, "who comes again has the same number");
	far_join(&f, &e, 7);
	far_ask(&f, 'r');
	end_send(&e, 3, 0, 8);
	tap_ok(wc_is(&e, 3, IBV_WC_SUCCESS), "and can be reached");
	far_end(&f);
	end_write(&e, &f.end, 4, 0, 8, 0);
	tap_ok(wc_is(&e, 4, IBV_WC_RETRY_EXC_ERR), "nobody is there");
	end_close(&e);
}

/* Both ends in one process. */
static bool loop_works(void)
{
	struct end x, y;
	bool good;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	x.bytes[0] = 5;
	end_write(&x, &y, 1, 0, 8, 0);
	good = wc_is(&x, 1, IBV_WC_SUCCESS) && y.bytes[0] == 5;
	end_close(&x);
	end_close(&y);
	return good;
}

static void test_fork(void)
{
	struct end x, y;
	int status = -1;
	pid_t pid;

	end_open(&x, &usual);
	end_open(&y, &usual);
	end_join(&x, &y);
	pid = tap_fork();
	if (pid == 0)
		_exit(loop_works() ? 0 : 1);
	waitpid(pid, &status, 0);
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	       "who was forked opens devices of its own");
	end_write(&x, &y, 1, 0, 8, 0);
	tap_ok(wc_is(&x, 1, IBV_WC_SUCCESS), "its parent's go on");
	end_close(&x);
	end_close(&y);
}

/* Children of a process with threads are looked through beside those, which can't be
 * stopped from there. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "detect_leaks=0";
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	net_begin("emuverbs 1\ndevice emu0 gid=10.0.0.1\n");
	test_passive();
	test_killed();
	test_fork();
	return tap_done();
}
