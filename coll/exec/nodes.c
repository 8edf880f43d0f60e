/* SPDX-License-Identifier: BSD-2-Clause */
/* See nodes.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/nodes.h"

enum weft_result nodes_read(const char *text, uint32_t *ranks)
{
	unsigned long value;
	char *end;

	*ranks = 0;
	if (!text || !*text)
		return WEFT_SUCCESS;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !value ||
	    value > NODES_RANKS_MAX)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_NODES is \"%.40s\": it must be how many ranks are "
				 "taken for a node, 1 to %u",
				 text, NODES_RANKS_MAX);
	*ranks = (uint32_t)value;
	return WEFT_SUCCESS;
}

static uint64_t kernel_hash(const char kernel[CROWD_KERNEL_MAX])
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (int i = 0; i < CROWD_KERNEL_MAX; i++)
		hash = (hash ^ (uint8_t)kernel[i]) * UINT64_C(1099511628211);
	return hash ^ hash >> 32;
}

int32_t *nodes_leads(const struct crowd_place *(*place)(const void *arg, int32_t rank),
		     const void *arg, int32_t size, uint32_t fake)
{
	int32_t *lead = malloc((size_t)size * sizeof(*lead)), *first;
	size_t slots = 16;

	while (slots < 2 * (size_t)size)
		slots *= 2;
	first = malloc(slots * sizeof(*first)); /* by hash: who said it first */
	if (!lead || !first) {
		free(lead);
		free(first);
		return NULL;
	}
	memset(first, 0xff, slots * sizeof(*first));
	for (int32_t r = 0; r < size; r++) {
		const struct crowd_place *p = place(arg, r);
		size_t at = kernel_hash(p->kernel) & (slots - 1);

		lead[r] = fake ? r - r % (int32_t)fake : r;
		if (fake || !p->kernel[0])
			continue;
		while (first[at] >= 0 && memcmp(place(arg, first[at])->kernel, p->kernel,
						sizeof(p->kernel)) != 0)
			at = (at + 1) & (slots - 1);
		if (first[at] < 0)
			first[at] = r;
		lead[r] = first[at];
	}
	free(first);
	return lead;
}
