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

	if (argc == 2 && strcmp(argv[1], "closed-forms") == 0) {
		wrong = validate_closed_forms();
	} else if (argc == 2 && strcmp(argv[1], "max-min") == 0) {
		wrong = validate_max_min(seed ? strtoull(seed, NULL, 10)
					      : (uint64_t)time(NULL));
	} else {
		fprintf(stderr,
			"usage: validate closed-forms | max-min\n"
			"closed-forms: algorithms against their formulas, on an "
			"ideal network\n"
			"max-min: rates against max-min fairness, on small networks "
			"by chance\n"
			"         (WEFT_SEED says which)\n");
		return 2;
	}
	printf("validate: %s, %u wrong\n", argv[1], wrong);
	return wrong ? 1 : 0;
}
