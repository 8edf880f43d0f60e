/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft perf over a library that makes mistakes: these calls take the place of the
 * library's own, run it, and then spoil one byte. The table must say so and the status
 * be 1.
 */
#include "config.h"

#include <unistd.h>

#include "cli/cmd.h"
#include "util/tap.h"
#include "weft/weft.h"

struct spoil {
	enum weft_coll coll; /* WEFT_COLL_COUNT: none */
	int call;	     /* which of them, from 0 */
	uint64_t byte;	     /* from the end of the result, from 1 */
};

static struct spoil spoil;
static int calls;

static enum weft_result run(struct weft_comm *comm, const struct weft_call *call,
			    const struct weft_opts *opts)
{
	struct weft_req *req;
	enum weft_result result = weft_call_start(comm, call, opts, &req);
	uint64_t len = call->dst.count * weft_type_size(call->dst.type);

	if (!result)
		result = weft_req_wait(req, WEFT_TIMEOUT_DEFAULT);
	/* 64-bit integers carry what perf itself needs, not what it measures. */
	if (call->coll == spoil.coll && weft_type_size(call->dst.type) == 4 &&
	    calls++ == spoil.call)
		((uint8_t *)call->dst.addr)[len - spoil.byte] ^= 1;
	return result;
}

static enum weft_result run_data(struct weft_comm *comm, enum weft_coll coll, void *src,
				 void *dst, uint64_t count, enum weft_type type,
				 enum weft_op op, int32_t root,
				 const struct weft_opts *opts)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = coll;
	call.op = op;
	call.root = root;
	call.src = (struct weft_buf){.addr = src, .count = count, .type = type};
	call.dst = (struct weft_buf){.addr = dst, .count = count, .type = type};
	return run(comm, &call, opts);
}

enum weft_result weft_barrier(struct weft_comm *comm, const struct weft_opts *opts)
{
	struct weft_call call = WEFT_CALL_INIT;

	call.coll = WEFT_COLL_BARRIER;
	return run(comm, &call, opts);
}

enum weft_result weft_broadcast(struct weft_comm *comm, void *buf, uint64_t count,
				enum weft_type type, int32_t root,
				const struct weft_opts *opts)
{
	return run_data(comm, WEFT_COLL_BROADCAST, buf, buf, count, type, WEFT_SUM, root,
			opts);
}

enum weft_result weft_allgather(struct weft_comm *comm, const void *src, void *dst,
				uint64_t count, enum weft_type type,
				const struct weft_opts *opts)
{
	return run_data(comm, WEFT_COLL_ALLGATHER, (void *)(uintptr_t)src, dst, count,
			type, WEFT_SUM, 0, opts);
}

enum weft_result weft_allreduce(struct weft_comm *comm, const void *src, void *dst,
				uint64_t count, enum weft_type type, enum weft_op op,
				const struct weft_opts *opts)
{
	return run_data(comm, WEFT_COLL_ALLREDUCE, (void *)(uintptr_t)src, dst, count,
			type, op, 0, opts);
}

enum weft_result weft_reduce_scatter(struct weft_comm *comm, const void *src, void *dst,
				     uint64_t count, enum weft_type type, enum weft_op op,
				     const struct weft_opts *opts)
{
	return run_data(comm, WEFT_COLL_REDUCE_SCATTER, (void *)(uintptr_t)src, dst,
			count, type, op, 0, opts);
}

enum weft_result weft_alltoall(struct weft_comm *comm, const void *src, void *dst,
			       uint64_t count, enum weft_type type,
			       const struct weft_opts *opts)
{
	return run_data(comm, WEFT_COLL_ALLTOALL, (void *)(uintptr_t)src, dst, count,
			type, WEFT_SUM, 0, opts);
}

enum weft_result weft_reduce(struct weft_comm *comm, const void *src, void *dst,
			     uint64_t count, enum weft_type type, enum weft_op op,
			     int32_t root, const struct weft_opts *opts)
{
	return run_data(comm, WEFT_COLL_REDUCE, (void *)(uintptr_t)src, dst, count, type,
			op, root, opts);
}

enum weft_result weft_gather(struct weft_comm *comm, const void *src, void *dst,
			     uint64_t count, enum weft_type type, int32_t root,
			     const struct weft_opts *opts)
{
	return run_data(comm, WEFT_COLL_GATHER, (void *)(uintptr_t)src, dst, count, type,
			WEFT_SUM, root, opts);
}

enum weft_result weft_scatter(struct weft_comm *comm, const void *src, void *dst,
			      uint64_t count, enum weft_type type, int32_t root,
			      const struct weft_opts *opts)
{
	return run_data(comm, WEFT_COLL_SCATTER, (void *)(uintptr_t)src, dst, count, type,
			WEFT_SUM, root, opts);
}

/* Runs perf with 5 calls at one size; what it printed is in text. */
static int perf(const char *operation, const char *size, struct spoil s, char text[4096])
{
	char *argv[] = {"perf",	   (char *)(uintptr_t)operation,
			"--sizes", (char *)(uintptr_t)size,
			"--iters", "5",
			NULL};
	FILE *file = tmpfile();
	int saved, status;
	size_t n;

	if (!file)
		tap_bail("no temporary file");
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(fileno(file), STDOUT_FILENO);
	spoil = s;
	calls = 0;
	status = cmd_perf(6, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(file);
	n = fread(text, 1, 4095, file);
	text[n] = '\0';
	fclose(file);
	return status;
}

int main(void)
{
	static const char *const names[] = {"broadcast",      "allgather", "allreduce",
					    "reduce_scatter", "alltoall",  "reduce",
					    "gather",	      "scatter"};
	static const enum weft_coll colls[] = {
		WEFT_COLL_BROADCAST,	  WEFT_COLL_ALLGATHER, WEFT_COLL_ALLREDUCE,
		WEFT_COLL_REDUCE_SCATTER, WEFT_COLL_ALLTOALL,  WEFT_COLL_REDUCE,
		WEFT_COLL_GATHER,	  WEFT_COLL_SCATTER};
	char text[4096];

	/* No job: one rank. A stray variable must not make this one wait for others. */
	unsetenv("WEFT_RANK"), unsetenv("WEFT_SIZE"), unsetenv("WEFT_ROOT");
	unsetenv("WEFT_JOB");
	for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++) {
		tap_ok(perf(names[i], "256K", (struct spoil){WEFT_COLL_COUNT, 0, 1},
			    text) == 0 &&
			       strstr(text, " 0 wrong") && !strstr(text, "WRONG"),
		       "%s: good", names[i]);
		/* Calls 0 and 6 are checked in full, 1 to 5 by samples. */
		tap_ok(perf(names[i], "256K", (struct spoil){colls[i], 6, 100000},
			    text) == 1 &&
			       strstr(text, "WRONG") && strstr(text, " 1 wrong"),
		       "%s: a byte in the middle of the last call", names[i]);
		tap_ok(perf(names[i], "256K", (struct spoil){colls[i], 4, 1}, text) ==
				       1 &&
			       strstr(text, "WRONG"),
		       "%s: the last byte of a timed call", names[i]);
		tap_ok(perf(names[i], "1K", (struct spoil){colls[i], 5, 301}, text) ==
				       1 &&
			       strstr(text, "WRONG"),
		       "%s: small ones are always checked in full", names[i]);
	}
	return tap_done();
}
