/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What weft doctor found: lines, each with a judgement, the figure that it rests on, and
 * what mends it. They have one size, so that ranks can send them to each other as bytes.
 */
#ifndef WEFT_CLI_FINDINGS_H
#define WEFT_CLI_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/json.h"

enum level { LEVEL_PASS, LEVEL_WARN, LEVEL_FAIL, LEVELS };

enum { FINDINGS_MAX = 40, FINDING_NAME = 32, FINDING_TEXT = 320, FINDING_HOST = 64 };

struct finding {
	uint32_t level; /* enum level */
	char name[FINDING_NAME];
	char figure[FINDING_TEXT]; /* what was found */
	char cure[FINDING_TEXT]; /* a command or a variable; "": nothing is to be done */
};

struct findings {
	char host[FINDING_HOST]; /* where they are from; "": from all together */
	int32_t cpus;		 /* that host's hardware threads */
	int32_t count;
	struct finding list[FINDINGS_MAX];
};

/* "PASS", "WARN", "FAIL". */
const char *level_name(enum level level);

/* Adds one; beyond FINDINGS_MAX it is dropped. cure NULL: none. */
__attribute__((format(printf, 5, 6))) void findings_add(struct findings *f,
							enum level level,
							const char *name,
							const char *cure, const char *fmt,
							...);

/*
 * Shows what `sets` say, `count` of them: what several say in the same words is one line,
 * with the hosts where some say it and others don't. What came from elsewhere is not
 * trusted to be text. Adds to total[LEVELS].
 */
void findings_text(const struct findings *sets, int count, int total[LEVELS]);
/* As members of an array of objects. */
void findings_json(struct json *j, const struct findings *sets, int count,
		   int total[LEVELS]);

#endif
