/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info: the facts, found by info.c, shown by info_show.c. */
#ifndef WEFT_CLI_INFO_H
#define WEFT_CLI_INFO_H

#include <stdbool.h>

#include "cli/info_host.h"
#include "cli/info_vars.h"

struct gpu;

enum { INFO_PROVIDERS_MAX = 32, INFO_NAME_MAX = 64 };

/* A provider that collectives can run on. */
struct info_provider {
	char name[INFO_NAME_MAX];
	char domain[INFO_NAME_MAX]; /* the one that would be used */
	bool put;		    /* large data by remote writes, else by messages */
};

struct info {
	unsigned fabric_major, fabric_minor; /* libfabric at run time */
	struct info_provider provider[INFO_PROVIDERS_MAX];
	int providers;
	char chosen[INFO_NAME_MAX]; /* without other wishes; "" when there is none */
	char chosen_why[512];	    /* why there is none */
	bool has_weft;
	const char *kernels; /* "avx512": the reductions' instruction set */
	struct info_host host;
	struct gpu *gpu; /* or NULL */
	struct info_vars vars;
};

void info_show_text(const struct info *info);
void info_show_json(const struct info *info);

#endif
