/* SPDX-License-Identifier: BSD-2-Clause */
/* Heat in a ring of cells, of which each rank has some: neighbours write their edge cells
 * to each other by puts, and a signal behind each put says that it is there. */
#include <math.h>
#include <string.h>

#include "check.h"

enum { CELLS = 8, STEPS = 50 };

/* What neighbours write. A neighbour can be one step ahead, and never two, since it waits
 * for this rank's edge of each step: so two places for each edge, used in turn. */
struct halo {
	double left[2], right[2];
};

enum { FROM_LEFT, FROM_RIGHT }; /* signal words */

static double begin(int cell)
{
	return cell % 5 == 0 ? 100.0 : 0.0;
}

/* A step of n cells, whose neighbours are left and right. */
static void step_of(double *cell, int n, double left, double right)
{
	for (int i = 0; i < n; i++) {
		double here = cell[i], next = i + 1 < n ? cell[i + 1] : right;

		cell[i] = here + 0.25 * (left - 2 * here + next);
		left = here;
	}
}

/* All steps with the neighbours' help. */
static void heat(struct weft_win *win, const struct halo *halo, double *cell,
		 int32_t left, int32_t right)
{
	for (int step = 0; step < STEPS; step++) {
		int turn = step % 2;
		size_t in_left =
			offsetof(struct halo, left) + (size_t)turn * sizeof(double);
		size_t in_right =
			offsetof(struct halo, right) + (size_t)turn * sizeof(double);

		check("put", weft_win_put_signal(win, &cell[CELLS - 1], sizeof(double),
						 right, in_left, FROM_LEFT, 1));
		check("put", weft_win_put_signal(win, &cell[0], sizeof(double), left,
						 in_right, FROM_RIGHT, 1));
		check("wait", weft_win_wait(win, FROM_LEFT, 1, WEFT_TIMEOUT_DEFAULT));
		check("wait", weft_win_wait(win, FROM_RIGHT, 1, WEFT_TIMEOUT_DEFAULT));
		/* The cells that were put are about to change. */
		check("flush", weft_win_flush(win, -1, WEFT_TIMEOUT_DEFAULT));
		step_of(cell, CELLS, halo->left[turn], halo->right[turn]);
	}
}

/* The same in one process, and how many of this rank's cells differ. */
static int differ(const double *cell, int32_t rank, int32_t size)
{
	int n = size * CELLS, bad = 0;
	double *all = room((size_t)n, sizeof(*all));

	for (int i = 0; i < n; i++)
		all[i] = begin(i);
	for (int step = 0; step < STEPS; step++)
		step_of(all, n, all[n - 1], all[0]);
	for (int i = 0; i < CELLS; i++)
		bad += !(fabs(all[rank * CELLS + i] - cell[i]) < 1e-9);
	free(all);
	return bad;
}

int main(void)
{
	struct weft_ctx *ctx;
	struct weft_comm *comm;
	struct weft_win *win;
	struct halo halo;
	double cell[CELLS];
	int32_t rank, size;
	int bad;

	memset(&halo, 0, sizeof(halo));
	check("open", weft_ctx_open(NULL, &ctx));
	check("communicator", weft_comm_create(ctx, NULL, &comm));
	rank = weft_comm_rank(comm);
	size = weft_comm_size(comm);
	for (int i = 0; i < CELLS; i++)
		cell[i] = begin(rank * CELLS + i);
	check("window", weft_win_create(comm, &halo, sizeof(halo), NULL, &win));
	heat(win, &halo, cell, (rank + size - 1) % size, (rank + 1) % size);
	check("destroy window", weft_win_destroy(win));

	bad = differ(cell, rank, size);
	check("sum of errors",
	      weft_allreduce(comm, &bad, &bad, 1, WEFT_INT32, WEFT_SUM, NULL));
	if (rank == 0)
		printf("%d ranks, %d cells, %d steps: %d cells differ from those of one "
		       "process\n",
		       size, size * CELLS, STEPS, bad);
	check("destroy", weft_comm_destroy(comm));
	check("close", weft_ctx_close(ctx));
	return bad != 0;
}
