/* SPDX-License-Identifier: BSD-2-Clause */
/* See out_path.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/trace/out_path.h"

enum weft_result out_path_set(const struct out_path *p, char *path, size_t room)
{
	struct stat st;
	int n;

	path[0] = '\0';
	errno = 0;
	if (stat(p->folder, &st) || !S_ISDIR(st.st_mode) ||
	    access(p->folder, W_OK | X_OK))
		return error_set(
			WEFT_ERR_ARG,
			"%s: %.200s: %s; name a folder that %s can be written to",
			p->variable, p->folder,
			errno ? strerror(errno) : "it is no folder", p->what);
	n = snprintf(path, room, "%s/%s-%d.%ld.%u.%s", p->folder, p->prefix, p->rank,
		     (long)getpid(), p->number, p->suffix);
	if (n >= 0 && (size_t)n < room)
		return WEFT_SUCCESS;
	path[0] = '\0';
	return error_set(WEFT_ERR_ARG,
			 "%s: %.60s...: the paths of %s in it are longer than %zu bytes",
			 p->variable, p->folder, p->what, room - 1);
}
