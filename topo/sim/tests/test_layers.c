/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of layers: what they say, and what is refused, with its line. */
#include "config.h"

#include <errno.h>

#include "topo/sim/layers.h"
#include "util/tap.h"

#define HEAD "weft-layers 1\n"

static void test_read(void)
{
	static const char text[] =
		"# a model\n\n" HEAD "layer embed 400M forward=0.25ms backward=500us\n"
		"layer block 3K times=3 backward=2s forward=7ns # alike\n"
		"\tlayer head 0 forward=0s backward=0.001us\r\n";
	struct layers l;
	struct fabric_error error;
	const int rc = layers_parse(text, sizeof(text) - 1, &l, &error);

	tap_ok(!rc && l.count == 5 && !error.text[0], "three lines, five layers");
	if (rc)
		tap_bail("line %u: %s", error.line, error.text);
	tap_ok(l.layer[0].bytes == 400u << 20 && l.layer[0].forward == 0.25e-3 &&
		       l.layer[0].backward == 500 * 1e-6,
	       "bytes by powers of 1024, times by units");
	tap_ok(l.layer[1].bytes == 3072 && l.layer[3].forward == 7 * 1e-9 &&
		       l.layer[3].backward == 2,
	       "some that are alike");
	tap_ok(!l.layer[4].bytes && !l.layer[4].forward &&
		       l.layer[4].backward == 0.001 * 1e-6,
	       "nothing is a number too");
	layers_free(&l);
}

static void refused(const char *text, unsigned line, const char *words)
{
	struct layers l;
	struct fabric_error error;
	const int rc = layers_parse(text, strlen(text), &l, &error);

	if (!tap_ok(rc == -EINVAL && !l.layer && error.line == line &&
			    strstr(error.text, words),
		    "line %u: %s", line, words))
		tap_diag("rc %d, line %u: %s", rc, error.line, error.text);
}

static void test_refused(void)
{
	refused("", 0, "there is no layer");
	refused(HEAD, 0, "there is no layer");
	refused("weft-layers 2\n", 1, "the first line of a list");
	refused("layer a 1 forward=1s backward=1s\n", 1, "the first line of a list");
	refused("\nweft-layers 1 more\n", 2, "the first line of a list");
	refused(HEAD "stage a\n", 2, "a line begins with \"layer\"");
	refused(HEAD "layer -a 1 forward=1s backward=1s\n", 2, "a name has");
	refused(HEAD "layer\n", 2, "layer \"\": a name has");
	refused(HEAD "layer a\n", 2, "\"\" is no number of bytes");
	refused(HEAD "layer a 1X forward=1s backward=1s\n", 2, "\"1X\" is no number");
	refused(HEAD "layer a 1025G forward=1s backward=1s\n", 2, "up to 1024G");
	refused(HEAD "layer a 1 forward=1s\n", 2, "has no backward=");
	refused(HEAD "layer a 1 backward=1s\n", 2, "has no forward=");
	refused(HEAD "layer a 1 forward=1s backward=1s forward=1s\n", 2,
		"each said once");
	refused(HEAD "layer a 1 forward=1s backward=1s times=0\n", 2, "\"times=0\"");
	refused(HEAD "layer a 1 forward=1s backward=1s times=65537\n", 2,
		"more than 65536");
	refused(HEAD "layer a 1 forward=1s backward=1s times=65536\n"
		     "layer b 1 forward=1s backward=1s\n",
		3, "layer b: more than 65536");
	for (size_t i = 0; i < 8; i++) {
		static const char *const times[8] = {"1",     "s",    "-1s", "1.0001s",
						     "1001s", "1.s.", "1 s", "1e3s"};
		char line[96];

		snprintf(line, sizeof(line), HEAD "layer a 1 forward=%s backward=1s\n",
			 times[i]);
		refused(line, 2, "is none of forward=");
	}
}

static void test_files(void)
{
	struct layers l;
	struct fabric_error error;

	tap_ok(layers_load("/no/such/file", &l, &error) == -ENOENT && !error.line &&
		       strstr(error.text, "No such file"),
	       "a file that is not there");
	tap_ok(layers_load("/", &l, &error) == -EISDIR ||
		       layers_load("/", &l, &error) == -EIO,
	       "a folder");
	tap_ok(layers_load("/dev/zero", &l, &error) == -EFBIG &&
		       strstr(error.text, "more than 1 MiB"),
	       "one that has no end");
}

int main(void)
{
	test_read();
	test_refused();
	test_files();
	return tap_done();
}
