/* SPDX-License-Identifier: BSD-2-Clause */
/* Output that cannot be written: the cause is told, wherever in the output it was met. */
#include "config.h"

#include "cli/usage.h"
#include "util/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER 4096

/* In a process of its own, as it closes standard output. */
static void prints(int length, int full, int told)
{
	static char buffer[BUFFER];

	if (dup2(full, STDOUT_FILENO) < 0 || dup2(told, STDERR_FILENO) < 0)
		_exit(99);
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	for (int i = 0; i < length; i += 50)
		printf("%.*s", length - i < 50 ? length - i : 50,
		       "..................................................");
	_exit(usage_finish("test", 0));
}

static bool tells(int length, int full)
{
	char said[256] = "";
	ssize_t n = 0, got;
	int told[2], status;
	pid_t pid;

	if (pipe(told))
		tap_bail("pipe");
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("fork");
	if (!pid)
		prints(length, full, told[1]);
	close(told[1]);
	while (n < (ssize_t)sizeof(said) - 1 &&
	       (got = read(told[0], said + n, sizeof(said) - 1 - (size_t)n)) > 0)
		n += got;
	close(told[0]);
	if (waitpid(pid, &status, 0) != pid)
		tap_bail("waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1 &&
	    !strcmp(said, "weft test: write error: No space left on device\n"))
		return true;
	tap_diag("%d bytes: status 0x%x, \"%s\"", length, status, said);
	return false;
}

int main(void)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	bool all = true;

	if (full < 0) {
		tap_skip(1, "no /dev/full");
		return tap_done();
	}
	for (int length = BUFFER - 64; length <= BUFFER + 64; length++)
		all &= tells(length, full);
	for (int length = 2 * BUFFER - 8; length <= 2 * BUFFER + 8; length++)
		all &= tells(length, full);
	tap_ok(all, "the cause is told, whatever the length");
	close(full);
	return tap_done();
}
