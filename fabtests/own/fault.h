/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls that fail when told to. fault.c defines them in the test program, whose
 * symbols come before the C library's for everything that is loaded, the provider
 * included; so the failing call is the provider's own.
 */
#ifndef WEFT_FABTESTS_OWN_FAULT_H
#define WEFT_FABTESTS_OWN_FAULT_H

#include <stdbool.h>

enum fault_call {
	FAULT_MEMFD_CREATE,
	FAULT_MMAP,
	FAULT_SOCKET,
	FAULT_SOCKETPAIR,
	FAULT_EVENTFD,
	FAULT_EPOLL_CREATE,
	FAULT_ACCEPT,
	FAULT_THREAD,
	FAULT_CALLS
};

extern const char *const fault_names[FAULT_CALLS];

/* The nth call from now on (1: the next) fails with that errno; for ever: and all after
 * it. Counts calls of the whole process. */
void fault_arm(enum fault_call call, int err, int nth, bool for_ever);
/* Nothing fails any more. true if something did since it was armed. */
bool fault_disarm(void);

#endif
