/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose turn it is; see uet_turn.h. */
#include "config.h"

#include "prov/wire/uet/uet_turn.h"

#include <sys/syscall.h>
#include <unistd.h>

/* linux/membarrier.h, which older systems lack. */
#define BARRIER		 (1 << 3) /* in each running thread of this process */
#define BARRIER_REGISTER (1 << 4)

static bool barrier(int command)
{
#ifdef SYS_membarrier
	return syscall(SYS_membarrier, command, 0, 0) == 0;
#else
	(void)command;
	return false;
#endif
}

void uet_turn_open(struct uet_turn *turn)
{
	*turn = (struct uet_turn){.fenced = !barrier(BARRIER_REGISTER)};
	pthread_mutex_init(&turn->mutex, NULL);
}

void uet_turn_close(struct uet_turn *turn)
{
	pthread_mutex_destroy(&turn->mutex);
}

void uet_turn_wait(struct uet_turn *turn)
{
	uint64_t calls = atomic_load_explicit(&turn->calls, memory_order_relaxed);

	/* Not in while it waits: the helper may be looking, and goes on then. */
	atomic_store(&turn->calls, calls + 1);
	pthread_mutex_lock(&turn->mutex);
	atomic_store(&turn->calls, calls + 2);
	pthread_mutex_unlock(&turn->mutex);
}

bool uet_turn_try(struct uet_turn *turn)
{
	pthread_mutex_lock(&turn->mutex);
	atomic_store(&turn->helper, true);
	if ((turn->fenced || barrier(BARRIER)) && !(atomic_load(&turn->calls) & 1))
		return true;
	uet_turn_out(turn);
	return false;
}

void uet_turn_out(struct uet_turn *turn)
{
	atomic_store(&turn->helper, false);
	pthread_mutex_unlock(&turn->mutex);
}

uint64_t uet_turn_calls(struct uet_turn *turn)
{
	return atomic_load(&turn->calls);
}
