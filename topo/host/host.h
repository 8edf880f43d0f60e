/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known about a host: processors, memory nodes, GPUs and NICs, and where on PCI
 * express those are. From hwloc where this build has it, else from /sys; of this host, or
 * of another that a file or a folder describes. What is not known is -1, 0 or empty, and
 * named in `missing[gaps]`: nothing is guessed.
 *
 * Arrays belong to the host and do not change once it is open: any thread may read them.
 */
#ifndef WEFT_TOPO_HOST_HOST_H
#define WEFT_TOPO_HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>

enum {
	HOST_CPUS_MAX = 1 << 16,
	HOST_DEVICES_MAX = 256,
	HOST_BRIDGES_MAX = 12, /* above a device */
	HOST_GAPS_MAX = 64,
	HOST_NAME = 64, /* bytes, with the zero byte; so are those below */
	HOST_PCI = 20,	/* "0000:3b:00.0" */
	HOST_WHY = 200
};

/* A hardware thread. Numbers of other things are indices, -1: not known. */
struct host_cpu {
	int id; /* the kernel's number */
	int core;
	bool usable; /* by this process; of another host: by anybody */
};

struct host_core {
	int package, node;
	int cache; /* the largest that it shares with other cores; -1: none is known */
	unsigned cpus, usable; /* hardware threads */
};

struct host_node {
	int id;			/* the kernel's number */
	int package;		/* -1: not known, or of several, or memory alone */
	uint64_t memory;	/* bytes; 0: not known */
	unsigned cores, usable; /* of these: with a hardware thread that may be used */
};

struct host_cache {
	int level;
	uint64_t bytes; /* 0: not known */
	unsigned cores;
};

enum host_kind {
	HOST_GPU,
	HOST_NIC,
	HOST_DISPLAY, /* shows pictures and computes nothing: a console's */
	HOST_VIRTUAL  /* a network interface or RDMA device without a PCI device */
};

enum host_state { HOST_STATE_UNKNOWN, HOST_UP, HOST_DOWN };

struct host_device {
	enum host_kind kind;
	unsigned nth; /* of its kind */
	char pci[HOST_PCI];
	uint16_t vendor_id, device_id;
	char model[HOST_NAME];		      /* what hwloc calls it */
	char net[HOST_NAME], rdma[HOST_NAME]; /* its names, with commas */
	int node;
	enum host_state state;
	uint64_t bits_per_s; /* of a NIC's fastest port */
	/* From the host bridge down: "pci0000:15", then addresses of bridges. */
	char bridge[HOST_BRIDGES_MAX][HOST_PCI];
	unsigned bridges;
};

struct host {
	char source[HOST_WHY]; /* who says all that */
	bool here;	       /* it is this host */
	struct host_cpu *cpu;  /* by ascending id */
	struct host_core *core;
	struct host_node *node;
	struct host_cache *cache;
	struct host_device *device; /* by kind, then by PCI address */
	unsigned packages, cpus, cores, nodes, caches, devices;
	char missing[HOST_GAPS_MAX][HOST_WHY];
	unsigned gaps;
};

struct host_options {
	const char *xml; /* a file of hwloc: that host; else NULL */
	const char *sys; /* a copy of /sys: that host, without hwloc; else NULL */
	bool no_devices; /* processors and nodes only */
};

/*
 * options NULL: this host, all of it. 0, and *host belongs to the caller; -ENOMEM;
 * -ENOTSUP: `xml` without hwloc; -EINVAL: nothing can be found out. why[HOST_WHY] says
 * it. For a process of one thread: the environment changes meanwhile.
 */
int host_open(const struct host_options *options, struct host **host, char *why);
void host_close(struct host *host);

/* Devices of one kind: how many; the nth's index, -1: there is none. */
unsigned host_count(const struct host *host, enum host_kind kind);
int host_device(const struct host *host, enum host_kind kind, unsigned nth);
/* "gpu", "nic", "display", "virtual". */
const char *host_kind_name(enum host_kind kind);

#endif
