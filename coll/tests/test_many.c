/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many communicators over the same ranks: they share endpoint, connections, registrations
 * and what peers were told of buffers. One more costs some memory, and nothing else.
 */
#include "config.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>

#include "coll/tests/ranks.h"
#include "util/tap.h"

#define TIMEOUT INT64_C(120000000)
#define RANKS	8
#define COMMS	64
#define COUNT	32768 /* elements: long enough for puts where there are any */

/* Memory of one more communicator that ran a barrier and an all-reduce: its plans, the
 * requests that ran them and stay warm for the next call, and the communicator itself. */
#define COMM_KIB 32

struct cost {
	int32_t files;
	uint64_t handles;
	size_t heap; /* bytes; 0: not known */
};

static struct cost cost_now(struct weft_ctx *ctx)
{
	struct weft_stats stats = {.size = sizeof(stats)};
	struct cost cost = {.heap = mallinfo2().uordblks};
	DIR *dir = opendir("/proc/self/fd");

	while (dir && readdir(dir))
		cost.files++;
	if (dir)
		closedir(dir);
	if (weft_ctx_stats(ctx, &stats) == WEFT_SUCCESS)
		cost.handles = stats.handles;
	return cost;
}

static int work(struct ranks *r, struct weft_comm *comm, const int32_t *src, int32_t *dst)
{
	if (weft_barrier(comm, NULL) != WEFT_SUCCESS ||
	    weft_allreduce(comm, src, dst, COUNT, WEFT_INT32, WEFT_SUM, NULL) !=
		    WEFT_SUCCESS)
		return ranks_say(r, "work: %s", weft_error_detail());
	if (dst[COUNT - 1] != RANKS * (RANKS - 1) / 2)
		return ranks_say(r, "a sum is wrong");
	return RANKS_GOOD;
}

static int compare(struct ranks *r, const struct cost *one, const struct cost *many)
{
	const size_t each =
		many->heap > one->heap ? (many->heap - one->heap) / (COMMS - 1) : 0;

	if (r->rank == 0)
		ranks_say(r, "%zu bytes a communicator, %d files, %llu handles", each,
			  many->files, (unsigned long long)many->handles);
	/* Two ranks that connect to each other at once have a connection more or less,
	 * when that shows. Of something for each communicator there would be 63. */
	if (many->files > one->files + 2 * RANKS)
		return ranks_say(r, "%d files, with one communicator %d", many->files,
				 one->files);
	if (many->handles != one->handles)
		return ranks_say(r, "%llu handles told, with one communicator %llu",
				 (unsigned long long)many->handles,
				 (unsigned long long)one->handles);
	if (each > COMM_KIB * 1024)
		return ranks_say(r, "%zu bytes a communicator, more than %d KiB", each,
				 COMM_KIB);
	return RANKS_GOOD;
}

static int many_body(struct ranks *r)
{
	struct weft_comm *comm[COMMS];
	struct cost one, many;
	struct weft_ctx *ctx;
	int32_t *src = malloc(COUNT * sizeof(*src)), *dst = malloc(COUNT * sizeof(*dst));
	int bad = ranks_open(r, r->arg, TIMEOUT, &ctx);

	if (bad)
		return bad;
	for (int i = 0; src && i < COUNT; i++)
		src[i] = r->rank;
	if (!src || !dst || weft_comm_create(ctx, NULL, &comm[0]) != WEFT_SUCCESS)
		return ranks_say(r, "communicator: %s", weft_error_detail());
	/* Twice: what is only made at first is there then. */
	bad = work(r, comm[0], src, dst) || work(r, comm[0], src, dst);
	one = cost_now(ctx);
	for (int i = 1; i < COMMS && !bad; i++) {
		if (weft_comm_dup(comm[0], NULL, &comm[i]) != WEFT_SUCCESS)
			return ranks_say(r, "dup: %s", weft_error_detail());
		bad = work(r, comm[i], src, dst);
	}
	if (bad)
		return RANKS_BAD;
	many = cost_now(ctx);
	if (compare(r, &one, &many))
		return RANKS_BAD;
	for (int i = COMMS; i-- > 0;) {
		if (weft_comm_destroy(comm[i]) != WEFT_SUCCESS)
			return ranks_say(r, "destroy: %s", weft_error_detail());
	}
	if (weft_ctx_close(ctx) != WEFT_SUCCESS)
		return ranks_say(r, "close: %s", weft_error_detail());
	free(src);
	free(dst);
	return RANKS_GOOD;
}

int main(void)
{
	char names[8][32];
	int count = ranks_providers("weft,tcp", names, 8), end[RANKS_MAX];

	for (int i = 0; i < count; i++) {
		const bool good = ranks_run(RANKS, 240, many_body, names[i], end);

		if (end[0] == RANKS_ABSENT)
			tap_skip(1, "provider %s is not on this machine", names[i]);
		else
			tap_ok(good, "%s: %d communicators over %d ranks", names[i],
			       COMMS, RANKS);
	}
	return tap_done();
}
