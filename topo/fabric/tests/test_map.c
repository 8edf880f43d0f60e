/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric map: what is read, what is refused and with which words. */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "topo/fabric/map.h"
#include "util/tap.h"

#define HEAD "weft-fabric 1\nrail r0 400G\nrail r1 200G\n"

static const char whole[] = "# a comment\n"
			    "\n"
			    "  weft-fabric\t1 # the format\r\n"
			    "rail r0 400G\n"
			    "rail r1 1T\n"
			    "host gpu[001-016] b1/z1/k01 r0=mlx5_0 r1=mlx5_1\n"
			    "host gpu[017-032] b1/z1/k02 r1=mlx5_3\n"
			    "host gpu1 b1/z1/-\n"
			    "host login b1/-/-\n"
			    "host rack2[00-15]-ib b2/z9/k7 r0=efa0\n"
			    "host 10.0.0.[7-9] -/-/-";

static struct fabric_map *map_of(const char *text)
{
	struct fabric_map *map = NULL;
	struct fabric_error error;

	if (fabric_map_parse(text, strlen(text), &map, &error))
		tap_bail("line %u: %s", error.line, error.text);
	return map;
}

static void test_hosts(void)
{
	struct fabric_map *map = map_of(whole);
	struct fabric_host host, other;
	char text[FABRIC_PLACE_MAX + 1];

	tap_is_int(fabric_map_rails(map), 2, "two rails");
	tap_is_int((int64_t)fabric_map_rail(map, 0)->bits_per_s, 400000000000, "400G");
	tap_is_int((int64_t)fabric_map_rail(map, 1)->bits_per_s, 1000000000000, "1T");
	tap_is_int((int64_t)fabric_map_hosts(map), 53, "hosts of ranges count each");
	tap_ok(fabric_map_host(map, "gpu007", &host), "a host of a range");
	fabric_place_text(&host.place, text);
	tap_is_str(text, "b1/z1/k01", "its place");
	tap_is_str(host.place.host, "gpu007", "its name");
	tap_ok(strcmp(host.device[0], "mlx5_0") == 0 &&
		       strcmp(host.device[1], "mlx5_1") == 0 && !host.device[2][0],
	       "its devices");
	tap_ok(fabric_map_host(map, "gpu032", &other) && !other.device[0][0] &&
		       strcmp(other.device[1], "mlx5_3") == 0,
	       "the last of a range, on one rail");
	tap_is_int(fabric_distance(&host.place, &other.place), FABRIC_OTHER_RACK,
		   "their distance");
	tap_ok(fabric_map_host(map, "login", &host) && !host.place.zone[0],
	       "a host without a number");
	tap_ok(fabric_map_host(map, "gpu1", &host) && host.place.zone[0] &&
		       !host.place.rack[0],
	       "with another number of digits it is another host");
	tap_ok(fabric_map_host(map, "rack207-ib", &host) &&
		       strcmp(host.place.building, "b2") == 0,
	       "digits before a range, letters behind it");
	tap_ok(fabric_map_host(map, "10.0.0.8", &host) && !host.place.building[0],
	       "an address");
	tap_ok(!fabric_map_host(map, "gpu033", &host) &&
		       !fabric_map_host(map, "gpu000", &host) &&
		       !fabric_map_host(map, "gpu", &host) &&
		       !fabric_map_host(map, "login2", &host) &&
		       !fabric_map_host(map, "rack207", &host) &&
		       !fabric_map_host(map, "", &host) &&
		       !fabric_map_host(map, "a b", &host),
	       "hosts that it has not");
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
	refused("", 0, "there is nothing in it");
	refused("# only this\n", 1, "there is nothing in it");
	refused("rail r0 400G\n", 1,
		"the first line of a fabric map is \"weft-fabric 1\"");
	refused("weft-fabric 2\n", 1, "weft-fabric 1");
	refused("weft-fabric 1 2\n", 1, "weft-fabric 1");
	refused(HEAD "hosts a b1/z1/k1\n", 4, "begins with \"rail\" or \"host\"");
	refused(HEAD "rail r0 100G\n", 4, "rail r0 is said a second time");
	refused(HEAD "rail r2\n", 4, "is no speed");
	refused(HEAD "rail r2 0G\n", 4, "is no speed");
	refused(HEAD "rail r2 400\n", 4, "is no speed");
	refused(HEAD "rail r2 400G full\n", 4, "\"full\" is no speed");
	refused(HEAD "rail =x 400G\n", 4, "letters, digits");
	refused(HEAD "host a\n", 4, "is no BUILDING/ZONE/RACK");
	refused(HEAD "host a b1/-/k1\n", 4, "is no BUILDING/ZONE/RACK");
	refused(HEAD "host a b1/z1/k1 mlx5_0\n", 4, "is no RAIL=DEVICE");
	refused(HEAD "host a b1/z1/k1 r7=mlx5_0\n", 4, "rail \"r7\" is not known");
	refused(HEAD "host a b1/z1/k1 r0=x r0=y\n", 4, "on rail r0 a second time");
	refused(HEAD "host a b1/z1/k1 r0=\n", 4, "device \"\"");
	refused(HEAD "host -a b1/z1/k1\n", 4, "letters, digits");
	refused(HEAD "host a[1-\n", 4, "a range is [FIRST-LAST]");
	refused(HEAD "host a[12] b1/z1/k1\n", 4, "a range is [FIRST-LAST]");
	refused(HEAD "host a[x-y] b1/z1/k1\n", 4, "a range has numbers");
	refused(HEAD "host a[1-16] b1/z1/k1\n", 4, "equally many digits");
	refused(HEAD "host a[16-01] b1/z1/k1\n", 4, "the range is empty");
	refused(HEAD "host a[1-2]b3 b1/z1/k1\n", 4, "behind a range comes no digit");
	refused(HEAD "host a[1-2][3-4] b1/z1/k1\n", 4, "behind a range comes no digit");
	refused(HEAD "host a[1-2]] b1/z1/k1\n", 4, "letters, digits");
	refused(HEAD "host a12345678[10-20] b1/z1/k1\n", 4, "more than 9 digits");
	refused(HEAD "host a7 b1/z1/k1\n\nhost a7 b1/z1/k1\n", 6,
		"host a7 was said before, in line 4");
	refused(HEAD "host b b1/z1/k1\nhost b b1/z1/k1\n", 5,
		"host b was said before, in line 4");
	refused(HEAD "host a05 b1/z1/k1\nhost a[01-09] b1/z1/k1\n", 5,
		"host a05 was said before, in line 4");
	refused(HEAD "host a[01-05] b1/z1/k1\nhost a[05-09] b1/z1/k1\n", 5,
		"host a05 was said before, in line 4");
}

static void test_many_rails(void)
{
	char text[4096];
	size_t at = 0;

	at += (size_t)snprintf(text, sizeof(text), "weft-fabric 1\n");
	for (unsigned i = 0; i <= FABRIC_RAILS_MAX; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "rail r%u 1G\n", i);
	refused(text, FABRIC_RAILS_MAX + 2, "one too many");
}

static void test_file(void)
{
	char path[] = "fabric-map-XXXXXX";
	struct fabric_map *map = NULL;
	struct fabric_error error;
	struct fabric_host host;
	int fd;

	tap_is_int(fabric_map_load("/no/such/map", &map, &error), -ENOENT,
		   "a file that is not there");
	tap_ok(strstr(error.text, "/no/such/map: No such file") != NULL &&
		       error.line == 0,
	       "is said: %s", error.text);
	fd = mkstemp(path);
	if (fd < 0 || write(fd, whole, strlen(whole)) != (ssize_t)strlen(whole))
		tap_bail("%s can't be written", path);
	close(fd);
	tap_ok(fabric_map_load(path, &map, &error) == 0 &&
		       fabric_map_host(map, "gpu016", &host),
	       "a file is read");
	unlink(path);
	fabric_map_free(map);
	tap_is_int(fabric_map_load("/", &map, &error), -EIO, "a folder is none");
}

/* One line for each: looking up is not linear. */
static void test_many(void)
{
	size_t room = (size_t)FABRIC_ROWS_MAX * 32 + 64, at;
	char *text = malloc(room);
	struct fabric_map *map;
	struct fabric_host host;
	bool found = true;

	if (!text)
		tap_bail("out of memory");
	at = (size_t)snprintf(text, room, "weft-fabric 1\n");
	for (unsigned i = 20000; i > 0; i--)
		at += (size_t)snprintf(text + at, room - at, "host h%u b/z/k%u\n", i,
				       i / 40);
	map = map_of(text);
	free(text);
	tap_is_int((int64_t)fabric_map_hosts(map), 20000, "20000 lines");
	for (unsigned i = 1; i <= 20000 && found; i++) {
		char name[16], rack[16];

		snprintf(name, sizeof(name), "h%u", i);
		snprintf(rack, sizeof(rack), "k%u", i / 40);
		found = fabric_map_host(map, name, &host) &&
			strcmp(host.place.rack, rack) == 0;
	}
	tap_ok(found, "each is found in its rack");
	fabric_map_free(map);
}

int main(void)
{
	test_hosts();
	test_refused();
	test_many_rails();
	test_file();
	test_many();
	fabric_map_free(NULL);
	return tap_done();
}
