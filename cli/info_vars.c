/* SPDX-License-Identifier: BSD-2-Clause */
/* See info_vars.h. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/info_vars.h"
#include "coll/api/error.h"
#include "coll/boot/boot_env.h"
#include "coll/comm/force.h"
#include "coll/exec/lines_mem.h"
#include "coll/exec/nodes.h"
#include "coll/tune/tune.h"

/* Those that the library and this command read or set. */
static const struct info_var own[] = {
	{"WEFT_ALGO", "COLLECTIVE=ALGORITHM[:BYTES],...", "the library's choice",
	 "algorithms for collectives, the same on all ranks"},
	{"WEFT_TUNE", "a file of weft tune, or measure", "built-in limits",
	 "what algorithms are chosen by, the same on all ranks"},
	{"WEFT_NODES", "1 or more ranks", "ranks of one kernel",
	 "so many ranks after one another are taken for those of a host"},
	{"WEFT_LINES", "auto, on, short, off", "auto",
	 "whether calls of ranks of one host go by memory that they share"},
	{"WEFT_PROGRESS", "caller, thread", "caller",
	 "who goes on with what was started, where the program does not say"},
	{"WEFT_PROGRESS_CPUS", "CPUs, as in 3 or 0,2-4", "where the caller may run",
	 "where such a thread may run"},
	{"WEFT_TRACE", "a folder", "none",
	 "where events are written when a call fails, at SIGUSR2 and at a crash"},
	{"WEFT_STATS", "a folder", "none", "where counters for Prometheus are written"},
	{"WEFT_STATS_SECONDS", "0.1 to 86400", "10", "how often"},
	{"WEFT_GPU_LIB", "a file, or none", "libweft-gpu.so", "the library for GPUs"},
	{"WEFT_GPU_KERNELS", "a file", "what the library brings",
	 "the code that runs on GPUs"},
	{"WEFT_GPU_HOLD", "memops, kernel", "the faster, which is tried",
	 "what holds a stream until a collective in it is done"},
	{"WEFT_GPU_PINNED", "MiB", "2048",
	 "what a context pins at most for copies of device memory"},
	{"WEFT_RANK", "0 to size - 1", "by the launcher", "this process's rank"},
	{"WEFT_SIZE", "1 or more", "by the launcher", "how many ranks there are"},
	{"WEFT_ROOT", "HOST:PORT", "by the launcher",
	 "where rank 0 listens while ranks find each other"},
	{"WEFT_ROOT_FD", "a descriptor", "none", "rank 0's, which listens already"},
	{"WEFT_JOB", "a text of 1 to 64 bytes", "by the launcher",
	 "a secret: who does not know it is refused"},
	{"WEFT_ETCD_CA", "a file of PEM", "the system's",
	 "authorities that a coordinator trusts with etcds://"},
	{"WEFT_ETCD_CERT", "a file of PEM", "none", "its own certificate for etcds://"},
	{"WEFT_ETCD_KEY", "a file of PEM", "none", "the key of that"},
	{"WEFT_LOCAL_RANK", "0 or more", "none",
	 "this process's rank on its host, for programs"},
	{"WEFT_LOCAL_SIZE", "1 or more", "none", "ranks of this host, for programs"},
	{"WEFT_TTY", "0, 1", "none", "1 where standard error of weft run is a terminal"},
};

const struct info_var *info_vars_own(size_t *count)
{
	*count = sizeof(own) / sizeof(own[0]);
	return own;
}

static bool is_ours(const char *name)
{
	return strncmp(name, "FI_WEFT_", 8) == 0;
}

void info_vars_init(struct info_vars *vars)
{
	struct boot_env env;

	memset(vars, 0, sizeof(*vars));
	if (fi_getparams(&vars->param, &vars->params) != 0)
		vars->params = 0;
	for (int i = 0; i < vars->params; i++)
		vars->has_weft = vars->has_weft || is_ours(vars->param[i].name);
	if (boot_env_read(&env, 0) != WEFT_SUCCESS)
		snprintf(vars->meeting, sizeof(vars->meeting), "%s", weft_error_detail());
}

void info_vars_fini(struct info_vars *vars)
{
	if (vars->params)
		fi_freeparams(vars->param);
	vars->params = 0;
}

/* ---- values ----------------------------------------------------------------------- */

bool info_vars_accepted(struct accepted *a, const char *help)
{
	const char *open = help ? strrchr(help, '(') : NULL;

	return open &&
	       sscanf(open, "(%95[^;]; default: %31[^)])", a->range, a->initial) == 2;
}

static bool in_range(const char *range, const char *value)
{
	unsigned long long min, max, v;
	char *end;

	if (sscanf(range, "%llu to %llu", &min, &max) != 2 ||
	    !isdigit((unsigned char)value[0]))
		return false;
	errno = 0;
	v = strtoull(value, &end, 0);
	return !errno && !*end && v >= min && v <= max;
}

static bool is_word_of(const char *words, const char *value)
{
	size_t len = strlen(value);

	for (const char *at = words; *at; at += strspn(at, ", ")) {
		size_t word = strcspn(at, ",");

		if (word == len && strncmp(at, value, len) == 0)
			return true;
		at += word;
	}
	return false;
}

static const char *judge_value(const struct fi_param *param, const char *value,
			       char text[INFO_NOTE_TEXT])
{
	struct accepted a;
	bool numbers;

	if (!info_vars_accepted(&a, param->help_string))
		return NULL;
	numbers = strstr(a.range, " to ") != NULL;
	if (numbers ? in_range(a.range, value) : is_word_of(a.range, value))
		return NULL;
	snprintf(text, INFO_NOTE_TEXT, "not accepted: %s%s; the default is used, %s",
		 numbers ? "" : "one of ", a.range, a.initial);
	return text;
}

static const char *judge_progress(const char *value, char text[INFO_NOTE_TEXT])
{
	if (is_word_of("caller, thread", value))
		return NULL;
	snprintf(text, INFO_NOTE_TEXT,
		 "refused when a context is opened: want caller or "
		 "thread");
	return text;
}

static const char *judge_nodes(const char *value, char text[INFO_NOTE_TEXT])
{
	uint32_t ranks;

	if (nodes_read(value, &ranks) == WEFT_SUCCESS)
		return NULL;
	snprintf(text, INFO_NOTE_TEXT, "%s", weft_error_detail());
	return text;
}

static const char *judge_lines(const char *value, char text[INFO_NOTE_TEXT])
{
	enum lines_wish wish;

	if (lines_read(value, &wish) == WEFT_SUCCESS)
		return NULL;
	snprintf(text, INFO_NOTE_TEXT, "%s", weft_error_detail());
	return text;
}

static const char *judge_tune(const char *value, char text[INFO_NOTE_TEXT])
{
	struct tune *tune;

	if (tune_open(value, &tune) != WEFT_SUCCESS) {
		snprintf(text, INFO_NOTE_TEXT, "%s", weft_error_detail());
		return text;
	}
	tune_close(tune);
	return NULL;
}

static const char *judge_algo(const char *value, char text[INFO_NOTE_TEXT])
{
	struct force table[WEFT_COLL_COUNT];

	if (force_read(value, table) == WEFT_SUCCESS)
		return NULL;
	snprintf(text, INFO_NOTE_TEXT, "%s", weft_error_detail());
	return text;
}

/* ---- names ------------------------------------------------------------------------ */

static const char *judge_own(const char *name)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(own[i].name, name) == 0)
			return NULL;
	return "not known: nothing of Weft reads it";
}

const char *info_vars_judge(const struct info_vars *vars, const char *name,
			    const char *value, char text[INFO_NOTE_TEXT])
{
	if (strcmp(name, "WEFT_ALGO") == 0)
		return judge_algo(value, text);
	if (strcmp(name, "WEFT_TUNE") == 0)
		return judge_tune(value, text);
	if (strcmp(name, "WEFT_NODES") == 0)
		return judge_nodes(value, text);
	if (strcmp(name, "WEFT_PROGRESS") == 0)
		return judge_progress(value, text);
	if (strcmp(name, "WEFT_LINES") == 0)
		return judge_lines(value, text);
	if (strncmp(name, "FI_", 3) != 0)
		return judge_own(name);
	for (int i = 0; i < vars->params; i++)
		if (strcmp(vars->param[i].name, name) == 0)
			return is_ours(name) ? judge_value(&vars->param[i], value, text)
					     : NULL;
	if (vars->params == 0)
		return NULL;
	if (is_ours(name) && !vars->has_weft)
		return "read by nobody: the weft provider is not loaded";
	return "not known to libfabric and the providers that it has loaded";
}
