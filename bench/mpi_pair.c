/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Half round trips of MPI messages between two pinned ranks. Built by bench/mpi with the
 * MPI's own compiler, not by make.
 *
 *   mpi_pair CPU_A CPU_B MS SIZE...
 *
 * For each size rank 0 prints "SIZE us": the mean over about MS milliseconds, and how
 * many round trips that were. Blocking calls, one buffer for each direction, so a receive
 * is posted when the application gets there.
 */
#include "config.h"

#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TRIPS_FIRST = 20,
	TRIPS_MOST = 10000000,
	SIZE_MOST = 64 << 20,
	CPU_MOST = CPU_SETSIZE - 1,
	MS_MOST = 60000,
	TAG = 1,
};

struct pair {
	int rank;
	char *out, *in;
};

static void trips_make(const struct pair *p, int size, int trips)
{
	for (int i = 0; i < trips; i++) {
		if (p->rank == 0)
			MPI_Send(p->out, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
		MPI_Recv(p->in, size, MPI_BYTE, !p->rank, TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (p->rank == 1)
			MPI_Send(p->out, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
	}
}

/* Seconds that so many round trips take; the same on both ranks. */
static double seconds_of(const struct pair *p, int size, int trips)
{
	double begin, took;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	trips_make(p, size, trips);
	took = MPI_Wtime() - begin;
	MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	return took;
}

static void measure(const struct pair *p, int size, double seconds)
{
	int trips = TRIPS_FIRST;
	double took, want;

	memset(p->out, p->rank + 1, (size_t)size);
	memset(p->in, 0, (size_t)size);
	took = seconds_of(p, size, trips); /* connections, pages */
	/* Until a run is long enough to say how long the measurement must be. */
	while ((took = seconds_of(p, size, trips)) < seconds / 8 &&
	       trips < TRIPS_MOST / 4)
		trips *= 4;
	want = trips * seconds / took;
	trips = want < TRIPS_FIRST  ? TRIPS_FIRST
		: want > TRIPS_MOST ? TRIPS_MOST
				    : (int)want;
	took = seconds_of(p, size, trips);
	if (size > 0 && p->in[size - 1] != 2 - p->rank) {
		fprintf(stderr, "mpi_pair: %d bytes did not arrive\n", size);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (p->rank == 0) {
		printf("%d %.4f %d\n", size, took * 1e6 / trips / 2, trips);
		fflush(stdout);
	}
}

static int number(const char *text, int most, int *value)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	*value = (int)v;
	return *text >= '0' && *text <= '9' && *end == '\0' && v <= (unsigned long)most;
}

static int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	struct pair p;
	int cpu[2], ms, size, ranks, most = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2 || argc < 5 || !number(argv[1], CPU_MOST, &cpu[0]) ||
	    !number(argv[2], CPU_MOST, &cpu[1]) || !number(argv[3], MS_MOST, &ms) ||
	    ms == 0) {
		fprintf(stderr, "usage: mpirun -n 2 mpi_pair CPU_A CPU_B MS SIZE...\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = 4; i < argc; i++) {
		if (!number(argv[i], SIZE_MOST, &size)) {
			fprintf(stderr, "mpi_pair: no size '%s'\n", argv[i]);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		most = size > most ? size : most;
	}
	if (pin(cpu[p.rank]) != 0) {
		fprintf(stderr, "mpi_pair: not allowed on processor %d\n", cpu[p.rank]);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	p.out = aligned_alloc(4096, ((size_t)most + 4096) & ~(size_t)4095);
	p.in = aligned_alloc(4096, ((size_t)most + 4096) & ~(size_t)4095);
	if (!p.out || !p.in) {
		fprintf(stderr, "mpi_pair: no memory for twice %d bytes\n", most);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (int i = 4; i < argc; i++) {
		number(argv[i], SIZE_MOST, &size);
		measure(&p, size, ms / 1e3);
	}
	free(p.out);
	free(p.in);
	MPI_Finalize();
	return 0;
}
