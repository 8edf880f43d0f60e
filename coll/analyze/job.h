/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the dumps of a context's ranks say, put together. Dumps are read one after the
 * other and only what is needed stays: some hundred bytes of a rank, and of each peer
 * that it has.
 */
#ifndef WEFT_ANALYZE_JOB_H
#define WEFT_ANALYZE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/analyze/clocks.h"
#include "coll/trace/trace_file.h"

enum {
	JOB_SAMPLES = 16, /* calls of a rank that are kept for its pace */
	JOB_PAIRS = 4,	  /* open messages between two ranks */
};

/* What a rank does in a communicator. */
struct job_part {
	int32_t rank;
	uint32_t group;	      /* index into job.group */
	int64_t next;	      /* index of the next rank's, -1: none */
	uint32_t first;	      /* number of the first call that is not over */
	bool open;	      /* which it has started: */
	bool stuck;	      /* and which stands still, or failed */
	int64_t start, moved; /* by the rank's calendar, ns */
	struct trace_call call;
};

struct job_group {
	uint32_t number;
	int32_t first, size; /* as struct trace_comm */
	uint32_t runs;
	struct trace_run run[TRACE_RUNS];
	int32_t present; /* members that gave a dump */
	int64_t parts;	 /* index of the first part, -1 */
};

/* A message between two ranks that is not over. */
struct job_pair {
	int32_t peer;
	bool sends, stuck;
	uint32_t comm, call;
	int64_t start;
};

/* A call that ended well, for the pace. Nanoseconds. */
struct job_sample {
	uint32_t group, call;
	int64_t start, end; /* by the rank's calendar */
	int64_t own; /* reducing, copying, registering; and since the call before */
	int64_t gap; /* of own: since the call before */
	int64_t sending;
	uint64_t sent; /* bytes */
	bool lines;
	bool holds; /* nobody leaves it before all have entered it */
};

/* What a rank counts about another one. */
struct job_end {
	int32_t peer;
	bool lost;
	uint64_t told, notes, sends, sent, recvs, puts, put, ready_out, ready_in;
	uint64_t bytes_out, bytes_in;
	int64_t busy; /* ns */
};

/* What is known of a rank. */
struct job_seat {
	bool there;
	char state;	/* take_state(), or 0 */
	uint8_t reason; /* enum trace_reason */
	uint8_t signal;
	uint8_t pairs, samples;
	int32_t culprit; /* of its first failure; -1 */
	uint8_t result;
	int64_t pid;
	int64_t real;	/* when the dump was written, by its calendar */
	int64_t opened; /* and when the context was opened */
	int64_t looked; /* ns before that: when it last looked at what peers do */
	int64_t path;	/* offset into job.text */
	int64_t host;
	int64_t part, parts; /* its parts lie together */
	int64_t end, ends;
	struct job_pair pair[JOB_PAIRS];
	struct job_sample sample[JOB_SAMPLES]; /* the first started first */
	/* Its time is the one of job.reference + offset, drifting, where known. */
	struct clock_line clock;
	bool clocked;
};

struct job {
	uint64_t id; /* of the context */
	int32_t size;
	int64_t stuck_ns; /* a call that has not moved for so long stands still */
	int32_t present;
	uint64_t others; /* dumps of other contexts that were left out */
	uint64_t again;	 /* and of ranks that had given one, the first of which counts */
	int32_t reference;     /* whose clock all times are told by; -1 */
	struct job_seat *seat; /* size */
	struct job_part *part;
	int64_t parts, parts_max;
	struct job_group *group;
	int64_t groups, groups_max;
	int64_t *bucket; /* hash of groups: index + 1 */
	int64_t buckets;
	struct job_end *end;
	int64_t ends, ends_max;
	char *text; /* paths and hosts */
	int64_t text_len, text_max;
};

/* stuck_ns: how long a call of a dump that nothing failed in must stand still. */
void job_begin(struct job *job, int64_t stuck_ns);
void job_end(struct job *job);

/* Reads a dump. ARG with the detail for one that is refused, NOMEM. state: of the
 * process, 0 where it is not known. */
enum weft_result job_add(struct job *job, const char *path, char state);

/* Once all are there: how the clocks of ranks stand to the reference's. With few ranks
 * messages are matched, for which their events are read; with more it goes by calls. */
void job_clocks(struct job *job);

/* A time of a rank's calendar, by the reference's. */
int64_t job_time(const struct job *job, int32_t rank, int64_t when);

const char *job_path(const struct job *job, int32_t rank);
/* "rank 3 (host, process 77)", for evidence. Static storage of the caller. */
const char *job_who(const struct job *job, int32_t rank, char text[128]);

/* What a rank says about another; NULL: nothing. */
const struct job_end *job_link(const struct job *job, int32_t rank, int32_t peer);
/* Its part in a group; NULL. */
const struct job_part *job_part(const struct job *job, int32_t rank, uint32_t group);
/* Whether the group's runs say that it has the rank; false also where they are not known.
 */
bool job_group_has(const struct job_group *group, int32_t rank);

#endif
