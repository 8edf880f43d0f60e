/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_guard.h. The pipe carries process ids: positive to add, negative to remove. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run_guard.h"
#include "cli/run_job.h"

static void guard_note(pid_t *group, int32_t pid)
{
	int32_t old = pid > 0 ? 0 : -pid, now = pid > 0 ? pid : 0;

	for (int i = 0; i < RUN_RANKS_MAX; i++) {
		if (group[i] == old) {
			group[i] = now;
			return;
		}
	}
}

static void guard_main(int fd)
{
	static pid_t group[RUN_RANKS_MAX];
	sigset_t all;
	int32_t pid;
	ssize_t n;

	/* Signals of the terminal, or to the launcher's group, are not for it. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setpgid(0, 0);
	for (int i = 0; i < 3; i++)
		close(i);
	for (;;) {
		n = read(fd, &pid, sizeof(pid)); /* whole: writes of 4 bytes are atomic */
		if (n == (ssize_t)sizeof(pid))
			guard_note(group, pid);
		else if (n == 0 || errno != EINTR)
			break;
	}
	for (int i = 0; i < RUN_RANKS_MAX; i++)
		if (group[i] > 0)
			(void)killpg(group[i], SIGKILL);
	_exit(0);
}

void run_guard_init(struct run_guard *guard)
{
	int fd[2];

	*guard = (struct run_guard){.fd = -1};
	if (pipe2(fd, O_CLOEXEC) != 0)
		return;
	guard->pid = fork();
	if (guard->pid == 0) {
		close(fd[1]);
		guard_main(fd[0]);
	}
	close(fd[0]);
	guard->fd = fd[1];
	if (guard->pid < 0) {
		guard->pid = 0;
		close(guard->fd);
		guard->fd = -1;
	}
}

void run_guard_fini(struct run_guard *guard)
{
	if (guard->pid == 0)
		return;
	close(guard->fd);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guard->pid = 0;
}

static void guard_tell(struct run_guard *guard, int32_t pid)
{
	if (guard->pid)
		(void)!write(guard->fd, &pid, sizeof(pid)); /* SIGPIPE is ignored */
}

void run_guard_add(struct run_guard *guard, pid_t group)
{
	guard_tell(guard, group);
}

void run_guard_remove(struct run_guard *guard, pid_t group)
{
	guard_tell(guard, -group);
}
