/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See armed.h. Handlers write by themselves, since a rank that hangs outside of Weft
 * would never look at a flag; so they call nothing but what handlers may.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/trace/armed.h"
#include "coll/trace/out_path.h"

/* A signal's handler is given nothing, so this is the one thing that is not found from a
 * context. More of them than places are not dumped. */
enum { ARMED_MAX = 16 };
static _Atomic(struct recorder *) armed[ARMED_MAX];
static atomic_uint opened; /* so that two contexts of a process have files of their own */

/* Who came before, by fault; written with the lock, read by handlers once `taken`. */
static const int fault_signal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { FAULTS = sizeof(fault_signal) / sizeof(fault_signal[0]) };
static struct sigaction before[FAULTS];
static atomic_bool taken[FAULTS];
static bool asked_taken; /* SIGUSR2 */
static int arms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void dump_all(enum trace_reason reason, int number)
{
	for (int i = 0; i < ARMED_MAX; i++) {
		const struct recorder *r = atomic_load(&armed[i]);

		if (r)
			recorder_dump(r, reason, number, r->path);
	}
}

static void on_asked(int number)
{
	const int kept = errno;

	dump_all(TRACE_SIGNALLED, number);
	errno = kept;
}

/* What the signal would have done without us. By default the process ends of it: the
 * instruction that made the fault runs again, or, where somebody sent it, it is sent
 * again. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	struct sigaction *then = NULL, plain;

	for (int i = 0; i < FAULTS; i++) {
		if (fault_signal[i] == number)
			then = &before[i];
	}
	if (then && (then->sa_flags & SA_SIGINFO) && then->sa_sigaction) {
		then->sa_sigaction(number, info, context);
		return;
	}
	if (then && then->sa_handler != SIG_DFL && then->sa_handler != SIG_IGN) {
		then->sa_handler(number);
		return;
	}
	if (then && then->sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	memset(&plain, 0, sizeof(plain));
	plain.sa_handler = SIG_DFL;
	sigaction(number, &plain, NULL);
	if (info->si_code <= 0 || number == SIGABRT)
		raise(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	static atomic_flag busy = ATOMIC_FLAG_INIT;
	const int kept = errno;

	/* Once: neither a fault while this is written nor one in another thread writes.
	 */
	if (!atomic_flag_test_and_set(&busy))
		dump_all(TRACE_CRASHED, number);
	errno = kept;
	pass_on(number, info, context);
}

/* The program's own use of the signal goes first. */
static void take_asked(void)
{
	struct sigaction now;

	if (sigaction(SIGUSR2, NULL, &now) || (now.sa_flags & SA_SIGINFO) ||
	    now.sa_handler != SIG_DFL)
		return;
	memset(&now, 0, sizeof(now));
	now.sa_handler = on_asked;
	now.sa_flags = SA_RESTART;
	sigemptyset(&now.sa_mask);
	asked_taken = sigaction(SIGUSR2, &now, NULL) == 0;
}

static void take_faults(void)
{
	for (int i = 0; i < FAULTS; i++) {
		struct sigaction now;

		if (atomic_load(&taken[i]) ||
		    sigaction(fault_signal[i], NULL, &before[i]))
			continue;
		memset(&now, 0, sizeof(now));
		now.sa_sigaction = on_fault;
		/* As it was: another handler may rely on its stack, or on the mask. */
		now.sa_flags =
			SA_SIGINFO | SA_ONSTACK | (before[i].sa_flags & SA_NODEFER);
		now.sa_mask = before[i].sa_mask;
		atomic_store(&taken[i], sigaction(fault_signal[i], &now, NULL) == 0);
	}
}

/* Only where nobody came after us. */
static void give_signals(void)
{
	struct sigaction now, plain;

	for (int i = 0; i < FAULTS; i++) {
		if (!atomic_load(&taken[i]) || sigaction(fault_signal[i], NULL, &now) ||
		    !(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_fault)
			continue;
		sigaction(fault_signal[i], &before[i], NULL);
		atomic_store(&taken[i], false);
	}
	if (asked_taken && !sigaction(SIGUSR2, NULL, &now) &&
	    !(now.sa_flags & SA_SIGINFO) && now.sa_handler == on_asked) {
		memset(&plain, 0, sizeof(plain));
		plain.sa_handler = SIG_DFL;
		sigaction(SIGUSR2, &plain, NULL);
	}
}

static void arm(struct recorder *r)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < ARMED_MAX; i++) {
		struct recorder *none = NULL;

		if (atomic_compare_exchange_strong(&armed[i], &none, r))
			break;
	}
	if (arms++ == 0) {
		take_asked();
		take_faults();
	}
	pthread_mutex_unlock(&lock);
}

enum weft_result armed_add(struct recorder *r, const char *folder)
{
	const struct out_path path = {.variable = "WEFT_TRACE",
				      .folder = folder,
				      .what = "dumps",
				      .prefix = "rank",
				      .suffix = "trace",
				      .rank = r->image->head.rank,
				      .number = atomic_fetch_add(&opened, 1)};
	const enum weft_result result = out_path_set(&path, r->path, sizeof(r->path));

	if (result == WEFT_SUCCESS)
		arm(r);
	return result;
}

void armed_remove(struct recorder *r)
{
	if (!r->path[0])
		return;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < ARMED_MAX; i++) {
		struct recorder *mine = r;

		atomic_compare_exchange_strong(&armed[i], &mine, NULL);
	}
	r->path[0] = '\0';
	if (--arms == 0)
		give_signals();
	pthread_mutex_unlock(&lock);
}
