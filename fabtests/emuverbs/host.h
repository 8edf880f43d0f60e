/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process has: the file, the name in the network, the thread. */
#ifndef WEFT_FABTESTS_EMUVERBS_HOST_H
#define WEFT_FABTESTS_EMUVERBS_HOST_H

#include <sys/socket.h>
#include <sys/un.h>

#include "fabtests/emuverbs/emu.h"

/* Reads the files once. Without one, or with a wrong one: false, which was said on
 * stderr, and there are no devices. Takes the lock. */
bool emu_host_load(void);

/* Name and thread; 0 or an errno. With the lock. */
int emu_host_start(void);

/* The socket's name of a process of this network. */
socklen_t emu_host_name(unsigned slot, struct sockaddr_un *name);

/* Of who polls and finds nothing: does what the thread would do, and after many times
 * gives the processor away until something completes, for a moment at most. Takes the
 * lock. */
void emu_host_idle(void);
/* Something completed. */
void emu_host_busy(void);

/* There is no going on. */
__attribute__((noreturn)) void emu_host_fail(const char *why);

#endif
