/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the provider is, seen from the command: what was installed may have been moved,
 * or unpacked elsewhere, as a whole.
 */
#ifndef WEFT_CLI_PLACE_H
#define WEFT_CLI_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The folder that stands to exe, the path of a program, as providerdir stands to bindir,
 * both as they were configured: /opt/w/lib/libfabric for /opt/w/bin/weft, /usr/local/bin
 * and /usr/local/lib/libfabric. All are absolute. False where exe lies in no such place,
 * or text has not room for it.
 */
bool place_relative(const char *exe, const char *bindir, const char *providerdir,
		    char *text, size_t size);

/*
 * Before libfabric is asked for anything, and before there are threads: where
 * FI_PROVIDER_PATH is not set and the provider lies beside this program in a folder that
 * libfabric doesn't look in by itself, sets it to that folder and to where libfabric
 * looks anyway. Programs that weft run starts inherit it.
 */
void place_provider(void);

/* The folder that the provider lies in, as this program sees it: beside it as installed,
 * below it in a build tree, or where it was configured to be installed. False: in none of
 * them. */
bool place_find(char *text, size_t size);

/* Whether place_provider() has set it. */
bool place_was_set(void);

#endif
