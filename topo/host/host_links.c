/* SPDX-License-Identifier: BSD-2-Clause */
/* See host_in.h: what /sys/class says of network interfaces and RDMA devices. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/host/host_in.h"
#include "topo/host/sys_file.h"

enum { PORTS_MAX = 16, LOOPBACK = 772 /* ARPHRD_LOOPBACK */ };

/* Networks are in Mbit/s; -1, or an error, while there is no link. */
static void read_net(struct host_device *d, const char *sys, const char *name)
{
	char text[SYS_TEXT];
	int64_t mbits;

	host_word_append(d->net, sizeof(d->net), name);
	if (sys_int(&mbits, "%s/class/net/%s/speed", sys, name) && mbits > 0 &&
	    mbits < INT_MAX && (uint64_t)mbits * 1000000 > d->bits_per_s)
		d->bits_per_s = (uint64_t)mbits * 1000000;
	if (!sys_text(text, "%s/class/net/%s/operstate", sys, name))
		return;
	if (strcmp(text, "up") == 0)
		d->state = HOST_UP;
	else if (strcmp(text, "down") == 0 && d->state != HOST_UP)
		d->state = HOST_DOWN;
}

/* "400 Gb/sec (4X NDR)", "4: ACTIVE", of each port. A port that is down has a rate, too,
 * which says nothing. */
static void read_rdma(struct host_device *d, const char *sys, const char *name)
{
	char rate[SYS_TEXT], state[SYS_TEXT];

	host_word_append(d->rdma, sizeof(d->rdma), name);
	for (int port = 1; port <= PORTS_MAX; port++) {
		double gbits;
		char *end;

		if (!sys_text(state, "%s/class/infiniband/%s/ports/%d/state", sys, name,
			      port))
			break;
		if (strstr(state, "ACTIVE") == NULL) {
			if (d->state == HOST_STATE_UNKNOWN)
				d->state = HOST_DOWN;
			continue;
		}
		d->state = HOST_UP;
		if (!sys_text(rate, "%s/class/infiniband/%s/ports/%d/rate", sys, name,
			      port))
			continue;
		gbits = strtod(rate, &end);
		if (strncmp(end, " Gb/sec", 7) == 0 && gbits > 0 && gbits < 1e6 &&
		    gbits * 1e9 > (double)d->bits_per_s)
			d->bits_per_s = (uint64_t)(gbits * 1e9);
	}
}

/* The PCI device of a class's device; false: it has none. Some have others in between
 * (virtio). */
static bool pci_of(char pci[HOST_PCI], const char *sys, const char *class,
		   const char *name)
{
	char path[PATH_MAX], *slash;

	if (!sys_real(path, "%s/class/%s/%s/device", sys, class, name))
		return false;
	while ((slash = strrchr(path, '/'))) {
		if (sys_is_pci(slash + 1)) {
			snprintf(pci, HOST_PCI, "%s", slash + 1);
			return true;
		}
		*slash = '\0';
	}
	return false;
}

/* One name of a class. */
static void read_name(struct host *host, const char *sys, const char *class,
		      const char *name)
{
	const bool net = strcmp(class, "net") == 0;
	struct host_device *d;
	char pci[HOST_PCI];
	int64_t type;

	if (net && sys_int(&type, "%s/class/net/%s/type", sys, name) && type == LOOPBACK)
		return;
	if (pci_of(pci, sys, class, name))
		d = host_device_at(host, pci);
	else
		d = NULL;
	/* A network of a PCI device that is no NIC (a USB adapter) stands on no bus that
	 * matters here. */
	if (!d)
		d = host_device_add(host, HOST_VIRTUAL, "");
	if (!d)
		return;
	if (net)
		read_net(d, sys, name);
	else
		read_rdma(d, sys, name);
}

static void read_class(struct host *host, const char *sys, const char *class)
{
	char path[PATH_MAX];
	const struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/%s", sys, class);
	dir = opendir(path);
	if (!dir) {
		/* Without RDMA devices the kernel has no such class. */
		if (errno != ENOENT || strcmp(class, "net") == 0)
			host_miss(host, "%s: %.100s: %s",
				  strcmp(class, "net") == 0 ? "network interfaces"
							    : "RDMA devices",
				  path, strerror(errno));
		return;
	}
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.')
			read_name(host, sys, class, e->d_name);
	closedir(dir);
}

void host_read_links(struct host *host, const char *sys)
{
	read_class(host, sys, "net");
	read_class(host, sys, "infiniband");
}
