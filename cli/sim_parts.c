/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of weft sim that say what is slow or dead, who is late, and what else runs. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/parse.h"
#include "cli/sim.h"
#include "cli/usage.h"

static int wrong(const char *what, const char *value)
{
	return usage_error("sim", what, value);
}

char *sim_item(char **list)
{
	char *item = *list, *comma;

	if (!item)
		return NULL;
	comma = strchr(item, ',');
	if (comma)
		*comma++ = '\0';
	*list = comma;
	return item;
}

bool sim_number(const char *text, double least, double most, double *value)
{
	char *end;

	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	*value = strtod(text, &end);
	return !*end && *value >= least && *value <= most;
}

int sim_fault_parse(struct sim_ask *ask, char *text, bool dead)
{
	struct sim_fault *fault = &ask->fault[ask->faults];
	char *equals = strrchr(text, '=');

	if (ask->faults == SIM_FAULTS_MAX)
		return wrong("--slow and --dead can be given 32 times; one too many is",
			     text);
	fault->part = 0;
	if (!dead) {
		if (!equals || !sim_number(equals + 1, 1e-6, 1, &fault->part))
			return wrong("--slow must be like gpu017=0.5, from 0.000001 to "
				     "1, not",
				     text);
		*equals = '\0';
	}
	fault->name = text;
	ask->faults++;
	return 0;
}

int sim_late_parse(struct sim_ask *ask, char *text, bool factor)
{
	struct sim_late *late = &ask->late[ask->late_count];
	char *equals = strchr(text, '=');
	double value = 0;
	int64_t rank;

	if (ask->late_count == SIM_LATE_MAX)
		return wrong("--late and --lag can be given 16 times; one too many is",
			     text);
	if (equals)
		*equals = '\0';
	if (!equals || !parse_int(text, 0, SIM_RANKS_MAX - 1, &rank) ||
	    !sim_number(equals + 1, factor ? 1 : 0, factor ? 1e6 : 1e12, &value)) {
		if (equals)
			*equals = '=';
		return wrong(factor ? "--lag must be a rank and a factor from 1 to "
				      "1000000, as in 7=1.5, not"
				    : "--late must be a rank and microseconds, as in "
				      "7=250, not",
			     text);
	}
	*late = (struct sim_late){.rank = (int32_t)rank,
				  .by = factor ? 0 : value * 1e-6,
				  .factor = factor ? value : 1};
	ask->late_count++;
	return 0;
}

/* "0-1023/8": a copy is cut up. */
int sim_some_parse(struct sim_some *some, const char *option, const char *text)
{
	char copy[64], what[96], *dash, *slash;
	int64_t first, last, step = 1;

	snprintf(what, sizeof(what),
		 "%s must be ranks FIRST-LAST or FIRST-LAST/STEP, as in 0-63/8, not",
		 option);
	if (strlen(text) >= sizeof(copy))
		return wrong(what, text);
	snprintf(copy, sizeof(copy), "%s", text);
	dash = strchr(copy, '-');
	slash = strchr(copy, '/');
	if (!dash)
		return wrong(what, text);
	*dash = '\0';
	if (slash)
		*slash = '\0';
	if (!parse_int(copy, 0, SIM_RANKS_MAX - 1, &first) ||
	    !parse_int(dash + 1, first, SIM_RANKS_MAX - 1, &last) ||
	    (slash && !parse_int(slash + 1, 1, SIM_RANKS_MAX, &step)))
		return wrong(what, text);
	*some = (struct sim_some){(int32_t)first, (int32_t)(last - (last - first) % step),
				  (int32_t)step};
	return 0;
}

static bool coll_known(const char *coll)
{
	for (size_t i = 0; i < algo_count; i++)
		if (strcmp(algo_table[i].coll, coll) == 0 && !algo_table[i].vector)
			return true;
	return false;
}

static int also_option(struct sim_part *part, char *item)
{
	static const char what[] =
		"--also must be "
		"OPERATION[,bytes=B][,algorithm=A][,ranks=FIRST-LAST[/STEP]]"
		"[,begin=US][,chunk=B], not";
	char *value = strchr(item, '=');

	if (!value)
		return wrong(what, item);
	*value++ = '\0';
	if (strcmp(item, "bytes") == 0)
		return parse_size(value, &part->bytes) && part->bytes <= UINT64_C(1) << 50
			       ? 0
			       : wrong("--also: bytes= must be like 64K, up to 1048576G, "
				       "not",
				       value);
	if (strcmp(item, "chunk") == 0)
		return parse_size(value, &part->chunk) && part->chunk
			       ? 0
			       : wrong("--also: chunk= must be like 64K, not", value);
	if (strcmp(item, "ranks") == 0)
		return sim_some_parse(&part->on, "--also: ranks=", value);
	if (strcmp(item, "begin") == 0) {
		if (!sim_number(value, 0, 1e12, &part->begin))
			return wrong("--also: begin= must be microseconds, not", value);
		part->begin *= 1e-6;
		return 0;
	}
	if (strcmp(item, "algorithm") != 0)
		return wrong(what, item);
	part->algo = algo_find(part->coll, value);
	return part->algo ? 0
			  : wrong("--also: the operation has no algorithm of that name:",
				  value);
}

int sim_also_parse(struct sim_ask *ask, char *text)
{
	struct sim_part part = {.coll = sim_item(&text)};
	bool sized = strcmp(part.coll, "barrier") == 0;

	if (ask->alsos == SIM_ALSO_MAX)
		return wrong("--also can be given 16 times; one too many is", part.coll);
	if (!coll_known(part.coll))
		return wrong("--also begins with an operation, as allgather; there is "
			     "none of that name:",
			     part.coll);
	for (char *item; (item = sim_item(&text));) {
		const int status = also_option(&part, item);

		if (status)
			return status;
		sized = sized || strcmp(item, "bytes") == 0;
	}
	if (!sized)
		return wrong("--also needs bytes=, as in --also allgather,bytes=1M; "
			     "without is",
			     part.coll);
	ask->also[ask->alsos++] = part;
	return 0;
}

int sim_step_check(const struct sim_ask *ask)
{
	if (!ask->layers)
		return wrong(
			"--layers is missing: a list of layers, as weft(1) describes",
			NULL);
	if (ask->bytes_count || ask->on.step || ask->groups || ask->alsos || ask->explain)
		return wrong("step does not know --bytes, --on, --groups, --strided, "
			     "--also and --explain",
			     NULL);
	for (unsigned i = 0; i < ask->late_count; i++)
		if (ask->late[i].by > 0)
			return wrong("step does not know --late; --lag is a rank that "
				     "takes longer for all",
				     NULL);
	if (ask->sharded && ask->bucketed)
		return wrong("--bucket and --sharded cannot be given together", NULL);
	if (!ask->sharded && ask->prefetched)
		return wrong("--prefetch is for --sharded", NULL);
	return -1;
}
