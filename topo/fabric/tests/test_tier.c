/* SPDX-License-Identifier: BSD-2-Clause */
/* What a map says of the network: tiers, ranks and grids; what is refused, and where. */
#include "config.h"

#include <errno.h>

#include "topo/fabric/map.h"
#include "util/tap.h"

#define HEAD "weft-fabric 1\nrail r0 400G\n"

static struct fabric_map *map_of(const char *text)
{
	struct fabric_map *map = NULL;
	struct fabric_error error;

	if (fabric_map_parse(text, strlen(text), &map, &error))
		tap_bail("line %u: %s", error.line, error.text);
	return map;
}

static void test_tiers(void)
{
	struct fabric_map *map = map_of(HEAD "ranks 8\n"
					     "tier host latency=500ns rate=3T\n"
					     "tier rack latency=1us rails\n"
					     "tier building latency=1.25ms over=2.8\n"
					     "tier far latency=0ns rate=12T mesh\n");
	const struct fabric_tier *t = fabric_map_tier(map, FABRIC_SAME_HOST);

	tap_is_int(fabric_map_ranks(map), 8, "ranks of a host");
	tap_ok(t && t->latency_ps == 500000 && t->bits_per_s == 3000000000000 &&
		       t->over == 1000 && t->within == FABRIC_SAME_RACK,
	       "a tier's latency and rate; the one above is the next that is said");
	t = fabric_map_tier(map, FABRIC_SAME_RACK);
	tap_ok(t && t->by_rail && !t->mesh && !t->bits_per_s &&
		       t->within == FABRIC_OTHER_ZONE,
	       "one by rail, and one left out above it");
	tap_ok(!fabric_map_tier(map, FABRIC_OTHER_RACK) &&
		       !fabric_map_tier(map, FABRIC_UNKNOWN),
	       "what is not said is not there");
	t = fabric_map_tier(map, FABRIC_OTHER_ZONE);
	tap_ok(t && t->over == 2800 && t->latency_ps == 1250000000 && t->line == 6,
	       "oversubscription");
	t = fabric_map_tier(map, FABRIC_OTHER_BUILDING);
	tap_ok(t && t->mesh && t->latency_ps == 0 && t->within == FABRIC_UNKNOWN,
	       "the highest, without latency");
	fabric_map_free(map);
	map = map_of(HEAD "tier rack latency=1us rate=100G torus=4x3x2 optical=10ms\n"
			  "tier far latency=1us rate=1G torus=64\n");
	t = fabric_map_tier(map, FABRIC_SAME_RACK);
	tap_ok(t && t->torus[0] == 4 && t->torus[1] == 3 && t->torus[2] == 2 &&
		       t->optical_ps == 10000000000,
	       "a torus that is switched");
	t = fabric_map_tier(map, FABRIC_OTHER_BUILDING);
	tap_ok(t && t->torus[0] == 64 && !t->torus[1] && !t->optical_ps,
	       "one of one way");
	fabric_map_free(map);
	map = map_of(HEAD "host a b/z/k\n");
	tap_ok(fabric_map_ranks(map) == 1 && !fabric_map_tier(map, FABRIC_SAME_RACK),
	       "a map that says nothing of it");
	fabric_map_free(map);
}

/* In the order of the file, and looked up as well. */
static void test_grid(void)
{
	struct fabric_map *map = map_of(HEAD "host zz b9/z9/k9\n"
					     "grid n[01-24] 2/3/2\n"
					     "host a[7-8] b1/z1/k1\n");
	static const char *const want[] = {"zz b9/z9/k9",  "n01 b1/z1/k1",
					   "n02 b1/z1/k1", "n03 b1/z1/k2",
					   "n04 b1/z1/k2", "n05 b1/z2/k1"};
	struct fabric_cursor at = {0};
	struct fabric_host host;
	unsigned line, count = 0;
	bool good = true;

	while (fabric_map_next(map, &at, &host, &line)) {
		char text[FABRIC_PLACE_MAX + 1], all[FABRIC_PLACE_MAX + 80];

		fabric_place_text(&host.place, text);
		snprintf(all, sizeof(all), "%s %s", host.place.host, text);
		if (count < sizeof(want) / sizeof(want[0]))
			good = good && strcmp(all, want[count]) == 0;
		count++;
	}
	tap_ok(good, "hosts come in the order of their lines");
	tap_is_int(count, 27, "all of them");
	tap_ok(strcmp(host.place.host, "a8") == 0 && line == 5, "with their lines");
	tap_ok(fabric_map_host(map, "n24", &host) &&
		       strcmp(host.place.building, "b2") == 0 &&
		       strcmp(host.place.zone, "z3") == 0 &&
		       strcmp(host.place.rack, "k2") == 0,
	       "the last of a grid is in the last rack");
	fabric_map_free(map);
}

static void refused(const char *text, unsigned line, const char *words)
{
	struct fabric_map *map = NULL;
	struct fabric_error error;
	int rc = fabric_map_parse(text, strlen(text), &map, &error);

	if (!tap_ok(rc == -EINVAL && !map && error.line == line &&
			    strstr(error.text, words),
		    "line %u: %s", line, words))
		tap_diag("rc %d, line %u: %s", rc, error.line, error.text);
}

static void test_refused(void)
{
	refused(HEAD "tier hall latency=1us\n", 3, "tier \"hall\" is not known");
	refused(HEAD "tier unknown latency=1us\n", 3, "is not known");
	refused(HEAD "tier\n", 3, "tier \"\" is not known");
	refused(HEAD "tier rack latency=1us within=hall\n", 3, "\"hall\" is not known");
	refused(HEAD "tier rack latency=1us\n\ntier rack latency=2us\n", 5,
		"was said before, in line 3");
	refused(HEAD "tier rack\n", 3, "has no latency");
	refused(HEAD "tier rack latency=\n", 3, "is none of latency");
	refused(HEAD "tier rack latency=1\n", 3, "is none of latency");
	refused(HEAD "tier rack latency=1s\n", 3, "is none of latency");
	refused(HEAD "tier rack latency=1001ms\n", 3, "up to a second");
	refused(HEAD "tier rack latency=-1us\n", 3, "is none of latency");
	refused(HEAD "tier rack latency=1us rate=0G\n", 3, "rate=400G (above 0)");
	refused(HEAD "tier rack latency=1us over=0\n", 3, "over=2.8");
	refused(HEAD "tier rack latency=1us over=0.0001\n", 3, "over=2.8");
	refused(HEAD "tier rack latency=1us over=1001\n", 3, "over=2.8");
	refused(HEAD "tier rack latency=1us over=2 rate=1T\n", 3, "which say the same");
	refused(HEAD "tier rack latency=1us star\n", 3, "\"star\" is none of");
	refused(HEAD "tier host latency=1us mesh\n", 3, "tier host: it may have");
	refused(HEAD "tier zone latency=1us within=building\n", 3,
		"of which nothing is said");
	refused(HEAD
		"tier rack latency=1us within=zone\ntier zone latency=1us within=rack\n",
		4, "a cycle");
	refused(HEAD "tier zone latency=1us within=zone\n", 3, "a cycle");
	refused(HEAD "tier far latency=1us within=rack\ntier rack latency=1us\n", 3,
		"a cycle");
	refused(HEAD
		"tier rack latency=1us within=far\ntier zone latency=1us within=host\n"
		"tier far latency=1us\ntier host latency=1us within=far\n",
		4, "which is smaller");
	refused(HEAD "tier rack latency=1us torus=4x4\n", 3, "it needs rate=");
	refused(HEAD "tier rack latency=1us torus=4x4 rate=1G mesh\n", 3,
		"cannot be mesh");
	refused(HEAD "tier rack latency=1us torus=4x4 rate=1G rails\n", 3, "or rails");
	refused(HEAD "tier rack latency=1us optical=1ms\n", 3, "optical= is for a torus");
	refused(HEAD "tier rack latency=1us torus=4 rate=1G optical=0ms\n", 3,
		"is none of");
	refused(HEAD "tier host latency=1us torus=2 rate=1G\n", 3,
		"tier host: it may have");
	for (size_t i = 0; i < 9; i++) {
		static const char *const none[9] = {
			"", "1", "x", "4x", "4x1", "x4", "2x2x2x2", "66", "40x40x41"};
		char line[96];

		snprintf(line, sizeof(line),
			 HEAD "tier rack latency=1us rate=1G torus=%s\n", none[i]);
		refused(line, 3, "is none of");
	}
	refused(HEAD "rail r1 0G\n", 3, "is no speed");
	refused(HEAD "ranks 0\n", 3, "a host has 1 to 1024");
	refused(HEAD "ranks 1025\n", 3, "a host has 1 to 1024");
	refused(HEAD "ranks 8 9\n", 3, "a host has 1 to 1024");
	refused(HEAD "ranks 8\nranks 8\n", 4, "a second time");
	refused(HEAD "grid n01 1/1/1\n", 3, "it needs a range");
	refused(HEAD "grid\n", 3, "it needs a range");
	refused(HEAD "grid n[01-10] 2/2\n", 3, "is no BUILDINGS/ZONES/RACKS");
	refused(HEAD "grid n[01-10] 2/0/1\n", 3, "is no BUILDINGS/ZONES/RACKS");
	refused(HEAD "grid n[01-10] 1/1/2/2\n", 3, "is no BUILDINGS/ZONES/RACKS");
	refused(HEAD "grid n[01-10] 2/2/1 more\n", 3, "\"more\" is no");
	refused(HEAD "grid n[01-10] 2/2/1\n", 3, "10 hosts do not fill 4 racks evenly");
	refused(HEAD "grid n[01-10] 99999/99999/99999\n", 3, "more than");
	refused(HEAD "grid n[01-08] 2/2/1\nhost n07 b1/z1/k1\n", 4,
		"host n07 was said before, in line 3");
}

int main(void)
{
	test_tiers();
	test_grid();
	test_refused();
	return tap_done();
}
