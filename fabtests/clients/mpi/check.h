/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the MPI programs here share: counting checks over all ranks, contents that can be
 * recognized, and the proof that the provider that was asked for carried the messages.
 */
#ifndef FABTESTS_CLIENTS_MPI_CHECK_H
#define FABTESTS_CLIENTS_MPI_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct check {
	const char *area;
	int rank, size;
	int thread_level; /* what MPI gave */
	int seed;	  /* the same on all ranks */
};

/* One step of a program; all ranks run all of them, in order. */
struct check_case {
	const char *name;
	void (*run)(struct check *c);
};

/*
 * Runs the cases whose name contains argv[1], or all, but the one that CLIENT_SKIP names.
 * Exit status of the program: 0 when no check failed on any rank. Initializes and
 * finalizes MPI.
 *
 * With CLIENT_MUST_MAP=TEXT in the environment, a rank of a job of several that at the
 * end has no mapping whose name contains TEXT has failed: its messages went another way.
 */
int check_main(int argc, char **argv, const char *area, int thread_level,
	       const struct check_case *cases, int count);

/* Counts a check; says what failed, for the first few. Any thread may call it. */
bool check(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether an MPI call went well, counted as a check. */
bool check_mpi(int result, const char *what);

/* Memory, or the job ends. */
void *check_alloc(size_t bytes);

/* Fills with what only message `key` has; differs for every offset and key. */
void check_fill(void *buf, size_t bytes, unsigned key);

/* Counts one check: the bytes are those of message `key`. */
bool check_bytes(const void *buf, size_t bytes, unsigned key, const char *what);

/* Counts checks of a status: source, tag and count of bytes. */
void check_status(const MPI_Status *status, int source, int tag, int bytes,
		  const char *what);

#endif
