/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info: the command line, and what can be found out. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/info.h"
#include "cli/info_gpus.h"
#include "cli/info_more.h"
#include "cli/info_rails.h"
#include "cli/usage.h"
#include "coll/exec/net.h"
#include "coll/exec/net_pick.h"
#include "coll/exec/reduce_kernel.h"

static const char help_text[] =
	"usage: weft info [--config | --algorithms | --protocols | --profiles] [--json]\n"
	"\n"
	"Shows what this build of Weft can do on this host: features, the libfabric "
	"providers\n"
	"that collectives can run on and which would be used, variables in force and "
	"what "
	"is\n"
	"wrong with them, algorithms, types, operations and GPUs.\n"
	"\n"
	"      --json        one JSON document, which has all of it but the profiles\n"
	"  Instead of that, one part:\n"
	"      --config      every variable: its value, where that is from, its default, "
	"what it\n"
	"                    may be, what it is for\n"
	"      --algorithms  which there are, and which is chosen for how many ranks and "
	"bytes\n"
	"      --protocols   how the weft provider moves messages of which length\n"
	"      --profiles    RDMA devices that the weft provider uses, and how links "
	"spread over\n"
	"                    them, by distance (FI_WEFT_PROFILE)\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0 when there is a provider to run on, else 1; 2 for wrong usage.\n";

static void read_provider(struct info *info, const char *name)
{
	struct info_provider *p = &info->provider[info->providers];
	struct net_attr attr = {.provider = name};
	struct net_caps caps;
	struct fi_info *fi;

	if (info->providers == INFO_PROVIDERS_MAX ||
	    net_pick(&attr, &fi, &caps) != WEFT_SUCCESS)
		return;
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(p->domain, sizeof(p->domain), "%s",
		 fi->domain_attr->name ? fi->domain_attr->name : "?");
	p->put = caps.put;
	info->has_weft = info->has_weft || strcmp(name, "weft") == 0;
	info->providers++;
	fi_freeinfo(fi);
}

static void read_providers(struct info *info)
{
	struct net_attr any = {.provider = NULL};
	char list[1024], *save = NULL;
	struct net_caps caps;
	struct fi_info *fi;

	net_provider_list(list, sizeof(list));
	if (strcmp(list, "none") != 0)
		for (char *name = strtok_r(list, ", ", &save); name;
		     name = strtok_r(NULL, ", ", &save))
			read_provider(info, name);
	if (net_pick(&any, &fi, &caps) == WEFT_SUCCESS) {
		snprintf(info->chosen, sizeof(info->chosen), "%s",
			 fi->fabric_attr->prov_name);
		fi_freeinfo(fi);
	} else {
		snprintf(info->chosen_why, sizeof(info->chosen_why), "%s",
			 weft_error_detail());
	}
}

static void info_read(struct info *info)
{
	uint32_t version = fi_version();

	memset(info, 0, sizeof(*info));
	info->fabric_major = FI_MAJOR(version);
	info->fabric_minor = FI_MINOR(version);
	info->kernels = reduce_isa_choose()->name;
	read_providers(info);
	info_host_read(&info->host);
	info->gpu = info_gpus_open();
	info_vars_init(&info->vars);
}

/* What is asked for; of the first four, one. */
enum { OPT_PROFILES = 256, OPT_CONFIG, OPT_ALGORITHMS, OPT_PROTOCOLS, OPT_JSON };

/* One part instead of all. Returns the exit status. */
static int show_part(int part)
{
	struct info_vars vars;
	struct fi_info *any = NULL;

	if (part == OPT_PROFILES)
		return info_rails_show();
	if (part == OPT_ALGORITHMS)
		return info_algorithms_text();
	/* Providers name their variables when libfabric has loaded them. */
	(void)fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &any);
	fi_freeinfo(any);
	info_vars_init(&vars);
	if (part == OPT_CONFIG)
		info_config_text(&vars);
	else
		info_protocols_text(&vars);
	info_vars_fini(&vars);
	return 0;
}

static int show_all(bool json)
{
	struct info info;

	info_read(&info);
	if (json)
		info_show_json(&info);
	else
		info_show_text(&info);
	info_vars_fini(&info.vars);
	gpu_close(info.gpu);
	return info.chosen[0] ? 0 : 1;
}

int cmd_info(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, OPT_JSON},
		{"profiles", no_argument, NULL, OPT_PROFILES},
		{"config", no_argument, NULL, OPT_CONFIG},
		{"algorithms", no_argument, NULL, OPT_ALGORITHMS},
		{"protocols", no_argument, NULL, OPT_PROTOCOLS},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool json = false;
	int part = 0, c;

	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help_text, stdout);
			return 0;
		}
		if (c < OPT_PROFILES || c > OPT_JSON)
			return usage_option("info", c, argv);
		if (c == OPT_JSON)
			json = true;
		else if (part && part != c)
			return usage_error("info",
					   "one part, no more:", argv[optind - 1]);
		else
			part = c;
	}
	if (optind != argc)
		return usage_error("info",
				   "this argument is one too many:", argv[optind]);
	if (json && part == OPT_PROFILES)
		return usage_error("info", "not together:", "--json --profiles");
	return part && !json ? show_part(part) : show_all(json);
}
