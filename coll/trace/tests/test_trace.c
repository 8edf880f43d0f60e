/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flight recorder: what it keeps, what a dump says, who writes one, and files that
 * are none. With a folder as argument it leaves the dumps of two ranks there and tests
 * nothing.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/tests/ranks.h"
#include "coll/trace/recorder.h"
#include "util/tap.h"
#include "util/tap_fork.h"

static char folder[256];

/* In the scratch folder; a few at a time. */
static const char *at(const char *name)
{
	static char text[4][320];
	static int next;
	char *path = text[next++ & 3];

	snprintf(path, sizeof(text[0]), "%s/%s", folder, name);
	return path;
}

/* ---- the ring ---------------------------------------------------------------------- */

static void ring_case(uint64_t events, uint64_t want)
{
	struct recorder *r = recorder_open(1, 3);
	struct trace_dump dump;
	bool same = true;
	int64_t last = 0;

	for (uint64_t i = 0; r && i < events; i++)
		trace_put(r, TRACE_STEP, 1, 2, (uint32_t)i, 1, 2 * i);
	if (!r || recorder_dump(r, TRACE_ASKED, 0, at("ring")) ||
	    trace_load(at("ring"), &dump) != WEFT_SUCCESS) {
		tap_ok(false, "%llu events: %s", (unsigned long long)events,
		       weft_error_detail());
		recorder_close(r);
		return;
	}
	for (uint64_t i = 0; i < dump.head.count; i++) {
		const struct trace_event *e = &dump.event[i];
		const uint64_t number = events - dump.head.count + i;

		same &= e->call == number && e->bytes == 2 * number && e->comm == 2 &&
			trace_when(&dump.head, e->ticks) >= last;
		last = trace_when(&dump.head, e->ticks);
	}
	tap_ok(same && dump.head.count == want && dump.head.total == events &&
		       dump.head.rank == 1 && dump.head.size == 3,
	       "%llu events: the last %llu are there, in order",
	       (unsigned long long)events, (unsigned long long)want);
	tap_ok(!want || (last <= dump.head.real[1] &&
			 last >= dump.head.real[0] - 1000000000),
	       "and were when they should have been");
	trace_free(&dump);
	recorder_close(r);
}

/* ---- while it goes on -------------------------------------------------------------- */

#define CHANGING_DUMPS 2000

/* Communicators come and go, calls begin and end, for ever. */
static void go_on_changing(struct recorder *r)
{
	static const int32_t odd[] = {0, 1, 5, 7};

	for (uint32_t i = 0;; i++) {
		struct trace_call *c = recorder_call(r);

		recorder_comm_close(r, 3);
		recorder_comm_open(r, 3, i & 1 ? odd : NULL, i & 1 ? 4 : 8, 1);
		c->state = TRACE_CALL_NONE;
		*c = (struct trace_call){.count = i,
					 .comm = 3,
					 .culprit = -1,
					 .waits = -1,
					 .root = -1,
					 .state = TRACE_CALL_OPEN};
	}
}

/* Another process writes into the recorder, which is shared memory. */
static void changing(void)
{
	struct recorder *r = recorder_open(1, 8);
	struct trace_dump dump;
	int bad = 0;
	pid_t pid;

	if (!r)
		tap_bail("no recorder");
	recorder_comm_open(r, 0, NULL, 8, 1);
	pid = tap_fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		go_on_changing(r);
	}
	for (int i = 0; i < CHANGING_DUMPS; i++) {
		if (recorder_dump(r, TRACE_ASKED, 0, at("changing")) ||
		    trace_load(at("changing"), &dump) != WEFT_SUCCESS) {
			bad++;
			tap_diag("%s", weft_error_detail());
			continue;
		}
		bad += dump.head.comm_count < 1;
		trace_free(&dump);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_is_int(bad, 0, "a dump of what changes meanwhile can be read");
	recorder_close(r);
}

/* ---- files that are none ----------------------------------------------------------- */

static void put_file(const char *path, const void *bytes, size_t len)
{
	FILE *out = fopen(path, "wb");

	if (!out || fwrite(bytes, 1, len, out) != len || fclose(out))
		tap_bail("%s: %s", path, strerror(errno));
}

static void refused(const uint8_t *good, size_t len, size_t where, uint8_t value,
		    const char *why)
{
	uint8_t bytes[TRACE_HEAD_LEN + 3 * TRACE_EVENT_LEN + 1] = {0};
	struct trace_dump dump;

	memcpy(bytes, good, TRACE_HEAD_LEN + 3 * TRACE_EVENT_LEN);
	bytes[where] = value;
	put_file(at("bad"), bytes, len);
	tap_ok(trace_load(at("bad"), &dump) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), why) &&
		       strstr(weft_error_detail(), at("bad")),
	       "byte %zu is %u, %zu long: %s", where, value, len, why);
}

static void files(void)
{
	const size_t whole = TRACE_HEAD_LEN + 3 * TRACE_EVENT_LEN;
	uint8_t good[TRACE_HEAD_LEN + 3 * TRACE_EVENT_LEN];
	struct recorder *r = recorder_open(0, 2);
	struct trace_dump dump;
	FILE *in;

	for (uint32_t i = 0; i < 3; i++)
		trace_put(r, TRACE_PUT, 0, 0, i, 1, 8);
	recorder_dump(r, TRACE_ASKED, 0, at("good"));
	recorder_close(r);
	in = fopen(at("good"), "rb");
	if (!in || fread(good, 1, whole, in) != whole)
		tap_bail("no dump to damage");
	fclose(in);
	tap_is_mem(good, "WEFTTRC2\4\3\2\1\100\1\0\0\40\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0",
		   32, "a head's first bytes");
	refused(good, 100, 0, 'W', "cut short");
	refused(good, whole - 1, 0, 'W', "cut short");
	refused(good, whole + 1, 0, 'W', "something follows");
	refused(good, whole, 7, '1', "another version");
	refused(good, whole, 8, 1, "other byte order");
	refused(good, whole, 12, 1, "another version");
	refused(good, whole, 20, 9, "head is damaged");
	refused(good, whole, 24, 2, "head is damaged");
	refused(good, whole, 63, 1, "head is damaged");
	refused(good, whole, 319, 1, "head is damaged");
	refused(good, whole, TRACE_HEAD_LEN + 8, 0, "event 0 is damaged");
	refused(good, whole, TRACE_HEAD_LEN + 40, TRACE_KIND_END, "event 1 is damaged");
	refused(good, whole, 256, 9, "another version");
	refused(good, whole, 268, 1, "cut short");
	tap_ok(trace_load(at("none"), &dump) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), "No such file"),
	       "no such file");
}

/* ---- ranks ------------------------------------------------------------------------- */

struct found {
	uint64_t calls, ends, sends, recvs, fails, puts;
	uint64_t alone; /* of messages between two ranks */
	uint32_t reason;
};

static bool look(const char *path, struct found *f)
{
	struct trace_dump dump;

	memset(f, 0, sizeof(*f));
	if (trace_load(path, &dump) != WEFT_SUCCESS)
		return false;
	f->reason = dump.head.reason;
	for (uint64_t i = 0; i < dump.head.count; i++) {
		const struct trace_event *e = &dump.event[i];

		f->alone += e->pair == TRACE_PAIR_ALONE;
		f->calls += e->kind == TRACE_CALL && e->what == WEFT_COLL_ALLREDUCE;
		f->ends += e->kind == TRACE_END && e->what == WEFT_SUCCESS;
		f->sends += e->kind == TRACE_STEP && e->what == 0;
		f->recvs += e->kind == TRACE_STEP && e->what == 1;
		f->fails += e->kind == TRACE_FAIL && e->what == WEFT_ERR_TIMEOUT;
		f->puts += e->kind == TRACE_PUT;
	}
	trace_free(&dump);
	return true;
}

static char *armed_path(const struct ranks *r, char path[400])
{
	snprintf(path, 400, "%s/rank-%d.%ld.0.trace", folder, r->rank, (long)getpid());
	return path;
}

/* A message, which has the number of a collective before it, is told from what that one
 * sent: as it is given and is done, or has come. */
static int message_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	enum weft_result got;
	struct found f;
	char name[40];
	float x = 1;

	got = r->rank ? weft_recv(comm, &x, 1, WEFT_FP32, 0, NULL)
		      : weft_send(comm, &x, 1, WEFT_FP32, 1, NULL);
	snprintf(name, sizeof(name), "message-%d", r->rank);
	if (got != WEFT_SUCCESS || weft_trace_dump(ctx, at(name)) != WEFT_SUCCESS)
		return ranks_say(r, "message: %s", weft_error_detail());
	if (!look(at(name), &f) || f.alone != (r->rank ? 1 : 2))
		return ranks_say(r, "message: %s: %llu events of it", weft_error_detail(),
				 (unsigned long long)f.alone);
	return RANKS_GOOD;
}

static int dumps_body(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm)
{
	char path[400], name[40];
	struct found f;

	for (int i = 0; i < 5; i++) {
		float in = 1, out = 0;

		if (weft_allreduce(comm, &in, &out, 1, WEFT_FP32, WEFT_SUM, NULL) !=
			    WEFT_SUCCESS ||
		    out != 2)
			return ranks_say(r, "allreduce: %s", weft_error_detail());
	}
	snprintf(name, sizeof(name), "asked-%d", r->rank);
	if (weft_trace_dump(ctx, at(name)) != WEFT_SUCCESS)
		return ranks_say(r, "dump: %s", weft_error_detail());
	if (!look(at(name), &f) || f.calls != 5 || f.ends < 5 || !f.sends || !f.recvs ||
	    f.fails || f.alone || f.reason != TRACE_ASKED)
		return ranks_say(r, "asked: %s: %llu calls, %llu ends, %llu sends",
				 weft_error_detail(), (unsigned long long)f.calls,
				 (unsigned long long)f.ends, (unsigned long long)f.sends);
	if (weft_trace_dump(ctx, at("no/folder")) != WEFT_ERR_ARG ||
	    !strstr(weft_error_detail(), "No such file") ||
	    weft_trace_dump(ctx, NULL) != WEFT_ERR_ARG ||
	    weft_trace_dump(NULL, "x") != WEFT_ERR_ARG)
		return ranks_say(r, "a dump that can't be: %s", weft_error_detail());
	raise(SIGUSR2);
	if (!look(armed_path(r, path), &f) || f.calls != 5 || f.reason != TRACE_SIGNALLED)
		return ranks_say(r, "at the signal: %s", weft_error_detail());
	return RANKS_GOOD;
}

/* The other rank never calls it: the first one dumps at its deadline. */
static int deadline_body(struct ranks *r, struct weft_comm *comm)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	char path[400];
	struct found f;
	float in = 1, out;

	opts.timeout_us = 300000;
	if (r->rank == 0 && weft_allreduce(comm, &in, &out, 1, WEFT_FP32, WEFT_SUM,
					   &opts) != WEFT_ERR_TIMEOUT)
		return ranks_say(r, "no deadline: %s", weft_error_detail());
	ranks_barrier(r);
	if (r->rank != 0)
		return RANKS_GOOD;
	if (!look(armed_path(r, path), &f) || f.reason != TRACE_FAILED || f.fails != 1)
		return ranks_say(r, "at the deadline: %s: %llu failures",
				 weft_error_detail(), (unsigned long long)f.fails);
	return RANKS_GOOD;
}

static int body(struct ranks *r)
{
	const bool leave = r->arg != NULL;
	struct weft_comm *comm;
	struct weft_ctx *ctx;
	int rc;

	setenv("WEFT_TRACE", folder, 1);
	/* Calls by lines have no steps. */
	setenv("WEFT_LINES", "off", 1);
	rc = ranks_open(r, "tcp", 60000000, &ctx);
	if (rc)
		return rc;
	if (weft_comm_create(ctx, NULL, &comm) != WEFT_SUCCESS)
		return ranks_say(r, "communicator: %s", weft_error_detail());
	rc = dumps_body(r, ctx, comm);
	if (rc == RANKS_GOOD)
		rc = message_body(r, ctx, comm);
	if (rc == RANKS_GOOD && !leave)
		rc = deadline_body(r, comm);
	/* After the deadline it may be a moment until nobody can write any more. */
	for (int i = 0; i < 300 && weft_comm_destroy(comm) == WEFT_ERR_BUSY; i++)
		usleep(100000);
	if (weft_ctx_close(ctx) != WEFT_SUCCESS && rc == RANKS_GOOD)
		return ranks_say(r, "close: %s", weft_error_detail());
	return rc;
}

static int refused_body(struct ranks *r)
{
	struct weft_ctx *ctx;

	setenv("WEFT_TRACE", at("nowhere"), 1);
	if (ranks_open(r, "tcp", 60000000, &ctx) != RANKS_BAD)
		return RANKS_GOOD;
	return strstr(weft_error_detail(), "WEFT_TRACE") ? RANKS_GOOD : RANKS_BAD;
}

static void ranks(void)
{
	int end[RANKS_MAX];
	bool good = ranks_run(2, 120, body, NULL, end);

	if (end[0] == RANKS_ABSENT)
		tap_skip(1, "there is no provider tcp here");
	else
		tap_ok(good, "ranks dump when asked, at a signal, at a deadline");
	tap_ok(ranks_run(1, 120, refused_body, NULL, end),
	       "a folder that is none is refused");
}

static void scratch(void)
{
	snprintf(folder, sizeof(folder), "%s/weft-trace-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(folder))
		tap_bail("%s: %s", folder, strerror(errno));
}

static void sweep(void)
{
	char command[320];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		tap_diag("%s is left", folder);
}

/* A rank closes while it asks another, that it never sent anything to, for its state: tcp
 * of libfabric 1.17 then leaks what belongs to a connection that is being made. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfabric.so\n";
}

/* What was passed over is no report. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

int main(int argc, char **argv)
{
	int end[RANKS_MAX];
	static int leave;

	if (argc > 1) {
		snprintf(folder, sizeof(folder), "%s", argv[1]);
		return ranks_run(2, 120, body, &leave, end) ? 0 : 1;
	}
	scratch();
	ring_case(0, 0);
	ring_case(10, 10);
	ring_case(TRACE_EVENTS - TRACE_MARGIN, TRACE_EVENTS - TRACE_MARGIN);
	ring_case(TRACE_EVENTS + 5, TRACE_EVENTS - TRACE_MARGIN);
	ring_case(5 * TRACE_EVENTS + 77, TRACE_EVENTS - TRACE_MARGIN);
	changing();
	files();
	ranks();
	sweep();
	return tap_done();
}
