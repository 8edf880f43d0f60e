/* SPDX-License-Identifier: BSD-2-Clause */
/* WEFT_ALGO: what is accepted, and the sentence for what is not. */
#include "config.h"

#include <string.h>

#include "coll/api/error.h"
#include "coll/comm/force.h"
#include "util/tap.h"

static void refused(const char *text, const char *word)
{
	struct force table[WEFT_COLL_COUNT];
	const enum weft_result result = force_read(text, table);

	tap_ok(result == WEFT_ERR_ARG && strstr(weft_error_detail(), word),
	       "\"%s\" is refused: %s", text, weft_error_detail());
}

int main(void)
{
	struct force table[WEFT_COLL_COUNT];

	tap_ok(force_read(NULL, table) == WEFT_SUCCESS &&
		       !table[WEFT_COLL_ALLREDUCE].algo,
	       "nothing: the library chooses");
	tap_ok(force_read("", table) == WEFT_SUCCESS, "an empty text is nothing");
	tap_ok(force_read("allreduce=ring:512k,allgather=ffbruck,", table) ==
		       WEFT_SUCCESS,
	       "two collectives");
	tap_is_str(table[WEFT_COLL_ALLREDUCE].algo->name, "ring", "the first");
	tap_ok(table[WEFT_COLL_ALLREDUCE].chunk_bytes == 512 * 1024, "and its chunk");
	tap_is_str(table[WEFT_COLL_ALLGATHER].algo->name, "ffbruck", "the second");
	tap_ok(table[WEFT_COLL_ALLGATHER].chunk_bytes == 0, "with a chunk of its own");
	tap_ok(!table[WEFT_COLL_BROADCAST].algo, "others are chosen");
	tap_ok(force_read("allreduce=ring:4k,allreduce=ring", table) == WEFT_SUCCESS &&
		       table[WEFT_COLL_ALLREDUCE].chunk_bytes == 0,
	       "the last one counts, and nothing of those before it");
	refused("ring", "COLLECTIVE=ALGORITHM");
	refused("allredux=ring", "no collective");
	refused("alltoallv_dynamic=ring", "direct, pairwise");
	refused("allreduce=magic", "ring, recursive-doubling");
	refused("allreduce=", "ring, recursive-doubling");
	refused("allreduce=ring:", "bytes above 0");
	refused("allreduce=ring:0", "bytes above 0");
	refused("allreduce=ring:-1", "bytes above 0");
	refused("allreduce=ring:1q", "bytes above 0");
	refused("allreduce=ring:1kk", "bytes above 0");
	refused("allreduce=ring:2000000g", "bytes above 0");
	return tap_done();
}
