/* SPDX-License-Identifier: BSD-2-Clause */
/* Places and distances. */
#include "config.h"

#include "topo/fabric/place.h"
#include "util/tap.h"

static struct fabric_place place(const char *host, const char *text)
{
	struct fabric_place p = {0};

	snprintf(p.host, sizeof(p.host), "%s", host);
	if (!fabric_place_parse(text, strlen(text), &p))
		tap_bail("\"%s\" is not read", text);
	return p;
}

static void far_from(const char *a, const char *b, enum fabric_distance want)
{
	struct fabric_place one = place("a", a), other = place("b", b);

	tap_ok(fabric_distance(&one, &other) == want &&
		       fabric_distance(&other, &one) == want,
	       "%s and %s: %s", a, b, fabric_distance_name(want));
}

static void refused(const char *text)
{
	struct fabric_place p = {.zone = "kept"};

	tap_ok(!fabric_place_parse(text, strlen(text), &p) &&
		       strcmp(p.zone, "kept") == 0 && !p.building[0],
	       "refused: \"%.40s\"", text);
}

static void test_distance(void)
{
	struct fabric_place a = place("same", "b1/z1/k1"), b = place("same", "b2/z2/k2");
	struct fabric_place none = place("", "-/-/-");

	tap_is_int(fabric_distance(&a, &b), FABRIC_SAME_HOST, "a host is near itself");
	far_from("b1/z1/k1", "b1/z1/k1", FABRIC_SAME_RACK);
	far_from("b1/z1/k1", "b1/z1/k2", FABRIC_OTHER_RACK);
	far_from("b1/z1/k1", "b1/z2/k1", FABRIC_OTHER_ZONE);
	far_from("b1/z1/k1", "b2/z1/k1", FABRIC_OTHER_BUILDING);
	far_from("b1/z1/-", "b1/z1/-", FABRIC_OTHER_RACK);
	far_from("b1/z1/-", "b1/z1/k1", FABRIC_OTHER_RACK);
	far_from("b1/-/-", "b1/-/-", FABRIC_OTHER_ZONE);
	far_from("b1/-/-", "b2/-/-", FABRIC_OTHER_BUILDING);
	far_from("-/-/-", "-/-/-", FABRIC_UNKNOWN);
	far_from("-/-/-", "b1/z1/k1", FABRIC_UNKNOWN);
	tap_is_int(fabric_distance(&none, &none), FABRIC_UNKNOWN,
		   "nor is an unknown host the same as another");
}

static void test_names(void)
{
	for (enum fabric_distance d = 0; d < FABRIC_DISTANCES; d++) {
		const char *name = fabric_distance_name(d);

		tap_is_int(fabric_distance_find(name, strlen(name)), d, name);
	}
	tap_is_int(fabric_distance_find("rac", 3), FABRIC_DISTANCES, "no such distance");
	tap_is_int(fabric_distance_find("racks", 5), FABRIC_DISTANCES, "nor this");
	tap_is_str(fabric_distance_name(FABRIC_DISTANCES), "?", "nor a name for it");
	tap_ok(fabric_name_valid("a-b_c.D9", 8, 8) && !fabric_name_valid("-a", 2, 8) &&
		       !fabric_name_valid("", 0, 8) && !fabric_name_valid("abc", 3, 2) &&
		       !fabric_name_valid("a/b", 3, 8) &&
		       !fabric_name_valid("a\0b", 3, 8),
	       "what a name is");
}

static void test_text(void)
{
	static const char *const texts[] = {"b1/z1/k1", "b1/z1/-", "b1/-/-", "-/-/-"};
	char text[FABRIC_PLACE_MAX + 1], longest[FABRIC_PLACE_MAX + 8];
	struct fabric_place p;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		p = place("x", texts[i]);
		fabric_place_text(&p, text);
		tap_is_str(text, texts[i], "there and back");
		tap_is_str(p.host, "x", "the host is left alone");
	}
	memset(longest, 'a', sizeof(longest));
	longest[FABRIC_PART_MAX] = longest[2 * FABRIC_PART_MAX + 1] = '/';
	tap_ok(fabric_place_parse(longest, FABRIC_PLACE_MAX, &p) &&
		       fabric_place_text(&p, text) == FABRIC_PLACE_MAX &&
		       memcmp(text, longest, FABRIC_PLACE_MAX) == 0,
	       "the longest names");
	tap_ok(!fabric_place_parse(longest, FABRIC_PLACE_MAX + 1, &p), "one byte more");
	refused("");
	refused("b1");
	refused("b1/z1");
	refused("b1/z1/k1/x");
	refused("b1//k1");
	refused("b1/-/k1");
	refused("-/z1/-");
	refused("b 1/z1/k1");
	refused("--/z1/k1");
}

int main(void)
{
	test_distance();
	test_names();
	test_text();
	return tap_done();
}
