/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI over a provider, messages that are looked at before they are received. */
#include "fabtests/clients/mpi/check.h"

#include <stdlib.h>

enum { LARGEST = 500000 };

static const int sizes[] = {0, 1, 64, 5000, 70000, LARGEST};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Sends all sizes to the right, with the size's number as the tag. */
static void sizes_send(const struct check *c, char *out, MPI_Request *request)
{
	for (int s = 0; s < SIZES; s++) {
		char *message = out + (size_t)s * LARGEST;

		check_fill(message, (size_t)sizes[s], (unsigned)(c->rank * 10 + s));
		MPI_Isend(message, sizes[s], MPI_BYTE, (c->rank + 1) % c->size, s,
			  MPI_COMM_WORLD, &request[s]);
	}
}

/* Nothing is there, and nothing is what is said. */
static void nothing_run(struct check *c)
{
	int flag = 1;
	MPI_Message message;

	for (int i = 0; i < 100; i++) {
		check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag,
				     MPI_STATUS_IGNORE),
			  "iprobe");
		check(!flag, "a message that nobody sent");
		check_mpi(MPI_Improbe((c->rank + 1) % c->size, 3, MPI_COMM_WORLD, &flag,
				      &message, MPI_STATUS_IGNORE),
			  "improbe");
		check(!flag, "a message that nobody sent");
	}
}

/* A probe tells what the receive then gets, and takes nothing. */
static void probe_run(struct check *c)
{
	char *out = check_alloc((size_t)SIZES * LARGEST), *in = check_alloc(LARGEST);
	int left = (c->rank + c->size - 1) % c->size, flag;
	MPI_Request request[SIZES];
	MPI_Status status;

	sizes_send(c, out, request);
	for (int s = SIZES - 1; s >= 0; s--) {
		check_mpi(MPI_Probe(s % 2 ? MPI_ANY_SOURCE : left, s, MPI_COMM_WORLD,
				    &status),
			  "probe");
		check_status(&status, left, s, sizes[s], "probe");
		check_mpi(MPI_Iprobe(left, s, MPI_COMM_WORLD, &flag, &status), "iprobe");
		check(flag, "it is gone after a probe");
		check_status(&status, left, s, sizes[s], "iprobe");
		MPI_Recv(in, LARGEST, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
			 MPI_COMM_WORLD, &status);
		check_status(&status, left, s, sizes[s], "receive");
		check_bytes(in, (size_t)sizes[s], (unsigned)(left * 10 + s), "receive");
	}
	MPI_Waitall(SIZES, request, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
}

/* A message that was matched is nobody else's any more. */
static void matched_run(struct check *c)
{
	char *out = check_alloc((size_t)SIZES * LARGEST);
	char *in = check_alloc((size_t)SIZES * LARGEST);
	int left = (c->rank + c->size - 1) % c->size, flag;
	MPI_Request request[SIZES], receive[SIZES];
	MPI_Message message[SIZES];
	MPI_Status status;

	sizes_send(c, out, request);
	for (int s = 0; s < SIZES; s++) {
		check_mpi(MPI_Mprobe(s % 2 ? MPI_ANY_SOURCE : left, s, MPI_COMM_WORLD,
				     &message[s], &status),
			  "mprobe");
		check_status(&status, left, s, sizes[s], "mprobe");
		MPI_Iprobe(left, s, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		check(!flag, "a matched message was found again");
	}
	for (int s = SIZES - 1; s >= 0; s--)
		check_mpi(MPI_Imrecv(in + (size_t)s * LARGEST, sizes[s], MPI_BYTE,
				     &message[s], &receive[s]),
			  "imrecv");
	for (int s = 0; s < SIZES; s++) {
		check_mpi(MPI_Wait(&receive[s], &status), "wait");
		check_status(&status, left, s, sizes[s], "mrecv");
		check_bytes(in + (size_t)s * LARGEST, (size_t)sizes[s],
			    (unsigned)(left * 10 + s), "mrecv");
	}
	MPI_Waitall(SIZES, request, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
}

/* Of several with one tag, the first is found, and matching takes them in order. */
static void order_run(struct check *c)
{
	enum { DEPTH = 40 };
	int left = (c->rank + c->size - 1) % c->size, got, count, out[DEPTH * DEPTH];
	MPI_Request request[DEPTH];
	MPI_Message message;
	MPI_Status status;

	for (int i = 0; i < DEPTH; i++) {
		out[i * DEPTH] = i;
		MPI_Isend(out + i * DEPTH, i + 1, MPI_INT, (c->rank + 1) % c->size, 5,
			  MPI_COMM_WORLD, &request[i]);
	}
	for (int i = 0; i < DEPTH; i++) {
		int in[DEPTH] = {-1};

		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_INT, &count);
		check(count == i + 1, "the probe found %d elements, not %d", count,
		      i + 1);
		MPI_Mprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
		MPI_Mrecv(in, DEPTH, MPI_INT, &message, &status);
		got = in[0];
		check(got == i, "message %d came as %d", got, i);
	}
	MPI_Waitall(DEPTH, request, MPI_STATUSES_IGNORE);
}

static const struct check_case cases[] = {
	{"nothing", nothing_run},
	{"probe", probe_run},
	{"matched", matched_run},
	{"order", order_run},
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, "probe", MPI_THREAD_SINGLE, cases,
			  sizeof(cases) / sizeof(cases[0]));
}
