/* SPDX-License-Identifier: BSD-2-Clause */
/* See entry.h. The one mutable state of the process: it is written before main(). */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/entry.h"

static const int entry_signal[] = {SIGINT, SIGTERM};

enum { ENTRY_SIGNALS = sizeof(entry_signal) / sizeof(entry_signal[0]) };

static struct {
	bool taken; /* else the C library knows no .preinit_array */
	sigset_t mask;
	bool ignored[ENTRY_SIGNALS];
} entry;

static void entry_take(void)
{
	struct sigaction old;
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < ENTRY_SIGNALS; i++) {
		sigaddset(&set, entry_signal[i]);
		entry.ignored[i] = sigaction(entry_signal[i], NULL, &old) == 0 &&
				   old.sa_handler == SIG_IGN;
	}
	entry.taken = sigprocmask(SIG_BLOCK, &set, &entry.mask) == 0;
}

void entry_descriptors(void)
{
	/* The wrong way round, so that using them is an error, as it was. */
	static const int mode[] = {O_WRONLY, O_RDONLY, O_RDONLY};

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", mode[fd]); /* the lowest that is free */
}

/* Runs before the constructors of the libraries. */
__attribute__((section(".preinit_array"),
	       used)) static void (*const entry_hook)(void) = entry_take;

void entry_signals_release(void)
{
	if (!entry.taken)
		return;
	for (int i = 0; i < ENTRY_SIGNALS; i++)
		signal(entry_signal[i], entry.ignored[i] ? SIG_IGN : SIG_DFL);
	sigprocmask(SIG_SETMASK, &entry.mask, NULL);
}

void entry_signals_keep(sigset_t *mask)
{
	if (!entry.taken)
		entry_take();
	for (int i = 0; i < ENTRY_SIGNALS; i++)
		signal(entry_signal[i], SIG_DFL);
	*mask = entry.mask;
}
