/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_dumps RANKS FAULT BAD FOLDER [CALLS [MESSAGES]]: the dumps of a job that never ran
 * (synth.h), to see what weft trace analyze makes of them, and how long it takes.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/analyze/tests/synth.h"

int main(int argc, char **argv)
{
	struct synth s = {.seed = 1,
			  .offset_max = 1000000000,
			  .drift_max = 5e-5,
			  .calls = 16,
			  .messages = 2};
	int fault = 0;

	if (argc < 5 || argc > 7) {
		fprintf(stderr, "usage: make_dumps RANKS FAULT BAD FOLDER [CALLS "
				"[MESSAGES]]\n");
		return 2;
	}
	while (fault < SYNTH_FAULTS && strcmp(synth_name[fault], argv[2]) != 0)
		fault++;
	s.size = (int32_t)strtol(argv[1], NULL, 10);
	s.bad = (int32_t)strtol(argv[3], NULL, 10);
	s.fault = (enum synth_fault)fault;
	if (argc > 5)
		s.calls = (int)strtol(argv[5], NULL, 10);
	if (argc > 6)
		s.messages = (int)strtol(argv[6], NULL, 10);
	if (fault == SYNTH_FAULTS || s.size < 2 || s.bad < 0 || s.bad >= s.size ||
	    s.calls < 1 || s.calls > 64 || s.messages < 0 || s.messages > 64) {
		fprintf(stderr, "make_dumps: something is out of range\n");
		return 2;
	}
	for (int32_t r = 0; r < s.size; r++) {
		if (synth_write(&s, r, argv[4]))
			continue;
		fprintf(stderr, "make_dumps: rank %d in %s: %s\n", r, argv[4],
			strerror(errno));
		return 1;
	}
	return 0;
}
