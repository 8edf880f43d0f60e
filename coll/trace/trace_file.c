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

enum { COUNT_MAX = 1 << 24 };

/* `what` of a kind is one of these many. */
enum whats { WHAT_NONE, WHAT_COLL, WHAT_RESULT, WHAT_STEP };

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
};

static const char *const reason_name[TRACE_REASON_END] = {
	[TRACE_ASKED] = "asked for",
	[TRACE_SIGNALLED] = "SIGUSR2",
	[TRACE_FAILED] = "a call failed",
};

static const char *const step_name[] = {"send", "recv", "reduce", "copy"};

const char *trace_kind_name(unsigned kind)
{
	return kind == 0 || kind >= TRACE_KIND_END ? "?" : kind_table[kind].name;
}

const char *trace_reason_name(unsigned reason)
{
	return reason == 0 || reason >= TRACE_REASON_END ? "?" : reason_name[reason];
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
	default:
		return "";
	}
	return name ? name : "?";
}

int64_t trace_when(const struct trace_head *head, uint64_t ticks)
{
	const uint64_t whole = head->ticks[1] - head->ticks[0];
	const double tick =
		whole ? (double)(head->mono[1] - head->mono[0]) / (double)whole : 1.0;
	/* What was recorded while the dump was written may be later. */
	const int64_t before = (int64_t)(head->ticks[1] - ticks);

	return head->real[1] - (int64_t)(tick * (double)before);
}

/* What is wrong with a head, or NULL. */
static const char *head_fault(const struct trace_head *h)
{
	static const char zero[sizeof(h->zero)];

	if (memcmp(h->magic, TRACE_MAGIC, sizeof(h->magic)) != 0)
		return "it is no dump of a flight recorder, or one of another version";
	if (h->order != TRACE_ORDER)
		return "it was written by a host of the other byte order";
	if (h->head_len != TRACE_HEAD_LEN || h->event_len != TRACE_EVENT_LEN)
		return "it is of another version";
	if (h->reason == 0 || h->reason >= TRACE_REASON_END || h->size < 1 ||
	    h->rank < 0 || h->rank >= h->size || h->count > COUNT_MAX ||
	    h->count > h->total || h->ticks[1] < h->ticks[0] || h->mono[1] < h->mono[0] ||
	    h->mono[0] < 0 || h->real[1] < 0 || h->real[1] > INT64_MAX / 2 ||
	    h->provider[TRACE_NAME - 1] || h->host[TRACE_NAME - 1] ||
	    memcmp(h->zero, zero, sizeof(zero)) != 0)
		return "its head is damaged";
	return NULL;
}

static bool event_fits(const struct trace_event *e)
{
	return e->kind != 0 && e->kind < TRACE_KIND_END && e->zero[0] == 0 &&
	       e->zero[1] == 0;
}

static enum weft_result load(FILE *in, const char *path, struct trace_dump *dump)
{
	struct trace_head *h = &dump->head;
	const char *fault;

	if (fread(h, 1, sizeof(*h), in) != sizeof(*h))
		return error_set(WEFT_ERR_ARG, "%.200s: %s", path,
				 ferror(in) ? "it can't be read" : "it is cut short");
	fault = head_fault(h);
	if (fault)
		return error_set(WEFT_ERR_ARG, "%.200s: %s", path, fault);
	dump->event = calloc(h->count + 1, sizeof(*dump->event));
	if (!dump->event)
		return error_set(WEFT_ERR_NOMEM, "%.200s: no memory for %llu events",
				 path, (unsigned long long)h->count);
	if (fread(dump->event, sizeof(*dump->event), h->count, in) != h->count)
		return error_set(WEFT_ERR_ARG,
				 "%.200s: it is cut short: it should have "
				 "%llu events",
				 path, (unsigned long long)h->count);
	if (fgetc(in) != EOF)
		return error_set(WEFT_ERR_ARG,
				 "%.200s: something follows its %llu events", path,
				 (unsigned long long)h->count);
	for (uint64_t i = 0; i < h->count; i++) {
		if (!event_fits(&dump->event[i]))
			return error_set(WEFT_ERR_ARG, "%.200s: event %llu is damaged",
					 path, (unsigned long long)i);
	}
	return WEFT_SUCCESS;
}

enum weft_result trace_load(const char *path, struct trace_dump *dump)
{
	FILE *in = fopen(path, "rb");
	enum weft_result result;

	memset(dump, 0, sizeof(*dump));
	if (!in)
		return error_set(WEFT_ERR_ARG, "%.200s: %s", path, strerror(errno));
	result = load(in, path, dump);
	fclose(in);
	if (result != WEFT_SUCCESS)
		trace_free(dump);
	return result;
}

void trace_free(struct trace_dump *dump)
{
	free(dump->event);
	memset(dump, 0, sizeof(*dump));
}
