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
#include "cli/info_rails.h"
#include "cli/usage.h"
#include "coll/exec/net.h"
#include "coll/exec/net_pick.h"
#include "coll/exec/reduce_kernel.h"

static const char help_text[] =
	"usage: weft info [--json | --profiles]\n"
	"\n"
	"Shows what this build of Weft can do on this host: features, the libfabric "
	"providers\n"
	"that collectives can run on and which would be used, variables in force and "
	"what "
	"is\n"
	"wrong with them, algorithms, types, operations and GPUs.\n"
	"\n"
	"      --json       one JSON document\n"
	"      --profiles   instead: RDMA devices that the weft provider uses, and how "
	"links\n"
	"                   spread over them, by distance (FI_WEFT_PROFILE)\n"
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

int cmd_info(int argc, char **argv)
{
	enum { OPT_JSON = 256, OPT_PROFILES };
	static const struct option options[] = {
		{"json", no_argument, NULL, OPT_JSON},
		{"profiles", no_argument, NULL, OPT_PROFILES},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct info info;
	bool json = false, profiles = false;
	int c;

	optind = 0; /* glibc: start anew */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help_text, stdout);
			return 0;
		}
		if (c != OPT_JSON && c != OPT_PROFILES)
			return usage_option("info", c, argv);
		json = json || c == OPT_JSON;
		profiles = profiles || c == OPT_PROFILES;
	}
	if (optind != argc)
		return usage_error("info",
				   "this argument is one too many:", argv[optind]);
	if (json && profiles)
		return usage_error("info", "not together:", "--json --profiles");
	if (profiles)
		return info_rails_show();
	info_read(&info);
	if (json)
		info_show_json(&info);
	else
		info_show_text(&info);
	info_vars_fini(&info.vars);
	gpu_close(info.gpu);
	return info.chosen[0] ? 0 : 1;
}
