/* SPDX-License-Identifier: BSD-2-Clause */
/* weft doctor: devices, where they are, and what is between them. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "topo/host/host.h"
#include "topo/host/sys_file.h"

enum {
	FAST_MBITS = 10000, /* above it frames of 1500 bytes cost */
	MTU_LEAST = 4000,
	GIDS = 16, /* of a port that are looked at */
};

/* ---- folders ----------------------------------------------------------------------- */

/* Opens a folder below root; NULL: it is not there. */
static DIR *folder_open(const char *root, const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return NULL;
	return opendir(full);
}

/* The next name that is none of the folder's own; NULL: no more. */
static const char *folder_next(DIR *dir)
{
	struct dirent *d = dir ? readdir(dir) : NULL;

	while (d && d->d_name[0] == '.')
		d = readdir(dir);
	return d ? d->d_name : NULL;
}

static void folder_close(DIR *dir)
{
	if (dir)
		closedir(dir);
}

static bool folder_has_any(const char *root, const char *path)
{
	DIR *dir = folder_open(root, path);
	const bool any = folder_next(dir) != NULL;

	folder_close(dir);
	return any;
}

bool doctor_has_rdma(const char *root)
{
	return folder_has_any(root, "/sys/class/infiniband");
}

/* ---- RDMA -------------------------------------------------------------------------- */

/* Whether a port has an address that is more than its link-local one. */
static bool has_gid(const char *root, const char *device)
{
	char text[SYS_TEXT];

	for (int i = 0; i < GIDS; i++) {
		if (sys_text(text, "%s/sys/class/infiniband/%s/ports/1/gids/%d", root,
			     device, i) &&
		    text[0] && strspn(text, "0:") != strlen(text) &&
		    strncmp(text, "fe80:0000:0000:0000:0000:0000:0000:0000", 39) != 0)
			return true;
	}
	return false;
}

static void rdma_port(struct findings *f, const char *root, const char *device)
{
	char state[SYS_TEXT], layer[SYS_TEXT], cure[FINDING_TEXT];

	if (!sys_text(state, "%s/sys/class/infiniband/%s/ports/1/state", root, device) ||
	    !sys_text(layer, "%s/sys/class/infiniband/%s/ports/1/link_layer", root,
		      device))
		return;
	if (!strstr(state, "ACTIVE")) {
		snprintf(cure, sizeof(cure),
			 strcmp(layer, "Ethernet") == 0
				 ? "ip link set the device's interface up "
				   "(rdma link show %s), and see to its cable"
				 : "see to the cable of %s, and that a subnet manager "
				   "runs "
				   "(opensm)",
			 device);
		findings_add(f, LEVEL_FAIL, "RDMA port", cure, "%s: %.40s", device,
			     state);
	} else if (!has_gid(root, device)) {
		findings_add(f, LEVEL_FAIL, "RDMA port",
			     "give its interface an IP address (ip addr add)",
			     "%s is active and has no GID: nobody can connect to it",
			     device);
	} else {
		findings_add(f, LEVEL_PASS, "RDMA port", NULL, "%s: active, %.20s",
			     device, layer);
	}
}

/* Files through which programs reach the devices. */
static void rdma_access(struct findings *f, const char *root)
{
	DIR *dir = folder_open(root, "/dev/infiniband");
	const char *name;
	char path[PATH_MAX];
	bool any = false;

	while ((name = folder_next(dir))) {
		if (strncmp(name, "uverbs", 6) != 0)
			continue;
		any = true;
		snprintf(path, sizeof(path), "%s/dev/infiniband/%s", root, name);
		if (access(path, R_OK | W_OK) != 0)
			findings_add(f, LEVEL_FAIL, "RDMA access",
				     "chmod 666 /dev/infiniband/uverbs* (udev's rule of "
				     "rdma-core does it)",
				     "/dev/infiniband/%.32s: %s", name, strerror(errno));
	}
	folder_close(dir);
	if (!any)
		findings_add(
			f, LEVEL_FAIL, "RDMA access",
			"modprobe ib_uverbs; in a container --device=/dev/infiniband",
			"there are RDMA devices and no /dev/infiniband/uverbs*: "
			"programs cannot reach them");
}

void doctor_rdma(struct findings *f, const char *root)
{
	DIR *dir = folder_open(root, "/sys/class/infiniband");
	const char *name;
	bool any = false;

	while ((name = folder_next(dir))) {
		any = true;
		rdma_port(f, root, name);
	}
	folder_close(dir);
	if (any)
		rdma_access(f, root);
	else
		findings_add(f, LEVEL_PASS, "RDMA port", NULL,
			     "no RDMA device: this host by shared memory, others by "
			     "sockets");
}

/* ---- network interfaces ------------------------------------------------------------ */

/* What a card's firmware does with marks of congestion, where the driver tells. */
static void ecn(struct findings *f, const char *root, const char *name)
{
	static const char *const ends[] = {"roce_np", "roce_rp"};
	char cure[FINDING_TEXT];
	int64_t on;

	for (int e = 0; e < 2; e++)
		for (int prio = 0; prio < 8; prio++) {
			if (!sys_int(&on, "%s/sys/class/net/%s/ecn/%s/enable/%d", root,
				     name, ends[e], prio) ||
			    on)
				continue;
			snprintf(cure, sizeof(cure),
				 "echo 1 > /sys/class/net/%s/ecn/%s/enable/%d", name,
				 ends[e], prio);
			findings_add(f, LEVEL_WARN, "ECN", cure,
				     "%s: %s is off for priority %d", name, ends[e],
				     prio);
			return;
		}
}

static void interfaces(struct findings *f, const char *root)
{
	DIR *dir = folder_open(root, "/sys/class/net");
	char state[SYS_TEXT], cure[FINDING_TEXT];
	int64_t mtu, mbits;
	const char *name;

	while ((name = folder_next(dir))) {
		if (!sys_text(state, "%s/sys/class/net/%s/operstate", root, name) ||
		    strcmp(state, "up") != 0 ||
		    !sys_int(&mtu, "%s/sys/class/net/%s/mtu", root, name))
			continue;
		if (!sys_int(&mbits, "%s/sys/class/net/%s/speed", root, name) ||
		    mbits < 0)
			mbits = 0;
		snprintf(cure, sizeof(cure),
			 "ip link set %s mtu 9000, and the same on the ports of its "
			 "switches",
			 name);
		if (mbits >= FAST_MBITS && mtu < MTU_LEAST)
			findings_add(f, LEVEL_WARN, "MTU", cure,
				     "%s: %" PRId64 " bytes at %" PRId64 " Mb/s", name,
				     mtu, mbits);
		else
			findings_add(f, LEVEL_PASS, "MTU", NULL, "%s: %" PRId64 " bytes",
				     name, mtu);
		ecn(f, root, name);
	}
	folder_close(dir);
}

/* ---- between devices --------------------------------------------------------------- */

static void iommu(struct findings *f, const char *root, const struct host *host)
{
	const bool devices = host_count(host, HOST_GPU) > 0 || doctor_has_rdma(root);
	char line[SYS_TEXT];

	if (!folder_has_any(root, "/sys/class/iommu"))
		findings_add(f, LEVEL_PASS, "IOMMU", NULL, "off, or none is seen here");
	else if (sys_text(line, "%s/proc/cmdline", root) && strstr(line, "iommu=pt"))
		findings_add(f, LEVEL_PASS, "IOMMU", NULL, "on, devices pass (iommu=pt)");
	else
		findings_add(f, devices ? LEVEL_WARN : LEVEL_PASS, "IOMMU",
			     devices ? "iommu=pt on the kernel's command line" : NULL,
			     devices ? "on, and translates what GPUs and NICs send "
				       "each other"
				     : "on; no GPU or RDMA device that it slows");
}

enum {
	CONFIG_SIZE = 4096,
	CONFIG_EXTENDED = 0x100,
	CAP_ACS = 0x000d,
	ACS_CONTROL = 6,
	/* Source validation, and requests and completions sent up to the root. */
	ACS_REDIRECTS = 0x4 | 0x8,
};

static unsigned word_at(const unsigned char *config, size_t at)
{
	return (unsigned)config[at] | (unsigned)config[at + 1] << 8;
}

/* Whether the bridge sends what devices below it send each other up to the root; -1: that
 * cannot be read, which only root may. */
static int acs_of(const char *root, const char *bridge)
{
	unsigned char config[CONFIG_SIZE];
	char path[PATH_MAX];
	size_t at = CONFIG_EXTENDED;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/config", root, bridge);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, config, sizeof(config));
	close(fd);
	if (n < CONFIG_SIZE)
		return -1;
	/* Each points behind itself, or the list is no list. */
	for (int steps = 0; steps < CONFIG_SIZE / 8; steps++) {
		const size_t next = word_at(config, at + 2) >> 4;

		if (word_at(config, at) == CAP_ACS)
			return (word_at(config, at + ACS_CONTROL) & ACS_REDIRECTS) != 0;
		if (next < CONFIG_EXTENDED || next > CONFIG_SIZE - 8)
			return 0;
		at = next;
	}
	return 0;
}

/* The first bridge above a GPU or NIC that redirects. */
static void acs(struct findings *f, const char *root, const struct host *host)
{
	char cure[FINDING_TEXT];
	bool unread = false, any = false;

	for (unsigned i = 0; i < host->devices; i++) {
		const struct host_device *d = &host->device[i];

		if (d->kind != HOST_GPU && d->kind != HOST_NIC)
			continue;
		/* The first is the host bridge, which is no device. */
		for (unsigned b = 1; b < d->bridges; b++) {
			const int on = acs_of(root, d->bridge[b]);

			any = true;
			unread = unread || on < 0;
			if (on <= 0)
				continue;
			snprintf(cure, sizeof(cure), "setpci -s %s ECAP_ACS+6.w=0000",
				 d->bridge[b]);
			findings_add(f, LEVEL_WARN, "ACS", cure,
				     "bridge %s above %s sends what devices send each "
				     "other through the processor",
				     d->bridge[b], d->pci);
			return;
		}
	}
	if (!any)
		findings_add(f, LEVEL_PASS, "ACS", NULL,
			     "no bridge is above a GPU or NIC");
	else if (unread)
		findings_add(f, LEVEL_WARN, "ACS", "run it as root, once",
			     "only root may read what bridges do");
	else
		findings_add(f, LEVEL_PASS, "ACS", NULL, "no bridge redirects");
}

/* Devices of NUMA nodes of which this process may use no core. */
static void affinity(struct findings *f, const struct host *host)
{
	char cure[FINDING_TEXT];
	int far = 0;

	if (host->nodes < 2) {
		findings_add(f, LEVEL_PASS, "affinity", NULL, "one NUMA node");
		return;
	}
	for (unsigned i = 0; i < host->devices; i++) {
		const struct host_device *d = &host->device[i];
		const char *what = d->rdma[0] ? d->rdma : d->net[0] ? d->net : d->pci;

		if ((d->kind != HOST_GPU && d->kind != HOST_NIC) || d->node < 0 ||
		    host->node[d->node].usable > 0)
			continue;
		far++;
		snprintf(
			cure, sizeof(cure),
			"numactl --cpunodebind=%d, or --bind core of weft run (weft topo "
			"shows which core for which rank)",
			host->node[d->node].id);
		findings_add(f, LEVEL_WARN, "affinity", cure,
			     "%.64s is of NUMA node %d, of which this process may use "
			     "no core",
			     what, host->node[d->node].id);
	}
	if (!far)
		findings_add(f, LEVEL_PASS, "affinity", NULL,
			     "this process may use cores of every device's NUMA node");
}

static void gpus(struct findings *f, const char *root, const struct host *host)
{
	const unsigned n = host_count(host, HOST_GPU);
	char text[SYS_TEXT];

	if (!n) {
		findings_add(f, LEVEL_PASS, "GPU", NULL, "there is none");
		return;
	}
	if (!sys_text(text, "%s/proc/driver/nvidia/version", root)) {
		findings_add(f, LEVEL_WARN, "GPU",
			     "modprobe nvidia; in a container --gpus all",
			     "%u on PCI, and no driver that Weft knows is loaded", n);
		return;
	}
	findings_add(f, LEVEL_PASS, "GPU", NULL, "%u, and the driver is loaded", n);
}

void doctor_devices(struct findings *f, const char *root)
{
	char sys[PATH_MAX], why[HOST_WHY];
	struct host_options options = {.sys = root[0] ? sys : NULL};
	struct host *host = NULL;

	doctor_rdma(f, root);
	interfaces(f, root);
	if (snprintf(sys, sizeof(sys), "%s/sys", root) >= (int)sizeof(sys) ||
	    host_open(&options, &host, why) != 0) {
		findings_add(f, LEVEL_WARN, "devices", NULL,
			     "nothing can be found out: %s", why);
		return;
	}
	iommu(f, root, host);
	acs(f, root, host);
	affinity(f, host);
	gpus(f, root, host);
	host_close(host);
}
