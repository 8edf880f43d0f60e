/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "topo/fabric/place.h"

#include <stdio.h>
#include <string.h>

static const char *const distance_name[FABRIC_DISTANCES] = {
	[FABRIC_SAME_HOST] = "host",	 [FABRIC_SAME_RACK] = "rack",
	[FABRIC_OTHER_RACK] = "zone",	 [FABRIC_OTHER_ZONE] = "building",
	[FABRIC_OTHER_BUILDING] = "far", [FABRIC_UNKNOWN] = "unknown",
};

/* Both known, and the same. */
static bool same(const char *a, const char *b)
{
	return a[0] && strcmp(a, b) == 0;
}

enum fabric_distance fabric_distance(const struct fabric_place *a,
				     const struct fabric_place *b)
{
	if (same(a->host, b->host))
		return FABRIC_SAME_HOST;
	if (!a->building[0] || !b->building[0])
		return FABRIC_UNKNOWN;
	if (!same(a->building, b->building))
		return FABRIC_OTHER_BUILDING;
	if (!same(a->zone, b->zone))
		return FABRIC_OTHER_ZONE;
	return same(a->rack, b->rack) ? FABRIC_SAME_RACK : FABRIC_OTHER_RACK;
}

const char *fabric_distance_name(enum fabric_distance d)
{
	return d < FABRIC_DISTANCES ? distance_name[d] : "?";
}

enum fabric_distance fabric_distance_find(const char *name, size_t len)
{
	enum fabric_distance d = FABRIC_SAME_HOST;

	while (d < FABRIC_DISTANCES && (strlen(distance_name[d]) != len ||
					memcmp(distance_name[d], name, len) != 0))
		d++;
	return d;
}

static bool name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool fabric_name_valid(const char *name, size_t len, size_t most)
{
	if (len == 0 || len > most || name[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!name_byte(name[i]))
			return false;
	return true;
}

/* One part, "-" for none. */
static bool part_take(const char *text, size_t len, char part[FABRIC_PART_MAX + 1])
{
	if (len == 1 && text[0] == '-') {
		part[0] = '\0';
		return true;
	}
	if (!fabric_name_valid(text, len, FABRIC_PART_MAX))
		return false;
	memcpy(part, text, len);
	part[len] = '\0';
	return true;
}

bool fabric_place_parse(const char *text, size_t len, struct fabric_place *place)
{
	const char *end = text + len, *zone, *rack;
	struct fabric_place p;

	zone = memchr(text, '/', len);
	if (!zone)
		return false;
	zone++;
	rack = memchr(zone, '/', (size_t)(end - zone));
	if (!rack)
		return false;
	rack++;
	if (!part_take(text, (size_t)(zone - 1 - text), p.building) ||
	    !part_take(zone, (size_t)(rack - 1 - zone), p.zone) ||
	    !part_take(rack, (size_t)(end - rack), p.rack))
		return false;
	if ((!p.building[0] && p.zone[0]) || (!p.zone[0] && p.rack[0]))
		return false;
	memcpy(place->building, p.building, sizeof(p.building));
	memcpy(place->zone, p.zone, sizeof(p.zone));
	memcpy(place->rack, p.rack, sizeof(p.rack));
	return true;
}

size_t fabric_place_text(const struct fabric_place *place,
			 char text[FABRIC_PLACE_MAX + 1])
{
	return (size_t)snprintf(text, FABRIC_PLACE_MAX + 1, "%s/%s/%s",
				place->building[0] ? place->building : "-",
				place->zone[0] ? place->zone : "-",
				place->rack[0] ? place->rack : "-");
}
