/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A coordinator and members of fault-tolerant all-reduces for tests, a process each. What
 * they are told lies in memory that all share; the test itself calls nothing of the
 * library, waits for events, and gives up after CREW_WAIT_S.
 */
#ifndef WEFT_FTAR_TESTS_CREW_H
#define WEFT_FTAR_TESTS_CREW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "weft/weft.h"

enum { CREW_MEMBERS = 8, CREW_STEPS = 4096, CREW_WAIT_S = 120, CREW_TEXT = 600 };

struct crew_member {
	pid_t pid;		 /* the test's; 0: none */
	_Atomic uint64_t joined; /* 1 + step then */
	_Atomic uint64_t step, runs, epochs, buried;
	_Atomic int result; /* 1 + enum weft_result that it ended with; 0: goes on */
	char text[CREW_TEXT];
	/* Of each step that counted: who contributed (bits), and how many took part. */
	uint8_t who[CREW_STEPS], live[CREW_STEPS];
	_Atomic int wrong; /* elements that were not as the others, ... */
	/* orders, before it starts */
	uint64_t count;
	bool in_place;
	bool average; /* of doubles; else sums of integers */
	uint64_t sign;
	uint32_t group;
	int64_t timeout_us;	 /* of a step */
	uint64_t other_count_at; /* at this step another count; 0: never */
	/* orders, at any time */
	_Atomic uint64_t until;	 /* steps that it does */
	_Atomic uint64_t silent; /* up to this step it contributes nothing */
	atomic_bool leave;	 /* when it has done them; else it closes */
};

struct crew {
	char folder[64];
	char address[80];
	uint32_t size;
	uint32_t group_size;
	int64_t silence_us;
	pid_t coordinator;
	_Atomic int up;
	struct crew_member member[CREW_MEMBERS];
};

/* How long a member may be silent, where one shall be missed, and where none shall be,
 * however busy the machine is. */
enum { CREW_MISSED_US = 6000000, CREW_PATIENT_US = 100000000 };

/* With a coordinator that waits for `size` members at first. */
struct crew *crew_make(uint32_t size, int64_t silence_us, const char *provider);
/* The same with groups of so many: members 0, 1, ... of the first one, and so on. */
struct crew *crew_groups(uint32_t size, uint32_t group_size, int64_t silence_us,
			 const char *provider);
void crew_end(struct crew *crew); /* kills what runs */

void crew_start(struct crew *crew, int member);
void crew_signal(struct crew *crew, int member, int signal);
/* Until a member is there; false: not in time. */
bool crew_wait(const _Atomic uint64_t *value, uint64_t least);
/* Lets the members of a mask do steps up to one, and waits until they have, or ended. */
bool crew_steps(struct crew *crew, uint32_t mask, uint64_t step);
/* What a member ended with. */
enum weft_result crew_result(struct crew *crew, int member);
/* Whether whoever counted a step counted the same, with all elements alike. */
bool crew_agrees(const struct crew *crew);

#endif
