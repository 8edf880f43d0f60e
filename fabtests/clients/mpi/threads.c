/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI over a provider, MPI_THREAD_MULTIPLE: several threads of each rank in MPI at once.
 */
#include "fabtests/clients/mpi/check.h"

#include <pthread.h>
#include <stdlib.h>

enum {
	THREADS = 4,
	MESSAGES = 100,
	LARGEST = 100000,
};

struct thread {
	struct check *check;
	int number;
	MPI_Comm comm;
};

/* Starts THREADS threads of every rank, each with a communicator, and waits for them. */
static void threads_run(struct check *c, void *(*work)(void *))
{
	pthread_t id[THREADS];
	struct thread t[THREADS];
	int started = 0;

	if (!check(c->thread_level == MPI_THREAD_MULTIPLE, "thread level %d given",
		   c->thread_level))
		return;
	for (int i = 0; i < THREADS; i++) {
		t[i] = (struct thread){.check = c, .number = i};
		MPI_Comm_dup(MPI_COMM_WORLD, &t[i].comm);
	}
	while (started < THREADS &&
	       pthread_create(&id[started], NULL, work, &t[started]) == 0)
		started++;
	if (!check(started == THREADS, "%d of %d threads", started, THREADS))
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&t[i].comm);
}

static int size_of(int thread, int message)
{
	return message % 20 == 7 ? LARGEST : (message * 131 + thread * 7) % 3000;
}

/* Around the ring; all threads on one communicator, told apart by the tag. */
static void *tags_work(void *arg)
{
	struct thread *t = arg;
	struct check *c = t->check;
	int left = (c->rank + c->size - 1) % c->size, right = (c->rank + 1) % c->size;
	char *out = check_alloc(LARGEST), *in = check_alloc(LARGEST);
	MPI_Request request;
	MPI_Status status;

	for (int m = 0; m < MESSAGES; m++) {
		int n = size_of(t->number, m), tag = t->number * MESSAGES + m;

		check_fill(out, (size_t)n, (unsigned)(c->rank * 1000 + tag));
		MPI_Irecv(in, LARGEST, MPI_BYTE, left, tag, MPI_COMM_WORLD, &request);
		MPI_Send(out, n, MPI_BYTE, right, tag, MPI_COMM_WORLD);
		MPI_Wait(&request, &status);
		check_status(&status, left, tag, n, "thread");
		check_bytes(in, (size_t)n, (unsigned)(left * 1000 + tag), "thread");
	}
	free(out);
	free(in);
	return NULL;
}

/* Blocking calls of all threads at the same time, each on its communicator. */
static void *blocking_work(void *arg)
{
	struct thread *t = arg;
	struct check *c = t->check;
	int partner = c->rank ^ 1, v, got;

	if (partner >= c->size)
		return NULL;
	for (int m = 0; m < MESSAGES * 3; m++) {
		v = m * THREADS + t->number;
		got = -1;
		if ((c->rank + t->number) % 2 == 0) {
			MPI_Send(&v, 1, MPI_INT, partner, 0, t->comm);
			MPI_Recv(&got, 1, MPI_INT, partner, 0, t->comm,
				 MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(&got, 1, MPI_INT, partner, 0, t->comm,
				 MPI_STATUS_IGNORE);
			MPI_Send(&v, 1, MPI_INT, partner, 0, t->comm);
		}
		check(got == v, "thread %d: %d, not %d", t->number, got, v);
	}
	return NULL;
}

/* Collectives of each thread's communicator, whatever the other threads do. */
static void *collective_work(void *arg)
{
	struct thread *t = arg;
	struct check *c = t->check;
	int n = 1 + t->number * 3000, want;
	int *in = check_alloc(sizeof(int) * (size_t)n),
	    *out = check_alloc(sizeof(int) * (size_t)n);

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < n; i++)
			in[i] = c->rank + i + round;
		MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, t->comm);
		want = c->size * (c->size - 1) / 2 + c->size * (n - 1 + round);
		check(out[n - 1] == want, "thread %d: sum %d, not %d", t->number,
		      out[n - 1], want);
		MPI_Barrier(t->comm);
	}
	free(in);
	free(out);
	return NULL;
}

static void tags_run(struct check *c)
{
	threads_run(c, tags_work);
}

static void blocking_run(struct check *c)
{
	threads_run(c, blocking_work);
}

static void collective_run(struct check *c)
{
	threads_run(c, collective_work);
}

static const struct check_case cases[] = {
	{"tags", tags_run},
	{"blocking", blocking_run},
	{"collective", collective_run},
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, "threads", MPI_THREAD_MULTIPLE, cases,
			  sizeof(cases) / sizeof(cases[0]));
}
