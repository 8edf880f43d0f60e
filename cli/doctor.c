/* SPDX-License-Identifier: BSD-2-Clause */
/* weft doctor: the command line, what libfabric finds, and the report. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/doctor.h"
#include "cli/info_vars.h"
#include "cli/json.h"
#include "cli/parse.h"
#include "cli/place.h"
#include "cli/usage.h"
#include "coll/boot/boot_env.h"
#include "coll/exec/net.h"
#include "weft/weft.h"

enum { SCHEMA = 1 }; /* of the JSON document */

#define BUDGET_US 5000000

extern char **environ;

static const char help_text[] =
	"usage: weft doctor [--json] [--budget SECONDS] [--root DIR]\n"
	"\n"
	"Goes through what a host should have for fast collectives, line by line: PASS, "
	"WARN "
	"or\n"
	"FAIL, what was found, and the command or variable that mends it. Started as "
	"ranks, "
	"by\n"
	"weft run, mpirun or srun, it goes through every host, and measures between "
	"them:\n"
	"clocks, messages, an all-reduce against the model of costs, and the algorithms "
	"that "
	"are\n"
	"chosen against the others.\n"
	"\n"
	"      --budget SECONDS  what measuring may take, about; default 5\n"
	"      --root DIR        judges copies of /proc and /sys in that folder instead "
	"of "
	"this\n"
	"                        host, and measures nothing\n"
	"      --json            one JSON document\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0 when nothing is FAIL, else 1; 2 for wrong usage.\n";

/* ---- libfabric and variables ------------------------------------------------------- */

/* Where the provider is, or that it is nowhere. */
static const char *provider_cure(char *text, size_t size)
{
	char dir[512];

	if (place_find(dir, sizeof(dir)))
		snprintf(text, size, "FI_PROVIDER_PATH=%s", dir);
	else
		snprintf(text, size,
			 "make install (or the package libfabric-weft), or "
			 "FI_PROVIDER_PATH "
			 "naming the folder of libweft-fi.so: it is not "
			 "in " WEFT_PROVIDERDIR);
	return text;
}

static void provider_found(struct findings *f)
{
	const char *filter = getenv("FI_PROVIDER");
	char list[512], cure[768];

	net_provider_list(list, sizeof(list));
	if (strcmp(list, "none") == 0)
		findings_add(
			f, LEVEL_FAIL, "provider",
			filter ? "unset FI_PROVIDER, or name one that weft info lists"
			       : "install a provider of libfabric for reliable "
				 "datagrams",
			"libfabric finds none that collectives can run on%s%.64s",
			filter ? "; FI_PROVIDER is " : "", filter ? filter : "");
	else if (strstr(list, "weft"))
		findings_add(f, LEVEL_PASS, "provider", NULL, "%.256s", list);
	else
		findings_add(f, LEVEL_WARN, "provider",
			     filter && !strstr(filter, "weft")
				     ? "FI_PROVIDER=weft, or unset it"
				     : provider_cure(cure, sizeof(cure)),
			     "weft is not among those that libfabric finds: %.200s",
			     list);
}

static void variables(struct findings *f)
{
	char name[256], text[INFO_NOTE_TEXT], cure[320];
	struct info_vars vars;
	int wrong = 0;

	info_vars_init(&vars);
	for (char **e = environ; *e; e++) {
		const char *eq = strchr(*e, '=');
		const char *note;

		if (!eq || (strncmp(*e, "WEFT_", 5) && strncmp(*e, "FI_", 3)))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(eq - *e), *e);
		note = info_vars_judge(&vars, name, eq + 1, text);
		if (!note)
			continue;
		wrong++;
		snprintf(cure, sizeof(cure),
			 "unset %.64s, or see weft info --config for what there is",
			 name);
		findings_add(f, LEVEL_WARN, "variables", cure, "%.64s: %s", name, note);
	}
	if (vars.meeting[0])
		findings_add(f, LEVEL_FAIL, "variables",
			     "start ranks by weft run, mpirun or srun, which set them",
			     "ranks cannot meet: %.240s", vars.meeting);
	else if (!wrong)
		findings_add(f, LEVEL_PASS, "variables", NULL,
			     "of WEFT_* and FI_* none is wrong");
	info_vars_fini(&vars);
}

void doctor_libfabric(struct findings *f)
{
	provider_found(f);
	variables(f);
}

/* ---- the report -------------------------------------------------------------------- */

static void report_json(const struct findings *sets, int count, int total[LEVELS])
{
	struct json j;

	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_int(&j, "schema", SCHEMA);
	json_text(&j, "program", "weft doctor");
	json_text(&j, "version", weft_version());
	json_array_begin(&j, "findings");
	findings_json(&j, sets, count, total);
	json_array_end(&j);
	json_object_begin(&j, "totals");
	json_int(&j, "pass", total[LEVEL_PASS]);
	json_int(&j, "warn", total[LEVEL_WARN]);
	json_int(&j, "fail", total[LEVEL_FAIL]);
	json_object_end(&j);
	json_object_end(&j);
	json_fini(&j);
}

static int report(const struct doctor_opts *o, const struct findings *sets, int count)
{
	int total[LEVELS] = {0};

	if (o->json)
		report_json(sets, count, total);
	else
		findings_text(sets, count, total);
	if (!o->json)
		printf("%d pass, %d warn, %d fail\n", total[LEVEL_PASS],
		       total[LEVEL_WARN], total[LEVEL_FAIL]);
	return total[LEVEL_FAIL] ? 1 : 0;
}

/* ---- command line ------------------------------------------------------------------ */

/* -1: go on; else the exit status. */
static int parse_args(int argc, char **argv, struct doctor_opts *o)
{
	static const struct option table[] = {
		{"json", no_argument, NULL, 'j'},
		{"budget", required_argument, NULL, 'b'},
		{"root", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct stat st;
	int c;

	*o = (struct doctor_opts){.root = "", .budget_us = BUDGET_US};
	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
		switch (c) {
		case 'j':
			o->json = true;
			break;
		case 'b':
			if (!parse_seconds(optarg, &o->budget_us))
				return usage_error(
					"doctor", "--budget must be seconds above 0, not",
					optarg);
			break;
		case 'r':
			o->root = optarg;
			if (stat(optarg, &st) != 0 || !S_ISDIR(st.st_mode))
				return usage_error(
					"doctor",
					"--root must be a folder that is there, not",
					optarg);
			break;
		case 'h':
			fputs(help_text, stdout);
			return 0;
		default:
			return usage_option("doctor", c, argv);
		}
	}
	if (optind != argc)
		return usage_error("doctor",
				   "this argument is one too many:", argv[optind]);
	return -1;
}

/* Whether this is one of several ranks, by their variables or those of a launcher;
 * *first: it speaks for them. */
static bool is_of_job(bool *first)
{
	struct boot_env env;
	const bool is = boot_env_read(&env, 0) == WEFT_SUCCESS && !env.alone;

	*first = !is || env.rank == 0;
	return is;
}

int cmd_doctor(int argc, char **argv)
{
	static struct findings own;
	struct findings *sets = NULL;
	struct doctor_opts opts;
	int status = parse_args(argc, argv, &opts), count = 0;
	bool first;

	if (status >= 0)
		return status;
	/* First, while there is no thread: it starts processes. */
	doctor_host(&own, opts.root);
	if (opts.root[0])
		return report(&opts, &own, 1);
	gethostname(own.host, sizeof(own.host) - 1);
	doctor_libfabric(&own);
	if (!is_of_job(&first)) {
		status = report(&opts, &own, 1);
		if (!opts.json)
			fprintf(stderr,
				"Nothing was measured: weft run -n 2 weft doctor, or "
				"the same by mpirun or srun on several hosts, does.\n");
		return status;
	}
	if (doctor_job(&opts, &own, &sets, &count) != 0) {
		/* One says all that it knows, the others have said what stopped them. */
		if (first)
			(void)report(&opts, &own, 1);
		return 1;
	}
	status = count ? report(&opts, sets, count) : 0;
	free(sets);
	return status;
}
