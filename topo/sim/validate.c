/* SPDX-License-Identifier: BSD-2-Clause */
/* topo/sim/validate: the simulator against what is known without it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topo/sim/validate.h"

int main(int argc, char **argv)
{
	const char *seed = getenv("WEFT_SEED");
	unsigned wrong;

	if (argc >= 2 && strcmp(argv[1], "rank") == 0) {
		const int status = validate_rank(argc - 2, argv + 2);

		if (status >= 0)
			return status;
		argc = 1;
	}
	if (argc >= 2 && strcmp(argv[1], "real") == 0) {
		const int found = validate_real(argv + 1);

		if (found < 0)
			return 77;
		wrong = (unsigned)found;
	} else if (argc == 2 && strcmp(argv[1], "closed-forms") == 0) {
		wrong = validate_closed_forms();
	} else if (argc == 2 && strcmp(argv[1], "max-min") == 0) {
		wrong = validate_max_min(seed ? strtoull(seed, NULL, 10)
					      : (uint64_t)time(NULL));
	} else {
		fprintf(stderr,
			"usage: validate closed-forms | max-min | real [OPTION]...\n"
			"closed-forms: algorithms against their formulas, on an "
			"ideal network\n"
			"max-min: rates against max-min fairness, on small networks "
			"by chance\n"
			"         (WEFT_SEED says which)\n"
			"real: collectives between network namespaces with slow links "
			"against the\n"
			"      simulator with what two ranks measure; options: "
			"topo/sim/real --help;\n"
			"      status 77: not possible here\n");
		return 2;
	}
	printf("validate: %s, %u wrong\n", argv[1], wrong);
	return wrong ? 1 : 0;
}
