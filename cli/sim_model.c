/* SPDX-License-Identifier: BSD-2-Clause */
/* weft sim without simulating: terms of the tiers, and what formulas say. */
#include "config.h"

#include <stdio.h>

#include "cli/parse.h"
#include "cli/sim.h"
#include "topo/sim/model.h"

static const char *bound_name(enum fabric_distance bound)
{
	return bound == FABRIC_UNKNOWN ? "ports" : fabric_distance_name(bound);
}

void sim_terms_show(const struct sim_ask *ask, const struct model *model)
{
	for (unsigned i = 0; i < model->tiers; i++) {
		const struct model_tier *t = &model->tier[i];

		printf("  terms, %-8s L %.2f us, o %.2f us, 1/G %.4g GB/s alone, %.4g "
		       "GB/s "
		       "where all send (bound by %s), %d ranks\n",
		       fabric_distance_name(t->tier), t->latency * 1e6, ask->gap * 1e6,
		       t->alone / 1e9, t->shared / 1e9, bound_name(t->bound), t->ranks);
	}
}

static void time_show(const char *what, int32_t ranks, const struct model_time *t)
{
	char limit[64];

	if (t->bytes)
		snprintf(limit, sizeof(limit), "%s of %s",
			 t->bound == FABRIC_UNKNOWN ? "ports" : "links",
			 fabric_distance_name(t->bound == FABRIC_UNKNOWN ? t->tier
									 : t->bound));
	else
		snprintf(limit, sizeof(limit), "latency of %s",
			 fabric_distance_name(t->tier));
	printf("  %-28s %9d ranks %16.3f us   limit: %s\n", what, ranks, t->s * 1e6,
	       limit);
}

bool sim_answer_show(const struct sim_ask *ask, const struct model *model, uint64_t bytes)
{
	struct model_answer a;
	char text[PARSE_SIZE_TEXT];

	if (!model->tiers || !model_answer(model, ask->coll, (double)bytes, ask->gap, &a))
		return false;
	parse_size_print(bytes, text);
	printf("%s, %s, %d ranks, by formula:\n", ask->coll, text,
	       model->tier[model->tiers - 1].ranks);
	time_show("inside a fast domain", a.domain, &a.inside);
	if (a.domains > 1) {
		time_show("across domains", a.domains, &a.across);
		time_show("hierarchical", a.domain * a.domains, &a.both);
	}
	time_show("flat, around all", model->tier[model->tiers - 1].ranks, &a.flat);
	return true;
}
