/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's version: what the caller was built with may differ. */
#include "config.h"

#include "weft/weft.h"

const char *weft_version(void)
{
	return PACKAGE_VERSION;
}
