/* SPDX-License-Identifier: BSD-2-Clause */
/* See info_host.h. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/info_host.h"
#include "cli/run_bind.h"
#include "cli/topology.h"

#ifdef HAVE_HWLOC

static void read_topology(struct info_host *host)
{
	hwloc_topology_t topo = topology_open();

	if (!topo)
		return;
	host->cores = hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_CORE);
	host->numa_nodes = hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_NUMANODE);
	hwloc_topology_destroy(topo);
}

#else

static void read_topology(struct info_host *host)
{
	host->cores = host->numa_nodes = 0;
}

#endif

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
	run_bind_close(bind);
	read_topology(host);
}
