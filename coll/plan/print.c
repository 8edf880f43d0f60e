/* SPDX-License-Identifier: BSD-2-Clause */
/* A plan as text. Written for people who look at a test failure. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "coll/plan/plan.h"

#define LINE_MAX_LEN 512

static const char *const kind_name[] = {
	[PLAN_SEND] = "send",
	[PLAN_RECV] = "recv",
	[PLAN_REDUCE] = "reduce",
	[PLAN_COPY] = "copy",
};

static const char *const buf_name[] = {
	[PLAN_SRC] = "src",
	[PLAN_DST] = "dst",
	[PLAN_SCRATCH] = "scratch",
};

struct text {
	char line[LINE_MAX_LEN];
	size_t len;
};

/* A line that does not fit is cut, which people can see. */
__attribute__((format(printf, 2, 3))) static void text_add(struct text *t,
							   const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->len + 1 >= sizeof(t->line))
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->line + t->len, sizeof(t->line) - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n;
	if (t->len >= sizeof(t->line))
		t->len = sizeof(t->line) - 1;
}

/* "dst[p0: 4+2 -1/trip]": parts 4 and 5 of partition 0, one part down in each trip. */
static void range_add(struct text *t, const struct plan_range *r, int32_t advance)
{
	if (!r->count || !r->block) {
		text_add(t, r->buf == PLAN_ANYBUF ? "its place" : "nothing");
		return;
	}
	text_add(t, "%s[p%u: %u+%u", r->buf <= PLAN_SCRATCH ? buf_name[r->buf] : "?",
		 r->part, r->first, r->block);
	if (r->count > 1)
		text_add(t, " x%u by %u", r->count, r->stride);
	if (advance)
		text_add(t, " %+d/trip", advance);
	text_add(t, "]");
}

static void dep_add(struct text *t, const struct plan_dep *d)
{
	text_add(t, " #%u", d->step);
	if (d->advance == 1 && d->trip0)
		text_add(t, "(t%+d)", d->trip0);
	else if (d->advance == 1)
		text_add(t, "(t)");
	else if (d->advance)
		text_add(t, "(%d%+dt)", d->trip0, d->advance);
	else if (d->trip0)
		text_add(t, "(%d)", d->trip0);
}

static void step_add(struct text *t, const struct plan *plan, uint32_t number)
{
	const struct plan_step *s = &plan->step[number];

	text_add(t, "  #%u %s ", number, s->kind <= PLAN_COPY ? kind_name[s->kind] : "?");
	if (s->kind == PLAN_SEND || s->kind == PLAN_RECV) {
		text_add(t, s->kind == PLAN_SEND ? "to %d" : "from %d", s->peer);
		if (s->peer_advance)
			text_add(t, "%+d/trip", s->peer_advance);
		text_add(t, ": ");
	}
	if (s->kind == PLAN_SEND) {
		range_add(t, &s->src, s->src_advance);
		text_add(t, " -> ");
		range_add(t, &s->dst, s->dst_advance);
	} else {
		range_add(t, &s->dst, s->dst_advance);
	}
	if (s->kind == PLAN_REDUCE || s->kind == PLAN_COPY) {
		text_add(t, " = ");
		range_add(t, &s->src, s->src_advance);
	}
	if (s->kind == PLAN_REDUCE) {
		text_add(t, " op ");
		range_add(t, &s->src2, s->src2_advance);
	}
	if (s->flags & PLAN_SCALE)
		text_add(t, " / %" PRIu64, plan->divisor);
	if (s->dep_count)
		text_add(t, " after");
	for (uint32_t i = 0; i < s->dep_count; i++) {
		dep_add(t, &plan->dep[s->dep_first + i]);
		if (s->dep_first + i == s->proof)
			text_add(t, "=proof");
	}
}

static void part_add(struct text *t, const struct plan_part *p, uint32_t number)
{
	text_add(t, " p%u ", number);
	switch (p->kind) {
	case PLAN_BALANCED:
		text_add(t, "%" PRIu64 " elements in %u parts", p->total, p->parts);
		break;
	case PLAN_TABLE:
		text_add(t, "%" PRIu64 " elements in %u parts by table", p->total,
			 p->parts);
		break;
	case PLAN_LATE:
		text_add(t, "up to %" PRIu64 " elements in %u parts, bound late",
			 p->total, p->parts);
		break;
	case PLAN_SHIFTED:
		text_add(t, "p%u from %" PRIu64 " on", p->of, p->base);
		break;
	case PLAN_FOLDED:
		text_add(t, "parts of p%u folded into %u slots of %" PRIu64, p->of,
			 p->slots, (p->total - p->base) / p->slots);
		if (p->base)
			text_add(t, " from %" PRIu64 " on", p->base);
		break;
	}
}

void plan_print(const struct plan *plan, void (*line)(void *arg, const char *text),
		void *arg)
{
	struct text t = {.len = 0};

	text_add(&t,
		 "%s: rank %d of %d%s%s%s, %" PRIu64 " instances, src %" PRIu64
		 " dst %" PRIu64 " scratch %" PRIu64 " elements",
		 plan->algorithm, plan->rank, plan->size,
		 plan->in_place ? ", in place" : "", plan->puts ? ", puts" : "",
		 plan->lines ? ", lines" : "", plan->instances, plan->buf_len[PLAN_SRC],
		 plan->buf_len[PLAN_DST], plan->buf_len[PLAN_SCRATCH]);
	line(arg, t.line);
	for (uint32_t i = 0; i < plan->part_count; i++) {
		t.len = 0;
		part_add(&t, &plan->part[i], i);
		line(arg, t.line);
	}
	for (uint32_t l = 0; l < plan->loop_count; l++) {
		const struct plan_loop *loop = &plan->loop[l];

		if (loop->trips != 1) {
			t.len = 0;
			text_add(&t, " %u trips from instance %" PRIu64, loop->trips,
				 loop->base);
			line(arg, t.line);
		}
		for (uint32_t i = 0; i < loop->count; i++) {
			t.len = 0;
			step_add(&t, plan, loop->first + i);
			line(arg, t.line);
		}
	}
}
