/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of algorithms that somebody measured (weft tune), to choose by in place of the
 * built-in limits: a JSON document, named by WEFT_TUNE. It comes from a file and is not
 * trusted: what is not as it must be is refused with the place.
 *
 *   {"schema": 1, "kind": "weft-tune", "provider": "weft",
 *    "cost": {"alpha_ps": 1500000, "beta_fs": 90000, "gamma_fs": 50000},
 *    "choices": [
 *     {"collective": "allreduce", "ranks": 4, "up_to": 8192,
 *      "algorithm": "recursive-doubling"}, ...]}
 *
 * Values under other keys are passed over. up_to is bytes, of the vector or of a block as
 * the call's count says; the last entry of its number of ranks is for all that is longer.
 * "cost", which may be absent, are the terms of a model (cost.h) for what the choices do
 * not have. WEFT_TUNE=measure is no file but those terms alone, which are measured when
 * the first communicator of a context is made (coll/comm/measure.h).
 */
#ifndef WEFT_TUNE_TUNE_H
#define WEFT_TUNE_TUNE_H

#include "coll/algo/algo.h"
#include "coll/tune/cost.h"
#include "weft/weft.h"

#define TUNE_SCHEMA	 1
#define TUNE_KIND	 "weft-tune"
#define TUNE_MEASURE	 "measure"     /* in place of a file */
#define TUNE_FILE_MAX	 (1024 * 1024) /* bytes */
#define TUNE_CHOICES_MAX 16384

struct tune_choice {
	const struct algo *algo; /* of its collective */
	int32_t ranks;
	uint64_t up_to;
};

struct tune {
	uint64_t hash; /* of the choices: the same on all ranks, or they choose apart */
	char provider[32];
	bool measure;		/* terms are to be measured */
	struct cost_terms cost; /* alpha_ps 0: none, or none yet */
	uint32_t count;
	struct tune_choice choice[]; /* by collective, ranks, up_to */
};

/* path NULL or "": no table, *tune is NULL. ARG: the file, and what is wrong with it. */
enum weft_result tune_open(const char *path, struct tune **tune);
/* The same of a text in memory; name is for the sentence. */
enum weft_result tune_parse(const char *name, const char *text, size_t len,
			    struct tune **tune);
void tune_close(struct tune *tune);

/* Whether a choice of this algorithm counts for the call: it can do it, and as what it is
 * called: lines (ALGO_LINES) where the ranks share memory, and as far as that reaches. */
bool tune_counts(const struct algo *algo, const struct plan_call *call);

/* What the table says for a call of that collective: of the number of ranks that is
 * nearest, the first that is long enough. NULL: nothing, or what does not count for
 * the call. */
const struct tune_choice *tune_find(const struct tune *tune, const char *coll,
				    const struct plan_call *call);

/* By choices, the model or the built-in limits, whichever is there first; NULL: none can
 * do the call. tune may be NULL. */
const struct algo *tune_choose(const struct tune *tune, const char *coll,
			       const struct plan_call *call);
/* What tune_choose() goes by, in words. */
void tune_say(const struct tune *tune, const char *coll, const struct plan_call *call,
	      char *text, size_t len);

#endif
