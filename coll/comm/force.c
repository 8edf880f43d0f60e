/* SPDX-License-Identifier: BSD-2-Clause */
/* See force.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/comm/force.h"

#define FORCE_ITEM_MAX	128
#define FORCE_CHUNK_MAX (UINT64_C(1) << 40)

/* "512k": bytes, above 0. */
static bool bytes_read(const char *text, uint64_t *bytes)
{
	static const char units[] = "kmg";
	const char *unit;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*bytes = strtoull(text, &end, 10);
	if (errno || !*bytes || *bytes > FORCE_CHUNK_MAX)
		return false;
	if (!*end)
		return true;
	unit = strchr(units, *end | 0x20);
	if (!unit || !*unit || end[1])
		return false;
	if (*bytes > FORCE_CHUNK_MAX >> 10 * (unit - units + 1))
		return false;
	*bytes <<= 10 * (unit - units + 1);
	return true;
}

static enum weft_result item_read(char *item, struct force table[WEFT_COLL_COUNT])
{
	char *name = strchr(item, '='), *chunk, list[256];
	int coll = 0;
	struct force *f;

	if (!name)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_ALGO: \"%s\" is not COLLECTIVE=ALGORITHM, like "
				 "allreduce=ring or allreduce=ring:512k",
				 item);
	*name++ = '\0';
	chunk = strchr(name, ':');
	if (chunk)
		*chunk++ = '\0';
	while (coll < WEFT_COLL_COUNT &&
	       strcmp(weft_coll_name((enum weft_coll)coll), item) != 0)
		coll++;
	algo_list(item, list, sizeof(list));
	if (coll == WEFT_COLL_COUNT || !*list)
		return error_set(WEFT_ERR_ARG, "WEFT_ALGO: there is no collective \"%s\"",
				 item);
	f = &table[coll];
	*f = (struct force){.algo = algo_find(item, name)};
	if (!f->algo)
		return error_set(
			WEFT_ERR_ARG,
			"WEFT_ALGO: no algorithm \"%s\" for %s; those there are: "
			"%s",
			name, item, list);
	if (chunk && !bytes_read(chunk, &f->chunk_bytes))
		return error_set(WEFT_ERR_ARG,
				 "WEFT_ALGO: the chunk of %s is \"%s\"; it must be bytes "
				 "above 0, k, m and g are powers of 1024",
				 item, chunk);
	return WEFT_SUCCESS;
}

enum weft_result force_read(const char *text, struct force table[WEFT_COLL_COUNT])
{
	enum weft_result result = WEFT_SUCCESS;

	memset(table, 0, WEFT_COLL_COUNT * sizeof(*table));
	while (text && *text && result == WEFT_SUCCESS) {
		const size_t len = strcspn(text, ",");
		char item[FORCE_ITEM_MAX];

		if (len >= sizeof(item))
			return error_set(
				WEFT_ERR_ARG,
				"WEFT_ALGO: an item of %zu characters is too long", len);
		memcpy(item, text, len);
		item[len] = '\0';
		if (len)
			result = item_read(item, table);
		text += len + (text[len] == ',');
	}
	return result;
}
