/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI over a provider, point to point: every mode, size, wildcard and order. */
#include "fabtests/clients/mpi/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	BURST = 300,
	WINDOW = 64,
	LARGEST = 4 << 20,
};

/* Around the limits that a provider may have: inject, eager, pages. */
static const int sizes[] = {0,	   1,	  7,	 8,	63,	64,	 65,	 192,
			    256,   1000,  4095,	 4096,	4097,	8192,	 12000,	 16384,
			    16385, 65535, 65536, 65537, 300000, 1 << 20, LARGEST};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static int right_of(const struct check *c)
{
	return (c->rank + 1) % c->size;
}

static int left_of(const struct check *c)
{
	return (c->rank + c->size - 1) % c->size;
}

/* To the right, from the left, every size; the receive is there first or not. */
static void ring_run(struct check *c)
{
	char *out = check_alloc(LARGEST), *in = check_alloc(LARGEST);
	int left = left_of(c), right = right_of(c);
	MPI_Request request[2];
	MPI_Status status[2];

	for (int late = 0; late < 2; late++) {
		for (int s = 0; s < SIZES; s++) {
			int n = sizes[s];

			check_fill(out, (size_t)n, (unsigned)(c->rank * 1000 + s));
			memset(in, 0, (size_t)n);
			if (!late)
				MPI_Irecv(in, n, MPI_BYTE, left, s, MPI_COMM_WORLD,
					  &request[0]);
			MPI_Isend(out, n, MPI_BYTE, right, s, MPI_COMM_WORLD,
				  &request[1]);
			if (late)
				MPI_Irecv(in, n, MPI_BYTE, left, s, MPI_COMM_WORLD,
					  &request[0]);
			check_mpi(MPI_Waitall(2, request, status), "waitall");
			check_status(&status[0], left, s, n, "ring");
			check_bytes(in, (size_t)n, (unsigned)(left * 1000 + s), "ring");
		}
	}
	free(out);
	free(in);
}

static void send_in_mode(int mode, const void *out, int n, int to, MPI_Request *request)
{
	*request = MPI_REQUEST_NULL;
	switch (mode) {
	case 0:
		MPI_Send(out, n, MPI_BYTE, to, mode, MPI_COMM_WORLD);
		break;
	case 1:
		MPI_Ssend(out, n, MPI_BYTE, to, mode, MPI_COMM_WORLD);
		break;
	case 2:
		MPI_Bsend(out, n, MPI_BYTE, to, mode, MPI_COMM_WORLD);
		break;
	case 3:
		MPI_Rsend(out, n, MPI_BYTE, to, mode, MPI_COMM_WORLD);
		break;
	case 4:
		MPI_Isend(out, n, MPI_BYTE, to, mode, MPI_COMM_WORLD, request);
		break;
	case 5:
		MPI_Issend(out, n, MPI_BYTE, to, mode, MPI_COMM_WORLD, request);
		break;
	case 6:
		MPI_Ibsend(out, n, MPI_BYTE, to, mode, MPI_COMM_WORLD, request);
		break;
	default:
		MPI_Irsend(out, n, MPI_BYTE, to, mode, MPI_COMM_WORLD, request);
		break;
	}
}

/* All eight ways to send; the receive is posted before the barrier, as ready mode asks.
 */
static void modes_run(struct check *c)
{
	static const int some[] = {0, 8, 3000, 200000};
	char *out = check_alloc(200000), *in = check_alloc(200000);
	int room = 3 * (200000 + MPI_BSEND_OVERHEAD);
	char *buffered = check_alloc((size_t)room);
	int left = left_of(c), right = right_of(c);
	MPI_Request receive, send;
	MPI_Status status;

	MPI_Buffer_attach(buffered, room);
	for (int mode = 0; mode < 8; mode++) {
		for (int s = 0; s < 4; s++) {
			int n = some[s];

			check_fill(out, (size_t)n, (unsigned)(c->rank * 100 + mode));
			MPI_Irecv(in, n, MPI_BYTE, left, mode, MPI_COMM_WORLD, &receive);
			MPI_Barrier(MPI_COMM_WORLD);
			send_in_mode(mode, out, n, right, &send);
			MPI_Wait(&receive, &status);
			MPI_Wait(&send, MPI_STATUS_IGNORE);
			check_status(&status, left, mode, n, "mode");
			check_bytes(in, (size_t)n, (unsigned)(left * 100 + mode), "mode");
		}
	}
	MPI_Buffer_detach(&buffered, &room);
	free(buffered);
	free(out);
	free(in);
}

/* A synchronous send is not complete before its receive is there. */
static void synchronous_run(struct check *c)
{
	MPI_Request request;
	int flag = 0, value = c->rank, got = -1;

	if (c->size < 2 || c->rank > 1)
		return;
	if (c->rank == 1) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(&got, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(got == 0, "synchronous send brought %d", got);
		return;
	}
	MPI_Issend(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &request);
	for (int i = 0; i < 2000 && !flag; i++)
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	check(!flag, "a synchronous send was complete without a receive");
	MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
	if (!flag)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Everybody to everybody, unexpected, received in the reverse order of tags. */
static void unexpected_run(struct check *c)
{
	int per = BURST / c->size, count = per * c->size, n;
	MPI_Request *request = check_alloc((size_t)count * sizeof(MPI_Request));
	char *out = check_alloc((size_t)count * 600), *in = check_alloc(600);
	MPI_Status status;

	for (int i = 0; i < count; i++) {
		n = i * 7 % 600;
		check_fill(out + i * 600, (size_t)n, (unsigned)(c->rank * 1000 + i));
		MPI_Isend(out + i * 600, n, MPI_BYTE, i % c->size, i, MPI_COMM_WORLD,
			  &request[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = count - 1; i >= 0; i--) {
		/* Message i of rank s is for i % size. */
		if (i % c->size != c->rank)
			continue;
		n = i * 7 % 600;
		for (int s = 0; s < c->size; s++) {
			MPI_Recv(in, 600, MPI_BYTE, s, i, MPI_COMM_WORLD, &status);
			check_status(&status, s, i, n, "unexpected");
			check_bytes(in, (size_t)n, (unsigned)(s * 1000 + i),
				    "unexpected");
		}
	}
	MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
	free(request);
	free(out);
	free(in);
}

/* Small and large ones of one tag arrive in the order in which they were sent. */
static void order_run(struct check *c)
{
	enum { LONG = 40000 };
	int *out = check_alloc((size_t)WINDOW * LONG), *in = check_alloc(LONG);
	int *next = check_alloc((size_t)c->size * sizeof(int));
	MPI_Request request[WINDOW];
	MPI_Status status;

	memset(next, 0, (size_t)c->size * sizeof(int));
	for (int i = 0; c->rank > 0 && i < WINDOW; i++) {
		int *message = out + (size_t)i * LONG / sizeof(int);
		int n = i % 3 == 1 ? LONG : i % 3 == 2 ? 5000 : 8;

		memset(message, 0, LONG);
		message[0] = i;
		MPI_Isend(message, n, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &request[i]);
	}
	for (int i = 0; c->rank == 0 && i < WINDOW * (c->size - 1); i++) {
		MPI_Recv(in, LONG, MPI_BYTE, MPI_ANY_SOURCE, i % 2 ? 5 : MPI_ANY_TAG,
			 MPI_COMM_WORLD, &status);
		check(in[0] == next[status.MPI_SOURCE],
		      "message %d of rank %d came as %d", in[0], status.MPI_SOURCE,
		      next[status.MPI_SOURCE]);
		next[status.MPI_SOURCE]++;
	}
	if (c->rank > 0)
		MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
	free(next);
}

/* A message that is too long is said to be, and the next one is whole. */
static void truncation_run(struct check *c)
{
	static const int too_long[] = {100, 9000, 500000};
	char *out = check_alloc(500000), in[64];
	MPI_Status status;
	int class;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3 && c->size > 1 && c->rank < 2; i++) {
		check_fill(out, 500000, (unsigned)i);
		if (c->rank == 0) {
			MPI_Send(out, too_long[i], MPI_BYTE, 1, 1, MPI_COMM_WORLD);
			MPI_Send(out, 32, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
			continue;
		}
		memset(in, 0, sizeof(in));
		class = MPI_Recv(in, 16, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
		MPI_Error_class(class, &class);
		check(class == MPI_ERR_TRUNCATE,
		      "%d bytes for 16: class %d, not truncated", too_long[i], class);
		check(in[16] == 0 && in[63] == 0, "bytes behind the buffer were written");
		check_mpi(MPI_Recv(in, 32, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &status),
			  "the message after it");
		check_bytes(in, 32, (unsigned)i, "the message after it");
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	free(out);
}

/* A receive that is cancelled takes nothing. */
static void cancel_run(struct check *c)
{
	int left = left_of(c), right = right_of(c), taken = -1, value = c->rank, got = -1;
	MPI_Request request;
	MPI_Status status;
	int flag = 0;

	MPI_Irecv(&taken, 1, MPI_INT, left, 9, MPI_COMM_WORLD, &request);
	MPI_Cancel(&request);
	MPI_Wait(&request, &status);
	MPI_Test_cancelled(&status, &flag);
	check(flag, "the receive is not cancelled");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Sendrecv(&value, 1, MPI_INT, right, 9, &got, 1, MPI_INT, left, 9,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(got == left, "after a cancelled receive %d came, not %d", got, left);
	check(taken == -1, "the cancelled receive was filled with %d", taken);
}

static void persistent_run(struct check *c)
{
	int left = left_of(c), right = right_of(c);
	int *out = check_alloc(40000), *in = check_alloc(40000);
	MPI_Request request[2];

	MPI_Recv_init(in, 10000, MPI_INT, left, 3, MPI_COMM_WORLD, &request[0]);
	MPI_Send_init(out, 10000, MPI_INT, right, 3, MPI_COMM_WORLD, &request[1]);
	for (int round = 0; round < 30; round++) {
		check_fill(out, 40000, (unsigned)(c->rank + round * 64));
		MPI_Startall(2, request);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		check_bytes(in, 40000, (unsigned)(left + round * 64), "persistent");
	}
	MPI_Request_free(&request[0]);
	MPI_Request_free(&request[1]);
	free(out);
	free(in);
}

/* To oneself, to nobody, and both directions at once. */
static void itself_run(struct check *c)
{
	char *out = check_alloc(300000), *in = check_alloc(300000);
	MPI_Request request;
	MPI_Status status;

	for (int s = 0; s < SIZES && sizes[s] <= 300000; s++) {
		check_fill(out, (size_t)sizes[s], (unsigned)s);
		MPI_Irecv(in, sizes[s], MPI_BYTE, c->rank, s, MPI_COMM_WORLD, &request);
		MPI_Send(out, sizes[s], MPI_BYTE, c->rank, s, MPI_COMM_WORLD);
		MPI_Wait(&request, &status);
		check_status(&status, c->rank, s, sizes[s], "to oneself");
		check_bytes(in, (size_t)sizes[s], (unsigned)s, "to oneself");
	}
	check_mpi(MPI_Send(out, 10, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD),
		  "to nobody");
	MPI_Recv(in, 10, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
	check(status.MPI_SOURCE == MPI_PROC_NULL, "from nobody");
	check_fill(out, 300000, (unsigned)c->rank);
	MPI_Sendrecv_replace(out, 300000, MPI_BYTE, right_of(c), 1, left_of(c), 1,
			     MPI_COMM_WORLD, &status);
	check_bytes(out, 300000, (unsigned)left_of(c), "replaced");
	free(out);
	free(in);
}

/* Many outstanding receives from anybody, completed in whatever order they come. */
static void many_run(struct check *c)
{
	enum { SLOT = 2000 };
	char *in = check_alloc((size_t)WINDOW * SLOT),
	     *out = check_alloc((size_t)WINDOW * SLOT);
	MPI_Request send[WINDOW], receive[WINDOW];
	MPI_Status status[WINDOW];
	int index[WINDOW], done = 0, some, left = left_of(c);

	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(in + i * SLOT, SLOT, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : left, i,
			  MPI_COMM_WORLD, &receive[i]);
	for (int i = WINDOW - 1; i >= 0; i--) {
		check_fill(out + i * SLOT, SLOT, (unsigned)(c->rank * WINDOW + i));
		MPI_Isend(out + i * SLOT, SLOT, MPI_BYTE, right_of(c), i, MPI_COMM_WORLD,
			  &send[i]);
	}
	while (done < WINDOW) {
		MPI_Waitsome(WINDOW, receive, &some, index, status);
		for (int k = 0; k < some; k++) {
			check_status(&status[k], left, index[k], SLOT, "many");
			check_bytes(in + index[k] * SLOT, SLOT,
				    (unsigned)(left * WINDOW + index[k]), "many");
		}
		done += some;
	}
	MPI_Waitall(WINDOW, send, MPI_STATUSES_IGNORE);
	free(in);
	free(out);
}

/* The same source and tag in other communicators is another message. */
static void communicators_run(struct check *c)
{
	MPI_Comm twin, half;
	int left = left_of(c), right = right_of(c), out[2] = {c->rank, c->rank + 100};
	int in[2] = {-1, -1}, rank, size, sum;
	MPI_Request request[2];

	MPI_Comm_dup(MPI_COMM_WORLD, &twin);
	MPI_Irecv(&in[1], 1, MPI_INT, left, 4, twin, &request[1]);
	MPI_Irecv(&in[0], 1, MPI_INT, left, 4, MPI_COMM_WORLD, &request[0]);
	MPI_Send(&out[0], 1, MPI_INT, right, 4, MPI_COMM_WORLD);
	MPI_Send(&out[1], 1, MPI_INT, right, 4, twin);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	check(in[0] == left && in[1] == left + 100, "communicators were mixed: %d, %d",
	      in[0], in[1]);
	MPI_Comm_split(twin, c->rank % 2, -c->rank, &half);
	MPI_Comm_rank(half, &rank);
	MPI_Comm_size(half, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
	check(sum == size * (size - 1) / 2, "ranks of a half add up to %d", sum);
	MPI_Comm_free(&half);
	MPI_Comm_free(&twin);
}

/* One message that is larger than anything that is buffered on the way. */
static void huge_run(struct check *c)
{
	const size_t bytes = (size_t)48 << 20;
	char *buf;

	if (c->rank > 1 || c->size < 2)
		return;
	buf = check_alloc(bytes);
	if (c->rank == 0) {
		check_fill(buf, bytes, 1);
		MPI_Send(buf, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	} else {
		MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		check_bytes(buf, bytes, 1, "huge");
	}
	free(buf);
}

static unsigned random_next(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Mostly small ones. */
static int random_size(unsigned *state)
{
	unsigned kind = random_next(state) % 8;
	unsigned most = kind < 5 ? 300 : kind < 7 ? 20000 : 400000;

	return (int)(random_next(state) % most);
}

/* Messages that all ranks draw from the seed: whom from, whom to, how long, when. */
static void random_run(struct check *c)
{
	enum { MESSAGES = 400 };
	unsigned state = (unsigned)c->seed;
	MPI_Request *request = check_alloc(sizeof(*request) * MESSAGES);
	MPI_Status *status = check_alloc(sizeof(*status) * MESSAGES);
	char **buf = check_alloc(sizeof(*buf) * MESSAGES);
	int *size = check_alloc(sizeof(*size) * MESSAGES);
	int *from = check_alloc(sizeof(*from) * MESSAGES);

	for (int m = 0; m < MESSAGES; m++) {
		int to = (int)(random_next(&state) % (unsigned)c->size);
		bool anybody = random_next(&state) % 3 == 0;

		from[m] = (int)(random_next(&state) % (unsigned)c->size);
		size[m] = random_size(&state);
		buf[m] = NULL;
		request[m] = MPI_REQUEST_NULL;
		/* A rank does not send to itself here: it has only one request for each.
		 */
		if (from[m] == to || (c->rank != to && c->rank != from[m]))
			continue;
		buf[m] = check_alloc((size_t)size[m]);
		if (c->rank == from[m]) {
			check_fill(buf[m], (size_t)size[m], (unsigned)m);
			MPI_Isend(buf[m], size[m], MPI_BYTE, to, m, MPI_COMM_WORLD,
				  &request[m]);
			from[m] = -1;
			continue;
		}
		MPI_Irecv(buf[m], size[m], MPI_BYTE, anybody ? MPI_ANY_SOURCE : from[m],
			  m, MPI_COMM_WORLD, &request[m]);
	}
	MPI_Waitall(MESSAGES, request, status);
	for (int m = 0; m < MESSAGES; m++) {
		if (buf[m] && from[m] >= 0) {
			check_status(&status[m], from[m], m, size[m], "random");
			check_bytes(buf[m], (size_t)size[m], (unsigned)m, "random");
		}
		free(buf[m]);
	}
	free(request);
	free(status);
	free(buf);
	free(size);
	free(from);
}

static const struct check_case cases[] = {
	{"ring", ring_run},
	{"modes", modes_run},
	{"synchronous", synchronous_run},
	{"unexpected", unexpected_run},
	{"order", order_run},
	{"truncation", truncation_run},
	{"cancel", cancel_run},
	{"persistent", persistent_run},
	{"itself", itself_run},
	{"many", many_run},
	{"communicators", communicators_run},
	{"huge", huge_run},
	{"random", random_run},
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, "p2p", MPI_THREAD_SINGLE, cases,
			  sizeof(cases) / sizeof(cases[0]));
}
