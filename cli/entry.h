/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the process began with. Signals: libraries that libfabric brings along
 * install handlers for SIGINT and SIGTERM while they are loaded, which end the process
 * with a status of their own. So these signals are blocked before any library's code
 * runs, and each command says in main() what becomes of them.
 */
#ifndef WEFT_CLI_ENTRY_H
#define WEFT_CLI_ENTRY_H

#include <signal.h>

/* Standard descriptors that were closed become ones that cannot be used: what is opened
 * later must not be taken for them. */
void entry_descriptors(void);

/* Everything as at the beginning: whoever pressed Ctrl-C meanwhile ends the process. */
void entry_signals_release(void);

/* For who reads signals by itself: they stay blocked, and what was installed for them is
 * gone. *mask is the mask of the beginning. */
void entry_signals_keep(sigset_t *mask);

#endif
