/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forks of test programs that have threads. The C library makes its own allocator whole
 * in the child; that of a sanitizer stays as it was, and when another thread was in the
 * middle of it then, the child waits for that thread for ever. So under a sanitizer a
 * fork waits until all other threads sleep: in poll and the like, not in an allocator.
 */
#ifndef WEFT_UTIL_TAP_FORK_H
#define WEFT_UTIL_TAP_FORK_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/tap.h"

#define TAP_FORK_TRIES 10000 /* of 1 ms and more */

/* State of a thread of this process, as in proc(5); '?': it is gone. */
static char tap_thread_state(int tid)
{
	char path[64], text[512];
	const char *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return '?';
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : '?';
}

/* Without allocating, for what this is for. */
static bool tap_others_sleep(void)
{
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool sleep = true;
	char room[4096];
	ssize_t n;

	while (fd >= 0 && (n = getdents64(fd, room, sizeof(room))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(room + at);

			if (atoi(d->d_name) > 0 && atoi(d->d_name) != gettid() &&
			    !strchr("S?", tap_thread_state(atoi(d->d_name))))
				sleep = false;
			at += d->d_reclen;
		}
	}
	if (fd >= 0)
		close(fd);
	return sleep;
}

/* fork() with nothing left in stdout's buffer. */
__attribute__((unused)) static pid_t tap_fork(void)
{
	fflush(stdout);
	for (int i = 0; TAP_SANITIZED && i < TAP_FORK_TRIES && !tap_others_sleep(); i++)
		usleep(1000);
	return fork();
}

#endif
