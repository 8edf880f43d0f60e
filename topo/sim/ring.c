/* SPDX-License-Identifier: BSD-2-Clause */
/* See ring.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/engine_in.h"
#include "topo/sim/ring.h"

/* Rows have room for a whole number of blocks, so that loops over one are of a known
 * length. */
#define BLOCK 64u

/* Dependencies that many instances back are looked up, longer ones are bounds. */
#define NEAR 192u

/* Trips between two rows that are kept as a bound. */
#define MARK_EVERY 8u
#define MARKS	   (ENGINE_WINDOW / MARK_EVERY + 2)

/* Steps of a loop, at most. */
#define BODY_MAX 8u

struct ring {
	const struct sim_net *net;
	const struct sim_job *job;
	const struct sim_options *o;
	const struct shape *shape;
	struct shapes shapes;
	int32_t *right; /* by rank */
	int32_t *order; /* by place in the circle: rank */
	uint32_t period, room;
	double *late;	 /* by place: latency to the right */
	double *back;	 /* and from there */
	double *each;	 /* seconds a byte */
	double *fin;	 /* when the last SEND was through; [-1] is the last place's */
	double *offered; /* when the last SEND could have gone */
	double *worked;	 /* when the processor is free */
	double *asked;	 /* when it was asked the last time */
	double *most;	 /* the latest that anything was done */
	double *now;	 /* of the instance at hand */
	double *open;	 /* when its place at the right one was free, by that one */
	double *past[NEAR];
	uint32_t pasts;
	double *mark[MARKS]; /* `most` after trips MARK_EVERY apart */
	uint64_t trip;	     /* of all loops together */
	uint32_t reach;	     /* trips that the window covers, at least */
	bool unsure;
	char *why;
	size_t why_len;
};

static int not_here(struct ring *g, const char *why)
{
	snprintf(g->why, g->why_len, "%s", why);
	return -ENOTSUP;
}

/* ---- what is asked of plans and network ----------------------------------------------
 */

/* Every SEND goes to one rank, every RECV comes from one. */
static bool neighbours(const struct plan *plan, int32_t *right, int32_t *left)
{
	*right = *left = -1;
	for (uint32_t i = 0; i < plan->step_count; i++) {
		const struct plan_step *s = &plan->step[i];
		int32_t *who = s->kind == PLAN_SEND ? right : left;

		if (s->kind != PLAN_SEND && s->kind != PLAN_RECV)
			continue;
		if (s->peer_advance || (*who >= 0 && *who != s->peer))
			return false;
		*who = s->peer;
	}
	return *right >= 0 && *left >= 0;
}

static int plans_read(struct ring *g)
{
	const int32_t n = g->job->call.size;
	int32_t *left = malloc((size_t)n * sizeof(*left));
	int rc = left ? 0 : -ENOMEM;

	for (int32_t r = 0; !rc && r < n; r++) {
		struct plan_call call = g->job->call;
		struct plan *plan = NULL;
		const char *why = "";
		uint32_t shape;

		call.rank = r;
		rc = g->job->algo->build(&call, &plan, &why);
		if (rc)
			break;
		/* The first look is cheap; most plans end here. */
		if (!neighbours(plan, &g->right[r], &left[r])) {
			plan_free(plan);
			rc = not_here(g, "a rank has more than two neighbours");
			break;
		}
		shape = shape_add(&g->shapes, plan, call.elem_size);
		plan_free(plan);
		if (shape == UINT32_MAX)
			rc = -ENOMEM;
		else if (shape || g->shapes.shape[0]->varies)
			rc = not_here(g, "ranks do different things");
	}
	for (int32_t r = 0; !rc && r < n; r++)
		if (left[g->right[r]] != r)
			rc = not_here(g, "ranks are no circle");
	free(left);
	if (!rc)
		g->shape = g->shapes.shape[0];
	return rc;
}

/* Each loop has one SEND and one RECV, or neither, and no SEND waits for a RECV of its
 * own trip, or anything that is behind it there. */
static int loops_check(struct ring *g)
{
	const struct shape *s = g->shape;

	g->reach = ENGINE_WINDOW;
	for (uint32_t l = 0; l < s->loops; l++) {
		unsigned sends = 0, recvs = 0;

		for (uint32_t i = 0; i < s->loop[l].count; i++) {
			const struct shape_step *st = &s->step[s->loop[l].first + i];

			sends += st->kind == PLAN_SEND;
			recvs += st->kind == PLAN_RECV;
			for (uint32_t d = 0;
			     (st->kind == PLAN_SEND || st->kind == PLAN_RECV) &&
			     d < st->deps;
			     d++) {
				const struct plan_dep *dep = &s->dep[st->dep + d];

				if (s->step[dep->step].base < s->loop[l].base ||
				    (dep->advance == 1 && dep->trip0 < 0))
					continue;
				return not_here(g, "a rank passes on what it gets in "
						   "the same step");
			}
		}
		if (ENGINE_WINDOW / s->loop[l].count < g->reach)
			g->reach = ENGINE_WINDOW / s->loop[l].count;
		if (sends != recvs || sends > 1 || s->loop[l].count > BODY_MAX)
			return not_here(g, "steps are not one message out and one in");
	}
	return 0;
}

/* Ranks along the circle. */
static int circle_make(struct ring *g)
{
	const int32_t n = g->job->call.size;
	int32_t at = 0;

	for (int32_t i = 0; i < n; i++) {
		g->order[i] = at;
		at = g->right[at];
		if (at == 0 && i + 1 < n)
			return not_here(g, "ranks are more than one circle");
	}
	return 0;
}

/* Rates are the ports': together neighbours ask no link for more than it has. */
static int links_check(struct ring *g)
{
	double *asked = calloc((size_t)g->net->links + 1, sizeof(*asked));
	const int32_t n = g->job->call.size;
	int rc = asked ? 0 : -ENOMEM;

	for (int32_t i = 0; !rc && i < n; i++) {
		const int32_t from = g->order[i], to = g->right[from];
		struct sim_path p;

		sim_net_path(g->net, from, to, &p);
		for (unsigned j = 0; j < p.links; j++) {
			asked[p.link[j]] += p.most;
			if (asked[p.link[j]] > g->net->capacity[p.link[j]])
				rc = not_here(g, "a link is too narrow for all "
						 "neighbours at once");
		}
		g->late[i] = p.latency;
		g->each[i] = 1 / p.most;
		sim_net_path(g->net, to, from, &p);
		g->back[i] = p.latency;
	}
	free(asked);
	return rc;
}

static bool repeats(const struct ring *g, uint32_t period)
{
	const uint32_t n = (uint32_t)g->job->call.size;

	for (uint32_t i = period; i < n; i++)
		if (g->late[i] != g->late[i - period] ||
		    g->back[i] != g->back[i - period] ||
		    g->each[i] != g->each[i - period])
			return false;
	return true;
}

static void period_find(struct ring *g)
{
	const uint32_t n = (uint32_t)g->job->call.size;

	g->period = n;
	for (uint32_t parts = n; parts > 1; parts--) {
		if (n % parts || g->o->delay || !repeats(g, n / parts))
			continue;
		g->period = n / parts;
		return;
	}
}

/* ---- rows ----------------------------------------------------------------------------
 */

/* With one place before the first, and nothing in it. */
static double *row_new(struct ring *g)
{
	double *row = calloc((size_t)g->room + BLOCK, sizeof(*row));

	/* cppcheck-suppress memleak ; row_free() gives it back */
	return row ? row + BLOCK : NULL;
}

static void row_free(double *row)
{
	if (row)
		free(row - BLOCK);
}

static void row_max(double *restrict to, const double *restrict other, uint32_t room)
{
	for (uint32_t b = 0; b < room; b += BLOCK)
		for (uint32_t i = 0; i < BLOCK; i++)
			to[b + i] = to[b + i] > other[b + i] ? to[b + i] : other[b + i];
}

/* Whether no place of `row` is before its one of `than`. */
static bool row_after(const double *restrict row, const double *restrict than,
		      uint32_t room)
{
	for (uint32_t b = 0; b < room; b += BLOCK) {
		int before = 0;

		for (uint32_t i = 0; i < BLOCK; i++)
			before |= row[b + i] < than[b + i];
		if (before)
			return false;
	}
	return true;
}

/* The same of what lies one to the right, and takes `back` to be heard of. */
static bool row_after_right(const struct ring *g, const double *restrict row,
			    const double *restrict than)
{
	const double *restrict back = g->back;

	for (uint32_t i = 0; i < g->period; i++)
		if (row[i] < than[i + 1 < g->period ? i + 1 : 0] + back[i])
			return false;
	return true;
}

static void send_row(struct ring *g, double bytes)
{
	double *restrict now = g->now, *restrict fin = g->fin;
	const double *restrict each = g->each;

	for (uint32_t b = 0; b < g->room; b += BLOCK) {
		for (uint32_t i = 0; i < BLOCK; i++) {
			now[b + i] = now[b + i] > fin[b + i] ? now[b + i] : fin[b + i];
			fin[b + i] = now[b + i] + bytes * each[b + i];
		}
	}
	fin[-1] = fin[g->period - 1];
}

/* What the left one sent. late[-1] is the last place's. */
static void recv_row(struct ring *g)
{
	double *restrict now = g->now;
	const double *restrict fin = g->fin - 1, *restrict late = g->late - 1;

	for (uint32_t b = 0; b < g->room; b += BLOCK) {
		for (uint32_t i = 0; i < BLOCK; i++) {
			const double there = fin[b + i] + late[b + i];

			now[b + i] = now[b + i] > there ? now[b + i] : there;
		}
	}
}

static void work_row(struct ring *g, double seconds)
{
	row_max(g->worked, g->now, g->room);
	for (uint32_t i = 0; i < g->room; i++)
		g->worked[i] += seconds;
	memcpy(g->now, g->worked, g->room * sizeof(*g->now));
}

/* ---- instances -----------------------------------------------------------------------
 */

/* `most` as it was when everything before the window was done, or a little later; NULL:
 * the window reaches back to the beginning. */
static const double *mark_of(const struct ring *g)
{
	if (g->trip < g->reach)
		return NULL;
	return g->mark[(g->trip - g->reach + MARK_EVERY) / MARK_EVERY % MARKS];
}

/* When all that the instance waits for is done, as far as that is near; *far: something
 * is not. */
static void deps_row(struct ring *g, const struct shape_step *st, uint32_t trip,
		     double *row, bool *far)
{
	const struct shape *s = g->shape;
	const double begin = g->job->begin;
	const uint64_t number = shape_number(st, trip);

	for (uint32_t i = 0; i < g->room; i++)
		row[i] = begin;
	for (uint32_t d = 0; d < st->deps; d++) {
		const struct plan_dep *dep = &s->dep[st->dep + d];
		const struct shape_step *on = &s->step[dep->step];
		const int64_t t = dep->trip0 + (int64_t)dep->advance * trip;
		uint64_t at;

		if (t < 0 || t >= on->trips)
			continue;
		at = shape_number(on, (uint32_t)t);
		if (number - at >= g->pasts) {
			*far = true;
			g->unsure = g->unsure || number - at < ENGINE_WINDOW;
		} else {
			row_max(row, g->past[at % g->pasts], g->room);
		}
	}
}

/* The order in which things were asked for is that of the plan; what is far was long
 * before. */
static void order_check(struct ring *g, double *asked)
{
	g->unsure = g->unsure || !row_after(g->now, asked, g->room);
	memcpy(asked, g->now, g->room * sizeof(*asked));
}

/* The place at the right one is free, and that has been heard of. */
static void told_row(struct ring *g, const struct shape_step *recv, uint32_t trip,
		     bool *far)
{
	deps_row(g, recv, trip, g->open, far);
	for (uint32_t i = 0; i < g->period; i++) {
		const double ready = g->open[i + 1 < g->period ? i + 1 : 0] + g->back[i];

		g->now[i] = g->now[i] > ready ? g->now[i] : ready;
	}
}

static void send_do(struct ring *g, const struct shape_step *st,
		    const struct shape_step *recv, uint32_t trip, bool *far)
{
	const double *mark = mark_of(g);
	const bool told = st->bytes > g->o->eager && st->proof == PLAN_NO_PROOF;

	if (told)
		told_row(g, recv, trip, far);
	order_check(g, g->offered);
	send_row(g, (double)st->bytes);
	/* Both windows had moved on by then. */
	if (mark)
		g->unsure = g->unsure || !row_after(g->now, mark, g->room) ||
			    (told && !row_after_right(g, g->now, mark));
	memcpy(g->now, g->fin, g->room * sizeof(*g->now));
}

static void instance(struct ring *g, const struct shape_step *st,
		     const struct shape_step *recv, uint32_t trip)
{
	const uint64_t number = shape_number(st, trip);
	const double *mark = mark_of(g);
	bool far = false;

	deps_row(g, st, trip, g->now, &far);
	if (st->kind == PLAN_SEND) {
		send_do(g, st, recv, trip, &far);
	} else if (st->kind == PLAN_RECV) {
		recv_row(g);
		g->unsure = g->unsure || (mark && !row_after(g->now, mark, g->room));
	} else if (g->o->work > 0) {
		order_check(g, g->asked);
		work_row(g, (double)st->bytes / g->o->work);
	}
	g->unsure = g->unsure || (far && !mark);
	row_max(g->most, g->now, g->room);
	memcpy(g->past[number % g->pasts], g->now, g->room * sizeof(*g->now));
}

/* SEND first: its RECV is in the same trip of its neighbour. */
static void trip_do(struct ring *g, const struct plan_loop *l, uint32_t trip)
{
	const struct shape_step *st = &g->shape->step[l->first], *recv = NULL;

	for (uint32_t i = 0; i < l->count; i++)
		recv = st[i].kind == PLAN_RECV ? &st[i] : recv;
	for (uint32_t i = 0; i < l->count; i++)
		if (st[i].kind == PLAN_SEND)
			instance(g, &st[i], recv, trip);
	for (uint32_t i = 0; i < l->count; i++)
		if (st[i].kind != PLAN_SEND)
			instance(g, &st[i], recv, trip);
	if (g->trip % MARK_EVERY == 0)
		memcpy(g->mark[g->trip / MARK_EVERY % MARKS], g->most,
		       g->room * sizeof(*g->most));
	g->trip++;
}

static int trips_do(struct ring *g)
{
	const struct shape *s = g->shape;
	uint64_t done = 0;

	for (uint32_t l = 0; l < s->loops; l++) {
		for (uint32_t t = 0; t < s->loop[l].trips; t++) {
			trip_do(g, &s->loop[l], t);
			if (g->unsure)
				return not_here(g, "what was long ago may still count");
			done += s->loop[l].count;
			if (g->o->progress && t % 256 == 0)
				g->o->progress(g->o->progress_arg, done, s->instances,
					       g->most[0]);
		}
	}
	return 0;
}

/* ---- all together --------------------------------------------------------------------
 */

/* How far back instances are to be kept. */
static uint32_t pasts_of(const struct shape *s)
{
	uint64_t most = 1;

	for (uint32_t i = 0; i < s->steps; i++) {
		const struct shape_step *st = &s->step[i];

		for (uint32_t d = 0; d < st->deps; d++) {
			const struct plan_dep *dep = &s->dep[st->dep + d];
			const struct shape_step *on = &s->step[dep->step];
			/* Of the trips that they have in common the last is as near. */
			const int64_t t = on->trips - 1 - (int64_t)dep->trip0;
			const int64_t trip = dep->advance && t < st->trips ? t : 0;
			const int64_t of = dep->trip0 + (int64_t)dep->advance * trip;
			uint64_t back;

			if (trip < 0 || of < 0 || of >= on->trips)
				continue;
			back = shape_number(st, (uint32_t)trip) -
			       shape_number(on, (uint32_t)of) + 1;
			if (back <= NEAR && back > most)
				most = back;
		}
	}
	return (uint32_t)most * 2 + 16;
}

static int rows_make(struct ring *g)
{
	double **const rows[] = {&g->fin,  &g->offered, &g->worked, &g->asked,
				 &g->most, &g->now,	&g->open};

	g->room = (g->period + BLOCK - 1) / BLOCK * BLOCK;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		*rows[i] = row_new(g);
		if (!*rows[i])
			return -ENOMEM;
		for (uint32_t r = 0; r < g->room; r++)
			(*rows[i])[r] = g->job->begin;
	}
	g->pasts = pasts_of(g->shape);
	if (g->pasts > NEAR)
		g->pasts = NEAR;
	for (uint32_t i = 0; i < g->pasts; i++) {
		g->past[i] = row_new(g);
		if (!g->past[i])
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < MARKS; i++) {
		g->mark[i] = row_new(g);
		if (!g->mark[i])
			return -ENOMEM;
	}
	g->late[-1] = g->late[g->period - 1];
	for (uint32_t i = g->period; i < g->room; i++) /* nobody's */
		g->late[i] = g->back[i] = g->each[i] = 0;
	return 0;
}

static int ring_open(struct ring *g)
{
	const size_t n = (size_t)g->job->call.size;
	int rc;

	g->room = (uint32_t)(n + BLOCK - 1) / BLOCK * BLOCK;
	g->right = malloc(n * sizeof(*g->right));
	g->order = malloc(n * sizeof(*g->order));
	g->late = row_new(g);
	g->back = row_new(g);
	g->each = row_new(g);
	if (!g->right || !g->order || !g->late || !g->back || !g->each)
		return -ENOMEM;
	rc = plans_read(g);
	if (!rc)
		rc = loops_check(g);
	if (!rc)
		rc = circle_make(g);
	if (!rc)
		rc = links_check(g);
	if (rc)
		return rc;
	period_find(g);
	return rows_make(g);
}

static void ring_close(struct ring *g)
{
	double *const rows[] = {g->fin, g->offered, g->worked, g->asked, g->most,
				g->now, g->late,    g->back,   g->each,	 g->open};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		row_free(rows[i]);
	for (uint32_t i = 0; i < NEAR; i++)
		row_free(g->past[i]);
	for (uint32_t i = 0; i < MARKS; i++)
		row_free(g->mark[i]);
	free(g->right);
	free(g->order);
	shapes_free(&g->shapes);
}

/* What went where: every rank has as many messages, of the same lengths. */
static void result_set(struct ring *g, struct sim_result *r)
{
	const uint32_t n = (uint32_t)g->job->call.size;
	double bytes = 0, most = 0;
	uint64_t sends = 0;

	*r = (struct sim_result){.link = SHARE_NONE, .shapes = 1};
	for (uint32_t i = 0; i < g->shape->steps; i++) {
		const struct shape_step *st = &g->shape->step[i];

		if (st->kind == PLAN_SEND) {
			sends += st->trips;
			bytes += (double)st->bytes * st->trips;
		}
	}
	r->messages = sends * n;
	r->time = r->first = g->most[0];
	for (uint32_t i = 0; i < g->period; i++) {
		r->time = g->most[i] > r->time ? g->most[i] : r->time;
		r->first = g->most[i] < r->first ? g->most[i] : r->first;
	}
	for (uint32_t i = 0; i < n; i++) {
		const int32_t from = g->order[i];
		struct sim_path p;

		sim_net_path(g->net, from, g->right[from], &p);
		r->level_bytes[p.level] += bytes;
		most = bytes / p.most > most ? bytes / p.most : most;
	}
	r->port = r->time > 0 ? most / r->time : 0;
	r->events = g->trip;
}

int sim_ring(const struct sim_net *net, const struct sim_job *job,
	     const struct sim_options *options, struct sim_result *result,
	     int32_t *period, char *why, size_t why_len)
{
	struct ring g = {
		.net = net, .job = job, .o = options, .why = why, .why_len = why_len};
	int rc;

	if (job->call.size < 2 || job->at || options->gap > 0 || options->delay ||
	    options->lag || job->call.size > net->ranks || job->algo->vector ||
	    !job->algo->supports(&job->call))
		return not_here(&g, "an option or a size that it does not know");
	rc = ring_open(&g);
	if (!rc)
		rc = trips_do(&g);
	if (!rc) {
		result_set(&g, result);
		*period = (int32_t)g.period;
		why[0] = '\0';
	}
	ring_close(&g);
	return rc;
}
