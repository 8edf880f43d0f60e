/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft info: what is wrong with variables of the environment. A wrong one is otherwise
 * noticed by nobody: libfabric and its providers take the default without a word.
 */
#ifndef WEFT_CLI_INFO_VARS_H
#define WEFT_CLI_INFO_VARS_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>

struct info_vars {
	struct fi_param *param; /* of libfabric and of the providers that it has loaded */
	int params;
	bool has_weft;	   /* the provider's are among them */
	char meeting[512]; /* why ranks could not meet by WEFT_*; "" when they could */
};

/* After libfabric has loaded its providers. */
void info_vars_init(struct info_vars *vars);
void info_vars_fini(struct info_vars *vars);

/* A variable of the library or of this command. */
struct info_var {
	const char *name;
	const char *range;   /* what it may be */
	const char *initial; /* what counts where it isn't set */
	const char *what;
};

const struct info_var *info_vars_own(size_t *count);

/*
 * What Weft's provider accepts is told by the end of a parameter's help, which is all
 * that libfabric passes on: "... (0 to 1048576 bytes; default: 8192)" or "... (auto, 0,
 * 1; default: auto)".
 */
struct accepted {
	char range[96];
	char initial[32];
};

/* False: the help does not say it. */
bool info_vars_accepted(struct accepted *a, const char *help);

enum { INFO_NOTE_TEXT = 256 };

/* What is wrong with one variable of ours or libfabric's; NULL when nothing is known to
 * be. */
const char *info_vars_judge(const struct info_vars *vars, const char *name,
			    const char *value, char text[INFO_NOTE_TEXT]);

#endif
