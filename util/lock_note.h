/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which lock a function wants its caller to hold, for clang's thread-safety analysis
 * (make check-thread-safety); nothing for other compilers. A lock is named by what it
 * is, not by the object that it guards: one name for the locks of all domains. The
 * objects below exist nowhere, only their names are looked at.
 *
 * Calls by pointer are not followed: what an ops table holds says itself what it needs,
 * and is believed.
 */
#ifndef WEFT_UTIL_LOCK_NOTE_H
#define WEFT_UTIL_LOCK_NOTE_H

#ifdef __clang__

struct __attribute__((capability("lock"))) lock_note {
	char nothing;
};

extern struct lock_note lock_domain;  /* prov: "domain lock", "endpoint lock" */
extern struct lock_note lock_wire;    /* prov/wire/shm: what the helper thread shares */
extern struct lock_note lock_context; /* coll: weft_ctx.lock */

/* The caller holds it; the caller does not. */
#define LOCK_HELD(lock)	    __attribute__((requires_capability(lock)))
#define LOCK_NOT_HELD(lock) __attribute__((locks_excluded(lock)))
/* The function takes it, or gives it back. */
#define LOCK_TAKE(lock) \
	__attribute__((acquire_capability(lock), no_thread_safety_analysis))
#define LOCK_GIVE(lock) \
	__attribute__((release_capability(lock), no_thread_safety_analysis))
/* Not followed: nobody else knows of the object yet, or any more, or it depends on a
 * value whether the lock is there. */
#define LOCK_UNSEEN __attribute__((no_thread_safety_analysis))

#else

#define LOCK_HELD(lock)
#define LOCK_NOT_HELD(lock)
#define LOCK_TAKE(lock)
#define LOCK_GIVE(lock)
#define LOCK_UNSEEN

#endif

#endif
