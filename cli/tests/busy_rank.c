/* SPDX-License-Identifier: BSD-2-Clause */
/* A rank for stat.t: all-reduces, one after the other, until it is ended; five minutes at
 * most. */
#include "config.h"

#include <stdio.h>
#include <time.h>

#include "weft/weft.h"

static float mine[16384], sum[16384];

int main(void)
{
	const time_t end = time(NULL) + 300;
	struct weft_ctx *ctx = NULL;
	struct weft_comm *comm = NULL;

	if (weft_ctx_open(NULL, &ctx) != WEFT_SUCCESS ||
	    weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS) {
		fprintf(stderr, "%s\n", weft_error_detail());
		return 1;
	}
	while (time(NULL) < end) {
		if (weft_allreduce(comm, mine, sum, 16384, WEFT_FP32, WEFT_SUM, NULL) !=
		    WEFT_SUCCESS) {
			fprintf(stderr, "%s\n", weft_error_detail());
			return 1;
		}
	}
	return 0;
}
