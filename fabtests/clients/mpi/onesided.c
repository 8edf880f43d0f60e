/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI over a provider, one-sided: puts, gets and atomic updates under every way to order
 * them. Which of the MPI's one-sided components is used says the command line. */
#include "fabtests/clients/mpi/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLICE = 70000, /* bytes of a window for each origin */
	ADDS = 50,
};

static int right_of(const struct check *c)
{
	return (c->rank + 1) % c->size;
}

static int left_of(const struct check *c)
{
	return (c->rank + c->size - 1) % c->size;
}

/* Puts between two fences: everybody's slice of everybody's window. */
static void fence_run(struct check *c)
{
	static const int sizes[] = {1, 8, 100, 5000, SLICE};
	char *window, *out = check_alloc(SLICE);
	MPI_Win win;

	MPI_Win_allocate((MPI_Aint)SLICE * c->size, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
			 &window, &win);
	for (int s = 0; s < 5; s++) {
		MPI_Win_fence(0, win);
		check_fill(out, (size_t)sizes[s], (unsigned)(c->rank * 10 + s));
		for (int r = 0; r < c->size; r++)
			check_mpi(MPI_Put(out, sizes[s], MPI_BYTE, r,
					  (MPI_Aint)SLICE * c->rank, sizes[s], MPI_BYTE,
					  win),
				  "put");
		MPI_Win_fence(0, win);
		for (int r = 0; r < c->size; r++)
			check_bytes(window + (size_t)SLICE * (size_t)r, (size_t)sizes[s],
				    (unsigned)(r * 10 + s), "put");
	}
	MPI_Win_free(&win);
	free(out);
}

/* Gets, of memory that the application brought. */
static void get_run(struct check *c)
{
	char *mine = check_alloc(SLICE), *in = check_alloc(SLICE);
	MPI_Win win;

	check_fill(mine, SLICE, (unsigned)c->rank);
	MPI_Win_create(mine, SLICE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int r = 0; r < c->size; r++) {
		memset(in, 0, SLICE);
		MPI_Win_lock(MPI_LOCK_SHARED, r, 0, win);
		check_mpi(MPI_Get(in, SLICE, MPI_BYTE, r, 0, SLICE, MPI_BYTE, win),
			  "get");
		MPI_Win_unlock(r, win);
		check_bytes(in, SLICE, (unsigned)r, "get");
	}
	MPI_Win_free(&win);
	free(mine);
	free(in);
}

/* Origin and target name each other. */
static void groups_run(struct check *c)
{
	int left = left_of(c), right = right_of(c), *window, v;
	MPI_Group world, to, from;
	MPI_Win win;

	if (c->size < 2)
		return;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &right, &to);
	MPI_Group_incl(world, 1, &left, &from);
	MPI_Win_allocate(100 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &window, &win);
	for (int round = 0; round < 20; round++) {
		MPI_Win_post(from, 0, win);
		MPI_Win_start(to, 0, win);
		v = c->rank * 100 + round;
		MPI_Put(&v, 1, MPI_INT, right, round, 1, MPI_INT, win);
		MPI_Win_complete(win);
		MPI_Win_wait(win);
		check(window[round] == left * 100 + round, "round %d: %d", round,
		      window[round]);
	}
	MPI_Win_free(&win);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&world);
}

/* A counter that everybody raises: fetch and add, and each value is seen once. */
static void fetch_run(struct check *c)
{
	int64_t *window, one = 1, got;
	char *seen = check_alloc((size_t)ADDS * (size_t)c->size), *all;
	MPI_Win win;

	all = check_alloc((size_t)ADDS * (size_t)c->size);
	memset(seen, 0, (size_t)ADDS * (size_t)c->size);
	MPI_Win_allocate(sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &window, &win);
	*window = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < ADDS; i++) {
		MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		if (check(got >= 0 && got < (int64_t)ADDS * c->size, "fetched %lld",
			  (long long)got))
			seen[got] = 1;
	}
	MPI_Win_unlock_all(win);
	MPI_Reduce(seen, all, ADDS * c->size, MPI_CHAR, MPI_SUM, 0, MPI_COMM_WORLD);
	for (int i = 0; c->rank == 0 && i < ADDS * c->size; i++)
		check(all[i] == 1, "value %d was seen %d times", i, all[i]);
	MPI_Win_free(&win);
	free(seen);
	free(all);
}

/* A lock made of compare and swap; what it guards is not atomic by itself. */
static void swap_run(struct check *c)
{
	enum { FREE = -1, ROUNDS = 10 };
	int *window, mine = c->rank, nobody = FREE, old, v;
	MPI_Win win;

	MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &window, &win);
	window[0] = FREE;
	window[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < ROUNDS; i++) {
		do {
			MPI_Compare_and_swap(&mine, &nobody, &old, MPI_INT, 0, 0, win);
			MPI_Win_flush(0, win);
		} while (old != FREE);
		MPI_Get(&v, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
		MPI_Win_flush(0, win);
		v++;
		MPI_Put(&v, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
		MPI_Win_flush(0, win);
		MPI_Accumulate(&nobody, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win);
		MPI_Win_flush(0, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Get(&v, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
	MPI_Win_unlock(0, win);
	check(v == ROUNDS * c->size, "%d rounds under the lock, not %d", v,
	      ROUNDS * c->size);
	MPI_Win_free(&win);
}

/* Vectors that are added up at the target, and fetched at the same time. */
static void accumulate_run(struct check *c)
{
	enum { N = 3000 };
	double *window, *out = check_alloc(sizeof(double) * N);
	double *old = check_alloc(sizeof(double) * N);
	int wrong = 0, target = c->size - 1;
	MPI_Win win;

	MPI_Win_allocate(sizeof(double) * N, sizeof(double), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &window, &win);
	for (int i = 0; i < N; i++) {
		window[i] = i;
		out[i] = (c->rank + 1) * (i % 10);
	}
	MPI_Win_fence(0, win);
	for (int round = 0; round < 3; round++)
		MPI_Accumulate(out, N, MPI_DOUBLE, target, 0, N, MPI_DOUBLE, MPI_SUM,
			       win);
	MPI_Win_fence(0, win);
	for (int i = 0; c->rank == target && i < N; i++)
		wrong += window[i] != i + 3 * (i % 10) * c->size * (c->size + 1) / 2;
	check(wrong == 0, "%d of %d sums are wrong", wrong, N);
	MPI_Win_fence(0, win);
	MPI_Get_accumulate(out, N, MPI_DOUBLE, old, N, MPI_DOUBLE, c->rank, 0, N,
			   MPI_DOUBLE, MPI_MAX, win);
	MPI_Win_fence(0, win);
	wrong = 0;
	for (int i = 0; i < N; i++)
		wrong += window[i] < old[i] || window[i] < out[i] ||
			 (window[i] != old[i] && window[i] != out[i]);
	check(wrong == 0, "%d of %d greater values are wrong", wrong, N);
	MPI_Win_free(&win);
	free(out);
	free(old);
}

/* Requests of single operations, and pieces on both sides. */
static void pieces_run(struct check *c)
{
	enum { ROWS = 60, COLUMNS = 50 };
	int *window, in[ROWS], out[ROWS], wrong = 0, right = right_of(c),
					  left = left_of(c);
	MPI_Datatype column;
	MPI_Request request;
	MPI_Win win;

	MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Win_allocate(sizeof(int) * ROWS * COLUMNS, sizeof(int), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &window, &win);
	memset(window, 0, sizeof(int) * ROWS * COLUMNS);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < ROWS; i++)
		out[i] = c->rank * ROWS + i;
	MPI_Win_lock_all(0, win);
	MPI_Rput(out, ROWS, MPI_INT, right, 7, 1, column, win, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Win_flush_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Rget(in, ROWS, MPI_INT, c->rank, 7, 1, column, win, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Win_unlock_all(win);
	for (int i = 0; i < ROWS; i++)
		wrong += in[i] != left * ROWS + i;
	check(wrong == 0, "%d of %d elements of a column are wrong", wrong, ROWS);
	MPI_Win_free(&win);
	MPI_Type_free(&column);
}

/* Memory that is added to a window later. */
static void dynamic_run(struct check *c)
{
	char *memory = check_alloc(SLICE), *out = check_alloc(SLICE);
	int right = right_of(c), left = left_of(c);
	MPI_Aint mine, theirs;
	MPI_Win win;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	check_mpi(MPI_Win_attach(win, memory, SLICE), "attach");
	MPI_Get_address(memory, &mine);
	MPI_Sendrecv(&mine, 1, MPI_AINT, left, 1, &theirs, 1, MPI_AINT, right, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_fill(out, SLICE, (unsigned)c->rank);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
	MPI_Put(out, SLICE, MPI_BYTE, right, theirs, SLICE, MPI_BYTE, win);
	MPI_Win_unlock(right, win);
	MPI_Barrier(MPI_COMM_WORLD);
	/* So that what others wrote is seen. */
	MPI_Win_lock(MPI_LOCK_SHARED, c->rank, 0, win);
	check_bytes(memory, SLICE, (unsigned)left, "attached");
	MPI_Win_unlock(c->rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_detach(win, memory);
	MPI_Win_free(&win);
	free(memory);
	free(out);
}

static const struct check_case cases[] = {
	{"fence", fence_run},	{"get", get_run},	  {"groups", groups_run},
	{"fetch", fetch_run},	{"swap", swap_run},	  {"accumulate", accumulate_run},
	{"pieces", pieces_run}, {"dynamic", dynamic_run},
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, "onesided", MPI_THREAD_SINGLE, cases,
			  sizeof(cases) / sizeof(cases[0]));
}
