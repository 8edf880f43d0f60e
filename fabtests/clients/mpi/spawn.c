/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI over a provider, ranks that are started later: either they are refused with an
 * error, or they are there and can be talked to.
 */
#include "fabtests/clients/mpi/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 2, BYTES = 70000 };

static const char *program;

/* Both sides: everybody's number is added up over all of them. */
static void together(struct check *c, MPI_Comm between, bool parent)
{
	MPI_Comm all;
	int rank, size, sum = 0;

	MPI_Intercomm_merge(between, !parent, &all);
	MPI_Comm_rank(all, &rank);
	MPI_Comm_size(all, &size);
	check(!parent || rank == c->rank, "rank %d became %d", c->rank, rank);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
	check(sum == size * (size - 1) / 2, "%d ranks add up to %d", size, sum);
	MPI_Comm_free(&all);
}

static void child_run(struct check *c)
{
	char *buf = check_alloc(BYTES);
	MPI_Comm parent;

	MPI_Comm_get_parent(&parent);
	MPI_Recv(buf, BYTES, MPI_BYTE, 0, 7, parent, MPI_STATUS_IGNORE);
	check_bytes(buf, BYTES, (unsigned)c->rank, "to a child");
	MPI_Send(buf, BYTES, MPI_BYTE, 0, 8, parent);
	together(c, parent, false);
	MPI_Comm_disconnect(&parent);
	free(buf);
}

static void spawn_run(struct check *c)
{
	char *argv[] = {(char *)"child", NULL}, *buf = check_alloc(BYTES), text[300] = "";
	int errors[CHILDREN] = {0}, result, length = 0;
	MPI_Comm children = MPI_COMM_NULL;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	result = MPI_Comm_spawn(program, argv, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
				&children, errors);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	check(result != MPI_SUCCESS || children != MPI_COMM_NULL, "spawned nobody");
	if (result != MPI_SUCCESS)
		MPI_Error_string(result, text, &length);
	if (c->rank == 0)
		printf("spawn is %s%s\n",
		       result == MPI_SUCCESS ? "there" : "refused: ", text);
	for (int i = 0; c->rank == 0 && result == MPI_SUCCESS && i < CHILDREN; i++) {
		check_fill(buf, BYTES, (unsigned)i);
		MPI_Send(buf, BYTES, MPI_BYTE, i, 7, children);
		memset(buf, 0, BYTES);
		MPI_Recv(buf, BYTES, MPI_BYTE, i, 8, children, MPI_STATUS_IGNORE);
		check_bytes(buf, BYTES, (unsigned)i, "back from a child");
	}
	if (result == MPI_SUCCESS) {
		together(c, children, true);
		MPI_Comm_disconnect(&children);
	}
	free(buf);
}

static const struct check_case parent_cases[] = {{"spawn", spawn_run}};
static const struct check_case child_cases[] = {{"child", child_run}};

int main(int argc, char **argv)
{
	bool child = argc > 1 && strcmp(argv[1], "child") == 0;

	program = argv[0];
	return child ? check_main(argc, argv, "spawned", MPI_THREAD_SINGLE, child_cases,
				  1)
		     : check_main(argc, argv, "spawn", MPI_THREAD_SINGLE, parent_cases,
				  1);
}
