/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call costs by itself: one rank, whose all-reduce of 8 bytes is a copy, called N
 * times plainly or persistently. To count instructions, take the difference of two N:
 *
 *   valgrind --tool=callgrind --callgrind-out-file=/dev/null bench_calls plain 2000
 *
 * Usage: bench_calls plain|persistent N
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"

static int say(const char *what)
{
	fprintf(stderr, "bench_calls: %s: %s\n", what, weft_error_detail());
	return 1;
}

static int run(struct weft_comm *comm, bool persistent, long count)
{
	uint64_t x = 7, sum = 0;
	struct weft_req *req;

	if (!persistent) {
		for (long i = 0; i < count; i++) {
			if (weft_allreduce(comm, &x, &sum, 1, WEFT_UINT64, WEFT_SUM,
					   NULL))
				return say("weft_allreduce");
		}
		return 0;
	}
	if (weft_allreduce_init(comm, &x, &sum, 1, WEFT_UINT64, WEFT_SUM, NULL, &req))
		return say("weft_allreduce_init");
	for (long i = 0; i < count; i++) {
		if (weft_req_start(req) || weft_req_wait(req, 0))
			return say("weft_req_start");
	}
	return weft_req_free(req) ? say("weft_req_free") : 0;
}

int main(int argc, char **argv)
{
	const long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	int status;

	if (count < 1 || (strcmp(argv[1], "plain") && strcmp(argv[1], "persistent"))) {
		fprintf(stderr, "usage: bench_calls plain|persistent N\n");
		return 2;
	}
	if (weft_ctx_open(NULL, &ctx) || weft_comm_create(ctx, NULL, &comm))
		return say("opening");
	status = run(comm, !strcmp(argv[1], "persistent"), count);
	if (weft_comm_destroy(comm) || weft_ctx_close(ctx))
		status = say("closing");
	return status;
}
