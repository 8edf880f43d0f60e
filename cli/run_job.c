/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_job.h. One thread, one poll loop; signals arrive through a signalfd. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/entry.h"
#include "cli/run_child.h"
#include "cli/run_guard.h"
#include "cli/run_job.h"
#include "cli/run_out.h"
#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"
#include "coll/boot/ranklist.h"

#define GRACE_US      ((int64_t)2000000) /* from SIGTERM to SIGKILL */
#define LONELY_US     ((int64_t)5000000) /* ranks alone before that is told */
#define DRAIN_US      ((int64_t)500000)	 /* for pipes that somebody unknown holds open */
#define DRAIN_MOST_US ((int64_t)10000000)

enum {
	PAUSE_MS = 100, /* an unfinished line is shown after this */
	STATUS_TIMEOUT = 124,
	STATUS_CANNOT_RUN = 126,
	STATUS_NOT_FOUND = 127,
};

enum job_state { JOB_RUNNING, JOB_STOPPING, JOB_KILLED };

struct rank {
	pid_t pid; /* 0: never started, or reaped */
	bool good; /* it exited with status 0 */
	struct run_stream out, err;
};

struct job {
	const struct run_opts *opts;
	enum job_state state;
	int status; /* of weft run */
	int32_t started, alive;
	int64_t timeout_at, kill_at;
	int64_t lonely_at; /* when to tell of ranks that ended before the others */
	int64_t drain_at, drain_end; /* NEVER while ranks live */
	bool idle;		     /* nothing came in the last round */
	int signal_fd;
	sigset_t old_mask;
	struct run_guard guard;
	bool same; /* stdout and stderr are one terminal: both go through out, in order */
	struct run_pen pen[2];
	struct run_sink out, err;
	struct rank *rank;
	struct pollfd *pfd; /* [2 * size + 3] */
};

/* The only place that changes the state: a job only gets nearer to its end. */
static void job_set_state(struct job *job, enum job_state state)
{
	assert(state > job->state);
	job->state = state;
}

/* The launcher's own words go through the same pen as the ranks' lines. */
__attribute__((format(printf, 2, 3))) static void job_say(struct job *job,
							  const char *fmt, ...)
{
	va_list ap;

	run_pen_release(job->err.pen);
	run_sink_flush(&job->out);
	run_sink_flush(&job->err);
	fprintf(stderr, "weft run: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}

static void job_signal(struct job *job, int sig)
{
	for (int32_t r = 0; r < job->started; r++) {
		if (job->rank[r].pid == 0)
			continue;
		(void)killpg(job->rank[r].pid, sig);
		(void)killpg(job->rank[r].pid, SIGCONT); /* a stopped one must see it */
	}
}

/* Begins to stop whatever still runs. */
static void job_stop(struct job *job, int status, int sig)
{
	if (job->state != JOB_RUNNING)
		return;
	job->status = status;
	job_set_state(job, JOB_STOPPING);
	job->kill_at = boot_deadline(GRACE_US);
	job_signal(job, sig);
}

static void job_kill(struct job *job)
{
	if (job->state == JOB_KILLED)
		return;
	job_set_state(job, JOB_KILLED);
	job->kill_at = BOOT_NEVER;
	job_signal(job, SIGKILL);
}

static bool rank_alive(const void *arg, int32_t r)
{
	return ((const struct job *)arg)->rank[r].pid != 0;
}

static bool rank_good(const void *arg, int32_t r)
{
	return ((const struct job *)arg)->rank[r].good;
}

/* A rank that ended well without the others may be one that never joined them, for which
 * they wait in vain: people should hear of it before a deadline passes. */
static void job_lonely(struct job *job)
{
	char gone[128], alive[128];
	int32_t n = ranklist_format(gone, sizeof(gone), job->opts->size, rank_good, job);
	int32_t m =
		ranklist_format(alive, sizeof(alive), job->opts->size, rank_alive, job);

	job->lonely_at = BOOT_NEVER;
	if (job->state != JOB_RUNNING || n == 0 || m == 0)
		return;
	job_say(job,
		"rank%s %s exited with status 0 while rank%s %s still run%s: who waits "
		"to "
		"meet %s waits in vain",
		n == 1 ? "" : "s", gone, m == 1 ? "" : "s", alive, m == 1 ? "s" : "",
		n == 1 ? "it" : "them");
}

static void job_timeout(struct job *job)
{
	char list[128];
	int32_t n = ranklist_format(list, sizeof(list), job->opts->size, rank_alive, job);

	job->timeout_at = BOOT_NEVER;
	if (job->state != JOB_RUNNING)
		return;
	job_say(job, "%.3g s have passed: rank%s %s still running; stopping %s",
		(double)job->opts->timeout_us * 1e-6, n == 1 ? "" : "s", list,
		n == 1 ? "it" : "them");
	job_stop(job, STATUS_TIMEOUT, SIGTERM);
}

/* ---- the end of ranks ------------------------------------------------------------- */

struct ending {
	int32_t rank; /* -1: none */
	pid_t pid;
	int status; /* as waitpid() gives it */
};

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void job_failure(struct job *job, const struct ending *e)
{
	char list[128], before[192] = "", others[64] = "";
	int32_t n = ranklist_format(list, sizeof(list), job->opts->size, rank_good, job);

	if (n > 0)
		snprintf(before, sizeof(before), "; rank%s %s had exited with status 0",
			 n == 1 ? "" : "s", list);
	if (job->alive == 1)
		snprintf(others, sizeof(others), "; stopping the other one");
	else if (job->alive > 1)
		snprintf(others, sizeof(others), "; stopping the other %" PRId32 " ranks",
			 job->alive);
	if (WIFSIGNALED(e->status))
		job_say(job,
			"rank %" PRId32 " (pid %d) was ended by signal %d (%s)%s%s%s",
			e->rank, (int)e->pid, WTERMSIG(e->status),
			strsignal(WTERMSIG(e->status)),
			WCOREDUMP(e->status) ? ", core dumped" : "", before, others);
	else
		job_say(job, "rank %" PRId32 " (pid %d) exited with status %d%s%s",
			e->rank, (int)e->pid, WEXITSTATUS(e->status), before, others);
	job_stop(job, exit_status(e->status), SIGTERM);
}

static void job_rank_good(struct job *job, int32_t r)
{
	bool first = true;

	for (int32_t i = 0; i < job->started; i++)
		first = first && !job->rank[i].good;
	job->rank[r].good = true;
	if (first)
		job->lonely_at = boot_deadline(LONELY_US);
}

/* Reaps one process that has ended; false when there is none. */
static bool job_reap_one(struct job *job, struct ending *e)
{
	siginfo_t info = {.si_pid = 0};

	e->rank = -1;
	/* It stays a zombie while its group is killed, so that the group's number is not
	 * somebody else's by then. */
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
		return false;
	for (int32_t r = 0; r < job->started; r++) {
		if (job->rank[r].pid != info.si_pid)
			continue;
		(void)killpg(info.si_pid, SIGKILL);
		run_guard_remove(&job->guard, info.si_pid);
		job->rank[r].pid = 0;
		job->alive--;
		e->rank = r;
	}
	e->pid = info.si_pid;
	(void)waitpid(info.si_pid, &e->status, 0);
	if (e->rank >= 0 && e->status == 0)
		job_rank_good(job, e->rank);
	return true;
}

/*
 * Of the ranks that ended since the last look, the one to blame is the first that a
 * signal ended (others fail because of it), else the first that failed.
 */
static void job_reap(struct job *job)
{
	struct ending e, blame = {.rank = -1};

	while (job_reap_one(job, &e)) {
		if (e.rank < 0 || e.status == 0)
			continue;
		if (blame.rank < 0 ||
		    (WIFSIGNALED(e.status) && !WIFSIGNALED(blame.status)))
			blame = e;
	}
	if (blame.rank >= 0 && job->state == JOB_RUNNING)
		job_failure(job, &blame);
	if (job->alive == 0 && job->drain_at == BOOT_NEVER) {
		job->drain_at = boot_deadline(DRAIN_US);
		job->drain_end = boot_deadline(DRAIN_MOST_US);
	}
}

static void job_on_signals(struct job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue; /* several may have been merged: job_reap looks itself
				   */
		if (job->state == JOB_RUNNING)
			job_stop(job, 128 + (int)info.ssi_signo, (int)info.ssi_signo);
		else
			job_kill(job);
	}
}

/* ---- the loop --------------------------------------------------------------------- */

static bool streams_ended(const struct job *job)
{
	for (int32_t r = 0; r < job->started; r++)
		if (job->rank[r].out.fd >= 0 || job->rank[r].err.fd >= 0)
			return false;
	return true;
}

static nfds_t fill_poll(struct job *job, bool *unfinished)
{
	nfds_t n = 0;

	*unfinished = false;
	job->pfd[n++] = (struct pollfd){.fd = job->signal_fd, .events = POLLIN};
	job->pfd[n++] =
		(struct pollfd){.fd = job->out.len ? job->out.fd : -1, .events = POLLOUT};
	job->pfd[n++] =
		(struct pollfd){.fd = job->err.len ? job->err.fd : -1, .events = POLLOUT};
	for (int32_t r = 0; r < job->started; r++) {
		struct run_stream *s[2] = {&job->rank[r].out, &job->rank[r].err};

		for (int i = 0; i < 2; i++) {
			*unfinished |= s[i]->len > 0;
			job->pfd[n++] = (struct pollfd){
				.fd = run_sink_full(s[i]->sink) ? -1 : s[i]->fd,
				.events = POLLIN};
		}
	}
	return n;
}

static void read_streams(struct job *job, bool pause)
{
	for (int32_t r = 0; r < job->started; r++) {
		struct run_stream *s[2] = {&job->rank[r].out, &job->rank[r].err};

		for (int i = 0; i < 2; i++) {
			if (job->pfd[3 + 2 * r + i].revents)
				run_stream_read(s[i]);
			else if (pause)
				run_stream_pause(s[i]);
		}
	}
}

static int next_wait_ms(const struct job *job, bool unfinished)
{
	int64_t at = job->timeout_at;

	at = job->kill_at < at ? job->kill_at : at;
	at = job->lonely_at < at ? job->lonely_at : at;
	at = job->drain_at < at ? job->drain_at : at;
	return boot_wait_ms(at, unfinished ? PAUSE_MS : -1);
}

static void job_deadlines(struct job *job)
{
	int64_t now = boot_clock_us();

	if (now >= job->lonely_at)
		job_lonely(job);
	if (now >= job->timeout_at)
		job_timeout(job);
	if (now >= job->kill_at)
		job_kill(job);
}

/*
 * Whether all is done that must be: the ranks have ended, and what they wrote has been
 * shown. A pipe that somebody unknown holds open ends nothing: silence for DRAIN_US does,
 * or DRAIN_MOST_US if it is not even silent. A reader that does not take its bytes is
 * waited for, as any writer would, unless the job was killed.
 */
static bool job_over(struct job *job)
{
	bool shown = job->out.len == 0 && job->err.len == 0;
	int64_t now = boot_clock_us();

	if (job->alive > 0)
		return false;
	if (shown && streams_ended(job))
		return true;
	if (now < job->drain_at)
		return false;
	if (job->state == JOB_KILLED)
		return true;
	if (shown && (job->idle || now >= job->drain_end))
		return true;
	job->drain_at = boot_deadline(DRAIN_US);
	return false;
}

/* Output that cannot be written stops the job. A reader that has gone knows why. */
static void job_outputs(struct job *job)
{
	struct run_sink *sink = job->out.broken ? &job->out : &job->err;

	if (!sink->broken || job->state != JOB_RUNNING)
		return;
	if (sink->error == EPIPE) {
		job_stop(job, 128 + SIGPIPE, SIGTERM);
		return;
	}
	job_say(job, "write error: standard %s: %s%s",
		sink == &job->out ? "output" : "error", strerror(sink->error),
		job->alive > 0 ? "; stopping the ranks" : "");
	job_stop(job, 1, SIGTERM);
}

static void job_loop(struct job *job)
{
	bool unfinished;

	do {
		nfds_t n = fill_poll(job, &unfinished);
		int rc = poll(job->pfd, n, next_wait_ms(job, unfinished));

		if (rc >= 0)
			read_streams(job, rc == 0);
		run_sink_flush(&job->out);
		run_sink_flush(&job->err);
		job_outputs(job);
		job_on_signals(job);
		job_reap(job);
		job_deadlines(job);
		job->idle = rc == 0;
	} while (!job_over(job));
}

/* ---- begin and end ---------------------------------------------------------------- */

static bool job_signals(struct job *job)
{
	static const int watched[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction hup;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		sigaddset(&set, watched[i]);
	/* Under nohup it is not for us; blocked, it would come in spite of that. */
	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler == SIG_IGN)
		sigdelset(&set, SIGHUP);
	signal(SIGCHLD, SIG_DFL); /* ignored by our parent: there would be no statuses */
	signal(SIGPIPE, SIG_IGN);
	entry_signals_keep(&job->old_mask);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return false;
	job->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return job->signal_fd >= 0;
}

/* What is to be done where a program cannot be run. */
static const char *cure(int why)
{
	return why == ENOENT ? "; give its path, or a name that PATH finds"
	       : why == EACCES
		       ? "; make it executable (chmod +x), or name its interpreter"
	       : why == ENOEXEC
		       ? "; it is no program of this machine, or has no line #! that "
			 "names its interpreter"
		       : "";
}

/* One rank, with its pipes. False: said why, status set. */
static bool start_rank(struct job *job, const struct run_child_attr *attr, int32_t r)
{
	struct rank *rank = &job->rank[r];
	int out[2] = {-1, -1}, err[2] = {-1, -1};
	const char *what = "pipe";
	pid_t pid = -1;

	if (!job->opts->prefix ||
	    (pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0))
		pid = run_child_start(attr, r, out[1], err[1], &what);
	if (pid < 0) {
		job->status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
		job_say(job, "cannot start rank %" PRId32 " of %s: %s: %s%s", r,
			attr->argv[0], what, strerror(errno), cure(errno));
	}
	if (out[1] >= 0)
		close(out[1]);
	if (err[1] >= 0)
		close(err[1]);
	run_stream_init(&rank->out, out[0], r, &job->out);
	run_stream_init(&rank->err, err[0], r, job->same ? &job->out : &job->err);
	job->started = r + 1;
	if (pid < 0)
		return false;
	rank->pid = pid;
	job->alive++;
	run_guard_add(&job->guard, pid);
	return true;
}

static bool make_secret(char text[33])
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

static bool job_start(struct job *job)
{
	char address[BOOT_ADDR_TEXT], secret[33];
	const char *what = "getrandom";
	struct run_child_attr attr = {.argv = job->opts->argv,
				      .size = job->opts->size,
				      .root = address,
				      .job = secret,
				      .mask = &job->old_mask,
				      .tty = isatty(STDERR_FILENO),
				      .stdin_tty = isatty(STDIN_FILENO)};
	struct run_bind *bind = NULL;
	bool good = true;

	attr.listen_fd = boot_io_listen("127.0.0.1", "0", &what);
	if (attr.listen_fd < 0)
		attr.listen_fd = boot_io_listen("::1", "0", &what);
	if (attr.listen_fd < 0 || !make_secret(secret)) {
		job_say(job, "no socket for the ranks to meet at: %s: %s", what,
			strerror(errno));
		job->status = 1;
		return false;
	}
	boot_io_address(attr.listen_fd, false, address);
	if (job->opts->bind != RUN_BIND_NONE)
		bind = run_bind_open();
	if (bind &&
	    (job->opts->bind == RUN_BIND_CORE || attr.size <= run_bind_cpus(bind)))
		attr.bind = bind;
	for (int32_t r = 0; r < attr.size && good; r++)
		good = start_rank(job, &attr, r);
	run_bind_close(bind);
	close(attr.listen_fd);
	return good;
}

static bool same_terminal(void)
{
	struct stat out, err;

	return isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) &&
	       fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
	       out.st_rdev == err.st_rdev;
}

static bool job_init(struct job *job, const struct run_opts *opts)
{
	*job = (struct job){.opts = opts,
			    .timeout_at = opts->timeout_us
						  ? boot_deadline(opts->timeout_us)
						  : BOOT_NEVER,
			    .kill_at = BOOT_NEVER,
			    .lonely_at = BOOT_NEVER,
			    .drain_at = BOOT_NEVER,
			    .drain_end = BOOT_NEVER,
			    .signal_fd = -1};
	job->same = same_terminal();
	run_sink_init(&job->out, STDOUT_FILENO, &job->pen[0]);
	run_sink_init(&job->err, STDERR_FILENO, &job->pen[job->same ? 0 : 1]);
	run_guard_init(&job->guard);
	job->rank = calloc((size_t)opts->size, sizeof(*job->rank));
	job->pfd = calloc(2 * (size_t)opts->size + 3, sizeof(*job->pfd));
	return job->rank && job->pfd && job_signals(job);
}

static void job_fini(struct job *job)
{
	for (int32_t r = 0; r < job->started; r++) {
		run_stream_fini(&job->rank[r].out);
		run_stream_fini(&job->rank[r].err);
	}
	run_sink_fini(&job->out);
	run_sink_fini(&job->err);
	run_guard_fini(&job->guard);
	if (job->signal_fd >= 0)
		close(job->signal_fd);
	free(job->rank);
	free(job->pfd);
}

int run_job(const struct run_opts *opts)
{
	struct job job;

	if (!job_init(&job, opts)) {
		job_say(&job, "cannot begin: %s", strerror(errno));
		job.status = 1;
	} else {
		if (!job_start(&job))
			job_stop(&job, job.status, SIGTERM);
		job_loop(&job);
	}
	job_fini(&job);
	return job.status;
}
