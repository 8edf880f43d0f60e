/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI over a provider, derived types: what is packed on one side is laid out on the
 * other, and nothing between the pieces is touched. */
#include "fabtests/clients/mpi/check.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	FRAME = 1 << 20, /* bytes that a type may spread over */
	UNTOUCHED = 0x5a,
};

struct mixed {
	char c;
	double d;
	int16_t s;
	int i[3];
};

struct layout {
	const char *name;
	MPI_Datatype (*make)(void);
	int count;
};

static MPI_Datatype contiguous_make(void)
{
	MPI_Datatype t;

	MPI_Type_contiguous(33, MPI_INT, &t);
	return t;
}

static MPI_Datatype vector_make(void)
{
	MPI_Datatype t;

	MPI_Type_vector(100, 3, 7, MPI_INT, &t);
	return t;
}

static MPI_Datatype hvector_make(void)
{
	MPI_Datatype t;

	MPI_Type_create_hvector(50, 5, 37, MPI_CHAR, &t);
	return t;
}

static MPI_Datatype indexed_make(void)
{
	int lengths[5] = {1, 0, 9, 2, 4}, at[5] = {0, 3, 50, 20, 100};
	MPI_Datatype t;

	MPI_Type_indexed(5, lengths, at, MPI_DOUBLE, &t);
	return t;
}

static MPI_Datatype struct_make(void)
{
	int lengths[4] = {1, 1, 1, 3};
	MPI_Aint at[4] = {offsetof(struct mixed, c), offsetof(struct mixed, d),
			  offsetof(struct mixed, s), offsetof(struct mixed, i)};
	MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_INT16_T, MPI_INT}, plain, t;

	MPI_Type_create_struct(4, lengths, at, types, &plain);
	MPI_Type_create_resized(plain, 0, sizeof(struct mixed), &t);
	MPI_Type_free(&plain);
	return t;
}

static MPI_Datatype subarray_make(void)
{
	int whole[3] = {20, 30, 40}, part[3] = {5, 7, 9}, at[3] = {2, 3, 4};
	MPI_Datatype t;

	MPI_Type_create_subarray(3, whole, part, at, MPI_ORDER_C, MPI_INT, &t);
	return t;
}

/* The types in one another. */
static MPI_Datatype nested_make(void)
{
	MPI_Datatype mixed = struct_make(), t;

	MPI_Type_vector(20, 2, 5, mixed, &t);
	MPI_Type_free(&mixed);
	return t;
}

static const struct layout layouts[] = {
	{"contiguous", contiguous_make, 10}, {"vector", vector_make, 1},
	{"vectors", vector_make, 200},	     {"hvector", hvector_make, 3},
	{"indexed", indexed_make, 7},	     {"struct", struct_make, 1},
	{"structs", struct_make, 5000},	     {"subarray", subarray_make, 2},
	{"nested", nested_make, 100},	     {"empty", vector_make, 0},
};

enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

/* What a receiver's frame must look like: the pieces from `from`, the rest untouched. */
static void is_laid_out(const char *got, const char *from, MPI_Datatype type, int count,
			const char *what)
{
	char *want = check_alloc(FRAME), *packed;
	int size, at = 0, used = 0;

	MPI_Pack_size(count, type, MPI_COMM_SELF, &size);
	packed = check_alloc((size_t)size);
	memset(want, UNTOUCHED, FRAME);
	MPI_Pack(from, count, type, packed, size, &used, MPI_COMM_SELF);
	MPI_Unpack(packed, used, &at, want, count, type, MPI_COMM_SELF);
	check(memcmp(got, want, FRAME) == 0,
	      "%s: wrong bytes, or bytes between the pieces", what);
	free(packed);
	free(want);
}

/* To the right, as the type says on both sides. */
static void exchange(const struct check *c, const struct layout *layout)
{
	int left = (c->rank + c->size - 1) % c->size, right = (c->rank + 1) % c->size;
	char *out = check_alloc(FRAME), *in = check_alloc(FRAME),
	     *sent = check_alloc(FRAME);
	MPI_Datatype type = layout->make();
	MPI_Request request;
	MPI_Status status;
	int elements;

	MPI_Type_commit(&type);
	check_fill(out, FRAME, (unsigned)c->rank);
	check_fill(sent, FRAME, (unsigned)left);
	memset(in, UNTOUCHED, FRAME);
	MPI_Irecv(in, layout->count, type, left, 1, MPI_COMM_WORLD, &request);
	MPI_Send(out, layout->count, type, right, 1, MPI_COMM_WORLD);
	MPI_Wait(&request, &status);
	MPI_Get_count(&status, type, &elements);
	check(elements == layout->count, "%s: %d elements, not %d", layout->name,
	      elements, layout->count);
	is_laid_out(in, sent, type, layout->count, layout->name);
	MPI_Type_free(&type);
	free(out);
	free(in);
	free(sent);
}

static void layouts_run(struct check *c)
{
	for (int i = 0; i < LAYOUTS; i++)
		exchange(c, &layouts[i]);
}

/* Sent as pieces and received as a row, and the other way round. */
static void one_sided_run(struct check *c)
{
	enum { N = 300 };
	int left = (c->rank + c->size - 1) % c->size, right = (c->rank + 1) % c->size;
	int *wide = check_alloc(sizeof(int) * N * 100),
	    *row = check_alloc(sizeof(int) * N);
	MPI_Datatype column;
	MPI_Request request;
	bool good = true;

	MPI_Type_vector(N, 1, 100, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (int i = 0; i < N * 100; i++)
		wide[i] = i % 100 == 0 ? c->rank * N + i / 100 : -1;
	MPI_Irecv(row, N, MPI_INT, left, 1, MPI_COMM_WORLD, &request);
	MPI_Send(wide, 1, column, right, 1, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < N; i++)
		good = good && row[i] == left * N + i;
	check(good, "a column received as a row");
	MPI_Irecv(wide, 1, column, right, 2, MPI_COMM_WORLD, &request);
	MPI_Send(row, N, MPI_INT, left, 2, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	good = true;
	for (int i = 0; i < N * 100; i++)
		good = good && wide[i] == (i % 100 == 0 ? c->rank * N + i / 100 : -1);
	check(good, "a row received as a column");
	MPI_Type_free(&column);
	free(wide);
	free(row);
}

/* Absolute addresses: three arrays that have nothing to do with each other. */
static void bottom_run(struct check *c)
{
	int left = (c->rank + c->size - 1) % c->size, right = (c->rank + 1) % c->size;
	int lengths[3] = {100, 4000, 7};
	char *parts[3];
	MPI_Aint at[3];
	MPI_Datatype type;

	for (int p = 0; p < 3; p++) {
		parts[p] = check_alloc((size_t)lengths[p]);
		check_fill(parts[p], (size_t)lengths[p], (unsigned)(c->rank * 3 + p));
		MPI_Get_address(parts[p], &at[p]);
	}
	MPI_Type_create_hindexed(3, lengths, at, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	MPI_Sendrecv_replace(MPI_BOTTOM, 1, type, right, 1, left, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	for (int p = 0; p < 3; p++) {
		check_bytes(parts[p], (size_t)lengths[p], (unsigned)(left * 3 + p),
			    "part");
		free(parts[p]);
	}
	MPI_Type_free(&type);
}

/* The transpose of a matrix that is spread over the ranks, by types alone. */
static void transpose_run(struct check *c)
{
	enum { B = 40 };
	int n = B * c->size;
	int *mine = check_alloc(sizeof(int) * B * (size_t)n);
	int *turned = check_alloc(sizeof(int) * B * (size_t)n);
	MPI_Datatype column, columns;
	bool good = true;

	/* Rows rank * B and so on; an element of a block's column after the other. */
	for (int r = 0; r < B; r++)
		for (int k = 0; k < n; k++)
			mine[r * n + k] = (c->rank * B + r) * n + k;
	MPI_Type_vector(B, 1, n, MPI_INT, &column);
	MPI_Type_create_resized(column, 0, sizeof(int), &columns);
	MPI_Type_commit(&columns);
	for (int peer = 0; peer < c->size; peer++) {
		int to = (c->rank + peer) % c->size,
		    from = (c->rank + c->size - peer) % c->size;
		MPI_Datatype block;

		MPI_Type_vector(B, B, n, MPI_INT, &block);
		MPI_Type_commit(&block);
		MPI_Sendrecv(mine + to * B, B, columns, to, 3, turned + from * B, 1,
			     block, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Type_free(&block);
	}
	for (int r = 0; r < B; r++)
		for (int k = 0; k < n; k++)
			good = good && turned[r * n + k] == k * n + c->rank * B + r;
	check(good, "the matrix is not transposed");
	MPI_Type_free(&column);
	MPI_Type_free(&columns);
	free(mine);
	free(turned);
}

/* Collectives take them too. */
static void collective_run(struct check *c)
{
	MPI_Datatype mixed = struct_make();
	struct mixed *v = check_alloc(sizeof(*v) * 500);
	int wrong = 0;

	MPI_Type_commit(&mixed);
	memset(v, 0, sizeof(*v) * 500);
	for (int i = 0; c->rank == 0 && i < 500; i++)
		v[i] = (struct mixed){(char)i, i * 0.25, (int16_t)-i, {i, i + 1, i + 2}};
	MPI_Bcast(v, 500, mixed, 0, MPI_COMM_WORLD);
	for (int i = 0; i < 500; i++)
		wrong += v[i].c != (char)i || v[i].d != i * 0.25 || v[i].s != -i ||
			 v[i].i[0] != i || v[i].i[2] != i + 2;
	check(wrong == 0, "%d of 500 structs are wrong", wrong);
	MPI_Type_free(&mixed);
	free(v);
}

static const struct check_case cases[] = {
	{"layouts", layouts_run},	{"one-sided", one_sided_run},
	{"bottom", bottom_run},		{"transpose", transpose_run},
	{"collective", collective_run},
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, "types", MPI_THREAD_SINGLE, cases,
			  sizeof(cases) / sizeof(cases[0]));
}
