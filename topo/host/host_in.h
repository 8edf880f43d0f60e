/* SPDX-License-Identifier: BSD-2-Clause */
/* How a host is put together: for those who read hwloc or /sys. */
#ifndef WEFT_TOPO_HOST_HOST_IN_H
#define WEFT_TOPO_HOST_HOST_IN_H

#include <stddef.h>

#include "topo/host/host.h"

/* -1 stands for "not known" in what the functions below get. All that return bool give
 * false when memory ran out or there is no more room, which is said then. */

/* Names what is not known. */
__attribute__((format(printf, 2, 3))) void host_miss(struct host *host, const char *fmt,
						     ...);

/* CPUs have to be added before what refers to them; false also for an id out of range. */
bool host_cpu_add(struct host *host, int id);
/* The next core, node, cache; its index, -1: false. */
int host_core_add(struct host *host);
int host_node_add(struct host *host, int id, uint64_t memory);
int host_cache_add(struct host *host, int level, uint64_t bytes);
struct host_cpu *host_cpu_find(const struct host *host, int id);
int host_node_find(const struct host *host, int id);

/* A device at that PCI address, "" for none; NULL: false. */
struct host_device *host_device_add(struct host *host, enum host_kind kind,
				    const char *pci);
struct host_device *host_device_at(const struct host *host, const char *pci);
bool host_bridge_add(struct host_device *d, const char *name);
/* By what class PCI says it is; false: neither a GPU nor a NIC. */
bool host_kind_of(unsigned pci_class, unsigned vendor, unsigned device,
		  enum host_kind *kind);

/* Copies what comes from outside: cut to `size`, with '?' for what does not print. */
void host_word(char *to, size_t size, const char *from);
/* The same behind a comma, if it is not there yet. */
void host_word_append(char *to, size_t size, const char *from);

/* Fill *host: 0, -ENOMEM, -EINVAL or -ENOTSUP and why. */
int host_read_hwloc(struct host *host, const struct host_options *options, char *why);
int host_read_sys(struct host *host, const char *sys, bool devices, char *why);
/* Network interfaces and RDMA devices: names, states and speeds; adds virtual ones. */
void host_read_links(struct host *host, const char *sys);
/* Sets `usable` as the kernel has it for this process. */
void host_read_usable(struct host *host);

#endif
