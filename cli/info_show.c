/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info as text and as JSON. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/info.h"
#include "cli/info_gpus.h"
#include "cli/info_more.h"
#include "cli/json.h"
#include "coll/algo/algo.h"
#include "coll/exec/reduce.h"
#include "weft/weft.h"

enum { SCHEMA = 1 }; /* of the JSON document */

extern char **environ;

/* What was decided when this program was built. */
struct feature {
	const char *name;
	bool on;
	const char *means;
};

#ifdef HAVE_HWLOC
#define FEATURE_HWLOC true
#else
#define FEATURE_HWLOC false
#endif

#ifdef WEFT_DEBUG
#define FEATURE_DEBUG true
#else
#define FEATURE_DEBUG false
#endif

static const struct feature feature_table[] = {
	{"hwloc", FEATURE_HWLOC,
	 "cores, NUMA nodes and devices by it, not by /sys alone"},
	{"debug", FEATURE_DEBUG, "expensive assertions"},
};

enum { FEATURES = sizeof(feature_table) / sizeof(feature_table[0]) };

/* ---- variables -------------------------------------------------------------------- */

/* A variable of ours or libfabric's; *value begins after the '='. The secret stays one.
 */
static bool variable_of(const char *entry, int *name_len, const char **value)
{
	const char *eq = strchr(entry, '=');

	if (!eq || (strncmp(entry, "WEFT_", 5) != 0 && strncmp(entry, "FI_", 3) != 0))
		return false;
	*name_len = (int)(eq - entry);
	*value = info_is_secret(entry) ? "(a secret)" : eq + 1;
	return true;
}

/* What is wrong with the variable of an entry, whose name has len bytes; or NULL. */
static const char *note_of(const struct info *info, const char *entry, int len,
			   char text[INFO_NOTE_TEXT])
{
	char name[256];

	snprintf(name, sizeof(name), "%.*s", len, entry);
	return info_vars_judge(&info->vars, name, entry + len + 1, text);
}

/* What to do so that Weft's own provider is found; NULL when it is. */
static const char *weft_missing(const struct info *info)
{
	const char *filter = getenv("FI_PROVIDER");

	if (info->has_weft)
		return NULL;
	if (filter && !*filter)
		return "FI_PROVIDER is empty, which leaves out every provider: unset it, "
		       "or "
		       "set FI_PROVIDER=weft";
	if (filter && !strstr(filter, "weft"))
		return "FI_PROVIDER leaves it out: set FI_PROVIDER=weft, or unset it";
	if (info->vars.has_weft)
		return "It is loaded and has no way to anybody: its wires say why";
	return "libfabric does not find it: set FI_PROVIDER_PATH to the folder that "
	       "libweft-fi.so is in (make install puts it into " WEFT_PROVIDERDIR
	       "; in a build tree it is prov/)";
}

static int count_types(void)
{
	int n = 0;

	for (int t = 0; t < WEFT_TYPE_COUNT; t++)
		n += reduce_supported((enum weft_type)t, WEFT_SUM);
	return n;
}

/* ---- text ------------------------------------------------------------------------- */

static void text_providers(const struct info *info)
{
	const char *missing = weft_missing(info);

	printf("\nproviders that collectives can run on (libfabric %u.%u)\n",
	       info->fabric_major, info->fabric_minor);
	for (int i = 0; i < info->providers; i++) {
		const struct info_provider *p = &info->provider[i];

		printf("  %-16s %-20s %s%s\n", p->name, p->domain,
		       p->put ? "puts (RMA)" : "messages only",
		       strcmp(p->name, info->chosen) == 0
			       ? "; used unless another is named"
			       : "");
	}
	if (!info->chosen[0])
		printf("  none: %s\n", info->chosen_why);
	if (missing)
		printf("  weft is not among them. %s\n", missing);
}

static void text_variables(const struct info *info)
{
	const char *value, *note;
	char text[INFO_NOTE_TEXT];
	int any = 0, len;

	printf("\nvariables in force\n");
	for (char **e = environ; *e; e++) {
		if (!variable_of(*e, &len, &value))
			continue;
		note = note_of(info, *e, len, text);
		printf("  %.*s=%s%s%s\n", len, *e, value, note ? "  <-- " : "",
		       note ? note : "");
		any++;
	}
	if (!any)
		printf("  none (WEFT_*, FI_*)\n");
	if (info->vars.meeting[0])
		printf("  ranks cannot meet by these: %s\n", info->vars.meeting);
}

static void text_host(const struct info_host *host)
{
	printf("\nhost\n  %s, %s, %.1f GiB of memory\n", host->name, host->system,
	       host->memory_gib);
	printf("  %d of %d CPUs may be used", host->cpus, host->cpus_online);
	if (host->cores)
		printf("; %d core%s, %d NUMA node%s", host->cores,
		       host->cores == 1 ? "" : "s", host->numa_nodes,
		       host->numa_nodes == 1 ? "" : "s");
	printf("\n");
}

void info_show_text(const struct info *info)
{
	printf("weft %s\n", weft_version());
	printf("\nbuilt with\n");
	for (int i = 0; i < FEATURES; i++)
		printf("  %-16s %-20s %s\n", feature_table[i].name,
		       feature_table[i].on ? "yes" : "no", feature_table[i].means);
	printf("  %-16s %-20s %s\n", "reductions", info->kernels,
	       "the best instruction set of this CPU that Weft has");
	text_providers(info);
	if (info->vars.has_weft)
		info_wires_text();
	text_variables(info);
	printf("\nalgorithms (a: start-up time, b: time per byte, m: bytes, n: ranks)\n");
	for (size_t i = 0; i < algo_count; i++)
		printf("  %-17s %-19s %s\n", algo_table[i].coll, algo_table[i].name,
		       algo_table[i].what);
	printf("\nreductions\n  %s\n", reduce_supported_text());
	text_host(&info->host);
	info_gpus_text(info->gpu);
	printf("\n%d provider%s, %zu algorithms, %d types to reduce, %d CPU%s\n",
	       info->providers, info->providers == 1 ? "" : "s", algo_count,
	       count_types(), info->host.cpus, info->host.cpus == 1 ? "" : "s");
}

/* ---- JSON ------------------------------------------------------------------------- */

static void json_providers(struct json *j, const struct info *info)
{
	json_array_begin(j, "providers");
	for (int i = 0; i < info->providers; i++) {
		json_object_begin(j, NULL);
		json_text(j, "name", info->provider[i].name);
		json_text(j, "domain", info->provider[i].domain);
		json_bool(j, "put", info->provider[i].put);
		json_object_end(j);
	}
	json_array_end(j);
	json_text(j, "provider", info->chosen[0] ? info->chosen : NULL);
	json_text(j, "weft_missing", weft_missing(info));
}

static void json_variables(struct json *j, const struct info *info)
{
	char name[256], text[INFO_NOTE_TEXT];
	const char *value, *note;
	int len;

	json_object_begin(j, "variables");
	for (char **e = environ; *e; e++) {
		if (!variable_of(*e, &len, &value))
			continue;
		snprintf(name, sizeof(name), "%.*s", len, *e);
		json_text(j, name, value);
	}
	json_object_end(j);
	json_object_begin(j, "variables_wrong");
	for (char **e = environ; *e; e++) {
		if (!variable_of(*e, &len, &value))
			continue;
		note = note_of(info, *e, len, text);
		snprintf(name, sizeof(name), "%.*s", len, *e);
		if (note)
			json_text(j, name, note);
	}
	json_object_end(j);
	json_text(j, "meeting_wrong", info->vars.meeting[0] ? info->vars.meeting : NULL);
}

static void json_reductions(struct json *j)
{
	json_object_begin(j, "reductions");
	json_array_begin(j, "types");
	for (int t = 0; t < WEFT_TYPE_COUNT; t++)
		if (reduce_supported((enum weft_type)t, WEFT_SUM))
			json_text(j, NULL, weft_type_name((enum weft_type)t));
	json_array_end(j);
	json_array_begin(j, "operations"); /* of every type */
	for (int o = 0; o < WEFT_OP_COUNT; o++)
		if (reduce_supported(WEFT_FP32, (enum weft_op)o))
			json_text(j, NULL, weft_op_name((enum weft_op)o));
	json_array_end(j);
	json_array_begin(j, "integer_operations"); /* and of integers */
	for (int o = 0; o < WEFT_OP_COUNT; o++)
		if (!reduce_supported(WEFT_FP32, (enum weft_op)o) &&
		    reduce_supported(WEFT_INT32, (enum weft_op)o))
			json_text(j, NULL, weft_op_name((enum weft_op)o));
	json_array_end(j);
	json_object_end(j);
}

static void json_host(struct json *j, const struct info_host *host)
{
	json_object_begin(j, "host");
	json_text(j, "name", host->name);
	json_text(j, "system", host->system);
	json_int(j, "cpus", host->cpus);
	json_int(j, "cpus_online", host->cpus_online);
	if (host->cores) {
		json_int(j, "cores", host->cores);
		json_int(j, "numa_nodes", host->numa_nodes);
	}
	json_real(j, "memory_gib", host->memory_gib);
	json_object_end(j);
}

void info_show_json(const struct info *info)
{
	char fabric[32];
	struct json j;

	snprintf(fabric, sizeof(fabric), "%u.%u", info->fabric_major, info->fabric_minor);
	json_init(&j, stdout);
	json_object_begin(&j, NULL);
	json_int(&j, "schema", SCHEMA);
	json_text(&j, "program", "weft info");
	json_text(&j, "version", weft_version());
	json_object_begin(&j, "features");
	for (int i = 0; i < FEATURES; i++)
		json_bool(&j, feature_table[i].name, feature_table[i].on);
	json_object_end(&j);
	json_text(&j, "kernels", info->kernels);
	json_text(&j, "libfabric", fabric);
	json_providers(&j, info);
	if (info->vars.has_weft)
		info_wires_json(&j);
	json_variables(&j, info);
	info_config_json(&j, &info->vars);
	info_protocols_json(&j, &info->vars);
	json_array_begin(&j, "algorithms");
	for (size_t i = 0; i < algo_count; i++) {
		json_object_begin(&j, NULL);
		json_text(&j, "collective", algo_table[i].coll);
		json_text(&j, "name", algo_table[i].name);
		json_text(&j, "what", algo_table[i].what);
		json_object_end(&j);
	}
	json_array_end(&j);
	info_algorithms_json(&j);
	json_reductions(&j);
	json_host(&j, &info->host);
	info_gpus_json(&j, info->gpu);
	json_object_end(&j);
	json_fini(&j);
}
