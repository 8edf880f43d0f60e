/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known about this host. */
#ifndef WEFT_CLI_INFO_HOST_H
#define WEFT_CLI_INFO_HOST_H

#include <stdbool.h>

struct info_host {
	char name[128];
	char system[160]; /* "Linux 6.1.0 x86_64" */
	int cpus;	  /* hardware threads that this process may use */
	int cpus_online;
	int cores, numa_nodes; /* 0: not known */
	double memory_gib;
};

void info_host_read(struct info_host *host);

#endif
