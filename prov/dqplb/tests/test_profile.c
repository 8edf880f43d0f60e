/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of distances, and rails: what a user may write, and what comes of it. */
#include "config.h"

#include "prov/dqplb/profile.h"
#include "prov/dqplb/rails.h"
#include "util/tap.h"

static void test_initial(void)
{
	struct dqplb_profiles all;

	dqplb_profiles_init(&all);
	for (unsigned i = 0; i < FABRIC_DISTANCES; i++) {
		bool opens = true, bounded = true;

		tap_ok(dqplb_profile_valid(&all.row[i]), "%s: its numbers fit each other",
		       fabric_distance_name(i));
		for (uint32_t rails = 1; rails <= DQPLB_RAILS_MAX; rails++) {
			struct dqplb_tx_config c;
			struct dqplb_tx *tx;

			dqplb_profile_tx(&all.row[i], rails, &c);
			bounded = bounded && c.lanes % rails == 0 &&
				  c.window >= 2 * c.lanes * c.lane_segments;
			opens = opens && dqplb_tx_open(&c, &tx) == 0;
			if (!opens)
				break;
			dqplb_tx_close(tx);
		}
		tap_ok(opens, "%s: makes transmitters over 1 to %u rails",
		       fabric_distance_name(i), DQPLB_RAILS_MAX);
		tap_ok(bounded, "A5: with windows of twice what can be in flight");
	}
}

static void test_lanes(void)
{
	struct dqplb_profile p = {.lanes = 16, .segments = 16};

	tap_is_int(dqplb_profile_lanes(&p, 1), 16, "16 lanes on one rail");
	tap_is_int(dqplb_profile_lanes(&p, 3), 18, "on three rails a multiple of them");
	p.lanes = 64;
	tap_is_int(dqplb_profile_lanes(&p, 3), 63, "downwards where there'd be too many");
	p.lanes = 1;
	tap_is_int(dqplb_profile_lanes(&p, 8), 8, "at least one on each rail");
	p.lanes = 2;
	p.segments = 4096;
	tap_is_int(dqplb_profile_lanes(&p, 3), 3, "even where the window can't");
}

static void test_set(void)
{
	struct dqplb_profile_error error = {""};
	struct dqplb_profiles all;
	uint64_t rack_lanes;

	dqplb_profiles_init(&all);
	rack_lanes = all.row[FABRIC_SAME_RACK].lanes;
	tap_ok(dqplb_profiles_set(&all, "all:segment=256K,turn=4;far:lanes=3,segments=7",
				  &error),
	       "several rows, several numbers");
	tap_is_int((int64_t)all.row[FABRIC_SAME_RACK].segment, 262144, "256K");
	tap_is_int((int64_t)all.row[FABRIC_UNKNOWN].turn, 4, "all rows");
	tap_is_int((int64_t)all.row[FABRIC_OTHER_BUILDING].lanes, 3, "one row");
	tap_is_int((int64_t)all.row[FABRIC_OTHER_BUILDING].segments, 7, "two numbers");
	tap_is_int((int64_t)all.row[FABRIC_SAME_RACK].lanes, (int64_t)rack_lanes,
		   "others stay");
	tap_ok(dqplb_profiles_set(&all, "rack:link_bytes=1G;all:link_bytes=2M", &error) &&
		       all.row[FABRIC_SAME_RACK].link_bytes == 2 << 20,
	       "the last that is said counts");
	tap_ok(dqplb_profiles_lanes(&all, "2", &error) &&
		       all.row[FABRIC_SAME_HOST].lanes == 2 &&
		       all.row[FABRIC_UNKNOWN].lanes == 2,
	       "lanes of all rows");
}

/* What users say comes behind it, and counts. */
static void test_software(void)
{
	struct dqplb_profile_error error = {""};
	struct dqplb_profiles all, hard;
	bool good = true;

	dqplb_profiles_init(&all);
	hard = all;
	dqplb_profiles_software(&all);
	for (unsigned i = 0; i < FABRIC_DISTANCES; i++) {
		good = good && dqplb_profile_valid(&all.row[i]) &&
		       dqplb_profile_lanes(&all.row[i], 1) == 1 &&
		       dqplb_profile_lanes(&all.row[i], 2) == 2 &&
		       all.row[i].segment == hard.row[i].segment;
	}
	tap_ok(good, "software: one lane on each rail, all else as it was");
	tap_ok(dqplb_profiles_lanes(&all, "3", &error) &&
		       all.row[FABRIC_SAME_RACK].lanes == 3,
	       "and as many as are asked for");
}

static void refused(const char *text, const char *words)
{
	struct dqplb_profile_error error = {""};
	struct dqplb_profiles all, before;

	dqplb_profiles_init(&all);
	before = all;
	if (!tap_ok(!dqplb_profiles_set(&all, text, &error) &&
			    strstr(error.text, words) &&
			    memcmp(&all, &before, sizeof(all)) == 0,
		    "refused: \"%s\"", text))
		tap_diag("%s", error.text);
}

static void lanes_refused(const char *text)
{
	struct dqplb_profile_error error = {""};
	struct dqplb_profiles all, before;

	dqplb_profiles_init(&all);
	before = all;
	tap_ok(!dqplb_profiles_lanes(&all, text, &error) && error.text[0] &&
		       memcmp(&all, &before, sizeof(all)) == 0,
	       "lanes \"%s\": %s", text, error.text);
}

static void test_refused(void)
{
	refused("", "it is empty");
	refused("lanes=4", "is no class");
	refused("rack", "is no KEY=VALUE");
	refused("rack:", "is no KEY=VALUE");
	refused("racks:lanes=4", "is no class");
	refused("rack:lane=4", "keys are lanes, segment");
	refused("rack:lanes", "lanes=: queue pairs");
	refused("rack:lanes=0", "1 to 64");
	refused("rack:lanes=65", "1 to 64");
	refused("rack:lanes=-1", "1 to 64");
	refused("rack:lanes= 4", "1 to 64");
	refused("rack:lanes=4K", "1 to 64");
	refused("rack:lanes=99999999999999999999", "1 to 64");
	refused("rack:segment=1", "4096 to 1073741824, in bytes or with K, M or G");
	refused("rack:segment=K", "4096 to");
	refused("rack:segment=999999999G", "4096 to");
	refused("rack:lanes=4,,turn=2", "is no KEY=VALUE");
	refused("rack:lanes=4;;", "is no class");
	refused("rack:lanes=4;far:lane=1", "is no KEY=VALUE");
	refused("far:lanes=64,segments=129", "together at most 8192");
	lanes_refused("");
	lanes_refused("0");
	lanes_refused("65");
	lanes_refused("four");
	lanes_refused("64K");
}

static const char *const nics[] = {"mlx5_0", "mlx5_1", "mlx5_2"};

static void chosen(const char *text, size_t count, size_t first)
{
	struct dqplb_rails_error error = {""};
	struct dqplb_rails rails;
	size_t at[3] = {9, 9, 9};

	tap_ok(dqplb_rails_parse(text, &rails, &error) &&
		       dqplb_rails_choose(&rails, nics, 3, at, &error) == count &&
		       (count == 0 || at[0] == first) && (count > 0 || error.text[0]),
	       "rails %s: %zu, %s", text, count, count ? nics[first] : error.text);
}

static void rails_refused(const char *text, const char *words)
{
	struct dqplb_rails_error error = {""};
	struct dqplb_rails rails = {.count = 77};

	if (!tap_ok(!dqplb_rails_parse(text, &rails, &error) &&
			    strstr(error.text, words) && rails.count == 77,
		    "rails \"%s\"", text))
		tap_diag("%s", error.text);
}

static void test_rails(void)
{
	struct dqplb_rails_error error = {""};
	struct dqplb_rails rails;
	size_t at[1];

	chosen("all", 3, 0);
	chosen("mlx5_2,mlx5_0", 2, 2);
	chosen("^mlx5_0", 2, 1);
	chosen("^mlx5_0,mlx5_1,mlx5_2", 0, 0);
	chosen("mlx5_7", 0, 0);
	chosen("^mlx5_7", 0, 0);
	tap_ok(dqplb_rails_parse("all", &rails, &error) &&
		       dqplb_rails_choose(&rails, nics, 0, at, &error) == 0 &&
		       strstr(error.text, "no NIC"),
	       "where there is none");
	rails_refused("", "write \"all\"");
	rails_refused("^", "write \"all\"");
	rails_refused("mlx5_0,", "write \"all\"");
	rails_refused("mlx5 0", "write \"all\"");
	rails_refused("a,b,a", "a second time");
	rails_refused("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16");
	rails_refused("a123456789b123456789c123456789d1", "write \"all\"");
}

int main(void)
{
	test_initial();
	test_lanes();
	test_set();
	test_software();
	test_refused();
	test_rails();
	return tap_done();
}
