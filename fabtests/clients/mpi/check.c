/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabtests/clients/mpi/check.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAID_MOST = 8 }; /* failures that a rank tells of */

static atomic_int checks_done, checks_failed;
static int my_rank = -1;
static const char *case_now = "";

bool check(bool good, const char *format, ...)
{
	va_list args;
	char text[300];

	atomic_fetch_add(&checks_done, 1);
	if (good)
		return true;
	if (atomic_fetch_add(&checks_failed, 1) < SAID_MOST) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		fprintf(stderr, "rank %d: %s: %s\n", my_rank, case_now, text);
	}
	return false;
}

bool check_mpi(int result, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length;

	if (result != MPI_SUCCESS)
		MPI_Error_string(result, text, &length);
	return check(result == MPI_SUCCESS, "%s: %s", what, text);
}

void *check_alloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p) {
		fprintf(stderr, "rank %d: no memory for %zu bytes\n", my_rank, bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* Eight bytes of message `key` from offset 8 * i on. */
static uint64_t word(unsigned key, size_t i)
{
	uint64_t x = ((uint64_t)key << 32 ^ i) * 0x9e3779b97f4a7c15u;

	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
}

void check_fill(void *buf, size_t bytes, unsigned key)
{
	unsigned char *p = buf;
	uint64_t w;

	for (size_t at = 0; at < bytes; at += sizeof(w)) {
		w = word(key, at / sizeof(w));
		memcpy(p + at, &w, bytes - at < sizeof(w) ? bytes - at : sizeof(w));
	}
}

bool check_bytes(const void *buf, size_t bytes, unsigned key, const char *what)
{
	const unsigned char *p = buf;
	uint64_t w;
	size_t at, n;

	for (at = 0; at < bytes; at += sizeof(w)) {
		w = word(key, at / sizeof(w));
		n = bytes - at < sizeof(w) ? bytes - at : sizeof(w);
		if (memcmp(p + at, &w, n) != 0)
			break;
	}
	return check(at >= bytes, "%s: wrong contents from byte %zu of %zu on", what, at,
		     bytes);
}

void check_status(const MPI_Status *status, int source, int tag, int bytes,
		  const char *what)
{
	int count = -1;

	MPI_Get_count(status, MPI_BYTE, &count);
	check(status->MPI_SOURCE == source, "%s: source %d, not %d", what,
	      status->MPI_SOURCE, source);
	check(status->MPI_TAG == tag, "%s: tag %d, not %d", what, status->MPI_TAG, tag);
	check(count == bytes, "%s: %d bytes, not %d", what, count, bytes);
}

/* Whether a file that is mapped into this process has TEXT in its name. */
static bool is_mapped(const char *text)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, text) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

static int seed_agree(int rank)
{
	const char *text = getenv("CLIENT_SEED");
	int seed = text ? atoi(text) : (int)(time(NULL) & 0xffffff);

	MPI_Bcast(&seed, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("CLIENT_SEED=%d\n", seed);
	return seed;
}

/* Sums the ranks' figures up; rank 0 says them. Returns the exit status. */
static int report(const struct check *c)
{
	int mine[2] = {atomic_load(&checks_done), atomic_load(&checks_failed)};
	int all[2] = {0, 0};

	MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (c->rank == 0)
		printf("%s: %d ranks, %d checks, %d failed\n", c->area, c->size, all[0],
		       all[1]);
	return all[0] == 0 || all[1] != 0;
}

int check_main(int argc, char **argv, const char *area, int thread_level,
	       const struct check_case *cases, int count)
{
	struct check c = {.area = area};
	const char *wanted, *must_map = getenv("CLIENT_MUST_MAP");
	const char *skip = getenv("CLIENT_SKIP");
	int status;

	MPI_Init_thread(&argc, &argv, thread_level, &c.thread_level);
	MPI_Comm_rank(MPI_COMM_WORLD, &c.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &c.size);
	my_rank = c.rank;
	wanted = argc > 1 ? argv[1] : "";
	c.seed = seed_agree(c.rank);
	for (int i = 0; i < count; i++) {
		if (!strstr(cases[i].name, wanted) ||
		    (skip && strcmp(cases[i].name, skip) == 0))
			continue;
		case_now = cases[i].name;
		cases[i].run(&c);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	case_now = "end";
	if (must_map && c.size > 1)
		check(is_mapped(must_map),
		      "no memory named %s: another provider was used", must_map);
	status = report(&c);
	MPI_Finalize();
	return status;
}
