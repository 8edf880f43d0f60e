/* SPDX-License-Identifier: BSD-2-Clause */
/* See trace_file.h. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/trace/trace_file.h"

enum { COUNT_MAX = 1 << 24, TABLE_MAX = 1 << 16 };

/* `what` of a kind is one of these many. */
enum whats { WHAT_NONE, WHAT_COLL, WHAT_RESULT, WHAT_STEP, WHAT_NET };

static const struct kind_row {
	const char *name;
	enum whats what;
} kind_table[TRACE_KIND_END] = {
	[TRACE_CALL] = {"call", WHAT_COLL},
	[TRACE_END] = {"end", WHAT_RESULT},
	[TRACE_FAIL] = {"fail", WHAT_RESULT},
	[TRACE_STEP] = {"step", WHAT_STEP},
	[TRACE_READY] = {"ready", WHAT_NONE},
	[TRACE_PUT] = {"put", WHAT_NONE},
	[TRACE_WIN_PUT] = {"window-put", WHAT_NONE},
	[TRACE_WIN_LAND] = {"window-landed", WHAT_NONE},
	[TRACE_SIGNAL] = {"signal", WHAT_NONE},
	[TRACE_SEND] = {"send", WHAT_NONE},
	[TRACE_SHORT] = {"short", WHAT_COLL},
	[TRACE_NET] = {"provider", WHAT_NET},
};

static const char *const reason_name[TRACE_REASON_END] = {
	[TRACE_ASKED] = "asked for",
	[TRACE_SIGNALLED] = "SIGUSR2",
	[TRACE_FAILED] = "a call failed",
	[TRACE_CRASHED] = "it crashed",
	[TRACE_TAKEN] = "taken from its memory",
};

static const char *const step_name[] = {"send", "recv", "reduce", "copy"};

static const char *const net_name[TRACE_NET_END] = {
	[TRACE_NET_ERROR] = "error",	     [TRACE_NET_PEER_LOST] = "peer lost",
	[TRACE_NET_RAIL_DOWN] = "rail down", [TRACE_NET_RAIL_UP] = "rail up",
	[TRACE_NET_LANE_DOWN] = "lane down", [TRACE_NET_LANE_UP] = "lane up",
	[TRACE_NET_RESENT] = "resent",
};

static const char *const stage_name[TRACE_STAGES] = {
	[TRACE_STAGE_REGISTER] = "registration",
	[TRACE_STAGE_REDUCE] = "reduce",
	[TRACE_STAGE_TRANSFER] = "transfer",
	[TRACE_STAGE_CONTROL] = "control",
	[TRACE_STAGE_WAIT] = "wait",
};

const char *trace_kind_name(unsigned kind)
{
	return kind == 0 || kind >= TRACE_KIND_END ? "?" : kind_table[kind].name;
}

const char *trace_reason_name(unsigned reason)
{
	return reason == 0 || reason >= TRACE_REASON_END ? "?" : reason_name[reason];
}

const char *trace_stage_name(unsigned stage)
{
	return stage >= TRACE_STAGES ? "?" : stage_name[stage];
}

const char *trace_what_name(const struct trace_event *event)
{
	const char *name = NULL;

	switch (event->kind < TRACE_KIND_END ? kind_table[event->kind].what : WHAT_NONE) {
	case WHAT_COLL:
		name = event->what < WEFT_COLL_COUNT
			       ? weft_coll_name((enum weft_coll)event->what)
			       : "message";
		break;
	case WHAT_RESULT:
		name = weft_strerror((enum weft_result)event->what);
		break;
	case WHAT_STEP:
		name = event->what < sizeof(step_name) / sizeof(step_name[0])
			       ? step_name[event->what]
			       : NULL;
		break;
	case WHAT_NET:
		name = event->what < TRACE_NET_END ? net_name[event->what] : NULL;
		break;
	default:
		return "";
	}
	return name ? name : "?";
}

/* Nanoseconds of a tick. */
static double tick_of(const struct trace_head *head)
{
	const uint64_t whole = head->ticks[1] - head->ticks[0];

	return whole ? (double)(head->mono[1] - head->mono[0]) / (double)whole : 1.0;
}

int64_t trace_when(const struct trace_head *head, uint64_t ticks)
{
	/* What was recorded while the dump was written may be later. */
	const int64_t before = (int64_t)(head->ticks[1] - ticks);

	return head->real[1] - (int64_t)(tick_of(head) * (double)before);
}

int64_t trace_span(const struct trace_head *head, uint64_t ticks)
{
	return (int64_t)(tick_of(head) * (double)ticks);
}

/* ---- what is wrong ----------------------------------------------------------------- */

static bool all_zero(const void *at, size_t len)
{
	const char *byte = at;

	for (size_t i = 0; i < len; i++) {
		if (byte[i])
			return false;
	}
	return true;
}

static bool head_times_fit(const struct trace_head *h)
{
	return h->ticks[1] >= h->ticks[0] && h->mono[1] >= h->mono[0] &&
	       h->mono[0] >= 0 && h->real[1] >= 0 && h->real[1] <= INT64_MAX / 2 &&
	       h->looked <= h->ticks[1];
}

static bool head_counts_fit(const struct trace_head *h)
{
	return h->count <= COUNT_MAX && h->count <= h->total &&
	       h->comm_count <= TABLE_MAX && h->call_count <= TABLE_MAX &&
	       h->peer_count <= TABLE_MAX && h->signal <= 64;
}

const char *trace_head_fault(const struct trace_head *h)
{
	if (memcmp(h->magic, TRACE_MAGIC, sizeof(h->magic)) != 0)
		return "it is no dump of a flight recorder, or one of another version: "
		       "read it "
		       "with the weft command of the version that wrote it";
	if (h->order != TRACE_ORDER)
		return "it was written by a host of the other byte order";
	if (h->head_len != TRACE_HEAD_LEN || h->event_len != TRACE_EVENT_LEN ||
	    h->comm_len != TRACE_COMM_LEN || h->call_len != TRACE_CALL_LEN ||
	    h->peer_len != TRACE_PEER_LEN)
		return "it is of another version: read it with the weft command of the "
		       "version that wrote it";
	if (h->reason == 0 || h->reason >= TRACE_REASON_END || h->size < 1 ||
	    h->rank < 0 || h->rank >= h->size || !head_times_fit(h) ||
	    !head_counts_fit(h) || h->provider[TRACE_NAME - 1] ||
	    h->host[TRACE_NAME - 1] || !all_zero(h->zero, sizeof(h->zero)))
		return "its head is damaged";
	return NULL;
}

static bool event_fits(const struct trace_event *e)
{
	return e->kind != 0 && e->kind < TRACE_KIND_END;
}

static bool run_fits(const struct trace_run *run, int32_t size)
{
	const int64_t last = run->first + (int64_t)run->step * (run->count - 1);

	return run->first >= 0 && run->first < size && run->count >= 1 &&
	       run->count <= size && last >= 0 && last < size;
}

bool trace_comm_fits(const struct trace_comm *c, const struct trace_head *h)
{
	int64_t members = 0;

	if (c->state == TRACE_COMM_NONE || c->state >= TRACE_COMM_STATES || c->size < 1 ||
	    c->size > h->size || c->self < 0 || c->self >= c->size || c->first < 0 ||
	    c->first >= h->size || c->runs > TRACE_RUNS ||
	    !all_zero(c->zero, sizeof(c->zero)))
		return false;
	for (uint32_t i = 0; i < c->runs; i++) {
		if (!run_fits(&c->run[i], h->size))
			return false;
		members += c->run[i].count;
	}
	return c->runs == 0 || (members == c->size && c->run[0].first == c->first);
}

bool trace_call_fits(const struct trace_call *c, const struct trace_head *h)
{
	return c->state != TRACE_CALL_NONE && c->state < TRACE_CALL_STATES &&
	       c->result < WEFT_RESULT_COUNT && c->flags < TRACE_CALL_FLAGS &&
	       c->told <= 1 && c->culprit >= -1 && c->culprit < h->size &&
	       c->waits >= -1 && c->waits < h->size && c->on < TRACE_STAGES &&
	       c->root >= -1 && c->root < h->size && c->zero == 0;
}

bool trace_peer_fits(const struct trace_peer *p, const struct trace_head *h)
{
	return p->rank >= 0 && p->rank < h->size && p->used == 1 && p->lost <= 1 &&
	       p->zero == 0;
}

/* What is wrong with the tables, or NULL. */
static const char *tables_fault(const struct trace_dump *d)
{
	for (uint32_t i = 0; i < d->head.comm_count; i++) {
		if (!trace_comm_fits(&d->comm[i], &d->head))
			return "its communicators are damaged";
	}
	for (uint32_t i = 0; i < d->head.call_count; i++) {
		if (!trace_call_fits(&d->call[i], &d->head))
			return "its calls are damaged";
	}
	for (uint32_t i = 0; i < d->head.peer_count; i++) {
		if (!trace_peer_fits(&d->peer[i], &d->head))
			return "its peers are damaged";
	}
	return NULL;
}

/* ---- reading ----------------------------------------------------------------------- */

/* NULL: the rest of the file is as long as the head says. */
static const char *length_fault(FILE *in, const struct trace_head *h)
{
	const long want = (long)(h->comm_count * (uint64_t)TRACE_COMM_LEN +
				 h->call_count * (uint64_t)TRACE_CALL_LEN +
				 h->peer_count * (uint64_t)TRACE_PEER_LEN +
				 h->count * TRACE_EVENT_LEN);
	long end;

	if (fseek(in, 0, SEEK_END) || (end = ftell(in)) < TRACE_HEAD_LEN ||
	    fseek(in, TRACE_HEAD_LEN, SEEK_SET))
		return "it can't be read from where one wants";
	end -= TRACE_HEAD_LEN;
	return end < want   ? "it is cut short"
	       : end > want ? "something follows its events"
			    : NULL;
}

/* NULL: it can't be read, or there is no memory, as *nomem says. */
static void *read_table(FILE *in, uint64_t count, size_t len, bool *nomem)
{
	void *at = calloc(count + 1, len);

	if (!at) {
		*nomem = true;
		return NULL;
	}
	if (fread(at, len, count, in) == count)
		return at;
	free(at);
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct trace_call *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static enum weft_result load_tables(FILE *in, const char *path, struct trace_dump *dump)
{
	const struct trace_head *h = &dump->head;
	bool nomem = false;
	const char *fault;

	dump->comm = read_table(in, h->comm_count, TRACE_COMM_LEN, &nomem);
	if (dump->comm)
		dump->call = read_table(in, h->call_count, TRACE_CALL_LEN, &nomem);
	if (dump->call)
		dump->peer = read_table(in, h->peer_count, TRACE_PEER_LEN, &nomem);
	if (nomem)
		return error_set(WEFT_ERR_NOMEM, "%.200s: no memory for its tables",
				 path);
	fault = dump->peer ? tables_fault(dump) : "it can't be read";
	if (fault)
		return error_set(WEFT_ERR_ARG, "%.200s: %s", path, fault);
	qsort(dump->call, h->call_count, sizeof(*dump->call), by_start);
	return WEFT_SUCCESS;
}

static enum weft_result load_events(FILE *in, const char *path, struct trace_dump *dump)
{
	const struct trace_head *h = &dump->head;
	bool nomem = false;

	dump->event = read_table(in, h->count, TRACE_EVENT_LEN, &nomem);
	if (nomem)
		return error_set(WEFT_ERR_NOMEM, "%.200s: no memory for %llu events",
				 path, (unsigned long long)h->count);
	if (!dump->event)
		return error_set(WEFT_ERR_ARG, "%.200s: it can't be read", path);
	for (uint64_t i = 0; i < h->count; i++) {
		if (!event_fits(&dump->event[i]))
			return error_set(WEFT_ERR_ARG, "%.200s: event %llu is damaged",
					 path, (unsigned long long)i);
	}
	return WEFT_SUCCESS;
}

static enum weft_result load(FILE *in, const char *path, bool events,
			     struct trace_dump *dump)
{
	struct trace_head *h = &dump->head;
	enum weft_result result;
	const char *fault;

	if (fread(h, 1, sizeof(*h), in) != sizeof(*h))
		return error_set(WEFT_ERR_ARG, "%.200s: %s", path,
				 ferror(in) ? "it can't be read" : "it is cut short");
	fault = trace_head_fault(h);
	if (!fault)
		fault = length_fault(in, h);
	if (fault)
		return error_set(WEFT_ERR_ARG, "%.200s: %s", path, fault);
	result = load_tables(in, path, dump);
	if (result == WEFT_SUCCESS && events)
		result = load_events(in, path, dump);
	return result;
}

static enum weft_result load_path(const char *path, bool events, struct trace_dump *dump)
{
	FILE *in = fopen(path, "rb");
	enum weft_result result;

	memset(dump, 0, sizeof(*dump));
	if (!in)
		return error_set(WEFT_ERR_ARG, "%.200s: %s", path, strerror(errno));
	result = load(in, path, events, dump);
	fclose(in);
	if (result != WEFT_SUCCESS)
		trace_free(dump);
	return result;
}

enum weft_result trace_load(const char *path, struct trace_dump *dump)
{
	return load_path(path, true, dump);
}

enum weft_result trace_load_tables(const char *path, struct trace_dump *dump)
{
	return load_path(path, false, dump);
}

void trace_free(struct trace_dump *dump)
{
	free(dump->comm);
	free(dump->call);
	free(dump->peer);
	free(dump->event);
	memset(dump, 0, sizeof(*dump));
}
