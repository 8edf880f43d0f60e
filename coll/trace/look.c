/* SPDX-License-Identifier: BSD-2-Clause */
/* See look.h. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/trace/look.h"
#include "coll/trace/take.h"

struct looker {
	pid_t pid;
	struct look *look;
	void (*each)(void *arg, const struct look *look);
	void *arg;
};

/* As a dump's would be that is written now. */
static void take_head(struct trace_head *head)
{
	head->reason = TRACE_TAKEN;
	head->signal = 0;
	head->count = 0;
	head->ticks[1] = ticks_now(ticks_have_counter());
	head->mono[1] = ticks_clock_ns(CLOCK_MONOTONIC);
	head->real[1] = ticks_clock_ns(CLOCK_REALTIME);
	head->comm_count = 0;
	head->call_count = 0;
	head->peer_count = 0;
}

/* Rows that are in use and are what a recorder writes. */
static void take_tables(struct look *l, const struct trace_image *m)
{
	struct trace_head *h = &l->head;

	for (int i = 0; i < TRACE_COMMS; i++)
		if (trace_comm_fits(&m->comm[i], h))
			l->comm[h->comm_count++] = m->comm[i];
	for (int i = 0; i < TRACE_CALLS; i++)
		if (trace_call_fits(&m->call[i], h))
			l->call[h->call_count++] = m->call[i];
	for (int i = 0; i < TRACE_PEERS; i++)
		if (trace_peer_fits(&m->peer[i], h))
			l->peer[h->peer_count++] = m->peer[i];
}

static bool name_fits(const char name[TRACE_COUNT_NAME])
{
	const size_t len = strnlen(name, TRACE_COUNT_NAME);

	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)name[i]))
			return false;
	return len < TRACE_COUNT_NAME;
}

static bool live_fits(const struct look *l)
{
	const struct trace_live *live = &l->live;

	for (int i = 0; i < TRACE_COUNTS; i++)
		if (!name_fits(live->count[i].name))
			return false;
	if (live->lanes > TRACE_LANES || live->counted > l->head.ticks[1])
		return false;
	for (uint32_t i = 0; i < live->lanes; i++)
		if (live->lane[i].peer < -1 || live->lane[i].peer >= l->head.size ||
		    live->lane[i].up > 1)
			return false;
	return true;
}

static enum weft_result look_one(void *arg, const struct trace_image *image, int number)
{
	struct looker *w = arg;
	struct look *l = w->look;
	const char *fault;

	(void)number;
	l->head = image->head;
	take_head(&l->head);
	/* It was read before the clock was; what is later is damage. */
	fault = trace_head_fault(&l->head);
	if (!fault) {
		take_tables(l, image);
		l->live = image->live;
		fault = live_fits(l) ? NULL : "what its provider counts is damaged";
	}
	if (fault)
		return error_set(WEFT_ERR_ARG, "process %ld: its recorder: %s",
				 (long)w->pid, fault);
	w->each(w->arg, l);
	return WEFT_SUCCESS;
}

enum weft_result look_process(pid_t pid, void (*each)(void *arg, const struct look *look),
			      void *arg)
{
	struct looker w = {.pid = pid, .each = each, .arg = arg};
	enum weft_result result;

	w.look = malloc(sizeof(*w.look));
	if (!w.look)
		return error_set(WEFT_ERR_NOMEM, "no memory for a recorder");
	result = take_images(pid, look_one, &w);
	free(w.look);
	return result;
}
