/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info --config and --protocols: variables, and what the provider's lengths mean. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/info_more.h"
#include "cli/place.h"

bool info_is_secret(const char *entry)
{
	return strncmp(entry, "WEFT_JOB=", 9) == 0 ||
	       strncmp(entry, "FI_WEFT_AUTH_KEY=", 17) == 0 ||
	       strncmp(entry, "FI_WEFT_UET_KEY=", 16) == 0;
}

/* ---- one variable ------------------------------------------------------------------ */

enum { HELP_TEXT = 512 };

struct setting {
	const char *name;
	const char *value; /* NULL: not set */
	const char *from;  /* "default", "environment", "weft" */
	const char *range, *initial;
	char what[HELP_TEXT];
	const char *wrong; /* NULL: nothing is known to be */
	char note[INFO_NOTE_TEXT];
	struct accepted accepted;
};

/* Of libfabric itself those that decide what Weft finds. */
static const struct info_var of_libfabric[] = {
	{"FI_PROVIDER", "names, with commas; ^ before the first: all but those", "all",
	 "providers that libfabric uses"},
	{"FI_PROVIDER_PATH", "folders, with colons", WEFT_FABRICDIR,
	 "where libfabric looks for providers"},
	{"FI_LOG_LEVEL", "warn, trace, info, debug", "none",
	 "what libfabric and its providers say on standard error"},
	{"FI_LOG_PROV", "names, with commas; ^ before the first: all but those", "all",
	 "whose words these are"},
	{"FI_LOG_SUBSYS", "names, with commas", "all", "and about what"},
};

static void setting_value(struct setting *s, const struct info_vars *vars)
{
	char entry[128];
	const char *value = getenv(s->name);

	snprintf(entry, sizeof(entry), "%s=", s->name);
	s->value = value && info_is_secret(entry) ? "(a secret)" : value;
	s->from = !value ? "default" : "environment";
	if (value && place_was_set() && strcmp(s->name, "FI_PROVIDER_PATH") == 0)
		s->from = "weft"; /* place_provider() */
	s->wrong = value ? info_vars_judge(vars, s->name, value, s->note) : NULL;
}

static void setting_own(struct setting *s, const struct info_var *var,
			const struct info_vars *vars)
{
	s->name = var->name;
	s->range = var->range;
	s->initial = var->initial;
	snprintf(s->what, sizeof(s->what), "%s", var->what);
	setting_value(s, vars);
}

/* The provider's help ends with what it accepts, and begins with its name. */
static void setting_param(struct setting *s, const struct fi_param *param,
			  const struct info_vars *vars)
{
	const char *help = param->help_string ? param->help_string : "";
	char *open;

	s->name = param->name;
	s->accepted = (struct accepted){.initial = "?"};
	if (!info_vars_accepted(&s->accepted, help)) {
		open = strrchr(help, '(');
		if (!open || sscanf(open, "(default: %31[^)])", s->accepted.initial) != 1)
			snprintf(s->accepted.initial, sizeof(s->accepted.initial), "?");
		s->accepted.range[0] = '\0';
	}
	s->range = s->accepted.range[0] ? s->accepted.range : "text";
	s->initial = s->accepted.initial;
	if (strncmp(help, "weft: ", 6) == 0)
		help += 6;
	snprintf(s->what, sizeof(s->what), "%s", help);
	open = strrchr(s->what, '(');
	if (open && strstr(open, "default: ")) {
		while (open > s->what && open[-1] == ' ')
			open--;
		*open = '\0';
	}
	setting_value(s, vars);
}

typedef void setting_fn(const struct setting *s, void *arg);

/* All of the library, of the provider, and some of libfabric, in this order. */
static void settings_each(const struct info_vars *vars, setting_fn *fn, void *arg)
{
	size_t count;
	const struct info_var *own = info_vars_own(&count);
	struct setting s;

	for (size_t i = 0; i < count; i++) {
		setting_own(&s, &own[i], vars);
		fn(&s, arg);
	}
	for (int i = 0; i < vars->params; i++) {
		if (strncmp(vars->param[i].name, "FI_WEFT_", 8) != 0)
			continue;
		setting_param(&s, &vars->param[i], vars);
		fn(&s, arg);
	}
	for (size_t i = 0; i < sizeof(of_libfabric) / sizeof(of_libfabric[0]); i++) {
		setting_own(&s, &of_libfabric[i], vars);
		fn(&s, arg);
	}
}

static void config_line(const struct setting *s, void *arg)
{
	(void)arg;
	printf("%s = %s  (%s%s%s)\n", s->name,
	       s->value ? (s->value[0] ? s->value : "\"\"") : s->initial, s->from,
	       s->value ? "; default: " : "", s->value ? s->initial : "");
	printf("    %s\n    %s\n", s->range, s->what);
	if (s->wrong)
		printf("    <-- %s\n", s->wrong);
}

void info_config_text(const struct info_vars *vars)
{
	settings_each(vars, config_line, NULL);
	if (!vars->has_weft)
		printf("The provider's (FI_WEFT_*) are not here: libfabric does not find "
		       "it.\n");
}

static void config_member(const struct setting *s, void *arg)
{
	struct json *j = arg;

	json_object_begin(j, NULL);
	json_text(j, "name", s->name);
	json_text(j, "value", s->value);
	json_text(j, "from", s->from);
	json_text(j, "default", s->initial);
	json_text(j, "range", s->range);
	json_text(j, "what", s->what);
	json_text(j, "wrong", s->wrong);
	json_object_end(j);
}

void info_config_json(struct json *j, const struct info_vars *vars)
{
	json_array_begin(j, "config");
	settings_each(vars, config_member, j);
	json_array_end(j);
}

/* ---- protocols --------------------------------------------------------------------- */

/* What a message of a length does, and the variables between which that is. */
struct protocol {
	const char *path;
	const char *above, *up_to; /* variables; NULL: no limit */
	const char *what;
};

static const struct protocol protocols[] = {
	{"this host", NULL, "FI_WEFT_EAGER_SIZE",
	 "copied into packets of shared memory, and out of them"},
	{"this host, attach allowed", "FI_WEFT_EAGER_SIZE", "FI_WEFT_JOINT_SIZE",
	 "one copy, by the receiver, from buffer to buffer"},
	{"this host, attach allowed", "FI_WEFT_JOINT_SIZE", NULL,
	 "one copy, by both processes at once"},
	{"this host, attach refused", "FI_WEFT_EAGER_SIZE", NULL,
	 "through shared slots, two copies"},
	{"other hosts, RDMA", NULL, "FI_WEFT_EAGER_SIZE",
	 "copied into packets, which the device sends"},
	{"other hosts, RDMA", "FI_WEFT_EAGER_SIZE", NULL,
	 "read by the receiver's device from buffer to buffer, over all rails"},
};

/* The value in force of a variable of the provider. */
static const char *length_of(const struct info_vars *vars, const char *name,
			     struct accepted *a)
{
	char note[INFO_NOTE_TEXT];
	const char *value = getenv(name);

	for (int i = 0; i < vars->params; i++)
		if (strcmp(vars->param[i].name, name) == 0 &&
		    info_vars_accepted(a, vars->param[i].help_string))
			return value && !info_vars_judge(vars, name, value, note)
				       ? value
				       : a->initial;
	return NULL;
}

void info_protocols_text(const struct info_vars *vars)
{
	struct accepted a, b;

	if (!vars->has_weft) {
		printf("The provider weft is not found, and other providers do not tell "
		       "how they move bytes.\n");
		return;
	}
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		const struct protocol *p = &protocols[i];
		const char *above = p->above ? length_of(vars, p->above, &a) : NULL;
		const char *up_to = p->up_to ? length_of(vars, p->up_to, &b) : NULL;

		printf("%-27s %s%s%s%s%s%s\n    %s\n", p->path, above ? "above " : "",
		       above ? above : "", above && up_to ? " " : "",
		       up_to ? "up to " : "", up_to ? up_to : "", " bytes", p->what);
	}
	printf("Lengths are FI_WEFT_EAGER_SIZE and FI_WEFT_JOINT_SIZE (weft info "
	       "--config). Calls of ranks of one\nhost that go by lines move past the "
	       "provider (weft info --algorithms).\n");
}

void info_protocols_json(struct json *j, const struct info_vars *vars)
{
	struct accepted a;

	json_array_begin(j, "protocols");
	for (size_t i = 0; vars->has_weft && i < sizeof(protocols) / sizeof(protocols[0]);
	     i++) {
		const struct protocol *p = &protocols[i];

		json_object_begin(j, NULL);
		json_text(j, "path", p->path);
		json_text(j, "above", p->above ? length_of(vars, p->above, &a) : NULL);
		json_text(j, "up_to", p->up_to ? length_of(vars, p->up_to, &a) : NULL);
		json_text(j, "what", p->what);
		json_object_end(j);
	}
	json_array_end(j);
}
