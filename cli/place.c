/* SPDX-License-Identifier: BSD-2-Clause */
/* See place.h. */
#include "config.h"

#include "cli/place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULE "libweft-fi.so"

static bool was_set; /* written once, before there are threads */

/* How many bytes a and b begin with in common, in whole components. */
static size_t common_length(const char *a, const char *b)
{
	size_t last = 0, i = 0;

	for (; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			last = i;
	if ((!a[i] && b[i] == '/') || (!b[i] && a[i] == '/') || (!a[i] && !b[i]))
		last = i;
	return last;
}

bool place_relative(const char *exe, const char *bindir, const char *providerdir,
		    char *text, size_t size)
{
	const char *end = strrchr(exe, '/');
	size_t common = common_length(bindir, providerdir);
	size_t tail = strlen(bindir) - common; /* "/bin" */
	size_t length = end ? (size_t)(end - exe) : 0;
	int n;

	if (!end || length < tail || memcmp(end - tail, bindir + common, tail) != 0)
		return false;
	n = snprintf(text, size, "%.*s%s", (int)(length - tail), exe,
		     providerdir + common);
	return n > 0 && (size_t)n < size;
}

void place_provider(void)
{
	char exe[PATH_MAX], dir[PATH_MAX], path[2 * PATH_MAX + 2];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0 || getenv("FI_PROVIDER_PATH"))
		return;
	exe[n] = '\0';
	if (!place_relative(exe, WEFT_BINDIR, WEFT_PROVIDERDIR, dir, sizeof(dir)) ||
	    strcmp(dir, WEFT_FABRICDIR) == 0 || strchr(dir, ':'))
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, MODULE);
	if (access(path, R_OK) != 0)
		return;
	snprintf(path, sizeof(path), "%s%s%s", dir, WEFT_FABRICDIR[0] ? ":" : "",
		 WEFT_FABRICDIR);
	was_set = setenv("FI_PROVIDER_PATH", path, 0) == 0;
}

static bool has_module(const char *dir)
{
	char path[PATH_MAX + sizeof(MODULE) + 1];

	snprintf(path, sizeof(path), "%s/%s", dir, MODULE);
	return access(path, R_OK) == 0;
}

bool place_find(char *text, size_t size)
{
	char exe[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int len;

	exe[n > 0 ? n : 0] = '\0';
	if (place_relative(exe, WEFT_BINDIR, WEFT_PROVIDERDIR, text, size) &&
	    has_module(text))
		return true;
	len = strrchr(exe, '/') ? (int)(strrchr(exe, '/') - exe) : 0;
	if (snprintf(text, size, "%.*s/prov", len, exe) < (int)size && has_module(text))
		return true;
	return snprintf(text, size, "%s", WEFT_PROVIDERDIR) < (int)size &&
	       has_module(text);
}

bool place_was_set(void)
{
	return was_set;
}
