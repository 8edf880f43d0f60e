/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "cli/info_gpus.h"

#include <stdio.h>

static double gib(uint64_t bytes)
{
	return (double)bytes / (1024.0 * 1024 * 1024);
}

static const char *missing(const struct gpu *gpu)
{
	if (!gpu)
		return "no memory to look for them";
	return gpu->devices ? NULL : gpu->why;
}

/* ---- the ways that its memory can take ------------------------------------------------
 * By what the driver says of the device; a range can still be of a kind that has to be
 * copied (FI_LOG_LEVEL=info says which of each registration).
 */

struct way {
	const char *path; /* as the provider and the executor call it */
	const char *why;  /* why not a better one; "" */
};

/* RMA of FI_HMEM within the host: each piece is mapped by the peer. */
static struct way way_processes(const struct gpu_device *d)
{
	if (d->ipc && d->vmm)
		return (struct way){"ipc", ""};
	if (d->ipc)
		return (struct way){"ipc", "the device gives no descriptors of mapped "
					   "pieces: those are staged"};
	if (d->vmm)
		return (struct way){"ipc", "the driver gives no handles of what it "
					   "allocates in one piece: that is staged"};
	return (struct way){"staged", "the device's memory cannot be shared by handles "
				      "or descriptors"};
}

/* RMA of FI_HMEM over RDMA devices. */
static struct way way_nics(const struct gpu_device *d)
{
	if (!d->dmabuf)
		return (struct way){"staged", "the driver makes no DMA buffers of it"};
	if (!d->rdma)
		return (struct way){"staged", "no NIC may reach the device's memory"};
	return (struct way){"dma-buf", ""};
}

/* The library's, over any provider. */
static struct way way_collectives(const struct gpu_device *d)
{
	(void)d;
	return (struct way){"mirrors", "the host adds up, and providers need not know of "
				       "devices: copies in pinned memory"};
}

static const struct {
	const char *name; /* the member of the document */
	struct way (*of)(const struct gpu_device *d);
} ways[] = {
	{"processes", way_processes},
	{"nics", way_nics},
	{"collectives", way_collectives},
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

struct gpu *info_gpus_open(void)
{
	struct gpu *gpu = NULL;

	return gpu_open(NULL, &gpu) == 0 ? gpu : NULL;
}

void info_gpus_text(const struct gpu *gpu)
{
	const char *why = missing(gpu);

	printf("\nGPUs%s%s%s\n", why ? "" : " (", why ? "" : gpu->why, why ? "" : ")");
	if (why) {
		printf("  none: %s\n", why);
		return;
	}
	for (int i = 0; i < gpu->devices; i++) {
		const struct gpu_device *d = &gpu->device[i];

		printf("  %-16s %-20s compute %d.%d, %.1f GiB; %s%s; %s\n", d->pci,
		       d->name, d->major, d->minor, gib(d->memory),
		       d->dmabuf && d->rdma ? "DMA buffers for NICs"
					    : "no DMA buffers for NICs",
		       d->vmm ? ", pieces by descriptor" : "",
		       d->kernels ? "kernels" : "no kernels");
		for (size_t k = 0; k < WAYS; k++) {
			const struct way way = ways[k].of(d);

			printf("    %-14s %s%s%s\n", ways[k].name, way.path,
			       *way.why ? ": " : "", way.why);
		}
	}
	if (gpu->kernels_why[0])
		printf("  no kernels: %s\n", gpu->kernels_why);
}

void info_gpus_json(struct json *j, const struct gpu *gpu)
{
	json_array_begin(j, "gpus");
	for (int i = 0; gpu && i < gpu->devices; i++) {
		const struct gpu_device *d = &gpu->device[i];
		char compute[32];

		snprintf(compute, sizeof(compute), "%d.%d", d->major, d->minor);
		json_object_begin(j, NULL);
		json_text(j, "name", d->name);
		json_text(j, "pci", d->pci);
		json_text(j, "compute", compute);
		json_real(j, "memory_gib", gib(d->memory));
		json_bool(j, "dma_buffers", d->dmabuf && d->rdma);
		json_bool(j, "kernels", d->kernels);
		json_object_begin(j, "paths");
		for (size_t k = 0; k < WAYS; k++) {
			const struct way way = ways[k].of(d);

			json_object_begin(j, ways[k].name);
			json_text(j, "path", way.path);
			json_text(j, "why", *way.why ? way.why : NULL);
			json_object_end(j);
		}
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
	json_text(j, "gpus_missing", missing(gpu));
}
