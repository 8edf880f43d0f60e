/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of profiles and the reading of what changes it. */
#include "config.h"

#include "prov/dqplb/profile.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/span.h"

#define KIB	  UINT64_C(1024)
#define MIB	  (UINT64_C(1) << 20)
#define BYTES_MAX (UINT64_C(1) << 40)

#define KEY(field_, min_, max_, bytes_, text_)                                     \
	{                                                                          \
		.name = #field_, .offset = offsetof(struct dqplb_profile, field_), \
		.min = (min_), .max = (max_), .bytes = (bytes_), .text = (text_),  \
	}

const struct dqplb_profile_key dqplb_profile_keys[] = {
	KEY(lanes, 1, DQPLB_LANES_MAX, false, "queue pairs of a link"),
	KEY(segment, 4 * KIB, 1024 * MIB, true, "largest segment"),
	KEY(segments, 1, 4096, false, "segments in flight on a lane"),
	KEY(lane_bytes, 4 * KIB, BYTES_MAX, true, "bytes in flight on a lane"),
	KEY(link_bytes, 4 * KIB, BYTES_MAX, true, "bytes in flight on all lanes"),
	KEY(turn, 1, 1024, false, "segments of a turn"),
	KEY(small, 0, 1024 * MIB, true, "segments up to this stay on one rail"),
	KEY(traffic_class, 0, 255, false, "traffic class of the packets"),
};
const size_t dqplb_profile_key_count =
	sizeof(dqplb_profile_keys) / sizeof(dqplb_profile_keys[0]);

/*
 * To begin with: enough in flight for a round trip at 400 Gbit/s, which grows with the
 * distance (published: 1, 7, 15 and 30 times that within a rack), and no more, so that
 * switches needn't keep it. To be measured where a wire uses them.
 */
static const struct dqplb_profile initial[FABRIC_DISTANCES] = {
	[FABRIC_SAME_HOST] = {4, 512 * KIB, 16, 4 * MIB, 8 * MIB, 8, 64 * KIB, 0},
	[FABRIC_SAME_RACK] = {8, 512 * KIB, 16, 4 * MIB, 8 * MIB, 8, 64 * KIB, 0},
	[FABRIC_OTHER_RACK] = {16, 512 * KIB, 32, 8 * MIB, 32 * MIB, 8, 64 * KIB, 0},
	[FABRIC_OTHER_ZONE] = {16, 1 * MIB, 64, 16 * MIB, 64 * MIB, 8, 64 * KIB, 0},
	[FABRIC_OTHER_BUILDING] = {16, 1 * MIB, 128, 32 * MIB, 128 * MIB, 8, 64 * KIB, 0},
	[FABRIC_UNKNOWN] = {16, 512 * KIB, 64, 16 * MIB, 64 * MIB, 8, 64 * KIB, 0},
};

void dqplb_profiles_init(struct dqplb_profiles *all)
{
	memcpy(all->row, initial, sizeof(initial));
}

/*
 * Lanes are for what devices do at once. Where a processor makes each packet, and that of
 * whoever posted it, further queue pairs are no further hands: they take turns with it,
 * each turn costs what one queue pair in a row is spared, and each waits the longer for
 * its acknowledgements.
 */
void dqplb_profiles_software(struct dqplb_profiles *all)
{
	for (unsigned i = 0; i < FABRIC_DISTANCES; i++)
		all->row[i].lanes = 1;
}

__attribute__((format(printf, 2, 3))) static bool fail(struct dqplb_profile_error *error,
						       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return false;
}

static const struct dqplb_profile_key *key_find(struct span name)
{
	for (size_t i = 0; i < dqplb_profile_key_count; i++)
		if (span_is(name, dqplb_profile_keys[i].name))
			return &dqplb_profile_keys[i];
	return NULL;
}

static bool value_take(struct span text, const struct dqplb_profile_key *key,
		       uint64_t *value)
{
	uint32_t number;

	if (key->bytes)
		return span_bytes(text, value);
	if (!span_number(text, &number))
		return false;
	*value = number;
	return true;
}

static bool value_fail(struct dqplb_profile_error *error,
		       const struct dqplb_profile_key *key, struct span value)
{
	return fail(error, "%s=%.*s: %s: %llu to %llu%s", key->name, SPAN_SHOWN(value),
		    key->text, (unsigned long long)key->min, (unsigned long long)key->max,
		    key->bytes ? ", in bytes or with K, M or G behind it" : "");
}

static bool key_fail(struct dqplb_profile_error *error, struct span pair)
{
	size_t at;

	fail(error, "\"%.*s\" is no KEY=VALUE; keys are", SPAN_SHOWN(pair));
	at = strlen(error->text);
	for (size_t i = 0; i < dqplb_profile_key_count && at < sizeof(error->text); i++)
		at += (size_t)snprintf(error->text + at, sizeof(error->text) - at,
				       "%s %s", i ? "," : "", dqplb_profile_keys[i].name);
	return false;
}

/* "segment=256K" for the rows first to last. */
static bool pair_set(struct dqplb_profiles *all, unsigned first, unsigned last,
		     struct span pair, struct dqplb_profile_error *error)
{
	struct span value = pair, name = span_cut(&value, '=');
	const struct dqplb_profile_key *key = key_find(name);
	uint64_t v;

	if (!key)
		return key_fail(error, pair);
	if (!value_take(value, key, &v) || v < key->min || v > key->max)
		return value_fail(error, key, value);
	for (unsigned i = first; i <= last; i++)
		memcpy((char *)&all->row[i] + key->offset, &v, sizeof(v));
	return true;
}

/* "far:lanes=16,segments=128". */
static bool class_set(struct dqplb_profiles *all, struct span text,
		      struct dqplb_profile_error *error)
{
	struct span pairs = text, name = span_cut(&pairs, ':');
	unsigned first = 0, last = FABRIC_DISTANCES - 1;

	if (!span_is(name, "all")) {
		first = last = fabric_distance_find(name.at, name.len);
		if (first == FABRIC_DISTANCES)
			return fail(error,
				    "\"%.*s\" is no class: all, host, rack, zone, "
				    "building, far, unknown, each with ':' behind it",
				    SPAN_SHOWN(name));
	}
	do {
		if (!pair_set(all, first, last, span_cut(&pairs, ','), error))
			return false;
	} while (pairs.len > 0);
	return true;
}

static bool rows_check(const struct dqplb_profiles *all,
		       struct dqplb_profile_error *error)
{
	for (unsigned i = 0; i < FABRIC_DISTANCES; i++) {
		const struct dqplb_profile *p = &all->row[i];

		if (!dqplb_profile_valid(p))
			return fail(error,
				    "%s: %llu lanes with %llu segments each: together at "
				    "most %u can be in flight",
				    fabric_distance_name(i), (unsigned long long)p->lanes,
				    (unsigned long long)p->segments,
				    DQPLB_WINDOW_MAX / 2);
	}
	return true;
}

bool dqplb_profiles_set(struct dqplb_profiles *all, const char *text,
			struct dqplb_profile_error *error)
{
	struct span left = span_of(text);
	struct dqplb_profiles changed = *all;

	if (left.len == 0)
		return fail(error, "it is empty; write CLASS:KEY=VALUE");
	do {
		if (!class_set(&changed, span_cut(&left, ';'), error))
			return false;
	} while (left.len > 0);
	if (!rows_check(&changed, error))
		return false;
	*all = changed;
	return true;
}

bool dqplb_profiles_lanes(struct dqplb_profiles *all, const char *text,
			  struct dqplb_profile_error *error)
{
	const struct dqplb_profile_key *key = &dqplb_profile_keys[0];
	struct span value = span_of(text);
	struct dqplb_profiles changed = *all;
	uint64_t v;

	if (!value_take(value, key, &v) || v < key->min || v > key->max)
		return value_fail(error, key, value);
	for (unsigned i = 0; i < FABRIC_DISTANCES; i++)
		changed.row[i].lanes = v;
	if (!rows_check(&changed, error))
		return false;
	*all = changed;
	return true;
}

bool dqplb_profile_valid(const struct dqplb_profile *p)
{
	for (size_t i = 0; i < dqplb_profile_key_count; i++) {
		const struct dqplb_profile_key *key = &dqplb_profile_keys[i];
		uint64_t v;

		memcpy(&v, (const char *)p + key->offset, sizeof(v));
		if (v < key->min || v > key->max)
			return false;
	}
	return p->lanes * p->segments <= DQPLB_WINDOW_MAX / 2;
}

uint32_t dqplb_profile_lanes(const struct dqplb_profile *p, uint32_t rails)
{
	uint32_t lanes = ((uint32_t)p->lanes + rails - 1) / rails * rails;

	/* The multiple may be too many for the link, or for the row's window. */
	while (lanes > rails &&
	       (lanes > DQPLB_LANES_MAX || lanes * p->segments > DQPLB_WINDOW_MAX / 2))
		lanes -= rails;
	return lanes;
}

void dqplb_profile_tx(const struct dqplb_profile *p, uint32_t rails,
		      struct dqplb_tx_config *config)
{
	uint32_t lanes = dqplb_profile_lanes(p, rails);
	uint32_t segments = (uint32_t)p->segments, window = DQPLB_WINDOW_MIN;

	/* One lane on each of many rails can still be too many. */
	if (lanes * segments > DQPLB_WINDOW_MAX / 2)
		segments = DQPLB_WINDOW_MAX / 2 / lanes;
	while (window < 2 * lanes * segments)
		window *= 2;
	*config = (struct dqplb_tx_config){
		.window = window,
		.records = window / 16,
		.max_segment = (uint32_t)p->segment,
		.turn = p->turn < window / 4 ? (uint32_t)p->turn : window / 4,
		.lane_segments = segments,
		.lane_bytes = p->lane_bytes,
		.link_bytes = p->link_bytes,
		.small = (uint32_t)p->small,
		.lanes = lanes,
	};
}
