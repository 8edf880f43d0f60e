/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI over a provider, collectives: every one, blocking and not, in place, on parts. */
#include "fabtests/clients/mpi/check.h"

#include <stdlib.h>
#include <string.h>

enum { COUNTS = 4 };

static const int counts[COUNTS] = {1, 37, 3000, 50000};

/* What rank r contributes as element i of a vector. */
static int value(int r, int i)
{
	return (r + 1) * 1000 + i % 911;
}

static void values(int *v, int r, int n)
{
	for (int i = 0; i < n; i++)
		v[i] = value(r, i);
}

/* Completes a collective that was started, or takes the blocking one's word. */
static void finish(int result, MPI_Request *request, const char *what)
{
	check_mpi(result, what);
	if (request)
		check_mpi(MPI_Wait(request, MPI_STATUS_IGNORE), what);
}

static void is_value(const int *v, int n, int r, const char *what)
{
	int i = 0;

	while (i < n && v[i] == value(r, i))
		i++;
	check(i == n, "%s: element %d of %d is %d, not %d of rank %d", what, i, n,
	      i < n ? v[i] : 0, value(r, i), r);
}

/* Of the first `ranks` ranks. */
static void is_sum(const int *v, int n, int from, int ranks, const char *what)
{
	int i, want = 0;

	for (i = 0; i < n; i++) {
		want = 0;
		for (int r = 0; r < ranks; r++)
			want += value(r, from + i);
		if (v[i] != want)
			break;
	}
	check(i == n, "%s: element %d of %d is %d, not %d", what, i, n, i < n ? v[i] : 0,
	      want);
}

static void bcast_run(struct check *c)
{
	int *v = check_alloc(sizeof(int) * 50000);
	MPI_Request q;

	for (int root = 0; root < c->size; root++) {
		for (int k = 0; k < COUNTS * 2; k++) {
			int n = counts[k / 2];

			memset(v, 0, sizeof(int) * (size_t)n);
			if (c->rank == root)
				values(v, root, n);
			if (k % 2)
				finish(MPI_Ibcast(v, n, MPI_INT, root, MPI_COMM_WORLD,
						  &q),
				       &q, "ibcast");
			else
				finish(MPI_Bcast(v, n, MPI_INT, root, MPI_COMM_WORLD),
				       NULL, "bcast");
			is_value(v, n, root, "bcast");
		}
	}
	free(v);
}

static void reduce_run(struct check *c)
{
	int *in = check_alloc(sizeof(int) * 50000),
	    *out = check_alloc(sizeof(int) * 50000);
	MPI_Request q;

	for (int root = 0; root < c->size; root++) {
		for (int k = 0; k < COUNTS * 2; k++) {
			int n = counts[k / 2];

			values(in, c->rank, n);
			memset(out, 0, sizeof(int) * (size_t)n);
			if (k % 2)
				finish(MPI_Ireduce(in, out, n, MPI_INT, MPI_SUM, root,
						   MPI_COMM_WORLD, &q),
				       &q, "ireduce");
			else
				finish(MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root,
						  MPI_COMM_WORLD),
				       NULL, "reduce");
			if (c->rank == root)
				is_sum(out, n, 0, c->size, "reduce");
		}
	}
	free(in);
	free(out);
}

static void allreduce_run(struct check *c)
{
	int *in = check_alloc(sizeof(int) * 50000),
	    *out = check_alloc(sizeof(int) * 50000);
	double mine, most, least;
	MPI_Request q;

	for (int k = 0; k < COUNTS; k++) {
		int n = counts[k];

		values(in, c->rank, n);
		finish(MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD), NULL,
		       "allreduce");
		is_sum(out, n, 0, c->size, "allreduce");
		memset(out, 0, sizeof(int) * (size_t)n);
		finish(MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q),
		       &q, "iallreduce");
		is_sum(out, n, 0, c->size, "iallreduce");
		finish(MPI_Allreduce(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM,
				     MPI_COMM_WORLD),
		       NULL, "allreduce in place");
		is_sum(in, n, 0, c->size, "allreduce in place");
	}
	mine = c->rank * 0.5;
	MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	check(most == (c->size - 1) * 0.5 && least == 0, "most %g, least %g", most,
	      least);
	free(in);
	free(out);
}

/* x -> a x + b, of which the order of combination shows. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
	const unsigned *left = in;
	unsigned *right = inout;

	(void)type;
	for (int i = 0; i < *n; i++) {
		unsigned a = left[2 * i], b = left[2 * i + 1];

		right[2 * i + 1] += right[2 * i] * b;
		right[2 * i] *= a;
	}
}

static void scan_run(struct check *c)
{
	unsigned mine[2] = {2u * (unsigned)c->rank + 3, (unsigned)c->rank + 7}, got[2];
	unsigned a = 1, b = 0;
	int *in = check_alloc(sizeof(int) * 3000), *out = check_alloc(sizeof(int) * 3000);
	MPI_Datatype pair;
	MPI_Request q;
	MPI_Op op;

	MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
	MPI_Type_commit(&pair);
	MPI_Op_create(compose, 0, &op);
	for (int r = 0; r < c->size; r++) {
		b = (2u * (unsigned)r + 3) * b + (unsigned)r + 7;
		a *= 2u * (unsigned)r + 3;
	}
	MPI_Allreduce(mine, got, 1, pair, op, MPI_COMM_WORLD);
	check(got[0] == a && got[1] == b,
	      "an operation that does not commute: %u %u, not %u %u", got[0], got[1], a,
	      b);
	MPI_Op_free(&op);
	MPI_Type_free(&pair);
	values(in, c->rank, 3000);
	finish(MPI_Scan(in, out, 3000, MPI_INT, MPI_SUM, MPI_COMM_WORLD), NULL, "scan");
	is_sum(out, 3000, 0, c->rank + 1, "scan");
	finish(MPI_Iscan(in, out, 37, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q), &q, "iscan");
	is_sum(out, 37, 0, c->rank + 1, "iscan");
	finish(MPI_Exscan(in, out, 3000, MPI_INT, MPI_SUM, MPI_COMM_WORLD), NULL,
	       "exscan");
	if (c->rank > 0)
		is_sum(out, 3000, 0, c->rank, "exscan");
	finish(MPI_Iexscan(in, out, 37, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q), &q,
	       "iexscan");
	if (c->rank > 0)
		is_sum(out, 37, 0, c->rank, "iexscan");
	free(in);
	free(out);
}

/* One block for each rank: gather, scatter and all-gather of equal blocks. */
static void blocks_run(struct check *c)
{
	int *all = check_alloc(sizeof(int) * 50000 * (size_t)c->size);
	int *one = check_alloc(sizeof(int) * 50000);
	MPI_Request q;

	for (int k = 0; k < COUNTS * 2; k++) {
		int n = counts[k / 2], root = k % c->size, later = k % 2;

		values(one, c->rank, n);
		memset(all, 0, sizeof(int) * (size_t)n * (size_t)c->size);
		finish(later ? MPI_Igather(one, n, MPI_INT, all, n, MPI_INT, root,
					   MPI_COMM_WORLD, &q)
			     : MPI_Gather(one, n, MPI_INT, all, n, MPI_INT, root,
					  MPI_COMM_WORLD),
		       later ? &q : NULL, "gather");
		for (int r = 0; c->rank == root && r < c->size; r++)
			is_value(all + (size_t)r * (size_t)n, n, r, "gather");
		memset(one, 0, sizeof(int) * (size_t)n);
		finish(later ? MPI_Iscatter(all, n, MPI_INT, one, n, MPI_INT, root,
					    MPI_COMM_WORLD, &q)
			     : MPI_Scatter(all, n, MPI_INT, one, n, MPI_INT, root,
					   MPI_COMM_WORLD),
		       later ? &q : NULL, "scatter");
		is_value(one, n, c->rank, "scatter");
		memset(all, 0, sizeof(int) * (size_t)n * (size_t)c->size);
		finish(later ? MPI_Iallgather(one, n, MPI_INT, all, n, MPI_INT,
					      MPI_COMM_WORLD, &q)
			     : MPI_Allgather(one, n, MPI_INT, all, n, MPI_INT,
					     MPI_COMM_WORLD),
		       later ? &q : NULL, "allgather");
		for (int r = 0; r < c->size; r++)
			is_value(all + (size_t)r * (size_t)n, n, r, "allgather");
	}
	free(all);
	free(one);
}

/* Element i that rank `from` has for rank `to`. */
static int crossed(int from, int to, int i)
{
	return (from * 64 + to) * 5003 + i;
}

static void is_crossed(const int *v, int n, int from, int to, const char *what)
{
	int i = 0;

	while (i < n && v[i] == crossed(from, to, i))
		i++;
	check(i == n, "%s: element %d of %d from %d to %d is wrong", what, i, n, from,
	      to);
}

static void alltoall_run(struct check *c)
{
	const int most = 5000;
	int *out = check_alloc(sizeof(int) * (size_t)most * (size_t)c->size);
	int *in = check_alloc(sizeof(int) * (size_t)most * (size_t)c->size);
	MPI_Request q;

	for (int k = 0; k < 8; k++) {
		int n = k / 2 == 0 ? 1 : k / 2 == 1 ? 50 : k / 2 == 2 ? 1200 : most;

		for (int r = 0; r < c->size; r++)
			for (int i = 0; i < n; i++)
				out[r * n + i] = crossed(c->rank, r, i);
		memset(in, 0, sizeof(int) * (size_t)n * (size_t)c->size);
		finish(k % 2 ? MPI_Ialltoall(out, n, MPI_INT, in, n, MPI_INT,
					     MPI_COMM_WORLD, &q)
			     : MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT,
					    MPI_COMM_WORLD),
		       k % 2 ? &q : NULL, "alltoall");
		for (int r = 0; r < c->size; r++)
			is_crossed(in + r * n, n, r, c->rank, "alltoall");
	}
	free(out);
	free(in);
}

/* How much rank `from` has for `to`: some have nothing. */
static int share(int from, int to)
{
	return (from * 7 + to * 3) % 5 * 700;
}

/* Counts and displacements of what comes to `me` (or goes from it), with gaps. */
static int shares(const struct check *c, int me, bool outgoing, int *n, int *at)
{
	int end = 0;

	for (int r = 0; r < c->size; r++) {
		n[r] = outgoing ? share(me, r) : share(r, me);
		at[r] = end;
		end += n[r] + 3;
	}
	return end;
}

static void alltoallv_run(struct check *c)
{
	int n_out[64], at_out[64], n_in[64], at_in[64];
	int end_out = shares(c, c->rank, true, n_out, at_out);
	int end_in = shares(c, c->rank, false, n_in, at_in);
	int *out = check_alloc(sizeof(int) * (size_t)end_out);
	int *in = check_alloc(sizeof(int) * (size_t)end_in);
	MPI_Request q;

	for (int r = 0; r < c->size; r++)
		for (int i = 0; i < n_out[r]; i++)
			out[at_out[r] + i] = crossed(c->rank, r, i);
	for (int later = 0; later < 2; later++) {
		memset(in, 0xee, sizeof(int) * (size_t)end_in);
		finish(later ? MPI_Ialltoallv(out, n_out, at_out, MPI_INT, in, n_in,
					      at_in, MPI_INT, MPI_COMM_WORLD, &q)
			     : MPI_Alltoallv(out, n_out, at_out, MPI_INT, in, n_in, at_in,
					     MPI_INT, MPI_COMM_WORLD),
		       later ? &q : NULL, "alltoallv");
		for (int r = 0; r < c->size; r++) {
			is_crossed(in + at_in[r], n_in[r], r, c->rank, "alltoallv");
			check(in[at_in[r] + n_in[r]] == (int)0xeeeeeeee,
			      "alltoallv: a gap was written");
		}
	}
	free(out);
	free(in);
}

/* Blocks of different lengths: allgatherv, gatherv and scatterv, and the scattered sum.
 */
static void uneven_run(struct check *c)
{
	int n[64], at[64], total = 0, root = c->size - 1;
	int *all, *one = check_alloc(sizeof(int) * 50000), *sum;

	for (int r = 0; r < c->size; r++) {
		n[r] = (r * 5 + 2) % 4 * 2500;
		at[r] = total;
		total += n[r];
	}
	all = check_alloc(sizeof(int) * (size_t)total);
	sum = check_alloc(sizeof(int) * (size_t)total);
	values(one, c->rank, n[c->rank]);
	finish(MPI_Allgatherv(one, n[c->rank], MPI_INT, all, n, at, MPI_INT,
			      MPI_COMM_WORLD),
	       NULL, "allgatherv");
	for (int r = 0; r < c->size; r++)
		is_value(all + at[r], n[r], r, "allgatherv");
	memset(all, 0, sizeof(int) * (size_t)total);
	finish(MPI_Gatherv(one, n[c->rank], MPI_INT, all, n, at, MPI_INT, root,
			   MPI_COMM_WORLD),
	       NULL, "gatherv");
	for (int r = 0; c->rank == root && r < c->size; r++)
		is_value(all + at[r], n[r], r, "gatherv");
	memset(one, 0, sizeof(int) * (size_t)n[c->rank]);
	finish(MPI_Scatterv(all, n, at, MPI_INT, one, n[c->rank], MPI_INT, root,
			    MPI_COMM_WORLD),
	       NULL, "scatterv");
	is_value(one, n[c->rank], c->rank, "scatterv");
	values(all, c->rank, total);
	finish(MPI_Reduce_scatter(all, sum, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD), NULL,
	       "reduce_scatter");
	is_sum(sum, n[c->rank], at[c->rank], c->size, "reduce_scatter");
	finish(MPI_Reduce_scatter_block(all, sum, total / c->size, MPI_INT, MPI_SUM,
					MPI_COMM_WORLD),
	       NULL, "reduce_scatter_block");
	is_sum(sum, total / c->size, total / c->size * c->rank, c->size,
	       "reduce_scatter_block");
	free(all);
	free(one);
	free(sum);
}

/* Nobody is out of a barrier before everybody is in it. */
static void barrier_run(struct check *c)
{
	int in, least;
	MPI_Request q;
	MPI_Comm twin;

	MPI_Comm_dup(MPI_COMM_WORLD, &twin);
	for (int round = 0; round < 20; round++) {
		/* The last one comes late, and the others must not have gone on. */
		in = 0;
		MPI_Ibarrier(twin, &q);
		if (c->rank != round % c->size)
			MPI_Test(&q, &in, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
		if (!in)
			MPI_Wait(&q, MPI_STATUS_IGNORE);
	}
	in = c->rank;
	MPI_Allreduce(&in, &least, 1, MPI_INT, MPI_MIN, twin);
	check(least == 0, "the least rank is %d", least);
	for (int late = 0; c->size > 1 && late < c->size; late++) {
		int flag = 0;

		if (c->rank == late)
			MPI_Recv(NULL, 0, MPI_INT, (late + 1) % c->size, 1, twin,
				 MPI_STATUS_IGNORE);
		MPI_Ibarrier(MPI_COMM_WORLD, &q);
		if (c->rank == (late + 1) % c->size) {
			for (int i = 0; i < 300 && !flag; i++)
				MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
			check(!flag, "out of a barrier without rank %d", late);
			MPI_Send(NULL, 0, MPI_INT, late, 1, twin);
		}
		if (!flag)
			MPI_Wait(&q, MPI_STATUS_IGNORE);
	}
	MPI_Comm_free(&twin);
}

/* Many at once, waited for in another order than they were started in. */
static void overlapped_run(struct check *c)
{
	enum { DEPTH = 12, N = 4000 };
	int *in = check_alloc(sizeof(int) * DEPTH * N);
	int *out = check_alloc(sizeof(int) * DEPTH * N);
	MPI_Request q[DEPTH];

	for (int d = 0; d < DEPTH; d++) {
		values(in + d * N, c->rank, N);
		if (d % 3 == 0)
			MPI_Iallreduce(in + d * N, out + d * N, N, MPI_INT, MPI_SUM,
				       MPI_COMM_WORLD, &q[d]);
		else if (d % 3 == 1)
			MPI_Ibcast(in + d * N, N, MPI_INT, d % c->size, MPI_COMM_WORLD,
				   &q[d]);
		else
			MPI_Ireduce(in + d * N, out + d * N, N, MPI_INT, MPI_SUM,
				    d % c->size, MPI_COMM_WORLD, &q[d]);
	}
	for (int d = DEPTH - 1; d >= 0; d--) {
		check_mpi(MPI_Wait(&q[d], MPI_STATUS_IGNORE), "wait");
		if (d % 3 == 1)
			is_value(in + d * N, N, d % c->size, "overlapped bcast");
		else if (d % 3 == 0 || c->rank == d % c->size)
			is_sum(out + d * N, N, 0, c->size, "overlapped sum");
	}
	free(in);
	free(out);
}

/* Neighbours on a ring that has no end, and collectives between two groups. */
static void neighbours_run(struct check *c)
{
	int dims[1] = {c->size}, periods[1] = {1}, out[2], in[2] = {-1, -1};
	int left = (c->rank + c->size - 1) % c->size, right = (c->rank + 1) % c->size;
	MPI_Comm ring, half, between;
	int v, want, members = 0;

	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
	out[0] = c->rank * 2;
	out[1] = c->rank * 2 + 1;
	MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
	if (c->size > 2)
		check(in[0] == left * 2 + 1 && in[1] == right * 2, "neighbours: %d %d",
		      in[0], in[1]);
	MPI_Neighbor_allgather(&c->rank, 1, MPI_INT, in, 1, MPI_INT, ring);
	check(in[0] == left && in[1] == right, "neighbours' ranks: %d %d", in[0], in[1]);
	MPI_Comm_free(&ring);
	if (c->size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, c->rank % 2, c->rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, c->rank % 2 ? 0 : 1, 12, &between);
	v = c->rank;
	MPI_Allreduce(&v, &want, 1, MPI_INT, MPI_SUM, between);
	for (int r = 1 - c->rank % 2; r < c->size; r += 2)
		members += r;
	check(want == members, "the other group adds up to %d, not %d", want, members);
	MPI_Comm_free(&between);
	MPI_Comm_free(&half);
}

static const struct check_case cases[] = {
	{"barrier", barrier_run},
	{"bcast", bcast_run},
	{"reduce", reduce_run},
	{"allreduce", allreduce_run},
	{"scan", scan_run},
	{"blocks", blocks_run},
	{"alltoall", alltoall_run},
	{"alltoallv", alltoallv_run},
	{"uneven", uneven_run},
	{"overlapped", overlapped_run},
	{"neighbours", neighbours_run},
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, "coll", MPI_THREAD_SINGLE, cases,
			  sizeof(cases) / sizeof(cases[0]));
}
