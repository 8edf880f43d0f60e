/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of a map that say what joins hosts: tiers with their links, how many ranks a host
 * has, and grids of hosts that fill buildings evenly.
 */
#include "config.h"

#include "topo/fabric/map_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OVER_ONE    1000u
#define OVER_MOST   1000000u		    /* a thousand to one */
#define LATENCY_MAX UINT64_C(1000000000000) /* ps: a second */

/* "2.8": a number above 0 with up to three digits behind the point, in thousandths. */
static bool thousandths(struct span w, uint32_t *value)
{
	struct span whole = span_cut(&w, '.');
	uint32_t above, below = 0;

	if (whole.len > 6 || !span_number(whole, &above))
		return false;
	if (w.len > 3 || (w.len && !span_number(w, &below)))
		return false;
	for (size_t i = w.len; i < 3; i++)
		below *= 10;
	*value = above * 1000 + below;
	return true;
}

/* "1.5us": ns, us or ms, in picoseconds. */
static bool latency_take(struct span w, uint64_t *ps)
{
	static const struct {
		char letter;
		uint64_t unit; /* ps of a thousandth */
	} units[] = {{'n', 1}, {'u', 1000}, {'m', 1000000}};
	uint32_t value;

	if (w.len < 3 || w.at[w.len - 1] != 's' ||
	    !thousandths((struct span){w.at, w.len - 2}, &value))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (w.at[w.len - 2] == units[i].letter) {
			*ps = value * units[i].unit;
			return *ps <= LATENCY_MAX;
		}
	return false;
}

/* Names of tiers are those of what two hosts have in common. */
static bool tier_find(struct span name, enum fabric_distance *d)
{
	*d = fabric_distance_find(name.at, name.len);
	return *d < FABRIC_UNKNOWN;
}

static int tier_unknown(struct reader *r, struct span name)
{
	return map_fail(r,
			"tier \"%.*s\" is not known; there are host, rack, zone, "
			"building and far",
			SPAN_SHOWN(name));
}

bool fabric_torus_take(const char *text, size_t len, uint32_t torus[FABRIC_TORUS_DIMS])
{
	struct span left = {text, len};
	uint64_t places = 1, hops = 0;
	unsigned n = 0;

	memset(torus, 0, FABRIC_TORUS_DIMS * sizeof(*torus));
	for (; left.len && n < FABRIC_TORUS_DIMS; n++) {
		if (!span_number(span_cut(&left, 'x'), &torus[n]) || torus[n] < 2 ||
		    torus[n] > FABRIC_TORUS_PLACES)
			return false;
		places *= torus[n];
		hops += torus[n] / 2;
	}
	return n > 0 && !left.len && len && text[len - 1] != 'x' &&
	       places <= FABRIC_TORUS_PLACES && hops <= FABRIC_TORUS_HOPS;
}

static int option_read(struct reader *r, struct fabric_tier *tier, struct span name,
		       struct span w)
{
	const struct span all = w, key = span_cut(&w, '=');

	if (span_is(all, "mesh")) {
		tier->mesh = true;
		return 0;
	}
	if (span_is(all, "rails")) {
		tier->by_rail = true;
		return 0;
	}
	if (span_is(key, "latency") && latency_take(w, &tier->latency_ps))
		return 0;
	if (span_is(key, "torus") && fabric_torus_take(w.at, w.len, tier->torus))
		return 0;
	if (span_is(key, "optical") && latency_take(w, &tier->optical_ps) &&
	    tier->optical_ps)
		return 0;
	if (span_is(key, "rate") && map_speed(w, &tier->bits_per_s))
		return 0;
	if (span_is(key, "over") && thousandths(w, &tier->over) && tier->over > 0 &&
	    tier->over <= OVER_MOST)
		return 0;
	if (span_is(key, "within"))
		return tier_find(w, &tier->within) ? 0 : tier_unknown(r, w);
	return map_fail(
		r,
		"tier %.*s: \"%.*s\" is none of latency=1.5us (ns, us or ms, up to a "
		"second), rate=400G (above 0), over=2.8 (0.001 to 1000), "
		"within=TIER, mesh, rails, torus=4x4x4 (2 and more along each way, up to "
		"65536 "
		"places and 32 links of the longest way), optical=10ms",
		SPAN_SHOWN(name), SPAN_SHOWN(all));
}

int map_tier_read(struct reader *r)
{
	const struct span name = span_word(&r->left);
	struct fabric_tier tier = {.line = r->line, .within = FABRIC_DISTANCES};
	enum fabric_distance d;
	bool timed = false;
	struct span w;
	int rc;

	if (!tier_find(name, &d))
		return tier_unknown(r, name);
	if (r->map->tier[d].line)
		return map_fail(r, "tier %.*s was said before, in line %u",
				SPAN_SHOWN(name), r->map->tier[d].line);
	while ((w = span_word(&r->left)).len) {
		timed = timed || (w.len > 8 && memcmp(w.at, "latency=", 8) == 0);
		rc = option_read(r, &tier, name, w);
		if (rc)
			return rc;
	}
	if (!timed)
		return map_fail(r,
				"tier %.*s has no latency; write one, as in latency=1us",
				SPAN_SHOWN(name));
	if (tier.over && tier.bits_per_s)
		return map_fail(r,
				"tier %.*s has both over= and rate=, which say the same; "
				"leave one out",
				SPAN_SHOWN(name));
	if (tier.torus[0] && (!tier.bits_per_s || tier.mesh || tier.by_rail))
		return map_fail(r,
				"tier %.*s is a torus: it needs rate=, of each link, and "
				"cannot be mesh or rails",
				SPAN_SHOWN(name));
	if (tier.optical_ps && !tier.torus[0])
		return map_fail(r,
				"tier %.*s: optical= is for a torus; write one, as in "
				"torus=4x4x4",
				SPAN_SHOWN(name));
	if (d == FABRIC_SAME_HOST &&
	    (tier.torus[0] || tier.over || tier.mesh || tier.by_rail))
		return map_fail(
			r, "tier host: it may have latency=, rate= and within= only: "
			   "the ranks of a host are joined by one switch");
	if (!tier.over)
		tier.over = OVER_ONE;
	r->map->tier[d] = tier;
	return 0;
}

int map_ranks_read(struct reader *r)
{
	const struct span number = span_word(&r->left), rest = span_word(&r->left);
	uint32_t ranks;

	if (r->map->ranks)
		return map_fail(r, "how many ranks a host has is said a second time");
	if (rest.len || !span_number(number, &ranks) || ranks < 1 ||
	    ranks > FABRIC_RANKS_MAX)
		return map_fail(r,
				"ranks \"%.*s\": a host has 1 to %u; as in \"ranks 8\"",
				SPAN_SHOWN(rest.len ? rest : number), FABRIC_RANKS_MAX);
	r->map->ranks = ranks;
	return 0;
}

/* ---- grids --------------------------------------------------------------------------
 */

/* "2/4/16". */
static bool shape_take(struct span w, uint32_t shape[3])
{
	for (int i = 0; i < 3; i++)
		if (!span_number(span_cut(&w, '/'), &shape[i]) || shape[i] == 0)
			return false;
	return w.len == 0;
}

/* Rack `rack` of all, whose hosts begin at `from`. */
static int grid_rack(struct reader *r, const struct row *all, const uint32_t shape[3],
		     uint32_t rack, uint32_t hosts)
{
	struct row *row = map_row_add(r->map);
	struct fabric_host *host;

	if (!row)
		return -ENOMEM;
	host = row->host;
	*row = *all;
	row->host = host;
	row->line = r->line;
	row->from = all->from + rack * hosts;
	row->to = row->from + hosts - 1;
	snprintf(host->place.building, sizeof(host->place.building), "b%u",
		 rack / shape[2] / shape[1] + 1);
	snprintf(host->place.zone, sizeof(host->place.zone), "z%u",
		 rack / shape[2] % shape[1] + 1);
	snprintf(host->place.rack, sizeof(host->place.rack), "k%u", rack % shape[2] + 1);
	return 0;
}

int map_grid_read(struct reader *r)
{
	const struct span name = span_word(&r->left), place = span_word(&r->left),
			  rest = span_word(&r->left);
	const char *open = name.len ? memchr(name.at, '[', name.len) : NULL;
	uint32_t shape[3], hosts;
	struct row all = {0};
	uint64_t racks;
	int rc;

	if (!open)
		return map_fail(r, "grid \"%.*s\": it needs a range, as in gpu[001-128]",
				SPAN_SHOWN(name));
	rc = map_row_range(r, &all, name, open);
	if (rc)
		return rc;
	if (rest.len || !shape_take(place, shape))
		return map_fail(r,
				"grid %.*s: \"%.*s\" is no BUILDINGS/ZONES/RACKS, as in "
				"2/4/16: numbers above 0",
				SPAN_SHOWN(name), SPAN_SHOWN(rest.len ? rest : place));
	hosts = all.to - all.from + 1;
	racks = (uint64_t)shape[0] * shape[1];
	if (racks > FABRIC_ROWS_MAX || racks * shape[2] > FABRIC_ROWS_MAX - r->map->rows)
		return map_fail(r, "grid %.*s: more than %u racks and lines of hosts",
				SPAN_SHOWN(name), FABRIC_ROWS_MAX);
	racks *= shape[2];
	if (hosts % racks)
		return map_fail(r, "grid %.*s: %u hosts do not fill %u racks evenly",
				SPAN_SHOWN(name), hosts, (unsigned)racks);
	for (uint32_t i = 0; i < racks; i++) {
		rc = grid_rack(r, &all, shape, i, (uint32_t)(hosts / racks));
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- all of them --------------------------------------------------------------------
 */

/* Where a tier does not say what is above it, that is the next that there is. */
static void within_set(struct fabric_map *map)
{
	enum fabric_distance above = FABRIC_UNKNOWN;

	for (int d = FABRIC_UNKNOWN - 1; d >= 0; d--) {
		struct fabric_tier *tier = &map->tier[d];

		if (!tier->line)
			continue;
		if (tier->within == FABRIC_DISTANCES)
			tier->within = above;
		above = (enum fabric_distance)d;
	}
}

/* From a tier upwards the way has an end, and comes by nothing that is smaller. */
static int way_up(struct reader *r, enum fabric_distance from)
{
	const struct fabric_map *map = r->map;
	enum fabric_distance d = from;

	for (int steps = 0; map->tier[d].within != FABRIC_UNKNOWN; steps++) {
		const enum fabric_distance above = map->tier[d].within;

		r->line = map->tier[d].line;
		if (!map->tier[above].line)
			return map_fail(r,
					"tier %s is within %s, of which nothing is said; "
					"add a line \"tier %s latency=...\"",
					fabric_distance_name(d),
					fabric_distance_name(above),
					fabric_distance_name(above));
		if (steps == FABRIC_UNKNOWN || above == from)
			return map_fail(r,
					"tier %s is within %s, which is within %s again: "
					"a cycle; leave one within= out",
					fabric_distance_name(d),
					fabric_distance_name(above),
					fabric_distance_name(d));
		d = above;
	}
	return 0;
}

static int tier_check(struct reader *r, enum fabric_distance d)
{
	const struct fabric_tier *tier = &r->map->tier[d];
	int rc = tier->line ? way_up(r, d) : 0;

	if (rc || !tier->line || tier->within > d)
		return rc;
	r->line = tier->line;
	return map_fail(r, "tier %s cannot be within %s, which is smaller",
			fabric_distance_name(d), fabric_distance_name(tier->within));
}

int map_tiers_check(struct reader *r)
{
	int rc = 0;

	within_set(r->map);
	/* The hosts' last: they are below a cycle, and not in one. */
	for (int d = FABRIC_SAME_RACK; !rc && d < FABRIC_UNKNOWN; d++)
		rc = tier_check(r, (enum fabric_distance)d);
	return rc ? rc : tier_check(r, FABRIC_SAME_HOST);
}
