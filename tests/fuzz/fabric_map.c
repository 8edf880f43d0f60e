/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric map, and places as a peer may write them: what is accepted is within its
 * limits and is found again; what is refused is said, with a line of the text.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "topo/fabric/map.h"

static void check_place(const uint8_t *data, size_t size)
{
	char text[FABRIC_PLACE_MAX + 1];
	struct fabric_place p = {0};

	if (!fabric_place_parse((const char *)data, size, &p))
		return;
	fuzz_require(fabric_place_text(&p, text) == size);
	fuzz_require(memcmp(text, data, size) == 0);
	fuzz_require(p.building[0] || fabric_distance(&p, &p) == FABRIC_UNKNOWN);
	fuzz_require(!p.rack[0] || fabric_distance(&p, &p) == FABRIC_SAME_RACK);
}

static void check_map(const struct fabric_map *map)
{
	static const char *const names[] = {"gpu001", "gpu016", "login", "a1-ib"};

	fuzz_require(fabric_map_rails(map) <= FABRIC_RAILS_MAX);
	for (unsigned i = 0; i < fabric_map_rails(map); i++) {
		const struct fabric_rail *rail = fabric_map_rail(map, i);

		fuzz_require(fabric_name_valid(rail->name, strlen(rail->name),
					       FABRIC_PART_MAX));
		fuzz_require(rail->bits_per_s > 0);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct fabric_host host;

		if (!fabric_map_host(map, names[i], &host))
			continue;
		fuzz_require(fabric_map_hosts(map) > 0);
		fuzz_require(strcmp(host.place.host, names[i]) == 0);
		fuzz_require(fabric_distance(&host.place, &host.place) ==
			     FABRIC_SAME_HOST);
	}
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	struct fabric_map *map = NULL;
	struct fabric_error error;
	unsigned lines = 1;
	int rc;

	check_place(data, size);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	rc = fabric_map_parse((const char *)data, size, &map, &error);
	fuzz_require(rc == 0 || rc == -EINVAL);
	if (rc) {
		fuzz_require(!map && error.text[0] && error.line <= lines);
		return false;
	}
	check_map(map);
	fabric_map_free(map);
	return true;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	static const char *const seeds[] = {
		"weft-fabric 1\nrail r0 400G\nhost gpu[001-016] b1/z1/k01 r0=mlx5_0\n",
		"weft-fabric 1\n# none\nhost login b1/-/-\nhost a[1-4]-ib -/-/-\n",
	};
	size_t len;

	if (number >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	len = strlen(seeds[number]);
	memcpy(room, seeds[number], len);
	return len;
}
