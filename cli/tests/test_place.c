/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the provider is, from where the command is. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cli/place.h"
#include "util/tap.h"

struct example {
	const char *exe, *bindir, *providerdir;
	const char *want; /* NULL: no such place */
};

static const struct example examples[] = {
	{"/usr/local/bin/weft", "/usr/local/bin", "/usr/local/lib/libfabric",
	 "/usr/local/lib/libfabric"},
	{"/opt/w/bin/weft", "/usr/local/bin", "/usr/local/lib/libfabric",
	 "/opt/w/lib/libfabric"},
	{"/bin/weft", "/usr/local/bin", "/usr/local/lib/libfabric", "/lib/libfabric"},
	{"/opt/w/usr/local/bin/weft", "/usr/local/bin", "/usr/lib/x/libfabric",
	 "/opt/w/usr/lib/x/libfabric"},
	{"/w/build/weft", "/usr/local/bin", "/usr/local/lib/libfabric", NULL},
	{"/opt/cabin/weft", "/usr/local/bin", "/usr/local/lib/libfabric", NULL},
	{"/opt/lib/weft", "/p/lib", "/p/lib/libfabric", "/opt/lib/libfabric"},
	{"/opt/libx/weft", "/p/libx", "/p/lib/libfabric", "/opt/lib/libfabric"},
	{"weft", "/usr/local/bin", "/usr/local/lib/libfabric", NULL},
	{"/x/weft", "/x", "/x", "/x"},
};

int main(void)
{
	char text[64];

	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		const struct example *e = &examples[i];
		bool found = place_relative(e->exe, e->bindir, e->providerdir, text,
					    sizeof(text));

		tap_ok(e->want ? found && strcmp(text, e->want) == 0 : !found,
		       "%s, for %s and %s: %s", e->exe, e->bindir, e->providerdir,
		       found ? text : "no such place");
	}
	tap_ok(!place_relative("/opt/weft/bin/weft", "/usr/bin", "/usr/lib/libfabric",
			       text, 8),
	       "what has no room is not cut");
	return tap_done();
}
