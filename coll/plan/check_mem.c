/* SPDX-License-Identifier: BSD-2-Clause */
/* See check_mem.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/plan/check_mem.h"

bool check_mem_init(struct check_mem *m, uint64_t length)
{
	*m = (struct check_mem){.cell = NULL};
	if (!check_reserve(&m->cell, &m->room, 2, sizeof(*m->cell)))
		return false;
	m->cell[0] = (struct check_cell){.at = 0};
	m->cells = length ? 1 : 0;
	m->cell[m->cells] = (struct check_cell){.at = length};
	m->per_element = length ? 1.0 / (double)length : 0;
	return true;
}

void check_mem_fini(struct check_mem *m)
{
	free(m->cell);
	*m = (struct check_mem){.cell = NULL};
}

/* The cell that holds element x, x below the length. Cells are mostly of even size, so
 * that the first look is right. */
static size_t cell_find(const struct check_mem *m, uint64_t x)
{
	size_t lo = (size_t)((double)x * m->per_element), hi;

	if (lo >= m->cells)
		lo = m->cells - 1;
	if (m->cell[lo].at <= x && x < m->cell[lo + 1].at)
		return lo;
	if (m->cell[lo].at > x) {
		if (m->cell[lo - 1].at <= x)
			return lo - 1;
		hi = lo;
		lo = 0;
	} else {
		if (x < m->cell[lo + 2].at)
			return lo + 1;
		hi = m->cells;
	}
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->cell[mid].at <= x)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static bool cell_split(struct check_mem *m, size_t i, uint64_t at)
{
	if (!check_reserve(&m->cell, &m->room, m->cells + 2, sizeof(*m->cell)))
		return false;
	memmove(&m->cell[i + 1], &m->cell[i], (m->cells + 1 - i) * sizeof(*m->cell));
	m->cells++;
	m->cell[i + 1].at = at;
	m->per_element = (double)m->cells / (double)m->cell[m->cells].at;
	return true;
}

bool check_mem_cut_new(struct check_mem *m, const uint64_t *at, size_t count)
{
	const uint64_t length = m->cell[m->cells].at;

	if (!length)
		return true;
	if (!check_reserve(&m->cell, &m->room, count + 2, sizeof(*m->cell)))
		return false;
	for (size_t i = 0; i < count && at[i] < length; i++) {
		if (at[i] > m->cell[m->cells - 1].at)
			m->cell[m->cells++] = (struct check_cell){.at = at[i]};
	}
	m->cell[m->cells] = (struct check_cell){.at = length};
	m->per_element = (double)m->cells / (double)length;
	return true;
}

bool check_mem_cut(struct check_mem *m, uint64_t at)
{
	size_t i;

	if (at >= m->cell[m->cells].at)
		return true;
	i = cell_find(m, at);
	return m->cell[i].at == at || cell_split(m, i, at);
}

bool check_runs_add(struct check_runs *runs, struct check_run run)
{
	struct check_run *last = runs->used ? &runs->run[runs->used - 1] : NULL;

	runs->length += run.length;
	if (last && check_term_same(last->expr, run.expr) &&
	    last->pos + last->length == run.pos) {
		last->length += run.length;
		return true;
	}
	if (!check_reserve(&runs->run, &runs->room, runs->used + 1, sizeof(run)))
		return false;
	runs->run[runs->used++] = run;
	return true;
}

bool check_mem_read(const struct check_mem *m, uint64_t offset, uint64_t length,
		    struct check_runs *out)
{
	size_t i = cell_find(m, offset);

	while (length) {
		uint64_t n = m->cell[i + 1].at - offset;

		if (n > length)
			n = length;
		if (!check_runs_add(
			    out,
			    (struct check_run){.length = n,
					       .pos = offset + (uint64_t)m->cell[i].shift,
					       .expr = m->cell[i].expr}))
			return false;
		offset += n;
		length -= n;
		i++;
	}
	return true;
}

bool check_mem_write(struct check_mem *m, uint64_t offset, uint64_t length,
		     const struct check_runs *runs, struct check_cursor *cursor)
{
	size_t i = cell_find(m, offset);

	/* What is written is mostly a cell already. */
	if (m->cell[i].at != offset || m->cell[i + 1].at != offset + length) {
		if (!check_mem_cut(m, offset) || !check_mem_cut(m, offset + length))
			return false;
		i = cell_find(m, offset);
	}
	while (length) {
		const struct check_run *r = &runs->run[cursor->run];
		uint64_t n = m->cell[i + 1].at - offset, left = r->length - cursor->done;

		if (n > left) {
			if (!cell_split(m, i, offset + left))
				return false;
			n = left;
		}
		m->cell[i].expr = r->expr;
		m->cell[i].shift = (int64_t)(r->pos + cursor->done - offset);
		cursor->done += n;
		if (cursor->done == r->length) {
			cursor->run++;
			cursor->done = 0;
		}
		offset += n;
		length -= n;
		i++;
	}
	return true;
}
