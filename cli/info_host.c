/* SPDX-License-Identifier: BSD-2-Clause */
/* See info_host.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/info_host.h"
#include "cli/run_bind.h"
#include "topo/host/host.h"

void info_host_read(struct info_host *host)
{
	struct run_bind *bind = run_bind_open();
	struct utsname un;

	memset(host, 0, sizeof(*host));
	snprintf(host->name, sizeof(host->name), "?");
	if (uname(&un) == 0) {
		snprintf(host->name, sizeof(host->name), "%s", un.nodename);
		snprintf(host->system, sizeof(host->system), "%.40s %.60s %.40s",
			 un.sysname, un.release, un.machine);
	}
	host->cpus_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	host->cpus = bind ? run_bind_cpus(bind) : host->cpus_online;
	host->memory_gib = (double)sysconf(_SC_PHYS_PAGES) *
			   (double)sysconf(_SC_PAGESIZE) / (double)(1 << 30);
	if (bind) {
		host->cores = (int)run_bind_host(bind)->cores;
		host->numa_nodes = (int)run_bind_host(bind)->nodes;
	}
	run_bind_close(bind);
}
