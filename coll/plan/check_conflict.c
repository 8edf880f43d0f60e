/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: no place of a rank is written while it is read or written by
 * another step, in any interleaving. Two accesses to a cell of which one writes must be
 * ordered by the rank's own dependencies. A RECV writes from READY, that is from when its
 * dependencies are done, until it is done, and a SEND reads from when its dependencies
 * are done until it is done; so both are covered by "done before the other's dependencies
 * are done", which is what dependencies say.
 *
 * Instances are taken in program order. Dependencies point backwards, so of two ordered
 * accesses the earlier in program order comes first. Per cell it is enough to keep the
 * last writer and the readers since: what went before is ordered before them, and order
 * is transitive.
 *
 * Cells. The exact way cuts a buffer where any partition in use cuts it. Where a buffer
 * is seen through one partition only, its parts are the cells, whatever their lengths;
 * then a plan that is another rank's plan with the parts turned round needs no second
 * look (the turn maps cells to cells one to one). Parts of no length can only make this
 * stricter; if it finds a fault, the exact way decides.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coll/plan/check_job.h"

#define NO_INSTANCE UINT64_MAX
#define NO_READER   UINT32_MAX

/* Forms of plans that passed by parts: enough for the ranks of one collective, which
 * are mostly alike. */
#define FORMS_MAX 16

enum memory { MEMORY_DST, MEMORY_SCRATCH, MEMORIES };

struct cell {
	uint64_t writer; /* the last; NO_INSTANCE: none yet */
	uint32_t reader; /* index of the latest since then in the pool, or NO_READER */
};

struct reader {
	uint64_t instance;
	uint32_t next;
};

struct form {
	uint32_t *word;
	size_t used, room;
};

struct conflict {
	struct check_job *job;
	const struct check_rank *rank;
	int32_t number; /* of the rank */
	bool by_parts;
	const struct check_space *space[MEMORIES]; /* by parts */
	uint64_t *bound[MEMORIES];		   /* exact: where cells begin */
	size_t bounds[MEMORIES], bound_room[MEMORIES];
	struct cell *cell[MEMORIES];
	struct reader *reader;
	size_t readers, reader_room;
	uint32_t *list; /* cells of a range */
	size_t listed, list_room;
	struct check_reach reach;
};

/* Which memory a buffer is; -1: nobody writes it (a source of its own). */
static int memory_of(const struct check_rank *rank, uint8_t buf)
{
	if (buf == PLAN_SCRATCH)
		return MEMORY_SCRATCH;
	return buf == PLAN_DST || (buf == PLAN_SRC && rank->alias.shared) ? MEMORY_DST
									  : -1;
}

/* The ranges of a step in the rank's own memory; returns how many. */
static int ranges_of(const struct plan_step *s, const struct plan_range *out[3])
{
	int n = 0;

	if (s->kind != PLAN_RECV)
		out[n++] = &s->src;
	if (s->kind == PLAN_REDUCE)
		out[n++] = &s->src2;
	if (s->kind != PLAN_SEND)
		out[n++] = &s->dst;
	return n;
}

/* ---- by parts -----------------------------------------------------------------------
 */

/* Whether each memory is seen through one partition, which is then noted. */
static bool parts_suffice(struct conflict *c)
{
	const struct plan *p = c->rank->plan;

	memset(c->space, 0, sizeof(c->space));
	for (uint32_t i = 0; i < p->step_count; i++) {
		const struct plan_range *r[3];
		int n = ranges_of(&p->step[i], r);

		for (int j = 0; j < n; j++) {
			int m = r[j]->count && r[j]->block ? memory_of(c->rank, r[j]->buf)
							   : -1;

			if (m < 0)
				continue;
			if (check_shift(c->rank, r[j]->buf))
				return false;
			if (!c->space[m])
				c->space[m] = c->rank->space[r[j]->part];
			if (c->space[m] != c->rank->space[r[j]->part])
				return false;
		}
	}
	return true;
}

static bool form_word(struct form *f, uint32_t word)
{
	if (!check_reserve(&f->word, &f->room, f->used + 1, sizeof(*f->word)))
		return false;
	f->word[f->used++] = word;
	return true;
}

static bool form_words(struct form *f, const uint32_t *word, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!form_word(f, word[i]))
			return false;
	}
	return true;
}

/* A range with its first part counted from the first range of the memory. */
static bool form_range(struct form *f, const struct conflict *c,
		       const struct plan_range *r, int32_t advance,
		       uint32_t origin[MEMORIES], bool seen[MEMORIES])
{
	int m = r->count && r->block ? memory_of(c->rank, r->buf) : -1;
	const struct check_space *s;
	uint32_t first;

	if (m < 0)
		return form_word(f, UINT32_MAX);
	s = c->space[m];
	/* Turning keeps slots apart only where they go evenly into the parts. */
	if (!seen[m])
		origin[m] = s->begin || s->parts % s->slots == 0 ? r->first : 0;
	seen[m] = true;
	first = (uint32_t)(((uint64_t)r->first + s->parts - origin[m]) % s->parts);
	return form_words(f,
			  (uint32_t[]){(uint32_t)m, first, r->block, r->stride, r->count,
				       (uint32_t)advance},
			  6);
}

/* Everything that conflicts depend on, and nothing else. */
static bool form_make(struct form *f, const struct conflict *c)
{
	const struct plan *p = c->rank->plan;
	uint32_t origin[MEMORIES] = {0};
	bool seen[MEMORIES] = {false}, good = true;

	for (int m = 0; good && m < MEMORIES; m++) {
		const struct check_space *s = c->space[m];

		good = form_words(
			f, (uint32_t[]){s ? s->parts : 0, s && !s->begin ? s->slots : 0},
			2);
	}
	for (uint32_t i = 0; good && i < p->loop_count; i++)
		good = form_words(f,
				  (uint32_t[]){p->loop[i].first, p->loop[i].count,
					       p->loop[i].trips},
				  3);
	for (uint32_t i = 0; good && i < p->step_count; i++) {
		const struct plan_step *s = &p->step[i];
		struct plan_range none = plan_nothing();

		good = form_words(f, (uint32_t[]){s->kind, s->dep_first, s->dep_count},
				  3) &&
		       form_range(f, c, &s->src, s->src_advance, origin, seen) &&
		       form_range(f, c, s->kind == PLAN_REDUCE ? &s->src2 : &none,
				  s->src2_advance, origin, seen) &&
		       form_range(f, c, s->kind == PLAN_SEND ? &none : &s->dst,
				  s->dst_advance, origin, seen);
	}
	for (uint32_t i = 0; good && i < p->dep_count; i++)
		good = form_words(f,
				  (uint32_t[]){p->dep[i].step, (uint32_t)p->dep[i].trip0,
					       (uint32_t)p->dep[i].advance},
				  3);
	return good;
}

/* ---- exact --------------------------------------------------------------------------
 */

static int bound_compare(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

static bool bound_add(struct conflict *c, int m, uint64_t at)
{
	if (c->bounds[m] && c->bound[m][c->bounds[m] - 1] == at)
		return true;
	if (!check_reserve(&c->bound[m], &c->bound_room[m], c->bounds[m] + 1,
			   sizeof(*c->bound[m])))
		return false;
	c->bound[m][c->bounds[m]++] = at;
	return true;
}

/* The bounds of a space's parts. Those of one that is not folded ascend, and a part ends
 * where the next begins; of parts that take turns in a slot most are as long as the one
 * before. So what is there already is mostly not added again, and sorting has little left
 * to do. */
static bool bounds_of(struct conflict *c, int m, const struct check_space *s,
		      uint64_t shift)
{
	for (uint32_t k = 0; k < s->parts; k++) {
		const uint64_t at = shift + check_space_begin(s, k),
			       len = check_space_length(s, k);
		const bool again = !s->begin && k >= s->slots;

		if (again && len == check_space_length(s, k - s->slots))
			continue;
		if ((!again && !bound_add(c, m, at)) || !bound_add(c, m, at + len))
			return false;
	}
	return true;
}

/* In order, each once. */
static void bounds_sort(struct conflict *c, int m)
{
	uint64_t *bound = c->bound[m];
	size_t kept = 0, ordered = 1;

	while (ordered < c->bounds[m] && bound[ordered - 1] <= bound[ordered])
		ordered++;
	if (ordered < c->bounds[m])
		qsort(bound, c->bounds[m], sizeof(*bound), bound_compare);
	for (size_t i = 0; i < c->bounds[m]; i++) {
		if (!kept || bound[kept - 1] != bound[i])
			bound[kept++] = bound[i];
	}
	c->bounds[m] = kept;
}

static bool bounds_make(struct conflict *c)
{
	const struct plan *p = c->rank->plan;
	bool known[UINT8_MAX + 1][PLAN_SCRATCH + 1] = {
		{false}}; /* by partition, buffer */

	for (uint32_t i = 0; i < p->step_count; i++) {
		const struct plan_range *r[3];
		int n = ranges_of(&p->step[i], r);

		for (int j = 0; j < n; j++) {
			int m = r[j]->count && r[j]->block ? memory_of(c->rank, r[j]->buf)
							   : -1;
			const struct check_space *s;
			uint64_t shift = check_shift(c->rank, r[j]->buf);

			if (m < 0 || known[r[j]->part][r[j]->buf])
				continue;
			known[r[j]->part][r[j]->buf] = true;
			s = c->rank->space[r[j]->part];
			if (!bounds_of(c, m, s, shift))
				return false;
		}
	}
	for (int m = 0; m < MEMORIES; m++)
		bounds_sort(c, m);
	return true;
}

static size_t bound_find(const struct conflict *c, int m, uint64_t at)
{
	size_t lo = 0, hi = c->bounds[m];

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->bound[m][mid] <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* ---- accesses -----------------------------------------------------------------------
 */

static bool cell_list(struct conflict *c, size_t cell)
{
	if (!check_reserve(&c->list, &c->list_room, c->listed + 1, sizeof(*c->list)))
		return false;
	c->list[c->listed++] = (uint32_t)cell;
	return true;
}

/* Lists the cells of a range of memory m. */
static bool cells_of(struct conflict *c, int m, const struct check_range *r)
{
	struct check_pieces it;
	uint64_t off, len;

	c->listed = 0;
	if (c->by_parts) {
		const struct check_space *s = r->space;
		uint32_t cells = s->begin ? s->parts : s->slots;

		for (uint32_t j = 0; j < r->count; j++) {
			for (uint32_t k = 0; k < r->block; k++) {
				uint64_t i = (r->first + (uint64_t)j * r->stride + k) %
					     s->parts;

				if (!cell_list(c, i % cells))
					return false;
			}
		}
		return true;
	}
	check_pieces_begin(&it, r);
	while (check_piece_next(&it, &off, &len)) {
		size_t i;

		off += check_shift(c->rank, r->buf);
		i = bound_find(c, m, off);
		for (; i < c->bounds[m] && c->bound[m][i] < off + len; i++) {
			if (!cell_list(c, i))
				return false;
		}
	}
	return true;
}

/* 0 when earlier is done before `in` starts. */
static int must_reach(struct conflict *c, uint64_t earlier,
		      const struct check_instance *in, const char *what)
{
	const struct plan_step *s = &c->rank->plan->step[in->step];
	int ret;

	/* Mostly it is one of the instance's own dependencies: nothing to search. */
	for (uint32_t i = 0; i < s->dep_count; i++) {
		uint64_t on;

		if (check_dep_on(&c->rank->dep[s->dep_first + i], in->trip, &on) &&
		    on == earlier)
			return 0;
	}
	ret = check_reaches(&c->reach, earlier, in->number);
	if (ret > 0)
		return 0;
	if (ret < 0)
		return ret;
	return check_fault_at(c->job, c->number, in->number,
			      "readiness: %s instance %" PRIu64
			      ", and no dependency puts one before the other",
			      what, earlier);
}

static int read_note(struct conflict *c, int m, const struct check_instance *in)
{
	for (size_t i = 0; i < c->listed; i++) {
		struct cell *cell = &c->cell[m][c->list[i]];
		int ret = 0;

		if (cell->writer != NO_INSTANCE)
			ret = must_reach(c, cell->writer, in,
					 "it reads what is written by");
		if (ret)
			return ret;
		if (cell->reader != NO_READER &&
		    c->reader[cell->reader].instance == in->number)
			continue;
		if (!check_reserve(&c->reader, &c->reader_room, c->readers + 1,
				   sizeof(*c->reader)))
			return -ENOMEM;
		c->reader[c->readers] = (struct reader){in->number, cell->reader};
		cell->reader = (uint32_t)c->readers++;
	}
	return 0;
}

static int write_note(struct conflict *c, int m, const struct check_instance *in,
		      bool *own_read)
{
	for (size_t i = 0; i < c->listed; i++) {
		struct cell *cell = &c->cell[m][c->list[i]];
		int ret = 0;

		if (cell->writer == in->number)
			return check_fault_at(c->job, c->number, in->number,
					      "range: it writes a place twice");
		if (cell->writer != NO_INSTANCE)
			ret = must_reach(c, cell->writer, in,
					 "it writes what is written by");
		for (uint32_t r = cell->reader; !ret && r != NO_READER;
		     r = c->reader[r].next) {
			if (c->reader[r].instance == in->number)
				*own_read = true;
			else
				ret = must_reach(c, c->reader[r].instance, in,
						 "it writes what is read by");
		}
		if (ret)
			return ret;
		cell->writer = in->number;
		cell->reader = NO_READER;
	}
	return 0;
}

/* The same parts, whatever their lengths. */
static bool range_equal(const struct check_range *a, const struct check_range *b)
{
	return a->first == b->first && a->block == b->block && a->count == b->count &&
	       (a->count < 2 || a->stride == b->stride);
}

/* REDUCE and COPY go element by element: an operand may be the result's own place, in
 * the same order, or must lie apart. */
static bool operand_fits(const struct conflict *c, struct check_range dst,
			 struct check_range src)
{
	const struct check_rank *rank = c->rank;
	struct check_pieces x, y;
	uint64_t xo, xn, yo, yn;
	const uint64_t to = check_shift(rank, dst.buf), from = check_shift(rank, src.buf);

	if (!src.space || memory_of(rank, src.buf) != memory_of(rank, dst.buf))
		return true;
	/* Lying apart may be a matter of lengths, which another rank's turn does not
	 * share: left to the exact way. */
	if (c->by_parts)
		return range_equal(&dst, &src);
	if (check_range_coincides(&dst, to, &src, from))
		return true;
	check_pieces_begin(&x, &dst);
	while (check_piece_next(&x, &xo, &xn)) {
		check_pieces_begin(&y, &src);
		while (check_piece_next(&y, &yo, &yn)) {
			if (xo + to < yo + from + yn && yo + from < xo + to + xn)
				return false;
		}
	}
	return true;
}

static int instance_note(struct conflict *c, const struct check_instance *in)
{
	const struct plan_step *s = &c->rank->plan->step[in->step];
	struct check_range src = check_range_of(c->rank, &s->src, in->src);
	struct check_range src2 = check_range_of(c->rank, &s->src2, in->src2);
	struct check_range dst = check_range_of(c->rank, &s->dst, in->dst);
	const struct check_range *read[2] = {s->kind != PLAN_RECV ? &src : NULL,
					     s->kind == PLAN_REDUCE ? &src2 : NULL};
	bool own_read = false;
	int m, ret = 0;

	for (int i = 0; i < 2 && !ret; i++) {
		m = read[i] && read[i]->space ? memory_of(c->rank, read[i]->buf) : -1;
		if (m < 0)
			continue;
		ret = cells_of(c, m, read[i]) ? read_note(c, m, in) : -ENOMEM;
	}
	if (ret || s->kind == PLAN_SEND || !dst.space)
		return ret;
	m = memory_of(c->rank, dst.buf);
	ret = cells_of(c, m, &dst) ? write_note(c, m, in, &own_read) : -ENOMEM;
	if (!ret && own_read &&
	    (!operand_fits(c, dst, src) ||
	     (s->kind == PLAN_REDUCE && !operand_fits(c, dst, src2))))
		ret = check_fault_at(c->job, c->number, in->number,
				     "range: an operand overlaps the result without "
				     "being the same place");
	return ret;
}

/* ---- one rank -----------------------------------------------------------------------
 */

static bool cells_make(struct conflict *c, int m)
{
	size_t n = c->bounds[m];

	if (c->by_parts) {
		const struct check_space *s = c->space[m];

		n = !s ? 0 : s->begin ? s->parts : s->slots;
	}
	free(c->cell[m]);
	c->cell[m] = malloc((n + 1) * sizeof(*c->cell[m]));
	for (size_t i = 0; c->cell[m] && i < n; i++)
		c->cell[m][i] = (struct cell){NO_INSTANCE, NO_READER};
	return c->cell[m];
}

static int instances_note(struct conflict *c)
{
	struct check_instance in;
	struct check_walk walk;
	int ret = 0;

	c->readers = 0;
	if (!cells_make(c, MEMORY_DST) || !cells_make(c, MEMORY_SCRATCH) ||
	    !check_walk_init(&walk, c->rank))
		return -ENOMEM;
	if (!check_reach_init(&c->reach, c->rank))
		ret = -ENOMEM;
	while (!ret && check_walk_next(&walk, &in))
		ret = instance_note(c, &in);
	check_walk_fini(&walk);
	check_reach_fini(&c->reach);
	return ret;
}

static int rank_exact(struct conflict *c)
{
	c->by_parts = false;
	c->bounds[MEMORY_DST] = c->bounds[MEMORY_SCRATCH] = 0;
	return bounds_make(c) ? instances_note(c) : -ENOMEM;
}

/* Keeps the form when it passed and there is room for it, else frees it. */
static int rank_by_parts(struct conflict *c, struct form *forms, size_t *known)
{
	struct form f = {.word = NULL};
	int ret = form_make(&f, c) ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < *known; i++) {
		if (forms[i].used == f.used &&
		    !memcmp(forms[i].word, f.word, f.used * sizeof(*f.word))) {
			free(f.word);
			return 0;
		}
	}
	c->by_parts = true;
	if (!ret)
		ret = instances_note(c);
	if (!ret && *known < FORMS_MAX)
		forms[(*known)++] = f;
	else
		free(f.word);
	return ret;
}

int check_conflicts(struct check_job *job)
{
	struct conflict c = {.job = job};
	struct form forms[FORMS_MAX];
	size_t known = 0;
	int ret = 0;

	for (int32_t r = 0; !ret && r < job->size; r++) {
		c.rank = &job->rank[r];
		c.number = r;
		ret = -EINVAL;
		if (parts_suffice(&c))
			ret = rank_by_parts(&c, forms, &known);
		if (ret == -EINVAL)
			ret = rank_exact(&c);
	}
	for (size_t i = 0; i < known; i++)
		free(forms[i].word);
	for (int m = 0; m < MEMORIES; m++) {
		free(c.bound[m]);
		free(c.cell[m]);
	}
	free(c.reader);
	free(c.list);
	return ret;
}
