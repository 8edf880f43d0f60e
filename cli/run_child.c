/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_child.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run_child.h"

/* Steps that may fail between fork and exec: their index goes through the status pipe. */
enum child_step {
	STEP_PARENT,
	STEP_STDIN,
	STEP_OUTPUT,
	STEP_ENVIRONMENT,
	STEP_EXEC,
	STEP_COUNT
};

static const char *const step_text[STEP_COUNT] = {
	[STEP_PARENT] = "setpgid or prctl",
	[STEP_STDIN] = "/dev/null",
	[STEP_OUTPUT] = "dup2",
	[STEP_ENVIRONMENT] = "setenv",
	[STEP_EXEC] = "exec",
};

struct child_report {
	int32_t step;
	int32_t error;
};

static bool set_number(const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return setenv(name, text, 1) == 0;
}

static bool set_environment(const struct run_child_attr *a, int32_t rank)
{
	bool good = set_number("WEFT_RANK", rank) && set_number("WEFT_SIZE", a->size) &&
		    set_number("WEFT_LOCAL_RANK", rank) &&
		    set_number("WEFT_LOCAL_SIZE", a->size) &&
		    setenv("WEFT_ROOT", a->root, 1) == 0 &&
		    setenv("WEFT_JOB", a->job, 1) == 0;

	unsetenv("WEFT_ROOT_FD");
	unsetenv("WEFT_TTY");
	if (rank == 0)
		good = good && set_number("WEFT_ROOT_FD", a->listen_fd) &&
		       fcntl(a->listen_fd, F_SETFD, 0) == 0;
	if (a->tty)
		good = good && setenv("WEFT_TTY", "1", 1) == 0;
	return good;
}

/* The rank must not outlive the launcher, also when it was killed before this ran. */
static bool tie_to(pid_t parent)
{
	return setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
	       getppid() == parent;
}

/* A background process group that reads the terminal would be stopped: only rank 0 reads,
 * and only what is no terminal. */
static bool choose_stdin(const struct run_child_attr *a, int32_t rank)
{
	int fd;

	if (rank == 0 && !a->stdin_tty)
		return true;
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && dup2(fd, STDIN_FILENO) >= 0;
}

static enum child_step child_run(const struct run_child_attr *a, int32_t rank, int out_fd,
				 int err_fd, pid_t parent)
{
	if (!tie_to(parent))
		return STEP_PARENT;
	if (!choose_stdin(a, rank))
		return STEP_STDIN;
	if ((out_fd >= 0 && dup2(out_fd, STDOUT_FILENO) < 0) ||
	    (err_fd >= 0 && dup2(err_fd, STDERR_FILENO) < 0))
		return STEP_OUTPUT;
	if (!set_environment(a, rank))
		return STEP_ENVIRONMENT;
	/* Binding is a matter of speed: what forbids it is no reason not to run. */
	if (a->bind)
		(void)run_bind_apply(a->bind, rank, a->size);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, a->mask, NULL);
	execvp(a->argv[0], a->argv);
	return STEP_EXEC;
}

pid_t run_child_start(const struct run_child_attr *a, int32_t rank, int out_fd,
		      int err_fd, const char **what)
{
	struct child_report report;
	pid_t parent = getpid(), pid;
	int status[2];
	ssize_t n;

	*what = "pipe";
	if (pipe2(status, O_CLOEXEC) != 0)
		return -1;
	*what = "fork";
	pid = fork();
	if (pid == 0) {
		report.step = (int32_t)child_run(a, rank, out_fd, err_fd, parent);
		report.error = errno;
		(void)!write(status[1], &report, sizeof(report));
		_exit(127);
	}
	close(status[1]);
	do
		n = pid < 0 ? 0 : read(status[0], &report, sizeof(report));
	while (n < 0 && errno == EINTR);
	close(status[0]);
	if (pid < 0 || n != (ssize_t)sizeof(report))
		return pid; /* the pipe was closed by exec */
	waitpid(pid, NULL, 0);
	*what = step_text[report.step];
	errno = report.error;
	return -1;
}
