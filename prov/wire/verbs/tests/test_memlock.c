/* SPDX-License-Identifier: BSD-2-Clause */
/* Too little memory that may be locked is said in words; a library that isn't there too.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "prov/wire/verbs/verbs_dev.h"
#include "util/tap.h"

int main(void)
{
	struct verbs_error error = {""};
	const char *names = NULL, *why;

	tap_ok(verbs_memlock_low(64 << 10, false, &error), "64 KiB are too little");
	tap_ok(strstr(error.text, "64 KiB") && strstr(error.text, "RLIMIT_MEMLOCK") &&
		       strstr(error.text, "ulimit -l"),
	       "which is said: what it is, and where it is set");
	tap_ok(!verbs_memlock_low(64 << 10, true, &error), "but not for root");
	tap_ok(!verbs_memlock_low(UINT64_MAX, false, &error), "no limit is enough");

	tap_ok((verbs_lib() != NULL) == (verbs_lib_absent() == NULL),
	       "there is a library, or a reason");
	tap_ok(verbs_lib() == verbs_lib(), "always the same");
	why = verbs_dev_absent(&names);
	tap_ok(why ? strlen(why) > 10 && !names : names != NULL,
	       "there are rails, or a reason");
	tap_diag("%s", why ? why : names);
	return tap_done();
}
